"""What a GeoTIFF says that a rumi file cannot: the list of possible losses.

=============  ===================================================================
name           what is not carried
=============  ===================================================================
nodata         the value that stands for no data
mask           a validity mask, inside the file or beside it
alpha          that a band is an alpha channel (the band itself is carried)
band_names     descriptions of bands
units          units of the samples
scale_offset   scale and offset of the samples
colour_table   a palette (its indices are carried)
categories     names of classes, attribute tables
photometric    that the samples are no plain intensities: MinIsWhite, CMYK, ...
orientation    that rows and columns are stored in another order than shown
depth          a bit depth that no encoding has, stored in the next wider one
overviews      reduced copies
gcps           ground control points
rpcs           rational polynomial coefficients
transform      a transform without a CRS, or one that cannot be inverted
epoch          a coordinate epoch
pages          further images in the same file
tags           other metadata: ImageDescription, DateTime, GDAL and private tags
crs            a CRS that is no EPSG code of a projected or geographic 2-D CRS
=============  ===================================================================

Whoever converts names the losses to accept, or "all" of them; "crs" is accepted
by an argument of its own and never by "all".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rumi.errors import UnsupportedError

__all__ = ["LOSS_NAMES", "Loss", "accept", "parse_drop"]

LOSS_NAMES = (
    "nodata",
    "mask",
    "alpha",
    "band_names",
    "units",
    "scale_offset",
    "colour_table",
    "categories",
    "photometric",
    "orientation",
    "depth",
    "overviews",
    "gcps",
    "rpcs",
    "transform",
    "epoch",
    "pages",
    "tags",
)


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a GeoTIFF says and a rumi file cannot.

    Attributes
    ----------
    name : str
        One of the names above.
    detail : str
        What it is in this file.
    dropped : bool
        Whether the conversion went on without it.
    """

    name: str
    detail: str
    dropped: bool = False


def parse_drop(drop: str | Iterable[str]) -> frozenset[str]:
    """Return the names of the losses that the caller accepts.

    Parameters
    ----------
    drop : str or iterable of str
        Names, one string of names with commas between, or "all".

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If a name is unknown, or "crs", which has an argument of its own.
    """
    if isinstance(drop, str):
        drop = drop.split(",")
    names: set[str] = set()
    for item in drop:
        if not isinstance(item, str):
            raise TypeError(f"drop: expected names, found {type(item).__name__}")
        name = item.strip().lower().replace("-", "_")
        if name == "all":
            names.update(LOSS_NAMES)
        elif name == "crs":
            raise ValueError(
                "drop: 'crs' is accepted by allow_no_crs=True only; crs= states another one"
            )
        elif name in LOSS_NAMES:
            names.add(name)
        elif name:
            raise ValueError(f"drop: no loss is called {item!r}; known are {', '.join(LOSS_NAMES)}")
    return frozenset(names)


def accept(
    losses: Sequence[Loss], drop: frozenset[str], *, allow_no_crs: bool, name: str
) -> tuple[Loss, ...]:
    """Return the losses marked as dropped, if the caller accepts every one.

    Raises
    ------
    UnsupportedError
        If not; names each of them, and the ways out.
    """
    accepted = drop | ({"crs"} if allow_no_crs else set())
    refused = [loss for loss in losses if loss.name not in accepted]
    if not refused:
        return tuple(replace(loss, dropped=True) for loss in losses)
    ways = []
    names = list(dict.fromkeys(loss.name for loss in refused if loss.name != "crs"))
    if names:
        ways.append(f"drop={names} (--drop {','.join(names)}) converts without")
    if any(loss.name == "crs" for loss in refused):
        ways.append(
            "crs=CODE (--crs CODE) states the EPSG code you know to be right, "
            "allow_no_crs=True (--allow-no-crs) writes no georeferencing at all"
        )
    raise UnsupportedError(
        f"{name}: rumi cannot carry "
        + "; ".join(f"{loss.name}: {loss.detail}" for loss in refused)
        + ". "
        + "; ".join(ways)
    )
