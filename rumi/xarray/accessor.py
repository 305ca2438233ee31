"""``.rumi.to_rumi(path)`` of datasets and data arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import DataArray, Dataset, register_dataarray_accessor, register_dataset_accessor

from rumi.errors import UnsupportedError
from rumi.geotiff.losses import Loss, parse_drop
from rumi.write import write
from rumi.xarray.blocks import DaskBlocks
from rumi.xarray.coordinates import RASTER_TYPE
from rumi.xarray.placement import locate, spatial_dims

if TYPE_CHECKING:
    from rumi.header import Header
    from rumi.remote import RemoteSource

__all__ = ["RumiArrayAccessor", "RumiDatasetAccessor"]

# Where xarray, rioxarray and CF keep the value that stands for no data.
_NODATA = ("_FillValue", "missing_value", "nodata", "nodatavals")


@register_dataarray_accessor("rumi")
class RumiArrayAccessor:
    """What rumi adds to a data array; xarray makes it."""

    def __init__(self, array: DataArray) -> None:
        self._array = array

    def to_rumi(
        self,
        path: str | os.PathLike[str] | RemoteSource,
        *,
        drop: str | Iterable[str] = (),
        crs: Any = None,
        transform: Any = None,
        raster_type: str | None = None,
        **options: Any,
    ) -> Header:
        """Write the array as a rumi file.

        Parameters
        ----------
        path : path, URL or RemoteSource
            As of `rumi.write`.
        drop : str or iterable of str
            What may be lost, by the names of `rumi.geotiff`: ``"nodata"``,
            ``"scale_offset"``, ``"band_names"``, or ``"all"``.
        crs, transform : optional
            As of `rumi.write`; by default what the coordinates say.
        raster_type : {"area", "point"}, optional
            By default what the attribute ``AREA_OR_POINT`` says, else "area".
        **options
            Others of `rumi.write`, such as ``tile_size`` and ``codec``.

        Returns
        -------
        Header

        Raises
        ------
        ValueError
            If there are other dimensions than rows, columns and one for the bands,
            coordinates are irregular, or CRS and coordinates are not both there.
        UnsupportedError
            If something would be lost that `drop` does not name, or the CRS is no
            EPSG code.
        RumiError, TypeError, ValueError, OSError
            As `rumi.write`.

        Notes
        -----
        A Dask array is computed as it is written, by one writer, see
        `rumi.xarray.blocks.DaskBlocks`; so is an array that xarray has not read yet.
        Coordinates may be 0.001 pixel off a regular grid. Where there are none, the
        GeoTransform of ``spatial_ref`` counts, as for rioxarray.
        """
        array = self._array
        rows, cols = spatial_dims(array)
        others = [str(dim) for dim in array.dims if dim not in (rows, cols)]
        if len(others) > 1:
            raise ValueError(
                f"an image has bands, rows and columns, found dimensions {others} besides "
                f"{rows} and {cols}: write a file for each {others[0]}, or select with isel"
            )
        _refuse_losses(array, others, parse_drop(drop))
        crs, transform = locate(array, crs=crs, transform=transform)
        if raster_type is None:
            raster_type = str(array.attrs.get(RASTER_TYPE, "area")).lower()
        order = (*others, rows, cols)
        # Transposing what has not been read makes reading it slow.
        ordered = array if array.dims == order else array.transpose(*order)
        return write(
            path,
            _pixels(ordered),
            crs=crs,
            transform=transform,
            raster_type=raster_type,
            **options,
        )


@register_dataset_accessor("rumi")
class RumiDatasetAccessor:
    """What rumi adds to a dataset; xarray makes it."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def to_rumi(self, path: str | os.PathLike[str] | RemoteSource, **options: Any) -> Header:
        """Write the dataset's one image as a rumi file.

        Parameters
        ----------
        path : path, URL or RemoteSource
        **options
            As of `RumiArrayAccessor.to_rumi`.

        Raises
        ------
        ValueError
            If the dataset has not exactly one variable with rows and columns.
        RumiError, TypeError, ValueError, OSError
            As `RumiArrayAccessor.to_rumi`.
        """
        dataset = self._dataset
        images = [name for name, variable in dataset.data_vars.items() if variable.ndim > 1]
        if len(images) != 1:
            raise ValueError(
                f"expected one variable with rows and columns, found {images}: select one, or "
                "stack them as bands with ds[[...]].to_dataarray('band')"
            )
        # Where files are opened without decoding coordinates, spatial_ref is a variable.
        scalars = [name for name, variable in dataset.data_vars.items() if variable.ndim == 0]
        header: Header = dataset.set_coords(scalars)[images[0]].rumi.to_rumi(path, **options)
        return header


def _pixels(array: DataArray) -> Any:
    """Return what `rumi.write` takes, without computing or reading anything."""
    if array.chunks is not None:
        return DaskBlocks(array.data)
    variable = array.variable
    # `array.data` of what has not been read would read all of it.
    in_memory = isinstance(getattr(variable, "_data", None), np.ndarray)
    return variable.values if in_memory else variable


def _refuse_losses(array: DataArray, bands: list[str], accepted: frozenset[str]) -> None:
    losses = [loss for loss in _losses(array, bands) if loss.name not in accepted]
    if losses:
        found = "; ".join(f"{loss.name}: {loss.detail}" for loss in losses)
        names = list(dict.fromkeys(loss.name for loss in losses))
        raise UnsupportedError(
            f"{array.name or 'the array'}: a rumi file cannot carry {found}; keep it in your "
            f"catalog and write without: drop={names}"
        )


def _losses(array: DataArray, bands: list[str]) -> Iterator[Loss]:
    for where, found in (("attribute", array.attrs), ("encoding", array.encoding)):
        for name in _NODATA:
            value = found.get(name)
            # NaN among floats marks itself.
            if value is not None and not (array.dtype.kind in "fc" and _is_nan(value)):
                yield Loss("nodata", f"{value} ({where} {name})")
    scales = [array.attrs.get("scale_factor", 1), array.attrs.get("add_offset", 0)]
    if scales != [1, 0]:
        yield Loss("scale_offset", f"{scales[0]} x sample + {scales[1]}")
    names = array.attrs.get("long_name")
    if isinstance(names, (tuple, list)) and any(names):
        yield Loss("band_names", f"{list(names)!r:.60} (attribute long_name)")
    for dim in bands:
        if dim in array.coords and array.coords[dim].dtype.kind not in "iu":
            yield Loss("band_names", f"{array.coords[dim].values.tolist()!r:.60} (along {dim})")


def _is_nan(value: Any) -> bool:
    """Whether a value, or every one of a list, is NaN."""
    try:
        return bool(np.isnan(np.asarray(value, dtype=np.complex128)).all())
    except (TypeError, ValueError):
        return False
