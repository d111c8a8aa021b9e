"""Validating a plan that is larger than memory: staged once as a parquet file, then only scanned.

The plan of a lazy frame is executed once, into the staging file. Everything else reads that file by
streaming. A clean table is read once more, for rules and statistics together. Of another, the failing rows
are written to a second file, with the verdicts on them; in memory is one bit a row at the most, so memory
grows with the rows that fail and not with the table. The verdict is that of `core.evaluation` and
`core.outcome`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.declaration.rules import PRIMARY_KEY, Rule
from dagster_dataframely.core.report.statistics import statistics_expressions
from dagster_dataframely.core.verdict.evaluation import (
    naming_the_rule,
    refuse_other_height,
    rule_expressions,
)
from dagster_dataframely.core.verdict.masks import ROW, all_but, released, where
from dagster_dataframely.core.verdict.outcome import (
    Outcome,
    all_rules_valid,
    clean_outcome,
    count_duplicates,
    named,
    proved,
    rule_sets,
    rule_words,
    rules_over_rows,
)
from dagster_dataframely.core.verdict.staged import Compression, StagedParquet
from dagster_dataframely.core.verdict.uniqueness import duplicate_rows_of_file, unique_keys

# So many rows are looked at before all are: where errors are common, that saves the pass for a clean table.
_FIRST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Staging:
    """A parquet file in which a plan is staged, and how that file is compressed."""

    path: Path
    compression: Compression = "zstd"


@contextmanager
def staging_file(folder: Path | None, compression: Compression = "zstd") -> Iterator[Staging]:
    """Give a staging file that is gone afterwards, however the block ends.

    Args:
        folder: Where the file is to lie; None is the system's folder for temporary files.
        compression: How the table is compressed, which a clean staging file may become.
    """
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix=".dagster-dataframely-", dir=folder))
    try:
        yield Staging(own / "returned.parquet", compression)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def stage(plan: ValidationPlan, frame: pl.LazyFrame, staging: Staging) -> StagedParquet:
    """Execute the plan of a lazy frame, once, into a parquet file with the schema's columns."""
    frame.select(plan.columns).sink_parquet(staging.path, compression=staging.compression)
    return StagedParquet(staging.path)


def decide_staged(plan: ValidationPlan, staged: StagedParquet) -> Outcome:
    """Validate a staged file by streaming.

    Args:
        plan: The rules and whether error rows are held back.
        staged: The rows, with the schema's columns only.

    Returns:
        The outcome, whose frames are lazy and read the staged file, or the failing rows that are written beside
        it. Where nothing is dropped or moved, the table is the scan of the staged file itself.

    Raises:
        RuleEvaluationError: A rule raised, or does not give booleans.
    """
    scan = staged.scan()
    rows: int = scan.select(pl.len()).collect().item()
    marks = _marks(plan, staged, rows)
    described = None if marks else _described_if_clean(plan, scan, rows)
    if described is not None:
        return clean_outcome(plan, scan, rows, described)
    failing = _find(plan, staged, rows, marks)
    while plan.filter and (fallen := _fallen(plan, scan, rows, failing)):
        marks = _together(marks, fallen)
        failing = _find(plan, staged, rows, marks)
    if not failing.numbers.len():
        return clean_outcome(plan, scan, rows)
    return _decide(plan, scan, rows, failing)


@dataclass(frozen=True, slots=True)
class _Failing:
    """The rows that fail a rule."""

    #: Their numbers.
    numbers: pl.Series
    #: One Boolean column for each rule that some row fails, named as the rule, True where a row is valid.
    valid: pl.DataFrame
    #: The file of these rows: the schema's columns, then the verdict on each rule under the rule's name, which
    #: Dataframely lets no column have.
    path: Path

    def scan(self) -> pl.LazyFrame:
        return pl.scan_parquet(self.path, glob=False, hive_partitioning=False)


def _decide(plan: ValidationPlan, scan: pl.LazyFrame, rows: int, failing: _Failing) -> Outcome:
    valid = failing.valid
    is_error = ~all_rules_valid(valid, named(plan, "error"))
    errors = int(is_error.sum())
    may_write = errors == 0 or (plan.filter and errors < rows)
    failed = dict.fromkeys((rule.name for rule in plan.rules), 0)
    failed |= valid.select((~pl.all()).sum()).row(0, named=True)
    return Outcome(
        returned=rows,
        failed=failed,
        failed_rows={
            check.name: int((~all_rules_valid(valid, [rule.name for rule in check.rules])).sum())
            for check in plan.checks
            if check.collapsed
        },
        error_count=errors,
        warn_count=valid.height - errors,
        table=_table(plan, scan, rows, failing, is_error) if may_write else None,
        error_rows=_error_rows(plan, failing, is_error) if plan.filter else None,
        samples=_samples(plan, failing),
        duplicate_keys=_duplicate_keys(plan, failing),
        failed_together=rule_sets(valid.lazy()),
    )


# --- which rows fail which rules -------------------------------------------------------------------


def _marks(plan: ValidationPlan, staged: StagedParquet, rows: int) -> dict[str, pl.Series]:
    """Return the numbers of the rows that fail a rule that looks at more than one row, by rule."""
    scan = staged.scan()
    keys = unique_keys(plan)
    # Each is evaluated alone, so that only the columns that it names are in memory.
    found = {
        rule.name: _failing_alone(plan, scan, rule, rows)
        for rule in plan.rules
        if rule.name not in keys and not rule.looks_at_one_row
    }
    for name, columns in keys.items():
        found[name] = duplicate_rows_of_file(staged, columns, rows)
    return {name: numbers for name, numbers in found.items() if numbers.len()}


