"""What the kit cannot know of Cohere: shapes made up after its documents and the SDK's types, and its limits."""

import json
from collections.abc import Mapping
from typing import Any

import oracle
import pytest
import sabir
from sabir import Rendering, Reply, Settings
from sabir.errors import CallError, ContentFiltered, ContextTooLong, InvalidRequest, QuotaExceeded, RateLimited
from sabir_cohere.dialect import CHAT

LLM = sabir.adapter("cohere:command-a-plus-05-2026", api_key="test", base_url="https://cohere.invalid")
DOCUMENT = {
    "type": "document",
    "id": "doc:1",
    "document": {"id": "doc:1", "title": "Rains", "url": "https://a.example"},
}
CITED = {"start": 0, "end": 4, "text": "Rain", "sources": [DOCUMENT], "content_index": 1, "type": "TEXT_CONTENT"}
THOUGHT_OF = {"start": 0, "end": 3, "text": "Let", "sources": [], "content_index": 0, "type": "THINKING_CONTENT"}
PLANNED = {"start": 2, "end": 6, "text": "will", "sources": [], "type": "PLAN"}
MESSAGE = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "Let me see."},
        {"type": "text", "tone": "calm", "text": "Rain, I believe."},
        {"type": "sketch", "lines": 3},
    ],
    "tool_plan": "I will look it up.",
    "tool_calls": [
        {"id": "sky_1", "type": "function", "function": {"name": "sky", "arguments": '{"over": "Rome"}'}},
        {"id": "sky_2", "type": "function", "function": {"name": "sky", "arguments": '{"over": "Oslo"}'}},
    ],
    "citations": [THOUGHT_OF, CITED, PLANNED],
}
END = {
    "finish_reason": "TOOL_CALL",
    "usage": {"billed_units": {"input_tokens": 5.0}, "tokens": {"input_tokens": 70.0, "output_tokens": 9.0}},
}


@sabir.option
def sky(over: str) -> dict[str, str]:
    """How the sky looks."""
    return {"over": over, "looks": "grey"}


def streamed(*events: Mapping[str, Any]) -> Reply:
    """The reply that a stream of those events folds to."""
    from sabir.authoring import Fold, ServerEvent

    fold, decoder = Fold(_scope()), CHAT.decoder(_scope())
    for event in [*events, {"type": "message-end", "delta": END}]:
        for each in decoder.feed(ServerEvent(json.dumps(event), event["type"])):
            fold.feed(each)
    return fold.reply()


def whole() -> Reply:
    """The reply that came at once."""
    return CHAT.decode(json.dumps({"id": "r1", "message": MESSAGE, **END}).encode(), _scope())


def _scope() -> Any:
    from sabir.authoring import DecodeScope

    return DecodeScope(LLM.target)


