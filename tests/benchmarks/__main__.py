"""Run the benchmarks and write RESULTS.md."""

from __future__ import annotations

import argparse
import platform
import tempfile
from importlib import metadata
from pathlib import Path

from . import reads, remote, torch
from .reads import HEAD, Bench

HERE = Path(__file__).parent
SECTIONS = reads.SECTIONS | remote.SECTIONS | torch.SECTIONS


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
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(
            Path(folder),
            arguments.environments,
            runs=3 if arguments.quick else 21,
            quick=arguments.quick,
        )
        try:
            lines += [f"Pixels: {bench.scene_name}. CPU: {_cpu()}. {_versions()}.", "", HEAD]
            print("\n".join(lines))
            for name in chosen:
                for row in SECTIONS[name](bench):
                    lines.append(row.line())
                    print(lines[-1], flush=True)
        finally:
            bench.close()
    if not arguments.quick and not arguments.sections:
        text = (
            "# Benchmarks\n\n"
            "Medians of interleaved runs; b / a says how many times faster a is. Times are of one "
            "machine on one day: compare the ratios.\n\n" + "\n".join(lines) + "\n"
        )
        (HERE / "RESULTS.md").write_text(text)


main()
