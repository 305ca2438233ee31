"""Parameters that several commands share: windows, bands, tile sizes, headers, outputs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rumi import Header, RumiError
from rumi._generated import constants
from rumi.atomic import atomic_file
from rumi.errors import HeaderError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "STDOUT",
    "bands_option",
    "header_option",
    "is_header",
    "json_option",
    "load_header",
    "numbers",
    "quiet_option",
    "save",
    "threads_option",
    "window_option",
]

F = TypeVar("F", bound="Callable[..., Any]")

# As an output, stands for stdout.
STDOUT = "-"

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
        help="File with the header blob; the index of FILE is not read then.",
    )(command)


def threads_option(command: F) -> F:
    """Add ``--threads``."""
    return click.option(
        "--threads",
        metavar="N",
        type=click.IntRange(min=1),
        help="At most this many threads; RUMI_NUM_THREADS sets the default.",
    )(command)


def load_header(path: str) -> Header:
    """Read a header blob from a file.

    Raises
    ------
    HeaderError
        If it is no header blob; the file is named.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as file:
        start = file.read(constants.HEADER_SIZE)
        if start[:2] in (b"II", b"MM"):
            raise HeaderError(
                f"{path}: expected a header blob, found a TIFF or rumi file; make its blob with "
                "`rumi header FILE -o BLOB`"
            )
        # Whatever else it is, it may be huge: read on only where it starts like a blob.
        rest = file.read() if start[:4] == _MAGIC else b""
    try:
        return Header(start + rest)
    except RumiError as error:
        raise type(error)(f"{path}: {error}") from error


def is_header(path: str) -> bool:
    """Whether a local file starts like a header blob."""
    if "://" in path:
        return False
    with open(path, "rb") as file:
        return file.read(4) == _MAGIC


def save(data: bytes, output: str) -> None:
    """Write bytes to a file, which appears whole or not at all, or to stdout."""
    if output == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with atomic_file(os.fsencode(output)) as file:
        file.write(data)
