"""The JSON schemas that the vendor takes, as rules: for parameters, for strict parameters and for replies.

    PARAMETERS   every keyword; the root is an object without unions, whose properties have simple names
    STRICT       as REPLY, at a root as in PARAMETERS
    REPLY        a subset of keywords; every object closed; other keywords go into the description

https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
"""

from dataclasses import dataclass, replace
from typing import Any

from sabir.authoring import IdentifierRule, SchemaRule

KEYWORDS = frozenset(
    {"$defs", "$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "definitions", "description",
     "enum", "format", "items", "minItems", "properties", "required", "title", "type"}
)  # fmt: skip
FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"})
UNIONS = frozenset({"allOf", "anyOf", "oneOf"})
"""Refused at the root of parameters. https://github.com/anthropics/claude-code/issues/40075"""


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


NAMES = IdentifierRule(r"[a-zA-Z0-9_.-]", first=r"\$(?:defs|ref)\Z|[a-zA-Z0-9_.-]")
"""Names of the properties at the root of parameters. https://github.com/beautyfree/appstore-connect-mcp/issues/2

`$defs` and `$ref` are sent as they are: no recorded answer of the vendor shows that it refuses these two.
"""
PARAMETERS = SchemaRule(root="object", not_at_root=UNIONS, names=NAMES)
REPLY = SchemaRule(
    keywords=KEYWORDS,
    values={
        "const": _is_plain,
        "enum": lambda value: isinstance(value, list | tuple) and all(map(_is_plain, value)),
        "format": lambda value: isinstance(value, str) and value in FORMATS,
        "minItems": lambda value: value in (0, 1),
    },
    unread="described",
    annotations=frozenset({"$comment", "$id", "$schema", "deprecated", "examples", "readOnly", "writeOnly"}),
    one_of="as_any_of",
    items="of_tuples",
    closed=True,
    references="finite",
    lone_reference=True,
)
STRICT = replace(REPLY, root="object", not_at_root=UNIONS, names=NAMES)
MOST_TOOLS, MOST_OPTIONAL, MOST_UNIONS = 20, 24, 16
"""Strict tools in a request; optional properties, and properties with unions, in all its strict schemas together.
https://platform.claude.com/docs/en/build-with-claude/structured-outputs#schema-complexity-limits"""


@dataclass(slots=True)
class StrictSchemas:
    """The strict schemas of one request, which the vendor limits together."""

    tools: int = 0
    optional: int = 0
    unions: int = 0

    def add(self, optional: int, unions: int, *, tools: int = 0) -> str:
        """Count a schema of a tool or of the reply, unless it exceeds a limit; return which one, or ""."""
        counts = {
            f"strict tools, and the API accepts {MOST_TOOLS}": (self.tools + tools, MOST_TOOLS),
            f"optional properties, and the API accepts {MOST_OPTIONAL}": (self.optional + optional, MOST_OPTIONAL),
            f"properties with unions, and the API accepts {MOST_UNIONS}": (self.unions + unions, MOST_UNIONS),
        }
        refusal = next((f"it would be {count} {what}" for what, (count, most) in counts.items() if count > most), "")
        if not refusal:
            self.tools, self.optional, self.unions = (count for count, _ in counts.values())
        return refusal
