"""Whether an IO manager stores a lazy frame without someone collecting it first."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import dagster as dg
import polars as pl

from dagster_dataframely.upstream.dagster_step import database_types


def takes_lazy_frame(io_manager: dg.IOManager) -> bool:
    """Tell whether an IO manager says that it stores a `pl.LazyFrame`.

    A database IO manager says so by its type handlers, any other by the annotation of what its
    `handle_output` or its `dump_to_path` takes. One that says nothing, or `Any`, is taken to store
    eager frames: pickling a lazy frame keeps a query and not its rows.

    Args:
        io_manager: The IO manager.

    Examples:
        >>> import dagster as dg
        >>> takes_lazy_frame(dg.InMemoryIOManager())
        False
    """
    handled = database_types(io_manager)
    if handled is not None:
        return pl.LazyFrame in handled
    handlers = (getattr(io_manager, name, None) for name in ("handle_output", "dump_to_path"))
    return any(_takes_lazy_frame(handler) for handler in handlers if handler is not None)


def _takes_lazy_frame(handler: Callable[..., object]) -> bool:
    """Read the annotation of the value: the second parameter, after the context."""
    parameters = list(inspect.signature(handler).parameters.values())
    if len(parameters) < 2:
        return False
    # Only this annotation is resolved: others may name what is imported for type checking alone.
    holder = SimpleNamespace(__annotations__={"value": parameters[1].annotation})
    namespace = getattr(inspect.unwrap(handler), "__globals__", {})
    try:
        annotation = get_type_hints(holder, globalns=namespace)["value"]
    except (NameError, TypeError, AttributeError, SyntaxError):
        return False
    return pl.LazyFrame in _members(annotation)


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, UnionType):
        return get_args(annotation)
    return (annotation,)
