"""Statistics of a frame, a table a group of dtypes.

Frames in memory and small lazy ones are described exactly. A large lazy frame is scanned by streaming, and
there medians come from a sample of the rows and distinct strings from a sketch, because both would
otherwise hold whole columns in memory; the headers then say so.
"""

from __future__ import annotations

import decimal
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import dagster as dg
import polars as pl
import polars.selectors as cs

from dagster_dataframely.core.json_values import JsonScalar, duration_text, json_values
from dagster_dataframely.core.redaction import REDACTED

Group: TypeAlias = Literal["numeric", "temporal", "string", "boolean"]

_NOTHING_KNOWN: Mapping[str, int] = MappingProxyType({})

#: How many values a lazy frame may have in its described columns to be described exactly.
EXACT_VALUES = 8_000_000
#: About how many rows the median of a larger lazy frame is taken from; its rank is then off by 0.2 %.
SAMPLED_ROWS = 100_000

# So many columns in chunks are copied at a time for their medians: as many as there are threads, but no
# more than memory should take.
_MEDIANS_AT_ONCE = min(pl.thread_pool_size(), 4)
# Polars gives quantiles as floats, which hold whole numbers up to here.
_MAX_EXACT_FLOAT = 2**53
# More than the 38 digits of a decimal and what a quotient adds.
_MANY_DIGITS = decimal.Context(prec=100)

_TYPES: Mapping[str, Mapping[str, str]] = {
    "numeric": {
        "mean": "number",
        "std": "number",
        "min": "number",
        "p50": "number",
        "max": "number",
    },
    "temporal": {"min": "string", "max": "string", "span": "string"},
    "string": {"distinct": "int", "shortest": "int", "longest": "int", "empty": "int"},
    "boolean": {"true": "int", "false": "int", "share": "float"},
}
_DESCRIPTIONS = {
    "count": "Values that are not null.",
    "distinct": "Distinct values, null not counted.",
    "shortest": "Bytes of the shortest value.",
    "longest": "Bytes of the longest value.",
    "empty": "Values of no bytes.",
    "share": "The share of true among the values.",
}
_APPROXIMATE_HEADERS = {"p50": "p50 (sampled)", "distinct": "distinct (approx.)"}


def statistics(
    frame: pl.DataFrame | pl.LazyFrame,
    *,
    redact: Collection[str] = (),
    distinct: Mapping[str, int] = _NOTHING_KNOWN,
    nulls: Mapping[str, int] = _NOTHING_KNOWN,
    selected: pl.DataFrame | None = None,
) -> dict[str, dg.TableMetadataValue]:
    """Return statistics of a frame's columns.

    Args:
        frame: The frame. A lazy frame is executed up to three times, with only the columns that are needed
            each time, so it should be cheap to read, such as a scan of a file.
        redact: Columns of which only the count and the nulls are shown.
        distinct: Numbers of distinct values that are known already, by column.
        nulls: Numbers of nulls that are known already, by column.
        selected: One row with what `statistics_expressions` gives for this frame, where that is known
            already. Only medians are left to be found.

    Returns:
        A table a group of dtypes, with a row a column: `numeric`, `temporal`, `string` (with categories, enums
        and binaries) and `boolean`. A group is there only if the frame has such a column. Nested and
        Object columns are in none.

    Examples:
        >>> tables = statistics(pl.DataFrame({"paid": [True, False, None, True]}))
        >>> tables["boolean"].records[0].data
        {'column': 'paid', 'count': 3, 'nulls': 1, 'true': 2, 'false': 1, 'share': 0.6666666666666666}
    """
    columns = _described_columns(frame.collect_schema(), redact)
    if not columns:
        return {}
    rows = frame.height if isinstance(frame, pl.DataFrame) else _count_rows(frame)
    is_exact = isinstance(frame, pl.DataFrame) or _is_small(rows, columns)
    found = selected
    if found is None:
        found = _select(frame, columns, distinct, nulls, is_exact=is_exact)
    medians = _medians(frame, rows, columns, is_exact=is_exact)
    records: dict[Group, list[dict[str, JsonScalar]]] = {}
    for column in columns:
        values = _Found(column, found)
        null_count = nulls[column.name] if column.name in nulls else values.integer("nulls")
        count = rows - null_count
        record: dict[str, JsonScalar] = {
            "column": column.name,
            "count": count,
            "nulls": null_count,
        }
        if column.is_redacted:
            record |= dict.fromkeys(_TYPES[column.group], REDACTED)
        elif column.group == "numeric":
            record |= _numeric(values, count, medians.get(column.name))
        elif column.group == "temporal":
            record |= _temporal(values)
        elif column.group == "string":
            record |= _string(values, count, null_count, distinct.get(column.name))
        else:
            record |= _boolean(values, count)
        records.setdefault(column.group, []).append(record)
    return {group: _table(group, records[group], is_exact=is_exact) for group in records}


