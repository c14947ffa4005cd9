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
from types import SimpleNamespace
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

from benchmarks import work
from benchmarks.contenders.doing import CALLED, FUNCTIONS, ChatCaller, InProcess, role_dictionary
from benchmarks.work import Entry, Given

REQUIREMENTS = ("litellm[mcp]>=1.106",)
IMPORTED = "import os\nos.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'\nimport litellm\n"
RUNNER = asyncio.Runner()
NAMES = {"openai.chat": "openai/", "anthropic.messages": "anthropic/", "google.generate_content": "gemini/"}
"""What a model's name begins with on a wire."""


class LiteLLM(ChatCaller):
    wires = tuple(NAMES)
    http = httpx

    def connect(self, transport: InProcess | None = None) -> dict[str, Any]:
        """The keyword arguments of a completion, at the stub or on the transport."""
        made: dict[str, Any] = {"model": NAMES[self.wire] + self.given.model, "tools": FUNCTIONS, "api_key": "none"}
        if self.wire == "anthropic.messages":
            made["max_tokens"] = work.MAX_TOKENS
        is_openai = self.wire == "openai.chat"
        if transport is None or self.given.url:
            return {**made, "api_base": self.given.url + ("/v1" if is_openai else "")}
        http = transport.client()
        return {**made, "client": OpenAI(api_key="none", http_client=http) if is_openai else HTTPHandler(client=http)}

    def ask(self, client: dict[str, Any], messages: list[Any]) -> Any:
        return litellm.completion(messages=messages, **client)

    async def ask_async(self, client: dict[str, Any], messages: list[Any]) -> Any:
        return await litellm.acompletion(messages=messages, **client)

    def item(self, entry: Entry) -> Entry:
        """What was signed stands in the field that litellm has for it."""
        made, told = role_dictionary(entry), entry.get("reasoning")
        if told is None:
            return made
        if self.wire == "anthropic.messages":
            block = {"type": "thinking", "thinking": told["text"], "signature": told["seal"]}
            return {**made, "thinking_blocks": [block]}
        if entry["kind"] == "call":
            sealed = {"provider_specific_fields": {"thought_signature": told["seal"]}}
            return {**made, "tool_calls": [{**made["tool_calls"][0], **sealed}]}
        return {**made, "provider_specific_fields": {"thought_signatures": [told["seal"]]}}

    def decoder(self) -> Callable[[bytes], Any]:
        """The bytes of a reply → a response of litellm, which writes a record of each call: here it has none."""
        config = {"anthropic.messages": litellm.AnthropicConfig, "google.generate_content": litellm.VertexGeminiConfig}
        silent = SimpleNamespace(optional_params={}, litellm_params={}, post_call=lambda **facts: None)

        def openai(body: bytes) -> Any:
            answer = ChatCompletion.construct(**json.loads(body)).model_dump()
            return convert_to_model_response_object(answer, ModelResponse())

        def other(body: bytes) -> Any:
            raw, made = httpx.Response(200, content=body), config[self.wire]()
            return made.transform_response(self.given.model, raw, ModelResponse(), silent, {}, [], {}, {}, None)

        return openai if self.wire == "openai.chat" else other

    def stream(self) -> Callable[[], object]:
        run = super().stream()
        run()  # the first stream imports for seconds
        return run

    def streamed(self, client: dict[str, Any], messages: list[Any]) -> Any:
        """Every chunk, to the whole response by litellm's own builder."""

        async def read() -> Any:
            streamed = await litellm.acompletion(messages=messages, stream=True, **client)
            chunks = [chunk async for chunk in streamed]
            return litellm.stream_chunk_builder(chunks, messages=messages)

        return RUNNER.run(read())

    def imports(self) -> tuple[str, str]:
        """Nothing but the import makes litellm ready."""
        asked = {name: value for name, value in self.connect().items() if name != "tools"}
        question = [{"role": "user", "content": "Umbrella today?"}]
        return IMPORTED, f"print(litellm.completion(messages={question!r}, **{asked!r}).choices[0].message.content)\n"


class Mapping(LiteLLM):
    """The messages → the request's fields. Mapping takes system messages out of its list: each run has its own."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.messages = self.history(self.entries())
        self.renew()

    def renew(self) -> None:
        self.own = copy.deepcopy(self.messages)

    def __call__(self) -> Any:
        model = self.given.model
        if self.wire == "google.generate_content":
            return transform_request_body(self.own, model, {}, "gemini", {}, None)
        if self.wire == "openai.chat":
            return litellm.OpenAIGPTConfig().transform_request(model, self.own, {}, {}, {})
        offered = {"tools": [], "max_tokens": work.MAX_TOKENS}
        return litellm.AnthropicConfig().transform_request(model, self.own, offered, {}, {})


CONTENDERS = {"litellm": LiteLLM.contender(*CALLED, imported=IMPORTED + "litellm.completion", render=Mapping)}
