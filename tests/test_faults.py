"""Faults: full disks, kills, interrupts, short reads, files that change under a reader.

Whatever happens, a file is the old one or the new one, whole; what else may lie beside
it is named so that nobody takes it for a file. (C22, and C27 for readers.)
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import oracle
import pytest

import rumi
import rumi.geotiff
from rumi.codec import steps

FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
PROC = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="descriptors and memory are not listed here"
)

# Two images of one shape, of which every pixel tells them apart; their files differ in size.
COMMON = """
import errno, os, random, resource, signal, sys, threading, time
from pathlib import Path
import numpy as np
import oracle, rumi

def image(number):
    rng = np.random.default_rng(number)
    noise = rng.integers(0, 256, (2, 96, 96)).astype("u2")
    return noise * 2 + number if number else noise // 16 * 2

ONE, TWO = image(1), image(0)

def write(path, values, **options):
    return rumi.write(path, values, tile_size=32, codec="zstd", threads=1, **options)

def which(path):
    "Which of the two a file holds; anything else is a failure."
    array = rumi.read(path)
    rumi.index(path)
    for number, values in enumerate((ONE, TWO)):
        if np.array_equal(array, values):
            return number
    raise SystemExit("a mixture")

def strays(folder, *names):
    return sorted(set(os.listdir(folder)) - set(names))
"""


def run(script, *arguments, timeout=120, **options):
    return oracle.run_python(COMMON + script, *arguments, timeout=timeout, **options).stdout


# --- No room


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file sizes")
def test_a_limit_at_any_byte(tmp_path):
    """RLIMIT_FSIZE at the start, in the index, at frame borders, and one byte short."""
    run(
        """
