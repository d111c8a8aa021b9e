"""Raising errors with file and line in their first line, which is the one that people read."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import dagster as dg
from pydantic import BaseModel, ValidationError

from dagster_dataframely.components.attributes.mistakes import Mistake, MistakesFound, mistakes_of
from dagster_dataframely.errors import DataframelyError
from dagster_dataframely.upstream.dagster_components import (
    ResolutionException,
    YamlPath,
    located_error,
    with_cause_first,
)

T = TypeVar("T")


def located(resolve: Callable[[dg.ResolutionContext, Any], T]) -> Callable[..., T]:
    """Make a resolver's errors say in their first line where the attribute stands and what is wrong."""

    @functools.wraps(resolve)
    def resolver(context: dg.ResolutionContext, value: Any) -> T:
        try:
            return resolve(context, value)
        except Exception as error:
            raise_located(context, error, written=value)

    return resolver


def raise_located(
    context: dg.ResolutionContext,
    error: Exception,
    *,
    written: object = None,
    model: type[BaseModel] | None = None,
    path: YamlPath = (),
) -> typing.NoReturn:
    """Raise an error again, with the place of the attribute it is about in its first line.

    Args:
        context: The context of the attribute, or of what contains it.
        error: What was raised.
        written: The value in the YAML file.
        model: The model that the value was validated with, where it was.
        path: From the context's value down to the attribute.

    Raises:
        ResolutionException: Always. The error of somebody else's code is its cause, with their traceback.
    """
    if isinstance(error, ResolutionException):
        located = with_cause_first(error, context)
        raise located.with_traceback(None) from error.__cause__
    if isinstance(error, MistakesFound):
        raise_mistakes(context, error.mistakes)
    if isinstance(error, ValidationError):
        raise_mistakes(context, mistakes_of(error, written, model))
    if isinstance(error, DataframelyError) and error.__cause__ is None:
        raise located_error(context, str(error), path) from None
    error.__traceback__ = _outside_this_package(error.__traceback__)
    raise located_error(context, _foreign_sentence(error), path) from error


def raise_mistakes(context: dg.ResolutionContext, mistakes: Sequence[Mistake]) -> typing.NoReturn:
    """Raise all mistakes of a component at once; the first line of the message is the first of them.

    Raises:
        ResolutionException: Always.
    """
    errors = [located_error(context, mistake.sentence, mistake.path) for mistake in mistakes]
    raise ResolutionException("\n".join(str(error) for error in errors)) from None


def _foreign_sentence(error: Exception) -> str:
    if isinstance(error, DataframelyError):
        return str(error)
    first_line = next(iter(str(error).strip().splitlines()), "")
    frames = list(_frames(error.__traceback__))
    code = frames[-1].tb_frame.f_code if frames else None
    # Where the last frame is nobody's whose file the reader has, the message has to do.
    if code is None or "site-packages" in code.co_filename or code.co_filename.startswith("<"):
        return f"{type(error).__name__}: {first_line}"
    line = frames[-1].tb_lineno
    return f"{type(error).__name__} in {Path(code.co_filename).name}, line {line}: {first_line}"


def _outside_this_package(traceback: TracebackType | None) -> TracebackType | None:
    """Drop the frames that lead to the user's code: this package's own, and those of the import system."""
    here = str(Path(__file__).parents[2])
    for frame in _frames(traceback):
        filename = frame.tb_frame.f_code.co_filename
        if not filename.startswith(here) and "importlib" not in filename:
            return frame
    return traceback


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
