"""Codecs: the grammar, every recipe on every input, what presets choose, geozl, profiles."""

import pickle
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openzl import ext as openzl

import rumi
from rumi import UnsupportedError, backends, encodings
from rumi import codec as codecs
from rumi.codec import geozl as geozl_recipes
from rumi.codec.choose import POLICIES, choose
from rumi.codec.search import search
from rumi.pixels import Grid, make_source, sample_frames

BENCH = Path(__file__).parents[1].parent / "shared" / "data" / "bench"
SHARED = pytest.mark.skipif(
    not BENCH.is_dir(), reason="../shared/data/bench is absent, so no real scene is tested"
)
GEOZL = pytest.mark.usefixtures("needs_geozl")

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
FLOATS = {2: np.float16, 4: np.float32, 8: np.float64}
WIDTHS = pytest.mark.parametrize("width", [1, 2, 4, 8])
UNITS = pytest.mark.parametrize("unit", ["tile", "cell"])

LEAVES = [
    "fse",
    "huffman",
    "entropy",
    "words",
    "words:16",
    "zstd",
    "zstd:1",
    "fieldlz",
    "fieldlz:1",
    "bitpack",
    "constant",
    "store",
    "openzl",
    "best(fse,zstd:1)",
]
STEPS = [
    "delta",
    "planar",
    "spectral",
    "turn",
    "zigzag",
    "range",
    "divide",
    "cast:1",
    "cast:2",
    "cast:4",
    "cast:8",
    "blocks:1x4",
    "blocks:4x8",
    "blocks:256x256",
    "lanes",
    "pack",
    "tokenize",
    "tokenize(zstd:1)",
    "buckets:1",
    "buckets:4",
    "buckets:16(zstd:1)",
    "float16",
    "bfloat16",
    "float32",
    "float32(zstd:1)",
]
PRESETS_FOUND = [
    "delta>zigzag>blocks:4x8>words",
    "planar>zigzag>blocks:4x8>words",
    "spectral>zigzag>blocks:4x8>words",
    "tokenize>delta>zigzag>blocks:4x8>words",
    "delta>zigzag>blocks:4x4>buckets:4>fse",
    "cast:2>zigzag>lanes>zstd:1",
    "pack>zstd:9",
    "best(turn>delta>zigzag>blocks:4x8>buckets:4>fse,planar>zigzag>words)",
]
RECIPES = [
    *LEAVES,
    *(f"{step}>{leaf}" for step in STEPS for leaf in ("entropy", "zstd:1")),
    *(f"{one}>{two}>words" for one in STEPS for two in STEPS),
    "lanes(store,fse)",
    "lanes(fse,zstd:3,huffman)",
    *PRESETS_FOUND,
]