folder = Path(sys.argv[1])
header = write(folder / "whole.rumi", ONE)
size, offsets = header.file_size, header.offsets.tolist()
path = folder / "a.rumi"
write(path, TWO)
old = path.read_bytes()
limits = {0, 1, 16, 251, 252, header.base_frame_offset, size - 1, size // 2}
limits |= {offset + step for offset in offsets for step in (-1, 0, 1)}
for limit in sorted(limits):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        write(path, ONE)
    except OSError as error:
        assert error.errno == errno.EFBIG, error
    else:
        raise SystemExit(f"{limit}: no error")
    assert path.read_bytes() == old
    assert strays(folder, "a.rumi", "whole.rumi") == []
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
write(path, ONE)
assert path.read_bytes() == (folder / "whole.rumi").read_bytes()
""",
        tmp_path,
    )


COMMANDS = {
    "convert": ["convert", "{tif}", "{out}.rumi", "--overwrite"],
    "export": ["export", "{rumi}", "{out}.tif", "--overwrite"],
    "read an array": ["read", "{rumi}", "-o", "{out}.npy"],
    "read a picture": ["read", "{rumi}", "--bands", "0", "-o", "{out}.png"],
    "preview": ["preview", "{rumi}", "--bands", "0", "-o", "{out}.png"],
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A GeoTIFF and a rumi file of noise, which no file of little room can hold."""
    folder = tmp_path_factory.mktemp("inputs")
    values = np.random.default_rng(0).integers(0, 2**16, (2, 300, 300)).astype(np.uint16)
    rumi.write(folder / "a.rumi", values, crs=32633, transform=(10, 0, 0, 0, -10, 0))
    rumi.geotiff.export(folder / "a.rumi", folder / "a.tif")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file sizes")
def test_a_command_that_runs_out_of_room(tmp_path, inputs, name):
    """Status 1, one line, the old file as it was, nothing beside it; a retry works."""
    pytest.importorskip("rasterio")
    places = {"tif": inputs / "a.tif", "rumi": inputs / "a.rumi", "out": tmp_path / "out"}
    arguments = [part.format(**places) for part in COMMANDS[name]]
    target = Path(next(part for part in arguments if part.startswith(str(tmp_path))))
    target.write_bytes(b"old")
    script = """
import resource, sys
from rumi.cli import main
if sys.argv[1] != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.argv[1:] = sys.argv[2:]
sys.exit(main())
"""
    for limit in (1000, 20_000):
        result = oracle.run_python(script, limit, *arguments, check=False)
        assert result.returncode == 1, result.stderr
        assert result.stderr.strip().splitlines()[-1].startswith("rumi: error: ")
        assert "Traceback" not in result.stderr
        assert target.read_bytes() == b"old"
        assert os.listdir(tmp_path) == [target.name]
    oracle.run_python(script, 0, *arguments)
    assert target.stat().st_size > 20_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no tmpfs")
def test_a_disk_that_fills_up(tmp_path):
    """A tmpfs of 64 kB, mounted in a namespace of its own, which ends with the test."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("FULL DISK NOT TESTED: unshare is not installed")
    command = [unshare, "--mount"] if os.geteuid() == 0 else [unshare, "--mount", "--map-root-user"]
    mount = f"mount -t tmpfs -o size=64k tmpfs '{tmp_path}'"
    trial = subprocess.run([*command, "sh", "-c", mount], capture_output=True, check=False)
    if trial.returncode:
        pytest.skip(f"FULL DISK NOT TESTED: nothing can be mounted here: {trial.stderr.decode()}")
    program = (
        COMMON
        + """
folder = Path(sys.argv[1])
path = folder / "a.rumi"
header = write(path, TWO)
assert header.file_size < 20_000
old = path.read_bytes()
large = np.random.default_rng(0).integers(0, 2**16, (1, 256, 256)).astype("u2")
for _ in range(3):
    try:
        rumi.write(path, large, tile_size=64, codec="store")
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    else:
        raise SystemExit("no error")
    assert path.read_bytes() == old and strays(folder, "a.rumi") == []
# No room even for the smallest file beside the old one.
filler = open(folder / "filler", "wb", buffering=0)
try:
    while True:
        filler.write(bytes(512))
except OSError:
    pass
try:
    write(folder / "b.rumi", TWO)
except OSError as error:
    assert error.errno == errno.ENOSPC, error
else:
    raise SystemExit("no error")
assert strays(folder, "a.rumi", "filler") == [] and which(path) == 1
filler.close()
os.unlink(folder / "filler")
write(folder / "b.rumi", TWO)
assert which(folder / "b.rumi") == 1
"""
    )
    script = tmp_path.with_suffix(".py")
    script.write_text(program)
    search = os.pathsep.join([str(Path(rumi.__file__).parent.parent), str(oracle.TESTS)])
    result = subprocess.run(
        [*command, "sh", "-c", f"{mount} && exec '{sys.executable}' '{script}' '{tmp_path}'"],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.skipif(not hasattr(os, "setuid"), reason="no users here")
def test_a_command_into_a_folder_that_may_not_be_written(inputs, name):
    """As another user where the tests run as root, who may write everywhere."""
    pytest.importorskip("rasterio")
    with tempfile.TemporaryDirectory() as work:
        # Where another user may look, which pytest's folders are not.
        folder = Path(work) / "folder"
        folder.mkdir()
        Path(work).chmod(0o755)
        for file in ("a.tif", "a.rumi"):
            shutil.copy(inputs / file, Path(work) / file)
            (Path(work) / file).chmod(0o644)
        places = {"tif": f"{work}/a.tif", "rumi": f"{work}/a.rumi", "out": folder / "out"}
        arguments = [part.format(**places) for part in COMMANDS[name]]
        folder.chmod(0o555)
        result = oracle.run_python(
            """
import os, sys
from rumi.cli import main
import difflib, fractions, rumi.geotiff, rumi.preview, rasterio, PIL.Image
rumi.write(sys.argv[1], __import__("numpy").ones((4, 4)))
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
sys.argv[1:] = sys.argv[2:]
sys.exit(main())
""",
            Path(work) / "warm.rumi",
            *arguments,
            check=False,
        )
        folder.chmod(0o755)
        assert result.returncode == 1, result.stderr
        assert "Permission denied" in result.stderr.strip().splitlines()[-1]
        assert list(folder.iterdir()) == []


# --- Kills and interrupts


@FORK
def test_fifty_kills(tmp_path):
    """At random moments of writing one file over and over: it is one of the two, whole."""
    out = run(
        """
path = Path(sys.argv[1]) / "a.rumi"
write(path, TWO)
rng = random.Random(int(sys.argv[3]))
seen, left = set(), 0
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        while True:
            write(path, ONE)
            write(path, TWO)
    time.sleep(rng.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    seen.add(which(path))
    for name in strays(path.parent, "a.rumi"):
        assert name.startswith(".a.rumi.") and name.endswith(".rumi-tmp"), name
        for call in (rumi.index, rumi.read, rumi.open):
            try:
                call(path.parent / name)
            except rumi.RumiError:
                pass
            else:
                # Killed between the last byte and the rename: whole, but not in place.
                assert which(path.parent / name) in (0, 1)
        os.unlink(path.parent / name)
        left += 1
print(seen, left)
""",
        tmp_path,
        50,
        1,
    )
    assert "{0, 1}" in out


@FORK
def test_kills_of_a_first_write(tmp_path):
    """There is no file, or it is whole."""
    run(
        """
path = Path(sys.argv[1]) / "a.rumi"
write(path, ONE)
rng = random.Random(2)
for _ in range(30):
    path.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        write(path, ONE)
        os._exit(0)
    time.sleep(rng.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not path.exists() or which(path) == 0
    for name in strays(path.parent, "a.rumi"):
        assert name.endswith(".rumi-tmp")
        os.unlink(path.parent / name)
""",
        tmp_path,
    )


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals")
def test_interrupts_at_random_moments(tmp_path):
    """KeyboardInterrupt leaves the file whole and nothing beside it; the next write works."""
    out = run(
        """
path = Path(sys.argv[1]) / "a.rumi"
write(path, TWO)
signal.signal(signal.SIGALRM, signal.default_int_handler)
rng = random.Random(3)
interrupts, other, seen = 0, 0, set()
for _ in range(int(sys.argv[2])):
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0001, 0.006))
        try:
            while True:
                write(path, ONE)
                write(path, TWO)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
    except TypeError as error:
        # OpenZL's binding asks Python for the value of an enumeration; what that is
        # interrupted by becomes an argument of the wrong type.
        assert "incompatible function arguments" in str(error), error
        other += 1
    assert strays(path.parent, "a.rumi") == [], strays(path.parent, "a.rumi")
    seen.add(which(path))
write(path, ONE)
assert which(path) == 0
print(interrupts, other, seen)
""",
        tmp_path,
        300,
    )
    interrupts, other, seen = out.split(maxsplit=2)
    assert int(interrupts) + int(other) == 300
    assert int(interrupts) > 280
    assert seen == "{0, 1}\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_inside_a_graph(tmp_path, monkeypatch, error):
    """OpenZL would go on with another graph, as if there had been none."""
    path = tmp_path / "a.rumi"
    values = oracle.ramp(1, 48, 48)

    def interrupted(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(steps, "_bucket_sizes", interrupted)
        for _ in range(2):
            with pytest.raises(error):
                rumi.write(path, values, tile_size=16, codec="buckets:4>fse", threads=1)
            assert list(tmp_path.iterdir()) == []
    rumi.write(path, values, tile_size=16, codec="buckets:4>fse", threads=1)
    assert np.array_equal(rumi.read(path), values)


def test_an_interrupt_just_after_the_rename(tmp_path, monkeypatch):
    """The new file is in place, and the interrupt is what is raised."""
    path = tmp_path / "a.rumi"
    replace = os.replace

    def interrupted(source, target):
        replace(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rumi.write(path, oracle.ramp(1, 20, 20))
    assert os.listdir(tmp_path) == ["a.rumi"]
    assert np.array_equal(rumi.read(path), oracle.ramp(1, 20, 20))


# --- Signals, short reads


def test_signals_while_reading_and_writing(tmp_path):
    """A handler that runs every half millisecond changes nothing (EINTR)."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timers that send signals")
    out = run(
        """
path = Path(sys.argv[1]) / "a.rumi"
calls = []
signal.signal(signal.SIGALRM, lambda *_: calls.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for number in range(40):
    values = (ONE, TWO)[number % 2]
    header = write(path, values)
    for threads in (1, 2):
        assert np.array_equal(rumi.read(path, header, threads=threads), values)
    assert np.array_equal(rumi.open(path)[:], values)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(calls))
""",
        tmp_path,
    )
    assert int(out) > 20


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Every third call is interrupted, the others move a third of what is asked for at most. */
static int turn;
static int interrupted(void)
{ return ++turn % 3 == 0 && (errno = EINTR, 1); }
static size_t part(size_t size)
{ return size > 3 ? size / 3 : size; }
#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t pread(int fd, void *to, size_t size, off_t at)
{ REAL(pread); return interrupted() ? -1 : real(fd, to, part(size), at); }
ssize_t pread64(int fd, void *to, size_t size, off64_t at)
{ REAL(pread64); return interrupted() ? -1 : real(fd, to, part(size), at); }
ssize_t preadv(int fd, const struct iovec *to, int count, off_t at)
{ REAL(preadv); return interrupted() ? -1 : real(fd, to, count > 1 ? count - 1 : 1, at); }
ssize_t preadv64(int fd, const struct iovec *to, int count, off64_t at)
{ REAL(preadv64); return interrupted() ? -1 : real(fd, to, count > 1 ? count - 1 : 1, at); }
ssize_t write(int fd, const void *from, size_t size)
{
    REAL(write);
    /* Not what the test prints, which Python does not write again. */
    return fd < 3 ? real(fd, from, size) : interrupted() ? -1 : real(fd, from, part(size));
}
int shim_calls(void)
{ return turn; }
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="LD_PRELOAD is of Linux")
def test_reads_and_writes_that_stop_short(tmp_path):
    """A library between us and the system that interrupts calls and cuts them short."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("SHORT READS NOT TESTED: no C compiler")
    source, library = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    out = run(
        """
