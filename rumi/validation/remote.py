"""Remote files: what is read in many small pieces, or several times, comes in few requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rumi._core import Store
from rumi.source import is_remote, local_copy
from rumi.validation.frame_clauses import FrameFacts
from rumi.validation.report import Broken, NotChecked

if TYPE_CHECKING:
    from rumi.remote.store import RemoteFile
    from rumi.source import Opened
    from rumi.validation.facts import FileFacts

__all__ = ["at_hand", "buffered"]

# The index of most files comes with the first request.
_AHEAD = 64 << 10


class _Buffered:
    """A remote file that reads ahead, and keeps what it read last."""

    def __init__(self, file: RemoteFile) -> None:
        self.file = file
        self.name = file.name
        self._start = 0
        self._data = b""

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.file.size

    def read(self, start: int, size: int) -> bytes:
        """Return bytes start..start+size, fewer only where the file ends."""
        at = start - self._start
        if not 0 <= at <= at + size <= len(self._data):
            self._start, self._data = start, self.file.read(start, max(size, _AHEAD))
            at = 0
        return self._data[at : at + size]


def buffered(opened: Opened) -> Opened | _Buffered:
    """Return an opened file, a remote one with a buffer."""
    return _Buffered(opened) if is_remote(opened) else opened  # type: ignore[arg-type]


@contextmanager
def at_hand(file: FileFacts, *, wanted: bool) -> Iterator[None]:
    """Let the frames of a remote file come from a copy, if they are wanted at all."""
    remote = file.source
    if not wanted or not isinstance(remote, _Buffered):
        yield
        return
    try:
        # Where there are no frames to look into, nothing is downloaded.
        _ = FrameFacts(file).frames
    except (NotChecked, Broken):
        yield
        return
    with local_copy(remote.file) as path:
        file.source = Store.open_path(path, remote.name)
        try:
            yield
        finally:
            file.source = remote
