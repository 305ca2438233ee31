"""rumi, and the floor under it: the bare decoder calls and a copy of the result."""

import asyncio
import functools
import os
import time

import numpy as np
from loop import digest, serve, timed
from openzl import ext as openzl

import rumi
import rumi.aio
import rumi.codec
from rumi import backends
from rumi.encodings import from_dtype
from rumi.pixels import Grid, make_source, sample_frames

# One loop for all requests, so that connections stay open.
LOOP = asyncio.new_event_loop()


def write(array, path, **options):
    samples = np.load(array)
    start = time.perf_counter()
    header = rumi.write(path, samples, **options)
    seconds = time.perf_counter() - start
    return {"blob": bytes(header).hex(), "seconds": seconds, "file": header.file_size}


def chosen(array, tile_size, codec):
    """Return the recipe that a preset takes for an image."""
    source = make_source(np.load(array), None, None)
    grid = Grid(source.shape, (tile_size, tile_size), from_dtype(source.dtype), "tile")
    samples = functools.partial(sample_frames, source, grid)
    return {"recipe": rumi.codec.resolve(codec, grid.encoding, samples).name}


def reads(path, blob, windows, threads=1, reuse=False, backend="auto"):
    os.environ[backends.ENVIRONMENT_VARIABLE] = backend
    header = bytes.fromhex(blob)
    if reuse:
        header = rumi.Header(header)
    items = [None if window is None else tuple(window) for window in windows]
    return timed(lambda window: rumi.read(path, header, window=window, threads=threads), items)


def batch(paths, blobs, windows, threads=1, many=True):
    headers = [bytes.fromhex(blob) for blob in blobs]
    items = [tuple(window) for window in windows]
    start = time.perf_counter()
    if many:
        result = rumi.read_many(paths, headers, items, threads=threads)
    else:
        result = [
            rumi.read(path, header, window=window, threads=threads)
            for path, header, window in zip(paths, headers, items, strict=True)
        ]
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "digest": digest(np.stack(result))}


async def _aio(paths, headers, items, threads):
    return await rumi.aio.read_many(paths, headers, items, threads=threads)


def aio(paths, blobs, windows, threads=1):
    headers = [bytes.fromhex(blob) for blob in blobs]
    items = [tuple(window) for window in windows]
    start = time.perf_counter()
    result = LOOP.run_until_complete(_aio(paths, headers, items, threads))
    return {"seconds": time.perf_counter() - start, "digest": digest(result)}


def floor(path, blob, windows):
    header = rumi.Header(bytes.fromhex(blob))
    context = openzl.DCtx()
    context.set_parameter(openzl.DParam.StickyParameters, 1)
    if backends.geozl_available():
        import geozl

        geozl.register_decoders(context)
    seconds = 0.0
    with open(path, "rb") as file:
        contents = file.read()
    for window in windows:
        result = rumi.read(path, header, window=window, threads=1)
        offsets, counts = header.ranges(None, window)
        frames = [
            contents[o : o + n] for o, n in zip(offsets.tolist(), counts.tolist(), strict=True)
        ]
        start = time.perf_counter()
        for frame in frames:
            context.decompress(frame)
        copy = result.copy()
        seconds += time.perf_counter() - start
    return {"seconds": seconds, "digest": digest(copy)}


serve(
    {"write": write, "reads": reads, "batch": batch, "aio": aio, "floor": floor, "chosen": chosen}
)
