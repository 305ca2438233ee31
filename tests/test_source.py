"""Sources: every kind of bytes and path, and what is neither (C06)."""

import gc
import io
import mmap
import os
import pathlib
import sys
import tracemalloc
import weakref

import numpy as np
import oracle
import pytest

import rumi
from rumi import UnsupportedError
from rumi._core import Store
from rumi.source import HandleCache, is_path, local_path, open_source, source_name

VALUES = oracle.ramp(2, 20, 30, np.uint16)
FILE, BLOB = oracle.write(VALUES, (16, 16))
WINDOW = (3, 5, 14, 20)
EXPECTED = oracle.numpy_window(VALUES, None, WINDOW)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.rumi"
    path.write_bytes(FILE)
    return path


def assert_reads(source):
    """All routes give the same bits, with the blob and without."""
    assert bytes(rumi.index(source)) == BLOB
    for header in (None, BLOB, rumi.Header(BLOB)):
        assert oracle.same_bits(rumi.read(source, header, window=WINDOW), EXPECTED)
    assert oracle.same_bits(rumi.open(source).read(window=WINDOW), EXPECTED)
    assert oracle.same_bits(rumi.open(source, BLOB).read(window=WINDOW), EXPECTED)


# --- Bytes


class Bytes(bytes):
    """A subclass."""


def buffers():
    writable = bytearray(FILE)
    return {
        "bytes": FILE,
        "subclass of bytes": Bytes(FILE),
        "bytearray": writable,
        "memoryview": memoryview(writable),
        "read-only memoryview": memoryview(FILE),
        "odd offset": memoryview(b"xyz" + FILE + b"xyz")[3:-3],
        "array": np.frombuffer(FILE, np.uint8),
        "odd array": np.frombuffer(b"x" + FILE, np.uint8)[1:],
        "two-dimensional array": np.frombuffer(FILE, np.uint8).reshape(1, -1),
        "signed array": np.frombuffer(FILE, np.int8),
        "cast memoryview": memoryview(FILE).cast("b"),
        "BytesIO": io.BytesIO(FILE),
    }


@pytest.mark.parametrize("name", buffers())
def test_every_kind_of_bytes(name, backend):
    assert_reads(buffers()[name])


def test_a_mapped_file(path, backend):
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert_reads(mapped)
        with memoryview(mapped) as view:
            assert_reads(view)
    array = np.memmap(path, np.uint8, "r")
    assert_reads(array)


def test_the_position_of_a_bytesio_does_not_matter_and_stays():
    source = io.BytesIO(FILE)
    source.seek(100)
    assert oracle.same_bits(rumi.read(source, window=WINDOW), EXPECTED)
    assert source.tell() == 100


def test_a_source_is_released_after_a_read(path):
    """A buffer that is still exported could not be resized or closed."""
    growing = bytearray(FILE)
    rumi.read(growing, BLOB)
    rumi.index(growing)
    rumi.open(growing).read()
    gc.collect()
    growing.clear()
    stream = io.BytesIO(FILE)
    rumi.read(stream)
    stream.truncate(0)
    stream.close()
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    rumi.read(mapped)
    mapped.close()
    with pytest.raises(ValueError):
        rumi.read(mapped)


def test_a_source_is_released_after_an_error():
    growing = bytearray(FILE[:-1])
    for call in (rumi.index, rumi.read, rumi.open):
        with pytest.raises(rumi.RumiError):
            call(growing)
    gc.collect()
    growing.clear()


