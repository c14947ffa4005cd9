"""Read an option's facts from a function's signature and docstring, and bind JSON arguments to the function.

    def weather(city: str, unit: Literal["C", "F"] = "C") -> str:
        "Current weather in a city."                              ──▶ name, description, JSON schema, binder
    def pay(amount: int, context: ToolContext) -> str             ──▶ the model sends `amount`, sabir adds `context`

    canonical JSON text ──binder──▶ BoundArguments(positional, named) ──▶ function(*positional, **named)

The schema comes from pydantic. A parameter's description comes from `Annotated[…, Field(description=…)]`, or from the
docstring's `Args:` section or `:param name:` fields. A parameter whose type has the class method `__sabir_provide__` is
not shown to the model: the method returns the parameter's value for the present run, or raises LookupError. A binder
checks the arguments: if it refuses them, the function is not called.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from inspect import Parameter
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from sabir.base.errors import OptionInvalid, one_line
from sabir.base.models import PlainSchema, describe_validation_error
from sabir.base.values import JSONText, JSONValue


class BoundArguments(NamedTuple):
    """The validated arguments of an option call, for `function(*positional, **named)`. Returned by the `binder` of a
    Signature or an Option.
    """

    positional: tuple[Any, ...]
    named: Mapping[str, Any]


Binder: TypeAlias = Callable[[JSONText], BoundArguments]
"""A function that converts the JSON text of arguments to BoundArguments. Raises ArgumentsRefused if they do not fit."""


class ArgumentsRefused(ValueError):
    """Raised by a `binder` for arguments that do not match an option's parameters. The message names the mismatches.
    `Option.answer` turns it into an error result for the model.
    """


def bind_parameters(model: type[BaseModel], parameters: Iterable[Parameter], arguments: JSONText) -> BoundArguments:
    """Return the arguments of a function. `model` is the pydantic model made from `parameters`, with fields in this
    order.

    Raises ArgumentsRefused if the JSON text does not fit the model.
    """
    values = list(zip(parameters, _validate(model, arguments).__dict__.values(), strict=True))
    positional = tuple(value for each, value in values if each.kind is each.POSITIONAL_ONLY)
    return BoundArguments(positional, {each.name: value for each, value in values[len(positional) :]})


def bind_model(model: type[BaseModel], arguments: JSONText) -> BoundArguments:
    """Return one instance of the model as the only argument. Raises ArgumentsRefused if the JSON text does not fit."""
    return BoundArguments((_validate(model, arguments),), {})


def bind_schema(schema: Mapping[str, JSONValue], arguments: JSONText) -> BoundArguments:
    """Return the arguments by name, as immutable JSON values.

    Raises ArgumentsRefused for values that do not fit the keywords `type`, `enum`, `const`, `required`, `properties`,
    `additionalProperties` and `items`. Malformed and other keywords are ignored.
    """
    values = arguments.view()
    misfits = list(_find_misfits(values, schema, ""))
    if misfits:
        raise ArgumentsRefused("; ".join(misfits))
    return BoundArguments((), values)


def _validate(model: type[BaseModel], arguments: JSONText) -> BaseModel:
    try:
        return model.model_validate_json(arguments)
    except ValidationError as error:
        raise ArgumentsRefused(describe_validation_error(error)) from None


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
"""Type in a JSON schema → a function that returns whether a value has the type."""


def _find_misfits(value: JSONValue, schema: JSONValue, place: str) -> Iterator[str]:
    """Yield a text for each place where a value does not fit a JSON schema. `place` is the path of the value, or ""."""
    if not isinstance(schema, dict):
        return
    where = f"{place}: " if place else ""
    expected = schema.get("type", [])
    types = [expected] if isinstance(expected, str) else expected if isinstance(expected, list) else []
    if types and not any(_TYPES.get(name, lambda _: True)(value) for name in types):
        yield f"{where}expected {' or '.join(map(str, types))}"
    elif isinstance(choices := schema.get("enum"), list) and value not in choices:
        yield f"{where}expected one of {', '.join(map(repr, choices))}"
    elif "const" in schema and value != schema["const"]:
        yield f"{where}expected {schema['const']!r}"
    elif isinstance(value, dict):
        yield from _find_object_misfits(value, schema, place)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_misfits(item, schema.get("items"), f"{place}[{index}]")


def _find_object_misfits(value: Mapping[str, JSONValue], schema: Mapping[str, JSONValue], place: str) -> Iterator[str]:
    """Yield the misfits of an object's members: missing, unknown or invalid ones."""
    prefix = f"{place}." if place else ""
    properties = properties if isinstance(properties := schema.get("properties"), dict) else {}
    for name in required if isinstance(required := schema.get("required"), list) else ():
        if name not in value:
            yield f"{prefix}{name}: required"
    for name, item in value.items():
        if name in properties:
            yield from _find_misfits(item, properties[name], prefix + name)
        elif schema.get("additionalProperties") is False:
            yield f"{prefix}{name}: unknown; expected one of {', '.join(properties) or 'none'}"
        else:
            yield from _find_misfits(item, schema.get("additionalProperties"), prefix + name)


