"""Files of another implementation: their samples, their blobs, their bytes.

The vectors were written by rumi-eo 0.16.0 and are never written here. Samples of
types that NumPy does not have are stored as their raw bits.
"""

import json
import struct

import numpy as np
import oracle
import pytest

import rumi
from rumi import Header
from rumi._core import Plan
from rumi.container import build_prefix, read_container
from rumi.georef import Georeferencing
from rumi.source import open_source

VECTORS = oracle.golden_vectors()
CORE = oracle.golden_vectors("core")
ALL = pytest.mark.parametrize(
    "golden", VECTORS, ids=[vector["name"] for vector in VECTORS], indirect=True
)
BUILT_IN = pytest.mark.parametrize(
    "golden", CORE, ids=[vector["name"] for vector in CORE], indirect=True
)


class Golden:
    """One vector: file, blob, samples."""

    def __init__(self, vector):
        path = oracle.GOLDEN / vector["name"]
        self.path = path.with_suffix(".rumi")
        self.data = self.path.read_bytes()
        self.blob = path.with_suffix(".blob").read_bytes()
        self.fields, self.counts = oracle.parse(self.blob)
        pair = self.fields["sample_format"], self.fields["bits_per_sample"]
        self.dtype = oracle.DTYPES[pair]
        stored = np.load(path.with_suffix(".npy"))
        self.samples = stored if stored.dtype == self.dtype else stored.view(self.dtype)
        self.vector = vector

    @property
    def georeferencing(self):
        """As our values have it: the transform of corners, of which the file stores centres."""
        transform, point = self.vector["transform"], self.vector["pixel_is_point"]
        assert not point, "the vectors have no PixelIsPoint; shift the transform by half a pixel"
        if transform is None:
            return Georeferencing()
        return Georeferencing(self.vector["epsg"], tuple(transform))


@pytest.fixture
def golden(request):
    return Golden(request.param)


@pytest.fixture
def readable(golden, request):
    """A vector whose frames can be decoded here."""
    if golden.vector["group"] == "geozl":
        request.getfixturevalue("needs_geozl")
    return golden


def test_the_vectors_are_all_there():
    names = {path.name for path in oracle.GOLDEN.iterdir()} - {"vectors.json", "README.md"}
    assert names == {
        vector["name"] + suffix for vector in VECTORS for suffix in (".rumi", ".blob", ".npy")
    }
    assert len(CORE) >= 20
    # What they cover: both units, one frame and many, bands inside and outside the IFD.
    assert {vector["unit"] for vector in VECTORS} == {"tile", "cell"}
    assert {1, 4, 5} <= {vector["shape"][0] for vector in VECTORS}
    assert {1, 2, 3} <= {len(Golden(vector).counts) for vector in VECTORS} | {2}


@ALL
def test_samples(readable):
    golden = readable
    assert golden.samples.shape == tuple(golden.vector["shape"])
    for source in (golden.path, golden.data):
        for header in (None, golden.blob, Header(golden.blob)):
            assert oracle.same_bits(rumi.read(source, header), golden.samples)


@ALL
def test_samples_of_windows(readable):
    golden = readable
    bands, height, width = golden.samples.shape
    rng = np.random.default_rng(0)
    for _ in range(8):
        top, left = int(rng.integers(height)), int(rng.integers(width))
        window = (
            top,
            left,
            int(rng.integers(1, height - top, endpoint=True)),
            int(rng.integers(1, width - left, endpoint=True)),
        )
        chosen = rng.integers(bands, size=rng.integers(1, 4)).tolist()
        found = rumi.read(golden.path, golden.blob, bands=chosen, window=window)
        assert oracle.same_bits(found, oracle.numpy_window(golden.samples, chosen, window))


@BUILT_IN
def test_both_decoders_agree(golden, backend):
    assert oracle.same_bits(rumi.read(golden.path), golden.samples)


@ALL
def test_index_gives_their_blob(golden):
    assert bytes(rumi.index(golden.path)) == golden.blob
    assert bytes(rumi.index(golden.data)) == golden.blob
    assert bytes(rumi.open(golden.path).header) == golden.blob


@ALL
def test_header_parses_their_blob(golden):
    vector = golden.vector
    header = Header(golden.blob)
    assert bytes(header) == golden.blob
    assert len(header) == vector["blob_bytes"]
    assert header.file_size == vector["file_bytes"] == len(golden.data)
    assert header.shape == tuple(vector["shape"])
    assert header.tile_shape == (vector["tile"], vector["tile"])
    assert header.unit == vector["unit"]
    assert header.encoding.dtype_name == vector["dtype"]
    assert header.dtype == golden.dtype
    assert header.byte_counts.tolist() == golden.counts
    base = header.base_frame_offset
    assert golden.data[base : base + 4] == struct.pack("<I", oracle.FRAME_MAGIC)


