"""What validation adds to a bare asset, for a frame in memory: `make bench`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from benchmarks import runner
from benchmarks.runner import Job, Measurement, Target, middle, number, ratio
from benchmarks.runs import Nowhere, failed_counts, materialize, nothing
from benchmarks.tables import TABLES, Table
from benchmarks.tools import TOOLS
from dagster_dataframely.core.declaration.rules import read_rules

SUITE = "benchmarks.in_memory"

BARE = "bare dg.asset"
CHECKS = "dg.asset, as many passing checks"
VALIDATE = "dg.asset, Schema.validate"
FILTER = "dg.asset, Schema.filter and checks"
DEFAULT = "dd.asset"
NO_STATISTICS = "dd.asset, statistics=False"
FILTERED = "dd.asset, filter=True"
COLLAPSED = "dd.asset, check_granularity=schema"

# Where an asset that uses another tool puts, by column, how many rows failed.
_FAILED = "failed/"


# --- the ways --------------------------------------------------------------------------------------

Way = Callable[[Table, pl.DataFrame], dg.AssetsDefinition]


def bare(_table: Table, frame: pl.DataFrame) -> dg.AssetsDefinition:
    """Return the frame and check nothing."""

    @dg.asset
    def orders() -> pl.DataFrame:
        return frame

    return orders


def with_checks(table: Table, frame: pl.DataFrame) -> dg.AssetsDefinition:
    """Report a check a rule, and one for the columns, without looking at the frame."""
    names = _check_names(table)

    @dg.asset(check_specs=[dg.AssetCheckSpec(name, asset="orders") for name in names])
    def orders() -> Iterator[Any]:
        yield dg.MaterializeResult(value=frame)
        for name in names:
            yield dg.AssetCheckResult(check_name=name, passed=True)

    return orders


def hand_validated(table: Table, frame: pl.DataFrame) -> dg.AssetsDefinition:
    """Return `Schema.validate(frame)`."""

    @dg.asset
    def orders() -> pl.DataFrame:
        return table.schema.validate(frame)

    return orders


def hand_filtered(table: Table, frame: pl.DataFrame) -> dg.AssetsDefinition:
    """Return the valid rows of `Schema.filter(frame)`, and report the count of every rule as a check."""
    names = _check_names(table)

    @dg.asset(check_specs=[dg.AssetCheckSpec(name, asset="orders") for name in names])
    def orders() -> Iterator[Any]:
        valid, failure = table.schema.filter(frame)
        counts = {_check_name(rule): (rule, count) for rule, count in failure.counts().items()}
        yield dg.MaterializeResult(value=valid)
        for name in names:
            rule, count = counts.get(name, ("", 0))
            yield dg.AssetCheckResult(
                check_name=name,
                passed=not count,
                metadata={"dataframely/rule": rule, "dataframely/failed_count": count},
            )

    return orders


def package(**arguments: Any) -> Way:
    """Use `dd.asset` with these arguments."""

    def way(table: Table, frame: pl.DataFrame) -> dg.AssetsDefinition:
        @dd.asset(table.schema, **arguments)
        def orders() -> pl.DataFrame:
            return frame

        return orders

    return way


def other_tool(name: str) -> Way:
    """Validate with another tool inside a plain asset, and return the frame."""

    def way(table: Table, frame: pl.DataFrame) -> dg.AssetsDefinition:
        validate = TOOLS[name](table)

        @dg.asset
        def orders() -> dg.MaterializeResult[pl.DataFrame]:
            failed = {_FAILED + column: count for column, count in validate(frame).items()}
            return dg.MaterializeResult(value=frame, metadata=failed)

        return orders

    return way


WAYS: Mapping[str, Way] = {
    BARE: bare,
    CHECKS: with_checks,
    VALIDATE: hand_validated,
    FILTER: hand_filtered,
    DEFAULT: package(),
    NO_STATISTICS: package(statistics=False),
    FILTERED: package(filter=True),
    COLLAPSED: package(check_granularity="schema"),
    **{name: other_tool(name) for name in TOOLS},
}


def _check_names(table: Table) -> list[str]:
    return ["columns", *(_check_name(rule.name) for rule in read_rules(table.schema))]


def _check_name(rule: str) -> str:
    return re.sub(r"\W", "_", rule)


# --- one process -----------------------------------------------------------------------------------


def measured(job: Job) -> Measurement:
    """Measure one way on one frame."""
    table = TABLES[job["table"]]
    frame = table.frame(job["rows"], job["errors"])
    orders = WAYS[job["way"]](table, frame)
    materialize(nothing, Nowhere())
    result, measurement = runner.measure(
        lambda: materialize(orders, Nowhere()), repeats=job["repeats"]
    )
    return replace(measurement, verdict=_verdict(job["way"], table, result))


def _verdict(way: str, table: Table, result: dg.ExecuteInProcessResult) -> dict[str, int] | None:
    """Read what a run stored: column to failing rows."""
    if way in (BARE, CHECKS, COLLAPSED):
        return None
    if way not in TOOLS:
        return table.by_column(failed_counts(result))
    (event,) = result.asset_materializations_for_node("orders")
    return {
        name.removeprefix(_FAILED): int(str(value.value))
        for name, value in event.metadata.items()
        if name.startswith(_FAILED)
    }


# --- the suite -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A frame and the ways that are tried on it."""

    title: str
    table: str
    rows: int
    errors: float
    ways: Sequence[str]
    #: What the others are compared with.
    reference: str
    #: How often a process measures: what takes milliseconds is repeated.
    repeats: int = 1


