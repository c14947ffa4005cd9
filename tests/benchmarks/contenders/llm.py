"""llm: its models' `prompt(messages=…)`; OpenAI's come with it, Anthropic's and Google's are the author's plugins.

`render` is a model's own `build_messages`, with the system text beside it. OpenAI's models take `api_base` but no
client, and make one for each call: on an in-process transport they get one by `get_client`, overridden, and keep it.
Anthropic's always stream, so that no whole answer can be given to them: they do `render` and `stream`. Google's have
their address in the code: `render` alone. `decode` is left out: nothing but a call decodes. Two
private names are called where no public method holds the mapping. llm-anthropic asks for anthropic<2.
"""

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import httpx2
import llm
from llm.default_plugins.openai_models import AsyncChat, AsyncResponses, Chat, Responses
from llm.parts import AttachmentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from llm_anthropic import ClaudeMessages
from llm_gemini import GeminiPro
from openai import OpenAI

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import answered, at_once, counted, looping, picture
from tests.benchmarks.contenders.transport import Transport
from tests.benchmarks.work import Entry, Given

REQUIREMENTS = ("llm>=0.36", "llm-anthropic>=0.30", "llm-gemini>=0.35", "httpx2")
IMPORTED = "import llm\nllm.Model"
OPENAI: dict[str, tuple[Any, Any]] = {"openai.chat": (Chat, AsyncChat), "openai.responses": (Responses, AsyncResponses)}
"""The models that come with llm."""
OFFERED = [
    llm.Tool(name=entry["name"], description=entry["description"], input_schema=entry["parameters"])
    for entry in work.OPTIONS
]


def model(given: Given, transport: Transport | None = None) -> Any:
    """The wire's model, at the stub or on the transport."""
    name = given.model
    if given.wire == "google.generate_content":
        return GeminiPro(name)
    if given.wire == "anthropic.messages":
        return ClaudeMessages(name, base_url=given.url, default_max_tokens=work.MAX_TOKENS)
    made = OPENAI[given.wire][0](name, model_name=name, api_base=given.url + "/v1", supports_tools=True)
    if transport is not None and not given.url:
        client = OpenAI(api_key="none", http_client=httpx2.Client(transport=transport))
        made.get_client = lambda key: client
    return made


def message(wire: str, entry: Entry) -> llm.Message:
    """The entry as one of llm's messages."""
    match entry["kind"]:
        case "system":
            return llm.system(entry["text"])
        case "user" if "image" in entry:
            mime, data = picture(entry)
            return llm.user(
                entry["text"], AttachmentPart(attachment=llm.Attachment(type=mime, content=b64decode(data)))
            )
        case "user":
            return llm.user(entry["text"])
        case "call":
            thought, sealed = _signed(wire, entry)
            call = ToolCallPart(entry["name"], entry["arguments"], entry["id"], provider_metadata=sealed)
            return llm.assistant(*thought, call)
        case "result":
            return came(entry["id"], entry["text"])
        case _:
            thought, sealed = _signed(wire, entry)
            return llm.assistant(*thought, TextPart(entry["text"], provider_metadata=sealed))


def _signed(wire: str, entry: Entry) -> tuple[list[ReasoningPart], dict[str, Any] | None]:
    """What was thought, as a part of its own, or as metadata of the part that it led to."""
    told = entry.get("reasoning")
    if told is None:
        return [], None
    if wire == "google.generate_content":
        return [], {"gemini": {"thoughtSignature": told["seal"]}}
    if wire == "anthropic.messages":
        return [ReasoningPart(told["text"], provider_metadata={"anthropic": {"signature": told["seal"]}})], None
    item = work.reasoning_item(told)
    return [ReasoningPart(told["text"], provider_metadata={"openai": item})], None


def came(identifier: str | None, text: str) -> llm.Message:
    """What came of the call with that id."""
    return llm.tool_message(ToolResultPart(work.OPTIONS[0]["name"], text, identifier))


def history(given: Given, entries: list[Entry]) -> list[llm.Message]:
    """The entries as llm's messages."""
    return [message(given.wire, entry) for entry in entries]


