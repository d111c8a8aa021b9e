"""What the last run did, read back from the Dagster instance.

Run it with `python -m nyc_flights.report`, under the `DAGSTER_HOME` of the run.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg

Metadata: TypeAlias = Mapping[str, dg.MetadataValue[Any]]


@dataclass(frozen=True)
class Table:
    """What a run wrote of one asset."""

    asset: str
    written: int
    held_back: int
    held_back_in: str


@dataclass(frozen=True)
class FailingCheck:
    """A check that did not pass, and the number of rows that failed it."""

    asset: str
    check: str
    severity: str
    rows: int


@dataclass(frozen=True)
class Report:
    """One run: how it ended, its tables and its checks."""

    run_id: str
    status: str
    tables: Sequence[Table]
    failing_checks: Sequence[FailingCheck]
    passed_checks: int


def read_report(instance: dg.DagsterInstance) -> Report | None:
    """Read the newest run of an instance; None if there is no run yet."""
    records = instance.get_run_records(limit=1)
    if not records:
        return None
    run = records[0].dagster_run
    materialization = dg.DagsterEventType.ASSET_MATERIALIZATION
    evaluation = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    events = [
        entry.get_dagster_event()
        for entry in instance.all_logs(run.run_id, of_type={materialization, evaluation})
    ]
    written = {
        event.asset_key: event.materialization.metadata
        for event in events
        if event.event_type == materialization and event.asset_key
    }
    checks = [
        event.asset_check_evaluation_data for event in events if event.event_type == evaluation
    ]
    failing = [check for check in checks if not check.passed]
    return Report(
        run_id=run.run_id,
        status=run.status.value,
        tables=list(_tables(written)),
        failing_checks=[
            FailingCheck(
                asset=check.asset_key.to_user_string(),
                check=check.check_name,
                severity=check.severity.value,
                rows=_value(check.metadata, "dataframely/failed_count", 0),
            )
            for check in failing
        ],
        passed_checks=len(checks) - len(failing),
    )


def _tables(written: Mapping[dg.AssetKey, Metadata]) -> Iterator[Table]:
    """Give each asset one line, together with its error rows, which have a key of their own."""
    error_rows = {
        _value(metadata, "dataframely/error_rows_of", None): metadata
        for metadata in written.values()
    }
    # A run that found no valid row wrote the error rows alone.
    assets = {
        _value(metadata, "dataframely/error_rows_of", key): None
        for key, metadata in written.items()
    }
    for asset in assets:
        held_back = _value(error_rows.get(asset, {}), "dagster/row_count", 0)
        yield Table(
            asset=asset.to_user_string(),
            written=_value(written.get(asset, {}), "dagster/row_count", 0),
            held_back=held_back,
            held_back_in=_value(error_rows[asset], "path", "") if held_back else "",
        )


def _value(metadata: Metadata, key: str, default: Any) -> Any:
    return metadata[key].value if key in metadata else default


def render(report: Report) -> str:
    """Lay a report out as text."""
    tables = [
        ("table", "rows written", "rows held back", "held back in"),
        *(
            (
                table.asset,
                f"{table.written:,}",
                f"{table.held_back:,}",
                table.held_back_in.removeprefix(f"{Path.cwd()}/"),
            )
            for table in report.tables
        ),
    ]
    checks = [
        ("failing check", "", "severity", "rows"),
        *(
            (check.asset, check.check, check.severity, f"{check.rows:,}")
            for check in report.failing_checks
        ),
    ]
    return "\n".join(
        [
            f"Run {report.run_id}: {report.status}",
            "",
            *_aligned(tables, right={1, 2}),
            "",
            *(_aligned(checks, right={3}) if report.failing_checks else ["No check failed."]),
            "",
            f"{report.passed_checks} other checks passed.",
        ]
    )


def _aligned(rows: Sequence[Sequence[str]], right: set[int]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "   ".join(cells).rstrip()


def main() -> int:
    """Print the report of the last run and return 1 if there is none or it failed."""
    with dg.DagsterInstance.get() as instance:
        report = read_report(instance)
    if report is None:
        print("There is no run yet in this DAGSTER_HOME; `dg launch --assets '*'` makes one.")
        return 1
    print(render(report))
    return 0 if report.status == dg.DagsterRunStatus.SUCCESS.value else 1


if __name__ == "__main__":
    sys.exit(main())
