"""Reading: which bytes are touched, into which memory, and what is refused."""

import gc
import itertools
import os
import struct
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openzl import ext as openzl
from openzl.ext import graphs

import rumi
from rumi import (
    CodecError,
    FormatError,
    Header,
    RumiError,
    StaleHeaderError,
    TruncatedError,
    UnsupportedError,
    backends,
    workers,
)
from rumi._core import Counter, Decoder, Plan, Store, Target

PAIRS = pytest.mark.parametrize("pair", oracle.DTYPES, ids=oracle.PAIR_IDS)
UNITS = pytest.mark.parametrize("unit", [0, 1], ids=["tile", "cell"])

VALUES = oracle.ramp(3, 25, 40, np.uint16)
TILE = (16, 16)
FILES = {unit: oracle.write(VALUES, TILE, unit) for unit in (0, 1)}
WINDOWS = [
    None,
    (0, 0, 25, 40),
    (0, 0, 1, 1),
    (24, 39, 1, 1),
    (15, 15, 2, 2),
    (0, 0, 16, 16),
    (16, 16, 9, 16),
    (3, 5, 20, 33),
    (16, 0, 9, 40),
    (0, 32, 25, 8),
]


def frames_at(data, blob):
    """(start, stop) of every frame of a file."""
    fields, counts = oracle.parse(blob)
    offsets = oracle.offsets_of(fields["samples_per_pixel"], counts)
    return [(start, start + size) for start, size in zip(offsets, counts, strict=True)]


# --- Right results


@UNITS
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("bands", [None, 1, [2, 0], [1, 1], [0, 1, 2], [2, 2, 0, 1, 0]], ids=str)
def test_windows_and_bands(backend, unit, window, bands):
    data, blob = FILES[unit]
    chosen = [bands] if isinstance(bands, int) else bands
    expected = oracle.numpy_window(VALUES, chosen, window)
    for header in (None, blob):
        found = rumi.read(data, header, bands=bands, window=window)
        assert oracle.same_bits(found, expected)


@PAIRS
@UNITS
def test_windows_and_bands_of_every_encoding(backend, pair, unit):
    values = oracle.random_samples(pair, (3, 20, 30))
    data, blob = oracle.write(values, (8, 12), unit)
    for bands, window in itertools.product(
        (None, [2, 0, 2]), (None, (3, 5, 13, 17), (8, 12, 8, 12))
    ):
        found = rumi.read(data, blob, bands=bands, window=window)
        assert oracle.same_bits(found, oracle.numpy_window(values, bands, window))


@st.composite
def reads(draw):
    pair = draw(st.sampled_from([(1, 8), (1, 16), (3, 32), (6, 64), (6, 128), (1, 1), (105, 6)]))
    bands, height, width = (draw(st.integers(1, limit)) for limit in (4, 40, 40))
    tile = draw(st.integers(1, 45)), draw(st.integers(1, 45))
    top, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
    window = top, left, draw(st.integers(1, height - top)), draw(st.integers(1, width - left))
    chosen = draw(st.lists(st.integers(0, bands - 1), min_size=1, max_size=6))
    return pair, (bands, height, width), tile, draw(st.sampled_from([0, 1])), chosen, window


@given(reads(), st.sampled_from(["openzl", "geozl"]))
@settings(max_examples=150)
def test_any_read_agrees_with_numpy(case, name):
    pair, shape, tile, unit, bands, window = case
    if name == "geozl" and not backends.geozl_available():
        name = "openzl"
    values = oracle.random_samples(pair, shape)
    data, blob = oracle.write(values, tile, unit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUMI_BACKEND", name)
        found = rumi.read(data, blob, bands=bands, window=window)
    assert oracle.same_bits(found, oracle.numpy_window(values, bands, window))


@UNITS
def test_results_are_owned_and_plain(backend, unit):
    """REQUIREMENTS 6, for one frame and for many."""
    for pair in oracle.DTYPES:
        values = oracle.random_samples(pair, (2, 9, 11))
        data, blob = oracle.write(values, (8, 8), unit)
        for window in (None, (0, 0, 8, 8), (1, 1, 3, 3)):
            found = rumi.read(data, blob, window=window)
            assert type(found) is np.ndarray
            assert found.flags.owndata
            assert found.flags.writeable
            assert found.flags.c_contiguous
            assert found.flags.aligned
            assert found.dtype.isnative
            assert found.ndim == 3


def test_two_reads_share_nothing(backend):
    data, blob = FILES[0]
    one, two = rumi.read(data, blob), rumi.read(data, blob)
    one[:] = 0
    assert np.array_equal(two, VALUES)
    assert np.array_equal(rumi.read(data, blob), VALUES)


@UNITS
def test_no_byte_outside_the_frames_of_the_window_is_read(backend, unit, tmp_path):
    """With a header: neither the index nor any other frame."""
    data, blob = FILES[unit]
    fields, _ = oracle.parse(blob)
    path = tmp_path / "a.rumi"
    for bands, window in (([1], (0, 0, 3, 3)), ([2, 0], (10, 10, 10, 10)), ([0], (24, 0, 1, 40))):
        kept = bytearray(b"\xaa" * len(data))
        for index in oracle.frames_touched(fields, bands, window):
            start, stop = frames_at(data, blob)[index]
            kept[start:stop] = data[start:stop]
        expected = oracle.numpy_window(VALUES, bands, window)
        path.write_bytes(kept)
        for source in (bytes(kept), path):
            assert oracle.same_bits(rumi.read(source, blob, bands=bands, window=window), expected)
        assert oracle.same_bits(rumi.open(path, blob).read(bands=bands, window=window), expected)


@pytest.mark.skipif(sys.platform != "linux", reason="needs guard pages of Linux")
def test_no_byte_after_the_file_is_read():
    """The file ends where a page begins that kills whoever touches it."""
    oracle.run_python(
        """
import ctypes, mmap, os
import numpy as np
import oracle, rumi
from rumi import backends

page = mmap.PAGESIZE
libc = ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for backend in ("openzl", "geozl")[: 1 + backends.geozl_available()]:
    os.environ["RUMI_BACKEND"] = backend
    for shape, tile in (((1, 1, 1), (1, 1)), ((2, 9, 13), (8, 8)), ((1, 40, 50), (32, 64))):
        values = oracle.ramp(*shape, dtype=np.uint16)
        data, blob = oracle.write(values, tile)
        pages = -(-len(data) // page)
        memory = mmap.mmap(-1, (pages + 1) * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert libc.mprotect(start + pages * page, page, 0) == 0
        view = memoryview(memory)[pages * page - len(data) : pages * page]
        view[:] = data
        for header in (None, blob):
            assert np.array_equal(rumi.read(view, header), values)
"""
    )


def test_bands_between_which_gaps_grow(backend, tmp_path):
    """Skipped frames that are read over, each larger than the one before.

    The buffer that takes them must not move while an earlier one is to go into it.
    """
    rng = np.random.default_rng(0)
    for seed in range(6):
        sizes = [int(size) for size in rng.integers(200, 3000, size=20)]
        if seed % 2:
            sizes.sort()
        values = oracle.ramp(2, 1, 20, np.uint16)
        fields = oracle.fields_of(values.shape, (1, 1))
        frames = []
        for col in range(20):
            frames += [oracle.frame_of(values[0, :, col]), bytes(sizes[col])]
        data = oracle.file_with(fields, frames)
        blob = oracle.blob_with(fields, [len(frame) for frame in frames])
        path = tmp_path / "a.rumi"
        path.write_bytes(data)
        for source in (path, data):
            for _ in range(3):
                found = rumi.read(source, blob, bands=0)
                assert np.array_equal(found, values[:1])


@pytest.mark.parametrize("number", [31, 32, 33, 63, 64, 65, 200])
def test_many_small_frames(backend, number, tmp_path):
    """More of them than one vectored read takes."""
    values = oracle.ramp(3, 1, number, np.int32)
    data, blob = oracle.write(values, (1, 1))
    path = tmp_path / "a.rumi"
    path.write_bytes(data)
    for source in (path, data):
        for bands in (None, [0], [2, 0], [1]):
            found = rumi.read(source, blob, bands=bands)
            assert np.array_equal(found, oracle.numpy_window(values, bands, None))


@pytest.mark.parametrize("gap", [0, 1, 50, 10**6])
@pytest.mark.parametrize("largest", [1, 100, 10**6])
def test_gap_and_largest_change_nothing_but_the_requests(backend, gap, largest, tmp_path):
    data, blob = FILES[0]
    path = tmp_path / "a.rumi"
    path.write_bytes(data)
    plan = Plan(Header(blob), [0, 2], (3, 3, 20, 30))
    for store in (Store.open_path(os.fsencode(path)), Store.memory(data)):
        array = np.zeros(plan.shape, np.uint16)
        Decoder(backend).decode(plan, store, Target(array, 2), gap=gap, largest=largest)
        assert np.array_equal(array, oracle.numpy_window(VALUES, [0, 2], (3, 3, 20, 30)))


@pytest.mark.parametrize(
    ("kind", "width"),
    [("Serial", 1), ("Struct", 2), ("Struct", 4), ("Struct", 1), ("Numeric", 1), ("Numeric", 2)],
)
def test_any_single_output_of_the_right_size_is_accepted(backend, kind, width):
    """Written by other tools: not Numeric at the width of a sample, yet the right bytes."""
    values = oracle.ramp(1, 16, 16, np.uint16)
    numbers = np.frombuffer(values.tobytes(), np.uint8)
    if kind == "Struct":
        numbers = numbers.reshape(-1, width)
    elif kind == "Numeric":
        numbers = numbers.view(oracle.NUMBERS[width])
    frame = oracle.compress([openzl.Input(getattr(openzl.Type, kind), numbers)])
    data = oracle.file_with(oracle.fields_of(values.shape, TILE), [frame])
    assert oracle.same_bits(rumi.read(data), values)


def test_several_outputs_are_refused(backend):
    parts = [np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8)]
    frame = oracle.compress([openzl.Input(openzl.Type.Serial, part) for part in parts])
    data = oracle.file_with(oracle.fields_of((1, 16, 16), TILE), [frame])
    with pytest.raises(CodecError, match=r"frame 0 \(row 0, col 0, band 0\)"):
        rumi.read(data)


