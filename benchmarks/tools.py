"""The rules of a Dataframely schema in Pandera, Pointblank and Patito, each in the way its manual shows.

A validator takes a frame and returns, for each column, how many rows fail one of its rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import dataframely as dy
import polars as pl

from benchmarks.tables import Table
from dagster_dataframely.core.declaration.rules import read_rules

Validator: TypeAlias = Callable[[pl.DataFrame], Mapping[str, int]]


class Column(NamedTuple):
    """What a schema asks of a column, in words that the tools share."""

    dtype: pl.DataType
    nullable: bool
    unique: bool
    minimum: Any
    maximum: Any
    pattern: str | None
    max_length: int | None
    finite: bool

    def rules(self) -> int:
        """Return how many rules Dataframely has for it."""
        given = (self.minimum, self.maximum, self.pattern, self.max_length)
        asked = sum(value is not None for value in given)
        return asked + (not self.nullable) + self.unique + 2 * self.finite


def columns_of(table: Table) -> dict[str, Column]:
    """Read a schema.

    Raises:
        AssertionError: The schema has rules that are not read here.
    """
    columns = {
        name: Column(
            dtype=column.dtype,
            nullable=column.nullable,
            unique=column.primary_key,
            minimum=getattr(column, "min", None),
            maximum=getattr(column, "max", None),
            pattern=getattr(column, "regex", None),
            max_length=getattr(column, "max_length", None),
            finite=isinstance(column, dy.Float64),
        )
        for name, column in table.schema.columns().items()
    }
    read = sum(column.rules() for column in columns.values()) + len(table.row_rules)
    assert read == len(read_rules(table.schema)), (
        f"Some rules of {table.schema.__name__} are not read"
    )
    return columns


def pandera_validator(table: Table) -> Validator:
    """Build a `DataFrameSchema`, validated with `lazy=True`: every failure is collected before it raises."""
    import pandera.polars as pa

    def checks(column: Column) -> list[Any]:
        found = []
        if column.minimum is not None:
            found.append(pa.Check.ge(column.minimum))
        if column.maximum is not None:
            found.append(pa.Check.le(column.maximum))
        if column.pattern is not None:
            found.append(pa.Check.str_matches(column.pattern))
        if column.max_length is not None:
            found.append(pa.Check.str_length(max_value=column.max_length))
        if column.finite:
            # What is not nullable may not be NaN in Pandera either.
            found.append(
                pa.Check(lambda data: data.lazyframe.select(~pl.col(data.key).is_infinite()))
            )
        return found

    def row_check(rule: pl.Expr) -> Any:
        return pa.Check(lambda data: data.lazyframe.select(rule))

    schema = pa.DataFrameSchema(
        {
            name: pa.Column(
                column.dtype, checks(column), nullable=column.nullable, unique=column.unique
            )
            for name, column in columns_of(table).items()
        },
        checks=[row_check(rule) for rule in table.row_rules.values()],
    )

    def validate(frame: pl.DataFrame) -> Mapping[str, int]:
        try:
            schema.validate(frame, lazy=True)
        except pa.errors.SchemaErrors as errors:
            return dict(errors.failure_cases.group_by("column").len().iter_rows())
        return {}

    return validate


def pointblank_validator(table: Table) -> Validator:
    """Build one validation step a rule."""
    import pointblank as pb

    columns = columns_of(table)

    def validate(frame: pl.DataFrame) -> Mapping[str, int]:
        plan = pb.Validate(frame)
        for name, column in columns.items():
            if not column.nullable:
                plan = plan.col_vals_not_null(name)
            if column.unique:
                plan = plan.rows_distinct([name])
            if column.minimum is not None:
                plan = plan.col_vals_ge(name, column.minimum)
            if column.maximum is not None:
                plan = plan.col_vals_le(name, column.maximum)
            if column.pattern is not None:
                plan = plan.col_vals_regex(name, column.pattern)
            if column.max_length is not None:
                plan = plan.col_vals_expr(pl.col(name).str.len_bytes() <= column.max_length)
            if column.finite:
                plan = plan.col_vals_expr(~pl.col(name).is_nan())
                plan = plan.col_vals_expr(~pl.col(name).is_infinite())
        for rule in table.row_rules.values():
            plan = plan.col_vals_expr(rule)
        interrogated = plan.interrogate()
        failed: Counter[str] = Counter()
        for step in interrogated.validation_info:
            expression = step.values if step.column is None else None
            column_name = step.column if expression is None else expression.meta.root_names()[0]
            failed[column_name[0] if isinstance(column_name, list) else column_name] += (
                step.n_failed
            )
        return failed

    return validate


def patito_validator(table: Table) -> Validator:
    """Build a model with a field a column."""
    import patito as pt

    def constraints(name: str, column: Column) -> list[pl.Expr]:
        found = [rule for rule in table.row_rules.values() if rule.meta.root_names()[0] == name]
        if column.finite:
            found += [~pl.col(name).is_nan(), ~pl.col(name).is_infinite()]
        if column.minimum is not None and not isinstance(column.minimum, (int, float)):
            # Pydantic's JSON schema, which Patito reads, has bounds of numbers only.
            found.append(pl.col(name) >= column.minimum)
        return found

    def a_field(name: str, column: Column) -> Any:
        bounds = {"ge": column.minimum, "le": column.maximum}
        asked: dict[str, Any] = {
            bound: value for bound, value in bounds.items() if isinstance(value, (int, float))
        }
        asked |= {"pattern": column.pattern} if column.pattern is not None else {}
        asked |= {"max_length": column.max_length} if column.max_length is not None else {}
        asked |= {"constraints": constraints(name, column)} if constraints(name, column) else {}
        return pt.Field(dtype=column.dtype, unique=column.unique, **asked)

    columns = columns_of(table)
    namespace = {name: a_field(name, column) for name, column in columns.items()}
    annotations = {name: _python_type(column) for name, column in columns.items()}
    model: Any = type("Model", (pt.Model,), {"__annotations__": annotations, **namespace})

    def validate(frame: pl.DataFrame) -> Mapping[str, int]:
        try:
            model.validate(frame)
        except pt.exceptions.DataFrameValidationError as error:
            failed: Counter[str] = Counter()
            for found in error.errors():
                counted = re.match(r"\d+", found["msg"])
                failed[found["loc"][0]] += int(counted[0]) if counted else 0
            return failed
        return {}

    return validate


def _python_type(column: Column) -> Any:
    python_type: Any = column.dtype.to_python()
    return python_type | None if column.nullable else python_type


TOOLS: Mapping[str, Callable[[Table], Validator]] = {
    "Pandera": pandera_validator,
    "Pointblank": pointblank_validator,
    "Patito": patito_validator,
}
