"""The demo, its scene, and the pictures it draws."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rumi
from rumi import demo, pictures
from rumi.cli import cli

rasterio = pytest.importorskip("rasterio")
Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> demo.Converted:
    return demo.convert_scene(tmp_path_factory.mktemp("demo"))


def opened(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image)


# --- The scene


def test_the_scene_ships_with_its_source_named() -> None:
    path = demo.scene_path()
    assert path.parent == Path(rumi.__file__).parent / "data"
    assert path.stat().st_size < 1_000_000
    text = (path.parent / "README.txt").read_text()
    for word in (path.name, "Landsat 8", "U.S. Geological Survey", "public domain"):
        assert word in text


def test_the_scene_is_what_it_was() -> None:
    with rasterio.open(demo.scene_path()) as scene:
        assert (scene.count, scene.height, scene.width) == (3, 500, 512)
        assert scene.dtypes == ("uint16",) * 3
        assert scene.crs.to_epsg() == 32621
        digest = hashlib.sha256(scene.read().tobytes()).hexdigest()
    assert digest == "5684fbc5ff309bf02057d665a0f9d79f969adb3b73e0a74a04bf9b8040ed5048"


# --- The steps


def test_conversion_keeps_every_bit(converted: demo.Converted) -> None:
    assert np.array_equal(rumi.read(converted.path), converted.pixels)
    assert converted.blob_path.read_bytes() == bytes(converted.header)
    image = rumi.open(converted.path)
    with rasterio.open(converted.source) as scene:
        assert image.transform == tuple(scene.transform)[:6]
        assert image.epsg == scene.crs.to_epsg()


def test_check_reads_with_the_blob_alone(
    converted: demo.Converted, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    read = rumi.read

    def watched(source: Any, header: Any = None, **options: Any) -> Any:
        given.append(header)
        return read(source, header, **options)

    monkeypatch.setattr(rumi, "read", watched)
    assert demo.check_chips(converted, chips=20) > 20
    assert given == [bytes(converted.header)] * 20


def test_check_notices_one_wrong_bit(converted: demo.Converted, tmp_path: Path) -> None:
    pixels = converted.pixels.copy()
    pixels[:, ::8, ::8] ^= 1
    wrong = demo.Converted(
        converted.source, converted.path, converted.blob_path, pixels, converted.header
    )
    with pytest.raises(rumi.CodecError, match=r"chip .* differs from itaipu\.tif"):
        demo.check_chips(wrong, chips=50)


def test_the_cog_has_the_same_pixels_and_its_header_ends_at_the_first_tile(
    converted: demo.Converted, tmp_path: Path
) -> None:
    cog = demo.make_cog(converted.source, tmp_path)
    with rasterio.open(cog.path) as dataset:
        assert np.array_equal(dataset.read(), converted.pixels)
        assert dataset.block_shapes[0] == converted.header.tile_shape
    assert len(bytes(converted.header)) < cog.header_size < cog.size == cog.path.stat().st_size


def test_timing_reads_the_same_windows_from_both(converted: demo.Converted, tmp_path: Path) -> None:
    timing = demo.time_chips(converted, demo.make_cog(converted.source, tmp_path), reads=4)
    assert timing.reads == 4
    assert timing.rumi > 0
    assert timing.cog > 0


# --- The command


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(cli, ["demo", *map(str, arguments)])


def test_demo_tells_what_it_did(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    result = run("-o", folder)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    for word in ("Landsat 8 (USGS)", "every bit", "header blob", "COG header", "rasterio"):
        assert word in result.stdout
    made = sorted(path.name for path in folder.iterdir())
    assert made == ["chip.png", "itaipu-cog.tif", "itaipu.blob", "itaipu.rumi"]
    assert opened(folder / "chip.png").ndim == 3


def test_demo_again_replaces_what_it_wrote(tmp_path: Path) -> None:
    first = json.loads(run("-o", tmp_path, "--json").stdout)
    second = run("-o", tmp_path, "--quiet")
    assert (second.exit_code, second.output) == (0, "")
    assert first["frame_count"] == 48
    assert first["blob_size"] == (tmp_path / "itaipu.blob").stat().st_size
    assert first["file_size"] == (tmp_path / "itaipu.rumi").stat().st_size
    assert first["ratio"] > 1.5
    assert Path(first["picture"]).is_file()


@pytest.mark.parametrize(
    ("module", "words"),
    [("rasterio", "rasterio: pip install 'rumi[geotiff]'"), ("PIL", "pip install 'rumi[plot]'")],
)
def test_demo_without_an_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, words: str
) -> None:
    find = demo.find_spec
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name == module else find(name))
    result = run("-o", tmp_path / "out")
    assert result.exit_code == 1
    assert result.stderr.startswith("rumi: error: the demo needs ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


def test_demo_into_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    result = run("-o", tmp_path / "file")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


# --- Pictures


def test_stretch_spans_black_to_white() -> None:
    samples = np.arange(10_000, dtype=np.uint16).reshape(1, 100, 100)
    grey = pictures.stretch(samples)
    assert grey.shape == (100, 100)
    assert (grey.min(), grey.max()) == (0, 255)
    assert np.all(np.diff(grey.reshape(-1).astype(int)) >= 0)
    assert pictures.stretch(np.repeat(samples, 3, axis=0)).shape == (100, 100, 3)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64", "complex128"]
)
def test_any_sample_type_can_be_stretched(dtype: str) -> None:
    samples = (np.arange(64).reshape(1, 8, 8) % 2).astype(dtype)
    assert set(np.unique(pictures.stretch(samples))) == {0, 255}


def test_structured_and_small_types_can_be_stretched() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    pairs = np.zeros((1, 4, 4), dtype=[("real", "<i2"), ("imag", "<i2")])
    pairs["imag"][0, 0] = -5
    assert pictures.stretch(pairs)[0].tolist() == [255] * 4
    small = np.arange(16).reshape(1, 4, 4).astype(ml_dtypes.uint4)
    assert pictures.stretch(small).max() == 255


def test_nan_infinity_and_constants_do_not_disturb() -> None:
    samples = np.full((3, 4, 4), np.nan, dtype=np.float32)
    samples[1] = 7
    samples[2, 0] = (0, 1, np.inf, -np.inf)
    colour = pictures.stretch(samples)
    assert not colour[..., 0].any()
    assert not colour[..., 1].any()
    assert colour[0, :, 2].tolist() == [0, 255, 0, 0]


@pytest.mark.parametrize("shape", [(2, 4, 4), (4, 4, 4), (4, 4)])
def test_pictures_take_one_or_three_bands(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="1 or 3 bands"):
        pictures.stretch(np.zeros(shape))


def test_frames_are_drawn_on_their_borders(converted: demo.Converted) -> None:
    window = (100, 60, 100, 150)
    samples = np.zeros((3, 100, 150), dtype=np.uint8)
    plain = pictures.picture(samples, scale=2)
    drawn = pictures.picture(samples, scale=2, header=converted.header, window=window)
    assert drawn.size == plain.size == (300, 200)
    rows, cols = np.asarray(drawn).max(axis=-1).astype(int), np.asarray(drawn).max(axis=-1)
    # Tiles of 128: the one border row is 28 pixels down, the one border column 68 across.
    assert rows[2 * 28, 10] > 0
    assert cols[190, 2 * 68] > 0
    assert rows[2 * 28 + 4, 290] == 0


def test_figure_and_png(converted: demo.Converted, tmp_path: Path) -> None:
    image = rumi.open(converted.path, converted.header)
    figure = pictures.chip_figure(image, (268, 150, 224, 224), bands=(2, 1, 0), title="x")
    pictures.save_png(figure, tmp_path / "x.png")
    assert opened(tmp_path / "x.png").shape[1] == figure.width > 512 + 448
    grey = pictures.chip_figure(image, (0, 0, 500, 512))
    assert grey.width == 3 * 24 + 2 * 512


def test_a_picture_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(AttributeError):
        pictures.save_png(None, tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []
