"""The adapter that users hold: what it takes, what it refuses, what it sends, and what it tells."""

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
import sabir
from sabir import discovery as registry
from sabir.calling.adapter import ModelAdapter
from sabir.calling.drive import redact
from sabir.contract.provider import TokenCount
from sabir.errors import CallError, RenderingRefused, SettingsInvalid, WrongWord
from sabir.vocabulary.messages import RUNTIME
from sabir.vocabulary.settings import Settings

from tests.core.support import MOST_AT_ONCE, WORDS, Behaviour, Loopback, Tiny, failing, streamed, whole

SKY = "https://example.org/sky.png"


@sabir.option
def weather(city: str) -> str:
    """Current weather in a city."""
    return "18 °C, rain"


@contextmanager
def serving(behave: Behaviour, **given: Any) -> Iterator[tuple[ModelAdapter, Loopback]]:
    """A server and an adapter that calls it."""
    with Loopback(behave) as server, sabir.adapter("tiny:m", base_url=server.url, **given) as llm:
        yield llm, server


def echo(path: str, body: Any) -> Any:
    return streamed(*WORDS) if path == "/stream" else whole(body["turns"][-1]["text"])


def test_secrets_stay_out_of_sight(tiny: Tiny) -> None:
    llm = sabir.adapter("tiny:m", api_key="sk-secret", base_url="https://user:sk-secret@host:8/v1?key=sk-secret#x")

    assert llm.target.endpoint == "https://host:8/v1"
    assert repr(llm) == "ModelAdapter('tiny:m', dialect='tiny.talk', endpoint='https://host:8/v1', speaks_as='llm')"
    rendering = llm.render("hi")
    for shown in (repr(llm), repr(llm.target), repr(rendering), rendering.model_dump_json()):
        assert "sk-secret" not in shown


def test_rendering_needs_no_key_and_no_network(tiny: Tiny) -> None:
    tiny._key = None

    rendering = sabir.adapter("tiny:m").render("Umbrella today?", options=[weather], settings=Settings(seed=1))

    assert (rendering.path, rendering.streaming, dict(tiny.made)) == ("/talk", False, {})
    assert rendering.body == {
        "model": "m",
        "options": ["weather"],
        "settings": {"seed": 1},
        "turns": [{"side": "user", "text": "Umbrella today?"}],
    }


def test_what_an_extra_body_replaces_is_a_loss(tiny: Tiny) -> None:
    """A loss names each value that is replaced by another; the other fields of an object stay."""
    llm = sabir.adapter("tiny:m")
    extra = {"settings": {"seed": 2, "top_k": 3}, "model": "m", "x": 1}
    rendering = llm.render("Hi.", settings=Settings(seed=1, temperature=0.5, extra_body=extra))

    assert [(loss.kind, loss.path, loss.reason) for loss in rendering.losses] == [
        ("dropped", "extra_body.settings.seed", "extra_body replaced the value from the settings and options")
    ]
    assert rendering.body["settings"] == {"temperature": 0.5, "seed": 2, "top_k": 3}


def test_what_was_approved_is_what_is_sent(tiny: Tiny) -> None:
    with serving(echo) as (llm, server):
        rendering = llm.render("hi", settings=Settings(extra_headers={"x-team": "a"}))
        llm.send_sync(rendering)
        llm.complete_sync("hi", settings=Settings(extra_headers={"x-team": "a"}))

        for received in server.received:
            assert (rendering.body_bytes, "/talk", "a") == (received.body, received.path, received.headers["x-team"])


def test_a_rendering_is_sent_only_where_it_was_made_for(tiny: Tiny) -> None:
    rendering = sabir.adapter("tiny:m").render("hi")

    with pytest.raises(SettingsInvalid, match=r"the rendering is for tiny:m .* this adapter is tiny:n"):
        sabir.adapter("tiny:n").send_sync(rendering)