def cases(sizes: Sequence[int], wide_rows: int) -> list[Case]:
    """Return the cases for these numbers of rows."""
    clean = [BARE, CHECKS, VALIDATE, FILTER, DEFAULT, NO_STATISTICS, FILTERED, *TOOLS]
    failing = [BARE, FILTER, FILTERED]
    found = []
    for rows in sizes:
        size = f"{rows:,} rows"
        repeats = 15 if rows <= 10_000 else 1
        keyed, duplicates = "orders with key", "orders with duplicates"
        found += [
            Case(f"{size}, clean", keyed, rows, 0.0, clean, VALIDATE, repeats),
            Case(f"{size}, 1 % error rows", keyed, rows, 0.01, [*failing, *TOOLS], FILTER, repeats),
            Case(
                f"{size}, 1 % error rows, duplicate keys among them",
                *(duplicates, rows, 0.01, [*failing, *TOOLS], FILTER, repeats),
            ),
            Case(
                f"{size}, 50 % error rows, duplicate keys among them",
                *(duplicates, rows, 0.5, failing, FILTER, repeats),
            ),
        ]
    if wide_rows:
        wide = f"200 columns, {wide_rows:,} rows"
        found += [
            Case(f"{wide}, clean", "wide", wide_rows, 0.0, [*clean, COLLAPSED], VALIDATE),
            Case(f"{wide}, 1 % error rows", "wide", wide_rows, 0.01, [*failing, *TOOLS], FILTER),
        ]
    return found


def report(arguments: argparse.Namespace) -> None:
    """Measure every case and print it."""
    targets: list[Target] = []
    growth: dict[str, dict[int, float | None]] = {}
    for case in cases(arguments.rows, arguments.wide_rows):
        ways = runner.selected(case.ways, arguments.only, [BARE, case.reference])
        jobs = {
            way: {
                "table": case.table,
                "rows": case.rows,
                "errors": case.errors,
                "way": way,
                "repeats": case.repeats,
            }
            for way in ways
        }
        found = runner.interleaved(SUITE, jobs, arguments.rounds)
        runner.assert_same_verdict(found, TABLES[case.table].failing(case.rows, case.errors))
        print_case(case, found)
        targets += targets_of(case, found, largest=case.rows == max(arguments.rows))
        if case.table != "wide" and not case.errors:
            for way in ways:
                growth.setdefault(way, {})[case.rows] = middle(found, way, "seconds", over=BARE)
    print_growth(growth)
    runner.print_targets(targets)


