"""langchain: its chat models, with the option bound to them, on every wire of this benchmark.

An in-process transport is given as OpenAI's `http_client` and Google's `client_args`; Anthropic's model takes none: an
SDK client is put where the model keeps its own. Two tasks use names that are not public, since the mapping alone has
none: `render` is a model's request payload, `decode` what it makes of the SDK's object, which is made as the SDK makes
it. Google's option is bound without the one keyword that langchain would warn of at each call.
"""

import json
from collections.abc import Callable
from typing import Any

import httpx
import httpx2
from anthropic import Anthropic
from anthropic.types import Message as AnthropicMessage
from google.genai.types import GenerateContentResponse
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_google_genai.chat_models import _response_to_result
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import _construct_lc_result_from_responses_api
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import InProcess, answered, at_once, counted, looping, picture
from tests.benchmarks.work import Entry, Given

REQUIREMENTS = ("langchain-openai>=1.7", "langchain-anthropic>=1.7", "langchain-google-genai>=4.4", "httpx2")
IMPORTED = "from langchain_core import messages, language_models\nlanguage_models.BaseChatModel"

CLASSES: dict[str, tuple[Any, str]] = {
    "openai.chat": (ChatOpenAI, "/v1"),
    "openai.responses": (ChatOpenAI, "/v1"),
    "anthropic.messages": (ChatAnthropic, ""),
    "google.generate_content": (ChatGoogleGenerativeAI, ""),
}
"""Each wire's chat model, and what the stub's address ends with."""
SETTINGS: dict[str, dict[str, Any]] = {
    "openai.responses": {"use_responses_api": True},
    "anthropic.messages": {"max_tokens": work.MAX_TOKENS},
}


def in_process(given: Given, *answers: bytes) -> InProcess:
    """A transport for the wire's SDK: Google's client is of httpx where that is installed."""
    return InProcess(httpx if given.wire == "google.generate_content" else httpx2, *answers)


def model(given: Given, transport: InProcess | None = None) -> BaseChatModel:
    """The wire's chat model, at the stub or on the transport."""
    chat_class, path = CLASSES[given.wire]
    named = {"model": given.model, "api_key": "none", **SETTINGS.get(given.wire, {})}
    if transport is None or given.url:
        made: BaseChatModel = chat_class(**named, base_url=(given.url or "http://nowhere.invalid") + path)
        return made
    mock = transport.http.MockTransport(transport)
    if chat_class is ChatGoogleGenerativeAI:
        return ChatGoogleGenerativeAI(**named, client_args={"transport": mock})
    if chat_class is ChatOpenAI:
        return ChatOpenAI(**named, http_client=httpx2.Client(transport=mock))
    anthropic = ChatAnthropic(**named)
    anthropic.__dict__["_client"] = Anthropic(api_key="none", http_client=httpx2.Client(transport=mock))
    return anthropic


def offering(given: Given, transport: InProcess | None = None) -> Any:
    """The wire's chat model with the option bound to it."""
    ignored = {"additionalProperties"} if given.wire == "google.generate_content" else set[str]()
    offered = [
        {**entry, "parameters": {key: value for key, value in entry["parameters"].items() if key not in ignored}}
        for entry in work.OPTIONS
    ]
    asked: Any = model(given, transport)
    return asked.bind_tools([{"type": "function", "function": entry} for entry in offered])


def message(wire: str, entry: Entry) -> BaseMessage:
    """The entry as one of langchain's messages."""
    match entry["kind"]:
        case "system":
            return SystemMessage(entry["text"])
        case "user" if "image" in entry:
            mime, data = picture(entry)
            shown = {"type": "image", "base64": data, "mime_type": mime}
            return HumanMessage([{"type": "text", "text": entry["text"]}, shown])
        case "user":
            return HumanMessage(entry["text"])
        case "call":
            made = {"name": entry["name"], "args": entry["arguments"], "id": entry["id"]}
            thought, further = _signed(wire, entry)
            return AIMessage(thought or "", tool_calls=[made], additional_kwargs=further)
        case "result":
            return came(entry["id"], entry["text"])
        case _ if "reasoning" in entry:
            thought, _ = _signed(wire, entry)
            said: dict[str, Any] = {"type": "text", "text": entry["text"]}
            if wire == "google.generate_content":
                said["extras"] = {"signature": entry["reasoning"]["seal"]}
            return AIMessage([*thought, said])
        case _:
            return AIMessage(entry["text"])


