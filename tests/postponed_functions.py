"""Assets of a module with postponed annotations: each is text until it is resolved.

`test_function_shapes.py` runs the same functions, declared without postponing, beside these.
"""

from __future__ import annotations

import dagster as dg
import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class OrdersSchema(dy.Schema):
    order_id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


class Minimum(dg.Config):
    amount: float = 0.0


class Rate(dg.ConfigurableResource):
    factor: float = 1.0


@dd.asset(OrdersSchema)
def with_context(context: dg.AssetExecutionContext) -> pl.DataFrame:
    context.log.info("called")
    return pl.DataFrame({"order_id": [1], "amount": [1.0]})


@dd.asset(OrdersSchema)
def with_everything(
    context: dg.AssetExecutionContext,
    config: Minimum,
    raw_orders: pl.DataFrame,
    rate: Rate,
) -> dy.DataFrame[OrdersSchema]:
    assert context.asset_key == dg.AssetKey("with_everything")
    scaled = raw_orders.with_columns(pl.col("amount") * rate.factor)
    return OrdersSchema.cast(scaled.filter(pl.col("amount") >= config.amount))


@dd.asset(OrdersSchema)
def lazily(raw_orders: dy.LazyFrame[OrdersSchema]) -> dy.LazyFrame[OrdersSchema]:
    assert isinstance(raw_orders, pl.LazyFrame)
    return raw_orders


@dd.asset(OrdersSchema)
def eagerly(raw_orders: dy.DataFrame[OrdersSchema] | None) -> dy.DataFrame[OrdersSchema] | None:
    assert isinstance(raw_orders, pl.DataFrame)
    return raw_orders


@dd.asset(OrdersSchema)
async def asynchronously(raw_orders: dy.DataFrame[OrdersSchema]) -> dy.DataFrame[OrdersSchema]:
    return raw_orders
