"""Catalogs on the ways that went wrong elsewhere (C16, C17, C28), and in object stores."""

import math
import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracle
import pytest
import servers
from children import read_rows

import rumi

pytest.importorskip("pyarrow", reason="pyarrow is not installed, and catalogs are Parquet")

from rumi import Catalog

KEYS = {"access_key_id": "ID", "secret_access_key": "KEY", "region": "us-east-1"}
UTM = (30.0, 0.0, 500_000.0, 0.0, -30.0, 4_600_000.0)
WINDOWS = [(0, 0, 9, 8), (31, 42, 9, 8), (15, 16, 9, 8)]


def pixels(number):
    return oracle.ramp(2, 40, 50, dtype=np.uint16) + np.uint16(number)


@pytest.fixture
def files(tmp_path):
    """Return the bytes of four files by name, in two folders."""
    found = {}
    for number in range(4):
        name = f"{'ab'[number // 2]}/{number}.rumi"
        (tmp_path / name).parent.mkdir(exist_ok=True)
        rumi.write(
            tmp_path / name, pixels(number), tile_size=16, codec="zstd", crs=32618, transform=UTM
        )
        found[name] = (tmp_path / name).read_bytes()
    return found


def assert_chips(catalog):
    """Rows 3, 0 and 3 of a catalog of all files."""
    found = catalog.read([3, 0, 3], WINDOWS)
    for chip, number, (top, left, height, width) in zip(found, (3, 0, 3), WINDOWS, strict=True):
        wanted = pixels(number)[:, top : top + height, left : left + width]
        assert oracle.same_bits(chip, wanted)


# --- Places


@pytest.mark.parametrize(("kind", "first"), [("Point", (0, 0)), ("Area", (15, -15))])
def test_points_and_areas(tmp_path, kind, first):
    """C16: the centre of the first pixel, from a GeoTIFF to a catalog and back."""
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed to judge places")
    from rumi import geotiff

    corner = (UTM[2] + first[0] - 15, UTM[5] + first[1] + 15)
    profile = {"driver": "GTiff", "count": 1, "height": 4, "width": 4, "dtype": "int32"}
    profile |= {"crs": "EPSG:32618"}
    profile |= {"transform": rasterio.Affine(30, 0, corner[0], 0, -30, corner[1])}
    values = oracle.ramp(1, 4, 4)
    with rasterio.open(tmp_path / "a.tif", "w", **profile) as target:
        target.update_tags(AREA_OR_POINT=kind)
        target.write(values)
    done = geotiff.convert_many(tmp_path / "a.tif", tmp_path / "out")
    catalog = Catalog.build(done, tmp_path / "c.parquet")
    row = catalog.to_arrow().to_pylist()[0]
    a, _, c, _, e, f = row["transform"]
    assert row["raster_type"] == kind.lower()
    assert (c + a / 2, f + e / 2) == (UTM[2] + first[0], UTM[5] + first[1])
    assert catalog.image(0).transform == tuple(row["transform"])
    assert oracle.same_bits(catalog.read(0, (1, 1, 2, 2))[0], values[:, 1:3, 1:3])
    # The outline is that of the area of the pixels, whatever they stand for.
    from rasterio.warp import transform_bounds

    bounds = (corner[0], corner[1] - 120, corner[0] + 120, corner[1])
    west, south, east, north = transform_bounds("EPSG:32618", "OGC:CRS84", *bounds)
    box = [row["bbox"][name] for name in ("xmin", "ymin", "xmax", "ymax")]
    assert np.abs(np.subtract(box, (west, south, east, north))).max() < 1e-6
    geotiff.export(catalog.sources()[0], tmp_path / "back.tif")
    with rasterio.open(tmp_path / "back.tif") as source:
        assert source.tags()["AREA_OR_POINT"] == kind
        assert source.xy(0, 0) == (UTM[2] + first[0], UTM[5] + first[1])


C30, S30 = 10 * math.cos(math.pi / 6), 10 * math.sin(math.pi / 6)


@pytest.mark.parametrize(
    "transform",
    [
        (1.0, 0.5, 500_100.0, 0.0, -1.0, 200.0),
        (10.0, 0.0, 501_000.0, 0.0, 10.0, 4000.0),
        (-10.0, 0.0, 500_200.0, 0.0, -10.0, 50.0),
        (C30, S30 + 1e-9, 500_000.0, S30, -C30 + 1e-9, 4_600_000.0),
    ],
    ids=["sheared", "south up", "east left", "30 degrees"],
)
def test_turned_and_south_up_images(tmp_path, transform):
    """C17: six numbers bit for bit, pixels in their order, an outline of all four corners."""
    warp = pytest.importorskip("rasterio.warp", reason="rasterio is not installed to judge places")
    values = oracle.ramp(1, 12, 12)
    rumi.write(tmp_path / "a.rumi", values, tile_size=8, crs=32618, transform=transform)
    catalog = Catalog.build(tmp_path, tmp_path / "c.parquet")
    row = catalog.to_arrow().to_pylist()[0]
    assert tuple(row["transform"]) == transform
    assert oracle.same_bits(catalog.read(0, (3, 1, 6, 9))[0], values[:, 3:9, 1:10])
    a, b, c, d, e, f = transform
    corners = [(a * col + b * row + c, d * col + e * row + f) for col in (0, 12) for row in (0, 12)]
    xs, ys = warp.transform("EPSG:32618", "OGC:CRS84", *zip(*corners, strict=True))
    box = [row["bbox"][name] for name in ("xmin", "ymin", "xmax", "ymax")]
    assert box == pytest.approx([min(xs), min(ys), max(xs), max(ys)], abs=1e-6)
    shapely = pytest.importorskip("shapely", reason="shapely is not installed to judge outlines")
    outline = shapely.from_wkb(row["geometry"])
    assert outline.is_valid
    for x, y in zip(xs, ys, strict=True):
        assert outline.exterior.distance(shapely.Point(x, y)) < 1e-6


