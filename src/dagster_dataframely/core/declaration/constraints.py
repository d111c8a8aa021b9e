"""Rules of columns in words."""

from __future__ import annotations

from collections.abc import Mapping

import dataframely as dy
import polars as pl

from dagster_dataframely.core.json_values import json_value
from dagster_dataframely.core.text import listed, shortened

_COMPARISONS = {"min": ">=", "min_exclusive": ">", "max": "<=", "max_exclusive": "<"}
_LENGTHS = {"min_length": ">=", "max_length": "<="}
_FIXED = {
    "nullability": "not null",
    "unique": "unique",
    "inf": "not infinite",
    "nan": "not NaN",
}


def constraint_text(column: dy.Column, rule_kind: str) -> str:
    r"""Return what one rule of a column asks for.

    Args:
        column: The column that declares the rule.
        rule_kind: Dataframely's name of the rule without the column, such as `min`,
            `check__is_even` or `inner_nullability`.

    Returns:
        The constraint in words; the kind itself where nothing more is known of it.

    Examples:
        >>> constraint_text(dy.Float64(min=0.0), "min")
        '>= 0.0'
        >>> constraint_text(dy.String(regex=r"^ORD-\d{4}$"), "regex")
        'matches ^ORD-\\d{4}$'
        >>> constraint_text(dy.List(dy.Struct({"email": dy.String()})), "inner_inner_email_nullability")
        'each item, field email: not null'
    """
    where: list[str] = []
    while inner := _inner_rule(column, rule_kind):
        place, column, rule_kind = inner
        where.append(place)
    text = _own_constraint_text(column, rule_kind)
    return f"{', '.join(where)}: {text}" if where else text


def column_constraints(column: dy.Column) -> list[str]:
    """Return every constraint of a column except nullability and uniqueness.

    Args:
        column: A column of a schema.

    Returns:
        The constraints in the order of the column's rules. The categories of an enum are no rule of
        Dataframely's, being part of its dtype, but a reader looks for them here.

    Examples:
        >>> column_constraints(dy.Int8(nullable=True, unique=True, min=0, max=9))
        ['>= 0', '<= 9']
        >>> column_constraints(dy.Enum(["new", "paid"]))
        ["one of 'new', 'paid'"]
    """
    categories = [f"one of {listed(column.categories)}"] if isinstance(column, dy.Enum) else []
    kinds = column.validation_rules(pl.col(column.name))
    return categories + [
        constraint_text(column, kind) for kind in kinds if kind not in ("nullability", "unique")
    ]


def _inner_rule(column: dy.Column, kind: str) -> tuple[str, dy.Column, str] | None:
    """Return where in a nested column a rule belongs, to which inner column, and its kind there."""
    rest = kind.removeprefix("inner_")
    if rest == kind:
        return None
    if isinstance(column, (dy.List, dy.Array)):
        return "each item", column.inner, rest
    if isinstance(column, dy.Struct):
        # `inner_a_b_min` is a rule of field `a` or of field `a_b`, and only the fields' own rules tell.
        # Where both have such a rule, Dataframely keeps the later one.
        for name, inner in reversed(column.inner.items()):
            inner_kind = rest.removeprefix(f"{name}_")
            if inner_kind != rest and inner_kind in inner.validation_rules(pl.element()):
                return f"field {name}", inner, inner_kind
    return None


def _own_constraint_text(column: dy.Column, kind: str) -> str:
    if kind in _FIXED:
        return _FIXED[kind]
    if kind == "check" or kind.startswith("check__"):
        return _check_text(column, kind)
    if kind == "primary_key" and isinstance(column, (dy.List, dy.Array)):
        return _unique_items_text(column.inner)
    argument = getattr(column, kind, None)
    if argument is None:
        return kind
    if kind in _COMPARISONS:
        return f"{_COMPARISONS[kind]} {json_value(argument)}"
    if kind in _LENGTHS:
        return f"length {_LENGTHS[kind]} {_length_text(column, argument)}"
    if kind == "regex":
        return f"matches {shortened(str(argument))}"
    if kind == "is_in":
        return f"one of {listed(argument)}"
    if kind == "resolution":
        return f"resolution {argument}"
    return kind


def _check_text(column: dy.Column, kind: str) -> str:
    name = kind.removeprefix("check").removeprefix("__")
    # Dataframely numbers several lambdas. A name in a mapping may be a number too, but is the user's.
    if name and (isinstance(column.check, Mapping) or not name.isdecimal()):
        return f"check: {name}"
    expression = column.validation_rules(pl.col(column.name)).get(kind)
    return "check" if expression is None else f"check: {shortened(str(expression), 100)}"


def _unique_items_text(inner: dy.Column) -> str:
    if isinstance(inner, dy.Struct) and not inner.primary_key:
        fields = [name for name, field in inner.inner.items() if field.primary_key]
        return f"items are unique by {', '.join(fields)}"
    return "items are unique"


def _length_text(column: dy.Column, length: int) -> str:
    if isinstance(column, dy.List):
        unit = "item"
    elif isinstance(column, dy.String):
        unit = "byte"  # Dataframely compares `str.len_bytes()`
    else:
        return str(length)
    return f"{length} {unit}" if length == 1 else f"{length} {unit}s"
