"""The documentation does what it shows: each block is executed, loaded or compared.

A page is read from top to bottom, in a new `dg` project named `shop`. What stands behind the three
backticks says what a block is.

- `python`: executed in the project's folder, in one namespace a page.
- `python orders/schema.py`, `yaml orders/defs.yaml`: a file below `defs`. YAML is loaded, with the
  whole project. With `scaffolded` behind it, it is not written but compared with the file.
- `csv data/orders.csv`: a file below the project's folder.
- `console`: commands of a shell. Of these, `dg scaffold defs` is run.
- `text`: what the Python block above it prints, with the value of its last expression, as a console
  shows it; or, below YAML, the first line of the error with which the project does not load.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import itertools
import os
import pprint
import re
import shlex
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from unittest.mock import patch

import dagster as dg
import pytest
from click.testing import CliRunner
from dagster_dg_cli.cli import cli
from markdown_it import MarkdownIt

import dagster_dataframely as dd
from dagster_dataframely.core.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

PROJECT = {
    "pyproject.toml": """
[project]
name = "shop"
version = "0.1.0"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop"
""",
    "src/shop/__init__.py": "",
    "src/shop/definitions.py": """
from pathlib import Path

import dagster as dg


@dg.definitions
def defs() -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
""",
    "src/shop/defs/__init__.py": "",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    #: The file that it is.
    file: str | None
    #: Whether `dg scaffold defs` has written that file.
    scaffolded: bool
    text: str
    #: The line of the page on which its text begins.
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence":
            language, file, *more = [*token.info.split(), None, None][:3]
            assert language is not None
            assert token.map is not None
            yield Block(language, file, more == ["scaffolded"], token.content, token.map[0] + 2)


class Reader:
    """Someone who does what one page says."""

    def __init__(self, page: Path, project: Path) -> None:
        self.page = page
        self.project = project
        self.defs = project / "src" / "shop" / "defs"
        self.namespace = types.ModuleType(f"page_{page.stem.replace('-', '_').lower()}")
        #: What a `text` block would show of the block above it.
        self.shown: str | None = None
        #: Whether that is an error, which has to be shown.
        self.failed = False
        for path, text in PROJECT.items():
            write(project / path, text.lstrip())

    def read(self, block: Block) -> None:
        """Do what a block says, or compare it with what the one above did."""
        if block.language == "text":
            assert self.shown is not None, "nothing stands above this output"
            assert block.text.rstrip() == self.shown.rstrip()
            self.shown, self.failed = None, False
            return
        assert not self.failed, self.shown
        if block.language == "console":
            self.scaffold(block)
        elif block.language == "csv" and block.file:
            write(self.project / block.file, block.text)
        elif block.language == "python" and block.file:
            self.take_file(self.defs / block.file, block)
        elif block.language == "yaml" and block.file:
            self.take_file(self.defs / block.file, block)
            self.shown = self.load_error()
            self.failed = self.shown is not None
        elif block.language == "python":
            self.shown = self.execute(block)
        else:
            pytest.fail(f"nothing is known of blocks of '{block.language}'")

    def finish(self) -> None:
        """Load the project once more, with the Python files at the page's end."""
        assert not self.failed, self.shown
        error = self.load_error()
        assert error is None, error

    def scaffold(self, block: Block) -> None:
        """Run the `dg scaffold defs` commands of a shell block."""
        for line in block.text.replace("\\\n", "").splitlines():
            if line.startswith("dg scaffold defs "):
                result = CliRunner().invoke(cli, shlex.split(line)[1:])
                assert result.exit_code == 0, result.output

    def take_file(self, path: Path, block: Block) -> None:
        """Write a file; or, where `dg scaffold defs` has written it, compare."""
        if block.scaffolded:
            assert block.text == path.read_text(encoding="utf-8")
        else:
            write(path, block.text)
            forget_modules()

    def execute(self, block: Block) -> str:
        """Execute Python, and return what it prints and the value that its last line has."""
        tree = ast.parse("\n" * (block.line - 1) + block.text, str(self.page))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        value = None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(self.compile(tree, "exec"), vars(self.namespace))
            if isinstance(last, ast.Expr):
                expression = self.compile(ast.Expression(last.value), "eval")
                value = eval(expression, vars(self.namespace))
        return printed.getvalue() + (
            "" if value is None else pprint.pformat(value, sort_dicts=False)
        )

    def compile(self, tree: ast.AST, mode: str) -> types.CodeType:
        """Compile Python of the page, which does not inherit this module's postponed annotations."""
        return compile(tree, str(self.page), mode, dont_inherit=True)

    def load_error(self) -> str | None:
        """Load the project as `dg check defs` does, and return the first line of what is wrong."""
        forget_modules()
        try:
            defs = dg.load_from_defs_folder(path_within_project=self.defs.parent)
            dg.Definitions.validate_loadable(defs)
        except Exception as raised:
            error: BaseException = raised
            # Dagster wraps the error in a tree of components.
            while type(error).__name__ == "ComponentTreeException" and error.__cause__ is not None:
                error = error.__cause__
            return str(error).splitlines()[0].replace(f"{self.project}/", "")
        return None


def forget_modules() -> None:
    """Let the project's modules be imported anew, from the files as they are now."""
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def write(path: Path, text: str) -> None:
    """Write a file and the folders that it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def name_of(page: Path) -> str:
    """Return the path of a page in the repository."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_a_page_does_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(page, tmp_path / "shop")
    monkeypatch.chdir(reader.project)
    monkeypatch.syspath_prepend(str(reader.project / "src"))
    monkeypatch.setitem(sys.modules, reader.namespace.__name__, reader.namespace)
    # A file that is written twice within a second would be taken from its bytecode.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for variable in list(os.environ):
        if variable == "DAGSTER_HOME" or variable.startswith("DAGSTER_DATAFRAMELY_"):
            monkeypatch.delenv(variable)
    forget_modules()

    with patch.dict(os.environ):
        for block in blocks(page):
            try:
                reader.read(block)
            except BaseException as error:
                error.add_note(f"This is the block at {name_of(page)}:{block.line}.")
                raise
        reader.finish()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, heading = target.partition("#")
        if "://" in target:
            continue
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to '{target}', which is not there."
        assert not heading or heading in headings(linked), f"{target} has no such heading."


NAMES = {
    "reference.md": [
        *(f"dd.{name}" for name in dd.__all__),
        *(
            name
            for name in vars(dd.errors)
            if name.endswith("Error") and name != "DataframelyError"
        ),
        *dd.wiring.__all__,
        *dd.data.__all__,
    ],
    "settings.md": [field.name for field in fields(Settings)],
    "components.md": [
        field.alias or name for name, field in dd.DataframelyAsset.model_fields.items()
    ],
}


@pytest.mark.parametrize(("page", "name"), [(page, name) for page in NAMES for name in NAMES[page]])
def test_what_a_page_lists_is_complete(page: str, name: str) -> None:
    tables = [
        line
        for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]

    assert any(re.search(rf"`{re.escape(name)}(\(|`)", line) for line in tables)


def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    titles = [
        after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
