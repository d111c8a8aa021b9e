"""Rows of a frame as a table that Dagster shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import dagster as dg
import polars as pl

from dagster_dataframely.core.declaration.dtypes import dtype_text
from dagster_dataframely.core.json_values import json_values
from dagster_dataframely.core.redaction import REDACTED


def sample_table(
    frame: pl.DataFrame, *, first: Sequence[str] = (), redact: Collection[str] = ()
) -> dg.TableMetadataValue:
    """Return the rows of a small frame as a table that Dagster shows.

    Args:
        frame: The rows to show, all of them.
        first: Columns that stand first, such as the primary key. A name that the frame lacks is skipped.
        redact: Columns whose values are not shown, null or not.

    Returns:
        A table of strict JSON values, whatever the dtypes are.

    Examples:
        >>> table = sample_table(pl.DataFrame({"paid": [float("nan")], "id": [7]}), first=["id"])
        >>> table.records[0].data
        {'id': 7, 'paid': 'NaN'}
    """
    dtypes = frame.schema
    names = [name for name in dict.fromkeys([*first, *dtypes]) if name in dtypes]
    values = {
        name: [REDACTED] * frame.height if name in redact else json_values(frame.get_column(name))
        for name in names
    }
    return dg.TableMetadataValue(
        records=[
            dg.TableRecord({name: values[name][row] for name in names})
            for row in range(frame.height)
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn(name, dtype_text(dtypes[name], show_categories=name not in redact))
                for name in names
            ]
        ),
    )
