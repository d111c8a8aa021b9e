"""What validation costs for a table that is streamed: `make bench-big`."""

from __future__ import annotations

import argparse
import cProfile
import pstats
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import polars as pl

import dagster_dataframely as dd
from benchmarks import runner
from benchmarks.runner import Job, Measurement, Target, middle, number, ratio
from benchmarks.runs import failed_counts, materialize, nothing
from benchmarks.tables import TABLES, Table

SUITE = "benchmarks.larger_than_memory"

COPY = "dg.asset, streaming copy"
STREAM = "dd.asset, stream=True"
FILTERED = "dd.asset, stream=True, filter=True"
COLLECT = "Schema.filter, collect_all, nothing written"
PREPARE = "make the data"


# --- one process -----------------------------------------------------------------------------------


def measured(job: Job) -> Measurement:
    """Measure one way on one file, or make the file."""
    table, source = TABLES[job["table"]], Path(job["source"])
    if job["way"] == PREPARE:
        source.parent.mkdir(parents=True, exist_ok=True)
        unfinished = source.with_suffix(".unfinished")
        _, measurement = runner.measure(
            lambda: table.plan(job["rows"], job["errors"]).sink_parquet(unfinished)
        )
        unfinished.replace(source)
        return measurement
    if job["way"] == COLLECT:
        return _collected(table, source)
    return _materialized(job["way"], table, source)


def _collected(table: Table, source: Path) -> Measurement:
    def collect() -> dict[str, int]:
        filtered = table.schema.filter(pl.scan_parquet(source)).collect_all(engine="streaming")
        return dict(filtered.failure.counts())

    counts, measurement = runner.measure(collect)
    return replace(measurement, verdict=table.by_column(counts))


def _materialized(way: str, table: Table, source: Path) -> Measurement:
    """Measure a materialization whose tables lie beside the file, and are gone afterwards."""

    def orders() -> pl.LazyFrame:
        return pl.scan_parquet(source)

    asset = (
        dg.asset(orders)
        if way == COPY
        else dd.asset(table.schema, stream=True, filter=way == FILTERED)(orders)
    )
    with tempfile.TemporaryDirectory(dir=source.parent) as tables:
        io_manager = dd.ParquetIOManager(base_dir=tables)
        materialize(nothing, io_manager)
        result, measurement = runner.measure(lambda: materialize(asset, io_manager))
    if way == COPY:
        return measurement
    return replace(measurement, verdict=table.by_column(failed_counts(result)))


# --- the suite -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A file, and the figures to reach on it."""

    title: str
    table: str
    errors: float
    #: The largest time in copies, and the largest peak in gigabytes.
    times: float
    peak: float

    @property
    def package(self) -> str:
        """How the package is used on it."""
        return FILTERED if self.errors else STREAM


CASES = (
    Case("no key, clean", "orders", 0.0, times=1.6, peak=0.6),
    Case("String key, clean", "orders with key", 0.0, times=2.6, peak=0.7),
    Case("no key, 0.1 % error rows", "orders", 0.001, times=2.8, peak=0.6),
    Case(
        "String key, 0.1 % error rows, duplicate keys among them",
        *("orders with duplicates", 0.001),
        times=3.8,
        peak=0.7,
    ),
)


def report(arguments: argparse.Namespace) -> None:
    """Measure every case and print it."""
    targets: list[Target] = []
    for rows in arguments.rows:
        for case in CASES:
            source = arguments.data / f"{case.table} {rows} {case.errors}.parquet".replace(" ", "-")
            job = {
                "table": case.table,
                "rows": rows,
                "errors": case.errors,
                "source": str(source),
            }
            if not source.exists():
                runner.run(SUITE, {**job, "way": PREPARE})
            title = f"{rows:,} rows, {case.title}"
            if arguments.profile:
                print(f"\n### {title}")
                profiled(case, source)
            else:
                targets += compared(title, case, job, arguments)
            if not arguments.keep:
                source.unlink()
    if targets:
        runner.print_targets(targets)


def compared(title: str, case: Case, job: Job, arguments: argparse.Namespace) -> list[Target]:
    """Measure the ways on one file, print what they take, and return the figures to reach."""
    rows, limit = job["rows"], arguments.memory_limit
    ways = runner.selected([COPY, case.package, COLLECT], arguments.only, [COPY])
    found = runner.interleaved(
        SUITE, {way: {**job, "way": way} for way in ways}, arguments.rounds, memory_limit=limit
    )
    runner.assert_same_verdict(found, TABLES[case.table].failing(rows, case.errors))
    print_case(title, found, limit)
    return targets_of(title, case, found, rows)


def profiled(case: Case, source: Path) -> None:
    """Print which functions of the package take how long on a file, including what they call."""
    profile = cProfile.Profile()
    profile.runcall(_materialized, case.package, TABLES[case.table], source)
    package = re.escape(str(Path(dd.__file__).parent))
    pstats.Stats(profile).sort_stats("cumulative").print_stats(package, 25)


def print_case(title: str, found: Mapping[str, Sequence[Measurement]], limit: float) -> None:
    """Print what each way takes, and how that compares with a copy."""
    rows = []
    for way in found:
        if not found[way]:
            rows.append([way, f"out of memory at {limit / 1000:.1f} GB", "", "", ""])
            continue
        seconds, cpu = middle(found, way, "seconds"), middle(found, way, "cpu")
        peak = middle(found, way, "peak")
        rows.append(
            [
                way,
                number(seconds),
                number(ratio(seconds, middle(found, COPY, "seconds"))),
                number(ratio(cpu, middle(found, COPY, "cpu"))),
                number(ratio(peak, 1000)),
            ]
        )
    runner.print_table(title, ["way", "seconds", "ratio", "by CPU time", "peak GB"], rows)


def targets_of(
    title: str, case: Case, found: Mapping[str, Sequence[Measurement]], rows: int
) -> list[Target]:
    """Return the figures to reach; a hundred million rows may take a fifth more memory than thirty."""
    peak = case.peak if rows <= 30_000_000 else case.peak * 1.2
    return [
        Target(
            f"{title}: time over a copy",
            ratio(middle(found, case.package, "seconds"), middle(found, COPY, "seconds")),
            case.times,
            ratio(middle(found, case.package, "cpu"), middle(found, COPY, "cpu")),
        ),
        Target(f"{title}: peak in GB", ratio(middle(found, case.package, "peak"), 1000), peak),
    ]


def free_memory() -> float:
    """Return, in megabytes, what other processes leave free, less two gigabytes for them to grow."""
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024 / runner.MEGABYTE - 2_000


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=f"python -m {SUITE}", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[30_000_000, 100_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], help="ways, as patterns such as 'dd.*'")
    parser.add_argument(
        "--data", type=Path, default=runner.data_folder(), help="where files are made"
    )
    parser.add_argument(
        "--profile", action="store_true", help="print what the package's functions take instead"
    )
    parser.add_argument("--keep", action="store_true", help="keep the files for the next time")
    parser.add_argument(
        "--memory-limit",
        type=float,
        default=free_memory(),
        help="megabytes of address space for each process; by default what is free now less 2 GB",
    )
    runner.main(SUITE, measured, report, parser)
