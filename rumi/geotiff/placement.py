"""Where a GeoTIFF lies: its CRS as an EPSG code, and its transform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rumi import georef
from rumi._generated import constants
from rumi.errors import UnsupportedError
from rumi.georef import Georeferencing
from rumi.geotiff import gdal
from rumi.geotiff.losses import Loss
from rumi.geotiff.tags import PIXEL_SCALE, geo_keys

if TYPE_CHECKING:
    from rumi.georef import RasterType, Transform
    from rumi.geotiff.tags import TiffTags

__all__ = ["Placement", "find", "stated_crs"]

_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)

_USER_DEFINED = 32767
_COORDINATE_EPOCH_KEY = 5120
_PROJECTED_KEY = constants.GEO_KEY_PROJECTED_CS_TYPE
_GEOGRAPHIC_KEY = constants.GEO_KEY_GEOGRAPHIC_TYPE


@dataclass(frozen=True, slots=True)
class Placement:
    """Georeferencing that a rumi file can carry, and what it cannot.

    Attributes
    ----------
    epsg : int or None
    transform : tuple of 6 float or None
        None exactly when `epsg` is None.
    raster_type : {"area", "point"}
    losses : tuple of Loss
    notes : tuple of str
    """

    epsg: int | None
    transform: Transform | None
    raster_type: RasterType
    losses: tuple[Loss, ...]
    notes: tuple[str, ...]


def stated_crs(crs: Any) -> int | None:
    """Check the EPSG code that a caller states; errors as of `rumi.write`."""
    epsg = georef.normalise_crs(crs)
    if epsg is not None:
        georef.crs_kind(epsg)
    return epsg


def find(
    dataset: Any, tags: TiffTags, stated: int | None, has_transform: bool, name: str
) -> Placement:
    """Find where an open GeoTIFF lies.

    Parameters
    ----------
    dataset : rasterio.DatasetReader
    tags : TiffTags
        Of the same file.
    stated : int or None
        EPSG code that the caller knows better.
    has_transform : bool
        Whether the identity transform is one that the file states.
    name : str
        What errors call the file.

    Raises
    ------
    UnsupportedError
        If GDAL would turn the image upside down.
    """
    _refuse_negative_scale(tags, name)
    losses, notes = _points(dataset, tags), []
    transform = _transform(dataset, has_transform, losses)
    epsg, reason = (stated, None) if stated else _epsg(dataset, tags)
    if stated:
        notes.append(f"EPSG:{stated} was stated by the caller, not by the file")
    if epsg is not None and transform is None:
        reason = f"EPSG:{epsg} comes without a transform, and a rumi file has both or neither"
    elif transform is not None and epsg is None and reason is None:
        losses.append(Loss("transform", f"{transform}, without a CRS"))
    if reason is not None:
        losses.append(Loss("crs", reason))
    if dataset.tags().get("AREA_OR_POINT") == "Point":
        raster_type: RasterType = "point"
    else:
        raster_type = "area"
    if epsg is None or transform is None:
        return Placement(None, None, raster_type, tuple(losses), tuple(notes))
    try:
        georef.encode(Georeferencing(epsg, transform, raster_type))
    except ValueError as error:
        losses.append(Loss("crs", str(error)))
        return Placement(None, None, raster_type, tuple(losses), tuple(notes))
    return Placement(epsg, transform, raster_type, tuple(losses), tuple(notes))


def _points(dataset: Any, tags: TiffTags) -> list[Loss]:
    """Return what places the image otherwise than by CRS and transform."""
    losses = []
    points, crs = dataset.gcps
    if points:
        system = f" in {crs.to_string()[:60]}" if crs else ""
        losses.append(Loss("gcps", f"{len(points)} ground control points{system}"))
    if dataset.rpcs is not None:
        losses.append(Loss("rpcs", "rational polynomial coefficients"))
    if _COORDINATE_EPOCH_KEY in geo_keys(tags.first):
        losses.append(Loss("epoch", "the coordinate epoch of a dynamic CRS"))
    return losses


def _transform(dataset: Any, has_transform: bool, losses: list[Loss]) -> Transform | None:
    """Return the six coefficients bit for bit, None where the file states none."""
    coefficients = tuple(dataset.transform)[:6]
    if not has_transform:
        return None
    if coefficients == _IDENTITY and any(loss.name in ("gcps", "rpcs") for loss in losses):
        # rasterio says the identity where points take a transform's place.
        return None
    try:
        return georef.normalise_transform(coefficients)
    except ValueError as error:
        losses.append(Loss("transform", str(error)))
        return None


def _refuse_negative_scale(tags: TiffTags, name: str) -> None:
    scale = tags.first.values(PIXEL_SCALE)
    if len(scale) > 1 and scale[1] < 0:
        raise UnsupportedError(
            f"{name}: the y scale of ModelPixelScaleTag is {scale[1]}: by the GeoTIFF standard the "
            "image is south-up, for GDAL it is north-up; rewrite it with the corners that are "
            "right (gdal_translate -a_ullr)"
        )


def _epsg(dataset: Any, tags: TiffTags) -> tuple[int | None, str | None]:
    """Return the EPSG code of the file's own CRS, or why it has none."""
    # A CRS beside the file goes before the one inside.
    beside = gdal.mentioned_beside(dataset, b"<SRS")
    keys = {} if beside else geo_keys(tags.first)
    if not dataset.crs or _says_nothing(dataset.crs, keys):
        some = any(keys.get(key, (0, 0, 0))[2] for key in (_PROJECTED_KEY, _GEOGRAPHIC_KEY))
        lost = some and not dataset.gcps[0]
        return None, "the GeoKeys state a CRS that GDAL cannot read" if lost else None
    written = _code(keys, _PROJECTED_KEY if _PROJECTED_KEY in keys else _GEOGRAPHIC_KEY)
    try:
        if written is not None and _declared(dataset.crs) == written:
            # A code is written as given, even where databases define it differently.
            epsg = written
        else:
            epsg = georef.normalise_crs(dataset.crs) or 0
        georef.crs_kind(epsg)
    except (UnsupportedError, ValueError) as error:
        return None, str(error).removeprefix("crs: ")
    if written not in (None, epsg):
        return None, f"the GeoKeys say EPSG:{written}, GDAL reads EPSG:{epsg}"
    base, stated = _base(epsg), _code(keys, _GEOGRAPHIC_KEY)
    if None not in (base, stated) and base != stated:
        return None, f"the GeoKeys say EPSG:{epsg}, based on EPSG:{base}, but also EPSG:{stated}"
    return epsg, None


