"""PyTorch and catalogs: chips a second through a DataLoader, and a catalog of a million rows."""

from __future__ import annotations

import os
import statistics
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rumi

from .measure import Bench, Row

# How most COGs are written; the others here have the tiles that suit the chips.
COG_DEFAULT = ("DEFLATE", "PIXEL", 512)
FILES, SIDE, BATCH = 200, 512, 64
ROWS = 1_000_000

# Files whose blobs the synthetic catalog repeats.
DIFFERENT = 2000


class Epoch:
    """A pass over batches of chips: its seconds, and a digest that only equal chips share."""

    def __init__(self, batches: Callable[[], Iterable[Any]]) -> None:
        self._batches = batches
        self._digest: int | None = None

    def __call__(self) -> dict:
        if self._digest is None:
            self._digest = 0
            for batch in self._batches():
                self._digest = zlib.crc32(np.ascontiguousarray(batch), self._digest)
        start = time.perf_counter()
        for _ in self._batches():
            pass
        return {"seconds": time.perf_counter() - start, "digest": self._digest}


def _crops(bench: Bench, folder: Path, tile: int, codec: str) -> Any:
    """Write crops of the scene and their catalog."""
    from rumi.catalog import Catalog

    folder.mkdir()
    rng = np.random.default_rng(0)
    spare = bench.scene.shape[1] - SIDE
    for number in range(20 if bench.quick else FILES):
        row, col = rng.integers(0, spare + 1, 2)
        crop = np.ascontiguousarray(bench.scene[:, row : row + SIDE, col : col + SIDE])
        transform = (30.0, 0.0, 500_000.0, 0.0, -30.0, 4e6 - number * SIDE * 30.0)
        options = {"tile_size": tile, "codec": codec, "crs": 32621, "transform": transform}
        rumi.write(folder / f"{number:03d}.rumi", crop, **options)
    return Catalog.build(folder, folder / "catalog.parquet").load()


def _cogs(catalog: Any, folder: Path, compress: str, interleave: str, block: int) -> list[str]:
    """Write the same images as COGs."""
    import rasterio
    from rasterio.io import MemoryFile
    from rasterio.shutil import copy

    folder.mkdir()
    paths = []
    for number, image in enumerate(catalog):
        bands, height, width = image.shape
        profile = {"driver": "GTiff", "count": bands, "height": height, "width": width}
        profile |= {"dtype": image.dtype, "crs": "EPSG:32621"}
        profile |= {"transform": rasterio.Affine(*image.transform)}
        paths.append(str(folder / f"{number:03d}.tif"))
        options = {"compress": compress, "predictor": "YES", "blocksize": block}
        options |= {"overviews": "NONE", "interleave": interleave}
        with MemoryFile() as memory:
            with memory.open(**profile) as target:
                target.write(image.read())
            with memory.open() as source:
                copy(source, paths[-1], driver="COG", **options)
    return paths


class CogChips:
    """The same chips through rasterio, as a map-style dataset does it."""

    def __init__(self, dataset: Any, paths: list[str]) -> None:
        self._dataset = dataset
        self._paths = paths

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> Any:
        import rasterio
        import torch

        row, (top, left, height, width) = self._dataset.locate(index)
        with rasterio.open(self._paths[row]) as source:
            window = rasterio.windows.Window(left, top, width, height)
            return torch.from_numpy(source.read(window=window))


# Chip, tile and mode: across the tiles of larger images, and one tile each.
CASES = ((224, 256, "random"), (128, 128, "grid"))


def loaders(bench: Bench) -> list[Row]:
    """Chips of 200 files: this route, `read_many`, and COGs through rasterio."""
    import torch

    rows = []
    # A peer that is not asked to share its processors with itself.
    torch.set_num_threads(1)
    os.environ |= {"GDAL_NUM_THREADS": "1", "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR"}
    for chip, tile, mode in CASES[:1] if bench.quick else CASES:
        for codec in ("auto",) if bench.quick else ("auto", "fast"):
            folder = Path(bench.path(f"crops-{tile}-{codec}"))
            catalog = _crops(bench, folder, tile, codec)
            case = _Case(bench, catalog, chip, mode)
            work = f"{mode} {chip} x {chip} x 3 chips, tile {tile}, codec {codec}"
            rows += [case.against_read_many(work), case.workers(work)]
            for kind in (("ZSTD", "BAND", tile), ("DEFLATE", "PIXEL", tile), COG_DEFAULT):
                words = [str(part) for part in kind]
                paths = _cogs(catalog, Path("-".join((str(folder), *words))), *kind)
                name = "COG {}, {}, blocks of {}, rasterio".format(*words)
                rows.append(case.against_cogs(work, paths, name))
    return rows


