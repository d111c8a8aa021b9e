import dataframely as dy
import polars as pl

import dagster_dataframely as dd


class DailyDeparturesSchema(dy.Schema):
    """One day at one airport: how many flights left, and how late."""

    date = dy.Date(primary_key=True)
    origin = dy.String(primary_key=True)
    scheduled = dy.UInt32(nullable=False, min=1, description="Flights that were to depart.")
    departed = dy.UInt32(nullable=False, description="Flights that did.")
    delayed = dy.UInt32(nullable=False, description="Those of them 15 minutes late or more.")
    mean_delay = dy.Float64(
        nullable=True,
        description="Minutes; early departures count as negative.",
        max=60.0,
        metadata={"dagster_dataframely": {"severity": {"max": "warn"}}},
    )

    __dagster_dataframely__ = {"severity": {"most_flights_departed": "warn"}}

    @dy.rule()
    def counts_nest(cls) -> pl.Expr:
        """Delayed flights are among the departed, and those among the scheduled."""
        return (cls.delayed.col <= cls.departed.col) & (cls.departed.col <= cls.scheduled.col)

    @dy.rule()
    def most_flights_departed(cls) -> pl.Expr:
        """At least half of the scheduled flights departed."""
        return cls.departed.col * 2 >= cls.scheduled.col

    @dy.rule()
    def every_airport_reports(cls) -> pl.Expr:
        """Every day has a row for each of the three airports."""
        return pl.len().over("date") == 3


@dd.asset(DailyDeparturesSchema, group_name="flights")
def daily_departures(flights: pl.LazyFrame) -> pl.LazyFrame:
    """Departures and delays for each day and airport."""
    return (
        flights.group_by("date", "origin")
        .agg(
            scheduled=pl.len(),
            departed=pl.col("dep_time").count(),
            delayed=(pl.col("dep_delay") >= 15).sum(),
            mean_delay=pl.col("dep_delay").mean(),
        )
        .sort("date", "origin")
    )
