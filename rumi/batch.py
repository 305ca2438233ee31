"""Batches: the arguments of many reads, brought to the same length, and their errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rumi._core import Plan, Store
from rumi.container import read_container
from rumi.engine import blame_stale_header
from rumi.errors import CodecError, FormatError, RumiError, SourceError, StaleHeaderError
from rumi.header import Header, as_header
from rumi.source import is_path, is_remote, open_source, source_name

if TYPE_CHECKING:
    from rumi.overlap import Part
    from rumi.remote.fetch import Job
    from rumi.remote.opened import OpenObject
    from rumi.source import SourceLike

__all__ = ["NAMED", "Batch", "with_item"]

# Errors that say which item of a batch they are about.
NAMED = (RumiError, TypeError, ValueError, IndexError, OSError)

# Items of all stores in flight at most.
_CONNECTIONS = 256

# Remote items that are planned together.
_AHEAD = 128


class Batch:
    """The arguments of `rumi.read_many`."""

    def __init__(self, sources: Any, headers: Any, windows: Any, bands: Any) -> None:
        self._sources = _each(sources, _is_one_source)
        self._headers = _each(headers, _is_one_header)
        self._windows = _each(windows, _is_one_window)
        self._bands = bands
        lengths = {len(x) for x in (self._sources, self._headers, self._windows) if x is not None}
        sizes = lengths - {1} or lengths
        if len(sizes) != 1:
            raise ValueError(
                "sources, headers and windows: expected one for all items or one for each, found "
                f"{sorted(lengths)}"
            )
        self._length = sizes.pop()
        if self._length == 0:
            raise ValueError("a batch has at least one item, found none")
        self._indexed: dict[SourceLike, Header] = {}
        # Remote files whose state has been seen, so that all items are of the same.
        self._files: dict[SourceLike, OpenObject] = {}

    def __len__(self) -> int:
        """Return the number of items."""
        return self._length

    def source(self, item: int) -> SourceLike:
        """Return what the caller named."""
        return _pick(self._sources, item)

    def opened(self, item: int) -> Any:
        """Return the path of an item for the kernels to open, or its opened source."""
        source = _pick(self._sources, item)
        if type(source) is str and "://" not in source:
            return source
        return self._files.get(_key(source)) or open_source(source)

    def has_header(self) -> bool:
        """Whether the caller gave headers."""
        return self._headers is not None

    def has_remote(self) -> bool:
        """Whether an item is remote."""
        sources = self._sources or ()
        try:
            # One search in C for what nearly every batch is.
            if "://" not in "\n".join(sources):
                return False
        except TypeError:
            # Not all of them are strings.
            pass
        return any(map(is_remote, sources))

    def plan(self, item: int, source: Any) -> Plan:
        """Return the plan of an item; without headers the file's index is read once."""
        if self._headers is not None:
            header = as_header(_pick(self._headers, item))
        else:
            header = self._index(item, source)
        if item == 0:
            # The first one decides how large the result is: a header that claims much
            # is compared with the file before it counts.
            open_source(source).check_size(header)
        return Plan(header, self._bands, _pick(self._windows, item))

    def _index(self, item: int, opened: Any) -> Header:
        key = _key(self.source(item))
        header = self._indexed.get(key)
        if header is None:
            header = read_container(open_source(opened)).header
            self._indexed[key] = header
        return header

    def explain(self, error: Exception, item: int, plan: Plan, first: Plan) -> Exception:
        """Return the error to raise for an item, `first` being the plan of item 0."""
        header = cast(Header, plan.header)
        expected = cast(Header, first.header)
        if plan.shape != first.shape or not header.same_encoding(expected):
            error = ValueError(
                f"expected {first.shape} of {expected.encoding.dtype_name} as of item 0, found "
                f"{plan.shape} of {header.encoding.dtype_name}"
            )
        elif isinstance(error, (CodecError, FormatError, SourceError)) and self.has_header():
            try:
                blame_stale_header(open_source(self.source(item)), header, error)
            except StaleHeaderError as stale:
                error = stale
        return with_item(error, item, self.source(item))

    # -- remote items --

    async def prepare(self) -> None:
        """Read the indices of remote files where there are no headers, all at the same time."""
        from rumi.container import read_container_async
        from rumi.overlap import gather

        if self.has_header():
            return
        found: dict[SourceLike, int] = {}
        for item in range(len(self._sources or ())):
            if is_remote(self.source(item)):
                found.setdefault(_key(self.source(item)), item)

        async def index(key: SourceLike, item: int) -> None:
            try:
                opened = cast("OpenObject", open_source(self.source(item)))
                self._indexed[key] = (await read_container_async(opened)).header
            except NAMED as error:
                raise with_item(error, item, self.source(item)) from error
            self._files[key] = opened

        await gather((index(key, item) for key, item in found.items()), _CONNECTIONS)

    async def parts(self, first: Plan) -> AsyncGenerator[list[Part], None]:
        """Yield the parts of all items: remote ones as they arrive, then local ones."""
        from rumi.overlap import Part, in_thread
        from rumi.remote.fetch import replies

        arriving = replies(self._jobs(first), _CONNECTIONS)
        try:
            async for found in arriving:
                some = []
                for job, data in found:
                    if isinstance(data, Exception):
                        plan, item, _, _ = min(job.what, key=lambda use: use[1])
                        # To explain it may take requests: those of the others end first.
                        await arriving.aclose()
                        raise await in_thread(self.explain, data, item, plan, first) from data
                    store = Store.memory(data, job.start, job.source.name)
                    some += [
                        Part(plan, item, store, low, high) for plan, item, low, high in job.what
                    ]
                yield some
        finally:
            await arriving.aclose()
        for item in range(len(self)):
            if not is_remote(self.source(item)):
                opened, plan = self._checked(item, first)
                yield [Part(plan, item, cast(Store, opened), 0, plan.frame_count)]

    def _jobs(self, first: Plan) -> Iterator[Job]:
        """Yield what to fetch: what several items of a file need, once.

        That goes for items that are planned together, some ahead of what is fetched.
        """
        from rumi.remote.fetch import Job, merged

        remote = (item for item in range(len(self)) if is_remote(self.source(item)))
        while some := list(islice(remote, _AHEAD)):
            files: dict[Any, tuple[Any, list[Any]]] = {}
            for item in some:
                opened, plan = self._checked(item, first)
                ranges = plan.ranges(opened.gap, opened.largest)
                # Of one state of an object, as far as headers tell.
                same = opened if opened is self.source(item) else opened.source
                _, wanted = files.setdefault((same, plan.header.file_size), (opened, []))
                wanted += [(start, stop, (plan, item, *part)) for start, stop, *part in ranges]
            for opened, wanted in files.values():
                for start, stop, uses in merged(wanted, opened.gap, opened.largest):
                    yield Job(opened, start, stop, uses)

    def _checked(self, item: int, first: Plan) -> tuple[Any, Plan]:
        """Return the opened source and the plan of an item that belongs into the batch."""
        try:
            opened = open_source(self.opened(item))
            plan = self.plan(item, opened)
            opened.check_size(plan.header)
        except NAMED as error:
            raise with_item(error, item, self.source(item)) from error
        if len(self._sources or ()) == 1 and is_remote(opened):
            self._files.setdefault(_key(self.source(item)), cast("OpenObject", opened))
        if plan.shape != first.shape or not plan.header.same_encoding(first.header):
            raise self.explain(ValueError(), item, plan, first)
        return opened, plan


