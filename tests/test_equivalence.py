"""For any frame of a schema, the verdict equals what Dataframely's own `Schema.filter` says.

Frames are sampled by Dataframely and then broken cell by cell. `HYPOTHESIS_PROFILE=thorough` runs
500 examples a property instead of 60.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import dataframely as dy
import polars as pl
import pytest
from dataframely.random import Generator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import dagster_dataframely as dd
from support import call

# Each promise holds for a frame in memory and for one that is streamed.
pytestmark = pytest.mark.usefixtures("either_mode")

settings.register_profile("quick", max_examples=60, deadline=None)
settings.register_profile(
    "thorough", max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
PROFILE = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def warn(*rules: str) -> dict[str, Any]:
    return {"dagster_dataframely": {"severity": dict.fromkeys(rules, "warn")}}


# --- schemas whose rules look at one row, or at keys ---------------------------------------------


class OrdersSchema(dy.Schema):
    __dagster_dataframely__ = {"severity": {"closed_orders_have_an_amount": "warn"}}

    shop = dy.String(primary_key=True, regex=r"^[a-c]$", metadata=warn("regex"))
    number = dy.Int64(primary_key=True, min=1, max=6)
    amount = dy.Float64(nullable=True, min=0.0, max=100.0, allow_nan=False)
    currency = dy.Enum(["EUR", "USD", "GBP"])
    note = dy.String(nullable=True, max_length=4, metadata=warn("max_length"))
    closed = dy.Bool()

    @dy.rule()
    def closed_orders_have_an_amount(cls) -> pl.Expr:
        return ~cls.closed.col | cls.amount.col.is_not_null()

    @dy.rule()
    def large_orders_are_in_euro(cls) -> pl.Expr:
        return (cls.amount.col < 90) | (cls.currency.col == "EUR")


class NestedSchema(dy.Schema):
    tags = dy.List(
        dy.String(regex="^[a-z]"),
        nullable=True,
        min_length=1,
        max_length=3,
        metadata=warn("max_length"),
    )
    point = dy.Array(dy.Float64(min=-10.0, max=10.0), 2, metadata=warn("inner_nan"))
    customer = dy.Struct(
        {"email": dy.String(regex="@"), "age": dy.Int16(nullable=True, min=0)},
        nullable=True,
        metadata=warn("inner_age_min"),
    )


class UniqueSchema(dy.Schema):
    code = dy.Int32(unique=True, check={"even": lambda col: col % 2 == 0}, metadata=warn("unique"))
    price = dy.Decimal(10, 2, min=0, nullable=True)
    day = dy.Date(nullable=True)
    label = dy.Categorical(nullable=True)


class KeysSchema(dy.Schema):
    """Keys of every kind of equality: zeros of both signs, NaN, null, nested values."""

    reading = dy.Float64(primary_key=True, allow_nan=True, allow_inf=True)
    at = dy.Datetime(primary_key=True, time_unit="us", time_zone="UTC")
    ratio = dy.Float32(unique=True, nullable=True, allow_nan=True)
    name = dy.String(unique=True, nullable=True)
    color = dy.Categorical(unique=True, nullable=True)
    path = dy.List(dy.Int64(), unique=True, nullable=True, metadata=warn("unique"))


#: Values that break a column's rules, or are at least unlikely to be sampled.
BREAKS: Mapping[type[dy.Schema], Mapping[str, list[Any]]] = {
    OrdersSchema: {
        "shop": [None, "", "z", "a"],
        "number": [None, 0, 7, 1],
        "amount": [None, -1.0, 101.0, 95.0, float("nan"), float("inf"), float("-inf"), -0.0],
        "currency": [None, "USD"],
        "note": [None, "too long", "éééé"],
        "closed": [None, True],
    },
    NestedSchema: {
        "tags": [None, [], [None], ["A"], ["a", "b", "c", "d"], ["a", None, "B"]],
        "point": [None, [None, 0.0], [float("nan"), 0.0], [11.0, float("inf")]],
        "customer": [
            None,
            {"email": None, "age": None},
            {"email": "x", "age": -1},
            {"email": "a@b", "age": -1},
        ],
    },
    UniqueSchema: {
        "code": [None, 2, 3],
        "price": [None, Decimal(-1)],
        "day": [None],
        "label": [None, "x"],
    },
    KeysSchema: {
        "reading": [0.0, -0.0, float("nan"), float("inf"), None],
        "at": [datetime(2026, 1, 1, tzinfo=UTC), None],
        "ratio": [0.0, -0.0, float("nan"), None],
        "name": ["", "\0", "a", None],
        "color": ["red", "blue", None],
        "path": [[], [0], None],
    },
}

# --- schemas whose rules look at groups of rows --------------------------------------------------


class InvoiceLinesSchema(dy.Schema):
    line = dy.Int64(primary_key=True, min=1, max=12)
    invoice = dy.String(regex="^[ab]$")
    is_main = dy.Bool()
    share = dy.Int64(min=0, max=4)

    @dy.rule()
    def one_main_line(cls) -> pl.Expr:
        return cls.is_main.col.sum().over("invoice") == 1

    @dy.rule()
    def no_line_has_more_than_half(cls) -> pl.Expr:
        return cls.share.col * 2 <= cls.share.col.sum().over("invoice")


class ChainSchema(dy.Schema):
    position = dy.Int64(min=1)

    @dy.rule()
    def has_predecessor(cls) -> pl.Expr:
        position = cls.position.col
        return (position == 1) | (position - 1).is_in(position.implode())


class TotalsSchema(dy.Schema):
    amount = dy.Int64(min=0, nullable=True)

    @dy.rule()
    def at_least_two_rows(cls) -> pl.Expr:
        return pl.len() >= 2

    @dy.rule()
    def below_the_mean_times_two(cls) -> pl.Expr:
        return cls.amount.col <= cls.amount.col.mean() * 2


class RunningSchema(dy.Schema):
    step = dy.Int64(min=0, max=9)

    @dy.rule()
    def rises(cls) -> pl.Expr:
        return cls.step.col >= cls.step.col.shift(1)


#: A valid frame of each schema, and values for its cells that sometimes break a rule.
VALID_GROUPS: Mapping[type[dy.Schema], pl.DataFrame] = {
    InvoiceLinesSchema: pl.DataFrame(
        {
            "line": [1, 2, 3, 4, 5, 6],
            "invoice": ["a", "a", "a", "b", "b", "b"],
            "is_main": [True, False, False, False, True, False],
            "share": [2, 1, 1, 1, 1, 2],
        }
    ),
    ChainSchema: pl.DataFrame({"position": [3, 1, 2, 4, 5, 6]}),
    TotalsSchema: pl.DataFrame({"amount": [1, 2, 3]}),
    RunningSchema: pl.DataFrame({"step": [0, 1, 1, 2, 4]}),
}
GROUP_CELLS: Mapping[type[dy.Schema], Mapping[str, list[Any]]] = {
    InvoiceLinesSchema: {
        "line": [1, 2, 7, 13, None],
        "invoice": ["a", "b", "c", None],
        "is_main": [True, False, None],
        "share": [0, 1, 2, 4, 5, None],
    },
    ChainSchema: {"position": [1, 2, 3, 4, 5, 6, 7, 0, None]},
    TotalsSchema: {"amount": [0, 1, 2, 9, -1, None]},
    RunningSchema: {"step": [0, 1, 2, 3, 10, -1, None]},
}

# --- the assets, declared once -------------------------------------------------------------------


def table_asset(schema: type[dy.Schema], *, keep_evidence: bool) -> Any:
    @dd.asset(schema, filter=keep_evidence, name="table")
    def table(frame):  # type: ignore[no-untyped-def]
        return frame

    return table


SCHEMAS = [*BREAKS, *GROUP_CELLS]
FILTERING = {schema: table_asset(schema, keep_evidence=True) for schema in SCHEMAS}
ABORTING = {schema: table_asset(schema, keep_evidence=False) for schema in SCHEMAS}


def warn_rules(schema: type[dy.Schema]) -> frozenset[str]:
    """The rules that this module declares as `warn`, read from the declarations themselves."""
    declared = getattr(schema, "__dagster_dataframely__", {}).get("severity", {})
    on_columns = {
        f"{name}|{rule}"
        for name, column in schema.columns().items()
        for rule in (column.metadata or {}).get("dagster_dataframely", {}).get("severity", {})
    }
    return frozenset({*declared, *on_columns})


# --- frames --------------------------------------------------------------------------------------


@st.composite
def broken_frames(draw: st.DrawFn, schema: type[dy.Schema]) -> pl.DataFrame:
    """A valid frame sampled by Dataframely, then broken."""
    height = draw(st.integers(0, 8), label="height")
    frame = schema.sample(
        height,
        generator=Generator(draw(st.integers(0, 2**31 - 1))),
        # Dataframely samples no column that has checks of its own.
        overrides={"code": [2 * n for n in range(height)]} if schema is UniqueSchema else None,
    )
    return draw(broken(frame, BREAKS[schema]))


@st.composite
def group_frames(draw: st.DrawFn, schema: type[dy.Schema]) -> pl.DataFrame:
    """A valid frame of a schema with rules over groups, or the first rows of it, then broken."""
    frame = VALID_GROUPS[schema]
    height = draw(st.integers(0, frame.height), label="height")
    return draw(broken(frame.head(height), GROUP_CELLS[schema]))


@st.composite
def broken(draw: st.DrawFn, frame: pl.DataFrame, pools: Mapping[str, list[Any]]) -> pl.DataFrame:
    """A frame with some cells replaced by values from their columns' pools, and rows repeated."""
    if frame.height == 0:
        return frame
    rows = st.integers(0, frame.height - 1)
    cells = st.sampled_from([(name, value) for name, pool in pools.items() for value in pool])
    columns: dict[str, list[Any]] = frame.to_dict(as_series=False)
    for row, (name, value) in draw(st.lists(st.tuples(rows, cells), max_size=5), label="breaks"):
        columns[name][row] = value
    changed = pl.DataFrame(
        [pl.Series(name, values, dtype=frame.schema[name]) for name, values in columns.items()]
    )
    repeated = draw(st.lists(rows, max_size=2), label="repeated rows")
    return pl.concat([changed, *(changed[row] for row in repeated)])


