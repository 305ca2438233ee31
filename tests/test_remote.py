"""Remote reads: which requests are made, of what, and what is refused (C06, C27)."""

import asyncio
import hashlib
import io
import itertools
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import oracle
import pytest
import servers
from hypothesis import given
from hypothesis import strategies as st

import rumi
import rumi.aio
from rumi.remote import ObjectStore, RemoteSource, from_url
from rumi.remote.fetch import Job, merged, replies
from rumi.remote.process import current
from rumi.remote.urls import is_url, object_url, shown, split_url

VALUES = oracle.random_samples((1, 16), (3, 70, 90))
FILE, BLOB = oracle.write(VALUES, (16, 16))
HEADER = rumi.Header(BLOB)
WINDOW = (3, 5, 40, 50)
EXPECTED = oracle.numpy_window(VALUES, None, WINDOW)

pytestmark = pytest.mark.usefixtures("clean_environment")


@pytest.fixture
def server():
    with servers.RangeServer() as server:
        yield server


@pytest.fixture
def url(server):
    return server.put("/d/a.rumi", FILE, etag='"one"')


def image_of_frames(shape=(2, 64, 64), tile=16, **options):
    """An image whose file is made by the oracle, and both."""
    values = oracle.random_samples((1, 16), shape)
    data, blob = oracle.write(values, (tile, tile), **options)
    return values, data, rumi.Header(blob)


# --- The same bits on every route


def routes(source):
    """Every way to read a window of a source, by name."""
    return {
        "read, blob": lambda: rumi.read(source, BLOB, window=WINDOW),
        "read, header": lambda: rumi.read(source, HEADER, window=WINDOW),
        "read": lambda: rumi.read(source, window=WINDOW),
        "read, threads": lambda: rumi.read(source, BLOB, window=WINDOW, threads=3),
        "open": lambda: rumi.open(source).read(window=WINDOW),
        "open, blob": lambda: rumi.open(source, BLOB).read(window=WINDOW),
        "index": lambda: rumi.open(source)[:, 3:43, 5:55],
        "pickled": lambda: pickle.loads(pickle.dumps(rumi.open(source))).read(window=WINDOW),
        "many": lambda: rumi.read_many(source, BLOB, WINDOW)[0],
        "many, no header": lambda: rumi.read_many([source, source], None, WINDOW)[1],
        "aio": lambda: asyncio.run(rumi.aio.read(source, BLOB, window=WINDOW)),
        "aio, no header": lambda: asyncio.run(rumi.aio.read(source, window=WINDOW)),
        "aio, many": lambda: asyncio.run(rumi.aio.read_many([source], BLOB, [WINDOW]))[0],
    }


@pytest.mark.parametrize("route", routes(None))
def test_every_route_gives_the_same_bits(url, route, backend):
    assert oracle.same_bits(routes(url)[route](), EXPECTED)


@pytest.mark.parametrize("unit", [0, 1])
@pytest.mark.parametrize("bands", [None, [1], [2, 0, 2], slice(0, 2)])
def test_bands_and_frame_units(server, unit, bands):
    data, blob = oracle.write(VALUES, (16, 16), unit)
    url = server.put("/a.rumi", data)
    expected = oracle.numpy_window(VALUES, bands, WINDOW)
    for gap in (0, 1 << 20):
        store = ObjectStore(server.url, gap=gap, largest=5000)
        for source in (url, store.source("a.rumi")):
            assert oracle.same_bits(rumi.read(source, blob, bands=bands, window=WINDOW), expected)
            many = rumi.read_many([source] * 2, blob, WINDOW, bands=bands)
            assert oracle.same_bits(many[1], expected)


def test_the_result_is_owned_and_out_is_honoured(url):
    result = rumi.read(url, BLOB, window=WINDOW)
    assert result.flags.owndata
    assert result.flags.writeable
    assert result.flags.c_contiguous
    out = np.zeros((50, 40, 3), np.uint16).transpose(2, 1, 0)
    assert rumi.read(url, BLOB, window=WINDOW, out=out) is out
    assert np.array_equal(out, EXPECTED)
    with pytest.raises(TypeError):
        rumi.read(url, BLOB, window=WINDOW, out=np.zeros(EXPECTED.shape, np.int16))


