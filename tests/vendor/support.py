"""What vendors' own services returned, and a walker that knows nothing of the decoders.

The exchanges lie outside the project, in the folder that SABIR_VENDOR_CASSETTES names; tests of them are skipped where
it is not set.
"""

import functools
import gzip
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sabir
from sabir.base.failures import Loss
from sabir.contract.dialect import DecodedHistory, Dialect, Rendering, ServerEventReader
from sabir.contract.scope import DecodeScope
from sabir.errors import CallError, RenderingRefused
from sabir.reading.fold import Fold
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, OptionResultPayload
from sabir.vocabulary.reply import Reply
from sabir.vocabulary.settings import Settings, Target

FOLDER = os.environ.get("SABIR_VENDOR_CASSETTES")

WIRES = {
    "openai.chat": ("openai.chat", "openai.chat_at_azure"),
    "openai.responses": ("openai.responses",),
    "anthropic.messages": ("anthropic.messages",),
    "google.generate_content": ("gemini.generateContent",),
}
"""Dialect → the files of its exchanges."""


@dataclass(frozen=True)
class Exchange:
    """One request and its answer; `id` names it in a failing test's message."""

    id: str
    host: str
    path: str
    status: int
    model: str
    features: frozenset[str]
    request: dict[str, Any] | None
    response_headers: dict[str, str]
    response: Any
    events: list[Any] | None
    sse: str | None
    provenance: str
    wire_exact: bool

    def __str__(self) -> str:
        return self.id

    @property
    def body(self) -> bytes:
        return json.dumps(self.response).encode()

    @property
    def stream(self) -> bytes:
        """The answer's bytes, where it was a stream: as recorded, or made of its parsed events.

        Of one that was asked for as an array of chunks, they are those of the same chunks as events.
        """
        if self.sse and not self.sse.startswith("["):
            return self.sse.encode()
        return "".join(f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in self.events or ()).encode()


@functools.cache
def exchanges(wire: str) -> list[Exchange]:
    """The exchanges of one wire; skips the module where the folder is not given."""
    if not FOLDER:
        pytest.skip("SABIR_VENDOR_CASSETTES names no folder of vendors' exchanges", allow_module_level=True)
    path = Path(FOLDER) / f"{wire}.jsonl.gz"
    if not path.is_file():
        pytest.fail(f"{path} is missing; SABIR_VENDOR_CASSETTES must name the folder of vendors' exchanges")
    names = Exchange.__dataclass_fields__
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    known = ({name: row.get(name) for name in names} for row in rows)
    return [Exchange(**{**row, "features": frozenset(row["features"] or ())}) for row in known]


def exchanges_of(dialect: str) -> list[Exchange]:
    return [each for file in WIRES[dialect] for each in exchanges(file)]


def scope_for(exchange: Exchange, dialect: str) -> DecodeScope:
    provider = dialect.partition(".")[0]
    return DecodeScope(target=Target(provider=provider, dialect=dialect, model=exchange.model or "unknown"))


def fold(dialect: Dialect, stream: bytes, scope: DecodeScope) -> Reply:
    reader, decoder, whole = ServerEventReader(), dialect.decoder(scope), Fold(scope)
    for event in [*reader.feed(stream), *reader.close()]:
        for block in decoder.feed(event):
            whole.feed(block)
    for block in decoder.close():
        whole.feed(block)
    return whole.reply()


def said(reply: Reply) -> list[Any]:
    return [each for message in reply.messages for each in (message.parts if message.call is None else (message.call,))]


def sent_back(dialect: Dialect, reply: Reply, further: Iterable[Message] = ()) -> Rendering:
    """The request that goes on after a reply: its messages, an answer to each of its calls, and one more question."""
    target = Target(provider=dialect.name.partition(".")[0], dialect=dialect.name, model=reply.origin.model)
    history = [sabir.user("Hello."), *reply.messages]
    for each in said(reply):
        if each.kind == "option_call":
            answer = OptionResultPayload(invocation_id=each.invocation_id, option_name=each.option_name, result="18 °C")
            history.append(Message(policy=each.option_name, payload=answer))
    settings = Settings(max_output_tokens=1024)
    return Renderer(dialect, target).render([*history, *further, sabir.user("Go on.")], settings=settings)


def rendered(name: str, history: DecodedHistory, host: str) -> tuple[dict[str, Any] | None, tuple[Loss, ...]]:
    """The request that a history renders to, None where nothing of it may be sent, and the losses."""
    pure = sabir.dialect(name)
    try:
        if "aiplatform" in host:
            renderer = Renderer(pure.dialect, pure.target, quirks=frozenset({"vertex"}))
            rendering = renderer.render(history.messages, history.options, history.settings)
        else:
            how: dict[str, Any] = {"options": history.options, "settings": history.settings}
            rendering = pure.render(history.messages, model=history.model, **how)
    except RenderingRefused as refused:
        return None, refused.losses
    return json.loads(rendering.body_bytes), rendering.losses


