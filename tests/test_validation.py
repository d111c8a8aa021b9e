"""Validation with `filter=False`: a run writes every row that the function returned, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from support import Outcome, Tables, call, returning, run

# Each promise holds for a frame in memory and for one that is streamed.
pytestmark = pytest.mark.usefixtures("either_mode")


class OrdersSchema(dy.Schema):
    __dagster_dataframely__ = {"severity": {"cheap_is_small": "warn"}}

    order_id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)
    note = dy.String(
        nullable=True,
        max_length=3,
        metadata={"dagster_dataframely": {"severity": "warn"}},
    )

    @dy.rule()
    def cheap_is_small(cls) -> pl.Expr:
        return cls.amount.col < 100


COLUMNS = {"order_id": pl.Int64, "amount": pl.Float64, "note": pl.String}


def orders_frame(*rows: tuple[int | None, float | None, str | None]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


VALID = orders_frame((1, 10.0, None), (2, 20.0, "ok"))
WARN = orders_frame((1, 10.0, "too long"), (2, 20.0, "ok"), (3, 200.0, None), (4, 40.0, None))
ERROR = orders_frame((1, -1.0, None), (2, 20.0, "ok"))
WARN_AND_ERROR = orders_frame((1, -1.0, None), (2, 20.0, "too long"), (3, 30.0, None))
LAST_GOOD = orders_frame((99, 99.0, "old"))


def as_lazy(frame: Any) -> Any:
    return frame.lazy() if isinstance(frame, pl.DataFrame) else frame


def as_returned(frame: Any) -> Any:
    return frame


both_frames = pytest.mark.parametrize("kind", [as_returned, as_lazy], ids=["eager", "lazy"])

# --- the five kinds of run -----------------------------------------------------------------------

KINDS_OF_RUN = [
    pytest.param(
        VALID.drop("amount"),
        None,
        {"dy_schema__columns": "ERROR"},
        "ColumnSchemaError",
        id="a missing column",
    ),
    pytest.param(
        VALID.cast({"amount": pl.Float32}),
        None,
        {"dy_schema__columns": "ERROR"},
        "ColumnSchemaError",
        id="another dtype",
    ),
    pytest.param(VALID, [1, 2], {}, None, id="every row valid"),
    pytest.param(
        WARN,
        [2, 4, 1, 3],
        {"dy_rule__note__max_length": "WARN", "dy_rule__cheap_is_small": "WARN"},
        None,
        id="rows that failed only warn rules",
    ),
    pytest.param(
        ERROR,
        None,
        {"dy_rule__amount__min": "ERROR"},
        "ValidationAbortError",
        id="a row that failed an error rule",
    ),
    pytest.param(
        WARN_AND_ERROR,
        None,
        {"dy_rule__amount__min": "ERROR", "dy_rule__note__max_length": "WARN"},
        "ValidationAbortError",
        id="rows that failed warn and error rules",
    ),
    pytest.param(None, None, {}, None, id="None"),
]


def assert_outcome(
    outcome: Outcome, written: list[int] | None, failing: dict[str, str], error: str | None
) -> None:
    assert outcome.failing == failing
    assert outcome.error == error
    assert outcome.success is (error is None)
    assert list(outcome.written) == ([] if written is None else ["orders"])
    if written is not None:
        assert outcome.rows("orders", "order_id") == written


@both_frames
@pytest.mark.parametrize(("returned", "written", "failing", "error"), KINDS_OF_RUN)
def test_a_run_writes_every_row_or_nothing(
    returned: Any,
    written: list[int] | None,
    failing: dict[str, str],
    error: str | None,
    kind: Callable[[Any], Any],
) -> None:
    tables = Tables({"orders": LAST_GOOD})

    outcome = run(returning(OrdersSchema, kind(returned)), tables=tables)

    assert_outcome(outcome, written, failing, error)
    if written is None:
        assert tables.frames["orders"].equals(LAST_GOOD)


@both_frames
@pytest.mark.parametrize(("returned", "written", "failing", "error"), KINDS_OF_RUN)
def test_a_direct_call_gives_the_verdict_of_a_run(
    returned: Any,
    written: list[int] | None,
    failing: dict[str, str],
    error: str | None,
    kind: Callable[[Any], Any],
) -> None:
    outcome = call(returning(OrdersSchema, kind(returned)))

    assert_outcome(outcome, written, failing, error)


@pytest.mark.parametrize("returned", [VALID, WARN, ERROR, WARN_AND_ERROR, None])
def test_every_check_reports_on_every_frame_that_was_evaluated(returned: Any) -> None:
    orders = returning(OrdersSchema, returned)

    assert set(call(orders).checks) == {spec.name for spec in orders.check_specs}


def test_no_rule_is_evaluated_when_the_column_schema_check_fails() -> None:
    outcome = call(returning(OrdersSchema, VALID.drop("note")))

    assert set(outcome.checks) == {"dy_schema__columns"}


def test_none_materializes_nothing_and_lets_the_run_succeed() -> None:
    outcome = run(returning(OrdersSchema, None))

    assert outcome.success
    assert outcome.materializations == {}
    assert set(outcome.verdicts.values()) == {"pass"}


def test_an_aborted_run_names_how_many_rows_failed_each_error_rule() -> None:
    frame = orders_frame((1, -1.0, "too long"), (1, -2.0, None), (3, None, None), (4, 1.0, None))

    outcome = run(returning(OrdersSchema, frame))

    assert outcome.error == "ValidationAbortError"
    for rule, rows in [("amount|min", 2), ("amount|nullability", 1), ("primary_key", 2)]:
        # The rule and its count stand together, whatever stands between them.
        assert _counts_in(outcome.message)[rule] == rows
    assert "note|max_length" not in outcome.message
    assert "amount|nan" not in outcome.message


def _counts_in(message: str) -> dict[str, int]:
    """The first number after each rule's name in a message."""
    counts: dict[str, int] = {}
    for rule in ("amount|min", "amount|nullability", "primary_key"):
        rest = message.split(rule, 1)[1]
        digits = "".join(c if c.isdigit() else " " for c in rest).split()
        counts[rule] = int(digits[0])
    return counts


