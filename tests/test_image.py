"""Image: NumPy's indexing where it is safe, and what it says about the file."""

import contextlib
import gc
import importlib.util
import os
import pickle
import subprocess
import sys
import weakref

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rumi
from rumi import CodecError, Image, StaleHeaderError, TruncatedError

SHAPE, TILE = (3, 25, 40), (16, 16)
VALUES = oracle.ramp(*SHAPE, dtype=np.uint16)
UTM = (10.0, 0.0, 300000.0, 0.0, -10.0, 8500000.0)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("image") / "a.rumi"
    rumi.write(path, VALUES, tile_size=16, crs=32718, transform=UTM)
    return path


@pytest.fixture
def image(path):
    return rumi.open(path)


# --- What it says


def test_open_is_image(path):
    header = rumi.index(path)
    for image in (
        rumi.open(path),
        Image(path),
        rumi.open(path, header),
        Image(path, bytes(header)),
    ):
        assert type(image) is Image
        assert image.header == header
        assert image.shape == SHAPE
        assert image.ndim == 3
        assert image.dtype == np.uint16
        assert image.name == str(path)
        assert image.epsg == 32718
        assert image.transform == UTM
        assert image.raster_type == "area"
        assert image.bounds == (300000.0, 8499750.0, 300400.0, 8500000.0)
        assert image.crs.to_epsg() == 32718


def test_georeferencing_of_points(tmp_path):
    """C16: the transform is that of the corner, and the flag survives."""
    path = tmp_path / "a.rumi"
    rumi.write(path, VALUES, crs=32718, transform=UTM, raster_type="point", tile_size=16)
    image = rumi.open(path, rumi.index(path))
    assert image.raster_type == "point"
    assert image.transform == UTM
    assert image.bounds == (300000.0, 8499750.0, 300400.0, 8500000.0)


def test_an_image_without_georeferencing(tmp_path):
    path = tmp_path / "a.rumi"
    header = rumi.write(path, VALUES)
    for image in (rumi.open(path), rumi.open(path, header), rumi.open(path.read_bytes())):
        assert (image.epsg, image.crs, image.transform, image.bounds) == (None,) * 4
        assert image.raster_type == "area"


def test_a_rotated_image(tmp_path):
    path = tmp_path / "a.rumi"
    transform = (1.0, 0.5, 100.0, 0.25, -1.0, 200.0)
    rumi.write(path, VALUES, crs=3857, transform=transform)
    image = rumi.open(path)
    assert image.transform == transform
    xs = [100.0 + 1.0 * col + 0.5 * row for col in (0, 40) for row in (0, 25)]
    ys = [200.0 + 0.25 * col - 1.0 * row for col in (0, 40) for row in (0, 25)]
    assert image.bounds == (min(xs), min(ys), max(xs), max(ys))


def test_repr_reads_nothing(path):
    text = repr(rumi.open(path))
    for part in (str(path), "3 x 25 x 40", "uint16", "tile"):
        assert part in text
    header = rumi.index(path)
    text = repr(rumi.open("none.rumi", header))
    assert "none.rumi" in text


def test_with_a_header_nothing_is_read_until_it_is_needed(path):
    header = rumi.index(path)
    image = rumi.open("none.rumi", header)
    assert (image.shape, image.dtype, image.ndim) == (SHAPE, np.uint16, 3)
    for call in (image.read, lambda: image.epsg, lambda: image[0]):
        with pytest.raises(FileNotFoundError):
            call()
    with pytest.raises(FileNotFoundError):
        rumi.open("none.rumi")


def test_georeferencing_of_a_damaged_file(tmp_path, path):
    """The two tags are read through the header: what they hold is checked."""
    data, header = path.read_bytes(), rumi.index(path)
    start = header.base_frame_offset - 160
    for shift in (8 * 8, 128, 128 + 14):
        broken = oracle.replaced(data, start + shift, b"\x07\x07")
        image = rumi.open(broken, header)
        with pytest.raises(rumi.FormatError, match="<bytes>: .*expected .* found"):
            _ = image.epsg
        # Pixels are another matter.
        assert np.array_equal(image.read(), VALUES)


def test_georeferencing_through_a_stale_header(path):
    header = rumi.index(path)
    other = oracle.write(oracle.ramp(5, 3, 4), (2, 2))[0]
    other += bytes(header.file_size - len(other))
    with pytest.raises((StaleHeaderError, rumi.FormatError)):
        _ = rumi.open(other, header).epsg


# --- Indexing


@st.composite
def keys(draw):
    """A key, and its equal for NumPy."""

    def axis(size):
        if draw(st.booleans()):
            return draw(st.integers(0, size - 1))
        start = draw(st.integers(0, size - 1))
        stop = draw(st.integers(start + 1, size))
        step = draw(st.integers(1, size))
        return draw(
            st.sampled_from(
                [slice(start, stop, step), slice(start, None), slice(None, stop), slice(None)]
            )
        )

    parts = [axis(size) for size in SHAPE]
    kept = draw(st.integers(0, 3))
    if draw(st.booleans()):
        where = draw(st.integers(0, kept))
        return (*parts[:where], Ellipsis, *parts[3 - (kept - where) :][: kept - where])
    return tuple(parts[:kept])


