"""Parameters that several commands share: windows, bands, tile sizes, headers, outputs."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rumi import Header, RumiError
from rumi._generated import constants
from rumi.cli.stores import located, store_options
from rumi.errors import HeaderError
from rumi.output import output_file
from rumi.source import is_remote, local_path, source_name

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "STDOUT",
    "bands_option",
    "header_option",
    "is_header",
    "json_option",
    "load_bytes",
    "load_header",
    "local_folder",
    "located",
    "numbers",
    "quiet_option",
    "save",
    "store_options",
    "suffix_of",
    "threads_option",
    "window_option",
]

F = TypeVar("F", bound="Callable[..., Any]")

# As an output, stands for stdout.
STDOUT = "-"

# Of a remote blob: the first request, and more than any blob has.
_FIRST_READ = 64 << 10
_LONGEST_BLOB = 2 << 30

_MAGIC = constants.MAGIC.to_bytes(4, "little")


def numbers(separator: str, counts: tuple[int, ...], form: str) -> Callable[..., Any]:
    """Return a callback that reads integers with a separator between them.

    Their number is checked, if `counts` says how many there may be; their range
    is checked where the image is known.
    """

    def read(
        _ctx: click.Context, _param: click.Parameter, value: str | None
    ) -> tuple[int, ...] | None:
        if value is None:
            return None
        try:
            found = tuple(int(part) for part in value.lower().split(separator))
        except ValueError:
            found = ()
        if not found or (counts and len(found) not in counts):
            raise click.BadParameter(f"expected {form}, found {value!r}")
        return found

    return read


def local_folder(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Path | None:
    """Take a folder of this machine, for what writes into it file by file."""
    if value is None:
        return None
    if is_remote(value):
        raise click.BadParameter(f"expected a local folder, found the URL {source_name(value)}")
    return Path(os.fsdecode(local_path(value)))


def window_option(command: F) -> F:
    """Add ``--window``."""
    return click.option(
        "--window",
        metavar="ROW,COL,HEIGHT,WIDTH",
        callback=numbers(",", (4,), "ROW,COL,HEIGHT,WIDTH in pixels"),
        help="In pixels; the whole image by default.",
    )(command)


def bands_option(command: F) -> F:
    """Add ``--bands``."""
    return click.option(
        "--bands",
        metavar="BAND,...",
        callback=numbers(",", (), "zero-based bands such as 0,1,2"),
        help="Zero-based, in this order; all by default.",
    )(command)


def json_option(command: F) -> F:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def quiet_option(command: F) -> F:
    """Add ``--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help="Print errors only.")(command)


def header_option(command: F) -> F:
    """Add ``--header``."""
    return click.option(
        "--header",
        "blob",
        metavar="BLOB",
        type=click.Path(dir_okay=False),
        help="File or URL of the header blob; the index of FILE is not read then.",
    )(command)


def threads_option(command: F) -> F:
    """Add ``--threads``."""
    return click.option(
        "--threads",
        metavar="N",
        type=click.IntRange(min=1),
        help="At most this many threads; RUMI_NUM_THREADS sets the default.",
    )(command)


def load_header(place: str) -> Header:
    """Read a header blob from a file or a URL.

    Raises
    ------
    HeaderError
        If it is no header blob; the file is named.
    OSError
        If it cannot be read.
    """
    name = source_name(place)
    # Whatever else it is, it may be huge: read on only where it starts like a blob.
    blob = _contents(place, lambda start: start[:4] == _MAGIC)
    if blob[:2] in (b"II", b"MM"):
        raise HeaderError(
            f"{name}: expected a header blob, found a TIFF or rumi file; make its blob with "
            "`rumi header FILE -o BLOB`"
        )
    try:
        return Header(blob)
    except RumiError as error:
        raise type(error)(f"{name}: {error}") from error


def load_bytes(place: str) -> bytes:
    """Read whatever is in a file or behind a URL that should hold a header blob."""
    return _contents(place, lambda _start: True)


def _contents(place: str, wanted: Callable[[bytes], bool]) -> bytes:
    """Return what a file holds, or its start alone where that is not what was wanted."""
    source = located(place)
    if isinstance(source, str):
        # It may be a pipe, too.
        with open(local_path(source), "rb") as file:
            start = file.read(constants.HEADER_SIZE)
            return start + (file.read() if wanted(start) else b"")
    opened = source.open()
    # One request for nearly every blob.
    start = opened.read(0, _FIRST_READ)
    if len(start) == _FIRST_READ and wanted(start):
        start += opened.read(len(start), min(opened.size, _LONGEST_BLOB) - len(start))
    return start


def is_header(place: str) -> bool:
    """Whether a file starts like a header blob."""
    source = located(place)
    if isinstance(source, str):
        with open(local_path(source), "rb") as file:
            return file.read(4) == _MAGIC
    return source.open().read(0, 4) == _MAGIC


def suffix_of(output: str) -> str:
    """Return the suffix of an output's name, in lower case; a URL's query is no part of it."""
    name = output.partition("?")[0] if is_remote(output) else output
    return PurePath(name).suffix.lower()


def save(data: bytes, output: str) -> None:
    """Write bytes to a file or an object, which appears whole or not at all, or to stdout."""
    if output == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with output_file(located(output, writing=True)) as file:
        file.write(data)
