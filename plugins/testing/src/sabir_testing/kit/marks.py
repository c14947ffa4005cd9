"""Marks: texts that identify messages, signed state and pairs of calls and results in a rendered request.

history ──mark──▶ "mark0.", "mark1.", … ──render──▶ places(items)  positions of each mark in the request's items
                                                    unheard(…)     marks that are neither in the body nor in the losses
state {"signature": "c2lnbmF0dXJl…"}, block {"id": "ws_1f3a…"} ─▶ bound_texts ─▶ bound_in: those in a request's body
history ─▶ core's pairing ─▶ Exchange: a turn's calls and their results ─▶ positions of their marks in the items (law 1)
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from sabir import Loss, Message, Rendering
from sabir.authoring import JSONValue, TurnScope, load_stored, pair_messages
from sabir.rendering.turns import Identifiers

from sabir_testing.kit.broken import expect
from sabir_testing.kit.suite import AdapterUnderTest
from sabir_testing.reading import strings, walk

Place = tuple[int, ...]
"""Positions in nested arrays, the outermost first. Fields of an object have no position, because they have no order."""
_MARK = re.compile(r"mark\d+\.")


class Marked(NamedTuple):
    """A message whose texts were replaced by marks, and these marks."""

    message: Message
    marks: tuple[str, ...]
    spoken: tuple[str, ...] = ()
    """The marks outside of reasoning. A request that contains the message contains them."""


def mark(history: Sequence[Message]) -> list[Marked]:
    """Return copies of the messages with marks instead of texts, arguments, results and error messages.

    Reasoning without a text stays without one.
    """
    numbers = count()
    return [_mark(message, numbers) for message in history]


def _mark(message: Message, numbers: Iterator[int]) -> Marked:
    data = message.model_dump(mode="json")
    payload, found, thoughts = data["payload"], list[str](), set[str]()

    def fresh() -> str:
        found.append(f"mark{next(numbers)}.")
        return found[-1]

    for part in payload.get("parts", ()):
        if part["kind"] in ("text", "refusal"):
            part["text"] = fresh()
        elif part["kind"] == "reasoning" and part["text"]:
            part["text"] = fresh()
            thoughts.add(part["text"])
    if payload["kind"] == "option_call":
        payload |= {"arguments": {"a": fresh()}, "raw_arguments": None, "invalid_arguments": False, "cut_off": False}
    elif payload["kind"] == "option_result" and payload["is_error"]:
        payload["error_message"] = fresh()
    elif payload["kind"] == "option_result" and not payload["parts"]:
        payload["result"] = fresh()
    return Marked(Message.model_validate(data), tuple(found), tuple(each for each in found if each not in thoughts))


def messages(marked: Sequence[Marked]) -> list[Message]:
    """Return the messages without their marks."""
    return [each.message for each in marked]


def places(value: JSONValue) -> dict[str, list[Place]]:
    """Return the positions of each mark in a JSON value. A mark may be part of a longer string."""
    found: dict[str, list[Place]] = {}
    for leaf in walk(value):
        if isinstance(leaf.value, str) and not leaf.is_name:
            place = tuple(step for step in leaf.place if isinstance(step, int))
            for each in _MARK.findall(leaf.value):
                found.setdefault(each, []).append(place)
    return found


def unheard(marked: Sequence[Marked], body: bytes, losses: Sequence[Loss]) -> list[str]:
    """Return in words the marks that are not in a body and whose message no loss names (law 2)."""
    body_text, reported = _held(body), {loss.message_id for loss in losses}
    return [
        f"the text {text!r} of message {number} ({each.message.policy})"
        for number, each in enumerate(marked, start=1)
        if each.message.id not in reported
        for text in each.marks
        if text not in body_text
    ]


def _held(body: bytes) -> str:
    """Return all strings of a JSON body, one on a line."""
    return "\n".join(strings(json.loads(body))) if body else ""


# --- state that only one provider can read ----------------------------------------------------------------------------

SHORTEST = 8
"""Characters. Shorter texts may be in a body by chance."""
_WORD = re.compile(r"[a-z_. -]+|[A-Z_]+")
"""A constant of an API, such as `completed`. It identifies nothing."""


def bound_texts(messages: Iterable[Message]) -> set[str]:
    """Return the texts in the state and the opaque blocks of messages that are nowhere else in the messages."""
    every = list(messages)
    content = "\n".join(text for message in every for text in strings(_said(message)))
    bound = {text for message in every for _, _, value in _states(message) for text in strings(value)}
    return {text for text in bound if len(text) >= SHORTEST and not _WORD.fullmatch(text) and text not in content}


def bound_in(body: bytes, texts: Iterable[str]) -> list[str]:
    """Return the texts that are in a body, sorted."""
    body_text = _held(body)
    return sorted(text for text in texts if text in body_text)


def untold(messages: Iterable[Message], body: bytes, losses: Iterable[Loss]) -> list[str]:
    """Return in words the state of texts, media, refusals and calls that is neither in a body nor in a loss."""
    body_text, reported = _held(body), {(loss.message_id, loss.path) for loss in losses}
    return [
        f"the state of {path} in a message by {message.policy!r}"
        for message in messages
        for kind, path, state in _states(message)
        if kind in ("option_call", "text", "media", "refusal")
        and any(text not in body_text for text in strings(state))
        and reported.isdisjoint((message.id, each) for each in ("", path, f"{path}.state"))
    ]


def _states(message: Message) -> Iterator[tuple[str, str, JSONValue]]:
    """Yield each state and block of a message, after the kind of its part or call and its path in the message."""
    if message.call is not None:
        yield "option_call", "payload", message.call.state
    for index, part in enumerate(message.parts):
        if part.kind != "unknown":
            yield part.kind, f"parts[{index}]", part.block if part.kind == "opaque" else part.state


def _said(message: Message) -> JSONValue:
    """Return the content of a message that every provider can read: no state and no opaque parts."""
    payload: dict[str, Any] = message.model_dump(mode="json")["payload"]
    parts = [{**part, "state": None} for part in payload.get("parts", ()) if part["kind"] != "opaque"]
    return {**payload, "state": None, "parts": parts}


def without_bound(message: Message) -> Message:
    """Return the message without state, opaque blocks and reasoning."""
    data = message.model_dump(mode="json")
    data["payload"].pop("state", None)
    if message.kind == "parts":
        parts = [part for part in data["payload"]["parts"] if part["kind"] not in ("opaque", "reasoning")]
        for part in parts:
            part.pop("state", None)
        data["payload"]["parts"] = parts or [{"kind": "text", "text": ""}]
    return load_stored(Message.model_validate, data)


# --- calls with their results -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exchange:
    """The answered calls of one turn, each with its result. Both are positions in the history."""

    pairs: tuple[tuple[int, int], ...]
    members: frozenset[int]
    """Positions of all messages of the turn and of the results."""


def exchanges_of(history: Sequence[Message], scope: TurnScope) -> list[Exchange]:
    """Return the pairs of calls and results that a request must contain, one Exchange for each turn."""
    exchanges = []
    for block in pair_messages(history, scope).blocks:
        pairs = [(at, block.answers.get(at)) for at in block.positions]
        answered = tuple((call, result) for call, result in pairs if result is not None)
        if answered:
            members = frozenset((*block.positions, *(result for _, result in answered)))
            exchanges.append(Exchange(answered, members))
    return exchanges


def is_before(one: Place, other: Place) -> bool | None:
    """Return whether a place is before another one; None if the two have no order."""
    differing = next(((a, b) for a, b in zip(one, other, strict=False) if a != b), None)
    return None if differing is None else differing[0] < differing[1]


def check_pairs(subject: AdapterUnderTest, marked: Sequence[Marked], rendering: Rendering | None) -> None:
    """Raise ConformanceFailure unless the request contains each pair completely or not at all.

    All calls of a turn must be before all their results, without other texts between them.
    """
    history = messages(marked)
    where = places(subject.items(rendering))
    for exchange in exchanges_of(history, subject.renderer().scope):
        fault = _fault(marked, exchange, where)
        expect(not fault, fault, history=history, rendering=rendering)


def _fault(marked: Sequence[Marked], exchange: Exchange, where: dict[str, list[Place]]) -> str:
    """Return the first fault of one turn's calls and results in the request, in words; "" if there is none."""
    calls, results = list[tuple[int, Place]](), list[tuple[int, Place]]()
    for call, result in exchange.pairs:
        if not marked[result].spoken:
            continue  # a result with media only has no mark
        called, answered = (where.get(marked[at].spoken[0], []) for at in (call, result))
        both = f"the call in message {call + 1} and its result in message {result + 1}"
        if bool(called) != bool(answered):
            present, missing = ("call", "result") if called else ("result", "call")
            return f"of {both}, the request contains only the {present}; send the {missing} too, or neither"
        if len(called) > 1 or len(answered) > 1:
            return f"the request contains {both} more than once"
        calls += [(call, place) for place in called]
        results += [(result, place) for place in answered]
    for result, answered_at in results:
        for call, called_at in calls:
            if is_before(answered_at, called_at):
                order = f"the result of message {result + 1} is before the call of message {call + 1} of the same turn"
                return f"in the request, {order}; send all calls of a turn before all their results"
    if not calls:
        return ""
    first, last = min(place for _, place in calls), max(place for _, place in results)
    for at, each in enumerate(marked):
        others = [place for text in each.marks for place in where.get(text, ())] if at not in exchange.members else []
        if any(is_before(first, place) and is_before(place, last) for place in others):
            return (
                f"in the request, message {at + 1} ({each.message.policy}) is between the call of message "
                f"{calls[0][0] + 1} and the result of message {results[-1][0] + 1}; send nothing between calls and "
                "their results"
            )
    return ""


