"""The conversations that every contender renders, the option that it offers, and the models that it asks.

Nothing but the standard library, as in `answers`, so that it runs in every contender's environment.

conversation(10)      system · user · call · result · text · user · call · result · text · user
AGENTS, as well       an image beside every tenth message, signed reasoning with every fifth, and now and then an id
                      of another maker and another provider's reply
"""

import json
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from struct import pack
from typing import Any, NamedTuple
from zlib import compress, crc32

Entry = dict[str, Any]

WIRES = ("openai.chat", "openai.responses", "anthropic.messages", "google.generate_content")
MODELS = {
    "openai.chat": "gpt-4.1",
    "openai.responses": "gpt-5",
    "anthropic.messages": "claude-sonnet-4-5",
    "google.generate_content": "gemini-2.5-flash",
}
GEMINI_3 = "gemini-3-pro-preview"
"""The other model of Google's that is asked: it wants a signature on every step's first call."""
PLAIN, AGENTS = "plain", "agents"
"""The two conversations: texts, calls and results alone, and what agents have as well."""
PATHS = {
    "openai.chat": "/v1/chat/completions",
    "openai.responses": "/v1/responses",
    "anthropic.messages": "/v1/messages",
    "google.generate_content": "/v1beta/models/gemini-2.5-flash:generateContent",
}
STREAM_PATHS = PATHS | {"google.generate_content": "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"}
MAX_TOKENS = 1024
"""Every contender asks the Anthropic wire for so many; the others' requests name no bound."""
BATCH, STEPS, ASKED, CALLERS, THREADS = 32, 50, 64, 32, 96
"""Records that are appended in one run, steps that are taken in one, requests that each who asks sends in one, callers
that share a history, threads that workers run in one."""
PHASES = ("action", "experience", "intention", "observation", "understanding", "yield")
"""Those of a thread whose chain nobody named."""
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
    an in-process transport. `concurrency` is the number of calls in flight. `talk` is the conversation, "" where a
    task has none of the two; `other_model` is asked instead of the wire's own.
    """

    wire: str
    size: int = 10
    url: str = ""
    concurrency: int = 1
    talk: str = ""
    other_model: str = ""

    @property
    def model(self) -> str:
        return self.other_model or MODELS[self.wire]


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
    return {"kind": "call", "id": f"call_{number:06d}", "name": "weather", "arguments": arguments(number)}


def result(number: int) -> Entry:
    return {"kind": "result", "id": f"call_{number:06d}", "name": "weather", "text": said(number)}


def conversation(count: int, talk: str = PLAIN) -> list[Entry]:
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
    entries = (entries + [cycle[(number - 1) % 4](number) for number in range(1, count)])[:count]
    return [*map(as_agents_have, range(count), entries)] if talk == AGENTS else entries


def answered(count: int) -> list[Entry]:
    """A conversation of at most `count` messages whose last question is answered."""
    return conversation((count - 1) // 4 * 4 + 1)


def as_agents_have(number: int, entry: Entry) -> Entry:
    """The entry with what agents have there: an image, reasoning, another maker's id, another provider's reply."""
    if number % 20 in (5, 17):
        return {**entry, "image": image(number)}
    if number % 10 in (2, 8):
        return {**entry, "reasoning": reasoning(number)}
    if number % 100 in (36, 84):
        return {**entry, "elsewhere": reasoning(number)}
    if number % 100 in (14, 66):
        return {**entry, "id": foreign_id(number), "elsewhere": None}
    if number % 100 in (15, 67):
        return {**entry, "id": foreign_id(number - 1)}
    return entry


def foreign_id(number: int) -> str:
    """An id as some gateways make them: too long for OpenAI's wires, and with a character that Anthropic's refuses."""
    return f"call_{number:06d}|fc_{_noise(str(number), 32).hex()}"


def entries_of(given: Given) -> list[Entry]:
    """The conversation as it is on a wire: what a model signs, and whether its words are told, is the vendor's own."""
    return [adapted(given, entry) for entry in conversation(given.size, given.talk or PLAIN)]


def adapted(given: Given, entry: Entry) -> Entry:
    """An entry as its wire has it.

    Chat Completions tells no reasoning. Google tells a signature without words; a model that wants one on every call
    has signed each of its own. `elsewhere` is the reasoning of another provider's reply, which this wire cannot take.
    """
    is_own_call = entry["kind"] == "call" and "elsewhere" not in entry
    signs = given.other_model == GEMINI_3 and given.talk == AGENTS and is_own_call
    told = entry.get("reasoning") or (reasoning(entry["id"]) if signs else None)
    if told is None or given.wire == "openai.chat":
        return {name: each for name, each in entry.items() if name != "reasoning"}
    return {**entry, "reasoning": {**told, "text": ""} if given.wire == "google.generate_content" else told}


def reasoning(number: int | str) -> Entry:
    """What a model thought before the message with that number: some 300 characters, and a seal of 600."""
    place = len(str(number)) + (number if isinstance(number, int) else 0)
    text = " ".join(SENTENCES[(place + each) % 4] for each in range(4))
    return {"text": text, "seal": b64encode(_noise(f"seal {number}", 448)).decode()}


def image(number: int) -> str:
    """A small picture, another for each number, as a data URL of some 1,100 characters: a PNG of 16 × 16 pixels."""
    lines = _noise(f"image {number}", 16 * 48)
    raw = b"".join(b"\0" + lines[at : at + 48] for at in range(0, len(lines), 48))
    header = pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", compress(raw)) + _chunk(b"IEND", b"")
    return "data:image/png;base64," + b64encode(b"\x89PNG\r\n\x1a\n" + chunks).decode()


def _chunk(name: bytes, data: bytes) -> bytes:
    return pack(">I", len(data)) + name + data + pack(">I", crc32(name + data))


def _noise(seed: str, count: int) -> bytes:
    """The same bytes for the same seed, which nothing makes shorter."""
    return b"".join(sha256(f"{seed} {block}".encode()).digest() for block in range(-(-count // 32)))[:count]


def last_messages() -> list[Entry]:
    """What each of the callers says who share a history."""
    return [{"kind": "user", "text": said(1_000_000 + number)} for number in range(CALLERS)]


def start() -> list[Entry]:
    """What an agent loop begins with: instructions and a question."""
    return conversation(2)


def turns(given: Given) -> list[list[Entry]]:
    """The turns of an agent's loop: a call and its result.

    As agents have it, two calls of five were thought about, and after five turns the user shows an image.
    """
    made = [[call(number), result(number)] for number in range(given.size)]
    if given.talk == AGENTS:
        for number, entries in enumerate(made):
            if number % 5 in (0, 2):
                entries[0] = adapted(given, {**entries[0], "reasoning": reasoning(number)})
            if number % 5 == 4:
                entries.append({"kind": "user", "text": said(number), "image": image(number)})
    return made


def stored(count: int) -> bytes:
    """A conversation at rest: a JSON array of sabir's documented message schema."""
    made: dict[str, Callable[[Entry], tuple[str, Entry]]] = {
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


def known_id(wire: str, identifier: str | None) -> str | None:
    """An id as the wire knows it: None on Google's, which has none."""
    return None if wire == "google.generate_content" else identifier
