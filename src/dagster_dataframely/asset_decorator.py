"""`dd.asset`: Dagster's asset decorator for a table that a Dataframely schema declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy

from dagster_dataframely.core.declaration.check_specs import check_specs
from dagster_dataframely.core.declaration.fingerprint import fingerprint
from dagster_dataframely.core.declaration.plan import ValidationPlan, plan_validation
from dagster_dataframely.core.report.results import definition_metadata
from dagster_dataframely.core.settings import CheckGranularity, SchemaRules, resolve_settings
from dagster_dataframely.errors import InvalidFunctionError
from dagster_dataframely.step.compute import compute_asset
from dagster_dataframely.step.function import refuse_function


def asset(
    schema: type[dy.Schema],
    *,
    filter: bool = False,  # noqa: A002 - Dataframely's own word for it
    stream: bool = False,
    check_granularity: CheckGranularity | None = None,
    schema_rules: SchemaRules | None = None,
    statistics: bool | None = None,
    max_failure_samples: int | None = None,
    row_sample: int | None = None,
    redact: Iterable[str] | None = None,
    staging_dir: str | Path | None = None,
    name: str | None = None,
    key_prefix: str | Sequence[str] | None = None,
    ins: Mapping[str, dg.AssetIn] | None = None,
    deps: Iterable[Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
    description: str | None = None,
    config_schema: Any = None,
    required_resource_keys: AbstractSet[str] | None = None,
    resource_defs: Mapping[str, object] | None = None,
    hooks: AbstractSet[dg.HookDefinition] | None = None,
    io_manager_def: object | None = None,
    io_manager_key: str | None = None,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    op_tags: Mapping[str, Any] | None = None,
    group_name: str | None = None,
    automation_condition: dg.AutomationCondition[Any] | None = None,
    freshness_policy: dg.FreshnessPolicy | None = None,
    backfill_policy: dg.BackfillPolicy | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    code_version: str | None = None,
    key: dg.AssetKey | str | Sequence[str] | None = None,
    owners: Sequence[str] | None = None,
    kinds: AbstractSet[str] | None = None,
    pool: str | None = None,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Declare an asset whose table a Dataframely schema describes.

    The decorated function returns a `pl.DataFrame`, a `pl.LazyFrame`, a `dg.MaterializeResult` around either,
    or None to write nothing. What it returns is validated, never cast; the table gets the schema's columns
    in the schema's order, and only rows that pass every `error` rule.

    Args:
        schema: The schema of the table.
        filter: Whether rows that fail an `error` rule are written to `<key>__error_rows`, the others to the
            table. By default such a row fails the run and nothing is written.
        stream: Whether a returned `pl.LazyFrame` is validated without being collected: its plan is executed
            once, into a staging parquet file, which is then only scanned. For tables larger than memory.
        check_granularity: One check a `rule` (the default), a `column`, or for the whole `schema`.
        schema_rules: At `column` granularity, whether schema-level rules are `collapsed` into one check (the
            default) or have one each, `per_rule`.
        statistics: Whether a materialization carries statistics of the written table. True by default.
        max_failure_samples: How many failing rows a check shows, 5 by default; 0 shows none.
        row_sample: How many rows of the table, and of the error rows, a materialization shows, 5 by default;
            0 shows none.
        redact: Columns whose values never reach the event log, besides those that the environment names.
        staging_dir: The folder for the staging file of a streamed run. By default the folder of the IO
            manager's tables where it says so, else the system's folder for temporary files.
        name: As in `dg.asset`, and so are the arguments below: each means what it means there.
        key_prefix: See `dg.asset`.
        ins: See `dg.asset`.
        deps: See `dg.asset`.
        metadata: See `dg.asset`. The column schema is added to it.
        tags: See `dg.asset`.
        description: See `dg.asset`. By default the schema's docstring, else the function's.
        config_schema: See `dg.asset`.
        required_resource_keys: See `dg.asset`.
        resource_defs: See `dg.asset`.
        hooks: See `dg.asset`.
        io_manager_def: See `dg.asset`.
        io_manager_key: See `dg.asset`. Error rows go through the same IO manager.
        partitions_def: See `dg.asset`.
        op_tags: See `dg.asset`.
        group_name: See `dg.asset`.
        automation_condition: See `dg.asset`.
        freshness_policy: See `dg.asset`.
        backfill_policy: See `dg.asset`.
        retry_policy: See `dg.asset`.
        code_version: See `dg.asset`. By default a fingerprint of the schema, which changes with what changes
            a verdict.
        key: See `dg.asset`.
        owners: See `dg.asset`.
        kinds: See `dg.asset`. By default `dataframely` and `polars`.
        pool: See `dg.asset`.

    Returns:
        A decorator that makes a `dg.AssetsDefinition` of a function.

    Raises:
        InvalidSchemaError: `schema` is not a subclass of `dy.Schema`.
        InvalidSeverityError: The schema declares a severity that cannot be read.
        InvalidSettingError: A setting has a value that is not allowed.
        ReservedColumnError: A column of the schema begins with `dy_`.
        CheckNameCollisionError: Two rules would report under one check name.

    Examples:
        >>> import dataframely as dy
        >>> import polars as pl
        >>> import dagster_dataframely as dd
        >>> class OrderSchema(dy.Schema):
        ...     order_id = dy.String(primary_key=True)
        ...     amount = dy.Float64(min=0.0)
        >>> @dd.asset(OrderSchema)
        ... def orders() -> pl.DataFrame:
        ...     return pl.DataFrame({"order_id": ["A1"], "amount": [9.5]})
        >>> [result.passed for result in list(orders())[1:]]
        [True, True, True, True, True, True, True]
    """
    settings = resolve_settings(
        check_granularity=check_granularity,
        schema_rules=schema_rules,
        statistics=statistics,
        max_failure_samples=max_failure_samples,
        row_sample=row_sample,
        redact=redact,
        staging_dir=staging_dir,
    )
    plan = plan_validation(
        schema, filter=filter, stream=stream, settings=settings, redact=redact or ()
    )
    arguments = {
        "name": name,
        "key_prefix": key_prefix,
        "ins": ins,
        "deps": deps,
        "metadata": metadata,
        "tags": tags,
        "description": description,
        "config_schema": config_schema,
        "required_resource_keys": required_resource_keys,
        "resource_defs": resource_defs,
        "hooks": hooks,
        "io_manager_def": io_manager_def,
        "io_manager_key": io_manager_key,
        "partitions_def": partitions_def,
        "op_tags": op_tags,
        "group_name": group_name,
        "automation_condition": automation_condition,
        "freshness_policy": freshness_policy,
        "backfill_policy": backfill_policy,
        "retry_policy": retry_policy,
        "code_version": code_version,
        "key": key,
        "owners": owners,
        "kinds": kinds,
        "pool": pool,
    }

    def decorate(fn: Callable[..., Any]) -> dg.AssetsDefinition:
        return build_asset(fn, plan, arguments)

    return decorate


