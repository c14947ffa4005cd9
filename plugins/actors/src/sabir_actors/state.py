"""ThreadEvent and ThreadView: the state of a thread, computed from the events in its journal. Pure, without I/O.

    created ──START──▶ processing ──last phase──▶ completed
                        │   ▲   └──no retry helps──▶ failed
                   PAUSE▼   │RESUME
                       paused              TERMINATE, from created, processing or paused ──▶ terminated

An event and the response to its message are one record: the store writes both or neither.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias
from uuid import UUID, uuid5

from pydantic import AwareDatetime, BaseModel, ConfigDict

from sabir_actors import data as typed
from sabir_actors.data import AgentChange, PhaseOutput, ThreadState
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phases import Chain, Phase
from sabir_actors.protocol import Message

EventKind: TypeAlias = Literal[
    "created", "started", "paused", "resumed", "terminated", "completed", "failed", "phase_done", "agent_updated",
    "taken", "queued", "left", "refused",
]  # fmt: skip
MOVES: Mapping[EventKind, tuple[frozenset[ThreadState], ThreadState]] = {
    "started": (frozenset({"created"}), "processing"),
    "paused": (frozenset({"processing"}), "paused"),
    "resumed": (frozenset({"paused"}), "processing"),
    "terminated": (frozenset({"created", "processing", "paused"}), "terminated"),
    "completed": (frozenset({"processing"}), "completed"),
    "failed": (frozenset({"processing", "paused"}), "failed"),
}
"""Kind of event that changes the state → the states in which the event is allowed, and the state afterwards."""
_IDS = UUID("6f1b8f0c-8a0e-4f2e-9d55-0f6f0d8e7a11")
"""The namespace of thread ids, which are computed from the id of the creating message."""
ENDS: frozenset[ThreadState] = frozenset({"completed", "failed", "terminated"})
"""The final states of a thread."""


class ThreadEvent(BaseModel):
    """One record of a thread's journal: a change of the thread, with the response to the message that caused it.

    `what` is the kind of change and `at` its time. `message_id` is the id of the message, and `response` the response;
    both are None for changes without a message, such as the end of a phase. The content of `data` depends on `what`:

    - "created": the request, the chain's name and its phases
    - "phase_done": the phase, its output, seconds and tokens
    - "agent_updated": the phase and the changed fields
    - "failed", "terminated": the reason
    - "started", "resumed": without a queue, `by`, the id of the process that runs the thread; with a queue, `run`, the
      name of the new run, or nothing if a worker still has the present run
    - "taken": `by`, the id of the process that runs the thread now
    - "queued": the name of a new run, for a thread that was started without a queue
    - "left": None for `by` and `run`, because the run of a paused thread ended
    - "refused": nothing; the message was answered with an error
    - "paused", "completed": nothing
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    stored_as: ClassVar[str] = "sabir.thread_event"
    stored_before: ClassVar[tuple[str, ...]] = ("sabir_actors.state:ThreadEvent",)  # the name in store layout 1

    what: EventKind
    at: AwareDatetime
    data: dict[str, Any] = {}
    message_id: str | None = None
    response: dict[str, Any] | None = None


