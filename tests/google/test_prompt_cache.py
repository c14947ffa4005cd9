"""Caches that Google stores: what is sent to create one, which requests use it, and what they leave out."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sabir
import sabir_google
from sabir.errors import CallError
from sabir.vocabulary.messages import Message
from sabir_google.prompt_cache import CachedPrompt
from sabir_testing.loopback import Server, head

from tests.vendor.support import exchanges

BOOK = sabir.document(b"once " * 9, mime="text/plain")
START = [sabir.system("You know a book."), sabir.user(BOOK)]
TALK = [*START, sabir.assistant("I read it."), sabir.user("Who is it about?")]
STORED = {
    "name": "cachedContents/c1", "model": "models/gemini-2.5-flash", "displayName": "book",
    "createTime": "2026-08-18T07:46:26.244683Z", "expireTime": "2026-08-18T08:46:25.744044275Z",
    "usageMetadata": {"totalTokenCount": 1081},
}  # fmt: skip


@sabir.option
def look_up(word: str) -> str:
    """Looks up a word."""
    return word


def adapter(url: str = "https://generativelanguage.googleapis.com") -> sabir.ModelAdapter:
    return sabir.adapter("google:gemini-2.5-flash", api_key="k", base_url=url)


def cached(talk: list[Message], **how: Any) -> tuple[CachedPrompt, dict[str, Any]]:
    """A cache of this beginning, and the request that created it."""
    with Server([head(), json.dumps(STORED).encode()]) as server:
        rendering = adapter(server.url).render(talk, **how)
        cache = sabir_google.create_cache_sync(rendering, ttl=timedelta(minutes=3), api_key="k", display_name="book")
        (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1beta/cachedContents")
    assert request.headers["x-goog-api-key"] == "k"
    return cache, json.loads(request.body)


def lost(rendering: sabir.Rendering) -> list[str]:
    return [loss.path for loss in rendering.losses if loss.kind == "dropped"]


def test_a_cache_contains_what_the_rendering_sends_and_expires() -> None:
    cache, sent = cached(TALK, options=[look_up])
    body: Any = adapter().render(TALK, options=[look_up]).body

    assert {name: sent[name] for name in ("contents", "systemInstruction", "tools")} == {
        name: body[name] for name in ("contents", "systemInstruction", "tools")
    }
    assert (sent["model"], sent["ttl"], sent["displayName"]) == ("models/gemini-2.5-flash", "180.000000s", "book")
    assert (cache.name, cache.tokens) == ("cachedContents/c1", 1081)
    assert cache.expires_at == datetime(2026, 8, 18, 8, 46, 25, 744044, UTC)


@pytest.mark.parametrize(
    ("talk", "contents"),
    [
        ([*TALK, sabir.assistant("A cat."), sabir.user("Which?")], [("model", "A cat."), ("user", "Which?")]),
        ([*TALK, sabir.user("And what?")], [("user", "And what?")]),
    ],
)
def test_a_request_leaves_out_what_its_cache_contains(talk: list[Message], contents: Any) -> None:
    cache, _ = cached(TALK, options=[look_up])
    rendering = adapter().render(talk, options=[look_up], settings=cache.settings)
    body: Any = rendering.body

    assert body["cachedContent"] == cache.name
    assert [(each["role"], each["parts"][0]["text"]) for each in body["contents"]] == contents
    assert body.keys() & {"systemInstruction", "tools", "toolConfig"} == set()
    assert not lost(rendering)


def test_a_cache_of_a_document_is_used_by_each_question_about_it() -> None:
    cache, _ = cached(START)
    reopened = CachedPrompt.model_validate_json(cache.model_dump_json())
    llm, settings = adapter(), sabir.Settings(vendor={"google": {"cached_content": reopened}})
    for question in ("Who?", "Where?"):
        body: Any = llm.render([*START, sabir.user(question)], settings=settings).body
        assert list(body["contents"]) == [{"role": "user", "parts": [{"text": question}]}]
    plain: Any = llm.render([*START, sabir.user("Who?")]).body
    assert len(plain["contents"][0]["parts"]) == 2


@pytest.mark.parametrize(
    ("model", "talk", "options"),
    [
        ("google:gemini-3-flash-preview", TALK, []),
        ("google:gemini-2.5-flash", [sabir.system("Other."), *TALK[1:], sabir.user("?")], []),
        ("google:gemini-2.5-flash", [*TALK, sabir.user("?")], [look_up]),
        ("google:gemini-2.5-flash", [TALK[0], sabir.user("Other."), sabir.user("?")], []),
        ("google:gemini-2.5-flash", TALK, []),
    ],
)
def test_a_request_that_begins_otherwise_is_sent_whole_with_a_loss(
    model: str, talk: list[Message], options: Any
) -> None:
    cache, _ = cached(TALK)
    llm = sabir.adapter(model, api_key="k")
    rendering = llm.render(talk, options=options, settings=cache.settings)

    assert rendering.body_bytes == llm.render(talk, options=options).body_bytes
    assert lost(rendering) == ["settings.vendor.google.cached_content", "settings.prompt_cache"]


def test_a_cached_start_changes_no_cached_turns() -> None:
    """Law 5, with and without the cache in turn."""
    cache, _ = cached(TALK)
    llm = adapter()
    renderer = llm.new_renderer()
    talk = list(TALK)
    for number in range(4):
        talk += [sabir.assistant(f"{number}."), sabir.user(f"{number}?")]
        for settings in (cache.settings, sabir.Settings()):
            fresh = llm.new_renderer().render(talk, settings=settings)
            assert renderer.render(talk, settings=settings).body_bytes == fresh.body_bytes


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_cache_is_created_and_deleted(asynchronous: bool) -> None:
    async def create_and_delete(rendering: sabir.Rendering) -> CachedPrompt:
        cache = await sabir_google.create_cache(rendering, ttl=180, api_key="k")
        await cache.delete()
        return cache

    with Server([head(), json.dumps(STORED).encode()]) as server:
        rendering = adapter(server.url).render(TALK)
        if asynchronous:
            cache = asyncio.run(create_and_delete(rendering))
        else:
            cache = sabir_google.create_cache_sync(rendering, ttl=180, api_key="k")
            cache.delete_sync()
        sent = [(request.method, request.path) for request in server.requests]

    assert sent == [("POST", "/v1beta/cachedContents"), ("DELETE", f"/v1beta/{cache.name}")]


def test_a_refusal_is_an_error_of_sabir() -> None:
    refusal = {"error": {"code": 400, "message": "Cached content is too small.", "status": "INVALID_ARGUMENT"}}
    with (
        Server([head(400), json.dumps(refusal).encode()]) as server,
        pytest.raises(CallError, match="too small"),
    ):
        sabir_google.create_cache_sync(adapter(server.url).render(TALK), api_key="k")


def test_a_rendering_of_another_provider_is_refused() -> None:
    with pytest.raises(sabir.SettingsInvalid, match="render it for a model of google"):
        sabir_google.create_cache_sync(sabir.adapter("echo:m").render("Hi."))


def test_recorded_caches_are_read() -> None:
    from google.genai.types import CachedContent

    answers = [each for each in exchanges("more/caches") if each.request and "expireTime" in (each.response or {})]
    for exchange in answers:
        with Server([head(), json.dumps(exchange.response).encode()]) as server:
            cache = sabir_google.create_cache_sync(adapter(server.url).render(TALK), api_key="k")
        recorded = CachedContent.model_validate(exchange.response)
        assert (cache.name, cache.expires_at) == (recorded.name, recorded.expire_time), exchange.id
        assert cache.tokens == exchange.response["usageMetadata"]["totalTokenCount"]
    assert len(answers) >= 15
