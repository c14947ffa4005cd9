"""Access: a connection's endpoint, its key, its client, and who closes the client.

The other half of the family `transport`: its cases stand on the same server (see `transport`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sabir.authoring import Access, Connection
from sabir.errors import CredentialsMissing, SettingsInvalid

from sabir_testing.families.wire import (
    EITHER_WAY,
    KEY,
    OK,
    PATIENCE,
    Caller,
    InALoop,
    Wire,
    arrived,
    as_library_error,
    bare_names,
    ended,
    raised_by,
)
from sabir_testing.kit.broken import expect
from sabir_testing.kit.suite import AdapterUnderTest, Suite
from sabir_testing.loopback import Server, head, unreachable, whole

NO_URLS = {
    "another_scheme": "ftp://127.0.0.1",
    "no_scheme": "localhost:8000/v1",
    "no_host": "http://",
    "half_an_address": "http://[::1",
}
SECRETIVE_URLS = {
    "password": "ftp://me:hidden@host/v1",
    "no_scheme": "me:hidden@host",
    "query": "ftp://host/v1?key=hidden",
    "fragment": "ftp://me:p?#/hidden@host",
}
"""URLs that are refused, and hold a secret."""
ENDPOINTS = {"password": "https://me:hidden@proxy.example:8/v1", "query": "https://proxy.example:8/v1?key=hidden"}
HOMES = ("HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME")
"""Variables that say where a user's own files are."""
KEYS = {"line_break": "key-secret\n", "space": "key secret", "foreign_letter": "key-sécret"}