import ctypes
path = Path(sys.argv[1]) / "a.rumi"
shim = ctypes.CDLL(sys.argv[2])
before = shim.shim_calls()
for unit in ("tile", "cell"):
    for values in (ONE, TWO):
        header = write(path, values, frame_unit=unit)
        assert rumi.index(path) == header
        for backend in ("openzl", "auto"):
            os.environ["RUMI_BACKEND"] = backend
            for threads in (1, 2):
                assert np.array_equal(rumi.read(path, header, threads=threads), values)
        found = rumi.read(path, header, bands=[1], window=(30, 30, 40, 5))
        assert np.array_equal(found, values[[1], 30:70, 30:35])
        assert np.array_equal(rumi.open(path)[:, 5:90, 40], values[:, 5:90, 40])
        assert np.array_equal(rumi.read_many([path], [header])[0], values)
        assert rumi.validate(path, header).ok
print(shim.shim_calls() - before)
""",
        tmp_path,
        library,
        environment={
            "LD_PRELOAD": os.pathsep.join(
                filter(None, (os.environ.get("LD_PRELOAD"), str(library)))
            )
        },
    )
    assert int(out) > 100


# --- Files that change under a reader


@FORK
@pytest.mark.parametrize("route", ["path", "path and header", "image", "image and header"])
def test_a_file_that_is_replaced_all_the_time(tmp_path, route):
    """Each read is of one of the two, whole, or an error that names the file (C27)."""
    out = run(
        """
