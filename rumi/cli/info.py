"""``rumi info`` and ``rumi header``: what a file is, and its header blob."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import click

import rumi
from rumi import backends
from rumi._generated import constants
from rumi.cli.console import print_json, print_sections, quantity
from rumi.cli.parameters import (
    STDOUT,
    header_option,
    is_header,
    json_option,
    load_header,
    located,
    quiet_option,
    save,
    store_options,
)
from rumi.cli.program import Command
from rumi.errors import FormatError
from rumi.source import is_remote, source_name

if TYPE_CHECKING:
    from rumi import Header, Image
    from rumi.georef import Georeferencing

__all__ = ["describe_georeferencing", "describe_header", "header", "info"]


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False), required=False)
@header_option
@store_options
@click.option("--backends", "show_backends", is_flag=True, help="Show the decoders that are there.")
@json_option
def info(file: str | None, blob: str | None, show_backends: bool, as_json: bool) -> None:
    """Show what FILE, a .rumi file or a header blob, holds.

    Every name is the specification's. Without --header the whole profile of the
    file is checked on the way.
    """
    if file is None and not show_backends:
        raise click.UsageError("missing argument 'FILE', or --backends")
    if file is None and blob is not None:
        raise click.UsageError("--header goes with a FILE")
    found: dict[str, Any] = {}
    if file is not None:
        found = _describe(file, blob)
    if show_backends:
        found["backends"] = backends.versions()
    if as_json:
        print_json(found)
    else:
        print_sections(found.get("file", "decoders"), _sections(found))


@click.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("-o", "--output", metavar="BLOB", help="Write the blob here; - is stdout.")
@store_options
@json_option
@quiet_option
def header(file: str, output: str | None, as_json: bool, quiet: bool) -> None:
    """Rebuild the header blob of FILE and write it to BLOB.

    Reads what stands before the frames and checks the whole file profile. The
    same file gives the same blob, byte for byte. --json without -o prints the
    blob itself in base 64.
    """
    if output == STDOUT and as_json:
        raise click.UsageError("-o - and --json both want stdout")
    built = rumi.index(located(file))
    file = source_name(file)
    blob = bytes(built)
    if output is not None:
        save(blob, output)
    if as_json:
        found = {"file": file, "blob_size": len(blob), **describe_header(built)}
        found |= (
            {"output": source_name(output)} if output else {"blob": base64.b64encode(blob).decode()}
        )
        print_json(found)
    elif output != STDOUT and not quiet:
        where = f" in {source_name(output)}" if output else ""
        click.echo(
            f"{file}: header blob of {len(blob):,} bytes{where} for {built.frame_count:,} "
            f"{built.unit} frames, {quantity(built.file_size)}"
        )


def _describe(file: str, blob: str | None) -> dict[str, Any]:
    """Return everything about a file that one object can hold."""
    name = source_name(file)
    remote = is_remote(file)
    try:
        # A remote file is taken for one first, since that may take a single request.
        if blob is None and not remote and is_header(file):
            return _describe_blob(file, name)
        image = rumi.open(located(file), None if blob is None else load_header(blob))
        georeferencing = describe_georeferencing(image)
    except FormatError:
        if blob is None and remote and is_header(file):
            return _describe_blob(file, name)
        raise
    return {
        "file": name,
        "kind": "rumi file",
        **describe_header(image.header),
        "georeferencing": georeferencing,
    }


def _describe_blob(file: str, name: str) -> dict[str, Any]:
    return {"file": name, "kind": "header blob", **describe_header(load_header(file))}


def describe_header(header: Header) -> dict[str, Any]:
    """Return the fields of a header blob, and what follows from them."""
    fields = {
        name: getattr(header, name) for name, _, _, _ in constants.HEADER_FIELDS if name != "magic"
    }
    bands, height, width = header.shape
    samples = -(-bands * height * width * header.bits_per_sample // 8)
    return {
        "header": {"magic": constants.MAGIC, **fields},
        "blob_size": len(bytes(header)),
        "shape": [bands, height, width],
        "encoding": {
            "dtype": header.encoding.dtype_name,
            "description": header.encoding.description,
        },
        "frame_unit": header.unit,
        "tiles_across": header.tiles_across,
        "tiles_down": header.tiles_down,
        "frame_count": header.frame_count,
        "base_frame_offset": header.base_frame_offset,
        "file_size": header.file_size,
        "sample_bytes": samples,
        "ratio": round(samples / header.file_size, 4),
        "frame_byte_counts": _frame_sizes(header),
    }


def _frame_sizes(header: Header) -> dict[str, Any]:
    """Return the spread of the frames' sizes in bytes."""
    total = header.file_size - header.base_frame_offset
    smallest = largest = median = header.count_min
    if header.count_bits:
        # As long as the blob at most 32 times over, which holds a size for every frame.
        import numpy as np

        counts = header.byte_counts
        largest, median = int(counts.max()), int(np.median(counts))
    return {
        "min": smallest,
        "median": median,
        "mean": round(total / header.frame_count, 1),
        "max": largest,
        "total": total,
    }


