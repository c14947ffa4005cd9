"""The hooks that record a span, metrics and an event for each call, and a span for each work.

    sabir_call_started   attempt 1: the span begins, a child of the current span
    sabir_call_failed    an event of the span for the failed attempt
    sabir_call_ended     ┐ duration and tokens are recorded, the span ends, and the event is emitted;
    sabir_call_given_up  ┘ given up: with an error, or with `sabir.left` if the caller stopped waiting

A call's number connects its hooks, so that concurrent calls never mix. During a call without streaming, the span is
current, so that spans of the vendor's HTTP client become its children. During a stream, the span is not current,
because the reader's own code runs between the events.

    sabir_work_started   the span of an agent, an option or a workflow begins (`works`), and is current until
    sabir_work_ended     it ends with the sums of its calls
"""

import json
import time
from collections import Counter
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from typing import Unpack

from opentelemetry import context as contexts
from opentelemetry._logs import LogRecord
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from sabir import Loss, Rendering, Reply, Usage, hookimpl
from sabir.authoring import AgentWork, one_line, show_arguments
from sabir.errors import CallError, StreamBroken

from sabir_otel import conventions
from sabir_otel.contents import (
    Attributes,
    Contents,
    contents_of_environment,
    events_of_environment,
    finish_reason,
    output_messages,
    request_contents,
    request_settings,
)
from sabir_otel.instruments import CurrentSpan, Instruments, TelemetryArguments, outside
from sabir_otel.works import (
    CallFigures,
    WatchedWork,
    add_headers,
    add_loss_events,
    conversation_attributes,
    cost_of,
    parent_context,
    usage_attributes,
)


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a call: a complete reply, an error with or without a part of a reply, or neither.

    Neither means that the caller stopped waiting.
    """

    losses: tuple[Loss, ...]
    reply: Reply | None = None
    error: BaseException | None = None


class WatchedCall:
    """One running call: its span, and the attributes of its metrics. `work` is the work to which the call belongs."""

    def __init__(self, instruments: Instruments, rendering: Rendering, call: int, work: WatchedWork | None) -> None:
        self._instruments = instruments
        self._rendering = rendering
        self._work = work
        self._contents = instruments.contents or contents_of_environment()
        self._events = instruments.events or events_of_environment()
        self._where = conventions.target_attributes(rendering.target)
        self._conversation = conversation_attributes(work.conversation_id if work else "")
        self._attempts = 1
        self._failed_at = self._waited = 0.0
        name = f"{conventions.CHAT} {rendering.target.model}".strip()
        before = outside[call] if call in outside else contexts.get_current()
        parent = parent_context(before, work)
        attributes = {**self._where, **self._conversation}
        self._span: Span = instruments.tracer.start_span(name, parent, SpanKind.CLIENT, attributes)
        self._started = time.perf_counter()
        self._context: Context = set_span_in_context(self._span, parent)
        self._current = None if rendering.streaming else CurrentSpan(call, self._span, self._context, before)

    def retry(self, attempt: int) -> None:
        """Count a further attempt, and add an event with the seconds since the attempt before failed."""
        self._attempts = attempt
        seconds = time.perf_counter() - self._failed_at
        self._waited += seconds
        self._span.add_event(conventions.RETRIED, {conventions.ATTEMPT: attempt, conventions.WAITED: seconds})

    def fail_attempt(self, error: CallError, attempt: int) -> None:
        """Add an event for a failed attempt to the span.

        The error's message may quote contents, so the message is recorded only if contents are recorded on spans.
        """
        attributes: Attributes = {conventions.ATTEMPT: attempt, conventions.ERROR_TYPE: conventions.error_type(error)}
        if error.status is not None:
            attributes[conventions.STATUS_CODE] = error.status
        if "span" in self._contents:
            attributes["exception.message"] = str(error)
        self._span.add_event(conventions.ATTEMPT_FAILED, attributes)
        self._failed_at = time.perf_counter()

    def end(self, end: CallEnd) -> None:
        """Record the metrics and emit the event, then end the span. The span ends even if a step before raises."""
        seconds = time.perf_counter() - self._started
        try:
            cost = cost_of(end.reply)
            attributes = {**self._conversation, **_call_attributes(self._rendering, self._attempts, end)}
            if self._attempts > 1:
                attributes[conventions.WAITED] = self._waited
            if cost is not None:
                attributes[conventions.COST] = float(cost)
            self._measure(seconds, attributes, end)
            if self._work is not None:
                retries = self._attempts - 1
                self._work.add_call(CallFigures(self._where, end.losses, end.reply, cost, retries, self._waited))
            emits_event = self._events == "on" and self._instruments.has_event_consumer()
            if not (self._span.is_recording() or emits_event):
                return
            attributes |= request_settings(self._rendering)
            contents = {} if self._contents == "none" else _message_contents(self._rendering, end)
            self._write_span(attributes, contents, end)
            if emits_event:
                event_contents = contents if "event" in self._contents else {}
                self._emit_event({**self._where, **attributes, **event_contents})
        finally:
            if self._current is not None:
                self._current.end()
            self._span.end()

    def _measure(self, seconds: float, attributes: Attributes, end: CallEnd) -> None:
        response_model = _pick(attributes, conventions.RESPONSE_MODEL)
        error_type = _pick(attributes, conventions.ERROR_TYPE)
        self._instruments.duration.record(seconds, {**self._where, **response_model, **error_type}, self._context)
        usage = end.reply.usage if end.reply else Usage()
        for field, kind in conventions.TOKEN_TYPES.items():
            if (count := getattr(usage, field)) is not None:
                token_type = {conventions.TOKEN_TYPE: kind}
                self._instruments.tokens.record(count, {**self._where, **response_model, **token_type}, self._context)

    def _write_span(self, attributes: Attributes, contents: Attributes, end: CallEnd) -> None:
        span = self._span
        span.set_attributes(attributes)
        if "span" in self._contents:
            span.set_attributes({name: json.dumps(shape, ensure_ascii=False) for name, shape in contents.items()})
        add_loss_events(span, Counter(loss.kind for loss in end.losses))
        if end.error is not None:
            description = one_line(str(end.error)) if "span" in self._contents else _class_and_status(end.error)
            span.set_status(Status(StatusCode.ERROR, description))

    def _emit_event(self, attributes: Attributes) -> None:
        record = LogRecord(
            timestamp=time.time_ns(), context=self._context, event_name=conventions.DETAILS, attributes=attributes
        )
        self._instruments.logger.emit(record)


@show_arguments
class Telemetry:
    """A hook plugin that reports every call of a model to OpenTelemetry: a span, metrics, and an event unless `events`
    is "off". Agents, options and workflows have spans around their calls.

    The installed package already registers a Telemetry, which `sabir_otel.configure` configures. Create and register
    another Telemetry to report to other OpenTelemetry providers, too. `configure` explains the arguments.
    """

    def __init__(self, **chosen: Unpack[TelemetryArguments]) -> None:
        self._open: dict[int, WatchedCall] = {}
        self._works: dict[AgentWork, tuple[WatchedWork, Token[WatchedWork | None]]] = {}
        self._work: ContextVar[WatchedWork | None] = ContextVar("sabir_otel.work", default=None)
        """The work of this task or thread. The current span may belong to another Telemetry, or to the program."""
        self.configure(**chosen)

    def configure(self, **chosen: Unpack[TelemetryArguments]) -> None:
        """Set all providers and choices for future calls. Omitted arguments are reset to their defaults.

        `tracer_provider`, `meter_provider` and `logger_provider` are OpenTelemetry providers; None means the process's
        own. `contents` is where the contents of messages are recorded: "none", "span", "event" or "span_and_event".
        None means the variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, or else "none". `events` is "on" or
        "off": whether an event is emitted for each call. None means the variable OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT,
        or else "on". Raises SettingsInvalid for any other word.
        """
        self._instruments = Instruments(**chosen)

    @property
    def tracer(self) -> Tracer:
        """The OpenTelemetry tracer that creates the spans."""
        return self._instruments.tracer

    @property
    def contents(self) -> Contents | None:
        """The value of `contents` that was configured. None means the choice of the environment variable."""
        return self._instruments.contents

    @property
    def records_contents_on_spans(self) -> bool:
        """Whether spans may have contents of messages and the texts of errors."""
        return self._instruments.records_contents_on_spans

    @hookimpl
    def sabir_call_started(self, rendering: Rendering, attempt: int, call: int) -> None:
        """Begin a call's span at the first attempt, and count further attempts."""
        if attempt == 1:
            self._open[call] = WatchedCall(self._instruments, rendering, call, self._work.get())
        elif watched := self._open.get(call):
            watched.retry(attempt)

    @hookimpl
    def sabir_call_failed(self, error: CallError, attempt: int, call: int) -> None:
        """Add an event for a failed attempt to the call's span."""
        if watched := self._open.get(call):
            watched.fail_attempt(error, attempt)

    @hookimpl
    def sabir_call_ended(self, reply: Reply, call: int) -> None:
        """Record the reply and the metrics, and end the call's span."""
        if watched := self._open.pop(call, None):
            watched.end(CallEnd(reply.losses, reply))

    @hookimpl
    def sabir_call_given_up(self, rendering: Rendering, error: BaseException | None, call: int) -> None:
        """End the call's span with the error, or with `sabir.left` if the caller stopped waiting.

        The part of the reply that a broken stream delivered is recorded.
        """
        if watched := self._open.pop(call, None):
            end = CallEnd(rendering.losses, error=error)
            if isinstance(error, StreamBroken):
                end = replace(end, losses=error.partial.losses, reply=error.partial)
            watched.end(end)

    @hookimpl
    def sabir_work_started(self, work: AgentWork) -> None:
        """Begin the span of a work, and make it current."""
        watched = WatchedWork(self._instruments, work, self._work.get())
        self._works[work] = watched, self._work.set(watched)

    @hookimpl
    def sabir_work_ended(self, work: AgentWork, error: BaseException | None) -> None:
        """Record the outcome of a work and the sums of its calls, and end its span."""
        if work not in self._works:
            return
        watched, token = self._works.pop(work)
        if self._work.get() is watched:  # not in another task or thread, as when a coroutine is garbage collected
            with suppress(ValueError):  # in a copy of the context
                self._work.reset(token)
        watched.end(error)

    @hookimpl
    def sabir_work_requested(self, headers: dict[str, str]) -> None:
        """Add the headers with which another process continues the trace."""
        add_headers(headers, self._work.get())


