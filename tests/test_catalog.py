"""Catalogs: what is recorded, found again, verified, and read by other software."""

import hashlib
import json
import math
import multiprocessing
import os
import pickle
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from children import chip_of, describe_or_die
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import rumi
from rumi import encodings
from rumi._core import RECORD, parse_headers
from rumi.catalog import footprints

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed, and catalogs are Parquet")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

from rumi.catalog import Catalog, Chips, Failure, Headers  # noqa: E402
from rumi.catalog import rows as rows_module  # noqa: E402
from rumi.catalog.schema import OWN  # noqa: E402

TRANSFORM = (30.0, 0.0, 735345.0, 0.0, -30.0, -2801355.0)


def ramp(shape=(2, 40, 50), seed=0, dtype=np.uint16):
    values = np.random.default_rng(seed).integers(0, 200, shape)
    return values.astype(dtype)


def make(path, *, seed=0, shape=(2, 40, 50), place=True, **options):
    placed = {"crs": 32621, "transform": TRANSFORM} if place else {}
    return rumi.write(
        path, ramp(shape, seed), **{"tile_size": 32, "codec": "store", **placed, **options}
    )


@pytest.fixture
def scenes(tmp_path):
    """Six files in two folders, from north to south."""
    for number in range(6):
        folder = tmp_path / ("a" if number < 3 else "b")
        folder.mkdir(exist_ok=True)
        transform = (*TRANSFORM[:5], TRANSFORM[5] - 100_000.0 * number)
        make(folder / f"{number}.rumi", seed=number, transform=transform)
    return tmp_path


@pytest.fixture
def catalog(scenes):
    return Catalog.build(scenes, scenes / "c.parquet")


# --- Header blobs in bulk


def flat(blobs):
    data = np.frombuffer(b"".join(blobs), np.uint8)
    offsets = np.zeros(len(blobs) + 1, np.int64)
    np.cumsum([len(blob) for blob in blobs], out=offsets[1:])
    return data, offsets


def parsed(blobs):
    out = np.empty(len(blobs), np.dtype(list(RECORD)))
    refused = parse_headers(*flat(blobs), out)
    return out, refused


def blob(**fields):
    """A blob of one frame, with fields replaced."""
    known = {
        "magic": 0x45564F4C,
        "version": 1,
        "image_width": 9,
        "image_length": 9,
        "tile_width": 9,
        "tile_length": 9,
        "samples_per_pixel": 1,
        "bits_per_sample": 8,
        "sample_format": 1,
        "frame_unit": 0,
        "count_min": 100,
        "count_bits": 0,
    }
    known |= fields
    return struct.pack("<IHIIHHHBBBIB", *known.values())


def check_like_header(blobs):
    """The batch parser takes what Header takes, and says the same of it."""
    out, refused = parsed(blobs)
    for found, one in zip(out, blobs, strict=True):
        try:
            header = rumi.Header(one)
        except rumi.HeaderError:
            header = None
        except rumi.TruncatedError:
            header = None
        assert bool(found["valid"]) == (header is not None)
        for name, _ in RECORD[:-1]:
            assert found[name] == (0 if header is None else getattr(header, name)), name
    assert refused == int((out["valid"] == 0).sum())


counts = st.lists(st.integers(1, 5000), min_size=1, max_size=40)


@given(st.lists(counts, min_size=1, max_size=5), st.data())
def test_blobs_are_parsed_as_header_parses_them(lists, data):
    blobs = []
    for sizes in lists:
        pair = data.draw(st.sampled_from(encodings.ENCODINGS))
        header = rumi.Header.build((1, 8, 8 * len(sizes)), (8, 8), pair, "tile", sizes)
        one = bytearray(bytes(header))
        for _ in range(data.draw(st.integers(0, 2))):
            place = data.draw(st.integers(0, len(one) - 1))
            one[place] ^= 1 << data.draw(st.integers(0, 7))
        blobs.append(bytes(one)[: data.draw(st.sampled_from([None, None, None, -1, 20]))])
    check_like_header(blobs)


@pytest.mark.parametrize(
    "fields",
    [
        {"image_width": 2**32 - 1, "image_length": 2**32 - 1, "tile_width": 1, "tile_length": 1},
        # 2**59 frames, which is the most, and one row of them more.
        {"image_width": 2**30, "image_length": 2**29, "tile_width": 1, "tile_length": 1},
        {"image_width": 2**30, "image_length": 2**29 + 1, "tile_width": 1, "tile_length": 1},
        {
            "image_width": 2**20,
            "image_length": 2**20,
            "tile_width": 1,
            "tile_length": 1,
            "count_min": 2**23,
        },
        {"samples_per_pixel": 65535, "frame_unit": 1},
        {"frame_unit": 2},
        {"count_bits": 33},
        {"count_min": 0},
        {"bits_per_sample": 3},
    ],
)
def test_blobs_at_the_limits(fields):
    check_like_header([blob(**fields), blob()])


def test_residuals_at_the_limits():
    two = {"image_width": 18, "count_bits": 32}
    high = struct.pack("<II", 0, 2**32 - 1)
    check_like_header(
        [
            blob(**two, count_min=1) + high,
            blob(**two) + struct.pack("<II", 0, 2**32 - 101),
            blob(**two, count_min=1) + struct.pack("<II", 0, 2**32 - 2),
            blob(image_width=18, count_bits=1) + b"\x02",
            blob(image_width=18, count_bits=1) + b"\x06",
            blob(image_width=18, count_bits=1) + b"\x03",
            blob(image_width=18, count_bits=2) + b"\x04",
            blob(image_width=18, count_bits=1),
            blob() + b"\0",
            b"",
            blob()[:27],
        ]
    )


def test_no_blob_at_all():
    out, refused = parsed([])
    assert (len(out), refused) == (0, 0)


@pytest.mark.parametrize("offsets", [[0, 29], [-1, 28], [28, 0], [0, 2**62]])
def test_offsets_outside_the_buffer_are_refused(offsets):
    out = np.empty(1, np.dtype(list(RECORD)))
    with pytest.raises(ValueError, match="blob 0"):
        parse_headers(np.frombuffer(blob(), np.uint8), np.array(offsets), out)


def test_offsets_and_room_must_agree():
    with pytest.raises(ValueError, match="expected 3 offsets"):
        parse_headers(*flat([blob()]), np.empty(2, np.dtype(list(RECORD))))


def test_the_parser_lets_other_threads_run():
    """Counting goes on while a long batch is parsed."""
    header = rumi.Header.build(
        (1, 8, 8 * 4096), (8, 8), encodings.from_pair(1, 8), "tile", np.arange(1, 4097)
    )
    data, offsets = flat([bytes(header)] * 4000)
    out = np.empty(4000, np.dtype(list(RECORD)))
    done = threading.Event()
    worker = threading.Thread(target=lambda: (parse_headers(data, offsets, out), done.set()))
    worker.start()
    steps = 0
    while not done.is_set():
        steps += 1
    worker.join()
    assert out["valid"].all()
    assert steps > 1


