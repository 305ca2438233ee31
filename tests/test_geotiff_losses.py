"""What a rumi file cannot carry is listed, refused, and dropped only by name."""

import numpy as np
import pytest
import rasterio
from rasterio import Affine
from rasterio.control import GroundControlPoint
from rasterio.rpc import RPC
from tiffs import ASCII, LONG, SHORT, gdal_open, geo, tiff, utm

import rumi
from rumi import geotiff
from rumi.errors import UnsupportedError
from rumi.geotiff import LOSS_NAMES

UTM = Affine(30, 0, 500000, 0, -30, 4600000)
ARRAY = np.arange(3 * 40 * 50, dtype=np.uint8).reshape(3, 40, 50)


def write(path, array=ARRAY, then=None, **options):
    profile = {"crs": "EPSG:32618", "transform": UTM, "dtype": array.dtype, "driver": "GTiff"}
    bands, height, width = array.shape
    with rasterio.open(
        path, "w", count=bands, height=height, width=width, **(profile | options)
    ) as dataset:
        dataset.write(array)
        if then is not None:
            then(dataset)
    return path


def losses(src):
    return {loss.name: loss.detail for loss in geotiff.inspect(src).losses}


def with_mask(dataset):
    dataset.write_mask(np.eye(40, 50, dtype=bool))


def with_overviews(dataset):
    dataset.build_overviews([2, 4])


def with_gcps(dataset):
    points = [GroundControlPoint(r, c, c, r) for r, c in ((0, 0), (0, 9), (9, 0))]
    dataset.gcps = points, rasterio.crs.CRS.from_epsg(4326)


def with_rpcs(dataset):
    ones = [1.0] * 20
    dataset.rpcs = RPC(
        height_off=0, height_scale=1, lat_off=0, lat_scale=1, line_den_coeff=ones,
        line_num_coeff=ones, line_off=0, line_scale=1, long_off=0, long_scale=1,
        samp_den_coeff=ones, samp_num_coeff=ones, samp_off=0, samp_scale=1,
    )  # fmt: skip


def with_scale(dataset):
    dataset.scales, dataset.offsets = (0.5, 1, 1), (0, 0, -273.15)


def with_names(dataset):
    dataset.descriptions = ("red", None, "nir")


