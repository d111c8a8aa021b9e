"""What the components of this package share: their attributes, and how these are read from YAML."""

from __future__ import annotations

import functools
import inspect
import re
import typing
import warnings
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from dagster_dataframely.components.json_schema import attributes_schema
from dagster_dataframely.components.mistakes import (
    Mistake,
    MistakesFound,
    admits_text,
    is_template,
    located,
    raise_located,
    raise_mistakes,
    read_attributes,
    validate_type,
)
from dagster_dataframely.components.references import resolve_function, resolve_schema
from dagster_dataframely.errors import (
    DataframelyError,
    InvalidFunctionError,
    InvalidSettingError,
)
from dagster_dataframely.upstream.dagster_components import (
    AssetSpecUpdateKwargs,
    OpSpec,
    ResolutionException,
    YamlPath,
    context_of_build,
    resolve_asset_attributes,
)

if TYPE_CHECKING:
    from typing import Self

    import dataframely as dy

    SchemaClass: TypeAlias = type[dy.Schema]
else:
    # Pydantic reads annotations at import, and Dataframely is to be imported when an asset is built, for
    # start-up time. What was given is checked then.
    SchemaClass = Any


# --- values ------------------------------------------------------------------------------------------


#: A whole number from 0; `true` is none.
Count: TypeAlias = Annotated[int, Field(strict=True, ge=0)]


def _render(context: dg.ResolutionContext, value: Any) -> Any:
    """Render templates, and leave plain text alone: Dagster would make a number of a column named "007"."""
    if isinstance(value, (list, tuple)):
        return [_render(context.at_path(index), each) for index, each in enumerate(value)]
    if isinstance(value, str) and not is_template(value):
        return value
    return context.resolve_value(value, as_type=object)


def _resolve_folder(context: dg.ResolutionContext, value: Any) -> Path | None:
    rendered = _render(context, value)
    return rendered if rendered is None else Path(rendered)


def _advanced(label: str) -> dg.ComponentFormConfig:
    return dg.ComponentFormConfig(label=label, advanced=True)


# --- attributes --------------------------------------------------------------------------------------

FunctionAttribute: TypeAlias = Annotated[
    Callable[..., Any],
    dg.Resolver(
        located(resolve_function),
        model_field_type=str,
        inject_before_resolve=False,
        description=(
            "The function that returns the rows, as `module.function`; a leading dot is this folder. It "
            "returns a pl.DataFrame, a pl.LazyFrame, a dg.MaterializeResult around either, or None to write "
            "nothing."
        ),
        examples=[".orders.build_orders", "my_project.orders.build_orders"],
        form_config=dg.ComponentFormConfig(
            label="Function", placeholder="my_project.orders.build_orders", id_source=True
        ),
    ),
]

SchemaAttribute: TypeAlias = Annotated[
    SchemaClass,
    dg.Resolver(
        located(resolve_schema),
        # A field cannot be called `schema`, because Pydantic's base class has a method of that name.
        model_field_name="schema",
        model_field_type=str,
        inject_before_resolve=False,
        description=(
            "The Dataframely schema of the table, as `module.Schema`; a leading dot is this folder."
        ),
        examples=[".schema.OrdersSchema", "my_project.schemas.OrdersSchema"],
        form_config=dg.ComponentFormConfig(
            label="Schema", placeholder="my_project.schemas.OrdersSchema"
        ),
    ),
]

FilterAttribute: TypeAlias = Annotated[
    bool,
    dg.Resolver(
        located(_render),
        model_field_type=bool,
        inject_before_resolve=False,
        description=(
            "Whether rows that fail an `error` rule are written to `<key>__error_rows` and the others to the "
            "table. By default such a row fails the run and nothing is written."
        ),
        examples=[True],
        form_config=dg.ComponentFormConfig(label="Filter error rows"),
    ),
]

