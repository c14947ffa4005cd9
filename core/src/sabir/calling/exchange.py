"""One call to a provider as a script without I/O: it yields the next action and is sent the outcome.

    script ── Open · Next · Close · Pause · Failed ──▶ driver ──▶ Connection
       ▲                                                        │
       └────────── Head, bytes or None; or an error ◀───────────┘     Emit hands an event of a stream to the user

Retries happen here and nowhere else, by the RetryPolicy, and never after a stream's first event was handed out.
The open response belongs to the driver. A script closes it when the script ends and before it retries; the driver
closes it in every other case.

The driver also checks the Clock, of which the script knows nothing: how long the call may take.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import wraps
from io import BytesIO
from typing import Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

from sabir.base.failures import CallError, Loss, ResponseInvalid, ServerFailed
from sabir.base.values import has_more_values
from sabir.contract.dialect import Dialect
from sabir.contract.provider import TokenCount, WireRequest
from sabir.contract.scope import DecodeScope
from sabir.reading import incoming
from sabir.reading.incoming import StreamState, labelled
from sabir.vocabulary.reply import Reply, StreamEvent
from sabir.vocabulary.settings import RetryPolicy

Given = ParamSpec("Given")
Result = TypeVar("Result")

LEAST_JITTER = 0.5
"""The least factor for a delay that the policy chose, so that many callers do not come back at once."""


class Open(NamedTuple):
    """Send the request as the attempt of that number (from 1); the answer is a Head."""

    request: WireRequest
    attempt: int = 1


class Next(NamedTuple):
    """Read on: the answer is the next bytes of the open response, or another stream's next event; None at its end.

    `had_event` says that the last bytes read ended an event.
    """

    had_event: bool = False


_NEXT, _AFTER_AN_EVENT = Next(), Next(had_event=True)


class Close(NamedTuple):
    """Close the open response."""


class Pause(NamedTuple):
    """Wait a random time between two numbers of seconds; the answer is Late if the call's time would end before."""

    shortest: float
    longest: float


class Failed(NamedTuple):
    """Tell the watch that an attempt failed."""

    error: CallError
    attempt: int


class Emit(NamedTuple):
    """Hand one event of a stream to the user; go on when the user asks for the next."""

    event: StreamEvent


class Head(NamedTuple):
    """A response's status and headers (names in lower case)."""

    status: int
    headers: Mapping[str, str]


class Late(NamedTuple):
    """The answer to a Pause for which there is no time; it was not begun."""


Action: TypeAlias = Open | Next | Close | Pause | Failed | Emit
"""An action that a Script yields and a Performer performs."""
Outcome: TypeAlias = Head | bytes | StreamEvent | Late | None
"""The outcome of an Action, which a Performer returns to the Script."""
Script: TypeAlias = Generator[Action, Outcome, Result]
"""A call as a generator without I/O: it yields an action, such as sending the request, and receives the outcome. Its
return value is the result. A Performer performs the actions.
"""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The facts that a script needs: the bytes to send, the dialect that reads the answer, and when to send again."""

    request: WireRequest
    dialect: Dialect
    scope: DecodeScope
    retries: RetryPolicy
    losses: tuple[Loss, ...] = ()
    """The rendering's losses; they come first in the reply's losses."""
    request_ids: tuple[str, ...] = ()
    """Response headers that may hold the provider's id of the request; the first found counts."""


def _repeated(
    once: Callable[Concatenate[Exchange, int, Given], Script[Result]],
) -> Callable[Concatenate[Exchange, Given], Script[Result]]:
    """The script of a call: `once` makes one attempt; another follows where the policy says so."""

    @wraps(once)
    def script(exchange: Exchange, /, *given: Given.args, **named: Given.kwargs) -> Script[Result]:
        attempt = 1
        while True:
            try:
                result = yield from once(exchange, attempt, *given, **named)
                yield Close()
                return result
            except CallError as error:
                labelled(error, exchange.scope).losses = exchange.losses
                yield Failed(error, attempt)
                yield Close()
                longest = exchange.retries.delay(attempt, error)
                if longest is None:
                    raise
                shortest = exchange.retries.delay(attempt, error, LEAST_JITTER) or 0.0
                if isinstance((yield Pause(shortest, longest)), Late):
                    raise
            attempt += 1

    return script


@_repeated
def call_script(exchange: Exchange, attempt: int) -> Script[Reply]:
    """A call whose answer is one body."""
    scope = yield from _opened(exchange, attempt)
    return (yield from _whole(exchange, scope, attempt))


@_repeated
def count_script(exchange: Exchange, attempt: int) -> Script[TokenCount]:
    """A call that asks how many tokens a request has."""
    scope = yield from _opened(exchange, attempt)
    body, _ = yield from _whole_body(scope)
    try:
        return TokenCount(input_tokens=exchange.dialect.decode_count(body), estimated=False)
    except Exception as error:
        incoming.raise_unreadable(scope, body, error)


