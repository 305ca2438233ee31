"""Live, against rumi-eo 0.16.0: it reads our files, we read its files (see peer.py)."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import oracle
import pytest
from peer import KNOWN, PLACES, check_read, read_job, write_job

import rumi


def test_it_reads_our_files(other, tmp_path):
    """Every encoding it knows, in tiles and cells, with our blob and without."""
    cases, jobs = [], []
    for pair in KNOWN:
        for unit in ("tile", "cell"):
            values = oracle.random_samples(pair, (3, 25, 40), seed=pair[1])
            path = tmp_path / f"{pair[0]}-{pair[1]}-{unit}.rumi"
            header = rumi.write(path, values, tile_size=16, frame_unit=unit)
            for blob in (b"", bytes(header)):
                out = tmp_path / f"{len(jobs)}.raw"
                jobs.append(read_job(path, out, blob))
                cases.append((out, values))
    for answer, (out, values) in zip(other(jobs), cases, strict=True):
        check_read(answer, out, values)


def test_it_reads_windows_and_bands_of_our_files(other, tmp_path):
    cases, jobs = [], []
    for pair in (pair for pair in KNOWN if pair[1] >= 8):
        for unit in ("tile", "cell"):
            values = oracle.random_samples(pair, (3, 25, 40))
            path = tmp_path / f"{pair[0]}-{pair[1]}-{unit}.rumi"
            header = rumi.write(path, values, tile_size=16, frame_unit=unit)
            out = tmp_path / f"{len(jobs)}.raw"
            jobs.append(read_job(path, out, bytes(header), b=[1, 3], y=[7, 20], x=[15, 40]))
            cases.append((out, values[1:3, 7:20, 15:40]))
    for answer, (out, values) in zip(other(jobs), cases, strict=True):
        check_read(answer, out, values)


@pytest.mark.parametrize("place", PLACES)
def test_it_reads_our_files_wherever_they_lie(other, tmp_path, place):
    """Georeferenced or not; and it sees in our file what our blob says."""
    values = oracle.ramp(2, 40, 50, np.uint16)
    jobs = []
    for number, unit in enumerate(("tile", "cell")):
        path = tmp_path / f"{unit}.rumi"
        header = rumi.write(path, values, tile_size=32, frame_unit=unit, **PLACES[place])
        jobs.append(read_job(path, tmp_path / f"{number}.raw"))
        jobs.append({"do": "describe", "source": str(path), "blob": bytes(header).hex()})
    answers = other(jobs)
    for number in range(2):
        check_read(answers[2 * number], tmp_path / f"{number}.raw", values)
        described = answers[2 * number + 1]
        assert described["file"] == described["blob"]


SHAPES = [
    ((1, 1, 1), 512),
    ((1, 16, 16), 16),
    ((1, 16, 17), 16),
    ((3, 9, 16), 16),
    ((4, 33, 17), 16),
    ((5, 33, 17), 16),
    ((6, 8, 8), 8),
    ((2, 64, 64), 4),
    ((1, 1, 300), 64),
    ((300, 2, 2), 2),
]


@pytest.mark.parametrize("unit", ["tile", "cell"])
def test_its_blob_of_our_file_is_ours(other, tmp_path, unit):
    """At every border between inline and outside values, and with one frame and many."""
    jobs = []
    for number, (shape, tile) in enumerate(SHAPES):
        path = tmp_path / f"{number}.rumi"
        values = oracle.ramp(*shape, dtype=np.int32)
        header = rumi.write(path, values, tile_size=tile, frame_unit=unit)
        jobs.append({"do": "describe", "source": str(path), "blob": bytes(header).hex()})
        # Reading with our blob locates every frame with it.
        jobs.append(read_job(path, tmp_path / f"{number}.raw", bytes(header)))
    answers = other(jobs)
    for number, (shape, tile) in enumerate(SHAPES):
        described = answers[2 * number]
        assert described["file"] == described["blob"]
        fields = oracle.fields_of(shape, (tile, tile), unit=0 if unit == "tile" else 1)
        assert described["file"]["shape"] == list(shape)
        assert described["file"]["frames"] == oracle.frame_count(fields)
        assert described["file"]["base_frame_offset"] == oracle.base_offset(
            shape[0], oracle.frame_count(fields)
        )
        check_read(
            answers[2 * number + 1],
            tmp_path / f"{number}.raw",
            oracle.ramp(*shape, dtype=np.int32),
        )


@pytest.mark.parametrize(
    "codec", ["auto", "store", "delta>zigzag>lanes>fse", "tokenize>lanes>zstd"]
)
def test_it_reads_what_every_codec_wrote(other, tmp_path, codec):
    jobs, cases = [], []
    for dtype in (np.uint8, np.int16, np.float32, np.uint64):
        values = (oracle.ramp(2, 50, 70) % 120).astype(dtype)
        path = tmp_path / f"{np.dtype(dtype).name}.rumi"
        rumi.write(path, values, tile_size=32, codec=codec)
        jobs.append(read_job(path, tmp_path / f"{len(jobs)}.raw"))
        cases.append((tmp_path / f"{len(cases)}.raw", values))
    for answer, (out, values) in zip(other(jobs), cases, strict=True):
        check_read(answer, out, values)


@pytest.mark.parametrize("place", PLACES)
def test_its_writer_fed_with_our_frames_gives_our_file(other, tmp_path, place):
    """Byte for byte, and its blob is ours: index, placement, georeferencing, packing."""
    jobs, expected = [], []
    for number, (shape, tile) in enumerate(SHAPES):
        for unit in ("tile", "cell"):
            values = oracle.ramp(*shape, dtype=np.uint16)
            path = tmp_path / f"{number}-{unit}.rumi"
            options = {"tile_size": tile, "frame_unit": unit}
            header = rumi.write(path, values, codec="zstd", **options, **PLACES[place])
            data = path.read_bytes()
            bounds = [*header.offsets.tolist(), len(data)]
            job = write_job(path.with_suffix(".theirs"), values, tile, unit, PLACES[place])
            job["frames"] = [data[a:b].hex() for a, b in itertools.pairwise(bounds)]
            jobs.append(job)
            expected.append((data, bytes(header)))
    for answer, job, (data, blob) in zip(other(jobs), jobs, expected, strict=True):
        assert Path(job["out"]).read_bytes() == data
        theirs = bytes.fromhex(answer["blob"])
        if theirs != blob:
            # With one band a cell is a tile: we record tile, it what it was told.
            assert rumi.Header(theirs).shape[0] == 1
            assert theirs[:22] + theirs[23:] == blob[:22] + blob[23:]


def test_we_read_its_files(other, tmp_path):
    """All encodings it writes, tile and cell: its samples, its blob, its file again."""
    cases, jobs = [], []
    for pair in KNOWN:
        for unit in ("tile", "cell"):
            values = oracle.random_samples(pair, (3, 25, 40), seed=7)
            path = tmp_path / f"{pair[0]}-{pair[1]}-{unit}.rumi"
            jobs.append(write_job(path, values, 16, unit, {}))
            cases.append((path, values))
    for answer, (path, values) in zip(other(jobs), cases, strict=True):
        blob = bytes.fromhex(answer["blob"])
        assert bytes(rumi.index(path)) == blob
        for header in (None, blob):
            assert oracle.same_bits(rumi.read(path, header), values)
            found = rumi.read(path, header, bands=[2, 0], window=(7, 15, 13, 25))
            assert oracle.same_bits(found, values[[2, 0], 7:20, 15:40])


@pytest.mark.parametrize("place", PLACES)
def test_we_find_its_files_where_they_lie(other, tmp_path, place):
    values = oracle.ramp(2, 40, 50, np.uint16)
    place = PLACES[place]
    (answer,) = other([write_job(tmp_path / "a.rumi", values, 32, "tile", place)])
    image = rumi.open(tmp_path / "a.rumi")
    assert bytes(image.header).hex() == answer["blob"]
    assert image.epsg == place.get("crs")
    assert image.transform == place.get("transform")
    assert image.raster_type == place.get("raster_type", "area")
    assert oracle.same_bits(image.read(), values)
    # Its file again, from its frames and our index.
    rumi.write(tmp_path / "b.rumi", values, tile_size=32, **place)
    base = image.header.base_frame_offset
    theirs, ours = (
        (tmp_path / name).read_bytes()[base - 160 : base] for name in ("a.rumi", "b.rumi")
    )
    assert theirs == ours


VECTORS = Path(__file__).resolve().parents[1] / "formats" / "vectors"
if not VECTORS.exists():
    # Where no sources lie, the package has them.
    VECTORS = Path(rumi.__file__).parent / "_formats" / "vectors"


def vectors_of(name):
    return json.loads((VECTORS / f"{name}.json").read_text())["vectors"]


# Bytes that it does not look at when it indexes a file.
LAX = re.compile(r"start-reserved|matrix-(zero|one|without)-.*|keys-(location|count)")


def test_it_agrees_with_the_conformance_vectors(other, tmp_path):
    """They are made by neither: it sees in the valid ones what they say, and refuses the others."""
    blobs, files = vectors_of("blobs"), vectors_of("files")
    jobs = [{"do": "header", "blob": blob["hex"]} for blob in blobs]
    for file in files:
        path = tmp_path / f"{file['name']}.rumi"
        path.write_bytes(bytes.fromhex(file["hex"]))
        jobs.append({"do": "index", "source": str(path)})
    agreed = refused = 0
    for vector, answer in zip(blobs + files, other(jobs, refusals=True), strict=True):
        if vector["name"] == "largest-image":
            continue  # It has a limit of its own.
        if vector["verdict"] == "valid":
            derived = vector["derived"]
            assert answer["frames"] == derived["frame_count"], vector["name"]
            for name in ("tiles_across", "tiles_down", "base_frame_offset"):
                assert answer[name] == derived[name], vector["name"]
            agreed += 1
        elif vector.get("check") in ("structure", "values") and not LAX.fullmatch(vector["name"]):
            assert "error" in answer, vector["name"]
            refused += 1
    assert agreed > 80
    assert refused > 100
