"""The messages between callers and workers ("envelopes"): frozen models as JSON, with a schema number.

    Request ──────▶  id, context, policy, observations, options, arguments, depth, seconds_left, waited,
                     headers
            ◀──────  Answered(result) · Failed(error)                     the end of a request
            ◀──────  Accepted · Busy · Released                           the state of a request before its end
            ◀──────  Alive(requests)                                      one for all requests of a caller
    Cancelled ────▶  id                                                   to all workers of the context
    Sought ───────▶  id                                                   to all workers of the context
            ◀──────  Willing                                              from each living worker with a free place

One envelope is one NATS message: JSON, or compressed JSON (zlib) if it is large. JSON begins with a brace and zlib with
an x (RFC 1950), so the first byte shows the form.

Unknown fields and kinds of parts of a newer writer are kept unchanged. An unknown schema number is refused. Envelopes
contain the remaining time, not a time of day, because clocks differ.
"""

import operator
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from sabir import Message
from sabir.authoring import StoredModel, decode_json, describe_validation_error, has_more_values, load_stored, one_line

from sabir_runtime.distributed.errors import EnvelopeInvalid, PayloadTooLarge
from sabir_runtime.distributed.message_cache import BETWEEN, KnownMessages, lines_of
from sabir_runtime.distributed.subjects import LONGEST_NAME
from sabir_runtime.failures import StoredFailure

LARGEST = 32 * 1024 * 1024
"""The default maximum size in bytes of a received message after decompression."""
_LEVEL = 1
_ZLIB = b"x"


def pack(body: bytes, what: str, *, largest: int, compress_above: int) -> bytes:
    """Return a message's body. If it is larger than `compress_above` or `largest` bytes, compress it if that helps.

    `largest` is the server's `max_payload`: https://docs.nats.io/running-a-nats-service/configuration#limits. Raises
    PayloadTooLarge, with `what` as the name of the message, if the compressed body is larger than `largest`.
    """
    if len(body) <= compress_above and len(body) <= largest:
        return body
    packed = zlib.compress(body, _LEVEL)
    if len(packed) > largest:
        remedy = "increase max_payload in the server's configuration, or send media as URLs"
        raise PayloadTooLarge(
            f"the {what} has {len(body):,} bytes, {len(packed):,} compressed; the server accepts {largest:,}; {remedy}"
        )
    return packed if len(packed) < len(body) or len(body) > largest else body


def unpack(data: bytes, largest: int = LARGEST) -> bytes:
    """Return the decompressed body of a received message.

    Raises EnvelopeInvalid if the message is damaged, or if its body is larger than `largest` bytes. Decompression stops
    at this size.
    """
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(data, largest + 1) if data[:1] == _ZLIB else data
    except zlib.error as error:
        raise EnvelopeInvalid(f"a message of {len(data):,} bytes cannot be decompressed: {error}") from None
    if len(body) > largest:
        remedy = "send less, or increase `largest` in the receiver's settings"
        raise EnvelopeInvalid(f"a message of {len(data):,} bytes unpacks to more than {largest:,} bytes; {remedy}")
    if body is not data and not stream.eof:
        raise EnvelopeInvalid(f"a compressed message of {len(data):,} bytes is incomplete")
    return body


SCHEMA = 1
"""The schema number of the messages that this version sends and reads."""
MOST_OBSERVATIONS = 50_000
"""The maximum number of messages in one request."""
MOST_VALUES = 500_000
"""The maximum number of JSON values in one message. Each value needs memory and time, however short it is."""
MOST_OPTIONS = 10_000
"""The maximum number of options in one request, and of requests in one beat."""

MOST_HEADERS = 16
"""The maximum number of headers of a caller's telemetry in one request."""

