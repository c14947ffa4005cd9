"""Fixtures of the tests of calls."""

import pytest

from tests.core.support import Run, run_async, run_sync


@pytest.fixture(params=[run_sync, run_async], ids=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    """Both drivers: what is true of one is true of the other."""
    found: Run = request.param
    return found
