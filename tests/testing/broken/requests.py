"""Dialects that render something wrong, one thing each, where no recorded question has it.

a fault of the head     head(edit)            what encode_request gives is edited
a fault of a turn       before, after(edit)   the turn that encode_turn is given is edited, or what it gives
a table that promises   Promising(…)          core passes what the leaf then leaves out, silently
"""

import html
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sabir.authoring import WIRE_SETTINGS, NativeTool
from sabir.base.values import FrozenDict
from sabir.contract.dialect import Dialect
from sabir.contract.scope import RequestScope
from sabir.contract.turns import LossLog, Turn, TurnScope
from sabir.vocabulary.media import MediaRule
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart, TextPart
from sabir_testing.kit.capabilities import MODALITIES, NATIVE_TOOLS

from tests.testing.harness import Breakage, Delegate, changed

Body = dict[str, Any]
Items = list[Any]
FORMS = {"url": "url", "bytes": "data", "file": "file"}
"""What the kit calls a form of media → what core does."""


def head(edit: Callable[[Body], Body]) -> Breakage:
    """Every field but the turns is edited."""
    return changed(encode_request=lambda own, scope: edit(dict(own(scope))))


def before(edit: Callable[[Turn], Turn]) -> Breakage:
    """The turn is edited before it is encoded."""
    return changed(encode_turn=lambda own, turn, scope, losses: own(edit(turn), scope, losses))


def after(edit: Callable[[Items, Turn], Items]) -> Breakage:
    """The items are edited after the turn was encoded."""
    return changed(encode_turn=lambda own, turn, scope, losses: edit(list(own(turn, scope, losses)), turn))


def entries(change: Callable[[Any], Any]) -> Breakage:
    """Every entry of a turn is changed."""
    return before(lambda turn: turn._replace(entries=tuple(map(change, turn.entries))))


def texts(change: Callable[[str], str]) -> Breakage:
    """Every text is changed; one that would be empty is left."""
    return entries(lambda entry: _changed(entry, change))


def _changed(entry: Any, change: Callable[[str], str]) -> Any:
    pieces = tuple(
        piece.model_copy(update={"text": change(piece.text) or piece.text}) if isinstance(piece, TextPart) else piece
        for piece in entry.pieces
    )
    return entry._replace(pieces=pieces)


def results(kind: type, change: Callable[[Any], Any]) -> Breakage:
    """The value of every result that is of a kind is changed."""

    def edit(entry: Any) -> Any:
        result = entry.message.result
        if result is None or result.is_error or result.parts or not isinstance(result.result, kind):
            return entry
        payload = result.model_copy(update={"result": change(result.result)})
        return entry._replace(message=entry.message.model_copy(update={"payload": payload}))

    return entries(edit)


# --- who said what ----------------------------------------------------------------------------------------------------


def _nameless(body: Body) -> Body:
    """Without a limit, which every recorded question has, the model is forgotten."""
    return body if "limit" in body else _without("model", body)


def _one_word(message: Message) -> bool:
    return bool(message.text) and "-" in message.text and " " not in message.text


def _as_users(items: Items, turn: Turn) -> Items:
    """What the model said in one hyphenated word is taken for the user's."""
    if turn.side == "assistant" and all(_one_word(entry.message) for entry in turn.entries):
        return [{**item, "by": "user"} for item in items]
    return items


def unmarked(base: Dialect) -> Dialect:
    """Instructions in the middle stand as the user's; a loss says so unless it is one hyphenated word."""

    def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
        if turn.side == "system":
            for entry in turn.entries:
                if not _one_word(entry.message):
                    losses.add("downgraded", "instructions in the middle stand as the user's", message=entry.message)
            turn = turn._replace(side="user")
        return base.encode_turn(turn, scope, losses)

    roles = replace(base.tables.roles, later_system="inline")
    return replace(base, tables=replace(base.tables, roles=roles), encode_turn=encode_turn)


def _reversed(turn: Turn) -> Turn:
    """Three messages of the user's and more come in the order in which they were found last."""
    is_long = turn.side == "user" and len(turn.entries) >= 3 and all(entry.message.text for entry in turn.entries)
    return turn._replace(entries=turn.entries[::-1]) if is_long else turn


def _cut_later(turn: Turn) -> Turn:
    """Of later instructions the beginning alone."""
    is_later = turn.side != "system"
    cut = [
        _changed(entry, lambda text: text[:100]) if is_later and entry.message.policy == "system" else entry
        for entry in turn.entries
    ]
    return turn._replace(entries=tuple(cut))


# --- options, calls, results ------------------------------------------------------------------------------------------


def _unsaid(field: str, value: Any, body: Body) -> Body:
    """Without a limit, which every recorded question has, a field of the option `lookup` says something else."""
    if "limit" in body or "tools" not in body:
        return body
    tools = [{**each, field: value} if each["name"] == "lookup" else each for each in body["tools"]]
    return {**body, "tools": tools}


