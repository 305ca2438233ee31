"""Writing: every encoding and layout bit for bit, every limit first, whole files or none."""

import errno
import json
import os
import signal
import stat
import struct
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openzl import ext as openzl

import rumi
from rumi import CodecError, UnsupportedError, codec
from rumi.container import read_container
from rumi.georef import Georeferencing
from rumi.source import open_source

UNITS = pytest.mark.parametrize("unit", ["tile", "cell"])
PAIRS = pytest.mark.parametrize("pair", oracle.DTYPES, ids=oracle.PAIR_IDS)


def decoded(frame):
    """The only output of a frame, as the OpenZL binding alone sees it."""
    (output,) = openzl.DCtx().decompress(frame)
    return output


def frames_in(data, header):
    """Cut a file into frames at the blob's offsets."""
    _, counts = oracle.parse(bytes(header))
    offsets = oracle.offsets_of(header.samples_per_pixel, counts)
    return [data[start : start + size] for start, size in zip(offsets, counts, strict=True)]


def check(path, values, header, tile, unit):
    """Everything that has to hold for a file that was written from `values`."""
    data = Path(path).read_bytes()
    # The blob: returned, rebuilt, and packed by the oracle from the frames of the file.
    assert type(header) is rumi.Header
    assert rumi.index(path) == header
    code = 0 if values.shape[0] == 1 else ("tile", "cell").index(unit)
    pair = oracle.pair_of(values.dtype.newbyteorder("="))
    fields = oracle.fields_of(values.shape, tile, pair, code)
    frames = frames_in(data, header)
    assert bytes(header) == oracle.blob_with(fields, [len(frame) for frame in frames])
    # The file: the canonical index, then the frames and nothing else.
    prefix = oracle.lay_out(oracle.tags_of(fields, [len(frame) for frame in frames]))
    assert data == prefix + b"".join(frames)
    # Each frame: one version, one Numeric output, the samples of its own place, cut.
    width = min(8, values.dtype.itemsize)
    for frame, samples in zip(frames, oracle.cut(values, tile, code), strict=True):
        assert struct.unpack_from("<I", frame)[0] == oracle.FRAME_MAGIC
        assert openzl.FrameInfo(frame).num_outputs == 1
        output = decoded(frame)
        assert (output.type, output.elt_width) == (openzl.Type.Numeric, width)
        assert output.content.as_nparray().tobytes() == oracle.raw(samples)
    # What comes back.
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    assert oracle.same_bits(rumi.read(path), native)
    assert oracle.same_bits(rumi.read(path, header), native)


# --- Round trips


@PAIRS
@UNITS
@pytest.mark.parametrize("tile", [(16, 16), (7, 19), (64, 8)], ids=str)
def test_every_encoding(tmp_path, pair, unit, tile):
    values = oracle.random_samples(pair, (3, 25, 40), seed=tile[0])
    header = rumi.write(tmp_path / "a.rumi", values, tile_size=tile, frame_unit=unit)
    check(tmp_path / "a.rumi", values, header, tile, unit)
    assert rumi.read(tmp_path / "a.rumi").dtype == oracle.DTYPES[pair]
    assert (header.sample_format, header.bits_per_sample) == pair


@pytest.mark.parametrize(
    "pair",
    [pair for pair in oracle.DTYPES if pair[1] <= 16],
    ids=lambda pair: f"{pair[0]}-{pair[1]}",
)
def test_every_pattern(tmp_path, pair):
    """All there are: NaN payloads, negative zeros, subnormals, and what has no name."""
    kind = np.uint8 if pair[1] <= 8 else np.uint16
    values = np.arange(2 ** pair[1], dtype=kind).view(oracle.DTYPES[pair])
    side = 2 ** (pair[1] // 2)
    values = values.reshape(1, side, -1)
    for choice in ("auto", "store", "delta>zigzag>lanes>fse"):
        header = rumi.write(tmp_path / "a.rumi", values, tile_size=(side, 64), codec=choice)
        check(tmp_path / "a.rumi", values, header, (side, 64), "tile")


SPECIAL = {
    np.float16: [0x7E01, 0xFD23, 0x7C01, 0x0001, 0x83FF, 0x8000, 0x0000, 0x7C00, 0xFC00, 0x3C00],
    np.float32: [
        *(0x7FC00001, 0xFFC12345, 0x7F800001, 0x00000001, 0x807FFFFF, 0x80000000),
        *(0x00000000, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x3F800000, 0x7F7FFFFF),
    ],
    np.float64: [
        *(0x7FF8000000000001, 0xFFF8000012345678, 0x7FF0000000000001, 0x0000000000000001),
        *(0x800FFFFFFFFFFFFF, 0x8000000000000000, 0, 0x7FF0000000000000, 0xFFFFFFFFFFFFFFFF),
    ],
}


@UNITS
@pytest.mark.parametrize("dtype", SPECIAL)
@pytest.mark.parametrize("order", ["<", ">"])
def test_nan_payloads_and_subnormals(tmp_path, dtype, order, unit):
    """C09: signalling NaNs too, mixed with ordinary values."""
    bits = np.array(SPECIAL[dtype], dtype=f"u{np.dtype(dtype).itemsize}")
    mixed = (oracle.ramp(2, 30, 33) % 1999).astype(dtype)
    numbers = mixed.view(bits.dtype)
    numbers.reshape(-1)[::7] = np.resize(bits, numbers.reshape(-1)[::7].shape)
    for values in (mixed, bits.view(dtype)[None, None].repeat(2, axis=0)):
        given_values = values.astype(values.dtype.newbyteorder(order))
        assert oracle.raw(given_values) == oracle.raw(values)
        header = rumi.write(tmp_path / "a.rumi", given_values, tile_size=16, frame_unit=unit)
        check(tmp_path / "a.rumi", values, header, (16, 16), unit)


@UNITS
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_negative_zero_is_no_empty_tile(tmp_path, dtype, unit):
    """C08: all -0.0, all +0.0, a checkerboard; the sign is kept."""
    values = np.zeros((3, 32, 48), dtype)
    values[0] = -0.0
    values[2, ::2, ::2] = -0.0
    values[2, 1::2, 1::2] = -0.0
    header = rumi.write(tmp_path / "a.rumi", values, tile_size=16, frame_unit=unit)
    check(tmp_path / "a.rumi", values, header, (16, 16), unit)
    assert np.array_equal(np.signbit(rumi.read(tmp_path / "a.rumi")), np.signbit(values))


@UNITS
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_signs_of_complex_zeros(tmp_path, dtype, unit):
    values = np.zeros((2, 20, 20), dtype)
    values[0, ::2] = complex(0.0, -0.0)
    values[1, ::3] = complex(-0.0, 0.0)
    values[1, 1::3] = complex(-0.0, -0.0)
    for order in "<>":
        header = rumi.write(
            tmp_path / "a.rumi",
            values.astype(values.dtype.newbyteorder(order)),
            tile_size=16,
            frame_unit=unit,
        )
        check(tmp_path / "a.rumi", values, header, (16, 16), unit)
        found = rumi.read(tmp_path / "a.rumi")
        for part in ("real", "imag"):
            assert np.array_equal(
                np.signbit(getattr(found, part)), np.signbit(getattr(values, part))
            )


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [
        (np.uint64, [2**64 - 1, 2**60, 2**60 + 1, 2**53 + 1, 0, 1]),
        (np.int64, [2**63 - 1, -(2**63), -(2**63) + 1, 2**53 + 1, -1, 0]),
        (np.int8, [-128, -1, 0, 127]),
        (np.int16, [-32768, 32767, -1, 0]),
        (np.int32, [-(2**31), 2**31 - 1, -1, 0]),
    ],
)
def test_extremes_of_integers(tmp_path, dtype, numbers):
    values = np.resize(np.array(numbers, dtype), (2, 17, 23))
    header = rumi.write(tmp_path / "a.rumi", values, tile_size=16)
    check(tmp_path / "a.rumi", values, header, (16, 16), "tile")


