"""Running a plan: which backend, how many threads, into which memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rumi import backends, workers
from rumi._core import Counter, Plan, Store, Target
from rumi._generated import constants
from rumi.container import read_container
from rumi.errors import RumiError, SourceError, StaleHeaderError, UnsupportedError
from rumi.header import Header

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.source import Opened

__all__ = [
    "blame_stale_header",
    "check_output",
    "decode_alone",
    "execute",
    "output_target",
    "scales",
    "shared_array",
    "single_backend",
]

# Decoded bytes below which handing frames to other threads costs more than it
# saves, in a whole read and in one frame (geozl sets up a context for each).
_PARALLEL_BYTES = 1 << 18
_PARALLEL_FRAME_BYTES = 1 << 15

# Decoded bytes of a frame from which geozl's library beats the binding on one
# thread too: it decodes in place, the binding into memory of its own (measured:
# 0.9 of the time at 512 KiB, 1.03 at 128 KiB).
_LIBRARY_FRAME_BYTES = 3 << 17

# Where the encoding of the sizes starts in a blob: count_min, count_bits, residuals.
_SIZES = next(offset for name, offset, _, _ in constants.HEADER_FIELDS if name == "count_min")


def execute(
    plan: Plan, source: Opened, target: Target, *, item: int = 0, threads: int | None = None
) -> None:
    """Fetch, decode and scatter the frames of a plan.

    Parameters
    ----------
    plan : Plan
    source : Store or RemoteFile
        Of a remote one, what has arrived is decoded while the rest is on its way.
    target : Target
    item : int
        Position along the first axis of a 4-D target.
    threads : int or None
        See `rumi.workers.resolve_threads`.
    """
    if not isinstance(source, Store):
        from rumi import overlap

        overlap.execute(plan, source, target, item, threads)
        return
    backend = backends.requested()
    if plan.frame_count > 1 and backend != "openzl" and scales(plan):
        count = min(workers.resolve_threads(threads), plan.frame_count)
        if count > 1:
            _execute_together(plan, source, target, item, count)
            return
    elif threads is not None and not (type(threads) is int and threads > 0):
        # One thread it is, but a mistake stays a mistake.
        workers.resolve_threads(threads)
    decode_alone(plan, source, target, item, single_backend(plan, backend))


def scales(plan: Plan, items: int = 1) -> bool:
    """Whether threads decode the frames of so many plans faster than one does."""
    size = plan.header.frame_bytes
    return (
        size >= _PARALLEL_FRAME_BYTES
        and size * plan.frame_count * items >= _PARALLEL_BYTES
        and backends.geozl_available()
    )


def single_backend(plan: Plan, requested: str) -> str:
    """Return the backend for one thread: what is asked for, or what is faster."""
    if (
        requested == "auto"
        and plan.header.frame_bytes >= _LIBRARY_FRAME_BYTES
        and backends.geozl_available()
    ):
        return "geozl"
    return requested


def _execute_together(plan: Plan, source: Store, target: Target, item: int, threads: int) -> None:
    counter = Counter()
    # Several turns a thread, so that none waits long for the last one.
    chunk = max(1, min(8, plan.frame_count // (threads * 4)))

    def work() -> None:
        backends.decoder("geozl").decode_shared(plan, source, target, counter, chunk, item)

    workers.run_together(work, threads, counter.stop)


def decode_alone(
    plan: Plan,
    source: Store,
    target: Target,
    item: int,
    backend: str,
    first: int = 0,
    stop: int = -1,
) -> None:
    """Decode on this thread, with a backend of `rumi.backends`; all frames by default."""
    decoder = backends.decoder(backend)
    try:
        decoder.decode(plan, source, target, item, first, stop)
    except UnsupportedError:
        if not backends.teach(decoder):
            raise
        decoder.decode(plan, source, target, item, first, stop)


def output_target(plan: Plan, out: Any) -> tuple[NDArray[Any], Target]:
    """Return the array that a plan fills and the kernels' view of it.

    Raises
    ------
    TypeError
        If `out` shares no memory with NumPy or has another dtype than the image.
    ValueError
        If it has another shape, or is read-only.
    """
    header: Any = plan.header
    dtype = header.dtype
    if out is None:
        array = np.empty(plan.shape, dtype)
    else:
        array = check_output(shared_array(out), plan.shape, dtype)
    return array, Target(array, dtype.itemsize)


def check_output(array: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Refuse an output array of another shape or type, or a read-only one."""
    if array.shape != shape:
        raise ValueError(f"out: expected shape {shape}, found {array.shape}")
    if array.dtype != dtype:
        raise TypeError(f"out: expected dtype {dtype}, found {array.dtype}")
    if not array.flags.writeable:
        raise ValueError("out: expected a writable array, found a read-only one")
    return array


def shared_array(out: Any) -> NDArray[Any]:
    """Return the NumPy view of the memory of `out`.

    Raises
    ------
    TypeError
        If it shares none.
    ValueError
        If its library does not export it: it is read-only, or on another device.
    """
    if np.ma.isMaskedArray(out):
        raise TypeError("out: expected an array without a mask, which would hide what is read")
    if isinstance(out, np.ndarray):
        return out
    if hasattr(out, "__array_interface__"):
        return np.asarray(out)
    if hasattr(out, "__dlpack__"):
        try:
            array = np.from_dlpack(out)
        except (BufferError, RuntimeError) as error:
            raise ValueError(
                f"out: expected writable memory that the processor reaches, found {error}"
            ) from error
        return array if array.flags.writeable or _says_read_only(out) else _writable(array)
    raise TypeError(
        "out: expected an array that shares its memory (NumPy, __array_interface__ or DLPack), "
        f"found {type(out).__name__}"
    )


def _says_read_only(out: Any) -> bool:
    """Whether an exporter can say that its memory is read-only: DLPack can from version 1 on."""
    try:
        out.__dlpack__(max_version=(1, 0))
    except TypeError:
        return False
    return True


class _Memory:
    """The memory of an array, for NumPy to take as writable."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.owner = array
        self.__array_interface__ = {
            **array.__array_interface__,
            "data": (array.__array_interface__["data"][0], False),
            "strides": array.strides,
        }


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """Return a writable view of memory that came through DLPack before version 1.

    That could not say whether memory may be written, so NumPy takes it for
    read-only; who passes it as an output means it to be written.
    """
    return np.asarray(_Memory(array))


def blame_stale_header(source: Opened, header: Header, error: RumiError) -> None:
    """Raise StaleHeaderError if the file's own index says otherwise than the header.

    Does nothing about an error for which the header cannot be to blame.
    """
    # A range beyond the end of the object is one: its size tells.
    if isinstance(error, SourceError) and getattr(error, "status", None) != 416:
        return
    try:
        source.check_size(header)
        actual = read_container(source).header
    except StaleHeaderError as stale:
        raise stale from error
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
