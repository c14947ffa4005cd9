"""A phase: its context, its agent, its output; retries, timeouts and ends (CH-22 … CH-25, CH-42, CH-48, CH-49)."""

import asyncio
from typing import Any

import pytest
import sabir
from sabir_actors import AEIOUY_CHAIN, ActorSystem, AgentManagerActor, Message, PhaseActor, Response, RestartPolicy
from sabir_actors.agents import Agent
from sabir_actors.data import AgentConfig
from sabir_session import Session
from sabir_testing.scripted import Gate, Scriptable, ScriptedAdapter, always, delayed

from tests.actors.support import AT_ONCE, MODEL, ask, failed, said

ONCE = sabir.Settings(retries=sabir.RetryPolicy(attempts=1))
LATER, WRONG_KEY = sabir.errors.Overloaded("later"), sabir.errors.AuthenticationFailed("wrong key")


class Stage:
    """The actor of one phase, `t1/<phase>`, with its agents, `t1/agents`."""

    def __init__(self, *answers: Scriptable, phase: str = "action", **how: Any) -> None:
        self.sent: list[Message | Response] = []
        self.llm = ScriptedAdapter(*answers, settings=ONCE)
        how = {"restarts": AT_ONCE, "options": [web_search], "trace": self.sent.append, **how}
        self.system = ActorSystem(MODEL, adapters=lambda _: self.llm, **how)
        self.agents = AgentManagerActor("t1/agents", self.system, Session())
        self.name = f"t1/{phase}"
        self.actor = PhaseActor(self.name, self.system, AEIOUY_CHAIN, AEIOUY_CHAIN.phase(phase), self.agents)
        self.agents.add_agent(self.name, Agent(AgentConfig(model=MODEL)))
        self.phase = phase

    async def __aenter__(self) -> "Stage":
        await self.system.__aenter__()
        self.system.add(self.agents)
        self.system.add(self.actor)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.system.stop()

    async def asked(self, message_type: str, **data: Any) -> Response:
        given = {"thread_id": "t1", "phase_type": self.phase, **data}
        return await self.system.send_message(ask(message_type, self.name, **given))

    async def run(self, **context: Any) -> Response:
        return await self.asked("PROCESS_PHASE", input="Hello, world!", context=context)

    def types(self) -> list[str]:
        return [each.type for each in self.sent]


@sabir.option
def web_search(query: str) -> str:
    return "found"


async def test_a_phase_is_configured_or_refuses() -> None:  # CH-24
    async with Stage(said()) as stage:
        wrong = await stage.asked("INITIALIZE_PHASE", config={"model": MODEL, "tools": ["no_such"]})
        assert failed(wrong)[0] == "INVALID_CONFIG" and "no_such" in failed(wrong)[1]
        config = {"model": "openai:gpt-4o", "temperature": 0.7, "max_tokens": 1000, "tools": ["web_search"]}
        response = await stage.asked("INITIALIZE_PHASE", config=config)
        assert response.type == "PHASE_INITIALIZED"
        assert response.data == {"phase_type": "action", "status": "ready", "agent_id": "t1/action"}
        await stage.run()
        assert stage.llm.last.settings.temperature == 0.7 and stage.llm.last.option_names == ("web_search",)


