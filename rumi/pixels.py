"""Where the pixels of a written image come from: arrays, lazy arrays, callables, iterators.

The writer asks for one block at a time, in row-major order of the tile grid,
so an image never has to be in memory whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rumi import encodings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.codec import Samples
    from rumi.encodings import Encoding

__all__ = ["Grid", "PixelSource", "as_numbers", "blocks", "make_source", "sample_frames"]

# Samples in bytes that a lazy source is asked for at once: a run of tiles of one
# row of the grid, so that sources stored by rows are not read once a tile.
_RUN_BYTES = 32 << 20

# Bytes of a strip of a sampled frame, and of as many strips as are looked at as one.
_STRIP_BYTES = 16 << 10
_LARGE_STRIP = 1 << 20
_STACK_BYTES = 256 << 10


class PixelSource(Protocol):
    """Gives any block of an image of shape (bands, height, width)."""

    shape: tuple[int, int, int]
    dtype: np.dtype[Any]

    def block(self, rows: slice, cols: slice) -> NDArray[Any]:
        """Return the samples of all bands of a block, shape (B, h, w)."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How an image is cut into frames.

    Attributes
    ----------
    shape : (int, int, int)
        Bands, height and width of the image in pixels.
    tile_shape : (int, int)
        Nominal height and width of a tile in pixels.
    encoding : Encoding
    frame_unit : {"tile", "cell"}
    """

    shape: tuple[int, int, int]
    tile_shape: tuple[int, int]
    encoding: Encoding
    frame_unit: str

    @property
    def tiles_down(self) -> int:
        """Rows of the grid."""
        return -(-self.shape[1] // self.tile_shape[0])

    @property
    def tiles_across(self) -> int:
        """Columns of the grid."""
        return -(-self.shape[2] // self.tile_shape[1])

    @property
    def frames_per_position(self) -> int:
        """Frames at one grid position."""
        return 1 if self.frame_unit == "cell" else self.shape[0]

    @property
    def frame_count(self) -> int:
        """N of the specification."""
        return self.tiles_down * self.tiles_across * self.frames_per_position

    def extent(self, row: int, col: int) -> tuple[slice, slice]:
        """Return the rows and columns of a grid position, cut to the image."""
        height, width = self.tile_shape
        return (
            slice(row * height, min((row + 1) * height, self.shape[1])),
            slice(col * width, min((col + 1) * width, self.shape[2])),
        )

    def frames(self, block: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Cut the block of a grid position into frames of unsigned numbers."""
        if self.frame_unit == "cell":
            yield as_numbers(block, self.encoding)
            return
        for band in block:
            yield as_numbers(band, self.encoding)


def as_numbers(samples: NDArray[Any], encoding: Encoding) -> NDArray[Any]:
    """Return samples as C-contiguous unsigned numbers of their width, native byte order."""
    native = np.ascontiguousarray(samples).astype(samples.dtype.newbyteorder("="), copy=False)
    numbers: NDArray[Any] = native.view(encoding.number_dtype)
    if encoding.bits_per_sample == 1:
        # Any byte but 0 is true to NumPy; the file has 0 and 1.
        numbers = (numbers != 0).view(np.uint8)
    elif encoding.bits_per_sample < 8:
        # Types below a byte ignore the bits above their width; the file has none.
        numbers = numbers & np.uint8((1 << encoding.bits_per_sample) - 1)
    return numbers


def blocks(source: PixelSource, grid: Grid) -> Iterator[NDArray[Any]]:
    """Yield the block of every grid position in row-major order."""
    if isinstance(source, _TileIterator):
        yield from source.tiles(grid)
        return
    run = _positions_per_run(source, grid)
    for row in range(grid.tiles_down):
        for first in range(0, grid.tiles_across, run):
            last = min(first + run, grid.tiles_across) - 1
            rows, start = grid.extent(row, first)
            stop = grid.extent(row, last)[1].stop
            strip = source.block(rows, slice(start.start, stop))
            for col in range(first, last + 1):
                cols = grid.extent(row, col)[1]
                yield strip[:, :, cols.start - start.start : cols.stop - start.start]


