"""The one door to rasterio and GDAL: settings, opening, errors.

Nothing of either library gets out: not an exception type, not a warning, not a
line on standard error, not a setting. Outside a ``rasterio.Env`` GDAL prints
what it has to say; inside, rasterio logs it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rumi.errors import FormatError, RumiError, UnsupportedError
from rumi.geotiff.settings import OPENING, READING, WRITING, held

__all__ = [
    "has_half",
    "mentioned_beside",
    "opened",
    "quiet",
    "rasterio_module",
    "reading",
    "settled",
    "translated",
    "writing",
]

_SIDE_FILE_LIMIT = 16 << 20

# The filters of `warnings` and the hooks of `sys` belong to the whole process.
_lock = threading.RLock()


def _after_fork() -> None:
    """Make the lock anew: a thread that held it is not in the child."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def rasterio_module() -> Any:
    """Import rasterio.

    Raises
    ------
    UnsupportedError
        If it is not installed.
    """
    try:
        import rasterio
    except ImportError as error:
        raise UnsupportedError(
            "GeoTIFF needs the rasterio package: pip install 'rumi[geotiff]'"
        ) from error
    return rasterio


def has_half() -> bool:
    """Whether rasterio knows float16 as a type: from its 1.5 on, with GDAL 3.11."""
    return bool("float16" in rasterio_module().dtypes.dtype_rev)


@contextmanager
def translated(name: str, doing: str, kind: type[Exception] = FormatError) -> Iterator[None]:
    """Turn whatever rasterio or GDAL raise into one error that names the file.

    Parameters
    ----------
    name : str
        Of the file.
    doing : str
        What failed, for the message.
    kind : type
        Of the error.
    """
    try:
        yield
    except RumiError:
        raise
    except UnicodeEncodeError as error:
        raise UnsupportedError(f"{name}: GDAL takes file names of UTF-8 only") from error
    except UnicodeDecodeError as error:
        raise kind(f"{name}: {doing}: a text in it is not UTF-8") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "rasterio":
            raise
        raise kind(f"{name}: {doing}: {_reason(error, name)}") from error


def _reason(error: BaseException, name: str) -> str:
    """Return GDAL's own words: those of the first cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split())
    base = os.path.basename(name)
    return text.removeprefix(f"{name}: ").removeprefix(f"{base}: ").removeprefix(f"{base}, ")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Python's warnings quiet, for a moment and one thread at a time."""
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def settled() -> Iterator[Any]:
    """Give rasterio with every setting that matters to opening; one thread at a time."""
    rasterio = rasterio_module()
    with quiet(), rasterio.Env(), held(OPENING):
        yield rasterio


@contextmanager
def reading() -> Iterator[None]:
    """Hold the settings that matter while pixels are read."""
    with rasterio_module().Env(), held(READING):
        yield


@contextmanager
def writing() -> Iterator[Any]:
    """Give rasterio with the settings that matter while a GeoTIFF is written."""
    rasterio = rasterio_module()
    with rasterio.Env(), held(WRITING):
        yield rasterio


@contextmanager
def opened(path: bytes, name: str) -> Iterator[tuple[Any, bool, tuple[str, ...]]]:
    """Open a GeoTIFF with GDAL.

    Yields
    ------
    dataset : rasterio.DatasetReader
    has_transform : bool
        Whether the file states where it lies; rasterio gives the identity if not.
    remarks : tuple of str
        What GDAL warned of.

    Raises
    ------
    FormatError
        If GDAL cannot open it.
    """
    with settled() as rasterio, translated(name, "GDAL cannot open it"):
        remarks = _Remarks()
        with (
            warnings.catch_warnings(record=True) as caught,
            remarks.listening(),
            _foreign_text_ignored(),
        ):
            warnings.simplefilter("always")
            # A Path is never taken for a URL or a GDAL connection string.
            dataset = rasterio.open(
                Path(os.path.abspath(os.fsdecode(path))), driver="GTiff", sharing=False
            )
        lost = rasterio.errors.NotGeoreferencedWarning
        placed = not any(issubclass(warning.category, lost) for warning in caught)
    try:
        yield dataset, placed, tuple(remarks.lines)
    finally:
        with rasterio.Env():
            dataset.close()


def mentioned_beside(dataset: Any, *marks: bytes) -> str | None:
    """Return the .aux.xml file read with a dataset that holds one of some marks."""
    for file in map(str, dataset.files):
        if file.endswith(".aux.xml"):
            with open(file, "rb") as stream:
                content = stream.read(_SIDE_FILE_LIMIT)
            if any(mark in content for mark in marks):
                return file
    return None


@contextmanager
def _foreign_text_ignored() -> Iterator[None]:
    """Keep quiet about a warning that rasterio cannot log, since its text is not UTF-8.

    Cython prints such an error by way of both hooks.
    """
    printed, unraisable = sys.excepthook, sys.unraisablehook

    def print_hook(kind: Any, value: Any, traceback: Any) -> None:
        if not issubclass(kind, UnicodeDecodeError):
            printed(kind, value, traceback)

    def unraisable_hook(what: Any) -> None:
        if not isinstance(what.exc_value, UnicodeDecodeError):
            unraisable(what)

    sys.excepthook, sys.unraisablehook = print_hook, unraisable_hook
    try:
        yield
    finally:
        sys.excepthook, sys.unraisablehook = printed, unraisable


class _Remarks(logging.Handler):
    """Collects the warnings of GDAL, which rasterio logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.lines.append(" ".join(record.getMessage().split()))

    @contextmanager
    def listening(self) -> Iterator[None]:
        logger = logging.getLogger("rasterio._env")
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
