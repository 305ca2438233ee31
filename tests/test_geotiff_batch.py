"""Many GeoTIFFs at once: folders, patterns, processes, and going on where it stopped."""

import os
import pickle
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import rasterio
from deadly import DeadlyJob, UnluckyJob
from rasterio import Affine
from tiffs import ASCII, tiff

import rumi
from rumi import geotiff
from rumi.geotiff import Conversion, Failure, convert_many

UTM = Affine(30, 0, 500000, 0, -30, 4600000)


def write(path, value=1, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    profile = {"width": 20, "height": 10, "count": 1, "dtype": "uint8", "driver": "GTiff"}
    with rasterio.open(path, "w", crs="EPSG:32618", transform=UTM, **profile, **options) as dataset:
        dataset.write(np.full((1, 10, 20), value, np.uint8))
    return path


@pytest.fixture
def scenes(tmp_path):
    """Return a folder with three good files, one with nodata, one damaged."""
    folder = tmp_path / "scenes"
    for number, name in enumerate(("a.tif", "b/c.TIF", "b/d/e.tiff")):
        write(folder / name, number)
    write(folder / "nodata.tif", nodata=7)
    (folder / "b" / "broken.tif").write_bytes(b"II*\0")
    (folder / "b" / ".hidden.tif").write_bytes(b"")
    (folder / "readme.txt").write_text("no image")
    return folder


def kinds(results):
    return {
        os.path.basename(result.src): getattr(
            result, "kind", "skipped" * getattr(result, "skipped", 0)
        )
        for result in results
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_folder(tmp_path, scenes, workers):
    out = tmp_path / "out"
    seen = []
    results = convert_many(
        scenes, out, workers=workers, on_progress=lambda *args: seen.append(args), tile_size=16
    )
    assert kinds(results) == {
        "a.tif": "",
        "c.TIF": "",
        "e.tiff": "",
        "nodata.tif": "UnsupportedError",
        "broken.tif": "TruncatedError",
    }
    assert [result.src for result in results] == sorted(result.src for result in results)
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert files == ["a.rumi", "b/c.rumi", "b/d/e.rumi"]
    assert rumi.read(out / "b" / "d" / "e.rumi").max() == 2
    assert [(done, total) for done, total, _ in seen] == [(n, 5) for n in range(1, 6)]
    assert {result.src for _, _, result in seen} == {result.src for result in results}
    failure = next(r for r in results if isinstance(r, Failure) and "nodata" in r.src)
    assert "--drop nodata" in failure.message
    assert failure.dst == str(out / "nodata.rumi")


def test_it_goes_on_where_it_stopped(tmp_path, scenes):
    out = tmp_path / "out"
    first = convert_many(scenes, out, drop="all")
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*.rumi")}
    again = convert_many(scenes, out, drop="all")
    done = [result for result in again if isinstance(result, Conversion)]
    assert all(result.skipped for result in done)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.rumi")} == times
    for before, after in zip(first, again, strict=True):
        if isinstance(before, Conversion):
            assert (after.header, after.losses, after.nodata) == (
                before.header, before.losses, before.nodata,
            )  # fmt: skip
    assert not any(getattr(r, "skipped", False) for r in convert_many(scenes, out, resume=False))


def test_what_makes_a_file_be_converted_again(tmp_path):
    src, out = write(tmp_path / "a.tif", 1), tmp_path / "out"

    def run(**options):
        (result,) = convert_many([src], out, **options)
        return result.skipped

    assert [run(), run()] == [False, True]
    later = (out / "a.rumi").stat().st_mtime_ns + 10**9
    os.utime(src, ns=(later, later))  # a newer source
    assert not run()
    os.utime(out / "a.rumi", ns=(later + 1, later + 1))
    assert run()
    (out / "a.rumi").write_bytes((out / "a.rumi").read_bytes()[:-1])  # a damaged result
    os.utime(out / "a.rumi", ns=(later + 1, later + 1))
    assert not run()
    for changed in ({"tile_size": 8}, {"tile_size": 8, "crs": 32619}):  # other options
        os.utime(out / "a.rumi", ns=(later + 1, later + 1))
        assert not run(**changed)
        os.utime(out / "a.rumi", ns=(later + 1, later + 1))
        assert run(**changed)
    (tmp_path / "a.tif.aux.xml").write_text("<PAMDataset/>")  # a newer file beside it
    os.utime(tmp_path / "a.tif.aux.xml", ns=(later + 10**9, later + 10**9))
    assert not run(**changed)


def test_a_resumed_loss_is_refused_unless_it_is_named(tmp_path):
    src, out = write(tmp_path / "a.tif", nodata=1), tmp_path / "out"
    assert isinstance(convert_many(src, out, drop=["nodata"])[0], Conversion)
    assert convert_many(src, out)[0].kind == "UnsupportedError"


def test_patterns_and_lists(tmp_path, scenes):
    out = tmp_path / "out"
    results = convert_many(str(scenes / "**" / "[ac].*"), out)
    assert sorted(os.path.relpath(r.dst, out) for r in results) == ["a.rumi", "b/c.rumi"]
    results = convert_many([scenes / "a.tif", str(scenes / "b" / "d"), scenes / "a.tif"], out)
    assert [os.path.relpath(r.dst, out) for r in results] == ["a.rumi", "e.rumi"]
    odd = write(tmp_path / "odd [1].tif")
    (result,) = convert_many(odd, out)
    assert result.dst == str(out / "odd [1].rumi")


def test_a_missing_file_is_a_row_and_an_empty_folder_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    (row,) = convert_many(tmp_path / "nowhere.tif", tmp_path / "out")
    assert (row.kind, "nowhere" in row.message) == ("FileNotFoundError", True)
    for nothing in (tmp_path / "empty", str(tmp_path / "*.tif")):
        with pytest.raises(FileNotFoundError, match="no GeoTIFF found"):
            convert_many(nothing, tmp_path / "out")
    assert convert_many([], tmp_path / "out") == []


def test_two_sources_of_one_target_are_refused(tmp_path):
    write(tmp_path / "a.tif")
    write(tmp_path / "a.tiff")
    with pytest.raises(ValueError, match="would both become"):
        convert_many(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_warnings_are_in_the_rows(tmp_path, recwarn):
    src = tiff(tmp_path / "a.tif", bytes(16), 4, 4, extra=[(42113, ASCII, b"-1\0")])
    (row,) = convert_many(src, tmp_path / "out")
    assert row.warnings == ("nodata -1 is no uint8 sample, so it marks none",)
    assert list(recwarn) == []


def test_wrong_arguments(tmp_path):
    src = write(tmp_path / "a.tif")
    for options, kind in (
        ({"workers": 0}, ValueError),
        ({"workers": True}, TypeError),
        ({"workers": 1.0}, TypeError),
        ({"drop": "nodta"}, ValueError),
        ({"progress": print}, TypeError),
        ({"speed": 3}, TypeError),
    ):
        with pytest.raises(kind):
            convert_many(src, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_process_that_dies_takes_only_its_own_file(tmp_path, scenes, monkeypatch):
    """The killer is named; the others are converted."""
    killer = write(scenes / "b" / "kill.tif")
    monkeypatch.setattr(geotiff.batch, "_Job", DeadlyJob)
    results = convert_many(scenes, tmp_path / "out", workers=2, drop="all")
    found = kinds(results)
    assert found.pop("kill.tif") == "BrokenProcessPool"
    assert found.pop("broken.tif") == "TruncatedError"
    # One that was done when its process died is found done.
    assert set(found.values()) <= {"", "skipped"}
    message = next(r.message for r in results if r.src == str(killer))
    assert message.startswith(f"{killer}: the process that worked on it was killed")


@pytest.mark.filterwarnings("ignore")  # those of Dask
def test_a_dask_cluster_converts_the_same(tmp_path, scenes, dask_client, monkeypatch):
    sent = []
    submit = dask_client.submit
    monkeypatch.setattr(
        dask_client, "submit", lambda *args, **kw: (sent.append(args), submit(*args, **kw))[1]
    )
    seen = []
    there = convert_many(
        scenes, tmp_path / "there", client=dask_client, on_progress=lambda *args: seen.append(args)
    )
    here = convert_many(scenes, tmp_path / "here")
    assert kinds(there) == kinds(here)
    assert sorted(kinds(there).values()) == ["", "", "", "TruncatedError", "UnsupportedError"]
    for a, b in zip(there, here, strict=True):
        assert (a.src, type(a)) == (b.src, type(b))
        if isinstance(a, Conversion):
            assert a.header == b.header
            assert Path(a.dst).read_bytes() == Path(b.dst).read_bytes()
    assert [done for done, _, _ in seen] == [1, 2, 3, 4, 5]
    # Names and options travel, no pixels.
    assert len(sent) == 5
    assert all(len(pickle.dumps(args)) < 1000 for args in sent)
    again = convert_many(scenes, tmp_path / "there", client=dask_client)
    assert sum(getattr(result, "skipped", False) for result in again) == 3


@pytest.mark.filterwarnings("ignore")  # those of Dask
def test_a_lost_worker_of_a_cluster_costs_nothing(tmp_path, scenes, dask_client, monkeypatch):
    write(scenes / "b" / "unlucky.tif", 9)
    monkeypatch.setattr(geotiff.batch, "_Job", UnluckyJob)
    results = convert_many(scenes, tmp_path / "out", client=dask_client, drop="all")
    assert (scenes / "b" / "unlucky.killed").exists()
    assert kinds(results).pop("broken.tif") == "TruncatedError"
    assert sum(isinstance(result, Conversion) for result in results) == 5
    assert rumi.read(tmp_path / "out" / "b" / "unlucky.rumi").max() == 9
    killer = write(scenes / "kill.tif")
    monkeypatch.setattr(geotiff.batch, "_Job", DeadlyJob)
    results = convert_many(scenes, tmp_path / "out", client=dask_client, drop="all")
    (lost,) = (result for result in results if result.src == str(killer))
    assert lost.kind == "KilledWorker"
    assert lost.message.startswith(f"{killer}: ")
    assert not (tmp_path / "out" / "kill.rumi").exists()
    assert sum(isinstance(result, Conversion) for result in results) == 5


@pytest.mark.filterwarnings("ignore")  # those of Dask
def test_a_cluster_that_lacks_rumi_is_named(tmp_path, scenes, dask_client, monkeypatch):
    ghost = types.ModuleType("ghost")
    monkeypatch.setitem(sys.modules, "ghost", ghost)

    def run_all(jobs):
        return [job.run() for job in jobs]

    run_all.__module__, run_all.__qualname__ = "ghost", "run_all"
    ghost.run_all = run_all
    monkeypatch.setattr(geotiff.batch, "_run_all", run_all)
    with pytest.raises(rumi.UnsupportedError, match=r"tcp://.* cannot import ghost .*install rumi"):
        convert_many(scenes, tmp_path / "out", client=dask_client)


def test_clients_that_are_none(tmp_path):
    src = write(tmp_path / "a.tif")
    with pytest.raises(TypeError, match=r"client: expected a dask\.distributed\.Client, found str"):
        convert_many(src, tmp_path / "out", client="tcp://localhost:8786")
    with pytest.raises(TypeError, match="synchronous"):
        convert_many(src, tmp_path / "out", client=Asynchronous())
    assert not (tmp_path / "out").exists()


class Asynchronous:
    """What such a client looks like from here."""

    asynchronous = True
    submit = cancel = None


def test_an_interrupt_stops_and_leaves_finished_files(tmp_path, scenes):
    def stop(done, total, result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert_many(scenes, tmp_path / "out", drop="all", on_progress=stop)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["a.rumi"]
    results = convert_many(scenes, tmp_path / "out", drop="all")
    assert sum(getattr(result, "skipped", False) for result in results) == 1


def test_rows_pickle(tmp_path, scenes):
    rows = convert_many(scenes, tmp_path / "out")
    assert pickle.loads(pickle.dumps(rows)) == rows
