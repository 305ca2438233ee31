# Generated from formats/*.ksy by formats/generate.mjs. Do not edit.
"""Every constant of the format, from the format specifications."""

from typing import Final

__all__ = [
    "BIGTIFF_HEADER",
    "CLAUSES",
    "ENCODINGS",
    "EXTERNAL_OFFSET",
    "FIELD_TYPES",
    "FIELD_TYPE_DOUBLE",
    "FIELD_TYPE_LONG",
    "FIELD_TYPE_LONG8",
    "FIELD_TYPE_SHORT",
    "FRAME_UNIT_CELL",
    "FRAME_UNIT_TILE",
    "GEOREFERENCING_SIZE",
    "GEO_KEY_DIRECTORY_HEADER",
    "GEO_KEY_DIRECTORY_SIZE",
    "GEO_KEY_GEOGRAPHIC_TYPE",
    "GEO_KEY_GT_MODEL_TYPE",
    "GEO_KEY_GT_RASTER_TYPE",
    "GEO_KEY_PROJECTED_CS_TYPE",
    "HEADER_FIELDS",
    "HEADER_SIZE",
    "IFD_ENTRY_COUNT",
    "IFD_ENTRY_SIZE",
    "IFD_OFFSET",
    "IFD_SIZE",
    "INLINE_SIZE",
    "MAGIC",
    "MAX_COUNT_BITS",
    "MAX_EPSG",
    "MIN_EPSG",
    "MODEL_TRANSFORMATION_COL_ROT",
    "MODEL_TRANSFORMATION_FIXED",
    "MODEL_TRANSFORMATION_ROW_ROT",
    "MODEL_TRANSFORMATION_SIZE",
    "MODEL_TRANSFORMATION_X_ORIGIN",
    "MODEL_TRANSFORMATION_X_RES",
    "MODEL_TRANSFORMATION_Y_ORIGIN",
    "MODEL_TRANSFORMATION_Y_RES",
    "MODEL_TYPE_GEOGRAPHIC",
    "MODEL_TYPE_PROJECTED",
    "MODEL_TYPE_UNDEFINED",
    "RASTER_TYPE_PIXEL_IS_AREA",
    "RASTER_TYPE_PIXEL_IS_POINT",
    "SAMPLE_FORMATS",
    "TAGS",
    "TAG_BITS_PER_SAMPLE",
    "TAG_GEO_KEY_DIRECTORY",
    "TAG_IMAGE_LENGTH",
    "TAG_IMAGE_WIDTH",
    "TAG_MODEL_TRANSFORMATION",
    "TAG_SAMPLES_PER_PIXEL",
    "TAG_SAMPLE_FORMAT",
    "TAG_TILE_BYTE_COUNTS",
    "TAG_TILE_LENGTH",
    "TAG_TILE_OFFSETS",
    "TAG_TILE_WIDTH",
    "UNDEFINED_TRANSFORMATION",
    "VERSION",
]

# --- Header blob
# HEADER_FIELDS: (name, offset, size, type) of every field of the fixed part.
# CLAUSES: the clause of the specification that each field is defined in.
HEADER_SIZE: Final[int] = 28
MAGIC: Final[int] = 0x45564F4C
VERSION: Final[int] = 1
MAX_COUNT_BITS: Final[int] = 32
HEADER_FIELDS: Final[tuple[tuple[str, int, int, str], ...]] = (
    ("magic", 0, 4, "uint32"),
    ("version", 4, 2, "uint16"),
    ("image_width", 6, 4, "uint32"),
    ("image_length", 10, 4, "uint32"),
    ("tile_width", 14, 2, "uint16"),
    ("tile_length", 16, 2, "uint16"),
    ("samples_per_pixel", 18, 2, "uint16"),
    ("bits_per_sample", 20, 1, "uint8"),
    ("sample_format", 21, 1, "uint8"),
    ("frame_unit", 22, 1, "uint8"),
    ("count_min", 23, 4, "uint32"),
    ("count_bits", 27, 1, "uint8"),
)
CLAUSES: Final[dict[str, str]] = {
    "magic": "Header fields, magic",
    "version": "Header fields, version",
    "image_width": "Header fields, image_width and image_length",
    "image_length": "Header fields, image_width and image_length",
    "tile_width": "Header fields, tile_width and tile_length",
    "tile_length": "Header fields, tile_width and tile_length",
    "samples_per_pixel": "Header fields, samples_per_pixel",
    "bits_per_sample": "Header fields, bits_per_sample and sample_format",
    "sample_format": "Header fields, bits_per_sample and sample_format",
    "frame_unit": "Header fields, frame_unit",
    "count_min": "Header fields, count_min and count_bits",
    "count_bits": "Header fields, count_min and count_bits",
}
FRAME_UNIT_TILE: Final[int] = 0
FRAME_UNIT_CELL: Final[int] = 1