class Provided(NamedTuple):
    """One parameter that `__sabir_provide__` fills in. `function` is the option's name, `kind` the parameter's type."""

    function: str
    name: str
    kind: Any  # a class with `__sabir_provide__`
    has_default: bool


def read_provided(function: str, parameters: Iterable[Parameter], hints: Mapping[str, Any]) -> tuple[Provided, ...]:
    """Return the parameters that `__sabir_provide__` fills in; types such as `X | None` and `Annotated[X, …]` count."""
    return tuple(
        Provided(function, each.name, kind, each.default is not each.empty)
        for each in parameters
        if (kind := _provider_of(hints.get(each.name))) is not None
        and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    )


def values_of(provided: Iterable[Provided]) -> dict[str, Any]:
    """Return the values that `__sabir_provide__` gives now for these parameters, by parameter name.

    A parameter without a value but with a default is left out. Raises OptionInvalid for a parameter that has neither.
    """
    values = {}
    for each in provided:
        try:
            values[each.name] = each.kind.__sabir_provide__()
        except LookupError as error:
            if not each.has_default:
                needs = f"{each.function!r} needs {each.name!r}, a {each.kind.__name__}"
                raise OptionInvalid(f"{needs}, which is not available here: {error}") from None
    return values


def bind_provided(binder: Binder, provided: tuple[Provided, ...], arguments: JSONText) -> BoundArguments:
    """Call a binder, and return its arguments with the values of the parameters that sabir fills in. Raises
    ArgumentsRefused if the arguments do not fit, and OptionInvalid if a parameter has neither a value nor a default.
    """
    bound = binder(arguments)
    return BoundArguments(bound.positional, {**bound.named, **values_of(provided)})


def _provider_of(annotation: Any) -> Any:
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return next(filter(None, map(_provider_of, get_args(annotation))), None)
    return annotation if isinstance(annotation, type) and hasattr(annotation, "__sabir_provide__") else None


AnyFunction = Callable[..., Any]