StreamAttribute: TypeAlias = Annotated[
    bool,
    dg.Resolver(
        located(_render),
        model_field_type=bool,
        inject_before_resolve=False,
        description=(
            "Whether a returned pl.LazyFrame is validated without being collected: it is executed once, into a "
            "staging file, so that a table larger than memory can be written."
        ),
        examples=[True],
        form_config=dg.ComponentFormConfig(label="Stream"),
    ),
]

CheckGranularityAttribute: TypeAlias = Annotated[
    Literal["rule", "column", "schema"] | None,
    dg.Resolver(
        located(_render),
        model_field_type=Literal["rule", "column", "schema"] | None,
        inject_before_resolve=False,
        description=(
            "One asset check for each `rule`, each `column`, or the whole `schema`. By default `rule`, or what "
            "DAGSTER_DATAFRAMELY_CHECK_GRANULARITY says."
        ),
        examples=["column"],
        form_config=_advanced("Check granularity"),
    ),
]

SchemaRulesAttribute: TypeAlias = Annotated[
    Literal["collapsed", "per_rule"] | None,
    dg.Resolver(
        located(_render),
        model_field_type=Literal["collapsed", "per_rule"] | None,
        inject_before_resolve=False,
        description=(
            "With `check_granularity: column`, whether the rules that belong to no column are `collapsed` into "
            "one check or have one each, `per_rule`. By default `collapsed`, or what "
            "DAGSTER_DATAFRAMELY_SCHEMA_RULES says."
        ),
        examples=["per_rule"],
        form_config=_advanced("Schema rules"),
    ),
]

StatisticsAttribute: TypeAlias = Annotated[
    bool | None,
    dg.Resolver(
        located(_render),
        model_field_type=bool | None,
        inject_before_resolve=False,
        description=(
            "Whether a materialization carries statistics of the written table. By default true, or what "
            "DAGSTER_DATAFRAMELY_STATISTICS says."
        ),
        examples=[False],
        form_config=_advanced("Statistics"),
    ),
]

MaxFailureSamplesAttribute: TypeAlias = Annotated[
    Count | None,
    dg.Resolver(
        located(_render),
        model_field_type=Count | None,
        inject_before_resolve=False,
        description=(
            "How many failing rows a check shows; 0 shows none. By default 5, or what "
            "DAGSTER_DATAFRAMELY_MAX_FAILURE_SAMPLES says."
        ),
        examples=[10],
        form_config=_advanced("Failing rows shown"),
    ),
]

RowSampleAttribute: TypeAlias = Annotated[
    Count | None,
    dg.Resolver(
        located(_render),
        model_field_type=Count | None,
        inject_before_resolve=False,
        description=(
            "How many rows of the table, and of the error rows, a materialization shows; 0 shows none. By "
            "default 5, or what DAGSTER_DATAFRAMELY_ROW_SAMPLE says."
        ),
        examples=[0],
        form_config=_advanced("Rows shown"),
    ),
]

RedactAttribute: TypeAlias = Annotated[
    Sequence[str] | None,
    dg.Resolver(
        located(_render),
        model_field_type=Sequence[str] | None,
        inject_before_resolve=False,
        description=(
            "Columns whose values never reach the event log, besides those that DAGSTER_DATAFRAMELY_REDACT "
            "names."
        ),
        examples=[["email", "phone"]],
        form_config=_advanced("Redacted columns"),
    ),
]

StagingDirAttribute: TypeAlias = Annotated[
    Path | None,
    dg.Resolver(
        located(_resolve_folder),
        model_field_type=str | None,
        inject_before_resolve=False,
        description=(
            "The folder for the staging file of a streamed run, which has to have room for the table. By "
            "default what DAGSTER_DATAFRAMELY_STAGING_DIR says, else beside the table where the IO manager "
            "writes files, else the system's folder for temporary files."
        ),
        examples=["/mnt/scratch", "{{ context.project_root }}/staging"],
        form_config=_advanced("Staging folder"),
    ),
]

