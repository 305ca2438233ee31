"""The presets: choosing a recipe for an image from samples of its own tiles.

``balanced`` and ``fast`` compare nanoseconds a byte of samples::

    compressed / raw * fetch  +  decode  +  a share of encode

Decode and encode times are constants of the recipes, measured once on scenes of
all kinds, and never measured on the spot: the same image must give the same
file on every run and machine. ``small`` goes by size alone, see `rumi.codec.search`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rumi.codec.trial import Samples, Trial, fronts, recipe

if TYPE_CHECKING:
    from rumi.encodings import Encoding

__all__ = ["POLICIES", "Policy", "choose"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What a preset weighs.

    Attributes
    ----------
    fetch : float
        Nanoseconds that a compressed byte takes to arrive.
    encode : float
        What a nanosecond of writing counts beside one of reading.
    """

    fetch: float
    encode: float


# A gigabit link that 20 loaders share gives each of them 6 MB/s. A local disk gives
# 100 MB/s or more, and where files are that close writing counts too.
POLICIES = {"balanced": Policy(150.0, 0.05), "fast": Policy(10.0, 0.2)}

# A recipe that takes longer to write than this, in nanoseconds a byte, must be
# this much smaller than the best of the others.
_SLOW = 5.0
_SLOW_GAIN = 0.9

# Nanoseconds a byte of samples: decode and encode.
_Time = tuple[float, float]

# Fronts, by bytes of a number.
_FRONTS: dict[str, dict[int, _Time]] = {
    "": {1: (0.0, 0.0), 2: (0.0, 0.0), 4: (0.0, 0.0), 8: (0.0, 0.0)},
    "delta>zigzag": {1: (0.12, 0.1), 2: (0.15, 0.2), 4: (0.12, 0.1), 8: (0.1, 0.2)},
    "planar>zigzag": {1: (0.95, 2.0), 2: (0.7, 3.6), 4: (1.0, 3.8), 8: (1.0, 4.2)},
    "spectral>zigzag": {1: (2.0, 6.0), 2: (4.0, 9.0), 4: (4.0, 9.0), 8: (4.0, 9.0)},
    "tokenize": {2: (0.1, 7.0), 4: (0.0, 7.0), 8: (0.1, 10.5)},
    "tokenize>delta>zigzag": {2: (0.2, 7.2), 4: (0.1, 7.2), 8: (0.2, 10.5)},
    "cast:2>zigzag": {4: (0.0, 0.2)},
    "cast:4>zigzag": {8: (0.0, 0.2)},
    "cast:2": {4: (0.0, 0.1)},
    "cast:4": {8: (0.0, 0.1)},
}

# Backs, by bytes of a number; zstd's time goes by what it finds.
_BLOCKS: dict[int, _Time] = {1: (1.5, 4.8), 2: (1.15, 3.6), 4: (1.05, 2.6), 8: (0.95, 2.2)}

# zstd searches deeper only where it already found this much.
_REPEATS = 0.25

# Values that a packed number may have, at most.
_PACKED = 16

# Fronts that go on to all backs: as good as this beside the best, two at most.
_CLOSE = 1.1


# A thread keeps its encoders of candidates, some dozens at most: to make them takes as
# long as to try them on a small image.
_encoders = threading.local()


def _zstd(share: float, level: int, width: int) -> _Time:
    """Return what zstd takes for samples that it compresses to a share of their size."""
    decode = min(0.12 + 3.5 * share, 0.6 + 0.3 * share)
    if width > 2:
        # Lanes of noise are stored.
        decode *= 0.7
    return decode, min(0.3 + 10 * share, 1.8) if level == 1 else min(1 + 60 * share, 12.0)


@dataclass(frozen=True, order=True, slots=True)
class _Rated:
    """A candidate: what it costs, in nanoseconds a byte, and what it makes of the samples."""

    score: float
    recipe: str
    share: float
    slow: bool


def choose(samples: Samples, encoding: Encoding, policy: Policy) -> str:
    """Pick the recipe that makes an image fastest to fetch and decode.

    Parameters
    ----------
    samples : Samples
    encoding : Encoding
    policy : Policy

    Returns
    -------
    str
        The same for the same samples, always.
    """
    width = encoding.element_width
    trial = Trial(samples, width, _encoders.__dict__)
    lanes = "" if width == 1 else "lanes>"

    def rate(front: str, back: str, step: int = 1) -> _Rated:
        share = trial.share(front, back, step)
        level = 1 if back.endswith(":1") else 9
        ahead = _FRONTS[front][width]
        times = [ahead, _BLOCKS[width] if "blocks" in back else _zstd(share, level, width)]
        decode, encode = (sum(kind) for kind in zip(*times, strict=True))
        score = policy.fetch * share + decode + policy.encode * encode
        return _Rated(score, recipe(front, back), share, encode > _SLOW)

    # A quick look at half of the samples tells which fronts can win.
    probe = f"{lanes}zstd:1"
    probed = {front: rate(front, probe, 2) for front in fronts(samples, encoding)}
    ranked = sorted(probed, key=lambda front: probed[front])
    close = _CLOSE * probed[ranked[0]].score
    found: list[_Rated] = []
    for front in ranked[:2]:
        if probed[front].score <= close:
            quick = rate(front, probe)
            found += [quick, *(rate(front, back) for back in _backs(samples, width, quick.share))]
    best = min([rated for rated in found if not rated.slow] or found)
    return min([best, *(r for r in found if r.share <= _SLOW_GAIN * best.share)]).recipe


def _backs(samples: Samples, width: int, share: float) -> list[str]:
    """Return the backs worth a try where the quick one leaves a share of the samples."""
    if width > 1:
        return ["blocks:4x8>words", *(["lanes>zstd:9"] if share < _REPEATS else [])]
    found = ["blocks:4x8>entropy"]
    if share < _REPEATS:
        few = all(int(strip.max()) < _PACKED for strip in samples.strips)
        found += ["zstd:9", *(["pack>zstd:9"] if few else [])]
    return found
