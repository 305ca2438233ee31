"""The event loop of calls that are not asynchronous: one thread, started at first need."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from rumi.remote.process import current

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Generator

__all__ = ["iterate", "run"]

T = TypeVar("T")


class _Loop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="rumi-remote", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def stop(self) -> None:
        """Cancel what is in flight and end the thread, when the process ends."""

        async def cancel() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=1)

        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(cancel(), self.loop).result(timeout=2)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=1)
        if not self._thread.is_alive():
            self.loop.close()


def _loop() -> asyncio.AbstractEventLoop:
    process = current()
    with process.lock:
        if process.loop is None:
            process.loop = _Loop()
        loop: asyncio.AbstractEventLoop = process.loop.loop
    return loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the loop's thread and wait for it; an interrupt cancels it."""
    try:
        future = asyncio.run_coroutine_threadsafe(coroutine, _loop())
    except RuntimeError:
        # The process is ending.
        coroutine.close()
        raise
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def iterate(generator: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Yield what an asynchronous generator does, which runs on meanwhile."""
    try:
        while True:
            found = run(_next(generator))
            if found is None:
                return
            yield found
    finally:
        run(generator.aclose())


async def _next(generator: AsyncGenerator[T, None]) -> T | None:
    """Return the next value, None at the end: StopAsyncIteration cannot leave a coroutine."""
    try:
        return await anext(generator)
    except StopAsyncIteration:
        return None
