"""The envelopes between a caller and a worker: frozen models as JSON, with a schema number, no pickle.

    Request ──────▶  id, context, policy, observations, options, arguments, depth, seconds_left, waited
            ◀──────  Answered(result) · Failed(error)                     one of these ends it
            ◀──────  Accepted · Busy · Released                           its state before the end
            ◀──────  Alive(requests)                                      one for all requests of a caller
    Cancelled ────▶  id                                                   to all workers of the context
    Sought ───────▶  id                                                   to all of them too
            ◀──────  Willing                                              from each living worker with a free place

One envelope is one NATS message: unchanged, or compressed (zlib) if its bytes are many; too large ones are refused.
JSON begins with a brace, zlib with an x (RFC 1950): the first byte tells them apart.

Unknown content (fields of a newer writer, kinds of parts) is kept verbatim; an unknown schema number is refused by
name. Envelopes carry the time that is left, not a time of day: clocks differ.
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
from sabir_runtime.distributed.messages import BETWEEN, KnownMessages, lines_of
from sabir_runtime.distributed.subjects import LONGEST_NAME
from sabir_runtime.failures import Failure

LARGEST = 32 * 1024 * 1024
"""Bytes that a received message may unpack to, unless settings say otherwise."""
_LEVEL = 1
_ZLIB = b"x"


def pack(body: bytes, what: str, *, largest: int, compress_above: int) -> bytes:
    """The body as it is sent; raises PayloadTooLarge if even its compressed form exceeds the server's limit.

    `largest` is the server's `max_payload`: https://docs.nats.io/running-a-nats-service/configuration#limits
    """
    if len(body) <= compress_above and len(body) <= largest:
        return body
    packed = zlib.compress(body, _LEVEL)
    if len(packed) > largest:
        remedy = "raise max_payload in the server's configuration, or send media as URLs"
        raise PayloadTooLarge(
            f"the {what} has {len(body):,} bytes, {len(packed):,} compressed; the server carries {largest:,}; {remedy}"
        )
    return packed if len(packed) < len(body) or len(body) > largest else body


def unpack(data: bytes, largest: int = LARGEST) -> bytes:
    """The body of a received message.

    Raises EnvelopeInvalid if it is damaged, or has more than `largest` bytes: no more are unpacked.
    """
    stream = zlib.decompressobj()
    try:
        body = stream.decompress(data, largest + 1) if data[:1] == _ZLIB else data
    except zlib.error as error:
        raise EnvelopeInvalid(f"message of {len(data):,} bytes cannot be decompressed: {error}") from None
    if len(body) > largest:
        remedy = "send less, or give both sides' settings more `largest`"
        raise EnvelopeInvalid(f"message of {len(data):,} bytes unpacks to more than {largest:,}; {remedy}")
    if body is not data and not stream.eof:
        raise EnvelopeInvalid(f"message of {len(data):,} bytes is cut off")
    return body


SCHEMA = 1
"""The number of the envelopes that this version writes, and the only one that it reads."""
MOST_OBSERVATIONS = 50_000
"""Messages of one request."""
MOST_VALUES = 500_000
"""JSON values of one envelope: each takes memory and time, however few its bytes."""
MOST_OPTIONS = 10_000
"""Options of one request, and requests of one beat."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
WorkerName = Annotated[str, StringConstraints(pattern=rf"^[A-Za-z0-9-]{{1,{LONGEST_NAME}}}$")]
"""Part of a subject."""

Enveloped = TypeVar("Enveloped", bound="Envelope")


class Envelope(StoredModel):
    """The base of all envelopes, with the schema number."""

    schema_number: int = Field(default=SCHEMA, alias="schema", ge=1)


class Request(Envelope):
    """One bound call, for any worker of its context."""

    id: Name
    context: Name
    policy: Name
    """The attribute under which the context binds it."""
    observations: tuple[Message, ...] = Field(max_length=MOST_OBSERVATIONS, fail_fast=True)
    options: tuple[Name, ...] | None = Field(default=None, max_length=MOST_OPTIONS)
    arguments: str = "{}"
    """The policy's own arguments as a JSON object, by their parameters' types."""
    seconds_left: float = Field(gt=0, allow_inf_nan=False)
    """Seconds that the caller still waits, from the arrival of the request; a worker's settings limit it."""
    depth: int = Field(default=0, ge=0, exclude_if=operator.not_)
    """The number of calls in which it is nested."""
    waited: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Seconds from its first sending to this one; 0 the first time: then it does not wait at a worker."""


class Fault(Failure):
    """Why there is no result."""

    raised_by: Literal["policy", "worker"]
    """Whether the policy itself failed, or the worker could not run it."""


class FromWorker(Envelope):
    """A worker's reply to one request."""

    id: Name
    worker: WorkerName


class Answered(FromWorker):
    """The batch of a policy, its option calls answered."""

    kind: Literal["answered"] = "answered"
    result: tuple[Message, ...] = Field(fail_fast=True)


class Failed(Envelope):
    """There will be no batch."""

    kind: Literal["failed"] = "failed"
    id: str
    """Empty if the request could not be read."""
    worker: WorkerName
    error: Fault


