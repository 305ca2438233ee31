"""The georeferencing tags: values in, exact bytes out, and back."""

import dataclasses
import math
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import rasterio.crs
import rasterio.windows
import tifffile
from affine import Affine
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pyproj import CRS
from rasterio.io import DatasetReader, MemoryFile
from rasterio.windows import Window

from rumi import georef, transforms
from rumi.errors import FormatError, UnsupportedError
from rumi.georef import Georeferencing, decode, encode, normalise_crs, normalise_transform

RasterioCRS = rasterio.crs.CRS
UTM = (30.0, 0.0, 500000.0, 0.0, -30.0, 4600000.0)
ROTATED = (
    *(30 * math.cos(math.pi / 6), -30 * math.sin(math.pi / 6) + 1e-9, 500000.0),
    *(-30 * math.sin(math.pi / 6) - 1e-9, -30 * math.cos(math.pi / 6), 4600000.0),
)
TRANSFORMS = [
    UTM,
    (1.0, 0.5, 100.0, 0.0, -1.0, 200.0),
    (10.0, 0.0, 1000.0, 0.0, 10.0, 4000.0),
    (-10.0, 0.0, 200.0, 0.0, -10.0, 50.0),
    ROTATED,
    (1 / 3600, 0.0, -180.0, 0.0, -1 / 3600, 90.0),
    (0.1, 0.0, 12.3, 0.0, -0.1, 45.6),
    (1.0, -0.0, -0.0, -0.0, -1.0, 5e-324),
]

# Spelled out by hand: little-endian doubles (30.0 is 403E000000000000) and shorts.
ZERO, ONE = bytes(8), bytes.fromhex("000000000000F03F")
P30, M30 = bytes.fromhex("0000000000003E40"), bytes.fromhex("0000000000003EC0")
X_CORNER, Y_CORNER = bytes.fromhex("0000000080841E41"), bytes.fromhex("00000000308C5141")
X_CENTRE, Y_CENTRE = bytes.fromhex("00000000BC841E41"), bytes.fromhex("000000402C8C5141")
LAST_ROWS = ZERO * 7 + ONE
UNDEFINED_MATRIX = ONE + ZERO * 4 + ONE + ZERO * 2 + LAST_ROWS
UTM_AREA_MATRIX = P30 + ZERO * 2 + X_CORNER + ZERO + M30 + ZERO + Y_CORNER + LAST_ROWS
UTM_POINT_MATRIX = P30 + ZERO * 2 + X_CENTRE + ZERO + M30 + ZERO + Y_CENTRE + LAST_ROWS
HEADER = bytes.fromhex("0100 0100 0000 0300")
PROJECTED = HEADER + bytes.fromhex("0004 0000 0100 0100")
GEOGRAPHIC = HEADER + bytes.fromhex("0004 0000 0100 0200")
NO_MODEL = HEADER + bytes.fromhex("0004 0000 0100 0000")
AREA, POINT = bytes.fromhex("0104 0000 0100 0100"), bytes.fromhex("0104 0000 0100 0200")
UTM_CODE = bytes.fromhex("000C 0000 0100 6A7F")
WGS84_CODE = bytes.fromhex("0008 0000 0100 E610")
NO_CODE = bytes.fromhex("0008 0000 0100 0000")
UTM_AREA_KEYS, UTM_POINT_KEYS = PROJECTED + AREA + UTM_CODE, PROJECTED + POINT + UTM_CODE
WGS84_KEYS = GEOGRAPHIC + AREA + WGS84_CODE
NO_AREA_KEYS, NO_POINT_KEYS = NO_MODEL + AREA + NO_CODE, NO_MODEL + POINT + NO_CODE


def bits(transform: Any) -> bytes:
    return struct.pack("<6d", *transform)


def position(transform: Any, column: float, row: float) -> tuple[float, float]:
    a, b, c, d, e, f = transform
    return a * column + b * row + c, d * column + e * row + f


def doubles(matrix: bytes) -> list[float]:
    return list(struct.unpack("<16d", matrix))


