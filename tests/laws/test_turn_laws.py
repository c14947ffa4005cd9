"""A whole turn renders alike as the tail of a request and once others closed it: items, and losses of its messages.

    before · turn                      ─▶ what was sent
    before · turn · others ─▶ the same items, in the same bytes, at the same place

Law 4 lets what is open change: a call without its result, half a pair. Of a turn that is whole nothing may: what a
provider accepted, and keeps in its cache, is what it gets again.
"""

import json
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, chain
from typing import TypeAlias

import pytest
from sabir.authoring import Row
from sabir.base.failures import Loss
from sabir.contract.dialect import Rendering
from sabir.rendering.pairing import side_of
from sabir.vocabulary.messages import Message
from sabir_testing.histories.samples import JSON_KINDS, call_message, error_result, message_by, result_message

from tests.laws.every import on_every
from tests.laws.oracle import check_request, validators
from tests.laws.targets import UNKNOWN, Wire, wires

MessageTurn: TypeAlias = list[Message]
ACCEPTED = set[int]()
"""Hashes of the items that a vendor's types took."""
MODEL_NEXT = [message_by("llm", "So."), message_by("user", "And?")]
USER_NEXT = [message_by("user", "And?"), message_by("llm", "So.")]
"""What closes a turn of another side."""
SCAN = json.JSONDecoder().raw_decode


def opened(turns: Sequence[MessageTurn]) -> list[MessageTurn]:
    """The turns after instructions and a question."""
    return [[message_by("system", "Be brief."), message_by("user", "Hi")], *turns]


def fresh(wire: Wire, history: list[Message]) -> Rendering:
    return wire.adapter.new_renderer().render(history)


def items(wire: Wire, rendering: Rendering) -> list[str]:
    """The items of the messages array as they are written: 1, 1.0, 1e0 and true are four things."""
    text, field = rendering.body_bytes.decode(), field_of(wire)
    at = text.index(f'"{field}":[') + len(field) + 4
    found = []
    while text[at] != "]":
        _, end = SCAN(text, at)
        found.append(text[at:end])
        at = end + (text[end] == ",")
    return found


@cache
def field_of(wire: Wire) -> str:
    return wire.adapter.new_renderer().dialect.messages_field


def turns_in(wire: Wire, rendering: Rendering) -> list[str]:
    """The items that turns came to, without the one that ends a request where the model may not."""
    found = items(wire, rendering)
    is_ended = any(loss.kind == "synthesized" and loss.path == field_of(wire) for loss in rendering.losses)
    return found[:-1] if is_ended else found


def losses_of(history: Sequence[Message], rendering: Rendering) -> list[Loss]:
    """Those that name one of these messages, in order."""
    named = {message.id for message in history}
    return [loss for loss in rendering.losses if loss.message_id in named]


def ends(turns: Sequence[MessageTurn]) -> list[int]:
    """How many messages stand before each place where one side ends and another begins."""
    places = list(accumulate(map(len, turns)))[:-1]
    history = list(chain.from_iterable(turns))
    sides = [side.replace("system", "user") for side in (side_of(each, "llm") for each in history)]
    return [at for at in places if sides[at - 1] != sides[at]]


def check_alike(wire: Wire, turns: Sequence[MessageTurn], places: Sequence[int]) -> None:
    """The law, for the turns of a conversation that end at these places."""
    whole = list(chain.from_iterable(turns))
    later = fresh(wire, whole)
    now = items(wire, later)
    accept(wire, later, now)
    for end in places:
        history = whole[:end]
        sent = fresh(wire, history)
        as_tail = turns_in(wire, sent)

        assert now[: len(as_tail)] == as_tail
        assert losses_of(history, later) == losses_of(history, sent)
        accept(wire, sent, as_tail)


def accept(wire: Wire, rendering: Rendering, found: Sequence[str]) -> None:
    """The vendor's own types take a request, where there are some; the same items are shown to them once.

    A gateway's fields beside OpenAI's are unknown to these types; tests/vendor/test_rows.py holds them to their rows.
    """
    if wire.adapter.target.provider in Row.load_all_packaged("sabir_openai"):
        return
    dialect = wire.adapter.dialect
    key = hash((dialect, *found))
    if dialect in validators() and key not in ACCEPTED:
        check_request(dialect, rendering.body_bytes)
        ACCEPTED.add(key)


def closed(turns: Sequence[MessageTurn]) -> list[MessageTurn]:
    """The turns, and others that close the last one."""
    last = side_of(turns[-1][-1], "llm")
    return [*turns, *([each] for each in (USER_NEXT if last == "assistant" else MODEL_NEXT))]


def test_models_of_every_behaviour_are_tried() -> None:
    tried = {wire.name for wire in wires()}

    assert {wire.name.partition(":")[0] for wire in wires()} >= {
        "anthropic.messages", "openai.chat", "openai.responses", "google.generate_content", "local.chat", "echo.plain",
        "groq.chat", "mistral.chat",
    }  # fmt: skip
    assert {"google.generate_content:gemini-2.5", f"google.generate_content:{UNKNOWN}"} <= tried
    assert any(name.startswith("google.generate_content:gemini-3") for name in tried)


@pytest.mark.parametrize("kind", JSON_KINDS)
@on_every(wires())
def test_a_result_and_an_argument_of_each_kind_render_alike(wire: Wire, kind: str) -> None:
    """A value of each kind by itself and in parallel to another, after a turn of the same shape; as an argument, too.

    A turn of the model's text stands between them.
    """
    value = JSON_KINDS[kind]
    alone = call_message("a", {}), call_message("b", {"value": value, "output": value})
    beside = [call_message("c", {}), call_message("d", {})]
    turns = opened([
        [alone[0], result_message("a", "ok")],
        [message_by("llm", "So.")],
        [alone[1], result_message("b", value)],
        [message_by("llm", "So."), *beside, result_message("c", value), result_message("d", "ok")],
    ])  # fmt: skip
    end = sum(map(len, turns))

    check_alike(wire, closed(turns), [end - 5, end])


@on_every(wires())
def test_an_error_renders_alike(wire: Wire) -> None:
    calls = [call_message("a", {}), call_message("b", {}), call_message("c", {})]
    results = [error_result("a", "no"), error_result("b", "no"), result_message("c", 18)]
    turns = closed(opened([[calls[0], results[0]], [message_by("llm", "So.")], [*calls[1:], *results[1:]]]))

    check_alike(wire, turns, ends(turns))
