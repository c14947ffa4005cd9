"""Agents: models, options, settings and fields of a configuration, results, adapters (CH-26 … CH-31, CH-40, CH-48)."""

import asyncio
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir import RefusalPart, Settings
from sabir_actors import (
    ActorSystem,
    AgentManagerActor,
    Chain,
    Message,
    Phase,
    PhaseReply,
    Response,
    ThreadClient,
    ThreadView,
)
from sabir_actors.agents import Agent
from sabir_actors.data import SETTINGS, AgentConfig
from sabir_actors.state import ThreadEvent
from sabir_session import Session
from sabir_session.state.codec import now
from sabir_testing.scripted import Gate, Scriptable, ScriptedAdapter, always, calls, delayed, reply

from tests.actors.support import MODEL, Hall, Model, ask, failed, said, system_of, tell

PLAY = [{"role": "user", "content": "Hello, world!"}, {"role": "assistant", "content": "I'll help you with that."}]


@sabir.option
def calculator(question: str) -> int:
    return len(question)


@sabir.option
def broken_search(query: str) -> str:
    raise ConnectionError("no network")


@sabir.option
def notes(about: str) -> list[sabir.Message]:
    return [sabir.user(f"About {about}: "), sabir.user("nothing.")]


@sabir.option
def picture(of: str) -> list[object]:
    return [of, sabir.image("https://example.com/sky.png")]


OPTIONS = (calculator, broken_search, notes, picture)


class Desk:
    """A system with one manager, `agents`, of one agent, `a1`, and the models that it was asked for."""

    def __init__(self, *answers: Scriptable, model: str = MODEL, **how: Any) -> None:
        self.llm = ScriptedAdapter(*answers, model="openai:gpt-4o")
        self.asked_for: list[str] = []
        self.system = ActorSystem(model, options=OPTIONS, adapters=self.adapter, **how)
        self.manager = AgentManagerActor("agents", self.system, Session())
        self.system.add(self.manager)
        self.agent()

    def adapter(self, model: str) -> ScriptedAdapter:
        self.asked_for.append(model)
        if model.startswith("nope"):
            raise sabir.errors.ProviderMissing("no such provider")
        return self.llm

    def agent(self, output: type[BaseModel] = PhaseReply, **config: Any) -> None:
        self.manager.add_agent("a1", Agent(AgentConfig(model=MODEL, **config), output))

    async def answer(self, text: str = "Hello", **data: Any) -> Response:
        return await self.system.send_message(ask("INVOKE_AGENT", "agents", agent_id="a1", input=text, **data))


def body(desk: Desk) -> dict[str, Any]:
    found: Any = desk.llm.last.rendering.body
    return dict(found)


async def test_an_unknown_agent() -> None:
    message = ask("INVOKE_AGENT", "agents", agent_id="nobody", input="Hello")
    assert failed(await Desk().system.send_message(message))[0] == "UNKNOWN_AGENT"


class TestConfiguration:  # CH-24, CH-28, CH-30
    @pytest.mark.parametrize("wrong", [{"tools": ["web_search"]}, {"temperature": -1.0}, {"model": "nope:x"}])
    async def test_a_wrong_one_is_refused_and_the_former_stays(self, wrong: dict[str, Any]) -> None:
        desk = Desk(said())
        desk.agent(temperature=0.5)
        code, words = failed(
            await desk.system.send_message(ask("UPDATE_AGENT_CONFIG", "agents", agent_id="a1", config=wrong))
        )
        assert code == "INVALID_CONFIG" and next(iter(wrong)).rstrip("s").replace("tool", "option") in words
        await desk.answer()
        assert desk.llm.last.settings.temperature == 0.5

    async def test_an_update_holds_from_the_next_run_on(self) -> None:  # CH-28
        desk = Desk(said(), said())
        desk.agent(max_tokens=50)
        await desk.answer()
        config = {"model": "other:gpt", "system_prompt": "Help.", "temperature": 0.5, "tools": ["calculator"]}
        message = ask("UPDATE_AGENT_CONFIG", "agents", agent_id="a1", config=config)
        response = await desk.system.send_message(message)
        assert response.type == "AGENT_CONFIG_UPDATED"
        assert response.data == {"agent_id": "a1", "status": "updated"}
        await desk.answer()
        sent = desk.llm.last
        assert desk.asked_for == [MODEL, "other:gpt"] and sent.option_names == ("calculator",)
        assert (sent.settings.temperature, sent.settings.max_output_tokens) == (0.5, 50)
        assert sent.messages[0].text == "Help."


