"""The TIFF directories of a file, as far as GDAL does not tell.

GDAL reports one type for all bands, hides the orientation, reads nodata through
a double and gives up on mixed depths. This reader sees the tags themselves. It
is bounded: whatever a file claims, no value over 1 MiB is read, no directory is
read twice, and nothing is read beyond the end of the file.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from rumi._generated import constants
from rumi.errors import FormatError, TruncatedError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Directory", "TiffTags", "geo_keys", "read_tags"]

NEW_SUBFILE_TYPE = 254
SUBFILE_TYPE = 255
COMPRESSION = 259
PHOTOMETRIC = 262
ORIENTATION = 274
COLOR_MAP = 320
SUB_IFDS = 330
PIXEL_SCALE = 33550
GDAL_NODATA = 42113

# struct code and bytes of each TIFF field type
_TYPES = {
    1: ("B", 1),
    2: ("s", 1),
    3: ("H", 2),
    4: ("I", 4),
    5: ("II", 8),
    6: ("b", 1),
    7: ("s", 1),
    8: ("h", 2),
    9: ("i", 4),
    10: ("ii", 8),
    11: ("f", 4),
    12: ("d", 8),
    13: ("I", 4),
    16: ("Q", 8),
    17: ("q", 8),
    18: ("Q", 8),
}

_MAX_VALUE = 1 << 20
_MAX_DIRECTORIES = 65_535
_KEY_SIZE = 4

# reduced copy, transparency mask
_DERIVED_BITS = 0b101
_OLD_REDUCED = 2


@dataclass(frozen=True, slots=True)
class _Layout:
    """How numbers of a TIFF are written: classic or BigTIFF, either byte order."""

    order: str
    big: bool

    @property
    def count(self) -> struct.Struct:
        return struct.Struct(self.order + ("Q" if self.big else "H"))

    @property
    def entry(self) -> struct.Struct:
        return struct.Struct(self.order + ("HHQ8s" if self.big else "HHI4s"))

    @property
    def offset(self) -> struct.Struct:
        return struct.Struct(self.order + ("Q" if self.big else "I"))


class Directory:
    """One IFD.

    Parameters
    ----------
    entries : dict
        Of tag to field type, count and the raw value or offset field.
    file : _File
        Where longer values are.
    """

    def __init__(self, entries: dict[int, tuple[int, int, bytes]], file: _File) -> None:
        self._entries = entries
        self._values: dict[int, tuple[Any, ...]] = {}
        self.tags = frozenset(entries)
        for tag in _WANTED & self.tags:
            self._values[tag] = _value(tag, *entries[tag], file)

    def count(self, tag: int) -> int:
        """Return how many values a tag has, 0 if absent."""
        return self._entries[tag][1] if tag in self._entries else 0

    def values(self, tag: int, default: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Return the values of one of the tags that rumi looks at."""
        return self._values.get(tag) or tuple(default)

    def text(self, tag: int) -> str | None:
        """Return an ASCII value without its padding, None if absent or empty."""
        (raw,) = self.values(tag, (b"",))
        return raw.split(b"\0")[0].decode("utf-8", "replace").strip() or None

    @property
    def derived(self) -> bool:
        """Whether it is an overview or a mask of another image."""
        (kind,) = self.values(NEW_SUBFILE_TYPE, (0,))[:1]
        (old,) = self.values(SUBFILE_TYPE, (0,))[:1]
        return bool(kind & _DERIVED_BITS) or (not kind and old == _OLD_REDUCED)


_WANTED = frozenset(
    (
        NEW_SUBFILE_TYPE,
        SUBFILE_TYPE,
        COMPRESSION,
        PHOTOMETRIC,
        ORIENTATION,
        PIXEL_SCALE,
        GDAL_NODATA,
        constants.TAG_BITS_PER_SAMPLE,
        constants.TAG_SAMPLES_PER_PIXEL,
        constants.TAG_SAMPLE_FORMAT,
        constants.TAG_GEO_KEY_DIRECTORY,
    )
)


@dataclass(frozen=True, slots=True)
class TiffTags:
    """What the directories of a file say.

    Attributes
    ----------
    first : Directory
        Of the image itself.
    pages : int
        Further images that are neither overviews nor masks.
    big_endian : bool
    """

    first: Directory
    pages: int
    big_endian: bool

    @property
    def bands(self) -> int:
        """SamplesPerPixel."""
        return int(self.first.values(constants.TAG_SAMPLES_PER_PIXEL, (1,))[0])


