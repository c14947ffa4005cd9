"""Credentials with alternatives, credentials in the URL, and the way of `api_key=` from the user to the request."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir.authoring import Access, Connection, Credential, Dialect, ErrorTable, KeySource, Profile, SDKProvider
from sabir.errors import CredentialsMissing, SettingsInvalid
from sabir_echo.dialect import PLAIN
from sabir_testing.loopback import Server, whole

from tests.authoring.test_credentials import Connection as HeaderConnection

PROFILE = Profile(file="~/.acme/credentials", variable="ACME_PROFILE")
KEY = Credential(variables=("ACME_API_KEY",), alternative="a bearer key")
SIGNING = (
    Credential(name="key_id", variables=("ACME_KEY_ID",), profile=PROFILE, alternative="keys that sign"),
    Credential(name="secret", variables=("ACME_SECRET",), profile=PROFILE, alternative="keys that sign"),
    Credential(name="session", variables=("ACME_SESSION",), default="", alternative="keys that sign"),
)
REGION = Credential(name="region", variables=("ACME_REGION",), default="north", secret=False, in_url=True)
ACCOUNT = Credential(name="account", variables=("ACME_ACCOUNT",), secret=False, in_url=True)
ALL = (KEY, *SIGNING, REGION)
ANSWER = b'[{"text": "Hi."}, {"finish": "done", "usage": {"input_tokens": 1, "output_tokens": 1}}]'
SECRETS = ("s3cr3t-value", "id-of-work")


class Acme(SDKProvider):
    name, dialects, credentials, url = "acme", ("plain",), ALL, "https://{region}.acme.example/{account}/v1"
    api_version = 2

    def dialect(self, short_name: str) -> Dialect:
        return PLAIN

    def connect_own_clients(self, access: Access, key: KeySource) -> Connection:
        return HeaderConnection(self.name, ErrorTable(), key, self.url_of(access))


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home folder with two profiles, and no variables."""
    for each in ALL:
        for name in each.variables:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".acme").mkdir()
    text = f"[default]\nkey_id = id\n[work]\nkey_id = {SECRETS[1]}\nsecret = {SECRETS[0]}\n"
    (tmp_path / ".acme" / "credentials").write_text(text, "utf-8")
    return tmp_path


