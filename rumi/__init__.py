"""Read and write .rumi, a raster format for training on earth-observation data.

A rumi file is one fixed BigTIFF directory followed by self-contained OpenZL
frames. Its *header blob*, some dozens of bytes, locates every frame without
opening the file: keep it in a catalog, and a chip is one range request and one
decode.
"""

from rumi.container import index
from rumi.cube import Cube, CubeCollection, ImageCollection
from rumi.errors import (
    CodecError,
    FormatError,
    HeaderError,
    RumiError,
    SourceError,
    StaleHeaderError,
    TruncatedError,
    UnsupportedError,
)
from rumi.header import Header
from rumi.image import Image
from rumi.image import open_image as open
from rumi.read import read, read_many
from rumi.validation import Report, validate
from rumi.write import write

__all__ = [
    "CodecError",
    "Cube",
    "CubeCollection",
    "FormatError",
    "Header",
    "HeaderError",
    "Image",
    "ImageCollection",
    "Report",
    "RumiError",
    "SourceError",
    "StaleHeaderError",
    "TruncatedError",
    "UnsupportedError",
    "index",
    "open",
    "read",
    "read_many",
    "validate",
    "write",
]
