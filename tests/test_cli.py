"""The command line: results on stdout, one line for an error, the exit status."""

import base64
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import rumi
from rumi.cli import cli, console
from rumi.cli.console import quantity
from rumi.cli.program import one_line

PROGRAM = (sys.executable, "-m", "rumi.cli")

# From any folder, the rumi that these tests test, installed or not.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(rumi.__file__).parents[1])}


GOLDEN = Path(__file__).parent / "data" / "golden"


def run(*arguments: Any, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(cli, [str(argument) for argument in arguments])


def process(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[Any]:
    command = [*PROGRAM, *map(str, arguments)]
    options = {"env": ENVIRONMENT, **options}
    return subprocess.run(command, capture_output=True, timeout=120, check=False, **options)


def refused(result: Result, status: int, *words: str) -> None:
    """The run failed with this status, one line on stderr and nothing on stdout."""
    assert result.exit_code == status, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("rumi: error: ")
    assert result.stderr.endswith("\n")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    bands, rows, cols = np.ogrid[:4, :100, :130]
    return (bands * 10_000 + rows * 50 + cols).astype(np.uint16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, pixels: np.ndarray) -> Path:
    """A folder with one image of every kind that the commands treat differently."""
    made = tmp_path_factory.mktemp("cli")
    placed = {"crs": 32621, "transform": (30.0, 0.0, 735345.0, 0.0, -30.0, -2801355.0)}
    rumi.write(made / "a.rumi", pixels, tile_size=(32, 48), **placed)
    (made / "a.blob").write_bytes(bytes(rumi.index(made / "a.rumi")))
    rumi.write(made / "cell.rumi", pixels[:3], tile_size=64, frame_unit="cell")
    rumi.write(made / "constant.rumi", np.zeros((1, 8, 8), np.float32), tile_size=4, codec="store")
    return made


# --- The program


def test_help_names_every_command_in_order() -> None:
    result = run("--help")
    assert result.exit_code == 0
    listed = result.stdout[result.stdout.index("Commands:") :]
    positions = [listed.index(f"\n  {name} ") for name in cli.commands]
    assert positions == sorted(positions)
    assert run().stdout == result.stdout


@pytest.mark.parametrize("name", list(cli.commands))
def test_every_command_explains_itself(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"Usage: rumi {name}" in result.stdout
    assert "--traceback" not in result.stdout


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    """In processor time, which other programs on the machine do not lengthen."""
    code = (
        "import sys, time; start = time.process_time()\n"
        "from rumi.cli import cli\n"
        "try: cli(['--help'])\n"
        "except SystemExit: pass\n"
        "spent = time.process_time() - start\n"
        "heavy = ('rich', 'rasterio', 'PIL', 'pyproj', 'multiprocessing')\n"
        "print(spent, *[name for name in heavy if name in sys.modules])\n"
    )
    spent = []
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        seconds, *loaded = done.stdout.splitlines()[-1].split()
        assert loaded == []
        spent.append(float(seconds))
    assert min(spent) < 0.3


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"rumi {rumi.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("info",),
        ("info", "--nonsense", "x"),
        ("header",),
        ("read", "x.rumi"),
        ("read", "x.rumi", "-o", "x.jpg"),
        ("read", "x.rumi", "-o", "x.npy", "--window", "1,2,3"),
        ("read", "x.rumi", "-o", "x.npy", "--window", "1,2,3,x"),
        ("read", "x.rumi", "-o", "x.npy", "--bands", ""),
        ("read", "x.rumi", "-o", "x.npy", "--grid"),
        ("read", "x.rumi", "-o", "x.npy", "--threads", "0"),
        ("read", "x.rumi", "-o", "-", "--json"),
        ("header", "x.rumi", "-o", "-", "--json"),
        ("info", "--header", "x.blob"),
    ],
)
def test_mistakes_on_the_line_exit_with_2(arguments: tuple[str, ...]) -> None:
    refused(run(*arguments), 2, "--help'")


def test_traceback_only_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "missing.rumi"
    refused(run("info", path), 1, "missing.rumi: No such file or directory")
    for arguments in (("--traceback", "info", path), ("info", path, "--traceback")):
        assert "Traceback" in run(*arguments).stderr
    assert "Traceback" in run("info", path, RUMI_DEBUG_TRACEBACK="1").stderr
    refused(run("info", path, RUMI_DEBUG_TRACEBACK="0"), 1)


def test_errors_become_one_line() -> None:
    assert one_line(rumi.FormatError("a\n  b")) == "a b"
    assert one_line(FileNotFoundError(2, "No such file", "x\ny")) == "x y: No such file"
    assert one_line(OSError("plain")) == "plain"
    assert one_line(MemoryError()) == "not enough memory"
    assert "KeyError" in one_line(KeyError("x"))
    assert "report" in one_line(ValueError(""))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (9_999, "9,999 bytes"),
        (10_000, "10 kB"),
        (850_426, "850 kB"),
        (999_499, "999 kB"),
        (999_501, "1 MB"),
        (5_670_000_000, "5.67 GB"),
        (10**18, "1,000 PB"),
    ],
)
def test_quantities_read_well(count: int, text: str) -> None:
    assert quantity(count) == text


