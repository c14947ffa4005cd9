"""The protocol: requests, responses and errors between actors; pure, without I/O.

    Message(type="CREATE_THREAD", data={…}) ──▶ actor ──▶ Response(type="THREAD_CREATED", message_id=…)
                                                      └─▶ ErrorResponse(type="ERROR", data={error_message, error_code})

TYPES names for each type its data model and the type of its response. The data of other types is open: only their
handlers know it. On the wire the field `envelope` names one of the three classes. No attribute, item or
nested value of a message can be changed: an answer that an actor keeps is the same each time that it is given.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, TypeAlias
from uuid import uuid4

from pydantic import BaseModel, Field, PlainSerializer, PlainValidator, ValidationError, WithJsonSchema, model_validator
from sabir.authoring import Frozen, FrozenDict, Text, describe_validation_error, encode_json, one_line
from sabir_session.state.codec import now

from sabir_actors import data as typed
from sabir_actors.errors import ActorError, ErrorCode

LARGEST = 4 * 2**20
"""The most characters of a message's text, or bytes if it is given as bytes."""


class MessageType(NamedTuple):
    """The data model of a type, and the type of its response."""

    data: type[typed.Data]
    response: str = ""
    response_data: type[typed.Data] = typed.Data


TYPES: Mapping[str, MessageType] = {
    "CREATE_THREAD": MessageType(typed.CreateThread, "THREAD_CREATED", typed.ThreadCreated),
    "START_THREAD": MessageType(typed.StartThread, "THREAD_STARTED", typed.ThreadStarted),
    "PAUSE_THREAD": MessageType(typed.PauseThread, "THREAD_PAUSED", typed.ThreadPaused),
    "RESUME_THREAD": MessageType(typed.ResumeThread, "THREAD_RESUMED", typed.ThreadResumed),
    "TERMINATE_THREAD": MessageType(typed.TerminateThread, "THREAD_TERMINATED", typed.ThreadTerminated),
    "GET_THREAD_STATUS": MessageType(typed.GetThreadStatus, "THREAD_STATUS", typed.ThreadStatus),
    "PROCESS_PHASE": MessageType(typed.ProcessPhase, "PHASE_PROCESSED", typed.PhaseProcessed),
    "INITIALIZE_PHASE": MessageType(typed.InitializePhase, "PHASE_INITIALIZED", typed.PhaseInitialized),
    "PREPARE_CONTEXT": MessageType(typed.PrepareContext, "CONTEXT_PREPARED", typed.ContextPrepared),
    "INVOKE_AGENT": MessageType(typed.InvokeAgent, "AGENT_INVOKED", typed.AgentInvoked),
    "PROCESS_WITH_AGENT": MessageType(typed.ProcessWithAgent, "AGENT_RESPONSE", typed.AgentResponse),
    "UPDATE_AGENT_CONFIG": MessageType(typed.UpdateAgentConfig, "AGENT_CONFIG_UPDATED", typed.AgentConfigUpdated),
    "HEARTBEAT": MessageType(typed.Heartbeat, "HEARTBEAT_RESPONSE", typed.HeartbeatResponse),
    "SUPERVISE": MessageType(typed.Supervise, "SUPERVISION_STARTED", typed.SupervisionStarted),
    "RESTART": MessageType(typed.Restart, "RESTART_COMPLETE", typed.RestartComplete),
    "STOP": MessageType(typed.Stop, "STOP_COMPLETE", typed.StopComplete),
    "ERROR": MessageType(typed.ErrorData, "ERROR_ACKNOWLEDGED", typed.ErrorAcknowledged),
    "ERROR_NOTIFICATION": MessageType(typed.ErrorNotification, "ERROR_ACKNOWLEDGED", typed.ErrorAcknowledged),
    "RETRY": MessageType(typed.Retry),
    "THREAD_RESULT": MessageType(typed.ThreadResult, "THREAD_RESULT_ACKNOWLEDGED"),
}
"""Every type of the protocol. The response to RETRY has the type of the original's response."""
_REQUEST_DATA: Mapping[str, type[typed.Data]] = {name: each.data for name, each in TYPES.items()}
_RESPONSE_DATA: Mapping[str, type[typed.Data]] = {
    each.response: each.response_data for each in TYPES.values() if each.response
} | {"ERROR": typed.ErrorData}
AEIOUY = ("action", "experience", "intention", "observation", "understanding", "yield")
"""Names of the phases of AEIOUY_CHAIN, in order."""