def test_headers_as_columns(catalog):
    headers = catalog.headers
    assert isinstance(headers, Headers)
    assert headers[1] == rumi.index(catalog.sources()[1])
    assert [bytes(header) for header in headers] == [headers.at(row) for row in range(6)]
    np.testing.assert_array_equal(headers.shapes, [(2, 40, 50)] * 6)
    np.testing.assert_array_equal(
        headers.fields["file_size"], [os.path.getsize(path) for path in catalog.sources()]
    )
    assert headers.invalid.size == 0
    with pytest.raises(ValueError, match="read-only"):
        headers.fields["valid"] = 0


# --- Footprints


def ring_of(wkb):
    assert wkb[:9] == struct.pack("<BII", 1, 3, 1)
    (points,) = struct.unpack_from("<I", wkb, 9)
    return np.frombuffer(wkb, "<f8", offset=13).reshape(points, 2)


def area(ring):
    x, y = ring.T
    return float(x[:-1] @ y[1:] - y[:-1] @ x[1:]) / 2


def shape_of(wkb):
    shapely = pytest.importorskip("shapely", reason="shapely is not installed to judge outlines")
    found = shapely.from_wkb(wkb)
    assert found.is_valid
    return found


@pytest.mark.parametrize(
    "transform",
    [
        (30, 0, 500_000, 0, -30, 4_600_000),
        (30, 0, 500_000, 0, 30, 4_500_000),
        (-30, 0, 600_000, 0, -30, 4_600_000),
        (20, 15, 500_000, 15, -20, 4_600_000),
    ],
)
def test_a_footprint_is_closed_anticlockwise_and_inside_its_box(transform):
    pyproj = pytest.importorskip("pyproj")
    wkb, box = footprints.footprint(32618, transform, 300, 200)
    ring = ring_of(wkb)
    np.testing.assert_array_equal(ring[0], ring[-1])
    assert area(ring) > 0
    assert (ring.min(axis=0) >= box[:2]).all()
    assert (ring.max(axis=0) <= box[2:]).all()
    to = pyproj.Transformer.from_crs(32618, "OGC:CRS84", always_xy=True)
    a, b, c, d, e, f = transform
    for col, row in ((0, 0), (200, 0), (0, 300), (200, 300)):
        corner = to.transform(a * col + b * row + c, d * col + e * row + f)
        assert np.abs(ring - corner).max(axis=1).min() < 1e-9


def test_edges_keep_within_half_a_pixel_of_the_curve():
    # A scene of 200 km, whose edges are curves in longitude and latitude.
    transform = (1000.0, 0, 200_000.0, 0, -1000.0, 7_800_000.0)
    wkb, _ = footprints.footprint(32633, transform, 300, 600)
    pyproj = pytest.importorskip("pyproj")
    to = pyproj.Transformer.from_crs(32633, "OGC:CRS84", always_xy=True)
    top = np.stack(to.transform(200_000 + np.linspace(0, 600_000, 500), np.full(500, 7.8e6)), 1)
    outline = shape_of(wkb).exterior
    shapely = pytest.importorskip("shapely")
    pixel = 1000 / 111_320
    assert max(outline.distance(shapely.Point(point)) for point in top) < pixel / 2
    assert 8 < len(ring_of(wkb)) < 100
    # One of 5 km has corners only.
    small, _ = footprints.footprint(32633, (10, 0, 5e5, 0, -10, 5e6), 500, 500)
    assert len(ring_of(small)) == 5


def test_a_footprint_across_the_antimeridian_is_cut_there():
    # UTM 1 begins at 180 degrees; this scene begins 30 km west of it.
    transform = (30.0, 0, 180_000.0, 0, -30.0, 8_000_000.0)
    wkb, box = footprints.footprint(32701, transform, 1000, 3000)
    found = shape_of(wkb)
    assert found.geom_type == "MultiPolygon"
    assert len(found.geoms) == 2
    assert found.area < 2
    assert box[0] == -180
    assert box[2] == 180
    pieces = footprints.parts(wkb)
    assert sorted(round(piece[0]) for piece in pieces) == [-180, 180]
    assert all(piece[2] - piece[0] < 1 for piece in pieces)


@pytest.mark.parametrize(("epsg", "pole"), [(3413, 90), (3031, -90)])
def test_a_footprint_around_a_pole_holds_it(epsg, pole):
    wkb, box = footprints.footprint(epsg, (10_000.0, 0, -1e6, 0, -10_000.0, 1.2e6), 200, 200)
    found = shape_of(wkb)
    assert found.geom_type == "Polygon"
    assert found.bounds == box
    assert (box[0], box[2]) == (-180, 180)
    assert pole in box
    inner = abs(min(abs(box[1]), abs(box[3])))
    assert 70 < inner < 85
    # Everything nearer to the pole is inside.
    assert found.area > 360 * (90 - inner) * 0.5


def test_a_footprint_of_the_whole_globe():
    for origin in (-180.0, 0.0, -180.5):
        wkb, box = footprints.footprint(4326, (1.0, 0, origin, 0, -1.0, 90.0), 180, 361)
        assert box == (-180, -90, 180, 90)
        assert shape_of(wkb).area == 360 * 180
    wkb, box = footprints.footprint(4326, (1.0, 0, 150.0, 0, -1.0, 10.0), 20, 60)
    assert [piece[0] for piece in footprints.parts(wkb)] == [150, -180]
    # Web Mercator ends at 85 degrees.
    side = 20037508.342789244
    _, box = footprints.footprint(3857, (side / 100, 0, -side, 0, -side / 100, side), 200, 200)
    assert box == pytest.approx((-180, -85.05, 180, 85.05), abs=0.01)


def test_a_footprint_whose_corners_are_nowhere_is_a_box():
    # Equal Earth: the corners of the square are off the globe.
    _, box = footprints.footprint(8857, (200_000.0, 0, -18e6, 0, -200_000.0, 9e6), 90, 180)
    assert box[1] < -80
    assert box[3] > 80
    assert footprints.footprint(32767, TRANSFORM, 10, 10) is None
    assert footprints.footprint(8857, (1.0, 0, 1e8, 0, -1.0, 1e8), 10, 10) is None


# --- Building


