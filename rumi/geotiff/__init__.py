"""GeoTIFF in and out: `convert`, `convert_many`, `export`, `inspect`.

Needs rasterio: ``pip install 'rumi[geotiff]'``.
"""

from rumi.geotiff.batch import Failure, convert_many
from rumi.geotiff.convert import Conversion, convert
from rumi.geotiff.export import Export, export
from rumi.geotiff.findings import Inspection, inspect
from rumi.geotiff.losses import LOSS_NAMES, Loss
from rumi.geotiff.nodata import nodata_mask, nodata_value

__all__ = [
    "LOSS_NAMES",
    "Conversion",
    "Export",
    "Failure",
    "Inspection",
    "Loss",
    "convert",
    "convert_many",
    "export",
    "inspect",
    "nodata_mask",
    "nodata_value",
]
