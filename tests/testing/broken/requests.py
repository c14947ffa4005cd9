"""Dialects that render something wrong, one thing each, where no recorded question has it.

a fault of the head     Head(edit)      what encode_request gives is edited
a fault of a turn       Turns(edit)     the turn that encode_turn is given is edited, or what it gives
a table that promises   Promising(…)    core passes what the leaf then leaves out, silently
"""

import html
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sabir.base.values import FrozenDict
from sabir.contract.scope import RequestScope
from sabir.contract.turns import Tables, Turn
from sabir.vocabulary.media import MediaRule
from sabir.vocabulary.messages import Message
from sabir.vocabulary.parts import MediaPart, TextPart
from sabir.vocabulary.settings import ModelInfo
from sabir_testing.kit.capabilities import FORMS, MODALITIES

from tests.testing.harness import Breakage, Delegate

Body = dict[str, Any]
Items = list[Any]
FORMS_OF_CORE = {"url": "url", "bytes": "data", "file": "file"}


class Head(Delegate):
    """Every field but the turns is edited."""

    def __init__(self, base: Any, edit: Callable[[Body, RequestScope], Body]) -> None:
        super().__init__(base)
        self.edit = edit

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        return self.edit(dict(self.base.encode_request(scope)), scope)


class Turns(Delegate):
    """The turn is edited before it is encoded, or its items after it."""

    def __init__(
        self,
        base: Any,
        before: Callable[[Turn], Turn] = lambda turn: turn,
        after: Callable[[Items, Turn], Items] = lambda items, turn: items,
    ) -> None:
        super().__init__(base)
        self.before, self.after = before, after

    def encode_turn(self, turn: Turn, scope: Any, losses: Any) -> Sequence[Any]:
        return self.after(list(self.base.encode_turn(self.before(turn), scope, losses)), turn)


def head(edit: Callable[[Body, RequestScope], Body]) -> Breakage:
    return Breakage(dialect=lambda base: Head(base, edit))


def before(edit: Callable[[Turn], Turn]) -> Breakage:
    return Breakage(dialect=lambda base: Turns(base, before=edit))


def after(edit: Callable[[Items, Turn], Items]) -> Breakage:
    return Breakage(dialect=lambda base: Turns(base, after=edit))


def texts(change: Callable[[str], str]) -> Breakage:
    """Every text is changed; one that would be empty is left."""

    def edit(turn: Turn) -> Turn:
        return turn._replace(entries=tuple(_changed(entry, change) for entry in turn.entries))

    return before(edit)


def _changed(entry: Any, change: Callable[[str], str]) -> Any:
    pieces = tuple(
        piece.model_copy(update={"text": change(piece.text) or piece.text}) if isinstance(piece, TextPart) else piece
        for piece in entry.pieces
    )
    return entry._replace(pieces=pieces)


def results(change: Callable[[Any], Any]) -> Breakage:
    """The value of every result is changed."""

    def edit(turn: Turn) -> Turn:
        return turn._replace(entries=tuple(_with_result(entry, change) for entry in turn.entries))

    return before(edit)


def _with_result(entry: Any, change: Callable[[Any], Any]) -> Any:
    result = entry.message.result
    if result is None or result.is_error or result.parts:
        return entry
    payload = result.model_copy(update={"result": change(result.result)})
    return entry._replace(message=entry.message.model_copy(update={"payload": payload}))


# --- who said what ----------------------------------------------------------------------------------------------------


def _nameless(body: Body, scope: RequestScope) -> Body:
    """Without a limit, which every recorded question has, the model is forgotten."""
    return body if "limit" in body else {name: value for name, value in body.items() if name != "model"}


def _one_word(message: Message) -> bool:
    return bool(message.text) and "-" in message.text and " " not in message.text


def _as_users(items: Items, turn: Turn) -> Items:
    """What the model said in one hyphenated word is taken for the user's."""
    if turn.side == "assistant" and all(_one_word(entry.message) for entry in turn.entries):
        return [{**item, "by": "user"} for item in items]
    return items


class Unmarked(Delegate):
    """Instructions in the middle stand as the user's; a loss says so unless it is one hyphenated word."""

    @property
    def tables(self) -> Tables:
        tables: Tables = self.base.tables
        return replace(tables, roles=replace(tables.roles, later_system="inline"))

    def encode_turn(self, turn: Turn, scope: Any, losses: Any) -> Sequence[Any]:
        if turn.side != "system":
            return self.base.encode_turn(turn, scope, losses)  # type: ignore[no-any-return]
        for entry in turn.entries:
            if not _one_word(entry.message):
                losses.add("downgraded", "instructions in the middle stand as the user's", message=entry.message)
        return self.base.encode_turn(turn._replace(side="user"), scope, losses)  # type: ignore[no-any-return]


