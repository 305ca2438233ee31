"""A GeoTIFF as a lazy array: what the writer slices, block by block."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi.errors import FormatError
from rumi.geotiff import gdal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.geotiff.samples import Samples

__all__ = ["BlockSource"]

# Rows kept so that blocks of the source that reach over several tiles are
# decoded once; a source stored in strips needs one row of tiles, up to a limit.
_STRIP_BYTES = 64 << 20
_MAX_STRIP_BYTES = 1 << 30

_MANY_BANDS = 256


class BlockSource:
    """The pixels of an open GeoTIFF, read when they are asked for.

    Parameters
    ----------
    dataset : rasterio.DatasetReader
    stored : Samples
        How its samples come through GDAL.
    name : str
        What errors call the file.

    Attributes
    ----------
    shape : (int, int, int)
        Bands, height and width in pixels.
    dtype : dtype

    Notes
    -----
    Safe to use from several threads, one at a time. Whoever asks for windows of
    one row of tiles from left to right has each block of the source decoded
    once, or twice where it reaches into the next row of tiles.
    """

    def __init__(self, dataset: Any, stored: Samples, name: str) -> None:
        self.shape: tuple[int, int, int] = (dataset.count, dataset.height, dataset.width)
        self.dtype = stored.dtype
        self._dataset = dataset
        self._stored = stored
        self._name = name
        self._lock = threading.Lock()
        self._strip: tuple[range, NDArray[Any]] | None = None
        self._rasterio = gdal.rasterio_module()
        self._block_height, self._block_width = dataset.block_shapes[0]

    @property
    def ndim(self) -> int:
        """Always 3."""
        return 3

    def __getitem__(self, key: tuple[slice, slice, slice]) -> NDArray[Any]:
        """Read ``source[bands, rows, columns]``, three slices without a step.

        Raises
        ------
        FormatError
            If a part of the file does not decode.
        """
        bands, rows, cols = (
            range(*part.indices(size)) for part, size in zip(key, self.shape, strict=True)
        )
        with self._lock:
            strip = self._strip_of(rows, cols)
            if strip is None:
                return self._read(rows, cols)[bands.start : bands.stop]
            held, array = strip
            top = rows.start - held.start
            return array[bands.start : bands.stop, top : top + len(rows), cols.start : cols.stop]

    def _strip_of(self, rows: range, cols: range) -> tuple[range, NDArray[Any]] | None:
        """Return whole rows that hold the wanted ones, if it pays to have them."""
        held = self._strip
        if held is not None and rows.start >= held[0].start and rows.stop <= held[0].stop:
            return held
        if cols.start > 0:
            # Sampling looks at single tiles; a row of them begins at the left.
            return None
        _, height, width = self.shape
        aligned = range(
            rows.start // self._block_height * self._block_height,
            min(height, -(-rows.stop // self._block_height) * self._block_height),
        )
        row_bytes = self.shape[0] * width * self.dtype.itemsize
        in_strips = self._block_width >= width and len(cols) < width
        if len(aligned) * row_bytes <= _STRIP_BYTES:
            wanted = aligned
        elif in_strips and len(rows) * row_bytes <= _MAX_STRIP_BYTES:
            wanted = rows
        else:
            return None
        self._strip = None
        self._strip = (wanted, self._read(wanted, range(width)))
        return self._strip

    def _read(self, rows: range, cols: range) -> NDArray[Any]:
        window = self._rasterio.windows.Window(cols.start, rows.start, len(cols), len(rows))
        place = f"rows {rows.start} to {rows.stop - 1}, columns {cols.start} to {cols.stop - 1}"
        with gdal.translated(self._name, f"{place} do not decode"):
            if self.shape[0] > _MANY_BANDS:
                # A failure of one band is said at once, one of thousands after minutes.
                self._dataset.read(1, window=window, out_dtype=self._stored.read_as)
            array = self._dataset.read(window=window, out_dtype=self._stored.read_as)
        try:
            return self._stored.restore(np.ascontiguousarray(array), self.dtype)
        except FormatError as error:
            raise FormatError(f"{self._name}: {place}: {error}") from error