def trip(transform: Any, raster_type: Any = "area", epsg: int = 32618) -> Any:
    return decode(*encode(Georeferencing(epsg, transform, raster_type))).transform


@contextmanager
def geotiff(memory: MemoryFile, **profile: Any) -> Iterator[DatasetReader]:
    """Write a 4 x 4 GeoTIFF with GDAL and open it again."""
    point = profile.pop("point", False)
    profile = {"crs": "EPSG:32618", "transform": Affine(*UTM), **profile}
    with memory.open(driver="GTiff", width=4, height=4, count=1, dtype="uint8", **profile) as dst:
        dst.update_tags(AREA_OR_POINT="Point" if point else "Area")
        dst.write(np.zeros((1, 4, 4), np.uint8))
    with memory.open() as src:
        yield src


@contextmanager
def as_gdal_sees(matrix: bytes, keys: bytes, path: Any) -> Iterator[DatasetReader]:
    """Put the two tags into an ordinary TIFF, which GDAL can read."""
    tags = [(34264, 12, 16, matrix, True), (34735, 3, 16, keys, True)]
    tifffile.imwrite(path, np.zeros((4, 4), np.uint8), extratags=tags, metadata=None)
    with rasterio.open(path) as src:
        yield src


# --- exact bytes


@pytest.mark.parametrize(
    ("value", "matrix", "keys"),
    [
        (Georeferencing(32618, UTM), UTM_AREA_MATRIX, UTM_AREA_KEYS),
        (Georeferencing(32618, UTM, "point"), UTM_POINT_MATRIX, UTM_POINT_KEYS),
        (Georeferencing(4326, UTM), UTM_AREA_MATRIX, WGS84_KEYS),
        (Georeferencing(), UNDEFINED_MATRIX, NO_AREA_KEYS),
        (Georeferencing(None, None, "point"), UNDEFINED_MATRIX, NO_POINT_KEYS),
    ],
    ids=["projected-area", "projected-point", "geographic", "none-area", "none-point"],
)
def test_known_bytes(value: Georeferencing, matrix: bytes, keys: bytes) -> None:
    assert encode(value) == (matrix, keys)
    assert decode(matrix, keys) == value
    assert (len(matrix), len(keys)) == (128, 32)


def test_georeferencing_is_a_small_frozen_value() -> None:
    value = Georeferencing(32618, UTM)
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.epsg = 4326  # type: ignore[misc]
    assert not hasattr(value, "__dict__")
    assert hash(value) == hash(Georeferencing(32618, UTM, "area"))


# --- transforms (C17)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_area_keeps_every_bit_and_gdal_agrees(transform: Any, tmp_path: Any) -> None:
    matrix, keys = encode(Georeferencing(32618, transform))
    assert bits(decode(matrix, keys).transform) == bits(transform)
    with as_gdal_sees(matrix, keys, tmp_path / "a.tif") as src:
        assert tuple(src.transform)[:6] == transform
        assert src.crs.to_epsg() == 32618
        assert src.tags()["AREA_OR_POINT"] == "Area"


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_point_moves_half_a_pixel_once_and_gdal_agrees(transform: Any, tmp_path: Any) -> None:
    a, b, c, d, e, f = transform
    matrix, keys = encode(Georeferencing(32618, transform, "point"))
    stored = doubles(matrix)
    assert (stored[3], stored[7]) == (c + 0.5 * (a + b), f + 0.5 * (d + e))
    assert bits((stored[0], stored[1], 0, stored[4], stored[5], 0)) == bits((a, b, 0, d, e, 0))
    back = decode(matrix, keys)
    with as_gdal_sees(matrix, keys, tmp_path / "a.tif") as src:
        assert tuple(src.transform)[:6] == back.transform
        assert src.tags()["AREA_OR_POINT"] == "Point"
    if f != 5e-324:
        assert back.transform == transform


finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-1e300, 1e300)
metres = st.integers(-(10**8), 10**8).map(lambda n: n / 8)


def regular(transform: Any) -> bool:
    a, b, _, d, e, _ = map(Fraction, transform)
    return a * e != b * d


