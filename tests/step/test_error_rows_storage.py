"""Writing error rows: where they go, what the IO manager is told, what Dagster is told afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from dagster import AssetMaterialization, AssetObservation
from polars.testing import assert_frame_equal
from storage_cases import (
    ERROR_ROWS,
    IO_MANAGERS,
    ORDERS,
    PARTITIONINGS,
    ByAssetKey,
    ByIdentifier,
    Warehouse,
    duckdb_polars,
    error_rows_of,
    polars_delta,
    polars_parquet,
)

from dagster_dataframely.core.declaration.names import error_rows_key
from dagster_dataframely.parquet_io_manager import ParquetIOManager
from dagster_dataframely.step.destination import Destination, destination_of
from dagster_dataframely.step.error_rows import store_error_rows
from dagster_dataframely.step.lazy_frames import takes_lazy_frame

NOT_PARTITIONED = PARTITIONINGS["not partitioned"]
ROWS = error_rows_of(None, 1, 2, partitioning=NOT_PARTITIONED)


class Recorder(ByAssetKey):
    """Keeps what each write was told, beside the values."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[dict[str, Any]] = []

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        super().handle_output(context, obj)
        self.writes.append(
            {
                "asset_key": context.asset_key,
                "asset_spec": context.asset_spec.key,
                "name": context.name,
                "step_key": context.step_key,
                "run_id": context.run_id,
                "type": context.dagster_type.typing_type,
                "value": type(obj),
                "metadata": dict(context.definition_metadata),
                "partition": context.partition_key if context.has_partition_key else None,
            }
        )


class LazyRecorder(Recorder):
    def handle_output(
        self, context: dg.OutputContext, obj: pl.DataFrame | pl.LazyFrame | None
    ) -> None:
        super().handle_output(context, obj)


def error_row_events(result: Any) -> list[dg.AssetMaterialization]:
    events = result.get_asset_materialization_events()
    return [event.materialization for event in events if event.asset_key == ERROR_ROWS]


# --- where they go ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (["orders"], ["orders__error_rows"]),
        (["sales", "eu", "orders"], ["sales", "eu", "orders__error_rows"]),
    ],
)
def test_the_error_rows_key_is_the_assets_key_with_a_suffix_on_its_last_part(
    key: list[str], expected: list[str]
) -> None:
    assert error_rows_key(dg.AssetKey(key)) == dg.AssetKey(expected)


def test_the_io_manager_is_told_of_the_error_rows_as_of_an_asset_of_its_own() -> None:
    recorder = Recorder()
    warehouse = Warehouse(
        recorder,
        PARTITIONINGS["static"],
        metadata={"dagster/table_name": "sales.orders", "mode": "overwrite"},
    )

    result = warehouse.store(error_rows_of("eu", 1, partitioning=PARTITIONINGS["static"]), "eu")

    error_rows, table = recorder.writes
    assert error_rows == {
        "asset_key": ERROR_ROWS,
        "asset_spec": ERROR_ROWS,
        "name": "orders__error_rows",
        "step_key": "sales__orders",
        "run_id": result.run_id,
        "type": pl.DataFrame,
        "value": pl.DataFrame,
        # What Dagster keeps of the asset's own table is left out: it would name the wrong one.
        "metadata": {"partition_expr": "region", "mode": "overwrite"},
        "partition": "eu",
    }
    assert (table["asset_key"], table["name"]) == (ORDERS, "result")
    assert table["metadata"]["dagster/table_name"] == "sales.orders"


def test_a_lazy_frame_reaches_an_io_manager_that_takes_one_and_is_collected_for_any_other() -> None:
    lazy, eager = LazyRecorder(), Recorder()

    Warehouse(lazy).store(ROWS.lazy())
    Warehouse(eager).store(ROWS.lazy())

    assert (lazy.writes[0]["value"], lazy.writes[0]["type"]) == (pl.LazyFrame, pl.LazyFrame)
    assert (eager.writes[0]["value"], eager.writes[0]["type"]) == (pl.DataFrame, pl.DataFrame)


