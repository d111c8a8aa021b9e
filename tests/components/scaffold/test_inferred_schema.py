"""`--from-data`: the schema that is inferred from a file, and the function that reads the file."""

from __future__ import annotations

import ast
import datetime as dt
import decimal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import dataframely as dy
import polars as pl
import pytest
from dagster.components.testing import DefsFolderSandbox, create_defs_folder_sandbox
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from polars.testing.parametric import column, dataframes

from dagster_dataframely import DataframelyAsset
from dagster_dataframely.components.scaffold.inferred_schema import (
    InferredSchema,
    infer_from_file,
    infer_from_frame,
    read_data,
)
from dagster_dataframely.errors import ScaffoldError


def rows() -> pl.DataFrame:
    """A function for assets that are only built."""
    return pl.DataFrame()


def inferred(frame: pl.DataFrame, *, renames: bool = True) -> InferredSchema:
    return infer_from_frame(frame, reader="read_parquet", schema="Schema", renames=renames)


def declared(frame: pl.DataFrame) -> list[str]:
    """The lines that declare columns, without the comments above them."""
    lines = inferred(frame).body.splitlines()
    return [line.strip() for line in lines if not line.startswith("    #")]


def proposed(values: Any, dtype: Any = None) -> str:
    """The arguments that are proposed for a column of these values."""
    body = inferred(pl.DataFrame({"x": pl.Series(values, dtype=dtype)})).body
    return " ".join(line.strip(" #") for line in body.splitlines() if line.startswith("    #"))


def schema_class(result: InferredSchema, *, with_proposals: bool = False) -> type[dy.Schema]:
    """The class that the source makes: as it stands, or with every proposal taken up."""
    imports = "import datetime as dt, decimal, zoneinfo\nimport dataframely as dy\n"
    tree = ast.parse(f"{imports}class Schema(dy.Schema):\n{result.body}\n")
    if with_proposals:
        [definition] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for member, arguments in zip(definition.body, _comments(result.body), strict=True):
            assert isinstance(member, ast.Assign)
            assert isinstance(member.value, ast.Call)
            proposal = ast.parse(f"dy.Column({arguments})", mode="eval").body
            assert isinstance(proposal, ast.Call)
            member.value.keywords += proposal.keywords
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(ast.fix_missing_locations(tree), "schema.py", "exec"), namespace)
    return namespace["Schema"]


def _comments(body: str) -> Iterator[str]:
    """Yield the proposals above each column."""
    comments = ""
    for line in body.splitlines():
        if line.startswith("    # "):
            text = line.removeprefix("    # ")
            is_proposal = not text.endswith(" in the file") and not text.startswith("The file has")
            comments += f"{text} " if is_proposal else ""
        elif line.startswith("    ") and line[4:].partition(" = ")[0].isidentifier():
            yield comments
            comments = ""


