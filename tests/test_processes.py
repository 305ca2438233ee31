"""Processes and threads: reading after a fork, in spawned children, in many threads (C28)."""

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import oracle
import pytest

import rumi

# Large enough for several threads, on 48 frames.
VALUES = np.tile(oracle.ramp(3, 128, 128, np.uint16), (1, 4, 4)) + np.arange(512, dtype=np.uint16)
WATCHDOG = 60

METHODS = [
    pytest.param(
        method,
        marks=pytest.mark.skipif(
            method != "spawn" and not hasattr(os, "fork"), reason="this system cannot fork"
        ),
    )
    for method in ("fork", "forkserver", "spawn")
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("processes") / "a.rumi"
    rumi.write(path, VALUES, tile_size=128, codec="lanes>zstd")
    return path


def run_program(tmp_path, text, *arguments, environment=None):
    """Run a program from a file, since spawned children import it again; with a watchdog."""
    program = tmp_path / "program.py"
    program.write_text(text)
    search = os.pathsep.join([str(Path(rumi.__file__).parent.parent), str(oracle.TESTS)])
    process = subprocess.Popen(
        [sys.executable, program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": search, **(environment or {})},
        # Its children are stopped with it where it hangs.
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=WATCHDOG)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        _, stderr = process.communicate()
        pytest.fail(f"hangs: still running after {WATCHDOG} seconds\n{stderr}")
    assert process.returncode == 0, stderr
    return stdout


COMMON = """
import faulthandler, hashlib, multiprocessing, os, signal, sys, threading, warnings
# Forking a process that has threads is what these programs are about.
warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
faulthandler.dump_traceback_later(50, exit=True)
import numpy as np
import rumi
from rumi import workers

def digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()
"""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threads", [None, 1, 4])
def test_children_read_after_the_parent_did(path, tmp_path, method, threads):
    """The parent has a pool, decoders and open files; a child makes its own."""
    run_program(
        tmp_path,
        COMMON
        + """
def work(job):
    image, header, path, threads = job
    return [
        digest(image.read(threads=threads)),
        digest(rumi.read(path, header, threads=threads)),
        digest(rumi.read(path, threads=threads)),
        digest(image[:]),
    ]

if __name__ == "__main__":
    path, method, threads = sys.argv[1], sys.argv[2], eval(sys.argv[3])
    header = rumi.index(path)
    image = rumi.open(path, header)
    right = digest(rumi.read(path, header, threads=4))
    assert digest(image.read(threads=4)) == right
    with multiprocessing.get_context(method).Pool(2) as pool:
        for answer in pool.map(work, [(image, header, path, threads)] * 4):
            assert answer == [right] * 4
    assert digest(image.read(threads=4)) == right
""",
        path,
        method,
        threads,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_objects_that_crossed_a_fork(path, tmp_path):
    """Without pickling: the child uses the parent's own image, header and decoders."""
    run_program(
        tmp_path,
        COMMON
        + """
path = sys.argv[1]
image = rumi.open(path)
right = digest(image.read(threads=4))
small = digest(image[0, :5, :5])
for _ in range(5):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            for threads in (None, 1, 2, 4):
                assert digest(image.read(threads=threads)) == right
                assert digest(rumi.read(path, image.header, threads=threads)) == right
            assert digest(image[0, :5, :5]) == small
            # And its own child, too.
            grandchild = os.fork()
            if grandchild == 0:
                os._exit(0 if digest(image.read(threads=2)) == right else 1)
            os._exit(os.waitpid(grandchild, 0)[1])
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert digest(image.read(threads=4)) == right
""",
        path,
    )


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are not listed here")
def test_a_child_inherits_no_open_file(path, tmp_path):
    """Handles are closed at a fork; the child opens the file anew where it reads."""
    run_program(
        tmp_path,
        COMMON
        + """
def handles(path):
    found = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    return found.count(os.path.realpath(path))

path = sys.argv[1]
image = rumi.open(path)
right = digest(image.read())
assert handles(path) == 1
child = os.fork()
if child == 0:
    signal.alarm(30)
    before = handles(path)
    ok = before == 0 and digest(image.read()) == right and handles(path) == 1
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
assert handles(path) == 1
""",
        path,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_while_others_decode(path, tmp_path):
    """Whatever lock a thread of the parent holds just then, the child does not need."""
    run_program(
        tmp_path,
        COMMON
        + """
path = sys.argv[1]
header = rumi.index(path)
image = rumi.open(path, header)
right = digest(rumi.read(path, header, threads=1))
stop = threading.Event()

def busy():
    while not stop.is_set():
        assert digest(rumi.read(path, header, threads=2)) == right
        image.read(window=(0, 0, 200, 200), threads=2)

threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
try:
    for _ in range(25):
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            ok = digest(image.read(threads=2)) == right
            ok = ok and digest(rumi.read(path, header, threads=1)) == right
            os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
finally:
    stop.set()
    for thread in threads:
        thread.join()
""",
        path,
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_child_uses_one_thread_unless_told(path, tmp_path, method):
    """As a DataLoader's worker should; the variable and the argument go before."""
    program = (
        COMMON
        + """
def work(path):
    before = threading.active_count()
    rumi.read(path)
    started = threading.active_count() - before
    return workers.resolve_threads(None), workers.resolve_threads(3), started

if __name__ == "__main__":
    path, method, expected = sys.argv[1], sys.argv[2], int(sys.argv[3])
    main = workers.resolve_threads(None)
    assert main == (workers.cpu_count() if expected == 1 else expected)
    with multiprocessing.get_context(method).Pool(1) as pool:
        default, argument, started = pool.apply(work, (path,))
    assert (default, argument) == (expected, 3)
    assert started == 0 or expected > 1
"""
    )
    run_program(tmp_path, program, path, method, 1)
    run_program(tmp_path, program, path, method, 5, environment={"RUMI_NUM_THREADS": "5"})


@pytest.mark.parametrize("method", METHODS)
def test_an_error_in_a_child_arrives(path, tmp_path, method):
    """Our errors pickle."""
    run_program(
        tmp_path,
        COMMON
        + """
def work(job):
    kind, path, header = job
    if kind == "codec":
        with open(path, "rb") as file:
            data = bytearray(file.read())
        data[header.offset(0) + 20] ^= 0xFF
        rumi.read(bytes(data), header)
    elif kind == "stale":
        with open(path, "rb") as file:
            rumi.read(file.read()[:-1], header)
    elif kind == "header":
        rumi.Header(bytes(header)[:-1] + bytes(2))
    else:
        rumi.read(path + "-none")

if __name__ == "__main__":
    path, method = sys.argv[1:]
    header = rumi.index(path)
    expected = {"codec": rumi.CodecError, "stale": rumi.StaleHeaderError,
                "header": rumi.HeaderError, "none": FileNotFoundError}
    with multiprocessing.get_context(method).Pool(1) as pool:
        for kind, error in expected.items():
            try:
                pool.apply(work, ((kind, path, header),))
            except error as caught:
                assert str(caught)
            else:
                raise SystemExit(kind)
""",
        path,
        method,
    )


def test_every_error_pickles():
    for name in dir(rumi):
        error = getattr(rumi, name)
        if isinstance(error, type) and issubclass(error, BaseException):
            again = pickle.loads(pickle.dumps(error("what was expected, found and where")))
            assert type(again) is error
            assert str(again) == "what was expected, found and where"


@pytest.mark.parametrize("method", METHODS)
def test_writing_in_children(tmp_path, method):
    run_program(
        tmp_path,
        COMMON
        + """
def work(path):
    rumi.write(path, np.arange(3 * 40 * 50, dtype="i4").reshape(3, 40, 50), tile_size=16)
    return digest(rumi.read(path))

if __name__ == "__main__":
    folder, method = sys.argv[1:]
    right = work(os.path.join(folder, "parent.rumi"))
    paths = [os.path.join(folder, f"{number}.rumi") for number in range(6)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(work, paths) == [right] * 6
    files = set()
    for path in [*paths, os.path.join(folder, "parent.rumi")]:
        with open(path, "rb") as file:
            files.add(file.read())
    assert len(files) == 1
""",
        tmp_path,
        method,
    )


def test_two_writers_of_one_file(tmp_path):
    """One of them wins; whoever reads meanwhile sees a whole file."""
    folder = tmp_path / "data"
    folder.mkdir()
    run_program(
        tmp_path,
        COMMON
        + """
def write(job):
    path, value = job
    for _ in range(10):
        rumi.write(path, np.full((1, 64, 64), value, "u2"), tile_size=16)

if __name__ == "__main__":
    path = sys.argv[1]
    write((path, 1))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        writing = pool.map_async(write, [(path, 1), (path, 2)])
        reads = 0
        while not writing.ready() or reads < 3:
            array = rumi.read(path)
            assert array.min() == array.max() and array.min() in (1, 2)
            reads += 1
        writing.get(10)
    assert os.listdir(os.path.dirname(path)) == ["a.rumi"]
""",
        folder / "a.rumi",
    )


# --- Threads


@pytest.mark.parametrize("kind", ["path", "path and header", "bytes"])
@pytest.mark.parametrize("threads", [1, 2])
def test_many_threads_on_one_image(path, kind, threads):
    """16 threads, hundreds of windows each, on one object without a lock of theirs (C28)."""
    windows = 500 if kind == "path" else 100
    image = {
        "path": lambda: rumi.open(path),
        "path and header": lambda: rumi.open(path, rumi.index(path)),
        "bytes": lambda: rumi.open(path.read_bytes()),
    }[kind]()
    failures = []
    start = threading.Barrier(16)

    def work(seed):
        rng = np.random.default_rng(seed)
        out = np.empty((2, 40, 40), np.uint16)
        start.wait(30)
        for number in range(windows):
            top, left = (int(value) for value in rng.integers(0, 472, 2))
            bands = rng.integers(0, 3, 2).tolist()
            window = (top, left, 40, 40)
            expected = oracle.numpy_window(VALUES, bands, window)
            found = image.read(
                bands=bands, window=window, out=out if number % 2 else None, threads=threads
            )
            if not np.array_equal(found, expected):
                failures.append((seed, bands, window))
            if number % 20 == 0:
                top = int(rng.integers(0, 200))
                if not np.array_equal(image[:, top : top + 300, :], VALUES[:, top : top + 300]):
                    failures.append((seed, top))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert failures == []


def test_many_threads_on_one_header(path):
    """Headers, plans and locations are read by all threads at the same time."""
    header = rumi.index(path)
    offsets = header.offsets.tolist()

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            index = int(rng.integers(header.frame_count))
            assert header.offset(index) == offsets[index]
            row, col, band = header.frame_position(index)
            found, _ = header.ranges(band, (128 * row, 128 * col, 1, 1))
            assert found.tolist() == [offsets[index]]
            assert header.dtype == np.uint16
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


def test_many_threads_write(tmp_path):
    def work(number):
        target = tmp_path / f"{number}.rumi"
        values = oracle.ramp(2, 40, 50) + number
        header = rumi.write(target, values, tile_size=16)
        assert rumi.index(target) == header
        return np.array_equal(rumi.read(target, header), values)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(40)))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(
        f"{number}.rumi" for number in range(40)
    )


# --- Pickles


def test_pickles_are_small(path):
    """Under 1 kB and the blob, with no handle, whatever was read before."""
    image = rumi.open(path)
    image.read(threads=2)
    assert image.epsg is None
    header = image.header
    assert len(pickle.dumps(image)) < 1000 + len(header)
    assert len(pickle.dumps(header)) < 200 + len(header)


def test_a_pickle_of_a_large_header(tmp_path):
    """Checkpoints and the like stay behind."""
    fields = oracle.fields_of((1, 1, 100_000), (1, 1))
    header = rumi.Header(oracle.blob_with(fields, oracle.counts_for(100_000)))
    header.offset(99_999)
    image = rumi.open("none.rumi", header)
    for value in (header, image):
        data = pickle.dumps(value)
        assert len(data) < 1000 + len(header)
    assert pickle.loads(pickle.dumps(image)).header.offset(99_999) == header.offset(99_999)
