"""What reading needs of each row: paths and header blobs, as flat buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rumi.catalog.flat import FlatBytes, Headers
from rumi.errors import RumiError
from rumi.indexing import axis, is_integer
from rumi.source import source_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rumi.catalog.sources import Base
    from rumi.catalog.table import Table
    from rumi.header import Header
    from rumi.source import SourceLike

__all__ = ["Held", "Rows", "choose", "pack_rows", "unpack_rows"]

# Row groups that are read one by one before all are read at once: by then it is
# no longer one row that is wanted.
_PATIENCE = 64


class Held:
    """Paths and headers of some rows.

    Parameters
    ----------
    table : pyarrow.Table
    name : str
        Of the catalog, for errors.
    base : Base
    """

    def __init__(self, table: Any, name: str, base: Base) -> None:
        self._base = base
        self.paths = FlatBytes.from_arrow(table.column("path"), f"{name}: column path")
        flat = FlatBytes.from_arrow(table.column("header"), f"{name}: column header")
        self.headers = Headers(flat.data, flat.offsets)
        self._etags: FlatBytes | None = None
        if "etag" in table.column_names and table.column("etag").null_count < len(table):
            import pyarrow.compute as pc

            known = pc.fill_null(table.column("etag"), "")
            self._etags = FlatBytes.from_arrow(known, f"{name}: column etag")

    def path(self, position: int) -> str:
        """Return the path of a row, as the catalog has it."""
        return self.paths.at(position).decode()

    def source(self, position: int) -> SourceLike:
        """Return what opens the file of a row."""
        etag = self._etags.at(position).decode() if self._etags is not None else None
        return self._base.source(self.path(position), etag or None)

    def header(self, position: int) -> Header:
        """Return the header of a row; errors name the file."""
        try:
            return self.headers[position]
        except RumiError as error:
            raise type(error)(f"{self.shown(position)}: {error}") from error

    def shown(self, position: int) -> str:
        """Return what errors call the file of a row."""
        return source_name(self.source(position))


class Rows:
    """The rows of a catalog, in its order: drawn one by one, or all held in memory.

    Parameters
    ----------
    table : Table
    base : Base
    chosen : ndarray of int64, shape (N,), or None
        Rows of the table; None is all.
    """

    def __init__(self, table: Table, base: Base, chosen: NDArray[np.int64] | None) -> None:
        self.table = table
        self.base = base
        self.chosen = chosen
        self._held: Held | None = None
        # The row group that was read last.
        self._recent: tuple[int, Held] | None = None
        self._reads = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.table) if self.chosen is None else len(self.chosen)

    def numbers(self, rows: Any) -> NDArray[np.int64]:
        """Return the rows of the table that rows of the catalog are."""
        return np.asarray(rows, np.int64) if self.chosen is None else self.chosen[rows]

    def all(self) -> Held:
        """Return all rows, which stay in memory."""
        if self._held is None:
            self._held = self._read(self.chosen)
            self._recent = None
        return self._held

    def draw(self, rows: Sequence[int]) -> tuple[Held, list[int]]:
        """Return what holds some rows, and their positions there."""
        if self._held is not None:
            return self._held, list(rows)
        numbers = self.numbers(list(rows))
        groups = np.unique(self.table.group_of(numbers))
        recent = self._recent
        if len(groups) == 1 and recent is not None and recent[0] == groups[0]:
            return recent[1], (numbers - self.table.group_rows(recent[0])[0]).tolist()
        self._reads += len(groups)
        if self._reads > _PATIENCE or len(groups) == self.table.group_count:
            return self.all(), list(rows)
        if len(groups) != 1:
            return self._read(numbers), list(range(len(numbers)))
        first, stop = self.table.group_rows(int(groups[0]))
        held = self._read(np.arange(first, stop))
        self._recent = (int(groups[0]), held)
        return held, (numbers - first).tolist()

    def _read(self, numbers: NDArray[np.int64] | None) -> Held:
        names = [name for name in ("path", "header", "etag") if name in self.table.schema.names]
        return Held(self.table.read(numbers, names), self.table.name, self.base)


def choose(rows: Any, size: int) -> NDArray[np.int64]:
    """Return rows of a catalog as numbers.

    Parameters
    ----------
    rows : None, int, slice, sequence of int or mask
        None is all. Slices are those of a sequence.
    size : int
        Number of rows that there are.

    Raises
    ------
    IndexError
        If a row is outside 0..size-1.
    TypeError
        If `rows` is of another kind.
    """
    if rows is None:
        return np.arange(size)
    if isinstance(rows, slice):
        return np.arange(*rows.indices(size))
    if is_integer(rows):
        return np.array([axis(rows, size, "row").start])
    found = np.asarray(rows)
    if found.dtype == bool and found.shape == (size,):
        return np.flatnonzero(found)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise TypeError(f"rows: expected integers, a slice or a mask of {size}, found {rows!r:.60}")
    wrong = np.flatnonzero((found < 0) | (found >= size))
    if wrong.size:
        raise IndexError(f"row {found[wrong[0]]} is outside 0..{size - 1}")
    return found.astype(np.int64)


def pack_rows(rows: NDArray[np.int64] | None, size: int) -> tuple[str, Any] | None:
    """Return rows in few bytes: a bit for each row of the table where they are in order."""
    if rows is None:
        return None
    if rows.size > size // 64 and bool((np.diff(rows) > 0).all()):
        mask = np.zeros(size, bool)
        mask[rows] = True
        return "bits", np.packbits(mask).tobytes()
    return "numbers", rows.tobytes()


def unpack_rows(packed: tuple[str, Any] | None) -> NDArray[np.int64] | None:
    """Return what `pack_rows` was given."""
    if packed is None:
        return None
    kind, data = packed
    if kind == "bits":
        return np.flatnonzero(np.unpackbits(np.frombuffer(data, np.uint8))).astype(np.int64)
    return np.frombuffer(data, np.int64)
