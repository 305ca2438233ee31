"""Chips as tensors: the same pixels in every kind of worker, reproducible, small to send."""

import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import servers

import rumi

pytest.importorskip("pyarrow", reason="pyarrow is not installed, and catalogs are Parquet")
torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")

from torch.utils.data import DataLoader  # noqa: E402

from rumi.catalog import Catalog  # noqa: E402
from rumi.torch import ChipDataset, ChipStream, as_tensor  # noqa: E402

pytestmark = [
    # Of machines with one processor.
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    # What Python 3.12 and later say of every fork of a process with threads.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

TRANSFORM = (30.0, 0.0, 735345.0, 0.0, -30.0, -2801355.0)
METHODS = ["fork", "spawn", "forkserver"]
SHAPES = [(40, 50), (32, 32), (64, 33), (33, 90)]


def pixels(number, bands=2, dtype=np.uint16):
    shape = (bands, *SHAPES[number % len(SHAPES)])
    return np.random.default_rng(number).integers(0, 200, shape).astype(dtype)


def write(path, array, **options):
    placed = {"crs": 32621, "transform": TRANSFORM, "tile_size": 16, "codec": "store"}
    return rumi.write(path, array, **(placed | options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of four sizes, and labels on their grids."""
    made = tmp_path_factory.mktemp("torch")
    for name in ("images", "labels"):
        (made / name).mkdir()
    for number in range(8):
        array = pixels(number)
        write(made / "images" / f"{number}.rumi", array)
        write(made / "labels" / f"{number}.rumi", (array[:1] > 100).astype(np.uint8))
    for name in ("images", "labels"):
        Catalog.build(made / name, made / f"{name}.parquet")
    return made


@pytest.fixture(scope="module")
def catalog(folder):
    return Catalog.open(folder / "images.parquet")


@pytest.fixture(scope="module")
def labels(folder):
    return Catalog.open(folder / "labels.parquet")


def expected(dataset, index):
    row, (top, left, height, width) = dataset.locate(index)
    return pixels(row)[:, top : top + height, left : left + width]


# --- Chips by number


@pytest.mark.parametrize("mode", ["grid", "random"])
def test_chips_are_the_pixels(catalog, mode):
    dataset = ChipDataset(catalog, 16, mode=mode, seed=4)
    assert len(dataset) == len(dataset.chips) == 2 * (12 + 4 + 12 + 18)
    batch = dataset.__getitems__(list(range(len(dataset))))
    for index, chip in enumerate(batch):
        assert chip.dtype == torch.uint16
        np.testing.assert_array_equal(chip.numpy(), expected(dataset, index))
    assert torch.equal(dataset[7], batch[7])
    with pytest.raises(IndexError):
        dataset[len(dataset)]
    with pytest.raises(IndexError):
        dataset[-1]


def test_tensors_own_their_memory(catalog):
    for chip in ChipDataset(catalog, 16).__getitems__([0, 1, 2]):
        assert chip.untyped_storage().nbytes() == chip.nbytes
        chip.zero_()
    as_floats = ChipDataset(catalog, 16, dtype=torch.float32).__getitems__([0, 1])
    assert [chip.untyped_storage().nbytes() for chip in as_floats] == [2 * 16 * 16 * 4] * 2
    one = ChipDataset(catalog, 16)[3]
    assert one.untyped_storage().nbytes() == one.nbytes


def test_bands_types_and_transforms(catalog, labels):
    dataset = ChipDataset(
        catalog,
        (8, 12),
        stride=(16, 16),
        bands=[1],
        dtype=torch.float32,
        labels=labels,
        label_dtype=torch.int64,
        transform=lambda image, label: {"x": image / 2, "y": label[0]},
    )
    sample = dataset[5]
    wanted = expected(dataset, 5)
    assert sample["x"].shape == (1, 8, 12)
    assert sample["y"].dtype == torch.int64
    np.testing.assert_array_equal(sample["x"].numpy()[0] * 2, wanted[1])
    np.testing.assert_array_equal(sample["y"].numpy(), wanted[0] > 100)
    image, label = ChipDataset(catalog, 16, labels=labels)[0]
    assert (image.shape, label.shape) == ((2, 16, 16), (1, 16, 16))


def test_random_chips_by_seed_and_epoch(catalog):
    first, again, other = (ChipDataset(catalog, 16, mode="random", seed=s) for s in (1, 1, 2))
    places = [first.locate(index) for index in range(len(first))]
    assert [again.locate(index) for index in range(len(first))] == places
    assert [other.locate(index) for index in range(len(first))] != places
    again.set_epoch(3)
    assert [again.locate(index) for index in range(len(first))] != places
    again.set_epoch(0)
    assert again.locate(11) == places[11]


def test_mistakes_are_found_at_once(catalog, labels, tmp_path):
    with pytest.raises(ValueError, match=r"row 1 \(.*1\.rumi\).*32 x 32"):
        ChipDataset(catalog, 33)
    with pytest.raises(TypeError, match="no such option: chip"):
        ChipDataset(catalog, 16, chip=3)
    with pytest.raises(ValueError, match="min_valid"):
        ChipDataset(catalog, 16, min_valid=50)
    with pytest.raises(ValueError, match="labels: expected 8 rows"):
        ChipDataset(catalog, 16, labels=labels[:3])
    with pytest.raises(ValueError, match=r"labels: row 0 .*height and width"):
        ChipDataset(catalog, 16, labels=labels[::-1])
    with pytest.raises(ValueError, match="at least one row"):
        ChipDataset(catalog[[]], 16)
    write(tmp_path / "0.rumi", pixels(0)[:1], transform=(*TRANSFORM[:5], 0.0))
    moved = Catalog.build(tmp_path, tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="labels: row 0 .*transform"):
        ChipDataset(catalog[:1], 16, labels=moved)
    write(tmp_path / "1.rumi", pixels(0).astype(np.int16))
    write(tmp_path / "0.rumi", pixels(0))
    mixed = Catalog.build(tmp_path, tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"row 1 \(1\.rumi\): sample_format: expected 1"):
        ChipDataset(mixed, 16)
    write(tmp_path / "1.rumi", pixels(0, bands=3))
    mixed = Catalog.build(tmp_path, tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="samples_per_pixel"):
        ChipDataset(mixed, 16)
    assert ChipDataset(mixed, 16, bands=[1, 0])[0].shape == (2, 16, 16)


# --- Valid pixels


@pytest.fixture
def holes(tmp_path):
    """One image with nodata in its right half, one without any, one of NaN in a corner."""
    array = np.ones((2, 32, 64), np.float32)
    array[1, :, 32:] = -9999
    write(tmp_path / "0.rumi", array)
    write(tmp_path / "1.rumi", array)
    array[:, :16, :16] = np.nan
    write(tmp_path / "2.rumi", array)
    columns = {"nodata": [-9999, None, None]}
    paths = [tmp_path / f"{number}.rumi" for number in range(3)]
    return Catalog.build(paths, tmp_path / "c.parquet", columns=columns)


def test_chips_without_valid_pixels_are_left_out(holes):
    dataset = ChipDataset(holes, 16, min_valid=0.5)
    shares = dataset.valid_shares()
    np.testing.assert_array_equal(shares, [1, 1, 0, 0] * 2 + [1] * 8 + [0] + [1] * 7)
    assert len(dataset) == 4 + 8 + 7
    assert all(not torch.isnan(chip).any() and (chip[:, 0, 0] > -1).any() for chip in dataset)
    assert dataset.locate(4) == (1, (0, 0, 16, 16))
    again = pickle.loads(pickle.dumps(dataset))
    assert [again.locate(i) for i in range(len(again))] == [dataset.locate(i) for i in range(19)]
    for bad in (19, -1):
        with pytest.raises(IndexError, match="0..18"):
            dataset[bad]
    # The band with nodata is not read.
    assert len(ChipDataset(holes[:1], 16, bands=0, min_valid=1)) == 8


def test_random_chips_are_drawn_again(holes):
    dataset = ChipDataset(holes[:1], 8, mode="random", min_valid=0.9)
    plain = ChipDataset(holes[:1], 8, mode="random")
    valid = [(chip[1] == 1).float().mean() for chip in dataset.__getitems__(range(len(dataset)))]
    without = [(chip[1] == 1).float().mean() for chip in plain.__getitems__(range(len(plain)))]
    assert min(valid) >= 0.9
    assert min(without) == 0
    # The same chip alone as in a batch, with its label at the same place.
    pair = ChipDataset(holes[:1], 8, mode="random", min_valid=0.9, labels=holes[:1])
    for index in (0, 5, 9):
        image, label = pair[index]
        assert torch.equal(image, label)
        assert torch.equal(image, dataset[index])
    # Nothing can be valid here, so the best of the draws is taken.
    none = ChipDataset(holes[2:], 64 // 2, mode="random", min_valid=1.0)
    assert len(none) == 2
    assert none[0].shape == (2, 32, 32)


# --- Types


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("bool", "bool"),
        ("uint8", "uint8"),
        ("int8", "int8"),
        ("uint32", "uint32"),
        ("uint64", "uint64"),
        ("int64", "int64"),
        ("float16", "float16"),
        ("float64", "float64"),
        ("complex64", "complex64"),
        ("complex128", "complex128"),
        ("bfloat16", "bfloat16"),
        ("float8_e4m3fn", "float8_e4m3fn"),
        ("float8_e5m2", "float8_e5m2"),
        ("float8_e8m0fnu", "float8_e8m0fnu"),
    ],
)
def test_types_that_torch_has(tmp_path, dtype, name):
    if dtype.startswith(("bfloat", "float8")):
        ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
        kind = np.dtype(getattr(ml_dtypes, dtype))
    else:
        kind = np.dtype(dtype)
    bits = np.random.default_rng(0).integers(0, 256, (1, 16, 16 * kind.itemsize), dtype=np.uint8)
    array = bits.view(kind) if dtype != "bool" else bits > 100
    write(tmp_path / "x.rumi", array)
    chip = ChipDataset(Catalog.build(tmp_path, tmp_path / "c.parquet"), 16)[0]
    assert chip.dtype == getattr(torch, name)
    assert chip.view(torch.uint8).numpy().tobytes() == array.tobytes()


def test_types_that_torch_lacks(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    values = np.arange(256).reshape(1, 16, 16) % 8
    for name in ("uint4", "int4", "uint2", "float4_e2m1fn", "float6_e2m3fn"):
        array = (values % 2).astype(getattr(ml_dtypes, name))
        write(tmp_path / "x.rumi", array)
        catalog = Catalog.build(tmp_path, tmp_path / "c.parquet")
        with pytest.raises(rumi.UnsupportedError, match=rf"{name}.*dtype="):
            ChipDataset(catalog, 16)
        chip = ChipDataset(catalog, 16, dtype=torch.int32)[0]
        np.testing.assert_array_equal(chip.numpy(), values % 2)
    pair = np.zeros((1, 16, 16), [("real", "<i2"), ("imag", "<i2")])
    with pytest.raises(rumi.UnsupportedError, match="complex samples of two int16"):
        as_tensor(pair, torch.complex64)


# --- Workers


def everything(loader):
    """Return all samples of a loader, in an order that does not depend on who read them."""
    return sorted(chip.numpy().tobytes() for batch in loader for chip in batch)


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_worker_reads_the_same(catalog, method):
    dataset = ChipDataset(catalog, 16, mode="random")
    chips = [dataset[index].numpy().tobytes() for index in range(len(dataset))]
    loader = DataLoader(
        dataset,
        batch_size=9,
        num_workers=2,
        multiprocessing_context=method,
        persistent_workers=True,
    )
    assert everything(loader) == sorted(chips)
    # Workers that persist see the new epoch.
    dataset.set_epoch(1)
    new = everything(loader)
    assert new != sorted(chips)
    assert new == sorted(dataset[index].numpy().tobytes() for index in range(len(dataset)))


@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("forkserver", 1)])
def test_workers_share_a_stream(catalog, method, workers):
    stream = ChipStream(catalog, 16, shuffle=10, run=5)
    grid = everything([list(stream)])
    loader = DataLoader(stream, batch_size=9, num_workers=workers, multiprocessing_context=method)
    assert everything(loader) == grid


@pytest.mark.parametrize("method", METHODS)
def test_workers_of_a_parent_that_reads(catalog, method):
    """C28: it has read with four threads before, and goes on reading in another one."""
    dataset = ChipDataset(catalog, 16, threads=4)
    chips = sorted(chip.numpy().tobytes() for chip in dataset.__getitems__(range(len(dataset))))
    ended = threading.Event()

    def go_on():
        while not ended.wait(0.002):
            dataset.__getitems__(range(32))

    reader = threading.Thread(target=go_on)
    reader.start()
    try:
        loader = DataLoader(
            dataset, batch_size=9, num_workers=2, multiprocessing_context=method, timeout=60
        )
        assert everything(loader) == chips
    finally:
        ended.set()
        reader.join()


@pytest.mark.parametrize("method", METHODS)
def test_workers_read_from_a_server(catalog, folder, tmp_path, method):
    """Of each file its frames, and nothing that tells of them."""
    pytest.importorskip("obstore", reason="obstore is not installed, so no server is asked")
    chips = ChipDataset(catalog, 16)
    with servers.RangeServer() as server:
        urls = [
            server.put(f"/{number}.rumi", (folder / "images" / f"{number}.rumi").read_bytes())
            for number in range(8)
        ]
        remote = Catalog.build(urls, tmp_path / "c.parquet")
        dataset = ChipDataset(remote, 16)
        assert torch.equal(dataset[0], chips[0])
        server.log.clear()
        loader = DataLoader(
            dataset, batch_size=9, num_workers=2, multiprocessing_context=method, timeout=60
        )
        assert everything(loader) == everything([list(chips)])
        assert {request.method for request in server.log} == {"GET"}
        first = min(header.base_frame_offset for header in remote.headers)
        assert min(start for start, _ in server.ranges()) >= first


def test_tensors_of_images_and_tensors_to_read_into(catalog):
    image = catalog.image(3)
    assert torch.equal(torch.from_dlpack(image), torch.from_numpy(pixels(3)))
    assert torch.equal(torch.as_tensor(np.asarray(image)), torch.from_numpy(pixels(3)))
    out = torch.zeros((33, 90, 2), dtype=torch.uint16)
    image.read(out=out.permute(2, 0, 1))
    np.testing.assert_array_equal(out.numpy().transpose(2, 0, 1), pixels(3))


def test_pinned_memory(catalog):
    with warnings.catch_warnings():
        # Without an accelerator torch says so, and pins nothing.
        warnings.simplefilter("ignore")
        batches = list(DataLoader(ChipDataset(catalog, 16), batch_size=50, pin_memory=True))
    assert sum(len(batch) for batch in batches) == 92
    assert batches[0].is_pinned() == torch.accelerator.is_available()


def test_datasets_pickle_small_and_take_no_pixels(catalog, labels):
    for made in (ChipDataset(catalog, 16, labels=labels), ChipStream(catalog, 16)):
        blob = pickle.dumps(made)
        assert len(blob) < 2000
        again = pickle.loads(blob)
        assert len(again) == len(made)
        first, second = next(iter(again)), next(iter(made))
        if isinstance(first, tuple):
            first, second = first[0], second[0]
        assert torch.equal(first, second)


def test_memory_stays_flat(catalog):
    psutil = pytest.importorskip("psutil", reason="psutil is not installed to measure memory")
    dataset = ChipDataset(catalog, 16)
    process = psutil.Process()

    def read(count):
        for start in range(0, count, 32):
            dataset.__getitems__([(start + item) % len(dataset) for item in range(32)])
        return process.memory_info().rss

    before = read(2000)
    assert read(10_000) - before < 8 << 20


# --- Streams


def test_a_stream_gives_every_chip_once(catalog):
    dataset = ChipDataset(catalog, 16)
    chips = [dataset[index] for index in range(len(dataset))]
    stream = ChipStream(catalog, 16, shuffle=0)
    assert len(stream) == len(chips)
    assert all(torch.equal(a, b) for a, b in zip(stream, chips, strict=True))
    mixed = list(ChipStream(catalog, 16, shuffle=20, seed=1))
    assert everything([mixed]) == everything([chips])
    assert not all(torch.equal(a, b) for a, b in zip(mixed, chips, strict=True))
    again = ChipStream(catalog, 16, shuffle=20, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(mixed, again, strict=True))
    again.set_epoch(1)
    other = list(again)
    assert not all(torch.equal(a, b) for a, b in zip(mixed, other, strict=True))
    assert everything([other]) == everything([chips])
    # A buffer that holds everything, and one of one.
    for size in (1, 1000):
        assert everything([list(ChipStream(catalog, 16, shuffle=size))]) == everything([chips])


def test_ranks_share_the_chips_evenly(catalog):
    parts = []
    for rank in range(3):
        stream = ChipStream(catalog, 16, shuffle=8, rank=rank, world_size=3, run=7)
        assert len(stream) == 92 // 3
        parts.append(list(DataLoader(stream, batch_size=None, num_workers=2)))
        assert len(parts[-1]) == 92 // 3
    seen = [chip.numpy().tobytes() for part in parts for chip in part]
    assert len(set(seen)) == len(seen) == 90
    for bad in ({"rank": 1}, {"rank": 3, "world_size": 3}, {"shuffle": -1}, {"run": 0}):
        with pytest.raises(ValueError, match="rank|shuffle"):
            ChipStream(catalog, 16, **bad)


def test_a_stream_leaves_out_chips_without_valid_pixels(holes):
    stream = ChipStream(holes, 16, min_valid=0.5, shuffle=4)
    assert len(list(stream)) == 19
    with pytest.raises(TypeError, match="no length"):
        len(stream)


def test_a_distributed_run_is_noticed(catalog, monkeypatch):
    stream = ChipStream(catalog, 16, shuffle=0)
    chips = [chip.numpy().tobytes() for chip in stream]
    distributed = torch.distributed
    if not distributed.is_available():
        pytest.skip("this torch is built without torch.distributed")
    # What a process of a run finds when it has called init_process_group.
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    assert len(stream) == 46
    assert [chip.numpy().tobytes() for chip in stream] == chips[46:]
    sent = pickle.dumps(stream)
    # A spawned worker has not: it keeps what its parent was.
    monkeypatch.undo()
    assert [chip.numpy().tobytes() for chip in pickle.loads(sent)] == chips[46:]


# --- A network


def test_a_network_learns_from_real_chips(tmp_path):
    """One epoch over crops of the shipped scene, converted, read by two workers."""
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed to read a GeoTIFF")
    from rumi import geotiff

    (scene,) = (Path(rumi.__file__).parent / "data").glob("*.tif")
    with rasterio.open(scene) as source:
        for number, (row, col) in enumerate([(0, 0), (0, 256), (244, 0), (244, 256)]):
            window = rasterio.windows.Window(col, row, 256, 256)
            profile = source.profile | {"height": 256, "width": 256}
            a, b, c, d, e, f = source.transform[:6]
            moved = (a, b, c + a * col + b * row, d, e, f + d * col + e * row)
            profile |= {"transform": rasterio.Affine(*moved)}
            with rasterio.open(tmp_path / f"{number}.tif", "w", **profile) as target:
                target.write(source.read(window=window))
    done = geotiff.convert_many(tmp_path, tmp_path / "out", tile_size=64, drop="all")
    catalog = Catalog.build(done, tmp_path / "out" / "c.parquet")
    assert catalog.failures == []
    dataset = ChipDataset(catalog, 64, dtype=torch.float32)
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2)
    torch.manual_seed(0)
    # Guess the third band from the first two.
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 1, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for batch in loader:
        scaled = (batch - 9000) / 3000
        loss = torch.nn.functional.mse_loss(model(scaled[:, :2]), scaled[:, 2:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert len(losses) == 8
    assert losses[-1] < losses[0]


# --- Imports


def test_a_missing_torch_is_told_and_none_is_imported():
    code = (
        "import sys, rumi, rumi.catalog\n"
        "assert 'torch' not in sys.modules\n"
        "sys.modules['torch'] = None\n"
        "try:\n"
        "    import rumi.torch\n"
        "except rumi.UnsupportedError as error:\n"
        "    assert \"pip install 'rumi[torch]'\" in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    root = Path(rumi.__file__).parents[1]
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=root)
