"""The xarray engine and writer: C01-C03, C16 and C17 on this route, requirements 4, 12, 38, 39."""

import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import oracle
import pytest
import servers

import rumi
from rumi import orthogonal
from rumi.errors import UnsupportedError
from rumi.georef import Georeferencing

xr = pytest.importorskip("xarray", reason="xarray is not installed (extra xarray)")
dask = pytest.importorskip("dask", reason="Dask is not installed (extra xarray)")
da = pytest.importorskip("dask.array", reason="Dask is not installed (extra xarray)")

from rumi.xarray import RumiBackend  # noqa: E402
from rumi.xarray import blocks as block_module  # noqa: E402
from rumi.xarray.backend import ImageArray  # noqa: E402

# affine 3 on behalf of rioxarray.
pytestmark = pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")

NORTH_UP = (30.0, 0.0, 500_000.0, 0.0, -30.0, 4_600_000.0)
PLACE = {"crs": 32618, "transform": NORTH_UP}


def write(path, values, **options):
    rumi.write(path, values, **{"tile_size": 16, "codec": "zstd", **options})
    return str(path)


def open_dataset(path, **options):
    return xr.open_dataset(path, engine=RumiBackend, **options)


@pytest.fixture
def values():
    return oracle.ramp(3, 60, 100)


@pytest.fixture
def path(tmp_path, values):
    return write(tmp_path / "a.rumi", values, **PLACE)


# --- Opening


@pytest.mark.parametrize(
    ("unit", "bands"), [("tile", (1, 1, 1)), ("cell", (3,))], ids=["tile", "cell"]
)
def test_chunks_are_frames_cut_at_the_edges(tmp_path, unit, bands):
    ramp = oracle.ramp(3, 513, 1025)
    path = write(tmp_path / "a.rumi", ramp, tile_size=512, frame_unit=unit)
    found = open_dataset(path, chunks={}).band_data
    assert found.dims == ("band", "y", "x")
    assert found.chunks == (bands, (512, 1), (512, 512, 1))
    assert found.encoding["preferred_chunks"] == {"band": bands, "y": (512, 1), "x": (512, 512, 1)}
    assert oracle.same_bits(found.values, ramp)
    assert oracle.same_bits(open_dataset(path).band_data.values, ramp)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 5, 7)])
def test_images_smaller_than_a_tile(tmp_path, shape):
    path = write(tmp_path / "a.rumi", oracle.ramp(*shape), tile_size=512)
    found = open_dataset(path, chunks={}).band_data
    assert found.chunks == ((1,) * shape[0], (shape[1],), (shape[2],))
    assert np.array_equal(found, oracle.ramp(*shape))


@pytest.mark.parametrize("pair", oracle.DTYPES, ids=lambda pair: "{}-{}".format(*pair))
@pytest.mark.parametrize("chunks", [None, {}], ids=["numpy", "dask"])
def test_every_sample_type_keeps_its_bits(tmp_path, pair, chunks):
    samples = oracle.random_samples(pair, (2, 20, 33))
    path = write(tmp_path / "a.rumi", samples)
    found = open_dataset(path, chunks=chunks).band_data
    assert found.dtype == samples.dtype
    assert oracle.same_bits(found.isel(y=slice(3, 19), x=slice(1, 33)).values, samples[:, 3:19, 1:])


def test_a_dataset_says_what_it_is(path, values):
    dataset = open_dataset(path)
    assert list(dataset.data_vars) == ["band_data"]
    assert set(dataset.coords) == {"band", "y", "x", "spatial_ref"}
    assert dataset.band.values.tolist() == [0, 1, 2]
    assert dataset.x.attrs["standard_name"] == "projection_x_coordinate"
    assert (dataset.y.attrs["axis"], dataset.y.attrs["units"]) == ("Y", "metre")
    assert dataset.band_data.attrs == {"AREA_OR_POINT": "Area"}
    assert dataset.encoding["source"] == path
    assert "band_data" in repr(dataset)
    dataset.close()


def test_without_georeferencing_there_are_no_spatial_coordinates(tmp_path, values):
    dataset = open_dataset(write(tmp_path / "a.rumi", values, raster_type="point"))
    assert set(dataset.coords) == {"band"}
    assert dataset.band_data.attrs == {"AREA_OR_POINT": "Point"}
    assert "grid_mapping" not in dataset.band_data.encoding


def test_names_of_bands_and_variables_to_drop(path):
    dataset = open_dataset(path, band_names=["red", "green", "nir"], drop_variables="spatial_ref")
    assert dataset.band_data.sel(band="nir")[2, 1] == 2_002_001
    assert "spatial_ref" not in dataset.coords
    assert not open_dataset(path, drop_variables=["band_data", "nothing"]).data_vars
    for wrong in (["red"], "rgb"):
        with pytest.raises(ValueError, match="band_names: expected 3 names"):
            open_dataset(path, band_names=wrong)


