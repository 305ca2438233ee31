"""Running one function over many parts: here, in processes, or on a Dask cluster.

A part is a list of items; the function returns a result for each. Whatever
kills a process is found by trying the items of its part one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from pkgutil import resolve_name
from typing import Any, TypeAlias

from rumi.errors import UnsupportedError

__all__ = ["Lost", "Work", "check", "run"]

_KILLED = "the process that worked on it was killed; was there enough memory?"

# From some items to a result for each.
Work: TypeAlias = Callable[[Sequence[Any]], list[Any]]

# How often a part is tried again on a cluster that failed to take it.
_RETRIES = 3

# Parts that a cluster is given at the same time: enough for a large one, few enough
# for its scheduler.
_IN_FLIGHT = 4096


class Lost:
    """In the place of a result: the process that worked on the item is gone.

    Attributes
    ----------
    kind : str
        Class of the error that tells so.
    reason : str
        What is known about it.
    """

    def __init__(self, kind: str, reason: str) -> None:
        self.kind = kind
        self.reason = reason


# Number of the part, and its results.
_Done: TypeAlias = "tuple[int, list[Any]]"


def check(workers: Any, client: Any) -> None:
    """Refuse arguments that `run` cannot use.

    Raises
    ------
    TypeError
        If `workers` is no integer, or `client` no synchronous Dask client.
    ValueError
        If there are no workers.
    """
    if isinstance(workers, bool) or not hasattr(workers, "__index__"):
        raise TypeError(f"workers: expected an integer, found {type(workers).__name__}")
    if workers < 1:
        raise ValueError(f"workers: expected at least 1, found {workers}")
    if client is not None and (not hasattr(client, "submit") or not hasattr(client, "cancel")):
        raise TypeError(
            f"client: expected a dask.distributed.Client, found {type(client).__name__}"
        )
    if getattr(client, "asynchronous", False):
        raise TypeError("client: expected a synchronous client, found an asynchronous one")


def run(
    work: Work,
    parts: Sequence[Sequence[Any]],
    workers: int,
    client: Any,
    initializer: Callable[[], None],
) -> Iterator[_Done]:
    """Yield the number of each part with its results, as they end.

    Parameters
    ----------
    work : callable
        Importable, so that it can be sent to another process.
    parts : sequence of sequences
    workers : int
        Processes, which are spawned; with one, or one part, everything is done here.
    client : dask.distributed.Client or None
        Goes before `workers`. A worker that is lost costs nothing: the cluster gives
        its parts to others, as often as its setting ``allowed-failures`` says.
    initializer : callable
        Called first in each of the processes; importable.

    Raises
    ------
    UnsupportedError
        If there is a client, and no dask.distributed, or its workers lack what
        `work` is made of.
    """
    if client is not None:
        yield from _clustered(work, parts, client)
    elif workers == 1 or len(parts) == 1:
        yield from ((number, work(part)) for number, part in enumerate(parts))
    else:
        yield from _pooled(work, parts, workers, initializer)


def _pooled(
    work: Work, parts: Sequence[Sequence[Any]], workers: int, initializer: Callable[[], None]
) -> Iterator[_Done]:
    waiting = deque(range(len(parts)))
    while waiting:
        size = min(workers, len(waiting))
        suspects = yield from _round(work, parts, waiting, size, initializer)
        yield from _one_by_one(work, parts, suspects, initializer)


def _round(
    work: Work,
    parts: Sequence[Sequence[Any]],
    waiting: deque[int],
    workers: int,
    initializer: Callable[[], None],
) -> Generator[_Done, None, list[int]]:
    """Run parts until all are done, or a process dies; return those it may have been."""
    flying: dict[Future[list[Any]], int] = {}
    pool = _pool(workers, initializer)
    try:
        while waiting or flying:
            while waiting and len(flying) < workers:
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
    work: Work,
    parts: Sequence[Sequence[Any]],
    numbers: Sequence[int],
    initializer: Callable[[], None],
) -> Iterator[_Done]:
    """Run the items of some parts one after another, each in a process that is alive."""
    pool = _pool(1, initializer)
    try:
        for number in numbers:
            results: list[Any] = []
            for item in parts[number]:
                try:
                    results += pool.submit(work, [item]).result()
                except BrokenProcessPool as error:
                    pool.shutdown()
                    pool = _pool(1, initializer)
                    results.append(Lost(type(error).__name__, _KILLED))
            yield number, results
    finally:
        pool.shutdown()


def _pool(workers: int, initializer: Callable[[], None]) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=initializer)


def _clustered(work: Work, parts: Sequence[Sequence[Any]], client: Any) -> Iterator[_Done]:
    try:
        from distributed import as_completed
    except ImportError as error:
        raise UnsupportedError(
            f"a client needs dask.distributed ({error}): pip install distributed"
        ) from error
    _check_workers(work, client)
    waiting = iter(enumerate(parts))
    numbers = {_submit(work, part, client): number for number, part in islice(waiting, _IN_FLIGHT)}
    done = as_completed(list(numbers), loop=client.loop)
    suspects = []
    try:
        for future in done:
            number = numbers.pop(future)
            if future.exception() is None:
                yield number, future.result()
            else:
                suspects.append(number)
            future.release()
            for following, part in islice(waiting, 1):
                future = _submit(work, part, client)
                numbers[future] = following
                done.add(future)
    finally:
        client.cancel(list(numbers))
    # Dask blames a lost worker on whatever it had been given, too: which item it is that
    # kills workers, only each alone tells.
    for number in suspects:
        yield number, [_clustered_alone(work, item, client) for item in parts[number]]


def _check_workers(work: Work, client: Any) -> None:
    """Refuse a cluster where the work cannot be imported: Dask would wait for it for ever."""
    name = f"{work.__module__}:{work.__qualname__}"
    for worker, found in client.run(resolve_name, name, on_error="return").items():
        if isinstance(found, Exception):
            raise UnsupportedError(
                f"client: its worker {worker} cannot import {work.__module__} "
                f"({type(found).__name__}: {found}); install rumi there as it is here"
            ) from found


def _submit(work: Work, part: Sequence[Any], client: Any) -> Any:
    # The graph holds what is in the part; `pure` would keep an old answer for a changed file.
    return client.submit(work, part, pure=False, retries=_RETRIES)


def _clustered_alone(work: Work, item: Any, client: Any) -> Any:
    future = _submit(work, [item], client)
    error = future.exception()
    return future.result()[0] if error is None else _lost(error)


def _lost(error: BaseException) -> Lost:
    return Lost(type(error).__name__, " ".join(str(error).split()))
