"""Pictures of pixels: stretched chips, and the frames they came from.

Needs Pillow (extra ``plot``), which is imported when a picture is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rumi.errors import UnsupportedError
from rumi.output import output_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rumi.header import Header
    from rumi.image import Image
    from rumi.source import SourceLike

__all__ = [
    "PERCENTILES",
    "chip_figure",
    "draw_frames",
    "picture",
    "save_png",
    "stretch",
    "stretch_limits",
]

# Row, column, height and width in pixels of the image.
Window: TypeAlias = tuple[int, int, int, int]
Limits: TypeAlias = list[tuple[float, float]]

# Percentiles that become black and white: the tails are clouds, roofs and shadows.
PERCENTILES = (2.0, 98.0)

_BACKGROUND = (17, 21, 28)
_TEXT = (226, 232, 240)
_FAINT_TEXT = (140, 152, 168)
_LINE = (255, 255, 255, 130)
_HALO = (0, 0, 0, 110)
_CHIP = (255, 209, 71, 255)

_MARGIN = 24
_FONT_SIZE = 14
_SMALL_FONT_SIZE = 11


def stretch_limits(
    samples: NDArray[Any],
    percentiles: tuple[float, float] = PERCENTILES,
    nodata: float | None = None,
) -> Limits:
    """Return the values of each band that become black and white.

    Parameters
    ----------
    samples : ndarray, shape (B, H, W)
        Of any sample type; of complex samples the magnitude counts.
    percentiles : (float, float)
        Of the finite samples, by band.
    nodata : float, optional
        Samples of this value do not count.
    """
    limits = []
    for band in samples:
        values = _real(band)
        counts = np.isfinite(values)
        if nodata is not None:
            counts &= ~_equal(band, values, nodata)
        counted = values[counts]
        low, high = np.percentile(counted, percentiles) if counted.size else (0.0, 1.0)
        if low == high:
            low, high = counted.min(), counted.max()
        limits.append((float(low), float(high)))
    return limits


def stretch(samples: NDArray[Any], limits: Limits | None = None) -> NDArray[np.uint8]:
    """Return samples as 8-bit grey or colour.

    Parameters
    ----------
    samples : ndarray, shape (1, H, W) or (3, H, W)
        One band for grey, or red, green and blue.
    limits : list of (float, float), optional
        What `stretch_limits` found, here or in a larger part of the image.

    Returns
    -------
    ndarray of uint8, shape (H, W) or (H, W, 3)
        NaN and infinities are black.

    Raises
    ------
    ValueError
        If there are neither one nor three bands.
    """
    if samples.ndim != 3 or samples.shape[0] not in (1, 3):
        raise ValueError(f"a picture takes 1 or 3 bands, found shape {samples.shape}")
    limits = stretch_limits(samples) if limits is None else limits
    planes = []
    for band, (low, high) in zip(_real(samples), limits, strict=True):
        # A constant band becomes black, or white where it is above its limits.
        scaled = (band - low) / ((high - low) or 1.0)
        planes.append(np.clip(np.nan_to_num(scaled, posinf=0.0, neginf=0.0), 0.0, 1.0))
    colour = (np.stack(planes, axis=-1) * 255 + 0.5).astype(np.uint8)
    return colour[..., 0] if colour.shape[-1] == 1 else colour


def picture(
    samples: NDArray[Any],
    *,
    scale: int = 1,
    limits: Limits | None = None,
    header: Header | None = None,
    window: Window | None = None,
) -> Any:
    """Draw a chip; arguments and errors as of `stretch`.

    Parameters
    ----------
    samples : ndarray, shape (1, H, W) or (3, H, W)
        The pixels.
    scale : int
        Side of a pixel in the picture.
    limits : list of (float, float), optional
        See `stretch`.
    header, window : Header and (row, column, height, width), optional
        With both, the frames that the chip came from are drawn over it.

    Returns
    -------
    PIL.Image.Image
    """
    pillow = _pillow()
    image = pillow.Image.fromarray(stretch(samples, limits)).convert("RGB")
    if scale > 1:
        size = (image.width * scale, image.height * scale)
        image = image.resize(size, pillow.Image.Resampling.NEAREST)
    if header is not None and window is not None:
        draw_frames(image, header, window, scale=scale)
    return image


def draw_frames(
    image: Any, header: Header, window: Window, *, scale: float = 1, labels: bool = True
) -> None:
    """Draw the borders of the frames over a picture of a window.

    Parameters
    ----------
    image : PIL.Image.Image
        Drawn on in place.
    header : Header
        Knows the grid and the compressed sizes.
    window : (row, column, height, width)
        What the picture shows.
    scale : float
        Side of a pixel in the picture.
    labels : bool
        Name grid row, grid column and compressed size where there is room.
    """
    pillow = _pillow()
    draw = pillow.ImageDraw.Draw(image, "RGBA")
    font = _font(pillow, _SMALL_FONT_SIZE)
    for row, col, (left, top, right, bottom) in _cells(header, window, scale):
        # Shared borders are drawn by one neighbour, the picture's own edge by none.
        for line in (
            ((left, top, left, bottom) if left > 0 else None),
            ((left, top, right, top) if top > 0 else None),
        ):
            if line is not None:
                draw.line(line, fill=_HALO, width=3)
                draw.line(line, fill=_LINE, width=1)
        if labels:
            lines = (f"row {row}, col {col}", _bytes(_cell_size(header, row, col)))
            _label(draw, font, lines, (left, top, right, bottom))


def chip_figure(
    image: Image, window: Window, *, bands: Sequence[int] = (0,), title: str = ""
) -> Any:
    """Draw an image with its frames, and beside it one chip of it, enlarged.

    The frames that the chip needs stay bright, the others are dimmed.

    Parameters
    ----------
    image : Image
        Read whole.
    window : (row, column, height, width)
        The chip.
    bands : sequence of int
        One band, or those for red, green and blue.
    title : str
        Written above.

    Returns
    -------
    PIL.Image.Image
    """
    pillow = _pillow()
    scene = image.read(bands=list(bands))
    limits = stretch_limits(scene)
    overview = _overview(pillow, image.header, scene, window, limits)
    scale = max(1, overview.height // window[2])
    chip = picture(
        image.read(bands=list(bands), window=window),
        scale=scale,
        limits=limits,
        header=image.header,
        window=window,
    )
    _frame(pillow, chip, (0, 0, chip.width - 1, chip.height - 1))
    return _side_by_side(pillow, (overview, chip), title, _captions(image, window))


def save_png(image: Any, path: SourceLike) -> None:
    """Write a picture as PNG, to a path or a URL; it appears whole or not at all."""
    with output_file(path) as file:
        image.save(file, format="PNG", optimize=True)


def _pillow() -> Any:
    """Import Pillow, or say how to install it."""
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFont
    except ImportError as error:
        raise UnsupportedError("drawing needs Pillow: pip install 'rumi[plot]'") from error
    return PIL


def _font(pillow: Any, size: int) -> Any:
    return pillow.ImageFont.load_default(size)


def _real(samples: NDArray[Any]) -> NDArray[np.float64]:
    """Return samples of any type as numbers that can be ranked."""
    if samples.dtype.names is not None:
        real, imag = (samples[name].astype(np.float64) for name in ("real", "imag"))
        return np.hypot(real, imag)
    if samples.dtype.kind == "c":
        return np.abs(samples.astype(np.complex128))
    return samples.astype(np.float64)


def _equal(band: NDArray[Any], values: NDArray[np.float64], value: float) -> NDArray[np.bool_]:
    """Say which samples have a value; integers are compared as such, not as doubles."""
    if band.dtype.kind in "iu" and value == value // 1:
        return np.asarray(band == int(value))
    return np.asarray(values == value)


def _cells(
    header: Header, window: Window, scale: float
) -> Iterator[tuple[int, int, tuple[float, float, float, float]]]:
    """Yield grid row, grid column and rectangle in the picture of every cell in a window."""
    top, left, height, width = window
    tile_height, tile_width = header.tile_shape
    for row in range(top // tile_height, -(-(top + height) // tile_height)):
        for col in range(left // tile_width, -(-(left + width) // tile_width)):
            x0 = max(col * tile_width - left, 0)
            y0 = max(row * tile_height - top, 0)
            x1 = min((col + 1) * tile_width - left, width)
            y1 = min((row + 1) * tile_height - top, height)
            yield row, col, (x0 * scale, y0 * scale, x1 * scale, y1 * scale)


def _cell_size(header: Header, row: int, col: int) -> int:
    """Return the compressed bytes of all bands at a grid position."""
    first = header.frame_index(row, col)
    count = header.samples_per_pixel if header.unit == "tile" else 1
    return sum(header.byte_count(first + band) for band in range(count))


def _bytes(count: int) -> str:
    return f"{count} B" if count < 1000 else f"{count / 1000:.1f} kB"


def _label(
    draw: Any, font: Any, lines: Sequence[str], box: tuple[float, float, float, float]
) -> None:
    """Write lines into the upper left corner of a box, where they fit."""
    left, top, right, bottom = box
    text = "\n".join(lines)
    x0, y0, x1, y1 = draw.multiline_textbbox((left + 6, top + 4), text, font=font, spacing=2)
    if x1 + 4 > right or y1 + 4 > bottom:
        return
    draw.rounded_rectangle((x0 - 3, y0 - 3, x1 + 3, y1 + 3), radius=3, fill=(0, 0, 0, 120))
    draw.multiline_text((left + 6, top + 4), text, font=font, spacing=2, fill=(255, 255, 255, 235))


def _frame(pillow: Any, image: Any, box: tuple[float, float, float, float]) -> None:
    """Draw the border of a chip."""
    draw = pillow.ImageDraw.Draw(image, "RGBA")
    draw.rectangle(box, outline=_HALO, width=4)
    draw.rectangle(box, outline=_CHIP, width=2)


def _overview(
    pillow: Any, header: Header, scene: NDArray[Any], window: Window, limits: Limits
) -> Any:
    """Draw the whole image: the chip's frames bright, the others dimmed."""
    bright = picture(scene, limits=limits)
    image = pillow.Image.blend(bright, pillow.Image.new("RGB", bright.size, _BACKGROUND), 0.6)
    for row, col, _ in _cells(header, window, 1):
        height, width = header.tile_shape
        box = (
            col * width,
            row * height,
            min((col + 1) * width, bright.width),
            min((row + 1) * height, bright.height),
        )
        image.paste(bright.crop(box), box[:2])
    draw_frames(image, header, (0, 0, *header.shape[1:]), labels=False)
    top, left, height, width = window
    _frame(pillow, image, (left, top, left + width - 1, top + height - 1))
    return image


