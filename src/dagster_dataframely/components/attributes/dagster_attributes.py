"""Dagster's own attributes of an asset and of the step that computes it, by Dagster's own types."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import dagster as dg
from pydantic import BaseModel, Field, ValidationError

from dagster_dataframely.components.attributes.located import located
from dagster_dataframely.components.attributes.mistakes import Mistake, MistakesFound, mistakes_of
from dagster_dataframely.components.attributes.own_attributes import Count
from dagster_dataframely.components.attributes.templates import is_template, render
from dagster_dataframely.components.attributes.written import (
    admits_text,
    read_attributes,
    validate_type,
)
from dagster_dataframely.upstream.dagster_components import (
    AssetSpecUpdateKwargs,
    OpSpec,
    resolve_asset_attributes,
)

ModelT = TypeVar("ModelT", bound=BaseModel)


def _resolve_asset(context: dg.ResolutionContext, attributes: Any) -> Mapping[str, Any]:
    """Resolve the asset attributes that were written, and hold each against its type."""
    attributes = _rendered(context, attributes, "asset", AssetSpecUpdateKwargs)
    if attributes is None:
        return {}
    resolved = {
        name: _text_as_written(name, value, getattr(attributes, name))
        for name, value in resolve_asset_attributes(context, attributes).items()
    }
    key = resolved.get("key") or dg.AssetKey("this_asset")
    mistakes = [
        mistake for name, value in resolved.items() for mistake in _asset_mistakes(name, value, key)
    ]
    if mistakes:
        raise MistakesFound(mistakes)
    return resolved


def _text_as_written(name: str, value: Any, written: Any) -> Any:
    """Return text where text is wanted: Dagster renders `code_version: "1.10"` to the number 1.1."""
    if isinstance(value, str) or not admits_text(_asset_attribute_types()[name]):
        return value
    if isinstance(written, str) and not is_template(written):
        return written
    return str(value) if isinstance(value, (int, float)) else value


def _asset_mistakes(name: str, value: Any, key: Any) -> Iterator[Mistake]:
    wrong_type = validate_type(_asset_attribute_types()[name], value, (name,))
    yield from wrong_type
    if wrong_type:
        return
    if name == "key" and isinstance(value, dg.AssetKey) and not _can_name_a_step(value):
        yield Mistake(
            (name,),
            f"`key` is '{value.to_user_string()}'. Allowed are letters, digits, '_', '-' and '.', in parts "
            "that are separated by '/'.",
        )
    if name == "skippable" and value is False:
        yield Mistake(
            (name,),
            "`skippable` is false. A function that returns None writes nothing, so the asset is always "
            "skippable; remove the attribute.",
        )
    if name in _spec_attributes():
        try:
            dg.AssetSpec(key, **{name: value})
        except Exception as error:
            yield Mistake((name,), f"`{name}` is refused by Dagster: {str(error).splitlines()[0]}")


def _can_name_a_step(key: dg.AssetKey) -> bool:
    return all(key.path) and re.fullmatch(r"[A-Za-z0-9_]+", key.to_python_identifier()) is not None


@functools.cache
def _asset_attribute_types() -> Mapping[str, Any]:
    return typing.get_type_hints(AssetSpecUpdateKwargs, include_extras=True)


@functools.cache
def _spec_attributes() -> frozenset[str]:
    return frozenset(inspect.signature(dg.AssetSpec.__new__).parameters) - {"key"}


def _resolve_op(context: dg.ResolutionContext, op: Any) -> OpSpec | None:
    """Resolve the attributes of the step."""
    op = _rendered(context, op, "op", OpSpec)
    if op is None or isinstance(op, OpSpec):
        return op
    resolved = _resolved(context, op, OpSpec)
    if resolved.name is not None:
        raise MistakesFound(
            [
                Mistake(
                    ("name",),
                    "Dagster names the step of an asset after the asset's key; remove `name`.",
                )
            ]
        )
    if resolved.description is not None:
        raise MistakesFound(
            [
                Mistake(
                    ("description",),
                    "The step shows the asset's description; write it under `asset`.",
                )
            ]
        )
    return resolved


class RetryPolicyAttributes(dg.Resolvable, dg.Model):
    """What `dg.RetryPolicy` takes."""

    max_retries: Annotated[
        Count | None,
        dg.Resolver.default(
            description="How often a failed step is tried again, once by default.", examples=[3]
        ),
    ] = None
    delay: Annotated[
        Annotated[float, Field(ge=0)] | None,
        dg.Resolver.default(description="Seconds to wait before trying again.", examples=[10]),
    ] = None
    backoff: Annotated[
        Literal["linear", "exponential"] | None,
        dg.Resolver.default(
            description="How the delay grows from one try to the next.", examples=["exponential"]
        ),
    ] = None
    jitter: Annotated[
        Literal["full", "plus_minus"] | None,
        dg.Resolver.default(
            description="How the delay is varied, so that failed runs do not all return at once.",
            examples=["plus_minus"],
        ),
    ] = None


def _resolve_retry_policy(context: dg.ResolutionContext, policy: Any) -> dg.RetryPolicy | None:
    """Make Dagster's retry policy of its attributes."""
    policy = _rendered(context, policy, "retry_policy", RetryPolicyAttributes, dg.RetryPolicy)
    if policy is None or isinstance(policy, dg.RetryPolicy):
        return policy
    read = _resolved(context, policy, RetryPolicyAttributes)
    for name in ("backoff", "jitter"):
        if read.delay is None and getattr(read, name) is not None:
            sentence = f"`{name}` changes the delay, and there is none. Set `delay` too."
            raise MistakesFound([Mistake((name,), sentence)])
    return dg.RetryPolicy(
        max_retries=1 if read.max_retries is None else read.max_retries,
        delay=read.delay,
        backoff=dg.Backoff[read.backoff.upper()] if read.backoff else None,
        jitter=dg.Jitter[read.jitter.upper()] if read.jitter else None,
    )


