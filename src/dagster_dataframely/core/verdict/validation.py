"""From what a function returned to the outcome: the one way that every front goes."""

from __future__ import annotations

from typing import TypeGuard

import polars as pl

from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.redaction import hiding_values
from dagster_dataframely.core.verdict.column_errors import ColumnError, column_errors
from dagster_dataframely.core.verdict.in_memory import RowsInMemory
from dagster_dataframely.core.verdict.masks import Frame
from dagster_dataframely.core.verdict.outcome import Outcome, decide
from dagster_dataframely.core.verdict.rows import Figures, Rows
from dagster_dataframely.core.verdict.staged import Staging
from dagster_dataframely.core.verdict.streaming import stage
from dagster_dataframely.errors import (
    ColumnSchemaError,
    DataframelyError,
    NoValidRowsError,
    ValidationAbortError,
)


def is_frame(value: object) -> TypeGuard[Frame]:
    """Return whether a value is a Polars frame, eager or lazy."""
    return isinstance(value, (pl.DataFrame, pl.LazyFrame))


def validate(
    plan: ValidationPlan,
    frame: Frame | None,
    *,
    staging: Staging | None = None,
    figures: Figures | None = None,
) -> Outcome:
    """Validate one frame against a plan.

    Nothing is cast. Columns are compared by the frame's schema alone, so the plan of a `LazyFrame` with a
    wrong column is never executed; otherwise it is executed once.

    Args:
        plan: The schema's rules and how they are reported.
        frame: What the function returned; None means that there was nothing to write.
        staging: Where to stage a lazy frame, in place of collecting it.
        figures: What to find out of a clean staged table in the pass over it that its rules need anyway.

    Returns:
        The outcome. The frames of a staged one are lazy, and read the staging file.

    Raises:
        RuleEvaluationError: A rule raised, or does not give booleans.
    """
    if frame is None:
        return Outcome(failed=dict.fromkeys((rule.name for rule in plan.rules), 0), skipped=True)
    errors = column_errors(plan.schema, frame.lazy().collect_schema(), redact=plan.settings.redact)
    if errors:
        return Outcome(column_errors=errors)
    return decide(plan, _executed(plan, frame, staging), figures)


def _executed(plan: ValidationPlan, frame: Frame, staging: Staging | None) -> Rows:
    """Execute the plan of a lazy frame, into memory or into the staging file."""
    with hiding_values(redact=plan.settings.redact):
        if staging is not None and isinstance(frame, pl.LazyFrame):
            return stage(plan, frame, staging)
        return RowsInMemory(frame.lazy().select(plan.columns).collect())


def failure_of(plan: ValidationPlan, outcome: Outcome) -> DataframelyError | None:
    """Return the error with which a run of this outcome fails, or None if it succeeds."""
    name = plan.schema.__name__
    if outcome.column_errors:
        listed = "\n".join(f"  - {_describe(error)}" for error in outcome.column_errors)
        return ColumnSchemaError(
            f"The returned frame does not have the columns of {name}; nothing was cast and nothing was "
            f"written:\n{listed}"
        )
    if outcome.skipped or outcome.table is not None:
        return None
    counts = "\n".join(
        f"  - {rule.name}: {_rows(outcome.failed[rule.name])}"
        for rule in plan.rules
        if rule.severity == "error" and outcome.failed[rule.name]
    )
    if plan.filter:
        return NoValidRowsError(
            f"{_all_rows(outcome.returned)} failed an error rule of {name}, so the table was left as it was. "
            f"The error rows hold them. Rows that failed each rule:\n{counts}"
        )
    return ValidationAbortError(
        f"{outcome.error_count} of {_rows(outcome.returned)} failed an error rule of {name}, so nothing was "
        f"written. Rows that failed each rule (a row can fail several):\n{counts}"
    )


def _describe(error: ColumnError) -> str:
    found = f"the frame has {error.actual}" if error.actual else "the frame lacks it"
    hint = f" ({error.hint})" if error.hint else ""
    return f"column '{error.column}': the schema has {error.expected}, {found}{hint}"


def _all_rows(count: int) -> str:
    return "The only row" if count == 1 else f"All {count} rows"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
