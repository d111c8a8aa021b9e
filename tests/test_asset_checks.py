"""`dd.asset_checks`: the checks of a schema on a table that something else writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd


class LinesSchema(dy.Schema):
    line = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)
    note = dy.String(
        nullable=True, max_length=3, metadata={"dagster_dataframely": {"severity": "warn"}}
    )


VALID = pl.DataFrame({"line": [1, 2], "amount": [1.0, 2.0], "note": ["a", None]})
BROKEN = pl.DataFrame({"line": [1, 1], "amount": [1.0, -2.0], "note": ["a", "too long"]})


def checks_of(result: dg.ExecuteInProcessResult) -> dict[str, tuple[bool, str]]:
    return {
        check.check_name: (check.passed, check.severity.value)
        for check in result.get_asset_check_evaluations()
    }


def failing(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    return {name: severity for name, (passed, severity) in checks_of(result).items() if not passed}


def run(frame: Any, storage: Any = None, **arguments: Any) -> dg.ExecuteInProcessResult:
    """Materialize a plain asset that returns a frame, and the checks on it, in one run."""

    @dg.asset
    def lines() -> Any:
        return frame

    checks = dd.asset_checks(LinesSchema, asset=lines, **arguments)
    defs = dg.Definitions(
        assets=[lines],
        asset_checks=[checks],
        resources={"io_manager": storage or dg.InMemoryIOManager()},
    )
    return defs.resolve_implicit_global_asset_job_def().execute_in_process(raise_on_error=False)


def test_a_table_is_loaded_through_the_io_manager_of_its_asset() -> None:
    result = run(VALID)

    assert result.success
    assert checks_of(result) == {
        "dy_schema__columns": (True, "ERROR"),
        "dy_rule__primary_key": (True, "ERROR"),
        "dy_rule__line__nullability": (True, "ERROR"),
        "dy_rule__amount__nullability": (True, "ERROR"),
        "dy_rule__amount__min": (True, "ERROR"),
        "dy_rule__amount__inf": (True, "ERROR"),
        "dy_rule__amount__nan": (True, "ERROR"),
        "dy_rule__note__max_length": (True, "WARN"),
    }


def test_each_failing_check_has_its_own_severity_and_the_failing_rows() -> None:
    result = run(BROKEN)

    assert not result.success
    assert failing(result) == {
        "dy_rule__primary_key": "ERROR",
        "dy_rule__amount__min": "ERROR",
        "dy_rule__note__max_length": "WARN",
    }
    evaluations = {check.check_name: check for check in result.get_asset_check_evaluations()}
    sample = evaluations["dy_rule__amount__min"].metadata["dataframely/failed_sample"]
    assert [record.data["amount"] for record in sample.records] == [-2.0]


def test_checks_that_do_not_block_leave_the_run_successful() -> None:
    result = run(BROKEN, blocking=False)

    assert result.success
    assert failing(result)["dy_rule__amount__min"] == "ERROR"


def test_checks_collapse_as_those_of_an_asset_do() -> None:
    result = run(BROKEN, blocking=False, check_granularity="column")

    assert failing(result) == {
        "dy_schema__rules": "ERROR",
        "dy_col__amount": "ERROR",
        "dy_col__note": "WARN",
    }


def test_a_table_of_no_rows_passes() -> None:
    assert failing(run(VALID.clear())) == {}


def test_a_missing_column_fails_in_the_words_of_an_asset() -> None:
    @dd.asset(LinesSchema)
    def lines() -> pl.DataFrame:
        return VALID.drop("amount")

    of_the_asset = dg.materialize([lines], raise_on_error=False)
    of_the_checks = run(VALID.drop("amount"))

    def message(result: dg.ExecuteInProcessResult) -> str:
        (failure,) = result.filter_events(lambda event: event.is_step_failure)
        return failure.step_failure_data.error.cause.message

    assert message(of_the_checks) == message(of_the_asset)
    assert failing(of_the_checks) == {"dy_schema__columns": "ERROR"}


def test_the_parquet_table_is_scanned_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[type] = []
    original = dd.ParquetIOManager
    storage = original(base_dir=str(tmp_path))
    from dagster_dataframely import table_checks

    validate = table_checks.validate
    monkeypatch.setattr(
        table_checks,
        "validate",
        lambda plan, frame, **kwargs: loaded.append(type(frame)) or validate(plan, frame, **kwargs),
    )

    assert run(VALID, storage).success
    assert loaded == [pl.LazyFrame]


@pytest.mark.parametrize("stream", [True, False])
def test_a_function_may_give_the_frame(stream: bool) -> None:
    def read(context: dg.AssetCheckExecutionContext) -> pl.LazyFrame:
        context.log.info("reading")
        return BROKEN.lazy()

    checks = dd.asset_checks(
        LinesSchema, asset=["dbt", "lines"], fn=read, blocking=False, stream=stream
    )
    defs = dg.Definitions(assets=[dg.AssetSpec(["dbt", "lines"])], asset_checks=[checks])
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process()

    assert sorted(failing(result)) == [
        "dy_rule__amount__min",
        "dy_rule__note__max_length",
        "dy_rule__primary_key",
    ]


def test_a_function_that_returns_none_has_no_data_and_passes() -> None:
    checks = dd.asset_checks(LinesSchema, asset="lines", fn=lambda: None)

    assert all(result.passed for result in checks())


def test_what_is_no_frame_is_refused_with_what_the_checks_take() -> None:
    checks = dd.asset_checks(LinesSchema, asset="lines", fn=lambda: [1])

    with pytest.raises(dd.errors.InvalidReturnError) as refused:
        list(checks())

    assert str(refused.value) == (
        "The table of asset 'lines' was read as a list. The checks take a pl.DataFrame, a pl.LazyFrame, or "
        "None where there is no data."
    )


def test_checks_of_a_partition_look_at_that_partition(tmp_path: Path) -> None:
    days = dg.StaticPartitionsDefinition(["mon", "tue"])

    @dg.asset(partitions_def=days)
    def lines(context) -> pl.DataFrame:
        return VALID if context.partition_key == "mon" else BROKEN

    checks = dd.asset_checks(LinesSchema, asset=lines, blocking=False, partitions_def=days)
    defs = dg.Definitions(
        assets=[lines],
        asset_checks=[checks],
        resources={"io_manager": dd.ParquetIOManager(base_dir=str(tmp_path))},
    )
    job = defs.resolve_implicit_global_asset_job_def()

    assert failing(job.execute_in_process(partition_key="mon")) == {}
    assert len(failing(job.execute_in_process(partition_key="tue"))) == 3


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(dd.errors.InvalidSchemaError, match=r"^dd\.asset_checks takes a subclass"):
        dd.asset_checks(dict, asset="lines")  # type: ignore[arg-type]
