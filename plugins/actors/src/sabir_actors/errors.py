"""The errors of this package, and the codes of its ERROR responses.

The text of each code names the remedy: another message, a later attempt, another configuration, or none.
"""

from enum import StrEnum

from sabir.authoring import encode_json, one_line
from sabir.errors import SabirError


class ErrorCode(StrEnum):
    """Why a message was not done."""

    INVALID_MESSAGE = "INVALID_MESSAGE"
    """It is not a message of the protocol, or its data lacks a field; the sender must correct it."""
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    """The actor handles no message of that type; the sender must correct it."""
    UNKNOWN_ACTOR = "UNKNOWN_ACTOR"
    """No actor has the receiver's id; the sender must correct it."""
    UNKNOWN_THREAD = "UNKNOWN_THREAD"
    """No thread has that id; the sender must correct it."""
    UNKNOWN_AGENT = "UNKNOWN_AGENT"
    """No agent has that id; the sender must correct it."""
    UNKNOWN_MESSAGE = "UNKNOWN_MESSAGE"
    """RETRY names a message that did not fail at that actor; the sender must send the original again."""
    INVALID_STATE = "INVALID_STATE"
    """The thread's state does not allow it; the state is unchanged."""
    INVALID_CONFIG = "INVALID_CONFIG"
    """A model, an option, a chain or a setting is unknown; the configuration of the system or the agent must be
    corrected."""
    MAILBOX_FULL = "MAILBOX_FULL"
    """The mailbox is full; send the message again later."""
    STOPPED = "STOPPED"
    """The actor was stopped; send to another actor."""
    TIMEOUT = "TIMEOUT"
    """The message was not finished in its time; a later attempt may help."""
    AGENT_ERROR = "AGENT_ERROR"
    """The agent's model could not be asked, or gave an unusable answer; `retryable` says whether a later attempt may
    help."""
    RECORDING_FAILED = "RECORDING_FAILED"
    """The thread's journal did not take a record: another process wrote to it, or the store failed."""
    PHASE_PROCESSING_ERROR = "PHASE_PROCESSING_ERROR"
    """A phase failed, for a reason that its actor does not name by a code."""
    RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"
    """A message failed in all its allowed attempts; there is no remedy."""
    FAILED = "FAILED"
    """A handler raised an unexpected exception; its author must correct it."""


class ActorError(SabirError, ValueError):
    """A message failed; `code` and `details` go into its ERROR.

    `retryable` says whether the same message may succeed later. A detail that JSON cannot hold is kept as its text.
    """

    def __init__(self, code: ErrorCode, message: str, /, *, retryable: bool = False, **details: object) -> None:
        super().__init__(_unicode(message))
        self.code = code
        self.retryable = retryable
        self.details = {name: _as_json(value) for name, value in details.items()}


def _as_json(value: object) -> object:
    """The value, or its text if JSON cannot hold it: an error must reach the sender of the message."""
    try:
        encode_json(value)
    except ValueError:
        return one_line(_unicode(str(value)))
    return value


def _unicode(text: str) -> str:
    """The text with a `?` for each lone surrogate, which no wire can carry."""
    return text.encode(errors="replace").decode()