def here() -> Destination:
    """The destination of the asset whose step is running."""
    context = dg.AssetExecutionContext.get()
    return destination_of(context.asset_key, context)


@pytest.mark.parametrize("io_manager", IO_MANAGERS)
def test_a_lazy_frame_of_error_rows_is_stored_by_every_io_manager(
    io_manager: str, tmp_path: Path
) -> None:
    warehouse = Warehouse(IO_MANAGERS[io_manager](tmp_path))

    warehouse.store(ROWS.lazy())

    assert_frame_equal(warehouse.load(ERROR_ROWS), ROWS, check_row_order=False)


@pytest.mark.parametrize("create", [polars_parquet, polars_delta])
def test_eager_error_rows_are_stored_beside_a_table_that_is_annotated_as_lazy(
    create: Callable[[Path], Any], tmp_path: Path
) -> None:
    # These IO managers choose between a write and a sink by the annotated type, not by the value.
    io_manager = create(tmp_path)
    lazy = dg.PythonObjectDagsterType(pl.LazyFrame)

    @dg.asset(key=ORDERS, dagster_type=lazy, io_manager_key="warehouse")
    def orders() -> Iterator[Any]:
        yield from store_error_rows(here(), ROWS, metadata={})
        yield dg.MaterializeResult(value=pl.LazyFrame({"order_id": [1]}))

    result = dg.materialize([orders], resources={"warehouse": io_manager})

    assert result.success
    assert_frame_equal(Warehouse(io_manager).load(ERROR_ROWS), ROWS)


def test_delta_partitions_by_column_keep_the_error_rows_of_each_partition_apart(
    tmp_path: Path,
) -> None:
    regions = PARTITIONINGS["static"]
    warehouse = Warehouse(polars_delta(tmp_path), regions, metadata={"partition_by": "region"})

    warehouse.store(error_rows_of("eu", 1, 2, partitioning=regions), "eu")
    warehouse.store(error_rows_of("us", 3, partitioning=regions), "us")
    warehouse.store(error_rows_of("eu", partitioning=regions), "eu")

    assert warehouse.load(ERROR_ROWS, "eu")["order_id"].to_list() == []
    assert warehouse.load(ERROR_ROWS, "us")["order_id"].to_list() == [3]


def test_in_a_step_of_several_assets_the_asset_is_named() -> None:
    io_manager = ByAssetKey()

    @dg.multi_asset(specs=[dg.AssetSpec("orders"), dg.AssetSpec("lines")])
    def both() -> Iterator[Any]:
        context = dg.AssetExecutionContext.get()
        for key in (dg.AssetKey("orders"), dg.AssetKey("lines")):
            frame = pl.DataFrame({"of": [key.to_user_string()]})
            yield from store_error_rows(destination_of(key, context), frame, metadata={})
            yield dg.MaterializeResult(asset_key=key)

    result = dg.materialize([both], resources={"io_manager": io_manager})

    stored = {key: frame["of"].to_list() for key, frame in io_manager.values.items()}  # type: ignore[attr-defined]
    assert stored == {("orders__error_rows",): ["orders"], ("lines__error_rows",): ["lines"]}
    assert {
        event.asset_key.to_user_string() for event in result.get_asset_materialization_events()
    } == {
        "orders",
        "orders__error_rows",
        "lines",
        "lines__error_rows",
    }


def test_tables_that_an_io_manager_cannot_tell_apart_are_never_taken_for_one_another() -> None:
    # Loaded from another run, both are identified by `orders__error_rows` alone.
    io_manager = ByIdentifier()
    silver = Warehouse(io_manager, key=dg.AssetKey(["silver", "orders"]))
    gold = Warehouse(io_manager, key=dg.AssetKey(["gold", "orders"]))

    def store(warehouse: Warehouse) -> None:
        warehouse.found = ROWS
        dg.materialize(
            [silver.asset(), silver.spec(), gold.asset(), gold.spec()],
            selection=[warehouse.key],
            resources={"warehouse": io_manager},
        )

    store(silver)
    store(gold)

    assert len([key for key in io_manager.values if key[-1] == "orders__error_rows"]) == 2
    with pytest.raises(KeyError, match="orders__error_rows"):
        gold.load(error_rows_key(gold.key))


