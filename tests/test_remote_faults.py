"""Replies that are not what was asked for, and servers that fail (C26)."""

import asyncio
import resource
import signal
import socket
import threading
import time

import numpy as np
import oracle
import pytest
import servers

import rumi
import rumi.aio
from rumi.errors import MissingObjectError
from rumi.remote import ObjectStore
from rumi.remote.faults import AttemptError, attempt_error, pause

VALUES = oracle.random_samples((1, 16), (2, 40, 50))
FILE, BLOB = oracle.write(VALUES, (16, 16))
HEADER = rumi.Header(BLOB)
WINDOW = (5, 5, 20, 20)
EXPECTED = oracle.numpy_window(VALUES, None, WINDOW)
PATH = "/d/a.rumi"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    servers.clean_environment(monkeypatch)
    monkeypatch.setattr("rumi.remote.faults._FIRST_PAUSE", 0.002)


@pytest.fixture
def server():
    with servers.RangeServer() as server:
        server.put(PATH, FILE, etag='"one"')
        yield server


@pytest.fixture
def source(server):
    store = ObjectStore(f"{server.url}/d", retries=3, timeout=0.3)
    return store.source("a.rumi")


def reads(source):
    """Every way to read that makes requests."""
    return [
        lambda: rumi.read(source, BLOB, window=WINDOW),
        lambda: rumi.open(source, BLOB).read(window=WINDOW),
        lambda: rumi.read_many([source], BLOB, WINDOW)[0],
        lambda: asyncio.run(rumi.aio.read(source, BLOB, window=WINDOW)),
        lambda: asyncio.run(rumi.aio.read_many([source], BLOB, WINDOW))[0],
        lambda: rumi.read(source, window=WINDOW),
    ]


PASSING = {
    "500": servers.status(500),
    "502": servers.status(502),
    "503": servers.status(503),
    "504": servers.status(504),
    "429": servers.status(429),
    "408": servers.status(408),
    "reset": servers.reset,
    "hang up": servers.hang_up,
    "cut body": servers.cut_body,
    "stall": servers.stall,
    "stall in the body": servers.stall_body,
    "short body": servers.lie_about_range,
}


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_is_overcome(server, source, fault):
    for call in reads(source)[: 1 if "stall" in fault else None]:
        server.log.clear()
        server.faults[PATH] = [PASSING[fault]]
        result = call()
        assert oracle.same_bits(result, EXPECTED)
        assert server.faults[PATH] == []
        # Once more, and no other request.
        assert server.ranges()[0] == server.ranges()[1]


# What is expected of an error: status, words, requests.
LASTING = {
    "503": (servers.status(503), 503, "HTTP status 503: Service Unavailable", 4),
    "500": (servers.status(500), 500, "HTTP status 500", 4),
    "reset": (servers.reset, None, "connection", 4),
    "hang up": (servers.hang_up, None, "connection", 4),
    "cut body": (servers.cut_body, None, "broken", 4),
    "stall": (servers.stall, None, "timed out", 4),
    "short body": (servers.lie_about_range, None, "bytes, the server sent", 4),
    "400": (servers.status(400), 400, "HTTP status 400", 1),
    "401": (servers.status(401), 401, "HTTP status 401", 1),
    "403": (servers.status(403), 403, "HTTP status 403", 1),
    "404": (servers.status(404), 404, "HTTP status 404: Not Found", 1),
    "416": (servers.status(416), 416, "HTTP status 416", 1),
    "301": (servers.status(301), None, "redirect", 1),
    "ignores Range": (servers.ignore_range, 200, "ignores ranges", 1),
    "endless 200": (servers.endless_whole, 200, "ignores ranges", 1),
    "endless 206": (servers.endless_part, None, "more bytes", 1),
    "endless chunks": (servers.endless_chunks, None, "Content-Length", 1),
    "shifted": (servers.shift_range, None, "Requested", 1),
    "half": (servers.short_part, None, "Requested", 1),
    "no Content-Range": (servers.no_content_range, None, "Content-Range", 1),
    "garbage": (servers.garbage, None, "connection", 4),
}


