"""Images by grid position; cubes and collections."""

import pickle

import numpy as np
import pytest

import rumi
from rumi import transforms

SHAPE = (3, 40, 50)
PLACE = {"crs": 32718, "transform": (10.0, 0.0, 300_000.0, 0.0, -10.0, 8_500_000.0)}


def ramp(seed: int = 0, shape: tuple[int, int, int] = SHAPE) -> np.ndarray:
    bands, rows, cols = (np.arange(side) for side in shape)
    return (bands[:, None, None] * 10_000 + rows[:, None] * 100 + cols + seed).astype(np.int32)


@pytest.fixture
def paths(tmp_path):
    names = []
    for seed in range(5):
        names.append(str(tmp_path / f"{seed}.rumi"))
        rumi.write(names[-1], ramp(seed), tile_size=(16, 20), **PLACE)
    return names


@pytest.fixture
def image(paths):
    return rumi.open(paths[0])


def test_grid_of_an_image(image):
    assert image.grid_shape == (3, 3)
    assert image.cell_window(0, 0) == (0, 0, 16, 20)
    assert image.cell_window(np.int8(2), 2) == (32, 40, 8, 10)
    np.testing.assert_array_equal(image.tile(2, 2, 1), ramp()[1, 32:, 40:])
    np.testing.assert_array_equal(image.cell(1, 2), ramp()[:, 16:32, 40:])
    assert image.cell_bounds(0, 0) == (300_000, 8_500_000 - 160, 300_200, 8_500_000)
    assert image.cell_bounds(2, 2) == (300_400, 8_499_600, 300_500, 8_499_680)


@pytest.mark.parametrize(("row", "col", "band"), [(3, 0, 0), (0, 3, 0), (-1, 0, 0), (0, 0, 3)])
def test_positions_outside_the_grid(image, row, col, band):
    with pytest.raises(IndexError):
        image.tile(row, col, band)
    with pytest.raises(TypeError):
        image.cell(True, 0)


def test_cell_of_a_coordinate(image):
    assert image.cell_of(300_000.0, 8_500_000.0) == (0, 0)
    assert image.cell_of(300_499.9, 8_499_600.1) == (2, 2)
    assert image.cell_of(300_205.0, 8_499_835.0) == (1, 1)
    with pytest.raises(ValueError, match="outside"):
        image.cell_of(300_500.0, 8_499_999.0)


def test_a_file_without_georeferencing_has_no_coordinates(tmp_path):
    path = tmp_path / "plain.rumi"
    rumi.write(path, ramp(), tile_size=16)
    image = rumi.open(path)
    assert image.cell_bounds(0, 0) is None
    assert image.bounds is None
    assert image.crs is None
    with pytest.raises(ValueError, match="no georeferencing"):
        image.cell_of(0, 0)


def test_pixel_of_undoes_the_transform_of_a_rotated_image():
    transform = (8.66, 5.0, 1000.0, 5.0, -8.66, 2000.0)
    for row, col in [(0, 0), (3, 7), (-2, 11)]:
        a, b, c, d, e, f = transforms.window_transform(transform, row, col)
        assert (a, b, d, e) == (8.66, 5.0, 5.0, -8.66)
        x, y = c + a / 2 + b / 2, f + d / 2 + e / 2
        assert transforms.pixel_of(transform, x, y) == (row, col)