def test_what_a_row_records(scenes):
    make(scenes / "a" / "flat.rumi", place=False, raster_type="point")
    built = Catalog.build(scenes, scenes / "c.parquet", sha256=True)
    assert built.failures == []
    assert len(built) == 7
    assert built.columns == list(OWN)
    table = built.to_arrow().drop_columns(["mtime"])
    row, flat_row = (table.slice(number, 1).to_pylist()[0] for number in (0, 3))
    path = scenes / "a" / "0.rumi"
    assert row["path"] == "a/0.rumi"
    assert row["header"] == bytes(rumi.index(path))
    assert row["size"] == path.stat().st_size
    times = built.to_arrow(["mtime"]).column("mtime").cast("int64")
    assert times[0].as_py() == path.stat().st_mtime_ns
    assert row["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (row["bands"], row["height"], row["width"], row["dtype"]) == (2, 40, 50, "uint16")
    assert row["epsg"] == 32621
    assert tuple(row["transform"]) == TRANSFORM
    assert row["raster_type"] == "area"
    assert row["nodata"] is None
    west, south, east, north = (row["bbox"][name] for name in ("xmin", "ymin", "xmax", "ymax"))
    assert -55 < west < east < -54
    assert -26 < south < north < -25
    assert flat_row["path"] == "a/flat.rumi"
    assert flat_row["raster_type"] == "point"
    nothing = {flat_row[name] for name in ("epsg", "geometry", "etag")}
    assert nothing == {None}
    assert flat_row["bbox"] is None


def test_failures_are_rows_and_the_others_are_there(scenes):
    (scenes / "a" / "empty.rumi").write_bytes(b"")
    (scenes / "a" / "text.rumi").write_bytes(b"hello")
    (scenes / "a" / ".hidden.rumi").write_bytes(b"hello")
    missing = scenes / "missing.rumi"
    seen = []
    built = Catalog.build(
        [scenes, missing], scenes / "c.parquet", progress=lambda *done: seen.append(done)
    )
    assert len(built) == 6
    assert [Path(failure.path).name for failure in built.failures] == [
        "empty.rumi",
        "text.rumi",
        "missing.rumi",
    ]
    assert [failure.kind for failure in built.failures] == [
        "TruncatedError",
        "FormatError",
        "FileNotFoundError",
    ]
    assert all(failure.message and failure.row is None for failure in built.failures)
    assert seen[-1] == (9, 9)


def test_nothing_but_failures_is_an_empty_catalog(tmp_path):
    (tmp_path / "x.rumi").write_bytes(b"hello")
    built = Catalog.build(tmp_path, tmp_path / "c.parquet")
    assert (len(built), len(built.failures)) == (0, 1)
    assert list(built) == []
    assert len(built.load().headers) == 0
    assert len(built.filter(bbox=(0, 0, 1, 1), where="height > 3")) == 0
    geo = json.loads(pq.read_schema(tmp_path / "c.parquet").metadata[b"geo"])
    assert geo["columns"]["geometry"]["geometry_types"] == []


def test_sources_of_every_kind_each_file_once(scenes):
    dst = scenes / "c.parquet"
    first = scenes / "a" / "0.rumi"
    given = [
        str(scenes / "b" / "5.rumi"),
        os.fsencode(first),
        first,
        str(scenes / "*" / "[01].rumi"),
        scenes / "a",
        f"file://{scenes}/b/",
    ]
    built = Catalog.build(iter(given), dst)
    names = ["b/5", "a/0", "a/1", "a/2", "b/3", "b/4"]
    assert built.paths() == [f"{name}.rumi" for name in names]
    assert Catalog.build(str(scenes / "**" / "[34].rumi"), dst).paths() == ["b/3.rumi", "b/4.rumi"]
    with pytest.raises(FileNotFoundError, match="no .rumi file"):
        Catalog.build(scenes / "*.tif", dst)
    with pytest.raises(TypeError, match="source 0"):
        Catalog.build([3], dst)
    with pytest.raises(TypeError, match="expected paths"):
        Catalog.build(first.read_bytes(), dst)
    with pytest.raises(ValueError, match="at least one"):
        Catalog.build([], dst)


@pytest.mark.parametrize("relative", [None, True, False])
def test_how_paths_are_written(scenes, relative):
    (scenes / "sub").mkdir()
    built = Catalog.build(
        [scenes / "a" / "0.rumi"], scenes / "sub" / "c.parquet", relative=relative
    )
    below = Catalog.build([scenes / "a" / "0.rumi"], scenes / "c.parquet", relative=relative)
    absolute = str(scenes / "a" / "0.rumi")
    assert built.paths() == ["../a/0.rumi" if relative else absolute]
    assert below.paths() == [absolute if relative is False else "a/0.rumi"]
    np.testing.assert_array_equal(built.read()[0], ramp())
    np.testing.assert_array_equal(below.read()[0], ramp())


def test_relative_paths_move_with_the_catalog(catalog, scenes, tmp_path_factory, monkeypatch):
    moved = tmp_path_factory.mktemp("moved") / "here"
    shutil.copytree(scenes, moved)
    shutil.rmtree(scenes / "a")
    monkeypatch.chdir(moved)
    found = Catalog.open("c.parquet")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(found.read([0, 5])[1], ramp(seed=5))
    os.symlink(moved / "c.parquet", scenes / "link.parquet")
    np.testing.assert_array_equal(Catalog.open(scenes / "link.parquet").read([0])[0], ramp())


def test_a_name_that_is_no_text_is_a_failure(tmp_path):
    odd = os.path.join(os.fsencode(tmp_path), b"\xff.rumi")
    make(tmp_path / "good.rumi")
    shutil.copy(tmp_path / "good.rumi", odd)
    built = Catalog.build(tmp_path, tmp_path / "c.parquet")
    assert built.paths() == ["good.rumi"]
    assert [failure.kind for failure in built.failures] == ["ValueError"]
    assert "UTF-8" in built.failures[0].message


def test_columns_by_source_and_by_function(scenes):
    dst = scenes / "c.parquet"
    built = Catalog.build(
        [scenes / "a", scenes / "b" / "4.rumi"],
        dst,
        columns={
            "cloud": [5, None],
            "nodata": [2**60 + 1, float("nan")],
            "band_names": [["red", "nir"], None],
        },
    )
    table = built.to_arrow()
    assert table.column("cloud").to_pylist() == [5, 5, 5, None]
    assert table.column("nodata").to_pylist() == [str(2**60 + 1)] * 3 + ["nan"]
    assert table.column("band_names").to_pylist()[2:] == [["red", "nir"], None]
    built = Catalog.build(
        scenes, dst, columns=lambda path: {"split": "val" if path > "b" else "train"}
    )
    assert built.to_arrow(["split"]).column("split").to_pylist() == ["train"] * 3 + ["val"] * 3
    with pytest.raises(ValueError, match="epsg: told by the files"):
        Catalog.build(scenes, dst, columns={"epsg": [1]})
    with pytest.raises(ValueError, match="size: told by the files"):
        Catalog.build(scenes, dst, columns=lambda _path: {"size": 1})
    with pytest.raises(ValueError, match="cloud: expected one value for each of 1 sources"):
        Catalog.build(scenes, dst, columns={"cloud": [1, 2]})
    with pytest.raises(ValueError, match="column mixed"):
        Catalog.build(scenes, dst, columns=lambda path: {"mixed": 1 if path > "b" else "x"})
    with pytest.raises(TypeError, match="columns"):
        Catalog.build(scenes, dst, columns=["cloud"])
    with pytest.raises(TypeError, match="workers"):
        Catalog.build(scenes, dst, workers=1.5)
    with pytest.raises(ValueError, match="workers"):
        Catalog.build(scenes, dst, workers=0)


def test_results_of_conversions_bring_what_the_files_do_not_hold(tmp_path):
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed to make a GeoTIFF")
    from rumi import geotiff

    profile = {"driver": "GTiff", "count": 2, "height": 20, "width": 30, "dtype": "int16"}
    profile |= {"crs": 32621, "transform": rasterio.Affine(*TRANSFORM), "nodata": -9999}
    with rasterio.open(tmp_path / "x.tif", "w", **profile) as dataset:
        dataset.write(ramp((2, 20, 30), dtype=np.int16))
        dataset.set_band_description(1, "red")
    (tmp_path / "bad.tif").write_bytes(b"hello")
    done = geotiff.convert_many(
        [tmp_path / "x.tif", tmp_path / "bad.tif"], tmp_path / "out", drop="all", codec="store"
    )
    built = Catalog.build(done, tmp_path / "out" / "c.parquet")
    row = built.to_arrow(["path", "nodata", "band_names"]).to_pylist()[0]
    assert row["path"] == "x.rumi"
    assert row["nodata"] == "-9999"
    assert row["band_names"] == ["red", None]
    assert [failure.kind for failure in built.failures] == [done[1].kind]


def test_a_failed_build_leaves_the_old_catalog(catalog, scenes):
    before = (scenes / "c.parquet").read_bytes()

    def stop(_done, _total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Catalog.build(scenes, scenes / "c.parquet", progress=stop)
    assert (scenes / "c.parquet").read_bytes() == before
    assert sorted(path.name for path in scenes.iterdir()) == ["a", "b", "c.parquet"]


def test_the_same_files_give_the_same_catalog(catalog, scenes):
    before = (scenes / "c.parquet").read_bytes()
    Catalog.build(scenes, scenes / "c.parquet")
    assert (scenes / "c.parquet").read_bytes() == before


def test_processes_give_the_same_and_survive_one_that_is_killed(catalog, scenes, monkeypatch):
    from rumi.catalog import building

    monkeypatch.setattr(building, "_PART", 2)
    table = Catalog.build(scenes, scenes / "d.parquet", workers=2).to_arrow()
    assert table.equals(catalog.to_arrow())
    monkeypatch.setattr(building, "describe", describe_or_die)
    survived = Catalog.build(scenes, scenes / "d.parquet", workers=2)
    assert [Path(failure.path).name for failure in survived.failures] == ["3.rumi"]
    assert "killed" in survived.failures[0].message
    assert len(survived) == 5


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same(catalog, scenes, dask_client, monkeypatch):
    from rumi.catalog import building

    monkeypatch.setattr(building, "_PART", 2)
    (scenes / "b" / "bad.rumi").write_bytes(b"hello")
    sent = []
    submit = dask_client.submit
    monkeypatch.setattr(
        dask_client, "submit", lambda *args, **kw: (sent.append(args), submit(*args, **kw))[1]
    )
    built = Catalog.build(scenes, scenes / "d.parquet", client=dask_client)
    assert built.to_arrow().equals(catalog.to_arrow())
    assert [Path(failure.path).name for failure in built.failures] == ["bad.rumi"]
    assert built.verify(client=dask_client) == []
    # Paths and what the catalog says of them.
    assert len(sent) == 4 + 1
    assert all(len(pickle.dumps(args)) < 5000 for args in sent)
    monkeypatch.setattr(building, "describe", describe_or_die)
    survived = Catalog.build(scenes, scenes / "d.parquet", client=dask_client)
    kinds_of = {Path(failure.path).name: failure.kind for failure in survived.failures}
    assert kinds_of == {"3.rumi": "KilledWorker", "bad.rumi": "FormatError"}
    assert len(survived) == 5


# --- Opening and drawing


def test_rows_as_images_and_pixels(catalog):
    assert len(catalog) == 6
    image = catalog.image(2)
    assert image.header == rumi.index(image.name)
    np.testing.assert_array_equal(image.read(), ramp(seed=2))
    np.testing.assert_array_equal(catalog[np.int64(3)].read(), ramp(seed=3))
    assert [found.name for found in catalog] == [
        image.name for image in map(catalog.image, range(6))
    ]
    for bad in (6, -1):
        with pytest.raises(IndexError, match="row"):
            catalog.image(bad)
    with pytest.raises(TypeError):
        catalog.image(1.0)
    with pytest.raises(TypeError):
        catalog.image(True)


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, -2), [5, 3, 1]),
        ([5, 0, 0], [5, 0, 0]),
        (np.array([2, 1], np.uint8), [2, 1]),
        ([True, False, False, True, False, False], [0, 3]),
        ([], []),
    ],
)
def test_parts_of_a_catalog(catalog, key, rows):
    part = catalog[key]
    assert len(part) == len(rows)
    expected = [catalog.image(row).name for row in rows]
    assert [image.name for image in part] == expected
    assert part.sources() == expected
    assert part[::-1].sources() == expected[::-1]
    again = pickle.loads(pickle.dumps(part))
    assert again.sources() == expected
    assert again.to_arrow(["path"]).column("path").to_pylist() == part.paths()
    assert len(part.load().headers) == len(rows)


