"""The format specifications: generated files, and the parsers they generate.

Expected values come from the oracle's arithmetic, on purpose slow and in other
terms than the specifications: numbers as strings of bits, offsets by adding up.
"""

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kaitaistruct import (
    EndOfStreamError,
    KaitaiStructError,
    ValidationExprError,
    ValidationFailedError,
    ValidationGreaterThanError,
    ValidationLessThanError,
    ValidationNotAnyOfError,
    ValidationNotEqualError,
    ValidationNotInEnumError,
)

from rumi._generated import constants
from rumi._generated.rumi_file import RumiFile
from rumi._generated.rumi_header import RumiHeader

ROOT = Path(__file__).resolve().parent.parent
FORMATS = ROOT / "formats"
GOLDEN = Path(__file__).parent / "data" / "golden"
VECTORS = json.loads((GOLDEN / "vectors.json").read_text())

PAIRS = {
    (1, 1): "bool",
    (1, 2): "uint2",
    (1, 4): "uint4",
    (1, 8): "uint8",
    (1, 16): "uint16",
    (1, 32): "uint32",
    (1, 64): "uint64",
    (2, 2): "int2",
    (2, 4): "int4",
    (2, 8): "int8",
    (2, 16): "int16",
    (2, 32): "int32",
    (2, 64): "int64",
    (3, 16): "float16",
    (3, 32): "float32",
    (3, 64): "float64",
    (5, 32): "complex_int16",
    (5, 64): "complex_int32",
    (6, 32): "complex_float16",
    (6, 64): "complex64",
    (6, 128): "complex128",
    (100, 8): "float8_e4m3fn",
    (101, 8): "float8_e5m2",
    (102, 16): "bfloat16",
    (103, 8): "float8_e8m0fnu",
    (104, 6): "float6_e2m3fn",
    (105, 6): "float6_e3m2fn",
    (106, 4): "float4_e2m1fn",
}


def blob_fields(**changes):
    fields = {
        "magic": 0x45564F4C,
        "version": 1,
        "image_width": 40,
        "image_length": 25,
        "tile_width": 16,
        "tile_length": 8,
        "samples_per_pixel": 3,
        "bits_per_sample": 16,
        "sample_format": 1,
        "frame_unit": 0,
        "count_min": 100,
        "count_bits": 0,
    }
    assert changes.keys() <= fields.keys()
    return fields | changes


@st.composite
def blobs(draw):
    """Fields, byte counts and the blob of a random image."""
    pair = draw(st.sampled_from(sorted(PAIRS)))
    fields = blob_fields(
        tile_width=draw(st.integers(1, 65535)),
        tile_length=draw(st.integers(1, 65535)),
        samples_per_pixel=draw(st.integers(1, 7)),
        sample_format=pair[0],
        bits_per_sample=pair[1],
        frame_unit=draw(st.sampled_from([0, 1])),
    )
    for image, tile in (("image_width", "tile_width"), ("image_length", "tile_length")):
        size = fields[tile]
        fields[image] = draw(st.integers(1, min(5 * size, 2**32 - 1)))
    count = oracle.frame_count(fields)
    width = draw(st.integers(0, 32)) if count > 1 else 0
    largest = min(2**width - 1, 2**32 - 2)
    smallest = draw(st.integers(1, 2**32 - 1 - largest))
    residuals = draw(st.lists(st.integers(0, largest), min_size=count, max_size=count))
    if width:
        residuals[0], residuals[-1] = 0, largest
    fields |= {"count_min": smallest, "count_bits": width}
    counts = [smallest + residual for residual in residuals]
    return fields, counts, oracle.blob_of(fields, oracle.packed_bits(residuals, width))


ENTRY_NAMES = (
    "image_width",
    "image_length",
    "bits_per_sample",
    "samples_per_pixel",
    "tile_width",
    "tile_length",
    "tile_offsets",
    "tile_byte_counts",
    "sample_format",
    "model_transformation",
    "geo_key_directory",
)
NO_CRS = (1, 1, 0, 3, 1024, 0, 1, 0, 1025, 0, 1, 1, 2048, 0, 1, 0)
NO_TRANSFORM = (1.0, *[0.0] * 4, 1.0, *[0.0] * 9, 1.0)


