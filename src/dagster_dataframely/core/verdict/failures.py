"""Which rows of a table fail which rules: what every way of finding them gives, and all that follows reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from dagster_dataframely.core.verdict.masks import all_but, no_rows


@dataclass(frozen=True)
class Failures:
    """The rows that fail a rule, and the verdict of each failing rule on them.

    Most runs are clean and most rows valid, so a valid row leaves nothing behind.
    """

    #: The numbers of the rows that fail at least one rule, ascending.
    numbers: pl.Series
    #: One Boolean column for each rule that some row fails, named as the rule, and one row a number: True where
    #: that row is valid.
    valid: pl.DataFrame

    @staticmethod
    def none() -> Failures:
        """Return the failures of rows on which every rule holds."""
        return Failures(no_rows(), pl.DataFrame())

    @staticmethod
    def of(found: Mapping[str, pl.Series]) -> Failures:
        """Return failures from the numbers of the rows that fail each rule.

        Examples:
            >>> failures = Failures.of({"a|min": pl.Series([7, 2]), "unique": pl.Series([2, 3])})
            >>> failures.numbers.to_list(), failures.valid["a|min"].to_list()
            ([2, 3, 7], [False, True, False])
        """
        failing = {rule: numbers for rule, numbers in found.items() if len(numbers)}
        if not failing:
            return Failures.none()
        numbers = pl.concat(failing.values()).unique().sort()
        verdicts = {
            rule: all_but(numbers.search_sorted(own), len(numbers)) for rule, own in failing.items()
        }
        return Failures(numbers, pl.DataFrame(verdicts))

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Rule name to the number of rows that fail it, for the rules that some row fails."""
        return {rule: int((~column).sum()) for rule, column in self.valid.to_dict().items()}

    def of_rule(self, rule: str) -> pl.Series:
        """Return the numbers of the rows that fail one rule."""
        return self.numbers.filter(self.fails([rule]))

    def fails(self, rules: Iterable[str]) -> pl.Series:
        """Return for each of the numbers whether that row fails any of these rules.

        Args:
            rules: Names of rules, also of such that no row fails.
        """
        failing = [rule for rule in rules if rule in self.valid.columns]
        if not failing:
            return pl.repeat(False, len(self), dtype=pl.Boolean, eager=True)
        return self.valid.select(fails=~pl.all_horizontal(failing)).to_series()

    def marked(self, found: Mapping[str, pl.Series]) -> Failures:
        """Return these failures with more of them: rule name to numbers of rows that fail it too."""
        own = {rule: self.of_rule(rule) for rule in self.valid.columns}
        more = {
            rule: pl.concat([own[rule], numbers]) if rule in own else numbers
            for rule, numbers in found.items()
        }
        return Failures.of(own | more)
