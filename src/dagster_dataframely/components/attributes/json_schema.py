"""The JSON schema of a component's attributes, written so that its errors name the mistake.

Dagster lets a template string stand for every attribute, so its schema says "this type, or any string".
A validator then takes `filter: maybe` for a template, and where neither fits, as with an unknown name in
`asset:`, says only that nothing fits. Here a string has to be a template, and whatever is no template is
held against the attribute's own type, so that `dg check yaml` and editors point at the mistake itself.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

JsonSchema: TypeAlias = dict[str, Any]

_NULL: JsonSchema = {"type": "null"}
_TEXT: JsonSchema = {"type": "string"}
_TEMPLATE: JsonSchema = {"type": "string", "pattern": r"\{\{|\{%"}


def attributes_schema(schema: JsonSchema, *, text: Collection[str] = ()) -> JsonSchema:
    """Return a schema that allows the same, whose errors name the mistake.

    Args:
        schema: What Pydantic generates for the model that Dagster derives.
        text: Attributes that may be plain text although they may be something else too.

    Returns:
        The schema, with nothing to be looked up under `$defs`. A schema that contains itself, as that of a
        subclass may, cannot be written so and stays as it is.
    """
    try:
        return _precise_attributes(schema, text)
    except RecursionError:
        return schema


def _precise_attributes(schema: JsonSchema, text: Collection[str]) -> JsonSchema:
    definitions = schema.get("$defs", {})
    top = {key: value for key, value in schema.items() if key != "$defs"}
    properties = {
        name: _precise(value, definitions, is_text=name in text)
        for name, value in top.pop("properties", {}).items()
    }
    return _listing_names({**top, "properties": properties})


def _precise(schema: Any, definitions: JsonSchema, *, is_text: bool = False) -> Any:
    if isinstance(schema, list):
        return [_precise(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        referred = definitions[schema["$ref"].rpartition("/")[2]]
        return {**_precise(referred, definitions), **_precise(siblings, definitions)}
    if "properties" in schema:
        properties = {
            name: _precise(value, definitions) for name, value in schema["properties"].items()
        }
        return _listing_names({**schema, "properties": properties})
    precise = {key: _precise(value, definitions) for key, value in schema.items()}
    if "anyOf" in precise:
        return _template_or_value(precise, is_text=is_text)
    return precise


def _listing_names(schema: JsonSchema) -> JsonSchema:
    """Let the error about an unknown name list the known ones."""
    if schema.get("additionalProperties") is not False:
        return schema
    return {**schema, "propertyNames": {"enum": list(schema["properties"])}}


def _template_or_value(schema: JsonSchema, *, is_text: bool) -> JsonSchema:
    """Hold what is no template against the attribute's own type.

    The keys of a mapping move up beside the condition. Elsewhere the alternatives stay as Dagster wrote
    them, because its form editor chooses the input by them.
    """
    *values, last = [each for each in _flat(schema["anyOf"]) if each != _NULL]
    if last == _TEXT and not values:
        return {"allOf": [{"if": _NULL, "else": _TEXT}], **schema}
    if is_text or last != _TEXT or _TEXT in values:
        return schema
    if len(values) > 1:
        return {"allOf": [_unless_template(_chosen_by_type(values))], **schema}
    value = values[0]
    if not _is_mapping(value):
        return {"allOf": [_unless_template(value)], **schema}
    keys = {key: each for key, each in value.items() if key != "type"}
    rest = {key: each for key, each in schema.items() if key not in ("anyOf", "default")}
    return {"allOf": [_unless_template({"type": "object"})], **keys, **rest}


def _unless_template(schema: JsonSchema) -> JsonSchema:
    return {"if": {"anyOf": [_TEMPLATE, _NULL]}, "else": schema}


def _chosen_by_type(variants: list[JsonSchema]) -> JsonSchema:
    """Hold a mapping against the variant whose `type` it has, as a `daily` partitions definition."""
    by_type = {
        variant["properties"]["type"]["const"]: variant
        for variant in variants
        if "const" in variant.get("properties", {}).get("type", {})
    }
    if len(by_type) < len(variants):
        return {"anyOf": variants}
    conditions = [
        {"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": variant}
        for name, variant in by_type.items()
    ]
    return {
        "type": "object",
        "properties": {"type": {"enum": list(by_type)}},
        "allOf": conditions,
    }


def _is_mapping(schema: JsonSchema) -> bool:
    return schema.get("type") == "object"


def _flat(variants: list[JsonSchema]) -> list[JsonSchema]:
    """Take alternatives within alternatives out, in order."""
    flat: list[JsonSchema] = []
    for variant in variants:
        flat += _flat(variant["anyOf"]) if set(variant) == {"anyOf"} else [variant]
    return flat
