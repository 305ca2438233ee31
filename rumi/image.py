"""One file as an object: shape, georeferencing, and pixels by index."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from rumi import georef, transforms
from rumi._core import Plan, Store
from rumi._generated import constants
from rumi.container import read_container
from rumi.engine import blame_stale_header, execute, output_target
from rumi.errors import CodecError, FormatError, SourceError, StaleHeaderError
from rumi.header import as_header
from rumi.indexing import axis, finish, split_key
from rumi.source import handles, is_path, is_remote, open_source, source_name

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import CRS

    from rumi.georef import Georeferencing, Transform
    from rumi.header import Header
    from rumi.source import Identity, Opened, SourceLike

__all__ = ["Image", "open_image"]


def open_image(source: SourceLike, header: Header | bytes | None = None) -> Image:
    """Open an image.

    Parameters
    ----------
    source : path, URL, RemoteSource or bytes-like
        The file, or its contents.
    header : Header or bytes-like, optional
        With it nothing is read until it is needed; without it the index is read
        and checked now.

    Returns
    -------
    Image

    Raises
    ------
    RumiError
        If the header or the file breaks the specification.
    OSError
        If the file cannot be read.
    """
    return Image(source, header)


class Image:
    """One rumi file: an image of shape (bands, height, width).

    Parameters
    ----------
    source : path, URL, RemoteSource or bytes-like
        The file, or its contents.
    header : Header or bytes-like, optional
        The file's header; rebuilt from the file where absent.

    Notes
    -----
    Safe to use from many threads. Pickles as its source and header and opens
    again where it is used. Reads what the file was when first opened, or raises
    StaleHeaderError: a file replaced meanwhile is never mixed in.
    """

    __slots__ = ("_georeferencing", "_identity", "_remote", "_source", "header")

    def __init__(self, source: SourceLike, header: Header | bytes | None = None) -> None:
        self._source = os.fspath(source) if is_path(source) else source
        self._identity: Identity | None = None
        # Remembers which state of the object it has seen, and holds no connection.
        self._remote: Opened | None = open_source(source) if is_remote(source) else None
        self._georeferencing: Georeferencing | None = None
        self.header: Header
        if header is not None:
            self.header = as_header(header)
            return
        opened = self._remote or open_source(self._source)
        container = read_container(opened)
        self.header = container.header
        self._georeferencing = container.georeferencing
        self._remember(opened)

    @property
    def name(self) -> str:
        """What errors call the source."""
        return source_name(self._source)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Bands, height and width in pixels."""
        return self.header.shape

    @property
    def ndim(self) -> int:
        """Always 3."""
        return 3

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of a sample."""
        return self.header.dtype

    @property
    def georeferencing(self) -> Georeferencing:
        """CRS, transform and raster type; 160 bytes are read at first need."""
        if self._georeferencing is None:
            source = self.opened()
            start = self.header.base_frame_offset - constants.GEOREFERENCING_SIZE
            data = source.read(start, constants.GEOREFERENCING_SIZE)
            split = constants.MODEL_TRANSFORMATION_SIZE
            try:
                self._georeferencing = georef.decode(data[:split], data[split:], where=self.name)
            except FormatError as error:
                blame_stale_header(source, self.header, error)
                raise
        return self._georeferencing

    @property
    def epsg(self) -> int | None:
        """EPSG code, None without georeferencing."""
        return self.georeferencing.epsg

    @property
    def crs(self) -> CRS | None:
        """CRS of pyproj, None without georeferencing."""
        if self.epsg is None:
            return None
        from pyproj import CRS

        return CRS.from_epsg(self.epsg)

    @property
    def transform(self) -> Transform | None:
        """Corner-based ``(a, b, c, d, e, f)`` in CRS units, None without georeferencing."""
        return self.georeferencing.transform

    @property
    def raster_type(self) -> str:
        """What a sample stands for, "area" or "point"."""
        return self.georeferencing.raster_type

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """Left, bottom, right and top in CRS units, None without georeferencing."""
        transform = self.transform
        if transform is None:
            return None
        return transforms.bounds(transform, self.shape[1], self.shape[2])

    def read(
        self, *, bands: Any = None, window: Any = None, out: Any = None, threads: int | None = None
    ) -> NDArray[Any]:
        """Read a window; arguments, result and errors as of `rumi.read`."""
        # Opened first: a header that claims much is compared with the file before it counts.
        source = self.opened()
        plan = Plan(self.header, bands, window)
        array, target = output_target(plan, out)
        try:
            execute(plan, source, target, threads=threads)
        except (CodecError, FormatError, SourceError) as error:
            blame_stale_header(source, self.header, error)
            raise
        return array if out is None else out

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns of the tile grid."""
        return self.header.tiles_down, self.header.tiles_across

    def cell_window(self, row: SupportsIndex, col: SupportsIndex) -> tuple[int, int, int, int]:
        """Return the window (row, column, height, width) of a grid position, cut to the image.

        Raises
        ------
        IndexError
            If there is no such grid position.
        """
        header = self.header
        # Checks both positions.
        header.frame_index(row, col)
        top = row.__index__() * header.tile_length
        left = col.__index__() * header.tile_width
        return (
            top,
            left,
            min(header.tile_length, header.image_length - top),
            min(header.tile_width, header.image_width - left),
        )

    def cell_bounds(
        self, row: SupportsIndex, col: SupportsIndex
    ) -> tuple[float, float, float, float] | None:
        """Return left, bottom, right and top of a grid position, None without georeferencing."""
        top, left, height, width = self.cell_window(row, col)
        if self.transform is None:
            return None
        return transforms.bounds(
            transforms.window_transform(self.transform, top, left), height, width
        )

    def cell_of(self, x: float, y: float) -> tuple[int, int]:
        """Return the grid position that holds a coordinate of the image's CRS.

        Raises
        ------
        ValueError
            If the image has no georeferencing or the coordinate is outside it.
        """
        if self.transform is None:
            raise ValueError(f"{self.name} has no georeferencing")
        row, col = transforms.pixel_of(self.transform, x, y)
        height, width = self.shape[1:]
        if not (0 <= row < height and 0 <= col < width):
            raise ValueError(f"({x}, {y}) is outside {self.name}, bounds {self.bounds}")
        return int(row) // self.header.tile_length, int(col) // self.header.tile_width

    def tile(self, row: SupportsIndex, col: SupportsIndex, band: SupportsIndex = 0) -> NDArray[Any]:
        """Read one band at one grid position, shape (h, w), cut at the edges."""
        self.header.frame_index(row, col, band)
        samples: NDArray[Any] = self.read(bands=band, window=self.cell_window(row, col))[0]
        return samples

    def cell(self, row: SupportsIndex, col: SupportsIndex) -> NDArray[Any]:
        """Read all bands at one grid position, shape (B, h, w), cut at the edges."""
        return self.read(window=self.cell_window(row, col))

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Read ``image[bands, rows, cols]``.

        Integers drop their axis as in NumPy; bands may be a sequence. Slices
        may have a positive step. Unlike NumPy, negative and out-of-range bounds
        are refused rather than wrapped or clamped.

        Raises
        ------
        TypeError
            If an index is a bool, a float or of no known kind.
        IndexError
            If it is outside the image, or there are too many.
        ValueError
            If a slice selects nothing or has a step below 1.
        """
        bands, rows, cols = split_key(key, self.ndim)
        row = axis(rows, self.shape[1], "row")
        col = axis(cols, self.shape[2], "column")
        window = (row.start, col.start, row.stop - row.start, col.stop - col.start)
        return finish(self.read(bands=bands, window=window), bands, row, col)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read the whole image.

        Raises
        ------
        ValueError
            If ``copy=False``: pixels are always decoded into new memory.
        """
        if copy is False:
            raise ValueError("reading an image always makes a new array")
        array = self.read()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, **kwargs: Any) -> Any:
        """Read the whole image and export it through DLPack."""
        return self.read().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Name the device of `__dlpack__`: host memory."""
        return 1, 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the source and the header, no handle."""
        return type(self), (self._source, self.header)

    def __repr__(self) -> str:
        """Show name, shape, sample type and frames; reads nothing."""
        bands, height, width = self.shape
        return (
            f"<rumi.Image {self.name!r} {bands} x {height} x {width} "
            f"{self.header.encoding.dtype_name}, {self.header.unit} frames>"
        )

    def preview(self, **options: Any) -> Any:
        """Draw a small picture of the whole image; see `rumi.preview.preview`."""
        from rumi.preview import preview

        return preview(self, **options)

    def _repr_html_(self) -> str:
        from rumi.display import image_html

        return image_html(self.name, self.header, self._georeferencing)

    def opened(self) -> Opened:
        """Return the opened source, the same state of the file as at the first time.

        Raises
        ------
        StaleHeaderError
            If the file was replaced, or its size is not the header's.
        """
        if self._remote is not None:
            self._remote.check_size(self.header)
            return self._remote
        if self._identity is not None and is_path(self._source):
            found = handles.find(self._source, self._identity)
            if found is not None:
                return found
        source = open_source(self._source)
        if self._identity is None:
            source.check_size(self.header)
        elif source.identity != self._identity:
            raise StaleHeaderError(
                f"{self.name}: the file was replaced since it was opened; open it again"
            )
        self._remember(source)
        return source

    def _remember(self, source: Opened) -> None:
        """Note which state of the file this is, and keep a local one open."""
        self._identity = source.identity
        if isinstance(source, Store) and is_path(self._source):
            handles.keep(self._source, source)
