"""Adapters whose tables lack a documented word, or know one that no documentation has."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sabir import Reply, StreamEvent
from sabir.contract.dialect import ServerEvent
from sabir.errors import Overloaded
from sabir_acme.stream import ChatDecoder
from sabir_testing.families.documented_words import UNHEARD_OF

from tests.testing.broken.changed_replies import both_ways, ending
from tests.testing.broken.errors import as_class, misjudging, with_fields
from tests.testing.broken.replies import Changes
from tests.testing.broken.streams import decoding
from tests.testing.harness import Breakage


class Misnaming(ChatDecoder):
    """A code of an error event is misread."""

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        if "no_credit" in event.data:
            raise Overloaded(event.data)
        yield from super().feed(event)


REASON = "test_a_documented_finish_reason_is_read"
CODE = "test_a_documented_code_is_read"
EVENT = "test_an_error_event_has_its_message_and_code"
COUNT = "test_a_documented_number_of_tokens_is_counted"
CACHED = "cached"
"""The vendor's field for a number that no recording has."""
UNKNOWN_CODE = "test_an_unknown_code_leaves_the_class_to_the_status"


def of_code(code: str, fault: str) -> Breakage:
    """A code is misread: as another class, or not kept."""
    return misjudging(
        lambda status, headers, body: code.encode() in body,
        lambda error: with_fields(error, code=None) if fault == "lost" else as_class(Overloaded, error),
    )


def refused_as(reason: str) -> Changes:
    """The documented reason "refused", which no recording has, is read as another one."""
    return lambda reply: {"finish_reason": reason} if reply.raw_finish_reason == "refused" else {}


def counting(counted: bool) -> Breakage:
    """The suite documents cached tokens, and the adapter counts them, or not."""

    def changes(reply: Reply) -> Mapping[str, Any]:
        cached = (reply.usage.details or {}).get(CACHED)
        return {"usage": reply.usage.model_copy(update={"cache_read_tokens": cached})} if counted else {}

    return replace(ending(changes), attributes={"usage_fields": {CACHED: "cache_read_tokens"}})


BROKEN: Mapping[str, Breakage] = {
    REASON: ending(refused_as("stop"), "whole"),
    COUNT: counting(counted=False),
    CODE: of_code("no_credit", "misread"),
    EVENT: decoding(Misnaming),
    UNKNOWN_CODE: of_code(UNHEARD_OF, "misread"),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    **both_ways(REASON, "a reason is in no table", refused_as("other")),
    (CODE, "a code is lost"): of_code("no_credit", "lost"),
    (UNKNOWN_CODE, "an unknown code is lost"): of_code(UNHEARD_OF, "lost"),
}
"""(Case, the fault) → an adapter that the case stops."""
