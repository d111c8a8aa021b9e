"""The raw files that the project starts from."""

from pathlib import Path

import polars as pl

DATA = Path(__file__).parents[2] / "data"


def scan(table: str) -> pl.LazyFrame:
    """Scan one raw file of the `data` folder, by its name without the ending."""
    return pl.scan_parquet(DATA / f"{table}.parquet")