def without_losses(sent: dict[str, Any], losses: Iterable[Loss]) -> dict[str, Any]:
    """A request without what decoding's losses name by its path; what moved or was rewritten stays."""
    copy: dict[str, Any] = json.loads(json.dumps(sent))
    for loss in losses:
        if loss.kind == "dropped":
            *way, last = loss.path.replace("]", "").replace("[", ".").split(".")
            place: Any = copy
            for step in way:
                place = place[int(step)] if isinstance(place, list) else place[step]
            place[int(last) if isinstance(place, list) else last] = None
    return copy


def lost(history: DecodedHistory, losses: Iterable[Loss], held: str) -> list[Any]:
    """What a rendering's losses name by their message: ids of calls, native blocks, and what `held` names of parts."""
    by_id = {message.id: message for message in history.messages}
    found: list[Any] = []
    for loss in losses:
        message = by_id.get(loss.message_id)
        if message is None:
            continue
        if not loss.path and (pair := message.result or message.call):
            found.append(pair.invocation_id)
        elif loss.path.startswith("parts["):
            part = message.parts[int(loss.path[6:].partition("]")[0])]
            block = {"native_call": "raw", "native_result": "raw", "opaque": "block"}.get(part.kind, held)
            found.append(getattr(part, block, None))
    return found


def contents(messages: Iterable[Message]) -> list[str]:
    """What messages hold but for their ids and origins."""
    return [each.model_copy(update={"id": "1", "origin": None}).model_dump_json() for each in messages]


def tagged(faults: Callable[..., Iterable[str]], *given: Any) -> Callable[[Exchange], Iterator[str]]:
    """The faults of an exchange, each beginning with its host and id."""
    return lambda exchange: (f"{exchange.host} {exchange}: {fault}" for fault in faults(exchange, *given))


def unequal(*pairs: tuple[str, Any, Any]) -> list[str]:
    """Where what was given is not what came of it."""
    return [f"{name}: {given!r:.400} became {got!r:.400}" for name, given, got in pairs if given != got]


@dataclass(frozen=True)
class Wire:
    """How the exchanges of a dialect are read by hand; nothing of it is the dialect's own code."""

    dialect: Dialect
    counts: tuple[int, int, int, int]
    """Whole answers, streams, refusals, and requests that there are."""
    added_up: Callable[[Exchange], dict[str, Any]]
    """The answer that a stream's events put together."""
    returned: Callable[[dict[str, Any], Reply], Iterable[str]]
    """Where a reply that is sent back is not what it was."""
    refusal: Callable[[Exchange], type[CallError]]
    restored: Callable[[dict[str, Any], dict[str, Any] | None, DecodedHistory, tuple[Loss, ...]], tuple[Any, Any]]
    """What was stored and what is rendered, in one form, once what the losses name is taken out of what was stored."""
    beside: Collection[str] = ()
    """Paths of an answer whose scalars a reply says in other words, or not."""
    echoes: Collection[str] = ()
    """The fields of an answer that repeat the request, and that a reply does not say again."""
    is_left_out: Callable[[Exchange], bool] = lambda exchange: False
    """Exchanges that have tests of their own."""
    is_decoded_when_added_up: bool = True

    def __str__(self) -> str:
        return self.dialect.name

    @property
    def all(self) -> list[Exchange]:
        return [each for each in exchanges_of(self.dialect.name) if not self.is_left_out(each)]

    @property
    def asked(self) -> list[Exchange]:
        return [each for each in exchanges_of(self.dialect.name) if each.request]

    @property
    def refused(self) -> list[Exchange]:
        return [each for each in self.all if _is_refused(each)]

    @property
    def answered(self) -> list[Exchange]:
        return [each for each in self.all if not _is_refused(each)]

    def read(self, exchange: Exchange) -> tuple[dict[str, Any], Reply]:
        scope = scope_for(exchange, self.dialect.name)
        if exchange.events is None:
            return exchange.response, self.dialect.decode(exchange.body, scope)
        return self.added_up(exchange), fold(self.dialect, exchange.stream, scope)


def _is_refused(exchange: Exchange) -> bool:
    has_error = isinstance(exchange.response, dict) and exchange.response.get("error") is not None
    return has_error or (exchange.status or 200) >= 400


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar of a JSON value with its path; list positions are `[]`."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, f"{path}[]")
    else:
        yield path, value


def missing(body: Any, reply: Reply, ignored: Collection[str] = ()) -> list[tuple[str, Any]]:
    """The scalars of a body that the reply's dump does not hold; nulls, empty texts and ignored paths aside.

    A text counts as held where it is, or is within, a text of the reply: a sound's base64 is within its data URL.
    """
    found = list(leaves(reply.model_dump(mode="json")))
    texts = {value for _, value in found if isinstance(value, str)}
    numbers = {(type(value), value) for _, value in found if isinstance(value, int | float)}
    lost = []
    for path, value in leaves(body):
        if value is None or value == "" or path in ignored:
            continue
        if isinstance(value, str):
            held = value in texts or (len(value) > 40 and any(value in text for text in texts))
        else:
            held = (type(value), value) in numbers
        if not held:
            lost.append((path, value))
    return lost
