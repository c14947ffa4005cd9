"""The embedded model needs nothing of the environment, so a fallback to it works where no vendor is reached."""

import asyncio

import pytest
import sabir
from sabir_local.server import LocalServer

FAULTS = {"ALL_PROXY": "socks5://127.0.0.1:9", "SSL_CERT_FILE": "/nowhere", "SSLKEYLOGFILE": "/nowhere/log"}


def test_faulty_proxies_and_certificates_do_not_keep_the_embedded_model_from_answering(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in FAULTS.items():
        monkeypatch.setenv(name, value)
    settings = sabir.Settings(max_output_tokens=2, retries=0)
    local = sabir.adapter("local:smollm2", client=server, settings=settings)
    chain = sabir.fallback(sabir.adapter("openai.chat:m", api_key="k", settings=settings), local)

    for reply in (chain.complete_sync("Hello"), asyncio.run(chain.complete("Hello"))):
        assert reply.text
        assert [member.error for member in reply.failed_members] == ["ConnectionFailed"]
