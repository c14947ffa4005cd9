"""JSON schemas as the vendor takes them, for replies and for parameters of options: what it does not take is told.

    schema ──fit──▶ keywords that the wire takes      others go into the description, annotations are left out

https://platform.claude.com/docs/en/build-with-claude/structured-outputs
"""

from collections.abc import Mapping
from typing import Any

from sabir.authoring import JSONValue, encode_json

KEPT = frozenset(
    {"$defs", "$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "definitions", "description",
     "enum", "format", "items", "minItems", "oneOf", "properties", "required", "title", "type"}
)  # fmt: skip
"""Keywords of a reply's schema that the vendor takes, of two of them not every value; others go into the description.
https://platform.claude.com/docs/en/build-with-claude/structured-outputs"""
FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"})
_ANNOTATIONS = frozenset({"$comment", "$id", "$schema", "deprecated", "examples", "readOnly", "writeOnly"})
_MAPS = ("properties", "$defs", "definitions")
_UNIONS = ("allOf", "anyOf", "oneOf")
_HOLDING = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "type"})
"""Of these a part of a schema has one: the SDK's typed call refuses any other."""
_BESIDE_REF = frozenset({"$ref", "$defs", "definitions"})
"""What the SDK leaves beside a reference."""


def fit(schema: JSONValue, reasons: dict[str, None], left_out: dict[str, None]) -> Any:
    """The schema in the form that the vendor holds replies to.

    Adds why a reply may miss the one given, and the keywords that hold it to nothing and are left out.
    """
    if not isinstance(schema, Mapping):
        return schema
    found: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _ANNOTATIONS:
            left_out[repr(name)] = None
        elif not _is_taken(name, value, schema):
            told[name] = value
        elif name in _MAPS and isinstance(value, Mapping):
            found[name] = {key: fit(each, reasons, left_out) for key, each in value.items()}
        elif name in _UNIONS and isinstance(value, list | tuple):
            left_out |= {"'oneOf', which is an 'anyOf'": None} if name == "oneOf" else {}
            found["anyOf" if name == "oneOf" else name] = [fit(each, reasons, left_out) for each in value]
        elif name != "additionalProperties":
            found[name] = fit(value, reasons, left_out) if name == "items" else value
    reasons |= dict.fromkeys(f"{name} stands in the description" for name in told)
    if told:
        words = ", ".join(f"{name}: {encode_json(value)}" for name, value in told.items())
        found["description"] = f"{schema.get('description', '')} ({words})".strip()
    _close_object(schema, found, reasons)
    if not found.keys() & _HOLDING:
        reasons["a part without a type holds them to nothing"] = None
    return _around_reference(found)


def _is_taken(name: str, value: JSONValue, schema: Mapping[str, JSONValue]) -> bool:
    """Whether the vendor takes a keyword with that value; of two unions, one."""
    match name:
        case "format":
            return value in FORMATS
        case "minItems":
            return value in (0, 1)
        case "oneOf":
            return "anyOf" not in schema
    return name in KEPT


def _close_object(schema: Mapping[str, JSONValue], found: dict[str, Any], reasons: dict[str, None]) -> None:
    """Close an object; adds what that, or leaving it out elsewhere, makes of free keys."""
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") not in (None, False):
            reasons["an object of free keys is closed"] = None
        found |= {"additionalProperties": False, "type": "object"}
    elif "additionalProperties" in schema:
        reasons["additionalProperties is left out of what is no object"] = None


def _around_reference(found: dict[str, Any]) -> dict[str, Any]:
    """The schema with other keywords around its reference, not beside it, where the SDK would leave them out."""
    if "$ref" in found and found.keys() - _BESIDE_REF and "anyOf" not in found:
        found["anyOf"] = [{"$ref": found.pop("$ref")}]
    return found


def fit_parameters(schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """An option's parameters as the schema of an object, and what they lost: a union at the top is refused."""
    lost = [name for name in _UNIONS if name in schema]
    found = {name: value for name, value in schema.items() if name not in lost}
    reason = f"the wire takes no {' or '.join(lost)} at the top of parameters" if lost else ""
    return {**found, "type": "object"}, reason
