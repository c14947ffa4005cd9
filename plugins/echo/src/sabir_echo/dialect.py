"""The API format `echo.plain`, as tables and pure functions.

    request  {"model": …, "options": […], "settings": {…}, "messages": [{"from": "user", "text": …}, …]}
    answer   [piece, …], or a stream of them

A piece is {"text": word} or {"call": {"id": …, "name": …, "arguments": …}}. The last piece is {"finish": …, "usage":
{…}}.
"""

import json
from collections.abc import Iterator, Mapping

import sabir
from sabir.authoring import (
    WIRE_SETTINGS,
    DecodeScope,
    Dialect,
    Entry,
    ErrorTable,
    FinishReason,
    Fold,
    JSONValue,
    LossLog,
    RequestScope,
    ServerEvent,
    Tables,
    Turn,
    TurnScope,
    object_or_empty,
    unknown_fields,
)
from sabir.errors import HistoryInvalid, SettingsInvalid

NAME = "echo.plain"
FINISH_REASONS: Mapping[str, FinishReason] = {"done": "stop", "call": "option_calls", "limit": "length"}
KNOWN_FIELDS = {"model", "options", "settings", "messages"}
ITEM_FIELDS = {"from", "text", "call", "answers", "failed"}
CALL_FIELDS = {"id", "name", "arguments"}
ERROR_FIELDS = {"type", "retryable"}
ERROR_TYPE = "failed"
"""The `error_type` for an error in a stored request if the request does not name the type."""


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """Return one item of the request's `messages` for each message of a turn."""
    return [{"from": turn.side, **_encode_entry(entry, scope.target, losses)} for entry in turn.entries]


def encode_request(scope: RequestScope) -> dict[str, JSONValue]:
    """Return the request's model, options and settings. Raises SettingsInvalid for vendor settings."""
    if scope.vendor:
        raise SettingsInvalid(f"echo has no settings of its own; remove {', '.join(scope.vendor)}")
    options = [
        {"name": scope.option_names[each.name], "description": each.description, "parameters": each.parameters}
        for each in scope.options
    ]
    settings = {name: value for name in WIRE_SETTINGS if (value := scope.settings.take(name)) is not None}
    return {"model": scope.target.model, "options": options, "settings": settings}


def decode(body: bytes, scope: DecodeScope) -> sabir.Reply:
    """Return the reply of a complete answer, read like a stream that arrived at once."""
    fold, decoder = Fold(scope), PlainDecoder(scope)
    answer = json.loads(body)
    for piece in answer if isinstance(answer, list) else [answer]:
        for event in decoder.feed(ServerEvent(json.dumps(piece))):
            fold.feed(event)
    return fold.reply()


def decode_history(body: bytes, scope: DecodeScope) -> sabir.DecodedHistory:
    """Return the messages, options and settings of a stored request.

    Raises HistoryInvalid for a result without its call and for unknown fields of an item, which would be lost. Core
    raises HistoryInvalid if the body is not a request.
    """
    request = json.loads(body)
    policies, calls = {"system": "system", "user": "user", "assistant": scope.policy}, dict[str, str]()
    messages = []
    for item in request["messages"]:
        payload = _decode_item(item, calls, scope)
        policy = payload.option_name if isinstance(payload, sabir.OptionResultPayload) else policies[item["from"]]
        origin = scope.origin(request["model"]) if item["from"] == "assistant" else None
        messages.append(sabir.Message(policy=policy, origin=origin, payload=payload))
    return sabir.DecodedHistory(
        messages=tuple(messages),
        options=tuple(sabir.Option.from_schema(**each) for each in request["options"]),
        settings=sabir.Settings(**request["settings"], extra_body=unknown_fields(request, KNOWN_FIELDS)),
        model=request["model"],
    )


ERRORS = ErrorTable()
"""Errors are read from the HTTP status only, because this API has no error codes."""


