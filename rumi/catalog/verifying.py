"""Whether the rows of a catalog are still true of their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

from rumi import pools
from rumi._generated import constants
from rumi.catalog.describe import Failure, Row, describe_all, failure, leave_interrupts
from rumi.errors import RumiError, StaleHeaderError
from rumi.header import Header
from rumi.source import is_remote, remote_source, source_name

if TYPE_CHECKING:
    from rumi.catalog.rows import Rows
    from rumi.georef import Transform
    from rumi.source import SourceLike

__all__ = ["Parts", "Recorded", "check", "verify"]

# Files of one task.
_PART = 256

_PLACE = ("epsg", "transform")
_STATE = ("mtime", "sha256")

_UNIT = next(offset for name, offset, _, _ in constants.HEADER_FIELDS if name == "frame_unit")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a catalog says of a file; see `rumi.catalog.schema`."""

    source: SourceLike
    header: bytes
    mtime: int | None
    sha256: str | None
    # EPSG code and transform; None where the catalog has no columns of them.
    place: tuple[int | None, Transform | None] | None
    deep: bool


class Parts(Sequence[list[Recorded]]):
    """What a catalog says of its rows, some at a time: nothing is made of a part before its turn.

    Parameters
    ----------
    rows : Rows
    deep : bool
    """

    def __init__(self, rows: Rows, *, deep: bool) -> None:
        self._deep = deep
        self._held = rows.all()
        self._size = len(rows)
        found = rows.table.schema.names
        names = [name for name in (*_STATE, *_PLACE) if name in found]
        self._known = rows.table.read(rows.chosen, names)
        self._placed = set(_PLACE) <= set(names)

    def __len__(self) -> int:
        """Return the number of parts."""
        return -(-self._size // _PART)

    @overload
    def __getitem__(self, index: int) -> list[Recorded]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[Recorded]]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return a part, or several."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(f"part {index} is outside 0..{len(self) - 1}")
        start = index * _PART
        some = self._known.slice(start, _PART)
        size = min(_PART, self._size - start)
        known: dict[str, Any] = {}
        for name in some.column_names:
            column = some.column(name)
            known[name] = (column.cast("int64") if name == "mtime" else column).to_pylist()
        return [self._row(start + place, place, known) for place in range(size)]

    def _row(self, row: int, place: int, known: dict[str, Any]) -> Recorded:
        where = None
        if self._placed:
            numbers = known["transform"][place]
            where = (known["epsg"][place], None if numbers is None else tuple(numbers))
        mtime, sha256 = (known[name][place] if name in known else None for name in _STATE)
        held = self._held
        return Recorded(held.source(row), held.headers.at(row), mtime, sha256, where, self._deep)


def verify(
    parts: Parts,
    path: Callable[[int], str],
    size: int,
    *,
    workers: int,
    client: Any,
    progress: Callable[[int, int], object] | None,
) -> list[Failure]:
    """Return a failure for each row that is not true, in order.

    Parameters
    ----------
    parts : Parts
    path : callable
        From a row to what the catalog calls its file.
    size : int
        Number of rows.
    workers, client, progress
        As of `Catalog.build`.
    """
    pools.check(workers, client)
    found: dict[int, Failure] = {}
    done = 0
    for part, results in pools.run(check, parts, workers, client, leave_interrupts):
        for row, result in enumerate(results, part * _PART):
            if isinstance(result, pools.Lost):
                found[row] = Failure(path(row), result.kind, result.reason, row)
            elif result is not None:
                found[row] = replace(result, path=path(row), row=row)
        done += len(results)
        if progress is not None:
            progress(done, size)
    return [found[row] for row in sorted(found)]


def check(rows: Sequence[Recorded]) -> list[Failure | None]:
    """Compare rows with their files; None where all is as recorded."""
    results: list[Failure | None] = [None] * len(rows)
    sources = [row.source for row in rows]
    # Those whose bytes need not be read, and those that need it.
    opened: dict[bool, list[int]] = {False: [], True: []}
    for number, row in enumerate(rows):
        try:
            header = Header(row.header)
            if is_remote(row.source):
                sources[number] = replace(remote_source(row.source), size=header.file_size)
                opened[row.deep and row.sha256 is not None].append(number)
            elif not _unchanged(row, header):
                opened[row.deep and row.sha256 is not None].append(number)
        except (RumiError, OSError) as error:
            results[number] = failure(row.source, error)
    for digest, numbers in opened.items():
        outcomes = describe_all([sources[number] for number in numbers], sha256=digest)
        for number, outcome in zip(numbers, outcomes, strict=True):
            if isinstance(outcome, Failure):
                results[number] = outcome
            else:
                results[number] = _difference(rows[number], outcome)
    return results


def _unchanged(row: Recorded, header: Header) -> bool:
    """Whether a local file need not be opened; refuse one of another size."""
    state = os.stat(row.source)
    if state.st_size != header.file_size:
        raise StaleHeaderError(
            f"expected {header.file_size} bytes, found {state.st_size}: the file was truncated or "
            "replaced"
        )
    return not row.deep and row.mtime is not None and row.mtime == state.st_mtime_ns


def _difference(row: Recorded, found: Row) -> Failure | None:
    """Return what differs between a row and its file."""
    name = source_name(row.source)
    if _without_unit(found.header) != _without_unit(row.header):
        text = f"expected {Header(row.header)!r}, found {Header(found.header)!r}"
        if Header(row.header).shape == Header(found.header).shape:
            text = "the frames have other sizes than the header says: the file was replaced"
        return Failure(name, "StaleHeaderError", text)
    place = (found.epsg, found.transform)
    digest = row.sha256 if found.sha256 is not None else None
    for what, expected, actual in (
        ("EPSG code and transform", row.place or place, place),
        ("SHA-256", digest, found.sha256),
    ):
        if expected != actual:
            text = f"{what}: expected {expected}, found {actual}"
            return Failure(name, "StaleHeaderError", text)
    return None


def _without_unit(blob: bytes) -> bytes:
    """Return a blob so that two of one band compare equal where tile and cell are the same."""
    if Header(blob).samples_per_pixel > 1:
        return blob
    return blob[:_UNIT] + b"\0" + blob[_UNIT + 1 :]