class Signature(NamedTuple):
    """The name, description and parameters of a function as an option. Created by `Signature.of`.

    `parameters` is the JSON schema of the arguments. `binder` is a function from JSON text to BoundArguments, which
    raises ArgumentsRefused; the provided parameters are not included.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    binder: Binder
    provided: tuple[Provided, ...] = ()
    """Further parameters that the model does not see, such as a ToolContext. `provide` returns their values."""

    @staticmethod
    def unwrap(function: AnyFunction) -> AnyFunction:
        """Return the function inside any number of nested `functools.partial` objects; another object unchanged."""
        while isinstance(function, partial):
            function = function.func
        return function

    @staticmethod
    def is_asynchronous(function: AnyFunction) -> bool:
        """Return whether the function, partial or callable object is a coroutine function."""
        inner = Signature.unwrap(function)
        return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004

    @classmethod
    def of(cls, function: AnyFunction, name: str | None = None) -> "Signature":
        """Return the signature of a function, method, partial or callable object. `name` replaces the function's own
        name.

        Raises OptionInvalid, in one line, for a function that cannot be described to a model, for example a function
        with a parameter without annotation, a generator function, or a lambda without `name`.
        """
        inner = Signature.unwrap(function)
        name = name or getattr(inner, "__name__", None)
        if not name or name == "<lambda>":
            quoted = one_line(repr(function), 80)
            raise OptionInvalid(f"{quoted} has no name; set one with sabir.option(name=…)")
        if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
            raise OptionInvalid(f"option {name!r} is a generator; return one value instead, for example a list")
        documentation = inspect.getdoc(inner) or ""
        fields, parameters, provided = _read_parameters(function, name, _parameter_documentation(documentation))
        schema, model = _build_model(name, fields)
        binder = partial(bind_parameters, model, parameters)
        return cls(name, first_paragraph(documentation), schema, binder, provided)

    def provide(self) -> dict[str, Any]:
        """Return the present values of the parameters in `provided`, which sabir fills in, by name. A parameter without
        a value but with a default is left out. Raises OptionInvalid for a parameter that has neither.
        """
        return values_of(self.provided)


def provided_to(function: AnyFunction, name: str) -> tuple[Provided, ...]:
    """Return the parameters that sabir fills in, for a function whose other parameters are described by a schema. Empty
    if the function's annotations cannot be read.
    """
    try:
        hints, parameters = _type_hints(function, name), inspect.signature(function).parameters
    except (OptionInvalid, ValueError):
        return ()
    return read_provided(name, parameters.values(), hints)


def schema_of_model(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a pydantic model, without title and description.

    Raises OptionInvalid if the model has no JSON schema, or if the schema is not of an object.
    """
    try:
        schema = model.model_json_schema(schema_generator=PlainSchema)
    except (PydanticUserError, RecursionError) as error:
        raise OptionInvalid(f"{model.__name__} has no JSON schema: {_first_sentence(error)}") from None
    if schema.get("type") != "object" and "$ref" not in schema:
        needed = "an option's parameters are the fields of an object"
        raise OptionInvalid(f"{model.__name__} is not an object type; {needed}")
    for known_elsewhere in ("title", "description"):
        schema.pop(known_elsewhere, None)
    return schema


def first_paragraph(documentation: str) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join(re.split(r"\n\s*\n", documentation.strip(), maxsplit=1)[0].split())


def _read_parameters(
    function: AnyFunction, name: str, documentation: Mapping[str, str]
) -> tuple[dict[str, Any], tuple[Parameter, ...], tuple[Provided, ...]]:
    """Return pydantic field definitions for the parameters that the model fills in, these parameters, and the provided
    ones.

    Raises OptionInvalid for a parameter that JSON schema cannot describe.
    """
    bound = function.keywords if isinstance(function, partial) else {}
    hints = _type_hints(function, name)
    try:
        declared = inspect.signature(function).parameters.values()
    except ValueError:
        raise OptionInvalid(f"option {name!r} has no readable signature; wrap it in a typed function") from None
    provided = read_provided(name, (each for each in declared if each.name not in bound), hints)
    hidden = {*bound, *(each.name for each in provided)}  # bound by the author, or filled in by sabir
    parameters = tuple(each for each in declared if each.name not in hidden)
    fields = {}
    for index, each in enumerate(parameters):
        _refuse_open_ended(each, name, hints)
        fields[f"parameter_{index}"] = _define_field(each, hints[each.name], documentation.get(each.name))
    return fields, parameters, provided


