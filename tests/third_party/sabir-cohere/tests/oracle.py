"""What Cohere takes, by the official SDK's own types, and the order that its documents ask for.

each field      a parameter of V2Client.chat, of its annotated type      nothing that a model does not declare
the messages    the system's first, every call answered right behind it, nothing empty
"""

import inspect
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, get_type_hints

import pydantic


@cache
def _fields() -> dict[str, pydantic.TypeAdapter[Any]]:
    """Field → its type; `stream` is a field of the wire, for which the SDK has a method of its own."""
    from cohere.v2.client import V2Client

    hints = get_type_hints(V2Client.chat)
    names = [name for name in inspect.signature(V2Client.chat).parameters if name not in ("self", "request_options")]
    return {"stream": pydantic.TypeAdapter(bool), **{name: pydantic.TypeAdapter(hints[name]) for name in names}}


def check(body: bytes) -> None:
    """AssertionError for a body that Cohere would refuse."""
    found = json.loads(body)
    for name, value in found.items():
        assert name in _fields(), f"{name} is no field of the request"
        try:
            read = _fields()[name].validate_python(value)
        except pydantic.ValidationError as error:
            raise AssertionError(f"{name} is not of the SDK's type: {error}") from None
        for where in _undeclared(read):
            raise AssertionError(f"{name} holds {where}, which the SDK's types do not declare")
    _check_order(found["messages"])


def _undeclared(value: Any) -> Iterator[str]:
    if isinstance(value, pydantic.BaseModel):
        yield from (f"{type(value).__name__}.{name}" for name in value.model_extra or ())
        value = [getattr(value, name) for name in type(value).model_fields]
    if isinstance(value, list | tuple):
        for each in value:
            yield from _undeclared(each)


def _check_order(messages: list[Any]) -> None:
    waiting: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        assert message["role"] != "system" or index == 0, f"{where} is the system's, which stands first or nowhere"
        assert message.get("content", "…") not in ("", []), f"{where} has empty content"
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            assert block.get("text", "…") != "", f"{where} holds an empty text"
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, f"{where} answers no call of the message before it"
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"{where} comes while {waiting} have no answer"
        calls = message.get("tool_calls")
        assert calls != [], f"{where} has an empty list of calls"
        waiting = [call["id"] for call in calls or ()]
    assert not waiting, f"{waiting} have no answer"
