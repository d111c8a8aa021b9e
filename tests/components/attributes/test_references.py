"""What `fn: .orders.build_orders` names, and what is said where it names nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from dagster.components.core.defs_module import ComponentPath

from dagster_dataframely.components.attributes.references import resolve_function, resolve_schema
from dagster_dataframely.errors import InvalidReferenceError
from yaml_project import Project

Resolve = Callable[[str], Any]


@pytest.fixture
def context(project: Project, monkeypatch: pytest.MonkeyPatch) -> dg.ResolutionContext:
    """The context of a `defs.yaml` in the folder `orders`."""
    monkeypatch.syspath_prepend(str(project.root / "src"))
    tree = dg.ComponentTree.for_project(project.source)
    folder = ComponentPath.from_path(project.source / "defs" / "orders")
    return tree.decl_load_context.for_component_loc(folder).resolution_context


def said(project: Project, error: pytest.ExceptionInfo[BaseException]) -> str:
    """The message, without the project's name, which each test has its own of."""
    return project.relative(str(error.value))


class TestAReferenceThatIsFound:
    @pytest.mark.parametrize(
        "reference",
        [
            pytest.param(".orders.build_orders", id="in a module of this folder"),
            pytest.param("..orders.orders.build_orders", id="from the folder above"),
            pytest.param("{package}.defs.orders.orders.build_orders", id="by its full name"),
        ],
    )
    def test_names_a_function(
        self, reference: str, context: dg.ResolutionContext, project: Project
    ) -> None:
        function = resolve_function(context, reference.format(package=project.name))

        assert function.__name__ == "build_orders"

    def test_may_be_in_the_package_of_the_folder_itself(
        self, context: dg.ResolutionContext, project: Project
    ) -> None:
        project.write("orders/__init__.py", "def build_here():\n    return None\n")

        assert resolve_function(context, ".build_here").__name__ == "build_here"

    def test_may_be_two_folders_up(self, context: dg.ResolutionContext, project: Project) -> None:
        (project.source / "shared.py").write_text("def build_shared():\n    return None\n")

        assert resolve_function(context, "...shared.build_shared").__name__ == "build_shared"

    def test_names_a_schema(self, context: dg.ResolutionContext) -> None:
        schema = resolve_schema(context, ".schema.OrdersSchema")

        assert schema.column_names() == ["order_id", "amount"]

    def test_may_be_a_template_that_gives_the_reference_or_the_thing_itself(
        self, context: dg.ResolutionContext
    ) -> None:
        def build_elsewhere() -> None:
            """Return nothing."""

        scope = context.with_scope(module="orders", function=build_elsewhere)

        assert resolve_function(scope, ".{{ module }}.build_orders").__name__ == "build_orders"
        assert resolve_function(scope, "{{ function }}") is build_elsewhere


class TestAModuleThatIsNotFound:
    @pytest.mark.parametrize(
        ("reference", "sentence"),
        [
            pytest.param(
                ".order.build_orders",
                "There is no module 'defs.orders.order'. This folder, 'defs.orders', has the modules 'orders', "
                "'schema'. Did you mean '.orders.build_orders'?",
                id="misspelt in this folder",
            ),
            pytest.param(
                ".zoo.build_orders",
                "There is no module 'defs.orders.zoo'. This folder, 'defs.orders', has the modules "
                "'orders', 'schema'.",
                id="like none in this folder",
            ),
            pytest.param(
                "{package}.defs.order.orders.build_orders",
                "There is no module 'defs.order'. 'defs' has the module 'orders'. Did you mean 'orders'?",
                id="a folder misspelt",
            ),
            pytest.param(
                "orders.build_orders",
                "There is no module 'orders' at the top level, but there is one in this folder. Write "
                "'.orders.build_orders', with a leading dot.",
                id="the leading dot is missing",
            ),
            pytest.param(
                "{package}s.defs.orders.orders.build_orders",
                "There is no module '{package}s'. Did you mean '{package}'?",
                id="the package misspelt",
            ),
            pytest.param(
                ".orders.Builder.build",
                "'defs.orders.orders' is a module and not a package, so there is nothing named 'Builder.build' "
                "in it. Only `module.attribute` can be named, not an attribute of an attribute.",
                id="an attribute of an attribute",
            ),
            pytest.param(
                ".......orders.build_orders",
                "'.......orders.build_orders' leads above the top of the project: the folder of this file is "
                "'defs.orders', and each dot after the first goes up by one.",
                id="too many dots",
            ),
        ],
    )
    def test_is_named_with_what_there_is_and_the_nearest(
        self, reference: str, sentence: str, context: dg.ResolutionContext, project: Project
    ) -> None:
        project.write("orders/__init__.py", "")
        with pytest.raises(InvalidReferenceError) as error:
            resolve_function(context, reference.format(package=project.name))

        assert said(project, error) == sentence.format(package=project.name)

    def test_is_no_matter_of_relative_names_where_there_is_no_folder(self) -> None:
        with pytest.raises(
            InvalidReferenceError, match=re.escape("is relative to the folder of a defs.yaml")
        ):
            resolve_function(dg.ResolutionContext.default(), ".orders.build_orders")


