"""One embedded server for all tests of this folder: it takes a second to start and answers alike each time."""

from collections.abc import Iterator

import pytest
from openai import OpenAI
from sabir_local.models import WeightsMissing, find_weights
from sabir_local.server import LocalServer


@pytest.fixture(scope="session")
def server() -> Iterator[LocalServer]:
    """A running server; tests that need it are skipped where no weights are installed."""
    try:
        find_weights()
    except WeightsMissing as error:
        pytest.skip(f"no weights: {error}")
    server = LocalServer()
    assert server.address
    yield server
    server.stop()


@pytest.fixture(scope="session")
def client(server: LocalServer) -> Iterator[OpenAI]:
    """The vendor's own client. The server ends a connection now and then that it had promised to keep: none is kept."""
    with OpenAI(
        base_url=f"{server.address}/v1", api_key=server.api_key, max_retries=0, default_headers={"Connection": "close"}
    ) as client:
        yield client
