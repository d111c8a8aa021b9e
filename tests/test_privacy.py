"""Values of redacted columns never reach the event log, by whatever way they might."""

from __future__ import annotations

import datetime as dt
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd

PLANTED = ["planted-secret", "8131313", "1999-09-09"]


class PeopleSchema(dy.Schema):
    person = dy.String(primary_key=True, regex="^[a-z-]+$")
    email = dy.String(nullable=True, regex="@", unique=True)
    salary = dy.Int64(min=0, max=9_000_000)
    born = dy.Date(min=dt.date(2000, 1, 1), nullable=True)
    note = dy.List(dy.String(max_length=3))

    @dy.rule()
    def has_an_email_or_a_note(cls) -> pl.Expr:
        return cls.email.col.is_not_null() | (cls.note.col.list.len() > 0)


REDACTED = ["person", "email", "salary", "born", "note"]

# Every rule fails somewhere, and every value that is planted stands in a row that fails.
PEOPLE = pl.DataFrame(
    {
        "person": ["planted-secret", "planted-secret", "ann", "Bob9"],
        "email": ["planted-secret", "planted-secret", "a@b", None],
        "salary": [8_131_313, -8_131_313, 1, 2],
        "born": [dt.date(1999, 9, 9), dt.date(1999, 9, 9), dt.date(2001, 1, 1), None],
        "note": [["planted-secret"], ["planted-secret"], [], []],
    },
    schema=PeopleSchema.create_empty().schema,
)


def events_of(assets: list[dg.AssetsDefinition], instance: dg.DagsterInstance) -> str:
    """Return everything that a run put into the event log, as the text that is stored."""
    result = dg.materialize(
        assets,
        instance=instance,
        raise_on_error=False,
        resources={"io_manager": dg.InMemoryIOManager()},
    )
    return "\n".join(dg.serialize_value(entry) for entry in instance.all_logs(result.run_id))


@pytest.fixture
def instance() -> Any:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.mark.usefixtures("either_mode")
@pytest.mark.parametrize("check_granularity", ["rule", "column", "schema"])
@pytest.mark.parametrize("filter_rows", [True, False])
def test_no_planted_value_reaches_the_event_log(
    instance: dg.DagsterInstance, filter_rows: bool, check_granularity: Any
) -> None:
    @dd.asset(
        PeopleSchema,
        filter=filter_rows,
        redact=REDACTED,
        check_granularity=check_granularity,
        row_sample=10,
        max_failure_samples=10,
    )
    def people() -> pl.DataFrame:
        return PEOPLE

    log = events_of([people], instance)

    assert [value for value in PLANTED if value in log] == []
    assert "[redacted]" in log


def test_without_redaction_the_planted_values_are_there_to_be_found(
    instance: dg.DagsterInstance,
) -> None:
    @dd.asset(PeopleSchema, filter=True, row_sample=10, max_failure_samples=10)
    def people() -> pl.DataFrame:
        return PEOPLE

    log = events_of([people], instance)

    assert [value for value in PLANTED if value in log] == PLANTED


def test_without_samples_and_statistics_no_value_is_in_the_event_log(
    instance: dg.DagsterInstance,
) -> None:
    @dd.asset(PeopleSchema, filter=True, row_sample=0, max_failure_samples=0, statistics=False)
    def people() -> pl.DataFrame:
        return PEOPLE

    log = events_of([people], instance)

    assert [value for value in PLANTED if value in log] == []


@pytest.mark.usefixtures("either_mode")
def test_an_error_inside_a_rule_quotes_no_value_of_a_redacted_column(
    instance: dg.DagsterInstance,
) -> None:
    class StrictSchema(dy.Schema):
        person = dy.String()

        @dy.rule()
        def is_a_number(cls) -> pl.Expr:
            return cls.person.col.cast(pl.Int64) > 0

    @dd.asset(StrictSchema, redact=["person"])
    def people() -> pl.DataFrame:
        return pl.DataFrame({"person": ["planted-secret"]})

    log = events_of([people], instance)

    assert "planted-secret" not in log
    assert (
        "Rule 'is_a_number' of StrictSchema raised InvalidOperationError. Its message is not" in log
    )


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_inside_the_returned_plan_quotes_no_value_of_a_redacted_column(
    instance: dg.DagsterInstance, stream: bool
) -> None:
    class NumbersSchema(dy.Schema):
        person = dy.Int64()

    @dd.asset(NumbersSchema, redact=["person"], stream=stream)
    def people() -> pl.LazyFrame:
        return pl.LazyFrame({"person": ["planted-secret"]}).cast({"person": pl.Int64})

    log = events_of([people], instance)

    assert "planted-secret" not in log
    assert "Executing the lazy frame that the function returned raised" in log


def test_a_deployment_redacts_for_all_its_assets(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_REDACT", ",".join(REDACTED))

    @dd.asset(PeopleSchema, filter=True)
    def people() -> pl.DataFrame:
        return PEOPLE

    log = events_of([people], instance)

    assert [value for value in PLANTED if value in log] == []
