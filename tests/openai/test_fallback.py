"""A fallback from a provider that is down to one that is not: the real SDK, real answers on loopback ports."""

import asyncio
import json

import pytest
import sabir
from sabir.calling.fallback import fallback
from sabir.vocabulary.reply import Reply
from sabir_testing.loopback import Server, head

ONCE = sabir.Settings(retries=0)
WHOLE = {
    "id": "r1",
    "model": "second",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Here."}, "finish_reason": "stop"}],
}
SSE = head(kind="text/event-stream")


def error(status: int, message: str, code: str | None = None) -> list[bytes]:
    """An answer that reports an error as the vendor does."""
    return [head(status), json.dumps({"error": {"message": message, "type": code, "code": code}}).encode()]


def chunk(text: str, finish: str | None = None) -> bytes:
    """One event of a stream."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "r2", "model": "second", "choices": [choice]}).encode() + b"\n\n"


STREAM = [SSE, chunk("He"), chunk("re.", "stop"), b"data: [DONE]\n\n"]
DOWN = {
    "overloaded": (error(529, "overloaded"), "Overloaded"),
    "unavailable": (error(503, "maintenance"), "Unavailable"),
    "rate": (error(429, "slow down", "rate_limit_exceeded"), "RateLimited"),
    "quota": (error(429, "You exceeded your current quota", "insufficient_quota"), "QuotaExceeded"),
    "hangs up": ([b""], "ConnectionFailed"),
}


@pytest.fixture(params=["complete_sync", "complete", "stream_sync", "stream"])
def surface(request: pytest.FixtureRequest) -> str:
    """Each way to ask."""
    return str(request.param)


def adapter(url: str, model: str) -> sabir.ModelAdapter:
    return sabir.adapter(f"openai.chat:{model}", api_key="sk-test", base_url=f"{url}/v1", settings=ONCE)


def ask(first: str, second: str, surface: str) -> Reply:
    """The reply of a fallback over two servers, asked in one of the four ways."""

    async def wait() -> Reply:
        async with adapter(first, "first") as one, adapter(second, "second") as two:
            llm = fallback(one, two)
            if surface == "complete":
                return await llm.complete("Where?")
            async with llm.stream("Where?") as stream:
                assert "".join([text async for text in stream.text]) == "Here."
                return await stream.reply()

    if not surface.endswith("_sync"):
        return asyncio.run(wait())
    with adapter(first, "first") as one, adapter(second, "second") as two:
        llm = fallback(one, two)
        if surface == "complete_sync":
            return llm.complete_sync("Where?")
        with llm.stream_sync("Where?") as stream:
            assert "".join(stream.text) == "Here."
            return stream.reply()


def answer(surface: str) -> list[bytes]:
    return STREAM if surface.startswith("stream") else [head(), json.dumps(WHOLE).encode()]


@pytest.mark.parametrize("case", DOWN)
def test_the_conversation_goes_on_with_the_next(case: str, surface: str) -> None:
    """Both get the same question under their own model's name; the reply says what the first said."""
    script, kind = DOWN[case]
    with Server(script) as first, Server(answer(surface)) as second:
        reply = ask(first.url, second.url, surface)

    assert (reply.text, [(str(each.target), each.error) for each in reply.passed]) == (
        "Here.",
        [("openai:first", kind)],
    )
    bodies = [json.loads(server.asked[0].body) for server in (first, second)]
    assert [body["model"] for body in bodies] == ["first", "second"]
    assert bodies[0]["messages"] == bodies[1]["messages"] == [{"role": "user", "content": "Where?"}]
    assert [len(first.asked), len(second.asked)] == [1, 1]


def test_an_answer_that_is_none_is_passed_over(surface: str) -> None:
    """A proxy's page, with a status that says that all is well."""
    with Server([head(kind="text/html"), b"<html>busy</html>"]) as first, Server(answer(surface)) as second:
        reply = ask(first.url, second.url, surface)

    kind = "StreamBroken" if surface.startswith("stream") else "ResponseInvalid"
    assert (reply.text, [each.error for each in reply.passed]) == ("Here.", [kind])


@pytest.mark.parametrize("surface", ["stream_sync", "stream"])
def test_a_stream_that_breaks_before_its_first_event_is_passed_over(surface: str) -> None:
    """The first sends a head and hangs up; nothing of it is seen."""
    with Server([SSE, b": \n\n"]) as first, Server(STREAM) as second:
        reply = ask(first.url, second.url, surface)

    assert (reply.text, [each.target.model for each in reply.passed]) == ("Here.", ["first"])
