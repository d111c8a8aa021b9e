"""Which functions become assets: their parameters, their annotations, and what they return."""
# This module does not postpone its annotations; `postponed_functions.py` does.

import asyncio
import inspect
from typing import Any, Optional

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
import postponed_functions
from support import Tables, call, returning, run

# Each promise holds for a frame in memory and for one that is streamed.
pytestmark = pytest.mark.usefixtures("either_mode")


class OrdersSchema(dy.Schema):
    """Orders of the shop."""

    order_id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


class Minimum(dg.Config):
    amount: float = 0.0


class Rate(dg.ConfigurableResource):
    factor: float = 1.0


ORDERS = pl.DataFrame({"order_id": [1, 2], "amount": [1.0, 2.0]})
BAD_ORDERS = pl.DataFrame({"order_id": [1, 2], "amount": [1.0, -2.0]})

raw_orders = dg.AssetSpec("raw_orders")


def stored(frame: pl.DataFrame = ORDERS, key: str = "raw_orders") -> Tables:
    return Tables({key: frame})


# --- parameters ----------------------------------------------------------------------------------


def test_a_context_parameter_is_the_contexts_of_the_step() -> None:
    keys = []

    @dd.asset(OrdersSchema)
    def orders(context: dg.AssetExecutionContext) -> pl.DataFrame:
        keys.append(context.asset_key)
        return ORDERS

    assert run(orders).success
    assert call(orders).success
    assert keys[0] == dg.AssetKey("orders")


def test_a_context_parameter_needs_no_annotation() -> None:
    @dd.asset(OrdersSchema)
    def orders(context) -> pl.DataFrame:  # type: ignore[no-untyped-def]
        context.log.info("called")
        return ORDERS

    assert run(orders).success


def test_the_context_may_be_asked_for_inside_the_function() -> None:
    @dd.asset(OrdersSchema)
    def orders() -> pl.DataFrame:
        assert dg.AssetExecutionContext.get().asset_key == dg.AssetKey("orders")
        return ORDERS

    assert run(orders).success


def test_asset_metadata_that_the_function_adds_through_its_context_is_kept() -> None:
    @dd.asset(OrdersSchema)
    def orders(context: dg.AssetExecutionContext) -> pl.DataFrame:
        context.add_asset_metadata({"source": "erp"})
        return ORDERS

    metadata = run(orders).materializations["orders"]

    assert metadata["source"] == "erp"
    assert metadata["dagster/row_count"] == 2


def test_a_config_parameter_takes_run_config() -> None:
    @dd.asset(OrdersSchema)
    def orders(config: Minimum) -> pl.DataFrame:
        return ORDERS.filter(pl.col("amount") >= config.amount)

    outcome = run(orders, run_config=dg.RunConfig({"orders": Minimum(amount=1.5)}))

    assert outcome.rows("orders", "order_id") == [2]
    assert call(orders, Minimum(amount=1.5)).rows("orders", "order_id") == [2]


def test_a_resource_parameter_takes_the_runs_resource() -> None:
    @dd.asset(OrdersSchema)
    def orders(rate: Rate) -> pl.DataFrame:
        return ORDERS.with_columns(pl.col("amount") * rate.factor)

    outcome = run(orders, resources={"rate": Rate(factor=10.0)})

    assert outcome.rows("orders", "amount") == [10.0, 20.0]
    assert call(orders, rate=Rate(factor=10.0)).rows("orders", "amount") == [10.0, 20.0]


def test_required_resources_are_on_the_context() -> None:
    @dd.asset(OrdersSchema, required_resource_keys={"frames"})
    def orders(context: dg.AssetExecutionContext) -> pl.DataFrame:
        frame: pl.DataFrame = context.resources.frames
        return frame

    assert run(orders, resources={"frames": ORDERS}).rows("orders", "order_id") == [1, 2]


def test_a_parameter_is_an_upstream_asset_of_that_name() -> None:
    @dd.asset(OrdersSchema)
    def orders(raw_orders: pl.DataFrame) -> pl.DataFrame:
        return raw_orders

    outcome = run(orders, raw_orders, tables=stored(), selection=["orders"])

    assert outcome.rows("orders", "order_id") == [1, 2]
    assert call(orders, ORDERS).rows("orders", "order_id") == [1, 2]
    assert call(orders, raw_orders=ORDERS).rows("orders", "order_id") == [1, 2]


def test_ins_name_another_upstream_key() -> None:
    @dd.asset(OrdersSchema, ins={"frame": dg.AssetIn(key=["erp", "orders"])})
    def orders(frame: pl.DataFrame) -> pl.DataFrame:
        return frame

    outcome = run(
        orders,
        dg.AssetSpec(["erp", "orders"]),
        tables=stored(key="erp/orders"),
        selection=["orders"],
    )

    assert outcome.rows("orders", "order_id") == [1, 2]


