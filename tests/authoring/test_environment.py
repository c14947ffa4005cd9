"""Faults of the environment at every provider: an error of the library that names the variable, and not its value."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import sabir
import sabir_google
from sabir.authoring import explaining_environment_errors
from sabir.authoring.environment import FILES, PROXIES
from sabir.errors import ConnectionFailed
from sabir_mcp import ServerUnreachable, options_from_mcp

MODELS = ("openai.chat:m", "anthropic:m", "google:m")
FAULTS = {
    "SOCKS without its package": ("ALL_PROXY", "socks5://u:password@127.0.0.1:9", "the package socksio"),
    "lower case": ("all_proxy", "socks5://u:password@127.0.0.1:9", "the package socksio"),
    "unknown scheme": ("HTTPS_PROXY", "ftp://u:password@h", "not the URL of a proxy"),
    "no scheme": ("HTTPS_PROXY", "://password", "not the URL of a proxy"),
    "broken address": ("HTTP_PROXY", "http://u:password@[::", "not the URL of a proxy"),
    "broken port": ("HTTP_PROXY", "http://u:password@h:port", "not the URL of a proxy"),
    "missing certificates": ("SSL_CERT_FILE", "/nowhere/password.pem", "no readable file of certificates"),
    "certificates that are none": ("SSL_CERT_FILE", "{junk}", "no readable file of certificates"),
    "a folder of certificates": ("SSL_CERT_FILE", "{folder}", "no readable file of certificates"),
    "log of keys": ("SSLKEYLOGFILE", "/nowhere/password", "cannot be written"),
}
"""The variable, its value, and words of the error."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *FILES, "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda host: False, raising=False)


@pytest.fixture(params=FAULTS.values(), ids=FAULTS)
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, str]:
    name, value, words = request.param
    (junk := tmp_path / "password.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))  # with it, Python's own TLS context reads SSLKEYLOGFILE
    monkeypatch.setenv(name, value.format(junk=junk, folder=tmp_path))
    return name, words


def make(model: str, base_url: str = "http://127.0.0.1:9") -> sabir.ModelAdapter:
    settings = sabir.Settings(max_output_tokens=9, retries=3)
    return sabir.adapter(model, api_key="k", base_url=base_url, settings=settings)


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
@pytest.mark.parametrize("model", MODELS)
def test_a_fault_of_the_environment_names_its_variable(model: str, way: str, fault: tuple[str, str]) -> None:
    """The error is raised at once, because no retry helps; it does not show the value."""
    llm = make(model)
    with pytest.raises(ConnectionFailed) as caught:
        if way == "sync":
            llm.complete_sync("Hello")
        elif way == "stream":
            llm.stream_sync("Hello").reply()
        else:
            asyncio.run(llm.complete("Hello"))

    name, words = fault
    assert f"the variable {name} " in str(caught.value)
    assert words in str(caught.value)
    assert "password" not in str(caught.value)
    assert (caught.value.retryable, caught.value.provider) == (False, model.partition(":")[0].partition(".")[0])


def test_a_call_succeeds_once_the_variable_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        llm = make("openai.chat:m", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
        with pytest.raises(ConnectionFailed, match="SSL_CERT_FILE"):
            llm.complete_sync("Hello")
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(ConnectionFailed, match="cannot be reached, or closed the connection early"):
        make("openai.chat:m", llm.target.endpoint).complete_sync("Hello", settings=sabir.Settings(retries=0))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("value", ["http://u:password@127.0.0.1:9", "http://", "http://h:999999", "http://a b"])
def test_an_unreachable_proxy_names_its_variable(model: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP libraries accept these values and then cannot connect."""
    monkeypatch.setenv("HTTP_PROXY", value)
    with pytest.raises(ConnectionFailed, match="also check HTTP_PROXY") as caught:
        make(model).complete_sync("Hello", settings=sabir.Settings(retries=0))

    assert "password" not in str(caught.value)


@pytest.mark.parametrize("value", ["http://[::", "a b,[,..x", "http://h:99999999", "\udc80", "1.2.3.4/99,::1/200"])
@pytest.mark.parametrize("model", MODELS)
def test_a_malformed_no_proxy_raises_nothing_foreign(model: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some HTTP libraries ignore entries that are no hosts, others raise InvalidURL."""
    monkeypatch.setenv("NO_PROXY", value)
    with pytest.raises(ConnectionFailed, match=r"cannot be reached(, or closed |: the variable NO_PROXY )"):
        make(model).complete_sync("Hello", settings=sabir.Settings(retries=0))


def test_other_http_clients_name_the_variable_too(fault: tuple[str, str]) -> None:
    async def connect() -> None:
        async with options_from_mcp("http://127.0.0.1:9/mcp"):
            raise AssertionError("it connected")

    with pytest.raises(ServerUnreachable, match=f"the variable {fault[0]} "):
        asyncio.run(connect())
    with pytest.raises(ConnectionFailed, match=f"google cannot be reached: the variable {fault[0]} "):
        sabir_google.http_options()


ERRORS: dict[str, tuple[Exception, dict[str, str], str | None]] = {
    "a host of NO_PROXY": (ValueError("x"), {"NO_PROXY": "h,http://[::"}, "NO_PROXY"),
    "a network of NO_PROXY": (ValueError("x"), {"no_proxy": "1.2.3.4/99"}, "no_proxy"),
    "no variable": (ImportError("x"), {}, None),
    "a valid proxy": (
        ValueError("x"),
        {"HTTPS_PROXY": "http://h:1", "NO_PROXY": "*.h,::1,[::1],::1/128,h:1,10.0.0.0/8,https://h"},
        None,
    ),
    "another file": (FileNotFoundError(2, "x", "/other"), {"SSL_CERT_FILE": "/nowhere"}, None),
    "another import": (ImportError("x"), {"HTTPS_PROXY": "http://h:1"}, None),
    "lower case counts": (ValueError("x"), {"HTTPS_PROXY": "ftp://h", "https_proxy": "http://h"}, None),
    "another kind": (TypeError("x"), {"HTTPS_PROXY": "ftp://h"}, None),
    "an own error": (sabir.SettingsInvalid("x"), {"HTTPS_PROXY": "ftp://h"}, None),
}


@pytest.mark.skipif(os.name == "nt", reason="names of variables have no case there")
@pytest.mark.parametrize(("error", "variables", "named"), ERRORS.values(), ids=ERRORS)
def test_only_errors_that_a_variable_explains_are_changed(
    error: Exception, variables: dict[str, str], named: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConnectionFailed if named else type(error)) as caught, explaining_environment_errors("acme"):
        raise error

    assert (named or "x") in str(caught.value)


@pytest.fixture(autouse=True)
def no_resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Names of hosts are not looked up outside of this machine."""
    resolve = socket.getaddrinfo

    def local(host: object, *arguments: object, **named: object) -> object:
        if host in ("127.0.0.1", "localhost", b"127.0.0.1", "", b""):
            return resolve(host, *arguments, **named)  # type: ignore[arg-type]
        raise socket.gaierror(socket.EAI_NONAME, "no such host")

    monkeypatch.setattr(socket, "getaddrinfo", local)
    yield
