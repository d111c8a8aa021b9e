"""What `dg scaffold defs` writes for the component types of this package.

A scaffolder says which files its component begins with, as text by name; `write_component` writes
all of them or none. The templates are in `component-templates/`, one folder a component.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import dagster as dg
from pydantic import BaseModel, ConfigDict, Field

from dagster_dataframely.components.attributes.references import resolve_function, resolve_schema
from dagster_dataframely.components.scaffold.python_source import (
    argument,
    assignment,
    class_name,
    docstring_text,
    identifier,
    import_line,
    quoted,
)
from dagster_dataframely.errors import DataframelyError, ScaffoldError

if TYPE_CHECKING:
    from dagster_dataframely.components.scaffold.inferred_schema import InferredSchema

# Each of these decides how Dagster loads a folder, so a folder that has one is taken.
_COMPONENT_FILES = ("defs.yaml", "defs.yml", "component.yaml", "component.py", "definitions.py")

_PACKAGE = "dagster_dataframely"
SCHEMA_MODULE = "schema"
FN_EXAMPLE = "my_project.sales.build_orders"
SCHEMA_EXAMPLE = "my_project.schemas.OrdersSchema"

# One of these words is a truth value or nothing where it stands alone in YAML.
_YAML_WORDS = {"false", "n", "no", "null", "off", "on", "true", "y", "yes"}

_Params = TypeVar("_Params", bound=BaseModel)


class DataframelyAssetScaffoldParams(BaseModel):
    """The options of `dg scaffold defs dagster_dataframely.DataframelyAsset`."""

    # Dagster hands the values over by the options' names, and then once more by the fields'.
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    fn: str | None = Field(
        default=None,
        description="An existing function that returns the rows; no function module is written.",
        examples=[FN_EXAMPLE],
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="An existing Dataframely schema; no schema module is written.",
        examples=[SCHEMA_EXAMPLE],
    )
    from_data: str | None = Field(
        default=None,
        description="A parquet, csv, ndjson or ipc file to infer the schema from, and to read.",
        examples=["data/orders.csv"],
    )
    key: str | None = Field(
        default=None,
        description="The asset key; without it, the folder's path below `defs`.",
        examples=["sales/orders"],
    )
    filter: bool = Field(
        default=False,
        description="Whether rows that fail an `error` rule are written to a table of their own.",
    )


class DataframelyAssetScaffolder(dg.Scaffolder[DataframelyAssetScaffoldParams]):
    """Scaffolds a `DataframelyAsset`: the component, its schema and its function."""

    @classmethod
    def get_scaffold_params(cls) -> type[DataframelyAssetScaffoldParams]:
        """Return the options."""
        return DataframelyAssetScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[DataframelyAssetScaffoldParams]) -> None:
        """Write the files of a new component, or none of them.

        Args:
            request: Where, under which options, and in YAML or in Python.

        Raises:
            ScaffoldError: The component cannot be written; `dg` shows the message alone.
        """
        write_component(request, _asset_files)


# --- shared by the scaffolders --------------------------------------------------------------------


@dataclass(frozen=True)
class Named:
    """A function or a class, by the module that has it; a leading dot is the component's folder."""

    module: str
    name: str

    @property
    def reference(self) -> str:
        """How YAML names it."""
        return f"{self.module}.{self.name}"

    @property
    def import_line(self) -> str:
        """How Python imports it."""
        return import_line(self.module, self.name)


@dataclass(frozen=True)
class Target:
    """Where a component is written, and the names that follow from it."""

    folder: Path
    #: The project's folder, where there is one.
    project: Path | None
    #: The folder's path below `defs`.
    path: tuple[str, ...]

    @property
    def key(self) -> str:
        """The asset key, as text: `sales/orders`."""
        parts = [identifier(part).strip("_") or "table" for part in self.path]
        if len(parts) == 1 and not _is_key(parts[0]):
            # A table called `class`, say, or `2024`.
            return f"table_{parts[0]}"
        return "/".join(parts)

    @property
    def stem(self) -> str:
        """What the modules, functions and classes are named after: `orders`."""
        return identifier(self.path[-1]).strip("_").lower() or "table"

    @property
    def function(self) -> Named:
        """The function that returns the rows, in a module of the folder."""
        module = identifier(self.stem)
        if module in (SCHEMA_MODULE, "component", "definitions", "template_vars"):
            module = f"{module}_table"
        return Named(f".{module}", f"build_{self.stem}")

    @property
    def schema(self) -> Named:
        """The schema, in a module of the folder."""
        stem = class_name(self.stem)
        return Named(f".{SCHEMA_MODULE}", f"{'Table' if stem[0].isdigit() else ''}{stem}Schema")


