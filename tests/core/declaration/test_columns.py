"""The Columns tab of a schema, its constraints in words, and a frame's columns held against it."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import inspect
import json
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

from dagster_dataframely.core.declaration.columns import table_schema
from dagster_dataframely.core.declaration.constraints import constraint_text


class Status(enum.Enum):
    NEW = "new"
    PAID = "paid"


def schema_of(**columns: dy.Column) -> type[dy.Schema]:
    return type("TestSchema", (dy.Schema,), dict(columns))


def shown(column: dy.Column) -> dg.TableColumn:
    """The one column of a schema, as the Columns tab has it."""
    return table_schema(schema_of(x=column)).columns[0]


COLUMNS: list[tuple[dy.Column, str, list[str]]] = [
    (dy.Any(), "any", []),
    (dy.Bool(), "Boolean", []),
    (dy.Binary(), "Binary", []),
    (dy.Integer(), "any integer", []),
    (dy.Int8(min=-1, max=9), "Int8", [">= -1", "<= 9"]),
    (dy.Int16(min_exclusive=0), "Int16", ["> 0"]),
    (dy.Int32(max_exclusive=10), "Int32", ["< 10"]),
    (dy.Int64(is_in=[1, 2, 3]), "Int64", ["one of 1, 2, 3"]),
    (dy.UInt8(), "UInt8", []),
    (dy.UInt16(), "UInt16", []),
    (dy.UInt32(), "UInt32", []),
    (dy.UInt64(max=2**64 - 1), "UInt64", ["<= 18446744073709551615"]),
    (dy.Float(), "any float", ["not infinite", "not NaN"]),
    (dy.Float32(allow_inf=True), "Float32", ["not NaN"]),
    (
        dy.Float64(min=0.0, max_exclusive=0.5),
        "Float64",
        [">= 0.0", "< 0.5", "not infinite", "not NaN"],
    ),
    (dy.Float64(allow_inf=True, allow_nan=True), "Float64", []),
    (dy.Decimal(scale=2), "Decimal(scale=2)", []),
    (
        dy.Decimal(10, 2, min=decimal.Decimal("0.10")),
        "Decimal(precision=10, scale=2)",
        [">= 0.10"],
    ),
    (
        dy.String(min_length=1, max_length=64, regex=r"^ORD-\d{4}$"),
        "String",
        ["length >= 1 byte", "length <= 64 bytes", r"matches ^ORD-\d{4}$"],
    ),
    (
        dy.Date(min=dt.date(2024, 1, 1), resolution="1mo"),
        "Date",
        [">= 2024-01-01", "resolution 1mo"],
    ),
    (dy.Time(max=dt.time(12, 30)), "Time", ["<= 12:30:00"]),
    (
        dy.Datetime(min=dt.datetime(2024, 1, 1), time_unit="ms"),
        "Datetime(time_unit='ms', time_zone=None)",
        [">= 2024-01-01T00:00:00"],
    ),
    (
        dy.Datetime(time_zone="Europe/Berlin"),
        "Datetime(time_unit='us', time_zone='Europe/Berlin')",
        [],
    ),
    (
        dy.Duration(min=dt.timedelta(0), max=dt.timedelta(days=1, hours=12)),
        "Duration(time_unit='us')",
        [">= 0s", "<= 1d 12h"],
    ),
    (dy.Enum(["new", "it's"]), "Enum", ["one of 'new', \"it's\""]),
    (dy.Enum(Status), "Enum", ["one of 'new', 'paid'"]),
    (dy.Categorical(), "Categorical", []),
    (
        dy.Categorical(pl.Categories("regions")),
        'Categorical(Categories("regions"))',
        [],
    ),
    (
        dy.List(dy.Int64(min=0), min_length=1, max_length=3),
        "List(Int64)",
        ["length >= 1 item", "length <= 3 items", "each item: not null", "each item: >= 0"],
    ),
    (
        dy.List(dy.String(primary_key=True)),
        "List(String)",
        ["items are unique", "each item: not null"],
    ),
    (
        dy.List(dy.Struct({"a": dy.Int8(primary_key=True), "b": dy.Any()}, nullable=True)),
        "List(Struct({'a': Int8, 'b': any}))",
        ["items are unique by a", "each item, field a: not null"],
    ),
    (dy.List(dy.Integer(nullable=True)), "List(any integer)", []),
    # Dataframely compares the dtype of an array as a whole.
    (dy.Array(dy.Integer(nullable=True), (2, 3)), "Array(Int64, shape=(2, 3))", []),
    (
        dy.Array(dy.Int8(max=5), 2),
        "Array(Int8, shape=(2,))",
        ["each item: not null", "each item: <= 5"],
    ),
    (
        dy.Struct({"email": dy.String(regex="@"), "age": dy.Float(nullable=True)}),
        "Struct({'email': String, 'age': any float})",
        [
            "field email: not null",
            "field email: matches @",
            "field age: not infinite",
            "field age: not NaN",
        ],
    ),
    (dy.Object(), "Object", []),
]


def kind_of(value: Any) -> str:
    return type(value).__name__ if isinstance(value, dy.Column) else ""


@pytest.mark.parametrize(("column", "dtype", "constraints"), COLUMNS, ids=kind_of)
def test_every_column_type_shows_its_dtype_and_constraints(
    column: dy.Column, dtype: str, constraints: list[str]
) -> None:
    result = shown(column)

    assert result.name == "x"
    assert result.type == dtype
    assert list(result.constraints.other) == constraints


def test_no_column_type_of_dataframely_is_left_out() -> None:
    exported = {
        name
        for name in dy.__all__
        if inspect.isclass(cls := getattr(dy, name))
        and issubclass(cls, dy.Column)
        and cls is not dy.Column
    }

    assert {type(column).__name__ for column, _, _ in COLUMNS} == exported


@pytest.mark.parametrize(
    ("column", "nullable", "unique"),
    [
        (dy.Int64(), False, False),
        (dy.Int64(nullable=True), True, False),
        (dy.Int64(unique=True), False, True),
        (dy.Int64(primary_key=True), False, True),
        (dy.Any(), True, False),
    ],
)
def test_nullability_and_uniqueness_have_their_own_place(
    column: dy.Column, nullable: bool, unique: bool
) -> None:
    constraints = shown(column).constraints

    assert (constraints.nullable, constraints.unique) == (nullable, unique)
    assert list(constraints.other) == []


def test_a_column_of_a_composite_primary_key_is_not_unique_by_itself() -> None:
    schema = schema_of(order_id=dy.Int64(primary_key=True), line=dy.Int64(primary_key=True))

    result = table_schema(schema)

    assert [column.constraints.unique for column in result.columns] == [False, False]
    assert result.constraints.other == ["primary key (order_id, line)"]


def test_a_schema_without_key_and_rules_has_no_table_constraints() -> None:
    assert table_schema(schema_of(x=dy.Int64())).constraints.other == []


def test_schema_level_rules_are_table_constraints_by_their_docstring_or_name() -> None:
    class Orders(dy.Schema):
        order_id = dy.Int64(primary_key=True)
        paid = dy.Int64()
        due = dy.Int64()

        @dy.rule()
        def paid_at_most_due(cls) -> pl.Expr:
            """Nobody pays more than is due.

            A longer explanation.
            """
            return pl.col("paid") <= pl.col("due")

        @dy.rule()
        def due_is_even(cls) -> pl.Expr:
            return pl.col("due") % 2 == 0

    assert table_schema(Orders).constraints.other == [
        "primary key (order_id)",
        "Nobody pays more than is due.",
        "due_is_even",
    ]


def test_a_rule_that_cannot_be_built_does_not_hide_the_columns() -> None:
    class Orders(dy.Schema):
        order_id = dy.Int64()

        @dy.rule()
        def broken(cls) -> pl.Expr:
            raise RuntimeError("no such file")

    result = table_schema(Orders)

    assert [column.name for column in result.columns] == ["order_id"]
    assert result.constraints.other == ["broken"]


def test_a_column_is_shown_under_its_alias_with_its_description() -> None:
    column = shown(dy.Int64(alias="Order ID", description="As printed on the invoice."))

    assert (column.name, column.description) == ("Order ID", "As printed on the invoice.")


def test_metadata_becomes_tags_of_text_without_the_package_s_own_key() -> None:
    metadata: dict[Any, Any] = {
        "owner": "sales",
        "pii": True,
        "level": 3,
        "since": dt.date(2024, 1, 1),
        "sources": ["a", {"b": None}],
        "marked": None,
        7: "seven",
        "dagster_dataframely": {"severity": "warn"},
    }

    assert shown(dy.Int64(metadata=metadata)).tags == {
        "owner": "sales",
        "pii": "true",
        "level": "3",
        "since": "2024-01-01",
        "sources": '["a", {"b": null}]',
        "marked": "",
        "7": "seven",
    }


def test_long_constraints_are_cut() -> None:
    categories = [f"category {number}" for number in range(1000)]

    (constraint,) = shown(dy.Enum(categories)).constraints.other

    assert constraint.startswith("one of 'category 0', 'category 1', ")
    assert constraint.endswith(", … (1000 in all)")
    assert len(constraint) < 130
    assert len(constraint_text(dy.String(regex="a" * 5000), "regex")) < 220


def is_even(values: pl.Expr) -> pl.Expr:
    return values % 2 == 0


@pytest.mark.parametrize(
    ("check", "constraints"),
    [
        (is_even, ["check: is_even"]),
        ({"even": is_even, "7": is_even}, ["check: even", "check: 7"]),
        ([is_even, is_even], ["check: is_even__0", "check: is_even__1"]),
        (lambda values: values.is_finite(), ['check: col("x").is_finite()']),
        (
            [lambda values: values.is_null(), lambda values: values.is_not_null()],
            ['check: col("x").is_null()', 'check: col("x").is_not_null()'],
        ),
    ],
)
def test_checks_of_the_user_are_shown_by_name_and_lambdas_by_expression(
    check: Any, constraints: list[str]
) -> None:
    assert list(shown(dy.Int64(check=check)).constraints.other) == constraints


@pytest.mark.parametrize(
    ("column", "kind", "text"),
    [
        (dy.Float64(min=0.0), "min", ">= 0.0"),
        (dy.String(), "nullability", "not null"),
        (dy.String(unique=True), "unique", "unique"),
        (dy.Float64(), "inf", "not infinite"),
        (dy.Float64(), "nan", "not NaN"),
        (dy.List(dy.String()), "inner_nullability", "each item: not null"),
        (
            dy.List(dy.List(dy.Int64(min=1))),
            "inner_inner_min",
            "each item, each item: >= 1",
        ),
        (
            dy.Array(dy.Struct({"at": dy.Date(check={"is_weekday": lambda day: day > day})}), 2),
            "inner_inner_at_check__is_weekday",
            "each item, field at: check: is_weekday",
        ),
        # Only the fields' own rules tell where the field's name ends.
        (
            dy.Struct({"a": dy.Int8(), "a_b": dy.Int8(min=1)}),
            "inner_a_b_min",
            "field a_b: >= 1",
        ),
        (
            dy.Struct({"a": dy.Struct({"b": dy.Int8(min=2)})}),
            "inner_a_inner_b_min",
            "field a, field b: >= 2",
        ),
        (dy.Int64(check={"inner_min": lambda x: x > 0}), "check__inner_min", "check: inner_min"),
        (dy.Int64(), "min", "min"),
        (dy.Int64(), "a_kind_of_a_later_version", "a_kind_of_a_later_version"),
        (dy.Int64(), "check__gone", "check: gone"),
        (dy.Int64(), "check", "check"),
        (dy.Struct({"a": dy.Int8()}), "inner_b_min", "inner_b_min"),
    ],
)
def test_a_rule_of_a_column_is_put_in_words(column: dy.Column, kind: str, text: str) -> None:
    assert constraint_text(column, kind) == text


class Money(dy.Column):
    """A column type of a user's own, with a rule that Dataframely does not know."""

    @property
    def dtype(self) -> pl.DataType:
        return pl.Int64()

    def validation_rules(self, expr: pl.Expr) -> dict[str, pl.Expr]:
        return {**super().validation_rules(expr), "whole_cents": expr % 100 == 0}

    def sqlalchemy_dtype(self, dialect: Any) -> Any:
        raise AssertionError

    @property
    def _python_type(self) -> Any:
        raise AssertionError

    def _sample_unchecked(self, generator: Any, n: int) -> pl.Series:
        raise AssertionError


def test_a_column_type_of_the_user_s_own_shows_its_rules_by_their_kind() -> None:
    column = shown(Money())

    assert (column.type, list(column.constraints.other)) == ("Int64", ["whole_cents"])


def test_the_table_schema_of_a_wide_schema_is_strict_json() -> None:
    schema = schema_of(**{f"c{i}": column for i, (column, _, _) in enumerate(COLUMNS)})

    text = dg.serialize_value(dg.MetadataValue.table_schema(table_schema(schema)))

    assert len(json.loads(text)["schema"]["columns"]) == len(COLUMNS)
