"""The rules of a schema, in Dataframely's order, each with its severity."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property

import dataframely as dy
import polars as pl

from dagster_dataframely.core.declaration.severity import Severity, read_severities
from dagster_dataframely.errors import InvalidSchemaError
from dagster_dataframely.upstream.dataframely_schema import (
    NamedExpression,
    column_of,
    rule_function,
    validation_rules,
)
from dagster_dataframely.upstream.polars_expression import looks_at_one_row

PRIMARY_KEY = "primary_key"


@dataclass(frozen=True)
class Rule:
    """One rule of a schema."""

    #: Dataframely's name of the rule: `primary_key`, `amount|min`, or a `@dy.rule()` function's name.
    name: str
    #: The column that declares the rule; None for a schema-level rule.
    column: str | None
    #: The name without the column: `min` for `amount|min`.
    kind: str
    severity: Severity
    #: The expression, True or null where a row is valid. None where the user's code failed to build it.
    expr: pl.Expr | None
    #: Why there is no expression.
    problem: str | None = None
    #: The docstring of the rule's function, first paragraph.
    docstring: str | None = None

    @cached_property
    def expression(self) -> str:
        """The expression as Polars prints it, or why there is none."""
        return str(self.expr) if self.expr is not None else f"({self.problem})"

    @property
    def asks_for_uniqueness(self) -> bool:
        """Whether this is the rule of the primary key, or of a column declared `unique`."""
        if self.column is None:
            return self.name == PRIMARY_KEY
        return self.kind == "unique"

    @cached_property
    def looks_at_one_row(self) -> bool:
        """Whether the verdict on a row surely depends on that row alone."""
        return self.expr is not None and looks_at_one_row(self.expr)


def check_schema(schema: object, *, used_by: str) -> type[dy.Schema]:
    """Return what was given as a schema, or say what is wrong with it.

    Args:
        schema: Whatever the user gave.
        used_by: What takes it, for the message, such as `dd.asset`.

    Raises:
        InvalidSchemaError: It is not a subclass of `dy.Schema`.
    """
    if isinstance(schema, type):
        if issubclass(schema, dy.Schema):
            if schema is dy.Schema:
                raise InvalidSchemaError(
                    f"{used_by} takes a subclass of dy.Schema that declares columns, not dy.Schema itself."
                )
            return schema
        if issubclass(schema, dy.Collection):
            raise InvalidSchemaError(
                f"{used_by} takes a dy.Schema, and {schema.__name__} is a dy.Collection. Give the schema "
                "of each member to an asset of its own."
            )
        raise InvalidSchemaError(
            f"{used_by} takes a subclass of dy.Schema, and {schema.__name__} is not one. "
            f"Write `class {schema.__name__}(dy.Schema)`."
        )
    if isinstance(schema, dy.Schema):
        name = type(schema).__name__
        raise InvalidSchemaError(
            f"{used_by} takes the schema class, and this is an instance of {name}. Write {name} without "
            "parentheses."
        )
    if inspect.isroutine(schema):
        name = getattr(schema, "__name__", repr(schema))
        raise InvalidSchemaError(
            f"{used_by} takes a schema first, and this is the function '{name}'. Write "
            f"`@{used_by}(YourSchema)` above it."
        )
    raise InvalidSchemaError(
        f"{used_by} takes a subclass of dy.Schema, and this is {_short(schema)} of type "
        f"{type(schema).__name__}."
    )


def read_rules(schema: type[dy.Schema]) -> tuple[Rule, ...]:
    """Return the rules of a schema: its own first, then the primary key, then column by column.

    Args:
        schema: A Dataframely schema.

    Returns:
        The rules that `Schema.filter` evaluates, in its order.

    Raises:
        InvalidSeverityError: The schema declares a severity that cannot be read.
    """
    # Dataframely collects a schema's columns anew at every call, so they are asked for once.
    columns = schema.columns()
    rules = validation_rules(schema)
    owners = {name: column_of(name, columns) for name in rules}
    severities = read_severities(schema, owners)
    return tuple(
        _read_rule(schema, name, rule, owners[name], severities[name])
        for name, rule in rules.items()
    )


def _read_rule(
    schema: type[dy.Schema],
    name: str,
    rule: NamedExpression,
    column: str | None,
    severity: Severity,
) -> Rule:
    kind = name if column is None else name.removeprefix(f"{column}|")
    expr: pl.Expr | None = None
    problem: str | None = None
    # A `@dy.rule()` function is the user's own code and runs here. Where it fails, the location still
    # loads: the run of this asset fails, naming the rule.
    try:
        built = rule.expr
    except Exception as error:
        problem = f"building its expression raised {type(error).__name__}: {error}"
    else:
        if isinstance(built, pl.Expr):
            expr = built
        else:
            problem = (
                f"it returned {_short(built)} of type {type(built).__name__}, where a rule returns a Polars "
                "expression of Boolean values"
            )
    function = rule_function(schema, name) if column is None else None
    return Rule(
        name=name,
        column=column,
        kind=kind,
        severity=severity,
        expr=expr,
        problem=problem,
        docstring=_first_paragraph(function.__doc__) if function else None,
    )


def _first_paragraph(docstring: str | None) -> str | None:
    if not docstring or not docstring.strip():
        return None
    return " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
