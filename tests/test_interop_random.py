"""Live, against rumi-eo 0.16.0, on files and damage that nobody chose (see peer.py).

Where the two disagree the specification's text decides; `DISAGREEMENTS` says how.
"""

import itertools
import struct
from pathlib import Path

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peer import KNOWN, PLACES, check_read, read_job, write_job

import rumi

CODES = [32718, 32633, 3857, 2193, 27700, 4326, 7844, 6318, 4258]


@st.composite
def places(draw):
    """Any georeferencing that both can write."""
    raster_type = draw(st.sampled_from(["area", "point"]))
    if draw(st.booleans()):
        return {"raster_type": raster_type}
    numbers = st.floats(-1e6, 1e6, width=32).filter(lambda x: x == 0 or abs(x) > 1e-6)
    transform = st.tuples(*[numbers] * 6).filter(lambda t: t[0] * t[4] != t[1] * t[3])
    return {
        "crs": draw(st.sampled_from(CODES)),
        "transform": draw(transform),
        "raster_type": raster_type,
    }


@st.composite
def images(draw):
    """Samples of any encoding and shape, a square tile, a frame unit, a place."""
    pair = draw(st.sampled_from(KNOWN))
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 70), st.integers(1, 70)))
    values = oracle.random_samples(pair, shape, seed=draw(st.integers(0, 9)))
    if draw(st.booleans()):
        # Frames of equal sizes, which take no bits in the blob.
        values = np.full_like(values, values.flat[0])
    tile = draw(st.sampled_from([1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 64, 70, 128, 500]))
    # Many tiny frames say nothing new, and take long.
    tile = max(tile, 4) if values[0].size > 200 else tile
    return values, tile, draw(st.sampled_from(["tile", "cell"])), draw(places())


@st.composite
def windows(draw, shape):
    """Bands as a run and a window as they take them: starts and ends."""
    bounds = []
    for size in shape:
        start = draw(st.integers(0, size - 1))
        bounds.append([start, draw(st.integers(start + 1, size))])
    return bounds


def same_blob(theirs, ours):
    """Equal but for what one band leaves open: we record tile, they what they were told."""
    if theirs == ours:
        return True
    return ours[18:20] == b"\1\0" and theirs[:22] + theirs[23:] == ours[:22] + ours[23:]


@given(images(), st.data())
@settings(max_examples=150)
def test_they_read_and_write_what_we_write(other, tmp_path_factory, image, data):
    """Pixels, windows, index and blob; and from our frames, our file byte for byte."""
    values, tile, unit, place = image
    folder = tmp_path_factory.getbasetemp()
    path, again = folder / "ours.rumi", folder / "again.rumi"
    outs = [folder / f"{number}.raw" for number in range(3)]
    header = rumi.write(path, values, tile_size=tile, frame_unit=unit, codec="zstd", **place)
    blob, content = bytes(header), path.read_bytes()
    edges = [*header.offsets.tolist(), len(content)]
    write = write_job(again, values, tile, unit, place)
    write["frames"] = [content[a:b].hex() for a, b in itertools.pairwise(edges)]
    jobs = [
        read_job(path, outs[0]),
        read_job(path, outs[1], blob),
        {"do": "describe", "source": str(path), "blob": blob.hex()},
        write,
    ]
    if header.bits_per_sample >= 8:
        (b0, b1), (y0, y1), (x0, x1) = data.draw(windows(values.shape))
        jobs.append(read_job(path, outs[2], blob, b=[b0, b1], y=[y0, y1], x=[x0, x1]))
    answers = other(jobs)
    check_read(answers[0], outs[0], values)
    check_read(answers[1], outs[1], values)
    assert answers[2]["file"] == answers[2]["blob"]
    assert answers[2]["file"]["base_frame_offset"] == header.base_frame_offset
    assert again.read_bytes() == content
    assert same_blob(bytes.fromhex(answers[3]["blob"]), blob)
    if len(jobs) == 5:
        check_read(answers[4], outs[2], values[b0:b1, y0:y1, x0:x1])


