"""Reading the severities that a schema declares.

A column's rules are declared on the column, `metadata={"dagster_dataframely": {"severity": ...}}`; the
schema's own rules in the class attribute `__dagster_dataframely__`. What is not declared is `error`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import dataframely as dy

from dagster_dataframely.errors import InvalidSeverityError
from dagster_dataframely.upstream.dataframely_schema import validation_rules

Severity: TypeAlias = Literal["error", "warn"]

METADATA_KEY = "dagster_dataframely"
CLASS_ATTRIBUTE = "__dagster_dataframely__"

# Arguments of a Dataframely column whose rule has another name.
_ARGUMENT_RULES = {"nullable": "nullability", "allow_inf": "inf", "allow_nan": "nan"}


def read_severities(
    schema: type[dy.Schema], owners: Mapping[str, str | None]
) -> dict[str, Severity]:
    """Return the severity of each rule of a schema.

    Args:
        schema: The schema that declares them.
        owners: Dataframely's names of all its rules, such as `primary_key` and `amount|min`, each with the
            column that declares it; None for a schema-level rule.

    Returns:
        Rule name to severity, for every rule.

    Raises:
        InvalidSeverityError: A declaration cannot be read; the message says where it stands.
    """
    severities: dict[str, Severity] = dict.fromkeys(owners, "error")
    severities |= _schema_severities(
        schema, [rule for rule, column in owners.items() if column is None]
    )
    # Read once: Dataframely collects the columns of a schema, and of its parents, at every call.
    columns = schema.columns()
    own: dict[str, list[str]] = {name: [] for name in columns}
    for rule, owner in owners.items():
        if owner is not None:
            own[owner].append(rule.removeprefix(f"{owner}|"))
    read: set[tuple[str, int]] = set()
    for cls in reversed(schema.__mro__):
        for name, column in cls.columns().items() if issubclass(cls, dy.Schema) else ():
            # An inherited column is the parent's object, and has been read there, where it stands.
            if name not in columns or (name, id(column)) in read:
                continue
            read.add((name, id(column)))
            is_current = column is columns[name]
            declared = _declared_on_column(cls, name, column, own[name], is_current=is_current)
            severities |= {f"{name}|{rule}": severity for rule, severity in declared.items()}
    return severities


def _declared_on_column(
    cls: type[dy.Schema],
    name: str,
    column: dy.Column,
    rules: list[str],
    *,
    is_current: bool,
) -> dict[str, Severity]:
    """Return what one class declares on a column, which is refused only where no subclass overrides it."""
    metadata = column.metadata or {}
    if METADATA_KEY not in metadata:
        return {}
    where = f"The `{METADATA_KEY}` metadata of column '{name}' in {cls.__name__}"
    owner = f"column '{name}'"
    declared = _declared_severity(metadata[METADATA_KEY], where)
    if not isinstance(declared, Mapping):
        if not rules and is_current:
            raise InvalidSeverityError(
                f"{where} declares the severity '{declared}' for every rule of {owner}, which has no rules. "
                "Remove the declaration, or give the column a rule."
            )
        return dict.fromkeys(rules, declared)

    exact: dict[str, Severity] = {}
    by_argument: dict[str, Severity] = {}
    for rule, severity in declared.items():
        if rule in rules:
            exact[rule] = severity
        elif covered := _rules_of_argument(rule, rules):
            by_argument |= dict.fromkeys(covered, severity)
        elif is_current:
            raise InvalidSeverityError(
                f"{where} names '{rule}', which is not a rule of {owner}. {_listed(owner, rules)}"
            )
    # A rule's own name says more than the argument that made it.
    return by_argument | exact


def _rules_of_argument(argument: str, rules: list[str]) -> list[str]:
    if argument == "check":
        return [rule for rule in rules if rule.startswith("check__")]
    rule = _ARGUMENT_RULES.get(argument)
    return [rule] if rule in rules else []


def _schema_severities(schema: type[dy.Schema], rules: list[str]) -> dict[str, Severity]:
    """Merge the class attributes of a schema and its parents; the class nearest to the schema wins."""
    severities: dict[str, Severity] = {}
    for cls in reversed(schema.__mro__):
        if CLASS_ATTRIBUTE not in vars(cls):
            continue
        where = f"The `{CLASS_ATTRIBUTE}` of {cls.__name__}"
        declared = _declared_severity(vars(cls)[CLASS_ATTRIBUTE], where)
        if not isinstance(declared, Mapping):
            if not rules and cls is schema:
                raise InvalidSeverityError(
                    f"{where} declares the severity '{declared}' for every schema-level rule, and "
                    f"{schema.__name__} has no schema-level rules. Declare the severity of a column's rules in "
                    f"the column's metadata, "
                    f'`metadata={{"{METADATA_KEY}": {{"severity": "{declared}"}}}}`.'
                )
            severities |= dict.fromkeys(rules, declared)
            continue
        for rule, severity in declared.items():
            if rule in rules:
                severities[rule] = severity
            elif not _is_inherited_rule(cls, schema, rule):
                _refuse_schema_rule(schema, where, rule, rules)
    return severities


def _is_inherited_rule(cls: type[object], schema: type[dy.Schema], rule: str) -> bool:
    """Whether a parent rightly names a rule that the subclass has no more, such as `primary_key`."""
    return cls is not schema and issubclass(cls, dy.Schema) and rule in validation_rules(cls)


def _refuse_schema_rule(schema: type[dy.Schema], where: str, rule: str, rules: list[str]) -> None:
    column, separator, column_rule = str(rule).partition("|")
    if separator:
        raise InvalidSeverityError(
            f"{where} names '{rule}', which is a rule of a column. Declare it on column '{column}', "
            f'`metadata={{"{METADATA_KEY}": {{"severity": {{"{column_rule}": ...}}}}}}`.'
        )
    owner = schema.__name__
    raise InvalidSeverityError(
        f"{where} names '{rule}', which is not a schema-level rule of {owner}. "
        f"{_listed(owner, rules, kind='schema-level rule')}"
    )


def _declared_severity(declaration: Any, where: str) -> Severity | Mapping[str, Severity]:
    """Check the form of a declaration: `{"severity": value or {rule: value}}`; empty declares nothing."""
    form = '{"severity": "warn"} or {"severity": {"<rule>": "warn"}}'
    if not isinstance(declaration, Mapping):
        raise InvalidSeverityError(
            f"{where} is {declaration!r}, which is not a mapping. Write {form}."
        )
    unknown = [key for key in declaration if key != "severity"]
    if unknown:
        raise InvalidSeverityError(
            f"{where} has the key {unknown[0]!r}. The only key allowed there is 'severity'. Write {form}."
        )
    severity = declaration.get("severity", {})
    if not isinstance(severity, Mapping):
        return _one_severity(severity, where)
    return {
        rule: _one_severity(value, f"{where}, for '{rule}',") for rule, value in severity.items()
    }


def _one_severity(value: Any, where: str) -> Severity:
    # `==` would let a `StrEnum` through, and a caller's enum is not one of the two words.
    if type(value) is str and value in ("error", "warn"):
        return value  # type: ignore[return-value]
    raise InvalidSeverityError(
        f'{where} declares the severity {value!r}. A severity is the string "error" or "warn", or a '
        "mapping of rule names to those."
    )


def _listed(owner: str, rules: list[str], *, kind: str = "rule") -> str:
    if not rules:
        return f"{owner[0].upper()}{owner[1:]} has no {kind}s."
    listed = ", ".join(f"'{rule}'" for rule in rules)
    if len(rules) == 1:
        return f"The only {kind} of {owner} is {listed}."
    return f"The {kind}s of {owner} are {listed}."
