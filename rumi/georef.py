"""The two georeferencing tags: what they mean, and their exact bytes.

In memory a transform is always the six corner-based coefficients of rasterio and affine, whatever
the raster type, with (0, 0) the outer corner of the first pixel::

    x = a * column + b * row + c        y = d * column + e * row + f

On disk an "area" raster has the same six numbers, bit for bit. The matrix of a "point" raster maps
pixel *centres*, as in every GeoTIFF with PixelIsPoint: its origin is ``c + (a / 2 + b / 2)``,
``f + (d / 2 + e / 2)``. :func:`encode` adds this half pixel once, :func:`decode` subtracts it once,
with the operations of GDAL. The matrix of undefined georeferencing is fixed and never shifted.

Notes
-----
Guarantees for "point", in IEEE double arithmetic:

- ``a, b, d, e`` are kept bit for bit; the stored origin is the rounded sum above; GDAL, reading
  the file, finds the same corner as :func:`decode`.
- The corner comes back exactly where that sum is exact (any grid on whole metres). Otherwise it may
  move, once and by a rounding error of the centre, if the centre has a larger binary exponent than
  the corner, if the corner is a power of two, or at a tie.
- Later trips change no bit of transform or tag: ``(x + h) - h`` does not drift (Reiser and Knuth,
  *Evading the drift in floating-point addition*, 1975).
"""

import math
import re
import struct
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

from rumi._generated import constants as k
from rumi.errors import FormatError, UnsupportedError

__all__ = [
    "CRSKind",
    "Georeferencing",
    "RasterType",
    "Transform",
    "crs_kind",
    "decode",
    "encode",
    "normalise_crs",
    "normalise_transform",
]

CRSKind: TypeAlias = Literal["projected", "geographic"]
RasterType: TypeAlias = Literal["area", "point"]
Transform: TypeAlias = tuple[float, float, float, float, float, float]

_MATRIX = struct.Struct("<16d")
_KEYS = struct.Struct("<16H")
# where a, b, c, d, e, f stand among the 16 doubles
_COEFFICIENTS = sorted(set(range(16)) - set(dict(k.MODEL_TRANSFORMATION_FIXED)))
_HEADER = ("KeyDirectoryVersion", "KeyRevision", "MinorRevision", "NumberOfKeys")
_KEY_NAMES = ("GTModelTypeGeoKey", "GTRasterTypeGeoKey", "CRS key")
_KEY_FIELDS = ("KeyID", "TIFFTagLocation", "Count", "Value")
_MODELS: dict[CRSKind | None, int] = {
    None: k.MODEL_TYPE_UNDEFINED,
    "projected": k.MODEL_TYPE_PROJECTED,
    "geographic": k.MODEL_TYPE_GEOGRAPHIC,
}
_RASTERS: dict[RasterType, int] = {
    "area": k.RASTER_TYPE_PIXEL_IS_AREA,
    "point": k.RASTER_TYPE_PIXEL_IS_POINT,
}
_PROJ_KINDS: dict[str, CRSKind] = {"Projected CRS": "projected", "Geographic 2D CRS": "geographic"}
_EPSG_STRING = re.compile(r"EPSG:([1-9][0-9]{0,17})", re.IGNORECASE)
_WAY_OUT = "a raster that needs another kind of CRS should stay an ordinary GeoTIFF"


@dataclass(frozen=True, slots=True)
class Georeferencing:
    """Where a raster lies: a plain value, which :func:`encode` checks.

    Attributes
    ----------
    epsg : int or None
        EPSG code of a projected or geographic 2-D CRS; None without georeferencing.
    transform : tuple of 6 float or None
        Corner-based coefficients ``(a, b, c, d, e, f)`` in CRS units, whatever the
        raster type; None exactly when `epsg` is None.
    raster_type : {"area", "point"}
        Whether a sample stands for the area or the centre of its pixel.
    """

    epsg: int | None = None
    transform: Transform | None = None
    raster_type: RasterType = "area"