def write_component(
    request: dg.ScaffoldRequest[_Params],
    files: Callable[[Target, dg.ScaffoldRequest[_Params]], Mapping[str, str]],
) -> None:
    """Write the files of a component, all of them or none.

    Args:
        request: Dagster's request.
        files: Says what to write: the text of each file by its name, the component's own file last.

    Raises:
        ScaffoldError: The component cannot be written. Nothing is left of it then.
    """
    target = _target(request)
    with _nothing_left_behind(target):
        _refuse_folder(target, append=request.append)
        _write(target.folder, files(target, request))


def render(component: str, template: str, /, **values: Any) -> str:
    """Return a template of a component, filled in.

    Args:
        component: The component's folder in `component-templates/`.
        template: The name of the file that it makes, without the ending `.jinja`.
        **values: What the template names.
    """
    # Imported here for start-up time: every `dg` command imports this module, and few scaffold.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_templates() / component),
        # Python and YAML are written, where HTML's escapes would be wrong.
        autoescape=False,  # noqa: S701
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(f"{template}.jinja").render(**values)


def yaml_key(key: str) -> str:
    """Return an asset key as YAML, in quotes where it would be read as something else."""
    plain = "/" in key or (key.isidentifier() and key.lower() not in _YAML_WORDS)
    return key if plain else quoted(key)


def _templates() -> Path:
    package = Path(__file__).parents[2]
    installed = package / "component-templates"
    # An editable install has no copy: the package is `src/dagster_dataframely` in a checkout.
    return installed if installed.is_dir() else package.parent.parent / "component-templates"


# --- the folder -----------------------------------------------------------------------------------


def _target(request: dg.ScaffoldRequest[Any]) -> Target:
    folder = Path(request.target_path)
    if request.project_root is None:
        return Target(folder, None, (folder.name,))
    for defs in _defs_folders(request.project_root):
        if folder.is_relative_to(defs) and folder != defs:
            return Target(folder, request.project_root, folder.relative_to(defs).parts)
    return Target(folder, request.project_root, (folder.name,))


def _defs_folders(project: Path) -> Iterator[Path]:
    """Yield the folders that can hold a project's definitions, by its configuration."""
    for name, keys in (("dg.toml", ("project",)), ("pyproject.toml", ("tool", "dg", "project"))):
        settings: Any = {}
        with suppress(OSError, tomllib.TOMLDecodeError):
            settings = tomllib.loads((project / name).read_text(encoding="utf-8"))
        for key in keys:
            settings = settings.get(key, {}) if isinstance(settings, dict) else {}
        if not isinstance(settings, dict) or "root_module" not in settings:
            continue
        root = str(settings["root_module"])
        configured = settings.get("defs_module")
        for module in [configured] if configured else [f"{root}.defs", f"{root}.definitions"]:
            parts = str(module).split(".")
            yield project.joinpath("src", *parts)
            yield project.joinpath(*parts)


def _refuse_folder(target: Target, *, append: bool) -> None:
    if append:
        raise ScaffoldError(
            f"'{target.folder}' is a file, and this component is written to a folder of its own."
        )
    if ".." in target.folder.parts:
        raise ScaffoldError(
            f"'{target.folder}' leads out of the project's definitions, where Dagster does not look."
        )
    for part in target.path:
        if "." in part:
            suggestion = "/".join(each.replace(".", "_") for each in target.path)
            raise ScaffoldError(
                f"A folder named '{part}' cannot hold Python modules, because of the dot in its "
                f"name. Write '{suggestion}'."
            )
    _refuse_present(target.folder, _COMPONENT_FILES)


@contextmanager
def _nothing_left_behind(target: Target) -> Iterator[None]:
    """Remove the folder when it stays empty, and show an error of this package as one sentence."""
    try:
        yield
    except BaseException as error:
        # `dg` has made the folder and its parents before it asks for their files.
        for folder in (target.folder, *list(target.folder.parents)[: len(target.path) - 1]):
            try:
                folder.rmdir()
            except OSError:
                break
        if isinstance(error, DataframelyError):
            raise _ShownScaffoldError(str(error)) from error
        raise


