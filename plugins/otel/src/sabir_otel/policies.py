"""A span for each call of a policy, current while the policy runs, so that spans of its calls are its children.

    invoke_agent assistant        a policy
      ├─ chat small               a model's call, from the hooks
      └─ execute_tool search      a policy that answers an option call
           └─ chat small

Names and attributes are those of the conventions, version 1.41.1:
https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/gen-ai/gen-ai-agent-spans.md. A policy has no
provider, so that `gen_ai.provider.name` is left to the calls below it.

The second kind is a span for each message that an actor handles, current in the same way:

    START_THREAD threads
      └─ PROCESS_PHASE …/action
           └─ PROCESS_WITH_AGENT …/agents
                └─ chat small                a model's call, from the hooks

Its names are those of the conventions for messaging, version 1.41.1:
https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/messaging/messaging-spans.md. The
attribute `messaging.message.conversation_id` joins the messages of one conversation across traces and processes. The
data of messages is never recorded, except the error code of a response.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer
from opentelemetry.util.types import AttributeValue
from sabir.authoring import one_line

from sabir_otel import conventions
from sabir_otel.contents import contents_of_environment
from sabir_otel.hooks import installed
from sabir_otel.telemetry import NAME, VERSION

INVOKE_AGENT = "invoke_agent"
EXECUTE_OPTION = "execute_tool"
EXCEPTION = "exception"
EXCEPTION_TYPE = "exception.type"

LEAVING = (asyncio.CancelledError, GeneratorExit)
"""The exceptions that end a policy whose caller stopped waiting. They are not failures."""


@contextmanager
def policy_span(
    name: str,
    *,
    invocation_id: str = "",
    description: str = "",
    attributes: Mapping[str, AttributeValue] | None = None,
    tracer_provider: TracerProvider | None = None,
) -> Iterator[Span]:
    """Return a context manager for the span of one policy call, named `invoke_agent {name}`.

    If the policy answers an option call, pass the call's `invocation_id`; the span is then named `execute_tool {name}`.
    `description` describes the policy, and `attributes` are further attributes. `tracer_provider` None means the
    provider passed to `sabir_otel.configure`, or else the process's own. The span is current in this task or thread
    within the `with` block.

    An exception of the block is raised unchanged. The span then ends as an error with the exception's class, and with
    its message and stack trace if contents are recorded on spans. A cancelled policy sets `sabir.left`, not an error.
    """
    merged = {**_policy_attributes(name, invocation_id, description), **(attributes or {})}
    with block_span(tracer_provider, f"{merged[conventions.OPERATION]} {name}", SpanKind.INTERNAL, merged) as span:
        yield span


@contextmanager
def block_span(
    provider: TracerProvider | None, name: str, kind: SpanKind, attributes: Mapping[str, AttributeValue]
) -> Iterator[Span]:
    """Return a context manager for a span that is current within the block.

    A cancellation sets `sabir.left`, and any other exception ends the span as an error. Without a provider, the span
    uses the provider of model calls.
    """
    own = None if provider is None else get_tracer(NAME, VERSION, provider, schema_url=conventions.SCHEMA_URL)
    with (own or installed.tracer).start_as_current_span(
        name,
        kind=kind,
        attributes=attributes,
        record_exception=False,  # it may quote contents: `_record_error` records it if spans may have contents
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except LEAVING:
            span.set_attribute(conventions.LEFT, True)
            raise
        except BaseException as error:
            _record_error(span, error)
            raise


def _policy_attributes(name: str, invocation_id: str, description: str) -> dict[str, AttributeValue]:
    if invocation_id:
        attributes: dict[str, AttributeValue] = {
            conventions.OPERATION: EXECUTE_OPTION,
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": invocation_id,
        }
        return attributes | ({"gen_ai.tool.description": description} if description else {})
    attributes = {conventions.OPERATION: INVOKE_AGENT, "gen_ai.agent.name": name}
    return attributes | ({"gen_ai.agent.description": description} if description else {})


def _record_error(span: Span, error: BaseException) -> None:
    kind = conventions.error_type(error)
    span.set_attribute(conventions.ERROR_TYPE, kind)
    if "span" in (installed.contents or contents_of_environment()):
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, one_line(str(error))))
    else:
        span.add_event(EXCEPTION, {EXCEPTION_TYPE: kind})
        span.set_status(Status(StatusCode.ERROR, kind))


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
    with block_span(tracer_provider, message.type, SpanKind.CONSUMER, known) as span:
        yield lambda response: _record_response(span, response)


def _record_response(span: Span, response: ActorMessage) -> None:
    if response.type == "ERROR":
        code = str(response.data.get("error_code") or conventions.OTHER)
        span.set_attribute(conventions.ERROR_TYPE, code)
        span.set_status(Status(StatusCode.ERROR, code))
