"""Readers of stored requests that forget what their own dialect never writes.

BROKEN     case → a fault that this case alone stops      FAULTS     (case, the fault) → a further fault of its kind
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sabir.contract.dialect import DecodedHistory, Dialect
from sabir.contract.scope import DecodeScope
from sabir.contract.turns import LossLog, Turn, TurnScope
from sabir.errors import HistoryInvalid
from sabir.vocabulary.parts import MediaPart
from sabir_testing import FULL

from tests.testing.broken.laws import reading
from tests.testing.broken.requests import _field
from tests.testing.broken.stored_requests import Body, parts
from tests.testing.harness import Breakage, changed, sound

FORM = "test_a_stored_medium_keeps_its_form"
OBJECT = "test_an_unknown_object_of_a_stored_list_is_kept"
SECOND = "test_a_second_text_of_a_stored_list_is_kept"
NAME = "test_the_name_of_a_schema_is_sent_or_reported"
STRANGE = "test_a_strange_request_is_refused_by_decision"
VALUE = "test_a_strange_value_of_a_field_is_kept"
FILES = "https://acme.example/files/"


def linked(base: Dialect) -> Dialect:
    """A file of the provider is sent as a URL, and read as a plain URL."""
    row: Any = ("user", "image")
    media = {**base.tables.media, row: replace(base.tables.media[row], file="")}

    def link(piece: Any) -> Any:
        if not isinstance(piece, MediaPart) or piece.form != "file":
            return piece
        return piece.model_copy(update={"url": FILES + piece.provider_file()[1]})

    def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Any:
        linked_entries = (entry._replace(pieces=tuple(map(link, entry.pieces))) for entry in turn.entries)
        return base.encode_turn(turn._replace(entries=tuple(linked_entries)), scope, losses)

    return replace(base, tables=replace(base.tables, media=media), encode_turn=encode_turn)


def known_tools(body: Body) -> Body:
    """A tool without a schema is not read."""
    return {**body, "tools": [tool for tool in body["tools"] if "parameters" in tool]} if "tools" in body else body


def known_words(body: Body) -> Body:
    """A choice or an effort of an unknown word is not read."""
    return {name: each for name, each in body.items() if each != "kit-strange-text"}


def named_tools(body: Body) -> Body:
    """A tool with an empty name is not read."""
    return {**body, "tools": [tool for tool in body["tools"] if tool.get("name") != ""]} if "tools" in body else body


def known_parts(part: Body) -> Body | None:
    return None if part.get("type") == "kit_unknown" else part


def first_words(body: Body) -> Body:
    """Of several texts of one hyphenated word each, the first one is read."""

    def first(turn: Any) -> Any:
        texts = [part for part in turn["parts"] if "-" in part.get("text", "") and " " not in part["text"]]
        return {**turn, "parts": [part for part in turn["parts"] if part not in texts[1:]]}

    return {**body, "turns": list(map(first, body["turns"]))} if _has_parts(body) else body


def _has_parts(body: Body) -> bool:
    turns = body.get("turns", ())
    is_readable = isinstance(turns, list) and all(isinstance(turn, dict) for turn in turns)
    return is_readable and all(
        isinstance(turn.get("parts"), list) and all(isinstance(part, dict) for part in turn["parts"]) for turn in turns
    )


def careless(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """A result whose call is missing raises the KeyError of a table."""
    parts = [part for turn in json.loads(body).get("turns", ()) for part in turn["parts"]]
    calls = {part["id"]: part for part in parts if isinstance(part, dict) and part.get("type") == "call"}
    for result in (part for part in parts if isinstance(part, dict) and part.get("type") == "result"):
        calls[result["id"]]
    decoded: DecodedHistory = own(body, scope)
    return decoded


def trusting(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """The name of a tool that is not a text raises the AttributeError of its number."""
    tools = json.loads(body).get("tools", ())
    for tool in tools if isinstance(tools, list) else ():
        tool["name"].strip()
    decoded: DecodedHistory = own(body, scope)
    return decoded


def vague(own: Any, body: bytes, scope: DecodeScope) -> DecodedHistory:
    """A refused request is refused without a reason."""
    try:
        decoded: DecodedHistory = own(body, scope)
    except HistoryInvalid:
        raise HistoryInvalid("something is wrong") from None
    return decoded


def closed(base: Dialect) -> Dialect:
    """Opaque parts of the user are reported instead of sent."""
    roles = replace(base.tables.roles, native={"assistant": base.tables.roles.native["assistant"]})
    return replace(base, tables=replace(base.tables, roles=roles))


def undescribed(shape: Any) -> Any:
    """A description of one word is left out."""
    is_word = " " not in (shape.get("description") or " ")
    return {name: each for name, each in shape.items() if name != "description" or not is_word}


def unnamed(shape: Any) -> Any:
    """A name of three words is left out."""
    return {name: each for name, each in shape.items() if name != "name" or each.count("_") < 2}


BROKEN: Mapping[str, Breakage] = {
    FORM: Breakage(dialect=linked, attributes={"capabilities": {**sound().capabilities, "image.file": FULL}}),
    OBJECT: reading(known_tools),
    SECOND: reading(first_words),
    NAME: _field("shape", undescribed),
    STRANGE: changed(decode_history=careless),
    VALUE: reading(known_words),
    "test_a_refused_field_is_named": changed(decode_history=vague),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    (OBJECT, "parts of unknown types"): parts(known_parts),
    (OBJECT, "the user's parts of unknown types are not sent"): Breakage(dialect=closed),
    (NAME, "the name is left out"): _field("shape", unnamed),
    (STRANGE, "the name of an option is a number"): changed(decode_history=trusting),
    (VALUE, "the name of an option is empty"): reading(named_tools),
}
