"""One schema and one frame in, one verdict out. Knows no step, no IO manager and no YAML."""