@pytest.mark.parametrize("fault", LASTING)
def test_a_fault_that_lasts_is_one_line_with_url_range_and_status(server, source, fault):
    act, status, words, requests = LASTING[fault]
    server.always[PATH] = act
    offsets, counts = HEADER.ranges(None, WINDOW)
    start, stop = int(offsets[0]), int(offsets[-1] + counts[-1])
    for call in reads(source)[: 1 if fault == "stall" else -1]:
        server.log.clear()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(rumi.SourceError) as caught:
            call()
        text = str(caught.value)
        assert f"{server.url}{PATH}: bytes {start} to {stop} were not fetched: " in text
        assert words in text
        assert "\n" not in text
        assert caught.value.status == status
        assert caught.value.range == (start, stop)
        assert not isinstance(caught.value, (rumi.FormatError, rumi.StaleHeaderError))
        assert len([span for span in server.ranges() if span == (start, stop)]) == requests
        assert ("after 4 attempts" in text) == (requests > 1)
        # Nothing was asked for past the last frame.
        assert max(stop for _, stop in server.ranges()) <= len(FILE)
        # 2 GB were on offer.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize("fault", ["403", "404", "503", "endless 200", "shifted"])
def test_faults_while_reading_the_index(server, source, fault):
    act, status, words, _ = LASTING[fault]
    server.always[PATH] = act
    for call in (
        lambda: rumi.index(source),
        lambda: rumi.open(source),
        lambda: rumi.read_many([source, source]),
        lambda: asyncio.run(rumi.aio.index(source)),
        lambda: asyncio.run(rumi.aio.read_many([source, source])),
    ):
        with pytest.raises(rumi.SourceError, match=words) as caught:
            call()
        assert caught.value.status == status
        assert f"{server.url}{PATH}: bytes 0 to 412" in str(caught.value)


def test_a_missing_object_is_a_missing_file(server, source):
    missing = source.store.source("none.rumi")
    for call in reads(missing):
        with pytest.raises(FileNotFoundError) as caught:
            call()
        assert isinstance(caught.value, rumi.SourceError)
        assert caught.value.errno == 2
    assert {request.status for request in server.log} == {404}


def test_errors_of_a_batch_name_their_item(server, source):
    missing = source.store.source("none.rumi")
    for call in (
        lambda: rumi.read_many([source, missing, source], BLOB),
        lambda: rumi.read_many([source, missing, source]),
        lambda: asyncio.run(rumi.aio.read_many([source, missing, source], BLOB)),
        lambda: asyncio.run(rumi.aio.read_many([source, missing, source])),
    ):
        with pytest.raises(MissingObjectError, match=r"^item 1: http.*none\.rumi: bytes") as caught:
            call()
        assert caught.value.status == 404


def test_no_server(monkeypatch):
    port = servers.free_port()
    source = ObjectStore(f"http://127.0.0.1:{port}", retries=2).source("a.rumi")
    with pytest.raises(rumi.SourceError, match=r"cannot connect.*\(after 3 attempts\)") as caught:
        rumi.read(source, BLOB)
    assert caught.value.status is None


def test_a_server_that_does_not_accept():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        source = ObjectStore(url, retries=0, timeout=0.2).source("a.rumi")
        start = time.monotonic()
        with pytest.raises(rumi.SourceError, match="timed out"):
            rumi.read(source, BLOB)
        assert time.monotonic() - start < 5


def test_frames_that_do_not_decode_are_not_the_networks_fault(server, source):
    broken = bytearray(FILE)
    broken[HEADER.base_frame_offset + 30] ^= 1
    server.put(PATH, bytes(broken))
    for call in (
        lambda: rumi.read(source, BLOB),
        lambda: rumi.read(source),
        lambda: rumi.read_many([source], BLOB),
        lambda: asyncio.run(rumi.aio.read(source, BLOB)),
        lambda: asyncio.run(rumi.aio.read_many([source], BLOB)),
    ):
        with pytest.raises(rumi.CodecError, match=r"frame 0 \(row 0, col 0, band 0\) of http://"):
            call()


