"""Where a streamed run stages its rows: only an IO manager that says so by the protocol is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from dagster_dataframely.core.verdict.staged import StagedParquet, StagingPlace


class OrderSchema(dy.Schema):
    order_id = dy.Int64(primary_key=True)


class Storage(dg.IOManager):
    """Keeps where the frames that it is given are read from."""

    def __init__(self) -> None:
        self.staged: list[Path | None] = []

    def handle_output(self, context: dg.OutputContext, obj: pl.LazyFrame) -> None:
        staged = StagedParquet.of(obj)
        self.staged.append(staged and staged.path)

    def load_input(self, context: dg.InputContext) -> pl.LazyFrame:
        raise NotImplementedError


class OtherStorage(Storage):
    """Has attributes of its own that happen to be called like those of this package's IO manager."""

    compression = "none that Polars knows"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.local_directory = folder


class TakingStorage(Storage):
    """Says by the protocol where a staged file should lie."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.asked = 0

    def staging_place(self) -> StagingPlace:
        self.asked += 1
        return StagingPlace(self.folder, "lz4")


def run(io_manager: dg.IOManager, **arguments: Any) -> None:
    @dd.asset(OrderSchema, stream=True, **arguments)
    def orders() -> pl.LazyFrame:
        return pl.LazyFrame({"order_id": [1, 2]})

    assert dg.materialize([orders], resources={"io_manager": io_manager}).success


def test_an_io_manager_with_attributes_of_its_own_is_not_asked_where_to_stage(
    tmp_path: Path,
) -> None:
    storage = OtherStorage(tmp_path)

    run(storage)

    [staged] = storage.staged
    assert staged is not None
    assert tmp_path not in staged.parents


def test_an_io_manager_that_takes_staged_files_is_asked_once_a_step(tmp_path: Path) -> None:
    storage = TakingStorage(tmp_path / "tables")

    run(storage, filter=True)

    error_rows, table = storage.staged
    assert error_rows is None
    assert table is not None
    assert tmp_path / "tables" in table.parents
    assert storage.asked == 1


def test_a_staging_dir_stands_over_what_the_io_manager_says(tmp_path: Path) -> None:
    storage = TakingStorage(tmp_path / "tables")

    run(storage, staging_dir=tmp_path / "staging")

    [staged] = storage.staged
    assert staged is not None
    assert tmp_path / "staging" in staged.parents


@pytest.mark.parametrize("takes", [True, False])
def test_nothing_of_the_staging_is_left(tmp_path: Path, takes: bool) -> None:
    folder = tmp_path / "staging"

    run(TakingStorage(folder)) if takes else run(Storage(), staging_dir=folder)

    assert list(folder.iterdir()) == []
