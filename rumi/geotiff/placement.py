"""Where a GeoTIFF lies: its CRS as an EPSG code, and its transform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rumi import georef
from rumi._generated import constants
from rumi.errors import UnsupportedError
from rumi.georef import Georeferencing
from rumi.geotiff.losses import Loss
from rumi.geotiff.tags import PIXEL_SCALE, geo_keys

if TYPE_CHECKING:
    from rumi.georef import RasterType, Transform
    from rumi.geotiff.tags import TiffTags

__all__ = ["Placement", "find", "stated_crs"]

_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)

_COORDINATE_EPOCH_KEY = 5120
_CRS_KEYS = (constants.GEO_KEY_PROJECTED_CS_TYPE, constants.GEO_KEY_GEOGRAPHIC_TYPE)


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
    if not dataset.crs:
        return None, None
    try:
        epsg = georef.normalise_crs(dataset.crs)
        if epsg is not None:
            georef.crs_kind(epsg)
    except (UnsupportedError, ValueError) as error:
        return None, str(error).removeprefix("crs: ")
    if epsg is None or any(str(file).endswith(".aux.xml") for file in dataset.files):
        # A CRS beside the file goes before the one inside.
        return epsg, None
    reason = _contradiction(epsg, tags)
    return (None, reason) if reason else (epsg, None)


def _contradiction(epsg: int, tags: TiffTags) -> str | None:
    """Say what GeoKeys state otherwise than GDAL understands them."""
    keys = geo_keys(tags.first)
    codes = {
        key: keys[key][2]
        for key in _CRS_KEYS
        if key in keys and constants.MIN_EPSG <= keys[key][2] <= constants.MAX_EPSG
    }
    projected = codes.get(constants.GEO_KEY_PROJECTED_CS_TYPE)
    base = codes.get(constants.GEO_KEY_GEOGRAPHIC_TYPE)
    written = base if projected is None else projected
    if written not in (None, epsg) and (projected is not None or georef.crs_kind(epsg) == "geographic"):
        return f"the GeoKeys say EPSG:{written}, GDAL reads EPSG:{epsg}"
    if projected is None or base is None:
        return None
    from pyproj import CRS

    geodetic = CRS.from_epsg(epsg).geodetic_crs
    own = None if geodetic is None else geodetic.to_epsg(min_confidence=100)
    if own in (None, base):
        return None
    return f"the GeoKeys say EPSG:{epsg}, which is based on EPSG:{own}, but also EPSG:{base}"
