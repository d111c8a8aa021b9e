"""What becomes of rows: which are the table, which are error rows, and what is known of both.

Decided once, whether the rows are in memory or in a file, from the failures that were found on them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import polars as pl

from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.declaration.rules import PRIMARY_KEY
from dagster_dataframely.core.verdict.column_errors import ColumnError
from dagster_dataframely.core.verdict.failures import Failures
from dagster_dataframely.core.verdict.masks import Frame, all_but, beside, stacked, where
from dagster_dataframely.core.verdict.rows import Choice, Figures, Rows

# How many sets of rules failed together a materialization lists, most frequent first.
_MAX_RULE_SETS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on one returned frame. The frames may be eager or lazy; the counts are always there."""

    #: How many rows the function returned.
    returned: int = 0
    #: Rule name to the number of rows that fail it, for every rule.
    failed: Mapping[str, int] = field(default_factory=dict)
    #: Name of a collapsed check to the number of rows that fail any of its rules.
    failed_rows: Mapping[str, int] = field(default_factory=dict)
    #: Rows that fail an `error` rule.
    error_count: int = 0
    #: Rows that fail `warn` rules only.
    warn_count: int = 0
    #: What may be written: valid rows first, then those that fail `warn` rules only. None: write nothing.
    table: Frame | None = None
    #: The error rows with one String column a rule. None where the plan does not filter.
    error_rows: Frame | None = None
    #: Rule name to its first failing rows, for rules that fail.
    samples: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    #: The key columns and `count` of duplicated primary keys, most frequent first; None where there are none.
    duplicate_keys: pl.DataFrame | None = None
    #: Sets of rules that failed on the same row, with the number of such rows, most frequent first.
    failed_together: tuple[tuple[tuple[str, ...], int], ...] = ()
    #: Columns that are missing or have another dtype. With any, no rule was evaluated.
    column_errors: tuple[ColumnError, ...] = ()
    #: The figures of the table that were asked for, where the rules' pass over the rows found them too.
    described: pl.DataFrame | None = None
    #: Whether the function returned `None`: there was nothing to validate.
    skipped: bool = False

    @property
    def written(self) -> int:
        """How many rows the table has."""
        return self.returned - self.error_count if self.table is not None else 0


def decide(plan: ValidationPlan, rows: Rows, figures: Figures | None = None) -> Outcome:
    """Find the failures among rows, and decide what follows from them.

    Args:
        plan: The rules and whether error rows are held back.
        rows: The rows, with the schema's columns only.
        figures: What to find out of a clean table beside the verdict.

    Raises:
        RuleEvaluationError: A rule raised, or does not give booleans.
    """
    failures, described = rows.find(plan, figures)
    if plan.filter:
        failures = settle(plan, rows, failures)
    return outcome_of(plan, rows, failures, described)


def settle(plan: ValidationPlan, rows: Rows, failures: Failures) -> Failures:
    """Evaluate the kept rows again until every `error` rule holds on them.

    Dropping rows can break a rule over groups of rows. What falls out that way fails that rule, and is
    counted there. Rules that look at one row, and rules of uniqueness, cannot break by it: they are not
    evaluated again.

    Returns:
        The failures, with those of the rows that fell out.
    """
    is_error = failures.fails(plan.error_rules)
    while plan.breakable_rules and is_error.any():
        kept = all_but(failures.numbers.filter(is_error), rows.count)
        fallen = rows.find_again(plan, plan.breakable_rules, kept)
        if not fallen:
            break
        failures = failures.marked(fallen)
        is_error = failures.fails(plan.error_rules)
    return failures


