"""What this package takes from its upstreams without a promise: each use, and what it relies on."""

from __future__ import annotations

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

from dagster_dataframely.upstream.dagster_context import computes_asset, running_step
from dagster_dataframely.upstream.dataframely_schema import rule_function, validation_rules
from dagster_dataframely.upstream.polars_expression import looks_at_one_row, serialized

A, B = pl.col("a"), pl.col("b")


class LinesSchema(dy.Schema):
    order_id = dy.Int64(primary_key=True)
    line = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0, nullable=True)

    @dy.rule()
    def has_a_first_line(cls) -> pl.Expr:
        """Every order has a line 1."""
        return (cls.line.col == 1).any().over("order_id")


def test_dataframely_gives_the_rules_of_a_schema_in_the_order_of_filter() -> None:
    assert list(validation_rules(LinesSchema)) == [
        "has_a_first_line",
        "primary_key",
        "order_id|nullability",
        "line|nullability",
        "amount|min",
        "amount|inf",
        "amount|nan",
    ]


def test_each_dataframely_rule_has_an_expression() -> None:
    assert all(isinstance(rule.expr, pl.Expr) for rule in validation_rules(LinesSchema).values())


def test_a_dataframely_rule_remembers_the_function_that_it_was_made_of() -> None:
    function = rule_function(LinesSchema, "has_a_first_line")

    assert function is not None
    assert function.__doc__ == "Every order has a line 1."
    assert rule_function(LinesSchema, "primary_key") is None


@pytest.mark.parametrize(
    "expr",
    [
        A > 1,
        A.is_in([1, 2]),
        A.is_null() | B.is_not_null(),
        ~A.is_nan() & A.is_finite(),
        ~A.is_infinite(),
        A.is_between(1, 2),
        A.str.contains("x"),
        A.str.len_bytes() <= 64,
        A.str.to_date() > B,
        A.dt.year() == 2026,
        A.dt.truncate("1d") == A,
        A.cast(pl.Int8).fill_null(3) > 1,
        (A * 100).round() == A * 100,
        A.abs() > 1,
        A.struct.field("x") > 1,
        A.list.eval(pl.element() > 1).list.all(),
        A.list.len() <= 3,
        A.arr.eval(pl.element() > 1).arr.all(),
        pl.when(A > 1).then(pl.lit(True)).otherwise(B),
        pl.all_horizontal("a", "b"),
        pl.coalesce("a", "b") > 1,
        pl.lit(True),
        (A > 1).alias("c"),
    ],
    ids=str,
)
def test_an_expression_of_one_row_is_known_as_such(expr: pl.Expr) -> None:
    assert looks_at_one_row(expr)


@pytest.mark.parametrize(
    "expr",
    [
        A.sum().over("b") == 1,
        A.is_unique(),
        pl.struct("a", "b").is_unique(),
        A.is_first_distinct(),
        A.max() == A,
        A.shift(1) == A,
        A.cum_sum() > 3,
        A.rank() > 1,
        A.rle_id() > 0,
        A.rolling_mean(3) > 1,
        A.fill_null(strategy="forward") == 1,
        A.sort() > 1,
        A.reverse() > 1,
        A.null_count() == 0,
        A.str.join() == "x",
        A.is_in(B),
        A.is_in(B.implode()),
        pl.len() > 1,
        pl.int_range(pl.len()) > 1,
        pl.lit(pl.Series([True, False])),
        A.map_batches(lambda s: s, return_dtype=pl.Boolean),
        A.map_elements(lambda value: value > 1, return_dtype=pl.Boolean),
    ],
    ids=str,
)
def test_an_expression_that_may_see_other_rows_is_never_taken_for_one_that_does_not(
    expr: pl.Expr,
) -> None:
    assert not looks_at_one_row(expr)


def test_a_serialized_expression_keeps_the_arguments_that_its_text_leaves_out() -> None:
    assert str(A.round(2)) == str(A.round(3))
    assert serialized(A.round(2)) != serialized(A.round(3))


def test_an_expression_with_a_python_function_has_no_serialized_form() -> None:
    assert serialized(A.map_elements(lambda value: value, return_dtype=pl.Boolean)) is None


def test_there_is_a_running_step_in_a_run_and_none_in_a_direct_call() -> None:
    seen: list[object] = []

    @dg.asset
    def orders() -> None:
        seen.append(running_step(dg.AssetKey("orders")))

    orders()
    dg.materialize([orders])

    assert seen[0] is None
    assert isinstance(seen[1], dg.AssetExecutionContext)


def test_a_direct_call_in_the_step_of_another_asset_is_a_direct_call() -> None:
    seen: list[object] = []

    @dg.asset
    def report() -> None:
        seen.append(running_step(dg.AssetKey("orders")))

    dg.materialize([report])

    assert seen == [None]


@pytest.mark.parametrize("with_location", [False, True])
def test_an_asset_of_the_location_that_computes_something_is_found(with_location: bool) -> None:
    found: dict[str, bool] = {}

    @dg.asset
    def orders(context) -> None:  # type: ignore[no-untyped-def] - Dagster reads the annotation
        for key in ("orders", "invoices", "external", "nothing"):
            found[key] = computes_asset(context, dg.AssetKey(key))

    @dg.asset
    def invoices() -> None: ...

    assets = [orders, invoices, dg.AssetSpec("external")]
    if with_location:
        job = dg.define_asset_job("only_orders", selection=["orders"])
        dg.Definitions(assets=assets, jobs=[job]).resolve_job_def(
            "only_orders"
        ).execute_in_process()
    else:
        dg.materialize(assets, selection=["orders"])

    assert found == {"orders": True, "invoices": True, "external": False, "nothing": False}
