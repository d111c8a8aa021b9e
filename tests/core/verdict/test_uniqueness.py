"""Uniqueness is proved by hashes first; where hashes collide, the keys themselves decide."""

from __future__ import annotations

from typing import Any

import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from dagster_dataframely.core.verdict import uniqueness

pytestmark = pytest.mark.usefixtures("either_mode")


class KeysSchema(dy.Schema):
    first = dy.String(primary_key=True)
    second = dy.Int64(primary_key=True)
    code = dy.Float64(unique=True, nullable=True, allow_nan=True)


UNIQUE = pl.DataFrame({"first": ["a", "a", "b"], "second": [1, 2, 1], "code": [1.0, 2.0, None]})
DUPLICATED = pl.DataFrame(
    {
        "first": ["a", "a", "b", "c", "a"],
        "second": [1, 2, 1, 1, 1],
        "code": [0.0, -0.0, float("nan"), float("nan"), None],
    }
)


def failed(frame: pl.DataFrame) -> dict[str, int]:
    @dd.asset(KeysSchema, filter=True)
    def keys() -> pl.DataFrame:
        return frame

    counts = {}
    for result in keys():
        if getattr(result, "check_name", "dy_schema__columns") != "dy_schema__columns":
            counts[result.metadata["dataframely/rule"].value] = result.metadata[
                "dataframely/failed_count"
            ].value
    return {rule: count for rule, count in counts.items() if count}


@pytest.fixture
def colliding_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every key the same hash."""

    def same(columns: Any) -> pl.Expr:
        return pl.col(next(iter(columns))).is_null().cast(pl.UInt64) * 0

    monkeypatch.setattr(uniqueness, "hash_of", same)


MORE = UNIQUE.with_columns(
    first=pl.lit("z"), second=pl.Series([1, 2, 3]), code=pl.Series([7.0, 8.0, 9.0])
)


def test_unique_keys_pass() -> None:
    assert failed(UNIQUE) == {}


def test_duplicates_are_found_as_dataframely_finds_them() -> None:
    frame = DUPLICATED.vstack(MORE)

    assert failed(frame) == KeysSchema.filter(frame).failure.counts()
    assert failed(frame) == {"primary_key": 2, "code|unique": 4}


@pytest.mark.usefixtures("colliding_hashes")
def test_keys_whose_hashes_all_collide_are_still_told_apart() -> None:
    assert failed(UNIQUE) == {}


@pytest.mark.usefixtures("colliding_hashes")
def test_duplicates_among_keys_whose_hashes_all_collide_are_found() -> None:
    assert failed(DUPLICATED.vstack(MORE)) == {"primary_key": 2, "code|unique": 4}


def test_a_schema_whose_only_rule_is_uniqueness_is_validated() -> None:
    class CodesSchema(dy.Schema):
        code = dy.Int64(unique=True, nullable=True)

    @dd.asset(CodesSchema, filter=True)
    def codes() -> pl.DataFrame:
        return pl.DataFrame({"code": [1, 2, 2, None]})

    error_rows, table, *_ = codes()

    assert error_rows.value["code"].to_list() == [2, 2]
    assert table.value["code"].to_list() == [1, None]