@given(st.tuples(*[finite] * 6).filter(regular))
def test_any_area_transform_keeps_its_bits(transform: Any) -> None:
    assert bits(trip(transform)) == bits(transform)


@given(st.tuples(*[metres] * 6).filter(regular))
def test_point_is_exact_on_binary_fractions(transform: Any) -> None:
    assert trip(transform, "point") == transform


@given(st.tuples(*[moderate] * 6).filter(regular))
@example((30.0, 0.0, 0.1, 0.0, -30.0, 7.9999))
@example((1 / 3600, 0.0, 8.0, 0.0, -1 / 3600, 7.9999))
def test_point_is_stable_from_the_second_trip(transform: Any) -> None:
    first = trip(transform, "point")
    assume(regular(first))
    assert bits(trip(first, "point")) == bits(first)
    once = encode(Georeferencing(32618, first, "point"))
    assert encode(decode(*once)) == once


@given(
    st.floats(-1e7, 1e7).filter(lambda x: abs(x) > 1e-5),
    st.floats(-1e4, 1e4).filter(lambda x: abs(x) > 1e-6),
)
def test_point_corner_moves_only_in_the_documented_cases(corner: float, size: float) -> None:
    centre = corner + 0.5 * size
    error = abs(Fraction(corner) + Fraction(size) / 2 - Fraction(centre))
    tie = error * 2 == Fraction(math.ulp(centre))
    larger = math.frexp(centre)[1] > math.frexp(corner)[1]
    power_of_two = abs(math.frexp(corner)[0]) == 0.5
    back = trip((size, 0.0, corner, 0.0, size, 0.0), "point")[2]
    if not (tie or larger or power_of_two):
        assert back == corner
    assert abs(Fraction(back) - Fraction(corner)) <= Fraction(
        math.ulp(max(abs(centre), abs(corner)))
    )


@pytest.mark.parametrize(
    "value",
    [
        Affine(*UTM),
        rasterio.Affine(*UTM),
        list(UTM),
        UTM,
        np.array(UTM),
        np.array(UTM, np.float32),
        [np.float64(v) for v in UTM],
        (30, 0, np.int32(500000), np.uint8(0), -30, Fraction(4600000)),
    ],
)
def test_transform_forms(value: Any) -> None:
    result = normalise_transform(value)
    assert result == UTM
    assert type(result) is tuple
    assert {type(v) for v in result} == {float}


def test_affine_rotation_is_taken_in_order() -> None:
    assert normalise_transform(Affine(1, 2, 3, 4, 5, 6)) == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert normalise_transform(Affine.from_gdal(3, 1, 2, 6, 4, 5)) == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)