# --- Sample encodings
# SAMPLE_FORMATS: (sample_format, id, meaning).
# ENCODINGS: (sample_format, bits_per_sample, id, dtype, itemsize, meaning) of every valid
# pair; dtype is the name in NumPy or ml_dtypes, itemsize the bytes of a sample in memory.
SAMPLE_FORMATS: Final[tuple[tuple[int, str, str], ...]] = (
    (1, "unsigned_integer", "unsigned integer"),
    (2, "signed_integer", "signed integer"),
    (3, "floating_point", "IEEE floating point"),
    (5, "complex_signed_integer", "complex signed integer"),
    (6, "complex_floating_point", "complex IEEE floating point"),
    (100, "float8_e4m3fn", "float8 E4M3FN"),
    (101, "float8_e5m2", "float8 E5M2"),
    (102, "bfloat16", "bfloat16"),
    (103, "float8_e8m0", "float8 E8M0"),
    (104, "float6_e2m3", "float6 E2M3"),
    (105, "float6_e3m2", "float6 E3M2"),
    (106, "float4_e2m1", "float4 E2M1"),
)
ENCODINGS: Final[tuple[tuple[int, int, str, str, int, str], ...]] = (
    (1, 1, "binary", "bool", 1, "1-bit binary"),
    (1, 2, "uint2", "uint2", 1, "unsigned 2-bit integer"),
    (1, 4, "uint4", "uint4", 1, "unsigned 4-bit integer"),
    (1, 8, "uint8", "uint8", 1, "unsigned 8-bit integer"),
    (1, 16, "uint16", "uint16", 2, "unsigned 16-bit integer"),
    (1, 32, "uint32", "uint32", 4, "unsigned 32-bit integer"),
    (1, 64, "uint64", "uint64", 8, "unsigned 64-bit integer"),
    (2, 2, "int2", "int2", 1, "signed 2-bit integer"),
    (2, 4, "int4", "int4", 1, "signed 4-bit integer"),
    (2, 8, "int8", "int8", 1, "signed 8-bit integer"),
    (2, 16, "int16", "int16", 2, "signed 16-bit integer"),
    (2, 32, "int32", "int32", 4, "signed 32-bit integer"),
    (2, 64, "int64", "int64", 8, "signed 64-bit integer"),
    (3, 16, "float16", "float16", 2, "IEEE 16-bit floating point"),
    (3, 32, "float32", "float32", 4, "IEEE 32-bit floating point"),
    (3, 64, "float64", "float64", 8, "IEEE 64-bit floating point"),
    (5, 32, "complex_int16", "complex_int16", 4, "complex signed integer, 16-bit components"),
    (5, 64, "complex_int32", "complex_int32", 8, "complex signed integer, 32-bit components"),
    (
        6,
        32,
        "complex_float16",
        "complex_float16",
        4,
        "complex IEEE floating point, 16-bit components",
    ),
    (6, 64, "complex_float32", "complex64", 8, "complex IEEE floating point, 32-bit components"),
    (6, 128, "complex_float64", "complex128", 16, "complex IEEE floating point, 64-bit components"),
    (100, 8, "float8_e4m3fn", "float8_e4m3fn", 1, "float8 E4M3FN"),
    (101, 8, "float8_e5m2", "float8_e5m2", 1, "float8 E5M2"),
    (102, 16, "bfloat16", "bfloat16", 2, "bfloat16"),
    (103, 8, "float8_e8m0", "float8_e8m0fnu", 1, "float8 E8M0"),
    (104, 6, "float6_e2m3", "float6_e2m3fn", 1, "float6 E2M3"),
    (105, 6, "float6_e3m2", "float6_e3m2fn", 1, "float6 E3M2"),
    (106, 4, "float4_e2m1", "float4_e2m1fn", 1, "float4 E2M1"),
)

