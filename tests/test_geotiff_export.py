"""rumi to GeoTIFF: GDAL reads the same pixels, transform and CRS."""

import os

import numpy as np
import pytest
import rasterio
import tifffile
from rasterio import Affine
from tiffs import gdal_open

import rumi
from rumi import geotiff
from rumi.encodings import ENCODINGS
from rumi.errors import CodecError, FormatError, UnsupportedError
from rumi.geotiff import nodata_value

UTM = (30.0, 0.0, 500000.0, 0.0, -30.0, 4600000.0)
EXACT = {
    *("binary", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64"),
    *("int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex_int16", "complex_float32", "complex_float64"),
}


def random_samples(encoding, shape):
    """Return every kind of bit pattern that the encoding has."""
    size = int(np.prod(shape)) * encoding.itemsize
    raw = np.random.default_rng(5).integers(0, 256, size, dtype=np.uint8)
    if encoding.bits_per_sample < 8:
        raw &= np.uint8((1 << encoding.bits_per_sample) - 1)
    return raw.view(encoding.dtype).reshape(shape)


def make(path, array=None, **options):
    if array is None:
        array = np.arange(2 * 70 * 50, dtype=np.uint16).reshape(2, 70, 50)
    rumi.write(path, array, **{"crs": 32618, "transform": UTM, "codec": "zstd"} | options)
    return path


@pytest.mark.parametrize("driver", ["COG", "GTiff"])
@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda e: e.name)
def test_every_encoding(tmp_path, encoding, driver):
    array = random_samples(encoding, (3, 70, 50))
    src, dst = make(tmp_path / "a.rumi", array, tile_size=(32, 20)), tmp_path / "a.tif"
    if encoding.name not in EXACT:
        with pytest.raises(UnsupportedError, match=f"no {encoding.dtype_name} samples; widen=True"):
            geotiff.export(src, dst, driver=driver)
        assert not dst.exists()
    done = geotiff.export(src, dst, driver=driver, widen=True)
    assert done.widened is (encoding.name not in EXACT)
    assert done.bytes_out == dst.stat().st_size
    with rasterio.open(dst) as dataset:
        assert tuple(dataset.transform)[:6] == UTM
        assert dataset.crs.to_epsg() == 32618
        assert dataset.dtypes == (done.dtype,) * 3
        pixels = dataset.read(out_dtype="complex128")
    if not done.widened:
        geotiff.convert(dst, tmp_path / "b.rumi", codec="zstd")
        assert rumi.index(tmp_path / "b.rumi").encoding == encoding
        assert rumi.read(tmp_path / "b.rumi").tobytes() == array.tobytes()
        return
    with np.errstate(invalid="ignore"):
        expected = as_complex(array)
    assert np.array_equal(pixels, expected, equal_nan=True)


def as_complex(array):
    if array.dtype.names is None:
        return array.astype(float).astype(complex)
    return array["real"].astype(float) + 1j * array["imag"].astype(float)


@pytest.mark.parametrize("compress", ["DEFLATE", "ZSTD", "LZW", "LZMA", "none"])
@pytest.mark.parametrize("driver", ["COG", "GTiff"])
def test_every_compression_keeps_nan_payloads(tmp_path, driver, compress):
    bits = np.random.default_rng(1).integers(0, 1 << 32, (1, 70, 50), dtype=np.uint32)
    bits[0, :10] |= np.uint32(0x7F800001)
    src = make(tmp_path / "a.rumi", bits.view(np.float32))
    geotiff.export(src, tmp_path / "a.tif", driver=driver, compress=compress)
    with rasterio.open(tmp_path / "a.tif") as dataset:
        found = dataset.tags(ns="IMAGE_STRUCTURE").get("COMPRESSION", "NONE")
        assert found == compress.upper()
        assert np.array_equal(dataset.read().view(np.uint32), bits)


