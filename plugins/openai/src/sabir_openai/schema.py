"""Rules for the JSON schemas that OpenAI's APIs accept, for options and for replies.

STRICT   with `strict`: a subset of keywords; every object closed (no further properties), every property required
LOOSE    without `strict`: every keyword; the root is an object without unions, `enum`, `not`; every array has `items`
"""

from collections.abc import Mapping
from typing import Any

from sabir.authoring import SchemaRule, fit_schema

KEYWORDS = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
    "definitions", "title", "description", "pattern", "format", "multipleOf", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "default",
})  # fmt: skip
"""Keywords that a strict schema may contain.
https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
"""
FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
"""Values of the keyword `format` that a strict schema may contain.
https://developers.openai.com/api/docs/guides/structured-outputs#supported-properties
"""
NOT_AT_ROOT = frozenset({"allOf", "anyOf", "enum", "not", "oneOf"})
"""Keywords that the API refuses at the root of a schema, strict or not. https://github.com/langchain-ai/langchainjs/issues/9804"""

STRICT = SchemaRule(
    keywords=KEYWORDS,
    values={"format": lambda value: isinstance(value, str) and value in FORMATS},
    lookaround=False,  # https://github.com/pydantic/pydantic-ai/issues/5508
    unread="refused",
    annotations=frozenset({"examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment"}),
    root="object",
    not_at_root=NOT_AT_ROOT,
    one_of="as_any_of",
    closed=True,
    required=True,
    references="recursive",
    lone_reference=True,
    # https://developers.openai.com/api/docs/guides/structured-outputs#objects-have-limitations-on-nesting-depth-and-size
    most={"levels": 10, "properties": 5000, "enumerated values": 1000, "characters": 120_000},
)
LOOSE = SchemaRule(
    root="object",
    not_at_root=NOT_AT_ROOT,
    # "array schema missing items" refuses the request. https://github.com/NousResearch/hermes-agent/issues/54290
    items="of_all",
)


def is_strict_already(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema has a strict form, and that form accepts all values that the schema accepts."""
    fitted = fit_schema(schema, STRICT)
    return not fitted.refusal and not fitted.narrows