class Accepted(FromWorker):
    """A worker has the request, and repeats this every so many seconds."""

    kind: Literal["accepted"] = "accepted"
    every: float = Field(gt=0, allow_inf_nan=False)


class Busy(FromWorker):
    """A worker is full, or full of older requests: ask again."""

    kind: Literal["busy"] = "busy"


class Released(FromWorker):
    """A worker stops before the request is done: it goes to another worker."""

    kind: Literal["released"] = "released"


class Alive(Envelope):
    """A worker still has these requests of one caller."""

    kind: Literal["alive"] = "alive"
    worker: WorkerName
    requests: tuple[Name, ...] = Field(max_length=MOST_OPTIONS, fail_fast=True)


class Willing(FromWorker):
    """A worker offers to take a request that another worker failed."""

    kind: Literal["willing"] = "willing"


class Cancelled(Envelope):
    """Nobody waits for this request any more."""

    kind: Literal["cancelled"] = "cancelled"
    id: Name


class Sought(Envelope):
    """Asks which worker would take this request, which another worker failed."""

    kind: Literal["sought"] = "sought"
    id: Name


Ending: TypeAlias = Answered | Failed
Reply: TypeAlias = Annotated[
    Answered | Failed | Accepted | Busy | Released | Alive | Willing, Field(discriminator="kind")
]
Notice: TypeAlias = Annotated[Cancelled | Sought, Field(discriminator="kind")]

_OBSERVATIONS = {"observations"}
_OPENED, _CLOSED, _EMPTY = b',"observations":[\n', b"\n]}", b',"observations":[]}'
"""Around the lines of a request's messages; a JSON string contains no raw line break."""
_REQUEST: TypeAdapter[Request] = TypeAdapter(Request)
_NOTICE: TypeAdapter[Notice] = TypeAdapter(Notice)
_REPLY: TypeAdapter[Reply] = TypeAdapter(Reply)


def encode(envelope: Envelope) -> bytes:
    """An envelope as JSON; raises EnvelopeInvalid if a message has a value that JSON cannot hold."""
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
    """A caller's request, reusing known messages; raises EnvelopeInvalid for anything else."""
    _check_values("request", data)
    head, opened, rest = data.partition(_OPENED)
    if opened and rest.endswith(_CLOSED) and rest.count(BETWEEN) < MOST_OBSERVATIONS:
        with suppress(ValidationError):  # perhaps from a newer writer: then it is read as a whole
            observations = known.read(rest[: -len(_CLOSED)].split(BETWEEN))
            if observations is not None:
                request = _REQUEST.validator.validate_json(head + _EMPTY)
                _check_schema("request", request.schema_number)
                return Request.construct_unchecked(
                    {**vars(request), "observations": observations}, request.model_fields_set
                )
    return _decode(_REQUEST, "request", data)


def decode_notice(data: bytes) -> Notice:
    """A caller's notice to all workers; raises EnvelopeInvalid for anything else."""
    return _decode(_NOTICE, "notice", data)


def decode_reply(data: bytes) -> Reply:
    """A worker's reply; raises EnvelopeInvalid for anything else."""
    return _decode(_REPLY, "reply", data)


def _check_values(what: str, data: bytes) -> None:
    """Raise EnvelopeInvalid if the JSON has more values than `MOST_VALUES`; checked without parsing."""
    if has_more_values(data, MOST_VALUES):
        remedy = "send fewer messages, or shorter lists"
        raise EnvelopeInvalid(f"{what} has more than {MOST_VALUES:,} JSON values; {remedy}")


def _decode(adapter: TypeAdapter[Enveloped], what: str, data: bytes) -> Enveloped:
    _check_values(what, data)
    try:
        decoded: Enveloped = adapter.validator.validate_json(data)
    except ValidationError:
        return _decode_tolerantly(adapter.validate_python, what, data)
    _check_schema(what, decoded.schema_number)
    return decoded


def _decode_tolerantly(validate: Callable[..., Enveloped], what: str, data: bytes) -> Enveloped:
    """Decode with a newer writer's additions; if that fails too, raise the reason: its schema first."""
    try:
        stored = decode_json(data)
    except ValueError as error:
        raise EnvelopeInvalid(f"{what} is no JSON: {one_line(str(error), 200)}") from None
    if not isinstance(stored, dict):
        raise EnvelopeInvalid(f"{what} is no JSON object; is something else sending to these subjects?")
    _check_schema(what, stored.get("schema"))
    try:
        return load_stored(validate, stored)
    except (ValidationError, RecursionError) as error:
        reason = describe_validation_error(error) if isinstance(error, ValidationError) else "it is nested too deeply"
        raise EnvelopeInvalid(f"{what} is no envelope of schema {SCHEMA}: {one_line(reason, 300)}") from None


def _check_schema(what: str, number: Any) -> None:  # whatever stands there
    if number != SCHEMA:
        remedy = "use versions of sabir-runtime that write the same schema on both sides"
        shown = one_line(repr(number), 40)
        raise EnvelopeInvalid(f"{what} has schema {shown}, and this version reads {SCHEMA}; {remedy}")
