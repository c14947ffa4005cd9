"""A cached reply is a reply to the same request, and no request is sent for it."""

import asyncio
import os
import stat
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest
import sabir
from sabir_calls import CachedAdapter, CacheError, MemoryResponses, ResponseStore, SQLiteResponses, cached_responses
from sabir_testing import ScriptedAdapter, always, calls, cut_off, reply
from sabir_testing.scripted.answers import Scriptable

from tests.calls.limits.test_limited import WAYS, call

USAGE = sabir.Usage(input_tokens=3, output_tokens=4)


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ResponseStore]:
    if request.param == "memory":
        yield MemoryResponses()
    else:
        responses = SQLiteResponses(tmp_path / "replies.db")
        yield responses
        responses.close()


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_a_second_equal_request_is_not_sent(store: ResponseStore, first: str, second: str) -> None:
    script = ScriptedAdapter(reply("It rains.", usage=USAGE), model="anthropic:claude-sonnet-4-5")
    llm = cached_responses(script, store)
    fresh, cached = call(llm, first), call(llm, second)
    assert len(script.sent) == 1
    assert (fresh.from_cache, cached.from_cache) == (False, True)
    assert fresh.usage == USAGE
    assert cached.usage.total_tokens == 0
    same = {"usage", "attempts", "messages"}
    assert cached.model_dump(exclude=same) == fresh.model_dump(exclude=same)
    assert [each.parts for each in cached.messages] == [each.parts for each in fresh.messages]
    assert {each.id for each in cached.messages}.isdisjoint(each.id for each in fresh.messages)


def test_a_cached_stream_replays_events_that_fold_to_the_same_reply(store: ResponseStore) -> None:
    answer = reply("Let me see.", calls(weather={"city": "Rome"}), usage=USAGE)
    llm = cached_responses(ScriptedAdapter(answer), store)
    kinds = [[event.type for event in llm.stream_sync("Umbrella?")] for _ in range(2)]
    assert [kind for kind, _ in groupby(kinds[0])] == [kind for kind, _ in groupby(kinds[1])]
    with llm.stream_sync("Umbrella?") as stream:
        assert "".join(stream.text) == "Let me see."
        assert [each.call.option_name for each in stream.reply().option_calls] == ["weather"]
        assert stream.reply().from_cache


def test_requests_that_differ_share_no_reply(store: ResponseStore) -> None:
    def weather(city: str) -> str:
        """Current weather."""
        return city

    adapters = sabir.adapter("echo:a"), sabir.adapter("echo:b"), sabir.adapter("echo:a", speaks_as="other")
    llms = [cached_responses(each, store) for each in adapters]
    dotted = sabir.option(name="my.weather")(weather)
    under = sabir.option(name="my_weather")(weather)
    claude = CachedAdapter(sabir.adapter("anthropic:claude-sonnet-4-5", api_key="k"), store)
    keys = [claude._entry("Hi", {"options": [each]}).key for each in (dotted, under)]
    assert keys[0] != keys[1]
    urls = [
        CachedAdapter(sabir.adapter("openai:m", api_key="k", base_url=f"https://{host}/v1"), store)._entry("Hi", {}).key
        for host in ("a.example", "b.example", "a.example")
    ]
    assert urls[0] == urls[2] != urls[1]
    for llm in llms:
        assert not llm.complete_sync("Hello!").from_cache
    assert not llms[0].complete_sync("Hello.").from_cache
    assert all(llm.complete_sync("Hello!").from_cache for llm in llms)


@pytest.mark.parametrize("kind", ["cut off", "refused", "failed", "closed early"])
def test_an_incomplete_reply_is_not_stored(store: ResponseStore, kind: str) -> None:
    incomplete: dict[str, Scriptable] = {
        "cut off": cut_off("It ra"),
        "refused": reply("No.", finish_reason="content_filter"),
        "failed": sabir.errors.InvalidRequest("no"),
        "closed early": reply("One two three."),
    }
    llm = cached_responses(ScriptedAdapter(incomplete[kind], "It rains."), store)
    if kind == "closed early":
        with llm.stream_sync("Hello!") as stream:
            next(iter(stream))
    else:
        try:
            llm.complete_sync("Hello!")
        except sabir.errors.InvalidRequest:
            assert kind == "failed"
    assert llm.complete_sync("Hello!").text == "It rains."
    assert llm.complete_sync("Hello!").from_cache


