"""Which files a caller means, and what a catalog calls them."""

from __future__ import annotations

import glob
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rumi.atomic import TEMPORARY_SUFFIX
from rumi.errors import SourceError, UnsupportedError
from rumi.remote import ObjectStore, RemoteSource, from_url
from rumi.remote.urls import object_url, shown, split_url
from rumi.source import is_path, is_remote, local_path

if TYPE_CHECKING:
    from rumi.source import SourceLike

__all__ = ["Base", "Found", "Speller", "expand", "folder_of", "of_url"]

_SUFFIX = ".rumi"


@dataclass(frozen=True, slots=True)
class Found:
    """A file that the caller means.

    Attributes
    ----------
    source : str or RemoteSource
        What opens it: an absolute path, a URL, or an object of a store.
    given : int
        Which of the caller's sources it comes from.
    values : mapping
        What that source knows about columns that a file does not tell.
    problem : tuple of str, optional
        Kind and message, where it is known already that there is no such file.
    """

    source: Any
    given: int
    values: Mapping[str, Any] = field(default_factory=dict)
    problem: tuple[str, str] | None = None


def expand(sources: Any) -> list[Found]:
    """Return the files that the caller means, each once, in order.

    Raises
    ------
    TypeError
        If a source is none.
    FileNotFoundError
        If a folder, pattern or prefix has no rumi file.
    """
    one = is_path(sources) or isinstance(sources, (ObjectStore, RemoteSource))
    if not one and (isinstance(sources, bytes) or not isinstance(sources, Iterable)):
        raise TypeError(f"expected paths, found {type(sources).__name__}")
    found: dict[Any, Found] = {}
    for given, source in enumerate([sources] if one else sources):
        for item in _expand(source, given):
            found.setdefault(item.source, item)
    return list(found.values())


def _expand(source: Any, given: int) -> Iterator[Found]:
    if hasattr(source, "dst") and hasattr(source, "src"):
        # What `rumi.geotiff.convert_many` returns, failures among it.
        yield _converted(source, given)
        return
    if isinstance(source, RemoteSource):
        yield Found(source, given)
        return
    if isinstance(source, ObjectStore):
        members: Iterable[Any] = _of_store(source, "", None)
    elif not is_path(source):
        raise TypeError(f"source {given}: expected a path, found {type(source).__name__}")
    elif is_remote(source):
        members = of_url(source)
    else:
        members = _of_path(os.path.abspath(os.fsdecode(local_path(source))))
    empty = True
    for member in members:
        empty = False
        yield Found(member, given)
    if empty:
        raise FileNotFoundError(f"{_named(source)}: no {_SUFFIX} file found")


def _converted(source: Any, given: int) -> Found:
    path = os.fsdecode(source.dst)
    where = path if is_remote(path) else os.path.abspath(os.fsdecode(local_path(path)))
    if not hasattr(source, "header"):
        return Found(where, given, {}, (source.kind, source.message))
    names = list(source.band_names)
    values = {"nodata": source.nodata, "band_names": names if any(names) else None}
    return Found(where, given, {key: value for key, value in values.items() if value is not None})


def _named(source: Any) -> str:
    return shown(os.fsdecode(source)) if is_path(source) else repr(source)


def _of_path(path: str) -> list[str]:
    if os.path.isdir(path):
        return sorted(
            os.path.join(parent, name)
            for parent, _, names in os.walk(path)
            for name in names
            if name.endswith(_SUFFIX) and not name.startswith(".")
        )
    if glob.has_magic(path) and not os.path.exists(path):
        return sorted(
            name
            for name in glob.glob(path, recursive=True)
            if os.path.isfile(name) and not name.endswith(TEMPORARY_SUFFIX)
        )
    return [path]


def of_url(url: str, make: Callable[[str], ObjectStore] = ObjectStore) -> list[Any]:
    """Return the objects that a URL means: one, a pattern's, or those below a prefix.

    Where there may be several, they are listed in the store that `make` gives for
    the store's URL.
    """
    if glob.has_magic(url.partition("://")[2].partition("?")[0]):
        fixed = re.split(r"[*?[]", url, maxsplit=1)[0]
        base = fixed[: fixed.rindex("/") + 1]
        root, pattern = split_url(url)
        return _of_store(make(root), split_url(f"{base}x")[1][:-1], pattern)
    if url.endswith("/"):
        root, prefix = split_url(url)
        return _of_store(make(root), prefix, None)
    return [url]


