"""`DataframelyChecks` in YAML: the same checks on a table that something else writes."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster.components.testing import create_defs_folder_sandbox

import dagster_dataframely as dd

TABLE = """
    import dataframely as dy
    import polars as pl


    class LinesSchema(dy.Schema):
        line = dy.Int64(primary_key=True)
        amount = dy.Float64(min=0.0)


    def read_lines(context) -> pl.DataFrame:
        return pl.DataFrame({"line": [1, 1], "amount": [1.0, -2.0]})
"""


def defs_of(attributes: dict[str, Any], table: str = TABLE) -> dg.Definitions:
    """Load a project folder with one `DataframelyChecks` and the module that it names."""
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(
            component_cls=dd.DataframelyChecks,
            defs_path="lines",
            defs_yaml_contents={
                "type": "dagster_dataframely.DataframelyChecks",
                "attributes": attributes,
            },
        )
        for scaffolded in folder.glob("*.py"):
            scaffolded.unlink()
        (folder / "table.py").write_text(textwrap.dedent(table))
        with sandbox.build_all_defs() as defs:
            return defs


@pytest.fixture(scope="module")
def attributes() -> dict[str, Any]:
    return {"asset": "dbt/lines", "schema": ".table.LinesSchema", "fn": ".table.read_lines"}


def specs(defs: dg.Definitions) -> dict[str, dg.AssetCheckSpec]:
    (checks,) = defs.asset_checks or ()
    return {spec.name: spec for spec in checks.check_specs}


def test_the_checks_are_those_of_the_schema_on_the_named_asset(attributes: Any) -> None:
    found = specs(defs_of(attributes))

    assert {spec.asset_key for spec in found.values()} == {dg.AssetKey(["dbt", "lines"])}
    assert list(found) == [
        "dy_schema__columns",
        "dy_rule__primary_key",
        "dy_rule__line__nullability",
        "dy_rule__amount__nullability",
        "dy_rule__amount__min",
        "dy_rule__amount__inf",
        "dy_rule__amount__nan",
    ]
    assert all(spec.blocking for spec in found.values())


def test_the_settings_of_an_asset_hold_for_the_checks(attributes: Any) -> None:
    found = specs(
        defs_of(
            {**attributes, "check_granularity": "column", "blocking": False, "redact": ["line"]}
        )
    )

    assert list(found) == [
        "dy_schema__columns",
        "dy_schema__rules",
        "dy_col__line",
        "dy_col__amount",
    ]
    assert not any(spec.blocking for spec in found.values())


def test_the_function_gives_the_frame(attributes: Any) -> None:
    defs = defs_of({**attributes, "blocking": False})
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process()

    failed = {
        check.check_name for check in result.get_asset_check_evaluations() if not check.passed
    }
    assert failed == {"dy_rule__primary_key", "dy_rule__amount__min"}


def test_a_cron_schedule_executes_the_checks(attributes: Any) -> None:
    defs = defs_of({**attributes, "cron_schedule": "0 6 * * *"})

    (schedule,) = defs.schedules or ()
    assert schedule.cron_schedule == "0 6 * * *"
    selected = schedule.job.selection.resolve_checks(defs.resolve_asset_graph())
    assert {key.name for key in selected} == set(specs(defs))


def test_partitions_and_an_automation_condition_are_dagsters_own(attributes: Any) -> None:
    found = specs(
        defs_of(
            {
                **attributes,
                "partitions_def": {"type": "daily", "start_date": "2026-01-01"},
                "automation_condition": "{{ automation_condition.eager() }}",
            }
        )
    )

    spec = found["dy_rule__primary_key"]
    assert spec.partitions_def == dg.DailyPartitionsDefinition("2026-01-01")
    assert spec.automation_condition is not None


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ({"schema": ".table.LineSchema"}, ["LineSchema", "LinesSchema"]),
        ({"fn": ".table.read_line"}, ["read_line", "read_lines"]),
        ({"blocking": "perhaps"}, ["blocking", "perhaps"]),
        ({"cron_schedule": "every morning"}, ["cron_schedule", "every morning", "0 6 * * *"]),
        ({"check_granularity": "rules"}, ["check_granularity", "rules", "'rule'"]),
        ({"assets": "dbt/lines"}, ["assets", "asset"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_mistake_is_named_with_its_line_and_what_is_allowed(
    attributes: Any, changed: dict[str, Any], parts: list[str]
) -> None:
    with pytest.raises(Exception) as refused:  # noqa: PT011 - the class is Dagster's private one
        defs_of({**attributes, **changed})

    messages = []
    error: BaseException | None = refused.value
    while error is not None:
        messages.append(str(error))
        error = error.__cause__
    told = "\n".join(messages)
    assert "defs.yaml" in told
    assert all(part in told for part in parts), told


def test_the_form_in_the_app_and_the_type_describe_themselves() -> None:
    assert dd.DataframelyChecks.get_spec().produces == ["asset_check"]
    assert dd.DataframelyChecks.get_form_config().label == "Dataframely checks"


def scaffold(tmp_path: Path, name: str, **params: Any) -> Path:
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.scaffold_component(
            component_cls=dd.DataframelyChecks, defs_path=name, scaffold_params=params
        )
        copy = tmp_path / "copy"
        copy.mkdir()
        for file in folder.iterdir():
            if file.is_file():
                (copy / file.name).write_text(file.read_text())
        with sandbox.build_all_defs() as defs:
            (copy / "checks").write_text("\n".join(specs(defs)))
        return copy


def test_what_is_scaffolded_loads_as_it_stands(tmp_path: Path) -> None:
    written = scaffold(tmp_path, "orders")

    assert sorted(file.name for file in written.iterdir()) == ["checks", "defs.yaml", "schema.py"]
    assert "asset: orders" in (written / "defs.yaml").read_text()
    assert "dy_rule__amount__min" in (written / "checks").read_text()


def test_a_schema_can_be_inferred_from_a_file(tmp_path: Path) -> None:
    data = tmp_path / "orders.csv"
    data.write_text("order_id,amount\n1,2.5\n2,3.5\n")

    written = scaffold(tmp_path, "orders", asset="dbt/orders", from_data=str(data))

    assert "asset: dbt/orders" in (written / "defs.yaml").read_text()
    assert "order_id = dy.Int64" in (written / "schema.py").read_text()
