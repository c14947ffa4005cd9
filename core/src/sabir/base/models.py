"""The two base classes of sabir's data: immutable models, and stored models that keep unknown fields.

Law 11, deep immutability: no attribute, item or nested value of a model can be changed; a changed copy
is made by `model_copy(update=...)`, which validates. Construction is strict everywhere.

    given ──construct, validate──▶ model           unknown fields are errors
    stored ──load_stored──▶ model                      unknown fields are kept verbatim, and written back
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from inspect import Parameter, Signature, signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, ValidationInfo
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from sabir.base.errors import BuilderError, NotJSON, one_line
from sabir.base.shown import Arguments, brief
from sabir.base.surface import LEFT_OUT, without_modules
from sabir.base.values import FrozenDict, JSONText, JSONValue, encode_json, object_view

_LOADING: dict[str, Any] = {"sabir": "loading"}
"""The validation context under which unknown part kinds are kept."""

_CONSTRUCTING: dict[str, Any] = {"sabir": "constructing"}
"""The validation context of a constructor, which is strict whatever `schema` the data has."""

Loaded = TypeVar("Loaded")
Made = TypeVar("Made", bound="Frozen")
_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_set_values, _set_given, _set_extra, _set_private = (vars(BaseModel)[slot].__set__ for slot in _SLOTS)


def _made_already(value: object) -> TypeError:
    return TypeError(f"{type(value).__name__} is immutable; make a changed copy with model_copy(update=…) instead")


def is_loading(info: ValidationInfo) -> bool:
    """Whether a validation runs on behalf of a loader rather than a constructor."""
    return info.context is _LOADING


def is_constructing(info: ValidationInfo) -> bool:
    """Whether a validation runs on behalf of a constructor of this library."""
    return info.context is _CONSTRUCTING


def load_stored(validate: Callable[..., Loaded], stored: JSONValue) -> Loaded:
    """Return the stored JSON value as a model, keeping unknown fields and unknown kinds of parts.

    `validate` is the `model_validate` of a model, or the `validate_python` of a TypeAdapter. Raises pydantic's
    ValidationError for a value that does not fit. Unknown fields of a model that is not a
    StoredModel do not fit either.
    """
    loaded = validate(stored, context=_LOADING, extra="allow")
    for model in _models(loaded):
        unknown = model.__pydantic_extra__
        _set_extra(model, _kept(model, unknown) if unknown else None)
    return loaded


def _kept(model: "Frozen", unknown: dict[str, Any]) -> FrozenDict:
    """The unknown fields of a model at rest, immutable."""
    kind = type(model).__name__
    if not isinstance(model, StoredModel):
        refused = [InitErrorDetails(type="extra_forbidden", loc=(kind, name), input=unknown) for name in unknown]
        raise ValidationError.from_exception_data(kind, refused)
    try:
        return object_view(encode_json(unknown))
    except NotJSON as error:
        refusal = InitErrorDetails(type="value_error", loc=(kind,), input=unknown, ctx={"error": error})
        raise ValidationError.from_exception_data(kind, [refusal]) from None


def _models(value: object) -> Iterator["Frozen"]:
    """Every model within a value, the inner ones first."""
    within: Iterable[object] = vars(value).values() if isinstance(value, Frozen) else (value,)
    for held in within:
        for item in held if isinstance(held, tuple | list) else (held,):
            if isinstance(item, Frozen):
                yield from _models(item)
    if isinstance(value, Frozen):
        yield value


def _named(error: ValidationError, validate: Callable[..., object], given: object, **settings: Any) -> ValidationError:
    """The error; if only unknown fields of models at rest are wrong, an error that names the known fields.

    The value is validated again with its unknown fields, because pydantic's error knows their places, not their models.
    """
    refused = error.errors(include_url=False, include_input=False, include_context=False)
    places = dict.fromkeys(each["loc"][:-1] for each in refused if each["type"] == "extra_forbidden")
    if not places:
        return error
    try:
        made = validate(given, **{**settings, "extra": "allow"})
    except ValidationError:
        return error
    unknown = [model for model in _models(made) if model.__pydantic_extra__]
    if len(places) != len(unknown) or not all(isinstance(model, StoredModel) for model in unknown):
        return error
    details = [
        InitErrorDetails(type=_unknown_fields(model), loc=place, input=model.__pydantic_extra__)
        for place, model in zip(places, unknown, strict=True)
    ]
    return ValidationError.from_exception_data(error.title, details)


def _unknown_fields(model: "Frozen") -> PydanticCustomError:
    unknown = ", ".join(repr(name) for name in model.__pydantic_extra__ or ())
    fields = ", ".join(field.alias or name for name, field in type(model).model_fields.items())
    words = f"{type(model).__name__} has no field {unknown}; its fields are {fields}"
    return PydanticCustomError("extra_forbidden", "{words}", {"words": words})


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as AsRead
else:

    class AsRead(type(BaseModel)):
        """A class of values as help(), pydoc and a prompt read it: its own names and fields, in our words.

        What pydantic adds to every model is there, and listed, but on no page of help.
        """

        def __dir__(cls) -> list[str]:
            """All names; for a page of help those that we define, pydantic's that we define again among them."""
            if sys._getframe(1).f_code.co_name != "classify_class_attrs":  # of the module inspect, for pydoc
                return super().__dir__()
            ours = [vars(base) for base in cls.__mro__ if base not in (BaseModel, object)]
            found = {name: value for names in ours for name, value in names.items() if not name.startswith("_")}
            return sorted(name for name, value in found.items() if name not in _PYDANTICS or _is_routine(value))

        @property
        def __signature__(cls) -> Signature:
            """The constructor's arguments: all fields, by the names under which they are given."""
            if hasattr(cls.__init__, "__signature__") or cls.__init__.__module__ not in (
                __name__,
                BaseModel.__module__,
            ):
                own = signature(cls.__init__)
                return own.replace(parameters=list(own.parameters.values())[1:])
            fields = cls.model_fields
            kinds = SimpleNamespace(__annotations__={name: field.annotation for name, field in fields.items()})
            plain = dict(kinds.__annotations__)
            with suppress(NameError):  # of a class that is not there yet
                plain = get_type_hints(kinds)  # without what pydantic checks
            return Signature(_parameter(fields[name], name, kind) for name, kind in plain.items())

        @__signature__.setter
        def __signature__(cls, _: Signature) -> None:
            """Nothing: pydantic sets its own when it builds a validator."""