def _reversed(turn: Turn) -> Turn:
    """Three messages of the user's and more come in the order in which they were found last."""
    is_long = turn.side == "user" and len(turn.entries) >= 3 and all(entry.message.text for entry in turn.entries)
    return turn._replace(entries=turn.entries[::-1]) if is_long else turn


def _cut_instructions(body: Body, scope: RequestScope) -> Body:
    return {**body, "instructions": body["instructions"][:100]} if "instructions" in body else body


def _cut_later(turn: Turn) -> Turn:
    def cut(entry: Any) -> Any:
        return _changed(entry, lambda text: text[:100]) if entry.message.policy == "system" else entry

    return turn if turn.side == "system" else turn._replace(entries=tuple(map(cut, turn.entries)))


# --- options, calls, results ------------------------------------------------------------------------------------------


def _unsaid(field: str, value: Any, body: Body, scope: RequestScope) -> Body:
    """Without a limit, which every recorded question has, a field of each option says something else."""
    if "limit" in body or "tools" not in body:
        return body
    return {**body, "tools": [{**each, field: value} for each in body["tools"]]}


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


# --- media ------------------------------------------------------------------------------------------------------------


class Promising(Delegate):
    """The tables say that a medium is taken in a form; the leaf leaves it out, but for the recorded PNG."""

    def __init__(self, base: Any, side: str, modality: str, form: str) -> None:
        super().__init__(base)
        self.side, self.modality, self.form = side, modality, form

    @property
    def tables(self) -> Tables:
        found: Tables = self.base.tables
        row: Any = (self.side, self.modality)
        rule = found.media.get(row, MediaRule())
        return replace(found, media={**found.media, row: replace(rule, **{self.form: ""})})

    def encode_turn(self, turn: Turn, scope: Any, losses: Any) -> Sequence[Any]:
        entries = tuple(entry._replace(pieces=tuple(filter(self.is_kept, entry.pieces))) for entry in turn.entries)
        kept = turn._replace(entries=entries) if turn.side == self.side else turn
        return self.base.encode_turn(kept, scope, losses)  # type: ignore[no-any-return]

    def is_kept(self, piece: Any) -> bool:
        if not isinstance(piece, MediaPart) or piece.modality != self.modality or piece.form != self.form:
            return True
        return self.form != "file" and ("image/png" in piece.url[:20] or piece.name is None)


def media() -> dict[str, Breakage]:
    rows = {
        f"test_a_medium_is_sent_or_reported[{modality}-{form}]": ("user", modality, FORMS_OF_CORE[form])
        for modality in MODALITIES
        for form in FORMS
    } | {
        f"test_a_medium_in_a_result_is_sent_or_reported[{modality}]": ("results", modality, "data")
        for modality in MODALITIES
    }
    return {case: Breakage(dialect=partial(_promising, row=row), provider=Unlimited) for case, row in rows.items()}


class Unlimited(Delegate):
    """Of no model is it known which media it reads, so that only the dialect's tables decide."""

    def models(self) -> tuple[ModelInfo, ...]:
        return ()


def _promising(base: Any, row: tuple[str, str, str]) -> Promising:
    return Promising(base, *row)


# --- settings ---------------------------------------------------------------------------------------------------------


def _field(name: str, change: Callable[[Any], Any]) -> Breakage:
    """A field is changed, where there is one; None leaves it out."""

    def edit(body: Body, scope: RequestScope) -> Body:
        changed = {**body, name: change(body[name])} if name in body else body
        return {key: value for key, value in changed.items() if value is not None}

    return head(edit)


def _with_two_options(edit: Callable[[Body], Body]) -> Breakage:
    return head(lambda body, scope: edit(body) if len(scope.options) >= 2 else body)


def _without(name: str, body: Body) -> Body:
    return {key: value for key, value in body.items() if key != name}


def _without_if_alone(name: str, body: Body, scope: RequestScope) -> Body:
    """Zero is taken for nothing, where no limit stands beside it."""
    return body if body.get(name) or "limit" in body else _without(name, body)


def _nothing_of_one(shape: Body) -> Body:
    """A shape of one property loses it."""
    schema = shape["schema"]
    if len(schema["properties"]) != 1 or "required" not in schema:
        return shape
    return {**shape, "schema": {"type": "object"}}


