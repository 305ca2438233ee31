"""The file profile: build what stands before the frames, parse it back, rebuild the blob.

A rumi file is a BigTIFF header, one IFD of eleven tags at byte 16, the values
that do not fit into their entries, and the frames. The Kaitai parser generated
from ``formats/rumi_file.ksy`` checks every single value that has one possible
content; the arrays are compared here, as arrays.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi import encodings, georef
from rumi._core import Store, frame_data_offset
from rumi._generated import constants
from rumi.errors import FormatError, RumiError, TruncatedError, UnsupportedError
from rumi.georef import Georeferencing
from rumi.header import FRAME_UNITS, Header
from rumi.source import open_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.remote.opened import OpenObject
    from rumi.source import Opened, SourceLike

__all__ = ["Container", "build_prefix", "index", "read_container", "read_container_async"]

# Enough for the index of most chips, so that most files take one read.
_FIRST_READ = 4096

# No file's frames start earlier, so a first request for this much fetches none; it
# is the whole index of a file of one frame.
_LEAST_PREFIX = constants.EXTERNAL_OFFSET + constants.GEOREFERENCING_SIZE

# What to do with a file that ends too early.
_CUT = "it was cut short: copy, download or write it again"

_FIELD_TYPES = {
    constants.FIELD_TYPE_SHORT: "<u2",
    constants.FIELD_TYPE_LONG: "<u4",
    constants.FIELD_TYPE_LONG8: "<u8",
    constants.FIELD_TYPE_DOUBLE: "<f8",
}


@dataclass(frozen=True, slots=True)
class Container:
    """What a file says before its first frame.

    Attributes
    ----------
    header : Header
        The header blob of the file.
    georeferencing : Georeferencing
        CRS, transform and raster type.
    """

    header: Header
    georeferencing: Georeferencing


def build_prefix(header: Header, georeferencing: Georeferencing) -> bytes:
    """Return every byte of a file before its first frame.

    Raises
    ------
    ValueError, UnsupportedError
        If the georeferencing cannot be carried.

    Notes
    -----
    Source: specification 0.1.0, Fixed IFD and Placement.
    """
    bands = header.samples_per_pixel
    matrix, keys = georef.encode(georeferencing)
    values: dict[str, bytes] = {
        "ImageWidth": struct.pack("<I", header.image_width),
        "ImageLength": struct.pack("<I", header.image_length),
        "BitsPerSample": struct.pack("<H", header.bits_per_sample) * bands,
        "SamplesPerPixel": struct.pack("<H", bands),
        "TileWidth": struct.pack("<H", header.tile_width),
        "TileLength": struct.pack("<H", header.tile_length),
        "TileOffsets": header.offsets.tobytes(),
        "TileByteCounts": header.byte_counts.tobytes(),
        "SampleFormat": struct.pack("<H", header.sample_format) * bands,
        "ModelTransformationTag": matrix,
        "GeoKeyDirectoryTag": keys,
    }
    entries = [struct.pack("<Q", len(constants.TAGS))]
    external: list[bytes] = []
    position = constants.EXTERNAL_OFFSET
    for tag, name, field_type in constants.TAGS:
        value = values[name]
        count = len(value) // np.dtype(_FIELD_TYPES[field_type]).itemsize
        entry = struct.pack("<HHQ", tag, field_type, count)
        if len(value) <= constants.INLINE_SIZE:
            entries.append(entry + value.ljust(constants.INLINE_SIZE, b"\0"))
        else:
            entries.append(entry + struct.pack("<Q", position))
            external.append(value)
            position += len(value)
    entries.append(bytes(8))
    return b"".join((constants.BIGTIFF_HEADER, *entries, *external))


def index(source: SourceLike) -> Header:
    """Rebuild the header blob from a file, checking its whole profile.

    Reads what stands before the frames and the file's size, never a frame.

    Parameters
    ----------
    source : path, URL, RemoteSource or bytes-like
        The file. Of a remote one, its index takes at most two requests.

    Returns
    -------
    Header
        Equal, byte for byte, to the one that the writer returned. For one band
        both frame units are the same layout and tile is recorded.

    Raises
    ------
    FormatError
        If the file breaks the profile; TruncatedError where it ends too early.
    OSError
        If it cannot be read.

    Notes
    -----
    Source: specification 0.1.0, File profile, Fixed IFD, Deriving the frame
    unit and Offset reconstruction.
    """
    return read_container(open_source(source)).header


def read_container(source: Opened) -> Container:
    """Parse and check everything before the frames; see `index` for the errors."""
    first = source.read(0, _FIRST_READ if isinstance(source, Store) else _LEAST_PREFIX)
    # Of a remote file, the first reply tells the size.
    name, size = source.name, source.size
    base = _frame_data_start(first, size, name)
    if base > len(first):
        first += source.read(len(first), base - len(first))
    return _check(_parse_whole(first, base, name), size, name)


async def read_container_async(source: OpenObject) -> Container:
    """Do as `read_container`, with at most two requests."""
    first = await source.read_async(0, _LEAST_PREFIX)
    name, size = source.name, source.size
    base = _frame_data_start(first, size, name)
    if base > len(first):
        first += await source.read_async(len(first), base - len(first))
    return _check(_parse_whole(first, base, name), size, name)


def _parse_whole(first: bytes, base: int, name: str) -> Any:
    """Parse everything before the frames."""
    if len(first) < base:
        # It was longer when its size was asked for.
        raise TruncatedError(
            f"{name}: expected frame data from byte {base} on (base_frame_offset), but the file "
            f"was cut to {len(first)} bytes while it was read"
        )
    return _parse(first[:base], name)


def _frame_data_start(first: bytes, size: int, name: str) -> int:
    """Return where the frames start, from the first bytes of a file."""
    _refuse_foreign(first, name)
    if len(first) < constants.EXTERNAL_OFFSET:
        raise TruncatedError(
            f"{name}: expected at least {constants.EXTERNAL_OFFSET} bytes of BigTIFF header and "
            f"IFD, found {len(first)} (File profile); {_CUT}"
        )
    parsed = _parse(first[: constants.EXTERNAL_OFFSET], name)
    frames = parsed.ifd.tile_offsets.count
    if frames > size:
        raise TruncatedError(
            f"{name}: TileOffsets: expected room for {frames} frames, found a file of {size} bytes"
        )
    base = frame_data_offset(frames, parsed.ifd.samples_per_pixel.first_value)
    if base >= size:
        raise TruncatedError(
            f"{name}: expected frame data from byte {base} on (base_frame_offset), found a file of "
            f"{size} bytes (File profile); {_CUT}"
        )
    return base


def _refuse_foreign(first: bytes, name: str) -> None:
    """Say what a file is that is certainly no rumi file."""
    if not first:
        raise TruncatedError(f"{name}: expected a rumi file, found 0 bytes (File profile); {_CUT}")
    if constants.BIGTIFF_HEADER.startswith(first):
        raise TruncatedError(
            f"{name}: expected at least {constants.EXTERNAL_OFFSET} bytes of BigTIFF header and "
            f"IFD, found {len(first)} (File profile); {_CUT}"
        )
    start = first[:4]
    found = {
        b"II*\0": "a classic TIFF",
        b"MM\0*": "a classic big-endian TIFF",
        b"MM\0+": "a big-endian BigTIFF",
        struct.pack("<I", constants.MAGIC): "a header blob, which belongs in `header`",
    }.get(start)
    if found is None and start[:2] != b"II":
        found = f"bytes starting {first[:8].hex(' ')}"
        if start[:1] == b"<":
            found += ", as of a web page that a server sends in place of a file; fetch it again"
    if found is not None:
        hint = "; convert a GeoTIFF with `rumi convert`" if "TIFF" in found else ""
        raise FormatError(
            f"{name}: expected a little-endian BigTIFF with the rumi profile (byte 0: 49 49 2b 00),"
            f" found {found} (File profile){hint}"
        )
    if start == b"II+\0" and len(first) >= constants.EXTERNAL_OFFSET:
        _refuse_ordinary_bigtiff(first, name)


def _refuse_ordinary_bigtiff(first: bytes, name: str) -> None:
    """Name a BigTIFF with other tags as what it is; the parser would name one byte."""
    if struct.unpack_from("<Q", first, 8)[0] != constants.IFD_OFFSET:
        return
    (count,) = struct.unpack_from("<Q", first, constants.IFD_OFFSET)
    available = (len(first) - constants.IFD_OFFSET - 8) // constants.IFD_ENTRY_SIZE
    tags = [
        struct.unpack_from("<H", first, constants.IFD_OFFSET + 8 + i * constants.IFD_ENTRY_SIZE)[0]
        for i in range(min(count, available))
    ]
    expected = [tag for tag, _, _ in constants.TAGS]
    extra = [tag for tag in tags if tag not in expected]
    if count != len(expected) or extra:
        missing = [tag for tag in expected if tag not in tags]
        raise FormatError(
            f"{name}: the IFD must hold exactly the {len(expected)} tags of the rumi profile, "
            f"found {count} entries (extra tags {extra[:8]}, missing tags {missing}; Fixed IFD); "
            "an ordinary GeoTIFF converts with `rumi convert`"
        )


def _parse(data: bytes, name: str) -> Any:
    """Run the generated parser; the one place that translates Kaitai's errors."""
    # Imported here: a read with a header at hand parses no IFD.
    import kaitaistruct

    from rumi._generated.rumi_file import RumiFile

    try:
        return RumiFile(kaitaistruct.KaitaiStream(BytesIO(data)))
    except (kaitaistruct.ValidationFailedError, EOFError, ValueError) as error:
        raise FormatError(f"{name}: {_explain(data, error)}") from error


