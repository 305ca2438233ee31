"""Making catalogs: expand what the caller means, describe each file, write one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np

from rumi import pools
from rumi.catalog.describe import (
    Failure,
    Outcome,
    Row,
    describe_all,
    failure,
    leave_interrupts,
)
from rumi.catalog.schema import GIVEN, OWN, make_table
from rumi.catalog.sources import Base, Found, Speller, expand, folder_of
from rumi.catalog.table import write
from rumi.output import output_file
from rumi.remote import RemoteSource
from rumi.source import source_name

if TYPE_CHECKING:
    from rumi.catalog.table import Table
    from rumi.remote import ObjectStore
    from rumi.source import SourceLike

__all__ = ["BuildOptions", "Columns", "Options", "append", "build"]

# Free columns: values for each of the sources, or a function of a path.
Columns: TypeAlias = "Mapping[str, Sequence[Any]] | Callable[[str], Mapping[str, Any]] | None"

Progress: TypeAlias = Callable[[int, int], object]

# Files of one task: enough that handing them over costs little, few enough that
# processes end together and progress is seen.
_PART = 32

_DERIVED = frozenset(OWN) - frozenset(GIVEN)


class BuildOptions(TypedDict, total=False):
    """What `Catalog.build` and `Catalog.append` take."""

    workers: int
    client: Any
    columns: Columns
    relative: bool | None
    sha256: bool
    progress: Progress | None


class Options:
    """How to build, checked; see `Catalog.build`."""

    def __init__(
        self,
        *,
        workers: int = 1,
        client: Any = None,
        columns: Columns = None,
        relative: bool | None = None,
        sha256: bool = False,
        progress: Progress | None = None,
    ) -> None:
        pools.check(workers, client)
        if isinstance(columns, Mapping):
            _refuse_derived(columns)
        elif columns is not None and not callable(columns):
            raise TypeError(
                "columns: expected a mapping from names to sequences, or a function of a path, "
                f"found {type(columns).__name__}"
            )
        self.workers = workers
        self.client = client
        self.columns = columns
        self.relative = relative
        self.sha256 = sha256
        self.progress = progress


def _refuse_derived(names: Mapping[str, Any]) -> None:
    if taken := sorted(set(names) & _DERIVED):
        raise ValueError(f"columns: {', '.join(taken)}: told by the files, and not to be given")


def build(paths: Any, dst: SourceLike, options: Options) -> tuple[Base, list[Failure]]:
    """Write a catalog; return what its paths are relative to, and what failed."""
    file = output_file(dst)
    folder = folder_of(dst)
    table, failures, found = _collect(paths, folder, options)
    with file as out:
        write(table, out)
    if isinstance(dst, RemoteSource):
        return Base(folder, dst.store), failures
    store = _store_of(found)
    # Where all files are in one store, that is what paths are relative to.
    return Base(folder if store is None else "", store), failures


def append(table: Table, paths: Any, options: Options) -> list[Failure]:
    """Write a catalog anew, with more files; return what failed."""
    file = output_file(table.source)
    new, failures, _ = _collect(paths, folder_of(table.source), options)
    merged = _merge(table.read(None), new)
    with file as out:
        write(merged, out)
    return failures


def _collect(sources: Any, folder: str, options: Options) -> tuple[Any, list[Failure], list[Found]]:
    """Describe files.

    Parameters
    ----------
    sources : path, pattern, folder, URL, store, or iterable of them
    folder : str
        What relative paths are relative to.
    options : Options

    Returns
    -------
    table : pyarrow.Table
        A row for each file that is good.
    failures : list of Failure
        One for each that is not.
    found : list of Found
        All of them.
    """
    sources = sources if not isinstance(sources, Iterator) else list(sources)
    found = expand(sources)
    if not found:
        raise ValueError("expected at least one file, found none")
    values = _given(found, sources, options.columns)
    spell = Speller(folder, options.relative)
    outcomes = _outcomes(found, options)
    paths, rows, failures, kept = [], [], [], []
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, Row):
            try:
                paths.append(spell(found[number].source))
                rows.append(outcome)
                kept.append(number)
                continue
            except ValueError as error:
                outcome = failure(found[number].source, error)
        failures.append(outcome)
    return make_table(paths, rows, values(kept, paths)), failures, found


def _outcomes(found: Sequence[Found], options: Options) -> list[Outcome]:
    """Return what became of each file, in order."""
    outcomes: list[Outcome | None] = [None] * len(found)
    numbers = []
    for number, item in enumerate(found):
        if item.problem is None:
            numbers.append(number)
        else:
            outcomes[number] = Failure(source_name(item.source), *item.problem)
    groups = [numbers[start : start + _PART] for start in range(0, len(numbers), _PART)]
    work = describe_and_digest if options.sha256 else describe
    parts = [[found[number].source for number in group] for group in groups]
    done = len(found) - len(numbers)
    running = pools.run(work, parts, options.workers, options.client, leave_interrupts)
    for part, results in running:
        for number, result in zip(groups[part], results, strict=True):
            outcomes[number] = result
            if isinstance(result, pools.Lost):
                name = source_name(found[number].source)
                outcomes[number] = Failure(name, result.kind, result.reason)
        done += len(results)
        if options.progress is not None:
            options.progress(done, len(found))
    return [outcome for outcome in outcomes if outcome is not None]


def describe(sources: Sequence[Any]) -> list[Outcome]:
    """Describe files; importable by name, as a task must be."""
    return describe_all(sources, sha256=False)


def describe_and_digest(sources: Sequence[Any]) -> list[Outcome]:
    """Describe files, with the SHA-256 of each."""
    return describe_all(sources, sha256=True)


def _given(
    found: Sequence[Found], sources: Any, columns: Columns
) -> Callable[[Sequence[int], Sequence[str]], dict[str, list[Any]]]:
    """Return what makes the columns that files do not tell, from the rows that are kept."""
    if isinstance(columns, Mapping):
        count = 1 if isinstance(sources, (str, bytes)) else _count(sources)
        for name, values in columns.items():
            if isinstance(values, (str, bytes)) or len(values) != count:
                raise ValueError(
                    f"columns: {name}: expected one value for each of {count} sources, found "
                    f"{values!r:.60}"
                )

    def values_of(kept: Sequence[int], paths: Sequence[str]) -> dict[str, list[Any]]:
        rows: list[dict[str, Any]] = []
        for number, path in zip(kept, paths, strict=True):
            row = dict(found[number].values)
            if isinstance(columns, Mapping):
                row |= {name: values[found[number].given] for name, values in columns.items()}
            elif columns is not None:
                row |= columns(path)
            rows.append(row)
        names = dict.fromkeys(name for row in rows for name in row)
        _refuse_derived(names)
        table = {name: [row.get(name) for row in rows] for name in names}
        if "nodata" in table:
            table["nodata"] = [_nodata_text(value) for value in table["nodata"]]
        return table

    return values_of


def _count(sources: Any) -> int:
    return len(sources) if hasattr(sources, "__len__") else 1


def _nodata_text(value: Any) -> str | None:
    """Return nodata as text that means exactly the same number."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, complex)) or not hasattr(value, "__float__"):
        raise TypeError(f"nodata: expected text or a number, found {value!r}")
    if hasattr(value, "__index__"):
        return str(value.__index__())
    # The shortest text that gives the same double again.
    return repr(float(value))


