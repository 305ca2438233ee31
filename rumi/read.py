"""Reading windows: from a source and its header to an array.

A read plans which frames meet the window, fetches them, decodes them and
scatters their rows into one array. With a header given, nothing but frames is
read: the only question asked of a local file is its size, and a remote store is
asked for the ranges that hold the frames, all at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rumi import backends, workers
from rumi._core import Plan, Target
from rumi.batch import NAMED, Batch, with_item
from rumi.container import read_container
from rumi.engine import (
    blame_stale_header,
    check_output,
    execute,
    output_target,
    scales,
    shared_array,
    single_backend,
)
from rumi.errors import CodecError, FormatError, SourceError, UnsupportedError
from rumi.header import Header, as_header
from rumi.source import open_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.source import SourceLike

__all__ = ["batch_target", "read", "read_many"]

# Items that one thread of a batch takes at a time.
_CHUNK = 32


def read(
    source: SourceLike,
    header: Header | bytes | None = None,
    *,
    bands: Any = None,
    window: Any = None,
    out: Any = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """Read a window of an image.

    Parameters
    ----------
    source : path, URL, RemoteSource or bytes-like
        The file, or its contents.
    header : Header or bytes-like, optional
        The file's header. Without it the file's index is read and checked first.
    bands : int, sequence of int or slice, optional
        Zero-based bands; order and repeats are kept. All by default.
    window : (row, column, height, width) or window object, optional
        In pixels, inside the image; any object with ``row_off``, ``col_off``,
        ``height`` and ``width`` will do. The whole image by default.
    out : array, shape (B, H, W), optional
        Written to and returned: any strides, the image's own dtype, writable.
        NumPy arrays and whatever shares memory through ``__array_interface__``
        or DLPack.
    threads : int, optional
        At most this many; see `rumi.workers.resolve_threads`.

    Returns
    -------
    ndarray, shape (B, H, W)
        Owned, writable, C-contiguous, native byte order; or `out`.

    Raises
    ------
    TypeError, ValueError, IndexError
        If a window, band or `out` does not fit the image; nothing was written.
    StaleHeaderError
        If the header cannot belong to the file.
    FormatError
        If the file breaks the specification.
    CodecError
        If a frame does not decode to exactly its tile.
    UnsupportedError
        If the frames need geozl and it is absent.
    OSError
        If the file cannot be read; SourceError if it is remote.

    Notes
    -----
    Of a remote file with a header, nothing but frames is asked for; without one,
    at most two requests more.
    Source: specification 0.1.0, Offset reconstruction and Frames.
    """
    opened = open_source(source)
    if header is None:
        parsed = read_container(opened).header
    else:
        parsed = as_header(header)
        opened.check_size(parsed)
    plan = Plan(parsed, bands, window)
    array, target = output_target(plan, out)
    try:
        execute(plan, opened, target, threads=threads)
    except (CodecError, FormatError, SourceError) as error:
        if header is not None:
            blame_stale_header(opened, parsed, error)
        raise
    return array if out is None else out


def read_many(
    sources: SourceLike | Sequence[SourceLike],
    headers: Any = None,
    windows: Any = None,
    *,
    bands: Any = None,
    out: Any = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """Read a batch of windows, all of one shape and type, in one call.

    Parameters
    ----------
    sources : path, URL, RemoteSource, bytes-like or sequence of them
        One for each item, or one for all.
    headers : Header, bytes-like or sequence of them, optional
        One for each item, or one for all. Without them each file's index is read.
    windows : window, sequence of windows or int array of shape (N, 4), optional
        One for each item, or one for all; whole images by default.
    bands : int, sequence of int or slice, optional
        The same zero-based bands of every item.
    out : array, shape (N, B, H, W), optional
        As of `read`.
    threads : int, optional
        At most this many items at the same time.

    Returns
    -------
    ndarray, shape (N, B, H, W)
        Owned, writable, C-contiguous, native byte order; or `out`.

    Raises
    ------
    TypeError, ValueError, IndexError
        If arguments do not fit each other or the images, or the items have
        different shapes or types.
    RumiError, OSError
        As `read`; every error names its item.
    """
    batch = Batch(sources, headers, windows, bands)
    if batch.has_remote():
        return _read_remote(batch, out, threads)
    first, array, target = batch_target(batch, out)
    backend = backends.requested()
    count = min(workers.resolve_threads(threads), len(batch))
    if count > 1 and backend != "openzl" and scales(first, len(batch)):
        backend = "geozl"
    else:
        # The binding decodes one frame at a time whatever the threads.
        count = 1
        backend = single_backend(first, backend)
    # Large enough to spare calls, small enough that no thread waits for the last one.
    chunk = _CHUNK if count == 1 else max(1, min(_CHUNK, len(batch) // (4 * count)))
    run = _BatchRun(batch, target, first, backend, chunk)
    if count > 1:
        workers.run_together(run, count, run.stop)
    else:
        run()
    return array if out is None else out


def batch_target(batch: Batch, out: Any) -> tuple[Plan, NDArray[Any], Target]:
    """Return the plan of the first item, and the array of all as it is and for the kernels."""
    try:
        first = batch.plan(0, batch.opened(0))
    except NAMED as error:
        raise with_item(error, 0, batch.source(0)) from error
    shape = (len(batch), *first.shape)
    dtype = cast(Header, first.header).dtype
    array = np.empty(shape, dtype) if out is None else check_output(shared_array(out), shape, dtype)
    return first, array, Target(array, dtype.itemsize)


def _read_remote(batch: Batch, out: Any, threads: int | None) -> NDArray[Any]:
    """Read a batch of which some items are remote: all requests at the same time."""
    from rumi import overlap
    from rumi.remote import loop

    workers.resolve_threads(threads)
    loop.run(batch.prepare())
    first, array, target = batch_target(batch, out)
    who = overlap.Workers.choose(first, threads, len(batch))
    try:
        # Closed at once, also where an error keeps this frame alive: that ends the requests.
        with closing(loop.iterate(batch.parts(first))) as parts:
            overlap.decode_parts(parts, target, who, wrap=True)
    except overlap.PartError as failed:
        part = failed.part
        raise batch.explain(failed.error, part.item, part.plan, first) from failed.error
    return array if out is None else out


class _BatchRun:
    """What every thread of a batch does: take the next items, fill their places."""

    def __init__(self, batch: Batch, target: Target, first: Plan, backend: str, chunk: int) -> None:
        self._batch = batch
        self._target = target
        self._first = first
        self._backend = backend
        self._chunk = chunk
        # Shared by the threads: advancing it is one step under the GIL.
        self._starts = iter(range(0, len(batch), chunk))

    def stop(self) -> None:
        """Leave no item to take."""
        deque(self._starts, maxlen=0)

    def __call__(self) -> None:
        for start in self._starts:
            stop = min(start + self._chunk, len(self._batch))
            sources: list[Any] = []
            plans = []
            for item in range(start, stop):
                try:
                    sources.append(self._batch.opened(item))
                    plans.append(self._batch.plan(item, sources[-1]))
                except NAMED as error:
                    raise with_item(error, item, self._batch.source(item)) from error
            self._decode(start, sources, plans)

    def _decode(self, item: int, sources: list[Any], plans: list[Plan]) -> None:
        decoder = backends.decoder(self._backend)
        while plans:
            try:
                decoder.decode_items(sources, [*plans], self._target, item)
                return
            except NAMED as error:
                done = decoder.done
                item += done
                del sources[:done], plans[:done]
                if isinstance(error, UnsupportedError) and backends.teach(decoder):
                    continue
                raise self._batch.explain(error, item, plans[0], self._first) from error
