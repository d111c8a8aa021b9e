"""Rows named by their numbers, and told from the others by one bit a row."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import polars as pl
import polars.selectors as cs

Frame: TypeAlias = pl.DataFrame | pl.LazyFrame
F = TypeVar("F", pl.DataFrame, pl.LazyFrame, Frame)

#: The number of a row in its frame, as a column. No column of a schema begins with `dy_`.
ROW = "dy_row"
_KEPT = "dy_kept"


def no_rows() -> pl.Series:
    """Return row numbers of which there are none."""
    return pl.Series(ROW, [], dtype=pl.get_index_type())


def all_but(numbers: pl.Series, rows: int) -> pl.Series:
    """Return one Boolean for each of so many rows: False at these row numbers, True elsewhere."""
    return pl.repeat(True, rows, dtype=pl.Boolean, eager=True).scatter(numbers, False)


def where(frame: F, kept: pl.Series) -> F:
    """Return the rows of a frame that one Boolean a row marks, in the frame's order.

    Where that is all of them, it is the frame itself.
    """
    if kept.all():
        return frame
    if isinstance(frame, pl.DataFrame):
        return frame.filter(kept)
    # The bits are put beside the frame, which streams; a list of row numbers would be looked up row by row.
    return beside(frame, pl.DataFrame({_KEPT: kept})).filter(_KEPT).drop(_KEPT)


def beside(frame: F, columns: pl.DataFrame) -> F:
    """Return a frame with more columns, as many rows long as it is."""
    if isinstance(frame, pl.DataFrame):
        return pl.concat([frame, columns], how="horizontal_extend")
    return pl.concat([frame, columns.lazy()], how="horizontal_extend")


def stacked(first: Frame, second: Frame) -> Frame:
    """Return the rows of one frame, then those of another of its kind."""
    if isinstance(first, pl.DataFrame) and isinstance(second, pl.DataFrame):
        return pl.concat([first, second])
    return pl.concat([first.lazy(), second.lazy()])


def released(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return a lazy frame whose strings are copies.

    For a few rows out of many: a string that was filtered out of a column refers to the buffer of all that was
    read with it, and keeps that in memory.
    """
    # What is joined is written anew, even to nothing.
    return frame.with_columns(cs.string() + "")
