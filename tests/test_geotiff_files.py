"""Real files: what becomes of each one, by name."""

import hashlib
import warnings

import numpy as np
import pytest
from tiffs import SHARED, gdal_open

import rumi
from rumi import geotiff
from rumi.errors import FormatError, TruncatedError, UnsupportedError
from rumi.geotiff.samples import half_bits

DATA = SHARED / "data"
NEEDS_DATA = pytest.mark.skipif(
    not DATA.is_dir(), reason="../shared/data is absent, so no real files are tested"
)

# file: losses by name, sample type, EPSG code. "crs" is accepted by
# allow_no_crs, every other loss by drop="all"; without losses it just converts.
ODD = {
    "12bit.cropped.tiff": ("depth", "uint16", None),
    "2d_test.tif": ("", "float64", 32611),
    "all-nodata.tif": ("nodata band_names tags", "uint16", 32628),
    "au-3577-rotated.tif": ("", "float32", 3577),
    "austrian_capitals_model_tie_points_pixel_is_area.tif": (
        *("nodata colour_table photometric gcps", "uint8", None),
    ),
    "austrian_capitals_model_transformation_pixel_is_point.tif": (
        *("nodata colour_table photometric", "uint8", 3035),
    ),
    "bigtiffmotorola.tif": ("", "uint8", None),
    "blue.tif": ("nodata overviews", "uint16", 32617),
    "byte-tile.tiff": ("nodata", "int8", 4326),
    "cea.tif": ("crs", "uint8", None),
    "cint16.tif": ("nodata gcps tags", "complex_int16", None),
    "clp.tif": ("alpha", "uint8", 3857),
    "cog_fullearth.tif": ("nodata overviews", "float64", 4326),
    "cog_gcps_ovr.tif": ("nodata overviews gcps", "uint8", None),
    "cog_gradient.tif": ("band_names tags", "float32", 4326),
    "cog_nonearth.tif": ("nodata band_names overviews crs", "float32", None),
    "cog_rgb_mask.tif": ("mask", "uint8", 26913),
    "cog_scale_epsg4326.tif": ("nodata scale_offset", "int16", 4326),
    "diagonal.tif": ("nodata overviews", "float32", 4326),
    "float_nan.tif": ("nodata transform", "float32", None),
    "float_raster_with_nodata.tif": ("nodata crs", "float32", None),
    "gadas-world.tif": ("alpha transform", "uint8", None),
    "geogtowgs84geokey5.tif": ("colour_table tags crs", "uint8", None),
    "gradient-1c-64b.tiff": ("tags", "uint64", None),
    "image_51px.tif": ("", "uint8", 32707),
    "image_geos.tif": ("nodata mask overviews tags crs", "uint8", None),
    "image_nan.tif": ("nodata", "float64", 4326),
    "image_webp.tif": ("", "uint8", 3857),
    "inverted_lat.tif": ("nodata", "float32", 4326),
    "lc.tif": ("band_names colour_table tags crs", "uint8", None),
    "minisblack-1c-3b.tiff": ("depth", "uint8", None),
    "miniswhite-1c-1b.tiff": ("photometric tags", "bool", None),
    "nt_20201024_f18_nrt_s.tif": ("nodata crs", "float32", None),
    "palette-1c-4b.tiff": ("colour_table tags", "uint4", None),
    "planar-rgb-u8.tif": ("", "uint8", None),
    "random-fp16-pred2.tiff": ("tags", "float16", None),
    "rgb1.tif": ("nodata crs", "uint8", None),
    "rgba.byte.tif": ("alpha", "uint8", 32618),
    "rotated.tif": ("transform", "uint8", None),
    "sinusoidal_scale_tags.tif": ("nodata band_names scale_offset overviews crs", "int16", None),
    "subsubifds.tif": ("alpha pages tags", "uint8", None),
    "test_esri_wkt.tif": ("crs", "uint16", None),
    "test_rpcs.tif": ("nodata rpcs tags crs", "uint16", None),
    "tiled-oversize-gray-i8.tif": ("", "int8", None),
    "tiled-rect-rgb-u8.tif": ("tags", "uint8", None),
    "world.byte.tif": ("", "uint8", 4326),
}

# file: the one error, and a part of its text.
CORRUPT = {
    "colormap-shl-overflow.tiff": (TruncatedError, "expected 2 bytes of a directory at byte"),
    "corrupt.tif": (FormatError, "rows 512 to 1023, columns 0 to 1023 do not decode"),
    "graydepth-invert-overflow-5a0aad5024cc4ff3.tiff": (
        *(FormatError, "tag 258 cannot have the field type 2"),
    ),
    "jpeg-test-deflate-small.tif": (FormatError, "do not decode: ZIPDecode:Decoding error"),
    "sample-get-lzw-stuck.tiff": (FormatError, "got 6731 bytes, expected 11457"),
}