# --- what Dataframely says -----------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """The verdict on a frame, worked out with Dataframely's public `filter` alone."""

    failed: dict[str, int]
    table: pl.DataFrame
    error_rows: pl.DataFrame


def expected_verdict(schema: type[dy.Schema], frame: pl.DataFrame) -> Expected:
    """Divide a frame as its schema's severities say, by one call of `Schema.filter`."""
    valid, failure = schema.filter(frame)
    details = failure.details()
    error_rules = [
        rule for rule in details.columns[len(valid.columns) :] if rule not in warn_rules(schema)
    ]
    breaks_an_error_rule = pl.any_horizontal(
        pl.lit(False), *(pl.col(rule) == "invalid" for rule in error_rules)
    )
    only_warn = details.filter(~breaks_an_error_rule).select(valid.columns)
    return Expected(
        failed=failure.counts(),
        table=pl.concat([valid, only_warn]),
        error_rows=details.filter(breaks_an_error_rule).with_columns(
            pl.col(details.columns[len(valid.columns) :]).cast(pl.String)
        ),
    )


def check_name(rule: str) -> str:
    return f"dy_rule__{rule.replace('|', '__')}"


def failed_counts(outcome: Any) -> dict[str, int]:
    """How many rows failed each failing rule, as the checks report it."""
    return {
        check.metadata["dataframely/rule"]: check.metadata["dataframely/failed_count"]
        for name, check in outcome.checks.items()
        if name != "dy_schema__columns" and not check.passed
    }


