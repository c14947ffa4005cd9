"""What both dialects and all compatible endpoints say of the tokens of a call.

usage ──read_usage──▶ Usage         the figures of both dialects, verbatim in `details`
"""

from sabir import Usage
from sabir.authoring import JSONValue, fields, first_count, usage_of


def read_usage(figures: JSONValue) -> Usage:
    """The tokens of a call; chat's and responses' names alike, and what compatible endpoints add."""
    found = fields(figures)
    if not found:
        return Usage()
    read = fields(found.get("prompt_tokens_details") or found.get("input_tokens_details"))
    made = fields(found.get("completion_tokens_details") or found.get("output_tokens_details"))
    return usage_of(
        found,
        input_tokens=first_count(found.get("prompt_tokens"), found.get("input_tokens")),
        output_tokens=first_count(found.get("completion_tokens"), found.get("output_tokens")),
        cache_read_tokens=first_count(read.get("cached_tokens"), found.get("prompt_cache_hit_tokens")),
        cache_write_tokens=first_count(read.get("cache_write_tokens")),
        reasoning_tokens=first_count(made.get("reasoning_tokens"), found.get("reasoning_tokens")),
    )
