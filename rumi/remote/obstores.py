"""The client for stores of obstore: S3, Google, Azure, HTTP, local folders."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rumi.errors import SourceError, UnsupportedError
from rumi.remote import urls
from rumi.remote.clients import CHUNK, Reply, Slots
from rumi.remote.faults import AttemptError, attempt_error
from rumi.remote.process import current, obstore, remade

if TYPE_CHECKING:
    from pathlib import Path

    from rumi.remote.settings import Settings

__all__ = ["ObstoreClient"]

# The clock that counts is in `_within`; obstore's own, which counts a whole request
# whatever its size, must not run out before.
_NO_TIMEOUT = timedelta(days=1)

# Parts of an upload share the line, a dozen of 5 MiB at a time, and each must be through
# before obstore's clock runs out: times `timeout`, so that 2 Mbit/s are enough.
_UPLOAD_PATIENCE = 10

_GOOGLE = "https://storage.googleapis.com"


class ObstoreClient(Slots):
    """A store of obstore."""

    tells = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if settings.given is not None:
            self._store = self._uploads = remade(settings.given)
            return
        self._store = _make_store(settings, 0, _NO_TIMEOUT)
        # Uploads are tried again part by part, which only obstore can do.
        patience = timedelta(seconds=_UPLOAD_PATIENCE * settings.timeout)
        self._uploads = _make_store(settings, settings.retries, patience)

    async def get(self, path: str, start: int, stop: int, etag: str | None) -> Reply:
        """Fetch bytes start..stop, once; raises `AttemptError`."""
        options: dict[str, Any] = {"range": (start, stop)}
        if etag is not None:
            options["if_match"] = etag
        try:
            result = await self._within(obstore().get_async(self._store, path, options=options))
            meta, (first, last) = result.meta, result.range
            size: int = meta["size"]
            if (first, last) != (start, min(stop, size)):
                raise AttemptError(f"the server sent bytes {first} to {last}")
            data = await self._body(result, last - first)
        except AttemptError:
            raise
        except ValueError as error:
            raise AttemptError(" ".join(str(error).split())) from error
        except Exception as error:
            raise attempt_error(error) from error
        # The epoch stands for an answer without a date.
        modified = meta["last_modified"]
        return Reply(data, size, meta["e_tag"], modified if modified.timestamp() else None)

    async def _body(self, result: Any, length: int) -> bytes:
        """Return a body of exactly this length, and read no more of a longer one."""
        chunk = min(length + 1, CHUNK)
        stream = aiter(result.stream(chunk))
        parts: list[bytes] = []
        found = 0
        while True:
            part = await self._within(_next(stream))
            if part is not None:
                parts.append(part)
                found += len(part)
            # Only the last part is shorter than a chunk.
            if part is None or len(part) < chunk or found > length:
                break
        if found != length:
            longer = found > length
            what = "more bytes" if longer else f"{found} bytes"
            raise AttemptError(
                f"expected {length} bytes, the server sent {what}", transient=not longer
            )
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _within(self, awaitable: Any) -> Any:
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await awaitable
        except (asyncio.CancelledError, TimeoutError):
            current().abandoned = time.monotonic()
            raise

    async def measure(self, path: str) -> Reply:
        """Ask for size and ETag, with the first byte."""
        return await self.get(path, 0, 1, None)

    async def put(self, path: str, file: Path) -> None:
        """Upload a file, which appears when it is complete."""
        if type(self._uploads).__name__ == "HTTPStore":
            raise UnsupportedError("plain HTTP servers take no uploads; write to an object store")
        try:
            await obstore().put_async(self._uploads, path, file)
        except Exception as error:
            raise attempt_error(error) from error


async def _next(stream: Any) -> bytes | None:
    """Return the next part, None at the end: StopAsyncIteration cannot leave a coroutine."""
    try:
        part: bytes = await anext(stream)
    except StopAsyncIteration:
        return None
    return part


def _make_store(settings: Settings, retries: int, timeout: timedelta) -> Any:
    """Make a store of obstore from settings."""
    root = settings.root or ""
    scheme, _, rest = root.partition("://")
    endpoint = settings.endpoint
    options: dict[str, Any] = {
        "timeout": timeout,
        "connect_timeout": timedelta(seconds=settings.connect_timeout),
    }
    if any(url.startswith("http://") for url in (root, endpoint or _ambient_endpoint(scheme))):
        options["allow_http"] = True
    if settings.headers:
        options["default_headers"] = dict(settings.headers)
    common: dict[str, Any] = {"client_options": options, "retry_config": {"max_retries": retries}}
    stores = obstore().stores
    config = dict(settings.config)
    if scheme == "file":
        return stores.LocalStore()
    if scheme in urls.HTTP_SCHEMES:
        return _checked(root, stores.HTTPStore, root, **common, **config)
    if settings.anonymous:
        config["skip_signature"] = True
    if scheme in ("s3", "s3a"):
        config.update(_present(endpoint=endpoint, region=settings.region))
        return _checked(root, stores.S3Store, rest, **common, **config)
    if scheme == "gs" and settings.anonymous:
        # obstore reads the files of ambient credentials even to not use them.
        url = f"{endpoint or _GOOGLE}/{rest}"
        return _checked(root, stores.HTTPStore, url, **common)
    if scheme == "gs":
        config.update(_present(base_url=endpoint))
        return _checked(root, stores.GCSStore, rest, **common, **config)
    config.update(_present(endpoint=endpoint))
    if scheme in ("az", "azure"):
        return _checked(root, stores.AzureStore, rest, **common, **config)
    return _checked(root, stores.AzureStore.from_url, root, **common, **config)


def _ambient_endpoint(scheme: str) -> str:
    """Return the endpoint that obstore will take from the environment."""
    if scheme not in ("s3", "s3a"):
        return ""
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _checked(root: str, make: Any, where: str, **settings: Any) -> Any:
    """Make a store; what is wrong with its settings is the caller's mistake."""
    try:
        return make(where, **settings)
    except Exception as error:
        if isinstance(error, (UnsupportedError, SourceError)):
            raise
        raise ValueError(f"{urls.shown(root)}: {attempt_error(error)}") from error