def render(given: Given) -> Callable[[], object]:
    """The messages → the system text and the list that the model sends; Google's model takes the text apart."""
    asked, entries = model(given), work.entries_of(given)
    apart = entries[0]["text"] if given.wire == "google.generate_content" else None
    prompt = llm.Prompt("", asked, system=apart, messages=history(given, entries[1:] if apart else entries))
    renders: dict[str, Callable[[], object]] = {
        "openai.chat": lambda: {"messages": asked.build_messages(prompt, None)},
        "openai.responses": lambda: asked._build_responses_input(prompt),
        "anthropic.messages": lambda: {
            "system": asked._extract_system(prompt),
            "messages": asked.build_messages(prompt, None),
        },
        "google.generate_content": lambda: asked.build_request_body(prompt, None),
    }
    return renders[given.wire]


def rendered(given: Given, returned: Any) -> object:
    """The messages by the wire's names."""
    return {"input": returned[0], "instructions": returned[1]} if isinstance(returned, tuple) else returned


def whole(given: Given, transport: Transport | None = None) -> Any:
    """A model that answers calls as a whole; ValueError where llm's only streams."""
    if given.wire not in OPENAI:
        raise ValueError(f"{given.wire}: llm's model of it only streams")
    return model(given, transport)


def call(given: Given) -> Callable[[], tuple[bytes, str]]:
    """One whole prompt with the option."""
    transport = Transport(work.reply(given.wire))
    asked, messages = whole(given, transport), history(given, work.entries_of(given))

    return answered(transport, lambda: asked.prompt(messages=messages, tools=OFFERED, stream=False, key="none").text())


def loop(given: Given) -> Callable[[], object]:
    """An agent's loop: the response's messages are appended, then what came of its call."""
    transport = Transport()
    asked = whole(given, transport)

    def take_turn(messages: list[Any], text: str) -> None:
        response = asked.prompt(messages=messages, tools=OFFERED, stream=False, key="none")
        messages.extend((*response.messages(), came(response.tool_calls()[0].tool_call_id, text)))

    return looping(given, transport, lambda: history(given, work.start()), take_turn)


def stream(given: Given) -> Callable[[], object]:
    """A stream of the stub's, every piece of it, to the whole response."""
    if given.wire == "google.generate_content":
        raise ValueError(f"{given.wire}: llm's model of it has its address in the code")
    asked, messages = model(given), history(given, work.conversation(10))

    def run() -> llm.Response:
        response = asked.prompt(messages=messages, tools=OFFERED, stream=True, key="none")
        for _ in response:
            pass
        return response

    return counted(run, given.size)


def said(given: Given, response: llm.Response) -> object:
    """The text and the calls of a response; llm-anthropic adds a space to a text that a call follows."""
    calls = [(made.tool_call_id, made.name, made.arguments) for made in response.tool_calls()]
    text = response.text()
    return work.found(given.wire, text[:-1] if given.wire == "anthropic.messages" and calls else text, calls)


def loopback(given: Given) -> Callable[[], object]:
    """Calls to the stub."""
    whole(given)
    name, messages = work.MODELS[given.wire], history(given, work.entries_of(given))

    def connect() -> Any:
        return OPENAI[given.wire][1](name, model_name=name, api_base=given.url + "/v1", supports_tools=True)

    async def ask(asked: Any) -> str:
        text: str = await asked.prompt(messages=messages, tools=OFFERED, stream=False, key="none").text()
        return text

    return at_once(given, call, connect, ask)


def imports(given: Given) -> tuple[str, str]:
    """OpenAI's model made ready; then its first answer."""
    if given.wire not in OPENAI:
        raise ValueError(f"{given.wire}: llm's model of it only streams")
    name, chosen = work.MODELS[given.wire], OPENAI[given.wire][0].__name__
    ready = (
        f"from llm.default_plugins.openai_models import {chosen}\n"
        f"model = {chosen}({name!r}, model_name={name!r}, api_base={given.url + '/v1'!r})\n"
    )
    return ready, "print(model.prompt('Umbrella today?', stream=False, key='none').text())\n"


TASKS: dict[str, Callable[[Given], Callable[[], object]]] = {
    "render": render, "call": call, "loop": loop, "stream": stream, "loopback": loopback,
}  # fmt: skip
EVIDENCE = {"render": rendered, "stream": said}
