"""`filter=True`: rows that fail `error` rules are kept as evidence, and never in the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from support import Tables, call, returning, run

# Each promise holds for a frame in memory and for one that is streamed.
pytestmark = pytest.mark.usefixtures("either_mode")


class OrdersSchema(dy.Schema):
    order_id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)
    note = dy.String(
        nullable=True,
        max_length=3,
        metadata={"dagster_dataframely": {"severity": "warn"}},
    )


COLUMNS = {"order_id": pl.Int64, "amount": pl.Float64, "note": pl.String}
RULE_COLUMNS = [
    "dy_rule__primary_key",
    "dy_rule__order_id__nullability",
    "dy_rule__amount__nullability",
    "dy_rule__amount__min",
    "dy_rule__amount__inf",
    "dy_rule__amount__nan",
    "dy_rule__note__max_length",
]
ERROR_ROWS = "orders__error_rows"


def orders_frame(*rows: tuple[int | None, float | None, str | None]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def kept_before(key: str = "orders") -> Tables:
    """Tables as an earlier run left them: one good row, and one error row long since repaired."""
    good = orders_frame((99, 99.0, "old"))
    return Tables({key: good, f"{key}__error_rows": good})


def as_returned(frame: Any) -> Any:
    return frame


def as_lazy(frame: Any) -> Any:
    return frame.lazy() if isinstance(frame, pl.DataFrame) else frame


both_frames = pytest.mark.parametrize("kind", [as_returned, as_lazy], ids=["eager", "lazy"])

VALID = orders_frame((1, 10.0, None), (2, 20.0, "ok"))
WARN = orders_frame((1, 10.0, "too long"), (2, 20.0, "ok"))
SOME_ERRORS = orders_frame(
    (1, 10.0, "too long"), (2, -2.0, None), (3, 30.0, None), (4, -4.0, "too long"), (5, 50.0, "ok")
)
ONLY_ERRORS = orders_frame((1, -1.0, None), (2, None, None))

# Each row: the returned frame, the ids of the table and of the error rows, the failing checks, the
# error. `None` for ids says that the table is left as it was.
KINDS_OF_RUN = [
    pytest.param(
        VALID.drop("note"),
        None,
        None,
        {"dy_schema__columns": "ERROR"},
        "ColumnSchemaError",
        id="a missing column",
    ),
    pytest.param(
        VALID.cast({"amount": pl.Int64}),
        None,
        None,
        {"dy_schema__columns": "ERROR"},
        "ColumnSchemaError",
        id="another dtype",
    ),
    pytest.param(VALID, [1, 2], [], {}, None, id="only valid rows"),
    pytest.param(
        WARN,
        [2, 1],
        [],
        {"dy_rule__note__max_length": "WARN"},
        None,
        id="rows failing only warn rules",
    ),
    pytest.param(
        SOME_ERRORS,
        [3, 5, 1],
        [2, 4],
        {"dy_rule__amount__min": "ERROR", "dy_rule__note__max_length": "WARN"},
        None,
        id="some rows failing error rules",
    ),
    pytest.param(
        ONLY_ERRORS,
        None,
        [1, 2],
        {"dy_rule__amount__min": "ERROR", "dy_rule__amount__nullability": "ERROR"},
        "NoValidRowsError",
        id="only rows failing error rules",
    ),
    pytest.param(
        orders_frame((1, 1.0, None), (1, 2.0, None)),
        None,
        [1, 1],
        {"dy_rule__primary_key": "ERROR"},
        "NoValidRowsError",
        id="a key all of whose rows are duplicates",
    ),
    pytest.param(orders_frame(), [], [], {}, None, id="no rows"),
    pytest.param(None, None, None, {}, None, id="None"),
]


@both_frames
@pytest.mark.parametrize(("returned", "table", "error_rows", "failing", "error"), KINDS_OF_RUN)
def test_a_run_divides_the_rows_between_the_table_and_the_error_rows(
    returned: Any,
    table: list[int] | None,
    error_rows: list[int] | None,
    failing: dict[str, str],
    error: str | None,
    kind: Callable[[Any], Any],
) -> None:
    tables = kept_before()

    outcome = run(returning(OrdersSchema, kind(returned), filter=True), tables=tables)

    assert outcome.failing == failing
    assert outcome.error == error
    assert outcome.success is (error is None)
    # A table that the run does not write still has the row of the run before.
    assert tables.frames["orders"]["order_id"].to_list() == ([99] if table is None else table)
    left = tables.frames[ERROR_ROWS]["order_id"].to_list()
    assert left == ([99] if error_rows is None else error_rows)


@both_frames
@pytest.mark.parametrize(("returned", "table", "error_rows", "failing", "error"), KINDS_OF_RUN)
def test_a_direct_call_divides_the_rows_as_a_run_does(
    returned: Any,
    table: list[int] | None,
    error_rows: list[int] | None,
    failing: dict[str, str],
    error: str | None,
    kind: Callable[[Any], Any],
) -> None:
    outcome = call(returning(OrdersSchema, kind(returned), filter=True))

    assert outcome.failing == failing
    assert outcome.error == error
    assert {key: outcome.rows(key, "order_id") for key in outcome.written} == {
        key: ids for key, ids in [("orders", table), (ERROR_ROWS, error_rows)] if ids is not None
    }


# --- the error rows ------------------------------------------------------------------------------


def test_error_rows_carry_the_schemas_columns_then_one_column_a_rule() -> None:
    frame = SOME_ERRORS.select("note", "amount", "order_id", extra=1)

    error_rows = call(returning(OrdersSchema, frame, filter=True)).written[ERROR_ROWS]

    assert error_rows.columns == ["order_id", "amount", "note", *RULE_COLUMNS]
    assert error_rows.schema == {**COLUMNS, **dict.fromkeys(RULE_COLUMNS, pl.String)}
    assert error_rows.rows() == [
        (2, -2.0, None, "valid", "valid", "valid", "invalid", "valid", "valid", "valid"),
        (4, -4.0, "too long", "valid", "valid", "valid", "invalid", "valid", "valid", "invalid"),
    ]


@pytest.mark.parametrize("returned", [VALID, WARN, orders_frame()])
def test_empty_error_rows_have_the_columns_of_full_ones(returned: pl.DataFrame) -> None:
    error_rows = call(returning(OrdersSchema, returned, filter=True)).written[ERROR_ROWS]

    assert error_rows.height == 0
    assert error_rows.schema == {**COLUMNS, **dict.fromkeys(RULE_COLUMNS, pl.String)}


@pytest.mark.parametrize("granularity", ["column", "schema"])
def test_collapsed_checks_leave_one_column_a_rule_in_the_error_rows(granularity: str) -> None:
    orders = returning(OrdersSchema, SOME_ERRORS, filter=True, check_granularity=granularity)

    assert call(orders).written[ERROR_ROWS].columns[3:] == RULE_COLUMNS


def test_the_error_rows_key_adds_to_the_last_part_of_the_assets_key() -> None:
    orders = returning(OrdersSchema, SOME_ERRORS, filter=True, key_prefix=["sales", "eu"])

    assert run(orders).written.keys() == {"sales/eu/orders", "sales/eu/orders__error_rows"}
    assert call(orders).written.keys() == {"sales/eu/orders", "sales/eu/orders__error_rows"}


def test_a_direct_call_yields_the_error_rows_as_a_materialization_with_the_frame_as_its_value() -> (
    None
):
    results = list(returning(OrdersSchema, SOME_ERRORS, filter=True)())

    (error_rows,) = [result for result in results if isinstance(result, dd.ErrorRows)]
    assert isinstance(error_rows, dg.AssetMaterialization)
    assert error_rows.asset_key == dg.AssetKey(ERROR_ROWS)
    assert error_rows.value["order_id"].to_list() == [2, 4]
    assert error_rows.metadata["dagster/row_count"].value == 2
    (table,) = [result for result in results if isinstance(result, dg.MaterializeResult)]
    assert table.value["order_id"].to_list() == [3, 5, 1]


def test_without_filter_nothing_is_written_to_the_error_rows() -> None:
    tables = kept_before()

    run(returning(OrdersSchema, SOME_ERRORS), tables=tables)

    assert tables.writes == []


def test_a_materialization_of_the_error_rows_is_logged_with_its_row_count() -> None:
    outcome = run(returning(OrdersSchema, SOME_ERRORS, filter=True))

    assert outcome.materializations.keys() == {"orders", ERROR_ROWS}
    assert outcome.materializations[ERROR_ROWS]["dagster/row_count"] == 2


def test_the_materialization_counts_what_was_returned_written_and_held_back() -> None:
    metadata = run(returning(OrdersSchema, SOME_ERRORS, filter=True)).materializations["orders"]

    assert metadata["dagster/row_count"] == 3
    assert metadata["dataframely/returned_row_count"] == 5
    assert metadata["dataframely/warn_row_count"] == 1
    assert metadata["dataframely/error_row_count"] == 2
    assert metadata["dataframely/error_ratio"] == 0.4
    key = metadata["dataframely/error_rows"]
    assert (key.to_user_string() if isinstance(key, dg.AssetKey) else key) == ERROR_ROWS


def test_no_valid_rows_names_how_many_rows_failed_which_rules() -> None:
    outcome = run(returning(OrdersSchema, ONLY_ERRORS, filter=True))

    for part in ("2", "amount|min", "amount|nullability"):
        assert part in outcome.message


# --- promise 1: the written table satisfies every error rule -------------------------------------


class InvoiceLinesSchema(dy.Schema):
    line_id = dy.Int64(primary_key=True)
    invoice_id = dy.String()
    is_main = dy.Bool()
    sku = dy.String(regex=r"^SKU-\d+$")

    @dy.rule()
    def one_main_line(cls) -> pl.Expr:
        return cls.is_main.col.sum().over("invoice_id") == 1


def invoice_lines(*rows: tuple[int, str, bool, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["line_id", "invoice_id", "is_main", "sku"], orient="row")


# Invoice A loses its main line to the regex, so its other lines are invalid afterwards.
BROKEN_BY_DROPPING = invoice_lines(
    (1, "A", True, "bad"),
    (2, "A", False, "SKU-2"),
    (3, "A", False, "SKU-3"),
    (4, "B", True, "SKU-4"),
    (5, "B", False, "SKU-5"),
)


def test_dataframelys_own_filter_returns_rows_that_its_schema_refuses() -> None:
    kept, _ = InvoiceLinesSchema.filter(BROKEN_BY_DROPPING)

    assert not InvoiceLinesSchema.is_valid(kept)


@both_frames
@pytest.mark.parametrize("execute", [run, call], ids=["run", "direct call"])
def test_rows_that_break_a_rule_once_others_are_dropped_are_error_rows_too(
    execute: Any, kind: Callable[[Any], Any]
) -> None:
    lines = returning(InvoiceLinesSchema, kind(BROKEN_BY_DROPPING), filter=True, name="lines")

    outcome = execute(lines)

    assert outcome.success
    assert outcome.rows("lines", "line_id") == [4, 5]
    assert InvoiceLinesSchema.is_valid(outcome.written["lines"])
    assert outcome.rows(
        "lines__error_rows", "line_id", "dy_rule__one_main_line", "dy_rule__sku__regex"
    ) == [(1, "valid", "invalid"), (2, "invalid", "valid"), (3, "invalid", "valid")]


def test_a_rule_that_only_breaks_after_dropping_fails_its_check_and_counts_the_rows() -> None:
    outcome = call(returning(InvoiceLinesSchema, BROKEN_BY_DROPPING, filter=True, name="lines"))

    assert outcome.failing == {
        "dy_rule__one_main_line": "ERROR",
        "dy_rule__sku__regex": "ERROR",
    }
    counts = {
        name: check.metadata["dataframely/failed_count"]
        for name, check in outcome.checks.items()
        if name in outcome.failing
    }
    assert counts == {"dy_rule__one_main_line": 2, "dy_rule__sku__regex": 1}
    assert outcome.materializations["lines"]["dataframely/error_row_count"] == 3


class ChainSchema(dy.Schema):
    """Each row needs the one before it: dropping the first drops all, round after round."""

    position = dy.Int64(min=1)

    @dy.rule()
    def has_predecessor(cls) -> pl.Expr:
        position = cls.position.col
        return (position == 1) | (position - 1).is_in(position.implode())


def test_the_kept_rows_are_evaluated_until_they_all_pass() -> None:
    frame = pl.DataFrame({"position": [1, 2, 5, 6, 7, 8]})

    outcome = call(returning(ChainSchema, frame, filter=True, name="chain"))

    assert outcome.rows("chain", "position") == [1, 2]
    assert outcome.rows("chain__error_rows", "position") == [5, 6, 7, 8]
    check = outcome.checks["dy_rule__has_predecessor"]
    assert check.metadata["dataframely/failed_count"] == 4


def test_error_rows_of_later_rounds_stand_in_the_order_of_the_returned_frame() -> None:
    frame = pl.DataFrame({"position": [8, 1, 7, 2, 6, 5]})

    outcome = call(returning(ChainSchema, frame, filter=True, name="chain"))

    assert outcome.rows("chain", "position") == [1, 2]
    assert sorted(outcome.rows("chain__error_rows", "position")) == [5, 6, 7, 8]


def test_a_run_whose_last_rows_fall_out_afterwards_fails_and_leaves_the_table() -> None:
    tables = kept_before("lines")
    frame = BROKEN_BY_DROPPING.filter(pl.col("invoice_id") == "A")

    outcome = run(
        returning(InvoiceLinesSchema, frame, filter=True, name="lines"),
        tables=tables,
    )

    assert outcome.error == "NoValidRowsError"
    assert tables.frames["lines"].columns == list(COLUMNS)
    assert tables.frames["lines__error_rows"]["line_id"].to_list() == [1, 2, 3]


def test_a_rule_over_all_rows_is_held_to_the_rows_that_are_kept() -> None:
    class Schema(dy.Schema):
        amount = dy.Int64(min=0)

        @dy.rule()
        def at_least_three_rows(cls) -> pl.Expr:
            return pl.len() >= 3

    outcome = call(returning(Schema, pl.DataFrame({"amount": [1, 2, -1]}), filter=True))

    assert outcome.error == "NoValidRowsError"
    assert outcome.written.keys() == {ERROR_ROWS}


X = pl.col("x")

# Each row: a rule that looks at other rows, values of `x` that satisfy it, and the position of the
# row that is dropped, after which it does not hold any more.
RULES_OVER_ROWS = [
    pytest.param(X.sum() == 3, [1, 2], 0, id="aggregate"),
    pytest.param(X.sum().over(X % 2) != 3, [1, 3, 2], 0, id="over"),
    pytest.param(pl.len() >= 3, [1, 2, 3], 0, id="length"),
    pytest.param(X.mean() * 2 >= X, [0, 0, 4, 4], 2, id="mean"),
    pytest.param(X - X.shift(1) <= 2, [0, 2, 4], 1, id="shift"),
    pytest.param(X.diff() == 1, [0, 1, 2], 1, id="difference"),
    pytest.param(X.cum_sum() <= 3, [3, -2, 2], 1, id="cumulative sum"),
    pytest.param(X.rolling_sum(2, min_samples=1) <= 4, [3, 0, 3], 1, id="rolling sum"),
    pytest.param(X.skew() < 0.5, [0, 0, 1, 1], 3, id="skew"),
    pytest.param(X.unique(maintain_order=True).len() == 2, [1, 2], 0, id="distinct values"),
    pytest.param(X.rank() == X, [1, 2, 3], 1, id="rank"),
    pytest.param(X.reverse() == X, [1, 2, 1], 2, id="reverse"),
    pytest.param(X.is_duplicated(), [1, 1], 0, id="duplicates"),
    pytest.param(pl.struct("x").is_duplicated(), [1, 1], 0, id="duplicates of a struct"),
    pytest.param(X.first() + 1 != X, [1, 3, 4], 0, id="first"),
    pytest.param(X.arg_min() == 0, [0, 5, 3], 0, id="position of the minimum"),
    pytest.param(X.forward_fill().is_not_null(), [1, None, 2], 0, id="forward fill"),
    pytest.param(X.null_count() == 1, [None, 1], 0, id="null count"),
    pytest.param(pl.int_range(pl.len()) == X, [0, 1, 2], 0, id="row number"),
    pytest.param(X.rle_id() == X, [0, 1, 2], 0, id="runs"),
    pytest.param((X == 0) | (X - 1).is_in(X.implode()), [0, 1, 2], 1, id="membership"),
    pytest.param(pl.max_horizontal(X, X.max()) == 3, [1, 3], 1, id="across columns"),
    pytest.param(pl.concat_list(X, X.shift(1)).list.sum() <= 4, [3, 0, 3], 1, id="list"),
    pytest.param(X.cast(pl.String).str.join("") == "12", [1, 2], 0, id="joined text"),
    pytest.param(pl.when(X > 0).then(X.count() >= 2).otherwise(True), [1, 2], 0, id="branch"),
    pytest.param(
        X.map_batches(lambda x: x.is_in([x.len() - 2]), return_dtype=pl.Boolean),
        [0, 0],
        0,
        id="Python function of the column",
    ),
]


@both_frames
@pytest.mark.parametrize(("rule", "values", "dropped"), RULES_OVER_ROWS)
def test_however_a_rule_looks_at_other_rows_it_holds_for_what_is_written(
    rule: pl.Expr, values: list[int | None], dropped: int, kind: Callable[[Any], Any]
) -> None:
    class Schema(dy.Schema):
        x = dy.Int64(nullable=True)
        keep = dy.Bool(check=lambda keep: keep)

        @dy.rule()
        def looks_around(cls) -> pl.Expr:
            return rule

    frame = pl.DataFrame(
        {"x": values, "keep": [position != dropped for position in range(len(values))]},
        schema={"x": pl.Int64, "keep": pl.Boolean},
    )
    kept, failure = Schema.filter(frame)
    assert failure.counts() == {"keep|check": 1}
    assert not Schema.is_valid(kept)

    outcome = call(returning(Schema, kind(frame), filter=True))

    assert outcome.checks["dy_rule__looks_around"].verdict == "ERROR"
    if outcome.success:
        assert Schema.is_valid(outcome.written["orders"])
    else:
        assert outcome.error == "NoValidRowsError"


def test_a_warn_rule_over_groups_holds_no_row_back() -> None:
    class Schema(InvoiceLinesSchema):
        __dagster_dataframely__ = {"severity": {"one_main_line": "warn"}}

    outcome = call(returning(Schema, BROKEN_BY_DROPPING, filter=True, name="lines"))

    assert sorted(outcome.rows("lines", "line_id")) == [2, 3, 4, 5]
    assert outcome.rows("lines__error_rows", "line_id") == [1]


# --- promise 3: the error rows describe the latest run -------------------------------------------


@pytest.mark.parametrize("repaired", [VALID, WARN, orders_frame()], ids=["valid", "warn", "empty"])
def test_a_run_without_error_rows_writes_them_empty(repaired: pl.DataFrame) -> None:
    tables = Tables()
    run(returning(OrdersSchema, SOME_ERRORS, filter=True), tables=tables)
    assert tables.frames[ERROR_ROWS].height == 2

    outcome = run(returning(OrdersSchema, repaired, filter=True), tables=tables)

    assert tables.frames[ERROR_ROWS].height == 0
    assert outcome.materializations[ERROR_ROWS]["dagster/row_count"] == 0


def test_a_later_run_replaces_the_error_rows_of_the_run_before() -> None:
    tables = Tables()
    run(returning(OrdersSchema, SOME_ERRORS, filter=True), tables=tables)

    run(returning(OrdersSchema, ONLY_ERRORS, filter=True), tables=tables)

    assert tables.frames[ERROR_ROWS]["order_id"].to_list() == [1, 2]


def test_error_rows_belong_to_their_partition() -> None:
    regions = dg.StaticPartitionsDefinition(["north", "south"])
    frames = {"north": SOME_ERRORS, "south": VALID}

    @dd.asset(OrdersSchema, filter=True, partitions_def=regions)
    def orders(context: dg.AssetExecutionContext) -> pl.DataFrame:
        return frames[context.partition_key]

    tables = Tables()
    for region in ("north", "south"):
        run(orders, tables=tables, partition_key=region)

    heights = {key: frame.height for key, frame in tables.frames.items()}
    assert heights == {
        "orders@north": 3,
        f"{ERROR_ROWS}@north": 2,
        "orders@south": 2,
        f"{ERROR_ROWS}@south": 0,
    }


def test_a_run_that_raises_before_validation_leaves_the_error_rows() -> None:
    @dd.asset(OrdersSchema, filter=True)
    def orders() -> pl.DataFrame:
        raise ValueError("the source is down")

    tables = kept_before()

    outcome = run(orders, tables=tables)

    assert (outcome.error, outcome.message) == ("ValueError", "the source is down")
    assert tables.writes == []


# --- promise 4: evidence first -------------------------------------------------------------------


def test_error_rows_are_written_before_the_table() -> None:
    tables = Tables()

    run(returning(OrdersSchema, SOME_ERRORS, filter=True), tables=tables)

    assert tables.writes == [ERROR_ROWS, "orders"]


def test_a_direct_call_yields_the_error_rows_then_the_table_then_the_checks() -> None:
    order = call(returning(OrdersSchema, SOME_ERRORS, filter=True)).order

    assert order[:2] == (f"write {ERROR_ROWS}", "write orders")
    assert all(entry.startswith("check ") for entry in order[2:])


def test_error_rows_and_checks_are_there_when_no_valid_rows_fail_the_run() -> None:
    outcome = run(returning(OrdersSchema, ONLY_ERRORS, filter=True))

    assert outcome.error == "NoValidRowsError"
    assert outcome.written.keys() == {ERROR_ROWS}
    assert outcome.materializations.keys() == {ERROR_ROWS}
    assert len(outcome.checks) == 1 + len(RULE_COLUMNS)


class BrokenStore(Tables):
    """An IO manager that cannot store one key."""

    def __init__(self, broken: str) -> None:
        super().__init__()
        self.broken = broken

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        if context.asset_key.to_user_string() == self.broken:
            raise OSError("disk full")
        super().handle_output(context, obj)


@pytest.mark.parametrize(("broken", "written"), [(ERROR_ROWS, []), ("orders", [ERROR_ROWS])])
def test_a_write_that_fails_fails_the_run_with_the_io_managers_own_error(
    broken: str, written: list[str]
) -> None:
    tables = BrokenStore(broken)

    outcome = run(returning(OrdersSchema, SOME_ERRORS, filter=True), tables=tables)

    assert not outcome.success
    assert outcome.error == "OSError"
    assert outcome.message.startswith("disk full")
    assert tables.writes == written
    assert outcome.checks == {}
    assert broken not in outcome.materializations


# --- storage and settings around it --------------------------------------------------------------


def test_error_rows_go_through_the_assets_own_io_manager() -> None:
    warehouse = Tables()
    orders = returning(OrdersSchema, SOME_ERRORS, filter=True, io_manager_key="warehouse")

    elsewhere = run(orders, resources={"warehouse": warehouse})

    assert elsewhere.success
    assert elsewhere.written == {}
    assert warehouse.writes == [ERROR_ROWS, "orders"]


def test_dagsters_default_io_manager_stores_and_loads_both_tables(tmp_path: Any) -> None:
    orders = returning(OrdersSchema, SOME_ERRORS, filter=True)

    @dg.asset
    def counted(orders: pl.DataFrame) -> int:
        return orders.height

    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as instance:
        result = dg.materialize(
            [orders, counted],
            instance=instance,
            resources={"io_manager": dg.FilesystemIOManager(base_dir=str(tmp_path))},
        )

    assert result.output_for_node("counted") == 3
    assert (tmp_path / ERROR_ROWS).exists()


def test_filter_on_a_schema_without_error_rules_holds_nothing_back() -> None:
    class NotesSchema(dy.Schema):
        note = dy.String(max_length=3, metadata={"dagster_dataframely": {"severity": "warn"}})

    notes = returning(
        NotesSchema, pl.DataFrame({"note": [None, "ok", "too long"]}), filter=True, name="notes"
    )

    outcome = run(notes)

    assert outcome.success
    assert outcome.failing == {
        "dy_rule__note__nullability": "WARN",
        "dy_rule__note__max_length": "WARN",
    }
    assert outcome.rows("notes", "note") == ["ok", None, "too long"]
    assert outcome.written["notes__error_rows"].height == 0


def test_a_collapsed_run_holds_back_the_same_rows() -> None:
    outcomes = [
        call(returning(OrdersSchema, SOME_ERRORS, filter=True, check_granularity=granularity))
        for granularity in ("rule", "column", "schema")
    ]

    for outcome in outcomes[1:]:
        assert outcome.written["orders"].equals(outcomes[0].written["orders"])
        assert outcome.written[ERROR_ROWS].equals(outcomes[0].written[ERROR_ROWS])
