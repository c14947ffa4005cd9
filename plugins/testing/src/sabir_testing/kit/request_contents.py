"""Marks: texts that identify messages, signed state and pairs of calls and results in a rendered request.

history ──mark──▶ "mark0.", "mark1.", … ──render──▶ mark_positions(items)  positions in the request's items
                                                    missing_texts(…)       marks that are neither sent nor reported
state {"signature": "c2lnbmF0dXJl…"}, block {"id": "ws_1f3a…"} ─▶ bound_texts ─▶ bound_in: those in a request's body
history ─▶ core's pairing ─▶ AnsweredTurn: calls and their results ─▶ positions of their marks in the items (law 1)
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from sabir import Loss, Message, Rendering
from sabir.authoring import JSONValue, TurnScope, load_stored, pair_messages
from sabir.rendering.turns import Identifiers

from sabir_testing.kit.failures import expect
from sabir_testing.kit.suite import AdapterUnderTest
from sabir_testing.reading import replace_at, strings, walk

Position = tuple[int, ...]
"""Positions in nested arrays, the outermost first. Fields of an object have no position, because they have no order."""
_MARK = re.compile(r"mark\d+\.")


class MarkedMessage(NamedTuple):
    """A message whose texts were replaced by marks, and these marks."""

    message: Message
    marks: tuple[str, ...]
    required: tuple[str, ...] = ()
    """The marks outside of reasoning. A request that contains the message contains them."""


def mark(history: Sequence[Message]) -> list[MarkedMessage]:
    """Return copies of the messages with marks instead of texts, arguments, results and error messages.

    Reasoning without text gets no mark, and other contents, such as media, remain.
    """
    numbers = count()
    return [_mark_message(message, numbers) for message in history]


def _mark_message(message: Message, numbers: Iterator[int]) -> MarkedMessage:
    fields = message.model_dump(mode="json")
    payload, marks, reasoning = fields["payload"], list[str](), set[str]()

    def new_mark() -> str:
        marks.append(f"mark{next(numbers)}.")
        return marks[-1]

    for part in payload.get("parts", ()):
        if part["kind"] in ("text", "refusal"):
            part["text"] = new_mark()
        elif part["kind"] == "reasoning" and (text := part["text"]):
            part["text"] = new_mark()
            part["state"] = _mark_state(part["state"], text, part["text"])
            reasoning.add(part["text"])
    if payload["kind"] == "option_call":
        payload |= {"arguments": {"a": new_mark()}, "raw_arguments": None, "invalid_arguments": False, "cut_off": False}
    elif payload["kind"] == "option_result" and payload["is_error"]:
        payload["error_message"] = new_mark()
    elif payload["kind"] == "option_result" and not payload["parts"]:
        payload["result"] = new_mark()
    required = tuple(text for text in marks if text not in reasoning)
    return MarkedMessage(Message.model_validate(fields), tuple(marks), required)


def _mark_state(state: Any, text: str, mark: str) -> Any:
    """Return a copy of a state with the mark instead of each of its strings that is a piece of `text`.

    Some dialects store the text of reasoning in its state too, and send the state.
    """
    for leaf in walk(state):
        if (
            isinstance(leaf.value, str)
            and not leaf.is_name
            and len(leaf.value) >= SHORTEST_STATE
            and leaf.value in text
        ):
            state = replace_at(state, leaf.path, mark)
    return state


def messages_in(marked: Sequence[MarkedMessage]) -> list[Message]:
    """Return only the messages, without the lists of their marks."""
    return [each.message for each in marked]


def mark_positions(value: JSONValue) -> dict[str, list[Position]]:
    """Return the positions of each mark in a JSON value. A mark may be part of a longer string."""
    positions: dict[str, list[Position]] = {}
    for leaf in walk(value):
        if isinstance(leaf.value, str) and not leaf.is_name:
            position = tuple(step for step in leaf.path if isinstance(step, int))
            for each in _MARK.findall(leaf.value):
                positions.setdefault(each, []).append(position)
    return positions


def missing_texts(marked: Sequence[MarkedMessage], body: bytes, losses: Sequence[Loss]) -> list[str]:
    """Describe each mark that is not in the body and whose message is not named by a loss (law 2)."""
    body_text, reported = _all_strings(body), {loss.message_id for loss in losses}
    return [
        f"the text {text!r} of message {number} ({each.message.policy})"
        for number, each in enumerate(marked, start=1)
        if each.message.id not in reported
        for text in each.marks
        if text not in body_text
    ]


def _all_strings(body: bytes) -> str:
    """Return all strings of a JSON body, one on a line."""
    return "\n".join(strings(json.loads(body))) if body else ""


# --- state that only one provider can read ----------------------------------------------------------------------------

SHORTEST_STATE = 8
"""The shortest text that identifies a state, in characters. A body may contain shorter texts by chance."""
_API_CONSTANT = re.compile(r"[a-z_. -]+|[A-Z_]+")
"""Constants of APIs, such as `completed`, which many messages contain."""


def bound_texts(messages: Iterable[Message]) -> set[str]:
    """Return the texts that occur only in the state and the opaque blocks of the messages, without short texts and
    constants of APIs.
    """
    every = list(messages)
    content = "\n".join(text for message in every for text in strings(_readable_content(message)))
    bound = {text for message in every for _, _, value in _states(message) for text in strings(value)}
    long = {text for text in bound if len(text) >= SHORTEST_STATE}
    return {text for text in long if not _API_CONSTANT.fullmatch(text) and text not in content}


def bound_in(body: bytes, texts: Iterable[str]) -> list[str]:
    """Return the texts that are in a body, sorted."""
    body_text = _all_strings(body)
    return sorted(text for text in texts if text in body_text)


def missing_states(messages: Iterable[Message], body: bytes, losses: Iterable[Loss]) -> list[str]:
    """Describe each state of a text, medium, refusal or call that is neither in the body nor in the losses."""
    body_text, reported = _all_strings(body), {(loss.message_id, loss.path) for loss in losses}
    return [
        f"the state of {path} in a message by {message.policy!r}"
        for message in messages
        for kind, path, state in _states(message)
        if kind in ("option_call", "text", "media", "refusal")
        and any(text not in body_text for text in strings(state))
        and reported.isdisjoint((message.id, each) for each in ("", path, f"{path}.state"))
    ]


_BLOCKS: Mapping[str, str] = {"native_call": "raw", "native_result": "raw", "opaque": "block"}
"""Kind of a part → the attribute with its vendor's block. Other parts have a `state`."""


