"""Statistics of a frame: a table a group of dtypes, a row a column, and no value where none may be."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import polars as pl
import pytest
from hypothesis import given
from polars.testing.parametric import dataframes

from dagster_dataframely.core.report import statistics as statistics_module
from dagster_dataframely.core.report.statistics import statistics, statistics_expressions


def tables(frame: pl.DataFrame | pl.LazyFrame, **known: Any) -> dict[str, list[dict[str, Any]]]:
    """The rows of each group's table, read by a parser that refuses what JSON does not have."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return {
        group: [
            record["data"]
            for record in json.loads(dg.serialize_value(table), parse_constant=refuse)["records"]
        ]
        for group, table in statistics(frame, **known).items()
    }


def one(group: str, dtype: pl.DataType, values: list[Any], **known: Any) -> dict[str, Any]:
    """The statistics of a frame of one column `x`, the same in memory and lazy."""
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    found = tables(frame, **known)
    assert tables(frame.lazy(), **known) == found
    assert list(found) == [group]
    (row,) = found[group]
    assert row.pop("column") == "x"
    return row


INTEGERS = [
    pl.Int8(),
    pl.Int16(),
    pl.Int32(),
    pl.Int64(),
    pl.Int128(),
    pl.UInt8(),
    pl.UInt16(),
    pl.UInt32(),
    pl.UInt64(),
]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype: pl.DataType) -> None:
    assert one("numeric", dtype, [4, None, 1, 3, 2]) == {
        "count": 4,
        "nulls": 1,
        "mean": 2.5,
        "std": pytest.approx(1.2909944),
        "min": 1,
        "p50": 2.5,
        "max": 4,
    }


@pytest.mark.parametrize("dtype", [pl.Float32(), pl.Float64()], ids=str)
def test_floats(dtype: pl.DataType) -> None:
    assert one("numeric", dtype, [0.5, 1.5, None]) == {
        "count": 2,
        "nulls": 1,
        "mean": 1.0,
        "std": pytest.approx(0.7071068),
        "min": 0.5,
        "p50": 1.0,
        "max": 1.5,
    }


def test_what_is_no_number_in_json_is_text() -> None:
    assert one("numeric", pl.Float64(), [math.nan, math.inf, -math.inf]) == {
        "count": 3,
        "nulls": 0,
        "mean": "NaN",
        "std": "NaN",
        "min": "-inf",
        "p50": "inf",
        "max": "inf",
    }
    assert one("numeric", pl.UInt64(), [2**64 - 1])["max"] == "18446744073709551615"


@pytest.mark.parametrize(
    ("dtype", "values", "mean", "median", "least", "greatest"),
    [
        (pl.Decimal(10, 2), ["0.10", "0.20", "1.00"], "0.433333", "0.20", "0.10", "1.00"),
        (pl.Decimal(10, 2), ["0.10", "0.15"], "0.125", "0.125", "0.10", "0.15"),
        (pl.Decimal(10, 2), ["-1.50", "1.50"], "0.00", "0.00", "-1.50", "1.50"),
        (pl.Decimal(10, 0), ["1", "2"], "1.5", "1.5", "1", "2"),
        (pl.Decimal(10, 0), ["10", "10"], "10", "10", "10", "10"),
        # A float would not hold these.
        (
            pl.Decimal(38, 2),
            ["90000000000000000.01", "90000000000000000.03", "90000000000000000.02"],
            "90000000000000000.02",
            "90000000000000000.02",
            "90000000000000000.01",
            "90000000000000000.03",
        ),
    ],
)
def test_decimals_keep_their_digits(
    dtype: pl.DataType, values: list[str], mean: str, median: str, least: str, greatest: str
) -> None:
    row = one("numeric", dtype, [*map(decimal.Decimal, values), None])

    assert (row["mean"], row["p50"]) == (mean, median)
    assert (row["min"], row["max"]) == (least, greatest)
    assert isinstance(row["std"], float)


def test_decimals_whose_sum_has_too_many_digits_still_have_statistics() -> None:
    greatest = "9" * 38

    row = one("numeric", pl.Decimal(38, 0), [decimal.Decimal(greatest)] * 3)

    assert float(row["mean"]) == pytest.approx(1e38)
    assert isinstance(row["mean"], str)
    assert (row["p50"], row["max"]) == (greatest, greatest)


