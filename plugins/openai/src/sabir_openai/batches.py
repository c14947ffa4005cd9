"""Batches of OpenAI: requests in an uploaded file, results in two files, one for replies and one for errors.

    batches.upload    POST /files         a file of JSON lines, as multipart/form-data
    batches.create    POST /batches       the file, with a name and a digest as metadata
    batches.list      GET /batches        finds a batch by its name
    batches.status    GET /batches/ID     batches.cancel   POST /batches/ID/cancel
    batches.results   GET /files/ID/content               one line for each request

https://developers.openai.com/api/docs/guides/batch
"""

from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import quote, urlencode

from sabir.authoring import (
    BatchAnswer,
    BatchOrder,
    BatchPage,
    BatchResults,
    BatchStatus,
    Decoded,
    DecodeScope,
    Fields,
    Operation,
    OperationRequest,
    RequestScope,
    decode_json,
    encode_json,
    first_whole_number,
    list_or_empty,
    object_or_empty,
    text_or_empty,
    without_fields,
)

from sabir_openai.errors import ERRORS

PHASES: Mapping[str, Any] = {
    "validating": "running",
    "in_progress": "running",
    "finalizing": "running",
    "cancelling": "cancelling",
    "completed": "ended",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
}
"""OpenAI's status of a batch → sabir's phase. An unknown status counts as running."""
UNANSWERED: Mapping[str, Literal["expired", "cancelled"]] = {
    "batch_expired": "expired",
    "batch_cancelled": "cancelled",
}
"""Error code of a line of results → why the request has no answer."""
NAME, DIGEST = "sabir_name", "sabir_digest"
"""Keys of a batch's metadata."""
NOT_IN_BATCHES = ("stream", "stream_options")
"""Fields that a request in a batch must not have."""
PAGE = 100
"""The number of batches to request in a page of the list."""


def encode_upload(order: BatchOrder, scope: RequestScope) -> OperationRequest:
    """Return the request that uploads the requests as a file. The same requests give the same bytes."""
    lines = (
        encode_json(
            {
                "custom_id": request.key,
                "method": "POST",
                "url": f"/v1{request.path}",
                "body": without_fields(object_or_empty(decode_json(request.body)), *NOT_IN_BATCHES),
            }
        )
        for request in order.requests
    )
    content = "".join(f"{line}\n" for line in lines).encode()
    boundary = sha256(content).hexdigest()
    disposition = f'--{boundary}\r\nContent-Disposition: form-data; name="'
    opening = f'{disposition}purpose"\r\n\r\nbatch\r\n{disposition}file"; filename="batch.jsonl"\r\n'
    body = opening.encode() + b"Content-Type: application/jsonl\r\n\r\n" + content + f"\r\n--{boundary}--\r\n".encode()
    return OperationRequest("/files", body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})


def decode_upload(body: bytes, scope: DecodeScope) -> Decoded[str]:
    """Return the id of the uploaded file."""
    return Decoded(_read_id(scope.read_object(body), scope))


def encode_create(order: BatchOrder, scope: RequestScope) -> OperationRequest:
    """Return the request that creates a batch from an uploaded file."""
    fields: dict[str, Any] = {
        "input_file_id": order.file,
        "endpoint": f"/v1{order.requests[0].path}",
        "completion_window": "24h",
    }
    if order.name:
        fields["metadata"] = {NAME: order.name, DIGEST: order.digest}
    return OperationRequest("/batches", fields)


def encode_list(cursor: str, scope: RequestScope) -> OperationRequest:
    """Return the request for the page of batches after the batch with the id `cursor`."""
    query = {"limit": PAGE} | ({"after": cursor} if cursor else {})
    return OperationRequest(f"/batches?{urlencode(query)}", method="GET")


def decode_list(body: bytes, scope: DecodeScope) -> Decoded[BatchPage]:
    """Return one page of batches."""
    page = scope.read_object(body)
    batches = tuple(read_status(object_or_empty(each), scope) for each in list_or_empty(page.get("data")))
    return Decoded(BatchPage(batches, batches[-1].id if batches and page.get("has_more") is True else ""))