def _failing_alone(plan: ValidationPlan, frame: pl.LazyFrame, rule: Rule, rows: int) -> pl.Series:
    """Return the numbers of the rows that fail a rule, having counted the values that it gives."""
    expressions = rule_expressions(plan, frame, [rule])
    with naming_the_rule(plan, frame, [rule]):
        valid = frame.with_columns(**expressions).select(*expressions).collect(engine="streaming")
    refuse_other_height(plan, [rule], found=valid.height, rows=rows)
    return (~valid.to_series()).arg_true()


def _rules_of_one_row(plan: ValidationPlan) -> list[Rule]:
    keys = unique_keys(plan)
    return [rule for rule in plan.rules if rule.name not in keys and rule.looks_at_one_row]


def _described_if_clean(plan: ValidationPlan, scan: pl.LazyFrame, rows: int) -> pl.DataFrame | None:
    """Return what statistics select of a table, in the pass over it that proves the rules of one row.

    Returns:
        None where a rule does not hold everywhere, or where Polars raises: what raised is found out by whoever
        then evaluates the rules, or selects the statistics, alone.
    """
    rules = rule_expressions(plan, scan, _rules_of_one_row(plan))
    # Not named as the rules: statistics name theirs after a column's position, such as `0|min`.
    hold = [expr.all().alias(f"dy_rule:{name}") for name, expr in rules.items()]
    figures = (
        statistics_expressions(
            scan.collect_schema(), rows, redact=plan.settings.redact, **proved(plan, rows)
        )
        if plan.settings.statistics
        else []
    )
    try:
        for frame, selected in ((scan.head(_FIRST_ROWS), hold), (scan, [*hold, *figures])):
            found = frame.select(selected).collect(engine="streaming")
            if not all(found.select(pl.nth(range(len(hold)))).row(0) if hold else ()):
                return None
    except Exception:
        return None
    return found.select(pl.nth(range(len(hold), found.width)))


def _find(
    plan: ValidationPlan, staged: StagedParquet, rows: int, marks: Mapping[str, pl.Series]
) -> _Failing:
    """Write the rows that fail a rule to a file of their own, with the verdicts on them."""
    scan = staged.scan()
    path = staged.path.with_name("failing.parquet")
    rules = _rules_of_one_row(plan)
    verdicts = rule_expressions(plan, scan, rules)
    marked = {name: all_but(numbers, rows) for name, numbers in marks.items()}
    frame = scan
    if marked:
        frame = pl.concat([scan, pl.DataFrame(marked).lazy()], how="horizontal_extend")
    names = [*verdicts, *marked]
    # A schema may have no rule at all, and `all` of nothing raises.
    is_valid = pl.all_horizontal(pl.lit(True), *names)
    query = frame.with_columns(**verdicts).with_row_index(ROW).filter(~is_valid)
    with naming_the_rule(plan, scan, rules):
        released(query).sink_parquet(path, compression="lz4")
    found = pl.read_parquet(path, columns=[ROW, *names], glob=False)
    return _Failing(
        numbers=found[ROW],
        valid=found.select(
            rule.name for rule in plan.rules if rule.name in names and not found[rule.name].all()
        ),
        path=path,
    )


def _fallen(
    plan: ValidationPlan, scan: pl.LazyFrame, rows: int, failing: _Failing
) -> dict[str, pl.Series]:
    """Return the rows that fail an `error` rule once the error rows are dropped; see `core.outcome.settle`."""
    errors = failing.numbers.filter(~all_rules_valid(failing.valid, named(plan, "error")))
    if errors.is_empty():
        return {}
    is_kept = all_but(errors, rows)
    kept = where(scan, is_kept)
    found = {
        rule.name: _failing_alone(plan, kept, rule, rows - len(errors))
        for rule in rules_over_rows(plan)
    }
    return {
        name: is_kept.arg_true().gather(positions)
        for name, positions in found.items()
        if positions.len()
    }


def _together(
    marks: Mapping[str, pl.Series], more: Mapping[str, pl.Series]
) -> dict[str, pl.Series]:
    return {
        **marks,
        **{
            name: pl.concat([marks[name], numbers]) if name in marks else numbers
            for name, numbers in more.items()
        },
    }


# --- the frames ------------------------------------------------------------------------------------


def _table(
    plan: ValidationPlan, scan: pl.LazyFrame, rows: int, failing: _Failing, is_error: pl.Series
) -> pl.LazyFrame:
    valid = where(scan, all_but(failing.numbers, rows))
    if is_error.all():
        return valid
    only_warned = where(failing.scan().select(plan.columns), ~is_error)
    return pl.concat([valid, only_warned])


def _error_rows(plan: ValidationPlan, failing: _Failing, is_error: pl.Series) -> pl.LazyFrame:
    words = rule_words(plan, failing.valid.columns)
    return where(failing.scan(), is_error).select(*plan.columns, *words)


def _samples(plan: ValidationPlan, failing: _Failing) -> dict[str, pl.DataFrame]:
    most = plan.settings.max_failure_samples
    if not most:
        return {}
    rows = failing.scan().select(plan.columns)
    return {
        name: pl.concat(
            [rows.slice(position, 1) for position in (~column).arg_true().head(most)]
        ).collect()
        for name, column in failing.valid.to_dict().items()
    }


def _duplicate_keys(plan: ValidationPlan, failing: _Failing) -> pl.DataFrame | None:
    if PRIMARY_KEY not in failing.valid.columns or not plan.settings.max_failure_samples:
        return None
    duplicated = where(failing.scan().select(plan.primary_key), ~failing.valid[PRIMARY_KEY])
    return count_duplicates(duplicated, plan).collect(engine="streaming")
