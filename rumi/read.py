"""Reading windows: from a source and its header to an array.

A read plans which frames meet the window, fetches them, decodes them and
scatters their rows into one array. With a header given, nothing but frames is
read, and the only question asked of a local file is its size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rumi import backends, workers
from rumi._core import Plan, Target
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
from rumi.errors import (
    CodecError,
    FormatError,
    RumiError,
    StaleHeaderError,
    UnsupportedError,
)
from rumi.header import Header, as_header
from rumi.source import is_path, open_source, source_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.source import SourceLike

__all__ = ["read", "read_many"]

# Items that one thread of a batch takes at a time.
_CHUNK = 32

# Errors that say which item of a batch they are about.
_NAMED = (RumiError, TypeError, ValueError, IndexError, OSError)


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
    source : path or bytes-like
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
        If the file cannot be read.

    Notes
    -----
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
    except (CodecError, FormatError) as error:
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
    sources : path, bytes-like or sequence of them
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
    batch = _Batch(sources, headers, windows, bands)
    try:
        first = batch.plan(0, batch.opened(0))
    except _NAMED as error:
        raise _with_item(error, 0, batch.source(0)) from error
    shape = (len(batch), *first.shape)
    dtype = cast(Header, first.header).dtype
    array = np.empty(shape, dtype) if out is None else check_output(shared_array(out), shape, dtype)
    target = Target(array, dtype.itemsize)
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


class _Batch:
    """The arguments of a batch, brought to the same length."""

    def __init__(self, sources: Any, headers: Any, windows: Any, bands: Any) -> None:
        self._sources = _each(sources, _is_one_source)
        self._headers = _each(headers, _is_one_header)
        self._windows = _each(windows, _is_one_window)
        self._bands = bands
        lengths = {len(x) for x in (self._sources, self._headers, self._windows) if x is not None}
        sizes = lengths - {1} or lengths
        if len(sizes) != 1:
            raise ValueError(
                "sources, headers and windows: expected one for all items or one for each, found "
                f"{sorted(lengths)}"
            )
        self._length = sizes.pop()
        if self._length == 0:
            raise ValueError("a batch has at least one item, found none")
        self._indexed: dict[SourceLike, Header] = {}

    def __len__(self) -> int:
        return self._length

    def source(self, item: int) -> SourceLike:
        return _pick(self._sources, item)

    def opened(self, item: int) -> Any:
        """Return the path of an item for the kernels to open, or its opened store."""
        source = _pick(self._sources, item)
        if type(source) is str and "://" not in source:
            return source
        return open_source(source)

    def has_header(self) -> bool:
        return self._headers is not None

    def plan(self, item: int, source: Any) -> Plan:
        """Return the plan of an item; without headers the file's index is read once."""
        if self._headers is not None:
            header = as_header(_pick(self._headers, item))
        else:
            header = self._index(item, source)
        return Plan(header, self._bands, _pick(self._windows, item))

    def _index(self, item: int, opened: Any) -> Header:
        source = self.source(item)
        key = source if is_path(source) else id(source)
        header = self._indexed.get(key)
        if header is None:
            header = read_container(open_source(opened)).header
            self._indexed[key] = header
        return header


class _BatchRun:
    """What every thread of a batch does: take the next items, fill their places."""

    def __init__(
        self, batch: _Batch, target: Target, first: Plan, backend: str, chunk: int
    ) -> None:
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
                except _NAMED as error:
                    raise _with_item(error, item, self._batch.source(item)) from error
            self._decode(start, sources, plans)

    def _decode(self, item: int, sources: list[Any], plans: list[Plan]) -> None:
        decoder = backends.decoder(self._backend)
        while plans:
            try:
                decoder.decode_items(sources, [*plans], self._target, item)
                return
            except _NAMED as error:
                done = decoder.done
                item += done
                del sources[:done], plans[:done]
                if isinstance(error, UnsupportedError) and backends.teach(decoder):
                    continue
                raise self._explain(error, item, sources[0], plans[0]) from error

    def _explain(self, error: Exception, item: int, source: Any, plan: Plan) -> Exception:
        header = cast(Header, plan.header)
        first = cast(Header, self._first.header)
        if plan.shape != self._first.shape or not header.same_encoding(first):
            error = ValueError(
                f"expected {self._first.shape} of {first.encoding.dtype_name} as of item 0, found "
                f"{plan.shape} of {header.encoding.dtype_name}"
            )
        elif isinstance(error, (CodecError, FormatError)) and self._batch.has_header():
            try:
                blame_stale_header(open_source(source), header, error)
            except StaleHeaderError as stale:
                error = stale
        return _with_item(error, item, self._batch.source(item))


def _each(value: Any, is_one: Callable[[Any], bool]) -> Sequence[Any] | None:
    if value is None:
        return None
    return [value] if is_one(value) else value


def _pick(values: Sequence[Any] | None, item: int) -> Any:
    if values is None:
        return None
    return values[item] if len(values) > 1 else values[0]


def _is_one_source(value: Any) -> bool:
    return not isinstance(value, (list, tuple)) and not (
        isinstance(value, np.ndarray) and value.dtype.kind in "OSU"
    )


def _is_one_header(value: Any) -> bool:
    return not isinstance(value, (list, tuple)) and not (
        isinstance(value, np.ndarray) and value.dtype.kind in "OS"
    )


def _is_one_window(value: Any) -> bool:
    if hasattr(value, "row_off"):
        return True
    return len(value) == 4 and all(hasattr(part, "__index__") for part in value)


def _with_item(error: Exception, item: int, source: SourceLike) -> Exception:
    """Return the error with its item in front, once."""
    text = str(error)
    if text.startswith("item "):
        return error
    name = source_name(source)
    place = f"item {item}" if name in text else f"item {item} ({name})"
    if isinstance(error, OSError) and not isinstance(error, RumiError):
        return type(error)(error.errno, f"{place}: {error.strerror}", error.filename)
    return type(error)(f"{place}: {text}")
