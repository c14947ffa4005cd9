"""The laws for every installed dialect: what holds for the toy wires holds on the real ones."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import sabir
from hypothesis import example, given
from hypothesis import strategies as st
from sabir.base.losses import Loss
from sabir.base.values import FrozenDict
from sabir.contract.protocols import Rendering
from sabir.contract.scope import LossLog, RequestScope
from sabir.errors import RenderingRefused, SettingsInvalid
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, Origin, PartsPayload
from sabir.vocabulary.parts import OpaquePart, ReasoningPart, TextPart
from sabir.vocabulary.settings import WIRE_SETTINGS, Settings, SettingsReader
from sabir_testing.histories.marks import mark, unheard
from sabir_testing.histories.marks import messages as unmarked
from sabir_testing.kit.properties import impurities

from tests.laws.every import on_every
from tests.laws.histories import histories, messages
from tests.laws.oracle import check_request, validators
from tests.laws.rules import check_pairing

MODELS = {
    "openai.chat": "gpt-5",
    "openai.responses": "gpt-5",
    "anthropic.messages": "claude-sonnet-4-5",
    "google.generate_content": "gemini-3-flash-preview",
    "echo.plain": "small",
}
DIALECTS = tuple(MODELS)
dialects = pytest.mark.parametrize("name", DIALECTS)
USER = {"kind": "parts", "parts": [{"kind": "text", "text": "§"}]}


@cache
def pure(name: str) -> sabir.PureDialect:
    return sabir.dialect(name)


def renderer(name: str) -> Renderer:
    target = pure(name).target.model_copy(update={"model": MODELS[name]})
    return Renderer(pure(name).dialect, target)


def render(name: str, history: Sequence[Message], kept: Renderer | None = None) -> Rendering | None:
    try:
        return (kept or renderer(name)).render(history)
    except RenderingRefused:
        return None


def items(name: str, rendering: Rendering | None) -> list[Any]:
    return [] if rendering is None else json.loads(rendering.body_bytes)[pure(name).dialect.messages_field]


CLAUDE = Origin(
    provider="anthropic", dialect="anthropic.messages", endpoint="https://api.anthropic.com", model="claude-sonnet-4-5"
)
SEARCH = {"type": "server_tool_use", "id": "p1", "name": "web_search", "input": {}}
ENDS_IN_WHITE = (TextPart(text="a "), ReasoningPart(state={"type": "reasoning", "id": "rs_1"}), TextPart(text=""))
OF_THE_USER = (OpaquePart(dialect="anthropic.messages", block=SEARCH, pair_id="p1", pair="opens"),)


@given(history=histories)
@example(history=[Message(policy="llm", origin=CLAUDE, payload=PartsPayload(parts=ENDS_IN_WHITE))])
@example(history=[Message(policy="user", payload=PartsPayload(parts=OF_THE_USER))])
@on_every(DIALECTS)
def test_every_history_renders_to_what_the_vendor_accepts(name: str, history: list[Message]) -> None:
    """Law 1, and the strict oracle of the SDK's own types (PJ-54, UP-14, UP-15)."""
    rendering = render(name, history)
    if rendering is None:
        return
    check_pairing(name, rendering.body_bytes)
    if name in validators():
        check_request(name, rendering.body_bytes)


@given(history=histories)
@on_every(DIALECTS)
def test_every_text_is_in_the_body_or_its_message_in_the_losses(name: str, history: list[Message]) -> None:
    """Law 2, read off marks in every text, argument, result and error (UP-08, UP-09)."""
    marked = mark(history)
    losses: Sequence[Loss]
    try:
        rendering = renderer(name).render(unmarked(marked))
        body, losses = rendering.body_bytes, rendering.losses
    except RenderingRefused as refused:
        body, losses = b"", refused.losses

    assert unheard(marked, body, losses) == []


@given(history=histories, more=histories)
@on_every(DIALECTS)
def test_appending_never_changes_a_closed_prefix(name: str, history: list[Message], more: list[Message]) -> None:
    """Law 4: what stands before a user's message that closes it is final."""
    opener = Message(policy="llm", payload={"kind": "parts", "parts": [{"kind": "text", "text": "so"}]})
    closer = Message(policy="user", payload=USER)
    before = [*history, opener]
    closed = items(name, render(name, [*before, closer]))[:-1]

    assert items(name, render(name, [*before, closer, *more]))[: len(closed)] == closed


@given(history=histories, more=histories)
@on_every(DIALECTS)
def test_a_users_turn_is_final_once_the_model_spoke(name: str, history: list[Message], more: list[Message]) -> None:
    """Law 4: the model's next message closes the turn before it, and late results change nothing there."""
    before = [*history, Message(policy="user", payload=USER)]
    opener = Message(policy="llm", payload={"kind": "parts", "parts": [{"kind": "text", "text": "so"}]})
    closed = items(name, render(name, [*before, opener]))[:-1]

    assert items(name, render(name, [*before, opener, *more]))[: len(closed)] == closed


