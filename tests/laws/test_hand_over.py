"""Law 9: a conversation that one provider answered goes on with every other; what changed is in the losses."""

import json
from typing import Any

import pytest
import sabir
from hypothesis import given
from hypothesis import strategies as st
from sabir.contract.dialect import Rendering
from sabir.contract.scope import DecodeScope
from sabir.discovery import default_registry
from sabir.errors import RenderingRefused
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message
from sabir.vocabulary.models import find_model
from sabir.vocabulary.parts import OpaquePart, ReasoningPart
from sabir_testing.kit.request_contents import missing_states

from tests.laws.every import on_every
from tests.laws.oracle import check_request, validators
from tests.laws.replies import BODIES, ELSEWHERE, MODELS, SEALED, conversations, decoded, said, target_of
from tests.laws.rules import check_pairing

NAMES = tuple(BODIES)
EVERYWHERE = [(name, endpoint) for name in NAMES for endpoint in (None, ELSEWHERE)]
names = pytest.mark.parametrize("name", NAMES)


def renderer(name: str) -> Renderer:
    target = target_of(name)
    info = find_model(default_registry.models(target.provider), MODELS[name])
    return Renderer(sabir.dialect(name).dialect, target, model_info=info)


def render(name: str, history: list[Message]) -> Rendering | None:
    try:
        return renderer(name).render(history)
    except RenderingRefused:
        return None


def check(name: str, rendering: Rendering | None) -> None:
    if rendering is not None:
        check_pairing(name, rendering.body_bytes)
        if name in validators():
            check_request(name, rendering.body_bytes)


def test_every_dialect_with_an_oracle_takes_part() -> None:
    """A dialect that is forgotten here is handed over to by nobody."""
    assert set(NAMES) == set(validators()) == set(MODELS)


@pytest.mark.parametrize("name", NAMES)
def test_the_answers_hold_what_binds_them(name: str) -> None:
    """Without a seal, a call and a text in them, the laws below would hold of nothing."""
    messages = [message for reply in decoded(name) for message in reply]
    bound = [each for each in messages if SEALED in each.model_dump_json()]

    assert any(message.call for message in messages)
    assert any(message.text for message in messages)
    assert bound or name == "openai.chat"


@pytest.mark.parametrize("source", NAMES)
@given(data=st.data())
def test_a_conversation_is_handed_over_to_every_other_dialect(source: str, data: st.DataObject) -> None:
    """The other's request is valid, holds nothing sealed, and every message is in it or in the losses."""
    history = data.draw(conversations((source, None)))
    for name in NAMES:
        if name != source:
            check_hand_over(name, history)


def check_hand_over(name: str, history: list[Message]) -> None:
    rendering = render(name, [*history, said("user", "Go on.")])
    assert rendering is not None
    check(name, rendering)
    body = json.dumps(json.loads(rendering.body_bytes), ensure_ascii=False)
    lost = {loss.message_id for loss in rendering.losses}

    assert SEALED not in body, f"something sealed reached {name}"
    for message in history:
        bound = SEALED in message.model_dump_json()
        assert message.id in lost or not bound, f"silent at {name}: {message!r}"
        assert message.id in lost or message.text in body, f"silent at {name}: {message!r}"
    assert missing_states(history, rendering.body_bytes, rendering.losses) == []


@names
@given(data=st.data())
def test_another_endpoint_of_the_same_wire_is_another_maker(name: str, data: st.DataObject) -> None:
    """What is signed or bound to a server goes back only to the endpoint that made it."""
    history = data.draw(conversations((name, ELSEWHERE)))
    rendering = render(name, [*history, said("user", "Go on.")])
    check(name, rendering)

    assert rendering is not None
    assert SEALED not in rendering.body_bytes.decode()


@given(history=conversations(*EVERYWHERE))
@on_every(NAMES)
def test_a_conversation_of_many_providers_goes_to_each_of_them(name: str, history: list[Message]) -> None:
    """Changed in mid-conversation, there and back: valid at every step, and a kept prefix is a fresh one (law 5)."""
    made = renderer(name)
    for end in range(1, len(history) + 1):
        try:
            rendering = made.render(history[:end])
        except RenderingRefused:
            continue
        check(name, rendering)
    fresh = render(name, history)
    assert fresh is None or made.render(history).body_bytes == fresh.body_bytes


@names
def test_what_is_sealed_goes_home(name: str) -> None:
    """Law 3: back at the maker, after others spoke, every seal is in the request again, in its order."""
    for reply in decoded(name):
        sealed = [message for message in reply if SEALED in message.model_dump_json()]
        if not sealed or any(message.call for message in reply):
            continue
        others = [message for other in NAMES if other != name for message in decoded(other)[0]]
        home = [said("user", "?"), *reply]
        alone, after = (render(name, [*home, *more, said("user", "!")]) for more in ([], [said("user", "x"), *others]))

        assert alone is not None
        assert after is not None
        assert _seals(alone) == _seals(after)


def _seals(rendering: Rendering) -> list[str]:
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str) and SEALED in value:
            found.append(value)
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(each)

    walk(json.loads(rendering.body_bytes))
    return found


SEARCH = {"type": "server_tool_use", "id": "p1", "name": "web_search", "input": {}}
ENDS_IN_WHITE = said("llm", "a ", ReasoningPart(state={"type": "reasoning", "id": "rs_1"}), "")
ONCE_REFUSED = {
    "white": ENDS_IN_WHITE.model_copy(update={"origin": DecodeScope(target_of("anthropic.messages")).origin()}),
    "half": said("user", OpaquePart(dialect="anthropic.messages", block=SEARCH, pair_id="p1", pair="opens")),
}


@names
@pytest.mark.parametrize("message", ONCE_REFUSED.values(), ids=ONCE_REFUSED)
def test_what_was_once_refused_renders_to_what_the_vendor_accepts(name: str, message: Message) -> None:
    """Law 1, and the strict oracle of the SDK's own types; histories at random are the kit's (tests/conformance)."""
    check(name, render(name, [message]))
