"""Clauses about the header blob, and about blob and file together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rumi._core import frame_data_offset
from rumi._generated import constants as k
from rumi.encodings import ENCODINGS
from rumi.validation.clauses import Registry
from rumi.validation.report import Broken, NotChecked

if TYPE_CHECKING:
    from rumi.validation.facts import BlobFacts, FileFacts

__all__ = ["BLOB", "MATCH", "BlobAndFile"]

BLOB = Registry("blob")
MATCH = Registry("match")

_OFFSETS = {name: offset for name, offset, _, _ in k.HEADER_FIELDS}
_COUNTS = "Frame byte counts"


@dataclass
class BlobAndFile:
    """A blob and the file it should belong to."""

    blob: BlobFacts
    file: FileFacts


def _expect(facts: BlobFacts, field: str, allowed: tuple[int, ...] | range, text: str) -> None:
    found = facts.fields[field]
    if found not in allowed:
        raise Broken(f"{field} {text}", found, offset=_OFFSETS[field])


@BLOB.clause("magic", k.CLAUSES["magic"], "the magic value is 0x45564F4C")
def _magic(facts: BlobFacts) -> None:
    if facts.fields["magic"] != k.MAGIC:
        raise Broken(f"0x{k.MAGIC:08X}", f"0x{facts.fields['magic']:08X}", offset=0)


@BLOB.clause("version", k.CLAUSES["version"], "the format version is 1")
def _version(facts: BlobFacts) -> None:
    _expect(facts, "version", (k.VERSION,), str(k.VERSION))


@BLOB.clause("image-size", k.CLAUSES["image_width"], "the image is at least 1 x 1")
def _image_size(facts: BlobFacts) -> None:
    for field in ("image_width", "image_length"):
        _expect(facts, field, range(1, 1 << 32), "of at least 1")


@BLOB.clause("tile-size", k.CLAUSES["tile_width"], "tile sizes are greater than zero")
def _tile_size(facts: BlobFacts) -> None:
    for field in ("tile_width", "tile_length"):
        _expect(facts, field, range(1, 1 << 32), "of at least 1")


@BLOB.clause("bands", k.CLAUSES["samples_per_pixel"], "samples_per_pixel is at least 1")
def _bands(facts: BlobFacts) -> None:
    _expect(facts, "samples_per_pixel", range(1, 1 << 16), "of at least 1")


@BLOB.clause(
    "encoding", k.CLAUSES["sample_format"], "the (sample_format, bits_per_sample) pair is listed"
)
def _encoding(facts: BlobFacts) -> None:
    pair = facts.fields["sample_format"], facts.fields["bits_per_sample"]
    if pair not in {(e.sample_format, e.bits_per_sample) for e in ENCODINGS}:
        raise Broken("a listed pair", pair, offset=_OFFSETS["bits_per_sample"])


@BLOB.clause("frame-unit", k.CLAUSES["frame_unit"], "frame_unit is 0 (tile) or 1 (cell)")
def _frame_unit(facts: BlobFacts) -> None:
    _expect(facts, "frame_unit", (0, 1), "0 or 1")


@BLOB.clause("count-bits", k.CLAUSES["count_bits"], "count_bits is between 0 and 32")
def _count_bits(facts: BlobFacts) -> None:
    _expect(facts, "count_bits", range(k.MAX_COUNT_BITS + 1), f"0 to {k.MAX_COUNT_BITS}")


@BLOB.clause("size", "Header blob", "the blob is exactly 28 + ceil(N * count_bits / 8) bytes")
def _size(facts: BlobFacts) -> None:
    if len(facts.blob) < k.HEADER_SIZE:
        raise Broken(f"at least {k.HEADER_SIZE} bytes", len(facts.blob), offset=len(facts.blob))
    if facts.fields["count_bits"] > k.MAX_COUNT_BITS:
        raise NotChecked("count_bits is not a width")
    if len(facts.blob) != facts.size:
        raise Broken(
            f"{facts.size} bytes",
            len(facts.blob),
            offset=min(facts.size, len(facts.blob)),
        )


@BLOB.clause("counts-positive", _COUNTS, "every count is greater than zero")
def _positive(facts: BlobFacts) -> None:
    _expect(facts, "count_min", range(1, 1 << 32), "of at least 1")


@BLOB.clause("counts-width", "Fixed IFD", "every count fits TileByteCounts, a LONG")
def _width(facts: BlobFacts) -> None:
    if facts.extremes[1] > 0xFFFFFFFF:
        frame = int(np.argmax(facts.counts > np.uint64(0xFFFFFFFF)))
        raise Broken(f"at most {0xFFFFFFFF}", f"{facts.counts[frame]} of frame {frame}")


@BLOB.clause("canonical-min", f"{_COUNTS}, Encoding", "count_min is the smallest count")
def _canonical_min(facts: BlobFacts) -> None:
    smallest = facts.extremes[0]
    if smallest != facts.fields["count_min"]:
        raise Broken(smallest, facts.fields["count_min"], offset=_OFFSETS["count_min"])


@BLOB.clause("canonical-bits", f"{_COUNTS}, Encoding", "count_bits is the least width that serves")
def _canonical_bits(facts: BlobFacts) -> None:
    largest = facts.extremes[1] - facts.fields["count_min"]
    if largest.bit_length() != facts.fields["count_bits"]:
        raise Broken(
            largest.bit_length(), facts.fields["count_bits"], offset=_OFFSETS["count_bits"]
        )


@BLOB.clause("spare-bits", f"{_COUNTS}, Packing", "unused bits in the final byte are zero")
def _spare_bits(facts: BlobFacts) -> None:
    if len(facts.blob) != facts.size:
        raise NotChecked("the blob has another size")
    used = facts.frame_count * facts.fields["count_bits"] % 8
    if used and facts.blob[-1] >> used:
        raise Broken(
            f"zeros above bit {used - 1}", f"0x{facts.blob[-1]:02X}", offset=len(facts.blob) - 1
        )


@MATCH.clause("image-size", k.CLAUSES["image_width"], "the image size matches the IFD")
def _match_image_size(facts: BlobAndFile) -> None:
    _expect_same(facts, image_width=k.TAG_IMAGE_WIDTH, image_length=k.TAG_IMAGE_LENGTH)


@MATCH.clause("tile-size", k.CLAUSES["tile_width"], "the tile size matches the IFD")
def _match_tile_size(facts: BlobAndFile) -> None:
    _expect_same(facts, tile_width=k.TAG_TILE_WIDTH, tile_length=k.TAG_TILE_LENGTH)


@MATCH.clause("bands", k.CLAUSES["samples_per_pixel"], "the band count matches the IFD")
def _match_bands(facts: BlobAndFile) -> None:
    _expect_same(facts, samples_per_pixel=k.TAG_SAMPLES_PER_PIXEL)


@MATCH.clause("encoding", k.CLAUSES["sample_format"], "the sample encoding matches the IFD")
def _match_encoding(facts: BlobAndFile) -> None:
    _expect_same(facts, bits_per_sample=k.TAG_BITS_PER_SAMPLE, sample_format=k.TAG_SAMPLE_FORMAT)


def _expect_same(facts: BlobAndFile, **tags: int) -> None:
    for field, tag in tags.items():
        expected = facts.file.number(tag)
        if facts.blob.fields[field] != expected:
            raise Broken(
                f"{field} {expected} as in the IFD",
                facts.blob.fields[field],
                offset=_OFFSETS[field],
            )


@MATCH.clause("frame-unit", "Deriving the frame unit", "frame_unit is the one of the IFD")
def _match_unit(facts: BlobAndFile) -> None:
    if facts.file.number(k.TAG_SAMPLES_PER_PIXEL) == 1:
        # With one band the two layouts are identical and either is correct.
        return
    if facts.blob.fields["frame_unit"] != facts.file.frame_unit:
        raise Broken(
            facts.file.frame_unit, facts.blob.fields["frame_unit"], offset=_OFFSETS["frame_unit"]
        )


@MATCH.clause("counts", _COUNTS, "the counts are those of TileByteCounts")
def _match_counts(facts: BlobAndFile) -> None:
    counts = facts.file.frames[1]
    if len(counts) != facts.blob.frame_count:
        raise NotChecked("blob and file have different numbers of frames")
    other = np.flatnonzero(counts != facts.blob.counts)
    if other.size:
        frame = int(other[0])
        raise Broken(f"{counts[frame]} for frame {frame}", facts.blob.counts[frame])


@MATCH.clause("offsets", "Offset reconstruction", "the reconstructed offsets match TileOffsets")
def _match_offsets(facts: BlobAndFile) -> None:
    offsets, counts = facts.file.frames
    bands = facts.blob.fields["samples_per_pixel"]
    if bands == 0:
        raise NotChecked("the blob has no bands")
    if len(counts) != facts.blob.frame_count or not np.array_equal(counts, facts.blob.counts):
        raise NotChecked("the counts differ")
    base = frame_data_offset(len(counts), bands)
    expected = np.cumsum(counts, dtype=np.uint64) - counts + np.uint64(base)
    other = np.flatnonzero(offsets != expected)
    if other.size:
        frame = int(other[0])
        raise Broken(f"{expected[frame]} for frame {frame}", offsets[frame])