@pytest.mark.parametrize("version", [16, 20, 23, 24, openzl.MAX_FORMAT_VERSION])
def test_frames_of_other_versions_are_read(version):
    """The version is pinned for what rumi writes; a frame says its own."""
    values = oracle.ramp(1, 16, 16, np.uint16)
    frame = oracle.frame_of(values, version=version)
    assert struct.unpack_from("<I", frame)[0] == oracle.FRAME_MAGIC - 24 + version
    data = oracle.file_with(oracle.fields_of(values.shape, TILE), [frame])
    assert oracle.same_bits(rumi.read(data), values)


# --- out= (REQUIREMENTS 6)


def outputs(shape, dtype):
    """Arrays of a shape with every kind of strides, and what is around them."""
    bands, height, width = shape
    big = np.zeros((2 * bands + 2, 3 * height + 2, 2 * width + 3), dtype)
    last = np.zeros((height, width, bands), dtype)
    wide = np.zeros((height, width + 5, bands + 2), dtype)
    raw = np.zeros(bands * height * width * dtype.itemsize + 1, np.uint8)
    return {
        "contiguous": (np.zeros(shape, dtype), None),
        "channels last": (last.transpose(2, 0, 1), last),
        "part of channels last": (wide[:, 2 : 2 + width, 1 : 1 + bands].transpose(2, 0, 1), wide),
        "Fortran": (np.zeros(shape, dtype, order="F"), None),
        "part": (big[1 : 1 + bands, 2 : 2 + height, 3 : 3 + width], big),
        "steps": (big[1 : 1 + 2 * bands : 2, : 3 * height : 3, 1 : 1 + 2 * width : 2], big),
        "reversed": (big[bands:0:-1, height:0:-1, width:0:-1], big),
        "reversed rows": (np.zeros(shape, dtype)[:, ::-1], None),
        "rows first": (np.zeros((height, bands, width), dtype).swapaxes(0, 1), None),
        "unaligned": (raw[1:].view(dtype).reshape(shape), raw),
    }


@PAIRS
@UNITS
def test_out_with_any_strides(backend, pair, unit):
    values = oracle.random_samples(pair, (3, 20, 30))
    data, blob = oracle.write(values, (8, 12), unit)
    for bands, window in ((None, None), ([2, 0], (3, 5, 13, 17)), ([1, 1], (8, 12, 8, 12))):
        expected = oracle.numpy_window(values, bands, window)
        for name, (out, around) in outputs(expected.shape, values.dtype).items():
            assert out.shape == expected.shape, name
            assert rumi.read(data, blob, bands=bands, window=window, out=out) is out
            assert oracle.same_bits(out, expected), name
            if around is not None and around.dtype == values.dtype:
                # Nothing but `out` was written.
                out[...] = np.zeros((), values.dtype)
                assert not np.frombuffer(around.tobytes(), np.uint8).any(), name


def test_out_of_one_sample(backend):
    data, blob = FILES[0]
    out = np.zeros((1, 1, 1), np.uint16)
    rumi.read(data, blob, bands=2, window=(7, 9, 1, 1), out=out)
    assert out[0, 0, 0] == VALUES[2, 7, 9]


