"""Where the chips of a catalog lie: which row and window a chip of a number is.

No list of chips is made: a million images with a thousand chips each take one
number for each image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi.catalog.flat import Headers

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MODES", "Chips", "permutation", "sides"]

MODES = ("grid", "random")

# Constants of SplitMix64 (Steele, Lea and Flood, 2014): the same draws with every
# version of NumPy, and each without those before it.
_STEP = 0x9E3779B97F4A7C15
_FACTORS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_MASK = (1 << 64) - 1


def sides(value: Any, name: str) -> tuple[int, int]:
    """Return height and width of a size given as one side or both.

    Raises
    ------
    TypeError, ValueError
        If it is neither, or a side is below 1.
    """
    pair = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2:
        raise ValueError(f"{name}: expected one side or (height, width), found {value!r}")
    for side in pair:
        if isinstance(side, bool) or not hasattr(side, "__index__"):
            raise TypeError(f"{name}: a side is an integer, found {type(side).__name__}")
        if side.__index__() < 1:
            raise ValueError(f"{name}: a side is at least 1, found {side}")
    return pair[0].__index__(), pair[1].__index__()


class Chips:
    """Chips of one size in all images of a catalog.

    Each image is laid out in a grid that begins at its first pixel; the last row
    and column of chips are moved inwards, so that every pixel is in a chip and no
    chip is cut. Chips are numbered image after image, row by row. In mode
    "random" an image has as many chips, each anywhere in it.

    Parameters
    ----------
    headers : Headers
        Of the images.
    size : int or (int, int)
        Side, or height and width, of a chip in pixels.
    stride : int or (int, int), optional
        Pixels from one chip to the next; `size` by default.
    mode : {"grid", "random"}
    seed : int
        Of the draws of mode "random".
    name : callable, optional
        From a row to what errors call it.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used, or an image is smaller than a chip.
    """

    def __init__(
        self,
        headers: Headers,
        size: Any,
        *,
        stride: Any = None,
        mode: str = "grid",
        seed: int = 0,
        name: Callable[[int], str] = str,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode: expected 'grid' or 'random', found {mode!r}")
        self.size = sides(size, "chip_size")
        self.stride = self.size if stride is None else sides(stride, "stride")
        self.mode = mode
        self.seed = seed
        self._shapes = headers.shapes[:, 1:]
        spare = self._shapes - self.size
        small = np.flatnonzero((spare < 0).any(axis=1))
        if small.size:
            row = int(small[0])
            height, width = self._shapes[row]
            raise ValueError(
                f"row {row} ({name(row)}): an image of {height} x {width} pixels has no chip of "
                f"{self.size[0]} x {self.size[1]} ({small.size} such rows); leave them out with "
                "Catalog.filter"
            )
        self._across = spare[:, 1] // self.stride[1] + 1 + (spare[:, 1] % self.stride[1] > 0)
        down = spare[:, 0] // self.stride[0] + 1 + (spare[:, 0] % self.stride[0] > 0)
        # Number of the first chip of each row, and of all.
        self.starts = np.concatenate(([0], np.cumsum(down * self._across)))

    def __len__(self) -> int:
        """Return the number of chips."""
        return int(self.starts[-1])

    def locate(
        self, numbers: Sequence[int] | NDArray[np.int64], *, epoch: int = 0, attempt: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where chips are.

        Parameters
        ----------
        numbers : sequence of int, shape (N,)
            Inside 0..len-1.
        epoch, attempt : int
            Other ones give other chips in mode "random".

        Returns
        -------
        rows : ndarray of int64, shape (N,)
            Of the catalog.
        windows : ndarray of int64, shape (N, 4)
            Row, column, height and width in pixels.

        Raises
        ------
        IndexError
            If there is no chip of a number.
        """
        found = np.asarray(numbers, np.int64)
        wrong = np.flatnonzero((found < 0) | (found >= len(self)))
        if wrong.size:
            raise IndexError(f"chip {found[wrong[0]]} is outside 0..{len(self) - 1}")
        rows = np.searchsorted(self.starts, found, side="right") - 1
        spare = self._shapes[rows] - self.size
        if self.mode == "random":
            corners = _draw(spare + 1, found, (self.seed, epoch, attempt))
        else:
            place = np.stack(np.divmod(found - self.starts[rows], self._across[rows]), axis=1)
            corners = np.minimum(place * self.stride, spare)
        windows = np.empty((len(found), 4), np.int64)
        windows[:, :2], windows[:, 2:] = corners, self.size
        return rows, windows


def _draw(
    limits: NDArray[np.int64], numbers: NDArray[np.int64], keys: Sequence[int]
) -> NDArray[np.int64]:
    """Return two integers below limits for each number, from nothing but number and keys."""
    key = 0
    for part in keys:
        key = _mix_int(key ^ (part & _MASK))
    base = _mix(numbers.astype(np.uint64) ^ np.uint64(key))
    bits = np.stack([_mix(base + np.uint64(axis + 1)) >> np.uint64(32) for axis in (0, 1)], axis=1)
    return ((bits * limits.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = values + np.uint64(_STEP)
    for shift, factor in _FACTORS:
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))


def _mix_int(value: int) -> int:
    value = (value + _STEP) & _MASK
    for shift, factor in _FACTORS:
        value = ((value ^ (value >> shift)) * factor) & _MASK
    return value ^ (value >> 31)


def permutation(size: int, keys: Sequence[int]) -> NDArray[np.int64]:
    """Return the numbers 0..size-1 in an order that the keys alone decide."""
    key = 0
    for part in keys:
        key = _mix_int(key ^ (part & _MASK))
    order = _mix(np.arange(size, dtype=np.uint64) ^ np.uint64(key))
    return np.argsort(order, kind="stable")