@pytest.mark.parametrize("schema", BREAKS)
@settings(PROFILE)
@given(data=st.data())
def test_the_verdict_and_the_rows_kept_equal_those_of_schema_filter(
    schema: type[dy.Schema], data: st.DataObject
) -> None:
    frame = data.draw(broken_frames(schema), label="frame")
    expected = expected_verdict(schema, frame)
    returned = frame.lazy() if data.draw(st.booleans(), label="lazy") else frame

    filtered = call(FILTERING[schema], returned)
    aborted = call(ABORTING[schema], returned)

    # The verdict of each rule, and its severity.
    for outcome in (filtered, aborted):
        assert failed_counts(outcome) == expected.failed
        assert outcome.failing == {
            check_name(rule): "WARN" if rule in warn_rules(schema) else "ERROR"
            for rule in expected.failed
        }
    # With `filter=True`: the rows kept, and the rows held back with every rule's verdict on them.
    error_rows = filtered.written["table__error_rows"]
    if expected.error_rows.height:
        renamed = expected.error_rows.rename(
            {rule: check_name(rule) for rule in expected.error_rows.columns[frame.width :]}
        )
        assert_frame_equal(error_rows, renamed)
    else:
        assert error_rows.height == 0
    if expected.table.height or not frame.height:
        assert filtered.success
        assert_frame_equal(filtered.written["table"], expected.table)
    else:
        assert filtered.error == "NoValidRowsError"
        assert "table" not in filtered.written
    # With `filter=False`: every row, or nothing.
    if expected.error_rows.height:
        assert aborted.error == "ValidationAbortError"
        assert aborted.written == {}
    else:
        assert aborted.success
        assert_frame_equal(aborted.written["table"], expected.table)


