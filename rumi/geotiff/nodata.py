"""nodata as text, compared in the domain of the samples.

A GeoTIFF states nodata as decimal text. Going through a double would turn
2**60 + 1 into its neighbour, so integers are compared as integers.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

__all__ = ["nodata_mask", "nodata_value"]

# Exponents beyond these are out of every type's range; converting such a
# number to an integer would take for ever.
_MAX_EXPONENT = 400


def nodata_value(text: str, dtype: DTypeLike) -> np.generic | None:
    """Return the one sample that a nodata text stands for.

    Parameters
    ----------
    text : str
        Decimal number, ``nan``, ``inf`` or ``-inf``, as in GDAL_NODATA.
    dtype : dtype
        Of the samples. A complex sample is nodata if its real part is the number
        and its imaginary part is zero.

    Returns
    -------
    scalar of `dtype`, or None
        None if no sample can be equal to it: a fraction or a number out of
        range for integers, a number beyond the largest float, no number at all.

    Notes
    -----
    A decimal fraction stands for the float nearest to it, as GDAL takes it.
    """
    kind = np.dtype(dtype)
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    if kind.names is not None:
        part = nodata_value(text, kind[0])
        return None if part is None else np.array([(part, 0)], dtype=kind)[0]
    if kind.kind in "biu" or kind.name.startswith(("int", "uint")):
        return _integer(number, kind)
    return _real(number, kind)


def nodata_mask(samples: NDArray[Any], text: str | None) -> NDArray[np.bool_]:
    """Return where samples are exactly nodata; NaN matches every NaN.

    Parameters
    ----------
    samples : ndarray
    text : str or None
        None, or a text that no sample can be equal to, matches nothing.

    Returns
    -------
    ndarray of bool, shape of `samples`
    """
    value = None if text is None else nodata_value(text, samples.dtype)
    if value is None:
        return np.zeros(samples.shape, dtype=bool)
    if value != value:
        return np.asarray(np.isnan(samples))
    return np.asarray(samples == value)


def _real(number: Decimal, kind: np.dtype[Any]) -> np.generic | None:
    wanted = math.nan if number.is_nan() else float(number)
    with np.errstate(all="ignore"):
        value: np.generic = np.array([wanted]).astype(kind)[0]
        found = complex(value)
    if number.is_nan():
        return value if found != found else None
    if kind.kind in "fc":
        beyond = number.is_finite() and not np.isfinite(found)
        return None if beyond else value
    # The small floats of ml_dtypes saturate and have few values: no rounding there.
    return value if found == wanted else None


def _integer(number: Decimal, kind: np.dtype[Any]) -> np.generic | None:
    if not number.is_finite() or number.adjusted() > _MAX_EXPONENT:
        return None
    if number != number.to_integral_value():
        return None
    integer = int(number)
    with np.errstate(all="ignore"):
        try:
            value = np.array([integer]).astype(kind)[0]
        except (OverflowError, TypeError):
            return None
    return value if int(value) == integer else None
