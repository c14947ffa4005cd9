"""Batches of the Gemini API: small ones with their requests inline, large ones with an uploaded file.

    batches.upload    POST /upload/v1beta/files                      a file of JSON lines, only for large batches
    batches.create    POST /v1beta/models/MODEL:batchGenerateContent
    batches.list      GET /v1beta/batches                            finds a batch by its name
    batches.status    GET /v1beta/batches/ID       batches.cancel    POST /v1beta/batches/ID:cancel
    batches.inlined   GET /v1beta/batches/ID                         all results of an inline batch
    batches.results   GET /download/v1beta/files/ID:download         one line for each request of a file

The display name of a batch has the name and the digest. Vertex AI has another API for batches, which reads and writes
cloud storage; it is not supported here.

https://ai.google.dev/gemini-api/docs/batch-api and https://ai.google.dev/api/batch-api
"""

from collections.abc import Callable, Mapping
from functools import partial, wraps
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote, urlencode

from sabir.authoring import (
    BatchAnswer,
    BatchOrder,
    BatchPage,
    BatchPhase,
    BatchRequest,
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
)
from sabir.errors import SettingsInvalid

from sabir_google.errors import ERRORS
from sabir_google.native import VERTEX

PHASES: Mapping[str, BatchPhase] = {
    "BATCH_STATE_SUCCEEDED": "ended",
    "BATCH_STATE_FAILED": "failed",
    "BATCH_STATE_CANCELLED": "cancelled",
    "BATCH_STATE_EXPIRED": "expired",
}
"""State of a batch → sabir's phase. Any other state counts as running."""
STATUSES: Mapping[int, tuple[int, str]] = {
    1: (499, "CANCELLED"), 2: (500, "UNKNOWN"), 3: (400, "INVALID_ARGUMENT"), 4: (504, "DEADLINE_EXCEEDED"),
    5: (404, "NOT_FOUND"), 6: (409, "ALREADY_EXISTS"), 7: (403, "PERMISSION_DENIED"), 8: (429, "RESOURCE_EXHAUSTED"),
    9: (400, "FAILED_PRECONDITION"), 10: (409, "ABORTED"), 11: (400, "OUT_OF_RANGE"), 12: (501, "UNIMPLEMENTED"),
    13: (500, "INTERNAL"), 14: (503, "UNAVAILABLE"), 15: (500, "DATA_LOSS"), 16: (401, "UNAUTHENTICATED"),
}  # fmt: skip
"""Code of a result's error → HTTP status and name:
https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
"""
CANCELLED = 1
"""The code of the error of a cancelled request."""
NO_NAME = "sabir"
"""The display name of a batch without a name. The API requires one."""
PAGE = 100
"""The number of batches to request in a page of the list."""


def _only_gemini(
    encode: Callable[[Any, RequestScope], OperationRequest],
) -> Callable[[Any, RequestScope], OperationRequest]:
    """Decorate an encoding function so that it raises SettingsInvalid for Vertex AI."""

    @wraps(encode)
    def checked(call: Any, scope: RequestScope) -> OperationRequest:
        if VERTEX in scope.quirks:
            raise SettingsInvalid("batches of Vertex AI need cloud storage; use the Gemini API for batches")
        return encode(call, scope)

    return checked


@_only_gemini
def encode_upload(order: BatchOrder, scope: RequestScope) -> OperationRequest:
    """Return the request that uploads the requests as a file. The same requests give the same bytes."""
    lines = (encode_json({"key": each.key, "request": _request(each)}) for each in order.requests)
    content = "".join(f"{line}\n" for line in lines).encode()
    boundary = sha256(content).hexdigest()
    facts = encode_json({"file": {"displayName": "batch.jsonl", "mimeType": "application/jsonl"}})
    facts_part = f"--{boundary}\r\nContent-Type: application/json; charset=utf-8\r\n\r\n{facts}\r\n"
    file_opening = f"--{boundary}\r\nContent-Type: application/jsonl\r\n\r\n"
    body = (facts_part + file_opening).encode() + content + f"\r\n--{boundary}--\r\n".encode()
    headers = {"Content-Type": f"multipart/related; boundary={boundary}", "X-Goog-Upload-Protocol": "multipart"}
    return OperationRequest("/upload/v1beta/files", body, headers=headers)


def decode_upload(body: bytes, scope: DecodeScope) -> Decoded[str]:
    """Return the name of the uploaded file."""
    return Decoded(_read_name(object_or_empty(scope.read_object(body).get("file")), scope))


@_only_gemini
def encode_create(order: BatchOrder, scope: RequestScope) -> OperationRequest:
    """Return the request that creates a batch, from an uploaded file or with the requests inline."""
    requests = [{"request": _request(each), "metadata": {"key": each.key}} for each in order.requests if not order.file]
    source: Fields = {"fileName": order.file} if order.file else {"requests": {"requests": requests}}
    name = f"{order.name}#{order.digest}" if order.name else NO_NAME
    path = f"{order.requests[0].path.rpartition(':')[0]}:batchGenerateContent"
    return OperationRequest(path, {"batch": {"displayName": name, "inputConfig": source}})


def _request(request: BatchRequest) -> Fields:
    """Return the body of a request with its model, which is in the path of a single request."""
    model = unquote(request.path.rpartition(":")[0]).removeprefix("/v1beta/")
    return {"model": model, **object_or_empty(decode_json(request.body))}


@_only_gemini
def encode_list(cursor: str, scope: RequestScope) -> OperationRequest:
    """Return the request for the page of batches that the token `cursor` names."""
    query = {"pageSize": PAGE} | ({"pageToken": cursor} if cursor else {})
    return OperationRequest(f"/v1beta/batches?{urlencode(query)}", method="GET")


