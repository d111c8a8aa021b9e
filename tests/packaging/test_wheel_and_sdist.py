"""The templates travel with the package: however it is installed, it scaffolds.

Nothing is downloaded. Each environment is new and has this package alone; what it depends on is borrowed
from the environment of the tests, by a path.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling is in the dependency group `dev`")

REPOSITORY = Path(__file__).parents[2]
TEMPLATES = {
    str(path.relative_to(REPOSITORY))
    for path in (REPOSITORY / "component-templates").rglob("*")
    if path.is_file()
}

PYPROJECT = """
[project]
name = "shop"
version = "1"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop"
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this package."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--directory", str(folder), cwd=REPOSITORY)
    return folder


def run(*command: str, cwd: Path) -> str:
    """Run a command that sees no more of the test's environment than it is told."""
    completed = subprocess.run(
        command,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), "DAGSTER_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def only(folder: Path, pattern: str) -> Path:
    [path] = folder.glob(pattern)
    return path


def installed(folder: Path, *source: str) -> str:
    """Install this package alone into a new environment, and return its Python."""
    environment = folder / "venv"
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    borrowed = f"venv/lib/python{sysconfig.get_python_version()}/site-packages/borrowed.pth"
    # A path in such a file is searched last, and the `.pth` files in it count for nothing: a package that
    # is installed editable for the tests stays unseen.
    (folder / borrowed).write_text(sysconfig.get_paths()["purelib"])
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--quiet"]
    run(python, "-m", "pip", "install", *options, *source, cwd=folder)
    return python


def test_the_wheel_has_the_templates_in_the_package(distributions: Path) -> None:
    with zipfile.ZipFile(only(distributions, "*.whl")) as wheel:
        names = set(wheel.namelist())

    assert {f"dagster_dataframely/{template}" for template in TEMPLATES} <= names
    assert "dagster_dataframely/py.typed" in names


def test_the_sdist_has_the_templates_where_the_checkout_has_them(distributions: Path) -> None:
    with tarfile.open(only(distributions, "*.tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}

    assert names >= TEMPLATES


@pytest.mark.parametrize("source", ["wheel", "sdist", "editable"])
def test_a_fresh_install_scaffolds(distributions: Path, tmp_path: Path, source: str) -> None:
    python = installed(
        tmp_path,
        *{
            "wheel": [str(only(distributions, "*.whl"))],
            "sdist": [str(only(distributions, "*.tar.gz"))],
            "editable": ["--editable", str(REPOSITORY)],
        }[source],
    )
    project = tmp_path / "shop"
    (project / "src" / "shop" / "defs").mkdir(parents=True)
    (project / "pyproject.toml").write_text(PYPROJECT)
    find = "from importlib.util import find_spec; print(find_spec('dagster_dataframely').origin)"
    scaffold = ["scaffold", "defs", "dagster_dataframely.DataframelyAsset", "sales/orders"]

    package = Path(run(python, "-c", find, cwd=project).strip())
    run(python, "-m", "dagster_dg_cli.cli", *scaffold, cwd=project)

    home = REPOSITORY / "src" if source == "editable" else tmp_path / "venv"
    assert package.is_relative_to(home)
    assert {path.name for path in (project / "src/shop/defs/sales/orders").iterdir()} == {
        "defs.yaml",
        "orders.py",
        "schema.py",
    }
