"""What went wrong with a call: losses of its request (law 2: nothing is lost silently), and errors by their cause.

a rendering ──▶ Loss, one for each thing that the target cannot take as it was ──strict──▶ RenderingRefused
an answer   ──error table of the provider's plugin: statuses, codes──▶ CallError, which says whether to try again
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypeAlias, get_args

from sabir.base.errors import SabirError, SettingsInvalid, one_line
from sabir.base.models import Frozen

LossKind: TypeAlias = Literal["dropped", "downgraded", "relocated", "rewritten", "synthesized", "withheld"]
"""dropped: left out · downgraded: rendered as something lesser · relocated: at another place ·
rewritten: same meaning, other characters · synthesized: added, because the wire demands it ·
withheld: provider-bound state is not sent, but the content beside it is."""
Strict: TypeAlias = Collection[LossKind] | bool
"""Kinds of loss that refuse a rendering; True stands for dropped and downgraded."""

KINDS: tuple[LossKind, ...] = get_args(LossKind)


class Loss(Frozen):
    """One compromise of a rendering or a decoding.

    `message_id` names the message (empty for a setting or an option), `path` the place within it or within the
    request (`parts[1]`, `settings.seed`), `reason` says why in the target's words.
    """

    kind: LossKind
    message_id: str = ""
    path: str = ""
    reason: str

    def __str__(self) -> str:
        """The loss in one line."""
        where = f"{self.message_id[:8]} {self.path}".strip()
        return f"{self.kind}: {where}: {self.reason}" if where else f"{self.kind}: {self.reason}"


class RenderingRefused(SabirError):
    """A rendering has losses that `strict` refuses, or nothing of it is left to send; `losses` lists them."""

    def __init__(self, message: str, losses: Sequence[Loss]) -> None:
        super().__init__(message)
        self.losses = tuple(losses)

    @classmethod
    def check(cls, losses: Iterable[Loss], strict: Strict, target: object) -> None:
        """Raise it if any loss is of a kind that `strict` names; SettingsInvalid for a word that is no kind."""
        kinds = strict_kinds(strict) if strict else ()
        met = [loss for loss in losses if loss.kind in kinds] if kinds else []
        if met:
            more = f" (and {len(met) - 1} more)" if len(met) > 1 else ""
            raise cls(f"{target} would lose something: {met[0]}{more}; relax strict or change it", met)


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