def file_bytes(fields, counts, *, keys=NO_CRS, matrix=NO_TRANSFORM):
    """Write a file with frames of zeros, value by value."""
    bands, count = fields["samples_per_pixel"], len(counts)
    start = oracle.base_offset(bands, count)
    offsets = [start + sum(counts[:i]) for i in range(count)]
    values = [
        (256, 4, "I", [fields["image_width"]]),
        (257, 4, "I", [fields["image_length"]]),
        (258, 3, "H", [fields["bits_per_sample"]] * bands),
        (277, 3, "H", [bands]),
        (322, 3, "H", [fields["tile_width"]]),
        (323, 3, "H", [fields["tile_length"]]),
        (324, 16, "Q", offsets),
        (325, 4, "I", counts),
        (339, 3, "H", [fields["sample_format"]] * bands),
        (34264, 12, "d", matrix),
        (34735, 3, "H", keys),
    ]
    entries, external = b"", b""
    for tag, kind, letter, items in values:
        raw = struct.pack(f"<{len(items)}{letter}", *items)
        where = struct.pack("<Q", 252 + len(external)) if len(raw) > 8 else raw.ljust(8, b"\0")
        external += raw if len(raw) > 8 else b""
        entries += struct.pack("<HHQ", tag, kind, len(items)) + where
    head = b"II" + struct.pack("<HHHQQ", 43, 8, 0, 16, len(values))
    return head + entries + bytes(8) + external + bytes(sum(counts))


def replaced(data, offset, raw):
    return data[:offset] + raw + data[offset + len(raw) :]


def entry_at(name):
    return 24 + 20 * ENTRY_NAMES.index(name)


def parse_header(blob):
    return RumiHeader.from_bytes(blob)


def byte_count(header, index):
    return RumiHeader.ByteCount(index, header._io, None, header).value


def frame_offset(header, index):
    return RumiHeader.FrameOffset(index, header._io, None, header).value


# --- Generation

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(
    NODE is None or not (FORMATS / "node_modules" / "kaitai-struct-compiler").is_dir(),
    reason="generated files are not checked: needs node and `npm install --prefix formats`",
)


