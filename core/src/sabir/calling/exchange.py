"""One call to a provider as a script without I/O: it yields the next action and receives the outcome.

    script ── Open · Next · Close · Pause · AttemptFailed ──▶ driver ──▶ Connection
       ▲                                                        │
       └────────── Head, bytes or None; or an error ◀───────────┘     Emit hands an event of a stream to the user

Only this module retries: by the RetryPolicy, and never after the first event of a stream was passed to the user. The
driver owns the open response. A script closes the response when the script ends and before a retry; the driver closes
the response in every other case.

The driver also checks the Clock, which limits how long the call may take. The script does not know the clock.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import wraps
from io import BytesIO
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar

from sabir.base.failures import CallError, Loss
from sabir.contract.dialect import Dialect
from sabir.contract.operation import Decoded, Operation, OperationResult, Output
from sabir.contract.provider import TokenCount, WireRequest
from sabir.contract.scope import DecodeScope
from sabir.reading import incoming
from sabir.reading.incoming import StreamState, label_error
from sabir.vocabulary.reply import Reply, StreamBroken, StreamEvent
from sabir.vocabulary.settings import RetryPolicy

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Format = TypeVar("Format", bound="Dialect | Operation[Any, Any]")

LEAST_JITTER = 0.5
"""The smallest random factor for a pause that the policy chose. The factor prevents that many callers retry at once."""


class Open(NamedTuple):
    """Send the request. `attempt` is the number of the attempt, from 1. The outcome is a Head."""

    request: WireRequest
    attempt: int = 1


class Next(NamedTuple):
    """Read the next bytes of the open response, or for a Relay the next event of the wrapped stream. The outcome is the
    bytes or the event, or None at the end.

    `had_event` is True if the bytes read before completed an event.
    """

    had_event: bool = False


_NEXT, _AFTER_AN_EVENT = Next(), Next(had_event=True)


class Close(NamedTuple):
    """Close the open response. The outcome is None."""


class Pause(NamedTuple):
    """Wait a random number of seconds between `shortest` and `longest`. The outcome is None, or Late if the time of the
    call would end before.
    """

    shortest: float
    longest: float


class AttemptFailed(NamedTuple):
    """Report a failed attempt to the watch. The outcome is None."""

    error: CallError
    attempt: int


class Emit(NamedTuple):
    """Pass one event of a stream, or one value of an operation, to the user. The script continues when the user reads
    the next one.
    """

    event: Any  # StreamEvent, or the value type of an operation


class Head(NamedTuple):
    """The outcome of Open: a response's status and headers (names in lower case)."""

    status: int
    headers: Mapping[str, str]


class Late(NamedTuple):
    """The outcome of a Pause that was not started, because the time of the call would end before."""


Action: TypeAlias = Open | Next | Close | Pause | AttemptFailed | Emit
"""An action that a Script yields and a Performer performs."""
Outcome: TypeAlias = Head | bytes | StreamEvent | Late | None
"""The outcome of an Action, which a Performer returns to the Script."""
Script: TypeAlias = Generator[Action, Outcome, Result]
"""A call as a generator without I/O: it yields an action, such as sending the request, and receives the outcome. Its
return value is the result. A Performer performs the actions.
"""


@dataclass(frozen=True, slots=True)
class Exchange(Generic[Format]):
    """The facts that a script needs: the request, the dialect or operation that decodes the answer, and the retry
    policy.
    """

    request: WireRequest
    format: Format
    scope: DecodeScope
    retries: RetryPolicy
    losses: tuple[Loss, ...] = ()
    """The losses of the rendering, which come first in the reply's losses."""
    request_ids: tuple[str, ...] = ()
    """Response headers that may contain the provider's id of the request. The first that is present is used."""