Edit = tuple[str, list[Message], int]
EDITS: st.SearchStrategy[Edit] = st.tuples(
    st.sampled_from(["append", "append", "truncate", "edit"]),
    st.lists(messages, min_size=1, max_size=3),
    st.integers(0, 9),
)


def edited(conversation: list[Message], edit: Edit) -> list[Message]:
    """The conversation after one more change: appended to, cut short, or with another message in one place."""
    how, given, place = edit
    at = place % len(conversation)
    match how:
        case "append":
            return [*conversation, *given]
        case "truncate":
            return conversation[: at + 1]
        case _:
            return [*conversation[:at], given[0], *conversation[at + 1 :]]


@given(start=histories, edits=st.lists(EDITS, min_size=1, max_size=5))
@on_every(DIALECTS)
def test_a_kept_prefix_gives_the_bytes_of_a_fresh_rendering(name: str, start: list[Message], edits: list[Edit]) -> None:
    """Law 5, over appends, truncations and edits."""
    kept, conversation = renderer(name), start
    for edit in edits:
        conversation = edited(conversation, edit)
        incremental, fresh = render(name, conversation, kept), render(name, conversation)
        assert (incremental and incremental.body_bytes) == (fresh and fresh.body_bytes)
        assert (incremental and incremental.losses) == (fresh and fresh.losses)


@given(history=histories)
@on_every(DIALECTS)
def test_rendering_is_pure(name: str, history: list[Message]) -> None:
    """Law 6: no clock, no randomness, no network, no disk; its messages stay as they were, its bytes repeat."""
    first, second = renderer(name), renderer(name)
    before = [message.model_dump_json() for message in history]
    with impurities() as seen:
        once, again = render(name, history, first), render(name, history, second)

    assert seen == []
    assert (once and once.body_bytes) == (again and again.body_bytes)
    assert [message.model_dump_json() for message in history] == before


@dialects
@pytest.mark.parametrize(
    "settings", [Settings(), Settings(temperature=0.1, seed=1, stop="x", top_p=0.5)], ids=["none", "some"]
)
def test_a_dialect_looks_at_every_wire_setting(name: str, settings: Settings) -> None:
    """A setting that no code of a dialect looked at is a failure of its tests, not silence."""
    reader = SettingsReader(settings)
    target = pure(name).target.model_copy(update={"model": MODELS[name]})
    pure(name).dialect.encode_request(
        RequestScope(target, reader, options=(), option_names={}, system=(), vendor=FrozenDict(), losses=LossLog())
    )

    assert reader.unread() == ()


SETTINGS = st.builds(
    Settings,
    max_output_tokens=st.sampled_from([None, 10]),
    temperature=st.sampled_from([None, 0.0, 1.0]),
    top_p=st.sampled_from([None, 0.5]),
    stop=st.sampled_from([None, "x", ("a", "b", "c", "d", "e")]),
    seed=st.sampled_from([None, 7]),
    reasoning_effort=st.sampled_from([None, "none", "low", "max"]),
    option_choice=st.sampled_from([None, "auto", "none", "required", "weather", "not offered"]),
    parallel_options=st.sampled_from([None, True, False]),
    response_format=st.sampled_from([None, {"title": "T", "type": "object", "properties": {"a": {"type": "string"}}}]),
)


@given(settings=SETTINGS, offered=st.booleans())
@on_every(DIALECTS)
def test_every_setting_is_in_the_body_or_in_the_losses(name: str, settings: Settings, offered: bool) -> None:
    """Law 2 for settings, and the vendor's types accept what is sent (UP-18)."""
    option = sabir.Option.from_schema("weather", "Weather.", {"type": "object", "properties": {}})
    named = settings.option_choice not in (None, "auto", "none", "required")
    if name in validators() and named and not (offered and settings.option_choice == "weather"):
        with pytest.raises(SettingsInvalid, match=f"{settings.option_choice}.*not offered"):
            renderer(name).render([Message(policy="user", payload=USER)], [option] if offered else [], settings)
        return
    rendering = renderer(name).render([Message(policy="user", payload=USER)], [option] if offered else [], settings)
    if name in validators():
        check_request(name, rendering.body_bytes)
    bare = renderer(name).render([Message(policy="user", payload=USER)], [option] if offered else [])
    lost = {loss.path for loss in rendering.losses}
    for setting in WIRE_SETTINGS:
        if getattr(settings, setting) is None or f"settings.{setting}" in lost:
            continue
        alone = Settings.model_validate({setting: getattr(settings, setting)})
        changed = renderer(name).render([Message(policy="user", payload=USER)], [option] if offered else [], alone)
        assert changed.body_bytes != bare.body_bytes, setting