# --- info and header


def test_info_shows_the_specifications_names(folder: Path) -> None:
    result = run("info", folder / "a.rumi")
    assert result.exit_code == 0
    for name in ("image_width        130", "tile_length        32", "count_bits", "EPSG:32621"):
        assert name in result.stdout
    assert not any(line != line.rstrip() for line in result.stdout.splitlines())


def test_info_json_holds_everything(folder: Path) -> None:
    header = rumi.index(folder / "a.rumi")
    found = json.loads(run("info", folder / "a.rumi", "--json", "--backends").stdout)
    assert found["header"]["magic"] == 0x45564F4C
    for name, value in found["header"].items():
        if name != "magic":
            assert value == getattr(header, name)
    assert found["shape"] == [4, 100, 130]
    assert found["frame_count"] == header.frame_count
    assert found["base_frame_offset"] == header.base_frame_offset
    assert found["blob_size"] == len(bytes(header))
    assert found["file_size"] == (folder / "a.rumi").stat().st_size
    sizes = found["frame_byte_counts"]
    assert sizes["min"] == header.byte_counts.min()
    assert sizes["max"] == header.byte_counts.max()
    assert sizes["total"] == header.byte_counts.sum()
    assert found["georeferencing"]["epsg"] == 32621
    assert found["georeferencing"]["crs_name"] == "WGS 84 / UTM zone 21N"
    assert found["georeferencing"]["bounds"] == list(rumi.open(folder / "a.rumi").bounds or ())
    assert set(found["backends"]) == {"openzl", "geozl"}


def test_info_of_a_blob_and_with_a_blob(folder: Path) -> None:
    alone = json.loads(run("info", folder / "a.blob", "--json").stdout)
    assert alone["kind"] == "header blob"
    assert "georeferencing" not in alone
    both = run("info", folder / "a.rumi", "--header", folder / "a.blob", "--json")
    assert json.loads(both.stdout)["georeferencing"]["epsg"] == 32621
    assert alone["header"] == json.loads(both.stdout)["header"]


def test_info_without_georeferencing(folder: Path) -> None:
    assert "CRS                none" in run("info", folder / "constant.rumi").stdout
    found = json.loads(run("info", folder / "constant.rumi", "--json").stdout)
    assert found["georeferencing"] == {
        "epsg": None,
        "crs_name": None,
        "transform": None,
        "bounds": None,
        "raster_type": "area",
    }
    assert found["frame_byte_counts"]["min"] == found["frame_byte_counts"]["max"]


