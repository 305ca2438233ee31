"""Recipes: what is done to the samples of a frame, as text.

A recipe is a chain of steps, ``delta>zigzag>blocks:4x8>lanes>entropy``: each takes
the stream of numbers that the one before leaves, and the last one, a *leaf*,
compresses it. A step that makes several streams can give some of them chains of
their own in parentheses: ``lanes(huffman,fse)``, ``tokenize(delta>lanes>zstd)>words``.

================  ===============================================================
step              what it does to a stream of numbers
================  ===============================================================
``delta``         difference from the number before
``planar``        difference from left + above - above left
``spectral``      the same in a cell frame, with the band before for above
``turn``          swaps rows and columns
``zigzag``        signed to unsigned, small magnitudes first
``range``         subtracts the minimum, narrows the width to what is left
``divide``        divides by the greatest common divisor
``cast:W``        reads the bytes as numbers of W bytes: 1, 2, 4, 8
``blocks:HxW``    one stream for each size class of blocks of H x W numbers
``lanes``         one stream for each byte of a number; ``lanes(low,...,high)``
                  gives each its own chain, the last one also to those above it
``pack``          as many bits a number as the largest needs, as bytes
``tokenize``      distinct values, sorted, and indices into them;
                  ``tokenize(values)`` gives the chain of the values
``buckets:N``     about logarithmic buckets, N an octave (1, 2, 4, 8, 16), and
                  the bits within; ``buckets:N(bits)`` gives the chain of those
``float16``       sign and fraction apart from the exponent, of which the rest
``bfloat16``      of the chain is; ``float32(fraction)`` gives the chain of the
``float32``       others
================  ===============================================================

================  ===============================================================
leaf              how it compresses a stream
================  ===============================================================
``fse``           entropy codes of a fraction of a bit
``huffman``       entropy codes of whole bits, faster
``entropy``       the better of the two, or neither where that is best
``words:N``       ``entropy`` of two-byte numbers where they have 9 to N bits
                  (10), of their bytes where not
``zstd:L``        repeats and entropy, level L
``fieldlz:L``     repeats of whole numbers and entropy, level L
``bitpack``       as many bits a number as the largest needs
``constant``      the one value there is
``store``         not at all
``openzl``        OpenZL's own choice
``best(A,B,...)`` tries chains on every stream and keeps the smallest
================  ===============================================================

A step that cannot take some stream is replaced by a generic compressor, in that
frame only, and a frame of one value alone is stored as that value: every recipe
is lossless on every input.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["LEAVES", "STEPS", "Recipe", "Step", "parse"]

_MAX_DEPTH = 16
_MAX_STEPS = 64


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a recipe.

    Attributes
    ----------
    name : str
    argument : tuple of int
        What follows the colon; empty where nothing does.
    branches : tuple of Recipe
        Chains in parentheses.
    """

    name: str
    argument: tuple[int, ...] = ()
    branches: tuple[Recipe, ...] = ()

    def __str__(self) -> str:
        """Write the step as `parse` reads it."""
        argument = ":" + "x".join(map(str, self.argument)) if self.argument else ""
        branches = "(" + ",".join(map(str, self.branches)) + ")" if self.branches else ""
        return self.name + argument + branches


@dataclass(frozen=True, slots=True)
class Recipe:
    """A chain of steps that ends in a leaf.

    Attributes
    ----------
    steps : tuple of Step
        First applied first.
    """

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        """Write the recipe as `parse` reads it."""
        return ">".join(map(str, self.steps))


_Check: TypeAlias = Callable[[tuple[int, ...]], bool]


@dataclass(frozen=True, slots=True)
class _Kind:
    """What may be written about a step.

    Attributes
    ----------
    argument : str
        In words, for errors; empty where there is none.
    valid : callable
        Whether an argument is.
    branches : (int, int)
        Fewest and most chains in parentheses.
    """

    argument: str = ""
    valid: _Check = lambda argument: not argument
    branches: tuple[int, int] = (0, 0)


def _between(low: int, high: int, *, optional: bool = False) -> _Check:
    def valid(argument: tuple[int, ...]) -> bool:
        if not argument:
            return optional
        return len(argument) == 1 and low <= argument[0] <= high

    return valid


def _block(argument: tuple[int, ...]) -> bool:
    return len(argument) == 2 and 1 <= argument[0] <= 256 and 4 <= argument[1] <= 256


