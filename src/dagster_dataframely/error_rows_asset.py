"""`dd.error_rows_spec`: the node in the graph of an asset's error-rows table."""

from __future__ import annotations

from typing import Any

import dagster as dg

from dagster_dataframely.core.declaration.names import check_name, error_rows_key
from dagster_dataframely.core.report.results import COLUMN_SCHEMA_KEY, SCHEMA_KEY
from dagster_dataframely.errors import InvalidFunctionError

# Metadata under these prefixes describes the asset's own table, not how it is stored.
_OF_THE_TABLE = ("dagster/", "dataframely/")


def error_rows_spec(asset: dg.AssetsDefinition) -> dg.AssetSpec:
    """Return the spec of an asset's error-rows table, which gives it a node in the graph.

    The table is written by the asset's own step, so the spec is that of an external asset. It has the
    asset's partitions and group, columns of its own (the schema's columns without constraints, then one
    String column a rule), and what the IO manager needs to read the table back: its key, and the storage
    metadata of the asset, such as `partition_expr`.

    Args:
        asset: An asset that `dd.asset(..., filter=True)` built.

    Returns:
        The spec, to be given to `dg.Definitions(assets=[...])` beside the asset.

    Raises:
        InvalidFunctionError: `asset` is not an asset of this package.

    Examples:
        >>> import dagster_dataframely as dd
        >>> from dagster_dataframely.data import OrdersSchema, error_orders
        >>> @dd.asset(OrdersSchema, filter=True)
        ... def orders():
        ...     return error_orders()
        >>> dd.error_rows_spec(orders).key.to_user_string()
        'orders__error_rows'
    """
    if not isinstance(asset, dg.AssetsDefinition):
        raise InvalidFunctionError(
            f"dd.error_rows_spec takes an asset that dd.asset built, and this is {asset!r}."
        )
    if len(asset.keys) != 1:
        keys = ", ".join(f"'{key.to_user_string()}'" for key in sorted(asset.keys))
        raise InvalidFunctionError(
            f"dd.error_rows_spec takes an asset with one key, and this has {keys}."
        )
    spec = asset.get_asset_spec(asset.key)
    # Dagster wraps the column schema in a metadata value once the spec is normalized.
    metadata = spec.metadata.get(COLUMN_SCHEMA_KEY)
    columns = getattr(metadata, "schema", metadata)
    if SCHEMA_KEY not in spec.metadata or not isinstance(columns, dg.TableSchema):
        raise InvalidFunctionError(
            f"dd.error_rows_spec takes an asset that dd.asset built, and '{spec.key.to_user_string()}' has no "
            "Dataframely schema. Build it with @dd.asset(YourSchema, filter=True)."
        )
    error_rows = dg.AssetSpec(
        key=error_rows_key(spec.key),
        deps=[spec.key],
        description=(
            f"The rows of {spec.key.to_user_string()} that failed an error rule in the latest run, one column "
            "a rule."
        ),
        metadata={
            **_storage_metadata(spec),
            COLUMN_SCHEMA_KEY: dg.MetadataValue.table_schema(_column_schema(columns, asset)),
            "dataframely/error_rows_of": dg.MetadataValue.asset(spec.key),
        },
        group_name=spec.group_name,
        partitions_def=spec.partitions_def,
        owners=spec.owners,
        kinds={"dataframely", "polars"},
    )
    return error_rows.with_io_manager_key(asset.get_io_manager_key_for_asset_key(asset.key))


def _storage_metadata(spec: dg.AssetSpec) -> dict[str, Any]:
    return {
        name: value for name, value in spec.metadata.items() if not name.startswith(_OF_THE_TABLE)
    }


def _column_schema(columns: dg.TableSchema, asset: dg.AssetsDefinition) -> dg.TableSchema:
    """Return the columns of the error rows: they broke constraints, so none is promised of them."""
    data = [
        dg.TableColumn(
            column.name, type=column.type, description=column.description, tags=column.tags
        )
        for column in columns.columns
    ]
    rules = [rule for spec in asset.check_specs for rule in _rules_of(spec)]
    return dg.TableSchema(
        columns=data
        + [
            dg.TableColumn(
                check_name(rule),
                type="String",
                description=f"Whether the row passed {rule}: valid, invalid or unknown.",
            )
            for rule in rules
        ]
    )


def _rules_of(spec: dg.AssetCheckSpec) -> list[str]:
    rule = spec.metadata.get("dataframely/rule", [])
    return [rule] if isinstance(rule, str) else list(rule)
