"""The message protocol of actors: requests, responses and errors. Pure, without I/O.

    Message(type="CREATE_THREAD", data={…}) ──▶ actor ──▶ Response(type="THREAD_CREATED", message_id=…)
                                                      └─▶ ErrorResponse(type="ERROR", data={error_message, error_code})

TYPES contains the data model and the response type of each message type. Message types of your own may have any data.
In JSON, the field `envelope` names one of the three classes. No attribute, item or nested value of a message can be
changed, so a response that an actor returns twice is the same both times.
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
"""The maximum length of a message's JSON text: 4 Mi characters for a string, 4 Mi bytes for bytes."""


class MessageType(NamedTuple):
    """An entry of TYPES. `data` is the model of a request's data, `response` the type of the response ("" if it
    varies), and `response_data` the model of the response's data.
    """

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
"""Type of a request → its data and its response. The response to RETRY is the response to the original message."""
_REQUEST_DATA: Mapping[str, type[typed.Data]] = {name: each.data for name, each in TYPES.items()}
_RESPONSE_DATA: Mapping[str, type[typed.Data]] = {
    each.response: each.response_data for each in TYPES.values() if each.response
} | {"ERROR": typed.ErrorData}
AEIOUY = ("action", "experience", "intention", "observation", "understanding", "yield")
"""The names of the phases of AEIOUY_CHAIN, in order."""


def _copy_object(json_object: object) -> FrozenDict:
    """Return an immutable copy of a mapping of JSON values. Raises ValueError for anything else."""
    if not isinstance(json_object, Mapping):
        raise ValueError(f"expected a JSON object, got a value of type {type(json_object).__name__}")
    view: FrozenDict = encode_json(dict(json_object)).view()
    return view


DataObject = Annotated[
    Mapping[str, Any], PlainValidator(_copy_object), PlainSerializer(dict), WithJsonSchema({"type": "object"})
]
"""The type of a field with a JSON object, which is stored as an immutable copy."""


class _Envelope(Frozen):
    """The fields of requests and responses. Deeply immutable. `timestamp` is the time of creation, in UTC."""

    id: typed.Name = Field(default_factory=lambda: str(uuid4()))
    type: typed.Name
    data: DataObject = Field(default={}, validate_default=True)
    sender: Text | None = None
    receiver: Text | None = None
    timestamp: typed.Time = Field(default_factory=now)
    correlation_id: Text | None = None


class Message(_Envelope):
    """A request to an actor. Send it with `ActorSystem.send_message`.

    `type` is a name in TYPES or a name of your own, and `data` is a JSON object that fits the type. `sender` and
    `receiver` are ids of actors. `correlation_id` groups related messages, for example by thread. `id` and `timestamp`
    are by default a random id and the present time in UTC. Raises pydantic.ValidationError for wrong fields.
    `validate_message` and the receiving actor check whether the data fits the type.

    >>> from sabir_actors import Message
    >>> message = Message(type="HEARTBEAT", sender="client", receiver="supervisor")
    >>> message.get_response_type()
    'HEARTBEAT_RESPONSE'
    """

    envelope: Literal["request"] = "request"

    def get_response_type(self) -> str:
        """Return the type of this message's response; `<type>_RESPONSE` for a type that is not in TYPES.

        For RETRY the result is not meaningful: its response has the type of the original message's response.
        """
        known = TYPES.get(self.type)
        return (known and known.response) or f"{self.type}_RESPONSE"

    def response(self, response_data: typed.Data | Mapping[str, Any], response_type: str | None = None) -> "Response":
        """Return a response to this message with the data `response_data`, which is not checked.

        Sender and receiver are swapped, and the correlation id is the same. `response_type` is by default
        `get_response_type()`.
        """
        fields = response_data.model_dump(mode="json") if isinstance(response_data, BaseModel) else response_data
        return Response(type=response_type or self.get_response_type(), data=fields, **self._response_addresses())

    def answered_by(self, response: "Response") -> "Response":
        """Return a copy of a response, addressed as the response to this message: `message_id` is this message's id,
        sender and receiver are swapped, and the correlation id is this message's.
        """
        return response.model_copy(update=self._response_addresses())

    def error(self, error: ActorError) -> "ErrorResponse":
        """Return the ERROR response for this message, with the error's text, code, details and `retryable`."""
        return ErrorResponse(
            error_message=str(error),
            error_code=error.code.value,
            data={**error.details, "retryable": error.retryable},
            **self._response_addresses(),
        )

    def _response_addresses(self) -> dict[str, Any]:
        return {
            "sender": self.receiver,
            "receiver": self.sender,
            "correlation_id": self.correlation_id,
            "message_id": self.id,
        }


