"""Vendor hints of documents and options: on the wire, elsewhere, and read back."""

import json
from typing import Any

import sabir
from sabir.contract.dialect import Rendering
from sabir.options.option import Option
from sabir.vocabulary.messages import Message
from sabir.vocabulary.settings import Settings

PDF = "data:application/pdf;base64,JVBERi0xLjQ="


NAME = "anthropic.messages"
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


def test_a_breakpoint_stands_beside_the_hints_of_the_document_that_it_marks() -> None:
    """The marker is the block's, not of what is within it."""
    shown = sabir.document(PDF, vendor={"anthropic": {"citations": {"enabled": True}}})
    rendering = render(sabir.user(shown), vendor={"anthropic": {"cache_breakpoints": ["end"]}})
    [block] = json.loads(rendering.body_bytes)["messages"][0]["content"]

    assert (block["citations"], block["cache_control"]) == ({"enabled": True}, {"type": "ephemeral"})


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
