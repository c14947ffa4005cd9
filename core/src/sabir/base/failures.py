"""The losses of a request (law 2: nothing is lost silently), and the errors of a call by their cause.

a rendering ──▶ Loss, one for each thing that the target cannot accept unchanged ──strict──▶ RenderingRefused
an answer   ──error table of the provider's plugin: statuses, codes──▶ CallError, which says whether to try again
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypeAlias, get_args

from sabir.base.errors import SabirError, SettingsInvalid, one_line
from sabir.base.models import Frozen

LossKind: TypeAlias = Literal["dropped", "downgraded", "relocated", "rewritten", "synthesized", "withheld"]
"""The kind of a Loss.

dropped: not sent · downgraded: sent in a poorer form, such as text instead of an image · relocated: sent in another
place · rewritten: sent in other characters, or as a similar value · synthesized: something was added because the API
requires it · withheld: the content was sent without its signed state, because the state comes from another origin.
"""
Strict: TypeAlias = Collection[LossKind] | bool
"""The kinds of loss that raise RenderingRefused. True means "dropped" and "downgraded", False means no kind."""

KINDS: tuple[LossKind, ...] = get_args(LossKind)
"""All kinds of loss."""


class Loss(Frozen):
    """One difference between what a program passed and what is sent or returned, for example a setting that a model
    lacks.

    Renderings and replies list their losses in `losses`. `kind` is one of the values of LossKind, such as "dropped".
    `message_id` is the id of the message concerned; "" if the loss concerns no message, but a setting or an option.
    `path` is the place inside the message, such as `parts[1]`; without a message, the place in the call, such as
    `settings.seed`. `reason` says why. `str(loss)` is one line for people.

    >>> import sabir
    >>> image = sabir.image("https://example.org/sky.jpg")
    >>> rendering = sabir.adapter("echo:m").render(sabir.user("What is this?", image))
    >>> rendering.losses[0].kind, rendering.losses[0].path
    ('downgraded', 'parts[1]')
    """

    kind: LossKind
    message_id: str = ""
    path: str = ""
    reason: str

    def __str__(self) -> str:
        """Return the loss as one line: the kind, the first 8 characters of the message id, the path, the reason."""
        where = f"{self.message_id[:8]} {self.path}".strip()
        return f"{self.kind}: {where}: {self.reason}" if where else f"{self.kind}: {self.reason}"


class RenderingRefused(SabirError):
    """Raised before sending if `strict` forbids a loss of the request, or if nothing of the conversation can be sent.

    Rendering raises it, so this request was not sent. `losses` lists the losses that led to the refusal. Change the
    conversation, the settings or `strict`, or use another model.
    """

    def __init__(self, message: str, losses: Sequence[Loss]) -> None:
        super().__init__(message)
        self.losses = tuple(losses)

    @classmethod
    def check(cls, losses: Iterable[Loss], strict: Strict, target: object) -> None:
        """Raise RenderingRefused if a loss is of a kind in `strict`, with these losses. Otherwise do nothing.

        `target` names the model in the message. Raises SettingsInvalid if `strict` contains a name that is not a kind
        of loss.
        """
        kinds = strict_kinds(strict) if strict else ()
        forbidden = [loss for loss in losses if loss.kind in kinds] if kinds else []
        if forbidden:
            more = f" (and {len(forbidden) - 1} more)" if len(forbidden) > 1 else ""
            first = f"{target} cannot accept everything: {forbidden[0]}{more}"
            raise cls(f"{first}; allow this kind in strict=, or change the message", forbidden)


def strict_kinds(strict: Strict) -> frozenset[str]:
    """Return the kinds of loss that `strict` forbids. Raises SettingsInvalid for a name that is not a kind of loss."""
    if isinstance(strict, bool):
        return frozenset({"dropped", "downgraded"} if strict else ())
    kinds = {strict} if isinstance(strict, str) else set(strict)
    unknown = sorted(str(kind) for kind in kinds.difference(KINDS))
    if unknown:
        raise SettingsInvalid(f"strict= contains {', '.join(unknown)}; the kinds of loss are {', '.join(KINDS)}")
    return frozenset(kinds)


REMEDY_CHARACTERS = 80
"""How many characters at the end of a long error message are kept, because the message ends with the remedy."""


class CallError(SabirError):
    """The base class of the errors of a call to a provider. A retryable error is raised after the retries that
    `Settings.retries` and the time limits of the call allow.

    `retryable` is True if the same request may succeed later. `retry_after` is the number of seconds to wait before a
    retry, or None if the provider gave none. `provider` is the provider's name, or "". `status` is the HTTP status,
    `code` the provider's error code and `request_id` the provider's id of the request; each is None if unknown.
    `losses` are the losses of the request that failed. The provider's plugin chooses the subclass by the provider's
    error codes first; the HTTP statuses named at the subclasses are the usual ones.
    """

    retryable: bool = False
    """Whether the same request may succeed later."""

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
    """Raised before sending if the API key, another credential or the endpoint that the provider needs is missing.

    That is the case if the value was not passed and not found in environment variables or files, or if an `api_key=`
    function returned an empty key. Also raised for a value that an HTTP header cannot contain, such as a key with a
    space. The message names what is missing and how to set it, usually a variable or `api_key=`.
    """


class AuthenticationFailed(CallError):
    """Raised when the provider rejects the API key (HTTP 401). Check the key."""


class PermissionDenied(CallError):
    """Raised when the API key is valid but not allowed to make this request (HTTP 403)."""


class ModelNotFound(CallError):
    """Raised when the provider does not have the model or the path of the request (HTTP 404). Check the model's
    name.
    """


class InvalidRequest(CallError):
    """Raised when the provider rejects the request as invalid (HTTP 400, 422, and statuses from 400 to 499 without a
    class of their own).

    Also raised before sending if the request is not valid HTTP. Retrying does not help.
    """


class ContextTooLong(InvalidRequest):
    """Raised when the conversation has more tokens than the model's context window. Shorten the conversation."""