def test_mistakes_are_refused_before_any_request(server, url):
    for call in (
        lambda: rumi.read(url, BLOB, window=(0, 0, 71, 1)),
        lambda: rumi.read(url, BLOB, bands=[3]),
        lambda: rumi.read(url, BLOB[:-1]),
        lambda: rumi.read_many([url] * 2, BLOB, [(0, 0, 1, 1), (0, 0, 1, 2)]),
        lambda: asyncio.run(rumi.aio.read(url, BLOB, threads=0)),
        lambda: rumi.read(url, BLOB, threads=True),
    ):
        with pytest.raises((ValueError, IndexError, TypeError)):
            call()
    assert server.log == []


# --- Requests


def test_with_a_header_only_frames_are_asked_for(server):
    values, data, header = image_of_frames()
    url = server.put("/a.rumi", data)
    window = (16, 16, 16, 32)
    offsets, counts = header.ranges(None, window)
    assert np.array_equal(rumi.read(url, header, window=window), values[:, 16:32, 16:48])
    first, end = int(offsets[0]), int(offsets[-1] + counts[-1])
    assert server.ranges() == [(first, end)]
    # One request, for the bytes of those four frames and no other.
    assert [(r.method, r.status, r.sent) for r in server.log] == [("GET", 206, int(counts.sum()))]


def test_ranges_merge_over_the_gap(server):
    _, data, header = image_of_frames((1, 64, 64))
    server.put("/a.rumi", data)
    window = (0, 0, 64, 16)
    offsets, counts = (numbers.tolist() for numbers in header.ranges(None, window))
    ends = [offset + count for offset, count in zip(offsets, counts, strict=True)]
    gap = max(start - end for start, end in zip(offsets[1:], ends[:-1], strict=True))
    for store, expected in (
        (ObjectStore(server.url), [(offsets[0], ends[-1])]),
        (ObjectStore(server.url, gap=gap), [(offsets[0], ends[-1])]),
        (ObjectStore(server.url, gap=0), list(zip(offsets, ends, strict=True))),
    ):
        server.log.clear()
        rumi.read(store.source("a.rumi"), header, window=window)
        assert server.ranges() == expected


def test_a_request_is_no_larger_than_allowed(server):
    values, data, header = image_of_frames()
    server.put("/a.rumi", data)
    store = ObjectStore(server.url, largest=3000)
    assert np.array_equal(rumi.read(store.source("a.rumi"), header), values)
    ranges = server.ranges()
    assert all(stop - start <= 3000 for start, stop in ranges)
    # Without a hole, and nothing past the last frame.
    assert ranges[0][0] == header.base_frame_offset
    assert ranges[-1][1] == header.file_size
    assert all(one[1] == two[0] for one, two in itertools.pairwise(ranges))


@pytest.mark.parametrize(
    ("shape", "requests"), [((1, 16, 16), 1), ((4, 16, 16), 2), ((5, 90, 90), 2), ((1, 16, 17), 2)]
)
def test_without_a_header_the_index_takes_at_most_two_requests(server, shape, requests):
    values, data, header = image_of_frames(shape)
    url = server.put("/a.rumi", data, etag='"one"')
    for call in (
        lambda: rumi.index(url),
        lambda: asyncio.run(rumi.aio.index(url)),
        lambda: rumi.open(url).header,
    ):
        server.log.clear()
        assert call() == header
        assert len(server.log) == requests
        # The whole index and never a frame.
        assert server.ranges()[0][0] == 0
        assert server.ranges()[-1][1] == header.base_frame_offset
    server.log.clear()
    assert np.array_equal(rumi.read(url), values)
    assert len(server.log) == requests + 1
    assert {request.method for request in server.log} == {"GET"}


def test_an_image_asks_for_its_georeferencing_once(server):
    values, data, header = image_of_frames()
    url = server.put("/a.rumi", data)
    image = rumi.open(url, header)
    assert server.log == []
    assert (image.epsg, image.transform, image.bounds) == (None, None, None)
    assert server.ranges() == [(header.base_frame_offset - 160, header.base_frame_offset)]
    assert np.array_equal(image[1, 2, :], values[1, 2])


def test_ranges_are_fetched_together(server):
    values, data, header = image_of_frames((1, 128, 128))
    server.put("/a.rumi", data)
    server.latency = 0.1
    store = ObjectStore(server.url, gap=0, largest=1)
    assert np.array_equal(rumi.read(store.source("a.rumi"), header), values)
    assert len(server.log) == 64
    assert server.busiest > 32