def test_out_may_overlap_itself(backend):
    """Repeated memory takes whatever comes last, and nothing else is touched."""
    data, blob = FILES[0]
    memory = np.zeros((1, 25, 40), np.uint16)
    out = np.lib.stride_tricks.as_strided(memory, (3, 25, 40), (0, 80, 2), writeable=True)
    rumi.read(data, blob, out=out)
    assert any(np.array_equal(memory[0], band) for band in VALUES)


class Interface:
    """Shares memory through __array_interface__ only."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class Tensor:
    """Shares memory through DLPack only, with versions, as NumPy and new libraries do."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OldTensor(Tensor):
    """DLPack before version 1, which cannot say whether memory may be written."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


@pytest.mark.parametrize("kind", [Interface, Tensor, OldTensor])
@pytest.mark.parametrize("layout", ["contiguous", "channels last", "Fortran", "reversed"])
def test_out_of_other_libraries(backend, kind, layout):
    data, blob = FILES[0]
    array, _ = outputs(VALUES.shape, VALUES.dtype)[layout]
    out = kind(array)
    assert rumi.read(data, blob, out=out) is out
    assert np.array_equal(array, VALUES)


class Elsewhere(Tensor):
    """A tensor whose memory the processor cannot reach."""

    def __dlpack__(self, **arguments):
        raise BufferError("not exported to another device")

    def __dlpack_device__(self):
        return 2, 0


@pytest.mark.parametrize("kind", [Elsewhere, OldTensor])
def test_out_that_its_library_does_not_export(kind):
    """Memory of another device, and read-only memory that old DLPack has no word for."""
    memory = read_only(np.full((3, 25, 40), 9, np.uint16))
    data, blob = FILES[0]
    with pytest.raises((TypeError, ValueError), match="out: expected") as caught:
        rumi.read(data, blob, out=kind(memory))
    assert "\n" not in str(caught.value)
    assert (memory == 9).all()


def test_out_of_torch(backend):
    torch = pytest.importorskip("torch")
    values = oracle.ramp(3, 25, 40, np.float32)
    data, blob = oracle.write(values, TILE)
    for out in (torch.zeros(3, 25, 40), torch.zeros(25, 40, 3).permute(2, 0, 1)):
        assert rumi.read(data, blob, out=out) is out
        assert np.array_equal(out.numpy(), values)


def read_only(array):
    array.flags.writeable = False
    return array


REFUSED_OUT = {
    "shape": (ValueError, lambda: np.full((3, 25, 41), 9, np.uint16)),
    "transposed": (ValueError, lambda: np.full((25, 40, 3), 9, np.uint16)),
    "two dimensions": (ValueError, lambda: np.full((25, 40), 9, np.uint16)),
    "four dimensions": (ValueError, lambda: np.full((1, 3, 25, 40), 9, np.uint16)),
    "no dimension": (ValueError, lambda: np.full((), 9, np.uint16)),
    "signed": (TypeError, lambda: np.full((3, 25, 40), 9, np.int16)),
    "half": (TypeError, lambda: np.full((3, 25, 40), 9, np.float16)),
    "wider": (TypeError, lambda: np.full((3, 25, 40), 9, np.uint32)),
    "big-endian": (TypeError, lambda: np.full((3, 25, 40), 9, ">u2")),
    "object": (TypeError, lambda: np.full((3, 25, 40), 9, object)),
    "read-only": (ValueError, lambda: read_only(np.full((3, 25, 40), 9, np.uint16))),
    "broadcast": (ValueError, lambda: np.broadcast_to(np.uint16(9), (3, 25, 40))),
    "list": (TypeError, lambda: [[[9] * 40] * 25] * 3),
    "bytearray": (TypeError, lambda: bytearray(b"\x09" * 6000)),
    "number": (TypeError, lambda: 9),
    "string": (TypeError, lambda: "out"),
    "read-only interface": (
        ValueError,
        lambda: Interface(read_only(np.full((3, 25, 40), 9, np.uint16))),
    ),
    "read-only tensor": (ValueError, lambda: Tensor(read_only(np.full((3, 25, 40), 9, np.uint16)))),
    "type of a tensor": (TypeError, lambda: Tensor(np.full((3, 25, 40), 9, np.int16))),
}


@pytest.mark.parametrize("name", REFUSED_OUT)
def test_out_is_refused_before_a_byte_changes(backend, name):
    error, make = REFUSED_OUT[name]
    data, blob = FILES[0]
    out = make()
    for header in (None, blob):
        with pytest.raises(error, match="out: expected") as caught:
            rumi.read(data, header, out=out)
        assert "\n" not in str(caught.value)
    image = rumi.open(data)
    with pytest.raises(error, match="out: expected"):
        image.read(out=out)
    memory = getattr(out, "array", out)
    if isinstance(memory, np.ndarray):
        assert (memory == 9).all()


def test_out_stays_when_other_arguments_are_refused(backend):
    data, blob = FILES[0]
    out = np.full((3, 25, 40), 9, np.uint16)
    for arguments in (
        {"window": (0, 0, 26, 40)},
        {"bands": 3},
        {"bands": "0"},
        {"threads": 0},
        {"threads": 1.5},
    ):
        with pytest.raises((TypeError, ValueError, IndexError)):
            rumi.read(data, blob, out=out, **arguments)
    with pytest.raises(StaleHeaderError):
        rumi.read(data[:-1], blob, out=out)
    with pytest.raises(TruncatedError):
        rumi.read(data[:-1], out=out)
    assert (out == 9).all()


def test_structured_out_has_to_be_the_same_structure(backend):
    values = oracle.random_samples((5, 32), (1, 9, 9))
    data, blob = oracle.write(values, (8, 8))
    right = np.zeros(values.shape, values.dtype)
    assert rumi.read(data, blob, out=right) is right
    assert oracle.same_bits(right, values)
    for wrong in (
        [("real", ">i2"), ("imag", ">i2")],
        [("imag", "i2"), ("real", "i2")],
        [("re", "i2"), ("im", "i2")],
        "u4",
        "c8",
    ):
        with pytest.raises(TypeError, match="out: expected dtype"):
            rumi.read(data, blob, out=np.zeros(values.shape, wrong))


# --- Header argument


def test_a_header_may_be_any_bytes():
    data, blob = FILES[0]
    for header in (
        blob,
        bytearray(blob),
        memoryview(blob),
        Header(blob),
        np.frombuffer(blob, "u1"),
    ):
        assert np.array_equal(rumi.read(data, header), VALUES)


@pytest.mark.parametrize("wrong", [5, "blob", [1], 2.5, object()])
def test_a_header_of_the_wrong_kind(wrong):
    with pytest.raises(TypeError):
        rumi.read(FILES[0][0], wrong)


def test_a_broken_header_is_refused_before_the_file_is_read():
    data, blob = FILES[0]
    for broken, error in (
        (b"", TruncatedError),
        (blob[:-1], TruncatedError),
        (blob + b"\0", FormatError),
    ):
        with pytest.raises(error, match="header blob"):
            rumi.read(data, broken)


def test_one_band_read_with_the_other_unit():
    """With one band both units are one layout: a blob that says cell reads the same."""
    values = VALUES[:1]
    data, blob = oracle.write(values, TILE)
    cell = oracle.replaced(blob, 22, b"\x01")
    assert Header(cell).unit == "cell"
    for window in WINDOWS:
        expected = oracle.numpy_window(values, None, window)
        assert oracle.same_bits(rumi.read(data, cell, window=window), expected)
        assert oracle.same_bits(
            rumi.open(data, cell).read(bands=[0, 0], window=window)[1:], expected
        )
    # An error in a frame is no reason to call such a header stale.
    broken = bytearray(data)
    broken[frames_at(data, blob)[0][0] + 20] ^= 0xFF
    with pytest.raises(CodecError, match="frame 0"):
        rumi.read(bytes(broken), cell)


def test_only_two_arguments_go_without_a_name():
    with pytest.raises(TypeError, match="positional"):
        rumi.read(*FILES[0], None)


# --- Stale headers (C27)


@pytest.fixture
def replaced_file(tmp_path):
    """Write an image under one name, then another one; return its path and the old blob."""

    def replaced_file(old, new, **options):
        path = tmp_path / "a.rumi"
        header = rumi.write(path, old, tile_size=16, codec="zstd")
        rumi.write(path, new, **({"tile_size": 16, "codec": "zstd"} | options))
        return path, header

    return replaced_file


RANDOM = np.random.default_rng(0).integers(0, 2**16, (2, 40, 40)).astype(np.uint16)


@pytest.mark.parametrize(
    ("new", "options"),
    [
        (RANDOM[:, :20], {}),
        (np.tile(RANDOM, (1, 2, 2)), {}),
        (np.zeros_like(RANDOM), {}),
        (RANDOM.astype(np.uint8), {}),
        (RANDOM.astype(np.float32), {}),
        (RANDOM, {"frame_unit": "cell"}),
        (RANDOM, {"tile_size": 8}),
        (RANDOM[:1], {}),
    ],
    ids=["shorter", "longer", "smaller", "uint8", "float32", "cell", "other tiles", "one band"],
)
@pytest.mark.parametrize("window", [None, (0, 0, 1, 1), (39, 39, 1, 1)], ids=str)
def test_a_header_of_the_file_before(replaced_file, new, options, window):
    path, header = replaced_file(RANDOM, new, **options)
    assert header.file_size != path.stat().st_size
    with pytest.raises(StaleHeaderError) as caught:
        rumi.read(path, header, window=window)
    text = str(caught.value)
    for part in (str(path), str(header.file_size), str(path.stat().st_size)):
        assert part in text
    assert "\n" not in text
    with pytest.raises(StaleHeaderError):
        rumi.open(path, header).read(window=window)
    with pytest.raises(StaleHeaderError):
        rumi.open(path, header).read(window=window)


def framed(counts, fill):
    """A file of one band whose frames have so many bytes of noise, and other sizes therefore."""
    fields = oracle.fields_of((1, 16, 16 * len(counts)), (16, 16), (1, 8))
    frames = []
    for number, size in enumerate(counts):
        values = np.full((16, 16), fill + number, np.uint8)
        rng = np.random.default_rng(fill + number)
        values.reshape(-1)[:size] = rng.integers(0, 256, size)
        frames.append((values, oracle.frame_of(values)))
    data = oracle.file_with(fields, [frame for _, frame in frames])
    blob = oracle.blob_with(fields, [len(frame) for _, frame in frames])
    return data, blob, np.concatenate([values for values, _ in frames], axis=1)[None]


def test_a_file_of_the_same_size_with_other_frames(backend, tmp_path):
    """Sizes that change places: the file is as long as before, and no frame starts where it did."""
    old, old_blob, _ = framed([40, 200, 120], 1)
    for order in itertools.permutations((40, 200, 120)):
        new, new_blob, values = framed(list(order), 1)
        if len(new) != len(old) or new_blob == old_blob:
            continue
        path = tmp_path / "a.rumi"
        path.write_bytes(new)
        with pytest.raises(StaleHeaderError, match="rumi.index") as caught:
            rumi.read(path, old_blob)
        assert str(path) in str(caught.value)
        assert isinstance(caught.value.__cause__, (CodecError, FormatError))
        with pytest.raises(StaleHeaderError):
            rumi.open(path, old_blob).read()
        assert oracle.same_bits(rumi.read(path, new_blob), values)


def swapped_frames():
    """Two files of equal frame sizes: the first two frames have changed places."""
    values = np.zeros((1, 16, 48), np.uint8)
    rng = np.random.default_rng(7)
    for number in range(3):
        values[0, :, 16 * number : 16 * number + 16] = rng.integers(0, 256, (16, 16))
    other = np.concatenate([values[..., 16:32], values[..., :16], values[..., 32:]], axis=2)
    return values, other


def test_equal_sizes_read_what_the_file_holds_now(tmp_path):
    """Nothing in a blob tells two files of equal frame sizes apart.

    C27: documented here. The read is that of the new file, whole and consistent;
    a catalog that has to notice keeps an ETag or a checksum beside the blob.
    """
    values, other = swapped_frames()
    path = tmp_path / "a.rumi"
    header = rumi.write(path, values, tile_size=16, codec="store")
    rumi.write(path, other, tile_size=16, codec="store")
    assert rumi.index(path) == header
    for window in (None, (0, 0, 16, 20)):
        assert oracle.same_bits(
            rumi.read(path, header, window=window), oracle.numpy_window(other, None, window)
        )


def test_an_open_image_never_mixes_two_files(tmp_path):
    """It goes on reading the file that it opened, or says that it cannot."""
    values, other = swapped_frames()
    path = tmp_path / "a.rumi"
    header = rumi.write(path, values, tile_size=16, codec="store")
    for given_header in (None, header):
        rumi.write(path, values, tile_size=16, codec="store")
        image = rumi.open(path, given_header)
        assert oracle.same_bits(image[:, :, :20], values[:, :, :20])
        rumi.write(path, other, tile_size=16, codec="store")
        for _ in range(2):
            found, error = oracle.attempt(StaleHeaderError, image.read)
            if error is None:
                assert oracle.same_bits(found, values)
            else:
                assert str(path) in str(error)
        assert oracle.same_bits(rumi.open(path)[...], other)


def test_an_image_that_lost_its_handle_says_so(tmp_path):
    """With the handle closed, the file under the name is another one."""
    from rumi.source import handles

    values, other = swapped_frames()
    path = tmp_path / "a.rumi"
    rumi.write(path, values, tile_size=16, codec="store")
    image = rumi.open(path)
    rumi.write(path, other, tile_size=16, codec="store")
    handles.clear()
    with pytest.raises(StaleHeaderError, match="open it again"):
        image.read()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        image.read()


# --- Damaged frames (C23)


@UNITS
@pytest.mark.parametrize("with_header", [True, False], ids=["blob", "index"])
def test_a_flipped_byte_in_every_frame(backend, unit, with_header):
    data, blob = FILES[unit]
    fields, _ = oracle.parse(blob)
    places = oracle.positions(fields)
    header = blob if with_header else None
    rng = np.random.default_rng(3)
    for index, (start, stop) in enumerate(frames_at(data, blob)):
        row, col, band = places[index]
        name = f"frame {index} (row {row}, col {col}" + (")" if band is None else f", band {band})")
        for position in {start, start + 4, stop - 1, *rng.integers(start, stop, 12).tolist()}:
            broken = oracle.replaced(data, position, bytes([data[position] ^ (1 << position % 8)]))
            with pytest.raises(CodecError) as caught:
                rumi.read(broken, header)
            text = str(caught.value)
            assert name in text
            assert "<bytes>" in text
            assert "\n" not in text
        # Others read on.
        other = (0, 0) if (row, col) != (0, 0) else (24, 39)
        found = rumi.read(broken, header, window=(*other, 1, 1))
        assert np.array_equal(found, oracle.numpy_window(VALUES, None, (*other, 1, 1)))


def test_every_byte_of_a_frame_counts(backend):
    """Each byte of one frame, each of its bits in turn: an error, never samples."""
    values = oracle.ramp(1, 8, 8, np.uint16)
    data, blob = oracle.write(values, (8, 8))
    start, stop = frames_at(data, blob)[0]
    for position in range(start, stop):
        for bit in range(8):
            broken = oracle.replaced(data, position, bytes([data[position] ^ (1 << bit)]))
            with pytest.raises((CodecError, UnsupportedError), match="frame 0"):
                rumi.read(broken, blob)


def test_a_frame_of_other_bytes(backend):
    fields = oracle.fields_of((1, 16, 16), TILE, (1, 8))
    for junk in (
        b"\0",
        b"x" * 3,
        bytes(100),
        b"\xff" * 1000,
        b"II+\0",
        struct.pack("<I", 0xD7B1A5C0 + 24),
    ):
        data = oracle.file_with(fields, [junk])
        with pytest.raises(CodecError, match=r"frame 0 \(row 0, col 0, band 0\) of <bytes>"):
            rumi.read(data)


@pytest.mark.parametrize(
    "shape", [(64, 64), (15, 16), (16, 15), (16, 17), (1, 1), (8, 16), (32, 8, 2)], ids=str
)
def test_a_frame_of_another_size(backend, shape):
    """C24: a good frame in the wrong place. Never cropped, never padded."""
    frame = oracle.frame_of(oracle.random_samples((1, 8), shape))
    data = oracle.file_with(oracle.fields_of((1, 16, 16), TILE, (1, 8)), [frame])
    size = int(np.prod(shape))
    with pytest.raises(CodecError) as caught:
        rumi.read(data)
    for part in ("frame 0 (row 0, col 0, band 0) of <bytes>", "256", str(size)):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_size_of_an_edge_frame_is_derived_not_trusted(backend):
    """A padded edge tile, as a TIFF writer would store it, is refused."""
    fields = oracle.fields_of((1, 16, 20), TILE, (1, 8))
    whole = oracle.frame_of(oracle.random_samples((1, 8), (16, 16)))
    cut = oracle.frame_of(oracle.random_samples((1, 8), (16, 4)))
    assert rumi.read(oracle.file_with(fields, [whole, cut])).shape == (1, 16, 20)
    with pytest.raises(CodecError, match=r"frame 1 \(row 0, col 1, band 0\).*64 .*256"):
        rumi.read(oracle.file_with(fields, [whole, whole]))


def test_bands_and_pixels_cannot_stand_for_each_other(backend):
    """A cell's frame in a file of tiles, and the reverse."""
    values = oracle.random_samples((1, 8), (2, 16, 16))
    cell, tile = oracle.frame_of(values), oracle.frame_of(values[0])
    with pytest.raises(CodecError, match="frame 0"):
        rumi.read(oracle.file_with(oracle.fields_of((2, 16, 16), TILE, (1, 8)), [cell, cell]))
    with pytest.raises(CodecError, match=r"frame 0 \(row 0, col 0\)"):
        rumi.read(oracle.file_with(oracle.fields_of((2, 16, 16), TILE, (1, 8), 1), [tile]))


