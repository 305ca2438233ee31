"""GeoTIFFs and rumi files behind URLs: converting from them, to them, and back."""

import os
import time
from email.utils import formatdate

import numpy as np
import pytest
import rasterio
import servers
from rasterio import Affine

import rumi
from rumi import geotiff
from rumi.geotiff import Failure, convert_many
from rumi.remote import ObjectStore

BUCKET = "scenes"
KEYS = {"access_key_id": "ID", "secret_access_key": "KEY", "region": "us-east-1"}
UTM = Affine(30, 0, 500000, 0, -30, 4600000)
VALUES = np.arange(2 * 70 * 90, dtype=np.uint16).reshape(2, 70, 90)
OPTIONS = {"tile_size": 32, "codec": "zstd"}

pytestmark = pytest.mark.usefixtures("scratch")


def tiff_bytes(values=VALUES, **options):
    bands, height, width = values.shape
    profile = {"count": bands, "height": height, "width": width, "dtype": values.dtype}
    with rasterio.MemoryFile() as memory:
        with memory.open(
            driver="GTiff", crs="EPSG:32618", transform=UTM, **profile, **options
        ) as dataset:
            dataset.write(values)
        return memory.read()


TIFF = tiff_bytes()


@pytest.fixture
def store(s3):
    s3.log.clear()
    return ObjectStore(f"s3://{BUCKET}", endpoint=s3.url, **KEYS)


@pytest.fixture
def server():
    with servers.RangeServer() as running:
        yield running


def puts(s3):
    return [line for line in s3.log if line.startswith(("PUT", "POST"))]


def test_a_geotiff_by_url_to_a_local_file(server, tmp_path):
    url = server.put("/deep/a b.tif", TIFF).replace(" ", "%20")
    done = geotiff.convert(url, tmp_path / "a.rumi", **OPTIONS)
    assert (done.src, done.bytes_in, done.epsg) == (url, len(TIFF), 32618)
    assert np.array_equal(rumi.read(tmp_path / "a.rumi"), VALUES)
    assert "%20" in url
    # All of it in one request, and nothing beside it was looked for.
    assert [request.method for request in server.log] == ["GET"]
    found = geotiff.inspect(url)
    assert (found.src, found.files) == (url, (url,))


