"""Fixtures for the tests of the YAML front, and the table of mistakes at the end of a test run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from yaml_project import Project, new_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the modules `orders` and `schema` in the folder `orders`, and no component yet."""
    return new_project(tmp_path)


@pytest.hookimpl(optionalhook=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the first line about each mistake that people make in a `defs.yaml`."""
    mistakes = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in getattr(report, "user_properties", ())
        if name == "yaml_mistake"
    ]
    if not mistakes:
        return
    terminalreporter.write_sep("=", f"first lines about {len(mistakes)} mistakes in a defs.yaml")
    for mistake, of_yaml, of_load in mistakes:
        terminalreporter.write_line(mistake)
        if of_yaml is not None:
            terminalreporter.write_line(f"    dg check yaml  {of_yaml}")
        terminalreporter.write_line(f"    dg check defs  {of_load}")
