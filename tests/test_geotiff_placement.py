"""Where a GeoTIFF lies survives bit for bit, or is refused with the reason."""

import math

import numpy as np
import pytest
import rasterio
from rasterio import Affine
from tiffs import ASCII, DOUBLE, SHORT, gdal_open, geo, tiff, utm

import rumi
from rumi import geotiff
from rumi.errors import UnsupportedError

UTM = (30.0, 0.0, 500000.0, 0.0, -30.0, 4600000.0)
TURNED = (
    *(30 * math.cos(math.pi / 6), -30 * math.sin(math.pi / 6) + 1e-9, 500000.1),
    *(-30 * math.sin(math.pi / 6) - 1e-9, -30 * math.cos(math.pi / 6), 4600000.3),
)
RAMP = np.arange(144, dtype=np.uint8).reshape(1, 12, 12)


def write(path, **options):
    profile = {"width": 12, "height": 12, "count": 1, "dtype": "uint8", "crs": "EPSG:32618"}
    with rasterio.open(path, "w", driver="GTiff", **(profile | options)) as dataset:
        dataset.write(RAMP)
    return path


def centre(transform):
    a, b, c, d, e, f = tuple(transform)[:6]
    return (a * 0.5 + b * 0.5 + c, d * 0.5 + e * 0.5 + f)


@pytest.mark.parametrize(
    "transform",
    [
        (1.0, 0.5, 100.0, 0.0, -1.0, 200.0),
        (10.0, 0.0, 1000.0, 0.0, 10.0, 4000.0),
        (-10.0, 0.0, 200.0, 0.0, -10.0, 50.0),
        (0.1, 0.0, 12.3, 0.0, -0.7, 45.6),
        TURNED,
        UTM,
    ],
)
def test_c17_transforms_survive_bit_for_bit(tmp_path, transform):
    src, dst = tmp_path / "a.tif", tmp_path / "a.rumi"
    write(src, transform=Affine(*transform))
    geotiff.convert(src, dst)
    image = rumi.open(dst)
    assert image.transform == transform
    assert np.array_equal(image.read(), RAMP)
    for driver in ("COG", "GTiff"):
        geotiff.export(dst, tmp_path / "b.tif", driver=driver)
        with rasterio.open(tmp_path / "b.tif") as dataset:
            assert tuple(dataset.transform)[:6] == transform
            assert dataset.crs.to_epsg() == 32618
            assert np.array_equal(dataset.read(), RAMP)


@pytest.mark.parametrize(("raster_type", "x", "y"), [(1, 500015, 4599985), (2, 500000, 4600000)])
def test_c16_pixel_is_point_keeps_the_centres(tmp_path, raster_type, x, y):
    src = tiff(tmp_path / "a.tif", bytes(range(16)), 4, 4, extra=geo(utm(raster_type)))
    dst = tmp_path / "a.rumi"
    geotiff.convert(src, dst)
    image = rumi.open(dst)
    assert image.raster_type == ("area", "point")[raster_type - 1]
    assert centre(image.transform) == (x, y)
    assert rumi.read(dst, window=(1, 1, 2, 2)).tolist() == [[[5, 6], [9, 10]]]
    for driver in ("COG", "GTiff"):
        geotiff.export(dst, tmp_path / "b.tif", driver=driver)
        with rasterio.open(tmp_path / "b.tif") as dataset:
            assert centre(dataset.transform) == (x, y)
            assert dataset.tags()["AREA_OR_POINT"] == ("Area", "Point")[raster_type - 1]
    again = tmp_path / "b.rumi"
    geotiff.convert(tmp_path / "b.tif", again)
    assert rumi.open(again).georeferencing == image.georeferencing


def test_c16_without_georeferencing_the_flag_survives(tmp_path):
    keys = [(1024, 0, 1, 0), (1025, 0, 1, 2)]
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(keys)[2:])
    geotiff.convert(src, tmp_path / "a.rumi")
    image = rumi.open(tmp_path / "a.rumi")
    assert (image.epsg, image.transform, image.raster_type) == (None, None, "point")


