"""What `dg scaffold defs dagster_dataframely.DataframelyAsset` writes, and what it leaves alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
import yaml
from click.testing import CliRunner, Result
from dagster.components.component_scaffolding import scaffold_object
from dagster.components.testing import DefsFolderSandbox, create_defs_folder_sandbox
from dagster_dg_cli.cli import cli

from dagster_dataframely import DataframelyAsset
from dagster_dataframely.components.scaffold.asset_scaffolder import DataframelyAssetScaffoldParams
from dagster_dataframely.errors import ScaffoldError

TYPE = "dagster_dataframely.DataframelyAsset"

TABLES = """
import dagster as dg
import dataframely as dy
import polars as pl


class OrdersSchema(dy.Schema):
    order_id = dy.Int64(primary_key=True)


def read_orders() -> pl.DataFrame:
    return pl.DataFrame({"order_id": [1, 2]})


@dg.asset
def stock() -> None: ...
"""


@pytest.fixture
def sandbox() -> Iterator[DefsFolderSandbox]:
    """A project with an empty `defs` folder, a module `tables`, and modules that cannot be imported."""
    with create_defs_folder_sandbox() as sandbox:
        package = sandbox.defs_folder_path.parent
        (package / "tables.py").write_text(TABLES)
        (package / "broken.py").write_text("raise ValueError('no such year')\n")
        (package / "unfinished.py").write_text("def build(:\n")
        yield sandbox


def scaffold(
    sandbox: DefsFolderSandbox,
    path: str = "sales/orders",
    *,
    scaffold_format: str = "yaml",
    **params: Any,
) -> Path:
    """Scaffold as `dg` does it: under the type's short name, and with the folder made before."""
    folder = sandbox.defs_folder_path / path
    named = {
        name: value.format(project=sandbox.project_name) if isinstance(value, str) else value
        for name, value in params.items()
    }
    json_params = DataframelyAssetScaffoldParams(**named).model_dump_json(by_alias=True)
    scaffold_object(folder, TYPE, json_params, scaffold_format, sandbox.project_root)
    return folder


def attributes(folder: Path) -> Mapping[str, Any]:
    """The attributes in a scaffolded defs.yaml."""
    document = yaml.safe_load((folder / "defs.yaml").read_text())
    assert document["type"] == TYPE
    return document["attributes"]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def materialized(sandbox: DefsFolderSandbox) -> dg.ExecuteInProcessResult:
    """Load the project, and materialize every asset in it."""
    with sandbox.build_all_defs() as defs:
        assets = [asset for asset in defs.assets or [] if isinstance(asset, dg.AssetsDefinition)]
        return dg.materialize(assets, resources={"io_manager": dg.mem_io_manager})


def written(result: dg.ExecuteInProcessResult, key: str) -> pl.DataFrame:
    return result.asset_value(dg.AssetKey(key.split("/")))


# --- as it stands ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scaffold_format", "component_file"), [("yaml", "defs.yaml"), ("python", "component.py")]
)
def test_what_is_scaffolded_loads_and_runs_as_it_stands(
    sandbox: DefsFolderSandbox, scaffold_format: str, component_file: str
) -> None:
    folder = scaffold(sandbox, scaffold_format=scaffold_format)

    assert files(folder) == {component_file, "orders.py", "schema.py"}
    result = materialized(sandbox)
    checks = result.get_asset_check_evaluations()
    assert written(result, "sales/orders").height == 3
    assert all(check.passed for check in checks)
    assert {
        "dy_rule__primary_key",
        "dy_rule__amount__min",
        "dy_rule__paid_is_at_most_amount",
    } <= {check.check_name for check in checks}


def test_the_scaffolded_schema_shows_a_warn_rule(sandbox: DefsFolderSandbox) -> None:
    scaffold(sandbox)

    with sandbox.build_all_defs() as defs:
        [asset] = [asset for asset in defs.assets or [] if isinstance(asset, dg.AssetsDefinition)]
        blocking = {spec.name: spec.blocking for spec in asset.check_specs}
    assert not blocking["dy_rule__note__max_length"]
    assert blocking["dy_rule__amount__min"]


