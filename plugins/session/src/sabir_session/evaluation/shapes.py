"""The shapes of types: which values of an incomplete JSON text can be validated, and how to build an incomplete object.

Trip(city: str, stays: list[Stay])  ──▶  Shape of an object ─ "city": a text
(pydantic's core schema)                                    └ "stays": an array ─ of objects …

complete value ──▶ Shape.validate: all validators of its type        open string ──▶ only if its type is `str`
open object ──▶ an instance of its class without validation, None for each field that has not arrived
open object of a union ──▶ the only class of the union that has all its keys, and whose types they fit
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from pydantic import RootModel, TypeAdapter
from pydantic_core import SchemaValidator, to_json

from sabir_session.evaluation.json_scanner import OpenContainer, OpenText

MISSING: Any = type("_Missing", (), {"__repr__": lambda self: "MISSING"})()
"""What has not arrived, or cannot be shown yet."""
Schema: TypeAlias = Mapping[str, Any]  # pydantic's core schemas, which are dicts of many types

_INNER = {
    "nullable": "schema",
    "default": "schema",
    "definitions": "schema",
    "function-before": "schema",
    "function-after": "schema",
    "function-wrap": "schema",
    "json-or-python": "json_schema",
    "lax-or-strict": "lax_schema",
}
"""Type of a schema around another schema → the key of the other schema."""
_BRACKETS = {"model": "{", "dataclass": "{", "typed-dict": "{", "dict": "{", "list": "[", "tuple": "["}
"""Type of a schema → the bracket with which its JSON begins."""
_ITEMS = {"list": "items_schema", "dict": "values_schema"}
_ANY: Schema = {"type": "any"}
_FIELDS: Mapping[str, Callable[[Schema], Schema]] = {
    "model": lambda schema: schema["fields"],
    "typed-dict": lambda schema: schema["fields"],
    "dataclass": lambda schema: {field["name"]: field for field in schema["fields"]},
}
"""Type of a schema → a function that returns the schemas of its fields by name."""


class Definitions:
    """The schemas that other schemas of one type refer to, and the shapes that were created for them."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        self._by_name = {str(schema["ref"]): schema for schema in schemas}
        self._shapes: dict[tuple[int, int], Shape] = {}

    def shape(self, schema: Schema, config: Mapping[str, Any] | None) -> "Shape":
        """Return the shape of a schema in a model with this config. A recursive type has one shape."""
        schema = self.resolve(schema)
        key = id(schema), id(config)
        if key not in self._shapes:
            self._shapes[key] = Shape(schema, self, config)
        return self._shapes[key]

    def resolve(self, schema: Schema) -> Schema:
        """Return the schema to which a reference points; any other schema itself."""
        while schema["type"] == "definition-ref":
            schema = self._by_name[schema["schema_ref"]]
        return schema

    def validator(self, schema: Schema, config: Any) -> SchemaValidator:
        """Return the validator of a schema."""
        complete: Any = schema
        if self._by_name and schema["type"] != "definitions":
            complete = {"type": "definitions", "schema": schema, "definitions": [*self._by_name.values()]}
        return SchemaValidator(complete, config)


