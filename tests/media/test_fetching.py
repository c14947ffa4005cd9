"""An adapter that fetches for another: what is fetched, when, what is kept of it, and what is told."""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sabir
from sabir import Adapter, CallError, ModelInfo, RenderingRefused, Reply, Settings
from sabir.discovery import default_registry
from sabir.errors import MediaRefused, WrongWord
from sabir_media import FetchedMedia, FetchingAdapter, fetching

from tests.core.support import WORDS, Loopback, Tiny, failing, streamed, whole

SKY = "https://example.org/sky.png"
THREADS = 8
ONCE = Settings(retries=0)


class Fetching:
    """A fetcher that counts, and serves one pixel for everything but what it must not fetch."""

    def __init__(self) -> None:
        self.fetched: list[str] = []

    def fetch_sync(self, url: str) -> FetchedMedia:
        self.fetched.append(url)
        if "private" in url:
            raise MediaRefused(f"{url} is private; it was not fetched")
        mime = "text/html" if "page" in url else "image/png"
        return FetchedMedia(data=b"pixel", mime=mime, url=url)

    async def fetch(self, url: str) -> FetchedMedia:
        return self.fetch_sync(url)


@pytest.fixture
def tiny() -> Iterator[Tiny]:
    """The tiny provider, which takes pictures by their bytes alone."""
    provider = Tiny(counts=True)
    default_registry.register("tiny", provider)
    yield provider
    default_registry.unregister("tiny")


def behave(path: str, body: Any) -> Any:
    if path == "/count":
        return whole("", tokens=7)
    return streamed(*WORDS) if path == "/stream" else whole("seen")


def ask(llm: FetchingAdapter, surface: str, chat: Any, **how: Any) -> Any:
    async def run() -> Any:
        match surface:
            case "complete":
                return await llm.complete(chat, **how)
            case "complete_sync":
                return llm.complete_sync(chat, **how)
            case "stream":
                return await llm.stream(chat, **how).reply()
            case "stream_sync":
                return llm.stream_sync(chat, **how).reply()
            case "count":
                return await llm.count_tokens(chat, **how)
        return llm.count_tokens_sync(chat, **how)

    async def closed() -> Any:
        async with llm:
            return await run()

    return asyncio.run(closed())


REPLIES = ("complete", "complete_sync", "stream", "stream_sync")
SURFACES = (*REPLIES, "count", "count_sync")


def test_nothing_is_fetched_without_it(tiny: Tiny) -> None:
    rendering = sabir.adapter("tiny:m").render(sabir.user("look", sabir.image(SKY)))

    assert [loss.kind for loss in rendering.losses] == ["downgraded"]
    assert "images" not in rendering.body["turns"][0]
    with pytest.raises(WrongWord, match=r"no argument `fetcher`; wrap the adapter: sabir_media.fetching"):
        sabir.adapter("tiny:m", fetcher=Fetching())  # type: ignore[arg-type]


@pytest.mark.parametrize("surface", SURFACES)
def test_media_are_fetched_for_a_target_that_takes_only_bytes(tiny: Tiny, surface: str) -> None:
    fetcher = Fetching()
    chat = [sabir.user("look", sabir.image(SKY), sabir.image(SKY), sabir.audio("https://example.org/a.wav"))]
    options: list[Any] = [sabir.Option.from_schema("f", "", {})]

    with Loopback(behave) as server:
        llm = fetching(sabir.adapter("tiny:m", base_url=server.url), fetcher)
        results = [ask(llm, surface, chat, options=iter(options)) for _ in range(2)]

    assert fetcher.fetched == [SKY]
    assert chat[0].parts[1].url == SKY  # type: ignore[union-attr]
    for received in server.received:
        assert json.loads(received.body)["turns"][0]["images"] == ["data:image/png;base64,cGl4ZWw="] * 2
    for result in results:
        if isinstance(result, Reply):
            assert [(loss.kind, loss.path) for loss in result.losses] == [
                ("rewritten", "parts[1]"),
                ("rewritten", "parts[2]"),
                ("downgraded", "parts[3]"),
            ]
            assert {chat[0].id} == {loss.message_id for loss in result.losses}


def test_fetched_messages_are_cached_while_the_original_exists(tiny: Tiny) -> None:
    """The same message gives the same derived one, so that kept prefixes hold; nothing outlives the message."""
    fetcher = Fetching()
    llm = fetching(sabir.adapter("tiny:m"), fetcher)
    chat = [sabir.user("look", sabir.image(SKY)), sabir.user("plain")]

    first, again = llm.fetch_media_sync(chat), asyncio.run(llm.fetch_media(chat))

    assert [one is other for one, other in zip(first, again, strict=True)] == [True, True]
    assert (chat[0].id, chat[1]) == (first[0].id, first[1])
    assert fetcher.fetched == [SKY]
    chat.clear()
    del first, again
    assert llm._fetched_messages == {}


def test_threads_that_fetch_the_same_medium_share_what_was_derived(tiny: Tiny) -> None:
    """Two may fetch at once, but only one message comes of it, so that kept prefixes hold for both."""
    barrier = threading.Barrier(THREADS)

    class Together(Fetching):
        def fetch_sync(self, url: str) -> FetchedMedia:
            barrier.wait(30)
            return super().fetch_sync(url)

    llm = fetching(sabir.adapter("tiny:m"), Together())
    chat = [sabir.user("look", sabir.image(SKY))]

    with ThreadPoolExecutor(THREADS) as pool:
        derived = list(pool.map(lambda _: llm.fetch_media_sync(chat)[0], range(THREADS)))

    assert len({id(message) for message in derived}) == 1


