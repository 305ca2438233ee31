"""COGs through rasterio."""

import itertools
import os
import time

import numpy as np
import rasterio
from loop import serve, timed
from rasterio.io import MemoryFile
from rasterio.shutil import copy
from rasterio.windows import Window

COMPLEX = np.dtype([("real", "<i2"), ("imag", "<i2")])


def write(array, path, compress, predictor=None, blocksize=256, interleave="BAND", level=None):
    """Write a COG on one thread; the seconds are those of GDAL's own copy."""
    samples = np.load(array)
    dtype = samples.dtype.name
    if samples.dtype == COMPLEX:
        samples, dtype = samples["real"] + 1j * samples["imag"], "complex_int16"
    profile = {
        "driver": "GTiff",
        "count": samples.shape[0],
        "height": samples.shape[1],
        "width": samples.shape[2],
        "dtype": dtype,
        "crs": "EPSG:32621",
        "transform": rasterio.Affine(30, 0, 0, 0, -30, 0),
    }
    options = {"compress": compress, "blocksize": blocksize, "interleave": interleave}
    if "LERC" in compress:
        options["max_z_error"] = 0
    if predictor is not None:
        options["predictor"] = predictor
    if level is not None:
        options["level"] = level
    with rasterio.Env(GDAL_NUM_THREADS="1"), MemoryFile() as memory:
        with memory.open(**profile) as target:
            target.write(samples.astype("complex64") if dtype.startswith("complex") else samples)
        with memory.open() as source:
            start = time.perf_counter()
            copy(source, path, driver="COG", overviews="NONE", **options)
            seconds = time.perf_counter() - start
    return {"seconds": seconds, "file": os.path.getsize(path)}


def _common(samples):
    """Return complex integers, which rasterio reads as floats, as what they are."""
    if samples.dtype != np.complex64:
        return samples
    pairs = np.empty(samples.shape, COMPLEX)
    pairs["real"], pairs["imag"] = samples.real, samples.imag
    return pairs


def reads(path, windows):
    def read(window):
        with rasterio.open(path) as source:
            if window is None:
                return source.read()
            row, col, height, width = window
            return source.read(window=Window(col, row, width, height))

    with rasterio.Env(GDAL_NUM_THREADS="1", GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"):
        return timed(read, windows, _common)


fresh = itertools.count()


def remote(url, windows):
    """Read by HTTP, each time under a URL of which nothing is in a cache."""

    def read(window):
        with rasterio.open(f"/vsicurl/{url}?{next(fresh)}") as source:
            row, col, height, width = window
            return source.read(window=Window(col, row, width, height))

    with rasterio.Env(GDAL_NUM_THREADS="1", GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"):
        return timed(read, windows)


serve({"write": write, "reads": reads, "remote": remote})
