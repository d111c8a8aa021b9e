"""The only modules that touch what Dagster, Dataframely or Polars do not promise."""
