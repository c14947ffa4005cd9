"""Access: the endpoint, the key and the client of a connection, and the closing of the client.

These test cases belong to the family `transport`, and use the same server as the module `transport`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sabir.authoring import Access, Connection
from sabir.errors import CredentialsMissing, SettingsInvalid

from sabir_testing.families.transport_fixtures import (
    KEY,
    OK,
    PATIENCE,
    SYNC_AND_ASYNC,
    AsyncCaller,
    Caller,
    HTTPWire,
    as_library_error,
    exception_of,
    first_request,
    outcome_of,
    provider_variables,
)
from sabir_testing.kit.failures import expect
from sabir_testing.kit.suite import AdapterUnderTest, Suite
from sabir_testing.loopback import Server, head, unreachable, whole

INVALID_URLS = {
    "another_scheme": "ftp://127.0.0.1",
    "no_scheme": "localhost:8000/v1",
    "no_host": "http://",
    "half_an_address": "http://[::1",
}
URLS_WITH_SECRETS = {
    "password": "ftp://me:hidden@host/v1",
    "no_scheme": "me:hidden@host",
    "query": "ftp://host/v1?key=hidden",
    "fragment": "ftp://me:p?#/hidden@host",
}
"""Invalid URLs that contain a secret."""
ENDPOINTS = {"password": "https://me:hidden@proxy.example:8/v1", "query": "https://proxy.example:8/v1?key=hidden"}
HOME_VARIABLES = ("HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME")
"""Environment variables with the user's home folder."""
INVALID_KEYS = {"line_break": "key-secret\n", "space": "key secret", "foreign_letter": "key-sécret"}


