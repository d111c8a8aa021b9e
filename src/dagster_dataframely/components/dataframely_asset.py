"""`DataframelyAsset`: the component type that declares in YAML what `dd.asset` declares in Python."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from dagster_dataframely.components.attributes.dagster_attributes import (
    AssetAttribute,
    OpAttribute,
    RetryPolicyAttribute,
)
from dagster_dataframely.components.attributes.mistakes import Mistake, unknown_parameter
from dagster_dataframely.components.attributes.own_attributes import (
    CheckGranularityAttribute,
    FilterAttribute,
    FunctionAttribute,
    InsAttribute,
    IOManagerKeyAttribute,
    MaxFailureSamplesAttribute,
    RedactAttribute,
    RowSampleAttribute,
    SchemaAttribute,
    SchemaRulesAttribute,
    StagingDirAttribute,
    StatisticsAttribute,
    StreamAttribute,
)
from dagster_dataframely.components.scaffold.asset_scaffolder import DataframelyAssetScaffolder
from dagster_dataframely.components.schema_component import SchemaComponent
from dagster_dataframely.upstream.dagster_components import AssetSpecUpdateKwargs

#: Attributes of an asset spec that are arguments of `dg.asset` too, under the same names.
_ASSET_ARGUMENTS = tuple(
    name
    for name in typing.get_type_hints(AssetSpecUpdateKwargs)
    if name in inspect.signature(dg.asset).parameters and name != "key_prefix"
)


@dg.scaffold_with(DataframelyAssetScaffolder)
class DataframelyAssetComponent(SchemaComponent):
    """An asset whose table a Dataframely schema declares: its columns, its checks, the rows it may have.

    With `filter: true` the rows that fail an `error` rule go to a table of their own, which is in the asset
    graph too.

    Examples:
        >>> import dagster as dg
        >>> import polars as pl
        >>> from dagster_dataframely.data import OrdersSchema
        >>> def orders() -> pl.DataFrame:
        ...     return OrdersSchema.sample(3)
        >>> component = DataframelyAssetComponent(fn=orders, schema=OrdersSchema, filter=True)
        >>> defs = dg.components.build_defs_for_component(component)
        >>> sorted(spec.key.to_user_string() for spec in defs.resolve_all_asset_specs())
        ['orders', 'orders__error_rows']
    """

    fn: FunctionAttribute
    schema_: SchemaAttribute = Field(alias="schema")
    filter: FilterAttribute = False
    stream: StreamAttribute = False
    ins: InsAttribute = None
    asset: AssetAttribute = None
    op: OpAttribute = None
    io_manager_key: IOManagerKeyAttribute = None
    retry_policy: RetryPolicyAttribute = None
    check_granularity: CheckGranularityAttribute = None
    schema_rules: SchemaRulesAttribute = None
    statistics: StatisticsAttribute = None
    max_failure_samples: MaxFailureSamplesAttribute = None
    row_sample: RowSampleAttribute = None
    redact: RedactAttribute = None
    staging_dir: StagingDirAttribute = None

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Describe the component type for Dagster's component listing."""
        return dg.ComponentTypeSpec(
            owners=["team:dagster-dataframely"],
            tags=["data-quality", "dataframely", "polars"],
            produces=["asset", "asset_check"],
        )

    @classmethod
    def get_form_config(cls) -> dg.ComponentFormConfig:
        """Describe the form in Dagster's app."""
        return dg.ComponentFormConfig(label="Dataframely asset", editable=True)

    def get_asset_spec(self, spec: dg.AssetSpec) -> dg.AssetSpec:
        """Change the asset spec before the asset is built; override it in a subclass.

        The spec has what `asset` says. What the schema adds comes after: the column schema, the checks, and
        the description, kinds and code version where the spec has none. So a changed key is the key of
        the checks and of the error rows too.

        Args:
            spec: The spec that the attributes describe.

        Returns:
            The spec of the asset.

        Examples:
            >>> import dagster as dg
            >>> class OwnedAsset(DataframelyAssetComponent):
            ...     def get_asset_spec(self, spec: dg.AssetSpec) -> dg.AssetSpec:
            ...         return spec.replace_attributes(owners=["team:sales"])
        """
        return spec

    def build_asset(self) -> dg.AssetsDefinition:
        """Build the asset that the attributes describe.

        Returns:
            The asset, with the schema's checks.

        Raises:
            DataframelyError: As `dd.asset` raises for a schema, a setting or a function.
        """
        # Imported here for start-up time: these import Dataframely and Polars.
        from dagster_dataframely.asset_decorator import build_asset
        from dagster_dataframely.core.declaration.plan import plan_validation
        from dagster_dataframely.core.settings import resolve_settings

        plan = plan_validation(
            self.schema_,
            used_by="DataframelyAsset",
            filter=self.filter,
            stream=self.stream,
            redact=self.redact or (),
            settings=resolve_settings(
                check_granularity=self.check_granularity,
                schema_rules=self.schema_rules,
                statistics=self.statistics,
                max_failure_samples=self.max_failure_samples,
                row_sample=self.row_sample,
                redact=self.redact,
                staging_dir=self.staging_dir,
            ),
        )
        return build_asset(self.fn, plan, self._asset_arguments(), used_by="DataframelyAsset")

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Build the asset and, with `filter`, the spec of its error-rows table."""
        from dagster_dataframely.error_rows_asset import error_rows_spec

        try:
            asset = self.build_asset()
            return dg.Definitions(
                assets=[asset, *([error_rows_spec(asset)] if self.filter else [])]
            )
        except Exception as error:
            self.raise_from_build(context, error)

    def mistakes(self) -> Iterator[Mistake]:
        """Yield what is wrong with attributes that only show it together."""
        if not self.ins:
            return
        parameters = list(inspect.signature(self.fn).parameters)
        for name in self.ins:
            if name not in parameters:
                sentence = unknown_parameter(name, self.fn.__name__, parameters)
                yield Mistake(("ins", name), sentence)

    def _asset_spec(self) -> dg.AssetSpec:
        attributes = {"key": dg.AssetKey(self.fn.__name__), **(self.asset or {})}
        prefix = attributes.pop("key_prefix", None)
        key = dg.AssetKey.from_coercible(attributes.pop("key"))
        return self.get_asset_spec(
            dg.AssetSpec(key.with_prefix(prefix) if prefix else key, **attributes)
        )

    def _asset_arguments(self) -> Mapping[str, Any]:
        spec = self._asset_spec()
        arguments = {name: getattr(spec, name) for name in _ASSET_ARGUMENTS}
        # A spec keeps kinds among its tags, and `dg.asset` takes them apart.
        arguments["kinds"] = set(spec.kinds) or None
        arguments["tags"] = {
            name: value for name, value in spec.tags.items() if not name.startswith("dagster/kind/")
        }
        op = self.op
        return {
            **arguments,
            "ins": {name: dg.AssetIn(key=key) for name, key in (self.ins or {}).items()} or None,
            "io_manager_key": self.io_manager_key,
            "retry_policy": self.retry_policy,
            "op_tags": op and op.tags,
            "pool": op and op.pool,
            "backfill_policy": op and op.backfill_policy,
        }
