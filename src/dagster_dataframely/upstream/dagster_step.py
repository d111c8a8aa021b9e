"""Calling the IO manager of a running step once more, for a table that the step does not own.

Dagster calls an IO manager once an output, and promises no way to call it for anything else. Used
here, all of them unpublished:

- `AssetExecutionContext.get_step_execution_context()`, and of that step `step.key`,
  `get_io_manager()`, `get_output_context()` and `job_def.asset_layer.asset_graph`: the IO manager
  and the output context that the step itself will use, asked for by a `StepOutputHandle`.
- `OutputContext._asset_key`, `._asset_spec`, `._name`, `._dagster_type`, `._definition_metadata`:
  set on a context of our own, so that it describes the other table.
- `OutputContext.consume_logged_metadata()` and `.get_logged_events()`: what the IO manager reports.
- `JobScopedAssetGraph.source_asset_graph`: the assets of the code location, not of the run alone.
- `get_tags_from_multi_partition_key()`: the tags by which Dagster reads a partition of several
  dimensions back from its event log.
- `DbIOManager._handlers_by_type`: the types that a database IO manager can store.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import dagster as dg
from dagster._core.definitions.partitions.utils import get_tags_from_multi_partition_key
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster._core.storage.db_io_manager import DbIOManager

StepEvent: TypeAlias = dg.AssetMaterialization | dg.AssetObservation | dg.DagsterEvent


class OtherTableContext(dg.OutputContext):
    """The output context of a step, about another table than the step's own.

    A step that loads an asset which no step of its run has stored identifies it by its last key
    part alone. Answering with that identifier lets IO managers that store by `get_identifier()`,
    such as the in-memory one, find this table again. Two tables with the same last key part could
    not be told apart that way: they keep an identifier each, and loading either of them fails.
    """

    shares_last_part: bool = False

    def get_identifier(self) -> Sequence[str]:
        """Return what an input that loads this table will ask for."""
        if self.shares_last_part:
            return super().get_identifier()
        # How a step describes an asset that it loads and that no step of its run has stored.
        loaded = dg.build_output_context(
            asset_key=self.asset_key, name=self.asset_key.path[-1], step_key="none"
        )
        return loaded.get_identifier()


def io_manager_of(context: dg.AssetExecutionContext, asset_key: dg.AssetKey) -> dg.IOManager:
    """Return the IO manager that the running step will store an asset with.

    Args:
        context: The context of the running step.
        asset_key: One of the step's assets.
    """
    step = context.get_step_execution_context()
    io_manager: dg.IOManager = step.get_io_manager(_output_handle(context, asset_key))
    return io_manager


def other_table_context(
    context: dg.AssetExecutionContext,
    asset_key: dg.AssetKey,
    *,
    other_key: dg.AssetKey,
    frame_type: type[object],
) -> OtherTableContext:
    """Return the output context of a step's asset, re-pointed at another key.

    Partitions, resources, configuration and storage metadata are the asset's own.

    Args:
        context: The context of the running step.
        asset_key: The asset of the step whose output context is taken.
        other_key: The key to store under.
        frame_type: The type of the value, which need not be that of the asset's own output.
    """
    step = context.get_step_execution_context()
    own = step.get_output_context(_output_handle(context, asset_key))
    other = OtherTableContext.__new__(OtherTableContext)
    vars(other).update(vars(own))
    other._asset_key = other_key
    other._name = other_key.path[-1]
    other._dagster_type = dg.PythonObjectDagsterType(frame_type)
    # What Dagster keeps there of the asset's own table, its name and its columns, is not true here.
    other._definition_metadata = {
        name: value
        for name, value in own.definition_metadata.items()
        if not name.startswith("dagster/")
    }
    if own._asset_spec is not None:
        other._asset_spec = own._asset_spec.replace_attributes(
            key=other_key, metadata=other._definition_metadata
        )
    graph: Any = step.job_def.asset_layer.asset_graph
    known_keys = getattr(graph, "source_asset_graph", graph).get_all_asset_keys()
    other.shares_last_part = any(
        key != other_key and key.path[-1] == other_key.path[-1] for key in known_keys
    )
    return other


def handle_output(
    io_manager: dg.IOManager, context: dg.OutputContext, value: object
) -> tuple[dict[str, Any], tuple[StepEvent, ...]]:
    """Store a value as Dagster would, whichever way the IO manager reports what it did.

    Args:
        io_manager: The IO manager.
        context: Says where the value goes.
        value: The value.

    Returns:
        The metadata that the IO manager added to its context or yielded, and the events that it
        logged or yielded.
    """
    metadata: dict[str, Any] = {}
    yielded: list[StepEvent] = []
    for report in _reports(io_manager, context, value):
        # Read after each report, as Dagster does: a key may be added once between two of them.
        metadata |= context.consume_logged_metadata()
        if isinstance(report, Mapping):
            metadata |= report
        elif isinstance(report, StepEvent):
            yielded.append(report)
        else:
            raise dg.DagsterInvariantViolationError(
                f"{type(io_manager).__name__} reported {report!r} from `handle_output`. An IO "
                "manager may report an `AssetMaterialization` or a mapping of metadata."
            )
    metadata |= context.consume_logged_metadata()
    return metadata, (*context.get_logged_events(), *yielded)


def partition_tags(partition: str) -> Mapping[str, str]:
    """Return the tags that an event of one partition needs to be found by its dimensions."""
    if isinstance(partition, dg.MultiPartitionKey):
        return get_tags_from_multi_partition_key(partition)
    return {}


def database_types(io_manager: dg.IOManager) -> tuple[type[object], ...] | None:
    """Return the types that a database IO manager stores, or None where it is none of those."""
    if isinstance(io_manager, DbIOManager):
        return tuple(io_manager._handlers_by_type)
    return None


def _output_handle(context: dg.AssetExecutionContext, asset_key: dg.AssetKey) -> StepOutputHandle:
    step = context.get_step_execution_context()
    return StepOutputHandle(step.step.key, context.output_for_asset_key(asset_key))


def _reports(
    io_manager: dg.IOManager, context: dg.OutputContext, value: object
) -> Iterator[object]:
    result: object = io_manager.handle_output(context, value)
    if inspect.isgenerator(result):
        yield from result
    elif result:
        yield result
