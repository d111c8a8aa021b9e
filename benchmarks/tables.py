"""The tables that are validated: their schemas, their rows, and how many rows fail on purpose."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import dataframely as dy
import polars as pl


class OrderSchema(dy.Schema):
    """Eight columns and twenty rules, without a key."""

    order_id = dy.String(nullable=False, regex=r"^ORD-\d{10}$")
    customer_id = dy.Int64(nullable=False, min=1)
    amount = dy.Float64(nullable=False, min=0.0, allow_inf=False, allow_nan=False)
    tax = dy.Float64(nullable=False, min=0.0, allow_inf=False, allow_nan=False)
    quantity = dy.Int32(nullable=False, min=0, max=100)
    ordered_on = dy.Date(nullable=False, min=date(2020, 1, 1))
    currency = dy.String(nullable=False, regex=r"^(EUR|USD|GBP)$")
    is_gift = dy.Bool(nullable=True)

    @dy.rule()
    def tax_at_most_amount(cls) -> pl.Expr:
        """Ask for no more tax than the amount."""
        return cls.tax.col <= cls.amount.col


class KeyedOrderSchema(OrderSchema):
    """The same with a String primary key: twenty-one rules."""

    order_id = dy.String(primary_key=True, regex=r"^ORD-\d{10}$")


WideSchema: type[dy.Schema] = type(
    "WideSchema",
    (dy.Schema,),
    {
        "__doc__": "Two hundred columns with three rules each.",
        **{f"int_{i}": dy.Int64(nullable=False, min=0, max=1_000) for i in range(80)},
        **{
            f"text_{i}": dy.String(nullable=False, regex="^[a-z]+", max_length=9) for i in range(60)
        },
        **{
            f"float_{i}": dy.Float64(nullable=False, allow_inf=False, allow_nan=False)
            for i in range(60)
        },
    },
)


@dataclass(frozen=True)
class Table:
    """A table, in a size and with a share of error rows to be chosen."""

    schema: type[dy.Schema]
    #: Column to its valid values, made of the row number `row`; a key of `key`, which is that number too.
    columns: Mapping[str, pl.Expr]
    #: Column to a value that fails one of its rules. Error rows take turns.
    mistakes: Mapping[str, pl.Expr]
    #: The column of the primary key, where one more turn is to give it the key of another such row.
    duplicated: str | None = None
    #: Rules that compare columns.
    row_rules: Mapping[str, pl.Expr] = field(default_factory=dict)

    def plan(self, rows: int, error_ratio: float = 0.0) -> pl.LazyFrame:
        """Return a plan that makes the rows. Each error row fails one rule."""
        numbers = pl.select(row=pl.int_range(rows)).lazy()
        if not error_ratio:
            return numbers.with_columns(key=_ROW).select(**self.columns)
        every, turns = round(1 / error_ratio), self._turns()
        turn = pl.when(_ROW % every == every - 1).then(_ROW // every % len(turns))
        is_second = _ROW // every // len(turns) % 2
        duplicate = pl.when(pl.col("turn") == len(self.mistakes)).then(
            _ROW - is_second * every * len(turns)
        )
        key = duplicate.otherwise(_ROW) if self.duplicated else _ROW
        return (
            numbers.with_columns(turn=turn)
            .with_columns(key=key)
            .select(**{name: self._with_mistakes(name) for name in self.columns})
        )

    def _with_mistakes(self, name: str) -> pl.Expr:
        if name not in self.mistakes:
            return self.columns[name]
        own_turn = pl.col("turn") == list(self.mistakes).index(name)
        mistake = self.mistakes[name].cast(self.schema.columns()[name].dtype)
        return pl.when(own_turn).then(mistake).otherwise(self.columns[name])

    def _turns(self) -> list[str]:
        return [*self.mistakes, *([self.duplicated] if self.duplicated else [])]

    def frame(self, rows: int, error_ratio: float = 0.0) -> pl.DataFrame:
        """Return the rows."""
        return self.plan(rows, error_ratio).collect().rechunk()

    def failing(self, rows: int, error_ratio: float = 0.0) -> dict[str, int]:
        """Return, for each column, how many rows fail one of its rules."""
        errors = rows // round(1 / error_ratio) if error_ratio else 0
        turns = self._turns()
        counts = {name: (errors - i + len(turns) - 1) // len(turns) for i, name in enumerate(turns)}
        if self.duplicated:
            # The last one has no partner where their number is odd.
            counts[self.duplicated] -= counts[self.duplicated] % 2
        return {name: count for name, count in counts.items() if count}

    def by_column(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Add up what failed each rule: the rules of a column, and the key with its first column."""
        failed: Counter[str] = Counter()
        for rule, count in counts.items():
            column = self.schema.primary_key()[0] if rule == "primary_key" else rule.split("|")[0]
            failed[column] += count
        return dict(failed)


_ROW = pl.col("row")
_KEY = pl.col("key")
_AMOUNT = _ROW * 37 % 10_000 / 100.0

_ORDER_COLUMNS: Mapping[str, pl.Expr] = {
    # A number that is prime to the modulus visits every remainder once, in no order.
    "order_id": "ORD-" + (_KEY * 7_919 % 1_000_000_007).cast(pl.String).str.zfill(10),
    "customer_id": _ROW % 100_000 + 1,
    "amount": _AMOUNT,
    "tax": _AMOUNT * 0.19,
    "quantity": (_ROW % 7).cast(pl.Int32),
    "ordered_on": pl.lit(date(2020, 1, 1)) + pl.duration(days=_ROW % 1_500),
    "currency": pl.when(_ROW % 3 == 0).then(pl.lit("EUR")).otherwise(pl.lit("USD")),
    "is_gift": _ROW % 2 == 0,
}
_ORDER_MISTAKES = {"tax": pl.lit(-1.0), "quantity": pl.lit(101), "currency": pl.lit("XXX")}
_TAX_AT_MOST_AMOUNT = {"tax_at_most_amount": pl.col("tax") <= pl.col("amount")}

TABLES: Mapping[str, Table] = {
    "orders": Table(OrderSchema, _ORDER_COLUMNS, _ORDER_MISTAKES, row_rules=_TAX_AT_MOST_AMOUNT),
    "orders with key": Table(
        KeyedOrderSchema, _ORDER_COLUMNS, _ORDER_MISTAKES, row_rules=_TAX_AT_MOST_AMOUNT
    ),
    "orders with duplicates": Table(
        KeyedOrderSchema,
        _ORDER_COLUMNS,
        _ORDER_MISTAKES,
        duplicated="order_id",
        row_rules=_TAX_AT_MOST_AMOUNT,
    ),
    "wide": Table(
        WideSchema,
        {
            **{f"int_{i}": _ROW * (i + 1) % 1_000 for i in range(80)},
            **{f"text_{i}": "order" + (_ROW * (i + 1) % 1_000).cast(pl.String) for i in range(60)},
            **{f"float_{i}": _ROW / (i + 1) for i in range(60)},
        },
        {"int_0": pl.lit(-1), "text_0": pl.lit("1"), "float_0": pl.lit(math.inf)},
    ),
}
