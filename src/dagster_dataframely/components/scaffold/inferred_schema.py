"""A schema from a data file: Dataframely's inference, written so that the file satisfies it.

Polars and Dataframely are imported here, so this module is imported only once a file is to be read.
"""

from __future__ import annotations

import ast
import datetime as dt
import decimal
import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dataframely as dy
import polars as pl
from dataframely.experimental import infer_schema

from dagster_dataframely.components.scaffold.python_source import (
    WIDTH,
    assignment,
    identifier,
    quoted,
    unused_name,
    width,
)
from dagster_dataframely.core.declaration.names import RESERVED_PREFIX, column_check_name
from dagster_dataframely.errors import ScaffoldError

#: The Polars function that reads a file, by its name's extension.
READERS: Mapping[str, str] = {
    ".parquet": "read_parquet",
    ".csv": "read_csv",
    ".ndjson": "read_ndjson",
    ".jsonl": "read_ndjson",
    ".arrow": "read_ipc",
    ".ipc": "read_ipc",
    ".feather": "read_ipc",
}

# With these arguments the dtypes of a text file are found from all of its rows.
_WHOLE_FILE: Mapping[str, Mapping[str, Any]] = {
    "read_csv": {"infer_schema_length": None, "try_parse_dates": True},
    "read_ndjson": {"infer_schema_length": None},
}

# A column has a value set that is worth proposing when it has fewer values than this.
_VALUE_SET = 20
_LONGEST_VALUE = 40

# In a class body, a column of one of these names would hide what the lines below it use.
_MODULES = {"dy", "pl", "dt", "decimal"}


@dataclass(frozen=True)
class InferredSchema:
    """A schema as source, and how to read the file that it was inferred from."""

    #: The members of the class, with proposals as comments, indented.
    body: str
    #: Modules that the proposals use and the schema itself does not.
    proposal_imports: tuple[str, ...]
    #: Whether there is a proposal at all.
    has_proposals: bool
    #: Columns that cannot keep their name: the file's name and the schema's.
    renamed: Mapping[str, str]
    #: The Polars function that reads the file.
    reader: str
    #: Arguments with which it gives the schema's dtypes.
    reader_arguments: tuple[str, ...]
    #: Whether those arguments take the dtypes from the schema.
    is_told_dtypes: bool


@dataclass(frozen=True)
class _Column:
    """One column of the schema that is being written."""

    attribute: str
    #: The column's name in the table.
    name: str
    #: The column's name in the file.
    original: str
    #: Its values, under a name that Polars takes for no pattern.
    values: pl.Series
    #: What declares it.
    call: ast.Call

    @property
    def is_any(self) -> bool:
        """Whether Dataframely has no column type for the dtype."""
        return isinstance(self.call.func, ast.Attribute) and self.call.func.attr == "Any"


def read_data(file: Path) -> pl.DataFrame:
    """Read a data file with dtypes that all of its rows have.

    Args:
        file: A parquet, csv, ndjson or ipc file.

    Raises:
        ScaffoldError: There is no such file, or it cannot be read, or it has no columns.
    """
    reader = READERS.get(file.suffix.lower())
    if not file.exists():
        raise ScaffoldError(f"There is no file '{file}'.{_nearest_file(file)}")
    if file.is_dir():
        raise ScaffoldError(f"'{file}' is a folder; --from-data takes one file.")
    if reader is None:
        found = f"ends in '{file.suffix}'" if file.suffix else "has no extension"
        raise ScaffoldError(
            f"'{file}' {found}; --from-data reads files that end in {_listed(READERS)}."
        )
    if any(character in str(file.absolute()) for character in "*?["):
        raise ScaffoldError(
            f"The path '{file.absolute()}' has one of the characters '*', '?' and '[', with which "
            "Polars reads many files at once. Rename the file or its folder."
        )
    if file.stat().st_size == 0:
        raise ScaffoldError(f"'{file}' is empty, so there is nothing to infer a schema from.")
    try:
        frame: pl.DataFrame = getattr(pl, reader)(file, **_WHOLE_FILE.get(reader, {}))
    except pl.exceptions.NoDataError as error:
        raise ScaffoldError(
            f"'{file}' is empty, so there is nothing to infer a schema from."
        ) from error
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ScaffoldError(f"Polars cannot read '{file}' with pl.{reader}: {reason}") from error
    if not frame.columns:
        raise ScaffoldError(f"'{file}' has no columns, so there is nothing to infer a schema from.")
    return frame