def with_declared_size(frame, old, new):
    """Change the size that a frame declares, and its header checksum with it."""

    def varint(number):
        number += 1
        text = b""
        while number > 127:
            text += bytes([number & 127 | 128])
            number >>= 7
        return text + bytes([number])

    assert frame[6 : 6 + len(varint(old))] == varint(old)
    head, rest = frame[:6] + varint(new), frame[6 + len(varint(old)) :]
    for checksum in range(256):
        changed = head + bytes([checksum]) + rest[1:]
        try:
            if openzl.FrameInfo(changed).output_content_size(0) == new:
                yield changed
        except RuntimeError:
            continue


def test_a_frame_that_claims_to_be_large(backend):
    """C24: 2**40 bytes by its own word."""
    frame = oracle.frame_of(oracle.random_samples((1, 8), (16, 16)), graph=graphs.Store)
    fields = oracle.fields_of((1, 16, 16), TILE, (1, 8))
    found = list(with_declared_size(frame, 256, 2**40))
    assert found
    for liar in found:
        tracemalloc.start()
        with pytest.raises(CodecError, match=f"256 .*{2**40}"):
            rumi.read(oracle.file_with(fields, [liar]))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is not told here")
@pytest.mark.parametrize("claim", ["honest", "liar"])
def test_a_small_frame_that_unpacks_to_much(backend, claim, tmp_path):
    """C24: a bomb of 2 kB for 64 MiB, told or not, in a process that has no room for it."""
    frame = oracle.frame_of(np.zeros(1 << 26, np.uint8))
    assert len(frame) < 10_000
    frames = [frame]
    if claim == "liar":
        frames = list(with_declared_size(frame, 1 << 26, 256))
        assert frames
    fields = oracle.fields_of((1, 16, 16), TILE, (1, 8))
    path = tmp_path / "a.rumi"
    for number, bomb in enumerate(frames):
        path.write_bytes(oracle.file_with(fields, [bomb]))
        oracle.run_python(
            """
import resource, sys
from pathlib import Path
import rumi
rumi.read(sys.argv[2])
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (50 << 20),) * 2)
try:
    rumi.read(sys.argv[1])
except rumi.CodecError as error:
    assert "frame 0 (row 0, col 0, band 0)" in str(error) and chr(10) not in str(error), error
else:
    raise SystemExit("samples")
""",
            path,
            write_good(tmp_path / "good.rumi"),
            environment={"RUMI_BACKEND": backend},
        )
        assert number < 4


