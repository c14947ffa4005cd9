"""One thread as its journal tells it, and what it says to others.

journal `thread:<id>` ── ThreadEvent, ThreadEvent, InnerMessage … ─▶ ThreadView
                                                        record(): the journal first, then the view
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from sabir.errors import one_line
from sabir_session import RecordingFailed, Session, append_item
from sabir_session.stores import StoredJournal

from sabir_actors import data as typed
from sabir_actors.actor import Actor, logger
from sabir_actors.agents import AgentManagerActor, changed
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phases import Chain, Phase
from sabir_actors.protocol import Message, Response, deserialize_message, now
from sabir_actors.state import ThreadEvent, ThreadView, What

if TYPE_CHECKING:
    from sabir_actors.system import ActorSystem

_IDS = UUID("6f1b8f0c-8a0e-4f2e-9d55-0f6f0d8e7a11")
"""The namespace of ids: that of a thread is made of the id of the message that created it."""


class Thread:
    """One thread in this process: its session, what its events come to, and its run while there is one."""

    def __init__(self, thread_id: str, journal: StoredJournal | None) -> None:
        self.thread_id = thread_id
        self.run: asyncio.Task[None] | None = None
        self.agents: AgentManagerActor | None = None
        self.actors: list[Actor] = []
        """Those that were made for its run."""
        self.read(journal)

    def read(self, journal: StoredJournal | None) -> None:
        """Hold what a journal says now, in place of what was held; None for a thread that lives in memory alone."""
        self.journal, self.session, self.view = journal, Session(journal=journal), ThreadView()
        self.session.mutate(ThreadEvent).register(ThreadEvent, append_item)
        for event in self.session.select_all(ThreadEvent):
            self.view.take(event)

    def record(
        self, what: What, said: dict[str, Any], message: Message | None = None, response: Response | None = None
    ) -> None:
        """Write one event with the response that it is answered by, then let it count; raises RecordingFailed."""
        event = ThreadEvent(
            what=what,
            at=now(),
            data=said,
            message_id=message.id if message else None,
            response=response.model_dump(mode="json") if response else None,
        )
        self.session.mutate(ThreadEvent).append(event)
        self.view.take(event)

    def answer_to(self, message: Message) -> Response | None:
        """The response that a message was given before, by whatever process (CH-43)."""
        found = self.view.answers.get(message.id)
        if found is None:
            return None
        response = deserialize_message(json.dumps(found))
        assert isinstance(response, Response)
        return response


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


def config_of(view: ThreadView, phase: Phase, system: "ActorSystem") -> typed.AgentConfig:
    """How the agent of a phase asks: as its chain and the system say, with the changes since."""
    model = phase.model or system.model
    if model is None:
        reason = f"neither the system nor the phase {phase.name!r} names a model; give ActorSystem(model=…)"
        raise ActorError(ErrorCode.INVALID_CONFIG, reason)
    tools = system.options if phase.options is None else phase.options
    config = typed.AgentConfig(model=model, tools=list(tools))
    for change in view.configs.get(phase.name, ()):
        config = changed(config, change)
    return config


def check_runs_here(view: ThreadView, chain: Chain, system: "ActorSystem") -> None:
    """Refuse a thread of which this process lacks a phase, the name of a model or an option."""
    for name in view.remaining:
        if name not in chain.names:
            reason = f"the chain {chain.name!r} has no phase {name!r} here, as it had when the thread was created"
            raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; give ActorSystem(chains=…) that one")
        tools = config_of(view, chain.phase(name), system).tools
        missing = [tool for tool in tools if tool not in system.options]
        if missing:
            reason = f"the phase {name!r} may choose {missing[0]!r}, which is no option here"
            raise ActorError(ErrorCode.INVALID_CONFIG, f"{reason}; give ActorSystem(options=…) with it")


def done(message: Message, thread: Thread, step: Callable[[Thread], Response]) -> Response:
    """Do a step; that the thread's state does not allow it is recorded too, so that a duplicate is told the same."""
    try:
        return step(thread)
    except ActorError as error:
        if error.code is not ErrorCode.INVALID_STATE:
            raise
        response = message.error(error)
        thread.record("refused", {}, message, response)
        return response


def fail(thread: Thread, error: Exception) -> None:
    """Record that a thread failed, and why; RecordingFailed for what is the journal's failure, not the thread's."""
    if isinstance(error, RecordingFailed):
        raise error
    if not isinstance(error, ActorError):
        logger.exception("thread %s failed", thread.thread_id)
        error = ActorError(ErrorCode.FAILED, one_line(f"{type(error).__name__}: {error}"))
    if error.code is ErrorCode.RECORDING_FAILED:
        raise RecordingFailed(str(error)) from error
    if not thread.view.is_over:
        said = {**error.details, "error_message": str(error), "error_code": error.code.value}
        thread.record("failed", said)


def unknown(thread_id: str) -> ActorError:
    """That there is no such thread."""
    reason = f"no thread {thread_id!r} is here; create one, or see the list of threads"
    return ActorError(ErrorCode.UNKNOWN_THREAD, reason, thread_id=thread_id)
