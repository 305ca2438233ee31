"""zarr 3: chunks of blosc zstd, and the same chunks in shards."""

import os
import time
from pathlib import Path

import numpy as np
import zarr
from loop import serve, timed
from numcodecs import blosc
from zarr.codecs import BloscCodec

# One thread, as for all.
blosc.set_nthreads(1)
blosc.use_threads = False
zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})


def _size(path):
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


def write(array, path, tile_size, shard=None):
    samples = np.load(array)
    bands = samples.shape[0]
    start = time.perf_counter()
    target = zarr.create_array(
        path,
        shape=samples.shape,
        dtype=samples.dtype,
        chunks=(1, tile_size, tile_size),
        shards=None if shard is None else (bands, shard, shard),
        compressors=BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle"),
    )
    target[:] = samples
    return {"seconds": time.perf_counter() - start, "file": _size(path)}


def reads(path, windows):
    def read(window):
        source = zarr.open_array(os.fspath(path), mode="r")
        if window is None:
            return source[:]
        row, col, height, width = window
        return source[:, row : row + height, col : col + width]

    return timed(read, windows)


serve({"write": write, "reads": reads})
