"""pydantic-ai: an `Agent`, which repairs the `message_history` that it is run with, of its `ModelMessage` types.

The last question is the end of the history: with an unanswered call before a separate prompt, a run raises `UserError`.
"""

import asyncio
from base64 import b64decode
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai import messages as parts
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from referee.contenders import MAX_TOKENS, MODELS, QUESTION, Entry

CLASSES: dict[str, tuple[Any, Any, str]] = {
    "openai.chat": (OpenAIChatModel, OpenAIProvider, "/v1"),
    "openai.responses": (OpenAIResponsesModel, OpenAIProvider, "/v1"),
    "anthropic.messages": (AnthropicModel, AnthropicProvider, ""),
    "google.generate_content": (GoogleModel, GoogleProvider, ""),
}
SETTINGS = {"seed": "seed", "stop": "stop_sequences"}


class Connection:
    def __init__(self, wire: str, url: str) -> None:
        model, provider, ending = CLASSES[wire]
        self.wire = wire
        self.model = model(MODELS[wire], provider=provider(api_key="none", base_url=url + ending))

    def build(self, message: Entry) -> list[ModelMessage]:
        role, content = message["role"], message["content"]
        if role == "system":
            return [ModelRequest(parts=[parts.SystemPromptPart(each["text"]) for each in content])]
        if role == "user":
            return [ModelRequest(parts=[parts.UserPromptPart([_content(each) for each in content])])]
        if role == "tool":
            return [ModelRequest(parts=[_returned(each) for each in content])]
        return [ModelResponse(parts=[_response_part(each) for each in content])]

    def reply(self, history: Entry) -> tuple[list[ModelMessage], list[str]]:
        question = [ModelRequest.user_text_prompt(QUESTION)]
        reply = asyncio.run(model_request(self.model, question, model_settings=self.settings({})))
        return [reply], [call.tool_call_id for call in reply.tool_calls]

    def settings(self, history: Entry) -> ModelSettings:
        settings = {SETTINGS[name]: value for name, value in history.get("settings", {}).items()}
        if self.wire == "anthropic.messages":
            settings["max_tokens"] = MAX_TOKENS
        return ModelSettings(**settings)  # type: ignore[typeddict-item]

    def send(self, messages: list[ModelMessage], history: Entry) -> None:
        tools = [
            Tool.from_schema(lambda **arguments: "", each["name"], each["description"], each["parameters"])
            for each in history["options"]
        ]
        agent = Agent(self.model, tools=tools, model_settings=self.settings(history))
        asyncio.run(agent.run(message_history=messages))


def _content(part: Entry) -> Any:
    return (
        part["text"]
        if part["kind"] == "text"
        else parts.BinaryContent(b64decode(part["data"]), media_type=part["mime"])
    )


def _returned(part: Entry) -> parts.ToolReturnPart:
    content = [_content(each) for each in part["content"]]
    return parts.ToolReturnPart(part["name"], content[0] if len(content) == 1 else content, part["id"])


def _response_part(part: Entry) -> Any:
    if part["kind"] == "call":
        return parts.ToolCallPart(part["name"], part["arguments"], part["id"])
    return parts.TextPart(part["text"])


connect = Connection
