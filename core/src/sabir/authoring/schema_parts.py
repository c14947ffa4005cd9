"""Helpers that read a JSON schema, without rules: nested schemas, references, and accepted values.

A keyword whose value has the wrong type is treated as missing.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from sabir.base.values import JSONValue, encode_json

Schema: TypeAlias = Mapping[str, Any]
"""The type of a JSON schema that is an object. The types of its values are unknown, hence Any."""

MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose value maps names to schemas."""
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""
ONES = frozenset({
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
"""Keywords whose value is one schema."""
UNIONS = ("anyOf", "oneOf", "allOf")
"""Keywords that combine schemas."""
TYPED = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "oneOf", "type"})
"""A schema with none of these keywords, and without `properties`, counts as a schema for any value."""


def has_lookaround(pattern: Any) -> bool:
    """Return whether a regular expression contains lookahead or lookbehind. False for a value that is not a string."""
    plain = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "", pattern, flags=re.DOTALL) if isinstance(pattern, str) else ""
    return re.search(r"\(\?<?[=!]", plain) is not None


def with_names(schema: Schema, wire: Mapping[str, str]) -> Schema:
    """Return an object's schema with renamed properties, also in the root's `required`, `dependentRequired`,
    `dependentSchemas`, `if`, `then`, `else` and `not`. `wire` maps old to new names.
    """
    renamed = dict(schema)
    for name in ("properties", "dependentRequired", "dependentSchemas"):
        if isinstance(value := renamed.get(name), Mapping):
            renamed[name] = {wire.get(key, key): each for key, each in value.items()}
    if required := as_list(renamed.get("required")):
        renamed["required"] = [wire.get(key, key) for key in required]
    for name, each in as_mapping(renamed.get("dependentRequired")).items():
        renamed["dependentRequired"] = {**renamed["dependentRequired"], name: [wire.get(key, key) for key in each]}
    for name in ("if", "then", "else", "not"):
        if isinstance(value := renamed.get(name), Mapping):
            renamed[name] = with_names(value, wire)
    return renamed


def target_of(schema: Schema, reference: JSONValue) -> Schema | None:
    """Return the schema inside `schema` to which a reference such as "#/$defs/City" points; None if there is none."""
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


def resolve(schema: Schema, part: JSONValue) -> Schema:
    """Return a part of a schema with its reference replaced by the target. The part's own keywords override the
    target's.
    """
    fields, seen = as_mapping(part), set[str]()
    while (reference := fields.get("$ref")) is not None and str(reference) not in seen:
        seen.add(str(reference))
        fields = {**(target_of(schema, reference) or {}), **without_keywords(fields, "$ref")}
    return fields


def endless_reference(schema: Schema, start: Schema | None = None) -> str:
    """Return why a schema is not finite: the first reference that is recursive or points outside of it, as text; "" if
    all references end.

    `start` is a part of the schema; then only references that can be reached from this part count.
    """
    finite = set[str]()

    def check(part: JSONValue, trail: tuple[str, ...]) -> str:
        """Return the fault of the first endless reference in `part`, or "". `trail` has the references that lead to
        `part`.
        """
        for reference in references(part):
            target = target_of(schema, reference)
            if reference in trail or target is None:
                return f"{reference} {'names nothing in the schema' if target is None else 'is recursive'}"
            if reference not in finite and (reason := check(target, (*trail, reference))):
                return reason
            finite.add(reference)
        return ""

    return check(schema if start is None else start, ())


def rename_reference(reference: str, wire: Mapping[str, str]) -> str:
    """Return a reference with the new name of a renamed property of the root, if it points to the property or inside
    it. Other references are returned unchanged.
    """
    start, name, *rest = [*reference.split("/", 3)[1:], "", ""][:3]
    original = name.replace("~1", "/").replace("~0", "~")
    if start != "properties" or original not in wire:
        return reference
    return "/".join(filter(None, ("#", start, wire[original], *rest)))


def _subschemas(schema: JSONValue) -> Iterator[JSONValue]:
    """Yield the schemas directly inside a schema."""
    for name, value in as_mapping(schema).items():
        if name in MAPS:
            yield from as_mapping(value).values()
        elif name in LISTS or (name == "items" and isinstance(value, list | tuple)):
            yield from as_list(value)
        elif name in ONES:
            yield value


def references(schema: JSONValue) -> Iterator[str]:
    """Yield every reference in a schema and in the schemas inside it."""
    if isinstance(schema, Mapping) and "$ref" in schema:
        yield str(schema["$ref"])
    for each in _subschemas(schema):
        yield from references(each)


def keywords(schema: JSONValue) -> Iterator[str]:
    """Yield the keywords of a schema and of the schemas inside it, each once."""
    yield from dict.fromkeys([*as_mapping(schema), *(name for each in _subschemas(schema) for name in keywords(each))])


def either(schemas: list[JSONValue]) -> JSONValue:
    """Return a schema that accepts every value that at least one of these schemas accepts."""
    different = list({encode_json(each, sort_keys=True): each for each in schemas}.values())
    if any(each is True or each == {} for each in different):
        return {}
    return different[0] if len(different) == 1 else {"anyOf": different}


def admits_null(schema: JSONValue) -> bool:
    """Return whether `type`, `enum` or `anyOf` of a schema names null as an accepted value."""
    fields = as_mapping(schema)
    is_null = has_type(fields, "null") or None in as_list(fields.get("enum"))
    return is_null or any(map(admits_null, as_list(fields.get("anyOf"))))


def is_object(schema: Schema) -> bool:
    """Return whether a schema describes an object: by `type`, `properties` or `required`."""
    return has_type(schema, "object") or "properties" in schema or "required" in schema


def has_type(schema: Schema, name: str) -> bool:
    """Return whether `name` is the `type` of a schema, or one of several."""
    return name == schema.get("type") or name in as_list(schema.get("type"))


def as_list(value: JSONValue) -> list[Any]:
    """Return a list or tuple as a list, any other value as an empty list."""
    return list(value) if isinstance(value, list | tuple) else []


def as_mapping(value: JSONValue) -> Mapping[str, Any]:
    """Return a mapping unchanged, for any other value an empty dict."""
    return value if isinstance(value, Mapping) else {}


def without_keywords(schema: Schema, *names: str) -> dict[str, Any]:
    """Return a copy of a schema without the keywords `names`."""
    return {name: value for name, value in schema.items() if name not in names}


def short_json(value: JSONValue) -> str:
    """Return a value as JSON text for an error message. A text of more than 40 characters is cut, and ends with "…"."""
    text = encode_json(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def join_path(path: str, name: str) -> str:
    """Return the path of a keyword or property inside the place `path`, which is "" for the root."""
    return f"{path}.{name}" if path else name
