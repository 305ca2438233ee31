"""Local reads: one row a comparison, medians of ratios of interleaved runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .peers import Peer
from .scenes import landsat, many_frames, windows


@dataclass(frozen=True)
class Row:
    """One comparison: how many times faster the first is than the second."""

    work: str
    first: str
    second: str
    first_us: float
    second_us: float
    ratio: float
    aim: float | None = None

    def line(self) -> str:
        aim = "" if self.aim is None else f"{self.aim:.2f}"
        met = "" if self.aim is None else ("yes" if self.ratio >= self.aim else "no")
        return (
            f"| {self.work} | {self.first} | {self.second} | {self.first_us:.1f} | "
            f"{self.second_us:.1f} | {self.ratio:.2f} | {aim} | {met} |"
        )


HEAD = (
    "| work | a | b | a, us | b, us | b / a | aim | met |\n"
    "| --- | --- | --- | ---: | ---: | ---: | ---: | --- |"
)


class Bench:
    """Scenes, files and workers of one run."""

    def __init__(self, folder: Path, environments: Path, *, runs: int, quick: bool) -> None:
        self.folder = folder
        self.environments = environments
        self.runs = runs
        self.quick = quick
        self.rumi = Peer("rumi", environments)
        self.eo = Peer("rumi-eo", environments)
        self.cog = Peer("rasterio", environments)
        self.scene_name, self.scene = landsat()

    def close(self) -> None:
        for peer in (self.rumi, self.eo, self.cog):
            peer.close()

    def save(self, name: str, array: np.ndarray) -> str:
        path = self.folder / f"{name}.npy"
        np.save(path, array)
        return str(path)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def pair(
        self,
        work: str,
        names: tuple[str, str],
        first: Callable[[], dict],
        second: Callable[[], dict],
        items: int,
        aim: float | None = None,
    ) -> Row:
        """Run two things in turn; their results must be equal."""
        if first()["digest"] != second()["digest"]:
            raise RuntimeError(f"{work}: {names[0]} and {names[1]} read different samples")
        times: tuple[list[float], list[float]] = ([], [])
        ratios = []
        for _ in range(self.runs):
            a, b = first()["seconds"], second()["seconds"]
            times[0].append(a)
            times[1].append(b)
            ratios.append(b / a)
        scale = 1e6 / items
        return Row(
            work,
            *names,
            statistics.median(times[0]) * scale,
            statistics.median(times[1]) * scale,
            statistics.median(ratios),
            aim,
        )


def small_reads(bench: Bench) -> list[Row]:
    """One pixel of many frames, and a file of one small frame."""
    rows = []
    single = bench.save("single", np.arange(64, dtype=np.uint16).reshape(1, 8, 8))
    path = bench.path("single.rumi")
    blob = bench.rumi.ask("write", array=single, path=path, tile_size=8)["blob"]
    whole = [None] * 300
    rows.append(
        bench.pair(
            "8 x 8 single-frame file, open + read",
            ("rumi", "rumi-eo 0.16.0"),
            lambda: bench.rumi.ask("reads", path=path, blob=blob, windows=whole),
            lambda: bench.eo.ask("reads", path=path, blob=blob, windows=whole),
            len(whole),
            2.5,
        )
    )
    sizes = [(100, 120)] if bench.quick else [(100, 120), (300, 300)]
    for down, across in sizes:
        image = many_frames(down, across)
        array = bench.save("many", image)
        many = bench.path(f"many{down * across}.rumi")
        options = {"tile_size": 8, "codec": "zstd", "verify": False}
        found = bench.rumi.ask("write", array=array, path=many, **options)["blob"]
        pixels = windows(50, 1, image.shape[1:])
        for reuse in (False, True):
            rows.append(
                bench.pair(
                    f"1 pixel of {down * across:,} frames, {'one Header' if reuse else 'blob'}",
                    ("rumi", "rumi-eo 0.16.0"),
                    lambda many=many, found=found, pixels=pixels, reuse=reuse: bench.rumi.ask(
                        "reads", path=many, blob=found, windows=pixels, reuse=reuse
                    ),
                    lambda many=many, found=found, pixels=pixels: bench.eo.ask(
                        "reads", path=many, blob=found, windows=pixels
                    ),
                    len(pixels),
                    4.0,
                )
            )
    return rows


def geozl_chips(bench: Bench) -> list[Row]:
    """The same file, written by rumi-eo with a recipe of geozl."""
    rows = []
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

        rows.append(
            bench.pair(
                f"224 x 224 x 3 chips, geozl file, tile {tile}, 1 thread",
                ("rumi", "rumi-eo 0.16.0"),
                ours,
                lambda path=path, blob=blob: bench.eo.ask(
                    "reads", path=path, blob=blob, windows=chips
                ),
                len(chips),
                aim,
            )
        )
        if tile == 64:
            continue
        rows.append(
            bench.pair(
                f"the same, tile {tile}",
                ("geozl backend, 2 threads", "geozl backend, 1 thread"),
                lambda ours=ours: ours(2, "geozl"),
                lambda ours=ours: ours(1, "geozl"),
                len(chips),
                1.8,
            )
        )
        rows.append(
            bench.pair(
                f"the same, tile {tile}",
                ("rumi, 2 threads", "rumi, 1 thread"),
                lambda ours=ours: ours(2),
                ours,
                len(chips),
            )
        )
    return rows


def default_codec(bench: Bench) -> list[Row]:
    """What the default codec wrote, against COGs of the same pixels."""
    rows = []
    array = bench.save("scene", bench.scene)
    path = bench.path("default.rumi")
    blob = bench.rumi.ask("write", array=array, path=path, tile_size=256)["blob"]
    chips = windows(30, 224, bench.scene.shape[1:])

    def ours(items: list | None = None, threads: int | None = 1) -> dict:
        return bench.rumi.ask(
            "reads", path=path, blob=blob, windows=items or chips, threads=threads
        )

    for compress in ("DEFLATE", "ZSTD"):
        cog = bench.path(f"{compress}.tif")
        bench.cog.ask("write", array=array, path=cog, compress=compress, predictor="YES")
        rows.append(
            bench.pair(
                "224 x 224 x 3 chips, default codec, open + read",
                ("rumi, 1 thread", f"COG {compress}, rasterio"),
                ours,
                lambda cog=cog: bench.cog.ask("reads", path=cog, windows=chips),
                len(chips),
                6.0,
            )
        )
        rows.append(
            bench.pair(
                "the same",
                ("rumi, default threads", f"COG {compress}, rasterio"),
                lambda: ours(threads=None),
                lambda cog=cog: bench.cog.ask("reads", path=cog, windows=chips),
                len(chips),
                6.0,
            )
        )
    whole: list = [None]
    zstd = bench.path("ZSTD.tif")
    for threads, name in ((1, "rumi, 1 thread"), (None, "rumi, default threads")):
        rows.append(
            bench.pair(
                "whole image, default codec",
                (name, "COG ZSTD, rasterio"),
                lambda threads=threads: ours(whole, threads),
                lambda: bench.cog.ask("reads", path=zstd, windows=whole),
                1,
                1.8,
            )
        )
    for side in (224, 512):
        items = windows(20, side, bench.scene.shape[1:], seed=3)
        floor = bench.pair(
            f"{side} x {side} x 3 chips, default codec, over the floor",
            ("bare decoder + memcpy", "rumi"),
            lambda items=items: bench.rumi.ask("floor", path=path, blob=blob, windows=items),
            lambda items=items: ours(items),
            len(items),
        )
        rows.append(floor)
    return rows


def batches(bench: Bench) -> list[Row]:
    """64 chips in one call, of small and of larger files."""
    rows = []
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

        rows.append(
            bench.pair(
                f"64 chips of {side} x {side} x 3",
                ("rumi.read_many", "64 rumi.read"),
                lambda ask=ask: ask(True),
                lambda ask=ask: ask(False),
                64,
                1.3,
            )
        )
    return rows


SECTIONS = {
    "small": small_reads,
    "geozl": geozl_chips,
    "default": default_codec,
    "batch": batches,
}