@pytest.mark.parametrize(
    "kind", ["bytes", "bytearray", "memoryview", "lambda data: numpy.frombuffer(data, numpy.uint8)"]
)
def test_an_error_in_a_cycle_is_collected_quietly(kind):
    """Who keeps an error in a variable keeps its traceback, and so its own frame, and so the
    source: garbage that is collected in one piece, buffers included, without a word.
    """
    result = oracle.run_python(
        """
import gc, sys
import numpy
import rumi
kind = eval(sys.argv[1])
data = bytearray.fromhex(sys.argv[2])
broken = bytearray(data)
broken[-40] ^= 0xFF
released = []

def keep(call, source):
    try:
        call(source)
    except rumi.RumiError as error:
        kept = error
    else:
        raise SystemExit("accepted")

def use(call, data):
    memory = bytearray(data)
    keep(call, memory if kind is bytearray else kind(memory))
    return memory

for _ in range(20):
    for call, contents in ((rumi.index, data[:-1]), (rumi.read, data[:-1]), (rumi.open, data[:200]),
                           (rumi.read, broken), (lambda s: rumi.open(s).read(), broken)):
        memory = use(call, contents)
        gc.collect()
        memory.clear()
""",
        kind,
        FILE.hex(),
    )
    assert "Exception ignored" not in result.stderr


def test_the_result_does_not_depend_on_the_source():
    growing = bytearray(FILE)
    result = rumi.read(growing, window=WINDOW)
    growing[:] = bytes(len(growing))
    assert oracle.same_bits(result, EXPECTED)

    class Buffer(bytearray):
        """One that can be watched."""

    buffer = Buffer(FILE)
    alive = weakref.ref(buffer)
    result = rumi.read(buffer, window=WINDOW)
    del buffer
    gc.collect()
    assert alive() is None
    assert oracle.same_bits(result, EXPECTED)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, io.BytesIO])
def test_a_large_buffer_is_not_copied(kind, backend):
    """C06: the peak of a chip read from 64 MiB is far below them."""
    values = oracle.ramp(1, 16, 16, np.uint16)
    frame = oracle.frame_of(values[0])
    fields = oracle.fields_of((1, 16, 32), (16, 16))
    data = oracle.file_with(fields, [frame, bytes(64 << 20)])
    blob = oracle.blob_with(fields, [len(frame), 64 << 20])
    source = kind(data)
    rumi.read(source, blob, window=(0, 0, 16, 16))
    tracemalloc.start()
    try:
        result = rumi.read(source, blob, window=(0, 0, 16, 16))
        rumi.index(source)
        rumi.open(source)[:, :16, :16]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.array_equal(result, values)
    assert peak < 1 << 20


@pytest.mark.parametrize(
    "source",
    [None, 5, 2.5, [FILE], (FILE,), object(), {"path": "a"}, io.StringIO("x"), True, {1, 2}],
    ids=repr,
)
def test_what_is_no_source(source):
    for call in (rumi.index, rumi.read, rumi.open):
        with pytest.raises(TypeError) as caught:
            call(source)
        assert type(source).__name__ in str(caught.value)


def test_an_open_file_is_no_source(path):
    """It has a cursor that others move; its path or its bytes are asked for."""
    with path.open("rb") as file, pytest.raises(TypeError, match="BufferedReader"):
        rumi.read(file)


def test_bytes_in_pieces_are_refused():
    spread = bytearray(2 * len(FILE))
    spread[::2] = FILE
    with pytest.raises(ValueError, match="contiguous"):
        rumi.read(memoryview(spread)[::2])


def test_no_bytes():
    for empty in (b"", bytearray(), memoryview(b""), io.BytesIO()):
        with pytest.raises(rumi.TruncatedError, match="0 bytes"):
            rumi.index(empty)
        with pytest.raises(rumi.StaleHeaderError):
            rumi.read(empty, BLOB)


# --- Paths


