"""Rendering templates in attributes, and leaving plain text alone."""

from __future__ import annotations

from typing import Any

import dagster as dg


def is_template(value: str) -> bool:
    """Return whether a string has something for Dagster to render.

    Examples:
        >>> is_template("{{ env.REGION }}/orders"), is_template("sales/orders")
        (True, False)
    """
    return "{{" in value or "{%" in value


def render(context: dg.ResolutionContext, value: Any) -> Any:
    """Return a value with its templates rendered.

    Dagster renders every string, which takes time and makes the number 7 of a column that is named "007".

    Args:
        context: The context of the value.
        value: A string, or a list of them; anything else is returned as it is.
    """
    if isinstance(value, (list, tuple)):
        return [render(context.at_path(index), each) for index, each in enumerate(value)]
    if isinstance(value, str) and is_template(value):
        return context.resolve_value(value, as_type=object)
    return value