# --- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "call"),
    [
        (pl.Series([1, 2]), "dy.Int64()"),
        (pl.Series([1, None]), "dy.Int64(nullable=True)"),
        (pl.Series([None], dtype=pl.Null), "dy.Any()"),
        (pl.Series([1], dtype=pl.Int128), "dy.Any()"),
        (pl.Series([1.5, float("nan")]), "dy.Float64(allow_nan=True)"),
        (pl.Series([1.5, float("inf")]), "dy.Float64(allow_inf=True)"),
        (pl.Series([dt.datetime(2026, 1, 1)]), "dy.Datetime()"),
        (
            pl.Series([dt.datetime(2026, 1, 1)], dtype=pl.Datetime("ns", "Europe/Paris")),
            'dy.Datetime(time_zone="Europe/Paris", time_unit="ns")',
        ),
        (
            pl.Series([decimal.Decimal("1.50")], dtype=pl.Decimal(10, 2)),
            "dy.Decimal(precision=10, scale=2)",
        ),
        (pl.Series(["a"], dtype=pl.Categorical), "dy.Categorical()"),
        (
            pl.Series(["a"], dtype=pl.Enum(["a", "it's", 'say "b"'])),
            'dy.Enum(["a", "it\'s", \'say "b"\'])',
        ),
        (pl.Series([[1, None], [2]]), "dy.List(dy.Int64(nullable=True))"),
        (pl.Series([[1.0, float("nan")]]), "dy.List(dy.Float64(allow_nan=True))"),
        (pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2)), "dy.Array(dy.Int64(), shape=2)"),
        (
            pl.Series([{"a b": 1, 'c"d': [{"\\": "x"}]}]),
            'dy.Struct({"a b": dy.Int64(), \'c"d\': dy.List(dy.Struct({"\\\\": dy.String()}))})',
        ),
        # Polars takes `*` for all fields.
        (pl.Series([{"*": 1}]), "dy.Any()"),
    ],
)
def test_a_column_is_declared_with_what_its_values_have(values: pl.Series, call: str) -> None:
    frame = values.to_frame("x")

    assert "".join(declared(frame)).replace(",)", ")") == f"x = {call}"
    schema_class(inferred(frame)).validate(frame)


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (["order_id"], ["order_id = dy.Int64()"]),
        (["Order ID"], ['order_id = dy.Int64(alias="Order ID")']),
        (["N° de commande"], ['n_de_commande = dy.Int64(alias="N° de commande")']),
        (["Prénom"], ['prenom = dy.Int64(alias="Prénom")']),
        (['6" pipe'], ["_6_pipe = dy.Int64(alias='6\" pipe')"]),
        (["a\\b\n"], ['a_b = dy.Int64(alias="a\\\\b\\n")']),
        (["2024"], ['_2024 = dy.Int64(alias="2024")']),
        (["class"], ['class_ = dy.Int64(alias="class")']),
        # A method of every schema, the names of modules, and a name that Python mangles.
        (["filter"], ['filter_ = dy.Int64(alias="filter")']),
        (["dy", "pl"], ['dy_ = dy.Int64(alias="dy")', 'pl_ = dy.Int64(alias="pl")']),
        (["__id"], ['id = dy.Int64(alias="__id")']),
        # The column that has a name plainly keeps it.
        (["A b", "a_b"], ['a_b_2 = dy.Int64(alias="A b")', "a_b = dy.Int64()"]),
        (["価格"], ['column_1 = dy.Int64(alias="価格")']),
    ],
)
def test_odd_names_are_kept_by_an_alias(columns: list[str], lines: list[str]) -> None:
    frame = pl.DataFrame([[1]] * len(columns), schema=columns)

    assert declared(frame) == lines
    schema = schema_class(inferred(frame))
    assert schema.column_names() == columns
    schema.validate(frame)


@pytest.mark.parametrize(
    ("columns", "renamed"),
    [
        (["dy_valid"], {"dy_valid": "valid"}),
        (["dy_valid", "valid"], {"dy_valid": "valid_2"}),
        (["", "a"], {"": "column_1"}),
        # Both would report as dy_rule__order_id__nullability.
        (["order id", "order-id"], {"order-id": "order_id_2"}),
        (["名前", "価格"], {"価格": "column_2"}),
        (["a|nullability"], {"a|nullability": "a_nullability"}),
        (["primary_key"], {"primary_key": "primary_key_2"}),
        (["*"], {"*": "column_1"}),
        (["^a.*$"], {"^a.*$": "a"}),
    ],
)
def test_names_that_a_table_cannot_have_are_changed(
    columns: list[str], renamed: Mapping[str, str]
) -> None:
    frame = pl.DataFrame([[1]] * len(columns))
    frame.columns = columns

    result = inferred(frame)

    assert result.renamed == renamed
    names = [renamed.get(name, name) for name in columns]
    assert schema_class(result).column_names() == names
    # An asset refuses reserved names, and two checks of one name.
    DataframelyAsset(fn=rows, schema=schema_class(result)).build_asset()


def test_such_columns_are_left_out_where_nothing_can_change_them() -> None:
    result = inferred(pl.DataFrame({"a": [1], "dy_valid": [True]}), renames=False)

    assert result.renamed == {}
    assert schema_class(result).column_names() == ["a"]
    assert result.body.endswith('# Left out, because a table cannot have such a column: "dy_valid"')


def test_a_file_of_such_columns_only_is_refused_then() -> None:
    with pytest.raises(ScaffoldError) as raised:
        inferred(pl.DataFrame({"dy_valid": [True]}), renames=False)

    assert str(raised.value) == (
        "No column of the file can be in a table under its own name, and the function given by --fn would "
        'have to rename them: "dy_valid".'
    )


