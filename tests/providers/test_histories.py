"""Stored requests that are none: refused in one line, by the place, what is there, and what was wanted."""

import json
from typing import Any

import pytest
import sabir
from sabir.errors import HistoryInvalid

from tests.providers.wires import DIALECTS

CLAUDE, GEMINI, CHAT, RESPONSES = DIALECTS


def user(*content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(content)}]}


def model(**call: Any) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", **call}]}]}


NO_REQUESTS: list[tuple[str, Any, str]] = [
    *((name, [], "expected a JSON object") for name in (CLAUDE, CHAT)),
    (CLAUDE, {}, "messages is missing; expected an array"),
    (CLAUDE, {"messages": [1]}, "messages[0] is 1; expected an object"),
    (CLAUDE, {"messages": [{"role": "tool", "content": "x"}]}, "expected one of assistant, system, user"),
    (CLAUDE, {"messages": [{"role": "user"}]}, "messages[0].content is missing; expected an array"),
    (CLAUDE, user({"type": "tool_result"}), "tool_use_id is missing"),
    (CLAUDE, model(), "name is missing"),
    (CLAUDE, {"messages": [], "tools": [7]}, "tools[0] is 7; expected an object"),
    (GEMINI, {}, "contents is missing"),
    (GEMINI, {"contents": "Hi."}, "contents is 'Hi.'; expected an array"),
    (GEMINI, {"contents": ["Hi."]}, "contents[0] is 'Hi.'; expected an object"),
    (
        GEMINI,
        {"contents": [{"role": "tool", "parts": []}]},
        "contents[0].role is 'tool'; expected one of function, model, user",
    ),
    (GEMINI, {"contents": [{"role": "model", "parts": [{"functionCall": {}}]}]}, "functionCall.name is missing"),
    (GEMINI, {"contents": [], "tools": [1]}, "tools[0] is 1; expected an object"),
    (CHAT, {"model": "m"}, "messages is missing; expected an array"),
    (CHAT, {"messages": "Hi."}, "messages is 'Hi.'; expected an array"),
    (CHAT, {"messages": ["Hi."]}, "messages[0] is 'Hi.'; expected an object"),
    (CHAT, {"messages": [{"role": "critic", "content": "Hi."}]}, "messages[0].role is 'critic'; expected one of"),
    (CHAT, {"messages": [{"content": "Hi."}]}, "messages[0].role is None; expected one of assistant"),
    (CHAT, {"messages": [{"role": "user"}]}, "messages[0].content is missing; expected an array"),
    (CHAT, {"messages": [{"role": "assistant", "content": 5}]}, "messages[0].content is 5"),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls is {}; expected an array"),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]}, "[0].function.name is"),
    (CHAT, {"messages": [{"role": "tool", "content": "18"}]}, "messages[0].tool_call_id is missing"),
    (CHAT, {"messages": [], "model": 5}, "model is 5; expected a string"),
    (CHAT, {"messages": [], "tools": "all"}, "tools is 'all'; expected an array"),
    (RESPONSES, {"model": "m"}, "input is missing; expected an array"),
    (RESPONSES, {"input": 5}, "input is 5; expected an array"),
    (RESPONSES, {"input": ["Hi."]}, "input[0] is 'Hi.'; expected an object"),
    (RESPONSES, {"input": [{"content": "Hi."}]}, "input[0] has neither a type, a role nor an id"),
    (RESPONSES, {"input": [{"role": "critic", "content": "Hi."}]}, "input[0].role is 'critic'; expected one of"),
    (RESPONSES, {"input": [{"role": "user", "content": 5}]}, "input[0].content is 5; expected an array"),
    (RESPONSES, {"input": [{"role": "assistant"}]}, "input[0].content is missing"),
    (RESPONSES, {"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name is missing"),
    (RESPONSES, {"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id is missing"),
    (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output is missing"),
    (RESPONSES, {"input": [], "instructions": ["Be brief."]}, "instructions is ['Be brief.']; expected a string"),
    (RESPONSES, {"input": [], "reasoning": "low"}, "reasoning is 'low'; expected an object"),
]


@pytest.mark.parametrize(("name", "stored", "place"), NO_REQUESTS)
def test_what_is_no_request_is_refused_by_its_place(name: str, stored: Any, place: str) -> None:
    with pytest.raises(HistoryInvalid) as refused:
        sabir.dialect(name).decode_history(json.dumps(stored))

    assert place in str(refused.value)
    assert "\n" not in str(refused.value)
