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
from typing import Any

import httpx
import httpx2
from anthropic.types import Message
from any_llm import AnyLLM
from any_llm.providers.anthropic.utils import _convert_messages_for_anthropic
from any_llm.providers.gemini.utils import _convert_messages, _convert_response_to_response_dict
from google.genai.types import GenerateContentResponse, HttpOptions
from openai.types.chat import ChatCompletion

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import InProcess, answered, at_once, came, counted, looping, role_dictionary
from tests.benchmarks.work import Entry, Given

REQUIREMENTS = ("any-llm-sdk[openai,anthropic,gemini]>=1.40", "httpx2")
IMPORTED = "import any_llm\nany_llm.AnyLLM"
RUNNER = asyncio.Runner()

PROVIDERS = {
    "openai.chat": ("openai", "/v1", httpx2),
    "anthropic.messages": ("anthropic", "", httpx),
    "google.generate_content": ("gemini", "", httpx2),
}
"""Each wire's provider, what the stub's address ends with, and the HTTP library of its SDK."""
OFFERED = [{"type": "function", "function": entry} for entry in work.OPTIONS]


def in_process(given: Given, *answers: bytes) -> InProcess:
    """A transport for the wire's SDK."""
    return InProcess(PROVIDERS[_spoken(given.wire)][2], *answers)


def provider(given: Given, transport: InProcess | None = None) -> Any:
    """The wire's provider, at the stub or on the transport."""
    name, path, http = PROVIDERS[_spoken(given.wire)]
    if transport is None or given.url:
        return AnyLLM.create(name, api_key="none", api_base=(given.url or "http://nowhere.invalid") + path)
    client = http.AsyncClient(transport=http.MockTransport(transport))
    if name == "gemini":
        return AnyLLM.create(name, api_key="none", http_options=HttpOptions(httpx_async_client=client))
    return AnyLLM.create(name, api_key="none", http_client=client)


def settings(given: Given) -> dict[str, Any]:
    """The keyword arguments of a completion."""
    bound = {"max_tokens": work.MAX_TOKENS} if given.wire == "anthropic.messages" else {}
    return {"model": given.model, "tools": OFFERED, **bound}


def history(given: Given, entries: list[Entry]) -> list[Any]:
    """The entries as any-llm's dicts, what was signed in the field that any-llm has for it."""
    return [{**role_dictionary(entry), **_signed(given.wire, entry)} for entry in entries]


def _signed(wire: str, entry: Entry) -> dict[str, Any]:
    told = entry.get("reasoning")
    if told is None:
        return {}
    if wire == "anthropic.messages":
        return {"reasoning": {"content": told["text"]}, "extra_content": {"anthropic": {"signature": told["seal"]}}}
    sealed = {"extra_content": {"google": {"thought_signature": told["seal"]}}}
    return (
        {"tool_calls": [{**role_dictionary(entry)["tool_calls"][0], **sealed}]} if entry["kind"] == "call" else sealed
    )


def render(given: Given) -> Callable[[], object]:
    """The messages → what the provider gives to the SDK's method."""
    messages = history(given, work.entries_of(given))
    maps: dict[str, Callable[[list[Any]], object]] = {
        "anthropic.messages": _convert_messages_for_anthropic,
        "google.generate_content": lambda listed: _convert_messages(listed, model=given.model),
    }
    if given.wire not in maps:
        raise ValueError(f"{given.wire}: any-llm maps nothing there")
    mapped = maps[given.wire]
    return lambda: mapped(messages)


def rendered(given: Given, returned: Any) -> object:
    """The mapped messages by the wire's names; Google's are the SDK's objects."""
    if given.wire == "anthropic.messages":
        return {"system": returned[0], "messages": returned[1]}
    contents = [each.model_dump(mode="json", exclude_none=True) for each in returned[0]]
    return {"systemInstruction": {"parts": [{"text": returned[1]}]}, "contents": contents}


def call(given: Given) -> Callable[[], tuple[bytes, str]]:
    """One whole completion with the option."""
    transport = in_process(given, work.reply(given.wire))
    asked, messages = provider(given, transport), history(given, work.entries_of(given))
    offered = settings(given)

    return answered(
        transport, lambda: RUNNER.run(asked.acompletion(messages=messages, **offered)).choices[0].message.content
    )


