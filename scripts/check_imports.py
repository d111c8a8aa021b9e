"""Fails when a module uses what another package keeps private, or what its layer must not know.

Complements the layers that `lint-imports` checks: that tool sees external packages as a whole,
while these rules are about parts of them. Ruff's SLF rules find private attributes, this finds
private imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path("src/dagster_dataframely")

# The one package that may depend on what upstream does not promise.
UPSTREAM = PACKAGE / "upstream"

# The core turns a schema and a frame into a verdict; it knows no component and no YAML.
CORE = PACKAGE / "core"
UNKNOWN_TO_CORE = ("dagster.components", "dagster_dg_cli", "dagster_dg_core", "yaml")


def imported_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of everything that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def is_private(name: str) -> bool:
    """Tell whether a dotted name leads through a part that begins with one underscore."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def is_within(name: str, packages: tuple[str, ...]) -> bool:
    """Tell whether a dotted name is one of the packages or lies in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def problems(path: Path) -> Iterator[str]:
    """Yield one sentence for each import of a module that is not allowed there."""
    for line, name in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
        own = name.partition(".")[0] in {"dagster_dataframely", "__future__"}
        if not own and is_private(name) and UPSTREAM not in path.parents:
            yield f"{path}:{line}: `{name}` is private; only modules in {UPSTREAM} may import it."
        if CORE in path.parents and is_within(name, UNKNOWN_TO_CORE):
            yield f"{path}:{line}: `{name}` is not for {CORE}: it knows no component and no YAML."


def main() -> int:
    """Print every problem and return the exit code."""
    paths = sorted(PACKAGE.rglob("*.py"))
    found = [problem for path in paths for problem in problems(path)]
    for problem in found:
        print(problem)
    print(f"Imports of {len(paths)} modules checked: {len(found) or 'no'} problems.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
