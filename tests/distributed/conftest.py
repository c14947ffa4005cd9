"""One NATS server for all of these tests, and a context's name for each of them alone."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.servers.nats import NatsUnavailable, nats_server

NUMBERS = count()


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """The URL of the server."""
    try:
        with nats_server() as url:
            yield url
    except NatsUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def name() -> str:
    """A name under which no other test's workers listen."""
    return f"Desk-{next(NUMBERS)}"
