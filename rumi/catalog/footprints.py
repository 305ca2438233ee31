"""Where an image lies on the globe: its outline in CRS84, as WKB, with its bounding box.

The edges of an image are straight in its own CRS and curves in longitude and
latitude, so they get as many points as it takes to keep within half a pixel. An
outline that crosses the antimeridian is cut there into two polygons, and one
around a pole is closed along it, so that planar software sees the right area.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.georef import Transform

__all__ = ["Box", "Footprint", "box_meets", "footprint", "parts"]

# West, south, east and north in degrees.
Box: TypeAlias = tuple[float, float, float, float]

# The outline as WKB, and the box around it.
Footprint: TypeAlias = tuple[bytes, Box]

Ring: TypeAlias = "NDArray[np.float64]"

# Points that the outline is computed at, a side. A power of two, so that it can be
# thinned by halves.
_SEGMENTS = 32

# Points a side of the grid that stands for an image whose outline leaves the CRS.
_GRID = 33

_POLYGON, _MULTIPOLYGON = 3, 6

# About a tenth of a millimetre: what is closer is the same place.
_NOTHING = 1e-9


@lru_cache(maxsize=64)
def _transformer(epsg: int) -> Any:
    from pyproj import Transformer

    return Transformer.from_crs(epsg, "OGC:CRS84", always_xy=True)


def footprint(epsg: int, transform: Transform, height: int, width: int) -> Footprint | None:
    """Return the outline of an image in CRS84.

    Parameters
    ----------
    epsg : int
    transform : tuple of 6 float
        Corner-based.
    height, width : int
        In pixels.

    Returns
    -------
    (bytes, (west, south, east, north)) or None
        A Polygon or MultiPolygon as WKB, and its box in degrees. Where a part of
        the outline is outside the area of use of the CRS, the box around the part
        of the image that is not. None where PROJ does not know the code, or no
        pixel has a longitude and latitude.
    """
    from pyproj.exceptions import ProjError

    try:
        transformer = _transformer(epsg)
    except ProjError:
        return None
    along = np.arange(_SEGMENTS) / _SEGMENTS
    nil, one = np.zeros(_SEGMENTS), np.ones(_SEGMENTS)
    # Down the left side, then right: anticlockwise of an image that is north up.
    cols = np.concatenate((nil, along, one, 1 - along)) * width
    rows = np.concatenate((along, one, 1 - along, nil)) * height
    ring = _to_degrees(transformer, transform, rows, cols)
    if not np.isfinite(ring).all():
        return _inner_box(transformer, transform, height, width)
    ring[:, 1] = np.clip(ring[:, 1], -90, 90)
    ring[:, 0] = np.unwrap(ring[:, 0], period=360)
    turn = ring[0, 0] - ring[-1, 0]
    if abs(turn) > 180:
        return _around_pole(ring, 1 if turn < 0 else -1)
    west, east = ring[:, 0].min(), ring[:, 0].max()
    if east - west > 360 - _NOTHING:
        return _of_box((-180.0, float(ring[:, 1].min()), 180.0, float(ring[:, 1].max())))
    return _cut(ring, _thin(ring, (height, width)))


def _to_degrees(
    transformer: Any, transform: Transform, rows: NDArray[Any], cols: NDArray[Any]
) -> Ring:
    """Return longitude and latitude of pixels, infinite where there is none."""
    a, b, c, d, e, f = transform
    place = np.stack((a * cols + b * rows + c, d * cols + e * rows + f))
    found = np.stack(transformer.transform(*place))
    if not transformer.source_crs.is_geographic:
        # Some projections find a place for points off their map: it leads elsewhere.
        back = np.stack(transformer.transform(*found, direction="INVERSE"))
        pixel = abs(a) + abs(b) + abs(d) + abs(e)
        found[:, ~(np.abs(back - place) <= pixel).all(axis=0)] = np.inf
    return found.T.copy()


def _thin(ring: Ring, sides: tuple[int, int]) -> Ring:
    """Return the outline with as few points a side as keep it within half a pixel."""
    closed = np.concatenate((ring, ring[:1]))
    edges = [closed[i * _SEGMENTS : (i + 1) * _SEGMENTS + 1] for i in range(4)]
    pixel = min(
        float(np.hypot(*(edge[-1] - edge[0]))) / sides[i % 2] for i, edge in enumerate(edges)
    )
    tolerance = max(pixel / 2, _NOTHING)
    return np.concatenate([_thin_edge(edge, tolerance)[:-1] for edge in edges])


def _thin_edge(edge: Ring, tolerance: float) -> Ring:
    step = _SEGMENTS
    while step > 1:
        ends = edge[::step]
        chords = np.repeat(np.diff(ends, axis=0), step, axis=0)
        offsets = edge[:-1] - np.repeat(ends[:-1], step, axis=0)
        cross = np.abs(chords[:, 0] * offsets[:, 1] - chords[:, 1] * offsets[:, 0])
        if (cross <= tolerance * np.maximum(np.hypot(*chords.T), _NOTHING)).all():
            break
        step //= 2
    return edge[::step]


def _cut(dense: Ring, thin: Ring) -> Footprint:
    """Return the outline in -180..180, cut at the antimeridian where it crosses it."""
    west, east = float(dense[:, 0].min()), float(dense[:, 0].max())
    first = int(np.floor((west + 180) / 360 + _NOTHING))
    last = max(first, int(np.ceil((east - 180) / 360 - _NOTHING)))
    south, north = float(dense[:, 1].min()), float(dense[:, 1].max())
    if first == last:
        moved = thin - (360.0 * first, 0)
        moved[:, 0] = np.clip(moved[:, 0], -180, 180)
        box = (max(-180.0, west - 360 * first), south, min(180.0, east - 360 * first), north)
        return _polygons([moved]), box
    pieces = []
    for turn in range(first, last + 1):
        piece = _clip(thin - (360.0 * turn, 0), -180, 1)
        piece = _clip(piece, 180, -1)
        if len(piece) > 2:
            pieces.append(piece)
    return _polygons(pieces), (-180.0, south, 180.0, north)


def _clip(ring: Ring, limit: float, sign: int) -> Ring:
    """Return the part of a ring on one side of a meridian (Sutherland and Hodgman)."""
    out: list[Any] = []
    for number in range(len(ring)):
        before, here = ring[number - 1], ring[number]
        inside = sign * (here[0] - limit) >= 0
        if inside != (sign * (before[0] - limit) >= 0):
            part = (limit - before[0]) / (here[0] - before[0])
            out.append((limit, before[1] + part * (here[1] - before[1])))
        if inside:
            out.append(tuple(here))
    return np.array(out).reshape(-1, 2)


def _around_pole(ring: Ring, direction: int) -> Footprint:
    """Return an outline that goes once around a pole, closed along it."""
    pole = 90.0 if float(ring[:, 1].mean()) > 0 else -90.0
    # Start where it crosses the antimeridian, so that no other meridian is a border.
    turns = np.floor((ring[:, 0] + 180) / 360)
    crossings = np.flatnonzero(np.diff(np.append(turns, turns[0] + direction)))
    after = (int(crossings[0]) + 1) % len(ring)
    ring = np.roll(ring, -after, axis=0)
    lon = np.unwrap(ring[:, 0], period=360)
    lon -= 360 * np.floor((lon[0] + 180) / 360)
    start, end = (-180.0, 180.0) if direction > 0 else (180.0, -180.0)
    gap = abs(lon[0] - start) + abs(end - lon[-1])
    part = abs(end - lon[-1]) / gap if gap else 0.5
    lat = float(ring[-1, 1] + part * (ring[0, 1] - ring[-1, 1]))
    lon = np.clip(lon, -180, 180)
    closed = np.concatenate(
        (
            [(start, pole), (start, lat)],
            np.stack((lon, ring[:, 1]), axis=1),
            [(end, lat), (end, pole)],
        )
    )
    south, north = sorted((pole, float(ring[:, 1].min() if pole > 0 else ring[:, 1].max())))
    return _polygons([closed]), (-180.0, south, 180.0, north)


def _inner_box(transformer: Any, transform: Transform, height: int, width: int) -> Footprint | None:
    side = np.linspace(0, 1, _GRID)
    rows, cols = (part.ravel() for part in np.meshgrid(side * height, side * width))
    points = _to_degrees(transformer, transform, rows, cols)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return None
    points = np.clip(points, (-180, -90), (180, 90))
    (west, south), (east, north) = points.min(axis=0), points.max(axis=0)
    return _of_box((float(west), float(south), float(east), float(north)))


def _of_box(box: Box) -> Footprint:
    west, south, east, north = box
    ring = np.array([(west, south), (east, south), (east, north), (west, north)])
    return _polygons([ring]), box


def _polygons(rings: list[Ring]) -> bytes:
    """Return WKB: the outer rings anticlockwise and closed, as RFC 7946 wants them."""
    found = []
    for ring in rings:
        x, y = ring.T
        area = float(x @ np.roll(y, -1) - y @ np.roll(x, -1))
        turned = ring if area >= 0 else ring[::-1]
        points = np.ascontiguousarray(np.concatenate((turned, turned[:1])), dtype="<f8")
        found.append(struct.pack("<BIII", 1, _POLYGON, 1, len(points)) + points.tobytes())
    if len(found) == 1:
        return found[0]
    return struct.pack("<BII", 1, _MULTIPOLYGON, len(found)) + b"".join(found)


def parts(wkb: bytes) -> list[Box]:
    """Return the boxes of the polygons of a footprint, one on each side of the antimeridian."""
    kind, count = struct.unpack_from("<II", wkb, 1)
    position, number = (9, count) if kind == _MULTIPOLYGON else (0, 1)
    found = []
    for _ in range(number):
        (points,) = struct.unpack_from("<I", wkb, position + 9)
        ring = np.frombuffer(wkb, "<f8", 2 * points, position + 13).reshape(-1, 2)
        (west, south), (east, north) = ring.min(axis=0), ring.max(axis=0)
        found.append((float(west), float(south), float(east), float(north)))
        position += 13 + 16 * points
    return found


def box_meets(boxes: Any, box: Box) -> Any:
    """Return which boxes meet another, touching included.

    Parameters
    ----------
    boxes : array_like, shape (4, ...)
        West, south, east and north.
    box : tuple of 4 float
        One whose west is larger than its east crosses the antimeridian.
    """
    west, south, east, north = box
    if west > east:
        return box_meets(boxes, (west, south, 180, north)) | box_meets(
            boxes, (-180, south, east, north)
        )
    found = np.asarray(boxes)
    return (found[0] <= east) & (found[2] >= west) & (found[1] <= north) & (found[3] >= south)
