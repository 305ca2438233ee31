"""rumi-eo, by its public functions."""

import geozl
import numpy as np
from loop import serve, timed

import rumi


def write(array, path, tile_size, recipe):
    """Write with a recipe of geozl, as its own documentation does."""
    table = rumi.frames(np.load(array), tile_size)
    for frame in table:
        graph = geozl.graph(frame.data, recipe)
        frame.compressed = geozl.compress(frame.data, graph=graph)
    _, header = rumi.write(path, table)
    return {"blob": header.hex()}


def reads(path, blob, windows):
    header = bytes.fromhex(blob)

    def read(window):
        if window is None:
            return rumi.read(path, header, num_threads=1)
        row, col, height, width = window
        return rumi.read(path, header, y=(row, row + height), x=(col, col + width), num_threads=1)

    return timed(read, windows)


serve({"write": write, "reads": reads})
