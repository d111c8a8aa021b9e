"""Holding attributes as they were written, and as they were resolved, against their types.

Dagster lets a string stand for every attribute, because it may be a template. What is no template is
validated here as if it could not be a string, and what a template gave by `validate_type`.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Collection, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from dagster_dataframely.components.attributes.mistakes import Mistake, MistakesFound, mistakes_of
from dagster_dataframely.components.attributes.templates import is_template


def read_attributes(
    model: type[BaseModel], written: Mapping[str, Any], *, text: Collection[str] = ()
) -> BaseModel:
    """Validate the attributes as they were written.

    Args:
        model: The model that Dagster derives, in which every attribute may also be a template string.
        written: The attributes.
        text: Attributes that may be plain text although they may be something else too.

    Returns:
        The model of the attributes.

    Raises:
        MistakesFound: With all mistakes.
    """
    try:
        read = model.model_validate(written)
    except ValidationError as error:
        raise MistakesFound(mistakes_of(error, written, model)) from None
    mistakes = tuple(_plain_text_mistakes(read, exempt=text))
    if mistakes:
        raise MistakesFound(mistakes)
    return read


def validate_type(annotation: Any, value: Any, path: tuple[str | int, ...]) -> tuple[Mistake, ...]:
    """Return what is wrong with the type of a value that has been resolved."""
    try:
        _adapter(annotation).validate_python(value)
    except ValidationError as error:
        return tuple(
            Mistake((*path, *mistake.path), mistake.sentence)
            for mistake in mistakes_of(error, value, None, name=str(path[-1]))
        )
    return ()


@functools.cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))


def template_alternative(annotation: Any) -> Any | None:
    """Return the type without the string that stands for a template, or None where text is a value.

    Dagster adds `str` last to the type of every attribute, so that it can be a template.
    """
    if not _is_union(annotation):
        return None
    *others, last = typing.get_args(annotation)
    if last is not str or all(other is type(None) for other in others):
        return None
    if any(admits_text(other) for other in others):
        return None
    return Union[tuple(others)]  # noqa: UP007 - built from a tuple


def admits_text(annotation: Any) -> bool:
    """Return whether plain text is a value of a type."""
    if typing.get_origin(annotation) is Annotated or _is_union(annotation):
        return any(admits_text(argument) for argument in typing.get_args(annotation))
    return annotation is str


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (Union, UnionType)


def _plain_text_mistakes(
    read: BaseModel, *, exempt: Collection[str] = (), path: tuple[str | int, ...] = ()
) -> Iterator[Mistake]:
    """Yield strings that are no template, where only a template may be a string.

    Dagster would take `deps: raw/customers` apart into its letters, and count `filter: maybe` as true.
    """
    for name in read.model_fields_set:
        value = getattr(read, name)
        if isinstance(value, BaseModel):
            yield from _plain_text_mistakes(value, path=(*path, name))
        if not isinstance(value, str) or is_template(value) or name in exempt:
            continue
        alternative = template_alternative(type(read).model_fields[name].annotation)
        if alternative is not None:
            yield from validate_type(alternative, value, (*path, name))
