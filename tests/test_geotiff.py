"""GeoTIFF to rumi: samples come through bit for bit, or are refused by name."""

import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import rasterio
import tifffile
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rasterio import Affine
from tiffs import ASCII, LONG, SHORT, gdal_open, geo, tiff, utm

import rumi
from rumi import geotiff
from rumi.encodings import ENCODINGS
from rumi.errors import FormatError, RumiError, TruncatedError, UnsupportedError
from rumi.geotiff import nodata_mask, nodata_value
from rumi.geotiff.gdal import has_half
from rumi.geotiff.samples import half_bits, widened_half

UTM = Affine(30, 0, 500000, 0, -30, 4600000)
PLACED = {"crs": "EPSG:32618", "transform": UTM}


def same_bits(left, right):
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    return left.shape == right.shape and left.tobytes() == right.tobytes()


def converted(src, dst, **options):
    """Convert and read back; what the header says is what the file says."""
    done = geotiff.convert(src, dst, **options)
    assert rumi.index(dst) == done.header
    assert done.bytes_out == dst.stat().st_size
    assert [path.name for path in dst.parent.glob("*rumi*")] == [dst.name]
    return rumi.read(dst)


def write(path, array, **options):
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        count=array.shape[0],
        height=array.shape[1],
        width=array.shape[2],
        **{"dtype": array.dtype, **PLACED, **options},
    ) as dataset:
        dataset.write(array)
    return path


def refused(src, dst, kind=UnsupportedError, match="", **options):
    """Converting fails with one error that names the file, and leaves nothing behind."""
    before = sorted(dst.parent.iterdir())
    with pytest.raises(kind, match=match) as caught:
        geotiff.convert(src, dst, **options)
    assert str(src) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(dst.parent.iterdir()) == before
    return str(caught.value)


@pytest.fixture
def dst(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "a.rumi"


# --- sample types


@pytest.mark.parametrize("layout", [{}, {"tiled": True, "blockxsize": 16, "blockysize": 32}])
@pytest.mark.parametrize(
    "dtype",
    [
        *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float32", "float64", "complex64", "complex128"),
    ],
)
def test_every_pattern_of_a_type_gdal_has(tmp_path, dst, dtype, layout):
    bits = np.random.default_rng(7).bytes(3 * 50 * 70 * np.dtype(dtype).itemsize)
    array = np.frombuffer(bits, dtype=dtype).reshape(3, 50, 70)
    src = write(tmp_path / "a.tif", array, compress="deflate", interleave="pixel", **layout)
    with gdal_open(src) as dataset:
        assert same_bits(dataset.read(), array)
    for unit, tile in (("tile", 24), ("cell", (17, 64)), ("tile", 512)):
        got = converted(src, dst, frame_unit=unit, tile_size=tile)
        assert got.dtype == dtype
        assert same_bits(got, array)


def test_float_bits_survive_both_ways(tmp_path, dst):
    bits = [0x7FC00001, 0xFFC12345, 0x7F800001, 0x00000001, 0x807FFFFF, 0x80000000, 0, 0x3F800000]
    array = np.array(bits, np.uint32).view(np.float32).reshape(1, 2, 4)
    got = converted(write(tmp_path / "a.tif", array), dst)
    assert same_bits(got, array)
    geotiff.export(dst, tmp_path / "b.tif")
    with gdal_open(tmp_path / "b.tif") as dataset:
        assert same_bits(dataset.read(), array)


def test_c11_signed_8_bit_without_a_hint(tmp_path, dst):
    array = np.array([[-128, -1], [0, 127]], np.int8)
    src = tmp_path / "a.tif"
    tifffile.imwrite(src, array, metadata=None, software=False, extratags=[(42113, "s", 3, "-1")])
    done = geotiff.convert(src, dst, drop="nodata")
    assert (done.header.sample_format, done.header.bits_per_sample) == (2, 8)
    assert done.nodata == "-1"
    got = rumi.read(dst)
    assert got.dtype == np.int8
    assert same_bits(got[0], array)
    assert nodata_mask(got[0], done.nodata).tolist() == [[False, True], [False, False]]
    geotiff.export(dst, tmp_path / "b.tif", nodata=done.nodata)
    with gdal_open(tmp_path / "b.tif") as dataset:
        assert (dataset.dtypes, dataset.nodata) == (("int8",), -1)
        assert same_bits(dataset.read(1), array)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("component", "bits"), [("i2", 32), ("i4", 64)])
