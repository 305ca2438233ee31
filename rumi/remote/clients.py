"""Clients: what talks to a store, one range at a time; the one for fsspec."""

from __future__ import annotations

import asyncio
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rumi.errors import UnsupportedError
from rumi.remote import urls
from rumi.remote.faults import AttemptError, attempt_error
from rumi.remote.process import current

if TYPE_CHECKING:
    from pathlib import Path

    from rumi.remote.settings import Settings

__all__ = ["CHUNK", "Client", "Reply", "Slots", "make_client"]

# How much of an answer is waited for at a time.
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Reply:
    """A range, exactly as long as asked for or up to the end of the object.

    Attributes
    ----------
    data : bytes
    size : int or None
        Of the object, where the answer said it.
    etag : str or None
    modified : object
        When the object was last changed; None where unknown.
    """

    data: bytes
    size: int | None = None
    etag: str | None = None
    modified: Any = None


class Client(Protocol):
    """What talks to one store, in one process."""

    settings: Settings
    # Whether a range comes with the size and the ETag of its object.
    tells: bool

    def slots(self) -> asyncio.Semaphore:
        """Return what caps the requests of the running loop."""
        ...

    async def get(self, path: str, start: int, stop: int, etag: str | None) -> Reply:
        """Fetch bytes start..stop, once; raises `AttemptError`."""
        ...

    async def measure(self, path: str) -> Reply:
        """Ask for size and ETag, where ranges do not tell them; raises `AttemptError`."""
        ...

    async def put(self, path: str, file: Path) -> None:
        """Upload a file, which appears when it is complete."""
        ...


def make_client(settings: Settings) -> Client:
    """Make the client of a store.

    Raises
    ------
    UnsupportedError
        If its package is missing.
    ValueError
        If a setting is not known to the store.
    """
    if settings.root is None and hasattr(settings.given, "cat_file"):
        return FsspecClient(settings, settings.given)
    if settings.root is not None and settings.root.startswith(urls.MEMORY):
        return FsspecClient(settings, _memory_file_system())
    from rumi.remote.obstores import ObstoreClient

    return ObstoreClient(settings)


class Slots:
    """What every client has: a semaphore for each event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._slots: weakref.WeakKeyDictionary[Any, asyncio.Semaphore] = weakref.WeakKeyDictionary()

    def slots(self) -> asyncio.Semaphore:
        """Return what caps the requests of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._slots.get(loop)
        if found is None:
            found = self._slots[loop] = asyncio.Semaphore(self.settings.connections())
        return found


class FsspecClient(Slots):
    """A file system of fsspec, called from threads: all of them have that interface.

    It tells neither size nor ETag with a range, and what a server sends too
    much is read by it before it is seen here.
    """

    tells = False

    def __init__(self, settings: Settings, file_system: Any) -> None:
        super().__init__(settings)
        if current().forked:
            # Its loop is the parent's; a new one of the same settings has its own.
            file_system = pickle.loads(pickle.dumps(file_system))  # noqa: S301
        self._files = file_system
        self._pool = ThreadPoolExecutor(settings.connections(), thread_name_prefix="rumi-remote")

    async def get(self, path: str, start: int, stop: int, etag: str | None) -> Reply:
        """Fetch bytes start..stop, once; raises `AttemptError`."""
        timeout = self.settings.timeout
        data = bytes(await self._call(self._files.cat_file, path, start, stop, timeout=timeout))
        if len(data) > stop - start:
            raise AttemptError(f"expected {stop - start} bytes, found {len(data)}")
        return Reply(data)

    async def measure(self, path: str) -> Reply:
        """Ask for size and ETag; raises `AttemptError`."""
        timeout = self.settings.timeout
        info: dict[str, Any] = await self._call(self._files.info, path, timeout=timeout)
        etag = next((info[name] for name in ("ETag", "etag", "e_tag") if info.get(name)), None)
        modified = next((info[name] for name in ("LastModified", "mtime") if info.get(name)), None)
        return Reply(b"", info.get("size"), etag, modified)

    async def put(self, path: str, file: Path) -> None:
        """Upload a file, which appears when it is complete."""
        await self._call(self._put, path, file, timeout=None)

    def _put(self, path: str, file: Path) -> None:
        out = self._files.open(path, "wb", autocommit=False)
        try:
            with file.open("rb") as source:
                while block := source.read(CHUNK):
                    out.write(block)
            out.close()
        except BaseException:
            out.discard()
            raise
        out.commit()

    async def _call(self, function: Any, *arguments: Any, timeout: float | None) -> Any:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                return await loop.run_in_executor(self._pool, function, *arguments)
        except NotImplementedError as error:
            raise UnsupportedError(f"{type(self._files).__name__} cannot do it: {error}") from error
        except Exception as error:
            raise attempt_error(error) from error


def _memory_file_system() -> Any:
    """Return fsspec's memory of this process, which other libraries see too."""
    try:
        from fsspec.implementations.memory import MemoryFileSystem
    except ImportError as error:
        raise UnsupportedError(
            f"memory:// URLs need fsspec ({error}): pip install 'rumi[remote]'"
        ) from error
    return MemoryFileSystem()
