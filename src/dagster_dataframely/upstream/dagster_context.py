"""The running step, found without a `context` parameter in the user's function.

Used here, and not promised: that `AssetExecutionContext.get()` raises `DagsterInvariantViolationError` in a
direct call; `job_def.asset_layer.asset_graph` with its `source_asset_graph`; and the `CheckError` that
`repository_def` raises where a run has no code location.
"""

from __future__ import annotations

import contextlib
from typing import Any

import dagster as dg
from dagster_shared.check import CheckError


def running_step(asset: dg.AssetKey) -> dg.AssetExecutionContext | None:
    """Return the context of the step that is computing an asset, or None in a direct call.

    Args:
        asset: The key of the asset that asks. A direct call inside the step of another asset is still
            a direct call.
    """
    try:
        context = dg.AssetExecutionContext.get()
    except dg.DagsterInvariantViolationError:
        return None
    if isinstance(context, dg.AssetExecutionContext) and asset in context.assets_def.keys:
        return context
    return None


def computes_asset(context: dg.AssetExecutionContext, key: dg.AssetKey) -> bool:
    """Return whether the run's job or its code location has an asset of this key that computes something.

    An external asset of that key, such as an `AssetSpec` that a user wrote, only describes the table.
    """
    job_graph = context.job_def.asset_layer.asset_graph
    graphs: list[Any] = [job_graph, job_graph.source_asset_graph]
    # `dg.materialize` has no code location, and Dagster says so with an error only.
    with contextlib.suppress(CheckError):
        graphs.append(context.repository_def.asset_graph)
    return any(graph.has(key) and graph.get(key).is_executable for graph in graphs)