def _swapped(turn: Turn) -> Turn:
    """Of two results the later comes first."""
    is_pair = turn.side == "results" and len(turn.entries) == 2
    return turn._replace(entries=turn.entries[::-1]) if is_pair else turn


def _successful(items: Items, turn: Turn) -> Items:
    """A failure told in one word is a success of that word."""
    return [{**item, "parts": [_mended(part) for part in item["parts"]]} for item in items]


def _mended(part: Any) -> Any:
    error = part.get("error") if part.get("type") == "result" else None
    if not error or " " in error["message"]:
        return part
    parts = [{"type": "text", "text": error["message"]}]
    return {"type": "result", "id": part["id"], "parts": parts}


def boasting(kind: str) -> Breakage:
    """The tables have a vendor's tool, but its declaration is left out."""

    tool = NativeTool(lambda option, own, scope: {"own_tools": [kind]})

    def broken(base: Dialect) -> Dialect:
        return replace(base, tables=replace(base.tables, native={**base.tables.native, kind: tool}))

    return Breakage(dialect=broken)


def _without_count(body: Body) -> Body:
    """Without a limit, which every recorded question has, the only option is left out if it counts."""
    names = [each.get("name") for each in body.get("tools", ())]
    return body if "limit" in body or names != ["count"] else _without("tools", body)


# --- media ------------------------------------------------------------------------------------------------------------


def _unlimited(base: Any) -> Any:
    """Of no model is it known which media it reads, so that only the dialect's tables decide."""
    base.models = tuple
    return base


def promising(side: str, modality: str, form: str) -> Breakage:
    """The tables say that a medium is taken in a form; the leaf leaves it out, but for the recorded PNG."""

    def is_kept(piece: Any) -> bool:
        if not isinstance(piece, MediaPart) or (piece.modality, piece.form) != (modality, FORMS[form]):
            return True
        return form != "file" and ("image/png" in piece.url[:20] or piece.name is None)

    def sift(entry: Any) -> Any:
        is_error = entry.message.result is not None and entry.message.result.is_error
        return entry if is_error else entry._replace(pieces=tuple(filter(is_kept, entry.pieces)))

    def broken(base: Dialect) -> Dialect:
        row: Any = (side, modality)
        rule = replace(base.tables.media.get(row, MediaRule()), **{FORMS[form]: ""})

        def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
            sifted = tuple(map(sift, turn.entries))
            return base.encode_turn(turn._replace(entries=sifted) if turn.side == side else turn, scope, losses)

        tables = replace(base.tables, media={**base.tables.media, row: rule})
        return replace(base, tables=tables, encode_turn=encode_turn)

    return Breakage(dialect=broken, provider=_unlimited)


# --- settings ---------------------------------------------------------------------------------------------------------


def _field(name: str, change: Callable[[Any], Any]) -> Breakage:
    """A field is changed, where there is one; None leaves it out."""

    def edit(body: Body) -> Body:
        return _put(name, change(body[name]), body) if name in body else body

    return head(edit)


def _put(name: str, value: Any, body: Body) -> Body:
    """A body in which a field has a value; None leaves it out."""
    return {key: each for key, each in {**body, name: value}.items() if each is not None}


def _without(name: str, body: Body) -> Body:
    return _put(name, None, body)


def _with_two_options(edit: Callable[[Body], Body]) -> Breakage:
    """The head is edited where two options are offered, as in no recorded question."""
    return changed(encode_request=lambda own, scope: (edit if len(scope.options) >= 2 else dict)(own(scope)))


def _choosing(is_meant: Callable[[Any], bool], instead: str | None = None) -> Breakage:
    """A choice is another, or none."""
    return _with_two_options(lambda body: _put("choice", instead, body) if is_meant(body.get("choice")) else body)


def _without_if_alone(name: str, body: Body) -> Body:
    """Zero is taken for nothing, where no limit stands beside it."""
    return body if body.get(name) or "limit" in body else _without(name, body)


def _nothing_of_one(shape: Body) -> Body:
    """A shape of one property loses it."""
    schema = shape["schema"]
    if len(schema["properties"]) != 1 or "required" not in schema:
        return shape
    return {**shape, "schema": {"type": "object"}}


class Forgetting(Delegate):
    """Settings of which one is never taken."""

    def __init__(self, base: Any, forgotten: str) -> None:
        super().__init__(base)
        self.forgotten = forgotten

    def take(self, name: str) -> Any:
        return None if name == self.forgotten else self.base.take(name)


def forgetful(name: str) -> Breakage:
    """A setting is never taken where two options are offered."""

    def encode_request(own: Any, scope: RequestScope) -> Any:
        settings: Any = scope.settings if len(scope.options) < 2 else Forgetting(scope.settings, name)
        return own(replace(scope, settings=settings))

    return changed(encode_request=encode_request)


