"""What Dagster is told: check results, samples, statistics."""
