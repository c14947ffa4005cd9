"""OpenTelemetry for sabir: a span, metrics and an event for every call, following the GenAI conventions."""

from sabir_otel.contents import Contents, Events
from sabir_otel.hooks import installed
from sabir_otel.policies import message_span
from sabir_otel.telemetry import Telemetry

configure = installed.configure

__all__ = ["Contents", "Events", "Telemetry", "configure", "message_span"]
