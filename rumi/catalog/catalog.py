"""The catalog: a Parquet file of paths and header blobs, as Python sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, Unpack, overload

import numpy as np

from rumi.catalog import filters
from rumi.catalog.building import BuildOptions, Columns, Options, append, build
from rumi.catalog.flat import Headers
from rumi.catalog.rows import Rows, choose, pack_rows, unpack_rows
from rumi.catalog.sources import Base, folder_of
from rumi.catalog.table import Table
from rumi.catalog.verifying import Parts, verify
from rumi.image import Image
from rumi.indexing import axis, is_integer
from rumi.read import read_many
from rumi.remote import RemoteSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.catalog.describe import Failure
    from rumi.remote import ObjectStore
    from rumi.source import SourceLike

__all__ = ["Catalog"]

# Rows that iteration holds at a time.
_STRIDE = 4096


class Catalog:
    """Rumi files with their header blobs: a GeoParquet file, opened lazily.

    Make one with `Catalog.build` or `Catalog.open`. Rows count from zero;
    ``catalog[7]`` is an `Image`, ``catalog[:100]``, ``catalog[[3, 5]]`` and
    ``catalog[mask]`` are catalogs of those rows.

    Attributes
    ----------
    failures : list of Failure
        Files that `build` or `append` could not take, with the reason; empty in
        a catalog that was opened.

    Notes
    -----
    Opening reads the index of the Parquet file, drawing a row one row group.
    `load`, or drawing from many row groups, holds the paths and blobs of all rows
    as flat buffers, which forked workers share. Pickles as the place of the file
    and the rows; where it is unpickled it is opened again. Safe to use from many
    threads.
    """

    def __init__(self, rows: Rows, failures: Sequence[Failure] = ()) -> None:
        self._rows = rows
        self.failures = list(failures)

    @classmethod
    def open(cls, src: SourceLike, *, store: ObjectStore | None = None) -> Self:
        """Open a catalog.

        Parameters
        ----------
        src : path, URL, RemoteSource or bytes-like
            A Parquet file with at least the columns path and header, whoever
            wrote it. A remote one is read whole.
        store : ObjectStore, optional
            Reads the files that are in it, with its credentials and settings.
            Relative paths of a local catalog are then names in the store.

        Raises
        ------
        FormatError
            If it is no catalog.
        UnsupportedError
            If pyarrow is missing.
        OSError
            If it cannot be read.
        """
        folder = folder_of(src)
        if store is None and isinstance(src, RemoteSource):
            store = src.store
        elif store is not None and "://" not in folder:
            folder = ""
        return cls(Rows(Table(src).require("path", "header"), Base(folder, store), None))

    @classmethod
    def build(
        cls,
        paths: Any,
        dst: SourceLike,
        *,
        workers: int = 1,
        client: Any = None,
        columns: Columns = None,
        relative: bool | None = None,
        sha256: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Self:
        """Make a catalog of rumi files.

        Parameters
        ----------
        paths : path, pattern, folder, URL, ObjectStore, or iterable of them
            Folders and URLs that end in ``/`` are searched for .rumi at any depth;
            patterns such as ``"scenes/**/B0?.rumi"`` work in stores too. Results of
            `rumi.geotiff.convert_many` bring their nodata and band names along.
        dst : path, URL or RemoteSource
            Replaced whole, or left as it was.
        workers : int
            Processes. They are spawned: a script that asks for several needs the
            usual ``if __name__ == "__main__":``.
        client : dask.distributed.Client, optional
            Reads the files on its cluster instead; paths must mean the same there.
        columns : mapping or callable, optional
            More columns, and ``nodata`` (text or number) and ``band_names``, which
            the files do not hold: from names to a sequence of one value for each
            of `paths` (all files of a folder get its value), or a function from a
            path, as the catalog writes it, to a mapping of values.
        relative : bool, optional
            How paths are written. By default relative to the folder of `dst` where
            they are below it, else absolute; True writes all local ones relative,
            False none.
        sha256 : bool
            Read every file whole and record its SHA-256.
        progress : callable, optional
            Called with the numbers of files done and in all.

        Returns
        -------
        Catalog
            Of the files that are good; `failures` has a row for each other.

        Raises
        ------
        TypeError, ValueError
            If an argument cannot be used.
        FileNotFoundError
            If a folder, pattern or prefix has no rumi file.
        UnsupportedError
            If a package is missing.
        OSError
            If `dst` cannot be written.

        Notes
        -----
        Of each file, what stands before its frames is read and checked. A worker
        that dies costs the file that it died of.
        """
        options = Options(
            workers=workers,
            client=client,
            columns=columns,
            relative=relative,
            sha256=sha256,
            progress=progress,
        )
        base, failures = build(paths, dst, options)
        return cls(Rows(Table(dst), base, None), failures)

    def append(self, paths: Any, **options: Unpack[BuildOptions]) -> Self:
        """Return the catalog with more files, written in the place of the old one.

        A file that is in the catalog already keeps its row and gets its new
        header there; columns that files do not tell keep their values unless
        they are given.

        Parameters
        ----------
        paths, **options
            As of `build`.

        Raises
        ------
        ValueError
            If this is a part of a catalog, or it has no place to be written to; or
            as `build` does.
        TypeError, OSError, UnsupportedError
            As `build`.

        Notes
        -----
        The whole file is written anew; `self` stays what it was.
        """
        rows = self._rows
        if rows.chosen is not None or not isinstance(rows.table.source, (str, RemoteSource)):
            raise ValueError(f"{self.name}: only a whole catalog in a file can be appended to")
        failures = append(rows.table, paths, Options(**options))
        return type(self)(Rows(Table(rows.table.source), rows.base, None), failures)

    @property
    def name(self) -> str:
        """What errors call the catalog."""
        return self._rows.table.name

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return list(self._rows.table.schema.names)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def load(self) -> Self:
        """Hold paths and blobs of all rows in memory, and check every blob; return self.

        Do it before workers are forked, so that they share the memory.

        Raises
        ------
        HeaderError
            If a blob breaks the specification; the row and the file are named.
        """
        held = self._rows.all()
        held.headers.check(held.shown)
        return self

    @property
    def headers(self) -> Headers:
        """Blobs of all rows as one flat buffer; ``.fields`` are their columns."""
        return self._rows.all().headers

    @overload
    def __getitem__(self, key: int) -> Image: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | NDArray[Any]) -> Self: ...
    def __getitem__(self, key: Any) -> Image | Self:
        """Return the image of a row, or a catalog of some rows.

        Raises
        ------
        IndexError
            If a row is outside 0..N-1: negative ones do not wrap.
        TypeError
            If it is no integer, slice, sequence of integers or mask.
        """
        if is_integer(key):
            return self.image(key)
        chosen = self._rows.numbers(self._chosen(key))
        return type(self)(Rows(self._rows.table, self._rows.base, chosen))

    def __iter__(self) -> Iterator[Image]:
        """Yield the image of each row."""
        for start in range(0, len(self), _STRIDE):
            held, positions = self._rows.draw(range(start, min(start + _STRIDE, len(self))))
            for position in positions:
                yield Image(held.source(position), held.header(position))

    def image(self, row: SupportsIndex) -> Image:
        """Return the image of a row; nothing of its file is read.

        Raises
        ------
        IndexError
            If there is no such row.
        HeaderError
            If its blob breaks the specification; the file is named.
        """
        held, (position,) = self._rows.draw([axis(row, len(self), "row").start])
        return Image(held.source(position), held.header(position))

    def sources(self, rows: Any = None) -> list[SourceLike]:
        """Return what opens the files of rows: absolute paths, or remote sources."""
        held, positions = self._rows.draw(self._chosen(rows).tolist())
        return [held.source(position) for position in positions]

    def paths(self, rows: Any = None) -> list[str]:
        """Return the paths of rows as the catalog has them."""
        held, positions = self._rows.draw(self._chosen(rows).tolist())
        return [held.path(position) for position in positions]

    def read(
        self,
        rows: Any = None,
        windows: Any = None,
        *,
        bands: Any = None,
        out: Any = None,
        threads: int | None = None,
    ) -> NDArray[Any]:
        """Read a window of each of some rows, all of one shape and type, in one batch.

        Parameters
        ----------
        rows : int, slice, sequence of int or mask, optional
            A row may come more than once; all by default.
        windows : window, or one for each of the rows, optional
            As of `rumi.read_many`; whole images by default.
        bands, out, threads : optional
            As of `rumi.read_many`.

        Returns
        -------
        ndarray, shape (N, B, H, W)

        Raises
        ------
        IndexError, TypeError, ValueError, RumiError, OSError
            As `rumi.read_many`; an error names its item, which is a place among the
            rows asked for, and its file.

        Notes
        -----
        Nothing but frames is read.
        """
        chosen = self._chosen(rows).tolist()
        if not chosen:
            raise ValueError("expected at least one row, found none")
        held, positions = self._rows.draw(chosen)
        # Several chips of a file share what is made of its row.
        files = {place: (held.source(place), held.header(place)) for place in set(positions)}
        sources, headers = zip(*(files[place] for place in positions), strict=True)
        return read_many(sources, headers, windows, bands=bands, out=out, threads=threads)

    def filter(self, bbox: Any = None, where: Any = None) -> Self:
        """Return a catalog of the rows for which all conditions hold.

        Parameters
        ----------
        bbox : (west, south, east, north), optional
            In degrees: the box of the footprint meets it. West may be larger than
            east, across the antimeridian. A row without footprint is not found.
        where : str, list of tuples or pyarrow.compute.Expression, optional
            Such as ``"cloud < 10 and split == 'train'"``; see
            `rumi.catalog.filters.expression`.

        Raises
        ------
        TypeError, ValueError
            If a condition cannot be used.
        """
        table = self._rows.table
        kept = np.ones(len(table), bool)
        if bbox is not None:
            kept &= filters.in_box(table, filters.check_box(bbox))
        if where is not None:
            kept &= filters.matching(table, where)
        old = self._rows.chosen
        chosen = np.flatnonzero(kept).astype(np.int64) if old is None else old[kept[old]]
        return type(self)(Rows(table, self._rows.base, chosen))

    def to_arrow(self, columns: Sequence[str] | None = None) -> Any:
        """Return the rows as a pyarrow.Table, with all columns by default."""
        return self._rows.table.read(self._rows.chosen, columns)

    def verify(
        self,
        *,
        deep: bool = False,
        workers: int = 1,
        client: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[Failure]:
        """Return the rows that are not true of their files any more.

        Parameters
        ----------
        deep : bool
            Read the index of every file, and all of it where a SHA-256 is recorded.
            By default a local file of the recorded size and time is trusted.
        workers, client, progress
            As of `build`.

        Returns
        -------
        list of Failure
            With row, path, kind ("StaleHeaderError", "FileNotFoundError", ...) and
            message.
        """
        parts, path = Parts(self._rows, deep=deep), self._rows.all().path
        return verify(parts, path, len(self), workers=workers, client=client, progress=progress)

    def _chosen(self, rows: Any) -> NDArray[np.int64]:
        return choose(rows, len(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle where the catalog is and which rows it has, no contents."""
        rows = self._rows
        packed = pack_rows(rows.chosen, len(rows.table))
        return _restore, (type(self), rows.table, rows.base, packed)

    def _repr_html_(self) -> str:
        from rumi.display import catalog_html

        kinds = {field.name: str(field.type) for field in self._rows.table.schema}
        return catalog_html(self.name, {"rows": len(self)}, kinds)

    def __repr__(self) -> str:
        """Show name and number of rows."""
        return f"<rumi.Catalog {self.name!r} of {len(self):,} rows>"


def _restore(kind: type[Catalog], table: Table, base: Base, packed: Any) -> Catalog:
    return kind(Rows(table, base, unpack_rows(packed)))
