"""What Dataframely knows of a schema's rules but offers under private names only.

Used here: `Schema._validation_rules` (each rule's name and expression, in Dataframely's own order), how it
joins the names of a column and a rule, and `validation_fn` of the factory that `@dy.rule()` leaves on the
class (the rule's docstring and source).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol

import dataframely as dy
import polars as pl


class NamedExpression(Protocol):
    """A Dataframely rule: building its expression may run the user's own code."""

    @property
    def expr(self) -> pl.Expr:
        """The expression, one boolean a row or one for the whole frame."""
        ...


def validation_rules(schema: type[dy.Schema]) -> Mapping[str, NamedExpression]:
    """Return the rules that `Schema.filter(df, cast=False)` evaluates.

    Args:
        schema: A Dataframely schema.

    Returns:
        Rule name to rule: the schema's own rules first, then `primary_key`, then `<column>|<rule>`.
    """
    return schema._validation_rules(with_cast=False)


def rule_function(schema: type[dy.Schema], name: str) -> Callable[[Any], pl.Expr] | None:
    """Return the function that `@dy.rule()` decorated, or None where the rule has none."""
    factory = inspect.getattr_static(schema, name, None)
    function = getattr(factory, "validation_fn", None)
    return function if inspect.isfunction(function) else None


def column_of(rule: str, columns: Container[str]) -> str | None:
    """Return the column that declares a rule, or None for a schema-level rule.

    A column's own name may have a `|` too, so of several columns that could be meant it is the longest.
    """
    end = rule.rfind("|")
    while end >= 0:
        if rule[:end] in columns:
            return rule[:end]
        end = rule.rfind("|", 0, end)
    return None
