"""Dataframely schemas as Dagster assets: columns, asset checks and error rows from one declaration.

`dg` imports this module at every command, so it stays cheap: Dataframely and Polars are imported with the
first name that needs them (PEP 562). `dg list components` lists what `dir()` of this module has, so a
component is imported here under its short name, and every other name is resolved when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagster_dataframely import data, errors, wiring
    from dagster_dataframely.asset_decorator import asset
    from dagster_dataframely.components.dataframely_asset import (
        DataframelyAssetComponent,
    )
    from dagster_dataframely.components.dataframely_checks import (
        DataframelyChecksComponent,
    )
    from dagster_dataframely.error_rows_asset import error_rows_spec
    from dagster_dataframely.parquet_io_manager import ParquetIOManager
    from dagster_dataframely.step.error_rows import ErrorRows
    from dagster_dataframely.table_checks import asset_checks

from dagster_dataframely.components.dataframely_asset import (
    DataframelyAssetComponent as DataframelyAsset,
)
from dagster_dataframely.components.dataframely_checks import (
    DataframelyChecksComponent as DataframelyChecks,
)

__version__ = "0.1.0"

__all__ = [
    "DataframelyAsset",
    "DataframelyAssetComponent",
    "DataframelyChecks",
    "DataframelyChecksComponent",
    "ErrorRows",
    "ParquetIOManager",
    "asset",
    "asset_checks",
    "data",
    "error_rows_spec",
    "errors",
    "wiring",
]

# Public name to the module that has it; a module itself has no attribute beside it. No module may have the
# name of what it defines: importing it would put the module in the place of the name.
_LAZY: dict[str, tuple[str, str | None]] = {
    "DataframelyAssetComponent": ("components.dataframely_asset", "DataframelyAssetComponent"),
    "DataframelyChecksComponent": ("components.dataframely_checks", "DataframelyChecksComponent"),
    "ErrorRows": ("step.error_rows", "ErrorRows"),
    "ParquetIOManager": ("parquet_io_manager", "ParquetIOManager"),
    "asset": ("asset_decorator", "asset"),
    "asset_checks": ("table_checks", "asset_checks"),
    "data": ("data", None),
    "error_rows_spec": ("error_rows_asset", "error_rows_spec"),
    "errors": ("errors", None),
    "wiring": ("wiring", None),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    module_name, attribute = _LAZY[name]
    module = importlib.import_module(f"{__name__}.{module_name}")
    return module if attribute is None else getattr(module, attribute)
