"""Where a data array lies: CRS and transform from its coordinates.

The opposite of `rumi.xarray.coordinates`, for arrays from anywhere: rioxarray,
odc-geo, netCDF, or computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rumi import georef
from rumi.xarray.coordinates import GRID_MAPPING, centres

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from xarray import DataArray

    from rumi.georef import Transform

__all__ = ["locate", "spatial_dims"]

_DIMENSIONS = (("y", "x"), ("latitude", "longitude"), ("lat", "lon"), ("northing", "easting"))

# Two coordinates of every pixel of a rotated image, as rioxarray names them.
_PLANES = ("yc", "xc")

# How far a label may be from the regular grid, in pixels: rounding is allowed
# for, and then some, but no more where labels have few digits.
_TOLERANCE = 1e-3
_LARGEST_TOLERANCE = 0.05

# Rows and columns at which the coordinates of a rotated image are looked at.
_LOOKS = 128

_GIVE_TRANSFORM = "give transform=(a, b, c, d, e, f)"


def spatial_dims(array: DataArray) -> tuple[str, str]:
    """Return the names of the dimensions of rows and columns.

    Raises
    ------
    ValueError
        If it has none that are known.
    """
    for rows, cols in _DIMENSIONS:
        if rows in array.dims and cols in array.dims:
            return rows, cols
    raise ValueError(
        f"expected dimensions y and x (or {' or '.join(' and '.join(d) for d in _DIMENSIONS[1:])}),"
        f" found {tuple(map(str, array.dims))}; rename them"
    )


def locate(
    array: DataArray, *, crs: Any = None, transform: Any = None
) -> tuple[Any, Transform | None]:
    """Return the CRS and the corner-based transform of a data array, or None twice.

    Parameters
    ----------
    array : DataArray
    crs, transform : optional
        What the caller knows better; as of `rumi.write`.

    Raises
    ------
    ValueError
        If coordinates are irregular or do not agree, or there is a CRS without
        coordinates, or coordinates without a CRS.
    """
    dims = spatial_dims(array)
    reference = _reference(array)
    if crs is None:
        crs = _crs(reference)
    if transform is not None:
        transform = georef.normalise_transform(transform)
    else:
        transform = _transform(array, dims, _stated(reference))
    if crs is None and transform is not None:
        raise ValueError(
            "there are coordinates but no CRS: give crs=, or drop the coordinates with "
            f"drop_vars({[*dims, *_PLANES, GRID_MAPPING]}, errors='ignore')"
        )
    if crs is not None and transform is None:
        raise ValueError(
            f"there is a CRS but neither coordinates nor a GeoTransform: {_GIVE_TRANSFORM}"
        )
    return crs, transform


def _reference(array: DataArray) -> Mapping[Any, Any]:
    """Return the attributes of the coordinate that describes the CRS."""
    name = array.encoding.get("grid_mapping") or array.attrs.get("grid_mapping") or GRID_MAPPING
    # "crs: x y", the long form of CF, names the coordinates too.
    name = str(name).split(":")[0].strip()
    return array.coords[name].attrs if name in array.coords else {}


def _crs(reference: Mapping[Any, Any]) -> Any:
    from pyproj import CRS

    wkt = reference.get("crs_wkt") or reference.get("spatial_ref")
    if wkt:
        return CRS.from_wkt(wkt)
    return CRS.from_cf(dict(reference)) if "grid_mapping_name" in reference else None


def _stated(reference: Mapping[Any, Any]) -> Transform | None:
    """Return the transform that the attributes state, which may be that of a larger array."""
    text = reference.get("GeoTransform")
    if text is None:
        return None
    # GDAL separates by blanks; some write a sequence.
    c, a, b, f, d, e = map(float, text.split() if isinstance(text, str) else text)
    return georef.normalise_transform((a, b, c, d, e, f))


def _transform(
    array: DataArray, dims: tuple[str, str], stated: Transform | None
) -> Transform | None:
    labelled = [name in array.coords for name in dims]
    if all(labelled):
        return _from_axes(array, dims, stated)
    if any(labelled):
        raise ValueError(f"expected coordinates along both {dims[0]} and {dims[1]}, found one")
    if all(name in array.coords for name in _PLANES):
        return _from_planes(array, dims, stated)
    planes = [str(name) for name, found in array.coords.items() if set(dims) <= set(found.dims)]
    if planes:
        raise ValueError(
            f"two-dimensional coordinates {planes} cannot be stored: drop them, or "
            f"{_GIVE_TRANSFORM}"
        )
    return stated


# -- one label for each row and column --


def _from_axes(array: DataArray, dims: tuple[str, str], stated: Transform | None) -> Transform:
    a, b, c, d, e, f = stated or (0.0,) * 6
    if b or d:
        raise ValueError(
            f"{dims[0]} and {dims[1]} label rows and columns, but the GeoTransform of the array is "
            f"rotated: {_GIVE_TRANSFORM}"
        )
    step_y, origin_y = _axis(array.coords[dims[0]], e, f)
    step_x, origin_x = _axis(array.coords[dims[1]], a, c)
    return step_x, 0.0, origin_x, 0.0, step_y, origin_y


def _axis(labels: DataArray, step: float, origin: float) -> tuple[float, float]:
    """Return step and origin of an axis; those stated, bit for bit, where they make its labels."""
    if labels.dtype.kind not in "fiu":
        raise ValueError(f"{labels.name}: expected numbers, found {labels.dtype}")
    values = np.asarray(labels, dtype=np.float64)
    if not np.isfinite(values).all() or values.size == 0:
        raise ValueError(f"{labels.name}: expected finite labels, at least one")
    first = _first_pixel(values, step, origin)
    if first is not None:
        return step, origin if first == 0 else step * first + origin
    if values.size > 1:
        step = float(values[-1] - values[0]) / (values.size - 1)
    elif step == 0:
        raise ValueError(f"{labels.name}: one label tells no pixel size: {_GIVE_TRANSFORM}")
    origin = float(values[0]) - 0.5 * step
    digits = np.spacing(np.abs(labels.values).max()) if labels.dtype.kind == "f" else 0.0
    wrong = _largest_error(values, centres(range(values.size), step, origin), step, float(digits))
    if step == 0 or wrong is not None:
        raise ValueError(
            f"{labels.name}: the labels are irregular (label {wrong or 0} is "
            f"{float(values[wrong or 0])!r}), and a rumi file has one pixel size: reproject first"
        )
    return step, origin


def _first_pixel(values: NDArray[np.float64], step: float, origin: float) -> int | None:
    """Return which pixel of a stated axis the first label is, if all labels are exactly its own."""
    if step == 0:
        return None
    position = (values[0] - origin) / step - 0.5
    if not abs(position) < 1 << 53:
        return None
    first = round(position)
    same = np.array_equal(centres(np.arange(first, first + values.size), step, origin), values)
    return first if same else None


def _largest_error(
    values: NDArray[np.float64], expected: NDArray[np.float64], step: float, digits: float
) -> int | None:
    """Return where labels are farthest from a regular grid, None where all are near enough."""
    errors = np.abs(values - expected).reshape(-1)
    tolerance = min(_TOLERANCE * abs(step) + digits, _LARGEST_TOLERANCE * abs(step))
    worst = int(errors.argmax())
    return worst if errors[worst] > tolerance else None


# -- two labels for each pixel --


def _from_planes(array: DataArray, dims: tuple[str, str], stated: Transform | None) -> Transform:
    height, width = (array.sizes[name] for name in dims)
    rows = np.unique(np.linspace(0, height - 1, min(height, _LOOKS)).astype(int))
    cols = np.unique(np.linspace(0, width - 1, min(width, _LOOKS)).astype(int))
    looks = {dims[0]: rows, dims[1]: cols}
    y, x = (
        np.asarray(array.coords[name].transpose(*dims).isel(looks), dtype=np.float64)
        for name in _PLANES
    )
    if stated is not None and _matches(stated, rows, cols, y, x):
        return stated
    if len(rows) < 2 or len(cols) < 2:
        raise ValueError(f"{_PLANES}: one row or column tells no rotation: {_GIVE_TRANSFORM}")
    d, e, f = _plane(y, height, width)
    a, b, c = _plane(x, height, width)
    transform = georef.normalise_transform((a, b, c, d, e, f))
    pixel = min(np.hypot(a, d), np.hypot(b, e))
    for name, found, (per_column, per_row, origin) in (
        ("yc", y, (d, e, f)),
        ("xc", x, (a, b, c)),
    ):
        expected = np.add.outer((rows + 0.5) * per_row, (cols + 0.5) * per_column) + origin
        if _largest_error(found, expected, pixel, 0.0) is not None:
            raise ValueError(
                f"{name}: the coordinates are no affine function of row and column, which is all "
                "that a rumi file has: reproject first"
            )
    return transform


def _plane(values: NDArray[np.float64], height: int, width: int) -> tuple[float, float, float]:
    per_column = float(values[0, -1] - values[0, 0]) / (width - 1)
    per_row = float(values[-1, 0] - values[0, 0]) / (height - 1)
    return per_column, per_row, float(values[0, 0]) - 0.5 * (per_column + per_row)


def _matches(
    transform: Transform,
    rows: NDArray[Any],
    cols: NDArray[Any],
    y: NDArray[np.float64],
    x: NDArray[np.float64],
) -> bool:
    a, b, c, d, e, f = transform
    return np.array_equal(
        np.add.outer((rows + 0.5) * e, (cols + 0.5) * d) + f, y
    ) and np.array_equal(np.add.outer((rows + 0.5) * b, (cols + 0.5) * a) + c, x)
