"""URLs on the command line, wherever it takes paths."""

import json

import numpy as np
import oracle
import pytest
import rasterio
import servers
from click.testing import CliRunner
from rasterio import Affine

import rumi
from rumi.cli import cli
from rumi.remote import ObjectStore

BUCKET = "commands"
SECRET = "TOP-SECRET"
VALUES = oracle.random_samples((1, 16), (3, 70, 90))
UTM = (30.0, 0.0, 500000.0, 0.0, -30.0, 4600000.0)

pytestmark = pytest.mark.usefixtures("scratch")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A rumi file, its blob, and a GeoTIFF."""
    folder = tmp_path_factory.mktemp("files")
    header = rumi.write(
        folder / "a.rumi", VALUES, tile_size=32, codec="zstd", crs=32618, transform=UTM
    )
    (folder / "a.blob").write_bytes(bytes(header))
    profile = {"count": 3, "height": 70, "width": 90, "dtype": "uint16", "driver": "GTiff"}
    with rasterio.open(
        folder / "a.tif", "w", crs="EPSG:32618", transform=Affine(*UTM), **profile
    ) as dataset:
        dataset.write(VALUES)
    return folder


@pytest.fixture
def server(files):
    """A web server with these files."""
    with servers.RangeServer() as running:
        for name in ("a.rumi", "a.blob", "a.tif"):
            running.put(f"/{name}", (files / name).read_bytes())
        yield running


@pytest.fixture
def account(s3, monkeypatch):
    """Credentials where the tools of S3 look for them; the options to reach the server."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    s3.log.clear()
    s3.authorisations.clear()
    return ("--endpoint", s3.url, "--region", "us-east-1")


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def refused(status, *arguments):
    """Run what must fail with this status; return the one line that it says."""
    result = run(*arguments)
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("rumi: error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def stored(s3, name):
    keys = {"access_key_id": "ID", "secret_access_key": "KEY", "region": "us-east-1"}
    return ObjectStore(f"s3://{BUCKET}", endpoint=s3.url, **keys).source(name)


def contents(s3, name):
    opened = stored(s3, name).open()
    return opened.read(0, opened.size)


# --- Inputs


def test_info_header_and_validate(server, files, tmp_path):
    url = f"{server.url}/a.rumi"
    found = json.loads(done("info", url, "--json").stdout)
    local = json.loads(done("info", files / "a.rumi", "--json").stdout)
    assert found == {**local, "file": url}
    # What stands before the frames takes two requests.
    assert len(server.log) == 2
    server.log.clear()
    # With the blob, one for the blob and one for where the image lies.
    blob = f"{server.url}/a.blob"
    assert json.loads(done("info", url, "--header", blob, "--json").stdout) == found
    assert sorted(request.path for request in server.log)[:1] == ["/a.blob"]
    assert json.loads(done("info", blob, "--json").stdout)["kind"] == "header blob"
    done("header", url, "-o", tmp_path / "made.blob")
    assert (tmp_path / "made.blob").read_bytes() == (files / "a.blob").read_bytes()
    server.log.clear()
    assert json.loads(done("validate", url, "--header", blob, "--json").stdout)["ok"]
    # One for the index, and one for all, though every frame is looked at several times.
    assert [request.path for request in server.log] == ["/a.blob", "/a.rumi", "/a.rumi"]
    server.log.clear()
    done("validate", url, "--frames", "none")
    assert len(server.log) == 1
    # Nothing but that where it is no rumi file.
    server.put("/a.tif", server.objects["/a.tif"].data * 9)
    server.log.clear()
    assert run("validate", f"{server.url}/a.tif").exit_code == 1
    assert sum(request.sent for request in server.log) <= 2 * (64 << 10)


def test_read_preview_and_profile(server, files, tmp_path):
    url, blob = f"{server.url}/a.rumi", f"{server.url}/a.blob"
    window = ("--window", "3,4,20,20")
    done("read", url, "--header", blob, *window, "-o", tmp_path / "a.npy")
    assert np.array_equal(np.load(tmp_path / "a.npy"), VALUES[:, 3:23, 4:24])
    # One request for the blob, one for the frames of one tile.
    assert [request.path for request in server.log] == ["/a.blob", "/a.rumi"]
    done("read", url, *window, "-o", tmp_path / "a.png")
    done("preview", url, "-o", tmp_path / "b.png")
    server.log.clear()
    done("export", url, tmp_path / "back.tif")
    # The index, and everything once, though it is verified.
    assert len(server.log) <= 4
    assert sum(request.sent for request in server.log) < 1.1 * (files / "a.rumi").stat().st_size
    with rasterio.open(tmp_path / "back.tif") as dataset:
        assert np.array_equal(dataset.read(), VALUES)
    for source in (url, f"{server.url}/a.tif"):
        report = json.loads(done("profile", source, "--codec", "zstd", "--json").stdout)
        assert report["file"] == source
        assert report["recipes"][0]["recipe"]


def test_convert_from_a_url(server, tmp_path):
    done("convert", f"{server.url}/a.tif", tmp_path / "one.rumi")
    assert np.array_equal(rumi.read(tmp_path / "one.rumi"), VALUES)
    server.put("/b.TIF", server.objects["/a.tif"].data)
    done("convert", f"{server.url}/a.tif", f"{server.url}/b.TIF?x=1", tmp_path / "many")
    for name in ("a.rumi", "b.rumi"):
        assert np.array_equal(rumi.read(tmp_path / "many" / name), VALUES)


def test_file_urls_are_paths(files, tmp_path):
    for name in ("a.rumi", "a.blob"):
        done("info", (files / name).as_uri())
    done("read", (files / "a.rumi").as_uri(), "-o", (tmp_path / "a.npy").as_uri())
    assert np.array_equal(np.load(tmp_path / "a.npy"), VALUES)
    done("validate", files / "a.rumi", "--header", (files / "a.blob").as_uri())


def test_signatures_are_not_shown(server, files, tmp_path):
    query = f"?signature={SECRET}"
    url, blob = f"{server.url}/a.rumi{query}", f"{server.url}/a.blob{query}"
    for arguments in (
        ("info", url),
        ("info", blob),
        ("header", url, "-o", tmp_path / "x"),
        ("header", url, "--json"),
        ("read", url, "--header", blob, "-o", tmp_path / "x.npy"),
        ("preview", url, "-o", tmp_path / "x.png", "--json"),
        ("validate", url, "--header", blob),
        ("profile", url, "--codec", "zstd", "--json"),
        ("export", url, tmp_path / "x.tif", "--json"),
        ("convert", f"{server.url}/a.tif{query}", tmp_path / "x.rumi", "--json"),
    ):
        assert SECRET not in done(*arguments).output
    for arguments in (
        ("info", f"{server.url}/none{query}"),
        ("read", url, "-o", f"{server.url}/x.npy{query}"),
        ("read", url, "-o", f"{server.url}/x.tif{query}"),
        ("preview", url, "-o", f"{server.url}/x{query}"),
        ("convert", files / "a.tif", f"{server.url}/x.rumi{query}"),
    ):
        result = run(*arguments)
        assert result.exit_code in (1, 2)
        assert SECRET not in result.output


# --- Outputs


def test_every_output_goes_to_a_store(s3, account, files):
    out = f"s3://{BUCKET}/out"
    done("convert", files / "a.tif", f"{out}/a.rumi", "--tile-size", 32, *account)
    header = rumi.index(stored(s3, "out/a.rumi"))
    assert np.array_equal(rumi.read(stored(s3, "out/a.rumi"), header), VALUES)
    done("header", f"{out}/a.rumi", "-o", f"{out}/a.blob", *account)
    assert contents(s3, "out/a.blob") == bytes(header)
    said = done(
        *("read", f"{out}/a.rumi", "--header", f"{out}/a.blob", "-o", f"{out}/a.npy"), *account
    )
    assert f"{out}/a.npy: 3 x 70 x 90 uint16" in said.stdout
    assert contents(s3, "out/a.npy").startswith(b"\x93NUMPY")
    done("read", f"{out}/a.rumi", "-o", f"{out}/a.png", *account)
    done("preview", f"{out}/a.rumi", "-o", f"{out}/b.png", *account)
    done("profile", f"{out}/a.rumi", "--codec", "zstd", "-o", f"{out}/c.png", *account)
    for name in "abc":
        assert contents(s3, f"out/{name}.png").startswith(b"\x89PNG")
    done("export", f"{out}/a.rumi", f"{out}/a.tif", *account)
    done("convert", f"{out}/a.tif", f"{out}/again.rumi", *account)
    assert np.array_equal(rumi.read(stored(s3, "out/again.rumi")), VALUES)


def test_several_files_into_a_prefix(s3, account, files):
    folder = f"s3://{BUCKET}/many/"
    arguments = ("convert", files / "a.tif", folder, *account)
    assert json.loads(done(*arguments, "--json").stdout)["converted"] == 1
    assert np.array_equal(rumi.read(stored(s3, "many/a.rumi")), VALUES)
    assert json.loads(done(*arguments, "--redo", "--json").stdout)["converted"] == 1


def test_catalogs(s3, account, files, tmp_path):
    pytest.importorskip("pyarrow", reason="catalogs need pyarrow")
    for name in ("cat/a.rumi", "cat/deep/b.rumi"):
        s3.put(BUCKET, name, (files / "a.rumi").read_bytes())
    where = f"s3://{BUCKET}/cat"
    for inputs, rows in (
        ((f"{where}/",), 2),
        ((f"{where}/*.rumi",), 1),
        ((f"{where}/a.rumi", files / "a.rumi"), 2),
    ):
        made = done("catalog", "build", *inputs, tmp_path / "c.parquet", "--json", *account)
        assert json.loads(made.stdout)["rows"] == rows
    done("catalog", "build", f"{where}/", f"{where}/c.parquet", *account)
    said = json.loads(done("catalog", "info", f"{where}/c.parquet", "--json", *account).stdout)
    assert said["rows"] == 2
    done("catalog", "verify", f"{where}/c.parquet", "--deep", *account)
    done("catalog", "build", "--append", files / "a.rumi", f"{where}/c.parquet", *account)
    s3.put(BUCKET, "cat/a.rumi", (files / "a.rumi").read_bytes()[:-1])
    stale = run("catalog", "verify", f"{where}/c.parquet", *account)
    assert stale.exit_code == 1
    assert "a.rumi" in stale.stderr
    assert "b.rumi" not in stale.stderr
    line = refused(1, "catalog", "build", f"{where}/none/", tmp_path / "d.parquet", *account)
    assert "no .rumi file" in line


def test_an_existing_output_takes_overwrite(s3, account, files, tmp_path):
    for target, options in (
        (tmp_path / "a.rumi", ()),
        (f"s3://{BUCKET}/kept/a.rumi", account),
    ):
        done("convert", files / "a.tif", target, *options)
        line = refused(1, "convert", files / "a.tif", target, *options)
        assert f"{target}: exists already" in line
        assert "--overwrite" in line
        done("convert", files / "a.tif", target, "--overwrite", *options)
    for target, options in ((tmp_path / "a.tif", ()), (f"s3://{BUCKET}/kept/a.tif", account)):
        done("export", files / "a.rumi", target, *options)
        assert "--overwrite" in refused(1, "export", files / "a.rumi", target, *options)
        done("export", files / "a.rumi", target, "--overwrite", *options)
    assert "--redo" in refused(2, "convert", files / "a.tif", tmp_path, "--overwrite")


def test_a_failed_upload_leaves_nothing_and_says_so(files):
    with servers.RangeServer() as server:
        server.always["/bucket/a.rumi"] = servers.status(503)
        options = ("--endpoint", server.url, "--store-option", "retries=0")
        keys = ("access_key_id=ID", "secret_access_key=KEY")
        options += tuple(word for key in keys for word in ("--store-option", key))
        line = refused(1, "convert", files / "a.tif", "s3://bucket/a.rumi", "--overwrite", *options)
        assert "s3://bucket/a.rumi: not uploaded: " in line
        assert "503" in line
        assert [request.method for request in server.log] == ["PUT"]
        # Whether it exists cannot be told either.
        assert "503" in refused(1, "convert", files / "a.tif", "s3://bucket/a.rumi", *options)


def test_places_that_are_refused(files, server, tmp_path):
    for words, status, arguments in (
        ("plain HTTP", 1, ("convert", files / "a.tif", f"{server.url}/x.rumi")),
        ("plain HTTP", 1, ("export", files / "a.rumi", f"{server.url}/x.tif")),
        ("plain HTTP", 1, ("header", files / "a.rumi", "-o", f"{server.url}/x")),
        ("plain HTTP", 1, ("read", files / "a.rumi", "-o", f"{server.url}/x.npy")),
        ("name of an object", 1, ("convert", files / "a.tif", "s3://bucket")),
        ("no store is known for ftp", 1, ("info", "ftp://host/a.rumi")),
        ("no store is known for ftp", 1, ("convert", files / "a.tif", "ftp://host/a.rumi")),
        ("404", 1, ("info", f"{server.url}/none.rumi")),
        ("404", 1, ("info", files / "a.rumi", "--header", f"{server.url}/none")),
        ("blob", 1, ("info", files / "a.rumi", "--header", f"{server.url}/a.rumi")),
        ("local folder", 2, ("demo", "-o", "s3://bucket/demo")),
        ("local folder", 2, ("formats", "--target", "ksy", "-o", "s3://bucket/formats")),
        ("on local disks", 1, ("convert", "s3://bucket/*.tif", f"{tmp_path}/")),
        ("go with a URL", 2, ("info", files / "a.rumi", "--endpoint", "http://x")),
        ("go with a URL", 2, ("info", files / "a.rumi", "--anonymous")),
        ("NAME=VALUE", 2, ("info", "s3://b/a", "--store-option", "retries")),
        ("number", 2, ("info", "s3://b/a", "--store-option", "retries=many")),
        ("--anonymous", 2, ("info", "s3://b/a", "--store-option", "anonymous=false")),
        ("colour", 2, ("info", "s3://b/a", "--store-option", "colour=red")),
        ("anonymous", 2, ("info", "s3://b/a", "--anonymous", "--store-option", "token=x")),
    ):
        assert words in refused(status, *arguments)
    assert list(tmp_path.iterdir()) == []


# --- Options of stores


def test_anonymous_is_about_what_is_read(s3, account, files):
    s3.put(BUCKET, "public.rumi", (files / "a.rumi").read_bytes(), public=True)
    s3.put(BUCKET, "public.tif", (files / "a.tif").read_bytes(), public=True)
    s3.authorisations.clear()
    done("info", f"s3://{BUCKET}/public.rumi", "--anonymous", *account)
    assert set(s3.authorisations) == {None}
    s3.log.clear()
    s3.authorisations.clear()
    target = f"s3://{BUCKET}/mine.rumi"
    done("convert", f"s3://{BUCKET}/public.tif", target, "--anonymous", "--overwrite", *account)
    signed = {line.split()[0]: key for line, key in zip(s3.log, s3.authorisations, strict=True)}
    assert signed["GET"] is None
    assert "Credential=ID/" in signed["PUT"]


def test_headers_and_numbers_reach_a_web_server(files):
    seen = []

    def guarded(exchange):
        seen.append(exchange.headers.get("authorization"))
        return servers.answer(exchange)

    with servers.RangeServer() as server:
        server.put("/a.rumi", (files / "a.rumi").read_bytes())
        server.always["/a.rumi"] = guarded
        # An endpoint is about stores that have one.
        done(
            *("info", f"{server.url}/a.rumi", "--endpoint", "http://nowhere.invalid"),
            *("--store-option", "header.Authorization=Bearer x", "--store-option", "timeout=9"),
        )
        assert set(seen) == {"Bearer x"}
        server.always["/a.rumi"] = servers.status(503)
        server.log.clear()
        refused(1, "info", f"{server.url}/a.rumi", "--store-option", "retries=1")
        assert len(server.log) == 2


def test_secrets_of_the_options_are_not_shown():
    options = ("--store-option", f"secret_access_key={SECRET}", "--store-option", "access_key_id=x")
    fast = ("--store-option", "retries=0", "--endpoint", "http://127.0.0.1:9")
    assert SECRET not in refused(1, "info", "s3://bucket/a.rumi", *options, *fast)