def print_case(case: Case, found: Mapping[str, Sequence[Measurement]]) -> None:
    """Print what each way adds to the bare asset, and how that compares."""
    reference = middle(found, case.reference, "seconds", over=BARE)
    reference_cpu = middle(found, case.reference, "cpu", over=BARE)
    bare_peak = middle(found, BARE, "peak")
    rows = []
    for way in found:
        added = middle(found, way, "seconds", over=BARE)
        cpu = middle(found, way, "cpu", over=BARE)
        peak = middle(found, way, "peak")
        figures = (
            ["", "", ""]
            if way == BARE
            else [
                number(added, 3),
                number(ratio(added, reference)),
                number(ratio(cpu, reference_cpu)),
            ]
        )
        rows.append([way, *figures, number(peak, 0), number(ratio(peak, bare_peak))])
    runner.print_table(
        f"{case.title}; ratios to {case.reference}",
        ["way", "seconds added", "ratio", "by CPU time", "peak MB", "peak ratio to bare"],
        rows,
    )


def print_growth(growth: Mapping[str, Mapping[int, float | None]]) -> None:
    """Print what each way adds at each size, and how many times more that is than at the size before."""
    sizes = sorted({rows for by_rows in growth.values() for rows in by_rows})

    def cells(by_rows: Mapping[int, float | None]) -> Iterator[str]:
        smaller: float | None = None
        for rows in sizes:
            seconds = by_rows.get(rows)
            times = ratio(seconds, smaller)
            yield number(seconds, 3) + (f" (x {times:.1f})" if times else "")
            smaller = seconds

    runner.print_table(
        "Seconds added by size, clean, and growth from size to size",
        ["way", *(f"{rows:,} rows" for rows in sizes)],
        [[way, *cells(by_rows)] for way, by_rows in growth.items() if way != BARE],
    )


def targets_of(
    case: Case, found: Mapping[str, Sequence[Measurement]], *, largest: bool
) -> list[Target]:
    """Return the figures to reach that this case measures."""

    def added(way: str, field: str = "seconds") -> float | None:
        return middle(found, way, field, over=BARE)

    def by_time(what: str, way: str, other: str, limit: float) -> Target:
        return Target(
            f"{case.title}: {what}",
            ratio(added(way), added(other)),
            limit,
            ratio(added(way, "cpu"), added(other, "cpu")),
        )

    if case.table == "wide":
        return []
    if not case.errors and case.repeats > 1:
        return [
            by_time(f"{way}, time over as many passing checks", way, CHECKS, 1.0)
            for way in (DEFAULT, NO_STATISTICS)
        ]
    if not largest or case.repeats > 1:
        return []
    if case.errors:
        few = case.errors < 0.1
        return (
            [by_time("filter=True, time over Schema.filter", FILTERED, FILTER, 0.9)] if few else []
        )
    peak = ratio(middle(found, NO_STATISTICS, "peak"), middle(found, BARE, "peak"))
    best, best_cpu = (
        min((value for tool in TOOLS if (value := added(tool, field)) is not None), default=None)
        for field in ("seconds", "cpu")
    )
    return [
        by_time("statistics=False, time over Schema.validate", NO_STATISTICS, VALIDATE, 0.5),
        Target(f"{case.title}: statistics=False, peak over the bare asset", peak, 1.25),
        by_time("every default, time over Schema.validate", DEFAULT, VALIDATE, 1.0),
        *(
            Target(
                f"{case.title}: the best other tool over {way}",
                ratio(best, added(way)),
                2.0,
                ratio(best_cpu, added(way, "cpu")),
                at_least=True,
            )
            for way in (DEFAULT, NO_STATISTICS)
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=f"python -m {SUITE}", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 1_000_000, 10_000_000])
    parser.add_argument(
        "--wide-rows", type=int, default=100_000, help="rows of the wide table, 0 to leave it out"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[], help="ways, as patterns such as 'dd.*'")
    runner.main(SUITE, measured, report, parser)
