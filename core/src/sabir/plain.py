"""Plain turns: texts, calls and results alone, filled into what one turn of their shape rendered to.

    turn  ─▶ shape: whose it is, whom it follows, what kinds of entries it has        nothing of what they say
    shape ─▶ encode_turn, once, of a turn that says marks ─▶ Stencil: {"role":"user","content": ▯ }
    turn  ─▶ its stencil, filled in with its own texts, identifiers, names, arguments

Most turns of most conversations are plain. A turn has the same bytes whether it is filled in or encoded by itself:
that is for a dialect to keep, which says so by `Tables.plain_turns`, and for its tests to show. A turn with anything
else in it (media, state, white space at an end, a foreign identifier, a call without its result) is not plain, and a
shape that has losses has no stencil.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pydantic_core import to_json

from sabir.contracts import Dialect
from sabir.identifiers import Identifiers
from sabir.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload, Payload
from sabir.pairing import side_of
from sabir.parts import TextPart
from sabir.scope import Side, TurnScope
from sabir.stencils import Stencil, learn

MOST_SHAPES = 256
"""How many stencils are kept; a conversation of more shapes has none to speak of."""
MOST_MESSAGES = 64
"""How many messages are filled in at once, so that a long history has boundaries to return to."""
_EXPONENT = re.compile(r"\d[eE]")
"""Where JSON text may write a number in more ways than one."""

Shape: TypeAlias = tuple[Side, Side | None, str]
"""Whose turn, whom it follows, and the kinds of its entries: a letter each, a capital where its maker's state goes."""


class Filled(NamedTuple):
    """Plain turns in order, as JSON; where the first message stands that is in none, and whom it follows."""

    items: list[bytes]
    end: int
    last_side: Side | None


class _Exchange(NamedTuple):
    """Calls of the assistant, perhaps after a text, and their results: the slots of what they say."""

    end: int
    kinds: str
    slots: list[str]
    calls: list[OptionCallPayload]


