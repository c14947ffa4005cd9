"""A span for each work of an agent, an option or a workflow, with the sums of all calls of models below it.

    invoke_workflow AEIOUY       a chain of agents
      └─ invoke_agent action     a question, an evaluation, or a policy
           ├─ chat small         a call of a model, from the hooks for calls
           ├─ execute_tool map   an option
           └─ chat small

Names and attributes are those of the conventions, version 1.41.1:
https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/gen-ai/gen-ai-agent-spans.md. A work that
another process requested continues the trace of that process (https://www.w3.org/TR/trace-context/).
"""

import json
import time
from collections import Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from sabir import Loss, Reply, Usage
from sabir.authoring import AgentWork, installed_hooks, one_line

from sabir_otel import conventions
from sabir_otel.contents import Attributes, message_parts
from sabir_otel.instruments import LEAVING, CurrentSpan, Instruments, outside, record_exception

_PROPAGATOR = TraceContextTextMapPropagator()


class CallFigures(NamedTuple):
    """A call of a model, for the sums of the works around it. `reply` is None if the call ended without a reply.

    `target` are the call's attributes that say where it was sent, `retries` the number of attempts after the first, and
    `waited` the seconds between the attempts.
    """

    target: Mapping[str, str | int]
    losses: tuple[Loss, ...]
    reply: Reply | None
    cost: Decimal | None
    retries: int
    waited: float


@dataclass
class FigureSums:
    """The sums of the calls of a work. `cost` is None if the cost of a reply is not known."""

    calls: int = 0
    retries: int = 0
    waited: float = 0.0
    cost: Decimal | None = Decimal(0)
    usage: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    target: Attributes = field(default_factory=dict)
    """Provider and model of the first call."""

    def add(self, call: CallFigures) -> None:
        """Add a call of a model."""
        if not self.calls:
            names = (conventions.PROVIDER, conventions.REQUEST_MODEL)
            self.target = {name: call.target[name] for name in names if name in call.target}
        self.calls += 1
        self.retries += call.retries
        self.waited += call.waited
        if call.reply is not None:
            self.cost = None if call.cost is None or self.cost is None else self.cost + call.cost
        self.usage.update(usage_attributes(call.reply.usage if call.reply else Usage()))
        self.losses.update(loss.kind for loss in call.losses)

    def attributes(self) -> Attributes:
        """Return the sums as attributes of a span; {} without a call."""
        if not self.calls:
            return {}
        sums: Attributes = {**self.target, **self.usage, conventions.CALLS: self.calls}
        sums |= {conventions.RETRIES: self.retries, conventions.LOSSES: self.losses.total()}
        if self.retries:
            sums[conventions.WAITED] = self.waited
        return sums if self.cost is None else {**sums, conventions.COST: float(self.cost)}


def usage_attributes(usage: Usage) -> Attributes:
    """Return the reported numbers of tokens as attributes."""
    counted = {attribute: getattr(usage, name) for name, attribute in conventions.USAGE.items()}
    return {attribute: count for attribute, count in counted.items() if count is not None}


def cost_of(reply: Reply | None) -> Decimal | None:
    """Return the cost of a reply in US dollars; None if it is not known, for example without sabir-prices."""
    return None if reply is None else installed_hooks().cost(reply)


def add_loss_events(span: Span, losses: Counter[str]) -> None:
    """Add an event to a span for each kind of loss, with the number of losses."""
    for kind, count in losses.items():
        span.add_event(conventions.LOST, {conventions.LOSS_KIND: kind, conventions.LOSS_COUNT: count})


