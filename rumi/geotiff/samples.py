"""How a TIFF stores its samples, and how they come through GDAL without a bit changed.

GDAL reads several types under another name: sub-byte samples as bytes, complex
integers as complex floats, float16 as float32 (before GDAL 3.11). Each has one
exact way back, given here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rumi import encodings
from rumi._generated import constants
from rumi.errors import FormatError, UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.encodings import Encoding
    from rumi.geotiff.tags import TiffTags

__all__ = ["Samples", "half_bits", "resolve", "stored_type", "widened_half"]

Restore: TypeAlias = "Callable[[NDArray[Any], np.dtype[Any]], NDArray[Any]]"

UNSIGNED, SIGNED, FLOAT, VOID, COMPLEX_INTEGER, COMPLEX_FLOAT = 1, 2, 3, 4, 5, 6

_SAMPLE_FORMATS = {
    UNSIGNED: "unsigned integer",
    SIGNED: "signed integer",
    FLOAT: "floating point",
    COMPLEX_INTEGER: "complex integer",
    COMPLEX_FLOAT: "complex floating point",
}

_MAX_HALF_MANTISSA = 0x3FF


@dataclass(frozen=True, slots=True)
class Samples:
    """The sample type of a TIFF, and the way from what GDAL gives back to it.

    Attributes
    ----------
    encoding : Encoding
        What the rumi file has.
    stored_bits : int
        BitsPerSample of the TIFF; less than the encoding's where it was widened.
    read_as : str or None
        Type to ask GDAL for, where its own choice would lose something.
    restore : callable
        Takes what was read and the wanted dtype; returns the samples.
    """

    encoding: Encoding
    stored_bits: int
    read_as: str | None
    restore: Restore

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of a sample."""
        return self.encoding.dtype

    @property
    def widened(self) -> bool:
        """Whether the rumi file has more bits a sample than the TIFF."""
        return self.stored_bits < self.encoding.bits_per_sample


def stored_type(tags: TiffTags, name: str) -> tuple[int, int]:
    """Return SampleFormat and BitsPerSample, the same for every band.

    Raises
    ------
    FormatError
        If some bands have none.
    UnsupportedError
        If a band differs from the first.
    """
    formats = tags.first.values(constants.TAG_SAMPLE_FORMAT, (UNSIGNED,))
    depths = tags.first.values(constants.TAG_BITS_PER_SAMPLE, (1,))
    bands = tags.bands
    for tag, values in (("SampleFormat", formats), ("BitsPerSample", depths)):
        # Some writers state what all bands share but once.
        if 1 < len(values) < bands:
            raise FormatError(f"{name}: {tag} has {len(values)} values for {bands} bands")
        for band, value in enumerate(values[:bands]):
            if value != values[0]:
                raise UnsupportedError(
                    f"{name}: {tag} of band {band} is {value}, of band 0 it is {values[0]}; a rumi "
                    "file has one sample type for all bands: convert the bands apart"
                )
    sample_format = int(formats[0])
    return UNSIGNED if sample_format == VOID else sample_format, int(depths[0])


def resolve(
    sample_format: int, bits: int, gdal_dtype: str, *, big_endian: bool, name: str
) -> Samples:
    """Return the way a sample type comes through GDAL.

    Parameters
    ----------
    sample_format, bits : int
        As the TIFF stores them.
    gdal_dtype : str
        What rasterio calls the type that GDAL reads them as.
    big_endian : bool
        Byte order of the TIFF.
    name : str
        What errors call the file.

    Raises
    ------
    UnsupportedError
        If no encoding holds the samples, or GDAL cannot be made to give them.
    """
    for route in _routes(sample_format, bits, big_endian):
        if gdal_dtype in route.gdal:
            encoding = encodings.from_pair(*route.pair)
            encoding.dtype  # noqa: B018  (refuses here if ml_dtypes is missing)
            return Samples(encoding, bits, route.read_as, route.restore)
    kind = _SAMPLE_FORMATS.get(sample_format, f"SampleFormat {sample_format}")
    raise UnsupportedError(
        f"{name}: {bits}-bit {kind} samples, which GDAL reads as {gdal_dtype}, have no exact way "
        "into a sample encoding of rumi; rewrite the file with a standard type"
    )


@dataclass(frozen=True, slots=True)
class _Route:
    pair: tuple[int, int]
    gdal: tuple[str, ...]
    restore: Restore
    read_as: str | None = None


