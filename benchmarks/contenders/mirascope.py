"""mirascope: `llm.Model` over the vendors' SDKs, on every wire of this benchmark.

An SDK client on an in-process transport is set where a provider keeps it, in its public attribute `client`. Two tasks
use names that are not public, since the mapping alone has none: `render` is a provider's `encode_request`, `decode` its
`decode_response` on the SDK's object, which is made as the SDK makes it. The option asks for no strict schema: with
one, mirascope would go to Anthropic's beta methods. It asks for openai<3, anthropic<1 and google-genai<2, and its
whole calls cost what those do.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import httpx
from anthropic import Anthropic
from anthropic.types import Message as AnthropicMessage
from google.genai import Client
from google.genai.types import GenerateContentResponse, HttpOptions
from mirascope import llm
from mirascope.llm.providers.anthropic import _utils as anthropic
from mirascope.llm.providers.google import _utils as google
from mirascope.llm.providers.openai.completions import _utils as chat
from mirascope.llm.providers.openai.responses import _utils as responses
from mirascope.llm.tools import Toolkit
from openai import OpenAI
from openai.types.chat import ChatCompletion
from openai.types.responses import Response as ResponsesAnswer

from benchmarks import answers, work
from benchmarks.contenders.doing import CALLED, Caller, InProcess, picture
from benchmarks.work import Entry, Given

REQUIREMENTS = ("mirascope[openai,anthropic,google]>=2.8",)
SDKS = {"openai", "anthropic", "google.genai"}
CLIENTS: dict[str, Callable[[httpx.Client], object]] = {
    "openai": lambda http: OpenAI(api_key="none", http_client=http),
    "anthropic": lambda http: Anthropic(api_key="none", http_client=http),
    "google.genai": lambda http: Client(api_key="none", http_options=HttpOptions(httpx_client=http)),
}


class Wire(NamedTuple):
    """How mirascope speaks a wire: names, and the halves of its mapping."""

    provider: str
    sdk: str
    scope: str
    path: str
    encode: Callable[..., tuple[object, object, Any]]
    decode: Callable[..., tuple[Any, Any, Any]]
    answer: Callable[[Any], object]
    mode: str = ""
    """What a model's own name ends with in a message."""


SPOKEN = {
    "openai.chat": Wire(
        "openai:completions", "openai", "openai/", "/v1",
        partial(chat.encode_request, provider_id="openai:completions",
                feature_info=chat.feature_info_for_openai_model(work.MODELS["openai.chat"])),
        partial(chat.decode_response, provider_id="openai:completions"),
        lambda fields: ChatCompletion.construct(**fields), ":completions",
    ),
    "openai.responses": Wire(
        "openai:responses", "openai", "openai/", "/v1", responses.encode_request,
        partial(responses.decode_response, provider_id="openai:responses", include_thoughts=False),
        lambda fields: ResponsesAnswer.construct(**fields), ":responses",
    ),
    "anthropic.messages": Wire(
        "anthropic", "anthropic", "anthropic/", "", anthropic.encode_request,
        partial(anthropic.decode_response, include_thoughts=False),
        lambda fields: AnthropicMessage.construct(**fields),
    ),
    "google.generate_content": Wire(
        "google", "google.genai", "google/", "", google.encode_request,
        partial(google.decode_response, include_thoughts=False),
        GenerateContentResponse.model_validate,
    ),
}  # fmt: skip


@llm.tool(strict=False)
def weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    raise NotImplementedError(f"{city}, {unit}: results are given")


