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
from sabir.parts import Part, TextPart
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


_MODELS: tuple[Side, bool] = ("assistant", True)
"""The place of a message that the model may have said in a plain turn."""


class PlainTurns:
    """The stencils of one scope, each learnt from the first turn of its shape."""

    def __init__(self, dialect: Dialect, scope: TurnScope, is_home: Callable[[Origin | None], bool]) -> None:
        self._dialect = dialect
        self._scope = scope
        self._is_home = is_home
        self._own = scope.target.dialect
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
            if type(messages[at].payload) is PartsPayload:
                at, follows = self._fill_texts(messages, at, last, follows, items)
            if at < last and self._place(messages[at]) == _MODELS:
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
            text, following = _text_of(payload.parts), messages[at + 1]
            payload = following.payload
            key = type(payload), following.policy, following.role_hint_for_llm
            next_side, is_plain = places.get(key) or self._place(following)
            # A result may belong to whatever stands before it.
            if not text or next_side in (side, "results"):
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
        start: int,
        follows: Side | None,
        call_ids: Identifiers,
        names: Identifiers,
        items: list[bytes],
    ) -> tuple[int, Side | None]:
        """Fill in the model's turn with calls, and that of their results in their order; where it is none, nothing."""
        at, end, kinds = start, len(messages), ""
        slots: list[str] = []
        if type(said := messages[at].payload) is PartsPayload:
            text = _text_of(said.parts)
            if not text:
                return start, follows
            slots.append(text)
            kinds = self._kind("t", messages[at].origin)
            at += 1
        calls: list[OptionCallPayload] = []
        while at < end and type(call := messages[at].payload) is OptionCallPayload:
            kinds += self._take_call(call, messages[at].origin, slots)
            calls.append(call)
            at += 1
        # A letter each; of what is not plain there is none.
        if len(kinds) < at - start or at + len(calls) >= end:
            return start, follows
        for call in calls:
            result = messages[at].payload
            if type(result) is not OptionResultPayload or result.invocation_id != call.invocation_id or result.is_error:
                return start, follows
            slot = _text_of(result.parts) if result.parts else _value_of(result.result_json[:])
            if not slot:
                return start, follows
            slots.append(slot)
            kinds += self._kind("p" if result.parts else "r" if slot[0] == '"' else "v", messages[at].origin)
            at += 1
        if not calls or not _are_kept(calls, call_ids, names):
            return start, follows
        shape: Shape = ("assistant", follows, kinds)
        stencil = self._stencils.get(shape) or self._stencil(shape, messages[start:at])
        if stencil is None:
            return start, follows
        items.append(stencil.filled(slots))
        for call in calls:
            call_ids.keep(call.invocation_id)
            names.name(call.option_name)
        return at, "results"

    def _take_call(self, call: OptionCallPayload, origin: Origin | None, slots: list[str]) -> str:
        """Add a call's slots; its kind, "c", or "o" where its own wire's text is kept; nothing if it is not plain."""
        # A slice of JSONText is a plain str, which is encoded at a tenth of the cost.
        arguments = call.arguments_json[:]
        if call.state_json is not None or call.invalid_arguments or _EXPONENT.search(arguments):
            return ""
        if origin is None:
            slots += (call.invocation_id, call.option_name, arguments, "")
            return "c"
        raw = (call.raw_arguments or "") if origin.dialect == self._own else ""
        slots += (call.invocation_id, call.option_name, arguments, raw)
        return self._kind("o" if raw else "c", origin)

    def _kind(self, letter: str, origin: Origin | None) -> str:
        return letter if origin is None or not self._is_home(origin) else letter.upper()

    def _stencil(self, shape: Shape, turn: list[Message]) -> Stencil | None:
        """The stencil of a shape, learnt from this turn of it if need be; None where it has none."""
        if shape not in self._stencils:
            if len(self._stencils) >= MOST_SHAPES:
                return None
            marked = [(message, self._is_home(message.origin)) for message in turn]
            self._stencils[shape] = learn(self._dialect, self._scope, shape[0], shape[1], marked)
        return self._stencils[shape]


def _text_of(parts: tuple[Part, ...]) -> str:
    """The text of parts that are one plain text; "" for any other."""
    part = parts[0]
    if len(parts) > 1 or type(part) is not TextPart or part.citations or part.state_json is not None:
        return ""
    text = part.text
    return text if text.strip() == text else ""


def _value_of(result: str) -> str:
    """A result's JSON text; "" where it is not plain."""
    if result[0] != '"':
        return "" if _EXPONENT.search(result) else result
    text = result[1:-1]
    is_plain = text and text.strip() == text and text[0] != "\\" and "\\" not in text[-6:]
    return result if is_plain else ""


def _are_kept(calls: list[OptionCallPayload], call_ids: Identifiers, names: Identifiers) -> bool:
    """Whether the wire takes the calls' identifiers and names as they are, and each of the former is another."""
    for call in calls:
        if not (call_ids.keeps(call.invocation_id) and names.keeps_name(call.option_name)):
            return False
    return len(calls) == 1 or len({call.invocation_id for call in calls}) == len(calls)