def decode_list(body: bytes, scope: DecodeScope) -> Decoded[BatchPage]:
    """Return one page of batches."""
    page = scope.read_object(body)
    batches = tuple(read_status(object_or_empty(each), scope) for each in list_or_empty(page.get("operations")))
    return Decoded(BatchPage(batches, text_or_empty(page.get("nextPageToken"))))


@_only_gemini
def encode_status(batch_id: str, scope: RequestScope) -> OperationRequest:
    """Return the request for a batch with its results, if they are inline."""
    return OperationRequest(f"/v1beta/{quote(batch_id)}", method="GET")


def decode_status(body: bytes, scope: DecodeScope) -> Decoded[BatchStatus]:
    """Return the status of a batch."""
    return Decoded(read_status(scope.read_object(body), scope))


@_only_gemini
def encode_cancel(batch_id: str, scope: RequestScope) -> OperationRequest:
    """Return the request that cancels a batch."""
    return OperationRequest(f"/v1beta/{quote(batch_id)}:cancel", {})


def decode_cancel(body: bytes, scope: DecodeScope) -> Decoded[BatchStatus | None]:
    """Return None, because the response is empty."""
    return Decoded(None)


def read_status(operation: Fields, scope: DecodeScope) -> BatchStatus:
    """Return the status in an operation, which is how the API describes a batch."""
    batch, error = object_or_empty(operation.get("metadata")), object_or_empty(operation.get("error"))
    counts, output = object_or_empty(batch.get("batchStats")), _output_of(operation)
    name, _, digest = text_or_empty(batch.get("displayName")).rpartition("#")
    batch_id, file = _read_name(operation, scope), text_or_empty(output.get("responsesFile"))
    results = BatchResults("batches.results", file) if file else BatchResults("batches.inlined", batch_id)
    return BatchStatus(
        batch_id,
        PHASES.get(text_or_empty(batch.get("state")), "running"),
        total=_read_count(counts, "requestCount"),
        succeeded=_read_count(counts, "successfulRequestCount"),
        failed=_read_count(counts, "failedRequestCount"),
        results=(results,) if output else (),
        error=text_or_empty(error.get("message")) or None,
        name=name,
        digest=digest,
    )


def decode_inlined(body: bytes, scope: DecodeScope) -> Decoded[tuple[BatchAnswer, ...]]:
    """Return all answers of a batch whose results are inline."""
    responses = object_or_empty(_output_of(scope.read_object(body)).get("inlinedResponses")).get("inlinedResponses")
    return Decoded(tuple(_read_answer(object_or_empty(each)) for each in list_or_empty(responses)))


@_only_gemini
def encode_results(file: str, scope: RequestScope) -> OperationRequest:
    """Return the request for a file of results."""
    return OperationRequest(f"/download/v1beta/{quote(file)}:download?alt=media", method="GET")


def decode_results(line: bytes, scope: DecodeScope) -> Decoded[BatchAnswer]:
    """Return the answer in one line of a file of results."""
    return Decoded(_read_answer(scope.read_object(line)))


def _read_answer(fields: Fields) -> BatchAnswer:
    """Return an answer. The key is a field of a line, or for an inline request in the metadata sent with it."""
    metadata = object_or_empty(fields.get("metadata"))
    key = text_or_empty(fields.get("key") or metadata.get("key") or next(iter(metadata.values()), ""))
    error = object_or_empty(fields.get("error"))
    if not error:
        return BatchAnswer(key, encode_json(fields.get("response")).encode())
    code = first_whole_number(error.get("code")) or 2
    if code == CANCELLED:
        return BatchAnswer(key, unanswered="cancelled")
    status, name = STATUSES.get(code, (code if code >= 400 else 500, ""))
    return BatchAnswer(key, encode_json({"error": {**error, "code": status, "status": name}}).encode(), status)


def _output_of(operation: Fields) -> Fields:
    """Return the output of a batch, from the metadata or, if it is not there, from `response`. {} before the end."""
    return object_or_empty(object_or_empty(operation.get("metadata")).get("output")) or object_or_empty(
        operation.get("response")
    )


def _read_name(fields: Fields, scope: DecodeScope) -> str:
    if not (name := text_or_empty(fields.get("name"))):
        raise scope.invalid_answer("answered without a name; check the endpoint")
    return name


def _read_count(counts: Fields, name: str) -> int | None:
    """Return a number, which the API sends as a string; None if it is missing."""
    text = counts.get(name)
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() else first_whole_number(text)


_google_operation = partial(Operation, decode_error=ERRORS.decode)
BATCHES: Mapping[str, Operation[Any, Any]] = {
    "batches.upload": _google_operation(name="google.batches.upload", encode=encode_upload, decode=decode_upload),
    "batches.create": _google_operation(
        name="google.batches.create",
        encode=encode_create,
        decode=decode_status,
        limits={"bytes": 2_000_000_000, "inline_bytes": 5_000_000},
    ),
    "batches.list": _google_operation(name="google.batches.list", encode=encode_list, decode=decode_list),
    "batches.status": _google_operation(name="google.batches.status", encode=encode_status, decode=decode_status),
    "batches.cancel": _google_operation(name="google.batches.cancel", encode=encode_cancel, decode=decode_cancel),
    "batches.inlined": _google_operation(name="google.batches.inlined", encode=encode_status, decode=decode_inlined),
    "batches.results": _google_operation(
        name="google.batches.results", encode=encode_results, decode=decode_results, reads_lines=True
    ),
}
"""The operations by name. A file may have 2 GB. The API accepts 20 MB of inline requests; sabir sends at most 5 MB,
because each request for the status returns the results.
"""
