"""Reading windows: from a source and its header to an array.

A read plans which frames meet the window, fetches them, decodes them and
scatters their rows into one array. With a header given, nothing but frames is
read, and the only question asked of a local file is its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rumi import backends, workers
from rumi._core import Counter, Plan, Store, Target
from rumi._generated import constants
from rumi.container import read_container
from rumi.encodings import number_dtype
from rumi.errors import CodecError, FormatError, RumiError, StaleHeaderError, UnsupportedError
from rumi.header import Header, as_header
from rumi.source import open_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.source import SourceLike

__all__ = ["blame_stale_header", "check_size", "execute", "output_target", "read"]

# Samples in bytes below which handing frames to other threads costs more than it saves.
_PARALLEL_BYTES = 1 << 19

# A file whose first frame OpenZL's binding cannot decode needs geozl, and so, most
# likely, does the next file. One fresh header in this many tries the binding again.
_RETRY_EVERY = 16

# NumPy's own scalar types have type numbers below this; only they export a buffer.
_FIRST_USER_TYPE = 24

_UNKNOWN, _OPENZL, _GEOZL = range(3)

# Where the encoding of the sizes starts in a blob: count_min, count_bits, residuals.
_SIZES = next(offset for name, offset, _, _ in constants.HEADER_FIELDS if name == "count_min")


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
        if opened.size != parsed.file_size:
            check_size(opened, parsed)
    plan = Plan(parsed, bands, window)
    array, target = output_target(plan, out)
    try:
        execute(plan, opened, target, threads=threads)
    except (CodecError, FormatError) as error:
        if header is not None:
            blame_stale_header(opened, parsed, error)
        raise
    return array if out is None else out


def execute(
    plan: Plan, source: Store, target: Target, *, item: int = 0, threads: int | None = None
) -> None:
    """Fetch, decode and scatter the frames of a plan.

    Parameters
    ----------
    plan : Plan
    source : Store
    target : Target
    item : int
        Position along the first axis of a 4-D target.
    threads : int or None
        See `rumi.workers.resolve_threads`.
    """
    backend = backends.requested()
    count = 1
    if plan.frame_count > 1 and plan.nbytes >= _PARALLEL_BYTES and backend != "openzl":
        count = min(workers.resolve_threads(threads), plan.frame_count)
        if count > 1 and backends.geozl_available():
            _execute_together(plan, source, target, item, count)
            return
    elif threads is not None:
        workers.resolve_threads(threads)
    _execute_alone(plan, source, target, item, backend)


def _execute_together(plan: Plan, source: Store, target: Target, item: int, threads: int) -> None:
    counter = Counter()
    # Several turns a thread, so that none waits long for the last one.
    chunk = max(1, min(8, plan.frame_count // (threads * 4)))

    def work() -> None:
        backends.decoder("geozl").decode_shared(plan, source, target, counter, chunk, item)

    workers.run_together(work, threads, counter.stop)


class _Preference:
    """Which backend a file of unknown coding is tried with first."""

    geozl_first = False
    fresh = 0

    @classmethod
    def first(cls, known: int) -> str:
        if known != _UNKNOWN:
            return "geozl" if known == _GEOZL else "openzl"
        if not cls.geozl_first:
            return "openzl"
        cls.fresh += 1
        return "openzl" if cls.fresh % _RETRY_EVERY == 0 else "geozl"


def _execute_alone(plan: Plan, source: Store, target: Target, item: int, backend: str) -> None:
    """Decode on this thread, with the binding unless the frames need geozl."""
    header = plan.header
    name = _Preference.first(header.coding) if backend == "auto" else backend
    if name == "geozl":
        backends.decoder("geozl").decode(plan, source, target, item)
        return
    try:
        backends.decoder("openzl").decode(plan, source, target, item)
    except UnsupportedError:
        if backend == "openzl" or not backends.geozl_available():
            raise
        header.coding = _GEOZL
        _Preference.geozl_first = True
        backends.decoder("geozl").decode(plan, source, target, item)
        return
    header.coding = _OPENZL
    _Preference.geozl_first = False


def output_target(plan: Plan, out: Any) -> tuple[NDArray[Any], Target]:
    """Return the array that a plan fills and the kernels' view of it.

    Raises
    ------
    TypeError
        If `out` shares no memory with NumPy or has another dtype than the image.
    ValueError
        If it has another shape, or is read-only.
    """
    # Plans are made from headers of this package's own class.
    dtype = cast(Header, plan.header).dtype
    if out is None:
        array = np.empty(plan.shape, dtype)
    else:
        array = _as_shared_array(out)
        if array.shape != plan.shape:
            raise ValueError(f"out: expected shape {plan.shape}, found {array.shape}")
        if array.dtype != dtype:
            raise TypeError(f"out: expected dtype {dtype}, found {array.dtype}")
        if not array.flags.writeable:
            raise ValueError("out: expected a writable array, found a read-only one")
    return array, array_target(array)


def array_target(array: NDArray[Any]) -> Target:
    """Return the kernels' view of an array of any sample type."""
    itemsize = array.dtype.itemsize
    if array.dtype.num >= _FIRST_USER_TYPE or array.dtype.kind == "V":
        array = array.view(number_dtype(itemsize))
    return Target(array, itemsize)


def _as_shared_array(out: Any) -> NDArray[Any]:
    if isinstance(out, np.ndarray):
        return out
    if hasattr(out, "__array_interface__"):
        return np.asarray(out)
    if hasattr(out, "__dlpack__"):
        return np.from_dlpack(out)
    raise TypeError(
        "out: expected an array that shares its memory (NumPy, __array_interface__ or DLPack), "
        f"found {type(out).__name__}"
    )


def check_size(source: Store, header: Header) -> None:
    """Refuse a header whose frames end elsewhere than the file.

    Raises
    ------
    StaleHeaderError
        If the sizes differ.
    """
    if source.size != header.file_size:
        raise StaleHeaderError(
            f"{source.name}: the header describes a file of {header.file_size} bytes, found "
            f"{source.size}: the file was truncated or replaced; rebuild the header with "
            "rumi.index"
        )


def blame_stale_header(source: Store, header: Header, error: RumiError) -> None:
    """Raise StaleHeaderError if the file's own index says otherwise than the header."""
    try:
        actual = read_container(source).header
    except RumiError:
        # The index is damaged too, so the first error says more.
        return
    if _same_layout(actual, header):
        return
    raise StaleHeaderError(
        f"{source.name}: the header does not belong to the file, whose own index differs; rebuild "
        f"the header with rumi.index ({error})"
    ) from error


def _same_layout(actual: Header, header: Header) -> bool:
    """Whether two headers locate the same frames; with one band tile and cell do."""
    if actual == header:
        return True
    return (
        header.samples_per_pixel == 1
        and actual.shape == header.shape
        and actual.tile_shape == header.tile_shape
        and actual.encoding == header.encoding
        and bytes(actual)[_SIZES:] == bytes(header)[_SIZES:]
    )
