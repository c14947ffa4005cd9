"""Credentials and certificates, by file and by variable, against servers that ask for them."""

import asyncio
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from sabir_runtime import BaseRunner
from sabir_runtime.distributed import (
    Access,
    AccessInvalid,
    AccessRefused,
    CallSettings,
    DistributedRunner,
    Worker,
    WorkerSettings,
)
from sabir_runtime.distributed.access import read_addresses

from tests.distributed.accounts import user_key, with_creds
from tests.distributed.contexts import Desk, echo
from tests.distributed.support import QUICK, ROOT, Gate, Gated, own, soon, until, worker_process
from tests.servers.nats import nats_server

PASSWORD = "open-sesame"
ASKS = f'authorization {{ user: ada, password: "{PASSWORD}" }}'


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CREDS", "NKEY", "USER", "PASSWORD", "TOKEN", "CA", "CERT", "KEY"):
        monkeypatch.delenv(f"NATS_{name}", raising=False)


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n", "utf-8")
    return file


async def ask(url: str, access: Access | None = None) -> str:
    access = access or Access()
    async with (
        Worker(Desk, url, settings=WorkerSettings(access=access)),
        DistributedRunner(url, settings=CallSettings(access=access)) as runner,
    ):
        return (await soon(Desk(runner).echo("x")))[0].text


@pytest.mark.parametrize("by", ["file", "variable"])
@pytest.mark.parametrize("kind", ["password_file", "token_file", "nkey", "creds"])
async def test_credentials_are_read_of_a_file_or_by_the_variables_of_nats_own_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, by: str
) -> None:
    file, key = tmp_path / "secret", user_key()
    written, asked = {
        "password_file": (f"{PASSWORD}\n", ASKS),
        "token_file": (PASSWORD, f'authorization {{ token: "{PASSWORD}" }}'),
        "nkey": (f"{key.seed.decode()}\n", f"authorization {{ users: [ {{ nkey: {key.public} }} ] }}"),
        "creds": ("", ""),
    }[kind]
    file.write_text(written, "utf-8")
    asked = asked or with_creds(file)
    variables = {"password_file": ("PASSWORD", PASSWORD), "token_file": ("TOKEN", PASSWORD)}
    user = {"user": "ada"} if kind == "password_file" else {}
    access = Access.model_validate({kind: file, **user} if by == "file" else {})
    if by == "variable":
        name, value = variables.get(kind, (kind.upper(), str(file)))
        for each, said in {name: value, **{each.upper(): said for each, said in user.items()}}.items():
            monkeypatch.setenv(f"NATS_{each}", said)
    with nats_server(configuration=asked) as url:
        assert await ask(url, access) == "x"


async def test_what_the_url_holds_comes_before_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_CREDS", "/nowhere")
    with nats_server(configuration=ASKS) as url:
        assert await ask(url.replace("://", f"://ada:{PASSWORD}@")) == "x"


async def test_whoever_has_no_credentials_is_told_so_at_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    patient = WorkerSettings(patience=1000)
    with nats_server(configuration=ASKS) as url:
        told = (
            rf"^the connection to the NATS server at {url} was refused: .*Authorization Violation'?; "
            r"give valid credentials: Access\(…\), or"
        )
        with pytest.raises(AccessRefused, match=told):
            await soon(Worker(Desk, url, settings=patient).run())
        wrong = url.replace("://", "://ada:hush-hush@")
        with pytest.raises(AccessRefused, match=told) as refused:
            async with DistributedRunner(wrong, settings=CallSettings(patience=1000)) as runner:
                await soon(Desk(runner).echo("x"))

    assert "hush-hush" not in f"{refused.value!r} {runner!r} {caplog.text}"


@pytest.mark.parametrize(
    ("written", "given", "reason"),
    [
        (None, "creds", "cannot be read: No such file or directory"),
        (b"\xff\xfe", "creds", "cannot be read: it is not a text file"),
        (b"open-sesame", "creds", "is not a .creds file"),
        (b"", "token_file", "is empty"),
        (b"\n", "nkey", "is empty"),
        (b"open-sesame", "nkey", "credentials for nats://127.0.0.1:1 cannot be used"),
        (b"open-sesame", "ca", "cannot be used for TLS"),
        (b"open-sesame", "cert", "cannot be used for TLS"),
        (b"open-sesame", "key", "a key is given without a certificate"),
        (b"open-sesame", "password_file", "a password is given without a user"),
    ],
)
async def test_an_unusable_file_is_named(tmp_path: Path, written: bytes | None, given: str, reason: str) -> None:
    file = tmp_path / "file"
    if written is not None:
        file.write_bytes(written)
    worker = Worker(Desk, "nats://127.0.0.1:1", settings=WorkerSettings(access=Access(**{given: file})))

    with pytest.raises(AccessInvalid, match=reason) as told:
        await soon(worker.run())

    assert "sesame" not in str(told.value)