CASES = {
    "nodata": ({"nodata": 3}, None, "3"),
    "mask": ({}, with_mask, "a mask of valid pixels"),
    "alpha": ({"photometric": "minisblack", "alpha": "yes"}, None, "that band 1 is alpha"),
    "band_names": ({}, with_names, "red, nir"),
    "units": ({}, lambda d: setattr(d, "units", ("K", None, "m")), "K, m"),
    "scale_offset": ({}, with_scale, "0.5 x sample + 0.0, 1.0 x sample + 0.0, 1.0 x sample"),
    "overviews": ({}, with_overviews, "reduced copies 1:2, 1:4"),
    "gcps": ({"crs": None, "transform": None}, with_gcps, "3 ground control points in EPSG:4326"),
    "rpcs": ({"crs": None, "transform": None}, with_rpcs, "rational polynomial coefficients"),
    "tags": ({}, lambda d: d.update_tags(TIFFTAG_DATETIME="x", mission="y"), "TIFFTAG_DATETIME"),
    "transform": ({"crs": None}, None, "(30.0, 0.0, 500000.0, 0.0, -30.0, 4600000.0), without"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_each_loss_is_named_and_dropped_by_name(tmp_path, name):
    options, then, detail = CASES[name]
    src, dst = write(tmp_path / "a.tif", then=then, **options), tmp_path / "a.rumi"
    found = losses(src)
    assert list(found) == [name]
    assert detail in found[name]
    others = [other for other in LOSS_NAMES if other != name]
    with pytest.raises(UnsupportedError) as caught:
        geotiff.convert(src, dst, drop=others)
    text = str(caught.value)
    assert f"{src}: rumi cannot carry {name}: {found[name]}" in text
    assert f"drop=['{name}'] (--drop {name})" in text
    assert not dst.exists()
    done = geotiff.convert(src, dst, drop=[name])
    assert [(loss.name, loss.dropped) for loss in done.losses] == [(name, True)]
    assert np.array_equal(rumi.read(dst), ARRAY)
    assert geotiff.convert(src, dst, drop="all").losses == done.losses
    assert geotiff.convert(src, dst, drop=f"tags,{name.upper()}").losses == done.losses


def test_every_refused_loss_stands_in_one_error(tmp_path):
    def then(dataset):
        with_names(dataset)
        with_overviews(dataset)

    src = write(tmp_path / "a.tif", then=then, nodata=0, crs="ESRI:54030")
    with pytest.raises(UnsupportedError) as caught:
        geotiff.convert(src, tmp_path / "a.rumi", drop=["overviews"])
    text = str(caught.value)
    assert "nodata: 0; band_names: red, nir; crs: 'World_Robinson'" in text
    assert "drop=['nodata', 'band_names'] (--drop nodata,band_names) converts without" in text
    assert "crs=CODE" in text
    assert "allow_no_crs=True" in text
    assert "overviews" not in text
    assert "\n" not in text


def test_what_goes_to_the_catalog(tmp_path):
    src = write(tmp_path / "a.tif", then=with_names, nodata=255)
    done = geotiff.convert(src, tmp_path / "a.rumi", drop="all")
    assert done.band_names == ("red", None, "nir")
    assert done.nodata == "255"
    assert (done.src, done.dst) == (str(src), str(tmp_path / "a.rumi"))
    assert done.bytes_in == src.stat().st_size
    assert not done.skipped


def test_what_tells_of_the_file_only_is_a_note(tmp_path):
    def then(dataset):
        dataset.update_tags(TIFFTAG_SOFTWARE="x", TIFFTAG_RESOLUTIONUNIT=2)
        dataset.update_tags(1, STATISTICS_MEAN=3, STATISTICS_STDDEV=1)

    done = geotiff.convert(write(tmp_path / "a.tif", then=then), tmp_path / "a.rumi")
    assert done.losses == ()
    (note,) = done.notes
    for name in ("TIFFTAG_SOFTWARE", "TIFFTAG_RESOLUTIONUNIT", "STATISTICS_MEAN"):
        assert name in note


def test_colours(tmp_path):
    def palette(dataset):
        dataset.write_colormap(1, {0: (1, 2, 3, 255), 1: (9, 9, 9, 255)})

    src = write(tmp_path / "a.tif", ARRAY[:1], then=palette)
    assert losses(src) == {"colour_table": "a palette of 256 colours"}
    cases = [
        (0, "photometric", "MinIsWhite"),
        (4, "photometric", "TransparencyMask"),
        (32803, "photometric", "a colour filter array"),
        (77, "photometric", "PhotometricInterpretation 77"),
    ]
    for code, name, detail in cases:
        src = tiff(tmp_path / f"{code}.tif", bytes(range(16)), 4, 4, photometric=code)
        assert detail in losses(src)[name]
        geotiff.convert(src, tmp_path / "b.rumi", drop=name)
        assert rumi.read(tmp_path / "b.rumi").tobytes() == bytes(range(16))


@pytest.mark.parametrize(
    ("photometric", "bands", "space"), [(5, 4, "CMYK"), (8, 3, "CIELAB"), (6, 3, "YCbCr")]
)
def test_samples_that_gdal_computes_are_refused(tmp_path, photometric, bands, space):
    src = tiff(
        tmp_path / "a.tif", bytes(range(16 * bands)), 4, 4, bits=[8] * bands, formats=[1] * bands,
        bands=bands, photometric=photometric, extra=[(530, SHORT, [1, 1])],
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match=f"stored as {space} .* translate the file to RGB"):
        geotiff.convert(src, tmp_path / "a.rumi", drop="all")
    assert not (tmp_path / "a.rumi").exists()


def test_jpeg_and_lossy_data_are_carried_as_decoded(tmp_path):
    src = write(tmp_path / "a.tif", compress="jpeg", photometric="ycbcr")
    done = geotiff.convert(src, tmp_path / "a.rumi")
    assert "JPEG stored as YCbCr; the decoded RGB samples are carried" in done.notes
    with gdal_open(src) as dataset:
        assert np.array_equal(dataset.read(), rumi.read(tmp_path / "a.rumi"))
    src = write(tmp_path / "b.tif", compress="jpeg", photometric="minisblack")
    assert geotiff.convert(src, tmp_path / "b.rumi").losses == ()


@pytest.mark.parametrize("orientation", [2, 3, 4, 5, 6, 7, 8])
def test_orientation(tmp_path, orientation):
    src = tiff(tmp_path / "a.tif", bytes(range(16)), 4, 4, extra=[(274, SHORT, [orientation])])
    assert "rows and columns stay as stored" in losses(src)["orientation"]
    geotiff.convert(src, tmp_path / "a.rumi", drop=["orientation"])
    assert rumi.read(tmp_path / "a.rumi").tobytes() == bytes(range(16))
    src = tiff(tmp_path / "b.tif", bytes(16), 4, 4, extra=[(274, SHORT, [1])])
    assert losses(src) == {}


def test_pages_and_sub_images(tmp_path):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, pages=[bytes(16), bytes(16)])
    assert losses(src) == {"pages": "2 further images; only the first is carried"}
    src = tiff(tmp_path / "b.tif", bytes(16), 4, 4, pages=[bytes(16)], extra=[(254, LONG, [2])])
    assert "1 further images" in losses(src)["pages"]
    src = tiff(
        tmp_path / "c.tif", bytes(range(16)), 4, 4, pages=[bytes(16)], extra=[(254, LONG, [4])]
    )
    assert "pages" not in losses(src)


def test_private_tags(tmp_path):
    extra = [(65000, ASCII, b"secret\0"), (50838, LONG, [1])]
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=extra)
    assert losses(src) == {"tags": "tag 50838, tag 65000"}
    many = [(tag, SHORT, [1]) for tag in range(65000, 65010)]
    src = tiff(tmp_path / "b.tif", bytes(16), 4, 4, extra=many)
    assert losses(src)["tags"].endswith("tag 65005 and 4 more")


