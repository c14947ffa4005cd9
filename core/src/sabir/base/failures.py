"""The losses of a request (law 2: nothing is lost silently), and the errors of a call by their cause.

a rendering ──▶ Loss, one for each thing that the target cannot take as it was ──strict──▶ RenderingRefused
an answer   ──error table of the provider's plugin: statuses, codes──▶ CallError, which says whether to try again
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypeAlias, get_args

from sabir.base.errors import SabirError, SettingsInvalid, one_line
from sabir.base.models import Frozen

LossKind: TypeAlias = Literal["dropped", "downgraded", "relocated", "rewritten", "synthesized", "withheld"]
"""The kind of a Loss.

dropped: not sent · downgraded: sent in a poorer form, such as text instead of an image · relocated: sent in another
place · rewritten: same meaning in other characters · synthesized: added because the API requires it · withheld: state
of another provider is not sent, but the content it belongs to is.
"""
Strict: TypeAlias = Collection[LossKind] | bool
"""The kinds of loss that raise RenderingRefused: True means dropped and downgraded, False means no kind."""

KINDS: tuple[LossKind, ...] = get_args(LossKind)


class Loss(Frozen):
    """One difference between what a program passed and what is sent or returned, for example a setting that a model
    lacks.

    Renderings and replies list their losses in `losses`. `kind` is the sort of difference. `message_id` is the id of
    the message concerned, or "" for a setting or an option. `path` is the place within the message or the request, such
    as `parts[1]` or `settings.seed`. `reason` says why. `str(loss)` is one line for people.

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
        """Return the loss as one line: kind, the place, reason."""
        where = f"{self.message_id[:8]} {self.path}".strip()
        return f"{self.kind}: {where}: {self.reason}" if where else f"{self.kind}: {self.reason}"


class RenderingRefused(SabirError):
    """Raised before sending if `strict` forbids a loss of the request, or if nothing of the conversation can be sent.

    `losses` lists the losses that led to the refusal. Change the conversation, the settings or `strict`, or use another
    model.
    """

    def __init__(self, message: str, losses: Sequence[Loss]) -> None:
        super().__init__(message)
        self.losses = tuple(losses)

    @classmethod
    def check(cls, losses: Iterable[Loss], strict: Strict, target: object) -> None:
        """Raise RenderingRefused if a loss is of a kind in `strict`; `target` names the model in the message.

        Raises SettingsInvalid if `strict` contains a name that is not a kind of loss.
        """
        kinds = strict_kinds(strict) if strict else ()
        met = [loss for loss in losses if loss.kind in kinds] if kinds else []
        if met:
            more = f" (and {len(met) - 1} more)" if len(met) > 1 else ""
            raise cls(
                f"{target} cannot accept everything: {met[0]}{more}; allow this kind in strict=, or change the message",
                met,
            )


def strict_kinds(strict: Strict) -> frozenset[str]:
    """The kinds that `strict` refuses; raises SettingsInvalid for a name that is no kind."""
    if isinstance(strict, bool):
        return frozenset({"dropped", "downgraded"} if strict else ())
    kinds = {strict} if isinstance(strict, str) else set(strict)
    unknown = sorted(str(kind) for kind in kinds.difference(KINDS))
    if unknown:
        raise SettingsInvalid(f"strict names {', '.join(unknown)}; kinds of loss are {', '.join(KINDS)}")
    return frozenset(kinds)


REMEDY_CHARACTERS = 80
"""How many characters of the end of a long message are kept, because the remedy stands there."""


class CallError(SabirError):
    """The base class of the errors of a call to a provider. Raised after the retries that `Settings.retries` allows.

    `retryable` is True if the same request may succeed later. `retry_after` is the number of seconds to wait, or None
    if the provider gave none. `provider` is the provider's name, or "". `status` is the HTTP status, `code` the
    provider's error code and `request_id` the provider's id of the request; each is None if unknown. `losses` are the
    losses of the request that failed.
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
    """Raised before sending if no API key was passed and no environment variable of the provider is set.

    The message names the variables. Set one of them, or pass `api_key=` to `sabir.adapter`.
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
    """Raised when the provider rejects the request as invalid (HTTP 400 or 422). Retrying does not help."""


class ContextTooLong(InvalidRequest):
    """Raised when the conversation has more tokens than the model's context window. Shorten the conversation."""


class RequestTooLarge(InvalidRequest):
    """Raised when the request's body is larger than the provider allows (HTTP 413). Send fewer or smaller media."""


class ContentFiltered(InvalidRequest):
    """Raised when a content filter of the provider rejects the request. A filtered reply has the finish reason
    "content_filter" instead.
    """


class QuotaExceeded(CallError):
    """Raised when the account's credit or spending limit is used up. Unlike RateLimited, waiting does not help."""


class RateLimited(CallError):
    """Raised when the account has sent too many requests or tokens for now (HTTP 429). Retryable.

    `retry_after` is the number of seconds to wait, if the provider gave one.
    """

    retryable = True


class Overloaded(CallError):
    """Raised when the provider reports that it is overloaded (HTTP 529, sometimes 503). Retryable."""

    retryable = True


class Unavailable(CallError):
    """Raised when the provider's service is temporarily unavailable (HTTP 503). Retryable."""

    retryable = True


class ServerFailed(CallError):
    """Raised when the provider fails internally (other HTTP statuses from 500). Retryable."""

    retryable = True


class ConnectionFailed(CallError):
    """Raised when the connection to the provider fails before a reply begins. Retryable."""

    retryable = True


class CallTimedOut(CallError):
    """Raised when a call takes longer than `timeout` or `total`, or a stream has no event for `idle` seconds.
    Retryable.

    The message names the setting. All three are fields of Settings.
    """

    retryable = True


class ResponseInvalid(CallError):
    """Raised when the provider's response cannot be read as its API documents, for example HTML, an empty body or
    broken JSON.

    Also raised when the response is larger than `Settings.bounds` allows.
    """
