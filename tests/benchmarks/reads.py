"""Local reads: one row a comparison, medians of ratios of interleaved runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import numpy as np

from .measure import Bench, Part, Plot, Row, ratio
from .scenes import many_frames, windows


def small_reads(bench: Bench) -> Iterator[Part]:
    """A file of one small frame, and one pixel of many frames."""
    single = bench.save("single", np.arange(64, dtype=np.uint16).reshape(1, 8, 8))
    path = bench.path("single.rumi")
    blob = bench.rumi.ask("write", array=single, path=path, tile_size=8)["blob"]
    whole = [None] * 300
    yield bench.pair(
        "8 x 8 single-frame file, open + read",
        ("rumi", "rumi-eo 0.16.0"),
        lambda: bench.rumi.ask("reads", path=path, blob=blob, windows=whole),
        lambda: bench.eo.ask("reads", path=path, blob=blob, windows=whole),
        len(whole),
        2.5,
    )
    yield from _single_pixels(bench)


def _single_pixels(bench: Bench) -> Iterator[Part]:
    """One pixel of images of more and more frames."""
    grids = [(10, 10), (30, 40), (100, 120)] + ([] if bench.quick else [(300, 300)])
    curves: dict[str, list[float]] = {}
    counts = [down * across for down, across in grids]
    for count, (down, across) in zip(counts, grids, strict=True):
        image = many_frames(down, across)
        array = bench.save("many", image)
        many = bench.path(f"many{count}.rumi")
        options = {"tile_size": 8, "codec": "zstd", "verify": False}
        found = bench.rumi.ask("write", array=array, path=many, **options)["blob"]
        asked = {"path": many, "blob": found, "windows": windows(50, 1, image.shape[1:])}
        runners = {
            "rumi, blob": lambda asked=asked: bench.rumi.ask("reads", **asked),
            "rumi, one Header": lambda asked=asked: bench.rumi.ask("reads", reuse=True, **asked),
            "rumi-eo 0.16.0": lambda asked=asked: bench.eo.ask("reads", **asked),
        }
        times = bench.race(f"1 pixel of {count} frames", runners)
        medians = {name: statistics.median(seconds) / 50 * 1e6 for name, seconds in times.items()}
        for name, median in medians.items():
            curves.setdefault(name, []).append(median)
        if count < 10_000:
            continue
        *ours, theirs = times
        for name in ours:
            work = f"1 pixel of {count:,} frames"
            share = ratio(times[theirs], times[name])
            yield Row(work, name, theirs, medians[name], medians[theirs], share, 4.0)

    def draw(axes: object) -> None:
        for name, values in curves.items():
            axes.loglog(counts, values, marker="o", label=name)
        axes.set(xlabel="frames in the file", ylabel="time of a 1-pixel read, us")
        axes.legend()

    yield Plot("frames", "One pixel: what a read costs as the file has more frames", draw)


def geozl_chips(bench: Bench) -> Iterator[Part]:
    """The same file, written by rumi-eo with a recipe of geozl."""
    array = bench.save("scene", bench.scene)
    chips = windows(30, 224, bench.scene.shape[1:])
    for tile, aim in ((64, 0.95), (256, 1.0), (512, 1.0)):
        path = bench.path(f"geozl{tile}.rumi")
        blob = bench.eo.ask(
            "write", array=array, path=path, tile_size=tile, recipe="planar>zigzag>zstd"
        )["blob"]

        def ours(
            threads: int = 1, backend: str = "auto", path: str = path, blob: str = blob
        ) -> dict:
            return bench.rumi.ask(
                "reads", path=path, blob=blob, windows=chips, threads=threads, backend=backend
            )

        yield bench.pair(
            f"224 x 224 x 3 chips, geozl file, tile {tile}, 1 thread",
            ("rumi", "rumi-eo 0.16.0"),
            ours,
            lambda path=path, blob=blob: bench.eo.ask("reads", path=path, blob=blob, windows=chips),
            len(chips),
            aim,
        )
        if tile == 64:
            continue
        yield bench.pair(
            f"the same, tile {tile}",
            ("geozl backend, 2 threads", "geozl backend, 1 thread"),
            lambda ours=ours: ours(2, "geozl"),
            lambda ours=ours: ours(1, "geozl"),
            len(chips),
            1.8,
        )
        yield bench.pair(
            f"the same, tile {tile}",
            ("rumi, 2 threads", "rumi, 1 thread"),
            lambda ours=ours: ours(2),
            ours,
            len(chips),
        )


def default_codec(bench: Bench) -> Iterator[Part]:
    """What the presets wrote, against COGs of the same pixels."""
    array = bench.save("scene", bench.scene)
    chips = windows(30, 224, bench.scene.shape[1:])
    whole: list = [None]
    cogs = {}
    for compress in ("DEFLATE", "ZSTD"):
        cogs[compress] = bench.path(f"{compress}.tif")
        bench.cog.ask("write", array=array, path=cogs[compress], compress=compress, predictor="YES")
    for codec in ("auto", "fast"):
        path = bench.path(f"{codec}.rumi")
        blob = bench.rumi.ask("write", array=array, path=path, tile_size=256, codec=codec)["blob"]

        def ours(
            items: list, threads: int | None = 1, path: str = path, blob: str = blob
        ) -> Callable[[], dict]:
            return lambda: bench.rumi.ask(
                "reads", path=path, blob=blob, windows=items, threads=threads
            )

        for compress, cog in cogs.items():
            for threads, name in ((1, "rumi, 1 thread"), (None, "rumi, default threads")):
                yield bench.pair(
                    f"224 x 224 x 3 chips, codec {codec}, open + read",
                    (name, f"COG {compress}, rasterio"),
                    ours(chips, threads),
                    lambda cog=cog: bench.cog.ask("reads", path=cog, windows=chips),
                    len(chips),
                    6.0 if codec == "auto" else None,
                )
        for threads, name in ((1, "rumi, 1 thread"), (None, "rumi, default threads")):
            yield bench.pair(
                f"whole image, codec {codec}",
                (name, "COG ZSTD, rasterio"),
                ours(whole, threads),
                lambda: bench.cog.ask("reads", path=cogs["ZSTD"], windows=whole),
                1,
                1.8 if codec == "auto" else None,
            )
        for side in (64, 224, 512):
            items = windows(20, side, bench.scene.shape[1:], seed=3)
            asked = {"path": path, "blob": blob, "windows": items}
            # The other way round: how much of a read is the floor under it.
            yield bench.pair(
                f"{side} x {side} x 3 chips, codec {codec}, over the floor (1 / 1.15 allowed)",
                ("rumi", "bare decoder calls + memcpy"),
                ours(items),
                lambda asked=asked: bench.rumi.ask("floor", **asked),
                len(items),
                1 / 1.15 if side >= 224 else None,
            )


def batches(bench: Bench) -> Iterator[Part]:
    """64 chips in one call, of small and of larger files."""
    for side in (8, 32, 128):
        files, blobs = [], []
        for number, window in enumerate(windows(64, side, bench.scene.shape[1:], seed=5)):
            row, col = window[:2]
            array = bench.save("chip", bench.scene[:, row : row + side, col : col + side])
            files.append(bench.path(f"chip{side}_{number}.rumi"))
            blobs.append(bench.rumi.ask("write", array=array, path=files[-1], codec="zstd")["blob"])
        whole = [[0, 0, side, side]] * 64

        def ask(many: bool, files: list = files, blobs: list = blobs, whole: list = whole) -> dict:
            return bench.rumi.ask("batch", paths=files, blobs=blobs, windows=whole, many=many)

        yield bench.pair(
            f"64 chips of {side} x {side} x 3",
            ("rumi.read_many", "64 rumi.read"),
            lambda ask=ask: ask(True),
            lambda ask=ask: ask(False),
            64,
            1.3,
        )


SECTIONS = {
    "small": small_reads,
    "geozl": geozl_chips,
    "default": default_codec,
    "batch": batches,
}
