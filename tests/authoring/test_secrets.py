"""What only the sender knows stands in no message, no log and no variable of a failed call, at every provider.

Through the real SDKs, to a real server on a loopback port, which says back what it was sent.
"""

import asyncio
import base64
import json
import logging
import pickle
import traceback
from types import TracebackType
from typing import Any

import openai
import pytest
import sabir
from sabir.base.errors import LEAST_SECRET, conceal
from sabir.errors import CallError
from sabir_testing.loopback import Server, head, whole

KEY = "sk-never-shown-" + "0123456789abcdef" * 4
MODELS = ("openai.chat:m", "openai.responses:m", "azure:m", "anthropic:m", "bedrock.messages:m", "google:m")
STREAMED = {
    "openai.chat:m": {"error": {"message": f"bad key {KEY}", "code": 401}},
    "openai.responses:m": {"type": "error", "code": "invalid_api_key", "message": f"bad key {KEY}"},
    "azure:m": {"type": "error", "code": "invalid_api_key", "message": f"bad key {KEY}"},
    "bedrock.messages:m": {"type": "error", "error": {"type": "authentication_error", "message": f"bad key {KEY}"}},
    "anthropic:m": {"type": "error", "error": {"type": "authentication_error", "message": f"bad key {KEY}"}},
    "google:m": {"error": {"code": 401, "message": f"bad key {KEY}", "status": "UNAUTHENTICATED"}},
}
"""An error in the midst of a stream, as each dialect has it."""
BODIES = {
    "object": json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}.", "type": "invalid"}}).encode(),
    "text": f"no such key: {KEY}".encode(),
    "long": json.dumps({"error": {"message": f"{'x' * 370}{KEY}{'y' * 300}", "type": "invalid"}}).encode(),
    "end": json.dumps({"error": {"message": f"{'x' * 900}{KEY}", "type": "invalid"}}).encode(),
}


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.delenv("OPENAI_API_VERSION", raising=False)


def ask(model: str, base_url: str) -> sabir.ModelAdapter:
    settings = sabir.Settings(max_output_tokens=9, retries=sabir.RetryPolicy(attempts=1))
    return sabir.adapter(model, api_key=KEY, base_url=base_url, settings=settings)


def shown(error: BaseException) -> list[str]:
    """The messages of an error and of all behind it, and of their frames within this library what variables show."""
    texts: list[str] = []
    behind: BaseException | None = error
    while behind is not None:
        texts.append(str(behind))
        texts += [repr(value) for value in _variables(behind.__traceback__)]
        behind = behind.__cause__ or behind.__context__
    return texts


def _variables(traceback: TracebackType | None) -> list[Any]:
    found: list[Any] = []
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
        if frame.f_globals["__name__"].partition(".")[0].startswith("sabir"):
            found += frame.f_locals.values()
    return found


def parts(secret: str) -> list[str]:
    """What would give a secret away: any LEAST_SECRET characters of it."""
    return [secret[at : at + LEAST_SECRET] for at in range(len(secret) - LEAST_SECRET + 1)]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("model", MODELS)
async def test_a_key_that_a_vendor_echoes_stands_in_no_error_and_no_log(
    model: str, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "sabir"), Server([whole(body, 401)]) as server, ask(model, server.url) as llm:
        with pytest.raises(CallError) as waited:
            llm.complete_sync("Hello")
        with pytest.raises(CallError) as awaited:
            await llm.complete("Hello")
        await llm.aclose()

    texts = [str(waited.value), str(awaited.value), *caplog.messages]
    assert [part for text in texts for part in parts(KEY) if part in text] == []
    assert "[a secret]" in texts[0]
    assert waited.value.status == awaited.value.status == 401


def test_the_key_of_a_users_own_client_stands_in_no_error() -> None:
    with Server([whole(BODIES["object"], 401)]) as server:
        with openai.OpenAI(api_key=KEY, base_url=server.url) as client, pytest.raises(CallError) as caught:
            sabir.adapter("openai.chat:m", client=client).complete_sync("Hello")

    assert "Incorrect API key provided: [a secret]" in str(caught.value)