def write_good(path):
    path.write_bytes(FILES[0][0])
    return path


@pytest.mark.parametrize("pair", [pair for pair in oracle.DTYPES if pair[1] < 8], ids=str)
@UNITS
def test_bits_above_the_width_of_a_sample_are_refused(backend, pair, unit):
    """A sample of 4 bits that is 16 is no sample of 4 bits."""
    values = oracle.random_samples(pair, (2, 16, 16)).view(np.uint8)
    fields = oracle.fields_of(values.shape, TILE, pair, unit)
    for wrong in (1 << pair[1], 0x80):
        broken = values.copy()
        broken[1, 15, 15] |= wrong
        frames = [oracle.frame_of(samples) for samples in oracle.cut(broken, TILE, unit)]
        data = oracle.file_with(fields, frames)
        with pytest.raises(FormatError, match=f"frame {0 if unit else 1} .*{pair[1]} bits"):
            rumi.read(data)


def test_truncated_frames_name_themselves(backend, tmp_path):
    """C23: frames before the cut are read; the one that is cut is named, with what is short."""
    data, blob = FILES[0]
    header = Header(blob)
    fields, _ = oracle.parse(blob)
    places = oracle.positions(fields)
    path = tmp_path / "a.rumi"
    for index, (start, stop) in enumerate(frames_at(data, blob)):
        row, col, band = places[index]
        for length in {start, start + 1, stop - 1}:
            path.write_bytes(data[:length])
            for store in (Store.open_path(os.fsencode(path)), Store.memory(data[:length])):
                plan = Plan(header, None, None)
                out = np.zeros(plan.shape, np.uint16)
                with pytest.raises(TruncatedError) as caught:
                    Decoder(backend).decode(plan, store, Target(out, 2))
                text = str(caught.value)
                assert f"frame {index} (row {row}, col {col}, band {band})" in text
                assert f"expected {stop - start} bytes at offset {start}" in text
                assert f"found {length - start}" in text
                if index:
                    before = places[index - 1]
                    window = (before[0] * 16, before[1] * 16, 1, 1)
                    single = Plan(header, before[2], window)
                    out = np.zeros((1, 1, 1), np.uint16)
                    Decoder(backend).decode(single, store, Target(out, 2))
                    assert out[0, 0, 0] == VALUES[before[2], window[0], window[1]]


