"""The rows of a returned frame, in memory or in a staging file, as a verdict is found on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import polars as pl

from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.declaration.rules import Rule
from dagster_dataframely.core.verdict.failures import Failures
from dagster_dataframely.core.verdict.masks import Frame

#: Expressions that aggregate a frame of this schema and of so many rows to one row of figures.
Figures: TypeAlias = Callable[[pl.Schema, int], Sequence[pl.Expr]]
#: Given one Boolean for each of some rows, those of them that it marks.
Choice: TypeAlias = Callable[[pl.Series], Frame]


class Rows(Protocol):
    """Rows with the schema's columns only, and how failing ones are found among them.

    This is all in which a frame in memory and a staged one differ; what follows from failures is decided once,
    in `outcome`.
    """

    @property
    def count(self) -> int:
        """How many rows there are."""
        ...

    @property
    def frame(self) -> Frame:
        """All rows, as they are."""
        ...

    def find(
        self, plan: ValidationPlan, figures: Figures | None
    ) -> tuple[Failures, pl.DataFrame | None]:
        """Evaluate every rule on every row.

        Args:
            plan: The rules.
            figures: What to find out beside the verdict, if that costs nothing.

        Returns:
            The failures, and the figures; None where they were not found.

        Raises:
            RuleEvaluationError: A rule raised, or does not give booleans.
        """
        ...

    def find_again(
        self, plan: ValidationPlan, rules: Sequence[Rule], kept: pl.Series
    ) -> Mapping[str, pl.Series]:
        """Evaluate some rules on some rows.

        Args:
            plan: The plan of the rules.
            rules: The rules.
            kept: One Boolean a row.

        Returns:
            Rule name to the numbers of the kept rows that fail it, for the rules that one fails.

        Raises:
            RuleEvaluationError: A rule raised.
        """
        ...

    def choose_of(self, numbers: pl.Series) -> Choice:
        """Return a function that chooses from the rows of these numbers, ascending."""
        ...
