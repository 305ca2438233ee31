"""Whether two catalogs lie on the same grids, row for row: images and their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rumi.catalog.catalog import Catalog

__all__ = ["check_aligned"]

_PLACE = ("epsg", "transform")


def check_aligned(images: Catalog, labels: Catalog) -> None:
    """Refuse labels whose rows are not, in order, on the grids of the images.

    Raises
    ------
    ValueError
        If the number of rows differs, or the height, width, EPSG code or transform
        of a row; the row, both files and the property are named. Bands, sample
        types and tiles may differ, and so may the place where only one catalog
        records it.
    """
    if len(images) != len(labels):
        raise ValueError(
            f"labels: expected {len(images)} rows as in {images.name}, found {len(labels)} in "
            f"{labels.name}"
        )
    mine, theirs = (catalog.headers.shapes[:, 1:] for catalog in (images, labels))
    wrong = np.flatnonzero((mine != theirs).any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        raise _misaligned(images, labels, row, "height and width", mine[row], theirs[row])
    names = [name for name in _PLACE if name in images.columns and name in labels.columns]
    left, right = images.to_arrow(names), labels.to_arrow(names)
    for name in names:
        if left.column(name).equals(right.column(name)):
            continue
        pairs = zip(left.column(name).to_pylist(), right.column(name).to_pylist(), strict=True)
        for row, (expected, found) in enumerate(pairs):
            if expected != found:
                raise _misaligned(images, labels, row, name, expected, found)


def _misaligned(
    images: Catalog, labels: Catalog, row: int, name: str, expected: Any, found: Any
) -> ValueError:
    return ValueError(
        f"labels: row {row} ({labels.paths([row])[0]}) is not aligned with "
        f"{images.paths([row])[0]}: {name}: expected {expected}, found {found}"
    )
