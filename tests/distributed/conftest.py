"""One NATS server for all of these tests, and a context's name for each of them alone."""

from itertools import count

import pytest

from tests.servers.shared_nats import nats

__all__ = ["nats"]
NUMBERS = count()


@pytest.fixture(scope="session")
def url(nats: str) -> str:
    """The URL of the server."""
    return nats


@pytest.fixture
def name() -> str:
    """A name under which no other test's workers listen."""
    return f"Desk-{next(NUMBERS)}"
