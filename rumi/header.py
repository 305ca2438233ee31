"""The header blob as a Python object: fields, geometry, frame locations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from rumi import encodings
from rumi._core import BlobHeader, Plan, pack, serialise
from rumi._generated import constants
from rumi.errors import HeaderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rumi.encodings import Encoding

__all__ = ["FRAME_UNITS", "Header", "as_header", "frame_unit_code"]

FRAME_UNITS = ("tile", "cell")

# NumPy types met so far, by pair: finding one takes a good part of a small read.
_DTYPES: dict[tuple[int, int], np.dtype[Any]] = {}


class Header(BlobHeader):
    """A header blob: 28 bytes and the packed sizes of the frames.

    ``bytes(header)`` is the blob again. The fields stand under the
    specification's names: ``version``, ``image_width``, ``image_length``,
    ``tile_width``, ``tile_length``, ``samples_per_pixel``, ``bits_per_sample``,
    ``sample_format``, ``frame_unit`` (0 tile, 1 cell), ``count_min`` and
    ``count_bits``; sizes are in pixels. Derived from them are ``tiles_across``,
    ``tiles_down``, ``frame_count``, ``frame_bytes`` (decoded, of a frame that no edge
    cuts), ``base_frame_offset`` and ``file_size`` (bytes).

    Parameters
    ----------
    blob : bytes-like or Header
        The blob, exactly.

    Raises
    ------
    TruncatedError
        If the blob is shorter than its own fields demand.
    HeaderError
        If a field breaks the specification or the sizes are not packed canonically.

    Notes
    -----
    Immutable, hashable, compares by its bytes, pickles as its bytes. Parsing is
    one pass over the packed sizes; a blob whose frames are all equally long
    costs the same however many there are.
    Source: specification 0.1.0, Header blob.
    """

    __slots__ = ()

    @classmethod
    def build(
        cls,
        shape: tuple[int, int, int],
        tile_shape: tuple[int, int],
        encoding: Encoding,
        frame_unit: str,
        byte_counts: Sequence[int] | NDArray[Any],
    ) -> Header:
        """Make the one canonical header of a file.

        Parameters
        ----------
        shape : (int, int, int)
            Bands, height and width of the image, in pixels.
        tile_shape : (int, int)
            Height and width of a tile, in pixels.
        encoding : Encoding
            Type of a sample.
        frame_unit : {"tile", "cell"}
            What one frame holds.
        byte_counts : sequence of int, shape (N,)
            Compressed size of every frame in frame-index order, in bytes.

        Raises
        ------
        TypeError
            If a size is no integer.
        HeaderError
            If the number of sizes is not that of the frames.
        ValueError
            If a size is zero or 4 GiB and more, or a field does not fit its width.
        """
        counts = np.asarray(byte_counts)
        if counts.size and counts.dtype.kind not in "iu":
            raise TypeError(f"frame byte counts are integers, found {counts.dtype}")
        expected = _frame_count(shape, tile_shape, frame_unit)
        if counts.shape != (expected,):
            raise HeaderError(
                f"header blob: expected {expected} frame byte counts for {shape} in tiles of "
                f"{tile_shape}, found {counts.size}"
            )
        if counts.size and (counts.min() < 1 or counts.max() > 0xFFFFFFFF):
            raise ValueError(
                f"frame byte counts must be 1 to {0xFFFFFFFF}, found {counts.min()} to "
                f"{counts.max()}"
            )
        count_min, count_bits, packed = pack(np.ascontiguousarray(counts, dtype=np.uint32))
        bands, height, width = shape
        try:
            blob = serialise(
                width,
                height,
                tile_shape[1],
                tile_shape[0],
                bands,
                encoding.bits_per_sample,
                encoding.sample_format,
                frame_unit_code(frame_unit),
                count_min,
                count_bits,
                packed,
            )
        except OverflowError as error:
            raise ValueError(
                f"shape {shape} with tiles {tile_shape} does not fit: {error}"
            ) from error
        return cls(blob)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Bands, height and width of the image in pixels."""
        return self.samples_per_pixel, self.image_length, self.image_width

    @property
    def tile_shape(self) -> tuple[int, int]:
        """Nominal height and width of a tile in pixels; edge tiles are cut."""
        return self.tile_length, self.tile_width

    @property
    def encoding(self) -> Encoding:
        """The sample encoding."""
        return encodings.from_pair(self.sample_format, self.bits_per_sample)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of a sample.

        Raises
        ------
        UnsupportedError
            If it comes from ml_dtypes and that is not installed.
        """
        found = _DTYPES.get((self.sample_format, self.bits_per_sample))
        if found is None:
            found = self.encoding.dtype
            _DTYPES[self.sample_format, self.bits_per_sample] = found
        return found

    @property
    def unit(self) -> str:
        """What one frame holds, "tile" or "cell"."""
        return FRAME_UNITS[self.frame_unit]

    @property
    def byte_counts(self) -> NDArray[np.uint32]:
        """Compressed size of every frame in bytes, shape (N,); a new array each time."""
        out = np.empty(self.frame_count, dtype=np.uint32)
        self.fill_byte_counts(out)
        return out

    @property
    def offsets(self) -> NDArray[np.uint64]:
        """File offset of every frame in bytes, shape (N,); a new array each time."""
        out = np.empty(self.frame_count, dtype=np.uint64)
        self.fill_offsets(out)
        return out

    def frame_index(self, row: SupportsIndex, col: SupportsIndex, band: SupportsIndex = 0) -> int:
        """Return the index of the frame that holds a grid position and band.

        Parameters
        ----------
        row, col : int
            Grid position, zero-based.
        band : int
            Zero-based; all bands of a cell share its frame.

        Raises
        ------
        IndexError
            If the position or band is outside the image.

        Notes
        -----
        Source: specification 0.1.0, Frame index.
        """
        limits = (self.tiles_down, self.tiles_across, self.samples_per_pixel)
        row, col, band = (
            _checked(value, limit, name)
            for value, limit, name in zip(
                (row, col, band), limits, ("grid row", "grid column", "band"), strict=True
            )
        )
        position = row * self.tiles_across + col
        if self.unit == "cell":
            return position
        return position * self.samples_per_pixel + band

    def frame_position(self, index: SupportsIndex) -> tuple[int, int, int | None]:
        """Return grid row, grid column and band (None for a cell) of a frame."""
        number = _checked(index, self.frame_count, "frame")
        band: int | None = None
        if self.unit == "tile":
            number, band = divmod(number, self.samples_per_pixel)
        row, col = divmod(number, self.tiles_across)
        return row, col, band

    def ranges(
        self, bands: Any = None, window: Any = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the frames of a window lie, in file order.

        Parameters
        ----------
        bands : int, sequence of int, slice or None
            Zero-based; None takes all.
        window : (row, column, height, width), window object or None
            In pixels; None takes the whole image.

        Returns
        -------
        offsets, counts : ndarray of int64, shape (frames touched,)
            First byte and number of bytes of each frame.

        Raises
        ------
        TypeError, ValueError, IndexError
            As `rumi.read` refuses windows and bands.
        """
        plan = Plan(self, bands, window)
        indices, offsets, counts = np.empty((3, plan.frame_count), dtype=np.int64)
        plan.fill_frames(indices, offsets, counts)
        return offsets, counts

    def __repr__(self) -> str:
        """Show shape, sample type, tiles and frames."""
        bands, height, width = self.shape
        return (
            f"<rumi.Header {bands} x {height} x {width} {self.encoding.dtype_name}, "
            f"{self.tile_length} x {self.tile_width} {self.unit} frames, N={self.frame_count}, "
            f"{len(self)} bytes>"
        )

    def _repr_html_(self) -> str:
        from rumi.display import header_html

        return header_html(self)


def _frame_count(shape: tuple[int, int, int], tile_shape: tuple[int, int], unit: str) -> int:
    """Return N; 0 where a tile side is, which the blob's own checks refuse."""
    bands, height, width = shape
    if 0 in tile_shape:
        return 0
    positions = -(-height // tile_shape[0]) * -(-width // tile_shape[1])
    return positions * (bands if frame_unit_code(unit) == constants.FRAME_UNIT_TILE else 1)


def as_header(header: Any) -> Header:
    """Return a Header, parsing where bytes are given."""
    return header if type(header) is Header else Header(header)


def frame_unit_code(frame_unit: str) -> int:
    """Return the code of a frame unit's name.

    Raises
    ------
    ValueError
        If the name is neither "tile" nor "cell".
    """
    if frame_unit not in FRAME_UNITS:
        raise ValueError(f"frame_unit is 'tile' or 'cell', found {frame_unit!r}")
    return FRAME_UNITS.index(frame_unit)


def _checked(value: SupportsIndex, limit: int, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"a {name} is an integer, found {type(value).__name__}")
    number = value.__index__()
    if not 0 <= number < limit:
        raise IndexError(f"{name} {number} is outside 0..{limit - 1}")
    return number
