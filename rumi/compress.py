"""Compressing the frames of an image, in order, on one thread or several.

OpenZL's binding holds the GIL while it compresses. Codecs that do not are run
by threads; for the others a large image is compressed by helper processes,
which are plain child interpreters: they import nothing of the caller's program.
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from rumi import backends
from rumi.errors import CodecError, RumiError
from rumi.pixels import blocks

if TYPE_CHECKING:
    import subprocess
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from rumi.codec import Codec
    from rumi.pixels import Grid, PixelSource

__all__ = ["FrameJob", "compressed_frames", "serve"]

# Bytes of samples from which helper processes earn back the time they take to start.
_PROCESS_BYTES = 256 << 20

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class FrameJob:
    """What it takes to compress a block: small, picklable.

    Attributes
    ----------
    codec : Codec
    grid : Grid
    verify : bool
        Decode each frame and compare.
    """

    codec: Codec
    grid: Grid
    verify: bool

    def encoder(self) -> Callable[[int, NDArray[Any]], list[bytes]]:
        """Return a function of position and block, for use by one thread."""
        encoder = self.codec.encoder()

        def encode(position: int, block: NDArray[Any]) -> list[bytes]:
            frames: list[bytes] = []
            for numbers in self.grid.frames(block):
                frame = encoder.encode(numbers)
                if self.verify and not self.codec.lossy:
                    index = position * self.grid.frames_per_position + len(frames)
                    _verify(frame, numbers, index, self.codec)
                frames.append(frame)
            return frames

        return encode


def compressed_frames(
    source: PixelSource, grid: Grid, codec: Codec, *, verify: bool, threads: int
) -> Iterator[list[bytes]]:
    """Yield the frames of one grid position after another, in frame-index order.

    Raises
    ------
    CodecError
        If a frame does not compress or does not decode to its samples.
    """
    job = FrameJob(codec, grid, verify)
    positions = grid.tiles_down * grid.tiles_across
    threads = min(threads, positions)
    samples = grid.shape[0] * grid.shape[1] * grid.shape[2] * grid.encoding.itemsize
    if threads > 1 and codec.releases_gil:
        yield from _by_threads(source, job, threads, _ThreadEncoders(job))
    elif threads > 1 and samples >= _PROCESS_BYTES and codec.picklable:
        with _Helpers(job, threads) as helpers:
            yield from _by_threads(source, job, threads, helpers)
    else:
        encode = job.encoder()
        for position, block in enumerate(blocks(source, grid)):
            yield encode(position, block)


def _by_threads(
    source: PixelSource,
    job: FrameJob,
    threads: int,
    encode: Callable[[int, NDArray[Any]], list[bytes]],
) -> Iterator[list[bytes]]:
    """Keep two blocks a thread in flight; yield in order."""
    from concurrent.futures import ThreadPoolExecutor

    pending: deque[Future[list[bytes]]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="rumi-write")
    try:
        for position, block in enumerate(blocks(source, job.grid)):
            # Copied where it is a view, since the source may reuse its memory.
            pending.append(pool.submit(encode, position, np.array(block)))
            if len(pending) >= 2 * threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _ThreadEncoders:
    """One encoder for each thread that asks."""

    def __init__(self, job: FrameJob) -> None:
        self._job = job
        self._idle: queue.SimpleQueue[Callable[[int, NDArray[Any]], list[bytes]]] = (
            queue.SimpleQueue()
        )

    def __call__(self, position: int, block: NDArray[Any]) -> list[bytes]:
        try:
            encode = self._idle.get_nowait()
        except queue.Empty:
            encode = self._job.encoder()
        frames = encode(position, block)
        self._idle.put(encode)
        return frames


class _Helpers:
    """Child interpreters that compress blocks sent through their pipes."""

    def __init__(self, job: FrameJob, count: int) -> None:
        self._job = job
        self._count = count
        self._all: list[subprocess.Popen[bytes]] = []
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()

    def __enter__(self) -> _Helpers:
        import subprocess

        # The child finds this rumi wherever the caller's import path found it.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        for _ in range(self._count):
            helper = subprocess.Popen(
                [sys.executable, "-c", "from rumi.compress import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
            self._all.append(helper)
            _send(helper.stdin, self._job)
            self._idle.put(helper)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for helper in self._all:
            if exc_info[0] is not None:
                helper.kill()
            for pipe in (helper.stdin, helper.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        # It died; whoever spoke to it has said so.
                        continue
            helper.wait()

    def __call__(self, position: int, block: NDArray[Any]) -> list[bytes]:
        helper = self._idle.get()
        try:
            _send(helper.stdin, (position, block))
            answer = _receive(helper.stdout)
        except (OSError, EOFError) as error:
            raise CodecError(
                f"a compressing process ended early (status {helper.poll()}); use threads=1"
            ) from error
        self._idle.put(helper)
        if isinstance(answer, Exception):
            raise answer
        frames: list[bytes] = answer
        return frames


def serve() -> None:
    """Compress blocks from standard input until it ends; what a helper process runs."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    job: FrameJob = _receive(source)
    encode = job.encoder()
    while True:
        try:
            position, block = _receive(source)
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer: Any = encode(position, block)
        except RumiError as error:
            answer = type(error)(str(error))
        _send(sink, answer)


def _send(pipe: BinaryIO | Any, message: Any) -> None:
    data = pickle.dumps(message, protocol=5)
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> Any:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError("the pipe was closed")
    # Both ends are this library, over a private pipe.
    return pickle.loads(pipe.read(_LENGTH.unpack(head)[0]))  # noqa: S301


def _verify(frame: bytes, numbers: NDArray[Any], index: int, codec: Codec) -> None:
    """Decode a frame as a reader would and compare every bit."""
    decoder = backends.decoder("geozl" if codec.needs_geozl else "openzl")
    try:
        same = decoder.matches(frame, numbers.reshape(-1).view(np.uint8))
    except CodecError as error:
        raise CodecError(f"frame {index}, just written with {codec.name}: {error}") from error
    if not same:
        raise CodecError(
            f"frame {index}, just written with {codec.name}, does not decode to its samples"
        )
