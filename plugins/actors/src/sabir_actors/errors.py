"""What this package raises, and the codes of its ERROR responses.

Each code says who can mend it: the sender of a message, time, or nobody.
"""

from enum import StrEnum

from sabir.errors import SabirError


class ErrorCode(StrEnum):
    """Why a message was not done."""

    INVALID_MESSAGE = "INVALID_MESSAGE"
    """It is no message of the protocol, or its data lacks a field."""
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    """The actor handles no message of that type."""
    UNKNOWN_ACTOR = "UNKNOWN_ACTOR"
    UNKNOWN_THREAD = "UNKNOWN_THREAD"
    UNKNOWN_AGENT = "UNKNOWN_AGENT"
    UNKNOWN_MESSAGE = "UNKNOWN_MESSAGE"
    """RETRY names a message that the actor does not know."""
    INVALID_STATE = "INVALID_STATE"
    """The thread's state does not allow it; the state is unchanged."""
    INVALID_CONFIG = "INVALID_CONFIG"
    """A model, an option or a setting of an agent is unknown."""
    MAILBOX_FULL = "MAILBOX_FULL"
    """As many messages wait as the mailbox holds; send it again later."""
    STOPPED = "STOPPED"
    """The actor was stopped."""
    TIMEOUT = "TIMEOUT"
    """The message was not done in its time."""
    AGENT_ERROR = "AGENT_ERROR"
    """The agent's model could not be asked, or answered with what cannot be used."""
    RECORDING_FAILED = "RECORDING_FAILED"
    """The thread's journal did not take a record: another wrote to it, or the store failed."""
    PHASE_PROCESSING_ERROR = "PHASE_PROCESSING_ERROR"
    RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"
    FAILED = "FAILED"
    """A handler raised what it should not have."""


class ActorError(SabirError, ValueError):
    """A message cannot be done; `code` goes into the ERROR that says so, `details` beside it.

    `retryable` says whether the same message may be done later.
    """

    def __init__(self, code: ErrorCode, message: str, *, retryable: bool = False, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.details = details