def infer_from_file(file: Path, *, schema: str, renames: bool) -> InferredSchema:
    """Infer a schema that the rows of a file satisfy.

    Args:
        file: A parquet, csv, ndjson or ipc file.
        schema: The name of the schema's class.
        renames: Whether the table's function can rename columns.

    Returns:
        The schema's source, and how to read the file.

    Raises:
        ScaffoldError: The file cannot be read, or none of its columns can be a table's.
    """
    frame = read_data(file)
    return infer_from_frame(
        frame, reader=READERS[file.suffix.lower()], schema=schema, renames=renames
    )


def infer_from_frame(
    frame: pl.DataFrame, *, reader: str, schema: str, renames: bool
) -> InferredSchema:
    """Infer a schema that a frame satisfies.

    Args:
        frame: The rows of a file.
        reader: The Polars function that read it.
        schema: The name of the schema's class.
        renames: Whether the table's function can rename columns. Where it cannot, columns that
            would need it are left out of the schema.

    Returns:
        The schema's source, and how to read the file.
    """
    columns = _named(frame)
    renamed = {column.original: column.name for column in columns if column.name != column.original}
    if not renames:
        columns = [column for column in columns if column.original not in renamed]
    if not columns:
        raise ScaffoldError(
            "No column of the file can be in a table under its own name, and the function given by "
            f"--fn would have to rename them: {', '.join(map(quoted, renamed))}."
        )
    key = next((column for column in columns if _is_key(column)), None)
    lines: list[str] = []
    proposed: list[str] = []
    for column in columns:
        pieces = ["primary_key=True"] * (column is key) + _proposals(column)
        proposed += pieces
        if column.original in renamed:
            lines += _comment([f"{quoted(column.original)} in the file"])
        lines += _comment(pieces)
        if column.is_any:
            lines += _comment([f"The file has dtype {column.values.dtype!s}; any dtype passes"])
        lines.append(assignment(column.attribute, column.call, indent=4))
    if renamed and not renames:
        left_out = [quoted(name) for name in renamed]
        left_out[0] = f"Left out, because a table cannot have such a column: {left_out[0]}"
        lines += _comment(left_out)
    # The dtypes of a text file are best told: the next one may have whole numbers only, say. That
    # takes the file's own names, and a dtype for each of them.
    dtypes = f"{schema}.create_empty().schema"
    told = {"read_csv": f"schema_overrides={dtypes}", "read_ndjson": f"schema={dtypes}"}
    is_told_dtypes = reader in told and not renamed and not any(column.is_any for column in columns)
    return InferredSchema(
        body="\n".join(lines),
        proposal_imports=tuple(
            f"import {module}"
            for module, use in (
                ("datetime as dt", "=dt."),
                ("decimal", "=decimal."),
                ("zoneinfo", "=zoneinfo."),
            )
            if any(use in piece for piece in proposed)
        ),
        has_proposals=bool(proposed),
        renamed=renamed if renames else {},
        reader=reader,
        reader_arguments=(told[reader],)
        if is_told_dtypes
        else tuple(f"{name}={value!r}" for name, value in _WHOLE_FILE.get(reader, {}).items()),
        is_told_dtypes=is_told_dtypes,
    )


# --- names ----------------------------------------------------------------------------------------


