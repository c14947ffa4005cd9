"""Four made-up wires that together cover all shapes, for core's laws and for handing histories over.

INLINE    system turns where they stand; pictures by URL; blocks, thoughts and refusals go back
HOISTED   leading system text apart, later system text as the user's; nothing of a maker's own; short ids
PARTED    later system text at the end of the user's side; thoughts only with state; paused pairs
STRICT    no blank text, and after a system message none but the assistant

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
"""What stands between a system message and the user, where nothing is left of what stood there."""


def family(model: str) -> str:
    """What stands before the first dash."""
    return model.split("-", maxsplit=1)[0]


def encode_turn(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[Any]:
    """One item a message; the first says what it follows."""
    first, *others = [{"side": turn.side, **_entry(entry)} for entry in turn.entries]
    return [{**first, "follows": turn.follows}, *others]


def encode_request(scope: RequestScope) -> Mapping[str, Any]:
    """Model, hoisted texts, names of options, and every setting."""
    settings = {name: scope.settings.take(name) for name in WIRE_SETTINGS}
    settings["response_format"] = None
    system = [_entry(entry) for turn in scope.system for entry in turn.entries]
    names = [scope.option_names[option.name] for option in scope.options]
    return {"model": scope.target.model, "system": system, "options": names, **settings}


def decode(body: bytes, scope: DecodeScope) -> Reply:
    """Whatever came, nothing was said."""
    return ReplyBuilder(scope).finish(finish_reason="stop", origin=scope.origin())


def encode_strictly(turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[Any]:
    """Without text of white space; with the assistant's filler where the user would follow a system message."""
    kept = []
    for entry in turn.entries:
        left = tuple(each for each in entry.pieces if each.kind != "text" or each.text.strip())
        if left != entry.pieces:
            losses.add("dropped", "the text is blank", message=entry.message)
        kept += [entry._replace(pieces=left)] if left or entry.wire_id else []
    if not kept:
        return []
    shown = encode_turn(turn._replace(entries=tuple(kept)), scope, losses)
    if (turn.follows, turn.side) != ("system", "user"):
        return shown
    del shown[0]["follows"]
    losses.add("synthesized", "the assistant speaks after a system message", message=kept[0].message)
    return [FILLER, *shown]


def toy(name: str, tables: Tables, **functions: Any) -> Dialect:
    """A wire whose items name side, pieces, ids and names of every entry; `functions` replace its own."""
    made = Dialect(
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
    return replace(made, **functions)


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
        media={
            ("user", "image"): MediaRule(url="", data="image/(png|jpeg)"),
            ("results", "image"): MediaRule(data=""),
        },
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
        ),
    ),
    encode_turn=encode_strictly,
)
TOYS = (INLINE, HOISTED, PARTED, STRICT)


def toy_target(wire: Dialect) -> Target:
    """Where renderings for a made-up wire go."""
    return Target(provider="toy", dialect=wire.name, model="m-1")
