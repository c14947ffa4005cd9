"""One span for one message that an actor handles, current meanwhile: spans of its messages and calls are its children.

    START_THREAD threads
      └─ PROCESS_PHASE …/action
           └─ PROCESS_WITH_AGENT …/agents
                └─ chat small                a model's call, by the hooks

Names and attributes are those of the conventions for messaging, version 1.41.1:
https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/messaging/messaging-spans.md. The
attribute `messaging.message.conversation_id` joins the messages of one conversation across traces and processes. The
data of messages is never recorded.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from sabir_otel import conventions
from sabir_otel.policies import block_span

SYSTEM = "sabir"
OPERATION_TYPE = "process"


class ActorMessage(Protocol):
    """The attributes read from a message or a response; the classes of `sabir_actors` have them."""

    @property
    def type(self) -> str:
        """Its type: "START_THREAD"; "ERROR" for a response that is an error."""

    @property
    def id(self) -> str:
        """Its own."""

    @property
    def receiver(self) -> str | None:
        """The id of the actor that it goes to."""

    @property
    def correlation_id(self) -> str | None:
        """The id that it shares with related messages; for a thread, the thread's id."""

    @property
    def data(self) -> Mapping[str, Any]:
        """Its data; only `error_code` of an ERROR is read."""


@contextmanager
def message_span(
    message: ActorMessage, *, tracer_provider: TracerProvider | None = None
) -> Iterator[Callable[[ActorMessage], None]]:
    """The span of one message that is handled, named after its type: `ActorSystem(spans=sabir_otel.message_span)`.

    The block gets a function to report the response: an ERROR ends the span as an error, with its code. The span goes
    to the same place as those of calls, to the provider that `sabir_otel.configure` was given, or the process's own,
    unless `tracer_provider` is given. It is current in this task until the block is left; what the block raises passes
    through, and a cancelled block ends as left, with no error.
    """
    given = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": message.type,
        "messaging.operation.type": OPERATION_TYPE,
        "messaging.destination.name": message.receiver,
        "messaging.message.id": message.id,
        "messaging.message.conversation_id": message.correlation_id,
    }
    known = {name: value for name, value in given.items() if value is not None}
    # The receiver is no part of the name: actors of one thread are many, and short-lived.
    with block_span(tracer_provider, message.type, SpanKind.CONSUMER, known) as span:
        yield lambda response: _tell(span, response)


def _tell(span: Span, response: ActorMessage) -> None:
    if response.type == "ERROR":
        code = str(response.data.get("error_code") or conventions.OTHER)
        span.set_attribute(conventions.ERROR_TYPE, code)
        span.set_status(Status(StatusCode.ERROR, code))
