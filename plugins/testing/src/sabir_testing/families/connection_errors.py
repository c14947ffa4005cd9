"""Errors of connections: the fields with which programs and logs tell providers apart."""

from collections.abc import Iterator

import pytest
from sabir.errors import CallError

from sabir_testing.families.transport_fixtures import (
    SYNC_AND_ASYNC,
    Caller,
    HTTPWire,
    exception_of,
    outcome_of,
    provider_variables,
)
from sabir_testing.kit.failures import expect
from sabir_testing.kit.suite import AdapterUnderTest, Suite, since_api
from sabir_testing.loopback import unreachable


@since_api(2)
class ConnectionErrorCases(Suite):
    """The test cases of the family `transport` about the errors of connections."""

    family = "transport"

    @pytest.fixture
    def wire(self, subject: AdapterUnderTest, monkeypatch: pytest.MonkeyPatch) -> HTTPWire:
        """Return the HTTPWire of the adapter under test, and remove the variables that `provider_variables` names."""
        for name in provider_variables(subject):
            monkeypatch.delenv(name)
        return HTTPWire(subject)

    @pytest.fixture
    def caller(self, request: pytest.FixtureRequest) -> Iterator[Caller]:
        """Return one way to use a connection, sync or async."""
        with request.param() as caller:
            yield caller

    @SYNC_AND_ASYNC
    def test_a_failed_connection_names_its_provider(self, wire: HTTPWire, caller: Caller) -> None:
        """The error of a call that cannot connect has the name of its provider, in `error.provider` and in its message.
        The name may be another one than the one under which the provider is installed.
        """
        with unreachable() as url, wire.adapter(caller, url) as adapter:
            error = exception_of(lambda: caller.call(adapter))
        what = f"a call to a port without a server {outcome_of(error)}"
        names = isinstance(error, CallError) and error.provider and error.provider in str(error)
        expect(
            names, f"{what} with provider={getattr(error, 'provider', None)!r}; expected the provider's name in both"
        )