def _states(message: Message) -> Iterator[tuple[str, str, JSONValue]]:
    """Yield each state and block of a message, after the kind of its part or call and its path in the message."""
    if message.call is not None:
        yield "option_call", "payload", message.call.state
    for index, part in enumerate(message.parts):
        if part.kind != "unknown":
            yield part.kind, f"parts[{index}]", getattr(part, _BLOCKS.get(part.kind, "state"))


def _readable_content(message: Message) -> JSONValue:
    """Return the content of a message that every provider can read: no state and no opaque parts."""
    payload: dict[str, Any] = message.model_dump(mode="json")["payload"]
    unbound = {"state": None, "raw": None}
    parts = [{**part, **unbound} for part in payload.get("parts", ()) if part["kind"] != "opaque"]
    return {**payload, "state": None, "parts": parts}


def without_bound(message: Message) -> Message:
    """Return the message without state, vendors' blocks and reasoning. If no part remains, it gets an empty text."""
    fields = message.model_dump(mode="json")
    fields["payload"].pop("state", None)
    if message.kind == "parts":
        parts = [part for part in fields["payload"]["parts"] if part["kind"] not in ("opaque", "reasoning")]
        for part in parts:
            for name in ("state", "raw"):
                part.pop(name, None)
        fields["payload"]["parts"] = parts or [{"kind": "text", "text": ""}]
    return load_stored(Message.model_validate, fields)


# --- calls with their results -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnsweredTurn:
    """The answered calls of one turn, each with its result. Both are positions in the history."""

    pairs: tuple[tuple[int, int], ...]
    members: frozenset[int]
    """Positions of all messages of the turn and of the results."""


def answered_turns(history: Sequence[Message], scope: TurnScope) -> list[AnsweredTurn]:
    """Return the pairs of calls and results that a request must contain, one AnsweredTurn for each turn."""
    turns = []
    for block in pair_messages(history, scope).blocks:
        pairs = [(at, block.answers.get(at)) for at in block.positions]
        answered = tuple((call, result) for call, result in pairs if result is not None)
        if answered:
            members = frozenset((*block.positions, *(result for _, result in answered)))
            turns.append(AnsweredTurn(answered, members))
    return turns


