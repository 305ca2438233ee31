"""Pictures with rows and columns, or bands and pixels, swapped; differences both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openzl.ext import nodes

from rumi.codec.steps import Function, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Planar", "Spectral", "Turn", "factors", "turned"]

# Odd factors of a side are multiplied up to this.
_WIDEST = 32


class Turn(Function):
    """Rows and columns swapped, so that the next number is the one below."""

    _name = "rumi.turn"

    def graph(self, state: Any) -> None:
        """Send the columns to the first graph, the sizes of equal parts to the second."""
        (edge,) = state.edges
        successor, equal_graph = state.custom_graphs
        count = edge.input.num_elts
        length = self._geometry.row_length(count)
        if count % length == 0 and 1 < length < count:
            edge = _swap(edge, length, equal_graph)
        edge.set_destination(successor)


class Planar(Function):
    """Difference from left + above - above left, as two plain differences.

    A difference along the rows is followed by one along the columns. It drops
    the first number, so one is put in its place: without it the picture would
    have an odd number of bytes, which cannot be turned fast. The residuals
    stand column by column.
    """

    _name = "rumi.planar"

    def graph(self, state: Any) -> None:
        """Send the residuals to the first graph, sizes of parts to the others."""
        (edge,) = state.edges
        successor, *side = state.custom_graphs
        length = self._geometry.row_length(edge.input.num_elts)
        _planar(edge, length, *side).set_destination(successor)


class Spectral(Function):
    """The same between bands: left + band before - left of the band before."""

    _name = "rumi.spectral"

    def graph(self, state: Any) -> None:
        """Send the residuals, band by band, to the first graph, sizes of parts to the others."""
        (edge,) = state.edges
        successor, size_graph, equal_graph = state.custom_graphs
        count, planes = edge.input.num_elts, self._geometry.planes
        if planes == 1 or count % planes or count == planes:
            nodes.DeltaInt().run(edge)[0].set_destination(successor)
            return
        filler, edge = _with_filler(edge, size_graph)
        between = _planar(edge, count // planes, size_graph, equal_graph)
        residuals = _swap(_join_numbers([filler, between], size_graph), planes, equal_graph)
        residuals.set_destination(successor)


def _planar(edge: Any, length: int, size_graph: Any, equal_graph: Any) -> Any:
    count = edge.input.num_elts
    if count % length or not 1 < length < count:
        return nodes.DeltaInt().run(edge)[0]
    filler, edge = _with_filler(edge, size_graph)
    along = _join_numbers([filler, *nodes.DeltaInt().run(edge)], size_graph)
    return nodes.DeltaInt().run(_swap(along, length, equal_graph))[0]


def _with_filler(edge: Any, size_graph: Any) -> tuple[Any, Any]:
    """Return a stream of some one number, made of the size of a stream, and that stream."""
    width = edge.input.elt_width
    parts = [edge]
    if width == 8:
        # A size has 4 bytes, so it takes those of two parts.
        parts = nodes.SplitNumeric(segment_sizes=[1, edge.input.num_elts - 1]).run(edge)
    sizes, whole = nodes.ConcatNumeric().run_multi_input(parts)
    (filler,) = numbers(width).run(*nodes.ConvertNumToSerialLE().run(sizes))
    if width < 4:
        filler, rest = nodes.SplitNumeric(segment_sizes=[1, 4 // width - 1]).run(filler)
        rest.set_destination(size_graph)
    return filler, whole


def _join_numbers(streams: Sequence[Any], size_graph: Any) -> Any:
    sizes, joined = nodes.ConcatNumeric().run_multi_input(list(streams))
    sizes.set_destination(size_graph)
    return joined


def _swap(edge: Any, length: int, equal_graph: Any) -> Any:
    """Transpose a picture of rows of `length` numbers with transpositions of bytes.

    Call the indices of a byte (row, column, byte). The bytes of each place are
    split off as planes of (row, column), each is turned to (column, row), and
    the joined planes (byte, column, row) are turned until the byte comes last.
    """
    width, rows = edge.input.elt_width, edge.input.num_elts // length
    across, down = factors(length), factors(rows)
    stream = nodes.ConvertNumToSerialLE().run(edge)[0]
    if width == 1:
        planes = [stream]
    else:
        planes = nodes.TransposeSplit().run(nodes.ConvertSerialToStruct(width).run(stream)[0])
    stream = turned(planes, across, equal_graph)
    if width > 1:
        stream = turned([stream], down + across, equal_graph)
    return numbers(width).run(stream)[0]


def factors(count: int) -> list[int]:
    """Return factors of a count: eights, what is left of two, and odd ones.

    Structs of 2, 4 and 8 bytes are turned five times as fast as others, and every
    byte of a struct costs one in the frame.
    """
    found = []
    for factor in (8, 4, 2):
        while count % factor == 0:
            found.append(factor)
            count //= factor
    odd, prime = 1, 3
    while count > 1:
        if prime * prime > count:
            prime = count
        if count % prime:
            prime += 2
            continue
        count //= prime
        if odd * prime > _WIDEST:
            found.append(odd)
            odd = 1
        odd *= prime
    return [factor for factor in (*found, odd) if factor > 1]


def turned(streams: Sequence[Any], sizes: Sequence[int], equal_graph: Any) -> Any:
    """Move the last index of each stream, which has the factors `sizes`, to its front; join all.

    Turning the last factor of an index to the front, then the one before it,
    and so on, turns the whole index. What is joined is of equal size.
    """
    for number, size in enumerate(sizes):
        lanes = [
            nodes.TransposeSplit().run(nodes.ConvertSerialToStruct(size).run(stream)[0])
            for stream in streams
        ]
        if number == len(sizes) - 1:
            return _join([lane for part in lanes for lane in part], equal_graph)
        streams = [_join(part, equal_graph) for part in lanes]
    return _join(streams, equal_graph)


def _join(streams: Sequence[Any], equal_graph: Any) -> Any:
    sizes, joined = nodes.ConcatSerial().run_multi_input(list(streams))
    sizes.set_destination(equal_graph)
    return joined