async def test_a_conversation_has_the_roles_that_the_document_writes() -> None:  # CH-25
    desk = Desk(said())
    turns = [{"role": "system", "content": "Be kind."}, *PLAY]
    await desk.answer("And now?", context={"messages": turns})
    inputs = [(each["role"], each["content"]) for each in body(desk)["input"]]
    shown = [(role, content if isinstance(content, str) else content[0]["text"]) for role, content in inputs]
    assert [text for _, text in shown] == ["Be kind.", "Hello, world!", "I'll help you with that.", "And now?"]
    assert [role for role, _ in shown[1:]] == ["user", "assistant", "user"] and shown[0][0] in ("system", "developer")


@pytest.mark.parametrize("turns", ["Hello", [{"role": "robot", "content": "Hi"}], [{"role": "user"}], [7]])
async def test_no_conversation_is_no_failure_of_the_actor(turns: object) -> None:
    desk = Desk()
    code, words = failed(await desk.answer(context={"messages": turns}))
    assert code == "INVALID_MESSAGE" and "the context's messages are invalid" in words and desk.llm.sent == ()


class TestResults:
    @pytest.mark.parametrize(
        ("text", "response", "confidence"),
        [
            (said("Yes.", 0.4), "Yes.", 0.4),
            (said("Yes."), "Yes.", None),
            ("Yes, surely.", "Yes, surely.", None),
            ('{"response": "Yes.", "confidence": 17}', "Yes.", None),
            ('{"response": "Yes.", "confidence": null}', "Yes.", None),
            ('{"answer": "Yes."}', '{"answer": "Yes."}', None),
        ],
    )
    async def test_confidence_is_the_models_or_none(self, text: str, response: str, confidence: float | None) -> None:
        desk = Desk(text)
        result = (await desk.answer()).data["result"]
        assert (result["response"], result["confidence"]) == (response, confidence)

    @pytest.mark.parametrize(
        ("answer", "cause"),
        [
            (reply(RefusalPart(text="I will not.")), "OutputRefused"),
            (reply("I will", finish_reason="content_filter"), "OutputRefused"),
            (reply("", finish_reason="length"), None),
        ],
    )
    async def test_a_reply_that_says_nothing_is_an_error(self, answer: Scriptable, cause: str | None) -> None:
        desk = Desk(answer)
        response = await desk.answer()
        assert failed(response)[0] == "AGENT_ERROR"
        assert (response.data.get("cause"), response.data["retryable"]) == (cause, False)


class Verdict(BaseModel):
    good: bool
    confidence: str = "high"


class TestOwnOutputs:
    async def test_the_reply_as_that_type(self) -> None:
        desk = Desk('{"good": true}')
        desk.agent(Verdict)
        result = (await desk.answer()).data["result"]
        assert result["output"] == {"good": True, "confidence": "high"}
        assert Verdict.model_validate_json(result["response"]).good and result["confidence"] is None
        assert "good" in str(body(desk)["text"])

    async def test_a_reply_of_another_type_is_an_error_that_no_retry_mends(self) -> None:
        desk = Desk("surely")
        desk.agent(Verdict)
        response = await desk.answer()
        assert failed(response)[0] == "AGENT_ERROR" and "Verdict" in failed(response)[1]
        assert (response.data["cause"], response.data["retryable"]) == ("OutputInvalid", False)