path, route = Path(sys.argv[1]) / "a.rumi", sys.argv[2]
header = write(path, ONE)
child = os.fork()
if child == 0:
    while True:
        write(path, TWO)
        write(path, ONE)
seen = {"right": 0, "stale": 0}
try:
    end = time.monotonic() + 3
    image = None
    while time.monotonic() < end:
        given = header if "header" in route else None
        try:
            if "image" in route:
                image = image or rumi.open(path, given)
                one, two = image.read(bands=0), image[1]
                found = np.stack([one[0], two])
            else:
                found = rumi.read(path, given)
        except rumi.StaleHeaderError as error:
            assert str(path) in str(error)
            seen["stale"] += 1
            image = None
            continue
        assert np.array_equal(found, ONE) or (np.array_equal(found, TWO) and given is None)
        seen["right"] += 1
        if seen["right"] % 3 == 0:
            image = None
finally:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print(seen["right"], seen["stale"])
""",
        tmp_path,
        route,
    )
    right, stale = map(int, out.split())
    assert right > 20
    assert "header" not in route or stale > 0


def test_a_file_cut_between_two_reads(tmp_path):
    """At every length, of one open image: what is before the cut, or an error, never zeros."""
    values = oracle.ramp(1, 20, 20, np.uint16) + 1
    path = tmp_path / "a.rumi"
    header = rumi.write(path, values, tile_size=8, codec="store")
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data)
        image = rumi.open(path)
        assert np.array_equal(image[0, :2, :2], values[0, :2, :2])
        os.truncate(path, length)
        for window in ((0, 0, 1, 1), (0, 0, 20, 20), (19, 19, 1, 1)):
            for call in (image.read, lambda window: rumi.read(path, header, window=window)):
                with contextlib.suppress(rumi.StaleHeaderError, rumi.TruncatedError):
                    found = call(window=window)
                    assert np.array_equal(found, oracle.numpy_window(values, None, window))
                    first = header.offset(0) + header.byte_count(0)
                    assert window == (0, 0, 1, 1), "frames are missing"
                    assert length >= first


# --- Ten thousand times


@PROC
def test_ten_thousand_times_open_and_close(tmp_path):
    """Descriptors and memory stay as they are."""
    out = run(
        """
path = Path(sys.argv[1]) / "a.rumi"
header = rumi.write(path, ONE, tile_size=32, codec="store")

def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def once(number):
    window = (number % 60, number % 50, 4, 4)
    expected = ONE[:, window[0] : window[0] + 4, window[1] : window[1] + 4]
    if number % 4 == 0:
        assert np.array_equal(rumi.read(path, header, window=window), expected)
    elif number % 4 == 1:
        image = rumi.open(path)
        assert np.array_equal(image.read(window=window), expected)
    elif number % 4 == 2:
        assert rumi.index(path).frame_count == header.frame_count
    else:
        try:
            rumi.read(path, header, window=(0, 0, 1000, 1))
        except ValueError:
            pass

for number in range(2000):
    once(number)
files, before = len(os.listdir("/proc/self/fd")), memory()
for number in range(10_000):
    once(number)
print(len(os.listdir("/proc/self/fd")) - files, memory() - before, threading.active_count())
""",
        tmp_path,
    )
    descriptors, grown, threads = map(int, out.split())
    assert descriptors == 0
    assert grown < 2 << 20
    assert threads == 1