InsAttribute: TypeAlias = Annotated[
    dict[str, dg.ResolvedAssetKey] | None,
    dg.Resolver.default(
        description=(
            "Parameter of the function to the upstream asset it is loaded from, where the parameter's name is "
            "not the asset's key."
        ),
        examples=[{"raw_orders": "raw/orders"}],
        form_config=dg.ComponentFormConfig(label="Inputs"),
    ),
]

IOManagerKeyAttribute: TypeAlias = Annotated[
    str | None,
    dg.Resolver(
        located(_render),
        model_field_type=str | None,
        inject_before_resolve=False,
        description=(
            "The resource key of the IO manager that stores the table and its error rows. By default "
            "`io_manager`."
        ),
        examples=["warehouse_io"],
        form_config=dg.ComponentFormConfig(label="IO manager key"),
    ),
]


# --- Dagster's own attributes ------------------------------------------------------------------------


def _resolve_asset(context: dg.ResolutionContext, attributes: Any) -> Mapping[str, Any]:
    """Resolve the asset attributes that were written, and hold each against its type."""
    if isinstance(attributes, str):
        attributes = context.resolve_value(attributes)
        if isinstance(attributes, Mapping):
            attributes = read_attributes(AssetSpecUpdateKwargs.model(), attributes)
    if attributes is None:
        return {}
    if not isinstance(attributes, AssetSpecUpdateKwargs.model()):
        raise MistakesFound([Mistake((), _not_a_mapping("asset", attributes))])
    resolved = {
        name: _text_as_written(name, value, getattr(attributes, name))
        for name, value in resolve_asset_attributes(context, attributes).items()
    }
    key = resolved.get("key") or dg.AssetKey("this_asset")
    mistakes = [
        mistake for name, value in resolved.items() for mistake in _asset_mistakes(name, value, key)
    ]
    if mistakes:
        raise MistakesFound(mistakes)
    return resolved


def _text_as_written(name: str, value: Any, written: Any) -> Any:
    """Return text where text is wanted: Dagster renders `code_version: "1.10"` to the number 1.1."""
    if isinstance(value, str) or not admits_text(_asset_attribute_types()[name]):
        return value
    if isinstance(written, str) and not is_template(written):
        return written
    return str(value) if isinstance(value, (int, float)) else value


def _asset_mistakes(name: str, value: Any, key: Any) -> Iterator[Mistake]:
    wrong_type = validate_type(_asset_attribute_types()[name], value, (name,))
    yield from wrong_type
    if wrong_type:
        return
    if name == "key" and isinstance(value, dg.AssetKey) and not _can_name_a_step(value):
        yield Mistake(
            (name,),
            f"`key` is '{value.to_user_string()}'. Allowed are letters, digits, '_', '-' and '.', in parts "
            "that are separated by '/'.",
        )
    if name == "skippable" and value is False:
        yield Mistake(
            (name,),
            "`skippable` is false. A function that returns None writes nothing, so the asset is always "
            "skippable; remove the attribute.",
        )
    if name in _spec_attributes():
        try:
            dg.AssetSpec(key, **{name: value})
        except Exception as error:
            yield Mistake((name,), f"`{name}` is refused by Dagster: {str(error).splitlines()[0]}")


def _can_name_a_step(key: dg.AssetKey) -> bool:
    return all(key.path) and re.fullmatch(r"[A-Za-z0-9_]+", key.to_python_identifier()) is not None


@functools.cache
def _asset_attribute_types() -> Mapping[str, Any]:
    return typing.get_type_hints(AssetSpecUpdateKwargs, include_extras=True)


@functools.cache
def _spec_attributes() -> frozenset[str]:
    return frozenset(inspect.signature(dg.AssetSpec.__new__).parameters) - {"key"}


