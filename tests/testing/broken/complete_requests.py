"""Dialects that send one of a kind rightly, and of two lose, move or join one.

BROKEN     case → a fault that this case alone stops      FAULTS     (case, the fault) → a further fault of its kind
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from sabir.base.values import FrozenDict
from sabir.contract.scope import RequestScope
from sabir.contract.turns import Turn
from sabir.vocabulary.parts import MediaPart, TextPart
from sabir_acme.encode import SETTINGS
from sabir_testing.kit.capabilities import MODALITIES

from tests.testing.broken.requests import _field, _one_word, before
from tests.testing.harness import Breakage, changed

ACCEPTED = ("image", "audio", "document")
"""The modalities that acme accepts in the user's messages."""
WIRE_FIELDS = {**SETTINGS, "option_choice": "choice", "response_format": "shape"}


# --- the parts of a message -------------------------------------------------------------------------------------------


def pieces(edit: Callable[[list[Any]], list[Any]], modality: str) -> Breakage:
    """The pieces of a message with two media of a modality are changed."""

    def change(entry: Any) -> Any:
        media = [piece for piece in entry.pieces if isinstance(piece, MediaPart) and piece.modality == modality]
        return entry._replace(pieces=tuple(edit(list(entry.pieces)))) if len(media) == 2 else entry

    return before(lambda turn: turn._replace(entries=tuple(map(change, turn.entries))))


def _is_medium(piece: Any) -> bool:
    return isinstance(piece, MediaPart)


def texts_first(parts: list[Any]) -> list[Any]:
    return sorted(parts, key=_is_medium)


def media_first(parts: list[Any]) -> list[Any]:
    return sorted(parts, key=_is_medium, reverse=True)


def one_medium(parts: list[Any]) -> list[Any]:
    first = next(filter(_is_medium, parts))
    return [part for part in parts if part is first or not _is_medium(part)]


def media_swapped(parts: list[Any]) -> list[Any]:
    media = list(filter(_is_medium, parts))[::-1]
    return [media.pop(0) if _is_medium(part) else part for part in parts]


def texts_lost(parts: list[Any]) -> list[Any]:
    """A text after a medium is left out."""
    return [part for last, part in pairwise([None, *parts]) if last is None or not _is_medium(last)]


# --- the messages of a turn -------------------------------------------------------------------------------------------


def calls_first(turn: Turn) -> Turn:
    """A text of one hyphenated word comes after the calls of its turn."""
    if turn.side != "assistant" or not any(_one_word(entry.message) for entry in turn.entries):
        return turn
    return turn._replace(entries=tuple(sorted(turn.entries, key=lambda entry: entry.message.call is None)))


def joined(side: str, turn: Turn) -> Turn:
    """Neighbouring messages of one hyphenated word become one text."""
    entries: list[Any] = []
    for entry in turn.entries if turn.side == side else ():
        if entries and all(_one_word(each.message) for each in (entries[-1], entry)):
            text = "".join(piece.text for each in (entries[-1], entry) for piece in each.pieces)
            entries[-1] = entries[-1]._replace(pieces=(TextPart(text=text),))
        else:
            entries.append(entry)
    return turn._replace(entries=tuple(entries)) if entries else turn


def joined_result(turn: Turn) -> Turn:
    """The texts of a result become one text, if each is one hyphenated word."""
    return _two_results(turn, lambda texts: (TextPart(text="".join(texts)),))


def first_of_result(turn: Turn) -> Turn:
    """Of two texts of a result, each of which is one hyphenated word, the first is sent."""
    return _two_results(turn, lambda texts: (TextPart(text=texts[0]),))


def _two_results(turn: Turn, change: Callable[[list[str]], tuple[TextPart, ...]]) -> Turn:
    def changed_entry(entry: Any) -> Any:
        texts = [piece.text for piece in entry.pieces if isinstance(piece, TextPart)]
        is_meant = len(texts) == len(entry.pieces) == 2 and all("-" in text and " " not in text for text in texts)
        return entry._replace(pieces=change(texts)) if is_meant else entry

    return turn._replace(entries=tuple(map(changed_entry, turn.entries))) if turn.side == "results" else turn


