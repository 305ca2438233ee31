"""Chips of many sizes from everything that can hold the scene, and what scales with what."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

from .measure import Bench, Part, Plot, Row, Table, ratio
from .scenes import windows

TILE = 256
SIZES = (32, 64, 128, 224, 512)
CHIPS = 20


def sizes(bench: Bench) -> Iterator[Part]:
    """Chips a second against chip size, tiles of 256, one thread, open + read."""
    array = bench.save("scene", bench.scene)
    readers = _written(bench, array)
    curves: dict[str, list[float]] = {name: [] for name in readers}
    rows = []
    for side in SIZES:
        items = windows(CHIPS, side, bench.scene.shape[1:], seed=side)
        runners = {name: lambda r=read, i=items: r(i) for name, read in readers.items()}
        times = bench.race(f"chips of {side}", runners, max(3, bench.runs // 2))
        for name, seconds in times.items():
            curves[name].append(CHIPS / statistics.median(seconds))
    best = {side: max(curves[n][i] for n in curves) for i, side in enumerate(SIZES)}
    for name, values in curves.items():
        cells = [
            f"**{value:.0f}**" if value == best[side] else f"{value:.0f}"
            for side, value in zip(SIZES, values, strict=True)
        ]
        rows.append([name, *cells])
    columns = ["chips a second", *(f"{side} x {side}" for side in SIZES)]
    yield Table("Chips of three bands, open + read, tiles of 256, one thread", columns, rows)

    def draw(axes: object) -> None:
        for name, values in curves.items():
            axes.loglog(SIZES, values, marker="o", label=name)
        axes.set(xlabel="side of a chip, pixels", ylabel="chips a second")
        axes.legend(fontsize=7)

    yield Plot("chips", "Chips a second against chip size, one thread", draw)


def _written(bench: Bench, array: str) -> dict[str, Callable[[list], dict]]:
    """Write the scene with everything; return what reads windows of it."""
    readers: dict[str, Callable[[list], dict]] = {}

    def add(name: str, peer: str, path: str, **options: object) -> None:
        path = bench.path(path)
        answer = bench.peer(peer).ask("write", array=array, path=path, **options)
        asked = {"path": path} | ({"blob": answer["blob"]} if "blob" in answer else {})
        readers[name] = lambda items: bench.peer(peer).ask("reads", windows=items, **asked)

    add("rumi, auto", "rumi", "chips-auto.rumi", tile_size=TILE)
    add("rumi, fast", "rumi", "chips-fast.rumi", tile_size=TILE, codec="fast")
    recipe = "planar>zigzag>zstd"
    add("rumi-eo 0.16.0", "rumi-eo", "chips-eo.rumi", tile_size=TILE, recipe=recipe)
    add("rumi-eo 0.26.1", "rumi-eo new", "chips-new.rumi", tile_size=TILE, recipe=recipe)
    for compress in ("DEFLATE", "ZSTD", "LERC"):
        predictor = {} if compress == "LERC" else {"predictor": "YES"}
        path = f"chips-{compress}.tif"
        add(f"COG {compress}, rasterio", "rasterio", path, compress=compress, **predictor)
    add("TIFF ZSTD, tifffile", "tifffile", "chips-tifffile.tif", tile_size=TILE)
    add("zarr, blosc zstd", "zarr", "chips.zarr", tile_size=TILE)
    add("zarr, sharded", "zarr", "chips-sharded.zarr", tile_size=TILE, shard=4 * TILE)
    return readers


def scaling(bench: Bench) -> Iterator[Part]:
    """Threads of one read, and processes side by side, on the processors there are."""
    array = bench.save("scene", bench.scene)
    chips = windows(30, 224, bench.scene.shape[1:])
    path = bench.path("scaling.rumi")
    blob = bench.rumi.ask("write", array=array, path=path, tile_size=TILE)["blob"]
    asked = {"path": path, "blob": blob, "windows": chips}
    runners = {
        f"{name}, {threads} thread{'s' * (threads > 1)}": lambda b=backend, t=threads: (
            bench.rumi.ask("reads", backend=b, threads=t, **asked)
        )
        for backend, name in (("geozl", "geozl"), ("openzl", "openzl"), ("auto", "chosen"))
        for threads in (1, 2)
    }
    times = bench.race("scaling", runners)

    first, second = bench.peer("rumi"), bench.peer("rumi again")

    def together() -> dict:
        first.start("reads", **asked)
        second.start("reads", **asked)
        answers = [first.finish(), second.finish()]
        # Twice the chips in the time of the slower one.
        return answers[0] | {"seconds": max(a["seconds"] for a in answers) / 2}

    processes = bench.race(
        "processes", {"1 process": runners["chosen, 1 thread"], "2 processes": together}
    )
    scale = 1e6 / len(chips)
    for above, below, aim in (
        ("geozl, 1 thread", "geozl, 2 threads", 1.8),
        ("openzl, 1 thread", "openzl, 2 threads", None),
        ("chosen, 1 thread", "chosen, 2 threads", None),
    ):
        medians = [statistics.median(times[name]) * scale for name in (below, above)]
        share = ratio(times[above], times[below])
        yield Row("224 x 224 x 3 chips, tile 256, codec auto", below, above, *medians, share, aim)
    medians = [statistics.median(processes[n]) * scale for n in ("2 processes", "1 process")]
    share = ratio(processes["1 process"], processes["2 processes"])
    yield Row("the same, one thread each", "2 processes", "1 process", *medians, share)
    every = times | processes

    def draw(axes: object) -> None:
        names = list(every)
        values = [len(chips) / statistics.median(every[name]) for name in names]
        axes.barh(names, values)
        axes.set(xlabel="chips a second")

    yield Plot("scaling", "Chips of 224 x 224 x 3: backends, threads and processes", draw)


SECTIONS = {"chips": sizes, "scaling": scaling}
