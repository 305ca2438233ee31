"""rumi.read_many: many windows into one array."""

import io
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import rumi
from rumi import backends, batch

SHAPE = (3, 50, 70)


def ramp(seed: int, shape: tuple[int, int, int] = SHAPE) -> np.ndarray:
    bands, height, width = (np.arange(side) for side in shape)
    values = bands[:, None, None] * 10_000 + height[:, None] * 100 + width
    return (values + seed * 7).astype(np.uint16)


@pytest.fixture
def files(tmp_path):
    arrays, paths, headers = [], [], []
    for seed in range(6):
        array = ramp(seed)
        path = str(tmp_path / f"{seed}.rumi")
        headers.append(rumi.write(path, array, tile_size=16, frame_unit=("tile", "cell")[seed % 2]))
        arrays.append(array)
        paths.append(path)
    return np.stack(arrays), paths, headers


def test_whole_images(files):
    arrays, paths, headers = files
    chips = rumi.read_many(paths, headers)
    assert chips.dtype == np.uint16
    assert chips.flags.c_contiguous
    assert chips.flags.owndata
    assert chips.flags.writeable
    np.testing.assert_array_equal(chips, arrays)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_one_window_each_and_bands(files, threads):
    arrays, paths, headers = files
    windows = [(i, 2 * i, 20, 30) for i in range(6)]
    chips = rumi.read_many(
        paths, [bytes(h) for h in headers], windows, bands=[2, 0], threads=threads
    )
    for item, (row, col, height, width) in enumerate(windows):
        np.testing.assert_array_equal(
            chips[item], arrays[item][[2, 0], row : row + height, col : col + width]
        )


def test_one_file_many_windows_as_an_integer_array(files):
    arrays, paths, headers = files
    windows = np.array([(0, 0, 8, 9), (42, 61, 8, 9), (10, 20, 8, 9)], dtype=np.int16)
    chips = rumi.read_many(paths[1], headers[1], windows)
    for item, (row, col, height, width) in enumerate(windows):
        np.testing.assert_array_equal(
            chips[item], arrays[1][:, row : row + height, col : col + width]
        )


def test_one_window_for_all(files):
    arrays, paths, headers = files
    np.testing.assert_array_equal(
        rumi.read_many(paths, headers, (5, 6, 7, 8)), arrays[:, :, 5:12, 6:14]
    )


def test_four_windows_are_not_one(files):
    arrays, paths, headers = files
    windows = [(0, 0, 2, 2), (1, 1, 2, 2), (2, 2, 2, 2), (3, 3, 2, 2)]
    chips = rumi.read_many(paths[:4], headers[:4], windows)
    np.testing.assert_array_equal(chips[3], arrays[3][:, 3:5, 3:5])


def test_without_headers_each_index_is_read_once(files, monkeypatch):
    arrays, paths, _ = files
    original = batch.read_container
    calls = []

    def counting(store):
        calls.append(store.name)
        return original(store)

    monkeypatch.setattr(batch, "read_container", counting)
    chips = rumi.read_many([paths[0], paths[0], paths[1]], None, (0, 0, 4, 4))
    np.testing.assert_array_equal(chips[2], arrays[1][:, :4, :4])
    assert calls == [paths[0], paths[1]]


def test_bytes_sources(files):
    arrays, paths, headers = files
    contents = [Path(path).read_bytes() for path in paths]
    sources = [
        contents[0],
        bytearray(contents[1]),
        memoryview(contents[2]),
        io.BytesIO(contents[3]),
    ]
    np.testing.assert_array_equal(rumi.read_many(sources, headers[:4]), arrays[:4])


def test_out_is_filled_and_returned(files):
    arrays, paths, headers = files
    # Channels last, through a view.
    memory = np.zeros((6, 50, 70, 3), np.uint16)
    view = memory.transpose(0, 3, 1, 2)
    assert rumi.read_many(paths, headers, out=view) is view
    np.testing.assert_array_equal(memory.transpose(0, 3, 1, 2), arrays)


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.zeros((6, 3, 50, 71), np.uint16), ValueError),
        (np.zeros((5, *SHAPE), np.uint16), ValueError),
        (np.zeros((6, *SHAPE), np.int16), TypeError),
        ([0], TypeError),
    ],
)
def test_out_is_refused_before_a_byte_changes(files, out, error):
    _, paths, headers = files
    with pytest.raises(error, match="out"):
        rumi.read_many(paths, headers, out=out)
    assert not np.any(out)


