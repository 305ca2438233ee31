"""Whole objects as local files, for what has to read all of them anyway."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from rumi.remote.store import RemoteFile

__all__ = ["downloaded"]


@contextmanager
def downloaded(opened: RemoteFile) -> Iterator[str]:
    """Give the path of a temporary copy, which is removed when the block ends.

    The copy has the object's own name in a folder of its own, so that nothing
    lies beside it. Ranges come several at a time, all of the same state of the
    object.

    Raises
    ------
    SourceError
        If a range cannot be fetched.
    StaleHeaderError
        If the object is replaced meanwhile, or is not the one that is expected.
    OSError
        If the copy cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="rumi-") as folder:
        path = Path(folder, _file_name(opened.source.full_path or opened.name))
        with path.open("wb") as file:
            _copy(opened, file)
        yield str(path)


def _copy(opened: RemoteFile, file: BinaryIO) -> None:
    largest = opened.largest
    # What comes first tells the size as well.
    file.write(opened.read(0, largest))
    size = opened.size
    ranges = [(start, min(start + largest, size), 0, 0) for start in range(largest, size, largest)]
    if ranges:
        for found in opened.fetch(ranges):
            for (start, _, _, _), data in found:
                file.seek(start)
                file.write(data)


def _file_name(path: str) -> str:
    """Return the last part of a name, as a name that any file system takes."""
    base = path.partition("?")[0].rstrip("/").rpartition("/")[2].replace("\0", "_")
    stem, suffix = os.path.splitext(base)
    return (stem.encode()[:200].decode(errors="ignore") + suffix[:16]) or "object"
