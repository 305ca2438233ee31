"""Where fuzzing starts: good blobs, files and frames of every kind."""

import struct
from collections.abc import Iterator
from functools import cache

import numpy as np
import oracle
from openzl import ext as zl

from rumi import CodecError, codec
from rumi.codec.encoder import NUMBERS, FrameEncoder

from .targets import CASES

__all__ = ["seeds"]

# OpenZL's words for writing a checksum and for none.
_ON, _OFF = 1, 2

RECIPES = [
    "store",
    "constant",
    "fse",
    "huffman",
    "entropy",
    "words",
    "zstd",
    "fieldlz",
    "bitpack",
    "openzl",
    "delta>zigzag>lanes>fse",
    "delta>zigzag>lanes>zstd",
    "planar>lanes>zstd",
    "range>bitpack",
    "divide>fse",
    "tokenize>lanes>zstd",
]


def samples_of(case: int, number: int) -> np.ndarray:
    """Samples that compress, of the image of a case."""
    pair, shape, _ = CASES[case]
    values = oracle.random_samples(pair, shape, seed=number)
    if number % 3 == 1:
        values = np.full_like(values, values.flat[0])
    if number % 3 == 2:
        values = np.sort(values.reshape(-1).view(NUMBERS[min(8, values.dtype.itemsize)]))
        values = values.view(oracle.DTYPES[pair]).reshape(shape)
    return values


def frames() -> Iterator[bytes]:
    """A frame of each recipe for each image, with OpenZL's checksums and without."""
    for case, (pair, _, _) in enumerate(CASES):
        width = min(8, oracle.DTYPES[pair].itemsize)
        for number, text in enumerate(RECIPES):
            values = samples_of(case, number)
            raw = np.frombuffer(oracle.raw(values), NUMBERS[width])
            for checksum in (_ON, _OFF):
                encoder = FrameEncoder(codec.parse(text), width)
                for parameter in (zl.CParam.ContentChecksum, zl.CParam.CompressedChecksum):
                    encoder._context.set_parameter(parameter, checksum)
                try:
                    yield bytes([case]) + encoder.encode(raw.reshape(1, -1))
                except CodecError:
                    # Not every recipe takes every width.
                    continue


def blobs() -> Iterator[bytes]:
    for shape, tile in (((1, 1, 1), 1), ((3, 25, 40), 16), ((6, 9, 9), 4), ((1, 300, 300), 8)):
        for unit in (0, 1):
            fields = oracle.fields_of(shape, (tile, tile), unit=unit)
            for spread in (1, 4, 500):
                counts = oracle.counts_for(oracle.frame_count(fields), spread=spread)
                yield oracle.blob_with(fields, counts)


def files() -> Iterator[bytes]:
    for pair in ((1, 8), (2, 32), (106, 4)):
        for shape in ((1, 5, 5), (3, 20, 9), (6, 9, 9)):
            for unit in (0, 1):
                yield oracle.write(oracle.random_samples(pair, shape), (8, 8), unit)[0]


def windows() -> Iterator[bytes]:
    for kind in range(8):
        yield struct.pack("<5q", kind, 8, 8, 20, 30)
        yield struct.pack("<9q", kind, 8, 8, 20, 30, 8, 9, 10, 8)


@cache
def seeds(target: str) -> list[bytes]:
    """Return good inputs of a target."""
    return list({"blob": blobs, "index": files, "frames": frames, "windows": windows}[target]())