def _call_attributes(rendering: Rendering, attempts: int, end: CallEnd) -> Attributes:
    """Return the attributes of a call and its reply. Finish reasons are left out if the call ended with an error."""
    attributes: Attributes = {conventions.ATTEMPTS: attempts, conventions.LOSSES: len(end.losses)}
    if rendering.streaming:
        attributes[conventions.REQUEST_STREAM] = True
    if (reuses := rendering.reuses) is not None:
        attributes[conventions.CACHE_PREDICTED] = reuses.tokens
        attributes |= {conventions.CACHE_CHANGED: reuses.changed} if reuses.changed else {}
    if end.error is not None:
        attributes[conventions.ERROR_TYPE] = conventions.error_type(end.error)
    if end.reply is None:  # if there is no error either, the caller stopped waiting before the reply was complete
        return attributes if end.error is not None else {**attributes, conventions.LEFT: True}
    reply, origin = end.reply, end.reply.origin
    attributes[conventions.RESPONSE_MODEL] = origin.reported_model or origin.model
    if origin.response_id:
        attributes[conventions.RESPONSE_ID] = origin.response_id
    if end.error is None:
        reasons = (reply.finish_reason, *(other.finish_reason for other in reply.alternatives))
        attributes[conventions.FINISH_REASON_LIST] = [finish_reason(reason) for reason in reasons]
    return attributes | usage_attributes(reply.usage)


def _message_contents(rendering: Rendering, end: CallEnd) -> Attributes:
    contents = request_contents(rendering)
    if end.reply is not None:
        contents[conventions.OUTPUT_MESSAGES] = output_messages(end.reply)
    return contents


def _pick(attributes: Attributes, name: str) -> Attributes:
    return {name: attributes[name]} if name in attributes else {}


def _class_and_status(error: BaseException) -> str:
    """Return an error's class and status without its message, which may quote contents."""
    status = getattr(error, "status", None)
    return conventions.error_type(error) + (f" {status}" if isinstance(status, int) else "")
