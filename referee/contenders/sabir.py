"""sabir: `sabir.adapter(model).complete_sync`; the reply's `losses` are what it reports."""

from collections.abc import Iterator
from typing import Any

import sabir
from sabir import Message, OptionCallPayload, OptionResultPayload

from referee.contenders import MAX_TOKENS, MODELS, QUESTION, Entry

PLACES = {
    "openai.chat": ("openai.chat", "/v1"),
    "openai.responses": ("openai.responses", "/v1"),
    "anthropic.messages": ("anthropic", ""),
    "google.generate_content": ("google", ""),
}


class Connection:
    def __init__(self, wire: str, url: str) -> None:
        name, ending = PLACES[wire]
        self.wire = wire
        self.adapter = sabir.adapter(f"{name}:{MODELS[wire]}", api_key="none", base_url=url + ending)

    def build(self, message: Entry) -> list[Message]:
        role, parts = message["role"], message["content"]
        if role == "tool":
            return [_result(part) for part in parts]
        content = [_part(part) for part in parts if part["kind"] != "call"]
        make = {"system": sabir.system, "user": sabir.user, "assistant": sabir.assistant}[role]
        return [*([make(*content)] if content else []), *(_call(part) for part in parts if part["kind"] == "call")]

    def reply(self, history: Entry) -> tuple[list[Message], list[str]]:
        reply = self.adapter.complete_sync(QUESTION, options=_options(history))
        return list(reply.messages), [
            message.call.invocation_id for message in reply.option_calls if message.call is not None
        ]

    def send(self, messages: list[Message], history: Entry) -> Iterator[str]:
        fields: dict[str, Any] = dict(history.get("settings", {}))
        if self.wire == "anthropic.messages":
            fields["max_output_tokens"] = MAX_TOKENS
        reply = self.adapter.complete_sync(messages, options=_options(history), settings=sabir.Settings(**fields))
        yield from map(str, reply.losses)


def _part(part: Entry) -> Any:
    return (
        sabir.TextPart(text=part["text"])
        if part["kind"] == "text"
        else sabir.image(f"data:{part['mime']};base64,{part['data']}")
    )


def _call(part: Entry) -> Message:
    payload = OptionCallPayload(invocation_id=part["id"], option_name=part["name"], arguments=part["arguments"])
    return Message(policy="llm", payload=payload)


def _result(part: Entry) -> Message:
    named = {"invocation_id": part["id"], "option_name": part["name"]}
    if all(each["kind"] == "text" for each in part["content"]):
        content: dict[str, Any] = {"result": "".join(each["text"] for each in part["content"])}
    else:
        content = {"parts": tuple(map(_part, part["content"]))}
    return Message(policy=part["name"], payload=OptionResultPayload(**named, **content))


def _options(history: Entry) -> list[sabir.Option]:
    return [
        sabir.Option.from_schema(each["name"], each["description"], each["parameters"]) for each in history["options"]
    ]


connect = Connection