@pytest.mark.parametrize(
    ("dtype", "values", "least", "greatest", "span"),
    [
        (
            pl.Date(),
            [dt.date(2024, 2, 28), dt.date(2024, 3, 1)],
            "2024-02-28",
            "2024-03-01",
            "2d",
        ),
        (
            pl.Datetime("ms"),
            [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 12, 0, 1)],
            "2024-01-01T00:00:00",
            "2024-01-01T12:00:01",
            "12h 1s",
        ),
        # The clock was set forward in between.
        (
            pl.Datetime("us", "Europe/Berlin"),
            [
                dt.datetime(2024, 3, 31, 1, tzinfo=ZoneInfo("Europe/Berlin")),
                dt.datetime(2024, 3, 31, 4, tzinfo=ZoneInfo("Europe/Berlin")),
            ],
            "2024-03-31T01:00:00+01:00",
            "2024-03-31T04:00:00+02:00",
            "2h",
        ),
        (pl.Time(), [dt.time(8), dt.time(9, 30)], "08:00:00", "09:30:00", "1h 30m"),
        (pl.Duration("ns"), [-dt.timedelta(hours=1), dt.timedelta(days=1)], "-1h", "1d", "1d 1h"),
    ],
    ids=lambda value: str(value) if isinstance(value, pl.DataType) else "",
)
def test_temporal_columns(
    dtype: pl.DataType, values: list[Any], least: str, greatest: str, span: str
) -> None:
    assert one("temporal", dtype, [*reversed(values), None]) == {
        "count": 2,
        "nulls": 1,
        "min": least,
        "max": greatest,
        "span": span,
    }


def test_the_span_of_times_that_python_cannot_hold() -> None:
    frame = pl.DataFrame({"x": pl.Series([-(2**62), 2**62]).cast(pl.Datetime("us"))})

    (row,) = tables(frame)["temporal"]

    assert row["min"] == "-144169-06-28T09:59:32.612096"
    assert row["span"] == "106751991d 4h 54.775808s"


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pl.String(), ["é", "", None, "long one", "é", ""]),
        (pl.Categorical(), ["é", "", None, "long one", "é", ""]),
        (
            pl.Enum(["", "unused and longest", "é", "long one"]),
            ["é", "", None, "long one", "é", ""],
        ),
        (pl.Binary(), [b"12", b"", None, b"12345678", b"12", b""]),
    ],
    ids=lambda value: str(value) if isinstance(value, pl.DataType) else "",
)
def test_strings_categories_enums_and_binaries(dtype: pl.DataType, values: list[Any]) -> None:
    assert one("string", dtype, values) == {
        "count": 5,
        "nulls": 1,
        "distinct": 3,
        "shortest": 0,
        "longest": 8,
        "empty": 2,
    }


def test_an_enum_that_lacks_the_empty_string_has_no_empty_values() -> None:
    assert one("string", pl.Enum(["a"]), ["a"])["empty"] == 0


def test_booleans() -> None:
    assert one("boolean", pl.Boolean(), [True, False, None, True, True]) == {
        "count": 4,
        "nulls": 1,
        "true": 3,
        "false": 1,
        "share": 0.75,
    }


NOTHING: list[tuple[str, pl.DataType, dict[str, Any]]] = [
    *(
        ("numeric", dtype, dict.fromkeys(("mean", "std", "min", "p50", "max")))
        for dtype in (pl.Int64(), pl.Float32(), pl.Decimal(5, 2))
    ),
    *(
        ("temporal", dtype, dict.fromkeys(("min", "max", "span")))
        for dtype in (pl.Date(), pl.Time(), pl.Datetime("us", "UTC"), pl.Duration("ms"))
    ),
    *(
        ("string", dtype, {"distinct": 0, "shortest": None, "longest": None, "empty": 0})
        for dtype in (pl.String(), pl.Categorical(), pl.Enum(["a"]), pl.Binary())
    ),
    ("boolean", pl.Boolean(), {"true": 0, "false": 0, "share": None}),
]


