"""Resolving `module.attribute` references, such as `.orders.build_orders`, to what they name.

A reference that begins with a dot is relative to the folder of the `defs.yaml`, as a relative import in
a module of that folder would be.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_dataframely.components.attributes.templates import render
from dagster_dataframely.errors import InvalidReferenceError, InvalidSchemaError
from dagster_dataframely.upstream.dagster_components import defs_folder_module

if TYPE_CHECKING:
    import dataframely as dy

#: A message lists no more names than a person reads.
_LISTED_NAMES = 8


def resolve_function(context: dg.ResolutionContext, reference: Any) -> Callable[..., Any]:
    """Return the function that a reference names.

    Args:
        context: Where the reference was written; `.module` is relative to that folder.
        reference: `module.function`, or what a template gave in its place.

    Returns:
        The function.

    Raises:
        InvalidReferenceError: The reference names nothing, or something that is not a plain function.
        Exception: Whatever the function's own module raises when it is imported.

    Examples:
        >>> import dagster as dg
        >>> resolve_function(dg.ResolutionContext.default(), "os.path.join").__name__
        'join'
    """
    rendered: object = render(context, reference)
    if not isinstance(rendered, str):
        return _checked_function(rendered, _shown(rendered))
    found = load_reference(
        rendered,
        folder=defs_folder_module(context),
        kind="function",
        is_candidate=inspect.isroutine,
    )
    return _checked_function(found, f"'{rendered}'")


def resolve_schema(context: dg.ResolutionContext, reference: Any) -> type[dy.Schema]:
    """Return the Dataframely schema that a reference names.

    Args:
        context: Where the reference was written; `.module` is relative to that folder.
        reference: `module.Schema`, or what a template gave in its place.

    Returns:
        The schema class.

    Raises:
        InvalidReferenceError: The reference names nothing, or something that is not a schema.
        Exception: Whatever the schema's own module raises when it is imported.
    """
    rendered: object = render(context, reference)
    if not isinstance(rendered, str):
        return _checked_schema(rendered, _shown(rendered))
    found = load_reference(
        rendered, folder=defs_folder_module(context), kind="schema", is_candidate=_is_schema
    )
    return _checked_schema(found, f"'{rendered}'")


def load_reference(
    reference: str,
    *,
    folder: str | None,
    kind: str,
    is_candidate: Callable[[object], bool],
) -> object:
    """Import a reference's module and return its attribute.

    Args:
        reference: `module.attribute`, with a leading dot for a module of the folder.
        folder: The module name of the folder; None where there is none to be relative to.
        kind: What is looked for, for messages: `function` or `schema`.
        is_candidate: Whether a value of the module is of that kind.

    Returns:
        The attribute.

    Raises:
        InvalidReferenceError: There is no such module, or no such attribute in it.
        Exception: Whatever the module itself raises when it is imported.
    """
    dotted_module, _, attribute = reference.rpartition(".")
    _refuse_malformed(reference, attribute, kind)
    module_name = _absolute_module_name(reference, dotted_module, folder)
    module = _import(reference, module_name, folder)
    try:
        found = getattr(module, attribute)
    except AttributeError:
        raise InvalidReferenceError(
            _unknown_attribute(module, reference, attribute, kind, is_candidate)
        ) from None
    if isinstance(found, ModuleType):
        raise InvalidReferenceError(
            f"'{reference}' is a module, and a {kind} in it has to be named. "
            f"{_defines(found, kind, is_candidate, prefix=reference)}"
        )
    return found


# --- the module --------------------------------------------------------------------------------------


def _refuse_malformed(reference: str, attribute: str, kind: str) -> None:
    example = {"function": ".orders.build_orders", "schema": ".schema.OrdersSchema"}[kind]
    allowed = (
        f"Write `module.{kind}`, such as '{example}'; a leading dot is the folder of this file."
    )
    if ":" in reference:
        raise InvalidReferenceError(
            f"'{reference}' has a colon, and module and {kind} are separated by a dot. {allowed}"
        )
    if "/" in reference or "\\" in reference or reference.endswith(".py"):
        raise InvalidReferenceError(f"'{reference}' is a path, not a reference. {allowed}")
    if "." not in reference:
        raise InvalidReferenceError(f"'{reference}' names no module. {allowed}")
    if not attribute or not all(part.isidentifier() for part in reference.lstrip(".").split(".")):
        raise InvalidReferenceError(
            f"'{reference}' is not a name that Python can import. {allowed}"
        )


def _absolute_module_name(reference: str, dotted_module: str, folder: str | None) -> str:
    if not reference.startswith("."):
        return dotted_module
    if folder is None:
        raise InvalidReferenceError(
            f"'{reference}' is relative to the folder of a defs.yaml, and there is none here. Write the full "
            f"name, such as 'my_project.defs{reference}'."
        )
    levels = len(reference) - len(reference.lstrip("."))
    if levels > len(folder.split(".")):
        raise InvalidReferenceError(
            f"'{reference}' leads above the top of the project: the folder of this file is '{folder}', and "
            "each dot after the first goes up by one."
        )
    return importlib.util.resolve_name("." * levels + dotted_module.lstrip("."), folder)


def _import(reference: str, module_name: str, folder: str | None) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # The name of a module that is missing *inside* the user's module is neither this one nor a parent.
        if error.name is None or not _is_same_or_parent(error.name, module_name):
            raise
        message = _unknown_module(reference, module_name, error.name, folder)
    except (ImportError, AttributeError) as error:
        if "partially initialized module" not in str(error):
            raise
        message = (
            f"Importing '{module_name}' for '{reference}' goes round in a circle: {_first_sentence(error)}. "
            "Move what both modules need into a third one."
        )
        raise InvalidReferenceError(message) from error
    raise InvalidReferenceError(message)


def _is_same_or_parent(name: str, module_name: str) -> bool:
    return module_name == name or module_name.startswith(f"{name}.")


def _unknown_module(reference: str, module_name: str, missing: str, folder: str | None) -> str:
    parent_name, _, last = missing.rpartition(".")
    tail = reference.rpartition(".")[2]
    if not parent_name:
        here = _submodules(folder)
        if last in here:
            return (
                f"There is no module '{missing}' at the top level, but there is one in this folder. Write "
                f"'.{reference}', with a leading dot."
            )
        loaded = {name.partition(".")[0] for name in sys.modules}
        project = {folder.partition(".")[0]} if folder else set()
        return f"There is no module '{missing}'.{_did_you_mean(last, project | loaded)}"
    parent = sys.modules.get(parent_name)
    if parent is not None and not hasattr(parent, "__path__"):
        defined = f"{missing.rpartition('.')[2]}.{tail}"
        return (
            f"'{parent_name}' is a module and not a package, so there is nothing named '{defined}' in it. "
            "Only `module.attribute` can be named, not an attribute of an attribute."
        )
    siblings = _submodules(parent_name)
    where = f"'{parent_name}'" if parent_name != folder else f"This folder, '{parent_name}',"
    listed = f"{where} has {_listed('module', siblings)}."
    nearest = _nearest(last, siblings)
    hint = ""
    if nearest and missing == module_name:
        hint = f" Did you mean '{_replace_module(reference, nearest)}'?"
    elif nearest:
        hint = f" Did you mean '{nearest}'?"
    return f"There is no module '{missing}'. {listed}{hint}"


def _replace_module(reference: str, module: str) -> str:
    before, _, attribute = reference.rpartition(".")
    return f"{before[: before.rfind('.') + 1]}{module}.{attribute}"


def _submodules(package: str | None) -> list[str]:
    try:
        spec = importlib.util.find_spec(package) if package else None
    except (ImportError, ValueError):
        return []
    paths = list((spec and spec.submodule_search_locations) or [])
    return sorted({found.name for found in pkgutil.iter_modules(paths)})


# --- the attribute -----------------------------------------------------------------------------------


def _unknown_attribute(
    module: ModuleType,
    reference: str,
    attribute: str,
    kind: str,
    is_candidate: Callable[[object], bool],
) -> str:
    if attribute in _submodules(module.__name__):
        # It exists and was not imported by its package, so `getattr` does not find it.
        found = importlib.import_module(f"{module.__name__}.{attribute}")
        defines = _defines(found, kind, is_candidate, prefix=reference)
        return f"'{reference}' is a module, and a {kind} in it has to be named. {defines}"
    defines = _defines(module, kind, is_candidate)
    names = _defined_names(module, is_candidate)
    nearest = _nearest(attribute, names) or _nearest(attribute, vars(module))
    before = reference.rpartition(".")[0]
    hint = f" Did you mean '{before}.{nearest}'?" if nearest else ""
    return f"Module '{module.__name__}' has no '{attribute}'. {defines}{hint}"


def _defines(
    module: ModuleType, kind: str, is_candidate: Callable[[object], bool], *, prefix: str = ""
) -> str:
    names = _defined_names(module, is_candidate)
    if prefix and len(names) == 1:
        return f"Did you mean '{prefix}.{names[0]}'?"
    return f"It defines {_listed(kind, names)}."


def _defined_names(module: ModuleType, is_candidate: Callable[[object], bool]) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and is_candidate(value)
        and getattr(value, "__module__", None) == module.__name__
    ]


def _checked_function(found: object, named: str) -> Callable[..., Any]:
    if isinstance(found, dg.AssetsDefinition):
        raise InvalidReferenceError(
            f"{named} is an asset already. Point `fn` at the plain function, or drop its decorator."
        )
    if isinstance(found, type):
        where = " It belongs under `schema`." if _is_schema(found) else ""
        raise InvalidReferenceError(
            f"{named} is the class {found.__name__}, and `fn` names a function that returns the rows.{where}"
        )
    if not callable(found) or not hasattr(found, "__name__"):
        raise InvalidReferenceError(
            f"{named} is {_a(type(found).__name__)}, and `fn` names a function that returns the rows."
        )
    return found


def _checked_schema(found: object, named: str) -> type[dy.Schema]:
    if inspect.isroutine(found):
        raise InvalidReferenceError(
            f"{named} is a function, and `schema` names a Dataframely schema. It belongs under `fn`."
        )
    # Imported here for start-up time: every `dg` command imports this module, and Polars takes a second.
    from dagster_dataframely.core.declaration.rules import check_schema

    try:
        return check_schema(found, used_by="`schema`")
    except InvalidSchemaError as error:
        raise InvalidReferenceError(f"{named}: {error}") from None


def _is_schema(value: object) -> bool:
    # A module that defines a schema has imported Dataframely; nothing is imported only to say no.
    dataframely = sys.modules.get("dataframely")
    return (
        dataframely is not None
        and isinstance(value, type)
        and issubclass(value, dataframely.Schema)
    )


# --- sentences ---------------------------------------------------------------------------------------


def _listed(kind: str, names: Iterable[str]) -> str:
    ordered = list(names)
    if not ordered:
        return f"no {kind}s"
    listed = ", ".join(f"'{name}'" for name in ordered[:_LISTED_NAMES])
    more = len(ordered) - _LISTED_NAMES
    plural = f"{kind}s" if len(ordered) > 1 else kind
    return f"the {plural} {listed}" + (f" and {more} more" if more > 0 else "")


def _nearest(name: str, names: Iterable[str]) -> str | None:
    visible = [candidate for candidate in names if not candidate.startswith("_")]
    return next(iter(difflib.get_close_matches(name, visible, n=1)), None)


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    nearest = _nearest(name, names)
    return f" Did you mean '{nearest}'?" if nearest else ""


def _first_sentence(error: BaseException) -> str:
    # Python's own message goes on with the file, which the traceback below has too.
    return str(error).partition(" (most likely")[0].rstrip(".")


def _shown(value: object) -> str:
    return f"What the template gave, {value!r},"


def _a(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"