def normalise_transform(value: Any) -> Transform:
    """Return the six corner-based coefficients as Python floats, bits kept.

    Source: specification 0.1.0, ModelTransformationTag.

    Parameters
    ----------
    value : affine.Affine or sequence of 6 real numbers
        ``(a, b, c, d, e, f)`` in the order of rasterio. GDAL's ``(c, a, b, f, d, e)`` looks the
        same and cannot be told apart: use ``Affine.from_gdal`` first.

    Raises
    ------
    TypeError
        If `value` is no sequence (a string, set, mapping), or an item is a bool or no real number.
    ValueError
        If there are not six items, one is NaN, infinite or too large for a double, or the matrix is
        singular (``a * e - b * d`` is exactly 0).
    """
    if all(hasattr(value, name) for name in "abcdef"):  # an Affine, which has nine items
        value = [getattr(value, name) for name in "abcdef"]
    unordered = isinstance(value, str | bytes | bytearray | memoryview | Mapping | Set)
    if unordered or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        raise TypeError(f"transform: expected six numbers, found {type(value).__name__}")
    if len(value) != 6:
        raise ValueError(f"transform: expected six numbers (a, b, c, d, e, f), found {len(value)}")
    a, b, c, d, e, f = (_finite(n, item) for n, item in zip("abcdef", value, strict=True))
    # Exactly, because a float product of tiny or huge terms may underflow or overflow.
    from fractions import Fraction

    if Fraction(a) * Fraction(e) == Fraction(b) * Fraction(d):
        raise ValueError(f"transform {(a, b, c, d, e, f)}: expected a * e - b * d other than 0")
    return a, b, c, d, e, f


def _finite(name: str, item: Any) -> float:
    """Return one coefficient as a finite float."""
    if isinstance(item, bool) or not isinstance(item, Real):
        raise TypeError(f"transform: expected a real number for {name}, found {item!r:.60}")
    try:
        number = float(item)
    except OverflowError:  # an integer too large for a double
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"transform: expected a finite number for {name}, found {number}")
    return number


def normalise_crs(value: Any) -> int | None:
    """Return the EPSG code that `value` states exactly, or None for None.

    Parameters
    ----------
    value : None, int, str or CRS object
        A Python or NumPy integer; ``"EPSG:n"`` in any letter case and nothing around it; or an
        object with ``to_wkt(version=...)`` (of pyproj, rasterio, geopandas).

    Raises
    ------
    TypeError
        If `value` is anything else, a bool or a float included.
    ValueError
        If the code lies outside 1024..32766. Its kind is left to :func:`crs_kind`.
    UnsupportedError
        If a string is not ``"EPSG:n"`` (bare digits, WKT, PROJ, other authorities), or the
        definition of an object is not exactly that of an EPSG code.

    Notes
    -----
    A code is returned as written, deprecated or not. An object is believed on its definition: PROJ
    identifies it with full confidence or its WKT carries an EPSG id, *and* it equals the code's
    definition, axis order aside, in the database of pyproj or of its own library (rasterio's may be
    of another year).
    Source: specification 0.1.0, Undefined georeferencing.
    """
    if value is None:
        return None
    if isinstance(value, Integral) and not isinstance(value, bool):
        return _in_range(int(value))
    if isinstance(value, str):
        if match := _EPSG_STRING.fullmatch(value):
            return _in_range(int(match[1]))
        raise UnsupportedError(
            f"crs: expected an integer or 'EPSG:n', found {value[:60]!r}; {_WAY_OUT}"
        )
    if hasattr(value, "to_wkt"):
        return _in_range(_code_of_object(value))
    forms = "None, an integer, 'EPSG:n' or a CRS object with to_wkt()"
    raise TypeError(f"crs: expected {forms}, found {type(value).__name__}")


def _in_range(code: int) -> int:
    """Return `code` if the specification can store it."""
    if not k.MIN_EPSG <= code <= k.MAX_EPSG:
        raise ValueError(f"EPSG code: expected {k.MIN_EPSG}..{k.MAX_EPSG}, found {code}")
    return code


def _code_of_object(value: Any) -> int:
    """Return the EPSG code whose definition is exactly that of a CRS object."""
    from pyproj import CRS, exceptions

    try:
        crs = CRS.from_wkt(value.to_wkt(version="WKT2_2019"))
    except (exceptions.CRSError, ValueError) as error:  # rasterio's own CRSError is a ValueError
        raise UnsupportedError(f"crs: {type(value)} is not one complete CRS: {error}") from error
    declared = crs.to_json_dict().get("id", {})
    authority, number = declared.get("authority"), declared.get("code")
    label = f"{authority}:{number}" if declared else "of no authority"
    code = crs.to_epsg(min_confidence=100) or (number if authority == "EPSG" else None)
    stated = value.to_authority() if code and hasattr(value, "to_authority") else None
    if code is None:
        reason = "no EPSG code has exactly this definition; reproject"
    elif not _defines(code, crs, type(value)):
        reason = f"the PROJ database defines EPSG:{code} otherwise; correct it"
    elif stated and tuple(stated) != ("EPSG", str(code)):  # GDAL swaps deprecated codes
        reason = f"it calls itself {':'.join(stated)} but is defined as EPSG:{code}; choose"
    else:
        return int(code)
    raise UnsupportedError(
        f"crs: {crs.name!r} ({crs.type_name}, {label}): {reason}, or give the code you know to be "
        f"right as an integer; {_WAY_OUT}"
    )


