"""Sorting the blocks of a picture by the size of their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from openzl.ext import nodes

from rumi.codec.steps import Function, Geometry, numbers
from rumi.codec.turns import turned

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
        successor, class_graph, size_graph = state.custom_graphs
        values = edge.input.content.as_nparray()
        width = values.itemsize
        length = self._geometry.row_length(values.size)
        tags = _classes(values, length, self._height, self._width)
        if tags is None:
            edge.set_destination(successor)
            return
        streams = nodes.DispatchSerial(
            segment_tags=tags.tolist(),
            segment_sizes=self._segment_sizes(values.size, length, width),
            num_tags=int(tags.max()) + 1,
        ).run(nodes.ConvertNumToSerialLE().run(edge)[0])
        runs = -(-length // self._width)
        _without_repeats(streams[0], runs, self._height, class_graph, size_graph)
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
            # Runs that begin before the stream does are cut, the first ones to nothing.
            missing = (rows * length - count) * width
            for index, size in enumerate(sizes):
                if missing == 0:
                    break
                sizes[index] = size - min(size, missing)
                missing -= min(size, missing)
            self._sizes = (key, sizes)
        return self._sizes[1]


def _classes(
    values: NDArray[Any], length: int, height: int, width: int
) -> NDArray[np.uint8] | None:
    """Return the class of each run of `width` numbers of each row, None where all are one.

    Every step is exact integer arithmetic: a logarithm that differs in its last
    bit between processors would give another file.
    """
    rows = -(-values.size // length)
    missing = rows * length - values.size
    if missing:
        values = np.concatenate([np.zeros(missing, values.dtype), values])
    picture = values.reshape(rows, length)
    # Sums of numbers of 8 bytes would overflow; beyond this size all are alike.
    wide = picture if picture.itemsize < 8 else np.minimum(picture, np.uint64(1 << 48))
    total = np.uint32 if picture.itemsize <= 2 else np.uint64
    sums = _fold(wide, height, total)
    sums = np.add.reduceat(sums, np.arange(0, length, width), axis=1)
    tall = np.minimum(height, rows - np.arange(0, rows, height))
    broad = np.minimum(width, length - np.arange(0, length, width))
    area = np.multiply.outer(tall, broad)
    # The exponent of a float is exact. Four times the mean tells 0 from 1/4 and 1/2.
    level = np.frexp((4 * sums.astype(np.float64)) / area)[1].clip(0)
    weight = np.zeros(int(level.max()) + 1, np.int64)
    np.add.at(weight, level.ravel(), area.ravel())
    tags = _joined(weight)[level]
    if int(tags.max()) == 0:
        return None
    return np.repeat(tags, tall, axis=0).ravel()


def _without_repeats(edge: Any, runs: int, height: int, class_graph: Any, size_graph: Any) -> None:
    """Store the classes of runs once for each block, down the picture.

    Classes stand run by run and row by row, so those of a block stand `height`
    times. Turned, they stand `height` times in a row, and lanes of as many
    bytes are all the same.
    """
    rows = edge.input.num_elts // runs
    whole = rows // height * height
    if height == 1 or whole == 0:
        edge.set_destination(class_graph)
        return
    if whole < rows:
        edge, rest = nodes.SplitNumeric(segment_sizes=[whole * runs, (rows - whole) * runs]).run(
            edge
        )
        rest.set_destination(size_graph)
    stream = nodes.ConvertNumToSerialLE().run(edge)[0]
    if runs > 1:
        stream = turned([stream], [runs], size_graph)
    lanes = nodes.TransposeSplit().run(nodes.ConvertSerialToStruct(height).run(stream)[0])
    same = [numbers(1).run(lane)[0] for lane in lanes]
    nodes.DedupNumeric().run_multi_input(same)[0].set_destination(class_graph)


def _fold(picture: NDArray[Any], height: int, total: type[Any]) -> NDArray[Any]:
    """Sum every `height` rows."""
    whole = picture.shape[0] // height * height
    groups = picture[:whole].reshape(-1, height, picture.shape[1])
    sums = groups[:, 0].astype(total)
    for row in range(1, height):
        sums += groups[:, row]
    if whole == picture.shape[0]:
        return sums
    rest = picture[whole:].sum(axis=0, dtype=total)
    return np.concatenate([sums, rest[np.newaxis]])


def _joined(weight: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Give the levels that occur numbers, joining neighbours until each has enough numbers."""
    lookup = np.zeros(weight.size, np.uint8)
    current, held = 0, 0
    for level in np.flatnonzero(weight):
        if held >= _MIN_CLASS:
            current, held = current + 1, 0
        lookup[level] = current
        held += int(weight[level])
    if current and held < _MIN_CLASS:
        lookup[lookup == current] = current - 1
    return lookup