BROKEN: Mapping[str, Breakage] = {
    "test_a_request_names_its_model": head(_nameless),
    "test_a_text_is_sent_as_it_is[white space]": texts(str.lstrip),
    "test_a_text_is_sent_as_it_is[markup]": texts(partial(html.escape, quote=False)),
    "test_a_text_is_sent_as_it_is[other scripts]": texts(partial(unicodedata.normalize, "NFD")),
    "test_a_text_is_sent_as_it_is[beyond the basic plane]": texts(
        lambda text: "".join(each for each in text if ord(each) <= 0xFFFF)
    ),
    "test_sides_are_told_apart[llm]": after(_as_users),
    "test_sides_are_told_apart[system]": Breakage(dialect=unmarked),
    "test_messages_keep_their_order": before(_reversed),
    "test_instructions_are_sent_or_reported[system]": _field("instructions", lambda said: said[:100]),
    "test_instructions_are_sent_or_reported[later_system]": before(_cut_later),
    "test_an_option_is_offered[name]": head(partial(_unsaid, "name", "tool")),
    "test_an_option_is_offered[description]": head(partial(_unsaid, "description", "")),
    "test_an_option_is_offered[parameters]": head(partial(_unsaid, "parameters", {"type": "object"})),
    "test_a_call_is_sent_with_its_result[text]": results(str, lambda value: value[:200]),
    "test_a_call_is_sent_with_its_result[object]": results(dict, list),
    "test_a_call_is_sent_with_its_result[list]": results(list, lambda value: next(iter(value), value)),
    "test_a_call_is_sent_with_its_result[number]": results(float, int),
    "test_parallel_calls_stay_together": before(_swapped),
    "test_a_failure_is_told_apart_from_a_success": after(_successful),
    **{
        f"test_a_medium_is_sent_or_reported[{modality}-{form}]": promising("user", modality, form)
        for modality in MODALITIES
        for form in FORMS
    },
    **{
        f"test_a_medium_in_a_result_is_sent_or_reported[{modality}]": promising("results", modality, "bytes")
        for modality in MODALITIES
    },
    "test_a_setting_is_sent_or_reported[max_output_tokens]": _field("limit", lambda value: min(value, 5000)),
    "test_a_setting_is_sent_or_reported[temperature]": _field("temperature", lambda value: round(value, 1)),
    "test_a_setting_is_sent_or_reported[top_p]": _field("top_p", lambda value: round(value, 1)),
    "test_a_setting_is_sent_or_reported[stop]": _field("stops", lambda value: [each[:3] for each in value]),
    "test_a_setting_is_sent_or_reported[seed]": _field("seed", lambda value: min(value, 65535)),
    "test_a_setting_is_sent_or_reported[reasoning_effort]": _field(
        "effort", lambda value: None if value == "high" else value
    ),
    "test_a_setting_is_sent_or_reported[parallel_options]": _with_two_options(partial(_without, "parallel")),
    "test_a_setting_is_sent_or_reported[response_format]": _field("shape", _nothing_of_one),
    "test_a_setting_is_sent_or_reported[prompt_cache]": _with_two_options(partial(_without, "cache")),
    **{
        f"test_a_zero_is_a_value[{name}]": head(partial(_without_if_alone, name))
        for name in ("temperature", "top_p", "seed")
    },
    "test_a_choice_of_option_is_sent_or_reported[auto]": _choosing(lambda choice: choice == "auto", "required"),
    "test_a_choice_of_option_is_sent_or_reported[none]": _choosing(lambda choice: choice == "none"),
    "test_a_choice_of_option_is_sent_or_reported[required]": _choosing(lambda choice: choice == "required"),
    "test_a_choice_of_option_is_sent_or_reported[named]": _choosing(lambda choice: isinstance(choice, Mapping)),
    **{f"test_a_native_option_is_sent_or_reported[{kind}]": boasting(kind) for kind in NATIVE_TOOLS},
    "test_a_function_replaces_a_missing_tool": head(_without_count),
    "test_a_native_call_of_another_vendor_is_sent_as_text": texts(
        lambda text: "Something." if text.startswith("[kit_search") else text
    ),
    **{f"test_a_setting_is_looked_at[{name}]": forgetful(name) for name in WIRE_SETTINGS if name != "prompt_cache"},
    "test_a_newer_setting_is_looked_at": forgetful("prompt_cache"),
    "test_an_unknown_setting_of_the_vendor_is_refused": changed(
        encode_request=lambda own, scope: own(replace(scope, vendor=FrozenDict()))
    ),
    "test_a_count_is_asked_for": changed(encode_count=lambda own, body, scope: ("/count", {"model": body["model"]})),
}
