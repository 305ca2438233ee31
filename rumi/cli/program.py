"""The program as a whole: its options, its exit status, and its one line for every error."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rumi import __version__
from rumi.cli.stores import check_use

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

__all__ = [
    "EXIT_FAILURE",
    "EXIT_INTERRUPTED",
    "EXIT_USAGE",
    "Program",
    "cli",
    "complain",
    "one_line",
]

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

# Seconds in which a further Ctrl-C belongs to the first.
_PATIENCE = 1.0

TRACEBACK_VARIABLE = "RUMI_DEBUG_TRACEBACK"

# What rumi says on purpose. Anything else is a fault of the program, and its type is named.
_EXPECTED = (ValueError, TypeError, IndexError, OSError, NotImplementedError, RuntimeError)


@dataclass
class _Settings:
    traceback: bool


def _want_traceback(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(_Settings).traceback = True


class Command(click.Command):
    """A command that takes ``--traceback`` too, wherever it stands on the line."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(_traceback_option(hidden=True))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, once its options are known to make sense together."""
        check_use(ctx)
        return super().invoke(ctx)


def _traceback_option(*, hidden: bool) -> click.Option:
    return click.Option(
        ["--traceback"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        hidden=hidden,
        callback=_want_traceback,
        help="Show where an error comes from.",
    )


class Program(click.Group):
    """A group of commands that fails in one line.

    Notes
    -----
    Exit status: 0 done; 1 the data, the file or the installation is not as it
    should be; 2 the command line is not; 130 interrupted.
    """

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which they were added."""
        return list(self.commands)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        """Run and exit; the arguments are those of `click.Command.main`."""
        extra["standalone_mode"] = False
        settings = _Settings(traceback=os.environ.get(TRACEBACK_VARIABLE, "") not in ("", "0"))
        _tolerate_odd_names()
        try:
            result = super().main(args, prog_name or "rumi", obj=settings, **extra)
            sys.stdout.flush()
        except (click.Abort, KeyboardInterrupt):
            sys.exit(EXIT_INTERRUPTED)
        except BrokenPipeError:
            _drop_stdout()
            sys.exit(EXIT_FAILURE)
        except Exception as error:
            if settings.traceback:
                traceback.print_exc()
            else:
                complain(one_line(error))
            sys.exit(_status(error))
        sys.exit(result if isinstance(result, int) else 0)


@click.group(
    "rumi",
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _param, value: _show_version(ctx) if value else None,
    help="Show the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Read and write .rumi rasters.

    A .rumi file is a GeoTIFF-like raster whose frames are found through a small
    header blob. Errors are one line on stderr; --json prints one object on
    stdout. `rumi COMMAND --help` explains a command.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


cli.params.append(_traceback_option(hidden=False))


def interrupt_once() -> None:
    """Let the first Ctrl-C start the cleaning up, and the next ones not disturb it.

    Terminals and job managers send more than one. After a second of patience
    another one ends the process at once.
    """
    first: list[float] = []

    def handler(number: int, frame: FrameType | None) -> None:
        if not first:
            first.append(time.monotonic())
            signal.default_int_handler(number, frame)
        elif time.monotonic() - first[0] > _PATIENCE:
            os._exit(EXIT_INTERRUPTED)

    # Where it is ignored, as behind nohup, it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)


def complain(text: str, *, kind: str = "error") -> None:
    """Print one line on stderr."""
    click.echo(f"rumi: {kind}: {text}", err=True)


def one_line(error: BaseException) -> str:
    """Say in one line what went wrong."""
    if isinstance(error, click.UsageError):
        hint = f" (try '{error.ctx.command_path} --help')" if error.ctx else ""
        text = error.format_message().removesuffix(".") + hint
    elif isinstance(error, click.ClickException):
        text = error.format_message()
    elif isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{os.fsdecode(error.filename)}: {error.strerror}"
    elif isinstance(error, MemoryError):
        text = f"not enough memory{f': {error}' if str(error) else ''}"
    elif isinstance(error, _EXPECTED) and str(error):
        text = str(error)
    else:
        text = (
            f"{type(error).__name__}: {error}; this is a fault of rumi, please report it with what "
            f"{TRACEBACK_VARIABLE}=1 shows"
        )
    return " ".join(text.split())


def _status(error: Exception) -> int:
    return EXIT_USAGE if isinstance(error, click.UsageError) else EXIT_FAILURE


def _show_version(ctx: click.Context) -> NoReturn:
    click.echo(f"rumi {__version__}")
    ctx.exit()


def _tolerate_odd_names() -> None:
    """Print file names that are no valid text escaped, rather than fail on them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_stdout() -> None:
    """Let nothing more go to a pipe that nobody reads, not even at exit."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
