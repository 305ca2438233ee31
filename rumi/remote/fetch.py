"""Many ranges at once: how many are in flight, how much of them is in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from rumi.remote.opened import OpenObject

__all__ = ["Job", "merged", "replies"]

T = TypeVar("T")

# Bytes asked for and not yet decoded, except that one range is always allowed.
_BUDGET = 128 << 20


@dataclass(frozen=True, slots=True)
class Job:
    """A range to fetch.

    Attributes
    ----------
    source : OpenObject
    start, stop : int
        Bytes of the object, the end exclusive.
    what : object
        What the caller wants to see again with the reply.
    """

    source: OpenObject
    start: int
    stop: int
    what: Any


def merged(
    wanted: list[tuple[int, int, T]], gap: int, largest: int
) -> Iterator[tuple[int, int, list[T]]]:
    """Merge ranges of one object that overlap, or lie close together, up to a size.

    Parameters
    ----------
    wanted : list of (start, stop, what)
        In any order, which is changed.
    gap, largest : int
        As of `ObjectStore`.

    Yields
    ------
    start, stop : int
    what : list
        Of those that are inside, at least one.
    """
    wanted.sort(key=lambda one: one[:2])
    low, high, uses = 0, 0, list[T]()
    for start, stop, what in wanted:
        if uses and start <= high + gap and max(stop, high) - low <= largest:
            high = max(stop, high)
            uses.append(what)
            continue
        if uses:
            yield low, high, uses
        low, high, uses = start, stop, [what]
    if uses:
        yield low, high, uses


class _Flight:
    """The jobs of one call: what is in flight, what has arrived, how many bytes that is."""

    def __init__(self, jobs: Iterator[Job], budget: int) -> None:
        self._jobs = jobs
        self._budget = budget
        self._used = 0
        self._freed = asyncio.Event()
        self._arrived: asyncio.Queue[tuple[Job | None, Any]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self.live = 0

    def start(self, connections: int) -> None:
        """Start workers, no more than there are jobs."""
        while self.live < connections and (job := next(self._jobs, None)) is not None:
            self._tasks.append(asyncio.create_task(self._work(job)))
            self.live += 1

    async def _work(self, job: Job | None) -> None:
        """Fetch one job after another; nothing but a cancellation gets out."""
        ended: BaseException | None = None
        try:
            while job is not None:
                await self._take(job.stop - job.start)
                try:
                    found: Any = await job.source.get(job.start, job.stop)
                except Exception as failed:
                    found = failed
                self._arrived.put_nowait((job, found))
                job = next(self._jobs, None)
        except asyncio.CancelledError:
            raise
        except BaseException as failed:
            # Whatever it is, nobody must wait for this worker.
            ended = failed
        self._arrived.put_nowait((None, ended))

    async def _take(self, size: int) -> None:
        while self._used and self._used + size > self._budget:
            self._freed.clear()
            await self._freed.wait()
        self._used += size

    def give(self, found: list[tuple[Job, Any]]) -> None:
        """Make room again for as many bytes."""
        self._used -= sum(job.stop - job.start for job, _ in found)
        self._freed.set()

    async def arrivals(self) -> list[tuple[Job, bytes | Exception]]:
        """Wait for a reply; return all that are there, none where workers have ended."""
        found = [await self._arrived.get()]
        while not self._arrived.empty():
            found.append(self._arrived.get_nowait())
        for job, error in found:
            self.live -= job is None
            if job is None and error is not None:
                raise error
        return [(job, data) for job, data in found if job is not None]

    async def end(self) -> None:
        """Cancel what is in flight, and see it end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def replies(
    jobs: Iterator[Job], connections: int, budget: int = _BUDGET
) -> AsyncGenerator[list[tuple[Job, bytes | Exception]], None]:
    """Fetch ranges and yield them as they arrive, all that are there at a time, in any order.

    Parameters
    ----------
    jobs : iterator of Job
        Taken as there is room for them. What it raises is raised.
    connections : int
        Jobs in flight at most; every store has a cap of its own besides.
    budget : int
        Bytes of jobs in flight, and of replies that the caller is not done with.

    Notes
    -----
    An exception stands in the place of a reply, so that the caller knows whose
    it is. Closing the generator cancels what is in flight.
    """
    flight = _Flight(jobs, budget)
    try:
        flight.start(connections)
        while flight.live:
            found = await flight.arrivals()
            if found:
                yield found
                flight.give(found)
    finally:
        await flight.end()
