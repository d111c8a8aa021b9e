"""What every suite shares: fresh processes, interleaved rounds, tables of figures and targets.

A suite is a module with a `measured` function that takes a job and is called in a process of its own. The
suite starts that process as `python -m benchmarks.SUITE --job JSON`, and reads what it prints.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import importlib.metadata
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Job = Mapping[str, Any]
Verdict = Mapping[str, int]

MEGABYTE = 1_000_000
_MARK = "measured: "
_RESET_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Measurement:
    """What one process measured."""

    #: Wall time.
    seconds: float
    #: Time of all threads in user and system mode.
    cpu: float
    #: The largest resident memory of the process while it was measured, in megabytes.
    peak: float
    #: Column to the number of rows that fail its rules; None where the way gives no verdict.
    verdict: Verdict | None = None


# --- in the measured process -----------------------------------------------------------------------


def measure(work: Callable[[], T], *, repeats: int = 1) -> tuple[T, Measurement]:
    """Call a function and measure it; of several calls, the median time and the highest memory.

    Memory that the process took before, such as for imports and for making data, does not count, only what
    it still holds.
    """
    _settle_memory()
    times: list[float] = []
    cpus: list[float] = []
    for _ in range(repeats):
        start, cpu = time.perf_counter(), time.process_time()
        result = work()
        times.append(time.perf_counter() - start)
        cpus.append(time.process_time() - cpu)
    return result, Measurement(statistics.median(times), statistics.median(cpus), _peak())


def _settle_memory() -> None:
    """Wait until freed memory has gone back to the system, then let the peak begin here."""
    gc.collect()
    # Polars' allocator gives memory back about a second after it was freed.
    time.sleep(1.5)
    if _RESET_PEAK.exists():
        _RESET_PEAK.write_text("5")


def _peak() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MEGABYTE if sys.platform == "darwin" else peak * 1024 / MEGABYTE


# --- in the process that starts the others ---------------------------------------------------------


def main(
    suite: str,
    measured: Callable[[Job], Measurement],
    report: Callable[[argparse.Namespace], None],
    parser: argparse.ArgumentParser,
) -> None:
    """Run one job and print its measurement where one is given, else the whole suite."""
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.set_defaults(suite=suite)
    arguments = parser.parse_args()
    if arguments.job:
        print(_MARK + json.dumps(asdict(measured(json.loads(arguments.job)))))
    else:
        print(environment(), end="\n\n")
        report(arguments)


def run(suite: str, job: Job, *, memory_limit: float | None = None) -> Measurement | None:
    """Measure a job in a process of its own.

    Args:
        suite: The module that knows the job.
        job: The job, in JSON's terms.
        memory_limit: The address space that the process may take, in megabytes.

    Returns:
        The measurement, or None if the memory did not suffice.

    Raises:
        RuntimeError: The process failed otherwise.
    """
    finished = subprocess.run(
        [sys.executable, "-m", suite, "--job", json.dumps(job)],
        capture_output=True,
        text=True,
        env={**os.environ, "DAGSTER_DISABLE_TELEMETRY": "1"},
        preexec_fn=None if memory_limit is None else lambda: _limit_memory(memory_limit),
        check=False,
    )
    for line in finished.stdout.splitlines():
        if line.startswith(_MARK):
            return Measurement(**json.loads(line.removeprefix(_MARK)))
    ended = finished.stderr[-4000:]
    if memory_limit is not None and _is_out_of_memory(finished.returncode, finished.stderr):
        return None
    raise RuntimeError(f"The job {dict(job)} ended with {finished.returncode}:\n{ended}")


def _limit_memory(megabytes: float) -> None:
    most = int(megabytes * MEGABYTE)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _is_out_of_memory(returncode: int, stderr: str) -> bool:
    words = ("memory allocation of", "MemoryError", "Cannot allocate memory", "capacity overflow")
    # A process that the system ends for lack of memory ends by SIGKILL.
    return returncode == -9 or any(word in stderr for word in words)


def interleaved(
    suite: str, jobs: Mapping[str, Job], rounds: int, *, memory_limit: float | None = None
) -> dict[str, list[Measurement]]:
    """Measure jobs in turn, A B C A B C, so that what else the machine does meets all of them.

    Returns:
        Name to the measurements, one a round; none for a job whose memory did not suffice.
    """
    found: dict[str, list[Measurement]] = {name: [] for name in jobs}
    too_large: set[str] = set()
    for number in range(1, rounds + 1):
        for name, job in jobs.items():
            if name in too_large:
                continue
            progress(f"round {number} of {rounds}: {name}")
            measurement = run(suite, job, memory_limit=memory_limit)
            if measurement is None:
                too_large.add(name)
                found[name] = []
            else:
                found[name].append(measurement)
    progress("")
    return found


def progress(text: str) -> None:
    """Show on a terminal what is being measured, in place of what was."""
    if sys.stderr.isatty():
        print(f"{text}\033[K", end="\r", file=sys.stderr, flush=True)


def assert_same_verdict(found: Mapping[str, Sequence[Measurement]], expected: Verdict) -> None:
    """Assert that every way that gives a verdict found the failing rows that there are.

    Raises:
        AssertionError: A way found others.
    """
    for name, measurements in found.items():
        for measurement in measurements:
            if measurement.verdict is not None:
                counts = {column: n for column, n in measurement.verdict.items() if n}
                assert counts == expected, f"{name} found {counts}, and there are {expected}"


def selected(names: Iterable[str], patterns: Sequence[str], always: Sequence[str]) -> list[str]:
    """Return the names that match one of the patterns of `--only`, and those that are always needed."""
    return [
        name
        for name in names
        if name in always or not patterns or any(fnmatch.fnmatch(name, p) for p in patterns)
    ]


# --- figures ---------------------------------------------------------------------------------------


def middle(
    found: Mapping[str, Sequence[Measurement]], name: str, field: str, *, over: str | None = None
) -> float | None:
    """Return the median over the rounds of a field, or of what it is more than another's in its round."""
    values = [getattr(measurement, field) for measurement in found.get(name, ())]
    if over is not None:
        base = [getattr(measurement, field) for measurement in found.get(over, ())]
        values = [value - other for value, other in zip(values, base, strict=False)]
    return statistics.median(values) if values else None