class _ShownScaffoldError(ScaffoldError, click.ClickException):
    """A `ScaffoldError` that a command line shows as a sentence, and not as a traceback."""


def _refuse_present(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if (folder / name).exists():
            raise ScaffoldError(
                f"'{folder}' has a {name} already, and nothing is overwritten. Choose another path."
            )


def _write(folder: Path, files: Mapping[str, str]) -> None:
    _refuse_present(folder, files)
    written: list[Path] = []
    try:
        for name, text in files.items():
            path = folder / name
            with path.open("x", encoding="utf-8", newline="\n") as file:
                written.append(path)
                file.write(text)
    except BaseException as error:
        for path in written:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ScaffoldError(f"'{folder}' cannot be written: {error}.") from error
        raise


# --- DataframelyAsset -----------------------------------------------------------------------------


def _asset_files(
    target: Target, request: dg.ScaffoldRequest[DataframelyAssetScaffoldParams]
) -> Mapping[str, str]:
    params = request.params
    if params.schema_ is not None and params.from_data is not None:
        raise ScaffoldError(
            "--from-data infers a schema, and --schema names one that exists. Give one of the two."
        )
    key = target.key if params.key is None else checked_key(params.key, "--key")
    with importing_from(target.project):
        function = existing(params.fn, "--fn", FN_EXAMPLE, resolve_function) or target.function
        schema = (
            existing(params.schema_, "--schema", SCHEMA_EXAMPLE, resolve_schema) or target.schema
        )

    files: dict[str, str] = {}
    names = {
        "key": key,
        "function": function.name,
        "schema_class": schema.name,
        "import_schema": schema.import_line,
    }
    module = f"{function.module.removeprefix('.')}.py"
    if params.from_data is not None:
        schema_text, function_text = _from_data(
            target, params.from_data, names, renames=params.fn is None
        )
        files[f"{SCHEMA_MODULE}.py"] = schema_text
        if params.fn is None:
            files[module] = function_text
    else:
        if params.schema_ is None:
            files[f"{SCHEMA_MODULE}.py"] = _render("schema.py", **names)
        if params.fn is None:
            template = "function.py" if params.schema_ is None else "empty_function.py"
            files[module] = _render(template, **names)
    if request.scaffold_format == "python":
        files["component.py"] = _component_module(request.type_name, function, schema, params, key)
    else:
        files["defs.yaml"] = _render(
            "defs.yaml",
            key=key,
            key_in_yaml=yaml_key(key),
            type=request.type_name,
            fn=function.reference,
            schema=schema.reference,
            filter=params.filter,
        )
    return files


def _render(template: str, **values: Any) -> str:
    return render("dataframely_asset", template, **values)


def _component_module(
    type_name: str,
    function: Named,
    schema: Named,
    params: DataframelyAssetScaffoldParams,
    key: str,
) -> str:
    module, _, component = type_name.rpartition(".")
    named = [Named(module, component), function, schema]
    return _render(
        "component.py",
        key=key,
        component_class=component,
        imports=import_blocks(named),
        load=next(name for name in ("load", "load_component") if name != function.name),
        function=function.name,
        schema_class=schema.name,
        filter=params.filter,
        key_argument=argument("asset", f'{{"key": dg.AssetKey({key.split("/")})}}', indent=8),
    )


def import_blocks(imported: Iterable[Named]) -> list[list[str]]:
    """Return import lines in isort's blocks: installed packages, the project's modules, relative."""
    names: dict[str, list[str]] = {}
    for each in imported:
        names.setdefault(each.module, []).append(each.name)
    blocks: list[list[str]] = [["import dagster as dg"], [], []]
    for module in sorted(names):
        package = module.partition(".")[0]
        block = 2 if not package else 0 if package == _PACKAGE else 1
        blocks[block].append(import_line(module, *names[module]))
    return [block for block in blocks if block]


def _from_data(
    target: Target, given: str, names: Mapping[str, str], *, renames: bool
) -> tuple[str, str]:
    """Return the module of a file's schema, and that of the function which reads the file."""
    # Imported here for start-up time: it imports Dataframely and Polars.
    from dagster_dataframely.components.scaffold.inferred_schema import infer_from_file

    file = Path(given)
    inferred = infer_from_file(file, schema=names["schema_class"], renames=renames)
    project_depth, path = _file_path(target, file)
    shown = docstring_text(file.name)
    schema_module = _schema_module(inferred, names, shown)
    function_module = _render(
        "file_function.py",
        **names,
        file=shown,
        project_depth=project_depth,
        assign_file=assignment("FILE", path),
        reader=inferred.reader,
        reader_arguments=inferred.reader_arguments,
        is_told_dtypes=inferred.is_told_dtypes,
        renamed={quoted(old): quoted(new) for old, new in inferred.renamed.items()},
    )
    return schema_module, function_module


def inferred_schema_module(given: str, key: str, schema: Named) -> str:
    """Return the module of the schema that is inferred from a file."""
    # Imported here for start-up time: it imports Dataframely and Polars.
    from dagster_dataframely.components.scaffold.inferred_schema import infer_from_file

    file = Path(given)
    inferred = infer_from_file(file, schema=schema.name, renames=False)
    names = {"key": key, "schema_class": schema.name}
    return _schema_module(inferred, names, docstring_text(file.name))


def _schema_module(inferred: InferredSchema, names: Mapping[str, str], file: str) -> str:
    return _render(
        "inferred_schema.py",
        **names,
        file=file,
        body=inferred.body,
        has_proposals=inferred.has_proposals,
        proposal_imports=inferred.proposal_imports,
    )


def _file_path(target: Target, file: Path) -> tuple[int | None, str]:
    """Return how the function's module finds a file.

    Returns:
        For a file of the project, by how many folders the module lies below the project, and the path from
        there, so that a checkout elsewhere works too. For any other file, None and the full path.
    """
    # Not resolved: a link in the project stands for what it leads to on each machine.
    path = Path(os.path.normpath(file.absolute()))
    project = target.project
    if project is None or not (
        path.is_relative_to(project) and target.folder.is_relative_to(project)
    ):
        return None, str(path)
    return len(target.folder.relative_to(project).parts), path.relative_to(project).as_posix()


# --- options --------------------------------------------------------------------------------------


def checked_key(key: str, option: str) -> str:
    """Return the asset key that an option names, or say what a key looks like."""
    if not _is_key(key):
        raise ScaffoldError(
            f"{option} '{key}' is not an asset key: its parts have letters, digits, '_', '-' and '.', "
            "and '/' stands between them, as in 'sales/orders'. A key of one part begins with a "
            "letter, and is no word that Python or Dagster reserves."
        )
    return key


def _is_key(key: str) -> bool:
    """Say whether Dagster takes a text for an asset key, and in YAML for a text."""
    parts = key.split("/")
    if not all(re.fullmatch(r"[A-Za-z0-9_.-]+", part) for part in parts):
        return False
    if len(parts) == 1 and not re.match(r"[A-Za-z_]", key):
        # Quoted or not, Dagster's templates make a number of `2024`.
        return False
    try:
        dg.asset(key=dg.AssetKey(parts))(lambda: None)
    except dg.DagsterInvalidDefinitionError:
        return False
    return True


def existing(
    reference: str | None,
    option: str,
    example: str,
    resolve: Callable[[dg.ResolutionContext, object], object],
) -> Named | None:
    """Return what an option names, once it is known to be there."""
    if reference is None:
        return None
    if reference.startswith("."):
        raise ScaffoldError(
            f"{option} '{reference}' begins with a dot, which is the folder of the new component. "
            f"Write the full name, such as '{example}'."
        )
    try:
        resolve(dg.ResolutionContext.default(), reference)
    except DataframelyError as error:
        raise ScaffoldError(f"{option}: {error}") from error
    except Exception as error:
        raise ScaffoldError(
            f"{option} '{reference}' cannot be imported: its module raises {_told(error)}."
        ) from error
    module, _, name = reference.rpartition(".")
    return Named(module, name)


def _told(error: Exception) -> str:
    """Return an error of the user's own module as text: what it says, and where it was raised."""
    if isinstance(error, SyntaxError):
        said, file, line = error.msg, error.filename, error.lineno
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        said, file, line = str(error), frame.filename, frame.lineno
    return f"{type(error).__name__}: {said} ({file}, line {line})"


@contextmanager
def importing_from(project: Path | None) -> Iterator[None]:
    """Make a project's own modules importable, where it is not installed."""
    before = list(sys.path)
    if project is not None:
        sys.path += [str(project / "src"), str(project)]
    try:
        yield
    finally:
        sys.path[:] = before
