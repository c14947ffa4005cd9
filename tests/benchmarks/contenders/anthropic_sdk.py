"""The anthropic SDK's typed methods."""

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
from anthropic.types import Message

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import answered, at_once, counted, looping, picture
from tests.benchmarks.contenders.transport import Transport
from tests.benchmarks.work import Entry, Given

REQUIREMENTS = ("anthropic>=2",)
IMPORTED = "import anthropic\nanthropic.Anthropic"

TOOLS: list[Any] = [
    {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
    for each in work.OPTIONS
]


def client_of(given: Given, transport: Transport) -> anthropic.Anthropic:
    """A client at the stub, or on the transport."""
    if given.wire != "anthropic.messages":
        raise ValueError(given.wire)
    http_client = None if given.url else httpx2.Client(transport=transport)
    url = given.url or "http://in.process"
    return anthropic.Anthropic(api_key="none", base_url=url, max_retries=0, http_client=http_client)


def item_of(entry: Entry) -> Entry:
    """An entry of the conversation as the SDK's dictionaries."""
    thought = [_thinking(entry["reasoning"])] if "reasoning" in entry else []
    match entry["kind"]:
        case "call":
            block = {"type": "tool_use", "id": entry["id"], "name": entry["name"], "input": entry["arguments"]}
            return {"role": "assistant", "content": [*thought, block]}
        case "result":
            block = {"type": "tool_result", "tool_use_id": entry["id"], "content": entry["text"]}
            return {"role": "user", "content": [block]}
        case kind:
            role = {"text": "assistant"}.get(kind, kind)
            shown = [_image(entry)] if "image" in entry else []
            if not thought and not shown:
                return {"role": role, "content": entry["text"]}
            return {"role": role, "content": [*thought, {"type": "text", "text": entry["text"]}, *shown]}


def _thinking(told: Entry) -> Entry:
    return {"type": "thinking", "thinking": told["text"], "signature": told["seal"]}


def _image(entry: Entry) -> Entry:
    mime, data = picture(entry)
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def arguments_of(entries: list[Entry]) -> dict[str, Any]:
    """What the typed methods are called with; the messages in it are the history that grows."""
    system, *rest = entries
    return {
        "model": work.MODELS["anthropic.messages"],
        "max_tokens": work.MAX_TOKENS,
        "system": system["text"],
        "tools": TOOLS,
        "messages": [item_of(entry) for entry in rest],
    }


def text_of(reply: Message) -> str:
    """What a reply says."""
    return "".join(block.text for block in reply.content if block.type == "text")


def call(given: Given) -> Callable[[], tuple[bytes, str]]:
    """One typed call."""
    transport = Transport(work.reply(given.wire))
    client, arguments = client_of(given, transport), arguments_of(work.entries_of(given))

    return answered(transport, lambda: text_of(client.messages.create(**arguments)))


def loop(given: Given) -> Callable[[], object]:
    """An agent loop that appends what the SDK returned, as its documentation does."""
    transport = Transport()
    client, arguments = client_of(given, transport), arguments_of(work.start())

    def begin() -> list[Any]:
        arguments["messages"] = history = arguments_of(work.start())["messages"]
        return history

    def take_turn(history: list[Any], text: str) -> None:
        reply = client.messages.create(**arguments)
        history.append({"role": "assistant", "content": reply.content})
        block = reply.content[-1]
        assert block.type == "tool_use"
        history.append(item_of({"kind": "result", "id": block.id, "text": text}))

    return looping(given, transport, begin, take_turn, hoisted=1, message=item_of)


def decode(given: Given) -> Callable[[], Message]:
    """The SDK's own object of an answer, as its client makes it: without validation."""
    client_of(given, Transport())
    body = work.reply_with_calls(given.wire)
    return lambda: Message.construct(**json.loads(body))


def stream(given: Given) -> Callable[[], Message]:
    """The SDK's own accumulation."""
    client, arguments = client_of(given, Transport()), arguments_of(work.conversation(10))

    def run() -> Message:
        with client.messages.stream(**arguments) as events:
            return events.get_final_message()

    return counted(run, given.size)


def loopback(given: Given) -> Callable[[], object]:
    """Typed calls to the stub."""
    arguments = arguments_of(work.entries_of(given))

    def connect() -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(api_key="none", base_url=given.url, max_retries=0)

    async def ask(client: anthropic.AsyncAnthropic) -> str:
        return text_of(await client.messages.create(**arguments))

    return at_once(given, call, connect, ask)


def imports(given: Given) -> tuple[str, str]:
    """A client; then one call."""
    client_of(given, Transport())
    ready = f"import anthropic\nclient = anthropic.Anthropic(api_key='none', base_url={given.url!r})"
    messages = [{"role": "user", "content": "Umbrella?"}]
    asked = f"model='claude-sonnet-4-5', max_tokens=1024, system='Be brief.', messages={messages!r}"
    return ready, f"assert client.messages.create({asked}).content[0].text"


def _evidence(given: Given, reply: Message) -> object:
    calls = [(block.id, block.name, block.input) for block in reply.content if block.type == "tool_use"]
    return work.found(given.wire, text_of(reply), calls)


TASKS = {"call": call, "loop": loop, "decode": decode, "stream": stream, "loopback": loopback}
EVIDENCE = {"decode": _evidence, "stream": _evidence}
