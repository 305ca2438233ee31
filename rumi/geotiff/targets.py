"""What each sample encoding becomes in a GeoTIFF, and the way there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rumi.errors import UnsupportedError
from rumi.geotiff.gdal import has_half
from rumi.geotiff.samples import COMPLEX_INTEGER, widened_half

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.encodings import Encoding

__all__ = ["Target", "find_target"]

# The types of the specification that TIFF does not know, all of them small floats.
_PRIVATE = 100

Prepare: TypeAlias = "Callable[[NDArray[Any]], NDArray[Any]]"


@dataclass(frozen=True, slots=True)
class Target:
    """How samples are handed to GDAL.

    Attributes
    ----------
    dtype : str
        rasterio's name of the type that GDAL has.
    prepare : callable
        From samples to what rasterio takes for `dtype`.
    nbits : int or None
        Bits that GDAL stores of each sample, where fewer than the type has.
    widened : bool
        Whether the GeoTIFF has another, wider type; every value is the same.
    predictor : bool
        Whether TIFF predictors suit the type.
    """

    dtype: str
    prepare: Prepare
    nbits: int | None = None
    widened: bool = False
    predictor: bool = False


def find_target(encoding: Encoding, *, widen: bool, name: str) -> Target:
    """Return what an encoding becomes.

    Parameters
    ----------
    encoding : Encoding
    widen : bool
        Whether a type that GDAL has not may become a wider one.
    name : str
        What errors call the file.

    Raises
    ------
    UnsupportedError
        If GDAL has no such type and `widen` is false.
    """
    target = _TARGETS.get(encoding.name) or _other(encoding)
    if encoding.name == "float16" and has_half():
        target = _HALF
    if target.widened and not widen:
        raise UnsupportedError(
            f"{name}: GDAL has no {encoding.dtype_name} samples; widen=True (--widen) writes "
            f"them as {target.dtype}, which holds every value"
        )
    return target


def _other(encoding: Encoding) -> Target:
    if encoding.sample_format >= _PRIVATE:
        return Target("float32", _as("float32"), widened=True)
    real = encoding.sample_format < COMPLEX_INTEGER
    return Target(encoding.dtype_name, _same, predictor=real)


def _same(array: NDArray[Any]) -> NDArray[Any]:
    return array


def _bytes(array: NDArray[Any]) -> NDArray[Any]:
    return array.view(np.uint8)


def _half(array: NDArray[Any]) -> NDArray[Any]:
    return widened_half(array.view(np.uint16))


def _complex_half(array: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(array.shape, np.complex64)
    out.real = widened_half(np.ascontiguousarray(array["real"]).view(np.uint16))
    out.imag = widened_half(np.ascontiguousarray(array["imag"]).view(np.uint16))
    return out


def _complex(dtype: type[np.complexfloating[Any, Any]]) -> Prepare:
    def prepare(array: NDArray[Any]) -> NDArray[Any]:
        out = np.empty(array.shape, dtype)
        out.real = array["real"]
        out.imag = array["imag"]
        return out

    return prepare


def _as(dtype: str) -> Prepare:
    def prepare(array: NDArray[Any]) -> NDArray[Any]:
        # A signalling NaN becomes a quiet one.
        with np.errstate(invalid="ignore"):
            return array.astype(dtype)

    return prepare


_TARGETS = {
    "binary": Target("uint8", _bytes, nbits=1),
    "uint2": Target("uint8", _bytes, nbits=2),
    "uint4": Target("uint8", _bytes, nbits=4),
    "int2": Target("int8", _as("int8"), widened=True),
    "int4": Target("int8", _as("int8"), widened=True),
    # GDAL before 3.11 keeps half floats in files and does not have them in memory.
    "float16": Target("float32", _half, nbits=16),
    "complex_int16": Target("complex_int16", _complex(np.complex64)),
    "complex_int32": Target("complex128", _complex(np.complex128), widened=True),
    "complex_float16": Target("complex64", _complex_half, widened=True),
}

_HALF = Target("float16", _same)
