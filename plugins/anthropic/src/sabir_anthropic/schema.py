"""JSON schemas as the vendor takes them, for replies and for options' parameters; keywords it refuses are losses.

    schema ──Fit──▶ keywords that the wire takes      others go into the description, annotations are left out

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


class Fit:
    """One schema in the form that the vendor enforces."""

    def __init__(self) -> None:
        self.reasons: dict[str, None] = {}
        """The reasons why a reply may not match the given schema."""
        self.left_out: dict[str, None] = {}
        """Keywords that constrain nothing."""

    def read(self, schema: JSONValue) -> Any:
        """A part of the schema, in that form."""
        if not isinstance(schema, Mapping):
            return schema
        found: dict[str, Any] = {}
        told: list[str] = []
        for name, value in schema.items():
            if name in _ANNOTATIONS:
                self.left_out[repr(name)] = None
            elif not _is_taken(name, value, schema):
                told.append(f"{name}: {encode_json(value)}")
                self.reasons[f"{name} stands in the description"] = None
            elif name in _MAPS and isinstance(value, Mapping):
                found[name] = {key: self.read(each) for key, each in value.items()}
            elif name in _UNIONS and isinstance(value, list | tuple):
                self.left_out |= {"'oneOf', which is an 'anyOf'": None} if name == "oneOf" else {}
                found["anyOf" if name == "oneOf" else name] = [self.read(each) for each in value]
            elif name != "additionalProperties":
                found[name] = self.read(value) if name == "items" else value
        if told:
            found["description"] = f"{schema.get('description', '')} ({', '.join(told)})".strip()
        self._close(schema, found)
        # Other keywords are put around a reference, because the SDK would drop them beside it.
        if "$ref" in found and found.keys() - _BESIDE_REF and "anyOf" not in found:
            found["anyOf"] = [{"$ref": found.pop("$ref")}]
        return found

    def _close(self, schema: Mapping[str, JSONValue], found: dict[str, Any]) -> None:
        """Close an object."""
        if schema.get("type") == "object" or "properties" in schema:
            if schema.get("additionalProperties") not in (None, False):
                self.reasons["an object of free keys is closed"] = None
            found |= {"additionalProperties": False, "type": "object"}
        elif "additionalProperties" in schema:
            self.reasons["additionalProperties is left out of what is no object"] = None
        if not found.keys() & _HOLDING:
            self.reasons["a part without a type holds them to nothing"] = None


def _is_taken(name: str, value: JSONValue, schema: Mapping[str, JSONValue]) -> bool:
    """Whether the vendor takes a keyword with that value; beside `anyOf`, it does not take a second union."""
    match name:
        case "format":
            return value in FORMATS
        case "minItems":
            return value in (0, 1)
        case "oneOf":
            return "anyOf" not in schema
    return name in KEPT


def fit_parameters(schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """An option's parameters as an object's schema, and the reason of a loss, or "": a union at the top is refused."""
    lost = [name for name in _UNIONS if name in schema]
    found = {name: value for name, value in schema.items() if name not in lost}
    reason = f"the wire takes no {' or '.join(lost)} at the top of parameters" if lost else ""
    return {**found, "type": "object"}, reason
