"""Loading the table of an asset inside a check, lazily where its IO manager can."""

from __future__ import annotations

from typing import Any

import dagster as dg
import polars as pl

from dagster_dataframely.step.lazy_frames import takes_lazy_frame


def load_table(context: dg.AssetCheckExecutionContext, asset: dg.AssetKey) -> Any:
    """Load the table of an asset, or the partition that a check is for, through its IO manager.

    Args:
        context: The context of the running check.
        asset: The key of the asset.

    Returns:
        A lazy frame where the IO manager says that it stores one, else an eager frame.
    """
    assets_def = context.job_def.asset_layer.get(asset).assets_def
    spec = assets_def.get_asset_spec(asset)
    io_manager_key = assets_def.get_io_manager_key_for_asset_key(asset)
    definitions = {"io_manager": dg.fs_io_manager, **assets_def.resource_defs}
    needed = {io_manager_key, *definitions[io_manager_key].required_resource_keys}
    partition = context.partition_key if context.has_partition_key else None
    # `context.load_asset_value` does the same, but has no way to ask the IO manager what it can load, and
    # leaves the contexts open that are closed here.
    with (
        dg.build_resources(
            {key: definitions[key] for key in needed}, instance=context.instance
        ) as resources,
        dg.build_output_context(
            asset_key=asset,
            definition_metadata=spec.metadata,
            # An IO manager in memory finds what this run has stored by step and output.
            run_id=context.run.run_id,
            step_key=assets_def.node_def.name if assets_def.is_executable else None,
            name=assets_def.get_output_name_for_asset_key(asset)
            if assets_def.is_executable
            else None,
        ) as written,
    ):
        io_manager = getattr(resources, io_manager_key)
        frame_type = pl.LazyFrame if takes_lazy_frame(io_manager) else pl.DataFrame
        with dg.build_input_context(
            asset_key=asset,
            upstream_output=written,
            dagster_type=dg.PythonObjectDagsterType(frame_type),
            partition_key=partition,
            asset_partition_key_range=dg.PartitionKeyRange(partition, partition)
            if partition
            else None,
            asset_partitions_def=spec.partitions_def,
            instance=context.instance,
        ) as read:
            return io_manager.load_input(read)
