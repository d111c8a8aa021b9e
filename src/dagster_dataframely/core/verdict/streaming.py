"""Validating rows that are larger than memory: staged once as a parquet file, then only scanned.

The plan of a lazy frame is executed once, into the staging file. Everything else reads that file by
streaming. A clean table is read once more, for rules and figures together. Of another, the failing rows are
written to a second file; in memory is one bit a row at the most, so memory grows with the rows that fail and
not with the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.declaration.rules import Rule
from dagster_dataframely.core.verdict.evaluation import (
    naming_the_rule,
    refuse_other_height,
    rule_expressions,
)
from dagster_dataframely.core.verdict.failures import Failures
from dagster_dataframely.core.verdict.masks import ROW, all_but, beside, released, where
from dagster_dataframely.core.verdict.rows import Choice, Figures
from dagster_dataframely.core.verdict.staged import StagedParquet, Staging
from dagster_dataframely.core.verdict.uniqueness import duplicate_rows_of_file

# So many rows are looked at before all are: where errors are common, that saves the pass for a clean table.
_FIRST_ROWS = 100_000


def stage(plan: ValidationPlan, frame: pl.LazyFrame, staging: Staging) -> StagedRows:
    """Execute the plan of a lazy frame, once, into a parquet file with the schema's columns."""
    frame.select(plan.columns).sink_parquet(staging.path, compression=staging.compression)
    return StagedRows(StagedParquet(staging.path))


@dataclass(frozen=True)
class StagedRows:
    """The rows of a staging file; see `rows.Rows`. Its frames are lazy, and read files that lie beside it."""

    file: StagedParquet

    @cached_property
    def count(self) -> int:
        """How many rows there are."""
        rows: int = self.frame.select(pl.len()).collect().item()
        return rows

    @property
    def frame(self) -> pl.LazyFrame:
        """The scan of the whole file."""
        return self.file.scan()

    def find(
        self, plan: ValidationPlan, figures: Figures | None
    ) -> tuple[Failures, pl.DataFrame | None]:
        """Evaluate every rule on every row, and find the figures of a clean table in the same pass."""
        marks = dict(self.find_again(plan, plan.rules_over_rows))
        for rule, key in plan.unique_keys.items():
            numbers = duplicate_rows_of_file(self.file, key, self.count)
            if len(numbers):
                marks[rule] = numbers
        if not marks:
            described = self._figures_if_clean(plan, figures)
            if described is not None:
                return Failures.none(), described if figures else None
        return self._find_failing(plan, marks), None

    def find_again(
        self, plan: ValidationPlan, rules: Sequence[Rule], kept: pl.Series | None = None
    ) -> Mapping[str, pl.Series]:
        """Evaluate some rules on some rows, by default on all.

        Each is evaluated alone, so that only the columns that it names are in memory.
        """
        frame = self.frame if kept is None else where(self.frame, kept)
        rows = self.count if kept is None else int(kept.sum())
        found: dict[str, pl.Series] = {}
        for rule in rules:
            valid = _evaluate_alone(plan, frame, rule, rows)
            if not valid.all():
                positions = (~valid).arg_true()
                found[rule.name] = positions if kept is None else kept.arg_true().gather(positions)
        return found

    def choose_of(self, numbers: pl.Series) -> Choice:
        """Return a function that chooses from the rows of these numbers, which are in a file of their own."""
        path = self._failing_path
        # More may fail than `find` wrote, having fallen out with others. The file is then written anew.
        if not (path.exists() and _read(path, [ROW]).to_series().equals(numbers)):
            failing = where(self.frame, ~all_but(numbers, self.count))
            released(beside(failing, pl.DataFrame({ROW: numbers}))).sink_parquet(
                path, compression="lz4"
            )
        rows = _scan(path).select(self.frame.collect_schema().names())
        return lambda chosen: where(rows, chosen)

    @property
    def _failing_path(self) -> Path:
        return self.file.path.with_name("failing.parquet")

    def _figures_if_clean(
        self, plan: ValidationPlan, figures: Figures | None
    ) -> pl.DataFrame | None:
        """Return figures of the table, found in the pass over it that proves the rules of one row.

        Returns:
            None where a rule does not hold everywhere, or where Polars raises: what raised is found out by
            whoever then evaluates the rules, or selects the figures, alone.
        """
        scan = self.frame
        rules = rule_expressions(plan, scan, plan.rules_of_one_row)
        # Not named as the rules: figures may be named after a column's position, such as `0|min`.
        hold = [expr.all().alias(f"dy_rule:{name}") for name, expr in rules.items()]
        selected = [*hold, *(figures(scan.collect_schema(), self.count) if figures else ())]
        try:
            for frame, expressions in ((scan.head(_FIRST_ROWS), hold), (scan, selected)):
                found = frame.select(expressions).collect(engine="streaming")
                if not all(found.select(pl.nth(range(len(hold)))).row(0) if hold else ()):
                    return None
        except Exception:
            return None
        return found.select(pl.nth(range(len(hold), found.width)))

    def _find_failing(self, plan: ValidationPlan, marks: Mapping[str, pl.Series]) -> Failures:
        """Write the rows that fail a rule to their file, and return the verdicts on them.

        Args:
            plan: The rules.
            marks: Rule name to the numbers of the rows that fail it, for rules that look at other rows.
        """
        scan = self.frame
        rules = plan.rules_of_one_row
        verdicts = rule_expressions(plan, scan, rules)
        marked = {rule: all_but(numbers, self.count) for rule, numbers in marks.items()}
        frame = beside(scan, pl.DataFrame(marked)) if marked else scan
        names = [*verdicts, *marked]
        # A schema may have no rule at all, and `all` of nothing raises.
        is_valid = pl.all_horizontal(pl.lit(True), *names)
        failing = frame.with_columns(**verdicts).with_row_index(ROW).filter(~is_valid)
        with naming_the_rule(plan, scan, rules):
            released(failing).sink_parquet(self._failing_path, compression="lz4")
        found = _read(self._failing_path, [ROW, *names])
        failed = [name for name in names if not found[name].all()]
        return Failures(found[ROW], found.select(failed)) if failed else Failures.none()


def _evaluate_alone(plan: ValidationPlan, frame: pl.LazyFrame, rule: Rule, rows: int) -> pl.Series:
    """Return for each row whether it is valid for a rule, having counted the values that the rule gives."""
    expressions = rule_expressions(plan, frame, [rule])
    with naming_the_rule(plan, frame, [rule]):
        valid = frame.with_columns(**expressions).select(*expressions).collect(engine="streaming")
    refuse_other_height(plan, [rule], found=valid.height, rows=rows)
    return valid.to_series()


def _scan(path: Path) -> pl.LazyFrame:
    return pl.scan_parquet(path, glob=False, hive_partitioning=False)


def _read(path: Path, columns: list[str]) -> pl.DataFrame:
    return _scan(path).select(columns).collect()
