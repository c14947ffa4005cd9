"""pydantic-ai: `pydantic_ai.direct` over its models, on every wire of this benchmark.

An in-process transport is given as its providers' own `http_client`; at the stub they get `base_url`. Two tasks use
names that are not public, since the mapping alone has none: `render` is a model's `_map_messages`, `decode` its
`_process_response` on the SDK's object, which is made as the SDK makes it. Agents, which do more, are not measured.
"""

import asyncio
import json
from base64 import b64decode
from collections.abc import Callable, Coroutine
from typing import Any

import httpx2
from anthropic.types.beta import BetaMessage
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic_ai.direct import model_request, model_request_stream, model_request_sync
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import answered, at_once, counted, looping, picture
from tests.benchmarks.contenders.transport import Transport
from tests.benchmarks.work import Entry, Given

REQUIREMENTS = ("pydantic-ai-slim[openai,anthropic,google]>=2.68",)
IMPORTED = "import pydantic_ai\npydantic_ai.Agent"
RUNNER = asyncio.Runner()

MODELS: dict[str, tuple[Any, Any, str]] = {
    "openai.chat": (OpenAIChatModel, OpenAIProvider, "/v1"),
    "openai.responses": (OpenAIResponsesModel, OpenAIProvider, "/v1"),
    "anthropic.messages": (AnthropicModel, AnthropicProvider, ""),
    "google.generate_content": (GoogleModel, GoogleProvider, ""),
}
"""Each wire's model and provider, and what the stub's address ends with."""
OPENAI = ("openai.chat", "openai.responses")
SETTINGS = {"anthropic.messages": ModelSettings(max_tokens=work.MAX_TOKENS)}
OFFERED = ModelRequestParameters(
    function_tools=[
        ToolDefinition(name=entry["name"], description=entry["description"], parameters_json_schema=entry["parameters"])
        for entry in work.OPTIONS
    ]
)


def model(given: Given, transport: Transport | None = None) -> Model:
    """The wire's model, at the stub or on the transport."""
    model_class, provider_class, path = MODELS[given.wire]
    if transport is None or given.url:
        provider = provider_class(api_key="none", base_url=(given.url or "http://nowhere.invalid") + path)
    else:
        http = httpx2.AsyncClient(transport=transport, timeout=60)
        provider = provider_class(api_key="none", http_client=http)
    made: Model = model_class(given.model, provider=provider)
    return made


def message(wire: str, entry: Entry) -> ModelMessage:
    """The entry as one of pydantic-ai's messages."""
    match entry["kind"]:
        case "system":
            return ModelRequest(parts=[SystemPromptPart(entry["text"])])
        case "user" if "image" in entry:
            mime, data = picture(entry)
            return ModelRequest(
                parts=[UserPromptPart([entry["text"], BinaryContent(b64decode(data), media_type=mime)])]
            )
        case "user":
            return ModelRequest(parts=[UserPromptPart(entry["text"])])
        case "call":
            thought, sealed = _signed(wire, entry)
            call = ToolCallPart(entry["name"], entry["arguments"], entry["id"], **sealed)
            return ModelResponse(parts=[*thought, call])
        case "result":
            return came(entry["id"], entry["text"])
        case _:
            thought, sealed = _signed(wire, entry)
            return ModelResponse(parts=[*thought, TextPart(entry["text"], **sealed)])


def _signed(wire: str, entry: Entry) -> tuple[list[ThinkingPart], dict[str, Any]]:
    """What was thought, as a part of its own, or as details of the part that it led to."""
    told = entry.get("reasoning")
    if told is None:
        return [], {}
    if wire == "google.generate_content":
        return [], {"provider_name": "google", "provider_details": {"thought_signature": told["seal"]}}
    identifier, name = (work.reasoning_item(told)["id"], "openai") if wire in OPENAI else (None, "anthropic")
    return [ThinkingPart(told["text"], id=identifier, signature=told["seal"], provider_name=name)], {}


def came(identifier: str, text: str) -> ModelMessage:
    """What came of the call with that id; Google's calls have none, and pydantic-ai gives them one."""
    return ModelRequest(parts=[ToolReturnPart(work.OPTIONS[0]["name"], text, identifier)])


def history(given: Given, entries: list[Entry]) -> list[ModelMessage]:
    """The entries as pydantic-ai's messages."""
    return [message(given.wire, entry) for entry in entries]


