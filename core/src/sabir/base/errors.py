"""The root of the library's errors, the errors that need no other module, and helpers that make foreign text safe.

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
    """A foreign text with a visible sign for each control and direction character, so that no terminal obeys it."""
    return _CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "�", text)


def one_line(text: str | BaseException, limit: int = 500, *, kept_end: int = 0) -> str:
    """A text as one printable line of at most `limit` characters, the last `kept_end` included, for a message.

    Of an exception, its class and words; of one that cannot say its words, its class alone.
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
    """The root of the library's errors; the message is one line, whatever it quotes.

    Core's errors have `sabir.errors` as their module, where programs find them; tracebacks and pickles show it.
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
    """A file or text is no history of messages."""


class SettingsInvalid(SabirError, ValueError):
    """A setting is unknown, wrong for its provider, or contradicts another."""


class OptionInvalid(SabirError, ValueError):
    """A value offered as an option is no option, or the option cannot be run in the way asked for."""


class OptionFailed(SabirError):
    """Raised by an option's function to choose its error result itself.

    Any other exception gives an error result that is named after the exception's class.
    """

    def __init__(self, error_type: str, error_message: str, *, retryable: bool = False) -> None:
        super().__init__(error_message)
        self.error_type = error_type
        self.error_message = error_message
        self.retryable = retryable


class OutsideEvaluation(SabirError, LookupError):
    """The context of a run was asked for, but no option runs for an evaluation or a policy."""


class CallsTooDeep(SabirError):
    """Policies or evaluations called each other, or themselves, more than 50 deep.

    It ends all of the nested calls: if it became the result of an option, the model would choose that option again.
    """


class MediaRefused(SabirError, ValueError):
    """A medium must not or cannot be carried, or fetched."""


class BuilderError(SabirError, ValueError):
    """A builder was asked for a message that it cannot build."""


class NotJSON(SabirError, ValueError):
    """JSON cannot hold a value: it is non-finite, not serialisable, or not valid Unicode."""


class WrongWord(SabirError, TypeError):
    """An argument has another library's name; the message gives sabir's name."""


class PluginError(SabirError):
    """A plugin is missing, broken, or in conflict with another."""

    @classmethod
    @contextmanager
    def blaming(cls, what: str, remedy: str = "update or remove it") -> Iterator[None]:
        """Within it a plugin's own code runs: whatever that raises, but an interrupt, becomes one that says `what`."""
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise cls(f"{what}: {one_line(error, 300)}; {remedy}") from error


class ProviderMissing(PluginError, LookupError):
    """No installed plugin offers the provider asked for."""


class DialectMissing(PluginError, LookupError):
    """A provider does not speak the dialect asked for."""


class ProviderBroken(PluginError):
    """An installed provider cannot be loaded."""


class PluginConflict(PluginError):
    """Two plugins claim the same name."""


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
