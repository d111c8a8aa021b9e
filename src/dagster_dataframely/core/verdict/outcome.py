"""What becomes of a frame: which rows are the table, which are error rows, and what is known of both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import polars as pl

from dagster_dataframely.core.declaration.columns import ColumnError
from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.declaration.rules import PRIMARY_KEY, Rule
from dagster_dataframely.core.verdict.evaluation import Evaluation, evaluate_rules
from dagster_dataframely.core.verdict.uniqueness import unique_keys

Frame: TypeAlias = pl.DataFrame | pl.LazyFrame

# How many sets of rules failed together a materialization lists, most frequent first.
_MAX_RULE_SETS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on one returned frame. The frames may be eager or lazy; the figures are always there."""

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
    #: What `core.statistics` selects of the table, where the rules' pass over the rows found that too.
    described: pl.DataFrame | None = None
    #: Whether the function returned `None`: there was nothing to validate.
    skipped: bool = False

    @property
    def written(self) -> int:
        """How many rows the table has."""
        return self.returned - self.error_count if self.table is not None else 0


def clean_outcome(
    plan: ValidationPlan, frame: Frame, rows: int, described: pl.DataFrame | None = None
) -> Outcome:
    """Hand a frame on as it is, every rule having held on every row of it.

    Args:
        plan: The rules and whether error rows are held back.
        frame: The rows, with the schema's columns only.
        rows: How many they are.
        described: What `core.statistics` selects of them, where that is known already.
    """
    return Outcome(
        returned=rows,
        failed=dict.fromkeys((rule.name for rule in plan.rules), 0),
        table=frame,
        error_rows=_no_error_rows(plan) if plan.filter else None,
        described=described,
    )


def decide(plan: ValidationPlan, frame: pl.DataFrame, evaluation: Evaluation) -> Outcome:
    """Split an evaluated frame into the table and the error rows.

    Args:
        plan: The rules and whether error rows are held back.
        frame: Rows with the schema's columns only.
        evaluation: The verdict of each rule on these rows.

    Returns:
        The outcome. A frame without failures is handed on as it is, no row copied.
    """
    if not any(evaluation.failed.values()):
        return clean_outcome(plan, frame, evaluation.rows)
    if plan.filter:
        evaluation = settle(plan, frame, evaluation)
    may_be_written = all_rules_valid(evaluation.valid, named(plan, "error"))
    is_valid = may_be_written & all_rules_valid(evaluation.valid, named(plan, "warn"))
    written, valid = int(may_be_written.sum()), int(is_valid.sum())
    may_write = written == evaluation.rows or (plan.filter and written > 0)
    return Outcome(
        returned=evaluation.rows,
        failed=evaluation.failed,
        failed_rows={
            check.name: evaluation.rows
            - int(all_rules_valid(evaluation.valid, [rule.name for rule in check.rules]).sum())
            for check in plan.checks
            if check.collapsed
        },
        error_count=evaluation.rows - written,
        warn_count=written - valid,
        table=_table(frame, may_be_written, is_valid) if may_write else None,
        error_rows=_error_rows(
            plan, frame.filter(~may_be_written), evaluation.valid.filter(~may_be_written)
        )
        if plan.filter
        else None,
        samples=_samples(plan, frame, evaluation),
        duplicate_keys=_duplicate_keys(plan, frame, evaluation),
        failed_together=_failed_together(evaluation),
    )


def settle(plan: ValidationPlan, frame: pl.DataFrame, evaluation: Evaluation) -> Evaluation:
    """Evaluate the kept rows again until every `error` rule holds on them.

    Dropping rows can break a rule over groups of rows. What falls out that way fails that rule, and is
    counted there. Rules that look at one row, and rules of uniqueness, cannot break by it: they are not
    evaluated again.

    Returns:
        The evaluation, with the rows that fell out marked as failing.
    """
    group_rules = rules_over_rows(plan)
    error_rules = named(plan, "error")
    dropped = frame.height - int(all_rules_valid(evaluation.valid, error_rules).sum())
    while group_rules and dropped:
        kept = all_rules_valid(evaluation.valid, error_rules)
        again = evaluate_rules(plan, frame.filter(kept), group_rules)
        broken = [name for name in again.columns if not again[name].all()]
        if not broken:
            break
        positions = kept.arg_true()
        marks = {
            name: evaluation.valid[name].clone()
            if name in evaluation.valid.columns
            else pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
            for name in broken
        }
        failed = dict(evaluation.failed)
        for name in broken:
            fallen = positions.filter(~again[name])
            failed[name] += len(fallen)
            marks[name] = marks[name].scatter(fallen, False).alias(name)
        evaluation = replace(
            evaluation, failed=failed, valid=evaluation.valid.with_columns(**marks)
        )
    return evaluation


def rules_over_rows(plan: ValidationPlan) -> list[Rule]:
    """Return the `error` rules that dropping rows can break: those that may look at other rows."""
    return [
        rule
        for rule in plan.rules
        if rule.severity == "error"
        and rule.expr is not None
        and not rule.asks_for_uniqueness
        and not rule.looks_at_one_row
    ]