def _joined_instructions(text: str) -> str:
    words = text.split("\n\n")
    return "".join(words) if all("-" in word and " " not in word for word in words) else text


# --- settings ---------------------------------------------------------------------------------------------------------


def replacing(field: str) -> Breakage:
    """A vendor setting has the name of a field that a neutral setting has already."""

    def encode_request(own: Any, scope: RequestScope) -> Any:
        further = {name: value for name, value in scope.vendor.items() if name == field}
        rest = FrozenDict({name: value for name, value in scope.vendor.items() if name != field})
        return {**own(replace(scope, vendor=rest)), **json.loads(json.dumps(further, default=dict))}

    return changed(encode_request=encode_request)


def accepting(modality: Any) -> Breakage:
    """The bytes of a medium of an invented type are accepted, too."""

    def broken(base: Any) -> Any:
        place = ("user", modality)
        rule = base.tables.media[place]
        wide = replace(rule, data=f"{rule.data}|{modality}/x-kit-.*")
        return replace(base, tables=replace(base.tables, media={**base.tables.media, place: wide}))

    return Breakage(dialect=broken)


STOPS = "test_every_stop_text_is_sent_or_reported"
MEDIA = "test_media_and_texts_keep_their_order"
CALL = "test_a_call_comes_after_the_text_of_its_turn"
NEIGHBOURS = "test_neighbouring_messages_stay_apart"
RESULT = "test_texts_of_a_result_stay_apart"
UNHEARD_OF = "test_a_medium_of_an_unheard_of_type_is_not_sent"
EFFORTS = "test_two_efforts_are_not_sent_as_one"
VENDOR = "test_a_vendor_setting_replaces_no_other_silently"

BROKEN: Mapping[str, Breakage] = {
    STOPS: _field("stops", lambda texts: texts[:1] if len(texts) == 2 else texts),
    **{f"{MEDIA}[{modality}]": pieces(texts_first, modality) for modality in ACCEPTED},
    CALL: before(calls_first),
    f"{NEIGHBOURS}[user]": before(partial(joined, "user")),
    f"{NEIGHBOURS}[llm]": before(partial(joined, "assistant")),
    f"{NEIGHBOURS}[system]": _field("instructions", _joined_instructions),
    RESULT: before(joined_result),
    **{f"{UNHEARD_OF}[{modality}]": accepting(modality) for modality in ("image", "audio")},
    EFFORTS: _field("effort", lambda effort: "high" if effort == "medium" else effort),
    **{f"{VENDOR}[{name}]": replacing(field) for name, field in WIRE_FIELDS.items()},
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    (STOPS, "the first is lost"): _field("stops", lambda texts: texts[-1:]),
    (STOPS, "they are joined"): _field("stops", lambda texts: [",".join(texts)[:14]]),
    (RESULT, "the second text is lost"): before(first_of_result),
    (MEDIA, "the media come first"): pieces(media_first, "image"),
    (MEDIA, "the second medium is lost"): pieces(one_medium, "image"),
    (MEDIA, "the media are swapped"): pieces(media_swapped, "document"),
    (MEDIA, "the texts after media are lost"): pieces(texts_lost, "audio"),
    (EFFORTS, "all are one"): _field("effort", lambda effort: "high"),
    (EFFORTS, "none is the lowest"): _field("effort", lambda effort: "minimal" if effort == "none" else effort),
}
"""(Case, the fault) → an adapter that the case stops."""
UNTRIED = frozenset(f"{MEDIA}[{modality}]" for modality in MODALITIES if modality not in ACCEPTED) | {
    f"{UNHEARD_OF}[video]"
}
"""Rows that check nothing of acme, because it sends no such media, and reports them."""