class _Case:
    """Chips of one size in the files of one catalog."""

    def __init__(self, bench: Bench, catalog: Any, chip: int, mode: str) -> None:
        from rumi.torch import ChipDataset

        self._bench = bench
        self._catalog = catalog
        self._dataset = ChipDataset(catalog, chip, mode=mode, threads=1)
        order = np.random.default_rng(1).permutation(len(self._dataset))
        self._order = order[: 128 if bench.quick else 1024].tolist()

    def _pair(self, work: str, names: tuple[str, str], loaders: list[Any], aim: float) -> Row:
        first, second = (Epoch(lambda loader=loader: loader) for loader in loaders)
        runs = max(1, self._bench.runs // 5)
        return self._bench.pair(work, names, first, second, len(self._order), aim, runs)

    def _loader(self, dataset: Any, workers: int) -> Any:
        from torch.utils.data import DataLoader

        options = {"num_workers": workers, "persistent_workers": workers > 0}
        return DataLoader(dataset, batch_size=BATCH, sampler=self._order, **options)

    def _whole_batches(self) -> Any:
        from torch.utils.data import BatchSampler, DataLoader

        sampler = BatchSampler(self._order, BATCH, drop_last=False)
        return DataLoader(self._dataset, batch_size=None, sampler=sampler)

    def against_read_many(self, work: str) -> Row:
        places, windows = self._dataset.chips.locate(self._order)
        sources, headers = self._catalog.sources(), list(self._catalog.headers)

        class Bare:
            def __iter__(self) -> Iterator[Any]:
                for start in range(0, len(places), BATCH):
                    part = slice(start, start + BATCH)
                    rows = places[part].tolist()
                    batch = ([sources[row] for row in rows], [headers[row] for row in rows])
                    yield rumi.read_many(*batch, windows[part], threads=1)

        names = ("DataLoader, lists of numbers", "rumi.read_many")
        return self._pair(work, names, [self._whole_batches(), Bare()], 0.9)

    def workers(self, work: str) -> Row:
        names = ("DataLoader, 2 workers", "DataLoader, 1 process")
        return self._pair(work, names, [self._loader(self._dataset, n) for n in (2, 0)], 1.7)

    def against_cogs(self, work: str, paths: list[str], peer: str) -> Row:
        loaders = [self._loader(self._dataset, 2), self._loader(CogChips(self._dataset, paths), 2)]
        return self._pair(f"{work}, DataLoader, 2 workers", ("rumi.torch", peer), loaders, 5.0)


def million(bench: Bench) -> list[Row]:
    """A catalog of a million rows: open it, draw a row, take all header blobs as columns."""
    from rumi.catalog import Catalog

    path = Path(bench.path("million.parquet"))
    count = 50_000 if bench.quick else ROWS
    _write_synthetic(path, count)
    rng = np.random.default_rng(2)

    def seconds(function: Callable[[], object], runs: int) -> float:
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    opened = Catalog.open(path)
    loaded = Catalog.open(path).load()
    box = (5.0, 40.0, 15.0, 50.0)
    done = [
        ("open it and draw a random row", 21, 0.01, lambda: _draw(Catalog.open(path), rng)),
        ("draw a random row, opened", 21, 0.01, lambda: _draw(opened[:], rng)),
        ("draw a random row, loaded", 101, 0.01, lambda: _draw(loaded, rng)),
        ("open it, all blobs as columns", 5, 1.0, lambda: Catalog.open(path).headers.fields),
        ("rows that meet a box", 5, 1.0, lambda: loaded.filter(bbox=box)),
        ("rows of a condition", 5, 1.0, lambda: loaded.filter(where="cloud < 10")),
    ]
    rows = []
    for work, runs, limit, function in done:
        took = seconds(function, runs)
        name = f"catalog of {count:,} rows: {work}"
        rows.append(Row(name, "rumi", "the limit", took * 1e6, limit * 1e6, limit / took, 1.0))
    return rows


def _draw(catalog: Any, rng: np.random.Generator) -> Any:
    return catalog.image(int(rng.integers(len(catalog))))


def _write_synthetic(path: Path, count: int) -> None:
    """Write a catalog of files that do not exist, with boxes all over the globe."""
    import pyarrow as pa

    from rumi import encodings
    from rumi.catalog.describe import Row as Entry
    from rumi.catalog.schema import make_table
    from rumi.catalog.table import write

    rng = np.random.default_rng(0)
    pair = encodings.from_pair(1, 16)
    blobs = []
    for _ in range(DIFFERENT):
        side = int(rng.integers(1, 9))
        sizes = rng.integers(5000, 20000, side * side * 3)
        header = rumi.Header.build((3, side * 128, side * 128), (128, 128), pair, "tile", sizes)
        blobs.append(bytes(header))
    transform = (30.0, 0.0, 500_000.0, 0.0, -30.0, 4e6)
    tables = []
    for start in range(0, count, 50_000):
        numbers = range(start, min(count, start + 50_000))
        rows = []
        for number in numbers:
            west, south = number % 3590 / 10 - 180, number // 3590 % 1700 / 10 - 85
            box = (west, south, west + 0.3, south + 0.3)
            ring = np.array([box[:2], (box[2], box[1]), box[2:], (box[0], box[3]), box[:2]])
            wkb = bytes((1, 3, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0)) + ring.tobytes()
            blob = blobs[number % DIFFERENT]
            rows.append(
                Entry(blob, number, number, None, None, 32621, transform, "area", (wkb, box))
            )
        paths = [f"scenes/{number // 1000:04d}/{number:07d}.rumi" for number in numbers]
        tables.append(make_table(paths, rows, {"cloud": [number % 100 for number in numbers]}))
    with path.open("wb") as file:
        write(pa.concat_tables(tables), file)


SECTIONS = {"torch": loaders, "catalog": million}
