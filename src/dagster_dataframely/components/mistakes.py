"""Mistakes in the attributes of a component, said in sentences with file and line.

Dagster reads attributes in three steps: the YAML must have the attributes' form, templates and references
are resolved, and the results must have the attributes' types. Pydantic and Dagster find the mistakes; here
each becomes one line that says where it is, what was found, what is allowed, and the nearest name.
"""

from __future__ import annotations

import difflib
import functools
import re
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType, UnionType
from typing import Annotated, Any, TypeVar, Union

import dagster as dg
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from dagster_dataframely.errors import DataframelyError
from dagster_dataframely.upstream.dagster_components import (
    ResolutionException,
    YamlPath,
    located_error,
    with_cause_first,
)

T = TypeVar("T")

_SHOWN_LENGTH = 60


@dataclass(frozen=True)
class Mistake:
    """One mistake: where it stands below the attributes, and a sentence about it."""

    path: tuple[str | int, ...]
    sentence: str


# --- raising -----------------------------------------------------------------------------------------


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
    here = str(Path(__file__).parent.parent)
    for frame in _frames(traceback):
        filename = frame.tb_frame.f_code.co_filename
        if not filename.startswith(here) and "importlib" not in filename:
            return frame
    return traceback


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


# --- finding -----------------------------------------------------------------------------------------


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


class MistakesFound(Exception):  # noqa: N818 - it carries them to where their place is known
    """Mistakes, on their way to where the file is known."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


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


def is_template(value: str) -> bool:
    """Return whether a string has something for Dagster to render."""
    return "{{" in value or "{%" in value


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


# --- sentences ---------------------------------------------------------------------------------------


def mistakes_of(
    error: ValidationError,
    written: object,
    model: type[BaseModel] | None,
    *,
    name: str = "",
) -> tuple[Mistake, ...]:
    """Turn what Pydantic found into sentences.

    Args:
        error: What Pydantic found.
        written: The value that was validated.
        model: The model it was validated with, to know which names are allowed.
        name: What the value is called, where it is not an attribute of a model.
    """
    found = [_Found(tuple(each["loc"]), each) for each in error.errors(include_url=False)]
    return tuple(_mistakes(found, written, _Place((), name, model, model)))


@dataclass(frozen=True)
class _Found:
    """One of Pydantic's errors, and how far below the value at hand it is."""

    below: tuple[int | str, ...]
    error: Any


@dataclass(frozen=True)
class _Place:
    """A value at hand: its path, its name, the model that describes it, and the model of everything."""

    path: tuple[str | int, ...]
    name: str
    model: type[BaseModel] | None
    root: type[BaseModel] | None

    def child(self, key: str | int) -> _Place:
        field = self.model.model_fields.get(str(key)) if self.model else None
        models = _models_in(field.annotation) if field else []
        model = models[0] if len(models) == 1 else None
        name = f"{self.name}[{key}]" if isinstance(key, int) else str(key)
        return _Place((*self.path, key), name, model, self.root)

    def branch(self, tag: str, models: Iterable[type[BaseModel]]) -> _Place:
        """The same value, read as one of the types that it may have."""
        model = next((model for model in models if model.__name__ == tag), self.model)
        return _Place(self.path, self.name, model, self.root)


def _mistakes(
    found: Sequence[_Found], value: Any, place: _Place, models: Sequence[type[BaseModel]] = ()
) -> Iterator[Mistake]:
    branches: dict[str, list[_Found]] = {}
    children: dict[str | int, list[_Found]] = {}
    for each in found:
        about_a_name = each.error["type"] in ("extra_forbidden", "missing") and len(each.below) == 1
        if not each.below or about_a_name:
            yield _mistake(each, place)
            continue
        head, *rest = each.below
        step = children if _has(value, head) else branches
        step.setdefault(head, []).append(_Found(tuple(rest), each.error))  # type: ignore[arg-type]
    if branches:
        tag, chosen = _best_branch(branches)
        yield from _mistakes(
            chosen, value, place.branch(tag, models or _all_models(place.root)), models
        )
    for key, below in children.items():
        yield from _mistakes(below, value[key], place.child(key))


def _has(value: Any, key: str | int) -> bool:
    if isinstance(value, Mapping):
        return key in value
    return isinstance(key, int) and isinstance(value, Sequence) and key < len(value)


def _best_branch(branches: Mapping[str, list[_Found]]) -> tuple[str, list[_Found]]:
    """Choose which of the types that a value may have the writer most likely meant.

    A string was not meant where something else was written. Among partitions and the like, the one whose
    `type` was written was meant; where it is nobody's `type`, that is the mistake.
    """
    meant = {tag: found for tag, found in branches.items() if tag != "str"} or dict(branches)
    discriminators = {
        tag: [
            each
            for each in found
            if each.error["type"] == "literal_error" and each.below == ("type",)
        ]
        for tag, found in meant.items()
    }
    if len(meant) > 1 and all(discriminators.values()):
        first_tag = next(iter(meant))
        expected = [
            each.error["ctx"]["expected"] for found in discriminators.values() for each in found
        ]
        first = discriminators[first_tag][0]
        merged = {**first.error, "ctx": {"expected": ", ".join(expected)}}
        return first_tag, [_Found(first.below, merged)]
    tag = min(meant, key=lambda tag: (bool(discriminators[tag]), len(meant[tag])))
    return tag, meant[tag]


