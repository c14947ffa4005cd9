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

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import InProcess, answered, at_once, counted, looping, picture
from tests.benchmarks.work import Entry, Given

REQUIREMENTS = ("mirascope[openai,anthropic,google]>=2.8",)
IMPORTED = "from mirascope import llm\nllm.Model"
SDKS = {"openai", "anthropic", "google.genai"}


def openai_client(http: httpx.Client) -> OpenAI:
    """The SDK's client on that HTTP client."""
    return OpenAI(api_key="none", http_client=http)


def anthropic_client(http: httpx.Client) -> Anthropic:
    """The SDK's client on that HTTP client."""
    return Anthropic(api_key="none", http_client=http)


def google_client(http: httpx.Client) -> Client:
    """The SDK's client on that HTTP client."""
    return Client(api_key="none", http_options=HttpOptions(httpx_client=http))


class Wire(NamedTuple):
    """How mirascope speaks a wire: names, the vendor's client, and the halves of its mapping."""

    provider: str
    sdk: str
    scope: str
    path: str
    client: Callable[[httpx.Client], object]
    encode: Callable[..., tuple[object, object, Any]]
    decode: Callable[..., tuple[Any, Any, Any]]
    answer: Callable[[Any], object]
    mode: str = ""
    """What a model's own name ends with in a message."""


SPOKEN = {
    "openai.chat": Wire(
        "openai:completions", "openai", "openai/", "/v1", openai_client,
        partial(chat.encode_request, provider_id="openai:completions",
                feature_info=chat.feature_info_for_openai_model(work.MODELS["openai.chat"])),
        partial(chat.decode_response, provider_id="openai:completions"),
        lambda fields: ChatCompletion.construct(**fields), ":completions",
    ),
    "openai.responses": Wire(
        "openai:responses", "openai", "openai/", "/v1", openai_client, responses.encode_request,
        partial(responses.decode_response, provider_id="openai:responses", include_thoughts=False),
        lambda fields: ResponsesAnswer.construct(**fields), ":responses",
    ),
    "anthropic.messages": Wire(
        "anthropic", "anthropic", "anthropic/", "", anthropic_client, anthropic.encode_request,
        partial(anthropic.decode_response, include_thoughts=False),
        lambda fields: AnthropicMessage.construct(**fields),
    ),
    "google.generate_content": Wire(
        "google", "google.genai", "google/", "", google_client, google.encode_request,
        partial(google.decode_response, include_thoughts=False),
        GenerateContentResponse.model_validate,
    ),
}  # fmt: skip


@llm.tool(strict=False)
def weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    """Current weather in a city."""
    raise NotImplementedError(f"{city}, {unit}: results are given")


