"""The IO managers and partitionings that error rows are written through, and one way to run each."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from dagster_dataframely.core.declaration.names import error_rows_key
from dagster_dataframely.parquet_io_manager import ParquetIOManager
from dagster_dataframely.step.destination import destination_of
from dagster_dataframely.step.error_rows import store_error_rows

ORDERS = dg.AssetKey(["sales", "orders"])
ERROR_ROWS = dg.AssetKey(["sales", "orders__error_rows"])
TRIAGED = dg.AssetKey("triaged")


class ByAssetKey(dg.IOManager):
    """The smallest IO manager that a user writes for assets."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], object] = {}

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        self.values[(*context.asset_key.path, *_partitions(context))] = obj

    def load_input(self, context: dg.InputContext) -> object:
        return self.values[(*context.asset_key.path, *_partitions(context))]


class ByAssetIdentifier(dg.IOManager):
    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], object] = {}

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        self.values[tuple(context.get_asset_identifier())] = obj

    def load_input(self, context: dg.InputContext) -> object:
        return self.values[tuple(context.get_asset_identifier())]


class ByIdentifier(dg.IOManager):
    def __init__(self) -> None:
        self.values: dict[tuple[str, ...], object] = {}

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        self.values[tuple(context.get_identifier())] = obj

    def load_input(self, context: dg.InputContext) -> object:
        return self.values[tuple(context.get_identifier())]


def _partitions(context: dg.OutputContext | dg.InputContext) -> tuple[str, ...]:
    return tuple(context.asset_partition_keys) if context.has_asset_partitions else ()


def filesystem(directory: Path) -> Any:
    return dg.FilesystemIOManager(base_dir=str(directory))


def parquet(directory: Path) -> Any:
    return ParquetIOManager(base_dir=str(directory))


def polars_parquet(directory: Path) -> Any:
    dagster_polars = pytest.importorskip("dagster_polars", reason="dagster-polars is not installed")
    if int(pl.__version__.split(".")[0]) >= 2:
        pytest.skip("the parquet IO manager of dagster-polars cannot read on Polars 2")
    return dagster_polars.PolarsParquetIOManager(base_dir=str(directory))


def polars_delta(directory: Path) -> Any:
    pytest.importorskip("deltalake", reason="deltalake is not installed")
    dagster_polars = pytest.importorskip("dagster_polars", reason="dagster-polars is not installed")
    return dagster_polars.PolarsDeltaIOManager(base_dir=str(directory))


def deltalake_polars(directory: Path) -> Any:
    reason = "dagster-deltalake-polars is not installed"
    deltalake = pytest.importorskip("dagster_deltalake", reason=reason)
    manager = pytest.importorskip("dagster_deltalake_polars", reason=reason)
    return manager.DeltaLakePolarsIOManager(
        root_uri=str(directory), storage_options=deltalake.LocalConfig()
    )


def duckdb_polars(directory: Path) -> Any:
    manager = pytest.importorskip(
        "dagster_duckdb_polars", reason="dagster-duckdb-polars is not installed"
    )
    return manager.DuckDBPolarsIOManager(database=str(directory / "tables.duckdb"))


IO_MANAGERS: Mapping[str, Callable[[Path], Any]] = {
    "Dagster's filesystem (pickle)": filesystem,
    "ParquetIOManager": parquet,
    "dagster-polars parquet": polars_parquet,
    "dagster-polars Delta": polars_delta,
    "dagster-deltalake-polars": deltalake_polars,
    "dagster-duckdb-polars": duckdb_polars,
    "in-memory": lambda directory: dg.InMemoryIOManager(),
    "user-written, asset_key": lambda directory: ByAssetKey(),
    "user-written, get_asset_identifier": lambda directory: ByAssetIdentifier(),
    "user-written, get_identifier": lambda directory: ByIdentifier(),
}

#: These know an asset that another run stored by its last key part alone, without a partition.
ONE_PARTITION_AT_A_TIME = {"in-memory", "user-written, get_identifier"}


@dataclass(frozen=True)
class Partitioning:
    """How a table is partitioned: two of its partitions, and the columns that say which row is in which."""

    definition: dg.PartitionsDefinition[Any] | None = None
    keys: tuple[Any, ...] = (None, None)
    #: What tells a database IO manager the partition of a row.
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def columns(self, key: Any) -> dict[str, Any]:
        """The values that mark a row of one partition."""
        return {
            "day": datetime.date.fromisoformat(_dimension(key, "day", "2026-01-01")),
            "region": _dimension(key, "region", "eu"),
        }


def _dimension(key: Any, dimension: str, default: str) -> str:
    if isinstance(key, dg.MultiPartitionKey):
        return str(key.keys_by_dimension[dimension])
    if isinstance(key, str) and key[:1].isdigit() == (dimension == "day"):
        return key
    return default


DAILY = dg.DailyPartitionsDefinition(start_date="2026-01-01", end_date="2026-01-05")
REGIONS = dg.StaticPartitionsDefinition(["eu", "us"])