def outcome_of(
    plan: ValidationPlan, rows: Rows, failures: Failures, described: pl.DataFrame | None = None
) -> Outcome:
    """Return what becomes of rows on which these failures were found.

    Args:
        plan: The rules and whether error rows are held back.
        rows: The rows, with the schema's columns only.
        failures: Which of them fail which rules.
        described: The figures of the rows, where they are known already.

    Returns:
        The outcome. Where nothing is dropped or moved, the table is the frame as it is, no row copied.
    """
    failed = {rule.name: failures.counts.get(rule.name, 0) for rule in plan.rules}
    if not len(failures):
        return Outcome(
            returned=rows.count,
            failed=failed,
            table=rows.frame,
            error_rows=_no_error_rows(plan) if plan.filter else None,
            described=described,
        )
    choose = rows.choose_of(failures.numbers)
    is_error = failures.fails(plan.error_rules)
    error_count = int(is_error.sum())
    may_write = not error_count or (plan.filter and error_count < rows.count)
    return Outcome(
        returned=rows.count,
        failed=failed,
        failed_rows={
            check.name: int(failures.fails(rule.name for rule in check.rules).sum())
            for check in plan.checks
            if check.collapsed
        },
        error_count=error_count,
        warn_count=len(failures) - error_count,
        table=_table(rows, failures, choose, is_error) if may_write else None,
        error_rows=_error_rows(plan, failures, choose, is_error) if plan.filter else None,
        samples=_samples(plan, failures, choose),
        duplicate_keys=_duplicate_keys(plan, failures, choose),
        failed_together=_failed_together(plan, failures),
    )


def _table(rows: Rows, failures: Failures, choose: Choice, is_error: pl.Series) -> Frame:
    valid = where(rows.frame, all_but(failures.numbers, rows.count))
    return valid if is_error.all() else stacked(valid, choose(~is_error))


def _no_error_rows(plan: ValidationPlan) -> pl.DataFrame:
    """Return the error rows of a run that has none: the table is there, and empty."""
    return plan.schema.create_empty().select(*plan.columns, *_rule_words(plan, ()))


def _error_rows(
    plan: ValidationPlan, failures: Failures, choose: Choice, is_error: pl.Series
) -> Frame:
    rows = beside(choose(is_error), failures.valid.filter(is_error))
    return rows.select(*plan.columns, *_rule_words(plan, failures.valid.columns))


def _rule_words(plan: ValidationPlan, failing: Collection[str]) -> list[pl.Expr]:
    """Return an expression for each rule column of the error rows.

    Args:
        plan: The rules.
        failing: The rules that have a Boolean column in the frame. All others hold in every row.
    """
    return [
        (
            pl.when(pl.col(rule)).then(pl.lit("valid")).otherwise(pl.lit("invalid"))
            if rule in failing
            else pl.lit("valid")
        ).alias(column)
        for rule, column in plan.rule_columns.items()
    ]


def _samples(plan: ValidationPlan, failures: Failures, choose: Choice) -> dict[str, pl.DataFrame]:
    """Return the first rows that fail each rule, all of which are read at once."""
    most = plan.settings.max_failure_samples
    if not most:
        return {}
    first = {
        rule: (~column).arg_true().head(most) for rule, column in failures.valid.to_dict().items()
    }
    shown = pl.concat(first.values()).unique().sort()
    rows = choose(~all_but(shown, len(failures))).lazy().collect()
    return {rule: rows[shown.search_sorted(positions)] for rule, positions in first.items()}


def _duplicate_keys(
    plan: ValidationPlan, failures: Failures, choose: Choice
) -> pl.DataFrame | None:
    """Return the distinct keys that are duplicated, as structs `key`, with their `count`."""
    most = plan.settings.max_failure_samples
    if PRIMARY_KEY not in failures.valid.columns or not most:
        return None
    return (
        choose(failures.fails([PRIMARY_KEY]))
        .lazy()
        .select(pl.struct(plan.primary_key).alias("key"))
        .group_by("key", maintain_order=True)
        .len("count")
        .sort("count", descending=True, maintain_order=True)
        .head(most)
        .collect(engine="streaming")
    )


def _failed_together(
    plan: ValidationPlan, failures: Failures
) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Count the sets of rules that failed on the same row, the rules of a set in the schema's order."""
    names = [rule.name for rule in plan.rules if rule.name in failures.valid.columns]
    groups = (
        failures.valid.lazy()
        .group_by(names, maintain_order=True)
        .agg(pl.len().alias("\0rows"))
        .sort("\0rows", descending=True, maintain_order=True)
        .head(_MAX_RULE_SETS)
        .collect()
    )
    return tuple(
        (tuple(name for name, ok in zip(names, row[:-1], strict=True) if not ok), row[-1])
        for row in groups.iter_rows()
    )