@pytest.mark.parametrize("kind", ["bytes", "memoryview", "image", "path"])
def test_other_sources(path, values, kind):
    with open(path, "rb") as file:
        data = file.read()
    source = {
        "bytes": data,
        "memoryview": memoryview(data),
        "image": rumi.open(path),
        "path": os.fsencode(path),
    }[kind]
    dataset = open_dataset(source)
    assert oracle.same_bits(dataset.band_data.values, values)


def test_errors_keep_their_names(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        open_dataset(tmp_path / "none.rumi")
    with pytest.raises(TypeError, match="an Image has its own"):
        open_dataset(rumi.open(path), header=rumi.index(path))
    header = rumi.index(path)
    with open(path, "r+b") as file:
        file.seek(header.offset(4) + 8)
        file.write(b"\xff" * 8)
    damaged = open_dataset(path, chunks={}).band_data
    with pytest.raises(rumi.CodecError, match=r"frame 4 .*row 0, col 1, band 1"):
        damaged.compute()


def test_an_unknown_code_is_named(path):
    # In the range of the specification, but nothing in the EPSG registry.
    place = Georeferencing(30_000, NORTH_UP)
    with pytest.raises(UnsupportedError, match=r"a\.rumi: EPSG:30000 is not in this PROJ database"):
        open_dataset(path, georeferencing=place)
    assert "x" not in open_dataset(path, georeferencing=False).coords


# --- By header alone


def test_with_a_header_and_a_place_nothing_is_read(path, tmp_path, values):
    header = rumi.index(path)
    hidden = tmp_path / "hidden.rumi"
    os.rename(path, hidden)
    place = Georeferencing(32618, NORTH_UP)
    known = open_dataset(path, header=bytes(header), georeferencing=place)
    bare = open_dataset(path, header=header, georeferencing=False)
    assert known.x[0] == 500_015
    assert "x" not in bare.coords
    os.rename(hidden, path)
    xr.testing.assert_identical(known, open_dataset(path))
    assert oracle.same_bits(bare.band_data.values, values)


def test_a_chunk_of_a_remote_file_is_one_request(path, values, monkeypatch):
    pytest.importorskip("obstore", reason="obstore is not installed (extra remote)")
    servers.clean_environment(monkeypatch)
    header = rumi.index(path)
    with servers.RangeServer() as server, open(path, "rb") as file:
        url = server.put("/a.rumi", file.read(), etag='"one"')
        place = Georeferencing(32618, NORTH_UP)
        dataset = open_dataset(url, header=header, georeferencing=place, chunks={})
        assert server.log == []
        chunk = dataset.band_data[1, 16:32, 32:48]
        assert oracle.same_bits(chunk.values, values[1, 16:32, 32:48])
        offset = header.offset(header.frame_index(1, 2, 1))
        assert server.ranges() == [
            (offset, offset + header.byte_count(header.frame_index(1, 2, 1)))
        ]


# --- Indexing


def selectors(random, size):
    """One of each kind of thing that selects along an axis."""
    low, high = sorted(random.integers(0, size + 1, 2).tolist())
    return [
        slice(None),
        slice(low, high),
        slice(low, high, int(random.integers(1, size))),
        slice(high, low, -1),
        slice(None, None, -int(random.integers(1, size))),
        slice(-size, -1),
        slice(low, size + 50),
        int(random.integers(-size, size)),
        random.integers(-size, size, 7),
        np.sort(random.integers(0, size, 40)),
        np.array([], dtype=int),
        random.integers(0, 2, size).astype(bool),
    ]


@pytest.mark.parametrize("unit", ["tile", "cell"])
@pytest.mark.parametrize("budget", [1, 32 << 20], ids=["little memory", "enough memory"])
def test_whatever_selects_selects_as_in_numpy(tmp_path, values, unit, budget, monkeypatch):
    monkeypatch.setattr(orthogonal, "_WINDOW_BYTES", budget)
    array = open_dataset(write(tmp_path / "a.rumi", values, frame_unit=unit)).band_data
    random = np.random.default_rng(1)
    for _ in range(150):
        key = [
            options[random.integers(len(options))]
            for options in (selectors(random, size) for size in values.shape)
        ]
        expected = values
        for axis, part in reversed(list(enumerate(key))):
            expected = expected[(slice(None),) * axis + (part,)]
        found = array.isel(dict(zip(array.dims, key, strict=True)))
        assert found.shape == expected.shape, key
        assert oracle.same_bits(np.asarray(found.values), np.asarray(expected)), key


def test_selections_compose_and_points_are_found(path, values):
    array = open_dataset(path).band_data
    found = array[:, 10:50][:, ::-3, 5:].isel(band=[2, 0], x=slice(None, None, 2))
    assert np.array_equal(found, values[:, 10:50][:, ::-3, 5:][[2, 0], :, ::2])
    rows, cols = xr.DataArray([3, 59, 3], dims="point"), xr.DataArray([99, 0, 98], dims="point")
    assert np.array_equal(array.isel(y=rows, x=cols), values[:, [3, 59, 3], [99, 0, 98]])
    assert array.sel(x=500_100, y=4_599_000, method="nearest").values.tolist() == [
        33_003,
        1_033_003,
        2_033_003,
    ]
    assert np.array_equal(array.transpose("x", "y", "band")[1:5], values.T[1:5])


def test_what_is_outside(tmp_path, values):
    """C02: xarray cuts slices, and the coordinates with them; nothing else is cut."""
    path = write(tmp_path / "a.rumi", values, **PLACE)
    array = open_dataset(path).band_data
    past = array.isel(y=slice(55, 65), x=slice(0, 5))
    assert past.shape == past.values.shape == (3, 5, 5)
    assert past.y.size == 5
    assert array.isel(y=slice(70, 80)).values.shape == (3, 0, 100)
    for key in ({"y": 60}, {"x": [0, 100]}, {"band": 3}, {"y": -61}):
        with pytest.raises(IndexError):
            array.isel(key).load()
    bare = open_dataset(path, georeferencing=False, drop_variables="band").band_data
    for key in ({"y": 60}, {"x": [0, 100]}, {"band": 3}):
        with pytest.raises(IndexError, match=r"outside|out of (bounds|range)"):
            bare.isel(key).load()


@pytest.mark.parametrize("drop", [(), ("band",)], ids=["labelled", "bare"])
def test_selectors_of_bands(path, values, drop):
    """C03: order and repeats are kept, -1 is the last as in all of xarray, no bools or floats."""
    array = open_dataset(path, drop_variables=drop).band_data
    for good in (-1, [2, 0], [1, 1], np.uint8(2), np.array([0, 2]), slice(0, 2), []):
        expected = values[np.array(good, dtype=int) if isinstance(good, list) else good]
        assert oracle.same_bits(array.isel(band=good).values, expected)
    for wrong, error in (
        (3, IndexError),
        (-4, IndexError),
        (0.0, TypeError),
        ("0", (TypeError, KeyError)),
    ):
        with pytest.raises(error):
            array.isel(band=wrong).load()
    # Some versions of xarray make an integer of it before anybody is asked.
    for wrong in (True, np.bool_(True)):
        with pytest.raises(TypeError, match="a band is an integer, found bool"):
            ImageArray(rumi.open(path))._read((wrong, 0, 0))


def test_crossings_refuse_what_does_not_rise(path):
    image = rumi.open(path)
    for rows in (np.array([3, 2]), np.array([], dtype=int), range(5, 5)):
        with pytest.raises(ValueError, match="rows: expected rising positions"):
            orthogonal.read_crossings(image, None, rows, range(3))
    for rows in (np.array([0, 60]), np.array([-1, 4])):
        with pytest.raises(ValueError, match="outside the image of 60 x 100"):
            orthogonal.read_crossings(image, None, rows, range(3))


def test_a_reduced_read_takes_little_memory(tmp_path):
    values = np.zeros((1, 4096, 4096), np.uint16)
    values[0, ::64, ::64] = 7
    array = open_dataset(write(tmp_path / "a.rumi", values, tile_size=256)).band_data
    array[0, ::512, ::512].load()
    tracemalloc.start()
    try:
        found = array.isel(y=slice(None, None, 64), x=slice(None, None, 64)).values
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found == 7).all()
    assert peak < 34 << 20
    many = array.isel(y=np.arange(0, 4096, 512), x=np.arange(0, 4096, 512)).values
    assert many.shape == (1, 8, 8)


