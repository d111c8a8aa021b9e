"""Running an asset in the measured process, and reading what Dagster stored of the run."""

from __future__ import annotations

import dagster as dg


class Nowhere(dg.IOManager):
    """Stores nothing, so that writing is in no figure."""

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Let go of the value."""

    def load_input(self, context: dg.InputContext) -> object:
        """Refuse: there is nothing to load."""
        raise NotImplementedError  # nothing is ever stored


@dg.asset
def nothing() -> None:
    """Be run first: what Dagster imports and sets up at the first run of a process is in no figure."""


def materialize(asset: dg.AssetsDefinition, io_manager: object) -> dg.ExecuteInProcessResult:
    """Run one asset with an IO manager."""
    return dg.materialize([asset], resources={"io_manager": io_manager})


def failed_counts(result: dg.ExecuteInProcessResult) -> dict[str, int]:
    """Return, for each rule that a check of the run reported, how many rows failed it."""
    return {
        str(evaluation.metadata["dataframely/rule"].value): int(
            str(evaluation.metadata["dataframely/failed_count"].value)
        )
        for evaluation in result.get_asset_check_evaluations()
        if "dataframely/rule" in evaluation.metadata
    }
