"""Clauses about the file before its frames: profile, IFD, placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rumi._generated import constants as k
from rumi.encodings import ENCODINGS
from rumi.validation.clauses import Registry
from rumi.validation.georef_clauses import GEOREFERENCING, OTHER_GEO
from rumi.validation.report import Broken, NotChecked

if TYPE_CHECKING:
    from rumi.validation.facts import FileFacts

__all__ = ["FILE"]

FILE = Registry("file")

_PROFILE = "File profile"
_IFD = "Fixed IFD"
_PLACEMENT = "Placement"

_EXPECTED = [tag for tag, _, _ in k.TAGS]
_NAMES = {tag: name for tag, name, _ in k.TAGS}
_TYPES = {tag: kind for tag, _, kind in k.TAGS}
_STRIPS = {273: "StripOffsets", 278: "RowsPerStrip", 279: "StripByteCounts"}
_AUXILIARY = {254: "NewSubfileType", 255: "SubfileType", 330: "SubIFDs"}
_NAMED = {**_STRIPS, **_AUXILIARY, **OTHER_GEO}


def _hex(found: bytes) -> str:
    return found.hex(" ") or "0 bytes"


def _name(tag: int) -> str:
    return f"{_NAMES.get(tag) or _NAMED.get(tag, 'tag')} ({tag})"


@FILE.clause("byte-order", _PROFILE, "the file uses little-endian byte order")
def _byte_order(facts: FileFacts) -> None:
    found = facts.first[:2]
    if found != b"II":
        is_text = found.isascii() and found.decode("ascii").isprintable()
        raise Broken("II", found.decode() if found and is_text else _hex(found), offset=0)


@FILE.clause("bigtiff", _PROFILE, "the file is BigTIFF")
def _bigtiff(facts: FileFacts) -> None:
    if facts.first[:2] == b"MM":
        if facts.first[2:8] != b"\0+\0\x08\0\0":
            raise Broken("version 43, offset size 8", facts.first[2:8].hex(" "), offset=2)
        return
    if facts.first[2:8] != k.BIGTIFF_HEADER[2:8]:
        raise Broken(k.BIGTIFF_HEADER[2:8].hex(" "), facts.first[2:8].hex(" "), offset=2)


@FILE.clause("one-ifd", _PROFILE, "the file has exactly one IFD")
def _one_ifd(facts: FileFacts) -> None:
    at, value = facts.next_ifd
    if value:
        raise Broken(0, value, offset=at)


@FILE.clause("no-overviews-masks", _PROFILE, "the file has no overviews, masks or auxiliary IFDs")
def _no_auxiliary(facts: FileFacts) -> None:
    for entry in facts.entries:
        if entry.tag in _AUXILIARY:
            raise Broken(
                "no such tag", f"{_AUXILIARY[entry.tag]} ({entry.tag})", offset=entry.position
            )


@FILE.clause("tiled", _PROFILE, "the image is tiled, not stripped")
def _tiled(facts: FileFacts) -> None:
    for entry in facts.entries:
        if entry.tag in _STRIPS:
            raise Broken(
                "no such tag", f"{_STRIPS[entry.tag]} ({entry.tag})", offset=entry.position
            )


@FILE.clause("tags", _IFD, "the IFD holds exactly the tags listed, and no others")
def _tags(facts: FileFacts) -> None:
    if facts.entry_count > k.IFD_ENTRY_COUNT + len(_NAMED):
        raise Broken(k.IFD_ENTRY_COUNT, facts.entry_count, offset=k.IFD_OFFSET)
    found = [entry.tag for entry in facts.entries]
    for entry in facts.entries:
        # Tags that clauses of their own forbid are left to those.
        if entry.tag not in _EXPECTED and entry.tag not in _NAMED:
            raise Broken("no other tag", _name(entry.tag), offset=entry.position)
    missing = ", ".join(_name(tag) for tag in _EXPECTED if tag not in found)
    twice = [entry for entry in facts.entries if found.count(entry.tag) > 1]
    if twice:
        without = f" and no {missing}" if missing else ""
        raise Broken(
            "each tag once", f"{_name(twice[0].tag)} twice{without}", offset=twice[1].position
        )
    if missing:
        raise Broken("all 11 tags", f"no {missing}", offset=k.IFD_OFFSET)


@FILE.clause("tag-order", _IFD, "the tags are in rising order")
def _tag_order(facts: FileFacts) -> None:
    for before, after in zip(facts.entries, facts.entries[1:], strict=False):
        if after.tag < before.tag:
            raise Broken(
                f"a tag above {_name(before.tag)}", _name(after.tag), offset=after.position
            )


@FILE.clause("types", _IFD, "each tag has the type listed")
def _types(facts: FileFacts) -> None:
    names = {code: name for code, name, _ in k.FIELD_TYPES}
    for entry in facts.entries:
        expected = _TYPES.get(entry.tag)
        if expected is not None and entry.type != expected:
            raise Broken(
                f"{_NAMES[entry.tag]} of type {names[expected]} ({expected})",
                entry.type,
                offset=entry.position + 2,
            )


@FILE.clause("counts", _IFD, "each tag has the count listed")
def _counts(facts: FileFacts) -> None:
    sides = (k.TAG_IMAGE_WIDTH, k.TAG_IMAGE_LENGTH, k.TAG_TILE_WIDTH, k.TAG_TILE_LENGTH)
    fixed = dict.fromkeys((*sides, k.TAG_SAMPLES_PER_PIXEL), 1)
    _expect_counts(facts, {**fixed, k.TAG_MODEL_TRANSFORMATION: 16, k.TAG_GEO_KEY_DIRECTORY: 16})
    bands = facts.number(k.TAG_SAMPLES_PER_PIXEL)
    frames = facts.entry(k.TAG_TILE_OFFSETS).count
    _expect_counts(facts, {k.TAG_BITS_PER_SAMPLE: bands, k.TAG_SAMPLE_FORMAT: bands})
    _expect_counts(facts, {k.TAG_TILE_BYTE_COUNTS: frames})


def _expect_counts(facts: FileFacts, expected: dict[int, int]) -> None:
    for entry in facts.entries:
        if entry.tag in expected and entry.count != expected[entry.tag]:
            raise Broken(
                f"{_name(entry.tag)} with {expected[entry.tag]} values",
                entry.count,
                offset=entry.position + 4,
            )


@FILE.clause("image-size", k.CLAUSES["image_width"], "the image is at least 1 x 1")
def _image_size(facts: FileFacts) -> None:
    _expect_positive(facts, k.TAG_IMAGE_WIDTH, k.TAG_IMAGE_LENGTH)


@FILE.clause("tile-size", k.CLAUSES["tile_width"], "tile sizes are greater than zero")
def _tile_size(facts: FileFacts) -> None:
    _expect_positive(facts, k.TAG_TILE_WIDTH, k.TAG_TILE_LENGTH)


@FILE.clause("bands", k.CLAUSES["samples_per_pixel"], "SamplesPerPixel is at least 1")
def _bands(facts: FileFacts) -> None:
    _expect_positive(facts, k.TAG_SAMPLES_PER_PIXEL)


def _expect_positive(facts: FileFacts, *tags: int) -> None:
    for tag in tags:
        if facts.number(tag) == 0:
            raise Broken(f"{_NAMES[tag]} of at least 1", 0, offset=facts.value_offset(tag))


@FILE.clause("same-encoding", "Sample encodings", "all bands use the same pair")
def _same_encoding(facts: FileFacts) -> None:
    for tag in (k.TAG_BITS_PER_SAMPLE, k.TAG_SAMPLE_FORMAT):
        values = facts.array(tag)
        other = np.flatnonzero(values != values[0])
        if other.size:
            band = int(other[0])
            raise Broken(
                f"{_NAMES[tag]} {values[0]} in every band",
                f"{values[band]} in band {band}",
                offset=facts.value_offset(tag) + 2 * band,
            )


@FILE.clause("encoding", "Sample encodings", "the (sample_format, bits_per_sample) pair is listed")
def _encoding(facts: FileFacts) -> None:
    pair = facts.number(k.TAG_SAMPLE_FORMAT), facts.number(k.TAG_BITS_PER_SAMPLE)
    if pair not in {(e.sample_format, e.bits_per_sample) for e in ENCODINGS}:
        raise Broken("a listed pair", pair, offset=facts.value_offset(k.TAG_SAMPLE_FORMAT))


@FILE.clause("frame-unit", "Deriving the frame unit", "the entry count of TileOffsets fits a unit")
def _frame_unit(facts: FileFacts) -> None:
    positions = facts.grid[0] * facts.grid[1]
    bands = facts.number(k.TAG_SAMPLES_PER_PIXEL)
    entry = facts.entry(k.TAG_TILE_OFFSETS)
    if entry.count not in (positions, positions * bands):
        raise Broken(
            f"{positions} (cell) or {positions * bands} (tile)",
            entry.count,
            offset=entry.position + 4,
        )


@FILE.clause("ifd-position", _PLACEMENT, "the IFD starts at byte 16, before the frame data")
def _ifd_position(facts: FileFacts) -> None:
    if facts.ifd_offset != k.IFD_OFFSET:
        raise Broken(k.IFD_OFFSET, facts.ifd_offset, offset=8)


@FILE.clause("placement", _PLACEMENT, "larger values follow the IFD in rising tag order, no gaps")
def _placement(facts: FileFacts) -> None:
    position = k.EXTERNAL_OFFSET
    if [entry.tag for entry in facts.entries] != _EXPECTED:
        raise NotChecked("the tags are not the listed ones in order")
    for entry in facts.entries:
        if entry.type != _TYPES[entry.tag]:
            raise NotChecked(f"{_NAMES[entry.tag]} has another type")
        if entry.inline:
            continue
        if entry.offset != position:
            raise Broken(
                f"{_NAMES[entry.tag]} at byte {position}",
                entry.offset,
                offset=entry.position + 12,
            )
        position += entry.size


@FILE.clause(
    "base-frame-offset", "Deriving base_frame_offset", "the formula gives the first TileOffsets"
)
def _base_frame_offset(facts: FileFacts) -> None:
    offsets = facts.frames[0]
    base = facts.base_frame_offset
    if _in_order(facts) and int(offsets[0]) != base:
        raise Broken(base, int(offsets[0]), offset=facts.value_offset(k.TAG_TILE_OFFSETS))


@FILE.clause("not-sparse", _PROFILE, "every frame is present, with a byte count above zero")
def _not_sparse(facts: FileFacts) -> None:
    empty = np.flatnonzero(facts.frames[1] == 0)
    if empty.size:
        frame = int(empty[0])
        raise Broken(
            f"a byte count above 0 for frame {frame}",
            0,
            offset=facts.value_offset(k.TAG_TILE_BYTE_COUNTS) + 4 * frame,
        )


@FILE.clause("frame-order", "Rejected orders", "frames are stored in frame-index order")
def _frame_order(facts: FileFacts) -> None:
    offsets = facts.frames[0]
    if not _in_order(facts):
        frame = int(np.flatnonzero(offsets[1:] < offsets[:-1])[0]) + 1
        raise Broken(
            f"frame {frame} after frame {frame - 1}, which starts at byte {offsets[frame - 1]}",
            f"frame {frame} at byte {offsets[frame]}",
            offset=facts.value_offset(k.TAG_TILE_OFFSETS) + 8 * frame,
        )


@FILE.clause("contiguous", _PROFILE, "the frames form one run, each immediately after the last")
def _contiguous(facts: FileFacts) -> None:
    offsets, _ = facts.frames
    order = np.argsort(offsets, kind="stable")
    ends = facts.ends[order]
    broken = np.flatnonzero(ends[:-1] != offsets[order][1:])
    if broken.size:
        frame = int(order[broken[0] + 1])
        raise Broken(
            f"frame {frame} at byte {ends[broken[0]]}",
            offsets[frame],
            offset=facts.value_offset(k.TAG_TILE_OFFSETS) + 8 * frame,
        )


@FILE.clause("complete", _PROFILE, "the file ends with its last frame")
def _complete(facts: FileFacts) -> None:
    if facts.size < k.EXTERNAL_OFFSET:
        raise Broken(f"at least {k.EXTERNAL_OFFSET} bytes", facts.size, offset=facts.size)
    # Where its entries are not all there, nothing else can be checked.
    ifd = facts.ifd_offset + 8 + facts.entry_count * k.IFD_ENTRY_SIZE + 8
    if ifd > facts.size:
        raise Broken(f"{ifd} bytes of header and IFD", facts.size, offset=facts.size)
    claimed = facts.entry(k.TAG_TILE_OFFSETS).count
    index = k.EXTERNAL_OFFSET + sum(entry.size for entry in facts.entries if not entry.inline)
    if index > facts.size:
        raise Broken(f"{index} bytes of index for {claimed} frames", facts.size, offset=facts.size)
    end = int(facts.ends.max())
    if end != facts.size:
        raise Broken(f"a file of {end} bytes", facts.size, offset=min(end, facts.size))


def _in_order(facts: FileFacts) -> bool:
    offsets = facts.frames[0]
    return bool((offsets[1:] >= offsets[:-1]).all())


FILE.checks.extend(GEOREFERENCING.checks)