def test_files_of_another_kind(server, source):
    for data, kind in (
        (b"", rumi.TruncatedError),
        (b"x", rumi.FormatError),
        (b"<html>Sorry</html>" * 100, rumi.FormatError),
        (FILE[:300], rumi.TruncatedError),
        (FILE[:-1], rumi.TruncatedError),
        (FILE + b"x", rumi.FormatError),
        (b"II*\0" + bytes(1000), rumi.FormatError),
    ):
        server.put(PATH, data)
        for call in (
            lambda: rumi.index(source),
            lambda: rumi.read(source),
            lambda: rumi.open(source),
            lambda: asyncio.run(rumi.aio.index(source)),
        ):
            with pytest.raises(kind, match=r"a\.rumi"):
                call()


def test_a_slow_body_is_no_stall(server, source):
    """The clock starts again with every MiB, so that a large range may take its time."""
    values = oracle.random_samples((1, 8), (1, 2048, 2048))
    data, blob = oracle.write(values, (2048, 2048))
    server.put(PATH, data)
    server.always[PATH] = servers.slow_body(0.15)
    assert oracle.same_bits(rumi.read(source, blob), values)


def test_the_others_go_on_while_one_is_tried_again(server, source):
    """A batch with a fault in the middle is read whole."""
    urls = []
    for number in range(12):
        path = f"/d/{number}.rumi"
        server.put(path, FILE)
        server.faults[path] = [servers.status(503)] * (number % 3)
        urls.append(source.store.source(f"{number}.rumi"))
    batch = rumi.read_many(urls, BLOB)
    assert all(np.array_equal(found, VALUES) for found in batch)
    assert len(server.log) == 12 + 12


def test_the_first_error_ends_the_batch(server, source):
    server.latency = 0.05
    sources = [source] + [source.store.source(f"{number}.rumi") for number in range(500)]
    for number in range(500):
        server.put(f"/d/{number}.rumi", FILE)
    broken = bytearray(FILE)
    broken[HEADER.base_frame_offset + 30] ^= 1
    for act, kind in ((servers.status(403), rumi.SourceError), (servers.answer, rumi.CodecError)):
        server.always[PATH] = act
        server.put(PATH, bytes(broken))
        server.log.clear()
        # The error is kept, and its traceback, and still nothing goes on.
        with pytest.raises(kind, match="item 0") as caught:
            rumi.read_many(sources, BLOB)
        time.sleep(0.2)
        asked = len(server.log)
        assert asked < 400
        time.sleep(0.2)
        assert len(server.log) == asked
        assert caught.value.__traceback__ is not None


def test_an_interrupt_ends_a_read(server, source):
    """Ctrl-C is not kept waiting for the network."""
    server.always[PATH] = servers.stall
    slow = ObjectStore(f"{server.url}/d", timeout=30).source("a.rumi")
    main = threading.get_ident()
    threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        rumi.read(slow, BLOB)
    assert time.monotonic() - start < 10
    del server.always[PATH]
    assert oracle.same_bits(rumi.read(source, BLOB, window=WINDOW), EXPECTED)


def test_pauses_grow_to_a_limit(monkeypatch):
    monkeypatch.setattr("rumi.remote.faults._FIRST_PAUSE", 0.1)
    for attempt in range(60):
        longest = min(5.0, 0.1 * 2**attempt)
        assert 0.5 * longest <= pause(attempt) <= longest


def test_what_clients_raise_is_told_apart():
    class AnswerError(Exception):
        """As aiohttp raises."""

        status = 503

    for error, status, transient in (
        (TimeoutError(), None, True),
        (ConnectionResetError("reset"), None, True),
        (FileNotFoundError("a"), 404, False),
        (PermissionError("a"), 403, False),
        (AnswerError("busy"), 503, True),
        (KeyError("a"), None, False),
    ):
        found = attempt_error(error)
        assert isinstance(found, AttemptError)
        assert (found.status, found.transient) == (status, transient)
        assert str(found)
    long = attempt_error(RuntimeError("x" * 10_000 + "\n"))
    assert len(str(long)) <= 300