class TestFailures:  # CH-40, CH-48
    async def test_the_time_that_a_provider_names_is_told(self) -> None:
        error = sabir.RateLimited("slower", retry_after=7.0)
        desk = Desk(error, settings=Settings(retries=sabir.RetryPolicy(attempts=1)))
        assert (await desk.answer()).data["retry_after"] == 7.0

    async def test_an_agents_result_shows_what_its_options_returned(self) -> None:  # D-44
        asked = [calls(calculator={"question": "1+1"}, notes={"about": "Rome"}, picture={"of": "Sky"})]
        desk = Desk(*asked, said())
        desk.agent(tools=["calculator", "notes", "picture"])
        results = [each["result"] for each in (await desk.answer()).data["result"]["tool_calls"]]

        assert results[:2] == [3, "About Rome: nothing."]
        assert [part.get("text") or part["url"] for part in results[2]] == ["Sky", "https://example.com/sky.png"]

    async def test_a_retry_repeats_no_option_that_is_done(self) -> None:
        desk = Desk(
            calls(calculator={"question": "1+1"}),
            sabir.errors.ServerFailed("oh"),
            said("2"),
            settings=Settings(retries=sabir.RetryPolicy(attempts=1)),
        )
        desk.agent(tools=["calculator"])
        message = ask("INVOKE_AGENT", "agents", "m1", agent_id="a1", input="1+1?")
        assert failed(await desk.system.send_message(message))[0] == "AGENT_ERROR"
        retry = ask("RETRY", "agents", original_message_id="m1", attempt=2, max_attempts=2)
        response = await desk.system.send_message(retry)
        assert (response.type, response.data["result"]["response"]) == ("AGENT_INVOKED", "2")
        assert [each.result for each in desk.llm.last.results] == [3] and len(desk.llm.sent) == 3


class Closing(ScriptedAdapter):
    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


class Shop:
    """A system with two managers of one agent each, and the adapters that were made for them."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.made: list[Closing] = []
        self.system = ActorSystem(MODEL, adapters=self.adapter)
        for name in ("one", "two"):
            manager = AgentManagerActor(name, self.system)
            manager.add_agent("a1", Agent(AgentConfig(model=MODEL)))
            self.system.add(manager)

    def adapter(self, _: str) -> Closing:
        self.made.append(Closing(always(said()) if self.made else always(delayed(said(), self.gate))))
        return self.made[-1]

    async def answer(self, manager: str) -> Response:
        return await self.system.send_message(ask("PROCESS_WITH_AGENT", manager, input="Hello"))

    def closed(self) -> list[int]:
        return [each.closed for each in self.made]


class TestAdapters:
    """Agents of all threads ask by one adapter for each model; nobody's is closed while he asks."""

    async def test_a_restart_makes_a_new_one_and_leaves_others_theirs(self) -> None:
        """The old one is closed when the last who used it gives it back."""
        shop = Shop()
        asked = asyncio.ensure_future(shop.answer("two"))
        await shop.gate.reached()
        await shop.system.send_message(ask("RESTART", "one", actor_id="one"))
        assert (await shop.answer("one")).type == "AGENT_RESPONSE" and shop.closed() == [0, 0]
        shop.gate.open()
        assert (await asked).type == "AGENT_RESPONSE" and shop.closed() == [0, 0]
        await shop.system.send_message(ask("RESTART", "two", actor_id="two"))
        assert shop.closed() == [1, 0] and (await shop.answer("two")).type == "AGENT_RESPONSE"
        assert len(shop.made) == 2
        await shop.system.stop()
        assert shop.closed() == [1, 1]

    async def test_agents_that_are_stopped_finish_what_they_are_asked(self) -> None:
        shop = Shop()
        asked = asyncio.ensure_future(shop.answer("one"))
        await shop.gate.reached()
        await shop.system.send_message(ask("STOP", "one", actor_id="one"))
        stopping = asyncio.ensure_future(shop.system.stop())
        await asyncio.sleep(0)
        assert shop.closed() == [0] and not stopping.done()
        shop.gate.open()
        assert (await asked).type == "AGENT_RESPONSE"
        await stopping
        assert shop.closed() == [1]


