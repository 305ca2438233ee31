"""Arithmetic of the six corner-based coefficients: bounds, windows, pixels of coordinates.

``x = a * column + b * row + c`` and ``y = d * column + e * row + f``, with (0, 0)
the outer corner of the first pixel.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rumi.georef import Transform

__all__ = ["bounds", "pixel_of", "window_transform"]


def bounds(transform: Transform, height: int, width: int) -> tuple[float, float, float, float]:
    """Return ``(left, bottom, right, top)``, ordered for south-up and rotated images too."""
    a, b, c, d, e, f = transform
    corners = ((0, 0), (0, height), (width, 0), (width, height))
    xs = [a * column + b * row + c for column, row in corners]
    ys = [d * column + e * row + f for column, row in corners]
    return min(xs), min(ys), max(xs), max(ys)


def window_transform(transform: Transform, row: int, col: int) -> Transform:
    """Return the transform of the part of an image that begins at pixel (row, col)."""
    a, b, c, d, e, f = transform
    return a, b, a * col + b * row + c, d, e, d * col + e * row + f


def pixel_of(transform: Transform, x: float, y: float) -> tuple[int, int]:
    """Return the row and column of the pixel that holds a coordinate, inside the image or not."""
    a, b, c, d, e, f = transform
    determinant = a * e - b * d
    column = (e * (x - c) - b * (y - f)) / determinant
    row = (a * (y - f) - d * (x - c)) / determinant
    return math.floor(row), math.floor(column)
