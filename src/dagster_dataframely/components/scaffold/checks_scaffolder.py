"""What `dg scaffold defs dagster_dataframely.DataframelyChecks` writes."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field

from dagster_dataframely.components.attributes.references import resolve_function, resolve_schema
from dagster_dataframely.components.scaffold.asset_scaffolder import (
    FN_EXAMPLE,
    SCHEMA_EXAMPLE,
    SCHEMA_MODULE,
    Named,
    Target,
    checked_key,
    existing,
    import_blocks,
    importing_from,
    inferred_schema_module,
    render,
    write_component,
    yaml_key,
)
from dagster_dataframely.components.scaffold.python_source import argument
from dagster_dataframely.errors import ScaffoldError


class DataframelyChecksScaffoldParams(BaseModel):
    """The options of `dg scaffold defs dagster_dataframely.DataframelyChecks`."""

    # Dagster hands the values over by the options' names, and then once more by the fields'.
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    asset: str | None = Field(
        default=None,
        description="The key of the checked asset; without it, the folder's path below `defs`.",
        examples=["dbt/orders"],
    )
    fn: str | None = Field(
        default=None,
        description="An existing function that returns the frame to check.",
        examples=[FN_EXAMPLE],
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="An existing Dataframely schema; no schema module is written.",
        examples=[SCHEMA_EXAMPLE],
    )
    from_data: str | None = Field(
        default=None,
        description="A parquet, csv, ndjson or ipc file to infer the schema from.",
        examples=["data/orders.parquet"],
    )


class DataframelyChecksScaffolder(dg.Scaffolder[DataframelyChecksScaffoldParams]):
    """Scaffolds a `DataframelyChecks`: the component and its schema."""

    @classmethod
    def get_scaffold_params(cls) -> type[DataframelyChecksScaffoldParams]:
        """Return the options."""
        return DataframelyChecksScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[DataframelyChecksScaffoldParams]) -> None:
        """Write the files of a new component, or none of them.

        Args:
            request: Where, under which options, and in YAML or in Python.

        Raises:
            ScaffoldError: The component cannot be written; `dg` shows the message alone.
        """
        write_component(request, _files)


def _files(
    target: Target, request: dg.ScaffoldRequest[DataframelyChecksScaffoldParams]
) -> Mapping[str, str]:
    params = request.params
    if params.schema_ is not None and params.from_data is not None:
        raise ScaffoldError(
            "--from-data infers a schema, and --schema names one that exists. Give one of the two."
        )
    key = target.key if params.asset is None else checked_key(params.asset, "--asset")
    with importing_from(target.project):
        function = existing(params.fn, "--fn", FN_EXAMPLE, resolve_function)
        schema = (
            existing(params.schema_, "--schema", SCHEMA_EXAMPLE, resolve_schema) or target.schema
        )
    files: dict[str, str] = {}
    if params.from_data is not None:
        files[f"{SCHEMA_MODULE}.py"] = inferred_schema_module(params.from_data, key, schema)
    elif params.schema_ is None:
        files[f"{SCHEMA_MODULE}.py"] = render(
            "dataframely_asset", "schema.py", key=key, schema_class=schema.name
        )
    if request.scaffold_format == "python":
        files["component.py"] = _component_module(request.type_name, key, schema, function)
    else:
        files["defs.yaml"] = render(
            "dataframely_checks",
            "defs.yaml",
            key=key,
            key_in_yaml=yaml_key(key),
            type=request.type_name,
            schema=schema.reference,
            fn=function.reference if function else None,
            stem=target.stem,
        )
    return files


def _component_module(type_name: str, key: str, schema: Named, function: Named | None) -> str:
    module, _, component = type_name.rpartition(".")
    named = [Named(module, component), schema, *([function] if function else [])]
    return render(
        "dataframely_checks",
        "component.py",
        key=key,
        component_class=component,
        imports=import_blocks(named),
        load="load" if function is None or function.name != "load" else "load_component",
        asset_argument=argument("asset", f"dg.AssetKey({key.split('/')})", indent=8),
        schema_class=schema.name,
        function=function.name if function else None,
    )
