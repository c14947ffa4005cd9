"""One conversation of three turns and two options, as five wires speak it; invented, and sealed as real ones are.

request ──decode_history──▶ how many results it holds ──▶ the answer of that turn        nothing is remembered

turn 1   a text, look_up(Oslo) and book(Oslo, 2)      in parallel
turn 2   look_up(Rome)
turn 3   the last words
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import sabir
from sabir import ModelAdapter
from sabir.authoring import Access, InProcessConnection, InProcessResponse, WireRequest

from tests.laws.oracle import check_request
from tests.laws.rules import RULES, check_pairing

MODELS: Mapping[str, str] = {
    "openai.chat": "gpt-5",
    "openai.responses": "gpt-5",
    "anthropic.messages": "claude-sonnet-5",
    "google.generate_content": "gemini-3-pro",
    "echo.plain": "parrot",
}
"""Dialect → a model that speaks it."""


class Chosen(NamedTuple):
    """A call of an answer."""

    id: str
    name: str
    arguments: dict[str, Any]


class Turn(NamedTuple):
    """What the model says in one turn."""

    text: str
    chosen: tuple[Chosen, ...] = ()


TURNS: Mapping[int, Turn] = {
    0: Turn(
        "Let me look.",
        (Chosen("call_1", "look_up", {"city": "Oslo"}), Chosen("call_2", "book", {"city": "Oslo", "seats": 2})),
    ),
    2: Turn("", (Chosen("call_1", "look_up", {"city": "Rome"}),)),  # an id that was used before (UP-13)
    3: Turn("Booked: Oslo, for two."),
}
"""How many results a request holds → the answer."""


def _chat(turn: Turn) -> dict[str, Any]:
    calls = [
        {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": json.dumps(each.arguments)}}
        for each in turn.chosen
    ]
    message = {"role": "assistant", "content": turn.text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5"}
    return {**head, "choices": [choice], "usage": usage}


def _responses(turn: Turn) -> dict[str, Any]:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed-cipher"}
    content = [{"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}]
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    calls = [
        {"type": "function_call", "id": f"fc_{index}", "call_id": each.id, "name": each.name,
         "arguments": json.dumps(each.arguments), "status": "completed"}
        for index, each in enumerate(turn.chosen)
    ]  # fmt: skip
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    head = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "usage": usage}
    return {**head, "output": [thought, *([said] if turn.text else []), *calls]}


def _messages(turn: Turn) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "thinking", "thinking": "sealed-thought", "signature": "sealed-sign"}]
    content += [{"type": "text", "text": turn.text}] if turn.text else []
    content += [{"type": "tool_use", "id": each.id, "name": each.name, "input": each.arguments} for each in turn.chosen]
    stop = "tool_use" if turn.chosen else "end_turn"
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": stop, "usage": {"input_tokens": 5, "output_tokens": 2}}


def _contents(turn: Turn) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for index, each in enumerate(turn.chosen):
        signature = {} if index else {"thoughtSignature": "c2VhbGVkLXNpZ24="}
        parts.append({"functionCall": {"name": each.name, "args": each.arguments}, **signature})
    one = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    return {"candidates": [one], "usageMetadata": usage, "modelVersion": "gemini-3-pro", "responseId": "r1"}


def _plain(turn: Turn) -> list[dict[str, Any]]:
    said = [{"text": turn.text}] if turn.text else []
    calls = [
        {"call": {"id": each.id, "name": each.name, "arguments": json.dumps(each.arguments)}} for each in turn.chosen
    ]
    end = {"finish": "call" if turn.chosen else "done", "usage": {"input_tokens": 5, "output_tokens": 2}}
    return [*said, *calls, end]


SPOKEN: Mapping[str, Callable[[Turn], Any]] = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _messages,
    "google.generate_content": _contents,
    "echo.plain": _plain,
}


def answer(dialect: str, body: bytes) -> bytes:
    """The answer to a request that the wire's rules and the vendor's own types accept, by the results that it holds.

    Anything else raises; KeyError a number of results that no run of this comes to.
    """
    check_pairing(dialect, body)
    if dialect in RULES:
        check_request(dialect, body)
    history = sabir.dialect(dialect).decode_history(body)
    results = sum(message.result is not None for message in history.messages)
    return json.dumps(SPOKEN[dialect](TURNS[results])).encode()


class StandIn:
    """A provider that speaks a real dialect to a function of a test's own, in place of its vendor's client."""

    credentials = ()

    def __init__(self, dialect: str, serve: Callable[[WireRequest], InProcessResponse]) -> None:
        self.name, _, self.short = dialect.partition(".")
        self._real = sabir.provider(self.name)
        self._serve = serve

    def __getattr__(self, name: str) -> Any:
        """What the real one has, all but the connection."""
        return getattr(self._real, name)

    def connect(self, access: Access) -> InProcessConnection:
        return InProcessConnection(self._serve)


def adapter(dialect: str, serve: Callable[[WireRequest], InProcessResponse]) -> ModelAdapter:
    """An adapter of that dialect whose requests go to a function."""
    provider = StandIn(dialect, serve)
    return ModelAdapter(provider, sabir.dialect(dialect).dialect, MODELS[dialect], Access())


def import_all() -> None:
    """Import what speaks and checks each dialect, which is otherwise imported at the first use."""
    for dialect in MODELS:
        llm = adapter(dialect, lambda request: InProcessResponse(200, []))
        answer(dialect, llm.render("Hi").body_bytes)
