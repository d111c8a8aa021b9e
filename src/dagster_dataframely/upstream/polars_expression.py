"""What Polars says of an expression's inside only in the JSON of `Expr.meta.serialize`.

That JSON is not a promised format. Used here: the names of its nodes, to prove that an expression looks at
one row at a time. A node that is not known below counts as looking further, which costs a second
evaluation and never a wrong row.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import polars as pl

# Nodes that give each row a value of that row, if their inputs do.
_ROW_LOCAL_NODES = {"BinaryExpr", "Ternary", "Cast"}
# Functions of a namespace are row-local but for those named here.
_NAMESPACES: dict[str, frozenset[str]] = {
    "StringExpr": frozenset({"ConcatVertical"}),
    "TemporalExpr": frozenset(),
    "StructExpr": frozenset(),
    "ListExpr": frozenset(),
    "ArrayExpr": frozenset(),
    "BinaryExpr": frozenset(),
}
_ROW_LOCAL_BOOLEANS = {
    "IsNull",
    "IsNotNull",
    "IsFinite",
    "IsInfinite",
    "IsNan",
    "IsNotNan",
    "IsBetween",
    "IsIn",
    "IsClose",
    "Not",
    "AllHorizontal",
    "AnyHorizontal",
}
_ROW_LOCAL_FUNCTIONS = {
    "Abs",
    "Round",
    "RoundSF",
    "Floor",
    "Ceil",
    "Sign",
    "Negate",
    "Coalesce",
    "FillNull",
    "Clip",
    "MinHorizontal",
    "MaxHorizontal",
    "SumHorizontal",
    "MeanHorizontal",
    "Pow",
    "AsStruct",
}


def serialized(expr: pl.Expr) -> str | None:
    """Return the JSON of an expression, or None where it holds a Python function.

    The text is the same in every process and for each supported Polars version, and keeps every argument,
    which `str(expr)` does not.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return expr.meta.serialize(format="json")
    except (pl.exceptions.ComputeError, pl.exceptions.PolarsError, ValueError):
        return None


def looks_at_one_row(expr: pl.Expr) -> bool:
    """Return whether the value in a row surely depends on that row alone.

    Args:
        expr: An expression of a rule.

    Returns:
        False also where it cannot be known, such as for a Python function.
    """
    text = serialized(expr)
    return text is not None and _is_row_local(json.loads(text))


def _is_row_local(node: Any) -> bool:
    if not isinstance(node, dict) or len(node) != 1:
        return False
    ((kind, body),) = node.items()
    if kind == "Column":
        return True
    if kind == "Literal":
        # A literal series has a value of its own for each row position.
        return isinstance(body, dict) and not {"Series", "Range"} & body.keys()
    if kind == "Function":
        inputs = body.get("input", [None])
        function = body.get("function")
        if _is_membership(function) and "Literal" not in inputs[-1]:
            # `is_in` of a flat column asks whether any row has the value.
            return False
        return _is_row_local_function(function) and all(map(_is_row_local, inputs))
    if kind == "Eval":
        # What is evaluated inside a list sees the elements of one row's list.
        return _is_row_local(body.get("expr"))
    if kind == "Alias":
        return _is_row_local(body[0])
    if kind in _ROW_LOCAL_NODES:
        inputs = [value for name, value in body.items() if name not in ("op", "dtype", "options")]
        return all(_is_row_local(value) for value in inputs)
    return False


def _is_membership(function: Any) -> bool:
    return isinstance(function, dict) and _member(function.get("Boolean")) == "IsIn"


def _member(detail: Any) -> Any:
    """Return what of a namespace is called: a name, or a name with arguments.

    Arguments alone, such as a strategy's, name no member.
    """
    return next(iter(detail), "") if isinstance(detail, dict) else detail


def _is_row_local_function(function: Any) -> bool:
    if isinstance(function, str):
        return function in _ROW_LOCAL_FUNCTIONS
    if not isinstance(function, dict) or len(function) != 1:
        return False
    ((name, detail),) = function.items()
    member = _member(detail)
    if name == "Boolean":
        return member in _ROW_LOCAL_BOOLEANS
    if name in _NAMESPACES:
        return member not in _NAMESPACES[name]
    return name in _ROW_LOCAL_FUNCTIONS
