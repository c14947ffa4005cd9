"""What a usage counts: every token that is billed, in whole replies and in streams, by the figures of each wire."""

from typing import Any

import pytest
from sabir.vocabulary.reply import Reply, Usage

from tests.providers.wires import DIALECTS, fold, scope_of, whole

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS


def claude(kind: str, *figures: int, **more: Any) -> dict[str, Any]:
    """An iteration: input, cache reads, cache writes, output."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    return {"type": kind, **dict(zip(names, figures, strict=True)), **more}


ADVISED = {
    **claude("", 300, 0, 0, 30),
    "iterations": [
        claude("message", 100, 0, 0, 10), claude("advisor_message", 1000, 40, 2, 7, model="other"),
        claude("message", 200, 0, 0, 20),
    ],
}  # fmt: skip
COMPACTED = {
    **claude("", 20, 0, 0, 4, output_tokens_details={"thinking_tokens": 1}),
    "iterations": [
        claude("compaction", 100, 5000, 6, 80, output_tokens_details={"thinking_tokens": 9}),
        claude("message", 20, 0, 0, 4),
    ],
}  # fmt: skip
SERVED = {
    **claude("", 20, 0, 0, 4),
    "iterations": [claude("message", 18, 0, 0, 1, model="a"), claude("fallback_message", 20, 0, 0, 4, model="b")],
}
XAI = {"prompt_tokens": 401, "completion_tokens": 44, "total_tokens": 702,
       "prompt_tokens_details": {"cached_tokens": 400},
       "completion_tokens_details": {"reasoning_tokens": 257}}  # fmt: skip
VOICE = {"prompt_tokens": 9, "completion_tokens": 201, "total_tokens": 585,
         "prompt_tokens_details": {"audio_tokens": 375, "cached_tokens": 0}}  # fmt: skip
OPENAI = {"prompt_tokens": 9, "completion_tokens": 201, "total_tokens": 210,
          "completion_tokens_details": {"reasoning_tokens": 150}}  # fmt: skip
TOOLS = {"promptTokenCount": 50, "toolUsePromptTokenCount": 60, "candidatesTokenCount": 7, "thoughtsTokenCount": 8,
         "totalTokenCount": 125, "cachedContentTokenCount": 5}  # fmt: skip
NEW = {"input_tokens": 100, "output_tokens": 20,
       "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
       "output_tokens_details": {"reasoning_tokens": 15}}  # fmt: skip
THOUGHT = claude("", 5, 11, 7, 13, output_tokens_details={"thinking_tokens": 3})
KEPT = {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2}}  # fmt: skip
ODD = {"prompt_tokens": 5, "completion_tokens": "2", "prompt_cache_hit_tokens": 3, "reasoning_tokens": True}

CASES: dict[str, tuple[str, dict[str, Any], tuple[int | None, ...]]] = {
    "an advisor's answer is added": (CLAUDE, ADVISED, (1342, 37, 40, 2, None)),
    "a compaction is added": (CLAUDE, COMPACTED, (5126, 84, 5000, 6, 10)),
    "a declined model's attempt is not billed": (CLAUDE, SERVED, (20, 4, 0, 0, None)),
    "broken iterations count nothing": (CLAUDE, {**SERVED, "iterations": [None, 3, {"type": 1}]}, (20, 4, 0, 0, None)),
    "thoughts and tools' prompts": (GEMINI, TOOLS, (110, 15, 5, None, 8)),
    "reasoning that only the total counts": (CHAT, XAI, (401, 301, 400, None, 257)),
    "sound that only the total counts": (CHAT, VOICE, (384, 201, 0, None, None)),
    "reasoning that the completion counts": (CHAT, OPENAI, (9, 201, None, None, 150)),
    "tokens that only the total counts": (CHAT, {**OPENAI, "total_tokens": 300}, (9, 291, None, None, 150)),
    "a total that is less": (CHAT, {**OPENAI, "total_tokens": 3}, (9, 201, None, None, 150)),
    "cached tokens by another name": (CHAT, {**OPENAI, "num_cached_tokens": 4}, (9, 201, 4, None, 150)),
    "thoughts, cache reads and writes": (CLAUDE, THOUGHT, (23, 13, 11, 7, 3)),
    "cache reads and writes": (CHAT, KEPT, (20, 7, 4, 3, 2)),
    "what is no number": (CHAT, ODD, (5, None, 3, None, None)),
    "a response": (RESPONSES, NEW, (100, 20, 60, 30, 15)),
}


def reply_of(name: str, usage: dict[str, Any], *, streamed: bool) -> Reply:
    """The reply of a wire that says "Hi." and has these figures."""
    scope = scope_of(name)
    if name == CLAUDE:
        head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
        if not streamed:
            return whole(scope, {**head, "content": [{"type": "text", "text": "Hi."}], "usage": usage})
        start = {**head, "usage": {"input_tokens": 1, "cache_read_input_tokens": 55, "output_tokens": 2}}
        return fold(
            scope,
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
            {"type": "message_stop"},
        )
    if name == GEMINI:
        content = {"role": "model", "parts": [{"text": "Hi."}]}
        answer = {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}
        return fold(scope, answer) if streamed else whole(scope, answer)
    if name == CHAT:
        said, end = {"role": "assistant", "content": "Hi."}, {"index": 0, "finish_reason": "stop"}
        if not streamed:
            return whole(scope, {"id": "c", "model": "m", "choices": [{**end, "message": said}], "usage": usage})
        return fold(scope, {"id": "c", "choices": [{**end, "delta": said}]}, {"choices": [], "usage": usage}, "[DONE]")
    item = {"type": "message", "id": "msg", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
    response = {"id": "r", "model": "m", "status": "completed", "output": [item], "usage": usage}
    if not streamed:
        return whole(scope, response)
    begun = {"type": "response.created", "response": {**response, "output": [], "usage": None}}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    return fold(scope, begun, done, {"type": "response.completed", "response": response})


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", CASES)
def test_a_usage_counts_all_that_is_billed(case: str, streamed: bool) -> None:
    name, figures, expected = CASES[case]
    usage = reply_of(name, figures, streamed=streamed).usage

    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    assert tuple(getattr(usage, name) for name in names) == expected
    assert usage.details == figures


@pytest.mark.parametrize("name", DIALECTS)
def test_an_answer_without_figures_has_an_empty_usage(name: str) -> None:
    assert reply_of(name, {}, streamed=False).usage == Usage()


def test_the_figures_of_groqs_last_chunk_are_a_usage() -> None:
    """It sends them there to those who do not ask for a chunk with the usage."""
    said = {"index": 0, "finish_reason": "stop", "delta": {"content": "Hi."}}
    reply = fold(scope_of(CHAT), {"id": "c", "choices": [said], "x_groq": {"id": "q", "usage": OPENAI}}, "[DONE]")

    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (9, 201)
