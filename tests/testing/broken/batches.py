"""Providers whose operations of batches do not belong together, or lose an answer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sabir.authoring import InProcessConnection, InProcessResponse, WireRequest
from sabir_echo import batches

from tests.testing.broken.further_replies import service_of_acme
from tests.testing.harness import Breakage

TOGETHER = "test_the_operations_of_batches_belong_together"
LIMITS = "test_the_limits_of_operations_are_positive"
ANSWERED = "test_a_batch_is_answered"
Lines = Callable[[list[Any]], list[Any]]
Counts = Callable[[dict[str, Any]], dict[str, Any]]


def operations(without: str = "") -> Mapping[str, Any]:
    """Return echo's operations of batches, under acme's name, without one of them."""
    named = {key: replace(each, name=f"acme.{key}") for key, each in batches.BATCHES.items()}
    return {key: each for key, each in named.items() if key != without}


def offering(every: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Acme with these operations."""

    def with_operations(provider: Any) -> Any:
        provider.operations = lambda: every
        return provider

    return with_operations


def batching(
    change: Lines = lambda lines: lines, counts: Counts = lambda counts: counts, status: int = 200
) -> Breakage:
    """Acme whose service is a function in this process that answers batches, with a change of their results, of the
    numbers in their status, or of the HTTP status of results.
    """
    service = service_of_acme()

    def chat(request: WireRequest) -> InProcessResponse:
        body = json.loads(request.body)
        try:
            service.check(body, "Bearer key")
        except service.Refused as refused:
            code, *words = refused.args
            error = {"error": dict(zip(("code", "message"), words, strict=True))}
            return InProcessResponse(code, [json.dumps(error).encode()])
        return InProcessResponse(200, [json.dumps(service.answer(body)).encode()])

    def serve(request: WireRequest) -> InProcessResponse:
        if not request.path.startswith(batches.PATH):
            return chat(request)
        lines = [json.loads(line) for line in b"".join(batches.serve(request, chat).chunks).splitlines()]
        if not request.path.endswith(batches.RESULTS):
            return InProcessResponse(200, [json.dumps({**lines[0], **counts(lines[0])}).encode()])
        return InProcessResponse(status, [json.dumps(line).encode() + b"\n" for line in change(lines)])

    return Breakage(
        provider=offering(operations()),
        connection=lambda base: InProcessConnection(serve),
        attributes={"asks_live": True},
    )


def named_alike(lines: list[Any]) -> list[Any]:
    """All answers have the key of the first."""
    return [{**line, "key": lines[0]["key"]} for line in lines]


def exchanged(lines: list[Any]) -> list[Any]:
    """The first two answers have each other's key."""
    first, second, *others = lines
    return [{**first, "key": second["key"]}, {**second, "key": first["key"]}, *others]


def accepted(lines: list[Any]) -> list[Any]:
    """Every answer has the status of a reply."""
    return [{**line, "status": 200} for line in lines]


BROKEN: Mapping[str, Breakage] = {
    TOGETHER: Breakage(provider=offering(operations(without="batches.status"))),
    LIMITS: Breakage(
        provider=offering({key: replace(each, limits={"texts": 0}) for key, each in operations().items()})
    ),
}
FAULTS: Mapping[tuple[str, str], Breakage] = {
    (LIMITS, "a limit has no name"): Breakage(
        provider=offering({key: replace(each, limits={"": 100}) for key, each in operations().items()})
    ),
    (TOGETHER, "a name is another operation's"): Breakage(
        provider=offering({**operations(), "batches.status": operations()["batches.create"]})
    ),
    (ANSWERED, "an answer is lost"): batching(lambda lines: lines[:1]),
    (ANSWERED, "answers have one key"): batching(named_alike),
    (ANSWERED, "answers have each other's key"): batching(exchanged),
    (ANSWERED, "a refused request is a reply"): batching(accepted),
    (ANSWERED, "a refused request succeeds"): batching(counts=lambda counts: {"succeeded": 3, "failed": 0}),
    (ANSWERED, "the total is the number of replies"): batching(counts=lambda counts: {"total": 2}),
    (ANSWERED, "results have no HTTP status"): batching(status=0),
}
"""(Case, the fault) → an adapter that the case stops."""
UNTRIED = frozenset({ANSWERED})
