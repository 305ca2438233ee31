"""``rumi profile``: what each recipe makes of an image."""

from __future__ import annotations

from dataclasses import asdict

import click

from rumi.cli.console import print_json
from rumi.cli.parameters import json_option, located, store_options
from rumi.cli.program import Command
from rumi.source import source_name

__all__ = ["profile"]


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--tile-size",
    type=click.IntRange(1, 0xFFFF),
    default=512,
    show_default=True,
    help="Side of a tile in pixels.",
)
@click.option(
    "--frame-unit",
    type=click.Choice(["tile", "cell"]),
    default="tile",
    show_default=True,
    help="One band, or all bands, of a grid position in one frame.",
)
@click.option("--codec", "codecs", multiple=True, help="Measure this recipe; may be repeated.")
@click.option("-o", "--output", metavar="OUT.png", help="Draw size against decode speed.")
@store_options
@json_option
def profile(
    file: str,
    tile_size: int,
    frame_unit: str,
    codecs: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> None:
    """Measure recipes on FILE, a .rumi file or a GeoTIFF: size, encoding, decoding.

    Rows on the front, which no other row beats in both size and decode speed,
    have a star. The recipes of geozl are measured where it is installed.
    """
    from rumi.codec import profile as measure

    rows = measure(
        located(file), tile_size=tile_size, frame_unit=frame_unit, recipes=codecs or None
    )
    if output is not None:
        rows.plot(located(output, writing=True))
    if as_json:
        print_json({"file": source_name(file), "recipes": [asdict(row) for row in rows]})
    else:
        click.echo(str(rows))
