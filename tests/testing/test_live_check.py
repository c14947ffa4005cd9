"""`sabir check`, against services of this machine: every outcome, the estimate, refusals, saved cassettes, Ctrl-C."""

import importlib.util
import io
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sabir
from sabir.errors import CredentialsMissing, SettingsInvalid
from sabir_acme.plugin import acme
from sabir_testing import ProviderConformance
from sabir_testing.cassettes import check_cassette, exchanges, provenance_of
from sabir_testing.kit.asking import STREAMED, WHOLE
from sabir_testing.kit.service import Service
from sabir_testing.live.command import INTERRUPTED, check
from sabir_testing.live.questions import ROW_NAMES, estimate, live_settings, plan
from sabir_testing.live.running import cost_of
from sabir_testing.loopback import Server, whole

from tests.architecture.project import ROOT
from tests.cli.command import NO_FOLDER, SCRIPT, environment, run
from tests.cli.terminal import on_terminal, posix
from tests.testing.harness import TEMPLATE

KEY = "sk-acme-3f9c81d2a7b64e50"
RECORDED = ROOT / "cassettes" / "openai.chat"
OPENAI = "openai.chat:gpt-4.1-mini"
ENV = {"OPENAI_API_KEY": KEY}


def service_module() -> ModuleType:
    """The fake of acme's service that `sabir new-plugin` writes."""
    spec = importlib.util.spec_from_file_location("acme_service", TEMPLATE / "tests" / "service.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def acme_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Acme's service, with a key in its variable; the fake refuses the key "wrong" alone."""
    sabir.register("acme", acme)
    monkeypatch.setenv("ACME_API_KEY", KEY)
    monkeypatch.setenv("XDG_CONFIG_HOME", NO_FOLDER)
    try:
        with service_module().running() as url:
            yield url
    finally:
        sabir.unregister("acme")


@pytest.fixture
def recorded() -> Iterator[Any]:
    """A function that starts a server with the response of a recorded exchange, and returns its URL."""
    servers: list[Server] = []

    def start(cassette: str) -> str:
        exchange = exchanges(RECORDED / cassette)[0]
        script = whole(exchange.response_body, exchange.status, exchange.headers["content-type"])
        servers.append(Server([script]))
        return f"{servers[-1].url}/v1"

    yield start
    for server in servers:
        server.__exit__()


def rows_of(text: str) -> dict[str, str]:
    """Row → outcome, of a JSON document."""
    return {row["question"]: row["outcome"] for row in json.loads(text)["questions"]}


def test_every_question_is_answered_by_a_service_that_supports_all(
    acme_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("acme:small", base_url=acme_url, yes=True) == 0

    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:-2]] == list(ROW_NAMES)
    assert all(" ok" in line for line in lines[1:-2])
    assert max(map(len, lines)) <= 80
    assert lines[-2:] == ["12 ok", lines[-1]]
    assert lines[-1].startswith("12 calls, ")
    assert "12 calls, about" in err
    assert err.rstrip().endswith("cost unknown")


