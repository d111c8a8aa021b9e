"""`code_version` is a fingerprint of the schema: what changes a verdict changes it, words do not."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd


def version_of(schema: type[dy.Schema], **arguments: Any) -> str | None:
    @dd.asset(schema, **arguments)
    def orders() -> None: ...

    return orders.get_asset_spec().code_version


def schema_of(
    amount: dy.Column | None = None, rule: Any = None, **attributes: Any
) -> type[dy.Schema]:
    columns: dict[str, Any] = {
        "order_id": dy.Int64(primary_key=True),
        "amount": amount or dy.Float64(min=0.0),
    }
    rules = {"is_rounded": dy.rule()(rule)} if rule else {}
    return type("OrdersSchema", (dy.Schema,), {**columns, **rules, **attributes})


def whole_cents(cls: Any) -> pl.Expr:
    """Whole cents."""
    return cls.amount.col.round(2) == cls.amount.col


def tenths(cls: Any) -> pl.Expr:
    """Whole cents."""
    return cls.amount.col.round(1) == cls.amount.col


def whole_cents_in_other_words(cls: Any) -> pl.Expr:
    """An amount has at most two decimals."""
    return cls.amount.col.round(2) == cls.amount.col


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (schema_of(), schema_of(dy.Float64(min=1.0))),
        (schema_of(), schema_of(dy.Float32(min=0.0))),
        (schema_of(), schema_of(dy.Float64(min=0.0, nullable=True))),
        (schema_of(), schema_of(dy.Float64(min=0.0, max=9.0))),
        (schema_of(), schema_of(tax=dy.Float64())),
        (schema_of(), schema_of(rule=whole_cents)),
        (schema_of(rule=whole_cents), schema_of(rule=tenths)),
        (
            schema_of(),
            schema_of(dy.Float64(min=0.0, metadata={"dagster_dataframely": {"severity": "warn"}})),
        ),
        (schema_of(), schema_of(__dagster_dataframely__={"severity": {"primary_key": "warn"}})),
        (
            schema_of(dy.Float64(check=lambda c: c.map_elements(lambda x: x > 1, pl.Boolean))),
            schema_of(dy.Float64(check=lambda c: c.map_elements(lambda x: x > 2, pl.Boolean))),
        ),
    ],
    ids=[
        "a bound",
        "a dtype",
        "nullability",
        "one more rule of a column",
        "one more column",
        "one more schema rule",
        "an argument inside a rule",
        "a severity of a column",
        "a severity of the schema",
        "a Python function inside a check",
    ],
)
def test_what_changes_a_verdict_changes_the_version(
    before: type[dy.Schema], after: type[dy.Schema]
) -> None:
    assert version_of(before) != version_of(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (schema_of(), schema_of()),
        (schema_of(), schema_of(dy.Float64(min=0.0, description="Gross."))),
        (schema_of(), schema_of(dy.Float64(min=0.0, metadata={"unit": "EUR"}))),
        (schema_of(), schema_of(__doc__="Orders.")),
        (schema_of(rule=whole_cents), schema_of(rule=whole_cents_in_other_words)),
    ],
    ids=["nothing", "a description", "a tag", "the docstring", "a rule's docstring"],
)
def test_words_do_not_change_the_version(before: type[dy.Schema], after: type[dy.Schema]) -> None:
    assert version_of(before) == version_of(after)


def test_an_explicit_version_wins() -> None:
    assert version_of(schema_of(), code_version="7") == "7"


SCRIPT = textwrap.dedent(
    """
    import datetime as dt
    import dataframely as dy
    import polars as pl
    import dagster_dataframely as dd
    from dagster_dataframely.data import OrdersSchema

    class WideSchema(OrdersSchema):
        category = dy.Categorical()
        at = dy.Time(resolution="1m")
        took = dy.Duration(min=dt.timedelta(hours=1))
        payload = dy.Binary()
        ratio = dy.Float32(allow_nan=True, max_exclusive=1.0)
        kind = dy.String(unique=True)
        code = dy.Int16(is_in=[1, 2, 3])
        shape = dy.Array(dy.Int8(), 3)
        checked = dy.Int32(check={"even": lambda c: c.map_elements(lambda x: x % 2 == 0, pl.Boolean)})

        @dy.rule()
        def sums_up(cls):
            return cls.amount.col.rolling_mean(3).over("customer_id") > cls.ratio.col.round(2)

    @dd.asset(WideSchema)
    def orders(): ...

    print("version:", orders.get_asset_spec().code_version)
    """
)


def _version_in(python: str, folder: Path, script: str = SCRIPT) -> str:
    file = folder / "version.py"
    file.write_text(script)
    done = subprocess.run(
        [python, "-W", "ignore", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return next(line for line in done.stdout.splitlines() if line.startswith("version:"))


def test_the_version_is_the_same_in_every_process(tmp_path: Path) -> None:
    assert _version_in(sys.executable, tmp_path) == _version_in(sys.executable, tmp_path)


def test_the_version_is_the_one_that_every_supported_environment_computes(tmp_path: Path) -> None:
    """The constant is what each environment of `make test-matrix` computes, so that all agree."""
    assert _version_in(sys.executable, tmp_path) == "version: c80c1f75752a4404"
