"""The progress events of an evaluation, for its watcher.

RequestStarted ─ TextArrived … ─ ReplyArrived ─ CallStarted ─ CallProgress … ─ CallEnded ─ RequestStarted ─ …

Replies are streamed if there is a watcher, else requested whole.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sabir import Message, Reply
from sabir.authoring import OptionCall

logger = logging.getLogger("sabir")


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A provider is about to be asked; `turn` counts from 1."""

    turn: int


@dataclass(frozen=True, slots=True)
class TextArrived:
    """Some characters of the reply that is coming."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyArrived:
    """A reply is whole, and recorded."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class CallStarted:
    """An option is about to run; `is_resume` if it may have begun in an earlier process."""

    call: OptionCall
    is_resume: bool


@dataclass(frozen=True, slots=True)
class CallProgress:
    """The progress that an option reports: `done` of `total`, None if it is not known."""

    call: OptionCall
    done: float
    total: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has its result, and the result is recorded."""

    call: OptionCall
    result: Message


Event: TypeAlias = RequestStarted | TextArrived | ReplyArrived | CallStarted | CallProgress | CallEnded
Watch: TypeAlias = Callable[[Event], None]


def tell(watch: Watch | None, event: Event) -> None:
    """Report an event to the watcher. A watcher's error is logged: a broken display stops no evaluation."""
    if watch is None:
        return
    try:
        watch(event)
    except Exception as error:
        logger.warning("watch failed at %s: %s: %s", type(event).__name__, type(error).__name__, error)