@pytest.mark.parametrize(
    "value",
    [
        None,
        30.0,
        "123456",
        b"123456",
        bytearray(6),
        set(UTM),
        dict.fromkeys(range(6), 1.0),
        iter(UTM),
        (True, 0, 0, 0, 1, 0),
        (np.True_, 0, 0, 0, 1, 0),
        ("1", 0, 0, 0, 1, 0),
        (1, 0, 0, 0, None, 0),
        (1j, 0, 0, 0, 1, 0),
        np.ones((6, 2)),
    ],
)
def test_transform_of_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError, match=r"transform: expected .*, found"):
        normalise_transform(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((), "found 0"),
        (UTM[:5], "found 5"),
        ((*UTM, 0.0, 0.0, 1.0), "found 9"),
        (np.ones((2, 3)), "found 2"),
        ((math.nan, 0, 0, 0, 1, 0), "finite number for a, found nan"),
        ((1, 0, math.inf, 0, 1, 0), "finite number for c, found inf"),
        ((1, 0, 0, 0, 1, -(10**400)), "finite number for f"),
        ((0, 0, 0, 0, 0, 0), "other than 0"),
        ((1, 2, 0, 2, 4, 0), "other than 0"),
        ((30, 0, 5, 0, 0, 5), "other than 0"),
    ],
)
def test_transform_of_wrong_value(value: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        normalise_transform(value)


def test_singular_is_judged_exactly() -> None:
    tiny, huge = (1e-200, 0, 0, 0, 1e-200, 0), (1e300, 1, 0, 1, 1e300, 0)
    assert normalise_transform(tiny) == tiny
    assert normalise_transform(huge) == huge


# --- PixelIsPoint against GDAL (C16)


def test_point_geotiff_of_gdal_has_our_matrix() -> None:
    corner = (30.0, 0.0, 499985.0, 0.0, -30.0, 4600015.0)
    with MemoryFile() as memory, geotiff(memory, transform=Affine(*corner), point=True) as src:
        with tifffile.TiffFile(memory) as tif:
            tags = tif.pages[0].tags
            tiepoint, scale = tags[33922].value, tags[33550].value
        assert tiepoint == (0.0, 0.0, 0.0, 500000.0, 4600000.0, 0.0)
        transform = normalise_transform(src.transform)
    assert transform == corner
    matrix, keys = encode(Georeferencing(32618, transform, "point"))
    stored = doubles(matrix)
    assert (stored[3], stored[7]) == tiepoint[3:5]
    assert (stored[0], -stored[5]) == scale[:2]
    assert decode(matrix, keys) == Georeferencing(32618, corner, "point")


@pytest.mark.parametrize("point", [False, True])
def test_rotated_geotiff_of_gdal_has_our_matrix(point: bool) -> None:
    with MemoryFile() as memory, geotiff(memory, transform=Affine(*ROTATED), point=point) as src:
        with tifffile.TiffFile(memory) as tif:
            theirs = tif.pages[0].tags[34264].value
        transform = normalise_transform(src.transform)
    ours, _ = encode(Georeferencing(32618, transform, "point" if point else "area"))
    assert doubles(ours) == list(theirs)


@pytest.mark.parametrize(
    ("keys", "centre"),
    [(UTM_AREA_KEYS, (500015.0, 4599985.0)), (UTM_POINT_KEYS, (500000.0, 4600000.0))],
    ids=["area", "point"],
)
def test_centre_of_the_first_pixel(keys: bytes, centre: Any) -> None:
    transform = decode(UTM_AREA_MATRIX, keys).transform
    assert transform is not None
    assert position(transform, 0.5, 0.5) == centre
    window = transforms.window_transform(transform, row=1, col=3)
    assert position(window, -2.5, -0.5) == centre
    assert position(window, 0, 0) == position(transform, 3, 1)


# --- CRS: which codes (C18)


@pytest.mark.parametrize("epsg", [4326, 6318, 7844, 8252, 32618, 3857, 2193, 3785, 4120])
def test_kind_as_gdal_sees_it(epsg: int, tmp_path: Any) -> None:
    kind = georef.crs_kind(epsg)
    matrix, keys = encode(Georeferencing(epsg, UTM))
    shorts = struct.unpack("<16H", keys)
    expected = (1, 3072) if kind == "projected" else (2, 2048)
    assert (shorts[7], shorts[12]) == expected
    assert shorts[15] == epsg
    with as_gdal_sees(matrix, keys, tmp_path / "a.tif") as src:
        assert (src.crs.is_projected, src.crs.is_geographic) == (
            kind == "projected",
            kind == "geographic",
        )


@pytest.mark.parametrize(
    ("epsg", "text"),
    [
        (6349, r"Compound CRS.*horizontal part is EPSG:6318"),
        (5703, "Vertical CRS"),
        (4978, "Geocentric CRS"),
        (4979, r"Geographic 3D CRS.*horizontal part is EPSG:4326"),
        (9895, "Projected CRS of dimension 3|not defined by the EPSG registry"),
        (5800, "Engineering CRS|not defined by the EPSG registry"),
        (1024, "not defined by the EPSG registry"),
        (7030, "not defined by the EPSG registry"),
    ],
)
def test_refused_kinds(epsg: int, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text) as error:
        georef.crs_kind(epsg)
    assert "\n" not in str(error.value)
    with pytest.raises(UnsupportedError):
        encode(Georeferencing(epsg, UTM))


@pytest.mark.parametrize("epsg", [-1, 0, 1023, 32767, 54030, 99999])
def test_codes_out_of_range(epsg: int) -> None:
    for call in (georef.crs_kind, normalise_crs, lambda n: encode(Georeferencing(n, UTM))):
        with pytest.raises(ValueError, match=rf"expected 1024..32766, found {epsg}"):
            call(epsg)


def test_derived_and_bound_definitions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rotated = CRS("+proj=ob_tran +o_proj=longlat +o_lon_p=0 +o_lat_p=40 +lon_0=10 +type=crs")
    bound = CRS("+proj=utm +zone=18 +ellps=GRS80 +towgs84=1,2,3 +type=crs")
    for code, crs, text in (
        (29001, rotated, "Derived Geographic 2D CRS"),
        (29002, bound, "Bound CRS"),
    ):
        monkeypatch.setattr(CRS, "from_epsg", lambda _, crs=crs: crs)
        with pytest.raises(UnsupportedError, match=text):
            georef.crs_kind(code)


# --- CRS: which spellings (C18, C19)


@pytest.mark.parametrize(
    "value",
    [
        32618,
        np.int64(32618),
        np.uint16(32618),
        "EPSG:32618",
        "epsg:32618",
        CRS.from_epsg(32618),
        CRS.from_wkt(CRS.from_epsg(32618).to_wkt("WKT1_GDAL")),
        CRS.from_wkt(CRS.from_epsg(32618).to_wkt().replace(',ID["EPSG",32618]', "")),
        RasterioCRS.from_epsg(32618),
    ],
)
def test_crs_forms(value: Any) -> None:
    result = normalise_crs(value)
    assert result == 32618
    assert type(result) is int


def test_crs_none_and_deprecated() -> None:
    assert normalise_crs(None) is None
    assert [normalise_crs(v) for v in (3785, "EPSG:3785", CRS.from_epsg(3785))] == [3785] * 3


@pytest.mark.parametrize("epsg", [2193, 3067, 3139, 4326, 5514, 32618])
def test_crs_of_a_geotiff(epsg: int) -> None:
    # For 3067 the databases that pyproj and rasterio carry may define the code differently.
    with MemoryFile() as memory, geotiff(memory, crs=f"EPSG:{epsg}") as src:
        assert normalise_crs(src.crs) == epsg


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        np.True_,
        4326.0,
        np.float64(4326),
        b"EPSG:4326",
        (4326,),
        np.array(4326),
        object(),
    ],
)
def test_crs_of_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError, match=r"crs: expected .*, found"):
        normalise_crs(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "4326",
        " EPSG:4326",
        "EPSG:4326\n",
        "EPSG: 4326",
        "EPSG:04326",
        "EPSG:\u0664\u0663\u0662\u0666",
        "EPSG:4326+5773",
        "ESRI:54030",
        "OGC:CRS84",
        "urn:ogc:def:crs:EPSG::4326",
        "+proj=longlat +datum=WGS84",
        CRS.from_epsg(4326).to_wkt(),
    ],
)
def test_crs_strings_have_one_rule(value: str) -> None:
    with pytest.raises(UnsupportedError, match=r"expected an integer or 'EPSG:n'.*GeoTIFF"):
        normalise_crs(value)


