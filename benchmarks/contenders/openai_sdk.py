"""The openai SDK's typed methods, on both of its wires."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from benchmarks import answers, work
from benchmarks.contenders.doing import CALLED, Caller, InProcess, role_dictionary
from benchmarks.work import Entry

REQUIREMENTS = ("openai>=3",)
CHAT = "openai.chat"
STRICT = [{**option, "strict": True} for option in work.OPTIONS]
"""Its stream helpers take strict options alone."""


class OpenAI(Caller):
    wires = (CHAT, "openai.responses")
    http = httpx2
    has_agents_loop = True

    def connect(self, transport: InProcess | None = None, client_class: Any = openai.OpenAI) -> Any:
        """The client's methods of this wire, and what they are called with beside the history."""
        url = (self.given.url or "http://in.process") + "/v1"
        http_client = transport.client() if transport and not self.given.url else None
        client = client_class(api_key="none", base_url=url, max_retries=0, http_client=http_client)
        if self.wire == CHAT:
            return client.chat.completions, [{"type": "function", "function": option} for option in STRICT]
        return client.responses, [{"type": "function", **option} for option in STRICT]

    def connect_async(self) -> Any:
        return self.connect(client_class=openai.AsyncOpenAI)

    def arguments(self, tools: list[Any], messages: list[Any]) -> dict[str, Any]:
        return {"model": work.MODELS[self.wire], "messages" if self.wire == CHAT else "input": messages, "tools": tools}

    def ask(self, client: Any, messages: list[Any]) -> Any:
        methods, tools = client
        return methods.create(**self.arguments(tools, messages))

    ask_async = ask

    def history(self, entries: list[Entry]) -> list[Any]:
        """What its own server said on Responses goes back as it came."""
        history: list[Any] = []
        for entry in entries:
            is_own = self.given.talk == work.AGENTS and entry["kind"] in ("call", "text") and "elsewhere" not in entry
            if is_own and self.wire != CHAT:
                history += json.loads(answers.reply_that_says(self.wire, entry))["output"]
            else:
                history.append(self.item(entry))
        return history

    def item(self, entry: Entry) -> Entry:
        match entry["kind"]:
            case "result" if self.wire == CHAT:
                return {"role": "tool", "tool_call_id": entry["id"], "content": entry["text"]}
            case "result":
                return {"type": "function_call_output", "call_id": entry["id"], "output": entry["text"]}
            case "call" if self.wire != CHAT:
                arguments = json.dumps(entry["arguments"])
                return {"type": "function_call", "call_id": entry["id"], "name": entry["name"], "arguments": arguments}
            case "user" if "image" in entry and self.wire != CHAT:
                image = {"type": "input_image", "detail": "auto", "image_url": entry["image"]}
                return {"role": "user", "content": [{"type": "input_text", "text": entry["text"]}, image]}
        return role_dictionary(entry)

    def append(self, messages: list[Any], reply: Any, text: str) -> None:
        if self.wire == CHAT:
            messages.append(reply.choices[0].message)
        else:
            messages.extend(reply.output)
        messages.append(self.item({"kind": "result", "id": self.made(reply)[-1][0], "text": text}))

    def text(self, reply: Any) -> str:
        return reply.choices[0].message.content or "" if self.wire == CHAT else reply.output_text

    def made(self, reply: Any) -> list[tuple[str, Any]]:
        if self.wire == CHAT:
            return [(each.id, each.function) for each in reply.choices[0].message.tool_calls]
        return [(each.call_id, each) for each in reply.output if each.type == "function_call"]

    def calls(self, reply: Any) -> list[Any]:
        return [(identifier, called.name, json.loads(called.arguments)) for identifier, called in self.made(reply)]

    def decoder(self) -> Callable[[bytes], Any]:
        """The SDK's own object of an answer, as its client makes it: without validation."""
        kind: Any = ChatCompletion if self.wire == CHAT else Response
        return lambda body: kind.construct(**json.loads(body))

    def streamed(self, client: Any, messages: list[Any]) -> Any:
        methods, tools = client
        with methods.stream(**self.arguments(tools, messages)) as events:
            return events.get_final_completion() if self.wire == CHAT else events.get_final_response()

    def imports(self) -> tuple[str, str]:
        if self.wire != CHAT:
            raise ValueError(self.wire)
        ready = f"import openai\nclient = openai.OpenAI(api_key='none', base_url={self.given.url + '/v1'!r})"
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Umbrella?"}]
        answer = f"client.chat.completions.create(model='gpt-4.1', messages={messages!r}).choices[0].message.content"
        return ready, f"assert {answer}"


CONTENDERS = {"openai_sdk": OpenAI.contender(*CALLED, imported="import openai\nopenai.OpenAI")}
