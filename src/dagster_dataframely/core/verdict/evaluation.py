"""Evaluating the expressions of rules on a frame, each as `Schema.filter` does: null counts as valid.

What a rule's expression raises, or gives in place of booleans, is told with the name of the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import polars as pl

from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.declaration.rules import Rule
from dagster_dataframely.core.redaction import raise_described
from dagster_dataframely.errors import RuleEvaluationError


def evaluate_rules(
    plan: ValidationPlan, frame: pl.DataFrame, rules: Sequence[Rule]
) -> pl.DataFrame:
    """Return one Boolean column a rule, without nulls, True where a row is valid.

    Raises:
        RuleEvaluationError: A rule's expression raised, or does not give booleans.
    """
    if not rules:
        return pl.DataFrame(height=frame.height)
    rows = frame.lazy()
    expressions = rule_expressions(plan, rows, rules)
    with naming_the_rule(plan, rows, rules):
        # `with_columns` gives a rule that aggregates to one value that value in every row, as Dataframely does.
        valid = rows.with_columns(**expressions).select(*expressions).collect()
    refuse_other_height(plan, rules, found=valid.height, rows=frame.height)
    return valid


@contextmanager
def naming_the_rule(
    plan: ValidationPlan, frame: pl.LazyFrame, rules: Sequence[Rule]
) -> Iterator[None]:
    """Turn what Polars raises while it evaluates rules into an error that names the rule.

    Raises:
        RuleEvaluationError: The block raised.
    """
    try:
        yield
    except Exception as error:
        for rule in rules:
            _refuse_failing(plan, frame, rule)
        _refuse(plan, f"Evaluating the rules of {plan.schema.__name__} together", error)


def refuse_other_height(
    plan: ValidationPlan, rules: Sequence[Rule], *, found: int, rows: int
) -> None:
    """Raise when rules gave another number of values than there are rows.

    Polars refuses that itself, but for a frame of one row, whose columns it repeats.

    Raises:
        RuleEvaluationError: The numbers differ.
    """
    if found == rows:
        return
    names = ", ".join(f"'{rule.name}'" for rule in rules if not rule.looks_at_one_row)
    raise RuleEvaluationError(
        f"Rule {names} of {plan.schema.__name__} gives {found} values for {rows} rows. A rule gives one value "
        "a row, or one for all."
    )


def rule_expressions(
    plan: ValidationPlan, frame: pl.LazyFrame, rules: Sequence[Rule]
) -> dict[str, pl.Expr]:
    """Return an expression for each rule, True where a row is valid and never null.

    Args:
        plan: The plan of the rules.
        frame: The rows that they are to be evaluated on. Its plan is resolved, and not executed.
        rules: The rules.

    Raises:
        RuleEvaluationError: A rule has no expression, raises on the frame's columns, or is not boolean.
    """
    exprs = {rule.name: _expression(plan, rule) for rule in rules}
    try:
        dtypes = frame.with_columns(**exprs).select(*exprs).collect_schema()
    except Exception as error:
        for rule in rules:
            _dtype_of(plan, frame, rule)
        _refuse(plan, f"Resolving the rules of {plan.schema.__name__} together", error)
    for rule in rules:
        _refuse_dtype(plan, rule, dtypes[rule.name])
    return {name: expr.fill_null(True) for name, expr in exprs.items()}


def _expression(plan: ValidationPlan, rule: Rule) -> pl.Expr:
    if rule.expr is None:
        raise RuleEvaluationError(f"{_subject(plan, rule)} cannot be evaluated: {rule.problem}.")
    return rule.expr


def _dtype_of(plan: ValidationPlan, frame: pl.LazyFrame, rule: Rule) -> pl.DataType:
    expr = _expression(plan, rule)
    try:
        return frame.with_columns(expr.alias(rule.name)).collect_schema()[rule.name]
    except Exception as error:
        _refuse(plan, _subject(plan, rule), error)


def _refuse_dtype(plan: ValidationPlan, rule: Rule, dtype: pl.DataType) -> None:
    if dtype not in (pl.Boolean, pl.Null):
        raise RuleEvaluationError(
            f"{_subject(plan, rule)} gives {dtype} values. A rule gives Boolean values: true where a row is "
            "valid."
        )


def _refuse_failing(plan: ValidationPlan, frame: pl.LazyFrame, rule: Rule) -> None:
    """Evaluate one rule alone, to name it if it is the one that raises."""
    alone = frame.with_columns(_expression(plan, rule).alias(rule.name))
    try:
        alone.select(pl.col(rule.name).null_count()).collect(engine="streaming")
    except Exception as error:
        _refuse(plan, _subject(plan, rule), error)


def _refuse(plan: ValidationPlan, subject: str, error: Exception) -> NoReturn:
    redact = plan.settings.redact
    raise_described(RuleEvaluationError, f"{subject} raised", error, redact=redact)


def _subject(plan: ValidationPlan, rule: Rule) -> str:
    return f"Rule '{rule.name}' of {plan.schema.__name__}"
