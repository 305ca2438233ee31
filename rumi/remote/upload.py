"""Remote files that appear whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rumi.errors import SourceError, UnsupportedError
from rumi.remote import loop
from rumi.remote.faults import AttemptError
from rumi.remote.settings import is_plain_http

if TYPE_CHECKING:
    from rumi.remote.store import RemoteSource

__all__ = ["check_writable", "upload", "uploaded_file"]


def check_writable(source: RemoteSource) -> None:
    """Refuse a target that takes no uploads, before any work is done.

    Raises
    ------
    UnsupportedError
        If it is behind plain HTTP, which has no upload that is whole or nothing.
    ValueError
        If it carries what is known about another object, or has no name.
    """
    if is_plain_http(source.store.settings):
        raise UnsupportedError(
            f"{source.name}: plain HTTP servers take no uploads; write to an object store"
        )
    if not source.full_path or source.full_path.endswith("/"):
        raise ValueError(f"{source.name}: expected the name of an object to write")
    if (source.etag, source.size, source.sha256) != (None, None, None):
        raise ValueError(
            f"{source.name}: what is known about an old object does not go with writing"
        )


@contextmanager
def uploaded_file(source: RemoteSource) -> Iterator[BinaryIO]:
    """Write a local temporary file, which is uploaded when the block ends.

    When the block raises, nothing is uploaded. The object appears with its last
    byte, in the place of the old one.

    Raises
    ------
    SourceError
        If it cannot be uploaded.
    """
    with tempfile.TemporaryDirectory(prefix="rumi-") as folder:
        path = Path(folder, "upload.rumi")
        with path.open("w+b") as file:
            yield file
        upload(source, path)


def upload(source: RemoteSource, path: Path) -> None:
    """Upload a finished file; the object appears with its last byte, in the place of the old one.

    Raises
    ------
    SourceError
        If it cannot be uploaded.
    """
    try:
        loop.run(source.store.client().put(source.full_path, path))
    except AttemptError as error:
        failed = SourceError(f"{source.name}: not uploaded: {error}")
        failed.__dict__["status"] = error.status
        raise failed from error
