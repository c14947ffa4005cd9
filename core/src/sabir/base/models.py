"""The two base classes of sabir's data: immutable models, and stored models that keep unknown fields.

Law 11, deep immutability: no attribute, item or nested value of a model can be changed. `model_copy(update=…)` returns
a changed copy and validates it.

    a program's values ──constructor, model_validate──▶ model     unknown fields are errors
    stored JSON        ──load_stored──────────────────▶ model     unknown fields of a StoredModel are kept unchanged
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
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
"""The validation context of `load_stored`, under which unknown kinds of parts are kept."""

_CONSTRUCTING: dict[str, Any] = {"sabir": "constructing"}
"""The validation context of a constructor, which refuses unknown data even if its `schema` number is newer."""

Loaded = TypeVar("Loaded")
AnyFrozen = TypeVar("AnyFrozen", bound="Frozen")
_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_set_values, _set_names, _set_extra, _set_private = (vars(BaseModel)[slot].__set__ for slot in _SLOTS)


def _immutable_error(value: object) -> TypeError:
    return TypeError(f"{type(value).__name__} is immutable; make a changed copy with model_copy(update=…) instead")


def is_loading(info: ValidationInfo) -> bool:
    """Return whether `load_stored` runs this validation."""
    return info.context is _LOADING


def is_constructing(info: ValidationInfo) -> bool:
    """Return whether the constructor of a Frozen model runs this validation."""
    return info.context is _CONSTRUCTING


def load_stored(validate: Callable[..., Loaded], stored: JSONValue) -> Loaded:
    """Return the stored JSON value as a model, keeping unknown fields and unknown kinds of parts.

    `validate` is the method `model_validate` of a model, or `validate_python` of a TypeAdapter. Raises pydantic's
    ValidationError for a value that does not fit, and for an unknown field in a model that is not a StoredModel.
    """
    loaded = validate(stored, context=_LOADING, extra="allow")
    for model in _walk_models(loaded):
        unknown = model.__pydantic_extra__
        _set_extra(model, _freeze_unknown(model, unknown) if unknown else None)
    return loaded


def _freeze_unknown(model: "Frozen", unknown: dict[str, Any]) -> FrozenDict:
    """Return the unknown fields of a StoredModel as an immutable mapping. Raises ValidationError for other models."""
    kind = type(model).__name__
    if not isinstance(model, StoredModel):
        refused = [InitErrorDetails(type="extra_forbidden", loc=(kind, name), input=unknown) for name in unknown]
        raise ValidationError.from_exception_data(kind, refused)
    try:
        return object_view(encode_json(unknown))
    except NotJSON as error:
        refusal = InitErrorDetails(type="value_error", loc=(kind,), input=unknown, ctx={"error": error})
        raise ValidationError.from_exception_data(kind, [refusal]) from None


def _walk_models(value: object) -> Iterator["Frozen"]:
    """Yield every model inside a value, the innermost first, and the value itself if it is a model."""
    inner: Iterable[object] = vars(value).values() if isinstance(value, Frozen) else (value,)
    for each in inner:
        for item in each if isinstance(each, tuple | list) else (each,):
            if isinstance(item, Frozen):
                yield from _walk_models(item)
    if isinstance(value, Frozen):
        yield value


def _name_fields(error: ValidationError, validate: Callable[..., Any], source: object, **how: Any) -> ValidationError:
    """Return the error. If unknown fields of StoredModels are the only problem, return an error that names the known
    fields.

    The value is validated again with unknown fields allowed, because pydantic's error names places, but not models.
    """
    refused = error.errors(include_url=False, include_input=False, include_context=False)
    places = dict.fromkeys(each["loc"][:-1] for each in refused if each["type"] == "extra_forbidden")
    if not places:
        return error
    try:
        lenient = validate(source, **{**how, "extra": "allow"})
    except ValidationError:
        return error
    unknown = [model for model in _walk_models(lenient) if model.__pydantic_extra__]
    if len(places) != len(unknown) or not all(isinstance(model, StoredModel) for model in unknown):
        return error
    details = [
        InitErrorDetails(type=_unknown_fields_error(model), loc=place, input=model.__pydantic_extra__)
        for place, model in zip(places, unknown, strict=True)
    ]
    return ValidationError.from_exception_data(error.title, details)


def _unknown_fields_error(model: "Frozen") -> PydanticCustomError:
    """Return the error for the unknown fields of a model, with the names of its fields."""
    unknown = ", ".join(repr(name) for name in model.__pydantic_extra__ or ())
    fields = ", ".join(field.alias or name for name, field in type(model).model_fields.items())
    words = f"{type(model).__name__} has no field {unknown}; its fields are {fields}"
    return PydanticCustomError("extra_forbidden", "{words}", {"words": words})


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as ModelMeta
else:

    class ModelMeta(type(BaseModel)):
        """The metaclass of models. `help()` shows a model's own methods and fields, without the members of
        BaseModel.
        """

        def __dir__(cls) -> list[str]:
            """Return all names; if `help()` asks, only the names that classes other than BaseModel define."""
            if sys._getframe(1).f_code.co_name != "classify_class_attrs":  # pydoc calls this function of `inspect`
                return super().__dir__()
            ours = [vars(base) for base in cls.__mro__ if base not in (BaseModel, object)]
            members = {name: value for names in ours for name, value in names.items() if not name.startswith("_")}
            methods = {name for name, value in members.items() if callable(value) or isinstance(value, classmethod)}
            return sorted(methods | (members.keys() - _PYDANTIC_NAMES))

        @property
        def __signature__(cls) -> Signature:
            """The signature of the constructor: all fields, by the names of their arguments."""
            if hasattr(cls.__init__, "__signature__") or cls.__init__.__module__ not in (
                __name__,
                BaseModel.__module__,
            ):
                own = signature(cls.__init__)
                return own.replace(parameters=list(own.parameters.values())[1:])
            fields = cls.model_fields
            kinds = SimpleNamespace(__annotations__={name: field.annotation for name, field in fields.items()})
            plain = dict(kinds.__annotations__)
            with suppress(NameError):  # an annotation names a class that is not defined yet
                plain = get_type_hints(kinds)  # without pydantic's validators
            return Signature(_parameter(fields[name], name, kind) for name, kind in plain.items())

        @__signature__.setter
        def __signature__(cls, _: Signature) -> None:
            """Do nothing: pydantic sets a signature of its own when it builds a validator."""


_PYDANTIC_NAMES = frozenset(vars(BaseModel))
"""The names that every model inherits from pydantic."""


def _parameter(field: FieldInfo, name: str, kind: object) -> Parameter:
    default = Parameter.empty if field.is_required() else LEFT_OUT if field.default_factory else field.default
    default = default.view() if isinstance(default, JSONText) else default
    return Parameter(field.alias or name, Parameter.KEYWORD_ONLY, default=default, annotation=without_modules(kind))


_NAME_SETS: dict[frozenset[str], set[str]] = {}
"""Names of fields → the set that all instances with these fields share."""


def _shared_names(names: Set[str]) -> set[str]:
    """Return one set for all equal sets of field names. Each message would need 650 bytes for sets of its own.

    pydantic never changes the set of a frozen model; its copies have a set of their own.
    """
    key = frozenset(names)
    return _NAME_SETS.get(key) or _NAME_SETS.setdefault(key, set(key))


class Frozen(BaseModel, metaclass=ModelMeta):
    """Base class of immutable data, a pydantic model. Plugins use it for their vendor settings and hints.

    Unknown fields, and values that pydantic cannot convert to the field's type, raise pydantic's ValidationError. So
    does assigning to an attribute. Create a changed copy with `model_copy(update={…})`. The validator of a class is
    built at its first use.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, defer_build=True)

    if not TYPE_CHECKING:  # with these methods, a type checker would accept any argument and assignment

        def __init__(self, /, **fields: Any) -> None:
            """Create the instance. Raises pydantic's ValidationError. A second call on the same instance raises
            TypeError.
            """
            if self.__dict__:
                raise _immutable_error(self)
            try:
                self.__pydantic_validator__.validate_python(fields, self_instance=self, context=_CONSTRUCTING)
            except ValidationError as error:
                raise _name_fields(error, self.__pydantic_validator__.validate_python, fields) from None
            _set_names(self, _shared_names(self.__pydantic_fields_set__))

        # With this mark, pydantic does not call the method for nested values, as it does not call BaseModel's.
        __init__.__pydantic_base_init__ = True

        @classmethod
        def model_validate(cls, obj: Any, **settings: Any) -> Self:
            """Return an instance for a mapping of argument names to values. An instance is returned unchanged. Raises
            pydantic's ValidationError if `obj` does not fit.
            """
            try:
                return super().model_validate(obj, **settings)
            except ValidationError as error:
                raise _name_fields(error, super().model_validate, obj, **settings) from None

        @classmethod
        def model_validate_json(cls, json_data: str | bytes | bytearray, **settings: Any) -> Self:
            """Return an instance for the JSON text of an object. Raises pydantic's ValidationError if the text does not
            fit.
            """
            try:
                return super().model_validate_json(json_data, **settings)
            except ValidationError as error:
                raise _name_fields(error, super().model_validate_json, json_data, **settings) from None

        def __setstate__(self, state: dict[Any, Any]) -> None:
            """Restore the state when unpickling a new instance."""
            if self.__dict__:
                raise _immutable_error(self)
            super().__setstate__(state)

        def __setattr__(self, name: str, *_value: object) -> NoReturn:
            """Raise ValidationError, because instances are immutable."""
            refusal = InitErrorDetails(type="frozen_instance", loc=(name,), input=None)
            raise ValidationError.from_exception_data(type(self).__name__, [refusal])

        __delattr__ = __setattr__

    @classmethod
    def construct_unchecked(cls, values: dict[str, Any], set_names: Set[str]) -> Self:
        """Return an instance without validation, from values that are known to be valid. For code that must be fast.

        `values` contains all fields, by field name and in order, also those with a default; the mapping is not copied.
        `set_names` are the names of the fields that count as set by the caller.
        """
        instance = object.__new__(cls)
        _set_values(instance, values)
        _set_names(instance, _shared_names(set_names))
        _set_extra(instance, None)
        _set_private(instance, None)
        return instance

    @classmethod
    def build(cls, name: str = "", /, **fields: Any) -> Self:
        """Return an instance with these fields, like the constructor. Raises BuilderError with a one-line message if
        the fields do not fit; the constructor raises ValidationError.

        `name` is the name of the object in the error; "" means the class's name.
        """
        try:
            return cls(**fields)
        except ValidationError as error:
            raise BuilderError(
                f"invalid {name or cls.__name__}: {one_line(describe_validation_error(error))}"
            ) from None

    # The parameter's type is pydantic's own.
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with the fields in `update` changed. Raises pydantic's ValidationError if a new value does not
        fit.

        `update` maps the names of fields or arguments to new values. `deep` True copies nested values too, but only
        without `update`; immutable values do not need it.
        """
        if not update:
            return super().model_copy(deep=deep)
        aliases = {name: field.alias or name for name, field in type(self).model_fields.items()}
        renamed = {aliases.get(name, name): value for name, value in update.items()}
        changed = type(self)(**{**{alias: getattr(self, name) for name, alias in aliases.items()}, **renamed})
        changed_names = (name for name, alias in aliases.items() if alias in renamed)
        _set_names(changed, self.__pydantic_fields_set__.union(changed_names))
        _set_extra(changed, self.__pydantic_extra__)
        return changed

    def __repr_args__(self) -> Arguments:
        """Yield the fields that differ from their defaults, by the names of arguments, then the unknown fields. rich
        and devtools show all of them.
        """
        fields = type(self).model_fields
        for name, value in vars(self).items():  # cached properties are there too, and are skipped
            if (field := fields.get(name)) and field.repr and value != field.default:
                yield field.alias or name, value.view() if isinstance(value, JSONText) else value
        yield from (getattr(self, "__pydantic_extra__", None) or {}).items()

    def __brief_args__(self) -> Arguments:
        """Yield the names and values that `repr` shows, in order. By default those of `__repr_args__`."""
        return self.__repr_args__()

    def __repr__(self) -> str:
        """Return at most 240 characters, with long values shortened."""
        return brief(self)

    __str__ = __repr__


class StoredModel(Frozen):
    """Base class of immutable data that programs store as JSON. `load_stored` keeps fields that a newer version of
    sabir added, and dumping writes them back. Constructors and `model_validate` raise pydantic's ValidationError for
    unknown fields.
    """

    model_config = ConfigDict(extra="allow")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return pydantic's schema, changed: the validator forbids unknown fields, the serializer writes
        loaded ones.
        """
        schema = handler(source)
        model: Any = schema
        while model["type"] != "model":
            model = model["schema"]
        if "serialization" not in model:
            writing = {"type": "model", "cls": cls, "schema": {**model["schema"]}, "config": model["config"]}
            model["serialization"] = writing
            model["schema"]["extra_behavior"] = "forbid"
        return schema


_MESSAGES = {"string_unicode": "contains a lone surrogate (half of a character); replace it"}
"""pydantic's error type → the message that replaces pydantic's own."""


def describe_validation_error(error: ValidationError) -> str:
    """Return pydantic's ValidationError as text: "place: fault" for each fault, joined by "; "."""
    misfits = []
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(step) for step in each["loc"])
        message = _MESSAGES.get(each["type"], each["msg"])
        misfits.append(f"{place}: {message}" if place else message)
    return "; ".join(misfits)


class PlainSchema(GenerateJsonSchema):
    """Generates JSON schemas without the titles that pydantic derives from field names, because they tell a model
    nothing.
    """

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 (pydantic's own attribute)

    def field_title_should_be_set(self, schema: Any) -> bool:  # the parameter's type is pydantic's own
        """Return False for each field."""
        return False