def _explain(data: bytes, error: Exception) -> str:
    """Say in one line which clause broke, where, what was expected and found.

    The parser stops at a byte; the clauses say what the byte is about.
    """
    from rumi.validation.facts import FileFacts
    from rumi.validation.file_clauses import FILE

    facts = FileFacts(Store.memory(data))
    for finding in FILE.run(facts):
        # The file is longer than what was read of it.
        if finding.status == "failed" and finding.clause.id != "file.complete":
            return (
                f"{finding.clause.text} ({finding.clause.section}, byte {finding.offset}): "
                f"expected {finding.expected}, found {finding.found}"
            )
    return f"expected the profile of a rumi file, found otherwise: {error}".replace("\n", " ")


def _check(parsed: Any, size: int, name: str) -> Container:
    """Check what relates one value to another, then make the header."""
    bits = _uniform(parsed.ifd.bits_per_sample.value_raw, "BitsPerSample", name)
    sample_format = _uniform(parsed.ifd.sample_format.value_raw, "SampleFormat", name)
    try:
        encoding = encodings.from_pair(sample_format, bits)
    except UnsupportedError as error:
        raise FormatError(f"{name}: {error}") from error
    offsets = np.frombuffer(parsed.ifd.tile_offsets.value_raw, dtype="<u8")
    counts = np.frombuffer(parsed.ifd.tile_byte_counts.value_raw, dtype="<u4")
    _check_frames(parsed, offsets, counts, size, name)
    georeferencing = georef.decode(
        parsed.ifd.model_transformation.value_raw,
        parsed.ifd.geo_key_directory.value_raw,
        where=name,
    )
    try:
        header = Header.build(
            (parsed.samples_per_pixel, parsed.image_length, parsed.image_width),
            (parsed.tile_length, parsed.tile_width),
            encoding,
            FRAME_UNITS[int(getattr(parsed.frame_unit, "value", parsed.frame_unit))],
            counts,
        )
    except RumiError as error:
        raise FormatError(f"{name}: {error}") from error
    return Container(header, georeferencing)


