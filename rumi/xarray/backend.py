"""The engine ``rumi`` of xarray: a file becomes a dataset, frames become chunks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from rumi.georef import Georeferencing
from rumi.image import Image
from rumi.orthogonal import read_crossings
from rumi.xarray import coordinates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.header import Header
    from rumi.orthogonal import Positions

__all__ = ["VARIABLE", "ImageArray", "RumiBackend"]

# As of rioxarray's engine. The same in all files, so that they concatenate.
VARIABLE = "band_data"

_SUFFIX = ".rumi"


class RumiBackend(BackendEntrypoint):  # type: ignore[misc]
    """Engine of `xarray.open_dataset`; xarray makes it."""

    description = "Rumi rasters (.rumi), read frame by frame"

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        header: Header | bytes | None = None,
        georeferencing: Georeferencing | bool = True,
        band_names: Sequence[str] | None = None,
        threads: int | None = None,
    ) -> Dataset:
        """Open a file as a dataset, without reading pixels.

        Parameters
        ----------
        filename_or_obj : path, URL, RemoteSource, bytes-like or Image
            What `rumi.open` opens, or has opened.
        drop_variables : str or iterable of str, optional
            Variables and coordinates to leave out.
        header : Header or bytes-like, optional
            The file's header; without it the file's index is read.
        georeferencing : Georeferencing or bool
            Where the image lies, if a catalog knows it. True reads the 160 bytes
            in the file; False leaves the coordinates out. With a header and
            anything but True, nothing at all is read.
        band_names : sequence of str, optional
            Labels of the bands, from a catalog; 0, 1, ... as in `rumi.read` by
            default.
        threads : int, optional
            As of `rumi.read`, for each chunk.

        Returns
        -------
        Dataset
            One variable, ``band_data``, of dimensions (band, y, x). Its preferred
            chunks are the frames, so ``chunks={}`` makes one task of a frame;
            larger chunks are less work for Dask.

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit the image.
        UnsupportedError
            If the PROJ database does not know the image's EPSG code.
        RumiError, OSError
            As `rumi.open`.

        Notes
        -----
        Coordinates are pixel centres, ``(column + 0.5) * a + c``, whatever the
        raster type and direction; the ``AREA_OR_POINT`` attribute keeps the type.
        A rotated image has none along x and y, but ``xc`` and ``yc``, computed when
        used. CRS and transform are in ``spatial_ref``, as rioxarray and odc-geo
        read them. An image without georeferencing has no spatial coordinates.
        """
        if not isinstance(filename_or_obj, Image):
            image = Image(filename_or_obj, header)
        elif header is None:
            image = filename_or_obj
        else:
            raise TypeError("header: an Image has its own")
        if georeferencing is True:
            georeferencing = image.georeferencing
        elif georeferencing is False:
            georeferencing = Georeferencing()
        dataset = Dataset(
            {VARIABLE: _variable(image, georeferencing, threads)},
            {
                "band": _band_labels(image, band_names),
                **coordinates.make(georeferencing, image.header, image.name),
            },
        )
        if drop_variables is not None:
            names = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables)
            dataset = dataset.drop_vars(names, errors="ignore")
        dataset.set_close(_close)
        return dataset

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether it is an Image, or named as a rumi file."""
        if isinstance(filename_or_obj, (str, os.PathLike)):
            return os.fsdecode(filename_or_obj).lower().endswith(_SUFFIX)
        return isinstance(filename_or_obj, Image)


class ImageArray(BackendArray):  # type: ignore[misc]
    """The pixels of an image, as xarray indexes them.

    Parameters
    ----------
    image : Image
        Pickles as source and header, so a Dask graph holds no more than those.
    threads : int, optional
        As of `rumi.read`.
    """

    def __init__(self, image: Image, threads: int | None = None) -> None:
        self.image = image
        self.threads = threads
        self.shape = image.shape
        self.dtype = image.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read what a key selects."""
        if isinstance(key, indexing.VectorizedIndexer):
            # Points: xarray reads where their rows and columns cross, and picks from that.
            return indexing.explicit_indexing_adapter(
                key, self.shape, indexing.IndexingSupport.OUTER, self._read
            )
        return self._read(key.tuple)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        axes = zip(("band", "row", "column"), key, self.shape, strict=True)
        (bands, rows, cols), orders = zip(*(_resolve(*axis) for axis in axes), strict=True)
        sides = (len(bands), len(rows), len(cols))
        if 0 in sides:
            array = np.empty(sides, self.dtype)
        else:
            array = read_crossings(self.image, _selector(bands), rows, cols, threads=self.threads)
        # From behind, since an integer drops its axis.
        for axis in (2, 1, 0):
            if orders[axis] is not None:
                array = array[(slice(None),) * axis + (orders[axis],)]
        return array


def _resolve(name: str, selector: Any, size: int) -> tuple[Positions, Any]:
    """Return the rising positions that a selector needs, and how to index what was read there.

    A slice is cut to the axis, as xarray has cut the coordinates. Integers are not,
    and those that count from the end xarray has resolved: a negative one is outside.
    """
    if isinstance(selector, slice):
        chosen = range(size)[selector]
        return (chosen, None) if chosen.step > 0 else (chosen[::-1], slice(None, None, -1))
    if isinstance(selector, (bool, np.bool_)):
        raise TypeError(f"a {name} is an integer, found bool")
    positions = np.asarray(selector, dtype=np.intp)
    if positions.size == 0:
        return range(0), None
    if positions.min() < 0 or positions.max() >= size:
        raise IndexError(f"a {name} is outside 0..{size - 1}: {selector!r:.60}")
    if positions.ndim == 0:
        return range(int(positions), int(positions) + 1), 0
    if (np.diff(positions) >= 0).all():
        return positions, None
    return np.unique(positions, return_inverse=True)


def _close() -> None:
    """Do nothing: open files belong to `rumi.source.handles`, but xarray calls what it is given."""


def _selector(bands: Positions) -> Any:
    if isinstance(bands, range) and bands.step == 1:
        return slice(bands.start, bands.stop)
    return list(bands)


def _variable(image: Image, georeferencing: Georeferencing, threads: int | None) -> Variable:
    header = image.header
    bands, height, width = header.shape
    encoding: dict[str, Any] = {
        "source": image.name,
        "preferred_chunks": {
            "band": (1,) * bands if header.unit == "tile" else (bands,),
            "y": _chunks(height, header.tile_length),
            "x": _chunks(width, header.tile_width),
        },
    }
    if georeferencing.transform is not None:
        encoding["grid_mapping"] = coordinates.GRID_MAPPING
    return Variable(
        ("band", "y", "x"),
        indexing.LazilyIndexedArray(ImageArray(image, threads)),
        {coordinates.RASTER_TYPE: georeferencing.raster_type.capitalize()},
        encoding,
    )


def _chunks(side: int, tile: int) -> tuple[int, ...]:
    """Return the sizes of the tiles along an axis, the last one cut."""
    full, rest = divmod(side, tile)
    return (tile,) * full + ((rest,) if rest else ())


def _band_labels(image: Image, names: Sequence[str] | None) -> Variable:
    count = image.shape[0]
    if names is None:
        return Variable("band", np.arange(count))
    if isinstance(names, str) or len(names) != count:
        raise ValueError(f"band_names: expected {count} names, found {names!r:.60}")
    return Variable("band", list(names))
