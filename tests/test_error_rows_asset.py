"""The error rows as an asset: their node in the graph, their history, and whose key they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd


class LinesSchema(dy.Schema):
    """Lines of an invoice."""

    line = dy.Int64(primary_key=True, description="Position on the invoice.")
    amount = dy.Float64(min=0.0)


MIXED = pl.DataFrame({"line": [1, 2, 3], "amount": [1.0, -1.0, 3.0]})
CLEAN = MIXED.filter(pl.col("amount") >= 0)


def lines_asset(frame: pl.DataFrame = MIXED, **arguments: Any) -> dg.AssetsDefinition:
    @dd.asset(LinesSchema, filter=True, **arguments)
    def lines() -> pl.DataFrame:
        return frame

    return lines


# --- the spec --------------------------------------------------------------------------------------


def test_the_spec_has_the_columns_without_constraints_and_then_one_a_rule() -> None:
    spec = dd.error_rows_spec(lines_asset())
    columns = spec.metadata["dagster/column_schema"].schema.columns

    assert [(column.name, column.type) for column in columns] == [
        ("line", "Int64"),
        ("amount", "Float64"),
        ("dy_rule__primary_key", "String"),
        ("dy_rule__line__nullability", "String"),
        ("dy_rule__amount__nullability", "String"),
        ("dy_rule__amount__min", "String"),
        ("dy_rule__amount__inf", "String"),
        ("dy_rule__amount__nan", "String"),
    ]
    assert columns[0].description == "Position on the invoice."
    assert all(column.constraints.nullable and not column.constraints.other for column in columns)


@pytest.mark.parametrize("check_granularity", ["rule", "column", "schema"])
def test_the_columns_of_the_spec_are_those_that_are_written(check_granularity: Any) -> None:
    lines = lines_asset(check_granularity=check_granularity)
    spec = dd.error_rows_spec(lines)
    (error_rows,) = (result for result in lines() if isinstance(result, dd.ErrorRows))

    columns = spec.metadata["dagster/column_schema"].schema.columns
    assert [column.name for column in columns] == error_rows.value.columns


def test_the_spec_has_the_partitions_group_owners_and_storage_of_the_asset() -> None:
    days = dg.DailyPartitionsDefinition("2026-01-01")
    spec = dd.error_rows_spec(
        lines_asset(
            key=["sales", "lines"],
            group_name="sales",
            owners=["team:sales"],
            partitions_def=days,
            metadata={"partition_expr": "day", "schema": "sales", "dagster/uri": "s3://lines"},
            io_manager_key="warehouse_io",
        )
    )

    assert spec.key == dg.AssetKey(["sales", "lines__error_rows"])
    assert [dep.asset_key for dep in spec.deps] == [dg.AssetKey(["sales", "lines"])]
    assert spec.group_name == "sales"
    assert spec.owners == ["team:sales"]
    assert spec.partitions_def == days
    assert spec.metadata["partition_expr"] == "day"
    assert spec.metadata["schema"] == "sales"
    assert "dagster/uri" not in spec.metadata
    assert spec.metadata["dagster/io_manager_key"] == "warehouse_io"


def test_the_spec_follows_an_asset_whose_spec_was_mapped() -> None:
    lines = lines_asset().map_asset_specs(lambda spec: spec.replace_attributes(group_name="sales"))

    assert dd.error_rows_spec(lines).group_name == "sales"


@dg.asset
def plain() -> None: ...


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            plain,
            "dd.error_rows_spec takes an asset that dd.asset built, and 'plain' has no Dataframely schema. "
            "Build it with @dd.asset(YourSchema, filter=True).",
        ),
        ("lines", "dd.error_rows_spec takes an asset that dd.asset built, and this is 'lines'."),
    ],
    ids=["a plain asset", "a key"],
)
def test_what_has_no_error_rows_is_refused(given: Any, message: str) -> None:
    with pytest.raises(dd.errors.InvalidFunctionError) as refused:
        dd.error_rows_spec(given)

    assert str(refused.value) == message


def test_an_asset_downstream_loads_the_error_rows_by_their_key(tmp_path: Path) -> None:
    lines = lines_asset()
    seen: list[pl.DataFrame] = []

    @dg.asset
    def triage(lines__error_rows: pl.DataFrame) -> None:
        seen.append(lines__error_rows)

    resources = {"io_manager": dd.ParquetIOManager(base_dir=str(tmp_path))}
    dg.materialize([lines], resources=resources)
    dg.materialize([triage, dd.error_rows_spec(lines)], resources=resources)

    assert seen[0]["line"].to_list() == [2]
    assert seen[0]["dy_rule__amount__min"].to_list() == ["invalid"]


# --- history and automation ------------------------------------------------------------------------


def test_each_run_adds_to_the_history_of_the_error_rows() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        for frame in (MIXED, CLEAN):
            dg.materialize(
                [lines_asset(frame)],
                instance=instance,
                resources={"io_manager": dg.InMemoryIOManager()},
            )
        records = instance.fetch_materializations(dg.AssetKey("lines__error_rows"), limit=5).records

    counts = [
        record.asset_materialization.metadata["dagster/row_count"].value for record in records
    ]
    assert counts == [0, 1]


def test_the_history_says_how_many_rows_failed_each_rule_and_of_which_asset() -> None:
    (error_rows,) = (result for result in lines_asset()() if isinstance(result, dd.ErrorRows))

    assert error_rows.metadata["dataframely/error_rows_of"].asset_key == dg.AssetKey("lines")
    counts = {
        record.data["rule"]: record.data["failed_count"]
        for record in error_rows.metadata["dataframely/failed_counts"].records
    }
    assert counts["amount|min"] == 1
    assert sum(counts.values()) == 1


def test_an_eager_asset_downstream_is_requested_once_error_rows_were_written() -> None:
    lines = lines_asset()

    @dg.asset(
        deps=[dg.AssetKey("lines__error_rows")],
        automation_condition=dg.AutomationCondition.eager(),
    )
    def triage() -> None: ...

    defs = dg.Definitions(
        assets=[lines, dd.error_rows_spec(lines), triage],
        resources={"io_manager": dg.InMemoryIOManager()},
    )
    with dg.DagsterInstance.ephemeral() as instance:
        before = dg.evaluate_automation_conditions(defs=defs, instance=instance)
        defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey("lines")]
        )
        after = dg.evaluate_automation_conditions(
            defs=defs, instance=instance, cursor=before.cursor
        )

    assert before.get_num_requested(dg.AssetKey("triage")) == 0
    assert after.get_num_requested(dg.AssetKey("triage")) == 1


# --- whose key it is -------------------------------------------------------------------------------


def _with_another_owner(called: list[str]) -> list[Any]:
    @dd.asset(LinesSchema, filter=True)
    def lines() -> pl.DataFrame:
        called.append("lines")
        return MIXED

    @dg.asset
    def lines__error_rows() -> None:
        called.append("lines__error_rows")

    return [lines, lines__error_rows]


COLLISION = (
    "The error rows of 'lines' are written under 'lines__error_rows', and another asset has that key. Rename "
    "one of the two, or set `filter=False`."
)


def _run_of_one_asset(assets: list[Any]) -> dg.ExecuteInProcessResult:
    return dg.materialize(assets, selection=["lines"], raise_on_error=False)


def _run_of_all_assets(assets: list[Any]) -> dg.ExecuteInProcessResult:
    return dg.materialize(assets, raise_on_error=False)


def _run_of_a_job_in_a_location(assets: list[Any]) -> dg.ExecuteInProcessResult:
    job = dg.define_asset_job("only_lines", selection=["lines"])
    defs = dg.Definitions(assets=assets, jobs=[job])
    return defs.resolve_job_def("only_lines").execute_in_process(raise_on_error=False)


@pytest.mark.parametrize(
    "run", [_run_of_one_asset, _run_of_all_assets, _run_of_a_job_in_a_location]
)
def test_a_key_that_another_asset_has_fails_the_run_before_the_function_is_called(run: Any) -> None:
    called: list[str] = []

    result = run(_with_another_owner(called))

    failures = result.filter_events(lambda event: event.is_step_failure)
    failure = next(event for event in failures if event.step_key == "lines")
    error = failure.step_failure_data.error.cause
    assert error.cls_name == "ErrorRowsKeyCollisionError"
    assert COLLISION in error.message
    assert "lines" not in called


@pytest.mark.parametrize("with_a_spec_of_the_user", [False, True])
def test_a_spec_of_that_key_is_no_collision(with_a_spec_of_the_user: bool) -> None:
    lines = lines_asset()
    spec = (
        dg.AssetSpec("lines__error_rows") if with_a_spec_of_the_user else dd.error_rows_spec(lines)
    )

    result = dg.materialize(
        [lines, spec], resources={"io_manager": dg.InMemoryIOManager()}, raise_on_error=False
    )

    assert result.success


# --- sizes -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("either_mode")
def test_a_primary_key_of_duplicates_only_leaves_no_valid_row() -> None:
    lines = lines_asset(pl.DataFrame({"line": [1, 1, 2, 2], "amount": [1.0, 2.0, 3.0, 4.0]}))

    with pytest.raises(dd.errors.NoValidRowsError, match="All 4 rows failed an error rule"):
        list(lines())


@pytest.mark.parametrize("stream", [False, True])
def test_a_million_error_rows_are_held_back(stream: bool) -> None:
    rows = 1_000_000
    frame = pl.select(line=pl.int_range(rows + 1)).with_columns(
        amount=pl.when(pl.col("line") == 7).then(1.0).otherwise(-1.0)
    )

    @dd.asset(LinesSchema, filter=True, stream=stream)
    def lines() -> pl.LazyFrame:
        return frame.lazy()

    error_rows, table, *_ = lines()

    assert error_rows.value.height == rows
    assert table.value["line"].to_list() == [7]


@pytest.mark.usefixtures("either_mode")
def test_no_rows_at_all_are_written_as_an_empty_table_and_empty_error_rows() -> None:
    error_rows, table, *checks = lines_asset(MIXED.clear())()

    assert (error_rows.value.height, table.value.height) == (0, 0)
    assert all(check.passed for check in checks)