@pytest.mark.parametrize("scaffold_format", ["yaml", "python"])
def test_filter_keeps_error_rows_in_a_table_of_their_own(
    sandbox: DefsFolderSandbox, scaffold_format: str
) -> None:
    scaffold(sandbox, scaffold_format=scaffold_format, filter=True)

    with sandbox.build_all_defs() as defs:
        keys = {spec.key.to_user_string() for spec in defs.resolve_all_asset_specs()}
    assert keys == {"sales/orders", "sales/orders__error_rows"}


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "key", "fn", "schema"),
    [
        ("orders", "orders", ".orders.build_orders", ".schema.OrdersSchema"),
        ("a/b/orders", "a/b/orders", ".orders.build_orders", ".schema.OrdersSchema"),
        (
            "my-orders 2024",
            "my_orders_2024",
            ".my_orders_2024.build_my_orders_2024",
            ".schema.MyOrders2024Schema",
        ),
        ("Ventes/Été", "Ventes/Ete", ".ete.build_ete", ".schema.EteSchema"),
        ("2024/orders", "2024/orders", ".orders.build_orders", ".schema.OrdersSchema"),
        ("2024", "table_2024", "._2024.build_2024", ".schema.Table2024Schema"),
        ("class", "table_class", ".class_.build_class", ".schema.ClassSchema"),
        ("sales/class", "sales/class", ".class_.build_class", ".schema.ClassSchema"),
        ("config", "table_config", ".config.build_config", ".schema.ConfigSchema"),
        ("on", "on", ".on.build_on", ".schema.OnSchema"),
        ("schema", "schema", ".schema_table.build_schema", ".schema.SchemaSchema"),
        ("component", "component", ".component_table.build_component", ".schema.ComponentSchema"),
        ("订单", "table", ".table.build_table", ".schema.TableSchema"),
    ],
)
def test_names_come_from_the_folder(
    sandbox: DefsFolderSandbox, path: str, key: str, fn: str, schema: str
) -> None:
    folder = scaffold(sandbox, path)

    assert attributes(folder) == {"fn": fn, "schema": schema, "asset": {"key": key}}
    assert written(materialized(sandbox), key).height == 3


@pytest.mark.parametrize("scaffold_format", ["yaml", "python"])
@pytest.mark.parametrize(
    "key", ["raw/orders", "orders-2024", "v1.5/orders", "null", "a" * 60 + "/b"]
)
def test_the_key_can_be_given(sandbox: DefsFolderSandbox, scaffold_format: str, key: str) -> None:
    scaffold(sandbox, scaffold_format=scaffold_format, key=key)

    assert written(materialized(sandbox), key).height == 3


def test_names_follow_a_defs_folder_that_is_configured(sandbox: DefsFolderSandbox) -> None:
    (sandbox.project_root / "dg.toml").write_text(
        f'[project]\nroot_module = "{sandbox.project_name}"\n'
        f'defs_module = "{sandbox.project_name}.defs.finance"\n'
    )

    folder = scaffold(sandbox, "finance/sales/orders")

    assert attributes(folder)["asset"] == {"key": "sales/orders"}


# --- existing functions and schemas ---------------------------------------------------------------

FN = "{project}.tables.read_orders"
SCHEMA = "{project}.tables.OrdersSchema"


@pytest.mark.parametrize(
    ("params", "modules", "rows"),
    [
        ({"fn": FN}, {"schema.py"}, None),
        ({"schema": SCHEMA}, {"orders.py"}, 0),
        ({"fn": FN, "schema": SCHEMA}, set(), 2),
    ],
    ids=["fn", "schema", "both"],
)
@pytest.mark.parametrize(
    ("scaffold_format", "component_file"), [("yaml", "defs.yaml"), ("python", "component.py")]
)
def test_no_module_is_written_for_what_exists(
    sandbox: DefsFolderSandbox,
    params: Mapping[str, str],
    modules: set[str],
    rows: int | None,
    scaffold_format: str,
    component_file: str,
) -> None:
    folder = scaffold(sandbox, scaffold_format=scaffold_format, **params)

    assert files(folder) == {component_file, *modules}
    if rows is None:
        # The schema that is written is still one of other columns than the function's.
        with sandbox.build_all_defs() as defs:
            assert defs.resolve_all_asset_specs()
    else:
        assert written(materialized(sandbox), "sales/orders").height == rows


def test_a_function_may_have_the_name_that_a_component_module_uses(
    sandbox: DefsFolderSandbox,
) -> None:
    module = sandbox.defs_folder_path.parent / "functions.py"
    module.write_text("import polars as pl\n\n\ndef load() -> pl.DataFrame: ...\n")

    scaffold(sandbox, scaffold_format="python", fn="{project}.functions.load", schema=SCHEMA)

    with sandbox.build_all_defs() as defs:
        assert defs.resolve_all_asset_specs()