@given(images(), st.data())
@settings(max_examples=150)
def test_we_read_what_they_write(other, tmp_path_factory, image, data):
    """Pixels, windows, index, blob and place; and the whole of it passes `validate`."""
    values, tile, unit, place = image
    path = tmp_path_factory.getbasetemp() / "theirs.rumi"
    (answer,) = other([write_job(path, values, tile, unit, place)])
    blob = bytes.fromhex(answer["blob"])
    opened = rumi.open(path)
    assert same_blob(blob, bytes(opened.header))
    (b0, b1), (y0, y1), (x0, x1) = data.draw(windows(values.shape))
    for header in (None, blob):
        assert oracle.same_bits(rumi.read(path, header), values)
        found = rumi.read(path, header, bands=slice(b0, b1), window=(y0, x0, y1 - y0, x1 - x0))
        assert oracle.same_bits(found, values[b0:b1, y0:y1, x0:x1])
    assert opened.epsg == place.get("crs")
    assert opened.raster_type == place["raster_type"]
    if "transform" in place:
        # A point's half pixel goes there and back, which costs the last bit of an origin.
        assert opened.transform == pytest.approx(place["transform"], rel=1e-12, abs=1e-9)
        assert place["raster_type"] == "point" or opened.transform == place["transform"]
    report = rumi.validate(path, blob)
    assert report.ok, report


# --- Refusals

VALUES = oracle.ramp(3, 25, 40, np.uint16)


def written(unit, place):
    data, blob = oracle.write(VALUES, (16, 16), 0 if unit == "tile" else 1)
    if place == "none":
        return data, blob
    base = rumi.Header(blob).base_frame_offset
    matrix = (10.0, 0.0, 0.0, 300000.0, 0.0, -10.0, 0.0, 8500000.0, *[0.0] * 7, 1.0)
    keys = (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32718)
    return oracle.replaced(data, base - 160, struct.pack("<16d16H", *matrix, *keys)), blob


FILES = {
    (unit, place): written(unit, place) for unit in ("tile", "cell") for place in ("none", "utm")
}


def georeferencing(data):
    """Where the matrix starts; the 32 bytes of the keys follow it."""
    return struct.unpack_from("<Q", data, oracle.entry_at(34264) + 12)[0]


def outside_six(data):
    """Bytes of the matrix other than its six coefficients."""
    start = georeferencing(data)
    return {start + 8 * i + byte for i in (2, 6, *range(8, 16)) for byte in range(8)}


def without_crs(data):
    """Bytes of a matrix that stands beside model type 0."""
    start = georeferencing(data)
    (model,) = struct.unpack_from("<H", data, start + 128 + 14)
    return set() if model else set(range(start, start + 128))


# What differs, who is right, and why. A name, the bytes of the file that it is about,
# which of the two refuses, and the sentence of the specification.
DISAGREEMENTS = {
    "the reserved word of the BigTIFF header": (
        lambda data: {6, 7},
        "ours",
        # A BigTIFF header has 0 there. They do not look.
        "the file is BigTIFF",
    ),
    "elements of the matrix that are fixed": (
        outside_six,
        "ours",
        # They read the six coefficients only.
        "Given affine coefficients (x_res, row_rot, x_origin, col_rot, y_res, y_origin), the "
        "matrix is",
    ),
    "the matrix of a file without CRS": (
        without_crs,
        "ours",
        # All sixteen elements are fixed there. They do not read it.
        "ModelTransformationTag uses the following matrix.",
    ),
    "location and count of a key": (
        lambda data: {
            georeferencing(data) + 128 + 8 * key + byte for key in (1, 2, 3) for byte in range(2, 6)
        },
        "ours",
        # A key whose value stands in another tag, or that has none, is none of the three.
        "The directory is always 16 shorts, consisting of a four-short header followed by three "
        "four-short keys.",
    ),
    "MinorRevision 1 of the directory": (
        lambda data: {georeferencing(data) + 132, georeferencing(data) + 133},
        "theirs",
        # The text gives no value for the header; 1 is that of GeoTIFF 1.1, whose keys mean
        # the same. We write 0.
        "The directory is always 16 shorts, consisting of a four-short header followed by three "
        "four-short keys.",
    ),
    "a code that the registry does not have, or has as another kind": (
        lambda data: set(range(georeferencing(data) + 142, georeferencing(data) + 160)),
        "theirs",
        # They ask a registry at reading. It is `rumi.validate` that does so here.
        "A reader obtains the type directly from GTModelTypeGeoKey.",
    ),
}


def explained(data, changed, refuses):
    """Whether one of the disagreements is about the bytes that were changed."""
    return any(
        who == refuses and places(data) & set(changed) for places, who, _ in DISAGREEMENTS.values()
    )


def test_disagreements_quote_the_specification():
    text = Path(__file__).parents[2] / "shared" / "spec" / "rumi-0.1.0.txt"
    if not text.exists():
        pytest.skip("the specification's text is not beside the checkout")
    for _, who, sentence in DISAGREEMENTS.values():
        assert who in ("ours", "theirs")
        assert sentence in text.read_text()


