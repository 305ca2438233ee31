"""Sorting the blocks of a picture by the size of their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from openzl.ext import nodes

from rumi.codec.steps import Function, Geometry, numbers
from rumi.codec.turns import factors, turned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Blocks"]

# A class of blocks with fewer numbers than this is joined with the next: its
# entropy tables would cost more than they save.
_MIN_CLASS = 2048


class Blocks(Function):
    """Blocks of the picture sorted by the size of their numbers.

    Every block of `height` x `width` numbers belongs to a class, the bit length
    of its mean; the numbers of each class go on as one stream, which has one
    narrow distribution where the whole picture has a mixture. The class of each
    run of a row is stored too: it costs some hundredths of a bit a number.
    """

    _name = "rumi.blocks"

    def __init__(
        self, geometry: Geometry, successors: Sequence[Any], height: int, width: int
    ) -> None:
        super().__init__(geometry, successors)
        self._height = height
        self._width = width
        self._sizes: tuple[tuple[int, ...], list[int]] = ((), [])

    def graph(self, state: Any) -> None:
        """Send each class to the first graph, the classes and sizes to the others."""
        (edge,) = state.edges
        successor, class_graph, equal_graph, size_graph = state.custom_graphs
        values = edge.input.content.as_nparray()
        width = values.itemsize
        length = self._geometry.row_length(values.size)
        tags, count = _classes(values, length, self._height, self._width)
        if count == 1:
            edge.set_destination(successor)
            return
        streams = nodes.DispatchSerial(
            segment_tags=tags,
            segment_sizes=self._segment_sizes(values.size, length, width),
            num_tags=count,
        ).run(nodes.ConvertNumToSerialLE().run(edge)[0])
        runs = -(-length // self._width)
        classes, rest = _whole_blocks(streams[0], runs, self._height)
        once = _without_repeats(classes, runs, self._height, equal_graph)
        once.set_destination(class_graph)
        if rest is not None:
            rest.set_destination(size_graph)
        streams[1].set_destination(size_graph)
        for stream in streams[2:]:
            numbers(width).run(stream)[0].set_destination(successor)

    def _segment_sizes(self, count: int, length: int, width: int) -> list[int]:
        """Return the bytes of each run; the same for every frame of a shape."""
        key = (count, length, width)
        if self._sizes[0] != key:
            rows = -(-count // length)
            row = np.minimum(self._width, length - np.arange(0, length, self._width)) * width
            sizes: list[int] = np.tile(row, rows).tolist()
            # Runs that end after the stream does are cut, the last ones to nothing.
            missing = (rows * length - count) * width
            for index in reversed(range(len(sizes))):
                if missing == 0:
                    break
                cut = min(sizes[index], missing)
                sizes[index] -= cut
                missing -= cut
            self._sizes = (key, sizes)
        return self._sizes[1]


def _classes(values: NDArray[Any], length: int, height: int, width: int) -> tuple[list[int], int]:
    """Return the class of each run of `width` numbers of each row, and how many there are.

    Every step is exact integer arithmetic: a logarithm that differs in its last
    bit between processors would give another file.
    """
    rows = -(-values.size // length)
    sums = _fold(values, length, height)
    sums = np.add.reduceat(sums, np.arange(0, length, width), axis=1, dtype=np.uint64)
    tall = np.minimum(height, rows - np.arange(0, rows, height))
    broad = np.minimum(width, length - np.arange(0, length, width))
    area = np.multiply.outer(tall, broad)
    # The exponent of a float is exact. Four times the mean tells 0 from 1/4 and 1/2.
    level = np.maximum(np.frexp(sums * 4.0 / area)[1], 0)
    weight: NDArray[Any] = np.bincount(level.ravel(), weights=area.ravel())
    classes = _joined(weight)[level]
    return np.repeat(classes, tall, axis=0).ravel().tolist(), int(classes.max()) + 1


def _whole_blocks(edge: Any, runs: int, height: int) -> tuple[Any, Any]:
    """Split the classes of rows that fill no block off those of rows that do."""
    rows = edge.input.num_elts // runs
    rest = rows % height
    if rest == 0 or rest == rows:
        return edge, None
    sizes = [(rows - rest) * runs, rest * runs]
    whole, rest = nodes.SplitNumeric(segment_sizes=sizes).run(edge)
    return whole, rest


def _without_repeats(edge: Any, runs: int, height: int, equal_graph: Any) -> Any:
    """Return the classes of blocks, each once, down the picture.

    Classes stand run by run and row by row, so those of a block stand `height`
    times. Turned, they stand `height` times in a row, and lanes of as many
    bytes are all the same.
    """
    if height == 1 or edge.input.num_elts < height * runs:
        return edge
    stream = nodes.ConvertNumToSerialLE().run(edge)[0]
    if runs > 1:
        stream = turned([stream], factors(runs), equal_graph)
    lanes = nodes.TransposeSplit().run(nodes.ConvertSerialToStruct(height).run(stream)[0])
    same = [numbers(1).run(lane)[0] for lane in lanes]
    return nodes.DedupNumeric().run_multi_input(same)[0]


def _fold(values: NDArray[Any], length: int, height: int) -> NDArray[Any]:
    """Sum every `height` rows, in the narrowest type that holds the sums.

    A difference has dropped a number, so the last row may be short: it is
    summed as if zeros followed.
    """
    if values.itemsize == 8:
        # Sums of all would overflow; beyond this size all are alike.
        values = np.minimum(values, np.uint64(1 << 48))
    total = {1: np.uint16, 2: np.uint32}.get(values.itemsize, np.uint64)
    whole = values.size // (length * height) * (length * height)
    groups = values[:whole].reshape(-1, height, length)
    sums = groups[:, 0].astype(total)
    for row in range(1, height):
        sums += groups[:, row]
    rest = values[whole:]
    if rest.size == 0:
        return sums
    last = np.zeros((height, length), total)
    last.reshape(-1)[: rest.size] = rest
    return np.concatenate([sums, last.sum(axis=0, dtype=total)[np.newaxis]])


def _joined(weight: NDArray[Any]) -> NDArray[np.uint8]:
    """Give the levels that occur numbers, joining neighbours until each has enough numbers."""
    lookup = np.zeros(weight.size, np.uint8)
    current, held = 0, 0.0
    for level, numbers_of in enumerate(weight.tolist()):
        if numbers_of and held >= _MIN_CLASS:
            current, held = current + 1, 0.0
        lookup[level] = current
        held += numbers_of
    if current and held < _MIN_CLASS:
        lookup[lookup == current] = current - 1
    return lookup