def test_deps_are_upstream_without_being_loaded() -> None:
    @dd.asset(OrdersSchema, deps=["raw_orders"])
    def orders() -> pl.DataFrame:
        return ORDERS

    assert [dep.asset_key for dep in orders.specs_by_key[orders.key].deps] == [
        dg.AssetKey("raw_orders")
    ]
    assert run(orders, raw_orders, selection=["orders"]).success


def test_a_default_value_stands_where_no_upstream_is_given_in_a_direct_call() -> None:
    @dd.asset(OrdersSchema)
    def orders(raw_orders: pl.DataFrame, config: Minimum) -> pl.DataFrame:
        return raw_orders.filter(pl.col("amount") >= config.amount)

    assert call(orders, ORDERS, Minimum()).rows("orders", "order_id") == [1, 2]


def test_filter_changes_nothing_about_parameters() -> None:
    @dd.asset(OrdersSchema, filter=True)
    def orders(
        context: dg.AssetExecutionContext, config: Minimum, raw_orders: pl.DataFrame, rate: Rate
    ) -> pl.DataFrame:
        return raw_orders.with_columns(pl.col("amount") * rate.factor)

    outcome = run(
        orders,
        raw_orders,
        tables=stored(BAD_ORDERS),
        resources={"rate": Rate(factor=3.0)},
        selection=["orders"],
    )

    assert outcome.rows("orders", "order_id", "amount") == [(1, 3.0)]
    assert outcome.rows("orders__error_rows", "order_id", "amount") == [(2, -6.0)]
    directly = call(orders, Minimum(), BAD_ORDERS, Rate(factor=3.0))
    assert directly.written["orders"].equals(outcome.written["orders"])


@pytest.mark.parametrize("filter", [False, True])
def test_a_direct_call_without_a_context_parameter_needs_none(
    filter: bool,  # noqa: A002
) -> None:
    @dd.asset(OrdersSchema, filter=filter)
    def orders(raw_orders: pl.DataFrame) -> pl.DataFrame:
        return raw_orders

    (table,) = [result for result in orders(ORDERS) if isinstance(result, dg.MaterializeResult)]

    assert table.value["order_id"].to_list() == [1, 2]


def test_the_functions_name_and_docstring_are_the_assets() -> None:
    class Undocumented(dy.Schema):
        order_id = dy.Int64()

    @dd.asset(Undocumented)
    def orders() -> pl.DataFrame:
        """Orders of the last year."""
        return ORDERS

    assert orders.key == dg.AssetKey("orders")
    assert orders.op.name == "orders"
    assert orders.specs_by_key[orders.key].description == "Orders of the last year."


# --- annotations ---------------------------------------------------------------------------------


def test_a_typed_eager_frame_is_an_annotation_for_an_eager_frame() -> None:
    @dd.asset(OrdersSchema)
    def orders(raw_orders: dy.DataFrame[OrdersSchema]) -> dy.DataFrame[OrdersSchema]:
        assert isinstance(raw_orders, pl.DataFrame)
        return raw_orders

    outcome = run(orders, raw_orders, tables=stored(), selection=["orders"])

    assert outcome.rows("orders", "order_id") == [1, 2]
    assert call(orders, ORDERS).success


def test_a_typed_lazy_frame_is_an_annotation_for_a_lazy_frame() -> None:
    @dd.asset(OrdersSchema)
    def orders(raw_orders: dy.LazyFrame[OrdersSchema]) -> dy.LazyFrame[OrdersSchema]:
        assert isinstance(raw_orders, pl.LazyFrame)
        return raw_orders

    outcome = run(orders, raw_orders, tables=stored(), selection=["orders"])

    assert outcome.rows("orders", "order_id") == [1, 2]
    assert call(orders, ORDERS.lazy()).success


@pytest.mark.parametrize(
    "annotation",
    [
        pl.DataFrame,
        pl.LazyFrame,
        dy.DataFrame[OrdersSchema],
        dy.LazyFrame[OrdersSchema],
        pl.DataFrame | None,
        Optional[pl.DataFrame],  # noqa: UP045
        dy.DataFrame[OrdersSchema] | None,
        pl.DataFrame | pl.LazyFrame,
        dg.MaterializeResult,
        dg.MaterializeResult[pl.DataFrame],
        dg.MaterializeResult[dy.DataFrame[OrdersSchema]],
        Any,
        inspect.Parameter.empty,
    ],
)
def test_a_return_annotation_does_not_keep_a_function_from_being_an_asset(
    annotation: Any,
) -> None:
    lazy = "LazyFrame" in str(annotation)

    def orders() -> Any:
        frame = BAD_ORDERS.lazy() if lazy else BAD_ORDERS
        return dg.MaterializeResult(value=frame) if "Result" in str(annotation) else frame

    if annotation is inspect.Parameter.empty:
        del orders.__annotations__["return"]
    else:
        orders.__annotations__["return"] = annotation

    outcome = run(dd.asset(OrdersSchema, filter=True)(orders))

    assert outcome.success
    assert outcome.failing == {"dy_rule__amount__min": "ERROR"}
    assert outcome.rows("orders", "order_id") == [1]


