"""A rendering: what is sent, before it is sent.

Law 2, nothing is lost silently: the very bytes of a request, and beside them the list of all that they could not carry.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from sabir.losses import Loss
from sabir.models import Frozen
from sabir.scope import Target
from sabir.settings import LONGEST_SILENCE, Bounds, RetryPolicy
from sabir.values import FrozenDict, JSONObjectDocumentField, JSONText, JSONValue, decode_json, freeze, object_view


def _of_strings(value: object) -> object:
    if isinstance(value, Mapping) and not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise ValueError("expected a mapping of strings to strings")
    return value


NameMap = Annotated[JSONObjectDocumentField, BeforeValidator(_of_strings)]
"""Takes a mapping of strings, held as JSONText."""


class Rendering(Frozen):
    """A request as it will be sent, and everything that it could not carry.

    `body_bytes` are the very bytes; `body` shows them as JSON. `unchecked` says that `extra_body` or
    `extra_headers` put something in that no dialect looked at. `option_names` maps names on the wire to option
    names where the wire could not take those. `streaming` says that it asks for a stream of events, be it because
    the answer may take too long to come at once; `send` folds them to the whole reply.
    """

    target: Target
    path: str
    body_bytes: bytes = Field(repr=False)
    losses: tuple[Loss, ...] = ()
    headers_json: NameMap = Field(default=JSONText("{}"), alias="headers", repr=False)
    timeout: float | None = None
    idle: float = LONGEST_SILENCE
    bounds: Bounds = Bounds()
    retries: RetryPolicy = RetryPolicy()
    option_names_json: NameMap = Field(default=JSONText("{}"), alias="option_names")
    unchecked: bool = False
    streaming: bool = False
    stream_path: str = ""
    stream_fields: str = "{}"

    @property
    def headers(self) -> FrozenDict:
        """Headers of the dialect and of `extra_headers`."""
        return object_view(self.headers_json)

    @property
    def option_names(self) -> FrozenDict:
        """Names on the wire → option names, where they differ."""
        return object_view(self.option_names_json)

    @property
    def body(self) -> JSONValue:
        """The body as an immutable JSON view."""
        return freeze(decode_json(self.body_bytes))

    def for_stream(self) -> "Rendering":
        """The same request asking for a stream of events."""
        if self.streaming:
            return self
        fields = self.stream_fields[1:-1].encode()
        body = self.body_bytes[:-1] + (b"," if fields and len(self.body_bytes) > 2 else b"") + fields + b"}"
        return self.model_copy(update={"path": self.stream_path, "body_bytes": body, "streaming": True})
