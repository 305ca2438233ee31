"""Recipes of geozl: predictors that OpenZL itself does not have.

Reading what they write needs geozl. ``geozl:planar>zigzag>transpose>entropy`` is
handed to geozl as it is. A recipe that uses steps of `rumi.codec.recipes` after
one of geozl's predictors, ``geozl:med>zigzag>blocks:4x8>words``, is built here of
the nodes of both. geozl is imported when a codec is asked for, never before.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from openzl import ext as openzl

from rumi.codec.encoder import FRAME_MAGIC, FRAME_VERSION, NUMBERS, FrameEncoder
from rumi.codec.recipes import LEAVES, STEPS, Recipe, parse
from rumi.errors import CodecError, UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.encodings import Encoding

__all__ = ["PREDICTORS", "PREFIX", "GeozlEncoder", "MixedEncoder", "check", "load", "mixed"]

PREFIX = "geozl:"

# geozl's predictors by the names of its recipes.
PREDICTORS = {
    "average": "Average",
    "delta_n": "DeltaN",
    "delta_w": "DeltaW",
    "med": "Med",
    "planar": "Planar",
    "wp_static": "WpStatic",
}

_MISSING = "geozl: recipes need the geozl package: pip install 'rumi[geozl]'"


def load() -> Any:
    """Return the geozl package.

    Raises
    ------
    UnsupportedError
        If it is not installed or does not fit this machine.
    """
    try:
        import geozl
    except (ImportError, OSError) as error:
        raise UnsupportedError(_MISSING) from error
    return geozl


def mixed(text: str) -> tuple[str, Recipe] | None:
    """Read a recipe of one of geozl's predictors and steps of rumi.

    Returns
    -------
    (str, Recipe) or None
        The predictor and the rest; None where geozl knows all of it.
    """
    first, _, rest = text.strip().lower().partition(">")
    words = {word.strip().partition(":")[0].partition("(")[0] for word in rest.split(">")}
    if first not in PREDICTORS or not (words & _RUMI_WORDS or ":" in rest or "(" in rest):
        return None
    return first, parse(rest)


# Words that only rumi knows; zigzag, entropy and zstd are geozl's as well.
_RUMI_WORDS = {*STEPS, *LEAVES} - {"zigzag", "entropy", "zstd"}


class GeozlEncoder:
    """Compress frames with a recipe of geozl, without the GIL.

    Parameters
    ----------
    recipe : str
    encoding : Encoding
    error : float or str, optional
        Largest error: absolute, or relative as ``"1%"``. None is lossless.

    Notes
    -----
    A graph knows the width of a row, so there is one for each shape of frame. A
    near-lossless one also knows the range of its samples: each frame has its own.
    """

    def __init__(self, recipe: str, encoding: Encoding, error: float | str | None) -> None:
        self._geozl = load()
        self._recipe = recipe
        self._error = error
        # Lossless predictors see bits; an error is measured in the samples' own type.
        self._dtype = np.dtype(NUMBERS[encoding.element_width])
        if error is not None:
            self._dtype = encoding.dtype
        self._graphs: dict[tuple[int, ...], Any] = {}
        self._plain: FrameEncoder | None = None

    def encode(self, samples: NDArray[Any]) -> bytes:
        """Return the frame of samples, of shape (h, w) or (B, h, w).

        Raises
        ------
        CodecError
            If geozl fails with an error bound; without one, what it cannot take
            is compressed by OpenZL.
        UnsupportedError
            If it writes another frame format version than 24.
        """
        picture = np.require(samples.view(self._dtype), requirements=["C", "A"])
        try:
            frame: bytes = self._geozl.compress(picture, graph=self._graph(picture))
        except (RuntimeError, ValueError) as error:
            if self._error is not None:
                raise CodecError(
                    f"geozl cannot compress a frame of shape {samples.shape} with {self._recipe} "
                    f"and error {self._error}: {_reason(error)}"
                ) from error
            return self._fallback().encode(samples)
        _check_version(frame, self._recipe)
        return frame

    def _graph(self, picture: NDArray[Any]) -> Any:
        if self._error is not None:
            return self._geozl.graph(picture, self._recipe, error=self._error)
        graph = self._graphs.get(picture.shape)
        if graph is None:
            graph = self._graphs[picture.shape] = self._geozl.graph(picture, self._recipe)
        return graph

    def _fallback(self) -> FrameEncoder:
        if self._plain is None:
            self._plain = FrameEncoder(parse("openzl"), self._dtype.itemsize)
        return self._plain


class MixedEncoder:
    """Compress frames with a predictor of geozl and steps of rumi: a compressor a shape.

    Parameters
    ----------
    predictor : str
    recipe : Recipe
        What is done to its residuals.
    width : {1, 2, 4, 8}
        Bytes of one number.
    """

    def __init__(self, predictor: str, recipe: Recipe, width: int) -> None:
        load()
        from geozl import lossless

        self._name = predictor
        self._predictor = getattr(lossless, PREDICTORS[predictor])
        self._recipe = recipe
        self._width = width
        self._encoders: dict[tuple[int, ...], FrameEncoder] = {}

    def encode(self, samples: NDArray[Any]) -> bytes:
        """Return the frame of samples, of shape (h, w) or (B, h, w)."""
        encoder = self._encoders.get(samples.shape)
        if encoder is None:
            # A row goes on where the band ends: only what looks above must know of bands.
            geometry = [samples.shape[-1] * samples.itemsize // self._width]
            if samples.ndim > 2 and self._name != "delta_w":
                geometry.append(samples.shape[0])
            encoder = self._encoders[samples.shape] = FrameEncoder(
                self._recipe, self._width, self._predictor(*geometry)
            )
        return encoder.encode(samples)


def check(recipe: str, encoding: Encoding, error: float | str | None) -> bool:
    """Refuse a recipe that geozl does not know, or that rumi must not write.

    Returns
    -------
    bool
        Whether reading needs geozl: some of its recipes are of OpenZL's nodes.

    Raises
    ------
    ValueError
        If geozl refuses the recipe or the error bound.
    UnsupportedError
        If geozl is absent, or the error bound has no meaning for the type of
        the samples, or frames have another format version than 24.
    """
    geozl = load()
    plain = encoding.sample_format in (1, 2, 3) and encoding.bits_per_sample >= 8
    if error is not None and not plain:
        raise UnsupportedError(
            f"an error bound needs plain integers or floats, not {encoding.name}"
        )
    dtype = encoding.dtype if error is not None else np.dtype(NUMBERS[encoding.element_width])
    # A slope with some noise: what every predictor and entropy coder can take.
    picture = (np.arange(256).reshape(16, 16) * 7 % 61).astype(dtype)
    try:
        frame = geozl.compress(picture, graph=geozl.graph(picture, recipe, error=error))
    except (RuntimeError, ValueError, TypeError) as failure:
        raise ValueError(f"codec {PREFIX + recipe!r}: {_reason(failure)}") from failure
    _check_version(frame, recipe)
    try:
        openzl.DCtx().decompress(frame)
    except RuntimeError:
        return True
    return False


def _check_version(frame: bytes, recipe: str) -> None:
    (magic,) = struct.unpack_from("<I", frame)
    if magic != FRAME_MAGIC + FRAME_VERSION:
        raise UnsupportedError(
            f"geozl writes {recipe} in OpenZL's frame format {magic - FRAME_MAGIC}, and rumi files "
            f"hold frames of format {FRAME_VERSION} only; use another recipe"
        )


def _reason(error: BaseException) -> str:
    """Return the first line of what geozl says."""
    return str(error).strip().partition("\n")[0]
