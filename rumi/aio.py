"""Reading from an event loop: requests of all calls overlap, decoding is done in threads.

The functions are those of the package itself, to be awaited. Cancelling one
cancels its requests; when it has returned, nothing of it is left running and
`out` is the caller's again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rumi import container, overlap, workers
from rumi._core import Plan
from rumi.batch import Batch
from rumi.container import read_container_async
from rumi.engine import blame_stale_header, output_target
from rumi.errors import CodecError, FormatError, SourceError
from rumi.header import Header, as_header
from rumi.read import batch_target
from rumi.read import read as read_now
from rumi.read import read_many as read_many_now
from rumi.source import is_remote, open_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rumi.remote.opened import OpenObject
    from rumi.source import SourceLike

__all__ = ["index", "read", "read_many"]


async def index(source: SourceLike) -> Header:
    """Rebuild the header blob from a file; as `rumi.index`.

    Parameters
    ----------
    source : path, URL, RemoteSource or bytes-like

    Raises
    ------
    RumiError, OSError
        As `rumi.index`.
    """
    if not is_remote(source):
        return await overlap.in_thread(container.index, source)
    opened = cast("OpenObject", open_source(source))
    return (await read_container_async(opened)).header


async def read(
    source: SourceLike,
    header: Header | bytes | None = None,
    *,
    bands: Any = None,
    window: Any = None,
    out: Any = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """Read a window of an image; arguments, result and errors as of `rumi.read`.

    Notes
    -----
    A thousand of them at once are fine: `ObjectStore.max_connections` bounds what
    is in flight. For chips of one shape `read_many` costs less.
    """
    workers.resolve_threads(threads)
    if not is_remote(source):
        return await overlap.in_thread(
            lambda: read_now(source, header, bands=bands, window=window, out=out, threads=threads)
        )
    opened = cast("OpenObject", open_source(source))
    if header is None:
        parsed = (await read_container_async(opened)).header
    else:
        parsed = as_header(header)
        opened.check_size(parsed)
    plan = Plan(parsed, bands, window)
    array, target = output_target(plan, out)
    try:
        await overlap.execute_async(plan, opened, target, overlap.Workers.choose(plan, threads))
    except (CodecError, FormatError, SourceError) as error:
        if header is not None:
            await overlap.in_thread(blame_stale_header, opened, parsed, error)
        raise
    return array if out is None else cast("NDArray[Any]", out)


async def read_many(
    sources: SourceLike | Sequence[SourceLike],
    headers: Any = None,
    windows: Any = None,
    *,
    bands: Any = None,
    out: Any = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """Read a batch of windows, all of one shape and type; as `rumi.read_many`.

    Notes
    -----
    The requests of all items overlap, and decoding goes on while they are on
    their way.
    """
    workers.resolve_threads(threads)
    batch = Batch(sources, headers, windows, bands)
    if not batch.has_remote():
        return await overlap.in_thread(
            lambda: read_many_now(sources, headers, windows, bands=bands, out=out, threads=threads)
        )
    await batch.prepare()
    first, array, target = batch_target(batch, out)
    who = overlap.Workers.choose(first, threads, len(batch))
    try:
        await overlap.decode_parts_async(batch.parts(first), target, who, wrap=True)
    except overlap.PartError as failed:
        error, part = failed.error, failed.part
        found = await overlap.in_thread(batch.explain, error, part.item, part.plan, first)
        raise found from error
    return array if out is None else cast("NDArray[Any]", out)
