"""PhaseActor: runs one phase of a thread. It prepares the context, runs the agent, and names the next phase.

PROCESS_PHASE ─▶ PREPARE_CONTEXT (handled by itself) ─▶ PROCESS_WITH_AGENT ─▶ AGENT_RESPONSE ─▶ PHASE_PROCESSED
                                                              └ ERROR ─▶ ERROR_NOTIFICATION ─▶ RETRY, or ERROR
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import Any

from sabir_actors import data as typed
from sabir_actors.actor import Actor, ActorHost, HandlerResult
from sabir_actors.agents import Agent, AgentManagerActor
from sabir_actors.errors import ActorError, ErrorCode
from sabir_actors.phases import Chain, Phase
from sabir_actors.protocol import ErrorResponse, Message, Response, data_of, raise_for_error, validate_message


class PhaseActor(Actor):
    """Runs one phase of one thread. The system creates it for each phase when the phase begins.

    `agents` is the actor of the thread's agents. The agent of this phase has the same id as this actor.
    """

    def __init__(self, actor_id: str, system: ActorHost, chain: Chain, phase: Phase, agents: AgentManagerActor) -> None:
        self.most_attempts = system.restarts.limit + 1
        """The maximum number of times that the agent is run: `RestartPolicy.limit` + 1."""
        super().__init__(actor_id, system, longest=self.most_attempts * system.restarts.timeout)
        self.phases = chain.names
        self.chain, self.phase, self.agents = chain, phase, agents
        self.agent_id = actor_id

    async def on_initialize_phase(self, message: Message) -> HandlerResult:
        """Handle INITIALIZE_PHASE: add or replace the phase's agent, with the configuration in the message."""
        request = data_of(message, typed.InitializePhase)
        self._check_phase_type(request.phase_type)
        self.agents.add_agent(self.agent_id, Agent(request.config, self.phase.output))
        return typed.PhaseInitialized(phase_type=self.phase.name, agent_id=self.agent_id)

    async def on_prepare_context(self, message: Message) -> typed.ContextPrepared:
        """Handle PREPARE_CONTEXT: return the phase's instructions, the conversation, the previous output unless it
        already ends the conversation, the names of the options, and the metadata.
        """
        request = data_of(message, typed.PrepareContext)
        self._check_phase_type(request.phase_type)
        history = list(request.conversation_history)
        previous_response = (request.previous_phase_output or {}).get("response")
        if previous_response and (not history or history[-1].content != previous_response):
            history.append(typed.Turn(role="assistant", content=str(previous_response)))
        context = typed.PreparedContext(
            messages=[typed.Turn(role="system", content=self.phase.instructions), *history],
            tools=self.agents.agents[self.agent_id].config.tools if self.agent_id in self.agents.agents else [],
            metadata=_read_metadata(message.data),
        )
        return typed.ContextPrepared(thread_id=request.thread_id, phase_type=self.phase.name, context=context)

    async def on_process_phase(self, message: Message) -> HandlerResult:
        """Handle PROCESS_PHASE: run the phase's agent, and return the phase's output.

        Raises ActorError if the agent fails and no restart helps, with the code of the agent's error.
        """
        request, began = data_of(message, typed.ProcessPhase), monotonic()
        self._check_phase_type(request.phase_type)
        prepared, run = await self._prepare_context(message, request), f"{request.thread_id}/{self.phase.name}"
        context = {**request.context, **prepared.context.model_dump(mode="json"), "run": run}
        fields: dict[str, Any] = {"input": request.input, "agent_id": self.agent_id, "context": context}
        if self.system.watch is not None:
            fields["stream"] = True
        answer = data_of(await self._run_agent_with_retries(message, fields), typed.AgentResponse)
        output = typed.PhaseOutput(
            response=answer.result.response,
            next_phase=self.chain.following(self.phase.name),
            confidence=answer.result.confidence,
            **(answer.result.model_extra or {}),
        )
        usage, model = self.agents.usage.get(self.agent_id), self.agents.agents[self.agent_id].config.model
        figures = {} if usage is None else usage.model_dump(mode="json", exclude={"details_json"})
        return typed.PhaseProcessed(
            thread_id=request.thread_id,
            phase_type=self.phase.name,
            output=output,
            processing_time=monotonic() - began,
            usage={**figures, "model": model},
        )

    def _check_phase_type(self, phase_type: str) -> None:
        if phase_type != self.phase.name:
            reason = f"Invalid phase_type: {phase_type}; {self.actor_id} runs {self.phase.name}"
            raise ActorError(ErrorCode.INVALID_MESSAGE, reason)

    async def _prepare_context(self, message: Message, request: typed.ProcessPhase) -> typed.ContextPrepared:
        context = request.context
        fields: dict[str, Any] = {
            "thread_id": request.thread_id,
            "phase_type": request.phase_type,
            "previous_phase_output": context.get("previous_phase_output"),
            "conversation_history": context.get("conversation_history") or [],
            "metadata": _read_metadata(context),
        }
        prepare_message = self._request("PREPARE_CONTEXT", fields, self.actor_id, message.correlation_id)
        self.system.log(prepare_message)
        validate_message(prepare_message, self.phases)
        return await self.on_prepare_context(prepare_message)

    async def _run_agent_with_retries(self, message: Message, fields: dict[str, Any]) -> Response:
        """Run the agent, and return its response. Send a RETRY after each failure that a restart followed: at most
        `most_attempts` runs in all. Raises the ActorError of the last failure.
        """
        request = self._request("PROCESS_WITH_AGENT", fields, self.agents.actor_id, message.correlation_id)
        response = await self._send_interruptible(request)
        for attempt in count(2):
            if not isinstance(response, ErrorResponse):
                break
            if not await self._was_restarted(response, message) or attempt > self.most_attempts:
                raise_for_error(response)
            retry = {"original_message_id": request.id, "attempt": attempt, "max_attempts": self.most_attempts}
            response = await self._send_interruptible(
                self._request("RETRY", retry, self.agents.actor_id, message.correlation_id)
            )
        return response

    async def _send_interruptible(self, request: Message) -> Response:
        """Send a request and return the response. If this is cancelled, the receiver's handler is interrupted too."""
        try:
            return await self.system.send_message(request)
        except asyncio.CancelledError:
            with suppress(ActorError):
                self.system.get_actor(request.receiver or "").interrupt(request.id)
            raise

    async def _was_restarted(self, error: ErrorResponse, message: Message) -> bool:
        """Return whether the actor of the agents was restarted: by the RESTART that caused the error, or now by the
        supervisor, to which the error is reported.
        """
        if error.error_code == ErrorCode.STOPPED and error.data.get("retryable"):
            return True
        supervisor = self.system.supervisor_id
        if supervisor is None:
            return False
        fields = {**error.data, "actor_id": self.actor_id, "culprit": self.agents.actor_id}
        answer = await self._send_interruptible(
            self._request("ERROR_NOTIFICATION", fields, supervisor, message.correlation_id)
        )
        return answer.data.get("action_taken") == "restart"


def _read_metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the thread's metadata, with the user's id as `user_id`. Raises ActorError (INVALID_MESSAGE) if the
    metadata is not an object.
    """
    metadata = fields.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        reason = f"metadata has the type {type(metadata).__name__}; pass a JSON object"
        raise ActorError(ErrorCode.INVALID_MESSAGE, reason)
    return {**({"user_id": fields["user_id"]} if "user_id" in fields else {}), **metadata}