def test_lengths_must_agree(files):
    _, paths, headers = files
    with pytest.raises(ValueError, match=r"one for all items or one for each.*\[2, 6\]"):
        rumi.read_many(paths, headers[:2])
    with pytest.raises(ValueError, match="at least one item"):
        rumi.read_many([], [])


def test_errors_name_the_item(files, tmp_path):
    _, paths, headers = files
    with pytest.raises(ValueError, match="item 2 .*outside the image of 50 x 70"):
        rumi.read_many(paths, headers, [(0, 0, 4, 4)] * 2 + [(48, 0, 4, 4)] + [(0, 0, 4, 4)] * 3)
    missing = str(tmp_path / "missing.rumi")
    with pytest.raises(FileNotFoundError, match="item 1"):
        rumi.read_many([paths[0], missing], headers[:2])
    with pytest.raises(rumi.HeaderError, match="item 3"):
        rumi.read_many(paths[:4], [*headers[:3], b"\0" * 28])
    with pytest.raises(IndexError, match="item 0 .*band 3"):
        rumi.read_many(paths, headers, bands=3)


def test_other_shapes_and_types_are_refused_by_item(files, tmp_path):
    _, paths, headers = files
    path = str(tmp_path / "other.rumi")
    header = rumi.write(path, ramp(0).astype(np.int16))
    with pytest.raises(ValueError, match=r"item 1 \(.*other.rumi\).*uint16.*found.*int16"):
        rumi.read_many([paths[0], path], [headers[0], header])
    with pytest.raises(ValueError, match="item 1.*expected .*4, 4.*found .*4, 5"):
        rumi.read_many(paths[:2], headers[:2], [(0, 0, 4, 4), (0, 0, 4, 5)])


def test_stale_header_names_item_and_file(files):
    _, paths, headers = files
    with pytest.raises(rumi.StaleHeaderError, match=r"item 1.*1\.rumi"):
        rumi.read_many([paths[0], paths[1]], [headers[0], headers[0]])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_damaged_frame_names_item_and_frame(files, threads):
    _, paths, headers = files
    with open(paths[4], "r+b") as file:
        file.seek(headers[4].offset(3) + 40)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x40]))
    with pytest.raises(
        rumi.CodecError, match=r"item 4.*frame 3 \(row 0, col 1, band 0\)|item 4.*frame 3"
    ):
        rumi.read_many(paths, headers, threads=threads)


def test_more_files_than_are_kept_open(tmp_path):
    array = ramp(1, (1, 8, 8))
    paths, headers = [], []
    for number in range(80):
        paths.append(str(tmp_path / f"{number}.rumi"))
        headers.append(rumi.write(paths[-1], array + number, tile_size=8))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    chips = rumi.read_many(paths, headers)
    np.testing.assert_array_equal(chips[:, 0, 0, 0], array[0, 0, 0] + np.arange(80))
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == before


def test_threads_share_the_work_where_geozl_is_there(tmp_path):
    if not backends.geozl_available():
        pytest.skip("geozl is not installed, and the binding decodes on one thread")
    rng = np.random.default_rng(3)
    arrays = rng.integers(0, 4000, (4, 1, 300, 300)).astype(np.uint16)
    paths, headers = [], []
    for number, array in enumerate(arrays):
        paths.append(str(tmp_path / f"{number}.rumi"))
        headers.append(rumi.write(paths[-1], array, tile_size=256))
    before = threading.active_count()
    np.testing.assert_array_equal(rumi.read_many(paths, headers, threads=2), arrays)
    assert threading.active_count() >= before


def test_three_dimensional_stack_of_one(files):
    arrays, paths, headers = files
    assert rumi.read_many(paths[0], headers[0]).shape == (1, *SHAPE)
    np.testing.assert_array_equal(rumi.read_many([paths[0]], headers[0])[0], arrays[0])
