"""Prints the table of IO managers and partitionings that error rows were written through."""

from __future__ import annotations

from typing import Any

import pytest
from storage_cases import IO_MANAGERS, PARTITIONINGS

CELL = "io_manager_matrix"


@pytest.hookimpl(optionalhook=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    cells: dict[tuple[str, str], str] = {}
    for outcome in ("passed", "skipped", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            properties = dict(getattr(report, "user_properties", ()))
            if CELL in properties:
                io_manager, partitioning, passed = properties[CELL]
                cells[io_manager, partitioning] = passed if outcome == "passed" else outcome
    if not cells:
        return
    rows = [["error rows through", *PARTITIONINGS]]
    rows += [
        [io_manager, *(cells.get((io_manager, name), "-") for name in PARTITIONINGS)]
        for io_manager in IO_MANAGERS
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    terminalreporter.write_sep("=", "IO manager matrix")
    for row in rows:
        terminalreporter.write_line(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