def _as_object(given: object) -> FrozenDict:
    """A JSON object that cannot change: a copy of what was given."""
    if not isinstance(given, Mapping):
        raise ValueError(f"expected a JSON object, got a value of type {type(given).__name__}")
    view: FrozenDict = encode_json(dict(given)).view()
    return view


DataObject = Annotated[
    Mapping[str, Any], PlainValidator(_as_object), PlainSerializer(dict), WithJsonSchema({"type": "object"})
]
"""A JSON object, held as an immutable one that equals it."""


class _Envelope(Frozen):
    """What requests and responses have in common; deeply immutable. `timestamp` is aware, in UTC."""

    id: typed.Name = Field(default_factory=lambda: str(uuid4()))
    type: typed.Name
    data: DataObject = Field(default={}, validate_default=True)
    sender: Text | None = None
    receiver: Text | None = None
    timestamp: typed.Time = Field(default_factory=now)
    correlation_id: Text | None = None


class Message(_Envelope):
    """A request from one actor, or a client, to another actor."""

    envelope: Literal["request"] = "request"

    def get_response_type(self) -> str:
        """The type of the response to it; `<type>_RESPONSE` for a type that the protocol does not name.

        The type of a response to RETRY is that of the original, which only its actor knows.
        """
        known = TYPES.get(self.type)
        return (known and known.response) or f"{self.type}_RESPONSE"

    def response(self, response_data: typed.Data | Mapping[str, Any], response_type: str | None = None) -> "Response":
        """The response to it: sender and receiver swapped, the same correlation id."""
        found = response_data.model_dump(mode="json") if isinstance(response_data, BaseModel) else response_data
        return Response(type=response_type or self.get_response_type(), data=found, **self._answering())

    def answered_by(self, response: "Response") -> "Response":
        """Return a response with the envelope of the answer to this message, whatever its own envelope says."""
        return response.model_copy(update=self._answering())

    def error(self, error: ActorError) -> "ErrorResponse":
        """The ERROR that says why it failed, and whether it may succeed later."""
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
    """The answer to a message; `message_id` is the id of that message."""

    envelope: Literal["response", "error"] = "response"
    message_id: Text | None = None

    @model_validator(mode="after")
    def _is_of_its_class(self) -> Self:
        is_error = isinstance(self, ErrorResponse)
        if (self.type == "ERROR") != is_error or (self.envelope == "error") != is_error:
            raise ValueError("what answers with type or envelope 'error' is an ErrorResponse; make one")
        return self

    @property
    def is_error(self) -> bool:
        """Whether it reports a failure."""
        return isinstance(self, ErrorResponse)


class ErrorResponse(Response):
    """The answer to a failed message: `data` holds error_message, error_code and details."""

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
            """An error; `error_message` and `error_code` override the fields in `data`."""

    @model_validator(mode="before")
    @classmethod
    def _merge(cls, given: Any) -> Any:
        """`error_message` and `error_code` may be given beside `data`; they override its fields."""
        if not isinstance(given, Mapping) or "error_message" not in given:
            return given
        fields = dict(given)
        told = {name: fields.pop(name) for name in ("error_message", "error_code") if name in fields}
        data = fields.get("data", {})
        if not isinstance(data, Mapping):
            return fields
        code = data.get("error_code") if told.get("error_code") is None else told["error_code"]
        return {**fields, "data": {**data, **told, "error_code": code}}

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        try:
            typed.ErrorData.model_validate(self.data)
        except ValidationError as error:
            raise ValueError(f"its data is wrong: {describe_validation_error(error)}") from None
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
_CLASSES: Mapping[str, type[Message] | type[Response]] = {
    "request": Message,
    "response": Response,
    "error": ErrorResponse,
}


