import polars as pl

from nyc_flights import source


def planes() -> pl.LazyFrame:
    """The planes that flew from New York in 2013."""
    return source.scan("planes").rename({"year": "year_built"})