@pytest.mark.parametrize("component", ["i2", "i4", "f2"])
def test_complex_components(tmp_path, component):
    """C12: (real, imag) are two fields, in this order, never promoted."""
    dtype = np.dtype([("real", component), ("imag", component)])
    low, high = (-32768, 32767) if component == "i2" else (-1000, 1000)
    values = np.zeros((2, 9, 13), dtype)
    values["real"] = np.resize([low, 0, 1, 5], values.shape)
    values["imag"] = np.resize([high, -1, 0], values.shape)
    header = rumi.write(tmp_path / "a.rumi", values, tile_size=8)
    check(tmp_path / "a.rumi", values, header, (8, 8), "tile")
    found = rumi.read(tmp_path / "a.rumi", bands=1, window=(2, 3, 5, 7))
    assert found.dtype == dtype
    assert np.array_equal(found["imag"], values["imag"][1:, 2:7, 3:10])
    swapped = values.astype(dtype.newbyteorder(">"))
    rumi.write(tmp_path / "b.rumi", swapped, tile_size=8)
    assert (tmp_path / "a.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()


@pytest.mark.parametrize("width", [7, 13, 16])
@pytest.mark.parametrize("pair", [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4)], ids=str)
def test_samples_below_a_byte(tmp_path, pair, width):
    """C13: rows that end inside a byte keep their last columns."""
    values = np.zeros((1, 5, width), np.uint8)
    for row in range(5):
        for col in range(width):
            values[0, row, col] = ((row * 7 + col * 3) % 5 == 0) * ((1 << pair[1]) - 1)
    values = values.view(oracle.DTYPES[pair])
    for tile in (13, 16, 5):
        header = rumi.write(tmp_path / "a.rumi", values, tile_size=tile)
        check(tmp_path / "a.rumi", values, header, (tile, tile), "tile")


def test_bits_above_the_width_of_a_sample_are_not_written(tmp_path):
    """NumPy's view of such a byte has the value of its low bits; that is what the file has."""
    clean = np.arange(16, dtype=np.uint8).reshape(1, 4, 4)
    for dtype in (ml_dtypes.uint4, ml_dtypes.int4, ml_dtypes.float4_e2m1fn):
        rumi.write(tmp_path / "a.rumi", clean.view(dtype))
        rumi.write(tmp_path / "b.rumi", (clean | 0xF0).view(dtype))
        assert (tmp_path / "a.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()
        assert rumi.read(tmp_path / "b.rumi").view(np.uint8).max() == 15
    # Any byte but 0 is true.
    truth = (clean * 17).view(bool)
    rumi.write(tmp_path / "c.rumi", truth)
    assert rumi.read(tmp_path / "c.rumi").view(np.uint8).reshape(-1).tolist() == [0] + [1] * 15


def test_the_samples_of_signed_small_integers(tmp_path):
    values = np.array([-8, -1, 0, 7, 3], ml_dtypes.int4).reshape(1, 1, 5)
    rumi.write(tmp_path / "a.rumi", values)
    assert rumi.read(tmp_path / "a.rumi").astype(int).reshape(-1).tolist() == [-8, -1, 0, 7, 3]


# --- Shapes


@UNITS
@pytest.mark.parametrize(
    ("shape", "tile", "frames"),
    [
        ((3, 513, 1025), (512, 512), (18, 6)),
        ((1, 1, 1), (512, 512), (1, 1)),
        ((2, 1, 1), (65535, 65535), (2, 1)),
        ((1, 5, 7), (16, 16), (1, 1)),
        ((2, 5, 700), (16, 700), (2, 1)),
        ((1, 1, 300), (64, 64), (5, 5)),
        ((1, 300, 1), (64, 64), (5, 5)),
        ((4, 33, 17), (16, 16), (24, 6)),
        ((2, 9, 9), (1, 1), (162, 81)),
        ((2, 9, 9), (1, 9), (18, 9)),
        ((5, 32, 48), (32, 48), (5, 1)),
        ((3, 17, 17), (16, 5), (24, 8)),
    ],
    ids=str,
)
def test_edge_tiles_are_cut(tmp_path, shape, tile, frames, unit):
    """C01: the last frame holds what is left, and no more."""
    values = oracle.ramp(*shape)
    header = rumi.write(
        tmp_path / "a.rumi", values, tile_size=tile, frame_unit=unit, codec="lanes>zstd"
    )
    assert header.frame_count == (frames[0] if unit == "tile" else frames[1])
    assert header.shape == shape
    assert header.tile_shape == tile
    check(tmp_path / "a.rumi", values, header, tile, unit)


def test_the_last_frame_of_c01_is_one_sample(tmp_path):
    path = tmp_path / "a.rumi"
    header = rumi.write(path, oracle.ramp(3, 513, 1025))
    assert header.tile_shape == (512, 512)
    last = decoded(frames_in(path.read_bytes(), header)[-1])
    assert last.num_elts == 1
    assert last.content.as_nparray().tolist() == [2_000_000 + 512_000 + 1024]


@st.composite
def images(draw):
    pair = draw(st.sampled_from(list(oracle.DTYPES)))
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 30), st.integers(1, 30)))
    tile = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    return oracle.random_samples(pair, shape, draw(st.integers(0, 9))), tile


