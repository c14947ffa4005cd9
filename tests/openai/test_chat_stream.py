"""Chat Completions streams → events, and their fold, which is the reply of the same answer at once (law 8)."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from sabir.contract.scope import DecodeScope
from sabir.errors import StreamBroken
from sabir.vocabulary.parts import MediaPart, TextPart
from sabir.vocabulary.reply import BlockDelta, Reply
from sabir.vocabulary.settings import Target
from sabir_openai.chat_dialect import CHAT

from tests.providers import wires
from tests.providers.wires import same

TARGET = Target(provider="openai", dialect="openai.chat", model="gpt-4o")
SCOPE = DecodeScope(target=TARGET, option_names={"my_tool": "my.tool"}, request_id="req_1")
DONE = "[DONE]"


def chunk(delta: Any = None, finish: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish, **fields.pop("choice", {})}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-2024-08-06"}
    return {**head, "choices": [choice], **fields}


events, folded = partial(wires.events, SCOPE), partial(wires.fold, SCOPE)


def whole(message: dict[str, Any], finish: str = "stop", **fields: Any) -> Reply:
    choice = {"index": 0, "message": message, "finish_reason": finish, **fields.pop("choice", {})}
    head = {"id": "chatcmpl-1", "created": 1, "model": "gpt-4o-2024-08-06"}
    return CHAT.decode(json.dumps({**head, "choices": [choice], **fields}).encode(), SCOPE)


def call(
    index: int | None, wire_id: str = "", name: str = "", arguments: str | None = None, **fields: Any
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value not in ("", None)}
    delta = {"index": index, "id": wire_id, "function": function, **fields}
    return {"tool_calls": [{key: value for key, value in delta.items() if value not in (None, "")}]}


def test_what_a_chunk_says_of_the_answer_holds_until_another_says_otherwise() -> None:
    """A null, an empty text or a field left out takes nothing back; the same said again changes nothing."""
    reply = folded(
        chunk({"content": "a"}, service_tier="default", citations=["x"], usage={"prompt_tokens": 3}, obfuscation="1"),
        chunk({"content": "b"}, service_tier=None, citations=["x", "y"], usage=None, obfuscation="22"),
        chunk({"content": "c"}, service_tier="", citations=["x", "y"], usage=None, obfuscation="333"),
        chunk({}, "stop", service_tier=None, note="last"),
        DONE,
    )

    assert (reply.text, reply.usage.input_tokens) == ("abc", 3)
    assert reply.details == {"created": 1, "service_tier": "default", "citations": ["x", "y"], "note": "last"}


COMPATIBLE: list[tuple[list[Any], list[tuple[str, str]]]] = [
    # no index: a name begins a call, what has none continues the last
    ([call(None, "1", "f", "{"), call(None, arguments="}"), call(None, "2", "f", "{}")], [("1", "{}"), ("2", "{}")]),
    # id and name first, then argument text, interleaved as it comes
    ([call(0, "1", "f", ""), call(1, "2", "f", ""), call(0, arguments='{"a"'), call(1, arguments="{ }"),
      call(0, arguments=":1}")], [("1", '{"a":1}'), ("2", "{ }")]),
    # one index for all: another id is another call
    ([call(0, "1", "f", "{}"), call(0, "2", "f", "{"), call(0, arguments="}")], [("1", "{}"), ("2", "{}")]),
    # the name in every chunk, and after the arguments began
    ([call(0, "1", "f", "{"), call(0, "1", "f", "}")], [("1", "{}")]),
    ([call(0, "1", arguments="{"), call(0, name="f", arguments="}")], [("1", "{}")]),
    # a new id in each piece, at one index, without an index, and between pieces of another call
    ([call(0, "1", "f"), call(0, "2", arguments="{"), call(0, "3", arguments="}")], [("1", "{}")]),
    ([call(None, "1", "f"), call(None, "2", arguments="{"), call(None, "3", arguments="}")], [("1", "{}")]),
    ([call(0, "1", "f"), call(1, "2", "f"), call(0, "3", arguments="{}"), call(1, "4", arguments="[]")],
     [("1", "{}"), ("2", "[]")]),
    # the arguments under another index, with the call's id in the first piece alone
    ([call(0, "1", "f"), call(1, "1", arguments="{"), call(1, arguments="}")], [("1", "{}")]),
]  # fmt: skip


@pytest.mark.parametrize(("deltas", "expected"), COMPATIBLE)
def test_calls_of_compatibles_are_put_together(deltas: list[Any], expected: list[tuple[str, str]]) -> None:
    """Endpoints deviate in what they repeat and leave out."""
    chunks = [*map(chunk, deltas), chunk({}, "tool_calls"), DONE]
    calls = [message.call for message in folded(*chunks).option_calls]
    grown = dict[int, str]()
    for event in events(*chunks):
        if isinstance(event, BlockDelta):
            grown[event.index] = grown.get(event.index, "") + event.text

    assert [(each.invocation_id, each.raw_arguments) for each in calls if each] == expected
    assert [each.option_name for each in calls if each] == ["f"] * len(expected)
    assert [*grown.values()] == [text for _, text in expected]


def test_arguments_that_are_an_object_and_texts_are_kept_both_and_make_an_invalid_call() -> None:
    odd = {"tool_calls": [{"index": 0, "function": {"arguments": {"a": 1}}}]}
    found = folded(
        chunk(call(0, "c", "f", '{"city": ')), chunk(odd), chunk(call(0, arguments='"Oslo"}')), chunk({}, "stop")
    )

    (asked,) = found.option_calls
    assert asked.call is not None
    assert (asked.call.invalid_arguments, asked.call.raw_arguments) == (True, '{"a": 1}{"city": "Oslo"}')


def test_refusal_and_reasoning_grow_in_their_own_blocks() -> None:
    first, then, both = ({"type": "reasoning.text", "text": text, "index": 0} for text in ("Hm", ".", "Hm."))
    deltas: list[Any] = [
        {"content": "Ah"}, {"reasoning": "Hm", "reasoning_details": [first]},
        {"reasoning": ".", "reasoning_details": [then]}, {"refusal": "No"}, {"refusal": "."}, {"content": "."},
    ]  # fmt: skip
    chunks = [*map(chunk, deltas), chunk({}, "stop")]
    found = [event for event in events(*chunks) if isinstance(event, BlockDelta)]
    message = {"content": "Ah.", "reasoning": "Hm.", "refusal": "No.", "reasoning_details": [both]}

    assert [(event.kind, event.text) for event in found] == [
        ("text", "Ah"), ("reasoning", "Hm"), ("reasoning", "."), ("refusal", "No"), ("refusal", "."), ("text", "."),
    ]  # fmt: skip
    assert same(folded(*chunks), whole(message))
    assert folded(*chunks).finish_reason == "content_filter"


def test_reasoning_under_both_names_grows_once() -> None:
    """Some servers send each piece twice."""
    chunks = [chunk({"reasoning": text, "reasoning_content": text}) for text in ("Hm", ".")]
    found = events(*chunks, chunk({}, "stop"))

    assert [event.text for event in found if isinstance(event, BlockDelta)] == ["Hm", "."]
    assert folded(*chunks, chunk({}, "stop")).reasoning == "Hm."


def test_a_sound_and_its_transcript_grow_and_end_after_the_finish_reason() -> None:
    """The last audio update, with the time of its end alone, comes after the finish reason."""
    sounds = {"id": "audio_1", "transcript": "Hel"}, {"data": "UklGRg=="}, {"data": "AAAAAFdBVkU=", "transcript": "lo."}
    ended = [chunk({}, "stop"), chunk({"audio": {"expires_at": 9}}), DONE]
    chunks = [*(chunk({"audio": each}) for each in sounds), *ended]
    reply = folded(*chunks)

    assert reply.messages[0].parts == (
        MediaPart(modality="audio", url="data:audio/wav;base64,UklGRgAAAABXQVZF",
                  state={"audio": {"id": "audio_1", "expires_at": 9}}),
        TextPart(text="Hello.", state={"transcript_of": "audio_1"}),
    )  # fmt: skip
    grown = [event.kind for event in events(*chunks) if isinstance(event, BlockDelta)]
    assert grown == ["text", "media", "media", "text"]


def asked(**call: Any) -> dict[str, Any]:
    return {"tool_calls": [call]}


THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
REFERENCE = {"type": "reference", "ids": [1]}
OBJECT = {"id": "1", "function": {"name": "f", "arguments": {"a": 1}}, "extra": {"s": 1}}
ALIKE: list[tuple[list[Any], dict[str, Any]]] = [
    ([asked(index=0, **OBJECT)], asked(type="function", **OBJECT)),
    ([asked(index=0, id="1", type="custom", custom={"name": "g", "input": "4 +"}),
      asked(index=0, custom={"input": " 4"})], asked(id="1", type="custom", custom={"name": "g", "input": "4 + 4"})),
    ([{"content": [THINKING]}, {"content": [{"type": "text", "text": "A"}]}, {"content": "h."},
      {"content": [REFERENCE]}], {"content": [THINKING, {"type": "text", "text": "Ah."}, REFERENCE]}),
    *(([message], message) for message in (
        {"content": 5}, {"content": {"a": 1}}, {"content": "Hi.", "tool_calls": {"a": 1}}, {"audio": "x"})),
]  # fmt: skip
"""Deltas, and the message that they are at once."""


@pytest.mark.parametrize(("deltas", "message"), ALIKE)
def test_deltas_of_any_shape_are_what_the_message_is_at_once(deltas: list[Any], message: dict[str, Any]) -> None:
    assert same(folded(*map(chunk, deltas), chunk({}, "stop")), whole(message))


def test_a_legacy_function_call_is_put_together() -> None:
    deltas = [{"function_call": {"name": "joke", "arguments": ""}}, {"function_call": {"arguments": '{"a"'}}]
    chunks = [*map(chunk, deltas), chunk({"function_call": {"arguments": ":1}"}}), chunk({}, "function_call")]
    found = folded(*chunks)

    assert [(c.call.option_name, c.call.raw_arguments) for c in found.option_calls if c.call] == [("joke", '{"a":1}')]
    assert found.finish_reason == "option_calls"


def test_several_choices_are_told_apart() -> None:
    said = [chunk({"content": each}, index=index) for each, index in (("b", 1), ("a", 0), ("B", 1), ("A", 0))]
    chunks = [*said, chunk({}, "length", index=1), chunk({}, "stop"), DONE]
    reply = folded(*chunks)

    assert (reply.text, reply.finish_reason) == ("aA", "stop")
    assert [(other.messages[0].text, other.finish_reason) for other in reply.alternatives] == [("bB", "length")]
    assert [event.text for event in events(*chunks) if isinstance(event, BlockDelta)] == ["a", "A"]


def test_log_probabilities_and_a_filters_findings_are_collected() -> None:
    first = {"choice": {"logprobs": {"content": [{"token": "a"}], "refusal": None}}, "prompt_filter_results": [1]}
    second = {"choice": {"logprobs": {"content": [{"token": "b"}]}, "content_filter_results": {"hate": "safe"}}}
    reply = folded(chunk({"content": "a"}, obfuscation="x", **first), chunk({"content": "b"}, "stop", **second))

    logprobs = {"content": [{"token": "a"}, {"token": "b"}], "refusal": None}
    choice = {"index": 0, "logprobs": logprobs, "content_filter_results": {"hate": "safe"}}
    assert reply.details == {"created": 1, "prompt_filter_results": [1], "choices": [choice]}


CALLED = chunk(call(0, "1", "f", '{"a":1}'))
CUT = chunk(call(0, "1", "f", ""))
FIRST, SECOND = chunk({}, "stop"), chunk({"content": "b"}, "stop", index=1)
ENDINGS: list[tuple[list[Any], str | None]] = [
    ([FIRST, DONE], "stop"), ([FIRST], "stop"), ([DONE], "other"), ([SECOND, DONE], "other"),
    ([FIRST, SECOND], "stop"), ([SECOND, FIRST], "stop"), ([], None), ([SECOND], None),
]  # fmt: skip
"""How a stream ends, and the reply's finish reason; None if the stream is broken off."""


