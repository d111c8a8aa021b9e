"""`DataframelyChecks`: the component type that checks a table which something else writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import dagster as dg
from pydantic import Field

from dagster_dataframely.components.attributes.dagster_attributes import (
    AutomationConditionAttribute,
    PartitionsDefAttribute,
)
from dagster_dataframely.components.attributes.located import located
from dagster_dataframely.components.attributes.own_attributes import (
    CheckGranularityAttribute,
    MaxFailureSamplesAttribute,
    RedactAttribute,
    SchemaAttribute,
    SchemaRulesAttribute,
    StagingDirAttribute,
    StreamAttribute,
)
from dagster_dataframely.components.attributes.references import resolve_function
from dagster_dataframely.components.attributes.templates import render
from dagster_dataframely.components.scaffold.checks_scaffolder import DataframelyChecksScaffolder
from dagster_dataframely.components.schema_component import SchemaComponent
from dagster_dataframely.errors import InvalidSettingError

CheckedAssetAttribute: TypeAlias = Annotated[
    dg.ResolvedAssetKey,
    dg.Resolver.default(
        description="The asset whose table is checked, by its key.",
        examples=["dbt/orders"],
        form_config=dg.ComponentFormConfig(label="Asset", placeholder="dbt/orders"),
    ),
]

TableFunctionAttribute: TypeAlias = Annotated[
    Callable[..., Any] | None,
    dg.Resolver(
        located(lambda context, value: None if value is None else resolve_function(context, value)),
        model_field_type=str | None,
        inject_before_resolve=False,
        description=(
            "A function that returns the frame to check, as `module.function`; a leading dot is this folder. "
            "It may take `context`. By default the asset is loaded through its IO manager, lazily where that "
            "can."
        ),
        examples=[".orders.read_orders"],
        form_config=dg.ComponentFormConfig(label="Function"),
    ),
]

BlockingAttribute: TypeAlias = Annotated[
    bool,
    dg.Resolver(
        located(render),
        model_field_type=bool,
        inject_before_resolve=False,
        description=(
            "Whether a check with an `error` rule keeps the assets downstream from running in the same run."
        ),
        examples=[False],
        form_config=dg.ComponentFormConfig(label="Blocking"),
    ),
]

CronScheduleAttribute: TypeAlias = Annotated[
    str | None,
    dg.Resolver(
        located(render),
        model_field_type=str | None,
        inject_before_resolve=False,
        description="When to execute the checks, as a cron schedule.",
        examples=["0 6 * * *"],
        form_config=dg.ComponentFormConfig(label="Cron schedule"),
    ),
]


@dg.scaffold_with(DataframelyChecksScaffolder)
class DataframelyChecksComponent(SchemaComponent):
    """A schema's checks on a table that this package does not write: a dbt model, an external table.

    Nothing is written. With a cron schedule, a schedule named after the asset executes the checks.

    Examples:
        >>> import dagster as dg
        >>> from dagster_dataframely.data import OrdersSchema, valid_orders
        >>> component = DataframelyChecksComponent(
        ...     asset=dg.AssetKey(["dbt", "orders"]), schema=OrdersSchema, fn=valid_orders
        ... )
        >>> defs = dg.components.build_defs_for_component(component)
        >>> (checks,) = defs.asset_checks
        >>> next(iter(checks.check_specs)).key.to_user_string()
        'dbt/orders:dy_schema__columns'
    """

    asset: CheckedAssetAttribute
    schema_: SchemaAttribute = Field(alias="schema")
    fn: TableFunctionAttribute = None
    blocking: BlockingAttribute = True
    stream: StreamAttribute = False
    partitions_def: PartitionsDefAttribute = None
    cron_schedule: CronScheduleAttribute = None
    automation_condition: AutomationConditionAttribute = None
    check_granularity: CheckGranularityAttribute = None
    schema_rules: SchemaRulesAttribute = None
    max_failure_samples: MaxFailureSamplesAttribute = None
    redact: RedactAttribute = None
    staging_dir: StagingDirAttribute = None

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Describe the component type for Dagster's component listing."""
        return dg.ComponentTypeSpec(
            owners=["team:dagster-dataframely"],
            tags=["data-quality", "dataframely", "polars"],
            produces=["asset_check"],
        )

    @classmethod
    def get_form_config(cls) -> dg.ComponentFormConfig:
        """Describe the form in Dagster's app."""
        return dg.ComponentFormConfig(label="Dataframely checks", editable=True)

    def build_checks(self) -> dg.AssetChecksDefinition:
        """Build the checks that the attributes describe.

        Raises:
            DataframelyError: As `dd.asset_checks` raises for a schema, a setting or a function.
        """
        # Imported here for start-up time: it imports Dataframely and Polars.
        from dagster_dataframely.table_checks import build_checks

        return build_checks(
            self.schema_,
            asset=self.asset,
            used_by="DataframelyChecks",
            fn=self.fn,
            blocking=self.blocking,
            stream=self.stream,
            check_granularity=self.check_granularity,
            schema_rules=self.schema_rules,
            max_failure_samples=self.max_failure_samples,
            redact=self.redact,
            staging_dir=self.staging_dir,
            partitions_def=self.partitions_def,
            automation_condition=self.automation_condition,
        )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Build the checks and, with a cron schedule, the schedule that executes them."""
        try:
            checks = self.build_checks()
            return dg.Definitions(asset_checks=[checks], schedules=self._schedules(checks))
        except Exception as error:
            self.raise_from_build(context, error)

    def _schedules(self, checks: dg.AssetChecksDefinition) -> list[dg.ScheduleDefinition]:
        if self.cron_schedule is None:
            return []
        name = f"{self.asset.to_python_identifier()}_checks_schedule_job"
        job = dg.define_asset_job(
            name, selection=dg.AssetSelection.checks(checks), partitions_def=self.partitions_def
        )
        try:
            return [dg.ScheduleDefinition(job=job, cron_schedule=self.cron_schedule)]
        except dg.DagsterInvalidDefinitionError as error:
            raise InvalidSettingError(
                f"The argument `cron_schedule` is {self.cron_schedule!r}, which is no cron schedule. Write "
                "five fields, such as '0 6 * * *' for six in the morning."
            ) from error
