"""rumi-eo 0.16.0, by its public functions."""

import os
import time

import geozl
import numpy as np
from loop import serve, timed

import rumi


def write(array, path, tile_size, recipe):
    """Write with a recipe of geozl, as its own documentation does."""
    samples = np.load(array)
    start = time.perf_counter()
    table = rumi.frames(samples, tile_size)
    for frame in table:
        graph = geozl.graph(frame.data, recipe)
        frame.compressed = geozl.compress(frame.data, graph=graph)
    _, header = rumi.write(path, table)
    seconds = time.perf_counter() - start
    return {"blob": header.hex(), "seconds": seconds, "file": os.path.getsize(path)}


def reads(path, blob, windows):
    header = bytes.fromhex(blob)

    def read(window):
        if window is None:
            return rumi.read(path, header, num_threads=1)
        row, col, height, width = window
        return rumi.read(path, header, y=(row, row + height), x=(col, col + width), num_threads=1)

    return timed(read, windows)


serve({"write": write, "reads": reads})
