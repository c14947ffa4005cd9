"""Helpers that read a JSON schema, without rules: nested schemas, references, and accepted values.

A keyword whose value has the wrong type is treated as missing.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from sabir.base.values import JSONValue, encode_json

Schema: TypeAlias = Mapping[str, Any]
"""A JSON schema that is an object; nothing is known of its values."""

MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose value maps names to schemas."""
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
ONES = frozenset({
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
UNIONS = ("anyOf", "oneOf", "allOf")
TYPED = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "oneOf", "type"})
"""Keywords one of which a schema needs to constrain a value."""


def has_lookaround(pattern: Any) -> bool:
    """Return whether a regular expression looks ahead or behind."""
    plain = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "", pattern, flags=re.DOTALL) if isinstance(pattern, str) else ""
    return re.search(r"\(\?<?[=!]", plain) is not None


def with_names(schema: Schema, wire: Mapping[str, str]) -> Schema:
    """Return an object's schema with other names of its properties, in the conditions at its root too."""
    renamed = dict(schema)
    for name in ("properties", "dependentRequired", "dependentSchemas"):
        if isinstance(value := renamed.get(name), Mapping):
            renamed[name] = {wire.get(key, key): each for key, each in value.items()}
    if required := listed(renamed.get("required")):
        renamed["required"] = [wire.get(key, key) for key in required]
    for name, each in mapped(renamed.get("dependentRequired")).items():
        renamed["dependentRequired"] = {**renamed["dependentRequired"], name: [wire.get(key, key) for key in each]}
    for name in ("if", "then", "else", "not"):
        if isinstance(value := renamed.get(name), Mapping):
            renamed[name] = with_names(value, wire)
    return renamed


def target_of(schema: Schema, reference: JSONValue) -> Schema | None:
    """Return the part of a schema that a reference names, or None."""
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        return None
    target: Any = schema
    for escaped in reference.removeprefix("#").strip("/").split("/"):
        step = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list | tuple) and step.isdecimal() and int(step) < len(target):
            target = target[int(step)]
        elif step and isinstance(target, Mapping):
            target = target.get(step)
        elif step:
            return None
    return target if isinstance(target, Mapping) else None


def resolved(schema: Schema, part: JSONValue) -> Schema:
    """Return a part of a schema with its reference replaced by the target; the part's own keywords win."""
    fields, seen = mapped(part), set[str]()
    while (reference := fields.get("$ref")) is not None and str(reference) not in seen:
        seen.add(str(reference))
        fields = {**(target_of(schema, reference) or {}), **without_keywords(fields, "$ref")}
    return fields


def endless_reference(schema: Schema, start: Schema | None = None) -> str:
    """Return what is wrong with a reference that leads back to itself or out of the schema, or "".

    `start` is a part of the schema, if only the references that it leads to count.
    """
    finite = set[str]()

    def check(part: JSONValue, trail: tuple[str, ...]) -> str:
        for reference in references(part):
            target = target_of(schema, reference)
            if reference in trail or target is None:
                return f"{reference} {'names nothing in the schema' if target is None else 'is recursive'}"
            if reference not in finite and (reason := check(target, (*trail, reference))):
                return reason
            finite.add(reference)
        return ""

    return check(schema if start is None else start, ())


def renamed_reference(reference: str, wire: Mapping[str, str]) -> str:
    """Return a reference to a property of the root, or to a place below it, with the property's name that is sent."""
    start, name, *within = [*reference.split("/", 3)[1:], "", ""][:3]
    given = name.replace("~1", "/").replace("~0", "~")
    if start != "properties" or given not in wire:
        return reference
    return "/".join(filter(None, ("#", start, wire[given], *within)))


def _subschemas(schema: JSONValue) -> Iterator[JSONValue]:
    for name, value in mapped(schema).items():
        if name in MAPS:
            yield from mapped(value).values()
        elif name in LISTS or (name == "items" and isinstance(value, list | tuple)):
            yield from listed(value)
        elif name in ONES:
            yield value


def references(schema: JSONValue) -> Iterator[str]:
    """Yield every reference of a schema and of the schemas within it."""
    if isinstance(schema, Mapping) and "$ref" in schema:
        yield str(schema["$ref"])
    for each in _subschemas(schema):
        yield from references(each)


def keywords(schema: JSONValue) -> Iterator[str]:
    """Yield the keywords of a schema and of the schemas within it."""
    yield from dict.fromkeys([*mapped(schema), *(name for each in _subschemas(schema) for name in keywords(each))])


def either(schemas: list[JSONValue]) -> JSONValue:
    """Return a schema that accepts every value which one of these schemas accepts."""
    different = list({encode_json(each, sort_keys=True): each for each in schemas}.values())
    if any(each is True or each == {} for each in different):
        return {}
    return different[0] if len(different) == 1 else {"anyOf": different}


def admits_null(schema: JSONValue) -> bool:
    """Return whether null matches, as far as types, enumerations and `anyOf` say."""
    fields = mapped(schema)
    is_null = has_type(fields, "null") or None in listed(fields.get("enum"))
    return is_null or any(map(admits_null, listed(fields.get("anyOf"))))


def is_object(schema: Schema) -> bool:
    """Return whether a schema describes an object."""
    return has_type(schema, "object") or "properties" in schema or "required" in schema


def has_type(schema: Schema, name: str) -> bool:
    """Return whether a type is among the types of a schema."""
    return name == schema.get("type") or name in listed(schema.get("type"))


def listed(value: JSONValue) -> list[Any]:
    """Return a JSON array as a list, anything else as an empty list."""
    return list(value) if isinstance(value, list | tuple) else []


def mapped(value: JSONValue) -> Mapping[str, Any]:
    """Return a JSON object, anything else as an empty object."""
    return value if isinstance(value, Mapping) else {}


def without_keywords(schema: Schema, *names: str) -> dict[str, Any]:
    """Return a schema without those keywords."""
    return {name: value for name, value in schema.items() if name not in names}


def short_json(value: JSONValue) -> str:
    """Return a value as JSON text of at most 40 characters."""
    text = encode_json(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def within(path: str, name: str) -> str:
    """Return the path of a keyword or a name below a path, which is "" for the root."""
    return f"{path}.{name}" if path else name