def _each(value: Any, is_one: Callable[[Any], bool]) -> Sequence[Any] | None:
    if value is None:
        return None
    return [value] if is_one(value) else value


def _pick(values: Sequence[Any] | None, item: int) -> Any:
    if values is None:
        return None
    return values[item] if len(values) > 1 else values[0]


def _key(source: SourceLike) -> Any:
    """Return what tells the sources of a batch apart."""
    return source if is_path(source) else id(source)


def _is_one_source(value: Any) -> bool:
    return not isinstance(value, (list, tuple)) and not (
        isinstance(value, np.ndarray) and value.dtype.kind in "OSU"
    )


def _is_one_header(value: Any) -> bool:
    return not isinstance(value, (list, tuple)) and not (
        isinstance(value, np.ndarray) and value.dtype.kind in "OS"
    )


def _is_one_window(value: Any) -> bool:
    if hasattr(value, "row_off"):
        return True
    return len(value) == 4 and all(hasattr(part, "__index__") for part in value)


def with_item(error: Exception, item: int, source: SourceLike) -> Exception:
    """Return the error with its item in front, once."""
    text = str(error)
    if text.startswith("item "):
        return error
    name = source_name(source)
    place = f"item {item}" if name in text else f"item {item} ({name})"
    if isinstance(error, OSError) and not isinstance(error, RumiError):
        return type(error)(error.errno, f"{place}: {error.strerror}", error.filename)
    named = type(error)(f"{place}: {text}")
    # Such as the status of a SourceError.
    named.__dict__.update(error.__dict__)
    if isinstance(named, OSError) and isinstance(error, OSError):
        named.errno = error.errno
    return named
