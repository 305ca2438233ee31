"""What a file and a blob say, read leniently: whatever is wrong is kept, not refused."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi._core import frame_data_offset, unpack
from rumi._generated import constants
from rumi.validation.report import NotChecked

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BlobFacts", "Entry", "FileFacts"]

# An IFD with more entries than this is looked at no further.
_MAX_ENTRIES = 4096

# No array of NumPy is longer, not even one that takes no memory.
_MOST_COUNTS = 1 << 59

_WIDTHS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
_WIDTHS |= {16: 8, 17: 8, 18: 8}
_NUMBERS = {3: "<u2", 4: "<u4", 12: "<f8", 16: "<u8"}
_FIELD_CODES = {"uint8": "B", "uint16": "H", "uint32": "I"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One IFD entry as it is stored.

    Attributes
    ----------
    position : int
        Byte of the entry in the file.
    tag, type, count : int
    value : bytes
        The value, or its offset, as the eight bytes stand there.
    """

    position: int
    tag: int
    type: int
    count: int
    value: bytes

    @property
    def size(self) -> int:
        """Bytes of the value; an unknown type counts as one byte a value."""
        return _WIDTHS.get(self.type, 1) * self.count

    @property
    def inline(self) -> bool:
        """Whether the value stands in the entry."""
        return self.size <= constants.INLINE_SIZE

    @property
    def offset(self) -> int:
        """Where an external value starts."""
        return int.from_bytes(self.value, "little")


