"""The google-genai SDK's typed methods, with its types for contents."""

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import httpx2
from google import genai
from google.genai import types
from google.genai.models import _GenerateContentResponse_from_mldev

from tests.benchmarks import work
from tests.benchmarks.contenders.doing import answered, at_once, counted, looping, picture
from tests.benchmarks.contenders.transport import Transport
from tests.benchmarks.work import Entry, Given

REQUIREMENTS = ("google-genai>=3",)
IMPORTED = "from google import genai\ngenai.Client"


NO_SIGNATURE = b"skip_thought_signature_validator"
"""What the documentation says for calls of another maker's, where the model wants a signature."""


def client_of(given: Given, transport: Transport) -> genai.Client:
    """A client at the stub, or on the transport."""
    if given.wire != "google.generate_content":
        raise ValueError(given.wire)
    if given.url:
        return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=given.url))
    options = types.HttpOptions(
        base_url="http://in.process",
        httpx_client=httpx2.Client(transport=transport),
        httpx_async_client=httpx2.AsyncClient(transport=transport),
    )
    return genai.Client(api_key="none", http_options=options)


def content_of(entry: Entry, unsigned: bytes | None = None) -> types.Content:
    """An entry of the conversation as the SDK's content; `unsigned` is the signature of a call that has none."""
    seal = b64decode(entry["reasoning"]["seal"]) if "reasoning" in entry else None
    match entry["kind"]:
        case "call":
            made = types.FunctionCall(name=entry["name"], args=entry["arguments"])
            return types.Content(
                role="model", parts=[types.Part(function_call=made, thought_signature=seal or unsigned)]
            )
        case "result":
            came = types.FunctionResponse(name=entry["name"], response={"output": entry["text"]})
            return types.Content(role="user", parts=[types.Part(function_response=came)])
        case kind:
            parts = [types.Part(text=entry["text"], thought_signature=seal)]
            if "image" in entry:
                mime, data = picture(entry)
                parts.append(types.Part(inline_data=types.Blob(mime_type=mime, data=b64decode(data))))
            return types.Content(role="model" if kind == "text" else "user", parts=parts)


def arguments_of(given: Given, entries: list[Entry]) -> dict[str, Any]:
    """What the typed methods are called with; the contents in it are the history that grows."""
    system, *rest = entries
    declared = [
        types.FunctionDeclaration(
            name=each["name"], description=each["description"], parameters_json_schema=each["parameters"]
        )
        for each in work.OPTIONS
    ]
    config = types.GenerateContentConfig(
        system_instruction=system["text"],
        tools=[types.Tool(function_declarations=declared)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    unsigned = NO_SIGNATURE if given.other_model else None
    return {"model": given.model, "contents": [content_of(entry, unsigned) for entry in rest], "config": config}


def parts_of(reply: types.GenerateContentResponse) -> list[types.Part]:
    """The parts of the first candidate."""
    assert reply.candidates and reply.candidates[0].content
    return reply.candidates[0].content.parts or []


def text_of(parts: list[types.Part]) -> str:
    """What parts say."""
    return "".join(part.text for part in parts if part.text)


def call(given: Given) -> Callable[[], tuple[bytes, str]]:
    """One typed call."""
    transport = Transport(work.reply(given.wire))
    client, arguments = client_of(given, transport), arguments_of(given, work.entries_of(given))

    return answered(transport, lambda: text_of(parts_of(client.models.generate_content(**arguments))))


def loop(given: Given) -> Callable[[], object]:
    """An agent loop that appends what the SDK returned, as its documentation does."""
    transport = Transport()
    client, arguments = client_of(given, transport), arguments_of(given, work.start())

    def begin() -> list[Any]:
        arguments["contents"] = history = arguments_of(given, work.start())["contents"]
        return history

    def take_turn(history: list[Any], text: str) -> None:
        reply = client.models.generate_content(**arguments)
        (part,) = parts_of(reply)
        history.append(reply.candidates[0].content)  # type: ignore[index]
        assert part.function_call
        history.append(content_of({"kind": "result", "name": part.function_call.name, "text": text}))

    return looping(given, transport, begin, take_turn, hoisted=1, message=content_of)


def decode(given: Given) -> Callable[[], list[types.Part]]:
    """The SDK's own object of an answer, by the steps of its client, which have no public names."""
    client_of(given, Transport())
    body, made = work.reply_with_calls(given.wire), types.GenerateContentResponse._from_response
    return lambda: parts_of(made(response=_GenerateContentResponse_from_mldev(json.loads(body), None, None), kwargs={}))


def stream(given: Given) -> Callable[[], list[types.Part]]:
    """The SDK's chunks; it has no accumulation of its own, so the parts are put together by hand."""
    client, arguments = client_of(given, Transport()), arguments_of(given, work.conversation(10))

    def run() -> list[types.Part]:
        chunks = client.models.generate_content_stream(**arguments)
        return [part for chunk in chunks for part in parts_of(chunk)]

    return counted(run, given.size)


def loopback(given: Given) -> Callable[[], object]:
    """Typed calls to the stub."""
    arguments = arguments_of(given, work.entries_of(given))

    async def ask(client: genai.Client) -> str:
        return text_of(parts_of(await client.aio.models.generate_content(**arguments)))

    return at_once(given, call, lambda: client_of(given, Transport()), ask)


def imports(given: Given) -> tuple[str, str]:
    """A client; then one call."""
    client_of(given, Transport())
    ready = (
        "from google import genai\nfrom google.genai import types\n"
        f"client = genai.Client(api_key='none', http_options=types.HttpOptions(base_url={given.url!r}))"
    )
    config = "types.GenerateContentConfig(system_instruction='Be brief.')"
    asked = f"model='gemini-2.5-flash', contents='Umbrella?', config={config}"
    return ready, f"assert client.models.generate_content({asked}).text"


def _evidence(given: Given, parts: list[types.Part]) -> object:
    made = [part.function_call for part in parts if part.function_call]
    return work.found(given.wire, text_of(parts), [(None, each.name or "", each.args or {}) for each in made])


TASKS = {"call": call, "loop": loop, "decode": decode, "stream": stream, "loopback": loopback}
EVIDENCE = {"decode": _evidence, "stream": _evidence}
