"""What a run does: call the function, validate what it returns, write evidence, table and verdicts.

The order is a promise. Error rows are handed to the IO manager first, then the table, then the check
results, and last the run fails if it has to. So a write that fails leaves no check result that claims it,
and a run that fails has left its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, TypeAlias

import dagster as dg
import polars as pl

from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.report.results import (
    check_results,
    column_schema_passed,
    error_rows_metadata,
    materialization_metadata,
    table_figures,
)
from dagster_dataframely.core.verdict.validation import failure_of, validate
from dagster_dataframely.errors import RuleEvaluationError
from dagster_dataframely.step.destination import (
    Destination,
    destination_of,
    refuse_key_collision,
)
from dagster_dataframely.step.error_rows import store_error_rows
from dagster_dataframely.step.function import compute_function, unwrap_result
from dagster_dataframely.upstream.dagster_context import running_step
from dagster_dataframely.upstream.dagster_step import StepEvent

Result: TypeAlias = dg.MaterializeResult[Any] | dg.AssetCheckResult | StepEvent


def compute_asset(
    fn: Callable[..., Any], plan: ValidationPlan, asset: dg.AssetKey
) -> Callable[..., Any]:
    """Return the generator function that Dagster computes a validated asset with."""

    def enter() -> Destination:
        destination = destination_of(asset, running_step(asset))
        if plan.filter:
            refuse_key_collision(destination)
        return destination

    return compute_function(
        fn,
        enter=enter,
        results=lambda returned, destination: results(plan, returned, destination),
    )


def results(plan: ValidationPlan, returned: Any, destination: Destination) -> Iterator[Result]:
    """Yield what Dagster is to store of one call of the function, in order, and raise if the run fails.

    Args:
        plan: The validation of the asset.
        returned: What the function returned.
        destination: Where its table and error rows go.

    Yields:
        The error rows' materialization, the table as a `dg.MaterializeResult`, then the check results.

    Raises:
        InvalidReturnError: The function returned what is not allowed.
        ColumnSchemaError: A column is missing or has another dtype.
        RuleEvaluationError: A rule raised, or does not give booleans.
        ValidationAbortError: Rows failed `error` rules and the plan does not filter.
        NoValidRowsError: Every row failed an `error` rule.
    """
    asset = destination.asset
    frame, result = unwrap_result(returned, asset=asset)
    is_streamed = plan.stream and isinstance(frame, pl.LazyFrame)
    with destination.staging(plan) if is_streamed else nullcontext() as staging:
        try:
            outcome = validate(plan, frame, staging=staging, figures=table_figures(plan))
        except RuleEvaluationError:
            yield column_schema_passed(asset)
            raise
        if outcome.error_rows is not None:
            metadata = error_rows_metadata(plan, outcome, asset)
            yield from store_error_rows(destination, outcome.error_rows, metadata=metadata)
        if outcome.table is not None:
            yield dg.MaterializeResult(
                asset_key=asset,
                value=destination.storable(outcome.table),
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
