"""Remote writes: visible when whole, and not at all after an error (C22)."""

import os
import time

import oracle
import pytest
import servers

import rumi
from rumi.remote import ObjectStore
from rumi.remote.process import obstore

VALUES = oracle.random_samples((1, 16), (2, 40, 50))
BUCKET = "written"
KEYS = {"access_key_id": "ID", "secret_access_key": "KEY", "region": "us-east-1"}
OPTIONS = {"tile_size": 16, "codec": "zstd"}

pytestmark = pytest.mark.usefixtures("scratch")


@pytest.fixture
def store(s3):
    s3.log.clear()
    return ObjectStore(f"s3://{BUCKET}", endpoint=s3.url, **KEYS)


def local_bytes(tmp_path_factory, values, **options):
    path = tmp_path_factory.mktemp("local") / "a.rumi"
    rumi.write(path, values, **options)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["a.rumi", "deep/a b#c?d%20/é.rumi"])
def test_an_object_is_what_a_local_file_would_be(s3, store, name, tmp_path_factory):
    target = store.source(name)
    header = rumi.write(target, VALUES, **OPTIONS, crs=32618, transform=(30, 0, 5, 0, -30, 6))
    assert s3.log == [f"PUT /{BUCKET}/{name} 200"]
    assert rumi.index(target) == header
    assert oracle.same_bits(rumi.read(target, header), VALUES)
    assert rumi.open(target).epsg == 32618
    expected = local_bytes(
        tmp_path_factory, VALUES, **OPTIONS, crs=32618, transform=(30, 0, 5, 0, -30, 6)
    )
    opened = target.open()
    assert opened.read(0, opened.size) == expected


def test_a_plain_url(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "KEY")
    header = rumi.write(f"s3://{BUCKET}/plain.rumi", VALUES, **OPTIONS)
    assert oracle.same_bits(rumi.read(f"s3://{BUCKET}/plain.rumi", header), VALUES)


def test_a_large_object_comes_in_parts_and_whole(s3, store):
    values = oracle.random_samples((1, 8), (1, 3000, 4000))
    header = rumi.write(store.source("large.rumi"), values, tile_size=1024, codec="zstd")
    assert oracle.same_bits(rumi.read(store.source("large.rumi"), header), values)
    parts = [line for line in s3.log if line.startswith("PUT")]
    assert len(parts) > 1
    # The line that makes it appear is the last one before the reads.
    position = len(s3.log) - s3.log[::-1].index(parts[-1])
    assert s3.log[position] == f"POST /{BUCKET}/large.rumi 200"


class BrokenError(Exception):
    """Not one of ours."""


@pytest.mark.parametrize("error", [BrokenError, KeyboardInterrupt, rumi.CodecError])
def test_nothing_is_uploaded_after_an_error(s3, store, error):
    target = store.source("old.rumi")
    header = rumi.write(target, VALUES, **OPTIONS)
    s3.log.clear()

    def broken(window):
        if window[0] >= 32:
            raise error
        row, col, height, width = window
        return VALUES[:, row : row + height, col : col + width] + 1

    with pytest.raises(error):
        rumi.write(target, broken, shape=VALUES.shape, dtype=VALUES.dtype, **OPTIONS)
    assert s3.log == []
    assert oracle.same_bits(rumi.read(target, header), VALUES)
    # And it can be tried again.
    other = VALUES[:, ::-1]
    assert oracle.same_bits(rumi.read(target, rumi.write(target, other, **OPTIONS)), other)


def test_mistakes_are_refused_before_any_work(store):
    def never(window):
        raise AssertionError("asked for samples")

    options = {"shape": VALUES.shape, "dtype": VALUES.dtype, **OPTIONS}
    for target, kind, words in (
        ("http://host/a.rumi", rumi.UnsupportedError, "HTTP"),
        ("https://host/a.rumi?sig=SECRET", rumi.UnsupportedError, r"a\.rumi\?\.\.\.: plain HTTP"),
        (ObjectStore("http://host").source("a"), rumi.UnsupportedError, "HTTP"),
        (
            ObjectStore(obstore().stores.HTTPStore("https://host")).source("a"),
            rumi.UnsupportedError,
            "HTTP",
        ),
        ("ftp://host/a.rumi", rumi.UnsupportedError, "fsspec"),
        (f"s3://{BUCKET}", ValueError, "name"),
        (f"s3://{BUCKET}/folder/", ValueError, "name"),
        (store.source("a", etag="x"), ValueError, "old object"),
        (store.source("a", size=5), ValueError, "old object"),
    ):
        with pytest.raises(kind, match=words) as caught:
            rumi.write(target, never, **options)
        assert "SECRET" not in str(caught.value)