@_repeated
def folded_script(exchange: Exchange, attempt: int) -> Script[Reply]:
    """A call whose answer is a stream that is folded to the reply; if an error breaks it off, it is retried too.

    An endpoint without streams may answer with one body: an answer that begins as JSON is read as one.
    """
    scope = yield from _opened(exchange, attempt)
    begun, came = b"", 0
    is_text = not exchange.dialect.is_framed(scope.content_type)
    while is_text and BOM_UTF8.startswith(begun) and (chunk := (yield _NEXT)) is not None:
        assert isinstance(chunk, bytes)
        begun, came = (begun + chunk).lstrip(), came + len(chunk)
        if came > scope.bounds.body_bytes:
            raise incoming.too_long(scope, "a body", "body_bytes")
    if begun.removeprefix(BOM_UTF8).lstrip().startswith(b"{"):
        return (yield from _whole(exchange, scope, attempt, begun))
    state = StreamState(exchange.dialect, scope)
    state.skip_events()
    state.begin(scope, attempt, exchange.losses)
    return (yield from _streamed(exchange, state, scope, begun))


@_repeated
def stream_script(exchange: Exchange, attempt: int, state: StreamState) -> Script[Reply]:
    """A call whose answer is a stream; the script feeds `state`, which shows the partial reply."""
    state.begin(exchange.scope, attempt, exchange.losses)
    scope = yield from _opened(exchange, attempt)
    state.begin(scope, attempt, exchange.losses)
    try:
        return (yield from _streamed(exchange, state, scope))
    except CallError as error:
        failure = state.failure(labelled(error, scope))
        if failure is error:
            raise
        raise failure from error


def _streamed(exchange: Exchange, state: StreamState, scope: DecodeScope, begun: bytes = b"") -> Script[Reply]:
    """The reply of an open stream, whose first bytes are `begun`; its events are emitted."""
    arrived = 0
    chunk: Outcome = begun or (yield _NEXT)
    while chunk is not None:
        assert isinstance(chunk, bytes)
        for event in state.feed(chunk):
            yield Emit(event)
        arrived += len(chunk)
        if arrived > scope.bounds.body_bytes:
            raise incoming.too_long(scope, "a stream", "body_bytes")
        if state.ended:
            break  # do not wait for bytes after the terminal marker: a server may keep its connection open
        chunk = yield _AFTER_AN_EVENT if state.had_event else _NEXT
    for event in state.close():
        yield Emit(event)
    return state.reply()


def _whole(exchange: Exchange, scope: DecodeScope, attempt: int, begun: bytes = b"") -> Script[Reply]:
    """The reply of an open response that is read whole, whose first bytes are `begun`."""
    body, was_broken = yield from _whole_body(scope, begun)
    try:
        reply = exchange.dialect.decode(body, scope)
        return incoming.finished(reply, exchange.losses, attempt, was_broken=was_broken)
    except Exception as error:
        incoming.raise_unreadable(scope, body, error)


def _opened(exchange: Exchange, attempt: int) -> Script[DecodeScope]:
    """Send the request; the scope of its answer. Raises the error that a status of 300 or above stands for."""
    answer = yield from _answered(exchange, attempt)
    if isinstance(answer, CallError):
        raise answer  # from a frame without the head and the body, which may repeat the key
    return answer


def _answered(exchange: Exchange, attempt: int) -> Script[DecodeScope | CallError]:
    """Send the request; the scope of its answer, or the error that a status of 300 or above stands for."""
    head = yield Open(exchange.request, attempt)
    assert isinstance(head, Head)
    request_id = next(filter(None, map(head.headers.get, exchange.request_ids)), None)
    scope = exchange.scope.counted(request_id=request_id, content_type=head.headers.get("content-type", ""))
    if head.status < 300:
        return scope
    if head.status < 400:
        return labelled(incoming.redirected(scope, head.status, head.headers.get("location", "")), scope, head.status)
    try:
        body = yield from _body(scope.bounds.error_bytes)
    except CallError:
        body = b""  # the status says enough
    if has_more_values(body, scope.bounds.most_values):
        body = body[: incoming.SHOWN_CHARACTERS]  # too many values to parse: only its beginning is shown
    yield Close()  # free the response's own buffers before the body is decoded
    return labelled(_refusal(exchange.dialect, head, incoming.mend(body)[0], scope), scope, head.status)


def _whole_body(scope: DecodeScope, begun: bytes = b"") -> Script[tuple[bytes, bool]]:
    """Read the body, in valid Unicode, and whether it was invalid; raises ResponseInvalid for one that is too large."""
    return incoming.read_body((yield from _body(scope.bounds.body_bytes, begun)), scope)


def _body(most: int, begun: bytes = b"") -> Script[bytes]:
    """The body, whose first bytes are `begun`; of a body longer than `most` bytes, the first `most + 1`."""
    body = BytesIO()
    body.write(begun)
    while body.tell() <= most and (chunk := (yield _NEXT)) is not None:
        assert isinstance(chunk, bytes)
        body.write(chunk)
    body.truncate(most + 1)
    return body.getvalue()


def _refusal(dialect: Dialect, head: Head, body: bytes, scope: DecodeScope) -> CallError:
    try:
        return dialect.decode_error(head.status, head.headers, body, scope.target.provider)
    except CallError as error:
        return error
    except Exception as unexpected:
        kind = ServerFailed if head.status >= 500 else ResponseInvalid
        failed = kind(
            f"{scope.target} answered {head.status} with {incoming.shown(body)}, which its dialect cannot read"
        )
        failed.__cause__ = unexpected
        return failed
