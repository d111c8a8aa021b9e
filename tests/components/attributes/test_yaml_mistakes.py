"""What `dg check defs` says first about the mistakes that people make in a `defs.yaml`.

The command checks every file's YAML against its JSON schema, then loads the project. Dagster's check of the
JSON schema looks at one file of each component type, so each mistake that it knows is met while loading too:
a row has what either prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from yaml_project import Project, new_project

TYPE = "dagster_dataframely.DataframelyAsset"
DEFS = "orders/defs.yaml"

OK = f"""\
type: {TYPE}

attributes:
  fn: .orders.build_orders
  schema: .schema.OrdersSchema
"""
#: The line of the first attribute that a mistake adds to the file above.
LINE = 6

TOP_LEVEL = (
    "`fn`, `schema`, `filter`, `stream`, `ins`, `asset`, `op`, `io_manager_key`, `retry_policy`, "
    "`check_granularity`, `schema_rules`, `statistics`, `max_failure_samples`, `row_sample`, `redact`, "
    "`staging_dir`"
)
IN_ASSET = (
    "`deps`, `description`, `metadata`, `group_name`, `skippable`, `code_version`, `owners`, `tags`, `kinds`, "
    "`automation_condition`, `partitions_def`, `freshness_policy`, `key`, `key_prefix`"
)
HOW_TO_NAME_A_FUNCTION = (
    "Write `module.function`, such as '.orders.build_orders'; a leading dot is the folder of "
    "this file."
)


@dataclass(frozen=True)
class Mistake:
    """A mistake, and the first line about it. `{source}` in a line is the folder of the project's package."""

    name: str
    #: The file, or lines to add to a file without mistakes.
    yaml: str
    #: What loading says: line and attribute, then the sentence.
    says: str
    #: What `dg check yaml` says, where the JSON schema can know.
    yaml_says: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The whole file."""
        return self.yaml if self.yaml.startswith(("type:", "attributes:")) else OK + self.yaml


def at(line: int, attribute: str, sentence: str) -> str:
    """Return a first line about an attribute."""
    return f"{DEFS}:{line} - {attribute}: {sentence}"


def schema_says(line: int, attribute: str, message: str) -> str:
    """Return a first line of `dg check yaml` about an attribute."""
    return f"{DEFS}:{line} - {TYPE} {attribute} {message}"


def not_allowed(line: int, attribute: str) -> str:
    """Return what `dg check yaml` says about a name that is no attribute."""
    name = attribute.rpartition(".")[2]
    return schema_says(
        line, attribute, f"Additional properties are not allowed ('{name}' was unexpected)"
    )


def changed(old: str, new: str) -> str:
    """Return the file with one thing changed."""
    return OK.replace(old, new)


NAMES = [
    Mistake(
        "a misspelt attribute",
        "  filtr: true\n",
        at(
            LINE,
            "attributes.filtr",
            f"There is no attribute `filtr`. Did you mean `filter`? Allowed are {TOP_LEVEL}.",
        ),
        not_allowed(LINE, "attributes.filtr"),
    ),
    Mistake(
        "a misspelt attribute of the asset",
        "  asset:\n    onwers: [team:sales]\n",
        at(
            LINE + 1,
            "attributes.asset.onwers",
            f"There is no attribute `onwers` in `asset`. Did you mean `owners`? Allowed are {IN_ASSET}.",
        ),
        not_allowed(LINE + 1, "attributes.asset.onwers"),
    ),
    Mistake(
        "an attribute of the asset beside it",
        "  group_name: sales\n",
        at(
            LINE,
            "attributes.group_name",
            "There is no attribute `group_name`. It belongs under `asset`.",
        ),
        not_allowed(LINE, "attributes.group_name"),
    ),
    Mistake(
        "an attribute of the step under asset",
        "  asset: {pool: warehouse}\n",
        at(
            LINE,
            "attributes.asset.pool",
            "There is no attribute `pool` in `asset`. It belongs under `op`.",
        ),
        not_allowed(LINE, "attributes.asset.pool"),
    ),
    Mistake(
        "an attribute of the component under asset",
        "  asset:\n    filter: true\n",
        at(
            LINE + 1,
            "attributes.asset.filter",
            "There is no attribute `filter` in `asset`. It belongs one level up, beside `asset`.",
        ),
        not_allowed(LINE + 1, "attributes.asset.filter"),
    ),
    Mistake(
        "a misspelt attribute of the retry policy",
        "  retry_policy: {max_retry: 3}\n",
        at(
            LINE,
            "attributes.retry_policy.max_retry",
            "There is no attribute `max_retry` in `retry_policy`. Did you mean `max_retries`? "
            "Allowed are `max_retries`, `delay`, `backoff`, `jitter`.",
        ),
        not_allowed(LINE, "attributes.retry_policy.max_retry"),
    ),
    Mistake(
        "no function",
        changed("  fn: .orders.build_orders\n", ""),
        at(
            3,
            "attributes",
            "The attribute `fn` is missing. Write, for example, `fn: .orders.build_orders`.",
        ),
        schema_says(3, "attributes", "'fn' is a required property"),
    ),
    Mistake(
        "no attributes at all",
        f"type: {TYPE}\n",
        at(
            1,
            "attributes",
            "The attribute `fn` is missing. Write, for example, `fn: .orders.build_orders`.",
        ),
        schema_says(1, "attributes", "'fn' is a required property"),
    ),
    Mistake(
        "a partitions definition without its date",
        "  asset:\n    partitions_def: {type: daily}\n",
        at(
            LINE + 1,
            "attributes.asset.partitions_def",
            "The attribute `start_date` is missing in `partitions_def`.",
        ),
        schema_says(
            LINE + 1, "attributes.asset.partitions_def", "'start_date' is a required property"
        ),
    ),
]

VALUES = [
    Mistake(
        "a flag that is neither true nor false",
        "  filter: maybe\n",
        at(LINE, "attributes.filter", "`filter` is 'maybe'. Allowed are true and false."),
        schema_says(LINE, "attributes.filter", "'maybe' is not of type 'boolean'"),
    ),
    Mistake(
        "the same from a template",
        "  filter: \"{{ 'maybe' }}\"\n",
        at(LINE, "attributes.filter", "`filter` is 'maybe'. Allowed are true and false."),
    ),
    Mistake(
        "a choice that is none",
        "  check_granularity: rules\n",
        at(
            LINE,
            "attributes.check_granularity",
            "`check_granularity` is 'rules'. Allowed are 'rule', 'column', 'schema'. Did you mean 'rule'?",
        ),
        schema_says(
            LINE,
            "attributes.check_granularity",
            "'rules' is not one of ['rule', 'column', 'schema']",
        ),
    ),
    Mistake(
        "a number below zero",
        "  row_sample: -1\n",
        at(LINE, "attributes.row_sample", "`row_sample` is -1. Allowed is a whole number from 0."),
        schema_says(LINE, "attributes.row_sample", "-1 is less than the minimum of 0"),
    ),
    Mistake(
        "a word for a number",
        "  max_failure_samples: five\n",
        at(
            LINE,
            "attributes.max_failure_samples",
            "`max_failure_samples` is 'five'. Allowed is a whole number.",
        ),
        schema_says(LINE, "attributes.max_failure_samples", "'five' is not of type 'integer'"),
    ),
    Mistake(
        "one column to redact, not in a list",
        "  redact: email\n",
        at(LINE, "attributes.redact", "`redact` is 'email'. Allowed is a list."),
        schema_says(LINE, "attributes.redact", "'email' is not of type 'array'"),
    ),
    Mistake(
        "a column to redact that the schema does not have",
        "  redact: [amuont]\n",
        at(
            LINE,
            "attributes.redact",
            "The argument `redact` names 'amuont', which is not a column of OrdersSchema. Did you "
            "mean 'amount'? Its columns are 'order_id', 'amount'.",
        ),
    ),
    Mistake(
        "the asset as a list",
        "  asset:\n    - group_name: sales\n",
        at(
            LINE,
            "attributes.asset",
            f"`asset` is [{{'group_name': 'sales'}}]. Allowed is a mapping of {IN_ASSET}.",
        ),
        schema_says(LINE, "attributes.asset", "[{'group_name': 'sales'}] is not of type 'object'"),
    ),
    Mistake(
        "the parts of a key in a list",
        "  asset:\n    key: [sales, orders]\n",
        at(LINE + 1, "attributes.asset.key", "`key` is ['sales', 'orders']. Allowed is text."),
        schema_says(
            LINE + 1, "attributes.asset.key", "['sales', 'orders'] is not of type 'string'"
        ),
    ),
    Mistake(
        "a key with a space",
        "  asset:\n    key: my orders\n",
        at(
            LINE + 1,
            "attributes.asset.key",
            "`key` is 'my orders'. Allowed are letters, digits, '_', '-' and '.', in parts that are "
            "separated by '/'.",
        ),
    ),
    Mistake(
        "one upstream asset, not in a list",
        "  asset:\n    deps: raw/customers\n",
        at(LINE + 1, "attributes.asset.deps", "`deps` is 'raw/customers'. Allowed is a list."),
        schema_says(LINE + 1, "attributes.asset.deps", "'raw/customers' is not of type 'array'"),
    ),
    Mistake(
        "an owner that is no address and no team",
        "  asset:\n    owners: [sales]\n",
        at(
            LINE + 1,
            "attributes.asset.owners",
            "`owners` is refused by Dagster: Invalid owner 'sales' for asset "
            "'AssetKey(['this_asset'])'. Owner must be an email address or a team name prefixed with "
            "'team:'.",
        ),
    ),
    Mistake(
        "a group name with a space",
        "  asset:\n    group_name: my sales\n",
        at(
            LINE + 1,
            "attributes.asset.group_name",
            '`group_name` is refused by Dagster: "my sales" is not a valid asset group name. Group '
            "names must be one or more segments matching ^[A-Za-z0-9_]+$ separated by '/' (e.g. "
            "'marketing' or 'marketing/foo/bar').",
        ),
    ),
    Mistake(
        "tags as a list",
        "  asset:\n    tags: [gold]\n",
        at(LINE + 1, "attributes.asset.tags", "`tags` is ['gold']. Allowed is a mapping."),
        schema_says(LINE + 1, "attributes.asset.tags", "['gold'] is not of type 'object'"),
    ),
    Mistake(
        "an automation condition by its name",
        "  asset:\n    automation_condition: eager\n",
        at(
            LINE + 1,
            "attributes.asset.automation_condition",
            "`automation_condition` is 'eager'. Allowed is a template that gives an "
            "AutomationCondition, `{{ ... }}`.",
        ),
    ),
    Mistake(
        "an automation condition with a bad cron schedule",
        "  asset:\n    automation_condition: \"{{ dg.AutomationCondition.on_cron('every day') }}\"\n",
        at(
            LINE + 1,
            "attributes.asset.automation_condition",
            "ParameterCheckError: Invariant violation for parameter cron_schedule. Description: "
            "Invalid cron schedule: every day",
        ),
    ),
    Mistake(
        "partitions by their name",
        "  asset:\n    partitions_def: daily\n",
        at(
            LINE + 1,
            "attributes.asset.partitions_def",
            "`partitions_def` is 'daily'. Allowed is a mapping.",
        ),
        schema_says(LINE + 1, "attributes.asset.partitions_def", "'daily' is not of type 'object'"),
    ),
    Mistake(
        "a misspelt type of partitions",
        "  asset:\n    partitions_def: {type: dayly, start_date: '2026-01-01'}\n",
        at(
            LINE + 1,
            "attributes.asset.partitions_def.type",
            "`type` is 'dayly'. Allowed are 'hourly', 'daily', 'weekly', 'time_window', 'static'. "
            "Did you mean 'daily'?",
        ),
        schema_says(
            LINE + 1,
            "attributes.asset.partitions_def.type",
            "'dayly' is not one of ['hourly', 'daily', 'weekly', 'time_window', 'static']",
        ),
    ),
    Mistake(
        "a date that is none",
        "  asset:\n    partitions_def: {type: daily, start_date: yesterday}\n",
        at(
            LINE + 1,
            "attributes.asset.partitions_def",
            "ValueError: time data 'yesterday' does not match format '%Y-%m-%d%z'",
        ),
    ),
    Mistake(
        "a cron schedule that is none",
        "  asset:\n    partitions_def: {type: time_window, start_date: '2026', fmt: '%Y', "
        "cron_schedule: yearly}\n",
        at(
            LINE + 1,
            "attributes.asset.partitions_def",
            "DagsterInvalidDefinitionError: Found invalid cron schedule 'yearly' for a "
            "TimeWindowPartitionsDefinition.",
        ),
    ),
    Mistake(
        "an asset that may not be skipped",
        "  asset:\n    skippable: false\n",
        at(
            LINE + 1,
            "attributes.asset.skippable",
            "`skippable` is false. A function that returns None writes nothing, so the asset is "
            "always skippable; remove the attribute.",
        ),
    ),
    Mistake(
        "a name for the step",
        "  op: {name: load_orders}\n",
        at(
            LINE,
            "attributes.op.name",
            "Dagster names the step of an asset after the asset's key; remove `name`.",
        ),
    ),
    Mistake(
        "a retry policy as a number",
        "  retry_policy: 3\n",
        at(
            LINE,
            "attributes.retry_policy",
            "`retry_policy` is 3. Allowed is a mapping of `max_retries`, `delay`, `backoff`, `jitter`.",
        ),
        schema_says(LINE, "attributes.retry_policy", "3 is not of type 'object'"),
    ),
    Mistake(
        "a number below zero from a template, in a block",
        "  retry_policy: {max_retries: '{{ -3 }}'}\n",
        at(
            LINE,
            "attributes.retry_policy.max_retries",
            "`max_retries` is -3. Allowed is a whole number from 0.",
        ),
    ),
    Mistake(
        "a template that gives no mapping for a block",
        "  op: \"{{ 'warehouse' }}\"\n",
        at(
            LINE,
            "attributes.op",
            "`op` is 'warehouse'. Allowed is a mapping, or a template that gives one.",
        ),
    ),
    Mistake(
        "a growing delay without a delay",
        "  retry_policy: {backoff: exponential}\n",
        at(
            LINE,
            "attributes.retry_policy.backoff",
            "`backoff` changes the delay, and there is none. Set `delay` too.",
        ),
    ),
    Mistake(
        "an input for a parameter that the function does not have",
        changed(".orders.build_orders", ".orders.clean_orders")
        + "  ins: {raw_order: raw/orders}\n",
        at(
            LINE,
            "attributes.ins.raw_order",
            "`ins` names `raw_order`, which is no parameter of clean_orders. It takes `raw_orders`. "
            "Did you mean `raw_orders`?",
        ),
    ),
]

TEMPLATES = [
    Mistake(
        "a template variable that is not defined",
        "  asset:\n    automation_condition: '{{ contxt.eager() }}'\n",
        at(
            LINE + 1,
            "attributes.asset.automation_condition",
            "'contxt' is not defined for templates. Defined are env, dg, datetime, "
            "automation_condition, context, project_root, load_component_at_path, "
            "build_defs_at_path. Did you mean 'context'?",
        ),
    ),
    Mistake(
        "an environment variable that is not set",
        "  row_sample: \"{{ env('SHOP_ROWS') }}\"\n",
        at(
            LINE,
            "attributes.row_sample",
            "Environment variable SHOP_ROWS is not set and no default value was provided. To provide "
            "a default value, use e.g. `env('SHOP_ROWS', 'default_value')`.",
        ),
    ),
    Mistake(
        "a template that is not closed",
        "  io_manager_key: '{{ env.SHOP_IO '\n",
        at(
            LINE,
            "attributes.io_manager_key",
            "TemplateSyntaxError: unexpected end of template, expected 'end of print statement'.",
        ),
    ),
]

REFERENCES = [
    Mistake(
        "a misspelt function",
        changed("build_orders", "build_order"),
        at(
            4,
            "attributes.fn",
            "Module 'defs.orders.orders' has no 'build_order'. It defines the functions "
            "'build_orders', 'clean_orders'. Did you mean '.orders.build_orders'?",
        ),
    ),
    Mistake(
        "a misspelt module",
        changed(".orders.", ".order."),
        at(
            4,
            "attributes.fn",
            "There is no module 'defs.orders.order'. This folder, 'defs.orders', has the modules "
            "'orders', 'schema'. Did you mean '.orders.build_orders'?",
        ),
    ),
    Mistake(
        "no leading dot",
        changed(".orders.", "orders."),
        at(
            4,
            "attributes.fn",
            "There is no module 'orders' at the top level, but there is one in this folder. Write "
            "'.orders.build_orders', with a leading dot.",
        ),
    ),
    Mistake(
        "a function without its module",
        changed(".orders.build_orders", "build_orders"),
        at(4, "attributes.fn", f"'build_orders' names no module. {HOW_TO_NAME_A_FUNCTION}"),
    ),
    Mistake(
        "a path for a function",
        changed(".orders.build_orders", "orders/orders.py"),
        at(
            4,
            "attributes.fn",
            f"'orders/orders.py' is a path, not a reference. {HOW_TO_NAME_A_FUNCTION}",
        ),
    ),
    Mistake(
        "an asset for a function",
        changed(".orders.build_orders", ".things.orders"),
        at(
            4,
            "attributes.fn",
            "'.things.orders' is an asset already. Point `fn` at the plain function, or drop its decorator.",
        ),
        files={
            "orders/things.py": "import dagster as dg\n\n@dg.asset\ndef orders():\n    return 1\n"
        },
    ),
    Mistake(
        "a function that yields",
        changed(".orders.build_orders", ".things.orders"),
        at(
            4,
            "attributes.fn",
            "'orders' yields, and DataframelyAsset takes a function that returns: a pl.DataFrame, a "
            "pl.LazyFrame, a dg.MaterializeResult around either, or None.",
        ),
        files={"orders/things.py": "def orders():\n    yield 1\n"},
    ),
    Mistake(
        "a list of functions",
        changed(".orders.build_orders", "[.orders.build_orders]"),
        at(4, "attributes.fn", "`fn` is ['.orders.build_orders']. Allowed is text."),
        schema_says(4, "attributes.fn", "['.orders.build_orders'] is not of type 'string'"),
    ),
    Mistake(
        "the schema for the function",
        changed(".orders.build_orders", ".schema.OrdersSchema"),
        at(
            4,
            "attributes.fn",
            "'.schema.OrdersSchema' is the class OrdersSchema, and `fn` names a function that "
            "returns the rows. It belongs under `schema`.",
        ),
    ),
    Mistake(
        "a misspelt schema",
        changed("OrdersSchema", "OrderSchema"),
        at(
            5,
            "attributes.schema",
            "Module 'defs.orders.schema' has no 'OrderSchema'. It defines the schema 'OrdersSchema'. "
            "Did you mean '.schema.OrdersSchema'?",
        ),
    ),
    Mistake(
        "an instance for a schema",
        changed(".schema.OrdersSchema", ".things.orders"),
        at(
            5,
            "attributes.schema",
            "'.things.orders': `schema` takes the schema class, and this is an instance of "
            "OrdersSchema. Write OrdersSchema without parentheses.",
        ),
        files={"orders/things.py": "from .schema import OrdersSchema\n\norders = OrdersSchema()\n"},
    ),
    Mistake(
        "a class that is no schema",
        changed(".schema.OrdersSchema", ".things.Orders"),
        at(
            5,
            "attributes.schema",
            "'.things.Orders': `schema` takes a subclass of dy.Schema, and Orders is not one. Write "
            "`class Orders(dy.Schema)`.",
        ),
        files={"orders/things.py": "class Orders:\n    pass\n"},
    ),
    Mistake(
        "a schema whose severity cannot be read",
        "  filter: true\n",
        at(
            5,
            "attributes.schema",
            "The `__dagster_dataframely__` of OrdersSchema has the key 'severities'. The only key "
            'allowed there is \'severity\'. Write {"severity": "warn"} or {"severity": {"<rule>": '
            '"warn"}}.',
        ),
        files={
            "orders/schema.py": "import dataframely as dy\n\nclass OrdersSchema(dy.Schema):\n"
            "    order_id = dy.String(primary_key=True)\n"
            "    __dagster_dataframely__ = {'severities': 'warn'}\n"
        },
    ),
    Mistake(
        "a module that raises",
        "  filter: true\n",
        at(4, "attributes.fn", "ZeroDivisionError in orders.py, line 1: division by zero"),
        files={"orders/orders.py": "limit = 1 / 0\n"},
    ),
    Mistake(
        "a module that imports what is not installed",
        "  filter: true\n",
        at(
            4, "attributes.fn", "ModuleNotFoundError in orders.py, line 1: No module named 'pandaz'"
        ),
        files={"orders/orders.py": "import pandaz\n"},
    ),
    Mistake(
        "a module with a syntax error",
        "  filter: true\n",
        at(4, "attributes.fn", "SyntaxError: invalid syntax (orders.py, line 1)"),
        files={"orders/orders.py": "def build_orders(:\n"},
    ),
    Mistake(
        "two modules that import each other",
        changed(".orders.build_orders", ".first.build_orders"),
        at(
            4,
            "attributes.fn",
            "Importing 'defs.orders.first' for '.first.build_orders' goes round in a circle: cannot "
            "import name 'build_orders' from partially initialized module 'defs.orders.first'. Move "
            "what both modules need into a third one.",
        ),
        files={
            "orders/first.py": "from .second import helper\n\ndef build_orders():\n    pass\n",
            "orders/second.py": "from .first import build_orders\n\ndef helper():\n    pass\n",
        },
    ),
]

MISTAKES = [*NAMES, *VALUES, *TEMPLATES, *REFERENCES]

#: Mistakes that only Dagster can find, before the attributes are read or when all assets are known.
DAGSTERS_WORDS = [
    Mistake(
        "a misspelt component type",
        changed(TYPE, f"{TYPE}s"),
        "Module `dagster_dataframely` has no attribute `DataframelyAssets`.",
        f"{DEFS}:1 -  Component type '{TYPE}s' not found.",
    ),
    Mistake(
        "an attribute beside `attributes`",
        "filter: true\n",
        "1 validation error for ComponentFileModel",
        f"{DEFS}:{LINE} - filter Additional properties are not allowed ('filter' was unexpected)",
    ),
    Mistake(
        "a tab",
        "\tfilter: true\n",
        "while scanning for the next token",
        f"{DEFS}:{LINE} -  Unable to parse YAML: while scanning for the next token, found character '\\t' that "
        "cannot start any token",
    ),
    Mistake(
        "a line too far to the right",
        changed("  schema", "    schema"),
        "mapping values are not allowed here",
        f"{DEFS}:5 -  Unable to parse YAML: None, mapping values are not allowed here",
    ),
    Mistake(
        "two components with one key",
        f"{OK}---\n{OK}",
        "Duplicate asset key: AssetKey(['build_orders'])",
    ),
    Mistake(
        "an error-rows table with the key of another asset",
        f"{OK}  filter: true\n---\n{OK}  asset: {{key: build_orders__error_rows}}\n",
        "Duplicate asset key: AssetKey(['build_orders__error_rows'])",
    ),
    Mistake(
        "an upstream asset that nothing defines",
        changed(".orders.build_orders", ".orders.clean_orders")
        + "  ins: {raw_orders: raw/orders}\n",
        'Input asset "["raw", "orders"]" is not produced by any of the provided asset ops and is not one of '
        "the provided sources.",
    ),
    Mistake(
        "an IO manager that nothing defines",
        "  io_manager_key: warehouse_io\n",
        "io manager with key 'warehouse_io' required by output 'result' of op 'build_orders'' "
        "was not provided. "
        "Please provide a IOManagerDefinition to key 'warehouse_io', or change the required key to one of the "
        "following keys which points to an IOManagerDefinition: ['io_manager']",
    ),
]


@pytest.fixture
def wrong(project: Project) -> Callable[[Mistake], Project]:
    """Make the mistake in a project."""

    def make(mistake: Mistake) -> Project:
        project.write(DEFS, mistake.text)
        for path, text in mistake.files.items():
            project.write(path, text)
        return project

    return make


@pytest.mark.parametrize("mistake", [*MISTAKES, *DAGSTERS_WORDS], ids=lambda mistake: mistake.name)
def test_the_first_line_says_where_and_what(
    mistake: Mistake,
    wrong: Callable[[Mistake], Project],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    project = wrong(mistake)

    of_yaml = project.check_yaml(monkeypatch)
    of_load = project.relative(str(project.load_error(monkeypatch)).splitlines()[0])

    record_property("yaml_mistake", [mistake.name, of_yaml, of_load])
    assert of_yaml == mistake.yaml_says
    assert of_load == mistake.says


def test_a_file_without_mistakes_has_none(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(DEFS, OK)

    assert project.check_yaml(monkeypatch) is None
    assert project.load(monkeypatch)


def test_an_empty_file_is_no_component(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(DEFS, "# nothing yet\n")

    assert "No components found in YAML file" in str(project.load_error(monkeypatch))


def test_an_attribute_without_a_value_is_not_given(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(DEFS, OK + "  asset:\n  ins:\n  redact:\n  check_granularity:\n")

    assert project.check_yaml(monkeypatch) is None
    assert project.load(monkeypatch)


def test_all_mistakes_of_a_component_are_said_at_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(
        DEFS, OK + "  filtr: true\n  row_sample: -1\n  asset: {group: sales, deps: [1]}\n"
    )

    lines = project.relative(str(project.load_error(monkeypatch))).splitlines()

    assert [line.partition(": ")[0] for line in lines if line.startswith(DEFS)] == [
        f"{DEFS}:6 - attributes.filtr",
        f"{DEFS}:8 - attributes.asset.group",
        f"{DEFS}:8 - attributes.asset.deps.0",
        f"{DEFS}:7 - attributes.row_sample",
    ]


def test_a_mistake_is_shown_in_the_lines_of_the_file(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(DEFS, OK + "  row_sample: -1\n")

    lines = str(project.load_error(monkeypatch)).splitlines()

    assert "   6 |   row_sample: -1" in lines
    assert "     |   ^ here" in lines


@pytest.mark.parametrize(
    ("code", "frames"),
    [
        ("def limit():\n    return 1 / 0\n\nlimit()\n", ["<module>", "limit"]),
        ("from .helper import limit\n", ["<module>", "<module>"]),
    ],
)
def test_an_exception_of_the_users_module_has_the_users_traceback_and_no_other(
    code: str, frames: list[str], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(DEFS, OK)
    project.write("orders/orders.py", code)
    project.write("orders/helper.py", "limit = 1 / 0\n")

    cause = project.load_error(monkeypatch).__cause__

    assert isinstance(cause, ZeroDivisionError)
    traceback = cause.__traceback__
    seen = []
    while traceback is not None:
        code_object = traceback.tb_frame.f_code
        if "importlib" not in code_object.co_filename:
            seen.append(code_object.co_name)
            assert Path(code_object.co_filename).is_relative_to(project.source)
        traceback = traceback.tb_next
    assert seen == frames


# --- the commands themselves -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dg_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that `dg` is run in, in a process of its own."""
    return new_project(tmp_path_factory.mktemp("dg"))