class RequestTooLarge(InvalidRequest):
    """Raised when the request's body is larger than the provider allows (HTTP 413). Send fewer or smaller media."""


class ContentFiltered(InvalidRequest):
    """Raised when a content filter of the provider rejects the request. If the filter stops the reply instead, nothing
    is raised: the reply has the finish reason "content_filter".
    """


class QuotaExceeded(CallError):
    """Raised when the account's credit or spending limit is used up (HTTP 402). Unlike RateLimited, waiting does not
    help.
    """


class RateLimited(CallError):
    """Raised when the account has sent too many requests or tokens for now (HTTP 429). Retryable.

    `retry_after` is the number of seconds to wait, or None if the provider gave none.
    """

    retryable = True


class Overloaded(CallError):
    """Raised when the provider reports that it is overloaded (HTTP 529, sometimes 503). Retryable."""

    retryable = True


class Unavailable(CallError):
    """Raised when the provider's service is temporarily unavailable (HTTP 503). Retryable."""

    retryable = True


class ServerFailed(CallError):
    """Raised when the provider fails internally: HTTP statuses from 500 without a class of their own, and unknown
    errors that the provider reports in a stream or in a response with status 200. Retryable.
    """

    retryable = True


class ConnectionFailed(CallError):
    """Raised when the provider cannot be reached or the connection breaks off before the reply is complete.

    Retryable, unless no HTTP client can be created because a variable for a proxy or certificates is wrong. A stream
    that breaks off after its first block began raises StreamBroken.
    """

    retryable = True


class CallTimedOut(CallError):
    """Raised when a complete reply, or the beginning of a stream, takes longer than `Settings.timeout`, when a stream
    has no event for `Settings.idle` seconds, or when the whole call takes longer than `Settings.total`. In these cases,
    the message names the setting. Retryable.

    Also raised when the SDK's own time limit ends, and when the provider reports a timeout (HTTP 408).
    """

    retryable = True


class ResponseInvalid(CallError):
    """Raised when the provider's response cannot be read as its API documents, for example HTML, an empty body or
    broken JSON.

    Also raised for a redirect, and when the response is larger than `Settings.bounds` allows. Not retryable.
    """
