"""The base class of sabir's errors, the errors that need no other module, and helpers for texts in messages.

Each message is one line: the offender, and usually what was expected and the remedy. Control characters in quoted text
are replaced by visible signs, so that they cannot control a terminal. Some errors are also ValueErrors, so pydantic's
validators may raise them. `sabir.errors` shows all errors.
"""

import difflib
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

LEAST_SECRET = 8
"""The least number of characters of a secret. A shorter key is a placeholder, which self-hosted servers accept."""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Matches control characters, and characters that change the direction of text."""


def printable(text: str) -> str:
    """Return the text with control and direction characters replaced by visible signs, so that the text cannot control
    a terminal. Tabs and line feeds are kept.
    """
    return _CONTROL.sub(lambda match: chr(0x2400 + ord(match[0])) if match[0] < " " else "�", text)


def one_line(text: str | BaseException, limit: int = 500, *, kept_end: int = 0) -> str:
    """Return a text or an exception as one printable line of at most `limit` characters. For error messages.

    Each run of white space and line breaks becomes one space. A longer line is cut, with "…" at the cut; the last
    `kept_end` characters remain. An exception becomes "Class: text".
    """
    if isinstance(text, BaseException):
        try:
            text = f"{type(text).__name__}: {text}"
        except Exception:
            text = type(text).__name__
    if len(text) > 20 * limit:  # a large text of others: do not copy and split all of it
        text = f"{text[: 10 * limit]}…{text[-10 * limit :]}"
    line = " ".join(text.split())
    if len(line) > limit:
        line = f"{line[: limit - kept_end - 1]}…{line[len(line) - kept_end :]}"
    return printable(line)


def did_you_mean(name: str, known: Collection[str], otherwise: str, *, cutoff: float = 0.6) -> str:
    """Return "did you mean …?" with the known name that is most similar to `name`, or `otherwise` if none is similar.
    `cutoff` is the least similarity that counts, from 0 to 1.
    """
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else otherwise


class SabirError(Exception):
    """The base class of the errors that sabir defines. Catch SabirError to handle failures of the library in one place.

    The message is a single line. It names the problem, and usually what was expected and how to fix it. The errors of
    the package sabir are importable from `sabir.errors`, the most frequent ones also from `sabir`. Constructors of most
    data classes, such as Message, payloads and parts, raise pydantic's ValidationError, which is not a SabirError.
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
    """Raised by `load`, `loads`, `save`, `dumps`, `dumps_lines` and `PureDialect.decode_history` for data that is not a
    valid history.

    The message names the fault, and usually the file, line or message. `load` also raises HistoryInvalid for a file
    that cannot be read, and `save` for a missing folder and for a path that is not a regular file.
    """


class SettingsInvalid(SabirError, ValueError):
    """Raised for a wrong setting or argument: an unknown setting, an invalid value, a model string of the wrong form, a
    rendering of another adapter, or a second reader of one stream.

    The message names the problem and usually the accepted values. The mistake is in the program, so do not retry.
    """


class OptionInvalid(SabirError, ValueError):
    """Raised for a value that cannot be an option, or for an option that cannot run in the requested way.

    Examples: a function without type annotations, two options of the same name, `answer_sync` with a coroutine
    function, a function with a ToolContext that is called outside of an evaluation.
    """


class OptionFailed(SabirError):
    """Raise OptionFailed in an option's function to choose the error result that the model receives.

    `error_type` is a short name such as "not_found", `error_message` the text for the model, and `retryable` tells the
    model whether the same call may succeed later. Other exceptions become error results too: the type is the
    exception's class name, and the message is the exception's text, or the class name if the text is empty. Only
    CallsTooDeep, the cancellation of the caller, and KeyboardInterrupt (or another BaseException, except SystemExit)
    are raised to the caller.
    """

    def __init__(self, error_type: str, error_message: str, *, retryable: bool = False) -> None:
        super().__init__(error_message)
        self.error_type = error_type
        self.error_message = error_message
        self.retryable = retryable


class OutsideEvaluation(SabirError, LookupError):
    """Raised by `ToolContext.current()` if no evaluation or runner is running an option's function, and by sabir's
    runners when no run is active.
    """


