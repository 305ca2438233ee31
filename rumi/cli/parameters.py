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
    "BANDS",
    "STDOUT",
    "TILE_SIZE",
    "WINDOW",
    "header_option",
    "json_option",
    "load_header",
    "quiet_option",
    "save",
    "threads_option",
]

F = TypeVar("F", bound="Callable[..., Any]")

# As an output, stands for stdout.
STDOUT = "-"

_MAGIC = constants.MAGIC.to_bytes(4, "little")


class _Numbers(click.ParamType):
    """Integers with a separator between them."""

    def __init__(self, name: str, separator: str, counts: tuple[int, ...], form: str) -> None:
        self.name = name
        self._separator = separator
        self._counts = counts
        self._form = form

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Read the integers; their range is checked where the image is known."""
        if isinstance(value, tuple):
            return value
        parts = str(value).lower().split(self._separator)
        try:
            numbers = tuple(int(part) for part in parts)
        except ValueError:
            numbers = ()
        if not numbers or (self._counts and len(numbers) not in self._counts):
            self.fail(f"expected {self._form}, found {value!r}", param, ctx)
        return numbers


WINDOW = _Numbers("ROW,COL,HEIGHT,WIDTH", ",", (4,), "ROW,COL,HEIGHT,WIDTH in pixels")
BANDS = _Numbers("BAND,...", ",", (), "zero-based bands such as 0,1,2")
TILE_SIZE = _Numbers("SIDE|HxW", "x", (1, 2), "a side such as 512, or HEIGHTxWIDTH")


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
    """Whether a file starts like a header blob."""
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