# --- from data ------------------------------------------------------------------------------------


def test_a_file_of_the_project_is_found_from_wherever_the_project_is(
    sandbox: DefsFolderSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = sandbox.project_root / "data"
    data.mkdir()
    (data / "orders.csv").write_text("order_id,amount\n1,2.5\n2,0.5\n")
    monkeypatch.chdir(data)

    folder = scaffold(sandbox, from_data="orders.csv")
    monkeypatch.chdir(tmp_path)

    assert str(sandbox.project_root) not in (folder / "orders.py").read_text()
    assert written(materialized(sandbox), "sales/orders").rows() == [(1, 2.5), (2, 0.5)]


def test_a_file_elsewhere_is_named_in_full(
    sandbox: DefsFolderSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text("order_id\n1\n")
    monkeypatch.chdir(tmp_path)

    folder = scaffold(sandbox, from_data="orders.csv")

    # A line of its own where the path is long.
    lines = (folder / "orders.py").read_text().replace("(\n    ", "").splitlines()
    assert f'FILE = "{tmp_path / "orders.csv"}"' in lines
    assert written(materialized(sandbox), "sales/orders").height == 1


def test_a_given_function_is_kept_and_only_the_schema_is_inferred(
    sandbox: DefsFolderSandbox, tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text("order_id,dy_flag\n1,true\n")

    folder = scaffold(sandbox, from_data=str(tmp_path / "orders.csv"), fn=FN)

    assert files(folder) == {"defs.yaml", "schema.py"}
    assert (
        '# Left out, because a table cannot have such a column: "dy_flag"'
        in (folder / "schema.py").read_text()
    )
    assert written(materialized(sandbox), "sales/orders").columns == ["order_id"]


FLIGHTS = Path(__file__).parents[3] / "examples" / "nyc_flights" / "data"


@pytest.mark.parametrize("file", sorted(FLIGHTS.glob("*.parquet")), ids=lambda file: file.stem)
def test_real_files_satisfy_their_inferred_schema(sandbox: DefsFolderSandbox, file: Path) -> None:
    scaffold(sandbox, from_data=str(file))

    result = materialized(sandbox)

    assert written(result, "sales/orders").equals(pl.read_parquet(file))
    assert all(check.passed for check in result.get_asset_check_evaluations())


# --- formatting -----------------------------------------------------------------------------------


def test_what_is_written_is_formatted_as_ruff_formats_it(
    sandbox: DefsFolderSandbox, tmp_path: Path
) -> None:
    pytest.importorskip("ruff", reason="ruff is in the dependency group `lint`")
    name = "ein langer Name einer Datei, der " * 3
    file = tmp_path / f"{name}.csv"
    file.write_text(f'order_id,"dy_{name}",{name}\n1,2,3\n')
    shutil.copy(file, tmp_path / "short.csv")
    longest = f"{{project}}.{'deep.' * 15}tables."
    package = sandbox.defs_folder_path.parent.joinpath(*["deep"] * 15)
    package.mkdir(parents=True)
    shutil.copy(sandbox.defs_folder_path.parent / "tables.py", package)
    options: list[dict[str, Any]] = [
        {},
        {"filter": True},
        {"fn": FN},
        {"schema": SCHEMA},
        {"fn": f"{longest}read_orders", "schema": f"{longest}OrdersSchema"},
        {"schema": f"{longest}OrdersSchema"},
        {"from_data": str(file)},
        {"from_data": str(tmp_path / "short.csv")},
        {"key": "a" * 60 + "/b"},
    ]

    for number, params in enumerate(options):
        for scaffold_format in ("yaml", "python"):
            scaffold(
                sandbox,
                f"{scaffold_format}/orders-{number}",
                scaffold_format=scaffold_format,
                **params,
            )
            scaffold(
                sandbox,
                f"{scaffold_format}/{'long ' * 20}{number}",
                scaffold_format=scaffold_format,
                **params,
            )

    for arguments in (["format", "--diff"], ["check", "--select", "E4,E7,E9,F,I,D1"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "--no-cache"]
        # From the project's folder, ruff tells its modules from installed ones.
        ruff = subprocess.run(
            [*command, str(sandbox.defs_folder_path)],
            cwd=sandbox.project_root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ruff.returncode == 0, ruff.stdout


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"fn": "{project}.tables.reed_orders"},
            "--fn: Module '{project}.tables' has no 'reed_orders'. It defines the function 'read_orders'. "
            "Did you mean '{project}.tables.read_orders'?",
        ),
        (
            {"fn": "{project}.table.read_orders"},
            "--fn: There is no module '{project}.table'.",
        ),
        (
            {"fn": "{project}.tables.stock"},
            "--fn: '{project}.tables.stock' is an asset already.",
        ),
        (
            {"fn": ".orders.build_orders"},
            "--fn '.orders.build_orders' begins with a dot, which is the folder of the new component. Write "
            "the full name, such as 'my_project.sales.build_orders'.",
        ),
        (
            {"fn": "{project}.broken.build"},
            "--fn '{project}.broken.build' cannot be imported: its module raises ValueError: no such year "
            "({folder}/broken.py, line 1).",
        ),
        (
            {"fn": "{project}.unfinished.build"},
            "--fn '{project}.unfinished.build' cannot be imported: its module raises SyntaxError: ",
        ),
        (
            {"schema": "{project}.tables.read_orders"},
            "--schema: '{project}.tables.read_orders' is a function, and `schema` names a Dataframely schema.",
        ),
        (
            {"schema": ".schema.OrdersSchema"},
            "--schema '.schema.OrdersSchema' begins with a dot, which is the folder of the new component. "
            "Write the full name, such as 'my_project.schemas.OrdersSchema'.",
        ),
        (
            {"schema": SCHEMA, "from_data": "orders.csv"},
            "--from-data infers a schema, and --schema names one that exists. Give one of the two.",
        ),
        (
            {"key": "sales//orders"},
            "--key 'sales//orders' is not an asset key: its parts have letters, digits, '_', '-' and '.', and "
            "'/' stands between them, as in 'sales/orders'. A key of one part begins with a letter, and is no "
            "word that Python or Dagster reserves.",
        ),
        ({"key": "2024"}, "--key '2024' is not an asset key: "),
        ({"key": "config"}, "--key 'config' is not an asset key: "),
        (
            {"from_data": "orders.csv"},
            "There is no file 'orders.csv'.",
        ),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
def test_a_refusal_says_what_is_wrong_and_leaves_nothing(
    sandbox: DefsFolderSandbox,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    params: Mapping[str, str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ScaffoldError) as raised:
        scaffold(sandbox, **params)

    folder = sandbox.defs_folder_path.parent
    expected = message.format(project=sandbox.project_name, folder=folder)
    assert str(raised.value).startswith(expected)
    assert files(sandbox.defs_folder_path) == set()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "sales/v1.2",
            "A folder named 'v1.2' cannot hold Python modules, because of the dot in its name. Write "
            "'sales/v1_2'.",
        ),
        ("../orders", "leads out of the project's definitions, where Dagster does not look."),
    ],
)
def test_a_folder_that_cannot_be_loaded_is_refused(
    sandbox: DefsFolderSandbox, path: str, message: str
) -> None:
    before = files(sandbox.project_root)

    with pytest.raises(ScaffoldError) as raised:
        scaffold(sandbox, path)

    assert str(raised.value).endswith(message)
    assert files(sandbox.project_root) == before


@pytest.mark.parametrize(
    "present", ["defs.yaml", "defs.yml", "component.py", "definitions.py", "schema.py", "orders.py"]
)
def test_nothing_that_exists_is_overwritten(sandbox: DefsFolderSandbox, present: str) -> None:
    folder = sandbox.defs_folder_path / "sales" / "orders"
    folder.mkdir(parents=True)
    (folder / present).write_text("# mine\n")

    with pytest.raises(ScaffoldError) as raised:
        scaffold(sandbox)

    assert str(raised.value) == (
        f"'{folder}' has a {present} already, and nothing is overwritten. Choose another path."
    )
    assert files(folder) == {present}
    assert (folder / present).read_text() == "# mine\n"


@pytest.mark.parametrize("failing", ["schema.py", "orders.py", "defs.yaml"])
def test_a_component_is_not_half_written(
    sandbox: DefsFolderSandbox, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    (sandbox.defs_folder_path / "sales").mkdir()
    (sandbox.defs_folder_path / "sales" / "notes.txt").write_text("mine")
    open_file = Path.open

    def write_on_a_full_disk(text: str) -> int:
        raise OSError(28, "No space left on device")

    def open_on_a_full_disk(path: Path, *args: Any, **kwargs: Any) -> Any:
        file = open_file(path, *args, **kwargs)
        if path.name == failing:
            monkeypatch.setattr(file, "write", write_on_a_full_disk)
        return file

    monkeypatch.setattr(Path, "open", open_on_a_full_disk)
    with pytest.raises(ScaffoldError, match=r"cannot be written: .*No space left on device"):
        scaffold(sandbox)

    assert files(sandbox.defs_folder_path) == {"sales", "sales/notes.txt"}


# --- the command ----------------------------------------------------------------------------------


class Shop:
    """A project that `create-dagster` has made, and the `dg` command of this environment in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "shop"
        self.package = self.root / "src" / "shop"
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            # The project is not installed.
            "PYTHONPATH": str(self.root / "src"),
        }
        self.environment.pop("DAGSTER_HOME", None)
        created = self.run("create-dagster", "project", "shop", "--no-uv-sync", cwd=folder)
        assert created.returncode == 0, created.stderr

    def run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command in the project."""
        return subprocess.run(
            command,
            cwd=cwd or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    shop = Shop(tmp_path)
    monkeypatch.chdir(shop.root)
    return shop


def dg_scaffold(path: str, *options: str) -> Result:
    """Run `dg scaffold defs` for this package's component type, in this process."""
    return CliRunner().invoke(cli, ["scaffold", "defs", TYPE, path, *options])


def test_dg_scaffolds_checks_and_launches(shop: Shop) -> None:
    (shop.package / "tables.py").write_text(TABLES)
    (shop.root / "data").mkdir()
    (shop.root / "data" / "état des ventes.csv").write_text(
        "N° de commande,Prénom du client,Montant (€),Date d'achat,vide\n"
        "1,Zoé,12.5,2024-01-03,\n2,Åsa,,2024-01-04,\n",
        encoding="utf-8",
    )
    existing = ["--fn", "shop.tables.read_orders", "--schema", "shop.tables.OrdersSchema"]

    for arguments in (
        ["sales/refunds", "--format", "python", "--filter", "true"],
        ["ventes/état des-ventes", "--from-data", "data/état des ventes.csv"],
        ["stock", *existing, "--key", "raw/stock"],
    ):
        assert dg_scaffold(*arguments).exit_code == 0

    one_process = '{"execution": {"config": {"in_process": {}}}}'
    for command in (
        ["scaffold", "defs", TYPE, "sales/orders"],
        ["check", "yaml"],
        ["check", "defs"],
        ["launch", "--assets", "*", "--config-json", one_process],
    ):
        result = shop.run("dg", *command)
        assert result.returncode == 0, result.stdout + result.stderr
        warnings = [line for line in result.stderr.splitlines() if "Warning" in line]
        assert not [line for line in warnings if "dagster_dataframely" in line]


def test_dg_shows_a_refusal_as_one_sentence(shop: Shop) -> None:
    refused = dg_scaffold("returns/orders", "--from-data", "returns.xlsx")

    assert refused.exit_code == 1
    assert refused.output.splitlines()[1:] == ["Error: There is no file 'returns.xlsx'."]
    assert not (shop.package / "defs" / "returns").exists()


def test_a_misspelt_option_in_json_is_refused(sandbox: DefsFolderSandbox) -> None:
    folder = sandbox.defs_folder_path / "orders"

    with pytest.raises(ValueError, match="filtr"):
        scaffold_object(folder, TYPE, '{"filtr": true}', "yaml", sandbox.project_root)

    assert not folder.exists()


def test_a_subclass_scaffolds_under_its_own_name(
    sandbox: DefsFolderSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sandbox.defs_folder_path.parent / "components.py"
    module.write_text(
        textwrap.dedent(
            f"""
            from dagster_dataframely import {DataframelyAsset.__name__}


            class ShopTable({DataframelyAsset.__name__}):
                \"\"\"A table of the shop.\"\"\"
            """
        )
    )
    monkeypatch.syspath_prepend(str(sandbox.project_root / "src"))
    type_name = f"{sandbox.project_name}.components.ShopTable"

    for scaffold_format in ("yaml", "python"):
        folder = sandbox.defs_folder_path / scaffold_format
        scaffold_object(folder, type_name, None, scaffold_format, sandbox.project_root)

    result = materialized(sandbox)
    assert {written(result, "yaml").height, written(result, "python").height} == {3}
