"""The pydantic models of the data of each message type. `protocol.TYPES` says which model belongs to which type.

Unknown fields, except in agents' configurations, are accepted and kept, because a newer sender may send more. Times are
in UTC, with a time zone. `processing_time` and `uptime` are seconds. A model is a copy of a message's data.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from sabir import Settings, SettingsInvalid
from sabir_session.state.codec import UTCDatetime

Time: TypeAlias = UTCDatetime
"""A time in UTC with a time zone; ISO 8601 in JSON."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""An id or a name of 1 to 200 characters."""
JSONObject: TypeAlias = dict[str, Any]
"""Any JSON object."""
ThreadState: TypeAlias = Literal["created", "processing", "paused", "completed", "failed", "terminated"]
"""The status of a thread. A thread that is completed, failed or terminated never changes again."""
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A number of seconds, 0 or more."""

TypedData = TypeVar("TypedData", bound="Data")


class Data(BaseModel):
    """The base class of all data models. Attributes cannot be set. Further fields are accepted, except in agents'
    configurations.
    """

    model_config = ConfigDict(extra="allow", frozen=True)


# Threads


class CreateThread(Data):
    """Request to create a thread without starting it. `chain` is the name of a chain; None means AEIOUY_CHAIN."""

    user_id: Name
    initial_input: str
    metadata: JSONObject = {}
    chain: Name | None = None


class OfThread(Data):
    """The base class of requests and responses about one thread."""

    thread_id: Name


class StartThread(OfThread):
    """Request to start the first phase of a created thread."""


class PauseThread(OfThread):
    """Request to pause a thread: the running phase continues to its end, and no further phase starts."""


class ResumeThread(OfThread):
    """Request to continue a paused thread with its next phase."""


class GetThreadStatus(OfThread):
    """Request for the status of a thread."""


class TerminateThread(OfThread):
    """Request to end a thread for good. A running phase is interrupted. `reason` is stored with the thread."""

    reason: str = ""


class ThreadStatus(OfThread):
    """The status of a thread. `status` is the state, and `current_phase` the running or next phase.

    `phases_completed` and `phases_remaining` together are the names of the chain's phases, in order. `result` is None
    until the thread has ended. `current_phase` is None if all phases are done or the thread has ended.
    """

    status: ThreadState
    current_phase: str | None = None
    created_at: Time
    updated_at: Time
    phases_completed: list[str]
    phases_remaining: list[str]
    result: "ThreadResult | None" = None


class ThreadCreated(OfThread):
    """Response: the thread was created. `status` is the thread's state afterwards, here and in the subclasses."""

    status: ThreadState


class ThreadStarted(ThreadCreated):
    """Response: the thread was started. Sent before the first phase is done."""

    started_at: Time


class ThreadPaused(ThreadCreated):
    """Response: no further phase starts until the thread is resumed."""

    paused_at: Time
    current_phase: str | None = None


class ThreadResumed(ThreadCreated):
    """Response: the thread continues with `current_phase`, which is None if all phases are done."""

    resumed_at: Time
    current_phase: str | None = None


class ThreadTerminated(ThreadCreated):
    """Response: the thread has ended, and no further phase runs."""

    terminated_at: Time
    reason: str = ""


class ThreadResult(ThreadCreated):
    """The result of a thread that has ended. Sent to its client, and returned by `ThreadClient.result`.

    `output` is the PhaseOutput, as JSON, of the last phase that was finished; None without one. Its field `response` is
    the thread's answer. `error_message` and `error_code` are set if the thread failed. `status` tells how it ended.
    """

    output: JSONObject | None = None
    error_message: str | None = None
    error_code: str | None = None


# Phases


class OfPhase(Data):
    """The base class of requests and responses about one phase."""

    phase_type: Name


class PhaseOutput(Data):
    """The output of a phase: `response` is its text. `confidence` is the model's own estimate from 0 to 1, or None if
    the model gave no valid one. `next_phase` is the name of the next phase, None after the last.
    """

    response: str
    next_phase: str | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)


class ProcessPhase(OfPhase):
    """Request to run a phase of a thread. `input` is the user message. `context` contains the earlier conversation, the
    previous output and the metadata.
    """

    thread_id: Name
    input: str
    context: JSONObject = {}


class PhaseProcessed(OfPhase):
    """Response: the phase is done. `usage` contains the token counts of the agent's run, and the model string."""

    thread_id: Name
    output: PhaseOutput
    processing_time: Seconds
    usage: JSONObject = {}


