"""Values as strict JSON, short enough for the event log."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import math
import numbers
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import polars as pl

from dagster_dataframely.core.text import MAX_TEXT, shortened

JsonScalar: TypeAlias = str | int | float | bool | None

# JavaScript reads a JSON number as a double, which rounds integers beyond this.
_MAX_EXACT_INTEGER = 2**53

_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "d": 86_400_000_000_000}


def json_values(series: pl.Series) -> list[JsonScalar]:
    """Return the values of a series as strict JSON scalars.

    Converted by dtype and not through Python values, which cannot hold all that a series can: they have
    no nanoseconds and end at the year 9999, and Polars raises, or panics, on a date beyond.

    Args:
        series: The values, all of which are converted.

    Returns:
        One scalar a value. Nested values are JSON text.

    Examples:
        >>> json_values(pl.Series([[1, None], []]))
        ['[1, null]', '[]']
    """
    return [
        _nested_text(value) if isinstance(value, (pl.Series, Mapping)) else value
        for value in _elements(series)
    ]


def json_value(value: object) -> JsonScalar:
    """Return one Python value as a strict JSON scalar.

    Args:
        value: Any value. Numbers that JSON or JavaScript cannot hold become text, and so does everything
            that is no number, string, bool or None.

    Returns:
        A scalar; text has at most 200 characters.

    Examples:
        >>> json_value(float("-inf"))
        '-inf'
        >>> json_value(decimal.Decimal("0.10"))
        '0.10'
        >>> json_value(dt.timedelta(hours=-26))
        '-1d 2h'
    """
    # A value of an Object column may be of any class, whose own code runs here and may raise.
    try:
        return _json_value(value)
    except Exception:
        return f"<{type(value).__name__} without a readable text>"


def duration_text(count: int, unit: str) -> str:
    """Return a duration in days, hours, minutes and seconds.

    Args:
        count: How many of the unit.
        unit: `d`, or a time unit of Polars: `ms`, `us` or `ns`.

    Examples:
        >>> duration_text(90_061_500, "ms")
        '1d 1h 1m 1.5s'
        >>> duration_text(0, "us")
        '0s'
    """
    rest = abs(count) * _NANOSECONDS[unit]
    parts: list[str] = []
    for name, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        whole, rest = divmod(rest, size * 1_000_000_000)
        if whole:
            parts.append(f"{whole}{name}")
    seconds, fraction = divmod(rest, 1_000_000_000)
    if seconds or fraction or not parts:
        parts.append(f"{seconds}.{fraction:09}".rstrip("0").rstrip(".") + "s")
    return ("-" if count < 0 else "") + " ".join(parts)


def _elements(series: pl.Series) -> list[Any]:
    """Return a scalar a value, but a series for a list, and a mapping of such elements for a struct.

    Lists stay series because they may be long, and are read only as far as they are shown.
    """
    dtype = series.dtype
    if isinstance(dtype, (pl.List, pl.Array)):
        return list(series)
    if isinstance(dtype, pl.Struct):
        fields = {field.name: _elements(field) for field in series.struct.unnest()}
        return [
            None if is_null else {name: values[row] for name, values in fields.items()}
            for row, is_null in enumerate(series.is_null())
        ]
    if isinstance(dtype, pl.Duration):
        counts = series.to_physical().to_list()
        return [
            None if count is None else duration_text(count, dtype.time_unit) for count in counts
        ]
    if isinstance(dtype, (pl.Date, pl.Datetime, pl.Time)):
        texts = series.dt.to_string("iso:strict").to_list()
        return [None if text is None else _without_trailing_zeros(text) for text in texts]
    if isinstance(dtype, pl.Decimal):
        return series.cast(pl.String).to_list()
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        series = series.cast(pl.String)
    if isinstance(series.dtype, pl.String):
        series = series.str.head(MAX_TEXT + 1)
    elif isinstance(dtype, pl.Binary):
        series = series.bin.head(MAX_TEXT)
    return [json_value(value) for value in series.to_list()]


def _json_value(value: object) -> JsonScalar:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return json_value(value.value)
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, numbers.Integral):  # NumPy's integers too
        integer = int(value)
        return integer if abs(integer) <= _MAX_EXACT_INTEGER else shortened(str(integer))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value).replace("nan", "NaN")
    if isinstance(value, decimal.Decimal):
        return shortened(format(value, "f"))
    if isinstance(value, (bytes, bytearray)):
        return shortened(value[:MAX_TEXT].hex())
    if isinstance(value, (dt.date, dt.time)):  # a datetime is a date
        return _without_trailing_zeros(value.isoformat())
    if isinstance(value, dt.timedelta):
        return duration_text(value // dt.timedelta(microseconds=1), "us")
    if isinstance(value, (pl.Series, Mapping, list, tuple, set, frozenset)):
        return _nested_text(value)
    return shortened(repr(value))


def _nested_text(value: object) -> str:
    parts: list[str] = []
    length = 0
    # The parts are made one by one, so that a list of millions costs no more than what is shown of it,
    # and one that contains itself comes to an end.
    for part in _json_parts(value):
        parts.append(part)
        length += len(part)
        if length > MAX_TEXT:
            break
    return shortened("".join(parts))


def _json_parts(value: object) -> Iterator[str]:
    if isinstance(value, pl.Series):
        yield from _array_parts(_elements(value.head(MAX_TEXT)))
    elif isinstance(value, Mapping):
        yield "{"
        for position, (key, item) in enumerate(value.items()):
            yield ", " if position else ""
            yield json.dumps(str(json_value(key)), ensure_ascii=False) + ": "
            yield from _json_parts(item)
        yield "}"
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from _array_parts(value)
    else:
        yield json.dumps(json_value(value), ensure_ascii=False)


def _array_parts(items: Iterable[object]) -> Iterator[str]:
    yield "["
    for position, item in enumerate(items):
        yield ", " if position else ""
        yield from _json_parts(item)
    yield "]"


def _without_trailing_zeros(text: str) -> str:
    """Shorten the fraction of a second in an ISO text, and leave it out where it is zero."""
    return re.sub(r"(\.\d*?)0+(?=$|[+-])", lambda found: found[1].rstrip("."), text)
