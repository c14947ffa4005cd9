"""OpenTelemetry for sabir: spans of agents, options and calls, metrics and events, following the GenAI conventions."""

from sabir_otel.contents import Contents, Events
from sabir_otel.hooks import installed
from sabir_otel.messages import message_span
from sabir_otel.telemetry import Telemetry

configure = installed.configure

__all__ = ["Contents", "Events", "Telemetry", "configure", "message_span"]
