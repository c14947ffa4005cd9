"""What the tables of this folder share: the vendors' dialects by their names, and a reply of a stream's events."""

import json
from collections.abc import Collection
from typing import Any

import sabir
from sabir.contract.dialect import Rendering, ServerEvent
from sabir.contract.provider import Access, Connection
from sabir.contract.scope import DecodeScope
from sabir.discovery import default_registry
from sabir.errors import CallError
from sabir.reading.fold import Fold
from sabir.rendering.renderer import Renderer
from sabir.vocabulary.messages import Message, OptionCallPayload, OptionResultPayload, Origin, PartsPayload
from sabir.vocabulary.models import ModelInfo
from sabir.vocabulary.parts import Part, TextPart
from sabir.vocabulary.reply import Reply, StreamEvent
from sabir.vocabulary.settings import Settings, Target

DIALECTS = ("anthropic.messages", "google.generate_content", "openai.chat", "openai.responses")
MODELS = dict(zip(DIALECTS, ("claude-opus-5-5", "gemini-2.5-flash", "unlisted", "unlisted"), strict=True))
"""One that takes what its wire has."""
ITEMS = dict(zip(DIALECTS, ("messages", "contents", "messages", "input"), strict=True))
"""Where a request has its messages."""


def provider_of(name: str) -> Any:
    """The provider of a dialect's full name, or of its own."""
    provider, _, dialect = name.partition(".")
    return default_registry.provider(provider, dialect or None)


def connection_of(name: str) -> Connection:
    """A connection that nothing is sent over."""
    found: Connection = provider_of(name).connect(Access(api_key="k"))
    return found


def refused(name: str, status: int, body: Any = b"", headers: dict[str, str] | None = None) -> CallError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    error: CallError = sabir.dialect(name).dialect.decode_error(status, headers or {}, data, name.partition(".")[0])
    return error


def events(scope: DecodeScope, *wire: Any, name: str = "") -> list[StreamEvent]:
    decoder = sabir.dialect(scope.target.dialect).dialect.decoder(scope)
    data = (each if isinstance(each, str) else json.dumps(each) for each in wire)
    found = [event for each in data for event in decoder.feed(ServerEvent(each, name))]
    return [*found, *decoder.close()]


def fold(scope: DecodeScope, *wire: Any) -> Reply:
    folded = Fold(scope)
    for event in events(scope, *wire):
        folded.feed(event)
    return folded.reply()


def whole(scope: DecodeScope, body: Any) -> Reply:
    reply: Reply = sabir.dialect(scope.target.dialect).dialect.decode(json.dumps(body).encode(), scope)
    return reply


def scope_of(name: str, model: str = "m", **fields: Any) -> DecodeScope:
    return DecodeScope(target=Target(provider=name.partition(".")[0], dialect=name, model=model), **fields)


def same(left: Reply, right: Reply) -> bool:
    """Equal but for the messages' own ids."""
    pairs = zip(left.messages, right.messages, strict=True)
    bare = {"messages": (), "alternatives": ()}
    return all(a.same_content(b) for a, b in pairs) and left.model_copy(update=bare) == right.model_copy(update=bare)


def lost(rendering: Rendering) -> list[tuple[str, str]]:
    """Kind and path of each loss."""
    return [(loss.kind, loss.path) for loss in rendering.losses]


def render(
    name: str,
    *messages: Message,
    model: str = "",
    options: Any = (),
    quirks: Collection[str] = (),
    info: ModelInfo | None = None,
    **settings: Any,
) -> Rendering:
    """What a conversation is on the wire; `vendor` is the provider's own section, `info` replaces the model's facts."""
    if "vendor" in settings:
        settings["vendor"] = {name.partition(".")[0]: settings["vendor"]}
    if name == "anthropic.messages":
        settings = {"max_output_tokens": 1024, **settings}
    found, given = sabir.dialect(name), Settings(**settings)
    if not quirks and info is None:
        return found.render(messages, model=model or MODELS[name], options=options, settings=given)
    target = found.target.model_copy(update={"model": model or MODELS[name]})
    return Renderer(found.dialect, target, model_info=info, quirks=frozenset(quirks)).render(messages, options, given)


def body(rendering: Rendering) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(rendering.body_bytes)
    return found


def items(name: str, *messages: Message, **how: Any) -> list[Any]:
    found: list[Any] = body(render(name, *messages, **how))[ITEMS[name]]
    return found


def home(name: str, model: str = "") -> Origin:
    target = sabir.dialect(name).target
    return Origin(provider=target.provider, dialect=name, endpoint=target.endpoint, model=model or MODELS[name])


def said(*parts: Part | str, policy: str = "llm", origin: Origin | None = None) -> Message:
    made = tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)
    return Message(policy=policy, origin=origin, payload=PartsPayload(parts=made))


def call(number: int = 1, origin: Origin | None = None, **fields: Any) -> Message:
    payload = OptionCallPayload(invocation_id=f"call_{number}", option_name="weather", **fields)
    return Message(policy="llm", origin=origin, payload=payload)


def result(number: int = 1, **fields: Any) -> Message:
    payload = OptionResultPayload(invocation_id=f"call_{number}", option_name="weather", **fields)
    return Message(policy="weather", payload=payload)