def test_c12_complex_integers_are_never_promoted(tmp_path, dst, order, component, bits):
    info = np.iinfo(component)
    pairs = [(info.min, info.max), (0, -1), (1, 0), (info.max, info.min), (123456789 % info.max, 7)]
    raw = np.array(pairs, order + component)
    src = tiff(
        tmp_path / "a.tif", raw.tobytes(), 5, 1, bits=[bits], formats=[5], order=order, extra=[]
    )
    got = converted(src, dst)
    header = rumi.index(dst)
    assert (header.sample_format, header.bits_per_sample) == (5, bits)
    assert got.dtype.names == ("real", "imag")
    assert [tuple(sample) for sample in got[0, 0].tolist()] == pairs
    with gdal_open(src) as dataset:
        assert np.array_equal(dataset.read(out_dtype="complex128")[0, 0].real, got["real"][0, 0])


def test_c12_complex_int16_goes_back_as_it_came(tmp_path, dst):
    raw = np.random.default_rng(1).integers(-32768, 32768, (600, 520, 2)).astype("<i2")
    tiff(tmp_path / "a.tif", raw.tobytes(), 520, 600, bits=[32], formats=[5])
    converted(tmp_path / "a.tif", dst)
    geotiff.export(dst, tmp_path / "b.tif", compress="NONE", driver="GTiff")
    with gdal_open(tmp_path / "b.tif") as dataset:
        assert dataset.dtypes == ("complex_int16",)
    again = dst.with_name("b.rumi")
    geotiff.convert(tmp_path / "b.tif", again)
    assert rumi.read(again).tobytes() == rumi.read(dst).tobytes() == raw.tobytes()


@pytest.mark.parametrize("tile", [13, 16, (3, 5)])
def test_c13_one_bit(tmp_path, dst, tile):
    rows, cols = np.mgrid[:5, :13]
    array = (rows * 7 + cols * 3) % 5 == 0
    src = tiff(tmp_path / "a.tif", np.packbits(array, axis=1).tobytes(), 13, 5, bits=[1])
    got = converted(src, dst, tile_size=tile)
    assert got.dtype == bool
    assert np.array_equal(got[0], array)
    assert rumi.index(dst).bits_per_sample == 1


@pytest.mark.parametrize(("bits", "sample_format"), [(2, 1), (4, 1), (2, 2), (4, 2)])
def test_c13_two_and_four_bits(tmp_path, dst, bits, sample_format):
    values = np.arange(7 * 6).reshape(6, 7) % (1 << bits)
    planes = (values[..., None] >> np.arange(bits)[::-1]) & 1
    packed = np.packbits(planes.reshape(6, 7 * bits).astype(np.uint8), axis=1)
    src = tiff(tmp_path / "a.tif", packed.tobytes(), 7, 6, bits=[bits], formats=[sample_format])
    got = converted(src, dst, tile_size=4)
    expected = values - (values >> (bits - 1) << bits) if sample_format == 2 else values
    assert got.dtype.name == ("int" if sample_format == 2 else "uint") + str(bits)
    assert np.array_equal(got[0].astype(int), expected)


def test_c13_values_too_large_for_the_width_are_refused():
    from rumi.geotiff.samples import resolve

    stored = resolve(1, 4, "uint8", big_endian=False, name="a.tif")
    with pytest.raises(FormatError, match="a sample is 16, more than 4 bits hold"):
        stored.restore(np.array([3, 16], np.uint8), stored.dtype)


@pytest.mark.parametrize("order", ["<", ">"])
def test_float16_every_pattern(tmp_path, dst, order):
    patterns = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    data = patterns.astype(order + "u2").tobytes()
    tiff(tmp_path / "a.tif", data, 256, 256, bits=[16], formats=[3], order=order)
    got = converted(tmp_path / "a.tif", dst)
    assert got.dtype == np.float16
    assert np.array_equal(got[0].view(np.uint16), patterns)
    for driver in ("COG", "GTiff"):
        geotiff.export(dst, tmp_path / "b.tif", driver=driver)
        with gdal_open(tmp_path / "b.tif") as dataset:
            if has_half():
                assert dataset.dtypes == ("float16",)
                assert np.array_equal(dataset.read(1).view(np.uint16), patterns)
                continue
            assert dataset.tags(1, ns="IMAGE_STRUCTURE")["NBITS"] == "16"
            assert np.array_equal(half_bits(dataset.read(1)), patterns)


