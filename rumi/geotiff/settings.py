"""GDAL's settings, held while they matter and put back afterwards.

rasterio sets an option for the whole process where the main thread asks, and for
one thread where another does; the size of the block cache is always the whole
process's. ``rasterio.Env`` puts back what it found, which is what another thread
has set for a moment, and so leaves settings behind where threads overlap. Here
the last one to leave puts back what the first one found.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

__all__ = ["OPENING", "READING", "WRITING", "held"]

# GDAL's default block cache is a share of the machine's memory; rumi states its own.
_CACHE_BYTES = 64 << 20

# Whatever the caller or the environment chose, the same file reads the same way.
READING: Mapping[str, str | int] = {
    "GDAL_CACHEMAX": _CACHE_BYTES,
    "GTIFF_IGNORE_READ_ERRORS": "NO",
}
WRITING: Mapping[str, str | int] = {
    "GDAL_CACHEMAX": _CACHE_BYTES,
    # Deprecated EPSG codes stay what they are.
    "OSR_USE_NON_DEPRECATED": "NO",
    "GTIFF_POINT_GEO_IGNORE": "NO",
    # Side files (.aux.xml, .msk, .ovr, .tfw, RPC) belong to the image, as for GDAL.
    "GDAL_DISABLE_READDIR_ON_OPEN": "FALSE",
    "GDAL_PAM_ENABLED": "YES",
}
OPENING: Mapping[str, str | int] = {
    **READING,
    **WRITING,
    # A vertical CRS must be seen to be refused.
    "GTIFF_REPORT_COMPD_CS": "YES",
    "GTIFF_SRS_SOURCE": "EPSG",
    "CONVERT_YCBCR_TO_RGB": "YES",
}


# The one setting that is never a thread's own.
_SHARED = "GDAL_CACHEMAX"

# Whose setting: a thread's number, or 0 for the process; and which.
_Key: TypeAlias = "tuple[int, str]"


class _Books:
    """How many hold each setting, and what it was before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.holders: dict[_Key, int] = {}
        self.before: dict[_Key, Any] = {}


_books = _Books()


def _after_fork() -> None:
    """Start anew: whoever held a setting or the lock is not in the child."""
    global _books
    _books = _Books()


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def held(options: Mapping[str, str | int]) -> Iterator[None]:
    """Hold settings as long as the context lasts.

    Parameters
    ----------
    options : mapping
        Every caller gives a setting the same value.
    """
    books = _books
    thread = threading.get_ident()
    with books.lock:
        for name, value in options.items():
            _take(books, (0 if name == _SHARED else thread, name), value)
    try:
        yield
    finally:
        with books.lock:
            for name, value in options.items():
                _leave(books, (0 if name == _SHARED else thread, name), value)


def _take(books: _Books, key: _Key, value: str | int) -> None:
    from rasterio.env import get_gdal_config, set_gdal_config

    count = books.holders.get(key, 0)
    books.holders[key] = count + 1
    if not count:
        books.before[key] = get_gdal_config(key[1], normalize=False)
        set_gdal_config(key[1], value, normalize=False)


def _leave(books: _Books, key: _Key, value: str | int) -> None:
    from rasterio._env import del_gdal_config
    from rasterio.env import set_gdal_config

    books.holders[key] -= 1
    if books.holders[key]:
        return
    del books.holders[key]
    before = books.before.pop(key)
    # In a thread, the same value may be what the main thread has set for a moment.
    seen = before == value and threading.current_thread() is not threading.main_thread()
    if before is None or (seen and key[0]):
        del_gdal_config(key[1])
    else:
        set_gdal_config(key[1], before, normalize=False)
