"""Graphs that OpenZL's nodes make but cannot state: decided frame by frame, at encode time.

Each is an OpenZL function graph: Python that looks at a stream and runs built-in
nodes on it. Nothing of this is needed to decode; a frame records the nodes that
ran. All choices are integer arithmetic, so every machine makes the same.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from openzl import ext as openzl
from openzl.ext import nodes

from rumi._core import keeping

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Buckets", "Frame", "Function", "Geometry", "Lanes", "Words", "numbers"]

# Local parameter of OpenZL's partition node that holds its buckets, and their most.
_PARTITION_SIZES = 121
_MAX_BUCKETS = 256

# Mean of numbers from which codes of whole bits do for them.
_LARGE_MEAN = 32

_TO_NUMBERS = {
    1: nodes.ConvertSerialToNum8,
    2: nodes.ConvertSerialToNumLE16,
    4: nodes.ConvertSerialToNumLE32,
    8: nodes.ConvertSerialToNumLE64,
}


def numbers(width: int) -> Any:
    """Return the node that reads bytes as little-endian numbers of `width` bytes."""
    return _TO_NUMBERS[width]()


@dataclass(slots=True)
class Geometry:
    """Shape of the frame that is being compressed; the encoder sets it.

    Attributes
    ----------
    planes, rows, width : int
        Bands, rows of a band, and samples of a row.
    interrupts : list of BaseException
        What ended a function graph of the frame, such as Ctrl-C. OpenZL takes any
        exception for a stream that the graph cannot take, and goes on without it.
    """

    planes: int = 1
    rows: int = 1
    width: int = 1
    interrupts: list[BaseException] = field(default_factory=list)

    def set(self, shape: tuple[int, ...]) -> None:
        """Take the shape (h, w) or (B, h, w) of a frame."""
        self.width = shape[-1]
        self.rows = shape[-2] if len(shape) > 1 else 1
        self.planes = shape[0] if len(shape) > 2 else 1

    def row_length(self, count: int) -> int:
        """Return the numbers of a row of a stream of `count` numbers.

        A sample may be several numbers, and a difference drops the first of a
        stream. A stream that is no picture at all is one row.
        """
        pixels = self.planes * self.rows * self.width
        parts = max(1, -(-count // pixels))
        length = self.width * parts
        return length if parts * pixels - count < length else max(count, 1)

    def turned(self) -> Geometry:
        """Return the shape that the frame has with rows and columns swapped."""
        return _Turned(self)


class _Turned(Geometry):
    """Columns of a frame one after another, for what comes after a turn."""

    __slots__ = ("_frame",)

    def __init__(self, frame: Geometry) -> None:
        self._frame = frame
        self.interrupts = frame.interrupts

    def row_length(self, count: int) -> int:
        """Return the numbers of a column."""
        length = self._frame.planes * self._frame.rows
        return length if -(-count // length) % self._frame.width == 0 else max(count, 1)

    def turned(self) -> Geometry:
        """Return the shape of the frame itself."""
        return self._frame


class Function(openzl.FunctionGraph):  # type: ignore[misc]
    """A function graph over one stream, with the graphs that take what it makes."""

    _name = "rumi"
    _type = openzl.TypeMask.Numeric

    def __init__(self, geometry: Geometry, successors: Sequence[Any]) -> None:
        super().__init__()
        self._geometry = geometry
        self._successors = list(successors)
        self.interrupts = geometry.interrupts

    def __init_subclass__(cls) -> None:
        """Keep what interrupts a graph, for the encoder to raise again."""
        if "graph" in cls.__dict__:
            cls.graph = keeping(cls.graph)

    def function_graph_description(self) -> Any:
        """Describe the graph to OpenZL."""
        return openzl.FunctionGraphDescription(
            name=self._name, input_type_masks=[self._type], custom_graphs=self._successors
        )


class Frame(Function):
    """A whole frame: one value alone, as in a nodata tile, is stored as that value."""

    _name = "rumi.frame"

    def graph(self, state: Any) -> None:
        """Send a constant frame to the second graph, another to the first."""
        (edge,) = state.edges
        successor, constant = state.custom_graphs
        values = edge.input.content.as_nparray()
        # Most frames differ near their start already.
        head = values[:256]
        same = bool((head == values[0]).all()) and bool((values == values[0]).all())
        edge.set_destination(constant if same else successor)


class Lanes(Function):
    """One stream for each byte of a number, each with its own graph."""

    _name = "rumi.lanes"
    _type = openzl.TypeMask.Struct

    def graph(self, state: Any) -> None:
        """Split, and send lane i to the i-th graph, or the last."""
        successors = state.custom_graphs
        for index, lane in enumerate(nodes.TransposeSplit().run(state.edges[0])):
            lane.set_destination(successors[min(index, len(successors) - 1)])


class Words(Function):
    """Entropy codes of whole two-byte numbers where that is as small as of their bytes.

    One code a number decodes faster than two, and costs little where numbers
    have 9 bits or a few more. With fewer the upper byte is 0 anyway, as it is
    where numbers that small prevail: there codes of a fraction of a bit are
    what counts, and words have none.
    """

    _name = "rumi.words"

    def __init__(self, geometry: Geometry, successors: Sequence[Any], bits: int) -> None:
        super().__init__(geometry, successors)
        self._bits = bits

    def graph(self, state: Any) -> None:
        """Send a stream of words to the first graph, another to the second."""
        (edge,) = state.edges
        words, lanes = state.custom_graphs
        values = edge.input.content.as_nparray()
        whole = False
        if values.itemsize == 2:
            bits = int(values.max(initial=0)).bit_length()
            whole = 8 < bits <= self._bits
            whole = whole and int(values.sum(dtype=np.uint64)) >= _LARGE_MEAN * values.size
        edge.set_destination(words if whole else lanes)


class Buckets(Function):
    """About logarithmic buckets of values, and the bits that tell values of one apart.

    One entropy-coded byte stands for a whole number, and the bits within a
    bucket, which are close to noise, are stored as they are.
    """

    _name = "rumi.buckets"

    def __init__(
        self, geometry: Geometry, successors: Sequence[Any], partition: Any, parts: int
    ) -> None:
        super().__init__(geometry, successors)
        self._partition = partition
        self._parts = parts

    def graph(self, state: Any) -> None:
        """Send the bucket of each number to the first graph, the bits to the second."""
        (edge,) = state.edges
        values = edge.input.content.as_nparray()
        sizes = _bucket_sizes(self._parts, int(values.max(initial=0)))
        parameters = openzl.LocalParams(
            {_PARTITION_SIZES: struct.pack(f"<{len(sizes) + 1}Q", 0, *sizes)}
        )
        parts = edge.run_node(self._partition, params=parameters)
        for part, successor in zip(parts, state.custom_graphs, strict=True):
            part.set_destination(successor)


def _bucket_sizes(parts: int, largest: int) -> list[int]:
    """Return sizes of buckets up to a number: 1 up to 2 `parts`, then `parts` an octave.

    A frame spends 8 bytes on each, hence none beyond the largest number.
    """
    sizes = [1] * (2 * parts)
    reached, size = 2 * parts, 1
    while reached <= largest and len(sizes) + parts < _MAX_BUCKETS:
        size *= 2
        sizes += [size] * parts
        reached += size * parts
    if reached <= largest:
        sizes.append(largest + 1 - reached)
    return sizes
