"""What a run reports: the metadata of checks and materializations, in strict JSON."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd


class LinesSchema(dy.Schema):
    amount = dy.Float64(min=0.0, max=100.0)
    line = dy.Int64(primary_key=True)
    note = dy.String(
        nullable=True, max_length=3, metadata={"dagster_dataframely": {"severity": "warn"}}
    )

    @dy.rule()
    def first_line_is_free(cls) -> pl.Expr:
        """Line 1 costs nothing."""
        return (cls.line.col != 1) | (cls.amount.col == 0)


CLEAN = pl.DataFrame({"amount": [0.0, 2.0], "line": [1, 2], "note": ["a", None]})
BROKEN = pl.DataFrame(
    {
        "amount": [1.0, -1.0, 200.0, 4.0, 5.0, 6.0],
        "line": [1, 2, 3, 4, 4, 6],
        "note": ["a", "b", "c", "d", "e", "too long"],
    }
)


def results_of(frame: pl.DataFrame | pl.LazyFrame | None, **arguments: Any) -> list[Any]:
    @dd.asset(LinesSchema, filter=True, **arguments)
    def lines() -> Any:
        return frame

    return list(lines())


def metadata_of(frame: pl.DataFrame, check: str, **arguments: Any) -> dict[str, Any]:
    results = results_of(frame, **arguments)
    (result,) = (each for each in results if getattr(each, "check_name", None) == check)
    return dict(result.metadata)


def materialized(frame: pl.DataFrame | pl.LazyFrame, **arguments: Any) -> dict[str, Any]:
    results = results_of(frame, **arguments)
    (result,) = (each for each in results if isinstance(each, dg.MaterializeResult))
    return dict(dg.AssetMaterialization("lines", metadata=result.metadata).metadata)


def rows(table: Any) -> list[dict[str, Any]]:
    return [dict(record.data) for record in table.records]


either_mode = pytest.mark.usefixtures("either_mode")


# --- checks ----------------------------------------------------------------------------------------


@either_mode
def test_a_rules_check_says_which_rule_failed_how_often_and_where() -> None:
    metadata = metadata_of(BROKEN, "dy_rule__amount__min")

    assert set(metadata) == {
        "dataframely/rule",
        "dataframely/expression",
        "dataframely/severity",
        "dataframely/failed_count",
        "dataframely/failed_ratio",
        "dataframely/failed_sample",
    }
    assert metadata["dataframely/rule"].value == "amount|min"
    assert metadata["dataframely/severity"].value == "error"
    assert metadata["dataframely/failed_count"] == dg.MetadataValue.int(1)
    assert metadata["dataframely/failed_ratio"] == dg.MetadataValue.float(1 / 6)
    assert rows(metadata["dataframely/failed_sample"]) == [{"line": 2, "amount": -1.0, "note": "b"}]


@either_mode
def test_samples_show_the_primary_key_first() -> None:
    sample = metadata_of(BROKEN, "dy_rule__note__max_length")["dataframely/failed_sample"]

    assert [column.name for column in sample.schema.columns] == ["line", "amount", "note"]


@either_mode
def test_a_check_shows_no_more_failing_rows_than_it_is_told_to() -> None:
    frame = pl.DataFrame(
        {"amount": [-1.0] * 9, "line": range(9), "note": [None] * 9},
        schema_overrides={"note": pl.String},
    )
    valid = CLEAN.with_columns(line=pl.col("line") + 10)

    shown = metadata_of(frame.vstack(valid), "dy_rule__amount__min", max_failure_samples=3)

    assert len(rows(shown["dataframely/failed_sample"])) == 3
    assert shown["dataframely/failed_count"].value == 9


@either_mode
def test_the_primary_keys_check_counts_each_duplicated_key() -> None:
    frame = BROKEN.with_columns(line=pl.Series([4, 2, 2, 4, 4, 6]))

    metadata = metadata_of(frame, "dy_rule__primary_key")

    assert rows(metadata["dataframely/duplicate_keys"]) == [
        {"line": 4, "count": 3},
        {"line": 2, "count": 2},
    ]


@pytest.mark.parametrize("frame", [CLEAN, BROKEN], ids=["clean", "broken"])
@pytest.mark.parametrize("granularity", ["rule", "column", "schema"])
@either_mode
def test_every_check_of_a_rule_has_its_count_and_ratio_as_numbers_on_every_run(
    frame: pl.DataFrame, granularity: str
) -> None:
    results = results_of(frame, check_granularity=granularity)

    for result in results:
        if isinstance(result, dg.AssetCheckResult) and result.check_name != "dy_schema__columns":
            assert isinstance(result.metadata["dataframely/failed_count"].value, int)
            assert isinstance(result.metadata["dataframely/failed_ratio"].value, float)


@either_mode
def test_a_collapsed_check_lists_its_rules_and_names_the_rule_of_each_sample() -> None:
    metadata = metadata_of(BROKEN, "dy_col__amount", check_granularity="column")

    assert [
        (row["rule"], row["severity"], row["failed_count"])
        for row in rows(metadata["dataframely/rules"])
    ] == [
        ("amount|nullability", "error", 0),
        ("amount|min", "error", 1),
        ("amount|max", "error", 1),
        ("amount|inf", "error", 0),
        ("amount|nan", "error", 0),
    ]
    assert metadata["dataframely/failed_count"].value == 2
    assert [
        (row["dy_rule"], row["line"]) for row in rows(metadata["dataframely/failed_sample"])
    ] == [("amount|min", 2), ("amount|max", 3)]


@either_mode
def test_a_row_that_fails_several_rules_of_a_collapsed_check_counts_once() -> None:
    frame = BROKEN.with_columns(amount=pl.Series([-1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))

    metadata = metadata_of(frame, "dy_schema__rules", check_granularity="schema")

    # Line 1 breaks two rules, both lines 4 the key, line 6 the note.
    assert metadata["dataframely/failed_count"].value == 4


@either_mode
def test_schema_level_rules_have_a_check_each_where_they_are_not_collapsed() -> None:
    names = [
        result.check_name
        for result in results_of(CLEAN, check_granularity="column", schema_rules="per_rule")
        if isinstance(result, dg.AssetCheckResult)
    ]

    assert names == [
        "dy_schema__columns",
        "dy_rule__first_line_is_free",
        "dy_rule__primary_key",
        "dy_col__amount",
        "dy_col__line",
        "dy_col__note",
    ]


@either_mode
def test_the_column_schema_check_lists_every_mismatch() -> None:
    @dd.asset(LinesSchema)
    def lines() -> pl.DataFrame:
        return pl.DataFrame({"amount": ["1"], "lines": [1], "note": ["a"]})

    results = iter(lines())
    column_schema = next(results)
    with pytest.raises(dd.errors.ColumnSchemaError):
        list(results)

    assert [
        (row["column"], row["expected"], row["actual"])
        for row in rows(column_schema.metadata["dataframely/column_errors"])
    ] == [("amount", "Float64", "String"), ("line", "Int64", "(missing)")]


# --- materializations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            BROKEN,
            {
                "dagster/row_count": 1,
                "dataframely/returned_row_count": 6,
                "dataframely/warn_row_count": 1,
                "dataframely/error_row_count": 5,
                "dataframely/error_ratio": 5 / 6,
            },
        ),
        (
            CLEAN,
            {
                "dagster/row_count": 2,
                "dataframely/returned_row_count": 2,
                "dataframely/warn_row_count": 0,
                "dataframely/error_row_count": 0,
                "dataframely/error_ratio": 0.0,
            },
        ),
        (
            CLEAN.clear(),
            {
                "dagster/row_count": 0,
                "dataframely/returned_row_count": 0,
                "dataframely/warn_row_count": 0,
                "dataframely/error_row_count": 0,
                "dataframely/error_ratio": 0.0,
            },
        ),
    ],
    ids=["broken", "clean", "empty"],
)
@either_mode
def test_a_materialization_has_its_counts_as_numbers_on_every_run(
    frame: pl.DataFrame, expected: dict[str, float]
) -> None:
    metadata = materialized(frame)

    assert {name: metadata[name].value for name in expected} == expected


@either_mode
def test_a_materialization_names_the_asset_of_the_error_rows() -> None:
    assert materialized(CLEAN)["dataframely/error_rows"].asset_key == dg.AssetKey(
        "lines__error_rows"
    )


@either_mode
def test_rules_that_fail_on_the_same_rows_are_counted_together() -> None:
    table = materialized(BROKEN)["dataframely/failures_by_rules"]

    assert rows(table) == [
        {"rules": "primary_key", "rows": 2},
        {"rules": "first_line_is_free", "rows": 1},
        {"rules": "amount|min", "rows": 1},
        {"rules": "amount|max", "rows": 1},
        {"rules": "note|max_length", "rows": 1},
    ]


@either_mode
def test_samples_of_the_table_and_of_the_error_rows_are_bounded() -> None:
    metadata = materialized(BROKEN, row_sample=2)

    assert [row["line"] for row in rows(metadata["dataframely/sample"])] == [6]
    assert [row["line"] for row in rows(metadata["dataframely/error_sample"])] == [1, 2]
    assert rows(metadata["dataframely/error_sample"])[0]["dy_rule__first_line_is_free"] == "invalid"


@either_mode
def test_statistics_describe_what_was_written_and_not_what_was_returned() -> None:
    (amount, _) = rows(materialized(BROKEN)["dataframely/statistics/numeric"])

    assert (amount["column"], amount["count"], amount["min"], amount["max"]) == (
        "amount",
        1,
        6.0,
        6.0,
    )


@pytest.mark.parametrize("frame", [CLEAN, CLEAN.clear(), BROKEN], ids=["clean", "empty", "broken"])
def test_a_streamed_table_has_the_metadata_of_one_in_memory(frame: pl.DataFrame) -> None:
    assert materialized(frame.lazy(), stream=True) == materialized(frame)


def test_a_streamed_table_whose_decimals_have_too_large_a_sum_has_statistics() -> None:
    class WholeSchema(dy.Schema):
        whole = dy.Decimal(38, 0, nullable=True)

    largest = Decimal(10**38 - 1)

    @dd.asset(WholeSchema, stream=True)
    def wholes() -> pl.LazyFrame:
        return pl.LazyFrame({"whole": [largest, largest]}, schema={"whole": pl.Decimal(38, 0)})

    table = next(iter(wholes()))

    (whole,) = rows(table.metadata["dataframely/statistics/numeric"])
    assert (whole["count"], whole["max"]) == (2, str(largest))


@either_mode
def test_statistics_are_off_where_they_are_not_wanted() -> None:
    metadata = materialized(CLEAN, statistics=False)

    assert not [name for name in metadata if name.startswith("dataframely/statistics")]


# --- strict JSON -----------------------------------------------------------------------------------


class WideSchema(dy.Schema):
    key = dy.Int64(primary_key=True)
    real = dy.Float64(allow_nan=True, allow_inf=True, nullable=True)
    small = dy.Float32(allow_nan=True, allow_inf=True)
    large = dy.UInt64()
    exact = dy.Decimal(38, 10)
    text = dy.String()
    flag = dy.Bool(nullable=True)
    raw = dy.Binary()
    day = dy.Date()
    time = dy.Time()
    stamp = dy.Datetime(time_zone="Europe/Lisbon")
    took = dy.Duration()
    kind = dy.Enum(["a", "b"])
    label = dy.Categorical()
    list_ = dy.List(dy.Float64(allow_nan=True, allow_inf=True, nullable=True))
    array = dy.Array(dy.Int8(), 2)
    struct = dy.Struct({"x": dy.Float64(allow_nan=True), "y": dy.String()})
    thing = dy.Object()

    @dy.rule()
    def never(cls) -> pl.Expr:
        return cls.key.col < 0


def wide_frame() -> pl.DataFrame:
    row = {
        "key": 1,
        "real": float("nan"),
        "small": float("inf"),
        "large": 2**64 - 1,
        "exact": Decimal("12345678901234567890.0123456789"),
        "text": "\ud7ff\x00 ünï" * 100,
        "flag": None,
        "raw": b"\x00\xff" * 200,
        "day": dt.date(9999, 12, 31),
        "time": dt.time(23, 59, 59, 999999),
        "stamp": dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC),
        "took": dt.timedelta(days=-1, microseconds=1),
        "kind": "a",
        "label": "b",
        "list_": [1.0, float("nan"), None, float("-inf")],
        "array": [1, 2],
        "struct": {"x": float("nan"), "y": '"quoted"'},
    }
    schema = WideSchema.create_empty().schema
    frame = pl.DataFrame(
        [row, {**row, "key": 2, "real": float("-inf")}],
        schema={name: dtype for name, dtype in schema.items() if name != "thing"},
    )
    return frame.with_columns(pl.Series("thing", [object(), {1: object}], dtype=pl.Object))


@pytest.mark.parametrize("granularity", ["rule", "column", "schema"])
def test_every_event_of_a_wide_frame_is_strict_json(granularity: Any) -> None:
    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    class SoftWideSchema(WideSchema):
        __dagster_dataframely__ = {"severity": {"never": "warn"}}

    @dd.asset(SoftWideSchema, check_granularity=granularity)
    def wide() -> pl.DataFrame:
        return wide_frame()

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [wide], instance=instance, resources={"io_manager": dg.InMemoryIOManager()}
        )
        events = [dg.serialize_value(entry) for entry in instance.all_logs(result.run_id)]

    assert result.success
    for event in events:
        json.loads(event, parse_constant=refuse)
    assert any("dataframely/failed_sample" in event for event in events)
