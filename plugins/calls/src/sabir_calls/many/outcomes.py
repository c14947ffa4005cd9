"""The outcome of a prompt, and the progress of a run."""

from dataclasses import dataclass
from typing import NamedTuple

from sabir import CallError, RenderingRefused, Reply, SabirError


class ReplyOrError:
    """Base class of results with a reply or an error. Exactly one of them is not None."""

    reply: Reply | None
    error: SabirError | None

    @property
    def text(self) -> str:
        """The text of the reply. Raises the error of a failed call."""
        return self.unwrap().text

    def unwrap(self) -> Reply:
        """Return the reply. Raises the error of a failed call."""
        if self.error is not None:
            raise self.error
        assert self.reply is not None
        return self.reply


@dataclass(frozen=True)
class Outcome(ReplyOrError):
    """The result of one prompt: a reply, or the error that the call raised. Exactly one of them is not None."""

    index: int
    """The position of the prompt, from 0."""
    reply: Reply | None = None
    error: SabirError | None = None
    is_resumed: bool = False
    """Whether the reply was read from the file of an earlier run, so that this run did not pay for it."""


class Progress(NamedTuple):
    """How far a run is. The function that is passed as `progress=` gets it as its argument."""

    succeeded: int = 0
    """The number of prompts with a reply, including the replies of an earlier run."""
    failed: int = 0
    """The number of prompts whose call raised an error."""
    resumed: int = 0
    """The number of replies that were read from the file of an earlier run."""
    running: int = 0
    """The number of calls that are running."""
    total: int | None = None
    """The number of prompts; None if `prompts` has no length."""
    input_tokens: int = 0
    """The input tokens of the replies of this run, as far as the provider reported them."""
    output_tokens: int = 0
    """The output tokens of the replies of this run, as far as the provider reported them."""

    @property
    def done(self) -> int:
        """The number of prompts that are finished, with a reply or an error."""
        return self.succeeded + self.failed

    def __str__(self) -> str:
        """Return one line, for example "12 of 200 done, 1 failed, 8 running, 900 in, 120 out"."""
        total = "" if self.total is None else f" of {self.total}"
        resumed = f", {self.resumed} resumed" if self.resumed else ""
        failed = f", {self.failed} failed" if self.failed else ""
        tokens = f", {self.input_tokens} in, {self.output_tokens} out"
        return f"{self.done}{total} done{resumed}{failed}, {self.running} running{tokens}"

    def started(self) -> "Progress":
        """Return the progress after one more call began."""
        return self._replace(running=self.running + 1)

    def finished(self, outcome: Outcome) -> "Progress":
        """Return the progress after an outcome."""
        if outcome.reply is None:
            return self._replace(failed=self.failed + 1, running=self.running - 1)
        if outcome.is_resumed:
            return self._replace(succeeded=self.succeeded + 1, resumed=self.resumed + 1)
        usage = outcome.reply.usage
        return self._replace(
            succeeded=self.succeeded + 1,
            running=self.running - 1,
            input_tokens=self.input_tokens + (usage.input_tokens or 0),
            output_tokens=self.output_tokens + (usage.output_tokens or 0),
        )


def is_failure(error: BaseException) -> bool:
    """Return whether an error belongs to one prompt, so that the others continue: CallError and RenderingRefused.

    Other errors, such as SettingsInvalid, are likely to be the same for every prompt.
    """
    return isinstance(error, CallError | RenderingRefused)
