"""Input that cannot work, and the sentence that says so."""
# No postponed annotations here: a `dy.Collection` cannot be declared under them.

from collections.abc import Callable
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest

import dagster_dataframely as dd
from support import Tables, call, returning, run


class OrdersSchema(dy.Schema):
    order_id = dy.Int64(primary_key=True)
    amount = dy.Float64(min=0.0)


class OrdersCollection(dy.Collection):
    orders: dy.LazyFrame[OrdersSchema]


class OrdersModel:
    """A class that describes orders, though not as a Dataframely schema."""


ORDERS = pl.DataFrame({"order_id": [1, 2], "amount": [1.0, 2.0]})

# --- the schema ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "parts"),
    [
        # The class is what is wanted: the sentence says to leave the call out.
        pytest.param(OrdersSchema(), ["instance", "OrdersSchema"], id="an instance"),
        # Its members have the schemas: the sentence says that an asset takes one of them.
        pytest.param(
            OrdersCollection, ["OrdersCollection", "dy.Collection", "member"], id="a collection"
        ),
        pytest.param(OrdersModel, ["OrdersModel", "Schema"], id="another class"),
        pytest.param(dict, ["dict", "Schema"], id="a built-in class"),
        pytest.param("OrdersSchema", ["'OrdersSchema'", "Schema"], id="a name"),
        pytest.param(None, ["None", "Schema"], id="None"),
        pytest.param(ORDERS, ["DataFrame", "Schema"], id="a frame"),
        pytest.param(pl.Schema({"a": pl.Int64}), ["Schema"], id="a Polars schema"),
    ],
)
def test_what_is_no_dataframely_schema_is_refused(schema: Any, parts: list[str]) -> None:
    with pytest.raises(dd.errors.InvalidSchemaError) as error:
        dd.asset(schema)

    for part in parts:
        assert part in str(error.value)


def test_an_instance_a_collection_and_another_class_are_each_told_what_to_write_instead() -> None:
    sentences = set()
    for schema in (OrdersSchema(), OrdersCollection, OrdersModel):
        with pytest.raises(dd.errors.InvalidSchemaError) as error:
            dd.asset(schema)
        sentences.add(
            str(error.value)
            .replace("OrdersSchema", "")
            .replace("OrdersCollection", "")
            .replace("OrdersModel", "")
        )

    assert len(sentences) == 3


def test_the_decorator_without_its_schema_is_refused() -> None:
    with pytest.raises(dd.errors.InvalidSchemaError, match="orders"):

        @dd.asset
        def orders() -> pl.DataFrame:
            return ORDERS


@pytest.mark.parametrize("alias", ["dy_total", "dy_rule__amount__min", "dy_"])
def test_a_column_with_the_packages_prefix_is_reserved(alias: str) -> None:
    schema = type(
        "TotalsSchema", (dy.Schema,), {"total": dy.Int64(alias=alias), "dynamic": dy.Int64()}
    )

    with pytest.raises(dd.errors.ReservedColumnError) as error:
        dd.asset(schema)

    assert f"'{alias}'" in str(error.value)
    assert "TotalsSchema" in str(error.value)
    assert "'dynamic'" not in str(error.value)


@pytest.mark.parametrize("granularity", ["rule", "column"])
def test_two_rules_that_share_a_check_name_are_refused(granularity: str) -> None:
    class SpacedSchema(dy.Schema):
        spaced = dy.Int64(alias="order id")
        scored = dy.Int64(alias="order_id")

    with pytest.raises(dd.errors.CheckNameCollisionError) as error:
        dd.asset(SpacedSchema, check_granularity=granularity)

    for part in ("order id", "order_id", "SpacedSchema"):
        assert part in str(error.value)


