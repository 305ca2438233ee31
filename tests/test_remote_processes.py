"""Remote reads in other processes: forked after use, spawned, from a fork server (C28)."""

import json
import os
import subprocess
import sys
import threading
import zlib

import oracle
import pytest
import servers

import rumi
from rumi.remote import process

VALUES = oracle.random_samples((1, 16), (2, 40, 50))
FILE, BLOB = oracle.write(VALUES, (16, 16))
WATCHDOG = 60

# What a training job does: the parent looks at a file, then workers are started that
# get sources and headers over a queue and give back what they read.
PROGRAM = """
import asyncio, json, multiprocessing, os, pickle, sys, threading, zlib

import rumi, rumi.aio
from rumi.remote import ObjectStore


def digest(array):
    return zlib.crc32(array.tobytes())


def work(tasks, results):
    while True:
        task = tasks.get()
        if task is None:
            return
        try:
            source, blob, image = task
            found = {
                "read": digest(rumi.read(source, blob)),
                "again": digest(rumi.read(source, blob)),
                "index": digest(rumi.read(source)),
                "image": digest(image.read()),
                "many": digest(rumi.read_many([source] * 3, blob)[2]),
                "aio": digest(asyncio.run(rumi.aio.read(source, blob))),
            }
        except BaseException as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        results.put(found)


def main(method, use, url, blob):
    store = ObjectStore(url, timeout=20)
    sources = [url + "/a.rumi", store.source("a.rumi")]
    if use:
        for source in sources:
            rumi.read(source, blob)
            asyncio.run(rumi.aio.read_many([source] * 4, blob))
    image = rumi.open(sources[1])
    context = multiprocessing.get_context(method)
    tasks, results = context.Queue(), context.Queue()
    # Another thread is in the middle of a read when the workers are started.
    done = threading.Event()

    def busy():
        while not done.is_set():
            rumi.read(sources[0], blob)

    thread = threading.Thread(target=busy)
    if use:
        thread.start()
    workers = [context.Process(target=work, args=(tasks, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for turn in range(3):
        for source in sources:
            tasks.put((source, blob, image))
    found = [results.get(timeout=50) for _ in range(6)]
    done.set()
    if use:
        thread.join()
        # The parent goes on.
        found.append({"parent": digest(rumi.read(sources[1], blob))})
    for _ in workers:
        tasks.put(None)
    for worker in workers:
        worker.join(20)
    found.append({"exits": [worker.exitcode for worker in workers]})
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "used", sys.argv[3], bytes.fromhex(sys.argv[4]))
"""

NESTED = """
import os, sys, zlib
import rumi
from rumi.remote import ObjectStore

url, blob = sys.argv[1], bytes.fromhex(sys.argv[2])
source = ObjectStore(url).source("a.rumi")


def generation(depth):
    print(depth, zlib.crc32(rumi.read(source, blob).tobytes()), flush=True)
    if depth == 2:
        return
    child = os.fork()
    if child == 0:
        try:
            generation(depth + 1)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    print(depth, zlib.crc32(rumi.read(source, blob).tobytes()), flush=True)


generation(0)
"""

GIVEN = """
import os, sys, zlib
import obstore.store
import rumi
from rumi.remote import ObjectStore

url, blob, kind = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3]
if kind == "http":
    given, name = obstore.store.HTTPStore(url, client_options={"allow_http": True}), "a.rumi"
elif kind == "memory":
    given, name = obstore.store.MemoryStore(), "a.rumi"
    given.put("a.rumi", bytes.fromhex(sys.argv[4]))
elif kind == "fsspec http":
    import fsspec
    given, name = fsspec.filesystem("http"), url + "/a.rumi"
else:
    import fsspec
    given, name = fsspec.filesystem("memory"), "/a.rumi"
    given.pipe_file("/a.rumi", bytes.fromhex(sys.argv[4]))
source = ObjectStore(given).source(name)
print("parent", zlib.crc32(rumi.read(source, blob).tobytes()), flush=True)
child = os.fork()
if child == 0:
    try:
        print("child", zlib.crc32(rumi.read(source, blob).tobytes()), flush=True)
    except rumi.SourceError as error:
        print("refused", error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def server():
    with servers.RangeServer() as server:
        server.put("/a.rumi", FILE, etag='"one"')
        yield server


def run(tmp_path, program, *arguments):
    script = tmp_path / "program.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def digest(array):
    return zlib.crc32(array.tobytes())


@pytest.mark.parametrize("use", ["used", "fresh"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_read_whatever_the_parent_did_before(server, tmp_path, method, use):
    if method == "fork" and use == "used" and sys.version_info >= (3, 12):
        # Python warns of a fork beside threads, which is what is tested.
        program = PROGRAM.replace(
            "import rumi, rumi.aio",
            "import warnings\nwarnings.simplefilter"
            "('ignore', DeprecationWarning)\nimport rumi, rumi.aio",
            1,
        )
    else:
        program = PROGRAM
    found = json.loads(run(tmp_path, program, method, use, server.url, BLOB.hex()))
    assert found.pop() == {"exits": [0, 0]}
    expected = digest(VALUES)
    for result in found:
        assert set(result.values()) == {expected}


def test_children_of_children(server, tmp_path):
    lines = run(tmp_path, NESTED, server.url, BLOB.hex()).splitlines()
    assert lines == [f"{depth} {digest(VALUES)}" for depth in (0, 1, 2, 1, 0)]


@pytest.mark.parametrize("kind", ["http", "fsspec memory", "fsspec http"])
def test_stores_made_by_others_survive_a_fork(server, tmp_path, kind):
    pytest.importorskip("fsspec")
    if kind == "fsspec http":
        pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    lines = run(tmp_path, GIVEN, server.url, BLOB.hex(), kind, FILE.hex()).splitlines()
    assert lines == [f"parent {digest(VALUES)}", f"child {digest(VALUES)}"]


def test_the_memory_of_obstore_does_not_survive_a_fork_and_says_so(server, tmp_path):
    lines = run(tmp_path, GIVEN, server.url, BLOB.hex(), "memory", FILE.hex()).splitlines()
    assert lines[0] == f"parent {digest(VALUES)}"
    assert lines[1].startswith("refused a MemoryStore")
    assert "bytes" in lines[1]


def test_a_process_that_is_forked_before_rumi_is_imported(server, tmp_path):
    """obstore was used before, by others; rumi has not seen the fork."""
    program = """
