"""Texts that identify a history's messages in a request, the kit's marks and bound state; and pairs found by them.

history ──mark──▶ "mark0.", "mark1.", … ──render──▶ places(items)  where each stands in the messages
                                                    unheard(…)     marks that are neither in the body nor in the losses
state {"signature": "c2lnbmF0dXJl…"}, block {"id": "ws_1f3a…"} ─▶ bound_texts ─▶ each stands in a body, or does not
history ─▶ core's pairing ─▶ Exchange: a turn's calls and their results ─▶ marks ─▶ places in the wire's items (law 1)
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
"""Positions in arrays, from the outermost inwards; what stands in one object has no order."""
_MARK = re.compile(r"mark\d+\.")


class Marked(NamedTuple):
    """A message with a mark in every place of it that holds text, and those marks."""

    message: Message
    marks: tuple[str, ...]
    spoken: tuple[str, ...] = ()
    """The marks outside of thoughts: if the message is sent, they are in it."""


def mark(history: Sequence[Message]) -> list[Marked]:
    """The history with marks for its texts, arguments, results and errors; all else stays as it is.

    Texts without a character stay without one, as do thoughts that their maker hides.
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
    """The messages alone."""
    return [each.message for each in marked]


def places(value: JSONValue) -> dict[str, list[Place]]:
    """Where each mark stands in a value; a mark may stand within a longer string."""
    found: dict[str, list[Place]] = {}
    for leaf in walk(value):
        if isinstance(leaf.value, str) and not leaf.is_name:
            place = tuple(step for step in leaf.place if isinstance(step, int))
            for each in _MARK.findall(leaf.value):
                found.setdefault(each, []).append(place)
    return found


def unheard(marked: Sequence[Marked], body: bytes, losses: Sequence[Loss]) -> list[str]:
    """The marks that are not in a body and whose message no loss names (law 2), in words."""
    held, told = _held(body), {loss.message_id for loss in losses}
    return [
        f"the text {text!r} of message {number} ({each.message.policy})"
        for number, each in enumerate(marked, start=1)
        if each.message.id not in told
        for text in each.marks
        if text not in held
    ]


def _held(body: bytes) -> str:
    return "\n".join(strings(json.loads(body))) if body else ""


# --- what is bound to its maker ---------------------------------------------------------------------------------------

SHORTEST = 8
"""Characters below which a text may stand in a body by chance."""
_WORD = re.compile(r"[a-z_. -]+|[A-Z_]+")
"""A word of a wire, such as `completed`: it binds nothing."""


def bound_texts(messages: Iterable[Message]) -> set[str]:
    """The texts that are in the state and the blocks of messages and nowhere else in them."""
    listed = list(messages)
    said = "\n".join(text for message in listed for text in strings(_said(message)))
    found = {text for message in listed for _, _, value in _states(message) for text in strings(value)}
    return {text for text in found if len(text) >= SHORTEST and not _WORD.fullmatch(text) and text not in said}


def bound_in(body: bytes, texts: Iterable[str]) -> list[str]:
    """Those of some texts that stand in a body, in the order of the alphabet."""
    held = _held(body)
    return sorted(text for text in texts if text in held)


def untold(messages: Iterable[Message], body: bytes, losses: Iterable[Loss]) -> list[str]:
    """State beside a text, a medium, a refusal or a call with a string that is neither in a body nor in a loss."""
    held, told = _held(body), {(loss.message_id, loss.path) for loss in losses}
    return [
        f"the state beside {path} of a message by {message.policy!r}"
        for message in messages
        for kind, path, state in _states(message)
        if kind in ("option_call", "text", "media", "refusal")
        and any(text not in held for text in strings(state))
        and told.isdisjoint((message.id, each) for each in ("", path, f"{path}.state"))
    ]


def _states(message: Message) -> Iterator[tuple[str, str, JSONValue]]:
    """Each state and block of a message's, with the kind of what it stands beside, and its place."""
    if message.call is not None:
        yield "option_call", "payload", message.call.state
    for index, part in enumerate(message.parts):
        if part.kind != "unknown":
            yield part.kind, f"parts[{index}]", part.block if part.kind == "opaque" else part.state


def _said(message: Message) -> JSONValue:
    """The content of a message for any provider."""
    payload: dict[str, Any] = message.model_dump(mode="json")["payload"]
    parts = [{**part, "state": None} for part in payload.get("parts", ()) if part["kind"] != "opaque"]
    return {**payload, "state": None, "parts": parts}


def without_bound(message: Message) -> Message:
    """The message without bound state: no state, no block, no thought."""
    data = message.model_dump(mode="json")
    data["payload"].pop("state", None)
    if message.kind == "parts":
        kept = [part for part in data["payload"]["parts"] if part["kind"] not in ("opaque", "reasoning")]
        for part in kept:
            part.pop("state", None)
        data["payload"]["parts"] = kept or [{"kind": "text", "text": ""}]
    return load_stored(Message.model_validate, data)


