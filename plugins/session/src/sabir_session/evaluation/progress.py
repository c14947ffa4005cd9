"""What an evaluation tells whoever watches it.

RequestStarted ─ TextArrived … ─ ReplyArrived ─ CallStarted ─ CallProgress … ─ CallEnded ─ RequestStarted ─ …

Replies are streamed where somebody watches, and else asked for whole.
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
    """An option is about to run; `is_resume` where it may have begun in an earlier process."""

    call: OptionCall
    is_resume: bool


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far an option is, as it says itself: `done` of `total`, None where it cannot say."""

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
    """Tell whoever watches. A watcher that fails is logged: a broken display stops no evaluation."""
    if watch is None:
        return
    try:
        watch(event)
    except Exception as error:
        logger.warning("watch failed at %s: %s: %s", type(event).__name__, type(error).__name__, error)