def is_before(one: Position, other: Position) -> bool | None:
    """Return whether the first position is before the second; None if they have no order."""
    differing = next(((a, b) for a, b in zip(one, other, strict=False) if a != b), None)
    return None if differing is None else differing[0] < differing[1]


def check_pairs(subject: AdapterUnderTest, marked: Sequence[MarkedMessage], rendering: Rendering | None) -> None:
    """Raise ConformanceFailure unless the request contains each pair completely or not at all, and once. A pair is not
    checked if its result has no mark.

    All calls of a turn must be before all their results, without other texts between them.
    """
    history = messages_in(marked)
    positions = mark_positions(subject.items(rendering))
    for turn in answered_turns(history, subject.renderer().scope):
        fault = _pairing_fault(marked, turn, positions)
        expect(not fault, fault, history=history, rendering=rendering)


def _pairing_fault(marked: Sequence[MarkedMessage], turn: AnsweredTurn, positions: dict[str, list[Position]]) -> str:
    """Describe the first fault of one turn's calls and results in the request; "" if there is none."""
    calls, results = list[tuple[int, Position]](), list[tuple[int, Position]]()
    for call, result in turn.pairs:
        if not marked[result].required:
            continue  # a result with media only has no mark
        called, answered = (positions.get(marked[at].required[0], []) for at in (call, result))
        both = f"the call in message {call + 1} and its result in message {result + 1}"
        if bool(called) != bool(answered):
            present, missing = ("call", "result") if called else ("result", "call")
            return f"of {both}, the request contains only the {present}; send the {missing} too, or neither"
        if len(called) > 1 or len(answered) > 1:
            return f"the request contains {both} more than once"
        calls += [(call, position) for position in called]
        results += [(result, position) for position in answered]
    for result, answered_at in results:
        for call, called_at in calls:
            if is_before(answered_at, called_at):
                order = f"the result of message {result + 1} is before the call of message {call + 1} of the same turn"
                return f"in the request, {order}; send all calls of a turn before all their results"
    if not calls:
        return ""
    first, last = min(position for _, position in calls), max(position for _, position in results)
    for at, each in enumerate(marked):
        texts = () if at in turn.members else each.marks
        foreign = [position for text in texts for position in positions.get(text, ())]
        if any(is_before(first, position) and is_before(position, last) for position in foreign):
            return (
                f"in the request, message {at + 1} ({each.message.policy}) is between the call of message "
                f"{calls[0][0] + 1} and the result of message {results[-1][0] + 1}; send nothing between calls and "
                "their results"
            )
    return ""


def check_ids(subject: AdapterUnderTest, marked: Sequence[MarkedMessage], rendering: Rendering | None) -> None:
    """Raise ConformanceFailure if the request contains a call's stored id where `Entry.wire_id` is another one, or if a
    call is sent with `Entry.wire_id` and its result is sent without it.
    """
    history = messages_in(marked)
    owners = {text: at for at, each in enumerate(marked) for text in each.marks}
    strings_near: dict[int, set[str]] = {}
    for at, strings_nearby in _strings_by_message(subject.items(rendering), owners):
        strings_near.setdefault(at, set()).update(strings_nearby)
    ids = Identifiers(subject.tables.calls.ids)
    for turn in answered_turns(history, subject.renderer().scope):
        for call, result in turn.pairs:
            payload = history[call].call
            stored_id = payload.invocation_id if payload else ""
            wire_id, near_call = ids.fresh(stored_id), strings_near.get(call, set())
            what = ""
            if stored_id != wire_id and stored_id in near_call:
                what = f"the call of message {call + 1} is sent with its stored id {stored_id!r}, which another call"
                what = f"{what} also has or tables.calls.ids does not allow; send Entry.wire_id, here {wire_id!r}"
            elif wire_id in near_call and wire_id not in strings_near.get(result, near_call):
                what = f"the call of message {call + 1} is sent with the id {wire_id!r}, but its result, message"
                what = f"{what} {result + 1}, is sent without this id; send Entry.wire_id in both"
            expect(not what, what, history=history, rendering=rendering)


def _strings_by_message(value: Any, owners: dict[str, int]) -> Iterator[tuple[int, set[str]]]:
    """Yield the position of each message and the strings of the largest values that have marks of this message only."""
    message_positions = {owners[text] for text in mark_positions(value) if text in owners}
    if len(message_positions) == 1:
        yield message_positions.pop(), set(strings(value))
    elif message_positions:
        for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _strings_by_message(member, owners)