def _mistake(found: _Found, place: _Place) -> Mistake:
    kind = found.error["type"]
    if kind == "extra_forbidden":
        name = str(found.below[0])
        return Mistake((*place.path, name), _unknown_name(name, place))
    if kind == "missing":
        name = str(found.below[0])
        return Mistake(place.path, _missing_name(name, place))
    return Mistake(place.path, _wrong_value(found.error, place))


def _unknown_name(name: str, place: _Place) -> str:
    names = list(place.model.model_fields) if place.model else []
    where = "" if not place.name else f" in `{place.name}`"
    sentence = f"There is no attribute `{name}`{where}."
    elsewhere = _places_of(name, place)
    if elsewhere:
        return f"{sentence} It belongs {elsewhere}."
    nearest = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean `{nearest[0]}`?" if nearest else ""
    allowed = ", ".join(f"`{each}`" for each in names)
    return f"{sentence}{hint} Allowed are {allowed}."


def _places_of(name: str, place: _Place) -> str | None:
    """Say where an attribute belongs that stands at the wrong depth, such as `group_name` beside `asset`."""
    if place.root is None:
        return None
    if name in place.root.model_fields and place.model is not place.root:
        return (
            f"one level up, beside `{place.path[0]}`"
            if len(place.path) == 1
            else "directly under `attributes`"
        )
    for parent, field in place.root.model_fields.items():
        models = _models_in(field.annotation)
        if len(models) == 1 and models[0] is not place.model and name in models[0].model_fields:
            return f"under `{parent}`"
    return None


def _missing_name(name: str, place: _Place) -> str:
    field = place.model.model_fields.get(name) if place.model else None
    where = "" if not place.name else f" in `{place.name}`"
    sentence = f"The attribute `{name}` is missing{where}."
    if field is None or not field.examples:
        return sentence
    return f"{sentence} Write, for example, `{name}: {field.examples[0]}`."


def unknown_parameter(name: str, function: str, parameters: Sequence[str]) -> str:
    """Say that `ins` names a parameter that the function does not have."""
    nearest = difflib.get_close_matches(name, parameters, n=1)
    hint = f" Did you mean `{nearest[0]}`?" if nearest else ""
    takes = ", ".join(f"`{each}`" for each in parameters) or "no parameters"
    return f"`ins` names `{name}`, which is no parameter of {function}. It takes {takes}.{hint}"


_A_MAPPING = "is a mapping"

# By the first word of the kind of error that Pydantic reports, such as `bool_parsing` and `bool_type`.
_ALLOWED = {
    "bool": "are true and false",
    "int": "is a whole number",
    "float": "is a number",
    "string": "is text",
    "list": "is a list",
    "tuple": "is a list",
    "sequence": "is a list",
    "set": "is a list",
    "dict": _A_MAPPING,
    "mapping": _A_MAPPING,
    "model": _A_MAPPING,
}


def _wrong_value(error: Mapping[str, Any], place: _Place) -> str:
    kind, context = error["type"], error.get("ctx") or {}
    shown = _short(error["input"])
    sentence = f"`{place.name}` is {shown}."
    if kind in ("literal_error", "enum"):
        choices = re.findall(r"'([^']*)'", context["expected"])
        nearest = difflib.get_close_matches(str(error["input"]), choices, n=1)
        hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
        listed = ", ".join(f"'{choice}'" for choice in dict.fromkeys(choices))
        return f"{sentence} Allowed are {listed}.{hint}"
    if kind == "greater_than_equal":
        return f"{sentence} Allowed is a whole number from {context['ge']}."
    if kind == "is_instance_of":
        wanted = context["class"].rpartition(".")[2]
        return f"{sentence} Allowed is a template that gives {_a(wanted)}, `{{{{ ... }}}}`."
    if kind in ("value_error", "assertion_error"):
        return f"{sentence} {context['error']}"
    allowed = _ALLOWED.get(kind.partition("_")[0])
    if allowed is None:
        return f"{sentence} {error['msg']}."
    if allowed == _A_MAPPING and place.model is not None:
        allowed += " of " + ", ".join(f"`{name}`" for name in place.model.model_fields)
    return f"{sentence} Allowed {allowed}."


def _short(value: object) -> str:
    """Show a value as YAML has it, cut where it is long."""
    yaml_words = ((True, "true"), (False, "false"), (None, "empty"))
    text = next((word for known, word in yaml_words if value is known), repr(value))
    return text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 3]}..."


def _a(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in typing.get_args(annotation) for model in _models_in(argument)]


def _all_models(root: type[BaseModel] | None) -> list[type[BaseModel]]:
    if root is None:
        return []
    models = [root]
    for model in models:
        for field in model.model_fields.values():
            models += [each for each in _models_in(field.annotation) if each not in models]
    return models
