"""What the command's tests share."""

import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import sabir
from sabir.authoring import Access, Credential, InProcessConnection, InProcessResponse, WireRequest
from sabir_cli.main import main
from sabir_echo.plugin import Echo, serve

from tests.cli.command import KEYS, NO_FOLDER, environment


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No key, no settings and no conversations of whoever runs the tests; 80 columns."""
    for name in [name for name in os.environ if name.endswith(KEYS) or name not in environment()]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CONFIG_HOME", NO_FOLDER)
    monkeypatch.setenv("SABIR_HOME", str(tmp_path_factory.mktemp("home")))


class Relay(Echo):
    """A gateway: it speaks echo's dialect under a name of its own, wants a key, and keeps what it was sent."""

    name = "relay"
    credentials = (Credential(variables=("RELAY_API_KEY",)),)

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def connect(self, access: Access) -> InProcessConnection:
        return InProcessConnection(self.serve)

    def serve(self, request: WireRequest) -> InProcessResponse:
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


class Command:
    """The command in this process."""

    def __init__(self, capture: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capture, self._monkeypatch = capture, monkeypatch

    def __call__(self, *arguments: str, given: bytes | None = None, code: int = 0) -> tuple[str, str]:
        """What it wrote on standard output and on standard error; `given` is piped to it."""
        if given is not None:
            pipe(self._monkeypatch, given)
        assert main(arguments) == code
        return self._capture.readouterr()

    def error(self, *arguments: str, given: bytes | None = None, code: int = 2) -> str:
        """The one line that an error is; nothing else was written."""
        out, err = self(*arguments, given=given, code=code)
        (line,) = err.splitlines()
        assert (out, line[:7]) == ("", "sabir: ")
        return line[7:]


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Have standard input be a pipe that holds these bytes."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, as a function."""
    return Command(capsys, monkeypatch)