@pytest.mark.parametrize("schema", GROUP_CELLS)
@settings(PROFILE)
@given(data=st.data())
def test_with_filter_what_is_written_is_valid_or_the_run_fails(
    schema: type[dy.Schema], data: st.DataObject
) -> None:
    frame = data.draw(group_frames(schema), label="frame")
    returned = frame.lazy() if data.draw(st.booleans(), label="lazy") else frame

    outcome = call(FILTERING[schema], returned)

    error_rows = outcome.written["table__error_rows"]
    if outcome.success:
        written = outcome.written["table"]
        assert schema.is_valid(written)
    else:
        assert outcome.error == "NoValidRowsError"
        assert "table" not in outcome.written
        written = frame.clear()
    # The rows that are kept are those that are left when nothing falls out any more.
    kept = frame
    while (remaining := schema.filter(kept)[0]).height < kept.height:
        kept = remaining
    assert_frame_equal(written, kept)
    # No row is lost or made up, and each error row says which rule it failed.
    assert_frame_equal(
        pl.concat([written, error_rows.select(frame.columns)]), frame, check_row_order=False
    )
    verdicts = error_rows.drop(frame.columns)
    assert verdicts.filter(~pl.any_horizontal(pl.all() == "invalid")).height == 0
    # A check counts the rows that failed its rule in whichever round they did.
    assert failed_counts(outcome) == {
        check.metadata["dataframely/rule"]: count
        for name, check in outcome.checks.items()
        if name in verdicts.columns and (count := (verdicts[name] == "invalid").sum())
    }


@pytest.mark.parametrize("schema", GROUP_CELLS)
@settings(PROFILE)
@given(data=st.data())
def test_without_filter_a_rule_over_groups_has_the_verdict_of_schema_filter(
    schema: type[dy.Schema], data: st.DataObject
) -> None:
    frame = data.draw(group_frames(schema), label="frame")
    expected = expected_verdict(schema, frame)

    outcome = call(ABORTING[schema], frame)

    assert failed_counts(outcome) == expected.failed
    assert outcome.success is not bool(expected.failed)
    assert outcome.written.keys() == ({"table"} if outcome.success else set())
