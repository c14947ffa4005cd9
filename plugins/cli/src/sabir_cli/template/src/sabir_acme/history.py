"""A stored request → messages, options and settings: encode.py backwards, for conversations that others kept.

    instructions ─▶ policy "system"      by user ─▶ policy "user"      by model ─▶ the model's      by option ─▶ results

Change: TURNS, and what each reads. What has no place is a loss, or stays in `extra_body`, verbatim.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sabir import DecodedHistory, OptionResultPayload, TextPart
from sabir.authoring import (
    DecodeScope,
    History,
    ReplyBuilder,
    expect,
    expect_name,
    fields,
    left_over,
    listed,
    read_request,
    text,
)
from sabir.errors import HistoryInvalid

from sabir_acme.decode import read_block, read_part
from sabir_acme.encode import SETTINGS
from sabir_acme.settings import AcmeSettings

READ = {"model", "instructions", "turns", "tools", "choice", "shape", "stream", *SETTINGS.values()}
NO_PLACE = "sabir has no place for it"


def decode_history(body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The request as sabir's own data; HistoryInvalid for what is no request of this dialect."""
    found = read_request(body, scope)
    history = History(found, scope, AcmeSettings)
    if found.get("instructions") is not None:
        history.say("system", [TextPart(text=expect(found["instructions"], str, "instructions"))], "instructions")
    for index, turn in enumerate(expect(found.get("turns"), list, "turns")):
        path = f"turns[{index}]"
        if (by := text(expect(turn, dict, path).get("by"))) not in TURNS:
            raise HistoryInvalid(f"{path}.by is {by!r}; expected one of {', '.join(TURNS)}")
        history.lose_unknown(turn, {"by", "parts"}, path, NO_PLACE)
        TURNS[by](history, expect(turn.get("parts"), list, f"{path}.parts"), path)
    for index, tool in enumerate(listed(found, "tools")):
        path = f"tools[{index}]"
        history.lose_unknown(expect(tool, dict, path), {"name", "description", "parameters"}, path, NO_PLACE)
        if not history.add_option(text(tool.get("name")), text(tool.get("description")), tool.get("parameters")):
            history.lose("dropped", path, "it declares no option")
    _settings(history, found)
    return history.whole()


def _settings(history: History, found: Mapping[str, Any]) -> None:
    choice, shape = found.get("choice"), fields(found.get("shape"))
    for setting, field in SETTINGS.items():
        if found.get(field) is not None:
            history.put(setting, found[field], field)
    if choice is not None and not history.choose(choice, text(fields(choice).get("name"))):
        history.put_extra("choice", choice)
    if shape and not history.hold_to(text(shape.get("name")), shape.get("schema"), shape.get("description")):
        history.put_extra("shape", shape)
    if found.get("stream"):
        history.lose("dropped", "stream", "a call streams by `stream` instead of `complete`")
    for name, value in left_over(found, READ).items():
        history.put_vendor(name, value)


def _user(history: History, parts: list[Any], path: str) -> None:
    history.say("user", [read_part(each, history.scope) for each in parts], path)


def _model(history: History, parts: list[Any], path: str) -> None:
    builder = ReplyBuilder(history.scope)
    for each in parts:
        builder.add(read_block(each, history.scope))
    history.extend(builder.messages(history.origin))


def _option(history: History, results: list[Any], path: str) -> None:
    for index, result in enumerate(results):
        place = f"{path}.parts[{index}]"
        call_id, error = expect_name(expect(result, dict, place).get("id"), f"{place}.id"), fields(result.get("error"))
        history.lose_unknown(result, {"type", "id", "parts", "error"}, place, NO_PLACE)
        parts = tuple(read_part(each, history.scope) for each in listed(result, "parts"))
        if not error:
            only = parts[0] if len(parts) == 1 else None
            history.answer(call_id, only.text if isinstance(only, TextPart) else parts, place)
            continue
        failure: dict[str, Any] = {f"error_{name}": text(error.get(name)) or "failed" for name in ("type", "message")}
        failure |= {"is_error": True, "retryable": error.get("retryable"), "parts": parts}
        name = history.option_of(call_id, place)
        history.add_result(OptionResultPayload(invocation_id=call_id, option_name=name, **failure))


TURNS: Mapping[str, Callable[[History, list[Any], str], None]] = {"user": _user, "model": _model, "option": _option}
