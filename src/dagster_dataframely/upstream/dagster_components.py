"""What Dagster's own components use to read YAML, of which Dagster promises only a part.

Used here, and not promised: the attribute models `AssetSpecUpdateKwargs` and `OpSpec` with the function that
resolves the first; `ResolutionException`, the one error that a resolver may raise without Dagster putting its
own traceback around it, and how its message is laid out; the tree of source positions that a
`ResolutionContext` and a declaration carry; and the load context that a `ResolutionContext` keeps.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import dagster as dg
from dagster.components.resolved.core_models import (
    AssetSpecUpdateKwargs,
    OpSpec,
    resolve_asset_spec_update_kwargs_to_mapping,
)
from dagster.components.resolved.errors import ResolutionException
from dagster_shared.yaml_utils.source_position import SourcePositionTree

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "AssetSpecUpdateKwargs",
    "OpSpec",
    "ResolutionException",
    "YamlPath",
    "context_at",
    "context_of_build",
    "defs_folder_module",
    "located_error",
    "resolve_asset_attributes",
    "with_cause_first",
]

#: Keys and list positions from the top of a YAML document down to a value.
YamlPath: TypeAlias = Sequence[str | int]


def resolve_asset_attributes(
    context: dg.ResolutionContext, attributes: BaseModel
) -> Mapping[str, Any]:
    """Return the asset attributes that were written, their templates rendered."""
    return resolve_asset_spec_update_kwargs_to_mapping(context, attributes)


def context_at(context: dg.ResolutionContext, path: YamlPath) -> dg.ResolutionContext:
    """Return the context of a value that lies below the context's own value."""
    for part in path:
        context = context.at_path(part)
    return context


def context_of_build(context: dg.ComponentLoadContext) -> dg.ResolutionContext | None:
    """Return a context that knows where a component's attributes stand, while it builds its definitions.

    Dagster hands `build_defs` a context without source positions; the declaration still has them. None
    where the component was not declared in YAML.
    """
    tree = getattr(context.component_decl, "source_tree", None)
    positions = getattr(tree, "source_position_tree", None)
    # A tree that Dagster builds for tests has a mock in its place.
    if not isinstance(positions, SourcePositionTree):
        return None
    resolution = context.resolution_context.with_source_position_tree(positions)
    return context_at(resolution, ["attributes"])


def defs_folder_module(context: dg.ResolutionContext) -> str | None:
    """Return the name of the module that is a component's folder, or None where it has no folder.

    A component that was built in a test, or in Dagster's app, has none.
    """
    load_context = context.stash.get("component_load_context")
    loc = getattr(load_context, "component_loc", None)
    # Not `defs_module_name`: that is the module of the whole `defs` folder.
    if load_context is None or not hasattr(loc, "file_path"):
        return None
    path = load_context.path
    folder = path.parent if path.is_file() else path
    return str(load_context.defs_relative_module_name(folder))


def located_error(
    context: dg.ResolutionContext, message: str, path: YamlPath = ()
) -> ResolutionException:
    """Return an error whose first line says where in a YAML file the mistake is, and what it is.

    Args:
        context: The context of the value, or of one that contains it.
        message: What is wrong, in one line.
        path: From the context's own value down to the mistake.

    Returns:
        The error, to be raised by the caller. Its message goes on with the lines of the file.
    """
    full_path = context_at(context, path).path
    tree = context.source_position_tree
    if tree is None:
        where = ".".join(str(part) for part in full_path)
        return ResolutionException(f"{where}: {message}" if where else message)
    source = tree.source_error(yaml_path=full_path, inline_error_message="here", value_error=False)
    return ResolutionException(
        f"{source.file_name}:{source.start_line_no} - {source.location}: {message}\n{source.snippet}\n"
    )


def with_cause_first(
    error: ResolutionException, context: dg.ResolutionContext
) -> ResolutionException:
    """Return an error of Dagster's own resolvers with place and cause in its first line.

    Dagster puts the place in the first line, what happened beside the caret in the lines of the file, and
    below that the traceback of its own resolver, which says nothing about the file. Where a template asks
    for an environment variable that is not set, it says no place at all.
    """
    first, _, rest = str(error).partition("\n")
    if " - attributes" not in first and context.source_position_tree is not None:
        return located_error(context, first)
    if not re.fullmatch(r".+:\d+ - \S*", first):
        return error
    beside_caret = re.search(r"^ *\| +\^ (.+)$", rest, re.MULTILINE)
    undefined = re.search(r"^UndefinedError: (.+)$", rest, re.MULTILINE)
    if undefined:
        cause = _undefined(undefined[1])
    elif beside_caret:
        cause = re.sub(r"^[\w.]+\.(?=\w+: )", "", beside_caret[1])
    else:
        return error
    lines = rest.partition("Exception occurred in Resolver")[0]
    return ResolutionException(f"{first}: {cause}\n{lines}")


def _undefined(message: str) -> str:
    """Add the nearest name to Jinja's sentence about an unknown one, which Dagster ends with what there is."""
    name, _, scope = message.partition(" not found in scope, available scope is: ")
    if not scope:
        return message
    known = scope.split(", ")
    nearest = difflib.get_close_matches(name.strip("'"), known, n=1)
    hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
    return f"{name} is not defined for templates. Defined are {', '.join(known)}.{hint}"
