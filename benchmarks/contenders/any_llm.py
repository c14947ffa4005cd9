"""any-llm: `AnyLLM.create(…).acompletion` with OpenAI-shaped dicts over the vendors' SDKs.

An in-process transport goes to an SDK's client by `create`'s own keywords. The async method is measured: the sync one
hands each call to a thread. `render` and `decode` use a provider's private functions, since the mapping alone has no
public name, on the SDK's object, which is made as the SDK makes it. Left out: `render` for OpenAI, whose dicts go to
the SDK as they are, and openai.responses, where any-llm takes the vendor's own items. A stream is chunks; any-llm adds
nothing up, so they are added up by hand. It asks for anthropic<1, and its whole calls there cost what that does.
"""

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import httpx2
from anthropic.types import Message
from any_llm import AnyLLM
from any_llm.providers.anthropic.utils import _convert_messages_for_anthropic
from any_llm.providers.gemini.utils import _convert_messages, _convert_response_to_response_dict
from google.genai.types import GenerateContentResponse, HttpOptions
from openai.types.chat import ChatCompletion

from benchmarks import work
from benchmarks.contenders.doing import CALLED, FUNCTIONS, ChatCaller, InProcess, role_dictionary
from benchmarks.work import Entry, Given

REQUIREMENTS = ("any-llm-sdk[openai,anthropic,gemini]>=1.40", "httpx2")
RUNNER = asyncio.Runner()
PROVIDERS = {
    "openai.chat": ("openai", "/v1", httpx2),
    "anthropic.messages": ("anthropic", "", httpx),
    "google.generate_content": ("gemini", "", httpx2),
}
"""Each wire's provider, what the stub's address ends with, and the HTTP library of its SDK."""


class AnyLLMCaller(ChatCaller):
    wires = tuple(PROVIDERS)

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self.name, self.path, self.http = PROVIDERS[given.wire]
        bound = {"max_tokens": work.MAX_TOKENS} if given.wire == "anthropic.messages" else {}
        self.settings = {"model": given.model, **bound}

    def connect(self, transport: InProcess | None = None) -> Any:
        if transport is None or self.given.url:
            url = (self.given.url or "http://nowhere.invalid") + self.path
            return AnyLLM.create(self.name, api_key="none", api_base=url)
        client = transport.async_client()
        given = {"http_options": HttpOptions(httpx_async_client=client)} if self.name == "gemini" else {}
        return AnyLLM.create(self.name, api_key="none", **(given or {"http_client": client}))

    async def ask_async(self, client: Any, messages: list[Any]) -> Any:
        return await client.acompletion(messages=messages, tools=FUNCTIONS, **self.settings)

    def ask(self, client: Any, messages: list[Any]) -> Any:
        return RUNNER.run(client.acompletion(messages=messages, tools=FUNCTIONS, **self.settings))

    def item(self, entry: Entry) -> Entry:
        """What was signed stands in the field that any-llm has for it."""
        made, told = role_dictionary(entry), entry.get("reasoning")
        if told is None:
            return made
        if self.wire == "anthropic.messages":
            signed = {"anthropic": {"signature": told["seal"]}}
            return {**made, "reasoning": {"content": told["text"]}, "extra_content": signed}
        sealed = {"extra_content": {"google": {"thought_signature": told["seal"]}}}
        return {**made, "tool_calls": [{**made["tool_calls"][0], **sealed}]} if "tool_calls" in made else made | sealed

    def render(self) -> Callable[[], object]:
        """The messages → what the provider gives to the SDK's method."""
        messages = self.history(self.entries())
        if self.wire == "anthropic.messages":
            return lambda: _convert_messages_for_anthropic(messages)
        if self.wire == "google.generate_content":
            return lambda: _convert_messages(messages, model=self.given.model)
        raise ValueError(f"{self.wire}: any-llm maps nothing there")

    def rendered(self, returned: Any) -> object:
        """The mapped messages by the wire's names; Google's are the SDK's objects."""
        if self.wire == "anthropic.messages":
            return {"system": returned[0], "messages": returned[1]}
        contents = [each.model_dump(mode="json", exclude_none=True) for each in returned[0]]
        return {"systemInstruction": {"parts": [{"text": returned[1]}]}, "contents": contents}

    def decoder(self) -> Callable[[bytes], Any]:
        """The bytes of a reply → a completion of any-llm."""
        convert, model = self.connect()._convert_completion_response, work.MODELS[self.wire]

        def gemini(fields: Any) -> Any:
            return _convert_response_to_response_dict(GenerateContentResponse.model_validate(fields), "gemini"), model

        classes = {"openai.chat": ChatCompletion, "anthropic.messages": Message}
        made = gemini if self.name == "gemini" else lambda fields: classes[self.wire].construct(**fields)
        return lambda body: convert(made(json.loads(body)))

    def streamed(self, client: Any, messages: list[Any]) -> Any:
        return RUNNER.run(self.added_up(client, messages))

    async def added_up(self, client: Any, messages: list[Any]) -> Any:
        texts: list[str] = []
        calls: list[SimpleNamespace] = []
        asked = client.acompletion(messages=messages, stream=True, tools=FUNCTIONS, **self.settings)
        async for chunk in await asked:
            for choice in chunk.choices:
                texts.append(choice.delta.content or "")
                for made in choice.delta.tool_calls or ():
                    if made.id:
                        function = SimpleNamespace(name=made.function.name, arguments="")
                        calls.append(SimpleNamespace(id=made.id, function=function))
                    calls[-1].function.arguments += made.function.arguments or ""
        message = SimpleNamespace(content="".join(texts), tool_calls=calls)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    def imports(self) -> tuple[str, str]:
        ready = (
            "from any_llm import AnyLLM\n"
            f"llm = AnyLLM.create({self.name!r}, api_key='none', api_base={self.given.url + self.path!r})\n"
            "question = [{'role': 'user', 'content': 'Umbrella today?'}]\n"
        )
        return ready, f"print(llm.completion(messages=question, **{self.settings!r}).choices[0].message.content)\n"


CONTENDERS = {"any_llm": AnyLLMCaller.contender("render", *CALLED, imported="import any_llm\nany_llm.AnyLLM")}
