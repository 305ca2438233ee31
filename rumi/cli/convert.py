"""``rumi convert`` and ``rumi export``: GeoTIFF in, GeoTIFF out."""

from __future__ import annotations

import dataclasses
import glob
import os
import time
import warnings
from typing import TYPE_CHECKING, Any

import click

from rumi.cli import outcome
from rumi.cli.console import print_json, progress, quantity
from rumi.cli.parameters import (
    header_option,
    json_option,
    load_header,
    located,
    numbers,
    quiet_option,
    store_options,
    threads_option,
)
from rumi.cli.program import EXIT_FAILURE, Command
from rumi.errors import UnsupportedError
from rumi.source import is_remote, source_name

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["convert", "export"]


def _losses(_ctx: click.Context, _param: click.Parameter, value: str) -> frozenset[str]:
    from rumi.geotiff.losses import parse_drop

    try:
        return parse_drop(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _code(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | str | None:
    return int(value) if value is not None and value.isdecimal() else value


@click.command(cls=Command)
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.argument("output", metavar="OUT.rumi|FOLDER")
@click.option(
    "--tile-size",
    metavar="SIDE|HxW",
    callback=numbers("x", (1, 2), "a side such as 512, or HEIGHTxWIDTH"),
    default="512",
    show_default=True,
    help="In pixels.",
)
@click.option(
    "--frame-unit",
    type=click.Choice(["tile", "cell"]),
    default="tile",
    show_default=True,
    help="One band, or all bands, of a tile in one frame.",
)
@click.option(
    "--codec",
    default="auto",
    show_default=True,
    help="'auto', or a chain such as 'delta>zigzag>lanes>zstd'.",
)
@click.option(
    "--drop",
    metavar="NAME,...",
    default="",
    callback=_losses,
    help="Convert without what these names stand for, or 'all'.",
)
@click.option("--crs", metavar="CODE", callback=_code, help="EPSG code, instead of the file's CRS.")
@click.option("--allow-no-crs", is_flag=True, help="Leave out a CRS that cannot be carried.")
@click.option("--no-verify", is_flag=True, help="Do not decode and compare every frame.")
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes, for several files.",
)
@click.option("--overwrite", is_flag=True, help="Replace OUT.rumi if it exists.")
@click.option("--redo", is_flag=True, help="Convert files again that are in FOLDER already.")
@store_options
@threads_option
@json_option
@quiet_option
def convert(
    inputs: tuple[str, ...],
    output: str,
    tile_size: tuple[int, ...],
    no_verify: bool,
    workers: int,
    overwrite: bool,
    redo: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Convert GeoTIFFs to .rumi files.

    One file converts to OUT.rumi. Several, a folder or a quoted pattern convert
    into FOLDER, where files that are there and still good are left alone, so
    that an interrupted run goes on. What a .rumi file cannot carry is listed,
    and nothing is lost that --drop does not name. Inputs and output may be URLs;
    a URL that ends in / is a FOLDER.
    """
    options["tile_size"] = tile_size[0] if len(tile_size) == 1 else tile_size
    options["verify"] = not no_verify
    if _is_one(inputs, output):
        options["overwrite"] = overwrite
        _convert_one(inputs[0], output, options, as_json=as_json, quiet=quiet)
        return
    if overwrite:
        raise click.UsageError("--overwrite goes with OUT.rumi; for FOLDER it is --redo")
    many = {"workers": workers, "resume": not redo}
    if not _convert_many(inputs, output, options | many, as_json=as_json, quiet=quiet):
        click.get_current_context().exit(EXIT_FAILURE)


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@click.argument("output", metavar="OUT.tif")
@header_option
@click.option(
    "--driver",
    type=click.Choice(["COG", "GTiff"], case_sensitive=False),
    default="COG",
    show_default=True,
    help="Cloud-optimised, or tiled without overviews.",
)
@click.option(
    "--compress",
    type=click.Choice(["DEFLATE", "ZSTD", "LZW", "LZMA", "NONE"], case_sensitive=False),
    default="DEFLATE",
    show_default=True,
    help="All lossless.",
)
@click.option(
    "--overviews",
    type=click.Choice(["nearest", "average", "bilinear", "cubic", "mode", "none"]),
    default="nearest",
    show_default=True,
    help="How a COG's reduced copies are made.",
)
@click.option("--nodata", metavar="VALUE", help="Declare this value as nodata.")
@click.option("--band-names", metavar="NAME,...", default="", help="Name the bands.")
@click.option("--widen", is_flag=True, help="Write samples that GDAL lacks as a wider type.")
@click.option("--no-verify", is_flag=True, help="Do not read the GeoTIFF back and compare it.")
@click.option("--overwrite", is_flag=True, help="Replace OUT.tif if it exists.")
@store_options
@threads_option
@json_option
@quiet_option
def export(
    file: str,
    output: str,
    blob: str | None,
    overviews: str,
    band_names: str,
    no_verify: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Write FILE, a .rumi file, as a GeoTIFF that GDAL reads.

    Pixels, transform and CRS are read back and compared. What was dropped on
    the way in, such as nodata and band names, can be given again.
    """
    from rumi import geotiff

    with progress(source_name(file), quiet=quiet) as show:
        done = geotiff.export(
            located(file),
            located(output, writing=True),
            header=None if blob is None else load_header(blob),
            overviews=None if overviews == "none" else overviews,
            band_names=band_names.split(",") if band_names else (),
            verify=not no_verify,
            progress=show,
            **options,
        )
    if as_json:
        print_json(dataclasses.asdict(done))
    elif not quiet:
        widened = " (a wider type than the file's)" if done.widened else ""
        click.echo(f"{done.dst}: {done.dtype}{widened}, {quantity(done.bytes_out)}")


def _is_one(inputs: Sequence[str], output: str) -> bool:
    """Whether the line names one file and what it becomes."""
    if len(inputs) > 1 or output.endswith("/" if is_remote(output) else os.sep):
        return False
    if not is_remote(output) and os.path.isdir(output):
        return False
    source = inputs[0]
    return is_remote(source) or (
        not os.path.isdir(source) and (os.path.exists(source) or not glob.has_magic(source))
    )


def _convert_one(
    source: str, output: str, options: dict[str, Any], *, as_json: bool, quiet: bool
) -> None:
    from rumi import geotiff

    src = located(source)
    try:
        with warnings.catch_warnings(), progress(source_name(source), quiet=quiet) as show:
            # The result carries them.
            warnings.simplefilter("ignore", UserWarning)
            done = geotiff.convert(src, located(output, writing=True), progress=show, **options)
    except UnsupportedError as error:
        if as_json:
            print_json(outcome.refusal(src, source_name(output), error, options["crs"]))
        raise
    if as_json:
        print_json(outcome.as_dict(done))
    elif not quiet:
        outcome.tell(done)


def _convert_many(
    inputs: Sequence[str], folder: str, options: dict[str, Any], *, as_json: bool, quiet: bool
) -> bool:
    """Convert into a folder; return whether every file is there now."""
    from rumi import geotiff

    if options["threads"] is None:
        # Not the same as None: several workers then share the processors.
        del options["threads"]
    start = time.monotonic()
    label = source_name(inputs[0] if len(inputs) == 1 else folder)
    with progress(label, quiet=quiet) as show:
        results = geotiff.convert_many(
            [located(source) for source in inputs],
            located(folder, writing=True),
            on_progress=lambda done, total, _result: show(done, total),
            **options,
        )
    if as_json:
        files = [outcome.as_dict(result) for result in results]
        print_json({**outcome.count(results), "files": files})
    outcome.tell_all(results, time.monotonic() - start, table=not (quiet or as_json))
    return not outcome.failures(results)
