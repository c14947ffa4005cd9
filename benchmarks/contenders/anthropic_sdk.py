"""The anthropic SDK's typed methods."""

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
from anthropic.types import Message

from benchmarks import work
from benchmarks.contenders.doing import CALLED, Caller, InProcess, picture
from benchmarks.work import Entry

REQUIREMENTS = ("anthropic>=2",)
ASKED = {
    "model": work.MODELS["anthropic.messages"],
    "max_tokens": work.MAX_TOKENS,
    "system": work.start()[0]["text"],
    "tools": [
        {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
        for each in work.OPTIONS
    ],
}
"""What the typed methods are called with beside the history."""


class Anthropic(Caller):
    wires = ("anthropic.messages",)
    http = httpx2
    hoists = has_agents_loop = True

    def connect(self, transport: InProcess | None = None, client_class: Any = anthropic.Anthropic) -> Any:
        url, is_local = self.given.url or "http://in.process", transport and not self.given.url
        http_client = transport.client() if is_local else None
        return client_class(api_key="none", base_url=url, max_retries=0, http_client=http_client)

    def connect_async(self) -> Any:
        return self.connect(client_class=anthropic.AsyncAnthropic)

    def ask(self, client: Any, messages: list[Any]) -> Any:
        return client.messages.create(**ASKED, messages=messages)

    ask_async = ask

    def item(self, entry: Entry) -> Entry:
        told = entry.get("reasoning")
        thought = [{"type": "thinking", "thinking": told["text"], "signature": told["seal"]}] if told else []
        match entry["kind"]:
            case "call":
                block = {"type": "tool_use", "id": entry["id"], "name": entry["name"], "input": entry["arguments"]}
                return {"role": "assistant", "content": [*thought, block]}
            case "result":
                block = {"type": "tool_result", "tool_use_id": entry["id"], "content": entry["text"]}
                return {"role": "user", "content": [block]}
            case kind:
                role = {"text": "assistant"}.get(kind, kind)
                shown = [_image(entry)] if "image" in entry else []
                if not thought and not shown:
                    return {"role": role, "content": entry["text"]}
                return {"role": role, "content": [*thought, {"type": "text", "text": entry["text"]}, *shown]}

    def append(self, messages: list[Any], reply: Message, text: str) -> None:
        messages.append({"role": "assistant", "content": reply.content})
        messages.append(self.item({"kind": "result", "id": reply.content[-1].id, "text": text}))

    def text(self, reply: Message) -> str:
        return "".join(block.text for block in reply.content if block.type == "text")

    def calls(self, reply: Message) -> list[Any]:
        return [(block.id, block.name, block.input) for block in reply.content if block.type == "tool_use"]

    def decoder(self) -> Callable[[bytes], Message]:
        """The SDK's own object of an answer, as its client makes it: without validation."""
        return lambda body: Message.construct(**json.loads(body))

    def streamed(self, client: Any, messages: list[Any]) -> Message:
        with client.messages.stream(**ASKED, messages=messages) as events:
            return events.get_final_message()

    def imports(self) -> tuple[str, str]:
        ready = f"import anthropic\nclient = anthropic.Anthropic(api_key='none', base_url={self.given.url!r})"
        messages = [{"role": "user", "content": "Umbrella?"}]
        asked = f"model='claude-sonnet-4-5', max_tokens=1024, system='Be brief.', messages={messages!r}"
        return ready, f"assert client.messages.create({asked}).content[0].text"


def _image(entry: Entry) -> Entry:
    mime, data = picture(entry)
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


CONTENDERS = {"anthropic_sdk": Anthropic.contender(*CALLED, imported="import anthropic\nanthropic.Anthropic")}
