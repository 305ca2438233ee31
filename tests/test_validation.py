"""rumi.validate: every clause has a file or blob that breaks it and only it."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from openzl import ext as openzl
from openzl.ext import graphs

import rumi
from rumi import container
from rumi._generated import constants as k
from rumi.encodings import from_dtype
from rumi.georef import Georeferencing
from rumi.header import Header
from rumi.validation import clauses

GOLDEN = Path(__file__).parent / "data" / "golden"
ENTRY = {tag: 24 + 20 * number for number, (tag, _, _) in enumerate(k.TAGS)}
BANDS, HEIGHT, WIDTH, TILE = 2, 20, 30, 16
POSITIONS = 4
FRAMES = POSITIONS * BANDS


def frame(samples: np.ndarray, version: int = 24) -> bytes:
    """Compress with OpenZL itself, not with the code under test."""
    compressor = openzl.Compressor()
    compressor.select_starting_graph(graphs.Zstd()(compressor))
    context = openzl.CCtx()
    context.ref_compressor(compressor)
    context.set_parameter(openzl.CParam.FormatVersion, version)
    return context.compress([openzl.Input(openzl.Type.Numeric, samples.ravel())])


IMAGE = (np.arange(BANDS * HEIGHT * WIDTH) % 251).astype(np.uint16).reshape(BANDS, HEIGHT, WIDTH)


def tiles() -> list[np.ndarray]:
    return [
        np.ascontiguousarray(IMAGE[band, row : row + TILE, col : col + TILE])
        for row in range(0, HEIGHT, TILE)
        for col in range(0, WIDTH, TILE)
        for band in range(BANDS)
    ]


def build(
    frames: list[bytes], georeferencing: Georeferencing | None = None
) -> tuple[bytearray, bytes]:
    header = Header.build(
        IMAGE.shape, (TILE, TILE), from_dtype(np.uint16), "tile", [len(f) for f in frames]
    )
    place = georeferencing or Georeferencing(32718, (10.0, 0, 3e5, 0, -10.0, 8e6), "area")
    return bytearray(container.build_prefix(header, place) + b"".join(frames)), bytes(header)


GOOD_FRAMES = [frame(tile) for tile in tiles()]


def good() -> tuple[bytearray, bytearray]:
    data, blob = build(GOOD_FRAMES)
    return data, bytearray(blob)


def unreferenced() -> tuple[bytearray, bytearray]:
    data, blob = build(GOOD_FRAMES, Georeferencing())
    return data, bytearray(blob)


def base() -> int:
    return Header(good()[1]).base_frame_offset


KEYS = base() - 32
MATRIX = KEYS - 128
OFFSETS = k.EXTERNAL_OFFSET
COUNTS = OFFSETS + 8 * FRAMES


def put(data: bytearray, at: int, fmt: str, *values: object) -> None:
    struct.pack_into("<" + fmt, data, at, *values)


# -- one function a clause: what it does to a good file and blob ------------------------------

BREAKS = {}


def breaks(clause: str, start=good, also: tuple[str, ...] = ()):
    def register(function):
        assert clause not in BREAKS, clause
        BREAKS[clause] = (start, function, also)
        return function

    return register


@breaks("file.byte-order")
def _(data, blob):
    data[0:8] = b"MM\0+\0\x08\0\0"


@breaks("file.bigtiff")
def _(data, blob):
    put(data, 2, "H", 42)


@breaks("file.one-ifd")
def _(data, blob):
    put(data, 16 + 8 + 20 * 11, "Q", 4096)


def replace_last_tag(data: bytearray, tag: int) -> None:
    """Turn GeoKeyDirectoryTag into another tag; the tag is then missing too."""
    put(data, ENTRY[k.TAG_GEO_KEY_DIRECTORY], "H", tag)


def insert_tag(data: bytearray, tag: int, at: int) -> None:
    """Add an inline tag before entry `at`, moving what follows and every offset."""
    entry = struct.pack("<HHQ8s", tag, 4, 1, b"")
    position = 24 + 20 * at
    data[position:position] = entry
    put(data, 16, "Q", 12)
    for number in range(12):
        where = 24 + 20 * number
        _, kind, count = struct.unpack_from("<HHQ", data, where)
        if {3: 2, 4: 4, 12: 8, 16: 8}[kind] * count > 8:
            put(data, where + 12, "Q", struct.unpack_from("<Q", data, where + 12)[0] + 20)
    for number in range(FRAMES):
        at_offset = OFFSETS + 20 + 8 * number
        put(data, at_offset, "Q", struct.unpack_from("<Q", data, at_offset)[0] + 20)


# An added tag moves all that follows, so that where the frame data starts breaks with it.
MOVED = ("file.base-frame-offset", "match.offsets", "file.placement")


@breaks("file.no-overviews-masks", also=MOVED)
def _(data, blob):
    insert_tag(data, 254, 0)


@breaks("file.tiled", also=MOVED)
def _(data, blob):
    insert_tag(data, 278, 4)


@breaks("file.tags", also=MOVED)
def _(data, blob):
    insert_tag(data, 305, 4)


@breaks("file.georef-tags", also=MOVED)
def _(data, blob):
    insert_tag(data, 33550, 9)


@breaks("file.tag-order")
def _(data, blob):
    # Two inline entries change places: nothing else moves.
    first, second = ENTRY[k.TAG_IMAGE_WIDTH], ENTRY[k.TAG_IMAGE_LENGTH]
    data[first : first + 20], data[second : second + 20] = (
        data[second : second + 20],
        data[first : first + 20],
    )


@breaks("file.types")
def _(data, blob):
    # LONG instead of SHORT: the inline value reads the same.
    put(data, ENTRY[k.TAG_SAMPLES_PER_PIXEL] + 2, "H", 4)


@breaks("file.counts")
def _(data, blob):
    put(data, ENTRY[k.TAG_BITS_PER_SAMPLE] + 4, "Q", 3)
    put(data, ENTRY[k.TAG_BITS_PER_SAMPLE] + 12, "HHHH", 16, 16, 16, 0)


@breaks("file.image-size")
def _(data, blob):
    put(data, ENTRY[k.TAG_IMAGE_LENGTH] + 12, "I", 0)
    return "match.image-size"


@breaks("file.tile-size")
def _(data, blob):
    put(data, ENTRY[k.TAG_TILE_WIDTH] + 12, "H", 0)
    return "match.tile-size"


@breaks("file.bands")
def _(data, blob):
    put(data, ENTRY[k.TAG_SAMPLES_PER_PIXEL] + 12, "H", 0)
    return "match.bands", "file.counts", "file.frame-unit"


@breaks("file.same-encoding")
def _(data, blob):
    put(data, ENTRY[k.TAG_BITS_PER_SAMPLE] + 12 + 2, "H", 8)


@breaks("file.encoding")
def _(data, blob):
    put(data, ENTRY[k.TAG_SAMPLE_FORMAT] + 12, "HH", 4, 4)
    blob[21] = 4
    return "blob.encoding"


@breaks("file.frame-unit")
def _(data, blob):
    # A wider image has more grid positions than there are frames.
    put(data, ENTRY[k.TAG_IMAGE_WIDTH] + 12, "I", 200)
    return "match.image-size"


@breaks("file.ifd-position")
def _(data, blob):
    # The IFD again at the end, where nothing of its contents changes.
    end = len(data)
    data += data[16 : 16 + k.IFD_SIZE]
    put(data, 8, "Q", end)
    return "file.complete"


@breaks("file.placement")
def _(data, blob):
    # The same 32 bytes, elsewhere.
    put(data, ENTRY[k.TAG_GEO_KEY_DIRECTORY] + 12, "Q", len(data))
    data += data[KEYS : KEYS + 32]
    return "file.complete"


@breaks("file.base-frame-offset")
def _(data, blob):
    data[base() : base()] = bytes(8)
    for number in range(FRAMES):
        at = OFFSETS + 8 * number
        put(data, at, "Q", struct.unpack_from("<Q", data, at)[0] + 8)
    return "match.offsets"


@breaks("file.not-sparse")
def _(data, blob):
    # The last frame, so that the run before it stays whole.
    size = struct.unpack_from("<I", data, COUNTS + 4 * (FRAMES - 1))[0]
    put(data, COUNTS + 4 * (FRAMES - 1), "I", 0)
    del data[-size:]
    return "frame.magic", "frame.declared-size", "match.counts"


def reordered(order: list[int]) -> bytearray:
    """Store the frames in another physical order, with honest offsets."""
    data, _ = good()
    at = base()
    body = b""
    for index in order:
        put(data, OFFSETS + 8 * index, "Q", at + len(body))
        body += GOOD_FRAMES[index]
    data[at:] = body
    return data


@breaks("file.frame-order")
def _(data, blob):
    # Band-interleaved: all tiles of band 0, then all of band 1.
    data[:] = reordered([0, 2, 4, 6, 1, 3, 5, 7])
    return "match.offsets"


@breaks("file.contiguous")
def _(data, blob):
    start = struct.unpack_from("<Q", data, OFFSETS + 8 * 3)[0]
    data[start:start] = b"\0"
    for number in range(3, FRAMES):
        at = OFFSETS + 8 * number
        put(data, at, "Q", struct.unpack_from("<Q", data, at)[0] + 1)
    return "match.offsets"


@breaks("file.complete")
def _(data, blob):
    data += b"\0"


@breaks("file.matrix")
def _(data, blob):
    put(data, MATRIX + 8 * 10, "d", 1.0)


@breaks("file.keys")
def _(data, blob):
    put(data, KEYS + 2 * 9, "H", 34737)


@breaks("file.model-type")
def _(data, blob):
    put(data, KEYS + 2 * 7, "H", 3)


@breaks("file.raster-type")
def _(data, blob):
    put(data, KEYS + 2 * 11, "H", 0)


@breaks("file.crs-key")
def _(data, blob):
    put(data, KEYS + 2 * 12, "H", 2048)


@breaks("file.epsg-range")
def _(data, blob):
    put(data, KEYS + 2 * 15, "H", 32767)


@breaks("file.epsg-registry")
def _(data, blob):
    put(data, KEYS + 2 * 15, "H", 15000)


@breaks("file.epsg-kind")
def _(data, blob):
    # 4326 is geographic; key and model type agree with each other on projected.
    put(data, KEYS + 2 * 15, "H", 4326)


@breaks("file.undefined", start=unreferenced)
def _(data, blob):
    put(data, MATRIX + 8 * 3, "d", 500000.0)


def with_frame(number: int, replacement: bytes) -> tuple[bytearray, bytes]:
    frames = list(GOOD_FRAMES)
    frames[number] = replacement
    return build(frames)


@breaks("frame.magic")
def _(data, blob):
    data[:], blob[:] = with_frame(5, b"not a frame")


@breaks("frame.version")
def _(data, blob):
    data[:], blob[:] = with_frame(5, frame(tiles()[5], 23))


@breaks("frame.declared-size")
def _(data, blob):
    # An edge tile padded to the whole tile.
    data[:], blob[:] = with_frame(7, frame(np.zeros((TILE, TILE), np.uint16)))


@breaks("frame.decodes")
def _(data, blob):
    data[-20] ^= 0x40


@breaks("blob.magic")
def _(data, blob):
    blob[0] = 0x4D


@breaks("blob.version")
def _(data, blob):
    put(blob, 4, "H", 2)


@breaks("blob.image-size")
def _(data, blob):
    put(blob, 6, "I", 0)
    return "match.image-size", "blob.size"


@breaks("blob.tile-size")
def _(data, blob):
    put(blob, 14, "H", 0)
    return "match.tile-size"


@breaks("blob.bands")
def _(data, blob):
    put(blob, 18, "H", 0)
    return "match.bands", "blob.size"


@breaks("blob.encoding")
def _(data, blob):
    blob[20] = 3
    return "match.encoding"


@breaks("blob.frame-unit")
def _(data, blob):
    blob[22] = 2
    return "match.frame-unit", "blob.size"


@breaks("blob.count-bits")
def _(data, blob):
    blob[27] = 33


@breaks("blob.size")
def _(data, blob):
    blob += b"\0"


def pack(count_min: int, bits: int, counts: list[int]) -> bytes:
    stream = sum((count - count_min) << (number * bits) for number, count in enumerate(counts))
    return struct.pack("<IB", count_min, bits) + stream.to_bytes(
        -(-len(counts) * bits // 8), "little"
    )


SIZES = [len(frame) for frame in GOOD_FRAMES]


@breaks("blob.counts-positive")
def _(data, blob):
    # All sizes equal, so that the smallest is the one stored, and it is 0.
    blob[23:] = struct.pack("<IB", 0, 0)
    return "match.counts"


@breaks("blob.counts-width")
def _(data, blob):
    blob[23:] = pack(0xFFFFFFFF, 1, [0xFFFFFFFF + number % 2 for number in range(FRAMES)])
    return "match.counts"


@breaks("blob.canonical-min")
def _(data, blob):
    smallest = min(SIZES) - 1
    blob[23:] = pack(smallest, (max(SIZES) - smallest).bit_length(), SIZES)


@breaks("blob.canonical-bits")
def _(data, blob):
    smallest = min(SIZES)
    blob[23:] = pack(smallest, (max(SIZES) - smallest).bit_length() + 1, SIZES)


def odd_frames() -> tuple[bytearray, bytearray]:
    """A file of one row of 3 x 1 grid positions, whose packed sizes end inside a byte."""
    image = np.arange(16 * 40, dtype=np.uint16).reshape(1, 16, 40)
    parts = [np.ascontiguousarray(image[0, :, col : col + 16]) for col in (0, 16, 32)]
    frames = [frame(part) for part in parts]
    frames[1] = frame(np.zeros((16, 16), np.uint16))
    header = Header.build(
        image.shape, (16, 16), from_dtype(np.uint16), "tile", [len(f) for f in frames]
    )
    assert header.count_bits * 3 % 8
    prefix = container.build_prefix(header, Georeferencing())
    return bytearray(prefix + b"".join(frames)), bytearray(bytes(header))


@breaks("blob.spare-bits", start=odd_frames)
def _(data, blob):
    blob[-1] |= 0x80


@breaks("match.image-size")
def _(data, blob):
    put(blob, 6, "I", WIDTH - 1)


@breaks("match.tile-size")
def _(data, blob):
    put(blob, 14, "H", TILE + 1)


@breaks("match.bands")
def _(data, blob):
    # In cell frames the band count is not in the number of frames.
    header = Header.build(IMAGE.shape, (TILE, TILE), from_dtype(np.uint16), "cell", SIZES[:4])
    blob[:] = bytes(header)
    put(blob, 18, "H", IMAGE.shape[0] + 1)
    return "match.frame-unit"


@breaks("match.encoding")
def _(data, blob):
    blob[21] = 2


@breaks("match.frame-unit")
def _(data, blob):
    blob[22] = 1
    blob[23:] = pack(min(SIZES), (max(SIZES) - min(SIZES)).bit_length(), SIZES)[: 5 + 64]
    header = Header.build(IMAGE.shape, (TILE, TILE), from_dtype(np.uint16), "cell", SIZES[:4])
    blob[:] = bytes(header)


@breaks("match.counts")
def _(data, blob):
    sizes = [*SIZES[:-1], SIZES[-1] - 1]
    blob[:] = bytes(Header.build(IMAGE.shape, (TILE, TILE), from_dtype(np.uint16), "tile", sizes))


@breaks("match.offsets")
def _(data, blob):
    # Two frames of the file trade offsets; the blob cannot say so.
    data[:] = reordered([1, 0, *range(2, FRAMES)])
    return "file.frame-order"


def test_every_clause_has_a_breaker():
    assert {clause.id for clause in clauses()} == set(BREAKS)


def test_clauses_name_sections_of_the_specification():
    text = Path(__file__).parents[2] / "shared" / "spec" / "rumi-0.1.0.txt"
    if not text.exists():
        pytest.skip("the specification's text is not beside the checkout")
    lines = set(text.read_text().splitlines())
    for clause in clauses():
        for part in clause.section.split(", "):
            assert part in lines, clause


@pytest.mark.parametrize("clause", sorted(BREAKS))
def test_a_file_that_breaks_one_clause(clause):
    start, function, also = BREAKS[clause]
    data, blob = start()
    untouched = rumi.validate(bytes(data), bytes(blob))
    assert untouched.ok, untouched
    result = function(data, blob)
    # What cannot be broken without this clause, by its nature.
    related = {*also, *([result] if isinstance(result, str) else result or ())}
    report = rumi.validate(bytes(data), bytes(blob))
    failed = {finding.clause.id for finding in report.failures}
    assert clause in failed, report
    assert failed <= {clause, *related}, report
    assert not report.ok
    assert not report
    finding = next(f for f in report.findings if f.clause.id == clause)
    line = str(finding)
    assert "\n" not in line
    assert "expected" in line
    assert "found" in line


@pytest.mark.parametrize("clause", sorted(c for c in BREAKS if c.startswith("file.")))
def test_what_breaks_the_file_is_refused_by_index(clause):
    start, function, _ = BREAKS[clause]
    data, blob = start()
    function(data, blob)
    if clause in ("file.epsg-registry", "file.epsg-kind"):
        # A reader takes the kind from the file and needs no registry.
        assert rumi.index(bytes(data)).shape == IMAGE.shape
        return
    with pytest.raises(rumi.FormatError):
        rumi.index(bytes(data))


@pytest.mark.parametrize("clause", sorted(c for c in BREAKS if c.startswith("blob.")))
def test_what_breaks_the_blob_is_refused_by_header(clause):
    start, function, _ = BREAKS[clause]
    data, blob = start()
    function(data, blob)
    with pytest.raises(rumi.FormatError):
        Header(bytes(blob))


@pytest.mark.parametrize(
    "vector", json.loads((GOLDEN / "vectors.json").read_text()), ids=lambda v: v["name"]
)
def test_golden_vectors_pass(vector):
    if vector["group"] == "geozl":
        pytest.importorskip("geozl", reason="geozl's frames need the geozl package")
    path = GOLDEN / vector["name"]
    report = rumi.validate(f"{path}.rumi", Path(f"{path}.blob").read_bytes())
    assert report.ok, report
    left = {f.clause.id for f in report.findings if f.status == "not checked"}
    assert left <= {"file.undefined", "file.epsg-range", "file.epsg-registry", "file.epsg-kind"}


def test_depths():
    data, _ = good()
    data[-20] ^= 0x40
    assert rumi.validate(bytes(data), frames="none").ok
    assert rumi.validate(bytes(data), frames="headers").ok
    assert not rumi.validate(bytes(data), frames="decode").ok
    with pytest.raises(ValueError, match="frames is"):
        rumi.validate(bytes(data), frames="all")
    statuses = {f.clause.id: f.status for f in rumi.validate(bytes(data), frames="none").findings}
    assert statuses["frame.magic"] == "not checked"
    assert statuses["blob.magic"] == "not checked"


@pytest.mark.parametrize(
    "data", [b"", b"II", b"<html>\n</html>", b"\0" * 300, b"II+\0\x08\0\0\0" + b"\xff" * 400]
)
def test_foreign_bytes_give_findings_not_exceptions(data):
    report = rumi.validate(memoryview(data), b"short")
    assert not report.ok
    assert "file.bigtiff" in {f.clause.id for f in report.failures} or data[:4] == b"II+\0"


def test_truncated_at_every_length():
    data, _ = good()
    for size in [*range(base() + 8), len(data) - 1]:
        assert not rumi.validate(memoryview(bytes(data[:size])), frames="headers").ok, size


def test_report_as_json_and_text():
    data, blob = good()
    data += b"\0"
    report = rumi.validate(bytes(data), bytes(blob))
    record = json.loads(json.dumps(report.to_dict()))
    assert record["ok"] is False
    assert len(record["findings"]) == len(clauses())
    assert str(report).count("\n") == len(clauses())
    assert "not compliant" in str(report).splitlines()[0]


def test_a_tile_blob_of_one_band_says_cell():
    image = np.arange(12, dtype=np.uint8).reshape(1, 3, 4)
    header = Header.build(image.shape, (8, 8), from_dtype(np.uint8), "cell", [len(frame(image))])
    data = container.build_prefix(header, Georeferencing()) + frame(image)
    assert rumi.validate(data, header).ok


def test_claims_beyond_memory_are_not_followed():
    data, _ = good()
    put(data, ENTRY[k.TAG_TILE_OFFSETS] + 4, "Q", 1 << 60)
    assert not rumi.validate(bytes(data)).ok
    blob = struct.pack(
        "<IHIIHHHBBBIB", k.MAGIC, 1, 2**32 - 1, 2**32 - 1, 1, 1, 65535, 8, 1, 0, 9, 0
    )
    assert not rumi.validate(bytes(good()[0]), blob).ok


def _no_number(data, blob):
    struct.pack_into("<HQd", data, ENTRY[k.TAG_IMAGE_WIDTH] + 2, 12, 1, float("nan"))
    return "file.types"


def _no_bands(data, blob):
    put(data, ENTRY[k.TAG_SAMPLES_PER_PIXEL] + 12, "H", 0)
    return "file.bands"


def _too_many_bands(data, blob):
    put(data, ENTRY[k.TAG_SAMPLES_PER_PIXEL] + 2, "H", 4)
    put(data, ENTRY[k.TAG_SAMPLES_PER_PIXEL] + 12, "I", 70000)
    return "file.types"


def _short_matrix(data, blob):
    put(data, ENTRY[k.TAG_MODEL_TRANSFORMATION] + 4, "Q", 4)
    put(data, KEYS + 2 * 7, "H", 0)
    return "file.counts"


def _offset_beyond_64_bits(data, blob):
    put(data, OFFSETS, "Q", 2**64 - 1)
    return "file.complete"


def _no_frames(data, blob):
    put(blob, 6, "I", 0)
    blob[27:] = b"\0"
    return "blob.image-size"


@pytest.mark.parametrize(
    "change",
    [_no_number, _no_bands, _too_many_bands, _short_matrix, _offset_beyond_64_bits, _no_frames],
    ids=lambda change: change.__name__,
)
def test_values_that_cannot_be_calculated_with_are_findings(change):
    data, blob = good()
    clause = change(data, blob)
    report = rumi.validate(bytes(data), bytes(blob))
    assert clause in {finding.clause.id for finding in report.failures}
