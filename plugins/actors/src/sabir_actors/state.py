"""The state of a thread, as its journal tells it, and what is told of it: pure, one event at a time.

    created ──START──▶ processing ──last phase──▶ completed
                        │   ▲   └──no retry mends──▶ failed
                   PAUSE▼   │RESUME
                       paused              TERMINATE, from any that is no end ──▶ terminated

An event and the response that it answers a message with are one record: they are written, or neither is.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID, uuid5

from pydantic import AwareDatetime, BaseModel, ConfigDict

from sabir_actors import data as typed
from sabir_actors.data import AgentChange, PhaseOutput, ThreadState
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phases import Chain, Phase
from sabir_actors.protocol import Message

What: TypeAlias = Literal[
    "created", "started", "paused", "resumed", "terminated", "completed", "failed", "phase_done", "agent_updated",
    "taken", "queued", "left", "refused",
]  # fmt: skip
MOVES: Mapping[What, tuple[frozenset[ThreadState], ThreadState]] = {
    "started": (frozenset({"created"}), "processing"),
    "paused": (frozenset({"processing"}), "paused"),
    "resumed": (frozenset({"paused"}), "processing"),
    "terminated": (frozenset({"created", "processing", "paused"}), "terminated"),
    "completed": (frozenset({"processing"}), "completed"),
    "failed": (frozenset({"processing", "paused"}), "failed"),
}
"""What happens → the states in which it may, and the state after it."""
_IDS = UUID("6f1b8f0c-8a0e-4f2e-9d55-0f6f0d8e7a11")
"""The namespace of ids: that of a thread is made of the id of the message that created it."""
ENDS: frozenset[ThreadState] = frozenset({"completed", "failed", "terminated"})


class ThreadEvent(BaseModel):
    """One thing that happened to a thread, as its journal keeps it.

    `message_id` and `response` are those of the message that it answers; None where the thread itself went on. `data`
    is what `what` needs: of "created" the request, the chain's name and its phases; of "phase_done" the phase, its
    output, seconds and tokens; of "agent_updated" the phase and what changes; of "failed" and "terminated" why; of
    "started", "resumed" and "taken" by whom the thread is run from now on; with a queue, of "started", "resumed" and
    "queued" the run that it gives to a process, and "left" is the end of one whose thread was paused. "refused" is a
    message that was answered with an error, and changed nothing.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    what: What
    at: AwareDatetime
    data: dict[str, Any] = {}
    message_id: str | None = None
    response: dict[str, Any] | None = None


