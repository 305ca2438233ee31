"""The Parquet file of a catalog: written whole, opened where it is used, read by row groups."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np

from rumi.catalog.schema import arrow, geo_metadata
from rumi.errors import FormatError, StaleHeaderError
from rumi.source import is_path, is_remote, local_path, open_source, source_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rumi.source import SourceLike

__all__ = ["Table", "write"]

# Rows of a row group: few, because whoever wants one row decodes all of them, and
# many enough that a million rows do not make an index of megabytes.
_GROUP = 4096

# Unique in each row, so that a dictionary of the values would hold all of them.
_UNIQUE = ("path", "header", "mtime", "etag", "sha256", "geometry", "bbox", "transform")

# Of these, the least and the largest of a row group tell nothing, and may be long.
_NO_STATISTICS = ("path", "header", "etag", "sha256", "geometry", "transform", "band_names")


def write(table: Any, file: BinaryIO) -> None:
    """Write a table as GeoParquet."""
    arrow()
    from pyarrow import parquet

    metadata = {**(table.schema.metadata or {}), **geo_metadata(table)}
    names = [(field.name, column) for field in table.schema for column in _leaves(field)]
    parquet.write_table(
        table.replace_schema_metadata(metadata),
        file,
        row_group_size=_GROUP,
        compression="zstd",
        use_dictionary=[column for name, column in names if name not in _UNIQUE],
        write_statistics=[column for name, column in names if name not in _NO_STATISTICS],
        store_schema=True,
    )


def _leaves(field: Any) -> list[str]:
    """Return the paths of the columns that Parquet makes of a field."""
    from pyarrow import types

    kind = field.type
    if types.is_struct(kind):
        return [f"{field.name}.{leaf}" for part in kind for leaf in _leaves(part)]
    if types.is_list(kind) or types.is_large_list(kind):
        return [f"{field.name}.list.element"]
    return [field.name]


class _Opened:
    """A file that is read by position, and what its index says."""

    def __init__(self, held: Any, metadata: Any) -> None:
        self.held = held
        self.metadata = metadata
        counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        # First row of each row group, and the end.
        self.starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


class Table:
    """One state of a Parquet file.

    Parameters
    ----------
    source : path, URL, RemoteSource or bytes-like
        A remote file is read whole.

    Notes
    -----
    Pickles as its source, and is opened again where it is used, if it is the same
    state still. A local file in whose place another one is put meanwhile goes on
    being read as it was. Safe to use from many threads, and in forked processes:
    the file is read by position, and each thread has a reader of its own.
    """

    def __init__(self, source: SourceLike) -> None:
        self.name = source_name(source)
        # Whatever folder the process is in later.
        local = is_path(source) and not is_remote(source)
        self.source = os.path.abspath(os.fsdecode(local_path(source))) if local else source
        self._identity: Any = None
        self._opened: _Opened | None = None
        self._readers = threading.local()

    def _open(self) -> _Opened:
        """Return the opened file; of several threads that come first, one opens it for all.

        Raises
        ------
        FormatError
            If it is no Parquet file.
        StaleHeaderError
            If it is another one than that which was pickled.
        OSError
            If it cannot be read.
        """
        if self._opened is None:
            pa = arrow()
            store = open_source(self.source)
            if is_remote(self.source):
                held: Any = pa.BufferReader(store.read(0, store.size))
            elif isinstance(self.source, str):
                # Not mapped into memory: that of a file which is cut meanwhile would kill us.
                held = pa.OSFile(self.source)
            else:
                held = pa.BufferReader(self.source)
            if self._identity not in (None, store.identity):
                raise StaleHeaderError(
                    f"{self.name}: the catalog was replaced since it was opened; open it again"
                )
            opened = _Opened(held, self._reader(held, None).metadata)
            self._identity, self._opened = store.identity, opened
        return self._opened

    def _reader(self, held: Any, metadata: Any) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            return parquet.ParquetFile(held, metadata=metadata)
        except pa.ArrowInvalid as error:
            raise FormatError(f"{self.name}: expected a Parquet file: {error}") from error

    def file(self) -> Any:
        """Return this thread's ParquetFile; errors as of a first opening."""
        found = getattr(self._readers, "file", None)
        if found is None:
            opened = self._open()
            found = self._readers.file = self._reader(opened.held, opened.metadata)
        return found

    def require(self, *names: str) -> Self:
        """Return self; refuse a file without some columns with FormatError."""
        found = self.schema.names
        if not set(names) <= set(found):
            raise FormatError(
                f"{self.name}: expected a catalog with the columns {' and '.join(names)}, found "
                f"{', '.join(found)}"
            )
        return self

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.file().metadata.num_rows)

    @property
    def schema(self) -> Any:
        """Columns and types as of Arrow."""
        return self.file().schema_arrow

    @property
    def group_count(self) -> int:
        """Number of row groups."""
        return int(self.file().metadata.num_row_groups)

    def group_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row group of each row."""
        return np.searchsorted(self._open().starts, rows, side="right") - 1

    def group_rows(self, group: int) -> tuple[int, int]:
        """Return the first row of a row group, and the end."""
        first, stop = self._open().starts[group : group + 2]
        return int(first), int(stop)

    def read_groups(self, groups: Sequence[int], columns: Sequence[str] | None = None) -> Any:
        """Return row groups as a table of Arrow."""
        names = None if columns is None else list(columns)
        import pyarrow as pa

        try:
            # No threads of Arrow's: a process that is forked later would lack them.
            return self.file().read_row_groups(list(groups), columns=names, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise FormatError(
                f"{self.name}: cannot be read as Parquet any further; was it changed while it was "
                f"open? {error}"
            ) from error

    def read(self, rows: NDArray[np.int64] | None, columns: Sequence[str] | None = None) -> Any:
        """Return rows, in the order asked for, as a table of Arrow; None is all."""
        if rows is None:
            return self.read_groups(range(self.group_count), columns)
        groups = self.group_of(rows)
        wanted = np.unique(groups)
        table = self.read_groups(wanted.tolist(), columns)
        starts = self._open().starts
        sizes = starts[wanted + 1] - starts[wanted]
        # Where each row group that was read starts in the table.
        places = np.concatenate(([0], np.cumsum(sizes)[:-1])) if wanted.size else wanted
        position = np.searchsorted(wanted, groups)
        return table.take(rows - starts[groups] + places[position])

    def corner_statistics(self) -> NDArray[np.float64] | None:
        """Return the box around each row group, shape (4, groups), None where one is unknown."""
        meta = self.file().metadata
        names = [meta.schema.column(i).path for i in range(meta.num_columns)]
        corners = ["bbox.xmin", "bbox.ymin", "bbox.xmax", "bbox.ymax"]
        if not set(corners) <= set(names):
            return None
        found = np.empty((4, meta.num_row_groups))
        for group in range(meta.num_row_groups):
            for place, corner in enumerate(corners):
                known = meta.row_group(group).column(names.index(corner)).statistics
                if known is None:
                    return None
                # No box at all meets none.
                found[place, group] = np.nan
                if known.has_min_max:
                    found[place, group] = known.min if place < 2 else known.max
                elif known.num_values:
                    return None
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Leave the opened file behind."""
        self._open()
        return {"source": self.source, "name": self.name, "_identity": self._identity}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open it at the next need."""
        self.__init__(state["source"])  # type: ignore[misc]
        self.name, self._identity = state["name"], state["_identity"]