@pytest.mark.parametrize(("ending", "reason"), ENDINGS)
def test_choice_0_or_done_ends_the_reply(ending: list[Any], reason: str | None) -> None:
    """The end of another choice does not: choice 0 may be cut off."""
    if reason:
        reply = folded(chunk({"content": "a"}), *ending)
        assert (reply.text, reply.finish_reason, len(reply.alternatives)) == ("a", reason, SECOND in ending)
    else:
        with pytest.raises(StreamBroken) as raised:
            folded(chunk({"content": "a"}), *ending)
        assert raised.value.partial.text == "a"


def test_done_alone_keeps_a_call_and_its_usage() -> None:
    """A call whose arguments are complete may run; empty arguments may have been cut off."""
    usage = {**chunk(), "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    for called, is_cut in ((CALLED, False), (CUT, True)):
        reply = folded(called, usage, DONE)
        assert [each.call.cut_off for each in reply.option_calls if each.call] == [is_cut]
        assert (reply.finish_reason, reply.usage.total_tokens) == ("other", 5)


def test_done_without_any_choice_is_a_broken_stream() -> None:
    with pytest.raises(StreamBroken):
        folded({**chunk(), "choices": []}, DONE)


def test_streamed_reasoning_chunks_are_one_part_and_emitted_as_they_arrive() -> None:
    deltas: list[Any] = [
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": each}], "closed": True}]}
        for each in ("H", "m", ".")
    ]
    chunks = [*map(chunk, deltas), chunk({"content": [{"type": "text", "text": "A"}]}), chunk({"content": "h."})]
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "closed": True}
    message = {"content": [thinking, {"type": "text", "text": "Ah."}]}
    grown = [(each.kind, each.text) for each in events(*chunks) if isinstance(each, BlockDelta)]

    assert same(folded(*chunks, chunk({}, "stop")), whole(message))
    assert grown == [("reasoning", "H"), ("reasoning", "m"), ("reasoning", "."), ("text", "A"), ("text", "h.")]