def test_a_rendering_for_a_stream_is_streamed_and_folded(tiny: Tiny) -> None:
    with serving(echo) as (llm, server):
        rendering = llm.render("hi").for_stream()

        assert llm.send_sync(rendering).text == "Take one."
        assert llm.stream_sync(llm.render("hi")).reply().text == "Take one."
        assert [rendering.body_bytes] * 2 == [received.body for received in server.received]
        assert True is json.loads(rendering.body_bytes)["stream"]
        with pytest.raises(SettingsInvalid, match="not accept settings together with a rendering"):
            llm.stream_sync(rendering, settings=Settings())


def test_an_answer_that_may_take_too_long_is_streamed_whoever_asks(tiny: Tiny) -> None:
    with serving(echo, settings=Settings(max_output_tokens=MOST_AT_ONCE + 1)) as (llm, server):
        rendering = llm.render("hi")

        assert (rendering.streaming, rendering.path, rendering.body["stream"]) == (True, "/stream", True)
        assert rendering.for_stream() is rendering
        assert [llm.complete_sync("hi").text, llm.send_sync(rendering).text] == ["Take one."] * 2
        assert llm.stream_sync("hi").reply().text == "Take one."
        assert {received.body for received in server.received} == {rendering.body_bytes}
        short = llm.render("hi", settings=Settings(max_output_tokens=MOST_AT_ONCE))
        own_word = llm.render("hi", settings=Settings(extra_body={"stream": False}))
        assert (short.streaming, own_word.streaming, own_word.path) == (False, False, "/talk")


def test_settings_of_a_call_are_laid_over_the_adapters(tiny: Tiny) -> None:
    """What the call sets wins; what it leaves out is the adapter's."""
    llm = sabir.adapter("tiny:m", settings=Settings(seed=1, temperature=0.5))

    rendering = llm.render("hi", settings=Settings(seed=2))

    assert rendering.body["settings"] == {"seed": 2, "temperature": 0.5}


def test_settings_must_be_settings(tiny: Tiny) -> None:
    for ask in (sabir.adapter("tiny:m").render, sabir.dialect("tiny.talk").render):
        with pytest.raises(SettingsInvalid, match=r"settings is of type dict; write sabir\.Settings"):
            ask("hi", settings=cast(Any, {"max_tokens": 1}))


@pytest.mark.parametrize(("adapter_strict", "call_strict"), [(True, None), (False, True), (False, {"downgraded"})])
def test_strict_refuses_before_anything_is_sent(tiny: Tiny, adapter_strict: bool, call_strict: Any) -> None:
    """The call's word counts where it has one, False too, else the adapter's; the error lists the losses."""
    llm = sabir.adapter("tiny:m", strict=adapter_strict)
    chat = [sabir.user("look", sabir.image(SKY))]

    for ask in (llm.render, llm.complete_sync, llm.stream_sync):
        with pytest.raises(RenderingRefused, match="tiny:m cannot accept everything") as caught:
            ask(chat, strict=call_strict)
        assert [loss.kind for loss in caught.value.losses] == ["downgraded"]
    assert len(llm.render(chat, strict=False).losses) == 1
    assert dict(tiny.made) == {}
    with pytest.raises(SettingsInvalid, match="strict= contains lost"):
        sabir.adapter("tiny:m", strict=cast(Any, {"lost"}))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"tools": []}, "options="),
        ({"functions": []}, "options="),
        ({"functions_call": "auto"}, "option_choice"),
        ({"tool_choice": "auto"}, "option_choice"),
        ({"max_tokens": 1}, "max_output_tokens"),
        ({"temperature": 1}, r"settings=sabir.Settings\(temperature"),
        ({"temprature": 1}, r"did you mean settings=sabir.Settings\(temperature"),
        ({"stream": True}, "stream_sync"),
        ({"system": "x"}, "sabir.system"),
        ({"model": "x"}, "provider:model"),
        ({"option": 1}, "did you mean `options`"),
        ({"zzz": 1}, "its arguments are options, settings, strict"),
    ],
)
def test_another_librarys_word_names_the_right_one(tiny: Tiny, wrong: dict[str, Any], right: str) -> None:
    llm = sabir.adapter("tiny:m")
    for method in (llm.render, llm.complete_sync, llm.stream_sync, llm.stream, llm.count_tokens_sync):
        with pytest.raises(WrongWord, match=f"{method.__name__}.. has no argument `{next(iter(wrong))}`.*{right}"):
            method("hi", **cast(Any, wrong))
    with pytest.raises(WrongWord, match=right):
        asyncio.run(llm.complete("hi", **cast(Any, wrong)))
    assert dict(tiny.made) == {}


