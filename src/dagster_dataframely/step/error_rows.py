"""The error rows of a run: written through an IO manager, or yielded by a direct call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely.core.declaration.names import error_rows_key
from dagster_dataframely.step.lazy_frames import takes_lazy_frame
from dagster_dataframely.upstream.dagster_step import (
    StepEvent,
    handle_output,
    io_manager_of,
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


def write_error_rows(
    context: dg.AssetExecutionContext,
    frame: pl.DataFrame | pl.LazyFrame,
    *,
    metadata: Mapping[str, Any],
    asset_key: dg.AssetKey | None = None,
) -> tuple[StepEvent, ...]:
    """Store the error rows of a running step's asset, and return the events that say so.

    The rows go under the asset's key with `__error_rows` added, through the same IO manager, with
    the partitions and storage metadata of the asset. An exception of the IO manager passes through
    as it is, with a note of what was being written.

    The events are to be yielded from the step's own generator. What was logged instead, with
    `context.log_event()`, is lost when the step then raises, and error rows are evidence of that.

    Args:
        context: The context of the running step, such as `dg.AssetExecutionContext.get()`.
        frame: The error rows. A lazy frame is collected where the IO manager takes none.
        metadata: Metadata of the materialization; it stands over what the IO manager reports.
        asset_key: The asset that they are of; needed only in a step of several assets.

    Returns:
        The IO manager's own events, then a materialization of the error-rows key, one a partition.
    """
    asset_key = context.asset_key if asset_key is None else asset_key
    key = error_rows_key(asset_key)
    io_manager = io_manager_of(context, asset_key)
    if isinstance(frame, pl.LazyFrame) and not takes_lazy_frame(io_manager):
        frame = frame.collect(engine="streaming")
    output_context = other_table_context(
        context,
        asset_key,
        other_key=key,
        frame_type=pl.LazyFrame if isinstance(frame, pl.LazyFrame) else pl.DataFrame,
    )
    try:
        reported, events = handle_output(io_manager, output_context, frame)
    except Exception as error:
        error.add_note(
            f"Raised while {type(io_manager).__name__} stored the error rows of asset "
            f"'{asset_key.to_user_string()}' under '{key.to_user_string()}'."
        )
        raise
    all_metadata = {**reported, **metadata}
    if not output_context.has_asset_partitions:
        return (*events, dg.AssetMaterialization(key, metadata=all_metadata))
    partitions = output_context.asset_partition_keys
    return (
        *events,
        *(
            dg.AssetMaterialization(
                key, metadata=all_metadata, partition=partition, tags=partition_tags(partition)
            )
            for partition in partitions
        ),
    )
