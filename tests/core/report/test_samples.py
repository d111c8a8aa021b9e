"""Sample rows in the event log: every dtype as strict JSON, bounded, and nothing of a redacted column."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import math
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from polars.testing.parametric import dataframes

from dagster_dataframely.core.json_values import duration_text, json_value, json_values
from dagster_dataframely.core.report.samples import sample_table


def records(table: dg.TableMetadataValue) -> list[dict[str, Any]]:
    """The rows as the event log stores them, read by a parser that refuses what JSON does not have."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    stored = json.loads(dg.serialize_value(table), parse_constant=refuse)
    return [record["data"] for record in stored["records"]]


class Status(enum.Enum):
    PAID = "paid"


class Unreadable:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


MANY_ITEMS = list(range(10**6))


def dtype_name(value: Any) -> str:
    return str(value) if isinstance(value, pl.DataType) else ""


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (pl.Null(), [None], [None]),
        (pl.Boolean(), [True, False, None], [True, False, None]),
        (pl.Int8(), [-128, None], [-128, None]),
        (pl.UInt8(), [255], [255]),
        (pl.Int16(), [1], [1]),
        (pl.UInt16(), [1], [1]),
        (pl.Int32(), [1], [1]),
        (pl.UInt32(), [1], [1]),
        # JavaScript rounds what lies beyond.
        (
            pl.Int64(),
            [2**53, 2**53 + 1, -(2**53) - 1],
            [2**53, "9007199254740993", "-9007199254740993"],
        ),
        (pl.UInt64(), [2**64 - 1], ["18446744073709551615"]),
        (pl.Int128(), [-(2**100), 1], ["-1267650600228229401496703205376", 1]),
        (pl.Float32(), [0.5, math.nan], [0.5, "NaN"]),
        (
            pl.Float64(),
            [0.1, math.nan, math.inf, -math.inf, None],
            [0.1, "NaN", "inf", "-inf", None],
        ),
        (
            pl.Decimal(38, 2),
            [decimal.Decimal("0.10"), decimal.Decimal("123456789012345678901234.50"), None],
            ["0.10", "123456789012345678901234.50", None],
        ),
        (pl.String(), ["", "é", None], ["", "é", None]),
        (pl.Binary(), [b"\x00\xff", b"", None], ["00ff", "", None]),
        (pl.Enum(["new", "paid"]), ["paid", None], ["paid", None]),
        (pl.Categorical(), ["north", None], ["north", None]),
        (pl.Date(), [dt.date(2024, 2, 29), None], ["2024-02-29", None]),
        (
            pl.Time(),
            [dt.time(9, 5), dt.time(9, 5, 0, 120_000), None],
            ["09:05:00", "09:05:00.12", None],
        ),
        (
            pl.Datetime("us"),
            [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1), None],
            ["2024-01-01T00:00:00", "2024-01-01T00:00:00.000001", None],
        ),
        (
            pl.Datetime("ms", "Europe/Berlin"),
            [dt.datetime(2024, 7, 1, tzinfo=ZoneInfo("Europe/Berlin"))],
            ["2024-07-01T00:00:00+02:00"],
        ),
        (
            pl.Duration("ms"),
            [dt.timedelta(days=1, seconds=3.5), -dt.timedelta(hours=2), dt.timedelta(0), None],
            ["1d 3.5s", "-2h", "0s", None],
        ),
        (pl.List(pl.Int64()), [[1, None], [], None], ["[1, null]", "[]", None]),
        (pl.List(pl.Float64()), [[math.nan, 0.5]], ['["NaN", 0.5]']),
        (pl.List(pl.List(pl.String())), [[["é"], None]], ['[["é"], null]']),
        (pl.Array(pl.Int8(), (2, 2)), [[[1, 2], [3, 4]], None], ["[[1, 2], [3, 4]]", None]),
        (
            pl.Struct({"at": pl.Date(), "paid": pl.Decimal(5, 2)}),
            [{"at": dt.date(2024, 1, 1), "paid": decimal.Decimal("1.50")}, None],
            ['{"at": "2024-01-01", "paid": "1.50"}', None],
        ),
        (
            pl.List(pl.Struct({"tags": pl.List(pl.Enum(["a"]))})),
            [[{"tags": ["a"]}, None]],
            ['[{"tags": ["a"]}, null]'],
        ),
        (pl.Struct([]), [{}], ["{}"]),
        (
            pl.Object(),
            [{"a": (1, math.inf)}, dt.timedelta(1), None],
            ['{"a": [1, "inf"]}', "1d", None],
        ),
    ],
    ids=dtype_name,
)
def test_values_of_every_dtype_are_strict_json(
    dtype: pl.DataType, values: list[Any], expected: list[Any]
) -> None:
    frame = pl.DataFrame({"x": pl.Series("x", values, dtype=dtype)})

    assert records(sample_table(frame)) == [{"x": value} for value in expected]


@pytest.mark.parametrize(
    ("physical", "dtype", "expected"),
    [
        (10**7, pl.Date(), "+29349-01-26"),
        (-(2**62), pl.Datetime("us"), "-144169-06-28T09:59:32.612096"),
        (1, pl.Datetime("ns", "UTC"), "1970-01-01T00:00:00.000000001+00:00"),
        (1, pl.Time(), "00:00:00.000000001"),
        (2**62, pl.Duration("ms"), "53375995583d 15h 36m 27.904s"),
        (-1, pl.Duration("ns"), "-0.000000001s"),
    ],
    ids=dtype_name,
)
@pytest.mark.parametrize("nested", [False, True])
def test_times_that_python_cannot_hold_are_shown_exactly(
    physical: int, dtype: pl.DataType, expected: str, nested: bool
) -> None:
    values = pl.Series([physical]).cast(pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)

    if nested:
        assert json_values(values.implode()) == [f'["{expected}"]']
    else:
        assert json_values(values) == [expected]


