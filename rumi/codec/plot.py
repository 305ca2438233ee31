"""A picture of what each recipe makes of an image."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from rumi.codec import geozl
from rumi.errors import UnsupportedError
from rumi.output import output_file
from rumi.source import source_name

if TYPE_CHECKING:
    from rumi.codec.profiling import Profile
    from rumi.source import SourceLike

__all__ = ["save_plot"]


def save_plot(profile: Profile, path: SourceLike) -> None:
    """Write a picture of size against decode speed; see `Profile.plot`."""
    try:
        # Without pyplot: no global state, no window, any thread.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError(
            "a plot needs the matplotlib package: pip install 'rumi[plot]'"
        ) from error
    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for row in profile:
        colour = "tab:orange" if row.recipe.startswith(geozl.PREFIX) else "tab:blue"
        axes.scatter(row.decode_mbps, row.ratio, s=36 if row.front else 14, color=colour, zorder=2)
    front = sorted((row for row in profile if row.front), key=lambda row: row.decode_mbps)
    axes.plot([r.decode_mbps for r in front], [r.ratio for r in front], color="0.7", zorder=1)
    middle = max(row.decode_mbps for row in profile) / 2
    for row in front:
        # Towards the middle, so that no text leaves the picture.
        side = "left" if row.decode_mbps < middle else "right"
        axes.annotate(
            "\n".join([row.recipe.replace("best(", "best(\n").replace(",", ",\n"), *row.presets]),
            (row.decode_mbps, row.ratio),
            xytext=(6 if side == "left" else -6, 0),
            textcoords="offset points",
            fontsize=6,
            horizontalalignment=side,
            verticalalignment="center",
        )
    axes.set_xlabel("decode, MB/s of samples on one thread")
    axes.set_ylabel("samples / compressed bytes")
    axes.set_title(f"{profile.shape} {profile.dtype}; orange: geozl; line: size/decode front")
    axes.grid(color="0.93")
    suffix = PurePath(source_name(path)).suffix.lower().lstrip(".") or "png"
    if suffix not in figure.canvas.get_supported_filetypes():
        raise ValueError(f"{source_name(path)}: Matplotlib writes no .{suffix}; take .png")
    with output_file(path) as file:
        figure.savefig(file, dpi=120, format=suffix)
