"""rumi.aio: overlapping, bounded, cancellable, and the same bits."""

import asyncio
import threading
import time

import numpy as np
import oracle
import pytest
import servers

import rumi
import rumi.aio
from rumi.remote import ObjectStore

VALUES = oracle.random_samples((1, 16), (2, 64, 80))
FILE, BLOB = oracle.write(VALUES, (16, 16))
HEADER = rumi.Header(BLOB)
WINDOW = (5, 5, 30, 40)
EXPECTED = oracle.numpy_window(VALUES, None, WINDOW)

pytestmark = pytest.mark.usefixtures("clean_environment")


@pytest.fixture
def server():
    with servers.RangeServer() as server:
        server.put("/a.rumi", FILE, etag='"one"')
        yield server


@pytest.fixture
def store(server):
    return ObjectStore(server.url)


def run(coroutine):
    """Run a coroutine, and see that it leaves no task behind."""

    async def watched():
        result = await coroutine
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert others == set()
        return result

    return asyncio.run(watched())


@pytest.fixture(params=["path", "Path", "bytes", "url", "source"])
def any_source(request, tmp_path, server, store):
    path = tmp_path / "a.rumi"
    path.write_bytes(FILE)
    return {
        "path": str(path),
        "Path": path,
        "bytes": bytearray(FILE),
        "url": server.url + "/a.rumi",
        "source": store.source("a.rumi"),
    }[request.param]


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_every_source(any_source, threads, backend):
    async def all_of_them():
        assert await rumi.aio.index(any_source) == HEADER
        for header in (None, BLOB, HEADER):
            options = {"window": WINDOW, "threads": threads}
            found = await rumi.aio.read(any_source, header, **options)
            assert oracle.same_bits(found, EXPECTED)
            out = np.zeros_like(EXPECTED)
            assert await rumi.aio.read(any_source, header, out=out, **options) is out
            assert oracle.same_bits(out, EXPECTED)
            bands = await rumi.aio.read(any_source, header, bands=[1, 0], threads=threads)
            assert oracle.same_bits(bands, VALUES[::-1])
            batch = await rumi.aio.read_many([any_source] * 3, header, WINDOW, threads=threads)
            assert all(oracle.same_bits(found, EXPECTED) for found in batch)
            out = np.zeros_like(batch)
            again = await rumi.aio.read_many(
                any_source, header, [WINDOW] * 3, out=out, threads=threads
            )
            assert again is out
            assert oracle.same_bits(out, batch)

    run(all_of_them())


def test_the_requests_of_a_batch_overlap(server, store):
    """64 chips of 64 files take few times the latency of one."""
    for number in range(64):
        server.put(f"/{number}.rumi", FILE)
    sources = [store.source(f"{number}.rumi") for number in range(64)]
    run(rumi.aio.read_many(sources, BLOB, WINDOW))
    server.log.clear()
    server.latency = 0.25
    start = time.perf_counter()
    batch = run(rumi.aio.read_many(sources, BLOB, WINDOW))
    seconds = time.perf_counter() - start
    assert all(oracle.same_bits(found, EXPECTED) for found in batch)
    assert len(server.log) == 64
    assert server.busiest >= 32
    assert seconds < 3 * server.latency


def test_single_reads_overlap_and_share_the_cap(server):
    server.latency = 0.05
    few = ObjectStore(server.url, max_connections=5)

    async def many():
        source = few.source("a.rumi")
        return await asyncio.gather(
            *(rumi.aio.read(source, BLOB, window=(i, 0, 10, 10)) for i in range(40))
        )

    found = run(many())
    assert all(np.array_equal(chip, VALUES[:, i : i + 10, :10]) for i, chip in enumerate(found))
    assert 2 <= server.busiest <= 5


def test_the_loop_goes_on_while_frames_are_decoded(server, store, monkeypatch):
    """Decoding is not done in the loop's thread."""
    from rumi import overlap

    threads = set()
    decode = overlap.Workers.decode

    def noted(self, part, target):
        threads.add(threading.current_thread())
        decode(self, part, target)

    monkeypatch.setattr(overlap.Workers, "decode", noted)
    run(rumi.aio.read(store.source("a.rumi"), BLOB))
    run(rumi.aio.read_many([store.source("a.rumi")] * 3, BLOB))
    assert threads
    assert threading.main_thread() not in threads


def test_several_loops_and_threads_use_one_store(store):
    source = store.source("a.rumi")
    errors = []

    def work():
        try:
            for _ in range(3):
                assert oracle.same_bits(run(rumi.aio.read(source, BLOB, window=WINDOW)), EXPECTED)
                assert oracle.same_bits(rumi.read(source, BLOB, window=WINDOW), EXPECTED)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []


def test_plain_reads_inside_a_running_loop(store):
    async def inside():
        return rumi.read(store.source("a.rumi"), BLOB, window=WINDOW)

    assert oracle.same_bits(run(inside()), EXPECTED)


