"""Rule severity: where a schema declares it, how names are read, and what it makes of a check."""

from __future__ import annotations

from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from support import Outcome, call, returning, run

# Each promise holds for a frame in memory and for one that is streamed.
pytestmark = pytest.mark.usefixtures("either_mode")


class LenientOrdersSchema(dy.Schema):
    order_id = dy.String(
        primary_key=True,
        regex=r"^ORD-\d{4}$",
        metadata={"dagster_dataframely": {"severity": {"regex": "warn"}}},
    )
    amount = dy.Float64(nullable=False, min=0.0)
    note = dy.String(
        nullable=True,
        max_length=100,
        metadata={"dagster_dataframely": {"severity": "warn"}},
    )

    __dagster_dataframely__ = {"severity": {"amount_is_rounded": "warn"}}

    @dy.rule()
    def amount_is_rounded(cls) -> pl.Expr:
        """Require whole cents."""
        return (cls.amount.col * 100).round() == cls.amount.col * 100


def lenient_orders(*rows: tuple[str | None, float | None, str | None]) -> pl.DataFrame:
    return pl.DataFrame(
        rows, schema={"order_id": pl.String, "amount": pl.Float64, "note": pl.String}, orient="row"
    )


def declared(severity: Any) -> dict[str, Any]:
    """A column's `metadata`, or a class attribute's value, that declares this severity."""
    return {"dagster_dataframely": {"severity": severity}}


def severities(schema: type[dy.Schema]) -> dict[str, str]:
    """Each rule's severity, as the checks of an asset with this schema report it."""
    outcome = call(returning(schema, schema.create_empty()))
    return {
        check.metadata["dataframely/rule"]: check.metadata["dataframely/severity"]
        for name, check in outcome.checks.items()
        if name != "dy_schema__columns"
    }


def warn_rules(schema: type[dy.Schema]) -> set[str]:
    return {rule for rule, severity in severities(schema).items() if severity == "warn"}


# --- where a severity is declared ----------------------------------------------------------------


def test_every_rule_is_an_error_unless_the_schema_declares_warn() -> None:
    class Schema(dy.Schema):
        order_id = dy.String(primary_key=True, regex="^ORD")
        amount = dy.Float64(min=0.0)

        @dy.rule()
        def amount_is_rounded(cls) -> pl.Expr:
            return cls.amount.col.round(2) == cls.amount.col

    assert severities(Schema) == {
        "amount_is_rounded": "error",
        "primary_key": "error",
        "order_id|nullability": "error",
        "order_id|regex": "error",
        "amount|nullability": "error",
        "amount|min": "error",
        "amount|inf": "error",
        "amount|nan": "error",
    }


def test_a_schema_declares_severities_on_its_columns_and_in_its_class_attribute() -> None:
    assert severities(LenientOrdersSchema) == {
        "amount_is_rounded": "warn",
        "primary_key": "error",
        "order_id|nullability": "error",
        "order_id|regex": "warn",
        "amount|nullability": "error",
        "amount|min": "error",
        "amount|inf": "error",
        "amount|nan": "error",
        "note|max_length": "warn",
    }


def test_one_value_on_a_column_is_the_severity_of_all_its_rules() -> None:
    class Schema(dy.Schema):
        amount = dy.Float64(min=0.0, max=9.0, metadata=declared("warn"))
        note = dy.String()

    assert severities(Schema) == {
        "amount|nullability": "warn",
        "amount|min": "warn",
        "amount|max": "warn",
        "amount|inf": "warn",
        "amount|nan": "warn",
        "note|nullability": "error",
    }


def test_one_value_in_the_class_attribute_is_the_severity_of_all_schema_level_rules() -> None:
    class Schema(dy.Schema):
        __dagster_dataframely__ = {"severity": "warn"}

        order_id = dy.String(primary_key=True)

        @dy.rule()
        def starts_with_ord(cls) -> pl.Expr:
            return cls.order_id.col.str.starts_with("ORD")

    assert severities(Schema) == {
        "starts_with_ord": "warn",
        "primary_key": "warn",
        "order_id|nullability": "error",
    }


def test_the_primary_key_is_a_schema_level_rule_that_can_be_named() -> None:
    class Schema(dy.Schema):
        __dagster_dataframely__ = {"severity": {"primary_key": "warn"}}

        order_id = dy.String(primary_key=True)

    outcome = run(returning(Schema, pl.DataFrame({"order_id": ["a", "a"]})))

    assert outcome.success
    assert outcome.failing == {"dy_rule__primary_key": "WARN"}
    assert outcome.rows("orders", "order_id") == ["a", "a"]


