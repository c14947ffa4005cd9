"""One turn through an adapter: on doubles, on recorded exchanges of real wires, and around a session (LA-55)."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir.errors import RenderingRefused
from sabir.vocabulary.messages import Message, PartsPayload
from sabir.vocabulary.parts import MediaPart, ReasoningPart, TextPart
from sabir_roles import ActionRequest, ActionResponse, AssistantResponse, Instruction, MessageManager, System
from sabir_session import get_inner_messages
from sabir_session.evaluation.evaluate import evaluate_sync
from sabir_testing.cassettes import replaying
from sabir_testing.kit.questions import QUESTIONS
from sabir_testing.network import network_forbidden
from sabir_testing.scripted import ScriptedAdapter, calls, cut_off, reply

from tests.conformance.suites import AnthropicMessages, GoogleGenerateContent, OpenAIChat, OpenAIResponses
from tests.roles.support import asked_and_answered
from tests.session.journals import ListJournal, session_of
from tests.session.towns import Stopped, Town

Ask = Callable[[MessageManager, sabir.Adapter], object]
VIDEO = MediaPart(modality="video", url="https://example.org/a.mp4")


class City(BaseModel):
    """Where it is."""

    city: str


def weather(city: str) -> str:
    """Current weather in a city."""
    return f"rain in {city}"


async def tide(city: str) -> str:
    """The tide in a city."""
    return f"low in {city}"


def complete(manager: MessageManager, llm: sabir.Adapter) -> None:
    asyncio.run(manager.complete(llm))


def complete_sync(manager: MessageManager, llm: sabir.Adapter) -> None:
    manager.complete_sync(llm)


def stream(manager: MessageManager, llm: sabir.Adapter) -> None:
    async def read() -> None:
        async with manager.stream(llm) as stream:
            assert "".join([text async for text in stream.text]) == "It rains."

    asyncio.run(read())


def stream_sync(manager: MessageManager, llm: sabir.Adapter) -> None:
    with manager.stream_sync(llm) as stream:
        assert "".join(stream.text) == "It rains."


def stream_unread(manager: MessageManager, llm: sabir.Adapter) -> None:
    with manager.stream_sync(llm) as stream:
        next(iter(stream.text))


each_way = pytest.mark.parametrize("ask", [complete, complete_sync, stream, stream_sync, stream_unread])


@each_way
def test_a_turn_sends_what_is_here_and_adds_the_reply(ask: Ask) -> None:
    """Whole or as it comes; what is left of a stream is read when the block ends."""
    manager, llm = asked_and_answered(), ScriptedAdapter("It rains.")
    before = manager.to_messages()

    ask(manager, llm)

    assert llm.last.messages == tuple(before)
    assert manager.last_response is manager.messages[-1]
    assert manager.last_response.response == "It rains."
    assert len(manager) == len(before) + 1
    assert all(was is now for was, now in zip(before, manager.to_messages(), strict=False))


@each_way
@pytest.mark.parametrize("answer", [sabir.RateLimited("not now"), cut_off("It rains")])
def test_a_turn_that_fails_adds_nothing(ask: Ask, answer: Any) -> None:
    """Before the first word, or in the middle of the answer."""
    manager = asked_and_answered()
    stored = manager.to_dict()
    with pytest.raises(sabir.CallError):
        ask(manager, ScriptedAdapter(answer, settings=sabir.Settings(retries=0)))

    assert manager.to_dict() == stored


def test_a_block_that_is_left_by_an_error_adds_nothing() -> None:
    """Of both streams."""
    manager = asked_and_answered()
    stored = manager.to_dict()

    async def left() -> None:
        async with manager.stream(ScriptedAdapter("It rains.")):
            raise KeyError("mine")

    with pytest.raises(KeyError):
        asyncio.run(left())
    with pytest.raises(KeyError), manager.stream_sync(ScriptedAdapter("It rains.")):
        raise KeyError("mine")
    assert manager.to_dict() == stored


def test_what_an_edit_lost_stands_before_what_the_wire_loses() -> None:
    """In the losses of the reply, of both calls; those of an edit that comes later are not among them."""
    spoken = Message(policy="llm", payload=PartsPayload(parts=(ReasoningPart(text="hm"), TextPart(text="rain"))))
    shown = Message(policy="user", payload=PartsPayload(parts=(TextPart(text="look"), VIDEO)))
    manager = MessageManager.from_messages([sabir.user("hi"), spoken, shown])
    assert manager.last_response is not None
    manager.last_response.response = "sun"

    def edits(sent: object) -> str:
        manager.instructions[0].update(instruction="changed meanwhile")
        manager.assistant_responses[0].response = "gone"
        return "It rains."

    ways: list[Callable[[sabir.Adapter], sabir.Reply]] = [
        lambda llm: manager.complete_sync(llm),
        lambda llm: asyncio.run(manager.complete(llm)),
    ]
    for ask in ways:
        lost, sent = manager.losses, manager.to_messages()
        found = ask(ScriptedAdapter(edits, model="openai.chat:gpt-5"))
        assert found.losses[: len(lost)] == lost
        assert lost[0].message_id == sent[1].id
        assert [loss.kind for loss in found.losses[len(lost) :]] == ["downgraded"]
        assert found.losses[-1].message_id == shown.id
        manager.assistant_responses[0].response = "sun again"


def test_strict_refuses_what_the_wire_loses_and_adds_nothing() -> None:
    """What the program itself edited is no reason to refuse."""
    spoken = Message(policy="llm", payload=PartsPayload(parts=(ReasoningPart(text="hm"), TextPart(text="rain"))))
    manager = MessageManager.from_messages([sabir.user("hi"), spoken])
    assert manager.last_response is not None
    manager.last_response.response = "sun"
    llm = ScriptedAdapter("It rains.", model="openai.chat:gpt-5")

    assert [loss.kind for loss in manager.complete_sync(llm, strict=True).losses] == ["dropped"]
    manager.add_reply(reply_of(VIDEO))
    stored = manager.to_dict()
    with pytest.raises(RenderingRefused, match="video"):
        manager.complete_sync(llm, strict=True)
    assert manager.to_dict() == stored


def reply_of(*parts: Any) -> sabir.Reply:
    """A reply of those parts."""
    return ScriptedAdapter(reply("see", *parts)).complete_sync("hi")


def test_the_form_that_the_last_instruction_asks_for_goes_along() -> None:
    """As a setting, also of a loaded manager; what the call sets is laid over it, and a later instruction's holds."""
    manager = MessageManager()
    manager.add_message(instruction="Where is it?", request_model=City)
    loaded = MessageManager.from_dict(json.loads(json.dumps(manager.to_dict())))
    llm = ScriptedAdapter(*['{"city": "Paris"}'] * 5)

    assert manager.complete_sync(llm).parse(City) == City(city="Paris")
    manager.complete_sync(llm, settings=sabir.Settings(seed=7))
    manager.complete_sync(llm, settings=sabir.Settings(response_format={"type": "object"}))
    loaded.complete_sync(llm)
    manager.add_message(instruction="And?")
    manager.complete_sync(llm)

    forms = [sent.settings.response_format for sent in llm.sent]
    asked = sabir.Settings(response_format=City).response_format
    assert asked is not None
    assert forms[:2] == [asked, asked]
    assert llm.sent[1].settings.seed == 7
    assert forms[2] == sabir.Settings(response_format={"type": "object"}).response_format
    assert forms[3] is not None
    assert forms[3].schema_view == asked.schema_view
    assert forms[4] is None