def test_connections_are_capped(server, monkeypatch):
    values, data, header = image_of_frames((1, 64, 64))
    server.put("/a.rumi", data)
    server.latency = 0.01
    few = ObjectStore(server.url, gap=0, largest=1, max_connections=3)
    assert np.array_equal(rumi.read(few.source("a.rumi"), header), values)
    assert server.busiest <= 3
    asyncio.run(rumi.aio.read_many([few.source("a.rumi")] * 4, header))
    assert server.busiest <= 3
    monkeypatch.setenv("RUMI_MAX_CONNECTIONS", "2")
    server.busiest = 0
    open_ended = ObjectStore(server.url, gap=0, largest=1)
    rumi.read(open_ended.source("a.rumi"), header)
    assert server.busiest <= 2
    for value in ("0", "-1", "many", ""):
        monkeypatch.setenv("RUMI_MAX_CONNECTIONS", value)
        with pytest.raises(ValueError, match="RUMI_MAX_CONNECTIONS"):
            rumi.read(ObjectStore(server.url).source("a.rumi"), header)


def test_a_batch_of_files_overlaps(server):
    files = [image_of_frames((2, 32, 32)) for _ in range(20)]
    urls = [server.put(f"/{i}.rumi", data) for i, (_, data, _) in enumerate(files)]
    headers = [header for _, _, header in files]
    server.latency = 0.1
    result = rumi.read_many(urls, headers)
    assert np.array_equal(result, np.stack([values for values, _, _ in files]))
    assert len(server.log) == 20
    assert server.busiest >= 10
    server.log.clear()
    # The same file of a batch is indexed once.
    rumi.read_many([urls[0], urls[1]] * 3)
    assert len(server.log) == 2 * 2 + 2


def test_what_several_items_of_a_file_need_comes_once(server, monkeypatch):
    """Overlapping windows, as of a model that slides over a scene."""
    monkeypatch.setattr("rumi.batch._AHEAD", 40)
    values, data, header = image_of_frames((2, 160, 160))
    offsets, counts = header.ranges()
    server.put("/b.rumi", data)
    windows = [(row, col, 48, 48) for row in range(0, 112, 16) for col in range(0, 112, 16)]
    expected = np.stack([oracle.numpy_window(values, None, window) for window in windows])
    for largest in (8 << 20, 2 * int(counts.max()), 1):
        store = ObjectStore(server.url, gap=0, largest=largest)
        for sources in (store.source("b.rumi"), [store.source("b.rumi")] * len(windows)):
            server.log.clear()
            assert oracle.same_bits(rumi.read_many(sources, header, windows), expected)
            fetched = sum(stop - start for start, stop in server.ranges())
            if largest == 8 << 20:
                # Of two lots of items, which share some.
                assert fetched < 1.5 * counts.sum()
            assert all(offsets[0] <= start < stop <= len(data) for start, stop in server.ranges())
            batch = asyncio.run(rumi.aio.read_many(sources, header, windows))
            assert oracle.same_bits(batch, expected)


def test_what_does_not_come_is_an_error_of_the_first_item_that_needs_it(server):
    _, data, header = image_of_frames((1, 64, 64))
    server.put("/b.rumi", data)
    server.always["/b.rumi"] = servers.status(403)
    url = f"{server.url}/b.rumi"
    windows = [(40, 40, 9, 9), (0, 0, 9, 9), (1, 1, 9, 9)]
    with pytest.raises(rumi.SourceError, match="^item 0: .*403"):
        rumi.read_many([url] * 3, header, windows)


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 30)), max_size=30), st.data())
def test_merged_ranges_hold_what_they_were_made_of(spans, data):
    gap, largest = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 60))
    wanted = [(start, start + size, number) for number, (start, size) in enumerate(spans)]
    found = list(merged(list(wanted), gap, largest))
    assert sorted(number for _, _, uses in found for number in uses) == list(range(len(spans)))
    for start, stop, uses in found:
        assert start == min(wanted[number][0] for number in uses)
        assert stop == max(wanted[number][1] for number in uses)
        assert len(uses) == 1 or stop - start <= largest
        covered = sorted(wanted[number][:2] for number in uses)
        reach = start
        for low, high, *_ in covered:
            assert low <= reach + gap
            reach = max(reach, high)


