"""Read and write .rumi, a raster format for training on earth-observation data.

A rumi file is one fixed BigTIFF directory followed by self-contained OpenZL
frames. Its *header blob*, some dozens of bytes, locates every frame without
opening the file: keep it in a catalog, and a chip is one range request and one
decode.
"""

from typing import TYPE_CHECKING, Any

from rumi.container import index
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
from rumi.write import write

if TYPE_CHECKING:
    from rumi.catalog import Catalog
    from rumi.cube import Cube, CubeCollection, ImageCollection
    from rumi.validation import Report, validate

__all__ = [
    "Catalog",
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

# setuptools reads the version from here too.
__version__ = "0.1.0"


# What few programs need is imported at its first use, so that a start stays short: the
# module of a name, and modules themselves.
_LATE = {
    "Catalog": "catalog",
    "Cube": "cube",
    "CubeCollection": "cube",
    "ImageCollection": "cube",
    "Report": "validation",
    "validate": "validation",
}
_LATE_MODULES = ("catalog", "codec", "compress", "cube", "geotiff", "pixels", "validation")


def __getattr__(name: str) -> Any:
    """Import a name that was left for later."""
    from importlib import import_module

    if name in _LATE:
        return getattr(import_module(f"rumi.{_LATE[name]}"), name)
    if name in _LATE_MODULES:
        return import_module(f"rumi.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