def test_info_of_a_blob_that_claims_billions_of_frames_costs_nothing(tmp_path: Path) -> None:
    fields = (0x45564F4C, 1, 2**32 - 1, 2**20, 1, 1, 1, 8, 1, 0, 20, 0)
    widths = (4, 2, 4, 4, 2, 2, 2, 1, 1, 1, 4, 1)
    path = tmp_path / "huge.blob"
    path.write_bytes(
        b"".join(value.to_bytes(w, "little") for value, w in zip(fields, widths, strict=True))
    )
    start = time.perf_counter()
    found = json.loads(run("info", path, "--json").stdout)
    assert found["frame_count"] == (2**32 - 1) * 2**20
    assert time.perf_counter() - start < 1


def test_info_backends_alone() -> None:
    result = run("info", "--backends")
    assert result.exit_code == 0
    assert "openzl" in result.stdout
    assert json.loads(run("info", "--backends", "--json").stdout)["backends"]["openzl"]


def test_header_writes_the_blob(folder: Path, tmp_path: Path) -> None:
    expected = (folder / "a.blob").read_bytes()
    target = tmp_path / "b.blob"
    result = run("header", folder / "a.rumi", "-o", target)
    assert result.exit_code == 0
    assert f"{len(expected)} bytes" in result.stdout
    assert target.read_bytes() == expected
    assert run("header", folder / "a.rumi", "-o", target, "--quiet").stdout == ""
    assert run("header", folder / "a.rumi", "-o", "-").stdout_bytes == expected
    found = json.loads(run("header", folder / "a.rumi", "--json").stdout)
    assert base64.b64decode(found["blob"]) == expected


