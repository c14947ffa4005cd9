"""The edges where users and vendors hand over anything: each ends in one of the library's errors, in one line."""

import asyncio
import json
import stat
import struct
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
import sabir
from sabir.calling.drive import Done, SyncWire, Wire, drive, run_blocking
from sabir.calling.exchange import Emit, Exchange, Script, stream_script
from sabir.calling.stream import ReplyStream, SyncReplyStream
from sabir.contract.dialect import ServerEventReader
from sabir.contract.provider import WireRequest
from sabir.contract.scope import DecodeScope
from sabir.discovery import default_registry as registry
from sabir.errors import (
    BuilderError,
    CallError,
    HistoryInvalid,
    QuotaExceeded,
    RateLimited,
    ResponseInvalid,
    SettingsInvalid,
    StreamBroken,
    WrongWord,
)
from sabir.hooks.builders import MessageBuilder
from sabir.reading.incoming import KEPT_BYTES, StreamState
from sabir.vocabulary.constructors import user
from sabir.vocabulary.history import save
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import RetryPolicy, Settings

from tests.core.support import SCOPE, WORDS, Answer, Scripted, Tiny, TinyDialect, streamed, whole

REQUEST = WireRequest("/stream", b"{}", streaming=True)
CAT = "https://example.org/cat.png"


class Reporting(TinyDialect):
    """A dialect whose bodies of status 200 may report an error."""

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        code = json.loads(body).get("error", {}).get("code")
        if code is not None:
            raise {"rate": RateLimited, "quota": QuotaExceeded}[code](f"the body says {code}", code=code)
        return super().decode(body, scope)


def scripted(*answers: Answer, attempts: int = 1) -> tuple[StreamState, Script[Reply], Scripted]:
    state = StreamState(Reporting(), SCOPE)
    policy = RetryPolicy(attempts=attempts, first_delay=0)
    return state, stream_script(Exchange(REQUEST, Reporting(), SCOPE, policy), state), Scripted(*answers)


def events_of(script: Script[Reply], connection: Scripted) -> Reply:
    wire = SyncWire(connection)
    while isinstance(step := run_blocking(drive(script, wire)), Emit):
        pass
    assert isinstance(step, Done)
    return step.result


def test_an_error_in_place_of_a_stream_is_the_error_that_its_body_reports() -> None:
    """Vendors answer 200 with a JSON body; whatever the chunks."""
    body = b'{\n "error": {"code": "quota"}\n}'
    _, script, connection = scripted(Answer([body[:9], body[9:]]))
    with pytest.raises(QuotaExceeded, match="the body says quota") as raised:
        events_of(script, connection)

    assert (raised.value.provider, raised.value.code) == ("tiny", "quota")


def test_a_retryable_error_in_place_of_a_stream_is_tried_again() -> None:
    _, script, connection = scripted(Answer([b'{"error": {"code": "rate"}}']), streamed(*WORDS), attempts=2)
    reply = events_of(script, connection)

    assert (reply.text, reply.attempts) == ("Take one.", 2)


@pytest.mark.parametrize("body", [whole("Hi.").chunks[0], b"[1]", b"<html>", b"", b'{"error": {"code": "rate"}'])
def test_any_other_answer_in_place_of_a_stream_is_shown(body: bytes) -> None:
    _, script, connection = scripted(Answer([body]))
    with pytest.raises(StreamBroken, match="answered without an event stream:"):
        events_of(script, connection)


@pytest.mark.parametrize("where", ["feed", "close"])
def test_what_a_framing_raises_ends_in_an_error_of_the_library(where: str) -> None:
    """Law 10: a plugin's own framing meets bytes that it cannot cut."""

    def crack(*chunk: bytes) -> NoReturn:
        raise struct.error("unpack requires a buffer of 4 bytes")

    class Cracked(TinyDialect):
        def framing(self, content_type: str) -> Any:
            reader = ServerEventReader()
            setattr(reader, where, crack)
            return reader

    state = StreamState(Cracked(), SCOPE)

    with pytest.raises(ResponseInvalid, match="a body that is not"):
        list(state.feed(b"half") if where == "feed" else state.close())


def test_a_body_in_place_of_a_stream_is_kept_up_to_a_limit() -> None:
    state = StreamState(Reporting(), SCOPE)
    for _ in range(40):
        assert not list(state.feed(b" " * 4096))

    assert len(state._seen) <= KEPT_BYTES + 4096


