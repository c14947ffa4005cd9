"""The OpenTelemetry objects of a Telemetry, and how a span records the exception that ended it."""

import asyncio
from importlib.metadata import version
from typing import TypedDict, Unpack

from opentelemetry import context as contexts
from opentelemetry._logs import LoggerProvider, get_logger
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Span, Status, StatusCode, TracerProvider, get_current_span, get_tracer
from sabir.authoring import one_line

from sabir_otel import conventions
from sabir_otel.contents import Contents, Events, check_word, contents_of_environment

NAME = "sabir_otel"
VERSION = version("sabir-otel")
LEAVING = (asyncio.CancelledError, GeneratorExit)
"""The exceptions that end a block whose caller stopped waiting. They are not failures."""

outside: dict[object, Context] = {}
"""Number of a call, or work, whose span is current → the context before that span. With it, the spans of two Telemetry
objects have the same parent, instead of one being the child of the other."""


class TelemetryArguments(TypedDict, total=False):
    """The optional arguments of a Telemetry.

    tracer_provider, meter_provider, logger_provider: OpenTelemetry providers. None means the process's own.
    contents: where the contents of messages are recorded: "none", "span", "event" or "span_and_event". None means the
    choice of the environment variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
    events: whether an event is emitted for each call: "on" or "off". None means the choice of the environment variable
    OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT.
    """

    tracer_provider: TracerProvider | None
    meter_provider: MeterProvider | None
    logger_provider: LoggerProvider | None
    contents: Contents | None
    events: Events | None


class Instruments:
    """The OpenTelemetry objects of a Telemetry: a tracer, a logger of events, and two histograms."""

    def __init__(self, **chosen: Unpack[TelemetryArguments]) -> None:
        self.contents: Contents | None = check_word("contents", chosen.get("contents"), Contents)
        self.events: Events | None = check_word("events", chosen.get("events"), Events)
        self.tracer = get_tracer(NAME, VERSION, chosen.get("tracer_provider"), schema_url=conventions.SCHEMA_URL)
        self.logger = get_logger(NAME, VERSION, chosen.get("logger_provider"), schema_url=conventions.SCHEMA_URL)
        meter = get_meter(NAME, VERSION, chosen.get("meter_provider"), schema_url=conventions.SCHEMA_URL)
        self.duration, self.tokens = (
            meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=boundaries)
            for name, unit, description, boundaries in conventions.HISTOGRAMS
        )

    def has_event_consumer(self) -> bool:
        """Return whether OpenTelemetry has a consumer for events. Always True for versions before 1.45."""
        enabled = getattr(self.logger, "enabled", None)
        return enabled is None or bool(enabled(event_name=conventions.DETAILS))

    @property
    def records_contents_on_spans(self) -> bool:
        """Whether spans may have contents of messages, and so the texts of errors, which may quote them."""
        return "span" in (self.contents or contents_of_environment())


class CurrentSpan:
    """Makes a span the current one until `end`, unless another Telemetry did so for the same call or work.

    `key` is the call's number or the work. `before` is the context before the span.
    """

    def __init__(self, key: object, span: Span, context: Context, before: Context) -> None:
        own = span.get_span_context()
        # A tracer without a provider returns the outer or an invalid span.
        is_new = own.is_valid and own != get_current_span(before).get_span_context()
        self.is_current = is_new and key not in outside
        self._key, self._context = key, context
        if self.is_current:
            outside[key] = before
            self._token = contexts.attach(context)

    def end(self) -> None:
        """Make the span before the current one again, unless this is called in another task or thread."""
        if self.is_current:
            outside.pop(self._key, None)
            if contexts.get_current() is self._context:
                contexts.detach(self._token)


def record_exception(span: Span, error: BaseException, *, with_contents: bool) -> None:
    """Record the exception that ended a span: a cancellation as `sabir.left`, any other exception as an error.

    The exception's message and stack trace may quote contents, so they are recorded only with contents.
    """
    if isinstance(error, LEAVING):
        span.set_attribute(conventions.LEFT, True)
        return
    kind = conventions.error_type(error)
    span.set_attribute(conventions.ERROR_TYPE, kind)
    if with_contents:
        span.record_exception(error)
    else:
        span.add_event(conventions.EXCEPTION, {conventions.EXCEPTION_TYPE: kind})
    span.set_status(Status(StatusCode.ERROR, one_line(str(error)) if with_contents else kind))
