"""A connection hides secrets, loses no cancellation, and is over once."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from nats.aio.client import Client
from sabir_runtime.distributed.connection import NatsConnection, display_target
from sabir_runtime.distributed.errors import NoServer

from tests.distributed.support import soon


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
        ("nats://ada:secret@one:4222, tls://token@two", "nats://one:4222,tls://two"),
        ("localhost:4222", "localhost:4222"),
        ("ada:secret@localhost", "localhost"),
        ("nats://ada:p@ss@one", "nats://one"),
        ("ws://token@one/path?key=secret", "ws://one"),
        ("nats://ada:secret@[::1]:4222/", "nats://[::1]:4222"),
    ],
)
def test_a_target_is_shown_without_its_secrets(target: str, expected: str) -> None:
    assert display_target(target) == expected


class Swallowing(Client):
    """Waits in a publish, and lets a cancellation pass unnoticed, as nats-py's flush does."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = asyncio.Event()

    async def publish(self, *given: Any, **named: Any) -> None:
        self.waits.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def test_a_cancellation_that_meets_a_publish_is_not_lost() -> None:
    """Else `asyncio.timeout` around a call would have no effect while a buffer is full."""
    client = Swallowing()
    connection = NatsConnection(client, label="test", patience=1)
    sending = asyncio.ensure_future(connection.publish("a", b""))
    await client.waits.wait()

    sending.cancel()

    with pytest.raises(asyncio.CancelledError):
        await soon(sending)


async def test_a_closed_connection_says_so_to_whoever_sends(url: str) -> None:
    connection = NatsConnection(url, label="test", patience=1)
    await connection.open()
    assert connection.is_open
    assert connection.largest == 1 << 20

    await connection.close()

    assert not connection.is_open
    assert isinstance(await soon(connection.gone), NoServer)
    with pytest.raises(NoServer, match=f"this program closed its connection to NATS at {url}"):
        await connection.publish("a", b"")


async def test_opening_can_be_cancelled() -> None:
    """Nothing of it is left behind: a socket that nobody closes is a warning, and so a failure."""
    connection = NatsConnection("nats://127.0.0.1:1", label="test", patience=1000)
    opening = asyncio.ensure_future(connection.open())
    await asyncio.sleep(0)

    opening.cancel()

    with pytest.raises(asyncio.CancelledError):
        await soon(opening)