_PYDANTICS = frozenset(vars(BaseModel))
"""The names that each model has from pydantic."""


def _is_routine(value: object) -> bool:
    """Whether a class attribute is a method of some kind."""
    return isinstance(value, classmethod | staticmethod) or callable(value)


def _parameter(field: FieldInfo, name: str, kind: object) -> Parameter:
    default = Parameter.empty if field.is_required() else LEFT_OUT if field.default_factory else field.default
    default = default.view() if isinstance(default, JSONText) else default
    return Parameter(field.alias or name, Parameter.KEYWORD_ONLY, default=default, annotation=without_modules(kind))


class Frozen(BaseModel, metaclass=AsRead):
    """Base class of immutable data, a pydantic model. For vendor settings and hints of a plugin. Unknown fields are
    errors.

    Create a changed copy with `model_copy(update={…})`. Wrong types and unknown fields raise pydantic's
    ValidationError. The validator of a class is built at its first use.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        serialize_by_alias=True,
        ser_json_bytes="utf8",
        val_json_bytes="utf8",
        defer_build=True,
    )

    if not TYPE_CHECKING:  # a type checker that saw these would let any attribute be set

        def __init__(self, /, **fields: Any) -> None:
            """Create the instance. Raises pydantic's ValidationError. A second call on the same instance raises
            TypeError.
            """
            if self.__dict__:
                raise _made_already(self)
            try:
                self.__pydantic_validator__.validate_python(fields, self_instance=self, context=_CONSTRUCTING)
            except ValidationError as error:
                raise _named(error, self.__pydantic_validator__.validate_python, fields) from None

        # pydantic's own mark: validation of nested values skips this method, as it skips BaseModel's.
        __init__.__pydantic_base_init__ = True

        @classmethod
        def model_validate(cls, obj: Any, **settings: Any) -> Self:
            """Return the model for a mapping or an instance. Raises pydantic's ValidationError if `obj` does not
            fit.
            """
            try:
                return super().model_validate(obj, **settings)
            except ValidationError as error:
                raise _named(error, super().model_validate, obj, **settings) from None

        @classmethod
        def model_validate_json(cls, json_data: str | bytes | bytearray, **settings: Any) -> Self:
            """Return the model for a JSON text. Raises pydantic's ValidationError if the text does not fit."""
            try:
                return super().model_validate_json(json_data, **settings)
            except ValidationError as error:
                raise _named(error, super().model_validate_json, json_data, **settings) from None

        def __setstate__(self, state: dict[Any, Any]) -> None:
            """Restore the state when unpickling a new instance."""
            if self.__dict__:
                raise _made_already(self)
            super().__setstate__(state)

        def __setattr__(self, name: str, *_value: object) -> NoReturn:
            """Raise ValidationError, because instances are immutable."""
            refusal = InitErrorDetails(type="frozen_instance", loc=(name,), input=None)
            raise ValidationError.from_exception_data(type(self).__name__, [refusal])

        __delattr__ = __setattr__

    @classmethod
    def construct_unchecked(cls, values: dict[str, Any], given: set[str]) -> Self:
        """Return an instance from values that are known to be valid, without validation. For dialects that need speed.

        `values` are all fields, by name and in order; `given` are the names of the fields that count as set.
        """
        made = object.__new__(cls)
        _set_values(made, values)
        _set_given(made, given)
        _set_extra(made, None)
        _set_private(made, None)
        return made

    @classmethod
    def build(cls, name: str = "", /, **fields: Any) -> Self:
        """Return an instance with these fields. Raises BuilderError, in one line, if the fields do not fit.

        `name` is what the error calls the instance; "" means the class's name.
        """
        try:
            return cls(**fields)
        except ValidationError as error:
            raise BuilderError(f"no {name or cls.__name__}: {one_line(describe_validation_error(error))}") from None

    # The parameter's type is pydantic's own.
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with the fields in `update` changed. The copy is validated; raises pydantic's ValidationError.

        `deep` copies nested values too if there is no `update`; that is not needed for immutable values.
        """
        if not update:
            return super().model_copy(deep=deep)
        aliases = {name: field.alias or name for name, field in type(self).model_fields.items()}
        renamed = {aliases.get(name, name): value for name, value in update.items()}
        changed = type(self)(**{**{alias: getattr(self, name) for name, alias in aliases.items()}, **renamed})
        given = (name for name, alias in aliases.items() if alias in renamed)
        _set_given(changed, self.__pydantic_fields_set__.union(given))
        _set_extra(changed, self.__pydantic_extra__)
        return changed

    def __repr_args__(self) -> Arguments:
        """What is set, by the names that users read; rich and devtools show all of it."""
        fields = type(self).model_fields
        for name, value in vars(self).items():  # properties that were asked for before stand there too
            if (field := fields.get(name)) and field.repr and value != field.default:
                yield field.alias or name, value.view() if isinstance(value, JSONText) else value
        yield from (getattr(self, "__pydantic_extra__", None) or {}).items()

    def __brief_args__(self) -> Arguments:
        """What `repr` shows of it, in the order of reading."""
        return self.__repr_args__()

    def __repr__(self) -> str:
        """Three lines at most, however much it holds."""
        return brief(self)

    __str__ = __repr__


class StoredModel(Frozen):
    """Base class of immutable data that is stored. Fields that a newer version of sabir added survive loading and
    saving.
    """

    model_config = ConfigDict(extra="allow")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """pydantic's schema; its validator forbids unknown fields, its serializer writes the loaded ones."""
        schema = handler(source)
        found: Any = schema
        while found["type"] != "model":
            found = found["schema"]
        if "serialization" not in found:
            writing = {"type": "model", "cls": cls, "schema": {**found["schema"]}, "config": found["config"]}
            found["serialization"] = writing
            found["schema"]["extra_behavior"] = "forbid"
        return schema


_MESSAGES = {"string_unicode": "contains a lone surrogate (half of a character); replace it"}
"""pydantic's type of error → a plainer message than pydantic's."""


def describe_validation_error(error: ValidationError) -> str:
    """Return a ValidationError as one line: each place and its fault."""
    misfits = []
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(step) for step in each["loc"])
        message = _MESSAGES.get(each["type"], each["msg"])
        misfits.append(f"{place}: {message}" if place else message)
    return "; ".join(misfits)


class PlainSchema(GenerateJsonSchema):
    """JSON schemas without titles made from field names, because those tell a model nothing."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 (pydantic's own attribute)

    def field_title_should_be_set(self, schema: Any) -> bool:  # the parameter's type is pydantic's own
        """Never; pydantic asks for each field."""
        return False
