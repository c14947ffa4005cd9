"""The kit's histories, with the vendors in them: their origins, blocks of their own, their forms of state."""

from typing import Any

from hypothesis import strategies as st
from sabir.vocabulary.messages import Origin
from sabir.vocabulary.parts import Citation, OpaquePart, Part, ReasoningPart, TextPart
from sabir_testing.histories.random_histories import PIXEL, Speakers, histories_of, messages_of, texts

ORIGINS = (
    None,
    Origin(provider="toy", dialect="toy.inline", model="m-1", response_id="r1"),
    Origin(provider="toy", dialect="toy.hoisted", model="m-2"),
    Origin(provider="toy", dialect="toy.parted", model="m-1"),
    Origin(provider="openai", dialect="openai.chat", endpoint="https://api.openai.com/v1", model="gpt-5"),
    Origin(provider="openai", dialect="openai.responses", endpoint="https://api.openai.com/v1", model="gpt-5"),
    Origin(
        provider="anthropic",
        dialect="anthropic.messages",
        endpoint="https://api.anthropic.com",
        model="claude-sonnet-4-5",
    ),
    Origin(
        provider="google",
        dialect="google.generate_content",
        endpoint="https://generativelanguage.googleapis.com",
        model="gemini-3-flash-preview",
    ),
    Origin(provider="other", dialect="other.wire", model="x"),
)
URLS = ("https://example.org/a.png", PIXEL, "data:audio/wav;base64,UklGRg==", "provider-file:openai/file-1")


def own_block(dialect: str, pair: str | None, pair_id: str | None) -> dict[str, Any]:
    """A block of a vendor's own that its wire takes: one that opens or closes a pair, or one by itself."""
    if dialect == "anthropic.messages":
        error = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        asked = {"type": "server_tool_use", "id": pair_id, "name": "web_search", "input": {}}
        answered = {"type": "web_search_tool_result", "tool_use_id": pair_id, "content": error}
        return {None: {"type": "container_upload", "file_id": "f"}, "opens": asked, "closes": answered}[pair]
    if dialect == "google.generate_content":
        code = {"executableCode": {"language": "PYTHON", "code": "1"}}
        output = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
        return output if pair == "closes" else code
    if dialect == "openai.chat":  # endpoints that take blocks back take them among the content
        return {"type": "text", "text": f"own {pair} {pair_id}"}
    search = {"type": "search", "query": "q"}
    return {
        None: {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": search},
        "opens": {"type": "custom_tool_call", "call_id": pair_id, "name": "own", "input": "x"},
        "closes": {"type": "custom_tool_call_output", "call_id": pair_id, "output": "y"},
    }[pair]


STATES = (
    None,
    {"type": "reasoning", "id": "rs_1"},
    {"type": "thinking", "signature": "c2ln"},
    {"part": {"thoughtSignature": "c2ln"}},
)
"""What makers want back with reasoning; each reads its own."""


def own_parts(dialect: str) -> list[Part]:
    """What a maker of that dialect may have said that is its own: blocks, and halves of two pairs."""
    halves = [(None, None), *((pair, pair_id) for pair in ("opens", "closes") for pair_id in ("p1", "p2"))]
    return [
        OpaquePart(dialect=dialect, block=own_block(dialect, pair, pair_id), pair=pair, pair_id=pair_id)
        for pair, pair_id in halves
    ]


bound: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, text=texts, citations=st.just((Citation(kind="url_citation", url="https://example.org"),))),
    st.builds(ReasoningPart, text=texts, state=st.sampled_from(STATES)),
    st.just(ReasoningPart(state={"type": "redacted_thinking", "data": "ZGF0YQ=="})),
    st.sampled_from([part for origin in ORIGINS if origin for part in own_parts(origin.dialect)]),
)
"""Whoever says it, it may be anybody's: a dialect takes no state that is not its own."""
SPEAKERS = Speakers(ORIGINS, lambda origin: bound, URLS, ids=("a", "b", "call_c|fc_c", "ü"))
messages = messages_of(SPEAKERS)
histories = histories_of(SPEAKERS)
