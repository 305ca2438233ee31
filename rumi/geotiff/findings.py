"""What is in a GeoTIFF, what a rumi file can carry of it, and what it cannot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rumi.errors import UnsupportedError
from rumi.geotiff import gdal, metadata, placement, samples
from rumi.geotiff.losses import LOSS_NAMES
from rumi.geotiff.tags import read_tags
from rumi.source import is_remote, local_copy, source_name

if TYPE_CHECKING:
    import numpy as np

    from rumi.georef import RasterType, Transform
    from rumi.geotiff.losses import Loss
    from rumi.geotiff.places import Place
    from rumi.geotiff.samples import Samples
    from rumi.geotiff.tags import TiffTags

__all__ = ["Inspection", "examined", "inspect"]

_ORDER = (*LOSS_NAMES, "crs")

# GDAL's word for JPEG data that its decoder turns from YCbCr to RGB.
_JPEG_YCBCR = "YCbCr JPEG"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is in a GeoTIFF.

    Attributes
    ----------
    src : str
        The file.
    files : tuple of str
        The file and those beside it that GDAL reads with it.
    shape : (int, int, int)
        Bands, height and width in pixels.
    dtype : dtype
        What the rumi file's samples are.
    epsg : int or None
        EPSG code that can be carried.
    transform : tuple of 6 float or None
        Corner-based coefficients, None without georeferencing.
    raster_type : {"area", "point"}
        What a sample stands for.
    nodata : str or None
        The text of GDAL_NODATA, exactly; see `nodata_value`.
    band_names : tuple of (str or None)
        Description of each band.
    losses : tuple of Loss
        What a rumi file cannot carry.
    warnings : tuple of str
        What is wrong with the file, though nothing is lost by it.
    notes : tuple of str
        What else the conversion does or leaves out.
    """

    src: str
    files: tuple[str, ...]
    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    epsg: int | None
    transform: Transform | None
    raster_type: RasterType
    nodata: str | None
    band_names: tuple[str | None, ...]
    losses: tuple[Loss, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def inspect(src: Place, *, crs: Any = None) -> Inspection:
    """Say what is in a GeoTIFF and what a rumi file cannot carry of it.

    Parameters
    ----------
    src : path, URL or RemoteSource
        A GeoTIFF; a remote one is downloaded.
    crs : int, str or CRS object, optional
        EPSG code to take instead of the file's own CRS.

    Returns
    -------
    Inspection

    Raises
    ------
    TypeError, ValueError
        If `crs` is no EPSG code.
    FormatError
        If the file is no GeoTIFF, or a damaged one.
    UnsupportedError
        If its samples cannot be carried, or rasterio is missing.
    OSError
        If it cannot be read.

    Notes
    -----
    Reads no pixels.
    """
    with local_copy(src) as path, examined(path, crs, source_name(src)) as (_, found, _):
        return replace(found, files=(found.src,)) if is_remote(src) else found


@contextmanager
def examined(path: str, crs: Any, name: str) -> Iterator[tuple[Any, Inspection, Samples]]:
    """Open a local GeoTIFF and inspect it under a name; errors as of `inspect`.

    Parameters
    ----------
    path : str
    crs : int, str or CRS object, optional
        As of `inspect`.
    name : str
        What errors and results call it.

    Yields
    ------
    dataset : rasterio.DatasetReader
        Open as long as the context lasts.
    found : Inspection
    stored : Samples
        How its samples come through GDAL.
    """
    stated = placement.stated_crs(crs)
    gdal.rasterio_module()
    tags = read_tags(os.fsencode(path), name)
    sample_format, bits = samples.stored_type(tags, name)
    with gdal.opened(os.fsencode(path), name) as (dataset, has_transform, remarks):
        with gdal.settled(), gdal.translated(name, "GDAL cannot describe it"):
            _refuse_converted_colours(dataset, tags, name)
            kind = dataset.dtypes[0]
            stored = samples.resolve(
                sample_format, bits, kind, big_endian=tags.big_endian, name=name
            )
            placed = placement.find(dataset, tags, stated, has_transform, name)
            said = metadata.find(dataset, tags, stored)
            losses = sorted(
                (*said.losses, *placed.losses), key=lambda loss: _ORDER.index(loss.name)
            )
            found = Inspection(
                src=name,
                files=tuple(dataset.files),
                shape=(dataset.count, dataset.height, dataset.width),
                dtype=stored.dtype,
                epsg=placed.epsg,
                transform=placed.transform,
                raster_type=placed.raster_type,
                nodata=said.nodata,
                band_names=said.band_names,
                losses=tuple(losses),
                warnings=said.warnings,
                notes=(*said.notes, *placed.notes, *(f"GDAL: {line}" for line in remarks)),
            )
        yield dataset, found, stored


def _refuse_converted_colours(dataset: Any, tags: TiffTags, name: str) -> None:
    """Refuse samples that GDAL computes from other ones."""
    structure = dataset.tags(ns="IMAGE_STRUCTURE")
    space = structure.get("SOURCE_COLOR_SPACE")
    computed = space is not None and structure.get("COMPRESSION") != _JPEG_YCBCR
    if computed or dataset.count != tags.bands:
        raise UnsupportedError(
            f"{name}: the {tags.bands} bands are stored as {space or 'other colours'} and GDAL "
            f"gives {dataset.count} bands that it computes from them; translate the file to RGB "
            "first"
        )
