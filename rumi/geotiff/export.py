"""One rumi file to one GeoTIFF."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi import workers
from rumi._core import Store
from rumi.atomic import TEMPORARY_SUFFIX
from rumi.errors import CodecError
from rumi.geotiff import gdal, produce
from rumi.geotiff.nodata import nodata_value
from rumi.geotiff.places import check_target
from rumi.geotiff.produce import Settings
from rumi.geotiff.targets import find_target
from rumi.image import Image, open_image
from rumi.source import is_remote, local_copy, local_path, remote_source, source_name

if TYPE_CHECKING:
    from rumi.geotiff.places import Place
    from rumi.header import Header
    from rumi.source import SourceLike

__all__ = ["Export", "export"]

_DRIVERS = ("COG", "GTiff")
# LERC is left out, since it does not keep the payload of a NaN.
_COMPRESSIONS = ("DEFLATE", "ZSTD", "LZW", "LZMA", "NONE")
_RESAMPLINGS = ("nearest", "average", "bilinear", "cubic", "mode")
_SIDE_FILES = (".aux.xml", ".msk", ".ovr")


@dataclass(frozen=True, slots=True)
class Export:
    """A rumi file that became a GeoTIFF.

    Attributes
    ----------
    src, dst : str
        The rumi file and the GeoTIFF.
    dtype : str
        Sample type that GDAL reads.
    widened : bool
        Whether it is a wider one than the rumi file's; every value is the same.
    bytes_out : int
        Size of the GeoTIFF.
    seconds : float
        What it took.
    """

    src: str
    dst: str
    dtype: str
    widened: bool
    bytes_out: int
    seconds: float


def export(
    src: SourceLike,
    dst: Place,
    *,
    header: Header | bytes | None = None,
    driver: str = "COG",
    compress: str = "DEFLATE",
    overviews: str | None = "nearest",
    nodata: str | float | None = None,
    band_names: Sequence[str | None] = (),
    widen: bool = False,
    verify: bool = True,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    overwrite: bool = True,
) -> Export:
    """Write a rumi file as a GeoTIFF.

    Parameters
    ----------
    src : path, URL, RemoteSource or bytes-like
        The rumi file.
    dst : path, URL or RemoteSource
        Replaced whole, or left as it was where anything fails.
    header : Header or bytes-like, optional
        The rumi file's header.
    driver : {"COG", "GTiff"}
        A cloud-optimised GeoTIFF, or a tiled one without overviews.
    compress : {"DEFLATE", "ZSTD", "LZW", "LZMA", "NONE"}
        All lossless; a predictor is used where it suits the samples.
    overviews : {"nearest", "average", "bilinear", "cubic", "mode"} or None
        How the reduced copies of a COG are made; None makes none.
    nodata : str or number, optional
        Value to declare as nodata, such as `Conversion.nodata`.
    band_names : sequence of str, optional
        Descriptions of the bands.
    widen : bool
        Write samples of a type that GDAL has not (int2, int4, the small floats,
        bfloat16, complex int32 and float16) as a wider type that holds every
        value; the payload of a NaN may change then.
    verify : bool
        Read the GeoTIFF back and compare every sample, and the georeferencing.
    threads : int, optional
        At most this many; see `rumi.workers.resolve_threads`.
    progress : callable, optional
        Called with the numbers of windows done and in all.
    overwrite : bool
        Replace `dst` if it exists.

    Returns
    -------
    Export

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used, or `nodata` is no sample.
    FileExistsError
        If `dst` exists and `overwrite` is false, or a side file would be read
        as part of it.
    UnsupportedError
        If GDAL has no such samples and `widen` is false, or rasterio is missing.
    RumiError
        If the rumi file cannot be read.
    CodecError
        If the GeoTIFF does not hold what the rumi file holds.
    OSError
        If a file cannot be read or written; SourceError where it is remote.

    Notes
    -----
    Memory does not grow with the image. A COG takes a temporary copy on disk,
    beside `dst`; a remote one is made in the folder for temporary files, and so is
    a copy of a remote `src` that is verified. A PixelIsPoint file keeps the flag
    and the centres of its pixels.
    """
    start = time.monotonic()
    image = open_image(src, header)
    settings = _settings(image, driver, compress, overviews, nodata, band_names, threads)
    target = find_target(image.header.encoding, widen=widen, name=image.name)
    name = source_name(dst)
    check_target(src, dst, overwrite=overwrite)
    gdal.rasterio_module()
    windows = produce.cut(image)
    total = len(windows) * (2 if verify else 1)

    def report(done: int) -> None:
        if progress is not None:
            progress(done, total)

    with _finished(dst, name) as made, _at_hand(image, twice=verify) as image:
        produce.make(image, target, settings, windows, made, report)
        if verify:
            produce.verify(image, target, windows, made, report)
        if os.path.exists(made + ".aux.xml"):
            raise CodecError(f"{name}: GDAL put a part of it into a file beside it")
        size = os.stat(made).st_size
    return Export(
        image.name,
        name,
        target.dtype,
        target.widened,
        size,
        time.monotonic() - start,
    )


def _settings(
    image: Image,
    driver: str,
    compress: str,
    overviews: str | None,
    nodata: str | float | None,
    band_names: Sequence[str | None],
    threads: int | None,
) -> Settings:
    """Check the arguments that need no file."""
    compress = str(compress).upper()
    for name, value, allowed in (
        ("driver", driver, _DRIVERS),
        ("compress", compress, _COMPRESSIONS),
        ("overviews", overviews, (*_RESAMPLINGS, None)),
    ):
        if value not in allowed:
            raise ValueError(f"{name}: expected one of {allowed}, found {value!r}")
    names = tuple(text or "" for text in band_names)
    if names and len(names) != image.shape[0]:
        raise ValueError(f"band_names: expected {image.shape[0]}, found {len(names)}")
    text = None
    if nodata is not None:
        sample = nodata_value(str(nodata), image.dtype)
        if sample is None:
            raise ValueError(f"nodata: {nodata} is no {image.dtype} sample")
        text = _plain_number(sample)
    return Settings(driver, compress, overviews, text, names, workers.resolve_threads(threads))


def _plain_number(sample: Any) -> str:
    """Write a sample as GDAL reads nodata: a whole number, or 17 digits."""
    number = sample["real"] if getattr(sample.dtype, "names", None) else sample
    number = getattr(number, "real", number)
    whole = np.dtype(sample.dtype).kind in "biu" or "int" in np.dtype(sample.dtype).name
    return str(int(number)) if whole else repr(float(number))


def _refuse_other_kinds(path: str, name: str) -> None:
    """Refuse a local target that is no file, or has old files beside it."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{name}: expected a regular file or none, found another kind")
    for suffix in _SIDE_FILES:
        if os.path.exists(path + suffix):
            raise FileExistsError(
                f"{name}{suffix}: GDAL would take this older file for a part of the new one; "
                "remove it"
            )


