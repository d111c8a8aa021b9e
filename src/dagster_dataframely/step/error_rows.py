"""The error rows of a run: written through an IO manager, or yielded by a direct call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely.step.destination import Destination
from dagster_dataframely.upstream.dagster_step import (
    StepEvent,
    handle_output,
    other_table_context,
    partition_tags,
)


class ErrorRows(dg.AssetMaterialization):
    """The error rows of a direct call: a materialization of their key, with the frame as `value`.

    Attributes:
        value: The rows that failed an `error` rule: the schema's columns, then one String column a rule,
            `valid`, `invalid` or `unknown`, named as the rule's check.

    Examples:
        >>> import dagster_dataframely as dd
        >>> from dagster_dataframely.data import OrdersSchema, error_orders
        >>> @dd.asset(OrdersSchema, filter=True)
        ... def orders():
        ...     return error_orders()
        >>> error_rows, table, *checks = orders()
        >>> error_rows.value["order_id"].to_list()
        ['ORD-0002', 'ORD-0003']
    """

    value: pl.DataFrame | pl.LazyFrame

    def __new__(cls, *, value: pl.DataFrame | pl.LazyFrame, **materialization: Any) -> ErrorRows:
        """Build the materialization and keep the frame beside it."""
        self: ErrorRows = super().__new__(cls, **materialization)
        self.value = value
        return self


def store_error_rows(
    destination: Destination,
    frame: pl.DataFrame | pl.LazyFrame,
    *,
    metadata: Mapping[str, Any],
) -> tuple[StepEvent, ...]:
    """Store the error rows of an asset, and return the events that say so.

    The rows go through the IO manager of the asset, with the asset's partitions and storage metadata. An
    exception of the IO manager passes through as it is, with a note of what was being written.

    The events are to be yielded from the step's own generator. What was logged instead, with
    `context.log_event()`, is lost when the step then raises, and error rows are evidence of that.

    Args:
        destination: Where they go.
        frame: The error rows. A lazy frame is collected where the IO manager takes none.
        metadata: Metadata of the materialization; it stands over what the IO manager reports.

    Returns:
        The IO manager's own events, then a materialization of the error-rows key, one a partition. In a direct
        call, `ErrorRows` that hold the frame.
    """
    key = destination.error_rows
    value = destination.storable(frame)
    if destination.step is None or destination.io_manager is None:
        return (ErrorRows(asset_key=key, metadata=metadata, value=value),)
    output_context = other_table_context(
        destination.step,
        destination.asset,
        other_key=key,
        frame_type=pl.LazyFrame if isinstance(value, pl.LazyFrame) else pl.DataFrame,
    )
    try:
        reported, events = handle_output(destination.io_manager, output_context, value)
    except Exception as error:
        error.add_note(
            f"Raised while {type(destination.io_manager).__name__} stored the error rows of asset "
            f"'{destination.asset.to_user_string()}' under '{key.to_user_string()}'."
        )
        raise
    all_metadata = {**reported, **metadata}
    if not output_context.has_asset_partitions:
        return (*events, dg.AssetMaterialization(key, metadata=all_metadata))
    return (
        *events,
        *(
            dg.AssetMaterialization(
                key, metadata=all_metadata, partition=partition, tags=partition_tags(partition)
            )
            for partition in output_context.asset_partition_keys
        ),
    )