@llm.tool(strict=False)
async def weather_later(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    """Current weather in a city."""
    raise NotImplementedError(f"{city}, {unit}: results are given")


def model_id(given: Given) -> str:
    """The model as mirascope names it."""
    return SPOKEN[given.wire].scope + given.model


def model(given: Given, transport: InProcess | None = None) -> llm.Model:
    """A model whose provider talks to the stub, or through the transport."""
    wire = SPOKEN[given.wire]
    address = given.url + wire.path if given.url else None
    provider = llm.register_provider(wire.provider, wire.scope, api_key="none", base_url=address)
    if transport is not None and not given.url:
        provider.client = wire.client(httpx.Client(transport=httpx.MockTransport(transport)))
    bounds: Any = {"max_tokens": work.MAX_TOKENS} if given.wire == "anthropic.messages" else {}
    return llm.Model(model_id(given), **bounds)


def message(given: Given, entry: Entry) -> llm.Message:
    """The entry as one of mirascope's messages; what a model itself said, as agents have it, with what it said raw."""
    is_own = given.talk == work.AGENTS and entry["kind"] in ("call", "text") and "elsewhere" not in entry
    wire = SPOKEN[given.wire]
    said = partial(
        llm.messages.assistant, model_id=model_id(given), provider_id=wire.provider,
        provider_model_name=given.model + wire.mode, raw_message=_raw(given.wire, entry) if is_own else None,
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
        case _:
            return said(entry["text"])


def _raw(wire: str, entry: Entry) -> Any:
    """What mirascope keeps of an answer of that wire."""
    answer = json.loads(work.reply_that_says(wire, entry))
    match wire:
        case "openai.chat":
            kept = {name: value for name, value in answer["choices"][0]["message"].items() if value is not None}
            return kept
        case "openai.responses":
            return answer["output"]
        case "anthropic.messages":
            return {"role": "assistant", "content": answer["content"]}
        case _:
            return GenerateContentResponse.model_validate(answer).candidates[0].content.model_dump()  # type: ignore


def came(identifier: str, text: str) -> llm.Message:
    """What came of the call with that id; Google's calls have none, and mirascope gives them one."""
    return llm.messages.user(llm.ToolOutput(id=identifier, name=weather.name, result=text))


def history(given: Given, entries: list[Entry]) -> list[llm.Message]:
    """The entries as mirascope's messages."""
    return [message(given, entry) for entry in entries]


def render(given: Given) -> Callable[[], object]:
    """The messages → the keyword arguments of the SDK's method."""
    messages = history(given, work.entries_of(given))
    encode = partial(
        SPOKEN[given.wire].encode, model_id=model_id(given), tools=Toolkit([weather]), format=None, params={}
    )
    return lambda: encode(messages=messages)


def rendered(given: Given, returned: tuple[object, object, dict[str, Any]]) -> object:
    """The messages as the wire has them; google-genai itself wraps an instruction that is a plain text."""
    arguments = returned[2]
    if given.wire == "google.generate_content":
        return {**arguments, "systemInstruction": {"parts": [{"text": arguments["config"]["system_instruction"]}]}}
    return arguments


def call(given: Given) -> Callable[[], object]:
    """One whole call of a model with the option."""
    transport = InProcess(httpx, work.reply(given.wire))
    asked, messages = model(given, transport), history(given, work.entries_of(given))

    return answered(transport, lambda: asked.call(messages, tools=[weather]).text())


def loop(given: Given) -> Callable[[], object]:
    """An agent's loop: a response knows the messages so far, and what came of its call is appended."""
    transport = InProcess(httpx)
    asked = model(given, transport)

    def take_turn(messages: list[Any], text: str) -> None:
        response = asked.call(messages, tools=[weather])
        messages[:] = [*response.messages, came(response.tool_calls[0].id, text)]

    return looping(given, transport, lambda: history(given, work.start()), take_turn)


def decode(given: Given) -> Callable[[], object]:
    """The bytes of a reply → a response of mirascope."""
    wire, name, body, toolkit = (
        SPOKEN[given.wire], model_id(given), work.reply_with_calls(given.wire), Toolkit([weather]),
    )  # fmt: skip

    def run() -> llm.Response:
        raw = wire.answer(json.loads(body))
        assistant_message, finish_reason, usage = wire.decode(raw, name)
        return llm.Response(
            raw=raw, provider_id=wire.provider, model_id=name, provider_model_name=name, params={}, tools=toolkit,
            input_messages=[], assistant_message=assistant_message, finish_reason=finish_reason, usage=usage,
        )  # fmt: skip

    return run


def stream(given: Given) -> Callable[[], object]:
    """A stream of the stub's, read to its end; mirascope folds it as it goes."""
    asked, messages = model(given), history(given, work.conversation(10))

    def run() -> llm.StreamResponse:
        response = asked.stream(messages, tools=[weather])
        response.finish()
        return response

    return counted(run, given.size)


def said(given: Given, response: llm.Response | llm.StreamResponse) -> object:
    """The text and the calls of a response."""
    calls = [(each.id, each.name, json.loads(each.args)) for each in response.tool_calls]
    return work.found(given.wire, response.text(), calls)


def loopback(given: Given) -> Callable[[], object]:
    """Calls to the stub."""
    messages = history(given, work.entries_of(given))

    async def ask(asked: llm.Model) -> str:
        return (await asked.call_async(messages, tools=[weather_later])).text()

    return at_once(given, call, lambda: model(given), ask)


def imports(given: Given) -> tuple[str, str]:
    """A provider made ready; then its first answer. The other SDKs are hidden: a user of one vendor has one extra."""
    wire = SPOKEN[given.wire]
    hidden = SDKS - {wire.sdk}
    ready = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(hidden)!r}))\n"
        "from mirascope import llm\n"
        f"address = {given.url + wire.path!r}\n"
        f"llm.register_provider({wire.provider!r}, {wire.scope!r}, api_key='none', base_url=address)\n"
        f"model = llm.Model({model_id(given)!r})\n"
    )
    return ready, "print(model.call('Umbrella today?').text())\n"


TASKS: dict[str, Callable[[Given], Callable[[], object]]] = {
    "render": render, "call": call, "loop": loop, "decode": decode, "stream": stream, "loopback": loopback,
}  # fmt: skip
EVIDENCE = {"render": rendered, "decode": said, "stream": said}