@pytest.mark.parametrize("nulls", [0, 3])
@pytest.mark.parametrize(("group", "dtype", "expected"), NOTHING, ids=str)
def test_a_column_without_values_has_counts_and_nothing_else(
    group: str, dtype: pl.DataType, expected: dict[str, Any], nulls: int
) -> None:
    assert one(group, dtype, [None] * nulls) == {"count": 0, "nulls": nulls, **expected}


def test_a_single_number_has_no_standard_deviation() -> None:
    assert one("numeric", pl.Int64(), [7]) == {
        "count": 1,
        "nulls": 0,
        "mean": 7.0,
        "std": None,
        "min": 7,
        "p50": 7.0,
        "max": 7,
    }


def test_nested_object_and_null_columns_are_in_no_table() -> None:
    frame = pl.DataFrame(
        {
            "list": pl.Series([[1]]),
            "array": pl.Series([[1]], dtype=pl.Array(pl.Int64, 1)),
            "struct": pl.Series([{"a": 1}]),
            "object": pl.Series([object()], dtype=pl.Object),
            "null": pl.Series([None]),
        }
    )

    assert tables(frame) == {}
    assert tables(frame.with_columns(paid=True))["boolean"][0]["column"] == "paid"


def test_a_frame_without_columns_has_no_statistics() -> None:
    assert tables(pl.DataFrame()) == {}


def test_groups_list_their_columns_in_the_frame_s_order() -> None:
    frame = pl.DataFrame(
        {"b": [1], "name": ["x"], "a": [0.5], "paid": [True], "day": [dt.date(2024, 1, 1)]}
    )

    found = tables(frame)

    assert {group: [row["column"] for row in rows] for group, rows in found.items()} == {
        "numeric": ["b", "a"],
        "string": ["name"],
        "boolean": ["paid"],
        "temporal": ["day"],
    }


def test_columns_are_told_apart_whatever_their_names_are() -> None:
    names = ["*", "^.*$", "", "0|min", "1|min", "row", "digits", "mean", "^a.*$", "ab"]
    frame = pl.DataFrame({name: [number, number] for number, name in enumerate(names)})

    rows = tables(frame)["numeric"]

    assert {row["column"]: (row["min"], row["p50"]) for row in rows} == {
        name: (number, number) for number, name in enumerate(names)
    }
    assert tables(frame.lazy())["numeric"] == rows


# --- what is known, and what may not be shown ------------------------------------------------------


def test_known_counts_are_taken_and_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"key": ["a", "b"], "paid": [True, False]})
    selected: list[str] = []
    select = pl.LazyFrame.select

    def watched(self: pl.LazyFrame, *exprs: Any, **named: Any) -> pl.LazyFrame:
        query = select(self, *exprs, **named)
        selected.extend(query.collect_schema())
        return query

    monkeypatch.setattr(pl.LazyFrame, "select", watched)

    found = tables(frame, distinct={"key": 2, "gone": 1}, nulls={"key": 0, "paid": 0, "gone": 0})

    assert (found["string"][0]["distinct"], found["string"][0]["nulls"]) == (2, 0)
    assert not [name for name in selected if name.endswith(("|distinct", "|nulls"))]


def test_what_another_query_selected_is_taken_and_not_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = pl.LazyFrame({"0": [3, 1, None], "x": ["a", "b", "b"], "paid": [True, None, None]})
    known = {"redact": ["paid"], "distinct": {"x": 2}, "nulls": {"x": 0}}
    found = tables(frame, **known)
    selected = frame.select(
        (pl.col("0") > 0).all().alias("a rule"),
        *statistics_expressions(frame.collect_schema(), 3, **known),
    ).collect()
    monkeypatch.setattr(statistics_module, "_select", None)

    assert tables(frame, selected=selected.drop("a rule"), **known) == found


