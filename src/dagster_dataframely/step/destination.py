"""Where the table and the error rows of a step go, resolved once, before the function is called."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import dagster as dg
import polars as pl

from dagster_dataframely.core.declaration.names import error_rows_key
from dagster_dataframely.core.declaration.plan import ValidationPlan
from dagster_dataframely.core.verdict.masks import Frame
from dagster_dataframely.core.verdict.staged import (
    Staging,
    StagingPlace,
    TakesStagedFiles,
    staging_file,
)
from dagster_dataframely.errors import ErrorRowsKeyCollisionError
from dagster_dataframely.step.lazy_frames import takes_lazy_frame
from dagster_dataframely.upstream.dagster_context import computes_asset
from dagster_dataframely.upstream.dagster_step import io_manager_of


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one asset's table and error rows go.

    A direct call has neither a step nor an IO manager: its frames go to the caller.
    """

    asset: dg.AssetKey
    error_rows: dg.AssetKey
    step: dg.AssetExecutionContext | None
    io_manager: dg.IOManager | None
    #: Whether the IO manager stores a lazy frame without someone collecting it first.
    takes_lazy: bool
    #: Where a staging file lies best, if the IO manager can make it the table.
    staging_place: StagingPlace

    def staging(self, plan: ValidationPlan) -> AbstractContextManager[Staging]:
        """Give the staging file of a streamed run."""
        folder = plan.settings.staging_dir or self.staging_place.folder
        return staging_file(folder, self.staging_place.compression)

    def storable(self, frame: Frame) -> Frame:
        """Collect a lazy frame where it would outlive the staging file that it reads."""
        if isinstance(frame, pl.DataFrame) or self.takes_lazy:
            return frame
        return frame.collect(engine="streaming")


def destination_of(asset: dg.AssetKey, step: dg.AssetExecutionContext | None) -> Destination:
    """Return where an asset's table and error rows go.

    Args:
        asset: The key of the asset.
        step: The running step that computes it; None in a direct call.
    """
    io_manager = None if step is None else io_manager_of(step, asset)
    return Destination(
        asset=asset,
        error_rows=error_rows_key(asset),
        step=step,
        io_manager=io_manager,
        takes_lazy=io_manager is not None and takes_lazy_frame(io_manager),
        staging_place=io_manager.staging_place()
        if isinstance(io_manager, TakesStagedFiles)
        else StagingPlace(),
    )


def refuse_key_collision(destination: Destination) -> None:
    """Raise when the error rows would be written under the key of another asset of the run.

    Raises:
        ErrorRowsKeyCollisionError: Another asset has the key.
    """
    asset, key = destination.asset, destination.error_rows
    if destination.step is not None and computes_asset(destination.step, key):
        raise ErrorRowsKeyCollisionError(
            f"The error rows of '{asset.to_user_string()}' are written under '{key.to_user_string()}', and "
            "another asset has that key. Rename one of the two, or set `filter=False`."
        )
