"""Run the benchmarks; write RESULTS.md and its plots."""

from __future__ import annotations

import argparse
import platform
import tempfile
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path

from . import chips, files, reads, remote, torch
from .measure import HEAD, Bench, Part, Plot, Row, Table

HERE = Path(__file__).parent
SECTIONS = reads.SECTIONS | chips.SECTIONS | files.SECTIONS | remote.SECTIONS | torch.SECTIONS


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _versions() -> str:
    names = ("rumi", "openzl", "geozl", "numpy", "rasterio", "pyarrow", "torch")
    found = []
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} absent or in place")
    return ", ".join(found)


class Report:
    """What was measured, as Markdown and plots, printed as it comes."""

    def __init__(self, plots: Path | None) -> None:
        self.lines: list[str] = []
        self._plots = plots
        self._in_rows = False

    def write(self, line: str = "") -> None:
        self.lines.append(line)
        print(line, flush=True)

    def section(self, name: str, title: str, parts: Callable[[], Iterable[Part]]) -> None:
        self.write()
        self.write(f"## {name}")
        self.write()
        self.write(title)
        self._in_rows = False
        try:
            self._parts(parts())
        except ImportError as error:
            self.write()
            self.write(f"Not measured: {error}.")

    def _parts(self, parts: Iterable[Part]) -> None:
        for part in parts:
            if isinstance(part, Row):
                if not self._in_rows:
                    self.write()
                    self.write(HEAD)
                self.write(part.line())
            elif isinstance(part, Table):
                self.write()
                for line in part.lines():
                    self.write(line)
            elif self._plots is not None:
                self._draw(part)
            self._in_rows = isinstance(part, Row)

    def _draw(self, plot: Plot) -> None:
        import matplotlib.pyplot as plt

        across = min(plot.panels, 3)
        down = -(-plot.panels // across)
        size = (6.4, 4.2) if plot.panels == 1 else (4 * across, 3.2 * down)
        figure, axes = plt.subplots(down, across, figsize=size, layout="constrained", squeeze=False)
        flat = list(axes.flat)
        for spare in flat[plot.panels :]:
            spare.remove()
        plot.draw(flat[0] if plot.panels == 1 else flat[: plot.panels])
        figure.suptitle(plot.caption, fontsize=10)
        figure.savefig(self._plots / f"{plot.name}.png", dpi=110)
        plt.close(figure)
        self.write()
        self.write(f"![{plot.caption}]({self._plots.name}/{plot.name}.png)")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="few runs, nothing written")
    parser.add_argument(
        "--environments",
        type=Path,
        default=HERE.parents[1] / ".cache" / "benchmarks",
        help="where virtual environments of peers are kept",
    )
    arguments = parser.parse_args()
    chosen = arguments.sections or list(SECTIONS)
    unknown = set(chosen) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}")
    keep = not arguments.quick and not arguments.sections
    plots = HERE / "plots"
    if keep:
        plots.mkdir(exist_ok=True)
    report = Report(plots if keep else None)
    report.write("# Benchmarks")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(
            Path(folder),
            arguments.environments,
            runs=1 if arguments.quick else 21,
            quick=arguments.quick,
        )
        report.write()
        report.write(
            "Medians of interleaved runs; b / a says how many times faster a is. Times are of one "
            "machine on one day: compare the ratios. Every library runs in a process of its own "
            "and must read the same samples."
        )
        report.write()
        report.write(f"Pixels: {bench.scene_name}. CPU: {_cpu()}. {_versions()}.")
        try:
            for name in chosen:
                measure = SECTIONS[name]
                report.section(name, measure.__doc__.partition("\n")[0], lambda m=measure: m(bench))
            report.write()
            report.write(f"Peers: {'; '.join(bench.versions().values())}.")
        finally:
            bench.close()
    if keep:
        (HERE / "RESULTS.md").write_text("\n".join(report.lines) + "\n")


main()
