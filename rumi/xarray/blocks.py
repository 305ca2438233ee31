"""A Dask array as the writer reads it: block by block, every chunk computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DaskBlocks"]

# Computed chunks in bytes that are kept until the writer is past them.
_KEPT_BYTES = 256 << 20


class DaskBlocks:
    """What `rumi.write` takes for a lazy array.

    The writer goes through the tile grid row by row, and a chunk may be taller
    than a tile: it is kept until the writer is below it.

    Parameters
    ----------
    array : dask.array.Array, shape (H, W) or (B, H, W)

    Notes
    -----
    Memory: the chunks that one row of tiles meets, if they are at most 256 MiB;
    otherwise only those that one block meets, which are then computed again for
    every row of tiles in them.
    """

    def __init__(self, array: Any) -> None:
        if any(side != side for side in array.shape):
            raise ValueError("the sizes of the Dask array are unknown: compute_chunk_sizes() first")
        self._array = array if array.ndim == 3 else array[np.newaxis]
        self.shape: tuple[int, int, int] = self._array.shape
        self.dtype: np.dtype[Any] = np.dtype(array.dtype)
        self._rows, self._cols = (np.cumsum((0, *sizes)) for sizes in self._array.chunks[1:])
        self._kept: dict[tuple[int, int], NDArray[Any]] = {}

    def __getitem__(self, key: tuple[slice, slice, slice]) -> NDArray[Any]:
        """Return a block of all bands; only its rows and columns count."""
        _, rows, cols = key
        down, across = _met(self._rows, rows), _met(self._cols, cols)
        wanted = [(i, j) for i in down for j in across]
        self._forget(down, wanted)
        self._compute([place for place in wanted if place not in self._kept])
        out: NDArray[Any] = np.empty(
            (self.shape[0], rows.stop - rows.start, cols.stop - cols.start), self.dtype
        )
        for i, j in wanted:
            to_rows, from_rows = _common(self._rows, i, rows)
            to_cols, from_cols = _common(self._cols, j, cols)
            out[:, to_rows, to_cols] = self._kept[i, j][:, from_rows, from_cols]
        return out

    def _forget(self, down: range, wanted: list[tuple[int, int]]) -> None:
        """Drop the chunks above and below; where memory is short, those beside too."""
        height = int(self._rows[down.stop] - self._rows[down.start])
        size = self.shape[0] * height * self.shape[2] * self.dtype.itemsize
        keep = set(wanted) if size > _KEPT_BYTES else {p for p in self._kept if p[0] in down}
        self._kept = {place: chunk for place, chunk in self._kept.items() if place in keep}

    def _compute(self, missing: list[tuple[int, int]]) -> None:
        import dask

        chunks = dask.compute(*(self._array.blocks[:, i, j] for i, j in missing))
        for place, chunk in zip(missing, chunks, strict=True):
            self._kept[place] = np.asarray(chunk)


def _met(edges: NDArray[Any], part: slice) -> range:
    """Return which chunks along an axis a part meets."""
    first = int(np.searchsorted(edges, part.start, side="right")) - 1
    return range(first, int(np.searchsorted(edges, part.stop, side="left")))


def _common(edges: NDArray[Any], number: int, part: slice) -> tuple[slice, slice]:
    """Return what a chunk and a part share, counted from the part's start and the chunk's."""
    start, stop = int(edges[number]), int(edges[number + 1])
    low, high = max(start, part.start), min(stop, part.stop)
    return slice(low - part.start, high - part.start), slice(low - start, high - start)