def test_a_batch_may_mix_remote_and_local_files(server, tmp_path):
    path = tmp_path / "a.rumi"
    path.write_bytes(FILE)
    url = server.put("/d/a.rumi", FILE)
    sources = [url, str(path), path, FILE, io.BytesIO(FILE), from_url(url), rumi.open(url).opened()]
    windows = [(i, 2 * i, 30, 20) for i in range(len(sources))]
    expected = np.stack([oracle.numpy_window(VALUES, None, window) for window in windows])
    for headers in (None, BLOB, [BLOB] * len(sources)):
        assert oracle.same_bits(rumi.read_many(sources, headers, windows), expected)
        batch = asyncio.run(rumi.aio.read_many(sources, headers, windows))
        assert oracle.same_bits(batch, expected)


def test_a_cube_of_remote_images(server):
    files = [image_of_frames((2, 40, 40)) for _ in range(3)]
    urls = [server.put(f"/{i}.rumi", data) for i, (_, data, _) in enumerate(files)]
    cube = rumi.Cube(urls)
    assert np.array_equal(cube.read(), np.stack([values for values, _, _ in files]))


def test_validation_takes_urls(server, url):
    assert rumi.validate(url, BLOB).ok
    assert not rumi.validate(server.put("/cut.rumi", FILE[:-1]), BLOB).ok


def test_memory_is_bounded_while_reading(server):
    """What is in flight is bounded; the result is all that grows with the image."""
    values = oracle.random_samples((1, 8), (1, 4096, 4096))
    data, blob = oracle.write(values, (256, 256))
    server.put("/a.rumi", data)
    source = ObjectStore(server.url, largest=1 << 18, max_connections=4).source("a.rumi")
    rumi.read(source, blob, window=(0, 0, 8, 8))
    out = np.empty((1, 4096, 4096), np.uint8)
    server.latency = 0.001

    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        rumi.read(source, blob, out=out, threads=1)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert np.array_equal(out, values)
    # The server of the same process holds its answers too.
    assert peak < 12 << 20


def test_jobs_wait_for_room():
    class Source:
        def __init__(self):
            self.flying = self.most = 0

        async def get(self, start, stop):
            self.flying += stop - start
            self.most = max(self.most, self.flying)
            await asyncio.sleep(0.001)
            return bytes(stop - start)

    async def run(sizes, budget):
        source = Source()
        jobs = iter([Job(source, 0, size, number) for number, size in enumerate(sizes)])
        seen = []
        async for found in replies(jobs, 8, budget):
            for job, data in found:
                assert len(data) == job.stop
                seen.append(job.what)
                source.flying -= job.stop
        return sorted(seen), source.most

    seen, most = asyncio.run(run([10] * 50, 35))
    assert seen == list(range(50))
    assert most <= 35
    # A range larger than all room goes alone.
    seen, most = asyncio.run(run([100, 5, 100, 5], 20))
    assert seen == list(range(4))
    assert most <= 105


# --- Another object than the one that was meant (C27)


def swapped_frames():
    """A file, and the same one with two frames of equal size in each other's place."""
    values = oracle.random_samples((1, 16), (1, 16, 32))
    frames = [oracle.frame_of(values[0, :, :16].copy()), oracle.frame_of(values[0, :, 16:].copy())]
    assert len(frames[0]) == len(frames[1])
    fields = oracle.fields_of((1, 16, 32), (16, 16))
    blob = oracle.blob_with(fields, [len(frame) for frame in frames])
    return oracle.file_with(fields, frames), oracle.file_with(fields, frames[::-1]), blob


def test_a_replaced_object_is_never_read_as_the_old_one(server, url):
    other = oracle.random_samples((1, 16), (3, 70, 90), seed=1)
    smooth = np.zeros((3, 70, 90), np.uint16)
    for values, tile, unit in (
        (smooth, 16, 0),
        (other[:, :69], 16, 0),
        (other.astype(np.uint32), 16, 0),
        (other, 16, 1),
        (other, 32, 0),
    ):
        data, _ = oracle.write(values, (tile, tile), unit)
        server.put("/d/a.rumi", data)
        for call in (
            lambda: rumi.read(url, BLOB),
            lambda: rumi.read(url, BLOB, window=(60, 80, 10, 10)),
            lambda: rumi.open(url, BLOB).read(),
            lambda: rumi.open(url, BLOB).epsg,
            lambda: rumi.read_many([url], BLOB),
            lambda: asyncio.run(rumi.aio.read(url, BLOB)),
            lambda: asyncio.run(rumi.aio.read_many([url], BLOB)),
        ):
            with pytest.raises(rumi.StaleHeaderError, match=r"a\.rumi"):
                call()


