"""The protocol: requests, responses and errors between actors; pure, without I/O (CH-01 … CH-12).

    Message(type="CREATE_THREAD", data={…}) ──▶ actor ──▶ Response(type="THREAD_CREATED", message_id=…)
                                                      └─▶ ErrorResponse(type="ERROR", data={error_message, error_code})

TYPES says for each type what its data holds and what answers it. The data of another type is open: whoever handles it
knows it. On the wire an envelope says by `envelope` which of the three classes it is (D-22).
"""

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, TypeAlias
from uuid import uuid4

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator
from sabir.arguments import describe
from sabir.errors import one_line

from sabir_actors import data as typed
from sabir_actors.errors import ActorError, ErrorCode


def now() -> datetime:
    """The time of now, aware, in UTC (D-19)."""
    return datetime.now(UTC)


Time = Annotated[AwareDatetime, AfterValidator(lambda time: time.astimezone(UTC))]
"""An aware time, in UTC."""
LARGEST = 4 * 2**20
"""Characters that a serialised message may have."""


class MessageType(NamedTuple):
    """What the data of a type holds, and what answers it."""

    data: type[typed.Data]
    response: str = ""
    response_data: type[typed.Data] = typed.Data


TYPES: Mapping[str, MessageType] = {
    "CREATE_THREAD": MessageType(typed.CreateThread, "THREAD_CREATED", typed.ThreadCreated),
    "START_THREAD": MessageType(typed.OfThread, "THREAD_STARTED", typed.ThreadStarted),
    "PAUSE_THREAD": MessageType(typed.OfThread, "THREAD_PAUSED", typed.ThreadPaused),
    "RESUME_THREAD": MessageType(typed.OfThread, "THREAD_RESUMED", typed.ThreadResumed),
    "TERMINATE_THREAD": MessageType(typed.TerminateThread, "THREAD_TERMINATED", typed.ThreadTerminated),
    "GET_THREAD_STATUS": MessageType(typed.OfThread, "THREAD_STATUS", typed.ThreadStatus),
    "PROCESS_PHASE": MessageType(typed.ProcessPhase, "PHASE_PROCESSED", typed.PhaseProcessed),
    "INITIALIZE_PHASE": MessageType(typed.InitializePhase, "PHASE_INITIALIZED", typed.PhaseInitialized),
    "PREPARE_CONTEXT": MessageType(typed.PrepareContext, "CONTEXT_PREPARED", typed.ContextPrepared),
    "INVOKE_AGENT": MessageType(typed.InvokeAgent, "AGENT_INVOKED", typed.AgentInvoked),
    "PROCESS_WITH_AGENT": MessageType(typed.ProcessWithAgent, "AGENT_RESPONSE", typed.AgentResponse),
    "UPDATE_AGENT_CONFIG": MessageType(typed.UpdateAgentConfig, "AGENT_CONFIG_UPDATED", typed.AgentConfigUpdated),
    "HEARTBEAT": MessageType(typed.Heartbeat, "HEARTBEAT_RESPONSE", typed.HeartbeatResponse),
    "SUPERVISE": MessageType(typed.OfActor, "SUPERVISION_STARTED", typed.SupervisionStarted),
    "RESTART": MessageType(typed.ActorReason, "RESTART_COMPLETE", typed.RestartComplete),
    "STOP": MessageType(typed.ActorReason, "STOP_COMPLETE", typed.StopComplete),
    "ERROR": MessageType(typed.ErrorData, "ERROR_ACKNOWLEDGED", typed.ErrorAcknowledged),
    "ERROR_NOTIFICATION": MessageType(typed.ErrorNotification, "ERROR_ACKNOWLEDGED", typed.ErrorAcknowledged),
    "RETRY": MessageType(typed.Retry),
    "THREAD_RESULT": MessageType(typed.ThreadResult, "THREAD_RESULT_ACKNOWLEDGED"),
}
"""Every type of the protocol. What answers RETRY is what answers the original."""
_RESPONSE_DATA: Mapping[str, type[typed.Data]] = {
    each.response: each.response_data for each in TYPES.values() if each.response
} | {"ERROR": typed.ErrorData}
AEIOUY = ("action", "experience", "intention", "observation", "understanding", "yield")
"""The phases of the document, in order."""


