"""What Dagster stores of an outcome: check results, and the metadata of a materialization."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely.core.declaration.columns import table_schema
from dagster_dataframely.core.declaration.names import COLUMN_SCHEMA_CHECK, error_rows_key
from dagster_dataframely.core.declaration.plan import RuleCheck, ValidationPlan
from dagster_dataframely.core.declaration.rules import PRIMARY_KEY, Rule
from dagster_dataframely.core.report.samples import sample_table
from dagster_dataframely.core.report.statistics import statistics, statistics_expressions
from dagster_dataframely.core.verdict.masks import Frame
from dagster_dataframely.core.verdict.outcome import Outcome
from dagster_dataframely.core.verdict.rows import Figures

# Where Dagster's app looks for columns: https://docs.dagster.io/guides/build/assets/metadata-and-tags
COLUMN_SCHEMA_KEY = "dagster/column_schema"
SCHEMA_KEY = "dataframely/schema"


def check_results(
    plan: ValidationPlan, outcome: Outcome, asset: dg.AssetKey
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of each check that this outcome decides.

    Args:
        plan: The checks.
        outcome: The verdict on the returned frame.
        asset: The key of the asset.

    Yields:
        The column-schema check first. Where it fails, nothing else was evaluated and nothing else follows.
    """
    yield _column_schema_result(outcome, asset)
    if outcome.column_errors:
        return
    for check in plan.checks:
        yield _rule_check_result(plan, outcome, check, asset)


def column_schema_passed(asset: dg.AssetKey) -> dg.AssetCheckResult:
    """Return the passing column-schema check, for a run in which a rule could not be evaluated."""
    return _column_schema_result(Outcome(), asset)


def _column_schema_result(outcome: Outcome, asset: dg.AssetKey) -> dg.AssetCheckResult:
    errors = outcome.column_errors
    metadata: dict[str, Any] = {}
    if errors:
        metadata["dataframely/column_errors"] = _table(
            [(name, "string") for name in ("column", "expected", "actual", "hint")],
            [
                (error.column, error.expected, error.actual or "(missing)", error.hint or "")
                for error in errors
            ],
        )
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=COLUMN_SCHEMA_CHECK,
        passed=not errors,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
    )


def _rule_check_result(
    plan: ValidationPlan, outcome: Outcome, check: RuleCheck, asset: dg.AssetKey
) -> dg.AssetCheckResult:
    failing = [rule for rule in check.rules if outcome.failed[rule.name]]
    worst_is_error = any(rule.severity == "error" for rule in failing or check.rules)
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=check.name,
        passed=not failing,
        severity=dg.AssetCheckSeverity.ERROR if worst_is_error else dg.AssetCheckSeverity.WARN,
        metadata=_rule_check_metadata(plan, outcome, check, failing),
    )


def _rule_check_metadata(
    plan: ValidationPlan, outcome: Outcome, check: RuleCheck, failing: list[Rule]
) -> dict[str, Any]:
    if check.collapsed:
        metadata: dict[str, Any] = {
            "dataframely/rules": _table(
                [
                    ("rule", "string"),
                    ("severity", "string"),
                    ("failed_count", "int"),
                    ("expression", "string"),
                ],
                [
                    (rule.name, rule.severity, outcome.failed[rule.name], rule.expression)
                    for rule in check.rules
                ],
            ),
        }
        failed = outcome.failed_rows.get(check.name, 0)
    else:
        rule = check.rules[0]
        metadata = {
            "dataframely/rule": rule.name,
            "dataframely/expression": rule.expression,
            "dataframely/severity": rule.severity,
        }
        failed = outcome.failed[rule.name]
    metadata["dataframely/failed_count"] = failed
    metadata["dataframely/failed_ratio"] = _ratio(failed, outcome.returned)
    sample = _failed_sample(plan, outcome, failing, collapsed=check.collapsed)
    if sample is not None:
        metadata["dataframely/failed_sample"] = sample
    if any(rule.name == PRIMARY_KEY for rule in failing) and outcome.duplicate_keys is not None:
        metadata["dataframely/duplicate_keys"] = sample_table(
            outcome.duplicate_keys.unnest("key"), redact=plan.settings.redact
        )
    return metadata


def _failed_sample(
    plan: ValidationPlan, outcome: Outcome, failing: list[Rule], *, collapsed: bool
) -> dg.TableMetadataValue | None:
    samples = [
        (rule.name, outcome.samples[rule.name]) for rule in failing if rule.name in outcome.samples
    ]
    if not samples:
        return None
    if not collapsed:
        return sample_table(samples[0][1], first=plan.primary_key, redact=plan.settings.redact)
    # A schema column may not begin with `dy_`, so the rule's column cannot meet one of the data.
    named = [rows.select(pl.lit(rule).alias("dy_rule"), pl.all()) for rule, rows in samples]
    return sample_table(
        pl.concat(named), first=("dy_rule", *plan.primary_key), redact=plan.settings.redact
    )