def test_a_much_shorter_object_is_stale_though_no_range_of_it_can_be_had(server, url):
    data, _ = oracle.write(VALUES[:, :16, :16], (16, 16))
    server.put("/d/a.rumi", data)
    window = (60, 80, 10, 10)
    assert HEADER.ranges(None, window)[0][0] > len(data)
    for call in (
        lambda: rumi.read(url, BLOB, window=window),
        lambda: rumi.open(url, BLOB).read(window=window),
        lambda: rumi.read_many([url], BLOB, window),
        lambda: asyncio.run(rumi.aio.read(url, BLOB, window=window)),
        lambda: asyncio.run(rumi.aio.read_many([url], BLOB, window)),
    ):
        server.log.clear()
        with pytest.raises(rumi.StaleHeaderError, match=f"found {len(data)}"):
            call()
        # The range itself was not tried again.
        assert [request.status for request in server.log] == [416, 206]


def test_equal_sizes_are_told_apart_by_etag_and_sha256(server):
    old, new, blob = swapped_frames()
    server.put("/a.rumi", new, etag='"new"')
    store = ObjectStore(server.url)
    digest = hashlib.sha256(old).hexdigest()
    # Without a pin nothing can tell: as the documentation says.
    rumi.read(store.source("a.rumi"), blob)
    for pins in ({"etag": '"old"'}, {"etag": "old"}, {"etag": 'W/"old"'}, {"sha256": digest}):
        source = store.source("a.rumi", **pins)
        for call in (
            lambda source=source: rumi.read(source, blob),
            lambda source=source: rumi.read(source),
            lambda source=source: rumi.open(source, blob).read(),
            lambda source=source: rumi.read_many([source], blob),
            lambda source=source: asyncio.run(rumi.aio.read(source, blob)),
        ):
            with pytest.raises(rumi.StaleHeaderError, match=r"a\.rumi.*replaced"):
                call()
    digest = hashlib.sha256(new).digest()
    for pins in ({"etag": '"new"'}, {"etag": "new"}, {"sha256": digest}, {"size": len(new)}):
        rumi.read(store.source("a.rumi", **pins), blob)
    with pytest.raises(rumi.StaleHeaderError, match=f"expected {len(new) + 1} bytes"):
        rumi.read(store.source("a.rumi", size=len(new) + 1))
    with pytest.raises(rumi.StaleHeaderError):
        rumi.read(store.source("a.rumi", size=len(new) + 1), blob)


@pytest.mark.parametrize("etag", ['W/"old"', None])
def test_an_etag_is_compared_where_the_server_does_not(server, etag):
    server.put("/a.rumi", FILE, etag=etag)
    server.always["/a.rumi"] = servers.ignore_conditions
    with pytest.raises(rumi.StaleHeaderError, match="expected ETag new"):
        rumi.read(ObjectStore(server.url).source("a.rumi", etag="new"), BLOB)


def test_a_sha256_takes_one_request_of_a_small_object_and_holds(server):
    server.put("/a.rumi", FILE)
    source = ObjectStore(server.url).source("a.rumi", sha256=hashlib.sha256(FILE).hexdigest())
    image = rumi.open(source, BLOB)
    assert oracle.same_bits(image.read(window=WINDOW), EXPECTED)
    assert oracle.same_bits(image.read(), VALUES)
    assert image.epsg is None
    assert [request.sent for request in server.log] == [len(FILE)]