# --- Coordinates


@pytest.mark.parametrize(
    ("kind", "first"), [("point", (500_000, 4_600_000)), ("area", (500_015, 4_599_985))]
)
def test_coordinates_are_pixel_centres(tmp_path, kind, first):
    """C16: Point and Area, in full and in windows, and through a file of our own."""
    corner = (
        NORTH_UP if kind == "area" else (30.0, 0.0, 500_000.0 - 15, 0.0, -30.0, 4_600_000.0 + 15)
    )
    path = write(
        tmp_path / "a.rumi", oracle.ramp(1, 4, 4), crs=32618, transform=corner, raster_type=kind
    )
    dataset = open_dataset(path)
    assert (dataset.x[0], dataset.y[0]) == first
    window = dataset.isel(x=slice(1, 3), y=slice(1, 3))
    assert (window.x[0], window.y[0]) == (first[0] + 30, first[1] - 30)
    window.rumi.to_rumi(tmp_path / "b.rumi", codec="zstd")
    again = open_dataset(tmp_path / "b.rumi")
    assert again.x.equals(window.x)
    assert again.y.equals(window.y)
    assert again.band_data.attrs == {"AREA_OR_POINT": kind.capitalize()}


@pytest.mark.parametrize(
    "transform",
    [
        (10.0, 0.0, 1000.0, 0.0, 10.0, 4000.0),
        (-10.0, 0.0, 200.0, 0.0, -10.0, 50.0),
        (0.1, 0.0, 0.3, 0.0, -0.1, 1e6 / 3),
    ],
    ids=["south up", "east left", "inexact"],
)
def test_coordinates_go_the_way_of_the_data(tmp_path, transform):
    path = write(tmp_path / "a.rumi", oracle.ramp(1, 12, 12), crs=32618, transform=transform)
    dataset = open_dataset(path)
    a, _, c, _, e, f = transform
    assert dataset.x.values.tolist() == [(col + 0.5) * a + c for col in range(12)]
    assert dataset.y.values.tolist() == [(row + 0.5) * e + f for row in range(12)]
    assert oracle.same_bits(dataset.band_data.values, oracle.ramp(1, 12, 12))
    dataset.rumi.to_rumi(tmp_path / "b.rumi")
    assert rumi.open(tmp_path / "b.rumi").transform == transform


