"""Writing a file: cut, encode, verify, place, rename.

Frames go straight to their place in a temporary file beside the target, since
the space before them depends on the image's shape alone. The index follows
when all sizes are known, and the rename makes the file appear whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi import encodings, georef, workers
from rumi._core import frame_data_offset
from rumi.container import build_prefix
from rumi.georef import Georeferencing
from rumi.header import Header, frame_unit_code
from rumi.output import output_file

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from rumi.pixels import Grid, PixelSource
    from rumi.remote import RemoteSource

__all__ = ["write"]

_MAX_TILE = 0xFFFF
_MAX_BANDS = 0xFFFF
_MAX_SIDE = 0xFFFFFFFF

# A byte count is 32 bits wide; leave room for what OpenZL adds to samples that
# do not compress.
_MAX_FRAME = 0xFFFFFFFF - (1 << 20)


def write(
    path: str | os.PathLike[str] | RemoteSource,
    array: ArrayLike | Any,
    *,
    tile_size: int | tuple[int, int] = 512,
    frame_unit: str = "tile",
    codec: Any = "auto",
    error: float | str | None = None,
    crs: Any = None,
    transform: Any = None,
    raster_type: str = "area",
    verify: bool = True,
    threads: int | None = None,
    shape: tuple[int, int, int] | None = None,
    dtype: DTypeLike | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Header:
    """Write an image.

    Parameters
    ----------
    path : path, URL or RemoteSource
        Replaced whole, or left as it was where anything fails. A remote file is
        written and verified in the local folder for temporary files first.
    array : array_like, lazy array, callable or iterator
        The image, of shape (B, H, W) or (H, W), in any layout and byte order;
        two dimensions are one band. A lazy array (Dask, xarray, zarr, HDF5) has
        ``shape``, ``dtype`` and slicing. A callable gets a window (row, column,
        height, width) and returns its samples, shape (B, height, width). An
        iterator yields the tiles, shape (B, height, width) and cut at the edges,
        in row-major order.
    tile_size : int or (int, int)
        Side, or height and width, of a tile in pixels, 1 to 65,535.
    frame_unit : {"tile", "cell"}
        One band, or all bands, of a grid position in one frame. With one band
        both are the same file, recorded as tile.
    codec : str or callable
        "auto" measures candidates on frames of the image; see `rumi.codec` for
        presets, recipes and builders.
    error : float or str, optional
        Largest error of a near-lossless ``geozl:`` recipe. Lossless by default.
    crs : int, str or CRS object, optional
        EPSG code, ``"EPSG:32718"``, or an object of pyproj or rasterio.
    transform : sequence of 6 float, optional
        Corner-based ``(a, b, c, d, e, f)`` as in rasterio; goes with `crs`.
    raster_type : {"area", "point"}
        What a sample stands for.
    verify : bool
        Decode every frame and compare it with its samples.
    threads : int, optional
        At most this many; see `rumi.workers.resolve_threads`. Large images are
        compressed by helper processes where the compressor holds the GIL.
    shape, dtype : optional
        Of the image; needed for a callable or an iterator.
    progress : callable, optional
        Called with the numbers of frames done and in all.

    Returns
    -------
    Header
        Equal, byte for byte, to what `rumi.index` rebuilds from the file.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used.
    UnsupportedError
        If the dtype or the CRS cannot be carried.
    CodecError
        If a frame does not compress or does not decode to its samples.
    OSError
        If the file cannot be written; SourceError if it cannot be uploaded.

    Notes
    -----
    The same image and arguments give the same bytes, whatever `threads` is.
    Every limit is checked before the first byte is written. Memory beyond the
    image's own: 12 bytes a frame, one run of tiles of a lazy source (32 MiB, or
    one grid position), and two grid positions a thread.
    Source: specification 0.1.0, File profile.
    """
    # Imported here: most programs that import rumi only read.
    from rumi import codec as codecs
    from rumi.compress import compressed_frames
    from rumi.pixels import make_source, sample_frames

    source = make_source(array, shape, dtype)
    grid = _make_grid(source, tile_size, frame_unit)
    georeferencing = _georeferencing(crs, transform, raster_type)
    count = workers.resolve_threads(threads)
    # A path that cannot be is refused now.
    target = output_file(path)
    chosen = codecs.resolve(
        codec,
        grid.encoding,
        partial(sample_frames, source, grid),
        error=error,
    )
    with target as file:
        file.seek(frame_data_offset(grid.frame_count, grid.shape[0]))
        counts = np.empty(grid.frame_count, dtype=np.uint64)
        number = 0
        for frames in compressed_frames(source, grid, chosen, verify=verify, threads=count):
            for frame in frames:
                counts[number] = len(frame)
                file.write(frame)
                number += 1
            if progress is not None:
                progress(number, grid.frame_count)
        header = Header.build(grid.shape, grid.tile_shape, grid.encoding, grid.frame_unit, counts)
        file.seek(0)
        file.write(build_prefix(header, georeferencing))
    return header


def _make_grid(source: PixelSource, tile_size: Any, frame_unit: str) -> Grid:
    """Check an image against every limit of the format."""
    from rumi.pixels import Grid

    frame_unit_code(frame_unit)
    encoding = encodings.from_dtype(source.dtype)
    bands, height, width = source.shape
    if not (1 <= bands <= _MAX_BANDS and 1 <= height <= _MAX_SIDE and 1 <= width <= _MAX_SIDE):
        raise ValueError(
            f"array: expected 1 to {_MAX_BANDS} bands and 1 to {_MAX_SIDE} rows and columns, found "
            f"{source.shape}"
        )
    tile = _tile_shape(tile_size)
    unit = "tile" if bands == 1 else frame_unit
    samples = min(tile[0], height) * min(tile[1], width) * (bands if unit == "cell" else 1)
    if samples * encoding.itemsize > _MAX_FRAME:
        raise ValueError(
            f"tile_size {tile}: a frame of {samples * encoding.itemsize} bytes does not fit 4 GiB; "
            "use smaller tiles"
        )
    return Grid(source.shape, tile, encoding, unit)


def _tile_shape(tile_size: Any) -> tuple[int, int]:
    sides = tuple(tile_size) if isinstance(tile_size, (tuple, list)) else (tile_size, tile_size)
    if len(sides) != 2:
        raise ValueError(f"tile_size: expected one side or (height, width), found {tile_size!r}")
    for side in sides:
        if isinstance(side, bool) or not hasattr(side, "__index__"):
            raise TypeError(f"tile_size: a side is an integer, found {type(side).__name__}")
        if not 1 <= side.__index__() <= _MAX_TILE:
            raise ValueError(f"tile_size: a side is 1 to {_MAX_TILE}, found {side}")
    return sides[0].__index__(), sides[1].__index__()


def _georeferencing(crs: Any, transform: Any, raster_type: Any) -> Georeferencing:
    epsg = georef.normalise_crs(crs)
    coefficients = None if transform is None else georef.normalise_transform(transform)
    found = Georeferencing(epsg, coefficients, raster_type)
    # Encoding checks what only PROJ knows; do it before the first byte.
    georef.encode(found)
    return found
