"""The one gate between Python and the compiled kernels.

Everything below is memory-safe and holds no policy: it checks what it is
given, releases the GIL where it can and raises the errors of `rumi.errors`.
Python code imports compiled names from here and from nowhere else.
"""

import sys

if sys.byteorder != "little":
    raise ImportError("rumi reads little-endian words in place and needs a little-endian machine")

try:
    from rumi._core.bits import pack, unpack
except ModuleNotFoundError:
    raise ImportError(
        f"{__path__[0]} holds the sources of rumi's core and not the compiled core: start Python "
        "in another folder to use the rumi that is installed, or build the core here with "
        "`pip install -e .`"
    ) from None
from rumi._core.callback import keeping
from rumi._core.columns import RECORD, parse_headers
from rumi._core.decode import FRAME_MAGIC, Counter, Decoder, environment, set_geozl
from rumi._core.failure import openzl_reason
from rumi._core.header import BlobHeader, frame_data_offset, serialise
from rumi._core.plan import Plan
from rumi._core.scatter import Target
from rumi._core.store import Store

__all__ = [
    "FRAME_MAGIC",
    "RECORD",
    "BlobHeader",
    "Counter",
    "Decoder",
    "Plan",
    "Store",
    "Target",
    "environment",
    "frame_data_offset",
    "keeping",
    "openzl_reason",
    "pack",
    "parse_headers",
    "serialise",
    "set_geozl",
    "unpack",
]
