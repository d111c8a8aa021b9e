"""Error rows through every IO manager, partitioned in every way: kept, replaced and read back.

The table at the end of pytest's output says which combinations were run, and what each can do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from storage_cases import (
    ERROR_ROWS,
    IO_MANAGERS,
    ONE_PARTITION_AT_A_TIME,
    PARTITIONINGS,
    Warehouse,
    error_rows_of,
)


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize("io_manager", IO_MANAGERS)
def test_each_partition_holds_the_error_rows_of_its_latest_run(
    io_manager: str,
    partitioning: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    apart = partitioning == "not partitioned" or io_manager not in ONE_PARTITION_AT_A_TIME
    passed = "yes" if apart else "latest partition"
    record_property("io_manager_matrix", (io_manager, partitioning, passed))
    how = PARTITIONINGS[partitioning]
    warehouse = Warehouse(IO_MANAGERS[io_manager](tmp_path), how)
    first, second = how.keys

    # Two rows in the first run of a partition, a row in another one, then one of the two is repaired.
    warehouse.store(error_rows_of(first, 1, 2, partitioning=how), first)
    if second is not None:
        warehouse.store(error_rows_of(second, 3, partitioning=how), second)
    warehouse.store(error_rows_of(first, 2, partitioning=how), first)
    repaired = warehouse.load(ERROR_ROWS, first)
    other = warehouse.load(ERROR_ROWS, second) if apart and second is not None else None
    # The last row is repaired, too.
    warehouse.store(error_rows_of(first, partitioning=how), first)
    clean = warehouse.load(ERROR_ROWS, first)

    assert_same(repaired, error_rows_of(first, 2, partitioning=how))
    if other is not None:
        assert_same(other, error_rows_of(second, 3, partitioning=how))
    assert_same(clean, error_rows_of(first, partitioning=how))


@pytest.mark.parametrize(
    "io_manager",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason="it stores no empty frame"))
        if name == "dagster-duckdb-polars"
        else name
        for name in IO_MANAGERS
    ],
)
def test_a_first_run_without_error_rows_stores_an_empty_table(
    io_manager: str, tmp_path: Path
) -> None:
    how = PARTITIONINGS["not partitioned"]
    warehouse = Warehouse(IO_MANAGERS[io_manager](tmp_path), how)

    warehouse.store(error_rows_of(None, partitioning=how))

    assert_same(warehouse.load(ERROR_ROWS), error_rows_of(None, partitioning=how))


def assert_same(actual: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Compare tables as a database keeps them: neither rows nor columns have an order."""
    assert_frame_equal(actual, expected, check_row_order=False, check_column_order=False)
