"""llm: its models' `prompt(messages=…)`; OpenAI's come with it, Anthropic's and Google's are the author's plugins.

`render` is a model's own `build_messages`, with the system text beside it. OpenAI's models take `api_base` but no
client, and make one for each call: on an in-process transport they get one by `get_client`, overridden, and keep it.
Anthropic's always stream, so that no whole answer can be given to them: they do `render` and `stream`. Google's have
their address in the code: `render` alone. `decode` is left out: nothing but a call decodes. Two
private names are called where no public method holds the mapping. llm-anthropic asks for anthropic<2.
"""

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import httpx2
import llm
from llm.default_plugins.openai_models import AsyncChat, AsyncResponses, Chat, Responses
from llm.parts import AttachmentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from llm_anthropic import ClaudeMessages
from llm_gemini import GeminiPro
from openai import OpenAI

from benchmarks import answers, work
from benchmarks.contenders.doing import Caller, InProcess, picture
from benchmarks.work import Entry

REQUIREMENTS = ("llm>=0.36", "llm-anthropic>=0.30", "llm-gemini>=0.35", "httpx2")
MODELS: dict[str, tuple[Any, Any]] = {"openai.chat": (Chat, AsyncChat), "openai.responses": (Responses, AsyncResponses)}
"""The models that come with llm."""
ANTHROPIC, GOOGLE = "anthropic.messages", "google.generate_content"
OFFERED = [
    llm.Tool(name=entry["name"], description=entry["description"], input_schema=entry["parameters"])
    for entry in work.OPTIONS
]
WHOLE: dict[str, Any] = {"tools": OFFERED, "stream": False, "key": "none"}


class Streaming(Caller):
    wires = (*MODELS, ANTHROPIC)
    http = httpx2

    def connect(self, transport: InProcess | None = None, *, is_async: bool = False) -> Any:
        name = self.given.model
        if self.wire == GOOGLE:
            return GeminiPro(name)
        if self.wire == ANTHROPIC:
            return ClaudeMessages(name, base_url=self.given.url, default_max_tokens=work.MAX_TOKENS)
        url = self.given.url + "/v1"
        made = MODELS[self.wire][is_async](name, model_name=name, api_base=url, supports_tools=True)
        if transport is not None and not self.given.url:
            client = OpenAI(api_key="none", http_client=transport.client())
            made.get_client = lambda key: client
        return made

    def item(self, entry: Entry) -> llm.Message:
        thought, sealed = self.signed(entry)
        match entry["kind"]:
            case "system":
                return llm.system(entry["text"])
            case "user" if "image" in entry:
                mime, data = picture(entry)
                shown = llm.Attachment(type=mime, content=b64decode(data))
                return llm.user(entry["text"], AttachmentPart(attachment=shown))
            case "user":
                return llm.user(entry["text"])
            case "call":
                call = ToolCallPart(entry["name"], entry["arguments"], entry["id"], provider_metadata=sealed)
                return llm.assistant(*thought, call)
            case "result":
                return came(entry["id"], entry["text"])
        return llm.assistant(*thought, TextPart(entry["text"], provider_metadata=sealed))

    def signed(self, entry: Entry) -> tuple[list[ReasoningPart], dict[str, Any] | None]:
        """What was thought, as a part of its own, or as metadata of the part that it led to."""
        told = entry.get("reasoning")
        if told is None:
            return [], None
        if self.wire == GOOGLE:
            return [], {"gemini": {"thoughtSignature": told["seal"]}}
        is_claude = self.wire == ANTHROPIC
        signed = {"anthropic": {"signature": told["seal"]}} if is_claude else {"openai": answers.reasoning_item(told)}
        return [ReasoningPart(told["text"], provider_metadata=signed)], None

    def text(self, reply: Any) -> str:
        return reply if isinstance(reply, str) else reply.text()

    def calls(self, reply: llm.Response) -> list[Any]:
        return [(made.tool_call_id, made.name, made.arguments) for made in reply.tool_calls()]

    def found(self, reply: llm.Response) -> object:
        """llm-anthropic adds a space to a text that a call follows."""
        text, calls = reply.text(), self.calls(reply)
        return answers.found(self.wire, text[:-1] if self.wire == ANTHROPIC and calls else text, calls)

    def streamed(self, client: Any, messages: list[Any]) -> llm.Response:
        response = client.prompt(messages=messages, tools=OFFERED, stream=True, key="none")
        for _ in response:
            pass
        return response


class Rendering(Streaming):
    wires = work.WIRES

    def render(self) -> Callable[[], object]:
        """The messages → the system text and the list that the model sends; Google's model takes the text apart."""
        asked, entries = self.connect(), self.entries()
        apart = entries[0]["text"] if self.wire == GOOGLE else None
        prompt = llm.Prompt("", asked, system=apart, messages=self.history(entries[1:] if apart else entries))
        renders: dict[str, Callable[[], object]] = {
            "openai.chat": lambda: {"messages": asked.build_messages(prompt, None)},
            "openai.responses": lambda: asked._build_responses_input(prompt),
            ANTHROPIC: lambda: {
                "system": asked._extract_system(prompt), "messages": asked.build_messages(prompt, None),
            },
            GOOGLE: lambda: asked.build_request_body(prompt, None),
        }  # fmt: skip
        return renders[self.wire]

    def rendered(self, returned: Any) -> object:
        return {"input": returned[0], "instructions": returned[1]} if isinstance(returned, tuple) else returned


class Whole(Streaming):
    wires = tuple(MODELS)

    def connect_async(self) -> Any:
        return self.connect(is_async=True)

    def ask(self, client: Any, messages: list[Any]) -> Any:
        return client.prompt(messages=messages, **WHOLE)

    async def ask_async(self, client: Any, messages: list[Any]) -> Any:
        return await client.prompt(messages=messages, **WHOLE).text()

    def append(self, messages: list[Any], reply: llm.Response, text: str) -> None:
        messages.extend((*reply.messages(), came(reply.tool_calls()[0].tool_call_id, text)))

    def imports(self) -> tuple[str, str]:
        name, chosen = self.given.model, MODELS[self.wire][0].__name__
        ready = (
            f"from llm.default_plugins.openai_models import {chosen}\n"
            f"model = {chosen}({name!r}, model_name={name!r}, api_base={self.given.url + '/v1'!r})\n"
        )
        return ready, "print(model.prompt('Umbrella today?', stream=False, key='none').text())\n"


def came(identifier: str | None, text: str) -> llm.Message:
    return llm.tool_message(ToolResultPart(work.OPTIONS[0]["name"], text, identifier))


WHOLE_TASKS = Whole.contender("call", "loop", "loopback", imported="import llm\nllm.Model")
RENDERING, STREAMING = Rendering.contender("render"), Streaming.contender("stream")
CONTENDERS = {
    "llm": WHOLE_TASKS._replace(
        tasks={**RENDERING.tasks, **STREAMING.tasks, **WHOLE_TASKS.tasks},
        evidence={**WHOLE_TASKS.evidence, **STREAMING.evidence, **RENDERING.evidence},
    )
}
