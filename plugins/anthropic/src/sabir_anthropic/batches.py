"""Message Batches of Anthropic: requests in one JSON body, results as JSON lines.

    batches.create    POST /v1/messages/batches             all requests
    batches.status    GET /v1/messages/batches/ID           batches.cancel   POST /v1/messages/batches/ID/cancel
    batches.results   GET, the path of the status           one line for each request

A batch has no name and no metadata, and its requests cannot be read, so a batch cannot be found without its id. There
is no header that makes a repeated request harmless either.

https://platform.claude.com/docs/en/build-with-claude/batch-processing
"""

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

from sabir.authoring import (
    BatchAnswer,
    BatchOrder,
    BatchPhase,
    BatchRequest,
    BatchResults,
    BatchStatus,
    Decoded,
    DecodeScope,
    Operation,
    OperationRequest,
    RequestScope,
    decode_json,
    encode_json,
    first_whole_number,
    object_or_empty,
    text_or_empty,
    without_fields,
)
from sabir.errors import SettingsInvalid

from sabir_anthropic.dialect import CLOUD
from sabir_anthropic.errors import ERRORS

PATH = "/v1/messages/batches"
BETA = "anthropic-beta"
"""The header with names of betas. The names of all requests are joined, because a batch has one set of headers."""
UNANSWERED: Mapping[str, Any] = {"expired": "expired", "canceled": "cancelled"}
"""Type of a result → why the request has no answer."""


def encode_create(order: BatchOrder, scope: RequestScope) -> OperationRequest:
    """Return the request that creates a batch. Raises SettingsInvalid for a client of a cloud, which has no batches."""
    if CLOUD in scope.quirks:
        raise SettingsInvalid("Bedrock and Vertex AI have no Message Batches API; use Anthropic's own API for batches")
    requests = [
        {"custom_id": each.key, "params": without_fields(object_or_empty(decode_json(each.body)), "stream")}
        for each in order.requests
    ]
    return OperationRequest(PATH, {"requests": requests}, headers=_join_headers(order.requests))


def _join_headers(requests: tuple[BatchRequest, ...]) -> dict[str, str]:
    """Return the headers of all requests. Raises SettingsInvalid if two requests have different values of a header that
    cannot be joined.
    """
    joined: dict[str, str] = {}
    for name, text in (pair for request in requests for pair in request.headers.items()):
        if name == BETA:
            names = [*joined.get(name, "").split(","), *text.split(",")]
            joined[name] = ",".join(dict.fromkeys(filter(None, (each.strip() for each in names))))
        elif joined.setdefault(name, text) != text:
            raise SettingsInvalid(f"two requests have different headers {name!r}; submit them as two batches")
    return joined


def encode_status(batch_id: str, scope: RequestScope) -> OperationRequest:
    """Return the request for the status of a batch."""
    return OperationRequest(f"{PATH}/{quote(batch_id, safe='')}", method="GET")


def encode_cancel(batch_id: str, scope: RequestScope) -> OperationRequest:
    """Return the request that cancels a batch."""
    return OperationRequest(f"{PATH}/{quote(batch_id, safe='')}/cancel")


def decode_status(body: bytes, scope: DecodeScope) -> Decoded[BatchStatus]:
    """Return the status of a batch. The vendor counts results only after the end."""
    batch = scope.read_object(body)
    reported = object_or_empty(batch.get("request_counts"))
    counts = {name: first_whole_number(count) or 0 for name, count in reported.items()}
    if not (batch_id := text_or_empty(batch.get("id"))):
        raise scope.invalid_answer("answered without an id; check the endpoint")
    status = BatchStatus(batch_id, _phase(batch, counts), total=sum(counts.values()))
    if not status.is_final:
        return Decoded(status)
    succeeded = counts.get("succeeded", 0)
    failed = status.total - succeeded if status.total is not None else None
    path = urlsplit(text_or_empty(batch.get("results_url"))).path
    results = (BatchResults("batches.results", path[path.find("/v1/") :]),) if "/v1/" in path else ()
    return Decoded(status._replace(succeeded=succeeded, failed=failed, results=results))


def _phase(batch: Mapping[str, Any], counts: Mapping[str, int]) -> BatchPhase:
    """Return the phase of a batch. An ended batch counts as cancelled or expired if at least one request was."""
    if batch.get("processing_status") != "ended":
        return "cancelling" if batch.get("processing_status") == "canceling" else "running"
    return "cancelled" if counts.get("canceled") else "expired" if counts.get("expired") else "ended"


def encode_results(path: str, scope: RequestScope) -> OperationRequest:
    """Return the request for the results of a batch. `path` comes from the batch's status, because it may change."""
    return OperationRequest(path, method="GET")


def decode_results(line: bytes, scope: DecodeScope) -> Decoded[BatchAnswer]:
    """Return the answer in one line of the results. For a failed request, its body is the vendor's error."""
    fields = scope.read_object(line)
    key, outcome = text_or_empty(fields.get("custom_id")), object_or_empty(fields.get("result"))
    if (kind := text_or_empty(outcome.get("type"))) in UNANSWERED:
        return Decoded(BatchAnswer(key, unanswered=UNANSWERED[kind]))
    return Decoded(BatchAnswer(key, encode_json(outcome.get("message", outcome.get("error"))).encode()))


_anthropic_operation = partial(Operation, decode_error=ERRORS.decode)
BATCHES: Mapping[str, Operation[Any, Any]] = {
    "batches.create": _anthropic_operation(
        name="anthropic.batches.create",
        encode=encode_create,
        decode=decode_status,
        limits={"requests": 100_000, "bytes": 256_000_000},
    ),
    "batches.status": _anthropic_operation(name="anthropic.batches.status", encode=encode_status, decode=decode_status),
    "batches.cancel": _anthropic_operation(name="anthropic.batches.cancel", encode=encode_cancel, decode=decode_status),
    "batches.results": _anthropic_operation(
        name="anthropic.batches.results", encode=encode_results, decode=decode_results, reads_lines=True
    ),
}
"""The operations by name. A batch may have 100,000 requests and 256 MB."""
