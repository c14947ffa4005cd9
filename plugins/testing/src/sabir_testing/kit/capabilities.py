"""What a provider's wire can carry, in grades: declared by the plugin's author, and compared with observations.

capabilities = {"image.url": FULL, "audio.bytes": REFUSED}        what is not named is UNKNOWN

FULL         it is in the request, as it was                      no loss
DOWNGRADED   it is in the request, in another form                a loss says so
REFUSED      it is not in the request                             a loss says so, and `strict=True` raises
UNKNOWN      nobody declared it; only silence is a fault
"""

from collections.abc import Mapping
from enum import StrEnum

from sabir.authoring import WIRE_SETTINGS


class Grade(StrEnum):
    """How much of something a wire carries."""

    FULL = "full"
    DOWNGRADED = "downgraded"
    REFUSED = "refused"
    UNKNOWN = "unknown"


FULL, DOWNGRADED, REFUSED, UNKNOWN = Grade.FULL, Grade.DOWNGRADED, Grade.REFUSED, Grade.UNKNOWN

MODALITIES = ("image", "audio", "video", "document")
FORMS = {"url": "by a web URL", "bytes": "as bytes", "file": "as a file that the provider holds"}
CHOICES = {
    "auto": "the model may call an option",
    "none": "the model must call none",
    "required": "the model must call one",
    "named": "the model must call the one named",
}

CAPABILITIES: Mapping[str, str] = {
    "system": "instructions at the start",
    "later_system": "instructions in the middle of a conversation",
    **{f"{each}.{form}": f"{each} {how} in a user's message" for each in MODALITIES for form, how in FORMS.items()},
    **{f"results.{each}": f"{each} as bytes in an option's result" for each in MODALITIES},
    "options": "options are offered, called and answered",
    "parallel_calls": "several calls in one answer",
    "reasoning": "the model's thoughts are asked for, told, and taken back",
    **{f"settings.{name}": f"the setting {name}" for name in WIRE_SETTINGS if name != "option_choice"},
    **{f"option_choice.{name}": what for name, what in CHOICES.items()},
    "streaming": "answers piece by piece",
    "count_tokens": "the vendor counts a request's tokens",
    "stored_requests": "a stored request reads back as a history",
}
"""Name → what it is."""
