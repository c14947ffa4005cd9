"""lm15: a provider class for each wire, `complete` with a `Request`; what `plan` says of it is what lm15 reports.

The leading system message is the request's `system`; a later one is `Message.developer`.
"""

from collections.abc import Iterator
from typing import Any

import lm15

from referee.contenders import MAX_TOKENS, MODELS, QUESTION, Entry

CLASSES: dict[str, tuple[Any, str]] = {
    "openai.chat": (lm15.OpenAIChatLM, "/v1"),
    "openai.responses": (lm15.OpenAILM, "/v1"),
    "anthropic.messages": (lm15.AnthropicLM, "/v1"),
    "google.generate_content": (lm15.GeminiLM, "/v1beta"),
}


class Connection:
    def __init__(self, wire: str, url: str) -> None:
        client_class, ending = CLASSES[wire]
        self.wire, self.client = wire, client_class(api_key="none", base_url=url + ending)

    def build(self, message: Entry) -> list[lm15.Message]:
        role, content = message["role"], message["content"]
        if role == "tool":
            results = [
                lm15.ToolResultPart(each["id"], tuple(map(_part, each["content"])), each["name"]) for each in content
            ]
            return [lm15.Message.tool(results)]
        make = {"system": lm15.Message.developer, "user": lm15.Message.user, "assistant": lm15.Message.assistant}
        return [make[role]([_part(each) for each in content])]

    def reply(self, history: Entry) -> tuple[list[lm15.Message], list[str]]:
        response = self.client.complete(self.request({}, messages=lm15.Message.user(QUESTION)))
        return [response.message], [call.id for call in response.tool_calls]

    def request(self, settings: Entry, **fields: Any) -> lm15.Request:
        bound = {"max_tokens": MAX_TOKENS} if self.wire == "anthropic.messages" else {}
        return lm15.Request(model=MODELS[self.wire], config=lm15.Config(**bound, **settings), **fields)

    def send(self, messages: list[lm15.Message], history: Entry) -> Iterator[str]:
        tools = [lm15.FunctionTool(**each) for each in history["options"]]
        settings = {name: tuple(each) if name == "stop" else each for name, each in history.get("settings", {}).items()}
        system = None
        if messages[0].role == "developer":
            system, messages = messages[0].text, messages[1:]
        request = self.request(settings, messages=messages, system=system, tools=tools)
        yield from (f"{each.action} {each.field}: {each.reason}" for each in self.client.plan(request))
        self.client.complete(request)


def _part(part: Entry) -> Any:
    if part["kind"] == "text":
        return lm15.TextPart(part["text"])
    if part["kind"] == "image":
        return lm15.ImagePart(media_type=part["mime"], data=part["data"])
    return lm15.ToolCallPart(part["id"], part["name"], part["arguments"])


connect = Connection