def _type_hints(function: AnyFunction, name: str) -> dict[str, Any]:
    """Return the resolved annotations of a function. Raises OptionInvalid if an annotation cannot be resolved."""
    inner = Signature.unwrap(function)
    target = inner if inspect.isroutine(inner) else type(inner).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        remedy = "import it, or define it at the module's top level"
        raise OptionInvalid(f"option {name!r} has an annotation that cannot be resolved: {error}; {remedy}") from None
    except TypeError as error:
        raise OptionInvalid(f"option {name!r} has annotations that are not types: {one_line(str(error))}") from None


def _refuse_open_ended(parameter: Parameter, name: str, hints: Mapping[str, Any]) -> None:
    """Raise OptionInvalid for `*args`, `**kwargs`, an unbound `self`, and a parameter without an annotation."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        remedy = "name each parameter, or use Option.from_schema"
        raise OptionInvalid(f"option {name!r} has {parameter}, which a JSON schema cannot describe; {remedy}")
    if parameter.name in ("self", "cls") and parameter.name not in hints:
        raise OptionInvalid(f"option {name!r} is an unbound method; offer the bound one: sabir.option(object.{name})")
    if parameter.name not in hints:
        remedy = f"annotate it, for example {parameter.name}: str"
        raise OptionInvalid(f"option {name!r} has no type for its parameter {parameter.name!r}; {remedy}")


def _define_field(parameter: Parameter, annotation: Any, documented: str | None) -> tuple[Any, Any]:
    """Return the definition of a pydantic field for a parameter. `documented` is the docstring's description, which is
    used if no Field describes the parameter.
    """
    default = parameter.default
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], parameter.empty
    described = [each for each in getattr(annotation, "__metadata__", ()) if isinstance(each, FieldInfo)]
    settings: dict[str, Any] = {"alias": next((each.alias for each in described if each.alias), parameter.name)}
    if documented and not any(each.description for each in described):
        settings["description"] = documented
    if default is not parameter.empty:
        settings["default"] = default
    return annotation, Field(**settings)


def _build_model(name: str, fields: dict[str, Any]) -> tuple[dict[str, Any], type[BaseModel]]:
    """Return the JSON schema of the parameters, and the pydantic model that validates them. Raises OptionInvalid."""
    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        return schema_of_model(model), model
    except OptionInvalid as error:
        raise OptionInvalid(f"option {error}") from None
    except (PydanticUserError, TypeError, ValueError) as error:
        raise OptionInvalid(f"option {name!r} cannot be described: {_first_sentence(error)}") from None


def _first_sentence(error: Exception) -> str:
    return one_line(str(error).split("\n")[0].split(". ")[0], 200)


_SECTION = re.compile(r"^(?:Args|Arguments|Parameters):\s*$")
"""Matches the first line of a docstring's section about parameters."""
_SECTION_ENTRY = re.compile(r"^\s+\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
"""Matches a parameter in such a section: its name, and the beginning of its description."""
_FIELD_ENTRY = re.compile(r"^\s*:param\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$")
"""Matches a `:param name:` field: the parameter's name, and the beginning of its description."""


def _parameter_documentation(documentation: str) -> dict[str, str]:
    """Return the descriptions of parameters in a docstring, by name. Lines indented deeper than an entry
    belong to it.
    """
    entries: dict[str, list[str]] = {}
    current, depth_of_entry, in_section = "", 0, False
    for line in documentation.splitlines():
        depth = len(line) - len(line.lstrip())
        if current and line.strip() and depth > depth_of_entry:
            entries[current].append(line)
            continue
        entry = _FIELD_ENTRY.match(line) or (_SECTION_ENTRY.match(line) if in_section else None)
        current, depth_of_entry = (entry[1], depth) if entry else ("", 0)
        if entry:
            entries[current] = [entry[2]]
        elif line.strip():
            in_section = bool(_SECTION.match(line))
    return {name: " ".join(" ".join(lines).split()) for name, lines in entries.items()}
