"""``rumi validate``: files against every clause of the specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

import rumi
from rumi.cli.console import print_json, progress
from rumi.cli.parameters import json_option, load_bytes, located, quiet_option, store_options
from rumi.cli.program import EXIT_FAILURE, Command

if TYPE_CHECKING:
    from rumi import Report
    from rumi.validation import Depth

__all__ = ["validate"]


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option(
    "--header",
    "blob",
    metavar="BLOB",
    type=click.Path(dir_okay=False),
    help="File or URL of the header blob of a single FILE, to be checked with it.",
)
@click.option(
    "--frames",
    "depth",
    type=click.Choice(["none", "headers", "decode"]),
    default="decode",
    show_default=True,
    help="How far to look into the frames.",
)
@store_options
@json_option
@quiet_option
@click.pass_context
def validate(
    ctx: click.Context,
    files: tuple[str, ...],
    blob: str | None,
    depth: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check FILES against the specification, one line a clause.

    Of several files, those that pass take one line together, and the clauses of
    the others are listed. The status is 1 where a file is not compliant.
    """
    if blob is not None and len(files) > 1:
        raise click.UsageError("--header goes with a single FILE")
    header = None if blob is None else load_bytes(blob)
    reports = list(_reports(files, header, cast("Depth", depth), quiet=quiet or as_json))
    if as_json:
        print_json(
            {
                "ok": all(report.ok for report in reports),
                "files": [report.to_dict() for report in reports],
            }
        )
    elif not quiet:
        _print(reports)
    if not all(report.ok for report in reports):
        ctx.exit(EXIT_FAILURE)


def _reports(files: tuple[str, ...], header: bytes | None, depth: Depth, *, quiet: bool) -> Any:
    """Yield the report of each file; a bar shows frames of one, and files of several."""
    with progress("validate", quiet=quiet) as update:
        for number, file in enumerate(files):
            frames = update if len(files) == 1 else None
            yield rumi.validate(located(file), header, frames=depth, progress=frames)
            if frames is None:
                update(number + 1, len(files))


def _print(reports: list[Report]) -> None:
    if len(reports) == 1:
        click.echo(str(reports[0]))
        return
    for report in reports:
        if report.ok:
            continue
        click.echo(f"{report.name}: not compliant")
        for finding in report.failures:
            click.echo(f"  {finding}")
    passed = sum(report.ok for report in reports)
    click.echo(f"{passed} of {len(reports)} files are compliant")