@contextmanager
def _at_hand(image: Image, *, twice: bool) -> Iterator[Image]:
    """Give an image of a local copy of a remote file, if it is read twice."""
    opened = image.opened()
    if not (twice and is_remote(opened)):
        yield image
        return
    with local_copy(opened) as path:
        yield open_image(Store.open_path(path, image.name), image.header)


@contextmanager
def _finished(dst: Place, name: str) -> Iterator[str]:
    """Give a path for a file that becomes the target when the block ends."""
    if is_remote(dst):
        from rumi.remote.upload import upload

        with tempfile.TemporaryDirectory(prefix="rumi-") as folder:
            made = os.path.join(folder, "made.tif")
            yield made
            upload(remote_source(dst), Path(made))
        return
    path = os.fsdecode(os.path.realpath(local_path(dst)))
    _refuse_other_kinds(path, name)
    with _folder_beside(path) as folder:
        made = os.path.join(folder, "made.tif")
        yield made
        _sync(made, path)
        os.replace(made, path)


@contextmanager
def _folder_beside(path: str) -> Iterator[str]:
    """Make a folder for unfinished files on the file system of the target."""
    parent, base = os.path.split(path)
    folder = os.path.join(parent, f".{base[:100]}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    os.mkdir(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _sync(made: str, path: str) -> None:
    """Flush the finished file, and give it the permissions of the one it replaces."""
    with open(made, "rb") as file:
        os.fsync(file.fileno())
    if os.path.exists(path):
        os.chmod(made, os.stat(path).st_mode & 0o7777)
