"""Credentials are looked for where a provider says: values, chains, profiles, files. Whence is told, never what."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import google.auth
import httpx2
import pytest
from sabir.authoring.credentials import KeySource
from sabir.authoring.failures import ErrorTable
from sabir.authoring.providers import SDKProvider
from sabir.authoring.transport import Library, OwnClientConnection
from sabir.contract.dialect import Dialect
from sabir.contract.provider import Access, Credential, Profile, WireRequest
from sabir.errors import CredentialsMissing, SettingsInvalid
from sabir_echo.dialect import PLAIN
from sabir_testing.loopback import Server, whole

SECRET = "s3cr3t"
PROFILE = Profile(file="~/.acme/credentials", variable="ACME_PROFILE")
THREE = (
    Credential(name="key_id", variables=("ACME_KEY_ID",), profile=PROFILE),
    Credential(name="secret", variables=("ACME_SECRET", "ACME_OLD_SECRET"), profile=PROFILE),
    Credential(name="region", variables=("ACME_REGION",), profile=PROFILE, secret=False),
)
TOKEN = Credential(name="token", variables=("ACME_TOKEN",), profile=PROFILE, default="")
FILE = Credential(variables=("ACME_KEY",), files=("~/a.json", "~/b.json"))


class Acme(SDKProvider):
    """A stranger's provider of three values, each of which its SDK's client puts into a header."""

    name, dialects, credentials, url = "acme", ("plain",), THREE, "https://acme.example"

    def dialect(self, short_name: str) -> Dialect:
        return PLAIN

    def connect_own_clients(self, access: Access, key: KeySource) -> "Connection":
        return Connection(self.name, ErrorTable(), key, self.url_of(access))


class Connection(OwnClientConnection[httpx2.Client, httpx2.AsyncClient]):
    def library(self) -> Library:
        return Library(httpx2.Client, httpx2.AsyncClient, httpx2.create_ssl_context)

    def make_sync(self, keys: Mapping[str, str], http_client: httpx2.Client) -> httpx2.Client:
        http_client.headers.update({f"x-{name.replace('_', '-')}": value for name, value in keys.items()})
        return http_client

    def make(self, keys: Mapping[str, str], http_client: httpx2.AsyncClient) -> httpx2.AsyncClient:
        http_client.headers.update({f"x-{name.replace('_', '-')}": value for name, value in keys.items()})
        return http_client

    def ask_sync(self, client: httpx2.Client, request: WireRequest) -> object:
        return client.post(f"{self.base_url}{request.path}")

    async def ask(self, client: httpx2.AsyncClient, request: WireRequest) -> object:
        return await client.post(f"{self.base_url}{request.path}")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing of the machine decides a test; the folder where profiles are looked for."""
    for name in ("ACME_KEY_ID", "ACME_SECRET", "ACME_OLD_SECRET", "ACME_REGION", "ACME_PROFILE", "ACME_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".acme").mkdir()
    return tmp_path


def set_all(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"ACME_{name.upper()}", value)


def keep(home: Path, text: str = f"[default]\nkey_id = id\nsecret = {SECRET}\nregion = north\n") -> None:
    (home / ".acme" / "credentials").write_text(text, "utf-8")


def values(credentials: Any = THREE, given: Any = None) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in KeySource("acme", given, credentials).read()}


def missing(credentials: Any = THREE, given: Any = None) -> str:
    with pytest.raises(CredentialsMissing) as caught:
        KeySource("acme", given, credentials).read()
    return str(caught.value)


GIVEN = {"key_id": "given", "secret": SECRET, "region": "south"}