ROTATED = [
    (1.0, 0.5, 100.0, 0.0, -1.0, 200.0),
    (26.0, 15.0 + 1e-9, 500_000.0, 15.0, -26.0 - 1e-9, 4_600_000.0),
    (0.0, 10.0, 7.0, -10.0, 0.0, 9.0),
]


@pytest.mark.parametrize("transform", ROTATED, ids=["sheared", "turned", "by 90 degrees"])
@pytest.mark.parametrize("chunks", [None, {}], ids=["numpy", "dask"])
def test_rotated_images_have_two_coordinates_for_each_pixel(tmp_path, transform, chunks):
    path = write(tmp_path / "a.rumi", oracle.ramp(1, 12, 14), crs=32618, transform=transform)
    dataset = open_dataset(path, chunks=chunks)
    assert set(dataset.coords) == {"band", "yc", "xc", "spatial_ref"}
    a, b, c, d, e, f = transform
    rows, cols = np.mgrid[:12, :14] + 0.5
    assert np.allclose(dataset.xc, a * cols + b * rows + c, rtol=1e-15)
    assert np.allclose(dataset.yc, d * cols + e * rows + f, rtol=1e-15)
    assert dataset.xc[3, 5].values == dataset.xc.values[3, 5]
    assert np.array_equal(dataset.yc[2:9:3, [7, 1]], dataset.yc.values[2:9:3, [7, 1]])
    dataset.rumi.to_rumi(tmp_path / "b.rumi")
    assert rumi.open(tmp_path / "b.rumi").transform == transform
    part = dataset.isel(y=slice(None, None, -1), x=slice(3, None))
    part.rumi.to_rumi(tmp_path / "c.rumi")
    again = open_dataset(tmp_path / "c.rumi")
    assert np.allclose(again.xc, part.xc, atol=1e-6)
    assert np.allclose(again.yc, part.yc, atol=1e-6)


@pytest.mark.parametrize("transform", [NORTH_UP, *ROTATED[:2]])
def test_rioxarray_and_odc_geo_read_crs_and_transform(tmp_path, transform):
    pytest.importorskip("rioxarray", reason="rioxarray is not installed")
    pytest.importorskip("odc.geo.xr", reason="odc-geo is not installed")
    path = write(tmp_path / "a.rumi", oracle.ramp(2, 12, 14), crs=32618, transform=transform)
    dataset = open_dataset(path)
    for found in (dataset, dataset.band_data):
        assert found.rio.crs.to_epsg() == 32618
        assert tuple(found.rio.transform())[:6] == transform
        assert found.odc.geobox.crs.epsg == 32618
        assert tuple(found.odc.geobox.transform)[:6] == transform
        assert found.odc.geobox.shape == (12, 14)
    if transform == NORTH_UP:
        assert dataset.rio.bounds() == rumi.open(path).bounds
        part = dataset.isel(x=slice(2, 9), y=slice(3, 8)).band_data
        expected = (30, 0, 500_060, 0, -30, 4_599_910)
        assert tuple(part.rio.transform(recalc=True))[:6] == expected
        assert tuple(part.odc.geobox.transform)[:6] == expected
        assert part.rio.clip_box(*part.rio.bounds()).shape == part.shape
        degrees = part.rio.reproject("EPSG:4326")
        assert degrees.rio.crs.to_epsg() == 4326


def test_degrees(tmp_path):
    path = write(
        tmp_path / "a.rumi",
        oracle.ramp(1, 4, 6),
        crs=4326,
        transform=(0.25, 0.0, -180.0, 0.0, -0.25, 90.0),
    )
    dataset = open_dataset(path)
    assert dataset.x.attrs["standard_name"] == "longitude"
    assert dataset.y.attrs["units"] == "degrees_north"
    assert (dataset.x[0], dataset.y[0]) == (-179.875, 89.875)


# --- Many files, Dask


@pytest.fixture
def series(tmp_path, values):
    """Four dates on one grid, of a step that no double holds exactly."""
    place = {"crs": 32618, "transform": (0.1, 0.0, 500_000.3, 0.0, -0.1, 4_600_000.7)}
    return [write(tmp_path / f"{date}.rumi", values + date, **place) for date in range(4)]


@pytest.mark.parametrize("kind", ["paths", "images"])
@pytest.mark.parametrize("options", [{}, {"parallel": True}], ids=["serial", "parallel"])
def test_files_stack_along_time_with_equal_coordinates(series, values, kind, options):
    cube = rumi.Cube(series)
    dataset = xr.open_mfdataset(
        series if kind == "paths" else list(cube.images),
        engine=RumiBackend,
        combine="nested",
        concat_dim="time",
        join="exact",
        coords="minimal",
        compat="override",
        **options,
    )
    assert dict(dataset.sizes) == {"time": 4, "band": 3, "y": 60, "x": 100}
    assert dataset.spatial_ref.ndim == 0
    found = dataset.band_data.isel(time=slice(1, 3), y=slice(10, 20), x=slice(30, 90))
    assert np.array_equal(found, cube[1:3, :, 10:20, 30:90])
    dataset.close()


