"""The names that an asset is reported by: of checks, of their columns in error rows, the error rows' key."""

from __future__ import annotations

import re
from collections.abc import Iterable

import dagster as dg

from dagster_dataframely.errors import CheckNameCollisionError, ReservedColumnError

RESERVED_PREFIX = "dy_"
COLUMN_SCHEMA_CHECK = "dy_schema__columns"
SCHEMA_RULES_CHECK = "dy_schema__rules"
ERROR_ROWS_SUFFIX = "__error_rows"

# What Dagster allows in a check name: https://docs.dagster.io/api/dagster/asset-checks
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_]")


def check_name(rule: str) -> str:
    """Return the name of the check that reports one rule.

    Bounds never enter the name, so a changed bound keeps the check's history.

    Args:
        rule: Dataframely's name of the rule, such as `primary_key` or `amount|min`.

    Returns:
        A name that Dagster accepts, such as `dy_rule__amount__min`.

    Examples:
        >>> check_name("amount|min")
        'dy_rule__amount__min'
        >>> check_name("Order ID|nullability")
        'dy_rule__Order_ID__nullability'
    """
    return "dy_rule__" + _NOT_ALLOWED.sub("_", rule.replace("|", "__"))


def column_check_name(column: str) -> str:
    """Return the name of the check that reports all rules of one column.

    Examples:
        >>> column_check_name("Order ID")
        'dy_col__Order_ID'
    """
    return "dy_col__" + _NOT_ALLOWED.sub("_", column)


def error_rows_key(key: dg.AssetKey) -> dg.AssetKey:
    """Return the key of the error-rows table of an asset.

    Args:
        key: The asset's own key.

    Returns:
        The same key with `__error_rows` added to its last part.

    Examples:
        >>> import dagster as dg
        >>> error_rows_key(dg.AssetKey(["sales", "orders"])).to_user_string()
        'sales/orders__error_rows'
    """
    *prefix, name = key.path
    return dg.AssetKey([*prefix, name + ERROR_ROWS_SUFFIX])


def refuse_shared_names(named: Iterable[tuple[str, str]], *, schema: str) -> None:
    """Raise when two different things would report under one check name.

    Args:
        named: Pairs of a check name and what it reports, such as `("dy_rule__a__min", "rule 'a|min'")`.
        schema: The schema's name, for the message.

    Raises:
        CheckNameCollisionError: Two pairs share a check name.
    """
    seen: dict[str, str] = {}
    for name, reported in named:
        other = seen.setdefault(name, reported)
        if other != reported:
            raise CheckNameCollisionError(
                f"In {schema}, {other} and {reported} would both report as check '{name}', because "
                "characters that Dagster does not allow in a check name become '_'. Rename one of them."
            )


def refuse_reserved_columns(columns: Iterable[str], *, schema: str) -> None:
    """Raise when a schema column begins with the prefix of rule columns.

    Raises:
        ReservedColumnError: A column begins with `dy_`.
    """
    reserved = [column for column in columns if column.startswith(RESERVED_PREFIX)]
    if reserved:
        listed = ", ".join(f"'{column}'" for column in reserved)
        raise ReservedColumnError(
            f"{schema} declares {listed}. Column names beginning with '{RESERVED_PREFIX}' are reserved for "
            "the rule columns of error rows; choose another name, or another `alias`."
        )
