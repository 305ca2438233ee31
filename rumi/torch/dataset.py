"""Chips by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from torch.utils.data import Dataset

from rumi.catalog.rows import pack_rows, unpack_rows
from rumi.torch.reader import RUN, ChipOptions, Reader

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.catalog import Catalog, Chips

__all__ = ["ChipDataset"]


class ChipDataset(Dataset[Any]):  # type: ignore[misc]
    """Chips by number, for a DataLoader with a sampler.

    Parameters
    ----------
    catalog : Catalog
        Images of one sample type, each at least as large as a chip.
    chip_size : int or (int, int)
        Side, or height and width, in pixels.
    mode : {"grid", "random"}
        Where chips lie: see `rumi.catalog.Chips`. Random places are other ones in
        each epoch; see `set_epoch`.
    stride : int or (int, int), optional
        Pixels from one chip of the grid to the next; `chip_size` by default.
    bands : int, sequence of int or slice, optional
        Zero-based; all by default.
    dtype : torch.dtype, optional
        To convert samples to, such as ``torch.float32``. By default the type of the
        samples, which has to exist in torch.
    labels : Catalog, optional
        Rows on the same grids, in the same order: the same window of them is the
        label of a chip.
    label_bands, label_dtype : optional
        Of the labels, as `bands` and `dtype`.
    min_valid : float
        Share of pixels, 0 to 1, that must be valid. A pixel is not if one of the
        bands is the row's nodata, or NaN. A grid is read once, here, to leave out
        chips with fewer; a random chip is drawn up to 16 times, and the best of
        them taken.
    seed : int
        Of everything random.
    transform : callable, optional
        Takes the tensor of a chip, and that of its label if there are labels, and
        returns the sample. It must pickle where workers are spawned.
    threads : int, optional
        As of `rumi.read_many`: by default one in a worker process.

    Raises
    ------
    TypeError, ValueError
        If an option cannot be used, images have different types, one is smaller
        than a chip, or labels are not aligned; row and file are named.
    UnsupportedError
        If torch has no type for the samples.
    RumiError, OSError
        If the catalog cannot be read.

    Notes
    -----
    A sample is a tensor of shape (B, H, W) with a storage of its own, or a pair
    of chip and label, or what `transform` returns. A batch is one call of
    `rumi.read_many`. A DataLoader copies samples into its batch; it does not
    where a sampler gives lists of numbers, for which ``dataset[[3, 1, 4]]`` is the
    batch itself::

        order = BatchSampler(RandomSampler(dataset), 64, drop_last=True)
        DataLoader(dataset, batch_size=None, sampler=order)

    Pickles as the place of the catalog and the options.
    """

    def __init__(self, catalog: Catalog, chip_size: Any, **options: Unpack[ChipOptions]) -> None:
        self._reader = Reader(catalog, chip_size, options)
        self._kept: NDArray[np.int64] | None = None
        if self._reader.min_valid and self._reader.chips.mode == "grid":
            self._kept = np.flatnonzero(self.valid_shares() >= self._reader.min_valid)

    @property
    def chips(self) -> Chips:
        """Where all chips are, those with too few valid pixels included."""
        return self._reader.chips

    def valid_shares(self) -> NDArray[np.float64]:
        """Return the share of valid pixels of each of `chips`, all of which are read."""
        shares = np.ones(len(self.chips))
        for start in range(0, len(self.chips), RUN):
            numbers = np.arange(start, min(start + RUN, len(self.chips)))
            shares[numbers] = self._reader.arrays(numbers, judge=True)[1]
        return shares

    def locate(self, index: int) -> tuple[int, tuple[int, int, int, int]]:
        """Return the catalog row and the window of a chip; of a random one, as first drawn."""
        rows, windows = self.chips.locate(self._numbers([index]), epoch=int(self._reader.epoch))
        row, col, height, width = windows[0].tolist()
        return int(rows[0]), (row, col, height, width)

    def set_epoch(self, epoch: int) -> None:
        """Choose the random places of the next pass, in all workers."""
        self._reader.epoch.fill_(epoch)

    def __len__(self) -> int:
        """Return the number of chips."""
        return len(self.chips) if self._kept is None else len(self._kept)

    def __getitem__(self, index: int | Sequence[int]) -> Any:
        """Return one sample, or for a list of numbers a batch, shape (N, B, H, W)."""
        if isinstance(index, (list, tuple, np.ndarray)):
            return self._reader.batch(self._arrays(index))
        return self.__getitems__([cast(int, index)])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return samples, read in one batch."""
        return self._reader.samples(self._arrays(indices))

    def _arrays(self, indices: Sequence[int]) -> list[NDArray[Any]]:
        # Chips of a grid were judged before any was given a number.
        judge = self._reader.min_valid > 0 and self._kept is None
        return self._reader.arrays(self._numbers(indices), judge=judge)[0]

    def _numbers(self, indices: Sequence[int]) -> NDArray[np.int64]:
        numbers = np.asarray(indices, np.int64)
        if self._kept is None:
            return numbers
        wrong = numbers[(numbers < 0) | (numbers >= len(self._kept))]
        if wrong.size:
            raise IndexError(f"chip {wrong[0]} is outside 0..{len(self._kept) - 1}")
        return self._kept[numbers]

    def __getstate__(self) -> dict[str, Any]:
        """Pack which chips are kept."""
        packed = pack_rows(self._kept, len(self.chips))
        return {"_reader": self._reader, "_kept": packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpack which chips are kept."""
        self._reader = state["_reader"]
        self._kept = unpack_rows(state["_kept"])
