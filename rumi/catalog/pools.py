"""Running one function over many parts: here, in processes, or on a Dask cluster.

A part is a list of items; the function returns a result for each. Whatever
kills a process is found by trying the items of its part one by one.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeAlias

from rumi.errors import UnsupportedError

__all__ = ["Lost", "Work", "run"]

# From some items to a result for each.
Work: TypeAlias = Callable[[Sequence[Any]], list[Any]]

# What a client tries again where a worker is lost.
_RETRIES = 3


class Lost:
    """In the place of a result: the process that worked on the item is gone."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


# Number of the part, and its results.
_Done: TypeAlias = "tuple[int, list[Any]]"


def run(work: Work, parts: Sequence[Sequence[Any]], workers: int, client: Any) -> Iterator[_Done]:
    """Yield the number of each part with its results, as they end.

    Parameters
    ----------
    work : callable
        Importable, so that it can be sent to another process.
    parts : sequence of sequences
    workers : int
        Processes; with one, or one part, everything is done here.
    client : dask.distributed.Client or None
        Goes before `workers`.
    """
    if client is not None:
        yield from _clustered(work, parts, client)
    elif workers == 1 or len(parts) == 1:
        yield from ((number, work(part)) for number, part in enumerate(parts))
    else:
        yield from _pooled(work, parts, workers)


def _pooled(work: Work, parts: Sequence[Sequence[Any]], workers: int) -> Iterator[_Done]:
    waiting = deque(range(len(parts)))
    while waiting:
        suspects = yield from _round(work, parts, waiting, min(workers, len(waiting)))
        yield from _one_by_one(work, parts, suspects)


def _round(
    work: Work, parts: Sequence[Sequence[Any]], waiting: deque[int], workers: int
) -> Generator[_Done, None, list[int]]:
    """Run parts until all are done, or a process dies; return those it may have been."""
    flying: dict[Future[list[Any]], int] = {}
    pool = _pool(workers)
    try:
        while waiting or flying:
            while waiting and len(flying) <= workers:
                future = pool.submit(work, parts[waiting[0]])
                flying[future] = waiting.popleft()
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                results = future.result()
                yield flying.pop(future), results
    except BrokenProcessPool:
        return list(flying.values())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return []


def _one_by_one(
    work: Work, parts: Sequence[Sequence[Any]], numbers: Sequence[int]
) -> Iterator[_Done]:
    """Run the items of some parts one after another, each in a process that is alive."""
    pool = _pool(1)
    try:
        for number in numbers:
            results: list[Any] = []
            for item in parts[number]:
                result: list[Any] = []
                # Of a process that dies something else may be the reason, of two it is the item.
                for _ in range(2):
                    try:
                        result = pool.submit(work, [item]).result()
                        break
                    except BrokenProcessPool:
                        pool.shutdown()
                        pool = _pool(1)
                results += result or [
                    Lost("the process that read it was killed; was memory short?")
                ]
            yield number, results
    finally:
        pool.shutdown()


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_leave_interrupts
    )


def _leave_interrupts() -> None:
    """Let the process that asked for the work decide what Ctrl-C does: workers write nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _clustered(work: Work, parts: Sequence[Sequence[Any]], client: Any) -> Iterator[_Done]:
    try:
        from distributed import as_completed
    except ImportError as error:
        raise UnsupportedError(
            f"a client needs dask.distributed ({error}): pip install distributed"
        ) from error
    # The graph holds paths only; `pure` would keep an old answer for a changed file.
    futures = {
        client.submit(work, part, pure=False, retries=_RETRIES): number
        for number, part in enumerate(parts)
    }
    try:
        for future in as_completed(list(futures)):
            number = futures[future]
            if future.exception() is None:
                yield number, future.result()
            else:
                # Something in it kills workers: which item, only each alone tells.
                yield number, [_clustered_alone(work, item, client) for item in parts[number]]
            future.release()
    finally:
        client.cancel([future for future in futures if not future.done()])


def _clustered_alone(work: Work, item: Any, client: Any) -> Any:
    future = client.submit(work, [item], pure=False, retries=_RETRIES)
    error = future.exception()
    return future.result()[0] if error is None else Lost(f"{type(error).__name__}: {error}")
