"""What the author's provider answered: decoded from the recordings of a suite, or asked for now.

cassettes/*.yaml ─▶ answers that are no errors ─▶ dialect.decode, or its decoder ─▶ replies
a suite that says `asks_live` ─────────────────▶ the answers to its questions ────▶ replies
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sabir import Message, Reply
from sabir.authoring import DecodeScope, Dialect, JSONValue, Part
from sabir.reading.incoming import StreamState

from sabir_testing.cassettes import RecordedExchange, exchanges
from sabir_testing.kit.exchanges import WHOLE, Service
from sabir_testing.kit.suite import Subject


def own_replies(subject: Subject) -> tuple[Reply, ...]:
    """The replies that hold messages, of all recordings in the order of their names; none where nothing is recorded."""
    if subject.suite.asks_live:
        return tuple(reply for answer in Service(subject).answers(WHOLE) for reply in answer.asked.replies)
    found: list[Reply] = []
    for each in _exchanges(subject.suite.cassettes):
        if each.status < 400:
            found += _reply(each.response_body, subject.dialect, subject.scope(), is_stream=each.is_stream)
    return tuple(found)


def own_messages(subject: Subject) -> tuple[Message, ...]:
    """Every message of those replies."""
    return tuple(message for reply in own_replies(subject) for message in reply.messages)


def own_parts(subject: Subject) -> tuple[Part, ...]:
    """The parts that only the provider itself can read, each once."""
    found = (part for message in own_messages(subject) for part in message.parts if is_bound(part))
    return tuple(dict.fromkeys((*found, *subject.suite.blocks)))


def own_bodies(subject: Subject) -> list[JSONValue]:
    """The recorded answers that are JSON, as JSON; none where nothing is recorded."""
    return [value for status, value in _documents(subject.suite.cassettes) if status < 400]


def own_refusals(subject: Subject) -> list[JSONValue]:
    """The recorded bodies of refusals that are JSON, as JSON."""
    return [value for status, value in _documents(subject.suite.cassettes) if status >= 400]


def is_bound(part: Part) -> bool:
    """Whether a part is its maker's own: a block, a thought, a text with state or citations."""
    if part.kind in ("opaque", "reasoning"):
        return True
    return part.kind == "text" and (part.state_json is not None or bool(part.citations))


def _exchanges(folder: Path | None) -> Iterator[RecordedExchange]:
    for path in sorted(folder.glob("*.yaml")) if folder else ():
        yield from exchanges(path)


def _documents(folder: Path | None) -> Iterator[tuple[int, JSONValue]]:
    """Status and JSON of each recorded answer that is no stream."""
    for each in _exchanges(folder):
        if not each.is_stream:
            with suppress(ValueError):
                yield each.status, json.loads(each.response_body)


def _reply(body: bytes, dialect: Dialect, scope: DecodeScope, *, is_stream: bool) -> Iterator[Reply]:
    """The reply that a body is; nothing where it is none, as the count of a request's tokens."""
    try:
        reply = _folded(body, dialect, scope) if is_stream else dialect.decode(body, scope)
    except Exception:  # no answer to a question, or a fault that other cases tell of
        return
    if reply.messages:
        yield reply


def _folded(body: bytes, dialect: Dialect, scope: DecodeScope) -> Reply:
    state = StreamState(dialect, scope)
    for _ in (*state.feed(body), *state.close()):
        pass
    return state.reply()