# --- Errors


def test_mistakes(server, store):
    source = store.source("a.rumi")
    for call, kind in (
        (lambda: rumi.aio.read(source, BLOB, window=(0, 0, 0, 5)), ValueError),
        (lambda: rumi.aio.read(source, BLOB, bands=True), TypeError),
        (lambda: rumi.aio.read(source, BLOB, out=np.zeros(3)), ValueError),
        (lambda: rumi.aio.read(source, b"x"), rumi.FormatError),
        (lambda: rumi.aio.read(source, BLOB, threads="2"), TypeError),
        (lambda: rumi.aio.read(None), TypeError),
        (lambda: rumi.aio.read_many([]), ValueError),
        (lambda: rumi.aio.read_many([source] * 2, BLOB, [WINDOW] * 3), ValueError),
        (lambda: rumi.aio.read_many([source] * 2, [BLOB, b""]), rumi.FormatError),
        (lambda: rumi.aio.read_many([source], BLOB, out=np.zeros(3)), ValueError),
        (lambda: rumi.aio.index("ftp://host/a"), rumi.UnsupportedError),
    ):
        with pytest.raises(kind):
            run(call())
    assert server.log == []


def test_items_of_other_shapes_are_named(server, store):
    data, blob = oracle.write(VALUES[:, :16], (16, 16))
    server.put("/b.rumi", data)
    sources = [store.source("a.rumi"), store.source("b.rumi")]
    for headers in (None, [BLOB, blob]):
        for call in (
            lambda headers=headers: rumi.read_many(sources, headers),
            lambda headers=headers: run(rumi.aio.read_many(sources, headers)),
        ):
            with pytest.raises(ValueError, match=r"^item 1 .*b\.rumi.*expected \(2, 64, 80\)"):
                call()


def test_a_failure_ends_the_others(server, store):
    """And nothing of the batch is left running."""
    server.latency = 0.02
    sources = [store.source(f"{number}.rumi") for number in range(300)]
    for number in range(1, 300):
        server.put(f"/{number}.rumi", FILE)
    server.put("/0.rumi", FILE[:-1])
    with pytest.raises(rumi.StaleHeaderError, match="^item 0"):
        run(rumi.aio.read_many(sources, BLOB))
    # What had been sent before the failure still arrives.
    time.sleep(0.2)
    asked = len(server.log)
    assert asked < 300
    time.sleep(0.2)
    assert len(server.log) == asked


# --- Cancellation


@pytest.mark.parametrize("act", [servers.stall, servers.stall_body])
@pytest.mark.parametrize("many", [False, True])
def test_a_cancelled_read_leaves_nothing(server, store, act, many):
    server.always["/a.rumi"] = act
    source = store.source("a.rumi")

    async def cancelled():
        if many:
            task = asyncio.create_task(rumi.aio.read_many([source] * 8, BLOB))
        else:
            task = asyncio.create_task(rumi.aio.read(source, BLOB))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    start = time.perf_counter()
    run(cancelled())
    assert time.perf_counter() - start < 5
    # Its connections are given back: the store goes on.
    del server.always["/a.rumi"]
    one = ObjectStore(server.url, max_connections=1)
    assert oracle.same_bits(run(rumi.aio.read(one.source("a.rumi"), BLOB)), VALUES)


def test_a_time_limit_of_the_caller(server, store):
    server.always["/a.rumi"] = servers.stall

    async def limited():
        async with asyncio.timeout(0.2):
            await rumi.aio.read(store.source("a.rumi"), BLOB)

    with pytest.raises(TimeoutError):
        run(limited())


def test_a_cancelled_read_is_done_with_out_when_it_returns(store, monkeypatch):
    """A thread that decodes cannot be interrupted, so it is waited for."""
    from rumi import overlap

    decode = overlap.Workers.decode
    started, running = threading.Event(), threading.Event()

    def slow(self, part, target):
        started.set()
        running.set()
        time.sleep(0.3)
        decode(self, part, target)
        running.clear()

    monkeypatch.setattr(overlap.Workers, "decode", slow)
    out = np.zeros_like(VALUES)

    async def cancelled():
        task = asyncio.create_task(rumi.aio.read(store.source("a.rumi"), BLOB, out=out))
        async with asyncio.timeout(30):
            while not started.is_set() and not task.done():
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running.is_set()

    run(cancelled())


def test_cancelling_many_times_over(server, store):
    server.latency = 0.01
    source = store.source("a.rumi")

    async def storm():
        for turn in range(30):
            task = asyncio.create_task(rumi.aio.read_many([source] * 20, BLOB, WINDOW))
            await asyncio.sleep(0.001 * turn)
            task.cancel()
            await asyncio.wait([task])
        return await rumi.aio.read(source, BLOB, window=WINDOW)

    assert oracle.same_bits(run(storm()), EXPECTED)