def test_a_schema_rule_may_share_a_check_name_with_a_column_rule_no_more_than_two_columns() -> None:
    class Schema(dy.Schema):
        amount = dy.Int64()

        @dy.rule()
        def amount__nullability(cls) -> pl.Expr:
            return cls.amount.col > 0

    with pytest.raises(dd.errors.CheckNameCollisionError) as error:
        dd.asset(Schema)

    assert "dy_rule__amount__nullability" in str(error.value)
    assert "amount|nullability" in str(error.value)


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "value", "parts"),
    [
        ("filter", "yes", ["'yes'", "True", "False"]),
        ("filter", 1, ["1", "True", "False"]),
        ("filter", None, ["None", "True", "False"]),
        ("check_granularity", "rules", ["'rules'", "'rule'", "'column'", "'schema'"]),
        ("check_granularity", True, ["True", "'rule'", "'column'", "'schema'"]),
        ("schema_rules", "collapse", ["'collapse'", "'collapsed'", "'per_rule'"]),
        ("statistics", "maybe", ["'maybe'", "True", "False"]),
        ("row_sample", -1, ["-1"]),
        ("row_sample", 2.5, ["2.5"]),
        ("row_sample", True, ["True"]),
        ("max_failure_samples", "many", ["'many'"]),
        ("max_failure_samples", -3, ["-3"]),
        ("redact", 3, ["3"]),
    ],
)
def test_a_bad_setting_is_refused_with_its_name_and_value(
    setting: str, value: Any, parts: list[str]
) -> None:
    with pytest.raises(dd.errors.InvalidSettingError) as error:
        dd.asset(OrdersSchema, **{setting: value})

    for part in [setting, *parts]:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DAGSTER_DATAFRAMELY_CHECK_GRANULARITY", "rules"),
        ("DAGSTER_DATAFRAMELY_SCHEMA_RULES", "some"),
        ("DAGSTER_DATAFRAMELY_STATISTICS", "maybe"),
        ("DAGSTER_DATAFRAMELY_ROW_SAMPLE", "-1"),
        ("DAGSTER_DATAFRAMELY_MAX_FAILURE_SAMPLES", "many"),
    ],
)
def test_a_bad_environment_variable_is_refused_as_the_source_of_the_value(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(dd.errors.InvalidSettingError) as error:
        dd.asset(OrdersSchema)

    assert variable in str(error.value)
    assert value in str(error.value)


def test_an_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_DATAFRAMELY_CHECK_GRANULARITY", "schema")

    from_environment = returning(OrdersSchema, ORDERS)
    from_argument = returning(OrdersSchema, ORDERS, check_granularity="column")

    assert {spec.name for spec in from_environment.check_specs} == {
        "dy_schema__columns",
        "dy_schema__rules",
    }
    assert {spec.name for spec in from_argument.check_specs} == {
        "dy_schema__columns",
        "dy_schema__rules",
        "dy_col__order_id",
        "dy_col__amount",
    }


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("check_specs", []),
        ("output_required", True),
        ("dagster_type", dg.Nothing),
        ("is_virtual", True),
    ],
)
def test_an_argument_that_the_schema_decides_is_not_taken(argument: str, value: Any) -> None:
    with pytest.raises(TypeError, match=argument):
        dd.asset(OrdersSchema, **{argument: value})


# --- what the function returns -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        ([1, 2], "list"),
        ({"order_id": [1]}, "dict"),
        ("orders.parquet", "str"),
        (pl.Series([1]), "Series"),
        (dg.Output(ORDERS), "Output"),
        (dg.MaterializeResult(value=[1, 2]), "list"),
        (True, "bool"),
        (pl.col("a"), "Expr"),
        ((ORDERS, ORDERS), "tuple"),
    ],
)
@pytest.mark.parametrize("filter", [False, True])
def test_what_is_no_frame_is_refused_with_what_may_be_returned(
    returned: Any,
    found: str,
    filter: bool,  # noqa: A002
) -> None:
    outcome = call(returning(OrdersSchema, returned, filter=filter))

    assert outcome.error == "InvalidReturnError"
    for part in (found, "orders", "DataFrame", "LazyFrame", "MaterializeResult", "None"):
        assert part in outcome.message
    assert outcome.written == {}


