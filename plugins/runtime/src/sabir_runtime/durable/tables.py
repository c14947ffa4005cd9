"""This package's tables in a store: runs, their calls, and the workers.

    sabir_runs      one row a run       its request; its epoch, which grows with each worker or stop, so that writes of
                                        earlier workers are refused; its holder until it is released; its wished state
    sabir_calls     one row a call      path, digest, request, state, batch, result or failure: JSON, readable
    sabir_workers   one row a worker    when it was last seen; its lock shows whether it lives

All values are texts and numbers, so that a database shell shows them. Times are seconds since 1970.

A bound call is recorded with its request for people, and a digest for comparisons:

    request   {"name": …, "observations": {"count": 12, "last": {…}}, "options": […], "arguments": {…}}
    digest    SHA-256 of observations, options and arguments

The digest ignores ids, origins, role hints and steps of messages, which differ between equal calls. It includes the
options, but no function name and no time. Of the observations, the request of a call contains only the number and the
last one, so that a record does not grow with its history. The request of a run contains all observations.
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
from sabir_runtime.failures import PolicyFailed, StoredFailure, failure_of

_UNCOUNTED = {"id", "origin", "schema_number", "role_hint_for_llm", "step_num"}
_LEFT_OUT = {*_UNCOUNTED, "schema"}
_MOST_CHARACTERS = 160
"""The maximum number of characters of a value in an error."""
_BEFORE = 20
"""How many characters precede the first character that differs, if a value is longer than `_MOST_CHARACTERS`."""
_digests: dict[int, tuple["weakref.ref[Message]", bytes]] = {}


@dataclass(frozen=True)
class CallRequest:
    """A call's name, digest and readable request, as the ledger stores them."""

    name: str
    digest: str
    readable: str
    """The request as readable JSON."""


def request_of(call: BoundCall) -> CallRequest:
    """Return the stored form of a bound call. Raises PolicyInvalid for arguments that cannot be stored as JSON."""
    arguments = call.bound.signature.encode(call.arguments) if call.arguments else "{}"
    options = json.dumps(call.options)
    digest = sha256(b"".join(_message_digest(message) for message in call.observations))
    digest.update(f"{options}\n{_canonical_json(arguments)}".encode())
    last = encode_message(call.observations[-1]) if call.observations else "null"
    readable = (
        f'{{"name":{json.dumps(call.name)},"observations":{{"count":{len(call.observations)},"last":{last}}},'
        f'"options":{options},"arguments":{arguments}}}'
    )
    return CallRequest(call.name, digest.hexdigest(), readable)


def whole_request(call: BoundCall) -> str:
    """Return a call's observations, options and arguments as JSON text, so that another process can repeat the call.

    Raises PolicyInvalid for arguments that cannot be stored as JSON.
    """
    arguments = call.bound.signature.encode(call.arguments)
    observations, options = dumps(call.observations), json.dumps(call.options)
    return f'{{"observations":{observations},"options":{options},"arguments":{arguments}}}'


def answer_request(call: Message) -> CallRequest:
    """Return the stored form of an option call's answer."""
    assert call.call is not None
    return CallRequest(call.call.option_name, _message_digest(call).hex(), f'{{"call":{encode_message(call)}}}')


def encode_message(message: Message) -> str:
    """Return one message as JSON text in one line."""
    return dumps_lines([message]).rstrip("\n")


def encode_failure(failure: PolicyFailed) -> str:
    """Return a policy's failure as JSON text."""
    return failure_of(failure).model_dump_json()


def unpack_request(text: str) -> tuple[list[Message], list[str] | None, str]:
    """Return the observations, the options and the JSON text of the arguments from a text of `whole_request`."""
    stored = json.loads(text)
    return loads(json.dumps(stored["observations"])), stored["options"], json.dumps(stored["arguments"])


def difference(recorded: str, present: str) -> str:
    """Describe the first difference between a stored and a present request of a call, both as JSON text."""
    was, now = (dict(_walk_leaves(json.loads(text))) for text in (recorded, present))
    path = next((each for each in was | now if was.get(each) != now.get(each)), None)
    if path is None:
        return "recorded with other observations: a message before the last one (not shown in the record) differs"
    recorded_text, present_text = _cut_to_difference(was.get(path, "nothing"), now.get(path, "nothing"))
    return f"recorded with {path} {recorded_text}, found {present_text}"


