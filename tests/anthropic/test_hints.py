"""Vendor hints of documents and options: on the wire, elsewhere, and read back."""

import json
from typing import Any

import pytest
import sabir
from hypothesis import given, settings
from hypothesis import strategies as st
from sabir.contract.protocols import Rendering
from sabir.errors import SettingsInvalid
from sabir.options.option import Option
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart
from sabir.vocabulary.settings import Settings

from tests.anthropic.test_encode import PDF, answer, call
from tests.laws.histories import PIXEL
from tests.laws.oracle import check_request

NAME = "anthropic.messages"
CITED = {"citations": {"enabled": True}, "context": "A draft."}
OFFERED: dict[str, Any] = {
    "allowed_callers": ["direct", "code_execution_20260521"],
    "defer_loading": True,
    "eager_input_streaming": False,
    "input_examples": [{"city": "Oslo"}],
    "strict": True,
}
SOURCE = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
DECLARED = {"name": "weather", "description": "Weather.", "input_schema": SCHEMA}
ASKED = sabir.user("Umbrella?")


def weather(vendor: Any) -> Option:
    return Option.from_schema("weather", "Weather.", SCHEMA, vendor=vendor)


def render(*messages: Message, options: Any = (), name: str = NAME, **fields: Any) -> Rendering:
    given = Settings(max_output_tokens=1024, **fields)
    return sabir.dialect(name).render(messages, model="claude-opus-5-5", options=options, settings=given)


def lost(rendering: Rendering) -> list[tuple[str, str]]:
    return [(loss.kind, loss.path) for loss in rendering.losses]


@pytest.mark.parametrize("place", ["user", "results"])
@pytest.mark.parametrize(
    ("vendor", "taken", "losses"),
    [
        ({"anthropic": CITED}, CITED, []),
        ({"*": {**CITED, "detail": "low"}}, CITED, ["parts[0].vendor.*.detail"]),
        ({"*": {"context": "Old.", "citations": {"enabled": True}}, "anthropic": {"context": "A draft."}}, CITED, []),
        ({"openai": {"detail": "low"}}, {}, ["parts[0].vendor"]),
        ({"openai": {"detail": "low"}, "anthropic": {}}, {}, []),
    ],
)
def test_a_document_is_sent_with_its_hints(place: str, vendor: Any, taken: dict[str, Any], losses: list[str]) -> None:
    """Said by the user or within a result; what is not taken is a loss."""
    shown = sabir.document(PDF, vendor=vendor)
    rendering = render(sabir.user(shown)) if place == "user" else render(ASKED, call(), answer(parts=(shown,)))
    [block] = json.loads(rendering.body_bytes)["messages"][-1]["content"]

    check_request(NAME, rendering.body_bytes)
    assert (block if place == "user" else block["content"][0]) == {"type": "document", "source": SOURCE, **taken}
    assert lost(rendering) == [("dropped", path) for path in losses]


def test_a_breakpoint_stands_beside_the_hints_of_the_document_that_it_marks() -> None:
    """The marker is the block's, not of what is within it."""
    shown = sabir.document(PDF, vendor={"anthropic": {"citations": {"enabled": True}}})
    rendering = render(sabir.user(shown), vendor={"anthropic": {"cache_breakpoints": ["end"]}})
    [block] = json.loads(rendering.body_bytes)["messages"][0]["content"]

    assert (block["citations"], block["cache_control"]) == ({"enabled": True}, {"type": "ephemeral"})


def test_an_image_takes_no_hints() -> None:
    """The wire has nothing to say of one but its marker, which is a setting's."""
    rendering = render(sabir.user(sabir.image(PIXEL, vendor={"anthropic": {"cache_control": {"type": "ephemeral"}}})))

    assert lost(rendering) == [("dropped", "parts[0].vendor.anthropic")]