class AccessCases(Suite):
    """The cases of `Access`."""

    family = "transport"

    @pytest.fixture
    def wire(self, subject: AdapterUnderTest, monkeypatch: pytest.MonkeyPatch) -> Wire:
        """Return the adapter under test, with all provider environment variables removed."""
        for name in bare_names(subject):
            monkeypatch.delenv(name)
        return Wire(subject)

    @pytest.fixture
    def caller(self, request: pytest.FixtureRequest) -> Iterator[Caller]:
        """Return one way to use a connection, sync or async."""
        with request.param() as caller:
            yield caller

    @pytest.mark.parametrize("base_url", NO_URLS.values(), ids=NO_URLS)
    def test_an_endpoint_that_is_no_url_is_refused(self, wire: Wire, base_url: str) -> None:
        """`connect` raises SettingsInvalid for a base URL that is not an http(s) URL. The error names base_url."""
        error = raised_by(lambda: wire.subject.connect(api_key=KEY, base_url=base_url))
        expect(isinstance(error, SettingsInvalid), f"connect() with the base_url {base_url!r} {ended(error)}")
        expect("base_url" in str(error), f"the error of a wrong endpoint does not name base_url: {error}")

    @pytest.mark.parametrize("base_url", SECRETIVE_URLS.values(), ids=SECRETIVE_URLS)
    def test_a_refused_endpoint_shows_no_secret(self, wire: Wire, base_url: str) -> None:
        """The error for an invalid endpoint shows neither the URL's password nor its query."""
        error = raised_by(lambda: wire.subject.connect(api_key=KEY, base_url=base_url))
        expect(isinstance(error, SettingsInvalid), f"connect() with the base_url {base_url!r} {ended(error)}")
        expect("hidden" not in str(error), f"the base_url {base_url!r} was refused with its secret: {error}")

    @pytest.mark.parametrize("base_url", ENDPOINTS.values(), ids=ENDPOINTS)
    def test_an_endpoint_shows_no_secret(self, wire: Wire, base_url: str) -> None:
        """`Provider.endpoint` returns the URL without password and query, because every message's origin stores the
        endpoint.
        """
        endpoint = wire.subject.provider.endpoint(Access(api_key=KEY, base_url=base_url))
        expect("hidden" not in endpoint, f"endpoint() of the base_url {base_url!r} is {endpoint!r}")

    @pytest.mark.parametrize("setting", ["api_key", "base_url"])
    def test_an_empty_setting_is_refused(self, wire: Wire, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """An empty api_key or base_url raises SettingsInvalid. It is a mistake, such as an unset variable, and nothing
        else is used instead.
        """
        _set_variables(wire, monkeypatch)
        error = raised_by(lambda: wire.subject.connect(**{setting: ""}))
        expect(isinstance(error, SettingsInvalid), f"connect() with an empty {setting} {ended(error)}")

    def test_no_variable_is_read_before_the_first_send(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        """Environment variables are read when the first request is sent, not when the adapter is created."""
        _needs_variables(wire)
        first, caller = wire.variables[0], Caller()
        with Server([head(), OK]) as server, wire.connected(caller, server.url, api_key=None) as connection:
            _set_variables(wire, monkeypatch, only=[first])
            caller.ask(connection, wire.request)
        is_sent = _holds(arrived(server).headers, _value(first))
        expect(is_sent, f"{first}, set after connect() and before the first send, is in no header")

    def test_key_variables_are_read_in_their_order(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        """The key comes from the first of the provider's key variables that is set."""
        _needs_variables(wire)
        for at in reversed(range(len(wire.variables))):
            first, later = wire.variables[at], wire.variables[at:]
            _set_variables(wire, monkeypatch, only=later)
            what = f"with {' and '.join(later)} set, the key of {first}, the first of them, was not sent"
            expect(_holds(wire.sent(Caller(), api_key=None), _value(first)), what)

    def test_a_given_key_comes_before_the_variables(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        """A key passed as api_key= is used even if a key variable is set."""
        _needs_variables(wire)
        _set_variables(wire, monkeypatch)
        headers = wire.sent(Caller(), api_key="key-given")
        taken = [name for name in wire.variables if _holds(headers, _value(name))]
        expect(not taken, f"with a key given by api_key=, that of {' and '.join(taken)} was sent")

    def test_a_callable_key_is_asked_at_each_send(self, wire: Wire) -> None:
        """A function passed as api_key= is called for every request and not before. If it returns another key, that key
        is sent.
        """
        given: list[str] = []

        def vault() -> str:
            given.append(f"key-{len(given)}-of-the-vault")
            return given[-1]

        how: Any = {"api_key": vault}
        with InALoop() as loop, Server([head(), OK]) as server, wire.connected(loop, server.url, **how) as connection:
            before = len(given)
            for caller in (Caller(), Caller(), loop, loop):
                caller.ask(connection, wire.request)
        expect(before == 0, "connect() asked the function given by api_key=, with nothing to send yet")
        sent = [[key for key in given if _holds(asked.headers, key)] for asked in server.asked]
        what = "of four calls, not each sent the key that the function given by api_key= gave for it"
        is_each = sent == [[key] for key in given] and len(given) == 4
        expect(is_each, what, shown={"given": repr(given), "sent": repr(sent)})

    def test_a_vault_without_a_key_is_a_missing_key(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        """If a function passed as api_key= returns no key, the call raises CredentialsMissing. No other key is sent
        instead.
        """
        _set_variables(wire, monkeypatch)
        error, server = _refusal(wire, lambda: "")
        expect(isinstance(error, CredentialsMissing), f"a function that gives no key {ended(error)}")
        expect(not server.asked, "a function gave no key, and the request was sent")

    def test_a_missing_key_names_what_to_set(self, wire: Wire, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Without a key nothing is sent, and the error names the variables and the argument to set. A provider without
        key variables needs no key. Keys in the home folder of the person who runs the test are not used.
        """
        for name in HOMES:
            monkeypatch.setenv(name, str(tmp_path))
        error, server = _refusal(wire, None)
        if not wire.variables:
            expect(error is None, f"{wire.name} names no variable of a key, and a call without a key {ended(error)}")
            return
        expect(isinstance(error, CredentialsMissing), f"a call without a key {ended(error)}")
        missing = [name for name in (*wire.variables, "api_key=") if name not in str(error)]
        expect(not missing, f"the error of a missing key does not name {' and '.join(missing)}: {error}")
        expect(not server.asked, "there was no key, and the request was sent")

    @pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
    def test_a_key_that_no_header_can_hold_is_refused_unseen(self, wire: Wire, key: str) -> None:
        """A key that cannot be an HTTP header, for example with a line break from a file, raises an error that does not
        show the key.
        """
        error, server = _refusal(wire, key)
        expect(isinstance(error, CredentialsMissing), f"a call with the key {key!r} {ended(error)}")
        expect("cret" not in str(error), f"the error shows the key: {error}")
        expect(not server.asked, f"the request was sent with the key {key!r}")

    @pytest.mark.parametrize("way", ["waiting", "async", "waiting_client_by_aclose"])
    def test_closing_a_connection_closes_its_clients(self, wire: Wire, way: str) -> None:
        """`close` closes the sync client, and `aclose` closes the sync and the async client."""
        with InALoop() as loop, Caller() as waiting, Server([whole(OK)], keeps_alive=True) as server:
            sender, closer = {"waiting": (waiting, waiting), "async": (loop, loop)}.get(way, (waiting, loop))
            with wire.connected(closer, server.url) as connection:
                sender.ask(connection, wire.request)
            ended = server.closed.wait(PATIENCE)
        expect(ended, f"{closer.closes} leaves open what {sender.opens} had opened")

    @EITHER_WAY
    def test_closing_a_connection_twice_is_harmless(self, wire: Wire, caller: Caller) -> None:
        """Closing a connection a second time does nothing."""
        with Server([head(), OK]) as server, wire.connected(caller, server.url) as connection:
            caller.ask(connection, wire.request)
            caller.close(connection)
            error = raised_by(lambda: caller.close(connection))
        expect(error is None, f"the second {caller.closes} of a connection {ended(error)}")

    def test_the_users_own_client_is_used_and_left_open(self, wire: Wire) -> None:
        """A client passed as client= sends the request to its own endpoint, and is not closed. If the suite's `client`
        returns None, the provider refuses client=.
        """
        caller = Caller()
        with Server([head(), OK]) as server:
            client = wire.subject.suite.client(server.url)
            if client is None:
                error = raised_by(lambda: _ask_with(wire, SimpleNamespace(base_url=server.url)))
                expect(isinstance(error, SettingsInvalid), f"a client, though the suite gives none, {ended(error)}")
                return
            try:
                for _ in ("used", "left open"):
                    with wire.connected(caller, None, api_key=None, client=client) as connection:
                        caller.ask(connection, wire.request)
            finally:
                getattr(client, "close", lambda: None)()
        expect(len(server.asked) == 2, f"two calls by the user's own client sent {len(server.asked)} requests to it")

    def test_what_is_no_client_is_refused(self, wire: Wire) -> None:
        """client= with an object of another class raises SettingsInvalid before anything is sent."""
        error = raised_by(lambda: _ask_with(wire, object()))
        expect(isinstance(error, SettingsInvalid), f"connect() and open_sync() with client=object() {ended(error)}")


def _value(variable: str) -> str:
    """Return the key that a case puts into a variable."""
    return f"key-of-variable-{variable}"


def _set_variables(wire: Wire, monkeypatch: pytest.MonkeyPatch, only: Sequence[str] | None = None) -> None:
    for name in wire.variables if only is None else only:
        monkeypatch.setenv(name, _value(name))


def _needs_variables(wire: Wire) -> None:
    if not wire.variables:
        pytest.skip(f"{wire.name} names no variable of a key")


def _holds(headers: Mapping[str, str], key: str) -> bool:
    return any(re.search(rf"{re.escape(key)}\b", value) for value in headers.values())


def _refusal(wire: Wire, key: str | Callable[[], str] | None) -> tuple[Exception | None, Server]:
    """Return the error of connecting and sending with a key, and the server that must not be reached."""
    caller, made = Caller(), list[Connection]()

    def send() -> None:
        made.append(wire.subject.connect(api_key=key, base_url=server.url))
        caller.open(made[0], wire.request).close()

    with Server([head(), OK]) as server:
        error = raised_by(send)
        for connection in made:
            caller.close(connection)
            error = error and (as_library_error(connection, error) or error)
    return error, server


def _ask_with(wire: Wire, client: object) -> None:
    """Connect and send with a client, to where nobody listens."""
    with unreachable() as url:
        connection = wire.subject.connect(client=client, base_url=url)
        try:
            connection.open_sync(wire.request).close()
        finally:
            connection.close()