def test_a_file_of_another_grid_does_not_stack(series, tmp_path, values):
    moved = write(
        tmp_path / "moved.rumi",
        values,
        crs=32618,
        transform=(0.1, 0.0, 500_000.4, 0.0, -0.1, 4_600_000.7),
    )
    with pytest.raises(ValueError, match=r"(?s)x"):
        xr.open_mfdataset(
            [*series, moved],
            engine=RumiBackend,
            combine="nested",
            concat_dim="time",
            join="exact",
            coords="minimal",
            compat="override",
        )


def test_a_graph_holds_paths_and_headers_only(tmp_path):
    ramp = oracle.ramp(3, 513, 1025)
    path = write(tmp_path / "a.rumi", ramp, tile_size=128, **PLACE)
    dataset = open_dataset(path)
    blob = len(bytes(rumi.index(path)))
    assert len(pickle.dumps(dataset.band_data.variable)) < 1000 + len(path) + blob
    chunked = open_dataset(path, chunks={})
    graph = dict(chunked.band_data.data.__dask_graph__())
    assert len(pickle.dumps(graph)) < 400 * len(graph) + blob
    copy = pickle.loads(pickle.dumps(chunked))
    assert oracle.same_bits(copy.band_data.values, ramp)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_schedulers_of_one_process(path, values, scheduler):
    chunked = open_dataset(path, chunks={"band": -1, "y": 32, "x": 48})
    with dask.config.set(scheduler=scheduler):
        assert oracle.same_bits(chunked.band_data.values, values)
        assert int(chunked.band_data.astype("int64").sum()) == int(values.sum(dtype="int64"))


@pytest.mark.filterwarnings("default::DeprecationWarning")
def test_a_cluster_reads_and_one_writer_writes(path, values, tmp_path):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    # Workers import rumi from where this process found it.
    paths = os.pathsep.join(filter(None, sys.path))
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ.PYTHONPATH": paths}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster),
    ):
        dataset = open_dataset(path, chunks={})
        assert oracle.same_bits(dataset.band_data.values, values)
        (dataset.band_data + 1).rumi.to_rumi(tmp_path / "b.rumi", **PLACE)
    assert oracle.same_bits(rumi.read(tmp_path / "b.rumi"), values + 1)


# --- Writing


@pytest.mark.parametrize("chunks", [None, {}, {"y": 25, "x": 7}], ids=str)
@pytest.mark.parametrize("unit", ["tile", "cell"])
def test_a_copy_through_xarray_is_the_same_file(tmp_path, values, chunks, unit):
    options = {"tile_size": 16, "frame_unit": unit, "codec": "zstd"}
    path = write(tmp_path / "a.rumi", values, **options, **PLACE)
    dataset = open_dataset(path) if chunks is None else open_dataset(path, chunks={}).chunk(chunks)
    header = dataset.rumi.to_rumi(tmp_path / "b.rumi", **options)
    assert (tmp_path / "b.rumi").read_bytes() == (tmp_path / "a.rumi").read_bytes()
    assert header == rumi.index(path)


def labelled(values, x=None, y=None, dims=("band", "y", "x"), **attributes):
    """A data array as others make them, in EPSG:32618 where there are labels."""
    sides = dict(zip(dims, values.shape, strict=True))
    coords = {}
    if x is not None:
        coords[dims[-1]] = np.asarray(x)[: sides[dims[-1]]]
        coords[dims[-2]] = np.asarray(y)[: sides[dims[-2]]]
    return xr.DataArray(values, dims=dims, coords=coords, attrs=attributes)


@pytest.mark.parametrize(
    ("dims", "order"),
    [(("y", "x", "band"), (1, 2, 0)), (("x", "band", "y"), (2, 0, 1)), (("t", "lat", "lon"), None)],
)
def test_any_order_of_dimensions(tmp_path, values, dims, order):
    array = values if order is None else values.transpose(order)
    for pixels in (array, da.from_array(array, chunks=20)):
        xr.DataArray(pixels, dims=dims).rumi.to_rumi(tmp_path / "a.rumi", tile_size=32)
        assert oracle.same_bits(rumi.read(tmp_path / "a.rumi"), values)
    path = write(tmp_path / "b.rumi", values)
    lazy = open_dataset(path).band_data.transpose("y", "band", "x")
    lazy.rumi.to_rumi(tmp_path / "c.rumi")
    assert oracle.same_bits(rumi.read(tmp_path / "c.rumi"), values)


def test_two_dimensions_are_one_band(tmp_path, values):
    for pixels in (values[0], da.from_array(values[0], chunks=17)):
        xr.DataArray(pixels, dims=("y", "x")).rumi.to_rumi(tmp_path / "a.rumi")
        assert oracle.same_bits(rumi.read(tmp_path / "a.rumi"), values[:1])


