"""The two decoders: OpenZL's binding, and geozl where it is installed.

The binding decodes every built-in graph and keeps its context from frame to
frame, but holds the GIL. geozl's shared library runs without the GIL and scales
with threads, but sets up a context for each frame; it is loaded by path,
without importing the package. geozl's own predictors are decoded by either:
the library knows them, and the binding is taught them when it first meets one.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import threading
from functools import cache
from pathlib import Path

from rumi._core import Decoder, environment, set_geozl
from rumi.errors import UnsupportedError

__all__ = ["ENVIRONMENT_VARIABLE", "decoder", "geozl_available", "requested", "teach", "versions"]

ENVIRONMENT_VARIABLE = "RUMI_BACKEND"
_ENVIRONMENT_VARIABLE = os.fsencode(ENVIRONMENT_VARIABLE)

_NAMES = ("auto", "openzl", "geozl")
_LIBRARIES = ("libgeozl.so", "libgeozl.dylib")
_DECOMPRESS = "geozl_2d_decompress_c"
_FRAME_SIZE = "geozl_2d_frame_dsize_c"

_local = threading.local()


@cache
def _library() -> ctypes.CDLL | None:
    """Load geozl's library and hand its functions to the kernels."""
    spec = importlib.util.find_spec("geozl")
    if spec is None or spec.origin is None:
        return None
    for name in _LIBRARIES:
        path = Path(spec.origin).parent / "_lib" / name
        if not path.is_file():
            continue
        try:
            library = ctypes.CDLL(os.fspath(path))
            addresses = [
                ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0
                for symbol in (_DECOMPRESS, _FRAME_SIZE)
            ]
        except (OSError, AttributeError):
            # Another machine's library, or one whose functions moved.
            return None
        set_geozl(*addresses)
        return library
    return None


def geozl_available() -> bool:
    """Whether geozl is installed and its library fits this machine."""
    return _library() is not None


def requested() -> str:
    """Return the backend that ``RUMI_BACKEND`` asks for, "auto" by default.

    Raises
    ------
    ValueError
        If the variable names no backend.
    UnsupportedError
        If it asks for geozl where that is absent.
    """
    value = environment(_ENVIRONMENT_VARIABLE)
    if value is None:
        return "auto"
    name = os.fsdecode(value)
    if name not in _NAMES:
        raise ValueError(f"{ENVIRONMENT_VARIABLE} is one of {', '.join(_NAMES)}, found {name!r}")
    if name == "geozl" and not geozl_available():
        raise UnsupportedError(
            f"{ENVIRONMENT_VARIABLE}=geozl, but geozl is not installed or does not fit this "
            "machine: pip install 'rumi[geozl]'"
        )
    return name


def decoder(backend: str) -> Decoder:
    """Return this thread's decoder of a backend, made at first need.

    Parameters
    ----------
    backend : {"auto", "openzl", "geozl"}
        "auto" is the binding, which `teach` may extend.
    """
    found: Decoder | None = getattr(_local, backend, None)
    if found is None:
        if backend == "geozl":
            _library()
        found = Decoder(backend)
        setattr(_local, backend, found)
    return found


def teach(decoder: Decoder) -> bool:
    """Teach geozl's codecs to a decoder of "auto".

    Returns
    -------
    bool
        False where that is no help: it knows them, or may not, or geozl is absent.
    """
    if decoder.backend != "auto" or decoder.taught or not geozl_available():
        return False
    geozl = importlib.import_module("geozl")
    decoder.teach(geozl.register_decoders)
    return True


def versions() -> dict[str, str | None]:
    """Return the version of each backend, None where it is absent."""
    # Imported here, since it brings in the email package.
    from importlib import metadata

    found: dict[str, str | None] = {"openzl": metadata.version("openzl"), "geozl": None}
    if geozl_available():
        found["geozl"] = metadata.version("geozl")
    return found
