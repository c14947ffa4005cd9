"""litellm: `litellm.completion` with messages in OpenAI's form; `openai/responses/…` is the Responses API.

`modify_params` is on, with which litellm repairs messages for a provider. `drop_params` is off, the default: litellm
then raises an error for a setting that a provider lacks.
"""

import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # the price list of the package: no network

import litellm

from referee.contenders import MAX_TOKENS, MODELS, QUESTION, Entry, function_of, texts_of
from referee.replies import arguments_text

litellm.modify_params = True
litellm.suppress_debug_info = True
PREFIXES = {
    "openai.chat": ("openai/", "/v1"),
    "openai.responses": ("openai/responses/", "/v1"),
    "anthropic.messages": ("anthropic/", ""),
    "google.generate_content": ("gemini/", ""),
}


class Connection:
    def __init__(self, wire: str, url: str) -> None:
        prefix, ending = PREFIXES[wire]
        model = prefix + MODELS[wire]
        self.how: Entry = {"model": model, "api_key": "none", "api_base": url + ending, "num_retries": 0}
        if wire == "anthropic.messages":
            self.how["max_tokens"] = MAX_TOKENS

    def build(self, message: Entry) -> list[Any]:
        role, content = message["role"], message["content"]
        if role == "tool":
            return [
                {"role": "tool", "tool_call_id": each["id"], "name": each["name"], "content": _content(each["content"])}
                for each in content
            ]
        if role == "assistant":
            calls = [_call(each) for each in content if each["kind"] == "call"]
            text = texts_of(message) if any(each["kind"] == "text" for each in content) else None
            return [{"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}]
        return [{"role": role, "content": _content(content)}]

    def reply(self, history: Entry) -> tuple[list[Any], list[str]]:
        question = [{"role": "user", "content": QUESTION}]
        message = litellm.completion(messages=question, **self.how).choices[0].message
        return [message], [call.id for call in message.tool_calls or ()]

    def send(self, messages: list[Any], history: Entry) -> None:
        tools = [function_of(each) for each in history["options"]]
        offered = {"tools": tools} if tools else {}
        litellm.completion(messages=messages, **offered, **history.get("settings", {}), **self.how)


def _content(parts: list[Entry]) -> Any:
    if all(part["kind"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return [_part(part) for part in parts]


def _part(part: Entry) -> Entry:
    if part["kind"] == "text":
        return {"type": "text", "text": part["text"]}
    return {"type": "image_url", "image_url": {"url": f"data:{part['mime']};base64,{part['data']}"}}


def _call(part: Entry) -> Entry:
    function = {"name": part["name"], "arguments": arguments_text(part)}
    return {"id": part["id"], "type": "function", "function": function}


connect = Connection