Header = Annotated[str, StringConstraints(max_length=1024)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
WorkerName = Annotated[str, StringConstraints(pattern=rf"^[A-Za-z0-9-]{{1,{LONGEST_NAME}}}$")]
"""The id of a worker, which must be a valid part of a NATS subject."""

Enveloped = TypeVar("Enveloped", bound="Envelope")


class Envelope(StoredModel):
    """The base class of all messages between callers and workers, with the schema number."""

    schema_number: int = Field(default=SCHEMA, alias="schema", ge=1)


class Request(Envelope):
    """A caller's request to perform a call of a bound policy."""

    id: Name
    context: Name
    policy: Name
    """The name under which the context binds the policy."""
    observations: tuple[Message, ...] = Field(max_length=MOST_OBSERVATIONS, fail_fast=True)
    options: tuple[Name, ...] | None = Field(default=None, max_length=MOST_OPTIONS)
    arguments: str = "{}"
    """The policy's own arguments as a JSON object."""
    seconds_left: float = Field(gt=0, allow_inf_nan=False)
    """How many seconds the caller still waits for the answer, counted from the arrival of the request."""
    depth: int = Field(default=0, ge=0, exclude_if=operator.not_)
    """How many calls this call is nested in."""
    waited: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """How many seconds the request has waited since its call began. 0 means the first sending, which a full worker does
    not queue."""
    headers: dict[Header, Header] = Field(default_factory=dict, max_length=MOST_HEADERS, exclude_if=operator.not_)
    """The headers with which the worker's telemetry continues the caller's trace."""


class Fault(StoredFailure):
    """The error of a policy, or the reason why a worker refused a request. The content of a Failed reply."""

    raised_by: Literal["policy", "worker"]
    """"policy" if the policy failed, "worker" for any other error, such as wrong arguments or too large an answer."""


class FromWorker(Envelope):
    """The base class of a worker's replies to one request: `id` is the request's id, `worker` the worker's id."""

    id: Name
    worker: WorkerName


class Answered(FromWorker):
    """A worker's last reply: the batch of the policy, followed by the results of its option calls."""

    kind: Literal["answered"] = "answered"
    result: tuple[Message, ...] = Field(fail_fast=True)


class Failed(Envelope):
    """A worker's last reply: the policy failed, or the worker refused the request."""

    kind: Literal["failed"] = "failed"
    id: str
    """The id of the request; "" if the request could not be read, or came with a wrong subject or id."""
    worker: WorkerName
    error: Fault


class Accepted(FromWorker):
    """A worker has begun or queued the request, and reports again every `every` seconds."""

    kind: Literal["accepted"] = "accepted"
    every: float = Field(gt=0, allow_inf_nan=False)


class Busy(FromWorker):
    """The worker has no free place or memory for the request now. The caller sends the request again."""

    kind: Literal["busy"] = "busy"


class Released(FromWorker):
    """The worker stops before the request is done. The caller sends the request to another worker."""

    kind: Literal["released"] = "released"


class Alive(Envelope):
    """A worker's report that it is still working on these requests of one caller."""

    kind: Literal["alive"] = "alive"
    worker: WorkerName
    requests: tuple[Name, ...] = Field(max_length=MOST_OPTIONS, fail_fast=True)


class Willing(FromWorker):
    """A worker's reply to Sought: it can perform the request that another worker did not finish."""

    kind: Literal["willing"] = "willing"


class Cancelled(Envelope):
    """A caller's notice to all workers of the context that it no longer waits for this request."""

    kind: Literal["cancelled"] = "cancelled"
    id: Name


class Sought(Envelope):
    """A caller's question to all workers of the context: who can perform a request that another did not finish?"""

    kind: Literal["sought"] = "sought"
    id: Name


Ending: TypeAlias = Answered | Failed
Reply: TypeAlias = Annotated[
    Answered | Failed | Accepted | Busy | Released | Alive | Willing, Field(discriminator="kind")
]
Notice: TypeAlias = Annotated[Cancelled | Sought, Field(discriminator="kind")]

_OBSERVATIONS = {"observations"}
_OPENED, _CLOSED, _EMPTY = b',"observations":[\n', b"\n]}", b',"observations":[]}'
"""The bytes before and after the lines of a request's messages, and the bytes of a request without messages. They are
unambiguous, because a JSON string contains no raw line break."""
_REQUEST: TypeAdapter[Request] = TypeAdapter(Request)
_NOTICE: TypeAdapter[Notice] = TypeAdapter(Notice)
_REPLY: TypeAdapter[Reply] = TypeAdapter(Reply)


def encode(envelope: Envelope) -> bytes:
    """Return an envelope as JSON in UTF-8. Raises EnvelopeInvalid if a message contains a value that is not JSON."""
    write = envelope.__pydantic_serializer__.to_json
    try:
        if not isinstance(envelope, Request) or not envelope.observations:
            return write(envelope)
        rest = write(envelope, exclude=_OBSERVATIONS)
        return rest[:-1] + _OPENED + lines_of(envelope.observations) + _CLOSED
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        reason = one_line(str(error), 200)
        raise EnvelopeInvalid(f"{type(envelope).__name__} cannot be written as JSON: {reason}") from None


def decode_request(data: bytes, known: KnownMessages) -> Request:
    """Parse a caller's request, with message objects from the cache `known`. Raises EnvelopeInvalid if it is wrong."""
    _check_values("request", data)
    head, separator, rest = data.partition(_OPENED)
    if separator and rest.endswith(_CLOSED) and rest.count(BETWEEN) < MOST_OBSERVATIONS:
        with suppress(ValidationError):  # perhaps of a newer version, which `_decode_envelope` reads
            observations = known.read(rest[: -len(_CLOSED)].split(BETWEEN))
            if observations is not None:
                request = _REQUEST.validator.validate_json(head + _EMPTY)
                _check_schema("request", request.schema_number)
                return Request.construct_unchecked(
                    {**vars(request), "observations": observations}, request.model_fields_set
                )
    return _decode_envelope(_REQUEST, "request", data)


def decode_notice(data: bytes) -> Notice:
    """Parse a caller's notice to all workers: Cancelled or Sought. Raises EnvelopeInvalid if it is invalid."""
    return _decode_envelope(_NOTICE, "notice", data)


def decode_reply(data: bytes) -> Reply:
    """Parse a worker's reply. Raises EnvelopeInvalid if it is invalid."""
    return _decode_envelope(_REPLY, "reply", data)


def _check_values(what: str, data: bytes) -> None:
    """Raise EnvelopeInvalid if JSON has more values than `MOST_VALUES`. The values are counted without parsing."""
    if has_more_values(data, MOST_VALUES):
        remedy = "send fewer messages, or shorter lists"
        raise EnvelopeInvalid(f"the {what} has more than {MOST_VALUES:,} JSON values; {remedy}")


def _decode_envelope(adapter: TypeAdapter[Enveloped], what: str, data: bytes) -> Enveloped:
    _check_values(what, data)
    try:
        decoded: Enveloped = adapter.validator.validate_json(data)
    except ValidationError:
        return _decode_tolerantly(adapter.validate_python, what, data)
    _check_schema(what, decoded.schema_number)
    return decoded


def _decode_tolerantly(validate: Callable[..., Enveloped], what: str, data: bytes) -> Enveloped:
    """Parse a message that may have a newer writer's additions. Raise EnvelopeInvalid if that fails too."""
    try:
        stored = decode_json(data)
    except ValueError as error:
        raise EnvelopeInvalid(f"the {what} is not JSON: {one_line(str(error), 200)}") from None
    if not isinstance(stored, dict):
        raise EnvelopeInvalid(f"the {what} is not a JSON object; check whether another program sends to these subjects")
    _check_schema(what, stored.get("schema"))
    try:
        return load_stored(validate, stored)
    except (ValidationError, RecursionError) as error:
        reason = describe_validation_error(error) if isinstance(error, ValidationError) else "it is nested too deeply"
        raise EnvelopeInvalid(f"the {what} is not a message of schema {SCHEMA}: {one_line(reason, 300)}") from None


def _check_schema(what: str, number: Any) -> None:  # any JSON value
    if number != SCHEMA:
        remedy = "install versions of sabir-runtime with the same schema on both sides"
        number_text = one_line(repr(number), 40)
        raise EnvelopeInvalid(f"the {what} has schema {number_text}, but this version reads schema {SCHEMA}; {remedy}")