def test_a_large_geotiff_comes_in_ranges_of_one_state(server, tmp_path):
    server.put("/a.tif", TIFF, etag='"1"')
    source = ObjectStore(server.url, largest=5000).source("a.tif")
    geotiff.convert(source, tmp_path / "a.rumi", **OPTIONS)
    assert np.array_equal(rumi.read(tmp_path / "a.rumi"), VALUES)
    ranges = server.ranges()
    assert len(ranges) == -(-len(TIFF) // 5000)
    assert sum(stop - start for start, stop in ranges) == len(TIFF)

    def replaced(exchange):
        servers.answer(exchange)
        exchange.server.put("/a.tif", TIFF[::-1], etag='"2"')
        return True

    server.faults["/a.tif"] = [replaced]
    before = (tmp_path / "a.rumi").read_bytes()
    with pytest.raises(rumi.StaleHeaderError, match=r"a\.tif: the object was replaced"):
        geotiff.convert(source, tmp_path / "a.rumi", **OPTIONS)
    assert (tmp_path / "a.rumi").read_bytes() == before


def test_what_is_wrong_with_a_geotiff_names_the_url(server, tmp_path):
    for name, data, kind, words in (
        ("broken.tif", b"II*\0", rumi.TruncatedError, "broken.tif"),
        ("empty.tif", b"", rumi.FormatError, "empty.tif"),
        ("page.tif", b"<html>no</html>" * 9, rumi.FormatError, "page.tif"),
        ("nodata.tif", tiff_bytes(nodata=7), rumi.UnsupportedError, "--drop nodata"),
    ):
        url = server.put(f"/{name}", data)
        with pytest.raises(kind, match=words) as caught:
            geotiff.convert(url, tmp_path / "a.rumi", **OPTIONS)
        assert str(caught.value).startswith(url)
    with pytest.raises(FileNotFoundError, match="404"):
        geotiff.convert(f"{server.url}/none.tif", tmp_path / "a.rumi")
    assert list(tmp_path.iterdir()) == []


def test_to_an_object_and_back(s3, store, tmp_path):
    target = store.source("deep/a.rumi")
    (tmp_path / "a.tif").write_bytes(TIFF)
    done = geotiff.convert(tmp_path / "a.tif", target, **OPTIONS)
    # Only the finished object, and no look whether there is an old one.
    assert s3.log == [f"PUT /{BUCKET}/deep/a.rumi 200"]
    assert done.dst == f"s3://{BUCKET}/deep/a.rumi"
    assert done.bytes_out == target.open().size
    assert np.array_equal(rumi.read(target, done.header), VALUES)
    back = geotiff.export(target, store.source("back.tif"))
    assert (back.dst, back.bytes_out) == (
        f"s3://{BUCKET}/back.tif",
        store.source("back.tif").open().size,
    )
    geotiff.convert(store.source("back.tif"), tmp_path / "again.rumi", **OPTIONS)
    assert np.array_equal(rumi.read(tmp_path / "again.rumi"), VALUES)


def test_an_object_that_exists_may_be_refused(s3, store, tmp_path):
    (tmp_path / "a.tif").write_bytes(TIFF)
    target = store.source("once.rumi")
    geotiff.convert(tmp_path / "a.tif", target, overwrite=False, **OPTIONS)
    geotiff.export(target, store.source("once.tif"), overwrite=False)
    s3.log.clear()
    for again, name in (
        (lambda: geotiff.convert(tmp_path / "a.tif", target, overwrite=False), "once.rumi"),
        (lambda: geotiff.export(target, store.source("once.tif"), overwrite=False), "once.tif"),
    ):
        with pytest.raises(
            FileExistsError, match=f"s3://{BUCKET}/{name}: exists already; .*--over"
        ):
            again()
    assert puts(s3) == []
    with pytest.raises(ValueError, match="same file"):
        geotiff.convert(store.source("once.tif"), store.source("once.tif"))


def test_nothing_appears_after_an_error(s3, store, tmp_path):
    (tmp_path / "a.tif").write_bytes(TIFF[:-200])
    for source, target, kind in (
        (tmp_path / "a.tif", store.source("no.rumi"), rumi.RumiError),
        (tmp_path / "none.tif", store.source("no.rumi"), FileNotFoundError),
        (tmp_path / "a.tif", "http://host/no.rumi", rumi.UnsupportedError),
        (tmp_path / "a.tif", f"s3://{BUCKET}", ValueError),
    ):
        with pytest.raises(kind):
            geotiff.convert(source, target, **OPTIONS)
    with pytest.raises(rumi.RumiError):
        geotiff.export(tmp_path / "a.tif", store.source("no.tif"))
    assert puts(s3) == []


@pytest.mark.parametrize("status", [503, 403])
def test_a_store_that_takes_nothing(tmp_path, status):
    (tmp_path / "a.tif").write_bytes(TIFF)
    rumi.write(tmp_path / "a.rumi", VALUES, **OPTIONS)
    with servers.RangeServer() as server:
        store = ObjectStore("s3://bucket", endpoint=server.url, retries=0, **KEYS)
        server.always["/bucket/a.rumi"] = servers.status(status)
        server.always["/bucket/a.tif"] = servers.status(status)
        with pytest.raises(rumi.SourceError, match=f"a.rumi: not uploaded: .*{status}"):
            geotiff.convert(tmp_path / "a.tif", store.source("a.rumi"), **OPTIONS)
        with pytest.raises(rumi.SourceError, match=f"a.tif: not uploaded: .*{status}"):
            geotiff.export(tmp_path / "a.rumi", store.source("a.tif"))


# --- Many


def statuses(results):
    return [
        "failed" if isinstance(one, Failure) else "skipped" if one.skipped else "done"
        for one in results
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_many_to_a_store_and_on(s3, store, tmp_path, workers):
    for name in ("a.tif", "b/c.tif"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(TIFF)
        os.utime(tmp_path / name, (time.time() - 60, time.time() - 60))
    (tmp_path / "bad.tif").write_bytes(TIFF[:100])
    folder = store.source(f"many{workers}/")
    results = convert_many(tmp_path, folder, workers=workers, **OPTIONS)
    assert statuses(results) == ["done", "done", "failed"]
    assert [one.dst for one in results] == [
        f"s3://{BUCKET}/many{workers}/{name}.rumi" for name in ("a", "b/c", "bad")
    ]
    assert np.array_equal(rumi.read(store.source(f"many{workers}/b/c.rumi")), VALUES)
    s3.log.clear()
    (tmp_path / "b" / "c.tif").write_bytes(TIFF)
    again = convert_many(tmp_path, folder, workers=workers, **OPTIONS)
    assert statuses(again) == ["skipped", "done", "failed"]
    assert puts(s3) == [f"PUT /{BUCKET}/many{workers}/b/c.rumi 200"]
    assert again[0].bytes_out == results[0].bytes_out


def test_many_from_urls_and_on(server, tmp_path):
    old = formatdate(time.time() - 3600, usegmt=True)
    urls = [server.put(f"/x/{name}.tif", TIFF, modified=old) for name in "ab"]
    urls.append(server.put("/x/undated.tif", TIFF, modified=None))
    assert statuses(convert_many(urls, tmp_path, **OPTIONS)) == ["done"] * 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.rumi", "b.rumi", "undated.rumi"]
    server.objects["/x/b.tif"].modified = formatdate(time.time() + 3600, usegmt=True)
    # Nobody can tell which of the undated ones is the newer.
    assert statuses(convert_many(urls, tmp_path, **OPTIONS)) == ["skipped", "done", "done"]


def test_folders_and_patterns_behind_urls_are_refused(server, tmp_path):
    for url in (f"{server.url}/x/", "s3://bucket/x/*.tif", "s3://bucket/"):
        with pytest.raises(ValueError, match="expected the URL of a GeoTIFF"):
            convert_many(url, tmp_path)
    with pytest.raises(rumi.UnsupportedError, match="plain HTTP"):
        convert_many(tmp_path, f"{server.url}/x/")
    with pytest.raises(ValueError, match="would both become"):
        convert_many([f"{server.url}/x/a.tif", f"{server.url}/y/a.tif"], tmp_path)
    assert server.log == []
