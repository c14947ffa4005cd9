"""Two toy wires for core's laws: one takes system turns where they stand, the other hoists the leading ones.

Their items show all that core decided, so that a test can read pairs, order and placement off the body.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sabir.contracts import Decoder
from sabir.errors import CallError, ServerFailed
from sabir.events import StreamEvent
from sabir.fold import ReplyBuilder
from sabir.media import MediaRule
from sabir.parts import KnownPart
from sabir.reply import Reply
from sabir.scope import (
    DecodeScope,
    Entry,
    IdentifierRule,
    LossLog,
    RequestScope,
    Tables,
    Target,
    Turn,
    TurnScope,
)
from sabir.settings import WIRE_SETTINGS
from sabir.sse import ServerEvent
from sabir.values import decode_json


class NoStream:
    """A decoder for wires that never stream."""

    def feed(self, event: ServerEvent) -> Iterable[StreamEvent]:
        raise ServerFailed("this wire does not stream")

    def close(self) -> Iterable[StreamEvent]:
        return ()


class ToyDialect:
    """A wire whose items name the side, the pieces, the ids and the names of every entry."""

    messages_field = "turns"
    streaming_fields: Mapping[str, Any] = {"stream": True}

    def __init__(self, name: str, tables: Tables) -> None:
        self.name = name
        self.tables = tables

    def path(self, target: Target, *, streaming: bool) -> str:
        return "/stream" if streaming else "/whole"

    def family(self, model: str) -> str:
        return model.split("-", maxsplit=1)[0]

    def encode_turn(self, turn: Turn, scope: TurnScope, losses: LossLog) -> Sequence[Any]:
        return [{"side": turn.side, **_entry(entry)} for entry in turn.entries]

    def encode_request(self, scope: RequestScope) -> Mapping[str, Any]:
        settings = {name: scope.settings.take(name) for name in WIRE_SETTINGS}
        settings["response_format"] = None
        system = [_entry(entry) for turn in scope.system for entry in turn.entries]
        names = [scope.option_names[option.name] for option in scope.options]
        return {"model": scope.target.model, "system": system, "options": names, **settings}

    def encode_count(self, body: Mapping[str, Any]) -> None:
        return None

    def decode_count(self, body: bytes) -> int:
        return int(decode_json(body))

    def decode(self, body: bytes, scope: DecodeScope) -> Reply:
        return ReplyBuilder(scope).finish(finish_reason="stop", origin=scope.origin())

    def decoder(self, scope: DecodeScope) -> Decoder:
        return NoStream()

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        return ServerFailed("failed", provider=provider, status=status)


def _entry(entry: Entry) -> dict[str, Any]:
    payload = entry.message.payload
    item: dict[str, Any] = {"pieces": [_piece(piece) for piece in entry.pieces]}
    if payload.kind == "option_call":
        item |= {"call": entry.wire_id, "name": entry.wire_name, "arguments": payload.arguments}
    elif payload.kind == "option_result":
        item |= {"result": entry.wire_id, "name": entry.wire_name, "value": payload.result}
    return item


def _piece(piece: KnownPart) -> dict[str, Any]:
    return piece.model_dump(mode="json", exclude_defaults=True) | {"kind": piece.kind}


INLINE = ToyDialect(
    "toy.inline",
    Tables(
        media={
            ("user", "image"): MediaRule(url="", data="image/(png|jpeg)"),
            ("results", "image"): MediaRule(data=""),
        },
        native={"assistant": frozenset({"reasoning", "refusal", "opaque"}), "user": frozenset({"opaque"})},
        call_ids=IdentifierRule(longest=20),
        option_names=IdentifierRule(longest=16),
        citations="native",
    ),
)
HOISTED = ToyDialect(
    "toy.hoisted",
    Tables(
        media={("user", "image"): MediaRule(url="", file="")},
        call_ids=IdentifierRule(characters="[a-z0-9]", longest=16),
        leading_system="hoisted",
        later_system="user",
    ),
)
