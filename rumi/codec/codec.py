"""Codecs: what a write uses, found from what a caller says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from openzl import ext as openzl

from rumi._core import openzl_reason
from rumi.codec import geozl
from rumi.codec.choose import POLICIES, choose
from rumi.codec.encoder import FrameEncoder
from rumi.codec.recipes import parse
from rumi.codec.search import search, search_geozl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.codec.recipes import Recipe
    from rumi.codec.trial import Samples
    from rumi.encodings import Encoding

__all__ = ["PRESETS", "Builder", "Codec", "Encoder", "resolve"]

PRESETS = ("auto", "balanced", "fast", "small", "geozl:small")

# Builds a graph of OpenZL and returns the GraphID that a frame starts with.
Builder: TypeAlias = Callable[[Any], Any]


class Encoder(Protocol):
    """Compresses one frame after another, for one thread."""

    def encode(self, samples: NDArray[Any]) -> bytes:
        """Return the frame of unsigned samples, of shape (h, w) or (B, h, w), C-contiguous."""


@dataclass(frozen=True, slots=True)
class Codec:
    """What a write uses: a recipe for samples of one encoding. Picklable, but for a builder.

    Attributes
    ----------
    name : str
        The recipe, as `resolve` reads it; a near-lossless one is followed by
        its error.
    encoding : Encoding
    lossy : bool
        Whether frames decode to something near their samples only.
    needs_geozl : bool
        Whether reading needs geozl.
    releases_gil : bool
        Whether threads compress at the same time.
    picklable : bool
        Whether another process can make the same encoder.
    """

    name: str
    encoding: Encoding
    lossy: bool = False
    needs_geozl: bool = False
    releases_gil: bool = False
    picklable: bool = True
    _recipe: str | Builder = ""
    _error: float | str | None = field(default=None, repr=False)

    @property
    def width(self) -> int:
        """Bytes of one number of a frame."""
        return self.encoding.element_width

    def encoder(self) -> Encoder:
        """Return a new encoder, for one thread."""
        recipe = self._recipe or self.name
        if not isinstance(recipe, str):
            return FrameEncoder(recipe, self.width)
        if not recipe.startswith(geozl.PREFIX):
            return FrameEncoder(parse(recipe), self.width)
        recipe = recipe.removeprefix(geozl.PREFIX)
        both = geozl.mixed(recipe)
        if both is not None:
            return geozl.MixedEncoder(*both, self.width)
        return geozl.GeozlEncoder(recipe, self.encoding, self._error)


def resolve(
    codec: Any,
    encoding: Encoding,
    samples: Callable[..., Samples],
    *,
    error: float | str | None = None,
) -> Codec:
    """Return the codec that a write uses.

    Parameters
    ----------
    codec : str, callable or Codec
        A preset, a recipe, a builder, or what this returned for an image of the
        same encoding.
    encoding : Encoding
        Of the image.
    samples : callable
        Returns samples of the image, more of them with ``thorough=True``. Called
        for presets only.
    error : float or str, optional
        Largest error of a near-lossless ``geozl:`` recipe: a number, or relative
        as ``"1%"``.

    Raises
    ------
    TypeError, ValueError
        If there is no such codec.
    UnsupportedError
        If it needs geozl where that is absent, or frames of another format.
    """
    if isinstance(codec, Codec):
        return _again(codec, encoding, error)
    text = codec.strip().lower() if isinstance(codec, str) else ""
    if text.startswith(geozl.PREFIX) and text != "geozl:small":
        return _geozl_codec(text, encoding, error)
    if error is not None:
        raise ValueError("error goes with a recipe of geozl, such as geozl:planar>zigzag>zstd")
    if not isinstance(codec, str) and callable(codec):
        return _built(codec, encoding)
    if text in ("auto", *POLICIES):
        name = choose(samples(), encoding, POLICIES["balanced" if text == "auto" else text])
    elif text == "small":
        name = search(samples(thorough=True), encoding)
    elif text == "geozl:small":
        geozl.load()
        name = search_geozl(samples(thorough=True), encoding)
        if name.startswith(geozl.PREFIX):
            return _geozl_codec(name, encoding, None)
    else:
        name = str(_parsed(codec, encoding))
    return Codec(name, encoding)


def _parsed(codec: Any, encoding: Encoding) -> Recipe:
    """Read a recipe, and see that OpenZL can build it."""
    try:
        recipe = parse(codec)
    except ValueError as failure:
        if any(mark in codec for mark in ">:("):
            raise
        raise ValueError(f"{failure}; presets are {', '.join(PRESETS)}") from None
    try:
        FrameEncoder(recipe, encoding.element_width)
    except RuntimeError as failure:
        raise ValueError(f"codec {codec!r}: OpenZL says {openzl_reason(failure)}") from failure
    return recipe


def _again(codec: Codec, encoding: Encoding, error: float | str | None) -> Codec:
    if error is not None:
        raise ValueError("a Codec has its error already")
    if codec.encoding != encoding:
        raise ValueError(
            f"codec {codec.name} was made for samples of {codec.encoding.name}, not {encoding.name}"
        )
    return codec


def _built(builder: Builder, encoding: Encoding) -> Codec:
    """Take a builder, after a trial: a fault in it shows before there is a file."""
    graph = builder(openzl.Compressor())
    if not isinstance(graph, openzl.GraphID):
        raise TypeError(
            f"codec: a builder returns an openzl.ext.GraphID, found {type(graph).__name__}"
        )
    name = getattr(builder, "__name__", type(builder).__name__)
    return Codec(f"builder {name}", encoding, picklable=False, _recipe=builder)


def _geozl_codec(text: str, encoding: Encoding, error: float | str | None) -> Codec:
    recipe = text.removeprefix(geozl.PREFIX)
    both = geozl.mixed(recipe)
    if both is not None:
        if error is not None:
            raise ValueError(f"codec {text!r}: an error goes with steps of geozl alone")
        geozl.load()
        return Codec(f"{geozl.PREFIX}{both[0]}>{both[1]}", encoding, needs_geozl=True)
    needed = geozl.check(recipe, encoding, error)
    name = text if error is None else f"{text}, error {error}"
    return Codec(
        name,
        encoding,
        lossy=error is not None,
        needs_geozl=needed,
        releases_gil=True,
        _recipe=text,
        _error=error,
    )
