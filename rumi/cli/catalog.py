"""``rumi catalog``: build catalogs, tell what they hold, find rows that are not true any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from rumi.cli.console import print_json, print_sections, progress, quantity
from rumi.cli.parameters import json_option, located, quiet_option, store_options, suffix_of
from rumi.cli.program import EXIT_FAILURE, Command, complain
from rumi.cli.stores import store_for
from rumi.remote.store import store_at
from rumi.source import is_remote, source_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rumi.catalog import Catalog, Failure

__all__ = ["catalog"]

_SUFFIXES = (".parquet", ".geoparquet")

# Values of a column that are told apart in a summary.
_SHOWN = 8


@click.group("catalog")
def catalog() -> None:
    """Build, describe and verify catalogs.

    A catalog is a GeoParquet file of paths, header blobs and footprints. It finds
    every chip of every file without opening any.
    """


catalog.command_class = Command


def _workers_option(command: Any) -> Any:
    return click.option(
        "--workers",
        metavar="N",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Processes.",
    )(command)


@catalog.command()
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.argument("output", metavar="OUT.parquet")
@click.option("--append", is_flag=True, help="Add to OUT, replacing rows of the same files.")
@click.option("--sha256", is_flag=True, help="Read every file whole and record its SHA-256.")
@_workers_option
@store_options
@json_option
@quiet_option
def build(
    inputs: tuple[str, ...],
    output: str,
    append: bool,
    sha256: bool,
    workers: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Make the catalog OUT.parquet of rumi files.

    INPUT is a file, a folder, a pattern such as 'scenes/**/*.rumi', a URL, or a
    URL that ends in / and stands for everything below it. Files that cannot be in
    it are named on stderr; the others are in the catalog all the same, and the
    status is 1.
    """
    from rumi.catalog import Catalog

    # What a forgotten output would be, a rumi file, must not be replaced.
    name = source_name(output)
    if suffix_of(output) not in _SUFFIXES:
        raise click.UsageError(f"expected an output that ends in .parquet, found {name!r}")
    sources = [member for place in inputs for member in _members(place)]
    target = located(output, writing=True)
    with progress(name, quiet=quiet or as_json) as show:
        options: dict[str, Any] = {"sha256": sha256, "workers": workers, "progress": show}
        if append:
            made = Catalog.open(target).append(sources, **options)
        else:
            made = Catalog.build(sources, target, **options)
    if as_json:
        found = {"catalog": name, "rows": len(made), "failures": _as_dicts(made.failures)}
        print_json(found)
    else:
        if not quiet:
            click.echo(f"{name}: {len(made):,} rows, {len(made.failures):,} failures")
        _complain(made.failures)
    _exit_if(made.failures)


@catalog.command()
@click.argument("file", metavar="CATALOG")
@click.option("--where", metavar="CONDITION", help="Such as \"cloud < 10 and split == 'train'\".")
@click.option(
    "--bbox",
    metavar="W S E N",
    nargs=4,
    type=float,
    help="Footprints that meet this box, in degrees.",
)
@store_options
@json_option
def info(file: str, where: str | None, bbox: tuple[float, ...] | None, as_json: bool) -> None:
    """Show what CATALOG holds, or the part of it that conditions select.

    Every header blob is parsed; rows whose blob breaks the specification are named,
    and the status is 1.
    """
    from rumi.catalog import Catalog

    opened = Catalog.open(located(file))
    if where is not None or bbox:
        opened = opened.filter(bbox=bbox or None, where=where)
    found = _describe(opened)
    if as_json:
        print_json(found)
    else:
        print_sections(source_name(file), _sections(found))
    for path in found["invalid"]:
        complain(f"{path}: the header blob breaks the specification")
    _exit_if(found["invalid"])


@catalog.command()
@click.argument("file", metavar="CATALOG")
@click.option("--deep", is_flag=True, help="Read every index, and compare recorded SHA-256.")
@_workers_option
@store_options
@json_option
@quiet_option
def verify(file: str, deep: bool, workers: int, as_json: bool, quiet: bool) -> None:
    """Name the rows of CATALOG that are not true of their files any more.

    Local files of the recorded size and time are trusted, unless --deep. The
    status is 1 if there is a stale row. Files in another store than CATALOG are
    reached with the settings of the environment.
    """
    from rumi.catalog import Catalog

    opened = Catalog.open(located(file))
    file = source_name(file)
    with progress(file, quiet=quiet or as_json) as show:
        stale = opened.verify(deep=deep, workers=workers, progress=show)
    if as_json:
        print_json({"catalog": file, "rows": len(opened), "stale": _as_dicts(stale)})
    else:
        if not quiet:
            click.echo(f"{file}: {len(opened):,} rows, {len(stale):,} stale")
        _complain(stale)
    _exit_if(stale)