class Shape:
    """One type in a core schema. `config` is the config of the model around it."""

    def __init__(self, schema: Schema, definitions: Definitions, config: Mapping[str, Any] | None = None) -> None:
        self._outer = self._core = schema
        self._definitions = definitions
        self._config = config
        self._has_function = False
        while (kind := str(self._core["type"])) in _INNER:
            self._has_function |= kind.startswith("function")
            self._core = definitions.resolve(self._core[_INNER[kind]])
        self.kind = kind

    @classmethod
    def of(cls, adapter: TypeAdapter[Any]) -> "Shape":
        """Return the shape of a type."""
        schema: Any = adapter.core_schema
        return Definitions(schema.get("definitions", ())).shape(schema, None)

    def validate(self, text: str) -> object:
        """Return the value of a complete JSON text, or MISSING if it does not fit."""
        return self._attempt(self._validator.validate_json, text)

    def validate_open(self, text: str) -> object:
        """Return the value of a string that has not ended, or MISSING. The functions of its type do not run."""
        functions = [shape._has_function for shape in self.choices if shape.kind in ("str", "any")]
        if self._has_function or not functions or all(functions):
            return MISSING
        if self._accepts_every_text:
            return text
        validated = self._attempt(self._validator.validate_python, text)
        return validated if type(validated) is str else MISSING

    @cached_property
    def _accepts_every_text(self) -> bool:
        """Whether this is `str` without constraints. Then its values need no validation."""
        has_rules = any(str(key).startswith("str_") for key in self._config or ())
        return self.kind == "str" and not has_rules and self._core.keys() <= {"type", "ref", "metadata", "strict"}

    @cached_property
    def choices(self) -> tuple["Shape", ...]:
        """The types of a union; this type itself if it is not a union."""
        if self.kind not in ("union", "tagged-union"):
            return (self,)
        schemas = self._core["choices"]
        schemas = schemas.values() if isinstance(schemas, dict) else schemas
        schemas = [each[0] if isinstance(each, tuple) else each for each in schemas]  # a choice may have a label
        shapes = [self._definitions.shape(each, self._config) for each in schemas if isinstance(each, dict)]
        return tuple(choice for shape in shapes for choice in shape.choices)

    @cached_property
    def root(self) -> "Shape | None":
        """The type of the value of a RootModel, or None for all other types."""
        if self.kind == "model" and self._core.get("root_model"):
            return self._definitions.shape(self._core["schema"], self._core.get("config"))
        return None

    def accepts(self, bracket: str) -> bool:
        """Return whether a JSON object or array can be of this type."""
        if self.root is not None:
            return any(choice.accepts(bracket) for choice in self.root.choices)
        return self.kind == "any" or _BRACKETS.get(self.kind) == bracket

    def child(self, key: str | int) -> "Shape | None":
        """Return the type of the value with this key or index, or None if there is none."""
        if self.kind in _FIELDS:
            return self._fields.get(str(key), (key, None))[1]
        schema: Schema | None = _ANY
        if self.kind == "tuple":
            schemas = self._core["items_schema"]
            at = min(int(key), self._core.get("variadic_item_index", len(schemas)))
            schema = schemas[at] if at < len(schemas) else None
        elif self.kind in _ITEMS:
            schema = self._core.get(_ITEMS[self.kind], _ANY)
        return None if schema is None else self._definitions.shape(schema, self._config)

    def name(self, key: str) -> object:
        """Return the name under which the value of a JSON key is stored: a field's name, or a dict's key."""
        if self.kind in _FIELDS:
            return self._fields.get(key, (key, None))[0]
        if self.kind == "dict" and "keys_schema" in self._core:
            keys = self._definitions.shape(self._core["keys_schema"], self._config)
            return keys.validate(to_json(key).decode()) if keys.kind != "str" else key
        return key

    def build(self, children: dict[Any, Any]) -> object:
        """Return an object of the values that arrived, by name. None replaces missing fields of a class."""
        if self.kind == "model":
            return _build_model(self._core["cls"], children)
        if self.kind == "dataclass":
            cls: Any = self._core["cls"]
            instance = object.__new__(cls)
            for field in dataclasses.fields(cls):
                object.__setattr__(instance, field.name, children.get(field.name))
            return instance
        return children

    def build_array(self, children: list[Any]) -> object:
        """Return a list or tuple of the values that arrived."""
        return tuple(children) if self.kind == "tuple" else [*children]

    @cached_property
    def allows_extra(self) -> bool:
        """Whether an object of this type may have keys without a type."""
        config = self._core.get("config") or {}
        return self.kind not in _FIELDS or config.get("extra_fields_behavior") == "allow"

    @cached_property
    def _fields(self) -> dict[str, tuple[str, "Shape | None"]]:
        """JSON key → the name and the type of a field. A field has its name and its alias as keys."""
        schema, config = self._core, self._core.get("config") or self._config
        while schema["type"] not in ("model-fields", "dataclass-args", "typed-dict"):
            inner = schema.get(_INNER.get(schema["type"], "schema"))
            if not isinstance(inner, dict):  # a schema that the class wrote itself
                return {}
            schema = self._definitions.resolve(inner)
        fields: dict[str, tuple[str, Shape | None]] = {}
        for name, field in _FIELDS[self.kind](schema).items():
            shape = self._definitions.shape(field["schema"], config)
            for key in (name, *_aliases(field)):
                fields[key] = (name, shape)
        return fields

    @cached_property
    def _validator(self) -> SchemaValidator:
        return self._definitions.validator(self._outer, self._config)

    def _attempt(self, validate: Callable[[str], object], text: str) -> object:
        try:
            return validate(text)
        except Exception:  # also an error of a validator in the type, which the complete output raises again
            return MISSING


