"""The command line ``rumi``: one small module for each family of commands.

`main` is the entry point; `rumi.cli.program` makes sure that every failure is
one line on stderr and an exit status.
"""

from rumi.cli.catalog import catalog
from rumi.cli.convert import convert, export
from rumi.cli.demo import demo
from rumi.cli.formats import formats
from rumi.cli.info import header, info
from rumi.cli.pixels import read
from rumi.cli.preview import preview
from rumi.cli.profile import profile
from rumi.cli.program import cli, interrupt_once
from rumi.cli.validate import validate

__all__ = ["cli", "main"]

# The order of the help text: from first contact to daily use.
for _command in (
    demo,
    info,
    convert,
    export,
    header,
    read,
    preview,
    validate,
    profile,
    catalog,
    formats,
):
    cli.add_command(_command)


def main() -> None:
    """Run the command line and exit with its status."""
    interrupt_once()
    cli()
