"""Recipes as graphs of an OpenZL compressor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openzl.ext import Type, graphs, nodes

from rumi.codec.blocks import Blocks
from rumi.codec.recipes import Recipe, Step, parse
from rumi.codec.steps import Buckets, Frame, Function, Geometry, Lanes, Words, numbers
from rumi.codec.turns import Planar, Spectral, Turn
from rumi.errors import UnsupportedError

__all__ = ["build"]

# Nodes that OpenZL knows by name only, from its version 0.2 on.
_PARTITION = "zl.partition"
_PACK = "zl.private.bitpack_int"

_PIPES: dict[str, Callable[[], Any]] = {
    "delta": nodes.DeltaInt,
    "zigzag": nodes.Zigzag,
    "range": nodes.RangePack,
    "divide": nodes.DivideBy,
}

_FLOATS: dict[str, Callable[[], Any]] = {
    "float16": nodes.Float16Deconstruct,
    "bfloat16": nodes.BFloat16Deconstruct,
    "float32": nodes.Float32Deconstruct,
}

_LEAVES: dict[str, Callable[[], Any]] = {
    "fse": graphs.Fse,
    "huffman": graphs.Huffman,
    "entropy": graphs.Entropy,
    "bitpack": graphs.Bitpack,
    "constant": graphs.Constant,
    "store": graphs.Store,
    "openzl": graphs.Compress,
}

# Sorted distinct values: differences are small and positive.
_VALUES = parse("delta>lanes>zstd:3")
_BYTES = parse("lanes>entropy")
_STORED = parse("store")
# Classes of blocks, down the columns: those of neighbours are alike.
_CLASSES = parse("delta>zigzag>entropy")

# Leaves that take numbers only.
_NUMERIC_LEAVES = ("fieldlz", "words")

# zstd level of what goes beside the samples: classes of blocks, sizes of parts.
_SIDE_LEVEL = 3


class _Builder:
    """Builds the graphs of one compressor, each for a stream of one type."""

    def __init__(self, compressor: Any, geometry: Geometry) -> None:
        self._compressor = compressor
        self._geometry = geometry

    def chain(self, recipe: Recipe, stream: Type = Type.Numeric) -> Any:
        """Return the graph of a chain for a stream of some type."""
        return self._steps(recipe.steps, stream)

    def _steps(self, steps: tuple[Step, ...], stream: Type) -> Any:
        step, rest = steps[0], steps[1:]
        if step.name == "lanes":
            return self._lanes(step, rest, stream)
        if not rest and step.name not in _NUMERIC_LEAVES:
            return self._leaf(step, stream)
        if stream != Type.Numeric:
            return self._as_numbers(stream, self._steps(steps, Type.Numeric))
        if not rest:
            return self._leaf(step, stream)
        if step.name in _PIPES:
            return _PIPES[step.name]()(self._compressor, self.chain(Recipe(rest)))
        make: Callable[[Step, Recipe], Any] = getattr(self, f"_{step.name}")
        return make(step, Recipe(rest))

    def _as_numbers(self, stream: Type, graph: Any) -> Any:
        """Read bytes, or structs of any width, as numbers of one byte."""
        graph = nodes.ConvertSerialToNum8()(self._compressor, graph)
        if stream == Type.Struct:
            graph = nodes.ConvertStructToSerial()(self._compressor, graph)
        return graph

    def _leaf(self, step: Step, stream: Type) -> Any:
        level = step.argument[0] if step.argument else None
        match step.name:
            case "zstd":
                return graphs.Zstd(compression_level=level)(self._compressor)
            case "fieldlz":
                return graphs.FieldLz(compression_level=level)(self._compressor)
            case "best":
                branches = [self.chain(branch, stream) for branch in step.branches]
                return graphs.BruteForce(branches)(self._compressor)
            case "words":
                whole = graphs.Entropy()(self._compressor)
                return self._function(Words, [whole, self.chain(_BYTES)], *(step.argument or (10,)))
        return _LEAVES[step.name]()(self._compressor)

    def _function(self, kind: type[Function], successors: list[Any], *arguments: Any) -> Any:
        function = kind(self._geometry, successors, *arguments)
        return self._compressor.register_function_graph(function)

    def _sizes(self) -> Any:
        # Nearly all alike, so bytes hold what is above the smallest.
        zstd = graphs.Zstd(compression_level=_SIDE_LEVEL)(self._compressor)
        return nodes.RangePack()(self._compressor, zstd)

    def _equal(self) -> Any:
        constant = graphs.Constant()(self._compressor)
        return nodes.ConvertNumToStructLE()(self._compressor, constant)

    def _lanes(self, step: Step, rest: tuple[Step, ...], stream: Type) -> Any:
        if stream == Type.Serial:
            # Bytes have one lane.
            return self._steps(rest or step.branches[0].steps, stream)
        if rest:
            lanes = nodes.TransposeSplit()(self._compressor, self._steps(rest, Type.Serial))
        else:
            branches = [self.chain(branch, Type.Serial) for branch in step.branches]
            lanes = self._function(Lanes, branches)
        if stream == Type.Struct:
            return lanes
        return nodes.ConvertNumToStructLE()(self._compressor, lanes)

    def _cast(self, step: Step, rest: Recipe) -> Any:
        graph = numbers(*step.argument)(self._compressor, self.chain(rest))
        return nodes.ConvertNumToSerialLE()(self._compressor, graph)

    def _tokenize(self, step: Step, rest: Recipe) -> Any:
        values = self.chain(step.branches[0] if step.branches else _VALUES)
        return nodes.TokenizeNumeric(sort=True)(self._compressor, values, self.chain(rest))

    def _pack(self, step: Step, rest: Recipe) -> Any:
        graph = self.chain(rest, Type.Serial)
        return self._compressor.build_static_graph(self._node(_PACK), [graph])

    def _node(self, name: str) -> Any:
        node = self._compressor.get_node(name)
        if node is None:
            raise UnsupportedError(f"this version of openzl has no node {name}")
        return node

    def _buckets(self, step: Step, rest: Recipe) -> Any:
        bits = self.chain(step.branches[0] if step.branches else _STORED, Type.Serial)
        node = self._node(_PARTITION)
        return self._function(Buckets, [self.chain(rest), bits], node, *step.argument)

    def _floats(self, step: Step, rest: Recipe) -> Any:
        fraction = self.chain(step.branches[0] if step.branches else _BYTES, Type.Struct)
        return _FLOATS[step.name]()(self._compressor, fraction, self.chain(rest, Type.Serial))

    _float16 = _bfloat16 = _float32 = _floats

    def _blocks(self, step: Step, rest: Recipe) -> Any:
        side = [self.chain(_CLASSES), self._equal(), self._sizes()]
        return self._function(Blocks, [self.chain(rest), *side], *step.argument)

    def _turned(self, rest: Recipe) -> Any:
        return _Builder(self._compressor, self._geometry.turned()).chain(rest)

    def _turn(self, step: Step, rest: Recipe) -> Any:
        return self._function(Turn, [self._turned(rest), self._equal()])

    def _planar(self, step: Step, rest: Recipe) -> Any:
        return self._function(Planar, [self._turned(rest), self._sizes(), self._equal()])

    def _spectral(self, step: Step, rest: Recipe) -> Any:
        return self._function(Spectral, [self.chain(rest), self._sizes(), self._equal()])


def build(
    compressor: Any,
    recipe: Recipe,
    geometry: Geometry,
    predictor: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """Return the graph of a recipe.

    Parameters
    ----------
    compressor : openzl.ext.Compressor
    recipe : Recipe
    geometry : Geometry
        Shape of the frame to come; read by the graph at every compression.
    predictor : callable, optional
        A node that runs before the recipe.
    """
    chain = _Builder(compressor, geometry).chain(recipe)
    if predictor is not None:
        chain = predictor(compressor, chain)
    if recipe == _STORED:
        return chain
    constant = nodes.ConvertNumToStructLE()(compressor, graphs.Constant()(compressor))
    return compressor.register_function_graph(Frame(geometry, [chain, constant]))