@pytest.mark.parametrize("key", [[7], [-1], np.array([0.0]), [[0]], "a", [True, False]])
def test_rows_that_are_not_there(catalog, key):
    with pytest.raises((IndexError, TypeError)):
        catalog[key]


@pytest.mark.parametrize("loaded", [False, True])
def test_windows_of_rows_in_one_batch(catalog, loaded):
    if loaded:
        catalog.load()
    windows = [(0, 0, 8, 9), (30, 41, 8, 9), (10, 20, 8, 9)]
    found = catalog.read([4, 4, 1], windows, bands=1)
    assert found.shape == (3, 1, 8, 9)
    for chip, row, (top, left, height, width) in zip(found, (4, 4, 1), windows, strict=True):
        wanted = ramp(seed=row)[1:, top : top + height, left : left + width]
        np.testing.assert_array_equal(chip, wanted)
    assert catalog.read([2] * 3, (0, 0, 4, 4)).shape == (3, 2, 4, 4)
    assert catalog.read(2).shape == (1, 2, 40, 50)
    assert catalog.read(slice(0, 2), threads=1).shape == (2, 2, 40, 50)
    out = np.empty((6, 2, 40, 50), np.uint16)
    assert catalog.read(out=out) is out
    with pytest.raises(ValueError, match="at least one row"):
        catalog.read([])
    with pytest.raises(ValueError, match=r"item 1 .*1\.rumi"):
        catalog.read([0, 1], [(0, 0, 4, 4), (39, 0, 4, 4)])


