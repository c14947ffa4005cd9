"""Refusals that no vendor worded, and bodies that are no answer: what every dialect has to read, as tables.

status ──STATUSES──▶ the errors that it may stand for        body ──REFUSALS · NO_ANSWERS──▶ an error, whatever it is
"""

from collections.abc import Mapping

from sabir.errors import (
    AuthenticationFailed,
    CallError,
    CallTimedOut,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    RateLimited,
    RequestTooLarge,
    ServerFailed,
    Unavailable,
)

PAGE = b"<!DOCTYPE html><html><head><title>Proxy</title></head><body><h1>Proxy</h1></body></html>"
"""What stands before a service answers when the service does not: it has no word of the vendor's."""
STATUSES: Mapping[int, tuple[type[CallError], ...]] = {
    400: (InvalidRequest,),
    401: (AuthenticationFailed,),
    403: (PermissionDenied, AuthenticationFailed),
    404: (ModelNotFound,),
    408: (CallTimedOut,),
    413: (RequestTooLarge, InvalidRequest),
    422: (InvalidRequest,),
    429: (RateLimited,),
    500: (ServerFailed,),
    502: (ServerFailed, Unavailable),
    503: (Unavailable, Overloaded, ServerFailed),
    504: (ServerFailed, Unavailable, CallTimedOut),
    529: (Overloaded, Unavailable, ServerFailed),
}
"""Status → what it may stand for by itself."""
AGAIN = (408, 429, 500, 502, 503, 504, 529)
"""Statuses after which the same request may succeed."""
REFUSALS: Mapping[str, bytes] = {
    "empty": b"",
    "words": b"Service is down for maintenance",
    "not_unicode": b"\xff\xfe{\x00",
    "null": b"null",
    "number": b"503",
    "list": b"[]",
    "object": b"{}",
    "null_error": b'{"error": null}',
    "text_error": b'{"error": "no"}',
    "other_types": b'{"error": {"message": {"is": 1}, "code": [1], "type": 5, "status": {}}, "type": ["x"]}',
}
"""Bodies that a refusal may have, whatever the vendor says of them."""
NO_ANSWERS: Mapping[str, bytes] = {
    "empty": b"",
    "page": PAGE,
    "words": b"OK",
    "not_unicode": b"\xff\xfe{\x00",
    "null": b"null",
    "number": b"200",
    "list": b"[]",
    "object": b"{}",
}
"""Bodies with status 200 that are an answer of no service."""