# --- Processes and threads


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_of_a_parent_that_has_read(files, tmp_path, method):
    """C28: after a read with four threads, and while another thread is reading."""
    catalog = Catalog.build(tmp_path, tmp_path / "c.parquet")
    expected = catalog.read([3, 0, 3], WINDOWS, threads=4)
    ended = threading.Event()
    wrong = []

    def go_on():
        while not ended.wait(0.002):
            if not np.array_equal(catalog.read([3, 0, 3], WINDOWS, threads=2), expected):
                wrong.append(1)

    reader = threading.Thread(target=go_on)
    reader.start()
    try:
        with multiprocessing.get_context(method).Pool(2) as pool:
            results = [pool.apply_async(read_rows, (catalog, [3, 0, 3], WINDOWS)) for _ in range(6)]
            for result in results:
                np.testing.assert_array_equal(result.get(timeout=60), expected)
    finally:
        ended.set()
        reader.join()
    assert wrong == []


def test_one_catalog_in_many_threads(files, tmp_path):
    """C28: 16 threads with random windows of random rows."""
    catalog = Catalog.build(tmp_path, tmp_path / "c.parquet")

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            rows = rng.integers(0, 4, 3)
            tops, lefts = rng.integers(0, 31, 3), rng.integers(0, 41, 3)
            windows = [(top, left, 9, 9) for top, left in zip(tops, lefts, strict=True)]
            for chip, row, (top, left, _, _) in zip(
                catalog.read(rows, windows, threads=1), rows, windows, strict=True
            ):
                if not np.array_equal(chip, pixels(row)[:, top : top + 9, left : left + 9]):
                    return seed
        return None

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(read, range(16))) == {None}


# --- Object stores


@pytest.fixture
def s3(files, monkeypatch):
    """The files in a bucket, below a prefix, and something that is none."""
    pytest.importorskip("obstore", reason="obstore is not installed, so no store is reached")
    pytest.importorskip("moto.server", reason="moto is not installed, so there is no S3")
    servers.clean_environment(monkeypatch)
    with servers.Moto() as moto:
        moto.ask("PUT", "/scenes")
        for name, data in files.items():
            moto.put("scenes", f"2026/{name}", data)
        moto.put("scenes", "2026/a/note.txt", b"x")
        moto.put("scenes", "2025/old.rumi", files["a/0.rumi"])
        yield moto


def test_a_prefix_of_a_bucket(s3, files, tmp_path, monkeypatch):
    from rumi.remote import ObjectStore

    store = ObjectStore("s3://scenes/2026", endpoint=s3.url, **KEYS)
    built = Catalog.build(store, tmp_path / "c.parquet")
    assert [path.removeprefix("s3://scenes/2026/") for path in built.paths()] == sorted(files)
    assert built.failures == []
    assert all(built.to_arrow(["etag"]).column("etag").to_pylist())
    s3.log.clear()
    assert_chips(built)
    # Ranges of the two files, and nothing about them.
    assert s3.log
    assert set(s3.log) <= {f"GET /scenes/2026/{name} 206" for name in ("a/0.rumi", "b/3.rumi")}
    opened = Catalog.open(tmp_path / "c.parquet", store=store)
    assert_chips(pickle.loads(pickle.dumps(opened)))
    assert opened.verify() == []
    # By URL, as every other tool is told about the service.
    for name, value in {"ENDPOINT_URL": s3.url, "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "KEY")
    by_url = Catalog.build("s3://scenes/2026/", "s3://scenes/2026/c.parquet")
    assert by_url.paths() == sorted(files)
    assert_chips(Catalog.open("s3://scenes/2026/c.parquet"))
    part = Catalog.build("s3://scenes/**/[03].rumi", tmp_path / "d.parquet")
    assert [path.rpartition("/")[2] for path in part.paths()] == ["0.rumi", "3.rumi"]
    with pytest.raises(FileNotFoundError, match=r"s3://scenes/none/.*no \.rumi file"):
        Catalog.build("s3://scenes/none/", tmp_path / "d.parquet")


def test_processes_read_a_bucket(s3, files, tmp_path):
    """C28: a store whose parent has used it, with its settings but no connection."""
    from rumi.remote import ObjectStore

    store = ObjectStore("s3://scenes/2026", endpoint=s3.url, **KEYS)
    Catalog.build(store, tmp_path / "c.parquet")
    opened = Catalog.open(tmp_path / "c.parquet", store=store)
    expected = opened.read([3, 0, 3], WINDOWS)
    for method in ("forkserver", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            found = pool.apply_async(read_rows, (opened, [3, 0, 3], WINDOWS)).get(timeout=60)
        np.testing.assert_array_equal(found, expected)
    built = Catalog.build(store, tmp_path / "d.parquet", workers=2)
    assert built.to_arrow().equals(opened.to_arrow())