def generate(*arguments, formats=FORMATS):
    return subprocess.run(
        [NODE, str(formats / "generate.mjs"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@needs_node
def test_generated_files_are_current():
    result = generate("--check")
    assert result.stdout + result.stderr == ""
    assert result.returncode == 0


@needs_node
def test_check_names_files_that_differ_and_writes_nothing(tmp_path):
    copy = tmp_path / "formats"
    shutil.copytree(FORMATS, copy, ignore=shutil.ignore_patterns("node_modules"))
    os.symlink(FORMATS / "node_modules", copy / "node_modules")
    assert generate(formats=copy).returncode == 0
    assert generate("--check", formats=copy).returncode == 0

    stale = tmp_path / "rumi" / "_core" / "layout.pxd"
    stale.write_text("# edited\n")
    (tmp_path / "rumi" / "_generated" / "constants.py").unlink()
    result = generate("--check", formats=copy)
    assert result.returncode == 1
    assert [line.split()[0] for line in sorted(result.stdout.splitlines())] == [
        "rumi/_core/layout.pxd",
        "rumi/_generated/constants.py",
    ]
    assert stale.read_text() == "# edited\n"


def copy_of_formats(folder):
    copy = folder / "formats"
    shutil.copytree(FORMATS, copy, ignore=shutil.ignore_patterns("node_modules"))
    os.symlink(FORMATS / "node_modules", copy / "node_modules")
    for name in ("rumi/_generated", "rumi/_core"):
        (folder / name).mkdir(parents=True)
        for path in (ROOT / name).glob("*.p[yx][xd]" if name.endswith("_core") else "*.py"):
            shutil.copy(path, folder / name)
    return copy


PAGES = {"formats/docs/index.html", "formats/docs/inspector.html"}
VECTORS_AND_DOCS = {
    *PAGES,
    "formats/docs/header.md",
    "formats/vectors/README.md",
    "formats/vectors/blobs.json",
    "formats/vectors/files.json",
    "rumi/_generated/constants.py",
    "rumi/_generated/rumi_header.py",
}


@needs_node
@pytest.mark.parametrize(
    ("name", "old", "new", "moves"),
    [
        ("rumi_header", "count_min, the smallest byte", "count_min, the least byte", set()),
        (
            "rumi_header",
            "doc: The smallest frame byte count.",
            "doc: The least frame byte count.",
            {"formats/docs/header.md", "formats/docs/index.html"},
        ),
        (
            "rumi_header",
            "max: 32\n    doc: |\n      Number of bits",
            "max: 31\n    doc: |\n      Number of bits",
            {*VECTORS_AND_DOCS - {"formats/vectors/files.json"}, "rumi/_core/layout.pxd"},
        ),
        (
            "rumi_header",
            "valid: 0x45564f4c",
            "valid: 0x45564f4d",
            {*VECTORS_AND_DOCS, "rumi/_core/layout.pxd"},
        ),
        (
            "rumi_file",
            "value: 32766",
            "value: 32700",
            {
                *PAGES,
                "formats/docs/file.md",
                "formats/vectors/files.json",
                "rumi/_generated/constants.py",
                "rumi/_generated/rumi_file.py",
            },
        ),
    ],
    ids=["comment", "doc", "width", "magic", "code"],
)
def test_a_changed_specification_is_noticed_and_one_command_follows_it(
    tmp_path, name, old, new, moves
):
    copy = copy_of_formats(tmp_path)
    specification = copy / f"{name}.ksy"
    text = specification.read_text()
    assert text.count(old) == 1
    specification.write_text(text.replace(old, new))
    result = generate("--check", formats=copy)
    found = {line.split()[0] for line in result.stdout.splitlines()}
    assert moves <= found, moves - found
    assert bool(found) == bool(moves) == result.returncode
    assert generate(formats=copy).returncode == 0
    assert generate("--check", formats=copy).stdout == ""


@needs_node
def test_unknown_language_is_a_usage_error(tmp_path):
    result = generate("--target", "cobol", "-o", tmp_path)
    assert result.returncode == 2
    assert "cobol" in result.stderr


def test_generated_files_hold_no_local_names():
    generated = [*(ROOT / "rumi" / "_generated").glob("*.py"), *(FORMATS / "docs").iterdir()]
    assert len(generated) > 10
    for path in [*generated, ROOT / "rumi" / "_core" / "layout.pxd"]:
        text = path.read_text()
        assert "Do not edit" in text.partition("\n\n")[0], path
        assert str(ROOT) not in text, path


DOCS = FORMATS / "docs"


def test_the_page_is_whole_and_needs_nothing_else():
    page = (DOCS / "index.html").read_text()
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(ids)) == len(ids) > 50
    links = re.findall(r'href="([^"]+)"', page)
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert {link for link in links if not link.startswith("#")} == {
        "../vectors/README.md",
        "inspector.html",
    }
    assert "<script" not in page
    assert not re.search(r"\b(src|srcset)=|@import|url\(", page)
    assert page.count("<svg") == 2
    for wanted in ("prefers-color-scheme: dark", "@media print", 'lang="en"', "viewport"):
        assert wanted in page
    for dtype in PAIRS.values():
        assert f">{dtype}</code>" in page


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_links_of_the_pages_lead_somewhere(page):
    text = page.read_text()
    for target, _, anchor in re.findall(r"\]\(([^)#]*)(#?)([^)]*)\)", text):
        path = DOCS / target if target else page
        assert path.is_file(), target
        headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
        slugs = {re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-") for heading in headings}
        assert not anchor or anchor in slugs, anchor
    # Every row of a table has as many cells as its head.
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.M):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block


def test_every_field_is_in_the_page_and_every_language_in_its_table():
    header = (DOCS / "header.md").read_text()
    for name, offset, size, kind in constants.HEADER_FIELDS:
        assert f"| {offset} | {size} | {kind} | `{name}` |" in header
    for sample_format, bits, name, dtype, itemsize, meaning in constants.ENCODINGS:
        row = f"| {sample_format} | {bits} | {meaning} | `{name}` | `{dtype}` | {itemsize} |"
        assert row in header
    languages = json.loads((FORMATS / "generator" / "languages.json").read_text())
    table = (DOCS / "languages.md").read_text()
    assert all(f"| `{target}` | {entry['name']} |" in table for target, entry in languages.items())


# --- Constants


def test_header_fields():
    sizes = [struct.calcsize(f"<{letter}") for letter in oracle.HEADER[1:]]
    rows = [
        (name, sum(sizes[:i]), size, f"uint{8 * size}")
        for i, (name, size) in enumerate(zip(oracle.NAMES, sizes, strict=True))
    ]
    assert list(constants.HEADER_FIELDS) == rows
    assert constants.HEADER_SIZE == struct.calcsize(oracle.HEADER) == 28


def test_encodings():
    listed = {(row[0], row[1]): row[3:5] for row in constants.ENCODINGS}
    assert listed == {pair: (name, max(1, pair[1] // 8)) for pair, name in PAIRS.items()}
    assert len(constants.ENCODINGS) == 28


def test_placement_constants():
    assert file_bytes(blob_fields(), [1] * 36)[:16] == constants.BIGTIFF_HEADER
    assert (constants.IFD_OFFSET, constants.IFD_SIZE, constants.EXTERNAL_OFFSET) == (16, 236, 252)
    assert constants.GEOREFERENCING_SIZE == 160
    assert constants.UNDEFINED_TRANSFORMATION == NO_TRANSFORM
    assert NO_CRS[:4] == constants.GEO_KEY_DIRECTORY_HEADER
    assert [tag for tag, _, _ in constants.TAGS] == sorted(tag for tag, _, _ in constants.TAGS)


def test_all_names_exist_and_are_sorted():
    assert sorted(constants.__all__) == list(constants.__all__)
    assert {name for name in vars(constants) if name.isupper()} == set(constants.__all__)


# --- Header blob


@settings(deadline=None)
@given(blobs())
def test_header_parser_agrees_with_the_oracle(case):
    fields, counts, blob = case
    header = parse_header(blob)
    assert {name: int(getattr(header, name)) for name in oracle.NAMES} == fields
    assert header.tiles_across == oracle.tiles_along(fields["image_width"], fields["tile_width"])
    assert header.tiles_down == oracle.tiles_along(fields["image_length"], fields["tile_length"])
    assert header.frame_count == len(counts)
    assert header.sample_encoding == fields["sample_format"] << 8 | fields["bits_per_sample"]
    start = oracle.base_offset(fields["samples_per_pixel"], len(counts))
    assert header.base_frame_offset == start == 252 + header.len_external
    assert [byte_count(header, i) for i in range(len(counts))] == counts
    for i in {0, len(counts) // 2, len(counts) - 1}:
        assert frame_offset(header, i) == start + sum(counts[:i])


@pytest.mark.parametrize("width", range(33))
def test_every_residual_width(width):
    residuals = [(2**width - 1) * i // 23 for i in range(24)]
    fields = blob_fields(
        image_width=64, image_length=16, samples_per_pixel=3, count_min=7, count_bits=width
    )
    header = parse_header(oracle.blob_of(fields, oracle.packed_bits(residuals, width)))
    assert [byte_count(header, i) for i in range(24)] == [7 + residual for residual in residuals]
    assert frame_offset(header, 23) == header.base_frame_offset + 23 * 7 + sum(residuals[:23])


def test_frame_count_beyond_64_bits_needs_no_memory():
    fields = blob_fields(
        image_width=2**32 - 1,
        image_length=2**32 - 1,
        tile_width=1,
        tile_length=1,
        samples_per_pixel=65535,
    )
    assert parse_header(oracle.blob_of(fields)).frame_count == (2**32 - 1) ** 2 * 65535
    with pytest.raises(EndOfStreamError):
        parse_header(oracle.blob_of(fields | {"count_bits": 1}, bytes(100)))


@pytest.mark.parametrize("sample_format", range(256))
def test_only_listed_pairs_are_accepted(sample_format):
    for bits in (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 64, 128, 255):
        blob = oracle.blob_of(blob_fields(sample_format=sample_format, bits_per_sample=bits))
        if (sample_format, bits) in PAIRS:
            assert parse_header(blob).sample_format == sample_format
        else:
            with pytest.raises((ValidationNotInEnumError, ValidationNotAnyOfError)):
                parse_header(blob)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"magic": 0x4C4F5645}, ValidationNotEqualError),
        ({"version": 0}, ValidationNotEqualError),
        ({"version": 2}, ValidationNotEqualError),
        ({"image_width": 0}, ValidationLessThanError),
        ({"image_length": 0}, ValidationLessThanError),
        ({"tile_width": 0}, ValidationLessThanError),
        ({"tile_length": 0}, ValidationLessThanError),
        ({"samples_per_pixel": 0}, ValidationLessThanError),
        ({"frame_unit": 2}, ValidationNotInEnumError),
        ({"count_min": 0}, ValidationLessThanError),
        ({"count_bits": 33}, ValidationGreaterThanError),
    ],
)
def test_header_refuses(changes, error):
    with pytest.raises(error):
        parse_header(oracle.blob_of(blob_fields(**changes), bytes(1000)))


def test_header_refuses_every_other_length():
    fields = blob_fields(count_bits=5)
    blob = oracle.blob_of(fields, oracle.packed_bits([1] * 36, 5))
    assert parse_header(blob).frame_count == 36
    for length in range(len(blob)):
        with pytest.raises(EndOfStreamError):
            parse_header(blob[:length])
    with pytest.raises(ValidationExprError):
        parse_header(blob + b"\0")


def test_header_refuses_set_unused_bits():
    blob = oracle.blob_of(blob_fields(count_bits=5), oracle.packed_bits([1] * 36, 5))
    unused = 8 * len(blob[28:]) - 36 * 5
    for bit in range(8):
        changed = blob[:-1] + bytes([blob[-1] ^ (1 << bit)])
        if bit >= 8 - unused:
            with pytest.raises(ValidationExprError):
                parse_header(changed)
        else:
            parse_header(changed)


# --- File


@settings(deadline=None)
@given(blobs())
def test_file_parser_agrees_with_the_header_parser(case):
    fields, counts, blob = case
    counts = [count % 50 + 1 for count in counts]
    data = file_bytes(fields, counts)
    header, file = parse_header(blob), RumiFile.from_bytes(data)
    for name in (*oracle.NAMES[2:9], "tiles_across", "tiles_down", "frame_count"):
        assert getattr(file, name) == getattr(header, name)
    assert file.base_frame_offset == header.base_frame_offset == file.first_tile_offset
    assert file.ifd.geo_key_directory.ofs_next == file.base_frame_offset
    assert file.frame_unit == (0 if fields["samples_per_pixel"] == 1 else fields["frame_unit"])
    assert file.sample_type.sample_encoding is header.sample_encoding
    assert file.is_single_encoding
    assert file.ifd.tile_byte_counts.value_raw == struct.pack(f"<{len(counts)}I", *counts)
    assert len(file.frame_data) == sum(counts)


BASE = file_bytes(blob_fields(), [10] * 36)
FIVE_BANDS = file_bytes(blob_fields(samples_per_pixel=5), [10] * 60)


def test_the_first_252_bytes_are_enough_for_the_ifd():
    file = RumiFile.from_bytes(FIVE_BANDS[:252])
    assert (file.image_width, file.tile_length, file.samples_per_pixel) == (40, 8, 5)
    assert (file.frame_count, file.frame_unit) == (60, 0)
    assert file.base_frame_offset == oracle.base_offset(5, 60)
    for name in ENTRY_NAMES:
        entry = getattr(file.ifd, name)
        if entry.is_inline:
            assert len(entry.value_raw) == entry.len_value
        else:
            with pytest.raises(EndOfStreamError):
                _ = entry.value_raw
    for length in range(252):
        with pytest.raises(EndOfStreamError):
            RumiFile.from_bytes(FIVE_BANDS[:length])


@pytest.mark.parametrize(
    ("offset", "raw"),
    [
        (0, b"MM"),
        (2, b"\x2a"),
        (4, b"\x04"),
        (6, b"\x01"),
        (8, b"\x18"),
        (16, b"\x0a"),
        (244, b"\x01"),
    ],
    ids=["order", "version", "offset size", "reserved", "IFD offset", "entries", "next IFD"],
)
def test_file_refuses_another_frame_of_the_ifd(offset, raw):
    with pytest.raises(ValidationNotEqualError):
        RumiFile.from_bytes(replaced(BASE, offset, raw))


@pytest.mark.parametrize("name", ENTRY_NAMES)
@pytest.mark.parametrize("base", [BASE, FIVE_BANDS], ids=["3 bands", "5 bands"])
def test_file_refuses_another_tag_type_count_or_place(base, name):
    at = entry_at(name)
    tag, kind, count, where = struct.unpack_from("<HHQQ", base, at)
    for changed in (tag + 1, 33550, 254):
        with pytest.raises(ValidationNotEqualError):
            RumiFile.from_bytes(replaced(base, at, struct.pack("<H", changed)))
    for changed in {1, 3, 4, 12, 13, 16, 18} - {kind}:
        with pytest.raises(ValidationNotEqualError):
            RumiFile.from_bytes(replaced(base, at + 2, struct.pack("<H", changed)))
    for changed in (0, count - 1, count + 1, 2**64 - 1):
        with pytest.raises(ValidationFailedError):
            RumiFile.from_bytes(replaced(base, at + 4, struct.pack("<Q", changed)))
    if not getattr(RumiFile.from_bytes(base).ifd, name).is_inline:
        for changed in (0, where - 1, where + 1, where + 2**32):
            with pytest.raises(ValidationExprError):
                RumiFile.from_bytes(replaced(base, at + 12, struct.pack("<Q", changed)))


@pytest.mark.parametrize(
    "name", ["image_width", "image_length", "samples_per_pixel", "tile_width", "tile_length"]
)
def test_file_refuses_empty_shapes(name):
    with pytest.raises(ValidationFailedError):
        RumiFile.from_bytes(replaced(BASE, entry_at(name) + 12, bytes(4)))


def test_file_refuses_a_frame_count_between_the_two_units():
    for name in ("tile_offsets", "tile_byte_counts"):
        with pytest.raises(ValidationFailedError):
            RumiFile.from_bytes(replaced(BASE, entry_at(name) + 4, struct.pack("<Q", 24)))


def test_mixed_encodings_are_seen():
    for data in (BASE, FIVE_BANDS):
        entry = RumiFile.from_bytes(data).ifd.bits_per_sample
        at = entry_at("bits_per_sample") + 12 if entry.is_inline else 252
        for band in range(entry.count):
            changed = replaced(data, at + 2 * band, b"\x08")
            assert not RumiFile.from_bytes(changed).is_single_encoding


def test_unlisted_pair_is_no_member_of_the_enumeration():
    file = RumiFile.from_bytes(file_bytes(blob_fields(bits_per_sample=24), [1] * 36))
    assert not isinstance(file.sample_type.sample_encoding, RumiHeader.SampleEncoding)


def test_first_offset_has_to_be_the_derived_one():
    at = RumiFile.from_bytes(BASE).ifd.tile_offsets.pos_value
    file = RumiFile.from_bytes(replaced(BASE, at, b"\0"))
    with pytest.raises(ValidationNotEqualError):
        _ = file.first_tile_offset


# --- Georeferencing


def directory(**changes):
    keys = list(NO_CRS)
    for position, value in changes.items():
        keys[int(position[1:])] = value
    return RumiFile.GeoKeyDirectory.from_bytes(struct.pack("<16H", *keys))


@pytest.mark.parametrize(
    ("changes", "has_crs"),
    [
        ({}, False),
        ({"k11": 2}, False),
        ({"k2": 1}, False),
        ({"k7": 1, "k12": 3072, "k15": 32718}, True),
        ({"k7": 2, "k15": 4326}, True),
        ({"k7": 2, "k15": 1024}, True),
        ({"k7": 2, "k15": 32766}, True),
    ],
)
def test_geo_keys(changes, has_crs):
    keys = directory(**changes)
    assert keys.has_crs is has_crs
    assert keys.epsg == changes.get("k15", 0)
    assert keys.raster_type == changes.get("k11", 1)


@pytest.mark.parametrize(
    "changes",
    [
        *({f"k{i}": 7} for i in range(16)),
        {"k12": 3072},
        {"k7": 1, "k15": 32718},
        {"k7": 2, "k12": 3072, "k15": 4326},
        {"k7": 2, "k15": 0},
        {"k7": 2, "k15": 1023},
        {"k7": 2, "k15": 32767},
        {"k15": 4326},
    ],
)
def test_geo_keys_refuse(changes):
    with pytest.raises(ValidationFailedError):
        directory(**changes)


def test_transformation():
    free = [0, 1, 3, 4, 5, 7]
    for position in range(16):
        values = list(NO_TRANSFORM)
        values[position] += 2.5
        raw = struct.pack("<16d", *values)
        if position in free:
            assert not RumiFile.ModelTransformation.from_bytes(raw).is_undefined
        else:
            with pytest.raises(ValidationNotEqualError):
                RumiFile.ModelTransformation.from_bytes(raw)
    matrix = RumiFile.ModelTransformation.from_bytes(
        struct.pack("<16d", 1, 2, 0, 3, 4, 5, 0, 6, *[0] * 7, 1)
    )
    names = ("x_res", "row_rot", "x_origin", "col_rot", "y_res", "y_origin")
    assert [getattr(matrix, name) for name in names] == [1, 2, 3, 4, 5, 6]


def test_transformation_without_crs_has_to_be_the_undefined_one():
    fields, counts = blob_fields(), [1] * 36
    moved = (1.0, 0.0, 0.0, 8.0, *NO_TRANSFORM[4:])
    keys = (*NO_CRS[:7], 2, *NO_CRS[8:15], 4326)
    for chosen, matrix, right in (
        (NO_CRS, NO_TRANSFORM, True),
        (NO_CRS, moved, False),
        (keys, moved, True),
        (keys, NO_TRANSFORM, True),
    ):
        file = RumiFile.from_bytes(file_bytes(fields, counts, keys=chosen, matrix=matrix))
        assert file.is_georeferencing_consistent is right


# --- Files of another implementation


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_golden_vectors(vector):
    data = (GOLDEN / f"{vector['name']}.rumi").read_bytes()
    blob = (GOLDEN / f"{vector['name']}.blob").read_bytes()
    file, header = RumiFile.from_bytes(data), parse_header(blob)
    for name in (*oracle.NAMES[2:10], "sample_encoding", "frame_count", "base_frame_offset"):
        assert getattr(file, name) == getattr(header, name), name
    bands, height, width = vector["shape"]
    assert header.samples_per_pixel == bands
    assert (header.image_length, header.image_width) == (height, width)
    assert header.frame_unit.name == vector["unit"]

    count = header.frame_count
    offsets = struct.unpack(f"<{count}Q", file.ifd.tile_offsets.value_raw)
    counts = struct.unpack(f"<{count}I", file.ifd.tile_byte_counts.value_raw)
    assert [byte_count(header, i) for i in range(count)] == list(counts)
    for i in range(0, count, 97):
        assert frame_offset(header, i) == offsets[i] == file.first_tile_offset + sum(counts[:i])
    assert offsets[-1] + counts[-1] == len(data) == vector["file_bytes"]

    assert file.is_single_encoding
    assert file.is_georeferencing_consistent
    assert file.geo_key_directory.epsg == vector["epsg"]
    assert file.geo_key_directory.raster_type == (2 if vector["pixel_is_point"] else 1)
    if vector["transform"] is not None:
        matrix = file.model_transformation
        names = ("x_res", "row_rot", "x_origin", "col_rot", "y_res", "y_origin")
        assert [getattr(matrix, name) for name in names] == vector["transform"]


@pytest.mark.parametrize("vector", VECTORS[:6], ids=[vector["name"] for vector in VECTORS[:6]])
def test_no_changed_prefix_causes_another_kind_of_error(vector):
    data = (GOLDEN / f"{vector['name']}.rumi").read_bytes()[:252]
    for position in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            changed = replaced(data, position, bytes([data[position] ^ mask]))
            try:
                file = RumiFile.from_bytes(changed)
            except KaitaiStructError:
                continue
            assert file.frame_count in (
                file.tiles_across * file.tiles_down,
                file.tiles_across * file.tiles_down * file.samples_per_pixel,
            )