def _signed(wire: str, entry: Entry) -> tuple[list[Any], dict[str, Any]]:
    """What was thought, as a block of its own; on Google's wire what a call's message holds beside it."""
    told = entry.get("reasoning")
    if told is None:
        return [], {}
    if wire == "google.generate_content":
        return [], {"__gemini_function_call_thought_signatures__": {entry["id"]: told["seal"]}} if "id" in entry else {}
    if wire == "anthropic.messages":
        return [{"type": "thinking", "thinking": told["text"], "signature": told["seal"]}], {}
    return [work.reasoning_item(told)], {}


def came(identifier: str | None, text: str) -> BaseMessage:
    """What came of the call with that id; Google's calls have none, and langchain gives them one."""
    return ToolMessage(text, tool_call_id=identifier, name=work.OPTIONS[0]["name"])


def history(given: Given, entries: list[Entry]) -> list[BaseMessage]:
    """The entries as langchain's messages."""
    return [message(given.wire, entry) for entry in entries]


def render(given: Given) -> Callable[[], object]:
    """The messages → what the chat model gives to the SDK's method."""
    asked: Any = model(given)
    messages = history(given, work.entries_of(given))
    if given.wire == "google.generate_content":
        return lambda: asked._prepare_request(messages)
    return lambda: asked._get_request_payload(messages)


def rendered(given: Given, returned: Any) -> object:
    """The payload by the wire's names; Google's holds the SDK's objects."""
    if given.wire != "google.generate_content":
        return returned
    contents = [each.model_dump(mode="json", exclude_none=True) for each in returned["contents"]]
    instruction = returned["config"].system_instruction.model_dump(mode="json", exclude_none=True)
    return {"systemInstruction": instruction, "contents": contents}


def call(given: Given) -> Callable[[], tuple[bytes, str]]:
    """One whole call of a chat model to which the option is bound."""
    transport = in_process(given, work.reply(given.wire))
    bound, messages = offering(given, transport), history(given, work.entries_of(given))

    return answered(transport, lambda: bound.invoke(messages).text)


def loop(given: Given) -> Callable[[], object]:
    """An agent's loop as the documentation has it: the reply is appended, then what came of its call."""
    transport = in_process(given)
    bound = offering(given, transport)

    def take_turn(messages: list[Any], text: str) -> None:
        reply = bound.invoke(messages)
        messages.extend((reply, came(reply.tool_calls[0]["id"], text)))

    return looping(given, transport, lambda: history(given, work.start()), take_turn)


def decode(given: Given) -> Callable[[], object]:
    """The bytes of a reply → a message of langchain."""
    asked: Any = model(given)
    body = work.reply_with_calls(given.wire)
    results: dict[str, Callable[[Any], Any]] = {
        "openai.chat": lambda fields: asked._create_chat_result(ChatCompletion.construct(**fields)),
        "openai.responses": lambda fields: _construct_lc_result_from_responses_api(Response.construct(**fields)),
        "anthropic.messages": lambda fields: asked._format_output(AnthropicMessage.construct(**fields)),
        "google.generate_content": lambda fields: _response_to_result(GenerateContentResponse.model_validate(fields)),
    }
    result = results[given.wire]
    return lambda: result(json.loads(body)).generations[0].message


def stream(given: Given) -> Callable[[], object]:
    """A stream of the stub's, every chunk of it, added up to one message as the documentation does it."""
    bound, messages = offering(given), history(given, work.conversation(10))

    def run() -> AIMessageChunk:
        chunks = bound.stream(messages)
        whole = next(chunks)
        for chunk in chunks:
            whole += chunk
        return whole

    return counted(run, given.size)


def said(given: Given, reply: AIMessage) -> object:
    """The text and the calls of a reply."""
    return work.found(given.wire, reply.text, [(each["id"], each["name"], each["args"]) for each in reply.tool_calls])


def loopback(given: Given) -> Callable[[], object]:
    """Calls to the stub."""
    messages = history(given, work.entries_of(given))

    async def ask(bound: Any) -> str:
        text: str = (await bound.ainvoke(messages)).text
        return text

    return at_once(given, call, lambda: offering(given), ask)


def imports(given: Given) -> tuple[str, str]:
    """A chat model made ready; then its first answer."""
    chat_class, path = CLASSES[given.wire]
    settings = {
        "model": work.MODELS[given.wire], "api_key": "none", "base_url": given.url + path,
        **SETTINGS.get(given.wire, {}),
    }  # fmt: skip
    package = chat_class.__module__.partition(".")[0]
    ready = f"from {package} import {chat_class.__name__}\nmodel = {chat_class.__name__}(**{settings!r})\n"
    return ready, "print(model.invoke('Umbrella today?').text)\n"


TASKS: dict[str, Callable[[Given], Callable[[], object]]] = {
    "render": render, "call": call, "loop": loop, "decode": decode, "stream": stream, "loopback": loopback,
}  # fmt: skip
EVIDENCE = {"render": rendered, "decode": said, "stream": said}