def test_the_function_may_drop_failing_rows_itself() -> None:
    @dd.asset(OrdersSchema)
    def orders(raw_orders: pl.DataFrame) -> pl.DataFrame:
        valid, _ = OrdersSchema.filter(raw_orders)
        return valid

    outcome = call(orders, WARN_AND_ERROR)

    assert outcome.success
    assert outcome.failing == {}
    assert outcome.rows("orders", "order_id") == [3]


# --- what is written -----------------------------------------------------------------------------


def test_valid_rows_come_first_then_the_rows_that_failed_only_warn_rules_each_in_their_order() -> (
    None
):
    frame = orders_frame(
        (5, 1.0, "too long"),
        (4, 1.0, None),
        (3, 200.0, None),
        (2, 1.0, "ok"),
        (1, 300.0, "too long"),
    )

    outcome = call(returning(OrdersSchema, frame))

    assert outcome.rows("orders", "order_id") == [4, 2, 5, 3, 1]


def test_rows_keep_their_order_when_every_row_is_valid() -> None:
    frame = orders_frame((3, 1.0, None), (1, 1.0, None), (2, 1.0, None))

    assert call(returning(OrdersSchema, frame)).rows("orders", "order_id") == [3, 1, 2]


@both_frames
def test_extra_columns_are_dropped_and_the_schemas_column_order_is_written(
    kind: Callable[[Any], Any],
) -> None:
    frame = VALID.select("note", "amount", "order_id", net=pl.col("amount") * 0.8)

    outcome = run(returning(OrdersSchema, kind(frame)))

    assert outcome.success
    assert outcome.failing == {}
    assert outcome.written["orders"].equals(VALID)


def test_extra_columns_and_column_order_do_not_change_what_a_frame_with_warn_rows_writes() -> None:
    frame = WARN.select("note", "amount", "order_id", net=pl.col("amount") * 0.8)

    written = call(returning(OrdersSchema, frame)).written["orders"]

    assert written.columns == ["order_id", "amount", "note"]
    assert written["order_id"].to_list() == [2, 4, 1, 3]