# Losses of the files of bench/ that have any.
BENCH = {
    "aerial_rgbn_uint8.tif": "alpha",
    "climate_float32.tif": "transform",
    "dem_int16_alps.tif": "transform",
    "naip_4band_uint8.tif": "alpha",
    "sar_slc_cint16.tif": "gcps tags",
}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def samples_of(path, encoding):
    """Read with rasterio, and undo what GDAL does to types that it has not."""
    with gdal_open(path) as dataset:
        array = dataset.read()
    if encoding.name == "complex_int16":
        out = np.empty(array.shape, encoding.dtype)
        out["real"], out["imag"] = array.real, array.imag
        return out
    if encoding.name == "float16":
        return half_bits(array).view(np.float16)
    if encoding.bits_per_sample < 8:
        return array.view(encoding.dtype)
    return array


def converts(src, dst, losses, dtype, epsg):
    """Check the losses, the refusal without them accepted, and the conversion with."""
    found = geotiff.inspect(src)
    assert " ".join(loss.name for loss in found.losses) == losses
    accepted = {"drop": "all", "allow_no_crs": True}
    if losses:
        with pytest.raises(UnsupportedError) as caught:
            geotiff.convert(src, dst)
        assert all(f"{name}: " in str(caught.value) for name in losses.split())
        assert not dst.exists()
    else:
        accepted = {}
    with warnings.catch_warnings():
        if "crs" in losses.split():
            warnings.simplefilter("ignore", UserWarning)
        done = geotiff.convert(src, dst, **accepted)
    assert rumi.index(dst) == done.header
    assert done.header.encoding.dtype_name == dtype
    image = rumi.open(dst)
    assert (image.epsg, done.epsg) == (epsg, epsg)
    with gdal_open(src) as dataset:
        placed = tuple(dataset.transform)[:6] if epsg else None
        point = dataset.tags().get("AREA_OR_POINT") == "Point"
    assert image.transform == placed
    assert image.raster_type == ("point" if point else "area")
    expected = samples_of(src, done.header.encoding)
    assert image.read().tobytes() == np.ascontiguousarray(expected).tobytes()
    return image, expected


def goes_back(image, src, dst, expected):
    """Export and let GDAL judge."""
    geotiff.export(src, dst)
    with gdal_open(dst) as dataset:
        assert (dataset.crs.to_epsg() if dataset.crs else None) == image.epsg
        assert tuple(dataset.transform)[:6] == (image.transform or (1, 0, 0, 0, 1, 0))
    assert samples_of(dst, image.header.encoding).tobytes() == expected.tobytes()


@NEEDS_DATA
def test_every_file_is_in_a_table():
    assert {path.name for path in (DATA / "odd").iterdir()} == set(ODD)
    assert {path.name for path in (DATA / "corrupt").iterdir()} == set(CORRUPT)


@NEEDS_DATA
@pytest.mark.parametrize("name", ODD)
def test_odd(tmp_path, name, capfd):
    image, expected = converts(DATA / "odd" / name, tmp_path / "a.rumi", *ODD[name])
    goes_back(image, tmp_path / "a.rumi", tmp_path / "b.tif", expected)
    assert capfd.readouterr().err == ""


@NEEDS_DATA
@pytest.mark.parametrize("name", CORRUPT)
def test_corrupt(tmp_path, name, capfd):
    src = DATA / "corrupt" / name
    kind, text = CORRUPT[name]
    with pytest.raises(kind) as caught:
        geotiff.convert(src, tmp_path / "a.rumi", drop="all", allow_no_crs=True)
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"{src}: ")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""


def bench_files():
    return sorted(path.name for path in (DATA / "bench").glob("*.tif")) if DATA.is_dir() else []


@NEEDS_DATA
@pytest.mark.parametrize("name", bench_files())
def test_bench(tmp_path, name):
    src, dst = DATA / "bench" / name, tmp_path / "a.rumi"
    found = geotiff.inspect(src)
    dtype = rumi.encodings.from_dtype(found.dtype).dtype_name
    image, expected = converts(src, dst, BENCH.get(name, ""), dtype, found.epsg)
    assert (image.epsg is None) is (name in BENCH and BENCH[name] != "alpha")
    goes_back(image, dst, tmp_path / "b.tif", expected)


@NEEDS_DATA
def test_the_sources_were_not_touched(tmp_path):
    folder = DATA / "odd"
    before = {path.name: digest(path) for path in folder.iterdir()}
    geotiff.convert_many(folder, tmp_path / "out", drop="all", allow_no_crs=True, codec="store")
    assert {path.name: digest(path) for path in folder.iterdir()} == before
