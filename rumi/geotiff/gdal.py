"""The one door to rasterio and GDAL: settings, opening, errors.

Nothing of either library gets out: not an exception type, not a warning, not a
line on standard error, not a setting.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rumi.errors import FormatError, RumiError, UnsupportedError

__all__ = ["opened", "rasterio_module", "reading", "settled", "translated", "writing"]

# GDAL's default block cache is a share of the machine's memory; rumi states its own.
CACHE_BYTES = 64 << 20

# Whatever the caller or the environment chose, the same file reads the same way.
_READING = {
    "GDAL_CACHEMAX": CACHE_BYTES,
    "GTIFF_IGNORE_READ_ERRORS": "NO",
}
_OPENING = {
    **_READING,
    # A vertical CRS must be seen to be refused.
    "GTIFF_REPORT_COMPD_CS": "YES",
    # Deprecated EPSG codes stay what they are.
    "OSR_USE_NON_DEPRECATED": "NO",
    "GTIFF_SRS_SOURCE": "EPSG",
    "GTIFF_POINT_GEO_IGNORE": "NO",
    # Side files (.aux.xml, .msk, .ovr, .tfw, RPC) belong to the image, as for GDAL.
    "GDAL_DISABLE_READDIR_ON_OPEN": "FALSE",
    "GDAL_PAM_ENABLED": "YES",
    "CONVERT_YCBCR_TO_RGB": "YES",
}

_WRITING = {
    "GDAL_CACHEMAX": CACHE_BYTES,
    "OSR_USE_NON_DEPRECATED": "NO",
    "GTIFF_POINT_GEO_IGNORE": "NO",
    "GDAL_PAM_ENABLED": "YES",
}

# GDAL's settings, and the filters of `warnings`, belong to the whole process.
_lock = threading.RLock()


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


@contextmanager
def translated(
    name: str, doing: str, kind: type[Exception] = FormatError
) -> Iterator[None]:
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
def settled() -> Iterator[Any]:
    """Give rasterio with every setting that matters to opening; one thread at a time."""
    rasterio = rasterio_module()
    with _lock, rasterio.Env(**_OPENING), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield rasterio


@contextmanager
def reading() -> Iterator[None]:
    """Hold the settings that matter while pixels are read."""
    with rasterio_module().Env(**_READING):
        yield


@contextmanager
def writing() -> Iterator[Any]:
    """Give rasterio with the settings that matter while a GeoTIFF is written."""
    rasterio = rasterio_module()
    with rasterio.Env(**_WRITING):
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
        with warnings.catch_warnings(record=True) as caught, remarks.listening():
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
        dataset.close()


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
