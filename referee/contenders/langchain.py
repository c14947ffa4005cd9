"""LangChain: the chat models of its partner packages with `bind_tools` and `invoke`, and langchain-core's messages."""

from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

from referee.contenders import MAX_TOKENS, MODELS, QUESTION, Entry, function_of, texts_of

CLASSES: dict[str, tuple[Any, str, Entry]] = {
    "openai.chat": (ChatOpenAI, "/v1", {}),
    "openai.responses": (ChatOpenAI, "/v1", {"use_responses_api": True}),
    "anthropic.messages": (ChatAnthropic, "", {"max_tokens": MAX_TOKENS}),
    "google.generate_content": (ChatGoogleGenerativeAI, "", {}),
}


class Connection:
    def __init__(self, wire: str, url: str) -> None:
        self.chat_class, ending, fields = CLASSES[wire]
        self.fields = {"model": MODELS[wire], "api_key": "none", "base_url": url + ending, "max_retries": 0, **fields}

    def build(self, message: Entry) -> list[BaseMessage]:
        role, content = message["role"], message["content"]
        if role == "tool":
            return [
                ToolMessage(_content(each["content"]), tool_call_id=each["id"], name=each["name"]) for each in content
            ]
        if role == "assistant":
            calls = [
                {"name": each["name"], "args": each["arguments"], "id": each["id"]}
                for each in content
                if each["kind"] == "call"
            ]
            return [AIMessage(texts_of(message), tool_calls=calls)]
        return [{"system": SystemMessage, "user": HumanMessage}[role](_content(content))]

    def reply(self, history: Entry) -> tuple[list[BaseMessage], list[str]]:
        message = self.chat_class(**self.fields).invoke(QUESTION)
        return [message], [call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)]

    def send(self, messages: list[BaseMessage], history: Entry) -> None:
        settings = dict(history.get("settings", {}))
        stop = settings.pop("stop", None)
        model = self.chat_class(**self.fields, **settings)
        if history["options"]:
            model = model.bind_tools([function_of(each) for each in history["options"]])
        model.invoke(messages, stop=stop)


def _content(parts: list[Entry]) -> Any:
    if all(part["kind"] == "text" for part in parts):
        return "".join(part["text"] for part in parts)
    return [_part(part) for part in parts]


def _part(part: Entry) -> Entry:
    if part["kind"] == "text":
        return {"type": "text", "text": part["text"]}
    return {"type": "image", "base64": part["data"], "mime_type": part["mime"]}


connect = Connection