def test_a_return_annotation_of_none_or_a_frame_lets_none_be_returned() -> None:
    @dd.asset(OrdersSchema)
    def orders() -> pl.DataFrame | None:
        return None

    assert run(orders).success


def test_a_function_annotated_to_return_a_frame_may_return_none() -> None:
    @dd.asset(OrdersSchema)
    def orders() -> pl.DataFrame:
        return None  # type: ignore[return-value]

    outcome = run(orders)

    assert outcome.success
    assert outcome.written == {}


def test_an_unannotated_upstream_parameter_works() -> None:
    @dd.asset(OrdersSchema)
    def orders(raw_orders):  # type: ignore[no-untyped-def]
        return raw_orders

    assert run(orders, raw_orders, tables=stored(), selection=["orders"]).success


# --- postponed annotations -----------------------------------------------------------------------


def test_postponed_a_context_parameter_works() -> None:
    assert run(postponed_functions.with_context).success
    assert call(postponed_functions.with_context).success


def test_postponed_context_config_input_and_resource_work_together() -> None:
    outcome = run(
        postponed_functions.with_everything,
        raw_orders,
        tables=stored(),
        resources={"rate": postponed_functions.Rate(factor=2.0)},
        run_config=dg.RunConfig({"with_everything": postponed_functions.Minimum(amount=3.0)}),
        selection=["with_everything"],
    )

    assert outcome.rows("with_everything", "order_id", "amount") == [(2, 4.0)]


@pytest.mark.parametrize("name", ["lazily", "eagerly", "asynchronously"])
def test_postponed_typed_frames_work(name: str) -> None:
    asset = getattr(postponed_functions, name)

    outcome = run(asset, raw_orders, tables=stored(), selection=[name])

    assert outcome.rows(name, "order_id") == [1, 2]


# --- async functions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "written", "error"),
    [
        pytest.param(ORDERS, [1, 2], None, id="valid"),
        pytest.param(ORDERS.lazy(), [1, 2], None, id="lazy"),
        pytest.param(dg.MaterializeResult(value=ORDERS), [1, 2], None, id="result"),
        pytest.param(BAD_ORDERS, None, "ValidationAbortError", id="an error row"),
        pytest.param(ORDERS.drop("amount"), None, "ColumnSchemaError", id="a missing column"),
        pytest.param([1], None, "InvalidReturnError", id="a list"),
        pytest.param(None, None, None, id="None"),
    ],
)
def test_an_async_function_is_awaited_and_validated(
    returned: Any, written: list[int] | None, error: str | None
) -> None:
    @dd.asset(OrdersSchema)
    async def orders() -> Any:
        await asyncio.sleep(0)
        return returned

    outcome = run(orders)

    assert outcome.error == error
    assert outcome.success is (error is None)
    assert list(outcome.written) == ([] if written is None else ["orders"])
    if written is not None:
        assert outcome.rows("orders", "order_id") == written


def test_an_async_function_with_parameters_keeps_error_rows() -> None:
    @dd.asset(OrdersSchema, filter=True)
    async def orders(
        context: dg.AssetExecutionContext, config: Minimum, raw_orders: dy.DataFrame[OrdersSchema]
    ) -> dy.DataFrame[OrdersSchema]:
        await asyncio.sleep(0)
        context.log.info("minimum %s", config.amount)
        return raw_orders

    outcome = run(orders, raw_orders, tables=stored(BAD_ORDERS), selection=["orders"])

    assert outcome.rows("orders", "order_id") == [1]
    assert outcome.rows("orders__error_rows", "order_id") == [2]


def test_an_exception_in_an_async_function_is_passed_on() -> None:
    @dd.asset(OrdersSchema)
    async def orders() -> pl.DataFrame:
        await asyncio.sleep(0)
        raise LookupError("no such source")

    outcome = run(orders)

    assert (outcome.error, outcome.message) == ("LookupError", "no such source")


# --- a result around a frame ---------------------------------------------------------------------


