"""Tickets: everything that another process needs to read the results of a batch, as one string.

openai.responses:gpt-5#batch_67d4          the model, and the vendor's id of the batch
openai.responses:gpt-5#batch_67d4#eyJv…    also the names that requests replaced, as base64 of JSON
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sabir import Rendering, SettingsInvalid, Target
from sabir.authoring import decode_json, encode_json, one_line
from sabir.errors import NotJSON

SEPARATOR = "#"
_EXPECTED = "expected the ticket that submit() returned, such as 'openai.responses:gpt-5#batch_67d4'"


class BatchTicket(NamedTuple):
    """The content of a ticket."""

    model: str
    """The model, as `provider.dialect:model`."""
    batch_id: str
    option_names: Mapping[str, str] = {}
    """Option name in the requests → real option name, for the names that differ."""
    argument_names: Mapping[str, Mapping[str, str]] = {}
    """Option → (argument name in the requests → real argument name)."""

    def __str__(self) -> str:
        """Return the ticket as text, which `parse` reads."""
        parts = [self.model, self.batch_id]
        if self.option_names or self.argument_names:
            names = encode_json({"options": self.option_names, "arguments": self.argument_names})
            parts.append(urlsafe_b64encode(names.encode()).decode())
        return SEPARATOR.join(parts)

    @classmethod
    def parse(cls, text: str) -> "BatchTicket":
        """Return the content of a ticket. Raises SettingsInvalid for any other text."""
        model, _, rest = str(text).partition(SEPARATOR)
        batch_id, _, encoded = rest.partition(SEPARATOR)
        if ":" not in model or not batch_id:
            raise SettingsInvalid(f"{one_line(repr(text), 80)} is not a ticket; {_EXPECTED}")
        try:
            names: Any = decode_json(urlsafe_b64decode(encoded)) if encoded else {}
            return cls(model, batch_id, names.get("options", {}), names.get("arguments", {}))
        except (Error, NotJSON, AttributeError, ValueError):
            raise SettingsInvalid(f"the ticket of batch {batch_id!r} is incomplete; {_EXPECTED}") from None


def model_name(target: Target) -> str:
    """Return the model of a target as `provider.dialect:model`."""
    return f"{target.provider}.{target.dialect.rpartition('.')[2]}:{target.model}"


def replaced_names(renderings: Iterable[Rendering]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the option names and argument names that renderings replaced, merged.

    Raises SettingsInvalid if two requests use one name for two options.
    """
    options, arguments = dict[str, str](), dict[str, Any]()
    for rendering in renderings:
        for merged, names in ((options, rendering.option_names), (arguments, rendering.argument_names)):
            for name, replaced in names.items():
                if merged.setdefault(name, replaced) != replaced:
                    fault = f"two requests use the name {name!r} for different options or arguments"
                    raise SettingsInvalid(f"{fault}; submit them as two batches")
    return options, arguments
