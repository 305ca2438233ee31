"""Hostile input: any bytes as blob, file, frame or window (the targets of fuzz/targets.py).

Here is what fits into a run of the suite. `python tests/fuzz` goes on from there, by
coverage and for as long as one likes.
"""

import os
import subprocess
import sys
from pathlib import Path

import oracle
import pytest
from fuzz import mutations, seeds, targets
from hypothesis import given, settings
from hypothesis import strategies as st

import rumi

FUZZ = Path(__file__).resolve().parent / "fuzz"
NAMES = list(targets.TARGETS)

# Inputs that once broke a promise.
FOUND = {
    "blob": [
        # rumi.validate laid out every count of some hundred million equal ones: 700 MB.
        "4c4f564501004f564501000100000800080001001001012800000000",
        "4c4f564501002800003000000009a16ddef313891001012800000000",
        # ... and looked for the smallest count of none.
        "4c4f5645010000000000010000000100010001001001012b00000000",
    ],
}


def setup_module():
    targets.warm_up()


@pytest.mark.parametrize("target", NAMES)
def test_what_fuzzing_starts_from_is_good(target):
    for data in seeds.seeds(target):
        targets.TARGETS[target](data)


@pytest.mark.parametrize(
    ("target", "data"), [(name, data) for name, rows in FOUND.items() for data in rows]
)
def test_what_fuzzing_found(target, data):
    targets.TARGETS[target](bytes.fromhex(data))


@given(st.sampled_from(NAMES), st.binary(max_size=1000))
@settings(max_examples=300)
def test_any_bytes(target, data):
    targets.TARGETS[target](data)


@given(
    st.sampled_from(NAMES),
    st.integers(0, 99),
    st.dictionaries(st.integers(0, 700), st.binary(min_size=1, max_size=9), max_size=4),
    st.integers(0, 900),
)
@settings(max_examples=300)
def test_any_change_of_something_good(target, number, changes, cut):
    good = seeds.seeds(target)
    data = bytearray(good[number % len(good)])
    for at, new in changes.items():
        at %= len(data)
        data[at : at + len(new)] = new
    targets.TARGETS[target](bytes(data[: len(data) - cut] if cut < 20 else data))


@pytest.mark.parametrize("count", [12, 13, 20, 100, 4097, 2**60, 2**64 - 1])
@pytest.mark.parametrize("length", [252, 260, 271])
def test_entries_beyond_the_end(count, length):
    """No clause could be checked, and so none failed: rumi.validate passed it."""
    data = oracle.replaced(seeds.seeds("index")[0], 16, count.to_bytes(8, "little"))[:length]
    assert not rumi.validate(memoryview(data)).ok
    targets.index(data)


def test_mutations_are_repeatable():
    one, other = mutations.mutations("blob", 5), mutations.mutations("blob", 5)
    assert [next(one) for _ in range(50)] == [next(other) for _ in range(50)]


@pytest.mark.parametrize(
    ("target", "number"), [("blob", 3000), ("index", 1000), ("frames", 20_000), ("windows", 5000)]
)
def test_many_mutations(target, number, tmp_path):
    """In a process of its own, which a crash of a decoder would end."""
    result = subprocess.run(
        [sys.executable, FUZZ, target, "--mutations", str(number)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.fspath(Path(rumi.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert f"{target}: {number} mutations" in result.stdout


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is not told here")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="it takes all there is")
def test_mutated_frames_in_little_memory():
    """What OpenZL asks for on behalf of a frame's claims, it may not get: an error, no crash."""
    oracle.run_python(
        """
import resource
from pathlib import Path
from fuzz import mutations, seeds, targets
targets.warm_up()
for data in seeds.seeds("frames"):
    targets.frames(data)
mutated = mutations.mutations("frames", 9)
next(mutated)
refused = targets.refused

def refused_or_no_memory(call):
    try:
        return refused(call)
    except MemoryError as error:
        return error

targets.refused = refused_or_no_memory
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + targets.MEMORY,) * 2)
for _, data in zip(range(30_000), mutated):
    targets.frames(data)
""",
        timeout=120,
    )


def test_sizes_of_2_to_the_63():
    """Every eight bytes of an index in turn claim 2**63, its neighbours, and all there is."""
    data, blob = oracle.write(oracle.ramp(3, 9, 9), (4, 4))
    base = oracle.base_offset(3, oracle.frame_count(oracle.parse(blob)[0]))
    for claim in (2**63 - 1, 2**63, 2**64 - 1, 2**64 - 16):
        for at in range(0, base - 8, 4):
            targets.index(oracle.replaced(data, at, claim.to_bytes(8, "little")))


def test_sizes_of_2_to_the_63_in_frames():
    """As OpenZL writes numbers, at every byte of frames without checksums."""
    claims = [b"\xff" * 8 + b"\x7f", b"\x80" * 8 + b"\x7f", b"\xff" * 9 + b"\x01", b"\xff" * 4]
    plain = [data for data in seeds.seeds("frames") if len(data) < 400]
    assert len(plain) > 50
    for data in plain:
        for at in range(5, len(data), 3):
            for claim in claims[:2] if at > 40 else claims:
                targets.frames(oracle.replaced(data, at, claim)[: len(data)])
