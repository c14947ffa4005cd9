"""The base class of the library's errors, errors that need no other module, and helpers for text in messages.

Each message is one line: the offender, what was expected, the remedy. Control characters in quoted text are replaced by
visible signs, so that no terminal obeys them. Errors that are also ValueErrors can be raised by validators.
`sabir.errors` shows all errors.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

LEAST_SECRET = 8
"""The least characters of a secret: a shorter value is a placeholder, as self-hosted servers accept."""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return the text with control and direction characters replaced by visible signs, so that it cannot control a
    terminal.
    """
    return _CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "�", text)


def one_line(text: str | BaseException, limit: int = 500, *, kept_end: int = 0) -> str:
    """Return a text or an exception as one printable line of at most `limit` characters. For error messages.

    A longer line is cut; the last `kept_end` characters remain. An exception becomes "Class: text".
    """
    if isinstance(text, BaseException):
        try:
            text = f"{type(text).__name__}: {text}"
        except Exception:
            text = type(text).__name__
    if len(text) > 20 * limit:  # a foreign body, of which no copy is made
        text = f"{text[: 10 * limit]}…{text[-10 * limit :]}"
    line = " ".join(text.split())
    if len(line) > limit:
        line = f"{line[: limit - kept_end - 1]}…{line[len(line) - kept_end :]}"
    return printable(line)


class SabirError(Exception):
    """The base class of the errors that sabir defines. Catch SabirError to handle failures of the library in one place.

    The message is a single line. It names the problem, what was expected, and usually how to fix it. The errors of core
    are importable from `sabir.errors`, the most frequent ones also from `sabir`. Constructors of message types and
    parts may raise pydantic's ValidationError, which is not a SabirError.
    """

    __module__ = "sabir.errors"

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("sabir."):
            cls.__module__ = SabirError.__module__

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(" ".join(str(message).split())))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all attributes, whatever arguments the constructor takes."""
        # An error that is also an OSError gets no `args` from `__new__`, so they are part of the state.
        return type(self).__new__, (type(self), *self.args), {**vars(self), "args": self.args}


class HistoryInvalid(SabirError, ValueError):
    """Raised by `load`, `loads`, `save`, `dumps` and `PureDialect.decode_history` for data that is not a valid history.

    The message names the file or line, the message and the fault. `save` also raises HistoryInvalid for a path that
    cannot be written.
    """


class SettingsInvalid(SabirError, ValueError):
    """Raised for an unknown setting, an invalid value, a model name of the wrong form, or a rendering of another
    adapter.

    The message names the problem and usually the accepted values. The mistake is in the program, so do not retry.
    """


class OptionInvalid(SabirError, ValueError):
    """Raised for a value that cannot be an option, or for an option that cannot run in the requested way.

    Examples: a function without type annotations, two options of the same name, `answer_sync` with a coroutine
    function.
    """


class OptionFailed(SabirError):
    """Raise OptionFailed in an option's function to choose the error result that the model receives.

    `error_type` is a short name such as "not_found", `error_message` the text for the model, and `retryable` tells the
    model whether the same call may succeed later. Any other exception except CallsTooDeep also becomes an error result:
    its type is the exception's class name, and its message is the exception's text.
    """

    def __init__(self, error_type: str, error_message: str, *, retryable: bool = False) -> None:
        super().__init__(error_message)
        self.error_type = error_type
        self.error_message = error_message
        self.retryable = retryable


class OutsideEvaluation(SabirError, LookupError):
    """Raised by `ToolContext.current()` outside of an option's function, and by sabir's runners when no run is
    active.
    """


class CallsTooDeep(SabirError):
    """Raised when options, policies or evaluations call each other, or themselves, more than 50 levels deep.

    CallsTooDeep ends all the nested calls. An option's function cannot turn CallsTooDeep into an error result, because
    the model would call the same option again.
    """


class MediaRefused(SabirError, ValueError):
    """Raised for a medium that cannot be read or sent: a missing or empty file, a too large file, an invalid URL, a
    MIME type that is not allowed.

    The message names the source and the remedy. `sabir.image`, `audio`, `video`, `document` and MediaPart's methods
    raise MediaRefused, and so do fetchers that refuse a URL.
    """


class BuilderError(SabirError, ValueError):
    """Raised by MessageBuilder, OptionResultBuilder, `user`, `system` and `assistant` for contents that no message can
    have.

    Examples: a message without content, a result for a message that is not an option call, a second use of a media id.
    """


class NotJSON(SabirError, ValueError):
    """Raised for a value that JSON cannot represent, such as NaN, infinity, an object of an unknown class or invalid
    Unicode.
    """


class WrongWord(SabirError, TypeError):
    """Raised for an argument that another library uses. The message gives sabir's name for the argument.

    For example, `tools=[…]` is `options=[…]` here, and a dictionary with "role" and "content" is `sabir.user(…)`.
    """


class PluginError(SabirError):
    """The base class of the errors for a plugin that is missing, cannot be loaded, or conflicts with another plugin."""

    @classmethod
    @contextmanager
    def blaming(cls, what: str, remedy: str = "update or remove it") -> Iterator[None]:
        """Return a context manager that turns any exception of a plugin's code into this error, except
        KeyboardInterrupt.

        `what` begins the message; the original exception and `remedy` follow. The original exception is the
        `__cause__`.
        """
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise cls(f"{what}: {one_line(error, 300)}; {remedy}") from error


class ProviderMissing(PluginError, LookupError):
    """Raised when no installed package provides the provider that a model name begins with.

    The message lists the installed providers, and suggests a similar name or how to install the missing provider.
    """


class DialectMissing(PluginError, LookupError):
    """Raised when a provider does not have the requested dialect (API format). The message lists the provider's
    dialects.
    """


class ProviderBroken(PluginError):
    """Raised when a provider's package fails to load, or does not meet the interface that sabir expects.

    Update or remove the package that the message names.
    """


class PluginConflict(PluginError):
    """Raised when two plugins use the same name. Uninstall one of the two packages, or register yours under another
    name.
    """


def conceal(error: BaseException, secrets: Collection[str]) -> None:
    """Remove secrets, and the pieces of them that a cut (…) left, from an error's texts and from those of its causes.

    A secret or piece of fewer than LEAST_SECRET characters stays.
    """
    behind: BaseException | None = error
    done: list[BaseException] = []
    while behind is not None and behind not in done:
        for secret in secrets:
            behind.args = tuple(_without(secret, each) if isinstance(each, str) else each for each in behind.args)
            texts = vars(behind).items() if isinstance(behind, SabirError) else ()  # a code or an id of the request
            vars(behind).update({name: _without(secret, text) for name, text in texts if isinstance(text, str)})
        done.append(behind)
        behind = behind.__cause__ or behind.__context__


def _without(secret: str, text: str) -> str:
    for kept in range(len(secret), LEAST_SECRET - 1, -1):
        for cut in ("",) if kept == len(secret) else ("…", r"\u2026"):
            text = text.replace(f"{secret[:kept]}{cut}", f"[a secret]{cut}")
            text = text.replace(f"{cut}{secret[-kept:]}", f"{cut}[a secret]")
    return text
