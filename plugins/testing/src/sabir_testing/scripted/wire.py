"""How a scripted answer travels: as bytes, decoded by a dialect's decoder and carried by core's own drivers.

    Answer ──chunks_of──▶ bytes · Wait · error ──ScriptedConnection──▶ core ──AnswerDecoder──▶ events ─▶ reply

Retries, streams, folding and errors are thus core's, as with any provider. An answer is a stream of server-sent events,
whether it was asked for as a stream or not: {"start": …}, {"delta": …}, {"end": …}, {"finish": …}, each with the fields
of core's event.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from sabir import (
    BlockDelta,
    BlockEnd,
    BlockStart,
    OptionCallPayload,
    Reply,
    ReplyEnd,
    ReplyStart,
    StreamEvent,
    Target,
    Usage,
)
from sabir.authoring import (
    DecodeScope,
    Dialect,
    Fold,
    FrozenDict,
    KnownPart,
    ServerEvent,
    ServerEventReader,
    WireRequest,
)
from sabir.errors import CallError, SabirError, ServerFailed

from sabir_testing.scripted.answers import Answer, Chosen
from sabir_testing.scripted.gate import Sleep, Wait

Chunk: TypeAlias = bytes | Wait | CallError
"""What a response does next: give bytes, wait, or break."""
Serve: TypeAlias = Callable[[WireRequest], Sequence[Chunk]]

_EVENTS: Mapping[str, type[BlockStart | BlockDelta | BlockEnd | ReplyEnd]] = {
    "start": BlockStart, "delta": BlockDelta, "end": BlockEnd, "finish": ReplyEnd,
}  # fmt: skip
_NAMES = {kind: name for name, kind in _EVENTS.items()}


def chunks_of(answer: Answer, new_id: Callable[[], str], input_tokens: int) -> Iterator[Chunk]:
    """What an answer's response does, in order. A block that an error follows does not end."""
    streamed, called = 0, False
    for index, step in enumerate(answer.steps):
        if isinstance(step, Wait | CallError):
            yield step
            continue
        is_cut = any(isinstance(following, CallError) for following in answer.steps[index + 1 : index + 2])
        block = _call(step, new_id) if isinstance(step, Chosen) else step.part
        yield from map(_encoded, _events(index, block, step.pieces, is_cut=is_cut))
        streamed += len(step.pieces)
        called = called or isinstance(step, Chosen)
    reason = answer.finish_reason or ("option_calls" if called else "stop")
    usage = answer.usage or Usage(input_tokens=input_tokens, output_tokens=streamed)
    yield _encoded(ReplyEnd(finish_reason=reason, raw_finish_reason=reason, usage=usage))


def _call(step: Chosen, new_id: Callable[[], str]) -> OptionCallPayload:
    nowhere = DecodeScope(Target(provider="scripted", dialect="scripted"))
    return nowhere.read_call(step.id or new_id(), step.name, step.arguments)


def _events(
    index: int, block: KnownPart | OptionCallPayload, pieces: Sequence[str], *, is_cut: bool
) -> Iterator[BlockStart | BlockDelta | BlockEnd]:
    if isinstance(block, OptionCallPayload):
        names = {"invocation_id": block.invocation_id, "option_name": block.option_name}
    else:
        names = {}
    yield BlockStart(index=index, kind=block.kind, **names)
    for piece in pieces:
        yield BlockDelta(index=index, kind=block.kind, text=piece)
    if not is_cut:
        yield BlockEnd(index=index, block=block)


def _encoded(event: BlockStart | BlockDelta | BlockEnd | ReplyEnd) -> bytes:
    fields = event.model_dump_json(by_alias=True, exclude_computed_fields=True)
    return f'data: {{"{_NAMES[type(event)]}":{fields}}}\n\n'.encode()


class AnswerDecoder:
    """The events of a scripted answer, as they were encoded."""

    def __init__(self, scope: DecodeScope) -> None:
        self._scope = scope
        self._begun = False

    def feed(self, event: ServerEvent) -> Iterator[StreamEvent]:
        """The event itself, after the start where it is the first."""
        if not self._begun:
            self._begun = True
            yield ReplyStart(origin=self._scope.origin())
        ((name, fields),) = json.loads(event.data).items()
        yield _EVENTS[name].model_validate(fields)

    def close(self) -> tuple[StreamEvent, ...]:
        """Nothing is due: the last event ends everything."""
        return ()


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """A whole answer is a stream that came at once."""
    fold, decoder, reader = Fold(scope), AnswerDecoder(scope), ServerEventReader()
    for wire_event in (*reader.feed(body), *reader.close()):
        for event in decoder.feed(wire_event):
            fold.feed(event)
    return fold.reply()


def decode_error(status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
    """Never asked: errors of a script are raised as they are."""
    return ServerFailed("a scripted answer has no status", status=status, provider=provider)


def with_scripted_answers(dialect: Dialect) -> Dialect:
    """A dialect's requests, with scripted answers; tokens are estimated."""
    return replace(
        dialect, decode=decode, decoder=AnswerDecoder, decode_error=decode_error, framings={}, encode_count=None
    )


class _Response:
    status = 200
    headers: Mapping[str, str] = FrozenDict()

    def __init__(self, plan: Sequence[Chunk], timeout: float | None, sleep: Sleep | None) -> None:
        self._plan, self._timeout, self._sleep = plan, timeout, sleep


class _SyncResponse(_Response):
    def chunks(self) -> Iterator[bytes]:
        for chunk in self._plan:
            if isinstance(chunk, CallError):
                raise chunk
            if isinstance(chunk, Wait):
                chunk.perform_sync(self._timeout, self._sleep)
            else:
                yield chunk

    def close(self) -> None:
        """There is nothing to give back."""


class _AsyncResponse(_Response):
    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._plan:
            if isinstance(chunk, CallError):
                raise chunk
            if isinstance(chunk, Wait):
                await chunk.perform(self._timeout, self._sleep)
            else:
                yield chunk

    async def aclose(self) -> None:
        """There is nothing to give back."""


class ScriptedConnection:
    """A Connection to a script; the script is asked at each `open`, once for each attempt."""

    def __init__(self, serve: Serve, sleep: Sleep | None) -> None:
        self._serve = serve
        self._sleep = sleep

    def open_sync(self, request: WireRequest) -> _SyncResponse:
        """The next answer."""
        return _SyncResponse(self._serve(request), request.timeout, self._sleep)

    async def open(self, request: WireRequest) -> _AsyncResponse:
        """The next answer."""
        return _AsyncResponse(self._serve(request), request.timeout, self._sleep)

    def translate(self, error: Exception) -> SabirError | None:
        """None: what a script's function raises is its own."""
        return None

    def close(self) -> None:
        """Nothing to close."""

    async def aclose(self) -> None:
        """Nothing to close."""