def test_error_may_be_declared_too() -> None:
    class Schema(dy.Schema):
        amount = dy.Float64(min=0.0, metadata=declared({"min": "error", "nan": "warn"}))

    assert warn_rules(Schema) == {"amount|nan"}


def test_an_empty_declaration_declares_nothing() -> None:
    class Schema(dy.Schema):
        __dagster_dataframely__ = {}

        amount = dy.Int64(metadata={"dagster_dataframely": {}})
        count = dy.Int64(metadata=declared({}))

    assert severities(Schema) == {"amount|nullability": "error", "count|nullability": "error"}


def test_a_column_is_named_by_its_alias() -> None:
    class Schema(dy.Schema):
        order_id = dy.String(alias="Order ID", metadata=declared({"nullable": "warn"}))

    outcome = call(returning(Schema, pl.DataFrame({"Order ID": ["a", None]})))

    assert outcome.success
    assert outcome.failing == {"dy_rule__Order_ID__nullability": "WARN"}


# --- rule names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "written", "rules"),
    [
        (dy.Float64(), "nullable", {"amount|nullability"}),
        (dy.Float64(), "nullability", {"amount|nullability"}),
        (dy.Float64(), "allow_inf", {"amount|inf"}),
        (dy.Float64(), "inf", {"amount|inf"}),
        (dy.Float64(), "allow_nan", {"amount|nan"}),
        (dy.Float64(), "nan", {"amount|nan"}),
        (
            dy.Float64(check={"positive": lambda col: col > 0, "small": lambda col: col < 9}),
            "check",
            {"amount|check__positive", "amount|check__small"},
        ),
        (
            dy.Float64(check=[lambda col: col > 0, lambda col: col < 9]),
            "check",
            {"amount|check__0", "amount|check__1"},
        ),
        (
            dy.Float64(check={"positive": lambda col: col > 0, "small": lambda col: col < 9}),
            "check__small",
            {"amount|check__small"},
        ),
        (dy.Float64(check=lambda col: col > 0), "check", {"amount|check"}),
        (dy.Float64(unique=True), "unique", {"amount|unique"}),
        (dy.Float64(min_exclusive=0.0), "min_exclusive", {"amount|min_exclusive"}),
    ],
)
def test_a_rule_is_named_by_dataframely_or_by_the_argument_that_makes_it(
    column: dy.Column, written: str, rules: set[str]
) -> None:
    column.metadata = declared({written: "warn"})
    schema = type("Schema", (dy.Schema,), {"amount": column})

    assert warn_rules(schema) == rules


INNER_COLUMNS = [
    pytest.param(
        dy.List(dy.String(regex="^a"), nullable=True, min_length=1),
        {"inner_nullability", "inner_regex", "min_length"},
        id="list",
    ),
    pytest.param(
        dy.Array(dy.Float64(min=0.0), 2, nullable=True),
        {"inner_nullability", "inner_min", "inner_inf", "inner_nan"},
        id="array",
    ),
    pytest.param(
        dy.Struct(
            {"email": dy.String(), "age": dy.Int64(nullable=True, min=0)},
            nullable=True,
        ),
        {"inner_email_nullability", "inner_age_min"},
        id="struct",
    ),
    pytest.param(
        dy.List(dy.Struct({"email": dy.String()}, nullable=True), nullable=True),
        {"inner_inner_email_nullability"},
        id="struct in a list",
    ),
]


@pytest.mark.parametrize(("column", "rules"), INNER_COLUMNS)
def test_the_rules_of_an_inner_column_are_named_with_inner(
    column: dy.Column, rules: set[str]
) -> None:
    for rule in rules:
        column.metadata = declared({rule: "warn"})
        schema = type("Schema", (dy.Schema,), {"nested": column})

        assert severities(schema) == {
            f"nested|{other}": "warn" if other == rule else "error" for other in rules
        }