def _defines(code: int, crs: Any, library: Any) -> bool:
    """Return whether EPSG:`code` is `crs` for pyproj, or for the library `crs` is from."""
    from pyproj import CRS, exceptions

    sources = (CRS, library) if hasattr(library, "from_epsg") else (CRS,)
    try:
        found = (CRS.from_wkt(s.from_epsg(code).to_wkt(version="WKT2_2019")) for s in sources)
        return any(own.equals(crs, ignore_axis_order=True) for own in found)
    except (exceptions.CRSError, ValueError):  # one of the two does not know the code
        return False


@lru_cache(maxsize=64)
def crs_kind(epsg: int) -> CRSKind:
    """Ask the PROJ database whether an EPSG code is projected or geographic.

    Raises
    ------
    ValueError
        If `epsg` lies outside 1024..32766.
    UnsupportedError
        If the database has no CRS of that code, or it is compound, vertical, geocentric,
        engineering, bound, derived or three-dimensional. Geographic 3-D codes such as 4979 count
        among these: the model space of a raster is flat (third row zero) and holds no height. The
        2-D code is named if there is one.

    Notes
    -----
    Deprecated codes are looked up as written. The last 64 answers are kept: a lookup costs up to a
    millisecond. Source: specification 0.1.0, Which codes are geographic.
    """
    from pyproj import CRS, exceptions

    try:
        crs = CRS.from_epsg(_in_range(epsg))
    except exceptions.CRSError as error:
        reason = "is not defined by the EPSG registry in this PROJ database"
        raise UnsupportedError(f"EPSG:{epsg} {reason}") from error
    kind, axes = _PROJ_KINDS.get(crs.type_name), len(crs.axis_info)
    if kind is not None and axes == 2:  # a projected CRS may have three
        return kind
    flat = (crs.sub_crs_list[0] if crs.is_compound else crs.to_2d()).to_epsg(min_confidence=100)
    hint = f"its horizontal part is EPSG:{flat}; " if flat not in (None, epsg) else ""
    raise UnsupportedError(
        f"EPSG:{epsg} ({crs.name}): expected a projected or geographic 2-D CRS, found "
        f"{crs.type_name} of dimension {axes}; {hint}{_WAY_OUT}"
    )


def _shift(transform: Transform, pixels: float) -> Transform:
    """Move the origin by +0.5 (corner to centre) or -0.5 (back) pixels, as GDAL does."""
    a, b, c, d, e, f = transform
    return a, b, c + (a * pixels + b * pixels), d, e, f + (d * pixels + e * pixels)


def _sixteen(transform: Transform | None) -> list[float]:
    """Return the 4 x 4 matrix in row-major order, the undefined one for None."""
    matrix = list(k.UNDEFINED_TRANSFORMATION)
    for position, value in zip(_COEFFICIENTS, transform or (), strict=False):
        matrix[position] = value
    return matrix


def _directory(model: int) -> list[Sequence[int]]:
    """Return the values allowed for each of the 16 shorts, given the model type."""
    projected = model == k.MODEL_TYPE_PROJECTED
    crs_key = k.GEO_KEY_PROJECTED_CS_TYPE if projected else k.GEO_KEY_GEOGRAPHIC_TYPE
    codes = (0,) if model == k.MODEL_TYPE_UNDEFINED else range(k.MIN_EPSG, k.MAX_EPSG + 1)
    allowed: list[Sequence[int]] = [(value,) for value in k.GEO_KEY_DIRECTORY_HEADER]
    allowed[2] = (0, 1)  # of GeoTIFF 1.0, which is written, and 1.1: the keys mean the same
    allowed += [(k.GEO_KEY_GT_MODEL_TYPE,), (0,), (1,), tuple(_MODELS.values())]
    allowed += [(k.GEO_KEY_GT_RASTER_TYPE,), (0,), (1,), tuple(_RASTERS.values())]
    return [*allowed, (crs_key,), (0,), (1,), codes]


