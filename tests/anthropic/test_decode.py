"""What a Messages response becomes, block by block."""

import json
from typing import Any

import pytest
from sabir.contract.scope import DecodeScope
from sabir.vocabulary.parts import Citation, OpaquePart, ReasoningPart, TextPart
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.target import Target
from sabir_anthropic.dialect import MESSAGES

SCOPE = DecodeScope(
    target=Target(provider="anthropic", dialect="anthropic.messages", model="claude-opus-5-5"),
    option_names={"my_weather": "my weather"},
)
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "my_weather", "input": {"city": "Rome"}}
SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def message(*content: Any, **fields: Any) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_sequence": None}
    return {**head, "stop_reason": "end_turn", "usage": {}, **fields, "content": list(content)}


def decode(*content: Any, **fields: Any) -> Reply:
    return MESSAGES.decode(json.dumps(message(*content, **fields)).encode(), SCOPE)


def part(block: Any) -> Any:
    (found,) = decode(block).messages
    return found.parts[0]


def test_a_text_is_a_text_with_nothing_beside_it() -> None:
    """Its form needs no state: any text goes back as such a block."""
    assert part({"type": "text", "text": "Hello."}) == TextPart(text="Hello.")


def test_what_stands_beside_a_text_is_its_state() -> None:
    """Law 3: fields of a later version of the API go back with it."""
    assert part({"type": "text", "text": "Hello.", "new": 1}) == TextPart(text="Hello.", state={"new": 1})


def test_a_text_without_characters_is_left_out() -> None:
    """The vendor refuses it on the way back."""
    assert decode({"type": "text", "text": ""}).messages == ()


def test_citations_keep_the_vendors_own_form() -> None:
    """Offsets are those of a document, not of the text: they stay in the source."""
    source = {
        "type": "char_location", "cited_text": "clear", "document_index": 0, "document_title": "Sky",
        "start_char_index": 3, "end_char_index": 8, "file_id": "file_1",
    }  # fmt: skip
    found = part({"type": "text", "text": "It is.", "citations": [source]})

    expected = Citation(kind="char_location", title="Sky", cited_text="clear", file_id="file_1", source=source)
    assert found.citations == (expected,)


def test_thinking_is_reasoning_with_its_signature() -> None:
    """All but the text is the state; hidden thinking has a signature and no text."""
    assert part(THINKING) == ReasoningPart(text="Hm.", state={"type": "thinking", "signature": "sig"})
    hidden = {**THINKING, "thinking": ""}
    assert part(hidden) == ReasoningPart(text="", state={"type": "thinking", "signature": "sig"})


def test_redacted_thinking_is_reasoning_without_text() -> None:
    """Its data is the state."""
    block = {"type": "redacted_thinking", "data": "secret"}

    assert part(block) == ReasoningPart(text="", state=block)


def test_a_tool_use_is_an_option_call_under_the_options_name() -> None:
    """The input is an object on this wire: there is no raw text."""
    (call,) = decode(USE, stop_reason="tool_use").option_calls

    assert call.call is not None
    assert (call.call.invocation_id, call.call.option_name) == ("toolu_1", "my weather")
    assert (call.call.arguments, call.call.raw_arguments, call.call.state) == ({"city": "Rome"}, None, None)


def test_who_made_a_call_is_its_state() -> None:
    """Programmatic calls name the server's call that they were made from."""
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    (call,) = decode({**USE, "caller": caller}).option_calls

    assert call.call is not None
    assert call.call.state == {"caller": caller}


def test_a_call_of_the_vendors_server_and_its_result_are_a_pair() -> None:
    """By their id, whatever the result's own type is."""
    opens, closes = decode(SERVER, FOUND).messages[0].parts

    assert opens == OpaquePart(dialect=MESSAGES.name, block=SERVER, pair_id="srvtoolu_1", pair="opens")
    assert closes == OpaquePart(dialect=MESSAGES.name, block=FOUND, pair_id="srvtoolu_1", pair="closes")
    mcp = part({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "input": {}, "server_name": "s"})
    assert (mcp.pair, mcp.pair_id) == ("opens", "mcptoolu_1")


@pytest.mark.parametrize(
    "block", [{"type": "container_upload", "file_id": "file_1"}, {"type": "of 2030", "x": [1]}, {"no": "type"}, "?", 7]
)
def test_a_block_of_an_unknown_kind_is_kept_verbatim(block: Any) -> None:
    """Law 10 and law 3: nothing of it is known but that it goes back."""
    assert part(block) == OpaquePart(dialect=MESSAGES.name, block=block)


def test_the_order_of_blocks_is_the_order_of_messages() -> None:
    """Neighbouring parts are one message, each call one of its own."""
    kinds = [found.kind for found in decode(THINKING, {"type": "text", "text": "So."}, USE, USE).messages]

    assert kinds == ["parts", "option_call", "option_call"]


def test_input_tokens_are_all_of_the_input() -> None:
    """The vendor counts apart what was read from a cache and written to it; thinking is within the output."""
    usage = {
        "input_tokens": 5, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 11, "output_tokens": 13,
        "output_tokens_details": {"thinking_tokens": 3},
    }  # fmt: skip
    found = decode(usage=usage).usage

    assert (found.input_tokens, found.output_tokens, found.reasoning_tokens) == (23, 13, 3)
    assert (found.cache_read_tokens, found.cache_write_tokens, found.details) == (11, 7, usage)


def test_what_has_no_neutral_place_is_in_the_details() -> None:
    """Law 2 for decoding; fields without a value say nothing."""
    details = {"stop_details": {"type": "refusal", "category": "bio"}, "container": {"id": "c"}}

    assert decode(**details, diagnostics=None).details == details
    assert decode().details is None


def test_thinking_that_the_server_removed_is_a_loss() -> None:
    """The request was changed after it was sent: the reply says so."""
    change = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    (loss,) = decode(input_transformations=[change, {"type": "of 2030"}]).losses

    expected = ("dropped", "messages.1.content.0", "the server removed it (prefix_binding_mismatch)")
    assert (loss.kind, loss.path, loss.reason) == expected


def test_the_origin_is_the_name_that_was_asked_for() -> None:
    """And the name that answered, where it is another."""
    origin = decode(model="claude-opus-5-5-20260922").origin

    assert (origin.model, origin.reported_model, origin.response_id) == (
        "claude-opus-5-5", "claude-opus-5-5-20260922", "msg_1",
    )  # fmt: skip


def test_an_input_that_is_no_object_makes_the_call_invalid() -> None:
    """It is kept as it came, and answered with an error."""
    (call,) = decode({**USE, "input": [1]}).option_calls

    assert call.call is not None
    assert call.call.invalid_arguments
    assert call.call.raw_arguments == "[1]"
