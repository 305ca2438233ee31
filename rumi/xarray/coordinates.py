"""Coordinates: from the six coefficients to labels of pixels, and back."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core import indexing

from rumi.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.georef import Georeferencing, Transform
    from rumi.header import Header

__all__ = ["GRID_MAPPING", "RASTER_TYPE", "centres", "geo_transform", "make"]

# The coordinate that carries CRS and transform, as rioxarray and odc-geo name it.
GRID_MAPPING = "spatial_ref"

# GDAL's name of the raster type, an attribute of the variable: "Area" or "Point".
RASTER_TYPE = "AREA_OR_POINT"


def centres(positions: Any, step: float, origin: float) -> NDArray[np.float64]:
    """Return the coordinates of the centres of pixels along an axis.

    The one formula, so that files on one grid have equal labels: the same
    operations as rioxarray and affine do.
    """
    found: NDArray[np.float64] = (np.asarray(positions) + 0.5) * step + origin
    return found


def make(georeferencing: Georeferencing, header: Header, name: str) -> dict[str, Variable]:
    """Return the coordinates of an image.

    Parameters
    ----------
    georeferencing : Georeferencing
    header : Header
    name : str
        What errors call the image.

    Raises
    ------
    UnsupportedError
        If the PROJ database does not know the EPSG code.
    """
    transform = georeferencing.transform
    if transform is None or georeferencing.epsg is None:
        return {}
    try:
        crs, x_attributes, y_attributes = _describe(georeferencing.epsg)
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: {error}") from error
    reference = Variable((), 0, {**crs, "GeoTransform": geo_transform(transform)})
    a, b, c, d, e, f = transform
    _, height, width = header.shape
    if b == d == 0:
        return {
            "y": Variable("y", centres(range(height), e, f), y_attributes),
            "x": Variable("x", centres(range(width), a, c), x_attributes),
            GRID_MAPPING: reference,
        }
    # One label a row or column would be wrong; these have one for each pixel.
    return {
        "yc": _plane((d, e, f), header, y_attributes),
        "xc": _plane((a, b, c), header, x_attributes),
        GRID_MAPPING: reference,
    }


def geo_transform(transform: Transform) -> str:
    """Return the attribute ``GeoTransform``: GDAL's order, every bit."""
    a, b, c, d, e, f = transform
    return " ".join(repr(float(value)) for value in (c, a, b, f, d, e))


# Asking PROJ takes milliseconds, and a catalog has few systems.
@cache
def _describe(epsg: int) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """Return the attributes of the CRS, of x and of y."""
    from pyproj import CRS, exceptions

    try:
        crs = CRS.from_epsg(epsg)
    except exceptions.CRSError as error:
        raise UnsupportedError(
            f"EPSG:{epsg} is not in this PROJ database; georeferencing=False opens without "
            "coordinates"
        ) from error
    axes = {axis["axis"]: axis for axis in crs.cs_to_cf()}
    # rioxarray looks for spatial_ref, which is GDAL's name, before crs_wkt, which is CF's.
    attributes = {**crs.to_cf(), "spatial_ref": crs.to_wkt()}
    return attributes, axes.get("X", {}), axes.get("Y", {})


class _Plane(BackendArray):  # type: ignore[misc]
    """One coordinate of every pixel of a rotated image, computed when asked for."""

    def __init__(self, coefficients: tuple[float, float, float], shape: tuple[int, int]) -> None:
        self.coefficients = coefficients
        self.shape = shape
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Compute what a key selects."""
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._compute
        )

    def _compute(self, key: tuple[Any, ...]) -> NDArray[np.float64]:
        per_column, per_row, origin = self.coefficients
        rows, cols = (np.arange(size)[part] for size, part in zip(self.shape, key, strict=True))
        found: NDArray[np.float64] = np.add.outer((rows + 0.5) * per_row, (cols + 0.5) * per_column)
        return found + origin


def _plane(
    coefficients: tuple[float, float, float], header: Header, attributes: dict[str, str]
) -> Variable:
    _, height, width = header.shape
    array = indexing.LazilyIndexedArray(_Plane(coefficients, (height, width)))
    kept = {name: value for name, value in attributes.items() if name != "axis"}
    return Variable(("y", "x"), array, kept)
