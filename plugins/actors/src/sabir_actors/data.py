"""The data of each message type.

Fields that a type does not define are kept: a newer sender may have more. Times are aware, in UTC; `processing_time`
and `uptime` are seconds. A model is a copy of a message's data: changing it does not change the message.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from sabir import Settings, SettingsInvalid
from sabir_session.state.codec import UTCDatetime

Time: TypeAlias = UTCDatetime
"""A time with its zone, held in UTC; ISO 8601 on the wire."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""An id or a name: 1 … 200 characters."""
JSONObject: TypeAlias = dict[str, Any]
"""Any JSON object."""
ThreadState: TypeAlias = Literal["created", "processing", "paused", "completed", "failed", "terminated"]
"""The status of a thread; the last three are final."""
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A number of seconds, 0 or more."""

TypedData = TypeVar("TypedData", bound="Data")


class Data(BaseModel):
    """The data of one type of message."""

    model_config = ConfigDict(extra="allow", frozen=True)


# Threads


class CreateThread(Data):
    """Asks to make a thread without starting it. `chain` names the phases that it goes through."""

    user_id: Name
    initial_input: str
    metadata: JSONObject = {}
    chain: Name | None = None


class OfThread(Data):
    """A request about one thread."""

    thread_id: Name


class StartThread(OfThread):
    """Asks to start a created thread."""


class PauseThread(OfThread):
    """Asks to start no further phase of a thread; the running phase ends normally."""


class ResumeThread(OfThread):
    """Asks to continue a paused thread at its phase."""


class GetThreadStatus(OfThread):
    """Asks for the status of a thread."""


class TerminateThread(OfThread):
    """Asks to end a thread."""

    reason: str = ""


class ThreadStatus(OfThread):
    """The status of a thread. Completed and remaining phases together are those of its chain, in order.

    `result` is its result; None before its end.
    """

    status: ThreadState
    current_phase: str | None = None
    created_at: Time
    updated_at: Time
    phases_completed: list[str]
    phases_remaining: list[str]
    result: "ThreadResult | None" = None


class ThreadCreated(OfThread):
    """The thread was created."""

    status: ThreadState


class ThreadStarted(ThreadCreated):
    """The thread was started; the answer does not wait for its phases."""

    started_at: Time


class ThreadPaused(ThreadCreated):
    """No further phase starts."""

    paused_at: Time
    current_phase: str | None = None


class ThreadResumed(ThreadCreated):
    """The thread continues at that phase."""

    resumed_at: Time
    current_phase: str | None = None


class ThreadTerminated(ThreadCreated):
    """No later phase runs."""

    terminated_at: Time
    reason: str = ""


class ThreadResult(ThreadCreated):
    """The message to the client at the end: the last phase's output, or why the thread failed."""

    output: JSONObject | None = None
    error_message: str | None = None
    error_code: str | None = None


# Phases


class OfPhase(Data):
    """A request about one phase."""

    phase_type: Name


class PhaseOutput(Data):
    """The output of a phase. `confidence` is its model's own estimate (0 … 1), None if there is none."""

    response: str
    next_phase: str | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)


class ProcessPhase(OfPhase):
    """Asks to run a phase of a thread."""

    thread_id: Name
    input: str
    context: JSONObject = {}


class PhaseProcessed(OfPhase):
    """The phase ran. `usage` are the tokens of its agent's run, and the model that was asked."""

    thread_id: Name
    output: PhaseOutput
    processing_time: Seconds
    usage: JSONObject = {}


SETTINGS: frozenset[str] = frozenset(field.alias or name for name, field in Settings.model_fields.items()) - {
    "response_format"
}
"""Names of the settings that a configuration may hold. `response_format` is the output type of the agent's phase."""
_SAME = "max_output_tokens", "max_tokens"
"""The name of a setting in `sabir.Settings`, and in a configuration."""