SHIFTED = CRS.from_epsg(32618).to_wkt().replace("500000", "500001")
UTM_PROJ = "+proj=utm +zone=18 +datum=WGS84 +type=crs"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (CRS.from_string("ESRI:54030"), "ESRI:54030"),
        (RasterioCRS.from_string("ESRI:54030"), "ESRI:54030"),
        (CRS.from_string("OGC:CRS84"), "OGC:CRS84"),
        (CRS.from_string(UTM_PROJ), "no EPSG code has exactly this definition"),
        (RasterioCRS.from_string(UTM_PROJ), "no EPSG code has exactly this definition"),
        (CRS.from_wkt(SHIFTED), "defines EPSG:32618 otherwise"),
        (RasterioCRS.from_wkt(SHIFTED), "defines EPSG:32618 otherwise"),
        (CRS.from_string(UTM_PROJ + " +towgs84=1,2,3"), "Bound CRS"),
        (RasterioCRS.from_wkt('LOCAL_CS["plan",UNIT["metre",1]]'), "Engineering CRS"),
        (RasterioCRS(), "not one complete CRS"),
    ],
)
def test_crs_objects_that_are_not_exactly_epsg(value: Any, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text) as error:
        normalise_crs(value)
    assert "\n" not in str(error.value)


def test_crs_object_without_a_definition_is_not_believed() -> None:
    class Claim:
        def to_epsg(self) -> int:
            return 32618

    with pytest.raises(TypeError, match=r"a CRS object with to_wkt\(\), found Claim"):
        normalise_crs(Claim())


