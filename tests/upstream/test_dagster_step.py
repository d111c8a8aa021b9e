"""What Dagster does not promise and `upstream/dagster_step.py` relies on, each held by a test.

A test that fails here says what Dagster has changed, and what in the package rests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import polars as pl
import pytest
from dagster._core.definitions.partitions.utils import get_tags_from_multi_partition_key
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster._core.storage.db_io_manager import DbClient, DbIOManager, DbTypeHandler

from dagster_dataframely.upstream.dagster_step import (
    database_types,
    io_manager_of,
    other_table_context,
    partition_tags,
)

ORDERS = dg.AssetKey(["sales", "orders"])
OTHER = dg.AssetKey(["sales", "orders__error_rows"])


def in_a_step(ask: Callable[[dg.AssetExecutionContext], Any]) -> Any:
    """Run an asset beside another one, and return what `ask` finds in its step."""
    found: list[Any] = []

    @dg.asset(key=ORDERS)
    def orders() -> None:
        found.append(ask(dg.AssetExecutionContext.get()))

    @dg.asset
    def not_in_this_run() -> None: ...

    dg.materialize(
        [orders, not_in_this_run],
        selection=[ORDERS],
        resources={"io_manager": dg.InMemoryIOManager()},
    )
    return found[0]


# --- the step --------------------------------------------------------------------------------------


def test_a_context_gives_its_step_whose_key_names_the_asset() -> None:
    key = in_a_step(lambda context: context.get_step_execution_context().step.key)

    assert key == "sales__orders", (
        "AssetExecutionContext.get_step_execution_context().step.key is not the step's key: "
        "the IO manager of a step is looked up by it"
    )


def test_a_step_gives_the_io_manager_of_an_output_by_its_handle() -> None:
    io_manager = in_a_step(
        lambda context: context.get_step_execution_context().get_io_manager(
            StepOutputHandle("sales__orders", "result")
        )
    )

    assert isinstance(io_manager, dg.InMemoryIOManager), (
        "StepExecutionContext.get_io_manager(StepOutputHandle(step_key, output_name)) does not give the "
        "IO manager: error rows are stored through it"
    )
    assert isinstance(in_a_step(lambda context: io_manager_of(context, ORDERS)), type(io_manager))


def test_a_step_gives_a_new_output_context_each_time_it_is_asked() -> None:
    def ask(context: dg.AssetExecutionContext) -> tuple[dg.OutputContext, dg.OutputContext]:
        step = context.get_step_execution_context()
        handle = StepOutputHandle("sales__orders", "result")
        return step.get_output_context(handle), step.get_output_context(handle)

    first, second = in_a_step(ask)

    assert (first.asset_key, first.name) == (ORDERS, "result")
    assert first is not second, (
        "StepExecutionContext.get_output_context() gives one context to all: re-pointing it would move the "
        "asset's own table"
    )


def test_a_step_knows_the_assets_of_the_code_location_that_are_not_in_its_run() -> None:
    def ask(context: dg.AssetExecutionContext) -> Any:
        graph = context.get_step_execution_context().job_def.asset_layer.asset_graph
        return graph.source_asset_graph.get_all_asset_keys()

    assert in_a_step(ask) == {ORDERS, dg.AssetKey("not_in_this_run")}, (
        "job_def.asset_layer.asset_graph.source_asset_graph does not have all assets: tables with one "
        "last key part would be taken for one another"
    )


# --- the output context ----------------------------------------------------------------------------


TYPE = dg.PythonObjectDagsterType(pl.DataFrame)


@pytest.mark.parametrize(
    ("attribute", "value", "public"),
    [
        ("_asset_key", OTHER, "asset_key"),
        ("_asset_spec", dg.AssetSpec(OTHER), "asset_spec"),
        ("_name", "orders__error_rows", "name"),
        ("_dagster_type", TYPE, "dagster_type"),
        ("_definition_metadata", {"partition_expr": "day"}, "definition_metadata"),
    ],
)
def test_a_private_attribute_of_an_output_context_is_what_its_public_property_gives(
    attribute: str, value: object, public: str
) -> None:
    context = dg.build_output_context(asset_key=ORDERS, asset_spec=dg.AssetSpec(ORDERS))

    assert attribute in vars(context), f"OutputContext has no attribute {attribute} any more"
    setattr(context, attribute, value)

    assert getattr(context, public) == value, (
        f"OutputContext.{public} does not read {attribute} any more: error rows would be stored as the table"
    )


def test_all_that_an_output_context_knows_is_in_its_attributes() -> None:
    assert not hasattr(dg.OutputContext, "__slots__"), (
        "OutputContext has slots: what a context of our own takes over from it would be incomplete"
    )


def test_re_pointing_leaves_the_context_of_the_table_as_it_was() -> None:
    def ask(context: dg.AssetExecutionContext) -> tuple[dg.OutputContext, dg.OutputContext]:
        other = other_table_context(context, ORDERS, other_key=OTHER, frame_type=pl.DataFrame)
        step = context.get_step_execution_context()
        return step.get_output_context(StepOutputHandle("sales__orders", "result")), other

    own, other = in_a_step(ask)

    assert (own.asset_key, own.asset_spec.key, own.name) == (ORDERS, ORDERS, "result")
    assert (other.asset_key, other.asset_spec.key) == (OTHER, OTHER)
    assert other.name == "orders__error_rows"


def test_metadata_that_was_added_to_a_context_is_consumed_once() -> None:
    context = dg.build_output_context()
    context.add_output_metadata({"rows": 2})

    consumed = [dict(context.consume_logged_metadata()), dict(context.consume_logged_metadata())]

    assert consumed == [{"rows": dg.MetadataValue.int(2)}, {}], (
        "OutputContext.consume_logged_metadata() does not hand out the added metadata once"
    )


def test_events_that_an_io_manager_logged_can_be_read_from_its_context() -> None:
    context = dg.build_output_context()
    event = dg.AssetMaterialization("seen")
    context.log_event(event)

    assert list(context.get_logged_events()) == [event], (
        "OutputContext.get_logged_events() does not give what was logged with log_event()"
    )


# --- identifying an asset from outside its run -----------------------------------------------------


def test_an_asset_from_outside_the_run_is_asked_for_by_the_identifier_that_was_stored_under() -> (
    None
):
    asked: list[Sequence[str]] = []

    class Loading(dg.IOManager):
        def handle_output(self, context: dg.OutputContext, obj: object) -> None: ...

        def load_input(self, context: dg.InputContext) -> None:
            asked.append(context.get_identifier())

    @dg.asset(ins={"rows": dg.AssetIn(OTHER)})
    def triaged(rows: Any) -> None: ...

    dg.materialize(
        [triaged, dg.AssetSpec(OTHER)], selection=[triaged], resources={"io_manager": Loading()}
    )
    stored = in_a_step(
        lambda context: other_table_context(
            context, ORDERS, other_key=OTHER, frame_type=pl.DataFrame
        ).get_identifier()
    )

    assert asked == [stored], (
        "a step asks for an asset of another run by another identifier: IO managers that store by "
        "get_identifier() would not find error rows again"
    )


# --- partitions and databases ----------------------------------------------------------------------


def test_the_tags_of_a_partition_name_its_dimensions() -> None:
    partition = dg.MultiPartitionKey({"day": "2026-01-01", "region": "eu"})
    expected = {"dagster/partition/day": "2026-01-01", "dagster/partition/region": "eu"}

    assert get_tags_from_multi_partition_key(partition) == expected, (
        "get_tags_from_multi_partition_key() gives other tags: partitions would not be found in the log"
    )
    assert partition_tags(partition) == expected
    assert partition_tags("2026-01-01") == {}


def test_an_event_with_those_tags_is_of_a_partition_of_several_dimensions() -> None:
    partition = dg.MultiPartitionKey({"day": "2026-01-01", "region": "eu"})

    event = dg.AssetMaterialization(
        "orders", partition=str(partition), tags=partition_tags(partition)
    )

    assert isinstance(event.partition, dg.MultiPartitionKey), (
        "AssetMaterialization does not read a partition's dimensions from its tags any more"
    )


class Handler(DbTypeHandler[Any]):
    def handle_output(
        self, context: dg.OutputContext, table_slice: Any, obj: Any, connection: Any
    ) -> Mapping[str, Any] | None: ...

    def load_input(self, context: dg.InputContext, table_slice: Any, connection: Any) -> Any: ...

    @property
    def supported_types(self) -> Sequence[type[object]]:
        return [pl.DataFrame, pl.LazyFrame]


def test_a_database_io_manager_knows_the_types_that_it_stores() -> None:
    io_manager = DbIOManager(type_handlers=[Handler()], db_client=DbClient(), database="tables")

    assert list(io_manager._handlers_by_type) == [pl.DataFrame, pl.LazyFrame], (
        "DbIOManager._handlers_by_type does not map the supported types any more: nobody would know "
        "whether it takes a lazy frame"
    )
    assert database_types(io_manager) == (pl.DataFrame, pl.LazyFrame)
    assert database_types(dg.InMemoryIOManager()) is None


# --- what a step lets its asset yield --------------------------------------------------------------


def test_a_step_stores_a_materialization_of_a_key_that_its_asset_does_not_own() -> None:
    @dg.asset(key=ORDERS)
    def orders() -> Iterator[Any]:
        yield dg.AssetMaterialization(OTHER)
        yield dg.MaterializeResult(value=1)

    result = dg.materialize([orders], resources={"io_manager": dg.InMemoryIOManager()})

    keys = [event.asset_key for event in result.get_asset_materialization_events()]
    assert keys == [OTHER, ORDERS]
