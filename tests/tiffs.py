"""Small TIFF files, written byte by byte: what GDAL and tifffile will not write."""

import struct
import warnings
from contextlib import contextmanager
from pathlib import Path

import rasterio
from rasterio.errors import NotGeoreferencedWarning

_TYPES = {2: ("s", 1), 3: ("H", 2), 4: ("I", 4), 5: ("I", 4), 11: ("f", 4), 12: ("d", 8)}

SHORT, LONG, ASCII, DOUBLE = 3, 4, 2, 12

SHARED = Path(__file__).parents[1].parent / "shared"


def tiff(
    path,
    data,
    width,
    height,
    *,
    bits=(8,),
    formats=(1,),
    photometric=1,
    bands=1,
    extra=(),
    order="<",
    pages=(),
):
    """Write a classic TIFF of one uncompressed strip a page.

    `extra` holds (tag, type, values); `pages` the data of further pages.
    """
    out = bytearray((b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8))
    every = [data, *pages]
    for number, strip in enumerate(every):
        tags = [
            (256, LONG, [width]),
            (257, LONG, [height]),
            (258, SHORT, list(bits)),
            (259, SHORT, [1]),
            (262, SHORT, [photometric]),
            (273, LONG, [0]),
            (277, SHORT, [bands]),
            (278, LONG, [height]),
            (279, LONG, [len(strip)]),
            (339, SHORT, list(formats)),
            *extra,
        ]
        _page(out, sorted(tags), strip, order, last=number == len(every) - 1)
    Path(path).write_bytes(out)
    return path


def _page(out, tags, strip, order, *, last):
    end = len(out) + 2 + 12 * len(tags) + 4
    entries, values = [], bytearray()
    for tag, kind, items in tags:
        code, width = _TYPES[kind]
        raw = items if kind == ASCII else struct.pack(f"{order}{len(items)}{code}", *items)
        count = len(raw) // width if kind != 5 else len(items) // 2
        if len(raw) <= 4:
            field = raw.ljust(4, b"\0")
        else:
            field = struct.pack(order + "I", end + len(values))
            values += raw + b"\0" * (len(raw) % 2)
        entries.append([tag, kind, count, field])
    start = end + len(values)
    for entry in entries:
        if entry[0] == 273:
            entry[3] = struct.pack(order + "I", start)
    after = 0 if last else start + len(strip) + len(strip) % 2
    out += struct.pack(order + "H", len(tags))
    for tag, kind, count, field in entries:
        out += struct.pack(order + "HHI", tag, kind, count) + field
    out += struct.pack(order + "I", after) + values + strip + b"\0" * (len(strip) % 2)


def geo(keys, scale=(30.0, 30.0, 0.0), tie=(0, 0, 0, 500000.0, 4600000.0, 0), text="", doubles=()):
    """Return georeferencing tags for `extra`: keys are (id, location, count, value)."""
    shorts = [1, 1, 0, len(keys), *(number for key in keys for number in key)]
    found = [(33550, DOUBLE, list(scale)), (33922, DOUBLE, list(tie)), (34735, SHORT, shorts)]
    if doubles:
        found.append((34736, DOUBLE, list(doubles)))
    if text:
        found.append((34737, ASCII, text.encode() + b"\0"))
    return found


def utm(raster_type=1):
    """Return the keys of EPSG:32618."""
    return [(1024, 0, 1, 1), (1025, 0, 1, raster_type), (3072, 0, 1, 32618)]


@contextmanager
def gdal_open(path):
    """Open with rasterio, whether the file is georeferenced or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        dataset = rasterio.open(path)
    with dataset:
        yield dataset
