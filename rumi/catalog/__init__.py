"""Catalogs: rumi files, their header blobs and whatever is known about them, as GeoParquet.

Needs pyarrow, when used: ``pip install 'rumi[catalog]'``. DuckDB, GeoPandas and
everything else that reads Parquet reads a catalog without rumi.
"""

from rumi.catalog.catalog import Catalog
from rumi.catalog.chips import Chips
from rumi.catalog.describe import Failure
from rumi.catalog.flat import Headers

__all__ = ["Catalog", "Chips", "Failure", "Headers"]
