"""Clauses about the file before its frames: profile, IFD, placement, georeferencing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rumi import georef
from rumi._core import frame_data_offset
from rumi._generated import constants as k
from rumi.encodings import ENCODINGS
from rumi.errors import UnsupportedError
from rumi.validation.clauses import Registry
from rumi.validation.report import Broken, NotChecked

if TYPE_CHECKING:
    from rumi.validation.facts import FileFacts

__all__ = ["FILE"]

FILE = Registry("file")

_PROFILE = "File profile"
_IFD = "Fixed IFD"
_PLACEMENT = "Fixed IFD, Placement"
_GEO = "Georeferencing"

_EXPECTED = [tag for tag, _, _ in k.TAGS]
_NAMES = {tag: name for tag, name, _ in k.TAGS}
_TYPES = {tag: kind for tag, _, kind in k.TAGS}
_STRIPS = {273: "StripOffsets", 278: "RowsPerStrip", 279: "StripByteCounts"}
_AUXILIARY = {254: "NewSubfileType", 255: "SubfileType", 330: "SubIFDs"}
_OTHER_GEO = {
    33550: "ModelPixelScaleTag",
    33922: "ModelTiepointTag",
    34736: "GeoDoubleParamsTag",
    34737: "GeoAsciiParamsTag",
}
_NAMED = {**_STRIPS, **_AUXILIARY, **_OTHER_GEO}


@FILE.clause("byte-order", _PROFILE, "the file uses little-endian byte order")
def _byte_order(facts: FileFacts) -> None:
    if facts.first[:2] != b"II":
        raise Broken("II", facts.first[:2] or "0 bytes", offset=0)


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
            raise Broken("no other tag", f"tag {entry.tag}", offset=entry.position)
    missing = [f"{_NAMES[tag]} ({tag})" for tag in _EXPECTED if tag not in found]
    if missing:
        raise Broken("all 11 tags", f"no {', '.join(missing)}", offset=k.IFD_OFFSET)
    twice = [entry for entry in facts.entries if found.count(entry.tag) > 1]
    if twice:
        raise Broken("each tag once", f"tag {twice[0].tag} twice", offset=twice[0].position)


@FILE.clause("tag-order", _IFD, "the tags are in rising order")
def _tag_order(facts: FileFacts) -> None:
    for before, after in zip(facts.entries, facts.entries[1:], strict=False):
        if after.tag < before.tag:
            raise Broken(f"a tag above {before.tag}", after.tag, offset=after.position)


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
    bands = facts.number(k.TAG_SAMPLES_PER_PIXEL)
    frames = facts.entry(k.TAG_TILE_OFFSETS).count
    expected = dict.fromkeys(_EXPECTED, 1)
    expected |= {k.TAG_BITS_PER_SAMPLE: bands, k.TAG_SAMPLE_FORMAT: bands}
    expected |= {k.TAG_TILE_OFFSETS: frames, k.TAG_TILE_BYTE_COUNTS: frames}
    expected |= {k.TAG_MODEL_TRANSFORMATION: 16, k.TAG_GEO_KEY_DIRECTORY: 16}
    for entry in facts.entries:
        if entry.tag in expected and entry.count != expected[entry.tag]:
            raise Broken(
                f"{_NAMES[entry.tag]} with {expected[entry.tag]} values",
                entry.count,
                offset=entry.position + 4,
            )


@FILE.clause("sizes", "Header fields", "image and tile sizes and the band count are at least 1")
def _sizes(facts: FileFacts) -> None:
    for tag in (
        k.TAG_IMAGE_WIDTH,
        k.TAG_IMAGE_LENGTH,
        k.TAG_TILE_WIDTH,
        k.TAG_TILE_LENGTH,
        k.TAG_SAMPLES_PER_PIXEL,
    ):
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
    base = frame_data_offset(len(offsets), facts.number(k.TAG_SAMPLES_PER_PIXEL))
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
    offsets, counts = facts.frames
    order = np.argsort(offsets, kind="stable")
    ends = offsets[order] + counts[order]
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
    claimed = facts.entry(k.TAG_TILE_OFFSETS).count
    index = k.EXTERNAL_OFFSET + sum(entry.size for entry in facts.entries if not entry.inline)
    if index > facts.size:
        raise Broken(f"{index} bytes of index for {claimed} frames", facts.size, offset=facts.size)
    offsets, counts = facts.frames
    end = int((offsets + counts).max())
    if end != facts.size:
        raise Broken(f"a file of {end} bytes", facts.size, offset=min(end, facts.size))


def _in_order(facts: FileFacts) -> bool:
    offsets = facts.frames[0]
    return bool((offsets[1:] >= offsets[:-1]).all())


@FILE.clause("georef-tags", _GEO, "no other GeoTIFF georeferencing tag appears")
def _georef_tags(facts: FileFacts) -> None:
    for entry in facts.entries:
        if entry.tag in _OTHER_GEO:
            raise Broken(
                "no such tag", f"{_OTHER_GEO[entry.tag]} ({entry.tag})", offset=entry.position
            )


@FILE.clause("matrix", f"{_GEO}, ModelTransformationTag", "the matrix has its fixed elements")
def _matrix(facts: FileFacts) -> None:
    values = facts.array(k.TAG_MODEL_TRANSFORMATION)
    if len(values) != 16:
        raise NotChecked("the matrix has not 16 elements")
    fixed = dict(k.MODEL_TRANSFORMATION_FIXED)
    for element, found in enumerate(values.tolist()):
        expected = fixed.get(element)
        if not np.isfinite(found) or expected not in (None, found):
            raise Broken(
                f"element {element} to be {'finite' if expected is None else expected}",
                found,
                offset=facts.value_offset(k.TAG_MODEL_TRANSFORMATION) + 8 * element,
            )


def _keys(facts: FileFacts) -> list[int]:
    values: list[int] = facts.array(k.TAG_GEO_KEY_DIRECTORY).tolist()
    if len(values) != 16:
        raise NotChecked("the directory has not 16 shorts")
    return values


def _key_offset(facts: FileFacts, element: int) -> int:
    return facts.value_offset(k.TAG_GEO_KEY_DIRECTORY) + 2 * element


@FILE.clause("keys", f"{_GEO}, GeoKeyDirectoryTag", "a four-short header and the three keys listed")
def _key_directory(facts: FileFacts) -> None:
    keys = _keys(facts)
    allowed = {0: (1,), 1: (1,), 2: (0, 1), 3: (3,)}
    allowed |= {4: (k.GEO_KEY_GT_MODEL_TYPE,), 5: (0,), 6: (1,)}
    allowed |= {8: (k.GEO_KEY_GT_RASTER_TYPE,), 9: (0,), 10: (1,)}
    allowed |= {12: (k.GEO_KEY_GEOGRAPHIC_TYPE, k.GEO_KEY_PROJECTED_CS_TYPE), 13: (0,), 14: (1,)}
    for element, values in allowed.items():
        if keys[element] not in values:
            raise Broken(
                f"element {element} to be {' or '.join(map(str, values))}",
                keys[element],
                offset=_key_offset(facts, element),
            )


@FILE.clause("model-type", f"{_GEO}, GeoKeyDirectoryTag", "GTModelTypeGeoKey is 0, 1 or 2")
def _model_type(facts: FileFacts) -> None:
    if _keys(facts)[7] not in (0, 1, 2):
        raise Broken("0, 1 or 2", _keys(facts)[7], offset=_key_offset(facts, 7))


@FILE.clause("raster-type", f"{_GEO}, GeoKeyDirectoryTag", "GTRasterTypeGeoKey is 1 or 2")
def _raster_type(facts: FileFacts) -> None:
    if _keys(facts)[11] not in (1, 2):
        raise Broken("1 or 2", _keys(facts)[11], offset=_key_offset(facts, 11))


@FILE.clause(
    "crs-key", f"{_GEO}, GeoKeyDirectoryTag", "the key of the code agrees with GTModelTypeGeoKey"
)
def _crs_key(facts: FileFacts) -> None:
    keys = _keys(facts)
    projected = keys[7] == k.MODEL_TYPE_PROJECTED
    expected = k.GEO_KEY_PROJECTED_CS_TYPE if projected else k.GEO_KEY_GEOGRAPHIC_TYPE
    # Another key altogether, or another model type, is the matter of other clauses.
    if keys[7] in (0, 1, 2) and keys[12] in (2048, 3072) and keys[12] != expected:
        raise Broken(expected, keys[12], offset=_key_offset(facts, 12))


@FILE.clause("epsg-range", f"{_GEO}, GeoKeyDirectoryTag", "the EPSG code is 1024 to 32766")
def _epsg_range(facts: FileFacts) -> None:
    keys = _keys(facts)
    if keys[7] == k.MODEL_TYPE_UNDEFINED:
        raise NotChecked("the file has no CRS")
    if not k.MIN_EPSG <= keys[15] <= k.MAX_EPSG:
        raise Broken(f"{k.MIN_EPSG} to {k.MAX_EPSG}", keys[15], offset=_key_offset(facts, 15))


@FILE.clause("epsg-registry", "Which codes are geographic", "the registry defines code and kind")
def _epsg_registry(facts: FileFacts) -> None:
    keys = _keys(facts)
    code, model = keys[15], keys[7]
    if model not in (1, 2) or not k.MIN_EPSG <= code <= k.MAX_EPSG:
        raise NotChecked("the file has no CRS that a registry could know")
    try:
        kind = georef.crs_kind(code)
    except UnsupportedError as error:
        raise Broken(
            "a projected or geographic CRS of EPSG",
            code,
            offset=_key_offset(facts, 15),
            reason=str(error),
        ) from error
    # Where the key contradicts the model type, another clause says so.
    stored = "projected" if model == k.MODEL_TYPE_PROJECTED else "geographic"
    agrees = keys[12] == (3072 if stored == "projected" else 2048)
    if agrees and kind != stored:
        raise Broken(f"a {kind} CRS for EPSG:{code}", stored, offset=_key_offset(facts, 7))


@FILE.clause("undefined", f"{_GEO}, Undefined georeferencing", "without CRS: code 0, fixed matrix")
def _undefined(facts: FileFacts) -> None:
    keys = _keys(facts)
    if keys[7] != k.MODEL_TYPE_UNDEFINED:
        raise NotChecked("the file has a CRS")
    if keys[15] != 0:
        raise Broken("code 0", keys[15], offset=_key_offset(facts, 15))
    values = facts.array(k.TAG_MODEL_TRANSFORMATION).tolist()
    fixed = dict(k.MODEL_TRANSFORMATION_FIXED)
    for element, expected in enumerate(k.UNDEFINED_TRANSFORMATION):
        if element not in fixed and values[element] != expected:
            raise Broken(
                f"element {element} to be {expected}",
                values[element],
                offset=facts.value_offset(k.TAG_MODEL_TRANSFORMATION) + 8 * element,
            )
