"""What a thread says of itself, to its phases and to whoever asks: functions of its view, without I/O.

ThreadView ─┬─ input_of, context_of      what a phase is given
            ├─ status_of, result_of      what others are told
            └─ config_of                 how the agent of a phase asks
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sabir_actors import data as typed
from sabir_actors.agents import changed
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phases import Chain, Phase
from sabir_actors.protocol import Message
from sabir_actors.state import ThreadView
from sabir_actors.thread import thread_id_of

if TYPE_CHECKING:
    from sabir_actors.system import ActorSystem


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
