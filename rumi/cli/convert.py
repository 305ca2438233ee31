"""``rumi convert`` and ``rumi export``: GeoTIFF in, GeoTIFF out."""

from __future__ import annotations

import click

from rumi.cli.program import Command

__all__ = ["convert", "export"]


@click.command(cls=Command)
def convert() -> None:
    """Convert GeoTIFFs."""


@click.command(cls=Command)
def export() -> None:
    """Export."""