PARTITIONINGS: Mapping[str, Partitioning] = {
    "not partitioned": Partitioning(),
    "daily": Partitioning(DAILY, ("2026-01-01", "2026-01-02"), {"partition_expr": "day"}),
    "static": Partitioning(REGIONS, ("eu", "us"), {"partition_expr": "region"}),
    "dynamic": Partitioning(
        dg.DynamicPartitionsDefinition(name="region"), ("eu", "us"), {"partition_expr": "region"}
    ),
    "multi": Partitioning(
        dg.MultiPartitionsDefinition({"day": DAILY, "region": REGIONS}),
        (
            dg.MultiPartitionKey({"day": "2026-01-01", "region": "eu"}),
            dg.MultiPartitionKey({"day": "2026-01-01", "region": "us"}),
        ),
        {"partition_expr": {"day": "day", "region": "region"}},
    ),
}

SCHEMA = {
    "order_id": pl.Int64,
    "amount": pl.Float64,
    "day": pl.Date,
    "region": pl.String,
    "dy_rule__amount__min": pl.String,
}


def error_rows_of(key: Any, *order_ids: int, partitioning: Partitioning) -> pl.DataFrame:
    """Error rows as one run of one partition keeps them."""
    columns = partitioning.columns(key)
    rows = [
        {"order_id": id_, "amount": -1.0, "dy_rule__amount__min": "invalid", **columns}
        for id_ in order_ids
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def table_of(key: Any, *, partitioning: Partitioning) -> pl.DataFrame:
    """The table of the same runs: one good row."""
    row = {"order_id": 1000, "amount": 1.0, **partitioning.columns(key)}
    return pl.DataFrame([row], schema={k: v for k, v in SCHEMA.items() if k[:3] != "dy_"})


@dataclass
class Warehouse:
    """One asset with error rows, the node of those, and an asset that reads them, over one IO manager."""

    io_manager: Any
    partitioning: Partitioning = field(default_factory=Partitioning)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    instance: dg.DagsterInstance = field(default_factory=dg.DagsterInstance.ephemeral)
    key: dg.AssetKey = ORDERS
    #: What the asset finds in its next run: the error rows.
    found: pl.DataFrame | pl.LazyFrame = field(default_factory=pl.DataFrame)
    #: What the reading assets were given, by the name of the table that they read.
    read: dict[str, pl.DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.metadata = {**self.partitioning.metadata, **self.metadata}
        if isinstance(self.partitioning.definition, dg.DynamicPartitionsDefinition):
            self.instance.add_dynamic_partitions("region", ["eu", "us"])

    def store(
        self, error_rows: pl.DataFrame | pl.LazyFrame, key: Any = None, **arguments: Any
    ) -> Any:
        """Run the asset once: error rows first, then the table."""
        self.found = error_rows
        return self._materialize([self.asset()], key, **arguments)

    def load(self, table: dg.AssetKey, key: Any = None) -> pl.DataFrame:
        """Run an asset that reads a table, and return what it was given."""
        self._materialize([self.reader(table)], key)
        return self.read[table.to_user_string()]

    def asset(self) -> dg.AssetsDefinition:
        @dg.asset(
            key=self.key,
            partitions_def=self.partitioning.definition,
            metadata=self.metadata,
            io_manager_key="warehouse",
            backfill_policy=dg.BackfillPolicy.single_run(),
        )
        def orders() -> Iterator[Any]:
            context = dg.AssetExecutionContext.get()
            height = self.found.lazy().collect().height
            yield from store_error_rows(
                destination_of(context.asset_key, context),
                self.found,
                metadata={"dagster/row_count": height},
            )
            partition = context.partition_keys[0] if context.has_partition_key else None
            yield dg.MaterializeResult(value=table_of(partition, partitioning=self.partitioning))

        return orders

    def spec(self) -> dg.AssetSpec:
        spec = dg.AssetSpec(
            error_rows_key(self.key),
            deps=[self.key],
            partitions_def=self.partitioning.definition,
            metadata=self.metadata,
        )
        return spec.with_io_manager_key("warehouse")

    def reader(self, table: dg.AssetKey) -> dg.AssetsDefinition:
        @dg.asset(
            key=TRIAGED,
            ins={"table": dg.AssetIn(table)},
            partitions_def=self.partitioning.definition,
            io_manager_key="elsewhere",
        )
        def triaged(table: pl.DataFrame) -> None:
            self.read[reading] = table

        reading = table.to_user_string()
        return triaged

    def _materialize(self, selection: list[dg.AssetsDefinition], key: Any, **arguments: Any) -> Any:
        known: list[Any] = [self.asset(), self.spec()]
        known += [asset for asset in selection if asset.key != self.key]
        return dg.materialize(
            known,
            selection=[asset.key for asset in selection],
            partition_key=key,
            instance=self.instance,
            resources={"warehouse": self.io_manager, "elsewhere": dg.mem_io_manager},
            **arguments,
        )
