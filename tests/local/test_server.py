"""The embedded server starts once, keeps strangers out, ends with its process, and says why it cannot start."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
import sabir
from openai import AuthenticationError, BadRequestError, OpenAI
from sabir.errors import SettingsInvalid
from sabir_local.models import find_weights
from sabir_local.server import CONTEXT_TOKENS, LocalServer, ServerNotStarted, template_for

GREETING = {"model": "smollm2", "messages": [{"role": "user", "content": "Hello!"}]}


def is_serving(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/health", timeout=5).is_success
    except httpx2.TransportError:
        return False


def run(program: str) -> subprocess.CompletedProcess[str]:
    """A Python process of its own, with warnings as errors."""
    arguments = [sys.executable, "-W", "error", "-c", textwrap.dedent(program)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)


def test_it_answers_nobody_without_the_key(server: LocalServer, client: OpenAI) -> None:
    """It listens on this machine alone, at a port that the system chose; its key is its own, and in no repr."""
    with pytest.raises(AuthenticationError):
        client.with_options(api_key="guess").chat.completions.create(**GREETING)
    place = urlsplit(server.address)

    assert (place.scheme, place.hostname) == ("http", "127.0.0.1")
    assert place.port
    assert server.api_key not in repr(server)
    assert server.api_key != LocalServer().api_key


def test_threads_that_ask_at_once_start_one_server(server: LocalServer) -> None:
    fresh = LocalServer()
    with ThreadPoolExecutor(8) as pool:
        addresses = set(pool.map(lambda _: fresh.address, range(8)))
    fresh.stop()

    assert len(addresses) == 1
    assert addresses != {server.address}


def test_it_writes_nothing_to_the_terminal(
    server: LocalServer, client: OpenAI, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither when it starts nor when it refuses; nothing is loaded here, where that would stop every thread."""
    fresh = LocalServer()
    assert fresh.address
    fresh.stop()
    with pytest.raises(BadRequestError):
        client.chat.completions.create(**GREETING, extra_body={"top_k": "many"})

    assert capfd.readouterr() == ("", "")
    assert "xllamacpp" not in sys.modules


def test_after_a_stop_a_use_starts_it_anew(server: LocalServer) -> None:
    fresh = LocalServer()
    address = fresh.address
    fresh.stop()
    fresh.stop()

    assert not is_serving(address)
    assert not fresh.is_running
    assert is_serving(fresh.address)
    fresh.stop()


def test_a_server_that_died_is_started_anew(server: LocalServer, caplog: pytest.LogCaptureFixture) -> None:
    fresh = LocalServer()
    assert fresh.address
    fresh._child._process.kill()
    fresh._child._process.wait()

    assert not fresh.is_running
    assert is_serving(fresh.address)
    assert "server stopped (exit code -9)" in caplog.text
    fresh.stop()


def test_broken_weights_are_reported_in_one_line(
    server: LocalServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(find_weights().read_bytes()[:60_000_000])
    with pytest.raises(ServerNotStarted, match=r"broken\.gguf: .*corrupted or incomplete; try other weights") as error:
        _ = LocalServer(broken).address

    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")


def test_a_start_that_takes_too_long_is_given_up(server: LocalServer) -> None:
    slow = LocalServer(start_seconds=0.01)
    with pytest.raises(ServerNotStarted, match=r"not ready after 0\.01 s"):
        _ = slow.address

    assert not slow.is_running


def test_settings_are_checked_when_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers below 1 mean "all there is" to llama.cpp; the threads may be set by SABIR_LOCAL_THREADS."""
    for name in ("threads", "context_tokens", "output_tokens"):
        with pytest.raises(SettingsInvalid, match=name):
            LocalServer(**{name: 0})
    monkeypatch.setenv("SABIR_LOCAL_THREADS", "3")
    assert "threads=3" in repr(LocalServer())
    monkeypatch.setenv("SABIR_LOCAL_THREADS", "many")
    with pytest.raises(SettingsInvalid, match="SABIR_LOCAL_THREADS is 'many'"):
        LocalServer()


def test_only_weights_with_a_poor_template_get_ours() -> None:
    """Larger models bring one that knows functions. What `sabir models local` shows is what a conversation may fill."""
    assert "expects_call" in template_for(Path("SmolLM2-135M-Instruct.Q4_1.gguf"))
    assert template_for(Path("Qwen3-8B.gguf")) == ""
    assert [info.context_tokens for info in sabir.models("local")] == [CONTEXT_TOKENS]


def test_unless_told_otherwise_it_repeats_itself(client: OpenAI) -> None:
    """No temperature means 0, whatever was asked in between; the model's name is the file's, without its folder."""
    first = client.chat.completions.create(**GREETING, max_tokens=16)
    client.chat.completions.create(model="smollm2", messages=[{"role": "user", "content": "Hello you"}], max_tokens=2)
    second = client.chat.completions.create(**GREETING, max_tokens=16)

    assert first.choices[0].message.content == second.choices[0].message.content
    assert first.model == find_weights().stem


def test_an_answer_without_a_limit_ends(server: LocalServer) -> None:
    short = LocalServer(output_tokens=5)
    with OpenAI(base_url=f"{short.address}/v1", api_key=short.api_key, max_retries=0) as client:
        reply = client.chat.completions.create(**GREETING)
    short.stop()

    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 5


def test_a_context_that_overflows_is_named(client: OpenAI) -> None:
    messages = [{"role": "user", "content": "word " * 4_500}]
    with pytest.raises(BadRequestError, match="exceeds the available context size") as error:
        client.chat.completions.create(model="smollm2", messages=messages)

    assert error.value.type == "exceed_context_size_error"


def test_a_process_that_leaves_a_stream_ends_well(server: LocalServer) -> None:
    left = run(
        """
        import json
        from http.client import HTTPConnection
        from sabir_local.server import shared_server
        server = shared_server()
        connection = HTTPConnection(server.address.removeprefix("http://"))
        body = {"messages": [{"role": "user", "content": "Tell me a long story."}], "stream": True}
        headers = {"Authorization": f"Bearer {server.api_key}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        print(connection.getresponse().readline().decode()[:5], server.address)
        connection.close()
        """
    )
    kind, address = left.stdout.split()

    assert (left.returncode, left.stderr, kind) == (0, "", "data:")
    assert not is_serving(address)


def test_a_forked_process_leaves_its_parents_server_alone(server: LocalServer) -> None:
    forked = run(
        """
        import os, sys, urllib.request
        from sabir_local.server import shared_server
        server = shared_server()
        address = server.address
        if os.fork() == 0:
            assert not server.is_running
            assert server.address != address
            sys.exit(0)
        _, status = os.wait()
        assert urllib.request.urlopen(f"{address}/health").status == 200
        assert server.address == address
        print(os.waitstatus_to_exitcode(status))
        """
    )

    assert (forked.returncode, forked.stderr, forked.stdout) == (0, "", "0\n")


def test_a_killed_process_takes_its_server_along(server: LocalServer) -> None:
    program = "from sabir_local.server import shared_server; print(shared_server().address, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        address = process.stdout.readline().strip()
        assert is_serving(address)
        os.kill(process.pid, signal.SIGKILL)
    for _ in range(100):
        if not is_serving(address):
            return
        time.sleep(0.05)
    pytest.fail(f"{address} still serves")