@pytest.mark.parametrize(
    ("values", "start"),
    [
        (pl.Series(["é" * 10**6]), "éééé"),
        (pl.Series([b"\xab" * 10**6]), "abab"),
        (pl.Series([MANY_ITEMS]), "[0, 1, 2, "),
        (pl.Series([[MANY_ITEMS]]), "[[0, 1, 2, "),
        (pl.Series([{"a": MANY_ITEMS, "b": 1}]), '{"a": [0, 1, '),
        (pl.Series([["é" * 10**6]]), '["éééé'),
        (pl.Series([MANY_ITEMS], dtype=pl.Object), "[0, 1, 2, "),
        (pl.Series([10**1000], dtype=pl.Object), "1000"),
    ],
    ids=lambda value: str(value.dtype) if isinstance(value, pl.Series) else "",
)
def test_long_values_are_cut(values: pl.Series, start: str) -> None:
    (value,) = json_values(values)

    assert isinstance(value, str)
    assert value.startswith(start)
    assert value.endswith("…")
    assert len(value) == 200


def test_an_object_without_a_readable_text_is_named_by_its_class() -> None:
    frame = pl.DataFrame({"x": pl.Series([Unreadable()], dtype=pl.Object)})

    assert records(sample_table(frame)) == [{"x": "<Unreadable without a readable text>"}]


def test_a_value_that_contains_itself_comes_to_an_end() -> None:
    endless: list[Any] = []
    endless.append(endless)

    assert json_value(endless) == "[" * 199 + "…"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (np.int64(7), 7),
        (np.float64(0.5), 0.5),
        (np.float64("nan"), "NaN"),
        (decimal.Decimal("1E+3"), "1000"),
        (decimal.Decimal("NaN"), "NaN"),
        (Status.PAID, "paid"),
        (bytearray(b"\x01"), "01"),
        (dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC), "2024-01-01T12:00:00+00:00"),
        (dt.time(1, 2, 3, 400_000), "01:02:03.4"),
        ({1: {"b": {2}}}, '{"1": {"b": [2]}}'),
        (pl.Series([1, 2]), "[1, 2]"),
        (1 + 2j, "(1+2j)"),
    ],
    ids=repr,
)
def test_python_values_become_json_scalars(value: Any, expected: Any) -> None:
    result = json_value(value)

    assert result == expected
    assert type(result) in (str, int, float, bool, type(None))


@pytest.mark.parametrize(
    ("count", "unit", "text"),
    [
        (3, "d", "3d"),
        (-3, "d", "-3d"),
        (90_061, "ms", "1m 30.061s"),
        (3_600_000_000, "us", "1h"),
        (1, "ns", "0.000000001s"),
        (0, "ns", "0s"),
        (100_000_000_000, "ns", "1m 40s"),
    ],
)
def test_durations_read_as_days_hours_minutes_and_seconds(count: int, unit: str, text: str) -> None:
    assert duration_text(count, unit) == text


def test_named_columns_come_first_and_unknown_names_are_skipped() -> None:
    frame = pl.DataFrame({"b": [1], "a": [2], "id": [3]})

    table = sample_table(frame, first=["id", "gone", "a", "id"])

    assert [column.name for column in table.schema.columns] == ["id", "a", "b"]
    assert [list(record.data) for record in table.records] == [["id", "a", "b"]]


def test_a_redacted_column_shows_neither_values_nor_nulls_nor_categories() -> None:
    frame = pl.DataFrame(
        {
            "id": [1, 2],
            "status": pl.Series(["secret", None], dtype=pl.Enum(["secret"])),
        }
    )

    table = sample_table(frame, redact={"status", "gone"})

    assert records(table) == [
        {"id": 1, "status": "[redacted]"},
        {"id": 2, "status": "[redacted]"},
    ]
    assert "secret" not in dg.serialize_value(table)


def test_values_of_a_redacted_object_column_are_not_even_read() -> None:
    class Watched:
        def __repr__(self) -> str:
            raise SystemExit

    frame = pl.DataFrame({"x": pl.Series([Watched()], dtype=pl.Object)})

    assert records(sample_table(frame, redact=["x"])) == [{"x": "[redacted]"}]


def test_the_table_names_the_dtype_of_each_column() -> None:
    frame = pl.DataFrame(
        {
            "x": pl.Series([], dtype=pl.List(pl.Decimal(5, 2))),
            "y": pl.Series([], dtype=pl.Enum(["a"])),
        }
    )

    table = sample_table(frame)

    assert records(table) == []
    assert [(column.name, column.type) for column in table.schema.columns] == [
        ("x", "List(Decimal(precision=5, scale=2))"),
        ("y", "Enum(categories=['a'])"),
    ]


@pytest.mark.parametrize("name", ["", "*", "^a.*$", "a", "schema", 'a "b"\n'])
def test_any_column_name_is_shown_as_it_is(name: str) -> None:
    frame = pl.DataFrame({"ab": [0], name: [1]})

    assert records(sample_table(frame, first=[name])) == [{name: 1, "ab": 0}]


@given(dataframes(max_cols=6, max_size=4, allow_null=True, allow_chunks=True))
def test_any_frame_that_polars_makes_is_strict_json(frame: pl.DataFrame) -> None:
    table = sample_table(frame)

    rows = records(table)

    assert len(rows) == frame.height
    assert all(list(row) == frame.columns for row in rows)
    assert all(
        isinstance(value, (str, int, float, bool, type(None)))
        and (not isinstance(value, str) or len(value) <= 200)
        and (value is not None or frame[name][number] is None or frame.schema[name] == pl.Null)
        for number, row in enumerate(rows)
        for name, value in row.items()
    )