def describe_georeferencing(image: Image) -> dict[str, Any]:
    """Return where an image lies; None where the file does not say."""
    found: Georeferencing = image.georeferencing
    return {
        "epsg": found.epsg,
        "crs_name": None if found.epsg is None else _crs_name(image),
        "transform": None if found.transform is None else list(found.transform),
        "bounds": None if found.transform is None else list(image.bounds or ()),
        "raster_type": found.raster_type,
    }


def _crs_name(image: Image) -> str | None:
    """Return the name of the CRS, None where the PROJ database is older than its code."""
    try:
        crs = image.crs
    except RuntimeError:  # what pyproj raises
        return None
    return None if crs is None else str(crs.name)


def _sections(found: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    sections = []
    if "header" in found:
        sections += [
            (f"Header blob, {found['blob_size']:,} bytes", _field_rows(found)),
            ("Frames", _frame_rows(found)),
        ]
    if "georeferencing" in found:
        sections.append(("Georeferencing", _georeferencing_rows(found["georeferencing"])))
    if "backends" in found:
        rows = [(name, version or _absent(name)) for name, version in found["backends"].items()]
        sections.append(("Decoders", rows))
    return sections


def _absent(name: str) -> str:
    return f"not installed: pip install 'rumi[{name}]'"


def _field_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    fields = found["header"]
    meaning = {
        "sample_format": f"({found['encoding']['description']}, {found['encoding']['dtype']})",
        "frame_unit": f"({found['frame_unit']})",
    }
    rows = [("magic", f"0x{fields['magic']:08X}")]
    for name, value in fields.items():
        if name != "magic":
            rows.append((name, f"{value} {meaning.get(name, '')}".rstrip()))
    return rows


def _frame_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    sizes = found["frame_byte_counts"]
    return [
        ("tiles_across", f"{found['tiles_across']:,}"),
        ("tiles_down", f"{found['tiles_down']:,}"),
        ("frame_count", f"{found['frame_count']:,}"),
        ("base_frame_offset", str(found["base_frame_offset"])),
        ("frame_byte_counts", f"{sizes['min']:,} to {sizes['max']:,}, median {sizes['median']:,}"),
        ("file size", f"{found['file_size']:,} bytes"),
        ("samples", f"{found['sample_bytes']:,} bytes, {found['ratio']:.2f} times the file"),
    ]


def _georeferencing_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    raster = f"PixelIs{found['raster_type'].capitalize()}"
    if found["epsg"] is None:
        return [("CRS", "none"), ("raster type", raster)]
    a, b, c, d, e, f = found["transform"]
    rows = [
        ("CRS", f"EPSG:{found['epsg']} {found['crs_name'] or ''}".rstrip()),
        ("raster type", raster),
        ("transform", f"x = {a!r} column + {b!r} row + {c!r}"),
        ("", f"y = {d!r} column + {e!r} row + {f!r}"),
    ]
    left, bottom, right, top = found["bounds"]
    rows.append(("bounds", f"x {left!r} to {right!r}, y {bottom!r} to {top!r}"))
    return rows
