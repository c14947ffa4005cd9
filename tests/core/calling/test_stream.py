"""A reply as it comes: its events, its text, its partial state, and a connection that is closed on every way out."""

import asyncio
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sabir.base.failures import Loss
from sabir.calling.drive import SyncWire, Wire
from sabir.calling.exchange import Exchange, Script, stream_script
from sabir.calling.stream import ReplyStream, SyncReplyStream
from sabir.contract.dialect import ServerEvent
from sabir.contract.provider import WireRequest
from sabir.contract.scope import DecodeScope
from sabir.errors import CallError, ConnectionFailed, RateLimited, ResponseInvalid, SettingsInvalid, StreamBroken
from sabir.reading.incoming import StreamState
from sabir.vocabulary.parts import TextPart
from sabir.vocabulary.reply import BlockDelta, Reply, StreamEvent
from sabir.vocabulary.settings import RetryPolicy

from tests.core.samples import check_constructed
from tests.core.support import (
    SCOPE,
    WORDS,
    Answer,
    Loop,
    Reader,
    Scripted,
    Silent,
    TinyDecoder,
    TinyDialect,
    broken,
    failing,
    streamed,
)

REQUEST = WireRequest("/stream", b"{}", streaming=True)
LOST = Loss(kind="dropped", reason="rendering")
CALL = {"call": {"id": "c1", "name": "weather", "arguments": '{"city": "Pa"}'}}
EVENTS = ["reply-start", "text-start", "text-delta", "text-delta", "text-end", "reply-end"]


def streams(connection: Scripted, dialect: TinyDialect | None = None) -> tuple[SyncReplyStream, ReplyStream]:
    """Both kinds of stream over one connection; a test uses one of them."""
    dialect = dialect or TinyDialect()
    state = StreamState(dialect, SCOPE)
    exchange = Exchange(REQUEST, dialect, SCOPE, RetryPolicy(attempts=1), (LOST,))

    async def start() -> tuple[Script[Reply], Wire]:
        return stream_script(exchange, state), Wire(connection)

    async def start_sync() -> tuple[Script[Reply], SyncWire]:
        return stream_script(exchange, state), SyncWire(connection)

    return SyncReplyStream(state, start_sync), ReplyStream(state, start)


Read = Callable[..., Reader]


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def read(request: pytest.FixtureRequest) -> Iterator[Read]:
    """Makes a reader of a stream, of one kind or the other."""
    loop = Loop(request.param)
    yield lambda connection, dialect=None: Reader(loop, streams(connection, dialect)[request.param])
    loop.close()


def test_text_comes_as_it_is_written(read: Read) -> None:
    stream = read(Scripted(streamed({"open": "r"}, {"thought": "hm"}, *WORDS[1:3], CALL, WORDS[3])))

    assert list(stream.texts()) == ["Take ", "one."]
    assert (stream.reply().text, stream.reply().reasoning, len(stream.reply().option_calls)) == ("Take one.", "hm", 1)


def test_a_text_that_comes_whole_is_text_too(read: Read) -> None:
    class Whole(TinyDialect):
        def decoder(self, scope: DecodeScope) -> Any:
            class Decoder(TinyDecoder):
                def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
                    return (each for each in super().feed(event) if not each.type.endswith("-delta"))

            return Decoder(scope)

    assert list(read(Scripted(streamed(*WORDS)), Whole()).texts()) == ["Take one."]


def test_reading_goes_on_where_it_stopped(read: Read) -> None:
    stream = read(Scripted(streamed(*WORDS)))

    assert EVENTS[:3] == [next(stream).type for _ in range(3)]
    assert list(stream.texts()) == ["one."]
    assert stream.reply().text == "Take one."
    again = read(Scripted(streamed(*WORDS)))
    for _ in range(EVENTS.index("text-end")):
        next(again)
    assert list(again.texts()) == []


def test_the_reply_can_be_had_without_looking(read: Read) -> None:
    connection = Scripted(streamed(*WORDS))
    stream = read(connection)
    reply = stream.reply()

    assert (reply.text, reply.finish_reason, reply.usage.output_tokens) == ("Take one.", "stop", 2)
    assert reply.losses == (LOST,)
    assert reply is stream.reply() is stream.partial
    assert (list(stream), connection.open_responses) == ([], 0)


SAID = ({"text": "Rain, "}, {"text": "18"}, {"thought": "hm"}, CALL, {"error": 429}, {"nonsense": 1}, WORDS[-1])


def outcome(stream: SyncReplyStream) -> list[object]:
    """What reading a stream to its end comes to, but for the messages' ids."""
    try:
        reply, error = stream.reply(), None
    except CallError as raised:
        reply, error = stream.partial, raised
    contents = [message._compared_fields() for message in reply.messages]
    return [contents, reply.model_copy(update={"messages": ()}), type(error), str(error)]


@given(st.lists(st.sampled_from(SAID), max_size=8), st.lists(st.integers(0, 400), max_size=6), st.integers(0, 12))
def test_a_reply_is_the_same_whoever_looked(said: list[dict[str, Any]], cuts: list[int], looks: int) -> None:
    """Events are made for who looks, and `reply()` looks no more: reply, error and partial are equal (law 8)."""
    body = b"".join(streamed(WORDS[0], *said).chunks)
    ends = sorted(min(cut, len(body)) for cut in cuts)
    chunks = [body[start:end] for start, end in zip([0, *ends], [*ends, len(body)], strict=True)]
    reading, blind = (streams(Scripted(Answer(chunks)))[0] for _ in range(2))
    try:
        for _, _event in zip(range(looks), reading, strict=False):
            pass
    except CallError:
        pass  # it is raised again below

    assert outcome(reading) == outcome(blind)


