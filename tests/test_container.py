"""The file profile: the bytes before the frames, and one refusal for each breach of it."""

import struct
import time
import tracemalloc

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rumi
from rumi import FormatError, Header, RumiError, TruncatedError
from rumi.container import build_prefix, read_container
from rumi.georef import Georeferencing
from rumi.source import open_source

# Three bands, 2 x 3 grid positions, edge tiles cut: 18 frames.
SHAPE, TILE = (3, 25, 40), (16, 16)
FIELDS = oracle.fields_of(SHAPE, TILE)
COUNTS = [30 + 7 * (i % 5) for i in range(18)]
FRAMES = [bytes([i + 1]) * count for i, count in enumerate(COUNTS)]
FILE = oracle.file_with(FIELDS, FRAMES)
BLOB = oracle.blob_with(FIELDS, COUNTS)

# Five bands, so that BitsPerSample and SampleFormat stand outside the IFD.
FIVE = oracle.fields_of((5, 25, 40), (32, 32))
FIVE_COUNTS = [30 + i for i in range(10)]
FIVE_FILE = oracle.file_with(FIVE, [bytes([1]) * count for count in FIVE_COUNTS])


@pytest.fixture
def save(tmp_path):
    """Put bytes into a file and return its path."""

    def save(data, name="a.rumi"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return save


@pytest.fixture
def refusal(save):
    """The error of a file, which every route raises and which names the file in one line."""

    def refusal(data, kind=FormatError):
        path = save(data)
        texts = []
        for call in (rumi.index, rumi.read, rumi.open):
            with pytest.raises(kind) as caught:
                call(path)
            assert isinstance(caught.value, RumiError)
            text = str(caught.value)
            assert text.startswith(f"{path}: ")
            assert "\n" not in text
            texts.append(text.removeprefix(f"{path}: "))
        assert len(set(texts)) == 1
        with pytest.raises(kind, match="^<bytearray>: "):
            rumi.index(bytearray(data))
        return texts[0]

    return refusal


def assert_names(text, field, expected, found):
    """The parts of an error: which field, what should stand there, what does."""
    for part in (field, "expected", str(expected), "found", str(found)):
        assert part in text, text
    assert text.index("expected") < text.index("found"), text


def patched(data, tag, *, kind=None, count=None, value=None, number=None):
    """A file with one part of one IFD entry changed."""
    at = oracle.entry_at(tag)
    for new, shift, letter in (
        (number, 0, "H"),
        (kind, 2, "H"),
        (count, 4, "Q"),
        (value, 12, "Q"),
    ):
        if new is not None:
            data = oracle.replaced(data, at + shift, struct.pack(f"<{letter}", new))
    return data


# --- What is right


def test_the_oracle_writes_what_others_write():
    """The files that the tests break are right: this one another implementation wrote."""
    name = oracle.GOLDEN / "u8_five_bands"
    data, blob = (name.with_suffix(suffix).read_bytes() for suffix in (".rumi", ".blob"))
    fields, counts = oracle.parse(blob)
    assert oracle.lay_out(oracle.tags_of(fields, counts)) == data[: -sum(counts)]


@pytest.mark.parametrize("source", ["path", "bytes"])
@pytest.mark.parametrize(
    ("data", "blob"),
    [(FILE, BLOB), (FIVE_FILE, oracle.blob_with(FIVE, FIVE_COUNTS))],
    ids=["3 bands", "5 bands"],
)
def test_index_rebuilds_the_blob(save, source, data, blob):
    header = rumi.index(save(data) if source == "path" else data)
    assert type(header) is Header
    assert bytes(header) == blob


@st.composite
def images(draw):
    """Fields and byte counts of a small image."""
    tile = draw(st.integers(1, 65535)), draw(st.integers(1, 65535))
    bands = draw(st.integers(1, 8))
    unit = draw(st.sampled_from([0, 1]))
    height = draw(st.integers(1, min(4 * tile[0], 2**32 - 1)))
    width = draw(st.integers(1, min(4 * tile[1], 2**32 - 1)))
    pair = draw(st.sampled_from(list(oracle.DTYPES)))
    fields = oracle.fields_of((bands, height, width), tile, pair, unit)
    spread = draw(st.sampled_from([1, 2, 200]))
    return fields, oracle.counts_for(oracle.frame_count(fields), spread=spread)


@given(images())
def test_build_prefix_and_index_agree_with_the_oracle(case):
    fields, counts = case
    prefix = oracle.lay_out(oracle.tags_of(fields, counts))
    assert len(prefix) == oracle.base_offset(fields["samples_per_pixel"], len(counts))
    header = Header(oracle.blob_with(fields, counts))
    assert build_prefix(header, Georeferencing()) == prefix
    # With one band the two units are one layout, which is recorded as tile.
    unit = 0 if fields["samples_per_pixel"] == 1 else fields["frame_unit"]
    data = prefix + bytes(sum(counts))
    assert bytes(rumi.index(data)) == oracle.blob_with(fields | {"frame_unit": unit}, counts)


@pytest.mark.parametrize("bands", [1, 2, 4, 5, 65535])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_border_between_inline_and_outside(bands, number):
    for unit in (0, 1):
        fields = oracle.fields_of((bands, 1, number), (1, 1), (1, 8), unit)
        counts = oracle.counts_for(oracle.frame_count(fields))
        prefix = oracle.lay_out(oracle.tags_of(fields, counts))
        header = Header(oracle.blob_with(fields, counts))
        assert build_prefix(header, Georeferencing()) == prefix
        found = rumi.index(prefix + bytes(sum(counts)))
        assert found.offsets.tolist() == header.offsets.tolist()
        assert found.base_frame_offset == len(prefix)


@pytest.mark.parametrize(
    ("value", "keys", "matrix"),
    [
        (Georeferencing(), oracle.NO_CRS, oracle.NO_TRANSFORM),
        (
            Georeferencing(32718, (10.0, 0.5, 3e5, 0.25, -10.0, 8.5e6)),
            (*oracle.NO_CRS[:7], 1, *oracle.NO_CRS[8:12], 3072, 0, 1, 32718),
            (10.0, 0.5, 0, 3e5, 0.25, -10.0, 0, 8.5e6, *[0.0] * 7, 1.0),
        ),
        (
            Georeferencing(4326, (0.5, 0.0, -77.0, 0.0, -0.5, -12.0), "point"),
            (*oracle.NO_CRS[:7], 2, *oracle.NO_CRS[8:11], 2, 2048, 0, 1, 4326),
            (0.5, 0, 0, -76.75, 0, -0.5, 0, -12.25, *[0.0] * 7, 1.0),
        ),
    ],
    ids=["none", "projected", "geographic point"],
)
def test_georeferencing_stands_in_its_two_tags(value, keys, matrix):
    data = oracle.file_with(FIELDS, FRAMES, keys=keys, matrix=matrix)
    assert build_prefix(Header(BLOB), value) == data[: -sum(COUNTS)]
    found = read_container(open_source(data))
    assert found.georeferencing == value
    assert bytes(found.header) == BLOB


def test_a_single_band_is_recorded_as_tile():
    """Both layouts are the same file, so the blob that says cell belongs to it, too."""
    fields = oracle.fields_of((1, 25, 40), TILE)
    frames = FRAMES[:6]
    data = oracle.file_with(fields, frames)
    assert oracle.file_with(fields | {"frame_unit": 1}, frames) == data
    header = rumi.index(data)
    assert header.unit == "tile"
    cell = Header(oracle.blob_with(fields | {"frame_unit": 1}, COUNTS[:6]))
    assert cell.unit == "cell"
    assert cell.offsets.tolist() == header.offsets.tolist()
    assert build_prefix(cell, Georeferencing()) == build_prefix(header, Georeferencing())


@pytest.mark.parametrize("unit", [0, 1], ids=["tile", "cell"])
def test_the_frame_unit_follows_from_the_count(unit):
    fields = FIELDS | {"frame_unit": unit}
    counts = COUNTS[: oracle.frame_count(fields)]
    data = oracle.file_with(fields, FRAMES[: len(counts)])
    assert rumi.index(data).frame_unit == unit


def test_index_reads_no_frame(save):
    """Frames may be damaged: index looks at what stands before them and at the file's size."""
    path = save(FILE[: -sum(COUNTS)] + bytes(sum(COUNTS)))
    assert bytes(rumi.index(path)) == BLOB


@pytest.mark.parametrize("number", [300, 40_000])
def test_an_index_of_any_size(save, number):
    """Small ones take one read, large ones two."""
    fields = oracle.fields_of((1, 1, number), (1, 1), (1, 8))
    counts = oracle.counts_for(number, spread=3)
    data = oracle.file_with(fields, [bytes(count) for count in counts])
    assert bytes(rumi.index(save(data))) == oracle.blob_with(fields, counts)
    assert bytes(rumi.index(data)) == oracle.blob_with(fields, counts)


# --- Tags: order, number, types, counts


def test_swapped_entries(refusal):
    tags = oracle.tags_of(FIELDS, COUNTS)
    for first in range(10):
        order = list(range(11))
        order[first], order[first + 1] = order[first + 1], order[first]
        text = refusal(oracle.lay_out([tags[i] for i in order]) + b"".join(FRAMES))
        assert_names(text, oracle.TAG_NAMES[tags[first][0]], tags[first][0], tags[first + 1][0])


# ImageDescription, Compression, PlanarConfiguration, a GDAL tag, and the four
# georeferencing tags that the specification forbids by name.
FOREIGN = [
    (270, 3, [1]),
    (259, 3, [1]),
    (284, 3, [1]),
    (42113, 3, [48]),
    (33550, 12, [1.0, 1.0, 0.0]),
    (33922, 12, [0.0] * 6),
    (34736, 12, [1.0]),
    (34737, 3, [124]),
]


@pytest.mark.parametrize(("tag", "kind", "values"), FOREIGN, ids=[str(row[0]) for row in FOREIGN])
def test_an_extra_tag(refusal, tag, kind, values):
    tags = sorted([*oracle.tags_of(FIELDS, COUNTS), [tag, kind, values]])
    text = refusal(oracle.lay_out(tags) + b"".join(FRAMES))
    assert str(tag) in text
    for part in ("11 tags", "found 12", "rumi convert"):
        assert part in text


@pytest.mark.parametrize("tag", oracle.TAG_NAMES)
def test_a_missing_tag(refusal, tag):
    tags = [row for row in oracle.tags_of(FIELDS, COUNTS) if row[0] != tag]
    text = refusal(oracle.lay_out(tags) + b"".join(FRAMES))
    for part in ("11 tags", "found 10", str(tag)):
        assert part in text


@pytest.mark.parametrize(("tag", "kind", "values"), FOREIGN, ids=[str(row[0]) for row in FOREIGN])
def test_a_tag_in_the_place_of_another(refusal, tag, kind, values):
    tags = oracle.tags_of(FIELDS, COUNTS)
    tags[8] = [tag, kind, values]
    text = refusal(oracle.lay_out(sorted(tags)) + b"".join(FRAMES))
    assert str(tag) in text
    assert "339" in text


@pytest.mark.parametrize("tag", list(oracle.TAG_NAMES)[1:])
def test_a_duplicate_tag(refusal, tag):
    previous = list(oracle.TAG_NAMES)[list(oracle.TAG_NAMES).index(tag) - 1]
    text = refusal(patched(FILE, tag, number=previous))
    assert_names(text, oracle.TAG_NAMES[tag], tag, previous)


def test_twelve_entries_of_which_two_are_one(refusal):
    tags = oracle.tags_of(FIELDS, COUNTS)
    text = refusal(oracle.lay_out(sorted([*tags, tags[0]])) + b"".join(FRAMES))
    assert "found 12" in text


@pytest.mark.parametrize("tag", oracle.TAG_NAMES)
@pytest.mark.parametrize("data", [FILE, FIVE_FILE], ids=["3 bands", "5 bands"])
def test_a_wrong_type(refusal, data, tag):
    right = struct.unpack_from("<H", data, oracle.entry_at(tag) + 2)[0]
    for kind in {1, 3, 4, 12, 13, 16, 17, 18, 0, 65535} - {right}:
        text = refusal(patched(data, tag, kind=kind))
        assert_names(text, oracle.TAG_NAMES[tag], right, kind)


@pytest.mark.parametrize("tag", oracle.TAG_NAMES)
@pytest.mark.parametrize("data", [FILE, FIVE_FILE], ids=["3 bands", "5 bands"])
def test_a_wrong_count(refusal, data, tag):
    right = struct.unpack_from("<Q", data, oracle.entry_at(tag) + 4)[0]
    for count in (0, right - 1, right + 1, 2**32 + right, 2**63, 2**64 - 1):
        if count == right:
            continue
        text = refusal(patched(data, tag, count=count))
        assert "expected" in text, text
        assert str(count) in text, text
        assert any(
            name in text for name in (oracle.TAG_NAMES[tag], "TileOffsets", "TileByteCounts")
        ), text


def test_a_count_that_is_neither_unit(refusal):
    """g is 6 and g x B is 18."""
    for number in (1, 5, 7, 12, 17, 19):
        counts = [10] * number
        tags = oracle.tags_of(FIELDS, counts)
        text = refusal(oracle.lay_out(tags) + bytes(sum(counts)))
        assert_names(text, "TileOffsets", "", number)


# --- Placement


OUTSIDE = [324, 325, 34264, 34735]


@pytest.mark.parametrize("tag", OUTSIDE)
@pytest.mark.parametrize("move", [-1, 1, 8, -8, 2**32, 2**62])
def test_an_outside_value_elsewhere(refusal, tag, move):
    where = oracle.value_at(FILE, tag)
    text = refusal(patched(FILE, tag, value=where + move))
    assert_names(text, oracle.TAG_NAMES[tag], where, where + move)


@pytest.mark.parametrize("tag", [258, 339])
def test_an_outside_value_of_five_bands_elsewhere(refusal, tag):
    where = oracle.value_at(FIVE_FILE, tag)
    text = refusal(patched(FIVE_FILE, tag, value=where + 2))
    assert_names(text, oracle.TAG_NAMES[tag], where, where + 2)


@pytest.mark.parametrize("gap", [1, 2, 8])
def test_gaps_between_outside_values(refusal, gap):
    tags = oracle.tags_of(FIELDS, COUNTS)
    start = oracle.base_offset(3, 18) + 4 * gap
    tags[6][2] = [start + sum(COUNTS[:i]) for i in range(18)]
    text = refusal(oracle.lay_out(tags, gap=gap) + b"".join(FRAMES))
    assert "TileByteCounts" in text
    assert "expected" in text


def test_outside_values_in_another_order(refusal):
    """The two georeferencing values change places; every entry points at its own."""
    first, second = (oracle.value_at(FILE, tag) for tag in (34264, 34735))
    swapped = (
        FILE[:first] + FILE[second : second + 32] + FILE[first : first + 128] + FILE[second + 32 :]
    )
    swapped = patched(patched(swapped, 34264, value=first + 32), 34735, value=first)
    text = refusal(swapped)
    assert_names(text, "ModelTransformationTag", first, first + 32)


@pytest.mark.parametrize("padding", [1, 4, 512])
def test_bytes_before_the_frame_data(refusal, padding):
    start = oracle.base_offset(3, 18)
    offsets = [start + padding + sum(COUNTS[:i]) for i in range(18)]
    prefix = oracle.lay_out(oracle.tags_of(FIELDS, COUNTS, offsets=offsets))
    text = refusal(prefix + bytes(padding) + b"".join(FRAMES))
    assert_names(text, "TileOffsets of frame 0", start, start + padding)


def test_an_ifd_behind_the_frames(refusal):
    prefix = FILE[: oracle.base_offset(3, 18)]
    moved = oracle.replaced(prefix[:16], 8, struct.pack("<Q", 16 + sum(COUNTS)))
    refusal(moved + b"".join(FRAMES) + prefix[16:])


@pytest.mark.parametrize("where", [0, 8, 15, 17, 24, 2**32 + 16, 2**64 - 1])
def test_an_ifd_elsewhere(refusal, where):
    text = refusal(oracle.replaced(FILE, 8, struct.pack("<Q", where)))
    assert "expected" in text
    assert "found" in text


@pytest.mark.parametrize("where", [1, 16, 252, len(FILE), 2**64 - 1])
def test_a_second_ifd(refusal, where):
    text = refusal(oracle.replaced(FILE, 244, struct.pack("<Q", where)))
    assert "expected" in text
    assert "found" in text


def test_an_overview(refusal):
    """A second IFD that is really there."""
    second = oracle.lay_out(oracle.tags_of(FIELDS, COUNTS))[16:]
    refusal(oracle.replaced(FILE, 244, struct.pack("<Q", len(FILE))) + second)


# --- Values


@pytest.mark.parametrize("tag", [256, 257, 277, 322, 323])
def test_a_side_of_zero(refusal, tag):
    text = refusal(oracle.replaced(FILE, oracle.value_at(FILE, tag), bytes(4)))
    assert "expected" in text
    assert "0" in text


@pytest.mark.parametrize(("data", "bands"), [(FILE, 3), (FIVE_FILE, 5)])
@pytest.mark.parametrize(("tag", "value"), [(258, 8), (339, 2)])
def test_one_band_of_another_encoding(refusal, data, bands, tag, value):
    """C14, inline and outside."""
    start = oracle.value_at(data, tag)
    right = struct.unpack_from("<H", data, start)[0]
    for band in range(1, bands):
        text = refusal(oracle.replaced(data, start + 2 * band, struct.pack("<H", value)))
        assert_names(text, oracle.TAG_NAMES[tag], right, value)
        assert f"band {band}" in text
    # The first band differs from all others, which are then the ones that differ.
    text = refusal(oracle.replaced(data, start, struct.pack("<H", value)))
    assert oracle.TAG_NAMES[tag] in text


def test_two_bands_of_different_encodings(refusal):
    fields = oracle.fields_of((2, 16, 16), TILE, unit=1)
    data = oracle.file_with(fields, [b"frame"])
    for tag, value in ((258, 8), (339, 3)):
        changed = oracle.replaced(data, oracle.value_at(data, tag) + 2, struct.pack("<H", value))
        assert "band 1" in refusal(changed)


@pytest.mark.parametrize("sample_format", [0, 1, 2, 3, 4, 5, 6, 7, 99, 100, 103, 106, 107, 257])
def test_a_pair_that_is_not_listed(refusal, sample_format):
    for bits in (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 264):
        fields = FIELDS | {"sample_format": sample_format, "bits_per_sample": bits}
        data = oracle.file_with(fields, FRAMES)
        if (sample_format, bits) in oracle.DTYPES:
            assert rumi.index(data).dtype == oracle.DTYPES[sample_format, bits]
        else:
            text = refusal(data)
            assert str(sample_format) in text
            assert str(bits) in text


@pytest.mark.parametrize("frame", [0, 1, 9, 17])
def test_a_frame_of_no_bytes(refusal, frame):
    """Sparse frames, as GDAL writes them: offset and count zero, or only the count."""
    counts = list(COUNTS)
    counts[frame] = 0
    frames = [data[:count] for data, count in zip(FRAMES, counts, strict=True)]
    text = refusal(oracle.file_with(FIELDS, frames))
    assert_names(text, f"TileByteCounts of frame {frame}", "more than 0", 0)
    offsets = oracle.offsets_of(3, counts)
    offsets[frame] = 0
    text = refusal(oracle.file_with(FIELDS, frames, offsets=offsets))
    assert f"frame {frame}" in text


def test_a_single_frame_of_no_bytes(refusal):
    fields = oracle.fields_of((1, 8, 8), (8, 8))
    text = refusal(oracle.file_with(fields, [b""]) + b"x")
    assert "TileByteCounts of frame 0" in text


def test_no_frame_at_all(refusal):
    fields = oracle.fields_of((1, 8, 8), (8, 8))
    refusal(oracle.file_with(fields, [b""]))


@pytest.mark.parametrize("frame", range(18))
@pytest.mark.parametrize("move", [-1, 1, 2**32, -(2**32), 2**63])
def test_a_gap_or_an_overlap_between_frames(refusal, frame, move):
    offsets = oracle.offsets_of(3, COUNTS)
    right = offsets[frame]
    offsets[frame] = (right + move) % 2**64
    text = refusal(oracle.file_with(FIELDS, FRAMES, offsets=offsets))
    assert_names(text, f"TileOffsets of frame {frame}", right, offsets[frame])


def test_two_frames_in_one_place(refusal):
    offsets = oracle.offsets_of(3, COUNTS)
    offsets[5] = offsets[4]
    text = refusal(oracle.file_with(FIELDS, FRAMES, offsets=offsets))
    assert "TileOffsets of frame 5" in text


def test_a_wrong_byte_count(refusal):
    for frame in (0, 8, 16):
        for change in (-1, 1):
            counts = list(COUNTS)
            counts[frame] += change
            tags = oracle.tags_of(FIELDS, counts, offsets=oracle.offsets_of(3, COUNTS))
            text = refusal(oracle.lay_out(tags) + b"".join(FRAMES))
            assert f"TileOffsets of frame {frame + 1}" in text


@pytest.mark.parametrize("equal", [False, True], ids=["counts differ", "counts equal"])
def test_band_interleaved_order(refusal, equal):
    """All tiles of a band after another: contiguous once sorted, and wrong.

    The index lists frames by position and band, as it should, and they lie in
    another order.
    """
    counts = [30] * 18 if equal else COUNTS
    start = oracle.base_offset(3, 18)
    physical = [position * 3 + band for band in range(3) for position in range(6)]
    offsets = [0] * 18
    for index in physical:
        offsets[index] = start
        start += counts[index]
    assert sorted(offsets) != offsets
    text = refusal(
        oracle.lay_out(oracle.tags_of(FIELDS, counts, offsets=offsets)) + bytes(sum(counts))
    )
    assert_names(text, "TileOffsets of frame 1", offsets[0] + counts[0], offsets[1])
    assert "order" in text


@pytest.mark.parametrize(("one", "two"), [(0, 1), (7, 8), (16, 17), (0, 17)])
def test_two_frames_that_changed_places(refusal, one, two):
    counts = [30] * 18
    offsets = oracle.offsets_of(3, counts)
    offsets[one], offsets[two] = offsets[two], offsets[one]
    data = oracle.lay_out(oracle.tags_of(FIELDS, counts, offsets=offsets)) + bytes(sum(counts))
    text = refusal(data)
    assert f"TileOffsets of frame {one}" in text
    assert "order" in text


def test_frames_in_reverse_order(refusal):
    start = oracle.base_offset(3, 18)
    offsets = [start + 30 * (17 - i) for i in range(18)]
    tags = oracle.tags_of(FIELDS, [30] * 18, offsets=offsets)
    text = refusal(oracle.lay_out(tags) + bytes(540))
    assert "TileOffsets of frame 0" in text


# --- Georeferencing


@pytest.mark.parametrize(
    ("position", "value", "part"),
    [
        (0, 2, "KeyDirectoryVersion"),
        (3, 4, "NumberOfKeys"),
        (4, 1026, "1024"),
        (7, 3, "GTModelTypeGeoKey"),
        (11, 0, "GTRasterTypeGeoKey"),
        (11, 3, "GTRasterTypeGeoKey"),
        (12, 3072, "2048"),
        (15, 4326, "expected 0"),
    ],
)
def test_wrong_keys(refusal, position, value, part):
    keys = list(oracle.NO_CRS)
    keys[position] = value
    text = refusal(oracle.file_with(FIELDS, FRAMES, keys=keys))
    assert_names(text, "GeoKeyDirectoryTag", part, value)


@pytest.mark.parametrize("epsg", [0, 1, 1023, 32767, 65535])
@pytest.mark.parametrize(("model", "key"), [(1, 3072), (2, 2048)])
def test_a_code_outside_the_registry(refusal, model, key, epsg):
    keys = (*oracle.NO_CRS[:7], model, *oracle.NO_CRS[8:12], key, 0, 1, epsg)
    text = refusal(oracle.file_with(FIELDS, FRAMES, keys=keys))
    assert_names(text, "GeoKeyDirectoryTag", "1024..32766", epsg)


@pytest.mark.parametrize(("model", "key"), [(1, 2048), (2, 3072)])
def test_a_key_of_the_other_kind_of_crs(refusal, model, key):
    keys = (*oracle.NO_CRS[:7], model, *oracle.NO_CRS[8:12], key, 0, 1, 4326)
    text = refusal(oracle.file_with(FIELDS, FRAMES, keys=keys))
    assert_names(text, "GeoKeyDirectoryTag", 5120 - key, key)


@pytest.mark.parametrize("position", range(16))
def test_a_wrong_matrix(refusal, position):
    """Without a CRS the whole matrix is fixed; with one its six coefficients are free."""
    matrix = list(oracle.NO_TRANSFORM)
    matrix[position] += 0.5
    text = refusal(oracle.file_with(FIELDS, FRAMES, matrix=matrix))
    assert_names(text, "ModelTransformationTag", oracle.NO_TRANSFORM[position], matrix[position])
    keys = (*oracle.NO_CRS[:7], 2, *oracle.NO_CRS[8:15], 4326)
    data = oracle.file_with(FIELDS, FRAMES, keys=keys, matrix=matrix)
    if position in (0, 1, 3, 4, 5, 7):
        assert bytes(rumi.index(data)) == BLOB
    else:
        assert f"element {position}" in refusal(data)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_matrix_that_is_not_finite(refusal, value):
    keys = (*oracle.NO_CRS[:7], 2, *oracle.NO_CRS[8:15], 4326)
    matrix = (value, *oracle.NO_TRANSFORM[1:])
    text = refusal(oracle.file_with(FIELDS, FRAMES, keys=keys, matrix=matrix))
    assert_names(text, "ModelTransformationTag", "finite", value)


# --- Truncated, empty and foreign files (C23)


@pytest.mark.parametrize("length", range(401))
def test_every_short_file_is_truncated(refusal, length):
    text = refusal(FILE[:length], TruncatedError)
    assert str(length) in text
    assert "expected" in text
    assert "found" in text


def test_a_file_cut_at_every_byte_of_its_index(save):
    for length in range(400, oracle.base_offset(3, 18) + 1):
        with pytest.raises(TruncatedError, match=f"found .*{length}|found a file of {length}"):
            rumi.index(FILE[:length])


@pytest.mark.parametrize("frame", range(18))
@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_file_cut_at_a_frame(refusal, frame, shift):
    """The frame that is not all there is named."""
    ends = [
        offset + count for offset, count in zip(oracle.offsets_of(3, COUNTS), COUNTS, strict=True)
    ]
    length = ends[frame] + shift
    if length > len(FILE):
        text = refusal(FILE + b"\0")
        assert_names(text, "last frame", len(FILE), length)
        return
    if length == len(FILE):
        assert bytes(rumi.index(FILE[:length])) == BLOB
        return
    text = refusal(FILE[:length], TruncatedError)
    assert_names(text, f"frame {frame if shift < 0 else frame + 1}", len(FILE), length)


@pytest.mark.parametrize("more", [1, 2, 100, 10_000])
def test_bytes_after_the_last_frame(refusal, more):
    text = refusal(FILE + bytes(more))
    assert_names(text, "last frame", len(FILE), len(FILE) + more)


def classic_tiff():
    tags = struct.pack("<HHHII", 1, 256, 4, 1, 1)
    return b"II" + struct.pack("<HI", 42, 8) + tags + bytes(500)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"", "0 bytes"),
        (b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n" * 20, "3c 21 44 4f"),
        (b"<html>\n", "3c 68 74 6d"),
        (classic_tiff(), "classic TIFF"),
        (b"MM\0*" + bytes(1000), "big-endian"),
        (b"MM\0+\0\x08\0\0" + bytes(1000), "big-endian BigTIFF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(1000), "89 50 4e 47"),
        (b"PK\3\4" + bytes(1000), "50 4b 03 04"),
        (bytes(1000), "00 00 00 00"),
        (BLOB, "header blob"),
        (oracle.frame_of(np.zeros(1000, np.uint8)), "d8 a5 b1 d7"),
    ],
    ids=[
        "empty",
        "HTML",
        "short HTML",
        "classic",
        "classic big-endian",
        "big-endian",
        "PNG",
        "ZIP",
        "zeros",
        "blob",
        "frame",
    ],
)
def test_foreign_files(refusal, data, names):
    assert names in refusal(data)


