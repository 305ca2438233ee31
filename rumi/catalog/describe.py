"""What a catalog records of one file: read from the file itself, in whatever process."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from rumi.catalog.footprints import Footprint, footprint
from rumi.container import Container, read_container, read_container_async
from rumi.source import is_remote, local_path, open_source, source_name

if TYPE_CHECKING:
    from rumi.georef import RasterType, Transform
    from rumi.remote.opened import OpenObject
    from rumi.source import SourceLike

__all__ = ["Failure", "Outcome", "Row", "describe_all", "failure", "leave_interrupts"]

# Remote files of a job that are read at the same time.
_CONNECTIONS = 64

_BLOCK = 8 << 20


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that is not in the catalog, or a row that is not true any more.

    Attributes
    ----------
    path : str
        The file, as the catalog or the caller calls it.
    kind : str
        Class of the error, such as "FormatError" or "StaleHeaderError".
    message : str
        Why.
    row : int or None
        Row of the catalog; None where there is none.
    """

    path: str
    kind: str
    message: str
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """What a file says.

    Attributes
    ----------
    header : bytes
        The header blob.
    size : int
        Of the file, in bytes.
    mtime : int or None
        Time of the last change in nanoseconds since 1970; None where unknown.
    etag, sha256 : str or None
        Of a remote file; of the bytes, hexadecimal, where asked for.
    epsg, transform, raster_type
        As of `rumi.georef.Georeferencing`.
    footprint : (bytes, box) or None
        Outline in CRS84.
    """

    header: bytes
    size: int
    mtime: int | None
    etag: str | None
    sha256: str | None
    epsg: int | None
    transform: Transform | None
    raster_type: RasterType
    footprint: Footprint | None


# What becomes of a file.
Outcome: TypeAlias = Row | Failure


def failure(source: SourceLike, error: BaseException) -> Failure:
    """Return the row of a file that cannot be in the catalog."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return Failure(source_name(source), type(error).__name__, text or type(error).__name__)


def leave_interrupts() -> None:
    """Let the process that asked for the work decide what Ctrl-C does: workers write nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def describe_all(sources: Sequence[SourceLike], *, sha256: bool) -> list[Outcome]:
    """Describe files: local ones in turn, remote ones at the same time.

    Parameters
    ----------
    sources : sequence of path, URL or RemoteSource
    sha256 : bool
        Whether to read every byte for the SHA-256.

    Returns
    -------
    list of Row or Failure
        In the order of the sources.
    """
    found: list[Outcome | None] = [None] * len(sources)
    remote = [number for number, source in enumerate(sources) if is_remote(source)]
    if remote:
        _describe_remote(sources, remote, found, sha256)
    return [known or _guarded(source, sha256) for known, source in zip(found, sources, strict=True)]


def _guarded(source: SourceLike, sha256: bool) -> Outcome:
    try:
        return _describe_local(source, sha256)
    except Exception as error:  # a row of the result, whatever it is
        return failure(source, error)


def _describe_local(source: SourceLike, sha256: bool) -> Row:
    store = open_source(source)
    container = read_container(store)
    _, size, modified = store.identity
    digest = None
    if sha256:
        with open(local_path(source), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    return _row(container, size, modified, None, digest)


def _describe_remote(
    sources: Sequence[SourceLike], numbers: list[int], found: list[Outcome | None], sha256: bool
) -> None:
    from rumi.overlap import gather
    from rumi.remote import loop

    async def one(number: int) -> None:
        try:
            found[number] = await _describe_object(sources[number], sha256)
        except Exception as error:  # a row of the result, whatever it is
            found[number] = failure(sources[number], error)

    loop.run(gather((one(number) for number in numbers), _CONNECTIONS))


async def _describe_object(source: SourceLike, sha256: bool) -> Row:
    opened = cast("OpenObject", open_source(source))
    container = await read_container_async(opened)
    digest = None
    if sha256:
        state = hashlib.sha256()
        for start in range(0, opened.size, _BLOCK):
            state.update(await opened.read_async(start, _BLOCK))
        digest = state.hexdigest()
    state_of: Any = opened.identity[0]
    modified = int(state_of.timestamp() * 1e9) if isinstance(state_of, datetime) else None
    etag = state_of if isinstance(state_of, str) else None
    return _row(container, opened.size, modified, etag, digest)


def _row(
    container: Container, size: int, mtime: int | None, etag: str | None, sha256: str | None
) -> Row:
    header, place = container.header, container.georeferencing
    outline = None
    if place.epsg is not None and place.transform is not None:
        outline = footprint(place.epsg, place.transform, *header.shape[1:])
    return Row(
        bytes(header),
        size,
        mtime,
        etag,
        sha256,
        place.epsg,
        place.transform,
        place.raster_type,
        outline,
    )