@pytest.mark.parametrize("with_header", [True, False], ids=["blob", "index"])
def test_a_cut_file_is_never_read(backend, with_header, tmp_path):
    data, blob = FILES[0]
    path = tmp_path / "a.rumi"
    for start, stop in frames_at(data, blob):
        for length in {start - 1, start, start + 1, stop - 1}:
            path.write_bytes(data[:length])
            for source in (path, data[:length]):
                with pytest.raises(StaleHeaderError if with_header else TruncatedError) as caught:
                    rumi.read(source, blob if with_header else None, window=(0, 0, 1, 1))
                assert str(len(data)) in str(caught.value) or str(length) in str(caught.value)
    path.write_bytes(data + b"\0")
    with pytest.raises(StaleHeaderError if with_header else FormatError):
        rumi.read(path, blob if with_header else None)


@given(st.data())
@settings(max_examples=300)
def test_random_damage_never_gives_wrong_samples(data):
    """REQUIREMENTS 31 and 32: an error of ours, or the right samples."""
    unit = data.draw(st.sampled_from([0, 1]))
    name = data.draw(
        st.sampled_from(["openzl", "geozl"] if backends.geozl_available() else ["openzl"])
    )
    file, blob = FILES[unit]
    broken = bytearray(file)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(file) - 1))
        size = data.draw(st.sampled_from([1, 1, 2, 8, 100]))
        broken[position : position + size] = data.draw(st.binary(min_size=size, max_size=size))
    broken = bytes(broken[: len(file)])
    header = data.draw(st.sampled_from([None, blob]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUMI_BACKEND", name)
        found, error = oracle.attempt(RumiError, rumi.read, broken, header)
    if error is not None:
        assert "\n" not in str(error)
        assert "<bytes>" in str(error)
    elif header is not None:
        assert oracle.same_bits(found, VALUES)


# --- Backends and threads


LARGE = np.tile(oracle.ramp(3, 128, 128, np.uint16), (1, 4, 4)) + np.arange(512, dtype=np.uint16)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file that is worth several threads."""
    path = tmp_path_factory.mktemp("read") / "large.rumi"
    return path, rumi.write(path, LARGE, tile_size=128, codec="lanes>zstd")


@pytest.mark.parametrize("threads", [1, 2, 3, 16, 1000, None, np.int64(2)])
@pytest.mark.parametrize("name", ["auto", "openzl", "geozl"])
def test_any_number_of_threads_gives_the_same_bits(large, threads, name, monkeypatch):
    if name == "geozl" and not backends.geozl_available():
        pytest.skip("geozl is not installed, so only one of two decoders is tested")
    monkeypatch.setenv("RUMI_BACKEND", name)
    path, header = large
    for bands, window in ((None, None), ([2, 0, 2], (100, 60, 300, 401))):
        expected = oracle.numpy_window(LARGE, bands, window)
        found = rumi.read(path, header, bands=bands, window=window, threads=threads)
        assert oracle.same_bits(found, expected)
        out = np.zeros((*expected.shape[1:], expected.shape[0]), np.uint16).transpose(2, 0, 1)
        rumi.read(path, header, bands=bands, window=window, threads=threads, out=out)
        assert np.array_equal(out, expected)
        found = rumi.open(path, header).read(bands=bands, window=window, threads=threads)
        assert oracle.same_bits(found, expected)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_an_error_in_one_of_many_frames(large, threads):
    """All threads stop, the frame is named, and the next read is as good as new.

    In a process of its own, which such an error must not bring down.
    """
    path, _ = large
    oracle.run_python(
        """
import sys
import numpy as np
import rumi
threads = int(sys.argv[2])
header = rumi.index(sys.argv[1])
with open(sys.argv[1], "rb") as file:
    data = file.read()
right = rumi.read(data, header, threads=1)
for index in (0, 20, 47):
    broken = bytearray(data)
    broken[header.offset(index) + header.byte_count(index) // 2] ^= 0x55
    row, col, band = header.frame_position(index)
    for _ in range(20):
        try:
            rumi.read(broken, header, threads=threads)
        except rumi.CodecError as error:
            assert f"frame {index} (row {row}, col {col}, band {band})" in str(error), error
        else:
            raise SystemExit("samples")
    assert np.array_equal(rumi.read(data, header, threads=threads), right)
# Every frame of the file is broken, so that several threads fail.
broken = bytearray(data)
for index in range(header.frame_count):
    broken[header.offset(index) + header.byte_count(index) // 2] ^= 0x55
for _ in range(20):
    try:
        rumi.read(broken, header, threads=threads)
    except rumi.CodecError as error:
        assert "frame " in str(error)
    else:
        raise SystemExit("samples")
""",
        path,
        threads,
    )


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, "2", [1]])
def test_wrong_threads(large, wrong):
    path, header = large
    error = TypeError if isinstance(wrong, (bool, float, str, list)) else ValueError
    for window in (None, (0, 0, 1, 1)):
        with pytest.raises(error, match="threads"):
            rumi.read(path, header, window=window, threads=wrong)
        with pytest.raises(error, match="threads"):
            rumi.open(path, header).read(window=window, threads=wrong)


def test_the_number_of_threads(monkeypatch):
    assert workers.resolve_threads(None) == workers.cpu_count() >= 1
    assert workers.resolve_threads(3) == 3
    monkeypatch.setenv("RUMI_NUM_THREADS", "5")
    assert workers.resolve_threads(None) == 5
    # The argument goes before the variable.
    assert workers.resolve_threads(2) == 2
    monkeypatch.setenv("RUMI_NUM_THREADS", "1000000")
    assert workers.resolve_threads(None) == workers.resolve_threads(10**9) <= 1024


@pytest.mark.parametrize("value", ["", "0", "-1", "1.5", "two", " ", "1 2", "0x2", "1e1"])
def test_a_wrong_number_of_threads_in_the_environment(monkeypatch, value):
    monkeypatch.setenv("RUMI_NUM_THREADS", value)
    with pytest.raises(ValueError, match="RUMI_NUM_THREADS") as caught:
        workers.resolve_threads(None)
    assert repr(value) in str(caught.value)
    assert workers.resolve_threads(2) == 2


def test_a_wrong_number_in_the_environment_stops_a_read(large, monkeypatch, needs_geozl):
    path, header = large
    monkeypatch.setenv("RUMI_NUM_THREADS", "many")
    with pytest.raises(ValueError, match="RUMI_NUM_THREADS"):
        rumi.read(path, header)


@pytest.mark.parametrize("value", ["", "zstd", "OPENZL", "geozl ", "0"])
def test_a_wrong_backend_in_the_environment(monkeypatch, value):
    monkeypatch.setenv("RUMI_BACKEND", value)
    for window in (None, (0, 0, 1, 1)):
        with pytest.raises(ValueError, match="RUMI_BACKEND") as caught:
            rumi.read(*FILES[0], window=window)
        assert repr(value) in str(caught.value)
        for name in ("auto", "openzl", "geozl"):
            assert name in str(caught.value)


def test_backend_geozl_where_it_is_absent():
    data = FILES[0][0]
    oracle.run_python(
        """
import os, sys
sys.modules["geozl"] = None
import rumi
from rumi import backends
assert not backends.geozl_available()
assert backends.versions()["geozl"] is None
data = bytes.fromhex(sys.argv[1])
assert rumi.read(data).shape == (3, 25, 40)
os.environ["RUMI_BACKEND"] = "geozl"
try:
    rumi.read(data)
except rumi.UnsupportedError as error:
    assert "pip install" in str(error) and "geozl" in str(error)
else:
    raise SystemExit("read without geozl")
os.environ["RUMI_BACKEND"] = "openzl"
assert rumi.read(data).shape == (3, 25, 40)
""",
        data.hex(),
    )


def test_every_backend_is_told():
    versions = backends.versions()
    assert versions.keys() == {"openzl", "geozl"}
    assert versions["openzl"]
    assert backends.geozl_available() is (versions["geozl"] is not None)
    for wrong in ("", "zstd"):
        with pytest.raises(ValueError):
            Decoder(wrong)


GEOZL = oracle.golden_vectors("geozl")


@pytest.mark.parametrize("vector", GEOZL, ids=[vector["name"] for vector in GEOZL])
def test_frames_of_geozl(vector, monkeypatch, needs_geozl):
    path = oracle.GOLDEN / f"{vector['name']}.rumi"
    expected = np.load(path.with_suffix(".npy"))
    blob = path.with_suffix(".blob").read_bytes()
    for name in ("auto", "geozl"):
        monkeypatch.setenv("RUMI_BACKEND", name)
        for header in (None, blob):
            assert oracle.same_bits(rumi.read(path, header), expected)
            found = rumi.read(path, header, bands=[2, 0], window=(30, 30, 40, 50))
            assert oracle.same_bits(found, expected[[2, 0], 30:70, 30:80])
    monkeypatch.setenv("RUMI_BACKEND", "openzl")
    for header in (None, blob):
        with pytest.raises(UnsupportedError, match=r"pip install 'rumi\[geozl\]'") as caught:
            rumi.read(path, header)
        assert "frame 0 (row 0, col 0, band 0)" in str(caught.value)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_frames_of_geozl_where_it_is_absent():
    path = oracle.GOLDEN / f"{GEOZL[0]['name']}.rumi"
    oracle.run_python(
        """
import sys
sys.modules["geozl"] = None
import rumi
for _ in range(2):
    try:
        rumi.read(sys.argv[1])
    except rumi.UnsupportedError as error:
        assert "pip install 'rumi[geozl]'" in str(error) and sys.argv[1] in str(error), error
    else:
        raise SystemExit("samples")
""",
        path,
    )


def test_both_kinds_of_files_in_turn(needs_geozl):
    """A thread that met a file of geozl reads the others as before."""
    path = oracle.GOLDEN / f"{GEOZL[0]['name']}.rumi"
    expected = np.load(path.with_suffix(".npy"))
    for _ in range(3):
        assert oracle.same_bits(rumi.read(path), expected)
        assert oracle.same_bits(rumi.read(FILES[0][0]), VALUES)


# --- Threads of the caller


@pytest.mark.parametrize("threads", [1, 2])
def test_many_threads_of_the_caller(large, threads):
    path, header = large
    windows = [(7 * i % 384, 13 * i % 384, 128, 100 + i % 20) for i in range(48)]

    def work(window):
        return rumi.read(path, header, window=window, threads=threads)

    with ThreadPoolExecutor(8) as pool:
        for window, found in zip(windows, pool.map(work, windows), strict=True):
            assert np.array_equal(found, oracle.numpy_window(LARGE, None, window))


def test_errors_in_many_threads_of_the_caller(large):
    """Half of the sources are broken, all of the others are read."""
    oracle.run_python(
        """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import rumi
header = rumi.index(sys.argv[1])
with open(sys.argv[1], "rb") as file:
    data = file.read()
right = rumi.read(data, header, threads=1)
broken = bytearray(data)
broken[header.offset(0) + 30] ^= 0xFF
def work(number):
    try:
        return np.array_equal(rumi.read((data, broken)[number % 2], header, threads=2), right)
    except rumi.CodecError:
        return "error"
with ThreadPoolExecutor(6) as pool:
    outcomes = list(pool.map(work, range(24)))
assert outcomes == [True, "error"] * 12, outcomes
""",
        large[0],
    )


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("with_header", [True, False], ids=["blob", "index"])
def test_an_error_lets_go_of_its_source(large, threads, with_header):
    """Without the garbage collector, which could not release a buffer in use without noise."""
    oracle.run_python(
        """
import gc, sys, weakref
import rumi
class Buffer(bytearray):
    pass
gc.disable()
header = rumi.index(sys.argv[1])
for _ in range(5):
    with open(sys.argv[1], "rb") as file:
        source = Buffer(file.read())
    for index in range(header.frame_count):
        source[header.offset(index) + header.byte_count(index) // 2] ^= 0x55
    alive = weakref.ref(source)
    try:
        rumi.read(source, header if sys.argv[3] == "True" else None, threads=int(sys.argv[2]))
    except rumi.CodecError:
        pass
    else:
        raise SystemExit("samples")
    del source
    assert alive() is None, "the error is part of a cycle"
""",
        large[0],
        threads,
        with_header,
    )


@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_a_counter_stops_for_good(large, times, needs_geozl):
    """Several threads may fail at once, and each says stop."""
    oracle.run_python(
        """
import os, sys
import numpy as np
import rumi
from rumi import backends
from rumi._core import Counter, Decoder, Plan, Store, Target
assert backends.geozl_available()
plan = Plan(rumi.index(sys.argv[1]))
out = np.zeros(plan.shape, np.uint16)
counter = Counter()
for _ in range(int(sys.argv[2])):
    counter.stop()
store = Store.open_path(os.fsencode(sys.argv[1]))
Decoder("geozl").decode_shared(plan, store, Target(out, 2), counter)
assert not out.any()
""",
        large[0],
        times,
    )


def test_only_geozl_shares_a_plan(large):
    path, header = large
    plan = Plan(header)
    target = Target(np.zeros(plan.shape, np.uint16), 2)
    store = Store.open_path(os.fsencode(path))
    for name in ("openzl", "auto"):
        with pytest.raises(ValueError, match="GIL"):
            Decoder(name).decode_shared(plan, store, target, Counter())


def test_threads_end_with_the_process(tmp_path):
    """A program that read with threads ends by itself, also in the middle of one."""
    path = tmp_path / "a.rumi"
    rumi.write(path, LARGE, tile_size=128, codec="zstd")
    result = oracle.run_python(
        """
import sys, threading
import rumi
rumi.read(sys.argv[1], threads=4)
threading.Thread(target=lambda: [rumi.read(sys.argv[1], threads=2) for _ in range(5)]).start()
""",
        path,
        timeout=60,
    )
    assert "Traceback" not in result.stderr


# --- Sizes and costs


@pytest.fixture
def sparse(tmp_path):
    """C29: five frames of 4 GiB that are holes, and a real one beyond 20 GiB."""
    values = oracle.ramp(1, 16, 16, np.uint16)
    frame = oracle.frame_of(values[0])
    fields = oracle.fields_of((1, 16, 96), TILE)
    counts = [2**32 - 1] * 5 + [len(frame)]
    offsets = oracle.offsets_of(1, counts)
    path = tmp_path / "sparse.rumi"
    with path.open("wb") as file:
        file.write(oracle.lay_out(oracle.tags_of(fields, counts)))
        try:
            file.seek(offsets[5])
            file.write(frame)
        except OSError as error:
            pytest.skip(f"no sparse file of 20 GiB here: {error}")
    yield path, oracle.blob_with(fields, counts), values, offsets
    path.unlink()


def test_a_frame_beyond_16_gib(backend, sparse):
    path, blob, values, offsets = sparse
    assert offsets[5] > 2**34
    assert path.stat().st_size == offsets[5] + len(oracle.frame_of(values[0]))
    assert bytes(rumi.index(path)) == blob
    header = Header(blob)
    assert header.offsets.tolist() == offsets
    for given_header in (None, blob):
        found = rumi.read(path, given_header, window=(0, 80, 16, 16))
        assert oracle.same_bits(found, values)
    assert oracle.same_bits(rumi.open(path)[:, 3:9, 85:90], values[:, 3:9, 5:10])


def test_a_hole_is_no_frame(backend, sparse):
    """Nothing but zeros where a frame should be: an error, without 4 GiB of memory."""
    path, blob, _, _ = sparse
    script = """
import resource, sys
from pathlib import Path
import rumi
rumi.read(sys.argv[3])
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
try:
    rumi.read(sys.argv[1], bytes.fromhex(sys.argv[2]), window=(0, 64, 1, 1))
except MemoryError:
    pass
except rumi.RumiError as error:
    assert "frame 4 (row 0, col 4, band 0)" in str(error), error
else:
    raise SystemExit("samples")
"""
    oracle.run_python(
        script,
        path,
        blob.hex(),
        write_good(path.with_name("good.rumi")),
        environment={"RUMI_BACKEND": backend},
    )


@pytest.mark.parametrize("route", ["read", "open", "index", "read_many"])
def test_a_header_that_claims_much_is_compared_with_the_file_first(tmp_path, route):
    """C24: 28 bytes that describe 67 million frames, beside a file of 7 kB.

    Its size tells them apart before anything is planned or allocated.
    """
    oracle.run_python(
        """
import resource, sys, time
from pathlib import Path
import rumi
path, blob, route = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3]
call = {
    "read": lambda header: rumi.read(path, header),
    "open": lambda header: rumi.open(path, header).read(),
    "index": lambda header: rumi.open(path, header)[0],
    "read_many": lambda header: rumi.read_many([path], [header]),
}[route]
call(rumi.index(path))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (50 << 20),) * 2)
start = time.perf_counter()
try:
    call(blob)
except rumi.StaleHeaderError as error:
    assert path in str(error)
else:
    raise SystemExit("samples")
assert time.perf_counter() - start < 0.1
""",
        write_good(tmp_path / "good.rumi"),
        oracle.blob_of(oracle.fields_of((1, 2**13, 2**13), (1, 1), count_min=1)).hex(),
        route,
    )


def test_memory_of_a_chip_read_does_not_grow(large):
    path, header = large
    for _ in range(50):
        rumi.read(path, header, window=(100, 100, 60, 60))
    gc.collect()
    tracemalloc.start()
    for _ in range(300):
        rumi.read(path, header, window=(100, 100, 60, 60))
        rumi.read(path, window=(1, 1, 1, 1))
    gc.collect()
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 100_000
    assert peak < 3 * 60 * 60 * 2 * 3 + 12 * 3 * header.byte_counts.max() + 500_000


def test_a_masked_output_is_refused():
    """Its mask would go on hiding what was read."""
    data, blob = FILES[0]
    out = np.ma.masked_equal(np.zeros(VALUES.shape, VALUES.dtype), 0)
    with pytest.raises(TypeError, match="out: .*mask"):
        rumi.read(data, blob, out=out)
    assert out.mask.all()