class WatchedWork:
    """One running work: its span, and the sums of its calls. `enclosing` is the work of the same Telemetry around it.

    The span is current in this task or thread until the work ends.
    """

    def __init__(self, instruments: Instruments, work: AgentWork, enclosing: "WatchedWork | None") -> None:
        self._instruments = instruments
        self._work = work
        self._enclosing = enclosing if work.headers is None else None
        outer_id = "" if self._enclosing is None else self._enclosing.conversation_id
        self.conversation_id: str = outer_id or work.conversation_id
        self._names = _work_names(work)
        self.totals = FigureSums()
        before = outside[work] if work in outside else contexts.get_current()
        parent = parent_context(before, self._enclosing) if work.headers is None else _remote_context(work, before)
        details = _work_details(work, with_contents=instruments.records_contents_on_spans)
        attributes = {**self._names, **details, **conversation_attributes(self.conversation_id)}
        kind = SpanKind.CLIENT if work.is_remote else SpanKind.INTERNAL
        name = f"{self._names[conventions.OPERATION]} {work.name}".strip()
        self.span: Span = instruments.tracer.start_span(name, parent, kind, attributes)
        self._started = time.perf_counter()
        self._context = set_span_in_context(self.span, parent)
        self._current = CurrentSpan(work, self.span, self._context, before)

    @property
    def is_current(self) -> bool:
        """Whether the span is the current span, which it is not if another Telemetry has another current span."""
        return self._current.is_current

    def add_call(self, call: CallFigures) -> None:
        """Add a call of a model to the sums of this work and of all works around it in this process."""
        watched: WatchedWork | None = self
        while watched is not None:
            watched.totals.add(call)
            watched = watched._enclosing

    def end(self, error: BaseException | None) -> None:
        """Record the sums, the outcome and the duration, and end the span, even if a step before raises."""
        seconds = time.perf_counter() - self._started
        try:
            error_type = self._record_outcome(error)
            self.span.set_attributes(self.totals.attributes())
            add_loss_events(self.span, self.totals.losses)
            where = {**self._names, **self.totals.target, **error_type}
            self._instruments.duration.record(seconds, where, self._context)
        finally:
            self._current.end()
            self.span.end()

    def _record_outcome(self, error: BaseException | None) -> Attributes:
        """Set the status of the span. Return the attribute `error.type` for metrics, or {} if nothing failed."""
        with_contents, result = self._instruments.records_contents_on_spans, self._work.option_result
        if self._work.is_waiting:
            self.span.set_attribute(conventions.WAITING, True)
        elif error is not None:
            record_exception(self.span, error, with_contents=with_contents)
            return {} if isinstance(error, LEAVING) else {conventions.ERROR_TYPE: conventions.error_type(error)}
        if result is None or result.result is None:
            return {}
        if with_contents:
            (shape,) = message_parts([result])
            self.span.set_attribute(conventions.TOOL_RESULT, json.dumps(shape["response"], ensure_ascii=False))
        if not result.result.is_error:
            return {}
        kind, text = result.result.error_type or conventions.OTHER, result.result.error_message or ""
        self.span.set_attribute(conventions.ERROR_TYPE, kind)
        self.span.set_status(Status(StatusCode.ERROR, one_line(text) if with_contents else kind))
        return {conventions.ERROR_TYPE: kind}


def parent_context(before: Context, enclosing: WatchedWork | None) -> Context:
    """Return the context with the parent of a new span: `before`, unless the current span is another Telemetry's."""
    return before if enclosing is None or enclosing.is_current else set_span_in_context(enclosing.span, before)


def conversation_attributes(conversation_id: str) -> Attributes:
    """Return the attribute for a conversation's id; {} if it is not known."""
    return {conventions.CONVERSATION: conversation_id} if conversation_id else {}


def add_headers(headers: MutableMapping[str, str], work: WatchedWork | None) -> None:
    """Add the headers `traceparent` and `tracestate` of the current span, unless another Telemetry did so."""
    if conventions.TRACE_PARENT not in headers:
        _PROPAGATOR.inject(headers, parent_context(contexts.get_current(), work))


def _remote_context(work: AgentWork, before: Context) -> Context:
    """Return the context for a work that another process requested. Without headers, the work has no parent."""
    return _PROPAGATOR.extract(dict(work.headers or {}), set_span_in_context(INVALID_SPAN, before))


def _work_names(work: AgentWork) -> dict[str, Any]:
    """Return the attributes of a work that metrics have, too: its operation and its name."""
    operation, name = conventions.WORKS[work.kind]
    return {conventions.OPERATION: operation, **({name: work.name} if work.name else {})}


def _work_details(work: AgentWork, *, with_contents: bool) -> Attributes:
    """Return the attributes of the option call that a work answers; {} for other works."""
    if work.option_call is None or work.option_call.call is None:
        return {}
    details = {conventions.TOOL_TYPE: "function", conventions.TOOL_CALL: work.option_call.call.invocation_id}
    if with_contents:
        (shape,) = message_parts([work.option_call])
        details[conventions.TOOL_ARGUMENTS] = json.dumps(shape["arguments"], ensure_ascii=False)
    return details