def _rendered(
    context: dg.ResolutionContext,
    written: Any,
    name: str,
    described_by: type[dg.Resolvable],
    *finished: type,
) -> Any:
    """Return the model of a block of attributes, which a template may give as a mapping or finished.

    Raises:
        MistakesFound: The template gave something else, or a mapping with mistakes.
    """
    model = described_by.model()
    value = render(context, written)
    if isinstance(value, Mapping):
        return read_attributes(model, value)
    if value is None or isinstance(value, (model, described_by, *finished)):
        return value
    sentence = f"`{name}` is {value!r}. Allowed is a mapping, or a template that gives one."
    raise MistakesFound([Mistake((), sentence)])


def _resolved(context: dg.ResolutionContext, model: BaseModel, to: type[ModelT]) -> ModelT:
    """Resolve a block of attributes, and say what is wrong with the types of what templates gave."""
    try:
        resolved = to.resolve_from_model(context, model)  # type: ignore[attr-defined]
    except ValidationError as error:
        written = model.model_dump(exclude_unset=True)
        raise MistakesFound(mistakes_of(error, written, to)) from None
    assert isinstance(resolved, to)
    return resolved


AssetAttribute: TypeAlias = Annotated[
    Mapping[str, Any] | None,
    dg.Resolver(
        located(_resolve_asset),
        model_field_type=AssetSpecUpdateKwargs.model() | None,
        inject_before_resolve=False,
        description="Dagster's own asset attributes. `key` is the function's name by default.",
        examples=[{"key": "sales/orders", "group_name": "sales", "owners": ["team:sales"]}],
        form_config=dg.ComponentFormConfig(label="Asset"),
    ),
]

OpAttribute: TypeAlias = Annotated[
    OpSpec | None,
    dg.Resolver(
        located(_resolve_op),
        model_field_type=OpSpec.model() | None,
        inject_before_resolve=False,
        description="How the step runs: its concurrency pool, its tags, its backfill policy.",
        examples=[{"pool": "warehouse", "tags": {"team": "sales"}}],
        form_config=dg.ComponentFormConfig(label="Step"),
    ),
]

RetryPolicyAttribute: TypeAlias = Annotated[
    dg.RetryPolicy | None,
    dg.Resolver(
        located(_resolve_retry_policy),
        model_field_type=RetryPolicyAttributes.model() | None,
        inject_before_resolve=False,
        description="How often, and after what delay, a failed step is tried again.",
        examples=[{"max_retries": 3, "delay": 10, "backoff": "exponential"}],
        form_config=dg.ComponentFormConfig(label="Retry policy"),
    ),
]


def _asset_attribute(name: str) -> Any:
    """Return the type that Dagster gives an attribute of an asset, with how it is read from YAML."""
    return typing.get_type_hints(AssetSpecUpdateKwargs, include_extras=True)[name]


PartitionsDefAttribute: Any = _asset_attribute("partitions_def")
AutomationConditionAttribute: Any = _asset_attribute("automation_condition")
