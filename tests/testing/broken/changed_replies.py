"""Adapters that read recorded answers rightly, and the same answers with another value in them wrongly.

BROKEN     case → a fault that this case alone stops
FAULTS     (case, the fault) → a further fault of its kind, in complete answers, in streams or in both
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from sabir import BlockEnd, BlockStart, Reply, StreamEvent, Usage
from sabir.contract.dialect import ServerEvent
from sabir.contract.scope import DecodeScope
from sabir_acme.decode import FINISH, read_block
from sabir_acme.stream import ChatDecoder
from sabir_testing.families.lossless_replies import FAILURES

from tests.testing.broken.replies import Changes, Misread, folder
from tests.testing.broken.streams import decoding
from tests.testing.harness import TEMPLATE, Breakage, changed

WAYS = {"complete": "whole", "streamed": "streamed"}
MOST_CALLS = 2
"""As many as any recorded answer has."""
MANY_CALLS = 100

Faults = dict[tuple[str, str], Breakage]


# --- the end of an answer ---------------------------------------------------------------------------------------------


def ending(changes: Changes, ways: str = "whole streamed") -> Breakage:
    """The end of every answer is changed."""
    return Breakage(dialect=lambda base: Misread(base, lambda reply: True, changes, ways))


def both_ways(case: str, fault: str, changes: Changes) -> Faults:
    """A fault of the end of complete answers, and the same of streams."""
    return {(case, f"{fault}, {way}"): ending(changes, ways) for way, ways in WAYS.items()}


def unknown_is(reason: str) -> Changes:
    """A finish reason that is in no table, and is no usual word for a failure, becomes another one than "other"."""
    return lambda reply: {} if reply.raw_finish_reason in {*FINISH, *FAILURES} else {"finish_reason": reason}


def known_words(reply: Reply) -> Mapping[str, Any]:
    """The vendor's finish reason is stored if it is in the table."""
    return {} if reply.raw_finish_reason in FINISH else {"raw_finish_reason": None}


def counting(change: Callable[[int, int], tuple[int | None, int | None]]) -> Changes:
    """The numbers of tokens are changed where both are there."""

    def changes(reply: Reply) -> Mapping[str, Any]:
        usage = reply.usage
        if usage.input_tokens is None or usage.output_tokens is None:
            return {}
        input_tokens, output_tokens = change(usage.input_tokens, usage.output_tokens)
        update = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        return {"usage": usage.model_copy(update=update)}

    return changes


def free(reply: Reply) -> Mapping[str, Any]:
    """Unknown numbers are 0."""
    counts = {name: getattr(reply.usage, name) or 0 for name in ("input_tokens", "output_tokens")}
    return {"usage": reply.usage.model_copy(update=counts)}


def thoughtless(reply: Reply) -> Mapping[str, Any]:
    """The number of tokens of reasoning is not read."""
    return {"usage": reply.usage.model_copy(update={"reasoning_tokens": None})}


def guessed(reply: Reply) -> Mapping[str, Any]:
    """An unknown number of output tokens is the number of words."""
    return {} if reply.usage.output_tokens is not None else {"usage": Usage(output_tokens=len(reply.text.split()))}


# --- texts ------------------------------------------------------------------------------------------------------------


def texts(change: Callable[[str], str]) -> Breakage:
    """Every text of a complete answer is changed."""

    def decode(own: Any, body: bytes, scope: DecodeScope) -> Reply:
        try:
            answer = json.loads(body)
            parts = [{**part, "text": change(part["text"])} if "text" in part else part for part in answer["parts"]]
        except (ValueError, KeyError, TypeError):
            return own(body, scope)
        return own(json.dumps({**answer, "parts": parts}).encode(), scope)

    return changed(decode=decode)


class Pieces(ChatDecoder):
    """Every piece of a text is changed; an empty one is left out."""

    def __init__(self, scope: DecodeScope, change: Callable[[str], str]) -> None:
        super().__init__(scope)
        self.change = change

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        fields = self._scope.read_object(event.data)
        if fields.get("type") == "more" and self._open[fields["index"]][1].kind == "text":
            fields = {**fields, "text": self.change(fields["text"])}
            if not fields["text"]:
                return
            event = event._replace(data=json.dumps(fields))
        yield from super().feed(event)


def pieces(change: Callable[[str], str]) -> Breakage:
    """Every piece of a streamed text is changed."""
    return decoding(partial(Pieces, change=change))


def unless_blank(text: str) -> str:
    return text if text.strip() else ""


# --- lists of calls ---------------------------------------------------------------------------------------------------


def first_calls(own: Any, body: bytes, scope: DecodeScope) -> Reply:
    """The first calls of an answer are read, as many as any recorded answer has."""
    answer = json.loads(body)
    calls = [part for part in answer.get("parts", ()) if part.get("type") == "call"]
    if len(calls) <= MOST_CALLS:
        return own(body, scope)
    parts = [part for part in answer["parts"] if part not in calls[MOST_CALLS:]]
    return own(json.dumps({**answer, "parts": parts}).encode(), scope)