class PlainTurns:
    """The stencils of one scope, each learnt from the first turn of its shape."""

    def __init__(self, dialect: Dialect, scope: TurnScope, is_home: Callable[[Origin | None], bool]) -> None:
        self._dialect = dialect
        self._scope = scope
        self._is_home = is_home
        self._places: dict[tuple[type[Payload], str, str | None], tuple[Side, bool]] = {}
        self._stencils: dict[Shape, Stencil | None] = {}

    def fill(
        self, messages: list[Message], start: int, follows: Side | None, call_ids: Identifiers, names: Identifiers
    ) -> Filled:
        """Fill in the turns from a position on, as long as they are plain and closed by what comes after them."""
        items: list[bytes] = []
        at, last = start, min(len(messages) - 1, start + MOST_MESSAGES)
        while at < last:
            begun = at
            at, follows = self._fill_texts(messages, at, last, follows, items)
            if at < last:
                at, follows = self._fill_exchange(messages, at, follows, call_ids, names, items)
            if at == begun:
                break
        return Filled(items, at, follows)

    def _fill_texts(
        self, messages: list[Message], at: int, last: int, follows: Side | None, items: list[bytes]
    ) -> tuple[int, Side | None]:
        """Fill in turns of one text each; every message of a conversation passes here, so that it calls little."""
        places, stencils, is_home = self._places, self._stencils, self._is_home
        message = messages[at]
        payload = message.payload
        side, is_plain = self._place(message)
        while is_plain and at < last and type(payload) is PartsPayload:
            part = payload.parts[0]
            if type(part) is not TextPart or part.citations or part.state_json is not None or len(payload.parts) > 1:
                break
            text, following = part.text, messages[at + 1]
            payload = following.payload
            key = type(payload), following.policy, following.role_hint_for_llm
            next_side, is_plain = places.get(key) or self._place(following)
            # A result may belong to whatever stands before it.
            if not text or text.strip() != text or next_side in (side, "results"):
                break
            shape = side, follows, "T" if message.origin is not None and is_home(message.origin) else "t"
            stencil = stencils.get(shape) or self._stencil(shape, messages[at : at + 1])
            if stencil is None:
                break
            opening, ((_, _, closing),) = stencil
            items.append(opening + to_json(text) + closing)
            at, message, follows, side = at + 1, following, side, next_side
        return at, follows

    def _place(self, message: Message) -> tuple[Side, bool]:
        """The side whose turn a message joins, and whether it may be a plain one of it."""
        key = type(message.payload), message.policy, message.role_hint_for_llm
        found = self._places.get(key)
        if found is None:
            side = side_of(message, self._scope.speaks_as)
            joins_user = side == "system" and self._scope.tables.later_system != "inline"
            found = "user" if joins_user else side, not joins_user and message.role_hint_for_llm != "tool"
            if len(self._places) < MOST_SHAPES:
                self._places[key] = found
        return found

    def _fill_exchange(
        self,
        messages: list[Message],
        at: int,
        follows: Side | None,
        call_ids: Identifiers,
        names: Identifiers,
        items: list[bytes],
    ) -> tuple[int, Side | None]:
        """Fill in an assistant's turn with calls, and that of their results; where it is none, nothing."""
        side, is_plain = self._place(messages[at])
        exchange = self._exchange(messages, at, call_ids, names) if side == "assistant" and is_plain else None
        if exchange is None:
            return at, follows
        stencil = self._stencil((side, follows, exchange.kinds), messages[at : exchange.end])
        if stencil is None:
            return at, follows
        items.append(stencil.filled(exchange.slots))
        for call in exchange.calls:
            call_ids.keep(call.invocation_id)
            names.name(call.option_name)
        return exchange.end, "results"

    def _exchange(
        self, messages: list[Message], start: int, call_ids: Identifiers, names: Identifiers
    ) -> _Exchange | None:
        """What the assistant chose from a position on, and all its results in their order; None if it is not plain."""
        at, end, kinds = start, len(messages), ""
        slots: list[str] = []
        calls: list[OptionCallPayload] = []
        while at < end and type(payload := messages[at].payload) is not OptionResultPayload:
            if type(payload) is OptionCallPayload:
                kind = self._take_call(messages[at], payload, slots)
                is_known = any(call.invocation_id == payload.invocation_id for call in calls)
                is_kept = call_ids.keeps(payload.invocation_id) and names.keeps_name(payload.option_name)
                if is_known or not is_kept:
                    return None
                calls.append(payload)
            else:
                text = _text_of(payload)
                kind = "t" if text and at == start else ""
                slots.append(text)
            if not kind:
                return None
            kinds += kind.upper() if self._is_home(messages[at].origin) else kind
            at += 1
        if not calls or at + len(calls) >= end:
            return None
        for call in calls:
            kind, slot = _result_of(messages[at].payload, call)
            if not kind:
                return None
            kinds += kind.upper() if self._is_home(messages[at].origin) else kind
            slots.append(slot)
            at += 1
        return _Exchange(at, kinds, slots, calls)

    def _take_call(self, message: Message, call: OptionCallPayload, slots: list[str]) -> str:
        """The kind of a call, "o" where its own wire's text is kept, and "" where it is not plain; fills its slots."""
        raw, origin = call.raw_arguments or "", message.origin
        is_own = raw != "" and origin is not None and origin.dialect == self._scope.target.dialect
        slots += (call.invocation_id, call.option_name, call.arguments_json, raw if is_own else "")
        is_plain = call.state_json is None and not call.invalid_arguments
        return ("o" if is_own else "c") if is_plain and not _EXPONENT.search(call.arguments_json) else ""

    def _stencil(self, shape: Shape, turn: list[Message]) -> Stencil | None:
        """The stencil of a shape, learnt from this turn of it if need be; None where it has none."""
        if shape not in self._stencils:
            if len(self._stencils) >= MOST_SHAPES:
                return None
            marked = [(message, self._is_home(message.origin)) for message in turn]
            self._stencils[shape] = learn(self._dialect, self._scope, shape[0], shape[1], marked)
        return self._stencils[shape]


def _text_of(payload: Payload) -> str:
    """The text of a payload that is one plain text; "" for any other."""
    if type(payload) is not PartsPayload or len(payload.parts) != 1:
        return ""
    part = payload.parts[0]
    if type(part) is not TextPart or part.citations or part.state_json is not None:
        return ""
    text = part.text
    return text if text.strip() == text else ""


def _result_of(payload: Payload, call: OptionCallPayload) -> tuple[str, str]:
    """The kind and the slot of a call's result: "r" a string, "v" another value, "p" a text part; "" for any other."""
    if type(payload) is not OptionResultPayload or payload.invocation_id != call.invocation_id or payload.is_error:
        return "", ""
    if payload.parts:
        part = payload.parts[0]
        is_plain = len(payload.parts) == 1 and type(part) is TextPart and not part.citations and part.state_json is None
        text = part.text if is_plain and isinstance(part, TextPart) else ""
        return ("p", text) if text and text.strip() == text else ("", "")
    text = payload.result_json
    if text[0] != '"':
        return ("", "") if _EXPONENT.search(text) else ("v", text)
    inner = text[1:-1]
    is_plain = inner and inner.strip() == inner and inner[0] != "\\" and "\\" not in inner[-6:]
    return ("r", text) if is_plain else ("", "")
