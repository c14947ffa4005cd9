"""How each library is called: one module per library, imported in that library's environment only.

A module has the function `connect(wire, url)`, which returns an object with

    build(message)        a message of the history, written by hand → list of the library's own messages
    reply(settings)       what the vendor's server answers to a question → (own messages, ids of its calls)
    send(messages, history)   sends the messages with the history's options and settings; yields lines that the
                              library's own interface reports, or returns None if it has no such interface

Each library gets its messages as its documentation builds them, and the vendor's replies as it decodes them itself.
"""

from typing import Any

Entry = dict[str, Any]
QUESTION = "Continue."
CONTENDERS = {
    "sabir": "sabir", "pydantic_ai": "pydantic-ai", "litellm": "litellm", "langchain": "LangChain", "lm15": "lm15",
}  # fmt: skip
"""Module and environment → the name on the page."""
MODELS = {
    "openai.chat": "gpt-4.1",
    "openai.responses": "gpt-5",
    "anthropic.messages": "claude-sonnet-4-5",
    "google.generate_content": "gemini-3-pro-preview",
}
MAX_TOKENS = 1024
"""Every library asks Anthropic for so many, because its API requires a number."""


def texts_of(message: Entry) -> str:
    """Return the texts of a message, joined."""
    return "".join(part["text"] for part in message["content"] if part["kind"] == "text")


def function_of(option: Entry) -> Entry:
    """Return an option in OpenAI's form, which several libraries take."""
    return {"type": "function", "function": option}