def statistics_expressions(
    schema: pl.Schema,
    rows: int,
    *,
    redact: Collection[str] = (),
    distinct: Mapping[str, int] = _NOTHING_KNOWN,
    nulls: Mapping[str, int] = _NOTHING_KNOWN,
) -> list[pl.Expr]:
    """Return what `statistics` selects of a lazy frame, so that a query of other figures can select it too.

    Args:
        schema: The frame's columns and dtypes.
        rows: How many rows the frame has.
        redact: As `statistics` takes it, and so are the other two.
        distinct: Numbers of distinct values that are known already, by column.
        nulls: Numbers of nulls that are known already, by column.

    Returns:
        Expressions that aggregate to one row, for a frame of exactly these columns. Their names begin with
        a column's position and `|`.
    """
    columns = _described_columns(schema, redact)
    is_exact = _is_small(rows, columns)
    return _all_expressions(columns, distinct, nulls, is_exact=is_exact, mean_of_decimals="sum")


@dataclass(frozen=True, slots=True)
class _Column:
    #: Expressions name a column by its position, because Polars reads some names as patterns.
    position: int
    name: str
    dtype: pl.DataType
    group: Group
    is_redacted: bool

    @property
    def expr(self) -> pl.Expr:
        return pl.nth(self.position)

    def alias(self, statistic: str) -> str:
        return f"{self.position}|{statistic}"


@dataclass(frozen=True, slots=True)
class _Found:
    """The statistics of one column, in the one row that was selected of all."""

    column: _Column
    row: pl.DataFrame

    def series(self, statistic: str) -> pl.Series:
        return self.row.get_column(self.column.alias(statistic))

    def scalar(self, statistic: str) -> JsonScalar:
        return json_values(self.series(statistic))[0]

    def integer(self, statistic: str) -> int:
        return int(self.series(statistic).item())


def _described_columns(schema: pl.Schema, redact: Collection[str]) -> list[_Column]:
    return [
        _Column(position, name, dtype, group, name in redact)
        for position, (name, dtype) in enumerate(schema.items())
        if (group := _group(dtype))
    ]


def _group(dtype: pl.DataType) -> Group | None:
    if dtype.is_numeric():
        return "numeric"
    if dtype.is_temporal():
        return "temporal"
    if isinstance(dtype, (pl.String, pl.Categorical, pl.Enum, pl.Binary)):
        return "string"
    return "boolean" if isinstance(dtype, pl.Boolean) else None


# --- what is selected ------------------------------------------------------------------------------


def _select(
    frame: pl.DataFrame | pl.LazyFrame,
    columns: Sequence[_Column],
    distinct: Mapping[str, int],
    nulls: Mapping[str, int],
    *,
    is_exact: bool,
) -> pl.DataFrame:
    """Select everything that is to be known of all columns, except what is known, and their medians."""
    # Not `DataFrame.select`, which would compute the length of each string three times.
    lazy = frame.lazy()
    engine: Literal["in-memory", "streaming"] = (
        "in-memory" if isinstance(frame, pl.DataFrame) else "streaming"
    )

    def select(mean_of_decimals: Literal["sum", "mean"]) -> pl.DataFrame:
        expressions = _all_expressions(
            columns, distinct, nulls, is_exact=is_exact, mean_of_decimals=mean_of_decimals
        )
        return lazy.select(expressions).collect(engine=engine)

    try:
        return select("sum")
    except pl.exceptions.ComputeError:
        # The sum of decimals may have more than their 38 digits.
        return select("mean")


