"""URLs: which are remote, where the store ends and the object begins, what may be shown."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit

from rumi.errors import UnsupportedError

__all__ = ["FILE", "HTTP_SCHEMES", "MEMORY", "is_url", "object_url", "shown", "split_url"]

HTTP_SCHEMES = ("http", "https")
MEMORY = "memory"
FILE = "file://"

# Their objects' names are taken as they are written, as those services' own tools do.
_BUCKET_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")

# Two letters at least: "C://x" is a path of Windows.
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://")


def is_url(text: str) -> bool:
    """Whether a string is a URL of something that is no local file."""
    found = _SCHEME.match(text)
    return found is not None and found[1].lower() != "file"


def split_url(url: str) -> tuple[str, str]:
    """Return the URL of the store and the name of the object in it.

    The store of an HTTP URL is its host, with the query, which may be a
    signature. The whole URL is, with an empty name, where a path cannot be
    taken apart and put together again.

    Raises
    ------
    UnsupportedError
        If no store has this scheme.
    ValueError
        If the bucket or host is missing.
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    if scheme in HTTP_SCHEMES:
        return _split_http(url)
    if scheme == MEMORY:
        return f"{MEMORY}://", rest.lstrip("/")
    if scheme not in _BUCKET_SCHEMES:
        raise UnsupportedError(
            f"{shown(url)}: no store is known for {scheme}:// URLs; pass an fsspec file system: "
            "rumi.remote.ObjectStore(file_system).source(path)"
        )
    bucket, _, name = rest.partition("/")
    if not bucket:
        raise ValueError(f"{url}: expected {scheme}://bucket/name, found no bucket")
    return f"{scheme}://{bucket}", name


def _split_http(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError(f"{shown(url)}: {error}") from error
    if not parts.netloc:
        raise ValueError(f"{url}: expected {parts.scheme}://host/path, found no host")
    query = f"?{parts.query}" if parts.query else ""
    segments = parts.path.lstrip("/").split("/")
    try:
        names = [unquote(segment, errors="strict") for segment in segments]
    except UnicodeDecodeError:
        names = [""]
    if any(name in ("", ".", "..") or "/" in name for name in names):
        return f"{parts.scheme}://{parts.netloc}{parts.path}{query}", ""
    return f"{parts.scheme}://{parts.netloc}{query}", "/".join(names)


def object_url(root: str, path: str) -> str:
    """Return the URL of an object, without what must not be shown."""
    visible = shown(root)
    if not path:
        return visible
    if root == FILE:
        return f"{FILE}/{path}"
    if root.startswith(HTTP_SCHEMES):
        base, mark, query = visible.partition("?")
        return f"{base.rstrip('/')}/{quote(path)}{mark}{query}"
    return f"{visible.rstrip('/')}/{path}" if not visible.endswith("//") else visible + path


def shown(url: str) -> str:
    """Return a URL without password and query, either of which may be a secret."""
    scheme, _, rest = url.partition("://")
    mark = ""
    if scheme.lower() in HTTP_SCHEMES:
        rest, mark, _ = rest.partition("?")
    host, slash, path = rest.partition("/")
    user, at, host = host.rpartition("@")
    user = user.partition(":")[0] + at
    return f"{scheme}://{user}{host}{slash}{path}{'?...' if mark else ''}"