def test_a_run_whose_function_returns_a_list_fails_and_writes_nothing() -> None:
    tables = Tables()

    outcome = run(returning(OrdersSchema, [1, 2]), tables=tables)

    assert outcome.error == "InvalidReturnError"
    assert "list" in outcome.message
    assert tables.writes == []


def test_an_exception_of_the_function_is_passed_on_as_it_is() -> None:
    @dd.asset(OrdersSchema)
    def orders() -> pl.DataFrame:
        raise LookupError("no such source")

    with pytest.raises(LookupError, match="no such source"):
        list(orders())
    outcome = run(orders)
    assert (outcome.error, outcome.message) == ("LookupError", "no such source")


def test_a_plan_that_raises_fails_the_run_with_its_own_error() -> None:
    def explode(_: pl.DataFrame) -> pl.DataFrame:
        raise LookupError("no such partition")

    outcome = run(returning(OrdersSchema, ORDERS.lazy().map_batches(explode, schema=ORDERS.schema)))

    assert not outcome.success
    assert outcome.error != "RuleEvaluationError"
    assert "no such partition" in outcome.message
    assert outcome.written == {}


# --- rules that cannot be evaluated --------------------------------------------------------------


def explode(_: Any) -> bool:
    raise RuntimeError("out of cheese")


RAISING_RULES: list[Any] = [
    pytest.param(
        lambda cls: cls.code.col.str.to_integer(strict=True) > 0, "to_integer|conversion", id="cast"
    ),
    pytest.param(lambda cls: cls.missing.col > 0, "missing", id="a column that does not exist"),
    pytest.param(lambda cls: pl.col("missing") > 0, "missing", id="a column that is not there"),
    pytest.param(
        lambda cls: cls.code.col.map_elements(explode, return_dtype=pl.Boolean),
        "out of cheese",
        id="a Python function",
    ),
    pytest.param(lambda cls: explode(cls), "out of cheese", id="the rule's own code"),
]

NO_BOOLEANS: list[Any] = [
    pytest.param(lambda cls: cls.code.col.str.len_chars(), "UInt32", id="integers"),
    pytest.param(lambda cls: cls.code.col, "String", id="strings"),
    pytest.param(lambda cls: pl.lit(1.5), "Float64", id="a number"),
    pytest.param(lambda cls: None, "None", id="nothing"),
    pytest.param(lambda cls: True, "bool", id="a Python bool"),
]


def schema_with(rule: Callable[[Any], Any]) -> type[dy.Schema]:
    """A schema with one sound rule and the one under test, `is_sound`."""

    class CodesSchema(dy.Schema):
        code = dy.String(min_length=1)

        @dy.rule()
        def is_sound(cls) -> pl.Expr:
            return rule(cls)

    return CodesSchema


CODES = pl.DataFrame({"code": ["1", "x"]})


@pytest.mark.parametrize("filter", [False, True])
@pytest.mark.parametrize(("rule", "cause"), RAISING_RULES)
def test_a_rule_that_raises_fails_naming_the_rule(
    rule: Callable[[Any], Any],
    cause: str,
    filter: bool,  # noqa: A002
) -> None:
    outcome = call(returning(schema_with(rule), CODES, filter=filter, name="codes"))

    assert outcome.error == "RuleEvaluationError"
    assert "is_sound" in outcome.message
    assert any(part in outcome.message for part in cause.split("|"))
    assert outcome.written == {}


