"""The documentation does what it shows: each block is executed, loaded or compared.

The word after three backticks says what a block is. A page is read from top to bottom.

- `python`: executed, in one namespace a page.
- `python orders/schema.py`: a file below `defs` of the page's project, a `dg` project named `shop` that begins
  as `dg scaffold defs dagster_dataframely.DataframelyAsset orders` leaves it.
- `yaml orders/defs.yaml`: such a file too. The project is loaded with it.
- `text`: what the Python block above it prints, with the value of its last expression, as a console shows
  it; or, below YAML, the first line of the error with which the project does not load.
- `console`: commands of a shell, which are not executed.
"""

from __future__ import annotations

import ast
import contextlib
import io
import pprint
import re
import shutil
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from dagster_dg_cli.cli import cli
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

DEFINITIONS = """
from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
"""

PYPROJECT = """
[project]
name = "shop"
version = "0.1.0"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop"
"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    #: The file that it is, below the project's `defs`.
    file: str | None
    text: str
    #: The line of the page on which its text begins.
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence":
            language, _, file = token.info.strip().partition(" ")
            assert token.map is not None
            yield Block(language, file or None, token.content, token.map[0] + 2)


class Reader:
    """Someone who does what one page says, in a folder of their own."""

    def __init__(self, page: Path, project: Path) -> None:
        self.page = page
        self.project = project
        self.namespace = types.ModuleType(f"page_{page.stem.replace('-', '_').lower()}")
        #: What a `text` block would show of the block above it.
        self.shown: str | None = None
        self.source = project / "src" / "shop"

    def read(self, block: Block) -> None:
        """Do what a block says, or compare it with what the one above did."""
        if block.language == "text":
            assert self.shown is not None, f"{self.at(block)}: nothing stands above this output."
            assert block.text.rstrip() == self.shown.rstrip(), self.at(block)
            self.shown = None
            return
        self.refuse_error()
        if block.file is not None:
            file = self.source / "defs" / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        if block.language == "yaml":
            assert block.file is not None, f"{self.at(block)}: this YAML has no file name."
            self.shown = self.load_error()
        elif block.language == "python" and block.file is None:
            self.shown = self.execute(block)
        elif block.language not in ("python", "console"):
            pytest.fail(f"{self.at(block)}: nothing is known of blocks of '{block.language}'.")

    def finish(self) -> None:
        """Load the project once more, for the Python files at the page's end."""
        self.refuse_error()
        error = self.load_error()
        assert error is None, error

    def refuse_error(self) -> None:
        """Fail if the YAML above did not load and no `text` block said so."""
        assert self.shown is None or not self.shown.startswith("src/shop"), self.shown

    def execute(self, block: Block) -> str:
        """Execute Python, and return what it prints and the value that its last line has."""
        tree = ast.parse("\n" * (block.line - 1) + block.text, str(self.page))
        *_, last = tree.body
        value = None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if isinstance(last, ast.Expr):
                tree.body.pop()
            exec(compile(tree, str(self.page), "exec"), vars(self.namespace))
            if isinstance(last, ast.Expr):
                expression = ast.Expression(last.value)
                value = eval(compile(expression, str(self.page), "eval"), vars(self.namespace))
        shown = "" if value is None else pprint.pformat(value, sort_dicts=False)
        return printed.getvalue() + shown

    def load_error(self) -> str | None:
        """Load the project as `dg check defs` does, and return the first line of what is wrong."""
        for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
            del sys.modules[name]
        try:
            dg.Definitions.validate_loadable(
                dg.load_from_defs_folder(path_within_project=self.source)
            )
        except Exception as raised:
            error: BaseException = raised
            # Dagster wraps the error in a tree of components.
            while type(error).__name__ == "ComponentTreeException" and error.__cause__ is not None:
                error = error.__cause__
            return str(error).splitlines()[0].replace(f"{self.project}/", "")
        return None

    def at(self, block: Block) -> str:
        """Say where a block stands."""
        return f"{self.page.relative_to(ROOT)}:{block.line}"


@pytest.fixture(scope="module")
def scaffolded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the project that every page begins with, by the command that the pages name."""
    project = tmp_path_factory.mktemp("docs") / "shop"
    files = {"pyproject.toml": PYPROJECT, "src/shop/definitions.py": DEFINITIONS}
    for path in (*files, "src/shop/__init__.py", "src/shop/defs/__init__.py"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(files.get(path, ""))
    command = ["scaffold", "defs", "dagster_dataframely.DataframelyAsset", "orders"]
    with contextlib.chdir(project):
        CliRunner().invoke(cli, command, catch_exceptions=False)
    return project


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_does_what_the_page_says(
    page: Path, scaffolded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Path(shutil.copytree(scaffolded, tmp_path / "shop"))
    reader = Reader(page, project)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(reader.project / "src"))
    monkeypatch.setitem(sys.modules, reader.namespace.__name__, reader.namespace)

    for block in blocks(page):
        reader.read(block)

    reader.finish()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, heading = target.partition("#")
        if "://" in target:
            continue
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to '{target}', which is not there."
        assert not heading or heading in headings(linked), f"{target} has no such heading."


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")

    for page in PAGES[1:]:
        assert page.name == "README.md" or f"({page.name})" in index, page.name


def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    titles = [line.lstrip("#").strip() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