def test_a_sha256_of_a_large_object_is_compared_once(server):
    server.put("/a.rumi", FILE, etag='"one"')
    store = ObjectStore(server.url, largest=10_000)
    source = store.source("a.rumi", sha256=hashlib.sha256(FILE).hexdigest())
    image = rumi.open(source, BLOB)
    assert oracle.same_bits(image.read(), VALUES)
    asked = sum(request.sent for request in server.log)
    assert asked == len(FILE) + len(FILE) - HEADER.base_frame_offset
    server.log.clear()
    assert oracle.same_bits(image.read(window=WINDOW), EXPECTED)
    assert sum(request.sent for request in server.log) < len(FILE)
    # Later ranges would prove nothing where no answer says of what they are.
    server.put("/a.rumi", FILE, etag=None, modified=None)
    with pytest.raises(rumi.SourceError, match="no ETag or date"):
        rumi.read(source, BLOB)


@pytest.mark.parametrize("about", [{"etag": '"two"'}, {"etag": None, "modified": servers.LATER}])
def test_an_open_image_never_mixes_two_objects(server, about):
    old, new, _ = swapped_frames()
    url = server.put("/a.rumi", old, etag=None if about["etag"] is None else '"one"')
    image = rumi.open(url)
    before = image.read()
    server.put("/a.rumi", new, **about)
    for call in (image.read, lambda: image[0, :2, :2], lambda: rumi.Cube([image]).read()):
        with pytest.raises(rumi.StaleHeaderError, match="replaced"):
            call()
    assert not np.array_equal(rumi.open(url).read(), before)


def test_an_object_replaced_between_two_requests_of_one_read(server):
    """The index is of the old one, the frames are of the new one."""
    old, new, _ = swapped_frames()
    url = server.put("/a.rumi", old, etag='"one"')

    def replace(exchange):
        server.put("/a.rumi", new, etag='"two"')
        return servers.answer(exchange)

    for position in (1, 2):
        server.put("/a.rumi", old, etag='"one"')
        server.faults["/a.rumi"] = [servers.answer] * position + [replace]
        with pytest.raises(rumi.StaleHeaderError, match="replaced"):
            rumi.read(url)


# --- URLs, stores and sources


def test_what_is_a_url():
    for text in ("s3://b/k", "S3://b/k", "http://h/p", "memory://x", "ftp://h/p", "a+b.c-d://x"):
        assert is_url(text)
    for text in ("file:///x", "FILE:///x", "C:\\x", "C:/x", "c://x", "/a/b", "a:b", "", "://x"):
        assert not is_url(text)


@pytest.mark.parametrize(
    ("url", "root", "name"),
    [
        ("s3://bucket/a/b.rumi", "s3://bucket", "a/b.rumi"),
        ("s3://bucket/a b#c?d%20.rumi", "s3://bucket", "a b#c?d%20.rumi"),
        ("S3://bucket/x", "s3://bucket", "x"),
        ("gs://bucket/x", "gs://bucket", "x"),
        ("az://container/x", "az://container", "x"),
        ("abfss://c@account.dfs.core.windows.net/x", "abfss://c@account.dfs.core.windows.net", "x"),
        ("memory://a/b", "memory://", "a/b"),
        ("memory:///a/b", "memory://", "a/b"),
        ("http://host:80/a%20b/%C3%A9.rumi", "http://host:80", "a b/é.rumi"),
        ("https://h/a.rumi?X-Sig=a%2Fb&c", "https://h?X-Sig=a%2Fb&c", "a.rumi"),
        ("https://h/a.rumi#part", "https://h", "a.rumi"),
        # What a path of a store cannot hold goes into the URL of the store.
        ("https://h/a//b.rumi", "https://h/a//b.rumi", ""),
        ("https://h/a%2Fb.rumi?x", "https://h/a%2Fb.rumi?x", ""),
        ("https://h/%ff.rumi", "https://h/%ff.rumi", ""),
        ("https://h/a/../b", "https://h/a/../b", ""),
    ],
)
def test_urls_are_split(url, root, name):
    assert split_url(url) == (root, name)


def test_urls_that_lead_nowhere():
    for url in ("ftp://host/a.rumi", "hdfs://a/b", "zip://a::b"):
        for call in (rumi.read, rumi.index, rumi.open, lambda url: rumi.write(url, VALUES)):
            with pytest.raises(rumi.UnsupportedError, match="fsspec") as caught:
                call(url)
            assert url in str(caught.value)
    with pytest.raises(ValueError, match=r"http://\[::1/a: Invalid IPv6"):
        rumi.index("http://[::1/a")
    for url in ("s3:///key", "s3://", "http:///a"):
        with pytest.raises(ValueError, match="found no"):
            rumi.index(url)