def _all_expressions(
    columns: Sequence[_Column],
    distinct: Mapping[str, int],
    nulls: Mapping[str, int],
    *,
    is_exact: bool,
    mean_of_decimals: Literal["sum", "mean"],
) -> list[pl.Expr]:
    return [
        expression
        for column in columns
        for expression in _expressions(
            column, distinct, nulls, is_exact=is_exact, mean_of_decimals=mean_of_decimals
        )
    ]


def _expressions(
    column: _Column,
    distinct: Mapping[str, int],
    nulls: Mapping[str, int],
    *,
    is_exact: bool,
    mean_of_decimals: Literal["sum", "mean"],
) -> Iterator[pl.Expr]:
    values = column.expr
    if column.name not in nulls:
        yield values.null_count().alias(column.alias("nulls"))
    if column.is_redacted:
        return
    if column.group in ("numeric", "temporal"):
        yield values.min().alias(column.alias("min"))
        yield values.max().alias(column.alias("max"))
    if column.group == "numeric":
        # Polars gives the mean of decimals as a float; their sum keeps the digits.
        is_decimal = isinstance(column.dtype, pl.Decimal)
        mean = values.sum() if is_decimal and mean_of_decimals == "sum" else values.mean()
        yield mean.alias(column.alias("mean"))
        yield values.std().alias(column.alias("std"))
    elif column.group == "string":
        length = _length(column)
        yield length.min().alias(column.alias("shortest"))
        yield length.max().alias(column.alias("longest"))
        yield (length == 0).sum().alias(column.alias("empty"))
        if column.name not in distinct:
            yield _distinct(column, is_exact=is_exact).alias(column.alias("distinct"))
    elif column.group == "boolean":
        yield values.sum().alias(column.alias("true"))


def _length(column: _Column) -> pl.Expr:
    if isinstance(column.dtype, pl.Binary):
        return column.expr.bin.size()
    if isinstance(column.dtype, pl.String):
        return column.expr.str.len_bytes()
    return column.expr.cat.len_bytes()


def _distinct(column: _Column, *, is_exact: bool) -> pl.Expr:
    """Count distinct values, null as one of them."""
    if isinstance(column.dtype, (pl.Categorical, pl.Enum)):
        return column.expr.to_physical().n_unique()
    # Hashes of 64 bits stand in for strings, which take several times as long. That two of ten million
    # different strings share a hash, so that the number is one too low, happens once in 300,000 columns.
    hashes = column.expr.hash()
    return hashes.n_unique() if is_exact else hashes.approx_n_unique()


def _is_small(rows: int, columns: Sequence[_Column]) -> bool:
    """Return whether a lazy frame of so many rows is described exactly."""
    return rows * len(columns) <= EXACT_VALUES


def _count_rows(frame: pl.LazyFrame) -> int:
    return int(frame.select(pl.len()).collect(engine="streaming").item())


# --- medians ---------------------------------------------------------------------------------------


def _medians(
    frame: pl.DataFrame | pl.LazyFrame, rows: int, columns: Sequence[_Column], *, is_exact: bool
) -> dict[str, JsonScalar]:
    wanted = [column for column in columns if column.group == "numeric" and not column.is_redacted]
    if not wanted:
        return {}
    numbers = _numbers(frame, rows, [column.name for column in wanted], is_exact=is_exact)
    # The median of a column in many chunks takes several times as long as that of one in one piece.
    is_chunked = any(chunks > 1 for chunks in numbers.n_chunks("all"))
    at_once = _MEDIANS_AT_ONCE if is_chunked else len(wanted)
    medians: dict[str, JsonScalar] = {}
    for start in range(0, len(wanted), at_once):
        batch = wanted[start : start + at_once]
        part = numbers.select(pl.nth(range(start, start + len(batch)))).rechunk()
        floats = [column.name for column in batch if not isinstance(column.dtype, pl.Decimal)]
        found = part.select(cs.by_name(floats).median())
        for column in batch:
            if isinstance(column.dtype, pl.Decimal):
                median = _decimal_median(part.get_column(column.name), column.dtype.scale)
            else:
                median = json_values(found.get_column(column.name))[0]
            medians[column.name] = median
    return medians


