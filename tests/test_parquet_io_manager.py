"""`ParquetIOManager`: how tables are laid out, read, and written so that a crash leaves the old one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from storage_cases import PARTITIONINGS, polars_parquet
from upath import UPath

from dagster_dataframely import parquet_io_manager
from dagster_dataframely.core.verdict.staged import StagedParquet, StagingPlace
from dagster_dataframely.errors import InvalidReturnError, InvalidSettingError
from dagster_dataframely.parquet_io_manager import (
    COMPRESSIONS,
    ParquetFileIOManager,
    ParquetIOManager,
)

FRAME = pl.DataFrame({"order_id": [1, 2, 3], "amount": [10.0, None, 2.5]})
OLD = pl.DataFrame({"order_id": [0], "amount": [0.0]})


def file_io_manager(directory: Path | str, **arguments: Any) -> ParquetFileIOManager:
    config = ParquetIOManager(base_dir=str(directory), **arguments)
    return config.create_io_manager(dg.build_init_resource_context())


def write(directory: Path | str, value: Any, *, key: str = "orders", **arguments: Any) -> Any:
    """Store one value as one asset, and return the metadata that was logged."""
    context = dg.build_output_context(asset_key=dg.AssetKey(key.split("/")), **arguments)
    io_manager = directory if isinstance(directory, dg.IOManager) else file_io_manager(directory)
    io_manager.handle_output(context, value)
    return {name: entry.value for name, entry in context.get_logged_metadata().items()}


def read(
    directory: Path | str, annotation: Any = pl.DataFrame, *, key: str = "orders", **arguments: Any
) -> Any:
    """Load one asset into an input of one annotation, in a step of its own."""
    loaded: list[Any] = []

    def function(table):  # type: ignore[no-untyped-def]
        loaded.append(table)

    function.__annotations__ = {} if annotation is None else {"table": annotation}
    asset_key = dg.AssetKey(key.split("/"))
    asset_in = dg.AssetIn(asset_key, **arguments.pop("asset_in", {}))
    reading = dg.asset(
        name="reading",
        ins={"table": asset_in},
        partitions_def=arguments.pop("partitions_def", None),
        io_manager_key="elsewhere",
    )(function)
    source = dg.AssetSpec(asset_key, partitions_def=arguments.pop("source_partitions_def", None))
    dg.materialize(
        [reading, source],
        selection=[reading],
        resources={
            "io_manager": ParquetIOManager(base_dir=str(directory)),
            "elsewhere": dg.InMemoryIOManager(),
        },
        **arguments,
    )
    return loaded[0]


def stored(directory: Path) -> pl.DataFrame:
    """Read the file of the asset without the IO manager."""
    return pl.read_parquet(directory / "orders.parquet")


def files(directory: Path) -> list[str]:
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()
    )


# --- where ------------------------------------------------------------------------------------------


def test_the_key_of_an_asset_is_its_path(tmp_path: Path) -> None:
    write(tmp_path, FRAME, key="sales/eu/orders")

    assert files(tmp_path) == ["sales/eu/orders.parquet"]
    assert_frame_equal(read(tmp_path, key="sales/eu/orders"), FRAME)


@pytest.mark.parametrize(
    ("partitioning", "expected"),
    [
        ("daily", "orders/2026-01-01.parquet"),
        ("static", "orders/eu.parquet"),
        ("multi", "orders/2026-01-01/eu.parquet"),
    ],
)
def test_a_partition_is_a_file_in_the_directory_of_its_asset(
    partitioning: str, expected: str, tmp_path: Path
) -> None:
    how = PARTITIONINGS[partitioning]
    key, _ = how.keys

    write(tmp_path, FRAME, partition_key=key, asset_partitions_def=how.definition)

    assert files(tmp_path) == [expected]
    again = read(
        tmp_path,
        partitions_def=how.definition,
        source_partitions_def=how.definition,
        partition_key=key,
    )
    assert_frame_equal(again, FRAME)


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        ("../../elsewhere", "orders/%2E%2E/%2E%2E/elsewhere.parquet"),
        ("/etc/orders", "orders/%2Fetc/orders.parquet"),
        ("eu=1", "orders/eu=1.parquet"),
        ("*", "orders/*.parquet"),
        ("[a-z]?", "orders/[a-z]?.parquet"),
        ("100%", "orders/100%.parquet"),
        ("a b", "orders/a b.parquet"),
        ("x" * 240, f"orders/{'x' * 240}.parquet"),
    ],
)
@pytest.mark.parametrize("frame", [FRAME, FRAME.lazy()], ids=["eager", "lazy"])
def test_a_partition_key_is_a_name_and_never_a_path_or_a_pattern(
    frame: pl.DataFrame | pl.LazyFrame, partition: str, expected: str, tmp_path: Path
) -> None:
    partitions = dg.StaticPartitionsDefinition([partition, "another"])
    how = {"partition_key": partition, "asset_partitions_def": partitions}
    another = {"partition_key": "another", "asset_partitions_def": partitions}

    write(tmp_path, OLD, **another)
    write(tmp_path, frame, **how)

    assert files(tmp_path) == sorted([expected, "orders/another.parquet"])
    again = read(
        tmp_path,
        partitions_def=partitions,
        source_partitions_def=partitions,
        partition_key=partition,
    )
    assert_frame_equal(again, FRAME)


def test_without_a_directory_tables_go_where_dagster_stores_its_own(tmp_path: Path) -> None:
    @dg.asset
    def orders() -> pl.DataFrame:
        return FRAME

    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        result = dg.materialize(
            [orders], instance=instance, resources={"io_manager": ParquetIOManager()}
        )
        assert result.success
        assert (Path(instance.storage_directory()) / "orders.parquet").exists()


# --- reading ----------------------------------------------------------------------------------------


class OrdersSchema(dy.Schema):
    order_id = dy.Int64(primary_key=True)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, pl.DataFrame),
        (Any, pl.DataFrame),
        (pl.DataFrame, pl.DataFrame),
        (pl.LazyFrame, pl.LazyFrame),
        (pl.DataFrame | None, pl.DataFrame),
        (pl.LazyFrame | None, pl.LazyFrame),
    ],
)
@pytest.mark.parametrize("written", [FRAME, FRAME.lazy()], ids=["eager", "lazy"])
def test_the_annotation_of_an_input_decides_how_the_table_is_read(
    written: pl.DataFrame | pl.LazyFrame, annotation: Any, expected: type, tmp_path: Path
) -> None:
    write(tmp_path, written)

    frame = read(tmp_path, annotation)

    assert type(frame) is expected
    assert_frame_equal(frame.lazy().collect(), FRAME)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (dy.DataFrame[OrdersSchema], pl.DataFrame),
        (dy.LazyFrame[OrdersSchema], pl.LazyFrame),
        (dy.LazyFrame[OrdersSchema] | None, pl.LazyFrame),
    ],
)
def test_an_annotation_that_names_a_schema_is_read_as_its_kind_of_frame(
    annotation: Any, expected: type, tmp_path: Path
) -> None:
    write(tmp_path, FRAME)
    # Dagster refuses the annotation itself; as the type behind a Dagster type it is allowed.
    dagster_type = dg.DagsterType(lambda _, value: True, name="Orders", typing_type=annotation)

    frame = read(tmp_path, Any, asset_in={"dagster_type": dagster_type})

    assert type(frame) is expected


DAYS = dg.DailyPartitionsDefinition(start_date="2026-01-01", end_date="2026-01-04")


@pytest.fixture
def three_days(tmp_path: Path) -> Path:
    """A table of which two of three days are there, the later one first written."""
    for day, order_id in [("2026-01-02", 2), ("2026-01-01", 1)]:
        write(
            tmp_path,
            pl.DataFrame({"order_id": [order_id]}),
            partition_key=day,
            asset_partitions_def=DAYS,
        )
    return tmp_path


def all_days(directory: Path, annotation: Any, *, first: str, last: str, **asset_in: Any) -> Any:
    """Read a range of days into an asset that is not partitioned."""
    mapping = dg.SpecificPartitionsPartitionMapping(
        [day for day in DAYS.get_partition_keys() if first <= day <= last]
    )
    return read(
        directory,
        annotation,
        source_partitions_def=DAYS,
        asset_in={"partition_mapping": mapping, **asset_in},
    )


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, pl.DataFrame),
        (pl.DataFrame, pl.DataFrame),
        (pl.LazyFrame, pl.LazyFrame),
        (pl.DataFrame | None, pl.DataFrame),
    ],
)
def test_several_partitions_in_one_frame_are_all_their_rows_in_partition_order(
    annotation: Any, expected: type, three_days: Path
) -> None:
    frame = all_days(three_days, annotation, first="2026-01-01", last="2026-01-02")

    assert type(frame) is expected
    assert frame.lazy().collect()["order_id"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (dict[str, pl.DataFrame], pl.DataFrame),
        (dict[str, pl.LazyFrame], pl.LazyFrame),
        (Mapping[str, pl.LazyFrame], pl.LazyFrame),
        (dict, pl.DataFrame),
    ],
)
@pytest.mark.parametrize("last", ["2026-01-01", "2026-01-02"])
def test_a_dict_has_a_frame_a_partition_even_for_one_partition(
    last: str, annotation: Any, expected: type, three_days: Path
) -> None:
    frames = all_days(three_days, annotation, first="2026-01-01", last=last)

    assert {type(frame) for frame in frames.values()} == {expected}
    rows = {day: frame.lazy().collect()["order_id"].to_list() for day, frame in frames.items()}
    assert rows == {
        day: [order_id] for day, order_id in [("2026-01-01", 1), ("2026-01-02", 2)] if day <= last
    }


def test_partitions_with_different_columns_are_no_single_frame(tmp_path: Path) -> None:
    for day, frame in [("2026-01-01", FRAME), ("2026-01-02", FRAME.with_columns(note=pl.lit("")))]:
        write(tmp_path, frame, partition_key=day, asset_partitions_def=DAYS)

    with pytest.raises(pl.exceptions.SchemaError) as raised:
        all_days(tmp_path, pl.LazyFrame, first="2026-01-01", last="2026-01-02")
    apart = all_days(tmp_path, dict[str, pl.DataFrame], first="2026-01-01", last="2026-01-02")

    assert str(raised.value) == (
        "Partitions '2026-01-01' and '2026-01-02' of asset 'orders' cannot be one frame: one has "
        "'order_id' (Int64), 'amount' (Float64), the other 'order_id' (Int64), 'amount' (Float64), "
        "'note' (String). Annotate the input with `dict[str, pl.DataFrame]` to get a frame a partition."
    )
    assert [frame.width for frame in apart.values()] == [2, 3]


@pytest.mark.parametrize("annotation", [pl.DataFrame, pl.LazyFrame])
def test_a_table_that_was_never_written_is_named_with_its_path(
    annotation: Any, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        read(tmp_path, annotation, key="sales/orders")

    assert str(raised.value) == (
        f"ParquetIOManager finds no file of asset 'sales/orders' at {tmp_path}/sales/orders.parquet. "
        "Materialize it first, or annotate the input with `| None` to get None in its place."
    )


@pytest.mark.parametrize("annotation", [pl.DataFrame | None, pl.LazyFrame | None])
def test_a_table_that_was_never_written_is_none_where_the_input_may_be_none(
    annotation: Any, tmp_path: Path
) -> None:
    assert read(tmp_path, annotation) is None


def test_a_missing_partition_is_an_error_unless_the_input_allows_it(three_days: Path) -> None:
    allowed = {"metadata": {"allow_missing_partitions": True}}

    with pytest.raises(FileNotFoundError, match=r"orders/2026-01-03\.parquet"):
        all_days(three_days, pl.DataFrame, first="2026-01-01", last="2026-01-03")
    rows = all_days(three_days, pl.DataFrame, first="2026-01-01", last="2026-01-03", **allowed)
    frames = all_days(
        three_days, dict[str, pl.DataFrame], first="2026-01-02", last="2026-01-03", **allowed
    )
    none = all_days(
        three_days, dict[str, pl.DataFrame], first="2026-01-03", last="2026-01-03", **allowed
    )

    assert rows["order_id"].to_list() == [1, 2]
    assert list(frames) == ["2026-01-02"]
    assert none == {}


# --- writing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [FRAME, FRAME.lazy()], ids=["eager", "lazy"])
def test_a_write_logs_its_path_size_and_number_of_rows(
    frame: pl.DataFrame | pl.LazyFrame, tmp_path: Path
) -> None:
    metadata = write(tmp_path, frame)

    path = tmp_path / "orders.parquet"
    assert metadata == {
        "path": str(path),
        "size_bytes": path.stat().st_size,
        "dagster/row_count": 3,
    }


def test_the_number_of_rows_of_a_partition_is_not_that_of_the_table(tmp_path: Path) -> None:
    metadata = write(tmp_path, FRAME, partition_key="2026-01-01", asset_partitions_def=DAYS)

    assert metadata["dagster/partition_row_count"] == 3
    assert "dagster/row_count" not in metadata


def test_a_lazy_frame_is_never_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = FRAME.lazy().filter(pl.col("order_id") > 1)

    def refuse(self: pl.LazyFrame, *args: Any, **kwargs: Any) -> None:
        raise AssertionError("collected")

    monkeypatch.setattr(parquet_io_manager, "_row_count", lambda frame, path: None)
    with monkeypatch.context() as patched:
        patched.setattr(pl.LazyFrame, "collect", refuse)
        write(tmp_path, frame)

    assert stored(tmp_path)["order_id"].to_list() == [2, 3]


def test_none_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, OLD)

    metadata = write(tmp_path, None)

    assert metadata == {}
    assert_frame_equal(stored(tmp_path), OLD)


@pytest.mark.parametrize(
    ("value", "named"),
    [(1, "int"), ([FRAME], "list"), (FRAME["amount"], "polars.series.series.Series")],
)
def test_anything_but_a_frame_is_refused_and_leaves_the_table_as_it_was(
    value: object, named: str, tmp_path: Path
) -> None:
    write(tmp_path, OLD)

    with pytest.raises(InvalidReturnError) as raised:
        write(tmp_path, value)

    assert str(raised.value) == (
        f"ParquetIOManager stores a Polars DataFrame or LazyFrame, and asset 'orders' is a {named}. "
        "Return a frame, or set `io_manager_key` to an IO manager that stores other values."
    )
    assert files(tmp_path) == ["orders.parquet"]
    assert_frame_equal(stored(tmp_path), OLD)


def test_the_output_of_an_op_is_stored_by_run_and_step(tmp_path: Path) -> None:
    @dg.op
    def orders() -> pl.DataFrame:
        return FRAME

    @dg.op
    def count(frame: pl.LazyFrame) -> int:
        return frame.collect().height

    @dg.job(resource_defs={"io_manager": ParquetIOManager(base_dir=str(tmp_path))})
    def pipeline() -> None:
        orders()

    result = pipeline.execute_in_process()

    assert files(tmp_path) == [f"{result.run_id}/orders/result.parquet"]


def test_an_asset_can_read_its_own_table_lazily_while_it_writes_the_next(tmp_path: Path) -> None:
    io_manager = file_io_manager(tmp_path)
    write(io_manager, pl.DataFrame({"order_id": range(1000)}))
    path = tmp_path / "orders.parquet"

    write(io_manager, pl.scan_parquet(path).with_columns(pl.col("order_id") + 1))

    assert stored(tmp_path)["order_id"].sum() == sum(range(1, 1001))


# --- compression ------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("frame", [FRAME, FRAME.lazy()], ids=["eager", "lazy"])
def test_every_compression_of_polars_can_be_chosen(
    frame: pl.DataFrame | pl.LazyFrame, compression: str, tmp_path: Path
) -> None:
    write(file_io_manager(tmp_path, compression=compression), frame)

    assert_frame_equal(stored(tmp_path), FRAME)


def test_the_compression_is_used_for_both_kinds_of_frame(tmp_path: Path) -> None:
    frame = pl.DataFrame({"note": ["the same text"] * 10_000 + [str(n) for n in range(10_000)]})

    sizes = {
        (compression, kind): write(
            file_io_manager(tmp_path, compression=compression), value, key=f"{compression}/{kind}"
        )["size_bytes"]
        for compression in ("uncompressed", "zstd")
        for kind, value in [("eager", frame), ("lazy", frame.lazy())]
    }

    assert sizes["zstd", "eager"] < 0.7 * sizes["uncompressed", "eager"]
    assert sizes["zstd", "lazy"] < 0.7 * sizes["uncompressed", "lazy"]


@pytest.mark.parametrize(
    ("value", "hint"),
    [("ZSTD", " Did you mean 'zstd'?"), ("snapy", " Did you mean 'snappy'?"), ("7z", "")],
)
def test_an_unknown_compression_is_refused_with_the_names_of_all(value: str, hint: str) -> None:
    with pytest.raises(InvalidSettingError) as raised:
        ParquetIOManager(compression=value)

    assert str(raised.value) == (
        f"The `compression` of ParquetIOManager is '{value}'. Allowed are 'lz4', 'uncompressed', "
        f"'snappy', 'gzip', 'brotli', 'zstd'.{hint}"
    )


@pytest.mark.parametrize("in_environment", ["zstd", "7z"])
def test_a_compression_from_the_environment_is_checked_when_a_run_starts(
    in_environment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPRESSION_OF_THE_TEST", in_environment)
    io_manager = ParquetIOManager(
        base_dir=str(tmp_path), compression=dg.EnvVar("COMPRESSION_OF_THE_TEST")
    )

    @dg.asset
    def orders() -> pl.DataFrame:
        return FRAME

    result = dg.materialize([orders], resources={"io_manager": io_manager}, raise_on_error=False)

    assert result.success is (in_environment == "zstd")


# --- crashes ----------------------------------------------------------------------------------------


def test_a_query_that_fails_half_way_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, OLD)

    def fail_late(batch: pl.DataFrame) -> pl.DataFrame:
        if batch["order_id"].max() == 2999:
            raise ValueError("broken row")
        return batch

    frame = pl.concat(
        pl.LazyFrame({"order_id": range(start, start + 1000)}).map_batches(fail_late)
        for start in (0, 1000, 2000)
    )

    with pytest.raises(Exception, match="broken row"):
        write(tmp_path, frame)

    assert files(tmp_path) == ["orders.parquet"]
    assert_frame_equal(stored(tmp_path), OLD)


def test_a_write_that_fails_leaves_the_table_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, OLD)

    def half(self: pl.DataFrame, file: Path, **arguments: Any) -> None:
        Path(file).write_bytes(b"PAR1 and no more")
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pl.DataFrame, "write_parquet", half)
        with pytest.raises(OSError, match="no space left"):
            write(tmp_path, FRAME)

    assert files(tmp_path) == ["orders.parquet"]
    assert_frame_equal(stored(tmp_path), OLD)


ENDLESS_WRITE = """
    import sys, time
    import dagster as dg
    import polars as pl
    from dagster_dataframely.parquet_io_manager import ParquetIOManager

    def slowly(batch):
        time.sleep(0.05)
        return batch

    frame = pl.concat(
        pl.LazyFrame({"order_id": range(100_000)}).map_batches(slowly) for _ in range(500)
    )
    io_manager = ParquetIOManager(base_dir=sys.argv[1])
    io_manager = io_manager.create_io_manager(dg.build_init_resource_context())
    io_manager.handle_output(dg.build_output_context(asset_key="orders"), frame)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_process_that_is_killed_while_it_writes_leaves_the_table_as_it_was(
    tmp_path: Path,
) -> None:
    write(tmp_path, OLD)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = textwrap.dedent(ENDLESS_WRITE)

    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=environment) as process:
        try:
            # The first four bytes are the file's mark; rows come after them.
            while not any(path.stat().st_size > 4 for path in tmp_path.glob(".*.tmp")):
                assert process.poll() is None
                time.sleep(0.05)
        finally:
            process.send_signal(signal.SIGKILL)

    assert process.returncode == -signal.SIGKILL
    (unfinished,) = (name for name in files(tmp_path) if name.endswith(".tmp"))
    assert_frame_equal(stored(tmp_path), OLD)
    # What it left behind is no table, and disturbs no later write.
    write(tmp_path, FRAME)
    assert_frame_equal(stored(tmp_path), FRAME)
    assert files(tmp_path) == [unfinished, "orders.parquet"]