class Listing(ChatDecoder):
    """Reads events that contain a list of complete calls, and of each list the first `most` calls."""

    def __init__(self, scope: DecodeScope, most: int) -> None:
        super().__init__(scope)
        self.most = most

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        fields = self._scope.read_object(event.data)
        if fields.get("type") != "calls":
            yield from super().feed(event)
            return
        for index, part in enumerate(fields["calls"][: self.most]):
            call = read_block(part, self._scope)
            assert call.kind == "option_call"
            ids = {"invocation_id": call.invocation_id, "option_name": call.option_name}
            yield BlockStart(index=index, kind="option_call", **ids)
            yield BlockEnd(index=index, block=call)


def listing(most: int) -> Breakage:
    """Acme whose stream sends a call within a list, and that reads the first `most` calls of a list."""
    return Breakage(dialect=decoding(partial(Listing, most=most)).dialect, attributes={"cassettes": _with_list()})


def _with_list() -> Path:
    """Return a copy of the template's cassettes in which a streamed call is in a list."""
    copy = folder("listing", "text.yaml", lambda recorded: recorded)
    path = copy / "option_call_streamed.yaml"
    shutil.copyfile(TEMPLATE / "tests" / "cassettes" / path.name, path)
    cassette = yaml.safe_load(path.read_text("utf-8"))
    body = cassette["interactions"][0]["response"]["body"]
    events = [json.loads(event.removeprefix("data: ")) for event in body["string"].split("\n\n") if event]
    (call,) = [event["part"] for event in events if event["type"] == "open"]
    written = "".join(event["text"] for event in events if event["type"] == "more")
    listed = [events[0], {"type": "calls", "calls": [{**call, "arguments": written}]}, events[-1]]
    body["string"] = "".join(f"data: {json.dumps(event)}\n\n" for event in listed)
    path.write_text(yaml.safe_dump(cassette, sort_keys=False), "utf-8")
    return copy


FINISH_CASE = "test_an_unknown_finish_reason_is_other"
USAGE_CASE = "test_input_and_output_tokens_are_not_mixed_up"
PARTS_CASE = "test_cached_and_reasoning_tokens_are_counted[reasoning_tokens]"
MISSING_CASE = "test_missing_usage_is_unknown"
SPACE_CASE = "test_white_space_in_an_answer_is_kept"
CALLS_CASE = "test_every_call_of_a_list_is_read"

BROKEN: Mapping[str, Breakage] = {
    FINISH_CASE: ending(unknown_is("stop"), "whole"),
    USAGE_CASE: ending(counting(lambda read, written: (written, read)), "whole"),
    PARTS_CASE: ending(thoughtless, "whole"),
    MISSING_CASE: ending(free, "whole"),
    SPACE_CASE: texts(str.lstrip),
    CALLS_CASE: changed(decode=first_calls),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    **both_ways(FINISH_CASE, "an unknown reason is a stop", unknown_is("stop")),
    **both_ways(FINISH_CASE, "an unknown reason calls options", unknown_is("option_calls")),
    **both_ways(FINISH_CASE, "the word of an unknown reason is lost", known_words),
    **both_ways(USAGE_CASE, "swapped", counting(lambda read, written: (written, read))),
    **both_ways(USAGE_CASE, "output is the sum", counting(lambda read, written: (read, read + written))),
    **both_ways(USAGE_CASE, "input is the sum", counting(lambda read, written: (read + written, written))),
    **both_ways(USAGE_CASE, "output is a constant", counting(lambda read, written: (read, 7))),
    **both_ways("test_cached_and_reasoning_tokens_are_counted", "reasoning is not counted", thoughtless),
    **both_ways(MISSING_CASE, "unknown is 0", free),
    **both_ways(MISSING_CASE, "unknown is guessed", guessed),
    (SPACE_CASE, "the beginning is trimmed, complete"): texts(str.lstrip),
    (SPACE_CASE, "the end is trimmed, complete"): texts(str.rstrip),
    (SPACE_CASE, "lines are joined, complete"): texts(lambda text: text.replace("\n", "")),
    (SPACE_CASE, "the beginning is trimmed, streamed"): pieces(str.lstrip),
    (SPACE_CASE, "lines are joined, streamed"): pieces(lambda text: text.replace("\n", "")),
    (SPACE_CASE, "blank pieces are skipped, streamed"): pieces(unless_blank),
    (CALLS_CASE, "the first two are read, complete"): changed(decode=first_calls),
    (CALLS_CASE, "the first of an event is read, streamed"): listing(1),
}
"""(Case, the fault) → an adapter that the case stops."""
UNTRIED = frozenset({"test_cached_and_reasoning_tokens_are_counted[cache_read_tokens]"})
"""The template's service has no cache."""