def test_the_factory_and_a_dialect_name_the_right_words_too(tiny: Tiny) -> None:
    for wrong, right in (("api_base", "base_url="), ("temperature", "settings="), ("modle", "did you mean `model`")):
        with pytest.raises(WrongWord, match=f"adapter.. has no argument `{wrong}`.*{right}"):
            sabir.adapter("tiny:m", **cast(Any, {wrong: 1}))
    with pytest.raises(WrongWord, match=r"render\(\) has no argument `tools`; pass options="):
        sabir.dialect("tiny.talk").render("hi", **cast(Any, {"tools": []}))


def test_no_adapter_speaks_as_the_policy_of_what_nobody_chose(tiny: Tiny) -> None:
    """PJ-06: nor is anything decoded as its."""
    refused = [
        lambda: sabir.adapter("tiny:m", speaks_as=RUNTIME),
        lambda: sabir.fallback("tiny:m", "tiny:n", speaks_as=RUNTIME),
        lambda: sabir.dialect("tiny.talk").render("hi", speaks_as=RUNTIME),
        lambda: sabir.dialect("tiny.talk").decode(b"{}", policy=RUNTIME),
        lambda: sabir.dialect("tiny.talk").decode_history(b"{}", policy=RUNTIME),
    ]
    for make in refused:
        with pytest.raises(SettingsInvalid, match=r"^'runtime' is reserved .*; use another name for speaks_as="):
            make()


def test_an_adapter_speaks_as_its_policy(tiny: Tiny) -> None:
    with serving(echo, speaks_as="planner") as (llm, server):
        reply = llm.complete_sync("hi")
        llm.complete_sync([sabir.user("hi"), *reply.messages, sabir.user("more")])

        assert [(each.policy, each.role_hint_for_llm) for each in reply.messages] == [("planner", None)]
        assert [turn["side"] for turn in json.loads(server.received[1].body)["turns"]] == ["user", "assistant", "user"]


def test_option_names_come_back_as_they_were_given(tiny: Tiny) -> None:
    option = sabir.Option.from_schema("weather in city", "d", {"type": "object"})
    call = {"id": "c1", "arguments": "{}"}

    def choose(path: str, body: Any) -> Any:
        named = {**call, "name": body["options"][0]}
        events = ({"open": "r"}, {"call": named}, {"finish": "option_calls"})
        return streamed(*events) if path == "/stream" else whole("", calls=[named])

    with serving(choose) as (llm, _):
        for reply in (llm.complete_sync("hi", options=[option]), llm.stream_sync("hi", options=[option]).reply()):
            assert [each.call.option_name for each in reply.option_calls if each.call] == ["weather in city"]


