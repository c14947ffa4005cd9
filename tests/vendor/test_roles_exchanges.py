"""Every request that was stored goes through working copies and their JSON, and is the same messages after it.

request ──decode_history──▶ messages ──from_messages──▶ manager ──to_dict──▶ JSON ──from_dict──▶ manager ──▶ messages
"""

import json
from collections.abc import Iterator, Sequence

import pytest
import sabir
from sabir.vocabulary.messages import Message
from sabir_roles import AssistantResponse, Instruction, MessageManager, RoledMessage, System

from tests.vendor.support import WIRES, Exchange, exchanges_of

STORED = {dialect: [each for each in exchanges_of(dialect) if each.request] for dialect in WIRES}

TEXTS: dict[type[RoledMessage], str] = {
    System: "system_message",
    Instruction: "instruction",
    AssistantResponse: "assistant_response",
}
"""Kind of a working copy → where its content has the text."""


def faults(dialect: str, exchange: Exchange) -> Iterator[str]:
    history = list(sabir.dialect(dialect).decode_history(exchange.request or {}).messages)
    manager = MessageManager.from_messages(history)
    loaded = MessageManager.from_dict(json.loads(json.dumps(manager.to_dict())))
    here, again = manager.to_messages(), loaded.to_messages()
    if not same(here, history):
        yield f"{exchange.id}: the manager gives other objects than it was given"
    if again != history or sabir.dumps(again) != sabir.dumps(history):
        yield f"{exchange.id}: its JSON gives other messages"
    if manager.losses or loaded.losses:
        yield f"{exchange.id}: losses of what nobody edited: {manager.losses or loaded.losses}"


def same(found: list[Message], given: list[Message]) -> bool:
    return len(found) == len(given) and all(one is other for one, other in zip(found, given, strict=True))


@pytest.mark.parametrize("dialect", WIRES)
def test_every_stored_request_goes_through_a_manager_and_its_json(dialect: str) -> None:
    assert len(STORED[dialect]) > 400
    assert [fault for each in STORED[dialect] for fault in faults(dialect, each)] == []


def unshown(exchange: Exchange, history: Sequence[Message]) -> Iterator[str]:
    """What the content of the working copies does not hold, each beginning with the exchange."""
    manager = MessageManager.from_messages(history)
    for copy, message in zip(manager, history, strict=True):
        if message.call is not None:
            found: object = copy.content["action_request"]
            held: object = {"function": message.call.option_name, "arguments": dict(message.call.arguments)}
        elif message.result is not None:
            found = copy.content["action_response"]["function"]
            held = message.result.option_name
        else:
            images = [part.url for part in message.parts if part.kind == "media" and part.modality == "image"]
            found = copy.content.get(TEXTS[type(copy)]) or "", copy.content.get("images", [])
            held = message.text, images if isinstance(copy, Instruction) else []
        if found != held:
            yield f"{exchange.id}: {type(copy).__name__} holds {found!r:.80} in place of {held!r:.80}"
    last = {request.invocation_id: request for request in manager.action_requests}
    for response in manager.action_responses:
        if response.invocation_id in last and response.action_request_id is None:
            yield f"{exchange.id}: the response {response.invocation_id} has no request"


@pytest.mark.parametrize("dialect", WIRES)
def test_the_working_copies_hold_what_was_said_and_called(dialect: str) -> None:
    """A manager that kept messages past its working copies would be the identity too: here their content is read."""
    histories = [(each, sabir.dialect(dialect).decode_history(each.request or {}).messages) for each in STORED[dialect]]
    assert [fault for exchange, history in histories for fault in unshown(exchange, history)] == []
