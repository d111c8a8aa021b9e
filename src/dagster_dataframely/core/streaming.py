"""Validating a plan that is larger than memory: staged once as a parquet file, then only scanned.

The plan of a lazy frame is executed once, into the staging file. Everything else reads that file by
streaming, and keeps one bit a row and rule at the most, so memory grows with the rows that fail and not
with the table. The verdict is that of `core.evaluation` and `core.outcome`.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from dagster_dataframely.core.evaluation import (
    hash_of,
    naming_the_rule,
    refuse_other_height,
    rule_query,
    unique_keys,
)
from dagster_dataframely.core.outcome import (
    Outcome,
    all_rules_valid,
    count_duplicates,
    empty_error_rows,
    named,
    rule_sets,
    rule_words,
    rules_over_rows,
)
from dagster_dataframely.core.plan import ValidationPlan
from dagster_dataframely.core.rules import PRIMARY_KEY, Rule
from dagster_dataframely.core.staged import Compression, StagedParquet
from dagster_dataframely.upstream.polars_expression import looks_at_one_row

# Hashes of so many rows are compared at a time: 8 bytes a row, and as much again to compare them.
_ROWS_A_SLICE = 5_000_000
# No column of a schema begins with `dy_`.
_ROW = "dy_row"
_HASH = "dy_hash"
_KEPT = "dy_kept"
_AGAIN = "dy_again:"


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
        The outcome, whose frames are lazy and read the staged file. Where nothing is dropped or moved, the
        table is the scan of the staged file itself.

    Raises:
        RuleEvaluationError: A rule raised, or does not give booleans.
    """
    scan = staged.scan()
    rows: int = scan.select(pl.len()).collect().item()
    failing = _failing_rows(plan, staged, rows)
    failed = dict.fromkeys((rule.name for rule in plan.rules), 0)
    failed |= _count_failed(failing)
    if not failing.height:
        return Outcome(
            returned=rows,
            failed=failed,
            table=scan,
            error_rows=empty_error_rows(plan) if plan.filter else None,
        )
    if plan.filter:
        failing = _settle(plan, scan, rows, failing)
        failed |= _count_failed(failing)
    valid = failing.drop(_ROW)
    is_error = ~all_rules_valid(valid, named(plan, "error"))
    errors = int(is_error.sum())
    may_write = errors == 0 or (plan.filter and errors < rows)
    return Outcome(
        returned=rows,
        failed=failed,
        failed_rows={
            check.name: int((~all_rules_valid(valid, [rule.name for rule in check.rules])).sum())
            for check in plan.checks
            if check.collapsed
        },
        error_count=errors,
        warn_count=failing.height - errors,
        table=_table(scan, rows, failing[_ROW], is_error) if may_write else None,
        error_rows=_error_rows(plan, scan, rows, failing.filter(is_error)) if plan.filter else None,
        samples=_samples(plan, scan, failing),
        duplicate_keys=_duplicate_keys(plan, scan, rows, failing),
        failed_together=rule_sets(valid.lazy()),
    )


# --- which rows fail which rules -------------------------------------------------------------------


def _failing_rows(plan: ValidationPlan, staged: StagedParquet, rows: int) -> pl.DataFrame:
    """Return the rows that fail a rule: their number `dy_row`, and one Boolean column a failing rule."""
    scan = staged.scan()
    keys = unique_keys(plan)
    others = [rule for rule in plan.rules if rule.name not in keys]
    one_row = [rule for rule in others if rule.expr is not None and looks_at_one_row(rule.expr)]
    parts = [_failing(plan, scan, one_row)] if one_row else []
    # A rule over groups is evaluated alone, so that only the columns that it names are in memory.
    parts += [_failing_alone(plan, scan, rule, rows) for rule in others if rule not in one_row]
    for name, columns in keys.items():
        duplicates = duplicate_rows(staged, columns, rows)
        parts.append(
            pl.DataFrame({_ROW: duplicates, name: pl.repeat(False, len(duplicates), eager=True)})
        )
    return _joined(plan, parts)