def check_ids(subject: AdapterUnderTest, marked: Sequence[Marked], rendering: Rendering | None) -> None:
    """Raise ConformanceFailure if the request contains another id of a call than `Entry.wire_id`, or if the result has
    another id than its call.
    """
    history = messages(marked)
    owners = {text: at for at, each in enumerate(marked) for text in each.marks}
    shown: dict[int, set[str]] = {}
    for at, neighbours in _alone(subject.items(rendering), owners):
        shown.setdefault(at, set()).update(neighbours)
    ids = Identifiers(subject.tables.calls.ids)
    for exchange in exchanges_of(history, subject.renderer().scope):
        for call, result in exchange.pairs:
            payload = history[call].call
            stored_id = payload.invocation_id if payload else ""
            wire_id, near_call = ids.fresh(stored_id), shown.get(call, set())
            what = ""
            if stored_id != wire_id and stored_id in near_call:
                what = f"the call of message {call + 1} is sent with its stored id {stored_id!r}, which another call"
                what = f"{what} also has or tables.calls.ids does not allow; send Entry.wire_id, here {wire_id!r}"
            elif wire_id in near_call and wire_id not in shown.get(result, near_call):
                what = f"the call of message {call + 1} is sent with the id {wire_id!r}, but its result, message"
                what = f"{what} {result + 1}, is sent without this id; send Entry.wire_id in both"
            expect(not what, what, history=history, rendering=rendering)


def _alone(value: Any, owners: dict[str, int]) -> Iterator[tuple[int, set[str]]]:
    """Yield a message's position, and the strings of the largest value with its marks and no marks of others."""
    members = {owners[text] for text in places(value) if text in owners}
    if len(members) == 1:
        yield members.pop(), set(strings(value))
    elif members:
        for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _alone(member, owners)
