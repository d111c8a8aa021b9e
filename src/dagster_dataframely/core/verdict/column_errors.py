"""The columns that a frame lacks, or has with another dtype than its schema asks for."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import dataframely as dy
import polars as pl
from polars.datatypes import DataTypeClass

from dagster_dataframely.core.declaration.dtypes import column_dtype_text, dtype_text
from dagster_dataframely.core.text import listed


@dataclass(frozen=True, slots=True)
class ColumnError:
    """A column of a schema that a frame lacks or has with another dtype."""

    column: str
    #: The dtype that the schema asks for.
    expected: str
    #: The dtype that the frame has; None where it lacks the column.
    actual: str | None
    #: A sentence that helps to find the mistake, such as the nearest name in the frame.
    hint: str | None = None


def column_errors(
    schema: type[dy.Schema], frame_schema: pl.Schema, *, redact: Collection[str] = ()
) -> tuple[ColumnError, ...]:
    """Return every column of a schema that a frame lacks or has with another dtype.

    Args:
        schema: The schema that the frame should have.
        frame_schema: The frame's own columns; more columns and another order are no error.
        redact: Columns whose categories, values of the data in an enum's dtype, are not named.

    Returns:
        The errors in the order of the schema; none where the frame has the columns.

    Examples:
        >>> class Orders(dy.Schema):
        ...     amount = dy.Float64()
        >>> column_errors(Orders, pl.Schema({"Amount": pl.String()}))[0].hint
        "The frame has 'Amount'."
    """
    columns = schema.columns()
    extra = [name for name in frame_schema if name not in columns]
    errors: list[ColumnError] = []
    for name, column in columns.items():
        expected = column_dtype_text(column)
        dtype = frame_schema.get(name)
        show_categories = name not in redact
        if dtype is None:
            errors.append(ColumnError(name, expected, None, _nearest_name(name, extra)))
        elif not column.validate_dtype(dtype):
            actual = dtype_text(dtype, show_categories=show_categories)
            hint = _difference(column, dtype, name, show_categories=show_categories)
            errors.append(ColumnError(name, expected, actual, hint))
    return tuple(errors)


def _nearest_name(name: str, extra: Sequence[str]) -> str | None:
    by_folded_name = {other.casefold(): other for other in extra}
    nearest = difflib.get_close_matches(name.casefold(), by_folded_name, n=1)
    return f"The frame has '{by_folded_name[nearest[0]]}'." if nearest else None


def _difference(
    column: dy.Column, dtype: pl.DataType | DataTypeClass, path: str, *, show_categories: bool
) -> str | None:
    """Say where two dtypes of one kind differ, which their texts may be too long or too short to show."""
    if isinstance(column, dy.List) and isinstance(dtype, pl.List):
        return _inner_difference(
            column.inner, dtype.inner, f"{path}[]", show_categories=show_categories
        )
    if isinstance(column, dy.Struct) and isinstance(dtype, pl.Struct):
        fields = {field.name: field.dtype for field in dtype.fields}
        for name, inner in column.inner.items():
            if name not in fields:
                return f"'{path}.{name}' is missing."
            if not inner.validate_dtype(fields[name]):
                return _inner_difference(
                    inner, fields[name], f"{path}.{name}", show_categories=show_categories
                )
        more = [name for name in fields if name not in column.inner]
        return f"'{path}.{more[0]}' is not in the schema." if more else None
    if isinstance(column, dy.Enum) and isinstance(dtype, pl.Enum) and show_categories:
        return _category_difference(column.categories, dtype.categories.to_list(), path)
    return None


def _inner_difference(
    column: dy.Column, dtype: pl.DataType | DataTypeClass, path: str, *, show_categories: bool
) -> str:
    deeper = _difference(column, dtype, path, show_categories=show_categories)
    if deeper:
        return deeper
    actual = dtype_text(dtype, show_categories=show_categories)
    return f"'{path}' is {actual}, expected {column_dtype_text(column)}."


def _category_difference(expected: Sequence[str], actual: Sequence[str], path: str) -> str:
    known, found = set(expected), set(actual)
    if lacking := [category for category in expected if category not in found]:
        return f"'{path}' lacks the categories {listed(lacking)}."
    if more := [category for category in actual if category not in known]:
        return f"'{path}' has the categories {listed(more)}, which the schema lacks."
    return f"'{path}' has the same categories in another order."
