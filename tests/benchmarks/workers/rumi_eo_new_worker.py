"""A later rumi-eo, of another version of the format, by its public functions."""

import os

import geozl
import numpy as np
from loop import serve, timed

import rumi

rumi.set_num_threads(1)


def write(array, path, tile_size, recipe):
    """Write one band a frame, with a recipe of geozl."""
    samples = np.load(array)
    pattern = "b (row h) (col w) -> row col b (h w)"
    table = rumi.frames(samples, pattern, tile_size)
    for frame in table:
        graph = geozl.graph(frame.data, recipe)
        frame.compressed = geozl.compress(frame.data, graph=graph)
    bands = [f"band {number}" for number in range(samples.shape[0])]
    _, header = rumi.write(path, table, bands=bands, time=["2026-01-01"])
    return {"blob": header.hex(), "file": os.path.getsize(path)}


def reads(path, blob, windows):
    header = bytes.fromhex(blob)

    def read(window):
        return rumi.read(path, header, window=None if window is None else tuple(window))

    return timed(read, windows)


serve({"write": write, "reads": reads})
