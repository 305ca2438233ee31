"""``rumi read``: a window as an array or a picture."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import rumi
from rumi.cli.console import print_json
from rumi.cli.parameters import (
    STDOUT,
    bands_option,
    header_option,
    json_option,
    load_header,
    located,
    quiet_option,
    save,
    store_options,
    suffix_of,
    threads_option,
    window_option,
)
from rumi.cli.program import Command
from rumi.source import source_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi import Image

__all__ = ["read"]

# Red, green and blue of a picture where nobody chose.
_COLOURS = 3

# NumPy's own types; others are saved as unsigned integers of their width.
_FIRST_USER_TYPE = 256
_RAW = {1: np.uint8, 2: np.uint16}


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@header_option
@window_option
@bands_option
@click.option(
    "-o",
    "--output",
    metavar="OUT.npy|OUT.png",
    required=True,
    help="Array of NumPy, or picture of 1 or 3 bands; - is an array to stdout.",
)
@click.option("--grid", is_flag=True, help="Draw the frames over the picture.")
@click.option("--scale", type=click.IntRange(1, 64), help="Side of a pixel in the picture.")
@store_options
@threads_option
@json_option
@quiet_option
def read(
    file: str,
    blob: str | None,
    window: tuple[int, int, int, int] | None,
    bands: tuple[int, ...] | None,
    output: str,
    grid: bool,
    scale: int | None,
    threads: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Read a window of FILE into an array or a picture.

    With --header nothing but the window's frames is read. Samples of types that
    NumPy lacks are saved as unsigned integers with the same bits. A picture is
    stretched from the 2nd to the 98th percentile of the window.
    """
    suffix = suffix_of(output)
    if output != STDOUT and suffix not in (".npy", ".png"):
        raise click.UsageError(
            f"-o: expected a name that ends in .npy or .png, found {source_name(output)!r}"
        )
    if suffix != ".png" and (grid or scale is not None):
        raise click.UsageError("--grid and --scale go with -o OUT.png")
    if output == STDOUT and as_json:
        raise click.UsageError("-o - and --json both want stdout")
    image = rumi.open(located(file), None if blob is None else load_header(blob))
    if suffix == ".png":
        bands = _colours(image, bands)
    chosen = None if bands is None else list(bands)
    samples = image.read(bands=chosen, window=window, threads=threads)
    if suffix == ".png":
        _save_picture(samples, image, window, output, grid=grid, scale=scale or 1)
    else:
        samples = _storable(samples)
        save(_npy(samples), output)
    file, output = source_name(file), source_name(output)
    if as_json:
        print_json({"file": file, "output": output, **_summary(samples, bands, window)})
    elif output != STDOUT and not quiet:
        shape = " x ".join(str(side) for side in samples.shape)
        click.echo(f"{output}: {shape} {samples.dtype} of {file}")


def _colours(image: Image, bands: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the bands of a picture: those asked for, else the first three or the first."""
    if bands is None:
        return tuple(range(_COLOURS)) if image.shape[0] >= _COLOURS else (0,)
    if len(bands) not in (1, _COLOURS):
        raise click.UsageError(f"a picture takes 1 or {_COLOURS} bands, found {len(bands)}")
    return bands


def _save_picture(
    samples: NDArray[Any],
    image: Image,
    window: tuple[int, int, int, int] | None,
    output: str,
    *,
    grid: bool,
    scale: int,
) -> None:
    from rumi import pictures

    drawn = pictures.picture(
        samples,
        scale=scale,
        header=image.header if grid else None,
        window=window or (0, 0, *image.shape[1:]),
    )
    pictures.save_png(drawn, located(output, writing=True))


def _storable(samples: NDArray[Any]) -> NDArray[Any]:
    """Return samples in a type that every NumPy reads back."""
    if samples.dtype.num < _FIRST_USER_TYPE:
        return samples
    return samples.view(_RAW[samples.dtype.itemsize])


def _npy(samples: NDArray[Any]) -> bytes:
    # Through memory, since NumPy can write an array neither to a pipe nor to a
    # file that is renamed later.
    buffer = BytesIO()
    np.save(buffer, samples, allow_pickle=False)
    return buffer.getvalue()


def _summary(
    samples: NDArray[Any],
    bands: tuple[int, ...] | None,
    window: tuple[int, int, int, int] | None,
) -> dict[str, Any]:
    return {
        "shape": list(samples.shape),
        "dtype": str(samples.dtype),
        "bands": None if bands is None else list(bands),
        "window": None if window is None else list(window),
    }