def materialization_metadata(
    plan: ValidationPlan, outcome: Outcome, asset: dg.AssetKey
) -> dict[str, Any]:
    """Return the metadata of the materialization of a table that was written.

    Counts and ratios are there on every run, as numbers, so that Dagster draws them over time.

    Args:
        plan: The validation of the asset.
        outcome: An outcome with a table.
        asset: The key of the asset.
    """
    redact = plan.settings.redact
    metadata: dict[str, Any] = {
        "dagster/row_count": outcome.written,
        "dataframely/returned_row_count": outcome.returned,
        "dataframely/warn_row_count": outcome.warn_count,
        "dataframely/error_row_count": outcome.error_count,
        "dataframely/error_ratio": _ratio(outcome.error_count, outcome.returned),
    }
    if plan.filter:
        metadata["dataframely/error_rows"] = dg.MetadataValue.asset(error_rows_key(asset))
    if plan.settings.row_sample:
        metadata |= _row_samples(plan, outcome)
    if outcome.failed_together:
        metadata["dataframely/failures_by_rules"] = _table(
            [("rules", "string"), ("rows", "int")],
            [(", ".join(rules), count) for rules, count in outcome.failed_together],
        )
    if plan.settings.statistics and outcome.table is not None:
        tables = statistics(
            outcome.table,
            redact=redact,
            selected=outcome.described,
            **_proved(plan, outcome.written),
        )
        metadata |= {f"dataframely/statistics/{group}": table for group, table in tables.items()}
    return metadata


def table_figures(plan: ValidationPlan) -> Figures | None:
    """Return what the statistics of a plan's table need of it, for `validate` to find on its way."""
    if not plan.settings.statistics:
        return None
    return lambda schema, rows: statistics_expressions(
        schema, rows, redact=plan.settings.redact, **_proved(plan, rows)
    )


def _proved(plan: ValidationPlan, written: int) -> dict[str, dict[str, int]]:
    """Return what the rules prove of a table of so many rows, so that its statistics need not compute it.

    Returns:
        `distinct` and `nulls`, as `statistics` takes them: a number a column.
    """
    return {
        "distinct": {
            key[0]: written
            for rule, key in plan.unique_keys.items()
            if len(key) == 1 and rule in plan.error_rules
        },
        "nulls": {
            rule.column: 0
            for rule in plan.rules
            if rule.column and rule.kind == "nullability" and rule.severity == "error"
        },
    }


def error_rows_metadata(
    plan: ValidationPlan, outcome: Outcome, asset: dg.AssetKey
) -> dict[str, Any]:
    """Return the metadata of the error rows' materialization: their number, and how many failed each rule."""
    return {
        "dagster/row_count": outcome.error_count,
        "dataframely/error_rows_of": dg.MetadataValue.asset(asset),
        "dataframely/failed_counts": _table(
            [("rule", "string"), ("severity", "string"), ("failed_count", "int")],
            [(rule.name, rule.severity, outcome.failed[rule.name]) for rule in plan.rules],
        ),
    }


def _row_samples(plan: ValidationPlan, outcome: Outcome) -> Iterator[tuple[str, Any]]:
    for key, frame in (
        ("dataframely/sample", outcome.table),
        ("dataframely/error_sample", outcome.error_rows),
    ):
        if frame is None:
            continue
        rows = _first_rows(frame, plan.settings.row_sample)
        if rows.height:
            yield key, sample_table(rows, first=plan.primary_key, redact=plan.settings.redact)


def _first_rows(frame: Frame, most: int) -> pl.DataFrame:
    return frame.lazy().head(most).collect()


def definition_metadata(plan: ValidationPlan) -> dict[str, Any]:
    """Return the metadata that an asset has before its first run: the schema's columns, and its name."""
    return {
        COLUMN_SCHEMA_KEY: dg.MetadataValue.table_schema(table_schema(plan.schema)),
        SCHEMA_KEY: f"{plan.schema.__module__}.{plan.schema.__qualname__}",
    }


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _table(
    columns: Sequence[tuple[str, str]], rows: Iterable[tuple[Any, ...]]
) -> dg.TableMetadataValue:
    names = [name for name, _ in columns]
    return dg.MetadataValue.table(
        [dg.TableRecord(dict(zip(names, row, strict=True))) for row in rows],
        schema=dg.TableSchema([dg.TableColumn(name, type=type_) for name, type_ in columns]),
    )
