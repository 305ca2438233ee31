"""xarray: rumi files as lazy datasets, and data arrays as rumi files.

``xr.open_dataset(path, engine="rumi", chunks={})`` opens a file without reading
pixels; importing this module, or opening anything with that engine, adds
``.rumi.to_rumi(path)`` to datasets and data arrays. Needs the extra ``xarray``.
"""

from rumi.errors import UnsupportedError

try:
    import xarray  # noqa: F401
except ImportError as error:
    raise UnsupportedError("rumi.xarray needs xarray: pip install 'rumi[xarray]'") from error

from rumi.xarray.accessor import RumiArrayAccessor, RumiDatasetAccessor
from rumi.xarray.backend import VARIABLE, RumiBackend

__all__ = ["VARIABLE", "RumiArrayAccessor", "RumiBackend", "RumiDatasetAccessor"]
