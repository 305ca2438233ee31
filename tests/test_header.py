"""The header blob: every refusal, every location, against the oracle and the Kaitai parser."""

import array
import copy
import json
import pickle
import re
import struct
import time
import tracemalloc

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kaitaistruct import KaitaiStructError

import rumi
from rumi import Header, HeaderError, RumiError, TruncatedError
from rumi._core import BlobHeader, Plan, frame_data_offset, serialise
from rumi._generated.constants import CLAUSES
from rumi._generated.rumi_header import RumiHeader
from rumi.encodings import from_pair

SHAPE, TILE = (3, 25, 40), (8, 16)
FIELDS = oracle.fields_of(SHAPE, TILE)
COUNTS = oracle.counts_for(36)
BLOB = oracle.blob_with(FIELDS, COUNTS)


@st.composite
def images(draw, most_frames=1500):
    """Fields and byte counts of an image, checkpoints (every 512 frames) included."""
    tile = (draw(st.integers(1, 65535)), draw(st.integers(1, 65535)))
    unit = draw(st.sampled_from([0, 1]))
    bands = draw(st.integers(1, 9))
    per_position = bands if unit == 0 else 1
    down = draw(st.integers(1, max(1, most_frames // per_position)))
    across = draw(st.integers(1, max(1, most_frames // per_position // down)))
    height = draw(st.integers((down - 1) * tile[0] + 1, down * tile[0]))
    width = draw(st.integers((across - 1) * tile[1] + 1, across * tile[1]))
    pair = draw(st.sampled_from(list(oracle.DTYPES)))
    fields = oracle.fields_of((bands, height, width), tile, pair, unit)
    number = oracle.frame_count(fields)
    bits = draw(st.integers(0, 32))
    smallest = draw(st.integers(1, 2**32 - 2**bits if bits < 32 else 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    residuals = rng.integers(0, 2**bits, size=number, dtype=np.uint64)
    counts = [smallest + min(int(residual), 2**32 - 1 - smallest) for residual in residuals]
    return fields, counts


def kaitai_byte_count(parsed, index):
    return RumiHeader.ByteCount(index, parsed._io, None, parsed).value


def kaitai_offset(parsed, index):
    return RumiHeader.FrameOffset(index, parsed._io, None, parsed).value


# --- Fields and locations


@given(images())
@settings(max_examples=150)
def test_fields_and_locations_agree_with_both_oracles(case):
    fields, counts = case
    blob = oracle.blob_with(fields, counts)
    header = Header(blob)
    kaitai = RumiHeader.from_bytes(blob)
    for name in oracle.NAMES[1:]:
        assert getattr(header, name) == oracle.parse(blob)[0][name], name
        assert getattr(header, name) == int(getattr(kaitai, name)), name
    bands = fields["samples_per_pixel"]
    number = len(counts)
    offsets = oracle.offsets_of(bands, counts)
    assert header.frame_count == kaitai.frame_count == number
    assert (header.tiles_across, header.tiles_down) == (kaitai.tiles_across, kaitai.tiles_down)
    assert header.base_frame_offset == kaitai.base_frame_offset == offsets[0]
    assert header.file_size == offsets[-1] + counts[-1]
    assert header.byte_counts.tolist() == counts
    assert header.offsets.tolist() == offsets
    for index in {0, number // 3, number // 2, number - 1, *range(510, min(number, 515))}:
        assert header.byte_count(index) == counts[index] == kaitai_byte_count(kaitai, index)
        assert header.offset(index) == offsets[index]
    assert kaitai_offset(kaitai, number // 2) == offsets[number // 2]
    assert bytes(header) == blob
    assert len(header) == len(blob)


@pytest.mark.parametrize("number", [1, 2, 511, 512, 513, 1023, 1024, 1025, 1537, 5000])
@pytest.mark.parametrize("spread", [1, 2, 300, 2**31])
def test_every_offset_across_the_checkpoints(number, spread):
    fields = oracle.fields_of((1, 1, number), (1, 1))
    counts = oracle.counts_for(number, spread=spread)
    header = Header(oracle.blob_with(fields, counts))
    expected = oracle.offsets_of(1, counts)
    assert [header.offset(index) for index in range(number)] == expected
    assert [header.byte_count(index) for index in range(number)] == counts
    assert header.offsets.tolist() == expected
    assert header.file_size == expected[-1] + counts[-1]


@pytest.mark.parametrize("bits", range(33))
def test_every_width(bits):
    counts = [7 + (2**bits - 1) * (i % 4) // 3 for i in range(36)]
    counts = [min(count, 2**32 - 1) for count in counts]
    header = Header(oracle.blob_with(FIELDS, counts))
    assert header.count_bits == bits
    assert header.byte_counts.tolist() == counts
    assert header.offsets.tolist() == oracle.offsets_of(3, counts)


def test_what_a_header_says_in_pixels():
    header = Header(BLOB)
    assert header.shape == (3, 25, 40)
    assert header.tile_shape == (8, 16)
    assert header.dtype == np.dtype(np.uint16)
    assert header.unit == "tile"
    assert (header.tiles_down, header.tiles_across) == (4, 3)
    assert header.encoding is from_pair(1, 16)
    assert header.version == 1
    text = repr(header)
    for part in ("3 x 25 x 40", "uint16", "8 x 16", "tile", "36"):
        assert part in text
    assert Header(oracle.blob_with(FIELDS | {"frame_unit": 1}, COUNTS[:12])).unit == "cell"


@pytest.mark.parametrize("pair", oracle.DTYPES, ids=oracle.PAIR_IDS)
def test_dtype_of_every_pair(pair):
    header = Header(oracle.blob_with(oracle.fields_of(SHAPE, TILE, pair), COUNTS))
    assert header.dtype == oracle.DTYPES[pair]
    assert header.itemsize == oracle.DTYPES[pair].itemsize


def test_arrays_are_new_and_of_the_promised_types():
    header = Header(BLOB)
    for name, dtype in (("byte_counts", np.uint32), ("offsets", np.uint64)):
        first, second = getattr(header, name), getattr(header, name)
        assert first.dtype == dtype
        assert first.flags.owndata
        first[:] = 0
        assert second.all()
        assert getattr(header, name).all()
    with pytest.raises(ValueError, match="36 frames"):
        header.fill_byte_counts(np.empty(35, np.uint32))
    with pytest.raises(ValueError, match="36 frames"):
        header.fill_offsets(np.empty(37, np.uint64))


@pytest.mark.parametrize(
    ("shape", "tile", "unit", "size"),
    [
        ((3, 100, 90), (16, 32), 0, 16 * 32 * 2),
        ((3, 100, 90), (16, 32), 1, 3 * 16 * 32 * 2),
        # A tile larger than the image is cut to it.
        ((1, 5, 7), (512, 512), 0, 5 * 7 * 2),
        ((65_535, 70_000, 70_000), (65_535, 65_535), 1, 65_535**3 * 2),
    ],
)
def test_frame_bytes_is_the_decoded_size_of_a_whole_frame(shape, tile, unit, size):
    fields = oracle.fields_of(shape, tile, unit=unit)
    counts = oracle.counts_for(len(oracle.positions(fields)))
    assert Header(oracle.blob_with(fields, counts)).frame_bytes == size


@pytest.mark.parametrize("unit", [0, 1], ids=["tile", "cell"])
def test_frame_index_and_position_are_inverse(unit):
    fields = oracle.fields_of(SHAPE, TILE, unit=unit)
    places = oracle.positions(fields)
    header = Header(oracle.blob_with(fields, oracle.counts_for(len(places))))
    for index, (row, col, band) in enumerate(places):
        assert header.frame_position(index) == (row, col, band)
        assert header.frame_index(row, col, band or 0) == index
        assert header.frame_index(np.uint8(row), np.int64(col), np.uint16(band or 0)) == index
    if unit == 1:
        # All bands of a cell share its frame.
        assert {header.frame_index(2, 1, band) for band in range(3)} == {7}
    assert header.frame_index(1, 2) == places.index((1, 2, None if unit else 0))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((4, 0, 0), IndexError),
        ((0, 3, 0), IndexError),
        ((0, 0, 3), IndexError),
        ((-1, 0, 0), IndexError),
        ((0, -1, 0), IndexError),
        ((0, 0, -1), IndexError),
        ((2**70, 0, 0), IndexError),
        ((True, 0, 0), TypeError),
        ((0, 1.0, 0), TypeError),
        ((0, 0, "0"), TypeError),
        ((0, 0, np.True_), TypeError),
        ((0, 0, None), TypeError),
    ],
)
def test_frame_index_refuses(arguments, error):
    for unit in (0, 1):
        fields = oracle.fields_of(SHAPE, TILE, unit=unit)
        header = Header(oracle.blob_with(fields, oracle.counts_for(oracle.frame_count(fields))))
        with pytest.raises(error):
            header.frame_index(*arguments)


@pytest.mark.parametrize("method", ["byte_count", "offset", "frame_position"])
def test_a_frame_is_an_integer_inside_the_file(method):
    call = getattr(Header(BLOB), method)
    assert call(5) == call(np.int8(5)) == call(np.uint64(5)) == call(np.array(5))
    for wrong in (36, -1, 2**64, -(2**64), np.int64(36)):
        with pytest.raises(IndexError, match=r"0\.\.35"):
            call(wrong)
    for wrong in (True, np.True_, 1.0, np.float64(1), "1", None, [1]):
        with pytest.raises(TypeError):
            call(wrong)


def test_ranges_are_the_frames_of_a_window():
    header = Header(BLOB)
    offsets = oracle.offsets_of(3, COUNTS)
    for bands, window in ((None, None), ([2, 0], (7, 15, 2, 2)), (1, (24, 39, 1, 1))):
        chosen = [0, 1, 2] if bands is None else np.atleast_1d(bands).tolist()
        frames = oracle.frames_touched(FIELDS, chosen, window or (0, 0, 25, 40))
        found = header.ranges(bands, window)
        assert [part.dtype for part in found] == [np.int64, np.int64]
        assert found[0].tolist() == [offsets[index] for index in frames]
        assert found[1].tolist() == [COUNTS[index] for index in frames]
    with pytest.raises(ValueError, match="25 x 40"):
        header.ranges(window=(20, 0, 10, 1))
    with pytest.raises(IndexError):
        header.ranges(3)


# --- Refusals

REFUSED = [
    ("magic", 0x4C4F5645, "0x45564F4C", "0x4C4F5645"),
    ("magic", 0, "0x45564F4C", "0x0"),
    ("version", 0, "1", "0"),
    ("version", 2, "1", "2"),
    ("version", 256, "1", "256"),
    ("image_width", 0, "at least 1", "0"),
    ("image_length", 0, "at least 1", "0"),
    ("tile_width", 0, "at least 1", "0"),
    ("tile_length", 0, "at least 1", "0"),
    ("samples_per_pixel", 0, "at least 1", "0"),
    ("frame_unit", 2, "0", "2"),
    ("frame_unit", 255, "0", "255"),
    ("count_min", 0, "at least 1", "0"),
    ("count_bits", 33, "32", "33"),
    ("count_bits", 255, "32", "255"),
]


@pytest.mark.parametrize(("field", "value", "expected", "found"), REFUSED)
def test_a_wrong_field_is_named_with_its_place(field, value, expected, found):
    blob = oracle.blob_of(FIELDS | {field: value}, bytes(5000))
    with pytest.raises(HeaderError) as caught:
        Header(blob)
    text = str(caught.value)
    assert field in text
    assert re.search(rf"byte {oracle.FIELD_OFFSETS[field]}\b", text)
    assert f"{expected}" in text.partition("expected ")[2].partition(", found")[0]
    assert text.endswith(f"found {found} ({CLAUSES[field]})")
    assert "\n" not in text
    assert isinstance(caught.value, RumiError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("sample_format", range(256))
def test_every_pair_that_is_not_listed_is_refused(sample_format):
    for bits in range(256):
        blob = oracle.blob_of(FIELDS | {"sample_format": sample_format, "bits_per_sample": bits})
        if (sample_format, bits) in oracle.DTYPES:
            assert Header(blob).sample_format == sample_format
            continue
        with pytest.raises(HeaderError, match=rf"found \({bits}, {sample_format}\)") as caught:
            Header(blob)
        assert "bits_per_sample" in str(caught.value)
        assert "byte 20" in str(caught.value)


def test_every_shorter_blob_is_truncated():
    for length in range(len(BLOB)):
        with pytest.raises(TruncatedError) as caught:
            Header(BLOB[:length])
        assert f"found {length}" in str(caught.value)
        assert str(28 if length < 28 else len(BLOB)) in str(caught.value)


@pytest.mark.parametrize("counts", [COUNTS, [100] * 36], ids=["packed", "constant"])
@pytest.mark.parametrize("more", [1, 2, 8, 1000])
def test_bytes_after_the_blob_are_refused(counts, more):
    blob = oracle.blob_with(FIELDS, counts)
    with pytest.raises(HeaderError, match=f"{len(blob)} bytes.*found {len(blob) + more}"):
        Header(blob + bytes(more))


def test_every_set_unused_bit_is_refused():
    """36 residuals of 7 bits leave 4 bits of the last byte unused."""
    counts = [100 + (i * 29) % 128 for i in range(36)]
    counts[:2] = [100, 227]
    blob = oracle.blob_with(FIELDS, counts)
    assert (36 * 7) % 8 == 4
    assert blob[27] == 7
    for bit in range(8):
        changed = blob[:-1] + bytes([blob[-1] ^ (1 << bit)])
        if bit < 4:
            assert Header(changed).byte_count(0) == 100
            continue
        with pytest.raises(HeaderError, match="unused") as caught:
            Header(changed)
        # Field, offset, expected and found, as for every other refusal.
        text = str(caught.value)
        assert f"byte {len(blob) - 1}" in text
        assert "expected" in text
        assert "found" in text


def test_count_min_that_no_frame_has_is_refused():
    smallest = min(COUNTS)
    residuals = [count - (smallest - 1) for count in COUNTS]
    width = len(f"{max(residuals):b}")
    blob = oracle.blob_of(
        FIELDS | {"count_min": smallest - 1, "count_bits": width},
        oracle.packed_bits(residuals, width),
    )
    assert oracle.parse(blob)[1] == COUNTS
    with pytest.raises(HeaderError, match=rf"count_min \(byte 23\).*found {smallest - 1}"):
        Header(blob)


@pytest.mark.parametrize("wider", [1, 2, 10])
def test_count_bits_wider_than_needed_is_refused(wider):
    smallest, width, _ = oracle.pack(COUNTS)
    width += wider
    blob = oracle.blob_of(
        FIELDS | {"count_min": smallest, "count_bits": width},
        oracle.packed_bits([count - smallest for count in COUNTS], width),
    )
    assert oracle.parse(blob)[1] == COUNTS
    with pytest.raises(
        HeaderError, match=rf"count_bits \(byte 27\): expected {width - wider}\b.*found {width}"
    ):
        Header(blob)


@pytest.mark.parametrize("bits", [1, 8, 32])
def test_equal_counts_in_bits_are_refused(bits):
    size = -(-36 * bits // 8)
    with pytest.raises(HeaderError, match=r"count_bits \(byte 27\): expected 0"):
        Header(oracle.blob_of(FIELDS | {"count_bits": bits}, bytes(size)))
    single = oracle.fields_of((1, 8, 8), (8, 8))
    with pytest.raises(HeaderError, match=r"count_bits \(byte 27\): expected 0"):
        Header(oracle.blob_of(single | {"count_bits": bits}, bytes(-(-bits // 8))))


def test_a_count_beyond_32_bits_is_refused():
    fields = oracle.fields_of((1, 1, 600), (1, 1), count_min=2**32 - 2)
    for large, allowed in ((1, True), (2, False), (3, False)):
        width = len(f"{large:b}")
        packed = oracle.packed_bits([0] * 599 + [large], width)
        blob = oracle.blob_of(fields | {"count_bits": width}, packed)
        if allowed:
            assert Header(blob).byte_count(599) == 2**32 - 1
            continue
        with pytest.raises(HeaderError, match=f"frame 599: expected at most {2**32 - 1}"):
            Header(blob)


@given(
    st.integers(0, len(BLOB) - 1), st.integers(1, 255), st.binary(max_size=3), st.integers(0, 40)
)
@settings(max_examples=500)
def test_a_changed_blob_is_refused_or_still_canonical(position, mask, more, cut):
    """Whatever is accepted, both oracles accept, and writing it again gives the same bytes."""
    changed = oracle.replaced(BLOB, position, bytes([BLOB[position] ^ mask])) + more
    changed = changed[: len(changed) - cut]
    header, error = oracle.attempt(RumiError, Header, changed)
    if error is not None:
        assert isinstance(error, ValueError)
        assert "\n" not in str(error)
        return
    RumiHeader.from_bytes(changed)
    assert bytes(header) == changed
    fields, counts = oracle.parse(changed)
    assert oracle.blob_with(fields, counts) == changed


@given(images(most_frames=60), st.data())
def test_what_kaitai_refuses_is_refused(case, data):
    blob = oracle.blob_with(*case)
    for _ in range(3):
        position = data.draw(st.integers(0, len(blob) - 1))
        blob = oracle.replaced(blob, position, bytes([data.draw(st.integers(0, 255))]))
    try:
        RumiHeader.from_bytes(blob)
    except (KaitaiStructError, EOFError, ValueError):
        with pytest.raises(RumiError):
            Header(blob)


@pytest.mark.parametrize("value", [None, 5, 2.5, "x", "4C4F5645", [1, 2], (1,), object(), {}])
def test_a_blob_is_bytes_like(value):
    with pytest.raises(TypeError):
        Header(value)


def test_a_header_takes_one_argument():
    with pytest.raises(TypeError):
        Header()
    with pytest.raises(TypeError):
        Header(BLOB, "cell")
    with pytest.raises(TypeError):
        Header(BLOB, frame_unit="cell")


# --- Kinds of buffers


def test_every_kind_of_buffer():
    class Buffer(bytearray):
        pass

    spread = bytearray(2 * len(BLOB))
    spread[::2] = BLOB
    buffers = [
        bytearray(BLOB),
        Buffer(BLOB),
        memoryview(BLOB),
        memoryview(bytearray(BLOB)),
        memoryview(b"\0" + BLOB + b"\0")[1:-1],
        memoryview(spread)[::2],
        np.frombuffer(BLOB, np.uint8),
        array.array("B", BLOB),
    ]
    for buffer in buffers:
        header = Header(buffer)
        assert bytes(header) == BLOB
        assert header.byte_counts.tolist() == COUNTS


def test_a_header_does_not_follow_the_buffer():
    buffer = bytearray(BLOB)
    header = Header(buffer)
    buffer[:] = bytes(len(buffer))
    buffer.clear()
    assert bytes(header) == BLOB
    assert header.offsets.tolist() == oracle.offsets_of(3, COUNTS)


def test_every_alignment():
    for shift in range(16):
        view = memoryview(bytes(shift) + BLOB)[shift:]
        assert Header(view).byte_counts.tolist() == COUNTS


# --- Value semantics


def test_equality_and_hash_are_those_of_the_bytes():
    one, two = Header(BLOB), Header(bytearray(BLOB))
    other = Header(oracle.blob_with(FIELDS | {"sample_format": 2}, COUNTS))
    assert one == two
    assert (one != two) is False
    assert hash(one) == hash(two)
    assert one != other
    assert len({one, two, other}) == 2
    assert one != BLOB
    assert one != None  # noqa: E711
    assert Header(one) == one


def test_a_header_cannot_be_changed():
    header = Header(BLOB)
    for name in (*oracle.NAMES[1:], "frame_count", "base_frame_offset", "shape", "anything"):
        with pytest.raises(AttributeError):
            setattr(header, name, 1)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(protocol):
    header = Header(BLOB)
    header.offset(20)
    data = pickle.dumps(header, protocol)
    assert len(data) < len(BLOB) * 2 + 200
    again = pickle.loads(data)
    assert type(again) is Header
    assert again == header
    assert again.offset(20) == header.offset(20)


def test_a_pickle_is_small():
    assert len(pickle.dumps(Header(BLOB))) < len(BLOB) + 100


def test_copies():
    header = Header(BLOB)
    assert copy.copy(header) == header
    assert copy.deepcopy(header) == header


class Named(Header):
    """A subclass, at the top of the module so that it pickles."""

    __slots__ = ("label",)

    @property
    def pixels(self):
        return self.image_width * self.image_length


def test_a_subclass_is_a_header(tmp_path):
    named = Named(BLOB)
    named.label = "x"
    assert named.pixels == 1000
    assert named == Header(BLOB)
    assert hash(named) == hash(Header(BLOB))
    assert type(Header(named)) is Header
    assert type(Named(Header(BLOB))) is Named
    again = pickle.loads(pickle.dumps(named))
    assert type(again) is Named
    assert again == named
    values = oracle.ramp(*SHAPE, dtype=np.uint16)
    header = rumi.write(tmp_path / "a.rumi", values, tile_size=TILE)
    assert np.array_equal(rumi.read(tmp_path / "a.rumi", Named(bytes(header))), values)
    assert np.array_equal(rumi.open(tmp_path / "a.rumi", Named(bytes(header)))[:], values)


def test_headers_feed_the_planner_only_as_headers():
    with pytest.raises(TypeError):
        Plan(BLOB)
    with pytest.raises(TypeError):
        Plan(None)
    assert Plan(BlobHeader(BLOB)).frame_count == 36


# --- Building


def build(counts, shape=SHAPE, tile=TILE, pair=(1, 16), unit="tile"):
    return Header.build(shape, tile, from_pair(*pair), unit, counts)


@given(images(most_frames=80))
def test_build_is_canonical(case):
    fields, counts = case
    shape = tuple(fields[name] for name in ("samples_per_pixel", "image_length", "image_width"))
    pair = fields["sample_format"], fields["bits_per_sample"]
    unit = ("tile", "cell")[fields["frame_unit"]]
    tile = fields["tile_length"], fields["tile_width"]
    for given_counts in (counts, np.array(counts), np.array(counts, dtype="<u4")):
        header = build(given_counts, shape, tile, pair, unit)
        assert bytes(header) == oracle.blob_with(fields, counts)


@pytest.mark.parametrize(
    "counts",
    [COUNTS[:35], [*COUNTS, 50], [100] * 35, [100] * 37, COUNTS[:1]],
    ids=["one less", "one more", "one less, equal", "one more, equal", "only one"],
)
def test_build_refuses_another_number_of_counts(counts):
    with pytest.raises(HeaderError):
        build(counts)


@pytest.mark.parametrize("wrong", [0, -1, 2**32, 2**40])
def test_build_refuses_a_count_that_is_no_count(wrong):
    with pytest.raises(ValueError, match=r"1 to 4294967295|greater than zero"):
        build([wrong, *COUNTS[1:]])


def test_build_does_not_cut_fractions():
    with pytest.raises((TypeError, ValueError)):
        build([count + 0.5 for count in COUNTS])


def test_build_refuses_what_does_not_fit_its_field():
    for arguments in (
        {"shape": (65536, 25, 40)},
        {"shape": (3, 2**32, 40)},
        {"shape": (3, 25, 2**32)},
        {"shape": (3, 25, -1)},
        {"tile": (8, 65536)},
        {"tile": (65536, 16)},
        {"tile": (0, 16)},
        {"shape": (0, 25, 40)},
        {"unit": "band"},
        {"unit": 0},
        {"counts": []},
    ):
        with pytest.raises(ValueError):
            build(**({"counts": COUNTS} | arguments))


def test_serialise_lays_out_every_field():
    values = (0x01020304, 0x05060708, 0x090A, 0x0B0C, 0x0D0E, 0x0F, 0x10, 0x11, 0x12131415, 0x16)
    blob = serialise(*values, b"tail")
    assert blob[:6] == bytes.fromhex("4C4F56450100")
    assert blob[6:28] == struct.pack("<IIHHHBBBIB", *values)
    assert blob[28:] == b"tail"


# --- Sizes at the limits (C24, C29)


@pytest.mark.parametrize("bands", [1, 2, 4, 5, 6, 65535])
@pytest.mark.parametrize("unit", [0, 1], ids=["tile", "cell"])
def test_base_offset_at_the_border_of_inline_bands(bands, unit):
    fields = oracle.fields_of((bands, 1, 1), (1, 1), unit=unit)
    number = bands if unit == 0 else 1
    header = Header(oracle.blob_of(fields))
    assert header.frame_count == number
    assert header.base_frame_offset == oracle.base_offset(bands, number)
    assert frame_data_offset(number, bands) == oracle.base_offset(bands, number)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_base_offset_at_the_border_of_inline_frames(number):
    header = Header(oracle.blob_of(oracle.fields_of((1, 1, number), (1, 1))))
    assert header.frame_count == number
    assert header.base_frame_offset == oracle.base_offset(1, number)
    # By hand: 252 and 160, then 8 a frame from 2 on and 4 a frame from 3 on.
    assert header.base_frame_offset == {1: 412, 2: 428, 3: 448, 4: 460}[number]


def test_frame_data_offset_refuses():
    for bands in (0, -1, 65536, 2**70):
        with pytest.raises(ValueError, match="65535 bands"):
            frame_data_offset(1, bands)
    for number in (0, -1, 2**59 + 1, 2**64, 2**200):
        with pytest.raises(ValueError, match="frames"):
            frame_data_offset(number, 1)
    assert frame_data_offset(2**59, 1) == oracle.base_offset(1, 2**59)


# One of each: constant frames cost nothing, and what cannot be is refused.
CONSTANT = {
    "billions of tiles": oracle.fields_of((1, 2**16, 2**16), (1, 1)),
    "billions of cells": oracle.fields_of((65535, 2**16, 2**16), (1, 1), unit=1),
    "as many frames as a file may have": oracle.fields_of((1, 2**30, 2**29), (1, 1), count_min=1),
    "one large tile": oracle.fields_of((1, 1, 1), (65535, 65535)),
    "one large cell": oracle.fields_of((65535, 2**32 - 1, 1), (65535, 65535), unit=1),
}
TOO_MUCH = {
    "all there is": oracle.blob_of(
        oracle.fields_of((65535, 2**32 - 1, 2**32 - 1), (1, 1), count_min=2**32 - 1)
    ),
    "all cells": oracle.blob_of(
        oracle.fields_of((65535, 2**32 - 1, 2**32 - 1), (1, 1), unit=1, count_min=1)
    ),
    "large frames": oracle.blob_of(
        oracle.fields_of((1, 2**30, 2**29), (1, 1), count_min=2**32 - 1)
    ),
    "32 bits and no body": oracle.blob_of(
        oracle.fields_of((1, 2**16, 2**16), (1, 1), count_bits=32)
    ),
    "32 bits and most frames": oracle.blob_of(
        oracle.fields_of((1, 2**30, 2**29), (1, 1), count_bits=32)
    ),
    "1 bit and no body": oracle.blob_of(
        oracle.fields_of((65535, 2**32 - 1, 2**32 - 1), (1, 1), count_bits=1)
    ),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_frames_cost_nothing(name):
    fields = CONSTANT[name]
    start = time.perf_counter()
    tracemalloc.start()
    header = Header(oracle.blob_of(fields))
    last = header.frame_count - 1
    expected = header.base_frame_offset + last * fields["count_min"]
    assert header.offset(last) == expected
    assert header.byte_count(last) == fields["count_min"]
    assert header.file_size == expected + fields["count_min"]
    bottom, right = fields["image_length"] - 1, fields["image_width"] - 1
    offsets, counts = header.ranges([0], (bottom, right, 1, 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.perf_counter() - start < 0.1
    assert peak < 1 << 20
    assert offsets.tolist() == [
        header.offset(header.frame_index(header.tiles_down - 1, header.tiles_across - 1))
    ]
    assert counts.tolist() == [fields["count_min"]]
    pickle.loads(pickle.dumps(header))


def test_what_asks_for_too_much_is_refused_for_nothing():
    """C24: under 50 MB and 100 ms each, in a process that has no more memory."""
    result = oracle.run_python(
        """
import json, resource, sys, time
import rumi
from rumi import Header, RumiError
Header(bytes.fromhex(sys.argv[2]))
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (50 << 20),) * 2)
for name, blob in json.loads(sys.argv[1]).items():
    blob = bytes.fromhex(blob)
    start = time.perf_counter()
    try:
        Header(blob)
    except RumiError as error:
        text = str(error)
    else:
        raise SystemExit(f"{name}: accepted")
    seconds = time.perf_counter() - start
    assert seconds < 0.1, (name, seconds)
    assert "header blob" in text and chr(10) not in text, (name, text)
""",
        json.dumps({name: blob.hex() for name, blob in TOO_MUCH.items()}),
        BLOB.hex(),
    )
    assert result.returncode == 0


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_asks_for_too_much_says_what_was_found(name):
    with pytest.raises(RumiError) as caught:
        Header(TOO_MUCH[name])
    assert type(caught.value) in (HeaderError, TruncatedError)


def test_the_sum_of_counts_is_exact_beyond_32_bits():
    counts = [2**32 - 1] * 700 + [1]
    fields = oracle.fields_of((1, 1, 701), (1, 1))
    header = Header(oracle.blob_with(fields, counts))
    assert header.offset(700) == oracle.base_offset(1, 701) + 700 * (2**32 - 1)
    assert header.file_size == header.offset(700) + 1
    assert header.offsets.tolist() == oracle.offsets_of(1, counts)


def shortest(call, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.parametrize(
    ("shape", "tile", "window"),
    [
        ((1, 300, 300), (1, 1), (299, 299, 1, 1)),
        ((1, 300, 300), (1, 1), (100, 7, 16, 16)),
        ((3, 100_000, 50_000), (512, 512), (99_000, 49_000, 224, 224)),
        ((3, 100_000, 50_000), (512, 512), (99_999, 49_999, 1, 1)),
    ],
)
def test_planning_a_chip_of_many_frames_is_quick_and_small(shape, tile, window):
    """C29: less than 5 ms, and no object a frame."""
    fields = oracle.fields_of(shape, tile)
    counts = oracle.counts_for(oracle.frame_count(fields), spread=5000)
    header = Header(oracle.blob_with(fields, counts))
    offsets = oracle.offsets_of(shape[0], counts)
    found, sizes = header.ranges([0], window)
    rows = range(window[0] // tile[0], (window[0] + window[2] - 1) // tile[0] + 1)
    cols = range(window[1] // tile[1], (window[1] + window[3] - 1) // tile[1] + 1)
    across = oracle.tiles_along(shape[2], tile[1])
    frames = [(row * across + col) * shape[0] for row in rows for col in cols]
    assert found.tolist() == [offsets[index] for index in frames]
    assert sizes.tolist() == [counts[index] for index in frames]
    assert shortest(lambda: header.ranges([0], window)) < 0.005
    tracemalloc.start()
    Plan(header, [0], window)
    header.offset(len(counts) - 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000
