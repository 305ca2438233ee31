"""One GeoTIFF to one rumi file."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rumi.errors import UnsupportedError
from rumi.geotiff import gdal
from rumi.geotiff.blocks import BlockSource
from rumi.geotiff.findings import examined
from rumi.geotiff.losses import accept, parse_drop
from rumi.geotiff.places import check_target
from rumi.source import local_copy, source_name
from rumi.write import write

if TYPE_CHECKING:
    from rumi.geotiff.findings import Inspection
    from rumi.geotiff.losses import Loss
    from rumi.geotiff.places import Place
    from rumi.header import Header

__all__ = ["Conversion", "convert", "convert_telling"]

# An index of more frames than this takes gigabytes; a damaged size claims as many.
_MAX_FRAMES = 1 << 28


@dataclass(frozen=True, slots=True)
class Conversion:
    """A GeoTIFF that became a rumi file.

    Attributes
    ----------
    src, dst : str
        The GeoTIFF and the rumi file.
    header : Header
        Of the rumi file.
    epsg : int or None
        EPSG code of the rumi file.
    losses : tuple of Loss
        What the rumi file does not carry, each marked as dropped.
    nodata : str or None
        The text of GDAL_NODATA, exactly, for a catalog; see `nodata_value`.
    band_names : tuple of (str or None)
        Description of each band, for a catalog.
    warnings, notes : tuple of str
        As of `Inspection`.
    bytes_in, bytes_out : int
        Sizes of the two files.
    seconds : float
        What it took.
    skipped : bool
        Whether the rumi file was there already.
    """

    src: str
    dst: str
    header: Header
    epsg: int | None
    losses: tuple[Loss, ...]
    nodata: str | None
    band_names: tuple[str | None, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    bytes_in: int
    bytes_out: int
    seconds: float
    skipped: bool = False


def convert(
    src: Place,
    dst: Place,
    *,
    tile_size: int | tuple[int, int] = 512,
    frame_unit: str = "tile",
    codec: Any = "auto",
    verify: bool = True,
    drop: str | Iterable[str] = (),
    crs: Any = None,
    allow_no_crs: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    overwrite: bool = True,
) -> Conversion:
    """Convert a GeoTIFF.

    Parameters
    ----------
    src : path, URL or RemoteSource
        A GeoTIFF; files beside a local one (.aux.xml, .msk, .ovr, .tfw) count as
        they do for GDAL. A remote one is downloaded into the folder for temporary
        files, alone.
    dst : path, URL or RemoteSource
        Replaced whole, or left as it was where anything fails.
    tile_size, frame_unit, codec, verify, threads, progress
        As of `rumi.write`.
    drop : str or iterable of str
        Names of losses to accept, or "all"; see `rumi.geotiff.LOSS_NAMES`.
    crs : int, str or CRS object, optional
        EPSG code to write instead of the file's own CRS.
    allow_no_crs : bool
        Write the file without georeferencing where its CRS cannot be carried.
    overwrite : bool
        Replace `dst` if it exists.

    Returns
    -------
    Conversion

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used.
    FileExistsError
        If `dst` exists and `overwrite` is false.
    FormatError
        If `src` is no GeoTIFF, or a damaged one.
    UnsupportedError
        If a loss was not accepted, the samples cannot be carried, or rasterio is
        missing.
    OSError
        If a file cannot be read or written; SourceError where it is remote.

    Warns
    -----
    UserWarning
        If the CRS was left out, or nodata marks no sample. Once a file.

    Notes
    -----
    Samples are bit for bit what GDAL reads: NaN payloads, -0.0, complex integers
    and sub-byte samples included. Only the signalling NaNs of complex float16 are
    quiet when GDAL, from 3.11 on, hands them over. Memory does not grow with the
    image.
    """
    return convert_telling(
        lambda text: warnings.warn(text, UserWarning, stacklevel=4),
        src,
        dst,
        drop=drop,
        crs=crs,
        allow_no_crs=allow_no_crs,
        overwrite=overwrite,
        tile_size=tile_size,
        frame_unit=frame_unit,
        codec=codec,
        verify=verify,
        threads=threads,
        progress=progress,
    )


def convert_telling(
    tell: Callable[[str], None],
    src: Place,
    dst: Place,
    *,
    drop: str | Iterable[str] = (),
    crs: Any = None,
    allow_no_crs: bool = False,
    overwrite: bool = True,
    **writing: Any,
) -> Conversion:
    """Convert as `convert` does, and give warnings to a function instead."""
    start = time.monotonic()
    accepted = parse_drop(drop)
    name = source_name(src)
    check_target(src, dst, overwrite=overwrite)
    gdal.rasterio_module()
    with local_copy(src) as path, examined(path, crs, name) as (dataset, found, stored):
        size = os.stat(path).st_size
        losses = accept(found.losses, accepted, allow_no_crs=allow_no_crs, name=name)
        _refuse_countless_frames(found, writing.get("tile_size", 512))
        warned = (*found.warnings, *_left_out(losses))
        for text in warned:
            tell(f"{name}: {text}")
        with gdal.reading():
            header = write(
                dst,
                BlockSource(dataset, stored, name),
                crs=found.epsg,
                transform=found.transform,
                raster_type=found.raster_type,
                **writing,
            )
    return Conversion(
        src=name,
        dst=source_name(dst),
        header=header,
        epsg=found.epsg,
        losses=losses,
        nodata=found.nodata,
        band_names=found.band_names,
        warnings=warned,
        notes=found.notes,
        bytes_in=size,
        bytes_out=header.file_size,
        seconds=time.monotonic() - start,
    )


def _left_out(losses: tuple[Loss, ...]) -> tuple[str, ...]:
    """Say that a file is written without its CRS."""
    return tuple(
        f"written without georeferencing: {loss.detail}" for loss in losses if loss.name == "crs"
    )


def _refuse_countless_frames(found: Inspection, tile_size: Any) -> None:
    sides = tile_size if isinstance(tile_size, (tuple, list)) else (tile_size, tile_size)
    if not all(isinstance(side, int) and side > 0 for side in sides) or len(sides) != 2:
        return  # the writer says what is wrong with it
    bands, height, width = found.shape
    frames = bands * -(-height // sides[0]) * -(-width // sides[1])
    if frames > _MAX_FRAMES:
        raise UnsupportedError(
            f"{found.src}: {bands} x {height} x {width} pixels in tiles of {sides[0]} x {sides[1]} "
            f"are {frames} frames, more than {_MAX_FRAMES}; use larger tiles"
        )
