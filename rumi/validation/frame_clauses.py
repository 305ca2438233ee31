"""Clauses about the frames themselves, at two depths: their headers, or all their samples."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from openzl import ext as openzl

from rumi import backends
from rumi._core import FRAME_MAGIC, openzl_reason
from rumi._generated import constants as k
from rumi.encodings import ENCODINGS
from rumi.validation.clauses import Registry
from rumi.validation.report import Broken, NotChecked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi._core import Decoder
    from rumi.encodings import Encoding
    from rumi.validation.facts import FileFacts

__all__ = ["DECODED", "FRAMES", "FrameFacts"]

FRAMES = Registry("frame")
DECODED = Registry("frame")

_FRAMES = "Frames"


@dataclass(frozen=True, slots=True)
class _Frame:
    """One frame: where it is and what it must decode to."""

    index: int
    offset: int
    size: int
    decoded: int

    def broken(self, expected: object, found: object, reason: str = "") -> Broken:
        return Broken(f"{expected} in frame {self.index}", found, offset=self.offset, reason=reason)


@dataclass
class FrameFacts:
    """The frames of a file whose index holds together.

    Attributes
    ----------
    file : FileFacts
    progress : callable or None
        Called with the numbers of frames decoded and in all.
    """

    file: FileFacts
    progress: Callable[[int, int], object] | None = None

    @cached_property
    def frames(self) -> list[_Frame]:
        """Every frame in frame-index order."""
        offsets, counts = self.file.frames
        if int(self.file.ends.max()) > self.file.size:
            raise NotChecked("frames reach beyond the end of the file")
        sizes = _decoded_sizes(self.file)
        if len(sizes) != len(offsets):
            raise NotChecked("the number of frames fits no frame unit")
        return [
            _Frame(index, offset, count, decoded)
            for index, (offset, count, decoded) in enumerate(
                zip(offsets.tolist(), counts.tolist(), sizes, strict=True)
            )
        ]

    def start(self, frame: _Frame) -> bytes:
        """Return the four bytes that a frame starts with."""
        data: bytes = self.file.source.read(frame.offset, min(4, frame.size))
        return data

    def contents(self) -> Iterator[tuple[_Frame, bytes]]:
        """Yield every frame with its bytes."""
        for frame in self.frames:
            yield frame, self.file.source.read(frame.offset, frame.size)

    @cached_property
    def versions(self) -> list[int]:
        """Frame format version of each frame, -1 for what is no frame."""
        found = []
        for frame in self.frames:
            start = self.start(frame)
            word = struct.unpack("<I", start)[0] if len(start) == 4 else 0
            found.append(word - FRAME_MAGIC if 0 <= word - FRAME_MAGIC < 64 else -1)
        return found


def _encoding(file: FileFacts) -> Encoding:
    pair = file.number(k.TAG_SAMPLE_FORMAT), file.number(k.TAG_BITS_PER_SAMPLE)
    for encoding in ENCODINGS:
        if (encoding.sample_format, encoding.bits_per_sample) == pair:
            return encoding
    raise NotChecked("the sample encoding is not listed")


def _decoded_sizes(file: FileFacts) -> list[int]:
    """Return the bytes that each frame must decode to, edge tiles cut."""
    encoding = _encoding(file)
    # Raises where the grid is not that of the frames there are, before it is laid out.
    unit = file.frame_unit
    bands = file.number(k.TAG_SAMPLES_PER_PIXEL)
    heights = _sides(file, k.TAG_IMAGE_LENGTH, k.TAG_TILE_LENGTH, file.grid[0])
    widths = _sides(file, k.TAG_IMAGE_WIDTH, k.TAG_TILE_WIDTH, file.grid[1])
    sizes = (heights[:, None] * widths).ravel() * encoding.itemsize
    sizes = sizes * bands if unit == k.FRAME_UNIT_CELL else np.repeat(sizes, bands)
    found: list[int] = sizes.tolist()
    return found


def _sides(file: FileFacts, image: int, tile: int, count: int) -> NDArray[np.int64]:
    """Return the true tile sizes along one axis, the last one cut."""
    sides = np.full(count, file.number(tile), dtype=np.int64)
    sides[-1] = file.number(image) - (count - 1) * file.number(tile)
    return sides


@FRAMES.clause("magic", _FRAMES, "each frame starts as an OpenZL frame")
def _magic(facts: FrameFacts) -> None:
    for frame, version in zip(facts.frames, facts.versions, strict=True):
        if version < 0:
            raise frame.broken("the magic of an OpenZL frame", facts.start(frame).hex(" "))


@FRAMES.clause("version", _FRAMES, "all frames use the same pinned frame format version")
def _version(facts: FrameFacts) -> None:
    known = [version for version in facts.versions if version >= 0]
    for frame, version in zip(facts.frames, facts.versions, strict=True):
        if version >= 0 and version != known[0]:
            raise frame.broken(f"version {known[0]}", version)


@FRAMES.clause("declared-size", k.CLAUSES["tile_width"], "each frame declares its tile's size")
def _declared_size(facts: FrameFacts) -> None:
    for frame, data in facts.contents():
        outputs, declared = _declared(data)
        if outputs not in (None, 1):
            raise frame.broken("one output", outputs)
        if declared is not None and declared != frame.decoded:
            raise frame.broken(f"{frame.decoded} bytes of samples", declared)


@DECODED.clause("decodes", _FRAMES, "each frame decodes alone to the samples of its tile, cut")
def _decodes(facts: FrameFacts) -> None:
    decoder = backends.decoder("auto")
    encoding = _encoding(facts.file)
    for frame, data in facts.contents():
        # What a frame declares decides what is allocated: another claim than the
        # tile's, the matter of another clause, is not followed.
        if _declared(data) == (1, frame.decoded):
            _decode(decoder, frame, data, encoding.bits_per_sample)
        elif struct.unpack("<I", data[:4].ljust(4, b"\0"))[0] - FRAME_MAGIC in range(64):
            _refuse_unless_sized(frame, data)
        if facts.progress is not None:
            facts.progress(frame.index + 1, len(facts.frames))


def _declared(data: bytes) -> tuple[int | None, int | None]:
    """Return the outputs and the size that a frame declares; None where it does not say."""
    try:
        info = openzl.FrameInfo(data)
        outputs = info.num_outputs
        return outputs, info.output_content_size(0) if outputs == 1 else None
    except RuntimeError:
        return None, None


def _refuse_unless_sized(frame: _Frame, data: bytes) -> None:
    """Refuse a frame that has the magic but no readable header."""
    if _declared(data) == (None, None):
        raise frame.broken("an OpenZL frame that decodes", "one whose header cannot be read")


def _decode(decoder: Decoder, frame: _Frame, data: bytes, bits: int) -> None:
    try:
        samples = decoder.samples(data)
    except RuntimeError as error:
        if "ustom decoder" in str(error) and backends.teach(decoder):
            return _decode(decoder, frame, data, bits)
        raise frame.broken("an OpenZL frame that decodes", "none", openzl_reason(error)) from error
    if len(samples) != frame.decoded:
        raise frame.broken(f"{frame.decoded} bytes of samples", len(samples))
    if bits < 8 and int(np.frombuffer(samples, np.uint8).max()) >> bits:
        raise frame.broken(f"samples of {bits} bits", "a larger one")
    return None