def loop(given: Given) -> Callable[[], object]:
    """An agent's loop: the reply's message is appended, then what came of its call."""
    transport = in_process(given)
    asked, offered = provider(given, transport), settings(given)

    def take_turn(messages: list[Any], text: str) -> None:
        said = RUNNER.run(asked.acompletion(messages=messages, **offered)).choices[0].message
        messages.extend((said, came(said.tool_calls[0].id, text)))

    return looping(given, transport, lambda: history(given, work.start()), take_turn)


def decode(given: Given) -> Callable[[], object]:
    """The bytes of a reply → a completion of any-llm."""
    asked, model, body = provider(given), work.MODELS[given.wire], work.reply_with_calls(given.wire)
    answers: dict[str, Callable[[Any], object]] = {
        "openai.chat": lambda fields: ChatCompletion.construct(**fields),
        "anthropic.messages": lambda fields: Message.construct(**fields),
        "google.generate_content": lambda fields: (
            _convert_response_to_response_dict(GenerateContentResponse.model_validate(fields), "gemini"), model
        ),
    }  # fmt: skip
    answer = answers[given.wire]
    return lambda: asked._convert_completion_response(answer(json.loads(body)))


def read(given: Given, completion: Any) -> object:
    """The text and the calls of a completion."""
    said = completion.choices[0].message
    calls = [(each.id, each.function.name, json.loads(each.function.arguments)) for each in said.tool_calls or ()]
    return work.found(given.wire, said.content or "", calls)


def stream(given: Given) -> Callable[[], object]:
    """A stream of the stub's, every chunk of it, added up."""
    asked, messages = provider(given), history(given, work.conversation(10))
    offered = settings(given)

    async def added_up() -> tuple[str, list[list[str]]]:
        texts: list[str] = []
        calls: list[list[str]] = []
        async for chunk in await asked.acompletion(messages=messages, stream=True, **offered):
            for choice in chunk.choices:
                texts.append(choice.delta.content or "")
                for made in choice.delta.tool_calls or ():
                    if made.id:
                        calls.append([made.id, made.function.name, ""])
                    calls[-1][2] += made.function.arguments or ""
        return "".join(texts), calls

    def run() -> tuple[str, list[list[str]]]:
        return RUNNER.run(added_up())

    return counted(run, given.size)


def added(given: Given, found: tuple[str, list[list[str]]]) -> object:
    """The text and the calls of a stream."""
    return work.found(given.wire, found[0], [(made[0], made[1], json.loads(made[2])) for made in found[1]])


def loopback(given: Given) -> Callable[[], object]:
    """Calls to the stub."""
    messages, offered = history(given, work.entries_of(given)), settings(given)

    async def ask(asked: Any) -> str:
        text: str = (await asked.acompletion(messages=messages, **offered)).choices[0].message.content
        return text

    return at_once(given, call, lambda: provider(given), ask)


def imports(given: Given) -> tuple[str, str]:
    """A provider made ready; then its first answer."""
    name, path, _ = PROVIDERS[_spoken(given.wire)]
    asked = {key: value for key, value in settings(given).items() if key != "tools"}
    ready = (
        "from any_llm import AnyLLM\n"
        f"llm = AnyLLM.create({name!r}, api_key='none', api_base={given.url + path!r})\n"
        "question = [{'role': 'user', 'content': 'Umbrella today?'}]\n"
    )
    return ready, f"print(llm.completion(messages=question, **{asked!r}).choices[0].message.content)\n"


def _spoken(wire: str) -> str:
    if wire not in PROVIDERS:
        raise ValueError(f"{wire}: any-llm takes the vendor's own items there")
    return wire


TASKS: dict[str, Callable[[Given], Callable[[], object]]] = {
    "render": render, "call": call, "loop": loop, "decode": decode, "stream": stream, "loopback": loopback,
}  # fmt: skip
EVIDENCE = {"render": rendered, "decode": read, "stream": added}
