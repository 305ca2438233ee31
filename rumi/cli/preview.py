"""``rumi preview``: a small picture of a whole image."""

from __future__ import annotations

import click

import rumi
from rumi.cli.console import print_json
from rumi.cli.parameters import (
    bands_option,
    header_option,
    json_option,
    load_header,
    located,
    quiet_option,
    store_options,
    suffix_of,
    threads_option,
)
from rumi.cli.program import Command
from rumi.pictures import PERCENTILES
from rumi.preview import MAX_SIZE, SIZE, choose_bands, reduction
from rumi.preview import preview as draw
from rumi.source import source_name

__all__ = ["preview"]


def _percentiles(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> tuple[float, float]:
    if value is None:
        return PERCENTILES
    try:
        low, high = map(float, value.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not 0 <= low < high <= 100:
        raise click.BadParameter(f"expected LOW,HIGH within 0 and 100, found {value!r}")
    return low, high


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@header_option
@bands_option
@click.option("-o", "--output", metavar="OUT.png", required=True, help="The picture.")
@click.option(
    "--size",
    type=click.IntRange(1, MAX_SIZE),
    default=SIZE,
    show_default=True,
    help="Longer side in pixels; small images are not enlarged.",
)
@click.option(
    "--percentiles",
    metavar="LOW,HIGH",
    callback=_percentiles,
    help="What becomes black and white; 2,98 by default.",
)
@click.option("--nodata", type=float, help="Samples of this value do not count there.")
@click.option("--grid", is_flag=True, help="Draw the frames over the picture.")
@store_options
@threads_option
@json_option
@quiet_option
def preview(
    file: str,
    blob: str | None,
    bands: tuple[int, ...] | None,
    output: str,
    size: int,
    percentiles: tuple[float, float],
    nodata: float | None,
    grid: bool,
    threads: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw a small picture of all of FILE.

    Bands are one, or three for red, green and blue; by default the first three, or
    the first. Of an image with more than 1 GiB of samples in them, not every frame is read.
    """
    if suffix_of(output) != ".png":
        raise click.UsageError(
            f"-o: expected a name that ends in .png, found {source_name(output)!r}"
        )
    from rumi import pictures

    image = rumi.open(located(file), None if blob is None else load_header(blob))
    chosen = choose_bands(image.header, bands)
    reduced = reduction(image.header, chosen, size)
    picture = draw(
        image,
        bands=chosen,
        size=size,
        percentiles=percentiles,
        nodata=nodata,
        grid=grid,
        threads=threads,
    )
    pictures.save_png(picture, located(output, writing=True))
    file, output = source_name(file), source_name(output)
    if as_json:
        print_json(
            {
                "file": file,
                "output": output,
                "bands": chosen,
                "height": picture.height,
                "width": picture.width,
                "percentiles": list(percentiles),
                "frames_read": reduced.frames_read,
                "frames": reduced.frames,
            }
        )
    elif not quiet:
        bands_text = ",".join(map(str, chosen))
        click.echo(
            f"{output}: {picture.height} x {picture.width} pixels of {file}, bands {bands_text}, "
            f"from {reduced.frames_read:,} of {reduced.frames:,} frames"
        )
