"""What a `DataframelyAsset` in YAML declares, and how the component is used and changed from Python."""

from __future__ import annotations

import subprocess
import sys
import typing
from collections.abc import Mapping
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster.components.resolved.form_schema import split_form_schema
from dagster.components.testing import create_defs_folder_sandbox
from jsonschema import Draft202012Validator

import dagster_dataframely as dd
from dagster_dataframely.upstream.dagster_components import AssetSpecUpdateKwargs, OpSpec
from support import run
from yaml_project import Project

COMPONENT = """
    type: dagster_dataframely.DataframelyAsset
    attributes:
      fn: .orders.build_orders
      schema: .schema.OrdersSchema
"""


class OrdersSchema(dy.Schema):
    """Orders, one row each."""

    order_id = dy.String(primary_key=True)
    amount = dy.Float64(min=0.0)


def orders() -> pl.DataFrame:
    return pl.DataFrame({"order_id": ["A1", "A2"], "amount": [9.5, -1.0]})


def clean_orders(raw_orders: pl.DataFrame) -> pl.DataFrame:
    return raw_orders


def loaded(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    attributes: str = "",
    *,
    defs_yaml: str = COMPONENT,
) -> dg.AssetsDefinition:
    """Load the project with one component, and return its asset."""
    project.write("orders/defs.yaml", defs_yaml + attributes)
    return only_asset(project.load(monkeypatch))


def only_asset(defs: dg.Definitions) -> dg.AssetsDefinition:
    """Return the one asset that a run computes."""
    (asset,) = computed_assets(defs)
    return asset


def computed_assets(defs: dg.Definitions) -> list[dg.AssetsDefinition]:
    # Not those of the asset graph: they have Dagster's default IO manager bound to them.
    assets = [each for each in defs.assets or [] if isinstance(each, dg.AssetsDefinition)]
    return [asset for asset in assets if asset.is_executable]