@pytest.mark.parametrize(
    ("offset", "raw"),
    [(2, b"\x2c"), (3, b"\x01"), (4, b"\x04"), (5, b"\x01"), (6, b"\x01"), (7, b"\x80")],
)
def test_another_bigtiff_header(refusal, offset, raw):
    text = refusal(oracle.replaced(FILE, offset, raw))
    assert "expected" in text
    assert "found" in text


def test_an_ordinary_bigtiff(refusal, tmp_path):
    tifffile = pytest.importorskip("tifffile")
    path = tmp_path / "b.tif"
    tifffile.imwrite(path, np.zeros((64, 64), np.uint8), bigtiff=True, tile=(16, 16))
    refusal(path.read_bytes())
    tifffile.imwrite(path, np.zeros((64, 64), np.uint8))
    assert "classic TIFF" in refusal(path.read_bytes())


def test_a_geotiff_is_named_as_one(refusal, tmp_path):
    """X01, the other way round: the error says what to do with it."""
    rasterio = pytest.importorskip("rasterio")
    path = tmp_path / "c.tif"
    profile = {
        "driver": "GTiff",
        "width": 64,
        "height": 64,
        "count": 1,
        "dtype": "uint8",
        "crs": "EPSG:32718",
        "transform": rasterio.Affine(10, 0, 3e5, 0, -10, 8.5e6),
        "tiled": True,
        "blockxsize": 16,
        "blockysize": 16,
        "BIGTIFF": "YES",
    }
    with rasterio.open(path, "w", **profile) as file:
        file.write(np.zeros((1, 64, 64), np.uint8))
    assert "rumi convert" in refusal(path.read_bytes())


