"""Count the instructions of the kernels under callgrind and compare them with those kept.

    python -m tests.benchmarks.instructions            compare; status 1 where one grew
    python -m tests.benchmarks.instructions --renew    keep today's numbers

Times on a shared machine vary by more than most regressions; instructions do not. Counted are
those inside rumi's own libraries (``core``), which are the same however busy the machine is and
whatever Python was built by. Those that Python and the C library execute on their behalf (``all``)
depend on how these were built, so they are compared with more tolerance, and only under the
Python version that they were kept for. Each number is that of one call, as the difference between
2 n and n calls in one process: start-up, and the loop around the calls, cancel out.

Needs valgrind (Debian: ``apt-get install valgrind``) and a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import rumi
from rumi import encodings
from rumi._core import BlobHeader, Decoder, Plan, Store, Target

KEPT = Path(__file__).with_suffix(".json")

# How many times the kept number is too many. With gcc 14 and Python 3.13 the core differs by up
# to 12 % from gcc 12 and Python 3.11, with the flags that Debian's Python brings by up to 17 %,
# and all by up to 18 %. One compiler and Python always count the same.
CORE_LIMIT = 1.2
ALL_LIMIT = 1.35

# Fewer instructions a call than this are a compiler's whim.
SLACK = 20

CALLS = 40

# Callgrind's requests are macros of C. A dump carries its name and resets the counts.
MARKS = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void dump(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""

SHAPE = (3, 500, 512)
TILE = 128

Counts = dict[str, dict[str, int]]


def blob(shape: tuple[int, int, int], tile: int) -> bytes:
    """Return a header blob with residuals of 17 bits that look random but never change."""
    bands, height, width = shape
    frames = -(-height // tile) * -(-width // tile) * bands
    counts = np.arange(frames, dtype=np.uint64) * 48271 % 99_991 + 20_000
    encoding = encodings.from_dtype("u2")
    return bytes(rumi.Header.build(shape, (tile, tile), encoding, "tile", counts))


def scene() -> bytes:
    """Return a file whose frames decode as fast as any."""
    pixels = np.arange(np.prod(SHAPE), dtype=np.uint16).reshape(SHAPE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.rumi"
        rumi.write(path, pixels, tile_size=TILE, codec="store")
        return path.read_bytes()


def cases() -> dict[str, Callable[[], object]]:
    """Return what is called, by its name."""
    small, large = blob(SHAPE, TILE), blob((1, 300, 300), 1)
    header, many = BlobHeader(small), BlobHeader(large)
    offsets = np.empty(many.frame_count, dtype=np.uint64)
    data = scene()
    store, decoder = Store.memory(data), Decoder("openzl")
    plan = Plan(BlobHeader(bytes(rumi.index(data))), None, (100, 60, 300, 300))
    planes = Target(np.empty(plan.shape, dtype=np.uint16), 2)
    last = Target(np.empty((300, 300, 3), dtype=np.uint16).transpose(2, 0, 1), 2)
    return {
        "header parse, 48 frames": partial(BlobHeader, small),
        "header parse, 90,000 frames": partial(BlobHeader, large),
        "plan, one frame": partial(Plan, header, 0, (20, 20, 8, 8)),
        "plan, 27 frames": partial(Plan, header, None, (100, 60, 200, 300)),
        "plan, the last of 90,000 frames": partial(Plan, many, 0, (299, 299, 1, 1)),
        "prefix sum, one of 90,000 offsets": partial(many.offset, 89_999),
        "prefix sum, 90,000 offsets": partial(many.fill_offsets, offsets),
        "decode and scatter, planes": partial(decoder.decode, plan, store, planes),
        "decode and scatter, channels last": partial(decoder.decode, plan, store, last),
    }


def run_inside(marks: str) -> None:
    """Call everything n and 2 n times; what callgrind starts."""
    library = ctypes.CDLL(marks)
    work = cases()
    gc.disable()
    library.start()
    for name, call in work.items():
        call()
        for times in (1, 2):
            library.dump(b"")
            for _ in range(CALLS * times):
                call()
            library.dump(f"{times} {name}".encode())


def spent(dump: str) -> dict[str, int]:
    """Add up a dump: the instructions in rumi's libraries, and all."""
    counts = {"core": 0, "all": 0}
    core = inclusive = False
    for line in dump.splitlines():
        if line.startswith("ob="):
            core = "/rumi/_core/" in line
        elif line.startswith("calls="):
            inclusive = True
        elif line[:1].isdigit():
            # The line after a call is what the callee spent, which stands in its place too.
            number = 0 if inclusive else int(line.split()[1])
            counts["all"] += number
            counts["core"] += number if core else 0
            inclusive = False
    return counts