def long_catalog(path, rows):
    """A catalog of one file under many names, in row groups of ten."""
    header = make(path.parent / "one.rumi")
    blobs = [bytes(header)] * rows
    table = pa.table(
        {
            "path": [f"x/{row}/../../one.rumi" for row in range(rows)],
            "header": blobs,
            "n": range(rows),
        }
    )
    pq.write_table(table, path, row_group_size=10)
    (path.parent / "x").mkdir()
    for row in range(rows):
        (path.parent / "x" / str(row)).mkdir()
    return Catalog.open(path)


def test_a_row_costs_its_row_group_until_all_are_worth_it(tmp_path, monkeypatch):
    opened = long_catalog(tmp_path / "c.parquet", 100)
    read = []
    original = type(opened._rows.table).read_groups

    def counting(self, groups, columns=None):
        read.extend(groups)
        return original(self, groups, columns)

    monkeypatch.setattr(type(opened._rows.table), "read_groups", counting)
    monkeypatch.setattr(rows_module, "_PATIENCE", 5)
    opened.image(34)
    opened.image(38)
    assert read == [3]
    opened.read([1, 99, 98])
    assert read == [3, 0, 9]
    assert opened.paths([11, 10])[0] == "x/11/../../one.rumi"
    assert read == [3, 0, 9, 1]
    opened.read([55, 65, 55])
    assert len(read) == 4 + 10
    opened.image(77)
    opened.read(range(100), (0, 0, 2, 2))
    assert len(read) == 4 + 10
    part = opened[70:90]
    assert part.image(5).name == opened.image(75).name
    assert read[14:] == [7]


def test_threads_draw_from_one_catalog(tmp_path, monkeypatch):
    opened = long_catalog(tmp_path / "c.parquet", 100)
    monkeypatch.setattr(rows_module, "_PATIENCE", 10**6)
    wrong = []

    def draw(seed):
        rng = np.random.default_rng(seed)
        for row in rng.integers(0, 100, 40).tolist():
            if opened.paths([row]) != [f"x/{row}/../../one.rumi"]:
                wrong.append(row)
            if len(opened.filter(where=f"n < {row}")) != row:
                wrong.append(row)

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_catalog_that_is_cut_while_it_is_open(tmp_path):
    path = tmp_path / "c.parquet"
    opened = long_catalog(path, 100)
    with path.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(rumi.FormatError, match=r"c\.parquet: cannot be read"):
        opened.image(99)


def test_notebooks_show_a_catalog(catalog):
    shown = catalog._repr_html_()
    assert "rumi.Catalog" in shown
    assert "raster_type" in shown
    assert repr(catalog).endswith("c.parquet' of 6 rows>")


def test_opening_reads_no_file_of_the_catalog(catalog, scenes):
    for path in scenes.rglob("*.rumi"):
        path.unlink()
    opened = Catalog.open(scenes / "c.parquet")
    assert opened.image(0).shape == (2, 40, 50)
    assert opened.filter(where="height == 40").paths() == catalog.paths()
    with pytest.raises(FileNotFoundError, match="item 0"):
        opened.read([0])


def test_parquet_of_others_will_do(tmp_path):
    header = make(tmp_path / "one.rumi")
    path = tmp_path / "c.parquet"
    for kind in (pa.binary(), pa.large_binary()):
        blobs = pa.array([bytes(header)] * 3, kind)
        pq.write_table(pa.table({"id": [1, 2, 3], "path": ["one.rumi"] * 3, "header": blobs}), path)
        opened = Catalog.open(path)
        assert opened.filter(where="id > 1").read().shape == (2, 2, 40, 50)
        assert opened.verify() == []
        with pytest.raises(ValueError, match="no columns geometry and bbox"):
            opened.filter(bbox=(0, 0, 1, 1))
    pq.write_table(pa.table({"path": ["one.rumi"], "blob": [bytes(header)]}), path)
    with pytest.raises(rumi.FormatError, match=r"c\.parquet: expected .*path and header.*blob"):
        Catalog.open(path)
    pq.write_table(pa.table({"path": ["one.rumi", None], "header": [bytes(header)] * 2}), path)
    with pytest.raises(rumi.FormatError, match="column path: .*row 1"):
        Catalog.open(path).load()
    pq.write_table(pa.table({"path": ["one.rumi"], "header": [3]}), path)
    with pytest.raises(rumi.FormatError, match="column header: expected text or bytes"):
        Catalog.open(path).load()
    path.write_bytes(b"PAR1 it is not")
    with pytest.raises(rumi.FormatError, match=r"c\.parquet: expected a Parquet file"):
        Catalog.open(path)
    with pytest.raises(FileNotFoundError):
        Catalog.open(tmp_path / "missing.parquet")


def test_a_bad_blob_fails_by_name(tmp_path):
    header = bytes(make(tmp_path / "one.rumi"))
    path = tmp_path / "c.parquet"
    blobs = [header, header[:-1] + b"\xff\xff", header, b""]
    pq.write_table(pa.table({"path": [f"{n}.rumi" for n in "abcd"], "header": blobs}), path)
    opened = Catalog.open(path)
    assert opened.headers.invalid.tolist() == [1, 3]
    with pytest.raises(rumi.HeaderError, match=r"row 1 \(.*b\.rumi\).*and 1 rows more"):
        opened.load()
    with pytest.raises(rumi.HeaderError, match=r"b\.rumi"):
        opened.image(1)
    with pytest.raises(rumi.TruncatedError, match=r"d\.rumi"):
        opened.read([0, 3])
    kinds = [failure.kind for failure in opened.verify()]
    assert kinds == ["FileNotFoundError", "HeaderError", "FileNotFoundError", "TruncatedError"]


def test_bytes_are_a_catalog_too(catalog, scenes):
    opened = Catalog.open((scenes / "c.parquet").read_bytes())
    assert opened.paths() == catalog.paths()
    with pytest.raises(ValueError, match="only a whole catalog in a file"):
        opened.append(scenes)


def test_a_replaced_catalog_goes_on_as_it_was_where_it_is_open(catalog, scenes):
    blob_of = pickle.dumps(catalog)
    assert catalog.image(0).shape == (2, 40, 50)
    make(scenes / "new.rumi")
    longer = catalog.append(scenes / "new.rumi")
    assert (len(catalog), len(longer)) == (6, 7)
    assert len(catalog.load().headers) == 6
    with pytest.raises(rumi.StaleHeaderError, match="replaced since it was opened"):
        len(pickle.loads(blob_of))


# --- Appending


