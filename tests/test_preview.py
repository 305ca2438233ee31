"""Small pictures of whole images, from Python and from the command line."""

import json
import os
import subprocess
import sys

import numpy as np
import oracle
import pytest
from click.testing import CliRunner

import rumi
from rumi import orthogonal, pictures
from rumi.cli.preview import preview as command
from rumi.cli.program import Program
from rumi.preview import choose_bands, preview, reduction

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (extra plot)")


def write(path, values, **options):
    rumi.write(path, values, **{"tile_size": 16, "codec": "zstd", **options})
    return rumi.open(path)


@pytest.fixture
def image(tmp_path):
    return write(tmp_path / "a.rumi", oracle.ramp(4, 60, 100))


def header(shape, tile, unit="tile", dtype="u2"):
    from rumi.encodings import from_dtype

    count = -(-shape[1] // tile) * -(-shape[2] // tile) * (shape[0] if unit == "tile" else 1)
    return rumi.Header.build(shape, (tile, tile), from_dtype(dtype), unit, np.full(count, 100))


# --- Which pixels


@pytest.mark.parametrize("side", [1, 2, 59, 100, 767, 768, 769, 1000, 5000])
@pytest.mark.parametrize("size", [1, 7, 768, 3000])
def test_positions_are_spread_evenly(side, size):
    found = reduction(header((1, side, 1), 64), [0], size)
    rows = found.rows
    assert found.shape[0] == min(side, size)
    assert len(rows) % found.shape[0] == 0 or len(rows) == side
    assert rows[0] >= 0
    assert rows[-1] < side
    steps = np.diff(rows)
    assert steps.size == 0 or (steps.min() >= 1 and np.ptp(steps) <= 1)
    # As far from the first edge as from the last one.
    assert abs(rows[0] - (side - 1 - rows[-1])) <= 1
    assert len(rows) <= max(2048, found.shape[0])
    assert found.row_places.tolist() == list(range(len(rows)))


@pytest.mark.parametrize("unit", ["tile", "cell"])
@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((3, 20_000, 30_000), 512),
        ((3, 100_000, 90_000), 512),
        ((3, 5000, 5000), 16),
        ((3, 300, 300), 1),
        ((3, 60_000, 300), 64),
        ((3, 300, 60_000), 64),
        ((3, 6000, 6000), 6000),
    ],
)
@pytest.mark.parametrize("budget", [1, 1 << 20, 256 << 20])
def test_what_is_read_is_bounded(shape, tile, unit, budget):
    blob = header(shape, tile, unit)
    found = reduction(blob, [0, 1, 2], max_bytes=budget)
    rows, cols = np.unique(found.rows // tile), np.unique(found.cols // tile)
    per_position = 3 if unit == "tile" else 1
    assert found.frames_read == len(rows) * len(cols) * per_position
    assert found.frames_read <= found.frames == blob.frame_count
    frame = min(tile, shape[1]) * min(tile, shape[2]) * 2 * (1 if unit == "tile" else 3)
    # One position of the grid is read in any case, and no frame is free.
    assert found.frames_read == per_position or found.frames_read * max(frame, 1 << 16) <= budget
    # And the budget is not left lying.
    if found.frames_read < found.frames and rows.size > 1 < cols.size:
        assert 3 * found.frames_read * max(frame, 1 << 16) > budget or frame < 100
    for places, positions in ((found.row_places, found.rows), (found.col_places, found.cols)):
        assert (np.diff(places) >= 0).all()
        assert (places[0], places[-1]) == (0, len(positions) - 1)


def test_only_chosen_frames_are_read(tmp_path, monkeypatch):
    image = write(tmp_path / "a.rumi", oracle.ramp(3, 640, 640), tile_size=64)
    frames = []

    def watch(original):
        def read(*args, window=None, bands=None, **options):
            windows = [window] if window is not None else args[2]
            for part in windows:
                frames.extend(image.header.ranges(bands, part)[0].tolist())
            return original(*args, **options, bands=bands, **({"window": window} if window else {}))

        return read

    monkeypatch.setattr(rumi.Image, "read", watch(rumi.Image.read))
    monkeypatch.setattr(orthogonal, "read_many", watch(orthogonal.read_many))
    preview(image, bands=1, size=100, max_bytes=25 << 16)
    assert len(frames) == len(set(frames)) == 25
    assert len(frames) == reduction(image.header, [1], 100, 25 << 16).frames_read


# --- What is drawn


def test_a_small_image_is_drawn_pixel_by_pixel(image):
    values = oracle.ramp(4, 60, 100)
    found = np.asarray(preview(image, bands=[2, 1, 0], percentiles=(0, 100)))
    assert found.shape == (60, 100, 3)
    low, high = values[0].min(), values[0].max()
    expected = ((values[0] - low) / (high - low) * 255 + 0.5).astype(np.uint8)
    for band in range(3):
        assert np.array_equal(found[..., band], expected)
    assert np.array_equal(
        np.asarray(image.preview(bands=0, percentiles=(0, 100)))[..., 1], expected
    )


def test_a_reduced_picture_is_a_mean_of_pixels(tmp_path):
    values = np.zeros((1, 400, 800), np.uint8)
    values[0, :, ::2] = 200
    values[0, 200:] = 0
    found = np.asarray(preview(write(tmp_path / "a.rumi", values), size=200, percentiles=(0, 100)))
    assert found.shape == (100, 200, 3)
    # Every fourth column alone would be all white or all black.
    assert set(np.unique(found[:50])) <= {0, 127, 128, 255}
    assert (found[50:] == 0).all()


def test_left_out_tiles_are_interpolated(tmp_path):
    values = np.add.outer(np.arange(640), np.arange(640)).astype(np.uint16)[np.newaxis]
    image = write(tmp_path / "a.rumi", values, tile_size=64)
    whole = np.asarray(preview(image, percentiles=(0, 100)))[..., 0].astype(int)
    part = np.asarray(preview(image, percentiles=(0, 100), max_bytes=25 << 16))[..., 0].astype(int)
    assert part.shape == whole.shape
    # The gradient goes on; at the border there is nothing to go on to.
    inner = np.s_[64:-64, 64:-64]
    error = np.abs(part - whole)[inner]
    assert error.mean() < 20


@pytest.mark.parametrize("pair", oracle.DTYPES, ids=lambda pair: "{}-{}".format(*pair))
def test_every_sample_type(tmp_path, pair):
    samples = oracle.random_samples(pair, (3, 40, 70))
    with np.errstate(all="ignore"):
        found = preview(write(tmp_path / "a.rumi", samples), size=35)
    assert found.size == (35, 20)


def test_nodata_does_not_count(tmp_path):
    values = np.full((1, 50, 50), 65_535, np.uint16)
    values[0, :25] = np.arange(1000, 1025)[:, np.newaxis]
    image = write(tmp_path / "a.rumi", values)
    assert len(np.unique(np.asarray(preview(image)))) < 4
    assert len(np.unique(np.asarray(preview(image, nodata=65_535)))) > 20
    assert preview(write(tmp_path / "b.rumi", values * 0), nodata=0).size == (50, 50)
    # Two integers that are the same double.
    large = np.array([[[2**60, 2**60 + 1, 5, 9]]])
    assert pictures.stretch_limits(large, (0, 100), 2**60) == [(5.0, 2.0**60)]
    assert pictures.stretch_limits(large.astype(np.uint8), (0, 100), -9999) == [(0.0, 9.0)]


def test_frames_are_drawn_over_it(tmp_path):
    values = np.zeros((1, 1000, 1600), np.uint8)
    image = write(tmp_path / "a.rumi", values, tile_size=200)
    plain, grid = (np.asarray(preview(image, size=800, grid=flag)) for flag in (False, True))
    assert (plain == 0).all()
    bright = (grid.sum(axis=-1) > 0).any(axis=0)
    # A border at every hundredth column, and labels beside it.
    assert bright[[100, 200, 700]].all()
    assert grid[:, 150].sum() < grid[:, 100].sum()
    small = write(tmp_path / "b.rumi", values[:, :100, :160], tile_size=8)
    with pytest.raises(ValueError, match=r"a frame would be 2 pixels wide, expected 4 or more"):
        preview(small, size=40, grid=True)
    assert preview(small, size=80, grid=True).size == (80, 50)


# --- What is refused


def test_bands(image, tmp_path):
    assert choose_bands(image.header, None) == [0, 1, 2]
    assert choose_bands(header((2, 5, 5), 5), None) == [0]
    assert choose_bands(image.header, np.array([3, 3, 1])) == [3, 3, 1]
    with pytest.raises(ValueError, match="takes 1 or 3 bands, found 2"):
        preview(image, bands=[0, 1])
    with pytest.raises(IndexError, match="band 4 is outside"):
        preview(image, bands=4)
    for wrong in (True, 0.0, ["0"]):
        with pytest.raises(TypeError):
            preview(image, bands=wrong)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"size": 0}, ValueError, "size: expected 1 to 4096 pixels, found 0"),
        ({"size": 5000}, ValueError, "size: expected 1 to 4096"),
        ({"size": 7.0}, TypeError, "size: expected an integer, found float"),
        ({"size": True}, TypeError, "size: expected an integer, found bool"),
        ({"percentiles": (2, 2)}, ValueError, "expected 0 <= low < high <= 100"),
        ({"percentiles": (-1, 50)}, ValueError, "expected 0 <= low < high <= 100"),
    ],
)
def test_arguments_that_make_no_sense(image, options, error, words):
    with pytest.raises(error, match=words):
        preview(image, **options)