class _File:
    """Reads at a position, never beyond the end; errors name the file."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self.name = name
        self.size = os.fstat(stream.fileno()).st_size
        self.layout = _Layout("<", big=False)

    def read(self, position: int, size: int, what: str) -> bytes:
        if position + size > self.size:
            raise TruncatedError(
                f"{self.name}: expected {size} bytes of {what} at byte {position}, found a file of "
                f"{self.size} bytes"
            )
        self._stream.seek(position)
        return self._stream.read(size)

    def unpack(self, form: struct.Struct, position: int, what: str) -> tuple[Any, ...]:
        return form.unpack(self.read(position, form.size, what))


def read_tags(path: bytes, name: str) -> TiffTags:
    """Read the directories of a TIFF.

    Parameters
    ----------
    path : bytes
        A local file.
    name : str
        What errors call it.

    Raises
    ------
    TruncatedError
        If the file ends inside a directory or a value that is needed.
    FormatError
        If it is no TIFF, or a rumi file.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as stream:
        file = _File(stream, name)
        position = _first_offset(file)
        first: Directory | None = None
        pages = 0
        seen: set[int] = set()
        while position and len(seen) < _MAX_DIRECTORIES:
            if position in seen:
                raise FormatError(f"{name}: the directory at byte {position} follows itself")
            seen.add(position)
            directory, position = _directory(file, position)
            if first is None:
                first = directory
                _refuse_rumi(first, file)
            elif not directory.derived:
                pages += 1
    if first is None:
        raise FormatError(f"{name}: a TIFF without a directory holds no image")
    return TiffTags(first, pages, file.layout.order == ">")


def _first_offset(file: _File) -> int:
    """Check the TIFF header; return where the first directory is."""
    if not file.size:
        raise TruncatedError(f"{file.name}: expected a GeoTIFF, found 0 bytes")
    start = file.read(0, min(16, file.size), "TIFF header")
    if start[:4] == struct.pack("<I", constants.MAGIC):
        raise FormatError(
            f"{file.name}: expected a GeoTIFF, found a rumi header blob; the pixels are in its "
            ".rumi file"
        )
    order = {b"II": "<", b"MM": ">"}.get(start[:2])
    version = 0 if order is None or len(start) < 4 else struct.unpack(order + "H", start[2:4])[0]
    if order is None or version not in (42, 43):
        raise FormatError(
            f"{file.name}: expected a GeoTIFF, found bytes starting {start[:8].hex(' ')}; "
            "translate another format to GeoTIFF first, for instance with gdal_translate"
        )
    file.layout = _Layout(order, big=version == 43)
    if version == 42:
        return int(file.unpack(file.layout.offset, 4, "TIFF header")[0])
    size, zero = file.unpack(struct.Struct(order + "HH"), 4, "BigTIFF header")
    if (size, zero) != (8, 0):
        raise FormatError(f"{file.name}: a BigTIFF has offsets of 8 bytes, found {size}")
    return int(file.unpack(file.layout.offset, 8, "BigTIFF header")[0])


def _directory(file: _File, position: int) -> tuple[Directory, int]:
    """Read one IFD; return it and the position of the next."""
    layout = file.layout
    (count,) = file.unpack(layout.count, position, "a directory")
    if count > 0xFFFF:
        raise FormatError(f"{file.name}: the directory at byte {position} claims {count} tags")
    start = position + layout.count.size
    raw = file.read(start, count * layout.entry.size, "a directory")
    entries = {
        tag: (kind, number, field) for tag, kind, number, field in layout.entry.iter_unpack(raw)
    }
    end = start + len(raw)
    if end + layout.offset.size > file.size:
        # Some writers leave out the offset of no further directory.
        return Directory(entries, file), 0
    return Directory(entries, file), int(file.unpack(layout.offset, end, "a directory")[0])


def _value(tag: int, kind: int, count: int, field: bytes, file: _File) -> tuple[Any, ...]:
    """Return the values of an entry; one bytes object for text."""
    if kind not in _TYPES:
        raise FormatError(f"{file.name}: tag {tag} has the unknown field type {kind}")
    code, width = _TYPES[kind]
    size = count * width
    if size > _MAX_VALUE:
        raise FormatError(f"{file.name}: tag {tag} claims {count} values of {width} bytes")
    if size > len(field):
        (position,) = file.layout.offset.unpack(field)
        field = file.read(position, size, f"tag {tag}")
    text, real = code == "s", code in "fd"
    if text is not (tag == GDAL_NODATA) or (real and tag != PIXEL_SCALE) or len(code) > 1:
        raise FormatError(f"{file.name}: tag {tag} cannot have the field type {kind}")
    if text:
        return (field[:size],)
    return struct.unpack(f"{file.layout.order}{count}{code}", field[:size])


def _refuse_rumi(first: Directory, file: _File) -> None:
    """Name a rumi file, which GDAL would take for an uncompressed TIFF."""
    if file.layout != _Layout("<", big=True):
        return
    if first.tags == {tag for tag, _, _ in constants.TAGS}:
        raise FormatError(
            f"{file.name}: expected a GeoTIFF, found a rumi file (its {len(first.tags)} tags, and "
            "no Compression); read it with rumi.read, or rumi.geotiff.export makes a GeoTIFF of it"
        )


def geo_keys(directory: Directory) -> dict[int, tuple[int, int, int]]:
    """Return the GeoKeys: location, count and value of each, by key."""
    shorts = directory.values(constants.TAG_GEO_KEY_DIRECTORY)
    found = {}
    for start in range(_KEY_SIZE, len(shorts) - _KEY_SIZE + 1, _KEY_SIZE):
        key, location, count, value = (int(number) for number in shorts[start : start + _KEY_SIZE])
        found[key] = location, count, value
    return found
