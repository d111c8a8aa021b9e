"""Rows named by their numbers, and told from the others by one bit a row."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs

#: The number of a row in its frame, as a column. No column of a schema begins with `dy_`.
ROW = "dy_row"
_KEPT = "dy_kept"


def all_but(numbers: pl.Series, rows: int) -> pl.Series:
    """Return one Boolean for each of so many rows: False at these row numbers, True elsewhere."""
    return pl.repeat(True, rows, dtype=pl.Boolean, eager=True).scatter(numbers, False)


def where(frame: pl.LazyFrame, kept: pl.Series) -> pl.LazyFrame:
    """Return the rows of a lazy frame that one Boolean a row marks, in the frame's order.

    The bits are put beside the frame, which streams; a list of row numbers would be looked up row by row.
    """
    bits = pl.DataFrame({_KEPT: kept}).lazy()
    return pl.concat([frame, bits], how="horizontal_extend").filter(_KEPT).drop(_KEPT)


def released(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return a lazy frame whose strings are copies.

    For a few rows out of many: a string that was filtered out of a column refers to the buffer of all that was
    read with it, and keeps that in memory.
    """
    # What is joined is written anew, even to nothing.
    return frame.with_columns(cs.string() + "")
