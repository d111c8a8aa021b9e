"""What Dagster's app shows of the example, in a real browser.

`make e2e` installs the browser and runs this; the pictures that it takes are those of the documentation.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the browser's driver is installed by `make e2e`"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("no Chromium here; `make e2e` installs it", allow_module_level=True)

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "nyc_flights"
PICTURES = Path(os.environ.get("E2E_PICTURES", ROOT / ".e2e"))
MILLISECONDS = 120_000
playwright.expect.set_options(timeout=MILLISECONDS)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Materialize the example, start its app on a free port, and stop it afterwards."""
    home = tmp_path_factory.mktemp("dagster_home")
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\nnux:\n  enabled: false\n")
    env = {
        **os.environ,
        "DAGSTER_HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    subprocess.run(
        ["dg", "launch", "--assets", "*"], cwd=EXAMPLE, env=env, check=True, capture_output=True
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (home / "app.log").open("w") as log:
        process = subprocess.Popen(
            ["dg", "dev", "--host", "127.0.0.1", "--port", str(port)],
            cwd=EXAMPLE,
            env=env,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/server_info", process, home / "app.log")
        yield address
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(1)
        else:
            return
    pytest.fail(f"The app did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[playwright.Page]:
    """Open an empty browser without anything that calls home."""
    PICTURES.mkdir(exist_ok=True)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("profile")),
            executable_path=CHROMIUM,
            viewport={"width": 1280, "height": 900},
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
        tab = browser.new_page()
        tab.set_default_timeout(MILLISECONDS)
        yield tab
        browser.close()


def _see(page: playwright.Page, text: str | re.Pattern[str]) -> None:
    playwright.expect(page.get_by_text(text).first).to_be_visible()


def _picture(page: playwright.Page, name: str) -> None:
    page.screenshot(path=PICTURES / f"{name}.jpg", type="jpeg", quality=70)


def test_the_columns_show_dtype_constraints_and_description(
    app: str, page: playwright.Page
) -> None:
    page.goto(f"{app}/assets/flights")

    _see(page, "primary key (time_hour")
    row = page.get_by_role("row").filter(has_text="Flight number.")
    playwright.expect(row).to_contain_text("Int64")
    playwright.expect(row).to_contain_text("non-nullable")
    playwright.expect(row).to_contain_text(">= 1")
    playwright.expect(row).to_contain_text("<= 9999")
    _picture(page, "columns")


def test_a_failing_check_shows_its_severity_its_count_and_failing_rows(
    app: str, page: playwright.Page
) -> None:
    page.goto(f"{app}/assets/flights?view=checks&checkDetail=dy_rule__dep_time__max")

    _see(page, "dep_time: <= 2359")
    _see(page, "dataframely/failed_sample")
    count = page.get_by_role("row").filter(has_text="dataframely/failed_count").first
    playwright.expect(count).to_contain_text("29")
    _picture(page, "check-failed")


def test_a_check_that_fails_at_warn_is_marked_as_a_warning(app: str, page: playwright.Page) -> None:
    page.goto(f"{app}/assets/flights?view=checks&checkDetail=dy_rule__tailnum__regex")

    severity = page.get_by_role("row").filter(has_text="dataframely/severity").first
    playwright.expect(severity).to_contain_text("warn")
    _picture(page, "check-warned")


def test_a_passing_check_shows_that_no_row_failed(app: str, page: playwright.Page) -> None:
    page.goto(f"{app}/assets/flights?view=checks&checkDetail=dy_rule__primary_key")

    _see(page, "Unique primary key: time_hour, carrier, flight, origin")
    count = page.get_by_role("row").filter(has_text="dataframely/failed_count").first
    playwright.expect(count).to_contain_text("0")
    _picture(page, "check-passed")


def test_a_materialization_shows_its_counts_and_where_the_error_rows_are(
    app: str, page: playwright.Page
) -> None:
    page.goto(f"{app}/assets/flights?view=events")

    for key, value in {
        "dataframely/returned_row_count": "336,?776",
        "dataframely/error_row_count": "1,?354",
        "dataframely/error_rows": "flights__error_rows",
    }.items():
        row = page.get_by_role("row").filter(has_text=key).first
        playwright.expect(row).to_contain_text(re.compile(value))
    _picture(page, "materialization")


def test_the_error_rows_are_an_asset_with_columns_of_their_own(
    app: str, page: playwright.Page
) -> None:
    page.goto(f"{app}/assets/flights__error_rows")

    _see(page, "dy_rule__departed_flight_arrives")
    _picture(page, "error-rows")
