"""The root of the library's errors, those that need nothing else, and what makes a foreign text safe to quote.

Each message is one line: the offender, what was expected, the remedy. What it quotes steers no terminal: control
characters are shown, not obeyed. Those that are also ValueErrors can be raised by validators. `sabir.errors` shows all.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

LEAST_SECRET = 8
"""Characters of a secret: fewer are a word that stands in for one, as servers of one's own take."""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """A foreign text that no terminal obeys: a visible sign stands for each control and direction character."""
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

    Those of core name `sabir.errors` as their module, where programs find them: tracebacks and pickles say so.
    """

    __module__ = "sabir.errors"

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("sabir."):
            cls.__module__ = SabirError.__module__

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


class OutsideEvaluation(SabirError, LookupError):
    """The context of a run was asked for where no option runs for an evaluation or a policy."""


class CallsTooDeep(SabirError):
    """Policies or evaluations called each other, or themselves, deeper than 50.

    It ends all of the calls that are within each other: as the result of an option, it would be chosen again.
    """


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