class PlainDecoder:
    """Reads the pieces of a stream. Words form a block of text, which ends before a call or the end of the reply.

    Pieces in a wrong order raise ResponseInvalid in core.
    """

    def __init__(self, scope: DecodeScope) -> None:
        self._scope, self._index = scope, -1
        self._words: list[str] = []

    def feed(self, event: ServerEvent) -> Iterator[sabir.StreamEvent]:
        """Yield the events of one piece: a word, a call, or the end. Unknown pieces are ignored.

        Raises the CallError that a piece reports.
        """
        piece = json.loads(event.data)
        if error := piece.get("error"):
            raise ERRORS.report(error, self._scope)
        if not piece.keys() & {"text", "call", "finish"}:
            return  # an unknown kind of piece, which a later version of this API may send
        if self._index < 0:
            self._index = 0
            yield sabir.ReplyStart(origin=self._scope.origin())
        if "text" in piece:
            if not self._words:
                yield sabir.BlockStart(index=self._index, kind="text")
            self._words.append(piece["text"])
            yield sabir.BlockDelta(index=self._index, kind="text", text=piece["text"])
            return
        if self._words:
            yield sabir.BlockEnd(index=self._index, block=sabir.TextPart(text="".join(self._words)))
            self._index, self._words = self._index + 1, []
        if call := piece.get("call"):
            payload = self._scope.read_call(call["id"], call["name"], call["arguments"])
            identity = {"invocation_id": payload.invocation_id, "option_name": payload.option_name}
            yield sabir.BlockStart(index=self._index, kind="option_call", **identity)
            yield sabir.BlockEnd(index=self._index, block=payload)
            self._index += 1
        else:
            reason, usage = piece["finish"], sabir.Usage(**piece["usage"])
            yield sabir.ReplyEnd(
                finish_reason=FINISH_REASONS.get(reason, "other"), raw_finish_reason=reason, usage=usage
            )

    def close(self) -> tuple[sabir.StreamEvent, ...]:
        """Return no events, because only the last piece ends the reply."""
        return ()


def _decode_item(
    item: Mapping[str, JSONValue], calls: dict[str, str], scope: DecodeScope
) -> sabir.PartsPayload | sabir.OptionCallPayload | sabir.OptionResultPayload:
    """Return the payload of one item. `calls` maps the ids of earlier calls to option names, and is updated."""
    call, error = item.get("call"), object_or_empty(item.get("failed"))
    known = ((item, ITEM_FIELDS), (call or {}, CALL_FIELDS), (error, ERROR_FIELDS))
    if unknown := [name for fields, names in known for name in unknown_fields(fields, names)]:
        raise HistoryInvalid(
            f"an item has the unknown fields {', '.join(unknown)}, which echo cannot keep; remove them"
        )
    if call:
        calls[call["id"]] = scope.option_names.get(call["name"], call["name"])
        return scope.read_call(call["id"], call["name"], call["arguments"])
    if "answers" not in item:
        return sabir.PartsPayload(parts=(sabir.TextPart(text=item["text"]),))
    if item["answers"] not in calls:
        answers = item["answers"]
        raise HistoryInvalid(f"a result answers the call {answers!r}, which no earlier item has; import all messages")
    name, failed = calls[item["answers"]], item["failed"]
    outcome: dict[str, JSONValue] = {"result": item["text"]}
    if failed:
        outcome = {"is_error": True, "error_message": item["text"], "retryable": error.get("retryable")}
        outcome["error_type"] = error.get("type") or ERROR_TYPE
    return sabir.OptionResultPayload(invocation_id=item["answers"], option_name=name, **outcome)


def _encode_entry(entry: Entry, target: sabir.Target, losses: LossLog) -> dict[str, JSONValue]:
    """Return the fields of one item of `messages`, except "from": a call, a result, or a text."""
    separator = "\n" if entry.message.result else ""
    text = separator.join(piece.text for piece in entry.pieces if isinstance(piece, sabir.TextPart))
    if entry.message.call:
        arguments = entry.arguments_text(target, losses, verbatim=True)
        return {"call": {"id": entry.wire_id, "name": entry.wire_name, "arguments": arguments}}
    if result := entry.message.result:
        if result.is_error:
            failed = {"type": result.error_type, "retryable": result.retryable}
            texts = filter(None, (result.error_message, text))
            return {"answers": entry.wire_id, "failed": failed, "text": "\n".join(texts)}
        value = result.result if isinstance(result.result, str) else result.result_json
        return {"answers": entry.wire_id, "failed": False, "text": text or value}
    return {"text": text}


PLAIN = Dialect(
    name=NAME,
    tables=Tables(),
    path=lambda target: "/echo",
    family=lambda model: "echo",  # this API signs nothing, so all models are one family
    prompt_fields=("options",),
    encode_turn=encode_turn,
    encode_request=encode_request,
    decode=decode,
    decoder=PlainDecoder,
    decode_history=decode_history,
    decode_error=ERRORS.decode,
)
"""The dialect `echo.plain`: text, option calls and their results, without media and token counting."""