def test_a_url_that_is_whole_keeps_its_last_slash(server):
    for path in ("/get/", "/a//b"):
        server.put(path, FILE)
        assert oracle.same_bits(rumi.read(f"{server.url}{path}?id=5", BLOB), VALUES)
        assert server.log[-1].path == f"{path}?id=5"


def test_secrets_are_not_shown(server):
    for text in (
        repr(ObjectStore("s3://bucket", secret_access_key="SECRET", access_key_id="x").settings),
        repr(ObjectStore("https://host?SECRET", headers={"Authorization": "SECRET"}).settings),
        shown("ftp://me:SECRET@host/a.rumi"),
    ):
        assert "SECRET" not in text
    with pytest.raises(rumi.UnsupportedError, match="ftp://me@host/a.rumi") as refused:
        rumi.read("ftp://me:SECRET@host/a.rumi")
    assert "SECRET" not in str(refused.value)
    url = f"{server.url}/d/a.rumi?X-Amz-Signature=SECRET"
    server.put("/d/a.rumi", FILE)
    assert oracle.same_bits(rumi.read(url, BLOB), VALUES)
    assert server.log[0].path == "/d/a.rumi?X-Amz-Signature=SECRET"
    image = rumi.open(url, BLOB)
    server.always["/d/a.rumi"] = servers.status(403)
    texts = [image.name, repr(image), from_url(url).name]
    for call in (
        lambda: rumi.read(url, BLOB),
        lambda: rumi.read_many([url], BLOB),
        lambda: rumi.index(url),
        lambda: image.read(),
    ):
        with pytest.raises(rumi.SourceError) as caught:
            call()
        texts.append(str(caught.value))
    for text in texts:
        assert "/d/a.rumi?..." in text
        assert "SECRET" not in text
    assert shown("https://user:SECRET@host/p?SECRET") == "https://user@host/p?..."
    assert shown("s3://bucket/a?b") == "s3://bucket/a?b"
    store = ObjectStore("s3://bucket/p", access_key_id="ID", secret_access_key="SECRET")
    assert repr(store) == "<rumi.remote.ObjectStore 's3://bucket/p'>"
    assert "SECRET" not in repr(store.source("a"))


@pytest.mark.parametrize(
    "name", ["a b#c?d%20.rumi", "é/出典.rumi", "a:b.rumi", "+&=.rumi", "%.rumi"]
)
def test_every_name(server, name):
    server.put(f"/d/{name}", FILE)
    source = ObjectStore(f"{server.url}/d/").source(name)
    assert oracle.same_bits(rumi.read(source, BLOB, window=WINDOW), EXPECTED)
    # Its name is a URL that leads there.
    assert oracle.same_bits(rumi.read(source.name, BLOB, window=WINDOW), EXPECTED)
    assert rumi.open(source).name == source.name


def test_a_path_that_a_store_cannot_hold(server):
    server.put("/a//b.rumi", FILE)
    assert oracle.same_bits(rumi.read(f"{server.url}/a//b.rumi", BLOB), VALUES)
    with pytest.raises(rumi.SourceError, match="path"):
        rumi.read(ObjectStore(server.url).source("a//b.rumi"), BLOB)


def test_names_of_objects():
    assert ObjectStore("s3://bucket/p/").source("a b").name == "s3://bucket/p/a b"
    assert ObjectStore("memory://p").source("a").name == "memory://p/a"
    assert ObjectStore("https://h/d?q").source("a b").name == "https://h/d/a%20b?..."
    assert object_url("https://h/a//b?q", "") == "https://h/a//b?..."
    assert ObjectStore("file:///d e").source("a").name == "file:///d e/a"