def test_the_fold_is_what_the_sdks_own_accumulator_gives() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    logs = {"choice": {"logprobs": {"content": [{"token": "A", "logprob": -1.0, "bytes": [65], "top_logprobs": []}]}}}
    chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "A"}, **logs),
        chunk({"content": "h."}, **logs),
        chunk(call(0, "call_1", "my_tool", "", type="function")),
        chunk(call(0, arguments='{"a":')),
        chunk(call(0, arguments="1}")),
        chunk({}, "tool_calls"),
        {**chunk(), "choices": [], "usage": usage},
    ]
    state = ChatCompletionStreamState()
    for each in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(each))
    accumulated = state.get_final_completion().model_dump(mode="json", exclude_unset=True)

    left = folded(*chunks)
    right = CHAT.decode(json.dumps(accumulated).encode(), SCOPE)
    assert [message.payload for message in left.messages] == [message.payload for message in right.messages]
    assert (left.finish_reason, left.usage.details, left.text) == (right.finish_reason, right.usage.details, right.text)


def pieces(text: str, cuts: list[int]) -> Iterator[str]:
    places = sorted({cut % (len(text) + 1) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        yield text[start:end]


@given(st.text(max_size=12), st.text(max_size=8), st.text(max_size=8), st.lists(st.integers(0, 30)))
def test_any_cutting_folds_to_the_same_reply(text: str, reasoning: str, arguments: str, cuts: list[int]) -> None:
    deltas: list[Any] = [{"reasoning_content": piece} for piece in pieces(reasoning, cuts)]
    deltas += [*({"content": piece} for piece in pieces(text, cuts)), call(0, "1", "f")]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces(arguments, cuts)]
    function = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    message = {"reasoning_content": reasoning, "content": text, "tool_calls": [function]}

    assert same(folded(*map(chunk, deltas), chunk({}, "tool_calls")), whole(message, "tool_calls"))