def proved(plan: ValidationPlan, written: int) -> dict[str, dict[str, int]]:
    """Return what the rules prove of a table of so many rows, which its statistics need not compute again.

    Returns:
        `distinct` and `nulls`, as `core.statistics` takes them: a number a column.
    """
    error_rules = named(plan, "error")
    unique = {
        columns[0]: written
        for name, columns in unique_keys(plan).items()
        if len(columns) == 1 and name in error_rules
    }
    nulls = {
        rule.column: 0
        for rule in plan.rules
        if rule.column and rule.kind == "nullability" and rule.severity == "error"
    }
    return {"distinct": unique, "nulls": nulls}


def named(plan: ValidationPlan, severity: str) -> list[str]:
    """Return the names of the rules of one severity."""
    return [rule.name for rule in plan.rules if rule.severity == severity]


def all_rules_valid(valid: pl.DataFrame, rules: list[str]) -> pl.Series:
    """Return whether each row is valid for all of these rules.

    Args:
        valid: One Boolean column for each rule that some row fails.
        rules: Names of rules, also of such that no row fails.
    """
    failing = [name for name in rules if name in valid.columns]
    if not failing:
        return pl.repeat(True, valid.height, dtype=pl.Boolean, eager=True)
    return valid.select(pl.all_horizontal(failing).alias("valid")).to_series()


def _table(frame: pl.DataFrame, may_be_written: pl.Series, is_valid: pl.Series) -> pl.DataFrame:
    if is_valid.all():
        return frame
    valid = frame.filter(is_valid)
    only_warned = frame.filter(may_be_written & ~is_valid)
    return pl.concat([valid, only_warned]) if only_warned.height else valid


def _no_error_rows(plan: ValidationPlan) -> pl.DataFrame:
    """Return the error rows of a run that has none: the table is there, and empty."""
    return plan.schema.create_empty().select(*plan.columns, *rule_words(plan, ()))


def _error_rows(plan: ValidationPlan, rows: pl.DataFrame, valid: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([rows, valid], how="horizontal_extend").select(
        *plan.columns, *rule_words(plan, valid.columns)
    )


def rule_words(plan: ValidationPlan, evaluated: Collection[str]) -> list[pl.Expr]:
    """Return an expression for each rule column of the error rows.

    Args:
        plan: The rules.
        evaluated: The rules that have a Boolean column in the frame. All others hold in every row.
    """
    return [
        (
            pl.when(pl.col(rule)).then(pl.lit("valid")).otherwise(pl.lit("invalid"))
            if rule in evaluated
            else pl.lit("valid")
        ).alias(column)
        for rule, column in plan.rule_columns.items()
    ]


def _samples(
    plan: ValidationPlan, frame: pl.DataFrame, evaluation: Evaluation
) -> dict[str, pl.DataFrame]:
    most = plan.settings.max_failure_samples
    if not most:
        return {}
    return {
        name: frame[(~evaluation.valid[name]).arg_true().head(most)]
        for name in evaluation.valid.columns
    }


def _duplicate_keys(
    plan: ValidationPlan, frame: pl.DataFrame, evaluation: Evaluation
) -> pl.DataFrame | None:
    most = plan.settings.max_failure_samples
    if PRIMARY_KEY not in evaluation.valid.columns or not most:
        return None
    return count_duplicates(frame.filter(~evaluation.valid[PRIMARY_KEY]).lazy(), plan).collect()


def count_duplicates(rows: pl.LazyFrame, plan: ValidationPlan) -> pl.LazyFrame:
    """Return the distinct keys of rows whose key is duplicated, as structs `key`, with their `count`."""
    return (
        rows.select(pl.struct(plan.primary_key).alias("key"))
        .group_by("key", maintain_order=True)
        .len("count")
        .sort("count", descending=True, maintain_order=True)
        .head(plan.settings.max_failure_samples)
    )


def _failed_together(evaluation: Evaluation) -> tuple[tuple[tuple[str, ...], int], ...]:
    return rule_sets(evaluation.valid.lazy().filter(~pl.all_horizontal(pl.all())))


def rule_sets(valid: pl.LazyFrame) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Count the sets of rules that failed on the same row.

    Args:
        valid: One Boolean column a rule, for rows that fail at least one.

    Returns:
        Sets of rule names in the schema's order, each with its number of rows, most frequent first.
    """
    names = valid.collect_schema().names()
    groups = (
        valid.group_by(names, maintain_order=True)
        .agg(pl.len().alias("\0rows"))
        .sort("\0rows", descending=True, maintain_order=True)
        .head(_MAX_RULE_SETS)
        .collect()
    )
    return tuple(
        (tuple(name for name, ok in zip(names, row[:-1], strict=True) if not ok), row[-1])
        for row in groups.iter_rows()
    )
