"""The conformance vectors, against the generated parsers and against rumi.

What a parser generated from the .ksy can refuse, all of them refuse; what needs
more (comparing values, frames, samples, a registry) is asked of rumi alone.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rumi
from rumi.errors import FormatError

ROOT = Path(__file__).resolve().parents[1]
FORMATS = ROOT / "formats"
PARSERS = Path(__file__).parent / "parsers"
SPECIFICATION = ROOT.parent / "shared" / "spec" / "rumi-0.1.0.txt"

BLOBS = json.loads((FORMATS / "vectors" / "blobs.json").read_text())["vectors"]
FILES = json.loads((FORMATS / "vectors" / "files.json").read_text())["vectors"]


def load(name):
    spec = importlib.util.spec_from_file_location(f"parsers_{name}", PARSERS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def each(vectors, *, verdict=None, checks=None):
    """Parametrise over some of the vectors."""
    chosen = [
        vector
        for vector in vectors
        if verdict in (None, vector["verdict"]) and (checks is None or vector["check"] in checks)
    ]
    assert chosen
    return pytest.mark.parametrize("vector", chosen, ids=[vector["name"] for vector in chosen])


def data(vector, key="hex"):
    return bytes.fromhex(vector[key])


def agrees(found, expected):
    """Whether everything that a parser found stands in the vector so."""
    for part in ("fields", "derived", "georeferencing"):
        for name, value in found.get(part, {}).items():
            if (
                part == "fields"
                and name == "frame_unit"
                and expected["fields"]["samples_per_pixel"] == 1
            ):
                continue
            assert value == expected[part][name], (part, name)
    assert len(found["frames"]) == len(expected["frames"])
    for got, frame in zip(found["frames"], expected["frames"], strict=True):
        assert got == {key: frame[key] for key in got}, frame["index"]


# --- The vectors themselves


def test_vectors_are_many_small_and_of_every_kind():
    assert sum(path.stat().st_size for path in (FORMATS / "vectors").iterdir()) < 300_000
    assert len(BLOBS) > 100
    assert len(FILES) > 100
    assert {vector["check"] for vector in FILES} == {
        "structure",
        "values",
        "frames",
        "decoder",
        "registry",
        "match",
    }
    for vectors in (BLOBS, FILES):
        names = [vector["name"] for vector in vectors]
        assert len(set(names)) == len(names)
        malformed = [
            vector["hex"] + vector.get("blob", "") for vector in vectors if "clause" in vector
        ]
        assert len(set(malformed)) == len(malformed)
        assert not {vector["hex"] for vector in vectors if "fields" in vector} & set(malformed)


@pytest.mark.skipif(not SPECIFICATION.is_file(), reason="the specification is not beside the tree")
def test_every_clause_is_a_heading_of_the_specification():
    headings = {line.strip() for line in SPECIFICATION.read_text().splitlines()}
    clauses = {vector["clause"] for vector in BLOBS + FILES if "clause" in vector}
    assert len(clauses) > 15
    for clause in clauses:
        assert set(clause.split(", ")) <= headings, clause


# --- Generated parsers


@each(BLOBS, verdict="valid")
def test_python_parses_blobs(vector):
    agrees(load("kaitai").blob(vector), vector)


@each(FILES, verdict="valid")
def test_python_parses_files(vector):
    agrees(load("kaitai").file(vector), vector)


@each([v for v in BLOBS if "clause" in v], checks=["structure"])
def test_python_refuses_blobs(vector):
    parser = load("kaitai")
    with pytest.raises(parser.REFUSALS):
        parser.blob(vector)


@each([v for v in FILES if "clause" in v], checks=["structure"])
def test_python_refuses_files(vector):
    parser = load("kaitai")
    with pytest.raises(parser.REFUSALS):
        parser.file(vector)


NODE = shutil.which("node")
MODULES = FORMATS / "node_modules"


def verdicts(results, *, checks=("structure",)):
    """Compare what another language found: valid vectors agree, malformed ones are refused."""
    for vectors, found in zip((BLOBS, FILES), results, strict=True):
        assert list(found) == [vector["name"] for vector in vectors]
        for vector in vectors:
            result = found[vector["name"]]
            if vector["verdict"] == "valid":
                assert "refused" not in result, (vector["name"], result)
                agrees(result, vector)
            elif vector["check"] in checks:
                assert "refused" in result, vector["name"]


@pytest.mark.skipif(
    NODE is None or not (MODULES / "kaitai-struct").is_dir(),
    reason="the JavaScript parser is not tested: needs node and `npm install --prefix formats`",
)
def test_javascript(tmp_path):
    command = [NODE, FORMATS / "generate.mjs", "--target", "javascript", "-o", tmp_path]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [
            NODE,
            PARSERS / "javascript.cjs",
            *(FORMATS / "vectors" / f"{n}.json" for n in ("blobs", "files")),
        ],
        cwd=tmp_path,
        env=os.environ | {"NODE_PATH": str(MODULES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    verdicts(json.loads(done.stdout))


def test_construct(tmp_path):
    pytest.importorskip("construct")
    if NODE is None or not (MODULES / "kaitai-struct-compiler").is_dir():
        pytest.skip("needs node and `npm install --prefix formats`")
    command = [NODE, FORMATS / "generate.mjs", "--target", "construct", "-o", tmp_path]
    subprocess.run(command, check=True)
    documents = [FORMATS / "vectors" / f"{name}.json" for name in ("blobs", "files")]
    done = subprocess.run(
        [sys.executable, PARSERS / "construct_driver.py", *documents],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    verdicts(json.loads(done.stdout))


# --- rumi


@each(BLOBS, verdict="valid")
def test_rumi_reads_blobs(vector):
    header = rumi.Header(data(vector))
    assert bytes(header) == data(vector)
    assert {name: getattr(header, name) for name in vector["fields"] if name != "magic"} == {
        name: value for name, value in vector["fields"].items() if name != "magic"
    }
    derived = dict(vector["derived"])
    assert header.encoding.name == derived.pop("encoding")
    assert header.base_frame_offset - 252 == derived.pop("external")
    assert {name: getattr(header, name) for name in derived} == derived
    for frame in vector["frames"]:
        index, band = frame["index"], frame["band"] or 0
        assert header.frame_index(frame["row"], frame["col"], band) == index
        assert (header.byte_count(index), header.offset(index)) == (
            frame["byte_count"],
            frame["offset"],
        )


# Where an error of rumi names another clause that the vector breaks as well: the one
# before it in the file, or that of the tags for whatever is no rumi file.
OTHER_CLAUSES = {
    "count-min-0": "Header fields, count_min and count_bits",
    "start-ofs-ifd": "Fixed IFD",
    "count-tile-offsets": "Fixed IFD",
    "extra-pixel-scale": "Fixed IFD",
    "zero-samples-per-pixel": "Fixed IFD",
}


@each([v for v in BLOBS if "clause" in v])
def test_rumi_refuses_blobs_by_the_clause(vector):
    with pytest.raises(FormatError) as caught:
        rumi.Header(data(vector))
    assert OTHER_CLAUSES.get(vector["name"], vector["clause"]) in str(caught.value)


@each(FILES, verdict="valid")
def test_rumi_indexes_files(vector):
    assert bytes(rumi.index(data(vector))) == data(vector, "blob")
    image = rumi.open(data(vector))
    georeferencing = vector["georeferencing"]
    assert (image.epsg or 0) == georeferencing["epsg"]
    depth = "decode" if vector["check"] == "decoder" else "headers"
    report = rumi.validate(data(vector), data(vector, "blob"), frames=depth)
    assert report.ok, str(report)


@each(FILES, verdict="valid", checks=["decoder"])
def test_rumi_decodes_the_samples(vector):
    header = rumi.Header(data(vector, "blob"))
    samples = rumi.read(data(vector), header)
    for frame in vector["frames"]:
        top, left = frame["row"] * header.tile_length, frame["col"] * header.tile_width
        bands = slice(None) if frame["band"] is None else frame["band"]
        part = samples[bands, top : top + frame["height"], left : left + frame["width"]]
        assert part.astype(np.int64).ravel().tolist() == frame["samples"]


@each([v for v in FILES if "clause" in v], checks=["structure", "values"])
def test_rumi_refuses_to_index_by_the_clause(vector):
    with pytest.raises(FormatError) as caught:
        rumi.index(data(vector))
    assert OTHER_CLAUSES.get(vector["name"], vector["clause"]) in str(caught.value)


@each([v for v in FILES if "clause" in v])
def test_rumi_validates_against_the_clause(vector):
    blob = data(vector, "blob") if "blob" in vector else None
    depth = "decode" if vector["check"] == "decoder" else "headers"
    report = rumi.validate(data(vector), blob, frames=depth)
    sections = {finding.clause.section for finding in report.failures}
    assert vector["clause"] in sections, str(report)


@each([v for v in BLOBS if "clause" in v])
def test_rumi_validates_blobs_against_the_clause(vector):
    report = rumi.validate(data(FILES[0]), data(vector), frames="none")
    sections = {finding.clause.section for finding in report.failures}
    assert vector["clause"] in sections, str(report)