def test_an_asset_in_the_same_run_reads_the_error_rows_of_that_run(tmp_path: Path) -> None:
    warehouse = Warehouse(ParquetIOManager(base_dir=str(tmp_path)))
    warehouse.found = ROWS
    read: list[pl.DataFrame] = []

    # Dagster orders the steps by the dependency on the asset, which the node of the error rows alone
    # does not give.
    @dg.asset(ins={"rows": dg.AssetIn(ERROR_ROWS)}, deps=[ORDERS], io_manager_key="warehouse")
    def triaged(rows: pl.DataFrame) -> None:
        read.append(rows)

    dg.materialize(
        [warehouse.asset(), warehouse.spec(), triaged],
        resources={"warehouse": warehouse.io_manager},
    )

    assert_frame_equal(read[0], ROWS)


# --- what Dagster is told --------------------------------------------------------------------------


def test_a_write_is_a_materialization_with_the_given_metadata_over_that_of_the_io_manager(
    tmp_path: Path,
) -> None:
    warehouse = Warehouse(ParquetIOManager(base_dir=str(tmp_path)))

    (event,) = error_row_events(warehouse.store(ROWS.head(1)))

    assert event.partition is None
    assert event.metadata["path"].value == str(tmp_path / "sales" / "orders__error_rows.parquet")
    assert event.metadata["dagster/row_count"].value == 1
    assert set(event.metadata) == {"path", "size_bytes", "dagster/row_count"}


@pytest.mark.parametrize("partitioning", [name for name in PARTITIONINGS if name[:3] != "not"])
def test_the_materialization_of_a_partition_says_which(partitioning: str) -> None:
    how = PARTITIONINGS[partitioning]
    key, _ = how.keys
    warehouse = Warehouse(ByAssetKey(), how)

    (event,) = error_row_events(warehouse.store(error_rows_of(key, 1, partitioning=how), key))

    assert event.partition == key
    assert warehouse.instance.get_materialized_partitions(ERROR_ROWS) == {key}


def test_a_partition_of_several_dimensions_is_found_by_each_of_them() -> None:
    how = PARTITIONINGS["multi"]
    key, _ = how.keys
    warehouse = Warehouse(ByAssetKey(), how)

    warehouse.store(error_rows_of(key, 1, partitioning=how), key)

    record = warehouse.instance.get_latest_materialization_event(ERROR_ROWS)
    assert record is not None
    assert record.asset_materialization is not None
    assert record.asset_materialization.partition == key
    assert record.asset_materialization.tags == {
        "dagster/partition/day": "2026-01-01",
        "dagster/partition/region": "eu",
    }


RANGE = {
    "dagster/asset_partition_range_start": "2026-01-01",
    "dagster/asset_partition_range_end": "2026-01-03",
}
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]


def days_of_error_rows(days: list[str]) -> pl.DataFrame:
    how = PARTITIONINGS["daily"]
    return pl.concat(error_rows_of(day, id_, partitioning=how) for id_, day in enumerate(days))


@pytest.mark.parametrize("create", [duckdb_polars, lambda directory: ByAssetKey()])
def test_a_backfill_in_a_single_run_materializes_each_of_its_partitions(
    create: Callable[[Path], Any], tmp_path: Path
) -> None:
    warehouse = Warehouse(create(tmp_path), PARTITIONINGS["daily"])

    result = warehouse.store(days_of_error_rows(DAYS), tags=RANGE)

    assert [event.partition for event in error_row_events(result)] == DAYS