@given(images(), st.sampled_from(["tile", "cell"]), st.data())
@settings(max_examples=120)
def test_windows_and_bands_of_any_image(tmp_path_factory, image, unit, data):
    """The oracle is NumPy's slicing; bands repeat and come in any order."""
    values, tile = image
    path = tmp_path_factory.getbasetemp() / "hypothesis.rumi"
    header = rumi.write(path, values, tile_size=tile, frame_unit=unit, codec="zstd")
    check(path, values, header, tile, unit)
    bands, height, width = values.shape
    for _ in range(3):
        top = data.draw(st.integers(0, height - 1))
        left = data.draw(st.integers(0, width - 1))
        window = (
            top,
            left,
            data.draw(st.integers(1, height - top)),
            data.draw(st.integers(1, width - left)),
        )
        chosen = data.draw(st.lists(st.integers(0, bands - 1), min_size=1, max_size=5))
        found = rumi.read(path, header, bands=chosen, window=window)
        assert oracle.same_bits(found, oracle.numpy_window(values, chosen, window))


@pytest.mark.parametrize("unit", ["tile", "cell"])
def test_as_many_bands_as_there_may_be(tmp_path, unit):
    values = np.arange(65535, dtype=np.uint16).reshape(-1, 1, 1)
    header = rumi.write(
        tmp_path / "a.rumi", values, frame_unit=unit, codec="store", tile_size=1, verify=False
    )
    assert header.shape == (65535, 1, 1)
    assert header.base_frame_offset == oracle.base_offset(65535, 65535 if unit == "tile" else 1)
    assert rumi.index(tmp_path / "a.rumi") == header
    assert rumi.read(tmp_path / "a.rumi", header, bands=[65534, 0, 40000]).tolist() == [
        [[65534]],
        [[0]],
        [[40000]],
    ]


# --- Layouts (C04)


def layouts():
    base = oracle.ramp(4, 33, 47)
    swapped = base.astype(">i4")
    fixed = base.copy()
    fixed.flags.writeable = False
    padded = np.zeros((4, 40, 60), np.int32)
    padded[:, 3:36, 5:52] = base
    unaligned = np.zeros(base.nbytes + 1, np.uint8)[1:].view(np.int32).reshape(base.shape)
    unaligned[:] = base
    return {
        "channels last": (np.ascontiguousarray(np.moveaxis(base, 0, 2)).transpose(2, 0, 1), base),
        "reversed": (base[:, ::-1, ::-1], None),
        "reversed bands": (base[::-1], None),
        "steps": (base[:, ::2, ::3], None),
        "negative steps": (base[::-2, ::-3, ::-1], None),
        "Fortran": (np.asfortranarray(base), base),
        "broadcast": (np.broadcast_to(base[:1], base.shape), None),
        "broadcast rows": (np.broadcast_to(base[:, :1], base.shape), None),
        "one value": (np.broadcast_to(np.int32(7), base.shape), None),
        "big-endian": (swapped, base),
        "big-endian steps": (swapped[:, ::2, ::-1], base[:, ::2, ::-1]),
        "read-only": (fixed, base),
        "part of an array": (padded[:, 3:36, 5:52], base),
        "unaligned": (unaligned, base),
        "lists": (base.tolist(), base.astype(np.int64)),
        "subclass": (base.view(type("Sub", (np.ndarray,), {})), base),
        "memoryview": (memoryview(base), base),
    }