@pytest.mark.parametrize("given", [GIVEN, lambda: GIVEN, None], ids=["mapping", "function", "variables"])
async def test_several_values_go_out_together(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, key_id="of-env", secret="hidden", region="west")
    with Server([whole(b"{}")], keeps_alive=True) as server:
        connection = Acme().connect(Access(api_key=given, base_url=server.url))
        connection.open_sync(WireRequest("/v1", b"{}")).close()
        await (await connection.open(WireRequest("/v1", b"{}"))).aclose()
        await connection.aclose()

    expected = ("given", SECRET, "south") if given else ("of-env", "hidden", "west")
    sent = [tuple(asked.headers[f"x-{name}"] for name in ("key-id", "secret", "region")) for asked in server.requests]
    assert sent == [expected, expected]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("credentials", "[work]\nkey_id = id\nsecret = s3cr3t\nregion = north\n"),
        ("acme.toml", '[work]\nkey_id = "id"\nsecret = "s3cr3t"\nregion = "north"\n'),
        ("acme.json", '{"work": {"key_id": "id", "secret": "s3cr3t", "region": "north"}}'),
    ],
)
def test_a_profile_is_a_section_of_a_file(file: str, text: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / file).write_text(text, "utf-8")
    profile = Profile(file=f"~/{file}", variable="ACME_PROFILE")
    wanted = [each.model_copy(update={"profile": profile}) for each in THREE]
    expected = {"key_id": "id", "secret": SECRET, "region": "north"}

    assert values(wanted, {"profile": "work"}) == expected
    monkeypatch.setenv("ACME_PROFILE", "work")
    assert values(wanted) == expected
    assert [each.source for each in KeySource.find(wanted)] == [f"~/{file} [work]"] * 3


def test_what_is_secret_comes_of_one_place_and_all_else_by_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id of one account is never sent with another's secret."""
    keep(home)
    set_all(monkeypatch, region="west")
    assert values() == {"key_id": "id", "secret": SECRET, "region": "west"}
    set_all(monkeypatch, key_id="of-env")
    assert missing() == (
        "acme has key_id (ACME_KEY_ID) and region (ACME_REGION) but no secret; "
        "set the variable ACME_SECRET or ACME_OLD_SECRET, or pass api_key={'key_id': …, 'secret': …, 'region': …}"
    )


def test_a_missing_one_is_told_with_all_that_was_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give = "pass api_key={'key_id': …, 'secret': …, 'region': …}"
    remedy = f"set the variable ACME_SECRET or ACME_OLD_SECRET, or {give}"
    assert missing(given={"key_id": "k", "region": "r"}) == (
        f"acme has key_id (api_key=) and region (api_key=) but no secret; {remedy}"
    )
    set_all(monkeypatch, region="west")
    remedy = f"set the variable ACME_KEY_ID and ACME_SECRET or ACME_OLD_SECRET, or {give}"
    for reason, text in {
        "(no such file)": None,
        "(no profile 'work')": "[other]",
        "(unreadable: MissingSectionHeaderError)": f"secret = {SECRET}",
    }.items():
        if text:
            keep(home, text)
        set_all(monkeypatch, profile="work")
        looked = f"looked at ACME_KEY_ID, ~/.acme/credentials {reason}, ACME_SECRET, ACME_OLD_SECRET"
        assert missing() == f"acme has region (ACME_REGION) but no key_id and no secret; {looked}; {remedy}"


@pytest.mark.parametrize("given", ["", {"api_key": ""}, lambda: ""], ids=["text", "mapping", "function"])
def test_what_was_given_empty_is_missing(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "of-env")
    remedy = "set the variable ACME_KEY, or pass api_key="
    assert missing([Credential(variables=("ACME_KEY",))], given) == f"acme has no key; looked at api_key=; {remedy}"


def test_a_value_of_no_such_name_is_refused() -> None:
    with pytest.raises(SettingsInvalid, match=r"^api_key= .* the names regoin; expected key_id, secret, region$"):
        Acme().connect(Access(api_key={"regoin": "x"}))