def _resolve_op(context: dg.ResolutionContext, op: Any) -> OpSpec | None:
    """Resolve the attributes of the step."""
    if isinstance(op, str):
        op = context.resolve_value(op)
        if isinstance(op, Mapping):
            op = read_attributes(OpSpec.model(), op)
    if op is None or isinstance(op, OpSpec):
        return op
    if not isinstance(op, OpSpec.model()):
        raise MistakesFound([Mistake((), _not_a_mapping("op", op))])
    resolved = OpSpec.resolve_from_model(context, op)
    assert isinstance(resolved, OpSpec)
    if resolved.name is not None:
        raise MistakesFound(
            [
                Mistake(
                    ("name",),
                    "Dagster names the step of an asset after the asset's key; remove `name`.",
                )
            ]
        )
    if resolved.description is not None:
        raise MistakesFound(
            [
                Mistake(
                    ("description",),
                    "The step shows the asset's description; write it under `asset`.",
                )
            ]
        )
    return resolved


class RetryPolicyAttributes(dg.Resolvable, dg.Model):
    """What `dg.RetryPolicy` takes."""

    max_retries: Annotated[
        Count | None,
        dg.Resolver.default(
            description="How often a failed step is tried again, once by default.", examples=[3]
        ),
    ] = None
    delay: Annotated[
        Annotated[float, Field(ge=0)] | None,
        dg.Resolver.default(description="Seconds to wait before trying again.", examples=[10]),
    ] = None
    backoff: Annotated[
        Literal["linear", "exponential"] | None,
        dg.Resolver.default(
            description="How the delay grows from one try to the next.", examples=["exponential"]
        ),
    ] = None
    jitter: Annotated[
        Literal["full", "plus_minus"] | None,
        dg.Resolver.default(
            description="How the delay is varied, so that failed runs do not all return at once.",
            examples=["plus_minus"],
        ),
    ] = None


def _resolve_retry_policy(context: dg.ResolutionContext, policy: Any) -> dg.RetryPolicy | None:
    """Make Dagster's retry policy of its attributes."""
    if isinstance(policy, str):
        policy = context.resolve_value(policy)
        if isinstance(policy, Mapping):
            policy = read_attributes(RetryPolicyAttributes.model(), policy)
    if policy is None or isinstance(policy, dg.RetryPolicy):
        return policy
    if not isinstance(policy, RetryPolicyAttributes.model()):
        raise MistakesFound([Mistake((), _not_a_mapping("retry_policy", policy))])
    read = RetryPolicyAttributes.resolve_from_model(context, policy)
    assert isinstance(read, RetryPolicyAttributes)
    for name in ("backoff", "jitter"):
        if read.delay is None and getattr(read, name) is not None:
            sentence = f"`{name}` changes the delay, and there is none. Set `delay` too."
            raise MistakesFound([Mistake((name,), sentence)])
    return dg.RetryPolicy(
        max_retries=1 if read.max_retries is None else read.max_retries,
        delay=read.delay,
        backoff=dg.Backoff[read.backoff.upper()] if read.backoff else None,
        jitter=dg.Jitter[read.jitter.upper()] if read.jitter else None,
    )


def _not_a_mapping(name: str, value: object) -> str:
    return f"`{name}` is {value!r}. Allowed is a mapping, or a template that gives one."


AssetAttribute: TypeAlias = Annotated[
    Mapping[str, Any] | None,
    dg.Resolver(
        located(_resolve_asset),
        model_field_type=AssetSpecUpdateKwargs.model() | None,
        inject_before_resolve=False,
        description="Dagster's own asset attributes. `key` is the function's name by default.",
        examples=[{"key": "sales/orders", "group_name": "sales", "owners": ["team:sales"]}],
        form_config=dg.ComponentFormConfig(label="Asset"),
    ),
]

OpAttribute: TypeAlias = Annotated[
    OpSpec | None,
    dg.Resolver(
        located(_resolve_op),
        model_field_type=OpSpec.model() | None,
        inject_before_resolve=False,
        description="How the step runs: its concurrency pool, its tags, its backfill policy.",
        examples=[{"pool": "warehouse", "tags": {"team": "sales"}}],
        form_config=dg.ComponentFormConfig(label="Step"),
    ),
]

