"""What can go wrong before the embedded server answers; its answers are mapped by the dialect."""

from sabir.errors import CallError


class WeightsMissing(CallError):
    """No weights were found, or what was named is no GGUF file."""


class ServerNotStarted(CallError):
    """The embedded server could not be started with these weights."""
