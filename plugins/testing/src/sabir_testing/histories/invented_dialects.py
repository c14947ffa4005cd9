"""Four invented APIs that together have many structures of real ones, for core's laws and for handing over histories.

INLINE    system messages at their place; images by URL; opaque parts, reasoning and refusals are sent back
HOISTED   leading system text in its own field, later system text as user text; no provider state; short ids
PARTED    later system text at the end of the user's turn; reasoning only with state; unfinished pairs
STRICT    no blank texts, and after a system message only the assistant

Their items show all of core's decisions, so that a test can read pairs, order and placement from the body.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sabir import Reply, Target
from sabir.authoring import (
    WIRE_SETTINGS,
    Calls,
    DecodeScope,
    Dialect,
    Entry,
    IdentifierRule,
    KnownPart,
    LossLog,
    MediaRule,
    ReplyBuilder,
    RequestScope,
    Roles,
    Tables,
    Turn,
    TurnScope,
)

FILLER = {"side": "assistant", "pieces": [{"kind": "text", "text": "…"}], "follows": "system"}
"""The item that STRICT adds between a system message and a user message."""


def family(model: str) -> str:
    """Return the part of a model's name before the first dash."""
    return model.split("-", maxsplit=1)[0]


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[Any]:
    """Return one item for each entry. The first item also has the field `follows`: the side of the turn before."""
    first, *others = [{"side": turn.side, **_entry(entry)} for entry in turn.entries]
    return [{**first, "follows": turn.follows}, *others]


def encode_request(scope: RequestScope) -> Mapping[str, Any]:
    """Return the model, the hoisted system texts, the names of the options, and all settings, with response_format
    None.
    """
    settings = {name: scope.settings.take(name) for name in WIRE_SETTINGS}
    settings["response_format"] = None
    system = [_entry(entry) for turn in scope.system for entry in turn.entries]
    names = [scope.option_names[option.name] for option in scope.options]
    return {"model": scope.target.model, "system": system, "options": names, **settings}


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Return an empty reply for any body."""
    return ReplyBuilder(scope).finish(finish_reason="stop", origin=scope.origin())


def encode_strictly(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[Any]:
    """Like `encode_turn`, but without blank texts, and with FILLER between a system message and a user message."""
    entries = []
    for entry in turn.entries:
        pieces = tuple(each for each in entry.pieces if each.kind != "text" or each.text.strip())
        if pieces != entry.pieces:
            losses.add("dropped", "the text is blank", message=entry.message)
        entries += [entry._replace(pieces=pieces)] if pieces or entry.wire_id else []
    if not entries:
        return []
    items = encode_turn(turn._replace(entries=tuple(entries)), scope, losses)
    if (turn.follows, turn.side) != ("system", "user"):
        return items
    del items[0]["follows"]
    losses.add("synthesized", "the assistant speaks after a system message", message=entries[0].message)
    return [FILLER, *items]


def toy(name: str, tables: Tables, **functions: Any) -> Dialect:
    """Return a dialect with one item for each entry: its side, pieces, ids and names. `functions` replace its own."""
    dialect = Dialect(
        name=name,
        tables=tables,
        path=lambda target: "/whole",
        stream_path=lambda target: "/stream",
        messages_field="turns",
        family=family,
        encode_turn=encode_turn,
        encode_request=encode_request,
        decode=decode,
    )
    return replace(dialect, **functions)


def _entry(entry: Entry) -> dict[str, Any]:
    payload = entry.message.payload
    item: dict[str, Any] = {"pieces": [_piece(piece, entry) for piece in entry.pieces]}
    if payload.kind == "option_call":
        item |= {"call": entry.wire_id, "name": entry.wire_name, "arguments": payload.arguments}
    elif payload.kind == "option_result":
        item |= {"result": entry.wire_id, "name": entry.wire_name, "value": payload.result}
    return item


def _piece(piece: KnownPart, entry: Entry) -> dict[str, Any]:
    others = set() if entry.keeps_state else {"state_json", "citations"}
    return piece.model_dump(mode="json", exclude_defaults=True, exclude=others) | {"kind": piece.kind}


INLINE = toy(
    "toy.inline",
    Tables(
        Roles(
            native={"assistant": frozenset({"reasoning", "refusal", "opaque"}), "user": frozenset({"opaque"})},
            citations="native",
        ),
        media={("user", "image"): MediaRule(url="", data="image/(png|jpeg)"), ("results", "image"): MediaRule(data="")},
        calls=Calls(ids=IdentifierRule(longest=20), names=IdentifierRule(longest=16)),
    ),
)
HOISTED = toy(
    "toy.hoisted",
    Tables(
        Roles(leading_system="hoisted", later_system="user"),
        media={("user", "image"): MediaRule(url="", file="")},
        calls=Calls(ids=IdentifierRule(characters="[a-z0-9]", longest=16)),
    ),
)

PARTED = toy(
    "toy.parted",
    Tables(
        Roles(
            native={"assistant": frozenset({"reasoning", "opaque"})},
            leading_system="hoisted",
            later_system="after_user",
            reasoning="with_state",
        ),
        media={("user", "image"): MediaRule(url="", data="")},
        calls=Calls(unfinished_pairs="kept_at_the_end"),
        variants={"bytes": Tables(media={("user", "image"): MediaRule(data="")})},
    ),
)
STRICT = toy(
    "toy.strict",
    Tables(
        Roles(
            native={"assistant": frozenset({"opaque"}), "user": frozenset({"opaque"})},
            leading_system="hoisted",
            later_system="after_user",
        )
    ),
    encode_turn=encode_strictly,
)
TOYS = (INLINE, HOISTED, PARTED, STRICT)


def toy_target(wire: Dialect) -> Target:
    """Return the target for renderings by an invented API."""
    return Target(provider="toy", dialect=wire.name, model="m-1")
