"""What goes to the terminal: results to stdout, progress to stderr."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

__all__ = [
    "Section",
    "console",
    "print_json",
    "print_rows",
    "print_sections",
    "progress",
    "quantity",
]

# A heading, and names with their values.
Section: TypeAlias = "tuple[str, Sequence[tuple[str, str]]]"

# Work that is done sooner shows no bar.
_PATIENCE = 1.0

# Wide enough for a file name beside its figures where nobody's terminal sets the width.
_PLAIN_WIDTH = 120


def console() -> Console:
    """Return a rich console on stdout; plain text where that is no terminal."""
    from rich.console import Console

    return Console(
        highlight=False, markup=False, width=None if sys.stdout.isatty() else _PLAIN_WIDTH
    )


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def print_sections(title: str, sections: Sequence[Section]) -> None:
    """Print names and values in two columns under headings."""
    from rich.text import Text

    out = console()
    out.print(Text(title, style="bold"), soft_wrap=True)
    width = max(len(name) for _, rows in sections for name, _ in rows)
    for heading, rows in sections:
        out.print(Text(f"\n{heading}", style="bold cyan"), soft_wrap=True)
        print_rows(rows, width)


def print_rows(rows: Sequence[tuple[str, str]], width: int) -> None:
    """Print names and values in two columns, the first `width` characters wide."""
    from rich.text import Text

    out = console()
    for name, value in rows:
        # No table of rich's: it would cut or wrap long file names, and fill lines with blanks.
        out.print(Text.assemble((f"{name:<{width}}  ", "dim"), value), soft_wrap=True)


def quantity(count: int) -> str:
    """Return a number of bytes for people: exact below 10 kB, three digits above."""
    if count < 10_000:
        return f"{count:,} bytes"
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.5:
            return f"{value:.3g} {unit}"
    return f"{value / 1000:,.0f} PB"


@contextmanager
def progress(label: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, total) that draws a bar on stderr.

    Nothing is drawn before a second has passed, when `quiet`, or where stderr is
    no terminal.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    bar = _LateBar(label)
    try:
        yield bar.update
    finally:
        bar.close()


class _LateBar:
    """A rich progress bar that appears only when the work turns out to be long."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def update(self, done: int, total: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._start < _PATIENCE or done >= total:
                return
            self._open(total)
        self._bar.update(self._task, completed=done, total=total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _open(self, total: int) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

        self._bar = Progress(
            *Progress.get_default_columns()[:3],
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task(escape(self._label), total=total)
