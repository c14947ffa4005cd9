"""Errors before the embedded server answers; the dialect maps the server's own errors."""

from sabir.errors import CallError


class WeightsMissing(CallError):
    """No weights were found, or the named file is not a GGUF file."""


class ServerNotStarted(CallError):
    """The embedded server could not be started with these weights."""