def test_parts_keep_their_place(tmp_path, path):
    dataset = open_dataset(path)
    for part in (
        dataset.isel(y=slice(7, 30), x=slice(11, 90)),
        dataset.isel(y=slice(None, None, -1)),
        dataset.isel(x=slice(5, None, 3), y=slice(None, None, 2)),
        dataset.isel(x=[40], y=[3]),
    ):
        part.rumi.to_rumi(tmp_path / "b.rumi", codec="zstd")
        again = open_dataset(tmp_path / "b.rumi")
        xr.testing.assert_equal(again.drop_vars("spatial_ref"), part.drop_vars("spatial_ref"))


def test_arrays_of_rioxarray_and_odc_geo(tmp_path, values):
    pytest.importorskip("rioxarray", reason="rioxarray is not installed")
    odc = pytest.importorskip("odc.geo.xr", reason="odc-geo is not installed")
    from affine import Affine
    from odc.geo.geobox import GeoBox

    array = labelled(values, x=np.arange(100) * 2.0 + 7, y=np.arange(60) * -3.0)
    array.rio.write_crs(2193).rumi.to_rumi(tmp_path / "a.rumi")
    image = rumi.open(tmp_path / "a.rumi")
    assert (image.epsg, image.transform) == (2193, (2.0, 0.0, 6.0, 0.0, -3.0, 1.5))
    box = GeoBox((60, 100), Affine(0.25, 0, -10, 0, -0.25, 50), 4326)
    odc.wrap_xr(values[0], box).rumi.to_rumi(tmp_path / "b.rumi")
    assert rumi.open(tmp_path / "b.rumi").epsg == 4326
    assert rumi.open(tmp_path / "b.rumi").transform == tuple(box.transform)[:6]


@pytest.mark.filterwarnings("ignore:Supplying chunks as dimension-order tuples")
def test_a_geotiff_of_rioxarray(tmp_path):
    rioxarray = pytest.importorskip("rioxarray", reason="rioxarray is not installed")
    from rumi import geotiff
    from rumi.demo import scene_path

    with rioxarray.open_rasterio(scene_path(), chunks=True) as array:
        array.rumi.to_rumi(tmp_path / "a.rumi", tile_size=128, codec="zstd")
        geotiff.convert(scene_path(), tmp_path / "b.rumi", tile_size=128, codec="zstd")
    assert (tmp_path / "a.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()


def test_labels_of_few_digits_are_regular_enough(tmp_path, values):
    x = (np.arange(100) * 0.01 + 170.005).astype(np.float32)
    y = (np.arange(60) * -0.01 - 40.005).astype(np.float32)
    labelled(values, x=x, y=y).rumi.to_rumi(tmp_path / "a.rumi", crs=4326)
    a, _, c, _, e, f = rumi.open(tmp_path / "a.rumi").transform
    assert (a, c, e, f) == pytest.approx((0.01, 170, -0.01, -40), rel=1e-4)


IRREGULAR = np.arange(100.0)
IRREGULAR[7] += 0.01


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"x": IRREGULAR, "y": np.arange(60.0)}, "x: the labels are irregular .label 7 is 7.01"),
        ({"x": np.arange(100.0), "y": np.ones(60)}, "y: the labels are irregular"),
        ({"x": np.arange(100.0), "y": np.full(60, np.nan)}, "y: expected finite labels"),
        ({"x": np.arange(100.0), "y": list("ab" * 30)}, "y: expected numbers"),
        (
            {"x": np.arange(100.0), "y": np.arange(60).astype("datetime64[ns]")},
            "y: expected numbers",
        ),
    ],
)
def test_irregular_labels_are_refused(tmp_path, values, labels, words):
    with pytest.raises(ValueError, match=words):
        labelled(values, **labels).rumi.to_rumi(tmp_path / "a.rumi", crs=32618)
    assert os.listdir(tmp_path) == []


def test_half_a_place_is_refused(tmp_path, values):
    array = labelled(values, x=np.arange(100.0), y=np.arange(60.0))
    target = tmp_path / "a.rumi"
    with pytest.raises(ValueError, match="coordinates but no CRS: give crs="):
        array.rumi.to_rumi(target)
    with pytest.raises(ValueError, match="found one"):
        array.drop_vars("x").rumi.to_rumi(target)
    with pytest.raises(ValueError, match="CRS but neither coordinates nor a GeoTransform"):
        array.drop_vars(["x", "y"]).rumi.to_rumi(target, crs=32618)
    with pytest.raises(ValueError, match="one label tells no pixel size"):
        array[:, :1].rumi.to_rumi(target, crs=32618)
    swath = array.drop_vars(["x", "y"]).assign_coords(
        lat=(("y", "x"), values[0]), lon=(("y", "x"), values[0])
    )
    with pytest.raises(ValueError, match=r"two-dimensional coordinates \['lat', 'lon'\]"):
        swath.rumi.to_rumi(target)
    assert os.listdir(tmp_path) == []
    array[:, :1].rumi.to_rumi(target, crs=32618, transform=NORTH_UP)
    assert rumi.open(target).transform == NORTH_UP
    array.drop_vars(["x", "y"]).rumi.to_rumi(target)
    assert rumi.open(target).epsg is None


