"""URLs on the command line: the options that say how to reach a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from rumi.errors import UnsupportedError
from rumi.remote import ObjectStore, RemoteSource, from_url
from rumi.remote.store import store_at
from rumi.source import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["check_use", "located", "store_for", "store_options"]

F = TypeVar("F", bound="Callable[..., Any]")

# Where click keeps what the options said, and the stores made from it.
_OPTIONS = "rumi.cli.stores.options"
_STORES = "rumi.cli.stores.made"

# Those of ObjectStore that are no text.
_NUMBERS: dict[str, type[int] | type[float]] = {
    "timeout": float,
    "connect_timeout": float,
    "max_connections": int,
    "retries": int,
    "gap": int,
    "largest": int,
}
_HEADER = "header."

# Those that are said otherwise.
_OTHERWISE = {
    "anonymous": "--anonymous",
    "endpoint": "--endpoint",
    "region": "--region",
    "headers": "header.NAME=VALUE",
    "where": "the URL",
}

# Schemes of stores that have endpoints and credentials.
_PLAIN = ("http://", "https://", "memory://")


def store_options(command: F) -> F:
    """Add the options of stores; what they say is found by `located`."""
    for name, settings in reversed(_DECLARED.items()):
        command = click.option(name, expose_value=False, callback=_keep, **settings)(command)
    return command


def located(place: str, *, writing: bool = False) -> str | RemoteSource:
    """Return a path as it is, and a URL as an object of the store that the options describe.

    Parameters
    ----------
    place : str
    writing : bool
        Whether it is an output: ``--anonymous`` is about what is read.

    Raises
    ------
    click.UsageError
        If the options do not fit the store.
    """
    if not is_remote(place):
        return place
    found = from_url(place)
    return RemoteSource(store_for(found.store, writing=writing), found.path)


def store_for(plain: ObjectStore, *, writing: bool = False) -> ObjectStore:
    """Return a store as the options of the line describe it; errors as of `located`."""
    meta = click.get_current_context().meta
    root = plain.settings.root or ""
    options = dict(meta.get(_OPTIONS, {}))
    if writing:
        options.pop("anonymous", None)
    if root.startswith(_PLAIN):
        # They are about the other URL of the line, if there is one.
        options = {name: options[name] for name in options if name in (*_NUMBERS, "headers")}
    if not options:
        return plain
    made = meta.setdefault(_STORES, {})
    key = (root, writing)
    if key not in made:
        try:
            made[key] = store_at(root, **options)
        except (TypeError, ValueError) as error:
            if isinstance(error, UnsupportedError):
                raise
            raise click.UsageError(f"the options of the store: {error}") from error
    store: ObjectStore = made[key]
    return store


def check_use(ctx: click.Context) -> None:
    """Refuse options of stores on a line that names none.

    Raises
    ------
    click.UsageError
    """
    if not ctx.meta.get(_OPTIONS):
        return
    for value in ctx.params.values():
        if any(map(is_remote, value if isinstance(value, tuple) else (value,))):
            return
    names = ", ".join(_DECLARED)
    raise click.UsageError(f"{names} go with a URL, and there is none")


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value in (None, False, ()):
        return
    options = ctx.meta.setdefault(_OPTIONS, {})
    if param.name == "store_option":
        for text in value:
            _add(options, text)
    else:
        options[param.name] = value


def _add(options: dict[str, Any], text: str) -> None:
    """Add one NAME=VALUE."""
    name, mark, value = text.partition("=")
    if not (mark and name and value):
        raise click.BadParameter(f"expected NAME=VALUE, found {text!r}")
    if name.lower().startswith(_HEADER):
        options.setdefault("headers", {})[name[len(_HEADER) :]] = value
        return
    name = name.lower()
    if name in _OTHERWISE:
        raise click.BadParameter(f"{name}: there is {_OTHERWISE[name]} for it")
    try:
        options[name] = _NUMBERS.get(name, str)(value)
    except ValueError as error:
        raise click.BadParameter(f"{name}: expected a number, found {value!r}") from error


_DECLARED: dict[str, dict[str, Any]] = {
    "--anonymous": {
        "is_flag": True,
        "help": "Read URLs without credentials, and look for none.",
    },
    "--endpoint": {
        "metavar": "URL",
        "help": "Another service with the interface of S3, Google or Azure.",
    },
    "--region": {"metavar": "NAME", "help": "Of an S3 bucket."},
    "--store-option": {
        "metavar": "NAME=VALUE",
        "multiple": True,
        "help": "Any other setting of rumi.remote.ObjectStore, or header.NAME=VALUE.",
    },
}