async def test_requests_are_answered_by_their_options() -> None:
    """In order, all that wait, and once; what is not offered gets an error; core's own loop, in ten lines."""
    manager = MessageManager([Instruction.create("Umbrella?")])
    llm = ScriptedAdapter(calls(weather={"city": "Paris"}, tide={"city": "Brest"}, sun={}), "Take one.")
    first = await manager.complete(llm, options=[weather, tide])
    added = await manager.act([weather, tide])

    assert [each.output for each in added][:2] == ["rain in Paris", "low in Brest"]
    assert "error" in added[2].output
    assert [type(each) for each in manager] == [Instruction, *[ActionRequest] * 3, *[ActionResponse] * 3]
    for request, response in zip(manager.action_requests, added, strict=True):
        assert (request.action_response_id, response.action_request_id) == (response.id, request.id)
        assert response.arguments == request.arguments
    assert await manager.act([weather]) == []
    assert manager.to_messages()[1:4] == list(first.messages)
    assert (await manager.complete(llm, options=[weather, tide])).text == "Take one."
    assert [result.invocation_id for result in llm.last.results] == [each.invocation_id for each in first_calls(first)]


def first_calls(reply: sabir.Reply) -> Iterator[Any]:
    return (each.call for each in reply.option_calls)


def test_acting_waits_or_refuses_what_cannot_run() -> None:
    """Before anything runs: nothing is added."""
    ran: list[str] = []

    def note(city: str) -> str:
        """Notes a city."""
        ran.append(city)
        return city

    manager = MessageManager()
    manager.add_message(action_function="note", action_arguments={"city": "Rome"})
    manager.add_message(action_function="tide", action_arguments={"city": "Brest"})
    stored = manager.to_dict()
    with pytest.raises(sabir.SabirError):
        manager.act_sync([note, tide])
    assert (ran, manager.to_dict()) == ([], stored)

    assert manager.act_sync([note])[0].output == "Rome"
    assert ran == ["Rome"]