@pytest.mark.parametrize("filter", [False, True])
@pytest.mark.parametrize(("rule", "found"), NO_BOOLEANS)
def test_a_rule_that_gives_no_booleans_fails_naming_the_rule_and_what_it_gave(
    rule: Callable[[Any], Any],
    found: str,
    filter: bool,  # noqa: A002
) -> None:
    outcome = call(returning(schema_with(rule), CODES, filter=filter, name="codes"))

    assert outcome.error == "RuleEvaluationError"
    for part in ("is_sound", found, "Boolean"):
        assert part in outcome.message
    assert outcome.written == {}


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(RAISING_RULES[0].values[0], id="a rule that raises"),
        pytest.param(NO_BOOLEANS[0].values[0], id="a rule that gives no booleans"),
    ],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_a_run_with_a_rule_that_cannot_be_evaluated_fails_and_leaves_the_table(
    rule: Callable[[Any], Any], lazy: bool
) -> None:
    tables = Tables({"codes": CODES})
    frame = CODES.lazy() if lazy else CODES

    outcome = run(returning(schema_with(rule), frame, name="codes"), tables=tables)

    assert outcome.error == "RuleEvaluationError"
    assert "is_sound" in outcome.message
    assert tables.writes == []


@pytest.mark.parametrize("rows", [1, 2], ids=["one row", "two rows"])
@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(lambda cls: pl.lit(pl.Series([True, True, True])), id="more"),
        pytest.param(lambda cls: cls.code.col.filter(cls.code.col == "z") == "z", id="none"),
    ],
)
def test_a_rule_that_gives_another_number_of_values_than_rows_fails_naming_the_rule(
    rule: Callable[[Any], Any], rows: int
) -> None:
    frame = CODES.head(rows)

    for returned in (frame, frame.lazy()):
        outcome = call(returning(schema_with(rule), returned, filter=True, name="codes"))

        assert outcome.error == "RuleEvaluationError"
        assert "is_sound" in outcome.message
        assert outcome.written == {}


def test_a_check_of_a_column_that_raises_is_named_with_its_column() -> None:
    class CodesSchema(dy.Schema):
        code = dy.String(check={"number": lambda col: col.str.to_integer(strict=True) > 0})

    outcome = call(returning(CodesSchema, CODES, name="codes"))

    assert outcome.error == "RuleEvaluationError"
    assert "code|check__number" in outcome.message


def test_a_warn_rule_that_raises_fails_the_run_too() -> None:
    class CodesSchema(schema_with(lambda cls: cls.code.col.str.to_integer(strict=True) > 0)):  # type: ignore[misc]
        __dagster_dataframely__ = {"severity": "warn"}

    outcome = call(returning(CodesSchema, CODES, filter=True, name="codes"))

    assert outcome.error == "RuleEvaluationError"
    assert outcome.written == {}


# --- the function itself -------------------------------------------------------------------------


def test_what_is_already_an_asset_cannot_be_decorated_again() -> None:
    @dg.asset
    def orders() -> pl.DataFrame:
        return ORDERS

    with pytest.raises(dd.errors.InvalidFunctionError, match="orders"):
        dd.asset(OrdersSchema)(orders)


@pytest.mark.parametrize("function", [ORDERS, "orders", OrdersSchema])
def test_what_is_no_function_cannot_be_decorated(function: Any) -> None:
    with pytest.raises(dd.errors.InvalidFunctionError):
        dd.asset(OrdersSchema)(function)


def test_a_function_that_yields_is_refused_with_what_may_be_returned() -> None:
    def orders() -> Any:
        yield ORDERS

    with pytest.raises(dd.errors.InvalidFunctionError, match="orders") as error:
        dd.asset(OrdersSchema)(orders)

    for part in ("DataFrame", "LazyFrame", "MaterializeResult", "None"):
        assert part in str(error.value)


def test_another_assets_key_for_the_error_rows_fails_the_run_before_the_function_is_called() -> (
    None
):
    called = []

    @dd.asset(OrdersSchema, filter=True)
    def orders() -> pl.DataFrame:
        called.append(True)
        return ORDERS

    @dg.asset
    def orders__error_rows() -> pl.DataFrame:
        return ORDERS

    outcome = run(orders, orders__error_rows, selection=["orders"])

    assert outcome.error == "ErrorRowsKeyCollisionError"
    assert "orders__error_rows" in outcome.message
    assert called == []
