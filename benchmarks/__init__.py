"""Benchmarks of dagster-dataframely: see README.md in this folder."""
