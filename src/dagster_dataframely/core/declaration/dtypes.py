"""The names of dtypes, as a reader of Polars or Dataframely knows them."""

from __future__ import annotations

import dataframely as dy
import polars as pl
from polars.datatypes import DataTypeClass

from dagster_dataframely.core.text import listed


def dtype_text(dtype: pl.DataType | DataTypeClass, *, show_categories: bool = True) -> str:
    """Return a dtype as Polars writes it, with at most a line of an enum's categories.

    Args:
        dtype: A Polars dtype.
        show_categories: Whether the categories of enums are named. They are values of the data where
            the dtype is a frame's own.

    Examples:
        >>> dtype_text(pl.List(pl.Decimal(10, 2)))
        'List(Decimal(precision=10, scale=2))'
        >>> dtype_text(pl.Enum(["new", "paid"]))
        "Enum(categories=['new', 'paid'])"
        >>> dtype_text(pl.Enum(["new", "paid"]), show_categories=False)
        'Enum'
    """
    if isinstance(dtype, pl.Enum):
        return f"Enum(categories=[{listed(dtype.categories)}])" if show_categories else "Enum"
    if isinstance(dtype, pl.List):
        return f"List({dtype_text(dtype.inner, show_categories=show_categories)})"
    if isinstance(dtype, pl.Array):
        item: pl.DataType | DataTypeClass = dtype
        while isinstance(item, pl.Array):
            item = item.inner
        inner = dtype_text(item, show_categories=show_categories)
        return f"Array({inner}, shape={dtype.shape})"
    if isinstance(dtype, pl.Struct):
        fields = (
            f"{field.name!r}: {dtype_text(field.dtype, show_categories=show_categories)}"
            for field in dtype.fields
        )
        return f"Struct({{{', '.join(fields)}}})"
    return str(dtype)


def column_dtype_text(column: dy.Column) -> str:
    """Return the dtype that a column asks for.

    It is a Polars dtype where the column accepts exactly one. `Column.dtype` alone would name only the
    default of those that accept several.

    Examples:
        >>> column_dtype_text(dy.Int16())
        'Int16'
        >>> column_dtype_text(dy.List(dy.Integer()))
        'List(any integer)'
        >>> column_dtype_text(dy.Decimal(scale=2))
        'Decimal(scale=2)'
    """
    if isinstance(column, dy.Any):
        return "any"
    if isinstance(column, dy.Integer):
        return "any integer"
    if isinstance(column, dy.Float):
        return "any float"
    if isinstance(column, dy.Decimal) and column.precision is None:
        return f"Decimal(scale={column.scale})"
    if isinstance(column, dy.List):
        return f"List({column_dtype_text(column.inner)})"
    if isinstance(column, dy.Struct):
        fields = (f"{name!r}: {column_dtype_text(inner)}" for name, inner in column.inner.items())
        return f"Struct({{{', '.join(fields)}}})"
    # An array accepts the default dtype of its items only, so its `dtype` is what it asks for.
    return dtype_text(column.dtype)
