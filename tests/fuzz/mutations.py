"""Changing good inputs at random: the same changes for the same seed, with no other package."""

import random
from collections.abc import Iterator

from .seeds import seeds

__all__ = ["mutations"]

# What sizes, offsets and counts are replaced by.
_NUMBERS = (
    b"\xff" * 9,
    b"\xff" * 7 + b"\x7f",
    b"\x00" * 7 + b"\x80",
    b"\x80" * 8 + b"\x7f",
    b"\xff\xff\xff\xff\x0f",
    b"\x00\x00\x00\x00",
)

# Where the magic of a frame stands in an input of that target.
_MAGIC = slice(1, 5)


def mutations(target: str, seed: int) -> Iterator[bytes]:
    """Yield changed inputs of a target without end."""
    good = seeds(target)
    rng = random.Random(seed)
    while True:
        data = bytearray(rng.choice(good))
        for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
            _change(data, rng, good)
        if target == "frames" and rng.random() < 0.98:
            # Without it nothing else is looked at.
            data[_MAGIC] = good[0][_MAGIC]
        yield bytes(data)


def _change(data: bytearray, rng: random.Random, good: list[bytes]) -> None:
    if not data:
        return
    at = rng.randrange(len(data))
    kind = rng.randrange(7)
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[at] = rng.randrange(256)
    elif kind == 2:
        data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
    elif kind == 3:
        del data[at : at + rng.randrange(1, 9)]
    elif kind == 4:
        data[at:at] = rng.randbytes(rng.randrange(1, 9))
    elif kind == 5:
        other = rng.choice(good)
        start, length = rng.randrange(len(other)), rng.randrange(1, 40)
        data[at : at + length] = other[start : start + length]
    else:
        number = rng.choice(_NUMBERS)
        data[at : at + len(number)] = number
