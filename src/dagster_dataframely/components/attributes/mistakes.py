"""Mistakes in the attributes of a component, in sentences.

Pydantic finds them; here each becomes one line that says what was found, what is allowed, and the nearest
name.
"""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

_SHOWN_LENGTH = 60


@dataclass(frozen=True)
class Mistake:
    """One mistake: where it stands below the attributes, and a sentence about it."""

    path: tuple[str | int, ...]
    sentence: str


class MistakesFound(Exception):  # noqa: N818 - it carries them to where their place is known
    """Mistakes, on their way to where the file is known."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


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

    def branch(self, tag: str) -> _Place:
        """The same value, read as one of the types that it may have."""
        models = _all_models(self.root)
        model = next((model for model in models if model.__name__ == tag), self.model)
        return _Place(self.path, self.name, model, self.root)


def _mistakes(found: Sequence[_Found], value: Any, place: _Place) -> Iterator[Mistake]:
    """Follow each error down the value.

    A part of Pydantic's path that is no key of the value names one of the types that it may have.
    """
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
        yield from _mistakes(chosen, value, place.branch(tag))
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
    "dict": _A_MAPPING,
    "mapping": _A_MAPPING,
    "model": _A_MAPPING,
}


def _wrong_value(error: Mapping[str, Any], place: _Place) -> str:
    kind, context = error["type"], error.get("ctx") or {}
    shown = _short(error["input"])
    sentence = f"`{place.name}` is {shown}."
    if kind == "literal_error":
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