RetryPolicyAttribute: TypeAlias = Annotated[
    dg.RetryPolicy | None,
    dg.Resolver(
        located(_resolve_retry_policy),
        model_field_type=RetryPolicyAttributes.model() | None,
        inject_before_resolve=False,
        description="How often, and after what delay, a failed step is tried again.",
        examples=[{"max_retries": 3, "delay": 10, "backoff": "exponential"}],
        form_config=dg.ComponentFormConfig(label="Retry policy"),
    ),
]


# --- reading -----------------------------------------------------------------------------------------


class WrittenAttributes(BaseModel):
    """The attributes as they stand in YAML, not yet validated.

    Dagster hands a component what this model makes of them. Validating there would lose the file and line,
    so `SchemaComponent.load` validates, and this model only keeps them and gives the JSON schema.
    """

    model_config = ConfigDict(extra="allow")

    component: ClassVar[type[SchemaComponent]]

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        return attributes_schema(
            cls.component.model().model_json_schema(), text=cls.component.text_attributes()
        )


class SchemaComponent(dg.Component, dg.Model, dg.Resolvable, ABC):
    """A component whose attributes name a Dataframely schema.

    The attributes of a subclass are its Pydantic fields, each with a `dg.Resolver`. What is wrong with them
    is said in one line, with file and line.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    @classmethod
    def model(cls) -> type[BaseModel]:
        """Return the model of the attributes, in which every value may also be a template."""
        with warnings.catch_warnings():
            # Pydantic warns of an attribute named `schema`, because its base class has a method of that
            # name. Nothing here calls the method, and the warning would show at every `dg` command.
            warnings.filterwarnings("ignore", message='Field name "schema"', category=UserWarning)
            return super().model()

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return the model that Dagster puts the attributes in, which gives the JSON schema."""
        return _written_attributes(cls)

    @classmethod
    def text_attributes(cls) -> frozenset[str]:
        """Return the attributes that may be plain text although they may be something else too."""
        return frozenset(
            field.alias or name
            for name, field in cls.model_fields.items()
            if admits_text(field.annotation)
        )

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Build the component from YAML; what is wrong with it is raised with file and line."""
        resolution = context.resolution_context.at_path("attributes")
        if attributes is None or isinstance(attributes, WrittenAttributes):
            written = (attributes and attributes.model_extra) or {}
            try:
                attributes = read_attributes(cls.model(), written, text=cls.text_attributes())
            except MistakesFound as found:
                raise_mistakes(resolution, found.mistakes)
        return super().load(attributes, context)

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> Self:
        """Resolve templates and references and build the component."""
        try:
            component = super().resolve_from_model(context, model)
        except (ResolutionException, ValidationError) as error:
            raise_located(context, error, written=model.model_dump(exclude_unset=True), model=cls)
        assert isinstance(component, cls)
        mistakes = list(component.mistakes())
        if mistakes:
            raise_mistakes(context, mistakes)
        return component

    def mistakes(self) -> Iterator[Mistake]:
        """Yield what is wrong with attributes that only show it together."""
        yield from ()

    def raise_from_build(
        self, context: dg.ComponentLoadContext, error: Exception
    ) -> typing.NoReturn:
        """Raise an error of `build_defs` again, with file and line where the component stands in YAML."""
        resolution = context_of_build(context)
        if resolution is None:
            raise error
        raise_located(resolution, error, path=_attribute_of(error))


@functools.cache
def _written_attributes(component: type[SchemaComponent]) -> type[WrittenAttributes]:
    model = create_model(f"{component.__name__}Attributes", __base__=WrittenAttributes)
    model.component = component
    return model


def _attribute_of(error: Exception) -> YamlPath:
    """Return the attribute that an error of the core is about."""
    if isinstance(error, InvalidFunctionError):
        return ["fn"]
    if isinstance(error, InvalidSettingError):
        # One that comes from an environment variable is about no attribute.
        named = re.match(r"The argument `(\w+)`", str(error))
        return [named[1]] if named else []
    return ["schema"] if isinstance(error, DataframelyError) else []
