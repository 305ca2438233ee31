"""Writing a GeoTIFF from a rumi file by windows, and reading it back."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi.errors import CodecError, UnsupportedError
from rumi.geotiff import gdal
from rumi.geotiff.blocks import BlockSource
from rumi.geotiff.findings import examined

if TYPE_CHECKING:
    from rumi.geotiff.targets import Target
    from rumi.image import Image

__all__ = ["Settings", "cut", "make", "verify"]

_BLOCK = 512
_WINDOW_BYTES = 32 << 20

# Nothing is known of colours: a fourth band is not alpha.
_TILED = {
    "TILED": "YES",
    "BLOCKXSIZE": _BLOCK,
    "BLOCKYSIZE": _BLOCK,
    "PHOTOMETRIC": "MINISBLACK",
    "ALPHA": "NO",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the caller wants of the GeoTIFF, checked.

    Attributes
    ----------
    driver, compress : str
    overviews : str or None
    nodata : str or None
        As GDAL reads it.
    band_names : tuple of str
        Empty, or one for each band.
    threads : int
    """

    driver: str
    compress: str
    overviews: str | None
    nodata: str | None
    band_names: tuple[str, ...]
    threads: int

    def creation(self, target: Target, *, staged: bool) -> dict[str, Any]:
        """Return GDAL's creation options for the file, or the one that it is copied from."""
        options: dict[str, Any] = {"NUM_THREADS": self.threads}
        options["BIGTIFF"] = "YES" if staged else "IF_SAFER"
        if target.nbits is not None:
            options["NBITS"] = target.nbits
        if staged:
            return {**options, **_TILED, "COMPRESS": "DEFLATE", "ZLEVEL": 1}
        options["COMPRESS"] = self.compress
        predicted = target.predictor and self.compress in ("DEFLATE", "ZSTD", "LZW")
        if self.driver == "COG":
            options |= {"BLOCKSIZE": _BLOCK, "PREDICTOR": "YES" if predicted else "NO"}
            if self.overviews is None:
                return options | {"OVERVIEWS": "NONE"}
            return options | {"OVERVIEW_RESAMPLING": self.overviews.upper()}
        if predicted:
            options["PREDICTOR"] = 3 if target.dtype.startswith("float") else 2
        return options | _TILED


def cut(image: Image) -> list[tuple[int, int, int, int]]:
    """Cut the image into windows of whole blocks of the GeoTIFF and whole tiles."""
    bands, height, width = image.shape
    rows, cols = (-(-max(side, _BLOCK) // _BLOCK) * _BLOCK for side in image.header.tile_shape)
    size = bands * min(rows, height) * image.dtype.itemsize
    cols *= max(1, _WINDOW_BYTES // (size * cols))
    return [
        (row, col, min(rows, height - row), min(cols, width - col))
        for row in range(0, height, rows)
        for col in range(0, width, cols)
    ]


def make(
    image: Image,
    target: Target,
    settings: Settings,
    windows: list[tuple[int, int, int, int]],
    made: str,
    report: Callable[[int], None],
) -> None:
    """Write the GeoTIFF, by way of a plain one where GDAL can only copy."""
    staged = settings.driver == "COG" or settings.nodata is not None
    first = os.path.join(os.path.dirname(made), "staged.tif") if staged else made
    with (
        gdal.writing() as rasterio,
        gdal.translated(image.name, "GDAL cannot write it as a GeoTIFF", OSError),
    ):
        _write_plain(rasterio, image, target, settings, windows, first, staged, report)
        if not staged:
            return
        if settings.nodata is not None:
            _declare_nodata(first, image.shape[0], settings.nodata)
        from rasterio.shutil import copy

        copy(first, made, driver=settings.driver, **settings.creation(target, staged=False))


def _write_plain(
    rasterio: Any,
    image: Image,
    target: Target,
    settings: Settings,
    windows: list[tuple[int, int, int, int]],
    path: str,
    staged: bool,
    report: Callable[[int], None],
) -> None:
    bands, height, width = image.shape
    profile = {"width": width, "height": height, "count": bands, "dtype": target.dtype}
    profile |= _georeferencing(rasterio, image)
    profile |= settings.creation(target, staged=staged)
    with gdal.quiet():
        # It warns of the identity as a transform, and of none.
        dataset = rasterio.open(path, "w", driver="GTiff", **profile)
    with dataset:
        dataset.update_tags(AREA_OR_POINT=image.raster_type.capitalize())
        for band, text in enumerate(settings.band_names, 1):
            if text:
                dataset.set_band_description(band, text)
        for done, (row, col, rows, cols) in enumerate(windows, 1):
            samples = image.read(window=(row, col, rows, cols), threads=settings.threads)
            window = rasterio.windows.Window(col, row, cols, rows)
            dataset.write(target.prepare(samples), window=window)
            report(done)


def _georeferencing(rasterio: Any, image: Image) -> dict[str, Any]:
    if image.epsg is None or image.transform is None:
        return {}
    with gdal.translated(image.name, f"GDAL has no EPSG:{image.epsg}", UnsupportedError):
        crs = rasterio.crs.CRS.from_epsg(image.epsg)
        crs.to_wkt()
    return {"crs": crs, "transform": rasterio.Affine(*image.transform)}


def _declare_nodata(path: str, bands: int, text: str) -> None:
    """Declare nodata beside a file that GDAL copies next.

    rasterio would take it through a double; GDAL reads this text exactly.
    """
    band = "".join(
        f'<PAMRasterBand band="{number}"><NoDataValue>{text}</NoDataValue></PAMRasterBand>'
        for number in range(1, bands + 1)
    )
    with open(path + ".aux.xml", "w", encoding="ascii") as file:
        file.write(f"<PAMDataset>{band}</PAMDataset>")


def verify(
    image: Image,
    target: Target,
    windows: list[tuple[int, int, int, int]],
    made: str,
    report: Callable[[int], None],
) -> None:
    """Read the GeoTIFF as the converter would and compare it with the rumi file."""
    with examined(made, None, made) as (dataset, found, stored):
        place = (found.epsg, found.transform, found.raster_type)
        if place != (image.epsg, image.transform, image.raster_type):
            raise CodecError(
                f"{image.name}: expected georeferencing {image.georeferencing}, the GeoTIFF has "
                f"{place}"
            )
        if found.shape != image.shape or (found.dtype != image.dtype and not target.widened):
            raise CodecError(
                f"{image.name}: expected {image.shape} of {image.dtype}, the GeoTIFF has "
                f"{found.shape} of {found.dtype}"
            )
        source = BlockSource(dataset, stored, made)
        with gdal.reading():
            for done, (row, col, rows, cols) in enumerate(windows, len(windows) + 1):
                wanted = image.read(window=(row, col, rows, cols))
                if target.widened:
                    wanted = target.prepare(wanted)
                block = source[:, row : row + rows, col : col + cols]
                if np.ascontiguousarray(block).tobytes() != wanted.tobytes():
                    raise CodecError(
                        f"{image.name}: the GeoTIFF has other samples in rows {row} to "
                        f"{row + rows - 1}, columns {col} to {col + cols - 1}"
                    )
                report(done)
