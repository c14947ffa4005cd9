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
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_google_genai.chat_models import _response_to_result
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import _construct_lc_result_from_responses_api
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from benchmarks import answers, work
from benchmarks.contenders.doing import CALLED, Caller, InProcess, picture
from benchmarks.work import Entry, Given

REQUIREMENTS = ("langchain-openai>=1.7", "langchain-anthropic>=1.7", "langchain-google-genai>=4.4", "httpx2")
GOOGLE = "google.generate_content"
CLASSES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "openai.chat": (ChatOpenAI, "/v1", {}),
    "openai.responses": (ChatOpenAI, "/v1", {"use_responses_api": True}),
    "anthropic.messages": (ChatAnthropic, "", {"max_tokens": work.MAX_TOKENS}),
    GOOGLE: (ChatGoogleGenerativeAI, "", {}),
}
"""Each wire's chat model, what the stub's address ends with, and its settings."""


class LangChain(Caller):
    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.chat_class, self.path, settings = CLASSES[given.wire]
        self.named = {"model": given.model, "api_key": "none", **settings}
        self.http = httpx if given.wire == GOOGLE else httpx2  # where httpx is installed, Google's client is of it

    def model(self, transport: InProcess | None = None) -> Any:
        if transport is None or self.given.url:
            return self.chat_class(**self.named, base_url=(self.given.url or "http://nowhere.invalid") + self.path)
        if self.chat_class is ChatGoogleGenerativeAI:
            return ChatGoogleGenerativeAI(**self.named, client_args={"transport": httpx.MockTransport(transport)})
        if self.chat_class is ChatOpenAI:
            return ChatOpenAI(**self.named, http_client=transport.client())
        anthropic = ChatAnthropic(**self.named)
        anthropic.__dict__["_client"] = Anthropic(api_key="none", http_client=transport.client())
        return anthropic

    def connect(self, transport: InProcess | None = None) -> Any:
        ignored = {"additionalProperties"} if self.wire == GOOGLE else set[str]()
        offered = [
            {**entry, "parameters": {key: value for key, value in entry["parameters"].items() if key not in ignored}}
            for entry in work.OPTIONS
        ]
        return self.model(transport).bind_tools([{"type": "function", "function": entry} for entry in offered])

    def ask(self, client: Any, messages: list[Any]) -> AIMessage:
        return client.invoke(messages)

    async def ask_async(self, client: Any, messages: list[Any]) -> AIMessage:
        return await client.ainvoke(messages)

    def item(self, entry: Entry) -> BaseMessage:
        thought, further = self.signed(entry)
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
                return AIMessage(thought or "", tool_calls=[made], additional_kwargs=further)
            case "result":
                return came(entry["id"], entry["text"])
            case _ if "reasoning" in entry:
                said: dict[str, Any] = {"type": "text", "text": entry["text"]}
                if self.wire == GOOGLE:
                    said["extras"] = {"signature": entry["reasoning"]["seal"]}
                return AIMessage([*thought, said])
        return AIMessage(entry["text"])

    def signed(self, entry: Entry) -> tuple[list[Any], dict[str, Any]]:
        """What was thought, as a block of its own; on Google's wire what a call's message holds beside it."""
        told = entry.get("reasoning")
        if told is None:
            return [], {}
        if self.wire == GOOGLE:
            signatures = {entry["id"]: told["seal"]} if "id" in entry else None
            return [], {"__gemini_function_call_thought_signatures__": signatures} if signatures else {}
        if self.wire == "anthropic.messages":
            return [{"type": "thinking", "thinking": told["text"], "signature": told["seal"]}], {}
        return [answers.reasoning_item(told)], {}

    def append(self, messages: list[Any], reply: AIMessage, text: str) -> None:
        messages.extend((reply, came(reply.tool_calls[0]["id"], text)))

    def text(self, reply: AIMessage) -> str:
        return reply.text

    def calls(self, reply: AIMessage) -> list[Any]:
        return [(each["id"], each["name"], each["args"]) for each in reply.tool_calls]

    def render(self) -> Callable[[], object]:
        """The messages → what the chat model gives to the SDK's method."""
        asked, messages = self.model(), self.history(self.entries())
        if self.wire == GOOGLE:
            return lambda: asked._prepare_request(messages)
        return lambda: asked._get_request_payload(messages)

    def rendered(self, returned: Any) -> object:
        """The payload by the wire's names; Google's holds the SDK's objects."""
        if self.wire != GOOGLE:
            return returned
        contents = [each.model_dump(mode="json", exclude_none=True) for each in returned["contents"]]
        instruction = returned["config"].system_instruction.model_dump(mode="json", exclude_none=True)
        return {"systemInstruction": instruction, "contents": contents}

    def decoder(self) -> Callable[[bytes], Any]:
        """The bytes of a reply → a message of langchain."""
        asked = self.model()
        results: dict[str, Callable[[Any], Any]] = {
            "openai.chat": lambda fields: asked._create_chat_result(ChatCompletion.construct(**fields)),
            "openai.responses": lambda fields: _construct_lc_result_from_responses_api(Response.construct(**fields)),
            "anthropic.messages": lambda fields: asked._format_output(AnthropicMessage.construct(**fields)),
            GOOGLE: lambda fields: _response_to_result(GenerateContentResponse.model_validate(fields)),
        }
        result = results[self.wire]
        return lambda body: result(json.loads(body)).generations[0].message

    def streamed(self, client: Any, messages: list[Any]) -> AIMessage:
        """Every chunk, added up to one message as the documentation does it."""
        chunks = client.stream(messages)
        whole = next(chunks)
        for chunk in chunks:
            whole += chunk
        return whole

    def imports(self) -> tuple[str, str]:
        settings, name = {**self.named, "base_url": self.given.url + self.path}, self.chat_class.__name__
        package = self.chat_class.__module__.partition(".")[0]
        ready = f"from {package} import {name}\nmodel = {name}(**{settings!r})\n"
        return ready, "print(model.invoke('Umbrella today?').text)\n"


def came(identifier: str | None, text: str) -> BaseMessage:
    """What came of the call with that id; Google's calls have none, and langchain gives them one."""
    return ToolMessage(text, tool_call_id=identifier, name=work.OPTIONS[0]["name"])


IMPORTED = "from langchain_core import messages, language_models\nlanguage_models.BaseChatModel"
CONTENDERS = {"langchain": LangChain.contender("render", *CALLED, imported=IMPORTED)}
