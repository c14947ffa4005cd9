"""Recorded calls of vendors' own tools: typed parts, back to their maker as they came, and text to everybody else."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import sabir
from sabir.vocabulary.native import NativeCallPart, NativeResultPart

from tests.rules import check_each
from tests.vendor import anthropic_support, google_support, responses_support
from tests.vendor.gateway_support import recorded
from tests.vendor.support import Exchange, Wire, said, sent_back, tagged

REMEDY = "mend what decodes or renders it"
MODULES = (anthropic_support, responses_support, google_support)
WIRES = [module.WIRE for module in MODULES]
TYPED = {
    "anthropic.messages": frozenset({
        "advisor_tool_result", "bash_code_execution_tool_result", "code_execution_tool_result", "mcp_tool_result",
        "mcp_tool_use", "server_tool_use", "text_editor_code_execution_tool_result", "web_fetch_tool_result",
        "web_search_tool_result",
    }),
    "openai.responses": frozenset({"code_interpreter_call", "file_search_call", "mcp_call", "web_search_call"}),
    "google.generate_content": frozenset({"codeExecutionResult", "executableCode", "toolCall", "toolResponse"}),
}  # fmt: skip
"""Dialect → the types of blocks that become native parts."""
LEAST = {"anthropic.messages": 150, "openai.responses": 30, "google.generate_content": 30}
"""Dialect → how many recorded blocks there are at least."""
OTHERS = {name: [each for each in TYPED if each != name] + ["openai.chat"] for name in TYPED}
MODELS = {
    "anthropic.messages": "claude-sonnet-5", "google.generate_content": "gemini-3-flash",
    "openai.chat": "gpt-4o", "openai.responses": "gpt-5.4",
}  # fmt: skip
each_wire = pytest.mark.parametrize("wire", WIRES, ids=str)


def blocks_of(body: dict[str, Any]) -> list[Any]:
    """The blocks of an answer of any wire."""
    candidates = [(each.get("content") or {}).get("parts") or [] for each in body.get("candidates") or ()]
    blocks: list[Any] = body.get("content") or body.get("output") or (candidates[0] if candidates else [])
    return blocks


def native_blocks(wire: Wire, body: dict[str, Any]) -> list[Any]:
    """The blocks of the vendor's own tools, but for the search of tools, which only loads declarations."""
    typed = TYPED[wire.dialect.name]
    blocks = [each for each in blocks_of(body) if isinstance(each, dict) and {each.get("type"), *each} & typed]
    return [each for each in blocks if not str(each.get("name")).startswith("tool_search")]


def natives(reply: sabir.Reply) -> list[NativeCallPart | NativeResultPart]:
    return [part for part in said(reply) if isinstance(part, NativeCallPart | NativeResultPart)]


def untyped(wire: Wire, exchange: Exchange) -> Iterator[str]:
    """What stays opaque, or is not what came."""
    body, reply = wire.read(exchange)
    blocks, parts = native_blocks(wire, body), natives(reply)
    if [part.raw for part in parts if part.raw is not None] != blocks:
        yield f"{len(blocks)} blocks became {parts}"
    for part in parts:
        is_call = isinstance(part, NativeCallPart)
        says = (part.queries, part.url, part.code, part.arguments_json) if is_call else ()
        if is_call and not any(says) and part.raw and part.raw.get("status") == "completed":
            yield f"{part} says nothing"


@each_wire
def test_a_call_of_a_vendors_tool_is_typed(wire: Wire) -> None:
    check_each(wire.answered, tagged(partial(untyped, wire)), REMEDY)

    count = sum(len(native_blocks(wire, wire.read(exchange)[0])) for exchange in wire.answered)
    assert count >= LEAST[wire.dialect.name], count


def changed_on_the_way_home(wire: Wire, exchange: Exchange) -> Iterator[str]:
    """What does not go back to its maker as it came. What has lost its other half is a loss."""
    body, reply = wire.read(exchange)
    blocks = native_blocks(wire, body)
    if not blocks:
        return
    rendering = sent_back(wire.dialect, reply)
    halves = sum("one of them is missing" in loss.reason for loss in rendering.losses)
    sent = json.dumps(rendering.body)
    gone = [each for each in blocks if json.dumps(without_null_status(each)) not in sent]
    if len(gone) > halves:
        yield f"{len(gone)} of {len(blocks)} blocks, {halves} lost: {gone[0]!r:.300}"


def without_null_status(block: dict[str, Any]) -> dict[str, Any]:
    """Responses refuses a null status in requests."""
    return {name: value for name, value in block.items() if name != "status" or value is not None}


@each_wire
def test_a_vendors_block_goes_back_as_it_came(wire: Wire) -> None:
    check_each(wire.answered, tagged(partial(changed_on_the_way_home, wire)), REMEDY)


def unsaid(wire: Wire, exchange: Exchange) -> Iterator[str]:
    """What another dialect does not get as text, or gets as the vendor's block."""
    _, reply = wire.read(exchange)
    parts = natives(reply)
    for name in OTHERS[wire.dialect.name] if parts else ():
        rendering = sabir.dialect(name).render(
            [sabir.user("?"), *reply.messages, sabir.user("So?")], model=MODELS[name]
        )
        sent = json.dumps(rendering.body, ensure_ascii=False)
        for part in parts:
            if json.dumps(part.as_text, ensure_ascii=False)[1:-1] not in sent:
                yield f"{name} does not get {part.as_text!r:.200}"
        told = Counter(loss.kind for loss in rendering.losses)
        if told["downgraded"] < len(parts):
            yield f"{name}: {len(parts)} native parts, and the losses {dict(told)}"
        if (secret := next((text for text in encrypted(parts) if text in sent), "")) and secret:
            yield f"{name} gets {secret:.80}"


def encrypted(parts: list[NativeCallPart | NativeResultPart]) -> Iterator[str]:
    """The encrypted contents of search results, which only their maker reads."""
    for part in parts:
        content = part.raw.get("content") if isinstance(part.raw, dict) else None
        for each in content if isinstance(content, list) else ():
            yield from filter(None, (each.get(name) for name in ("encrypted_content", "encrypted_stdout")))


@each_wire
def test_another_vendor_reads_a_call_as_text(wire: Wire) -> None:
    check_each(wire.answered, tagged(partial(unsaid, wire)), REMEDY)


def test_what_only_metadata_reports_is_a_call_and_its_sources() -> None:
    """Older models of Google report a search beside the answer; a call in the answer gets the sources."""
    wire = google_support.WIRE
    searched = 0
    for exchange in wire.answered:
        body, reply = wire.read(exchange)
        grounding = (body.get("candidates") or [{}])[0].get("groundingMetadata") or {}
        if not grounding.get("webSearchQueries") or not any(grounding.get("groundingChunks") or ()):
            continue
        calls = [part for part in natives(reply) if isinstance(part, NativeCallPart) and part.tool == "web_search"]
        sources = [part.sources for part in natives(reply) if isinstance(part, NativeResultPart)]
        assert calls and any(sources), exchange
        searched += 1
    assert searched >= 16


def test_what_groq_executed_is_a_call_with_its_sources() -> None:
    executed = [each for each in recorded("openai.chat") if "executed_tools" in json.dumps(each.response)]
    for exchange in executed:
        reply = sabir.dialect("openai.chat").decode(exchange.body)
        calls = [part for part in natives(reply) if isinstance(part, NativeCallPart)]
        results = [part for part in natives(reply) if isinstance(part, NativeResultPart)]
        assert calls[0].query and results[0].sources and said(reply)[0] is calls[0]
    assert len(executed) == 2
