"""Where a result goes: a local file or an object in a store, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from rumi.atomic import atomic_file
from rumi.source import is_remote, local_path, remote_source

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rumi.source import SourceLike

__all__ = ["output_file"]


def output_file(target: SourceLike) -> AbstractContextManager[BinaryIO]:
    """Return what gives the file to write to; when its block ends, it is the target.

    Parameters
    ----------
    target : path, URL or RemoteSource

    Raises
    ------
    TypeError, ValueError
        If it is no name of a file or an object.
    UnsupportedError
        If it is behind plain HTTP, or no store is known for its scheme.
    """
    if not is_remote(target):
        return atomic_file(local_path(target))
    from rumi.remote import upload

    source = remote_source(target)
    upload.check_writable(source)
    return upload.uploaded_file(source)
