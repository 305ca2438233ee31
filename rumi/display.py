"""What notebooks show: small tables, and the tile grid as a drawing.

Functions of plain values, without styles or scripts of their own. They read
nothing, and whatever comes from outside, names above all, is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rumi.georef import Georeferencing
    from rumi.header import Header

__all__ = ["catalog_html", "cube_html", "header_html", "image_html"]

# Pixels of the longer side of a drawing, and lines of the grid that are drawn at most.
_DRAWING = 120
_LINES = 24

# Images of a cube that are drawn and named.
_SHOWN = 5

_STROKE = 'fill="none" stroke="currentColor"'


def header_html(header: Header) -> str:
    """Return the HTML of a header blob."""
    return _page("rumi.Header", "", _header_rows(header), _grid(header))


def image_html(name: str, header: Header, georeferencing: Georeferencing | None) -> str:
    """Return the HTML of an image.

    Parameters
    ----------
    name : str
        What errors call the image.
    header : Header
    georeferencing : Georeferencing or None
        None if it has not been read yet.
    """
    rows = [*_header_rows(header), *_place_rows(georeferencing)]
    return _page("rumi.Image", name, rows, _grid(header))


def cube_html(names: Sequence[str], header: Header, georeferencing: Georeferencing | None) -> str:
    """Return the HTML of grid-aligned images.

    Parameters
    ----------
    names : sequence of str
        What errors call the images.
    header : Header
        Of the first image.
    georeferencing : Georeferencing or None
        Of the first image.
    """
    bands, height, width = header.shape
    more = [f"and {len(names) - _SHOWN:,} more"] if len(names) > _SHOWN else []
    rows = [
        ("shape", f"{len(names):,} images x {bands:,} bands x {height:,} x {width:,}"),
        *_header_rows(header)[1:3],
        *_place_rows(georeferencing),
        ("images", ", ".join([*names[:_SHOWN], *more])),
    ]
    return _page("rumi.Cube", "", rows, _grid(header, len(names)))


def catalog_html(name: str, facts: Mapping[str, Any], columns: Mapping[str, Any]) -> str:
    """Return the HTML of a catalog.

    Parameters
    ----------
    name : str
        Its file.
    facts : mapping of str to anything
        What there is to say in one line each, such as the number of rows.
    columns : mapping of str to anything
        Names and types of the columns.
    """
    rows = [(key, _text(value)) for key, value in facts.items()]
    listed = _table((key, _text(value)) for key, value in columns.items())
    details = f"<details><summary>{len(columns):,} columns</summary>{listed}</details>"
    return _page("rumi.Catalog", name, rows, "") + (details if columns else "")


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _page(kind: str, name: str, rows: Iterable[tuple[str, str]], drawing: str) -> str:
    title = f"<strong>{escape(kind)}</strong>"
    if name:
        title += f" <code>{escape(name)}</code>"
    cell = f'<td style="vertical-align:top">{drawing}</td>' if drawing else ""
    return (
        f"<div><div>{title}</div><table><tr>"
        f'<td style="vertical-align:top">{_table(rows)}</td>{cell}</tr></table></div>'
    )


def _table(rows: Iterable[tuple[str, str]]) -> str:
    cells = (
        f'<tr><th style="text-align:left">{escape(key)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for key, value in rows
    )
    return f"<table>{''.join(cells)}</table>"


def _header_rows(header: Header) -> list[tuple[str, str]]:
    bands, height, width = header.shape
    encoding = header.encoding
    samples = -(-bands * height * width * header.bits_per_sample // 8)
    return [
        ("shape", f"{bands:,} bands x {height:,} x {width:,}"),
        ("samples", f"{encoding.dtype_name} ({encoding.description})"),
        (
            "frames",
            f"{header.frame_count:,} {header.unit} frames of {header.tile_length:,} x "
            f"{header.tile_width:,}, {header.tiles_down:,} down, {header.tiles_across:,} across",
        ),
        (
            "file",
            f"{header.file_size:,} bytes for {samples:,} of samples "
            f"({samples / header.file_size:.2f} times)",
        ),
        ("header blob", f"{len(header):,} bytes"),
    ]


def _place_rows(georeferencing: Georeferencing | None) -> list[tuple[str, str]]:
    if georeferencing is None:
        return [("CRS", "not read yet")]
    raster = ("raster type", georeferencing.raster_type)
    if georeferencing.transform is None:
        return [("CRS", "none"), raster]
    a, b, c, d, e, f = georeferencing.transform
    return [
        ("CRS", f"EPSG:{georeferencing.epsg}"),
        ("transform", f"({a!r}, {b!r}, {c!r}, {d!r}, {e!r}, {f!r})"),
        raster,
    ]


def _grid(header: Header, images: int = 1) -> str:
    """Draw the tile grid as SVG, behind it the other images of a cube."""
    _, height, width = header.shape
    scale = _DRAWING / max(height, width)
    # However thin the image, its border has two sides.
    across, down = max(width * scale, 2.0), max(height * scale, 2.0)
    behind = min(images, _SHOWN) - 1
    shift = 6 * behind
    lines = [
        f'<rect x="{6 * n + 1}" y="{shift - 6 * n + 1}" width="{across:.1f}" height="{down:.1f}" '
        f'{_STROKE} stroke-opacity="0.4"/>'
        for n in range(behind, 0, -1)
    ]
    lines.append(
        f'<rect x="1" y="{shift + 1}" width="{across:.1f}" height="{down:.1f}" {_STROKE}/>'
    )
    path = [
        f"M{1 + x:.1f} {shift + 1}v{down:.1f}" for x in _lines(width, header.tile_width, across)
    ]
    path += [
        f"M1 {shift + 1 + y:.1f}h{across:.1f}" for y in _lines(height, header.tile_length, down)
    ]
    if path:
        lines.append(f'<path d="{"".join(path)}" {_STROKE} stroke-opacity="0.4"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="tile grid" '
        f'width="{across + shift + 2:.0f}" height="{down + shift + 2:.0f}">{"".join(lines)}</svg>'
    )


def _lines(side: int, tile: int, length: float) -> list[float]:
    """Return where the borders of the tiles are drawn; of too many every second, third, ..."""
    step = tile * max(1, -(-side // (tile * _LINES)))
    return [position * length / side for position in range(step, side, step)]
