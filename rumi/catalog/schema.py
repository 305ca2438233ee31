"""Columns of a catalog, and the metadata that makes it GeoParquet 1.1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi import encodings
from rumi.catalog.flat import Headers
from rumi.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rumi.catalog.describe import Row

__all__ = ["GIVEN", "OWN", "arrow", "geo_metadata", "make_table", "schema"]

# What every catalog has, in this order; free columns follow.
OWN = (
    "path",
    "header",
    "size",
    "mtime",
    "etag",
    "sha256",
    "bands",
    "height",
    "width",
    "dtype",
    "epsg",
    "transform",
    "raster_type",
    "nodata",
    "band_names",
    "geometry",
    "bbox",
)

# Those that a file does not tell: the caller gives them like free columns.
GIVEN = ("nodata", "band_names")

_POLYGON_TYPES = {3: "Polygon", 6: "MultiPolygon"}
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def arrow() -> Any:
    """Import pyarrow, with its Parquet part.

    Raises
    ------
    UnsupportedError
        If it is missing.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise UnsupportedError(
            f"catalogs need pyarrow ({error}): pip install 'rumi[catalog]'"
        ) from error
    return pa


def schema() -> Any:
    """Return the columns that every catalog has, as a schema of Arrow."""
    pa = arrow()
    corners = [pa.field(name, pa.float64()) for name in _CORNERS]
    kinds = {
        "path": pa.string(),
        "header": pa.large_binary(),
        "size": pa.int64(),
        "mtime": pa.timestamp("ns", tz="UTC"),
        "etag": pa.string(),
        "sha256": pa.string(),
        "bands": pa.int32(),
        "height": pa.int64(),
        "width": pa.int64(),
        "dtype": pa.string(),
        "epsg": pa.int32(),
        "transform": pa.list_(pa.float64()),
        "raster_type": pa.string(),
        "nodata": pa.string(),
        "band_names": pa.list_(pa.string()),
        "geometry": pa.binary(),
        "bbox": pa.struct(corners),
    }
    required = ("path", "header", "size", "bands", "height", "width", "dtype", "raster_type")
    return pa.schema([pa.field(name, kinds[name], name not in required) for name in OWN])


def make_table(
    paths: Sequence[str], rows: Sequence[Row], extra: Mapping[str, Sequence[Any]]
) -> Any:
    """Return a table of Arrow.

    Parameters
    ----------
    paths : sequence of str
        What the catalog calls each file.
    rows : sequence of Row
        What is known about each.
    extra : mapping from column to values
        Free columns, and nodata and band_names.

    Raises
    ------
    ValueError
        If the values of a column are of different types; the column is named.
    """
    pa = arrow()
    own = schema()
    blobs = [row.header for row in rows]
    offsets = np.zeros(len(blobs) + 1, np.int64)
    np.cumsum([len(blob) for blob in blobs], out=offsets[1:])
    headers = Headers(np.frombuffer(b"".join(blobs), np.uint8), offsets)
    values: dict[str, Any] = {
        "path": paths,
        "header": blobs,
        "size": [row.size for row in rows],
        "mtime": [row.mtime for row in rows],
        "etag": [row.etag for row in rows],
        "sha256": [row.sha256 for row in rows],
        "epsg": [row.epsg for row in rows],
        "transform": [row.transform for row in rows],
        "raster_type": [row.raster_type for row in rows],
        "nodata": [None] * len(rows),
        "band_names": [None] * len(rows),
        "geometry": [row.footprint and row.footprint[0] for row in rows],
        "bbox": [
            row.footprint and dict(zip(_CORNERS, row.footprint[1], strict=True)) for row in rows
        ],
        **_shape_columns(headers),
    }
    arrays, fields = [], []
    for name in (*OWN, *(name for name in extra if name not in OWN)):
        given = extra.get(name, values.get(name))
        field = own.field(name) if name in OWN else None
        arrays.append(_array(name, given, field and field.type))
        fields.append(field or pa.field(name, arrays[-1].type))
    return pa.table(arrays, schema=pa.schema(fields))


def _shape_columns(headers: Headers) -> dict[str, Any]:
    """Return columns for those who cannot parse a header, such as a database."""
    fields = headers.fields
    pairs = zip(fields["sample_format"].tolist(), fields["bits_per_sample"].tolist(), strict=True)
    return {
        "bands": fields["samples_per_pixel"].astype(np.int32),
        "height": fields["image_length"].astype(np.int64),
        "width": fields["image_width"].astype(np.int64),
        "dtype": [encodings.from_pair(*pair).dtype_name for pair in pairs],
    }


def _array(name: str, values: Any, kind: Any) -> Any:
    pa = arrow()
    try:
        found = pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"column {name}: {error}") from error
    # A column of nothing but None has a type that other software cannot read.
    return found.cast(pa.string()) if pa.types.is_null(found.type) else found


def geo_metadata(table: Any) -> dict[bytes, bytes]:
    """Return the entry of the file metadata that makes a table GeoParquet.

    Notes
    -----
    Source: GeoParquet 1.1.0, File metadata.
    """
    import pyarrow.compute as pc

    kinds: set[str] = set()
    box: list[float] = []
    geometry = table.column("geometry")
    if len(geometry) > geometry.null_count:
        # The second byte of WKB tells its type; the first is the byte order, little endian.
        codes = pc.unique(pc.binary_slice(geometry, 1, 2).drop_null()).to_pylist()
        kinds = {_POLYGON_TYPES[code[0]] for code in codes}
        corners = table.column("bbox").combine_chunks().flatten()
        ends = (pc.min, pc.min, pc.max, pc.max)
        box = [end(corner).as_py() for end, corner in zip(ends, corners, strict=True)]
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": sorted(kinds),
        "orientation": "counterclockwise",
        "edges": "planar",
        "covering": {"bbox": {corner: ["bbox", corner] for corner in _CORNERS}},
    }
    if kinds:
        column["bbox"] = box
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    return {b"geo": json.dumps(geo).encode()}
