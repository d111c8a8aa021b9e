import polars as pl

from nyc_flights import source


def flights(planes: pl.LazyFrame) -> pl.LazyFrame:
    """Every flight from New York in 2013, with the seats of its plane."""
    return (
        source.scan("flights")
        .with_columns(date=pl.date("year", "month", "day"))
        .join(planes.select("tailnum", "seats"), on="tailnum", how="left", maintain_order="left")
    )