@llm.tool(strict=False)
async def weather_later(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    raise NotImplementedError(f"{city}, {unit}: results are given")


class Mirascope(Caller):
    http = httpx

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.spoken = SPOKEN[given.wire]
        self.model_id = self.spoken.scope + given.model

    def connect(self, transport: InProcess | None = None) -> llm.Model:
        """A model whose provider talks to the stub, or through the transport."""
        spoken, url = self.spoken, self.given.url
        address = url + spoken.path if url else None
        provider = llm.register_provider(spoken.provider, spoken.scope, api_key="none", base_url=address)
        if transport is not None and not url:
            provider.client = CLIENTS[spoken.sdk](transport.client())
        bounds: Any = {"max_tokens": work.MAX_TOKENS} if self.wire == "anthropic.messages" else {}
        return llm.Model(self.model_id, **bounds)

    def ask(self, client: llm.Model, messages: list[Any]) -> llm.Response:
        return client.call(messages, tools=[weather])

    async def ask_async(self, client: llm.Model, messages: list[Any]) -> Any:
        return await client.call_async(messages, tools=[weather_later])

    def item(self, entry: Entry) -> llm.Message:
        """What a model itself said, as agents have it, with what it said raw."""
        is_own = self.given.talk == work.AGENTS and entry["kind"] in ("call", "text") and "elsewhere" not in entry
        said = partial(
            llm.messages.assistant, model_id=self.model_id, provider_id=self.spoken.provider,
            provider_model_name=self.given.model + self.spoken.mode, raw_message=self.raw(entry) if is_own else None,
        )  # fmt: skip
        match entry["kind"]:
            case "system":
                return llm.messages.system(entry["text"])
            case "user" if "image" in entry:
                mime, data = picture(entry)
                source = llm.Base64ImageSource(type="base64_image_source", data=data, mime_type=mime)
                return llm.messages.user([entry["text"], llm.Image(source=source)])
            case "user":
                return llm.messages.user(entry["text"])
            case "call":
                return said(llm.ToolCall(id=entry["id"], name=entry["name"], args=json.dumps(entry["arguments"])))
            case "result":
                return came(entry["id"], entry["text"])
        return said(entry["text"])

    def raw(self, entry: Entry) -> Any:
        """What mirascope keeps of an answer of that wire."""
        answer = json.loads(answers.reply_that_says(self.wire, entry))
        match self.wire:
            case "openai.chat":
                return {name: each for name, each in answer["choices"][0]["message"].items() if each is not None}
            case "openai.responses":
                return answer["output"]
            case "anthropic.messages":
                return {"role": "assistant", "content": answer["content"]}
        return GenerateContentResponse.model_validate(answer).candidates[0].content.model_dump()

    def append(self, messages: list[Any], reply: llm.Response, text: str) -> None:
        messages[:] = [*reply.messages, came(reply.tool_calls[0].id, text)]

    def text(self, reply: Any) -> str:
        return reply.text()

    def calls(self, reply: Any) -> list[Any]:
        return [(each.id, each.name, json.loads(each.args)) for each in reply.tool_calls]

    def render(self) -> Callable[[], object]:
        """The messages → the keyword arguments of the SDK's method."""
        messages, toolkit = self.history(self.entries()), Toolkit([weather])
        encode = partial(self.spoken.encode, model_id=self.model_id, tools=toolkit, format=None, params={})
        return lambda: encode(messages=messages)

    def rendered(self, returned: tuple[object, object, dict[str, Any]]) -> object:
        """The messages as the wire has them; google-genai itself wraps an instruction that is a plain text."""
        arguments = returned[2]
        if self.wire == "google.generate_content":
            return {**arguments, "systemInstruction": {"parts": [{"text": arguments["config"]["system_instruction"]}]}}
        return arguments

    def decoder(self) -> Callable[[bytes], llm.Response]:
        """The bytes of a reply → a response of mirascope."""
        spoken, name, toolkit = self.spoken, self.model_id, Toolkit([weather])

        def decode(body: bytes) -> llm.Response:
            raw = spoken.answer(json.loads(body))
            assistant_message, finish_reason, usage = spoken.decode(raw, name)
            return llm.Response(
                raw=raw, provider_id=spoken.provider, model_id=name, provider_model_name=name, params={},
                tools=toolkit, input_messages=[], assistant_message=assistant_message, finish_reason=finish_reason,
                usage=usage,
            )  # fmt: skip

        return decode

    def streamed(self, client: llm.Model, messages: list[Any]) -> llm.StreamResponse:
        response = client.stream(messages, tools=[weather])
        response.finish()
        return response

    def imports(self) -> tuple[str, str]:
        """The other SDKs are hidden: a user of one vendor has one extra."""
        spoken = self.spoken
        ready = (
            f"import sys; sys.modules.update(dict.fromkeys({sorted(SDKS - {spoken.sdk})!r}))\n"
            "from mirascope import llm\n"
            f"address = {self.given.url + spoken.path!r}\n"
            f"llm.register_provider({spoken.provider!r}, {spoken.scope!r}, api_key='none', base_url=address)\n"
            f"model = llm.Model({self.model_id!r})\n"
        )
        return ready, "print(model.call('Umbrella today?').text())\n"


def came(identifier: str, text: str) -> llm.Message:
    """What came of the call with that id; Google's calls have none, and mirascope gives them one."""
    return llm.messages.user(llm.ToolOutput(id=identifier, name=weather.name, result=text))


CONTENDERS = {"mirascope": Mirascope.contender("render", *CALLED, imported="from mirascope import llm\nllm.Model")}
