"""Shared by all tests: no telemetry, Hypothesis profiles, and the two modes of validation."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from hypothesis import HealthCheck, settings

from dagster_dataframely import asset_decorator
from dagster_dataframely.core.verdict import streaming, uniqueness
from summaries import print_io_managers, print_mistakes
from yaml_project import Project, new_project

os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "yes")

_COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("default", max_examples=60, **_COMMON)
settings.register_profile("thorough", max_examples=500, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with the modules `orders` and `schema` in the folder `orders`, and no component yet."""
    return new_project(tmp_path)


@pytest.fixture(params=["collected", "streamed"])
def either_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice: as it is, and with every asset it builds streaming a lazy frame.

    A promise about outcomes holds in both modes, so no test of one says which it is in.
    """
    if request.param == "collected":
        return
    build_asset = asset_decorator.build_asset

    def build_streaming(fn: Any, plan: Any, arguments: Any, **kwargs: Any) -> dg.AssetsDefinition:
        streaming_plan = dataclasses.replace(plan, stream=True)
        return build_asset(_lazily(fn), streaming_plan, arguments, **kwargs)

    monkeypatch.setattr(asset_decorator, "build_asset", build_streaming)
    # Several slices of hashes, and rows beyond the first, even of a few rows.
    monkeypatch.setattr(uniqueness, "_ROWS_A_SLICE", 2)
    monkeypatch.setattr(streaming, "_FIRST_ROWS", 2)


def _lazily(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make the frame that a function returns a lazy one."""
    if not inspect.isfunction(fn) or inspect.isgeneratorfunction(fn):
        return fn
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def wrapped_async(*args: Any, **kwargs: Any) -> Any:
            return _lazy(await fn(*args, **kwargs))

        return wrapped_async

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _lazy(fn(*args, **kwargs))

    return wrapped


def _lazy(value: Any) -> Any:
    if isinstance(value, pl.DataFrame):
        return value.lazy()
    if isinstance(value, dg.MaterializeResult) and isinstance(value.value, pl.DataFrame):
        return value._replace(value=value.value.lazy())
    return value


@pytest.hookimpl(optionalhook=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the tables of what the tests tried."""
    print_mistakes(terminalreporter)
    print_io_managers(terminalreporter)