def _routes(sample_format: int, bits: int, big_endian: bool) -> list[_Route]:
    """Return the ways that a stored type may take, best first."""
    pair = sample_format, bits
    if pair in _EXACT:
        return [_EXACT[pair]]
    if pair == (FLOAT, 16):
        return [_Route(pair, ("float16",), _same), _Route(pair, ("float32",), _half)]
    if pair == (COMPLEX_FLOAT, 32):
        # GDAL before 3.11 gives the two halves as one number, whose halves
        # libtiff swapped if the file is big-endian.
        found = [_Route(pair, ("complex64",), _complex_half)]
        return found if big_endian else [*found, _Route(pair, ("uint32",), _viewed)]
    if sample_format == UNSIGNED and bits < 16:
        # Not above: of 24 bits GDAL takes the bytes in another order than TIFF.
        width = 8 if bits < 8 else 16
        return [_Route((UNSIGNED, width), (f"uint{width}",), _same)]
    return []


def _same(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return array


def _viewed(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return array.view(dtype)


def _narrow(bits: int) -> Restore:
    """Return the way of sub-byte samples, which GDAL gives as bytes."""

    def restore(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        if array.size and int(array.max()) >> bits:
            raise FormatError(f"a sample is {array.max()}, more than {bits} bits hold")
        return array.view(dtype)

    return restore


def _narrow_signed(bits: int) -> Restore:
    """Return the way of signed sub-byte samples, which GDAL gives without their sign."""

    def restore(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        sign = np.uint8(1 << (bits - 1))
        low = array & np.uint8((1 << bits) - 1)
        return ((low ^ sign) - sign).view(dtype)

    return restore


def _components(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Split complex floats whose parts are integers small enough to be exact."""
    out = np.empty(array.shape, dtype)
    out["real"] = array.real
    out["imag"] = array.imag
    return out


def _half(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return half_bits(array).view(dtype)


def _complex_half(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    out = np.empty(array.shape, dtype)
    out["real"] = half_bits(array.real).view(np.float16)
    out["imag"] = half_bits(array.imag).view(np.float16)
    return out


def half_bits(array: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the float16 bits that float32 numbers were widened from.

    Notes
    -----
    NumPy's own conversion may set the quiet bit of a NaN, depending on the
    processor; here the payload is moved by hand, as GDAL moved it.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        out = array.astype(np.float16).view(np.uint16)
    nan = np.isnan(array)
    if nan.any():
        wide = np.ascontiguousarray(array)[nan].view(np.uint32)
        payload = (wide >> np.uint32(13)) & np.uint32(_MAX_HALF_MANTISSA)
        sign = (wide >> np.uint32(16)) & np.uint32(0x8000)
        out[nan] = (sign | np.uint32(0x7C00) | payload).astype(np.uint16)
    return out


def widened_half(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the float32 numbers of float16 bits; `half_bits` gives the bits back."""
    wide: NDArray[np.float32] = bits.view(np.float16).astype(np.float32)
    nan = (bits & np.uint16(0x7FFF)) > np.uint16(0x7C00)
    if nan.any():
        payload = (bits[nan] & np.uint16(_MAX_HALF_MANTISSA)).astype(np.uint32) << np.uint32(13)
        sign = (bits[nan] & np.uint16(0x8000)).astype(np.uint32) << np.uint32(16)
        wide.view(np.uint32)[nan] = sign | np.uint32(0x7F800000) | payload
    return wide


_EXACT = {
    (UNSIGNED, 1): _Route((UNSIGNED, 1), ("uint8",), _narrow(1)),
    (UNSIGNED, 2): _Route((UNSIGNED, 2), ("uint8",), _narrow(2)),
    (UNSIGNED, 4): _Route((UNSIGNED, 4), ("uint8",), _narrow(4)),
    (SIGNED, 2): _Route((SIGNED, 2), ("uint8", "int8"), _narrow_signed(2)),
    (SIGNED, 4): _Route((SIGNED, 4), ("uint8", "int8"), _narrow_signed(4)),
    **{
        (sample_format, bits): _Route((sample_format, bits), (f"{kind}{bits}",), _same)
        for sample_format, kind, widths in (
            (UNSIGNED, "uint", (8, 16, 32, 64)),
            (SIGNED, "int", (8, 16, 32, 64)),
            (FLOAT, "float", (32, 64)),
            (COMPLEX_FLOAT, "complex", (64, 128)),
        )
        for bits in widths
    },
    # A float32 holds every int16, a float64 every int32, so the parts are exact.
    (COMPLEX_INTEGER, 32): _Route(
        (COMPLEX_INTEGER, 32), ("complex_int16",), _components, "complex64"
    ),
    (COMPLEX_INTEGER, 64): _Route(
        (COMPLEX_INTEGER, 64), ("complex64", "complex_int32"), _components, "complex128"
    ),
}
