"""Where bytes come from: local paths and bytes-like objects.

A source is what the caller names; `open_source` turns it into a store, which has
a name for errors and reads by position, without a shared cursor.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from io import BytesIO
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from rumi._core import Store
from rumi.errors import UnsupportedError

__all__ = [
    "HandleCache",
    "Identity",
    "SourceLike",
    "handles",
    "is_path",
    "local_path",
    "open_source",
    "source_name",
]

SourceLike: TypeAlias = Any

# What tells one state of a file from another: inode, size, modification time.
Identity: TypeAlias = tuple[int, int, int]

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")

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


def local_path(source: SourceLike) -> bytes:
    r"""Return the file system path of a source that names a file.

    A string such as ``C:\\data\\a.rumi`` is a path: a scheme needs ``://``.

    Raises
    ------
    UnsupportedError
        If it is a URL of another scheme than ``file``.
    """
    path = os.fspath(source)
    if isinstance(path, str) and "://" in path and _SCHEME.match(path):
        parts = urlsplit(path)
        if parts.scheme.lower() != "file":
            raise UnsupportedError(
                f"{path}: this version reads local files and bytes, not {parts.scheme}:// URLs; "
                "fetch the object and pass its bytes"
            )
        if parts.netloc not in ("", "localhost"):
            raise UnsupportedError(f"{path}: a file URL of another host cannot be opened")
        # A file URL has no query or fragment: the characters belong to the name.
        path = unquote(path[path.index("://") + 3 + len(parts.netloc) :])
    return os.fsencode(path)


def source_name(source: SourceLike) -> str:
    """Return what errors call a source."""
    if is_path(source):
        return os.fsdecode(source)
    return f"<{type(source).__name__}>"


def open_source(source: SourceLike) -> Store:
    """Open a local path or wrap a bytes-like object, without copying it.

    Parameters
    ----------
    source : str, os.PathLike, bytes, bytes-like, mmap, BytesIO or Store
        A path, a ``file://`` URL, or the contents of a file. A `bytes` object
        with a NUL byte or a line break, or an empty one, is contents.

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
    if isinstance(source, Store):
        return source
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
            f"a source is a path or bytes-like, found {type(source).__name__}"
        ) from error


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
        self._open: OrderedDict[tuple[str | bytes, Identity | None], Store] = OrderedDict()

    def open(self, path: str | bytes, expected: Identity | None) -> Store:
        """Return an open file; errors as of `open_source`.

        Parameters
        ----------
        path : str or bytes
        expected : Identity or None
            The file that was opened before, which may still be open though the
            path names another one by now. None always opens the path.
        """
        if expected is not None:
            with self._lock:
                found = self._open.get((path, expected))
                if found is not None:
                    self._open.move_to_end((path, expected))
                    return found
        opened = open_source(path)
        with self._lock:
            self._open[path, opened.identity] = opened
            while len(self._open) > self.limit:
                self._open.popitem(last=False)
        return opened

    def clear(self) -> None:
        """Close every file."""
        # A new lock, since another thread may have held the old one at a fork.
        self._lock = threading.Lock()
        self._open = OrderedDict()


# The files that Image objects have open.
handles = HandleCache(limit=128)
os.register_at_fork(after_in_child=handles.clear)