SETTINGS: frozenset[str] = frozenset(field.alias or name for name, field in Settings.model_fields.items()) - {
    "response_format"
}
"""The names of the settings of `sabir.Settings` that an agent's configuration may contain: all except
`response_format`, which the phase sets.
"""
_MAX_TOKENS_NAMES = "max_output_tokens", "max_tokens"
"""The two names of one setting: in `sabir.Settings`, and in an agent's configuration."""


class _ConfigFields(Data):
    """The base class of agents' configurations. Further fields are settings with their names in `sabir.Settings`.

    `max_tokens` is the setting `max_output_tokens`, which is accepted too. Other unknown fields raise ValidationError.
    """

    temperature: float | None = None
    max_tokens: int | None = Field(default=None, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _rename_max_tokens(cls, config: object) -> object:
        """Rename `max_output_tokens` to `max_tokens`, so that there is one field for the setting. Raises ValueError for
        different values of the two.
        """
        setting, name = _MAX_TOKENS_NAMES
        if not isinstance(config, Mapping) or setting not in config:
            return config
        if name in config and config[name] != config[setting]:
            raise ValueError(f"{setting} and {name} are the same setting; pass only one of them")
        fields = {key: value for key, value in config.items() if key != setting}
        return {**fields, name: config[setting]}

    @model_validator(mode="after")
    def _check_field_names(self) -> Self:
        unknown = sorted(set(self.model_extra or {}) - SETTINGS)
        if unknown:
            known = ", ".join(
                [*type(self).model_fields, *sorted(SETTINGS - set(type(self).model_fields) - {_MAX_TOKENS_NAMES[0]})]
            )
            raise ValueError(f"a configuration has no field {unknown[0]!r}; its fields are {known}")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that are not None, with their names in `sabir.Settings`."""
        named = {"temperature": self.temperature, _MAX_TOKENS_NAMES[0]: self.max_tokens, **(self.model_extra or {})}
        return {name: value for name, value in named.items() if value is not None}


class AgentConfig(_ConfigFields):
    """The configuration of an agent: `model` is a model string, `system_prompt` is sent before all other messages, and
    `tools` are the names of the system's options that the agent may call. `max_tokens` is the setting
    `max_output_tokens`.

    Further fields are settings of `sabir.Settings`, except `response_format`. Unknown fields raise ValidationError.
    """

    model: Name
    system_prompt: str | None = None
    tools: list[Name] = []


class AgentChange(_ConfigFields):
    """The fields of an agent's configuration to change. The value null unsets a setting or the system prompt.

    Further fields are settings of `sabir.Settings`, except `response_format`. Unknown fields raise ValidationError.
    """

    model: Name = ""
    system_prompt: str | None = None
    tools: list[Name] = []

    @classmethod
    def stored(cls, fields: Mapping[str, Any]) -> Self:
        """Return the change for the fields in a journal's record.

        If a setting is invalid, all settings except `temperature` and `max_tokens` are dropped: earlier versions of
        sabir stored invalid settings, which had no effect.
        """
        known = {name: value for name, value in fields.items() if name in cls.model_fields or name in SETTINGS}
        known = {name: value for name, value in known.items() if value is not None or name not in ("model", "tools")}
        try:
            change = cls.model_validate(known)
            Settings(**change.settings)
            return change
        except (ValidationError, SettingsInvalid):
            return cls.model_validate({name: value for name, value in known.items() if name in cls.model_fields})


class InitializePhase(OfPhase):
    """Request to a phase's actor: add the phase's agent, with this configuration, or replace it."""

    config: AgentConfig


class PhaseInitialized(OfPhase):
    """Response: the phase's agent was added or replaced. `agent_id` is its id, which is also the id of the phase's
    actor.
    """

    status: Literal["ready"] = "ready"
    agent_id: Name


class Turn(Data):
    """One text of a conversation, with the role of its speaker."""

    role: Literal["system", "user", "assistant"]
    content: str


class PrepareContext(OfPhase):
    """Request to build the context of a phase from the conversation and the output of the previous phase."""

    thread_id: Name
    previous_phase_output: JSONObject | None = None
    conversation_history: list[Turn] = []


class PreparedContext(Data):
    """The context for a phase's agent. The first of `messages` is the phase's system message. `tools` are the names of
    the options that the agent may call. `metadata` is the thread's metadata, and the user's id as `user_id`.
    """

    messages: list[Turn]
    tools: list[str] = []
    metadata: JSONObject = {}


class ContextPrepared(OfPhase):
    """Response: the context of the phase."""

    thread_id: Name
    context: PreparedContext


# Agents


class ProcessWithAgent(Data):
    """Request for an agent's answer to `input`. `context` may contain `messages`, the earlier conversation, and `run`,
    a name: a recorded run of this name is continued or answered from its records.

    Without `agent_id`, the agent with the sender's id answers, else the actor's only agent unless the sender is a phase
    of the thread. With `stream`, events of the run are passed to the system's `watch` function.
    """

    input: str
    context: JSONObject = {}
    agent_id: Name | None = None
    stream: bool = False


class InvokeAgent(ProcessWithAgent):
    """Request for the answer of the agent `agent_id`. The other fields are the same as in ProcessWithAgent."""

    agent_id: Name


class ToolCall(Data):
    """One option call (tool call) of an agent. `result` is the option's result or its error text; None without a
    result.
    """

    name: str
    arguments: JSONObject
    result: Any = None


class AgentResult(Data):
    """An agent's answer: a text, the model's own confidence from 0 to 1 (None if the model gave no valid one), and the
    option calls of the run. A valid answer of the agent's output type is in the further field `output`.
    """

    response: str
    confidence: float | None = Field(default=None, ge=0, le=1)
    tool_calls: list[ToolCall] = []


class AgentResponse(Data):
    """Response: the agent's answer."""

    result: AgentResult
    processing_time: Seconds


class AgentInvoked(AgentResponse):
    """Response: the answer of the agent `agent_id`."""

    agent_id: Name


class UpdateAgentConfig(Data):
    """Request to change an agent's configuration from its next run on. For an agent of a thread, `agent_id` is
    `<thread id>/<phase>`.
    """

    agent_id: Name
    config: AgentChange


class AgentConfigUpdated(Data):
    """Response: the change is effective from the agent's next run."""

    agent_id: Name
    status: Literal["updated"] = "updated"


# The system


class Heartbeat(Data):
    """Request for a sign of life of an actor."""


class HeartbeatResponse(Data):
    """Response: the actor has been alive for `uptime` seconds. `load` is the used share of its mailbox, 0 to 1."""

    status: Literal["alive"] = "alive"
    uptime: Seconds
    load: float = Field(ge=0)


class OfActor(Data):
    """The base class of requests and responses about one actor."""

    actor_id: Name


class ActorReason(OfActor):
    """The base class of requests about one actor, with a reason."""

    reason: str = ""


class Supervise(OfActor):
    """Request to a supervisor: from now on, restart this actor after any reported error, even if `retryable` is false,
    within the limits of RestartPolicy.
    """


class Restart(ActorReason):
    """Request to an actor, or to a supervisor for the actor `actor_id`: discard state and continue."""


class Stop(ActorReason):
    """Request to an actor: accept no more messages. `actor_id` must be the receiver's id."""


class SupervisionStarted(OfActor):
    """Response: from now on, the supervisor restarts the actor after any reported error, within the limits of
    RestartPolicy.
    """

    status: Literal["supervised"] = "supervised"


class RestartComplete(OfActor):
    """Response: the actor was restarted."""

    status: Literal["restarted"] = "restarted"
    restarted_at: Time


class StopComplete(OfActor):
    """Response: the actor accepts no more messages."""

    status: Literal["stopped"] = "stopped"
    stopped_at: Time


class ErrorData(Data):
    """The reason why a message failed. `error_code` is usually a value of ErrorCode."""

    error_message: str
    error_code: str | None = None


class ErrorNotification(ErrorData):
    """Report of an actor's error to a supervisor. `details` are further facts, which are not used. Further fields that
    are used: `retryable`, `retry_after` in seconds, and `culprit`, the id of an actor to restart in place of
    `actor_id`.
    """

    actor_id: Name
    details: Any = None


class ErrorAcknowledged(Data):
    """Response to a reported error. `action_taken` is "logged" after ERROR. After ERROR_NOTIFICATION, it is "restart"
    if the actor was restarted, and "escalate" if not.
    """

    actor_id: str | None = None
    action_taken: str
    error_logged: bool = True


class Retry(Data):
    """Request to handle a message again that failed at this actor. `attempt` counts from 1, and is refused above
    `max_attempts`.
    """

    original_message_id: Name
    attempt: int = Field(ge=1)
    max_attempts: int = Field(ge=1)
