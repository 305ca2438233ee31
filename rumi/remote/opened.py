"""One state of a remote object: every range checked, every range of the same object."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

from rumi.errors import SourceError, StaleHeaderError
from rumi.remote import loop
from rumi.remote.faults import AttemptError, pause, source_error
from rumi.remote.fetch import Job, replies
from rumi.remote.store import RemoteFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator

    from rumi._core import BlobHeader
    from rumi.remote.clients import Client, Reply
    from rumi.remote.store import Range, RemoteSource

__all__ = ["OpenObject"]


class OpenObject(RemoteFile):
    """An object as its first reply showed it: later ones must be of the same.

    Parameters
    ----------
    source : RemoteSource
        Which one, and what is known about it.

    Attributes
    ----------
    name : str
        What errors call it.
    gap, largest : int
        How its frames merge into ranges; see `ObjectStore`.

    Notes
    -----
    Holds no connection. Safe to use from many threads and event loops.
    """

    __slots__ = ("_expected", "_seen", "_settings", "_verifying", "_whole", "name", "source")

    def __init__(self, source: RemoteSource) -> None:
        self.source = source
        self.name = source.name
        self._settings = source.store.settings
        # What the header says; the catalog may have said something else.
        self._expected: int | None = None
        # Written once under each name, which takes no lock.
        self._seen: dict[str, Any] = {}
        self._verifying: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self._whole: bytes | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the source; what was seen of the object is not carried along."""
        return OpenObject, (self.source,)

    @property
    def gap(self) -> int:
        """Bytes between two frames that are fetched rather than skipped."""
        return self._settings.gap

    @property
    def largest(self) -> int:
        """Bytes of one request at most."""
        return self._settings.largest

    @property
    def connections(self) -> int:
        """Requests in flight at most."""
        return self._settings.connections()

    @property
    def size(self) -> int:
        """Bytes of the object; asked for where no reply has told them yet."""
        if self._size is None:
            loop.run(self._measure(self.source.store.client()))
        return self._size or 0

    @property
    def _size(self) -> int | None:
        """Bytes of the object, None before the first reply."""
        found: int | None = self._seen.get("size")
        return found

    @property
    def identity(self) -> tuple[Any, int | None]:
        """ETag, or time of the last change, and size; None where unknown."""
        return self._seen.get("ETag", self._seen.get("date")), self._size

    @property
    def modified(self) -> float | None:
        """When the object was last changed, in seconds since 1970; None where replies do not tell.

        Asked for where there was no reply yet.
        """
        if self._size is None:
            loop.run(self._measure(self.source.store.client()))
        found: Any = self._seen.get("modified")
        return None if found is None else float(getattr(found, "timestamp", lambda: found)())

    def exists(self) -> bool:
        """Ask whether there is such an object.

        Raises
        ------
        SourceError
            If the store does not say; StaleHeaderError where another one is expected.
        """
        try:
            self.read(0, 1)
        except FileNotFoundError:
            return False
        return True

    def check_size(self, header: BlobHeader) -> None:
        """Let no reply pass that tells another size than the header; nothing is asked for now.

        Raises
        ------
        StaleHeaderError
            If the size is known already and differs.
        """
        self._expected = header.file_size
        for size in (self.source.size, self._size):
            if size is not None:
                self._check_length(size)

    def read(self, start: int, size: int) -> bytes:
        """Return bytes start..start+size, fewer only where the object ends."""
        return loop.run(self.read_async(start, size))

    async def read_async(self, start: int, size: int) -> bytes:
        """Return bytes start..start+size, fewer only where the object ends.

        Raises
        ------
        SourceError
            If they cannot be fetched.
        StaleHeaderError
            If the object is not the one that was seen, or that is expected.
        """
        if start < 0 or size < 0:
            raise ValueError(f"expected a range inside the file, found {size} bytes at {start}")
        stop = start + size
        client = self.source.store.client()
        if self._size is None and not client.tells:
            await self._measure(client)
        if self._size is not None:
            stop = min(stop, self._size)
        if stop <= start:
            return b""
        try:
            return await self.get(start, stop)
        except SourceError as error:
            # No range of an empty object can be had.
            if start == 0 and getattr(error, "status", None) == 416:
                self._seen.setdefault("size", 0)
                return b""
            raise

    def fetch(self, ranges: list[Range]) -> Generator[list[tuple[Range, bytes]], None, None]:
        """Yield the ranges of a plan with their bytes, as they arrive."""
        if len(ranges) == 1:
            start, stop, _, _ = ranges[0]
            yield [(ranges[0], loop.run(self.get(start, stop)))]
        else:
            yield from loop.iterate(self.fetch_async(ranges))

    async def fetch_async(
        self, ranges: list[Range]
    ) -> AsyncGenerator[list[tuple[Range, bytes]], None]:
        """Yield the ranges of a plan with their bytes, as they arrive."""
        jobs = (Job(self, found[0], found[1], found) for found in ranges)
        arriving = replies(jobs, self.connections)
        try:
            async for found in arriving:
                yield [(job.what, _present(data)) for job, data in found]
        finally:
            await arriving.aclose()

    async def get(self, start: int, stop: int) -> bytes:
        """Return bytes start..stop, all of them; trying again where that may help.

        Raises
        ------
        SourceError
            If they cannot be fetched.
        StaleHeaderError
            If the object is not the one that was seen, or that is expected.
        """
        if self.source.sha256 is not None and "verified" not in self._seen:
            # Ranges that are asked for together wait for one comparison.
            lock = asyncio.Lock()
            async with self._verifying.setdefault(asyncio.get_running_loop(), lock):
                if "verified" not in self._seen:
                    await self._verify()
        if self._whole is not None:
            return self._whole[start:stop]
        return await self._get(start, stop)

    async def _get(self, start: int, stop: int) -> bytes:
        """Fetch a range and check whose it is."""
        source = self.source
        client = source.store.client()
        if not client.tells and not self._seen and (source.etag, source.size) != (None, None):
            await self._measure(client)
        reply = await self._attempt(
            start, stop, lambda: client.get(source.full_path, start, stop, _strong(source.etag))
        )
        if client.tells:
            self._check(reply)
        elif len(reply.data) < stop - start:
            # What it means depends on where the object ends.
            await self._measure(client)
            if self._size != start + len(reply.data):
                fault = AttemptError(f"expected {stop - start} bytes, found {len(reply.data)}")
                raise source_error(self.name, start, stop, fault)
        return reply.data

    async def _measure(self, client: Client) -> None:
        """Ask for the size and the ETag of an object whose ranges do not tell them."""
        self._check(await self._attempt(0, 0, lambda: client.measure(self.source.full_path)))

    async def _attempt(
        self, start: int, stop: int, ask: Callable[[], Coroutine[Any, Any, Reply]]
    ) -> Reply:
        """Ask, and ask again after a fault that may pass."""
        slots = self.source.store.client().slots()
        attempt = 0
        while True:
            try:
                async with slots:
                    return await ask()
            except AttemptError as fault:
                if fault.status == 412:
                    raise self._replaced(f"ETag {self.source.etag}", "another one") from fault
                if not fault.transient or attempt >= self._settings.retries:
                    raise source_error(self.name, start, stop, fault, attempt) from fault
            await asyncio.sleep(pause(attempt))
            attempt += 1

    async def _verify(self) -> None:
        """Compare the SHA-256 of the whole object; a small one is kept."""
        digest = hashlib.sha256()
        position, data = 0, b""
        while position == 0 or position < (self._size or 0):
            data = await self._get(position, position + self.largest)
            digest.update(data)
            position += len(data)
            if self._size is None:
                await self._measure(self.source.store.client())
            if not data:
                break
        expected = self.source.sha256
        if digest.digest() != expected and isinstance(expected, bytes):
            raise self._replaced(f"SHA-256 {expected.hex()}", digest.hexdigest())
        if position == len(data):
            self._whole = data
        elif self.identity[0] is None or not self.source.store.client().tells:
            fault = AttemptError(
                "the answers have no ETag or date, so that later ones may be of another object "
                "than the one whose SHA-256 was compared"
            )
            raise source_error(self.name, 0, position, fault)
        self._seen["verified"] = True

    def _check(self, reply: Reply) -> None:
        """Refuse a reply from another object than the one that is meant."""
        pinned = self.source.etag
        if pinned is not None and _opaque(pinned) != _opaque(reply.etag):
            raise self._replaced(f"ETag {pinned}", reply.etag or "an answer without one")
        if reply.size is not None:
            self._check_length(reply.size)
        if reply.modified is not None:
            self._seen.setdefault("modified", reply.modified)
        # Copies of an object may differ in their dates, so these count where no ETag does.
        state = ("ETag", reply.etag) if reply.etag is not None else ("date", reply.modified)
        for key, found in (("size", reply.size), state):
            if found is not None and self._seen.setdefault(key, found) != found:
                raise self._replaced(f"{key} {self._seen[key]} as before", f"{found}")

    def _check_length(self, size: int) -> None:
        if self._expected is not None and size != self._expected:
            raise StaleHeaderError(
                f"{self.name}: the header describes a file of {self._expected} bytes, found "
                f"{size}: the file was truncated or replaced; rebuild the header with rumi.index"
            )
        if self.source.size is not None and size != self.source.size:
            raise self._replaced(f"{self.source.size} bytes", f"{size}")

    def _replaced(self, expected: str, found: str) -> StaleHeaderError:
        return StaleHeaderError(
            f"{self.name}: the object was replaced: expected {expected}, found {found}; rebuild "
            "the header with rumi.index"
        )


def _strong(etag: str | None) -> str | None:
    """Return an ETag as a condition to send; a weak one never meets one."""
    if etag is None or etag.startswith("W/"):
        return None
    return etag if etag.startswith('"') else f'"{etag}"'


def _opaque(etag: str | None) -> str | None:
    """Return what two ETags are compared by: catalogs drop the quotes."""
    return None if etag is None else etag.removeprefix("W/").strip('"')


def _present(data: bytes | Exception) -> bytes:
    if isinstance(data, Exception):
        raise data
    return data