def nasty(width):
    """Samples that break what assumes size, spread or sense of them."""
    dtype, rng = UNSIGNED[width], np.random.default_rng(width)
    top = np.iinfo(dtype).max

    def noise(*shape):
        return rng.integers(0, top, shape, dtype=dtype, endpoint=True)

    smooth = np.cumsum(rng.integers(-3, 4, (96, 81)), axis=1) + 500
    cells = np.cumsum(rng.integers(-3, 4, (3, 40, 33)), axis=2) + 500
    arrays = [
        np.array([[7]], dtype),
        noise(1, 5),
        noise(5, 1),
        noise(2, 2),
        np.zeros((64, 64), dtype),
        np.full((33, 17), top, dtype),
        noise(70, 41),
        np.where(noise(40, 40) > top // 2, dtype(0), dtype(top)),
        smooth.astype(dtype),
        np.where(np.arange(4096).reshape(64, 64) == 99, dtype(top), dtype(3)),
        cells.astype(dtype),
        noise(4, 1, 1),
        noise(4, 1, 9),
    ]
    if width in FLOATS:
        floats = rng.normal(size=(50, 50)).astype(FLOATS[width])
        floats[3], floats[4], floats[5] = np.nan, np.inf, -0.0
        arrays += [np.full((20, 20), np.nan, FLOATS[width]).view(dtype), floats.view(dtype)]
    return arrays


def check_frame(frame, samples, width):
    """What the specification and the design demand of a frame."""
    (magic,) = np.frombuffer(frame[:4], "<u4")
    assert magic == codecs.FRAME_VERSION + 0xD7B1A5C0
    # The byte after the version has a bit for each of the two checksums.
    assert frame[4] & 3 == 3
    info = openzl.FrameInfo(frame)
    assert info.num_outputs == 1
    assert info.output_type(0) == openzl.Type.Numeric
    (output,) = openzl.DCtx().decompress(frame)
    assert output.elt_width == width
    assert output.content.as_bytes() == samples.tobytes()


def grid_of(values, tile=512, unit="tile"):
    unit = "tile" if values.shape[0] == 1 else unit
    return Grid(values.shape, (tile, tile), encodings.from_dtype(values.dtype), unit)


def resolved(codec, values, unit="tile", **options):
    """The codec of an image, as `rumi.write` would resolve it."""
    source, grid = make_source(values), grid_of(values, unit=unit)
    return codecs.resolve(
        codec, grid.encoding, lambda **more: sample_frames(source, grid, **more), **options
    )


def refuses(codec, values=None, **options):
    with pytest.raises(ValueError, match="codec|error") as caught:
        resolved(codec, oracle.ramp(1, 8, 8) if values is None else values, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- The grammar


def test_a_recipe_is_written_as_it_is_read():
    for recipe in RECIPES:
        parsed = codecs.parse(recipe)
        assert str(parsed) == recipe
        assert codecs.parse(f"  {recipe.upper().replace('>', ' > ')} ") == parsed
        assert pickle.loads(pickle.dumps(parsed)) == parsed


def test_every_step_and_leaf_is_tested():
    words = "".join(RECIPES)
    assert all(name in words for name in (*codecs.STEPS, *codecs.LEAVES))
    assert not codecs.STEPS.keys() & codecs.LEAVES.keys()


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        ">",
        "delta",
        "delta>",
        ">zstd",
        "delta>>zstd",
        "zst",
        "nothing>zstd",
        "zstd>delta",
        "zstd:0",
        "zstd:23",
        "zstd:",
        "zstd:x",
        "zstd:-1",
        "zstd:1x2",
        "fse:3",
        "delta:1>zstd",
        "cast>zstd",
        "cast:3>zstd",
        "blocks>zstd",
        "blocks:4>zstd",
        "blocks:0x8>zstd",
        "blocks:4x2>zstd",
        "blocks:4x257>zstd",
        "buckets:3>zstd",
        "words:8",
        "lanes",
        "lanes()",
        "lanes(fse",
        "lanes(fse))",
        "lanes(fse,)",
        "lanes(fse)>zstd",
        "lanes(delta)",
        "delta(fse)>zstd",
        "best(fse)",
        "best(fse,zstd)>fse",
        "tokenize(fse,zstd)>fse",
        "fse zstd",
        "fse;zstd",
        "delta>" * 65 + "zstd",
        "best(fse," * 17 + "fse" + ")" * 17,
    ],
)
def test_a_recipe_that_is_none(wrong):
    with pytest.raises(ValueError, match="codec") as caught:
        codecs.parse(wrong)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_lists_what_there_is():
    said = refuses("delta>lzma")
    assert "lzma" in said
    assert all(name in said for name in (*codecs.STEPS, *codecs.LEAVES))
    assert all(name in refuses("smal") for name in codecs.PRESETS)


@pytest.mark.parametrize("wrong", [None, 5, ["zstd"], b"zstd", 1.0])
def test_a_codec_of_the_wrong_kind(wrong):
    with pytest.raises(TypeError):
        resolved(wrong, oracle.ramp(1, 4, 4))


@given(st.text(alphabet="delta>zigsp:x0123456789(),fbock ", max_size=40))
def test_any_text_is_a_recipe_or_a_value_error(text):
    try:
        recipe = codecs.parse(text)
    except ValueError:
        return
    assert codecs.parse(str(recipe)) == recipe


# --- Every recipe on every input


@WIDTHS
def test_every_recipe_is_lossless_on_every_input(width):
    inputs = nasty(width)
    for recipe in RECIPES:
        encoder = codecs.FrameEncoder(codecs.parse(recipe), width)
        for samples in inputs:
            frame = encoder.encode(samples)
            check_frame(frame, samples, width)
            assert len(frame) < samples.nbytes + 200, recipe