def test_duckdb_replaces_the_error_rows_of_the_days_of_a_single_run_backfill(
    tmp_path: Path,
) -> None:
    how = PARTITIONINGS["daily"]
    warehouse = Warehouse(duckdb_polars(tmp_path), how)

    warehouse.store(error_rows_of("2026-01-04", 9, partitioning=how), "2026-01-04")
    warehouse.store(days_of_error_rows(DAYS), tags=RANGE)
    warehouse.store(days_of_error_rows(DAYS[:2]), tags=RANGE)

    left = {
        day: warehouse.load(ERROR_ROWS, day)["order_id"].to_list() for day in [*DAYS, "2026-01-04"]
    }
    assert left == {"2026-01-01": [0], "2026-01-02": [1], "2026-01-03": [], "2026-01-04": [9]}


def test_an_io_manager_that_refuses_several_partitions_in_one_run_says_so_itself(
    tmp_path: Path,
) -> None:
    warehouse = Warehouse(ParquetIOManager(base_dir=str(tmp_path)), PARTITIONINGS["daily"])

    with pytest.raises(
        Exception, match="does not support persisting an output associated with mul"
    ):
        warehouse.store(days_of_error_rows(DAYS), tags=RANGE)


def test_the_materialization_is_kept_when_the_step_fails_afterwards() -> None:
    @dg.asset(key=ORDERS)
    def orders() -> Iterator[Any]:
        yield from store_error_rows(here(), ROWS, metadata={"rows": 2})
        raise ValueError("no valid rows")

    result = dg.materialize([orders], resources={"io_manager": ByAssetKey()}, raise_on_error=False)

    assert not result.success
    assert [event.metadata["rows"].value for event in error_row_events(result)] == [2]


# --- how IO managers report ------------------------------------------------------------------------


def adds(context: dg.OutputContext) -> None:
    context.add_output_metadata({"rows": 2})


def returns_metadata(context: dg.OutputContext) -> dict[str, int]:
    return {"rows": 2}


def yields_metadata(context: dg.OutputContext) -> Iterator[dict[str, int]]:
    yield {"rows": 2}


def adds_between_yields(context: dg.OutputContext) -> Iterator[dict[str, int]]:
    context.add_output_metadata({"rows": 1})
    yield {}
    # The same key once more: Dagster has consumed the first by now.
    context.add_output_metadata({"rows": 2})


SEEN = dg.AssetKey("seen")


def logs(context: dg.OutputContext) -> None:
    context.log_event(AssetMaterialization(SEEN))
    context.log_event(AssetObservation(SEEN))
    context.add_output_metadata({"rows": 2})


def yields_event(context: dg.OutputContext) -> Iterator[Any]:
    yield AssetMaterialization(SEEN)
    yield {"rows": 2}


def returns_event(context: dg.OutputContext) -> AssetMaterialization:
    context.add_output_metadata({"rows": 2})
    return AssetMaterialization(SEEN)


def reporting(handle: Callable[[dg.OutputContext], Any]) -> dg.IOManager:
    """An IO manager that stores nothing and reports about error rows in one of the ways there are."""

    class Reporting(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: object) -> Any:
            return handle(context) if context.asset_key == ERROR_ROWS else None

        def load_input(self, context: dg.InputContext) -> object:
            raise NotImplementedError  # nothing reads in this test

    return Reporting()


@pytest.mark.parametrize(
    ("handle", "seen"),
    [
        (adds, []),
        (returns_metadata, []),
        (yields_metadata, []),
        (adds_between_yields, []),
        (logs, ["ASSET_MATERIALIZATION", "ASSET_OBSERVATION"]),
        (yields_event, ["ASSET_MATERIALIZATION"]),
        (returns_event, ["ASSET_MATERIALIZATION"]),
    ],
)
def test_what_an_io_manager_reports_is_reported_whichever_way_it_does(
    handle: Callable[[dg.OutputContext], Any], seen: list[str]
) -> None:
    result = Warehouse(reporting(handle)).store(ROWS)

    (event,) = error_row_events(result)
    assert event.metadata["rows"].value == 2
    assert [e.event_type_value for e in result.all_events if e.asset_key == SEEN] == seen


