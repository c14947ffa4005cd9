"""What each wire demands of a request's messages beyond its types: pairs, adjacency, no empty text."""

import json
import re
from collections.abc import Callable
from typing import Any

Body = dict[str, Any]


def check_chat(body: Body) -> None:
    """Tool messages follow their call at once and completely; nothing is empty."""
    waiting: list[str] = []
    seen: set[str] = set()
    for item in body["messages"]:
        if item["role"] == "tool":
            assert item["tool_call_id"] in waiting, f"no call for {item}"
            waiting.remove(item["tool_call_id"])
            continue
        assert not waiting, f"{waiting} must be answered before {item}"
        calls = item.get("tool_calls")
        assert calls != [], "tool_calls is never empty"
        for call in calls or ():
            assert re.fullmatch(r"[\s\S]{1,64}", call["id"])
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"])
            assert call["id"] not in seen
            seen.add(call["id"])
            waiting.append(call["id"])
        assert item.get("content") or calls or item.get("refusal") or item.get("audio"), f"empty: {item}"
        assert item.get("content") != ""
        for part in item["content"] if isinstance(item.get("content"), list) else ():
            assert part.get("text") != ""
    assert not waiting


def check_responses(body: Body) -> None:
    """Each call has one output after it; reasoning leads to an item; no message is empty."""
    waiting: dict[str, str] = {}
    seen: set[str] = set()
    previous: Body = {}
    for item in body["input"]:
        kind = item.get("type", "message")
        if previous.get("type") == "reasoning":
            assert kind == "reasoning" or item.get("role", "assistant") == "assistant"
        if kind == "function_call":
            assert re.fullmatch(r"[\s\S]{1,64}", item["call_id"])
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", item["name"])
            assert item["call_id"] not in seen
            assert str(item.get("id", "fc")).startswith("fc")
            seen.add(item["call_id"])
            waiting[item["call_id"]] = kind
        elif kind == "custom_tool_call":
            waiting[item["call_id"]] = kind
        elif kind in ("function_call_output", "custom_tool_call_output"):
            assert waiting.pop(item["call_id"]) == kind.removesuffix("_output")
            assert item["output"] != []
        elif kind == "message":
            assert item["content"] not in ("", [], None)
            for part in item["content"] if isinstance(item["content"], list) else ():
                assert part.get("text") != ""
        previous = item
    assert previous.get("type") != "reasoning"
    assert not waiting


def check_any(body: Body) -> None:
    """No rule of its own."""


RULES: dict[str, Callable[[Body], None]] = {"openai.chat": check_chat, "openai.responses": check_responses}


def check_pairing(dialect: str, body: bytes) -> None:
    """AssertionError where a request breaks the rules of its wire."""
    RULES.get(dialect, check_any)(json.loads(body))