@pytest.mark.parametrize("inner", ["inner_nullable", "inner_allow_nan", "inner_check"])
def test_an_argument_does_not_name_an_inner_rule(inner: str) -> None:
    class Schema(dy.Schema):
        sizes = dy.List(
            dy.Float64(check={"even": lambda col: col % 2 == 0}), metadata=declared({inner: "warn"})
        )

    with pytest.raises(dd.errors.InvalidSeverityError, match=f"names '{inner}'") as error:
        dd.asset(Schema)

    for rule in ("nullability", "inner_nullability", "inner_nan", "inner_check__even"):
        assert f"'{rule}'" in str(error.value)


def test_the_argument_of_a_struct_field_does_not_name_its_rule() -> None:
    class Schema(dy.Schema):
        customer = dy.Struct(
            {"email": dy.String()}, metadata=declared({"inner_email_nullable": "warn"})
        )

    with pytest.raises(dd.errors.InvalidSeverityError, match="'inner_email_nullability'"):
        dd.asset(Schema)


def test_an_argument_names_no_rule_where_the_column_does_not_have_it() -> None:
    class Schema(dy.Schema):
        amount = dy.Float64(nullable=True, metadata=declared({"nullable": "warn"}))

    with pytest.raises(dd.errors.InvalidSeverityError, match="'nullable'") as error:
        dd.asset(Schema)

    assert "'inf', 'nan'" in str(error.value)


# --- declarations that cannot be read ------------------------------------------------------------


def test_a_misspelled_rule_is_refused_with_the_rules_of_its_column() -> None:
    class MisspelledSchema(dy.Schema):
        amount = dy.Float64(
            min=0.0, metadata={"dagster_dataframely": {"severity": {"minimum": "warn"}}}
        )

    with pytest.raises(dd.errors.InvalidSeverityError) as error:
        dd.asset(MisspelledSchema)

    assert str(error.value) == (
        "The `dagster_dataframely` metadata of column 'amount' in MisspelledSchema names 'minimum',"
        " which is not a rule of column 'amount'. The rules of column 'amount' are"
        " 'nullability', 'min', 'inf', 'nan'."
    )


@pytest.mark.parametrize(
    ("entry", "found", "allowed"),
    [
        # an entry that is not a mapping
        ("warn", ["'warn'"], ["mapping"]),
        (None, ["None"], ["mapping"]),
        (["severity"], ["['severity']"], ["mapping"]),
        # a key other than severity
        ({"severty": "warn"}, ["'severty'"], ["severity"]),
        ({"severity": "warn", "redact": True}, ["'redact'"], ["severity"]),
        # a value that is no severity
        ({"severity": "warning"}, ["'warning'"], ["error", "warn"]),
        ({"severity": "WARN"}, ["'WARN'"], ["error", "warn"]),
        ({"severity": None}, ["None"], ["error", "warn"]),
        ({"severity": ["warn"]}, ["['warn']"], ["error", "warn"]),
        ({"severity": dg.AssetCheckSeverity.WARN}, ["AssetCheckSeverity.WARN"], ["error", "warn"]),
        ({"severity": {"min": "fatal"}}, ["'min'", "'fatal'"], ["error", "warn"]),
        ({"severity": {"min": False}}, ["'min'", "False"], ["error", "warn"]),
        (
            {"severity": {"min": dg.AssetCheckSeverity.WARN}},
            ["'min'", "AssetCheckSeverity.WARN"],
            ["error", "warn"],
        ),
        # a name that is no rule of the column
        ({"severity": {"max": "warn"}}, ["'max'"], ["'nullability'", "'min'", "'inf'", "'nan'"]),
        ({"severity": {"amount|min": "warn"}}, ["'amount|min'"], ["'nullability'", "'min'"]),
        ({"severity": {"primary_key": "warn"}}, ["'primary_key'"], ["'nullability'", "'min'"]),
        ({"severity": {1: "warn"}}, ["1"], ["'nullability'", "'min'"]),
    ],
)
def test_an_unreadable_declaration_on_a_column_is_refused(
    entry: Any, found: list[str], allowed: list[str]
) -> None:
    class PaymentsSchema(dy.Schema):
        amount = dy.Float64(min=0.0, metadata={"dagster_dataframely": entry})

    with pytest.raises(dd.errors.InvalidSeverityError) as error:
        dd.asset(PaymentsSchema)

    for part in ["column 'amount'", "PaymentsSchema", *found, *allowed]:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("attribute", "found", "allowed"),
    [
        ("warn", ["'warn'"], ["mapping"]),
        (None, ["None"], ["mapping"]),
        ({"severties": "warn"}, ["'severties'"], ["severity"]),
        ({"severity": "warning"}, ["'warning'"], ["error", "warn"]),
        ({"severity": dg.AssetCheckSeverity.WARN}, ["AssetCheckSeverity.WARN"], ["error", "warn"]),
        ({"severity": {"primary_key": 1}}, ["'primary_key'", "1"], ["error", "warn"]),
        # a column rule
        ({"severity": {"amount|min": "warn"}}, ["'amount|min'"], ["column", "metadata"]),
        # a schema-level rule that does not exist
        ({"severity": {"rounded": "warn"}}, ["'rounded'"], ["'primary_key'", "'amount_rounded'"]),
        ({"severity": {"amount": "warn"}}, ["'amount'"], ["'primary_key'", "'amount_rounded'"]),
    ],
)
def test_an_unreadable_class_attribute_is_refused(
    attribute: Any, found: list[str], allowed: list[str]
) -> None:
    class PaymentsSchema(dy.Schema):
        __dagster_dataframely__ = attribute

        payment_id = dy.String(primary_key=True)
        amount = dy.Float64(min=0.0)

        @dy.rule()
        def amount_rounded(cls) -> pl.Expr:
            return cls.amount.col.round(2) == cls.amount.col

    with pytest.raises(dd.errors.InvalidSeverityError) as error:
        dd.asset(PaymentsSchema)

    for part in ["__dagster_dataframely__", "PaymentsSchema", *found, *allowed]:
        assert part in str(error.value)