def validate_message(message: AnyMessage, phases: Collection[str] = AEIOUY) -> bool:
    """True for a valid message; else raises ActorError, a ValueError, which names the type and the field.

    `phases` are the phase types that are allowed: those of the thread's chain.
    """
    table = _RESPONSE_DATA if isinstance(message, Response) else _REQUEST_DATA
    model = table.get(message.type)
    if model is None:
        return True
    phase = message.data.get("phase_type") if "phase_type" in model.model_fields else None
    if isinstance(phase, str) and phase not in phases:
        raise _invalid(f"Invalid phase_type: {phase}; {message.type} takes one of {', '.join(phases)}")
    try:
        model.model_validate(message.data)
    except ValidationError as error:
        missing = [each["loc"] for each in error.errors(include_url=False) if each["type"] == "missing"]
        if not missing:
            raise _invalid(
                f"{message.type} message has data that is wrong: {describe_validation_error(error)}"
            ) from None
        place = ".".join(map(str, missing[0]))
        held = ", ".join(message.data) or "nothing"
        raise _invalid(f"{message.type} message must contain {place!r} field; its data has {held}") from None
    return True


def data_of(message: AnyMessage, model: type[typed.TypedData]) -> typed.TypedData:
    """The data of a message that was validated, as its model."""
    return model.model_validate(message.data)


def raised(response: Response) -> Response:
    """The response; an ERROR is raised as its ActorError."""
    if not isinstance(response, ErrorResponse):
        return response
    code = response.error_code if response.error_code in set(ErrorCode) else ErrorCode.FAILED
    said: dict[str, Any] = {k: v for k, v in response.data.items() if k not in ("error_message", "error_code")}
    retryable = bool(said.pop("retryable", False))
    raise ActorError(ErrorCode(code), response.error_message, retryable=retryable, **said)


def serialize_message(message: AnyMessage) -> str:
    """A message as JSON text; raises ActorError for a message too large to be read again."""
    text = message.model_dump_json()
    _check_size(text)
    return text


def deserialize_message(text: str | bytes) -> AnyMessage:
    """The message in a text, of its own class; raises ActorError for any other text."""
    _check_size(text)
    try:
        found = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _invalid(f"the text is not a message: it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _invalid(f"the text is not a message: it is a JSON value of type {type(found).__name__}, not an object")
    kind = found.get("envelope", _guessed(found))
    model = _CLASSES.get(kind) if isinstance(kind, str) else None
    if model is None:
        shown = repr(kind) if isinstance(kind, str) else f"a value of type {type(kind).__name__}"
        raise _invalid(f"the text is not a message: its envelope is {shown}; expected one of {', '.join(_CLASSES)}")
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise _invalid(f"the text is not a message: {describe_validation_error(error)}") from None


def _guessed(found: Mapping[str, Any]) -> str:
    """The class of an envelope without the field `envelope`: responses have `message_id`."""
    if "message_id" not in found:
        return "request"
    return "error" if found.get("type") == "ERROR" else "response"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; raises ValueError for a duplicate name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        [(name, times)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has the name {one_line(name, 100)!r} {times} times")
    return found


def _check_size(text: str | bytes) -> None:
    if len(text) > LARGEST:
        raise _invalid(f"the text of the message is of size {len(text)}; it may be {LARGEST}")


def _invalid(reason: str) -> ActorError:
    return ActorError(ErrorCode.INVALID_MESSAGE, one_line(reason))
