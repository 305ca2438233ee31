"""Conformance: every demand of the specification's text has tests that exist."""

import ast
import re
import struct
from pathlib import Path

import conformance
import numpy as np
import oracle
import pytest
from openzl import ext as openzl

import rumi
from rumi.validation import clauses

TESTS = Path(__file__).parent
TEXT = TESTS.parents[1] / "shared" / "spec" / "rumi-0.1.0.txt"
ROWS = (*conformance.MUST, *conformance.PROFILE, *conformance.OTHER)


@pytest.fixture(scope="module")
def text():
    if not TEXT.exists():
        pytest.skip("the specification's text is not beside the checkout")
    return TEXT.read_text()


def sentences(text):
    return [part for line in text.splitlines() for part in re.split(r"(?<=[.])\s+", line)]


def test_no_must_is_left_out(text):
    found = [sentence for sentence in sentences(text) if "MUST" in sentence]
    assert found == [conformance.DEFINITION, *(row.sentence for row in conformance.MUST)]


def test_nothing_is_left_to_choice(text):
    """The text has no SHOULD and no MAY beside the sentence that defines them."""
    for word in ("SHOULD", "MAY", "SHALL", "REQUIRED", "RECOMMENDED", "OPTIONAL"):
        assert not [s for s in sentences(text) if word in s and s != conformance.DEFINITION]


def test_the_file_profile_is_complete(text):
    """Line by line but for the breaks and spaces that the text lost around code."""
    _, found = text.split("A file is rumi compliant when all of the following hold.")
    found = re.sub(r"- |\s", "", found.split("\nFixed IFD\n")[0])
    assert found == "".join(re.sub(r"\s", "", row.sentence) for row in conformance.PROFILE)


def test_other_sentences_are_quotations(text):
    assert {row.sentence for row in conformance.OTHER} <= set(sentences(text))


@pytest.mark.parametrize("rows", ["MUST", "OTHER"])
def test_sections_are_those_the_sentences_stand_in(text, rows):
    """The heading is the nearest of all those named here before the sentence."""
    headings = {row.section for row in ROWS}
    section, found = "", {}
    for line in text.splitlines():
        section = line if line in headings else section
        for sentence in sentences(line):
            found.setdefault(sentence, []).append(section)
    for row in getattr(conformance, rows):
        assert row.section in found[row.sentence]


def collected():
    """The tests of each module, as pytest would collect them."""
    found = set()
    for path in sorted(TESTS.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                name = node.name.removeprefix("test_")
                found.add(f"{path.stem.removeprefix('test_')}::{name}")
    return found


def test_every_named_test_exists():
    named = {name for row in ROWS for name in row.tests}
    assert all(row.tests for row in ROWS)
    assert named - collected() == set()


def test_every_clause_of_validate_stands_for_a_sentence():
    assert {clause for row in ROWS for clause in row.clauses} == {c.id for c in clauses()}


# --- Where a sentence had no test


def test_one_magic_and_one_version():
    """Each other value of each of their six bytes, and all other versions."""
    values = oracle.ramp(1, 4, 4, np.uint8)
    _, blob = oracle.write(values, (4, 4))
    rumi.Header(blob)
    for position in range(4):
        for value in set(range(256)) - {blob[position]}:
            with pytest.raises(rumi.HeaderError, match="magic"):
                rumi.Header(oracle.replaced(blob, position, bytes([value])))
    for version in (0, *range(2, 2**16)):
        with pytest.raises(rumi.HeaderError, match="version"):
            rumi.Header(oracle.replaced(blob, 4, struct.pack("<H", version)))


@pytest.mark.parametrize("unit", ["tile", "cell"])
@pytest.mark.parametrize("codec", ["auto", "small", "fast", "store", "planar>lanes>zstd"])
def test_frames_have_the_pinned_version_and_stand_alone(tmp_path, unit, codec):
    """Each is decoded by a context that has seen no other, in reverse order, from its bytes."""
    for pair in oracle.DTYPES:
        values = oracle.random_samples(pair, (2, 20, 30), seed=pair[1])
        if codec == "planar>lanes>zstd" and values.dtype.itemsize > 8:
            continue
        path = tmp_path / "a.rumi"
        header = rumi.write(path, values, tile_size=16, frame_unit=unit, codec=codec)
        data = path.read_bytes()
        parts = oracle.cut(values, (16, 16), 0 if unit == "tile" else 1)
        for index in reversed(range(header.frame_count)):
            start = header.offset(index)
            frame = data[start : start + header.byte_count(index)]
            assert struct.unpack_from("<I", frame)[0] == 0xD7B1A5C0 + 24
            (output,) = openzl.DCtx().decompress(frame)
            assert output.content.as_bytes() == oracle.raw(parts[index])
