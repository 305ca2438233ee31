"""Stores and sources: what it takes to reach an object, without reaching for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rumi.remote import urls
from rumi.remote.process import current
from rumi.remote.settings import GAP, LARGEST, RETRIES, Settings, name_in, split

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from rumi._core import BlobHeader
    from rumi.remote.clients import Client

__all__ = ["ObjectStore", "Range", "RemoteFile", "RemoteSource", "from_url", "store_at"]

# Stores made for plain URLs and for pickled sources, so that those of one store
# share its connections.
_SHARED = 32

# First byte, end, first frame, end: as `Plan.ranges` gives them.
Range: TypeAlias = tuple[int, int, int, int]

# Parts of the names of settings that say who one is.
_SECRETS = ("access_key", "account_key", "credential", "sas", "secret", "service_acc", "token")

# Those of obstore's that are made from others here.
_RESERVED = {"client_options", "retry_config"}

# Variables that stores read where their settings leave something open.
_AMBIENT = ("AWS_", "AZURE_", "GOOGLE_")


class ObjectStore:
    """A bucket, a web server or a file system, and how to talk to it.

    Parameters
    ----------
    where : str, store of obstore or file system of fsspec
        A URL (``s3://bucket/prefix``, ``gs://``, ``az://``, ``http(s)://``,
        ``memory://``, ``file://``), or an object that has its own settings
        already; then those below about access do not apply.
    anonymous : bool
        Send no credentials, whatever the environment holds, and look for none.
    endpoint : str, optional
        URL of another service with the same interface, such as MinIO.
    region : str, optional
        Of an S3 bucket.
    headers : mapping of str to str, optional
        Sent with every request.
    timeout : float
        Seconds that an answer, or the next MiB of it, may take; a part of an upload
        may take ten times as long.
    connect_timeout : float
        Seconds that a connection may take.
    max_connections : int, optional
        Requests in flight; ``RUMI_MAX_CONNECTIONS`` sets the default, else 64.
    retries : int, optional
        Attempts after a first one that failed for a reason that may pass (status
        408, 425, 429, 500, 502, 503, 504; a broken connection; a timeout), with
        pauses of 0.1 s, doubling up to 5 s. 5 by default; 0 for objects of
        obstore and fsspec, which have retries of their own.
    gap : int
        Two frames with at most this many bytes between them are fetched together.
    largest : int
        Bytes of one request at most; a single larger frame stays whole.
    **config
        More settings by obstore's names, credentials among them:
        ``access_key_id``, ``secret_access_key``, ``session_token`` (S3);
        ``service_account_key`` (Google); ``account_name``,
        ``account_key``, ``sas_key`` (Azure); ``credential_provider`` (all), a
        callable that pickles where stores must.

    Raises
    ------
    TypeError, ValueError
        If a setting cannot be used.
    UnsupportedError
        If no store is known for a URL, or its package is missing.

    Notes
    -----
    Immutable. Pickles as its settings, credentials included, and connects again
    where it is used: in threads, forked and spawned processes.
    Every answer of a store tells size and ETag (or date) of its object, so that one
    that was replaced is noticed. File systems of fsspec tell neither with a range:
    what was replaced is noticed by its frames, or by a pin, which takes one request
    more; and an answer that is too long is refused only when it has arrived.
    """

    __slots__ = ("__weakref__", "prefix", "settings")

    def __init__(
        self,
        where: Any,
        *,
        anonymous: bool = False,
        endpoint: str | None = None,
        region: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 5.0,
        max_connections: int | None = None,
        retries: int | None = None,
        gap: int = GAP,
        largest: int = LARGEST,
        **config: Any,
    ) -> None:
        root, prefix = split(where)
        given = None if root is not None else where
        access = {"anonymous": anonymous, "endpoint": endpoint, "region": region, **config}
        if given is not None and any(access.values()):
            named = ", ".join(name for name, value in access.items() if value)
            raise TypeError(f"{named}: a {type(where).__name__} has its own settings")
        if retries is None:
            retries = 0 if given is not None else RETRIES
        if retries < 0 or gap < 0 or largest < 1 or not timeout > 0 or not connect_timeout > 0:
            raise ValueError("retries and gap are at least 0; largest and timeouts more than 0")
        if root is not None and root.startswith((*urls.HTTP_SCHEMES, urls.MEMORY, urls.FILE)):
            named = ", ".join(name for name in ("endpoint", "region") if access[name])
            if named:
                raise ValueError(f"{named}: {urls.shown(root)} is no store that has one")
        if clashing := sorted(_RESERVED & set(config)):
            raise ValueError(
                f"{', '.join(clashing)}: use timeout, connect_timeout, retries and headers"
            )
        secrets = [name for name in config if any(word in name for word in _SECRETS)]
        if anonymous and secrets:
            raise ValueError(f"anonymous access does not go with {', '.join(secrets)}")
        if max_connections is not None and max_connections < 1:
            raise ValueError(f"max_connections must be at least 1, found {max_connections}")
        self.prefix = prefix
        self.settings = Settings(
            root,
            given,
            anonymous,
            endpoint,
            region,
            tuple(sorted((headers or {}).items())),
            tuple(sorted(config.items())),
            timeout,
            connect_timeout,
            max_connections,
            retries,
            gap,
            largest,
        )
        if root is not None and config:
            # A misspelt setting is found now rather than with the first read.
            self.client()

    def source(
        self,
        path: str,
        *,
        etag: str | None = None,
        size: int | None = None,
        sha256: str | bytes | None = None,
    ) -> RemoteSource:
        """Name an object of this store; nothing is asked for yet.

        Parameters
        ----------
        path : str
            Below the store's prefix, as it is, without percent signs for other
            characters.
        etag, size, sha256 : optional
            What is known about the object, from a catalog: its ETag, its size in
            bytes, the SHA-256 of its bytes (hexadecimal or 32 bytes). An object
            for which they do not hold raises StaleHeaderError. The SHA-256 of an
            object takes reading all of it, once, when it is first used.
        """
        return RemoteSource(self, path, etag, size, sha256)

    def client(self) -> Client:
        """Return this process's client, made at first need."""
        clients = current().clients
        found: Client | None = clients.get(self)
        if found is None:
            from rumi.remote.clients import make_client

            # Of two threads that come here together, one finds the other's.
            found = clients.setdefault(self, make_client(self.settings))
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings; unpickled stores of equal ones share their connections."""
        return _restore, (self.settings, self.prefix)

    def __repr__(self) -> str:
        """Show where it is, never with what credentials."""
        where = self.settings.given
        if self.settings.root is not None:
            where = urls.object_url(self.settings.root, self.prefix)
        return f"<rumi.remote.ObjectStore {where!r}>"


@dataclass(frozen=True, slots=True)
class RemoteSource:
    """An object in a store, as every function takes it for a file; see `ObjectStore.source`."""

    store: ObjectStore
    path: str
    etag: str | None = None
    size: int | None = None
    sha256: str | bytes | None = None

    def __post_init__(self) -> None:
        """Check the types, and bring the SHA-256 to one form."""
        if not isinstance(self.path, str) or not isinstance(self.store, ObjectStore):
            raise TypeError(
                f"expected an ObjectStore and a path, found {type(self.store).__name__} and "
                f"{type(self.path).__name__}"
            )
        if self.sha256 is not None:
            try:
                given = self.sha256
                digest = given if isinstance(given, bytes) else bytes.fromhex(given)
            except ValueError:
                digest = b""
            if len(digest) != 32:
                raise ValueError(f"sha256: expected 64 hexadecimal digits, found {self.sha256!r}")
            object.__setattr__(self, "sha256", digest)

    @property
    def full_path(self) -> str:
        """The object's name in the store, prefix included."""
        return "/".join(filter(None, (self.store.prefix, self.path)))

    @property
    def name(self) -> str:
        """The URL, without passwords and signatures."""
        settings = self.store.settings
        if settings.root is not None:
            return urls.object_url(settings.root, self.full_path)
        return name_in(settings.given, self.full_path)

    def open(self) -> RemoteFile:
        """Return the object for reading; nothing is asked for yet."""
        from rumi.remote.opened import OpenObject

        return OpenObject(self)


class RemoteFile:
    """A remote object for reading: what a local file has, and ranges as they arrive.

    The implementation is imported with the first one, since it takes asyncio.
    """

    __slots__ = ()

    name: str
    source: RemoteSource

    @property
    def gap(self) -> int:
        """Bytes between two frames that are fetched rather than skipped."""
        raise NotImplementedError

    @property
    def largest(self) -> int:
        """Bytes of one request at most."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Bytes of the object; asked for where no reply has told them yet."""
        raise NotImplementedError

    @property
    def identity(self) -> Any:
        """What tells one state of the object from another, as far as replies have told."""
        raise NotImplementedError

    def check_size(self, header: BlobHeader) -> None:
        """Let no reply pass that tells another size than the header; asks for nothing."""
        raise NotImplementedError

    def read(self, start: int, size: int) -> bytes:
        """Return bytes start..start+size, fewer only where the object ends."""
        raise NotImplementedError

    def fetch(self, ranges: list[Range]) -> Generator[list[tuple[Range, bytes]], None, None]:
        """Yield the ranges of a plan with their bytes, as they arrive."""
        raise NotImplementedError

    def fetch_async(self, ranges: list[Range]) -> AsyncGenerator[list[tuple[Range, bytes]], None]:
        """Yield the ranges of a plan with their bytes, as they arrive."""
        raise NotImplementedError


def from_url(
    url: str,
    *,
    etag: str | None = None,
    size: int | None = None,
    sha256: str | bytes | None = None,
) -> RemoteSource:
    """Name the object of a URL, in a store with settings from the environment.

    Objects of one store share its connections.
    """
    root, path = urls.split_url(url)
    key: Any = root
    if not root.startswith(urls.HTTP_SCHEMES):
        ambient = sorted(item for item in os.environ.items() if item[0].startswith(_AMBIENT))
        key = (root, hash(tuple(ambient)))
    return RemoteSource(_share(key, lambda: store_at(root)), path, etag, size, sha256)


def store_at(root: str, **options: Any) -> ObjectStore:
    """Make the store of a root that `split_url` gave: it is not taken apart once more.

    That would lose the last slash of an object's own URL, such as
    ``https://host/get/?id=5``.
    """
    store = ObjectStore(root, **options)
    store.prefix, store.settings = "", replace(store.settings, root=root)
    return store


def _restore(settings: Settings, prefix: str) -> ObjectStore:
    def make() -> ObjectStore:
        store = ObjectStore.__new__(ObjectStore)
        store.prefix, store.settings = prefix, settings
        return store

    try:
        return _share((settings, prefix), make)
    except TypeError:
        # A setting that cannot be hashed.
        return make()


def _share(key: Any, make: Any) -> ObjectStore:
    process = current()
    with process.lock:
        found: ObjectStore | None = process.shared.get(key)
    if found is None:
        found = make()
    with process.lock:
        found = process.shared.setdefault(key, found)
        process.shared.move_to_end(key)
        while len(process.shared) > _SHARED:
            process.shared.popitem(last=False)
    return found
