"""Real servers and other people's clients: S3 (moto), nginx, obstore's stores, fsspec."""

import asyncio
import importlib.util
import os
import pickle
from importlib import metadata

import numpy as np
import oracle
import pytest
import servers

import rumi
import rumi.aio
from rumi.remote import ObjectStore
from rumi.remote.process import obstore

VALUES = oracle.random_samples((1, 16), (2, 40, 50))
FILE, BLOB = oracle.write(VALUES, (16, 16))
HEADER = rumi.Header(BLOB)
WINDOW = (5, 5, 20, 20)
EXPECTED = oracle.numpy_window(VALUES, None, WINDOW)
BUCKET = "chips"
NAMES = ["a.rumi", "a b#c?d%20/é.rumi"]
KEYS = {"access_key_id": "ID", "secret_access_key": "KEY", "region": "us-east-1"}

pytestmark = pytest.mark.usefixtures("clean_environment")


def assert_reads(source, *, blob=BLOB):
    """All routes give the same bits."""
    for header in (blob, None):
        assert oracle.same_bits(rumi.read(source, header, window=WINDOW), EXPECTED)
        assert oracle.same_bits(rumi.open(source, header).read(window=WINDOW), EXPECTED)
        assert oracle.same_bits(rumi.read_many([source] * 2, header, WINDOW)[1], EXPECTED)
        found = asyncio.run(rumi.aio.read(source, header, window=WINDOW))
        assert oracle.same_bits(found, EXPECTED)
    assert bytes(rumi.index(source)) == BLOB
    assert rumi.open(source).epsg is None
    assert oracle.same_bits(rumi.read(pickle.loads(pickle.dumps(source)), blob), VALUES)


# --- S3


@pytest.fixture(scope="module")
def s3(s3):
    """The server, with the file under all names, and one that anybody may read."""
    for name in NAMES:
        s3.put(BUCKET, name, FILE)
    s3.put(BUCKET, "public.rumi", FILE, public=True)
    return s3


@pytest.fixture
def store(s3):
    s3.log.clear()
    return ObjectStore(f"s3://{BUCKET}", endpoint=s3.url, **KEYS)


@pytest.mark.parametrize("name", NAMES)
def test_s3(store, name):
    assert store.source(name).name == f"s3://{BUCKET}/{name}"
    assert_reads(store.source(name))


def test_s3_requests(s3, store):
    rumi.read(store.source("a.rumi"), BLOB, window=WINDOW)
    assert s3.log == [f"GET /{BUCKET}/a.rumi 206"]
    s3.log.clear()
    rumi.index(store.source("a.rumi"))
    assert s3.log == [f"GET /{BUCKET}/a.rumi 206"] * 2


def test_a_prefix(s3):
    s3.put(BUCKET, "deep/er/a.rumi", FILE)
    for where in (f"s3://{BUCKET}/deep", f"s3://{BUCKET}/deep/", f"s3a://{BUCKET}/deep"):
        store = ObjectStore(where, endpoint=s3.url, **KEYS)
        assert oracle.same_bits(rumi.read(store.source("er/a.rumi"), BLOB), VALUES)


def test_s3_pins_are_etags_of_the_service(s3, store):
    etag = s3.put(BUCKET, "pinned.rumi", FILE)
    source = store.source("pinned.rumi", etag=etag)
    assert oracle.same_bits(rumi.read(source, BLOB), VALUES)
    s3.put(BUCKET, "pinned.rumi", FILE[:-1] + b"x")
    with pytest.raises(rumi.StaleHeaderError, match=r"s3://chips/pinned\.rumi.*replaced"):
        rumi.read(source, BLOB)


def test_s3_errors_say_what_the_service_says(s3, store):
    with pytest.raises(FileNotFoundError, match=r"s3://chips/none.*404.*NoSuchKey.*does not exist"):
        rumi.read(store.source("none"), BLOB)
    elsewhere = ObjectStore("s3://nobody", endpoint=s3.url, **KEYS)
    with pytest.raises(FileNotFoundError, match="NoSuchBucket"):
        rumi.read(elsewhere.source("a.rumi"), BLOB)