def sample_frames(source: PixelSource, grid: Grid, *, thorough: bool = False) -> Samples:
    """Return strips of frames from all over the image and its bands, always the same ones.

    Parameters
    ----------
    source : PixelSource
    grid : Grid
    thorough : bool
        Take a quarter of the image, up to 4 MiB, and not a fiftieth, up to 1 MiB.

    Returns
    -------
    Samples
        Strips of frames, stacked to no more than a frame.
    """
    from rumi.codec import Samples

    bands = grid.shape[0]
    planes = bands if grid.frame_unit == "cell" else 1
    height, width = map(min, grid.tile_shape, grid.shape[1:])
    row = width * planes * grid.encoding.itemsize
    rows = min(max((_LARGE_STRIP if thorough else _STRIP_BYTES) // row // 8 * 8, 8), height)
    share, least, most = (4, 1 << 20, 4 << 20) if thorough else (48, 1 << 17, 1 << 20)
    wanted = min(max(math.prod(grid.shape) * grid.encoding.itemsize // share, least), most)
    sampled = _sampled_blocks(source, grid, 16 if isinstance(source, _Array) else 8)
    # Tiles cut at the edges are like the others, but would be stacks of their own.
    sampled = [block for block in sampled if block.shape[1:] == (height, width)] or sampled[:1]
    places = max(1, min(block.shape[1] for block in sampled) // rows)
    count = min(max(1, wanted // (rows * row)), len(sampled) * bands // planes * places)
    step = next(step for step in (3, 5, 7, 1) if math.gcd(step, places) == 1)
    strips = []
    for number in range(count):
        # Another place each time, another band each round, another height each time bands are out.
        turn, index = divmod(number, len(sampled))
        level, band = divmod(turn, bands // planes)
        first = (step * (level + index) + places // 2) % places * rows
        strip = sampled[index][:, first : first + rows]
        strip = strip if planes > 1 else strip[(band + index) % bands][np.newaxis]
        strips.append(as_numbers(strip, grid.encoding))
    together = max(1, min(_STACK_BYTES, height * row) // (rows * row))
    stacks = [strips[first : first + together] for first in range(0, len(strips), together)]
    return Samples([np.concatenate(stack) for stack in stacks], height * row, planes)


def _sampled_blocks(source: PixelSource, grid: Grid, count: int) -> list[NDArray[Any]]:
    if isinstance(source, _TileIterator):
        return source.peek(count)
    total = grid.tiles_down * grid.tiles_across
    wanted = min(count, total)
    found = []
    for number in range(wanted):
        # The middle of each part, so that neither corner nor edge tiles prevail.
        row, col = divmod((2 * number + 1) * total // (2 * wanted), grid.tiles_across)
        found.append(source.block(*grid.extent(row, col)))
    return found


def _positions_per_run(source: PixelSource, grid: Grid) -> int:
    if isinstance(source, _Array):
        return 1
    height = min(grid.tile_shape[0], grid.shape[1])
    width = min(grid.tile_shape[1], grid.shape[2])
    position = grid.shape[0] * height * width * grid.encoding.itemsize
    return max(1, min(grid.tiles_across, _RUN_BYTES // position))


class _Array:
    """An array in memory, or mapped."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.shape: tuple[int, int, int] = array.shape
        self.dtype = array.dtype

    def block(self, rows: slice, cols: slice) -> NDArray[Any]:
        return self._array[:, rows, cols]


class _Lazy:
    """Anything with shape, dtype and slicing: Dask, xarray, zarr, h5py, a GeoTIFF."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self._planar = len(array.shape) == 2
        shape = tuple(int(side) for side in array.shape)
        self.shape: tuple[int, int, int] = (1, *shape) if self._planar else shape  # type: ignore[assignment]
        self.dtype = np.dtype(array.dtype)

    def block(self, rows: slice, cols: slice) -> NDArray[Any]:
        part = self._array[rows, cols] if self._planar else self._array[:, rows, cols]
        return _checked_block(part, self.shape, self.dtype, rows, cols)


class _Callable:
    """A function of a window (row, column, height, width)."""

    def __init__(
        self, function: Callable[[tuple[int, int, int, int]], Any], shape: Any, dtype: Any
    ) -> None:
        self._function = function
        self.shape, self.dtype = _declared(shape, dtype, "a callable")

    def block(self, rows: slice, cols: slice) -> NDArray[Any]:
        window = (rows.start, cols.start, rows.stop - rows.start, cols.stop - cols.start)
        return _checked_block(self._function(window), self.shape, self.dtype, rows, cols)


class _TileIterator:
    """An iterable of the blocks of all grid positions in row-major order."""

    def __init__(self, tiles: Iterator[Any], shape: Any, dtype: Any) -> None:
        self._tiles = tiles
        self._ahead: list[Any] = []
        self.shape, self.dtype = _declared(shape, dtype, "an iterator of tiles")

    def block(self, rows: slice, cols: slice) -> NDArray[Any]:
        raise TypeError("an iterator of tiles cannot be asked for a block")

    def peek(self, count: int) -> list[NDArray[Any]]:
        """Return the first tiles, which `tiles` gives again."""
        self._ahead.extend(islice(self._tiles, count - len(self._ahead)))
        return [np.asarray(tile) for tile in self._ahead]

    def tiles(self, grid: Grid) -> Iterator[NDArray[Any]]:
        total = grid.tiles_down * grid.tiles_across
        for number in range(total):
            rows, cols = grid.extent(*divmod(number, grid.tiles_across))
            try:
                tile = self._ahead.pop(0) if self._ahead else next(self._tiles)
            except StopIteration:
                raise ValueError(f"expected {total} tiles, found {number}") from None
            yield _checked_block(tile, self.shape, self.dtype, rows, cols)
        if self._ahead or next(self._tiles, None) is not None:
            raise ValueError(f"expected {total} tiles, found more")


def make_source(array: Any, shape: Any = None, dtype: Any = None) -> PixelSource:
    """Return a source of pixels for whatever the caller has.

    Parameters
    ----------
    array : array_like, lazy array, callable or iterator
        See `rumi.write`.
    shape, dtype : optional
        Of the image; demanded for a callable or an iterator, refused otherwise.

    Raises
    ------
    TypeError, ValueError
        If it is no image.
    """
    if np.ma.isMaskedArray(array):
        raise TypeError(
            "a masked array's mask cannot be stored; pass array.filled(value) and keep the value "
            "as nodata in your catalog"
        )
    lazy = hasattr(array, "shape") and hasattr(array, "dtype") and hasattr(array, "__getitem__")
    if not lazy and callable(array):
        return _Callable(array, shape, dtype)
    if not lazy and isinstance(array, Iterator):
        return _TileIterator(array, shape, dtype)
    if shape is not None or dtype is not None:
        raise ValueError("shape and dtype go with a callable or an iterator; an array has its own")
    if isinstance(array, np.ndarray) or not lazy or hasattr(array, "__array_interface__"):
        return _Array(_three_dimensional(np.asarray(array)))
    if not isinstance(array.dtype, np.dtype):
        # A tensor of another library: its memory or a copy of it, as NumPy sees it.
        return _Array(_three_dimensional(np.asarray(array)))
    if len(array.shape) not in (2, 3):
        raise _shape_error(tuple(array.shape))
    return _Lazy(array)


def _three_dimensional(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim == 2:
        return array[np.newaxis]
    if array.ndim != 3:
        raise _shape_error(array.shape)
    return array


def _shape_error(shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"array: expected shape (bands, height, width) or (height, width), found {shape}"
    )


def _declared(shape: Any, dtype: Any, what: str) -> tuple[tuple[int, int, int], np.dtype[Any]]:
    if shape is None or dtype is None:
        raise ValueError(f"{what} needs shape=(bands, height, width) and dtype=")
    sides = tuple(shape)
    if len(sides) != 3:
        raise _shape_error(sides)
    return (int(sides[0]), int(sides[1]), int(sides[2])), np.dtype(dtype)


def _checked_block(
    block: Any, shape: tuple[int, int, int], dtype: np.dtype[Any], rows: slice, cols: slice
) -> NDArray[Any]:
    """Refuse a block of another shape or type than the image's."""
    array = np.asarray(block)
    expected = (shape[0], rows.stop - rows.start, cols.stop - cols.start)
    if array.ndim == 2:
        array = array[np.newaxis]
    if array.shape != expected or encodings.from_dtype(array.dtype) != encodings.from_dtype(dtype):
        raise ValueError(
            f"block at row {rows.start}, column {cols.start}: expected {expected} of {dtype}, "
            f"found {array.shape} of {array.dtype}"
        )
    return array