@pytest.mark.parametrize(
    ("access", "reason"),
    [
        ({"user": "ada"}, "a user is given without a password; give password_file, or set NATS_PASSWORD"),
        ({"user": "ada", "nkey": "seed"}, "credentials of several kinds are given: nkey, user; give one of"),
    ],
)
def test_half_a_login_or_two_are_refused(access: dict[str, Any], reason: str) -> None:
    """A server would take one of them, and nobody knows which."""
    with pytest.raises(AccessInvalid, match=reason):
        Access(**access).login(read_addresses("nats://127.0.0.1:1"))


def test_what_is_secret_is_in_no_setting_and_no_text(password_file: Path) -> None:
    access = Access(user="ada", password_file=password_file)
    login = access.login(read_addresses("nats://127.0.0.1:1"))

    assert login.password == PASSWORD
    assert PASSWORD not in f"{access!r} {access.model_dump_json()} {login!r}"
    assert CallSettings.model_validate_json(CallSettings(access=access).model_dump_json()).access == access


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    for who, names in (("server", ["127.0.0.1", "localhost"]), ("client", ["desk"])):
        issued = authority.issue_cert(*names)
        issued.private_key_pem.write_to_path(folder / f"{who}.key")
        issued.cert_chain_pems[0].write_to_path(folder / f"{who}.pem")
    return folder


@pytest.fixture(scope="module")
def encrypted(files: Path) -> Iterator[str]:
    certified = f'cert_file: "{files}/server.pem", key_file: "{files}/server.key", ca_file: "{files}/ca.pem"'
    with nats_server(configuration=f"tls {{ {certified}, verify: true }}") as url:
        yield f"tls://{url.partition('://')[2]}"


@pytest.mark.parametrize("by", ["file", "variable"])
async def test_a_connection_is_encrypted_and_both_sides_show_certificates(
    encrypted: str, files: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    given = {"ca": files / "ca.pem", "cert": files / "client.pem", "key": files / "client.key"}
    for name, file in given.items() if by == "variable" else ():
        monkeypatch.setenv(f"NATS_{name.upper()}", str(file))

    assert await ask(encrypted, Access.model_validate(given if by == "file" else {})) == "x"


@pytest.mark.parametrize("given", [{}, {"ca": "ca.pem"}], ids=["nothing", "no certificate of one's own"])
async def test_a_missing_certificate_is_said_at_once(encrypted: str, files: Path, given: dict[str, str]) -> None:
    access = Access(**{name: files / file for name, file in given.items()})

    with pytest.raises(AccessRefused, match=r"was refused: .*; give the file of the CA that signed the server's"):
        await soon(Worker(Desk, encrypted, settings=WorkerSettings(access=access, patience=1000)).run())


@pytest.mark.parametrize("asked_by", ["the URL", "the access"])
async def test_no_secret_is_sent_to_a_server_without_tls(files: Path, password_file: Path, asked_by: str) -> None:
    """Whoever stands in between can take the server's word for TLS away: what is asked for here counts."""
    heard = bytearray()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.0","headers":true,"max_payload":1048576}\r\n')
        try:
            heard.extend(await reader.read(10_000))
        finally:
            writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as between:
        port = between.sockets[0].getsockname()[1]
        is_url = asked_by == "the URL"
        access = Access(user="ada", password_file=password_file, ca=None if is_url else files / "ca.pem")
        worker = Worker(
            Desk, f"{'tls' if is_url else 'nats'}://127.0.0.1:{port}", settings=WorkerSettings(access=access)
        )
        with pytest.raises(AccessRefused, match="secure connection not available; give the file of the CA"):
            await soon(worker.run())

    assert heard == b""


async def test_a_key_that_is_encrypted_asks_nobody(files: Path, tmp_path: Path, authority: trustme.CA) -> None:
    """A worker has nobody who would type."""
    key = serialization.load_pem_private_key((files / "client.key").read_bytes(), None)
    sealed = tmp_path / "sealed.key"
    sealed.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
    )

    with pytest.raises(AccessInvalid, match=r"cannot be used for TLS: .*unencrypted key"):
        Access(cert=files / "client.pem", key=sealed).login(())


def test_the_command_takes_files(files: Path, password_file: Path) -> None:
    with nats_server(configuration=ASKS) as url:
        with worker_process(url, "Desk", "--user", "ada", "--password-file", str(password_file)) as worker:
            assert worker.id