@pytest.mark.parametrize("frame", [ORDERS, ORDERS.lazy()], ids=["eager", "lazy"])
@pytest.mark.parametrize("execute", [run, call], ids=["run", "direct call"])
def test_a_materialize_result_around_a_frame_keeps_its_metadata(frame: Any, execute: Any) -> None:
    orders = returning(
        OrdersSchema, dg.MaterializeResult(value=frame, metadata={"source": "erp", "batch": 7})
    )

    outcome = execute(orders)

    assert outcome.written["orders"].equals(ORDERS)
    metadata = outcome.materializations["orders"]
    assert (metadata["source"], metadata["batch"]) == ("erp", 7)
    assert metadata["dagster/row_count"] == 2


def test_a_materialize_result_keeps_its_data_version_and_tags() -> None:
    orders = returning(
        OrdersSchema,
        dg.MaterializeResult(value=ORDERS, data_version=dg.DataVersion("v7"), tags={"batch": "7"}),
    )

    result = dg.materialize([orders], resources={"io_manager": Tables()})

    (event,) = result.asset_materializations_for_node("orders")
    assert event.tags is not None
    assert event.tags["dagster/data_version"] == "v7"
    assert event.tags["batch"] == "7"


def test_a_materialize_result_around_error_rows_is_validated_like_the_frame() -> None:
    returned = dg.MaterializeResult(value=BAD_ORDERS, metadata={"source": "erp"})

    aborted = run(returning(OrdersSchema, returned))
    filtered = run(returning(OrdersSchema, returned, filter=True))

    assert aborted.error == "ValidationAbortError"
    assert filtered.rows("orders", "order_id") == [1]
    assert filtered.rows("orders__error_rows", "order_id") == [2]
    assert filtered.materializations["orders"]["source"] == "erp"


# --- arguments -----------------------------------------------------------------------------------

DECIDED_BY_THE_SCHEMA = {"check_specs", "output_required", "dagster_type", "is_virtual"}
SETTINGS = {
    "check_granularity",
    "schema_rules",
    "statistics",
    "max_failure_samples",
    "row_sample",
    "redact",
}


def test_asset_takes_every_argument_of_dagsters_asset_but_those_that_the_schema_decides() -> None:
    def keywords(function: Any) -> set[str]:
        return {
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }

    own = keywords(dd.asset)

    assert keywords(dg.asset) - own == DECIDED_BY_THE_SCHEMA
    assert {"filter", *SETTINGS} <= own


def test_arguments_of_dagsters_asset_reach_the_asset() -> None:
    @dd.asset(
        OrdersSchema,
        key=["sales", "orders"],
        group_name="sales",
        owners=["team:sales"],
        tags={"tier": "gold"},
        metadata={"source": "erp"},
        description="Orders, as sold.",
        kinds={"duckdb"},
        code_version="7",
        pool="warehouse",
        op_tags={"queue": "small"},
        retry_policy=dg.RetryPolicy(max_retries=2),
        automation_condition=dg.AutomationCondition.eager(),
        partitions_def=dg.StaticPartitionsDefinition(["a"]),
        io_manager_key="warehouse",
    )
    def orders() -> pl.DataFrame:
        return ORDERS

    (spec,) = orders.specs
    assert spec.key == dg.AssetKey(["sales", "orders"])
    assert spec.group_name == "sales"
    assert list(spec.owners) == ["team:sales"]
    assert spec.tags["tier"] == "gold"
    assert spec.metadata["source"] == "erp"
    assert spec.description == "Orders, as sold."
    assert spec.kinds == {"duckdb"}
    assert spec.code_version == "7"
    assert spec.automation_condition == dg.AutomationCondition.eager()
    assert spec.partitions_def == dg.StaticPartitionsDefinition(["a"])
    assert orders.op.pool == "warehouse"
    assert orders.op.tags["queue"] == "small"
    assert orders.op.retry_policy == dg.RetryPolicy(max_retries=2)
    assert orders.required_resource_keys >= {"warehouse"}


def test_a_retry_policy_retries_the_function_when_it_raises() -> None:
    attempts = []

    @dd.asset(OrdersSchema, retry_policy=dg.RetryPolicy(max_retries=1))
    def orders() -> pl.DataFrame:
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError("try again")
        return ORDERS

    outcome = run(orders)

    assert outcome.success
    assert len(attempts) == 2


def test_hooks_and_io_manager_definitions_are_passed_on() -> None:
    succeeded = []
    tables = Tables()

    @dg.success_hook
    def note_success(context: dg.HookContext) -> None:
        succeeded.append(context.op.name)

    @dd.asset(
        OrdersSchema,
        hooks={note_success},
        io_manager_def=dg.IOManagerDefinition.hardcoded_io_manager(tables),
    )
    def orders() -> pl.DataFrame:
        return ORDERS

    result = dg.materialize([orders])

    assert result.success
    assert succeeded == ["orders"]
    assert tables.writes == ["orders"]
