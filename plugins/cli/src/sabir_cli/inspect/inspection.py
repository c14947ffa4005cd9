"""The conversation to show: its messages in order, and what is known of each of them besides its content."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import sabir
from sabir.authoring import installed_hooks

NO_SETTINGS = sabir.Settings()


@dataclass(frozen=True)
class ReplyFigures:
    """The figures of one reply. They are shown with the reply's last message.

    `cost` is in US dollars, or None if it is not known. `shared` says what a prompt cache could read, or is "".
    """

    usage: sabir.Usage
    finish_reason: str = ""
    cost: Decimal | None = None
    shared: str = ""


@dataclass(frozen=True)
class InspectedMessage:
    """One message, with the time at which it was recorded, the figures of the reply that it ends, losses that were
    reported for it, and a heading that comes before it. Each of these is None or empty if it is not known.
    """

    message: sabir.Message
    when: datetime | None = None
    figures: ReplyFigures | None = None
    losses: tuple[sabir.Loss, ...] = ()
    heading: str = ""


@dataclass(frozen=True)
class Inspection:
    """A conversation to show. `title` is its name and `source` says where it comes from. `options` and `settings` are
    those of a stored request; a history and a saved conversation have none. `notes` are lines about the whole.
    """

    title: str
    source: str
    entries: tuple[InspectedMessage, ...]
    options: tuple[sabir.Option, ...] = ()
    settings: sabir.Settings = NO_SETTINGS
    notes: tuple[str, ...] = ()

    @property
    def messages(self) -> list[sabir.Message]:
        """The messages in order."""
        return [entry.message for entry in self.entries]


def inspect_reply(reply: sabir.Reply, when: datetime | None = None) -> list[InspectedMessage]:
    """Return the messages of a reply. The last one has the reply's figures and losses."""
    figures = ReplyFigures(reply.usage, reply.finish_reason, installed_hooks().cost(reply))
    entries = [InspectedMessage(message, when) for message in reply.messages]
    if entries:
        entries[-1] = InspectedMessage(reply.messages[-1], when, figures, reply.losses)
    return entries


def plain_entries(messages: Sequence[sabir.Message]) -> tuple[InspectedMessage, ...]:
    """Return messages of which nothing else is known."""
    return tuple(map(InspectedMessage, messages))
