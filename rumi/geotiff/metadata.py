"""What a GeoTIFF says about its samples, beside it and around it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi.geotiff import gdal
from rumi.geotiff.losses import Loss
from rumi.geotiff.nodata import nodata_value
from rumi.geotiff.tags import (
    COLOR_MAP,
    GDAL_NODATA,
    ORIENTATION,
    PHOTOMETRIC,
    SUB_IFDS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rumi.geotiff.samples import Samples
    from rumi.geotiff.tags import TiffTags

__all__ = ["Metadata", "find"]

_MIN_IS_BLACK, _RGB, _PALETTE, _YCBCR = 1, 2, 3, 6
_PHOTOMETRIC = {
    0: "MinIsWhite (0 is white)",
    4: "TransparencyMask",
    5: "CMYK",
    8: "CIELab",
    9: "ICCLab",
    10: "ITULab",
    32803: "a colour filter array",
    32844: "LogL",
    32845: "LogLuv",
    34892: "LinearRaw",
}
_ORIENTATIONS = {
    2: "mirrored left to right",
    3: "turned by 180 degrees",
    4: "bottom row first",
    5: "transposed",
    6: "turned by 90 degrees",
    7: "transposed and turned",
    8: "turned by 270 degrees",
}

# Metadata about the making of the file, or carried, or derived from the pixels.
_IGNORED_KEYS = frozenset(
    (
        "AREA_OR_POINT",
        "OVERVIEW_RESAMPLING",
        "OVR_RESAMPLING_ALG",
        "TIFFTAG_HOSTCOMPUTER",
        "TIFFTAG_MAXSAMPLEVALUE",
        "TIFFTAG_MINSAMPLEVALUE",
        "TIFFTAG_RESOLUTIONUNIT",
        "TIFFTAG_SOFTWARE",
        "TIFFTAG_XRESOLUTION",
        "TIFFTAG_YRESOLUTION",
    )
)
_IGNORED_PREFIX = "STATISTICS_"
_IGNORED_DOMAINS = frozenset(
    ("", "IMAGE_STRUCTURE", "DERIVED_SUBDATASETS", "SUBDATASETS", "RPC", "rio_creation_kwds")
)

# Tags that say how the pixels are stored, and those that GDAL shows as metadata.
_KNOWN_TAGS = frozenset(
    (
        *(*range(254, 260), *range(262, 267), 269, 270, 273, 274, *range(277, 285), 292, 293),
        *(296, 297, 301, 305, 306, *range(315, 321), *range(322, 326), 330, 332, 334),
        *(338, 339, 340, 341, 342, 347, *range(512, 522), *range(529, 533), 559, 700),
        *(33432, 33550, 33922, 34264, 34675, 34735, 34736, 34737, 42112, 42113, 50674, 50844),
    )
)

_TEXT_TAGS = {
    269: "TIFFTAG_DOCUMENTNAME",
    270: "TIFFTAG_IMAGEDESCRIPTION",
    306: "TIFFTAG_DATETIME",
    315: "TIFFTAG_ARTIST",
    33432: "TIFFTAG_COPYRIGHT",
}

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a rumi file does not hold.

    Attributes
    ----------
    nodata : str or None
    band_names : tuple of (str or None)
    losses, warnings, notes
        As of `Inspection`.
    """

    nodata: str | None
    band_names: tuple[str | None, ...]
    losses: tuple[Loss, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def find(dataset: Any, tags: TiffTags, stored: Samples) -> Metadata:
    """Collect it from an open dataset and its tags."""
    nodata, losses, warnings = _nodata(dataset, tags, stored.dtype)
    losses += _masks(dataset)
    losses += _bands(dataset)
    losses += _colours(dataset, tags, stored)
    losses += _further_images(dataset, tags)
    losses += _categories(dataset)
    kept, ignored = _texts(dataset, tags)
    kept += [f"tag {tag}" for tag in sorted(tags.first.tags - _KNOWN_TAGS)]
    if kept:
        losses.append(Loss("tags", _some(kept)))
    return Metadata(
        nodata,
        tuple(dataset.descriptions),
        tuple(losses),
        tuple(warnings),
        tuple(_notes(dataset, ignored)),
    )


def _some(items: Iterable[str]) -> str:
    """List a few items and count the rest."""
    listed = list(items)
    rest = len(listed) - _SHOWN
    return ", ".join(listed[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _nodata(
    dataset: Any, tags: TiffTags, dtype: np.dtype[Any]
) -> tuple[str | None, list[Loss], list[str]]:
    """Return nodata as text; it is a loss only if some sample can be equal to it."""
    text = tags.first.text(GDAL_NODATA)
    if text is None:
        # Stated beside the file, by band.
        values = [None if value is None else _number(value) for value in dataset.nodatavals]
        if len(set(values)) > 1:
            return None, [Loss("nodata", f"{_some(map(str, values))}, by band")], []
        text = values[0]
    if text is None:
        return None, [], []
    if nodata_value(text, dtype) is None:
        warning = f"nodata {text} is no {dtype} sample, so it marks none"
        return text, [], [warning]
    return text, [Loss("nodata", text)], []


def _number(value: float) -> str:
    return str(int(value)) if value == value and float(value).is_integer() else repr(float(value))


def _masks(dataset: Any) -> list[Loss]:
    losses = []
    names = [{flag.name for flag in flags} for flags in dataset.mask_flag_enums]
    if any("per_dataset" in flags and "alpha" not in flags for flags in names):
        losses.append(Loss("mask", "a mask of valid pixels"))
    alpha = [str(band) for band, kind in enumerate(dataset.colorinterp) if kind.name == "alpha"]
    if alpha:
        losses.append(Loss("alpha", f"that band {_some(alpha)} is alpha (the band is carried)"))
    return losses


def _bands(dataset: Any) -> list[Loss]:
    losses = []
    names = [name for name in dataset.descriptions if name]
    if names:
        losses.append(Loss("band_names", _some(names)))
    units = [unit for unit in dataset.units if unit]
    if units:
        losses.append(Loss("units", _some(dict.fromkeys(units))))
    pairs = list(zip(dataset.scales, dataset.offsets, strict=True))
    if any(pair != (1.0, 0.0) for pair in pairs):
        shown = (f"{scale!r} x sample + {offset!r}" for scale, offset in dict.fromkeys(pairs))
        losses.append(Loss("scale_offset", _some(shown)))
    return losses


def _colours(dataset: Any, tags: TiffTags, stored: Samples) -> list[Loss]:
    losses = []
    (photometric,) = tags.first.values(PHOTOMETRIC, (_MIN_IS_BLACK,))[:1]
    palette = _palette(dataset, tags)
    if palette:
        losses.append(Loss("colour_table", f"a palette of {palette} colours"))
    if photometric not in (_MIN_IS_BLACK, _RGB, _PALETTE, _YCBCR):
        shown = _PHOTOMETRIC.get(photometric, f"PhotometricInterpretation {photometric}")
        losses.append(Loss("photometric", f"{shown}; the samples are carried as stored"))
    (orientation,) = tags.first.values(ORIENTATION, (1,))[:1]
    if orientation != 1:
        shown = _ORIENTATIONS.get(orientation, "of no meaning")
        losses.append(
            Loss("orientation", f"{orientation} ({shown}); rows and columns stay as stored")
        )
    if stored.widened:
        wide = stored.encoding.dtype_name
        losses.append(
            Loss("depth", f"{stored.stored_bits} bits a sample, which would become {wide}")
        )
    return losses


def _palette(dataset: Any, tags: TiffTags) -> int:
    """Return the number of colours; GDAL makes up a palette for one bit."""
    if stated := tags.first.count(COLOR_MAP):
        return stated // 3
    if not gdal.mentioned_beside(dataset, b"<ColorTable"):
        return 0
    try:
        return len(dataset.colormap(1))
    except ValueError:
        return 0


def _further_images(dataset: Any, tags: TiffTags) -> list[Loss]:
    losses = []
    if factors := [f"1:{factor}" for factor in dataset.overviews(1)]:
        losses.append(Loss("overviews", f"reduced copies {_some(factors)}"))
    pages = []
    if tags.pages:
        pages.append(f"{tags.pages} further images")
    if nested := tags.first.count(SUB_IFDS):
        pages.append(f"{nested} sub-images")
    if pages:
        losses.append(Loss("pages", f"{' and '.join(pages)}; only the first is carried"))
    return losses


def _categories(dataset: Any) -> list[Loss]:
    """Find the tables of classes beside the file, which rasterio does not show."""
    file = gdal.mentioned_beside(dataset, b"<CategoryNames", b"<GDALRasterAttributeTable")
    return [Loss("categories", f"a table of classes in {os.path.basename(file)}")] if file else []


def _texts(dataset: Any, tags: TiffTags) -> tuple[list[str], list[str]]:
    """Return the names of metadata that count as a loss, and of those that do not."""
    # rasterio leaves out a text that is not UTF-8.
    shown = dataset.tags()
    kept = {
        name: None
        for tag, name in _TEXT_TAGS.items()
        if tags.first.count(tag) > 1 and name not in shown
    }
    ignored: dict[str, None] = {}
    for band in (0, *dataset.indexes):
        for key, value in dataset.tags(band).items():
            if not str(value).strip():
                continue
            harmless = key in _IGNORED_KEYS or key.startswith(_IGNORED_PREFIX)
            (ignored if harmless else kept)[key] = None
        kept.update(
            (f"domain {domain}", None)
            for domain in dataset.tag_namespaces(band)
            if domain not in _IGNORED_DOMAINS
        )
    ignored.pop("AREA_OR_POINT", None)
    return list(kept), list(ignored)


def _notes(dataset: Any, ignored: list[str]) -> list[str]:
    notes = []
    if ignored:
        notes.append(f"left out, since they tell of the file only: {', '.join(ignored)}")
    structure = dataset.tags(ns="IMAGE_STRUCTURE")
    if structure.get("COMPRESSION") == "YCbCr JPEG":
        notes.append("JPEG stored as YCbCr; the decoded RGB samples are carried")
    elif structure.get("COMPRESSION_REVERSIBILITY", "").startswith("LOSSY"):
        notes.append("compressed with loss; the decoded samples are carried")
    beside = [os.path.basename(str(file)) for file in list(dataset.files)[1:]]
    if beside:
        notes.append(f"read with the file: {_some(beside)}")
    return notes
