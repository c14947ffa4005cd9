"""What the command's tests share."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import sabir
from sabir.authoring.inprocess import InProcessConnection, Served
from sabir.contract.protocols import Access, WireRequest
from sabir_echo.plugin import Echo, serve

from tests.cli.command import KEYS, environment


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key and no default model of whoever runs the tests; 80 columns."""
    for name in [name for name in os.environ if name.endswith(KEYS) or name not in environment()]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")


class Relay(Echo):
    """A gateway: it speaks echo's dialect under a name of its own, wants a key, and keeps what it was sent."""

    name = "relay"
    key_variables = ("RELAY_API_KEY",)

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def connect(self, access: Access) -> InProcessConnection:
        return InProcessConnection(self.serve)

    def serve(self, request: WireRequest) -> Served:
        self.requests.append(json.loads(request.body))
        return serve(request)


@pytest.fixture
def relay() -> Iterator[Relay]:
    """The gateway, registered for one test."""
    provider = Relay()
    sabir.register("relay", provider)
    yield provider
    sabir.unregister("relay")


@pytest.fixture
def history() -> list[sabir.Message]:
    """A conversation with an image, a call and its result."""
    question = sabir.user("What time is it there?", sabir.image(b"\x89PNG\r\n\x1a\n" + bytes(300), name="tower.png"))
    payload = sabir.OptionCallPayload(invocation_id="call-1", option_name="time_in", arguments={"city": "Paris"})
    call = sabir.Message(policy="llm", payload=payload)
    result = sabir.OptionResultBuilder.response_to(call).success("14:03")
    return [sabir.system("Be brief."), question, call, result, sabir.assistant("It is 14:03.")]
