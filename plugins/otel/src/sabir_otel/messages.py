"""A span for each message that an actor handles, current while the actor handles it.

    START_THREAD threads
      └─ invoke_workflow AEIOUY
           └─ PROCESS_PHASE …/action
                └─ PROCESS_WITH_AGENT …/agents
                     └─ invoke_agent action

Its names are those of the conventions for messaging, version 1.41.1:
https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/messaging/messaging-spans.md. The
attribute `messaging.message.conversation_id` joins the messages of one conversation across traces and processes. The
data of messages is never recorded, except the error code of a response.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer

from sabir_otel import conventions
from sabir_otel.hooks import installed
from sabir_otel.instruments import NAME, VERSION, record_exception

SYSTEM = "sabir"
OPERATION_TYPE = "process"


class ActorMessage(Protocol):
    """Protocol of the messages and responses for `message_span`. The messages of `sabir_actors` have these fields."""

    @property
    def type(self) -> str:
        """The message's type, such as "START_THREAD", or "ERROR" for a response that reports an error."""

    @property
    def id(self) -> str:
        """The message's id."""

    @property
    def receiver(self) -> str | None:
        """The id of the actor that receives the message."""

    @property
    def correlation_id(self) -> str | None:
        """The id that related messages share, for a thread the thread's id; None without one."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The message's data. Only `error_code` of an ERROR response is read and recorded."""


@contextmanager
def message_span(
    message: ActorMessage, *, tracer_provider: TracerProvider | None = None
) -> Iterator[Callable[[ActorMessage], None]]:
    """Return a context manager for the span of one handled message, named after the message's type.

    Use it as `ActorSystem(spans=sabir_otel.message_span)`. The `with` block gets a function to report the response; an
    ERROR response marks the span as an error with its code. `tracer_provider` None means the provider passed to
    `sabir_otel.configure`, or else the process's own. The span is current in this task within the block. Exceptions are
    raised unchanged, after they have ended the span as an error. A cancelled block sets `sabir.left`, not an error.
    """
    attributes = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": message.type,
        "messaging.operation.type": OPERATION_TYPE,
        "messaging.destination.name": message.receiver,
        "messaging.message.id": message.id,
        "messaging.message.conversation_id": message.correlation_id,
    }
    known = {name: value for name, value in attributes.items() if value is not None}
    # The name does not include the receiver, because a thread has many short-lived actors.
    own = tracer_provider and get_tracer(NAME, VERSION, tracer_provider, schema_url=conventions.SCHEMA_URL)
    with (own or installed.tracer).start_as_current_span(
        message.type,
        kind=SpanKind.CONSUMER,
        attributes=known,
        record_exception=False,  # it may quote contents: `record_exception` records it if spans may have contents
        set_status_on_exception=False,
    ) as span:
        try:
            yield lambda response: _record_response(span, response)
        except BaseException as error:
            record_exception(span, error, with_contents=installed.records_contents_on_spans)
            raise


def _record_response(span: Span, response: ActorMessage) -> None:
    if response.type == "ERROR":
        code = str(response.data.get("error_code") or conventions.OTHER)
        span.set_attribute(conventions.ERROR_TYPE, code)
        span.set_status(Status(StatusCode.ERROR, code))
