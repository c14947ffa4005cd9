"""What this package raises, and the codes of its ERROR responses.

The text of each code says what helps: another message, a later attempt, another configuration, or nothing.
"""

from enum import StrEnum

from sabir.authoring import encode_json, one_line
from sabir.errors import SabirError


class ErrorCode(StrEnum):
    """Why a message was not done."""

    INVALID_MESSAGE = "INVALID_MESSAGE"
    """It is no message of the protocol, or its data lacks a field; the sender mends it."""
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    """The actor handles no message of that type; the sender mends it."""
    UNKNOWN_ACTOR = "UNKNOWN_ACTOR"
    """No actor has the receiver's id; the sender mends it."""
    UNKNOWN_THREAD = "UNKNOWN_THREAD"
    """No thread has that id; the sender mends it."""
    UNKNOWN_AGENT = "UNKNOWN_AGENT"
    """No agent has that id; the sender mends it."""
    UNKNOWN_MESSAGE = "UNKNOWN_MESSAGE"
    """RETRY names a message that did not fail at that actor; the sender sends the original anew."""
    INVALID_STATE = "INVALID_STATE"
    """The thread's state does not allow it; the state is unchanged."""
    INVALID_CONFIG = "INVALID_CONFIG"
    """A model, an option, a chain or a setting is unknown; whoever configures the system or the agent mends it."""
    MAILBOX_FULL = "MAILBOX_FULL"
    """As many messages wait as the mailbox holds; time mends it: send it again later."""
    STOPPED = "STOPPED"
    """The actor was stopped; the sender sends to another."""
    TIMEOUT = "TIMEOUT"
    """The message was not done in its time; time may mend it."""
    AGENT_ERROR = "AGENT_ERROR"
    """The agent's model could not be asked, or answered with what cannot be used; `retryable` says if time mends it."""
    RECORDING_FAILED = "RECORDING_FAILED"
    """The thread's journal did not take a record: another wrote to it, or the store failed."""
    PHASE_PROCESSING_ERROR = "PHASE_PROCESSING_ERROR"
    """A phase failed, for a reason that its actor does not name by a code."""
    RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"
    """A message failed as often as it may be tried; nobody mends it."""
    FAILED = "FAILED"
    """A handler raised what it should not have; its author mends it."""


class ActorError(SabirError, ValueError):
    """A message cannot be done; `code` goes into the ERROR that says so, `details` beside it.

    `retryable` says whether the same message may be done later. A detail that JSON cannot hold is kept as its text.
    """

    def __init__(self, code: ErrorCode, message: str, /, *, retryable: bool = False, **details: object) -> None:
        super().__init__(_unicode(message))
        self.code = code
        self.retryable = retryable
        self.details = {name: _as_json(value) for name, value in details.items()}


def _as_json(value: object) -> object:
    """The value, or its text where JSON cannot hold it: an error must reach whoever sent the message."""
    try:
        encode_json(value)
    except ValueError:
        return one_line(_unicode(str(value)))
    return value


def _unicode(text: str) -> str:
    """The text with a `?` for each lone surrogate, which no wire can carry."""
    return text.encode(errors="replace").decode()
