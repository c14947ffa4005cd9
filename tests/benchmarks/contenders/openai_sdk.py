"""The openai SDK's typed methods, on both of its wires."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import answered, at_once, counted, looping
from tests.benchmarks.contenders.transport import Transport
from tests.benchmarks.work import Entry, Given

REQUIREMENTS = ("openai>=3",)
IMPORTED = "import openai\nopenai.OpenAI"

CHAT = "openai.chat"
REPLIES: dict[str, Any] = {CHAT: ChatCompletion, "openai.responses": Response}


def checked(given: Given) -> Given:
    """Only its own wires."""
    if given.wire not in REPLIES:
        raise ValueError(given.wire)
    return given


def client_of(given: Given, transport: Transport) -> openai.OpenAI:
    """A client at the stub, or on the transport."""
    http_client = None if given.url else httpx2.Client(transport=transport)
    return openai.OpenAI(
        api_key="none", base_url=(given.url or "http://in.process") + "/v1", max_retries=0, http_client=http_client
    )


def item_of(wire: str, entry: Entry) -> Entry:
    """An entry of the conversation as the SDK's dictionaries."""
    kind = entry["kind"]
    if "image" in entry:
        return {"role": kind, "content": _shown(wire, entry)}
    if kind in ("system", "user", "text"):
        return {"role": {"text": "assistant"}.get(kind, kind), "content": entry["text"]}
    if wire == CHAT and kind == "call":
        function = {"name": entry["name"], "arguments": json.dumps(entry["arguments"])}
        call = {"id": entry["id"], "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if wire == CHAT:
        return {"role": "tool", "tool_call_id": entry["id"], "content": entry["text"]}
    if kind == "call":
        arguments = json.dumps(entry["arguments"])
        return {"type": "function_call", "call_id": entry["id"], "name": entry["name"], "arguments": arguments}
    return {"type": "function_call_output", "call_id": entry["id"], "output": entry["text"]}


def _shown(wire: str, entry: Entry) -> list[Entry]:
    if wire == CHAT:
        return [{"type": "text", "text": entry["text"]}, {"type": "image_url", "image_url": {"url": entry["image"]}}]
    image = {"type": "input_image", "detail": "auto", "image_url": entry["image"]}
    return [{"type": "input_text", "text": entry["text"]}, image]


def tools_of(wire: str) -> list[Any]:
    """The options as the SDK's dictionaries; its stream helpers take strict ones alone."""
    strict = [{**option, "strict": True} for option in work.OPTIONS]
    return [{"type": "function", "function": each} if wire == CHAT else {"type": "function", **each} for each in strict]


def arguments_of(wire: str, history: list[Any]) -> dict[str, Any]:
    """What the typed methods are called with."""
    return {"model": work.MODELS[wire], "messages" if wire == CHAT else "input": history, "tools": tools_of(wire)}


def history_of(given: Given, entries: list[Entry]) -> list[Any]:
    """Entries as the SDK's dictionaries; what its own server said on Responses goes back as it came."""
    history: list[Any] = []
    for entry in entries:
        is_own = given.talk == work.AGENTS and entry["kind"] in ("call", "text") and "elsewhere" not in entry
        if is_own and given.wire != CHAT:
            history += json.loads(work.reply_that_says(given.wire, entry))["output"]
        else:
            history.append(item_of(given.wire, entry))
    return history


def create_of(client: Any, wire: str) -> Any:
    """The typed method; of an async client, too."""
    return client.chat.completions.create if wire == CHAT else client.responses.create


def text_of(reply: Any) -> str:
    """What a reply says."""
    if isinstance(reply, Response):
        return reply.output_text
    return reply.choices[0].message.content or ""


def call(given: Given) -> Callable[[], tuple[bytes, str]]:
    """One typed call."""
    transport = Transport(work.reply(checked(given).wire))
    create = create_of(client_of(given, transport), given.wire)
    arguments = arguments_of(given.wire, history_of(given, work.entries_of(given)))

    return answered(transport, lambda: text_of(create(**arguments)))


def loop(given: Given) -> Callable[[], object]:
    """An agent loop that appends what the SDK returned, as its documentation does."""
    transport = Transport()
    create, arguments = create_of(client_of(checked(given), transport), given.wire), dict[str, Any]()

    def begin() -> list[Any]:
        history = history_of(given, work.start())
        arguments.update(arguments_of(given.wire, history))
        return history

    def take_turn(history: list[Any], text: str) -> None:
        reply = create(**arguments)
        if given.wire == CHAT:
            message = reply.choices[0].message
            history.append(message)
            identifier = message.tool_calls[0].id
        else:
            history.extend(reply.output)
            identifier = reply.output[-1].call_id
        history.append(item_of(given.wire, {"kind": "result", "id": identifier, "text": text}))

    return looping(given, transport, begin, take_turn, message=lambda entry: item_of(given.wire, entry))


def decode(given: Given) -> Callable[[], object]:
    """The SDK's own object of an answer, as its client makes it: without validation."""
    kind, body = REPLIES[checked(given).wire], work.reply_with_calls(given.wire)
    return lambda: kind.construct(**json.loads(body))


def stream(given: Given) -> Callable[[], object]:
    """The SDK's own accumulation."""
    client = client_of(checked(given), Transport())
    arguments = arguments_of(given.wire, history_of(given, work.conversation(10)))

    def run() -> object:
        if given.wire == CHAT:
            with client.chat.completions.stream(**arguments) as chunks:
                return chunks.get_final_completion()
        with client.responses.stream(**arguments) as events:
            return events.get_final_response()

    return counted(run, given.size)


def loopback(given: Given) -> Callable[[], object]:
    """Typed calls to the stub."""
    arguments = arguments_of(checked(given).wire, history_of(given, work.entries_of(given)))

    def connect() -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(api_key="none", base_url=given.url + "/v1", max_retries=0)

    async def ask(client: openai.AsyncOpenAI) -> str:
        return text_of(await create_of(client, given.wire)(**arguments))

    return at_once(given, call, connect, ask)


def imports(given: Given) -> tuple[str, str]:
    """A client; then one call."""
    if given.wire != CHAT:
        raise ValueError(given.wire)
    ready = f"import openai\nclient = openai.OpenAI(api_key='none', base_url={given.url + '/v1'!r})"
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Umbrella?"}]
    answer = f"client.chat.completions.create(model='gpt-4.1', messages={messages!r}).choices[0].message.content"
    return ready, f"assert {answer}"


def _evidence(given: Given, reply: Any) -> object:
    if given.wire == CHAT:
        made = [(each.id, each.function) for each in reply.choices[0].message.tool_calls]
    else:
        made = [(each.call_id, each) for each in reply.output if each.type == "function_call"]
    calls = [(identifier, function.name, json.loads(function.arguments)) for identifier, function in made]
    return work.found(given.wire, text_of(reply), calls)


TASKS = {"call": call, "loop": loop, "decode": decode, "stream": stream, "loopback": loopback}
EVIDENCE = {"decode": _evidence, "stream": _evidence}
