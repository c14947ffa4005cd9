"""Grades for the capabilities of a provider.

capabilities = {"image.url": FULL, "audio.bytes": REFUSED}        others are UNKNOWN

FULL         sent with the same meaning        without a loss, or with "rewritten" losses only
DOWNGRADED   sent in another form              with a loss
REFUSED      not sent                          with a loss, and `strict=True` raises
UNKNOWN      not declared: any of these, but never left out without a loss
"""

from collections.abc import Mapping
from enum import StrEnum

from sabir.authoring import WIRE_SETTINGS

from sabir_testing.histories.samples import MEDIA_FILES


class Grade(StrEnum):
    """How completely a provider supports a capability: FULL (sent with the same meaning), DOWNGRADED (in a poorer form,
    with a loss), REFUSED (left out with a loss) or UNKNOWN (not declared). For `capabilities` of a suite.
    """

    FULL = "full"
    DOWNGRADED = "downgraded"
    REFUSED = "refused"
    UNKNOWN = "unknown"


FULL, DOWNGRADED, REFUSED, UNKNOWN = Grade.FULL, Grade.DOWNGRADED, Grade.REFUSED, Grade.UNKNOWN

MODALITIES = tuple(MEDIA_FILES)
FORMS = {"url": "by a web URL", "bytes": "as bytes", "file": "as a file that is stored at the provider"}
CHOICES = {
    "auto": "the model may call an option",
    "none": "the model must not call an option",
    "required": "the model must call an option",
    "named": "the model must call the named option",
}

NATIVE_TOOLS = {
    "web_search": "web search",
    "code_execution": "tool that runs code",
    "mcp_server": "connection to MCP servers",
}

CAPABILITIES: Mapping[str, str] = {
    "system": "instructions at the start",
    "later_system": "instructions in the middle of a conversation",
    **{f"{each}.{form}": f"{each} {how} in a user's message" for each in MODALITIES for form, how in FORMS.items()},
    **{f"results.{each}": f"{each} as bytes in an option's result" for each in MODALITIES},
    "options": "options are offered, called and answered",
    "parallel_calls": "several calls in one answer",
    "reasoning": "reasoning is requested, returned and sent back",
    **{f"settings.{name}": f"the setting {name}" for name in WIRE_SETTINGS if name != "option_choice"},
    **{f"option_choice.{name}": what for name, what in CHOICES.items()},
    **{f"native.{kind}": f"the vendor's own {tool} as an option" for kind, tool in NATIVE_TOOLS.items()},
    "streaming": "answers as a stream",
    "count_tokens": "the vendor counts the tokens of a request",
    "stored_requests": "a stored request is converted to a history",
    "embeddings": "vectors of texts, by the operation of this name",
    "batches": "batches of prompts, which the vendor answers later",
}
"""Capability → its description. The keys that a suite's `capabilities` may have."""
