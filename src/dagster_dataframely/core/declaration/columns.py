"""A schema's columns as Dagster shows them."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg
import dataframely as dy

from dagster_dataframely.core.declaration.constraints import column_constraints
from dagster_dataframely.core.declaration.dtypes import column_dtype_text
from dagster_dataframely.core.declaration.rules import read_rules
from dagster_dataframely.core.declaration.severity import METADATA_KEY
from dagster_dataframely.core.json_values import json_value
from dagster_dataframely.core.text import shortened


def table_schema(schema: type[dy.Schema]) -> dg.TableSchema:
    """Return what Dagster's app shows of a schema.

    Args:
        schema: A Dataframely schema.

    Returns:
        Each column with its dtype, description, constraints and tags; the primary key and the
        schema-level rules as constraints of the table.

    Examples:
        >>> class Orders(dy.Schema):
        ...     order_id = dy.Int64(primary_key=True)
        ...     amount = dy.Decimal(10, 2, min=0)
        >>> shown = table_schema(Orders)
        >>> shown.constraints.other
        ['primary key (order_id)']
        >>> shown.columns[1].type, shown.columns[1].constraints.other
        ('Decimal(precision=10, scale=2)', ['>= 0'])
    """
    primary_key = schema.primary_key()
    constraints = [f"primary key ({', '.join(primary_key)})"] if primary_key else []
    constraints += [
        shortened(rule.docstring or rule.name)
        for rule in read_rules(schema)
        if rule.column is None and not rule.asks_for_uniqueness
    ]
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name,
                # The constraints name the categories.
                "Enum" if isinstance(column, dy.Enum) else column_dtype_text(column),
                column.description,
                dg.TableColumnConstraints(
                    nullable=column.nullable,
                    unique=column.unique or primary_key == [name],
                    other=column_constraints(column),
                ),
                _tags(column.metadata or {}),
            )
            for name, column in schema.columns().items()
        ],
        constraints=dg.TableConstraints(other=constraints),
    )


def _tags(metadata: Mapping[str, object]) -> dict[str, str]:
    return {str(key): _tag_text(value) for key, value in metadata.items() if key != METADATA_KEY}


def _tag_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(json_value(value))
