"""This package's tables in a store: runs, their calls, and the workers.

    sabir_runs      one row a run       its request; the epoch that fences off former holders; its holder until it is
                                        released; the wish for its future
    sabir_calls     one row a call      path, digest, request, state, batch, result or failure: JSON, readable
    sabir_workers   one row a worker    when it was last seen; its lock says whether it lives

Everything is plain text and numbers, so that a database shell shows it. Times are seconds since 1970.

A bound call is recorded with its request, to be read, and a digest, to be compared:

    request   {"name": …, "observations": {"count": 12, "last": {…}}, "options": […], "arguments": {…}}
    digest    SHA-256 of observations, options and arguments

The digest ignores ids, origins, role hints and steps of messages, which differ between equal calls. It includes the
options, but no function name and no time. The observations are in the ledger where they arose, so a request shows only
their number and the last one: a record does not grow with its history.
"""

import json
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from typing import Any, Literal, TypeAlias, get_args, get_type_hints

import sqlalchemy as sa
from sabir import Message, dumps, dumps_lines, loads
from sabir.authoring import load_stored, one_line

from sabir_runtime.contexts import BoundCall
from sabir_runtime.durable.views import CallState
from sabir_runtime.failures import Failure, PolicyFailed, failure_of

_UNCOUNTED = {"id", "origin", "schema_number", "role_hint_for_llm", "step_num"}
_UNSHOWN = {*_UNCOUNTED, "schema"}
_SHOWN = 160
"""Characters of a value that an error shows."""
_BEFORE = 20
"""How many of these characters may precede the first one that differs."""
_digests: dict[int, tuple["weakref.ref[Message]", bytes]] = {}


@dataclass(frozen=True)
class Request:
    """A call's name, digest and readable request, as the ledger stores them."""

    name: str
    digest: str
    shown: str
    """Readable JSON."""


def request_of(call: BoundCall) -> Request:
    """Return the stored form of a bound call. Raises PolicyInvalid for arguments that are not JSON."""
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
    """Return the JSON text with which another process can repeat a call."""
    arguments = call.bound.signature.encode(call.arguments)
    observations, options = dumps(call.observations), json.dumps(call.options)
    return f'{{"observations":{observations},"options":{options},"arguments":{arguments}}}'


def answer_request(call: Message) -> Request:
    """Return the stored form of an option call's answer."""
    assert call.call is not None
    return Request(call.call.option_name, _digest(call).hex(), f'{{"call":{encode_message(call)}}}')


def encode_message(message: Message) -> str:
    """One message as JSON text."""
    return dumps_lines([message]).rstrip("\n")


def encode_failure(failure: PolicyFailed) -> str:
    """A policy's failure as JSON text."""
    return failure_of(failure).model_dump_json()


def unpack_request(text: str) -> tuple[list[Message], list[str] | None, str]:
    """Observations, options and the text of the arguments of a whole request."""
    stored = json.loads(text)
    return loads(json.dumps(stored["observations"])), stored["options"], json.dumps(stored["arguments"])


def difference(recorded: str, found: str) -> str:
    """Describe the first difference between a stored and a present request of a call."""
    was, now = (dict(_leaves(json.loads(text))) for text in (recorded, found))
    place = next((each for each in was | now if was.get(each) != now.get(each)), None)
    if place is None:
        return "recorded with other observations: a message before the last one differs"
    shown, instead = _windows(was.get(place, "nothing"), now.get(place, "nothing"))
    return f"recorded with {place} {shown}, found {instead}"


def _leaves(held: Any, place: str = "") -> Iterator[tuple[str, str]]:  # what JSON holds
    """Place → its value as JSON; without the fields that the digests of messages ignore."""
    if isinstance(held, dict):
        unshown = _UNSHOWN if {"policy", "payload"} <= held.keys() else ()
        inner = {f"{place}.{name}".lstrip("."): item for name, item in held.items() if name not in unshown}
    else:
        is_plain = not isinstance(held, list) or not any(isinstance(item, dict) for item in held)
        inner = {} if is_plain else {f"{place}[{index}]": item for index, item in enumerate(held)}
    if not inner:
        yield place, json.dumps(held, ensure_ascii=False)
    for at, item in inner.items():
        yield from _leaves(item, at)