class Forgetful(Delegate):
    """A setting is never taken where two options are offered."""

    def __init__(self, base: Any, name: str) -> None:
        super().__init__(base)
        self.name_of_setting = name

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        if len(scope.options) < 2:
            return self.base.encode_request(scope)  # type: ignore[no-any-return]
        return self.base.encode_request(replace(scope, settings=_Reader(scope.settings, self.name_of_setting)))  # type: ignore[no-any-return]


class _Reader(Delegate):
    def __init__(self, base: Any, forgotten: str) -> None:
        super().__init__(base)
        self.forgotten = forgotten

    def take(self, name: str) -> Any:
        return None if name == self.forgotten else self.base.take(name)


class Careless(Delegate):
    """Whatever stands under the provider's name is ignored."""

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        return self.base.encode_request(replace(scope, vendor=FrozenDict()))  # type: ignore[no-any-return]


class CountsNothing(Delegate):
    def encode_count(self, body: Mapping[str, Any], scope: Any) -> tuple[str, Mapping[str, Any]]:
        return "/count", {"model": body["model"]}


WIRE_SETTINGS = (
    "max_output_tokens", "temperature", "top_p", "stop", "seed", "reasoning_effort", "option_choice",
    "parallel_options", "response_format",
)  # fmt: skip

BROKEN: Mapping[str, Breakage] = {
    "test_a_request_names_its_model": head(_nameless),
    "test_a_text_is_sent_as_it_is[white space]": texts(str.lstrip),
    "test_a_text_is_sent_as_it_is[markup]": texts(partial(html.escape, quote=False)),
    "test_a_text_is_sent_as_it_is[other scripts]": texts(partial(unicodedata.normalize, "NFD")),
    "test_a_text_is_sent_as_it_is[beyond the basic plane]": texts(
        lambda text: "".join(each for each in text if ord(each) <= 0xFFFF)
    ),
    "test_sides_are_told_apart[llm]": after(_as_users),
    "test_sides_are_told_apart[system]": Breakage(dialect=Unmarked),
    "test_messages_keep_their_order": before(_reversed),
    "test_instructions_are_sent_or_reported[system]": head(_cut_instructions),
    "test_instructions_are_sent_or_reported[later_system]": before(_cut_later),
    "test_an_option_is_offered[name]": head(partial(_unsaid, "name", "tool")),
    "test_an_option_is_offered[description]": head(partial(_unsaid, "description", "")),
    "test_an_option_is_offered[parameters]": head(partial(_unsaid, "parameters", {"type": "object"})),
    "test_a_call_is_sent_with_its_result[text]": results(
        lambda value: value[:200] if isinstance(value, str) else value
    ),
    "test_a_call_is_sent_with_its_result[object]": results(
        lambda value: list(value) if isinstance(value, Mapping) else value
    ),
    "test_a_call_is_sent_with_its_result[list]": results(
        lambda value: value[0] if isinstance(value, Sequence) and not isinstance(value, str) and value else value
    ),
    "test_a_call_is_sent_with_its_result[number]": results(
        lambda value: int(value) if isinstance(value, float) else value
    ),
    "test_parallel_calls_stay_together": before(_swapped),
    "test_a_failure_is_told_apart_from_a_success": after(_successful),
    **media(),
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
    **{
        f"test_a_zero_is_a_value[{name}]": head(partial(_without_if_alone, name))
        for name in ("temperature", "top_p", "seed")
    },
    "test_a_choice_of_option_is_sent_or_reported[auto]": _with_two_options(
        lambda body: {**body, "choice": "required"} if body.get("choice") == "auto" else body
    ),
    "test_a_choice_of_option_is_sent_or_reported[none]": _with_two_options(
        lambda body: _without("choice", body) if body.get("choice") == "none" else body
    ),
    "test_a_choice_of_option_is_sent_or_reported[required]": _with_two_options(
        lambda body: _without("choice", body) if body.get("choice") == "required" else body
    ),
    "test_a_choice_of_option_is_sent_or_reported[named]": _with_two_options(
        lambda body: _without("choice", body) if isinstance(body.get("choice"), Mapping) else body
    ),
    **{
        f"test_a_setting_is_looked_at[{name}]": Breakage(dialect=partial(Forgetful, name=name))
        for name in WIRE_SETTINGS
    },
    "test_an_unknown_setting_of_the_vendor_is_refused": Breakage(dialect=Careless),
    "test_a_count_is_asked_for": Breakage(dialect=CountsNothing),
}
