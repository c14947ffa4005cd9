"""From JSON arguments to the call of a function.

    canonical JSON text ──Binder──▶ Bound(positional, named) ──▶ function(*positional, **named)

A binder validates first: arguments that it refuses never reach the function.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel, ValidationError

from sabir.base.models import describe
from sabir.base.values import FrozenDict, JSONText, JSONValue


class Bound(NamedTuple):
    """Validated arguments, as a function takes them."""

    positional: tuple[Any, ...]
    named: Mapping[str, Any]


Binder: TypeAlias = Callable[[JSONText], Bound]
"""Arguments as JSON text → the function's arguments; raises ArgumentsRefused for arguments that do not fit."""


class ArgumentsRefused(ValueError):
    """Arguments do not fit an option's parameters; the message names each misfit, in one line."""


class Parameter(NamedTuple):
    """One parameter of a function: its name, the model field that validates it, and how it is passed."""

    name: str
    field: str
    positional: bool


def bind_parameters(model: type[BaseModel], parameters: tuple[Parameter, ...], arguments: JSONText) -> Bound:
    """The arguments of a function whose parameters are the fields of a model made for it."""
    values = _validate(model, arguments)
    positional = tuple(getattr(values, each.field) for each in parameters if each.positional)
    named = {each.name: getattr(values, each.field) for each in parameters if not each.positional}
    return Bound(positional, named)


def bind_model(model: type[BaseModel], arguments: JSONText) -> Bound:
    """The arguments of a function that takes one instance of a model."""
    return Bound((_validate(model, arguments),), {})


def bind_schema(schema: FrozenDict, arguments: JSONText) -> Bound:
    """The arguments of a function that takes them by name, as plain JSON values.

    Core validates the most common keywords of schemas: `type`, `enum`, `const`, `required`, `properties`,
    `additionalProperties` and `items`. The function itself must check the others.
    """
    values = arguments.view()
    misfits = list(_misfits(values, schema, ""))
    if misfits:
        raise ArgumentsRefused("; ".join(misfits))
    return Bound((), values)


def _validate(model: type[BaseModel], arguments: JSONText) -> BaseModel:
    try:
        return model.model_validate_json(arguments)
    except ValidationError as error:
        raise ArgumentsRefused(describe(error)) from None


def _is_number(value: JSONValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[JSONValue], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: _is_number(value) and value == int(value),
    "number": _is_number,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _misfits(value: JSONValue, schema: JSONValue, place: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    where = f"{place}: " if place else ""
    expected = schema.get("type", [])
    types = [expected] if isinstance(expected, str) else expected
    if types and not any(_TYPES.get(name, lambda _: True)(value) for name in types):
        yield f"{where}expected {' or '.join(types)}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{where}expected one of {', '.join(map(repr, schema['enum']))}"
    elif "const" in schema and value != schema["const"]:
        yield f"{where}expected {schema['const']!r}"
    elif isinstance(value, dict):
        yield from _object_misfits(value, schema, place)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _misfits(item, schema.get("items"), f"{place}[{index}]")


def _object_misfits(value: Mapping[str, JSONValue], schema: Mapping[str, JSONValue], place: str) -> Iterator[str]:
    prefix = f"{place}." if place else ""
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{prefix}{name}: required"
    for name, item in value.items():
        if name in properties:
            yield from _misfits(item, properties[name], prefix + name)
        elif schema.get("additionalProperties") is False:
            yield f"{prefix}{name}: unknown; expected one of {', '.join(properties) or 'none'}"
        else:
            yield from _misfits(item, schema.get("additionalProperties"), prefix + name)
