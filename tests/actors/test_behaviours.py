"""Behaviours of the protocol's document, each test named after the id of its behaviour."""

import asyncio
from typing import Any

import pytest
from sabir import Settings
from sabir_actors import ActorSystem, AgentManagerActor, Chain, Message, Phase, Response, ThreadClient, ThreadView
from sabir_actors.agents import Agent
from sabir_actors.data import SETTINGS, AgentConfig
from sabir_actors.state import ThreadEvent
from sabir_session.state.codec import now
from sabir_testing import Gate, ScriptedAdapter, always

from tests.actors.support import Model, ask, failed, said, system_of, tell
from tests.actors.test_agents import Desk

UNKNOWN = ("max_output_token", "settings", "instructions", "response_format", "modell")
VALUES: dict[str, Any] = {
    "max_output_tokens": 2, "temperature": 0.5, "top_p": 0.25, "stop": ["END"], "seed": 7, "reasoning_effort": "low",
    "option_choice": "none", "parallel_options": False, "timeout": 9.0, "idle": 8.0, "total": 7.0,
    "bounds": {"body_bytes": 4096}, "retries": 5, "media_labels": False, "unsupported_media": "drop",
    "vendor": {"scripted": {"a": 1}}, "extra_body": {"b": 2}, "extra_body_for": {"scripted": {"c": 3}},
    "extra_headers": {"X-A": "1"}, "extra_headers_for": {"scripted": {"X-B": "2"}},
}  # fmt: skip
"""A value of each setting that a configuration may hold, other than its default."""
WRONG = {"max_output_tokens": 0, "top_p": 2, "retries": -1, "reasoning_effort": "loud", "extra_headers": {"X": 1}}


async def update(desk: Desk, **config: Any) -> Response:
    return await desk.system.send_message(ask("UPDATE_AGENT_CONFIG", "agents", agent_id="a1", config=config))


class TestConfiguration:
    @pytest.mark.parametrize("name", UNKNOWN)
    async def test_unknown_configuration_fields_are_refused_by_name(self, name: str) -> None:
        desk = Desk(said())
        desk.agent(temperature=0.5)
        code, words = failed(await update(desk, temperature=0.25, **{name: {}}))
        assert code == "INVALID_MESSAGE" and repr(name) in words and "max_tokens" in words
        await desk.answer()
        assert desk.llm.last.settings.temperature == 0.5
        async with system_of(Model()) as system:
            thread_id = await ThreadClient(system).create("u", "hi")
            change: dict[str, Any] = {"agent_id": f"{thread_id}/action", "config": {name: 2}}
            assert repr(name) in failed(await tell(system, "UPDATE_AGENT_CONFIG", **change))[1]
            assert system.threads.view(thread_id).configs == {}
            first: dict[str, Any] = {"phase_type": "action", "config": {"model": "m", name: 2}}
            assert repr(name) in failed(await tell(system, "INITIALIZE_PHASE", **first))[1]

    @pytest.mark.parametrize("name", VALUES)
    async def test_every_setting_takes_effect(self, name: str) -> None:
        desk = Desk(said())
        assert (await update(desk, **{name: VALUES[name]})).data["status"] == "updated"
        await desk.answer()
        field = name if name in Settings.model_fields else f"{name}_json"
        assert getattr(desk.llm.last.settings, field) == getattr(Settings(**{name: VALUES[name]}), field)

    def test_no_setting_is_missing(self) -> None:
        assert set(VALUES) == SETTINGS

    @pytest.mark.parametrize("name", WRONG)
    async def test_invalid_values_are_refused_by_name(self, name: str) -> None:
        desk = Desk(said())
        assert name.replace("output_", "") in failed(await update(desk, **{name: WRONG[name]}))[1]
        await desk.answer()
        assert getattr(desk.llm.last.settings, name) == getattr(Settings(), name)
        async with system_of(Model()) as system:
            thread_id = await ThreadClient(system).create("u", "hi")
            system.threads.runs.queue = Asking()
            change: dict[str, Any] = {"agent_id": f"{thread_id}/action", "config": {name: WRONG[name]}}
            assert name.replace("output_", "") in failed(await tell(system, "UPDATE_AGENT_CONFIG", **change))[1]
            system.threads.runs.queue = None

    async def test_both_names_of_a_limit_are_one_setting(self) -> None:
        """The latest change holds; null unsets it, and a model cannot be unset."""
        desk = Desk(*[said()] * 4)
        limits = []
        for change in ({"max_tokens": 50}, {"max_output_tokens": 20}, {"max_tokens": 30}, {"max_tokens": None}):
            assert (await update(desk, **change)).data["status"] == "updated"
            await desk.answer()
            limits.append(desk.llm.last.settings.max_output_tokens)
        assert limits == [50, 20, 30, None]
        assert "max_tokens" in failed(await update(desk, max_tokens=1, max_output_tokens=2))[1]
        assert "model" in failed(await update(desk, model=None))[1]

    @pytest.mark.parametrize("stored", [{"loud": True}, {"top_p": 7}, {"model": None}])
    def test_a_journal_with_fields_that_had_no_effect_is_read(self, stored: dict[str, Any]) -> None:
        view, change = ThreadView(), {"phase_type": "action", "config": {"temperature": 0.5, **stored}}
        view.apply(ThreadEvent(what="agent_updated", at=now(), data=change))
        assert view.configs["action"][0].model_dump(exclude_unset=True) == {"temperature": 0.5}


