"""Tiled TIFF through tifffile with imagecodecs, and JPEG 2000."""

import os

import imagecodecs
import numpy as np
import tifffile
import zarr
from loop import serve, timed


def write(array, path, tile_size):
    samples = np.load(array)
    tifffile.imwrite(
        path,
        samples,
        tile=(tile_size, tile_size),
        compression="zstd",
        predictor=True,
        photometric="minisblack",
        planarconfig="separate" if samples.shape[0] > 1 else None,
        metadata=None,
    )
    return {"file": os.path.getsize(path)}


def reads(path, windows):
    def read(window):
        with tifffile.TiffFile(path) as source:
            if window is None:
                return source.asarray(maxworkers=1)
            row, col, height, width = window
            with source.aszarr(maxworkers=1) as store:
                pixels = zarr.open_array(store, mode="r")
                return np.asarray(pixels[:, row : row + height, col : col + width])

    return timed(read, windows)


def jpeg2000(array, tile_size):
    """Return the bytes that lossless JPEG 2000 takes for every tile of every band."""
    samples = np.load(array)
    size = 0
    for band in samples:
        for row in range(0, band.shape[0], tile_size):
            for col in range(0, band.shape[1], tile_size):
                tile = np.ascontiguousarray(band[row : row + tile_size, col : col + tile_size])
                size += len(imagecodecs.jpeg2k_encode(tile, level=0, reversible=True))
    return {"size": size}


serve({"write": write, "reads": reads, "jpeg2000": jpeg2000})
