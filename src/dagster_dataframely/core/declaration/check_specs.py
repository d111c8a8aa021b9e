"""The asset checks that a run will report, as Dagster wants them declared."""

from __future__ import annotations

from typing import Any

import dagster as dg

from dagster_dataframely.core.declaration.names import COLUMN_SCHEMA_CHECK
from dagster_dataframely.core.declaration.plan import (
    RuleCheck,
    ValidationPlan,
    describe_column_check,
)


def check_specs(
    plan: ValidationPlan, asset: dg.AssetKey, *, blocking: bool = True, **arguments: Any
) -> list[dg.AssetCheckSpec]:
    """Return the check specs of an asset: the column-schema check first, then the rules' checks.

    Args:
        plan: The validation of the asset.
        asset: The key of the asset.
        blocking: Whether any check is blocking: the column-schema check and, unless the plan filters, every
            check with an `error` rule.
        **arguments: Further arguments of each `dg.AssetCheckSpec`; None means that one was not given.

    Returns:
        One spec a check.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    column_schema = dg.AssetCheckSpec(
        COLUMN_SCHEMA_CHECK,
        asset=asset,
        description=describe_column_check(plan.schema),
        blocking=blocking,
        **given,
    )
    return [
        column_schema,
        *(
            dg.AssetCheckSpec(
                check.name,
                asset=asset,
                description=check.description,
                blocking=blocking and plan.is_blocking(check),
                metadata=_metadata(check),
                **given,
            )
            for check in plan.checks
        ),
    ]


def _metadata(check: RuleCheck) -> dict[str, Any]:
    if check.collapsed:
        return {"dataframely/rule": [rule.name for rule in check.rules]}
    rule = check.rules[0]
    return {"dataframely/rule": rule.name, "dataframely/severity": rule.severity}
