"""What a bound call leaves in the ledger, and how two calls are told apart.

    request   {"name": …, "observations": {"count": 12, "last": {…}}, "options": […], "arguments": {…}}   to be read
    digest    SHA-256 of observations, options and arguments                                              to compare

The digest ignores what differs though nothing else does: ids and origins of messages, their role hints and steps.
It holds no function name and no time; options take part in it. The observations are in the
ledger where they arose, so a request shows only how many there were and the last: a record does not grow with its
history.
"""

import json
import weakref
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from typing import Any

from sabir import Message, dumps, dumps_lines, loads
from sabir.authoring import load_as, one_line, parse_json
from sabir_runtime.contexts import BoundCall
from sabir_runtime.failures import Failure, PolicyFailed, failure_of

_UNCOUNTED = {"id", "origin", "schema_number", "role_hint_for_llm", "step_num"}
_UNSHOWN = {*_UNCOUNTED, "schema"}
_SHOWN = 160
"""Characters of a value that an error shows."""
_BEFORE = 20
"""How many of these may stand before the first that differs."""
_digests: dict[int, tuple["weakref.ref[Message]", bytes]] = {}


@dataclass(frozen=True)
class Request:
    """A call as the ledger knows it."""

    name: str
    digest: str
    shown: str
    """Readable JSON."""


def request_of(call: BoundCall) -> Request:
    """What is recorded of a bound call before it is performed; PolicyInvalid for arguments that JSON cannot hold."""
    arguments = call.bound.signature.encode(call.arguments) if call.arguments else "{}"
    options = json.dumps(call.options)
    digest = sha256(b"".join(_digest(message) for message in call.observations))
    digest.update(f"{options}\n{_canonical(arguments)}".encode())
    last = encode_message(call.observations[-1]) if call.observations else "null"
    shown = (
        f'{{"name":{json.dumps(call.name)},"observations":{{"count":{len(call.observations)},"last":{last}}},'
        f'"options":{options},"arguments":{arguments}}}'
    )
    return Request(call.name, digest.hexdigest(), shown)


def whole_request(call: BoundCall) -> str:
    """All that is needed to make the call again in another process, as JSON."""
    arguments = call.bound.signature.encode(call.arguments)
    observations, options = dumps(call.observations), json.dumps(call.options)
    return f'{{"observations":{observations},"options":{options},"arguments":{arguments}}}'


def answer_request(call: Message) -> Request:
    """What is recorded of an option call when it is answered."""
    assert call.call is not None
    return Request(call.call.option_name, _digest(call).hex(), f'{{"call":{encode_message(call)}}}')


def encode_message(message: Message) -> str:
    """One message as JSON text."""
    return dumps_lines([message]).rstrip("\n")


def encode_failure(failure: PolicyFailed) -> str:
    """A policy's failure as JSON text."""
    return failure_of(failure).model_dump_json()


def decode_failure(text: str) -> PolicyFailed:
    """The failure that a text holds; what a newer version added is kept."""
    return load_as(Failure.model_validate, json.loads(text)).error()


def unpack_request(text: str) -> tuple[list[Message], list[str] | None, str]:
    """Observations, options and the text of the arguments of a whole request."""
    stored = json.loads(text)
    return loads(json.dumps(stored["observations"])), stored["options"], json.dumps(stored["arguments"])


def difference(recorded: str, found: str) -> str:
    """Where the requests of two calls first differ, in words: what was recorded, and what was found instead."""
    was, now = _counted(json.loads(recorded)), _counted(json.loads(found))
    key = next((name for name in was if not _is_same(was[name], now.get(name))), "observations")
    one, other = was.get(key), now.get(key)
    if key != "observations" or isinstance(one, list):
        place, one, other = _apart(one, other)
        shown, instead = _windows(one, other)
        return f"recorded with {key}{place} {shown}, found {instead}"
    if _is_same(one, other):
        return f"recorded with other observations: of {one['count']} messages, one before the last is another"
    place, last, instead_last = _apart(one["last"], other["last"])
    shown, instead = _windows(last, instead_last)
    at = f"messages, the last with {place.lstrip('.')}" if place else "messages, the last"
    return f"recorded with observations {one['count']} {at} {shown}, found {other['count']} {at} {instead}"


def _counted(held: Any) -> Any:  # what JSON holds
    """A request without what is left out of the digests of its messages."""
    if isinstance(held, dict):
        is_message = {"policy", "payload"} <= held.keys()
        return {name: _counted(item) for name, item in held.items() if not is_message or name not in _UNSHOWN}
    return [_counted(item) for item in held] if isinstance(held, list) else held


def _apart(was: Any, now: Any, place: str = "") -> tuple[str, Any, Any]:
    """The innermost place where two values of JSON first differ, and what either has there."""
    if isinstance(was, dict) and isinstance(now, dict):
        pairs = [(f"{place}.{name}", was.get(name), now.get(name)) for name in was | now]
    elif isinstance(was, list) and isinstance(now, list):
        pairs = [(f"{place}[{index}]", *pair) for index, pair in enumerate(zip_longest(was, now))]
    else:
        return place, was, now
    return next((_apart(one, other, at) for at, one, other in pairs if not _is_same(one, other)), (place, was, now))


def _is_same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _windows(*values: Any) -> list[str]:
    """Values in one line each, long ones from shortly before the first character that differs."""
    texts = [" ".join(json.dumps(value, ensure_ascii=False).split()) for value in values]
    differs = next((index for index, pair in enumerate(zip_longest(*texts)) if len(set(pair)) > 1), 0)
    start = differs - _BEFORE if max(map(len, texts)) > _SHOWN else 0
    return [one_line(f"…{text[start:]}" if start > 0 else text, _SHOWN) for text in texts]


def _digest(message: Message) -> bytes:
    """That of one message, kept as long as the message lives: histories are looked at again and again."""
    key = id(message)
    known = _digests.get(key)
    if known is not None and known[0]() is message:
        return known[1]
    content = message.model_dump_json(exclude=_UNCOUNTED, exclude_none=True)
    digest = sha256(_canonical(content).encode()).digest()
    _digests[key] = (weakref.ref(message, lambda _: _digests.pop(key, None)), digest)
    return digest


def _canonical(text: str) -> str:
    return json.dumps(parse_json(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
