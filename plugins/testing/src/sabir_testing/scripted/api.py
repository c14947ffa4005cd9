"""The API of a scripted adapter: requests that can contain everything, and answers that core decodes.

    request  {"model": …, "options": […], "settings": {…}, "messages": [{"from": "user", "parts": […]}, …]}
    Answer ──chunks_of──▶ bytes · Wait · error ──ScriptedConnection──▶ core ──AnswerDecoder──▶ events ─▶ reply

The item of a message has {"parts": …}, {"call": {"id": …, "name": …, "arguments": …}}, or {"answers": id of a call, …}.
Core does retries, streams, folding and errors, as for any provider. Every answer is a stream of server-sent events with
core's own events, also if the program did not request a stream.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, get_args

import sabir
from pydantic import TypeAdapter
from sabir.authoring import (
    WIRE_SETTINGS,
    DecodeScope,
    Dialect,
    Entry,
    Fold,
    FrozenDict,
    JSONValue,
    KnownPart,
    LossLog,
    MediaRule,
    Modality,
    NativeTool,
    RequestScope,
    Roles,
    ServerEvent,
    ServerEventReader,
    Side,
    Tables,
    Turn,
    TurnScope,
    WireRequest,
)
from sabir.errors import CallError, SabirError, SettingsInvalid

from sabir_testing.scripted.answers import Answer, ScriptedCall
from sabir_testing.scripted.gate import Sleep, Wait

NAME = "scripted"
"""The provider's name of a scripted adapter that imitates no other provider."""
Chunk: TypeAlias = bytes | Wait | CallError
"""One action of a response: send bytes, wait, or raise an error."""
Serve: TypeAlias = Callable[[WireRequest], Sequence[Chunk]]
AnswerEvent: TypeAlias = sabir.BlockStart | sabir.BlockDelta | sabir.BlockEnd | sabir.ReplyEnd
"""An event in an answer. The decoder adds the ReplyStart."""

_EVENT_ADAPTER: TypeAdapter[AnswerEvent] = TypeAdapter(AnswerEvent)
_EVERY_FORM = MediaRule(url="", data="", file="")
_ASSISTANT_PARTS = frozenset({"reasoning", "refusal", "opaque"})
_NATIVE_TOOLS = ("code_execution", "mcp_server", "web_search")
_NATIVE_FIELDS = frozenset({"allowed_tools", "authorization", "blocked_domains", "domains", "headers", "max_uses"})


def _encode_native(
    option: sabir.NativeOption, own: Mapping[str, JSONValue], scope: RequestScope
) -> Mapping[str, JSONValue]:
    """Return a native option as JSON, without its credentials."""
    fields: dict[str, JSONValue] = option.model_dump(mode="json", exclude_defaults=True)
    return {"native": [fields]}


_TABLES = Tables(
    roles=Roles(native={"assistant": _ASSISTANT_PARTS}, citations="native"),
    media={(side, modality): _EVERY_FORM for side in get_args(Side) for modality in get_args(Modality)},
    native=dict.fromkeys(_NATIVE_TOOLS, NativeTool(_encode_native, _NATIVE_FIELDS, lambda option: option.name)),
)


def chunks_of(answer: Answer, new_id: Callable[[], str], input_tokens: int) -> Iterator[Chunk]:
    """Yield the actions of an answer's response, in order. A block directly before an error does not end."""
    streamed, called = 0, False
    for index, (step, following) in enumerate(zip(answer.steps, (*answer.steps[1:], None), strict=False)):
        if isinstance(step, Wait | CallError):
            yield step
            continue
        block: KnownPart | sabir.OptionCallPayload
        if isinstance(step, ScriptedCall):
            nowhere = DecodeScope(sabir.Target(provider=NAME, dialect=NAME))
            block = nowhere.read_call(step.id or new_id(), step.name, step.arguments)
        else:
            block = step.part
        yield _encode_event(sabir.BlockStart.unchecked(index, block))
        yield from (_encode_event(sabir.BlockDelta(index=index, kind=block.kind, text=piece)) for piece in step.pieces)
        if not isinstance(following, CallError):
            yield _encode_event(sabir.BlockEnd(index=index, block=block))
        streamed += len(step.pieces)
        called = called or isinstance(step, ScriptedCall)
    reason = answer.finish_reason or ("option_calls" if called else "stop")
    usage = answer.usage or sabir.Usage(input_tokens=input_tokens, output_tokens=streamed)
    yield _encode_event(sabir.ReplyEnd(finish_reason=reason, raw_finish_reason=reason, usage=usage))


