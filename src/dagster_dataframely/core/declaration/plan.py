"""What is known of an asset's validation before any row: its rules, and the checks that report them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import dataframely as dy
import polars as pl

from dagster_dataframely.core.declaration.constraints import constraint_text
from dagster_dataframely.core.declaration.names import (
    SCHEMA_RULES_CHECK,
    check_name,
    column_check_name,
    refuse_reserved_columns,
    refuse_shared_names,
)
from dagster_dataframely.core.declaration.rules import (
    PRIMARY_KEY,
    Rule,
    check_schema,
    read_rules,
)
from dagster_dataframely.core.settings import (
    Settings,
    check_redacted_columns,
    read_bool,
    resolve_settings,
)


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One asset check and the rules that it reports."""

    name: str
    rules: tuple[Rule, ...]
    description: str
    #: Whether several rules share the check.
    collapsed: bool

    @property
    def has_error_rule(self) -> bool:
        """Whether a failure of the check can be at ERROR."""
        return any(rule.severity == "error" for rule in self.rules)


@dataclass(frozen=True)
class ValidationPlan:
    """A schema's rules and how a run reports them."""

    schema: type[dy.Schema]
    rules: tuple[Rule, ...]
    checks: tuple[RuleCheck, ...]
    settings: Settings
    #: Whether error rows are written to a table of their own, in place of failing the run.
    filter: bool
    #: Whether a returned lazy frame is staged as a file and scanned, in place of being collected.
    stream: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The schema's columns in its order, which is the order of the written table."""
        return tuple(self.schema.column_names())

    @cached_property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the primary key; empty where there is none."""
        return tuple(self.schema.primary_key())

    @cached_property
    def rule_columns(self) -> dict[str, str]:
        """Rule name to the name of its column in the error rows."""
        return {rule.name: check_name(rule.name) for rule in self.rules}

    @cached_property
    def error_rules(self) -> tuple[str, ...]:
        """The names of the rules that a written row has to pass."""
        return tuple(rule.name for rule in self.rules if rule.severity == "error")

    @cached_property
    def unique_keys(self) -> dict[str, tuple[str, ...]]:
        """The rules that ask for uniqueness, with the columns that form the key.

        Nested columns are left out: their rules are evaluated as Dataframely writes them.
        """
        columns = self.schema.columns()
        keys = {
            rule.name: self.primary_key if rule.column is None else (rule.column,)
            for rule in self.rules
            if rule.asks_for_uniqueness
        }
        return {
            name: key
            for name, key in keys.items()
            if not any(
                columns[part].dtype.is_nested() or columns[part].dtype == pl.Object for part in key
            )
        }

    @cached_property
    def rules_but_keys(self) -> tuple[Rule, ...]:
        """The rules that are evaluated as Dataframely writes them, which `unique_keys` need not be."""
        return tuple(rule for rule in self.rules if rule.name not in self.unique_keys)

    @cached_property
    def rules_of_one_row(self) -> tuple[Rule, ...]:
        """The rules whose verdict on a row surely depends on that row alone."""
        return tuple(rule for rule in self.rules_but_keys if rule.looks_at_one_row)

    @cached_property
    def rules_over_rows(self) -> tuple[Rule, ...]:
        """The rules that may look at other rows, but for `unique_keys`."""
        return tuple(rule for rule in self.rules_but_keys if not rule.looks_at_one_row)

    @cached_property
    def breakable_rules(self) -> tuple[Rule, ...]:
        """The `error` rules that dropping rows can break: they look at other rows, and not for a key."""
        return tuple(
            rule
            for rule in self.rules_over_rows
            if rule.severity == "error" and not rule.asks_for_uniqueness
        )

    def is_blocking(self, check: RuleCheck) -> bool:
        """Whether a failure at ERROR keeps the assets downstream from running in the same run."""
        return not self.filter and check.has_error_rule


def plan_validation(
    schema: object,
    *,
    used_by: str = "dd.asset",
    filter: object = False,  # noqa: A002 - Dataframely's own word for it
    stream: object = False,
    settings: Settings | None = None,
    redact: Iterable[str] = (),
) -> ValidationPlan:
    """Read a schema and decide the checks that report it.

    Args:
        schema: A subclass of `dy.Schema`; anything else is refused.
        used_by: What takes the schema, for messages.
        filter: Whether error rows are held back in place of failing the run.
        stream: Whether a returned lazy frame is validated without being collected.
        settings: How to report; by default what the environment says.
        redact: The columns that the caller named itself, each of which has to exist.

    Returns:
        The plan, which does not change afterwards.

    Raises:
        InvalidSchemaError: `schema` is not a subclass of `dy.Schema`.
        InvalidSettingError: `filter` or `stream` is not a bool, or `redact` names an unknown column.
        InvalidSeverityError: The schema declares a severity that cannot be read.
        ReservedColumnError: A column begins with `dy_`.
        CheckNameCollisionError: Two rules would report under one check name.
    """
    checked = check_schema(schema, used_by=used_by)
    settings = settings or resolve_settings()
    name = checked.__name__
    refuse_reserved_columns(checked.column_names(), schema=name)
    check_redacted_columns(redact, checked.column_names(), schema=name)
    rules = read_rules(checked)
    # Error rows have a column a rule at every granularity, so rules may never share a name.
    refuse_shared_names(
        ((check_name(rule.name), f"rule '{rule.name}'") for rule in rules), schema=name
    )
    checks = _rule_checks(checked, rules, settings)
    refuse_shared_names(((check.name, _reported(check)) for check in checks), schema=name)
    return ValidationPlan(
        schema=checked,
        rules=rules,
        checks=checks,
        settings=settings,
        filter=read_bool(filter, "The argument `filter`"),
        stream=read_bool(stream, "The argument `stream`"),
    )


def _rule_checks(
    schema: type[dy.Schema], rules: tuple[Rule, ...], settings: Settings
) -> tuple[RuleCheck, ...]:
    columns = schema.columns()
    if settings.check_granularity == "rule":
        return tuple(_single(schema, rule, columns) for rule in rules)
    if settings.check_granularity == "schema":
        return _collapsed(SCHEMA_RULES_CHECK, rules, f"All rules of {schema.__name__}.")
    by_column: defaultdict[str | None, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_column[rule.column].append(rule)
    schema_rules = tuple(by_column[None])
    checks = (
        tuple(_single(schema, rule, columns) for rule in schema_rules)
        if settings.schema_rules == "per_rule"
        else _collapsed(
            SCHEMA_RULES_CHECK, schema_rules, f"The schema-level rules of {schema.__name__}."
        )
    )
    return checks + tuple(
        check
        for name, column in columns.items()
        for check in _collapsed(
            column_check_name(name),
            tuple(by_column[name]),
            f"{name}: {', '.join(constraint_text(column, rule.kind) for rule in by_column[name])}",
        )
    )


def _single(schema: type[dy.Schema], rule: Rule, columns: Mapping[str, dy.Column]) -> RuleCheck:
    description = _rule_description(schema, rule, columns)
    return RuleCheck(check_name(rule.name), (rule,), description, collapsed=False)


def _collapsed(name: str, rules: tuple[Rule, ...], description: str) -> tuple[RuleCheck, ...]:
    return (RuleCheck(name, rules, description, collapsed=True),) if rules else ()


def _reported(check: RuleCheck) -> str:
    if check.collapsed and check.rules[0].column is not None:
        return f"the rules of column '{check.rules[0].column}'"
    return "the schema-level rules" if check.collapsed else f"rule '{check.rules[0].name}'"


def _rule_description(schema: type[dy.Schema], rule: Rule, columns: Mapping[str, dy.Column]) -> str:
    """Return what a rule asks, for people: its docstring, else its column and constraint."""
    if rule.docstring:
        return rule.docstring
    if rule.column is not None:
        return f"{rule.column}: {constraint_text(columns[rule.column], rule.kind)}"
    if rule.name == PRIMARY_KEY:
        return f"Unique primary key: {', '.join(schema.primary_key())}"
    return rule.expression


def describe_column_check(schema: type[dy.Schema]) -> str:
    """Return what the column-schema check asks, for people."""
    return f"Every column of {schema.__name__} is there, with its dtype. Nothing is cast."
