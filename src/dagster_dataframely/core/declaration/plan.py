"""What is known of an asset's validation before any row: its rules, and the checks that report them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import dataframely as dy

from dagster_dataframely.core.declaration.constraints import constraint_text
from dagster_dataframely.core.declaration.names import (
    SCHEMA_RULES_CHECK,
    check_name,
    column_check_name,
    refuse_reserved_columns,
    refuse_shared_names,
)
from dagster_dataframely.core.declaration.rules import Rule, check_schema, read_rules
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
    if settings.check_granularity == "rule":
        return tuple(_single(schema, rule) for rule in rules)
    if settings.check_granularity == "schema":
        return _collapsed(SCHEMA_RULES_CHECK, rules, f"All rules of {schema.__name__}.")
    schema_rules = tuple(rule for rule in rules if rule.column is None)
    checks = (
        tuple(_single(schema, rule) for rule in schema_rules)
        if settings.schema_rules == "per_rule"
        else _collapsed(
            SCHEMA_RULES_CHECK, schema_rules, f"The schema-level rules of {schema.__name__}."
        )
    )
    for column in schema.column_names():
        own = tuple(rule for rule in rules if rule.column == column)
        texts = ", ".join(constraint_text(schema.columns()[column], rule.kind) for rule in own)
        checks += _collapsed(column_check_name(column), own, f"{column}: {texts}")
    return checks


def _single(schema: type[dy.Schema], rule: Rule) -> RuleCheck:
    return RuleCheck(check_name(rule.name), (rule,), describe_rule(schema, rule), collapsed=False)


def _collapsed(name: str, rules: tuple[Rule, ...], description: str) -> tuple[RuleCheck, ...]:
    return (RuleCheck(name, rules, description, collapsed=True),) if rules else ()


def _reported(check: RuleCheck) -> str:
    if check.collapsed and check.rules[0].column is not None:
        return f"the rules of column '{check.rules[0].column}'"
    return "the schema-level rules" if check.collapsed else f"rule '{check.rules[0].name}'"


def describe_rule(schema: type[dy.Schema], rule: Rule) -> str:
    """Return what a rule asks, for people: its docstring, else its column and constraint."""
    if rule.docstring:
        return rule.docstring
    if rule.column is not None:
        return f"{rule.column}: {constraint_text(schema.columns()[rule.column], rule.kind)}"
    if rule.name == "primary_key":
        return f"Unique primary key: {', '.join(schema.primary_key())}"
    return rule.expression


def describe_column_check(schema: type[dy.Schema]) -> str:
    """Return what the column-schema check asks, for people."""
    return f"Every column of {schema.__name__} is there, with its dtype. Nothing is cast."
