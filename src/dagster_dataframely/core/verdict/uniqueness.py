"""Which rows have a key that another row has too.

The hashes of the keys are compared first: where all hashes differ, all keys differ, and most keys are
unique. Only keys whose hash occurs twice are compared themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import polars as pl

from dagster_dataframely.core.verdict.masks import no_rows, released, where
from dagster_dataframely.core.verdict.staged import StagedParquet

# Of a file, so many hashes are compared at a time: 8 bytes a row, and as much again to sort them.
_ROWS_A_SLICE = 10_000_000
_HASH = "dy_hash"
_HASHES = 2**64


def hash_of(columns: Iterable[str]) -> pl.Expr:
    """Return a hash of 64 bits of the key in these columns: equal keys have equal hashes."""
    names = list(columns)
    return (pl.col(names[0]) if len(names) == 1 else pl.struct(names)).hash()


def duplicate_rows(frame: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Return the numbers of the rows whose key in these columns another row has too."""
    hashes = frame.select(hash_of(columns)).to_series()
    repeated = _repeated(hashes.sort())
    if repeated.is_empty():
        return no_rows()
    suspects = hashes.is_in(repeated.implode()).arg_true()
    return _not_unique(frame.select(columns)[suspects], suspects)


def duplicate_rows_of_file(staged: StagedParquet, columns: Sequence[str], rows: int) -> pl.Series:
    """Return the numbers of the rows of a file whose key another row has too.

    The hashes are written once, beside the file, and compared some million at a time.

    Args:
        staged: The file.
        columns: The columns that form the key.
        rows: How many rows the file has.
    """
    scan = staged.scan()
    file = staged.path.with_name("hashes.parquet")
    scan.select(hash_of(columns).alias(_HASH)).sink_parquet(file, compression="uncompressed")
    hashes = pl.scan_parquet(file, glob=False)
    slices = max(1, math.ceil(rows / _ROWS_A_SLICE))
    repeated = pl.concat(_repeated(_sorted(hashes, part, slices)) for part in range(slices))
    suspects = no_rows()
    if not repeated.is_empty():
        is_suspect = (
            hashes.select(pl.col(_HASH).is_in(repeated.implode()))
            .collect(engine="streaming")
            .to_series()
        )
        suspects = is_suspect.arg_true()
    file.unlink()
    if suspects.is_empty():
        return suspects
    keys = released(where(scan.select(columns), is_suspect)).collect(engine="streaming")
    return _not_unique(keys, suspects)


def _sorted(hashes: pl.LazyFrame, part: int, slices: int) -> pl.Series:
    """Return one of so many slices of the hashes: those from one number up to another."""
    first, last = (_HASHES * number // slices for number in (part, part + 1))
    own = hashes if slices == 1 else hashes.filter(pl.col(_HASH).is_between(first, last - 1))
    return own.collect(engine="streaming").to_series().sort(in_place=True)


def _repeated(ordered: pl.Series) -> pl.Series:
    """Return the values that stand in a sorted series more than once."""
    if len(ordered) < 2:
        return ordered.clear()
    before, after = ordered.slice(0, len(ordered) - 1), ordered.slice(1)
    return before.filter(before == after).unique()


def _not_unique(keys: pl.DataFrame, numbers: pl.Series) -> pl.Series:
    """Return the numbers of the rows whose key stands in this frame more than once."""
    return numbers.filter(~keys.select(pl.struct(pl.all()).is_unique()).to_series())