def _captions(image: Image, window: Window) -> tuple[str, str]:
    """Say below each half of a figure what it shows."""
    header = image.header
    bands, height, width = header.shape
    tile = " x ".join(map(str, header.tile_shape))
    frames = header.ranges(window=window)[1]
    return (
        f"{bands} x {height} x {width} {header.encoding.dtype_name}\n"
        f"{header.frame_count} {header.unit} frames of {tile}, {_bytes(header.file_size)}",
        f"chip of {window[2]} x {window[3]} at row {window[0]}, column {window[1]}\n"
        f"{frames.size} frames, {_bytes(int(frames.sum()))}, found with a header blob of "
        f"{len(bytes(header))} bytes",
    )


def _side_by_side(pillow: Any, parts: Sequence[Any], title: str, captions: Sequence[str]) -> Any:
    """Put pictures beside each other, with a title above and a caption below each."""
    font, small = _font(pillow, _FONT_SIZE + 3), _font(pillow, _FONT_SIZE - 1)
    head = 2 * _MARGIN + _FONT_SIZE if title else _MARGIN
    width = sum(part.width for part in parts) + _MARGIN * (len(parts) + 1)
    height = head + max(part.height for part in parts) + 3 * _MARGIN
    figure = pillow.Image.new("RGB", (width, height), _BACKGROUND)
    draw = pillow.ImageDraw.Draw(figure)
    draw.text((_MARGIN, _MARGIN), title, font=font, fill=_TEXT, anchor="lt")
    left = _MARGIN
    for part, caption in zip(parts, captions, strict=True):
        figure.paste(part, (left, head))
        draw.multiline_text(
            (left, head + part.height + 10), caption, font=small, fill=_FAINT_TEXT, spacing=6
        )
        left += part.width + _MARGIN
    return figure
