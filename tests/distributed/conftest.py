"""One NATS server for all of these tests, and a context's name for each of them alone."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
from nats import connect
from nats.aio.client import Client

from tests.distributed.support import Caller, Gate, Place
from tests.servers.shared_nats import nats

__all__ = ["nats"]
NUMBERS = count()


@pytest.fixture(scope="session")
def url(nats: str) -> str:
    return nats


@pytest.fixture
def name() -> str:
    """A name under which no other test's workers listen."""
    return f"Desk-{next(NUMBERS)}"


@pytest.fixture
def place(url: str, name: str) -> Place:
    return Place(url, name)


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    client = await connect(url)
    yield client
    await client.close()


@pytest.fixture
async def caller(url: str, name: str) -> AsyncIterator[Caller]:
    client = await connect(url)
    caller = Caller(client, name)
    await caller.listen()
    yield caller
    await client.close()


@pytest.fixture
def gate() -> Gate:
    return Gate()