@pytest.mark.parametrize(
    ("code", "model"),
    [
        *((code, 2) for code in (4326, 6318, 7844, 8252)),
        *((code, 1) for code in (32618, 3857, 2193, 31985, 26591)),
    ],
)
def test_c18_codes_and_their_kind(tmp_path, code, model):
    """26591 is deprecated: GDAL would replace it by 3003."""
    key = 2048 if model == 2 else 3072
    keys = [(1024, 0, 1, model), (1025, 0, 1, 1), (key, 0, 1, code)]
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(keys))
    dst = tmp_path / "a.rumi"
    assert geotiff.convert(src, dst).epsg == code
    raw = dst.read_bytes()
    directory = np.frombuffer(raw, "<u2", 16, rumi.index(dst).base_frame_offset - 32)
    assert directory[[7, 12, 15]].tolist() == [model, key, code]
    geotiff.export(dst, tmp_path / "b.tif")
    assert geotiff.inspect(tmp_path / "b.tif").epsg == code


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ([(1024, 0, 1, 1), (3072, 0, 1, 32618), (4096, 0, 1, 5703)], "Compound CRS"),
        ([(1024, 0, 1, 2), (2048, 0, 1, 4979)], "Geographic 3D CRS"),
        ([(1024, 0, 1, 3), (2048, 0, 1, 4978)], "Geocentric CRS"),
        ([(1024, 0, 1, 2), (2048, 0, 1, 32767)], "of no authority|cannot read"),
        ([(1024, 0, 1, 1), (3072, 0, 1, 32618), (2048, 0, 1, 4267)], "but also EPSG:4267"),
    ],
)
def test_c18_other_kinds_are_refused(tmp_path, keys, match):
    keys.insert(1, (1025, 0, 1, 1))
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(sorted(keys)))
    dst = tmp_path / "a.rumi"
    with pytest.raises(UnsupportedError, match=match):
        geotiff.convert(src, dst, drop="all")
    assert not dst.exists()


@pytest.mark.parametrize("code", [6349, 5703, 4978, 4979])
def test_c18_other_kinds_cannot_be_stated_either(tmp_path, code):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(utm()))
    with pytest.raises(UnsupportedError, match=f"EPSG:{code}"):
        geotiff.convert(src, tmp_path / "a.rumi", crs=code)


# --- C19: a CRS known only by citation, WKT or another authority

PE = (
    'ESRI PE String = PROJCS["WGS_1984_UTM_Zone_18N",GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",'
    'SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",'
    '0.0174532925199433]],PROJECTION["Transverse_Mercator"],UNIT["Meter",1.0]]|'
)


def cited(path):
    keys = [(1024, 0, 1, 1), (1025, 0, 1, 1), (3072, 0, 1, 32767), (3073, 34737, len(PE), 0)]
    return tiff(path, bytes(range(16)), 4, 4, extra=geo(keys, text=PE))


def other_authority(path):
    return write(path, crs="ESRI:54030", transform=Affine(*UTM))


@pytest.mark.parametrize("make", [cited, other_authority])
def test_c19_no_epsg_code_is_refused(tmp_path, make):
    src, dst = make(tmp_path / "a.tif"), tmp_path / "a.rumi"
    for drop in ((), "all"):
        with pytest.raises(UnsupportedError, match="crs: .* no EPSG code has exactly this"):
            geotiff.convert(src, dst, drop=drop)
        assert not dst.exists()
    with pytest.warns(UserWarning, match="written without georeferencing") as caught:
        done = geotiff.convert(src, dst, allow_no_crs=True)
    assert len(caught) == 1
    assert [(loss.name, loss.dropped) for loss in done.losses] == [("crs", True)]
    image = rumi.open(dst)
    assert (image.epsg, image.transform) == (None, None)
    assert bytes([255, 127]) not in dst.read_bytes()[:252]  # 32767
    done = geotiff.convert(src, dst, crs="EPSG:32618")
    assert (done.epsg, done.losses) == (32618, ())
    assert rumi.open(dst).transform == UTM
    assert done.notes[-1] == "EPSG:32618 was stated by the caller, not by the file"


def test_c19_a_definition_equal_to_a_code_becomes_the_code(tmp_path):
    wkt = rasterio.crs.CRS.from_epsg(32618).to_wkt()
    for code in ("7030", "6326", "8901", "9122", "4326", "9001", "32618"):
        wkt = wkt.replace(f',AUTHORITY["EPSG","{code}"]', "")
    assert "AUTHORITY" not in wkt
    src = write(tmp_path / "a.tif", crs=rasterio.crs.CRS.from_wkt(wkt), transform=Affine(*UTM))
    assert geotiff.convert(src, tmp_path / "a.rumi").epsg == 32618
    moved = wkt.replace('"false_easting",500000', '"false_easting",500001')
    src = write(tmp_path / "b.tif", crs=rasterio.crs.CRS.from_wkt(moved), transform=Affine(*UTM))
    with pytest.raises(UnsupportedError, match="no EPSG code has exactly this"):
        geotiff.convert(src, tmp_path / "b.rumi")


def test_c19_utm_with_its_base_crs(tmp_path):
    keys = [(1024, 0, 1, 1), (1025, 0, 1, 1), (2048, 0, 1, 4326), (3072, 0, 1, 32618)]
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(keys))
    assert geotiff.convert(src, tmp_path / "a.rumi").epsg == 32618


# --- what has only half of it


def test_a_crs_without_a_transform(tmp_path):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(utm())[2:])
    dst = tmp_path / "a.rumi"
    for drop in ((), "all"):
        with pytest.raises(UnsupportedError, match="EPSG:32618 comes without a transform"):
            geotiff.convert(src, dst, drop=drop)
    with pytest.warns(UserWarning, match="without georeferencing"):
        assert geotiff.convert(src, dst, allow_no_crs=True).epsg is None