@given(keys())
def test_indexing_agrees_with_numpy(path, key):
    image = rumi.open(path)
    found, expected = image[key], VALUES[key]
    assert found.shape == np.shape(expected)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    assert found.flags.writeable
    assert found.flags.c_contiguous


@pytest.mark.parametrize(
    "key",
    [
        0,
        np.uint8(2),
        slice(None),
        slice(1, 3),
        Ellipsis,
        (),
        (0, 1, 2),
        (slice(None), 24, 39),
        (slice(None), slice(5, 6), slice(7, 8)),
        (Ellipsis, 39),
        (0, Ellipsis, 1),
        (Ellipsis, slice(0, 40, 7)),
        (slice(None), slice(3, 20, 4), slice(1, 33, 5)),
        ([2, 0], slice(None), slice(None)),
        ([1, 1], slice(0, 3)),
        ([0], 5, 5),
        (slice(None, None, -1),),
        (slice(0, 3, 2), 1),
        (np.array([2, 1]), slice(2, 4)),
        (np.int64(1), np.uint16(3), np.int8(5)),
    ],
    ids=repr,
)
def test_keys_that_numpy_knows(image, key):
    found = image[key]
    assert found.shape == VALUES[key].shape
    assert np.array_equal(found, VALUES[key])


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (3, IndexError),
        (-1, IndexError),
        ((0, 25), IndexError),
        ((0, -1), IndexError),
        ((0, 0, 40), IndexError),
        ((0, 0, -1), IndexError),
        ((0, slice(0, 26)), IndexError),
        ((0, slice(-3, None)), IndexError),
        ((0, slice(None, -1)), IndexError),
        ((0, slice(0, 2**70)), IndexError),
        ((0, 2**70), IndexError),
        ((0, 0, 0, 0), IndexError),
        ((Ellipsis, Ellipsis), IndexError),
        ((0, 0, 0, Ellipsis, 0), IndexError),
        ((slice(None), slice(5, 5)), ValueError),
        ((slice(None), slice(6, 5)), ValueError),
        ((slice(None), slice(None, None, -1)), (ValueError, IndexError)),
        ((slice(None), slice(None, None, 0)), (ValueError, IndexError)),
        (True, TypeError),
        (np.True_, TypeError),
        ((0, True), TypeError),
        ((0, 0, np.False_), TypeError),
        (1.0, TypeError),
        ((0, 1.0), TypeError),
        ((0, slice(0.0, 5)), TypeError),
        ((0, slice(0, 5, 1.0)), TypeError),
        ((0, slice(0, 5, True)), TypeError),
        ("0", TypeError),
        ((0, "0"), TypeError),
        ((0, [1, 2]), TypeError),
        ((0, np.array([1, 2])), TypeError),
        ((0, np.arange(25) > 3), TypeError),
        (VALUES > 3, TypeError),
        (None, TypeError),
        ((slice(None), None), TypeError),
        ((0, 0, None), TypeError),
        ([], (ValueError, TypeError)),
        ([0, 3], IndexError),
        ([True, False, True], TypeError),
        (object(), TypeError),
    ],
    ids=repr,
)
def test_keys_that_are_refused(image, key, error):
    """Nothing is wrapped or clamped, and no axis appears."""
    with pytest.raises(error) as caught:
        image[key]
    assert "\n" not in str(caught.value)


def test_an_image_iterates_over_its_bands(image):
    for found, expected in zip(image, VALUES, strict=True):
        assert np.array_equal(found, expected)


def test_indexing_every_encoding(tmp_path):
    for pair in oracle.DTYPES:
        values = oracle.random_samples(pair, (2, 9, 11))
        data, blob = oracle.write(values, (4, 4))
        image = rumi.open(data, blob)
        for key in ((1,), (0, slice(1, 8, 3), slice(2, 9, 2)), (slice(None), 3, 4), (1, 2, 3)):
            assert oracle.same_bits(image[key], np.asarray(values[key]))


# --- Protocols


def test_as_an_array(image):
    found = np.asarray(image)
    assert oracle.same_bits(found, VALUES)
    assert np.asarray(image, np.float64).dtype == np.float64
    assert np.array_equal(np.array(image, np.int64, copy=True), VALUES)
    assert np.array_equal(np.stack([image, image])[1], VALUES)
    with pytest.raises(ValueError, match="new array"):
        np.array(image, copy=False)
    found[:] = 0
    assert np.array_equal(np.asarray(image), VALUES)


def test_as_a_tensor(image):
    assert image.__dlpack_device__() == (1, 0)
    found = np.from_dlpack(image)
    assert oracle.same_bits(found, VALUES)


