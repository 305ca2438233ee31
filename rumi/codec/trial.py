"""Compressing samples of an image with candidates, each once.

A candidate is a *front*, which predicts, and a *back*, which codes what is left
of a prediction. Most fronts are a few operations in NumPy, while their nodes
move every byte of a picture several times; so a front's residuals are made here
once and given to all backs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi.codec.encoder import NUMBERS, FrameEncoder
from rumi.codec.recipes import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rumi.encodings import Encoding

__all__ = ["Samples", "Trial", "fronts", "recipe"]

# Bytes that the tables of entropy codes take in a frame, about: those of the classes
# of blocks, and those of one lane.
_BLOCK_TABLES = 800
_LANE_TABLES = 100

# Numbers looked at for repeated values, and how far apart those must be.
_GLANCE = 4096
_SPREAD = 8


@dataclass(frozen=True, slots=True)
class Samples:
    """Parts of the frames of an image.

    Attributes
    ----------
    strips : sequence of ndarray of unsigned, shape (n, h, w)
        Stacks of strips from all over the image, C-contiguous, at least one. In
        stacks of cell frames the bands of a strip follow each other.
    frame_bytes : int
        Bytes of samples of a whole frame.
    planes : int
        Bands of a frame.
    """

    strips: Sequence[NDArray[Any]]
    frame_bytes: int
    planes: int = 1


class Trial:
    """Compressed sizes of candidates on the samples of one image.

    Parameters
    ----------
    samples : Samples
    width : {1, 2, 4, 8}
        Bytes of one number.
    encoders : dict, optional
        Where encoders of candidates are found and left, for one thread.
    """

    def __init__(
        self,
        samples: Samples,
        width: int,
        encoders: dict[str, FrameEncoder] | None = None,
    ) -> None:
        self._samples = samples
        self._width = width
        self._residuals: dict[tuple[str, int], NDArray[Any]] = {}
        self._sizes: dict[tuple[str, str, int], int] = {}
        self._encoders = {} if encoders is None else encoders

    def share(self, front: str, back: str, step: int = 1) -> float:
        """Return the compressed size of every `step`-th stack, as a share of its samples.

        What entropy tables take is scaled to a whole frame, where they weigh less.
        """
        strips = self._samples.strips
        chosen = range(0, len(strips), step)
        raw = sum(strips[index].nbytes for index in chosen)
        found = sum(self._size(front, back, index) for index in chosen)
        tables = _BLOCK_TABLES if "blocks" in back else _LANE_TABLES * self._width
        frames = raw / self._samples.frame_bytes
        return (found - min(tables, found // 2) * (len(chosen) - frames)) / raw

    def _size(self, front: str, back: str, index: int) -> int:
        key = (front, back, index)
        if key not in self._sizes:
            if front.startswith("tokenize"):
                # Only OpenZL can tell what its indices are.
                strip, name, width = self._samples.strips[index], recipe(front, back), self._width
            else:
                strip, name = self._residual(front, index), back
                width = strip.itemsize
            self._sizes[key] = len(self._encoder(name, width).encode(strip))
        return self._sizes[key]

    def _encoder(self, name: str, width: int) -> FrameEncoder:
        key = f"{name} {width}"
        if key not in self._encoders:
            self._encoders[key] = FrameEncoder(parse(name), width)
        return self._encoders[key]

    def _residual(self, front: str, index: int) -> NDArray[Any]:
        key = (front, index)
        if key not in self._residuals:
            numbers = self._samples.strips[index].view(NUMBERS[self._width])
            self._residuals[key] = _predicted(front, numbers, self._samples.planes)
        return self._residuals[key]


def recipe(front: str, back: str) -> str:
    """Return the recipe of a front, perhaps empty, and a back."""
    return f"{front}>{back}" if front else back


def _predicted(front: str, numbers: NDArray[Any], planes: int) -> NDArray[Any]:
    """Return the residuals of a front, as its nodes make them, but for their order."""
    if front.startswith("cast"):
        width = int(front[5])
        numbers = numbers.view(NUMBERS[width])
        return _zigzag(numbers) if front.endswith("zigzag") else numbers
    if not front:
        return numbers
    if front.startswith("turn"):
        # The first row of a strip, which in a frame has one above, is taken along itself.
        residual = np.empty_like(numbers)
        residual[:, 1:] = numbers[:, 1:] - numbers[:, :-1]
        residual[:, 0, 1:] = numbers[:, 0, 1:] - numbers[:, 0, :-1]
        residual[:, 0, 0] = 0
        return _zigzag(residual)
    residual = np.empty_like(numbers)
    flat, source = residual.reshape(-1), numbers.reshape(-1)
    np.subtract(source[1:], source[:-1], out=flat[1:])
    flat[0] = 0
    if front.startswith("planar"):
        residual[:, 1:] -= residual[:, :-1].copy()
    elif front.startswith("spectral"):
        bands = residual.reshape(-1, planes, *residual.shape[1:])
        bands[:, 1:] -= bands[:, :-1].copy()
    return _zigzag(residual)


def _zigzag(numbers: NDArray[Any]) -> NDArray[Any]:
    signed = numbers.view(np.dtype(f"i{numbers.itemsize}"))
    found: NDArray[Any] = (signed << 1) ^ (signed >> (8 * numbers.itemsize - 1))
    return found.view(numbers.dtype)


def fronts(samples: Samples, encoding: Encoding) -> list[str]:
    """Return the fronts that suit the kind of samples."""
    if "complex" in encoding.name:
        # Speckle, which nothing predicts: pairs of numbers are taken apart.
        component = encoding.itemsize // 2
        cast = f"cast:{component}"
        whole = encoding.name.startswith("complex_int")
        return [""] if component == 8 else [f"{cast}>zigzag" if whole else cast, ""]
    found = ["", "delta>zigzag", "planar>zigzag"]
    if samples.planes > 1:
        found.append("spectral>zigzag")
    if encoding.itemsize > 1 and _quantised(samples.strips[len(samples.strips) // 2]):
        found += ["tokenize", "tokenize>delta>zigzag"]
    return found


def _quantised(strip: NDArray[Any]) -> bool:
    """Whether values repeat although they lie far apart, as those of a rounded float do."""
    numbers = strip.reshape(-1)
    glance = numbers[:: max(1, numbers.size // _GLANCE)]
    values = np.unique(glance)
    if 10 * values.size > 9 * glance.size or values.size < 2:
        return False
    # The middle of them: a few outliers lie far apart in any image.
    tenth = values.size // 10
    middle = int(values[-1 - tenth]) - int(values[tenth])
    return middle > _SPREAD * values.size