@pytest.fixture(scope="module")
def restricted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server with the permissions that the page shows, and the folder of its users' passwords."""
    page = (ROOT / "docs/how-to/secure-the-workers.md").read_text("utf-8")
    shown = re.search(r"nats\.conf.*?'''\n(.*?)'''", page, re.DOTALL)
    assert shown is not None
    configuration = re.sub(r"listen: .*", "", shown[1])
    folder = tmp_path_factory.mktemp("passwords")
    for user in ("desk", "alice"):
        configuration = configuration.replace(f"${user.upper()}_PASSWORD", f'"{user}-{PASSWORD}"')
        (folder / user).write_text(f"{user}-{PASSWORD}", "utf-8")
    with nats_server(configuration=configuration) as url:
        yield url, folder


def of(user: str, folder: Path) -> Access:
    return Access(user=user, password_file=folder / user)


SHOUTING = own(shout=echo, whisper=echo)
"""As the page's: with a policy that its caller may run, and one that it may not."""


class Waiting(Gated):
    def __init__(self, runner: BaseRunner, gate: Gate) -> None:
        super().__init__(runner, gate)
        self.shout = self._bind(self.wait.policy)


async def test_the_permissions_of_the_page_suffice(restricted: tuple[str, Path]) -> None:
    url, folder = restricted
    gates = [Gate(), Gate()]
    serving = WorkerSettings(access=of("desk", folder), accept_after=0.0, beat=0.05, drain=0.0)
    calling = QUICK.model_copy(update={"access": of("alice", folder), "inbox": "_INBOX.alice"})
    workers = [
        Worker(lambda runner, gate=gate: Waiting(runner, gate), url, name="Desk", settings=serving) for gate in gates
    ]
    async with DistributedRunner(url, name="Desk", settings=calling) as runner:
        ctx = Waiting(runner, Gate())
        async with workers[0]:
            given_up = asyncio.ensure_future(ctx.shout("given up"))
            await until(lambda: gates[0].began)
            await asyncio.sleep(2 * calling.silence)  # it lives by its beats
            given_up.cancel()
            await until(lambda: gates[0].cancelled)
            handed_over = asyncio.ensure_future(ctx.shout("handed over"))
            await until(lambda: len(gates[0].began) == 2)
            await workers[1].start()
        gates[1].opened.set()
        (said,) = await soon(handed_over)
        await workers[1].finish()

    assert (said.text, gates[1].ended) == ("HANDED OVER", ["handed over"])


async def test_a_subject_that_is_not_allowed_is_said_at_once(restricted: tuple[str, Path]) -> None:
    url, folder = restricted
    serving, calling = WorkerSettings(access=of("desk", folder)), CallSettings(access=of("alice", folder))
    told = 'refuses: nats: permissions violation for {} to "{}.*"; grant the user this permission'
    async with Worker(SHOUTING, url, name="Desk", settings=serving):
        inbox = calling.model_copy(update={"inbox": "_INBOX.alice"})
        async with DistributedRunner(url, name="Desk", settings=inbox) as runner:
            with pytest.raises(AccessRefused, match=told.format("publish", "sabir.desk.whisper")):
                await soon(SHOUTING(runner).whisper("x"))
            assert (await soon(SHOUTING(runner).shout("x")))[0].text == "x"
    async with DistributedRunner(url, name="Desk", settings=calling) as runner:
        with pytest.raises(AccessRefused, match=told.format("subscription", "_inbox")):
            await soon(SHOUTING(runner).shout("x"))
    with pytest.raises(AccessRefused, match=told.format("subscription", "sabir-all.other")):
        await soon(Worker(SHOUTING, url, name="Other", settings=serving).run())


async def test_a_call_that_may_not_go_to_the_worker_that_would_take_it_ends_so() -> None:
    """The first worker leaves before it is done; permissions lack the second's own subject, and the error names it."""
    users = f"""authorization {{ users: [
        {{ user: desk, password: "{PASSWORD}" }}
        {{ user: ada, password: "{PASSWORD}", permissions: {{
            publish: ["sabir.Desk.wait", "sabir-all.Desk"], subscribe: "_INBOX.>" }} }} ] }}"""
    gate, other = Gate(), Gate()
    leaving = WorkerSettings(drain=0.0)
    with nats_server(configuration=users) as url:
        served, asked = (url.replace("://", f"://{user}:{PASSWORD}@") for user in ("desk", "ada"))
        async with DistributedRunner(asked, name="Desk", settings=QUICK) as runner:
            async with Worker(gate.context, served, name="Desk", settings=leaving):
                call = asyncio.ensure_future(Gated(runner).wait("x"))
                await until(lambda: gate.began)
                second = Worker(other.context, served, name="Desk")
                await second.start()
            with pytest.raises(AccessRefused, match=f'publish to "sabir-worker.{second.id.lower()}.desk.wait"'):
                await soon(call)
            await second.finish()

    assert other.began == []