def test_as_an_array_of_jax(path):
    """In a process of its own: jax starts threads, and complains of every fork thereafter."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed, so it takes nothing by DLPack: pip install jax")
    code = (
        "import sys, jax, numpy, rumi\n"
        "image = rumi.open(sys.argv[1])\n"
        "for part in (image, image.read(bands=1, window=(3, 4, 5, 6))):\n"
        "    found = jax.dlpack.from_dlpack(part)\n"
        "    assert numpy.array_equal(numpy.asarray(found), numpy.asarray(part))\n"
        "print(found.dtype, found.shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.split(maxsplit=1) == ["uint16", "(1, 5, 6)\n"]


def test_read_is_read(path):
    image = rumi.open(path)
    for bands, window in ((None, None), ([2, 0], (3, 4, 5, 6)), (1, (24, 39, 1, 1))):
        assert oracle.same_bits(
            image.read(bands=bands, window=window), rumi.read(path, bands=bands, window=window)
        )
    out = np.zeros(SHAPE, np.uint16)
    assert image.read(out=out) is out
    assert np.array_equal(out, VALUES)
    with pytest.raises(TypeError):
        image.read([0])


# --- Sources and their fate


def test_an_image_of_bytes():
    data, blob = oracle.write(VALUES, TILE)
    for source in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        image = rumi.open(source)
        assert image.name.startswith("<")
        assert np.array_equal(image[1, 2:5], VALUES[1, 2:5])
        assert image.header == rumi.Header(blob)


def test_a_buffer_that_changed_its_size():
    data, _ = oracle.write(VALUES, TILE)
    buffer = bytearray(data)
    image = rumi.open(buffer)
    image.read()
    buffer += b"\0"
    with pytest.raises(StaleHeaderError):
        image.read()


def test_an_image_lets_go_of_its_buffer():
    class Buffer(bytearray):
        pass

    buffer = Buffer(oracle.write(VALUES, TILE)[0])
    alive = weakref.ref(buffer)
    image = rumi.open(buffer)
    image.read()
    del buffer
    assert alive() is not None
    del image
    gc.collect()
    assert alive() is None


def test_an_image_of_every_kind_of_path(path):
    for form in (str(path), path, os.fsencode(path)):
        image = rumi.open(form)
        assert image.name == str(path)
        assert np.array_equal(image[0], VALUES[0])


def test_a_file_that_is_cut_while_it_is_open(tmp_path):
    """In place, which no rename protects from."""
    path = tmp_path / "a.rumi"
    header = rumi.write(path, VALUES, tile_size=16, codec="store")
    for given_header in (None, header):
        rumi.write(path, VALUES, tile_size=16, codec="store")
        image = rumi.open(path, given_header)
        image.read()
        os.truncate(path, header.offset(5) + 7)
        with pytest.raises((StaleHeaderError, TruncatedError)) as caught:
            image.read()
        assert str(path) in str(caught.value)
        # What lies before the cut is there, or refused; it is never zeros.
        with contextlib.suppress(StaleHeaderError, TruncatedError):
            assert np.array_equal(image[0, :16, :16], VALUES[0, :16, :16])


def test_a_file_that_is_overwritten_while_it_is_open(tmp_path):
    """In place and of the same size, with other frames: no mixture of the two."""
    path = tmp_path / "a.rumi"
    noise = np.random.default_rng(0).integers(0, 2**16, SHAPE).astype(np.uint16)
    rumi.write(path, noise, tile_size=16, codec="zstd")
    image = rumi.open(path)
    image.read()
    with path.open("r+b") as file:
        file.seek(image.header.base_frame_offset)
        file.write(bytes(image.header.file_size - image.header.base_frame_offset))
    with pytest.raises((StaleHeaderError, CodecError)):
        image.read()


# --- Pickling


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(path, protocol):
    image = rumi.open(path)
    image.read()
    assert image.epsg == 32718
    data = pickle.dumps(image, protocol)
    assert len(data) < 1000 + len(image.header)
    again = pickle.loads(data)
    assert (again.name, again.header, again.epsg) == (image.name, image.header, 32718)
    assert np.array_equal(again.read(), VALUES)


def test_a_pickle_reads_nothing_until_it_is_needed(path, tmp_path):
    image = rumi.open(path)
    moved = tmp_path / "b.rumi"
    moved.write_bytes(path.read_bytes())
    image = rumi.open(moved)
    data = pickle.dumps(image)
    moved.unlink()
    again = pickle.loads(data)
    assert again.shape == SHAPE
    with pytest.raises(FileNotFoundError):
        again.read()


def test_a_pickle_of_bytes_holds_them():
    data, _ = oracle.write(VALUES, TILE)
    again = pickle.loads(pickle.dumps(rumi.open(data)))
    assert np.array_equal(again.read(), VALUES)


def test_an_image_takes_no_attributes(image):
    with pytest.raises(AttributeError):
        image.colour = "red"
    for name in ("shape", "dtype", "epsg", "name"):
        with pytest.raises(AttributeError):
            setattr(image, name, 1)


def test_many_images(tmp_path):
    """More of them than files stay open."""
    images = []
    for number in range(200):
        path = tmp_path / f"{number}.rumi"
        rumi.write(path, np.full((1, 4, 4), number, np.uint16), codec="store")
        images.append(rumi.open(path))
    for _ in range(2):
        for number, image in enumerate(images):
            assert (image.read() == number).all()
    assert len(os.listdir("/proc/self/fd")) < 200 if os.path.isdir("/proc/self/fd") else True