def test_half_conversions_are_inverse():
    patterns = np.arange(1 << 16, dtype=np.uint16)
    assert np.array_equal(half_bits(widened_half(patterns)), patterns)
    plain = ~np.isnan(patterns.view(np.float16))
    expected = patterns.view(np.float16).astype(np.float32)
    assert same_bits(widened_half(patterns)[plain], expected[plain])


def test_complex_float16(tmp_path, dst):
    patterns = np.arange(1 << 16, dtype="<u2")
    tiff(tmp_path / "a.tif", patterns.tobytes(), 256, 128, bits=[32], formats=[6])
    got = converted(tmp_path / "a.tif", dst)
    assert rumi.index(dst).encoding.name == "complex_float16"
    if has_half():
        # GDAL has the type, and makes signalling NaNs quiet on its way to complex64.
        quiet = np.where(np.isnan(patterns.view("<f2")), patterns | 0x200, patterns)
        assert got.tobytes() == quiet.tobytes()
        return
    assert got.tobytes() == patterns.tobytes()
    tiff(tmp_path / "b.tif", patterns.tobytes(), 256, 128, bits=[32], formats=[6], order=">")
    refused(tmp_path / "b.tif", dst.with_name("b.rumi"), match="32-bit complex floating point")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("bits", "wide"), [(3, "uint8"), (7, "uint8"), (12, "uint16")])
def test_odd_depths_are_widened_only_on_request(tmp_path, dst, bits, wide, order):
    values = (np.arange(14).reshape(2, 7) * 37) % (1 << bits)
    planes = (values[..., None] >> np.arange(bits)[::-1]) & 1
    data = np.packbits(planes.reshape(2, 7 * bits).astype(np.uint8), axis=1).tobytes()
    src = tiff(tmp_path / "a.tif", data, 7, 2, bits=[bits], order=order)
    refused(src, dst, match=f"depth: {bits} bits a sample, which would become {wide}")
    got = converted(src, dst, drop=["depth"])
    assert got.dtype == wide
    assert np.array_equal(got[0], values)


@pytest.mark.parametrize(
    ("bits", "sample_format"), [(3, 2), (12, 2), (24, 1), (24, 3), (16, 5), (128, 1), (8, 9)]
)
def test_types_that_no_encoding_holds(tmp_path, dst, bits, sample_format):
    src = tiff(tmp_path / "a.tif", bytes(256), 8, 2, bits=[bits], formats=[sample_format])
    refused(src, dst, RumiError, match=r"a\.tif", drop="all")


def test_undefined_sample_format_is_unsigned(tmp_path, dst):
    src = tiff(tmp_path / "a.tif", bytes(range(16)), 8, 2, formats=[4])
    assert converted(src, dst).tobytes() == bytes(range(16))


def test_c14_mixed_depths_and_formats_name_the_band(tmp_path, dst):
    src = tiff(tmp_path / "a.tif", bytes(28), 4, 1, bits=[16, 16, 16, 8], formats=[1] * 4, bands=4)
    refused(src, dst, match="BitsPerSample of band 3 is 8, of band 0 it is 16", drop="all")
    src = tiff(tmp_path / "b.tif", bytes(48), 4, 1, bits=[32] * 3, formats=[3, 3, 1], bands=3)
    refused(src, dst, match="SampleFormat of band 2 is 1, of band 0 it is 3", drop="all")
    src = tiff(tmp_path / "c.tif", bytes(48), 4, 1, bits=[32] * 2, formats=[1] * 3, bands=3)
    refused(src, dst, FormatError, match="BitsPerSample has 2 values for 3 bands", drop="all")


# --- layouts


