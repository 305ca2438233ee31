"""What a client is made from, and where it is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from rumi.remote import urls

__all__ = [
    "GAP",
    "LARGEST",
    "MAX_CONNECTIONS_VARIABLE",
    "RETRIES",
    "Settings",
    "is_plain_http",
    "name_in",
    "split",
]

MAX_CONNECTIONS_VARIABLE = "RUMI_MAX_CONNECTIONS"

_CONNECTIONS = 64
RETRIES = 5

# About what a connection carries in the time that a request costs everybody: at
# 100 MB/s, 0.7 ms.
GAP = 64 << 10

# Large images come over several connections at once, each range large enough that
# its latency hardly counts.
LARGEST = 8 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """All that a client is made from; see `ObjectStore`. Small when pickled."""

    # Any of these may hold a secret, and does not show.
    root: str | None = field(repr=False)
    given: Any = field(repr=False)
    anonymous: bool
    endpoint: str | None
    region: str | None
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    config: tuple[tuple[str, Any], ...] = field(repr=False)
    timeout: float
    connect_timeout: float
    max_connections: int | None
    retries: int
    gap: int
    largest: int

    def connections(self) -> int:
        """Return the cap, from the environment where the settings leave it open."""
        if self.max_connections is not None:
            return self.max_connections
        value = os.environ.get(MAX_CONNECTIONS_VARIABLE)
        if value is None:
            return _CONNECTIONS
        if not value.isdecimal() or int(value) < 1:
            raise ValueError(f"{MAX_CONNECTIONS_VARIABLE} is a positive integer, found {value!r}")
        return int(value)


def split(where: Any) -> tuple[str | None, str]:
    """Return the URL of a store and the prefix; no URL for an object with its own settings."""
    if not isinstance(where, str):
        if not (_is_obstore(where) or _is_fsspec(where)):
            raise TypeError(
                "a store is a URL, a store of obstore or a file system of fsspec, found "
                f"{type(where).__name__}"
            )
        return None, ""
    if where.lower().startswith(urls.FILE):
        return urls.FILE, unquote(where[len(urls.FILE) :]).strip("/")
    if "://" not in where:
        raise ValueError(f"{where}: expected a URL; local files need no store")
    base, mark, query = where.partition("?")
    scheme, _, rest = base.partition("://")
    root, prefix = urls.split_url(f"{scheme}://{rest.rstrip('/')}{mark}{query}")
    return root, prefix.strip("/")


def _is_obstore(where: Any) -> bool:
    return type(where).__module__ == "obstore.store" or hasattr(where, "get_ranges_async")


def _is_fsspec(where: Any) -> bool:
    return hasattr(where, "cat_file") and hasattr(where, "unstrip_protocol")


def name_in(given: Any, path: str) -> str:
    """Return what to call an object of a store that was made by others."""
    if _is_fsspec(given):
        return urls.shown(str(given.unstrip_protocol(path)))
    url = getattr(given, "url", None)
    if isinstance(url, str):
        return urls.object_url(url, path)
    prefix = getattr(given, "prefix", None)
    full = "/".join(filter(None, (str(prefix or "").strip("/"), path)))
    config = getattr(given, "config", None) or {}
    for scheme, key in (("s3", "bucket"), ("az", "container_name")):
        if type(given).__name__ == "GCSStore":
            scheme = "gs"
        if key in config:
            return f"{scheme}://{config[key]}/{full}"
    return f"{type(given).__name__}:{full}"


def is_plain_http(settings: Settings) -> bool:
    """Whether the store is a web server, which objects can only be read from."""
    if settings.root is not None:
        return settings.root.startswith(urls.HTTP_SCHEMES)
    protocol = getattr(settings.given, "protocol", ())
    protocols = (protocol,) if isinstance(protocol, str) else tuple(protocol)
    return type(settings.given).__name__ == "HTTPStore" or "http" in protocols