def _numbers(
    frame: pl.DataFrame | pl.LazyFrame, rows: int, names: Sequence[str], *, is_exact: bool
) -> pl.DataFrame:
    """Return the columns that medians are taken of, all their rows or a sample."""
    if isinstance(frame, pl.DataFrame):
        return frame.select(cs.by_name(names))
    if is_exact:
        return frame.select(cs.by_name(names)).collect(engine="streaming")
    step = rows // SAMPLED_ROWS + 1
    number = "row"
    while number in names:
        number += "_"
    # Every hundredth row, say, would meet a pattern that returns as often; a hash of its number does not.
    return (
        frame.select(cs.by_name(names))
        .with_row_index(number)
        .filter(pl.col(number).hash(seed=0) % step == 0)
        .drop(number)
        .collect(engine="streaming")
    )


def _decimal_median(values: pl.Series, scale: int) -> JsonScalar:
    digits = values.to_physical().drop_nulls().alias("digits")
    if digits.is_empty():
        return None
    digit = pl.col("digits")
    largest, low, high = (
        digits.to_frame()
        .select(
            digit.abs().max().alias("largest"),
            digit.quantile(0.5, "lower").alias("low"),
            digit.quantile(0.5, "higher").alias("high"),
        )
        .row(0)
    )
    if largest > _MAX_EXACT_FLOAT:
        ordered = digits.sort()
        low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    total = decimal.Decimal(int(low) + int(high)).scaleb(-scale, _MANY_DIGITS)
    return _decimal_text(total, 2, scale)


# --- what is shown ---------------------------------------------------------------------------------


def _numeric(values: _Found, count: int, median: JsonScalar) -> dict[str, JsonScalar]:
    mean = values.scalar("mean")
    total = values.series("mean")
    if isinstance(total.dtype, pl.Decimal):
        mean = _decimal_text(total.item(), count, total.dtype.scale) if count else None
    elif isinstance(values.column.dtype, pl.Decimal):
        mean = None if mean is None else str(mean)
    return {
        "mean": mean,
        "std": values.scalar("std"),
        "min": values.scalar("min"),
        "p50": median,
        "max": values.scalar("max"),
    }


def _temporal(values: _Found) -> dict[str, JsonScalar]:
    first, last = (values.series(name).to_physical().item() for name in ("min", "max"))
    # In Python's integers, because in Polars' the span of far dates overflows.
    span = None if first is None else duration_text(last - first, _unit(values.column.dtype))
    return {"min": values.scalar("min"), "max": values.scalar("max"), "span": span}


def _string(
    values: _Found, count: int, null_count: int, known_distinct: int | None
) -> dict[str, JsonScalar]:
    if known_distinct is None:
        # Null was counted as one of them, and a sketch may count more than there are.
        distinct = min(values.integer("distinct") - (null_count > 0), count)
    else:
        distinct = min(known_distinct, count)
    return {
        "distinct": distinct,
        "shortest": values.scalar("shortest"),
        "longest": values.scalar("longest"),
        "empty": values.integer("empty"),
    }


def _boolean(values: _Found, count: int) -> dict[str, JsonScalar]:
    true = values.integer("true")
    return {"true": true, "false": count - true, "share": true / count if count else None}


def _unit(dtype: pl.DataType) -> str:
    if isinstance(dtype, (pl.Datetime, pl.Duration)):
        return dtype.time_unit
    return "d" if isinstance(dtype, pl.Date) else "ns"


def _decimal_text(total: decimal.Decimal, count: int, scale: int) -> str:
    """Return a quotient with the digits of its column, and up to four more where it has them."""
    with decimal.localcontext(_MANY_DIGITS):
        text = format(round(total / count, scale + 4), "f")
    whole, _, fraction = text.partition(".")
    fraction = fraction[:scale] + fraction[scale:].rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def _table(
    group: Group, records: Sequence[Mapping[str, JsonScalar]], *, is_exact: bool
) -> dg.TableMetadataValue:
    types = {"column": "string", "count": "int", "nulls": "int", **_TYPES[group]}
    headers = {name: name if is_exact else _APPROXIMATE_HEADERS.get(name, name) for name in types}
    return dg.TableMetadataValue(
        records=[
            dg.TableRecord({headers[name]: record[name] for name in types}) for record in records
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn(headers[name], type_, _DESCRIPTIONS.get(name))
                for name, type_ in types.items()
            ]
        ),
    )
