"""The google-genai SDK's typed methods, with its types for contents."""

import json
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import httpx2
from google import genai
from google.genai import types
from google.genai.models import _GenerateContentResponse_from_mldev

from benchmarks import work
from benchmarks.contenders.doing import CALLED, Caller, InProcess, picture
from benchmarks.work import Entry

REQUIREMENTS = ("google-genai>=3",)
NO_SIGNATURE = b"skip_thought_signature_validator"
"""What the documentation says for calls of another maker's, where the model wants a signature."""
DECLARED = [
    types.FunctionDeclaration(
        name=each["name"], description=each["description"], parameters_json_schema=each["parameters"]
    )
    for each in work.OPTIONS
]
CONFIG = types.GenerateContentConfig(
    system_instruction=work.start()[0]["text"],
    tools=[types.Tool(function_declarations=DECLARED)],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)


class Google(Caller):
    wires = ("google.generate_content",)
    http = httpx2
    hoists = has_agents_loop = True

    def connect(self, transport: InProcess | None = None) -> genai.Client:
        if transport is None or self.given.url:
            return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=self.given.url))
        options = types.HttpOptions(
            base_url="http://in.process", httpx_client=transport.client(), httpx_async_client=transport.async_client()
        )
        return genai.Client(api_key="none", http_options=options)

    def ask(self, client: genai.Client, messages: list[Any]) -> types.Content:
        return content_of(client.models.generate_content(model=self.given.model, contents=messages, config=CONFIG))

    async def ask_async(self, client: genai.Client, messages: list[Any]) -> types.Content:
        asked = client.aio.models.generate_content(model=self.given.model, contents=messages, config=CONFIG)
        return content_of(await asked)

    def item(self, entry: Entry) -> types.Content:
        seal = b64decode(entry["reasoning"]["seal"]) if "reasoning" in entry else None
        match entry["kind"]:
            case "call":
                made = types.FunctionCall(name=entry["name"], args=entry["arguments"])
                signature = seal or (NO_SIGNATURE if self.given.other_model else None)
                return types.Content(role="model", parts=[types.Part(function_call=made, thought_signature=signature)])
            case "result":
                came = types.FunctionResponse(name=entry["name"], response={"output": entry["text"]})
                return types.Content(role="user", parts=[types.Part(function_response=came)])
            case kind:
                parts = [types.Part(text=entry["text"], thought_signature=seal)]
                if "image" in entry:
                    mime, data = picture(entry)
                    parts.append(types.Part(inline_data=types.Blob(mime_type=mime, data=b64decode(data))))
                return types.Content(role="model" if kind == "text" else "user", parts=parts)

    def append(self, messages: list[Any], reply: types.Content, text: str) -> None:
        messages.append(reply)
        messages.append(self.item({"kind": "result", "name": reply.parts[-1].function_call.name, "text": text}))

    def text(self, reply: types.Content) -> str:
        return "".join(part.text for part in reply.parts or () if part.text)

    def calls(self, reply: types.Content) -> list[Any]:
        made = [part.function_call for part in reply.parts or () if part.function_call]
        return [(None, each.name or "", each.args or {}) for each in made]

    def decoder(self) -> Callable[[bytes], types.Content]:
        """The SDK's own object of an answer, by the steps of its client, which have no public names."""
        made = types.GenerateContentResponse._from_response
        mapped = _GenerateContentResponse_from_mldev
        return lambda body: content_of(made(response=mapped(json.loads(body), None, None), kwargs={}))

    def streamed(self, client: genai.Client, messages: list[Any]) -> types.Content:
        """The SDK's chunks; it has no accumulation of its own, so the parts are put together by hand."""
        chunks = client.models.generate_content_stream(model=self.given.model, contents=messages, config=CONFIG)
        parts = [part for chunk in chunks for part in content_of(chunk).parts or ()]
        return types.Content.model_construct(parts=parts)

    def imports(self) -> tuple[str, str]:
        ready = (
            "from google import genai\nfrom google.genai import types\n"
            f"client = genai.Client(api_key='none', http_options=types.HttpOptions(base_url={self.given.url!r}))"
        )
        config = "types.GenerateContentConfig(system_instruction='Be brief.')"
        asked = f"model='gemini-2.5-flash', contents='Umbrella?', config={config}"
        return ready, f"assert client.models.generate_content({asked}).text"


def content_of(reply: types.GenerateContentResponse) -> types.Content:
    return reply.candidates[0].content


CONTENDERS = {"google_sdk": Google.contender(*CALLED, imported="from google import genai\ngenai.Client")}