def _says_nothing(crs: Any, keys: dict[int, tuple[int, int, int]]) -> bool:
    """Whether GeoKeys state no CRS, of which GDAL makes a local one without a name."""
    model = keys.get(constants.GEO_KEY_GT_MODEL_TYPE, (0, 0, 0))[2]
    coded = any(keys.get(key, (0, 0, 0))[2] for key in (_PROJECTED_KEY, _GEOGRAPHIC_KEY))
    nameless = crs.to_wkt().startswith('LOCAL_CS["unnamed"')
    return bool(keys) and nameless and not coded and model in (0, _USER_DEFINED)


def _code(keys: dict[int, tuple[int, int, int]], key: int) -> int | None:
    """Return the EPSG code that a GeoKey holds, None for user-defined ones."""
    location, _, value = keys.get(key, (0, 0, 0))
    inside = not location and constants.MIN_EPSG <= value <= constants.MAX_EPSG
    return value if inside else None


def _declared(crs: Any) -> int | None:
    """Return the EPSG code that GDAL's definition of a CRS carries itself."""
    from pyproj import CRS, exceptions

    try:
        identity = CRS.from_wkt(crs.to_wkt(version="WKT2_2019")).to_json_dict().get("id", {})
    except exceptions.CRSError:  # normalise_crs says what is wrong with it
        return None
    return identity.get("code") if identity.get("authority") == "EPSG" else None


def _base(epsg: int) -> int | None:
    """Return the code of the geographic CRS that a CRS is based on, or is."""
    from pyproj import CRS

    geodetic = CRS.from_epsg(epsg).geodetic_crs
    return None if geodetic is None else geodetic.to_epsg(min_confidence=100)