class TestContext:  # CH-25
    async def test_the_documents_example(self) -> None:
        async with Stage(phase="experience") as stage:
            config = {"model": MODEL, "tools": ["web_search"]}
            await stage.asked("INITIALIZE_PHASE", config=config)
            before = {"response": "I'll help you with that.", "next_phase": "experience", "confidence": 0.95}
            turns = [
                {"role": "user", "content": "Hello, world!"},
                {"role": "assistant", "content": "I'll help you with that."},
            ]
            metadata = {"user_id": "user123", "session_id": "session456"}
            said = {"previous_phase_output": before, "conversation_history": turns, "metadata": metadata}
            response = await stage.asked("PREPARE_CONTEXT", **said)
        assert response.type == "CONTEXT_PREPARED"
        assert (response.data["thread_id"], response.data["phase_type"]) == ("t1", "experience")
        context = response.data["context"]
        first, *others = context["messages"]
        assert first["role"] == "system" and first["content"].startswith("You are the experience phase")
        assert others == turns and context["tools"] == ["web_search"] and context["metadata"] == metadata

    async def test_what_the_phase_before_said_is_told_where_the_conversation_lacks_it(self) -> None:
        async with Stage() as stage:
            turns = [{"role": "user", "content": "Hello!"}]
            response = await stage.asked(
                "PREPARE_CONTEXT", previous_phase_output={"response": "Hm."}, conversation_history=turns
            )
        assert response.data["context"]["messages"][1:] == [*turns, {"role": "assistant", "content": "Hm."}]

    @pytest.mark.parametrize(
        "context",
        [
            {"conversation_history": [{"role": "robot", "content": "x"}]},
            {"conversation_history": "Hello"},
            {"previous_phase_output": "Hello"},
            {"metadata": ["x"]},
        ],
    )
    async def test_a_context_that_is_none_is_the_senders_error(self, context: dict[str, Any]) -> None:  # CH-13
        async with Stage() as stage:
            assert failed(await stage.run(**context))[0] == "INVALID_MESSAGE"
            assert "ERROR_NOTIFICATION" not in stage.types() and stage.llm.sent == ()


class TestRuns:  # CH-22, CH-23, CH-31
    @pytest.mark.parametrize("phase", ["yield", "reflection"])
    async def test_another_phase_is_refused(self, phase: str) -> None:
        async with Stage() as stage:
            response = await stage.asked("PROCESS_PHASE", phase_type=phase, input="Hello")
        assert failed(response)[0] == "INVALID_MESSAGE" and phase in failed(response)[1]

    async def test_an_agent_that_is_watched_is_streamed(self) -> None:
        async with Stage(said(), watch=lambda message, event: None) as stage:
            await stage.run()
        assert stage.llm.last.streaming


class TestRetries:  # CH-48, CH-49
    async def test_what_a_retry_may_mend_is_tried_as_often_as_restarts_are_allowed(self) -> None:
        async with Stage(always(LATER)) as stage:
            response = await stage.run()
        assert failed(response) == ("AGENT_ERROR", "later") and response.data["cause"] == "Overloaded"
        assert len(stage.llm.sent) == AT_ONCE.limit + 1 == 4
        assert stage.types().count("RESTART") == stage.types().count("RETRY") == 3
        actions = [each.data["action_taken"] for each in stage.sent if each.type == "ERROR_ACKNOWLEDGED"]
        assert actions == ["restart"] * 3 + ["escalate"]

    async def test_without_a_supervisor_nothing_is_retried(self) -> None:
        async with Stage(always(LATER)) as stage:
            stage.system.supervisor_id = None
            assert failed(await stage.run())[0] == "AGENT_ERROR"
        assert len(stage.llm.sent) == 1


class TestEnds:
    async def test_a_phase_that_is_too_late(self) -> None:  # CH-42
        gate = Gate()
        async with Stage(delayed("late", gate), said("Now.")) as stage:
            stage.actor._longest = 0.05
            assert failed(await stage.run())[0] == "TIMEOUT"
            await stage.agents.drained()
            errors = {each.sender: each.data["error_code"] for each in stage.sent if each.type == "ERROR"}
            assert errors == {"t1/agents": "STOPPED", "t1/action": "TIMEOUT"}
            gate.open()
            message = ask("PROCESS_WITH_AGENT", "t1/agents", input="Hello")
            assert (await stage.system.send_message(message)).data["result"]["response"] == "Now."

    async def test_a_phase_that_is_given_up_before_a_restart(self) -> None:
        """Nobody waits for the pause any more, and nobody is restarted."""
        policy = RestartPolicy(first_pause=600, longest_pause=600)
        async with Stage(always(LATER), restarts=policy) as stage:
            running = asyncio.ensure_future(stage.run())
            while "ERROR_NOTIFICATION" not in stage.types():
                await asyncio.sleep(0)
            stage.actor.interrupt()
            assert failed(await running)[0] == "STOPPED"
            async with asyncio.timeout(20):
                await stage.system.get_actor("supervisor").drained()
        assert "RESTART" not in stage.types()
