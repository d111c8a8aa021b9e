"""A schema with every kind of rule, and frames to try it on."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, ClassVar

import dataframely as dy
import polars as pl

__all__ = ["OrdersSchema", "error_orders", "valid_orders", "warn_orders"]


def _is_upper(code: pl.Expr) -> pl.Expr:
    return code == code.str.to_uppercase()


class OrdersSchema(dy.Schema):
    """Orders of a web shop, one row an order."""

    order_id = dy.String(
        primary_key=True, regex=r"^ORD-\d{4}$", description="The number printed on the invoice."
    )
    customer_id = dy.Int64(min=1)
    email = dy.String(
        nullable=True,
        regex=r"^[^@\s]+@[^@\s]+$",
        metadata={"dagster_dataframely": {"severity": "warn"}, "pii": "email"},
    )
    status = dy.Enum(["open", "paid", "shipped", "cancelled"])
    amount = dy.Float64(min=0.0, description="Gross, in the currency of the order.")
    tax = dy.Decimal(12, 2, min=Decimal(0), nullable=True)
    currency = dy.String(min_length=3, max_length=3)
    items = dy.List(dy.String(min_length=1), min_length=1)
    shipping = dy.Struct({"city": dy.String(), "zip": dy.String(min_length=4)}, nullable=True)
    is_gift = dy.Bool()
    ordered_at = dy.Datetime(time_zone="UTC", min=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    shipped_on = dy.Date(nullable=True)
    tracking_code = dy.String(nullable=True, max_length=40, check={"is_upper": _is_upper})

    __dagster_dataframely__: ClassVar = {"severity": {"amount_has_whole_cents": "warn"}}

    @dy.rule()
    def amount_has_whole_cents(cls) -> pl.Expr:
        """An amount has at most two decimals."""
        return (cls.amount.col * 100).round() == cls.amount.col * 100

    @dy.rule()
    def shipped_orders_have_a_date(cls) -> pl.Expr:
        """An order that is shipped says when."""
        return (cls.status.col != "shipped") | cls.shipped_on.col.is_not_null()


def valid_orders() -> dy.DataFrame[OrdersSchema]:
    """Return four orders, each of which passes every rule: 4 rows x 13 columns."""
    first = {
        "order_id": "ORD-0001",
        "customer_id": 7,
        "email": "ada@example.org",
        "status": "paid",
        "amount": 19.5,
        "tax": Decimal("3.10"),
        "currency": "EUR",
        "items": ["mug"],
        "shipping": None,
        "is_gift": False,
        "ordered_at": dt.datetime(2026, 1, 5, 9, 30, tzinfo=dt.UTC),
        "shipped_on": None,
        "tracking_code": None,
    }
    rows: list[dict[str, Any]] = [
        first,
        {**first, "order_id": "ORD-0002", "customer_id": 8, "email": None, "status": "open"},
        {
            **first,
            "order_id": "ORD-0003",
            "status": "shipped",
            "items": ["mug", "pen"],
            "shipping": {"city": "Porto", "zip": "4000"},
            "shipped_on": dt.date(2026, 1, 7),
            "tracking_code": "PT-77",
        },
        {**first, "order_id": "ORD-0004", "amount": 0.0, "is_gift": True, "status": "cancelled"},
    ]
    return OrdersSchema.validate(pl.DataFrame(rows, schema=OrdersSchema.create_empty().schema))


def warn_orders() -> pl.DataFrame:
    """Return the valid orders, the first of which now fails two `warn` rules: 4 rows x 13 columns."""
    return _with_values(valid_orders(), 0, email="not an address", amount=19.999)


def error_orders() -> pl.DataFrame:
    """Return the orders of `warn_orders`, two of which now fail `error` rules: 4 rows x 13 columns."""
    negative = _with_values(warn_orders(), 1, amount=-1.0)
    return _with_values(negative, 2, shipped_on=None, tracking_code="pt-77")


def _with_values(frame: pl.DataFrame, row: int, **values: Any) -> pl.DataFrame:
    is_row = pl.int_range(pl.len()) == row
    return frame.with_columns(
        pl.when(is_row)
        .then(pl.lit(value, dtype=frame.schema[column]))
        .otherwise(column)
        .alias(column)
        for column, value in values.items()
    )
