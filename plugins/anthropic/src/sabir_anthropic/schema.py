"""JSON schemas as the vendor takes them, for replies and for options' parameters; keywords it refuses are losses.

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
"""Keywords of a reply's schema that the vendor takes (two of them with limited values); others go into the description.
https://platform.claude.com/docs/en/build-with-claude/structured-outputs"""
FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"})
_ANNOTATIONS = frozenset({"$comment", "$id", "$schema", "deprecated", "examples", "readOnly", "writeOnly"})
_MAPS = ("properties", "$defs", "definitions")
_UNIONS = ("allOf", "anyOf", "oneOf")
_HOLDING = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "type"})
"""The SDK's typed call refuses a part of a schema that has none of these."""
_BESIDE_REF = frozenset({"$ref", "$defs", "definitions"})
"""Keywords that the SDK keeps beside a reference."""


def fit(schema: JSONValue, reasons: dict[str, None], left_out: dict[str, None]) -> Any:
    """A part of a schema in the form that the vendor enforces.

    Adds to `reasons` why a reply may not match the given schema, and to `left_out` keywords that constrain nothing.
    """
    if not isinstance(schema, Mapping):
        return schema
    found: dict[str, Any] = {}
    told: list[str] = []
    for name, value in schema.items():
        if name in _ANNOTATIONS:
            left_out[repr(name)] = None
        elif not _is_taken(name, value, schema):
            told.append(f"{name}: {encode_json(value)}")
            reasons[f"{name} stands in the description"] = None
        elif name in _MAPS and isinstance(value, Mapping):
            found[name] = {key: fit(each, reasons, left_out) for key, each in value.items()}
        elif name in _UNIONS and isinstance(value, list | tuple):
            left_out |= {"'oneOf', which is an 'anyOf'": None} if name == "oneOf" else {}
            found["anyOf" if name == "oneOf" else name] = [fit(each, reasons, left_out) for each in value]
        elif name != "additionalProperties":
            found[name] = fit(value, reasons, left_out) if name == "items" else value
    if told:
        found["description"] = f"{schema.get('description', '')} ({', '.join(told)})".strip()
    _close(schema, found, reasons)
    # Other keywords are put around a reference, because the SDK would drop them beside it.
    if "$ref" in found and found.keys() - _BESIDE_REF and "anyOf" not in found:
        found["anyOf"] = [{"$ref": found.pop("$ref")}]
    return found


def _close(schema: Mapping[str, JSONValue], found: dict[str, Any], reasons: dict[str, None]) -> None:
    """Close an object."""
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") not in (None, False):
            reasons["an object of free keys is closed"] = None
        found |= {"additionalProperties": False, "type": "object"}
    elif "additionalProperties" in schema:
        reasons["additionalProperties is left out of what is no object"] = None
    if not found.keys() & _HOLDING:
        reasons["a part without a type holds them to nothing"] = None


def _is_taken(name: str, value: JSONValue, schema: Mapping[str, JSONValue]) -> bool:
    """Whether the vendor takes a keyword with that value; beside `anyOf`, it does not take a second union."""
    limited = {"format": lambda: value in FORMATS, "minItems": lambda: value in (0, 1)}
    return limited[name]() if name in limited else name in KEPT and not (name == "oneOf" and "anyOf" in schema)


def fit_parameters(schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """An option's parameters as an object's schema, and the reason of a loss, or "": a union at the top is refused."""
    lost = [name for name in _UNIONS if name in schema]
    found = {name: value for name, value in schema.items() if name not in lost}
    reason = f"the wire takes no {' or '.join(lost)} at the top of parameters" if lost else ""
    return {**found, "type": "object"}, reason