def test_append_keeps_what_files_do_not_tell(scenes):
    dst = scenes / "c.parquet"
    built = Catalog.build(
        [scenes / "a" / "0.rumi", scenes / "a" / "1.rumi"],
        dst,
        columns={"cloud": [1, 2], "nodata": ["0", "7"]},
    )
    make(scenes / "a" / "1.rumi", seed=9, shape=(1, 60, 70))
    grown = built.append(
        [scenes / "a" / "1.rumi", scenes / "b"], columns=lambda path: {"split": path[0]}
    )
    assert grown.paths() == ["a/0.rumi", "a/1.rumi", "b/3.rumi", "b/4.rumi", "b/5.rumi"]
    table = grown.to_arrow()
    assert table.column("height").to_pylist() == [40, 60, 40, 40, 40]
    assert table.column("cloud").to_pylist() == [1, 2, None, None, None]
    assert table.column("nodata").to_pylist() == ["0", "7", None, None, None]
    assert table.column("split").to_pylist() == [None, "a", "b", "b", "b"]
    assert grown.verify() == []
    assert b"geo" in pq.read_schema(dst).metadata
    np.testing.assert_array_equal(grown.image(1).read(), ramp((1, 60, 70), 9))
    with pytest.raises(ValueError, match="only a whole catalog"):
        grown[1:].append(scenes)
    (scenes / "bad.rumi").write_bytes(b"x")
    assert [failure.kind for failure in grown.append(scenes / "bad.rumi").failures] == [
        "FormatError"
    ]


# --- Conditions


def test_filter_by_place(catalog):
    # From north to south, each 100 km from the next.
    boxes = catalog.to_arrow(["bbox"]).column("bbox").to_pylist()
    south = boxes[2]["ymin"]
    found = catalog.filter(bbox=(-60, south, -50, 0))
    assert found.paths() == catalog.paths()[:3]
    assert catalog.filter(bbox=(170, -90, -54, 90)).paths() == catalog.paths()
    assert len(catalog.filter(bbox=(0, -90, 10, 90))) == 0
    assert found.filter(where="path == 'a/1.rumi'").paths() == ["a/1.rumi"]
    assert found[[2, 0]].filter(bbox=(-60, -60, -50, 0)).paths() == ["a/2.rumi", "a/0.rumi"]


def test_filter_across_the_antimeridian(tmp_path):
    utm = {"crs": 32701, "tile_size": 64, "codec": "store"}
    samples = np.zeros((1, 40, 40), np.uint8)
    for name, x in (("across", 180_000.0), ("east", 400_000.0)):
        rumi.write(tmp_path / f"{name}.rumi", samples, transform=(1000, 0, x, 0, -1000, 8e6), **utm)
    rumi.write(tmp_path / "none.rumi", samples, tile_size=64, codec="store")
    built = Catalog.build(tmp_path, tmp_path / "c.parquet")
    names = {
        (179.5, -90, 180, 90): ["across"],
        (-180, -90, -179.9, 90): ["across"],
        (179, -90, -170, 90): ["across", "east"],
        (-178.5, -90, -170, 90): ["east"],
        (0, -90, 10, 90): [],
    }
    for box, expected in names.items():
        assert [Path(path).stem for path in built.filter(bbox=box).paths()] == expected, box


@pytest.mark.parametrize(
    "box", [(0, 0, 1), (0, 5, 1, 4), (0, 0, 181, 1), "abcd", (0, 0, math.nan, 1)]
)
def test_boxes_that_are_none(catalog, box):
    with pytest.raises((TypeError, ValueError), match="bbox"):
        catalog.filter(bbox=box)


def test_filter_by_condition(scenes):
    numbers = iter([3, 40, None, 12, 7, 99])
    built = Catalog.build(
        scenes,
        scenes / "c.parquet",
        columns=lambda path: {
            "cloud": next(numbers),
            "split": "train" if path < "b" else "val",
            "it's odd": path,
        },
    )
    import pyarrow.compute as pc

    cases = [
        ("cloud < 10", [0, 4]),
        ("cloud < 10 and split == 'train'", [0]),
        ("not cloud < 10", [1, 3, 5]),
        ("3 < cloud <= 12 or cloud is None", [2, 3, 4]),
        ('cloud is not None and split != "train"', [3, 4, 5]),
        ("split in ('train', 'test') and cloud not in [3]", [1, 2]),
        ("bbox.ymax < -28 and epsg == 32621", [3, 4, 5]),
        ([("cloud", ">", 10), ("split", "in", ["val"])], [3, 5]),
        ((pc.field("cloud") > 10) & (pc.field("it's odd") > "b"), [3, 5]),
    ]
    for where, rows in cases:
        assert built.filter(where=where).paths() == [built.paths()[row] for row in rows], where
    assert built.filter().paths() == built.paths()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("cloud = 3", "equality is =="),
        ("__import__('os')", "expected columns"),
        ("epsg + 1 == 3", "expected columns"),
        ("epsg", "(?i)column|boolean|expected"),
        ("nothing == 3", "the columns are path, header"),
        ("epsg == 'a'", "where"),
        ("epsg is 3", "expected columns"),
        ("[x for x in y]", "expected columns"),
        ("(lambda: 1)() == 1", "expected columns"),
        ("", "where"),
    ],
)
def test_conditions_that_are_none(catalog, where, words):
    with pytest.raises(ValueError, match=words):
        catalog.filter(where=where)
    with pytest.raises(TypeError, match="where"):
        catalog.filter(where=3)


# --- Verifying


def kinds(stale):
    return {failure.path: failure.kind for failure in stale}


def test_verify_names_stale_rows(catalog, scenes):
    assert catalog.verify() == []
    assert catalog.verify(deep=True) == []
    assert catalog.load().verify() == []
    a, b = scenes / "a", scenes / "b"
    (a / "0.rumi").unlink()
    with open(a / "1.rumi", "ab") as file:
        file.write(b"\0")
    # The same bytes, at another time.
    os.utime(a / "2.rumi", ns=(1, 1))
    # Other pixels and other sizes of frames, in a file of the same size.
    values = ramp(seed=3)
    values[0, :32, :32] = 0
    header = rumi.write(
        b / "3.rumi", values, tile_size=32, codec="zstd", crs=32621, transform=TRANSFORM
    )
    make(b / "4.rumi", seed=4, transform=(*TRANSFORM[:5], 0.0))
    seen = []
    stale = catalog.verify(progress=lambda *done: seen.append(done))
    assert kinds(stale) == {
        "a/0.rumi": "FileNotFoundError",
        "a/1.rumi": "StaleHeaderError",
        "b/3.rumi": "StaleHeaderError",
        "b/4.rumi": "StaleHeaderError",
    }
    assert [failure.row for failure in stale] == [0, 1, 3, 4]
    assert isinstance(stale[0], Failure)
    assert "transform" in stale[3].message
    assert seen == [(6, 6)]
    assert header.file_size != catalog.headers[3].file_size
    assert kinds(catalog[3:].verify()) == {
        "b/3.rumi": "StaleHeaderError",
        "b/4.rumi": "StaleHeaderError",
    }
    assert [failure.row for failure in catalog[3:].verify()] == [0, 1]
    assert Catalog.build([b], scenes / "c.parquet").verify(deep=True) == []