def _aliases(field: Schema) -> list[str]:
    alias = field.get("validation_alias")
    paths = [alias] if isinstance(alias, str) else alias or []
    paths = [paths] if paths and not isinstance(alias, str) and not isinstance(paths[0], list) else paths
    steps = [[path] if isinstance(path, str) else path for path in paths]
    return [path[0] for path in steps if len(path) == 1 and isinstance(path[0], str)]


def _build_model(cls: Any, children: dict[str, Any]) -> object:
    """Return an instance of a model without validation. `model_construct` would fill in defaults and run hooks."""
    instance = cls.__new__(cls)
    object.__setattr__(instance, "__dict__", dict.fromkeys(cls.model_fields) | children)
    object.__setattr__(instance, "__pydantic_fields_set__", set(children))
    if not issubclass(cls, RootModel):  # a RootModel has these as attributes of its class
        object.__setattr__(instance, "__pydantic_extra__", {} if cls.model_config.get("extra") == "allow" else None)
        object.__setattr__(instance, "__pydantic_private__", {} if cls.__private_attributes__ else None)
    return instance


class Draft:
    """An incomplete value of one type, which grows with a container. Each complete value in it is validated once."""

    def __init__(self, shape: Shape, container: OpenContainer) -> None:
        self._shape = shape if shape.root is None else _choices(shape.root, container)[0]
        self._root_model = None if shape.root is None else shape
        self._container = container
        self._is_object = container.bracket == "{"
        self._fields: dict[Any, Any] = {}
        self._items: list[Any] = []
        self._read = 0
        self._open: tuple[object, DraftChoice | None] = (None, None)
        self.fits = True
        """Whether every key has a type, and every complete value fits its type."""

    def build(self) -> object:
        """Return a new object of the values that arrived."""
        for key, text in self._container.closed[self._read :]:
            child = self._child(key)
            self._read += 1
            self._add(key, MISSING if child is None else child.validate(text))
        so_far = self._object_so_far() if self._is_object else self._array_so_far()
        return so_far if self._root_model is None else self._root_model.build({"root": so_far})

    def _object_so_far(self) -> object:
        key, last = self._container.key, self._open_value()
        name = MISSING if last is MISSING else self._shape.name(key)
        return self._shape.build(dict(self._fields) if name is MISSING else {**self._fields, name: last})

    def _array_so_far(self) -> object:
        last = self._open_value()
        return self._shape.build_array(self._items if last is MISSING or not self.fits else [*self._items, last])

    def _child(self, key: str) -> Shape | None:
        """Return the type of the next value. Without one, this draft fits only if its type allows other keys."""
        child = self._shape.child(key if self._is_object else self._read)
        self.fits = self.fits and (child is not None or self._shape.allows_extra)
        return child

    def _add(self, key: str, child: object) -> None:
        """Add a complete value. After an item that does not fit, the positions of later items would be wrong."""
        name = self._shape.name(key) if self._is_object else None
        if child is MISSING or name is MISSING:
            self.fits = self.fits and self._is_object and self._shape.child(key) is None
        elif self._is_object:
            self._fields[name] = child
        elif self.fits:
            self._items.append(child)

    def _open_value(self) -> object:
        open_value = self._container.child
        shape = None if open_value is None else self._child(self._container.key)
        if open_value is None or shape is None:
            return MISSING
        if isinstance(open_value, OpenText):
            return shape.validate_open(open_value.text)
        if self._open[0] is not open_value:
            self._open = (open_value, DraftChoice(shape, open_value))
        draft = self._open[1]
        return MISSING if draft is None else draft.build()


class DraftChoice:
    """The drafts of an open container: one for each type that it may have."""

    def __init__(self, shape: Shape, container: OpenContainer) -> None:
        self._drafts = [Draft(choice, container) for choice in _choices(shape, container)]

    def build(self) -> object:
        """Return the value of the only type, or of the only type of a union that fits; else MISSING."""
        if len(self._drafts) == 1:
            return self._drafts[0].build()
        built = [(draft, draft.build()) for draft in self._drafts if draft.fits]
        fitting = [so_far for draft, so_far in built if draft.fits]
        return fitting[0] if len(fitting) == 1 else MISSING


def _choices(shape: Shape, container: OpenContainer) -> list[Shape]:
    """Return the types of a union whose JSON begins as the container does."""
    return [choice for choice in shape.choices if choice.accepts(container.bracket)]
