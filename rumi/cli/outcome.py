"""What became of GeoTIFFs that were converted: lines for people, objects for programs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from rumi.cli.console import console, quantity
from rumi.cli.info import describe_header
from rumi.cli.program import complain, one_line
from rumi.errors import UnsupportedError
from rumi.source import source_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from rumi.geotiff import Conversion, Failure, Loss
    from rumi.source import SourceLike

    Result: TypeAlias = Conversion | Failure

__all__ = ["as_dict", "count", "failures", "refusal", "tell", "tell_all"]

_STYLES = {"converted": "green", "skipped": "dim", "failed": "bold red"}


def failures(results: Sequence[Result]) -> list[Failure]:
    """Return those that failed."""
    from rumi.geotiff import Failure

    return [result for result in results if isinstance(result, Failure)]


def count(results: Sequence[Result]) -> dict[str, int]:
    """Return how many were converted, skipped and failed."""
    words = [_status(result) for result in results]
    return {word: words.count(word) for word in _STYLES}


def as_dict(result: Result) -> dict[str, Any]:
    """Return everything about one file for JSON."""
    from rumi.geotiff import Failure

    common: dict[str, Any] = {"src": result.src, "dst": result.dst, "status": _status(result)}
    common["seconds"] = round(result.seconds, 3)
    if isinstance(result, Failure):
        return {**common, "error": {"kind": result.kind, "message": _reason(result)}}
    return {
        **common,
        "bytes_in": result.bytes_in,
        "bytes_out": result.bytes_out,
        "epsg": result.epsg,
        "nodata": result.nodata,
        "band_names": list(result.band_names),
        "losses": _losses(result.losses),
        "warnings": list(result.warnings),
        "notes": list(result.notes),
        **describe_header(result.header),
    }


def refusal(source: SourceLike, output: str, error: UnsupportedError, crs: Any) -> dict[str, Any]:
    """Return for JSON why a file was not converted, and what it would have lost."""
    from rumi import geotiff

    losses: list[dict[str, Any]] = []
    # It fails where the samples cannot be carried at all, or rasterio is missing;
    # the message says so.
    with suppress(UnsupportedError, OSError):
        losses = _losses(geotiff.inspect(source, crs=crs).losses)
    return {
        "src": source_name(source),
        "dst": output,
        "status": "failed",
        "error": {"kind": type(error).__name__, "message": one_line(error)},
        "losses": losses,
    }


def tell(done: Conversion) -> None:
    """Print what one file became."""
    bands, height, width = done.header.shape
    click.echo(
        f"{done.dst}: {bands} x {height} x {width} {done.header.encoding.dtype_name}, "
        f"{done.header.frame_count:,} {done.header.unit} frames, {quantity(done.bytes_out)} "
        f"({done.src}: {quantity(done.bytes_in)})"
    )
    for loss in done.losses:
        click.echo(f"  dropped {loss.name}: {loss.detail}")
    for note in done.notes:
        click.echo(f"  note: {note}")
    for warning in done.warnings:
        complain(f"{done.src}: {warning}", kind="warning")


def tell_all(results: Sequence[Result], seconds: float, *, table: bool) -> None:
    """Print a table of what became of each file, if wanted, and in any case each failure."""
    if table:
        _print_table(results, seconds)
    for failure in failures(results):
        complain(_reason(failure))


def _print_table(results: Sequence[Result], seconds: float) -> None:
    from rich.text import Text

    from rumi.geotiff import Failure

    out = console()
    before = after = 0
    for result in results:
        sizes = f"{'':>11}  {'':>11}  {'':>6}"
        if not isinstance(result, Failure):
            size_in, size_out = result.bytes_in, result.bytes_out
            before, after = before + size_in, after + size_out
            sizes = f"{quantity(size_in):>11}  {quantity(size_out):>11}  {size_in / size_out:6.2f}"
        status = _status(result)
        # The name stands last: it may be long, and is never cut.
        line = Text.assemble((f"{status:<9}", _STYLES[status]), f"  {sizes}  {result.src}")
        out.print(line, soft_wrap=True)
    words = ", ".join(f"{number} {word}" for word, number in count(results).items())
    click.echo(f"{words} in {seconds:.1f} s: {quantity(before)} became {quantity(after)}")


def _status(result: Result) -> str:
    from rumi.geotiff import Failure

    if isinstance(result, Failure):
        return "failed"
    return "skipped" if result.skipped else "converted"


def _reason(failure: Failure) -> str:
    """Return the reason in one line that names the file."""
    text = " ".join(failure.message.split()) or failure.kind
    return text if failure.src in text else f"{failure.src}: {text}"


def _losses(losses: Sequence[Loss]) -> list[dict[str, Any]]:
    return [{"name": loss.name, "detail": loss.detail, "dropped": loss.dropped} for loss in losses]
