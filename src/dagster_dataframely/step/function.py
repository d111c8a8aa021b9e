"""The decorated function: what Dagster is to see of it, and what it may return."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

import dagster as dg
import dataframely as dy
import polars as pl

from dagster_dataframely.core.verdict.masks import Frame
from dagster_dataframely.core.verdict.validation import is_frame
from dagster_dataframely.errors import InvalidFunctionError, InvalidReturnError

T = TypeVar("T")

_ALLOWED_RETURNS = "a pl.DataFrame, a pl.LazyFrame, a dg.MaterializeResult around either, or None"


def refuse_function(fn: object, *, used_by: str) -> None:
    """Raise unless a function can be the compute function of a validated asset.

    Raises:
        InvalidFunctionError: It is not a plain function that returns; the message says what to do.
    """
    if isinstance(fn, dg.AssetsDefinition):
        keys = ", ".join(f"'{key.to_user_string()}'" for key in sorted(fn.keys))
        raise InvalidFunctionError(
            f"{used_by} takes a function, and this is already the asset {keys}. Remove the other decorator."
        )
    if not callable(fn) or inspect.isclass(fn) or not hasattr(fn, "__name__"):
        raise InvalidFunctionError(
            f"{used_by} takes a function, and this is {fn!r} of type {type(fn).__name__}."
        )
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise InvalidFunctionError(
            f"'{fn.__name__}' yields, and {used_by} takes a function that returns: {_ALLOWED_RETURNS}."
        )


def dagster_signature(fn: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function as Dagster can read it.

    Postponed annotations are resolved. `dy.DataFrame[S]` and `dy.LazyFrame[S]`, which Dagster refuses,
    become the Polars frames that they are. The return annotation goes: what is written is decided by
    validation, and is not always of the type that the function returns.

    Raises:
        InvalidFunctionError: An annotation cannot be resolved.
    """
    signature = inspect.signature(fn)
    parameters = [
        parameter.replace(annotation=_polars_annotation(_resolved(fn, parameter)))
        for parameter in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)


def compute_function(
    fn: Callable[..., Any],
    *,
    enter: Callable[[], T],
    results: Callable[[Any, T], Iterator[Any]],
) -> Callable[..., Any]:
    """Return the generator function that Dagster computes with in place of a user's function.

    It has the signature of `fn`, so inputs, config, resources and `context` stay what they are, and it is
    asynchronous where `fn` is.

    Args:
        fn: The user's function.
        enter: Called before it; its result is passed on to `results`.
        results: Given what the function returned, the events that Dagster is to store, in order.
    """
    signature = dagster_signature(fn)
    # Any, because a function has attributes that its type does not.
    compute: Any
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def compute_async(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            entered = enter()
            for result in results(await fn(*args, **kwargs), entered):
                yield result

        compute = compute_async
    else:

        @functools.wraps(fn)
        def compute_sync(*args: Any, **kwargs: Any) -> Iterator[Any]:
            entered = enter()
            yield from results(fn(*args, **kwargs), entered)

        compute = compute_sync
    # Dagster reads both: the signature for parameters, the annotations for their types.
    compute.__signature__ = signature
    compute.__annotations__ = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if parameter.annotation is not inspect.Parameter.empty
    }
    # `inspect` and `typing` would otherwise look through to the undecorated function.
    del compute.__wrapped__
    generator: Callable[..., Any] = compute
    return generator


def _resolved(fn: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    annotation = parameter.annotation
    if not isinstance(annotation, str):
        return annotation
    # Resolved one by one, so that an annotation that Dagster never reads (of the returned value) is free
    # to name what is imported for type checkers only.
    holder = type("Annotated", (), {"__annotations__": {"annotation": annotation}})
    source = inspect.unwrap(fn)
    try:
        return typing.get_type_hints(
            holder,
            globalns=getattr(source, "__globals__", {}),
            localns=inspect.getclosurevars(source).nonlocals
            if inspect.isfunction(source)
            else None,
            include_extras=True,
        )["annotation"]
    except Exception as error:
        raise InvalidFunctionError(
            f"The annotation '{annotation}' of parameter '{parameter.name}' of '{fn.__name__}' cannot be "
            f"resolved: {error}. Dagster and the IO manager read it at run time, so import its names outside "
            "`if TYPE_CHECKING:`."
        ) from error


def _polars_annotation(annotation: Any) -> Any:
    """Replace Dataframely's frame types, also inside `dict[str, ...]`, `Optional` and `Annotated`."""
    origin = typing.get_origin(annotation)
    if annotation is dy.DataFrame or origin is dy.DataFrame:
        return pl.DataFrame
    if annotation is dy.LazyFrame or origin is dy.LazyFrame:
        return pl.LazyFrame
    arguments = typing.get_args(annotation)
    if origin is None or not arguments:
        return annotation
    replaced = tuple(_polars_annotation(argument) for argument in arguments)
    if replaced == arguments:
        return annotation
    if isinstance(annotation, type(int | str)):
        return typing.Union[replaced]  # noqa: UP007 - built from a tuple
    return annotation.copy_with(replaced) if hasattr(annotation, "copy_with") else origin[replaced]


def unwrap_result(
    value: Any, *, asset: dg.AssetKey
) -> tuple[Frame | None, dg.MaterializeResult[Any] | None]:
    """Return the frame of what a function returned, with the result it came in.

    Args:
        value: What the function returned.
        asset: The key of the asset, for messages.

    Returns:
        The frame or None, and the `dg.MaterializeResult` around it, if there is one.

    Raises:
        InvalidReturnError: It is something else, or a result that says what the package has to say.
    """
    if value is None or is_frame(value):
        return value, None
    subject = f"The function of asset '{asset.to_user_string()}' returned"
    if not isinstance(value, dg.MaterializeResult):
        raise InvalidReturnError(
            f"{subject} {described_value(value)}. It may return {_ALLOWED_RETURNS}."
        )
    if value.asset_key is not None:
        raise InvalidReturnError(
            f"{subject} a dg.MaterializeResult with asset_key '{value.asset_key.to_user_string()}'. Leave "
            "`asset_key` out: the asset has one key."
        )
    if value.check_results:
        names = ", ".join(f"'{result.check_name}'" for result in value.check_results)
        raise InvalidReturnError(
            f"{subject} a dg.MaterializeResult with check_results ({names}). Leave them out: the schema's "
            "checks are reported for you; declare a check of your own with @dg.asset_check."
        )
    if not is_frame(value.value):
        # Dagster marks a result without a value by an object of its own.
        has_value = value.value is not dg.MaterializeResult().value
        around = f"around {described_value(value.value)}" if has_value else "without a value"
        raise InvalidReturnError(
            f"{subject} a dg.MaterializeResult {around}. Give it a pl.DataFrame or a pl.LazyFrame, "
            "`dg.MaterializeResult(value=frame)`, or return None to write nothing."
        )
    return value.value, value


def described_value(value: object) -> str:
    """Return a value's kind with its article, for messages."""
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
