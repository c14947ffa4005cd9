"""pydantic-ai: `pydantic_ai.direct` over its models, on every wire of this benchmark.

An in-process transport is given as its providers' own `http_client`; at the stub they get `base_url`. Two tasks use
names that are not public, since the mapping alone has none: `render` is a model's `_map_messages`, `decode` its
`_process_response` on the SDK's object, which is made as the SDK makes it. Agents, which do more, are
measured in `conversation` alone.
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
from pydantic_ai import Agent, Tool
from pydantic_ai import messages as parts
from pydantic_ai.direct import model_request, model_request_stream, model_request_sync
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from benchmarks import answers, work
from benchmarks.contenders.doing import CALLED, Caller, Growing, InProcess, picture
from benchmarks.work import Entry, Given

REQUIREMENTS = ("pydantic-ai-slim[openai,anthropic,google]>=2.68",)
RUNNER = asyncio.Runner()
MODELS: dict[str, tuple[Any, Any, str]] = {
    "openai.chat": (OpenAIChatModel, OpenAIProvider, "/v1"),
    "openai.responses": (OpenAIResponsesModel, OpenAIProvider, "/v1"),
    "anthropic.messages": (AnthropicModel, AnthropicProvider, ""),
    "google.generate_content": (GoogleModel, GoogleProvider, ""),
}
"""Each wire's model and provider, and what the stub's address ends with."""
OFFERED = ModelRequestParameters(
    function_tools=[
        ToolDefinition(name=entry["name"], description=entry["description"], parameters_json_schema=entry["parameters"])
        for entry in work.OPTIONS
    ]
)


class PydanticAI(Caller):
    http = httpx2

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.model_class, self.provider_class, self.path = MODELS[given.wire]
        bound = ModelSettings(max_tokens=work.MAX_TOKENS)
        self.settings = bound if given.wire == "anthropic.messages" else None
        self.how: dict[str, Any] = {"model_settings": self.settings, "model_request_parameters": OFFERED}

    def connect(self, transport: InProcess | None = None) -> Any:
        if transport is None or self.given.url:
            url = (self.given.url or "http://nowhere.invalid") + self.path
            return self.model_class(self.given.model, provider=self.provider_class(api_key="none", base_url=url))
        http = transport.async_client(timeout=60)
        return self.model_class(self.given.model, provider=self.provider_class(api_key="none", http_client=http))

    def ask(self, client: Any, messages: list[Any]) -> ModelResponse:
        return model_request_sync(client, messages, **self.how)

    async def ask_async(self, client: Any, messages: list[Any]) -> ModelResponse:
        return await model_request(client, messages, **self.how)

    def item(self, entry: Entry) -> ModelMessage:
        thought, sealed = self.signed(entry)
        match entry["kind"]:
            case "system":
                return ModelRequest(parts=[parts.SystemPromptPart(entry["text"])])
            case "user" if "image" in entry:
                mime, data = picture(entry)
                shown = parts.BinaryContent(b64decode(data), media_type=mime)
                return ModelRequest(parts=[parts.UserPromptPart([entry["text"], shown])])
            case "user":
                return ModelRequest(parts=[parts.UserPromptPart(entry["text"])])
            case "call":
                call = parts.ToolCallPart(entry["name"], entry["arguments"], entry["id"], **sealed)
                return ModelResponse(parts=[*thought, call])
            case "result":
                return came(entry["id"], entry["text"])
        return ModelResponse(parts=[*thought, parts.TextPart(entry["text"], **sealed)])

    def signed(self, entry: Entry) -> tuple[list[parts.ThinkingPart], dict[str, Any]]:
        """What was thought, as a part of its own, or as details of the part that it led to."""
        told = entry.get("reasoning")
        if told is None:
            return [], {}
        if self.wire == "google.generate_content":
            return [], {"provider_name": "google", "provider_details": {"thought_signature": told["seal"]}}
        is_openai = self.wire.startswith("openai")
        identifier, name = (answers.reasoning_item(told)["id"], "openai") if is_openai else (None, "anthropic")
        return [parts.ThinkingPart(told["text"], id=identifier, signature=told["seal"], provider_name=name)], {}

    def append(self, messages: list[Any], reply: ModelResponse, text: str) -> None:
        messages.extend((reply, came(reply.tool_calls[0].tool_call_id, text)))

    def text(self, reply: ModelResponse) -> str:
        return reply.text or ""

    def calls(self, reply: ModelResponse) -> list[Any]:
        return [(each.tool_call_id, each.tool_name, each.args_as_dict()) for each in reply.tool_calls]

    def render(self) -> Callable[[], object]:
        """The messages → what the model gives to the SDK's method."""
        asked, settings = self.connect(), self.settings or ModelSettings()
        messages = self.history(self.entries())
        if self.wire == "anthropic.messages":
            return lambda: without_waiting(asked._map_message(messages, OFFERED, settings))
        if self.wire == "openai.responses":
            return lambda: without_waiting(asked._map_messages(messages, settings, OFFERED))
        return lambda: without_waiting(asked._map_messages(messages, OFFERED))

    def rendered(self, returned: Any) -> object:
        """The mapped messages by the wire's names; all wires but chat have the instructions apart."""
        match self.wire:
            case "openai.chat":
                return {"messages": returned}
            case "openai.responses":
                return {"instructions": returned[0] if isinstance(returned[0], str) else "", "input": returned[1]}
            case "anthropic.messages":
                return {"system": returned[0], "messages": returned[1]}
        return {"systemInstruction": returned[0], "contents": returned[1]}

    def decoder(self) -> Callable[[bytes], ModelResponse]:
        """The bytes of a reply → a response of pydantic-ai."""
        process, settings = self.connect()._process_response, self.settings or ModelSettings()
        processes: dict[str, Callable[[Any], ModelResponse]] = {
            "openai.chat": lambda fields: process(ChatCompletion.construct(**fields)),
            "openai.responses": lambda fields: process(Response.construct(**fields), settings, OFFERED),
            "anthropic.messages": lambda fields: process(BetaMessage.construct(**fields), OFFERED, settings),
            "google.generate_content": lambda fields: process(GenerateContentResponse.model_validate(fields), OFFERED),
        }
        made = processes[self.wire]
        return lambda body: made(json.loads(body))

    def streamed(self, client: Any, messages: list[Any]) -> ModelResponse:

        async def read() -> ModelResponse:
            async with model_request_stream(client, messages, **self.how) as events:
                async for _ in events:
                    pass
            return events.get()

        return RUNNER.run(read())

    def conversation(self) -> Callable[[], object]:
        """A question to an agent with a history, as its documentation has it: `message_history` and `all_messages`."""
        model = self.connect(self.in_process(answers.reply(self.wire)))
        (entry,) = work.OPTIONS
        tool = Tool.from_schema(lambda **arguments: "", entry["name"], entry["description"], entry["parameters"])
        agent = Agent(model, tools=[tool], model_settings=self.settings)
        base = self.history(work.answered(self.given.size))

        def ask(history: list[list[ModelMessage]]) -> object:
            result = RUNNER.run(agent.run(work.said(1), message_history=history[0]))
            history[0] = result.all_messages()
            return {"text": result.output}

        return Growing(lambda: [base], ask)

    def imports(self) -> tuple[str, str]:
        family = self.provider_class.__module__.rpartition(".")[2]
        model, provider = self.model_class.__name__, self.provider_class.__name__
        ready = (
            "from pydantic_ai.direct import model_request_sync\n"
            "from pydantic_ai.messages import ModelRequest\n"
            f"from pydantic_ai.models.{family} import {model}\n"
            f"from pydantic_ai.providers.{family} import {provider}\n"
            f"provider = {provider}(api_key='none', base_url={self.given.url + self.path!r})\n"
            f"model = {model}({self.given.model!r}, provider=provider)\n"
            f"settings = {self.settings!r}\n"
            "question = [ModelRequest.user_text_prompt('Umbrella today?')]\n"
        )
        return ready, "print(model_request_sync(model, question, model_settings=settings).text)\n"


def came(identifier: str, text: str) -> ModelMessage:
    """What came of the call with that id; Google's calls have none, and pydantic-ai gives them one."""
    return ModelRequest(parts=[parts.ToolReturnPart(work.OPTIONS[0]["name"], text, identifier)])


def without_waiting(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that waits for nothing, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stopped:
        return stopped.value
    raise RuntimeError(f"{coroutine} waited; expected a mapping that waits for nothing; use an event loop")


IMPORTED = "import pydantic_ai\npydantic_ai.Agent"
CONTENDERS = {"pydantic_ai": PydanticAI.contender("render", "conversation", *CALLED, imported=IMPORTED)}