def test_crs_that_gdal_swapped_is_refused() -> None:
    swapped = RasterioCRS.from_epsg(3785)  # says 3785, is defined as 3857
    assert swapped.to_authority() == ("EPSG", "3785")
    with pytest.raises(UnsupportedError, match=r"calls itself EPSG:3785 but is .* EPSG:3857"):
        normalise_crs(swapped)


def test_crs_in_a_user_defined_geotiff_is_refused() -> None:
    lambert = "+proj=lcc +lat_1=40 +lat_2=50 +lat_0=45 +lon_0=3 +datum=WGS84 +type=crs"
    with (
        MemoryFile() as memory,
        geotiff(memory, crs=RasterioCRS.from_string(lambert)) as src,
        pytest.raises(UnsupportedError, match="no EPSG code has exactly this definition"),
    ):
        normalise_crs(src.crs)


def test_crs_object_of_a_refused_kind_is_named_later() -> None:
    assert normalise_crs(CRS.from_epsg(6349)) == 6349
    with pytest.raises(UnsupportedError, match="Compound CRS"):
        encode(Georeferencing(6349, UTM))


# --- encode: bad input


def test_encode_wants_both_or_neither() -> None:
    with pytest.raises(ValueError, match="found no transform"):
        encode(Georeferencing(32618, None))
    with pytest.raises(ValueError, match="found no crs"):
        encode(Georeferencing(None, UTM))
    with pytest.raises(ValueError, match="found no crs"):
        encode(Georeferencing(None, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)))


