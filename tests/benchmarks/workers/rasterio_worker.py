"""COGs through rasterio."""

import itertools

import numpy as np
import rasterio
from loop import serve, timed
from rasterio.io import MemoryFile
from rasterio.shutil import copy
from rasterio.windows import Window


def write(array, path, compress, predictor, blocksize=256, interleave="BAND"):
    samples = np.load(array)
    profile = {
        "driver": "GTiff",
        "count": samples.shape[0],
        "height": samples.shape[1],
        "width": samples.shape[2],
        "dtype": samples.dtype,
        "crs": "EPSG:32621",
        "transform": rasterio.Affine(30, 0, 0, 0, -30, 0),
    }
    with MemoryFile() as memory:
        with memory.open(**profile) as target:
            target.write(samples)
        with memory.open() as source:
            copy(
                source,
                path,
                driver="COG",
                compress=compress,
                predictor=predictor,
                blocksize=blocksize,
                overviews="NONE",
                interleave=interleave,
            )
    return {}


def reads(path, windows):
    def read(window):
        with rasterio.open(path) as source:
            if window is None:
                return source.read()
            row, col, height, width = window
            return source.read(window=Window(col, row, width, height))

    with rasterio.Env(GDAL_NUM_THREADS="1", GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"):
        return timed(read, windows)


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