def test_what_may_be_left_out_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, token="of-env")
    assert values((*THREE, TOKEN), GIVEN) == GIVEN
    assert values((*THREE, TOKEN), {**GIVEN, "token": "t"})["token"] == "t"
    set_all(monkeypatch, key_id="k", secret="s", region="r")
    assert values((*THREE, TOKEN))["token"] == "of-env"


def test_a_file_is_found_by_its_path(home: Path) -> None:
    assert missing([FILE]) == (
        "acme has no key; looked at ACME_KEY, ~/a.json, ~/b.json; set the variable ACME_KEY, or pass api_key="
    )
    (home / "b.json").touch()
    assert values([FILE]) == {"api_key": str(home / "b.json")}
    assert [(each.source, each.searched) for each in KeySource.find([FILE])] == [
        ("~/b.json", ("ACME_KEY", "~/a.json", "~/b.json"))
    ]


def test_what_was_found_tells_the_source_and_never_what(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(home)
    set_all(monkeypatch, region="west")
    found = KeySource.find((*THREE, TOKEN))
    source = KeySource("acme", GIVEN, THREE)

    profile = "~/.acme/credentials [default]"
    assert [each.source for each in found] == [profile, profile, "ACME_REGION", "default"]
    assert SECRET not in f"{found!r} {source.read()!r} {vars(source)!r}"


@pytest.mark.parametrize(
    "given", [None, lambda: values([Credential(variables=("ACME_KEY",))])["api_key"]], ids=["variable", "function"]
)
def test_a_variable_is_read_once_and_a_function_asked_each_time(
    given: Callable[[], str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "old")
    source = KeySource("acme", given, [Credential(variables=("ACME_NONE", "ACME_KEY"))])
    before = source.text()
    monkeypatch.setenv("ACME_KEY", "new")

    assert (before, source.text()) == ("old", "new" if given else "old")


def test_a_provider_without_credentials_needs_a_key_only_if_one_is_given() -> None:
    assert not KeySource("acme", None).is_needed
    assert KeySource("acme", "key").is_needed
    assert KeySource("acme", None, [Credential(variables=("ACME_KEY",))]).is_needed


def test_a_file_that_is_found_is_the_one_that_the_vendors_own_library_reads(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google's application default credentials: the variable, else the file of its command line, beside a project."""
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    usual = "~/.config/gcloud/application_default_credentials.json"
    wanted = (
        Credential(name="login", variables=("GOOGLE_APPLICATION_CREDENTIALS",), files=(usual,)),
        Credential(name="project", variables=("GOOGLE_CLOUD_PROJECT",), secret=False),
        Credential(name="location", variables=("GOOGLE_CLOUD_LOCATION",), default="global", secret=False),
    )
    assert missing(wanted) == (
        f"acme has location (default) but no login and no project; looked at GOOGLE_APPLICATION_CREDENTIALS, {usual}, "
        "GOOGLE_CLOUD_PROJECT; set the variable GOOGLE_APPLICATION_CREDENTIALS and GOOGLE_CLOUD_PROJECT, "
        "or pass api_key={'login': …, 'project': …}"
    )
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p-1")
    for number, path in enumerate([Path(usual).expanduser(), home / "mine.json"]):
        path.parent.mkdir(parents=True, exist_ok=True)
        login = {"type": "authorized_user", "client_id": f"c-{number}", "client_secret": "s", "refresh_token": "r"}
        path.write_text(json.dumps(login), "utf-8")
        if number:
            monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        found = values(wanted)
        read, project = google.auth.default()

        assert (found["login"], found["project"], project) == (str(path), "p-1", "p-1")
        assert read.client_id == f"c-{number}"
        source = "GOOGLE_APPLICATION_CREDENTIALS" if number else usual
        assert [each.source for each in KeySource.find(wanted)] == [source, "GOOGLE_CLOUD_PROJECT", "default"]


def test_an_empty_key_of_a_provider_without_credentials_is_missing() -> None:
    with pytest.raises(CredentialsMissing, match="acme has no key"):
        KeySource("acme", "").read()
