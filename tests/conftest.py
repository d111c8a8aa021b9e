"""Shared by all tests: no telemetry, and Hypothesis profiles."""

from __future__ import annotations

import os

os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "yes")
