"""Python source as `ruff format` writes it, for the modules that are scaffolded.

Ruff is no dependency of this package, and the first thing that a project's formatter does to a
scaffolded file should not be a diff. Only a small part of the style is needed for it: names,
literals, lists, dicts and calls, at ruff's default width.
"""

from __future__ import annotations

import ast
import keyword
import re
import unicodedata
from collections.abc import Collection, Sequence

#: Ruff's default line length.
WIDTH = 88
_INDENT = 4

# Names longer than this would make lines that have to be broken in places a name cannot be.
_MAX_NAME = 40


def identifier(text: str) -> str:
    """Return a Python name that reads like a text, or an empty string where nothing is left of it.

    Examples:
        >>> identifier("my-orders 2024")
        'my_orders_2024'
        >>> identifier("2024 Prénom")
        '_2024_Prenom'
        >>> identifier("class")
        'class_'
    """
    # Decomposed, an accented letter is the letter and a mark of its own, and only the mark is lost.
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9]+", "_", letters).strip("_")[:_MAX_NAME].rstrip("_")
    if name[:1].isdigit():
        name = f"_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def class_name(text: str) -> str:
    """Return a class name that reads like a text.

    Examples:
        >>> class_name("my_orders_2024")
        'MyOrders2024'
    """
    return "".join(word[:1].upper() + word[1:] for word in text.split("_"))


def unused_name(name: str, used: Collection[str]) -> str:
    """Return a name, with a number behind it where it is used already.

    Examples:
        >>> unused_name("amount", {"amount", "amount_2"})
        'amount_3'
    """
    number, candidate = 1, name
    while candidate in used:
        number += 1
        candidate = f"{name.rstrip('_')}_{number}"
    return candidate


def quoted(text: str) -> str:
    r"""Return a string literal: in double quotes, unless single ones save a backslash.

    Examples:
        >>> print(quoted("it's"), quoted('say "yes"'))
        "it's" 'say "yes"'
    """
    quote = "'" if text.count('"') > text.count("'") else '"'
    escaped = "".join(
        f"\\{character}" if character in (quote, "\\") else _printable(character)
        for character in text
    )
    return f"{quote}{escaped}{quote}"


def _printable(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def docstring_text(text: str) -> str:
    """Return a text with what would end or change a docstring or a comment taken out of it."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return line.replace("\\", "/").replace('"', "'").strip()


def import_line(module: str, *names: str) -> str:
    """Return the line, or lines, that import names from a module, in isort's order.

    Examples:
        >>> import_line(".orders", "build_orders", "OrdersSchema")
        'from .orders import OrdersSchema, build_orders'
    """
    ordered = sorted(names, key=lambda name: (not name[0].isupper(), name))
    line = f"from {module} import {', '.join(ordered)}"
    if width(line) <= WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in ordered) + ")"


def assignment(name: str, value: ast.expr | str, *, indent: int = 0) -> str:
    """Return an assignment.

    Args:
        name: What is assigned to.
        value: A string, or a call of literals and further calls.
        indent: By how many spaces the line is indented.
    """
    margin = " " * indent
    before = f"{margin}{name} = "
    if isinstance(value, str):
        text = quoted(value)
        # A string that is too long moves into parentheses, and stays where even that is too narrow.
        if width(before + text) > WIDTH and indent + _INDENT + width(text) <= WIDTH:
            return f"{before}(\n{margin}{' ' * _INDENT}{text}\n{margin})"
        return before + text
    return before + _laid_out(value, indent=indent, before=width(before), after=0)


def argument(name: str, source: str, *, indent: int = 0) -> str:
    """Return an argument in a line, or lines, of its own.

    Args:
        name: The argument's name.
        source: Its value: literals and calls, in any layout.
        indent: By how many spaces the line is indented.
    """
    node = ast.keyword(name, ast.parse(source, mode="eval").body)
    return " " * indent + _laid_out(node, indent=indent, before=indent, after=1) + ","


def width(text: str) -> int:
    """Return how many columns a text takes on a screen."""
    return sum(
        0
        if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me")
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def flat(node: ast.expr | ast.keyword) -> str:
    """Return an expression in one line."""
    match node:
        case ast.keyword(arg=str(name), value=value):
            return f"{name}={flat(value)}"
        case ast.Constant(value=str(text)):
            return quoted(text)
        case ast.Constant(value=value):
            return repr(value)
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{flat(value)}.{name}"
        case ast.List(elts=items):
            return f"[{', '.join(flat(item) for item in items)}]"
        case ast.Dict():
            return "{" + ", ".join(f"{key}{flat(value)}" for key, value in _entries(node)) + "}"
        case ast.Call(func=function, args=args, keywords=keywords):
            return f"{flat(function)}({_together([*args, *keywords])})"
    raise TypeError(f"{ast.dump(node)} is no literal, list, dict or call.")


def _laid_out(node: ast.expr | ast.keyword, *, indent: int, before: int, after: int) -> str:
    """Return an expression in as few lines as fit.

    Args:
        node: The expression.
        indent: The indent of the line it starts in.
        before: The columns that are taken in that line already.
        after: The columns that its last line has to leave.
    """
    line = flat(node)
    if before + width(line) + after <= WIDTH:
        return line
    margin, inner = " " * indent, " " * (indent + _INDENT)
    match node:
        case ast.keyword(arg=str(name), value=value):
            return f"{name}=" + _laid_out(
                value, indent=indent, before=before + len(name) + 1, after=after
            )
        case ast.Call(func=function, args=args, keywords=keywords) if args or keywords:
            arguments: list[ast.expr | ast.keyword] = [*args, *keywords]
            opening, closing = f"{flat(function)}(", ")"
            together = _together(arguments)
            # Only arguments may share a line of their own; items of a list or a dict may not.
            if width(inner + together) <= WIDTH:
                return f"{opening}\n{inner}{together}\n{margin}{closing}"
            items = [("", argument) for argument in arguments]
        case ast.List(elts=elements) if elements:
            opening, closing, items = "[", "]", [("", element) for element in elements]
        case ast.Dict(keys=keys) if keys:
            opening, closing, items = "{", "}", list(_entries(node))
        case _:
            return line
    # A comma behind a sole item would be a choice, and ruff makes none.
    comma = "," if len(items) > 1 else ""
    lines = [
        f"{inner}{key}"
        + _laid_out(item, indent=indent + _INDENT, before=width(inner + key), after=len(comma))
        + comma
        for key, item in items
    ]
    return "\n".join([opening, *lines, margin + closing])


def _together(arguments: Sequence[ast.expr | ast.keyword]) -> str:
    return ", ".join(flat(argument) for argument in arguments)


def _entries(node: ast.Dict) -> list[tuple[str, ast.expr | ast.keyword]]:
    return [
        (f"{flat(key)}: ", value)
        for key, value in zip(node.keys, node.values, strict=True)
        if key is not None
    ]