def test_one_value_on_a_column_without_rules_is_refused() -> None:
    class NotesSchema(dy.Schema):
        note = dy.String(nullable=True, metadata=declared("warn"))

    with pytest.raises(dd.errors.InvalidSeverityError, match="no rules") as error:
        dd.asset(NotesSchema)

    assert "column 'note'" in str(error.value)
    assert "NotesSchema" in str(error.value)


def test_a_rule_named_on_a_column_without_rules_is_refused() -> None:
    class NotesSchema(dy.Schema):
        note = dy.String(nullable=True, metadata=declared({"min_length": "warn"}))

    with pytest.raises(dd.errors.InvalidSeverityError, match="'min_length'"):
        dd.asset(NotesSchema)


def test_one_value_in_the_class_attribute_of_a_schema_without_schema_level_rules_is_refused() -> (
    None
):
    class NotesSchema(dy.Schema):
        __dagster_dataframely__ = {"severity": "warn"}

        note = dy.String()

    with pytest.raises(dd.errors.InvalidSeverityError, match="no schema-level rules") as error:
        dd.asset(NotesSchema)

    assert "__dagster_dataframely__" in str(error.value)
    assert "NotesSchema" in str(error.value)


def test_an_unreadable_declaration_of_a_parent_is_refused_in_a_subclass() -> None:
    class Parent(dy.Schema):
        amount = dy.Float64(min=0.0, metadata=declared({"minimum": "warn"}))

    class Child(Parent):
        note = dy.String(nullable=True)

    with pytest.raises(dd.errors.InvalidSeverityError, match="'minimum'"):
        dd.asset(Child)


def test_the_schema_itself_stays_a_plain_dataframely_schema() -> None:
    frame = lenient_orders(("ORD-0001", 1.0, None), ("1", 2.0, None), ("ORD-0003", -1.0, None))

    valid, failure = LenientOrdersSchema.filter(frame)

    assert valid["order_id"].to_list() == ["ORD-0001"]
    assert failure.counts() == {"order_id|regex": 1, "amount|min": 1}


# --- inheritance ---------------------------------------------------------------------------------


class Parent(dy.Schema):
    __dagster_dataframely__ = {"severity": {"positive": "warn"}}

    order_id = dy.String(primary_key=True, metadata=declared({"nullable": "warn"}))
    amount = dy.Float64(min=0.0, max=9.0, metadata=declared({"min": "warn", "max": "warn"}))

    @dy.rule()
    def positive(cls) -> pl.Expr:
        return cls.amount.col > 0

    @dy.rule()
    def rounded(cls) -> pl.Expr:
        return cls.amount.col.round(2) == cls.amount.col


PARENT_WARNS = {"positive", "order_id|nullability", "amount|min", "amount|max"}


