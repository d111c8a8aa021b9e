"""Fails when Dagster changes what the YAML front uses of it without a promise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import dagster as dg
import pytest
from dagster.components.core.defs_module import ComponentPath
from dagster_shared.yaml_utils import parse_yaml_with_source_position

from dagster_dataframely.upstream.dagster_components import (
    AssetSpecUpdateKwargs,
    OpSpec,
    ResolutionException,
    context_of_build,
    defs_folder_module,
    located_error,
    resolve_asset_attributes,
    with_cause_first,
)
from yaml_project import Project


def refuse(context: dg.ResolutionContext, value: object) -> object:
    raise located_error(context, "this is wrong")


def fail(context: dg.ResolutionContext, value: object) -> object:
    raise ValueError("the reason")


class Refused(dg.Resolvable, dg.Model):
    count: Annotated[int, dg.Resolver(refuse, model_field_type=int)]


class Failed(dg.Resolvable, dg.Model):
    count: Annotated[int, dg.Resolver(fail, model_field_type=int)]


class Rendered(dg.Resolvable, dg.Model):
    count: int


def written(folder: Path, text: str) -> tuple[dg.ResolutionContext, str]:
    """Write YAML to a file, and return a context that knows its lines."""
    file = folder / "defs.yaml"
    file.write_text(text)
    parsed = parse_yaml_with_source_position(text, str(file))
    return dg.ResolutionContext.default(parsed.source_position_tree), str(file)


class TestALocatedError:
    def test_has_place_and_sentence_in_its_first_line_and_the_lines_of_the_file_below(
        self, tmp_path: Path
    ) -> None:
        context, file = written(tmp_path, "attributes:\n  filter: maybe\n")

        lines = str(located_error(context, "it is wrong", ["attributes", "filter"])).splitlines()

        assert lines[0] == f"{file}:2 - attributes.filter: it is wrong"
        assert "   2 |   filter: maybe" in lines

    def test_has_no_place_without_a_file(self) -> None:
        error = located_error(
            dg.ResolutionContext.default(), "it is wrong", ["attributes", "ins", 0]
        )

        assert str(error) == "attributes.ins.0: it is wrong"

    def test_leaves_a_resolver_as_it_is(self) -> None:
        with pytest.raises(ResolutionException) as raised:
            Refused.resolve_from_yaml("count: 1")

        assert str(raised.value).splitlines()[0] == "<string>:1 - count: this is wrong"


class TestAnErrorOfDagstersOwnResolvers:
    def test_gets_its_cause_into_the_first_line_and_loses_the_traceback(
        self, tmp_path: Path
    ) -> None:
        context, file = written(tmp_path, "attributes:\n  count: 1\n")
        attributes = context.at_path("attributes")
        with pytest.raises(ResolutionException) as raised:
            Failed.resolve_from_model(attributes, Failed.model()(count=1))

        error = str(with_cause_first(raised.value, attributes))

        assert error.splitlines()[0] == f"{file}:2 - attributes.count: ValueError: the reason"
        assert "Traceback" not in error

    def test_about_an_undefined_name_gets_the_nearest(self, tmp_path: Path) -> None:
        context, file = written(tmp_path, "attributes:\n  count: '{{ contxt }}'\n")
        attributes = context.at_path("attributes").with_scope(context=None)
        with pytest.raises(ResolutionException) as raised:
            Rendered.resolve_from_model(attributes, Rendered.model()(count="{{ contxt }}"))

        first = str(with_cause_first(raised.value, attributes)).splitlines()[0]

        assert first.startswith(
            f"{file}:2 - attributes.count: 'contxt' is not defined for templates."
        )
        assert first.endswith("Did you mean 'context'?")

    def test_about_an_environment_variable_gets_a_place(self, tmp_path: Path) -> None:
        context, file = written(tmp_path, "attributes:\n  count: \"{{ env('SHOP') }}\"\n")
        attribute = context.at_path("attributes").at_path("count")
        with pytest.raises(ResolutionException) as raised:
            attribute.resolve_value("{{ env('SHOP') }}")

        first = str(with_cause_first(raised.value, attribute)).splitlines()[0]

        assert first.startswith(
            f"{file}:2 - attributes.count: Environment variable SHOP is not set"
        )


class TestTheFolderOfAComponent:
    def test_is_a_module_of_its_own(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(str(project.root / "src"))
        context = dg.ComponentTree.for_project(project.source).decl_load_context
        folder = project.source / "defs" / "orders"

        of_folder = context.for_component_loc(ComponentPath.from_path(folder, 0))
        of_file = context.for_component_loc(ComponentPath.from_path(folder / "orders.py"))

        module = f"{project.name}.defs.orders"
        assert defs_folder_module(of_folder.resolution_context) == module
        assert defs_folder_module(of_file.resolution_context) == module

    def test_is_none_without_a_project(self) -> None:
        assert defs_folder_module(dg.ResolutionContext.default()) is None

    def test_is_none_at_the_root_of_a_project(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(str(project.root / "src"))
        context = dg.ComponentTree.for_project(project.source).decl_load_context

        assert defs_folder_module(context.resolution_context) is None

    def test_is_not_in_yaml_where_a_test_builds_the_component(self) -> None:
        assert context_of_build(dg.ComponentTree.for_test().load_context) is None


class TestDagstersAttributes:
    def test_those_that_were_written_are_resolved_and_no_others(self) -> None:
        attributes = AssetSpecUpdateKwargs.model()(
            key="shop/orders", deps=["raw/orders"], group_name="{{ 'sales' }}"
        )

        resolved = resolve_asset_attributes(dg.ResolutionContext.default(), attributes)

        assert resolved == {
            "key": dg.AssetKey(["shop", "orders"]),
            "deps": [dg.AssetKey(["raw", "orders"])],
            "group_name": "sales",
        }

    def test_those_of_the_step_are_fields(self) -> None:
        assert OpSpec(pool="warehouse", tags={"a": 1}).pool == "warehouse"