class TestAReferenceThatIsNone:
    @pytest.mark.parametrize(
        ("reference", "sentence"),
        [
            ("build_orders", "'build_orders' names no module."),
            (
                ".orders:build_orders",
                "'.orders:build_orders' has a colon, and module and function are separated by a dot.",
            ),
            ("orders/orders.py", "'orders/orders.py' is a path, not a reference."),
            ("orders.py", "'orders.py' is a path, not a reference."),
            (
                ".orders.build_orders()",
                "'.orders.build_orders()' is not a name that Python can import.",
            ),
            (".orders.", "'.orders.' is not a name that Python can import."),
        ],
    )
    def test_is_told_how_to_write_one(
        self, reference: str, sentence: str, context: dg.ResolutionContext
    ) -> None:
        allowed = (
            "Write `module.function`, such as '.orders.build_orders'; a leading dot is the folder of this "
            "file."
        )
        with pytest.raises(InvalidReferenceError) as error:
            resolve_function(context, reference)

        assert str(error.value) == f"{sentence} {allowed}"


class TestAnAttributeThatIsNotFound:
    @pytest.mark.parametrize(
        ("resolve", "reference", "sentence"),
        [
            pytest.param(
                resolve_function,
                ".orders.build_order",
                "Module 'defs.orders.orders' has no 'build_order'. It defines the functions 'build_orders', "
                "'clean_orders'. Did you mean '.orders.build_orders'?",
                id="a misspelt function",
            ),
            pytest.param(
                resolve_schema,
                ".schema.OrderSchema",
                "Module 'defs.orders.schema' has no 'OrderSchema'. It defines the schema 'OrdersSchema'. "
                "Did you mean '.schema.OrdersSchema'?",
                id="a misspelt schema",
            ),
            pytest.param(
                resolve_schema,
                ".orders.OrdersSchema",
                "Module 'defs.orders.orders' has no 'OrdersSchema'. It defines no schemas.",
                id="a schema in the module of functions",
            ),
            pytest.param(
                resolve_function,
                ".orders",
                "'.orders' is a module, and a function in it has to be named. It defines the functions "
                "'build_orders', 'clean_orders'.",
                id="a module alone",
            ),
            pytest.param(
                resolve_schema,
                ".schema",
                "'.schema' is a module, and a schema in it has to be named. Did you mean "
                "'.schema.OrdersSchema'?",
                id="a module with one schema alone",
            ),
        ],
    )
    def test_is_named_with_what_the_module_defines_and_the_nearest(
        self,
        resolve: Callable[[dg.ResolutionContext, str], object],
        reference: str,
        sentence: str,
        context: dg.ResolutionContext,
        project: Project,
    ) -> None:
        with pytest.raises(InvalidReferenceError) as error:
            resolve(context, reference)

        assert said(project, error) == sentence

    def test_is_answered_with_a_few_names_where_there_are_many(
        self, context: dg.ResolutionContext, project: Project
    ) -> None:
        functions = "\n".join(f"def build_{number}():\n    pass" for number in range(12))
        project.write("orders/many.py", functions)

        with pytest.raises(InvalidReferenceError, match=r"'build_7' and 4 more\."):
            resolve_function(context, ".many.orders")

    def test_is_not_answered_with_what_the_module_imports(
        self, context: dg.ResolutionContext, project: Project
    ) -> None:
        project.write("orders/other.py", "from os.path import join\n\n\ndef build():\n    pass\n")

        with pytest.raises(InvalidReferenceError, match=r"It defines the function 'build'\."):
            resolve_function(context, ".other.loads")


