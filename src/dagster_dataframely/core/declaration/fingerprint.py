"""The fingerprint of a schema: what an asset's `code_version` is by default.

It changes with what changes a verdict (a column, a dtype, a rule, a bound, a severity) and not with words
(a description, a docstring). It is the same in every process and for each supported Python and Polars.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import textwrap
from typing import Any

import dataframely as dy

from dagster_dataframely.core.declaration.rules import Rule
from dagster_dataframely.upstream.dataframely_schema import rule_function
from dagster_dataframely.upstream.polars_expression import serialized


def fingerprint(schema: type[dy.Schema], rules: tuple[Rule, ...]) -> str:
    """Return the fingerprint of a schema and its rules.

    Args:
        schema: A Dataframely schema.
        rules: Its rules, as `read_rules` gives them.

    Returns:
        16 hexadecimal digits.
    """
    content: dict[str, Any] = {
        "columns": [[name, repr(column.dtype)] for name, column in schema.columns().items()],
        "primary_key": schema.primary_key(),
        "rules": [[rule.name, rule.severity, _meaning(schema, rule)] for rule in rules],
    }
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _meaning(schema: type[dy.Schema], rule: Rule) -> str:
    """Return the expression with every argument, or the source of the function that builds it."""
    text = serialized(rule.expr) if rule.expr is not None else None
    if text is not None:
        return text
    function = rule_function(schema, rule.name)
    if function is None:
        column = schema.columns().get(rule.column or "")
        function = _check_function(column, rule.kind)
    return _source(function) if function is not None else rule.expression


def _check_function(column: dy.Column | None, kind: str) -> Any:
    """Return the callable behind a `check=` rule of a column."""
    check = getattr(column, "check", None)
    if isinstance(check, dict):
        return check.get(kind.removeprefix("check__"))
    return check


def _source(function: Any) -> str:
    """Return the source of a function without its docstring, or its name where there is no source."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return getattr(function, "__qualname__", type(function).__name__)
    docstring = getattr(function, "__doc__", None)
    return source.replace(docstring, "") if docstring else source