def _of_store(store: ObjectStore, prefix: str, pattern: str | None) -> list[RemoteSource]:
    """List the rumi files of a store below a prefix."""
    matches = None if pattern is None else _matcher(pattern)
    start = "/".join(filter(None, (store.prefix, prefix.strip("/"))))
    names = []
    for name in _names(store, start):
        hidden = posixpath.basename(name).startswith(".")
        if matches.fullmatch(name) if matches else name.endswith(_SUFFIX) and not hidden:
            names.append(name[len(store.prefix) :].lstrip("/") if store.prefix else name)
    return [store.source(name) for name in sorted(names)]


def _names(store: ObjectStore, prefix: str) -> Iterator[str]:
    """Yield the full names of all objects below a prefix."""
    client: Any = store.client()
    files = getattr(client, "_files", None)
    try:
        if files is not None:
            for name in files.find(prefix):
                yield str(name).lstrip("/")
            return
        import obstore

        for batch in obstore.list(client._store, prefix or None):
            for meta in batch:
                yield str(meta["path"])
    except NotImplementedError as error:
        raise UnsupportedError(f"{store!r} cannot be listed: {error}") from error
    except Exception as error:
        raise SourceError(f"{store!r} cannot be listed: {' '.join(str(error).split())}") from error


def _matcher(pattern: str) -> re.Pattern[str]:
    """Return a pattern for names: ``**`` crosses folders, ``*`` and ``?`` do not."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^]]+\])", pattern)
    means = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        "".join(
            means.get(part)
            or (part.replace("[!", "[^", 1) if part.startswith("[") else re.escape(part))
            for part in parts
        )
    )


@dataclass(frozen=True, slots=True)
class Base:
    """What relative paths are relative to: a folder, the parent of a URL, or a store.

    Attributes
    ----------
    folder : str
        A path or a URL, without a slash at the end; empty if there is none.
    store : ObjectStore or None
        What reads objects of its own, and relative paths where there is no folder.
    """

    folder: str
    store: ObjectStore | None = None

    def source(self, path: str, etag: str | None = None) -> SourceLike:
        """Return what opens a path of the catalog; nothing is asked for yet."""
        if path.startswith("/"):
            return path
        if self.folder and "://" not in path:
            path = _normal(f"{self.folder}/{path}")
        if "://" not in path:
            inside = self.store is not None and not path.startswith("/")
            return self.store.source(path, etag=etag) if self.store and inside else path
        if not is_remote(path):
            return path
        if self.store is not None and self.store.settings.root is not None:
            root, name = split_url(path)
            prefix = f"{self.store.prefix}/" if self.store.prefix else ""
            if root == self.store.settings.root and name.startswith(prefix):
                return self.store.source(name[len(prefix) :], etag=etag)
        return from_url(path, etag=etag)


def _normal(path: str) -> str:
    """Return a path or URL without ``..``, which stores do not know."""
    if ".." not in path.split("/"):
        return path
    scheme, mark, rest = path.rpartition("://")
    return scheme + mark + posixpath.normpath(rest)


def folder_of(catalog: SourceLike) -> str:
    """Return what the paths of a catalog are relative to; empty where it has no place."""
    if isinstance(catalog, RemoteSource):
        name = _url_of(catalog)
        return name.rpartition("/")[0]
    if not is_path(catalog):
        return ""
    if is_remote(catalog):
        return str(catalog).partition("?")[0].rpartition("/")[0]
    return os.path.dirname(os.path.realpath(os.fsdecode(local_path(catalog))))


def _url_of(source: RemoteSource) -> str:
    root = source.store.settings.root
    if root is None:
        return source.path
    if "?" in root:
        raise ValueError(
            f"{source.name}: the URL has a query, which may be a secret that a catalog cannot keep"
        )
    return object_url(root, source.full_path)


class Speller:
    """How a catalog writes the paths of its files.

    Parameters
    ----------
    folder : str
        As of `Base`.
    relative : bool or None
        None writes what lies below the folder relative to it, and all else
        absolute; True writes everything local relative, False nothing.
    """

    def __init__(self, folder: str, relative: bool | None) -> None:
        self._folder = folder
        self._relative = relative

    def __call__(self, source: Any) -> str:
        """Return the path to record.

        Raises
        ------
        ValueError
            If it cannot be recorded.
        """
        path = _url_of(source) if isinstance(source, RemoteSource) else source
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the path is no valid UTF-8: {path!r}") from error
        if self._relative is False or not self._folder:
            return path
        below = f"{self._folder.rstrip('/')}/"
        for name in (path, _without_links(path)):
            if name.startswith(below):
                return name[len(below) :]
        if self._relative and "://" not in path and "://" not in self._folder:
            return os.path.relpath(path, self._folder)
        return path


def _without_links(path: str) -> str:
    """Return a path with its folders resolved, as the folder of a catalog is."""
    if "://" in path:
        return path
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