class TestAgentOfTheSender:
    async def test_the_agent_of_the_senders_phase_answers(self) -> None:
        phases = [Phase(name, f"You are the {name} phase.", model=f"scripted:{name}") for name in ("one", "two")]
        model = Model()
        async with system_of(model, chains=[Chain("mine", phases)]) as system:
            client = ThreadClient(system)
            thread_id = await client.create("u", "hi", chain="mine")
            gates = [model.hold()]
            await client.start(thread_id)
            await gates[0].reached()
            gates.append(model.hold())
            gates[0].open()
            await gates[1].reached()
            model.gate = Gate()
            model.gate.open()
            manager = system.get_actor(f"{thread_id}/agents")
            message = Message(type="PROCESS_WITH_AGENT", data={"input": "x"}, receiver=manager.actor_id)
            senders = [f"{thread_id}/one", f"{thread_id}/two", "client"]
            answers = [
                asyncio.ensure_future(manager.receive(message.model_copy(update={"id": each, "sender": each})))
                for each in senders
            ]
            gates[1].open()
            first, second, third = await asyncio.gather(*answers)
            assert model.models[-2:] == ["scripted:one", "scripted:two"]
            assert [first.type, second.type] == ["AGENT_RESPONSE"] * 2
            assert failed(third)[0] == "UNKNOWN_AGENT" and "give agent_id" in failed(third)[1]

    async def test_a_phase_without_an_agent_does_not_use_anothers(self) -> None:
        system = ActorSystem(adapters=lambda _: ScriptedAdapter(always(said())))
        manager = AgentManagerActor("t/agents", system)
        manager.add_agent("t/action", Agent(AgentConfig(model="m")))
        message = Message(type="PROCESS_WITH_AGENT", data={"input": "x"}, sender="t/yield")
        assert failed(await manager.receive(message))[0] == "UNKNOWN_AGENT"
        other = message.model_copy(update={"id": "other", "sender": "client"})
        assert (await manager.receive(other)).type == "AGENT_RESPONSE"


class Asking:
    """A queue that performs no runs here."""

    performs = False

    async def open(self, perform: Any) -> None:
        """Give no runs."""

    async def put(self, thread_id: str, run: str) -> None:
        """Drop the run."""

    async def aclose(self) -> None:
        """Close nothing."""
