"""Validating rows in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.declaration.rules import Rule
from dagster_dataframely.core.verdict.evaluation import evaluate_rules
from dagster_dataframely.core.verdict.failures import Failures
from dagster_dataframely.core.verdict.masks import all_but, where
from dagster_dataframely.core.verdict.rows import Choice, Figures
from dagster_dataframely.core.verdict.uniqueness import duplicate_rows


@dataclass(frozen=True, slots=True)
class RowsInMemory:
    """The rows of a frame in memory; see `rows.Rows`."""

    frame: pl.DataFrame

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.frame.height

    def find(
        self,
        plan: ValidationPlan,
        figures: Figures | None,  # noqa: ARG002 - as cheap to find later
    ) -> tuple[Failures, pl.DataFrame | None]:
        """Evaluate every rule on every row."""
        valid = evaluate_rules(plan, self.frame, plan.rules_but_keys)
        verdicts = [column for column in valid.iter_columns() if not column.all()]
        for rule, key in plan.unique_keys.items():
            duplicates = duplicate_rows(self.frame, key)
            if len(duplicates):
                verdicts.append(all_but(duplicates, self.count).alias(rule))
        if not verdicts:
            return Failures.none(), None
        valid = pl.DataFrame(verdicts)
        fails = valid.select(fails=~pl.all_horizontal(pl.all())).to_series()
        return Failures(fails.arg_true(), valid.filter(fails)), None

    def find_again(
        self, plan: ValidationPlan, rules: Sequence[Rule], kept: pl.Series
    ) -> Mapping[str, pl.Series]:
        """Evaluate some rules on some rows."""
        valid = evaluate_rules(plan, where(self.frame, kept), rules)
        numbers = kept.arg_true()
        return {
            column.name: numbers.filter(~column)
            for column in valid.iter_columns()
            if not column.all()
        }

    def choose_of(self, numbers: pl.Series) -> Choice:
        """Return a function that chooses from the rows of these numbers."""
        return lambda chosen: self.frame.filter(~all_but(numbers.filter(chosen), self.count))