SUITES: dict[str, Any] = {
    "openai.chat": OpenAIChat,
    "openai.responses": OpenAIResponses,
    "anthropic.messages": AnthropicMessages,
    "google.generate_content": GoogleGenerateContent,
}
RECORDED = ("text", "multi_turn", "system", "option_call", "parallel_calls", "option_result", "option_error", "image",
            "reasoning", "reasoning_loop")  # fmt: skip
CASES = [
    pytest.param(suite, cassette.stem, id=f"{wire}-{cassette.stem}")
    for wire, suite in SUITES.items()
    for name in RECORDED
    for cassette in sorted(suite.cassettes.glob(f"{name}*.yaml"))
    if cassette.stem.removesuffix("_streamed") == name
]


@pytest.mark.parametrize(("suite", "name"), CASES)
def test_a_manager_sends_what_was_recorded_and_reads_the_answer(suite: Any, name: str) -> None:
    """The cassette answers no other request; loops go on with the reasoning that came, and the JSON in between."""
    question, is_stream = QUESTIONS[name.removesuffix("_streamed")], name.endswith("_streamed")
    manager, history = MessageManager.from_messages(question.messages), list(question.messages)
    own = suite.settings.get(name.removesuffix("_streamed"), sabir.Settings())
    how: Any = {"settings": own.laid_over(question.settings), "options": question.options}
    with network_forbidden(), replaying(suite.cassettes / f"{name}.yaml"):
        while True:
            manager = MessageManager.from_dict(json.loads(json.dumps(manager.to_dict())))
            if is_stream:
                with manager.stream_sync(suite.adapter, **how) as stream:
                    found = stream.reply()
            else:
                found = manager.complete_sync(suite.adapter, **how)
            history += found.messages
            assert manager.to_messages() == history
            if not (question.answers_calls and found.option_calls):
                break
            manager.act_sync(question.options)
            history = manager.to_messages()


def session_s_messages(journal: ListJournal) -> list[Message]:
    """What a session holds of a conversation, in order."""
    return [message for record in get_inner_messages(session_of(journal)) for message in record.messages]


def test_a_conversation_is_recorded_and_resumes_around_a_session() -> None:
    """The record is of the immutable messages; the working copies are made again of it."""
    manager = MessageManager(system=System.create("Be brief."))
    manager.add_message(instruction="Umbrella today?")
    prompt = manager.to_messages()
    journal, town = ListJournal(), Town(stops="Rome")
    llm = ScriptedAdapter(calls(weather=[{"city": "Paris"}, {"city": "Rome"}]), "Take one.")
    with pytest.raises(Stopped):
        evaluate_sync(llm, prompt, session=session_of(journal), options=[town.weather])

    again = Town()
    response = evaluate_sync(llm, prompt, session=session_of(journal), options=[again.weather], resume=True)
    restored = MessageManager.from_messages(session_s_messages(journal))

    assert len(town.ran) == len(again.ran) == 1
    assert restored.to_messages() == list(response.messages)
    assert restored.to_messages()[:2] == prompt
    kinds = [System, Instruction, ActionRequest, ActionRequest, ActionResponse, ActionResponse, AssistantResponse]
    assert [type(each) for each in restored] == kinds
    assert [each.output for each in restored.action_responses] == ["rain in Paris", "rain in Rome"]
    assert all(each.is_responded() for each in restored.action_requests)
    assert restored.losses == ()