def test_a_damaged_frame_is_named(image, tmp_path):
    path = tmp_path / "a.rumi"
    with open(path, "r+b") as file:
        file.seek(image.header.offset(6) + 8)
        file.write(b"\xff" * 8)
    with pytest.raises(rumi.CodecError, match=r"frame 6 .*a\.rumi|a\.rumi.*frame 6"):
        preview(rumi.open(path), bands=2)


def test_without_pillow_the_error_says_how_to_install_it(image):
    code = (
        "import sys; sys.modules['PIL'] = None\n"
        f"import rumi; image = rumi.open({image.name!r})\n"
        "try:\n    image.preview()\n"
        "except rumi.UnsupportedError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "drawing needs Pillow: pip install 'rumi[plot]'\n"


# --- rumi preview


@pytest.fixture
def run():
    program = Program("rumi")
    program.add_command(command)

    def run(*arguments):
        return CliRunner().invoke(program, ["preview", *map(str, arguments)])

    return run


def test_command(image, tmp_path, run):
    target = tmp_path / "a.png"
    result = run(image.name, "-o", target, "--size", 50, "--bands", "2,1,0", "--grid")
    assert result.exit_code == 0, result.output
    assert result.output == (
        f"{target}: 30 x 50 pixels of {image.name}, bands 2,1,0, from 84 of 84 frames\n"
    )
    with Image.open(target) as picture:
        assert (picture.format, picture.size) == ("PNG", (50, 30))


def test_command_with_a_blob_for_programs(image, tmp_path, run):
    blob = tmp_path / "a.blob"
    blob.write_bytes(bytes(image.header))
    result = run(
        image.name, "--header", blob, "-o", tmp_path / "a.png", "--json", "--bands", 3,
        "--percentiles", "0,99.5", "--nodata", "0",
    )  # fmt: skip
    assert json.loads(result.output) == {
        "file": image.name,
        "output": str(tmp_path / "a.png"),
        "bands": [3],
        "height": 60,
        "width": 100,
        "percentiles": [0.0, 99.5],
        "frames_read": 28,
        "frames": 28,
    }
    assert run(image.name, "-o", tmp_path / "b.png", "-q").output == ""


@pytest.mark.parametrize(
    ("arguments", "words", "status"),
    [
        (["-o", "a.jpg"], "expected a name that ends in .png, found 'a.jpg'", 2),
        (["-o", "a.png", "--percentiles", "98,2"], "expected LOW,HIGH within 0 and 100", 2),
        (["-o", "a.png", "--percentiles", "x"], "expected LOW,HIGH within 0 and 100", 2),
        (["-o", "a.png", "--size", "0"], "0 is not in the range", 2),
        (["-o", "a.png", "--bands", "0,1"], "takes 1 or 3 bands, found 2", 1),
        (["-o", "a.png", "--bands", "9"], "band 9 is outside 0..3", 1),
        (["-o", "a.png", "--grid", "--size", "20"], "draw a larger picture", 1),
        ([], "Missing option", 2),
    ],
)
def test_command_errors_are_one_line(image, tmp_path, run, arguments, words, status, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = os.listdir(tmp_path)
    result = run(image.name, *arguments)
    assert result.exit_code == status
    assert words in result.output
    assert result.output.startswith("rumi: error: ")
    assert result.output.count("\n") == 1
    assert os.listdir(tmp_path) == before