class Fspath:
    """Anything with a path."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


@pytest.mark.parametrize(
    "form",
    [
        str,
        pathlib.Path,
        pathlib.PurePath,
        os.fsencode,
        lambda path: Fspath(str(path)),
        lambda path: Fspath(os.fsencode(path)),
        lambda path: f"file://{path}",
        lambda path: f"FILE://{path}",
        lambda path: f"file://localhost{path}",
        os.path.relpath,
    ],
    ids=[
        *("str", "Path", "PurePath", "bytes", "fspath", "fspath of bytes"),
        *("URL", "URL in capitals", "URL of this host", "relative"),
    ],
)
def test_every_kind_of_path(path, form):
    assert_reads(form(path))


def test_a_subclass_of_str(path):
    class Name(str):
        __slots__ = ()

    assert_reads(Name(path))


NAMES = [
    "a b#c?d%20.rumi",
    "é.rumi",
    "出典.rumi",
    " .rumi",
    "-.rumi",
    "a:b.rumi",
    "C:\\x.rumi",
    "%",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name(tmp_path, name):
    """C06: folders and files whose names a URL or another alphabet would change."""
    folder = tmp_path / "ñandú 出典 data"
    folder.mkdir()
    path = folder / name
    path.write_bytes(FILE)
    for form in (str(path), path, os.fsencode(path), path.as_uri()):
        assert_reads(form)
    header = rumi.write(str(path), VALUES, tile_size=16)
    assert oracle.same_bits(rumi.read(path, header), VALUES)
    assert [entry.name for entry in folder.iterdir()] == [name]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse names that are no text")
def test_a_name_that_is_no_text(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xfe.rumi"
    with open(path, "wb") as file:
        file.write(FILE)
    assert_reads(path)
    assert_reads(os.fsdecode(path))


def test_a_windows_path_is_a_local_path():
    for path in ("C:\\x\\a.rumi", "C:/x/a.rumi", "c:a.rumi"):
        for call in (rumi.index, rumi.read, rumi.open):
            with pytest.raises(FileNotFoundError) as caught:
                call(path)
            assert path in str(caught.value) or repr(path) in str(caught.value)


@pytest.mark.parametrize("scheme", ["ftp", "hdfs", "FTP", "a+b", "x.y"])
def test_a_url_is_not_a_path(scheme):
    url = f"{scheme}://bucket/a.rumi"
    for call in (rumi.index, rumi.read, rumi.open):
        with pytest.raises(UnsupportedError) as caught:
            call(url)
        assert url in str(caught.value)
    with pytest.raises(UnsupportedError):
        rumi.write(url, VALUES)


def test_a_file_url_of_another_host():
    with pytest.raises(UnsupportedError, match="another host"):
        rumi.read("file://elsewhere/a.rumi")


def test_a_path_with_a_nul():
    for path in ("a\0b", pathlib.Path("a\0b")):
        with pytest.raises(ValueError, match="null"):
            rumi.read(path)


@pytest.mark.parametrize("path", ["", "none.rumi", "no/folder/none.rumi"])
def test_no_file(path):
    for call in (rumi.index, rumi.read, rumi.open):
        with pytest.raises(FileNotFoundError) as caught:
            call(path)
        assert caught.value.filename == path


def test_an_empty_bytes_is_contents_and_no_path():
    assert not is_path(b"")
    assert is_path(b"a.rumi")
    assert not is_path(FILE)
    assert not is_path(b"<html>\n")
    assert is_path("")
    assert not is_path(bytearray(b"a.rumi"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission(path):
    path.chmod(0)
    with pytest.raises(PermissionError) as caught:
        rumi.read(path)
    assert str(path) in str(caught.value)


def test_names_of_sources(path):
    assert source_name(path) == str(path)
    assert source_name(os.fsencode(path)) == str(path)
    assert source_name(FILE) == "<bytes>"
    assert source_name(io.BytesIO()) == "<BytesIO>"
    assert local_path(f"file://{path}") == os.fsencode(path)
    assert open_source(path).name == str(path)
    assert open_source(str(path)).name == str(path)


def test_a_store_reads_ranges(path):
    for source in (path, FILE, np.frombuffer(FILE, np.uint8)):
        store = open_source(source)
        assert store.size == len(FILE)
        for start, size in ((0, 0), (0, 16), (100, 7), (len(FILE) - 1, 1)):
            assert store.read(start, size) == FILE[start : start + size]
        # Less comes back only where the file ends.
        assert store.read(len(FILE) - 3, 100) == FILE[-3:]
        assert store.read(len(FILE), 5) == b""
        assert store.read(2**62, 5) == b""
        for start, size in ((-1, 5), (0, -1)):
            with pytest.raises(ValueError):
                store.read(start, size)
        assert open_source(store) is store


def test_a_store_of_part_of_a_file():
    """Its first byte is some other byte of the file; what lies before it is not there."""
    store = Store.memory(b"0123456789", 100)
    assert store.size == 110
    assert store.read(100, 3) == b"012"
    assert store.read(105, 100) == b"56789"
    assert store.read(110, 1) == b""
    for start, size in ((0, 5), (99, 1), (95, 10), (99, 100), (0, 200)):
        with pytest.raises((ValueError, rumi.TruncatedError)):
            store.read(start, size)


def open_descriptors():
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not pathlib.Path("/proc/self/fd").is_dir(), reason="descriptors are not listed")
def test_no_descriptor_stays_open(path):
    rumi.read(path)
    before = open_descriptors()
    for _ in range(20):
        rumi.read(path, window=WINDOW)
        rumi.index(path)
    assert open_descriptors() == before


@pytest.mark.skipif(not pathlib.Path("/proc/self/fd").is_dir(), reason="descriptors are not listed")
@pytest.mark.parametrize("call", [rumi.read, rumi.index, rumi.open])
def test_no_descriptor_stays_open_after_an_error(path, call):
    path.write_bytes(FILE[:-1])
    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(rumi.RumiError):
            call(path)
    gc.collect()
    assert open_descriptors() == before


@pytest.mark.skipif(not pathlib.Path("/proc/self/fd").is_dir(), reason="descriptors are not listed")
def test_a_descriptor_does_not_pass_to_other_programs(path):
    store = open_source(path)
    opened = [
        name
        for name in open_descriptors()
        if os.path.realpath(f"/proc/self/fd/{name}") == str(path)
    ]
    assert opened
    for name in opened:
        assert not os.get_inheritable(int(name))
    assert store.size == len(FILE)


# --- Handles that stay open


def test_the_handle_cache_is_bounded_and_forgets_the_oldest(tmp_path):
    paths = []
    for number in range(5):
        paths.append(str(tmp_path / f"{number}.rumi"))
        pathlib.Path(paths[-1]).write_bytes(FILE[: 100 + number])
    cache = HandleCache(3)
    stores = [open_source(path) for path in paths]
    for path, store in zip(paths, stores, strict=True):
        cache.keep(path, store)
    for number in (4, 3, 2):
        assert cache.find(paths[number], stores[number].identity) is stores[number]
    for number in (0, 1):
        assert cache.find(paths[number], stores[number].identity) is None
    # A store that was dropped goes on working for whoever holds it.
    assert stores[0].read(0, 50) == FILE[:50]
    # What was asked for last is kept longest.
    cache.keep(paths[0], stores[0])
    assert cache.find(paths[4], stores[4].identity) is None
    cache.clear()
    assert cache.find(paths[2], stores[2].identity) is None


def test_the_handle_cache_tells_files_apart(tmp_path):
    path = tmp_path / "a.rumi"
    path.write_bytes(b"one")
    cache = HandleCache(3)
    first = open_source(str(path))
    cache.keep(str(path), first)
    other = tmp_path / "b.rumi"
    other.write_bytes(b"two")
    other.replace(path)
    second = open_source(str(path))
    assert first.identity != second.identity
    assert cache.find(str(path), second.identity) is None
    cache.keep(str(path), second)
    assert cache.find(str(path), first.identity) is first
    assert cache.find(str(path), second.identity) is second
    assert first.read(0, 3) == b"one"
    assert second.read(0, 3) == b"two"
