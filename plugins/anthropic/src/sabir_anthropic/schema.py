"""Rules for the JSON schemas that Anthropic's API accepts: for an option's parameters, with and without `strict`, and
for replies.

    PARAMETERS   every keyword; the root is an object without unions, and its properties have simple names
    STRICT       the rules of REPLY, and for the root also the rules of PARAMETERS
    REPLY        a subset of keywords; every object closed (no further properties); other keywords are moved into the
                 description

https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
"""

from dataclasses import dataclass, replace
from typing import Any

from sabir.authoring import IdentifierRule, SchemaRule

KEYWORDS = frozenset(
    {"$defs", "$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "definitions", "description",
     "enum", "format", "items", "minItems", "properties", "required", "title", "type"}
)  # fmt: skip
"""Keywords that the API reads in schemas of replies and in strict schemas."""
FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"})
"""Values of the keyword `format` that the API reads in these schemas."""
UNIONS = frozenset({"allOf", "anyOf", "oneOf"})
"""Keywords that the API refuses at the root of an option's parameters. https://github.com/anthropics/claude-code/issues/40075"""


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


NAMES = IdentifierRule(r"[a-zA-Z0-9_.-]", first=r"\$(?:defs|ref)\Z|[a-zA-Z0-9_.-]")
"""The rule for the names of properties at the root of an option's parameters.
https://github.com/beautyfree/appstore-connect-mcp/issues/2

Properties named `$defs` and `$ref` are sent unchanged, because no recorded answer shows that the API refuses them.
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
"""The maximum number of strict tools in one request, and of optional properties and of properties with unions in all
strict schemas of one request together.
https://platform.claude.com/docs/en/build-with-claude/structured-outputs#schema-complexity-limits"""


@dataclass(slots=True)
class StrictSchemas:
    """Counts of the strict schemas of one request, which the vendor limits together. A reply's schema counts too."""

    tools: int = 0
    optional: int = 0
    unions: int = 0

    def add(self, optional: int, unions: int, *, tools: int = 0) -> str:
        """Add the schema of a tool (`tools` is 1) or of the reply to the counts, and return "".

        If a limit would be exceeded, add nothing and return the reason.
        """
        counts = {
            f"strict tools, and the API accepts {MOST_TOOLS}": (self.tools + tools, MOST_TOOLS),
            f"optional properties, and the API accepts {MOST_OPTIONAL}": (self.optional + optional, MOST_OPTIONAL),
            f"properties with unions, and the API accepts {MOST_UNIONS}": (self.unions + unions, MOST_UNIONS),
        }
        over_limit = (
            f"the request would contain {count} {what}" for what, (count, most) in counts.items() if count > most
        )
        refusal = next(over_limit, "")
        if not refusal:
            self.tools, self.optional, self.unions = (count for count, _ in counts.values())
        return refusal
