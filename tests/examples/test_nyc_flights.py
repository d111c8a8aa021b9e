"""The example project, run once with `dg`, against figures from plain Polars on the raw files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from nyc_flights.report import FailingCheck, Report, Table, read_report, render

PROJECT = Path(__file__).parents[2] / "examples" / "nyc_flights"
KEY = ["time_hour", "carrier", "flight", "origin"]
US_REGISTRATION = r"^N[1-9]\d{0,4}[A-Z]{0,2}$"

flights = pl.read_parquet(PROJECT / "data" / "flights.parquet")
planes = pl.read_parquet(PROJECT / "data" / "planes.parquet")

# Flights that the table must not hold: no arrival although they departed, or a time past 23:59.
never_arrived = pl.col("dep_time").is_not_null() & pl.col("arr_delay").is_null()
past_midnight = (pl.col("dep_time") > 2359).fill_null(False) | (
    pl.col("arr_time") > 2359
).fill_null(False)
error_flights = flights.filter(never_arrived | past_midnight)
kept_flights = flights.filter(~(never_arrived | past_midnight))

days = kept_flights.group_by("year", "month", "day", "origin").agg(
    scheduled=pl.len(),
    cancelled=pl.col("dep_time").null_count(),
    mean_delay=pl.col("dep_delay").mean(),
)


def dg_command(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("dg"), *arguments],
        cwd=PROJECT,
        env={**os.environ, "DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Dagster instance of its own for the project."""
    folder = tmp_path_factory.mktemp("dagster_home")
    shutil.copy(PROJECT / "dagster_home" / "dagster.yaml", folder)
    return folder


@pytest.fixture(scope="module")
def report(home: Path) -> Report:
    """The report on a run that materialized every asset."""
    launch = dg_command("launch", "--assets", "*", home=home)
    assert launch.returncode == 0, launch.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(home))
        with dg.DagsterInstance.get() as instance:
            found = read_report(instance)
    assert found is not None
    return found


def table_of(report: Report, asset: str) -> Table:
    return next(table for table in report.tables if table.asset == asset)


def test_the_definitions_are_found_valid_without_a_warning(home: Path) -> None:
    check = dg_command("check", "defs", home=home)

    assert check.returncode == 0, check.stdout + check.stderr
    assert "warning" not in (check.stdout + check.stderr).lower()


def test_the_run_succeeds_although_rows_are_held_back(report: Report) -> None:
    assert report.status == "SUCCESS"
    assert table_of(report, "flights").held_back > 0


def test_every_plane_is_written(report: Report) -> None:
    assert table_of(report, "planes") == Table("planes", planes.height, 0, "")


def test_the_flights_that_fail_no_error_rule_are_written_and_the_others_held_back(
    report: Report,
) -> None:
    written = table_of(report, "flights")

    assert written.written + written.held_back == 336_776
    assert (written.written, written.held_back) == (kept_flights.height, error_flights.height)


def test_each_day_and_airport_of_the_kept_flights_is_a_row(report: Report) -> None:
    assert table_of(report, "daily_departures").written == days.height == 365 * 3


def test_each_failing_check_has_its_severity_and_the_count_that_plain_polars_finds(
    report: Report,
) -> None:
    col = pl.col
    speed = col("distance") / (col("air_time") / 60)
    not_in_planes = flights.drop_nulls("tailnum").join(planes, on="tailnum", how="anti")
    expected = {
        ("planes", "dy_rule__year_built__nullability", "WARN", planes["year"].null_count()),
        *(
            ("flights", f"dy_rule__{rule}", severity, flights.filter(failing).height)
            for rule, severity, failing in [
                ("departed_flight_arrives", "ERROR", never_arrived),
                ("dep_time__max", "ERROR", col("dep_time") > 2359),
                ("arr_time__max", "ERROR", col("arr_time") > 2359),
                ("ground_speed_is_possible", "WARN", speed > 650),
                ("tailnum__nullability", "WARN", col("tailnum").is_null()),
                ("tailnum__regex", "WARN", ~col("tailnum").str.contains(US_REGISTRATION)),
                ("distance__min", "WARN", col("distance") < 50),
            ]
        ),
        ("flights", "dy_rule__plane_is_registered", "WARN", not_in_planes.height),
        *(
            ("daily_departures", f"dy_rule__{rule}", "WARN", days.filter(failing).height)
            for rule, failing in [
                ("most_flights_departed", col("cancelled") * 2 > col("scheduled")),
                ("mean_delay__max", col("mean_delay") > 60),
            ]
        ),
    }

    found = {
        (check.asset, check.check, check.severity, check.rows) for check in report.failing_checks
    }

    assert found == expected
    assert all(rows > 0 for _, _, _, rows in expected)


def test_the_error_rows_lie_where_the_report_says(report: Report) -> None:
    error_rows = pl.read_parquet(table_of(report, "flights").held_back_in)

    assert error_rows.select(KEY).sort(KEY).equals(error_flights.select(KEY).sort(KEY))
    assert (error_rows["dy_rule__dep_time__max"] == "invalid").sum() == 29


def test_the_report_lists_tables_and_failing_checks(report: Report) -> None:
    text = render(
        Report(
            run_id="1234",
            status="SUCCESS",
            tables=[
                Table("planes", 3_322, 0, ""),
                Table("flights", 335_422, 1_354, "storage/flights__error_rows.parquet"),
            ],
            failing_checks=[
                FailingCheck("flights", "dy_rule__distance__min", "WARN", 1),
                FailingCheck("flights", "dy_rule__tailnum__regex", "WARN", 22_754),
            ],
            passed_checks=40,
        )
    )

    assert text.splitlines() == [
        "Run 1234: SUCCESS",
        "",
        "table     rows written   rows held back   held back in",
        "planes           3,322                0",
        "flights        335,422            1,354   storage/flights__error_rows.parquet",
        "",
        "failing check                             severity     rows",
        "flights         dy_rule__distance__min    WARN            1",
        "flights         dy_rule__tailnum__regex   WARN       22,754",
        "",
        "40 other checks passed.",
    ]