def test_an_upload_that_is_refused(s3):
    for where, words in (("s3://nobody", "404: Not Found: NoSuchBucket"),):
        target = ObjectStore(where, endpoint=s3.url, **KEYS).source("a.rumi")
        with pytest.raises(rumi.SourceError, match=f"{where}/a.rumi: not uploaded: .*{words}"):
            rumi.write(target, VALUES, **OPTIONS)


def test_an_upload_that_fails_for_a_while():
    with servers.RangeServer() as server:
        store = ObjectStore("s3://bucket", endpoint=server.url, retries=2, **KEYS)
        server.faults["/bucket/a.rumi"] = [servers.status(503)]
        server.always["/bucket/a.rumi"] = servers.accept
        rumi.write(store.source("a.rumi"), VALUES, **OPTIONS)
        assert [request.status for request in server.log] == [503, 200]
        server.log.clear()
        server.always["/bucket/a.rumi"] = servers.status(503)
        with pytest.raises(rumi.SourceError, match="not uploaded.*503") as caught:
            rumi.write(store.source("a.rumi"), VALUES, **OPTIONS)
        assert caught.value.status == 503
        assert len(server.log) == 3


def test_an_upload_may_take_longer_than_an_answer(store):
    def slow(exchange):
        time.sleep(0.5)
        return servers.accept(exchange)

    with servers.RangeServer() as server:
        store = ObjectStore("s3://bucket", endpoint=server.url, timeout=0.2, retries=0, **KEYS)
        server.always["/bucket/a.rumi"] = slow
        rumi.write(store.source("a.rumi"), VALUES, **OPTIONS)
        server.always["/bucket/a.rumi"] = servers.stall
        start = time.perf_counter()
        with pytest.raises(rumi.SourceError, match="not uploaded: timed out"):
            rumi.write(store.source("a.rumi"), VALUES, **OPTIONS)
        assert time.perf_counter() - start < 10


def test_other_places(tmp_path_factory):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    root = tmp_path_factory.mktemp("files")
    stores = obstore().stores
    files, memory = fsspec.filesystem("file"), fsspec.filesystem("memory")
    for target in (
        ObjectStore(stores.LocalStore(str(root))).source("a.rumi"),
        ObjectStore(root.as_uri()).source("b.rumi"),
        ObjectStore(stores.MemoryStore()).source("a.rumi"),
        ObjectStore(files).source(str(root / "c.rumi")),
        ObjectStore(memory).source("/rumi/written.rumi"),
        "memory://rumi/other.rumi",
    ):
        header = rumi.write(target, VALUES, **OPTIONS)
        assert oracle.same_bits(rumi.read(target, header), VALUES)
        # Over the old one too.
        header = rumi.write(target, VALUES[:1], **OPTIONS)
        assert oracle.same_bits(rumi.read(target), VALUES[:1])
    assert sorted(os.listdir(root)) == ["a.rumi", "b.rumi", "c.rumi"]
    memory.rm("/rumi", recursive=True)


def test_an_upload_to_a_file_system_that_fails_leaves_the_old_file(tmp_path_factory, monkeypatch):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    from fsspec.implementations.local import LocalFileOpener

    root = tmp_path_factory.mktemp("files")
    target = ObjectStore(fsspec.filesystem("file")).source(str(root / "a.rumi"))
    header = rumi.write(target, VALUES, **OPTIONS)

    def full(self, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileOpener, "write", full)
        with pytest.raises(rumi.SourceError, match="not uploaded.*No space left"):
            rumi.write(target, VALUES[:1], **OPTIONS)
    assert os.listdir(root) == ["a.rumi"]
    assert oracle.same_bits(rumi.read(target, header), VALUES)