# --- proposals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype", "arguments"),
    [
        ([3, 1, 2], None, "primary_key=True, min=1, max=3"),
        ([3, 1, None], None, "min=1, max=3"),
        ([2, 1, 2], None, "is_in=[1, 2]"),
        ([*range(19), 0], None, f"is_in={list(range(19))}"),
        ([*range(20), 0], None, "min=0, max=19"),
        ([1.5, 0.5, 0.5], None, "min=0.5, max=1.5"),
        ([1.5, float("nan")], None, ""),
        ([True, False, True], None, ""),
        (["DE", "FR", "DE"], None, 'check={"known": lambda column: column.is_in(["DE", "FR"])}'),
        (["a", "bcd"], None, "primary_key=True, min_length=1, max_length=3"),
        (["", "é", None], None, "max_length=2"),
        (["x" * 50, "x" * 50], None, "min_length=50, max_length=50"),
        (
            [dt.date(2026, 1, 1), dt.date(2026, 2, 1)],
            None,
            "primary_key=True, min=dt.date(2026, 1, 1), max=dt.date(2026, 2, 1)",
        ),
        (
            [dt.datetime(2026, 1, 1), None],
            pl.Datetime("us", "UTC"),
            "min=dt.datetime(2026, 1, 1, 0, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC')), "
            "max=dt.datetime(2026, 1, 1, 0, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC'))",
        ),
        # After the year 9999, which is Python's last.
        ([10_000_000, None], pl.Date, ""),
        (
            [decimal.Decimal("1.50"), decimal.Decimal("1.50")],
            pl.Decimal(10, 2),
            "min=decimal.Decimal('1.50'), max=decimal.Decimal('1.50')",
        ),
        ([[1], [2]], None, ""),
        ([None, None], pl.String, ""),
        ([7], None, "min=7, max=7"),
    ],
)
def test_arguments_that_the_values_satisfy_are_proposed(
    values: list[Any], dtype: Any, arguments: str
) -> None:
    assert proposed(values, dtype) == arguments


def test_one_column_is_proposed_as_key_and_the_first_that_can_be() -> None:
    body = inferred(
        pl.DataFrame({"weight": [1.5, 2.5], "id": [1, 2], "name": ["a", "b"], "kind": ["x", "x"]})
    ).body

    assert body.count("primary_key=True") == 1
    assert "    # primary_key=True, min=1, max=2\n    id = dy.Int64()" in body


def test_a_long_proposal_is_broken_between_values() -> None:
    body = inferred(
        pl.DataFrame(
            {"city": [f"{name}, Germany" for name in ("Köln", "Bonn", "Trier", "Worms")] * 2}
        )
    ).body

    assert body.splitlines()[:2] == [
        '    # check={"known": lambda column: column.is_in(["Bonn, Germany", "Köln, Germany",',
        '    # "Trier, Germany", "Worms, Germany"])}',
    ]


# --- properties -----------------------------------------------------------------------------------

