"""Second readers: GDAL (rasterio) and tifffile agree with our IFD, tag by tag.

Neither knows the frames. A rumi file has no Compression tag, so both take it for an
uncompressed TIFF; what stands before the frames they read as we wrote it.
"""

import logging
import struct

import numpy as np
import oracle
import pytest
import rasterio
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st

import rumi
from rumi.geotiff import gdal

UTM = (10.0, 0.0, 300000.0, 0.0, -10.0, 8500000.0)
PLACES = {
    "none": {},
    "none, point": {"raster_type": "point"},
    "projected": {"crs": 32718, "transform": UTM},
    "projected outside 32xxx": {"crs": 2193, "transform": UTM},
    "geographic": {"crs": 4326, "transform": (0.01, 0.0, -77.0, 0.0, -0.01, -12.0)},
    "geographic outside 4xxx": {"crs": 7844, "transform": (0.5, 0.0, 130.0, 0.0, -0.5, -20.0)},
    "point": {"crs": 32718, "transform": UTM, "raster_type": "point"},
    "south-up": {"crs": 32633, "transform": (10.0, 0.0, 1000.0, 0.0, 10.0, 4000.0)},
    "rotated": {"crs": 3857, "transform": (1.0, 0.5, 100.0, 0.25, -1.0, 200.0)},
    "rotated, point": {
        "crs": 3857,
        "transform": (1.0, 0.5, 100.0, 0.25, -1.0, 200.0),
        "raster_type": "point",
    },
}
# What libtiff has no word for: it refuses the private sample formats.
GDAL_PAIRS = [pair for pair in oracle.DTYPES if pair[0] < 100]
GDAL_TYPES = {
    (1, 16): "uint16",
    (1, 32): "uint32",
    (1, 64): "uint64",
    (2, 8): "int8",
    (2, 16): "int16",
    (2, 32): "int32",
    (2, 64): "int64",
    (3, 16): "float32",
    (3, 32): "float32",
    (3, 64): "float64",
    (5, 32): "complex_int16",
    # GDAL's CInt32, for which rasterio has no name of its own.
    (5, 64): "complex64",
    # Four bytes that GDAL 3.9 cannot take for a complex number: it says UInt32.
    (6, 32): "uint32",
    (6, 64): "complex64",
    (6, 128): "complex128",
}


@st.composite
def files(draw, pairs):
    """What `rumi.write` takes: samples of any encoding and shape, and options."""
    pair = draw(st.sampled_from(pairs))
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 40), st.integers(1, 40)))
    options = {
        "tile_size": (draw(st.integers(1, 32)), draw(st.integers(1, 32))),
        "frame_unit": draw(st.sampled_from(["tile", "cell"])),
        **PLACES[draw(st.sampled_from(list(PLACES)))],
    }
    return oracle.random_samples(pair, shape, seed=shape[1]), options


def stored(place):
    """The six coefficients as they stand in the file: of pixel centres for a point."""
    if "transform" not in place:
        return None
    a, b, c, d, e, f = place["transform"]
    if place.get("raster_type") == "point":
        c, f = c + a / 2 + b / 2, f + d / 2 + e / 2
    return a, b, c, d, e, f


