"""The wire of a scripted adapter that stands for no provider: it takes everything, so that nothing is lost on it.

    request  {"model": …, "options": […], "settings": {…}, "messages": [{"from": "user", "parts": […]}, …]}

An item is a message's parts, {"call": {"id": …, "name": …, "arguments": …}}, or {"answers": id of a call, …}.
"""

import json
from collections.abc import Mapping
from typing import Any, get_args

from sabir import (
    DecodedHistory,
    Message,
    Option,
    OptionCallPayload,
    OptionResultPayload,
    PartsPayload,
    Settings,
)
from sabir.authoring import (
    WIRE_SETTINGS,
    DecodeScope,
    Dialect,
    Entry,
    JSONValue,
    LossLog,
    MediaRule,
    Modality,
    RequestScope,
    Roles,
    Side,
    Tables,
    Turn,
    TurnScope,
)
from sabir.errors import SettingsInvalid

from sabir_testing.scripted.wire import decode, with_scripted_answers

NAME = "scripted"
"""The provider that a scripted adapter names where it stands for none."""

_EVERY_FORM = MediaRule(url="", data="", file="")
_OWN = frozenset({"reasoning", "refusal", "opaque"})
_TABLES = Tables(
    roles=Roles(native={"assistant": _OWN}, citations="native"),
    media={(side, modality): _EVERY_FORM for side in get_args(Side) for modality in get_args(Modality)},
)


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> list[JSONValue]:
    """One item a message."""
    return [{"from": turn.side, **_encode_entry(entry)} for entry in turn.entries]


def encode_request(scope: RequestScope) -> dict[str, JSONValue]:
    """Model, options, and every setting that is set; SettingsInvalid for vendor settings, as there are none."""
    if scope.vendor:
        remedy = "name the provider whose settings they are: ScriptedAdapter(…, model='provider:model')"
        raise SettingsInvalid(f"{NAME} has no settings of its own, {', '.join(scope.vendor)} given; {remedy}")
    options = [
        {"name": scope.option_names[each.name], "description": each.description, "parameters": each.parameters}
        for each in scope.options
    ]
    settings = {name: value for name in WIRE_SETTINGS if (value := scope.settings.take(name)) is not None}
    return {"model": scope.target.model, "options": options, "settings": settings}


def decode_history(body: bytes, scope: DecodeScope) -> DecodedHistory:
    """A request's messages, options and settings."""
    found = json.loads(body)
    called: dict[str, str] = {}
    policies = {"system": "system", "user": "user", "assistant": scope.policy}
    messages = []
    for item in found["messages"]:
        payload = _decode_item(item, called, scope)
        policy = payload.option_name if isinstance(payload, OptionResultPayload) else policies[item["from"]]
        messages.append(Message(policy=policy, payload=payload))
    return DecodedHistory(
        messages=tuple(messages),
        options=tuple(Option(**each) for each in found["options"]),
        settings=Settings(**found["settings"]),
        model=found["model"],
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
) -> PartsPayload | OptionCallPayload | OptionResultPayload:
    """What one item says; `called` are the options called so far, by the ids of their calls."""
    if call := item.get("call"):
        called[call["id"]] = scope.option_names.get(call["name"], call["name"])
        return scope.read_call(call["id"], call["name"], call["arguments"])
    if "answers" not in item:
        return PartsPayload(parts=item["parts"])
    answered = {"invocation_id": item["answers"], "option_name": called[item["answers"]]}
    if "failed" in item:
        return OptionResultPayload(**answered, is_error=True, **item["failed"])
    return OptionResultPayload(**answered, result=item.get("result"), parts=item.get("parts", ()))


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
"""The dialect `scripted.plain`: every kind of part, every setting, every option."""