@dataclass
class FileFacts:
    """A file before its frames, read without believing it.

    Attributes
    ----------
    source : Store
        The opened file.
    """

    source: Any

    @cached_property
    def first(self) -> bytes:
        """The bytes of BigTIFF header and IFD, fewer where the file is shorter."""
        data: bytes = self.source.read(0, constants.EXTERNAL_OFFSET)
        return data

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return int(self.source.size)

    @cached_property
    def ifd_offset(self) -> int:
        """Where the first IFD starts."""
        if self.first[:4] != constants.BIGTIFF_HEADER[:4] or len(self.first) < 16:
            raise NotChecked("the file is no little-endian BigTIFF")
        return int(struct.unpack_from("<Q", self.first, 8)[0])

    @cached_property
    def entry_count(self) -> int:
        """How many entries the first IFD claims."""
        head = self._read(self.ifd_offset, 8, "the IFD")
        return int(struct.unpack("<Q", head)[0])

    @cached_property
    def entries(self) -> list[Entry]:
        """The entries of the first IFD, wherever it is."""
        start, count = self.ifd_offset, self.entry_count
        if count > _MAX_ENTRIES:
            raise NotChecked(f"the IFD claims {count} entries")
        raw = self._read(start + 8, count * constants.IFD_ENTRY_SIZE, "the IFD")
        return [
            Entry(start + 8 + at, *struct.unpack_from("<HHQ8s", raw, at))
            for at in range(0, len(raw), constants.IFD_ENTRY_SIZE)
        ]

    @cached_property
    def next_ifd(self) -> tuple[int, int]:
        """Byte and value of the offset of the next IFD."""
        entries = len(self.entries)
        at = self.ifd_offset + 8 + entries * constants.IFD_ENTRY_SIZE
        return at, struct.unpack("<Q", self._read(at, 8, "the offset of the next IFD"))[0]

    def entry(self, tag: int) -> Entry:
        """Return the first entry of a tag."""
        for entry in self.entries:
            if entry.tag == tag:
                return entry
        raise NotChecked(f"tag {tag} is missing")

    def raw(self, tag: int) -> bytes:
        """Return the value of a tag."""
        entry = self.entry(tag)
        if entry.inline:
            return entry.value[: entry.size]
        return self._read(entry.offset, entry.size, f"the value of tag {tag}")

    def array(self, tag: int) -> NDArray[Any]:
        """Return the value of a tag as numbers of its own type."""
        entry = self.entry(tag)
        if entry.type not in _NUMBERS:
            raise NotChecked(f"tag {tag} has type {entry.type}")
        if entry.count == 0:
            raise NotChecked(f"tag {tag} has no value")
        return np.frombuffer(self.raw(tag), dtype=_NUMBERS[entry.type])

    def integers(self, tag: int) -> NDArray[Any]:
        """Return the value of a tag as integers; doubles have none for infinity and NaN."""
        values = self.array(tag)
        if values.dtype.kind == "f":
            raise NotChecked(f"tag {tag} has type {self.entry(tag).type}")
        return values

    def number(self, tag: int) -> int:
        """Return the first value of a tag."""
        return int(self.integers(tag)[0])

    def value_offset(self, tag: int) -> int:
        """Return the byte where the value of a tag starts."""
        entry = self.entry(tag)
        return entry.position + 12 if entry.inline else entry.offset

    @cached_property
    def grid(self) -> tuple[int, int]:
        """Grid rows and columns."""
        sides = [
            self.number(tag)
            for tag in (
                constants.TAG_IMAGE_LENGTH,
                constants.TAG_TILE_LENGTH,
                constants.TAG_IMAGE_WIDTH,
                constants.TAG_TILE_WIDTH,
            )
        ]
        if 0 in sides:
            raise NotChecked("an image or tile side is 0")
        return -(-sides[0] // sides[1]), -(-sides[2] // sides[3])

    @cached_property
    def frame_unit(self) -> int:
        """The frame unit that the entry count of TileOffsets says."""
        positions = self.grid[0] * self.grid[1]
        bands = self.number(constants.TAG_SAMPLES_PER_PIXEL)
        count = self.entry(constants.TAG_TILE_OFFSETS).count
        if count == positions * bands:
            return constants.FRAME_UNIT_TILE
        if count == positions:
            return constants.FRAME_UNIT_CELL
        raise NotChecked("the number of frames fits no frame unit")

    @cached_property
    def frames(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Offsets and sizes of the frames in bytes, as the IFD has them."""
        offsets = self.integers(constants.TAG_TILE_OFFSETS)
        counts = self.integers(constants.TAG_TILE_BYTE_COUNTS)
        if len(offsets) != len(counts):
            raise NotChecked("TileOffsets and TileByteCounts differ in length")
        return offsets.astype(np.uint64), counts.astype(np.uint64)

    @cached_property
    def ends(self) -> NDArray[np.uint64]:
        """Where each frame ends; one beyond 64 bits counts as the largest number."""
        offsets, counts = self.frames
        ends: NDArray[np.uint64] = np.where(offsets > ~counts, ~np.uint64(0), offsets + counts)
        return ends

    @cached_property
    def base_frame_offset(self) -> int:
        """Where the formula has frame data start, for the frames and bands of the IFD."""
        bands = self.number(constants.TAG_SAMPLES_PER_PIXEL)
        if not 1 <= bands <= 0xFFFF:
            raise NotChecked("the band count is not 1 to 65535")
        return frame_data_offset(len(self.frames[0]), bands)

    def _read(self, start: int, size: int, what: str) -> bytes:
        """Read bytes that must be inside the file; nothing larger than it is allocated."""
        if start + size > self.size:
            raise NotChecked(f"{what} reaches beyond the end of the file")
        data: bytes = self.source.read(start, size)
        return data


@dataclass
class BlobFacts:
    """A header blob, read without believing it."""

    blob: bytes

    @cached_property
    def fields(self) -> dict[str, int]:
        """The fields of the fixed part under the specification's names."""
        if len(self.blob) < constants.HEADER_SIZE:
            raise NotChecked("the blob is shorter than its fixed part")
        return {
            name: struct.unpack_from(f"<{_FIELD_CODES[kind]}", self.blob, offset)[0]
            for name, offset, _, kind in constants.HEADER_FIELDS
        }

    @cached_property
    def frame_count(self) -> int:
        """N, from the image shape and the frame unit."""
        f = self.fields
        if not f["tile_width"] or not f["tile_length"]:
            raise NotChecked("a tile side is 0")
        across = -(-f["image_width"] // f["tile_width"])
        down = -(-f["image_length"] // f["tile_length"])
        bands = f["samples_per_pixel"] if f["frame_unit"] == constants.FRAME_UNIT_TILE else 1
        return across * down * bands

    @cached_property
    def size(self) -> int:
        """Bytes that the blob's own fields demand."""
        bits = self.frame_count * self.fields["count_bits"]
        return constants.HEADER_SIZE + -(-bits // 8)

    @cached_property
    def counts(self) -> NDArray[np.uint64]:
        """The byte counts, wider than a LONG so that none wraps."""
        if len(self.blob) != self.size or self.fields["count_bits"] > constants.MAX_COUNT_BITS:
            raise NotChecked("the packed sizes are not what the fields demand")
        count, bits = self.frame_count, self.fields["count_bits"]
        if count == 0:
            raise NotChecked("the blob has no frames")
        smallest = np.uint64(self.fields["count_min"])
        if not bits:
            # In 28 bytes a blob of equal counts claims any number of frames.
            return np.broadcast_to(smallest, min(count, _MOST_COUNTS))
        residuals = np.empty(count, dtype=np.uint32)
        unpack(np.frombuffer(self.blob, np.uint8)[constants.HEADER_SIZE :], 0, bits, residuals)
        counts: NDArray[np.uint64] = residuals + smallest
        return counts

    @cached_property
    def extremes(self) -> tuple[int, int]:
        """The smallest and the largest byte count."""
        counts = self.counts
        if not self.fields["count_bits"]:
            counts = counts[:1]
        return int(counts.min()), int(counts.max())
