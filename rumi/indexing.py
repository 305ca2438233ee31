"""NumPy-style indexing of images: what a key selects, without wrapping or clamping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Axis", "axis", "finish", "is_integer", "split_key"]


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of one axis; `single` where an integer selected it, which drops the axis."""

    start: int
    stop: int
    step: int
    single: bool


def finish(array: NDArray[Any], bands: Any, row: Axis, col: Axis) -> NDArray[Any]:
    """Apply to a window that was read whole what its selectors ask beyond it.

    Takes every step-th row and column, in memory of its own, and drops the axes
    that an integer selected; bands, rows and columns are the last three.
    """
    if row.step > 1 or col.step > 1:
        array = array[..., :: row.step, :: col.step].copy()
    dropped = (is_integer(bands), row.single, col.single)
    drop = tuple(position - 3 for position, flag in enumerate(dropped) if flag)
    return array.squeeze(axis=drop) if drop else array


def is_integer(value: Any) -> bool:
    """Whether a selector is one position, which drops its axis."""
    return getattr(value, "ndim", 0) == 0 and hasattr(value, "__index__")


def split_key(key: Any, axes: int) -> tuple[Any, ...]:
    """Return the selector of each axis, with the ellipsis filled in.

    Raises
    ------
    TypeError
        If a selector is None, which adds an axis in NumPy.
    IndexError
        If there are more selectors than axes, or two ellipses.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    if any(part is None for part in parts):
        raise TypeError("an index adds no axis: expected an integer, a slice or bands, found None")
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexError("an index has at most one ellipsis")
    if not any(part is Ellipsis for part in parts):
        parts.append(Ellipsis)
    position = next(i for i, part in enumerate(parts) if part is Ellipsis)
    fill = axes - (len(parts) - 1)
    if fill < 0:
        raise IndexError(f"expected at most {axes} indices, found {len(parts) - 1}")
    parts[position : position + 1] = [slice(None)] * fill
    return tuple(parts)


def axis(selector: Any, size: int, name: str) -> Axis:
    """Return the extent that a row, column or image selector covers.

    Raises
    ------
    TypeError
        If the selector is a bool, a float or of no known kind.
    IndexError
        If a bound is outside 0..size.
    ValueError
        If a slice selects nothing or has a step below 1.
    """
    if isinstance(selector, slice):
        start = 0 if selector.start is None else _bound(selector.start, size, name)
        stop = size if selector.stop is None else _bound(selector.stop, size, name)
        step = 1 if selector.step is None else _bound(selector.step, None, f"{name} step")
        if start >= stop or step < 1:
            raise ValueError(
                f"{name} slice {start}:{stop}:{step} selects nothing of {size} or runs backwards"
            )
        return Axis(start, stop, step, single=False)
    position = _bound(selector, size - 1, name)
    return Axis(position, position + 1, 1, single=True)


def _bound(value: Any, limit: int | None, name: str) -> int:
    if isinstance(value, bool) or not is_integer(value):
        raise TypeError(f"a {name} index is an integer or a slice, found {type(value).__name__}")
    number: int = value.__index__()
    if limit is not None and not 0 <= number <= limit:
        raise IndexError(f"{name} {number} is outside 0..{limit}")
    return number