def test_header_failures_leave_the_old_file(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "old.blob"
    target.write_bytes(b"old")
    broken = tmp_path / "broken.rumi"
    broken.write_bytes((folder / "a.rumi").read_bytes()[:-1])
    refused(run("header", broken, "-o", target), 1, "broken.rumi", "ends in frame")
    refused(run("header", folder / "a.rumi", "-o", tmp_path), 1)
    refused(run("header", folder / "a.rumi", "-o", tmp_path / "no" / "x.blob"), 1, "No such file")
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "0 bytes"),
        (b"LOVE", "header blob"),
        (b"\x89PNG\r\n\x1a\n", "found bytes starting"),
        (b"II*\0" + bytes(40), "classic TIFF"),
        (b"MM\0*" + bytes(40), "big-endian TIFF"),
        (b"II+\0" + bytes(400), ""),
    ],
)
def test_foreign_files_get_one_clear_line(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "foreign [bold].rumi"
    path.write_bytes(content)
    for arguments in (("info", path), ("header", path), ("read", path, "-o", tmp_path / "x.npy")):
        refused(run(*arguments), 1, "foreign [bold].rumi", word)
    assert not (tmp_path / "x.npy").exists()


def test_a_rumi_file_given_as_header_is_named(folder: Path) -> None:
    path = folder / "a.rumi"
    refused(run("info", path, "--header", path), 1, "expected a header blob", "rumi header")


def test_a_stale_header_is_refused(folder: Path, tmp_path: Path) -> None:
    result = run(
        "read", folder / "cell.rumi", "--header", folder / "a.blob", "-o", tmp_path / "x.npy"
    )
    refused(result, 1, "cell.rumi", "rumi.index")
    assert list(tmp_path.iterdir()) == []


# --- read


def test_read_to_an_array(folder: Path, pixels: np.ndarray, tmp_path: Path) -> None:
    target = tmp_path / "chip.npy"
    arguments = ("--window", "20,30,50,60", "--bands", "2,0", "-o", target)
    result = run("read", folder / "a.rumi", "--header", folder / "a.blob", *arguments)
    assert result.exit_code == 0
    assert "2 x 50 x 60 uint16" in result.stdout
    assert np.array_equal(np.load(target), pixels[[2, 0], 20:70, 30:90])
    assert run("read", folder / "a.rumi", *arguments, "-q").stdout == ""
    found = json.loads(run("read", folder / "a.rumi", *arguments, "--json").stdout)
    assert (found["shape"], found["bands"], found["window"]) == (
        [2, 50, 60],
        [2, 0],
        [20, 30, 50, 60],
    )


def test_read_to_stdout_is_an_array(folder: Path, pixels: np.ndarray) -> None:
    result = run("read", folder / "a.rumi", "-o", "-")
    assert np.array_equal(np.load(BytesIO(result.stdout_bytes)), pixels)


@pytest.mark.parametrize(
    ("window", "bands", "word"),
    [
        ("0,0,101,1", "0", "outside"),
        ("-1,0,2,2", "0", "outside"),
        ("0,0,0,5", "0", "empty"),
        ("0,0,1,1", "4", "band 4"),
        ("0,0,1,1", "-1", "band -1"),
    ],
)
def test_windows_and_bands_outside_are_refused(
    folder: Path, tmp_path: Path, window: str, bands: str, word: str
) -> None:
    target = tmp_path / "x.npy"
    result = run("read", folder / "a.rumi", f"--window={window}", f"--bands={bands}", "-o", target)
    refused(result, 1, word)
    assert not target.exists()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_types_that_numpy_lacks_are_saved_as_their_bits(tmp_path: Path, name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    samples = np.arange(-8, 8).reshape(1, 4, 4).astype(getattr(ml_dtypes, name))
    rumi.write(tmp_path / "x.rumi", samples)
    assert run("read", tmp_path / "x.rumi", "-o", tmp_path / "x.npy").exit_code == 0
    saved = np.load(tmp_path / "x.npy")
    assert saved.dtype.kind == "u"
    expected = rumi.read(tmp_path / "x.rumi").view(saved.dtype)
    assert np.array_equal(saved, expected)


def picture_size(path: Path) -> tuple[int, int]:
    """Width and height, as a PNG's first chunk states them."""
    width, height = struct.unpack_from(">II", path.read_bytes(), 16)
    return width, height


def test_read_to_a_picture(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    target = tmp_path / "chip.png"
    arguments = ("read", folder / "a.rumi", "-o", target)
    assert run(*arguments).exit_code == 0
    assert picture_size(target) == (130, 100)
    assert run(*arguments, "--scale", 3, "--grid", "--window", "0,0,40,60").exit_code == 0
    assert picture_size(target) == (180, 120)
    assert run("read", folder / "constant.rumi", "-o", target).exit_code == 0
    assert picture_size(target) == (8, 8)
    refused(run(*arguments, "--bands", "0,1"), 2, "1 or 3 bands")


def test_pictures_without_pillow_say_what_to_install(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)
    result = run("read", folder / "a.rumi", "-o", tmp_path / "x.png")
    refused(result, 1, "pip install 'rumi[plot]'")


# --- Real processes


def test_a_process_fails_with_one_line_and_a_status(tmp_path: Path) -> None:
    done = process("info", tmp_path / "missing.rumi", text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"rumi: error: {tmp_path / 'missing.rumi'}: No such file or directory\n"
    assert process("nonsense").returncode == 2


def test_output_in_pipes_is_plain_text(folder: Path) -> None:
    done = process("info", folder / "a.rumi", text=True)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_a_pipe_that_nobody_reads_ends_quietly(folder: Path) -> None:
    for arguments in (("info", "a.rumi"), ("info", "a.rumi", "--json"), ("read", "a.rumi", "-o-")):
        running = subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=folder,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert running.stdout is not None
        running.stdout.close()
        _, stderr = running.communicate(timeout=60)
        assert running.returncode == 1
        assert stderr == b""


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are no text")
def test_file_names_of_any_bytes(folder: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"odd\xff [red] name.rumi")
    (tmp_path / name).write_bytes((folder / "a.rumi").read_bytes())
    for arguments in (("info", name), ("info", name, "--json"), ("header", name)):
        done = process(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert b"[red]" in process("info", name, cwd=tmp_path).stdout
    assert process("info", name + "x", cwd=tmp_path).returncode == 1


def test_interrupt_exits_with_130(tmp_path: Path) -> None:
    fifo = tmp_path / "waits"
    os.mkfifo(fifo)
    running = subprocess.Popen(
        [*PROGRAM, "info", "--header", fifo, fifo],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        with open_when_read(fifo):
            # The command is past its imports and waits for bytes that never come.
            running.send_signal(signal.SIGINT)
            stdout, stderr = running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == 130
    assert stdout == b""
    assert b"Traceback" not in stderr


def test_interrupting_workers_leaves_whole_files_only(tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    noise = np.random.default_rng(1).integers(0, 4000, (1, 1200, 1200), dtype=np.uint16)
    for number in range(6):
        with rasterio.open(
            source / f"{number}.tif",
            "w",
            "GTiff",
            1200,
            1200,
            1,
            "EPSG:32621",
            rasterio.Affine(30, 0, 500_000, 0, -30, 7_000_000),
            "uint16",
        ) as dataset:
            dataset.write(noise)
    options = ("--workers", "2", "--codec", "delta>zigzag>lanes>zstd:19")
    running = subprocess.Popen(
        [*PROGRAM, "convert", source, target, *options],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not (target.is_dir() and any(target.iterdir())):
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        # As a terminal does it: to every process of the group, and impatient people twice.
        for _ in range(2):
            os.killpg(running.pid, signal.SIGINT)
        running.communicate(timeout=60)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    assert running.returncode == 130
    for path in target.iterdir():
        assert path.suffix == ".rumi"
        rumi.index(path)
    assert process("convert", source, target, *options).returncode == 0


@contextmanager
def open_when_read(fifo: Path) -> Iterator[None]:
    """Hold a FIFO open for writing, as soon as somebody has opened it for reading."""
    deadline = time.monotonic() + 30
    while True:
        try:
            descriptor = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:
            assert time.monotonic() < deadline, "nobody reads the FIFO"
            time.sleep(0.02)
    try:
        yield
    finally:
        os.close(descriptor)


# --- convert and export


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a GeoTIFF, one with losses below it, and one that is none."""
    rasterio = pytest.importorskip("rasterio")
    made = tmp_path_factory.mktemp("scenes")
    (made / "sub").mkdir()
    profile = {
        "driver": "GTiff",
        "width": 70,
        "height": 50,
        "count": 2,
        "dtype": "int16",
        "crs": "EPSG:32621",
        "transform": rasterio.Affine(30, 0, 500_000, 0, -30, 7_000_000),
    }
    samples = np.arange(7000, dtype=np.int16).reshape(2, 50, 70)
    with rasterio.open(made / "good.tif", "w", **profile) as dataset:
        dataset.write(samples)
    with rasterio.open(made / "sub" / "lossy.tiff", "w", **profile, nodata=-1) as dataset:
        dataset.write(samples)
        dataset.set_band_description(1, "red")
    (made / "bad.tif").write_bytes(b"no TIFF")
    return made


def test_convert_one_and_back(scenes: Path, tmp_path: Path) -> None:
    import rasterio

    target, back = tmp_path / "a.rumi", tmp_path / "back.tif"
    result = run("convert", scenes / "good.tif", target, "--tile-size", "16x32")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "2 x 50 x 70 int16" in result.stdout
    assert rumi.index(target).tile_shape == (16, 32)
    result = run("export", target, back, "--nodata", "-5", "--band-names", "a,b")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "int16" in result.stdout
    with rasterio.open(scenes / "good.tif") as first, rasterio.open(back) as second:
        assert np.array_equal(first.read(), second.read())
        assert (first.crs, first.transform) == (second.crs, second.transform)
        assert second.nodata == -5
        assert second.descriptions == ("a", "b")


def test_convert_options_reach_the_writer(scenes: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.rumi"
    options = ("--frame-unit", "cell", "--codec", "store", "--no-verify", "--crs", "32722", "-q")
    result = run("convert", scenes / "good.tif", target, *options)
    assert (result.exit_code, result.output) == (0, "")
    image = rumi.open(target)
    assert (image.header.unit, image.epsg) == ("cell", 32722)


def test_convert_json_describes_the_file(scenes: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.rumi"
    source = scenes / "sub" / "lossy.tiff"
    result = run("convert", source, target, "--drop", "nodata,band_names", "--json")
    found = json.loads(result.stdout)
    assert found["status"] == "converted"
    assert found["nodata"] == "-1"
    assert found["band_names"] == ["red", None]
    assert {loss["name"]: loss["dropped"] for loss in found["losses"]} == {
        "nodata": True,
        "band_names": True,
    }
    assert found["bytes_out"] == target.stat().st_size
    assert found["header"]["image_width"] == 70


def test_convert_refuses_to_lose_silently(scenes: Path, tmp_path: Path) -> None:
    source, target = scenes / "sub" / "lossy.tiff", tmp_path / "a.rumi"
    refused(run("convert", source, target), 1, "nodata", "band_names", "--drop")
    refused(run("convert", source, target, "--drop", "nodata"), 1, "band_names")
    result = run("convert", source, target, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["status"] == "failed"
    assert found["error"]["kind"] == "UnsupportedError"
    assert {loss["name"] for loss in found["losses"]} == {"nodata", "band_names"}
    assert list(tmp_path.iterdir()) == []
    shown = run("convert", source, target, "--drop", "all").stdout
    assert "dropped nodata" in shown


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (("bad.tif", "x.rumi"), 1, "expected a GeoTIFF"),
        (("missing.tif", "x.rumi"), 1, "missing.tif"),
        (("good.tif", "no/such/x.rumi"), 1, "No such file"),
        (("good.tif", "good.tif"), 1, "same file"),
        (("good.tif", "x.rumi", "--codec", "nonsense"), 1, "nonsense"),
        (("good.tif", "x.rumi", "--crs", "nonsense"), 1, "nonsense"),
        (("good.tif", "x.rumi", "--tile-size", "0"), 1, "tile_size"),
        (("good.tif", "x.rumi", "--tile-size", "16x16x16"), 2, "--tile-size"),
        (("good.tif", "x.rumi", "--drop", "nonsense"), 2, "nonsense"),
        (("good.tif", "x.rumi", "--frame-unit", "nonsense"), 2, "nonsense"),
        (("good.tif", "x.rumi", "--workers", "0"), 2, "--workers"),
        (("good.tif",), 2, "--help"),
        (("nothing*.tif", "x"), 1, "no GeoTIFF found"),
    ],
)
def test_convert_mistakes(
    scenes: Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, status: int, word: str
) -> None:
    monkeypatch.chdir(scenes)
    refused(run("convert", *arguments), status, word)
    assert not (scenes / "x.rumi").exists()


def test_convert_a_folder(scenes: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    result = run("convert", scenes, target)
    assert result.exit_code == 1
    assert "1 converted, 0 skipped, 2 failed" in result.stdout
    lines = result.stderr.splitlines()
    assert [line.startswith("rumi: error: ") for line in lines] == [True, True]
    assert (target / "good.rumi").is_file()
    again = run("convert", scenes, target, "--drop", "all", "--json")
    assert again.exit_code == 1
    found = json.loads(again.stdout)
    assert (found["converted"], found["skipped"], found["failed"]) == (1, 1, 1)
    failed = [file for file in found["files"] if file["status"] == "failed"]
    assert failed[0]["error"]["kind"] == "FormatError"
    assert (target / "sub" / "lossy.rumi").is_file()


def test_convert_several_with_workers(scenes: Path, tmp_path: Path) -> None:
    sources = [scenes / "good.tif", scenes / "sub" / "lossy.tiff"]
    done = process("convert", *sources, tmp_path, "--workers", 2, "--drop", "all", text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 converted" in done.stdout
    quiet = process("convert", *sources, tmp_path, "--drop=all", "--redo", "--quiet", text=True)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_export_mistakes(folder: Path, scenes: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.tif"
    refused(run("export", scenes / "good.tif", target), 1, "rumi convert")
    refused(run("export", folder / "a.rumi", target, "--nodata", "x"), 1, "nodata")
    refused(run("export", folder / "a.rumi", target, "--compress", "JPEG"), 2, "JPEG")
    refused(run("export", folder / "cell.rumi", target, "--header", folder / "a.blob"), 1)
    assert list(tmp_path.iterdir()) == []


def test_export_json(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.tif"
    arguments = ("--header", folder / "a.blob", "--driver", "gtiff", "--overviews", "none")
    result = run("export", folder / "a.rumi", target, *arguments, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["dtype"], found["widened"]) == ("uint16", False)
    assert found["bytes_out"] == target.stat().st_size


def test_geotiff_without_rasterio_says_what_to_install(
    scenes: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "rasterio"]:
        monkeypatch.setitem(sys.modules, name, None)
    for arguments in (("convert", scenes / "good.tif"), ("export", folder / "a.rumi")):
        refused(run(*arguments, tmp_path / "x"), 1, "pip install 'rumi[geotiff]'")


# --- Progress


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_appears_late_and_on_stderr_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with console.progress("quick [bold]") as show:
        show(1, 3)
    assert screen.getvalue() == ""
    monkeypatch.setattr(console, "_PATIENCE", 0.0)
    with console.progress("slow [bold]") as show:
        show(1, 3)
        show(3, 3)
    assert "slow [bold]" in screen.getvalue()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("quiet", [True, False])
def test_no_progress_when_quiet_or_in_a_pipe(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    screen = Terminal() if quiet else StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(console, "_PATIENCE", 0.0)
    with console.progress("x", quiet=quiet) as show:
        show(1, 3)
    assert screen.getvalue() == ""


def test_validate_one_file(tmp_path: Path) -> None:
    good = GOLDEN / "u16_tile_utm.rumi"
    result = run("validate", str(good), "--header", str(good.with_suffix(".blob")))
    assert result.exit_code == 0, result.output
    assert "0 failed" in result.stdout.splitlines()[0]
    cut = tmp_path / "cut.rumi"
    cut.write_bytes(good.read_bytes() + b"\0")
    result = run("validate", str(cut))
    assert result.exit_code == 1
    assert "failed       file.complete" in result.stdout
    found = json.loads(run("validate", "--json", str(cut)).stdout)
    assert found["ok"] is False
    assert found["files"][0]["name"] == str(cut)
    assert run("validate", "--quiet", str(cut)).stdout == ""


def test_validate_several_files(tmp_path: Path) -> None:
    good = sorted(map(str, GOLDEN.glob("u8_*.rumi")))
    result = run("validate", *good, "--frames", "headers")
    assert result.exit_code == 0
    assert result.stdout == f"{len(good)} of {len(good)} files are compliant\n"
    foreign = tmp_path / "page.rumi"
    foreign.write_text("<html></html>")
    result = run("validate", *good, str(foreign))
    assert result.exit_code == 1
    assert f"{foreign}: not compliant" in result.stdout
    assert "file.bigtiff" in result.stdout
    assert run("validate", *good, "--header", good[0]).exit_code == 2
    missing = run("validate", str(tmp_path / "missing.rumi"))
    assert missing.exit_code == 1
    assert missing.stderr.startswith("rumi: error: ")


def test_profile(tmp_path: Path) -> None:
    source = str(GOLDEN / "u16_tile_utm.rumi")
    recipes = ("--codec", "zstd", "--codec", "delta>zigzag>lanes>fse")
    picture = tmp_path / "front.png"
    result = run("profile", source, *recipes, "--tile-size", "32", "-o", str(picture))
    assert result.exit_code == 0, result.output
    assert "delta>zigzag>lanes>fse" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(run("profile", source, *recipes, "--json").stdout)
    assert {row["recipe"] for row in found["recipes"]} == {"zstd", "delta>zigzag>lanes>fse"}
    assert run("profile", source, "--codec", "no such").exit_code == 1