def _merge(old: Any, new: Any) -> Any:
    """Return a table with new rows: at the end, or in the place of those of the same path.

    A column that only one of both has is kept; rows that had no value there have
    none, except that a row which is replaced keeps what files do not tell.
    """
    from rumi.catalog.schema import arrow

    pa = arrow()
    places = {path: row for row, path in enumerate(old.column("path").to_pylist())}
    order = np.arange(len(old) + len(new), dtype=np.int64)
    added = []
    for row, path in enumerate(new.column("path").to_pylist()):
        if path in places:
            order[places[path]] = len(old) + row
        else:
            added.append(len(old) + row)
    order = np.concatenate((order[: len(old)], np.array(added, dtype=np.int64)))
    kept = np.concatenate((np.arange(len(old)), np.array(added, dtype=np.int64)))
    fields, arrays = [], []
    for name in dict.fromkeys((*old.column_names, *new.column_names)):
        field = (old if name in old.column_names else new).schema.field(name)
        parts = [
            side.column(name).cast(field.type)
            if name in side.column_names
            else pa.chunked_array([pa.nulls(len(side), field.type)])
            for side in (old, new)
        ]
        joined = pa.chunked_array([chunk for part in parts for chunk in part.chunks], field.type)
        told = name in new.column_names and (name in _DERIVED or parts[1].null_count < len(new))
        arrays.append(joined.take(order if told else kept))
        fields.append(field if not arrays[-1].null_count else field.with_nullable(True))
    return pa.table(arrays, schema=pa.schema(fields, metadata=old.schema.metadata))


def _store_of(found: Sequence[Found]) -> ObjectStore | None:
    """Return the store that all files are in, if it is one."""
    stores = [getattr(item.source, "store", None) for item in found]
    return stores[0] if all(store is stores[0] for store in stores) else None
