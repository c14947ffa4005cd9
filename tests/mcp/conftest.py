"""Servers in processes of their own, and in this one, and calls of their options."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir import Message, OptionCallPayload
from sabir_mcp import MCPOptions

from tests.mcp.weather import make_server

HERE = Path(__file__).parent
WEATHER = [sys.executable, str(HERE / "weather.py")]
PLAIN = [sys.executable, str(HERE / "plain.py")]


def calling(name: str, /, **arguments: Any) -> Message:
    """A call, as a model makes it."""
    payload = OptionCallPayload(invocation_id=f"call-{name}", option_name=name, arguments=arguments)
    return Message(policy="llm", payload=payload)


async def answered(options: MCPOptions, name: str, /, **arguments: Any) -> Message:
    """The result of one call."""
    (message,) = await sabir.answer([calling(name, **arguments)], options)
    return message


def value_of(message: Message) -> Any:
    """The JSON value that a result holds; fails where it is an error."""
    result = message.result
    assert result is not None
    assert not result.is_error, result.error_message
    return json.loads(result.result_json)


def texts_of(message: Message) -> list[str]:
    """The texts of a result that is no error."""
    assert message.result is not None
    assert not message.result.is_error, message.result.error_message
    return [part.text for part in message.parts if part.kind == "text"]


def error_of(message: Message) -> tuple[str, str]:
    """Type and text of an error result."""
    assert message.result is not None
    assert message.result.is_error, message
    return message.result.error_type or "", message.result.error_message or ""


@contextmanager
def http_server() -> Iterator[str]:
    """The weather server over streamable HTTP, on loopback."""
    with subprocess.Popen([*WEATHER, "http"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of one for all tests of a module."""
    with http_server() as address:
        yield address


@pytest.fixture(params=["process", "http", "here"])
def server(request: pytest.FixtureRequest) -> Any:
    """The weather server, in each of the ways in which a server is reached."""
    ways = {"process": lambda: WEATHER, "http": lambda: request.getfixturevalue("url"), "here": make_server}
    return ways[request.param]()
