"""Sources and targets of conversions: local files, and objects in stores.

GDAL sees local files only. What is behind a URL is read whole in any case, so it
is downloaded first, with rumi's own settings, checks and errors.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from rumi.source import is_path, is_remote, local_path, remote_source, source_name

if TYPE_CHECKING:
    from rumi.remote import RemoteSource
    from rumi.remote.opened import OpenObject

__all__ = ["Place", "check_target", "modified", "named", "same_place"]

Place: TypeAlias = "str | os.PathLike[str] | RemoteSource"


def named(place: Place) -> Any:
    """Return a place in a form that pickles and is independent of the working folder's type."""
    return remote_source(place) if is_remote(place) else os.fsdecode(local_path(place))


def check_target(src: Any, dst: Place, *, overwrite: bool) -> None:
    """Refuse a target that must not be written, before any work is done.

    Raises
    ------
    ValueError
        If it is the source, or the name of nothing that can be written.
    FileExistsError
        If it exists and `overwrite` is false.
    UnsupportedError, SourceError
        If its store takes no uploads, or does not say whether it exists.
    """
    name = source_name(dst)
    if same_place(src, dst):
        raise ValueError(f"{name}: the source and the target are the same file")
    if is_remote(dst):
        from rumi.remote.upload import check_writable

        check_writable(remote_source(dst))
    if not overwrite and _exists(dst):
        raise FileExistsError(f"{name}: exists already; overwrite=True (--overwrite) replaces it")


def same_place(src: Any, dst: Place) -> bool:
    """Whether two names are of one file, as far as names tell."""
    if is_remote(src) or is_remote(dst):
        return is_remote(src) and is_remote(dst) and source_name(src) == source_name(dst)
    if not is_path(src):
        return False
    source, target = local_path(src), local_path(dst)
    return os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target)


def modified(place: Place) -> int | None:
    """Return when a file was last changed, in ns since 1970; None where nobody says.

    Raises
    ------
    OSError
        If there is no such file, or it cannot be reached.
    """
    if not is_remote(place):
        return os.stat(local_path(place)).st_mtime_ns
    seconds = _opened(place).modified
    return None if seconds is None else round(seconds * 1e9)


def _exists(place: Place) -> bool:
    return _opened(place).exists() if is_remote(place) else os.path.exists(local_path(place))


def _opened(place: Place) -> OpenObject:
    return cast("OpenObject", remote_source(place).open())