class _Configured(Data):
    """The fields of a configuration; further fields are settings by their names in `sabir.Settings`."""

    temperature: float | None = None
    max_tokens: int | None = Field(default=None, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, given: object) -> object:
        """Store `max_output_tokens` as `max_tokens`, so that the latest change of either holds."""
        setting, name = _SAME
        if not isinstance(given, Mapping) or setting not in given:
            return given
        if name in given and given[name] != given[setting]:
            raise ValueError(f"{setting} and {name} name the same setting; give one of them")
        fields = {key: value for key, value in given.items() if key != setting}
        return {**fields, name: given[setting]}

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        unknown = sorted(set(self.model_extra or {}) - SETTINGS)
        if unknown:
            known = ", ".join([*type(self).model_fields, *sorted(SETTINGS - set(type(self).model_fields) - {_SAME[0]})])
            raise ValueError(f"a configuration has no field {unknown[0]!r}; its fields are {known}")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are set, by their names in `sabir.Settings`."""
        named = {"temperature": self.temperature, _SAME[0]: self.max_tokens, **(self.model_extra or {})}
        return {name: value for name, value in named.items() if value is not None}


class AgentConfig(_Configured):
    """An agent's configuration: `model` as `sabir.adapter` takes it, `tools` the names of its options.

    It may hold any other setting of `sabir.Settings` except `response_format`; an unknown field is refused.
    """

    model: Name
    system_prompt: str | None = None
    tools: list[Name] = []


class AgentChange(_Configured):
    """The changed fields of an agent's configuration. A setting or system prompt of null is unset.

    It may hold any other setting of `sabir.Settings` except `response_format`; an unknown field is refused.
    """

    model: Name = ""
    system_prompt: str | None = None
    tools: list[Name] = []

    @classmethod
    def stored(cls, fields: Mapping[str, Any]) -> Self:
        """Read a change from a journal; drop fields that its writer stored although they had no effect."""
        known = {name: value for name, value in fields.items() if name in cls.model_fields or name in SETTINGS}
        known = {name: value for name, value in known.items() if value is not None or name not in ("model", "tools")}
        try:
            change = cls.model_validate(known)
            Settings(**change.settings)
            return change
        except (ValidationError, SettingsInvalid):
            return cls.model_validate({name: value for name, value in known.items() if name in cls.model_fields})


class InitializePhase(OfPhase):
    """Asks to prepare a phase with an agent of that configuration."""

    config: AgentConfig


class PhaseInitialized(OfPhase):
    """The phase is ready."""

    status: Literal["ready"] = "ready"
    agent_id: Name


class Turn(Data):
    """One message of a conversation, with its role."""

    role: Literal["system", "user", "assistant"]
    content: str


class PrepareContext(OfPhase):
    """Asks to make the context of a phase from the earlier phases."""

    thread_id: Name
    previous_phase_output: JSONObject | None = None
    conversation_history: list[Turn] = []


class PreparedContext(Data):
    """The context for a phase's agent: the phase's own system message first."""

    messages: list[Turn]
    tools: list[str] = []
    metadata: JSONObject = {}


class ContextPrepared(OfPhase):
    """The context is made."""

    thread_id: Name
    context: PreparedContext


# Agents


class ProcessWithAgent(Data):
    """Asks an agent to answer; without an id, the agent of the phase that sends it, or else the actor's only agent."""

    input: str
    context: JSONObject = {}
    agent_id: Name | None = None
    stream: bool = False


class InvokeAgent(ProcessWithAgent):
    """Asks a named agent to answer."""

    agent_id: Name


class ToolCall(Data):
    """One option call of the agent, and its result."""

    name: str
    arguments: JSONObject
    result: Any = None


class AgentResult(Data):
    """An agent's answer."""

    response: str
    confidence: float | None = Field(default=None, ge=0, le=1)
    tool_calls: list[ToolCall] = []


class AgentResponse(Data):
    """The agent answered."""

    result: AgentResult
    processing_time: Seconds


class AgentInvoked(AgentResponse):
    """The named agent answered."""

    agent_id: Name


class UpdateAgentConfig(Data):
    """Asks to change an agent's configuration from its next run on."""

    agent_id: Name
    config: AgentChange


class AgentConfigUpdated(Data):
    """The agent has this configuration from its next run on."""

    agent_id: Name
    status: Literal["updated"] = "updated"


# The system


class Heartbeat(Data):
    """Asks whether an actor is alive."""


class HeartbeatResponse(Data):
    """The actor is alive. `load` is the used share of its mailbox, 0 … 1."""

    status: Literal["alive"] = "alive"
    uptime: Seconds
    load: float = Field(ge=0)


class OfActor(Data):
    """A request about one actor."""

    actor_id: Name


class ActorReason(OfActor):
    """A request about one actor, and why."""

    reason: str = ""


class Supervise(OfActor):
    """Asks a supervisor to watch an actor."""


class Restart(ActorReason):
    """Asks an actor to forget volatile state, and continue under its id."""


class Stop(ActorReason):
    """Asks an actor to take no more messages."""


class SupervisionStarted(OfActor):
    """The supervisor watches the actor."""

    status: Literal["supervised"] = "supervised"


class RestartComplete(OfActor):
    """The actor works again, under its id."""

    status: Literal["restarted"] = "restarted"
    restarted_at: Time


class StopComplete(OfActor):
    """The actor takes no more messages."""

    status: Literal["stopped"] = "stopped"
    stopped_at: Time


class ErrorData(Data):
    """Why a message was not done."""

    error_message: str
    error_code: str | None = None


class ErrorNotification(ErrorData):
    """Reports an actor's error to a supervisor; `details` holds further facts."""

    actor_id: Name
    details: Any = None


class ErrorAcknowledged(Data):
    """The supervisor's action."""

    actor_id: str | None = None
    action_taken: str
    error_logged: bool = True


class Retry(Data):
    """Asks to handle a failed message again; `attempt` counts from 1."""

    original_message_id: Name
    attempt: int = Field(ge=1)
    max_attempts: int = Field(ge=1)