@pytest.mark.parametrize("model", MODELS)
def test_a_key_that_a_stream_echoes_stands_in_no_error(model: str, caplog: pytest.LogCaptureFixture) -> None:
    event = json.dumps(STREAMED[model]).encode()
    script = [head(content_type="text/event-stream"), b"event: error\ndata: " + event + b"\n\n"]
    with caplog.at_level(logging.INFO, "sabir"), Server(script) as server, ask(model, server.url) as llm:
        with pytest.raises(CallError) as caught:
            llm.stream_sync("Hello").reply()

    behind = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert [each for each in (*map(str, behind), *caplog.messages) if KEY in each] == []
    assert "bad key [a secret]" in str(caught.value)


def raw(head: str, body: str = "", status: int = 200) -> bytes:
    return f"HTTP/1.1 {status} X\r\n{head}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


MALFORMED = {
    "status line": f"HTTP/1.1 {KEY}\r\n\r\n".encode(),
    "no HTTP": f"{KEY}\r\n\r\n".encode(),
    "chunk": f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{KEY}\r\n".encode(),
    "length": f"HTTP/1.1 200 OK\r\ncontent-length: {KEY}\r\n\r\n".encode(),
    "coding": f"HTTP/1.1 200 OK\r\ntransfer-encoding: {KEY}\r\n\r\n".encode(),
    "location": raw(f"location: http://{KEY}.example/{KEY}", status=302),
    "id of the request": raw(f"x-request-id: {KEY}\r\nrequest-id: {KEY}", "{}", 500),
    "code": raw("content-type: application/json", json.dumps({"error": {"message": "m", "code": KEY}}), 401),
    "message": raw("content-type: application/json", json.dumps({"error": {"message": KEY, "type": "t"}}), 401),
    "page": raw("content-type: text/html", f"<p>{KEY}</p>", 502),
    "unreadable": raw("content-type: application/json", KEY),
    "broken off": f"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{KEY}".encode(),
}
"""Responses that repeat the key, by the place of the key."""
READ = {"unreadable", "broken off"}
"""Those that are read as replies: the variables of the frames that read them hold the response."""


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
@pytest.mark.parametrize("where", MALFORMED)
@pytest.mark.parametrize("model", MODELS)
def test_a_key_that_a_malformed_response_repeats_is_not_shown(
    model: str, where: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "sabir"), Server([MALFORMED[where]], keeps_alive=False) as server:
        with ask(model, server.url) as llm, pytest.raises(CallError) as caught:
            if way == "sync":
                llm.complete_sync("Hello")
            elif way == "async":
                asyncio.run(llm.complete("Hello"))
            else:
                llm.stream_sync("Hello").reply()

    pickled = pickle.dumps(caught.value).decode("latin-1")
    logged = [record.getMessage() for record in caplog.records if record.name == "sabir"]
    texts = [pickled, repr(vars(caught.value)), *traceback.format_exception(caught.value), *logged]
    assert [part for text in texts for part in parts(KEY) if part in text] == []
    if where not in READ:
        assert [text for text in shown(caught.value) if KEY[:20] in text] == []


@pytest.mark.parametrize("model", MODELS)
async def test_no_variable_of_a_failed_call_shows_its_key(model: str) -> None:
    """Tools that report failures show the variables of every frame: none of this library's does."""
    with Server([], keeps_alive=False) as server, ask(model, server.url) as llm:
        with pytest.raises(CallError) as waited:
            llm.complete_sync("Hello")
        with pytest.raises(CallError) as awaited:
            await llm.complete("Hello")
        await llm.aclose()

    for caught in (waited, awaited):
        assert len(shown(caught.value)) > 15  # of the frames that a traceback keeps, and of those of what caused it
        assert [text for text in shown(caught.value) if KEY in text] == []