def test_who_asks_for_the_reply_is_given_no_more_events() -> None:
    state = StreamState(TinyDialect(), SCOPE)
    first, second, *rest = streamed(*WORDS).chunks
    shown = [event.type for chunk in (first, second) for event in state.feed(chunk)]
    state.skip_events()
    further = [event for chunk in rest for event in state.feed(chunk)]

    assert (shown, further, state.reply().text) == (EVENTS[:3], [], "Take one.")


def test_a_delta_made_in_haste_is_one_that_its_constructor_makes() -> None:
    """Decoders make thousands: the same value in every way, and nothing that can be changed (law 11)."""
    delta = BlockDelta.unchecked(0, "text", "x")

    check_constructed(delta)
    assert BlockDelta.model_validate_json(delta.model_dump_json()) == pickle.loads(pickle.dumps(delta)) == delta
    assert delta.model_copy(update={"text": "y"}).text == "y"
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        delta.text = "y"  # type: ignore[misc]


def test_leaving_early_closes_the_connection(read: Read) -> None:
    connection = Scripted(streamed(*WORDS))
    stream = read(connection)
    for _ in range(3):
        next(stream)
    stream.close()
    stream.close()

    assert connection.open_responses == 0
    assert connection.responses[0].read < len(WORDS)
    for ask in (stream.reply, lambda: next(stream)):
        with pytest.raises(StreamBroken, match="closed before its end") as caught:
            ask()
        assert caught.value.partial.text == "Take "


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (streamed(*WORDS[:3]), "without an end marker"),
        (broken(streamed(*WORDS[:3]), ConnectionResetError("reset by peer")), "reset by peer"),
        (streamed(*WORDS[:3], {"error": 429}), "the stream says so"),
        (streamed(*WORDS[:3], {"unheard": "of"}), "KeyError: 'finish'"),
        (Answer([*streamed(*WORDS[:3]).chunks, b"data: <html>\n\n"]), "<html>"),
    ],
    ids=["no end", "reset", "reported", "unknown", "html"],
)
def test_half_a_stream_is_broken_and_keeps_what_came(read: Read, answer: Answer, reason: str) -> None:
    connection = Scripted(answer)
    stream = read(connection)

    with pytest.raises(StreamBroken, match=reason) as caught:
        stream.reply()

    error = caught.value
    assert (error.partial.text, error.partial.losses, error.provider) == ("Take one.", (LOST,), "tiny")
    assert (len(str(error).splitlines()), error.retryable, connection.open_responses) == (1, False, 0)
    with pytest.raises(StreamBroken) as again:
        next(stream)
    assert error is again.value


def test_a_broken_stream_says_what_broke_it_and_keeps_what_was_whole(read: Read) -> None:
    with pytest.raises(StreamBroken) as caught:
        read(Scripted(streamed(*WORDS[:3], CALL, {"error": 429}))).reply()

    assert isinstance(caught.value.__cause__, RateLimited)
    assert caught.value.status == 429
    assert [TextPart(text="Take one.")] == list(caught.value.partial.messages[0].parts)
    assert [each.call.option_name for each in caught.value.partial.option_calls if each.call] == ["weather"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failing(429), RateLimited),
        (streamed({"open": "r"}, {"error": 429}), RateLimited),
        (broken(streamed({"open": "r"}), ConnectionResetError("reset")), ConnectionFailed),
        (streamed({"nonsense": 1}), ResponseInvalid),
    ],
)
def test_an_error_before_the_first_block_is_raised_as_it_is(read: Read, answer: Answer, kind: type[CallError]) -> None:
    connection = Scripted(answer)

    with pytest.raises(kind) as caught:
        read(connection).reply()

    assert (kind, 0) == (type(caught.value), connection.open_responses)
    if kind is ConnectionFailed:
        assert isinstance(caught.value.__cause__, ConnectionResetError)


def test_what_follows_the_terminal_marker_is_not_waited_for(read: Read) -> None:
    connection = Scripted(broken(streamed(*WORDS), ConnectionResetError("reset")))
    more = b"".join(streamed(*WORDS, {"text": "more"}).chunks) + b"data: <html>\n\n"

    assert read(connection).reply().text == read(Scripted(Answer([more]))).reply().text == "Take one."
    assert (len(WORDS), 0) == (connection.responses[0].read, connection.open_responses)


async def test_a_cancelled_stream_closes_its_connection() -> None:
    connection = Silent(*streamed(*WORDS[:2]).chunks)
    stream = streams(connection)[1]
    task = asyncio.create_task(stream.reply())
    await connection.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (stream.partial.text, connection.open_responses) == ("Take ", 0)
    with pytest.raises(StreamBroken, match="closed before its end"):
        await stream.reply()


async def test_a_stream_refuses_a_second_reader_at_the_same_time() -> None:
    waiting, going = asyncio.Event(), asyncio.Event()

    class Slow(Scripted):
        async def open(self, request: WireRequest) -> Any:
            waiting.set()
            await going.wait()
            return await super().open(request)

    stream = streams(Slow(streamed(*WORDS)))[1]
    first = asyncio.create_task(stream.reply())
    await waiting.wait()
    with pytest.raises(SettingsInvalid, match="already reading this stream"):
        await stream.reply()
    going.set()

    assert (await first).text == (await stream.reply()).text == "Take one."


def test_a_waiting_stream_refuses_a_reader_within_its_reader() -> None:
    class Nosy(Scripted):
        def open_sync(self, request: WireRequest) -> Any:
            with pytest.raises(SettingsInvalid, match="already reading this stream"):
                stream.reply()
            return super().open_sync(request)

    stream = streams(Nosy(streamed(*WORDS)))[0]

    assert stream.reply().text == "Take one."
