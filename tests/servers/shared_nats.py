"""One NATS server for all tests of a run; apart from its start, which programs without pytest use too."""

from collections.abc import Iterator

import pytest

from tests.servers.nats import NatsUnavailable, nats_server


@pytest.fixture(scope="session")
def nats() -> Iterator[str]:
    """The URL of one server for all tests of a session that import this fixture."""
    try:
        with nats_server() as url:
            yield url
    except NatsUnavailable as error:
        pytest.skip(str(error))