def test_a_key_that_no_header_can_carry_stands_in_no_variable() -> None:
    llm = sabir.adapter("google:m", api_key=f"{KEY}\n")
    with pytest.raises(CallError) as caught:
        llm.complete_sync("Hello")

    assert [text for text in shown(caught.value) if KEY in text] == []


@pytest.mark.parametrize("model", MODELS)
async def test_a_user_and_password_of_a_base_url_are_a_header_and_in_no_log(
    model: str, caplog: pytest.LogCaptureFixture
) -> None:
    """HTTP clients log the URL of each request; the server is told by the header that they would make of them."""
    with caplog.at_level(logging.DEBUG), Server([whole(b"{}", 400)]) as server:
        with ask(model, server.url.replace("://", "://me%40acme:pass%20word@")) as llm:
            with pytest.raises(CallError):
                llm.complete_sync("Hello")
            with pytest.raises(CallError):
                await llm.complete("Hello")
            await llm.aclose()

    basic = base64.b64encode(b"me@acme:pass word").decode()
    assert [asked.headers["authorization"] for asked in server.requests] == [f"Basic {basic}"] * 2
    ours = [record for record in caplog.records if record.name.partition(".")[0] in ("sabir", "httpx2", "httpcore2")]
    assert len([record for record in ours if record.getMessage().startswith("HTTP Request: POST http")]) == 2
    assert [record for record in caplog.records if "word" in record.getMessage()] == []


@pytest.mark.parametrize("model", MODELS)
def test_what_is_secret_in_a_base_url_stands_in_no_error(model: str, caplog: pytest.LogCaptureFixture) -> None:
    said = "no entry for bob:hunter2secret with hunter2secret and SIGNATURE99"
    body = json.dumps({"error": {"message": said, "type": "invalid"}}).encode()
    with caplog.at_level(logging.INFO, "sabir"), Server([whole(body, 401)]) as server:
        address = server.url.replace("://", "://bob:hunter2secret@") + "/v1?sig=SIGNATURE99&api-version=2026-01-01"
        with ask(model, address) as llm, pytest.raises(CallError) as caught:
            llm.complete_sync("Hello")

    told = [str(caught.value), *(record.getMessage() for record in caplog.records if record.name == "sabir")]
    assert "no entry for [a secret] with [a secret] and [a secret]" in told[0]
    assert [text for text in told if "hunter2" in text or "SIGNATURE" in text] == []


@pytest.mark.parametrize("model", MODELS)
async def test_the_query_of_a_base_url_stands_behind_the_path(model: str) -> None:
    with Server([whole(b"{}", 400)]) as server, ask(model, f"{server.url}/base?api-version=1&x=%2F") as llm:
        for call in (llm.complete_sync, lambda text: llm.stream_sync(text).reply()):
            with pytest.raises(CallError):
                call("Hello")
        with pytest.raises(CallError):
            await llm.complete("Hello")
        await llm.aclose()

    plain, streamed, awaited = (asked.path for asked in server.requests)
    assert plain == awaited
    assert [each.count("?") for each in (plain, streamed)] == [1, 1]
    for path in (plain, streamed):
        before, query = path.split("?")
        assert before.startswith("/base/")
        assert query.startswith("api-version=1&x=%2F")
    assert ("alt=sse" in streamed) == model.startswith("google")


@pytest.mark.parametrize("kind", [CallError, ValueError])
def test_secrets_are_removed_from_an_error_and_its_causes(kind: type[Exception]) -> None:
    error, cause = kind(f"{KEY} {KEY[:20]}… none"), CallError(f"said {KEY}", code=KEY, request_id=f"r-{KEY}")
    error.__cause__, cause.__cause__ = cause, error
    conceal(error, [KEY, "none"])

    assert str(error) == "[a secret] [a secret]… none"
    assert (str(cause), cause.code, cause.request_id) == ("said [a secret]", "[a secret]", "r-[a secret]")