def test_a_subclass_has_its_parents_declarations() -> None:
    class Child(Parent):
        note = dy.String(nullable=True)

    assert warn_rules(Child) == PARENT_WARNS


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ({"severity": {"rounded": "warn"}}, {"positive", "rounded"}),
        ({"severity": {"positive": "error"}}, set()),
        ({"severity": {"positive": "error", "primary_key": "warn"}}, {"primary_key"}),
        ({"severity": "error"}, set()),
        ({"severity": "warn"}, {"positive", "rounded", "primary_key"}),
        ({"severity": {}}, {"positive"}),
        ({}, {"positive"}),
    ],
)
def test_a_subclass_adds_its_class_attribute_to_its_parents_and_wins_rule_by_rule(
    attribute: dict[str, Any], expected: set[str]
) -> None:
    class Child(Parent):
        __dagster_dataframely__ = attribute

    assert {rule for rule in warn_rules(Child) if "|" not in rule} == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, {"min", "max"}),
        ({"owner": "finance"}, {"min", "max"}),
        (declared({"nan": "warn"}), {"min", "max", "nan"}),
        (declared({"min": "error"}), {"max"}),
        (declared({"min": "error", "inf": "warn"}), {"max", "inf"}),
        (declared("error"), set()),
        (declared("warn"), {"nullability", "min", "max", "inf", "nan"}),
    ],
)
def test_a_column_that_a_subclass_overrides_keeps_its_parents_declarations_rule_by_rule(
    metadata: dict[str, Any] | None, expected: set[str]
) -> None:
    class Child(Parent):
        amount = dy.Float64(min=1.0, max=5.0, metadata=metadata)

    warns = {rule.removeprefix("amount|") for rule in warn_rules(Child) if "amount|" in rule}
    assert warns == expected


def test_one_value_of_a_parent_gives_way_to_a_rule_that_the_subclass_names() -> None:
    class Strict(dy.Schema):
        __dagster_dataframely__ = {"severity": "warn"}

        order_id = dy.String(primary_key=True)
        amount = dy.Float64(min=0.0, metadata=declared("warn"))

    class Child(Strict):
        __dagster_dataframely__ = {"severity": {"primary_key": "error"}}

        amount = dy.Float64(min=0.0, metadata=declared({"min": "error"}))

    assert warn_rules(Child) == {"amount|nullability", "amount|inf", "amount|nan"}


def test_the_nearest_of_three_generations_wins() -> None:
    class Child(Parent):
        __dagster_dataframely__ = {"severity": {"positive": "error", "rounded": "warn"}}

    class Grandchild(Child):
        __dagster_dataframely__ = {"severity": {"positive": "warn"}}

    assert warn_rules(Grandchild) == PARENT_WARNS | {"rounded"}


def test_a_subclass_of_two_schemas_has_the_declarations_of_both() -> None:
    class Priced(dy.Schema):
        __dagster_dataframely__ = {"severity": {"cheap": "warn"}}

        price = dy.Int64()

        @dy.rule()
        def cheap(cls) -> pl.Expr:
            return cls.price.col < 100

    class Named(dy.Schema):
        __dagster_dataframely__ = {"severity": {"short": "warn"}}

        name = dy.String(metadata=declared("warn"))

        @dy.rule()
        def short(cls) -> pl.Expr:
            return cls.name.col.str.len_chars() < 9

    class Product(Priced, Named):
        pass

    assert warn_rules(Product) == {"cheap", "short", "name|nullability"}


def test_a_subclass_leaves_its_parent_as_it_was() -> None:
    class Child(Parent):
        __dagster_dataframely__ = {"severity": "error"}

        amount = dy.Float64(min=0.0, max=9.0, metadata=declared("error"))

    assert warn_rules(Child) == {"order_id|nullability"}
    assert warn_rules(Parent) == PARENT_WARNS


# --- what severity makes of a check --------------------------------------------------------------


def specs(asset: dg.AssetsDefinition) -> list[tuple[str, bool]]:
    return [(spec.name, spec.blocking) for spec in asset.check_specs]


def test_a_check_with_an_error_rule_is_blocking() -> None:
    @dd.asset(LenientOrdersSchema)
    def orders() -> pl.DataFrame:
        return pl.DataFrame()

    assert specs(orders) == [
        ("dy_schema__columns", True),
        ("dy_rule__amount_is_rounded", False),
        ("dy_rule__primary_key", True),
        ("dy_rule__order_id__nullability", True),
        ("dy_rule__order_id__regex", False),
        ("dy_rule__amount__nullability", True),
        ("dy_rule__amount__min", True),
        ("dy_rule__amount__inf", True),
        ("dy_rule__amount__nan", True),
        ("dy_rule__note__max_length", False),
    ]