import multiprocessing, sys, zlib
import obstore, obstore.store

url, blob = sys.argv[1], bytes.fromhex(sys.argv[2])
store = obstore.store.HTTPStore(url, client_options={"allow_http": True})
obstore.get(store, "a.rumi")


def work(results):
    import rumi

    results.put(zlib.crc32(rumi.read(url + "/a.rumi", blob).tobytes()))


context = multiprocessing.get_context("fork")
results = context.Queue()
worker = context.Process(target=work, args=(results,))
worker.start()
print(results.get(timeout=40))
worker.join(10)
"""
    assert run(tmp_path, program, server.url, BLOB.hex()).split() == [str(digest(VALUES))]


def test_obstore_that_cannot_be_loaded_again_is_named(server, tmp_path):
    program = """
import os, sys
import rumi
from rumi.remote import process

url, blob = sys.argv[1] + "/a.rumi", bytes.fromhex(sys.argv[2])
rumi.read(url, blob)


def forbidden(*arguments):
    raise PermissionError("no executable memory here")


child = os.fork()
if child == 0:
    process._unnamed_file = forbidden
    try:
        rumi.read(url, blob)
    except rumi.SourceError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    said = run(tmp_path, program, server.url, BLOB.hex())
    assert "no executable memory here" in said
    assert "'forkserver'" in said


def test_a_copy_works_from_an_ordinary_file_too(server, tmp_path):
    """Where the system has no memory files, or forbids them."""
    program = """
import os, sys, zlib
import rumi

url, blob = sys.argv[1] + "/a.rumi", bytes.fromhex(sys.argv[2])
rumi.read(url, blob)


def forbidden(*arguments):
    raise OSError("forbidden")


child = os.fork()
if child == 0:
    os.memfd_create = forbidden
    print(zlib.crc32(rumi.read(url, blob).tobytes()), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert run(tmp_path, program, server.url, BLOB.hex()).split() == [str(digest(VALUES))]


def test_an_upload_from_a_forked_child(tmp_path):
    program = """
import os, sys
import numpy as np
import rumi
from rumi.remote import ObjectStore

store = ObjectStore("file://" + sys.argv[1])
rumi.write(store.source("a.rumi"), np.ones((1, 8, 8), np.uint8), codec="zstd")
child = os.fork()
if child == 0:
    rumi.write(store.source("b.rumi"), np.full((1, 8, 8), 7, np.uint8), codec="zstd")
    os._exit(0)
os.waitpid(child, 0)
print(rumi.read(store.source("b.rumi")).sum())
"""
    folder = tmp_path / "files"
    folder.mkdir()
    assert run(tmp_path, program, str(folder)).split() == [str(7 * 64)]
    assert rumi.read(folder / "b.rumi").sum() == 7 * 64


def test_a_process_ends_without_waiting_or_complaining(server, tmp_path):
    """With requests in flight, from a thread and from an event loop that is dropped."""
    program = """
import sys, threading, time
import rumi
from rumi.remote import ObjectStore

source = ObjectStore(sys.argv[1], timeout=30).source("slow.rumi")


def read():
    try:
        rumi.read(source, bytes.fromhex(sys.argv[2]))
    except BaseException:
        pass


threading.Thread(target=read, daemon=True).start()
time.sleep(0.3)
print("end")
"""
    server.put("/slow.rumi", FILE)
    server.always["/slow.rumi"] = servers.stall
    assert run(tmp_path, program, server.url, BLOB.hex()) == "end\n"


def test_the_end_waits_for_threads_that_hand_over_results(monkeypatch):
    """One that is still in Python's own code when the interpreter ends would abort it."""
    frames = [{threading.get_ident(): None, -1: None}] * 3 + [{threading.get_ident(): None}]
    asked = []

    def current_frames():
        asked.append(len(asked))
        return frames[min(len(asked), len(frames)) - 1]

    state = process._Process(forked=False, unusable=False)
    state.obstore = process.Obstore(None, None, None)
    monkeypatch.setattr(process, "_current", state)
    monkeypatch.setattr(process.sys, "_current_frames", current_frames)
    process._at_exit()
    assert len(asked) == 4


def test_processes_end_well_right_after_a_read(server, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import asyncio, sys, rumi, rumi.aio\n"
        "asyncio.run(rumi.aio.read(sys.argv[1], bytes.fromhex(sys.argv[2])))\n"
    )
    command = [sys.executable, str(script), server.url + "/a.rumi", BLOB.hex()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for _ in range(3):
        running = [
            subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) for _ in range(6)
        ]
        for one in running:
            _, errors = one.communicate(timeout=WATCHDOG)
            assert (one.returncode, errors) == (0, b"")
