import dataframely as dy
import polars as pl

from nyc_flights.defs.planes.schema import US_REGISTRATION

WARN = {"dagster_dataframely": {"severity": "warn"}}


def minutes(clock: pl.Expr) -> pl.Expr:
    """Minutes since midnight of a clock time that is written as one number, such as 1745."""
    return clock // 100 * 60 + clock % 100


class FlightsSchema(dy.Schema):
    """A scheduled departure from Newark, Kennedy or LaGuardia, and what became of it.

    Clock times are local and written as one number, so that 1745 is a quarter to six in the
    afternoon. Cancelled flights have no times.
    """

    time_hour = dy.Datetime(
        primary_key=True, time_zone="UTC", resolution="1h", description="Scheduled hour."
    )
    carrier = dy.String(primary_key=True, regex=r"^[0-9A-Z]{2}$", description="Airline code.")
    flight = dy.Int64(primary_key=True, min=1, max=9999, description="Flight number.")
    origin = dy.String(primary_key=True, regex=r"^(EWR|JFK|LGA)$")
    dest = dy.String(nullable=False, regex=r"^[A-Z]{3}$")
    tailnum = dy.String(nullable=False, regex=US_REGISTRATION, metadata=WARN)
    seats = dy.Int64(nullable=True, min=1, description="Of the plane, where registered.")
    distance = dy.Int64(nullable=False, min=50, description="Miles.", metadata=WARN)
    date = dy.Date(nullable=False, description="Local date of the scheduled departure.")
    sched_dep_time = dy.Int64(nullable=False, min=0, max=2359)
    dep_time = dy.Int64(nullable=True, min=0, max=2359)
    dep_delay = dy.Int64(nullable=True, description="Minutes; negative is early.")
    sched_arr_time = dy.Int64(nullable=False, min=0, max=2359)
    arr_time = dy.Int64(nullable=True, min=0, max=2359)
    arr_delay = dy.Int64(nullable=True, description="Minutes; negative is early.")
    air_time = dy.Int64(nullable=True, min=1, description="Minutes in the air.")

    __dagster_dataframely__ = {
        "severity": {"plane_is_registered": "warn", "ground_speed_is_possible": "warn"}
    }

    @dy.rule()
    def departed_flight_arrives(cls) -> pl.Expr:
        """A flight that departed has an arrival delay."""
        return cls.dep_time.col.is_null() | cls.arr_delay.col.is_not_null()

    @dy.rule()
    def departure_delay_matches_clock(cls) -> pl.Expr:
        """The departure delay is the time between the scheduled and the actual departure."""
        elapsed = minutes(cls.dep_time.col) - minutes(cls.sched_dep_time.col)
        return (elapsed - cls.dep_delay.col) % (24 * 60) == 0

    @dy.rule()
    def ground_speed_is_possible(cls) -> pl.Expr:
        """No flight is faster over ground than 650 miles an hour."""
        return cls.distance.col <= 650 * cls.air_time.col / 60

    @dy.rule()
    def plane_is_registered(cls) -> pl.Expr:
        """A flight that names a plane names one of the `planes` table."""
        return cls.tailnum.col.is_null() | cls.seats.col.is_not_null()