def _encode_event(event: AnswerEvent) -> bytes:
    return f"data: {event.model_dump_json(by_alias=True, exclude_computed_fields=True)}\n\n".encode()


class AnswerDecoder:
    """Decodes the events of a scripted answer."""

    def __init__(self, scope: DecodeScope) -> None:
        self._start: sabir.ReplyStart | None = sabir.ReplyStart(origin=scope.origin())

    def feed(self, event: ServerEvent) -> Iterator[sabir.StreamEvent]:
        """Yield the decoded event, after a ReplyStart if it is the first."""
        if self._start:
            yield self._start
            self._start = None
        yield _EVENT_ADAPTER.validate_json(event.data)

    def close(self) -> tuple[sabir.StreamEvent, ...]:
        """Return no events, because a complete answer ends with a ReplyEnd."""
        return ()


def decode(body: bytes, scope: DecodeScope) -> sabir.Reply:
    """Return the reply of an answer whose events are in one body."""
    fold, decoder, reader = Fold(scope), AnswerDecoder(scope), ServerEventReader()
    for wire_event in (*reader.feed(body), *reader.close()):
        for event in decoder.feed(wire_event):
            fold.feed(event)
    return fold.reply()


def with_scripted_answers(dialect: Dialect) -> Dialect:
    """Return a dialect with the requests of `dialect` and with scripted answers. Counts of tokens are estimated."""
    return replace(dialect, decode=decode, decoder=AnswerDecoder, framings={}, encode_count=None)


class _ScriptedResponse:
    status = 200
    headers: Mapping[str, str] = FrozenDict()

    def __init__(self, plan: Sequence[Chunk], timeout: float | None, sleep: Sleep | None) -> None:
        self._plan, self._timeout, self._sleep = plan, timeout, sleep

    def _steps(self) -> Iterator[bytes | Wait]:
        for step in self._plan:
            if isinstance(step, CallError):
                raise step
            yield step


class _SyncScriptedResponse(_ScriptedResponse):
    def chunks(self) -> Iterator[bytes]:
        for step in self._steps():
            if isinstance(step, bytes):
                yield step
            else:
                step.perform_sync(self._timeout, self._sleep)

    def close(self) -> None:
        """Do nothing: there is no connection."""


class _AsyncScriptedResponse(_ScriptedResponse):
    async def chunks(self) -> AsyncIterator[bytes]:
        for step in self._steps():
            if isinstance(step, bytes):
                yield step
            else:
                await step.perform(self._timeout, self._sleep)

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


class ScriptedConnection:
    """A Connection that gets one answer of the script for each `open`, so for each attempt of a request."""

    def __init__(self, serve: Serve, sleep: Sleep | None) -> None:
        self._serve = serve
        self._sleep = sleep

    def open_sync(self, request: WireRequest) -> _SyncScriptedResponse:
        """Return the next answer."""
        return _SyncScriptedResponse(self._serve(request), request.timeout, self._sleep)

    async def open(self, request: WireRequest) -> _AsyncScriptedResponse:
        """Return the next answer."""
        return _AsyncScriptedResponse(self._serve(request), request.timeout, self._sleep)

    def translate(self, error: Exception) -> SabirError | None:
        """Return None, so that exceptions of a script's function are raised unchanged."""
        return None

    def close(self) -> None:
        """Do nothing: there is no client."""

    async def aclose(self) -> None:
        """Do nothing: there is no client."""


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """Return one item for each message."""
    return [{"from": turn.side, **_encode_entry(entry)} for entry in turn.entries]