def test_an_io_manager_that_reports_anything_else_is_told_what_it_may_report() -> None:
    with pytest.raises(dg.DagsterInvariantViolationError) as raised:
        Warehouse(reporting(lambda context: 7)).store(ROWS)

    assert str(raised.value) == (
        "Reporting reported 7 from `handle_output`. An IO manager may report an "
        "`AssetMaterialization` or a mapping of metadata."
    )


def test_an_error_of_the_io_manager_is_its_own_and_nothing_is_claimed_to_be_written() -> None:
    class DiskFullError(Exception):
        pass

    def full(context: dg.OutputContext) -> None:
        raise DiskFullError("no space left")

    warehouse = Warehouse(reporting(full))

    with pytest.raises(DiskFullError) as raised:
        warehouse.store(ROWS)
    result = warehouse.store(ROWS, raise_on_error=False)

    assert str(raised.value) == "no space left"
    assert raised.value.__notes__ == [
        "Raised while Reporting stored the error rows of asset 'sales/orders' under "
        "'sales/orders__error_rows'."
    ]
    assert not result.success
    assert result.get_asset_materialization_events() == []


# --- lazy frames -----------------------------------------------------------------------------------


class Annotated(dg.IOManager):
    def handle_output(self, context: dg.OutputContext, obj: pl.LazyFrame) -> None: ...

    def load_input(self, context: dg.InputContext) -> Any: ...


class EagerOnly(dg.IOManager):
    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None: ...

    def load_input(self, context: dg.InputContext) -> Any: ...


class Unresolvable(dg.IOManager):
    def handle_output(self, context: dg.OutputContext, obj: NotImported) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    def load_input(self, context: dg.InputContext) -> Any: ...


TAKES_LAZY_FRAMES = {
    "Dagster's filesystem (pickle)": False,
    "ParquetIOManager": True,
    "dagster-polars parquet": True,
    "dagster-polars Delta": True,
    "dagster-deltalake-polars": True,
    "dagster-duckdb-polars": False,
    "in-memory": False,
    "user-written, asset_key": False,
}


@pytest.mark.parametrize(("io_manager", "expected"), TAKES_LAZY_FRAMES.items())
def test_an_io_manager_takes_a_lazy_frame_where_it_says_so(
    io_manager: str, expected: bool, tmp_path: Path
) -> None:
    manager = IO_MANAGERS[io_manager](tmp_path)
    if isinstance(manager, dg.ConfigurableIOManagerFactory):
        manager = manager.create_io_manager(dg.build_init_resource_context())

    assert takes_lazy_frame(manager) is expected


@pytest.mark.parametrize(
    ("io_manager", "expected"),
    [(Annotated(), True), (LazyRecorder(), True), (EagerOnly(), False), (Unresolvable(), False)],
)
def test_a_user_written_io_manager_says_so_in_the_annotation_of_its_value(
    io_manager: dg.IOManager, expected: bool
) -> None:
    assert takes_lazy_frame(io_manager) is expected


# --- executors -------------------------------------------------------------------------------------


def multiprocess_job() -> dg.JobDefinition:
    @dg.asset(key=ORDERS)
    def orders() -> Iterator[Any]:
        yield from store_error_rows(here(), ROWS, metadata={})
        yield dg.MaterializeResult(value=ROWS)

    definitions = dg.Definitions(
        [orders],
        resources={"io_manager": ParquetIOManager(base_dir=dg.EnvVar("TABLES_OF_THE_TEST"))},
        jobs=[dg.define_asset_job("write", executor_def=dg.multiprocess_executor)],
    )
    return definitions.resolve_job_def("write")


def test_the_multiprocess_executor_writes_them_in_the_process_of_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TABLES_OF_THE_TEST", str(tmp_path))
    # The other processes import this module from the directory that they are started in.
    monkeypatch.chdir(Path(__file__).parent)

    with dg.instance_for_test() as instance:
        with dg.execute_job(dg.reconstructable(multiprocess_job), instance) as result:
            assert result.success
        assert instance.get_latest_materialization_event(ERROR_ROWS) is not None

    stored = pl.read_parquet(tmp_path / "sales" / "orders__error_rows.parquet")
    assert_frame_equal(stored, ROWS)