STEPS: dict[str, _Kind] = {
    "delta": _Kind(),
    "planar": _Kind(),
    "spectral": _Kind(),
    "turn": _Kind(),
    "zigzag": _Kind(),
    "range": _Kind(),
    "divide": _Kind(),
    "cast": _Kind("1, 2, 4 or 8", lambda argument: argument in {(1,), (2,), (4,), (8,)}),
    "blocks": _Kind("rows x columns, 1x4 to 256x256", _block),
    "lanes": _Kind(branches=(0, 8)),
    "pack": _Kind(),
    "tokenize": _Kind(branches=(0, 1)),
    "buckets": _Kind(
        "1 to 16", lambda argument: argument in {(1,), (2,), (4,), (8,), (16,)}, branches=(0, 1)
    ),
    "float16": _Kind(branches=(0, 1)),
    "bfloat16": _Kind(branches=(0, 1)),
    "float32": _Kind(branches=(0, 1)),
}

LEAVES: dict[str, _Kind] = {
    "fse": _Kind(),
    "huffman": _Kind(),
    "entropy": _Kind(),
    "words": _Kind("bits, 9 to 16", _between(9, 16, optional=True)),
    "zstd": _Kind("a level, 1 to 22", _between(1, 22, optional=True)),
    "fieldlz": _Kind("a level, 1 to 9", _between(1, 9, optional=True)),
    "bitpack": _Kind(),
    "constant": _Kind(),
    "store": _Kind(),
    "openzl": _Kind(),
    "best": _Kind(branches=(2, 16)),
}

_TOKEN = re.compile(r"\s*([a-z0-9]+(?::[0-9]+(?:x[0-9]+)?)?|[>(),])\s*")


def parse(name: str) -> Recipe:
    """Read a recipe such as ``"delta>zigzag>lanes>zstd:9"``.

    Raises
    ------
    TypeError
        If `name` is not a string.
    ValueError
        If a step, a leaf, an argument or the form is wrong.
    """
    if not isinstance(name, str):
        raise TypeError(f"a codec is a string or a builder, found {type(name).__name__}")
    return _Parser(name).whole()


class _Parser:
    """Recursive descent over the words of one recipe."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: list[str] = []
        position, lower = 0, text.lower()
        while position < len(lower):
            match = _TOKEN.match(lower, position)
            if match is None:
                raise self._error(f"cannot be read from {text[position : position + 12]!r} on")
            self._words.append(match[1])
            position = match.end()
        self._next = 0
        self._depth = 0
        self._count = 0

    def whole(self) -> Recipe:
        recipe = self._chain()
        if self._peek() is not None:
            raise self._error(f"cannot be read from {self._peek()!r} on")
        return recipe

    def _error(self, reason: str) -> ValueError:
        return ValueError(f"codec {self._text!r}: {reason}")

    def _peek(self) -> str | None:
        return self._words[self._next] if self._next < len(self._words) else None

    def _take(self, word: str) -> bool:
        if self._peek() != word:
            return False
        self._next += 1
        return True

    def _chain(self) -> Recipe:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error(f"chains nest deeper than {_MAX_DEPTH}")
        steps = [self._step()]
        while self._take(">"):
            steps.append(self._step())
        for step in steps[:-1]:
            if step.name in LEAVES or (step.name == "lanes" and step.branches):
                raise self._error(f"{step} ends a chain, so nothing can follow it")
        last = steps[-1]
        if last.name not in LEAVES and not (last.name == "lanes" and last.branches):
            raise self._error(f"ends with {last}; a chain ends with one of {', '.join(LEAVES)}")
        self._depth -= 1
        return Recipe(tuple(steps))

    def _step(self) -> Step:
        word = self._peek()
        if word is None or word in ">(),":
            raise self._error("a step is missing")
        self._next += 1
        self._count += 1
        if self._count > _MAX_STEPS:
            raise self._error(f"more than {_MAX_STEPS} steps")
        name, _, text = word.partition(":")
        kind = STEPS.get(name) or LEAVES.get(name)
        if kind is None:
            raise self._error(
                f"no step {name!r}; steps are {', '.join(STEPS)}; leaves are {', '.join(LEAVES)}"
            )
        argument = tuple(int(number) for number in text.split("x")) if text else ()
        if not kind.valid(argument):
            found = f"found {text!r}" if text else "found none"
            expected = f"takes {kind.argument}" if kind.argument else "takes no number"
            raise self._error(f"{name} {expected}, {found}")
        return Step(name, argument, self._branches(name, kind))

    def _branches(self, name: str, kind: _Kind) -> tuple[Recipe, ...]:
        found: list[Recipe] = []
        if self._take("("):
            found.append(self._chain())
            while self._take(","):
                found.append(self._chain())
            if not self._take(")"):
                raise self._error(f"the parenthesis after {name} is not closed")
        fewest, most = kind.branches
        if not (fewest <= len(found) <= most):
            expected = f"{fewest} to {most}" if most else "no"
            raise self._error(f"{name} takes {expected} chains in parentheses, found {len(found)}")
        return tuple(found)