def test_planar_and_pixel_interleaved_give_the_same_file(tmp_path, dst):
    array = np.random.default_rng(3).integers(0, 255, (5, 40, 30), dtype=np.uint8)
    files = []
    for interleave in ("pixel", "band"):
        src = write(tmp_path / f"{interleave}.tif", array, interleave=interleave)
        assert same_bits(converted(src, dst, tile_size=16, codec="zstd"), array)
        files.append(dst.read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("big", ["NO", "YES"])
@pytest.mark.parametrize("order", ["LITTLE", "BIG"])
def test_byte_orders_and_bigtiff(tmp_path, dst, order, big):
    array = np.random.default_rng(3).integers(0, 1 << 31, (2, 20, 30), dtype=np.uint32)
    src = write(tmp_path / "a.tif", array, ENDIANNESS=order, BIGTIFF=big, compress="lzw")
    assert same_bits(converted(src, dst), array)


@pytest.mark.parametrize("strip", [7, 64, 300])
def test_blocks_of_the_source_need_not_fit_the_tiles(tmp_path, dst, strip, monkeypatch):
    monkeypatch.setattr("rumi.geotiff.blocks._STRIP_BYTES", 1 << 13)
    array = np.random.default_rng(3).integers(0, 99, (2, 300, 90), dtype=np.uint16)
    src = write(tmp_path / "a.tif", array, blockysize=strip, compress="deflate")
    assert same_bits(converted(src, dst, tile_size=(33, 20)), array)
    src = write(tmp_path / "b.tif", array, tiled=True, blockxsize=32, blockysize=64)
    assert same_bits(converted(src, dst, tile_size=(33, 20)), array)


@pytest.mark.parametrize("nodata", [7, None])
@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("written", ["half", "none"])
def test_c21_sparse(tmp_path, dst, nodata, tiled, written):
    layout = {"tiled": True, "blockxsize": 16, "blockysize": 16} if tiled else {"blockysize": 16}
    src = tmp_path / "a.tif"
    with rasterio.open(
        src, "w", driver="GTiff", width=64, height=64, count=1, dtype="uint8", nodata=nodata,
        SPARSE_OK=True, **PLACED, **layout,
    ) as dataset:  # fmt: skip
        width = 16 if tiled else 64
        for number in range(1024 // width // 4 if written == "half" else 0):
            row, col = divmod(number, 64 // width)
            if (row + col) % 2 == 0:
                window = rasterio.windows.Window(col * width, row * 16, width, 16)
                dataset.write(np.full((16, width), 100 + number, np.uint8), 1, window=window)
    with tifffile.TiffFile(src) as file:
        assert 0 in file.pages[0].databytecounts
    with gdal_open(src) as dataset:
        expected = dataset.read()
    assert expected[0, 16, 0] == (nodata or 0)
    got = converted(src, dst, tile_size=16, drop="nodata")
    assert same_bits(got, expected)
    assert (got == (nodata or 0)).any()
    assert rumi.index(dst).byte_counts.min() > 0


def test_c21_memory_does_not_grow_with_a_sparse_image(tmp_path):
    """12,000 x 12,000 uint16 (288 MB) converts in far less than its size."""
    src = tmp_path / "a.tif"
    with rasterio.open(
        src, "w", driver="GTiff", width=12_000, height=12_000, count=1, dtype="uint16",
        SPARSE_OK=True, tiled=True, compress="deflate", **PLACED,
    ):  # fmt: skip
        pass
    program = (
        "import resource, sys; from rumi import geotiff; import rasterio, pyproj, openzl.ext\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "before = peak()\n"
        "geotiff.convert(sys.argv[1], sys.argv[2], threads=1, codec='zstd')\n"
        "print(peak() - before)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, src, tmp_path / "a.rumi"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    assert int(run.stdout) < 200 << 20
    assert rumi.index(tmp_path / "a.rumi").shape == (1, 12_000, 12_000)


def test_absurd_sizes_cost_nothing(tmp_path, dst):
    src = tiff(tmp_path / "a.tif", bytes(16), 2**31 - 1, 2**31 - 1)
    refused(src, dst, RumiError, match="frames, more than|GDAL cannot open it", tile_size=8)
    src = tiff(tmp_path / "b.tif", bytes(16), 4, 4, extra=[(700, LONG, [0])])
    raw = bytearray(src.read_bytes())
    at = raw.index(b"\x02\x01\x03\x00\x01\x00\x00\x00")
    raw[at + 4 : at + 8] = b"\xff\xff\xff\x7f"  # BitsPerSample of two thousand million bands
    src.write_bytes(raw)
    refused(src, dst, FormatError, match="tag 258 claims 2147483647 values of 2 bytes")


# --- what is no GeoTIFF, or a broken one


def test_x01_a_rumi_file_is_named(tmp_path, dst):
    noise = np.random.default_rng(0).integers(0, 256, (1, 128, 128), dtype=np.uint8)
    src = tmp_path / "noise.rumi"
    header = rumi.write(src, noise, tile_size=64, crs=32618, transform=UTM)
    refused(src, dst, FormatError, match="found a rumi file .its 11 tags, and no Compression")
    (tmp_path / "header").write_bytes(bytes(header))
    refused(tmp_path / "header", dst, FormatError, match="found a rumi header blob")
    with pytest.raises(FormatError, match="classic TIFF"):
        rumi.read(write(tmp_path / "plain.tif", noise))


@pytest.mark.parametrize(
    ("content", "kind", "match"),
    [
        (b"", TruncatedError, "expected a GeoTIFF, found 0 bytes"),
        (b"I", FormatError, "bytes starting 49"),
        (b"II*\0", TruncatedError, "TIFF header"),
        (b"<!DOCTYPE html>", FormatError, "bytes starting 3c 21 44"),
        (b"\x89PNG\r\n\x1a\n", FormatError, "gdal_translate"),
        (b"II*\0\x08\0\0\0", TruncatedError, "a directory at byte 8"),
        (b"II*\0\0\0\0\0", FormatError, "without a directory"),
        (b"II+\0\x04\0\0\0" + bytes(8), FormatError, "offsets of 8 bytes, found 4"),
        (b"II*\0\x08\0\0\0\0\0\x08\0\0\0", FormatError, "at byte 8 follows itself"),
    ],
)
def test_foreign_and_empty_files(tmp_path, dst, content, kind, match):
    src = tmp_path / "a.tif"
    src.write_bytes(content)
    refused(src, dst, kind, match=match)


def test_missing_files_and_folders(tmp_path, dst):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        geotiff.convert(tmp_path / "nowhere.tif", dst)
    with pytest.raises(IsADirectoryError):
        geotiff.convert(tmp_path, dst)
    with pytest.raises(UnsupportedError, match="ftp"):
        geotiff.convert("ftp://example.com/a.tif", dst)
    src = write(tmp_path / "a.tif", np.zeros((1, 4, 4), np.uint8))
    with pytest.raises(FileNotFoundError):
        geotiff.convert(src, tmp_path / "no" / "folder.rumi")


@given(st.data())
@settings(max_examples=150)
def test_damage_gives_one_error_or_a_file(tmp_path_factory, data):
    """Never another exception, never a stray file, whatever bytes are wrong."""
    folder = tmp_path_factory.mktemp("damage")
    array = np.arange(2 * 30 * 40, dtype=np.uint16).reshape(2, 30, 40)
    src = write(
        folder / "a.tif", array, compress="deflate", tiled=True, blockxsize=16, blockysize=16
    )
    raw = bytearray(src.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    src.write_bytes(raw[: data.draw(st.integers(0, 2 * len(raw)))])
    out = folder / "out"
    out.mkdir()
    failure = ""
    try:
        geotiff.convert(src, out / "a.rumi", drop="all", codec="zstd")
    except (RumiError, OSError) as error:
        failure = str(error)
    assert not failure or str(src) in failure
    assert [path.name for path in out.iterdir()] == ([] if failure else ["a.rumi"])


def test_text_that_is_no_utf8(tmp_path, dst, capfd):
    name = "Universit\xe9 WGS 84|".encode("latin-1")
    keys = [*utm(), (1026, 34737, len(name), 0)]
    texts = [(34737, ASCII, name + b"\0"), (270, ASCII, b"Kr\xfcger\0"), (315, ASCII, b"\0")]
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=[*geo(keys), *texts])
    refused(src, dst, match="tags: TIFFTAG_IMAGEDESCRIPTION[.]")
    assert geotiff.convert(src, dst, drop="tags").epsg == 32618
    user_defined = [(1024, 0, 1, 1), (1025, 0, 1, 1), (1026, 34737, len(name), 0)]
    extra = [*geo([*user_defined, (3072, 0, 1, 32767)]), texts[0]]
    src = tiff(tmp_path / "b.tif", bytes(16), 4, 4, extra=extra)
    refused(src, dst, FormatError, match="a text in it is not UTF-8")
    assert capfd.readouterr().err == ""


def test_nothing_of_gdal_gets_out(tmp_path, dst, capfd, recwarn):
    """Neither warnings nor lines on standard error, from good and bad files."""
    src = tmp_path / "a.tif"
    tifffile.imwrite(src, np.zeros((64, 64), np.uint8), metadata=None, compression="zlib")
    geotiff.convert(src, dst)
    raw = bytearray(src.read_bytes())
    raw[-20:] = bytes(20)
    src.write_bytes(raw)
    refused(src, dst.with_name("b.rumi"), FormatError, match="rows 0 to 63, columns 0 to 63")
    assert capfd.readouterr().err == ""
    assert [str(warning.message) for warning in recwarn] == []


def test_gdal_prints_nothing_in_a_fresh_process(tmp_path):
    """It has a handler of its own as long as rasterio has set none."""
    extra = [*geo(utm()), (270, ASCII, b"no NUL"), (65000, SHORT, [1])]
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=extra)
    raw = bytearray(src.read_bytes())
    at = raw.index(b"\x0e\x01\x02\x00")  # ImageDescription, moved beyond the end
    raw[at + 4 : at + 12] = b"\x60\0\0\0\0\0\0\x10"
    src.write_bytes(raw)
    program = (
        "import sys; from rumi import geotiff\n"
        "print(geotiff.convert(sys.argv[1], sys.argv[2], drop='all').notes)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, src, tmp_path / "a.rumi"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    assert "ImageDescription" in run.stdout


def test_gdal_settings_stay_as_they_were(tmp_path, dst):
    from rasterio.env import get_gdal_config

    src = write(tmp_path / "a.tif", np.zeros((1, 4, 4), np.uint8))
    before = get_gdal_config("GDAL_CACHEMAX")
    geotiff.convert(src, dst)
    geotiff.export(dst, tmp_path / "b.tif")
    assert get_gdal_config("GDAL_CACHEMAX") == before
    for option in ("GTIFF_REPORT_COMPD_CS", "OSR_USE_NON_DEPRECATED", "GDAL_PAM_ENABLED"):
        assert get_gdal_config(option) is None


def test_threads_do_not_disturb_each_other(tmp_path):
    """Settings of GDAL belong to the process; the last thread puts them back."""
    from rasterio.env import get_gdal_config

    before = get_gdal_config("GDAL_CACHEMAX")
    filters = list(warnings.filters)
    for number, code in enumerate((26591, 32618, 26591, 4326)):
        model = 2 if code == 4326 else 1
        key = 2048 if code == 4326 else 3072
        keys = [(1024, 0, 1, model), (1025, 0, 1, 2), (key, 0, 1, code)]
        tiff(tmp_path / f"{number}.tif", bytes([number] * 16), 4, 4, extra=geo(keys))

    def work(number):
        name = tmp_path / str(number)
        src = tmp_path / f"{number % 4}.tif"
        done = geotiff.convert(src, f"{name}.rumi", codec="store", threads=1)
        geotiff.export(f"{name}.rumi", f"{name}.out.tif", threads=1, overviews=None)
        again = geotiff.inspect(f"{name}.out.tif")
        assert get_gdal_config("OSR_USE_NON_DEPRECATED") is None
        return done.epsg, again.epsg, again.transform == rumi.open(f"{name}.rumi").transform

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(48)))
    assert found == [(code, code, True) for code in (26591, 32618, 26591, 4326)] * 12
    assert warnings.filters == filters
    assert get_gdal_config("GDAL_CACHEMAX") == before
    for option in ("GTIFF_REPORT_COMPD_CS", "OSR_USE_NON_DEPRECATED", "GTIFF_IGNORE_READ_ERRORS"):
        assert get_gdal_config(option) is None


def test_importing_rumi_does_not_import_rasterio():
    program = "import sys, rumi, rumi.geotiff; print('rasterio' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"


def test_without_rasterio_the_error_says_what_to_install(tmp_path, dst, monkeypatch):
    src = write(tmp_path / "a.tif", np.zeros((1, 4, 4), np.uint8))
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'rumi\[geotiff\]'"):
        geotiff.convert(src, dst)
    monkeypatch.undo()
    geotiff.convert(src, dst)
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'rumi\[geotiff\]'"):
        geotiff.export(dst, tmp_path / "b.tif")


# --- nodata


@pytest.mark.parametrize(
    ("text", "dtype", "others"),
    [
        ("18446744073709551615", "uint64", [2**64 - 2, 0]),
        ("1152921504606846977", "uint64", [2**60, 2**60 + 2]),
        ("9223372036854775807", "int64", [2**63 - 2, -1]),
        ("-9223372036854775808", "int64", [-(2**63) + 1, 0]),
        ("-3.4028234663852886e+38", "float32", [-3.4e38, 0]),
        ("nan", "float32", [0, 1]),
        ("-9999", "int16", [-9998, 9999]),
    ],
)
def test_c07_nodata_in_the_domain_of_the_samples(tmp_path, dst, text, dtype, others):
    special = np.array([text]).astype(float)[0] if "." in text or text == "nan" else int(text)
    array = np.array([[[special, *others]]], dtype)
    src = tmp_path / "a.tif"
    tifffile.imwrite(
        src, array[0], metadata=None, software=False, extratags=[(42113, "s", len(text), text)]
    )
    assert refused(src, dst, match=f"nodata: {text.replace('+', '.')}")
    done = geotiff.convert(src, dst, drop=["nodata"])
    assert (done.nodata, done.warnings) == (text, ())
    got = rumi.read(dst)
    assert same_bits(got, array)
    assert nodata_mask(got, done.nodata).tolist() == [[[True, False, False]]]
    geotiff.export(dst, tmp_path / "b.tif", nodata=done.nodata)
    again = geotiff.inspect(tmp_path / "b.tif")
    assert nodata_value(again.nodata, dtype).tobytes() == nodata_value(text, dtype).tobytes()


@pytest.mark.parametrize("text", ["-9999", "70000", "1.5", "nan", "abc"])
def test_c07_nodata_that_no_sample_can_be(tmp_path, dst, text):
    array = np.array([[55537, 4464, 0, 1]], np.uint16)
    src = tmp_path / "a.tif"
    tifffile.imwrite(
        src, array, metadata=None, software=False, extratags=[(42113, "s", len(text), text)]
    )
    with pytest.warns(UserWarning, match=f"nodata {text} is no uint16 sample") as caught:
        done = geotiff.convert(src, dst)
    assert len(caught) == 1
    assert done.nodata == text
    assert len(done.warnings) == 1
    assert not nodata_mask(rumi.read(dst), text).any()


@given(st.integers(-(2**70), 2**70), st.sampled_from(["u1", "i1", "u2", "i4", "u8", "i8"]))
@example(2**53 + 1, "u8")
def test_integer_nodata_is_exact(number, dtype):
    info = np.iinfo(dtype)
    value = nodata_value(str(number), dtype)
    assert (value is None) is not (info.min <= number <= info.max)
    assert value is None or int(value) == number
    assert nodata_value(f"{number}.000", dtype) == value
    assert nodata_value(f"{number}.5", dtype) is None


def test_nodata_texts_at_the_edge():
    assert nodata_value("1e999999999", "int64") is None
    assert nodata_value("1e999999999", "float64") is None
    assert nodata_value("1e-999999999", "uint8") is None
    assert nodata_value("", "float32") is None
    assert nodata_value("inf", "float32") == np.inf
    assert nodata_value("2", "bool") is None
    assert nodata_value("1", "bool") == np.True_
    assert not nodata_mask(np.zeros(3), None).any()
    pair = np.array([(0, 0), (0, 1)], [("real", "<i2"), ("imag", "<i2")])
    assert nodata_mask(pair, "0").tolist() == [True, False]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda e: e.name)
def test_nodata_of_every_encoding(encoding):
    value = nodata_value("1", encoding.dtype)
    samples = np.zeros(2, encoding.dtype)
    samples[1] = value
    assert nodata_mask(samples, "1").tolist() == [False, True]


# --- failing half way, overwriting


class _Stop(BaseException):
    pass


@pytest.mark.parametrize("error", [RuntimeError("decoder"), KeyboardInterrupt(), _Stop()])
def test_c22_a_source_that_fails_half_way_leaves_the_old_file(tmp_path, dst, monkeypatch, error):
    array = np.arange(90 * 90, dtype=np.uint16).reshape(1, 90, 90)
    src = write(tmp_path / "a.tif", array)
    geotiff.convert(src, dst, tile_size=30)
    old = dst.read_bytes()
    original = geotiff.blocks.BlockSource.__getitem__
    calls = []

    def failing(self, key):
        calls.append(key)
        if key[1].start >= 60:
            raise error
        return original(self, key)

    monkeypatch.setattr(geotiff.blocks.BlockSource, "__getitem__", failing)
    with pytest.raises(type(error)):
        geotiff.convert(src, dst, tile_size=30, codec="store")
    assert calls
    assert dst.read_bytes() == old
    assert [path.name for path in dst.parent.iterdir()] == [dst.name]
    monkeypatch.undo()
    assert same_bits(converted(src, dst, tile_size=30), array)


def test_c22_a_source_cut_in_the_middle(tmp_path, dst):
    array = np.random.default_rng(0).integers(0, 255, (1, 90, 90), dtype=np.uint8)
    src = write(tmp_path / "a.tif", array, blockysize=8)
    geotiff.convert(src, dst, tile_size=30)
    old = dst.read_bytes()
    with tifffile.TiffFile(src) as file:
        half = file.pages[0].dataoffsets[6]
    raw = src.read_bytes()
    src.write_bytes(raw[:half])
    with pytest.raises(FormatError, match="rows .* do not decode"):
        geotiff.convert(src, dst, tile_size=30)
    assert dst.read_bytes() == old


@pytest.mark.parametrize("what", ["convert", "export"])
def test_c22_a_full_disk_leaves_the_old_file(tmp_path, what):
    """Stood in for by a limit on the size of a file."""
    array = np.random.default_rng(0).integers(0, 255, (1, 600, 600), dtype=np.uint8)
    src, dst = write(tmp_path / "a.tif", array), tmp_path / "out" / "b"
    if what == "export":
        geotiff.convert(src, tmp_path / "a.rumi")
        src = tmp_path / "a.rumi"
    dst.parent.mkdir()
    dst.write_bytes(b"old")
    program = (
        "import resource, sys; from rumi import geotiff\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        f"geotiff.{what}(sys.argv[1], sys.argv[2])"
    )
    run = subprocess.run([sys.executable, "-c", program, src, dst], capture_output=True, text=True)
    assert run.returncode == 1
    assert "Error: " in run.stderr.strip().splitlines()[-1]
    assert dst.read_bytes() == b"old"
    assert [path.name for path in dst.parent.iterdir()] == ["b"]


def test_overwriting_is_a_choice(tmp_path, dst):
    src = write(tmp_path / "a.tif", np.zeros((1, 4, 4), np.uint8))
    geotiff.convert(src, dst, overwrite=False)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        geotiff.convert(src, dst, overwrite=False)
    with pytest.raises(ValueError, match="the same file"):
        geotiff.convert(src, src)
    assert src.read_bytes()[:2] == b"II"


def test_names_that_are_no_urls(tmp_path):
    folder = tmp_path / "ñandú 出典 data" / "a b#c?d%20"
    folder.mkdir(parents=True)
    array = np.arange(16, dtype=np.uint8).reshape(1, 4, 4)
    src = folder / "s3:x?y.tif"
    src.write_bytes(write(tmp_path / "a.tif", array).read_bytes())
    assert same_bits(converted(src, folder / "a.rumi"), array)
    geotiff.export(folder / "a.rumi", folder / "b#?.tif")
    assert geotiff.inspect(folder / "b#?.tif").shape == (1, 4, 4)


def test_progress_and_the_same_bytes_each_time(tmp_path, dst):
    array = np.random.default_rng(0).integers(0, 255, (2, 90, 90), dtype=np.uint8)
    src = write(tmp_path / "a.tif", array)
    seen = []
    geotiff.convert(src, dst, tile_size=30, progress=lambda *numbers: seen.append(numbers))
    assert seen[-1] == (18, 18)
    assert seen == sorted(seen)
    first = dst.read_bytes()
    geotiff.convert(src, dst, tile_size=30, threads=2)
    assert dst.read_bytes() == first
    direct = dst.with_name("direct.rumi")
    rumi.write(direct, array, tile_size=30, crs=32618, transform=UTM)
    assert direct.read_bytes() == first


def test_wrong_arguments_are_refused_before_reading(tmp_path, dst):
    src = write(tmp_path / "a.tif", np.zeros((1, 4, 4), np.uint8))
    with pytest.raises(ValueError, match="no loss is called 'nodta'"):
        geotiff.convert(tmp_path / "nowhere.tif", dst, drop=["nodta"])
    with pytest.raises(ValueError, match="allow_no_crs"):
        geotiff.convert(src, dst, drop="crs")
    with pytest.raises(TypeError, match="drop"):
        geotiff.convert(src, dst, drop=[1])
    with pytest.raises(ValueError, match="tile_size"):
        geotiff.convert(src, dst, tile_size=0)
    with pytest.raises(ValueError, match="frame_unit"):
        geotiff.convert(src, dst, frame_unit="row")
    with pytest.raises(ValueError, match="EPSG code"):
        geotiff.convert(src, dst, crs=99999)
    assert not dst.exists()


def test_extra_samples_and_short_counts_do_not_matter(tmp_path, dst):
    """BitsPerSample once for three bands, as some writers do."""
    src = tiff(
        tmp_path / "a.tif", bytes(range(48)), 4, 4, bits=[8], formats=[1], bands=3,
        extra=[(338, SHORT, [0, 0])],
    )  # fmt: skip
    assert same_bits(
        converted(src, dst), np.moveaxis(np.arange(48, dtype=np.uint8).reshape(4, 4, 3), -1, 0)
    )