@pytest.mark.parametrize("pair", oracle.DTYPES, ids=oracle.PAIR_IDS)
def test_every_encoding_with_every_preset(tmp_path, pair):
    values = oracle.random_samples(pair, (2, 21, 19))
    for codec in ("auto", "fast", "small", "delta>zigzag>blocks:4x8>words"):
        for unit in ("tile", "cell"):
            header = rumi.write(
                tmp_path / "a.rumi", values, tile_size=16, frame_unit=unit, codec=codec
            )
            assert oracle.same_bits(rumi.read(tmp_path / "a.rumi", header), values)


@WIDTHS
def test_a_constant_frame_is_its_value(width):
    for value in (0, 1, np.iinfo(UNSIGNED[width]).max):
        samples = np.full((512, 512), value, UNSIGNED[width])
        for recipe in PRESETS_FOUND:
            frame = codecs.FrameEncoder(codecs.parse(recipe), width).encode(samples)
            check_frame(frame, samples, width)
            assert len(frame) < 50
    # All but one sample of a frame are the same.
    samples[-1, -1] = 0
    frame = codecs.FrameEncoder(codecs.parse("zstd"), width).encode(samples)
    check_frame(frame, samples, width)


@pytest.mark.parametrize("recipe", PRESETS_FOUND)
def test_a_frame_is_the_same_whatever_was_compressed_before(recipe):
    samples = nasty(2)
    encoder = codecs.FrameEncoder(codecs.parse(recipe), 2)
    first = [encoder.encode(array) for array in samples]
    assert [encoder.encode(array) for array in reversed(samples)] == first[::-1]
    for array, frame in zip(samples, first, strict=True):
        assert codecs.FrameEncoder(codecs.parse(recipe), 2).encode(array) == frame


def test_samples_that_are_not_aligned():
    raw = np.zeros(2 * 4096 + 1, np.uint8)
    samples = raw[1:].view(np.uint16).reshape(64, 64)
    samples[:] = np.arange(4096).reshape(64, 64)
    frame = codecs.FrameEncoder(codecs.parse("delta>zigzag>blocks:4x8>words"), 2).encode(samples)
    check_frame(frame, samples, 2)


def test_blocks_are_worth_their_classes():
    """A picture that is calm here and wild there, which one entropy code cannot do justice to."""
    rng = np.random.default_rng(5)
    steps = rng.normal(size=(256, 256)) * np.where(np.arange(256) % 128 < 64, 2, 60)
    values = (np.cumsum(steps, axis=1) + 30000).astype(np.uint16)

    def size(recipe):
        return len(codecs.FrameEncoder(codecs.parse(recipe), 2).encode(values))

    assert size("delta>zigzag>blocks:4x8>words") < 0.9 * size("delta>zigzag>lanes>entropy")


def test_planar_and_spectral_see_what_delta_does_not():
    rng = np.random.default_rng(6)
    across = rng.integers(-200, 200, 256).cumsum()
    down = rng.integers(-200, 200, 256).cumsum()
    plane = (across[None, :] + down[:, None] + 20000).astype(np.uint16)
    noisy = plane + rng.integers(0, 3, plane.shape).astype(np.uint16)
    cell = np.stack([noisy + 5, noisy + 900, noisy + 77])

    def size(recipe, samples):
        return len(codecs.FrameEncoder(codecs.parse(recipe), 2).encode(samples))

    assert size("planar>zigzag>words", noisy) < 0.4 * size("delta>zigzag>words", noisy)
    assert size("spectral>zigzag>words", cell) < 0.6 * size("delta>zigzag>words", cell)


# --- Presets