@pytest.mark.parametrize("mime", ["image/svg+xml", "model/gltf-binary"])
def test_a_medium_that_no_request_may_contain_is_not_fetched(tiny: Tiny, mime: str) -> None:
    fetcher = Fetching()
    medium = sabir.image("https://example.org/a", mime=mime)

    messages = fetching(sabir.adapter("tiny:m"), fetcher).fetch_media_sync([sabir.user("Look:", medium)])

    assert messages[0].parts[1] == medium
    assert fetcher.fetched == []


def test_rendering_never_fetches(tiny: Tiny) -> None:
    """Law 6: it is pure; who wants to approve fetched media renders and sends what `fetch_media` gave."""
    fetcher = Fetching()
    chat = [sabir.user("look", sabir.image(SKY))]
    with Loopback(behave) as server, fetching(sabir.adapter("tiny:m", base_url=server.url), fetcher) as llm:
        assert [loss.kind for loss in llm.render(chat).losses] == ["downgraded"]
        assert fetcher.fetched == []
        approved = llm.render(llm.fetch_media_sync(chat))
        assert approved.losses == ()
        assert llm.send_sync(approved).text == "seen"
        assert llm.stream_sync(approved).reply().text == ask(llm, "stream", approved).text == "Take one."

        async def send() -> Reply:
            async with llm:
                return await llm.send(approved)

        assert asyncio.run(send()).text == "seen"
        assert fetcher.fetched == [SKY]


@pytest.mark.parametrize("surface", REPLIES)
def test_what_cannot_be_fetched_and_what_strict_forbids_stops_the_call(tiny: Tiny, surface: str) -> None:
    llm = fetching(sabir.adapter("tiny:m"), Fetching())
    picture, sound = sabir.image(SKY), sabir.audio("https://example.org/a.wav")

    for url, reason in (("https://private/x.png", "private"), ("https://a.org/page", "text/html")):
        with pytest.raises(MediaRefused, match=reason):
            ask(llm, surface, sabir.user(sabir.image(url)))
    with pytest.raises(RenderingRefused, match=r"tiny:m cannot accept everything: rewritten: .*was downloaded"):
        ask(llm, surface, sabir.user(picture), strict=["rewritten"])
    with pytest.raises(RenderingRefused, match="does not accept audio"):
        ask(llm, surface, sabir.user(picture, sound), strict=True)
    assert dict(tiny.made) == {}


@pytest.mark.parametrize("surface", REPLIES)
def test_an_error_tells_what_was_rewritten_for_its_request(tiny: Tiny, surface: str) -> None:
    answers = {"/talk": failing(400), "/stream": streamed(*WORDS[:3])}
    with Loopback(lambda path, _: answers[path]) as server:
        llm = fetching(sabir.adapter("tiny:m", base_url=server.url, settings=ONCE), Fetching())
        with pytest.raises(CallError) as caught:
            ask(llm, surface, sabir.user(sabir.image(SKY)))

    assert [loss.kind for loss in caught.value.losses][:1] == ["rewritten"]
    if surface.startswith("stream"):
        assert [loss.kind for loss in caught.value.partial.losses] == ["rewritten"]  # type: ignore[attr-defined]


def test_media_that_a_model_does_not_read_are_not_fetched(tiny: Tiny) -> None:
    fetcher = Fetching()
    info = ModelInfo(prefix="m", modalities=("audio",))
    blind = fetching(sabir.adapter("tiny:m", model_info=info, settings=Settings(unsupported_media="drop")), fetcher)
    seeing = fetching(sabir.adapter("tiny:m"), fetcher)

    blind.fetch_media_sync(sabir.user(sabir.image(SKY)))
    seeing.fetch_media_sync(sabir.user(sabir.video("https://example.org/v.mp4"), sabir.document("https://a.org/x")))
    assert fetcher.fetched == []
    assert repr(seeing).startswith("fetching(ModelAdapter('tiny:m'")
    assert (seeing.target, seeing.speaks_as) == (sabir.adapter("tiny:m").target, "llm")


def test_it_is_a_member_of_a_fallback_and_may_stand_around_one(tiny: Tiny) -> None:
    chat = sabir.user(sabir.image(SKY))
    with Loopback(lambda *_: failing(500)) as down, Loopback(behave) as up:
        first, second = (
            sabir.adapter("tiny:m", base_url=each.url, settings=Settings(retries=0)) for each in (down, up)
        )
        llm: Adapter = sabir.fallback(fetching(first, Fetching()), second)
        reply = llm.complete_sync(chat)
        around = fetching(sabir.fallback(first, second), Fetching()).complete_sync(chat)
        streamed_reply = fetching(sabir.fallback(first, second), Fetching()).stream_sync(chat).reply()
        first.close()
        second.close()

    assert [loss.kind for loss in reply.failed_members[0].losses] == ["rewritten"]
    assert [loss.kind for loss in reply.losses] == ["downgraded"]
    for each in (around, streamed_reply):
        assert ([loss.kind for loss in each.losses], len(each.failed_members)) == (["rewritten"], 1)


def test_fetched_media_come_back_from_their_json() -> None:
    fetched = FetchedMedia(data=bytes(range(256)), mime="image/png", url=SKY)

    assert FetchedMedia.model_validate_json(fetched.model_dump_json()) == fetched
