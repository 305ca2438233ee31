"""The targets: each takes any bytes and raises AssertionError where rumi breaks a promise.

The promises: errors of rumi's own and no others, memory within 50 MB beyond the
result, an end. A crash or a hang ends the process, so who calls these with bytes
nobody chose does it in a process that may die.
"""

import os
import pickle
import resource
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import oracle

import rumi
from rumi import Header, RumiError, backends
from rumi._core import RECORD, Plan, Store, Target, parse_headers

__all__ = [
    "MEMORY",
    "TARGETS",
    "blob",
    "frames",
    "index",
    "peak_memory",
    "warm_up",
    "windows",
]

# Bytes beyond the result that any input may cost. The decoders keep what they
# have grown to, which is in it. Under a sanitizer, memory that is asked for and never
# used counts too, by its shadow.
MEMORY = 50 << 20 if "libasan" not in os.environ.get("LD_PRELOAD", "") else 1 << 30

# What an image may hold that is read whole while fuzzing.
_SMALL = 1 << 16


def peak_memory() -> int:
    """Return the most memory that this process has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def bounded() -> Iterator[None]:
    """Compare the peak of this process before and after."""
    before = peak_memory()
    yield
    grown = peak_memory() - before
    assert grown < MEMORY, f"{grown >> 20} MiB of memory"


def refused(call: Callable[[], object]) -> RumiError | None:
    """Return the error that rumi raises; any other passes through and is a finding."""
    try:
        call()
    except RumiError as error:
        text = str(error)
        assert text, "an error without a word"
        assert "\n" not in text, f"more than one line: {text!r}"
        return error
    return None


# --- Header blobs


def blob(data: bytes) -> None:
    """Any bytes as a header blob: refused, or every location in it adds up.

    A header, `rumi.validate` and the reader of many blobs agree on which it is.
    """
    with bounded():
        error = refused(lambda: Header(data))
        failed = [c for c in rumi.validate(memoryview(b""), data).failures if c.clause.id[0] == "b"]
        records = np.zeros(1, np.dtype(list(RECORD)))
        offsets = np.array([0, len(data)], np.int64)
        refusals = parse_headers(np.frombuffer(data, np.uint8), offsets, records)
        assert refusals == 1 - records["valid"][0] == (error is not None)
        if error is None:
            assert not failed, failed
            header = Header(data)
            _check_header(header, data)
            for name in records.dtype.names:
                assert name == "valid" or records[name][0] == getattr(header, name)
        else:
            # No file is as large as what some claim, which no sentence forbids.
            assert failed or "2**63" in str(error), error


def _check_header(header: Header, data: bytes) -> None:
    assert bytes(header) == data
    assert pickle.loads(pickle.dumps(header)) == header
    assert header.shape == (header.samples_per_pixel, header.image_length, header.image_width)
    assert header.file_size < 1 << 63
    number = header.frame_count
    assert header.offset(0) == header.base_frame_offset
    end = header.offset(number - 1) + header.byte_count(number - 1)
    assert end == header.file_size
    for index in {0, number // 2, number - 1}:
        row, col, band = header.frame_position(index)
        assert header.frame_index(row, col, band or 0) == index
        assert 1 <= header.byte_count(index) < 1 << 32
        if index:
            before = header.offset(index - 1) + header.byte_count(index - 1)
            assert header.offset(index) == before
    height, width = header.image_length, header.image_width
    for window in ((0, 0, 1, 1), (height - 1, width - 1, 1, 1)):
        offsets, counts = header.ranges(0, window)
        assert int(offsets[0]) >= header.base_frame_offset
        assert int(offsets[0]) + int(counts[0]) <= header.file_size
    if number <= _SMALL:
        assert header.offsets.tolist() == oracle.offsets_of(
            header.samples_per_pixel, header.byte_counts.tolist()
        )


# --- Whole files


def index(data: bytes) -> None:
    """Any bytes as a file: refused, or its blob says what its index says."""
    file = memoryview(data)
    with bounded():
        found: list[Header] = []
        error = refused(lambda: found.append(rumi.index(file)))
        report = rumi.validate(file, frames="headers")
        assert error is None or not report.ok, f"validate passes what index refuses: {error}"
        if found:
            _check_header(found[0], bytes(found[0]))
            assert found[0].file_size == len(data)
            assert rumi.validate(file, found[0], frames="none").ok or _by_registry(report)
            _read_some(file, found[0])


def _by_registry(report: rumi.Report) -> bool:
    """Whether nothing failed but what a reader leaves to the registry."""
    allowed = (
        "file.epsg-registry",
        "file.epsg-kind",
        "frame.magic",
        "frame.version",
        "frame.declared-size",
    )
    return all(finding.clause.id in allowed for finding in report.failures)


def _read_some(file: memoryview, header: Header) -> None:
    """Read the corners, and the whole of a small image, with and without the blob."""
    _, height, width = header.shape
    windows = [(0, 0, 1, 1), (height - 1, width - 1, 1, 1)]
    if np.prod(header.shape, dtype=object) <= _SMALL:
        windows.append((0, 0, height, width))
    if header.tile_length * header.tile_width * header.samples_per_pixel > 1 << 20:
        # A frame of this size is no part of a small result.
        return
    for window in windows:
        for given in (None, header):
            found, _ = oracle.attempt(RumiError, rumi.read, file, given, window=window)
            if found is not None:
                assert found.shape == (header.samples_per_pixel, window[2], window[3])


# --- Frames


# Sample encoding, shape of the image that one frame holds, frame unit.
CASES = [
    ((1, 8), (1, 16, 16), 0),
    ((1, 16), (1, 16, 16), 0),
    ((2, 32), (3, 8, 9), 1),
    ((1, 64), (2, 8, 8), 1),
    ((6, 128), (1, 5, 7), 0),
    ((106, 4), (1, 13, 5), 0),
    ((3, 32), (1, 100, 100), 0),
]


@cache
def _file_around(case: int, size: int) -> tuple[bytes, bytes]:
    """What stands before a frame of so many bytes, and the blob."""
    pair, shape, unit = CASES[case]
    fields = oracle.fields_of(shape, shape[1:], pair, unit)
    return oracle.lay_out(oracle.tags_of(fields, [size])), oracle.blob_with(fields, [size])


def frames(data: bytes) -> None:
    """A byte that chooses an image, and any bytes as its only frame, for each decoder."""
    if len(data) < 2:
        return
    case, frame = data[0] % len(CASES), data[1:]
    prefix, header = _file_around(case, len(frame))
    file = Store.memory(prefix + frame)
    plan = Plan(Header(header), None, None)
    _, shape, _ = CASES[case]
    dtype = oracle.DTYPES[CASES[case][0]]
    results = []
    for name in ("openzl", "geozl") if backends.geozl_available() else ("openzl",):
        out = np.zeros(shape, dtype)
        with bounded():
            decoder = backends.decoder(name)
            target = Target(out, dtype.itemsize)
            error = refused(lambda d=decoder, t=target: d.decode(plan, file, t))
        if error is None:
            results.append(oracle.raw(out))
    assert len(set(results)) < 2, "the decoders see different samples"


# --- Windows and bands

_IMAGE = oracle.ramp(3, 25, 40)
_DATA, _BLOB = oracle.write(_IMAGE, (16, 16))


def windows(data: bytes) -> None:
    """Any numbers as a window and bands: NumPy's answer, or an error of the caller's."""
    numbers = [value for (value,) in struct.iter_unpack("<q", data[: len(data) // 8 * 8])]
    if not numbers:
        return
    kind, numbers = numbers[0] & 7, numbers[1:]
    # Small numbers too, which eight bytes of noise never are.
    numbers = [value if kind & 4 else value % 64 - 8 for value in numbers]
    window = tuple(numbers[:4]) if kind & 1 else None
    bands = numbers[4:12] if kind & 2 else None
    with bounded():
        mistakes = (ValueError, TypeError, IndexError)
        found, error = oracle.attempt(mistakes, rumi.read, _DATA, _BLOB, window=window, bands=bands)
    assert not isinstance(error, RumiError)
    assert (error is None) == _inside(window, bands), (window, bands, error)
    if error is None:
        assert np.array_equal(found, oracle.numpy_window(_IMAGE, bands, window))


def _inside(window: tuple[int, ...] | None, bands: list[int] | None) -> bool:
    size, height, width = _IMAGE.shape
    if bands is not None and not (bands and all(0 <= band < size for band in bands)):
        return False
    if window is None:
        return True
    if len(window) != 4:
        return False
    top, left, rows, cols = window
    inside = top >= 0 and left >= 0 and top + rows <= height and left + cols <= width
    return inside and rows > 0 and cols > 0


TARGETS: dict[str, Callable[[bytes], None]] = {
    "blob": blob,
    "index": index,
    "frames": frames,
    "windows": windows,
}


def warm_up() -> None:
    """Load what any of them needs, so that it does not count as memory of an input."""
    os.environ["RUMI_NUM_THREADS"] = "1"
    for name in ("openzl", "geozl") if backends.geozl_available() else ("openzl",):
        backends.decoder(name)
    rumi.validate(memoryview(_DATA), _BLOB)
