"""Errors of Polars, which may quote values of the data, in an event log that must not have them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NoReturn

from dagster_dataframely.errors import DataframelyError, LazyFrameError

#: What stands in place of a value that must not reach the event log.
REDACTED = "[redacted]"


def raise_described(
    error_type: type[DataframelyError],
    subject: str,
    error: Exception,
    *,
    redact: Collection[str],
) -> NoReturn:
    """Raise an error of this package that says what Polars raised.

    Where columns are redacted, the message and the traceback of Polars' error are left out: which
    values it quotes is not known.

    Args:
        error_type: The class of the error to raise.
        subject: What raised, such as `Rule 'amount|min' of OrdersSchema raised`.
        error: What was raised.
        redact: The redacted columns of the asset.

    Raises:
        DataframelyError: Always.
    """
    kind = type(error).__name__
    if redact:
        raise error_type(
            f"{subject} {kind}. Its message is not shown, because it may quote values of redacted columns."
        ) from None
    raise error_type(f"{subject} {kind}: {error}") from error


@contextmanager
def hiding_values(*, redact: Collection[str]) -> Iterator[None]:
    """Keep an error that the plan of a lazy frame raises from showing redacted values.

    Raises:
        LazyFrameError: The block raised, and columns are redacted. Otherwise the error passes as it is.
    """
    try:
        yield
    except Exception as error:
        if not redact:
            raise
        raise_described(
            LazyFrameError,
            "Executing the lazy frame that the function returned raised",
            error,
            redact=redact,
        )
