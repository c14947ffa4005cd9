"""The errors of failed calls, by their cause; each says whether the same request may succeed later.

The error table of a provider's plugin maps statuses and codes to these.
"""

from sabir.base.errors import SabirError, one_line
from sabir.base.losses import Loss

REMEDY_CHARACTERS = 80
"""How many characters of the end of a long message are kept, because the remedy stands there."""


class CallError(SabirError):
    """A call to a provider failed.

    `retryable` says whether the same request may succeed later, `retry_after` when (seconds, as the provider
    said), `status` the HTTP status, `request_id` and `code` the provider's own. `losses` are those of the request
    that failed.
    """

    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(one_line(message, kept_end=REMEDY_CHARACTERS))
        self.provider = provider
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.losses: tuple[Loss, ...] = ()


class CredentialsMissing(CallError):
    """No key was given, and none of the documented variables is set."""


class AuthenticationFailed(CallError):
    """The provider does not know the key (401)."""


class PermissionDenied(CallError):
    """The key may not do this (403)."""


class ModelNotFound(CallError):
    """The provider knows no such model or path (404)."""


class InvalidRequest(CallError):
    """The provider rejects the request as malformed (400, 422)."""


class ContextTooLong(InvalidRequest):
    """The request exceeds the model's context window."""


class RequestTooLarge(InvalidRequest):
    """The request body exceeds the provider's limit (413)."""


class ContentFiltered(InvalidRequest):
    """The provider's filter rejects the request."""


class QuotaExceeded(CallError):
    """Credit or a spending limit is used up; unlike a rate limit, waiting does not help."""


class RateLimited(CallError):
    """Too many requests or tokens for now (429)."""

    retryable = True


class Overloaded(CallError):
    """The provider is overloaded (529, some 503)."""

    retryable = True


class Unavailable(CallError):
    """The provider is unavailable (503)."""

    retryable = True


class ServerFailed(CallError):
    """The provider failed (other 5xx)."""

    retryable = True


class ConnectionFailed(CallError):
    """No connection, or it broke before an answer began."""

    retryable = True


class CallTimedOut(CallError):
    """No answer within the timeout, or no event within `idle`."""

    retryable = True


class ResponseInvalid(CallError):
    """The provider's answer breaks its dialect: HTML, an empty body, broken JSON."""
