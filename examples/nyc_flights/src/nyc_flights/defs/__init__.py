"""The definitions of the project, found by Dagster."""
