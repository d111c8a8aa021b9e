"""What every component of this package is: how its attributes are read, and how their mistakes are said."""

from __future__ import annotations

import functools
import re
import typing
import warnings
from abc import ABC
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import dagster as dg
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from dagster_dataframely.components.attributes.json_schema import attributes_schema
from dagster_dataframely.components.attributes.located import raise_located, raise_mistakes
from dagster_dataframely.components.attributes.mistakes import Mistake, MistakesFound
from dagster_dataframely.components.attributes.written import admits_text, read_attributes
from dagster_dataframely.errors import (
    DataframelyError,
    InvalidFunctionError,
    InvalidSettingError,
)
from dagster_dataframely.upstream.dagster_components import (
    ResolutionException,
    YamlPath,
    context_of_build,
)

if TYPE_CHECKING:
    from typing import Self


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
        return _derived_model(cls)

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return the model that Dagster puts the attributes in, which gives the JSON schema."""
        return _written_attributes(cls)

    @classmethod
    def text_attributes(cls) -> frozenset[str]:
        """Return the attributes that may be plain text although they may be something else too."""
        return _text_attributes(cls)

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
def _derived_model(component: type[SchemaComponent]) -> type[BaseModel]:
    with warnings.catch_warnings():
        # Pydantic warns of an attribute named `schema`, because its base class has a method of that name.
        # Nothing here calls the method, and the warning would show at every `dg` command.
        warnings.filterwarnings("ignore", message='Field name "schema"', category=UserWarning)
        return super(SchemaComponent, component).model()


@functools.cache
def _text_attributes(component: type[SchemaComponent]) -> frozenset[str]:
    return frozenset(
        field.alias or name
        for name, field in component.model_fields.items()
        if admits_text(field.annotation)
    )


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