# --- staged files -----------------------------------------------------------------------------------


@pytest.fixture
def staged(tmp_path: Path) -> StagedParquet:
    path = tmp_path / "staging" / "run.parquet"
    path.parent.mkdir()
    FRAME.write_parquet(path)
    return StagedParquet(path)


def test_a_staged_file_becomes_the_table_by_a_rename(tmp_path: Path, staged: StagedParquet) -> None:
    inode = staged.path.stat().st_ino

    metadata = write(tmp_path / "tables", staged.scan())

    assert (tmp_path / "tables" / "orders.parquet").stat().st_ino == inode
    assert not staged.path.exists()
    assert metadata["dagster/row_count"] == 3
    assert_frame_equal(stored(tmp_path / "tables"), FRAME)


def test_a_staged_file_on_another_file_system_is_copied(
    tmp_path: Path, staged: StagedParquet, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A second file system cannot be had in a test; what the system call says of one can.
    replace = Path.replace

    def other_file_system(self: Path, target: Path) -> Path:
        if self == staged.path:
            raise OSError(18, "Invalid cross-device link")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", other_file_system)
    write(tmp_path / "tables", staged.scan())

    assert staged.path.exists()
    assert files(tmp_path / "tables") == ["orders.parquet"]
    assert_frame_equal(stored(tmp_path / "tables"), FRAME)


def test_what_is_derived_from_a_staged_file_is_written_and_leaves_the_file(
    tmp_path: Path, staged: StagedParquet
) -> None:
    write(tmp_path / "tables", staged.scan().filter(pl.col("order_id") > 1))

    assert staged.path.exists()
    assert stored(tmp_path / "tables")["order_id"].to_list() == [2, 3]


def test_the_directory_of_the_tables_says_where_a_rename_is_possible(tmp_path: Path) -> None:
    assert file_io_manager(tmp_path).staging_place() == StagingPlace(tmp_path, "zstd")
    assert file_io_manager("memory://tables").staging_place() == StagingPlace(None, "zstd")


# --- other file systems -----------------------------------------------------------------------------


@pytest.fixture
def memory() -> Iterator[str]:
    """A directory on the file system that `fsspec` keeps in memory."""
    directory = UPath("memory://parquet-io-manager")
    yield str(directory)
    if directory.exists():
        directory.fs.rm(directory.path, recursive=True)


def names(directory: str) -> list[str]:
    return sorted(path.name for path in UPath(directory).rglob("*") if path.is_file())


@pytest.mark.parametrize("frame", [FRAME, FRAME.lazy()], ids=["eager", "lazy"])
@pytest.mark.parametrize("annotation", [pl.DataFrame, pl.LazyFrame])
def test_a_table_can_be_kept_where_universal_pathlib_reaches(
    annotation: Any, frame: pl.DataFrame | pl.LazyFrame, memory: str
) -> None:
    write(memory, OLD, key="sales/orders")

    metadata = write(memory, frame, key="sales/orders")

    assert metadata["path"] == f"{memory}/sales/orders.parquet"
    assert metadata["size_bytes"] > 0
    assert names(memory) == ["orders.parquet"]
    assert_frame_equal(read(memory, annotation, key="sales/orders").lazy().collect(), FRAME)


def test_a_partition_can_be_kept_there_too(memory: str) -> None:
    for day, order_id in [("2026-01-01", 1), ("2026-01-02", 2)]:
        frame = pl.DataFrame({"order_id": [order_id]})
        write(memory, frame, partition_key=day, asset_partitions_def=DAYS)

    rows = all_days(memory, pl.LazyFrame, first="2026-01-01", last="2026-01-02")  # type: ignore[arg-type]

    assert rows.collect()["order_id"].to_list() == [1, 2]


def test_credentials_may_come_from_the_environment(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[dict[str, Any]] = []

    def connect(path: str, **given: Any) -> UPath:
        options.append(given)
        return UPath(path, **given)

    monkeypatch.setenv("KEY_OF_THE_TEST", "a key")
    monkeypatch.setattr(parquet_io_manager, "UPath", connect)
    io_manager = ParquetIOManager(
        base_dir=memory,
        storage_options={"client": {"key": dg.EnvVar("KEY_OF_THE_TEST")}, "retries": 2},
    )

    @dg.asset
    def orders() -> pl.DataFrame:
        return FRAME

    result = dg.materialize([orders], resources={"io_manager": io_manager})

    assert result.success
    assert options == [{"client": {"key": "a key"}, "retries": 2}]


def test_a_credential_that_is_not_in_the_environment_is_named(memory: str) -> None:
    io_manager = ParquetIOManager(
        base_dir=memory, storage_options={"key": dg.EnvVar("NOT_SET_IN_THE_TEST")}
    )

    @dg.asset
    def orders() -> pl.DataFrame:
        return FRAME

    with pytest.raises(dg.DagsterResourceFunctionError) as raised:
        dg.materialize([orders], resources={"io_manager": io_manager})

    assert str(raised.value.__cause__) == (
        "The `storage_options` of ParquetIOManager take 'key' from the environment variable "
        "NOT_SET_IN_THE_TEST, which is not set."
    )


def test_a_write_that_fails_there_leaves_the_table_as_it_was(memory: str) -> None:
    write(memory, OLD)

    def fail(batch: pl.DataFrame) -> pl.DataFrame:
        raise ValueError("broken row")

    with pytest.raises(Exception, match="broken row"):
        write(memory, FRAME.lazy().map_batches(fail))

    assert names(memory) == ["orders.parquet"]
    assert_frame_equal(read(memory), OLD)


def test_a_staged_file_is_copied_there(memory: str, staged: StagedParquet) -> None:
    write(memory, staged.scan())

    assert staged.path.exists()
    assert_frame_equal(read(memory), FRAME)


def test_a_table_that_was_never_written_there_is_named_with_its_path(memory: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"at memory:.*parquet-io-manager/orders\.parquet"):
        read(memory, pl.LazyFrame)


# --- dagster-polars ---------------------------------------------------------------------------------


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_tables_that_dagster_polars_wrote_are_read(partitioning: str, tmp_path: Path) -> None:
    how = PARTITIONINGS[partitioning]
    key, _ = how.keys

    @dg.asset(key=["sales", "orders"], partitions_def=how.definition)
    def orders() -> pl.DataFrame:
        return FRAME

    instance = dg.DagsterInstance.ephemeral()
    if partitioning == "dynamic":
        instance.add_dynamic_partitions("region", ["eu"])
    dg.materialize(
        [orders],
        partition_key=key,
        instance=instance,
        resources={"io_manager": polars_parquet(tmp_path)},
    )
    again = read(
        tmp_path,
        pl.LazyFrame,
        key="sales/orders",
        partitions_def=how.definition,
        source_partitions_def=how.definition,
        partition_key=key,
        instance=instance,
    )

    assert_frame_equal(again.collect(), FRAME)
