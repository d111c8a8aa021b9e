"""The settings of an asset: package default, then environment variable, then argument."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dagster_dataframely.errors import InvalidSettingError

CheckGranularity: TypeAlias = Literal["rule", "column", "schema"]
SchemaRules: TypeAlias = Literal["collapsed", "per_rule"]

ENVIRONMENT_PREFIX = "DAGSTER_DATAFRAMELY_"


@dataclass(frozen=True, slots=True)
class Settings:
    """How an asset reports; none of it changes which rows are written."""

    #: One check a rule, a column, or for the whole schema.
    check_granularity: CheckGranularity = "rule"
    #: At `column` granularity: one check for all schema-level rules, or one each.
    schema_rules: SchemaRules = "collapsed"
    #: Whether a materialization carries statistics of the written table.
    statistics: bool = True
    #: How many failing rows a check shows; 0 shows none.
    max_failure_samples: int = 5
    #: How many rows of the table and of the error rows a materialization shows; 0 shows none.
    row_sample: int = 5
    #: Columns whose values never reach the event log.
    redact: frozenset[str] = frozenset()
    #: Where `stream=True` stages its parquet file; None is the system's folder for temporary files.
    staging_dir: Path | None = None


def resolve_settings(**arguments: Any) -> Settings:
    """Return the settings of one asset.

    Args:
        **arguments: Values of `Settings` fields; None means that the argument was not given. `redact` adds
            to what the environment redacts, so that an asset cannot show what its deployment hides.

    Returns:
        The settings, each checked.

    Raises:
        InvalidSettingError: A value is not allowed; the message names the value and where it came from.

    Examples:
        >>> resolve_settings(check_granularity="column").check_granularity
        'column'
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    settings = replace(Settings(), **_from_environment(os.environ))
    values = {
        name: _READERS[name](value, f"The argument `{name}`") for name, value in given.items()
    }
    if "redact" in values:
        values["redact"] |= settings.redact
    return replace(settings, **values)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields(Settings):
        variable = ENVIRONMENT_PREFIX + field.name.upper()
        if variable not in environment:
            continue
        text = environment[variable]
        where = f"The environment variable {variable}"
        if not text.strip():
            raise InvalidSettingError(
                f"{where} is empty. Unset it to use the default, {_default(field.name)}."
            )
        parsed = _PARSERS.get(field.name, str)(text.strip())
        values[field.name] = _READERS[field.name](parsed, where)
    return values


def check_redacted_columns(redact: Iterable[str], columns: Iterable[str], *, schema: str) -> None:
    """Refuse a name in an asset's own `redact` that the schema does not have.

    A misspelt name would leave the real column readable. What the environment redacts is for every
    asset of a deployment, so a name that one schema lacks is no mistake there.

    Raises:
        InvalidSettingError: A name is not a column of the schema.
    """
    known = list(columns)
    for name in redact:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
            listed = ", ".join(f"'{column}'" for column in known)
            raise InvalidSettingError(
                f"The argument `redact` names '{name}', which is not a column of {schema}.{hint} Its columns "
                f"are {listed}."
            )


def read_bool(value: Any, where: str) -> bool:
    """Return a bool, or say what was found where."""
    if isinstance(value, bool):
        return value
    raise InvalidSettingError(f"{where} is {value!r}. Allowed are True and False.")


def _read_count(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InvalidSettingError(f"{where} is {value!r}. Allowed is a whole number from 0.")


def _read_choice(*choices: str) -> Callable[[Any, str], str]:
    def read(value: Any, where: str) -> str:
        if isinstance(value, str) and value in choices:
            return value
        allowed = ", ".join(f"'{choice}'" for choice in choices)
        nearest = difflib.get_close_matches(str(value), choices, n=1)
        hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
        raise InvalidSettingError(f"{where} is {value!r}. Allowed are {allowed}.{hint}")

    return read


def _read_columns(value: Any, where: str) -> frozenset[str]:
    is_collection = isinstance(value, (list, tuple, set, frozenset))
    if is_collection and all(isinstance(name, str) for name in value):
        return frozenset(value)
    raise InvalidSettingError(f"{where} is {value!r}. Allowed is a list of column names.")


def _read_folder(value: Any, where: str) -> Path:
    if isinstance(value, (str, Path)):
        return Path(value)
    raise InvalidSettingError(f"{where} is {value!r}. Allowed is the path of a folder.")


_READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "check_granularity": _read_choice("rule", "column", "schema"),
    "schema_rules": _read_choice("collapsed", "per_rule"),
    "statistics": read_bool,
    "max_failure_samples": _read_count,
    "row_sample": _read_count,
    "redact": _read_columns,
    "staging_dir": _read_folder,
}


def _parse_bool(text: str) -> bool | str:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)


def _parse_count(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _parse_columns(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


# How the text of an environment variable becomes the value; text that does not parse is refused as it is.
_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "statistics": _parse_bool,
    "max_failure_samples": _parse_count,
    "row_sample": _parse_count,
    "redact": _parse_columns,
}


def _default(name: str) -> str:
    default = getattr(Settings(), name)
    return "no columns" if default == frozenset() else repr(default)
