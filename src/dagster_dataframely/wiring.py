"""The core for assets that you build yourself: a multi-asset, a graph, another library's decorator.

`dd.asset` and the components stand on the same functions, so a frame gets the same verdict here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dagster as dg
import dataframely as dy

from dagster_dataframely.core.declaration import check_specs as _check_specs
from dagster_dataframely.core.declaration.columns import table_schema
from dagster_dataframely.core.declaration.names import check_name
from dagster_dataframely.core.declaration.plan import ValidationPlan, plan_validation
from dagster_dataframely.core.report import results as _results
from dagster_dataframely.core.settings import resolve_settings
from dagster_dataframely.core.verdict.masks import Frame
from dagster_dataframely.core.verdict.validation import validate
from dagster_dataframely.step.compute import Result, results
from dagster_dataframely.step.destination import destination_of

__all__ = [
    "check_name",
    "check_results",
    "check_specs",
    "schema_metadata",
    "table_schema",
    "validation_results",
]


def check_specs(
    schema: type[dy.Schema],
    *,
    asset: dg.AssetKey | str | list[str],
    filter: bool = False,  # noqa: A002 - Dataframely's own word for it
    **settings: Any,
) -> list[dg.AssetCheckSpec]:
    """Return the check specs of a schema, for the `check_specs` of an asset that you build.

    Args:
        schema: The schema of the table.
        asset: The key of the asset.
        filter: Whether the run will hold error rows back; no rule's check is blocking then.
        **settings: Settings, as `dd.asset` takes them.

    Returns:
        The column-schema check first, then the checks of the rules.

    Raises:
        DataframelyError: As `dd.asset` raises for a schema or a setting.

    Examples:
        >>> from dagster_dataframely.data import OrdersSchema
        >>> check_specs(OrdersSchema, asset="orders", check_granularity="schema")[1].name
        'dy_schema__rules'
    """
    plan = _plan(schema, filter, settings, "dd.wiring.check_specs")
    return _check_specs.check_specs(plan, dg.AssetKey.from_coercible(asset))


def check_results(
    schema: type[dy.Schema],
    frame: Frame | None,
    *,
    asset: dg.AssetKey | str | list[str],
    **settings: Any,
) -> list[dg.AssetCheckResult]:
    """Validate a frame and return the result of each check. Nothing is raised for rows that fail.

    Args:
        schema: The schema of the table.
        frame: The rows, eager or lazy; a lazy frame is executed once. None passes every check.
        asset: The key of the asset.
        **settings: Settings, as `dd.asset` takes them.

    Returns:
        One result a check, each at its own severity. With a missing column or another dtype, only the
        failing column-schema check.

    Raises:
        RuleEvaluationError: A rule raised, or does not give booleans.
        DataframelyError: As `dd.asset` raises for a schema or a setting.

    Examples:
        >>> from dagster_dataframely.data import OrdersSchema, warn_orders
        >>> results = check_results(OrdersSchema, warn_orders(), asset="orders")
        >>> [result.check_name for result in results if not result.passed]
        ['dy_rule__amount_has_whole_cents', 'dy_rule__email__regex']
    """
    plan = _plan(schema, False, settings, "dd.wiring.check_results")
    outcome = validate(plan, frame)
    return list(_results.check_results(plan, outcome, dg.AssetKey.from_coercible(asset)))


def validation_results(
    schema: type[dy.Schema],
    frame: Frame | None,
    *,
    asset: dg.AssetKey | str | list[str],
    context: dg.AssetExecutionContext | None = None,
    filter: bool = False,  # noqa: A002 - Dataframely's own word for it
    **settings: Any,
) -> Iterator[Result]:
    """Yield what `dd.asset` yields for a frame, from inside an asset function of your own.

    Args:
        schema: The schema of the table.
        frame: The rows, eager or lazy, or None to write nothing.
        asset: The key of the asset that has these checks.
        context: The running step. Needed with `filter=True`, where the error rows are written through the
            asset's IO manager; without it they are yielded as a `dd.ErrorRows`.
        filter: Whether rows that fail an `error` rule are held back.
        **settings: Settings, as `dd.asset` takes them.

    Yields:
        The error rows' materialization, the table as a `dg.MaterializeResult`, then the check results.

    Raises:
        ColumnSchemaError: A column is missing or has another dtype.
        ValidationAbortError: Rows failed `error` rules, and `filter` is False.
        NoValidRowsError: Every row failed an `error` rule, and `filter` is True.
        RuleEvaluationError: A rule raised, or does not give booleans.

    Examples:
        >>> from dagster_dataframely.data import OrdersSchema, warn_orders
        >>> table, *checks = validation_results(OrdersSchema, warn_orders(), asset="orders")
        >>> table.metadata["dagster/row_count"], all(check.passed for check in checks)
        (4, False)
    """
    plan = _plan(schema, filter, settings, "dd.wiring.validation_results")
    key = dg.AssetKey.from_coercible(asset)
    yield from results(plan, frame, destination_of(key, context))


def schema_metadata(schema: type[dy.Schema]) -> dict[str, Any]:
    """Return the metadata that shows a schema's columns in the columns of its page.

    Examples:
        >>> from dagster_dataframely.data import OrdersSchema
        >>> sorted(schema_metadata(OrdersSchema))
        ['dagster/column_schema', 'dataframely/schema']
    """
    return _results.definition_metadata(_plan(schema, False, {}, "dd.wiring.schema_metadata"))


def _plan(
    schema: type[dy.Schema], filter_: bool, settings: dict[str, Any], used_by: str
) -> ValidationPlan:
    return plan_validation(
        schema,
        used_by=used_by,
        filter=filter_,
        redact=settings.get("redact") or (),
        settings=resolve_settings(**settings),
    )