def expected_tags(header, options):
    """Number, type, count and values of the eleven tags, as the specification's tables say."""
    bands, height, width = header.shape
    a, b, c, d, e, f = stored(options) or (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    epsg = options.get("crs")
    geographic = epsg in (4326, 7844)
    model = 0 if epsg is None else 2 if geographic else 1
    key = 2048 if epsg is None or geographic else 3072
    raster = 2 if options.get("raster_type") == "point" else 1
    matrix = (a, b, 0.0, c, d, e, 0.0, f, *[0.0] * 7, 1.0)
    keys = (1, 1, 0, 3, 1024, 0, 1, model, 1025, 0, 1, raster, key, 0, 1, epsg or 0)
    number = header.frame_count
    return [
        (256, 4, 1, (width,)),
        (257, 4, 1, (height,)),
        (258, 3, bands, (header.bits_per_sample,) * bands),
        (277, 3, 1, (bands,)),
        (322, 3, 1, (header.tile_width,)),
        (323, 3, 1, (header.tile_length,)),
        (324, 16, number, tuple(header.offsets.tolist())),
        (325, 4, number, tuple(header.byte_counts.tolist())),
        (339, 3, bands, (header.sample_format,) * bands),
        (34264, 12, 16, matrix),
        (34735, 3, 16, keys),
    ]


def as_tuple(value):
    return tuple(value) if isinstance(value, tuple | list) else (int(value),)


@given(files(list(oracle.DTYPES)))
@settings(max_examples=150)
def test_tifffile_sees_our_index(tmp_path_factory, file):
    """Every tag: its number, type, count, where its value stands, and the value."""
    values, options = file
    path = tmp_path_factory.getbasetemp() / "second.rumi"
    header = rumi.write(path, values, codec="store", **options)
    data = path.read_bytes()
    # It complains about sample formats that TIFF does not have, and goes on.
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    with tifffile.TiffFile(path) as tiff:
        assert (tiff.is_bigtiff, tiff.byteorder, len(tiff.pages)) == (True, "<", 1)
        (page,) = tiff.pages
        assert page.offset == 16
        found = [(t.code, int(t.dtype), t.count, as_tuple(t.value)) for t in page.tags]
        assert found == expected_tags(header, options)
        position = 252
        for tag, (code, kind, count, expected) in zip(
            page.tags, expected_tags(header, options), strict=True
        ):
            size = struct.calcsize(oracle.LETTERS[kind]) * count
            inside = oracle.entry_at(code) + 12
            assert tag.valueoffset == (inside if size <= 8 else position)
            position += size if size > 8 else 0
            raw = struct.pack(f"<{count}{oracle.LETTERS[kind]}", *expected)
            assert data[tag.valueoffset :][:size] == raw
        assert position == header.base_frame_offset == page.dataoffsets[0]
        assert page.dataoffsets == tuple(header.offsets.tolist())
        assert page.databytecounts == tuple(header.byte_counts.tolist())
        geotiff = tiff.geotiff_metadata
        assert int(geotiff["GTRasterTypeGeoKey"]) == expected_tags(header, options)[10][3][11]
        rows = np.array(expected_tags(header, options)[9][3]).reshape(4, 4).tolist()
        assert geotiff["ModelTransformation"] == rows


@given(files(GDAL_PAIRS))
@settings(max_examples=150)
@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_gdal_sees_our_index(tmp_path_factory, file):
    """Sizes, tiles, sample type, and where GDAL would look for the first of its blocks."""
    values, options = file
    path = tmp_path_factory.getbasetemp() / "second.rumi"
    header = rumi.write(path, values, codec="store", **options)
    pair = header.sample_format, header.bits_per_sample
    with rasterio.open(path) as dataset:
        assert dataset.driver == "GTiff"
        assert (dataset.count, *dataset.shape) == header.shape
        assert set(dataset.block_shapes) == {header.tile_shape}
        # From GDAL 3.11 on halves are a type, before they were floats of fewer bits.
        half = pair == (3, 16) and gdal.has_half()
        assert set(dataset.dtypes) == {"float16" if half else GDAL_TYPES.get(pair, "uint8")}
        bits = dataset.tags(1, ns="IMAGE_STRUCTURE").get("NBITS")
        assert bits == (str(pair[1]) if pair[1] < 8 or (pair == (3, 16) and not half) else None)
        assert dataset.get_tag_item("IFD_OFFSET", "TIFF", bidx=1) == "16"
        # It knows no tile-interleaved order, so its block is the entry of that number.
        across = header.tiles_across
        for index in {0, across - 1, across * header.tiles_down - 1}:
            place = f"{index % across}_{index // across}"
            offset = dataset.get_tag_item(f"BLOCK_OFFSET_{place}", "TIFF", bidx=1)
            size = dataset.get_tag_item(f"BLOCK_SIZE_{place}", "TIFF", bidx=1)
            assert (int(offset), int(size)) == (header.offset(index), header.byte_count(index))
        assert dataset.overviews(1) == []
        assert dataset.nodata is None


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_gdal_sees_our_georeferencing(tmp_path, place):
    """CRS by its code and kind, corner-based transform bit for bit, raster type."""
    place = PLACES[place]
    path = tmp_path / "a.rumi"
    rumi.write(path, oracle.ramp(2, 9, 12, np.uint16), tile_size=4, **place)
    image = rumi.open(path)
    with rasterio.open(path) as dataset:
        point = place.get("raster_type") == "point"
        assert dataset.tags()["AREA_OR_POINT"] == ("Point" if point else "Area")
        if "crs" not in place:
            # Model type 0: no code, and a matrix that says nothing. GDAL makes of it a
            # local system in unknown units; we say that there is none.
            assert dataset.crs is None or dataset.crs.to_epsg() is None
            assert (image.epsg, image.transform) == (None, None)
            return
        assert dataset.crs.to_epsg() == place["crs"] == image.epsg
        assert dataset.crs.is_geographic == (place["crs"] in (4326, 7844))
        assert image.crs.is_geographic == dataset.crs.is_geographic
        assert tuple(dataset.transform)[:6] == place["transform"] == image.transform
        assert image.bounds == (
            min(dataset.xy(r, c, offset="ul")[0] for r in (0, 9) for c in (0, 12)),
            min(dataset.xy(r, c, offset="ul")[1] for r in (0, 9) for c in (0, 12)),
            max(dataset.xy(r, c, offset="ul")[0] for r in (0, 9) for c in (0, 12)),
            max(dataset.xy(r, c, offset="ul")[1] for r in (0, 9) for c in (0, 12)),
        )


@given(
    st.sampled_from(["area", "point"]),
    st.tuples(*[st.floats(-1e6, 1e6, width=32)] * 6).filter(lambda t: t[0] * t[4] != t[1] * t[3]),
)
@settings(max_examples=100)
@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_gdal_and_we_agree_on_any_transform(tmp_path_factory, raster_type, transform):
    """What GDAL makes of our bytes is what we make of them, with a point's half pixel too."""
    path = tmp_path_factory.getbasetemp() / "second.rumi"
    place = {"crs": 32633, "transform": transform, "raster_type": raster_type}
    rumi.write(path, np.zeros((1, 2, 2), np.uint8), codec="store", **place)
    with rasterio.open(path) as dataset:
        assert tuple(dataset.transform)[:6] == rumi.open(path).transform


@pytest.mark.parametrize("pair", [pair for pair in oracle.DTYPES if pair[0] >= 100], ids=str)
def test_gdal_refuses_the_private_types(tmp_path, pair):
    """Rather than take their samples for something else."""
    path = tmp_path / "a.rumi"
    rumi.write(path, oracle.random_samples(pair, (1, 4, 4)))
    with pytest.raises(rasterio.errors.RasterioIOError, match="SampleFormat"):
        rasterio.open(path)