def test_coordinates_that_are_no_plane_are_refused(tmp_path):
    path = write(tmp_path / "a.rumi", oracle.ramp(1, 12, 14), crs=32618, transform=ROTATED[0])
    dataset = open_dataset(path)
    bent = dataset.assign_coords(yc=dataset.yc + 0.01 * dataset.xc**2)
    with pytest.raises(ValueError, match="yc: the coordinates are no affine function"):
        bent.rumi.to_rumi(tmp_path / "b.rumi")
    with pytest.raises(ValueError, match="tells no rotation"):
        dataset.isel(y=[4]).rumi.to_rumi(tmp_path / "b.rumi")
    labels = dataset.drop_vars(["xc", "yc"]).assign_coords(x=np.arange(14.0), y=np.arange(12.0))
    with pytest.raises(ValueError, match="GeoTransform of the array is rotated"):
        labels.rumi.to_rumi(tmp_path / "b.rumi")


def test_a_crs_without_a_code_is_refused(tmp_path, values):
    pyproj = pytest.importorskip("pyproj")
    array = labelled(values, x=np.arange(100.0), y=np.arange(60.0))
    reference = pyproj.CRS("ESRI:54030").to_cf()
    with pytest.raises(UnsupportedError, match="ESRI:54030"):
        array.assign_coords(spatial_ref=((), 0, reference)).rumi.to_rumi(tmp_path / "a.rumi")
    reference = pyproj.CRS(32618).to_cf()
    named = array.assign_coords(crs=((), 0, reference))
    named.encoding["grid_mapping"] = "crs: x y"
    named.rumi.to_rumi(tmp_path / "a.rumi")
    assert rumi.open(tmp_path / "a.rumi").epsg == 32618


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda a: a.assign_attrs(_FillValue=-9999), "nodata: -9999"),
        (lambda a: a.assign_attrs(nodata=0), "nodata: 0"),
        (lambda a: a.assign_attrs(nodatavals=(-1, -1, -1)), r"nodata: \(-1, -1, -1\)"),
        (lambda a: a.assign_attrs(missing_value="none"), "nodata: none"),
        (lambda a: a.assign_attrs(scale_factor=0.1), "scale_offset: 0.1 x sample"),
        (lambda a: a.assign_attrs(long_name=("red", "nir", "x")), "band_names"),
        (lambda a: a.assign_coords(band=["red", "nir", "x"]), r"band_names: \['red'"),
    ],
)
def test_what_would_be_lost_is_named(tmp_path, values, change, name):
    array = change(labelled(values))
    with pytest.raises(UnsupportedError, match=name) as caught:
        array.rumi.to_rumi(tmp_path / "a.rumi")
    assert os.listdir(tmp_path) == []
    kind = name.partition(":")[0]
    assert f"drop=['{kind}']" in str(caught.value)
    array.rumi.to_rumi(tmp_path / "a.rumi", drop=kind)
    assert oracle.same_bits(rumi.read(tmp_path / "a.rumi"), values)
    with pytest.raises(ValueError, match="no loss is called 'colour'"):
        array.rumi.to_rumi(tmp_path / "a.rumi", drop=["colour"])


def test_masked_arrays_are_named_too(tmp_path, values):
    masked = labelled(values.astype(np.float32)).where(values % 2 == 0)
    masked.encoding["_FillValue"] = -9999
    with pytest.raises(UnsupportedError, match=r"nodata: -9999 \(encoding _FillValue\)"):
        masked.rumi.to_rumi(tmp_path / "a.rumi")
    # NaN marks itself, and xarray writes it into every encoding.
    masked.encoding |= {"_FillValue": np.nan, "missing_value": [np.nan]}
    masked.rumi.to_rumi(tmp_path / "a.rumi")
    assert np.isnan(rumi.read(tmp_path / "a.rumi")).sum() == (values % 2).sum()


def test_datasets_with_one_image(tmp_path, values):
    one = xr.Dataset({"red": (("y", "x"), values[0]), "cloud_cover": ((), 0.3)})
    one.rumi.to_rumi(tmp_path / "a.rumi")
    assert oracle.same_bits(rumi.read(tmp_path / "a.rumi"), values[:1])
    two = one.assign(nir=(("y", "x"), values[1]))
    with pytest.raises(ValueError, match=r"found \['red', 'nir'\]"):
        two.rumi.to_rumi(tmp_path / "a.rumi")
    stacked = two[["red", "nir"]].to_dataarray("band")
    stacked.rumi.to_rumi(tmp_path / "a.rumi", drop="band_names")
    assert oracle.same_bits(rumi.read(tmp_path / "a.rumi"), values[:2])


def test_other_dimensions_are_refused(tmp_path, values):
    with pytest.raises(ValueError, match=r"found dimensions \['time', 'band'\]"):
        labelled(values).expand_dims("time").rumi.to_rumi(tmp_path / "a.rumi")
    with pytest.raises(ValueError, match="expected dimensions y and x"):
        labelled(values, dims=("band", "row", "col")).rumi.to_rumi(tmp_path / "a.rumi")
    with pytest.raises(UnsupportedError, match="dtype"):
        labelled(values.astype("datetime64[ns]")).rumi.to_rumi(tmp_path / "a.rumi")


