"""Cases C23, C24, C27 and C29 on every route to pixels: the same answer, or the same error."""

import asyncio
import importlib.util
import time
import tracemalloc

import numpy as np
import oracle
import pytest
import xarray as xr
from obstore.store import MemoryStore

import rumi
import rumi.aio
from rumi.catalog import Catalog
from rumi.cube import Cube

VALUES = oracle.ramp(2, 24, 40, np.uint16)
TILE = (8, 16)
DATA, BLOB = oracle.write(VALUES, TILE)
WHOLE = (0, 0, 24, 40)


def slices(window):
    row, col, height, width = window
    return slice(row, row + height), slice(col, col + width)


def by_store(path, blob, window):
    memory = MemoryStore()
    memory.put("a.rumi", path.read_bytes())
    source = rumi.remote.ObjectStore(memory).source("a.rumi")
    return rumi.read(source, blob, window=window)


def by_xarray(path, blob, window, **options):
    rows, cols = slices(window)
    # Where it lies is read from the file, and with it that the header belongs to the file,
    # before Dask is asked for a task a frame.
    options = {"header": blob, **options}
    with xr.open_dataset(path, engine="rumi", **options) as dataset:
        return dataset.band_data[:, rows, cols].to_numpy()


def by_catalog(path, blob, window):
    return catalog_of(path, blob).image(0).read(window=window)


def catalog_of(path, blob):
    """A catalog of a file that was good when it was built."""
    now = path.read_bytes() if path.is_file() else None
    good = path.with_name("good.rumi")
    good.write_bytes(GOOD[blob])
    table = path.with_name("catalog.parquet")
    Catalog.build([good], table)
    good.unlink()
    if now is None:
        good.mkdir()
    else:
        good.write_bytes(now)
    return Catalog.open(table)


ROUTES = {
    "read": lambda path, blob, window: rumi.read(path, blob, window=window),
    "open": lambda path, blob, window: rumi.open(path, blob).read(window=window),
    "indexing": lambda path, blob, window: rumi.open(path, blob)[(slice(None), *slices(window))],
    "bytes": lambda path, blob, window: rumi.read(
        memoryview(path.read_bytes()), blob, window=window
    ),
    "read_many": lambda path, blob, window: rumi.read_many(
        [path], None if blob is None else [blob], [window]
    )[0],
    "aio": lambda path, blob, window: asyncio.run(rumi.aio.read(path, blob, window=window)),
    "store": by_store,
    "cube": lambda path, blob, window: Cube([rumi.open(path, blob)])[
        (0, slice(None), *slices(window))
    ],
    "xarray": by_xarray,
    "dask": lambda path, blob, window: by_xarray(path, blob, window, chunks={}),
    "catalog": by_catalog,
}
# The catalog knows the blob, whether or not it is given again.
GOOD = {BLOB: DATA, None: DATA}


@pytest.fixture(params=ROUTES)
def route(request):
    call = ROUTES[request.param]
    call.__name__ = request.param
    return call


@pytest.fixture(params=[None, BLOB], ids=["index", "blob"])
def blob(request):
    return request.param


def test_good_files(route, blob, tmp_path):
    path = tmp_path / "a.rumi"
    path.write_bytes(DATA)
    for window in (WHOLE, (5, 10, 13, 20), (23, 39, 1, 1)):
        found = np.asarray(route(path, blob, window))
        assert oracle.same_bits(found, oracle.numpy_window(VALUES, None, window))


# --- C23


def flipped(number):
    header = rumi.Header(BLOB)
    at = header.offset(number) + header.byte_count(number) // 2
    return oracle.replaced(DATA, at, bytes([DATA[at] ^ 4]))


