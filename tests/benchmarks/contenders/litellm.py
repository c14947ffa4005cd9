"""litellm: `completion` with OpenAI-shaped dicts; it carries Anthropic's and Google's wires itself, without their SDKs.

An SDK client, or litellm's own `HTTPHandler`, on an in-process transport is given as `client`; at the stub, `api_base`.
`render` and `decode` call the classes that map a wire. On openai.responses litellm takes the vendor's own items: there
is nothing to map, and it is left out. The extra `mcp` is required since completions with options import it. The price
list is the one in the package, by litellm's own variable: else it would be fetched. Of its two ways to stream, the
async one is measured: the sync one starts an event loop in a thread for each chunk, and costs more. It
asks for openai<3.
"""

import asyncio
import copy
import json
import os
from collections.abc import Callable
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import httpx
import litellm
from litellm.litellm_core_utils.llm_response_utils.convert_dict_to_response import convert_to_model_response_object
from litellm.llms.custom_httpx.http_handler import HTTPHandler
from litellm.llms.vertex_ai.gemini.transformation import transform_request_body
from litellm.types.utils import ModelResponse
from openai import OpenAI
from openai.types.chat import ChatCompletion

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import InProcess, answered, at_once, came, counted, looping, role_dictionary
from tests.benchmarks.work import Entry, Given

REQUIREMENTS = ("litellm[mcp]>=1.106",)
IMPORTED = "import os\nos.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'\nimport litellm\nlitellm.completion"
RUNNER = asyncio.Runner()

NAMES = {"openai.chat": "openai/", "anthropic.messages": "anthropic/", "google.generate_content": "gemini/"}
"""What a model's name begins with on a wire."""
PATHS = {"openai.chat": "/v1", "anthropic.messages": "", "google.generate_content": ""}
"""What follows the stub's address."""
OFFERED = [{"type": "function", "function": entry} for entry in work.OPTIONS]


def settings(given: Given, transport: InProcess | None = None) -> dict[str, Any]:
    """The keyword arguments of a completion, at the stub or on the transport."""
    if given.wire not in NAMES:
        raise ValueError(f"{given.wire}: litellm takes the vendor's own items there")
    made: dict[str, Any] = {"model": NAMES[given.wire] + given.model, "tools": OFFERED, "api_key": "none"}
    if given.wire == "anthropic.messages":
        made["max_tokens"] = work.MAX_TOKENS
    if transport is None or given.url:
        return {**made, "api_base": given.url + PATHS[given.wire]}
    http = httpx.Client(transport=httpx.MockTransport(transport))
    client = OpenAI(api_key="none", http_client=http) if given.wire == "openai.chat" else HTTPHandler(client=http)
    return {**made, "client": client}


def history(given: Given, entries: list[Entry]) -> list[Any]:
    """The entries as litellm's dicts, what was signed in the field that litellm has for it."""
    return [{**role_dictionary(entry), **_signed(given.wire, entry)} for entry in entries]


def _signed(wire: str, entry: Entry) -> dict[str, Any]:
    told = entry.get("reasoning")
    if told is None:
        return {}
    if wire == "anthropic.messages":
        return {"thinking_blocks": [{"type": "thinking", "thinking": told["text"], "signature": told["seal"]}]}
    if entry["kind"] == "call":
        sealed = {"provider_specific_fields": {"thought_signature": told["seal"]}}
        return {"tool_calls": [{**role_dictionary(entry)["tool_calls"][0], **sealed}]}
    return {"provider_specific_fields": {"thought_signatures": [told["seal"]]}}


class Mapping:
    """The messages → the request's fields. Mapping takes system messages out of its list: each run has its own."""

    def __init__(self, given: Given) -> None:
        self.model = settings(given)["model"].partition("/")[2]
        self.messages = history(given, work.entries_of(given))
        self.map = {
            "openai.chat": self.openai, "anthropic.messages": self.anthropic, "google.generate_content": self.google,
        }[given.wire]  # fmt: skip
        self.renew()

    def renew(self) -> None:
        """Dicts of its own."""
        self.own = copy.deepcopy(self.messages)

    def __call__(self) -> Any:
        """The request's fields."""
        return self.map()

    def openai(self) -> Any:
        """For OpenAI's wire."""
        return litellm.OpenAIGPTConfig().transform_request(self.model, self.own, {}, {}, {})

    def anthropic(self) -> Any:
        """For Anthropic's."""
        offered = {"tools": [], "max_tokens": work.MAX_TOKENS}
        return litellm.AnthropicConfig().transform_request(self.model, self.own, offered, {}, {})

    def google(self) -> Any:
        """For Google's."""
        return transform_request_body(self.own, self.model, {}, "gemini", {}, None)


