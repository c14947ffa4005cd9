"""Stencils: what turns of one shape render to, whatever they say.

    turn ─▶ the same turn, saying marks ─▶ encode_turn ─▶ {"role":"user","content":"sabir0mark"}
                                                       ─▶ Stencil {"role":"user","content": ▯ }, slot 0 as a string

A slot is what one place of a turn says, as text: a text, an identifier, a name, arguments or a result as JSON text. A
turn that renders to nothing, to losses, or to marks within other strings has no stencil.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json

from sabir.contracts import Dialect
from sabir.messages import Message, OptionCallPayload, PartsPayload
from sabir.parts import TextPart
from sabir.scope import Entry, LossLog, Side, Turn, TurnScope

_MARK = re.compile(rb"sabir\d+mark")


class Stencil(NamedTuple):
    """The JSON of a turn, cut where something is said."""

    opening: bytes
    places: tuple[tuple[int, bool, bytes], ...]
    """For each cut: which slot it is, whether that is a JSON string, and the JSON that comes after it."""

    def filled(self, slots: Sequence[str]) -> bytes:
        """The turn's JSON."""
        said = [
            (to_json(slots[slot]) if is_string else slots[slot].encode()) + literal
            for slot, is_string, literal in self.places
        ]
        return self.opening + b"".join(said)


def learn(
    dialect: Dialect, scope: TurnScope, side: Side, follows: Side | None, messages: Sequence[tuple[Message, bool]]
) -> Stencil | None:
    """The stencil of a turn and its results, each message with whether its state goes back; None where it has none."""
    specimen = _Specimen()
    for message, is_home in messages:
        specimen.add(message, is_home)
    items: list[bytes] = []
    for turn in specimen.turns(side, follows):
        log = LossLog()
        found = dialect.encode_turn(turn, scope, log)
        if not found or log.losses:
            return None
        items += map(to_json, found)
    return specimen.stencil(b",".join(items))


class _Specimen:
    """A turn that says marks. A call has four slots: identifier, name, arguments, and their text as it came."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._results: list[Entry] = []
        self._forms: dict[bytes, tuple[int, bool]] = {}
        """What stands in the rendered turn for a slot ─▶ which slot that is, and whether it stands as a string."""
        self._count = 0
        self._said: list[tuple[int, ...]] = []
        """Slots of which exactly one must be met, once."""

    def turns(self, side: Side, follows: Side | None) -> list[Turn]:
        """The turn, and that of its results."""
        results = [Turn("results", tuple(self._results), side)] if self._results else []
        return [Turn(side, tuple(self._entries), follows), *results]

    def add(self, message: Message, is_home: bool) -> None:
        """The next message, saying marks."""
        payload, first = message.payload, self._count
        if isinstance(payload, PartsPayload):
            part = TextPart(text=self._text())
            self._entries.append(Entry(_changed(message, parts=(part,)), (part,), keeps_state=is_home))
            self._said.append((first,))
        elif isinstance(payload, OptionCallPayload):
            wire_id, name, arguments, raw = self._text(), self._text(), self._json({}), self._json({})
            given: dict[str, Any] = {"raw_arguments": raw} if payload.raw_arguments else {}
            call = _changed(message, invocation_id=wire_id, option_name=name, arguments=json.loads(arguments), **given)
            self._entries.append(Entry(call, (), wire_id, name, is_home))
            self._said.append((first + 2, first + 3))
        else:
            call_entry = [entry for entry in self._entries if entry.wire_id][len(self._results)]
            wire_id, name = call_entry.wire_id, call_entry.wire_name
            pieces: tuple[TextPart, ...] = ()
            if payload.parts:
                pieces = (TextPart(text=self._text()),)
                said: dict[str, Any] = {"parts": pieces}
            else:
                said = {"result": json.loads(self._json("" if payload.result_json[0] == '"' else {}))}
            result = _changed(message, invocation_id=wire_id, option_name=name, **said)
            self._results.append(Entry(result, pieces, wire_id, name, is_home, call_entry))
            self._said.append((first,))

    def _text(self) -> str:
        """A mark for a slot of text."""
        mark = f"sabir{self._count}mark"
        self._forms[to_json(mark)] = self._count, True
        self._count += 1
        return mark

    def _json(self, like: object) -> str:
        """A mark for a slot of JSON text: a string's, or an object's."""
        mark = f"sabir{self._count}mark"
        text = to_json(mark if isinstance(like, str) else {mark: 0}).decode()
        self._forms[to_json(text)] = self._count, True
        self._forms[text.encode()] = self._count, False
        self._count += 1
        return text

    def stencil(self, rendered: bytes) -> Stencil | None:
        """The stencil of what the turns rendered to."""
        forms = re.compile(b"|".join(map(re.escape, sorted(self._forms, key=len, reverse=True))))
        opening, *literals = forms.split(rendered)
        places = [self._forms[form] for form in forms.findall(rendered)]
        met = [slot for slot, _ in places]
        is_whole = all(sum(met.count(slot) for slot in slots) == 1 for slots in self._said)
        if not is_whole or any(map(_MARK.search, [opening, *literals])):
            return None
        return Stencil(opening, tuple((*place, literal) for place, literal in zip(places, literals, strict=True)))


def _changed(message: Message, **fields: Any) -> Message:  # fields of whichever payload it has
    return message.model_copy(update={"payload": message.payload.model_copy(update=fields)})
