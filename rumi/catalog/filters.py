"""Which rows a condition selects: text as in `DataFrame.query`, tuples, Arrow's expressions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rumi.catalog.footprints import Box, box_meets, parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rumi.catalog.table import Table

__all__ = ["check_box", "expression", "in_box", "matching"]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def expression(where: Any) -> Any:
    """Return a condition as an expression of Arrow.

    Parameters
    ----------
    where : str, list of tuples or pyarrow.compute.Expression
        ``"cloud < 10 and split in ('train', 'val')"``: columns, literals, the six
        comparisons, ``in``, ``not in``, ``is None``, ``and``, ``or``, ``not``.
        Nothing is evaluated as Python. Tuples are those of Arrow's and pandas'
        ``filters=``.

    Raises
    ------
    ValueError
        If the text is anything else.
    TypeError
        If `where` is.
    """
    import pyarrow.compute as pc
    from pyarrow import parquet

    if isinstance(where, pc.Expression):
        return where
    if isinstance(where, (list, tuple)):
        return parquet.filters_to_expression(where)
    if not isinstance(where, str):
        raise TypeError(
            f"where: expected text, tuples or an expression, found {type(where).__name__}"
        )
    try:
        tree = ast.parse(where.strip(), mode="eval").body
    except SyntaxError as error:
        hint = "; equality is ==" if "=" in where and "==" not in where else ""
        raise ValueError(f"where: {where!r}: {error.msg}{hint}") from error
    return _condition(tree, where)


def _condition(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.BoolOp):
        join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
        found = _condition(node.values[0], text)
        for value in node.values[1:]:
            found = join(found, _condition(value, text))
        return found
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ~_condition(node.operand, text)
    if isinstance(node, ast.Compare):
        return _comparison(node, text)
    if isinstance(node, (ast.Name, ast.Attribute)):
        # A column of truth values.
        return _operand(node, text)
    raise _refused(node, text)


def _comparison(node: ast.Compare, text: str) -> Any:
    left = node.left
    found = None
    for op, right in zip(node.ops, node.comparators, strict=True):
        part = _one_comparison(left, op, right, text)
        found = part if found is None else found & part
        left = right
    return found


def _one_comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, text: str) -> Any:
    value = _operand(left, text)
    if isinstance(op, (ast.In, ast.NotIn)):
        found = value.isin(_literal(right, text))
        return ~found if isinstance(op, ast.NotIn) else found
    if isinstance(op, (ast.Is, ast.IsNot)):
        if _literal(right, text) is not None:
            raise _refused(right, text)
        return value.is_valid() if isinstance(op, ast.IsNot) else value.is_null()
    return _COMPARE[type(op)](value, _operand(right, text))


def _operand(node: ast.expr, text: str) -> Any:
    import pyarrow.compute as pc

    path = _column(node)
    if path:
        return pc.field(*path)
    value = _literal(node, text)
    if value is None or isinstance(value, (tuple, list, set, dict)):
        raise _refused(node, text)
    return pc.scalar(value)


def _column(node: ast.expr) -> tuple[str, ...]:
    """Return the names of a column such as ``bbox.xmin``; none if it is no column."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute) and (inner := _column(node.value)):
        return (*inner, node.attr)
    return ()


def _literal(node: ast.expr, text: str) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise _refused(node, text) from error


def _refused(node: ast.expr, text: str) -> ValueError:
    return ValueError(
        f"where: {text!r}: expected columns compared with literals, joined by and, or, not; found "
        f"{ast.unparse(node)!r}"
    )


def matching(table: Table, where: Any) -> NDArray[np.bool_]:
    """Return which rows a condition holds for; it does not where a value is missing.

    Raises
    ------
    ValueError
        If it cannot be evaluated: a column is missing or of another type.
    """
    import pyarrow as pa

    wanted = expression(where)
    text = str(wanted)
    # Columns that the text does not even mention need no reading.
    names = [name for name in table.schema.names if name in text]
    kept = np.zeros(len(table), bool)
    for group in range(table.group_count):
        first, stop = table.group_rows(group)
        rows = pa.array(np.arange(first, stop))
        some = table.read_groups([group], names).append_column(_ROW, rows)
        try:
            kept[some.filter(wanted).column(_ROW).to_numpy()] = True
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ValueError(
                f"where: {where}: {error}; the columns are {', '.join(table.schema.names)}"
            ) from error
    return kept


# A name that no column has.
_ROW = "\0row"


def check_box(box: Any) -> Box:
    """Return a box in degrees as four floats.

    Raises
    ------
    TypeError, ValueError
        If it is none.
    """
    try:
        west, south, east, north = (float(side) for side in box)
    except (TypeError, ValueError) as error:
        raise TypeError(f"bbox: expected (west, south, east, north), found {box!r}") from error
    if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south <= north <= 90):
        raise ValueError(
            "bbox: expected west and east in -180..180 and south not above north in -90..90, "
            f"found {box!r}"
        )
    return west, south, east, north


def in_box(table: Table, box: Box) -> NDArray[np.bool_]:
    """Return which rows have a footprint whose box meets another one.

    Raises
    ------
    ValueError
        If the catalog has no column of boxes.
    """
    if not {"bbox", "geometry"} <= set(table.schema.names):
        raise ValueError(f"{table.name}: has no columns geometry and bbox to find places by")
    kept = np.zeros(len(table), bool)
    known = table.corner_statistics()
    groups = range(table.group_count)
    for group in groups if known is None else np.flatnonzero(box_meets(known, box)).tolist():
        first, stop = table.group_rows(group)
        corners = table.read_groups([group], ["bbox"]).column("bbox").combine_chunks().flatten()
        boxes = np.array([corner.to_numpy(zero_copy_only=False) for corner in corners])
        with np.errstate(invalid="ignore"):
            kept[first:stop] = box_meets(boxes, box)
        # One that is cut at the antimeridian has a box around the whole globe.
        whole = np.flatnonzero(kept[first:stop] & (boxes[2] - boxes[0] >= 360))
        if whole.size:
            shapes = table.read_groups([group], ["geometry"]).column("geometry")
            for row in whole.tolist():
                pieces = np.array(parts(shapes[row].as_py())).T
                kept[first + row] = bool(box_meets(pieces, box).any())
    return kept