# --- Placement in the file
# EXTERNAL_OFFSET is also the length of the prefix that holds the whole IFD.
BIGTIFF_HEADER: Final[bytes] = b"\x49\x49\x2b\x00\x08\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00"
IFD_OFFSET: Final[int] = 16
IFD_SIZE: Final[int] = 236
IFD_ENTRY_COUNT: Final[int] = 11
IFD_ENTRY_SIZE: Final[int] = 20
INLINE_SIZE: Final[int] = 8
EXTERNAL_OFFSET: Final[int] = 252
MODEL_TRANSFORMATION_SIZE: Final[int] = 128
GEO_KEY_DIRECTORY_SIZE: Final[int] = 32
GEOREFERENCING_SIZE: Final[int] = 160

# --- Tags
# FIELD_TYPES: (type, name, bytes of one value).
# TAGS: (tag, name, type) in the order of the IFD.
FIELD_TYPE_SHORT: Final[int] = 3
FIELD_TYPE_LONG: Final[int] = 4
FIELD_TYPE_DOUBLE: Final[int] = 12
FIELD_TYPE_LONG8: Final[int] = 16
FIELD_TYPES: Final[tuple[tuple[int, str, int], ...]] = (
    (3, "SHORT", 2),
    (4, "LONG", 4),
    (12, "DOUBLE", 8),
    (16, "LONG8", 8),
)
TAG_IMAGE_WIDTH: Final[int] = 256
TAG_IMAGE_LENGTH: Final[int] = 257
TAG_BITS_PER_SAMPLE: Final[int] = 258
TAG_SAMPLES_PER_PIXEL: Final[int] = 277
TAG_TILE_WIDTH: Final[int] = 322
TAG_TILE_LENGTH: Final[int] = 323
TAG_TILE_OFFSETS: Final[int] = 324
TAG_TILE_BYTE_COUNTS: Final[int] = 325
TAG_SAMPLE_FORMAT: Final[int] = 339
TAG_MODEL_TRANSFORMATION: Final[int] = 34264
TAG_GEO_KEY_DIRECTORY: Final[int] = 34735
TAGS: Final[tuple[tuple[int, str, int], ...]] = (
    (256, "ImageWidth", 4),
    (257, "ImageLength", 4),
    (258, "BitsPerSample", 3),
    (277, "SamplesPerPixel", 3),
    (322, "TileWidth", 3),
    (323, "TileLength", 3),
    (324, "TileOffsets", 16),
    (325, "TileByteCounts", 4),
    (339, "SampleFormat", 3),
    (34264, "ModelTransformationTag", 12),
    (34735, "GeoKeyDirectoryTag", 3),
)

# --- Georeferencing
# GEO_KEY_DIRECTORY_HEADER is what a writer writes. MODEL_TRANSFORMATION_FIXED: (position,
# value) of the elements of the 4 x 4 matrix that are the same in every file.
GEO_KEY_DIRECTORY_HEADER: Final[tuple[int, int, int, int]] = (1, 1, 0, 3)
GEO_KEY_GT_MODEL_TYPE: Final[int] = 1024
GEO_KEY_GT_RASTER_TYPE: Final[int] = 1025
GEO_KEY_GEOGRAPHIC_TYPE: Final[int] = 2048
GEO_KEY_PROJECTED_CS_TYPE: Final[int] = 3072
MODEL_TYPE_UNDEFINED: Final[int] = 0
MODEL_TYPE_PROJECTED: Final[int] = 1
MODEL_TYPE_GEOGRAPHIC: Final[int] = 2
RASTER_TYPE_PIXEL_IS_AREA: Final[int] = 1
RASTER_TYPE_PIXEL_IS_POINT: Final[int] = 2
MIN_EPSG: Final[int] = 1024
MAX_EPSG: Final[int] = 32766
MODEL_TRANSFORMATION_X_RES: Final[int] = 0
MODEL_TRANSFORMATION_ROW_ROT: Final[int] = 1
MODEL_TRANSFORMATION_X_ORIGIN: Final[int] = 3
MODEL_TRANSFORMATION_COL_ROT: Final[int] = 4
MODEL_TRANSFORMATION_Y_RES: Final[int] = 5
MODEL_TRANSFORMATION_Y_ORIGIN: Final[int] = 7
MODEL_TRANSFORMATION_FIXED: Final[tuple[tuple[int, float], ...]] = (
    (2, 0.0),
    (6, 0.0),
    (8, 0.0),
    (9, 0.0),
    (10, 0.0),
    (11, 0.0),
    (12, 0.0),
    (13, 0.0),
    (14, 0.0),
    (15, 1.0),
)
UNDEFINED_TRANSFORMATION: Final[tuple[float, ...]] = (
    1.0,
    0.0,
    0.0,
    0.0,
    0.0,
    1.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    1.0,
)
