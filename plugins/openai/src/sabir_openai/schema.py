"""The JSON schemas that OpenAI takes, as rules: strict where that is possible without a change of meaning, else loose.

STRICT   a subset of keywords; every object closed, every property required
LOOSE    every keyword; the root is an object without unions, and every array has `items`
"""

from collections.abc import Mapping
from typing import Any

from sabir.authoring import SchemaRule, fit_schema

KEYWORDS = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
    "definitions", "title", "description", "pattern", "format", "multipleOf", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "default",
})  # fmt: skip
"""https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas"""
FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
"""https://developers.openai.com/api/docs/guides/structured-outputs#supported-properties"""
NOT_AT_ROOT = frozenset({"allOf", "anyOf", "enum", "not", "oneOf"})
"""Refused at the root, strict or not. https://github.com/langchain-ai/langchainjs/issues/9804"""

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
    """Return whether the strict form of a schema takes all values that the schema takes."""
    fitted = fit_schema(schema, STRICT)
    return not fitted.refusal and not fitted.narrows