class AccessCases(Suite):
    """The test cases of the family `transport` about `Access`."""

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

    @pytest.mark.parametrize("base_url", INVALID_URLS.values(), ids=INVALID_URLS)
    def test_an_endpoint_that_is_no_url_is_refused(self, wire: HTTPWire, base_url: str) -> None:
        """`connect` raises SettingsInvalid for a base URL that is not an http(s) URL. The error names base_url."""
        error = exception_of(lambda: wire.subject.connect(api_key=KEY, base_url=base_url))
        what = f"Provider.connect with base_url={base_url!r}, which is not a URL, {outcome_of(error)}"
        expect(isinstance(error, SettingsInvalid), f"{what}; expected SettingsInvalid")
        what = f"the SettingsInvalid of Provider.connect for base_url={base_url!r} does not name base_url: {error}"
        expect("base_url" in str(error), what)

    @pytest.mark.parametrize("base_url", URLS_WITH_SECRETS.values(), ids=URLS_WITH_SECRETS)
    def test_a_refused_endpoint_shows_no_secret(self, wire: HTTPWire, base_url: str) -> None:
        """The error for an invalid endpoint shows neither the URL's password nor its query."""
        error = exception_of(lambda: wire.subject.connect(api_key=KEY, base_url=base_url))
        what = f"Provider.connect with the invalid base_url={base_url!r} {outcome_of(error)}"
        expect(isinstance(error, SettingsInvalid), f"{what}; expected SettingsInvalid")
        what = f"the SettingsInvalid of Provider.connect for base_url={base_url!r} shows the secret 'hidden': {error}"
        expect("hidden" not in str(error), what)

    @pytest.mark.parametrize("base_url", ENDPOINTS.values(), ids=ENDPOINTS)
    def test_an_endpoint_shows_no_secret(self, wire: HTTPWire, base_url: str) -> None:
        """`Provider.endpoint` returns the URL without password and query, because the origins of messages store the
        endpoint.
        """
        endpoint = wire.subject.provider.endpoint(Access(api_key=KEY, base_url=base_url))
        what = f"Provider.endpoint with base_url={base_url!r} returns {endpoint!r}, which contains the secret 'hidden'"
        expect("hidden" not in endpoint, f"{what}; remove password and query")

    @pytest.mark.parametrize("setting", ["api_key", "base_url"])
    def test_an_empty_setting_is_refused(self, wire: HTTPWire, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """An empty api_key or base_url raises SettingsInvalid. It is a mistake, such as an unset variable, and nothing
        else is used instead.
        """
        _set_variables(wire, monkeypatch)
        error = exception_of(lambda: wire.subject.connect(**{setting: ""}))
        what = f"Provider.connect with {setting}='' {outcome_of(error)}; expected SettingsInvalid"
        expect(isinstance(error, SettingsInvalid), what)

    def test_no_variable_is_read_before_the_first_send(self, wire: HTTPWire, monkeypatch: pytest.MonkeyPatch) -> None:
        """The first key variable is read when the first request is sent, not when the connection is created."""
        _skip_without_variables(wire)
        first, caller = wire.variables[0], Caller()
        with Server([head(), OK]) as server, wire.connected(caller, server.url, api_key=None) as connection:
            _set_variables(wire, monkeypatch, only=[first])
            caller.ask(connection, wire.request)
        is_sent = _contains_key(first_request(server).headers, _key_in_variable(first))
        what = f"the key from the variable {first}, set after Provider.connect and before the first request, is unused"
        expect(is_sent, f"{what}; read the variables when the first request is sent")

    def test_key_variables_are_read_in_their_order(self, wire: HTTPWire, monkeypatch: pytest.MonkeyPatch) -> None:
        """The key comes from the first of the provider's key variables that is set."""
        _skip_without_variables(wire)
        for at in reversed(range(len(wire.variables))):
            first, later = wire.variables[at], wire.variables[at:]
            _set_variables(wire, monkeypatch, only=later)
            names = " and ".join(later)
            what = f"the key from {first} is not sent if {names} are set; use the first set variable of the credential"
            expect(_contains_key(wire.sent_headers(Caller(), api_key=None), _key_in_variable(first)), what)

    def test_a_given_key_comes_before_the_variables(self, wire: HTTPWire, monkeypatch: pytest.MonkeyPatch) -> None:
        """A key passed as api_key= is used even if a key variable is set."""
        _skip_without_variables(wire)
        _set_variables(wire, monkeypatch)
        headers = wire.sent_headers(Caller(), api_key="key-given")
        others = [name for name in wire.variables if _contains_key(headers, _key_in_variable(name))]
        what = f"the key from {' and '.join(others)} is sent, although api_key= has another key; api_key= comes first"
        expect(not others, what)

    def test_a_callable_key_is_asked_at_each_send(self, wire: HTTPWire) -> None:
        """A function passed as api_key= is called once for every request and not before. The key that it returns is
        sent with this request.
        """
        keys: list[str] = []

        def vault() -> str:
            keys.append(f"key-{len(keys)}-of-the-vault")
            return keys[-1]

        loop, access = AsyncCaller(), dict[str, Any](api_key=vault)
        with loop, Server([head(), OK]) as server, wire.connected(loop, server.url, **access) as connection:
            before = len(keys)
            for caller in (Caller(), Caller(), loop, loop):
                caller.ask(connection, wire.request)
        expect(before == 0, "Provider.connect calls the function in api_key=; call it when a request is sent")
        sent = [[key for key in keys if _contains_key(request.headers, key)] for request in server.requests]
        what = "four requests do not send the four keys that the function in api_key= returns; call the function once"
        is_each = sent == [[key] for key in keys] and len(keys) == 4
        details = {"returned by the function": repr(keys), "sent": repr(sent)}
        expect(is_each, f"{what} for each request", details=details)

    def test_a_vault_without_a_key_is_a_missing_key(self, wire: HTTPWire, monkeypatch: pytest.MonkeyPatch) -> None:
        """If a function passed as api_key= returns no key, the call raises CredentialsMissing; if the key is optional
        (`Credential.default`), the request is sent without it. No other key is sent instead.
        """
        _set_variables(wire, monkeypatch)
        error, server = _send_with_key(wire, lambda: "")
        what = f"a request with a function in api_key= that returns '' {outcome_of(error)}"
        if _is_key_optional(wire):
            expect(error is None, f"{what}, although the key is optional; send the request without a key")
            headers = first_request(server).headers
            others = [name for name in wire.variables if _contains_key(headers, _key_in_variable(name))]
            what = f"the key from {' and '.join(others)} is sent, although the function in api_key= returned no key"
            expect(not others, what)
            return
        expect(isinstance(error, CredentialsMissing), f"{what}; expected CredentialsMissing")
        expect(not server.requests, "a request is sent, although the function in api_key= returned no key")

    def test_a_missing_key_names_what_to_set(
        self, wire: HTTPWire, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Without a key nothing is sent, and the error names the variables and the argument to set. A provider without
        key variables, or with an optional key (`Credential.default`), needs no key. Keys in the home folder of the
        person who runs the test are not used.
        """
        for name in HOME_VARIABLES:
            monkeypatch.setenv(name, str(tmp_path))
        error, server = _send_with_key(wire, None)
        if not wire.variables:
            what = f"a request without a key {outcome_of(error)}, although {wire.name!r} names no key variable"
            expect(error is None, f"{what}; name the variable in Provider.credentials")
            return
        if _is_key_optional(wire):
            what = f"a request without a key {outcome_of(error)}, although the key of {wire.name!r} is optional"
            expect(error is None, f"{what}; send the request without a key, or remove the credential's default")
            return
        what = f"a request without a key {outcome_of(error)}; expected CredentialsMissing"
        expect(isinstance(error, CredentialsMissing), what)
        missing = [name for name in (*wire.variables, "api_key=") if name not in str(error)]
        what = f"the CredentialsMissing for a request without a key does not name {' and '.join(missing)}: {error}"
        expect(not missing, what)
        expect(not server.requests, "a request is sent without a key; raise CredentialsMissing before anything is sent")

    @pytest.mark.parametrize("key", INVALID_KEYS.values(), ids=INVALID_KEYS)
    def test_a_key_that_no_header_can_hold_is_refused_unseen(self, wire: HTTPWire, key: str) -> None:
        """A key with a line break (for example from a file), a space or a non-ASCII letter raises CredentialsMissing,
        which does not show the key. Nothing is sent.
        """
        error, server = _send_with_key(wire, key)
        what = f"a request with the key {key!r}, which cannot be an HTTP header, {outcome_of(error)}"
        expect(isinstance(error, CredentialsMissing), f"{what}; expected CredentialsMissing")
        expect("cret" not in str(error), f"the CredentialsMissing for an invalid key shows the key: {error}")
        expect(not server.requests, f"a request is sent with the key {key!r}, which cannot be an HTTP header")

    @pytest.mark.parametrize("way", ["waiting", "async", "waiting_client_by_aclose"])
    def test_closing_a_connection_closes_its_clients(self, wire: HTTPWire, way: str) -> None:
        """`close` closes the sync client, and `aclose` closes the sync and the async client."""
        with AsyncCaller() as async_caller, Caller() as sync_caller, Server([whole(OK)], keeps_alive=True) as server:
            sender = async_caller if way == "async" else sync_caller
            closer = sync_caller if way == "waiting" else async_caller
            with wire.connected(closer, server.url) as connection:
                sender.ask(connection, wire.request)
            is_closed = server.closed.wait(PATIENCE)
        what = f"Connection.{closer.closes} does not close the network connection that Connection.{sender.opens} opened"
        expect(is_closed, what)

    @SYNC_AND_ASYNC
    def test_closing_a_connection_twice_is_harmless(self, wire: HTTPWire, caller: Caller) -> None:
        """Closing a connection a second time does nothing."""
        with Server([head(), OK]) as server, wire.connected(caller, server.url) as connection:
            caller.ask(connection, wire.request)
            caller.close(connection)
            error = exception_of(lambda: caller.close(connection))
        expect(error is None, f"the second Connection.{caller.closes} {outcome_of(error)}; expected no exception")

    def test_the_users_own_client_is_used_and_left_open(self, wire: HTTPWire) -> None:
        """A client passed as client= sends the request to its own endpoint, and is not closed. If the suite's `client`
        returns None, the provider refuses client=.
        """
        caller = Caller()
        with Server([head(), OK]) as server:
            client = wire.subject.suite.client(server.url)
            if client is None:
                error = exception_of(lambda: _send_with_client(wire, SimpleNamespace(base_url=server.url)))
                what = f"Provider.connect with client= {outcome_of(error)}, although the suite's client() returns None"
                remedy = "raise SettingsInvalid, or return a client from the suite's client()"
                expect(isinstance(error, SettingsInvalid), f"{what}; {remedy}")
                return
            try:
                for _ in ("used", "left open"):
                    with wire.connected(caller, None, api_key=None, client=client) as connection:
                        caller.ask(connection, wire.request)
            finally:
                getattr(client, "close", lambda: None)()
        count = len(server.requests)
        what = f"two calls with the client from the suite's client() sent {count} requests to the client's endpoint"
        expect(count == 2, f"{what}; expected 2, with a client that stays open")

    def test_what_is_no_client_is_refused(self, wire: HTTPWire) -> None:
        """client= with an object of another class raises SettingsInvalid before anything is sent."""
        error = exception_of(lambda: _send_with_client(wire, object()))
        what = f"Provider.connect and open_sync() with client=object() {outcome_of(error)}; expected SettingsInvalid"
        expect(isinstance(error, SettingsInvalid), what)


def _key_in_variable(variable: str) -> str:
    """Return the key that the test cases set as a variable's value."""
    return f"key-of-variable-{variable}"


def _set_variables(wire: HTTPWire, monkeypatch: pytest.MonkeyPatch, only: Sequence[str] | None = None) -> None:
    """Set all key variables, or those in `only`, and a variable of each further credential that a request needs."""
    for each in wire.subject.further_credentials:
        for name in each.variables[:1]:
            monkeypatch.setenv(name, _key_in_variable(name))
    for name in wire.variables if only is None else only:
        monkeypatch.setenv(name, _key_in_variable(name))


def _is_key_optional(wire: HTTPWire) -> bool:
    """Return whether the provider's key, its first credential, may be missing."""
    key = next(iter(wire.subject.provider.credentials), None)
    return key is not None and key.default is not None


def _skip_without_variables(wire: HTTPWire) -> None:
    if not wire.variables:
        pytest.skip(f"the provider {wire.name!r} names no key variable in Provider.credentials")


def _contains_key(headers: Mapping[str, str], key: str) -> bool:
    return any(re.search(rf"{re.escape(key)}\b", value) for value in headers.values())


def _send_with_key(wire: HTTPWire, key: str | Callable[[], str] | None) -> tuple[Exception | None, Server]:
    """Connect and send a request with a key. Return the error, or None, and the server, which records requests."""
    caller, connections = Caller(), list[Connection]()

    def send() -> None:
        connections.append(wire.subject.connect(api_key=key, base_url=server.url))
        caller.open(connections[0], wire.request).close()

    with Server([head(), OK]) as server:
        error = exception_of(send)
        for connection in connections:
            caller.close(connection)
            error = error and (as_library_error(connection, error) or error)
    return error, server


def _send_with_client(wire: HTTPWire, client: object) -> None:
    """Connect and send a request with a client, to a port without a server."""
    with unreachable() as url:
        connection = wire.subject.connect(client=client, base_url=url)
        try:
            connection.open_sync(wire.request).close()
        finally:
            connection.close()