def test_verify_deep_sees_what_size_and_time_hide(scenes):
    built = Catalog.build(scenes, scenes / "c.parquet", sha256=True)
    path = scenes / "a" / "0.rumi"
    state = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    other = scenes / "a" / "1.rumi"
    state = other.stat()
    damaged = bytearray(other.read_bytes())
    damaged[20] ^= 1
    other.write_bytes(damaged)
    os.utime(other, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert built.verify() == []
    stale = built.verify(deep=True)
    assert kinds(stale) == {"a/0.rumi": "StaleHeaderError", "a/1.rumi": "FormatError"}
    assert "SHA-256" in stale[0].message


# --- Processes


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_catalogs_in_other_processes(catalog, method):
    catalog.load()
    expected = chip_of(catalog)
    context = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(chip_of, (catalog[:],)), expected)


def test_pickles_are_small(catalog, tmp_path):
    catalog.load()
    assert len(pickle.dumps(catalog)) < 1000
    rows = np.flatnonzero(np.arange(100_000) % 3)
    packed = rows_module.pack_rows(rows.astype(np.int64), 100_000)
    assert len(pickle.dumps(packed)) < 13_000
    np.testing.assert_array_equal(rows_module.unpack_rows(packed), rows)
    turned = rows[::-1].astype(np.int64)
    np.testing.assert_array_equal(
        rows_module.unpack_rows(rows_module.pack_rows(turned, 100_000)), turned
    )


def test_importing_takes_no_arrow_and_a_missing_one_is_told():
    code = (
        "import sys, rumi, rumi.catalog\n"
        "assert 'pyarrow' not in sys.modules\n"
        "sys.modules['pyarrow'] = None\n"
        "try:\n"
        "    rumi.catalog.Catalog.open('x.parquet').columns\n"
        "except rumi.UnsupportedError as error:\n"
        "    assert \"pip install 'rumi[catalog]'\" in str(error), error\n"
        "except FileNotFoundError:\n"
        "    raise SystemExit('the file was looked for first')\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, cwd=Path(rumi.__file__).parents[1]
    )


# --- Stores


@pytest.fixture
def memory(scenes):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed to stand for a store")
    files = fsspec.filesystem("memory")
    for path in scenes.rglob("*.rumi"):
        files.pipe_file(f"/bucket/{path.relative_to(scenes)}", path.read_bytes())
    files.pipe_file("/bucket/a/note.txt", b"x")
    yield files
    files.rm("/bucket", recursive=True)


def test_a_store_prefix_is_a_source_and_a_place(memory, scenes):
    dst = "memory://bucket/c.parquet"
    built = Catalog.build("memory://bucket/", dst)
    assert built.paths() == [f"a/{n}.rumi" for n in range(3)] + [f"b/{n}.rumi" for n in range(3, 6)]
    opened = Catalog.open(dst)
    np.testing.assert_array_equal(opened.read([4])[0], ramp(seed=4))
    assert opened.verify() == []
    local = Catalog.build("memory://bucket/**/[25].rumi", scenes / "r.parquet")
    assert local.paths() == ["memory://bucket/a/2.rumi", "memory://bucket/b/5.rumi"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(local)).read([1])[0], ramp(seed=5))
    memory.pipe_file("/bucket/a/2.rumi", b"hello")
    memory.rm("/bucket/b/5.rumi")
    replaced, missing = local.verify()
    assert replaced.kind == "StaleHeaderError"
    assert "5.rumi" in missing.path
    with pytest.raises(FileNotFoundError, match="no .rumi file"):
        Catalog.build("memory://bucket/none/", dst)
    grown = opened.append("memory://bucket/b/3.rumi")
    assert len(grown) == 6


def test_a_store_object_reads_what_is_in_it(scenes):
    obstore = pytest.importorskip("obstore", reason="obstore is not installed to stand for a store")
    from rumi.remote import ObjectStore

    bucket = obstore.store.MemoryStore()
    for path in scenes.rglob("*.rumi"):
        obstore.put(bucket, f"data/{path.relative_to(scenes)}", path.read_bytes())
    obstore.put(bucket, "data/bad.rumi", b"hello")
    store = ObjectStore(bucket)
    built = Catalog.build(store, scenes / "c.parquet", sha256=True)
    assert built.paths()[0] == "data/a/0.rumi"
    assert len(built.failures) == 1
    assert all(built.to_arrow(["etag"]).column("etag").to_pylist())
    np.testing.assert_array_equal(built.read([0])[0], ramp())
    opened = Catalog.open(scenes / "c.parquet", store=store)
    assert opened.verify(deep=True) == []
    np.testing.assert_array_equal(opened.read([2, 3])[1], ramp(seed=3))
    # Another object of the same size under the same name: the ETag tells.
    data = bytearray((scenes / "a" / "0.rumi").read_bytes())
    data[-1] ^= 1
    obstore.put(bucket, "data/a/0.rumi", bytes(data))
    with pytest.raises(rumi.StaleHeaderError, match="ETag"):
        opened.read([0])
    assert kinds(opened.verify()) == {"data/a/0.rumi": "StaleHeaderError"}
    inside = Catalog.build(store.source("data/a/1.rumi"), store.source("data/c.parquet"))
    assert inside.paths() == ["a/1.rumi"]
    np.testing.assert_array_equal(
        Catalog.open(store.source("data/c.parquet")).read([0])[0], ramp(seed=1)
    )


def test_a_rooted_store_lends_its_settings(scenes):
    pytest.importorskip("fsspec", reason="fsspec is not installed to stand for a store")
    from rumi.catalog.sources import Base
    from rumi.remote import ObjectStore

    store = ObjectStore("memory://", retries=3)
    base = Base("", store)
    assert base.source("memory://bucket/x.rumi").store is store
    assert base.source("a/x.rumi", "tag").etag == "tag"
    assert base.source("/abs/x.rumi") == "/abs/x.rumi"
    assert base.source("https://host.invalid/x.rumi").store is not store
    assert Base("s3://b/c").source("../x.rumi").path == "x.rumi"
    assert Base("").source("x.rumi") == "x.rumi"


# --- Other software


def test_geoparquet_metadata(catalog, scenes):
    file = pq.ParquetFile(scenes / "c.parquet")
    geo = json.loads(file.metadata.metadata[b"geo"])
    assert geo["version"] == "1.1.0"
    assert geo["primary_column"] == "geometry"
    column = geo["columns"]["geometry"]
    assert column["encoding"] == "WKB"
    assert column["geometry_types"] == ["Polygon"]
    # No "crs" means CRS84.
    assert "crs" not in column
    assert column["covering"]["bbox"]["xmin"] == ["bbox", "xmin"]
    assert len(column["bbox"]) == 4
    assert file.schema_arrow.field("header").type == pa.large_binary()