def without_waiting(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that waits for nothing, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stopped:
        return stopped.value
    raise RuntimeError(f"{coroutine} waited; expected a mapping that waits for nothing; use an event loop")


def render(given: Given) -> Callable[[], object]:
    """The messages → what the model gives to the SDK's method."""
    asked: Any = model(given)
    messages, settings = history(given, work.entries_of(given)), SETTINGS.get(given.wire, ModelSettings())
    if given.wire == "anthropic.messages":
        return lambda: without_waiting(asked._map_message(messages, OFFERED, settings))
    if given.wire == "openai.responses":
        return lambda: without_waiting(asked._map_messages(messages, settings, OFFERED))
    return lambda: without_waiting(asked._map_messages(messages, OFFERED))


def rendered(given: Given, returned: Any) -> object:
    """The mapped messages by the wire's names; all wires but chat have the instructions apart."""
    match given.wire:
        case "openai.chat":
            return {"messages": returned}
        case "openai.responses":
            instructions = returned[0] if isinstance(returned[0], str) else ""
            return {"instructions": instructions, "input": returned[1]}
        case "anthropic.messages":
            return {"system": returned[0], "messages": returned[1]}
        case _:
            return {"systemInstruction": returned[0], "contents": returned[1]}


def call(given: Given) -> Callable[[], tuple[bytes, str | None]]:
    """One whole call with the option."""
    transport = Transport(work.reply(given.wire))
    asked, messages = model(given, transport), history(given, work.entries_of(given))
    settings = SETTINGS.get(given.wire)

    return answered(
        transport,
        lambda: model_request_sync(asked, messages, model_settings=settings, model_request_parameters=OFFERED).text,
    )


def loop(given: Given) -> Callable[[], object]:
    """An agent's loop by hand: the response is appended, then what came of its call."""
    transport = Transport()
    asked, settings = model(given, transport), SETTINGS.get(given.wire)

    def take_turn(messages: list[Any], text: str) -> None:
        response = model_request_sync(asked, messages, model_settings=settings, model_request_parameters=OFFERED)
        messages.extend((response, came(response.tool_calls[0].tool_call_id, text)))

    return looping(given, transport, lambda: history(given, work.start()), take_turn)


def decode(given: Given) -> Callable[[], object]:
    """The bytes of a reply → a response of pydantic-ai."""
    asked: Any = model(given)
    body, settings = work.reply_with_calls(given.wire), SETTINGS.get(given.wire, ModelSettings())
    runs: dict[str, Callable[[], ModelResponse]] = {
        "openai.chat": lambda: asked._process_response(ChatCompletion.construct(**json.loads(body))),
        "openai.responses": lambda: asked._process_response(Response.construct(**json.loads(body)), settings, OFFERED),
        "anthropic.messages": lambda: asked._process_response(
            BetaMessage.construct(**json.loads(body)), OFFERED, settings
        ),
        "google.generate_content": lambda: asked._process_response(
            GenerateContentResponse.model_validate(json.loads(body)), OFFERED
        ),
    }
    return runs[given.wire]


def stream(given: Given) -> Callable[[], object]:
    """A stream of the stub's, every event of it, to the whole response."""
    asked, messages, settings = model(given), history(given, work.conversation(10)), SETTINGS.get(given.wire)

    async def read() -> ModelResponse:
        async with model_request_stream(
            asked, messages, model_settings=settings, model_request_parameters=OFFERED
        ) as events:
            async for _ in events:
                pass
        return events.get()

    def run() -> ModelResponse:
        return RUNNER.run(read())

    return counted(run, given.size)


def said(given: Given, response: ModelResponse) -> object:
    """The text and the calls of a response."""
    calls = [(each.tool_call_id, each.tool_name, each.args_as_dict()) for each in response.tool_calls]
    return work.found(given.wire, response.text or "", calls)


def loopback(given: Given) -> Callable[[], object]:
    """Calls to the stub."""
    messages, settings = history(given, work.entries_of(given)), SETTINGS.get(given.wire)

    async def ask(asked: Model) -> str:
        response = await model_request(asked, messages, model_settings=settings, model_request_parameters=OFFERED)
        return response.text or ""

    return at_once(given, call, lambda: model(given), ask)


def imports(given: Given) -> tuple[str, str]:
    """A model made ready; then its first answer."""
    model_class, provider_class, path = MODELS[given.wire]
    family = provider_class.__module__.rpartition(".")[2]
    ready = (
        "from pydantic_ai.direct import model_request_sync\n"
        "from pydantic_ai.messages import ModelRequest\n"
        f"from pydantic_ai.models.{family} import {model_class.__name__}\n"
        f"from pydantic_ai.providers.{family} import {provider_class.__name__}\n"
        f"provider = {provider_class.__name__}(api_key='none', base_url={given.url + path!r})\n"
        f"model = {model_class.__name__}({work.MODELS[given.wire]!r}, provider=provider)\n"
        f"settings = {SETTINGS.get(given.wire)!r}\n"
        "question = [ModelRequest.user_text_prompt('Umbrella today?')]\n"
    )
    return ready, "print(model_request_sync(model, question, model_settings=settings).text)\n"


TASKS: dict[str, Callable[[Given], Callable[[], object]]] = {
    "render": render, "call": call, "loop": loop, "decode": decode, "stream": stream, "loopback": loopback,
}  # fmt: skip
EVIDENCE = {"render": rendered, "decode": said, "stream": said}
