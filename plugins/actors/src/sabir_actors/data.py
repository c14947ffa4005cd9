"""What the data of each type of message holds.

Fields that a type does not name are kept: a newer sender may say more. Times are aware, in UTC; `processing_time` and
`uptime` are seconds. A model is a copy of a message's data: whatever is done to it, the message stays as it is.
"""

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sabir_session.state.codec import UTCDatetime

Time: TypeAlias = UTCDatetime
"""A time with its zone, held in UTC; ISO 8601 on the wire."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""An id or a name: 1 … 200 characters."""
JSONObject: TypeAlias = dict[str, Any]
"""Any JSON object."""
ThreadState: TypeAlias = Literal["created", "processing", "paused", "completed", "failed", "terminated"]
"""Where a thread is; the last three are its ends."""
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A number of seconds, 0 or more."""

TypedData = TypeVar("TypedData", bound="Data")


class Data(BaseModel):
    """The data of one type of message."""

    model_config = ConfigDict(extra="allow", frozen=True)


# Threads


class CreateThread(Data):
    """A thread is to be made; it is not started. `chain` names the phases that it goes through."""

    user_id: Name
    initial_input: str
    metadata: JSONObject = {}
    chain: Name | None = None


class OfThread(Data):
    """A request about one thread."""

    thread_id: Name


class StartThread(OfThread):
    """A thread that was created is to be set on its way."""


class PauseThread(OfThread):
    """No further phase of a thread is to start; the one that runs ends."""


class ResumeThread(OfThread):
    """A paused thread is to go on at its phase."""


class GetThreadStatus(OfThread):
    """Where is a thread?"""


class TerminateThread(OfThread):
    """A thread is to be ended."""

    reason: str = ""


class ThreadStatus(OfThread):
    """Where a thread is. Completed and remaining phases together are those of its chain, in order.

    `result` is how it ended; None before.
    """

    status: ThreadState
    current_phase: str | None = None
    created_at: Time
    updated_at: Time
    phases_completed: list[str]
    phases_remaining: list[str]
    result: "ThreadResult | None" = None


class ThreadCreated(OfThread):
    """The thread is there."""

    status: ThreadState


class ThreadStarted(ThreadCreated):
    """The thread is on its way; the answer does not wait for its phases."""

    started_at: Time


class ThreadPaused(ThreadCreated):
    """No further phase starts."""

    paused_at: Time
    current_phase: str | None = None


class ThreadResumed(ThreadCreated):
    """The thread goes on at that phase."""

    resumed_at: Time
    current_phase: str | None = None


class ThreadTerminated(ThreadCreated):
    """No later phase runs."""

    terminated_at: Time
    reason: str = ""


class ThreadResult(ThreadCreated):
    """What the client is told at the end: the last phase's output, or why the thread failed."""

    output: JSONObject | None = None
    error_message: str | None = None
    error_code: str | None = None


# Phases


class OfPhase(Data):
    """A request about one phase."""

    phase_type: Name


class PhaseOutput(Data):
    """What a phase came to. `confidence` is what its model said of it (0 … 1), None where it said nothing."""

    response: str
    next_phase: str | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)


class ProcessPhase(OfPhase):
    """A phase of a thread is to be run."""

    thread_id: Name
    input: str
    context: JSONObject = {}


class PhaseProcessed(OfPhase):
    """The phase ran. `usage` are the tokens of its agent's run, and the model that was asked."""

    thread_id: Name
    output: PhaseOutput
    processing_time: Seconds
    usage: JSONObject = {}


class AgentConfig(Data):
    """How an agent asks: `model` as `sabir.adapter` takes it, `tools` the names of options that it may choose."""

    model: Name
    system_prompt: str | None = None
    temperature: float | None = None
    max_tokens: int | None = Field(default=None, gt=0)
    tools: list[Name] = []


class AgentChange(Data):
    """What of an agent's configuration is to be another."""

    model: Name | None = None
    system_prompt: str | None = None
    temperature: float | None = None
    max_tokens: int | None = Field(default=None, gt=0)
    tools: list[Name] | None = None


class InitializePhase(OfPhase):
    """A phase is to be made ready with an agent of that configuration."""

    config: AgentConfig


class PhaseInitialized(OfPhase):
    """The phase is ready."""

    status: Literal["ready"] = "ready"
    agent_id: Name


class Turn(Data):
    """One message of a conversation, by the role that says it."""

    role: Literal["system", "user", "assistant"]
    content: str


class PrepareContext(OfPhase):
    """The context of a phase is to be made of what came before it."""

    thread_id: Name
    previous_phase_output: JSONObject | None = None
    conversation_history: list[Turn] = []


class PreparedContext(Data):
    """What a phase's agent is given: the phase's own system message first."""

    messages: list[Turn]
    tools: list[str] = []
    metadata: JSONObject = {}


class ContextPrepared(OfPhase):
    """The context is made."""

    thread_id: Name
    context: PreparedContext


# Agents


class ProcessWithAgent(Data):
    """An agent is to answer; without an id the one that the actor serves."""

    input: str
    context: JSONObject = {}
    agent_id: Name | None = None
    stream: bool = False


class InvokeAgent(ProcessWithAgent):
    """A named agent is to answer."""

    agent_id: Name


class ToolCall(Data):
    """One option that the agent chose, and what came of it."""

    name: str
    arguments: JSONObject
    result: Any = None


class AgentResult(Data):
    """What an agent said."""

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
    """An agent is to ask otherwise from its next run on."""

    agent_id: Name
    config: AgentChange


class AgentConfigUpdated(Data):
    """The agent asks so from its next run on."""

    agent_id: Name
    status: Literal["updated"] = "updated"


# The system


class Heartbeat(Data):
    """Is an actor alive?"""


class HeartbeatResponse(Data):
    """It is. `load` is the share of its mailbox that is taken, 0 … 1."""

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
    """A supervisor is to watch an actor."""


class Restart(ActorReason):
    """An actor is to forget what is volatile, and go on under its id."""


class Stop(ActorReason):
    """An actor is to take no more messages."""


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
    """A supervisor is told of an actor's error; `details` is what else is known of it."""

    actor_id: Name
    details: Any = None


class ErrorAcknowledged(Data):
    """What the supervisor does about it."""

    actor_id: str | None = None
    action_taken: str
    error_logged: bool = True


class Retry(Data):
    """A message that failed is to be done again; `attempt` counts from 1."""

    original_message_id: Name
    attempt: int = Field(ge=1)
    max_attempts: int = Field(ge=1)