@UNITS
@pytest.mark.parametrize("name", layouts())
def test_any_layout_gives_the_same_file(tmp_path, name, unit):
    values, plain = layouts()[name]
    if plain is None:
        plain = np.ascontiguousarray(values)
    before = np.array(values)
    options = {"tile_size": 16, "frame_unit": unit}
    header = rumi.write(tmp_path / "a.rumi", values, **options)
    assert header == rumi.write(tmp_path / "b.rumi", np.array(plain, order="C"), **options)
    assert (tmp_path / "a.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()
    assert np.array_equal(before, np.asarray(values))
    found = rumi.read(tmp_path / "a.rumi")
    assert found.dtype.isnative
    assert oracle.same_bits(found, plain)


@PAIRS
def test_any_byte_order_gives_the_same_file(tmp_path, pair):
    values = oracle.random_samples(pair, (2, 20, 30))
    rumi.write(tmp_path / "a.rumi", values, tile_size=16)
    for order in "<>":
        other = values.astype(values.dtype.newbyteorder(order))
        rumi.write(tmp_path / "b.rumi", other, tile_size=16)
        assert (tmp_path / "a.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()
        rumi.write(tmp_path / "c.rumi", np.asfortranarray(other)[:, ::-1, ::-1], tile_size=16)
        rumi.write(tmp_path / "d.rumi", values[:, ::-1, ::-1].copy(), tile_size=16)
        assert (tmp_path / "c.rumi").read_bytes() == (tmp_path / "d.rumi").read_bytes()


def test_two_dimensions_are_one_band(tmp_path):
    values = oracle.ramp(1, 20, 30)
    for given_values in (values, values[0], values[0].T.copy().T, values[0].tolist()):
        header = rumi.write(
            tmp_path / "a.rumi", np.asarray(given_values, np.int32), tile_size=16, frame_unit="cell"
        )
        assert header.shape == (1, 20, 30)
        # One band: both units are one layout, recorded as tile.
        assert header.unit == "tile"
        check(tmp_path / "a.rumi", values, header, (16, 16), "tile")


@pytest.mark.parametrize("order", "<>")
def test_every_float_of_other_byte_order(tmp_path, order):
    for code in ("f4", "c8", "c16", "f8", "f2"):
        values = (oracle.ramp(2, 9, 11) % 999 / 7).astype(order + code)
        rumi.write(tmp_path / "a.rumi", values, tile_size=8)
        assert oracle.same_bits(
            rumi.read(tmp_path / "a.rumi"), values.astype(values.dtype.newbyteorder("="))
        )


# --- The same bytes


@UNITS
def test_writing_twice_gives_the_same_file(tmp_path, unit):
    values = oracle.ramp(3, 100, 130, np.uint16)
    files = set()
    for number, threads in enumerate((None, 1, 2, 4, None)):
        path = tmp_path / f"{number}.rumi"
        rumi.write(path, values, tile_size=32, frame_unit=unit, threads=threads)
        files.add(path.read_bytes())
    assert len(files) == 1


def test_another_process_writes_the_same_file(tmp_path):
    values = oracle.ramp(3, 100, 130, np.float32)
    rumi.write(tmp_path / "a.rumi", values, tile_size=32)
    oracle.run_python(
        "import sys, numpy, oracle, rumi\n"
        "rumi.write(sys.argv[1], oracle.ramp(3, 100, 130, numpy.float32), tile_size=32)",
        tmp_path / "b.rumi",
    )
    assert (tmp_path / "a.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()


def test_verify_changes_nothing_in_the_file(tmp_path):
    values = oracle.ramp(2, 40, 40)
    rumi.write(tmp_path / "a.rumi", values, tile_size=16, verify=True)
    rumi.write(tmp_path / "b.rumi", values, tile_size=16, verify=False)
    assert (tmp_path / "a.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()


# --- Georeferencing


@pytest.mark.parametrize("raster_type", ["area", "point"])
def test_georeferencing_is_written(tmp_path, raster_type):
    values = oracle.ramp(2, 20, 30)
    transform = (10.0, 0.5, 300000.0, 0.25, -10.0, 8500000.0)
    path = tmp_path / "a.rumi"
    header = rumi.write(
        path, values, tile_size=16, crs=32718, transform=transform, raster_type=raster_type
    )
    found = read_container(open_source(path))
    assert found.header == header
    assert found.georeferencing == Georeferencing(32718, transform, raster_type)
    keys = struct.unpack_from("<16H", path.read_bytes(), header.base_frame_offset - 32)
    assert keys == (
        *(1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1 if raster_type == "area" else 2),
        *(3072, 0, 1, 32718),
    )
    # Georeferencing changes contents, never sizes.
    bare = rumi.write(tmp_path / "b.rumi", values, tile_size=16, raster_type=raster_type)
    assert bare == header
    keys = struct.unpack_from(
        "<16H", (tmp_path / "b.rumi").read_bytes(), bare.base_frame_offset - 32
    )
    assert (keys[7], keys[11], keys[12], keys[15]) == (0, keys[11], 2048, 0)
    assert keys[11] == (1 if raster_type == "area" else 2)


def test_a_geographic_crs_is_looked_up(tmp_path):
    """Its code says nothing about its kind: 7844 is geographic, 3857 and 2193 are projected."""
    for code, key in ((4326, 2048), (7844, 2048), (8252, 2048), (3857, 3072), (2193, 3072)):
        header = rumi.write(
            tmp_path / "a.rumi", np.zeros((4, 4)), crs=code, transform=(1, 0, 0, 0, -1, 0)
        )
        data = (tmp_path / "a.rumi").read_bytes()
        keys = struct.unpack_from("<16H", data, header.base_frame_offset - 32)
        assert (keys[7], keys[12], keys[15]) == (2 if key == 2048 else 1, key, code)


# --- Codecs

CHAINS = [
    "",
    "delta>",
    "zigzag>",
    "delta>zigzag>",
    "range>",
    "tokenize>",
    "lanes>",
    "delta>zigzag>lanes>",
    "range>lanes>",
    "tokenize>lanes>",
    "delta>range>",
]
LEAVES = ["fse", "huffman", "entropy", "zstd", "zstd:1", "zstd:9", "fieldlz", "bitpack", "store"]
LEAVES += ["openzl"]


RECIPES = [
    chain + leaf
    for chain in CHAINS
    for leaf in LEAVES
    # One stream of bytes a lane, and FieldLZ takes numbers: see the test below.
    if not ("lanes" in chain and leaf == "fieldlz")
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_gives_the_samples_back(tmp_path, recipe):
    smooth = oracle.ramp(2, 20, 30)
    for dtype in (np.uint8, np.int16, np.float32, np.uint64, np.complex128):
        noise = oracle.random_samples(oracle.pair_of(np.dtype(dtype)), (2, 20, 30))
        for values in (smooth.astype(dtype), np.zeros((2, 20, 30), dtype), noise):
            path = tmp_path / "a.rumi"
            header = rumi.write(path, values, tile_size=16, codec=recipe)
            assert rumi.index(path) == header
            assert oracle.same_bits(rumi.read(path, header), values)
            for frame in frames_in(path.read_bytes(), header):
                assert struct.unpack_from("<I", frame)[0] == oracle.FRAME_MAGIC


@pytest.mark.parametrize("recipe", ["lanes>fieldlz", "delta>zigzag>lanes>fieldlz"])
def test_a_recipe_that_openzl_cannot_build(tmp_path, recipe):
    """It is a mistake in an argument, said in one line before a file appears, or it works."""
    values = oracle.ramp(1, 20, 30)
    path = tmp_path / "a.rumi"
    _, error = oracle.attempt(ValueError, rumi.write, path, values, tile_size=16, codec=recipe)
    if error is None:
        assert oracle.same_bits(rumi.read(path), values)
    else:
        assert "codec" in str(error)
        assert "\n" not in str(error)
        assert list(tmp_path.iterdir()) == []


def test_a_recipe_is_used():
    """Recipes differ: on this ramp each one is smaller than the one before."""
    values = oracle.ramp(1, 256, 256, np.uint16)
    with tempfile.TemporaryDirectory() as folder:
        sizes = {
            name: rumi.write(Path(folder, "a.rumi"), values, codec=name).file_size
            for name in ("store", "zstd", "delta>zigzag>lanes>fse")
        }
    assert sizes["store"] > values.nbytes
    assert sizes["store"] > 1.5 * sizes["zstd"]
    assert sizes["zstd"] > 1.5 * sizes["delta>zigzag>lanes>fse"]


def test_a_recipe_may_have_spaces_and_capitals(tmp_path):
    values = oracle.ramp(1, 40, 40)
    rumi.write(tmp_path / "a.rumi", values, codec="delta>zigzag>lanes>zstd:9")
    rumi.write(tmp_path / "b.rumi", values, codec=" Delta > ZigZag > lanes > Zstd:9 ")
    assert (tmp_path / "a.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()


def test_auto_is_the_smaller_choice_and_needs_no_geozl(tmp_path, monkeypatch):
    monkeypatch.setenv("RUMI_BACKEND", "openzl")
    for name in ("u16_tile_utm", "f64_geographic", "u8_five_bands", "int32_tile"):
        values = np.load(oracle.GOLDEN / f"{name}.npy")
        auto = rumi.write(tmp_path / "a.rumi", values, tile_size=32)
        stored = rumi.write(tmp_path / "b.rumi", values, tile_size=32, codec="store")
        assert auto.file_size < stored.file_size
        assert oracle.same_bits(rumi.read(tmp_path / "a.rumi", auto), values)


@pytest.mark.parametrize("name", ["auto", "store", "zstd", "lanes>zstd", "bitpack"])
def test_every_byte_of_a_written_frame_counts(tmp_path, name):
    """Frames carry their checksums: no byte can change and samples come back."""
    path = tmp_path / "a.rumi"
    header = rumi.write(path, oracle.ramp(1, 9, 9, np.uint16), codec=name)
    data = path.read_bytes()
    for position in range(header.base_frame_offset, len(data)):
        broken = oracle.replaced(data, position, bytes([data[position] ^ 0x40]))
        with pytest.raises(CodecError, match="frame 0"):
            rumi.read(broken, header)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ">",
        "delta",
        "delta>",
        "zst",
        "lzma",
        "delta>lzma",
        "nothing>zstd",
        "zstd>delta",
        "zstd:0",
        "zstd:23",
        "zstd:",
        "zstd:x",
        "zstd:-1",
        "fse:3",
    ],
)
def test_an_unknown_recipe_is_refused_before_a_file_appears(tmp_path, name):
    with pytest.raises(ValueError, match="codec"):
        rumi.write(tmp_path / "a.rumi", oracle.ramp(1, 4, 4), codec=name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [None, 5, ["zstd"], b"zstd", 1.0])
def test_a_recipe_of_the_wrong_kind(tmp_path, wrong):
    with pytest.raises(TypeError):
        rumi.write(tmp_path / "a.rumi", oracle.ramp(1, 4, 4), codec=wrong)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_compress(tmp_path):
    values = oracle.random_samples((1, 8), (1, 512, 512))
    for name in ("auto", "zstd", "delta>zigzag>fse", "tokenize>fse"):
        header = rumi.write(tmp_path / "a.rumi", values, codec=name)
        assert header.file_size < 1.02 * values.nbytes + 1000
        assert oracle.same_bits(rumi.read(tmp_path / "a.rumi"), values)


# --- Sources other than arrays


def test_a_callable_an_iterator_and_a_lazy_array_give_the_same_file(tmp_path):
    values = oracle.ramp(3, 50, 70, np.uint16)
    tiles = [
        values[:, row : row + 16, col : col + 32]
        for row in range(0, 50, 16)
        for col in range(0, 70, 32)
    ]

    class Lazy:
        shape, dtype = values.shape, values.dtype

        def __getitem__(self, key):
            return values[key]

    def window(place):
        row, col, height, width = place
        return values[:, row : row + height, col : col + width]

    options = {"tile_size": (16, 32), "codec": "lanes>zstd"}
    declared = {"shape": values.shape, "dtype": values.dtype}
    expected = rumi.write(tmp_path / "a.rumi", values, **options)
    data = (tmp_path / "a.rumi").read_bytes()
    for source, more in ((window, declared), (iter(tiles), declared), (Lazy(), {})):
        for unit in ("tile", "cell"):
            if unit == "cell" and more and not callable(source):
                continue
            header = rumi.write(tmp_path / "b.rumi", source, frame_unit=unit, **options, **more)
            assert np.array_equal(rumi.read(tmp_path / "b.rumi"), values)
            if unit == "tile":
                assert header == expected
                assert (tmp_path / "b.rumi").read_bytes() == data


@pytest.mark.parametrize("number", [0, 1, 5, 7])
def test_an_iterator_of_too_few_or_too_many_tiles(tmp_path, number):
    tiles = iter([np.zeros((1, 16, 16), np.uint8)] * number)
    with pytest.raises(ValueError, match="6 tiles"):
        rumi.write(
            tmp_path / "a.rumi",
            tiles,
            shape=(1, 32, 48),
            dtype=np.uint8,
            tile_size=16,
            codec="zstd",
        )
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told(tmp_path):
    calls = []
    rumi.write(
        tmp_path / "a.rumi",
        oracle.ramp(2, 40, 40),
        tile_size=16,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls[-1] == (18, 18)
    assert calls == sorted(set(calls))


# --- What is refused before the first byte


def zeros(*shape):
    """An image of any size that takes no memory."""
    return np.broadcast_to(np.uint8(0), shape)


REFUSED = {
    "0-d": (ValueError, {"array": np.uint8(3)}),
    "1-d": (ValueError, {"array": np.zeros(5)}),
    "4-d": (ValueError, {"array": np.zeros((1, 2, 3, 4))}),
    "no bands": (ValueError, {"array": np.zeros((0, 4, 4))}),
    "no rows": (ValueError, {"array": np.zeros((1, 0, 4))}),
    "no columns": (ValueError, {"array": np.zeros((1, 4, 0))}),
    "nothing": (ValueError, {"array": np.zeros((0, 0))}),
    "too many bands": (ValueError, {"array": zeros(65536, 1, 1)}),
    "too many bands in a cell": (ValueError, {"array": zeros(65536, 1, 1), "frame_unit": "cell"}),
    "too many columns": (ValueError, {"array": zeros(1, 1, 2**32), "tile_size": 65535}),
    "too many rows": (ValueError, {"array": zeros(1, 2**32, 1), "tile_size": 65535}),
    "frame of 4 GiB": (ValueError, {"array": zeros(1, 65536, 65536), "tile_size": 65535}),
    "cell of 4 GiB": (ValueError, {"array": zeros(17000, 512, 512), "frame_unit": "cell"}),
    "wide samples": (
        ValueError,
        {"array": np.broadcast_to(np.complex128(0), (1, 16384, 16384)), "tile_size": 16384},
    ),
    "object": (UnsupportedError, {"array": np.array([[None]])}),
    "strings": (UnsupportedError, {"array": np.array([["a"]])}),
    "bytes": (UnsupportedError, {"array": np.array([[b"a"]])}),
    "dates": (UnsupportedError, {"array": np.zeros((2, 2), "M8[s]")}),
    "longdouble": (UnsupportedError, {"array": np.zeros((2, 2), np.longdouble)}),
    "fields": (UnsupportedError, {"array": np.zeros((2, 2), [("a", "i4")])}),
    "ragged": (ValueError, {"array": [[1, 2], [3]]}),
    "None": ((TypeError, ValueError, UnsupportedError), {"array": None}),
    "masked": (TypeError, {"array": np.ma.masked_equal(np.arange(4).reshape(2, 2), 2)}),
    "masked without a mask": (TypeError, {"array": np.ma.array(np.zeros((2, 2)))}),
    "tile 0": (ValueError, {"tile_size": 0}),
    "tile -1": (ValueError, {"tile_size": -1}),
    "tile 65536": (ValueError, {"tile_size": 65536}),
    "tile height 65536": (ValueError, {"tile_size": (65536, 16)}),
    "tile width 0": (ValueError, {"tile_size": (16, 0)}),
    "tile of one number": (ValueError, {"tile_size": (16,)}),
    "tile of three numbers": (ValueError, {"tile_size": (16, 16, 16)}),
    "tile of True": (TypeError, {"tile_size": True}),
    "tile of 16.0": (TypeError, {"tile_size": 16.0}),
    "tile of a string": (TypeError, {"tile_size": "16"}),
    "tile of None": (TypeError, {"tile_size": None}),
    "unit": (ValueError, {"frame_unit": "band"}),
    "unit of a number": (ValueError, {"frame_unit": 0}),
    "threads 0": (ValueError, {"threads": 0}),
    "threads -1": (ValueError, {"threads": -1}),
    "threads 1.0": (TypeError, {"threads": 1.0}),
    "threads True": (TypeError, {"threads": True}),
    "crs alone": (ValueError, {"crs": 32718}),
    "transform alone": (ValueError, {"transform": (1, 0, 0, 0, -1, 0)}),
    "raster type": (ValueError, {"raster_type": "pixel"}),
    "crs of another kind": (TypeError, {"crs": 4326.0, "transform": (1, 0, 0, 0, -1, 0)}),
    "crs True": (TypeError, {"crs": True, "transform": (1, 0, 0, 0, -1, 0)}),
    "vertical crs": (UnsupportedError, {"crs": 5703, "transform": (1, 0, 0, 0, -1, 0)}),
    "compound crs": (UnsupportedError, {"crs": 6349, "transform": (1, 0, 0, 0, -1, 0)}),
    "geocentric crs": (UnsupportedError, {"crs": 4978, "transform": (1, 0, 0, 0, -1, 0)}),
    "code of no CRS": (UnsupportedError, {"crs": 7030, "transform": (1, 0, 0, 0, -1, 0)}),
    "code 1023": ((ValueError, UnsupportedError), {"crs": 1023, "transform": (1, 0, 0, 0, -1, 0)}),
    "code 32767": (
        (ValueError, UnsupportedError),
        {"crs": 32767, "transform": (1, 0, 0, 0, -1, 0)},
    ),
    "code 99999": (
        (ValueError, UnsupportedError),
        {"crs": 99999, "transform": (1, 0, 0, 0, -1, 0)},
    ),
    "transform of five": (ValueError, {"crs": 32718, "transform": (1, 0, 0, 0, -1)}),
    "transform with NaN": (ValueError, {"crs": 32718, "transform": (1, 0, np.nan, 0, -1, 0)}),
    "error without a lossy codec": (ValueError, {"error": 1}),
    "shape of an array": (ValueError, {"shape": (1, 4, 4)}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_the_first_byte(tmp_path, name):
    """Every limit is checked before a file appears; an old file stays."""
    error, arguments = REFUSED[name]
    arguments = {"array": np.zeros((1, 4, 4), np.uint8)} | arguments
    path = tmp_path / "a.rumi"
    for old in (None, b"what was there"):
        if old is not None:
            path.write_bytes(old)
        with pytest.raises(error) as caught:
            rumi.write(path, **arguments)
        assert "\n" not in str(caught.value)
        assert [entry.name for entry in tmp_path.iterdir()] == ([] if old is None else ["a.rumi"])
        if old is not None:
            assert path.read_bytes() == old


def test_limits_name_what_was_found(tmp_path):
    for arguments, found in (
        ({"array": zeros(65536, 1, 1)}, "65536"),
        ({"array": zeros(1, 4, 4), "tile_size": 65536}, "65536"),
        ({"array": zeros(1, 65536, 65536), "tile_size": 65535}, str(65535 * 65535)),
        ({"array": np.zeros((1, 2, 3, 4))}, "(1, 2, 3, 4)"),
    ):
        with pytest.raises(ValueError) as caught:
            rumi.write(tmp_path / "a.rumi", **arguments)
        assert found in str(caught.value)


def test_the_largest_tile_of_a_small_image_is_allowed(tmp_path):
    header = rumi.write(tmp_path / "a.rumi", np.ones((2, 3, 4)), tile_size=65535)
    assert header.tile_shape == (65535, 65535)
    header = rumi.write(tmp_path / "a.rumi", np.ones((2, 3, 4)), tile_size=np.uint16(7))
    assert header.tile_shape == (7, 7)
    header = rumi.write(tmp_path / "a.rumi", np.ones((2, 3, 4)), tile_size=[3, np.int64(9)])
    assert header.tile_shape == (3, 9)


def test_only_two_arguments_go_without_a_name(tmp_path):
    with pytest.raises(TypeError, match="positional"):
        rumi.write(tmp_path / "a.rumi", np.ones((2, 2)), 512)


# --- Whole files or none (C22)


@pytest.fixture
def old(tmp_path):
    """A good file that a failed write must not touch."""
    path = tmp_path / "a.rumi"
    rumi.write(path, oracle.ramp(1, 20, 20), tile_size=8)
    return path


NEW = oracle.ramp(1, 48, 48)


class Failing:
    """An encoder that fails at the fourth frame."""

    def __init__(self, error, monkeypatch):
        encode = codec.FrameEncoder.encode
        self.calls = 0

        def failing(encoder, samples):
            self.calls += 1
            if self.calls == 4:
                raise error
            return encode(encoder, samples)

        monkeypatch.setattr(codec.FrameEncoder, "encode", failing)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("no"),
        MemoryError(),
        CodecError("no"),
        OSError(errno.ENOSPC, "full"),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("exists", [True, False])
def test_an_encoder_that_fails_at_frame_3(old, monkeypatch, error, exists):
    data = old.read_bytes()
    if not exists:
        old.unlink()
    failing = Failing(error, monkeypatch)
    with pytest.raises(type(error)):
        rumi.write(old, NEW, tile_size=16, codec="zstd", threads=1)
    assert failing.calls == 4
    assert [entry.name for entry in old.parent.iterdir()] == (["a.rumi"] if exists else [])
    if exists:
        assert old.read_bytes() == data
    monkeypatch.undo()
    rumi.write(old, NEW, tile_size=16)
    assert np.array_equal(rumi.read(old), NEW)
    assert [entry.name for entry in old.parent.iterdir()] == ["a.rumi"]


@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyboardInterrupt()], ids=["error", "interrupt"]
)
@pytest.mark.parametrize("kind", ["callable", "iterator", "lazy", "progress"])
def test_a_source_that_fails_half_way(old, error, kind):
    data = old.read_bytes()
    calls = []

    def block(rows, cols):
        calls.append((rows, cols))
        if len(calls) == 3:
            raise error
        return NEW[:, rows, cols]

    def window(place):
        return block(slice(place[0], place[0] + place[2]), slice(place[1], place[1] + place[3]))

    class Lazy:
        shape, dtype = NEW.shape, NEW.dtype

        def __getitem__(self, key):
            # One row of tiles may be asked for at once.
            return np.concatenate(
                [
                    block(key[1], slice(left, min(left + 16, key[2].stop)))
                    for left in range(key[2].start, key[2].stop, 16)
                ],
                axis=2,
            )

    def tiles():
        for top in range(0, 48, 16):
            for left in range(0, 48, 16):
                yield block(slice(top, top + 16), slice(left, left + 16))

    def progress(done, total):
        block(slice(0, 1), slice(0, 1))

    declared = {"shape": NEW.shape, "dtype": NEW.dtype}
    source, more = {
        "callable": (window, declared),
        "iterator": (tiles(), declared),
        "lazy": (Lazy(), {}),
        "progress": (NEW, {"progress": progress}),
    }[kind]
    with pytest.raises(type(error)):
        rumi.write(old, source, tile_size=16, codec="zstd", **more)
    assert len(calls) == 3
    assert [entry.name for entry in old.parent.iterdir()] == ["a.rumi"]
    assert old.read_bytes() == data


def test_a_frame_that_does_not_decode_to_its_samples(old, monkeypatch):
    """Verification reads back what was compressed."""
    data = old.read_bytes()
    encode = codec.FrameEncoder.encode

    def wrong(encoder, samples):
        wrong.calls += 1
        changed = samples.copy()
        if wrong.calls == 6:
            changed.reshape(-1)[-1] ^= 1
        return encode(encoder, changed)

    wrong.calls = 0
    monkeypatch.setattr(codec.FrameEncoder, "encode", wrong)
    with pytest.raises(CodecError, match="frame 5"):
        rumi.write(old, NEW, tile_size=16, codec="zstd", threads=1)
    assert [entry.name for entry in old.parent.iterdir()] == ["a.rumi"]
    assert old.read_bytes() == data


@pytest.mark.parametrize(
    "frame", [b"", b"not a frame", oracle.frame_of(np.zeros(3, np.int32))[:-1]], ids=len
)
def test_a_frame_that_does_not_decode_at_all(old, monkeypatch, frame):
    data = old.read_bytes()
    monkeypatch.setattr(codec.FrameEncoder, "encode", lambda *_: frame)
    with pytest.raises(CodecError, match="frame 0"):
        rumi.write(old, NEW, tile_size=16, codec="zstd", threads=1)
    assert old.read_bytes() == data
    assert [entry.name for entry in old.parent.iterdir()] == ["a.rumi"]


def test_a_disk_that_is_full(old):
    """RLIMIT_FSIZE stands for it: writing past the limit fails with EFBIG."""
    data = old.read_bytes()
    result = oracle.run_python(
        """
import resource, sys
import numpy as np
import rumi
values = np.random.default_rng(0).integers(0, 256, (1, 2048, 2048)).astype("u1")
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    rumi.write(sys.argv[1], values, tile_size=512, codec="store")
except OSError as error:
    print(error.errno)
""",
        old,
    )
    assert result.stdout.split() == [str(errno.EFBIG)]
    assert old.read_bytes() == data
    assert [entry.name for entry in old.parent.iterdir()] == ["a.rumi"]


def test_a_folder_that_may_not_be_written():
    """As another user where the tests run as root, who may write everywhere."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rumi.write(folder / "a.rumi", oracle.ramp(1, 20, 20))
        data = (folder / "a.rumi").read_bytes()
        folder.chmod(0o555)
        try:
            result = oracle.run_python(
                """
import os, sys
import numpy as np
import rumi
rumi.write(sys.argv[2], np.ones((4, 4)))  # imports what a write needs
if os.geteuid() == 0:
    os.setuid(65534)
for name in ("a.rumi", "b.rumi"):
    try:
        rumi.write(os.path.join(sys.argv[1], name), np.ones((40, 40)))
    except PermissionError:
        print("refused")
""",
                folder,
                folder.parent / f"{folder.name}.rumi",
            )
        finally:
            folder.chmod(0o755)
            (folder.parent / f"{folder.name}.rumi").unlink(missing_ok=True)
        assert result.stdout.split() == ["refused", "refused"]
        assert (folder / "a.rumi").read_bytes() == data
        assert [entry.name for entry in folder.iterdir()] == ["a.rumi"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_killed_writer_leaves_an_unmistakable_temporary(old):
    data = old.read_bytes()
    result = oracle.run_python(
        """
import os, signal, sys
import oracle, rumi
from rumi import codec
encode, calls = codec.FrameEncoder.encode, []
def killing(encoder, samples):
    calls.append(1)
    if len(calls) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return encode(encoder, samples)
codec.FrameEncoder.encode = killing
rumi.write(sys.argv[1], oracle.ramp(1, 48, 48), tile_size=16, codec="zstd", threads=1)
""",
        old,
        check=False,
    )
    assert result.returncode == -signal.SIGKILL
    assert old.read_bytes() == data
    (left,) = (entry for entry in old.parent.iterdir() if entry != old)
    assert left.name.startswith(".")
    assert left.name.endswith(".rumi-tmp")
    for call in (rumi.index, rumi.read, rumi.open):
        with pytest.raises(rumi.RumiError):
            call(left)
    rumi.write(old, NEW, tile_size=16)
    assert np.array_equal(rumi.read(old), NEW)


def test_the_file_is_complete_when_it_appears(tmp_path, monkeypatch):
    """Until the rename only the temporary is there; the rename is the last step."""
    path = tmp_path / "a.rumi"
    seen = []
    replace = os.replace

    def watching(source, target):
        seen.append((Path(os.fsdecode(source)).name, rumi.index(os.fsdecode(source))))
        assert not path.exists()
        replace(source, target)

    monkeypatch.setattr(os, "replace", watching)
    header = rumi.write(path, NEW, tile_size=16)
    ((name, found),) = seen
    assert name.endswith(".rumi-tmp")
    assert found == header
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.rumi"]


def test_a_rename_that_fails(old, monkeypatch):
    data = old.read_bytes()

    def refuse(source, target):
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        rumi.write(old, NEW)
    assert old.read_bytes() == data
    assert [entry.name for entry in old.parent.iterdir()] == ["a.rumi"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        rumi.write(tmp_path / "none" / "a.rumi", NEW)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_way(tmp_path):
    (tmp_path / "a.rumi").mkdir()
    with pytest.raises((ValueError, OSError)):
        rumi.write(tmp_path / "a.rumi", NEW)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.rumi"]
    assert list((tmp_path / "a.rumi").iterdir()) == []


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "data" / "a.rumi", tmp_path / "link.rumi"
    target.parent.mkdir()
    link.symlink_to(target)
    rumi.write(link, NEW)
    assert link.is_symlink()
    assert np.array_equal(rumi.read(target), NEW)
    rumi.write(link, NEW + 1)
    assert link.is_symlink()
    assert np.array_equal(rumi.read(target), NEW + 1)
    assert [entry.name for entry in target.parent.iterdir()] == ["a.rumi"]


def test_permissions_are_kept_and_otherwise_the_usual_ones(tmp_path):
    path = tmp_path / "a.rumi"
    mask = os.umask(0o027)
    try:
        rumi.write(path, NEW)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    rumi.write(path, NEW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_the_longest_name(tmp_path):
    for name in ("x" * 250 + ".rumi", "é" * 125 + ".rumi"):
        path = tmp_path / name
        rumi.write(path, NEW)
        assert np.array_equal(rumi.read(path), NEW)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rumi.write("a.rumi", NEW)
    assert np.array_equal(rumi.read("a.rumi"), NEW)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.rumi"]


def test_a_reader_of_the_old_file_keeps_it(old):
    """The new file is another file: who has the old one open reads on."""
    with old.open("rb") as file:
        rumi.write(old, NEW)
        assert len(file.read()) != old.stat().st_size
    assert np.array_equal(rumi.read(old), NEW)


# --- The processor (C09)


def test_subnormals_stay_in_every_thread(tmp_path):
    """Importing rumi and decoding with threads leaves the floating-point unit as it was."""
    values = oracle.ramp(4, 512, 512, np.float64)
    values[0] = 5e-324
    np.save(tmp_path / "a.npy", values)
    oracle.run_python(
        """
import sys, threading
from concurrent.futures import ThreadPoolExecutor

def flushed(*_):
    smallest, tiny = 5e-324, sys.float_info.min
    return (smallest == 0.0) or (tiny / 2 == 0.0) or (smallest * 1.0 == 0.0)

assert not flushed()
import numpy as np
import rumi
from rumi import workers
assert not flushed()
values = np.load(sys.argv[1])
header = rumi.write(sys.argv[2], values, tile_size=128, threads=2)
assert not flushed()
found = rumi.read(sys.argv[2], header, threads=4)
assert found.tobytes() == values.tobytes()
assert not flushed()
states = []
def work():
    states.append((threading.get_ident(), flushed(), bool(found[0, 0, 0] + found[0, 0, 0] == 0)))
workers.run_together(work, 4, lambda: None)
with ThreadPoolExecutor(2) as pool:
    assert not any(pool.map(flushed, range(20)))
assert len(states) == 4 and not any(state[1] or state[2] for state in states), states
""",
        tmp_path / "a.npy",
        tmp_path / "a.rumi",
    )


def test_nothing_starts_a_thread_or_imports_an_extra(tmp_path):
    """REQUIREMENTS: optional packages are imported when used, threads started when needed."""
    result = oracle.run_python(
        """
import json, sys, threading
before = threading.active_count()
import numpy as np
import rumi
extras = ["rasterio", "torch", "xarray", "dask", "obstore", "pyarrow", "matplotlib", "PIL",
          "ml_dtypes", "geozl", "multiprocessing.pool", "tifffile", "affine"]
imported = [name for name in extras if name in sys.modules]
header = rumi.write(sys.argv[1], np.ones((1, 8, 8)))
rumi.read(sys.argv[1], header)
rumi.open(sys.argv[1]).header
print(json.dumps([imported, threading.active_count() - before,
                  [name for name in extras if name in sys.modules]]))
""",
        tmp_path / "a.rumi",
    )
    assert json.loads(result.stdout) == [[], 0, []]