@pytest.mark.parametrize("granularity", ["rule", "column", "schema"])
def test_only_the_column_schema_check_is_blocking_with_filter(granularity: str) -> None:
    orders = returning(
        LenientOrdersSchema, None, filter=True, check_granularity=granularity, name="orders"
    )

    assert [name for name, blocking in specs(orders) if blocking] == ["dy_schema__columns"]


def test_a_collapsed_check_is_blocking_when_one_of_its_rules_is_an_error() -> None:
    orders = returning(LenientOrdersSchema, None, check_granularity="column")

    assert dict(specs(orders)) == {
        "dy_schema__columns": True,
        "dy_schema__rules": True,
        "dy_col__order_id": True,
        "dy_col__amount": True,
        "dy_col__note": False,
    }


def test_schema_level_rules_may_report_one_by_one_beside_collapsed_columns() -> None:
    orders = returning(
        LenientOrdersSchema, None, check_granularity="column", schema_rules="per_rule"
    )

    assert dict(specs(orders)) == {
        "dy_schema__columns": True,
        "dy_rule__amount_is_rounded": False,
        "dy_rule__primary_key": True,
        "dy_col__order_id": True,
        "dy_col__amount": True,
        "dy_col__note": False,
    }


def test_one_check_can_report_for_the_whole_schema() -> None:
    orders = returning(LenientOrdersSchema, None, check_granularity="schema")

    assert dict(specs(orders)) == {"dy_schema__columns": True, "dy_schema__rules": True}


def test_a_whole_schema_of_warn_rules_gives_a_check_that_does_not_block() -> None:
    class Schema(dy.Schema):
        amount = dy.Float64(metadata=declared("warn"))

    orders = returning(Schema, None, check_granularity="schema")

    assert dict(specs(orders)) == {"dy_schema__columns": True, "dy_schema__rules": False}


VALID = ("ORD-0001", 1.0, None)
WARN = ("1", 1.0, None)  # fails order_id|regex
ERROR = ("ORD-0002", -1.0, None)  # fails amount|min
WARN_AND_ERROR_IN_ONE_COLUMN = (None, 1.0, None)  # fails order_id|nullability


@pytest.mark.parametrize("filter", [False, True])
@pytest.mark.parametrize(
    ("granularity", "rows", "failing"),
    [
        ("rule", [VALID], {}),
        ("rule", [VALID, WARN], {"dy_rule__order_id__regex": "WARN"}),
        ("rule", [VALID, ERROR], {"dy_rule__amount__min": "ERROR"}),
        (
            "rule",
            [VALID, WARN, ERROR],
            {"dy_rule__order_id__regex": "WARN", "dy_rule__amount__min": "ERROR"},
        ),
        ("column", [VALID, WARN], {"dy_col__order_id": "WARN"}),
        ("column", [VALID, ERROR], {"dy_col__amount": "ERROR"}),
        ("column", [VALID, WARN, ERROR], {"dy_col__order_id": "WARN", "dy_col__amount": "ERROR"}),
        ("column", [VALID, WARN, WARN_AND_ERROR_IN_ONE_COLUMN], {"dy_col__order_id": "ERROR"}),
        ("column", [VALID, ("ORD-0002", 0.001, None)], {"dy_schema__rules": "WARN"}),
        ("column", [VALID, VALID, ("ORD-0002", 1.0, None)], {"dy_schema__rules": "ERROR"}),
        ("schema", [VALID], {}),
        ("schema", [VALID, WARN], {"dy_schema__rules": "WARN"}),
        ("schema", [VALID, WARN, ERROR], {"dy_schema__rules": "ERROR"}),
    ],
)
def test_a_check_fails_at_error_when_a_failing_rule_is_an_error_and_else_at_warn(
    filter: bool,  # noqa: A002
    granularity: str,
    rows: list[tuple[str | None, float, str | None]],
    failing: dict[str, str],
) -> None:
    orders = returning(
        LenientOrdersSchema, lenient_orders(*rows), filter=filter, check_granularity=granularity
    )

    outcome = call(orders)

    assert outcome.failing == failing
    assert set(outcome.checks) == {name for name, _ in specs(orders)}