@both_frames
@pytest.mark.parametrize("filter", [False, True])
def test_extra_columns_may_be_named_like_rules_or_their_checks(
    filter: bool,  # noqa: A002
    kind: Callable[[Any], Any],
) -> None:
    names = ("primary_key", "cheap_is_small", "amount|min", "dy_rule__amount__min", "valid")
    frame = WARN.with_columns(pl.lit("no").alias(name) for name in names)

    outcome = call(returning(OrdersSchema, kind(frame), filter=filter))

    assert outcome.written["orders"].columns == ["order_id", "amount", "note"]
    assert outcome.rows("orders", "order_id") == [2, 4, 1, 3]


@both_frames
def test_columns_of_a_schema_may_have_any_name_but_a_reserved_one(
    kind: Callable[[Any], Any],
) -> None:
    names = ("valid", "invalid", "index", "count", "len", "literal", "rule", "kept", "group")
    columns = {f"column_{n}": dy.Int64(alias=name, min=0) for n, name in enumerate(names)}
    schema = type("Schema", (dy.Schema,), columns)
    frame = pl.DataFrame({name: [1, -1, 2] for name in names})

    outcome = call(returning(schema, kind(frame), filter=True))

    assert outcome.written["orders"].equals(frame[[0, 2]])
    assert outcome.written["orders__error_rows"].select(names).equals(frame[[1]])


@pytest.mark.parametrize("filter", [False, True])
@pytest.mark.parametrize("execute", [run, call], ids=["run", "direct call"])
def test_the_rows_that_are_written_are_those_that_were_validated(
    filter: bool,  # noqa: A002
    execute: Callable[[Any], Outcome],
) -> None:
    executions = []

    def other_rows_each_time(_: pl.DataFrame) -> pl.DataFrame:
        executions.append(1)
        return VALID if len(executions) == 1 else ERROR

    plan = VALID.lazy().map_batches(other_rows_each_time, schema=VALID.schema)

    outcome = execute(returning(OrdersSchema, plan, filter=filter))

    assert outcome.success
    assert outcome.written["orders"].equals(VALID)
    assert len(executions) == 1


def test_the_materialization_counts_the_rows() -> None:
    outcome = run(returning(OrdersSchema, WARN))

    metadata = outcome.materializations["orders"]
    assert metadata["dagster/row_count"] == 4
    assert metadata["dataframely/returned_row_count"] == 4
    assert metadata["dataframely/warn_row_count"] == 2
    assert metadata["dataframely/error_row_count"] == 0
    assert metadata["dataframely/error_ratio"] == 0.0


# --- the package never casts ---------------------------------------------------------------------


def test_a_dtype_that_could_be_cast_without_loss_is_still_a_mismatch() -> None:
    frame = VALID.cast({"order_id": pl.Int32})

    outcome = run(returning(OrdersSchema, frame))

    assert outcome.error == "ColumnSchemaError"
    assert outcome.failing == {"dy_schema__columns": "ERROR"}


def test_a_float_is_not_cut_to_the_declared_integer() -> None:
    class Schema(dy.Schema):
        count = dy.Int64()

    outcome = run(returning(Schema, pl.DataFrame({"count": [1.9]})))

    assert outcome.error == "ColumnSchemaError"
    assert "'count'" in outcome.message
    assert "Float64" in outcome.message
    assert "Int64" in outcome.message


@both_frames
def test_every_mismatched_column_is_named_at_once(kind: Callable[[Any], Any]) -> None:
    frame = VALID.select(
        pl.col("order_id").cast(pl.String), pl.col("amount").cast(pl.Decimal(10, 2))
    )

    outcome = run(returning(OrdersSchema, kind(frame)))

    for part in ("'order_id'", "Int64", "String", "'amount'", "Decimal", "'note'"):
        assert part in outcome.message
    errors = outcome.checks["dy_schema__columns"].metadata["dataframely/column_errors"]
    assert [row["column"] for row in errors] == ["order_id", "amount", "note"]
    assert [row["expected"] for row in errors][:2] == ["Int64", "Float64"]
    assert errors[0]["actual"] == "String"


