"""Decoding what has arrived while the rest is on its way."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rumi import backends, engine, workers
from rumi._core import Plan, Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterator

    from rumi._core import Target
    from rumi.remote.store import Range, RemoteFile

__all__ = [
    "Part",
    "PartError",
    "Workers",
    "decode_parts",
    "decode_parts_async",
    "execute",
    "execute_async",
    "gather",
    "in_thread",
]

T = TypeVar("T")

# Frames that a thread takes at a time.
_CHUNK = 8


@dataclass(frozen=True, slots=True)
class Part:
    """Some frames of a plan, and the bytes that hold them.

    Attributes
    ----------
    plan : Plan
    item : int
        Place of the plan's result in the target.
    store : Store
        Memory, or a local file.
    first, stop : int
        Frames of the plan, the end exclusive.
    """

    plan: Plan
    item: int
    store: Store
    first: int
    stop: int


class PartError(Exception):
    """An error about a part; its cause is raised once it is known what to say of it.

    That may take requests, and so waits until those of the others have ended.
    """

    def __init__(self, error: Exception, part: Part) -> None:
        super().__init__(str(error))
        self.error = error
        self.part = part


@dataclass(frozen=True, slots=True)
class Workers:
    """Who decodes.

    Attributes
    ----------
    backend : str
        As of `rumi.backends`.
    threads : int
        More than one only where the backend runs without the GIL.
    """

    backend: str
    threads: int

    @classmethod
    def choose(cls, plan: Plan, threads: int | None, items: int = 1) -> Workers:
        """Return the same choice as for local files."""
        backend = backends.requested()
        count = min(workers.resolve_threads(threads), plan.frame_count * items)
        if count > 1 and backend != "openzl" and engine.scales(plan, items):
            return cls("geozl", count)
        return cls(engine.single_backend(plan, backend), 1)

    def decode(self, part: Part, target: Target) -> None:
        """Decode a part on this thread."""
        engine.decode_alone(
            part.plan, part.store, target, part.item, self.backend, part.first, part.stop
        )

    def pieces(self, part: Part) -> Iterator[Part]:
        """Cut a part so that the threads share it."""
        count = part.stop - part.first
        chunk = max(1, min(_CHUNK, count // self.threads)) if self.threads > 1 else count
        for first in range(part.first, part.stop, chunk):
            stop = min(first + chunk, part.stop)
            yield Part(part.plan, part.item, part.store, first, stop)


def execute(plan: Plan, source: RemoteFile, target: Target, item: int, threads: int | None) -> None:
    """Fetch, decode and scatter the frames of a plan; see `rumi.engine.execute`."""
    who = Workers.choose(plan, threads)
    # Closed at once, also where an error keeps this frame alive: that ends the requests.
    with closing(source.fetch(plan.ranges(source.gap, source.largest))) as arriving:
        parts = (_parts(plan, item, source.name, found) for found in arriving)
        decode_parts(parts, target, who)


async def execute_async(plan: Plan, source: RemoteFile, target: Target, who: Workers) -> None:
    """As `execute`, from an event loop, which goes on meanwhile."""
    arriving = source.fetch_async(plan.ranges(source.gap, source.largest))

    async def parts() -> AsyncGenerator[list[Part], None]:
        async for found in arriving:
            yield _parts(plan, 0, source.name, found)

    try:
        await decode_parts_async(parts(), target, who)
    finally:
        await arriving.aclose()


def _parts(plan: Plan, item: int, name: str, found: list[tuple[Range, bytes]]) -> list[Part]:
    return [
        Part(plan, item, Store.memory(data, start, name), first, stop)
        for (start, _, first, stop), data in found
    ]


class _Work:
    """What every thread does: take pieces of parts in turn and decode them."""

    def __init__(
        self, parts: Iterator[list[Part]], target: Target, who: Workers, *, wrap: bool
    ) -> None:
        self._pieces = (piece for some in parts for part in some for piece in who.pieces(part))
        self._target = target
        self._who = who
        self._wrap = wrap
        self._lock = threading.Lock()
        self._stopped = False

    def stop(self) -> None:
        """Leave no piece to take."""
        self._stopped = True

    def __call__(self) -> None:
        while True:
            with self._lock:
                piece = None if self._stopped else next(self._pieces, None)
            if piece is None:
                return
            try:
                self._who.decode(piece, self._target)
            except Exception as error:
                if self._wrap:
                    raise PartError(error, piece) from error
                raise


def decode_parts(
    parts: Iterator[list[Part]], target: Target, who: Workers, *, wrap: bool = False
) -> None:
    """Decode parts as they come, on this thread and others.

    Parameters
    ----------
    parts : iterator of list of Part
        May wait for the network; asked by one thread at a time.
    target : Target
    who : Workers
    wrap : bool
        Raise errors of decoding as `PartError`.
    """
    work = _Work(parts, target, who, wrap=wrap)
    if who.threads > 1:
        workers.run_together(work, who.threads, work.stop)
    else:
        work()


async def decode_parts_async(
    parts: AsyncGenerator[list[Part], None],
    target: Target,
    who: Workers,
    *,
    wrap: bool = False,
) -> None:
    """As `decode_parts`, from an event loop."""
    try:
        async for some in parts:
            work = _Work(iter([some]), target, who, wrap=wrap)
            pieces = sum(1 for part in some for _ in who.pieces(part))
            threads = [
                asyncio.ensure_future(in_thread(work)) for _ in range(min(who.threads, pieces))
            ]
            try:
                await asyncio.gather(*threads)
            except BaseException:
                work.stop()
                await _end(threads)
                raise
    finally:
        await parts.aclose()


async def _end(tasks: Collection[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def gather(coroutines: Iterator[Coroutine[Any, Any, None]], limit: int) -> None:
    """Run coroutines, so many at the same time; the first error ends them all."""
    running: set[asyncio.Future[None]] = set()
    try:
        for coroutine in coroutines:
            running.add(asyncio.ensure_future(coroutine))
            if len(running) >= limit:
                running = await _settle(running, asyncio.FIRST_COMPLETED)
        await _settle(running, asyncio.FIRST_EXCEPTION)
    finally:
        await _end(running)


async def _settle(running: set[asyncio.Future[None]], when: str) -> set[asyncio.Future[None]]:
    """Wait for tasks, raise the first error, return those that are not done."""
    if not running:
        return running
    done, pending = await asyncio.wait(running, return_when=when)
    for task in done:
        task.result()
    return pending


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function in a thread of the loop's pool; when cancelled, wait for its end.

    A thread cannot be interrupted, and what it writes to is the caller's again
    once this returns.
    """
    loop = asyncio.get_running_loop()
    future = loop.run_in_executor(None, lambda: function(*arguments))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        if not future.cancelled():
            # Looked at, so that the loop does not report it.
            future.exception()
        raise
