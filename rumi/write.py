"""Writing a file: encode samples, compress, verify, place, rename.

Frames go straight to their place in a temporary file beside the target, since
the space before them depends on the image's shape alone. The index follows
when all sizes are known, and the rename makes the file appear whole.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from rumi import backends, encodings, georef, workers
from rumi import codec as codecs
from rumi._core import frame_data_offset
from rumi.container import build_prefix
from rumi.errors import CodecError
from rumi.georef import Georeferencing
from rumi.header import Header, frame_unit_code
from rumi.source import local_path

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from rumi.encodings import Encoding

__all__ = ["atomic_file", "write"]

_MAX_TILE = 0xFFFF
_MAX_BANDS = 0xFFFF
_MAX_SIDE = 0xFFFFFFFF
_MAX_FRAME = 0xFFFFFFFF

# "auto" looks at no more than this many frames, and at no more than this many
# bytes of samples, spread over the image.
_SAMPLE_FRAMES = 8
_SAMPLE_BYTES = 4 << 20

_UINTS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


@dataclass(frozen=True, slots=True)
class _Grid:
    """The image cut into frames."""

    array: NDArray[Any]
    encoding: Encoding
    tile_shape: tuple[int, int]
    frame_unit: str

    @property
    def tiles_down(self) -> int:
        return -(-self.array.shape[1] // self.tile_shape[0])

    @property
    def tiles_across(self) -> int:
        return -(-self.array.shape[2] // self.tile_shape[1])

    @property
    def frame_count(self) -> int:
        positions = self.tiles_down * self.tiles_across
        return positions if self.frame_unit == "cell" else positions * self.array.shape[0]

    def frame(self, index: int) -> NDArray[Any]:
        """Return the samples of a frame, C-contiguous, native, edge tiles cut."""
        bands = self.array.shape[0]
        position, band = (index, None) if self.frame_unit == "cell" else divmod(index, bands)
        row, col = divmod(position, self.tiles_across)
        height, width = self.tile_shape
        rows = slice(row * height, (row + 1) * height)
        cols = slice(col * width, (col + 1) * width)
        block = self.array[:, rows, cols] if band is None else self.array[band, rows, cols]
        return _as_numbers(np.ascontiguousarray(block), self.encoding)


def write(
    path: str | os.PathLike[str],
    array: ArrayLike,
    *,
    tile_size: int | tuple[int, int] = 512,
    frame_unit: str = "tile",
    codec: str = "auto",
    crs: Any = None,
    transform: Any = None,
    raster_type: str = "area",
    verify: bool = True,
    threads: int | None = None,
) -> Header:
    """Write an image.

    Parameters
    ----------
    path : path
        Replaced whole, or left as it was where anything fails.
    array : array_like, shape (B, H, W) or (H, W)
        Any layout and byte order; two dimensions are one band.
    tile_size : int or (int, int)
        Side, or height and width, of a tile in pixels, 1 to 65,535.
    frame_unit : {"tile", "cell"}
        One band, or all bands, of a grid position in one frame. With one band
        both are the same file, recorded as tile.
    codec : str
        "auto" measures candidates on frames of the image; else a recipe of
        `rumi.codec`, such as ``"delta>zigzag>lanes>zstd"``.
    crs : int, str or CRS object, optional
        EPSG code, ``"EPSG:32718"``, or an object of pyproj or rasterio.
    transform : sequence of 6 float, optional
        Corner-based ``(a, b, c, d, e, f)`` as in rasterio; goes with `crs`.
    raster_type : {"area", "point"}
        What a sample stands for.
    verify : bool
        Decode every frame and compare it with its samples.
    threads : int, optional
        Accepted and checked; OpenZL's binding compresses one frame at a time.

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
        If the file cannot be written.

    Notes
    -----
    The same image and arguments give the same bytes. Every limit is checked
    before the first byte is written.
    Source: specification 0.1.0, File profile.
    """
    grid = _make_grid(array, tile_size, frame_unit)
    georeferencing = _georeferencing(crs, transform, raster_type)
    recipe = None if codec == "auto" else codecs.parse(codec)
    workers.resolve_threads(threads)
    target = local_path(path)
    if recipe is None:
        recipe = codecs.choose(_sample(grid), grid.encoding.element_width)
    encoder = codecs.FrameEncoder(recipe, grid.encoding.element_width)
    base = frame_data_offset(grid.frame_count, grid.array.shape[0])
    with atomic_file(target) as file:
        file.seek(base)
        counts = np.empty(grid.frame_count, dtype=np.uint64)
        for number in range(grid.frame_count):
            samples = grid.frame(number)
            frame = encoder.encode(samples)
            if verify:
                _verify(frame, samples, number)
            counts[number] = len(frame)
            file.write(frame)
        header = Header.build(
            grid.array.shape, grid.tile_shape, grid.encoding, grid.frame_unit, counts
        )
        file.seek(0)
        file.write(build_prefix(header, georeferencing))
    return header


@contextmanager
def atomic_file(path: bytes) -> Iterator[BinaryIO]:
    """Write a file that appears whole or not at all.

    Yields a temporary file in the folder of `path`. When the block ends it is
    flushed to the disk and renamed; when the block raises, whatever the
    exception, it is removed and the old file stays.

    Raises
    ------
    ValueError
        If `path` exists and is no regular file.
    OSError
        If writing or renaming fails.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise ValueError(
            f"{os.fsdecode(path)}: expected a regular file or none, found another kind"
        )
    folder, base = os.path.split(target)
    token = secrets.token_hex(4).encode()
    # Cut so that the temporary's name is no longer than the file system allows.
    temporary = os.path.join(folder, b"." + base[:200] + b"." + token + b".rumi-tmp")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb", buffering=1 << 20) as file:
            if os.path.exists(target):
                os.fchmod(file.fileno(), os.stat(target).st_mode & 0o7777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: bytes) -> None:
    """Make a rename survive a power cut, where the file system can."""
    try:
        descriptor = os.open(folder or b".", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        # The file is in place; some file systems cannot flush a folder.
        return
    finally:
        os.close(descriptor)


def _make_grid(array: ArrayLike, tile_size: int | tuple[int, int], frame_unit: str) -> _Grid:
    """Check an image against every limit of the format."""
    frame_unit_code(frame_unit)
    if np.ma.isMaskedArray(array):
        raise TypeError(
            "a masked array's mask cannot be stored; pass array.filled(value) and keep the value "
            "as nodata in your catalog"
        )
    image = np.asarray(array)
    if image.ndim == 2:
        image = image[np.newaxis]
    if image.ndim != 3:
        raise ValueError(
            f"array: expected shape (bands, height, width) or (height, width), found {image.shape}"
        )
    encoding = encodings.from_dtype(image.dtype)
    bands, height, width = image.shape
    if not (1 <= bands <= _MAX_BANDS and 1 <= height <= _MAX_SIDE and 1 <= width <= _MAX_SIDE):
        raise ValueError(
            f"array: expected 1 to {_MAX_BANDS} bands and at least one pixel, found {image.shape}"
        )
    tile = _tile_shape(tile_size)
    per_frame = min(tile[0], height) * min(tile[1], width) * encoding.itemsize
    if bands > 1 and frame_unit == "cell":
        per_frame *= bands
    if per_frame > _MAX_FRAME - (1 << 20):
        raise ValueError(
            f"tile_size {tile}: a frame of {per_frame} bytes does not fit 4 GiB; use smaller tiles"
        )
    return _Grid(image, encoding, tile, "tile" if bands == 1 else frame_unit)


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


def _georeferencing(crs: Any, transform: Any, raster_type: str) -> Georeferencing:
    epsg = georef.normalise_crs(crs)
    coefficients = None if transform is None else georef.normalise_transform(transform)
    found = Georeferencing(epsg, coefficients, raster_type)  # type: ignore[arg-type]
    # Encoding checks what only PROJ knows; do it before the first byte.
    georef.encode(found)
    return found


def _as_numbers(block: NDArray[Any], encoding: Encoding) -> NDArray[Any]:
    """Return samples as unsigned numbers of their width, native byte order."""
    native = block.astype(block.dtype.newbyteorder("="), copy=False)
    numbers = native.view(_UINTS[encoding.itemsize])
    if encoding.bits_per_sample == 1:
        # Any byte but 0 is true to NumPy; the file has 0 and 1.
        return (numbers != 0).view(np.uint8)
    if encoding.bits_per_sample < 8:
        # Types below a byte ignore the bits above their width; the file has none.
        numbers = numbers & np.uint8((1 << encoding.bits_per_sample) - 1)
    return numbers


def _sample(grid: _Grid) -> list[NDArray[Any]]:
    """Return frames spread evenly over the image and its bands."""
    count = grid.frame_count
    frames: list[NDArray[Any]] = []
    room = _SAMPLE_BYTES
    wanted = min(_SAMPLE_FRAMES, count)
    for position in range(wanted):
        frame = grid.frame(position * (count - 1) // max(1, wanted - 1))
        frames.append(frame)
        room -= frame.nbytes
        if room <= 0:
            break
    return frames


def _verify(frame: bytes, samples: NDArray[Any], number: int) -> None:
    """Decode a frame as a reader would and compare every bit."""
    if not backends.decoder("openzl").matches(frame, samples.reshape(-1).view(np.uint8)):
        raise CodecError(f"frame {number}: does not decode to the samples it was made from")
