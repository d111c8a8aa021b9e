"""What a frame lacks of its schema's columns, in the words that the run's error tells it."""

from __future__ import annotations

from typing import Any

import dataframely as dy
import polars as pl
import pytest

from dagster_dataframely.core.declaration.dtypes import column_dtype_text
from dagster_dataframely.core.verdict.column_errors import ColumnError, column_errors


def schema_of(**columns: dy.Column) -> type[dy.Schema]:
    return type("TestSchema", (dy.Schema,), dict(columns))


def kind_of(value: Any) -> str:
    return type(value).__name__


def errors(frame_schema: dict[str, Any], **columns: dy.Column) -> tuple[ColumnError, ...]:
    return column_errors(schema_of(**columns), pl.Schema(frame_schema))


def test_a_frame_with_the_columns_in_another_order_and_more_of_them_has_no_errors() -> None:
    assert (
        errors({"z": pl.Int8(), "b": pl.String(), "a": pl.Int64()}, a=dy.Int64(), b=dy.String())
        == ()
    )


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (dy.Any(), pl.Object()),
        (dy.Integer(), pl.UInt8()),
        (dy.Float(), pl.Float32()),
        (dy.Decimal(scale=2), pl.Decimal(10, 2)),
        (dy.List(dy.Integer()), pl.List(pl.Int8())),
        (
            dy.Struct({"a": dy.Int8(), "b": dy.Int8()}),
            pl.Struct({"b": pl.Int8(), "a": pl.Int8()}),
        ),
    ],
    ids=kind_of,
)
def test_a_dtype_that_dataframely_accepts_is_no_error(
    column: dy.Column, dtype: pl.DataType
) -> None:
    assert errors({"x": dtype}, x=column) == ()


def test_all_errors_are_found_at_once_in_the_order_of_the_schema() -> None:
    found = errors(
        {"c": pl.String(), "a": pl.Float64()}, a=dy.Int64(), b=dy.Date(), c=dy.String(), d=dy.Any()
    )

    assert found == (
        ColumnError("a", "Int64", "Float64"),
        ColumnError("b", "Date", None),
        ColumnError("d", "any", None),
    )


@pytest.mark.parametrize(
    ("column", "expected", "dtype", "actual"),
    [
        (dy.Integer(), "any integer", pl.Float64(), "Float64"),
        (dy.Float(), "any float", pl.Int64(), "Int64"),
        (
            dy.Decimal(scale=2),
            "Decimal(scale=2)",
            pl.Decimal(10, 3),
            "Decimal(precision=10, scale=3)",
        ),
        (
            dy.Datetime(time_zone="UTC"),
            "Datetime(time_unit='us', time_zone='UTC')",
            pl.Datetime("ns"),
            "Datetime(time_unit='ns', time_zone=None)",
        ),
        (dy.Enum(["a"]), "Enum(categories=['a'])", pl.String(), "String"),
        (dy.Array(dy.Int8(), 2), "Array(Int8, shape=(2,))", pl.List(pl.Int8()), "List(Int8)"),
        (dy.Object(), "Object", pl.Null(), "Null"),
    ],
    ids=kind_of,
)
def test_a_mismatch_names_both_dtypes(
    column: dy.Column, expected: str, dtype: pl.DataType, actual: str
) -> None:
    assert errors({"x": dtype}, x=column) == (ColumnError("x", expected, actual),)


@pytest.mark.parametrize(
    ("column", "dtype", "hint"),
    [
        (
            dy.Struct({"a": dy.Int8(), "b": dy.Int8()}),
            pl.Struct({"a": pl.Int8()}),
            "'x.b' is missing.",
        ),
        (
            dy.Struct({"a": dy.Int8()}),
            pl.Struct({"a": pl.Int8(), "c": pl.Int8()}),
            "'x.c' is not in the schema.",
        ),
        (
            dy.List(dy.Struct({"a": dy.List(dy.Integer())})),
            pl.List(pl.Struct({"a": pl.List(pl.String())})),
            "'x[].a[]' is String, expected any integer.",
        ),
        (
            dy.Enum(["a", "b", "c"]),
            pl.Enum(["a", "d"]),
            "'x' lacks the categories 'b', 'c'.",
        ),
        (
            dy.Enum(["a"]),
            pl.Enum(["a", "b"]),
            "'x' has the categories 'b', which the schema lacks.",
        ),
        (
            dy.List(dy.Enum(["a", "b"])),
            pl.List(pl.Enum(["b", "a"])),
            "'x[]' has the same categories in another order.",
        ),
    ],
    ids=kind_of,
)
def test_where_dtypes_of_one_kind_differ_the_hint_says_where(
    column: dy.Column, dtype: pl.DataType, hint: str
) -> None:
    assert [error.hint for error in errors({"x": dtype}, x=column)] == [hint]


@pytest.mark.parametrize(
    ("frame_column", "hint"),
    [
        ("amount2", "The frame has 'amount2'."),
        ("AMOUNT", "The frame has 'AMOUNT'."),
        ("price", None),
        # A column that the schema has too is not the missing one misspelt.
        ("amounts", None),
    ],
)
def test_a_missing_column_names_the_nearest_extra_one(frame_column: str, hint: str | None) -> None:
    found = errors({frame_column: pl.Int64()}, amount=dy.Int64(), amounts=dy.Int64())

    assert found[0] == ColumnError("amount", "Int64", None, hint)


def test_categories_of_a_redacted_column_are_not_named() -> None:
    schema = schema_of(x=dy.List(dy.Enum(["a"])))
    frame_schema = pl.Schema({"x": pl.List(pl.Enum(["secret"]))})

    (error,) = column_errors(schema, frame_schema, redact=["x"])

    assert error.actual == "List(Enum)"
    assert "secret" not in str(error)


def test_categories_of_a_categorical_belong_to_the_schema_that_is_asked() -> None:
    class First(dy.Schema):
        region = dy.Categorical(pl.UInt8)

    class Second(First):
        pass

    own_dtype = First.columns()["region"].dtype
    Second.columns()

    assert column_errors(First, pl.Schema({"region": own_dtype})) == ()
    assert column_dtype_text(Second.columns()["region"]).startswith("Categorical(Categories(name=")