def _members(place: str) -> list[Any]:
    """Return what an input means: itself, or the objects below a URL as the options describe it.

    Raises
    ------
    FileNotFoundError
        If nothing is below it.
    """
    if not is_remote(place):
        return [place]
    from rumi.catalog.sources import of_url

    found = of_url(place, lambda root: store_for(store_at(root)))
    if not found:
        raise FileNotFoundError(f"{source_name(place)}: no .rumi file found")
    return [located(place) if member == place else member for member in found]


def _exit_if(found: Sequence[Any]) -> None:
    if found:
        click.get_current_context().exit(EXIT_FAILURE)


def _as_dicts(failures: Sequence[Failure]) -> list[dict[str, Any]]:
    return [
        {
            "path": failure.path,
            "row": failure.row,
            "error": {"kind": failure.kind, "message": failure.message},
        }
        for failure in failures
    ]


def _complain(failures: Sequence[Failure]) -> None:
    for failure in failures:
        named = failure.path in failure.message
        complain(failure.message if named else f"{failure.path}: {failure.message}")


def _describe(opened: Catalog) -> dict[str, Any]:
    """Return everything about a catalog that one object can hold."""
    headers = opened.headers
    invalid = headers.invalid.tolist()
    valid = headers.fields[headers.fields["valid"] == 1]
    return {
        "catalog": opened.name,
        "rows": len(opened),
        "columns": opened.columns,
        "header_bytes": int(headers.offsets[-1] - headers.offsets[0]),
        "file_bytes": int(valid["file_size"].sum()),
        "frames": int(valid["frame_count"].sum()),
        "bands": _range(valid["samples_per_pixel"]),
        "height": _range(valid["image_length"]),
        "width": _range(valid["image_width"]),
        "dtype": _counts(opened, "dtype"),
        "epsg": _counts(opened, "epsg"),
        "bounds": _bounds(opened),
        "invalid": opened.paths(invalid),
    }


def _range(values: Any) -> list[int] | None:
    return [int(values.min()), int(values.max())] if values.size else None


def _counts(opened: Catalog, name: str) -> list[dict[str, Any]]:
    """Return the values of a column with their numbers of rows, most frequent first."""
    if name not in opened.columns:
        return []
    counts = opened.to_arrow([name]).column(name).value_counts().to_pylist()
    rows = [{"value": item["values"], "rows": item["counts"]} for item in counts]
    return sorted(rows, key=lambda row: -row["rows"])


def _bounds(opened: Catalog) -> list[float] | None:
    """Return west, south, east and north of all footprints."""
    if "bbox" not in opened.columns:
        return None
    corners = opened.to_arrow(["bbox"]).column("bbox").combine_chunks().flatten()
    boxes = np.array([corner.to_numpy(zero_copy_only=False) for corner in corners], float)
    known = boxes[:, np.isfinite(boxes).all(axis=0)]
    if not known.size:
        return None
    return [*known[:2].min(axis=1).tolist(), *known[2:].max(axis=1).tolist()]


def _sections(found: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    rows = [
        ("rows", f"{found['rows']:,}"),
        ("columns", ", ".join(found["columns"])),
        ("header blobs", quantity(found["header_bytes"])),
        ("files", f"{quantity(found['file_bytes'])} in {found['frames']:,} frames"),
    ]
    if found["invalid"]:
        rows.append(("invalid", f"{len(found['invalid']):,} header blobs"))
    images = [(name, _span(found[name])) for name in ("bands", "height", "width")]
    images.append(("dtype", _listed(found["dtype"], "")))
    place = [("CRS", _listed(found["epsg"], "EPSG:"))]
    if found["bounds"] is not None:
        west, south, east, north = found["bounds"]
        text = f"longitude {west:.6g} to {east:.6g}, latitude {south:.6g} to {north:.6g}"
        place.append(("footprints", text))
    return [("Catalog", rows), ("Images", images), ("Place", place)]


def _span(ends: list[int] | None) -> str:
    if ends is None:
        return "none"
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} to {ends[1]:,}"


def _listed(counts: list[dict[str, Any]], prefix: str) -> str:
    parts = [
        f"{'none' if row['value'] is None else prefix + str(row['value'])} ({row['rows']:,})"
        for row in counts[:_SHOWN]
    ]
    more = len(counts) - len(parts)
    return ", ".join(parts + ([f"{more} more"] if more > 0 else [])) or "unknown"