def test_files_beside_it(tmp_path):
    """An .aux.xml, an external mask and overviews count as they do for GDAL."""
    src = write(tmp_path / "a.tif", ARRAY[:1])
    with rasterio.Env(TIFF_USE_OVR=True), rasterio.open(src, "r+") as dataset:
        dataset.build_overviews([2])
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(src, "r+") as dataset:
        dataset.write_mask(np.eye(40, 50, dtype=bool))
    (tmp_path / "a.tif.aux.xml").write_text(
        '<PAMDataset><PAMRasterBand band="1"><NoDataValue>17</NoDataValue>'
        "<Description>height</Description><CategoryNames><Category>x</Category></CategoryNames>"
        "</PAMRasterBand></PAMDataset>"
    )
    found = geotiff.inspect(src)
    assert {loss.name for loss in found.losses} == {
        *("nodata", "mask", "band_names", "categories", "overviews"),
    }
    assert (found.nodata, found.band_names) == ("17", ("height",))
    assert sorted(map(str, found.files)) == sorted(map(str, tmp_path.iterdir()))
    assert any(note.startswith("read with the file: ") for note in found.notes)


def test_statistics_beside_it_are_no_loss(tmp_path):
    src = write(tmp_path / "a.tif", ARRAY[:1])
    (tmp_path / "a.tif.aux.xml").write_text(
        '<PAMDataset><PAMRasterBand band="1"><Metadata><MDI key="STATISTICS_MEAN">1</MDI>'
        "</Metadata></PAMRasterBand></PAMDataset>"
    )
    assert losses(src) == {}
    assert geotiff.inspect(src).epsg == 32618


def test_nodata_by_band_beside_it(tmp_path):
    src = write(tmp_path / "a.tif")
    (tmp_path / "a.tif.aux.xml").write_text(
        "<PAMDataset>"
        + "".join(
            f'<PAMRasterBand band="{band}"><NoDataValue>{band}.5</NoDataValue></PAMRasterBand>'
            for band in (1, 2)
        )
        + "</PAMDataset>"
    )
    found = geotiff.inspect(src)
    assert found.nodata is None
    assert [loss.detail for loss in found.losses] == ["1.5, 2.5, None, by band"]


def test_coordinate_epoch(tmp_path):
    keys = [(1024, 0, 1, 2), (1025, 0, 1, 1), (2048, 0, 1, 9000), (5120, 34736, 1, 0)]
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(keys, doubles=[2020.5]))
    assert list(losses(src)) == ["epoch"]
    assert geotiff.convert(src, tmp_path / "a.rumi", drop="epoch").epsg == 9000


def test_inspect_reads_no_pixels_and_carries_all_that_convert_says(tmp_path):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=geo(utm(2)))
    raw = bytearray(src.read_bytes())
    src.write_bytes(raw[:-16])
    found = geotiff.inspect(src)
    assert (found.shape, found.dtype, found.epsg) == ((1, 4, 4), np.uint8, 32618)
    assert found.raster_type == "point"
    assert found.src == str(src)
