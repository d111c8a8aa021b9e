"""The tables at the end of a test run: mistakes in YAML, and the IO managers that error rows go through.

The rows are user properties of test reports, which `pytest-xdist` brings to the process that prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

OUTCOMES = ("passed", "skipped", "failed", "error")


def print_mistakes(reporter: Any) -> None:
    """Print the first line about each mistake that people make in a `defs.yaml`."""
    mistakes = [value for _, value in _properties(reporter, "yaml_mistake")]
    if not mistakes:
        return
    reporter.write_sep("=", f"first lines about {len(mistakes)} mistakes in a defs.yaml")
    for mistake, of_yaml, of_load in mistakes:
        reporter.write_line(mistake)
        if of_yaml is not None:
            reporter.write_line(f"    dg check yaml  {of_yaml}")
        reporter.write_line(f"    dg check defs  {of_load}")


def print_io_managers(reporter: Any) -> None:
    """Print through which IO managers and partitionings error rows were written and read back."""
    cells = {
        (io_manager, partitioning): passed if outcome == "passed" else outcome
        for outcome, (io_manager, partitioning, passed) in _properties(
            reporter, "io_manager_matrix"
        )
    }
    if not cells:
        return
    io_managers = sorted({io_manager for io_manager, _ in cells})
    partitionings = sorted({partitioning for _, partitioning in cells})
    rows = [["error rows through", *partitionings]]
    rows += [
        [io_manager, *(cells.get((io_manager, name), "-") for name in partitionings)]
        for io_manager in io_managers
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    reporter.write_sep("=", "IO manager matrix")
    for row in rows:
        cells_of_row = zip(row, widths, strict=True)
        reporter.write_line("  ".join(cell.ljust(width) for cell, width in cells_of_row).rstrip())


def _properties(reporter: Any, wanted: str) -> Iterator[tuple[str, Any]]:
    """Yield the outcome of each test that has a property of this name, and the property."""
    for outcome in OUTCOMES:
        for report in reporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", ()):
                if name == wanted:
                    yield outcome, value
