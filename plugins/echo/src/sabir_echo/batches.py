"""Batches of echo, which are over at once. Nothing is stored: the id of a batch contains its requests.

    batches.create    POST /batches        batches.status, batches.cancel    GET /batches/ID
    batches.results   GET /batches/ID/results, one line for each request

A batch has no name, so a program that lost the id cannot find the batch again.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias
from zlib import compress, decompress

from sabir.authoring import (
    BatchAnswer,
    BatchOrder,
    BatchResults,
    BatchStatus,
    Decoded,
    DecodeScope,
    ErrorTable,
    InProcessResponse,
    Operation,
    OperationRequest,
    RequestScope,
    WireRequest,
    decode_json,
    encode_json,
)

Operations: TypeAlias = Mapping[str, Operation[Any, Any]]
"""Operations by name."""
PATH = "/batches"
RESULTS = "/results"


def encode_create(order: BatchOrder, scope: RequestScope) -> OperationRequest:
    """Return the request that creates a batch."""
    requests = [[each.key, decode_json(each.body)] for each in order.requests]
    return OperationRequest(PATH, {"requests": requests})


def encode_status(batch_id: str, scope: RequestScope) -> OperationRequest:
    """Return the request for the status of a batch. The operation `batches.cancel` uses it too, because every batch is
    over at once.
    """
    return OperationRequest(f"{PATH}/{batch_id}", method="GET")


def decode_status(body: bytes, scope: DecodeScope) -> Decoded[BatchStatus]:
    """Return the status of a batch."""
    fields = scope.read_object(body)
    results = (BatchResults("batches.results", fields["id"]),)
    status = BatchStatus(fields["id"], "ended", fields["total"], fields["succeeded"], fields["failed"], results)
    return Decoded(status)


def encode_results(batch_id: str, scope: RequestScope) -> OperationRequest:
    """Return the request for the results of a batch."""
    return OperationRequest(f"{PATH}/{batch_id}{RESULTS}", method="GET")


def decode_results(line: bytes, scope: DecodeScope) -> Decoded[BatchAnswer]:
    """Return the answer in one line of the results."""
    fields = scope.read_object(line)
    return Decoded(BatchAnswer(fields["key"], encode_json(fields["body"]).encode(), fields["status"]))


def serve(request: WireRequest, answer: Callable[[WireRequest], InProcessResponse]) -> InProcessResponse:
    """Return the response to a request for a batch. `answer` is a function that answers one request of the batch."""
    if request.method == "POST":
        requests = json.loads(request.body)["requests"]
        batch_id = urlsafe_b64encode(compress(json.dumps(requests).encode())).decode()
    else:
        batch_id = request.path.removesuffix(RESULTS).removeprefix(f"{PATH}/")
        requests = json.loads(decompress(urlsafe_b64decode(batch_id)))
    lines = [_line(key, answer(WireRequest("/echo", json.dumps(body).encode()))) for key, body in requests]
    if request.path.endswith(RESULTS):
        return InProcessResponse(200, [json.dumps(line).encode() + b"\n" for line in lines])
    succeeded = sum(line["status"] == 200 for line in lines)
    counts = {"total": len(lines), "succeeded": succeeded, "failed": len(lines) - succeeded}
    return InProcessResponse(200, [json.dumps({"id": batch_id, **counts}).encode()])


def _line(key: str, response: InProcessResponse) -> dict[str, Any]:
    """Return the line of the results for one request of a batch."""
    return {"key": key, "status": response.status, "body": json.loads(b"".join(response.chunks))}


_echo_operation = partial(Operation, decode_error=ErrorTable().decode)
BATCHES: Operations = {
    "batches.create": _echo_operation(name="echo.batches.create", encode=encode_create, decode=decode_status),
    "batches.status": _echo_operation(name="echo.batches.status", encode=encode_status, decode=decode_status),
    "batches.cancel": _echo_operation(name="echo.batches.cancel", encode=encode_status, decode=decode_status),
    "batches.results": _echo_operation(
        name="echo.batches.results", encode=encode_results, decode=decode_results, reads_lines=True
    ),
}
"""The operations by name."""
