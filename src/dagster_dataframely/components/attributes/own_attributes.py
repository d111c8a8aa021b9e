"""The typed attributes that the components of this package share.

Each is a field type with a `dg.Resolver`: what YAML may hold, what becomes of it, and what editors and the
app's form show of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import dagster as dg
from pydantic import Field

from dagster_dataframely.components.attributes.located import located
from dagster_dataframely.components.attributes.references import resolve_function, resolve_schema
from dagster_dataframely.components.attributes.templates import render

if TYPE_CHECKING:
    import dataframely as dy

    SchemaClass: TypeAlias = type[dy.Schema]
else:
    # Pydantic reads annotations at import, and Dataframely is to be imported when an asset is built, for
    # start-up time. What was given is checked then.
    SchemaClass = Any

#: A whole number from 0; `true` is none.
Count: TypeAlias = Annotated[int, Field(strict=True, ge=0)]


def _resolve_folder(context: dg.ResolutionContext, value: Any) -> Path | None:
    rendered = render(context, value)
    return rendered if rendered is None else Path(rendered)


def _advanced(label: str) -> dg.ComponentFormConfig:
    return dg.ComponentFormConfig(label=label, advanced=True)


FunctionAttribute: TypeAlias = Annotated[
    Callable[..., Any],
    dg.Resolver(
        located(resolve_function),
        model_field_type=str,
        inject_before_resolve=False,
        description=(
            "The function that returns the rows, as `module.function`; a leading dot is this folder. It "
            "returns a pl.DataFrame, a pl.LazyFrame, a dg.MaterializeResult around either, or None to write "
            "nothing."
        ),
        examples=[".orders.build_orders", "my_project.orders.build_orders"],
        form_config=dg.ComponentFormConfig(
            label="Function", placeholder="my_project.orders.build_orders", id_source=True
        ),
    ),
]

SchemaAttribute: TypeAlias = Annotated[
    SchemaClass,
    dg.Resolver(
        located(resolve_schema),
        # A field cannot be called `schema`, because Pydantic's base class has a method of that name.
        model_field_name="schema",
        model_field_type=str,
        inject_before_resolve=False,
        description=(
            "The Dataframely schema of the table, as `module.Schema`; a leading dot is this folder."
        ),
        examples=[".schema.OrdersSchema", "my_project.schemas.OrdersSchema"],
        form_config=dg.ComponentFormConfig(
            label="Schema", placeholder="my_project.schemas.OrdersSchema"
        ),
    ),
]

FilterAttribute: TypeAlias = Annotated[
    bool,
    dg.Resolver(
        located(render),
        model_field_type=bool,
        inject_before_resolve=False,
        description=(
            "Whether rows that fail an `error` rule are written to `<key>__error_rows` and the others to the "
            "table. By default such a row fails the run and nothing is written."
        ),
        examples=[True],
        form_config=dg.ComponentFormConfig(label="Filter error rows"),
    ),
]

StreamAttribute: TypeAlias = Annotated[
    bool,
    dg.Resolver(
        located(render),
        model_field_type=bool,
        inject_before_resolve=False,
        description=(
            "Whether a returned pl.LazyFrame is validated without being collected: it is executed once, into a "
            "staging file, so that a table larger than memory can be written."
        ),
        examples=[True],
        form_config=dg.ComponentFormConfig(label="Stream"),
    ),
]

CheckGranularityAttribute: TypeAlias = Annotated[
    Literal["rule", "column", "schema"] | None,
    dg.Resolver(
        located(render),
        model_field_type=Literal["rule", "column", "schema"] | None,
        inject_before_resolve=False,
        description=(
            "One asset check for each `rule`, each `column`, or the whole `schema`. By default `rule`, or what "
            "DAGSTER_DATAFRAMELY_CHECK_GRANULARITY says."
        ),
        examples=["column"],
        form_config=_advanced("Check granularity"),
    ),
]

SchemaRulesAttribute: TypeAlias = Annotated[
    Literal["collapsed", "per_rule"] | None,
    dg.Resolver(
        located(render),
        model_field_type=Literal["collapsed", "per_rule"] | None,
        inject_before_resolve=False,
        description=(
            "With `check_granularity: column`, whether the rules that belong to no column are `collapsed` into "
            "one check or have one each, `per_rule`. By default `collapsed`, or what "
            "DAGSTER_DATAFRAMELY_SCHEMA_RULES says."
        ),
        examples=["per_rule"],
        form_config=_advanced("Schema rules"),
    ),
]

StatisticsAttribute: TypeAlias = Annotated[
    bool | None,
    dg.Resolver(
        located(render),
        model_field_type=bool | None,
        inject_before_resolve=False,
        description=(
            "Whether a materialization carries statistics of the written table. By default true, or what "
            "DAGSTER_DATAFRAMELY_STATISTICS says."
        ),
        examples=[False],
        form_config=_advanced("Statistics"),
    ),
]

MaxFailureSamplesAttribute: TypeAlias = Annotated[
    Count | None,
    dg.Resolver(
        located(render),
        model_field_type=Count | None,
        inject_before_resolve=False,
        description=(
            "How many failing rows a check shows; 0 shows none. By default 5, or what "
            "DAGSTER_DATAFRAMELY_MAX_FAILURE_SAMPLES says."
        ),
        examples=[10],
        form_config=_advanced("Failing rows shown"),
    ),
]

RowSampleAttribute: TypeAlias = Annotated[
    Count | None,
    dg.Resolver(
        located(render),
        model_field_type=Count | None,
        inject_before_resolve=False,
        description=(
            "How many rows of the table, and of the error rows, a materialization shows; 0 shows none. By "
            "default 5, or what DAGSTER_DATAFRAMELY_ROW_SAMPLE says."
        ),
        examples=[0],
        form_config=_advanced("Rows shown"),
    ),
]

RedactAttribute: TypeAlias = Annotated[
    Sequence[str] | None,
    dg.Resolver(
        located(render),
        model_field_type=Sequence[str] | None,
        inject_before_resolve=False,
        description=(
            "Columns whose values never reach the event log, besides those that DAGSTER_DATAFRAMELY_REDACT "
            "names."
        ),
        examples=[["email", "phone"]],
        form_config=_advanced("Redacted columns"),
    ),
]

StagingDirAttribute: TypeAlias = Annotated[
    Path | None,
    dg.Resolver(
        located(_resolve_folder),
        model_field_type=str | None,
        inject_before_resolve=False,
        description=(
            "The folder for the staging file of a streamed run, which has to have room for the table. By "
            "default what DAGSTER_DATAFRAMELY_STAGING_DIR says, else beside the table where the IO manager "
            "writes files, else the system's folder for temporary files."
        ),
        examples=["/mnt/scratch", "{{ context.project_root }}/staging"],
        form_config=_advanced("Staging folder"),
    ),
]

InsAttribute: TypeAlias = Annotated[
    dict[str, dg.ResolvedAssetKey] | None,
    dg.Resolver.default(
        description=(
            "Parameter of the function to the upstream asset it is loaded from, where the parameter's name is "
            "not the asset's key."
        ),
        examples=[{"raw_orders": "raw/orders"}],
        form_config=dg.ComponentFormConfig(label="Inputs"),
    ),
]

IOManagerKeyAttribute: TypeAlias = Annotated[
    str | None,
    dg.Resolver(
        located(render),
        model_field_type=str | None,
        inject_before_resolve=False,
        description=(
            "The resource key of the IO manager that stores the table and its error rows. By default "
            "`io_manager`."
        ),
        examples=["warehouse_io"],
        form_config=dg.ComponentFormConfig(label="IO manager key"),
    ),
]
