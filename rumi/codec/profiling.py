"""Measuring recipes on an image: size, and encode and decode speed."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi import backends, encodings
from rumi._core import Plan
from rumi.codec import geozl
from rumi.codec.codec import PRESETS, Codec, resolve
from rumi.codec.trial import recipe as joined
from rumi.container import index
from rumi.engine import execute, output_target
from rumi.errors import UnsupportedError
from rumi.source import is_remote, local_copy, open_source, source_name

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from rumi.codec.trial import Samples
    from rumi.encodings import Encoding
    from rumi.pixels import Grid, PixelSource
    from rumi.source import SourceLike

__all__ = ["Profile", "ProfileRow", "profile"]

# Samples in bytes that are measured; the runs that a speed is the best of, and the
# seconds after which there are no more.
_MOST_BYTES = 16 << 20
_RUNS = 5
_SECONDS = 0.5

_FRONTS = ("", "delta>zigzag", "planar>zigzag")
_BACKS = ("zstd:1", "zstd:9", "entropy", "blocks:4x8>entropy")
_WIDE_FRONTS = (*_FRONTS, "tokenize>delta>zigzag")
_WIDE_BACKS = ("lanes>zstd:1", "lanes>zstd:9", "words", "blocks:4x8>words")

_GEOZL = (
    "planar>zigzag>zstd",
    "planar>zigzag>transpose>zstd",
    "planar>zigzag>transpose>entropy",
    "med>zigzag>transpose>entropy",
    "average>zigzag>transpose>entropy",
    "planar>zigzag>entropy",
    "med>zigzag>entropy",
    "planar>zigzag>pfor",
    "med>zigzag>blocks:4x8>words",
)


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """What one recipe does to an image.

    Attributes
    ----------
    recipe : str
        As `rumi.write` takes it.
    bytes : int
        Of all frames measured.
    ratio : float
        Bytes of samples to bytes of frames.
    encode_mbps, decode_mbps : float
        Megabytes of samples a second, one thread.
    front : bool
        Whether no other recipe is both smaller and faster to decode.
    presets : tuple of str
        Presets that choose it.
    """

    recipe: str
    bytes: int
    ratio: float
    encode_mbps: float
    decode_mbps: float
    front: bool = False
    presets: tuple[str, ...] = ()


class Profile(list[ProfileRow]):
    """Rows of a profile, smallest first; prints as a table.

    Attributes
    ----------
    shape : (int, int, int)
        Bands, height and width of the image.
    dtype : numpy.dtype
    frames : int
        Frames measured.
    """

    def __init__(
        self,
        rows: Iterable[ProfileRow],
        shape: tuple[int, int, int],
        dtype: np.dtype[Any],
        frames: int,
    ) -> None:
        super().__init__(rows)
        self.shape = shape
        self.dtype = dtype
        self.frames = frames

    def __str__(self) -> str:
        """Return a table; recipes of the size/decode front have a star."""
        width = max([len(row.recipe) for row in self] + [6])
        lines = [
            f"{self.shape} {self.dtype}, {self.frames} frames",
            f"  {'recipe':{width}s} {'bytes':>12s} {'ratio':>8s} {'encode MB/s':>12s} "
            f"{'decode MB/s':>12s}  preset",
        ]
        lines += [
            f"{'*' if row.front else ' '} {row.recipe:{width}s} {row.bytes:12,d} {row.ratio:8.3f} "
            f"{row.encode_mbps:12.0f} {row.decode_mbps:12.0f}  {', '.join(row.presets)}".rstrip()
            for row in self
        ]
        return "\n".join(lines)

    def plot(self, path: SourceLike) -> None:
        """Write a picture of size against decode speed, the front marked.

        Parameters
        ----------
        path : path, URL or RemoteSource
            PNG, or another type that Matplotlib knows by its suffix.

        Raises
        ------
        ValueError
            If Matplotlib knows no such type.
        UnsupportedError
            If Matplotlib is not installed.
        """
        from rumi.codec.plot import save_plot

        save_plot(self, path)


def profile(
    array_or_file: ArrayLike | SourceLike,
    *,
    tile_size: int | tuple[int, int] = 512,
    frame_unit: str = "tile",
    recipes: Sequence[Any] | None = None,
) -> Profile:
    """Measure recipes on an image.

    Parameters
    ----------
    array_or_file : array_like, path, URL or RemoteSource
        What `rumi.write` takes as an image, a rumi file, or a file that rasterio
        reads; such a one is downloaded first if it is remote.
    tile_size, frame_unit
        As for `rumi.write`.
    recipes : sequence of str or callable, optional
        What `codec=` of `rumi.write` takes; recipes that suit the samples and the
        presets by default, those of geozl included where it is installed.

    Returns
    -------
    Profile

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used.
    UnsupportedError
        If the samples have no encoding, or a file needs an absent package.

    Notes
    -----
    At most 16 MiB of frames are measured, from all over the image. Speeds are
    the best of several runs on one thread, which holds the GIL.
    """
    tile = tuple(tile_size) if isinstance(tile_size, (tuple, list)) else (tile_size, tile_size)
    if len(tile) != 2 or not all(isinstance(side, int) and 0 < side < 1 << 16 for side in tile):
        raise ValueError(f"tile_size: expected one side or (height, width), found {tile_size!r}")
    if frame_unit not in ("tile", "cell"):
        raise ValueError(f"frame_unit is tile or cell, found {frame_unit!r}")
    from rumi.pixels import Grid, sample_frames

    with _opened(array_or_file) as source:
        unit = "tile" if source.shape[0] == 1 else frame_unit
        grid = Grid(source.shape, tile, encodings.from_dtype(source.dtype), unit)
        frames = _frames(source, grid)
        chosen = _codecs(recipes, grid.encoding, partial(sample_frames, source, grid))
    rows = [_measure(codec, frames, presets) for codec, presets in chosen]
    return Profile(_with_front(rows), source.shape, source.dtype, len(frames))


@contextmanager
def _opened(array_or_file: Any) -> Iterator[PixelSource]:
    """Give the pixels of an array or a file."""
    # What writes imports this package, so it cannot be imported by it at first.
    from rumi.pixels import make_source

    remote = is_remote(array_or_file)
    if not remote and not isinstance(array_or_file, (str, os.PathLike)):
        yield make_source(array_or_file)
    elif source_name(array_or_file).partition("?")[0].lower().endswith((".tif", ".tiff")):
        with local_copy(array_or_file) as path, _rasterio().open(path) as dataset:
            read, dtype = _dataset_reader(dataset)
            yield make_source(read, (dataset.count, dataset.height, dataset.width), dtype)
    else:
        opened = open_source(array_or_file)
        header = index(opened)

        def window(place: tuple[int, int, int, int]) -> NDArray[Any]:
            plan = Plan(header, None, place)
            array, target = output_target(plan, None)
            execute(plan, opened, target)
            return array

        yield make_source(window, header.shape, header.dtype)


def _rasterio() -> Any:
    try:
        import rasterio
    except ImportError as error:
        raise UnsupportedError(
            "reading a GeoTIFF needs the rasterio package: pip install 'rumi[geotiff]'"
        ) from error
    return rasterio


def _dataset_reader(dataset: Any) -> tuple[Callable[[Any], NDArray[Any]], np.dtype[Any]]:
    """Return a function of a window and the type of its samples.

    GDAL gives complex integers as complex floats; what they compress to is not
    what the integers would.
    """
    components = {"complex_int16": np.int16, "complex_int32": np.int32}.get(dataset.dtypes[0])

    def read(place: tuple[int, int, int, int]) -> NDArray[Any]:
        row, column, height, width = place
        block: NDArray[Any] = dataset.read(window=((row, row + height), (column, column + width)))
        if components is None:
            return block
        pairs = np.empty(block.shape, dtype)
        pairs["real"], pairs["imag"] = block.real, block.imag
        return pairs

    if components is None:
        dtype = np.dtype(dataset.dtypes[0])
    else:
        dtype = np.dtype([("real", components), ("imag", components)])
    return read, dtype


def _frames(source: PixelSource, grid: Grid) -> list[NDArray[Any]]:
    """Return frames from all over the image."""
    total = grid.tiles_down * grid.tiles_across
    height, width = map(min, grid.tile_shape, grid.shape[1:])
    position = grid.shape[0] * height * width * grid.encoding.itemsize
    wanted = min(total, max(1, _MOST_BYTES // position))
    found: list[NDArray[Any]] = []
    for number in range(wanted):
        row, col = divmod((2 * number + 1) * total // (2 * wanted), grid.tiles_across)
        found.extend(grid.frames(source.block(*grid.extent(row, col))))
    return found


def _codecs(
    recipes: Sequence[Any] | None, encoding: Encoding, samples: Callable[..., Samples]
) -> list[tuple[Codec, tuple[str, ...]]]:
    """Return the codecs to measure, each once, and the presets that choose it."""
    wanted = _suitable(encoding) if recipes is None else list(recipes)
    found: dict[str, tuple[Codec, tuple[str, ...]]] = {}
    for recipe in wanted:
        try:
            codec = resolve(recipe, encoding, samples)
        except (UnsupportedError, ValueError):
            if recipes is not None:
                raise
            # One of geozl's, which is not for samples of this width, or not installed.
            continue
        _, presets = found.get(codec.name, (codec, ()))
        found[codec.name] = codec, (*presets, recipe) if recipe in PRESETS else presets
    return list(found.values())


def _suitable(encoding: Encoding) -> list[str]:
    """Return the presets and recipes that are worth a look for samples of an encoding."""
    wide = encoding.element_width > 1
    fronts, backs = (_WIDE_FRONTS, _WIDE_BACKS) if wide else (_FRONTS, _BACKS)
    recipes = [joined(front, back) for front in fronts for back in backs]
    if "complex" in encoding.name and encoding.itemsize < 16:
        recipes += [f"cast:{encoding.itemsize // 2}>zigzag>{back}" for back in backs]
    presets = ("auto", "fast", "small")
    if not backends.geozl_available():
        return [*presets, *recipes]
    return [*presets, "geozl:small", *recipes, *(geozl.PREFIX + name for name in _GEOZL)]


def _measure(codec: Codec, frames: Sequence[NDArray[Any]], presets: tuple[str, ...]) -> ProfileRow:
    encoder = codec.encoder()
    decoder = backends.decoder("geozl" if codec.needs_geozl else "openzl")
    encoded: list[bytes] = []
    expected = [frame.reshape(-1).view(np.uint8) for frame in frames]

    def encode() -> None:
        encoded[:] = [encoder.encode(frame) for frame in frames]

    def decode() -> None:
        # Compared as well, which takes little: the decoders give samples to readers only.
        for frame, samples in zip(encoded, expected, strict=True):
            decoder.matches(frame, samples)

    raw = sum(frame.nbytes for frame in frames)
    encode_seconds = _best(encode)
    decode_seconds = _best(decode)
    size = sum(map(len, encoded))
    return ProfileRow(
        codec.name,
        size,
        raw / size,
        raw / encode_seconds / 1e6,
        raw / decode_seconds / 1e6,
        presets=presets,
    )


def _best(work: Callable[[], None]) -> float:
    """Return the seconds of the fastest of some runs."""
    best, spent = math.inf, 0.0
    for _ in range(_RUNS):
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        best, spent = min(best, seconds), spent + seconds
        if spent > _SECONDS:
            break
    return best


def _with_front(rows: Sequence[ProfileRow]) -> Iterator[ProfileRow]:
    """Sort rows by size, and mark those that decode faster than all smaller ones."""
    fastest = 0.0
    for row in sorted(rows, key=lambda row: (row.bytes, -row.decode_mbps)):
        yield replace(row, front=row.decode_mbps > fastest)
        fastest = max(fastest, row.decode_mbps)
