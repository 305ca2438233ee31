"""``rumi demo``: convert a real scene, read it back, and say what that took."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rumi import demo as work
from rumi.cli.console import console, print_json, print_rows, quantity
from rumi.cli.parameters import json_option, local_folder, quiet_option
from rumi.cli.program import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["demo"]

_PICTURE = "chip.png"

# Width of the column of names.
_INDENTED = 16


@click.command(cls=Command)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False),
    callback=local_folder,
    default="demo-out",
    show_default=True,
    help="Folder for what the demo writes.",
)
@json_option
@quiet_option
def demo(output: Path, as_json: bool, quiet: bool) -> None:
    """Convert a Landsat scene and read chips of it with its header blob alone.

    The scene ships with rumi. What is written, compared and timed is printed,
    and a picture of a chip with its frames is left in DIR.
    """
    work.need_extras()
    output.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    show = _silent if quiet or as_json else _printer()
    for title, lines, facts in _steps(output):
        show(title, lines)
        found |= facts
    if as_json:
        print_json(found)


def _steps(folder: Path) -> Iterator[tuple[str, list[tuple[str, str]], dict[str, Any]]]:
    """Do one step after the other; yield its title, its lines and its facts."""
    converted = work.convert_scene(folder)
    yield "A real scene becomes a rumi file", *_tell_conversion(converted)
    cog = work.make_cog(converted.source, folder)
    yield "Its header blob finds every frame", *_tell_blob(converted, cog)
    yield "Random chips, read with the blob alone", *_tell_check(work.check_chips(converted))
    timing = work.time_chips(converted, cog)
    yield "Beside rasterio on a COG", *_tell_timing(converted, cog, timing)
    picture = folder / _PICTURE
    work.draw_chip(converted, picture)
    yield "A chip and its frames", [("picture", str(picture))], {"picture": str(picture)}


def _tell_conversion(found: work.Converted) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    bands, height, width = found.header.shape
    raw, size = found.pixels.nbytes, found.header.file_size
    tile = " x ".join(map(str, found.header.tile_shape))
    return [
        ("source", f"{found.source.name}: Landsat 8 (USGS), {bands} bands, {height} x {width}"),
        ("samples", f"{quantity(raw)} of {found.header.encoding.dtype_name}"),
        ("rumi file", f"{found.path}: {quantity(size)}, {raw / size:.2f} times smaller"),
        ("frames", f"{found.header.frame_count} of {tile}, one band each, cut at the edges"),
    ], {
        "source": str(found.source),
        "path": str(found.path),
        "sample_bytes": raw,
        "file_size": size,
        "ratio": round(raw / size, 4),
        "frame_count": found.header.frame_count,
    }


def _tell_blob(
    found: work.Converted, cog: work.Cog
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    blob = len(bytes(found.header))
    return [
        ("header blob", f"{found.blob_path}: {blob} bytes, kept in your catalog"),
        (
            "COG header",
            f"{cog.header_size:,} bytes to fetch before the first tile, "
            f"{cog.header_size / blob:.1f} times the blob",
        ),
    ], {
        "blob": str(found.blob_path),
        "blob_size": blob,
        "cog": str(cog.path),
        "cog_size": cog.size,
        "cog_header_size": cog.header_size,
    }


def _tell_check(samples: int) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    return [
        ("compared", f"{samples:,} samples of {work.CHIPS} chips: every bit is the source's")
    ], {"chips": work.CHIPS, "samples_compared": samples}


def _tell_timing(
    converted: work.Converted, cog: work.Cog, found: work.Timing
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    ratio = found.cog / found.rumi
    verdict = f"{ratio:.1f} times faster" if ratio >= 1 else f"{1 / ratio:.1f} times slower"
    side, size = work.CHIP_SIZE, converted.header.file_size
    return [
        ("sizes", f"rumi {quantity(size)}, COG with ZSTD and predictor {quantity(cog.size)}"),
        ("work", f"open the file, read {side} x {side} of all bands, on one thread"),
        ("rumi", f"{found.rumi * 1e3:.2f} ms, median of {found.reads} chips: {verdict} here"),
        ("rasterio", f"{found.cog * 1e3:.2f} ms, the same chips in turn"),
    ], {"reads": found.reads, "rumi_seconds": found.rumi, "cog_seconds": found.cog}


def _silent(_title: str, _lines: list[tuple[str, str]]) -> None:
    return


def _printer() -> Callable[[str, list[tuple[str, str]]], None]:
    """Return a function that prints a step: a numbered title and its lines."""
    from rich.text import Text

    out = console()
    numbers = itertools.count(1)

    def show(title: str, lines: list[tuple[str, str]]) -> None:
        out.print(
            Text.assemble((f" {next(numbers)} ", "bold white on blue"), (f" {title}", "bold"))
        )
        print_rows([(f"   {name}", value) for name, value in lines], _INDENTED)
        out.print()

    return show
