"""The asset checks that a run will report, as Dagster wants them declared."""

from __future__ import annotations

import dagster as dg

from dagster_dataframely.core.naming import COLUMN_SCHEMA_CHECK
from dagster_dataframely.core.plan import RuleCheck, ValidationPlan, describe_column_check


def check_specs(plan: ValidationPlan, asset: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return the check specs of an asset: the column-schema check first, then the rules' checks.

    Args:
        plan: The validation of the asset.
        asset: The key of the asset.

    Returns:
        One spec a check. Blocking are the column-schema check and, unless the plan filters, every check
        with an `error` rule.
    """
    column_schema = dg.AssetCheckSpec(
        COLUMN_SCHEMA_CHECK,
        asset=asset,
        description=describe_column_check(plan.schema),
        blocking=True,
    )
    return [column_schema, *(_rule_check_spec(plan, check, asset) for check in plan.checks)]


def _rule_check_spec(
    plan: ValidationPlan, check: RuleCheck, asset: dg.AssetKey
) -> dg.AssetCheckSpec:
    rule = check.rules[0]
    return dg.AssetCheckSpec(
        check.name,
        asset=asset,
        description=check.description,
        blocking=plan.is_blocking(check),
        metadata={"dataframely/rule": [rule.name for rule in check.rules]}
        if check.collapsed
        else {"dataframely/rule": rule.name, "dataframely/severity": rule.severity},
    )
