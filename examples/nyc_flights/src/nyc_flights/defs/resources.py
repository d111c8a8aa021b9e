"""Where tables are written, and how steps are run."""

import dagster as dg

import dagster_dataframely as dd


@dg.definitions
def resources() -> dg.Definitions:
    return dg.Definitions(
        # One parquet file for each table, in the storage folder of the Dagster instance.
        resources={"io_manager": dd.ParquetIOManager()},
        # The steps take a second each, less than it takes to start a process for them.
        executor=dg.in_process_executor,
    )
