"""Where bytes come from: local paths, bytes-like objects, URLs and remote sources.

A source is what the caller names; `open_source` turns it into what reads it: a
name for errors, and reads by position, without a shared cursor.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from rumi._core import Store
from rumi.errors import UnsupportedError
from rumi.remote.store import RemoteFile, RemoteSource, from_url
from rumi.remote.urls import is_url, shown

__all__ = [
    "HandleCache",
    "Identity",
    "Opened",
    "SourceLike",
    "handles",
    "is_path",
    "is_remote",
    "local_copy",
    "local_path",
    "open_source",
    "remote_source",
    "source_name",
]

SourceLike: TypeAlias = Any

# What `open_source` gives.
Opened: TypeAlias = Store | RemoteFile

# What tells one state of a file from another: inode, size, modification time.
Identity: TypeAlias = tuple[int, int, int]

# A bytes object is a path only where it can be nothing else: no rumi file is
# without a NUL among its first bytes, and no path has one.
_LONGEST_PATH = 4096


def is_path(source: SourceLike) -> bool:
    """Whether a source names a file, rather than being its bytes."""
    if isinstance(source, (str, os.PathLike)):
        return True
    return (
        isinstance(source, bytes)
        and 0 < len(source) <= _LONGEST_PATH
        and b"\0" not in source
        and b"\n" not in source
    )


def is_remote(source: SourceLike) -> bool:
    """Whether a source is a URL of something that is no local file, or a remote source."""
    if isinstance(source, str):
        return "://" in source and is_url(source)
    return isinstance(source, (RemoteSource, RemoteFile))


def remote_source(source: SourceLike) -> RemoteSource:
    """Return the remote source that `is_remote` has found; errors as of `from_url`."""
    if isinstance(source, RemoteFile):
        return source.source
    return source if isinstance(source, RemoteSource) else from_url(source)


def local_path(source: SourceLike) -> bytes:
    r"""Return the file system path of a source that names a file.

    A string such as ``C:\\data\\a.rumi`` is a path: a scheme needs ``://``.

    Raises
    ------
    UnsupportedError
        If it is a URL of another scheme than ``file``, or of another host.
    """
    path = os.fspath(source)
    if isinstance(path, str) and is_url(path):
        raise UnsupportedError(f"{shown(path)}: expected a local path, found a URL")
    if isinstance(path, str) and path[:7].lower() == "file://":
        parts = urlsplit(path)
        if parts.netloc not in ("", "localhost"):
            raise UnsupportedError(f"{path}: a file URL of another host cannot be opened")
        # A file URL has no query or fragment: the characters belong to the name.
        path = unquote(path[path.index("://") + 3 + len(parts.netloc) :])
    return os.fsencode(path)


def source_name(source: SourceLike) -> str:
    """Return what errors call a source."""
    if is_path(source):
        name = os.fsdecode(source)
        return shown(name) if is_remote(name) else name
    if isinstance(source, (Store, RemoteSource, RemoteFile)):
        return str(source.name)
    return f"<{type(source).__name__}>"


def open_source(source: SourceLike) -> Opened:
    """Open a local path, or wrap a bytes-like object or a remote one, without copying it.

    Parameters
    ----------
    source : str, os.PathLike, bytes, bytes-like, mmap, BytesIO, RemoteSource or opened
        A path, a URL, or the contents of a file. A `bytes` object with a NUL byte
        or a line break, or an empty one, is contents. Nothing is asked of a
        remote store yet.

    Raises
    ------
    OSError
        If the file cannot be opened.
    TypeError
        If `source` is none of these.
    UnsupportedError
        If it is a URL that this version does not read.
    """
    if type(source) is str and "://" not in source:
        return Store.open_path(source, source)
    if isinstance(source, (Store, RemoteFile)):
        return source
    if is_remote(source):
        return remote_source(source).open()
    if is_path(source):
        return Store.open_path(local_path(source), source_name(source))
    name = source_name(source)
    if isinstance(source, BytesIO):
        source = source.getbuffer()
    try:
        view = memoryview(source)
        if not view.c_contiguous:
            raise ValueError(f"{name}: the bytes of a file must be contiguous")
        return Store.memory(view, name=name)
    except TypeError as error:
        raise TypeError(
            f"a source is a path, URL, RemoteSource or bytes-like, found {type(source).__name__}"
        ) from error


@contextmanager
def local_copy(source: SourceLike) -> Iterator[str]:
    """Give the path of a file; of a remote one, that of a copy as long as the block lasts.

    Raises
    ------
    SourceError, StaleHeaderError
        If it cannot be downloaded, or was replaced meanwhile.
    OSError
        If the copy cannot be written.
    """
    if not is_remote(source):
        yield os.fsdecode(local_path(source))
        return
    from rumi.remote.download import downloaded

    with downloaded(
        source if isinstance(source, RemoteFile) else remote_source(source).open()
    ) as path:
        yield path


class HandleCache:
    """Open files by path and identity, the least recently used closed first.

    A handle that is in use stays open until its last user is done, and goes on
    reading the file that the path named when it was opened.

    Parameters
    ----------
    limit : int
        How many files stay open.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str | bytes, Identity], Store] = OrderedDict()

    def find(self, path: str | bytes, identity: Identity) -> Store | None:
        """Return the open file that the path named when it was opened, if it still is open."""
        with self._lock:
            found = self._open.get((path, identity))
            if found is not None:
                self._open.move_to_end((path, identity))
            return found

    def keep(self, path: str | bytes, store: Store) -> None:
        """Keep a file open, and close the least recently used one beyond the limit."""
        with self._lock:
            self._open[path, store.identity] = store
            while len(self._open) > self.limit:
                self._open.popitem(last=False)

    def clear(self) -> None:
        """Close every file."""
        # A new lock, since another thread may have held the old one at a fork.
        self._lock = threading.Lock()
        self._open = OrderedDict()


# The files that Image objects have open.
handles = HandleCache(limit=128)
os.register_at_fork(after_in_child=handles.clear)
