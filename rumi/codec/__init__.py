"""Codecs: named recipes of built-in OpenZL nodes, and the choice between them.

A recipe is a chain such as ``delta>zigzag>lanes>fse``: nodes that transform the
samples of a frame, then a leaf that compresses what they leave. Every frame is
self-contained; a reader needs none of this to decode it.

=============  ==================================================================
node           what it does to a stream of numbers
=============  ==================================================================
``delta``      difference from the sample before
``zigzag``     signed to unsigned, small magnitudes first
``range``      subtract the minimum, narrow the width to what is left
``tokenize``   distinct values, and indices into them
``lanes``      one stream for each byte of a sample
=============  ==================================================================

Leaves: ``fse``, ``huffman``, ``entropy``, ``zstd`` (``zstd:9`` sets the level),
``fieldlz``, ``bitpack``, ``openzl`` (OpenZL's own choice) and ``store``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from openzl import ext as openzl
from openzl.ext import graphs, nodes

from rumi._core import openzl_reason
from rumi.errors import CodecError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.encodings import Encoding

__all__ = [
    "FRAME_VERSION",
    "Codec",
    "FrameEncoder",
    "Recipe",
    "candidates",
    "choose",
    "parse",
    "resolve",
]

# OpenZL's frame format version, pinned for every frame rumi writes.
FRAME_VERSION = 24

# OpenZL's word for "write this checksum".
_ON = 1

_UINTS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

_NODES: dict[str, Callable[[], Any]] = {
    "delta": nodes.DeltaInt,
    "zigzag": nodes.Zigzag,
    "range": nodes.RangePack,
}

_LEAVES: dict[str, Callable[[], Any]] = {
    "fse": graphs.Fse,
    "huffman": graphs.Huffman,
    "entropy": graphs.Entropy,
    "fieldlz": graphs.FieldLz,
    "bitpack": graphs.Bitpack,
    "openzl": graphs.Compress,
    "store": graphs.Store,
}

# Candidates of "auto" and their decode speed in bytes of samples a second, by
# the sample's width. The speeds are constants and not measured on the spot,
# since the same image must give the same file on every run.
_SPEED: dict[str, dict[int, float]] = {
    "zstd": {1: 9e8, 2: 8e8, 4: 8e8, 8: 8e8},
    "fse": {1: 6e8},
    "delta>zigzag>fse": {1: 5e8},
    "delta>zigzag>zstd": {1: 6e8},
    "lanes>zstd": {2: 10e8, 4: 10e8, 8: 10e8},
    "delta>zigzag>lanes>fse": {2: 5e8, 4: 6e8, 8: 6e8},
    "delta>zigzag>lanes>zstd": {2: 6e8, 4: 7e8, 8: 7e8},
    "tokenize>lanes>zstd": {2: 5e8, 4: 6e8, 8: 6e8},
}

# What a byte saved is worth: the rate at which compressed bytes arrive.
_FETCH_RATE = 1e8


@dataclass(frozen=True, slots=True)
class Recipe:
    """A chain of OpenZL nodes that ends in a leaf.

    Attributes
    ----------
    nodes : tuple of str
        Names of the transforms, first applied first.
    leaf : str
        Name of the compressor of what they leave.
    level : int or None
        zstd level.
    """

    nodes: tuple[str, ...]
    leaf: str
    level: int | None = None

    def __str__(self) -> str:
        """Write the recipe as `parse` reads it."""
        leaf = self.leaf if self.level is None else f"{self.leaf}:{self.level}"
        return ">".join((*self.nodes, leaf))


def parse(name: str) -> Recipe:
    """Read a recipe such as ``"delta>zigzag>lanes>zstd:9"``.

    Raises
    ------
    TypeError
        If `name` is not a string.
    ValueError
        If a node, the leaf or the level is unknown.
    """
    if not isinstance(name, str):
        raise TypeError(f"a codec is a string, found {type(name).__name__}")
    *chain, last = (part.strip().lower() for part in name.split(">"))
    known = (*_NODES, "tokenize", "lanes")
    for node in chain:
        if node not in known:
            raise ValueError(f"codec {name!r}: no node {node!r}; nodes are {', '.join(known)}")
    for before, after in itertools.pairwise(chain):
        if before == "lanes":
            raise ValueError(f"codec {name!r}: lanes leaves bytes, so {after!r} cannot follow it")
    leaf, colon, level = last.partition(":")
    if leaf not in _LEAVES and leaf != "zstd":
        leaves = ", ".join((*_LEAVES, "zstd"))
        raise ValueError(f"codec {name!r}: no leaf {leaf!r}; leaves are {leaves}")
    if not colon:
        return Recipe(tuple(chain), leaf)
    if leaf != "zstd" or not level.isdecimal() or not 1 <= int(level) <= 22:
        raise ValueError(f"codec {name!r}: only zstd takes a level, 1 to 22")
    return Recipe(tuple(chain), leaf, int(level))


class FrameEncoder:
    """Compress the samples of one frame after another; one compressor for all.

    Parameters
    ----------
    recipe : Recipe
        What to do.
    width : {1, 2, 4, 8}
        Bytes of one number.

    Notes
    -----
    Writes Numeric frames of one output at format version 24 with both OpenZL
    checksums. For one thread at a time; OpenZL's binding holds the GIL.
    """

    def __init__(self, recipe: Recipe, width: int) -> None:
        self.recipe = recipe
        self._dtype = _UINTS[width]
        self._compressor = openzl.Compressor()
        graph = _build(self._compressor, recipe.nodes, recipe, width)
        self._compressor.select_starting_graph(graph)
        self._context = openzl.CCtx()
        self._context.ref_compressor(self._compressor)
        for parameter, value in (
            (openzl.CParam.StickyParameters, 1),
            (openzl.CParam.FormatVersion, FRAME_VERSION),
            (openzl.CParam.ContentChecksum, _ON),
            (openzl.CParam.CompressedChecksum, _ON),
            # A graph that cannot take some input falls back to a generic one.
            (openzl.CParam.PermissiveCompression, 1),
        ):
            self._context.set_parameter(parameter, value)

    def encode(self, samples: NDArray[Any]) -> bytes:
        """Return the frame of a C-contiguous array of samples.

        Raises
        ------
        CodecError
            If OpenZL fails.
        """
        numbers = samples.reshape(-1).view(self._dtype)
        try:
            frame: bytes = self._context.compress([openzl.Input(openzl.Type.Numeric, numbers)])
        except RuntimeError as error:
            raise CodecError(
                f"OpenZL cannot compress {numbers.size} numbers of {numbers.itemsize} bytes with "
                f"{self.recipe}: {openzl_reason(error)}"
            ) from error
        return frame


@dataclass(frozen=True, slots=True)
class Codec:
    """What a write uses: a recipe for numbers of one width. Picklable.

    Attributes
    ----------
    name : str
        As `resolve` reads it.
    width : {1, 2, 4, 8}
        Bytes of one number.
    lossy : bool
        Whether frames decode to something near their samples only.
    needs_geozl : bool
        Whether reading needs geozl.
    releases_gil : bool
        Whether threads compress at the same time.
    picklable : bool
        Whether another process can make the same encoder.
    """

    name: str
    width: int
    lossy: bool = False
    needs_geozl: bool = False
    releases_gil: bool = False
    picklable: bool = True

    def encoder(self) -> FrameEncoder:
        """Return a new encoder, for one thread."""
        return FrameEncoder(parse(self.name), self.width)


def resolve(
    codec: Any,
    encoding: Encoding,
    samples: Callable[[], Sequence[NDArray[Any]]],
    *,
    error: float | str | None = None,
) -> Codec:
    """Return the codec that a write uses.

    Parameters
    ----------
    codec : str
        "auto" or a recipe.
    encoding : Encoding
        Of the image.
    samples : callable
        Returns frames of the image, as unsigned numbers; called for "auto" only.
    error : float or str, optional
        Largest error of a near-lossless recipe.

    Raises
    ------
    TypeError, ValueError
        If there is no such codec.
    """
    if error is not None:
        raise ValueError("error goes with a geozl: recipe")
    width = encoding.element_width
    if codec == "auto":
        return Codec(choose(samples(), width), width)
    return Codec(str(parse(codec)), width)


def candidates(width: int) -> tuple[str, ...]:
    """Return the recipes that "auto" tries for numbers of `width` bytes."""
    return tuple(name for name, speeds in _SPEED.items() if width in speeds)


def choose(samples: Sequence[NDArray[Any]], width: int) -> str:
    """Pick the candidate that makes the samples fastest to fetch and decode.

    Parameters
    ----------
    samples : sequence of ndarray
        Frames of the image, C-contiguous.
    width : {1, 2, 4, 8}
        Bytes of one number.

    Returns
    -------
    str
        The recipe of least ``compressed bytes / fetch rate + bytes / decode
        speed``; the same for the same samples, always.
    """
    raw = sum(sample.nbytes for sample in samples)
    costs = []
    for name in candidates(width):
        encoder = FrameEncoder(parse(name), width)
        size = sum(len(encoder.encode(sample)) for sample in samples)
        costs.append((size / _FETCH_RATE + raw / _SPEED[name][width], name))
    return min(costs)[1]


def _build(compressor: Any, chain: Sequence[str], recipe: Recipe, width: int) -> Any:
    """Return the graph of the rest of a chain for numbers of `width` bytes."""
    if not chain:
        return _leaf(recipe)(compressor)
    node, rest = chain[0], chain[1:]
    if node == "lanes":
        tail = _build(compressor, rest, recipe, 1)
        if width == 1:
            return tail
        return nodes.ConvertNumToStructLE()(compressor, nodes.TransposeSplit()(compressor, tail))
    if node == "tokenize":
        alphabet = graphs.FieldLz()(compressor)
        return nodes.TokenizeNumeric(sort=True)(
            compressor, alphabet, _build(compressor, rest, recipe, 4)
        )
    return _NODES[node]()(compressor, _build(compressor, rest, recipe, width))


def _leaf(recipe: Recipe) -> Any:
    if recipe.leaf == "zstd":
        return graphs.Zstd(compression_level=recipe.level)
    return _LEAVES[recipe.leaf]()