def _walk_leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:  # any JSON value
    """Yield the path and the JSON text of each value inside of `value`.

    Fields of messages that the digests ignore are left out. A list without objects is one value.
    """
    if isinstance(value, dict):
        left_out = _LEFT_OUT if {"policy", "payload"} <= value.keys() else ()
        inner = {f"{path}.{name}".lstrip("."): item for name, item in value.items() if name not in left_out}
    else:
        is_leaf = not isinstance(value, list) or not any(isinstance(item, dict) for item in value)
        inner = {} if is_leaf else {f"{path}[{index}]": item for index, item in enumerate(value)}
    if not inner:
        yield path, json.dumps(value, ensure_ascii=False)
    for inner_path, item in inner.items():
        yield from _walk_leaves(item, inner_path)


def _cut_to_difference(*texts: str) -> list[str]:
    """Return each text in one line of at most `_MOST_CHARACTERS` characters.

    If a text is longer, all begin shortly before the first character that differs.
    """
    differs = next((index for index, pair in enumerate(zip_longest(*texts)) if len(set(pair)) > 1), 0)
    start = differs - _BEFORE if max(map(len, texts)) > _MOST_CHARACTERS else 0
    return [one_line(f"…{text[start:]}" if start > 0 else text, _MOST_CHARACTERS) for text in texts]


def _message_digest(message: Message) -> bytes:
    """Return the digest of one message. It is cached while the message object exists, because histories repeat."""
    key = id(message)
    known = _digests.get(key)
    if known is not None and known[0]() is message:
        return known[1]
    content = message.model_dump_json(exclude=_UNCOUNTED, exclude_none=True)
    digest = sha256(_canonical_json(content).encode()).digest()
    _digests[key] = (weakref.ref(message, lambda _: _digests.pop(key, None)), digest)
    return digest


def _canonical_json(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


Wish: TypeAlias = Literal["run", "pause", "cancel"]
"""The latest request for a run: to perform, pause or cancel it."""


@dataclass(frozen=True)
class RunRow:
    """A row of `sabir_runs`: a run's request, and the workers that performed it.

    `epoch` grows when a worker takes the run and when the run is stopped or requeued. `fault` is why the run is paused,
    or None. `worker` is the worker that took the run last, or that stored it to perform it.
    """

    run: str
    application: str
    version: str
    context: str
    name: str
    digest: str
    request: str
    epoch: int = 0
    deaths: int = 0
    """How many workers died while they performed the run, since its last new record or since `Runs.resume`."""
    wish: Wish = "run"
    fault: str | None = None
    worker: str | None = None
    holder: str | None = None
    """The worker that executes the run or a part of the run, even after a stop. None if there is none."""
    forked_from: str | None = None
    created_at: float = 0.0
    headers: str | None = None
    """The headers with which a worker's telemetry continues the trace of the run, as JSON. None if there are none."""


@dataclass(frozen=True)
class CallRow:
    """A row of `sabir_calls`: a call of a bound policy (`kind` "call"), or the answer to an option call ("answer")."""

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
    def messages_json(self) -> str:
        """The result as JSON text, else the policy's batch, else an empty list."""
        return self.result or self.batch or "[]"

    def outcome(self) -> list[Message]:
        """Return the result of a call that is done. Raises PolicyFailed for a failed call."""
        if self.state == "failed":
            raise load_stored(
                StoredFailure.model_validate, json.loads(self.failure or "{}")
            ).error()  # load_stored reads failures of a newer version, too
        return loads(self.messages_json)


_TYPES = {int: sa.Integer, float: sa.Float}


def _columns(row: type[RunRow] | type[CallRow], *keys: str) -> Iterator[sa.Column[Any]]:
    """Yield a column for each field: a number or text, which may be NULL if the field may be None."""
    for name, hint in get_type_hints(row).items():
        kinds = get_args(hint) or (hint,)
        yield sa.Column(name, _TYPES.get(kinds[0], sa.Text), nullable=type(None) in kinds, primary_key=name in keys)


metadata = sa.MetaData()
versions = sa.Table("sabir_durable_schema", metadata, sa.Column("version", sa.Integer, primary_key=True))
runs = sa.Table(
    "sabir_runs",
    metadata,
    *_columns(RunRow, "run"),
    sa.Index("sabir_runs_newest", "created_at"),
    sa.Index("sabir_runs_new", "worker", sqlite_where=sa.text("epoch = 0"), postgresql_where=sa.text("epoch = 0")),
)
calls = sa.Table("sabir_calls", metadata, *_columns(CallRow, "run", "path"))
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