def _retrying(
    once: Callable[Concatenate[Exchange[Format], int, Parameters], Script[Result]],
) -> Callable[Concatenate[Exchange[Format], Parameters], Script[Result]]:
    """Decorate a script of one attempt, `once`, so that failed attempts are repeated by the retry policy."""

    @wraps(once)
    def script(
        exchange: Exchange[Format], /, *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Script[Result]:
        attempt = 1
        while True:
            try:
                result = yield from once(exchange, attempt, *arguments, **named)
                yield Close()
                return result
            except CallError as error:
                label_error(error, exchange.scope).losses = exchange.losses
                yield AttemptFailed(error, attempt)
                yield Close()
                longest = exchange.retries.delay(attempt, error)
                if longest is None:
                    raise
                shortest = exchange.retries.delay(attempt, error, LEAST_JITTER) or 0.0
                if isinstance((yield Pause(shortest, longest)), Late):
                    raise
            attempt += 1

    return script


@_retrying
def call_script(exchange: Exchange[Dialect], attempt: int) -> Script[Reply]:
    """Return the script of a call whose response is one body. The result is the Reply."""
    scope = yield from _open_response(exchange, attempt)
    return (yield from _read_reply(exchange, scope, attempt))


@_retrying
def count_script(exchange: Exchange[Dialect], attempt: int) -> Script[TokenCount]:
    """Return the script of a call that counts the input tokens of a request."""
    scope = yield from _open_response(exchange, attempt)
    body, _ = yield from _read_body(scope)
    try:
        return TokenCount(input_tokens=exchange.format.decode_count(body), estimated=False)
    except Exception as error:
        incoming.raise_unreadable(scope, body, error)


@_retrying
def folded_script(exchange: Exchange[Dialect], attempt: int) -> Script[Reply]:
    """Return the script of a call whose response is a stream, although the caller wants only the reply.

    A retryable error in the middle of the stream is retried, because no event was passed to the user. An endpoint
    without streams may answer with one body: a response that begins with "{" is read as one body.
    """
    scope = yield from _open_response(exchange, attempt)
    begun, length = b"", 0
    is_text = not exchange.format.is_framed(scope.content_type)
    while is_text and BOM_UTF8.startswith(begun) and (chunk := (yield _NEXT)) is not None:
        assert isinstance(chunk, bytes)
        begun, length = (begun + chunk).lstrip(), length + len(chunk)
        if length > scope.bounds.body_bytes:
            raise incoming.size_error(scope, "a body", "body_bytes")
    if begun.removeprefix(BOM_UTF8).lstrip().startswith(b"{"):
        return (yield from _read_reply(exchange, scope, attempt, begun))
    state = StreamState(exchange.format, scope)
    state.skip_events()
    state.begin(scope, attempt, exchange.losses)
    return (yield from _emit_events(exchange, state, scope, begun))


@_retrying
def stream_script(exchange: Exchange[Dialect], attempt: int, state: StreamState) -> Script[Reply]:
    """Return the script of a streamed call. It passes the bytes to `state`, emits the events, and returns the complete
    Reply.
    """
    state.begin(exchange.scope, attempt, exchange.losses)
    scope = yield from _open_response(exchange, attempt)
    state.begin(scope, attempt, exchange.losses)
    try:
        return (yield from _emit_events(exchange, state, scope))
    except CallError as error:
        failure = state.failure(label_error(error, scope))
        if failure is error:
            raise
        raise failure from error


@_retrying
def operation_script(exchange: Exchange[Operation[Any, Output]], attempt: int) -> Script[OperationResult[Output]]:
    """Return the script of a call of an operation whose response is read as a whole."""
    scope = yield from _open_response(exchange, attempt)
    body, was_broken = yield from _read_body(scope)
    try:
        decoded = exchange.format.decode(body, scope)
    except Exception as error:
        incoming.raise_unreadable(scope, body, error)
    reply = _reply_of(decoded, scope)
    return OperationResult(
        decoded.output, incoming.finish_reply(reply, exchange.losses, attempt, was_broken=was_broken)
    )


@_retrying
def lines_script(exchange: Exchange[Operation[Any, Output]], attempt: int) -> Script[Reply]:
    """Return the script of a call of an operation whose response is read line by line. Emits each line's value.

    A failure after the first value is raised as StreamBroken, because the values were passed to the user.
    """
    scope = yield from _open_response(exchange, attempt)
    unfinished, has_emitted, decoded = b"", False, Decoded[Any](None)
    try:
        while (chunk := (yield _NEXT)) is not None or unfinished:
            assert chunk is None or isinstance(chunk, bytes)
            *lines, unfinished = (unfinished + chunk).split(b"\n") if chunk is not None else (unfinished, b"")
            if len(unfinished) > scope.bounds.body_bytes:
                raise incoming.size_error(scope, "a line", "body_bytes")
            for line in filter(bytes.strip, lines):
                decoded = _decode_row(exchange.format, line, scope)
                has_emitted = True
                yield Emit(decoded.output)
    except CallError as error:
        if not has_emitted:
            raise
        text, provider = f"{scope.target} broke off its answer: {error}", scope.target.provider
        raise StreamBroken(text, partial=_reply_of(decoded, scope), cause=error, provider=provider) from error
    return incoming.finish_reply(_reply_of(decoded, scope), exchange.losses, attempt)


def _decode_row(operation: Operation[Any, Output], line: bytes, scope: DecodeScope) -> Decoded[Output]:
    """Return the value of one line. Raises the CallError that the line reports, or ResponseInvalid."""
    body, _ = incoming.read_body(line, scope)
    try:
        return operation.decode(body, scope)
    except Exception as error:
        incoming.raise_unreadable(scope, body, error)


def _reply_of(decoded: Decoded[Any], scope: DecodeScope) -> Reply:
    """Return a Reply without messages, with the usage and the origin of an operation's response."""
    return Reply(messages=(), finish_reason="stop", usage=decoded.usage, origin=scope.origin(decoded.model))


def _emit_events(
    exchange: Exchange[Dialect], state: StreamState, scope: DecodeScope, begun: bytes = b""
) -> Script[Reply]:
    """Emit the events of an open stream, and return the Reply. `begun` are bytes that were read already."""
    arrived = 0
    chunk: Outcome = begun or (yield _NEXT)
    while chunk is not None:
        assert isinstance(chunk, bytes)
        for event in state.feed(chunk):
            yield Emit(event)
        arrived += len(chunk)
        if arrived > scope.bounds.body_bytes:
            raise incoming.size_error(scope, "a stream", "body_bytes")
        if state.ended:
            break  # do not wait for bytes after the terminal marker: a server may keep its connection open
        chunk = yield _AFTER_AN_EVENT if state.had_event else _NEXT
    for event in state.close():
        yield Emit(event)
    return state.reply()


def _read_reply(exchange: Exchange[Dialect], scope: DecodeScope, attempt: int, begun: bytes = b"") -> Script[Reply]:
    """Read the open response completely, and return the Reply. `begun` are bytes that were read already."""
    body = yield from _read_bytes(scope.bounds.body_bytes, begun)
    return incoming.finish_reply(incoming.decode_body(exchange.format, body, scope), exchange.losses, attempt)


def _open_response(exchange: Exchange[Format], attempt: int) -> Script[DecodeScope]:
    """Send the request, and return the scope for its answer. Raises the CallError for a status of 300 or above."""
    answer = yield from _send_attempt(exchange, attempt)
    if isinstance(answer, CallError):
        raise answer  # raised here, because a traceback shows no headers and no body, which may repeat the key
    return answer


def _send_attempt(exchange: Exchange[Format], attempt: int) -> Script[DecodeScope | CallError]:
    """Send the request. Return the scope for its answer, or the CallError for a status of 300 or above."""
    head = yield Open(exchange.request, attempt)
    assert isinstance(head, Head)
    request_id = next(filter(None, map(head.headers.get, exchange.request_ids)), None)
    scope = exchange.scope.counted(request_id=request_id, content_type=head.headers.get("content-type", ""))
    if head.status < 300:
        return scope
    if head.status < 400:
        redirect = incoming.redirect_error(scope, head.status, head.headers.get("location", ""))
        return label_error(redirect, scope, head.status)
    try:
        body = yield from _read_bytes(scope.bounds.error_bytes)
    except CallError:
        body = b""  # the status is enough for an error
    yield Close()  # free the response's own buffers before the body is decoded
    return incoming.decode_refusal(exchange.format, body, scope, head.status, head.headers)


def _read_body(scope: DecodeScope) -> Script[tuple[bytes, bool]]:
    """Read the response. Return the body as valid Unicode, and whether anything was replaced in it.

    Raises ResponseInvalid for a body that is too large.
    """
    return incoming.read_body((yield from _read_bytes(scope.bounds.body_bytes)), scope)


def _read_bytes(most: int, begun: bytes = b"") -> Script[bytes]:
    """Read the response and return its body, at most `most + 1` bytes. `begun` are bytes that were read already."""
    body = BytesIO()
    body.write(begun)
    while body.tell() <= most and (chunk := (yield _NEXT)) is not None:
        assert isinstance(chunk, bytes)
        body.write(chunk)
    body.truncate(most + 1)
    return body.getvalue()
