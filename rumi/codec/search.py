"""The preset ``small``: the smallest built-in recipe, whatever it takes to write.

It tries more fronts and backs than the other presets, on more of the image. Where
several fronts come close it lets each frame have its own: the recipe found is
then ``best(A,B,...)``, which tries them all at every frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumi.codec.choose import POLICIES, choose
from rumi.codec.geozl import PREDICTORS, PREFIX, MixedEncoder
from rumi.codec.recipes import parse
from rumi.codec.trial import Samples, Trial, fronts, recipe

if TYPE_CHECKING:
    from rumi.encodings import Encoding

__all__ = ["search", "search_geozl"]

# Fronts that go on to all backs: within this of the best, three at most.
_CLOSE = 1.15
_KEPT = 3

# Fronts that a frame may choose between: within this of the best.
_TOGETHER = 1.05

# zstd at its highest level is slow; it is tried where at level 1 it is within
# this of what sorting blocks gives.
_REPEATS = 1.1

_BACKS = {
    1: (
        "entropy",
        "blocks:4x8>entropy",
        "blocks:8x8>buckets:4>fse",
        "blocks:4x8>buckets:4>fse",
        "blocks:4x4>buckets:4>fse",
    ),
    2: (
        "lanes>entropy",
        "blocks:4x8>lanes>entropy",
        "buckets:4>fse",
        "blocks:8x8>buckets:4>fse",
        "blocks:4x8>buckets:4>fse",
        "blocks:4x4>buckets:4>fse",
    ),
}
_DEEP = {1: ("zstd:19", "pack>zstd:19"), 2: ("lanes>zstd:19", "blocks:4x8>lanes>zstd:19")}


def search(samples: Samples, encoding: Encoding) -> str:
    """Find the smallest recipe.

    Parameters
    ----------
    samples : Samples
        Of a large part of the image.
    encoding : Encoding

    Returns
    -------
    str
        The same for the same samples, always.
    """
    return _together(_ranked(samples, encoding))


def _together(found: list[tuple[float, str]]) -> str:
    """Return the best recipe, or one that tries all which come close."""
    names = [name for share, name in found if share <= _TOGETHER * found[0][0]]
    return names[0] if len(names) == 1 else f"best({','.join(names)})"


def _ranked(samples: Samples, encoding: Encoding) -> list[tuple[float, str]]:
    """Return the share and recipe of the best back of each front that comes close, best first."""
    width = encoding.element_width
    trial = Trial(samples, width)
    kind = min(width, 2)
    lanes = "" if width == 1 else "lanes>"
    quick, sorting = f"{lanes}zstd:1", f"blocks:4x8>{lanes}entropy"
    candidates = fronts(samples, encoding)
    if "planar>zigzag" in candidates:
        candidates.append("turn>delta>zigzag")
    probed = {
        front: min(trial.share(front, quick, 2), trial.share(front, sorting, 2))
        for front in candidates
    }
    ranked = sorted(probed, key=lambda front: (probed[front], front))
    kept = [front for front in ranked[:_KEPT] if probed[front] <= _CLOSE * probed[ranked[0]]]
    if width == 1 and "" not in kept:
        # Masks and classes, for which the quick looks are none.
        kept.append("")
    found = []
    for front in kept:
        backs = [*_BACKS[kind], quick]
        if trial.share(front, quick) <= _REPEATS * trial.share(front, sorting):
            backs += _DEEP[kind]
        found.append(min((trial.share(front, back), recipe(front, back)) for back in backs))
    found.sort()
    # No larger than what is found where decoding counts.
    balanced = choose(samples, encoding, POLICIES["balanced"])
    if "spectral" not in balanced and trial.share("", balanced) < found[0][0]:
        found.insert(0, (trial.share("", balanced), balanced))
    return found


def search_geozl(samples: Samples, encoding: Encoding) -> str:
    """Find the smallest recipe that may begin with one of geozl's predictors.

    Returns
    -------
    str
        What `search` finds, where no predictor does better.
    """
    width = encoding.element_width
    sorting = "zigzag>blocks:4x8>lanes>entropy"

    def share(predictor: str, rest: str, step: int = 1) -> float:
        encoder = MixedEncoder(predictor, parse(rest), width)
        strips = samples.strips[::step]
        return sum(len(encoder.encode(strip)) for strip in strips) / sum(s.nbytes for s in strips)

    ranked = sorted((share(name, sorting, 2), name) for name in PREDICTORS)
    predictor = ranked[0][1]
    tried = [
        (share(predictor, rest), f"{PREFIX}{predictor}>{rest}")
        for rest in (f"zigzag>{back}" for back in (*_BACKS[min(width, 2)], *_DEEP[min(width, 2)]))
    ]
    found = _ranked(samples, encoding)
    best = min(tried)
    return best[1] if best[0] < found[0][0] else _together(found)
