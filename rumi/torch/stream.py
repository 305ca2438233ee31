"""Chips one after another, shuffled on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from rumi.catalog.chips import permutation
from rumi.torch.reader import RUN, ChipOptions, Reader

if TYPE_CHECKING:
    from rumi.catalog import Catalog

__all__ = ["ChipStream"]


class ChipStream(IterableDataset[Any]):  # type: ignore[misc]
    """All chips once an epoch, image after image, shuffled in a buffer.

    Images come in a new order each epoch, and chips of one image together, which
    spares random access where files are far away. Workers and the ranks of a
    distributed run share the chips: each takes a run of its own.

    Parameters
    ----------
    catalog, chip_size
        As of `ChipDataset`.
    shuffle : int
        Samples in the buffer of a worker, one of which, drawn at random, is given
        whenever another one arrives. 0 keeps the order of the catalog.
    run : int
        Chips that are read together.
    rank, world_size : int, optional
        Of a distributed run: those of torch.distributed by default, as they are
        when the stream is pickled for workers or iteration begins. Every rank
        gets the same number of chips; up to ``world_size - 1`` are left out.
    **options
        As of `ChipDataset`. With `min_valid` chips with fewer valid pixels are
        left out as they are read, so that ranks may get different numbers.

    Raises
    ------
    TypeError, ValueError, UnsupportedError, RumiError, OSError
        As `ChipDataset`.

    Notes
    -----
    Order and places depend on seed, epoch, rank, world size and number of workers
    alone. Memory: a buffer and a run of samples in each worker.
    """

    def __init__(
        self,
        catalog: Catalog,
        chip_size: Any,
        *,
        shuffle: int = 1024,
        run: int = RUN,
        rank: int | None = None,
        world_size: int | None = None,
        **options: Unpack[ChipOptions],
    ) -> None:
        if shuffle < 0 or run < 1:
            raise ValueError(f"shuffle and run: expected 0 and 1 or more, found {shuffle}, {run}")
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size: expected both or neither")
        if rank is not None and world_size is not None and not 0 <= rank < world_size:
            raise ValueError(f"rank: expected 0..{world_size - 1}, found {rank}")
        self._reader = Reader(catalog, chip_size, options)
        self._shuffle = shuffle
        self._run = run
        self._share = None if rank is None else (rank, world_size)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order and the random places of the next pass, in all workers."""
        self._reader.epoch.fill_(epoch)

    def _rank(self) -> tuple[int, int]:
        if self._share is not None:
            return self._share  # type: ignore[return-value]
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return 0, 1

    def __len__(self) -> int:
        """Return the number of chips of this rank.

        Raises
        ------
        TypeError
            If `min_valid` leaves out a number that nobody knows yet.
        """
        if self._reader.min_valid:
            raise TypeError("a stream with min_valid has no length before it is read")
        return len(self._reader.chips) // self._rank()[1]

    def __iter__(self) -> Iterator[Any]:
        """Yield the samples of this worker."""
        rank, world = self._rank()
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        total = len(self._reader.chips) // world
        start, stop = (rank * total + total * n // count for n in (number, number + 1))
        samples = self._samples(start, stop)
        if not self._shuffle:
            return samples
        seed = [self._reader.seed, int(self._reader.epoch), rank, number]
        return _shuffled(samples, self._shuffle, np.random.default_rng(seed))

    def _samples(self, start: int, stop: int) -> Iterator[Any]:
        """Yield samples start..stop of the epoch's order."""
        reader, chips = self._reader, self._reader.chips
        rows = np.arange(len(chips.starts) - 1)
        if self._shuffle:
            rows = permutation(len(rows), (reader.seed, int(reader.epoch)))
        ends = np.cumsum(np.diff(chips.starts)[rows])
        for first in range(start, stop, self._run):
            places = np.arange(first, min(first + self._run, stop))
            which = np.searchsorted(ends, places, side="right")
            numbers = chips.starts[rows[which] + 1] - (ends[which] - places)
            arrays, shares = reader.arrays(numbers, judge=reader.min_valid > 0)
            if reader.min_valid:
                arrays = [array[shares >= reader.min_valid] for array in arrays]
            # What waits in a buffer must not keep the whole run in memory.
            yield from reader.samples(arrays, copy=self._shuffle > 0)

    def __getstate__(self) -> dict[str, Any]:
        """Settle the rank, which a spawned worker could not ask for."""
        return {**self.__dict__, "_share": self._rank()}


def _shuffled(samples: Iterator[Any], size: int, rng: np.random.Generator) -> Iterator[Any]:
    """Yield everything, each time one of the last `size` that are left."""
    buffer: list[Any] = []
    for sample in samples:
        if len(buffer) < size:
            buffer.append(sample)
            continue
        place = int(rng.integers(size))
        sample, buffer[place] = buffer[place], sample
        yield sample
    for place in rng.permutation(len(buffer)):
        yield buffer[place]