def encode_request(scope: RequestScope) -> dict[str, JSONValue]:
    """Return model, options, and every setting that is set. Raises SettingsInvalid for vendor settings of the provider
    `scripted`.
    """
    if scope.vendor:
        what = f"the provider {NAME!r} has no vendor settings, but {', '.join(scope.vendor)} is set"
        raise SettingsInvalid(f"{what}; imitate the settings' provider: ScriptedAdapter(…, model='provider:model')")
    options = [
        {"name": scope.option_names[each.name], "description": each.description, "parameters": each.parameters}
        for each in scope.options
    ]
    settings = {name: value for name in WIRE_SETTINGS if (value := scope.settings.take(name)) is not None}
    choice = {} if scope.native_choice is None else {"option_choice": scope.native_choice}
    return {"model": scope.target.model, "options": options, "settings": settings | choice, **scope.native}


def decode_history(body: bytes, scope: DecodeScope) -> sabir.DecodedHistory:
    """Return a request's messages, options and settings."""
    document = json.loads(body)
    called: dict[str, str] = {}
    policies = {"system": "system", "user": "user", "assistant": scope.policy}
    messages = []
    for item in document["messages"]:
        payload = _decode_item(item, called, scope)
        policy = payload.option_name if isinstance(payload, sabir.OptionResultPayload) else policies[item["from"]]
        messages.append(sabir.Message(policy=policy, payload=payload))
    return sabir.DecodedHistory(
        messages=tuple(messages),
        options=(
            *(sabir.Option(**each) for each in document["options"]),
            *(sabir.NativeOption.model_validate(each) for each in document.get("native", ())),
        ),
        settings=sabir.Settings(**document["settings"]),
        model=document["model"],
    )


def _encode_entry(entry: Entry) -> dict[str, JSONValue]:
    dumped = [piece.model_dump(mode="json", by_alias=True) for piece in entry.pieces]
    parts = [{name: value for name, value in part.items() if value not in (None, [])} for part in dumped]
    if call := entry.message.call:
        arguments = call.arguments_json if call.raw_arguments is None else call.raw_arguments
        return {"call": {"id": entry.wire_id, "name": entry.wire_name, "arguments": arguments}}
    if result := entry.message.result:
        if result.is_error:
            failed = {"error_type": result.error_type, "error_message": result.error_message}
            return {"answers": entry.wire_id, "failed": {**failed, "retryable": result.retryable}}
        return {"answers": entry.wire_id, **({"parts": parts} if parts else {"result": result.result})}
    return {"parts": parts}


def _decode_item(
    item: Mapping[str, Any], called: dict[str, str], scope: DecodeScope
) -> sabir.PartsPayload | sabir.OptionCallPayload | sabir.OptionResultPayload:
    """Return the payload of one item. `called` has the names of the options that were called so far, by call id."""
    if call := item.get("call"):
        called[call["id"]] = scope.option_names.get(call["name"], call["name"])
        return scope.read_call(call["id"], call["name"], call["arguments"])
    if "answers" not in item:
        return sabir.PartsPayload(parts=item["parts"])
    answered = {"invocation_id": item["answers"], "option_name": called[item["answers"]]}
    if "failed" in item:
        return sabir.OptionResultPayload(**answered, is_error=True, **item["failed"])
    return sabir.OptionResultPayload(**answered, result=item.get("result"), parts=item.get("parts", ()))


PLAIN = with_scripted_answers(
    Dialect(
        name=f"{NAME}.plain",
        tables=_TABLES,
        path=lambda target: "/scripted",
        family=lambda model: NAME,
        encode_turn=encode_turn,
        encode_request=encode_request,
        decode=decode,
        decode_history=decode_history,
    )
)
"""The dialect `scripted.plain`, which accepts every kind of part, every option, and every setting except vendor
settings, without a loss.
"""