def test_it_is_a_cog(tmp_path):
    array = np.random.default_rng(0).integers(0, 99, (1, 1300, 1100), dtype=np.uint8)
    src = make(tmp_path / "a.rumi", array, tile_size=256)
    seen = []
    geotiff.export(src, tmp_path / "a.tif", progress=lambda *numbers: seen.append(numbers))
    assert seen == [(done, seen[-1][1]) for done in range(1, seen[-1][1] + 1)]
    with rasterio.open(tmp_path / "a.tif") as dataset:
        assert dataset.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert dataset.overviews(1) == [2, 4]
        assert dataset.block_shapes == [(512, 512)]
        assert np.array_equal(dataset.read(), array)
    with rasterio.open(tmp_path / "a.tif", overview_level=0) as dataset:
        assert set(np.unique(dataset.read())) <= set(range(99))
    geotiff.export(src, tmp_path / "b.tif", overviews=None)
    assert geotiff.inspect(tmp_path / "b.tif").losses == ()


def test_bands_are_not_taken_for_colours(tmp_path):
    """GDAL takes four bytes for red, green, blue and alpha unless told."""
    for bands in (1, 2, 3, 4, 5):
        src = make(tmp_path / "a.rumi", np.zeros((bands, 9, 9), np.uint8))
        for driver in ("COG", "GTiff"):
            geotiff.export(src, tmp_path / "a.tif", driver=driver)
            assert geotiff.inspect(tmp_path / "a.tif").losses == ()


@pytest.mark.parametrize("raster_type", ["area", "point"])
def test_without_georeferencing(tmp_path, raster_type):
    src = make(tmp_path / "a.rumi", crs=None, transform=None, raster_type=raster_type)
    for driver in ("COG", "GTiff"):
        geotiff.export(src, tmp_path / "a.tif", driver=driver)
        found = geotiff.inspect(tmp_path / "a.tif")
        assert (found.epsg, found.transform, found.raster_type) == (None, None, raster_type)
        assert found.losses == ()
        with gdal_open(tmp_path / "a.tif") as dataset:
            assert np.array_equal(dataset.read(), rumi.read(src))


@pytest.mark.parametrize("driver", ["COG", "GTiff"])
@pytest.mark.parametrize(
    ("nodata", "dtype", "text"),
    [
        (0, "uint8", "0"),
        ("18446744073709551615", "uint64", "18446744073709551615"),
        (2**60 + 1, "uint64", "1152921504606846977"),
        (-(2**63), "int64", "-9223372036854775808"),
        (float("nan"), "float32", "nan"),
        ("-3.4028234663852886e+38", "float32", "-3.4028234663852886e+38"),
        (1e20, "float64", "1e+20"),
        ("5", "complex64", "5"),
        ("1", "bool", "1"),
    ],
)
def test_nodata_and_band_names_go_back(tmp_path, driver, nodata, dtype, text):
    src = make(tmp_path / "a.rumi", np.zeros((2, 9, 9), dtype))
    names = ("red", None)
    geotiff.export(src, tmp_path / "a.tif", driver=driver, nodata=nodata, band_names=names)
    found = geotiff.inspect(tmp_path / "a.tif")
    assert nodata_value(found.nodata, dtype).tobytes() == nodata_value(text, dtype).tobytes()
    assert found.band_names == names
    assert list(tmp_path.glob("*.aux.xml")) == []
    assert {loss.name for loss in found.losses} == {"nodata", "band_names"}


def test_what_is_read_need_not_be_a_path(tmp_path):
    src = make(tmp_path / "a.rumi")
    header = rumi.index(src)
    done = geotiff.export(src.read_bytes(), tmp_path / "a.tif", header=bytes(header))
    assert done.src == "<bytes>"
    with rasterio.open(tmp_path / "a.tif") as dataset:
        assert np.array_equal(dataset.read(), rumi.read(src))


def test_cell_frames_and_wide_images(tmp_path, monkeypatch):
    monkeypatch.setattr("rumi.geotiff.produce._WINDOW_BYTES", 1 << 20)
    array = np.random.default_rng(0).integers(0, 1 << 16, (3, 600, 2100), dtype=np.uint16)
    src = make(tmp_path / "a.rumi", array, frame_unit="cell", tile_size=(700, 100))
    geotiff.export(src, tmp_path / "a.tif")
    with rasterio.open(tmp_path / "a.tif") as dataset:
        assert np.array_equal(dataset.read(), array)


