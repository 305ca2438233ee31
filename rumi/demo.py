"""The main job on real input: a scene becomes a rumi file, and chips come back.

The scene ships with the package (``rumi/data``, Landsat 8, public domain). It
is converted, read by random chips with the header blob alone, compared bit for
bit, and timed beside a COG of the same pixels. `rumi demo` prints what these
functions return.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rumi
from rumi.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rumi import Header

__all__ = [
    "CHIPS",
    "CHIP_SIZE",
    "SCENE",
    "TILE_SIZE",
    "Cog",
    "Converted",
    "Timing",
    "check_chips",
    "convert_scene",
    "draw_chip",
    "make_cog",
    "need_extras",
    "scene_path",
    "time_chips",
]

SCENE = "itaipu.tif"

# Bands for red, green and blue.
_COLOURS = (2, 1, 0)

# Small tiles for a small scene, so that it has a grid worth drawing.
TILE_SIZE = 128
CHIP_SIZE = 224
CHIPS = 300

# The chip of the picture: the dam.
_DAM = (268, 150, CHIP_SIZE, CHIP_SIZE)

_EXTRAS = {"rasterio": "geotiff", "PIL": "plot"}


@dataclass(frozen=True, slots=True)
class Converted:
    """A scene and what it became.

    Attributes
    ----------
    source, path, blob_path : Path
        GeoTIFF, rumi file, and the header blob beside it.
    pixels : ndarray of uint16, shape (B, H, W)
        As rasterio reads them from the source.
    header : Header
        As written.
    """

    source: Path
    path: Path
    blob_path: Path
    pixels: NDArray[Any]
    header: Header


@dataclass(frozen=True, slots=True)
class Cog:
    """The same pixels as a cloud-optimised GeoTIFF.

    Attributes
    ----------
    path : Path
    size : int
        Bytes of the file.
    header_size : int
        Bytes before its first tile: what a reader must have before it can ask
        for any. There are no overviews, which would only add to it.
    """

    path: Path
    size: int
    header_size: int


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians of opening a file and reading one chip, in seconds.

    Attributes
    ----------
    reads : int
        How many of each, alternating, one thread each.
    rumi, cog : float
    """

    reads: int
    rumi: float
    cog: float


def scene_path() -> Path:
    """Return the path of the scene that ships with the package."""
    return Path(__file__).parent / "data" / SCENE


def need_extras() -> None:
    """Refuse to start without what the demo needs.

    Raises
    ------
    UnsupportedError
        If rasterio or Pillow is not installed; the text says how to install it.
    """
    missing = [name for name in _EXTRAS if find_spec(name) is None]
    if missing:
        names = " and ".join("Pillow" if name == "PIL" else name for name in missing)
        extras = ",".join(_EXTRAS[name] for name in missing)
        raise UnsupportedError(f"the demo needs {names}: pip install 'rumi[{extras}]'")


def convert_scene(folder: Path) -> Converted:
    """Convert the scene into a folder and keep its header blob beside it."""
    import rasterio

    from rumi import geotiff

    source = scene_path()
    path = folder / "itaipu.rumi"
    geotiff.convert(source, path, tile_size=TILE_SIZE)
    header = rumi.index(path)
    blob_path = folder / "itaipu.blob"
    blob_path.write_bytes(bytes(header))
    with rasterio.open(source) as dataset:
        pixels = dataset.read()
    return Converted(source, path, blob_path, pixels, header)


def make_cog(source: Path, folder: Path) -> Cog:
    """Write the scene as a COG with the same tiles, ZSTD and the predictor."""
    import rasterio
    import rasterio.shutil

    path = folder / "itaipu-cog.tif"
    rasterio.shutil.copy(
        source,
        path,
        driver="COG",
        COMPRESS="ZSTD",
        PREDICTOR="YES",
        BLOCKSIZE=TILE_SIZE,
        OVERVIEWS="NONE",
    )
    with rasterio.open(path) as dataset:
        first_tile = int(dataset.get_tag_item("BLOCK_OFFSET_0_0", "TIFF", bidx=1))
    return Cog(path, path.stat().st_size, first_tile)


def check_chips(converted: Converted, *, chips: int = CHIPS, seed: int = 8) -> int:
    """Read random chips with the header blob alone and compare every bit.

    Returns
    -------
    int
        How many samples were compared.

    Raises
    ------
    CodecError
        If one differs, which would be a fault of rumi.
    """
    random = np.random.default_rng(seed)
    blob = converted.blob_path.read_bytes()
    bands, height, width = converted.pixels.shape
    samples = 0
    for _ in range(chips):
        rows, cols = (int(random.integers(1, min(side, 256) + 1)) for side in (height, width))
        row, col = int(random.integers(height - rows + 1)), int(random.integers(width - cols + 1))
        chosen = random.permutation(bands)[: random.integers(1, bands + 1)]
        chip = rumi.read(converted.path, blob, window=(row, col, rows, cols), bands=chosen)
        expected = converted.pixels[chosen, row : row + rows, col : col + cols]
        if not np.array_equal(chip, expected):
            raise rumi.CodecError(
                f"{converted.path}: chip {(row, col, rows, cols)} of bands {chosen.tolist()} "
                f"differs from {converted.source.name}"
            )
        samples += chip.size
    return samples


def time_chips(converted: Converted, cog: Cog, *, reads: int = 200, seed: int = 30) -> Timing:
    """Time the same random chips from both files, alternating, one thread each.

    A read opens the file, as a training job does that draws chips from
    thousands of files; neither side keeps decoded tiles. GDAL is told not to
    look for sidecar files, as its users do.
    """
    import rasterio
    from rasterio.windows import Window

    random = np.random.default_rng(seed)
    blob = converted.blob_path.read_bytes()
    _, height, width = converted.pixels.shape

    def from_rumi(row: int, col: int) -> NDArray[Any]:
        window = (row, col, CHIP_SIZE, CHIP_SIZE)
        return rumi.read(converted.path, blob, window=window, threads=1)

    def from_cog(row: int, col: int) -> Any:
        with rasterio.open(cog.path) as dataset:
            return dataset.read(window=Window(col, row, CHIP_SIZE, CHIP_SIZE))

    times: tuple[list[float], list[float]] = ([], [])
    with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR", GDAL_NUM_THREADS=1):
        for number in range(reads):
            row = int(random.integers(height - CHIP_SIZE + 1))
            col = int(random.integers(width - CHIP_SIZE + 1))
            contestants = [(0, from_rumi), (1, from_cog)]
            for which, read in contestants if number % 2 else reversed(contestants):
                times[which].append(_timed(read, row, col))
    return Timing(reads, float(np.median(times[0])), float(np.median(times[1])))


def draw_chip(converted: Converted, path: str | os.PathLike[str]) -> None:
    """Draw the scene with its frames, and one chip of it enlarged, as PNG."""
    from rumi import pictures

    image = rumi.open(converted.path, converted.header)
    figure = pictures.chip_figure(
        image,
        _DAM,
        bands=_COLOURS,
        title="The Itaipu dam, Landsat 8: the frames that one chip needs",
    )
    pictures.save_png(figure, path)


def _timed(read: Callable[[int, int], Any], row: int, col: int) -> float:
    start = time.perf_counter()
    read(row, col)
    return time.perf_counter() - start
