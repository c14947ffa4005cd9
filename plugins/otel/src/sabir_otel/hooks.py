"""The entry point: the hooks of the Telemetry that observes every call and work if this package is installed."""

from sabir_otel.telemetry import Telemetry

installed = Telemetry()
"""The Telemetry that observes every call and work in this process. `sabir_otel.configure` is its method `configure`."""

sabir_call_started = installed.sabir_call_started
sabir_call_failed = installed.sabir_call_failed
sabir_call_ended = installed.sabir_call_ended
sabir_call_given_up = installed.sabir_call_given_up
sabir_work_started = installed.sabir_work_started
sabir_work_ended = installed.sabir_work_ended
sabir_work_requested = installed.sabir_work_requested
