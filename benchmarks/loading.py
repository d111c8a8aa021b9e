"""How long a project takes to load, and what installing the package costs every command: `make bench-load`."""

from __future__ import annotations

import argparse
import functools
import inspect
import os
import resource
import site
import subprocess
import sys
import tempfile
import textwrap
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import yaml

import dagster_dataframely as dd
from benchmarks import runner
from benchmarks.runner import Measurement, Target, middle, number, ratio
from benchmarks.tables import OrderSchema

OWN = "DataframelyAsset"
FUNCTION = "FunctionComponent"
FUNCTION_WITH_SCHEMA = "FunctionComponent, the schema in its module too"
WITHOUT, WITH = "without the package", "with the package"
IMPORT_DAGSTER = "import dagster"
IMPORT_BOTH = "import dagster, dagster_dataframely"

# What the console script `dg` does, for an interpreter that has no scripts.
_DG = "import sys; from dagster_dg_cli.cli import main; sys.argv[0] = 'dg'; sys.exit(main())"


# --- commands --------------------------------------------------------------------------------------


def measure(command: Sequence[str], *, cwd: Path, path: Path | None = None) -> Measurement:
    """Run a command and measure it with the processes that it starts.

    Raises:
        RuntimeError: The command failed.
    """
    paths = {"PYTHONPATH": str(path)} if path else {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    finished = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "DAGSTER_DISABLE_TELEMETRY": "1", **paths},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if finished.returncode:
        raise RuntimeError(f"{list(command)} failed:\n{finished.stdout}\n{finished.stderr[-4000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measurement(seconds, cpu, peak=0.0)


def interleaved(
    commands: Mapping[str, Callable[[], Measurement]], rounds: int
) -> dict[str, list[Measurement]]:
    """Measure commands in turn, after one round that compiles what they import."""
    found: dict[str, list[Measurement]] = {name: [] for name in commands}
    for round_number in range(rounds + 1):
        for name, command in commands.items():
            runner.progress(f"round {round_number} of {rounds}: {name}")
            measurement = command()
            if round_number:
                found[name].append(measurement)
    runner.progress("")
    return found


# --- projects --------------------------------------------------------------------------------------


def write_project(folder: Path, kind: str, components: int) -> None:
    """Write a project with so many component files of one kind, each in a folder with its module."""
    package = folder / "src" / "project"
    _write(
        folder / "pyproject.toml",
        """
        [project]
        name = "project"
        version = "0.1.0"

        [tool.dg]
        directory_type = "project"

        [tool.dg.project]
        root_module = "project"
        """,
    )
    _write(package / "__init__.py", "")
    _write(package / "defs" / "__init__.py", "")
    _write(
        package / "definitions.py",
        """
        from pathlib import Path

        import dagster as dg


        @dg.definitions
        def defs() -> dg.Definitions:
            return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
        """,
    )
    for number_ in range(components):
        name = f"orders_{number_}"
        component = package / "defs" / name
        _write(component / "module.py", _module(name, with_schema=kind != FUNCTION))
        attributes = _own(name) if kind == OWN else _function_component(name)
        _write(component / "defs.yaml", yaml.safe_dump(attributes, sort_keys=False))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip())


def _module(name: str, *, with_schema: bool) -> str:
    imports = ["import polars as pl"]
    if with_schema:
        imports = ["from datetime import date", "import dataframely as dy", *imports]
    schema = [inspect.getsource(OrderSchema)] if with_schema else []
    function = f"def {name}() -> pl.DataFrame:\n    return pl.DataFrame()\n"
    return "\n\n".join(["\n".join(imports), *schema, function])


def _own(name: str) -> dict[str, Any]:
    return {
        "type": "dagster_dataframely.DataframelyAsset",
        "attributes": {"fn": f".module.{name}", "schema": ".module.OrderSchema"},
    }


def _function_component(name: str) -> dict[str, Any]:
    return {
        "type": "dagster.FunctionComponent",
        "attributes": {
            "execution": {
                "name": name,
                "type": "function",
                "fn": f"project.defs.{name}.module.{name}",
            },
            "assets": [{"key": name}],
            "checks": [
                {
                    "name": spec.name,
                    "asset": name,
                    "description": spec.description,
                    "blocking": spec.blocking,
                    "metadata": dict(spec.metadata),
                }
                for spec in _CHECK_SPECS
            ],
        },
    }