class _Envelope(BaseModel):
    """What requests and responses have in common; immutable. `timestamp` is aware, in UTC (CH-02)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(default_factory=lambda: str(uuid4()), min_length=1, max_length=200)
    type: str = Field(min_length=1, max_length=200)
    data: dict[str, Any] = Field(default_factory=dict)
    sender: str | None = None
    receiver: str | None = None
    timestamp: Time = Field(default_factory=now)
    correlation_id: str | None = None


class Message(_Envelope):
    """A request from one actor, or a client, to another actor (CH-01)."""

    envelope: Literal["request"] = "request"

    def get_response_type(self) -> str:
        """The type of the response to it; `<type>_RESPONSE` for a type that the protocol does not name (CH-03)."""
        known = TYPES.get(self.type)
        return (known and known.response) or f"{self.type}_RESPONSE"

    def response(self, response_data: typed.Data | Mapping[str, Any], response_type: str | None = None) -> "Response":
        """The response to it: sender and receiver swapped, the same correlation id (CH-05)."""
        found = response_data.model_dump(mode="json") if isinstance(response_data, BaseModel) else dict(response_data)
        return Response(type=response_type or self.get_response_type(), data=found, **self._answering())

    def error(self, error: ActorError) -> "ErrorResponse":
        """The ERROR that says why it was not done, and whether it may be done later."""
        return ErrorResponse(
            error_message=str(error),
            error_code=error.code.value,
            data={**error.details, "retryable": error.retryable},
            **self._answering(),
        )

    def _answering(self) -> dict[str, Any]:
        return {
            "sender": self.receiver,
            "receiver": self.sender,
            "correlation_id": self.correlation_id,
            "message_id": self.id,
        }


class Response(_Envelope):
    """What answers a message; `message_id` is the id of that (CH-04)."""

    envelope: Literal["response", "error"] = "response"
    message_id: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether it says that the message was not done."""
        return isinstance(self, ErrorResponse)


class ErrorResponse(Response):
    """What answers a message that was not done: `data` holds error_message, error_code and details (CH-06, D-21)."""

    envelope: Literal["error"] = "error"
    type: Literal["ERROR"] = "ERROR"

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            error_message: str,
            error_code: str | None = None,
            message_id: str | None = None,
            data: Mapping[str, Any] = ...,
            **envelope: Any,  # the fields of every envelope
        ) -> None:
            """An error; `error_message` and `error_code` win over what `data` says."""

    @model_validator(mode="before")
    @classmethod
    def _merge(cls, given: Any) -> Any:
        """`error_message` and `error_code` may be given beside `data`; they win over what it says."""
        if not isinstance(given, dict) or "error_message" not in given:
            return given
        fields = dict(given)
        said = {"error_message": fields.pop("error_message"), "error_code": fields.pop("error_code", None)}
        return {**fields, "data": {**(fields.get("data") or {}), **said}}

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        typed.ErrorData.model_validate(self.data)
        return self

    @property
    def error_message(self) -> str:
        """Why, in one line."""
        return str(self.data["error_message"])

    @property
    def error_code(self) -> str | None:
        """Why, as a code of ErrorCode."""
        return self.data.get("error_code")


AnyMessage: TypeAlias = Message | Response | ErrorResponse
_CLASSES: Mapping[str, type[_Envelope]] = {"request": Message, "response": Response, "error": ErrorResponse}


def validate_message(message: AnyMessage, phases: Collection[str] = AEIOUY) -> bool:
    """True for a valid message (CH-09); ActorError, a ValueError, that names the type, the field and the value.

    `phases` are the phase types that are allowed: those of the thread's chain.
    """
    table = _RESPONSE_DATA if isinstance(message, Response) else {name: each.data for name, each in TYPES.items()}
    model = table.get(message.type)
    if model is None:
        return True
    try:
        found = model.model_validate(message.data)
    except ValidationError as error:
        missing = [each["loc"][0] for each in error.errors(include_url=False) if each["type"] == "missing"]
        if missing:
            reason = f"must contain {str(missing[0])!r} field; its data has {', '.join(message.data) or 'nothing'}"
        else:
            reason = f"has data that is wrong: {describe(error)}"
        raise ActorError(ErrorCode.INVALID_MESSAGE, one_line(f"{message.type} message {reason}")) from None
    phase = getattr(found, "phase_type", None)
    if phase is not None and phase not in phases:
        raise ActorError(
            ErrorCode.INVALID_MESSAGE,
            one_line(f"Invalid phase_type: {phase}; {message.type} takes one of {', '.join(phases)}"),
        )
    return True


def data_of(message: AnyMessage, model: type[typed.TypedData]) -> typed.TypedData:
    """The data of a message that was validated, as its model."""
    return model.model_validate(message.data)


def serialize_message(message: AnyMessage) -> str:
    """A message as JSON text."""
    return message.model_dump_json()


def deserialize_message(text: str | bytes) -> AnyMessage:
    """The message that a text describes, of its own class (CH-07); ActorError for a text that describes none."""
    if len(text) > LARGEST:
        raise _invalid(f"it has {len(text)} characters; a message may have {LARGEST}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _invalid(f"it is a JSON value of type {type(found).__name__}, not an object")
    kind = found.get("envelope") or _guessed(found)
    model = _CLASSES.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise _invalid(f"its envelope is {kind!a}; expected one of {', '.join(_CLASSES)}")
    try:
        made: Any = model.model_validate_json(text)
    except ValidationError as error:
        raise _invalid(describe(error)) from None
    return made  # type: ignore[no-any-return]


def _guessed(found: Mapping[str, Any]) -> str:
    """Which of the three an envelope is that does not say so, as the document's own have none."""
    if found.get("message_id") is None and found.get("type") != "ERROR":
        return "request"
    return "error" if found.get("type") == "ERROR" else "response"


def _invalid(reason: str) -> ActorError:
    return ActorError(ErrorCode.INVALID_MESSAGE, one_line(f"the text is no message: {reason}"))