class TestInYaml:
    def test_the_asset_is_what_dd_asset_makes_of_the_same_function_and_schema(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from_yaml = loaded(project, monkeypatch)
        module = sys.modules[f"{project.name}.defs.orders.orders"]
        schemas = sys.modules[f"{project.name}.defs.orders.schema"]
        in_python = dd.asset(schemas.OrdersSchema)(module.build_orders)

        (yaml_spec,), (python_spec,) = from_yaml.specs, in_python.specs
        assert yaml_spec.key == python_spec.key == dg.AssetKey("build_orders")
        assert yaml_spec.code_version == python_spec.code_version
        assert yaml_spec.description == python_spec.description == "Every order of the shop."
        assert yaml_spec.kinds == python_spec.kinds == {"dataframely", "polars"}
        assert [
            (check.name, check.description, check.blocking) for check in from_yaml.check_specs
        ] == [(check.name, check.description, check.blocking) for check in in_python.check_specs]

    def test_a_run_writes_what_the_schema_allows(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asset = loaded(project, monkeypatch, "      filter: true\n")

        outcome = run(asset)

        assert outcome.rows("build_orders", "order_id") == ["A1"]
        assert outcome.rows("build_orders__error_rows", "order_id") == ["A2"]
        assert outcome.failing == {"dy_rule__amount__min": "ERROR"}

    def test_filter_puts_the_error_rows_table_into_the_asset_graph(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.write("orders/defs.yaml", COMPONENT + "      filter: true\n")

        graph = project.load(monkeypatch).resolve_asset_graph()

        assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
            "build_orders",
            "build_orders__error_rows",
        }

    def test_all_of_dagsters_asset_attributes_reach_the_asset(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asset = loaded(
            project,
            monkeypatch,
            """
      asset:
        key: shop/orders
        key_prefix: eu
        group_name: sales
        description: The orders of the shop.
        deps: [raw/customers]
        owners: ["team:sales"]
        kinds: [parquet]
        tags: {tier: gold, reviewed: true}
        metadata: {source: shop}
        code_version: "1.10"
        skippable: true
        automation_condition: "{{ dg.AutomationCondition.eager() }}"
        freshness_policy: "{{ dg.FreshnessPolicy.cron('0 9 * * *', datetime.timedelta(hours=1)) }}"
        partitions_def: {type: daily, start_date: "2026-01-01"}
""",
        )

        (spec,) = asset.specs
        assert spec.key == dg.AssetKey(["eu", "shop", "orders"])
        assert spec.group_name == "sales"
        assert spec.description == "The orders of the shop."
        assert [dep.asset_key.to_user_string() for dep in spec.deps] == ["raw/customers"]
        assert spec.owners == ["team:sales"]
        assert spec.kinds == {"parquet"}
        assert {"tier": "gold", "reviewed": "True"}.items() <= dict(spec.tags).items()
        assert spec.metadata["source"] == "shop"
        assert spec.code_version == "1.10"
        assert spec.automation_condition == dg.AutomationCondition.eager()
        assert spec.freshness_policy is not None
        assert spec.partitions_def == dg.DailyPartitionsDefinition("2026-01-01")
        assert {check.asset_key for check in asset.check_specs} == {spec.key}

    def test_how_the_step_runs_is_said_under_op_and_retry_policy(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asset = loaded(
            project,
            monkeypatch,
            """
      op:
        pool: warehouse
        tags: {memory: large}
        backfill_policy: {type: single_run}
      retry_policy: {max_retries: 3, delay: 10, backoff: exponential, jitter: plus_minus}
""",
        )

        assert asset.op.pools == {"warehouse"}
        assert asset.op.tags["memory"] == "large"
        assert asset.backfill_policy == dg.BackfillPolicy.single_run()
        assert asset.op.retry_policy == dg.RetryPolicy(
            max_retries=3, delay=10, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
        )

    def test_an_input_is_loaded_from_the_asset_that_ins_names(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.write(
            "raw.py",
            """
            import dagster as dg
            import polars as pl

            @dg.asset(key=["raw", "orders"])
            def raw():
                return pl.DataFrame({"order_id": ["A7"], "amount": [1.0]})
            """,
        )
        clean = COMPONENT.replace("build_orders", "clean_orders")
        project.write("orders/defs.yaml", clean + "      ins: {raw_orders: raw/orders}\n")

        outcome = run(*computed_assets(project.load(monkeypatch)))

        assert outcome.rows("clean_orders", "order_id") == ["A7"]

    def test_the_io_manager_is_the_one_named(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.write(
            "resources.py",
            "import dagster as dg\n\n@dg.definitions\ndef resources():\n"
            "    return dg.Definitions(resources={'warehouse_io': dg.mem_io_manager})\n",
        )

        asset = loaded(project, monkeypatch, "      io_manager_key: warehouse_io\n")

        assert asset.get_io_manager_key_for_asset_key(asset.key) == "warehouse_io"

    @pytest.mark.parametrize(
        ("attribute", "checks"),
        [
            (
                "check_granularity: column",
                {"dy_schema__columns", "dy_schema__rules", "dy_col__order_id", "dy_col__amount"},
            ),
            ("check_granularity: schema", {"dy_schema__columns", "dy_schema__rules"}),
        ],
    )
    def test_a_setting_is_the_one_of_dd_asset(
        self, attribute: str, checks: set[str], project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asset = loaded(project, monkeypatch, f"      {attribute}\n")

        assert {check.name for check in asset.check_specs} == checks

    def test_a_lazy_frame_is_streamed_where_stream_says_so(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lazy = "import polars as pl\nfrom .orders import build_orders\n\n\n"
        project.write("orders/lazy.py", lazy + "def scan():\n    return build_orders().lazy()\n")
        asset = loaded(
            project,
            monkeypatch,
            "      stream: true\n      filter: true\n",
            defs_yaml=COMPONENT.replace(".orders.build_orders", ".lazy.scan"),
        )

        outcome = run(asset)

        assert outcome.rows("scan", "order_id") == ["A1"]

    def test_several_components_stand_in_one_file(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        second = COMPONENT + "      asset: {key: shop/orders}\n"
        project.write("orders/defs.yaml", COMPONENT + "    ---" + second)

        graph = project.load(monkeypatch).resolve_asset_graph()

        assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
            "build_orders",
            "shop/orders",
        }

    def test_post_processing_changes_the_assets(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asset = loaded(
            project,
            monkeypatch,
            """
    post_processing:
      assets:
        - target: "*"
          attributes: {owners: ["team:platform"], tags: {tier: gold}}
""",
        )

        (spec,) = asset.specs
        assert spec.owners == ["team:platform"]
        assert spec.tags["tier"] == "gold"
        assert spec.kinds == {"dataframely", "polars"}


class TestTemplates:
    def test_every_attribute_may_be_a_template(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.write(
            "orders/template_vars.py",
            """
            import dagster as dg

            @dg.template_var
            def monthly():
                return dg.MonthlyPartitionsDefinition("2026-01-01")

            @dg.template_var
            def hourly():
                return dg.AutomationCondition.on_cron("@hourly")

            @dg.template_var
            def attributes():
                return {"group_name": "sales", "partitions_def": dg.StaticPartitionsDefinition(["a"])}
            """,
        )
        monkeypatch.setenv("SHOP_FILTER", "true")
        monkeypatch.setenv("SHOP_GRANULARITY", "schema")
        monkeypatch.setenv("SHOP_SAMPLES", "3")
        monkeypatch.setenv("SHOP_REGION", "eu")

        asset = loaded(
            project,
            monkeypatch,
            """
      fn: ".{{ 'orders' }}.build_orders"
      filter: "{{ env.SHOP_FILTER }}"
      stream: "{{ false }}"
      check_granularity: "{{ env.SHOP_GRANULARITY }}"
      max_failure_samples: "{{ env.SHOP_SAMPLES }}"
      redact: "{{ ['amount'] }}"
      staging_dir: "{{ context.project_root }}/staging"
      asset:
        key: "{{ env.SHOP_REGION }}/orders"
        partitions_def: "{{ monthly }}"
        automation_condition: "{{ hourly }}"
      op: {pool: "{{ env.SHOP_REGION }}"}
      retry_policy: {max_retries: "{{ 1 + 1 }}"}
    template_vars_module: .template_vars
""",
        )

        (spec,) = asset.specs
        assert spec.key == dg.AssetKey(["eu", "orders"])
        assert spec.partitions_def == dg.MonthlyPartitionsDefinition("2026-01-01")
        assert spec.automation_condition == dg.AutomationCondition.on_cron("@hourly")
        assert {check.name: check.blocking for check in asset.check_specs} == {
            "dy_schema__columns": True,
            "dy_schema__rules": False,
        }
        assert asset.op.pools == {"eu"}
        assert asset.op.retry_policy == dg.RetryPolicy(max_retries=2)

    def test_a_template_may_give_a_whole_block(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asset = loaded(
            project,
            monkeypatch,
            """
      asset: "{{ {'group_name': 'sales', 'owners': ['team:sales']} }}"
      op: "{{ {'pool': 'warehouse'} }}"
      retry_policy: "{{ {'max_retries': 2} }}"
""",
        )

        assert asset.specs_by_key[asset.key].group_name == "sales"
        assert asset.op.pools == {"warehouse"}
        assert asset.op.retry_policy == dg.RetryPolicy(max_retries=2)


class TestInPython:
    def test_the_attributes_are_keyword_arguments(self) -> None:
        component = dd.DataframelyAsset(fn=orders, schema=OrdersSchema, filter=True, row_sample=0)

        defs = dg.components.build_defs_for_component(component)

        assert {spec.key.to_user_string() for spec in defs.resolve_all_asset_specs()} == {
            "orders",
            "orders__error_rows",
        }
        assert run(only_asset(defs)).rows("orders", "order_id") == ["A1"]

    def test_dagsters_own_objects_are_arguments_too(self) -> None:
        component = dd.DataframelyAsset(
            fn=clean_orders,
            schema=OrdersSchema,
            ins={"raw_orders": dg.AssetKey(["raw", "orders"])},
            asset={"key": dg.AssetKey(["shop", "orders"]), "owners": ["team:sales"]},
            op=OpSpec(pool="warehouse"),
            retry_policy=dg.RetryPolicy(max_retries=2),
        )

        asset = component.build_asset()

        assert asset.key == dg.AssetKey(["shop", "orders"])
        assert asset.specs_by_key[asset.key].owners == ["team:sales"]
        assert set(asset.keys_by_input_name.values()) == {dg.AssetKey(["raw", "orders"])}
        assert asset.op.retry_policy == dg.RetryPolicy(max_retries=2)

    @pytest.mark.parametrize("name", ["DataframelyAsset", "DataframelyAssetComponent"])
    def test_both_names_are_the_same_class(self, name: str) -> None:
        assert getattr(dd, name).__name__ == "DataframelyAssetComponent"

    def test_an_unknown_argument_is_refused(self) -> None:
        with pytest.raises(ValueError, match="filtr"):
            dd.DataframelyAsset(fn=orders, schema=OrdersSchema, filtr=True)

    def test_an_error_of_the_schema_is_raised_as_it_is(self) -> None:
        component = dd.DataframelyAsset(fn=orders, schema=OrdersSchema(), filter=True)

        with pytest.raises(
            dd.errors.InvalidSchemaError, match="DataframelyAsset takes the schema class"
        ):
            dg.components.build_defs_for_component(component)

    def test_a_component_py_gives_an_instance(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.write(
            "orders/component.py",
            """
            import dagster as dg
            import dagster_dataframely as dd

            from .orders import build_orders
            from .schema import OrdersSchema

            @dg.component_instance
            def orders(context: dg.ComponentLoadContext) -> dd.DataframelyAsset:
                return dd.DataframelyAsset(
                    fn=build_orders, schema=OrdersSchema, asset={"group_name": "sales"}
                )
            """,
        )

        asset = only_asset(project.load(monkeypatch))

        assert asset.specs_by_key[asset.key].group_name == "sales"

    def test_attributes_are_read_from_a_dictionary_without_a_file(self) -> None:
        component = dd.DataframelyAsset.from_attributes_dict(
            attributes={
                "fn": f"{__name__}.orders",
                "schema": f"{__name__}.OrdersSchema",
                "asset": {"key": "shop/orders"},
            }
        )

        assert component.build_asset().key == dg.AssetKey(["shop", "orders"])

    def test_a_sandbox_of_dagsters_builds_it(self) -> None:
        with create_defs_folder_sandbox() as sandbox:
            folder = sandbox.defs_folder_path / "orders"
            folder.mkdir()
            (folder / "defs.yaml").write_text(
                "type: dagster_dataframely.DataframelyAsset\nattributes:\n"
                f"  fn: {__name__}.orders\n  schema: {__name__}.OrdersSchema\n"
            )
            with sandbox.load_component_and_build_defs(defs_path=folder) as (component, defs):
                assert isinstance(component, dd.DataframelyAsset)
                assert only_asset(defs).key == dg.AssetKey("orders")


class TestASubclass:
    SUBCLASS = """
        import dagster as dg
        import dagster_dataframely as dd


        class RegionalAsset(dd.DataframelyAsset):
            region: str
            level: int | str = 1

            def get_asset_spec(self, spec: dg.AssetSpec) -> dg.AssetSpec:
                return spec.replace_attributes(
                    key=spec.key.with_prefix(self.region)
                ).merge_attributes(tags={"level": str(self.level)})
    """

    def test_in_a_project_adds_attributes_and_changes_the_asset_spec(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.write("../components/__init__.py", "")
        project.write("../components/regional_asset.py", self.SUBCLASS)
        asset = loaded(
            project,
            monkeypatch,
            "      region: eu\n      level: high\n      filter: true\n",
            defs_yaml=COMPONENT.replace(
                "dagster_dataframely.DataframelyAsset",
                f"{project.name}.components.regional_asset.RegionalAsset",
            ),
        )

        (spec,) = asset.specs
        assert spec.key == dg.AssetKey(["eu", "build_orders"])
        assert spec.tags["level"] == "high"
        assert {check.asset_key for check in asset.check_specs} == {spec.key}
        assert set(run(asset).written) == {"eu/build_orders", "eu/build_orders__error_rows"}

    def test_has_its_attributes_in_the_json_schema(self) -> None:
        class OwnedAsset(dd.DataframelyAsset):
            owner: str

        schema = OwnedAsset.get_model_cls().model_json_schema()

        assert schema["required"] == ["fn", "schema", "owner"]

    def test_may_replace_how_the_asset_is_built(self) -> None:
        class TaggedAsset(dd.DataframelyAsset):
            def build_asset(self) -> dg.AssetsDefinition:
                return (
                    super()
                    .build_asset()
                    .map_asset_specs(lambda spec: spec.merge_attributes(kinds={"shop"}))
                )

        asset = TaggedAsset(fn=orders, schema=OrdersSchema).build_asset()

        assert asset.specs_by_key[asset.key].kinds == {"dataframely", "polars", "shop"}


class TestWhatEditorsAndTheAppAreTold:
    schema: typing.ClassVar[dict[str, Any]] = (
        dd.DataframelyAsset.get_model_cls().model_json_schema()
    )

    @pytest.mark.parametrize("name", schema["properties"])
    def test_every_attribute_has_a_label_a_description_and_an_example(self, name: str) -> None:
        attribute = self.schema["properties"][name]

        assert attribute["title"]
        assert attribute["description"].endswith(".")
        assert attribute["examples"]

    def test_every_example_is_valid(self) -> None:
        required = {"fn": ".orders.build_orders", "schema": ".schema.OrdersSchema"}
        for name, attribute in self.schema["properties"].items():
            for example in attribute["examples"]:
                Draft202012Validator(self.schema).validate({**required, name: example})

    def test_every_setting_of_dd_asset_is_an_attribute(self) -> None:
        from dagster_dataframely.core.settings import Settings

        assert set(Settings.__dataclass_fields__) <= set(self.schema["properties"])

    def test_the_form_groups_the_settings_under_advanced(self) -> None:
        _, form = split_form_schema(self.schema)

        advanced = {
            name
            for name, hints in form.items()
            if isinstance(hints, dict) and hints.get("ui:advanced")
        }
        assert advanced == {
            "check_granularity",
            "schema_rules",
            "statistics",
            "max_failure_samples",
            "row_sample",
            "redact",
            "staging_dir",
        }
        assert form["ui:order"][:4] == ["fn", "schema", "filter", "stream"]

    @pytest.mark.parametrize(
        ("name", "control"),
        [
            ("fn", {"type": "string", "title": "Function"}),
            ("filter", {"type": "boolean", "title": "Filter error rows", "default": False}),
            (
                "check_granularity",
                {"enum": ["rule", "column", "schema"], "title": "Check granularity"},
            ),
            ("schema_rules", {"enum": ["collapsed", "per_rule"], "title": "Schema rules"}),
            ("row_sample", {"type": "integer", "minimum": 0, "title": "Rows shown"}),
            ("redact", {"type": "array", "items": {"type": "string"}, "title": "Redacted columns"}),
        ],
    )
    def test_the_form_has_the_input_that_fits(self, name: str, control: Mapping[str, Any]) -> None:
        data, _ = split_form_schema(self.schema)

        assert control.items() <= data["properties"][name].items()

    def test_the_form_has_dagsters_own_asset_attributes(self) -> None:
        data, _ = split_form_schema(self.schema)

        assert set(data["properties"]["asset"]["properties"]) == set(
            AssetSpecUpdateKwargs.model().model_fields
        )

    def test_the_app_can_create_the_component(self) -> None:
        assert self.schema["x-app-managed"] is True
        assert self.schema["title"] == "Dataframely asset"

    def test_the_type_names_its_owner_its_tags_and_what_it_produces(self) -> None:
        spec = dd.DataframelyAsset.get_spec()

        assert spec.owners == ["team:dagster-dataframely"]
        assert spec.tags == ["data-quality", "dataframely", "polars"]
        assert spec.produces == ["asset", "asset_check"]

    @pytest.mark.parametrize(
        "attributes",
        [
            {"filter": "{{ env.FILTER }}"},
            {"row_sample": "{{ env('ROWS', 5) }}"},
            {"asset": "{{ attributes }}"},
            {
                "asset": {
                    "owners": "{{ owners }}",
                    "key_prefix": "eu",
                    "partitions_def": "{{ daily }}",
                }
            },
            {
                "asset": {
                    "key_prefix": ["eu", "shop"],
                    "partitions_def": {"type": "static", "partition_keys": ["a"]},
                }
            },
            {"op": {"tags": {"memory": 3}, "backfill_policy": {"type": "multi_run"}}},
            {"retry_policy": {"max_retries": "{{ retries }}"}},
            {"ins": {"raw": "{{ key }}"}},
            {"redact": None, "asset": None, "op": None, "retry_policy": None},
        ],
    )
    def test_the_json_schema_takes_templates_and_all_that_loads(
        self, attributes: Mapping[str, Any]
    ) -> None:
        required = {"fn": ".orders.build_orders", "schema": ".schema.OrdersSchema"}

        Draft202012Validator(self.schema).validate({**required, **attributes})


class TestWhatDagsterAddsLater:
    """A new attribute of Dagster's fails a test rather than being missed."""

    def test_an_asset_attribute_that_dg_asset_does_not_take_is_known(self) -> None:
        import inspect

        attributes = set(typing.get_type_hints(AssetSpecUpdateKwargs))

        assert attributes - set(inspect.signature(dg.asset).parameters) == {"skippable"}

    def test_an_op_attribute_is_known(self) -> None:
        assert set(OpSpec.model_fields) == {
            "name",
            "tags",
            "description",
            "pool",
            "backfill_policy",
        }


def in_a_new_process(code: str) -> str:
    command = [sys.executable, "-W", "always", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_imports_neither_dataframely_nor_polars() -> None:
    code = (
        "import sys, dagster_dataframely as dd\n"
        "dd.DataframelyAsset.get_model_cls().model_json_schema()\n"
        "print([name for name in ('dataframely', 'polars') if name in sys.modules])"
    )

    assert in_a_new_process(code) == "[]"


def test_reading_the_attributes_warns_of_nothing() -> None:
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import dagster_dataframely as dd\n"
        "    dd.DataframelyAsset.get_model_cls().model_json_schema()\n"
        "print([str(each.message) for each in caught if 'shadow' in str(each.message)])"
    )

    assert in_a_new_process(code) == "[]"