def _delta(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    event = {"type": kind, "delta": {"message": message}}
    return event if index is None else {**event, "index": index}


def rendered(*said: sabir.Message, options: Any = (), **settings: Any) -> Rendering:
    """A request, which the SDK's types take."""
    rendering = LLM.render(list(said), options=options, settings=Settings(**settings))
    oracle.check(rendering.body_bytes)
    return rendering


def test_every_kind_of_block_is_read() -> None:
    reply = whole()
    kinds = [part.kind for message in reply.messages for part in message.parts] + [
        call.call.option_name for call in reply.option_calls if call.call
    ]

    assert kinds == ["reasoning", "reasoning", "text", "opaque", "sky", "sky"]
    assert reply.finish_reason == "option_calls"
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (70, 9)


def test_a_citation_stands_on_its_text() -> None:
    (citation,) = next(part for part in whole().messages[0].parts if part.kind == "text").citations

    assert (citation.kind, citation.start, citation.end, citation.cited_text) == ("document", 0, 4, "Rain")
    assert (citation.url, citation.title) == ("https://a.example", "Rains")


def test_a_reply_goes_back_as_it_came() -> None:
    """Law 3: every block, the unknown one and all citations included."""
    reply = whole()
    body = LLM.render([sabir.user("Sky?"), *reply.messages, *sabir.answer_sync(reply, [sky])], options=[sky]).body

    sent = json.loads(json.dumps(body["messages"][1]))
    by_text = {"key": lambda citation: str(citation["text"])}
    assert sorted(sent.pop("citations"), **by_text) == sorted(MESSAGE["citations"], **by_text)
    assert sent == {name: value for name, value in MESSAGE.items() if name != "citations"}
    assert body["messages"][2]["content"][0]["document"]["data"] == {"over": "Rome", "looks": "grey"}


def test_a_stream_folds_to_the_whole_reply() -> None:
    """Law 8, in the order of the documents, with deltas cut anywhere and calls interleaved."""
    plan, content, (first, second) = MESSAGE["tool_plan"], MESSAGE["content"], MESSAGE["tool_calls"]
    events = [
        {"type": "message-start", "id": "r1", "delta": {"message": {"role": "assistant"}}},
        _delta("tool-plan-delta", tool_plan=plan[:5]),
        _delta("tool-plan-delta", tool_plan=plan[5:]),
        _delta("content-start", 0, content={"type": "thinking", "thinking": ""}),
        _delta("content-delta", 0, content={"thinking": "Let me"}),
        _delta("content-delta", 0, content={"thinking": " see."}),
        {"type": "content-end", "index": 0},
        _delta("content-start", 1, content={"type": "text", "tone": "calm", "text": "Rain"}),
        _delta("content-delta", 1, content={"text": ", I believe."}),
        _delta("content-start", 2, content=content[2]),
        *(_delta("citation-start", at, citations=each) for at, each in enumerate(MESSAGE["citations"])),
        _delta("tool-call-start", 0, tool_calls={**first, "function": {"name": "sky", "arguments": ""}}),
        _delta("tool-call-start", 1, tool_calls={**second, "function": {"name": "sky", "arguments": '{"ov'}}),
        _delta("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"over": "Rome"}'}}),
        _delta("tool-call-delta", 1, tool_calls={"function": {"arguments": 'er": "Oslo"}'}}),
        {"type": "debug", "prompt": "…"},
    ]
    one, other = whole(), streamed(*events)

    assert [one.finish_reason, one.usage, one.origin] == [other.finish_reason, other.usage, other.origin]
    assert len(one.messages) == len(other.messages)
    assert all(left.same_content(right) for left, right in zip(one.messages, other.messages, strict=True))


def test_an_error_at_the_end_of_a_stream_is_raised() -> None:
    """`message-end` may carry one."""
    with pytest.raises(CallError, match="the machine stumbled"):
        streamed({"type": "message-start"}, {"type": "message-end", "delta": {"error": "the machine stumbled"}})


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "too many tokens: the prompt has 9 of 8", ContextTooLong),
        (400, "too many tokens: max tokens must be less than or equal to 4096", InvalidRequest),
        (429, "this key is limited to 20 API calls / minute", RateLimited),
        (429, "this key is limited to 1,000 API calls / month", QuotaExceeded),
        (498, "blocked", ContentFiltered),
    ],
)
def test_words_and_statuses_of_this_vendor_alone(status: int, message: str, kind: type[CallError]) -> None:
    """https://docs.cohere.com/reference/errors"""
    body = json.dumps({"message": message}).encode()

    assert type(CHAT.decode_error(status, {}, body, "cohere")) is kind


def test_an_option_named_is_offered_alone() -> None:
    """The wire takes no name; a loss says what was done instead."""
    other = sabir.Option.from_schema("sea", "The sea.", {"type": "object", "properties": {}})
    rendering = rendered(sabir.user("Sky?"), options=[other, sky], option_choice="sky")

    assert [tool["function"]["name"] for tool in rendering.body["tools"]] == ["sky"]
    assert rendering.body["tool_choice"] == "REQUIRED"
    assert [(loss.kind, loss.path) for loss in rendering.losses] == [("rewritten", "settings.option_choice")]


def test_limits_of_settings_are_kept_and_told() -> None:
    """Five stop texts; p from 0.01 to 0.99; thinking on or off; a schema only where no options were passed."""
    rendering = rendered(
        sabir.user("Sky?"), options=[sky], stop=tuple("abcdef"), top_p=1, reasoning_effort="high", response_format={}
    )

    body = rendering.body
    assert (list(body["stop_sequences"]), body["p"], body["thinking"]) == ([*"abcde"], 0.99, {"type": "enabled"})
    assert "response_format" not in body
    assert {loss.path for loss in rendering.losses} == {
        "settings.stop[5]", "settings.top_p", "settings.reasoning_effort", "settings.response_format",
    }  # fmt: skip


def test_a_budget_of_thought_is_a_setting_of_the_vendor() -> None:
    """It takes the place of the neutral effort."""
    budget = {"type": "enabled", "token_budget": 64}

    assert rendered(sabir.user("Sky?"), vendor={"cohere": {"thinking": budget}}).body["thinking"] == budget