def build_asset(
    fn: Callable[..., Any],
    plan: ValidationPlan,
    arguments: Mapping[str, Any],
    *,
    used_by: str = "dd.asset",
) -> dg.AssetsDefinition:
    """Build the asset of a function and a validation plan, for the decorator and for the component.

    Args:
        fn: The function that returns the frame.
        plan: The validation.
        arguments: Arguments of `dg.asset`; None means that one was not given.
        used_by: What builds the asset, for messages.

    Returns:
        The asset, whose checks are those of the plan.

    Raises:
        InvalidFunctionError: `fn` cannot be the compute function of an asset.
    """
    refuse_function(fn, used_by=used_by)
    given = {name: value for name, value in arguments.items() if value is not None}
    if fn.__name__ == "<lambda>" and not {"name", "key"} & given.keys():
        raise InvalidFunctionError(
            f"{used_by} names an asset after its function, and a lambda has no name. Give `name` or `key`, or "
            "define the function with `def`."
        )
    key = _asset_key(fn, given)
    defaults = {
        "description": _description(plan.schema, fn),
        "kinds": {"dataframely", "polars"},
        "code_version": fingerprint(plan.schema, plan.rules),
    }
    metadata = {**given.pop("metadata", {}), **definition_metadata(plan)}
    decorate: Callable[[Callable[..., Any]], dg.AssetsDefinition] = dg.asset(
        **{**defaults, **given},
        metadata=metadata,
        check_specs=check_specs(plan, key),
        # A run may write nothing and still succeed.
        output_required=False,
    )
    return decorate(compute_asset(fn, plan, key))


def _asset_key(fn: Callable[..., Any], given: Mapping[str, Any]) -> dg.AssetKey:
    """Return the key that `dg.asset` gives the asset. The check specs need it before the asset exists."""
    if "key" in given:
        return dg.AssetKey.from_coercible(given["key"])
    prefix = given.get("key_prefix", [])
    parts = [prefix] if isinstance(prefix, str) else list(prefix)
    return dg.AssetKey([*parts, given.get("name", fn.__name__)])


def _description(schema: type[dy.Schema], fn: Callable[..., Any]) -> str | None:
    """Return the schema's own docstring, else the function's. A parent's docstring describes the parent."""
    docstring = vars(schema).get("__doc__") or fn.__doc__
    return inspect.cleandoc(docstring) if docstring else None