class Response(_Envelope):
    """The response to a message. `message_id` is the id of that message. Created by `Message.response`.

    Raises pydantic.ValidationError for the type ERROR; use ErrorResponse for errors.
    """

    envelope: Literal["response", "error"] = "response"
    message_id: Text | None = None

    @model_validator(mode="after")
    def _check_class(self) -> Self:
        is_error = isinstance(self, ErrorResponse)
        if (self.type == "ERROR") != is_error or (self.envelope == "error") != is_error:
            raise ValueError("a response with the type 'ERROR' or the envelope 'error' must be an ErrorResponse")
        return self

    @property
    def is_error(self) -> bool:
        """Whether the response is an ErrorResponse."""
        return isinstance(self, ErrorResponse)


class ErrorResponse(Response):
    """The response to a message that failed. `data` contains `error_message`, `error_code` and usually `retryable`, and
    further details. `Message.error` creates it for an ActorError.
    """

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
            """Create an error response. `error_message`, and `error_code` unless None, replace the fields of these
            names in `data`.
            """

    @model_validator(mode="before")
    @classmethod
    def _merge_error_fields(cls, arguments: Any) -> Any:
        """Move the arguments `error_message` and `error_code` into `data`."""
        if not isinstance(arguments, Mapping) or "error_message" not in arguments:
            return arguments
        fields = dict(arguments)
        error_fields = {name: fields.pop(name) for name in ("error_message", "error_code") if name in fields}
        data = fields.get("data", {})
        if not isinstance(data, Mapping):
            return fields
        code = data.get("error_code") if error_fields.get("error_code") is None else error_fields["error_code"]
        return {**fields, "data": {**data, **error_fields, "error_code": code}}

    @model_validator(mode="after")
    def _check_error_data(self) -> Self:
        try:
            typed.ErrorData.model_validate(self.data)
        except ValidationError as error:
            raise ValueError(f"the data of the ERROR is wrong: {describe_validation_error(error)}") from None
        return self

    @property
    def error_message(self) -> str:
        """The error's text."""
        return str(self.data["error_message"])

    @property
    def error_code(self) -> str | None:
        """The error's code, usually a value of ErrorCode; None if the error has no code."""
        return self.data.get("error_code")


AnyMessage: TypeAlias = Message | Response | ErrorResponse
_CLASSES: Mapping[str, type[Message] | type[Response]] = {
    "request": Message,
    "response": Response,
    "error": ErrorResponse,
}


def validate_message(message: AnyMessage, phases: Collection[str] = AEIOUY) -> bool:
    """Check the data of a message or response against the model of its type, and return True. Data of types that are
    not in TYPES is not checked.

    `phases` are the allowed values of `phase_type`, by default the phases of AEIOUY_CHAIN. Raises ActorError
    (INVALID_MESSAGE), which names the type and the wrong or missing field.

    >>> from sabir_actors import Message, validate_message
    >>> validate_message(Message(type="START_THREAD", data={"thread_id": "t1"}))
    True
    """
    table = _RESPONSE_DATA if isinstance(message, Response) else _REQUEST_DATA
    model = table.get(message.type)
    if model is None:
        return True
    phase = message.data.get("phase_type") if "phase_type" in model.model_fields else None
    if isinstance(phase, str) and phase not in phases:
        raise _invalid_message(f"Invalid phase_type: {phase}; {message.type} accepts {', '.join(phases)}")
    try:
        model.model_validate(message.data)
    except ValidationError as error:
        missing = [each["loc"] for each in error.errors(include_url=False) if each["type"] == "missing"]
        if not missing:
            raise _invalid_message(
                f"{message.type} message has invalid data: {describe_validation_error(error)}"
            ) from None
        path = ".".join(map(str, missing[0]))
        fields = ", ".join(message.data) or "no fields"
        raise _invalid_message(f"{message.type} message must contain {path!r} field; its data has {fields}") from None
    return True