def ratio(part: float | None, whole: float | None) -> float | None:
    """Return a ratio, or None where there is none."""
    return None if part is None or whole is None or whole <= 0 else part / whole


def number(value: float | None, digits: int = 2, *, missing: str = "") -> str:
    """Return a figure as text."""
    return missing if value is None else f"{value:,.{digits}f}"


@dataclass(frozen=True)
class Target:
    """A figure to reach."""

    what: str
    figure: float | None
    limit: float
    #: The same figure by CPU time, which other work on the machine disturbs less.
    by_cpu: float | None = None
    at_least: bool = False

    def row(self) -> list[str]:
        """Return the row of the table of targets."""
        sign = "at least" if self.at_least else "at most"
        return [
            self.what,
            f"{sign} {self.limit:.2f}",
            number(self.figure, missing="not measured"),
            number(self.by_cpu),
            self.verdict(),
        ]

    def verdict(self) -> str:
        """Return `ok`, or by how much the target was missed."""
        if self.figure is None:
            return ""
        reached = self.figure >= self.limit if self.at_least else self.figure <= self.limit
        return "ok" if reached else f"missed by {abs(self.figure / self.limit - 1):.0%}"


def print_targets(targets: Sequence[Target]) -> None:
    """Print the targets beside what was measured."""
    print_table(
        "Targets", ["case", "target", "measured", "by CPU time", ""], [t.row() for t in targets]
    )


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table whose columns line up in a terminal too."""
    cells = [header, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "| "
        + " | ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in cells
    ]
    rule = "| " + " | ".join(
        "-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)
    )
    print(f"### {title}", "", lines[0], rule + " |", *lines[1:], "", sep="\n", flush=True)


def environment() -> str:
    """Describe the machine and the versions."""
    packages = ("dagster", "dataframely", "polars", "pandera", "pointblank", "patito")
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}, "
        f"load {load:.1f} at the start; Python {platform.python_version()}, {', '.join(versions)}"
    )


def data_folder() -> Path:
    """Return where data files are put by default."""
    return Path(tempfile.gettempdir()) / "dagster-dataframely-benchmarks"