def _failing(
    plan: ValidationPlan, frame: pl.LazyFrame, rules: Sequence[Rule], *, numbered: bool = False
) -> pl.DataFrame:
    """Return the rows that fail one of these rules; `numbered` where the frame has its own `dy_row`."""
    names = [rule.name for rule in rules]
    query = rule_query(plan, frame, rules, beside=[_ROW] if numbered else [])
    if not numbered:
        query = query.with_row_index(_ROW)
    with naming_the_rule(plan, frame, rules):
        found = query.filter(~pl.all_horizontal(names)).collect(engine="streaming")
    return found.select(_ROW, *(name for name in names if not found[name].all()))


def _failing_alone(plan: ValidationPlan, scan: pl.LazyFrame, rule: Rule, rows: int) -> pl.DataFrame:
    """Return the rows that fail a rule that may look at all of them, having counted its values."""
    with naming_the_rule(plan, scan, [rule]):
        valid = rule_query(plan, scan, [rule]).collect(engine="streaming")
    refuse_other_height(plan, [rule], found=valid.height, rows=rows)
    return valid.with_row_index(_ROW).filter(~pl.col(rule.name))


def _joined(plan: ValidationPlan, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Put the findings of several passes beside one another, by row, in the order of the rules.

    A row fails a rule if any part says so.
    """
    joined = pl.DataFrame(schema={_ROW: pl.UInt32})
    for part in parts:
        if not part.height:
            continue
        again = [name for name in part.columns if name in joined.columns and name != _ROW]
        renamed = part.rename({name: _AGAIN + name for name in again})
        joined = joined.join(renamed, on=_ROW, how="full", coalesce=True).with_columns(
            pl.col(name).fill_null(True) & pl.col(_AGAIN + name).fill_null(True) for name in again
        )
    columns = [rule.name for rule in plan.rules if rule.name in joined.columns]
    return joined.sort(_ROW).select(_ROW, pl.col(columns).fill_null(True))


def _count_failed(failing: pl.DataFrame) -> dict[str, int]:
    counts = failing.drop(_ROW).select((~pl.all()).sum())
    return counts.row(0, named=True) if counts.width else {}


def duplicate_rows(staged: StagedParquet, columns: Sequence[str], rows: int) -> pl.Series:
    """Return the numbers of the rows whose key another row has too.

    The hashes of the keys are written once, beside the staging file, and compared some million at a time:
    where all differ, all keys differ. Only keys whose hash occurs twice are compared themselves.
    """
    scan = staged.scan()
    file = staged.path.with_name("hashes.parquet")
    scan.select(hash_of(columns).alias(_HASH)).sink_parquet(file, compression="uncompressed")
    hashes = pl.scan_parquet(file, glob=False)
    slices = max(1, math.ceil(rows / _ROWS_A_SLICE))
    repeated = pl.concat([_repeated_hashes(hashes, part, slices) for part in range(slices)])
    if repeated.is_empty():
        return pl.Series(_ROW, [], dtype=pl.UInt32)
    suspects = _collect_rows(hashes.with_row_index(_ROW), pl.col(_HASH).is_in(repeated.implode()))
    keys = _only(scan.select(columns), rows, suspects).collect(engine="streaming")
    return suspects.filter(~keys.select(pl.struct(columns).is_unique()).to_series())


def _repeated_hashes(hashes: pl.LazyFrame, part: int, slices: int) -> pl.Series:
    own = hashes.filter(pl.col(_HASH) % slices == part) if slices > 1 else hashes
    counts = own.select(pl.len().alias("rows"), pl.col(_HASH).n_unique().alias("distinct"))
    if counts.select(pl.col("rows") == pl.col("distinct")).collect(engine="streaming").item():
        return pl.Series(_HASH, [], dtype=pl.UInt64)
    repeated = own.group_by(_HASH).len().filter(pl.col("len") > 1).select(_HASH)
    return repeated.collect(engine="streaming").to_series()


def _collect_rows(numbered: pl.LazyFrame, condition: pl.Expr) -> pl.Series:
    return numbered.filter(condition).select(_ROW).collect(engine="streaming").to_series()


def _settle(
    plan: ValidationPlan, scan: pl.LazyFrame, rows: int, failing: pl.DataFrame
) -> pl.DataFrame:
    """Evaluate the kept rows again until every `error` rule holds on them; see `core.outcome.settle`."""
    group_rules = rules_over_rows(plan)
    error_rules = named(plan, "error")
    while group_rules:
        errors = failing.filter(~all_rules_valid(failing.drop(_ROW), error_rules))[_ROW]
        if errors.is_empty():
            break
        kept = _only(scan.with_row_index(_ROW), rows, errors, inverse=True)
        again = [_failing(plan, kept, [rule], numbered=True) for rule in group_rules]
        if not any(part.height for part in again):
            break
        failing = _joined(plan, [failing, *again])
    return failing


# --- the frames ------------------------------------------------------------------------------------


def _only(
    frame: pl.LazyFrame, rows: int, numbers: pl.Series, *, inverse: bool = False
) -> pl.LazyFrame:
    """Return the rows of a frame with these numbers, or all others, in the frame's order.

    One bit a row is put beside the frame, which streams; a list of numbers would be looked up row by row.
    """
    bits = pl.repeat(inverse, rows, dtype=pl.Boolean, eager=True).scatter(numbers, not inverse)
    kept = pl.DataFrame({_KEPT: bits}).lazy()
    return pl.concat([frame, kept], how="horizontal_extend").filter(_KEPT).drop(_KEPT)


def _table(scan: pl.LazyFrame, rows: int, failing: pl.Series, is_error: pl.Series) -> pl.LazyFrame:
    valid = _only(scan, rows, failing, inverse=True)
    only_warned = failing.filter(~is_error)
    if only_warned.is_empty():
        return valid
    return pl.concat([valid, _only(scan, rows, only_warned)])


def _error_rows(
    plan: ValidationPlan, scan: pl.LazyFrame, rows: int, errors: pl.DataFrame
) -> pl.LazyFrame:
    verdicts = errors.drop(_ROW)
    data = _rows_that_fail(plan, scan, verdicts)
    if data is None:
        data = _only(scan, rows, errors[_ROW])
    beside = pl.concat([data, verdicts.lazy()], how="horizontal_extend") if verdicts.width else data
    return beside.select(*plan.columns, *rule_words(plan, verdicts.columns))


def _rows_that_fail(
    plan: ValidationPlan, scan: pl.LazyFrame, verdicts: pl.DataFrame
) -> pl.LazyFrame | None:
    """Return the error rows by the rules themselves, or None where a rule looks at more than one row.

    Such a filter is applied while the file is read, so that only rows that fail are ever whole in memory.
    """
    broken = [
        rule
        for rule in plan.rules
        if rule.severity == "error"
        and rule.name in verdicts.columns
        and not verdicts[rule.name].all()
    ]
    exprs = [rule.expr.fill_null(True) for rule in broken if rule.expr is not None]
    if not all(looks_at_one_row(expr) for expr in exprs):
        return None
    if not exprs:
        return scan.head(0)
    return scan.filter(~pl.all_horizontal(exprs))


def _samples(
    plan: ValidationPlan, scan: pl.LazyFrame, failing: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    most = plan.settings.max_failure_samples
    if not most:
        return {}
    # A slice reads no more of the file than the row group that it lies in.
    return {
        name: pl.concat(
            [scan.slice(row, 1) for row in failing.filter(~failing[name])[_ROW].head(most)]
        ).collect()
        for name in failing.columns
        if name != _ROW
    }


def _duplicate_keys(
    plan: ValidationPlan, scan: pl.LazyFrame, rows: int, failing: pl.DataFrame
) -> pl.DataFrame | None:
    if PRIMARY_KEY not in failing.columns or not plan.settings.max_failure_samples:
        return None
    duplicates = failing.filter(~failing[PRIMARY_KEY])[_ROW]
    keys = _only(scan.select(plan.primary_key), rows, duplicates)
    return count_duplicates(keys, plan).collect(engine="streaming")