def test_a_unique_column_with_a_null_has_one_distinct_value_less_than_rows() -> None:
    row = one("string", pl.String(), ["a", None], distinct={"x": 2})

    assert (row["count"], row["distinct"]) == (1, 1)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_redacted_column_shows_only_its_count_and_nulls(lazy: bool) -> None:
    frame = pl.DataFrame(
        {
            "number": pl.Series([1, None], dtype=pl.Decimal(5, 2)),
            "day": [dt.date(2024, 1, 1), None],
            "name": ["secret", None],
            "paid": [True, None],
        }
    )
    names = frame.columns

    found = tables(frame.lazy() if lazy else frame, redact=names, distinct={"name": 1})

    rows = [row for group in found.values() for row in group]
    assert {row["column"] for row in rows} == set(names)
    for row in rows:
        shown = {name: value for name, value in row.items() if value != "[redacted]"}
        assert shown == {"column": row["column"], "count": 1, "nulls": 1}
        assert len(row) > len(shown)


def test_statistics_of_strings_hold_no_value() -> None:
    frame = pl.DataFrame(
        {"name": ["secret"], "kind": pl.Series(["hidden"], dtype=pl.Enum(["hidden"]))}
    )

    text = "".join(dg.serialize_value(table) for table in statistics(frame).values())

    assert "secret" not in text
    assert "hidden" not in text


# --- large and chunked frames ----------------------------------------------------------------------


def test_a_frame_in_many_chunks_has_the_statistics_of_one_in_one_piece() -> None:
    frame = pl.DataFrame(
        {
            "x": [5, 1, None, 4, 2, 3],
            "y": pl.Series(range(6), dtype=pl.Decimal(5, 1)),
            "z": list("abcabc"),
        }
    )
    chunked = pl.concat([frame[:1], frame[1:4], frame[4:]], rechunk=False)

    assert tables(chunked) == tables(frame)


@pytest.fixture
def large_lazy_frame(monkeypatch: pytest.MonkeyPatch) -> pl.LazyFrame:
    """A lazy frame that is too large to be described exactly, because the limits are lowered."""
    monkeypatch.setattr(statistics_module, "EXACT_VALUES", 1000)
    monkeypatch.setattr(statistics_module, "SAMPLED_ROWS", 1000)
    return pl.LazyFrame({"x": range(20_000)}).with_columns(
        name=pl.format("{}", "x"),
        key=pl.format("key {}", "x"),
        kind=pl.lit("a").cast(pl.Categorical),
        row=pl.lit(decimal.Decimal("1.5")),
    )


def test_a_large_lazy_frame_is_described_approximately_and_says_so(
    large_lazy_frame: pl.LazyFrame,
) -> None:
    found = tables(large_lazy_frame, distinct={"key": 20_000})

    x, row = found["numeric"]
    name, key, kind = found["string"]
    assert (x["count"], x["min"], x["max"], x["mean"]) == (20_000, 0, 19_999, 9999.5)
    assert x["p50 (sampled)"] == pytest.approx(10_000, rel=0.1)
    assert row["p50 (sampled)"] == "1.5"
    assert name["distinct (approx.)"] == pytest.approx(20_000, rel=0.05)
    assert name["distinct (approx.)"] <= 20_000
    assert key["distinct (approx.)"] == 20_000
    assert kind["distinct (approx.)"] == 1
    assert "p50" not in x
    assert "distinct" not in name


def test_the_headers_are_the_columns_of_the_table(large_lazy_frame: pl.LazyFrame) -> None:
    for frame in (large_lazy_frame, large_lazy_frame.collect()):
        for table in statistics(frame).values():
            headers = [column.name for column in table.schema.columns]
            assert [list(record.data) for record in table.records] == [headers] * len(table.records)


def test_only_the_columns_that_are_described_are_read_of_a_lazy_frame() -> None:
    def fail(values: pl.Series) -> pl.Series:
        raise AssertionError(values)

    frame = pl.LazyFrame({"x": [1]}).with_columns(
        nested=pl.col("x").map_batches(fail, return_dtype=pl.List(pl.Int64))
    )

    assert tables(frame)["numeric"][0]["count"] == 1


@given(dataframes(max_cols=5, max_size=6, allow_null=True, allow_chunks=True))
def test_any_frame_that_polars_makes_has_statistics(frame: pl.DataFrame) -> None:
    found = tables(frame)

    for row in (row for rows in found.values() for row in rows):
        column = frame.get_column(row["column"])
        assert row["nulls"] == column.null_count()
        assert row["count"] == column.len() - column.null_count()
        if "distinct" in row:
            assert row["distinct"] == column.drop_nulls().n_unique()