def test_existing_files(tmp_path):
    src, dst = make(tmp_path / "a.rumi"), tmp_path / "a.tif"
    geotiff.export(src, dst, overwrite=False)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        geotiff.export(src, dst, overwrite=False)
    os.chmod(dst, 0o640)
    geotiff.export(src, dst)
    assert dst.stat().st_mode & 0o777 == 0o640
    (tmp_path / "a.tif.ovr").write_bytes(b"old")
    with pytest.raises(FileExistsError, match="a.tif.ovr: GDAL would take this older file"):
        geotiff.export(src, dst)
    with pytest.raises(ValueError, match="regular file"):
        geotiff.export(src, tmp_path)
    with pytest.raises(FileNotFoundError):
        geotiff.export(src, tmp_path / "no" / "a.tif")
    with pytest.raises(ValueError, match="the same file"):
        geotiff.export(src, src)
    made = tmp_path / "made" / "made.tif"
    made.parent.mkdir()
    geotiff.export(src, made)
    assert [path.name for path in made.parent.iterdir()] == ["made.tif"]


@pytest.mark.parametrize("error", [RuntimeError("frame"), KeyboardInterrupt()])
@pytest.mark.parametrize("driver", ["COG", "GTiff"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, driver, error):
    src, dst = make(tmp_path / "a.rumi"), tmp_path / "a.tif"
    dst.write_bytes(b"old")

    def failing(self, **options):
        raise error

    monkeypatch.setattr("rumi.image.Image.read", failing)
    with pytest.raises(type(error)):
        geotiff.export(src, dst, driver=driver)
    assert dst.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.rumi", "a.tif"]


def test_a_damaged_frame_is_an_error(tmp_path):
    src = make(tmp_path / "a.rumi")
    raw = bytearray(src.read_bytes())
    raw[-9] ^= 1
    src.write_bytes(raw)
    with pytest.raises(CodecError, match="frame"):
        geotiff.export(src, tmp_path / "a.tif")
    with pytest.raises(FormatError, match="classic TIFF"):
        geotiff.export(tifffile_at(tmp_path / "b.tif"), tmp_path / "a.tif")
    assert not (tmp_path / "a.tif").exists()


def tifffile_at(path):
    tifffile.imwrite(path, np.zeros((4, 4), np.uint8))
    return path


def test_verification_finds_other_samples(tmp_path, monkeypatch):
    src = make(tmp_path / "a.rumi")
    original = geotiff.blocks.BlockSource.__getitem__
    monkeypatch.setattr(
        geotiff.blocks.BlockSource, "__getitem__", lambda self, key: original(self, key) + 1
    )
    with pytest.raises(CodecError, match="other samples in rows 0 to 69"):
        geotiff.export(src, tmp_path / "a.tif")
    assert not (tmp_path / "a.tif").exists()
    geotiff.export(src, tmp_path / "a.tif", verify=False)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"driver": "PNG"}, ValueError),
        ({"compress": "JPEG"}, ValueError),
        ({"compress": "LERC"}, ValueError),
        ({"overviews": "gauss"}, ValueError),
        ({"nodata": "-9999"}, ValueError),
        ({"nodata": "x"}, ValueError),
        ({"band_names": ["one"]}, ValueError),
        ({"threads": 0}, ValueError),
        ({"threads": 1.5}, TypeError),
    ],
)
def test_wrong_arguments(tmp_path, options, kind):
    src = make(tmp_path / "a.rumi")
    with pytest.raises(kind):
        geotiff.export(src, tmp_path / "a.tif", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["a.rumi"]


def test_a_turned_point_image_comes_back_as_it_went(tmp_path):
    turned = tuple(Affine.rotation(30) @ Affine.scale(10.1, -7.3))[:6]
    turned = (turned[0], turned[1], 500000.3, turned[3], turned[4], 4600000.7)
    src = make(tmp_path / "a.rumi", transform=turned, raster_type="point")
    geotiff.export(src, tmp_path / "a.tif")
    geotiff.convert(tmp_path / "a.tif", tmp_path / "b.rumi")
    assert rumi.open(tmp_path / "b.rumi").georeferencing == rumi.open(src).georeferencing