def set_variables(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setenv(f"ACME_{name}", name.lower())


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("is_function", [False, True], ids=["value", "function"])
@pytest.mark.parametrize("api_key", [{"key_id": SECRETS[1], "secret": SECRETS[0]}, {"profile": "work"}])
def test_a_mapping_reaches_the_request_and_no_repr_or_log(
    api_key: dict[str, str], is_function: bool, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sabir.register("acme", Acme())
    try:
        with Server([whole(ANSWER)]) as server:
            key: sabir.ApiKey = (lambda: api_key) if is_function else api_key
            with sabir.adapter("acme:m", api_key=key, base_url=server.url) as llm:
                reply = asyncio.run(llm.complete("Hi")) if is_async else llm.complete_sync("Hi")
    finally:
        sabir.unregister("acme")

    headers = server.requests[0].headers
    assert reply.text == "Hi."
    assert (headers["x-key-id"], headers["x-secret"], headers["x-region"]) == (SECRETS[1], SECRETS[0], "north")
    shown = f"{llm!r} {llm.access!r} {KeySource('acme', api_key, ALL)!r} {caplog.text}"
    assert "acme:m" in shown and not any(secret in shown for secret in SECRETS)


CHOICES: list[tuple[str, tuple[str, ...], Any, dict[str, str]]] = [
    ("only one is complete", ("KEY_ID", "SECRET"), None, {"key_id": "key_id", "secret": "secret"}),
    ("the first of two complete ones", ("API_KEY", "KEY_ID", "SECRET"), None, {"api_key": "api_key"}),
    ("an argument before variables", ("API_KEY",), {"key_id": "a", "secret": "b"}, {"key_id": "a", "secret": "b"}),
    ("a string is the key", ("KEY_ID", "SECRET"), "k", {"api_key": "k"}),
    ("a function's string", ("KEY_ID", "SECRET"), lambda: "k", {"api_key": "k"}),
    ("variables before a profile", ("API_KEY",), {"profile": "work"}, {"api_key": "api_key"}),
    ("an optional value", ("KEY_ID", "SECRET", "SESSION"), None,
     {"key_id": "key_id", "secret": "secret", "session": "session"}),
]  # fmt: skip


@pytest.mark.parametrize(("case", "variables", "api_key", "used"), CHOICES)
def test_read_returns_the_values_of_one_alternative_in_order(
    case: str, variables: tuple[str, ...], api_key: Any, used: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(monkeypatch, *variables)
    values = KeySource("acme", api_key, ALL).read()

    assert [(name, value.get_secret_value()) for name, value in values] == [*used.items(), ("region", "north")]


def test_read_reads_once_and_calls_a_function_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, "API_KEY")
    answers = iter(["first", {"key_id": "a", "secret": "b"}])
    key, asked = KeySource("acme", None, ALL), KeySource("acme", lambda: next(answers), ALL)
    first = key.read()
    monkeypatch.setenv("ACME_API_KEY", "changed")
    monkeypatch.setenv("ACME_REGION", "south")

    assert key.read() is first
    assert [name for name, _ in asked.read()] == ["api_key", "region"]
    assert [(name, value.get_secret_value()) for name, value in asked.read()][2] == ("region", "south")


MISSING: list[tuple[tuple[Credential, ...], Any, tuple[str, ...], str]] = [
    (
        ALL, None, ("SECRET",),
        "acme needs a bearer key (no key) or keys that sign (secret (ACME_SECRET) but no key_id); set the variable "
        "ACME_API_KEY, or ACME_KEY_ID, or pass api_key= or api_key={'key_id': …, 'secret': …}",
    ),
    (
        ALL, {"key_id": "a"}, ("API_KEY",),
        "acme has key_id (api_key=) and region (default) but no secret; set the variable ACME_SECRET, or pass "
        "api_key={'key_id': …, 'secret': …}",
    ),
    (
        (KEY, *SIGNING, ACCOUNT), "k", (),
        "acme has key (api_key=) but no account; set the variable ACME_ACCOUNT, or pass "
        "api_key={'api_key': …, 'account': …}",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("credentials", "api_key", "variables", "text"), MISSING)
def test_an_error_names_the_alternatives_and_what_each_has(
    credentials: tuple[Credential, ...], api_key: Any, variables: tuple[str, ...], text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    set_variables(monkeypatch, *variables)
    with pytest.raises(CredentialsMissing) as raised:
        KeySource("acme", api_key, credentials).read()

    assert str(raised.value) == text


def test_values_of_two_alternatives_are_refused() -> None:
    with pytest.raises(SettingsInvalid, match="values for a bearer key and for keys that sign; pass only one"):
        KeySource("acme", {"api_key": "k", "secret": "s"}, ALL)


URLS: list[tuple[tuple[Credential, ...], Any, tuple[str, ...], str]] = [
    ((REGION, ACCOUNT), None, ("ACCOUNT",), "https://north.acme.example/account/v1"),
    ((REGION, ACCOUNT), {"region": "south", "account": "me"}, ("ACCOUNT",), "https://south.acme.example/me/v1"),
    ((REGION, ACCOUNT), None, (), "https://north.acme.example/v1"),
    ((KEY,), "k", (), "https://{region}.acme.example/{account}/v1"),
]


@pytest.mark.parametrize(("credentials", "api_key", "variables", "url"), URLS)
def test_a_url_is_completed_with_credentials(
    credentials: tuple[Credential, ...], api_key: Any, variables: tuple[str, ...], url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    set_variables(monkeypatch, *variables)
    provider = Acme()
    provider.credentials = credentials

    assert provider.endpoint(Access(api_key=api_key)) == url


@pytest.mark.parametrize("region", ["evil.example/", "a@b", "a b", "north:80", "ä"])
def test_a_value_cannot_change_the_host_of_the_url(region: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"acme has a region \(api_key=\) that cannot be part of a URL") as raised:
        Acme().endpoint(Access(api_key={"region": region}))

    assert region not in str(raised.value)


def test_a_function_cannot_return_a_part_of_the_url() -> None:
    with pytest.raises(SettingsInvalid, match="returned region, which is part of the URL; pass a mapping"):
        KeySource("acme", lambda: {"api_key": "k", "region": "south"}, ALL).read()