def _uniform(raw: bytes, tag: str, name: str) -> int:
    """Return the value that all bands share."""
    values = np.frombuffer(raw, dtype="<u2")
    different = np.flatnonzero(values != values[0])
    if different.size:
        band = int(different[0])
        raise FormatError(
            f"{name}: {tag}: expected {values[0]} for every band, found {values[band]} for band "
            f"{band} (Sample encodings)"
        )
    return int(values[0])


def _check_frames(
    parsed: Any, offsets: NDArray[Any], counts: NDArray[Any], size: int, name: str
) -> None:
    """Compare offsets with the prefix sum of the sizes, in frame-index order, never sorted."""
    empty = np.flatnonzero(counts == 0)
    if empty.size:
        raise FormatError(
            f"{name}: TileByteCounts of frame {empty[0]}: expected more than 0, found 0 (sparse "
            "frames are not allowed; File profile)"
        )
    base = frame_data_offset(len(offsets), parsed.samples_per_pixel)
    ends = np.cumsum(counts, dtype=np.uint64) + np.uint64(base)
    expected = np.concatenate((np.array([base], dtype=np.uint64), ends[:-1]))
    wrong = np.flatnonzero(offsets != expected)
    if wrong.size:
        frame = int(wrong[0])
        clause = "File profile" if frame else "Deriving base_frame_offset"
        if bool((offsets[1:] < offsets[:-1]).any()) and _contiguous(offsets, counts):
            clause = "the frames are not in frame-index order; Rejected orders"
        raise FormatError(
            f"{name}: TileOffsets of frame {frame}: expected {expected[frame]}, found "
            f"{offsets[frame]} ({clause})"
        )
    end = int(ends[-1])
    if end > size:
        frame = int(np.searchsorted(ends, np.uint64(size), side="right"))
        raise TruncatedError(
            f"{name}: expected {end} bytes, found {size}; the file ends in frame {frame}, bytes "
            f"{expected[frame]} to {ends[frame]} (File profile)"
        )
    if end < size:
        raise FormatError(
            f"{name}: expected {end} bytes, found {size}: bytes follow the last frame "
            "(File profile)"
        )


def _contiguous(offsets: NDArray[Any], counts: NDArray[Any]) -> bool:
    """Whether the frames would be one run if their order did not matter."""
    order = np.argsort(offsets, kind="stable")
    ends = offsets[order] + counts[order]
    return bool(np.array_equal(ends[:-1], offsets[order][1:]))
