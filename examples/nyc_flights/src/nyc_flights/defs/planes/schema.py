import dataframely as dy

# A US registration: N, one to five digits that begin with no zero, then up to two letters.
US_REGISTRATION = r"^N[1-9]\d{0,4}[A-Z]{0,2}$"


class PlanesSchema(dy.Schema):
    """A plane of the US civil register, by the number on its tail."""

    tailnum = dy.String(primary_key=True, regex=US_REGISTRATION, description="Registration number.")
    year_built = dy.Int64(
        nullable=False,
        min=1950,
        max=2013,
        description="Year of manufacture.",
        # The register does not know it for every plane, and the table is useful without.
        metadata={"dagster_dataframely": {"severity": {"nullable": "warn"}}},
    )
    type = dy.String(nullable=False)
    manufacturer = dy.String(nullable=False)
    model = dy.String(nullable=False)
    engines = dy.Int64(nullable=False, min=1, max=4)
    seats = dy.Int64(nullable=False, min=1, max=900)
    engine = dy.String(
        nullable=False, regex=r"^(Reciprocating|4 Cycle|Turbo-(fan|jet|prop|shaft))$"
    )