def dg_command(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(project.root / "src"),
        "COLUMNS": "1000",
    }
    return subprocess.run(
        [binaries / "dg", *arguments],
        cwd=project.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def warnings_in(result: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the warnings that a command printed, but those about Dagster packages of unlike versions."""
    lines = (result.stdout + result.stderr).splitlines()
    return [line for line in lines if "Warning" in line and "version mismatch" not in line]


@pytest.mark.parametrize(
    "mistake",
    [
        mistake
        for mistake in MISTAKES
        if mistake.name in ("a misspelt function", "a choice that is none")
    ],
    ids=lambda mistake: mistake.name,
)
def test_dg_check_defs_prints_the_line(mistake: Mistake, dg_project: Project) -> None:
    dg_project.write(DEFS, mistake.text)

    result = dg_command(dg_project, "check", "defs", "--use-active-venv")

    printed = dg_project.relative(result.stdout + result.stderr)
    assert result.returncode == 1
    assert (mistake.yaml_says or mistake.says) in printed


def test_dg_check_defs_prints_no_warning_where_all_is_well(dg_project: Project) -> None:
    dg_project.write(DEFS, OK)

    result = dg_command(dg_project, "check", "defs", "--use-active-venv")

    assert result.returncode == 0, result.stdout
    assert "All definitions loaded successfully." in result.stdout
    assert warnings_in(result) == []


def test_dg_list_components_lists_the_short_name_alone(dg_project: Project) -> None:
    result = dg_command(
        dg_project, "list", "components", "--package", "dagster_dataframely", "--json"
    )

    listed = re.findall(r'"key":\s*"([\w.]+)"', result.stdout)
    assert listed.count(TYPE) == 1
    assert [name for name in listed if name.endswith("Component")] == []
    assert warnings_in(result) == []
