"""ActorError, and the error codes of ERROR responses. The docstring of each code names the remedy."""

from enum import StrEnum

from sabir.authoring import encode_json, one_line
from sabir.errors import SabirError


class ErrorCode(StrEnum):
    """The reason for an ERROR response: `ActorError.code`, and the field `error_code` of the response."""

    INVALID_MESSAGE = "INVALID_MESSAGE"
    """The message or its data is invalid, for example a field is missing. Correct the message."""
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    """The receiving actor has no handler for this type of message. Correct the type or the receiver."""
    UNKNOWN_ACTOR = "UNKNOWN_ACTOR"
    """The system has no actor with the receiver's id. Correct the receiver."""
    UNKNOWN_THREAD = "UNKNOWN_THREAD"
    """No thread has this id. Correct the id."""
    UNKNOWN_AGENT = "UNKNOWN_AGENT"
    """No agent has this id, or the message does not show which agent is meant. Set `agent_id` to a known id."""
    UNKNOWN_MESSAGE = "UNKNOWN_MESSAGE"
    """RETRY names a message that did not fail at this actor, failed too long ago, or succeeded in an earlier RETRY.
    Send the request as a new message.
    """
    INVALID_STATE = "INVALID_STATE"
    """The thread's state does not allow the request, for example starting it twice. The thread is unchanged."""
    INVALID_CONFIG = "INVALID_CONFIG"
    """A model, an option, a chain or a setting is unknown or invalid, or an actor's id is in use. Correct the
    ActorSystem or the agent's configuration.
    """
    MAILBOX_FULL = "MAILBOX_FULL"
    """The actor has the maximum number of unanswered messages. Send the message again later."""
    STOPPED = "STOPPED"
    """The actor is stopped, or a stop or restart interrupted the message. If `retryable` is True, send RETRY, or the
    request as a new message.
    """
    TIMEOUT = "TIMEOUT"
    """The message was not answered within the time limit, and was interrupted. A later attempt may succeed."""
    AGENT_ERROR = "AGENT_ERROR"
    """The call of the agent's model failed, or its reply is unusable. If `retryable` is True, a later attempt may
    succeed."""
    RECORDING_FAILED = "RECORDING_FAILED"
    """The thread's journal could not be read or written: the store failed, a record is invalid, or another process runs
    the thread now.

    If `retryable` is True, a later attempt may succeed.
    """
    PHASE_PROCESSING_ERROR = "PHASE_PROCESSING_ERROR"
    """A phase failed with an error that has no other code. For use in your own actors; sabir does not send it."""
    RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"
    """The `attempt` of a RETRY exceeds its `max_attempts`. The message is not handled again."""
    FAILED = "FAILED"
    """A handler raised an unexpected exception, was cancelled, or returned an invalid value. The author of the actor
    must correct the handler.
    """


class ActorError(SabirError, ValueError):
    """Raised if a request to an actor fails, or a Chain or ActorSystem is invalid. Raise it in a handler to choose the
    code of the ERROR response.

    `code` is the reason. `message` is the text. `retryable` is True if the same request may succeed later. `details`
    are further fields of the ERROR's data; values that are not JSON are converted to text. Also a ValueError.
    """

    def __init__(self, code: ErrorCode, message: str, /, *, retryable: bool = False, **details: object) -> None:
        super().__init__(_replace_surrogates(message))
        self.code = code
        self.retryable = retryable
        self.details = {name: _as_json(value) for name, value in details.items()}


def _as_json(value: object) -> object:
    """Return the value, or its text if JSON cannot represent the value."""
    try:
        encode_json(value)
    except ValueError:
        return one_line(_replace_surrogates(str(value)))
    return value


def _replace_surrogates(text: str) -> str:
    """Return the text with `?` for each lone surrogate, which cannot be encoded."""
    return text.encode(errors="replace").decode()


class HandlerCancelled(Exception):
    """Raised if a handler, or a task that it awaits, was cancelled, but not by its actor. Answered with FAILED."""


class HandlerInvalid(Exception):
    """Raised if a handler returned a value that is not a valid response. Answered with FAILED."""