def test_a_stated_crs_completes_a_transform(tmp_path):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo([])[:2])
    done = geotiff.convert(src, tmp_path / "a.rumi", crs=32618)
    assert (done.epsg, done.losses) == (32618, ())
    assert rumi.open(tmp_path / "a.rumi").transform == UTM


def test_the_identity_is_a_transform_if_the_file_states_it(tmp_path):
    matrix = np.eye(4).reshape(-1).tolist()
    src = tiff(
        tmp_path / "a.tif", bytes(16), 4, 4, extra=[(34264, DOUBLE, matrix), *geo(utm())[2:]]
    )
    geotiff.convert(src, tmp_path / "a.rumi")
    assert rumi.open(tmp_path / "a.rumi").transform == (1, 0, 0, 0, 1, 0)
    geotiff.export(tmp_path / "a.rumi", tmp_path / "b.tif")
    assert geotiff.inspect(tmp_path / "b.tif").transform == (1, 0, 0, 0, 1, 0)


def test_a_transform_that_cannot_be_inverted(tmp_path):
    matrix = [30.0, 60.0, 0, 5, -15.0, -30.0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1]
    extra = [(34264, DOUBLE, matrix), *geo(utm())[2:]]
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=extra)
    found = {loss.name: loss.detail for loss in geotiff.inspect(src).losses}
    assert list(found) == ["transform", "crs"]
    assert "expected a * e - b * d other than 0" in found["transform"]
    with pytest.raises(UnsupportedError):
        geotiff.convert(src, tmp_path / "a.rumi", drop="all")


def test_gdal_would_turn_it_upside_down(tmp_path):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(utm(), scale=(30.0, -30.0, 0.0)))
    with pytest.raises(UnsupportedError, match="south-up, for GDAL it is north-up"):
        geotiff.convert(src, tmp_path / "a.rumi", drop="all", allow_no_crs=True)


def test_geo_keys_that_gdal_gives_up_on(tmp_path):
    """Never a file without its CRS because a key is damaged."""
    broken = [(34735, SHORT, [1, 1, 0, 200, 1024, 0, 1, 1, 3072, 0, 1, 32618])]
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=[*geo([])[:2], *broken])
    with pytest.raises(UnsupportedError, match="crs: "):
        geotiff.convert(src, tmp_path / "a.rumi", drop="all")


def test_world_files_and_a_crs_beside_the_file(tmp_path):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4)
    assert geotiff.inspect(src).losses == ()
    (tmp_path / "a.tfw").write_text("10\n0\n0\n-10\n1005\n1995\n")
    found = geotiff.inspect(src)
    assert [loss.name for loss in found.losses] == ["transform"]
    (tmp_path / "a.tif.aux.xml").write_text("<PAMDataset><SRS>EPSG:32618</SRS></PAMDataset>")
    done = geotiff.convert(src, tmp_path / "a.rumi")
    assert done.epsg == 32618
    assert rumi.open(tmp_path / "a.rumi").transform == (10, 0, 1000, 0, -10, 2000)
    assert any("a.tfw" in note for note in done.notes)
    with gdal_open(src) as dataset:
        assert tuple(dataset.transform)[:6] == (10, 0, 1000, 0, -10, 2000)


def test_a_crs_beside_the_file_goes_before_the_one_inside(tmp_path):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(utm()))
    (tmp_path / "a.tif.aux.xml").write_text("<PAMDataset><SRS>EPSG:32619</SRS></PAMDataset>")
    with gdal_open(src) as dataset:
        assert dataset.crs.to_epsg() == 32619
    assert geotiff.inspect(src).epsg == 32619


def test_settings_of_the_caller_change_nothing(tmp_path):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(utm(2)))
    keys = [(1024, 0, 1, 1), (1025, 0, 1, 1), (3072, 0, 1, 32618), (4096, 0, 1, 5703)]
    vertical = tiff(tmp_path / "b.tif", bytes(16), 4, 4, extra=geo(keys))
    with rasterio.Env(GTIFF_POINT_GEO_IGNORE="YES", GTIFF_REPORT_COMPD_CS="NO"):
        assert geotiff.inspect(src).transform == (30, 0, 499985, 0, -30, 4600015)
        assert geotiff.inspect(vertical).epsg is None


def test_citations_do_not_matter(tmp_path):
    text = "anything at all|"
    keys = [*utm()[:2], (1026, 34737, len(text), 0), utm()[2]]
    src = tiff(
        tmp_path / "a.tif",
        bytes(16),
        4,
        4,
        extra=[*geo(keys), (34737, ASCII, text.encode() + b"\0")],
    )
    assert geotiff.convert(src, tmp_path / "a.rumi").epsg == 32618