def _windows(*texts: str) -> list[str]:
    """Values in one line each, long ones from shortly before the first character that differs."""
    differs = next((index for index, pair in enumerate(zip_longest(*texts)) if len(set(pair)) > 1), 0)
    start = differs - _BEFORE if max(map(len, texts)) > _SHOWN else 0
    return [one_line(f"…{text[start:]}" if start > 0 else text, _SHOWN) for text in texts]


def _digest(message: Message) -> bytes:
    """The digest of one message, cached as long as the message lives: histories are read often."""
    key = id(message)
    known = _digests.get(key)
    if known is not None and known[0]() is message:
        return known[1]
    content = message.model_dump_json(exclude=_UNCOUNTED, exclude_none=True)
    digest = sha256(_canonical(content).encode()).digest()
    _digests[key] = (weakref.ref(message, lambda _: _digests.pop(key, None)), digest)
    return digest


def _canonical(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


Wish: TypeAlias = Literal["run", "pause", "cancel"]
"""The requested state of a run."""


@dataclass(frozen=True)
class Run:
    """A row of `sabir_runs`: a run's request, and its holder."""

    run: str
    application: str
    version: str
    context: str
    name: str
    digest: str
    request: str
    epoch: int = 0
    deaths: int = 0
    """The number of workers that died while performing the run, since its last new record or its resumption."""
    wish: Wish = "run"
    fault: str | None = None
    worker: str | None = None
    holder: str | None = None
    """The worker that executes the run or a part of it, also after a stop; None after the release."""
    forked_from: str | None = None
    created_at: float = 0.0


@dataclass(frozen=True)
class Call:
    """A row of `sabir_calls`: a bound call of a run, or the answer to an option call."""

    run: str
    path: str
    number: int
    kind: Literal["call", "answer"]
    name: str
    digest: str
    request: str
    state: CallState
    batch: str | None = None
    result: str | None = None
    failure: str | None = None
    worker: str | None = None
    started_at: float = 0.0
    ended_at: float | None = None

    @property
    def given(self) -> str:
        """The result as JSON; while the call is not done, the policy's batch."""
        return self.result or self.batch or "[]"

    def outcome(self) -> list[Message]:
        """Return the result of a call that is done. Raises PolicyFailed for a failed call."""
        if self.state == "failed":
            raise load_stored(
                Failure.model_validate, json.loads(self.failure or "{}")
            ).error()  # also of a newer version
        return loads(self.given)


_TYPES = {int: sa.Integer, float: sa.Float}


def _columns(row: type[Run] | type[Call], *keys: str) -> Iterator[sa.Column[Any]]:
    """A column for each field: a number or text, which may be missing where the field may be None."""
    for name, hint in get_type_hints(row).items():
        kinds = get_args(hint) or (hint,)
        yield sa.Column(name, _TYPES.get(kinds[0], sa.Text), nullable=type(None) in kinds, primary_key=name in keys)


metadata = sa.MetaData()
versions = sa.Table("sabir_durable_schema", metadata, sa.Column("version", sa.Integer, primary_key=True))
runs = sa.Table(
    "sabir_runs",
    metadata,
    *_columns(Run, "run"),
    sa.Index("sabir_runs_newest", "created_at"),
    sa.Index("sabir_runs_new", "worker", sqlite_where=sa.text("epoch = 0"), postgresql_where=sa.text("epoch = 0")),
)
calls = sa.Table("sabir_calls", metadata, *_columns(Call, "run", "path"))
workers = sa.Table(
    "sabir_workers",
    metadata,
    sa.Column("worker", sa.Text, primary_key=True),
    sa.Column("application", sa.Text, nullable=False),
    sa.Column("version", sa.Text),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("process", sa.Integer, nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("seen_at", sa.Float, nullable=False),
)
