"""The asset key under which an asset's error rows are kept."""

from __future__ import annotations

import dagster as dg

ERROR_ROWS_SUFFIX = "__error_rows"


def error_rows_key(key: dg.AssetKey) -> dg.AssetKey:
    """Return the key of the error-rows table of an asset.

    Args:
        key: The asset's own key.

    Returns:
        The same key with `__error_rows` added to its last part.

    Examples:
        >>> import dagster as dg
        >>> error_rows_key(dg.AssetKey(["sales", "orders"])).to_user_string()
        'sales/orders__error_rows'
    """
    *prefix, name = key.path
    return dg.AssetKey([*prefix, name + ERROR_ROWS_SUFFIX])