# --- Streams


class Counted:
    """A lazy array that counts how often each of its chunks is computed."""

    def __init__(self, shape, chunks, dtype=np.uint8):
        self.computed = []
        blank = da.zeros(shape, chunks=chunks, dtype=dtype)
        self.array = blank.map_blocks(self._fill, dtype=dtype, meta=np.zeros((0, 0, 0), dtype))

    def _fill(self, block, block_info=None):
        place = block_info[0]["chunk-location"]
        self.computed.append(place)
        return block + np.uint8(sum(place))


def test_every_chunk_is_computed_once_and_memory_is_bounded(tmp_path):
    # 16 rows of chunks of 1 MiB.
    counted = Counted((1, 4096, 4096), (1, 256, 4096))
    array = xr.DataArray(counted.array, dims=("band", "y", "x"))
    tracemalloc.start()
    try:
        array.rumi.to_rumi(tmp_path / "a.rumi", tile_size=64, codec="zstd", threads=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sorted(counted.computed) == [(0, row, 0) for row in range(16)]
    assert peak < 8 << 20
    found = rumi.read(tmp_path / "a.rumi")
    assert found[0, ::256, 17].tolist() == list(range(16))


@pytest.mark.parametrize("kept", [0, 256 << 20], ids=["little memory", "enough memory"])
@pytest.mark.parametrize("chunks", [(2, 33, 20), (1, 7, 90), (1, 70, 11)], ids=str)
def test_chunks_need_not_fit_the_tiles(tmp_path, kept, chunks, monkeypatch):
    monkeypatch.setattr(block_module, "_KEPT_BYTES", kept)
    samples = oracle.random_samples((1, 16), (2, 70, 90))
    array = xr.DataArray(da.from_array(samples, chunks=chunks), dims=("band", "y", "x"))
    array.rumi.to_rumi(tmp_path / "a.rumi", tile_size=(16, 24))
    assert oracle.same_bits(rumi.read(tmp_path / "a.rumi"), samples)


def test_a_failing_chunk_leaves_no_file(tmp_path, values):
    def fail(block):
        raise RuntimeError("the source is broken")

    broken = da.from_array(values, chunks=20).map_blocks(fail, dtype=values.dtype, meta=values[:0])
    (tmp_path / "a.rumi").write_bytes(b"old")
    with pytest.raises(RuntimeError, match="the source is broken"):
        xr.DataArray(broken, dims=("band", "y", "x")).rumi.to_rumi(
            tmp_path / "a.rumi", codec="zstd"
        )
    assert os.listdir(tmp_path) == ["a.rumi"]
    assert (tmp_path / "a.rumi").read_bytes() == b"old"


def test_unknown_chunk_sizes_are_refused(tmp_path, values):
    flat = da.from_array(values[0], chunks=20)
    unknown = flat[(flat > 5).any(axis=1)]
    with pytest.raises(ValueError, match="sizes of the Dask array are unknown"):
        block_module.DaskBlocks(unknown)


# --- Installation


def test_xarray_finds_the_engine(path, values, tmp_path, monkeypatch):
    """As where rumi is installed, by the entry point of pyproject.toml."""
    import tomllib
    from pathlib import Path

    from xarray.backends import refresh_engines

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    ((name, target),) = project["entry-points"]["xarray.backends"].items()
    folder = tmp_path / "site" / "rumi_for_a_test-0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: rumi-for-a-test\nVersion: 0\n")
    (folder / "entry_points.txt").write_text(f"[xarray.backends]\n{name} = {target}\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    refresh_engines()
    try:
        assert type(xr.backends.list_engines()["rumi"]) is RumiBackend
        assert oracle.same_bits(xr.open_dataset(path, engine="rumi").band_data.values, values)
        # By the suffix alone.
        assert oracle.same_bits(xr.open_dataset(path).band_data.values, values)
    finally:
        monkeypatch.undo()
        refresh_engines()


def test_what_the_engine_opens():
    backend = RumiBackend()
    assert backend.guess_can_open("a/b.rumi")
    assert backend.guess_can_open("s3://bucket/b.RUMI")
    assert not backend.guess_can_open("a/b.tif")
    assert not backend.guess_can_open(b"II")
    assert "Rumi rasters" in repr(backend)


def test_without_xarray_the_error_says_how_to_install_it():
    code = (
        "import sys; sys.modules['xarray'] = None\n"
        "import rumi\n"
        "try:\n    import rumi.xarray\n"
        "except rumi.UnsupportedError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "rumi.xarray needs xarray: pip install 'rumi[xarray]'\n"


def test_opening_needs_no_dask(path):
    code = (
        "import sys; sys.modules['dask'] = None\n"
        "import xarray, rumi.xarray\n"
        f"found = xarray.open_dataset({path!r}, engine=rumi.xarray.RumiBackend)\n"
        "print(int(found.band_data[1, 2, 3]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1002003\n"
