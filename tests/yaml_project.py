"""A `dg` project on disk for the tests of the YAML front, and what `dg` says about it.

`check_yaml` is the command `dg check yaml`, run in this process. `load_error` is what `dg check defs` shows
where loading fails: Dagster's own loader runs here, and the first line is the one that the command prints.
"""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from dagster_dg_cli.cli import cli

_numbers = itertools.count()

FUNCTIONS = """
import polars as pl


def build_orders() -> pl.DataFrame:
    \"\"\"Every order of the shop.\"\"\"
    return pl.DataFrame({"order_id": ["A1", "A2"], "amount": [9.5, -1.0]})


def clean_orders(raw_orders: pl.DataFrame) -> pl.DataFrame:
    return raw_orders
"""

SCHEMAS = """
import dataframely as dy


class OrdersSchema(dy.Schema):
    order_id = dy.String(primary_key=True)
    amount = dy.Float64(min=0.0)
"""

DEFINITIONS = """
from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
"""


@dataclass(frozen=True)
class Project:
    """A project with one folder, `orders`, that has a function module and a schema module."""

    root: Path
    name: str

    @property
    def source(self) -> Path:
        """The folder of the project's package."""
        return self.root / "src" / self.name

    def write(self, path: str, text: str) -> None:
        """Write a file below the `defs` folder."""
        target = self.source / "defs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text).lstrip("\n"))

    def check_yaml(self, monkeypatch: pytest.MonkeyPatch) -> str | None:
        """Return the first line that `dg check yaml` prints, or None where it finds nothing."""
        monkeypatch.chdir(self.root)
        monkeypatch.syspath_prepend(str(self.root / "src"))
        result = CliRunner().invoke(cli, ["check", "yaml"])
        if result.exit_code == 0:
            return None
        return self.relative((result.output or str(result.exception)).splitlines()[0])

    def load(self, monkeypatch: pytest.MonkeyPatch) -> dg.Definitions:
        """Load the project as a code location does."""
        monkeypatch.syspath_prepend(str(self.root / "src"))
        defs = dg.load_from_defs_folder(path_within_project=self.source)
        dg.Definitions.validate_loadable(defs)
        return defs

    def load_error(self, monkeypatch: pytest.MonkeyPatch) -> BaseException:
        """Return the error that says why the project does not load, below Dagster's tree of components."""
        try:
            self.load(monkeypatch)
        except Exception as raised:
            error: BaseException = raised
        else:
            pytest.fail("the project loads")
        while type(error).__name__ == "ComponentTreeException" and error.__cause__ is not None:
            error = error.__cause__
        return error

    def relative(self, line: str) -> str:
        """Name the project's files and modules without the folder and the package that they are in."""
        return line.replace(f"{self.source}/defs/", "").replace(f"{self.name}.", "")


def new_project(folder: Path) -> Project:
    """Write a project that loads as it stands. Its package has a name of its own, for `import`."""
    name = f"shop_{next(_numbers)}"
    project = Project(folder / name, name)
    (project.source / "defs").mkdir(parents=True)
    for module in ("__init__.py", "defs/__init__.py"):
        (project.source / module).write_text("")
    (project.source / "definitions.py").write_text(DEFINITIONS)
    (project.root / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "1"\n\n[tool.dg]\ndirectory_type = "project"\n\n'
        f'[tool.dg.project]\nroot_module = "{name}"\n'
    )
    project.write("orders/orders.py", FUNCTIONS)
    project.write("orders/schema.py", SCHEMAS)
    return project
