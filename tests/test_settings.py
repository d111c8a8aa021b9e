"""Settings: the package's default, then the environment, then the argument."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dataframely as dy
import pytest

import dagster_dataframely as dd
from dagster_dataframely.core.settings import Settings, resolve_settings


class PeopleSchema(dy.Schema):
    name = dy.String()
    email = dy.String(nullable=True)


def _orders(**settings: Any) -> None:
    dd.asset(PeopleSchema, **settings)


def test_without_environment_and_arguments_the_defaults_hold() -> None:
    assert resolve_settings() == Settings(
        check_granularity="rule",
        schema_rules="collapsed",
        statistics=True,
        max_failure_samples=5,
        row_sample=5,
        redact=frozenset(),
        staging_dir=None,
    )


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("check_granularity", "column", "column"),
        ("schema_rules", "per_rule", "per_rule"),
        ("statistics", "false", False),
        ("statistics", "1", True),
        ("max_failure_samples", "0", 0),
        ("row_sample", " 20 ", 20),
        ("redact", "email, name", frozenset({"email", "name"})),
        ("staging_dir", "/var/staging", Path("/var/staging")),
    ],
)
def test_an_environment_variable_comes_before_the_default(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, expected: object
) -> None:
    monkeypatch.setenv(f"DAGSTER_DATAFRAMELY_{name.upper()}", text)

    assert getattr(resolve_settings(), name) == expected


def test_an_argument_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_ROW_SAMPLE", "20")
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_STATISTICS", "false")

    settings = resolve_settings(row_sample=0, statistics=True)

    assert (settings.row_sample, settings.statistics) == (0, True)


def test_an_asset_cannot_show_what_the_environment_redacts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_REDACT", "email")

    assert resolve_settings(redact=["name"]).redact == {"email", "name"}
    assert resolve_settings(redact=[]).redact == {"email"}


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        (
            "check_granularity",
            "rules",
            "Allowed are 'rule', 'column', 'schema'. Did you mean 'rule'?",
        ),
        ("schema_rules", "each", "Allowed are 'collapsed', 'per_rule'."),
        ("statistics", "maybe", "Allowed are True and False."),
        ("max_failure_samples", "-1", "Allowed is a whole number from 0."),
        ("row_sample", "five", "Allowed is a whole number from 0."),
    ],
)
def test_a_bad_value_in_the_environment_is_refused_with_value_source_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, allowed: str
) -> None:
    variable = f"DAGSTER_DATAFRAMELY_{name.upper()}"
    monkeypatch.setenv(variable, text)

    with pytest.raises(dd.errors.InvalidSettingError) as refused:
        _orders()

    assert str(refused.value) == f"The environment variable {variable} is {text!r}. {allowed}"


def test_an_empty_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_ROW_SAMPLE", "")

    with pytest.raises(dd.errors.InvalidSettingError) as refused:
        _orders()

    assert str(refused.value) == (
        "The environment variable DAGSTER_DATAFRAMELY_ROW_SAMPLE is empty. Unset it to use the default, 5."
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"check_granularity": "colum"},
            "The argument `check_granularity` is 'colum'. Allowed are 'rule', 'column', 'schema'. "
            "Did you mean 'column'?",
        ),
        ({"row_sample": -1}, "The argument `row_sample` is -1. Allowed is a whole number from 0."),
        (
            {"row_sample": True},
            "The argument `row_sample` is True. Allowed is a whole number from 0.",
        ),
        ({"statistics": "yes"}, "The argument `statistics` is 'yes'. Allowed are True and False."),
        ({"stream": 1}, "The argument `stream` is 1. Allowed are True and False."),
        (
            {"redact": "email"},
            "The argument `redact` is 'email'. Allowed is a list of column names.",
        ),
        ({"staging_dir": 7}, "The argument `staging_dir` is 7. Allowed is the path of a folder."),
    ],
    ids=str,
)
def test_a_bad_argument_is_refused_with_value_and_what_is_allowed(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(dd.errors.InvalidSettingError) as refused:
        _orders(**settings)

    assert str(refused.value) == message


def test_an_unknown_column_in_redact_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(dd.errors.InvalidSettingError) as refused:
        _orders(redact=["emial"])

    assert str(refused.value) == (
        "The argument `redact` names 'emial', which is not a column of PeopleSchema. Did you mean 'email'? "
        "Its columns are 'name', 'email'."
    )


def test_the_environment_may_redact_a_column_that_a_schema_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_REDACT", "iban")

    _orders()