def encode(georef: Georeferencing) -> tuple[bytes, bytes]:
    """Return the 128 bytes of ModelTransformationTag and 32 of GeoKeyDirectoryTag.

    Source: specification 0.1.0, Georeferencing.

    Raises
    ------
    TypeError, ValueError
        If `raster_type` is unknown, exactly one of `epsg` and `transform` is given (a file has both
        or neither), one is invalid as in :func:`normalise_crs` and :func:`normalise_transform`, or
        the centre of a "point" is beyond a double.
    UnsupportedError
        As in :func:`crs_kind`.
    """
    if georef.raster_type not in _RASTERS:
        raise ValueError(f"raster_type: expected 'area' or 'point', found {georef.raster_type!r}")
    epsg, transform = normalise_crs(georef.epsg), georef.transform
    if (epsg is None) != (transform is None):
        missing = "crs" if epsg is None else "transform"
        raise ValueError(f"expected both crs and transform or neither, found no {missing}")
    if transform is not None:
        transform = normalise_transform(transform)
        if georef.raster_type == "point":
            transform = normalise_transform(_shift(transform, 0.5))
    model = _MODELS[None if epsg is None else crs_kind(epsg)]
    shorts = [values[0] for values in _directory(model)]
    shorts[7], shorts[11], shorts[15] = model, _RASTERS[georef.raster_type], epsg or 0
    return _MATRIX.pack(*_sixteen(transform)), _KEYS.pack(*shorts)


def decode(matrix: bytes, keys: bytes, *, where: str = "") -> Georeferencing:
    """Read the two tags, without asking PROJ, and refuse what is not allowed.

    Parameters
    ----------
    matrix, keys : bytes
        Values of ModelTransformationTag and GeoKeyDirectoryTag as they are stored.
    where : str
        Name of the file for error messages.

    Raises
    ------
    FormatError
        If a tag has another size, or an element another value, than the specification gives it, or
        a coefficient (of a "point", the corner too) is not finite.

    Notes
    -----
    -0.0 passes for 0 and a singular matrix for a matrix, since nothing forbids them.
    Source: specification 0.1.0, Georeferencing.
    """
    at = f"{where}: " if where else ""
    if len(matrix) != _MATRIX.size:
        raise FormatError(f"{at}ModelTransformationTag: expected 128 bytes, found {len(matrix)}")
    if len(keys) != _KEYS.size:
        raise FormatError(f"{at}GeoKeyDirectoryTag: expected 32 bytes, found {len(keys)}")
    shorts, doubles = _KEYS.unpack(keys), _MATRIX.unpack(matrix)
    _check_keys(shorts, at)
    raster_type: RasterType = "point" if shorts[11] == _RASTERS["point"] else "area"
    if shorts[7] == k.MODEL_TYPE_UNDEFINED:
        undefined = k.UNDEFINED_TRANSFORMATION
        _check_matrix(doubles, undefined, f"{at}no CRS, so ", "Undefined georeferencing")
        return Georeferencing(None, None, raster_type)
    a, b, c, d, e, f = (doubles[position] for position in _COEFFICIENTS)
    transform = a, b, c, d, e, f
    _check_matrix(doubles, _sixteen(transform), at)
    transform = _shift(transform, -0.5) if raster_type == "point" else transform
    if not all(map(math.isfinite, transform)):
        raise FormatError(f"{at}ModelTransformationTag: the corner is beyond a double")
    return Georeferencing(shorts[15], transform, raster_type)


def _check_keys(shorts: tuple[int, ...], at: str) -> None:
    """Refuse a directory that the specification does not allow."""
    for i, (found, allowed) in enumerate(zip(shorts, _directory(shorts[7]), strict=True)):
        if found not in allowed:
            key = f"{_KEY_FIELDS[i % 4]} of {_KEY_NAMES[i // 4 - 1]}" if i > 3 else _HEADER[i]
            wanted = f"{allowed[0]}..{allowed[-1]}" if len(allowed) > 1 else f"{allowed[0]}"
            wanted += f" with GTModelTypeGeoKey {shorts[7]}" if i > 11 else ""
            undefined = i == 15 and shorts[7] == k.MODEL_TYPE_UNDEFINED
            clause = "Undefined georeferencing" if undefined else "GeoKeyDirectoryTag"
            raise FormatError(
                f"{at}GeoKeyDirectoryTag element {i} ({key}, byte {2 * i}): "
                f"expected {wanted}, found {found} (Georeferencing, {clause})"
            )


def _check_matrix(
    doubles: Sequence[float],
    expected: Sequence[float],
    at: str,
    clause: str = "ModelTransformationTag",
) -> None:
    """Refuse a matrix with a wrong fixed element or a coefficient that is not finite."""
    for i, (found, wanted) in enumerate(zip(doubles, expected, strict=True)):
        if found != wanted or not math.isfinite(found):
            place = f"element {i} (row {i // 4}, column {i % 4}, byte {8 * i})"
            need = wanted if math.isfinite(wanted) else "a finite number"
            raise FormatError(
                f"{at}ModelTransformationTag {place}: expected {need}, found {found} "
                f"(Georeferencing, {clause})"
            )