class ThreadView:
    """A thread as the events of its journal describe it. Returned by `ThreadActor.view`. `status` is a ThreadState."""

    def __init__(self) -> None:
        self.thread_id = ""
        self.status: ThreadState = "created"
        self.user_id = ""
        self.client: str | None = None
        """The sender of the CREATE_THREAD message, which receives the result; None without a sender."""
        self.correlation_id: str | None = None
        self.initial_input = ""
        self.metadata: dict[str, Any] = {}
        self.chain = ""
        self.phases: tuple[str, ...] = ()
        self.outputs: dict[str, PhaseOutput] = {}
        """Name of a phase that is done → its output, in the order in which the phases ran."""
        self.seconds: dict[str, float] = {}
        """Name of a phase that is done → how many seconds it took."""
        self.usage: dict[str, dict[str, int | None]] = {}
        """Name of a phase that is done → the token counts of its agent's run, and the model string as `model`."""
        self.configs: dict[str, list[AgentChange]] = {}
        """Phase name → the changes of its agent's configuration, in order."""
        self.answers: dict[str, dict[str, Any]] = {}
        """Id of a message that changed the thread or was refused → its response."""
        self.created_at: datetime | None = None
        self.updated_at: datetime | None = None
        self.started_at: datetime | None = None
        self.cause: dict[str, Any] = {}
        """The data of the "failed" or "terminated" event, with the reason; {} before."""
        self.runner: str | None = None
        """The id of the process that runs the thread, or ran it last. None before the start, while a queue has not
        assigned the thread to a process, and after a queue's run of a paused thread ended.
        """
        self.run: str | None = None
        """The name of the present run in the queue; None without a queue, or after the run of a paused thread ended."""
        self.runs = 0
        """The number of runs that were recorded for a queue so far."""

    @property
    def exists(self) -> bool:
        """Whether the thread was created."""
        return self.created_at is not None

    @property
    def is_over(self) -> bool:
        """Whether the thread is completed, failed or terminated."""
        return self.status in ENDS

    @property
    def remaining(self) -> tuple[str, ...]:
        """The names of the phases that are not done, in order."""
        return tuple(phase for phase in self.phases if phase not in self.outputs)

    @property
    def last_output(self) -> PhaseOutput | None:
        """The output of the latest phase that is done; None if no phase is done."""
        return next(reversed(self.outputs.values()), None)

    @property
    def current_phase(self) -> str | None:
        """The name of the running or next phase; None if all phases are done."""
        return next(iter(self.remaining), None)

    def allow(self, what: EventKind) -> None:
        """Check that the present state allows the event `what`, one of MOVES. Raises ActorError (INVALID_STATE) if
        not.
        """
        before, _ = MOVES[what]
        if self.status not in before:
            allowed = " or ".join(sorted(before))
            reason = f"thread {self.thread_id} is {self.status} and cannot be {what}; it must be {allowed}"
            raise ActorError(ErrorCode.INVALID_STATE, reason, thread_id=self.thread_id, status=self.status)

    def after(self, event: ThreadEvent) -> "ThreadView":
        """Return a new view, with the state after one more event. This view does not change."""
        view = ThreadView.__new__(ThreadView)
        vars(view).update(vars(self))
        for name in ("outputs", "seconds", "usage", "answers"):
            setattr(view, name, dict(getattr(self, name)))
        view.configs = {phase: list(changes) for phase, changes in self.configs.items()}
        view.apply(event)
        return view

    def apply(self, event: ThreadEvent) -> None:
        """Apply one event to this view, in place. The event is not checked against MOVES."""
        fields = event.data
        if event.what == "created":
            self._apply_created(event)
        elif event.what == "phase_done":
            phase = fields["phase_type"]
            self.outputs[phase] = PhaseOutput.model_validate(fields["output"])
            self.seconds[phase] = fields["processing_time"]
            self.usage[phase] = fields.get("usage") or {}
        elif event.what == "agent_updated":
            self.configs.setdefault(fields["phase_type"], []).append(AgentChange.stored(fields["config"]))
        elif event.what in MOVES:
            self.status = MOVES[event.what][1]
            self.cause = fields if event.what in ("failed", "terminated") else self.cause
            self.started_at = event.at if event.what == "started" else self.started_at
        if event.message_id is not None and event.response is not None:
            self.answers[event.message_id] = event.response
        self.runner = fields.get("by", self.runner)
        self.runs += bool(fields.get("run"))
        self.run = fields.get("run", self.run)
        if event.what not in ("taken", "queued", "left", "refused"):
            self.updated_at = event.at

    def _apply_created(self, event: ThreadEvent) -> None:
        fields = event.data
        self.thread_id, self.user_id = fields["thread_id"], fields["user_id"]
        self.initial_input, self.metadata = fields["initial_input"], fields.get("metadata") or {}
        self.client, self.correlation_id = fields.get("client"), fields.get("correlation_id")
        self.chain, self.phases = fields["chain"], tuple(fields["phases"])
        self.created_at = event.at


def thread_id_of(message_id: str) -> str:
    """Return the id of the thread that the CREATE_THREAD message with this id creates. It is computed from the
    message's id, so that a repeated message does not create a second thread.
    """
    return str(uuid5(_IDS, message_id))


def created_fields(message: Message, request: typed.CreateThread, chain: Chain) -> dict[str, Any]:
    """Return the data of the event "created" for a CREATE_THREAD message."""
    thread_id = thread_id_of(message.id)
    return {
        "thread_id": thread_id,
        "user_id": request.user_id,
        "initial_input": request.initial_input,
        "metadata": request.metadata,
        "chain": chain.name,
        "phases": list(chain.names),
        "client": message.sender,
        "correlation_id": message.correlation_id or thread_id,
    }


def input_of(view: ThreadView, phase: Phase) -> str:
    """Return the user message of a phase: the user's text for the first phase, `Phase.ask` for later phases."""
    return view.initial_input if not view.outputs else phase.ask


def context_of(view: ThreadView) -> dict[str, Any]:
    """Return the context for a thread's next phase: the conversation so far, the output of the previous phase, the
    user's id and the metadata.
    """
    last = view.last_output
    answers = [{"role": "assistant", "content": output.response} for output in view.outputs.values()]
    question = [{"role": "user", "content": view.initial_input}] if answers else []
    return {
        "conversation_history": [*(view.metadata.get("conversation_history") or ()), *question, *answers],
        "previous_phase_output": last and last.model_dump(mode="json"),
        "user_id": view.user_id,
        "metadata": {name: value for name, value in view.metadata.items() if name != "conversation_history"},
    }


def status_of(view: ThreadView) -> typed.ThreadStatus:
    """Return the status of an existing thread, with the result if the thread has ended."""
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
    """Return the result of a thread that has ended."""
    last = view.last_output
    cause: Mapping[str, Any] = {name: view.cause.get(name) for name in ("error_message", "error_code")}
    output = last.model_dump(mode="json") if last else None
    return typed.ThreadResult(thread_id=view.thread_id, status=view.status, output=output, **cause)