def test_geopandas_reads_a_catalog(catalog, scenes):
    geopandas = pytest.importorskip(
        "geopandas", reason="geopandas is not installed, so it is not tested as a reader"
    )
    frame = geopandas.read_parquet(scenes / "c.parquet")
    assert frame.crs == "OGC:CRS84"
    assert frame.geometry.is_valid.all()
    assert bytes(frame["header"][3]) == bytes(catalog.headers[3])
    bounds = frame.geometry.bounds.iloc[1]
    box = (bounds.minx - 0.01, bounds.miny, bounds.maxx, bounds.maxy)
    near = geopandas.read_parquet(scenes / "c.parquet", bbox=box)
    assert near["path"].tolist() == catalog.filter(bbox=box).paths() == ["a/1.rumi"]


def test_duckdb_reads_and_writes_a_catalog(catalog, scenes):
    duckdb = pytest.importorskip(
        "duckdb", reason="duckdb is not installed, so it is not tested as a reader"
    )
    source, target = scenes / "c.parquet", scenes / "d.parquet"
    rows = duckdb.sql(
        f"select path, octet_length(header), height, epsg, bbox.ymin from '{source}' "
        "where dtype = 'uint16' and bbox.ymax < -28 order by path"
    ).fetchall()
    assert [row[0] for row in rows] == ["b/3.rumi", "b/4.rumi", "b/5.rumi"]
    assert rows[0][1:4] == (len(bytes(catalog.headers[3])), 40, 32621)
    duckdb.sql(f"copy (select * from '{source}' where path > 'b') to '{target}'")
    written = Catalog.open(target)
    assert written.paths() == ["b/3.rumi", "b/4.rumi", "b/5.rumi"]
    np.testing.assert_array_equal(written.read([0])[0], ramp(seed=3))
    assert written.verify(deep=True) == []
    assert len(written.filter(bbox=(-60, -60, 0, 0))) == 3


# --- Chips


def chips_of(shapes, size, **options):
    pair = encodings.from_pair(1, 8)
    blobs = [
        bytes(rumi.Header.build((1, h, w), (max(h, w),) * 2, pair, "tile", [9])) for h, w in shapes
    ]
    return Chips(Headers(*flat(blobs)), size, **options)


@pytest.mark.parametrize(("size", "stride"), [(8, None), (8, 5), ((8, 3), (3, 8)), (16, 20)])
def test_a_grid_covers_every_pixel_and_cuts_no_chip(size, stride):
    shapes = [(16, 16), (17, 40), (33, 16)]
    chips = chips_of(shapes, size, stride=stride)
    rows, windows = chips.locate(range(len(chips)))
    assert rows.tolist() == sorted(rows.tolist())
    for row, (height, width) in enumerate(shapes):
        seen = np.zeros((height, width), bool)
        for top, left, tall, wide in windows[rows == row]:
            assert (tall, wide) == chips.size
            assert top + tall <= height
            assert left + wide <= width
            seen[top : top + tall, left : left + wide] = True
        if stride is None:
            assert seen.all()
    places = {(row, *window) for row, window in zip(rows.tolist(), windows.tolist(), strict=True)}
    assert len(places) == len(chips)


def test_random_chips_are_inside_even_and_reproducible():
    chips = chips_of([(20, 30), (8, 8)], 8, mode="random", seed=3, stride=1)
    numbers = range(len(chips))
    rows, windows = chips.locate(numbers)
    assert rows[-1] == 1
    assert windows[-1].tolist() == [0, 0, 8, 8]
    tops, lefts = windows[rows == 0, :2].T
    assert set(tops) == set(range(13))
    assert set(lefts) == set(range(23))
    again = chips_of([(20, 30), (8, 8)], 8, mode="random", seed=3, stride=1).locate(numbers)[1]
    np.testing.assert_array_equal(windows, again)
    # One by one, in whatever order, is the same.
    np.testing.assert_array_equal(chips.locate([7])[1][0], windows[7])
    for other in ({"epoch": 1}, {"attempt": 1}):
        assert (chips.locate(numbers, **other)[1] != windows).any()
    # The same on every machine and with every version: these numbers never change.
    assert windows[:3, :2].tolist() == [[2, 22], [7, 18], [3, 1]]
    assert chips.locate([0, 1, 2], epoch=5)[1][:, :2].tolist() == [[4, 0], [5, 13], [0, 17]]


def test_chips_that_cannot_be():
    with pytest.raises(ValueError, match=r"row 1 .*7 x 20 pixels has no chip of 8 x 8 \(2 such"):
        chips_of([(8, 8), (7, 20), (20, 7)], 8)
    for size in (0, True, 1.5, (1, 2, 3), "8"):
        with pytest.raises((TypeError, ValueError), match="chip_size"):
            chips_of([(8, 8)], size)
    with pytest.raises(ValueError, match="mode"):
        chips_of([(8, 8)], 8, mode="line")
    for number in (1, -1):
        with pytest.raises(IndexError, match="outside 0..0"):
            chips_of([(8, 8)], 8).locate([number])


# --- The command line


def command(*arguments):
    from rumi.cli.catalog import catalog as group
    from rumi.cli.program import Program

    program = Program("rumi", commands={"catalog": group})
    return CliRunner().invoke(program, ["catalog", *map(str, arguments)])


def test_the_commands(scenes):
    out = scenes / "c.parquet"
    (scenes / "a" / "bad.rumi").write_bytes(b"x")
    done = command("build", scenes / "a", scenes / "b" / "*.rumi", out)
    assert done.exit_code == 1
    assert done.stdout == f"{out}: 6 rows, 1 failures\n"
    assert "bad.rumi: expected" in done.stderr
    (scenes / "a" / "bad.rumi").unlink()
    done = command("build", scenes, out, "--json", "--sha256")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"catalog": str(out), "rows": 6, "failures": []}
    make(scenes / "new.rumi")
    assert command("build", "--append", scenes / "new.rumi", out, "-q").stdout == ""
    assert command("build", scenes / "a", scenes / "a" / "0.rumi").exit_code == 2
    shown = command("info", out)
    assert shown.exit_code == 0, shown.stderr
    for words in ("rows", "7", "EPSG:32621 (7)", "uint16 (7)", "longitude"):
        assert words in shown.stdout
    some = json.loads(
        command("info", out, "--where", "path > 'b'", "--bbox", -60, -28, -50, 0, "--json").stdout
    )
    assert some["rows"] == 1
    assert some["dtype"] == [{"value": "uint16", "rows": 1}]
    assert command("verify", out, "--deep").stdout == f"{out}: 7 rows, 0 stale\n"
    (scenes / "new.rumi").unlink()
    stale = command("verify", out, "--json")
    assert stale.exit_code == 1
    assert [row["row"] for row in json.loads(stale.stdout)["stale"]] == [6]
    assert "new.rumi" in command("verify", out).stderr


def test_info_names_bad_blobs(tmp_path):
    blobs = [bytes(make(tmp_path / "one.rumi")), b"x"]
    pq.write_table(pa.table({"path": ["a", "b"], "header": blobs}), tmp_path / "c.parquet")
    shown = command("info", tmp_path / "c.parquet")
    assert shown.exit_code == 1
    assert "b: the header blob" in shown.stderr
