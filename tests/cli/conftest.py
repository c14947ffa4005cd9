"""What the command's tests share."""

from collections.abc import Iterator

import pytest
import sabir
from sabir_echo.plugin import Echo

from tests.cli.command import KEYS, environment


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key and no default model of whoever runs the tests; 80 columns."""
    import os

    for name in [name for name in os.environ if name.endswith(KEYS) or name not in environment()]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")


class Relay(Echo):
    """A gateway: it speaks echo's dialect under a name of its own, and wants a key."""

    name = "relay"
    key_variables = ("RELAY_API_KEY",)


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
