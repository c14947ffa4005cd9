"""Scripted batches: answers by key that a test defines, for programs that use the batches of sabir-calls.

scripted = ScriptedBatches({"soup": "bad", "bill": RateLimited("busy")}, polls=2)
program(Batch(scripted.adapter, scripted))      the program under test
scripted.prompts["soup"]                        what the program submitted

submit ──▶ "running" for `polls` requests of the status ──▶ "ended", or "failed" with `failure`
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, TypeAlias, cast

import sabir
from sabir.authoring import (
    Access,
    BatchAnswer,
    BatchOrder,
    BatchPage,
    BatchResults,
    BatchStatus,
    Decoded,
    DecodeScope,
    Dialect,
    ErrorTable,
    InProcessConnection,
    InProcessResponse,
    Operation,
    OperationClient,
    OperationRequest,
    Provider,
    RequestScope,
    WireRequest,
)
from sabir.errors import CallError, SettingsInvalid

from sabir_testing.scripted import PlainProvider
from sabir_testing.scripted.answers import Answer, ReplyContent, as_answer
from sabir_testing.scripted.api import NAME, PLAIN, chunks_of
from sabir_testing.scripted.gate import ScriptMismatch

Operations: TypeAlias = Mapping[str, Operation[Any, Any]]
"""Operations by name."""
PATH = "/batches"
CANCEL, RESULTS = "/cancel", "/results"
FAILED_REQUEST = 500


class ScriptedBatches(OperationClient[BatchOrder, BatchStatus]):
    """Batches for tests, with one answer for each key. Pass the adapter and this object to `sabir_calls.Batch`. Sends
    nothing over a network.

    An answer is a text, a `reply`, `calls`, or a CallError. `polls` is the number of times that the status is
    "running" before the batch is over. With a `failure`, the batch then fails as a whole for this reason. A submitted
    key without an answer raises ScriptMismatch, and an answer that depends on the request raises SettingsInvalid.

    >>> from sabir_calls import Batch
    >>> from sabir_testing import ScriptedBatches
    >>> scripted = ScriptedBatches({"soup": "bad"}, polls=1)
    >>> batches = Batch(scripted.adapter, scripted)
    >>> ticket = batches.submit_sync({"soup": "The soup was cold."})
    >>> batches.status_sync(ticket).phase, batches.status_sync(ticket).phase
    ('running', 'ended')
    >>> [outcome.text for outcome in batches.collect_sync(ticket)]
    ['bad']
    """

    def __init__(self, answers: Mapping[str, ReplyContent | CallError], *, polls: int = 0, failure: str = "") -> None:
        self._answers = {key: _check_answer(key, answer) for key, answer in answers.items()}
        self._polls, self._failure = polls, failure
        self._batches: dict[str, _ScriptedBatch] = {}
        self._lock = Lock()
        dialect = replace(PLAIN, decode_error=self._scripted_error)
        provider = cast("Provider", _BatchProvider(self._serve_batches, dialect))
        super().__init__(provider, OPERATIONS["batches.create"], "model", Access())
        self.adapter = sabir.ModelAdapter(provider, dialect, "model", Access())
        """The adapter that renders the prompts. It sends nothing."""

    @property
    def prompts(self) -> Mapping[str, tuple[sabir.Message, ...]]:
        """The prompts of all batches so far by key."""
        return {key: prompt for batch in self._batches.values() for key, prompt in batch.prompts.items()}

    def _scripted_error(self, status: int, headers: Mapping[str, str], body: bytes, provider: str) -> CallError:
        answer = self._answers.get(body.decode())
        assert answer is not None
        return next(step for step in answer.steps if isinstance(step, CallError))

    def _serve_batches(self, request: WireRequest) -> InProcessResponse:
        with self._lock:
            if request.path == PATH and request.method == "POST":
                return self._create(json.loads(request.body))
            if request.path == PATH:
                return _response([batch.fields for batch in self._batches.values()][::-1])
            batch_id, _, suffix = request.path.removeprefix(f"{PATH}/").partition("/")
            batch = self._batches[batch_id]
            if f"/{suffix}" == RESULTS:
                return InProcessResponse(200, [line.encode() + b"\n" for line in self._lines(batch)])
            if f"/{suffix}" == CANCEL:
                batch.cancel()
            else:
                batch.poll()
            return _response(batch.fields)

    def _create(self, order: Mapping[str, Any]) -> InProcessResponse:
        prompts = {key: _prompt_of(body) for key, body in order["requests"]}
        for key in prompts:
            if key not in self._answers:
                known = ", ".join(map(repr, self._answers)) or "none"
                raise ScriptMismatch(f"the program submits {key!r}, which has no answer; the script has {known}")
        failed = sum(_is_failed(self._answers[key]) for key in prompts)
        batch = _ScriptedBatch(f"batch-{len(self._batches) + 1}", prompts, failed, self._polls, self._failure)
        batch.fields |= {"name": order["name"], "digest": order["digest"]}
        self._batches[batch.fields["id"]] = batch
        return _response(batch.fields)

    def _lines(self, batch: "_ScriptedBatch") -> Iterator[str]:
        for key, prompt in batch.prompts.items():
            answer = self._answers[key]
            if batch.fields["phase"] == "cancelled":
                yield json.dumps({"key": key, "unanswered": "cancelled"})
            elif _is_failed(answer):
                yield json.dumps({"key": key, "body": key, "status": FAILED_REQUEST})
            else:
                words = sum(len(message.text.split()) for message in prompt)
                chunks = chunks_of(answer, lambda key=key: f"call-{key}", words)  # type: ignore[misc]
                body = b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))
                yield json.dumps({"key": key, "body": body.decode()})


class _ScriptedBatch:
    """A batch that was submitted: its prompts by key, and the fields of its status."""

    def __init__(
        self, batch_id: str, prompts: Mapping[str, tuple[sabir.Message, ...]], failed: int, polls: int, failure: str
    ) -> None:
        self.prompts = prompts
        self._failed, self._polls, self._failure = failed, polls, failure
        self.fields: dict[str, Any] = {"id": batch_id, "phase": "running", "total": len(prompts)}

    def poll(self) -> None:
        """End the batch if its status was "running" often enough."""
        if self.fields["phase"] != "running":
            return
        self._polls -= 1
        if self._polls >= 0:
            return
        if self._failure:
            self.fields |= {"phase": "failed", "error": self._failure}
        else:
            succeeded = len(self.prompts) - self._failed
            self.fields |= {"phase": "ended", "succeeded": succeeded, "failed": self._failed}

    def cancel(self) -> None:
        """Cancel the batch, unless it is over."""
        if self.fields["phase"] == "running":
            self.fields |= {"phase": "cancelled", "succeeded": 0, "failed": len(self.prompts)}


def _check_answer(key: str, answer: ReplyContent | CallError) -> Answer:
    checked = as_answer(answer, f"the answer to {key!r}")
    if not isinstance(checked, Answer):
        raise SettingsInvalid(f"the answer to {key!r} is a function; pass a text, a reply or an error")
    return checked


def _is_failed(answer: Answer) -> bool:
    return any(isinstance(step, CallError) for step in answer.steps)


def _prompt_of(body: str) -> tuple[sabir.Message, ...]:
    assert PLAIN.decode_history is not None
    return PLAIN.decode_history(body.encode(), DecodeScope(sabir.Target(provider=NAME, dialect=PLAIN.name))).messages


def _response(document: object) -> InProcessResponse:
    return InProcessResponse(200, [json.dumps(document).encode()])


def _encode_create(order: BatchOrder, scope: RequestScope) -> OperationRequest:
    requests = [[each.key, each.body.decode()] for each in order.requests]
    return OperationRequest(PATH, {"requests": requests, "name": order.name, "digest": order.digest})


def _encode_list(cursor: str, scope: RequestScope) -> OperationRequest:
    return OperationRequest(PATH, method="GET")


def _encode_id(batch_id: str, scope: RequestScope, *, suffix: str = "") -> OperationRequest:
    return OperationRequest(f"{PATH}/{batch_id}{suffix}", method="POST" if suffix == CANCEL else "GET")


def _status_of(fields: Mapping[str, Any]) -> BatchStatus:
    results = (BatchResults("batches.results", fields["id"]),) if fields["phase"] in ("ended", "cancelled") else ()
    return BatchStatus(**fields, results=results)


def _decode_status(body: bytes, scope: DecodeScope) -> Decoded[BatchStatus]:
    return Decoded(_status_of(json.loads(body)))


def _decode_list(body: bytes, scope: DecodeScope) -> Decoded[BatchPage]:
    return Decoded(BatchPage(tuple(map(_status_of, json.loads(body)))))


def _decode_answer(line: bytes, scope: DecodeScope) -> Decoded[BatchAnswer]:
    fields = json.loads(line)
    return Decoded(BatchAnswer(**{**fields, "body": fields.get("body", "").encode()}))


_operation = partial(Operation, decode_error=ErrorTable().decode)
OPERATIONS: Operations = {
    name: _operation(name=f"{NAME}.{name}", encode=encode, decode=decode, reads_lines=name == "batches.results")
    for name, encode, decode in (
        ("batches.create", _encode_create, _decode_status),
        ("batches.list", _encode_list, _decode_list),
        ("batches.status", _encode_id, _decode_status),
        ("batches.cancel", partial(_encode_id, suffix=CANCEL), _decode_status),
        ("batches.results", partial(_encode_id, suffix=RESULTS), _decode_answer),
    )
}
"""The operations by name."""


class _BatchProvider(PlainProvider):
    """The provider of scripted batches."""

    api_version = 2
    credentials = ()

    def __init__(self, serve: Any, dialect: Dialect) -> None:
        self._serve, self._dialect = serve, dialect

    def dialect(self, short_name: str) -> Dialect:
        """Return the plain dialect with the errors of the script."""
        return self._dialect

    def operations(self) -> Operations:
        """Return the operations of batches."""
        return OPERATIONS

    def connect(self, access: Access) -> InProcessConnection:
        """Return a connection to the script."""
        return InProcessConnection(self._serve)