def call(given: Given) -> Callable[[], tuple[bytes, Any]]:
    """One whole completion with the option."""
    transport = InProcess(httpx, work.reply(given.wire))
    asked, messages = settings(given, transport), history(given, work.entries_of(given))

    return answered(transport, lambda: litellm.completion(messages=messages, **asked).choices[0].message.content)


def loop(given: Given) -> Callable[[], object]:
    """An agent's loop as the documentation has it: the reply's message is appended, then what came of its call."""
    transport = InProcess(httpx)
    asked = settings(given, transport)

    def take_turn(messages: list[Any], text: str) -> None:
        response: Any = litellm.completion(messages=messages, **asked)
        said = response.choices[0].message
        messages.extend((said, came(said.tool_calls[0].id, text)))

    return looping(given, transport, lambda: history(given, work.start()), take_turn)


class Silent:
    """Stands for litellm's record of a call, which decoding alone has none of."""

    def __init__(self) -> None:
        self.optional_params: dict[str, Any] = {}
        self.litellm_params: dict[str, Any] = {}

    def post_call(self, **facts: object) -> None:
        """Records nothing."""


def decode(given: Given) -> Callable[[], object]:
    """The bytes of a reply → a response of litellm."""
    model, body = settings(given)["model"].partition("/")[2], work.reply_with_calls(given.wire)
    mapped: dict[str, Any] = {
        "anthropic.messages": litellm.AnthropicConfig,
        "google.generate_content": litellm.VertexGeminiConfig,
    }

    def openai() -> Any:
        answer = ChatCompletion.construct(**json.loads(body)).model_dump()
        return convert_to_model_response_object(answer, ModelResponse())

    def other() -> Any:
        raw = httpx.Response(200, content=body)
        return mapped[given.wire]().transform_response(model, raw, ModelResponse(), Silent(), {}, [], {}, {}, None)

    return openai if given.wire == "openai.chat" else other


def stream(given: Given) -> Callable[[], object]:
    """A stream of the stub's, every chunk of it, to the whole response by litellm's own builder."""
    asked, messages = settings(given), history(given, work.conversation(10))

    async def read() -> Any:
        streamed: Any = await litellm.acompletion(messages=messages, stream=True, **asked)
        chunks = [chunk async for chunk in streamed]
        return litellm.stream_chunk_builder(chunks, messages=messages)

    def run() -> Any:
        return RUNNER.run(read())

    run()  # the first stream imports for seconds
    return counted(run, given.size)


def said(given: Given, response: Any) -> object:
    """The text and the calls of a response."""
    made = response.choices[0].message
    calls = [(each.id, each.function.name, json.loads(each.function.arguments)) for each in made.tool_calls or ()]
    return work.found(given.wire, made.content or "", calls)


def loopback(given: Given) -> Callable[[], object]:
    """Calls to the stub."""
    messages = history(given, work.entries_of(given))

    async def ask(asked: dict[str, Any]) -> str:
        response: Any = await litellm.acompletion(messages=messages, **asked)
        text: str = response.choices[0].message.content
        return text

    return at_once(given, call, lambda: settings(given), ask)


def imports(given: Given) -> tuple[str, str]:
    """Nothing but the import makes litellm ready; then its first answer."""
    asked = {name: value for name, value in settings(given).items() if name != "tools"}
    ready = "import os\nos.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'\nimport litellm\n"
    question = [{"role": "user", "content": "Umbrella today?"}]
    return ready, f"print(litellm.completion(messages={question!r}, **{asked!r}).choices[0].message.content)\n"


TASKS: dict[str, Callable[[Given], Callable[[], object]]] = {
    "render": Mapping, "call": call, "loop": loop, "decode": decode, "stream": stream, "loopback": loopback,
}  # fmt: skip
EVIDENCE = {"decode": said, "stream": said}