def changes(size):
    """A few bytes here and there: small numbers, single bits, or anything."""
    value = st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 2, 255]))
    return st.dictionaries(st.integers(0, size - 1), value, min_size=1, max_size=3)


@given(st.sampled_from(list(FILES)), st.data())
@settings(max_examples=120)
def test_both_refuse_the_same_blobs(other, name, data):
    """No disagreement is known. 20 blobs at a time."""
    _, blob = FILES[name]
    blobs = []
    for _ in range(20):
        broken = bytearray(blob)
        for position, value in data.draw(changes(len(blob))).items():
            broken[position] = value
        cut = data.draw(st.sampled_from([0, 0, 0, 0, 1, 5, len(blob) - 28]))
        blobs.append(bytes(broken[: len(broken) - cut]) + data.draw(st.sampled_from([b"", b"\0"])))
    answers = other([{"do": "header", "blob": b.hex()} for b in blobs], refusals=True)
    for broken, answer in zip(blobs, answers, strict=True):
        found, error = oracle.attempt(rumi.RumiError, rumi.Header, broken)
        assert (error is not None) == ("error" in answer), (broken.hex(), error, answer)
        if error is None:
            assert answer["shape"] == list(found.shape)
            assert answer["frames"] == found.frame_count
            assert answer["base_frame_offset"] == found.base_frame_offset


@given(st.sampled_from(list(FILES)), st.data())
@settings(max_examples=80)
def test_both_refuse_the_same_files(other, tmp_path_factory, name, data):
    """Or the disagreement is a known one. 20 files at a time."""
    content, blob = FILES[name]
    base = rumi.Header(blob).base_frame_offset
    folder = tmp_path_factory.getbasetemp()
    files, jobs = [], []
    for number in range(20):
        broken = bytearray(content)
        changed = data.draw(changes(base))
        for position, value in changed.items():
            broken[position] = value
        changed = [p for p in changed if broken[p] != content[p]]
        length = data.draw(st.sampled_from([0, 0, 0, 0, 1, -1, base, len(content) // 2]))
        broken = bytes(broken) + b"\0" * -length if length < 1 else bytes(broken[:-length])
        path = folder / f"broken-{number}.rumi"
        path.write_bytes(broken)
        files.append((broken, changed))
        jobs.append({"do": "index", "source": str(path)})
    answers = other(jobs, refusals=True)
    accepted = []
    for (broken, changed), answer in zip(files, answers, strict=True):
        found, error = oracle.attempt(rumi.RumiError, rumi.index, broken)
        if (error is not None) != ("error" in answer):
            refuses = "theirs" if error is None else "ours"
            assert explained(content, changed, refuses), (name, changed, error, answer)
        elif error is None:
            accepted.append((bytes(found), answer))
    described = other([{"do": "header", "blob": b.hex()} for b, _ in accepted])
    assert described == [answer for _, answer in accepted]


# What a writer refuses, of georeferencing.
REFUSED = {
    "a code below the range": {"crs": 1023},
    "a code above the range": {"crs": 32767},
    "a code far above the range": {"crs": 99999},
    "a code that the registry does not have": {"crs": 32462},
    "geocentric": {"crs": 4978},
    "vertical": {"crs": 5703},
    "compound": {"crs": 6349},
}
# What only we refuse.
REFUSED_BY_US = {
    # "The model space of a raster is flat" (ModelTransformationTag), and the text takes
    # no vertical CRS; of a third axis nothing could be stored. They take it for 2-D.
    "geographic of three dimensions": {"crs": 4979},
    # Coefficients of an affine transform are numbers. They store what they are given.
    "not a number": {"crs": 32718, "transform": (10.0, 0.0, float("nan"), 0.0, -10.0, 0.0)},
    "infinite": {"crs": 32718, "transform": (10.0, 0.0, float("inf"), 0.0, -10.0, 0.0)},
}


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_BY_US])
def test_both_refuse_to_write(other, tmp_path, name):
    place = {**PLACES["projected"], **{**REFUSED, **REFUSED_BY_US}[name]}
    ours, theirs = tmp_path / "ours.rumi", tmp_path / "theirs.rumi"
    with pytest.raises((ValueError, rumi.RumiError)):
        rumi.write(ours, VALUES, tile_size=16, **place)
    assert not ours.exists()
    (answer,) = other([write_job(theirs, VALUES, 16, "tile", place)], refusals=True)
    assert ("error" in answer) == (name in REFUSED)
    if name in REFUSED_BY_US:
        # And what they then write, we do not take for compliant.
        assert not rumi.validate(theirs).ok