def test_cube_reads_as_numpy_would(paths):
    cube = rumi.Cube(paths)
    expected = np.stack([ramp(seed) for seed in range(5)])
    assert cube.shape == expected.shape
    assert cube.dtype == np.int32
    assert len(cube) == 5
    assert cube.epsg == 32718
    np.testing.assert_array_equal(np.asarray(cube), expected)
    # Each axis on its own: an integer drops it where it stands.
    np.testing.assert_array_equal(cube[1:4, [2, 0], 5:9, 7], expected[..., 7][1:4][:, [2, 0], 5:9])
    np.testing.assert_array_equal(cube[3], expected[3])
    np.testing.assert_array_equal(cube[..., ::3], expected[..., ::3])
    np.testing.assert_array_equal(cube[::2, 1], expected[::2, 1])
    np.testing.assert_array_equal(
        cube.read(images=[4, 0], bands=1, window=(1, 2, 3, 4)), expected[[4, 0], 1:2, 1:4, 2:6]
    )
    out = np.zeros((5, 1, 3, 4), np.int32)
    assert cube.read(bands=0, window=(1, 2, 3, 4), out=out) is out
    np.testing.assert_array_equal(out, expected[:, :1, 1:4, 2:6])


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ((5,), IndexError),
        ((-1,), IndexError),
        ((slice(0, 6),), IndexError),
        ((slice(2, 2),), ValueError),
        ((0, 0, 0, 0, 0), IndexError),
        ((True,), TypeError),
        ((slice(None), 0, slice(0, 41)), IndexError),
    ],
)
def test_cube_refuses_what_an_image_refuses(paths, key, error):
    with pytest.raises(error):
        rumi.Cube(paths)[key]


def test_more_images_than_are_open_at_once(tmp_path):
    paths = []
    for number in range(70):
        paths.append(tmp_path / f"{number}.rumi")
        rumi.write(paths[-1], np.full((1, 4, 4), number, np.uint8), tile_size=4)
    assert rumi.Cube(paths)[:, 0, 0, 0].tolist() == list(range(70))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"array": ramp(shape=(3, 40, 51))}, "shape"),
        ({"array": ramp().astype(np.int16)}, "sample encoding"),
        ({"tile_size": 16}, "tile shape"),
        ({"crs": 32719}, "EPSG code: expected 32718, found 32719"),
        ({"transform": (10.0, 0.0, 300_000.5, 0.0, -10.0, 8_500_000.0)}, "transform"),
    ],
)
def test_an_image_that_does_not_align_is_named(paths, tmp_path, change, text):
    options = {"array": ramp(), "tile_size": (16, 20), **PLACE, **change}
    rumi.write(tmp_path / "other.rumi", options.pop("array"), **options)
    with pytest.raises(ValueError, match=rf"image 2 \(.*other\.rumi\).*{text}"):
        rumi.Cube([*paths[:2], tmp_path / "other.rumi"])


def test_tolerance_is_explicit(paths, tmp_path):
    shifted = (10.0, 0.0, 300_000.001, 0.0, -10.0, 8_500_000.0)
    path = tmp_path / "shifted.rumi"
    rumi.write(path, ramp(9), tile_size=(16, 20), crs=32718, transform=shifted)
    with pytest.raises(ValueError, match="transform"):
        rumi.Cube([paths[0], path])
    assert rumi.Cube([paths[0], path], tolerance=0.01)[1, 0, 0, 0] == ramp(9)[0, 0, 0]


def test_collection_groups_what_aligns(paths, tmp_path):
    other = tmp_path / "other.rumi"
    rumi.write(other, ramp(1), tile_size=16)
    collection = rumi.ImageCollection([paths[0], other, *paths[1:]])
    assert len(collection) == 6
    assert collection[1].name == str(other)
    assert len(collection[2:4]) == 2
    cubes = collection.cubes()
    assert [len(cube) for cube in cubes] == [5, 1]
    assert isinstance(cubes, rumi.CubeCollection)
    assert len(cubes[:1]) == 1
    assert "5 x 3 x 40 x 50" in repr(cubes)
    with pytest.raises(TypeError, match="cube 0"):
        rumi.CubeCollection([collection[0]])
    with pytest.raises(ValueError, match="at least one image"):
        rumi.Cube([])


def test_stacks_pickle_as_names_and_headers(paths):
    cube = rumi.Cube(paths)
    data = pickle.dumps(cube)
    # The headers, the names and little more.
    assert len(data) < 5 * (len(paths[0]) + len(cube.images[0].header)) + 2_000
    np.testing.assert_array_equal(pickle.loads(data)[2], ramp(2))


def test_from_headers_alone_nothing_is_read(paths, tmp_path):
    header = bytes(rumi.index(paths[0]))
    image = rumi.open(str(tmp_path / "not there.rumi"), header)
    assert image.shape == SHAPE
    assert "not there" in repr(image)
    with pytest.raises(FileNotFoundError):
        _ = image.epsg