class TestSomethingElseThanWhatIsNeeded:
    @pytest.mark.parametrize(
        ("code", "sentence"),
        [
            pytest.param(
                "import dagster as dg\n\n@dg.asset\ndef thing():\n    return None\n",
                "'.things.thing' is an asset already. Point `fn` at the plain function, or drop its decorator.",
                id="an asset",
            ),
            pytest.param(
                "thing = {'a': 1}\n",
                "'.things.thing' is a dict, and `fn` names a function that returns the rows.",
                id="a value",
            ),
            pytest.param(
                "import polars as pl\nthing = pl.DataFrame({'a': [1]})\n",
                "'.things.thing' is a DataFrame, and `fn` names a function that returns the rows.",
                id="a frame",
            ),
            pytest.param(
                "class thing:\n    pass\n",
                "'.things.thing' is the class thing, and `fn` names a function that returns the rows.",
                id="a class",
            ),
            pytest.param(
                "import dataframely as dy\n\nclass thing(dy.Schema):\n    a = dy.Int64()\n",
                "'.things.thing' is the class thing, and `fn` names a function that returns the rows. It "
                "belongs under `schema`.",
                id="a schema",
            ),
        ],
    )
    def test_is_refused_for_fn(
        self, code: str, sentence: str, context: dg.ResolutionContext, project: Project
    ) -> None:
        project.write("orders/things.py", code)

        with pytest.raises(InvalidReferenceError) as error:
            resolve_function(context, ".things.thing")

        assert str(error.value) == sentence

    @pytest.mark.parametrize(
        ("code", "sentence"),
        [
            pytest.param(
                "class Thing:\n    pass\n",
                "'.things.Thing': `schema` takes a subclass of dy.Schema, and Thing is not one. Write "
                "`class Thing(dy.Schema)`.",
                id="another class",
            ),
            pytest.param(
                "import dataframely as dy\n\nclass S(dy.Schema):\n    a = dy.Int64()\n\n"
                "class Thing(dy.Collection):\n    first: dy.LazyFrame[S]\n",
                "'.things.Thing': `schema` takes a dy.Schema, and Thing is a dy.Collection. Give the schema "
                "of each member to an asset of its own.",
                id="a collection",
            ),
            pytest.param(
                "import dataframely as dy\n\nclass S(dy.Schema):\n    a = dy.Int64()\n\nThing = S()\n",
                "'.things.Thing': `schema` takes the schema class, and this is an instance of S. Write S "
                "without parentheses.",
                id="an instance",
            ),
            pytest.param(
                "import dataframely as dy\n\nThing = dy.Schema\n",
                "'.things.Thing': `schema` takes a subclass of dy.Schema that declares columns, not dy.Schema "
                "itself.",
                id="the base class",
            ),
            pytest.param(
                "def Thing():\n    pass\n",
                "'.things.Thing' is a function, and `schema` names a Dataframely schema. It belongs under "
                "`fn`.",
                id="a function",
            ),
            pytest.param(
                "Thing = 'OrdersSchema'\n",
                "'.things.Thing': `schema` takes a subclass of dy.Schema, and this is 'OrdersSchema' of type "
                "str.",
                id="a value",
            ),
        ],
    )
    def test_is_refused_for_schema(
        self, code: str, sentence: str, context: dg.ResolutionContext, project: Project
    ) -> None:
        project.write("orders/things.py", code)

        with pytest.raises(InvalidReferenceError) as error:
            resolve_schema(context, ".things.Thing")

        assert str(error.value) == sentence

    def test_is_refused_when_a_template_gives_it(self, context: dg.ResolutionContext) -> None:
        with pytest.raises(InvalidReferenceError, match=r"What the template gave, 3, is an int"):
            resolve_function(context.with_scope(three=3), "{{ three }}")


class TestAModuleThatCannotBeImported:
    @pytest.mark.parametrize(
        ("code", "error"),
        [
            pytest.param("1 / 0\n", ZeroDivisionError, id="an exception"),
            pytest.param("def build(:\n", SyntaxError, id="a syntax error"),
            pytest.param(
                "import not_installed_anywhere\n", ModuleNotFoundError, id="a missing package"
            ),
            pytest.param(
                "from .nowhere import helper\n", ModuleNotFoundError, id="a missing sibling"
            ),
            pytest.param("from .schema import Nothing\n", ImportError, id="a missing name"),
        ],
    )
    def test_raises_its_own_error(
        self,
        code: str,
        error: type[Exception],
        context: dg.ResolutionContext,
        project: Project,
    ) -> None:
        project.write("orders/broken.py", code)

        with pytest.raises(error) as raised:
            resolve_function(context, ".broken.build")

        assert not isinstance(raised.value, InvalidReferenceError)

    def test_is_called_a_circle_where_it_is_one(
        self, context: dg.ResolutionContext, project: Project
    ) -> None:
        project.write("orders/first.py", "from .second import helper\n\ndef build():\n    pass\n")
        project.write("orders/second.py", "from .first import build\n\ndef helper():\n    pass\n")

        with pytest.raises(InvalidReferenceError) as error:
            resolve_function(context, ".first.build")

        assert said(project, error) == (
            "Importing 'defs.orders.first' for '.first.build' goes round in a circle: cannot import name "
            "'build' from partially initialized module 'defs.orders.first'. Move what both modules need into a "
            "third one."
        )
        assert isinstance(error.value.__cause__, ImportError)


def test_a_function_that_is_not_found_imports_neither_dataframely_nor_polars(
    context: dg.ResolutionContext, monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    for name in ("dataframely", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    project.write("orders/plain.py", "def build():\n    pass\n")

    with pytest.raises(InvalidReferenceError, match="Did you mean"):
        resolve_function(context, ".plain.builds")
