"""`dd.asset_checks`: a schema's checks on a table that something else writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl

from dagster_dataframely.core.declaration.check_specs import check_specs
from dagster_dataframely.core.declaration.plan import ValidationPlan, plan_validation
from dagster_dataframely.core.report.results import check_results, column_schema_passed
from dagster_dataframely.core.settings import (
    CheckGranularity,
    SchemaRules,
    read_bool,
    resolve_settings,
)
from dagster_dataframely.core.verdict.staged import staging_file
from dagster_dataframely.core.verdict.validation import failure_of, is_frame, validate
from dagster_dataframely.errors import InvalidReturnError, RuleEvaluationError
from dagster_dataframely.step.function import compute_function, described_value, refuse_function
from dagster_dataframely.step.loading import load_table


def asset_checks(
    schema: type[dy.Schema],
    *,
    asset: dg.AssetKey | str | list[str] | dg.AssetsDefinition | dg.AssetSpec,
    fn: Callable[..., Any] | None = None,
    blocking: bool = True,
    stream: bool = False,
    check_granularity: CheckGranularity | None = None,
    schema_rules: SchemaRules | None = None,
    max_failure_samples: int | None = None,
    redact: Iterable[str] | None = None,
    staging_dir: str | Path | None = None,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    automation_condition: dg.AutomationCondition[Any] | None = None,
    name: str | None = None,
    ins: Mapping[str, dg.AssetIn] | None = None,
    required_resource_keys: AbstractSet[str] | None = None,
    resource_defs: Mapping[str, object] | None = None,
    op_tags: Mapping[str, Any] | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    pool: str | None = None,
) -> dg.AssetChecksDefinition:
    """Check a table that this package does not write: a dbt model, an ingested or an external table.

    The checks have the names, severities and metadata that `dd.asset` gives them. Nothing is written.

    Args:
        schema: The schema that the table should have.
        asset: The asset whose table is checked.
        fn: A function that returns the frame, or None for no data; it may take `context`, config and
            resources. By default the asset is loaded through its IO manager, lazily where that can.
        blocking: Whether a check with an `error` rule keeps the assets downstream from running.
        stream: Whether a lazy frame is validated without being collected, as in `dd.asset`.
        check_granularity: As in `dd.asset`.
        schema_rules: As in `dd.asset`.
        max_failure_samples: As in `dd.asset`.
        redact: As in `dd.asset`.
        staging_dir: As in `dd.asset`.
        partitions_def: The partitions to check one at a time; those of the asset.
        automation_condition: When to execute the checks.
        name: The name of the op. By default the key's parts, then `checks`, separated by underscores.
        ins: As in `dg.multi_asset_check`.
        required_resource_keys: As in `dg.multi_asset_check`.
        resource_defs: As in `dg.multi_asset_check`.
        op_tags: As in `dg.multi_asset_check`.
        retry_policy: As in `dg.multi_asset_check`.
        pool: As in `dg.multi_asset_check`.

    Returns:
        The checks, to be given to `dg.Definitions(asset_checks=[...])`.

    Raises:
        DataframelyError: As `dd.asset` raises for a schema, a setting or a function.

    Examples:
        >>> import dagster as dg
        >>> import dagster_dataframely as dd
        >>> from dagster_dataframely.data import OrdersSchema, warn_orders
        >>> checks = dd.asset_checks(
        ...     OrdersSchema, asset="dbt/orders", fn=warn_orders, check_granularity="schema"
        ... )
        >>> [(result.check_name, result.passed) for result in checks()]
        [('dy_schema__columns', True), ('dy_schema__rules', False)]
    """
    return build_checks(
        schema,
        asset=asset,
        used_by="dd.asset_checks",
        fn=fn,
        blocking=blocking,
        stream=stream,
        check_granularity=check_granularity,
        schema_rules=schema_rules,
        max_failure_samples=max_failure_samples,
        redact=redact,
        staging_dir=staging_dir,
        partitions_def=partitions_def,
        automation_condition=automation_condition,
        name=name,
        ins=ins,
        required_resource_keys=required_resource_keys,
        resource_defs=resource_defs,
        op_tags=op_tags,
        retry_policy=retry_policy,
        pool=pool,
    )


def build_checks(
    schema: object,
    *,
    asset: Any,
    used_by: str,
    fn: Callable[..., Any] | None,
    blocking: bool,
    stream: bool,
    partitions_def: dg.PartitionsDefinition[Any] | None,
    automation_condition: dg.AutomationCondition[Any] | None,
    name: str | None = None,
    redact: Iterable[str] | None = None,
    required_resource_keys: AbstractSet[str] | None = None,
    check_granularity: CheckGranularity | None = None,
    schema_rules: SchemaRules | None = None,
    max_failure_samples: int | None = None,
    staging_dir: str | Path | None = None,
    **arguments: Any,
) -> dg.AssetChecksDefinition:
    """Build the checks of a schema on an asset, for the function and for the component.

    Args:
        schema: As in `asset_checks`.
        asset: As in `asset_checks`, and so are all that follow but the two below.
        used_by: What builds the checks, for messages.
        fn: See `asset_checks`.
        blocking: See `asset_checks`.
        stream: See `asset_checks`.
        partitions_def: See `asset_checks`.
        automation_condition: See `asset_checks`.
        name: See `asset_checks`.
        redact: See `asset_checks`.
        required_resource_keys: See `asset_checks`.
        check_granularity: See `asset_checks`.
        schema_rules: See `asset_checks`.
        max_failure_samples: See `asset_checks`.
        staging_dir: See `asset_checks`.
        **arguments: Further arguments of `dg.multi_asset_check`.

    Returns:
        The checks.

    Raises:
        DataframelyError: As `dd.asset_checks` raises.
    """
    plan = plan_validation(
        schema,
        used_by=used_by,
        stream=stream,
        redact=redact or (),
        settings=resolve_settings(
            check_granularity=check_granularity,
            schema_rules=schema_rules,
            max_failure_samples=max_failure_samples,
            redact=redact,
            staging_dir=staging_dir,
        ),
    )
    key = _key_of(asset)
    if fn is not None:
        refuse_function(fn, used_by=used_by)
    decorate = dg.multi_asset_check(
        name=name or f"{key.to_python_identifier()}_checks",
        specs=check_specs(
            plan,
            key,
            blocking=read_bool(blocking, "The argument `blocking`"),
            partitions_def=partitions_def,
            automation_condition=automation_condition,
        ),
        required_resource_keys=set(required_resource_keys or ()),
        **arguments,
    )
    compute = compute_function(
        fn or _loading(key),
        enter=lambda: None,
        results=lambda returned, _: _results(plan, returned, key),
    )
    return decorate(compute)


def _key_of(asset: Any) -> dg.AssetKey:
    if isinstance(asset, dg.AssetKey):
        return asset
    if isinstance(asset, (dg.AssetsDefinition, dg.AssetSpec)):
        return asset.key
    # A text is a user string, as in `deps`: its parts are separated by "/".
    return dg.AssetKey.from_user_string(asset) if isinstance(asset, str) else dg.AssetKey(asset)


def _loading(key: dg.AssetKey) -> Callable[..., Any]:
    def load(context: dg.AssetCheckExecutionContext) -> Any:
        return load_table(context, key)

    return load


def _results(plan: ValidationPlan, frame: Any, key: dg.AssetKey) -> Iterator[dg.AssetCheckResult]:
    if frame is not None and not is_frame(frame):
        raise InvalidReturnError(
            f"The table of asset '{key.to_user_string()}' was read as {described_value(frame)}. The checks "
            "take a pl.DataFrame, a pl.LazyFrame, or None where there is no data."
        )
    is_streamed = plan.stream and isinstance(frame, pl.LazyFrame)
    with staging_file(plan.settings.staging_dir) if is_streamed else nullcontext() as staging:
        try:
            outcome = validate(plan, frame, staging=staging)
        except RuleEvaluationError:
            yield column_schema_passed(key)
            raise
    yield from check_results(plan, outcome, key)
    # Rows that fail are the checks' own business. Without its columns, there was nothing to check.
    failure = failure_of(plan, outcome) if outcome.column_errors else None
    if failure is not None:
        raise failure