async def test_a_stream_refuses_a_second_reader_at_the_same_time() -> None:
    waiting, going = asyncio.Event(), asyncio.Event()

    class Slow(Scripted):
        async def open(self, request: WireRequest) -> Any:
            waiting.set()
            await going.wait()
            return await super().open(request)

    state, script, _ = scripted()

    async def start() -> tuple[Script[Reply], Wire]:
        return script, Wire(Slow(streamed(*WORDS)))

    stream = ReplyStream(state, start)
    first = asyncio.create_task(stream.reply())
    await waiting.wait()
    with pytest.raises(SettingsInvalid, match="already reading this stream"):
        await stream.reply()
    going.set()

    assert (await first).text == "Take one."
    assert (await stream.reply()).text == "Take one."


def test_a_waiting_stream_refuses_a_reader_within_its_reader() -> None:
    refused: list[SettingsInvalid] = []

    class Nosy(Scripted):
        def open_sync(self, request: WireRequest) -> Any:
            try:
                stream.reply()
            except SettingsInvalid as error:
                refused.append(error)
            return super().open_sync(request)

    state, script, _ = scripted()

    async def start() -> Any:
        return script, SyncWire(Nosy(streamed(*WORDS)))

    stream = SyncReplyStream(state, start)

    assert stream.reply().text == "Take one."
    assert len(refused) == 1


def test_a_long_message_of_a_call_keeps_its_remedy() -> None:
    remedy = "; see the vendor's page on limits and ask for fewer tokens"
    message = str(CallError("x" * 5000 + remedy))

    assert len(message) == 500
    assert message.endswith(remedy)
    assert "…" in message


@pytest.mark.parametrize("name", ["tiny:m\nx", "tiny:m\x1b[31m", "tiny:\u2028m", "ti\tny:m", "tiny:m\x00"])
def test_a_model_name_holds_no_control_character(tiny: Tiny, name: str) -> None:
    with pytest.raises(SettingsInvalid, match="control character") as raised:
        sabir.adapter(name)

    assert str(raised.value).isprintable()


async def a_key() -> str:
    return "k"


class Key:
    async def __call__(self) -> str:
        return "k"


@pytest.mark.parametrize("key", [123, b"k", a_key, Key(), {"key": b"k"}, {1: "k"}])
def test_a_key_is_a_string_a_mapping_or_a_plain_function(tiny: Tiny, key: object) -> None:
    with pytest.raises(
        SettingsInvalid, match=r"^api_key is .*; pass a string, a mapping .* sync function that returns either$"
    ):
        sabir.adapter("tiny:m", api_key=cast("str", key))


@pytest.mark.parametrize("name", [None, 3, b"tiny:m"])
def test_a_model_is_named_by_a_string(name: object) -> None:
    with pytest.raises(SettingsInvalid, match="a model's name must be a string, not of type"):
        sabir.adapter(cast("str", name))


def test_a_dialect_refuses_what_the_adapter_refuses(tiny: Tiny) -> None:
    pure = cast("Any", sabir.dialect("tiny.talk"))
    with pytest.raises(SettingsInvalid, match=r"write sabir\.Settings"):
        pure.render("Hi.", settings={"seed": 1})
    with pytest.raises(WrongWord, match=r"render\(\) has no argument `tools`; pass options="):
        pure.render("Hi.", tools=[])


def test_saving_keeps_a_files_permissions(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text("[]")
    for mode in (0o600, 0o640):
        path.chmod(mode)
        save(path, [user("Hi.")])

        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_saving_into_a_missing_folder_names_the_path_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HistoryInvalid, match=r"^'nowhere/chat\.json' cannot be written: .*; create the folder first$"):
        save("nowhere/chat.json", [user("Hi.")])

    assert not list(tmp_path.iterdir())


def test_a_given_media_id_may_not_be_an_assigned_one() -> None:
    builder = MessageBuilder()
    builder.add_image("a cat", CAT)
    with pytest.raises(
        BuilderError, match=r"'media-1'.*image .*a dog.* and image .*a cat.*; the second has the id already"
    ):
        builder.add_image("a dog", "https://example.org/dog.png", id="media-1")

    assert len(builder.to_message().parts) == 1


def test_a_vendor_section_under_a_misspelt_name_is_refused(tiny: Tiny) -> None:
    slip = Settings(vendor={"tinny": {}})
    says = "a section for 'tinny', which is not a provider; did you mean 'tiny'"
    with pytest.raises(SettingsInvalid, match=says):
        sabir.adapter("tiny:m", settings=slip)
    with pytest.raises(SettingsInvalid, match=says):
        sabir.adapter("tiny:m").render("Hi.", settings=slip)
    with pytest.raises(SettingsInvalid, match=says):
        sabir.dialect("tiny.talk").render("Hi.", settings=slip)


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