@ALL
def test_our_offsets_are_those_of_their_index(golden):
    header = Header(golden.blob)
    number = header.frame_count
    where = oracle.value_at(golden.data, 324)
    offsets = struct.unpack_from(f"<{number}Q", golden.data, where)
    assert header.offsets.tolist() == list(offsets)
    assert [header.offset(index) for index in range(number)] == list(offsets)
    found = np.empty((3, number), np.int64)
    Plan(header).fill_frames(*found)
    assert found[1].tolist() == list(offsets)


@ALL
def test_our_writer_fed_with_their_frames_gives_their_file(golden):
    """The index built anew from their shape and frames, byte for byte."""
    offsets = oracle.offsets_of(golden.fields["samples_per_pixel"], golden.counts)
    frames = [
        golden.data[offset : offset + count]
        for offset, count in zip(offsets, golden.counts, strict=True)
    ]
    header = Header.build(
        tuple(golden.vector["shape"]),
        (golden.vector["tile"],) * 2,
        Header(golden.blob).encoding,
        golden.vector["unit"],
        [len(frame) for frame in frames],
    )
    assert bytes(header) == golden.blob
    assert build_prefix(header, golden.georeferencing) + b"".join(frames) == golden.data


@ALL
def test_georeferencing(golden):
    vector = golden.vector
    found = read_container(open_source(golden.path)).georeferencing
    assert found == golden.georeferencing
    image = rumi.open(golden.path, golden.blob)
    assert image.epsg == (vector["epsg"] or None)
    if vector["transform"] is None:
        assert image.transform is None
    else:
        assert image.transform == tuple(vector["transform"])
        raw = struct.unpack_from("<6d", golden.data, oracle.value_at(golden.data, 34264))
        assert (raw[0], raw[3]) == (vector["transform"][0], vector["transform"][2])


@ALL
def test_each_frame_is_one_tile(readable):
    """Frame by frame: where it lies, which window it fills, and nothing else."""
    golden = readable
    header = Header(golden.blob)
    height, width = header.tile_shape
    for index in range(0, header.frame_count, 1 + header.frame_count // 40):
        row, col, band = header.frame_position(index)
        top, left = row * height, col * width
        window = (top, left, min(height, header.shape[1] - top), min(width, header.shape[2] - left))
        offsets, sizes = header.ranges(band, window)
        assert offsets.tolist() == [header.offset(index)]
        assert sizes.tolist() == [golden.counts[index]]
        chosen = None if band is None else [band]
        found = rumi.read(golden.path, header, bands=chosen, window=window)
        assert oracle.same_bits(found, oracle.numpy_window(golden.samples, chosen, window))


@BUILT_IN
def test_writing_their_samples_again(golden, tmp_path):
    """Same samples, our frames: the index differs in nothing but sizes."""
    vector = golden.vector
    path = tmp_path / "a.rumi"
    georeferencing = golden.georeferencing
    header = rumi.write(
        path,
        golden.samples,
        tile_size=vector["tile"],
        frame_unit=vector["unit"],
        crs=georeferencing.epsg,
        transform=georeferencing.transform,
    )
    assert oracle.same_bits(rumi.read(path), golden.samples)
    data = path.read_bytes()
    base = header.base_frame_offset
    assert base == Header(golden.blob).base_frame_offset
    fields, counts = oracle.parse(bytes(header))
    for name in oracle.NAMES[:-2]:
        assert fields[name] == golden.fields[name], name
    sizes = {324, 325}
    for tag in oracle.TAG_NAMES.keys() - sizes:
        at = oracle.entry_at(tag)
        assert data[at : at + 20] == golden.data[at : at + 20], tag
    assert data[base - 160 : base] == golden.data[base - 160 : base]
    assert len(counts) == len(golden.counts)


def test_the_list_of_vectors_says_what_they_are():
    text = (oracle.GOLDEN / "vectors.json").read_text()
    for vector in json.loads(text):
        assert vector.keys() == {
            *("name", "group", "shape", "dtype", "tile", "unit", "epsg", "transform"),
            *("pixel_is_point", "file_bytes", "blob_bytes"),
        }
