"""The server of the page on a real port: who may read, what it answers, and what it refuses."""

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from sabir_cli.inspect.comparison import RequestedComparison
from sabir_cli.inspect.inspection import Inspection, plain_entries
from sabir_cli.inspect.server import HOST, build_app, build_server, open_socket

from tests.cli.inspect.samples import long_conversation, trip

TOKEN = "a-token-of-the-test"


@dataclass
class Site:
    """A running server."""

    port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{TOKEN}/"

    def request(self, path: str, method: str = "GET", host: str = "") -> tuple[int, dict[str, str], str]:
        """Return status, headers and text of an answer. `path` follows the token if it does not begin with a slash."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=20)
        with contextlib.closing(connection):
            headers = {"Host": host or f"{HOST}:{self.port}"}
            connection.request(method, path if path.startswith("/") else f"/{TOKEN}/{path}", headers=headers)
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.headers.items()}, response.read().decode()


@contextlib.contextmanager
def serving(inspection: Inspection, *models: str) -> Iterator[Site]:
    """Serve a conversation in a thread."""
    with open_socket() as listening:
        port = listening.getsockname()[1]
        server = build_server(build_app(inspection, RequestedComparison(models), TOKEN, port))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Site(port)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    inspection = Inspection("trip", "messages", plain_entries(trip()))
    with serving(inspection, "openai:gpt-5", "google:gemini-3-pro") as running:
        yield running


def test_both_views_answer_with_the_security_headers(site: Site) -> None:
    for path, words in (("conversation", "Is this walk possible"), ("renderings", "openai:gpt-5")):
        status, headers, text = site.request(path)
        assert status == 200 and words in text and headers["content-type"] == "text/html; charset=utf-8"
        assert headers["content-security-policy"].startswith("default-src 'none'; img-src data:; style-src 'sha256-")
        assert "unsafe" not in headers["content-security-policy"] and "http" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer" and headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store" and "server" not in headers


def test_only_the_address_with_the_token_is_answered(site: Site) -> None:
    for path in ("/", "/conversation", "/other/conversation", f"/{TOKEN}x/conversation", f"/{TOKEN}", "/%C3%BC/"):
        status, headers, text = site.request(path)
        assert status in (404, 307) and "walk" not in text and "content-security-policy" in headers, path
    assert site.request(f"/{TOKEN}/")[0] == 303


def test_another_host_name_is_refused(site: Site) -> None:
    """A website whose name points to 127.0.0.1 must not read the page, even with the token."""
    for host in ("evil.invalid", f"evil.invalid:{site.port}", "127.0.0.1", f"localhost:{site.port}"):
        status, _, text = site.request("conversation", host=host)
        assert status == 421 and "walk" not in text


def test_other_methods_are_refused(site: Site) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
        assert site.request("conversation", method)[0] == 405


def test_settings_in_the_query_change_the_requests(site: Site) -> None:
    def body(query: str) -> str:
        return site.request(f"renderings?{query}")[2].replace("&quot;", '"')

    assert '"max_tokens"</span>: 77' in body("model=anthropic:claude-sonnet-5&max_output_tokens=77")
    assert "claude-sonnet-5 cannot accept" in body("model=anthropic:claude-sonnet-5&strict=true")
    assert "is not a number" in body("max_output_tokens=many") and "reasoning_effort" in body("reasoning_effort=<b>")
    assert "&lt;b&gt;" in body("model=<b>&model=echo:small") and "<b>" not in body("model=<b>")


def test_a_long_conversation_has_pages_and_stable_links() -> None:
    inspection = Inspection("long", "messages", plain_entries(long_conversation(2_500)))
    with serving(inspection) as site:
        started = time.perf_counter()
        status, _, first = site.request("conversation")
        elapsed = time.perf_counter() - started

        assert status == 200 and "Page 1 of 38" in first and len(first) < 600_000 and elapsed < 2
        status, headers, _ = site.request("conversation?message=9999")
        assert (status, headers["location"]) == (303, "conversation?page=38#m-9999")
        assert 'id="m-9999"' in site.request("conversation?page=38")[2]