def data_of(message: AnyMessage, model: type[typed.TypedData]) -> typed.TypedData:
    """Return a message's data as an instance of `model`. Raises pydantic.ValidationError if the data does not fit."""
    return model.model_validate(message.data)


def raise_for_error(response: Response) -> Response:
    """Return a response. For an ErrorResponse, raise its error as an ActorError, with the code FAILED if its code is
    not in ErrorCode.
    """
    if not isinstance(response, ErrorResponse):
        return response
    code = response.error_code if response.error_code in set(ErrorCode) else ErrorCode.FAILED
    details: dict[str, Any] = {k: v for k, v in response.data.items() if k not in ("error_message", "error_code")}
    retryable = bool(details.pop("retryable", False))
    raise ActorError(ErrorCode(code), response.error_message, retryable=retryable, **details)


def serialize_message(message: AnyMessage) -> str:
    """Return a message as JSON text, which `deserialize_message` reads.

    Raises ActorError (INVALID_MESSAGE) if the text is longer than 4 Mi characters.

    >>> from sabir_actors import Message, deserialize_message, serialize_message
    >>> message = Message(type="HEARTBEAT", receiver="supervisor")
    >>> deserialize_message(serialize_message(message)) == message
    True
    """
    text = message.model_dump_json()
    _check_size(text)
    return text


def deserialize_message(text: str | bytes) -> AnyMessage:
    """Return the Message, Response or ErrorResponse in a JSON text. Only an ErrorResponse's data is checked; for other
    data, use `validate_message`.

    Raises ActorError (INVALID_MESSAGE) for a text that is not such a message, has an object with two equal names, or is
    longer than 4 Mi characters (4 Mi bytes for bytes).
    """
    _check_size(text)
    try:
        fields = json.loads(text, object_pairs_hook=_reject_duplicate_names)
    except (ValueError, RecursionError) as error:
        raise _invalid_message(f"the text is not a message: it is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise _invalid_message(
            f"the text is not a message: it is a JSON value of type {type(fields).__name__}, not an object"
        )
    kind = fields.get("envelope", _guess_envelope(fields))
    model = _CLASSES.get(kind) if isinstance(kind, str) else None
    if model is None:
        envelope = repr(kind) if isinstance(kind, str) else f"a value of type {type(kind).__name__}"
        raise _invalid_message(
            f"the text is not a message: its envelope is {envelope}; expected one of {', '.join(_CLASSES)}"
        )
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise _invalid_message(f"the text is not a message: {describe_validation_error(error)}") from None


def _guess_envelope(fields: Mapping[str, Any]) -> str:
    """Return the value of `envelope` for an object without this field, by its other fields: responses have
    `message_id`.
    """
    if "message_id" not in fields:
        return "request"
    return "error" if fields.get("type") == "ERROR" else "response"


def _reject_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the (name, value) pairs of a JSON object as a dict. Raises ValueError for a duplicate name."""
    members = dict(pairs)
    if len(members) < len(pairs):
        [(name, times)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has the name {one_line(name, 100)!r} {times} times")
    return members


def _check_size(text: str | bytes) -> None:
    if len(text) > LARGEST:
        raise _invalid_message(f"the message has {len(text)} characters or bytes; at most {LARGEST} are allowed")


def _invalid_message(reason: str) -> ActorError:
    return ActorError(ErrorCode.INVALID_MESSAGE, one_line(reason))