def _named(frame: pl.DataFrame) -> list[_Column]:
    """Give each column a name that a table can have, and an attribute of the class to stand in."""
    names: dict[str, str] = {}
    # Checks are named after columns, with `_` for every character that Dagster does not allow.
    taken: set[str] = set()
    kept = [name for name in frame.columns if _can_be_kept(name)]
    for name in kept:
        if (check := column_check_name(name)) not in taken:
            taken.add(check)
            names[name] = name
    for position, name in enumerate(frame.columns, start=1):
        if name in names:
            continue
        plain = identifier(name.removeprefix(RESERVED_PREFIX)).lower() or f"column_{position}"
        while not _is_attribute(plain) or column_check_name(plain) in taken:
            plain = unused_name(plain, {plain, *names.values()})
        taken.add(column_check_name(plain))
        names[name] = plain

    attributes = {name: name for name in names.values() if _is_attribute(name)}
    used = set(attributes.values())
    for position, original in enumerate(frame.columns, start=1):
        name = names[original]
        if name not in attributes:
            attribute = identifier(name).lower() or f"column_{position}"
            if not _is_attribute(attribute):
                attribute = f"{attribute}_"
            attributes[name] = unused_name(attribute, used)
            used.add(attributes[name])
    return [
        _Column(attribute, name, original, values, _call(values, attribute=attribute, name=name))
        for original, series in zip(frame.columns, frame.get_columns(), strict=True)
        for values in [series.alias("column")]
        for name in [names[original]]
        for attribute in [attributes[name]]
    ]


def _can_be_kept(name: str) -> bool:
    # Dataframely puts `|` between the name of a column and that of a rule, hands both to native code
    # that ends at a NUL, and allows no column to have the name of a rule.
    return bool(name) and not (
        name.startswith(RESERVED_PREFIX)
        or "|" in name
        or "\0" in name
        or name == "primary_key"
        or _is_pattern(name)
    )


def _is_pattern(name: str) -> bool:
    """Say whether Polars takes a name for a pattern of names, wherever an expression has it."""
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def _is_attribute(name: str) -> bool:
    """Say whether a class of columns can have an attribute of this name."""
    return (
        identifier(name) == name
        and name not in _MODULES
        # Schema's own, such as `filter` and `columns`.
        and not hasattr(dy.Schema, name)
    )


# --- columns --------------------------------------------------------------------------------------


def _call(values: pl.Series, *, attribute: str, name: str) -> ast.Call:
    """Return the call that declares a column which these values satisfy."""
    if _has_unusable_field(values.dtype):
        # No alias can be given to a field, so Dataframely cannot check this column.
        values = values.clear().cast(pl.Null)
    frame = values.to_frame("column")
    plain = frame.select(_with_plain_fields(pl.col("column"), values.dtype))
    module = ast.parse(infer_schema(plain))
    [definition] = module.body
    assert isinstance(definition, ast.ClassDef)
    [member] = definition.body
    assert isinstance(member, ast.Assign)
    call = _completed(member.value, values)
    if attribute != name:
        call.keywords.append(ast.keyword("alias", ast.Constant(name)))
    return call