def test_settings_that_cannot_be():
    for settings in (
        {"retries": -1},
        {"gap": -1},
        {"largest": 0},
        {"timeout": 0},
        {"connect_timeout": -1.0},
        {"max_connections": 0},
        {"nonsense": 1},
        {"client_options": {}},
        {"retry_config": {}},
        {"anonymous": True, "access_key_id": "x", "secret_access_key": "y"},
    ):
        with pytest.raises(ValueError):
            ObjectStore("s3://bucket", **settings)
    for where in ("https://host", "HTTP://host/a", "memory://", "file:///data"):
        for settings in ({"endpoint": "http://other"}, {"region": "eu-central-1"}):
            with pytest.raises(ValueError, match="no store that has one"):
                ObjectStore(where, **settings)
    with pytest.raises(ValueError, match="URL"):
        ObjectStore("/data")
    for where in (5, None, b"s3://bucket", object()):
        with pytest.raises(TypeError, match="URL"):
            ObjectStore(where)
    store = ObjectStore("s3://bucket")
    for pins in ({"sha256": "12"}, {"sha256": "zz" * 32}, {"sha256": b"1"}):
        with pytest.raises(ValueError, match="sha256"):
            store.source("a", **pins)
    with pytest.raises(TypeError):
        store.source(5)
    with pytest.raises(TypeError):
        RemoteSource("s3://bucket", "a")


def test_sources_pickle_small_and_share_their_connections(server):
    server.put("/d/a.rumi", FILE)
    store = ObjectStore(f"{server.url}/d", timeout=7, headers={"X-A": "b"})
    source = store.source("a.rumi", etag='"x"', size=5)
    data = pickle.dumps(source)
    assert len(data) < 1000
    assert len(pickle.dumps(rumi.open(store.source("a.rumi"), BLOB))) < 1000 + len(BLOB)
    copy = pickle.loads(data)
    assert copy.store.settings == store.settings
    assert (copy.path, copy.etag, copy.size) == ("a.rumi", '"x"', 5)
    assert pickle.loads(data).store is copy.store
    # After use too: no connection is in it.
    plain = store.source("a.rumi")
    assert oracle.same_bits(rumi.read(plain, BLOB), VALUES)
    assert oracle.same_bits(rumi.read(pickle.loads(pickle.dumps(plain)), BLOB), VALUES)


def test_plain_urls_share_their_connections_and_the_environment_counts(server, monkeypatch):
    one, two = from_url("s3://bucket/a"), from_url("s3://bucket/b")
    assert one.store is two.store
    assert from_url("s3://other/b").store is not one.store
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    assert from_url("s3://bucket/a").store is not one.store
    for number in range(100):
        from_url(f"https://host{number}/a")
    assert len(current().shared) <= 32
    url = server.put("/a.rumi", FILE)
    for _ in range(20):
        rumi.read(url, BLOB, window=(0, 0, 1, 1))
    assert server.accepted == 1


def test_headers_are_sent(server):
    server.put("/a.rumi", FILE)
    seen = []

    def look(exchange):
        seen.append(exchange.headers)
        return servers.answer(exchange)

    server.always["/a.rumi"] = look
    rumi.read(ObjectStore(server.url, headers={"X-Token": "t"}).source("a.rumi"), BLOB)
    assert seen[0]["x-token"] == "t"


def test_sixteen_threads_on_one_image(server, url):
    """C28, over HTTP; one Image, one source and plain URLs from all threads."""
    image = rumi.open(url)
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for turn in range(60):
                row, col = int(rng.integers(0, 60)), int(rng.integers(0, 80))
                window = (row, col, 10, 10)
                if turn % 3:
                    found = image.read(window=window)
                else:
                    found = rumi.read(url, BLOB, window=window)
                assert np.array_equal(found, VALUES[:, row : row + 10, col : col + 10])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


# --- Imports


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_is_imported_and_no_thread_started_before_it_is_needed():
    code = (
        "import sys, threading, rumi, rumi.remote, rumi.aio\n"
        "store = rumi.remote.ObjectStore('s3://bucket'); store.source('a')\n"
        "rumi.open('s3://bucket/a.rumi', bytes.fromhex('%s'))\n"
        "names = ('obstore', 'fsspec', 'aiohttp')\n"
        "print([n for n in names if n in sys.modules], threading.active_count())"
    )
    assert run_python(code % BLOB.hex()) == "[] 1"
    assert run_python("import sys, rumi; print('asyncio' in sys.modules)") == "False"


@pytest.mark.parametrize("url", ["s3://bucket/a", "https://host/a", "memory://a"])
def test_a_missing_package_is_named(url):
    code = (
        "import sys; sys.modules['obstore'] = sys.modules['fsspec'] = None\n"
        f"import rumi\ntry: rumi.index('{url}')\nexcept rumi.UnsupportedError as e: print(e)"
    )
    assert "pip install 'rumi[remote]'" in run_python(code)
