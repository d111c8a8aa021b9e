"""A year of flights from New York's airports, as a Dagster project."""
