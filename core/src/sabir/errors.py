"""Every error that sabir raises, as one tree.

    SabirError
    ├── HistoryInvalid · SettingsInvalid · OptionInvalid · MediaRefused · Misnamed · BuilderError · NotJSON
    ├── OptionFailed                     what an option's function raises to say its error result itself
    ├── PluginError
    │   ├── ProviderMissing · DialectMissing · ProviderBroken · PluginConflict
    ├── RenderingRefused                 strict: carries the losses
    ├── OutputError                      carry the reply
    │   ├── OutputInvalid · OutputRefused · OutputTruncated
    └── CallError                        retryable, retry_after, request_id, status, provider
        ├── CredentialsMissing · AuthenticationFailed · PermissionDenied · ModelNotFound
        ├── InvalidRequest · ContextTooLong · RequestTooLarge · ContentFiltered
        ├── QuotaExceeded · RateLimited · Overloaded · Unavailable · ServerFailed
        ├── ConnectionFailed · CallTimedOut
        ├── ResponseInvalid
        │   └── StreamBroken             carries the partial reply
        └── NoneAnswered                 carries what each member of a fallback said

Each message is one line: the offender, what was expected, the remedy. What it quotes steers no terminal: control
characters are shown, not obeyed. Those that are also ValueErrors can be raised by validators.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.losses import Loss
    from sabir.reply import Passed, Reply


LEAST_SECRET = 8
"""Characters of a secret: fewer are a word that stands in for one, as servers of one's own take."""
REMEDY_CHARACTERS = 80
"""How much of the end of a call's long message is kept: the remedy stands there."""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """A foreign text that no terminal obeys: a visible sign stands for each control and direction character."""
    return _CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "�", text)


def one_line(text: str, limit: int = 500, *, kept_end: int = 0) -> str:
    """A text as one printable line of at most `limit` characters, the last `kept_end` included, for a message."""
    if len(text) > 20 * limit:  # a foreign body, of which no copy is made
        text = f"{text[: 10 * limit]}…{text[-10 * limit :]}"
    line = " ".join(text.split())
    if len(line) > limit:
        line = f"{line[: limit - kept_end - 1]}…{line[len(line) - kept_end :]}"
    return printable(line)


class SabirError(Exception):
    """The root of the library's errors; the message is one line, whatever it quotes."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(" ".join(str(message).split())))

    def __reduce__(self) -> tuple[object, ...]:
        """So that it crosses processes with what it holds, whatever its constructor takes."""
        # An error that is an OSError too takes no `args` from `__new__`: they are part of its state.
        return type(self).__new__, (type(self), *self.args), {**vars(self), "args": self.args}


class HistoryInvalid(SabirError, ValueError):
    """A file or text is no history of messages."""


class SettingsInvalid(SabirError, ValueError):
    """A setting is unknown, wrong for its provider, or contradicts another."""


class OptionInvalid(SabirError, ValueError):
    """Something offered as an option is none, or cannot be run in the way asked for."""


class OptionFailed(SabirError):
    """Raised by an option's function that says itself what its error result shall hold.

    Any other exception gives a result that is named after its class.
    """

    def __init__(self, error_type: str, error_message: str, *, retryable: bool = False) -> None:
        super().__init__(error_message)
        self.error_type = error_type
        self.error_message = error_message
        self.retryable = retryable


class MediaRefused(SabirError, ValueError):
    """A medium that must not or cannot be carried, or fetched."""


class BuilderError(SabirError, ValueError):
    """A builder was asked for what it cannot build."""


class NotJSON(SabirError, ValueError):
    """A value that JSON cannot hold: non-finite, not serialisable, or not valid Unicode."""


class Misnamed(SabirError, TypeError):
    """An argument under another library's name; the message names sabir's."""


class PluginError(SabirError):
    """A plugin is missing, broken, or in conflict with another."""


class ProviderMissing(PluginError, LookupError):
    """No installed plugin offers the provider asked for."""


class DialectMissing(PluginError, LookupError):
    """A provider does not speak the dialect asked for."""


class ProviderBroken(PluginError):
    """An installed provider cannot be loaded."""


class PluginConflict(PluginError):
    """Two plugins claim the same name."""


def described(error: BaseException, limit: int = 500) -> str:
    """An exception's class and words, in one line; of one that cannot say its words, its class alone."""
    try:
        words = f": {error}"
    except Exception:
        words = ""
    return one_line(f"{type(error).__name__}{words}", limit)


@contextmanager
def blaming(what: str, kind: type[PluginError] = PluginError, remedy: str = "update or remove it") -> Iterator[None]:
    """Within it a plugin's own code runs: whatever that raises, but an interrupt, becomes a `kind` that says `what`."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise kind(f"{what}: {described(error, 300)}; {remedy}") from error


def conceal(error: BaseException, secrets: Collection[str]) -> None:
    """Take secrets out of the message of an error and of those behind it, and what a cut (…) left of one.

    What has fewer than LEAST_SECRET characters stays.
    """
    behind: BaseException | None = error
    done: list[BaseException] = []
    while behind is not None and behind not in done:
        if isinstance(behind, SabirError):
            for secret in secrets:
                behind.args = tuple(_without(secret, each) if isinstance(each, str) else each for each in behind.args)
        done.append(behind)
        behind = behind.__cause__ or behind.__context__


def _without(secret: str, text: str) -> str:
    for kept in range(len(secret), LEAST_SECRET - 1, -1):
        for cut in ("",) if kept == len(secret) else ("…", r"\u2026"):
            text = text.replace(f"{secret[:kept]}{cut}", f"[a secret]{cut}")
            text = text.replace(f"{cut}{secret[-kept:]}", f"{cut}[a secret]")
    return text


class RenderingRefused(SabirError):
    """A strict rendering met losses that it was told to refuse; `losses` lists them."""

    def __init__(self, message: str, losses: Sequence["Loss"]) -> None:
        super().__init__(message)
        self.losses = tuple(losses)


class OutputError(SabirError):
    """A reply is not what `parse` was asked for; `reply` is that reply."""

    def __init__(self, message: str, reply: "Reply") -> None:
        super().__init__(message)
        self.reply = reply


class OutputInvalid(OutputError):
    """A reply's text does not validate."""


class OutputRefused(OutputError):
    """The model refused, or its provider filtered the reply."""


class OutputTruncated(OutputError):
    """A reply ended at a length limit before its output was whole."""


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
    """The provider answered with what its dialect cannot be: HTML, an empty body, broken JSON."""


class StreamBroken(ResponseInvalid):
    """A stream ended without its terminal marker, or failed midway; `partial` holds what had arrived."""

    def __init__(self, message: str, *, partial: "Reply", cause: CallError | None = None, provider: str = "") -> None:
        super().__init__(message, provider=provider)
        self.partial = partial
        if cause:
            self.provider = provider or cause.provider
            self.status, self.code = cause.status, cause.code
            self.request_id, self.retry_after = cause.request_id, cause.retry_after


class NoneAnswered(CallError):
    """No member of a fallback answered; `passed` tells what each said, `errors` are what they raised.

    It is retryable where one of these is, after the shortest time that one of them names.
    """

    def __init__(self, message: str, *, passed: Sequence["Passed"], errors: Sequence[SabirError]) -> None:
        failed = [error for error in errors if isinstance(error, CallError) and error.retryable]
        delays = [error.retry_after or 0.0 for error in failed]
        super().__init__(message, retry_after=min(delays, default=0.0) or None)
        self.retryable = bool(failed)
        self.passed = tuple(passed)
        self.errors = tuple(errors)