def made(kind, dtype=np.uint16, side=512, bands=1):
    """An image of a kind, for what presets make of it."""
    rng = np.random.default_rng(9)
    shape = (bands, side, side)
    match kind:
        case "texture":
            scale = np.repeat(
                np.repeat(rng.uniform(1, 60, (bands, side // 32, side // 32)), 32, 1), 32, 2
            )
            return (np.cumsum(rng.normal(size=shape) * scale, axis=2) / 8 + 20000).astype(dtype)
        case "surface":
            along = np.cumsum(rng.normal(size=(bands, 1, side)), 2) * 20
            down = np.cumsum(rng.normal(size=(bands, side, 1)), 1) * 20
            return (along + down + rng.normal(size=shape) + 5000).astype(dtype)
        case "quantised":
            return (np.cumsum(rng.integers(-2, 3, shape), 2) * 0.25 + 100).astype(np.float32)
        case "mask":
            return (
                np.repeat(np.repeat(rng.random((bands, side // 64, side // 64)), 64, 1), 64, 2)
                > 0.5
            ).astype(dtype)
        case "noise":
            return rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
        case "speckle":
            pairs = np.empty(shape, [("real", "<i2"), ("imag", "<i2")])
            pairs["real"], pairs["imag"] = rng.normal(size=(2, *shape)) * 40
            return pairs
    raise AssertionError(kind)


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("texture", "delta>zigzag>blocks:4x8"),
        ("surface", "planar>zigzag"),
        ("quantised", "tokenize"),
        ("mask", "zstd"),
        ("speckle", "cast:2>zigzag"),
    ],
)
def test_auto_sees_what_an_image_is(kind, step):
    assert step in resolved("auto", made(kind)).name


def test_auto_uses_bands_that_resemble_each_other():
    rng = np.random.default_rng(10)
    alike = made("noise", np.uint8, 256) // 2 + rng.integers(0, 4, (4, 256, 256), np.uint8)
    assert "spectral" in resolved("auto", alike, unit="cell").name
    assert "spectral" not in resolved("auto", alike, unit="tile").name


def test_presets_are_in_order_of_size(tmp_path):
    values = made("texture")
    sizes = {
        codec: rumi.write(tmp_path / "a.rumi", values, codec=codec).file_size
        for codec in ("small", "auto", "fast", "store")
    }
    assert sizes["small"] < sizes["auto"] < sizes["fast"] < sizes["store"]


def test_auto_is_balanced_and_says_what_it_found():
    values = made("texture")
    found = resolved("auto", values)
    assert found == resolved("balanced", values) == resolved(" AUTO ", values)
    assert str(codecs.parse(found.name)) == found.name
    assert resolved(found.name, values) == found
    assert (found.lossy, found.needs_geozl, found.picklable) == (False, False, True)
    assert pickle.loads(pickle.dumps(found)) == found


def test_small_says_what_it_found():
    found = resolved("small", made("texture"))
    assert "blocks" in found.name
    assert str(codecs.parse(found.name)) == found.name
    assert not found.needs_geozl


@pytest.mark.parametrize("kind", ["texture", "quantised", "mask", "noise", "speckle"])
def test_a_preset_chooses_the_same_every_time(kind):
    values = made(kind)
    grid = grid_of(values)
    samples = sample_frames(make_source(values), grid)
    for policy in POLICIES.values():
        assert len({choose(samples, grid.encoding, policy) for _ in range(3)}) == 1
    assert len({search(samples, grid.encoding) for _ in range(2)}) == 1


def test_another_process_chooses_and_writes_the_same(tmp_path):
    np.save(tmp_path / "a.npy", made("texture", side=256))
    program = (
        "import sys, numpy, rumi; folder, codec = sys.argv[1:]; "
        "rumi.write(f'{folder}/{codec}.rumi', numpy.load(f'{folder}/a.npy'), codec=codec)"
    )
    for codec in ("auto", "small"):
        rumi.write(tmp_path / "b.rumi", np.load(tmp_path / "a.npy"), codec=codec)
        command = [sys.executable, "-c", program, str(tmp_path), codec]
        subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
        assert (tmp_path / f"{codec}.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()


def test_nothing_is_sampled_where_nothing_is_chosen():
    def samples(**_):
        raise AssertionError("samples were asked for")

    encoding = encodings.from_dtype(np.uint16)
    assert codecs.resolve("zstd", encoding, samples).name == "zstd"


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (1, 1, 700), (700, 1, 1), (3, 7, 5), (2, 600, 9), (1, 9, 600)]
)
@UNITS
def test_samples_of_any_shape(shape, unit):
    values = oracle.ramp(*shape)
    grid = grid_of(values, 64, unit)
    for thorough in (False, True):
        samples = sample_frames(make_source(values), grid, thorough=thorough)
        assert samples.strips
        assert samples.planes == (shape[0] if grid.frame_unit == "cell" else 1)
        assert sum(strip.nbytes for strip in samples.strips) <= values.nbytes
        assert all(strip.flags.c_contiguous and strip.size for strip in samples.strips)


def test_samples_are_of_all_places_and_never_twice():
    values = np.arange(4 * 512 * 512, dtype=np.uint32).reshape(4, 512, 512)
    for thorough in (False, True):
        samples = sample_frames(make_source(values), grid_of(values, 256), thorough=thorough)
        found = np.concatenate([strip.reshape(-1) for strip in samples.strips])
        assert np.unique(found).size == found.size
        assert set(np.unique(found // (512 * 512))) == {0, 1, 2, 3}


# --- Codec objects and builders


def test_a_codec_is_used_again(tmp_path):
    values = made("texture", side=128)
    found = resolved("auto", values)
    rumi.write(tmp_path / "a.rumi", values, codec=found)
    rumi.write(tmp_path / "b.rumi", values, codec=found.name)
    assert (tmp_path / "a.rumi").read_bytes() == (tmp_path / "b.rumi").read_bytes()
    with pytest.raises(ValueError, match="uint16"):
        rumi.write(tmp_path / "a.rumi", values.astype(np.uint8), codec=found)
    with pytest.raises(ValueError, match="error"):
        rumi.write(tmp_path / "a.rumi", values, codec=found, error=1)


def fields(compressor):
    return openzl.nodes.DeltaInt()(compressor, openzl.graphs.FieldLz()(compressor))


def test_a_builder_of_ones_own(tmp_path):
    values = oracle.ramp(2, 40, 50)
    found = resolved(fields, values)
    assert (found.name, found.picklable, found.lossy) == ("builder fields", False, False)
    header = rumi.write(tmp_path / "a.rumi", values, tile_size=16, codec=fields)
    assert oracle.same_bits(rumi.read(tmp_path / "a.rumi", header), values)
    for samples in nasty(4):
        check_frame(codecs.FrameEncoder(fields, 4).encode(samples), samples, 4)


def test_a_builder_that_fails_leaves_no_file(tmp_path):
    def broken(compressor):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        rumi.write(tmp_path / "a.rumi", oracle.ramp(1, 4, 4), codec=broken)
    with pytest.raises(TypeError, match="GraphID"):
        rumi.write(tmp_path / "a.rumi", oracle.ramp(1, 4, 4), codec=lambda compressor: "zstd")
    assert list(tmp_path.iterdir()) == []


def test_an_error_goes_with_geozl_only():
    values = oracle.ramp(1, 4, 4)
    for codec in ("auto", "small", "zstd", fields, "geozl:small"):
        assert "geozl" in refuses(codec, values, error=1)


# --- geozl

LOSSLESS = [
    "geozl:planar>zigzag>zstd",
    "geozl:planar>zigzag>transpose>entropy",
    "geozl:med>zigzag>transpose>zstd",
    "geozl:planar>zigzag>pfor",
    "geozl:med>zigzag>blocks:4x8>words",
    "geozl:planar>zigzag>blocks:4x4>buckets:4>fse",
    "geozl:average>lanes(zstd:1,fse)",
]


@GEOZL
@UNITS
@pytest.mark.parametrize("codec", LOSSLESS)
def test_recipes_of_geozl(tmp_path, codec, unit):
    path = tmp_path / "a.rumi"
    for dtype in (np.uint16, np.int16, np.float32, np.float64, np.complex64, np.complex128):
        for values in (
            oracle.ramp(3, 40, 50).astype(dtype),
            oracle.random_samples(oracle.pair_of(np.dtype(dtype)), (3, 40, 50)),
            np.zeros((2, 1, 1), dtype),
        ):
            header = rumi.write(path, values, tile_size=32, frame_unit=unit, codec=codec)
            assert oracle.same_bits(rumi.read(path, header), values)
    found = resolved(codec, oracle.ramp(1, 8, 8))
    assert found.needs_geozl
    assert not found.lossy
    assert pickle.loads(pickle.dumps(found)) == found


@GEOZL
@pytest.mark.parametrize("codec", LOSSLESS)
def test_frames_of_geozl(codec):
    encoder = resolved(codec, oracle.ramp(1, 8, 8, np.uint16)).encoder()
    for samples in nasty(2):
        frame = encoder.encode(samples)
        assert frame[:4] == (0xD7B1A5C0 + 24).to_bytes(4, "little")
        assert frame[4] & 3 == 3
        assert openzl.FrameInfo(frame).num_outputs == 1
        assert openzl.FrameInfo(frame).output_type(0) == openzl.Type.Numeric
        assert backends.decoder("geozl").matches(frame, samples.reshape(-1).view(np.uint8))
        assert encoder.encode(samples) == frame


@GEOZL
def test_a_recipe_of_geozl_that_needs_no_geozl():
    found = resolved("geozl:id>zstd", oracle.ramp(1, 8, 8, np.uint16))
    assert not found.needs_geozl
    check_frame(found.encoder().encode(nasty(2)[8]), nasty(2)[8], 2)


@GEOZL
def test_geozl_refuses():
    assert "foo" in refuses("geozl:foo>zstd")
    assert "geozl:" in refuses("geozl:")
    assert "error" in refuses("geozl:planar>zigzag>zstd", error="much")
    assert "error" in refuses("geozl:med>zigzag>blocks:4x8>words", error=2)
    assert "lzma" in refuses("geozl:med>zigzag>blocks:4x8>lzma")
    # Another frame format version than a file may hold.
    with pytest.raises(UnsupportedError, match="27"):
        resolved("geozl:med>zigzag>pivco", oracle.ramp(1, 8, 8).astype(np.uint8))
    for dtype in (np.complex64, np.bool_, ml_dtypes.bfloat16):
        with pytest.raises(UnsupportedError, match="error"):
            resolved("geozl:planar>zigzag>zstd", np.zeros((1, 8, 8), dtype), error=1)


@GEOZL
@pytest.mark.parametrize(
    ("dtype", "error", "bound"),
    [
        (np.uint16, 2, lambda values: 2),
        (np.int16, 3, lambda values: 3),
        (np.uint8, 1, lambda values: 1),
        (np.float32, 0.25, lambda values: 0.25),
        (np.float64, 0.5, lambda values: 0.5),
        (np.float32, "1%", lambda values: 0.01 * np.abs(values)),
    ],
)
@UNITS
def test_an_error_is_honoured(tmp_path, dtype, error, bound, unit):
    rng = np.random.default_rng(11)
    values = (rng.normal(size=(2, 90, 100)) * 20 + 120).clip(1, 250).astype(dtype)
    recipe = "geozl:planar>zigzag>zstd"
    found = resolved(recipe, values, error=error)
    assert found.lossy
    assert found.needs_geozl
    assert found.name == f"{recipe}, error {error}"
    path = tmp_path / "a.rumi"
    header = rumi.write(path, values, tile_size=64, frame_unit=unit, codec=recipe, error=error)
    read = rumi.read(path, header)
    off = np.abs(read.astype(np.float64) - values.astype(np.float64))
    assert (off <= bound(values.astype(np.float64)) * (1 + 1e-6)).all()
    assert off.max() > 0
    exact = rumi.write(tmp_path / "b.rumi", values, tile_size=64, frame_unit=unit, codec=recipe)
    assert header.file_size < exact.file_size


@GEOZL
def test_the_smallest_with_geozl(tmp_path):
    values = made("surface")
    found = resolved("geozl:small", values)
    assert resolved(found.name, values) == found
    header = rumi.write(tmp_path / "a.rumi", values, codec="geozl:small")
    small = rumi.write(tmp_path / "b.rumi", values, codec="small")
    assert header.file_size <= 1.01 * small.file_size
    assert oracle.same_bits(rumi.read(tmp_path / "a.rumi"), values)


def test_without_geozl(monkeypatch):
    monkeypatch.setitem(sys.modules, "geozl", None)
    for codec in ("geozl:planar>zigzag>zstd", "geozl:small", "geozl:med>zigzag>blocks:4x8>words"):
        with pytest.raises(UnsupportedError, match=r"rumi\[geozl\]"):
            resolved(codec, oracle.ramp(1, 8, 8))


def test_which_recipes_are_mixed():
    assert geozl_recipes.mixed("med>zigzag>blocks:4x8>words")
    assert geozl_recipes.mixed("planar>lanes(zstd,fse)")
    assert geozl_recipes.mixed("planar>zigzag>transpose>entropy") is None
    assert geozl_recipes.mixed("planar>zigzag>zstd") is None
    assert geozl_recipes.mixed("foo>blocks:4x8>words") is None


# --- Profiles


def test_a_profile_of_an_array(tmp_path):
    values = made("texture", side=128)
    profile = codecs.profile(values, tile_size=64)
    assert (profile.shape, profile.dtype, profile.frames) == ((1, 128, 128), np.uint16, 4)
    sizes = [row.bytes for row in profile]
    assert sizes == sorted(sizes)
    assert all(row.bytes * row.ratio == pytest.approx(values.nbytes) for row in profile)
    assert all(row.encode_mbps > 0 and row.decode_mbps > 0 for row in profile)
    # The front: the smallest, and whatever decodes faster than all that is smaller.
    assert profile[0].front
    for index, row in enumerate(profile):
        faster = all(row.decode_mbps > other.decode_mbps for other in profile[:index])
        assert row.front == faster
    presets = {preset for row in profile for preset in row.presets}
    assert {"auto", "fast", "small"} <= presets
    with_geozl = any(row.recipe.startswith("geozl:") for row in profile)
    assert with_geozl == backends.geozl_available()
    table = str(profile)
    assert len(table.splitlines()) == len(profile) + 2
    assert profile[0].recipe in table


def test_a_profile_of_some_recipes(tmp_path):
    values = oracle.ramp(3, 40, 50)
    profile = codecs.profile(values, frame_unit="cell", recipes=["zstd", "auto", fields])
    assert {"zstd", "builder fields"} <= {row.recipe for row in profile}
    assert profile.frames == 1
    with pytest.raises(ValueError, match="lzma"):
        codecs.profile(values, recipes=["lzma"])
    for wrong in ({"tile_size": 0}, {"tile_size": (1, 2, 3)}, {"frame_unit": "band"}):
        with pytest.raises(ValueError, match="tile"):
            codecs.profile(values, **wrong)


def test_a_profile_of_files(tmp_path):
    values = oracle.ramp(2, 40, 50)
    rumi.write(tmp_path / "a.rumi", values, tile_size=16)
    of_array = codecs.profile(values, recipes=["zstd"])
    of_file = codecs.profile(tmp_path / "a.rumi", recipes=["zstd"])
    assert of_file[0].bytes == of_array[0].bytes
    with pytest.raises(FileNotFoundError):
        codecs.profile(tmp_path / "none.rumi")


@SHARED
def test_a_profile_of_a_geotiff():
    pytest.importorskip("rasterio", reason="rasterio is not installed, so no GeoTIFF is profiled")
    profile = codecs.profile(BENCH / "sar_slc_cint16.tif", recipes=["cast:2>zigzag>lanes>zstd:1"])
    assert profile.dtype == np.dtype([("real", "<i2"), ("imag", "<i2")])
    assert profile[0].ratio > 2


def test_a_plot(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed, so nothing is plotted")
    profile = codecs.profile(oracle.ramp(1, 40, 50), recipes=["zstd", "auto", "store"])
    profile.plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_without_matplotlib(tmp_path, monkeypatch):
    profile = codecs.profile(oracle.ramp(1, 8, 8), recipes=["zstd"])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnsupportedError, match=r"rumi\[plot\]"):
        profile.plot(tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


# --- Real scenes

FOUND = {
    "landsat8_3band_utm21.tif": ("delta>zigzag>blocks", 2.2),
    "sentinel2_6band_20m.tif": ("delta>zigzag>blocks", 1.7),
    "dem_int16_alps.tif": ("planar>zigzag>blocks", 8.3),
    "dsm_float32_1m.tif": ("tokenize>delta>zigzag>blocks", 4.0),
    "climate_float32.tif": ("delta>zigzag", 2.1),
    "landsat7_6band_uint8.tif": ("delta>zigzag>blocks", 1.5),
    "naip_4band_uint8.tif": ("planar>zigzag", 1.45),
    "sar_uint8_rotated.tif": ("blocks", 1.4),
    "sun_angle_int32.tif": ("zstd", 100.0),
}


@SHARED
@pytest.mark.parametrize("name", FOUND)
def test_auto_on_a_real_scene(tmp_path, name):
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed")
    with rasterio.open(BENCH / name) as dataset:
        values = dataset.read()
    recipe, ratio = FOUND[name]
    assert recipe in resolved("auto", values).name
    header = rumi.write(tmp_path / "a.rumi", values)
    assert values.nbytes / header.file_size > ratio
    assert oracle.same_bits(rumi.read(tmp_path / "a.rumi", header), values)
