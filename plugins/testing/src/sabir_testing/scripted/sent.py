"""What a scripted adapter was sent: one `Sent` for each request, in the order of the script's answers."""

from dataclasses import dataclass

from sabir import Message, Option, OptionResultPayload, Rendering, Settings
from sabir.authoring import one_line

SHOWN_CHARACTERS = 80
"""How much of a request's text is shown in one line."""


@dataclass(frozen=True, slots=True, repr=False)
class Sent:
    """One request: what the program gave, and what it was rendered to.

    `settings` are the call's, laid over the adapter's. A call that its RetryPolicy repeats is as many requests.
    """

    number: int
    """Which request it is, counted from 1."""
    messages: tuple[Message, ...]
    options: tuple[Option, ...]
    settings: Settings
    rendering: Rendering
    streaming: bool
    speaks_as: str = "llm"

    @property
    def user_text(self) -> str:
        """The text of the last message that the model did not say itself and that is no instruction; "" without one."""
        others = (each for each in reversed(self.messages) if each.kind == "parts")
        return next((each.text for each in others if each.policy not in ("system", self.speaks_as)), "")

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of the options offered."""
        return tuple(option.name for option in self.options)

    @property
    def results(self) -> tuple[OptionResultPayload, ...]:
        """The option results at the end of the conversation: the answers to the calls of the reply before."""
        found: list[OptionResultPayload] = []
        for message in reversed(self.messages):
            if message.result is None:
                break
            found.insert(0, message.result)
        return tuple(found)

    def __repr__(self) -> str:
        """The request in one line."""
        return f"<Sent {self}>"

    def __str__(self) -> str:
        """The request in one line: its text, how many messages it has, and what was offered."""
        count = f"{len(self.messages)} message{'s'[: len(self.messages) != 1]}"
        offered = f", options {', '.join(self.option_names)}" if self.options else ""
        answered = f", results of {', '.join(each.option_name for each in self.results)}" if self.results else ""
        return f"request {self.number}: {one_line(self.user_text, SHOWN_CHARACTERS)!r} ({count}{answered}{offered})"


def listed(sent: tuple[Sent, ...]) -> str:
    """Requests, as a failure lists them."""
    return "; ".join(map(str, sent)) or "none"
