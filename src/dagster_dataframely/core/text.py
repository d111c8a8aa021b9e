"""Keeping text short enough for a page and an event log."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Protocol

#: The longest text, in characters, that one value may have in the event log.
MAX_TEXT = 200
#: The longest list of values in a sentence.
MAX_LIST = 100


class _Values(Iterable[object], Sized, Protocol):
    """A collection whose members are read only as far as they are shown."""


def shortened(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text of at most `limit` characters; one that was cut ends in an ellipsis.

    Examples:
        >>> shortened("a long story", 7)
        'a long…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(values: _Values, limit: int = MAX_LIST) -> str:
    """Return values as Python writes them, as many as fit, and how many there are if not all do.

    Args:
        values: What to list; read only as far as it is shown.
        limit: How many characters the list may take. The first value is always shown.

    Examples:
        >>> listed(["new", "paid"])
        "'new', 'paid'"
        >>> listed(range(1000), 10)
        '0, 1, 2, 3, … (1000 in all)'
    """
    shown: list[str] = []
    length = 0
    for value in values:
        text = shortened(repr(value), limit)
        if shown and length + len(text) > limit:
            return f"{', '.join(shown)}, … ({len(values)} in all)"
        shown.append(text)
        length += len(text) + 2
    return ", ".join(shown)