def test_tokens_are_estimated_where_the_vendor_cannot_count(tiny: Tiny) -> None:
    llm = sabir.adapter("tiny:m")
    size = len(llm.render("Grüße").body_bytes)

    expected = TokenCount(input_tokens=-(-size // 4), estimated=True)

    assert expected == llm.count_tokens_sync("Grüße") == asyncio.run(llm.count_tokens("Grüße"))
    assert dict(tiny.made) == {}


async def test_tokens_are_counted_by_the_vendor_where_it_can() -> None:
    registry.register("tiny", Tiny(counts=True))
    answers = [b'{"tokens": 5}', b'{"tokens": 6}', b"<html>"]
    try:
        with serving(lambda path, body: type(whole(""))([answers.pop(0)])) as (llm, server):
            assert TokenCount(input_tokens=5, estimated=False) == llm.count_tokens_sync("hi")
            assert TokenCount(input_tokens=6, estimated=False) == await llm.count_tokens("hi")
            with pytest.raises(CallError):
                await llm.count_tokens("hi")
            await llm.aclose()

            assert {"/count"} == {received.path for received in server.received}
            assert json.loads(server.received[0].body) == {"turns": [{"side": "user", "text": "hi"}]}
    finally:
        registry.unregister("tiny")


def test_the_client_is_made_once_at_the_first_send(tiny: Tiny) -> None:
    with serving(echo) as (llm, _):
        assert dict(tiny.made) == {}
        llm.complete_sync("a")
        llm.complete_sync("b")
        assert dict(tiny.made) == {"connection": 1, "client": 1}
        llm.close()
        llm.close()
        llm.complete_sync("c")
        assert tiny.made["connection"] == 2


async def test_an_adapter_closes_with_its_block(tiny: Tiny) -> None:
    with Loopback(echo) as server:
        async with sabir.adapter("tiny:m", base_url=server.url) as llm:
            assert (await llm.complete("hi")).text == "hi"
            [client] = llm._connector.connection.made  # type: ignore[union-attr]

        assert client.is_closed
        async with sabir.adapter("tiny:m"):
            pass


@pytest.mark.parametrize("call", ["complete_sync", "stream_sync", "failing"])
def test_a_call_with_losses_is_one_warning(tiny: Tiny, caplog: pytest.LogCaptureFixture, call: str) -> None:
    behave = (lambda *_: failing(400)) if call == "failing" else echo
    with serving(behave) as (llm, _), caplog.at_level(logging.WARNING, "sabir"):
        for chat in ("plain", sabir.user("look", sabir.image(SKY), sabir.audio("https://example.org/a.wav"))):
            try:
                llm.stream_sync(chat).reply() if call == "stream_sync" else llm.complete_sync(chat)
            except CallError:
                assert call == "failing"

    assert [record.getMessage()[:15] for record in caplog.records] == ["tiny:m lost 2: "]


def test_what_the_answer_lost_is_in_the_warning(tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
    foreign = sabir.Origin(provider="acme", dialect="acme.talk", model="m")
    said = sabir.TextPart(text="So it is.", state={"signature": "c2ln"})
    told = sabir.Message(policy="llm", origin=foreign, payload=sabir.PartsPayload(parts=(said,)))
    answers = [whole("half \ud83d"), whole("Sure.")]
    with serving(lambda *_: answers.pop(0)) as (llm, _), caplog.at_level(logging.INFO, "sabir"):
        replies = [llm.complete_sync("plain"), llm.complete_sync([sabir.user("Is it?"), told, sabir.user("Sure?")])]

    assert [[loss.kind for loss in reply.losses] for reply in replies] == [["rewritten"], ["withheld"]]
    assert [(record.levelname, record.getMessage()[:15]) for record in caplog.records] == [
        ("WARNING", "tiny:m lost 1: "), ("INFO", "tiny:m lost 1: "),
    ]  # fmt: skip


def test_bodies_are_logged_at_debug_only_and_redacted(tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
    image = sabir.image(b"\x89PNG\r\n\x1a\n" + bytes(3000))
    with serving(echo) as (llm, _):
        for level in (logging.INFO, logging.DEBUG):
            with caplog.at_level(level, "sabir"):
                llm.complete_sync(sabir.user("look", image), settings=Settings(extra_headers={"x-team": "sesame"}))
            logged = [record.getMessage() for record in caplog.records if record.name == "sabir"]
            assert (level == logging.DEBUG) == any("look" in line for line in logged)

    assert any("data:image/png;base64,iVBORw0KGgo" in line and "(4012 characters)" in line for line in logged)
    assert all(len(line) < 3000 and "tiny-secret" not in line and "sesame" not in line for line in logged)


def test_the_library_logs_nothing_unasked() -> None:
    """Its logger has a NullHandler, so that nothing reaches a program's standard error."""
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("sabir").handlers)


def test_only_long_base64_is_cut() -> None:
    assert redact(b'{"id": "call_123", "data": "AAAA"}') == '{"id": "call_123", "data": "AAAA"}'
    assert redact(b"A" * 300) == "A" * 20 + "…(300 characters)"


@pytest.mark.parametrize("name", ["target", "provider", "access", "settings", "model", "dialect", "speaks_as"])
def test_what_an_adapter_is_cannot_be_set(tiny: Tiny, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(sabir.adapter("tiny:m"), name, "x")


async def test_the_waiting_surface_works_inside_a_running_loop(tiny: Tiny) -> None:
    with serving(echo) as (llm, _):
        assert llm.complete_sync("hi").text == "hi"
        with llm.stream_sync("hi") as stream:
            assert "".join(stream.text) == "Take one."
        assert llm.count_tokens_sync("hi").estimated


async def test_leaving_a_stream_closes_its_connection(tiny: Tiny) -> None:
    waiting = streamed(*WORDS[:3], then="wait")
    with serving(lambda *_: waiting) as (llm, server):
        async with llm.stream("hi") as stream:
            async for _ in stream.text:
                break
        assert await asyncio.to_thread(server.was_left)
        with llm.stream_sync("hi") as stream_sync:
            next(stream_sync.text)
        assert await asyncio.to_thread(server.was_left)
        await llm.aclose()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(
            (name, "control character")
            for name in ("tiny:m\nx", "tiny:m\x1b[31m", "tiny:\u2028m", "ti\tny:m", "tiny:m\x00")
        ),
        *((name, "a model's name must be a string, not of type") for name in (None, 3, b"tiny:m")),
    ],
)
def test_a_model_is_named_by_a_string_without_control_characters(tiny: Tiny, name: Any, words: str) -> None:
    with pytest.raises(SettingsInvalid, match=words) as raised:
        sabir.adapter(name)

    assert str(raised.value).isprintable()


async def a_key() -> str:
    return "k"


class Key:
    async def __call__(self) -> str:
        return "k"


@pytest.mark.parametrize("key", [123, b"k", a_key, Key(), {"key": b"k"}, {1: "k"}])
def test_a_key_is_a_string_a_mapping_or_a_plain_function(tiny: Tiny, key: Any) -> None:
    with pytest.raises(
        SettingsInvalid, match=r"^api_key is .*; pass a string, a mapping .* sync function that returns either$"
    ):
        sabir.adapter("tiny:m", api_key=key)


def test_a_vendor_section_under_a_misspelt_name_is_refused(tiny: Tiny) -> None:
    slip = Settings(vendor={"tinny": {}})
    for ask in (
        lambda: sabir.adapter("tiny:m", settings=slip),
        lambda: sabir.adapter("tiny:m").render("Hi.", settings=slip),
        lambda: sabir.dialect("tiny.talk").render("Hi.", settings=slip),
    ):
        with pytest.raises(SettingsInvalid, match="section for 'tinny', which is not a provider; did you mean 'tiny'"):
            ask()


def test_a_vendor_section_of_another_provider_passes(tiny: Tiny) -> None:
    """Of one that is there, however like its name is, and of one that is not: settings serve several machines."""
    other = Tiny(key=None)
    other.name = "tinny"
    registry.register("tinny", other)
    settings = Settings(vendor={"tinny": {}, "tiny": {}, "elsewhere": {}})
    try:
        rendering = sabir.adapter("tiny:m").render("Hi.", settings=settings)
    finally:
        registry.unregister("tinny")

    assert rendering.losses == ()
