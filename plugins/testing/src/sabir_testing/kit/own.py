"""The answers of the author's provider: decoded from the recordings of a suite, or asked for now.

cassettes/*.yaml ─▶ answers that are no errors ─▶ dialect.decode, or its decoder ─▶ replies
a suite that says `asks_live` ─────────────────▶ the answers to its questions ────▶ replies
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from sabir import Message, Reply
from sabir.authoring import JSONValue, Part

from sabir_testing.cassettes import RecordedExchange, exchanges
from sabir_testing.kit.exchanges import STREAMED, WHOLE, Service
from sabir_testing.kit.played import play
from sabir_testing.kit.suite import Subject, Suite


def own_replies(subject: Subject) -> tuple[Reply, ...]:
    """The replies that hold messages, of all recordings in the order of their names; none where nothing is recorded."""
    if subject.suite.asks_live:
        return tuple(reply for answer in Service(subject).answers(WHOLE) for reply in answer.asked.replies)
    read = (_read(subject, each, is_stream=is_stream) for is_stream, each in _recorded(subject.suite))
    return tuple(reply for reply in read if reply is not None and reply.messages)


def own_messages(subject: Subject) -> tuple[Message, ...]:
    """Every message of those replies."""
    return tuple(message for reply in own_replies(subject) for message in reply.messages)


def own_parts(subject: Subject) -> tuple[Part, ...]:
    """The parts that only the provider itself can read, each once."""
    found = (part for message in own_messages(subject) for part in message.parts if is_bound(part))
    return tuple(dict.fromkeys((*found, *subject.suite.blocks)))


def own_bodies(subject: Subject, *, refused: bool = False) -> list[JSONValue]:
    """The recorded answers that are JSON, or the recorded refusals, as JSON; none where nothing is recorded."""
    found: list[JSONValue] = []
    for is_stream, each in _recorded(subject.suite):
        if (each.status >= 400) is refused and not (is_stream and each.status < 400):
            with suppress(ValueError):
                found.append(json.loads(each.response_body))
    return found


def is_bound(part: Part) -> bool:
    """Whether a part is its maker's own: a block, a thought, a text with state or citations."""
    if part.kind in ("opaque", "reasoning"):
        return True
    return part.kind == "text" and (part.state_json is not None or bool(part.citations))


def _recorded(suite: Suite) -> Iterator[tuple[bool, RecordedExchange]]:
    """The recorded exchanges, and whether each is a stream."""
    for path in sorted(suite.cassettes.glob("*.yaml")) if suite.cassettes else ():
        yield from ((path.stem.endswith(STREAMED) or each.is_stream, each) for each in exchanges(path))


def _read(subject: Subject, exchange: RecordedExchange, *, is_stream: bool) -> Reply | None:
    """The reply that an exchange is; None where it is none, as an error or the count of a request's tokens."""
    if exchange.status >= 400:
        return None
    body, scope = exchange.response_body, subject.scope()
    try:
        if not is_stream:
            return subject.dialect.decode(body, scope)
        scope = replace(scope, content_type=exchange.headers.get("content-type", ""))
        return play(subject.dialect, scope, [body]).reply
    except Exception:  # no answer to a question, or a fault that other cases tell of
        return None
