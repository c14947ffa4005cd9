"""Adapters that read recorded answers, and forget what no recording has: unknown types, second texts, failures.

BROKEN     case → a fault that this case alone stops      FAULTS     (case, the fault) → a further fault of its kind
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from sabir import BlockDelta, BlockEnd, BlockStart, OpaquePart, Reply, StreamEvent, TextPart
from sabir.contract.dialect import ServerEvent
from sabir.contract.scope import DecodeScope
from sabir_acme.stream import ChatDecoder

from tests.testing.broken.changed_replies import ending
from tests.testing.broken.replies import folder
from tests.testing.broken.streams import decoding
from tests.testing.harness import TEMPLATE, Breakage, changed

UNKNOWN = "test_an_object_of_an_unknown_type_is_kept"
EVERY = "test_every_element_of_a_list_is_read"
LOOPED = "test_a_text_in_place_of_a_list_is_no_content"
FAILED = "test_a_failed_answer_is_not_complete"
TOTAL = "test_input_and_output_tokens_are_the_total"
SOURCE = "test_a_source_becomes_a_citation"
PIECES = "test_the_pieces_of_an_unknown_type_are_kept"
BEFORE = "test_a_block_ends_before_another_one"
KNOWN = {"text", "thought", "refusal", "call", "image", "audio", "document"}


# --- complete answers -------------------------------------------------------------------------------------------------


def sifting(sift: Callable[[list[Any]], Iterable[Any]]) -> Breakage:
    """Some parts of complete answers are not read."""

    def decode(own: Any, body: bytes, scope: DecodeScope) -> Reply:
        try:
            answer = json.loads(body)
            parts = list(sift(answer["parts"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return own(body, scope)
        return own(json.dumps({**answer, "parts": parts}).encode(), scope)

    return changed(decode=decode)


def looping(own: Any, body: bytes, scope: DecodeScope) -> Reply:
    """A text in place of the parts is read letter by letter."""
    try:
        answer = json.loads(body)
        letters = [{"type": "text", "text": letter} for letter in answer["parts"]]
        is_text = isinstance(answer["parts"], str)
    except (ValueError, KeyError, TypeError):
        return own(body, scope)
    reply: Reply = own(json.dumps({**answer, "parts": letters}).encode() if is_text else body, scope)
    return reply


def failing(own: Any, body: bytes, scope: DecodeScope) -> Reply:
    """A part of an unknown type makes the code fail."""
    try:
        parts = json.loads(body)["parts"]
        types = [part["type"] for part in parts]
    except (ValueError, KeyError, TypeError):
        return own(body, scope)
    assert KNOWN.issuperset(types)
    reply: Reply = own(body, scope)
    return reply


def known_types(parts: list[Any]) -> Iterator[Any]:
    return (part for part in parts if part.get("type") in KNOWN)


def first_of_each_type(parts: list[Any]) -> Iterator[Any]:
    """Calls are all read."""
    types = [part["type"] for part in parts]
    return (part for at, part in enumerate(parts) if part["type"] == "call" or part["type"] not in types[:at])


def becoming(words: tuple[str, ...], reason: str, ways: str = "whole") -> Breakage:
    """Some finish reasons that no recording has become another one."""
    return ending(lambda reply: {"finish_reason": reason} if reply.raw_finish_reason in words else {}, ways)


def recorded(name: str, old: str, new: str) -> Breakage:
    """Acme itself, and a service that sends what acme does not read, in one answer."""

    def change(cassette: str) -> str:
        assert old in cassette
        return cassette.replace(old, new)

    return Breakage(attributes={"cassettes": folder(name, "text.yaml", change)})


COUNTED = '"usage": {"input": 14, "output": 8, "thinking": 0}'
COUNTED_APART = '"usage": {"input": 14, "output": 8, "thinking": 7, "total": 29}'
WEATHER = '"text": "You said: What is the weather in Paris?"'
CITED = f'{WEATHER}, "sources": [{{"type": "url_citation", "url": "https://example.org/kit"}}]'


# --- streams ----------------------------------------------------------------------------------------------------------


class Sealing(ChatDecoder):
    """The pieces of a part of an unknown type are skipped."""

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        fields = self._scope.read_object(event.data)
        if fields.get("type") == "more" and self._open[fields["index"]][1].kind == "opaque":
            return
        yield from super().feed(event)


class Nested(ChatDecoder):
    """Reads pieces that are objects with a type. A piece of another type becomes a part at once, and `is_apart` ends
    the open text first.
    """

    def __init__(self, scope: DecodeScope, *, is_apart: bool) -> None:
        super().__init__(scope)
        self.is_apart, self.blocks, self.texts = is_apart, 0, list[str]()

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        fields = self._scope.read_object(event.data)
        piece = fields.get("piece")
        if not isinstance(piece, dict):
            if fields.get("type") == "end":
                yield from self.end_text()
            yield from super().feed(event)
            return
        if piece.get("type") == "text":
            if not self.texts:
                yield BlockStart(index=self.blocks, kind="text")
            self.texts.append(piece["text"])
            yield BlockDelta(index=self.blocks, kind="text", text=piece["text"])
            return
        if self.is_apart:
            yield from self.end_text()
        index = self.blocks if self.is_apart else 1000
        self.blocks += self.is_apart
        block = OpaquePart(dialect=self._scope.target.dialect, block=piece)
        yield BlockStart(index=index, kind="opaque")
        yield BlockEnd(index=index, block=block)

    def end_text(self) -> Iterator[StreamEvent]:
        if self.texts:
            yield BlockEnd(index=self.blocks, block=TextPart(text="".join(self.texts)))
            self.blocks, self.texts = self.blocks + 1, []


def nested(*, is_apart: bool) -> Breakage:
    """Acme whose streamed texts are objects within events."""
    dialect = decoding(partial(Nested, is_apart=is_apart)).dialect
    return Breakage(dialect=dialect, attributes={"cassettes": _with_nested_pieces()})


def _with_nested_pieces() -> Path:
    """Return a copy of the template's cassettes in which one text is streamed in nested objects."""
    copy = folder("nested", "text.yaml", lambda cassette: cassette)
    path = copy / "text_streamed.yaml"
    shutil.copyfile(TEMPLATE / "tests" / "cassettes" / path.name, path)
    cassette = yaml.safe_load(path.read_text("utf-8"))
    body = cassette["interactions"][0]["response"]["body"]
    events = [json.loads(event.removeprefix("data: ")) for event in body["string"].split("\n\n") if event]
    pieces = [{"type": "grow", "piece": {"type": "text", "text": each["text"]}} for each in events if "text" in each]
    body["string"] = "".join(f"data: {json.dumps(event)}\n\n" for event in (events[0], *pieces, events[-1]))
    path.write_text(yaml.safe_dump(cassette, sort_keys=False), "utf-8")
    return copy


BROKEN: Mapping[str, Breakage] = {
    UNKNOWN: sifting(known_types),
    EVERY: sifting(first_of_each_type),
    LOOPED: changed(decode=looping),
    FAILED: becoming(("failed",), "stop"),
    TOTAL: recorded("counted_apart", COUNTED, COUNTED_APART),
    SOURCE: recorded("cited", WEATHER, CITED),
    PIECES: decoding(Sealing),
    BEFORE: nested(is_apart=False),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    (UNKNOWN, "the code fails"): changed(decode=failing),
    (EVERY, "the last is read"): sifting(lambda parts: list(first_of_each_type(parts[::-1]))[::-1]),
    (FAILED, "a failure calls options"): becoming(("error", "incomplete"), "option_calls"),
    (FAILED, "a failed stream is a stop"): becoming(("failed",), "stop", "streamed"),
}
