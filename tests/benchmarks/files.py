"""Every real scene: how small it gets, and how fast it is written and read.

One thread for all. COGs are of the library's own levels, written by GDAL from
memory; rumi without verification, which GDAL does not do either.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import numpy as np

from .measure import Bench, Part, Plot, Table, mean_ratio, ratio
from .scenes import scenes

TILE = 512
EO_RECIPE = "planar>zigzag>zstd"
COGS = ("DEFLATE", "ZSTD", "LERC", "LERC_ZSTD", "LERC_DEFLATE")
PRESETS = ("auto", "fast", "small")


class Scene:
    """One scene, written by all; whoever cannot hold its samples is left out."""

    def __init__(self, bench: Bench, name: str, samples: np.ndarray) -> None:
        self.name = name
        self.raw = samples.nbytes
        self._bench = bench
        self._array = bench.save("file", samples)
        self._plain = samples.dtype.fields is None
        # A large one is timed less often.
        self._runs = 1 if bench.quick else (2 if samples.nbytes > 1 << 25 else 7)
        self.sizes: dict[str, int] = {}
        self.recipes: dict[str, str] = {}
        self.encode: dict[str, list[float]] = {}
        self.decode: dict[str, list[float]] = {}
        self._wide = samples.dtype.itemsize == 2 and samples.dtype.kind in "iu"

    def measure(self) -> None:
        readers = self._write()
        self.decode = self._bench.race(self.name, readers, self._runs)

    def _write(self) -> dict[str, Callable[[], dict]]:
        bench, readers, whole = self._bench, {}, [None]
        writers: dict[str, Callable[[], dict]] = {}
        for codec in PRESETS:
            asked = {"array": self._array, "path": bench.path(f"{codec}.rumi"), "tile_size": TILE}
            asked |= {"codec": codec, "threads": 1, "verify": False}
            writers[f"rumi {codec}"] = lambda a=asked: bench.rumi.ask("write", **a)
            asked = {"array": self._array, "tile_size": TILE, "codec": codec}
            self.recipes[codec] = bench.rumi.ask("chosen", **asked)["recipe"]
        asked = {"array": self._array, "path": bench.path("verified.rumi"), "tile_size": TILE}
        asked |= {"threads": 1}
        writers["rumi auto, verified"] = lambda a=asked: bench.rumi.ask("write", **a)
        if self._plain:
            asked = {"array": self._array, "path": bench.path("eo.rumi"), "tile_size": TILE}
            asked |= {"recipe": EO_RECIPE}
            writers["rumi-eo"] = lambda a=asked: bench.eo.ask("write", **a)
        for compress in COGS:
            asked = {"array": self._array, "path": bench.path(f"{compress}.tif")}
            asked |= {"compress": compress, "blocksize": TILE, "interleave": "PIXEL"}
            asked |= {} if "LERC" in compress or not self._plain else {"predictor": "YES"}
            writers[f"COG {compress}"] = lambda a=asked: bench.cog.ask("write", **a)
        blobs = {}
        for _ in range(1 if bench.quick else min(3, self._runs)):
            for name, write in list(writers.items()):
                try:
                    answer = write()
                except RuntimeError as error:
                    if not name.startswith("COG"):
                        raise
                    # LERC and predictors are not for all types of samples.
                    print(f"    {self.name}: {error}")
                    del writers[name]
                    continue
                blobs[name] = answer.get("blob")
                self.sizes[name] = answer["file"]
                self.encode.setdefault(name, []).append(answer["seconds"])
        for codec in PRESETS:
            asked = {"path": bench.path(f"{codec}.rumi"), "blob": blobs[f"rumi {codec}"]}
            readers[f"rumi {codec}"] = lambda a=asked: bench.rumi.ask("reads", windows=whole, **a)
        if self._plain:
            asked = {"path": bench.path("eo.rumi"), "blob": blobs["rumi-eo"], "windows": whole}
            readers["rumi-eo"] = lambda a=asked: bench.eo.ask("reads", **a)
        for compress in COGS:
            if f"COG {compress}" in self.sizes:
                asked = {"path": bench.path(f"{compress}.tif"), "windows": whole}
                readers[f"COG {compress}"] = lambda a=asked: bench.cog.ask("reads", **a)
        if self._wide:
            asked = {"array": self._array, "tile_size": TILE}
            self.sizes["JPEG 2000"] = bench.peer("tifffile").ask("jpeg2000", **asked)["size"]
        return readers

    @property
    def best_cog(self) -> int:
        """Bytes of the smallest COG."""
        return min(size for name, size in self.sizes.items() if name.startswith("COG"))

    def speed(self, times: dict[str, list[float]], name: str) -> str:
        return f"{self.raw / statistics.median(times[name]) / 1e6:.0f}" if name in times else "-"


def files(bench: Bench) -> Iterator[Part]:
    """Sizes, encode and decode speeds of all scenes."""
    found = []
    for name, samples in scenes(bench.quick):
        scene = Scene(bench, name, samples)
        scene.measure()
        found.append(scene)
        print(f"    {name}: {scene.best_cog / scene.sizes['rumi auto']:.3f}", flush=True)
    yield _sizes(found)
    yield _speeds(found)
    yield _summary(found)
    shown = found[:: max(1, len(found) // 6)][:6]
    yield Plot(
        "sizes",
        "Size against decode speed of whole images, one thread",
        lambda axes: _draw(axes, shown),
        panels=len(shown),
    )


def _sizes(found: list[Scene]) -> Table:
    rows = []
    for scene in found:
        cells = [f"{scene.raw / scene.sizes[f'rumi {codec}']:.3f}" for codec in PRESETS]
        cells += [f"{scene.raw / scene.sizes[n]:.3f}" if n in scene.sizes else "-" for n in _OTHERS]
        cells.append(f"{scene.raw / scene.best_cog:.3f}")
        rows.append([scene.name, *cells, f"`{scene.recipes['auto']}`"])
    columns = ["scene", *PRESETS, *_OTHERS, "best COG", "recipe of auto"]
    return Table("Compression ratio, larger is better", columns, rows)


_OTHERS = ("rumi-eo", "JPEG 2000", "COG DEFLATE", "COG ZSTD", "COG LERC")


def _speeds(found: list[Scene]) -> Table:
    names = ("rumi auto", "rumi fast", "rumi-eo", "COG ZSTD", "COG DEFLATE")
    rows = [
        [
            scene.name,
            *(f"{scene.speed(scene.encode, n)} / {scene.speed(scene.decode, n)}" for n in names),
        ]
        for scene in found
    ]
    return Table("Speed of writing / reading, MB/s of samples, one thread", ["scene", *names], rows)


def _summary(found: list[Scene]) -> Table:
    """The geometric means, beside what was aimed at."""

    def sizes(ours: str, theirs: str) -> list[float]:
        pairs = [(s.sizes.get(ours), s.sizes.get(theirs)) for s in found]
        return [their / our for our, their in pairs if our and their]

    def speeds(kind: str, ours: str, theirs: str) -> list[float]:
        times = [getattr(scene, kind) for scene in found]
        return [ratio(t[theirs], t[ours]) for t in times if ours in t and theirs in t]

    smaller = [scene.best_cog / scene.sizes["rumi auto"] for scene in found]
    wide = [scene for scene in found if scene._wide]
    small = {
        name: [s.sizes[name] / s.sizes["rumi small"] for s in wide]
        for name in ("rumi-eo", "JPEG 2000")
    }
    entries = [
        ("auto, size: the best lossless COG of each is larger by", smaller, 1 / 0.85),
        ("the same, of the worst scene", [min(smaller)], 1.0),
        ("small, size, 16-bit integers: rumi-eo's recipe is larger by", small["rumi-eo"], 1.0),
        ("small, size, 16-bit integers: JPEG 2000 is larger by", small["JPEG 2000"], 1.0),
        (
            "auto, writing, unverified, against COG ZSTD",
            speeds("encode", "rumi auto", "COG ZSTD"),
            4.0,
        ),
        (
            "fast, writing, unverified, against COG ZSTD",
            speeds("encode", "rumi fast", "COG ZSTD"),
            None,
        ),
        (
            "auto, writing, verified, against rumi-eo",
            speeds("encode", "rumi auto, verified", "rumi-eo"),
            2.0,
        ),
        ("auto, reading, against rumi-eo", speeds("decode", "rumi auto", "rumi-eo"), 1.3),
        ("fast, reading, against rumi-eo", speeds("decode", "rumi fast", "rumi-eo"), None),
        ("auto, reading, against COG ZSTD", speeds("decode", "rumi auto", "COG ZSTD"), None),
    ]
    rows = []
    for words, ratios, aim in entries:
        if not ratios:
            continue
        mean = mean_ratio(ratios)
        met = "" if aim is None else ("yes" if mean >= aim else "no")
        rows.append([words, f"{mean:.3f}", "" if aim is None else f"{aim:.3f}", met])
    columns = ["what", "times", "aim", "met"]
    return Table(f"Geometric means of {len(found)} scenes", columns, rows)


def _draw(axes: list, found: list[Scene]) -> None:
    for axis, scene in zip(axes, found, strict=True):
        for name, times in scene.decode.items():
            speed = scene.raw / statistics.median(times) / 1e6
            ours = name.startswith("rumi ")
            axis.plot(scene.raw / scene.sizes[name], speed, "o" if ours else "s")
            axis.annotate(name, (scene.raw / scene.sizes[name], speed), fontsize=6)
        axis.set(title=scene.name, xlabel="compression ratio", ylabel="decode, MB/s")


SECTIONS = {"files": files}
