"""What a run does: call the function, validate what it returns, write evidence, table and verdicts.

The order is a promise. Error rows are handed to the IO manager first, then the table, then the check
results, and last the run fails if it has to. So a write that fails leaves no check result that claims it,
and a run that fails has left its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import dagster as dg
import polars as pl

from dagster_dataframely.core.declaration.names import error_rows_key
from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.report.results import (
    check_results,
    column_schema_passed,
    error_rows_metadata,
    materialization_metadata,
    table_figures,
)
from dagster_dataframely.core.verdict.masks import Frame
from dagster_dataframely.core.verdict.outcome import Outcome
from dagster_dataframely.core.verdict.staged import Staging, staging_file
from dagster_dataframely.core.verdict.validation import failure_of, validate
from dagster_dataframely.errors import ErrorRowsKeyCollisionError, RuleEvaluationError
from dagster_dataframely.step.error_rows import ErrorRows, write_error_rows
from dagster_dataframely.step.function import compute_function, unwrap_result
from dagster_dataframely.step.lazy_frames import takes_lazy_frame
from dagster_dataframely.upstream.dagster_context import computes_asset, running_step
from dagster_dataframely.upstream.dagster_step import StepEvent, io_manager_of

Result: TypeAlias = dg.MaterializeResult[Any] | dg.AssetCheckResult | StepEvent


def compute_asset(
    fn: Callable[..., Any], plan: ValidationPlan, asset: dg.AssetKey
) -> Callable[..., Any]:
    """Return the generator function that Dagster computes a validated asset with."""
    return compute_function(
        fn,
        enter=lambda: _enter(plan, asset),
        results=lambda returned, step: results(plan, returned, asset, step),
    )


def _enter(plan: ValidationPlan, asset: dg.AssetKey) -> dg.AssetExecutionContext | None:
    step = running_step(asset)
    if step is not None and plan.filter:
        key = error_rows_key(asset)
        if computes_asset(step, key):
            raise ErrorRowsKeyCollisionError(key_collision(asset, key))
    return step


def key_collision(asset: dg.AssetKey, key: dg.AssetKey) -> str:
    """Return the sentence for an asset whose error-rows key is another asset's."""
    return (
        f"The error rows of '{asset.to_user_string()}' are written under '{key.to_user_string()}', and another "
        "asset has that key. Rename one of the two, or set `filter=False`."
    )


def results(
    plan: ValidationPlan,
    returned: Any,
    asset: dg.AssetKey,
    step: dg.AssetExecutionContext | None,
) -> Iterator[Result]:
    """Yield what Dagster is to store of one call of the function, in order, and raise if the run fails.

    Args:
        plan: The validation of the asset.
        returned: What the function returned.
        asset: The key of the asset.
        step: The running step; None in a direct call, which yields the error rows in place of writing them.

    Yields:
        The error rows' materialization, the table as a `dg.MaterializeResult`, then the check results.

    Raises:
        InvalidReturnError: The function returned what is not allowed.
        ColumnSchemaError: A column is missing or has another dtype.
        RuleEvaluationError: A rule raised, or does not give booleans.
        ValidationAbortError: Rows failed `error` rules and the plan does not filter.
        NoValidRowsError: Every row failed an `error` rule.
    """
    frame, result = unwrap_result(returned, asset=asset)
    with _staging(plan, frame, asset, step) as staging:
        try:
            outcome = validate(plan, frame, staging=staging, figures=table_figures(plan))
        except RuleEvaluationError:
            yield column_schema_passed(asset)
            raise
        yield from _error_rows(plan, outcome, asset, step)
        if outcome.table is not None:
            yield dg.MaterializeResult(
                asset_key=asset,
                value=_storable(outcome.table, asset, step),
                metadata={
                    **((result and result.metadata) or {}),
                    **materialization_metadata(plan, outcome, asset),
                },
                tags=result.tags if result else None,
                data_version=result.data_version if result else None,
            )
    yield from check_results(plan, outcome, asset)
    failure = failure_of(plan, outcome)
    if failure is not None:
        raise failure


def _staging(
    plan: ValidationPlan,
    frame: Frame | None,
    asset: dg.AssetKey,
    step: dg.AssetExecutionContext | None,
) -> AbstractContextManager[Staging | None]:
    """Give the staging file of a streamed run, or None where nothing is streamed."""
    if not (plan.stream and isinstance(frame, pl.LazyFrame)):
        return nullcontext()
    folder = plan.settings.staging_dir
    if step is None:
        return staging_file(folder)
    # Beside the table, and compressed as it is, a clean staging file becomes the table by a rename.
    io_manager = io_manager_of(step, asset)
    return staging_file(
        folder or getattr(io_manager, "local_directory", None),
        getattr(io_manager, "compression", "zstd"),
    )


def _storable(frame: Frame, asset: dg.AssetKey, step: dg.AssetExecutionContext | None) -> Frame:
    """Collect a lazy frame where it would outlive the staging file that it reads."""
    if isinstance(frame, pl.DataFrame):
        return frame
    if step is not None and takes_lazy_frame(io_manager_of(step, asset)):
        return frame
    return frame.collect(engine="streaming")


def _error_rows(
    plan: ValidationPlan,
    outcome: Outcome,
    asset: dg.AssetKey,
    step: dg.AssetExecutionContext | None,
) -> Iterator[StepEvent]:
    if outcome.error_rows is None:
        return
    metadata = error_rows_metadata(plan, outcome, asset)
    if step is None:
        rows = _storable(outcome.error_rows, asset, step)
        yield ErrorRows(asset_key=error_rows_key(asset), metadata=metadata, value=rows)
    else:
        yield from write_error_rows(step, outcome.error_rows, metadata=metadata, asset_key=asset)