UNKNOWN = ("max_output_token", "settings", "instructions", "response_format", "modell")
VALUES: dict[str, Any] = {
    "max_output_tokens": 2, "temperature": 0.5, "top_p": 0.25, "stop": ["END"], "seed": 7, "reasoning_effort": "low",
    "option_choice": "none", "parallel_options": False, "timeout": 9.0, "idle": 8.0, "total": 7.0, "prompt_cache": "5m",
    "bounds": {"body_bytes": 4096}, "retries": 5, "media_labels": False, "unsupported_media": "drop",
    "vendor": {"scripted": {"a": 1}}, "extra_body": {"b": 2}, "extra_body_for": {"scripted": {"c": 3}},
    "extra_headers": {"X-A": "1"}, "extra_headers_for": {"scripted": {"X-B": "2"}},
}  # fmt: skip
"""A value of each setting that a configuration may hold, other than its default."""
WRONG = {"max_output_tokens": 0, "top_p": 2, "retries": -1, "reasoning_effort": "loud", "extra_headers": {"X": 1}}


async def update(desk: Desk, **config: Any) -> Response:
    return await desk.system.send_message(ask("UPDATE_AGENT_CONFIG", "agents", agent_id="a1", config=config))


class TestFields:  # CH-28
    @pytest.mark.parametrize("name", UNKNOWN)
    async def test_unknown_configuration_fields_are_refused_by_name(self, name: str) -> None:  # CH-28
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
    async def test_every_setting_takes_effect(self, name: str) -> None:  # CH-28
        desk = Desk(said())
        assert (await update(desk, **{name: VALUES[name]})).data["status"] == "updated"
        await desk.answer()
        field = name if name in Settings.model_fields else f"{name}_json"
        assert getattr(desk.llm.last.settings, field) == getattr(Settings(**{name: VALUES[name]}), field)

    def test_no_setting_is_missing(self) -> None:  # CH-28
        assert set(VALUES) == SETTINGS

    @pytest.mark.parametrize("name", WRONG)
    async def test_invalid_values_are_refused_by_name(self, name: str) -> None:  # CH-28
        desk = Desk(said())
        assert name.replace("output_", "") in failed(await update(desk, **{name: WRONG[name]}))[1]
        await desk.answer()
        assert getattr(desk.llm.last.settings, name) == getattr(Settings(), name)
        async with system_of(Model()) as system:
            thread_id = await ThreadClient(system).create("u", "hi")
            system.threads.runs.queue = Hall().seat(performs=False)
            change: dict[str, Any] = {"agent_id": f"{thread_id}/action", "config": {name: WRONG[name]}}
            assert name.replace("output_", "") in failed(await tell(system, "UPDATE_AGENT_CONFIG", **change))[1]
            system.threads.runs.queue = None

    async def test_both_names_of_a_limit_are_one_setting(self) -> None:  # CH-28
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
    def test_a_journal_with_fields_that_had_no_effect_is_read(self, stored: dict[str, Any]) -> None:  # CH-28
        view, change = ThreadView(), {"phase_type": "action", "config": {"temperature": 0.5, **stored}}
        view.apply(ThreadEvent(what="agent_updated", at=now(), data=change))
        assert view.configs["action"][0].model_dump(exclude_unset=True) == {"temperature": 0.5}


class TestAgentOfTheSender:  # CH-27
    async def test_the_agent_of_the_senders_phase_answers(self) -> None:  # CH-27
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

    async def test_a_phase_without_an_agent_does_not_use_anothers(self) -> None:  # CH-27
        system = ActorSystem(adapters=lambda _: ScriptedAdapter(always(said())))
        manager = AgentManagerActor("t/agents", system)
        manager.add_agent("t/action", Agent(AgentConfig(model="m")))
        message = Message(type="PROCESS_WITH_AGENT", data={"input": "x"}, sender="t/yield")
        assert failed(await manager.receive(message))[0] == "UNKNOWN_AGENT"
        other = message.model_copy(update={"id": "other", "sender": "client"})
        assert (await manager.receive(other)).type == "AGENT_RESPONSE"
