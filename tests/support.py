"""What the specification tests share: running an asset, calling it, and reading what was left.

`run` executes assets in a Dagster run in this process, over tables kept in memory; `call` calls
one asset directly, as a unit test does. Both give an `Outcome`, so that a test can say that the
two agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import dagster as dg
import polars as pl

import dagster_dataframely as dd


@cache
def shared_instance() -> dg.DagsterInstance:
    """One instance in memory for the whole session: setting one up costs more than most tests."""
    return dg.DagsterInstance.ephemeral()


class Tables(dg.IOManager):
    """Tables in memory, by asset key (and partition key), with the order they were written in."""

    def __init__(self, frames: Mapping[str, pl.DataFrame] | None = None) -> None:
        self.frames: dict[str, pl.DataFrame] = dict(frames or {})
        self.writes: list[str] = []

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Keep the frame, collected."""
        name = self._name(context)
        self.frames[name] = obj.lazy().collect()
        self.writes.append(name)

    def load_input(self, context: dg.InputContext) -> Any:
        """Hand out the frame, lazy where the parameter is annotated so."""
        frame = self.frames[self._name(context)]
        lazy = getattr(context.dagster_type, "typing_type", None) is pl.LazyFrame
        return frame.lazy() if lazy else frame

    @staticmethod
    def _name(context: dg.InputContext | dg.OutputContext) -> str:
        key = context.asset_key.to_user_string()
        return f"{key}@{context.asset_partition_key}" if context.has_asset_partitions else key


@dataclass(frozen=True)
class Check:
    """One check's result."""

    passed: bool
    severity: str
    metadata: dict[str, Any]

    @property
    def verdict(self) -> str:
        """`pass`, or the severity at which the check failed: `ERROR` or `WARN`."""
        return "pass" if self.passed else self.severity


@dataclass(frozen=True)
class Outcome:
    """What one run, or one direct call, left behind."""

    #: Whether it ended without an error.
    success: bool
    #: The frames that it wrote (a run) or yielded (a direct call), by key.
    written: dict[str, pl.DataFrame] = field(default_factory=dict)
    #: The checks that reported, by name.
    checks: dict[str, Check] = field(default_factory=dict)
    #: The metadata of each materialization, by key.
    materializations: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: What happened, in order: `write <key>` and `check <name>` entries.
    order: tuple[str, ...] = ()
    #: The name of the error's class, where it failed.
    error: str | None = None
    #: The error's message, where it failed.
    message: str = ""

    @property
    def verdicts(self) -> dict[str, str]:
        """Each check's verdict: `pass`, `ERROR` or `WARN`."""
        return {name: check.verdict for name, check in self.checks.items()}

    @property
    def failing(self) -> dict[str, str]:
        """The verdicts of the failing checks alone."""
        return {name: verdict for name, verdict in self.verdicts.items() if verdict != "pass"}

    def rows(self, key: str, *columns: str) -> list[Any]:
        """Rows written under a key: all columns as tuples, or the values of one column."""
        frame = self.written[key]
        if len(columns) == 1:
            return frame[columns[0]].to_list()
        return frame.select(columns).rows() if columns else frame.rows()


def run(
    *assets: Any,
    tables: Tables | None = None,
    raise_on_error: bool = False,
    **arguments: Any,
) -> Outcome:
    """Execute assets in one run in this process and say what it left behind."""
    tables = Tables() if tables is None else tables
    already = len(tables.writes)
    resources = {"io_manager": tables, **arguments.pop("resources", {})}
    result = dg.materialize(
        list(assets),
        resources=resources,
        raise_on_error=raise_on_error,
        instance=shared_instance(),
        **arguments,
    )
    checks = {
        evaluation.check_name: Check(
            evaluation.passed, evaluation.severity.value, plain(evaluation.metadata)
        )
        for evaluation in result.get_asset_check_evaluations()
    }
    materializations = {
        event.materialization.asset_key.to_user_string(): plain(event.materialization.metadata)
        for event in result.all_events
        if event.is_step_materialization
    }
    error, message = _step_failure(result)
    written = {name: tables.frames[name] for name in tables.writes[already:]}
    return Outcome(
        success=result.success,
        written=written,
        checks=checks,
        materializations=materializations,
        order=tuple(f"write {name}" for name in written)
        + tuple(f"check {name}" for name in checks),
        error=error,
        message=message,
    )


def call(asset: dg.AssetsDefinition, *args: Any, **kwargs: Any) -> Outcome:
    """Call an asset directly, outside a run, and say what it yielded before it ended or raised.

    The context is given whether or not the function takes one, which Dagster allows.
    """
    context = dg.build_asset_context(instance=shared_instance())
    written: dict[str, pl.DataFrame] = {}
    checks: dict[str, Check] = {}
    materializations: dict[str, dict[str, Any]] = {}
    order: list[str] = []
    error, message = None, ""

    def take_checks(results: Iterable[dg.AssetCheckResult]) -> None:
        for result in results:
            name = str(result.check_name)
            checks[name] = Check(result.passed, result.severity.value, plain(result.metadata))
            order.append(f"check {name}")

    try:
        for result in asset(context, *args, **kwargs):
            if isinstance(result, dg.AssetCheckResult):
                take_checks([result])
                continue
            key = (result.asset_key or asset.key).to_user_string()
            assert isinstance(result, (dg.MaterializeResult, dd.ErrorRows))
            written[key] = result.value.lazy().collect()
            materializations[key] = plain(result.metadata)
            order.append(f"write {key}")
            if isinstance(result, dg.MaterializeResult):
                take_checks(result.check_results or [])
    except dd.errors.DataframelyError as raised:
        error, message = type(raised).__name__, str(raised)
    return Outcome(
        success=error is None,
        written=written,
        checks=checks,
        materializations=materializations,
        order=tuple(order),
        error=error,
        message=message,
    )


def returning(schema: Any, value: Any, *, name: str = "orders", **arguments: Any) -> Any:
    """Declare an asset whose function takes nothing and returns `value`."""

    @dd.asset(schema, name=name, **arguments)
    def function() -> Any:
        return value

    return function


def plain(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Metadata with Dagster's wrappers taken off; a table becomes a list of its rows' mappings."""
    return {name: _plain_value(value) for name, value in (metadata or {}).items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, dg.TableMetadataValue):
        return [dict(record.data) for record in value.records]
    return value.value if isinstance(value, dg.MetadataValue) else value


def _step_failure(result: dg.ExecuteInProcessResult) -> tuple[str | None, str]:
    for event in result.all_events:
        if event.is_step_failure:
            info = event.step_failure_data.error
            # Dagster wraps what a step raises, or what an IO manager does: the cause is their own.
            if (info.cls_name or "").startswith("DagsterExecution") and info.cause is not None:
                info = info.cause
            return info.cls_name, info.message.split(": ", 1)[-1].strip()
    return None, ""