def encode_status(batch_id: str, scope: RequestScope) -> OperationRequest:
    """Return the request for the status of a batch."""
    return OperationRequest(f"/batches/{quote(batch_id, safe='')}", method="GET")


def encode_cancel(batch_id: str, scope: RequestScope) -> OperationRequest:
    """Return the request that cancels a batch."""
    return OperationRequest(f"/batches/{quote(batch_id, safe='')}/cancel")


def decode_status(body: bytes, scope: DecodeScope) -> Decoded[BatchStatus]:
    """Return the status of a batch."""
    return Decoded(read_status(scope.read_object(body), scope))


def read_status(batch: Fields, scope: DecodeScope) -> BatchStatus:
    """Return the status in a batch object."""
    phase = PHASES.get(text_or_empty(batch.get("status")), "running")
    counts, metadata = object_or_empty(batch.get("request_counts")), object_or_empty(batch.get("metadata"))
    files = (text_or_empty(batch.get(name)) for name in ("output_file_id", "error_file_id"))
    problems = list_or_empty(object_or_empty(batch.get("errors")).get("data"))
    status = BatchStatus(
        _read_id(batch, scope),
        phase,
        total=first_whole_number(counts.get("total")) or None,
        succeeded=first_whole_number(counts.get("completed")),
        failed=first_whole_number(counts.get("failed")),
        error="; ".join(_describe_problem(object_or_empty(each)) for each in problems) or None,
        name=text_or_empty(metadata.get(NAME)),
        digest=text_or_empty(metadata.get(DIGEST)),
    )
    results = tuple(BatchResults("batches.results", file) for file in files if file)
    return status._replace(results=results) if status.is_final else status


def encode_results(file_id: str, scope: RequestScope) -> OperationRequest:
    """Return the request for a file of results."""
    return OperationRequest(f"/files/{quote(file_id, safe='')}/content", method="GET")


def decode_results(line: bytes, scope: DecodeScope) -> Decoded[BatchAnswer]:
    """Return the answer in one line of a file of results."""
    fields = scope.read_object(line)
    key, error = text_or_empty(fields.get("custom_id")), fields.get("error")
    response = object_or_empty(fields.get("response"))
    request_id = text_or_empty(response.get("request_id")) or None
    if error and not response.get("body"):
        code = text_or_empty(object_or_empty(error).get("code"))
        if code in UNANSWERED:
            return Decoded(BatchAnswer(key, unanswered=UNANSWERED[code]))
        return Decoded(BatchAnswer(key, encode_json({"error": error}).encode(), request_id=request_id))
    status = first_whole_number(response.get("status_code")) or 200
    return Decoded(BatchAnswer(key, encode_json(response.get("body")).encode(), status, request_id))


def _read_id(fields: Fields, scope: DecodeScope) -> str:
    if not (read := text_or_empty(fields.get("id"))):
        raise scope.invalid_answer("answered without an id; check the endpoint")
    return read


def _describe_problem(problem: Fields) -> str:
    line, message = problem.get("line"), text_or_empty(problem.get("message")) or text_or_empty(problem.get("code"))
    return message if line is None else f"line {line}: {message}"


_openai_operation = partial(Operation, decode_error=ERRORS.decode)
BATCHES: Mapping[str, Operation[Any, Any]] = {
    "batches.upload": _openai_operation(name="openai.batches.upload", encode=encode_upload, decode=decode_upload),
    "batches.create": _openai_operation(
        name="openai.batches.create",
        encode=encode_create,
        decode=decode_status,
        limits={"requests": 50_000, "bytes": 200_000_000},
    ),
    "batches.list": _openai_operation(name="openai.batches.list", encode=encode_list, decode=decode_list),
    "batches.status": _openai_operation(name="openai.batches.status", encode=encode_status, decode=decode_status),
    "batches.cancel": _openai_operation(name="openai.batches.cancel", encode=encode_cancel, decode=decode_status),
    "batches.results": _openai_operation(
        name="openai.batches.results", encode=encode_results, decode=decode_results, reads_lines=True
    ),
}
"""The operations by name. A file may have 50,000 requests and 200 MB."""