@pytest.mark.parametrize(
    ("vendor", "taken", "losses"),
    [
        ({"anthropic": OFFERED}, OFFERED, []),
        ({"*": {"strict": True, "behavior": "BLOCKING"}}, {"strict": True}, ["options[0].vendor.*.behavior"]),
        ({"*": {"defer_loading": True}, "anthropic": {"defer_loading": False}}, {"defer_loading": False}, []),
        ({"google": {"behavior": "BLOCKING"}}, {}, ["options[0].vendor"]),
    ],
)
def test_an_option_is_declared_with_its_hints(vendor: Any, taken: dict[str, Any], losses: list[str]) -> None:
    """All that the SDK's own type of a declaration has."""
    rendering = render(ASKED, options=[weather(vendor)])

    check_request(NAME, rendering.body_bytes)
    assert json.loads(rendering.body_bytes)["tools"] == [{**DECLARED, **taken}]
    assert lost(rendering) == [("dropped", path) for path in losses]
    assert "anthropic-beta" not in rendering.headers


@pytest.mark.parametrize("hints", [{"citations": {"enabled": "yes"}}, {"citations": {"on": True}}, {"title": "t"}])
def test_a_wrong_hint_of_a_document_is_refused(hints: dict[str, Any]) -> None:
    """By its place, with the fields that there are."""
    with pytest.raises(SettingsInvalid, match=r"parts\[0\] of message .* \(document\).*; it has citations, context$"):
        render(sabir.user(sabir.document(PDF, vendor={"anthropic": hints})))


@pytest.mark.parametrize("hints", [{"strict": 1}, {"allowed_callers": "direct"}, {"cache_control": {}}])
def test_a_wrong_hint_of_an_option_is_refused(hints: dict[str, Any]) -> None:
    """A marker is a setting's."""
    known = ", ".join(sorted(OFFERED))
    with pytest.raises(SettingsInvalid, match=rf"options\[0\], 'weather', .* \(option\).*; it has {known}$"):
        render(ASKED, options=[weather({"anthropic": hints})])


FEW = settings().max_examples // 4
some: Any = st.fixed_dictionaries
documents = some({}, optional={"citations": some({}, optional={"enabled": st.booleans()}), "context": st.text()})
declarations = some(
    {},
    optional={
        "allowed_callers": st.lists(st.sampled_from(["direct", "code_execution_20260521"])),
        "input_examples": st.lists(st.just({"city": "Oslo"}), max_size=2),
        **dict.fromkeys(("defer_loading", "eager_input_streaming", "strict"), st.booleans()),
    },
)


@settings(max_examples=FEW)
@given(documents, documents, declarations)
def test_hints_are_read_back_as_they_were_sent(said: Any, shown: Any, offered: Any) -> None:
    """And what was read is sent again as it was."""
    media = [sabir.document(PDF, vendor={"anthropic": hints}) for hints in (said, shown)]
    options = [weather({"anthropic": offered})]
    sent = render(sabir.user(media[0]), call(), answer(parts=(media[1],)), options=options).body_bytes
    history = sabir.dialect(NAME).decode_history(sent)
    read = [part for message in history.messages for part in message.parts if isinstance(part, MediaPart)]

    found = [each.vendor.get("anthropic", {}) for each in (*read, *history.options)]
    assert (found, history.losses) == ([said, shown, offered], ())
    assert render(*history.messages, options=history.options).body_bytes == sent


def test_a_deferred_declaration_is_told_of_where_it_cannot_be_deferred() -> None:
    """Another vendor's model may choose it at once, which is a loss; at home it is what it was."""
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    tools = [{**DECLARED, "defer_loading": True, "cache_control": None}, search]
    history = sabir.dialect(NAME).decode_history({"messages": [{"role": "user", "content": "?"}], "tools": tools})
    elsewhere = render(*history.messages, options=history.options, name="google.generate_content")
    home = render(*history.messages, options=history.options, vendor=history.settings.vendor)

    assert json.loads(home.body_bytes)["tools"] == [{**DECLARED, "defer_loading": True}, search]
    assert lost(elsewhere) == [("dropped", "options[0].vendor")]


def test_the_marker_of_the_last_declaration_that_is_not_deferred_is_a_breakpoint() -> None:
    """Rendering put it there."""
    options = (weather(None), Option.from_schema("atlas", "", SCHEMA, vendor={"anthropic": {"defer_loading": True}}))
    vendor = {"anthropic": {"cache_breakpoints": ["options"]}}
    history = sabir.dialect(NAME).decode_history(render(ASKED, options=options, vendor=vendor).body_bytes)

    assert (history.options, history.losses) == (options, ())
    assert history.settings.vendor == vendor