def build_marks(folder: Path) -> Path:
    """Compile the requests to callgrind."""
    source, library = folder / "marks.c", folder / "marks.so"
    source.write_text(MARKS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def count() -> Counts:
    """Run everything under callgrind and return the instructions of one call of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [
            *("valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"),
            *("--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={folder}/out"),
            *(sys.executable, "-m", "tests.benchmarks.instructions"),
            *("--inside", str(build_marks(folder))),
        ]
        # The same hashes, decoder and loader each time.
        environment = {**os.environ, "PYTHONHASHSEED": "0", "RUMI_BACKEND": "openzl"}
        subprocess.run(command, check=True, env=environment)
        found: dict[str, dict[str, int]] = {}
        for path in folder.glob("out.*"):
            text = path.read_text()
            trigger = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.M)
            if trigger:
                found[trigger[1]] = spent(text)
    names = [name.removeprefix("1 ") for name in found if name.startswith("1 ")]
    return {
        name: {
            kind: (found[f"2 {name}"][kind] - found[f"1 {name}"][kind]) // CALLS
            for kind in ("core", "all")
        }
        for name in sorted(names)
    }


def too_many(found: Counts, kept: Counts, *, same_python: bool) -> list[str]:
    """Return a line for every number that is above what is kept."""
    limits = {"core": CORE_LIMIT, **({"all": ALL_LIMIT} if same_python else {})}
    lines = [f"{name}: not counted any more" for name in kept.keys() - found.keys()]
    for name, numbers in found.items():
        if name not in kept:
            lines.append(f"{name}: no number is kept")
            continue
        for kind, limit in limits.items():
            most = kept[name][kind] * limit + SLACK
            if numbers[kind] > most:
                lines.append(f"{name}: {kind} {numbers[kind]:,} is above {most:,.0f}")
    return lines


def table(found: Counts, kept: Counts) -> str:
    """Return the counts beside the kept ones."""
    lines = [f"{'instructions of one call':<36}{'core':>12}{'kept':>12}{'all':>12}{'kept':>12}"]
    for name, numbers in found.items():
        line = f"{name:<36}"
        for kind in ("core", "all"):
            line += f"{numbers[kind]:>12,}{kept.get(name, {}).get(kind, 0):>12,}"
        lines.append(line)
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.instructions")
    parser.add_argument("--renew", action="store_true", help="keep the numbers that are found")
    parser.add_argument("--inside", metavar="LIBRARY", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        run_inside(arguments.inside)
        return 0
    for program in ("valgrind", "cc"):
        if shutil.which(program) is None:
            parser.error(f"{program} is missing; on Debian: apt-get install valgrind gcc")
    everything = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    machine = everything.get(platform.machine(), {"python": "", "counts": {}})
    version = ".".join(platform.python_version_tuple()[:2])
    found = count()
    print(table(found, machine["counts"]))
    if arguments.renew:
        everything[platform.machine()] = {"python": version, "counts": found}
        KEPT.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
        print(f"kept in {KEPT.name}")
        return 0
    if not machine["counts"]:
        print(f"nothing is kept for {platform.machine()}; add it with --renew")
        return 1
    lines = too_many(found, machine["counts"], same_python=machine["python"] == version)
    if lines:
        print(*lines, sep="\n")
        print(
            "If the growth is meant, build without RUMI_DEBUG, run "
            "`python -m tests.benchmarks.instructions --renew` and commit the file."
        )
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