def test_a_directory(tmp_path):
    for call in (rumi.index, rumi.read, rumi.open):
        with pytest.raises(IsADirectoryError) as caught:
            call(tmp_path)
        assert str(tmp_path) in str(caught.value)


def test_no_file(tmp_path):
    for call in (rumi.index, rumi.read, rumi.open):
        with pytest.raises(FileNotFoundError) as caught:
            call(tmp_path / "none.rumi")
        assert "none.rumi" in str(caught.value)


# --- Hostile files (REQUIREMENTS 31)


HUGE = {
    "all pixels": {"width": 2**32 - 1, "length": 2**32 - 1, "tile": 1, "bands": 1},
    "all pixels and bands": {"width": 2**32 - 1, "length": 2**32 - 1, "tile": 1, "bands": 65535},
    "2**60 frames": {"width": 2**30, "length": 2**30, "tile": 1, "bands": 1},
    "2**40 frames": {"width": 2**20, "length": 2**20, "tile": 1, "bands": 1},
    "2**33 frames": {"width": 2**17, "length": 2**16, "tile": 1, "bands": 1},
    "all bands": {"width": 1, "length": 1, "tile": 1, "bands": 65535},
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("size", [252, 1000, 100_000])
def test_an_index_that_asks_for_too_much_is_refused_for_nothing(refusal, name, size):
    """A small file that claims billions of frames costs what it holds."""
    side = HUGE[name]
    number = side["width"] * side["length"] * side["bands"]
    bands = side["bands"]
    external, position = [], 252
    entries = struct.pack("<Q", 11)
    for tag, kind, count, value in (
        (256, 4, 1, side["width"]),
        (257, 4, 1, side["length"]),
        (258, 3, bands, 8),
        (277, 3, 1, bands),
        (322, 3, 1, side["tile"]),
        (323, 3, 1, side["tile"]),
        (324, 16, number, 0),
        (325, 4, number, 0),
        (339, 3, bands, 1),
        (34264, 12, 16, 0),
        (34735, 3, 16, 0),
    ):
        size_of_value = struct.calcsize(oracle.LETTERS[kind]) * count
        if size_of_value > 8:
            value, position = position, position + size_of_value
            external.append(size_of_value)
        entries += struct.pack("<HHQQ", tag, kind, count % 2**64, value % 2**64)
    data = (FILE[:16] + entries + bytes(8)).ljust(size, b"\0")
    start = time.perf_counter()
    tracemalloc.start()
    try:
        text = refusal(data)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert time.perf_counter() - start < 0.5
    assert peak < 10 << 20
    assert "expected" in text
    assert "found" in text


FREE = {
    # Bytes behind an inline value, on which the specification is silent.
    *(
        at + byte
        for tag, used in ((256, 4), (257, 4), (258, 6), (277, 2), (322, 2), (323, 2), (339, 6))
        for at in [oracle.entry_at(tag) + 12]
        for byte in range(used, 8)
    ),
    # The sign of a zero of the matrix.
    *(oracle.value_at(FILE, 34264) + 8 * i + 7 for i in range(16)),
    # MinorRevision of the GeoKey directory: 0 in GeoTIFF 1.0 and 1 in 1.1.
    oracle.base_offset(3, 18) - 28,
}


@given(
    st.lists(
        st.tuples(st.integers(0, oracle.base_offset(3, 18) - 1), st.integers(0, 255)),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=400)
def test_a_changed_index_is_refused_or_still_the_canonical_one(changes):
    """Whatever is accepted, the writer would have written the same bytes."""
    data = bytearray(FILE)
    for position, value in changes:
        if position not in FREE:
            data[position] = value
    data = bytes(data)
    found, error = oracle.attempt(RumiError, read_container, open_source(data))
    if error is not None:
        assert isinstance(error, ValueError)
        assert "\n" not in str(error)
        return
    base = found.header.base_frame_offset
    assert build_prefix(found.header, found.georeferencing) == data[:base]
    assert found.header.file_size == len(data)


@pytest.mark.parametrize("position", range(oracle.base_offset(3, 18)))
def test_every_byte_of_the_index_counts(position):
    """No single byte before the frames can change and the header stay the same."""
    for mask in (0x01, 0x80, 0xFF):
        data = oracle.replaced(FILE, position, bytes([FILE[position] ^ mask]))
        found, error = oracle.attempt(RumiError, read_container, open_source(data))
        if error is not None:
            assert "<bytes>: " in str(error)
            continue
        assert position in FREE or (bytes(found.header), found.georeferencing) != (
            BLOB,
            Georeferencing(),
        )
