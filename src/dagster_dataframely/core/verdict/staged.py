"""A table that already lies in a parquet file, on its way to where it will be kept."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import polars as pl

#: How a parquet file may be compressed.
Compression: TypeAlias = Literal["lz4", "uncompressed", "snappy", "gzip", "brotli", "zstd"]

_STAGED = "_dagster_dataframely_staged"


@dataclass(frozen=True)
class StagedParquet:
    """A finished parquet file that holds exactly the rows of a table.

    Its scan is an ordinary lazy frame to every IO manager. `ParquetIOManager` knows it again, and
    makes the file itself the table: by a rename where it can, by a copy of its bytes elsewhere.

    Attributes:
        path: The file. Once stored it may be gone, or still be there for its owner to remove.

    Examples:
        >>> import tempfile
        >>> import polars as pl
        >>> path = Path(tempfile.mkdtemp(), "orders.parquet")
        >>> pl.DataFrame({"order_id": [1, 2]}).write_parquet(path)
        >>> scan = StagedParquet(path).scan()
        >>> StagedParquet.of(scan) == StagedParquet(path)
        True
        >>> StagedParquet.of(scan.filter(pl.col("order_id") > 1)) is None
        True
    """

    path: Path

    def scan(self) -> pl.LazyFrame:
        """Return the whole file as a lazy frame that `of` knows again."""
        frame = pl.scan_parquet(self.path, glob=False, hive_partitioning=False)
        # Every method of a lazy frame returns a new one, which does not carry the mark.
        setattr(frame, _STAGED, self)
        return frame

    @staticmethod
    def of(frame: object) -> StagedParquet | None:
        """Return the staged file that a frame is the unchanged scan of, if it is one."""
        return getattr(frame, _STAGED, None)


@dataclass(frozen=True, slots=True)
class StagingPlace:
    """Where a staging file lies best for an IO manager, and how it is compressed best.

    Attributes:
        folder: A folder on the file system of the tables; None is the system's folder for temporary files.
        compression: How the tables are compressed.
    """

    folder: Path | None = None
    compression: Compression = "zstd"


@runtime_checkable
class TakesStagedFiles(Protocol):
    """An IO manager that can make a staged file the table itself, in place of reading its rows.

    It says where such a file should lie, and looks in `handle_output` whether `StagedParquet.of(frame)` is one.
    """

    def staging_place(self) -> StagingPlace:
        """Return where a staging file can become a table by a rename."""
        ...


@dataclass(frozen=True, slots=True)
class Staging:
    """A parquet file in which a plan is staged, and how that file is compressed."""

    path: Path
    compression: Compression = "zstd"


@contextmanager
def staging_file(folder: Path | None, compression: Compression = "zstd") -> Iterator[Staging]:
    """Give a staging file that is gone afterwards, however the block ends.

    Args:
        folder: Where the file is to lie; None is the system's folder for temporary files.
        compression: How the table is compressed, which a clean staging file may become.
    """
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix=".dagster-dataframely-", dir=folder))
    try:
        yield Staging(own / "returned.parquet", compression)
    finally:
        shutil.rmtree(own, ignore_errors=True)
