"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

__all__ = ["TEMPORARY_SUFFIX", "atomic_file"]

# What a killed writer leaves behind is told from a file by its name.
TEMPORARY_SUFFIX = ".rumi-tmp"

_BUFFER = 1 << 20


@contextmanager
def atomic_file(path: bytes) -> Iterator[BinaryIO]:
    """Write a file that appears whole or not at all.

    Yields a temporary file in the folder of `path`. When the block ends it is
    flushed to the disk and renamed; when the block raises, whatever the
    exception, it is removed and the old file stays.

    Parameters
    ----------
    path : bytes
        File system path. Of a symbolic link, the file it points to is replaced.

    Raises
    ------
    ValueError
        If `path` exists and is no regular file.
    OSError
        If writing or renaming fails.

    Notes
    -----
    After a power cut there is the old file or the new one, whole. Which of them
    is up to the file system: waiting for the folder too would take as long again
    as writing a small file does.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise ValueError(
            f"{os.fsdecode(path)}: expected a regular file or none, found another kind"
        )
    folder, base = os.path.split(target)
    token = os.urandom(8).hex().encode()
    # Cut so that the temporary's name is no longer than the file system allows.
    temporary = os.path.join(
        folder, b"." + base[:200] + b"." + token + os.fsencode(TEMPORARY_SUFFIX)
    )
    try:
        with open(temporary, "xb", buffering=_BUFFER) as file:
            if os.path.exists(target):
                os.fchmod(file.fileno(), os.stat(target).st_mode & 0o7777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        # It is not there where it could not be made, or where an interrupt came just
        # after the rename.
        with suppress(OSError):
            os.unlink(temporary)
        raise