BASE = rumi.Header(BLOB).base_frame_offset
BROKEN = {
    "empty": b"",
    "one byte": b"I",
    "cut in the IFD": DATA[:100],
    "cut in the outside values": DATA[: BASE - 40],
    "cut before the frames": DATA[:BASE],
    "cut in the last frame": DATA[:-1],
    "cut at a frame": DATA[: rumi.Header(BLOB).offset(7)],
    "one byte more": DATA + b"\0",
    "an error page": b"<html><body>404 Not Found</body></html>",
    "a classic TIFF": b"II*\0\x08\0\0\0" + bytes(200),
    "a big-endian BigTIFF": b"MM\0+\0\x08\0\0" + bytes(200),
    "a blob": BLOB,
    "a flipped bit in the first frame": flipped(0),
    "a flipped bit in the last frame": flipped(17),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_c23_broken_files(route, blob, kind, tmp_path):
    """One typed error of one line, which names the file, and the frame where it is one."""
    path = tmp_path / "a.rumi"
    path.write_bytes(BROKEN[kind])
    with pytest.raises(rumi.RumiError) as caught:
        np.asarray(route(path, blob, WHOLE))
    text = str(caught.value)
    assert "\n" not in text
    name = {"bytes": "<memoryview>", "catalog": "good.rumi"}.get(route.__name__, "a.rumi")
    assert name in text
    if "flipped" in kind:
        place = (2, 2, 1) if "last" in kind else (0, 0, 0)
        assert "(row {}, col {}, band {})".format(*place) in text
        assert isinstance(caught.value, rumi.CodecError)
    else:
        # obstore's memory answers a range beyond the end without a status that says so.
        known = (rumi.FormatError, rumi.StaleHeaderError)
        known += (rumi.SourceError,) if route.__name__ == "store" else ()
        assert isinstance(caught.value, known)


def test_c23_a_flipped_bit_elsewhere_does_not_matter(route, blob, tmp_path):
    path = tmp_path / "a.rumi"
    path.write_bytes(flipped(17))
    found = np.asarray(route(path, blob, (0, 0, 8, 16)))
    assert oracle.same_bits(found, VALUES[:, :8, :16])


def test_c23_a_folder(route, blob, tmp_path):
    if route.__name__ in ("bytes", "store"):
        pytest.skip("a folder has no bytes")
    (tmp_path / "a.rumi").mkdir()
    with pytest.raises(IsADirectoryError):
        np.asarray(route(tmp_path / "a.rumi", blob, WHOLE))


# --- C24


HOSTILE = {
    "all there is": oracle.blob_of(
        oracle.fields_of((65535, 2**32 - 1, 2**32 - 1), (1, 1), count_min=1)
    ),
    "billions of equal frames": oracle.blob_of(oracle.fields_of((1, 2**16, 2**16), (1, 1))),
    "32 bits and no body": oracle.blob_of(
        oracle.fields_of((1, 2**16, 2**16), (1, 1), count_bits=32)
    ),
    "a tile of 65,535 x 65,535": oracle.blob_of(oracle.fields_of((1, 1, 1), (65535, 65535))),
    "count_min one too small": BLOB[:23] + bytes([BLOB[23] - 1]) + BLOB[24:],
    "count_bits 33": BLOB[:27] + b"\x21" + BLOB[28:],
    "a byte more": BLOB + b"\0",
    "a byte less": BLOB[:-1],
    "nothing": b"",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_c24_blobs_that_ask_for_too_much(route, kind, tmp_path):
    if route.__name__ == "catalog":
        pytest.skip("a catalog refuses such a blob by its row: test_catalog.py")
    path = tmp_path / "a.rumi"
    path.write_bytes(DATA)
    oracle.attempt(rumi.RumiError, route, path, BLOB, (0, 0, 1, 1))
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(rumi.RumiError) as caught:
            np.asarray(route(path, HOSTILE[kind], (0, 0, 1, 1)))
        assert "\n" not in str(caught.value)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 << 20
    assert time.process_time() - start < 1


@pytest.mark.parametrize("samples", [64 * 64, 1, 127, 129])
def test_c24_a_frame_of_another_size(route, blob, samples, tmp_path):
    """At a place of 8 x 16 samples; the frame itself is good."""
    if route.__name__ == "catalog":
        pytest.skip("the catalog's blob is of another file: C27")
    fields, _ = oracle.parse(BLOB)
    frames = [oracle.frame_of(part) for part in oracle.cut(VALUES, TILE, 0)]
    frames[4] = oracle.frame_of(np.zeros(samples, np.uint16))
    path = tmp_path / "a.rumi"
    path.write_bytes(oracle.file_with(fields, frames))
    given = blob and oracle.blob_with(fields, [len(frame) for frame in frames])
    with pytest.raises(rumi.CodecError, match=rf"frame 4 \(row 0, col 2, band 0\).*{2 * samples}"):
        np.asarray(route(path, given, WHOLE))


# --- C27


OTHERS = {
    "shorter": VALUES[:, :9],
    "longer": np.tile(VALUES, (1, 2, 2)),
    "another type": VALUES.astype(np.float32),
    "one band": VALUES[:1],
    "other pixels": np.zeros_like(VALUES),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_c27_a_blob_of_the_file_before(route, kind, tmp_path):
    path = tmp_path / "a.rumi"
    path.write_bytes(oracle.write(OTHERS[kind], TILE)[0])
    for window in (WHOLE, (0, 0, 1, 1)):
        with pytest.raises(rumi.StaleHeaderError) as caught:
            np.asarray(route(path, BLOB, window))
        assert "\n" not in str(caught.value)


def test_c27_the_other_frame_unit(route, tmp_path):
    path = tmp_path / "a.rumi"
    path.write_bytes(oracle.write(VALUES, TILE, 1)[0])
    with pytest.raises(rumi.StaleHeaderError):
        np.asarray(route(path, BLOB, WHOLE))


# --- C29


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((1, 1, 1), (1, 1)),
        ((1, 1, 2), (1, 1)),
        ((1, 1, 3), (1, 1)),
        ((2, 1, 1), (1, 1)),
        ((4, 2, 2), (2, 2)),
        ((5, 2, 2), (2, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("unit", [0, 1], ids=["tile", "cell"])
def test_c29_borders_between_inline_and_outside(route, shape, tile, unit, tmp_path):
    values = oracle.ramp(*shape, dtype=np.uint16)
    data, header = oracle.write(values, tile, unit)
    path = tmp_path / "a.rumi"
    path.write_bytes(data)
    GOOD[header] = data
    for given in (None, header) if route.__name__ != "catalog" else (header,):
        found = np.asarray(route(path, given, (0, 0, *shape[1:])))
        assert oracle.same_bits(found, values)


@pytest.fixture(scope="module")
def tiny_tiles():
    """90,000 frames of one pixel: all are one of four."""
    frames = [oracle.frame_of(np.full((1, 1), value, np.uint8)) for value in range(4)]
    values = (np.arange(90_000) % 4).astype(np.uint8).reshape(1, 300, 300)
    fields = oracle.fields_of((1, 300, 300), (1, 1), (1, 8))
    order = [frames[value] for value in values.ravel()]
    blob = oracle.blob_with(fields, [len(frame) for frame in order])
    GOOD[blob] = oracle.file_with(fields, order)
    return values, blob


def test_c29_a_chip_of_90_000_frames(route, tiny_tiles, tmp_path):
    values, given = tiny_tiles
    if route.__name__ == "dask":
        pytest.skip("a chunk is a frame, and a graph of 90,000 is nobody's wish")
    path = tmp_path / "a.rumi"
    path.write_bytes(GOOD[given])
    found = np.asarray(route(path, given, (290, 291, 7, 5)))
    assert oracle.same_bits(found, values[:, 290:297, 291:296])


@pytest.fixture(scope="module")
def beyond_32_bits(tmp_path_factory):
    """Five frames of 2**32 - 1 bytes each, which are holes, and a real one after 20 GiB."""
    path = tmp_path_factory.mktemp("routes") / "a.rumi"
    fields = oracle.fields_of((1, 16, 96), (16, 16), (1, 8))
    values = oracle.random_samples((1, 8), (1, 16, 16))
    frame = oracle.frame_of(values[0])
    counts = [2**32 - 1] * 5 + [len(frame)]
    with path.open("wb") as file:
        file.write(oracle.lay_out(oracle.tags_of(fields, counts)))
        try:
            file.seek(oracle.offsets_of(1, counts)[5])
            file.write(frame)
        except OSError as error:
            pytest.skip(f"no sparse file of 20 GiB here: {error}")
    yield path, oracle.blob_with(fields, counts), values
    path.unlink()


def test_c29_a_frame_beyond_32_bits(route, blob, beyond_32_bits):
    if route.__name__ in ("bytes", "store", "catalog"):
        pytest.skip("20 GiB of memory")
    path, given, values = beyond_32_bits
    found = np.asarray(route(path, blob and given, (0, 80, 16, 16)))
    assert oracle.same_bits(found, values)


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed, nor in the extra"
)
@pytest.mark.parametrize("kind", ["cut in the last frame", "a flipped bit in the last frame"])
def test_chips_for_torch(kind, tmp_path):
    """A dataset raises what the catalog's image raises, with the same words."""
    from rumi.torch import ChipDataset

    path = tmp_path / "a.rumi"
    path.write_bytes(BROKEN[kind])
    catalog = catalog_of(path, BLOB)
    dataset = ChipDataset(catalog, (8, 16))
    with pytest.raises(rumi.RumiError, match=r"good\.rumi"):
        dataset[len(dataset) - 1]