def test_encode_checks_everything() -> None:
    with pytest.raises(ValueError, match="expected 'area' or 'point', found 'Point'"):
        encode(Georeferencing(32618, UTM, "Point"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="other than 0"):
        encode(Georeferencing(32618, (0.0,) * 6))
    with pytest.raises(TypeError):
        encode(Georeferencing(True, UTM))
    big = sys.float_info.max
    with pytest.raises(ValueError, match="finite number for c"):
        encode(Georeferencing(32618, (big, 0.0, big, 0.0, 1.0, 0.0), "point"))


# --- decode: bad input


@pytest.mark.parametrize(
    ("position", "value", "text"),
    [
        (0, 2, r"element 0 \(KeyDirectoryVersion, byte 0\): expected 1, found 2"),
        (1, 0, r"element 1 \(KeyRevision, byte 2\): expected 1, found 0"),
        (2, 2, r"element 2 \(MinorRevision, byte 4\): expected 0..1, found 2"),
        (3, 4, r"element 3 \(NumberOfKeys, byte 6\): expected 3, found 4"),
        (4, 1025, r"element 4 \(KeyID of GTModelTypeGeoKey, byte 8\): expected 1024, found 1025"),
        (5, 34736, r"TIFFTagLocation of GTModelTypeGeoKey, byte 10\): expected 0, found 34736"),
        (6, 2, r"Count of GTModelTypeGeoKey, byte 12\): expected 1, found 2"),
        (7, 3, r"Value of GTModelTypeGeoKey, byte 14\): expected 0..2, found 3"),
        (7, 32767, r"Value of GTModelTypeGeoKey, byte 14\): expected 0..2, found 32767"),
        (7, 2, r"KeyID of CRS key, byte 24\): expected 2048 with GTModelTypeGeoKey 2, found 3072"),
        (7, 0, r"KeyID of CRS key, byte 24\): expected 2048 with GTModelTypeGeoKey 0, found 3072"),
        (8, 1026, r"KeyID of GTRasterTypeGeoKey, byte 16\): expected 1025, found 1026"),
        (11, 0, r"Value of GTRasterTypeGeoKey, byte 22\): expected 1..2, found 0"),
        (11, 3, r"Value of GTRasterTypeGeoKey, byte 22\): expected 1..2, found 3"),
        (12, 2048, r"expected 3072 with GTModelTypeGeoKey 1, found 2048"),
        (13, 1, r"TIFFTagLocation of CRS key, byte 26\): expected 0 .* found 1"),
        (14, 0, r"Count of CRS key, byte 28\): expected 1 .* found 0"),
        (15, 0, r"Value of CRS key, byte 30\): expected 1024..32766 .* found 0"),
        (15, 1023, "expected 1024..32766 .* found 1023"),
        (15, 32767, "expected 1024..32766 .* found 32767"),
    ],
)
def test_decode_refuses_keys(position: int, value: int, text: str) -> None:
    keys = bytearray(UTM_AREA_KEYS)
    struct.pack_into("<H", keys, 2 * position, value)
    with pytest.raises(
        FormatError, match=rf"^x\.rumi: GeoKeyDirectoryTag .*{text} \(Georeferencing, .*\)$"
    ):
        decode(UTM_AREA_MATRIX, bytes(keys), where="x.rumi")


@pytest.mark.parametrize("position", [2, 6, *range(8, 16)])
@pytest.mark.parametrize("value", [0.5, -1.0, math.nan, math.inf])
def test_decode_refuses_fixed_elements(position: int, value: float) -> None:
    matrix = bytearray(UTM_AREA_MATRIX)
    struct.pack_into("<d", matrix, 8 * position, value)
    place = (
        rf"element {position} \(row {position // 4}, column {position % 4}, byte {8 * position}\)"
    )
    expected = float(position == 15)
    text = rf"Tag {place}: expected {expected}, found {value} "
    with pytest.raises(FormatError, match=rf"{text}\(Georeferencing, ModelTransformationTag\)$"):
        decode(bytes(matrix), UTM_AREA_KEYS)


@pytest.mark.parametrize("position", [0, 1, 3, 4, 5, 7])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_decode_refuses_coefficients_that_are_not_finite(position: int, value: float) -> None:
    matrix = bytearray(UTM_AREA_MATRIX)
    struct.pack_into("<d", matrix, 8 * position, value)
    with pytest.raises(FormatError, match=rf"element {position} .*expected a finite number"):
        decode(bytes(matrix), UTM_AREA_KEYS)


def test_decode_refuses_a_corner_beyond_a_double() -> None:
    matrix = bytearray(UTM_POINT_MATRIX)
    struct.pack_into("<d", matrix, 0, -sys.float_info.max)
    struct.pack_into("<d", matrix, 24, sys.float_info.max)
    with pytest.raises(FormatError, match="beyond a double"):
        decode(bytes(matrix), UTM_POINT_KEYS)


@pytest.mark.parametrize("position", range(16))
def test_decode_without_crs_allows_one_matrix(position: int) -> None:
    matrix = bytearray(UNDEFINED_MATRIX)
    struct.pack_into("<d", matrix, 8 * position, 30.0)
    with pytest.raises(FormatError, match=rf"^a: no CRS, so .* element {position} .*found 30.0"):
        decode(bytes(matrix), NO_POINT_KEYS, where="a")


@pytest.mark.parametrize(("position", "value"), [(12, 3072), (15, 4326), (15, 1)])
def test_decode_without_crs_allows_one_key(position: int, value: int) -> None:
    keys = bytearray(NO_AREA_KEYS)
    struct.pack_into("<H", keys, 2 * position, value)
    with pytest.raises(FormatError, match=rf"with GTModelTypeGeoKey 0, found {value}"):
        decode(UNDEFINED_MATRIX, bytes(keys))


@pytest.mark.parametrize("cut", [0, 1, 127, 129])
def test_decode_refuses_other_sizes(cut: int) -> None:
    with pytest.raises(
        FormatError, match=f"ModelTransformationTag: expected 128 bytes, found {cut}"
    ):
        decode((UTM_AREA_MATRIX * 2)[:cut], UTM_AREA_KEYS)
    with pytest.raises(FormatError, match=f"GeoKeyDirectoryTag: expected 32 bytes, found {cut}"):
        decode(UTM_AREA_MATRIX, (UTM_AREA_KEYS * 5)[:cut])


def test_decode_takes_what_nothing_forbids() -> None:
    matrix = bytearray(UTM_AREA_MATRIX)
    struct.pack_into("<d", matrix, 64, -0.0)
    assert decode(bytes(matrix), UTM_AREA_KEYS).transform == UTM
    struct.pack_into("<d", matrix, 0, 0.0)
    assert decode(bytes(matrix), UTM_AREA_KEYS).transform == (0.0, *UTM[1:])
    unknown = UTM_AREA_KEYS[:-2] + struct.pack("<H", 1024)
    assert decode(UTM_AREA_MATRIX, unknown).epsg == 1024


@given(st.binary(min_size=128, max_size=128), st.binary(min_size=32, max_size=32))
def test_decode_of_noise_is_refused(matrix: bytes, keys: bytes) -> None:
    with pytest.raises(FormatError) as error:
        decode(matrix, keys)
    assert "\n" not in str(error.value)


@given(st.integers(0, 159), st.integers(0, 255))
def test_decode_of_a_changed_byte_is_exact_or_refused(position: int, value: int) -> None:
    changed = bytearray(UTM_POINT_MATRIX + UTM_POINT_KEYS)
    changed[position] = value
    try:
        result = decode(bytes(changed[:128]), bytes(changed[128:]))
    except FormatError:
        return
    transform = result.transform
    assert transform is not None
    assert result.raster_type in ("area", "point")
    assert all(map(math.isfinite, transform))


def test_decode_does_not_need_pyproj(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyproj", None)
    assert decode(UTM_POINT_MATRIX, UTM_POINT_KEYS).epsg == 32618
    assert encode(Georeferencing()) == (UNDEFINED_MATRIX, NO_AREA_KEYS)
    assert normalise_crs("EPSG:32618") == 32618
    georef.crs_kind.cache_clear()
    with pytest.raises(ImportError):
        georef.crs_kind(26918)


# --- helpers


# rasterio 1.4 still multiplies with *, which affine 3 announces to deprecate.
@pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_window_transform_as_rasterio_has_it(transform: Any) -> None:
    theirs = rasterio.windows.transform(Window(3, 2, 5, 5), Affine(*transform))
    assert transforms.window_transform(transform, row=2, col=3) == tuple(theirs)[:6]
    assert transforms.window_transform(transform, 0, 0) == transform


def test_bounds_are_ordered() -> None:
    assert transforms.bounds(UTM, 10, 20) == (500000.0, 4599700.0, 500600.0, 4600000.0)
    south_up = (10.0, 0.0, 1000.0, 0.0, 10.0, 4000.0)
    assert transforms.bounds(south_up, 12, 12) == (1000.0, 4000.0, 1120.0, 4120.0)
    mirrored = (-10.0, 0.0, 200.0, 0.0, -10.0, 50.0)
    assert transforms.bounds(mirrored, 2, 3) == (170.0, 30.0, 200.0, 50.0)
    assert transforms.bounds((1.0, 0.5, 100.0, 0.0, -1.0, 200.0), 2, 4) == (
        100.0,
        198.0,
        105.0,
        200.0,
    )


def test_minor_revision_of_geotiff_1_1_is_read() -> None:
    keys = bytearray(UTM_AREA_KEYS)
    struct.pack_into("<H", keys, 4, 1)
    assert decode(UTM_AREA_MATRIX, bytes(keys)) == decode(UTM_AREA_MATRIX, UTM_AREA_KEYS)
