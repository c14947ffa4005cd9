"""One NATS server for all of these tests, and a context's name for each of them alone."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
from nats import connect
from nats.aio.client import Client

from tests.distributed.contexts import Desk
from tests.distributed.support import QUICK, Caller, Gate, Place
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
async def desk(place: Place) -> AsyncIterator[Desk]:
    async with place.worker(Desk), place.runner(QUICK) as runner:
        yield Desk(runner)


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
