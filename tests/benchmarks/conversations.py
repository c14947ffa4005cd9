"""The conversation that every contender renders, the option that it offers, and the models that it asks.

conversation(10)    system · user · call · result · text · user · call · result · text · user
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Entry = dict[str, Any]

WIRES = ("openai.chat", "openai.responses", "anthropic.messages", "google.generate_content")
MODELS = {
    "openai.chat": "gpt-4.1",
    "openai.responses": "gpt-4.1",
    "anthropic.messages": "claude-sonnet-4-5",
    "google.generate_content": "gemini-2.5-flash",
}
PATHS = {
    "openai.chat": "/v1/chat/completions",
    "openai.responses": "/v1/responses",
    "anthropic.messages": "/v1/messages",
    "google.generate_content": "/v1beta/models/gemini-2.5-flash:generateContent",
}
STREAM_PATHS = PATHS | {"google.generate_content": "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"}
MAX_TOKENS = 1024
"""Every contender asks the Anthropic wire for so many; the others' requests name no bound."""
BATCH, STEPS, ASKED = 32, 50, 64
"""Records that are appended in one run, steps that are taken in one, requests that each who asks sends in one."""
OPTIONS: list[Entry] = [
    {
        "name": "weather",
        "description": "Current weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city's name."},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    }
]

CITIES = ("Bergen", "Tbilisi", "Cusco", "Nagoya", "Windhoek", "Galway", "Ljubljana", "Hobart")
SENTENCES = (
    "The ferry leaves at nine, and nobody has looked at the sky yet.",
    "Please compare it with yesterday, when the forecast said something else entirely.",
    "I would rather carry an umbrella for nothing than be wet on the way back.",
    "Say it in one line; the others only want to know whether we go.",
)


class Given(NamedTuple):
    """What a task is made ready for.

    `size` counts messages, turns or events, as the task says. `url` is the stub's; without one, calls go through
    an in-process transport. `concurrency` is the number of calls in flight.
    """

    wire: str
    size: int = 10
    url: str = ""
    concurrency: int = 1


def said(number: int) -> str:
    """The text with that number: 60 to 200 characters."""
    first, second = SENTENCES[number % 4], SENTENCES[(number // 4 + number) % 4]
    return (
        f"{number}. {CITIES[number % 8]}: {first} {second}"
        if number % 3
        else f"{number}. {CITIES[number % 8]}: {first}"
    )


def arguments(number: int) -> Entry:
    """The arguments of the call with that number."""
    return {"city": CITIES[number % 8], "unit": ("celsius", "fahrenheit")[number % 2]}


def call(number: int) -> Entry:
    """The call with that number."""
    return {"kind": "call", "id": f"call_{number:06d}", "name": "weather", "arguments": arguments(number)}


def result(number: int) -> Entry:
    """What came of the call with that number."""
    return {"kind": "result", "id": f"call_{number:06d}", "name": "weather", "text": said(number)}


def conversation(count: int) -> list[Entry]:
    """Exactly `count` messages: one system, then cycles of user, call, result, text; ValueError for an open call."""
    if count % 4 == 3:
        raise ValueError(f"{count} messages end with a call that has no result; ask for one more or one less")
    cycle: tuple[Callable[[int], Entry], ...] = (
        lambda number: {"kind": "user", "text": said(number)},
        call,
        lambda number: result(number - 1),
        lambda number: {"kind": "text", "text": said(number)},
    )
    entries = [{"kind": "system", "text": "You plan outings. " + said(0)}]
    return (entries + [cycle[(number - 1) % 4](number) for number in range(1, count)])[:count]


def start() -> list[Entry]:
    """What an agent loop begins with: instructions and a question."""
    return conversation(2)


def stored(count: int) -> bytes:
    """A conversation at rest: a JSON array of sabir's documented message schema."""
    made = {
        "system": lambda entry: ("system", _parts(entry["text"])),
        "user": lambda entry: ("user", _parts(entry["text"])),
        "text": lambda entry: ("llm", _parts(entry["text"])),
        "call": lambda entry: ("llm", {"kind": "option_call", "invocation_id": entry["id"],
                                       "option_name": entry["name"], "arguments": entry["arguments"]}),
        "result": lambda entry: (entry["name"], {"kind": "option_result", "invocation_id": entry["id"],
                                                 "option_name": entry["name"], "result": entry["text"]}),
    }  # fmt: skip
    listed = []
    for number, entry in enumerate(conversation(count)):
        policy, payload = made[entry["kind"]](entry)
        listed.append({"schema": 1, "id": f"message-{number}", "policy": policy, "payload": payload})
    return dumped(listed)


def _parts(text: str) -> Entry:
    return {"kind": "parts", "parts": [{"kind": "text", "text": text}]}


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def dumped(value: object) -> bytes:
    return compact(value).encode()
