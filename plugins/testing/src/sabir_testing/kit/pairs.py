"""Finds calls with their results, as core pairs them, in a dialect's items (law 1).

history ─▶ core's pairing ─▶ Exchange: a turn's calls and their results ─▶ marks ─▶ places in the wire's items
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sabir import Message, Rendering
from sabir.authoring import TurnScope, pair
from sabir.rendering.turns import Identifiers

from sabir_testing.histories.marks import Marked, Place, messages, places
from sabir_testing.kit.broken import Broken
from sabir_testing.kit.suite import Subject
from sabir_testing.reading import strings


@dataclass(frozen=True)
class Exchange:
    """One turn's calls with their results, by positions in the history, in the order of the calls."""

    pairs: tuple[tuple[int, int], ...]
    members: frozenset[int]
    """Every message of that turn, and the results."""


def exchanges_of(history: Sequence[Message], scope: TurnScope) -> list[Exchange]:
    """The pairs of a history that are to be rendered, turn by turn; without calls that an error answers."""
    found = []
    for block in pair(history, scope).blocks:
        pairs = [(at, block.answers.get(at)) for at in block.positions]
        whole = tuple((call, result) for call, result in pairs if result is not None)
        if whole:
            found.append(Exchange(whole, frozenset((*block.positions, *(result for _, result in whole)))))
    return found


def is_before(one: Place, other: Place) -> bool | None:
    """Whether a place stands before another; None where they have no order."""
    differing = next(((a, b) for a, b in zip(one, other, strict=False) if a != b), None)
    return None if differing is None else differing[0] < differing[1]


def check_pairs(subject: Subject, marked: Sequence[Marked], rendering: Rendering) -> None:
    """Broken unless each pair is in the request whole, calls first, with nobody else's words between."""
    history = messages(marked)
    where = places(subject.items(rendering))
    for exchange in exchanges_of(history, subject.renderer().scope):
        fault = _fault(marked, exchange, where)
        if fault:
            raise Broken(fault, history=history, rendering=rendering)


def _fault(marked: Sequence[Marked], exchange: Exchange, where: dict[str, list[Place]]) -> str:
    """What is wrong with one turn's calls and results, or nothing."""
    calls, results = list[tuple[int, Place]](), list[tuple[int, Place]]()
    for call, result in exchange.pairs:
        if not marked[result].spoken:
            continue  # a result of media alone cannot be told from another
        called, answered = (where.get(marked[at].spoken[0], []) for at in (call, result))
        if bool(called) != bool(answered):
            there, missing = ("call", "result") if called else ("result", "call")
            return f"the {there} of {_pair(call, result)} is in the request without its {missing}"
        if len(called) > 1 or len(answered) > 1:
            return f"the call or the result of {_pair(call, result)} is in the request more than once"
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
        if at not in exchange.members and _stands_between(each, first, last, where):
            return (
                f"message {at + 1} ({each.message.policy}) stands between the call of message {calls[0][0] + 1} and "
                f"the result of message {results[-1][0] + 1}, which must follow the call's turn at once"
            )
    return ""


def _stands_between(marked: Marked, first: Place, last: Place, where: dict[str, list[Place]]) -> bool:
    found = [place for text in marked.marks for place in where.get(text, ())]
    return any(is_before(first, place) and is_before(place, last) for place in found)


def _pair(call: int, result: int) -> str:
    return f"messages {call + 1} and {result + 1}"


def check_ids(subject: Subject, marked: Sequence[Marked], rendering: Rendering) -> None:
    """Broken where a call shows another id than core gave it, or its result not the same."""
    history = messages(marked)
    owners = {text: at for at, each in enumerate(marked) for text in each.marks}
    shown: dict[int, set[str]] = {}
    for at, beside in _alone(subject.items(rendering), owners):
        shown.setdefault(at, set()).update(beside)
    ids = Identifiers(subject.tables.calls.ids)
    for exchange in exchanges_of(history, subject.renderer().scope):
        for call, result in exchange.pairs:
            given = _invocation_id(history[call])
            wire_id = ids.fresh(given)
            beside_call = shown.get(call, set())
            if given != wire_id and given in beside_call:
                raise Broken(
                    f"the call of message {call + 1} is sent with the id {given!r}, which is another call's or not to "
                    f"this wire's taste; its id here is {wire_id!r} (Entry.wire_id)",
                    history=history,
                    rendering=rendering,
                )
            if wire_id in beside_call and wire_id not in shown.get(result, beside_call):
                raise Broken(
                    f"the call of message {call + 1} is sent with the id {wire_id!r}, its result, message "
                    f"{result + 1}, without it",
                    history=history,
                    rendering=rendering,
                )


def _invocation_id(message: Message) -> str:
    return message.call.invocation_id if message.call else ""


def _alone(value: Any, owners: dict[str, int]) -> Iterator[tuple[int, set[str]]]:
    """Position of a message → the strings of the largest value that holds its marks and no other's."""
    found = {owners[text] for text in places(value) if text in owners}
    if len(found) == 1:
        yield found.pop(), set(strings(value))
    elif found:
        for member in _members(value):
            yield from _alone(member, owners)


def _members(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
