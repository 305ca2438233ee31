"""Small pictures of whole images, from few of their frames where they are large.

A rumi file has no overviews, so a reduced picture is made of single pixels, and
every frame that holds one is decoded. Where those are too many, whole rows and
columns of tiles are left out, evenly, and the picture is interpolated from the
edges of their neighbours. So a preview costs a bounded number of bytes and
requests whatever the size of the image, and memory for a fraction of those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi import pictures
from rumi._core import Plan
from rumi.errors import UnsupportedError
from rumi.indexing import is_integer
from rumi.orthogonal import read_crossings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rumi.header import Header
    from rumi.image import Image

__all__ = [
    "MAX_BYTES",
    "MAX_SIZE",
    "SIZE",
    "Reduction",
    "choose_bands",
    "preview",
    "reduction",
]

# Longer side of a picture in pixels, by default and at most.
SIZE = 768
MAX_SIZE = 4096

# Decoded samples of all frames that one picture may cost: three bands of a whole
# scene of Landsat or Sentinel-2, about a second.
MAX_BYTES = 1 << 30

# What a frame counts at least, however small: there is a request, and a call, for each.
_FRAME_BYTES = 64 << 10

# Pixels that are read for one of the picture, along a side, and the most that are:
# their mean shows what a single one would miss.
_OVERSAMPLING = 2
_MOST_POSITIONS = 2048

# Pixels of a picture below which its frames are not drawn, or not labelled.
_SMALLEST_CELL = 4.0
_SMALLEST_LABELLED_CELL = 90.0

_COLOURS = 3


@dataclass(frozen=True, slots=True)
class Reduction:
    """Which pixels make a reduced picture.

    Attributes
    ----------
    shape : (int, int)
        Height and width of the picture.
    rows, cols : ndarray of int
        Rising positions in the image that are read.
    row_places, col_places : ndarray of float
        For each line of the picture before it is averaged, which of those it is;
        between two of them where tiles are left out.
    frames_read, frames : int
        Frames that are decoded, and all frames of the bands.
    """

    shape: tuple[int, int]
    rows: NDArray[np.intp]
    cols: NDArray[np.intp]
    row_places: NDArray[np.float64]
    col_places: NDArray[np.float64]
    frames_read: int
    frames: int


def preview(
    image: Image,
    *,
    bands: int | Sequence[int] | None = None,
    size: int = SIZE,
    percentiles: tuple[float, float] = pictures.PERCENTILES,
    nodata: float | None = None,
    grid: bool = False,
    max_bytes: int = MAX_BYTES,
    threads: int | None = None,
) -> Any:
    """Draw a small picture of a whole image.

    Parameters
    ----------
    image : Image
    bands : int or sequence of int, optional
        One zero-based band, or those for red, green and blue. By default the first
        three, or the first of fewer.
    size : int
        Longer side of the picture in pixels; small images are not enlarged.
    percentiles : (float, float)
        Which of the pixels read become black and white, by band.
    nodata : float, optional
        Samples of this value do not count there.
    grid : bool
        Draw the borders of the frames.
    max_bytes : int
        Decoded samples at most; one frame is read in any case.
    threads : int, optional
        As of `rumi.read`.

    Returns
    -------
    PIL.Image.Image
        Shown by notebooks; ``numpy.asarray`` makes an array of shape (H, W, 3).

    Raises
    ------
    TypeError, ValueError, IndexError
        If an argument does not fit the image, or the frames would be too small to
        draw.
    UnsupportedError
        If Pillow is not installed.
    RumiError, OSError
        As of `rumi.read`.
    """
    pillow = _pillow()
    low, high = percentiles
    if not 0 <= low < high <= 100:
        raise ValueError(f"percentiles: expected 0 <= low < high <= 100, found {percentiles}")
    chosen = choose_bands(image.header, bands)
    reduced = reduction(image.header, chosen, size, max_bytes)
    height, width = reduced.shape
    scale = max(reduced.shape) / max(image.shape[1:])
    if grid:
        _check_cells(image.header, scale)
    samples = read_crossings(image, chosen, reduced.rows, reduced.cols, threads=threads)
    limits = pictures.stretch_limits(samples, (low, high), nodata)
    pixels = _spread(pictures.stretch(samples, limits), reduced.row_places, reduced.col_places)
    picture = pillow.fromarray(pixels).convert("RGB")
    if picture.size != (width, height):
        # Of Pillow's filters the one that is a plain mean.
        picture = picture.resize((width, height), pillow.Resampling.BOX)
    if grid:
        side = scale * min(image.header.tile_shape)
        pictures.draw_frames(
            picture,
            image.header,
            (0, 0, *image.shape[1:]),
            scale=scale,
            labels=side >= _SMALLEST_LABELLED_CELL,
        )
    return picture


def choose_bands(header: Header, bands: int | Sequence[int] | None) -> list[int]:
    """Return the bands of a picture.

    Raises
    ------
    TypeError, ValueError, IndexError
        If they are neither one nor three, or not the image's.
    """
    if bands is None:
        return list(range(_COLOURS)) if header.samples_per_pixel >= _COLOURS else [0]
    chosen: list[Any] = [bands] if is_integer(bands) else list(bands)  # type: ignore[arg-type]
    count = Plan(header, chosen, (0, 0, 1, 1)).band_count
    if count not in (1, _COLOURS):
        raise ValueError(f"a picture takes 1 or {_COLOURS} bands, found {count}")
    return [int(band) for band in chosen]


def reduction(
    header: Header, bands: Sequence[int], size: int = SIZE, max_bytes: int = MAX_BYTES
) -> Reduction:
    """Choose the pixels of a reduced picture; nothing is read.

    Parameters
    ----------
    header : Header
    bands : sequence of int
        Those of the picture.
    size, max_bytes : int
        As of `preview`.

    Raises
    ------
    TypeError, ValueError
        If `size` is no integer from 1 to 4096.
    """
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(f"size: expected an integer, found {type(size).__name__}")
    if not 1 <= size <= MAX_SIZE:
        raise ValueError(f"size: expected 1 to {MAX_SIZE} pixels, found {size}")
    sides, tiles = header.shape[1:], header.tile_shape
    scale = min(1.0, size / max(sides))
    shape = (max(1, round(sides[0] * scale)), max(1, round(sides[1] * scale)))
    axes = [_positions(*pair) for pair in zip(sides, shape, strict=True)]
    met = [np.unique(axis // tile) for axis, tile in zip(axes, tiles, strict=True)]
    per_position = 1 if header.unit == "cell" else len(set(bands))
    cost = per_position * max(header.frame_bytes, _FRAME_BYTES)
    kept = _evenly(met[0], met[1], max(1, max_bytes // cost))
    read = [
        np.flatnonzero(np.isin(axis // tile, numbers))
        for axis, tile, numbers in zip(axes, tiles, kept, strict=True)
    ]
    rows, cols = (axis[indices] for axis, indices in zip(axes, read, strict=True))
    row_places, col_places = (
        np.interp(np.arange(len(axis)), indices, np.arange(len(indices)))
        for axis, indices in zip(axes, read, strict=True)
    )
    return Reduction(
        shape,
        rows,
        cols,
        row_places,
        col_places,
        len(kept[0]) * len(kept[1]) * per_position,
        header.tiles_down * header.tiles_across * per_position,
    )


def _positions(side: int, length: int) -> NDArray[np.intp]:
    """Return the middles of equal parts of an axis, some for each pixel of the picture."""
    wanted = max(length, min(_OVERSAMPLING * length, _MOST_POSITIONS))
    # A multiple, so that each pixel of the picture is the mean of as many.
    count = side if side <= wanted else wanted // length * length
    return (2 * np.arange(count, dtype=np.intp) + 1) * side // (2 * count)


def _evenly(
    down: NDArray[np.intp], across: NDArray[np.intp], budget: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return as many rows and columns of tiles as a budget of grid positions allows."""
    share = math.sqrt(min(1.0, budget / (len(down) * len(across))))
    rows = max(1, round(len(down) * share))
    cols = min(len(across), max(1, budget // rows))
    rows = min(len(down), max(1, budget // cols))
    return tuple(  # type: ignore[return-value]
        numbers[(2 * np.arange(count) + 1) * len(numbers) // (2 * count)]
        for numbers, count in ((down, rows), (across, cols))
    )


def _spread(
    pixels: NDArray[np.uint8], row_places: NDArray[np.float64], col_places: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """Return a picture with the lines that were left out, interpolated between the others."""
    for axis, places in enumerate((row_places, col_places)):
        if len(places) == pixels.shape[axis]:
            continue
        lower = places.astype(np.intp)
        upper = np.minimum(lower + 1, pixels.shape[axis] - 1)
        weights = np.expand_dims(places - lower, tuple(n for n in range(pixels.ndim) if n != axis))
        mixed = pixels.take(lower, axis) * (1 - weights) + pixels.take(upper, axis) * weights
        pixels = (mixed + 0.5).astype(np.uint8)
    return pixels


def _check_cells(header: Header, scale: float) -> None:
    cell = scale * min(map(min, header.tile_shape, header.shape[1:]))
    if cell < _SMALLEST_CELL:
        raise ValueError(
            f"grid: a frame would be {cell:.2g} pixels wide, expected {_SMALLEST_CELL:g} or more: "
            "draw a larger picture, or none of the frames"
        )


def _pillow() -> Any:
    """Import Pillow before anything is read, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise UnsupportedError("drawing needs Pillow: pip install 'rumi[plot]'") from error
    return Image