def test_a_collapsed_check_whose_warn_rule_failed_does_not_fail_the_step() -> None:
    orders = returning(LenientOrdersSchema, lenient_orders(VALID, WARN), check_granularity="column")

    @dg.asset
    def report(orders: pl.DataFrame) -> pl.DataFrame:
        return orders

    outcome = run(orders, report)

    assert outcome.success
    assert outcome.failing == {"dy_col__order_id": "WARN"}
    assert outcome.rows("report", "order_id") == ["ORD-0001", "1"]


@pytest.mark.parametrize("granularity", ["column", "schema"])
def test_a_collapsed_check_lists_the_failures_of_each_rule(granularity: str) -> None:
    frame = lenient_orders(VALID, WARN, ("2", 1.0, None), (None, 1.0, None))
    check = {"column": "dy_col__order_id", "schema": "dy_schema__rules"}[granularity]

    outcome = call(returning(LenientOrdersSchema, frame, check_granularity=granularity))

    listed = [list(row.values()) for row in outcome.checks[check].metadata["dataframely/rules"]]
    rules = {"order_id|nullability": ("error", 1), "order_id|regex": ("warn", 2)}
    for rule, (severity, failed) in rules.items():
        (row,) = [row for row in listed if rule in row]
        assert severity in row
        assert failed in row
    if granularity == "column":
        assert len(listed) == len(rules)
    else:
        assert len(listed) == 9


def test_a_failing_blocking_check_keeps_downstream_assets_of_the_same_run_from_executing() -> None:
    orders = returning(LenientOrdersSchema, lenient_orders(VALID, ERROR))

    @dg.asset
    def report(orders: pl.DataFrame) -> pl.DataFrame:
        return orders

    outcome = run(orders, report)

    assert not outcome.success
    assert outcome.written == {}


def test_filter_lets_downstream_assets_of_the_same_run_execute() -> None:
    orders = returning(LenientOrdersSchema, lenient_orders(VALID, ERROR), filter=True)

    @dg.asset
    def report(orders: pl.DataFrame) -> pl.DataFrame:
        return orders

    outcome = run(orders, report)

    assert outcome.success
    assert outcome.failing == {"dy_rule__amount__min": "ERROR"}
    assert outcome.rows("report", "order_id") == ["ORD-0001"]


@pytest.mark.parametrize("filter", [False, True])
def test_a_check_reports_its_rule_with_its_severity_and_how_many_rows_failed(
    filter: bool,  # noqa: A002
) -> None:
    frame = lenient_orders(VALID, WARN, ERROR, ("ORD-0004", -1.0, None))

    checks = call(returning(LenientOrdersSchema, frame, filter=filter)).checks

    reported = {
        name: (
            check.metadata["dataframely/rule"],
            check.metadata["dataframely/severity"],
            check.metadata["dataframely/failed_count"],
            check.metadata["dataframely/failed_ratio"],
        )
        for name, check in checks.items()
        if name in ("dy_rule__amount__min", "dy_rule__order_id__regex", "dy_rule__primary_key")
    }
    assert reported == {
        "dy_rule__amount__min": ("amount|min", "error", 2, 0.5),
        "dy_rule__order_id__regex": ("order_id|regex", "warn", 1, 0.25),
        "dy_rule__primary_key": ("primary_key", "error", 0, 0.0),
    }


def test_the_columns_tab_shows_no_tag_for_the_declaration() -> None:
    class Schema(dy.Schema):
        amount = dy.Float64(metadata={"unit": "EUR", **declared("warn")})
        note = dy.String(metadata=declared("warn"))

    orders = returning(Schema, None)

    table = orders.specs_by_key[orders.key].metadata["dagster/column_schema"]
    table_schema = table.schema if isinstance(table, dg.TableSchemaMetadataValue) else table
    assert {column.name: dict(column.tags) for column in table_schema.columns} == {
        "amount": {"unit": "EUR"},
        "note": {},
    }


def test_an_outcome_in_a_run_equals_that_of_a_direct_call() -> None:
    frame = lenient_orders(VALID, WARN, ERROR)

    def verdicts(outcome: Outcome) -> tuple[Any, ...]:
        return outcome.verdicts, outcome.error, outcome.message, list(outcome.written)

    for filter_rows in (False, True):
        orders = returning(LenientOrdersSchema, frame, filter=filter_rows)
        assert verdicts(run(orders)) == verdicts(call(orders))
