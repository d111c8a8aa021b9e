"""Where tables are kept: `ParquetIOManager`, and error rows through their asset's IO manager."""
