"""What was told to OpenTelemetry, kept in memory: real providers of its SDK, none of them the process's own."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sabir import discovery as registry
from sabir.authoring.providers import InProcessConnection, InProcessResponse
from sabir.contract.provider import Access, WireRequest
from sabir.hooks.plugins import Hooks
from sabir_echo.plugin import Echo, serve
from sabir_otel import Telemetry
from sabir_otel.contents import CONTENTS_VARIABLE, EVENTS_VARIABLE


class Recorded:
    """Providers, and what reached their exporters."""

    def __init__(self) -> None:
        self._spans, self._logs, self._metrics = (
            InMemorySpanExporter(),
            InMemoryLogRecordExporter(),
            InMemoryMetricReader(),
        )
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.loggers = LoggerProvider(shutdown_on_exit=False)
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        self.meters = MeterProvider([self._metrics], shutdown_on_exit=False)

    def providers(self) -> dict[str, Any]:
        return {
            "tracer_provider": self.tracers,
            "meter_provider": self.meters,
            "logger_provider": self.loggers,
        }

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    def span(self) -> ReadableSpan:
        (span,) = self.spans
        return span

    def attributes(self) -> dict[str, Any]:
        return dict(self.span().attributes or {})

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        return [(event.name, dict(event.attributes or {})) for event in self.span().events]

    def records(self) -> list[Any]:
        """The events that were told apart from spans."""
        return [each.log_record for each in self._logs.get_finished_logs()]

    def points(self, metric: str) -> list[Any]:
        data = self._metrics.get_metrics_data()
        metrics = [
            each for resource in (data.resource_metrics if data else ()) for scope in resource.scope_metrics
            for each in scope.metrics
        ]  # fmt: skip
        return [point for each in metrics if each.name == metric for point in each.data.data_points]

    def shutdown(self) -> None:
        self.tracers.shutdown()
        self.loggers.shutdown()
        self.meters.shutdown()


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine decides a test."""
    for name in (CONTENTS_VARIABLE, EVENTS_VARIABLE, "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_hook_failed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Core passes over a hook that fails; here that is a failure, unless the test takes it out of the log."""
    yield
    assert [line for line in caplog.messages if "was skipped" in line] == []


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    found = Recorded()
    yield found
    found.shutdown()


@pytest.fixture
def telling(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a Telemetry the only installed hook plugin, for one test."""

    def tell(*others: object, **how: Any) -> None:
        hooks = Hooks([Telemetry(**{**recorded.providers(), **how}), *others])
        monkeypatch.setattr("sabir.calling.adapter.installed_hooks", lambda: hooks)
        monkeypatch.setattr("sabir.hooks.announcing.installed_hooks", lambda: hooks)

    return tell


@pytest.fixture
def heard(recorded: Recorded, telling: Callable[..., None]) -> Recorded:
    """What a Telemetry with its defaults tells, the only installed hook plugin."""
    telling()
    return recorded


class Probe(Echo):
    """The echo under another name; `before` runs where a vendor's HTTP client would."""

    name = "probe"
    before: Callable[[], object] = staticmethod(lambda: None)

    def connect(self, access: Access) -> InProcessConnection:
        def answer(request: WireRequest) -> InProcessResponse:
            self.before()
            return serve(request)

        return InProcessConnection(answer)


@pytest.fixture
def probe() -> Iterator[Probe]:
    provider = Probe()
    registry.register("probe", provider)
    yield provider
    registry.unregister("probe")
