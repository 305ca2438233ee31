"""Sample encodings: the 28 valid (sample_format, bits_per_sample) pairs and NumPy.

The table itself is generated from ``formats/rumi_header.ksy``. In memory every
sample takes whole bytes: sub-byte and 6-bit samples one byte each with the
value in the low bits, complex samples one element of their whole width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi._generated import constants
from rumi.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["ENCODINGS", "Encoding", "from_dtype", "from_pair", "number_dtype"]

# Complex samples that NumPy has no scalar type for: two named components.
_COMPONENTS = {
    "complex_int16": "<i2",
    "complex_int32": "<i4",
    "complex_float16": "<f2",
}

_NUMBERS: dict[int, type[np.generic]] = {
    1: np.uint8,
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
    16: np.complex128,
}


@dataclass(frozen=True, slots=True)
class Encoding:
    """One valid pair of sample type and width.

    Attributes
    ----------
    sample_format : int
        TIFF SampleFormat, or a rumi-private value from 100 on.
    bits_per_sample : int
        Width of a sample in bits; of both components together where complex.
    name : str
        Identifier in the format specification files.
    dtype_name : str
        Name of the NumPy or ml_dtypes type.
    itemsize : int
        Bytes of one sample in memory.
    description : str
        The specification's own words.

    Notes
    -----
    Source: specification 0.1.0, Sample encodings.
    """

    sample_format: int
    bits_per_sample: int
    name: str
    dtype_name: str
    itemsize: int
    description: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of a sample, native byte order.

        Raises
        ------
        UnsupportedError
            If the type comes from ml_dtypes and that is not installed.
        """
        return _numpy_dtype(self.dtype_name)

    @property
    def element_width(self) -> int:
        """Width in bytes of the Numeric elements of a frame: OpenZL has none of 16."""
        return min(self.itemsize, 8)

    @property
    def number_dtype(self) -> np.dtype[Any]:
        """NumPy type of a sample's bits: an unsigned number of its size, 16 bytes as complex."""
        return number_dtype(self.itemsize)


ENCODINGS: tuple[Encoding, ...] = tuple(Encoding(*row) for row in constants.ENCODINGS)

_BY_PAIR = {(e.sample_format, e.bits_per_sample): e for e in ENCODINGS}
_BY_DTYPE_NAME = {e.dtype_name: e for e in ENCODINGS}


def number_dtype(itemsize: int) -> np.dtype[Any]:
    """Return the NumPy type of the bits of a sample of 1, 2, 4, 8 or 16 bytes."""
    return np.dtype(_NUMBERS[itemsize])


def from_pair(sample_format: int, bits_per_sample: int) -> Encoding:
    """Return the encoding of a valid pair.

    Raises
    ------
    UnsupportedError
        If the specification does not list the pair.
    """
    try:
        return _BY_PAIR[sample_format, bits_per_sample]
    except KeyError:
        raise UnsupportedError(
            f"(sample_format {sample_format}, bits_per_sample {bits_per_sample}) is not a pair "
            "of the specification (Sample encodings)"
        ) from None


def from_dtype(dtype: DTypeLike) -> Encoding:
    """Return the encoding that holds a NumPy or ml_dtypes type without loss.

    Byte order does not matter. Complex integers and complex float16 are
    structured types with the fields ``real`` and ``imag``.

    Raises
    ------
    UnsupportedError
        If no encoding holds the type.
    """
    native = np.dtype(dtype).newbyteorder("=")
    name = native.name
    if native.names == ("real", "imag"):
        for candidate, component in _COMPONENTS.items():
            if native == _structured(component):
                name = candidate
    encoding = _BY_DTYPE_NAME.get(name)
    if encoding is None or (native.kind == "V" and encoding.dtype != native):
        raise UnsupportedError(
            f"dtype {np.dtype(dtype)} has no sample encoding; rumi holds "
            + ", ".join(e.dtype_name for e in ENCODINGS)
        )
    return encoding


def _structured(component: str) -> np.dtype[Any]:
    return np.dtype([("real", component), ("imag", component)])


@cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    if name in _COMPONENTS:
        return _structured(_COMPONENTS[name])
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError as error:
        raise UnsupportedError(
            f"samples of type {name} need the ml_dtypes package: pip install 'rumi[ml]'"
        ) from error
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found
