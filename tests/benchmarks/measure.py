"""Measuring things in turn, and what comes of it: rows, tables and plots."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .peers import PEERS, Peer
from .scenes import landsat


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


@dataclass(frozen=True)
class Table:
    """Figures of many things side by side, as lines of Markdown."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def lines(self) -> list[str]:
        ends = ["---", *["---:"] * (len(self.columns) - 1)]
        cells = [self.columns, ends, *self.rows]
        table = [f"| {' | '.join(row)} |" for row in cells]
        return [f"**{self.title}**", "", *table, *(["", self.note] if self.note else [])]


@dataclass(frozen=True)
class Plot:
    """A picture: a name, what it shows, and what draws it on the axes that it asks for."""

    name: str
    caption: str
    draw: Callable[[Any], None]
    panels: int = 1


# What a section gives, in the order in which it is written.
Part = Row | Table | Plot


class Bench:
    """Scenes, files and workers of one run; a worker starts when it is first asked."""

    def __init__(self, folder: Path, environments: Path, *, runs: int, quick: bool) -> None:
        self.folder = folder
        self.environments = environments
        self.runs = runs
        self.quick = quick
        self._peers: dict[str, Peer] = {}
        self.scene_name, self.scene = landsat()

    def peer(self, name: str) -> Peer:
        if name not in self._peers:
            self._peers[name] = Peer(name, self.environments)
        return self._peers[name]

    @property
    def rumi(self) -> Peer:
        return self.peer("rumi")

    @property
    def eo(self) -> Peer:
        return self.peer("rumi-eo")

    @property
    def cog(self) -> Peer:
        return self.peer("rasterio")

    def versions(self) -> dict[str, str]:
        """What the workers of this run are made of."""
        return {name: PEERS[name].says for name in self._peers if PEERS[name].says}

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    def save(self, name: str, array: np.ndarray) -> str:
        path = self.folder / f"{name}.npy"
        np.save(path, array)
        return str(path)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def race(
        self, work: str, runners: dict[str, Callable[[], dict]], runs: int | None = None
    ) -> dict[str, list[float]]:
        """Run things in turn; their results must be equal. Returns the seconds of every run."""
        digests = {name: run()["digest"] for name, run in runners.items()}
        if len(set(digests.values())) > 1:
            raise RuntimeError(f"{work}: different samples were read: {digests}")
        times: dict[str, list[float]] = {name: [] for name in runners}
        for _ in range(runs or self.runs):
            for name, run in runners.items():
                times[name].append(run()["seconds"])
        return times

    def pair(
        self,
        work: str,
        names: tuple[str, str],
        first: Callable[[], dict],
        second: Callable[[], dict],
        items: int,
        aim: float | None = None,
        runs: int | None = None,
    ) -> Row:
        """Run two things in turn; their results must be equal."""
        # Two things may have the same name.
        times = list(self.race(work, {"a": first, "b": second}, runs).values())
        scale = 1e6 / items
        return Row(
            work,
            *names,
            statistics.median(times[0]) * scale,
            statistics.median(times[1]) * scale,
            ratio(times[1], times[0]),
            aim,
        )


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the median of the ratios of runs that followed each other."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def mean_ratio(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return statistics.geometric_mean(ratios)
