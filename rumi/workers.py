"""Threads: how many, and the pool they come from.

Nothing starts a thread at import. What the pool needs is imported with this
module all the same: a process forked while another thread is in the middle of an
import would wait for that import for ever. The pool is made at first need, never
crosses a fork, and holds Python's own threads: no OpenMP, which breaks there.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ENVIRONMENT_VARIABLE", "cpu_count", "resolve_threads", "run_together"]

ENVIRONMENT_VARIABLE = "RUMI_NUM_THREADS"

_MAX_THREADS = 256


class _State:
    """What a process knows about its threads; made anew in a forked child."""

    def __init__(self, *, forked: bool) -> None:
        self.forked = forked
        self.lock = threading.Lock()
        self.pool: ThreadPoolExecutor | None = None
        self.size = 0


_state = _State(forked=False)


def _after_fork() -> None:
    global _state
    _state = _State(forked=True)


os.register_at_fork(after_in_child=_after_fork)


def cpu_count() -> int:
    """Return the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_child() -> bool:
    """Whether this process was forked or spawned as a worker of another one."""
    if _state.forked:
        return True
    multiprocessing = sys.modules.get("multiprocessing.process")
    return multiprocessing is not None and multiprocessing.parent_process() is not None


def resolve_threads(threads: int | None) -> int:
    """Return how many threads a call uses.

    Parameters
    ----------
    threads : int or None
        The caller's wish. None takes the environment variable
        ``RUMI_NUM_THREADS``, else every processor in a main process and one in
        a child process, such as a DataLoader worker.

    Raises
    ------
    TypeError
        If `threads` is no integer.
    ValueError
        If it is below 1, or the environment variable is no positive integer.
    """
    if threads is None:
        value = os.environ.get(ENVIRONMENT_VARIABLE)
        if value is None:
            return 1 if _in_child() else cpu_count()
        if not value.isdecimal() or int(value) < 1:
            raise ValueError(f"{ENVIRONMENT_VARIABLE} must be a positive integer, found {value!r}")
        return min(int(value), _MAX_THREADS)
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads is an integer, found {type(threads).__name__}")
    number = threads.__index__()
    if number < 1:
        raise ValueError(f"threads must be at least 1, found {number}")
    return min(number, _MAX_THREADS)


def run_together(work: Callable[[], None], threads: int, stop: Callable[[], None]) -> None:
    """Run `work` in `threads` threads, the calling one among them.

    Returns when all have ended. The first exception is raised, after `stop` has
    told the others to take no more and they have ended.
    """
    state = _state
    with state.lock:
        if state.pool is None or state.size < threads - 1:
            # A pool that is replaced finishes what it was given.
            state.size = max(threads - 1, cpu_count())
            state.pool = ThreadPoolExecutor(state.size, thread_name_prefix="rumi")
        futures = _submit(state.pool, work, threads - 1)
    try:
        work()
    finally:
        if sys.exception() is not None:
            stop()
        wait(futures)
    errors = [error for error in map(Future.exception, futures) if error is not None]
    # The frames of an exception refer to these lists, and they to the exception.
    futures.clear()
    if errors:
        try:
            raise errors[0]
        finally:
            errors.clear()


def _submit(pool: ThreadPoolExecutor, work: Callable[[], None], count: int) -> list[Future[None]]:
    futures: list[Future[None]] = []
    # At its end the interpreter takes no more work: the caller then does all of it alone.
    with suppress(RuntimeError):
        for _ in range(count):
            futures.append(pool.submit(work))
    return futures
