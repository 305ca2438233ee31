"""Clauses about the two georeferencing tags; they stand in the file's registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rumi import georef
from rumi._generated import constants as k
from rumi.errors import UnsupportedError
from rumi.validation.clauses import Registry
from rumi.validation.report import Broken, NotChecked

if TYPE_CHECKING:
    from rumi.validation.facts import FileFacts

__all__ = ["GEOREFERENCING", "OTHER_GEO"]

GEOREFERENCING = Registry("file")

_GEO = "Georeferencing"

OTHER_GEO = {
    33550: "ModelPixelScaleTag",
    33922: "ModelTiepointTag",
    34736: "GeoDoubleParamsTag",
    34737: "GeoAsciiParamsTag",
}


@GEOREFERENCING.clause("georef-tags", _GEO, "no other GeoTIFF georeferencing tag appears")
def _georef_tags(facts: FileFacts) -> None:
    for entry in facts.entries:
        if entry.tag in OTHER_GEO:
            raise Broken(
                "no such tag", f"{OTHER_GEO[entry.tag]} ({entry.tag})", offset=entry.position
            )


@GEOREFERENCING.clause(
    "matrix", f"{_GEO}, ModelTransformationTag", "the matrix has its fixed elements"
)
def _matrix(facts: FileFacts) -> None:
    fixed = dict(k.MODEL_TRANSFORMATION_FIXED)
    for element, found in enumerate(_elements(facts)):
        expected = fixed.get(element)
        if not np.isfinite(found) or expected not in (None, found):
            raise Broken(
                f"element {element} to be {'finite' if expected is None else expected}",
                found,
                offset=facts.value_offset(k.TAG_MODEL_TRANSFORMATION) + 8 * element,
            )


def _elements(facts: FileFacts) -> list[float]:
    values: list[float] = facts.array(k.TAG_MODEL_TRANSFORMATION).tolist()
    if len(values) != 16:
        raise NotChecked("the matrix has not 16 elements")
    return values


def _keys(facts: FileFacts) -> list[int]:
    values: list[int] = facts.integers(k.TAG_GEO_KEY_DIRECTORY).tolist()
    if len(values) != 16:
        raise NotChecked("the directory has not 16 shorts")
    return values


def _key_offset(facts: FileFacts, element: int) -> int:
    return facts.value_offset(k.TAG_GEO_KEY_DIRECTORY) + 2 * element


@GEOREFERENCING.clause(
    "keys", f"{_GEO}, GeoKeyDirectoryTag", "a four-short header and the three keys listed"
)
def _key_directory(facts: FileFacts) -> None:
    keys = _keys(facts)
    allowed = {0: (1,), 1: (1,), 2: (0, 1), 3: (3,)}
    allowed |= {4: (k.GEO_KEY_GT_MODEL_TYPE,), 5: (0,), 6: (1,)}
    allowed |= {8: (k.GEO_KEY_GT_RASTER_TYPE,), 9: (0,), 10: (1,)}
    allowed |= {12: (k.GEO_KEY_GEOGRAPHIC_TYPE, k.GEO_KEY_PROJECTED_CS_TYPE), 13: (0,), 14: (1,)}
    for element, values in allowed.items():
        if keys[element] not in values:
            raise Broken(
                f"element {element} to be {' or '.join(map(str, values))}",
                keys[element],
                offset=_key_offset(facts, element),
            )


@GEOREFERENCING.clause(
    "model-type", f"{_GEO}, GeoKeyDirectoryTag", "GTModelTypeGeoKey is 0, 1 or 2"
)
def _model_type(facts: FileFacts) -> None:
    if _keys(facts)[7] not in (0, 1, 2):
        raise Broken("0, 1 or 2", _keys(facts)[7], offset=_key_offset(facts, 7))


@GEOREFERENCING.clause("raster-type", f"{_GEO}, GeoKeyDirectoryTag", "GTRasterTypeGeoKey is 1 or 2")
def _raster_type(facts: FileFacts) -> None:
    if _keys(facts)[11] not in (1, 2):
        raise Broken("1 or 2", _keys(facts)[11], offset=_key_offset(facts, 11))


@GEOREFERENCING.clause(
    "crs-key", f"{_GEO}, GeoKeyDirectoryTag", "the key of the code agrees with GTModelTypeGeoKey"
)
def _crs_key(facts: FileFacts) -> None:
    keys = _keys(facts)
    projected = keys[7] == k.MODEL_TYPE_PROJECTED
    expected = k.GEO_KEY_PROJECTED_CS_TYPE if projected else k.GEO_KEY_GEOGRAPHIC_TYPE
    # Another key altogether, or another model type, is the matter of other clauses.
    if keys[7] in (0, 1, 2) and keys[12] in (2048, 3072) and keys[12] != expected:
        raise Broken(expected, keys[12], offset=_key_offset(facts, 12))


@GEOREFERENCING.clause(
    "epsg-range", f"{_GEO}, GeoKeyDirectoryTag", "the EPSG code is 1024 to 32766"
)
def _epsg_range(facts: FileFacts) -> None:
    keys = _keys(facts)
    if keys[7] == k.MODEL_TYPE_UNDEFINED:
        raise NotChecked("the file has no CRS")
    if not k.MIN_EPSG <= keys[15] <= k.MAX_EPSG:
        raise Broken(f"{k.MIN_EPSG} to {k.MAX_EPSG}", keys[15], offset=_key_offset(facts, 15))


@GEOREFERENCING.clause(
    "epsg-registry", f"{_GEO}, GeoKeyDirectoryTag", "the EPSG registry defines the code"
)
def _epsg_registry(facts: FileFacts) -> None:
    _registered_kind(facts)


def _registered_kind(facts: FileFacts) -> str:
    """Return what the registry says of the code."""
    keys = _keys(facts)
    code, model = keys[15], keys[7]
    if model not in (1, 2) or not k.MIN_EPSG <= code <= k.MAX_EPSG:
        raise NotChecked("the file has no CRS that a registry could know")
    try:
        return georef.crs_kind(code)
    except UnsupportedError as error:
        raise Broken(
            "a projected or geographic CRS of EPSG",
            code,
            offset=_key_offset(facts, 15),
            reason=str(error),
        ) from error


@GEOREFERENCING.clause(
    "epsg-kind", "Which codes are geographic", "the model type is the one of the registry"
)
def _epsg_kind(facts: FileFacts) -> None:
    try:
        kind = _registered_kind(facts)
    except Broken as broken:
        raise NotChecked("the registry does not define the code") from broken
    keys = _keys(facts)
    code, model = keys[15], keys[7]
    # Where the key contradicts the model type, another clause says so.
    stored = "projected" if model == k.MODEL_TYPE_PROJECTED else "geographic"
    agrees = keys[12] == (3072 if stored == "projected" else 2048)
    if agrees and kind != stored:
        raise Broken(f"a {kind} CRS for EPSG:{code}", stored, offset=_key_offset(facts, 7))


@GEOREFERENCING.clause(
    "undefined", f"{_GEO}, Undefined georeferencing", "without CRS: code 0, fixed matrix"
)
def _undefined(facts: FileFacts) -> None:
    keys = _keys(facts)
    if keys[7] != k.MODEL_TYPE_UNDEFINED:
        raise NotChecked("the file has a CRS")
    if keys[15] != 0:
        raise Broken("code 0", keys[15], offset=_key_offset(facts, 15))
    values = _elements(facts)
    fixed = dict(k.MODEL_TRANSFORMATION_FIXED)
    for element, expected in enumerate(k.UNDEFINED_TRANSFORMATION):
        if element not in fixed and values[element] != expected:
            raise Broken(
                f"element {element} to be {expected}",
                values[element],
                offset=facts.value_offset(k.TAG_MODEL_TRANSFORMATION) + 8 * element,
            )
