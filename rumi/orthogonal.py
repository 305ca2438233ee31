"""Reading the positions where chosen rows and columns of an image cross, in bounded memory.

What xarray calls orthogonal indexing, and what a reduced picture needs. Frames
without a chosen pixel are not read, and every other frame is decoded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rumi._core import Plan
from rumi.read import read_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.image import Image

__all__ = ["Positions", "read_crossings", "spans"]

# Rising positions along an axis, repeats allowed.
Positions: TypeAlias = "range | NDArray[np.intp]"

# Decoded samples in bytes that are in memory at once beside the result.
_WINDOW_BYTES = 32 << 20


def read_crossings(
    image: Image,
    bands: Any,
    rows: Positions,
    cols: Positions,
    *,
    threads: int | None = None,
) -> NDArray[Any]:
    """Read the pixels at the crossings of chosen rows and columns.

    Parameters
    ----------
    image : Image
    bands : int, sequence of int or slice, optional
        As of `rumi.read`.
    rows, cols : range or ndarray of int
        Zero-based, rising, inside the image.
    threads : int, optional
        As of `rumi.read`.

    Returns
    -------
    ndarray, shape (B, rows, cols)
        As of `rumi.read`.

    Raises
    ------
    ValueError
        If positions do not rise.
    TypeError, ValueError, IndexError, RumiError, OSError
        As of `rumi.read`.

    Notes
    -----
    At most 32 MiB of decoded samples, or one frame, at a time beside the result.
    """
    if _adjoin(rows) and _adjoin(cols):
        window = (rows[0], cols[0], len(rows), len(cols))
        return image.read(bands=bands, window=window, threads=threads)
    rows, cols = _rising(rows, "rows"), _rising(cols, "cols")
    count = Plan(image.header, bands, _window(rows, cols)).band_count
    out = np.empty((count, len(rows), len(cols)), image.dtype)
    for batch in _batches(image, rows, cols, count * out.itemsize):
        windows = [_window(rows[down], cols[across]) for down, across in batch]
        blocks: Any
        if len(windows) == 1:
            # The threads share the frames of one window, but the items of a batch.
            blocks = image.read(bands=bands, window=windows[0], threads=threads)[np.newaxis]
        else:
            blocks = read_many(image.opened(), image.header, windows, bands=bands, threads=threads)
        for (down, across), (top, left, _, _), block in zip(batch, windows, blocks, strict=True):
            out[:, down, across] = block[:, (rows[down] - top)[:, np.newaxis], cols[across] - left]
    return out


def _adjoin(positions: Positions) -> bool:
    return isinstance(positions, range) and positions.step == 1 and len(positions) > 0


def _rising(positions: Positions, name: str) -> NDArray[np.intp]:
    array = np.asarray(positions, dtype=np.intp)
    if array.size == 0 or (np.diff(array) < 0).any():
        raise ValueError(f"{name}: expected rising positions, at least one")
    return array


def _window(rows: NDArray[np.intp], cols: NDArray[np.intp]) -> tuple[int, int, int, int]:
    top, left = int(rows[0]), int(cols[0])
    return top, left, int(rows[-1]) - top + 1, int(cols[-1]) - left + 1


def _batches(
    image: Image, rows: NDArray[np.intp], cols: NDArray[np.intp], pixel: int
) -> Iterator[list[tuple[slice, slice]]]:
    """Yield parts of the crossings whose windows have one shape and fit the memory together."""
    height, width = map(min, image.header.tile_shape, image.shape[1:])
    across = max(1, _WINDOW_BYTES // (height * width * pixel))
    parts = list(spans(cols, image.header.tile_width, across))
    widest = max(int(cols[part][-1] - cols[part][0]) + 1 for part in parts)
    down = max(1, _WINDOW_BYTES // (height * widest * pixel))
    pending: dict[tuple[int, int], list[tuple[slice, slice]]] = {}
    for rows_part in spans(rows, image.header.tile_length, down):
        for cols_part in parts:
            shape = _window(rows[rows_part], cols[cols_part])[2:]
            batch = pending.setdefault(shape, [])
            batch.append((rows_part, cols_part))
            if (len(batch) + 1) * shape[0] * shape[1] * pixel > _WINDOW_BYTES:
                yield pending.pop(shape)
    yield from pending.values()


def spans(positions: NDArray[np.intp], tile: int, most: int) -> Iterator[slice]:
    """Yield the parts of rising positions that lie in adjoining tiles, `most` tiles at most."""
    tiles = positions // tile
    # Numbers the runs of adjoining tiles, and in each the groups of `most` tiles.
    run = np.concatenate(([0], np.cumsum(np.diff(tiles) > 1)))
    group = (tiles - tiles[np.searchsorted(run, run)]) // most
    changes = (np.diff(run) != 0) | (np.diff(group) != 0)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(positions)]
    yield from (slice(start, stop) for start, stop in pairwise(bounds))