def test_a_lost_capability_is_not_supported_and_not_sent(acme_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = check("acme:tiny", base_url=acme_url, yes=True, json=True, only=["image", "result with image", "text"])

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert rows_of(json.dumps(found)) == {"text": "ok", "result with image": "not supported", "image": "not supported"}
    assert found["calls"] == found["estimate"]["calls"] == 1
    assert "downgraded parts[1]" in found["questions"][2]["reason"]


def test_the_facts_of_the_settings_file_decide_what_is_not_supported(
    acme_url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "sabir").mkdir()
    (tmp_path / "sabir" / "config.toml").write_text('[model_facts."acme:small"]\nmodalities = []\n')

    check("acme:small", base_url=acme_url, yes=True, json=True, only=["image"])

    assert rows_of(capsys.readouterr().out) == {"image": "not supported"}


@pytest.mark.parametrize(
    ("cassette", "row", "reason"),
    [
        ("text.yaml", "text", None),
        ("text_streamed.yaml", "stream", None),
        ("bad_key.yaml", "wrong key", None),
        ("missing_model.yaml", "missing model", None),
        ("option_call.yaml", "call", None),
        ("text.yaml", "call", "contains 0 option calls; expected 1"),
        ("text.yaml", "wrong key", "the service answered; expected an error, AuthenticationFailed"),
        ("bad_key.yaml", "missing model", "expected ModelNotFound, got AuthenticationFailed"),
        ("bad_key.yaml", "usage", "there is no reply of text or stream"),
    ],
)
def test_a_recorded_response_decides_the_outcome(
    recorded: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cassette: str,
    row: str,
    reason: str | None,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    code = check(OPENAI, base_url=recorded(cassette), yes=True, json=True, only=[row])

    result = json.loads(capsys.readouterr().out)["questions"][-1]
    assert (result["question"], result["outcome"]) == (row, "ok" if reason is None else "failed")
    assert (reason or "") in result["reason"]
    assert code == (reason is not None)


def test_the_estimate_has_a_price_only_at_the_vendors_own_endpoint() -> None:
    """The price of a gateway's model is unknown."""
    own, gateway = sabir.adapter("openai:gpt-5"), sabir.adapter("openai:gpt-5", base_url="http://127.0.0.1:9/v1")

    known, unknown = (estimate(each, plan(each)) for each in (own, gateway))

    assert known.cost is not None
    assert 0 < known.cost < 1
    assert (known.calls, unknown.calls) == (12, 12)
    assert str(unknown).endswith("cost unknown")


def test_the_paid_cost_is_the_sum_of_the_replies() -> None:
    usage = sabir.Usage(input_tokens=1_000, output_tokens=1_000)
    origin = sabir.Origin(
        provider="openai", dialect="openai.chat", endpoint="https://api.openai.com/v1", model="gpt-4.1-mini"
    )
    reply = sabir.Reply(messages=(), finish_reason="stop", usage=usage, origin=origin)
    single = cost_of([reply])

    assert single is not None
    assert cost_of([reply, reply]) == 2 * single
    assert cost_of([reply, reply.model_copy(update={"usage": sabir.Usage()})]) is None


@pytest.mark.parametrize(
    ("model", "asked"),
    [("openai:gpt-5", 11), ("openai.chat:gpt-5", 10), ("google:gemini-3-flash-preview", 11), ("local:smollm2", 6)],
)
def test_the_plan_of_each_provider_leaves_out_only_what_its_api_lacks(model: str, asked: int) -> None:
    """`parallel_options` is lost at Google, whose models call options in parallel nevertheless."""
    rows = plan(sabir.adapter(model, api_key="test"))

    assert sum(not row.unsupported for row in rows) == asked


def test_cassettes_contain_no_key_and_replay_in_the_kit(
    acme_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("acme:small", base_url=acme_url, yes=True, save=tmp_path / "cassettes") == 0

    saved = sorted((tmp_path / "cassettes").glob("*.yaml"))
    assert f"saved {len(saved)} cassettes" in capsys.readouterr().out
    assert len(saved) == 11
    for path in saved:
        check_cassette(path)
        assert KEY not in path.read_text("utf-8")
        assert "not a vendor's own service" in provenance_of(path)["server"]

    class TestAcme(ProviderConformance):
        adapter = sabir.adapter("acme:small", api_key="test")
        cassettes = tmp_path / "cassettes"
        settings = live_settings(adapter)

    service = Service(TestAcme().subject_of())
    answered = [service.ask(path.stem.removesuffix("_streamed"), _suffix(path)) for path in saved]
    assert all(bool(result.error) == (result.question.expects is not None) for result in answered)


def _suffix(path: Path) -> Any:
    return STREAMED if path.stem.endswith("_streamed") else WHOLE


def test_the_exchange_of_a_failed_question_is_not_saved(
    recorded: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    assert check(OPENAI, base_url=recorded("text.yaml"), yes=True, save=tmp_path, only=["text", "call"]) == 1

    assert [path.name for path in tmp_path.iterdir()] == ["text.yaml"]
    assert "not saved, because it failed" in capsys.readouterr().out


def test_a_provider_without_http_is_checked_but_not_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check("echo:small", yes=True, save=tmp_path, only=["text"])

    out = capsys.readouterr().out
    assert "ok" in out.splitlines()[1]
    assert "not saved: " in out
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, SettingsInvalid, "no model is set"),
        ({"model": "echo:m"}, SettingsInvalid, "9 calls, about .* pass --yes"),
        ({"model": "echo:m", "only": ["strem"]}, SettingsInvalid, "did you mean 'stream'"),
        ({"model": "echo:m", "save": Path(__file__)}, SettingsInvalid, "is not a folder"),
        ({"model": "openai:gpt-5", "yes": True}, CredentialsMissing, "OPENAI_API_KEY"),
    ],
)
def test_a_check_that_cannot_start_is_refused(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("SABIR_MODEL", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())

    with pytest.raises(error, match=message):
        check(arguments.pop("model", None), **arguments)


def test_the_command_without_a_terminal_exits_with_2() -> None:
    finished = run("check", "echo:small")

    assert finished.returncode == 2
    assert finished.stdout == b""
    assert b"pass --yes" in finished.stderr


@posix
def test_a_terminal_is_asked_and_no_sends_nothing() -> None:
    code, seen = on_terminal("check", "echo:small", typed=[(rb"Start\? \[y/N\] ", b"n\r")])
    assert code == 1
    assert b"question" not in seen

    code, seen = on_terminal("check", "echo:small", "--only", "text", typed=[(rb"Start\? \[y/N\] ", b"y\r")])
    assert code == 0
    assert b"1 ok" in seen


@posix
def test_an_interruption_prints_what_was_sent_so_far() -> None:
    """The first question is answered; the second one waits until Ctrl-C."""
    exchange = exchanges(RECORDED / "text.yaml")[0]
    release = threading.Event()
    response = whole(exchange.response_body, exchange.status, "application/json")
    with Server([response]) as server:
        command = [SCRIPT, "check", OPENAI, "--base-url", f"{server.url}/v1", "--yes"]
        env = environment({**ENV, "PYTHONUNBUFFERED": "1"})
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True)
        assert process.stdout
        seen = [process.stdout.readline()]
        server.script = [release, response]
        seen.append(process.stdout.readline())
        while len(server.requests) < 2:
            threading.Event().wait(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        release.set()

    text = "".join([*seen, out])
    assert process.returncode == INTERRUPTED, err
    assert "interrupted" in text
    assert "the service may charge for the interrupted call" in text
    assert "1 ok, interrupted, " in text
    assert "2 calls, " in text
    assert "Traceback" not in err


def test_the_command_starts_without_pytest() -> None:
    program = "import sys, sabir_testing.live.command; print([m for m in sys.modules if m in ('pytest', 'hypothesis')])"
    finished = subprocess.run([SCRIPT.with_name("python"), "-c", program], capture_output=True, text=True, check=True)

    assert finished.stdout.strip() == "[]"


def test_a_reply_without_numbers_of_tokens_fails_the_usage(
    recorded: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = json.loads(exchanges(RECORDED / "text.yaml")[0].response_body)
    del body["usage"]
    with Server([whole(json.dumps(body).encode())]) as server:
        code = check(OPENAI, base_url=f"{server.url}/v1", yes=True, json=True, only=["usage"])

    found = json.loads(capsys.readouterr().out)
    assert code == 1
    assert found["tokens"] is None
    assert "the reply of text reports no number of tokens" in found["questions"][-1]["reason"]