def test_the_losses_of_a_cached_reply_name_the_messages_of_the_new_request(store: ResponseStore) -> None:
    llm = cached_responses(ScriptedAdapter("A sound.", model="anthropic:claude-sonnet-4-5"), store)
    losses = []
    for _ in range(2):
        question = sabir.user("What is this?", sabir.audio(b"RIFF\x24\x00\x00\x00WAVEfmt "))
        answer = llm.complete_sync([question])
        losses.append(
            [(loss.kind, loss.message_id == question.id) for loss in answer.losses if loss.path == "parts[1]"]
        )
    assert losses[0] == losses[1] == [("downgraded", True)]


def test_a_file_is_readable_by_its_owner_alone_and_by_later_processes(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    cached_responses(ScriptedAdapter("It rains."), path).complete_sync("Hello!")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert cached_responses(ScriptedAdapter(), str(path)).complete_sync("Hello!").text == "It rains."


def test_old_replies_and_the_least_used_are_deleted(store: ResponseStore, tmp_path: Path) -> None:
    for name in ("memory", "file"):
        made = MemoryResponses(max_bytes=25) if name == "memory" else SQLiteResponses(tmp_path / "s.db", max_bytes=25)
        for key in "abc":
            made.put(key, b"0123456789")
            made.get("a")
        assert [made.get(key) for key in "abc"] == [b"0123456789", None, b"0123456789"], name
        made.put("d", bytes(26))
        assert (made.get("d"), made.get("a")) == (None, b"0123456789"), name
        short = MemoryResponses(max_age=1e-9) if name == "memory" else SQLiteResponses(tmp_path / "t.db", max_age=1e-9)
        short.put("a", b"1")
        assert short.get("a") is None, name


def test_a_later_reply_replaces_an_earlier_one(store: ResponseStore) -> None:
    for reply_bytes in (b"first", b"second"):
        store.put("a", reply_bytes)
    assert store.get("a") == b"second"
    store.delete("a")
    assert store.get("a") is None


def test_forget_and_clear_delete_replies(store: ResponseStore) -> None:
    llm = cached_responses(ScriptedAdapter(always("It rains.")), store)
    deletions: list[Callable[[], None]] = [lambda: llm.forget("Hello!"), store.clear]
    for delete in deletions:
        llm.complete_sync("Hello!")
        assert llm.complete_sync("Hello!").from_cache
        delete()
        assert not llm.complete_sync("Hello!").from_cache
        store.clear()


def test_a_file_that_cannot_be_used_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is not a database " * 100)
    for path in (tmp_path / "missing" / "replies.db", tmp_path / "text"):
        with pytest.raises(CacheError, match="cannot be used as a cache"):
            cached_responses(ScriptedAdapter(), path)


def test_a_budget_does_not_count_a_cached_reply(store: ResponseStore) -> None:
    from sabir_session import Budget, with_budget

    llm = with_budget(cached_responses(ScriptedAdapter(reply("Hi.", usage=USAGE)), store), Budget(tokens=8))
    assert [llm.complete_sync("Hello!").text for _ in range(4)] == ["Hi."] * 4


def test_concurrent_calls_share_a_file(tmp_path: Path) -> None:
    llm = cached_responses(ScriptedAdapter(always("It rains.")), tmp_path / "replies.db")

    async def run() -> list[sabir.Reply]:
        return await asyncio.gather(*(llm.complete(f"Hello {number % 5}!") for number in range(50)))

    assert {each.text for each in asyncio.run(run())} == {"It rains."}