@dd.asset(OrderSchema)
def orders() -> pl.DataFrame:
    """Stand for an asset whose check specs are written out."""
    return pl.DataFrame()


_CHECK_SPECS: list[dg.AssetCheckSpec] = list(orders.check_specs)


# --- environments ----------------------------------------------------------------------------------


def linked_environment(folder: Path, *, without: str | None = None) -> Path:
    """Make an environment of links to this one's packages, one of them left out.

    So two environments are alike but for one package, and nothing has to be installed for them.

    Returns:
        The interpreter of the environment.
    """
    venv.create(folder, with_pip=False)
    (own,) = folder.glob("lib/python*/site-packages")
    for packages in {Path(path).resolve() for path in site.getsitepackages()}:
        for entry in packages.iterdir():
            if not (without and without in entry.name.replace("-", "_")):
                (own / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


# --- the suite -------------------------------------------------------------------------------------


def report(arguments: argparse.Namespace) -> None:
    """Measure everything and print it."""
    with tempfile.TemporaryDirectory(dir=arguments.data) as temporary:
        folder = Path(temporary)
        targets = [
            *_check_defs(folder, arguments.rows, arguments.rounds, arguments.only),
            *_list_components(folder, arguments.rounds, arguments.only),
        ]
        _import(folder, arguments.rounds, arguments.only)
    runner.print_targets(targets)


def _check_defs(folder: Path, components: int, rounds: int, only: Sequence[str]) -> list[Target]:
    commands: dict[str, Callable[[], Measurement]] = {}
    for kind in runner.selected([FUNCTION, FUNCTION_WITH_SCHEMA, OWN], only, []):
        project = folder / kind.replace(" ", "_").replace(",", "")
        write_project(project, kind, components)
        commands[kind] = functools.partial(
            measure, [sys.executable, "-c", _DG, "check", "defs"], cwd=project, path=project / "src"
        )
    found = interleaved(commands, rounds)
    _print(f"dg check defs, {components} components of {len(_CHECK_SPECS)} checks", found)
    return [
        _target(f"{components} components: DataframelyAsset over {other}", found, OWN, other, 1.15)
        for other in (FUNCTION, FUNCTION_WITH_SCHEMA)
        if other in found
    ]


def _list_components(folder: Path, rounds: int, only: Sequence[str]) -> list[Target]:
    names = runner.selected([WITHOUT, WITH], only, [])
    commands: dict[str, Callable[[], Measurement]] = {}
    for name in names:
        without = "dagster_dataframely" if name == WITHOUT else None
        python = linked_environment(folder / name.replace(" ", "_"), without=without)
        commands[name] = functools.partial(
            measure, [str(python), "-c", _DG, "list", "components"], cwd=folder
        )
    found = interleaved(commands, rounds)
    _print("dg list components", found)
    return [
        _target("dg list components: with the package over without", found, WITH, WITHOUT, 1.05)
    ]


def _import(folder: Path, rounds: int, only: Sequence[str]) -> None:
    commands: dict[str, Callable[[], Measurement]] = {
        statement: functools.partial(measure, [sys.executable, "-c", statement], cwd=folder)
        for statement in runner.selected([IMPORT_DAGSTER, IMPORT_BOTH], only, [])
    }
    _print("import", interleaved(commands, rounds))


def _target(
    what: str, found: Mapping[str, Sequence[Measurement]], way: str, other: str, limit: float
) -> Target:
    seconds, cpu = (
        ratio(middle(found, way, field), middle(found, other, field))
        for field in ("seconds", "cpu")
    )
    return Target(what, seconds, limit, cpu)


def _print(title: str, found: Mapping[str, Sequence[Measurement]]) -> None:
    first = next(iter(found), "")
    rows = []
    for name in found:
        seconds, cpu = middle(found, name, "seconds"), middle(found, name, "cpu")
        rows.append(
            [
                name,
                number(seconds),
                number(ratio(seconds, middle(found, first, "seconds"))),
                number(ratio(cpu, middle(found, first, "cpu"))),
            ]
        )
    if rows:
        runner.print_table(title, ["", "seconds", "ratio", "by CPU time"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading", description=__doc__)
    parser.add_argument("--rows", type=int, default=500, help="components in the project")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[], help="commands, as patterns")
    parser.add_argument("--data", type=Path, default=None, help="where the projects are made")
    arguments = parser.parse_args()
    print(runner.environment(), end="\n\n")
    report(arguments)