class CallsTooDeep(SabirError):
    """Raised when options, policies or evaluations call each other, or themselves, more than 50 levels deep.

    Unless it is caught, CallsTooDeep ends all the nested calls. CallsTooDeep of an option's function does not become an
    error result, because the model would call the same option again.
    """


class MediaRefused(SabirError, ValueError):
    """Raised for a medium that cannot be read or sent: a missing, empty or too large file, an invalid URL, a MIME type
    that is unknown or not allowed.

    The message names the source and usually the remedy. `sabir.image`, `audio`, `video`, `document`, MessageBuilder,
    the methods of MediaPart and DataURL, and fetchers raise MediaRefused. The constructor of MediaPart raises
    pydantic's ValidationError instead.
    """


class BuilderError(SabirError, ValueError):
    """Raised by MessageBuilder, OptionResultBuilder and the functions that create messages and media, such as `user`
    and `image`, for contents that no message can have.

    Examples: a message without content, a result for a message that is not an option call, a media id that the builder
    already gave to another medium.
    """


class NotJSON(SabirError, ValueError):
    """Raised for a value that JSON cannot represent, such as NaN, infinity, an object of an unknown class or invalid
    Unicode, and for text that is not JSON.
    """


class WrongWord(SabirError, TypeError):
    """Raised for an argument or a message format of another library, and for an item that is not a Message. The error's
    message says what to write instead.

    For example, `tools=[…]` is `options=[…]` here, and a dictionary with "role" and "content" is `sabir.user(…)`.
    """


class PluginError(SabirError):
    """The base class of the errors for a plugin that is missing, cannot be loaded, or conflicts with another plugin."""

    @classmethod
    @contextmanager
    def blaming(cls, what: str, remedy: str = "update or remove it") -> Iterator[None]:
        """Return a context manager that replaces any exception of its block by an error of this class.

        Only KeyboardInterrupt is raised unchanged. `what` begins the message; the original exception and `remedy`
        follow. The original exception is the `__cause__`.
        """
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise cls(f"{what}: {one_line(error, 300)}; {remedy}") from error


class ProviderMissing(PluginError, LookupError):
    """Raised when no installed package provides the provider that a model name begins with.

    Usually, the message lists the installed providers, and suggests a similar name or how to install the missing one.
    Also raised by `unregister` for a name that was not registered.
    """


class DialectMissing(PluginError, LookupError):
    """Raised when a provider does not have the requested dialect (API format). The message lists the provider's
    dialects.
    """


class ProviderBroken(PluginError):
    """Raised when a plugin cannot be loaded, or when a provider does not have the interface that sabir expects or fails
    when sabir reads its facts.

    Update or remove the package that the message names; correct a provider that you registered yourself.
    """


class PluginConflict(PluginError):
    """Raised when two plugins have the same name, so that sabir cannot choose. Uninstall one of the two packages, or
    register yours under another name. Also raised when a hook plugin is registered twice.
    """


def conceal(error: BaseException, secrets: Collection[str]) -> None:
    """Replace secrets in the texts of an error and of its causes or contexts by "[a secret]". Changes the errors in
    place.

    Also replaces the beginning or end of a secret at which a text was cut (…). Secrets and pieces with fewer than
    LEAST_SECRET characters are not replaced.
    """
    each_error: BaseException | None = error
    done: list[BaseException] = []
    while each_error is not None and each_error not in done:
        for secret in secrets:
            arguments = each_error.args
            each_error.args = tuple(_mask(secret, each) if isinstance(each, str) else each for each in arguments)
            texts = vars(each_error).items() if isinstance(each_error, SabirError) else ()  # such as the request id
            vars(each_error).update({name: _mask(secret, text) for name, text in texts if isinstance(text, str)})
        done.append(each_error)
        each_error = each_error.__cause__ or each_error.__context__


def _mask(secret: str, text: str) -> str:
    """Return the text without the secret, also without its beginning or end next to the place where a text was cut."""
    for length in range(len(secret), LEAST_SECRET - 1, -1):
        for cut in ("",) if length == len(secret) else ("…", r"\u2026"):  # the second is the first, escaped in JSON
            text = text.replace(f"{secret[:length]}{cut}", f"[a secret]{cut}")
            text = text.replace(f"{cut}{secret[-length:]}", f"{cut}[a secret]")
    return text