class ThreadView:
    """What the events of a thread come to."""

    def __init__(self) -> None:
        self.thread_id = ""
        self.status: ThreadState = "created"
        self.user_id = ""
        self.client: str | None = None
        """Who is told of the end."""
        self.correlation_id: str | None = None
        self.initial_input = ""
        self.metadata: dict[str, Any] = {}
        self.chain = ""
        self.phases: tuple[str, ...] = ()
        self.outputs: dict[str, PhaseOutput] = {}
        """Phase → what it came to, in the order in which they ran."""
        self.seconds: dict[str, float] = {}
        self.usage: dict[str, dict[str, int | None]] = {}
        self.configs: dict[str, list[AgentChange]] = {}
        """Phase → changes of its agent's configuration, in order."""
        self.answers: dict[str, dict[str, Any]] = {}
        """Id of a message → the response that it was given first."""
        self.created_at: datetime | None = None
        self.updated_at: datetime | None = None
        self.started_at: datetime | None = None
        self.cause: dict[str, Any] = {}
        """Why it failed or was terminated."""
        self.runner: str | None = None
        """Which ThreadActor runs its phases: the one that started, resumed or took it last; None for none yet."""
        self.run: str | None = None
        """The run that a queue gives to a process until the thread is paused or over; None without a queue."""
        self.runs = 0
        """How many runs there were."""

    @property
    def exists(self) -> bool:
        """Whether it was created."""
        return self.created_at is not None

    @property
    def is_over(self) -> bool:
        """Whether it is at one of its ends."""
        return self.status in ENDS

    @property
    def remaining(self) -> tuple[str, ...]:
        """The phases that have not run, in order."""
        return tuple(phase for phase in self.phases if phase not in self.outputs)

    @property
    def last_output(self) -> PhaseOutput | None:
        """What the latest phase came to; None before the first is done."""
        return next(reversed(self.outputs.values()), None)

    @property
    def current_phase(self) -> str | None:
        """The phase that runs, or is the next to run; None after the last."""
        return next(iter(self.remaining), None)

    def allow(self, what: What) -> None:
        """Raise ActorError (INVALID_STATE) where the state does not allow it."""
        before, after = MOVES[what]
        if self.status not in before:
            allowed = " or ".join(sorted(before))
            reason = f"thread {self.thread_id} is {self.status}; it becomes {after} only from {allowed}"
            raise ActorError(ErrorCode.INVALID_STATE, reason, thread_id=self.thread_id, status=self.status)

    def take(self, event: ThreadEvent) -> None:
        """Take one event, of a journal or just written."""
        said = event.data
        if event.what == "created":
            self._create(event)
        elif event.what == "phase_done":
            phase = said["phase_type"]
            self.outputs[phase] = PhaseOutput.model_validate(said["output"])
            self.seconds[phase] = said["processing_time"]
            self.usage[phase] = said.get("usage") or {}
        elif event.what == "agent_updated":
            self.configs.setdefault(said["phase_type"], []).append(AgentChange.model_validate(said["config"]))
        elif event.what in MOVES:
            self.status = MOVES[event.what][1]
            self.cause = said if event.what in ("failed", "terminated") else self.cause
            self.started_at = event.at if event.what == "started" else self.started_at
        if event.message_id is not None and event.response is not None:
            self.answers[event.message_id] = event.response
        self.runner = said.get("by", self.runner)
        self.runs += bool(said.get("run"))
        self.run = said.get("run", self.run)
        if event.what not in ("taken", "queued", "left", "refused"):
            self.updated_at = event.at

    def _create(self, event: ThreadEvent) -> None:
        said = event.data
        self.thread_id, self.user_id = said["thread_id"], said["user_id"]
        self.initial_input, self.metadata = said["initial_input"], said.get("metadata") or {}
        self.client, self.correlation_id = said.get("client"), said.get("correlation_id")
        self.chain, self.phases = said["chain"], tuple(said["phases"])
        self.created_at = event.at


def thread_id_of(message_id: str) -> str:
    """The id of the thread that the CREATE_THREAD of that id makes: a duplicate finds its thread."""
    return str(uuid5(_IDS, message_id))


def request_of(message: Message, wanted: typed.CreateThread, chain: Chain) -> dict[str, Any]:
    """What a journal keeps of the request that created its thread."""
    thread_id = thread_id_of(message.id)
    return {
        "thread_id": thread_id,
        "user_id": wanted.user_id,
        "initial_input": wanted.initial_input,
        "metadata": wanted.metadata,
        "chain": chain.name,
        "phases": list(chain.names),
        "client": message.sender,
        "correlation_id": message.correlation_id or thread_id,
    }


def input_of(view: ThreadView, phase: Phase) -> str:
    """What a phase is asked: the user's words first, then to go on."""
    return view.initial_input if not view.outputs else phase.ask


def context_of(view: ThreadView) -> dict[str, Any]:
    """What a phase is told of its thread: what was said so far, whose it is."""
    last = view.last_output
    said = [{"role": "assistant", "content": output.response} for output in view.outputs.values()]
    asked = [{"role": "user", "content": view.initial_input}] if said else []
    return {
        "conversation_history": [*(view.metadata.get("conversation_history") or ()), *asked, *said],
        "previous_phase_output": last and last.model_dump(mode="json"),
        "user_id": view.user_id,
        "metadata": {name: value for name, value in view.metadata.items() if name != "conversation_history"},
    }


def status_of(view: ThreadView) -> typed.ThreadStatus:
    """Where a thread that exists is; at its end with how it ended."""
    assert view.created_at is not None and view.updated_at is not None
    return typed.ThreadStatus(
        thread_id=view.thread_id,
        status=view.status,
        current_phase=None if view.is_over else view.current_phase,
        created_at=view.created_at,
        updated_at=view.updated_at,
        phases_completed=list(view.outputs),
        phases_remaining=list(view.remaining),
        **({"result": result_of(view)} if view.is_over else {}),
    )


def result_of(view: ThreadView) -> typed.ThreadResult:
    """How a thread ended."""
    last = view.last_output
    cause: Mapping[str, Any] = {name: view.cause.get(name) for name in ("error_message", "error_code")}
    output = last.model_dump(mode="json") if last else None
    return typed.ThreadResult(thread_id=view.thread_id, status=view.status, output=output, **cause)