def test_the_column_schema_check_fails_at_error_in_a_schema_of_warn_rules() -> None:
    class Schema(dy.Schema):
        amount = dy.Float64(metadata={"dagster_dataframely": {"severity": "warn"}})

    outcome = call(returning(Schema, pl.DataFrame({"amount": [1]})))

    assert outcome.failing == {"dy_schema__columns": "ERROR"}
    assert outcome.error == "ColumnSchemaError"


@pytest.mark.parametrize("filter", [False, True])
def test_a_mismatch_is_found_without_running_the_plan(
    filter: bool,  # noqa: A002
) -> None:
    def explode(_: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("the plan was run")

    plan = VALID.lazy().map_batches(explode, schema={**COLUMNS, "amount": pl.Int64})

    outcome = call(returning(OrdersSchema, plan, filter=filter))

    assert outcome.error == "ColumnSchemaError"
    assert outcome.failing == {"dy_schema__columns": "ERROR"}


def test_a_cast_in_the_function_is_how_to_cast() -> None:
    @dd.asset(OrdersSchema)
    def orders(raw_orders: pl.DataFrame) -> pl.DataFrame:
        return OrdersSchema.cast(raw_orders)

    outcome = call(orders, VALID.cast({"order_id": pl.Int32, "amount": pl.Decimal(10, 2)}))

    assert outcome.success
    assert outcome.written["orders"].equals(VALID)


def test_a_nested_dtype_is_compared_to_its_depth() -> None:
    class Schema(dy.Schema):
        lines = dy.List(dy.Struct({"sku": dy.String(), "count": dy.Int64()}))

    frame = pl.DataFrame(
        {"lines": [[{"sku": "a", "count": 1}]]},
        schema={"lines": pl.List(pl.Struct({"sku": pl.String, "count": pl.Int32}))},
    )

    outcome = call(returning(Schema, frame))

    assert outcome.error == "ColumnSchemaError"
    assert "'lines'" in outcome.message
    assert "Int32" in outcome.message


def test_a_dtype_that_dataframely_accepts_for_a_column_is_no_mismatch() -> None:
    class Schema(dy.Schema):
        anything = dy.Any()
        price = dy.Datetime(time_unit="us", nullable=True)

    frame = pl.DataFrame(
        {"anything": [1.5], "price": [None]}, schema_overrides={"price": pl.Datetime("us")}
    )

    assert call(returning(Schema, frame)).success


# --- frames and schemas at the edge --------------------------------------------------------------


@both_frames
def test_a_frame_without_rows_is_written(kind: Callable[[Any], Any]) -> None:
    outcome = run(returning(OrdersSchema, kind(orders_frame())))

    assert outcome.success
    assert outcome.failing == {}
    assert outcome.written["orders"].equals(orders_frame())
    assert outcome.materializations["orders"]["dagster/row_count"] == 0
    assert outcome.materializations["orders"]["dataframely/error_ratio"] == 0.0


def test_a_frame_without_rows_satisfies_a_rule_over_all_rows() -> None:
    class Schema(dy.Schema):
        amount = dy.Int64()

        @dy.rule()
        def at_least_two_rows(cls) -> pl.Expr:
            return pl.len() >= 2

    outcome = call(returning(Schema, pl.DataFrame(schema={"amount": pl.Int64})))

    assert outcome.success
    assert outcome.checks["dy_rule__at_least_two_rows"].metadata["dataframely/failed_count"] == 0


def test_a_rule_over_all_rows_fails_every_row() -> None:
    class Schema(dy.Schema):
        amount = dy.Int64()

        @dy.rule()
        def at_least_three_rows(cls) -> pl.Expr:
            return pl.len() >= 3

    outcome = call(returning(Schema, pl.DataFrame({"amount": [1, 2]})))

    assert outcome.error == "ValidationAbortError"
    assert outcome.checks["dy_rule__at_least_three_rows"].metadata["dataframely/failed_count"] == 2


def test_a_rule_that_is_null_for_a_row_accepts_it() -> None:
    class Schema(dy.Schema):
        price = dy.Int64(nullable=True)

        @dy.rule()
        def positive(cls) -> pl.Expr:
            return cls.price.col > 0

    outcome = call(returning(Schema, pl.DataFrame({"price": [1, None]})))

    assert outcome.success
    assert outcome.failing == {}


@pytest.mark.parametrize("granularity", ["rule", "column", "schema"])
@pytest.mark.parametrize("filter", [False, True])
def test_a_schema_without_rules_has_the_column_schema_check_alone(
    granularity: str,
    filter: bool,  # noqa: A002
) -> None:
    class NotesSchema(dy.Schema):
        note = dy.String(nullable=True)

    notes = returning(
        NotesSchema,
        pl.DataFrame({"note": ["a", None], "extra": [1, 2]}),
        name="notes",
        filter=filter,
        check_granularity=granularity,
    )

    outcome = call(notes)

    assert outcome.verdicts == {"dy_schema__columns": "pass"}
    assert outcome.written["notes"].equals(pl.DataFrame({"note": ["a", None]}))


def test_a_schema_without_rules_still_refuses_a_mismatch() -> None:
    class NotesSchema(dy.Schema):
        note = dy.String(nullable=True)

    outcome = run(returning(NotesSchema, pl.DataFrame({"note": [1]})))

    assert outcome.error == "ColumnSchemaError"


@pytest.mark.parametrize("columns", [["region", "day", "sales"], ["sales", "day", "region"]])
def test_the_order_of_a_composite_keys_columns_does_not_matter(columns: list[str]) -> None:
    class SalesSchema(dy.Schema):
        region = dy.String(primary_key=True)
        day = dy.Int64(primary_key=True)
        sales = dy.Int64()

    rows = [("north", 1, 5), ("north", 2, 5), ("south", 1, 5), ("north", 1, 6)]
    frame = pl.DataFrame(rows, schema=["region", "day", "sales"], orient="row").select(columns)

    outcome = call(returning(SalesSchema, frame))

    assert outcome.failing == {"dy_rule__primary_key": "ERROR"}
    assert outcome.checks["dy_rule__primary_key"].metadata["dataframely/failed_count"] == 2


def test_a_key_whose_columns_a_subclass_reorders_finds_the_same_duplicates() -> None:
    class SalesSchema(dy.Schema):
        region = dy.String(primary_key=True)
        day = dy.Int64(primary_key=True)

    class ReorderedSchema(SalesSchema):
        # An overridden column moves to the end, so the key becomes (day, region).
        region = dy.String(primary_key=True)

    assert ReorderedSchema.primary_key() == ["day", "region"]
    frame = pl.DataFrame({"region": ["a", "b", "a"], "day": [1, 1, 1]})

    outcomes = [call(returning(schema, frame)) for schema in (SalesSchema, ReorderedSchema)]

    for outcome in outcomes:
        assert outcome.failing == {"dy_rule__primary_key": "ERROR"}
        assert outcome.checks["dy_rule__primary_key"].metadata["dataframely/failed_count"] == 2


def test_column_names_with_characters_that_a_check_name_may_not_have_work() -> None:
    class Schema(dy.Schema):
        order_id = dy.Int64(alias="Order ID", min=1)
        share = dy.Float64(alias="share (%)", nullable=True)

    frame = pl.DataFrame({"Order ID": [0], "share (%)": [0.5]})

    outcome = run(returning(Schema, frame))

    assert outcome.failing == {"dy_rule__Order_ID__min": "ERROR"}
    metadata = outcome.checks["dy_rule__Order_ID__min"].metadata
    assert metadata["dataframely/rule"] == "Order ID|min"


def test_a_bound_does_not_enter_the_name_of_its_check() -> None:
    def names(minimum: int) -> list[str]:
        schema = type("Schema", (dy.Schema,), {"count": dy.Int64(min=minimum)})
        return [spec.name for spec in returning(schema, None).check_specs]

    assert names(0) == names(7)
