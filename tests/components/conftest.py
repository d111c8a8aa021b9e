"""Fixtures for the tests of the YAML front."""

from __future__ import annotations

from pathlib import Path

import pytest
from yaml_project import Project, new_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the modules `orders` and `schema` in the folder `orders`, and no component yet."""
    return new_project(tmp_path)