NAMES = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="ab_ -\"'\\\né名", max_size=90),
    st.sampled_from(["", "dy_x", "filter", "class", "__x", "a b", "a_b", "A B", "dy", "*", "^a$"]),
)
LEAVES: list[Any] = [
    pl.Int8,
    pl.UInt64,
    pl.Float32,
    pl.Float64,
    pl.String,
    pl.Binary,
    pl.Boolean,
    pl.Date,
    pl.Time,
    pl.Datetime("ms", "Europe/Paris"),
    pl.Datetime("ns"),
    pl.Duration("us"),
]
DTYPES = st.one_of(
    st.sampled_from([*LEAVES, pl.Decimal(20, 3), pl.Categorical, pl.Null, pl.Int128]),
    st.lists(st.text(max_size=20), min_size=1, max_size=6, unique=True).map(pl.Enum),
    st.sampled_from(LEAVES).map(pl.List),
    st.sampled_from(LEAVES).map(lambda dtype: pl.Array(dtype, 2)),
    st.dictionaries(NAMES, st.sampled_from(LEAVES), min_size=1, max_size=3).map(pl.Struct),
)


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """Frames of few rows, of any dtype, under any names."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    columns = [
        column(f"column_{position}", dtype=draw(DTYPES), allow_null=draw(st.booleans()))
        for position, _ in enumerate(names)
    ]
    frame = draw(dataframes(columns, max_size=6))
    frame.columns = names
    return frame


@given(frames())
def test_a_frame_satisfies_the_schema_inferred_from_it_and_every_proposal(
    frame: pl.DataFrame,
) -> None:
    result = inferred(frame)
    table = frame.clone()
    table.columns = [result.renamed.get(name, name) for name in frame.columns]

    for with_proposals in (False, True):
        schema = schema_class(result, with_proposals=with_proposals)
        assert schema.column_names() == table.columns
        schema.validate(table)


def test_any_schema_is_formatted_as_ruff_formats_it(tmp_path: Path) -> None:
    pytest.importorskip("ruff", reason="ruff is in the dependency group `lint`")

    @given(frames())
    def write(frame: pl.DataFrame) -> None:
        number = sum(1 for _ in tmp_path.iterdir())
        module = f"import dataframely as dy\n\n\nclass Schema(dy.Schema):\n{inferred(frame).body}\n"
        (tmp_path / f"schema_{number}.py").write_text(module)

    write()
    command = [sys.executable, "-m", "ruff", "format", "--diff", "--isolated", "--no-cache"]
    ruff = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=False)

    assert ruff.returncode == 0, ruff.stdout


# --- files ----------------------------------------------------------------------------------------

ORDERS = pl.DataFrame(
    {
        "Order ID": [1, 2, 3],
        "customer": ["Zoé", "Åsa", None],
        "day": [dt.date(2026, 1, 1), dt.date(2026, 1, 2), None],
        "paid at": [dt.datetime(2026, 1, 1, 12), None, None],
        "empty": pl.Series([None, None, None], dtype=pl.String),
        "amount": [1.5, 2.0, None],
    }
)
NESTED = ORDERS.with_columns(
    lines=pl.Series([[{"sku": "a", "n b": 1}], [], None]),
    point=pl.Series([{"x": 1.0, "y": [1, 2]}, {"x": None, "y": []}, None]),
)
TYPED = NESTED.with_columns(
    pl.col("customer").cast(pl.Categorical),
    pl.col("paid at").dt.replace_time_zone("Europe/Paris"),
    pl.col("amount").cast(pl.Decimal(10, 2)),
    nothing=pl.lit(None),
    status=pl.Series(["new", "paid", "new"], dtype=pl.Enum(["new", "paid"])),
    span=pl.Series([dt.timedelta(1), None, dt.timedelta(2)]),
    pair=pl.Series([[1, 2], [3, 4], None], dtype=pl.Array(pl.Int16, 2)),
)


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[DefsFolderSandbox]:
    with create_defs_folder_sandbox() as sandbox:
        monkeypatch.chdir(sandbox.project_root)
        yield sandbox


def scaffolded_function(sandbox: DefsFolderSandbox, file: str) -> str:
    """Scaffold from a file, and return the module of the function that reads it."""
    folder = sandbox.scaffold_component(
        component_cls=DataframelyAsset, defs_path="orders", scaffold_params={"from_data": file}
    )
    return (folder / "orders.py").read_text()


def table(sandbox: DefsFolderSandbox) -> pl.DataFrame:
    """Run the scaffolded asset, and return what it has written."""
    with sandbox.build_all_defs() as defs:
        assets = [asset for asset in defs.assets or [] if isinstance(asset, dg.AssetsDefinition)]
        result = dg.materialize(assets, resources={"io_manager": dg.mem_io_manager})
    return result.asset_value(dg.AssetKey(["orders"]))


@pytest.mark.parametrize(
    ("name", "frame", "write"),
    [
        ("orders.csv", ORDERS, pl.DataFrame.write_csv),
        ("ORDERS.CSV", ORDERS, pl.DataFrame.write_csv),
        ("orders.ndjson", NESTED, pl.DataFrame.write_ndjson),
        ("orders.jsonl", NESTED, pl.DataFrame.write_ndjson),
        ("orders.parquet", TYPED, pl.DataFrame.write_parquet),
        ("orders.arrow", TYPED, pl.DataFrame.write_ipc),
        ("orders.ipc", TYPED, pl.DataFrame.write_ipc),
        ("orders.feather", TYPED, pl.DataFrame.write_ipc),
        ("no rows.parquet", TYPED.clear(), pl.DataFrame.write_parquet),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_scaffolded_function_reads_the_file_as_the_schema_says(
    sandbox: DefsFolderSandbox,
    name: str,
    frame: pl.DataFrame,
    write: Callable[[pl.DataFrame, Path], None],
) -> None:
    write(frame, Path(name))

    scaffolded_function(sandbox, name)

    assert_frame_equal(table(sandbox), read_data(Path(name)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("orders.csv", 'a,a,,dy_b,b c,b-c,"d\ne"\n1,2,3,4,5,6,7\n'),
        ("huge.csv", "a,b\n99999999999999999999,x\n1,y\n"),
        ("orders.ndjson", '{"a": null, "dy_b": 1}\n{"a": null, "dy_b": 2}\n'),
    ],
)
def test_a_text_file_that_a_schema_cannot_describe_is_read_as_it_was_inferred(
    sandbox: DefsFolderSandbox, name: str, text: str
) -> None:
    Path(name).write_text(text)

    function = scaffolded_function(sandbox, name)

    assert "infer_schema_length=None" in function
    assert "create_empty" not in function
    assert table(sandbox).rows() == read_data(Path(name)).rows()


def test_a_text_file_is_read_by_the_dtypes_that_the_schema_has_later(
    sandbox: DefsFolderSandbox,
) -> None:
    Path("places.csv").write_text("zip,name\n01067,Dresden\n")
    scaffolded_function(sandbox, "places.csv")
    schema = sandbox.defs_folder_path / "orders" / "schema.py"

    schema.write_text(schema.read_text().replace("zip = dy.Int64()", "zip = dy.String()"))

    assert table(sandbox).rows() == [("01067", "Dresden")]


def test_rows_beyond_the_first_hundred_count_too(sandbox: DefsFolderSandbox) -> None:
    Path("late.csv").write_text("a\n" + "1\n" * 200 + "x\n")
    Path("late.ndjson").write_text('{"a": 1}\n' * 200 + '{"a": 1.5, "b": 2}\n')

    csv = infer_from_file(Path("late.csv"), schema="Schema", renames=True)
    ndjson = infer_from_file(Path("late.ndjson"), schema="Schema", renames=True)

    assert "a = dy.String()" in csv.body
    assert "a = dy.Float64()" in ndjson.body
    assert "b = dy.Int64(nullable=True)" in ndjson.body


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "'empty.csv' is empty, so there is nothing to infer a schema from."),
        (
            "empty.parquet",
            b"",
            "'empty.parquet' is empty, so there is nothing to infer a schema from.",
        ),
        ("blank.csv", b"\n\n", "'blank.csv' is empty, so there is nothing to infer a schema from."),
        (
            "none.ndjson",
            b"{}\n",
            "'none.ndjson' has no columns, so there is nothing to infer a schema from.",
        ),
        (
            "orders.xlsx",
            b"x",
            "'orders.xlsx' ends in '.xlsx'; --from-data reads files that end in '.parquet', '.csv', '.ndjson', "
            "'.jsonl', '.arrow', '.ipc' and '.feather'.",
        ),
        ("orders", b"x", "'orders' has no extension; --from-data reads files that end in "),
        (
            "broken.parquet",
            b"not parquet at all",
            "Polars cannot read 'broken.parquet' with pl.read_parquet: ",
        ),
        (
            "latin.csv",
            "a\né\n".encode("latin-1"),
            "Polars cannot read 'latin.csv' with pl.read_csv: invalid utf-8",
        ),
        (
            "orders[1].csv",
            b"a\n1\n",
            "has one of the characters '*', '?' and '[', with which Polars reads many files at once. Rename "
            "the file or its folder.",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)

    with pytest.raises(ScaffoldError) as raised:
        read_data(Path(name))

    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("order.csv", "There is no file 'order.csv'. Did you mean 'orders.csv'?"),
        ("data/order.csv", "There is no file 'data/order.csv'. There is no folder 'data' either."),
        ("flights.parquet", "There is no file 'flights.parquet'. '.' has 'orders.csv'."),
        ("folder", "'folder' is a folder; --from-data takes one file."),
    ],
)
def test_a_file_that_is_not_there_is_refused_with_what_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.csv").write_text("a\n1\n")
    Path("notes.txt").write_text("")
    Path("folder").mkdir()

    with pytest.raises(ScaffoldError) as raised:
        read_data(Path(file))

    assert str(raised.value) == message