def test_settings_may_come_from_the_environment(s3, monkeypatch):
    """Of a plain URL, as those of every other tool."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "KEY")
    for name in NAMES:
        assert_reads(f"s3://{BUCKET}/{name}")


def test_anonymous_beats_ambient_credentials_and_asks_nobody(s3, monkeypatch):
    with servers.RangeServer() as instance:
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", instance.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ID")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "KEY")
        seen = s3.authorisations
        seen.clear()
        anonymous = ObjectStore(f"s3://{BUCKET}", endpoint=s3.url, anonymous=True)
        assert oracle.same_bits(rumi.read(anonymous.source("public.rumi"), BLOB), VALUES)
        with pytest.raises(rumi.SourceError, match="403") as caught:
            rumi.read(anonymous.source("a.rumi"), BLOB)
        assert caught.value.status == 403
        assert seen == [None, None]
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        rumi.read(anonymous.source("public.rumi"), BLOB)
        assert instance.log == []


def test_no_credentials_at_all(monkeypatch):
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{servers.free_port()}")
    with pytest.raises(rumi.SourceError, match=r"no credentials.*anonymous=True \(--anonymous\)$"):
        rumi.read(f"s3://{BUCKET}/a.rumi", BLOB)


def test_a_store_of_obstore(s3):
    given = obstore().stores.S3Store(
        BUCKET, prefix="deep", endpoint=s3.url, client_options={"allow_http": True}, **KEYS
    )
    s3.put(BUCKET, "deep/b.rumi", FILE)
    source = ObjectStore(given).source("b.rumi")
    assert source.name == f"s3://{BUCKET}/deep/b.rumi"
    assert_reads(source)
    with pytest.raises(TypeError, match="settings"):
        ObjectStore(given, region="us-east-1")
    with pytest.raises(TypeError, match=r"RemoteSource"):
        rumi.read(given)


# --- The other services' URLs and ways to name things


def test_google_and_azure_urls(monkeypatch):
    with servers.RangeServer() as server:
        # Reading them is not needed, and must not be an error.
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/credentials.json")
        for name in NAMES:
            server.put(f"/bucket/p/{name}", FILE, etag='"one"')
            google = ObjectStore("gs://bucket/p", anonymous=True, endpoint=server.url)
            azure = ObjectStore(
                "az://bucket/p", anonymous=True, endpoint=server.url, account_name="account"
            )
            for store, scheme in ((google, "gs"), (azure, "az")):
                assert store.source(name).name == f"{scheme}://bucket/p/{name}"
                assert oracle.same_bits(rumi.read(store.source(name), BLOB), VALUES)
                assert_reads(store.source(name))
        monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
        if tuple(map(int, metadata.version("obstore").split(".")[:2])) >= (0, 11):
            signed = ObjectStore("gs://bucket/p", endpoint=server.url, bearer_token="TOKEN")
            assert oracle.same_bits(rumi.read(signed.source("a.rumi"), BLOB), VALUES)


def test_an_azure_url_with_its_account():
    store = ObjectStore("abfss://container@account.dfs.core.windows.net/p", anonymous=True)
    store.client()
    assert store.source("a").name == "abfss://container@account.dfs.core.windows.net/p/a"


# --- nginx


@pytest.fixture(scope="module")
def nginx(tmp_path_factory):
    if servers.nginx_program() is None:
        pytest.skip("nginx is not installed, so no real web server is asked")
    root = tmp_path_factory.mktemp("www")
    root.chmod(0o755)
    for name in NAMES:
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(FILE)
    for folder in (root, root.parent, root.parent.parent):
        # nginx gives up its rights, and its worker must reach the folder.
        folder.chmod(folder.stat().st_mode | 0o055)
    with servers.Nginx(root) as nginx:
        yield nginx


@pytest.mark.parametrize("name", NAMES)
def test_nginx(nginx, name):
    source = ObjectStore(nginx.url).source(name)
    assert_reads(source)
    assert_reads(source.name)


def test_nginx_requests(nginx):
    url = f"{nginx.url}/a.rumi"
    nginx.log()
    rumi.read(url, BLOB, window=WINDOW)
    offsets, counts = HEADER.ranges(None, WINDOW)
    start, stop = int(offsets[0]), int(offsets[-1] + counts[-1])
    assert nginx.log() == [("GET", "/a.rumi", f"bytes={start}-{stop - 1}", 206, stop - start)]
    rumi.index(url)
    assert [(line[0], line[3]) for line in nginx.log()] == [("GET", 206)] * 2


def test_nginx_errors(nginx):
    for path, kind, status in (
        ("none.rumi", FileNotFoundError, 404),
        ("private/a.rumi", rumi.SourceError, 403),
    ):
        with pytest.raises(kind) as caught:
            rumi.read(f"{nginx.url}/{path}", BLOB)
        assert caught.value.status == status
    with pytest.raises(rumi.StaleHeaderError, match="replaced"):
        rumi.read(ObjectStore(nginx.url).source("a.rumi", etag="old"), BLOB)


def test_a_file_replaced_under_nginx(nginx):
    path = nginx.root / "changing.rumi"
    path.write_bytes(FILE)
    image = rumi.open(f"{nginx.url}/changing.rumi")
    assert oracle.same_bits(image.read(), VALUES)
    data, _ = oracle.write(VALUES[:, ::-1].copy(), (16, 16))
    other = nginx.root / "other.rumi"
    other.write_bytes(data)
    # nginx makes the ETag of the size, which is equal, and the second.
    os.utime(other, (0, path.stat().st_mtime + 10))
    other.replace(path)
    with pytest.raises(rumi.StaleHeaderError):
        image.read()


# --- Local folders and memory


def test_stores_of_obstore_that_need_no_server(tmp_path):
    (tmp_path / "a.rumi").write_bytes(FILE)
    stores = obstore().stores
    memory = stores.MemoryStore()
    memory.put("a.rumi", FILE)
    local = ObjectStore(stores.LocalStore(str(tmp_path)))
    assert_reads(local.source("a.rumi"))
    assert oracle.same_bits(rumi.read(ObjectStore(memory).source("a.rumi"), BLOB), VALUES)
    with pytest.raises(FileNotFoundError):
        rumi.read(ObjectStore(memory).source("b.rumi"), BLOB)
    with pytest.raises(TypeError):
        pickle.dumps(ObjectStore(memory))


def test_a_folder_as_a_store(tmp_path):
    folder = tmp_path / "ñ d"
    folder.mkdir()
    (folder / "a.rumi").write_bytes(FILE)
    source = ObjectStore(folder.as_uri()).source("a.rumi")
    assert_reads(source)
    assert str(folder) in source.name


# --- fsspec

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")


@pytest.fixture
def memory():
    files = fsspec.filesystem("memory")
    files.pipe_file("/rumi/a.rumi", FILE)
    yield files
    files.rm("/rumi", recursive=True)


def test_memory_urls_are_the_memory_of_fsspec(memory):
    assert_reads("memory://rumi/a.rumi")
    assert_reads("memory:///rumi/a.rumi")
    assert_reads(ObjectStore("memory://rumi").source("a.rumi"))
    with pytest.raises(FileNotFoundError, match="memory://rumi/none"):
        rumi.read("memory://rumi/none", BLOB)


def test_a_file_system_of_fsspec(memory, tmp_path):
    (tmp_path / "a.rumi").write_bytes(FILE)
    for files, path in ((memory, "/rumi/a.rumi"), (fsspec.filesystem("file"), tmp_path / "a.rumi")):
        source = ObjectStore(files).source(str(path))
        assert "://" in source.name
        assert_reads(source)
        with pytest.raises(FileNotFoundError) as caught:
            rumi.read(ObjectStore(files).source(f"{path}x"), BLOB)
        assert isinstance(caught.value, rumi.SourceError)
    with pytest.raises(TypeError, match="RemoteSource"):
        rumi.read(memory)


def test_an_archive_of_fsspec(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("in/a.rumi", FILE)
    files = fsspec.filesystem("zip", fo=str(tmp_path / "a.zip"))
    source = ObjectStore(files, max_connections=1).source("in/a.rumi")
    assert oracle.same_bits(rumi.read(source, BLOB), VALUES)
    assert bytes(rumi.index(source)) == BLOB


def test_fsspec_and_another_object(memory):
    data, _ = oracle.write(VALUES[:, :16], (16, 16))
    memory.pipe_file("/rumi/b.rumi", data)
    source = ObjectStore(memory).source("/rumi/b.rumi")
    with pytest.raises(rumi.StaleHeaderError):
        rumi.read(source, BLOB)
    for pins in ({"size": 5}, {"sha256": "00" * 32}):
        with pytest.raises(rumi.StaleHeaderError):
            rumi.read(ObjectStore(memory).source("/rumi/a.rumi", **pins), BLOB)
    with pytest.raises(rumi.StaleHeaderError, match="ETag"):
        rumi.read(ObjectStore(memory).source("/rumi/a.rumi", etag="x"), BLOB)


def test_http_through_fsspec():
    """An asynchronous file system, whose loop is a thread of its own."""
    if importlib.util.find_spec("aiohttp") is None:
        pytest.skip("aiohttp is not installed, which fsspec needs for HTTP")
    with servers.RangeServer() as server:
        url = server.put("/a.rumi", FILE, etag='"one"')
        source = ObjectStore(fsspec.filesystem("http")).source(url)
        rumi.read(source, BLOB, window=WINDOW)
        assert [request.method for request in server.log] == ["GET"]
        assert source.name == url
        assert_reads(source)
        server.log.clear()
        pinned = ObjectStore(fsspec.filesystem("http")).source(url, etag="one", size=len(FILE))
        assert oracle.same_bits(rumi.read(pinned, BLOB), VALUES)
        for act, status in ((servers.status(403), 403), (servers.status(503), 503)):
            server.always["/a.rumi"] = act
            with pytest.raises(rumi.SourceError) as caught:
                rumi.read(source, BLOB)
            assert caught.value.status == status
            assert url in str(caught.value)
        server.always.clear()
        retrying = ObjectStore(fsspec.filesystem("http"), retries=2).source(url)
        for fault in (servers.status(503), servers.reset, servers.cut_body):
            server.faults["/a.rumi"] = [fault]
            assert np.array_equal(rumi.read(retrying, BLOB), VALUES)


def test_a_file_system_that_sends_something_else():
    class Odd(type(fsspec.filesystem("memory"))):
        """Sends what it was told to."""

        protocol = "odd"
        cachable = False
        reply = b""

        def cat_file(self, path, start=None, end=None, **_):
            return type(self).reply(start, end)

        def info(self, path, **_):
            return {"name": path, "size": len(FILE), "type": "file"}

    source = ObjectStore(Odd()).source("a")
    for reply, words in (
        (lambda start, end: FILE, "expected"),
        (lambda start, end: FILE[start : end - 1], "expected"),
        (lambda start, end: b"", "expected"),
    ):
        Odd.reply = staticmethod(reply)
        with pytest.raises(rumi.SourceError, match=words):
            rumi.read(source, BLOB, window=WINDOW)