# --- calls with their results -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exchange:
    """One turn's calls with their results, by positions in the history, in the order of the calls."""

    pairs: tuple[tuple[int, int], ...]
    members: frozenset[int]
    """Every message of that turn, and the results."""


def exchanges_of(history: Sequence[Message], scope: TurnScope) -> list[Exchange]:
    """The pairs of a history that are to be rendered, turn by turn; without calls that an error answers."""
    found = []
    for block in pair_messages(history, scope).blocks:
        pairs = [(at, block.answers.get(at)) for at in block.positions]
        whole = tuple((call, result) for call, result in pairs if result is not None)
        if whole:
            found.append(Exchange(whole, frozenset((*block.positions, *(result for _, result in whole)))))
    return found


def is_before(one: Place, other: Place) -> bool | None:
    """Whether a place stands before another; None where they have no order."""
    differing = next(((a, b) for a, b in zip(one, other, strict=False) if a != b), None)
    return None if differing is None else differing[0] < differing[1]


def check_pairs(subject: AdapterUnderTest, marked: Sequence[Marked], rendering: Rendering | None) -> None:
    """ConformanceFailure unless each pair is in the request, if any, whole: calls first, no other words between."""
    history = messages(marked)
    where = places(subject.items(rendering))
    for exchange in exchanges_of(history, subject.renderer().scope):
        fault = _fault(marked, exchange, where)
        expect(not fault, fault, history=history, rendering=rendering)


def _fault(marked: Sequence[Marked], exchange: Exchange, where: dict[str, list[Place]]) -> str:
    """What is wrong with one turn's calls and results, or nothing."""
    calls, results = list[tuple[int, Place]](), list[tuple[int, Place]]()
    for call, result in exchange.pairs:
        if not marked[result].spoken:
            continue  # a result of media alone cannot be told from another
        called, answered = (where.get(marked[at].spoken[0], []) for at in (call, result))
        both = f"messages {call + 1} and {result + 1}"
        if bool(called) != bool(answered):
            there, missing = ("call", "result") if called else ("result", "call")
            return f"the {there} of {both} is in the request without its {missing}"
        if len(called) > 1 or len(answered) > 1:
            return f"the call or the result of {both} is in the request more than once"
        calls += [(call, place) for place in called]
        results += [(result, place) for place in answered]
    for result, answered_at in results:
        for call, called_at in calls:
            if is_before(answered_at, called_at):
                return f"the result of message {result + 1} stands before the call of message {call + 1}, of one turn"
    if not calls:
        return ""
    first, last = min(place for _, place in calls), max(place for _, place in results)
    for at, each in enumerate(marked):
        found = [place for text in each.marks for place in where.get(text, ())] if at not in exchange.members else []
        if any(is_before(first, place) and is_before(place, last) for place in found):
            return (
                f"message {at + 1} ({each.message.policy}) stands between the call of message {calls[0][0] + 1} and "
                f"the result of message {results[-1][0] + 1}, which must follow the call's turn at once"
            )
    return ""


def check_ids(subject: AdapterUnderTest, marked: Sequence[Marked], rendering: Rendering | None) -> None:
    """ConformanceFailure where a call shows another id than core gave it, or its result not the same."""
    history = messages(marked)
    owners = {text: at for at, each in enumerate(marked) for text in each.marks}
    shown: dict[int, set[str]] = {}
    for at, beside in _alone(subject.items(rendering), owners):
        shown.setdefault(at, set()).update(beside)
    ids = Identifiers(subject.tables.calls.ids)
    for exchange in exchanges_of(history, subject.renderer().scope):
        for call, result in exchange.pairs:
            chosen = history[call].call
            given = chosen.invocation_id if chosen else ""
            wire_id, beside_call = ids.fresh(given), shown.get(call, set())
            what = ""
            if given != wire_id and given in beside_call:
                what = f"with the id {given!r}, which is another call's or not to this wire's taste; its id here is"
                what = f"{what} {wire_id!r} (Entry.wire_id)"
            elif wire_id in beside_call and wire_id not in shown.get(result, beside_call):
                what = f"with the id {wire_id!r}, its result, message {result + 1}, without it"
            what = what and f"the call of message {call + 1} is sent {what}"
            expect(not what, what, history=history, rendering=rendering)


def _alone(value: Any, owners: dict[str, int]) -> Iterator[tuple[int, set[str]]]:
    """Position of a message → the strings of the largest value that holds its marks and no other's."""
    found = {owners[text] for text in places(value) if text in owners}
    if len(found) == 1:
        yield found.pop(), set(strings(value))
    elif found:
        for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _alone(member, owners)