def _with_plain_fields(expr: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Name the fields of structs by position, because `infer_schema` does not escape names."""
    if isinstance(dtype, pl.Struct):
        names = [f"field_{position}" for position in range(len(dtype.fields))]
        expr = expr.struct.rename_fields(names)
        nested = [
            _with_plain_fields(pl.field(name), _dtype(inner.dtype)).alias(name)
            for name, inner in zip(names, dtype.fields, strict=True)
            if inner.dtype.is_nested()
        ]
        return expr.struct.with_fields(nested) if nested else expr
    if isinstance(dtype, (pl.List, pl.Array)) and dtype.inner.is_nested():
        inside = _with_plain_fields(pl.element(), _dtype(dtype.inner))
        return expr.list.eval(inside) if isinstance(dtype, pl.List) else expr.arr.eval(inside)
    return expr


def _has_unusable_field(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(
            _is_pattern(inner.name)
            or "\0" in inner.name
            or _has_unusable_field(_dtype(inner.dtype))
            for inner in dtype.fields
        )
    if isinstance(dtype, (pl.List, pl.Array)):
        return _has_unusable_field(_dtype(dtype.inner))
    return False


def _dtype(dtype: Any) -> pl.DataType:
    assert isinstance(dtype, pl.DataType)
    return dtype


def _completed(node: ast.expr, values: pl.Series) -> ast.Call:
    """Put back the names of fields, and allow the NaN and infinities that a column has."""
    assert isinstance(node, ast.Call)
    call = ast.Call(node.func, list(node.args), list(node.keywords))
    if isinstance(values.dtype, pl.Struct):
        [fields] = call.args
        assert isinstance(fields, ast.Dict)
        inner = values.struct.unnest().get_columns()
        call.args = [
            ast.Dict(
                [ast.Constant(series.name) for series in inner],
                [
                    _completed(value, series)
                    for value, series in zip(fields.values, inner, strict=True)
                ],
            )
        ]
    elif isinstance(values.dtype, (pl.List, pl.Array)):
        call.args = [_completed(call.args[0], values.explode(empty_as_null=False)), *call.args[1:]]
    elif values.dtype.is_float():
        call.keywords += [
            ast.keyword(argument, ast.Constant(True))
            for argument, found in (
                ("allow_nan", values.is_nan().any()),
                ("allow_inf", values.is_infinite().any()),
            )
            if found
        ]
    return call


# --- proposals ------------------------------------------------------------------------------------


def _is_key(column: _Column) -> bool:
    values, dtype = column.values, column.values.dtype
    if len(values) < 2 or values.null_count() or column.is_any:
        return False
    if dtype.is_nested() or dtype.is_float() or dtype in (pl.Boolean, pl.Binary):
        return False
    return values.n_unique() == len(values)


def _proposals(column: _Column) -> list[str]:
    """Return arguments of the column's type that its values satisfy, in pieces of source."""
    values, dtype = column.values.drop_nulls(), column.values.dtype
    if values.is_empty() or column.is_any:
        return []
    if dtype.is_integer() and (known := _value_set(values)):
        return _enclosed("is_in=[", known, "]")
    if dtype == pl.String:
        if known := _value_set(values):
            return _enclosed('check={"known": lambda column: column.is_in([', known, "])}")
        lengths = values.str.len_bytes().to_list()
        bounds = {"min_length": min(lengths), "max_length": max(lengths)}
        return [f"{argument}={length}" for argument, length in bounds.items() if length]
    return _bounds(values) if dtype.is_numeric() or dtype.is_temporal() else []


def _enclosed(opening: str, pieces: list[str], closing: str) -> list[str]:
    enclosed = [*pieces]
    enclosed[0] = opening + enclosed[0]
    enclosed[-1] += closing
    return enclosed


def _value_set(values: pl.Series) -> list[str]:
    """Return the distinct values, where they are few and some repeat."""
    distinct = values.unique().sort()
    if len(distinct) >= min(_VALUE_SET, len(values)):
        return []
    literals = [_literal(value) for value in distinct]
    return literals if max(map(width, literals)) <= _LONGEST_VALUE else []


def _bounds(values: pl.Series) -> list[str]:
    column = pl.col("column")
    try:
        low: Any = values.min()
        high: Any = values.max()
        # Python's values can be coarser, its calendar is shorter, and it knows other summer times.
        within = values.to_frame("column").select(((column >= low) & (column <= high)).all())
    except (OverflowError, ValueError, pl.exceptions.PolarsError):
        return []
    if not within.item() or (isinstance(low, float) and not math.isfinite(high - low)):
        return []
    return [f"min={_literal(low)}", f"max={_literal(high)}"]


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (dt.date, dt.time, dt.timedelta)):
        return repr(value).replace("datetime.", "dt.")
    if isinstance(value, decimal.Decimal):
        return f"decimal.{value!r}"
    return repr(value)


def _comment(pieces: list[str]) -> list[str]:
    """Return comment lines above a column, broken between pieces only."""
    lines: list[str] = []
    for position, piece in enumerate(pieces, start=1):
        text = piece if position == len(pieces) else f"{piece},"
        if lines and width(f"{lines[-1]} {text}") <= WIDTH:
            lines[-1] += f" {text}"
        else:
            lines.append(f"    # {text}")
    return lines


# --- messages -------------------------------------------------------------------------------------


def _nearest_file(file: Path) -> str:
    try:
        names = sorted(path.name for path in file.parent.iterdir() if path.is_file())
    except OSError:
        return f" There is no folder '{file.parent}' either."
    for nearest in difflib.get_close_matches(file.name, names, n=1):
        return f" Did you mean '{file.parent / nearest}'?"
    readable = [name for name in names if Path(name).suffix.lower() in READERS]
    return f" '{file.parent}' has {_listed(readable)}." if readable else ""


def _listed(names: Iterable[str]) -> str:
    *others, last = (f"'{name}'" for name in names)
    return f"{', '.join(others)} and {last}" if others else last
