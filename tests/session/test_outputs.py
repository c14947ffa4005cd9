"""An output has the type that was asked for, or the model is told why not and asked again."""

import asyncio
from typing import Any, Literal

import pytest
import sabir
from pydantic import BaseModel, Field
from sabir import RUNTIME
from sabir.errors import OutputRefused, OutputTruncated
from sabir_session import Conversation, OutputArrived, Prompt, Session, evaluate, evaluate_sync, unfinished_evaluations
from sabir_testing.scripted import ScriptedAdapter, calls, pieces, reply


class Trip(BaseModel):
    """A journey."""

    city: str
    days: int = Field(ge=1)


class Hotel(BaseModel):
    """A place to sleep."""

    name: str


ROME = '{"city": "Rome", "days": 3}'
TRIP = {"city": "Rome", "days": 3}
FORMS: list[tuple[Any, str, Any]] = [
    (Trip, ROME, Trip(city="Rome", days=3)),
    (Trip | Hotel, '{"value": {"name": "Ritz"}}', Hotel(name="Ritz")),
    (Trip | Hotel, f'{{"value": {ROME}}}', Trip(city="Rome", days=3)),
    (Trip | None, '{"value": null}', None),
    (list[Trip], f'{{"value": [{ROME}]}}', [Trip(city="Rome", days=3)]),
    (list[Trip], f"[{ROME}]", [Trip(city="Rome", days=3)]),  # as models write it that hold to no schema
    (int, '{"value": 7}', 7),
    (Literal["yes", "no"], '{"value": "no"}', "no"),
    (dict[str, int], '{"value": {"a": 1}}', {"a": 1}),
]
NO_SCHEMA = "deepseek:deepseek-chat"
"""A model that is held to JSON, and to no schema."""


@pytest.mark.parametrize(("form", "said", "output"), FORMS)
def test_every_form_of_type_is_asked_for_and_read(form: Any, said: str, output: Any) -> None:
    """Vendors take objects only, so that every other type is wrapped in one and unwrapped."""
    llm = ScriptedAdapter(said)
    assert Conversation(llm).ask_sync("?", output=form).output == output
    assert llm.last.settings.response_format is not None
    assert llm.last.settings.response_format.schema_view["type"] == "object"


@pytest.mark.parametrize(("form", "said", "output"), [each for each in FORMS if each[1].startswith("{")])
def test_a_model_without_schemas_gives_it_by_a_call(form: Any, said: str, output: Any) -> None:
    """It must choose an option; the call has its result, ends the question, and needs nobody's approval."""
    arguments = sabir.authoring.decode_json(said)
    llm = ScriptedAdapter(calls(final_answer=arguments), "Goodbye.", model=NO_SCHEMA)
    chat = Conversation(llm, approve=lambda call: "deny")
    answer = chat.ask_sync("?", output=form)

    assert answer.output == output
    assert (llm.sent[0].option_names, llm.sent[0].settings.option_choice) == (("final_answer",), "required")
    assert llm.sent[0].settings.response_format is None
    assert (len(llm.sent), chat.unfinished, chat.messages[-1].kind) == (1, False, "option_result")
    assert chat.ask_sync("Bye.").text == "Goodbye."


def test_an_output_that_does_not_fit_is_asked_again() -> None:
    """With every fault, by a message of the runtime, which belongs to the question's turn."""
    llm = ScriptedAdapter('{"days": 0}', "no JSON", ROME)
    chat = Conversation(llm)
    answer = chat.ask_sync("As a trip.", output=Trip)

    assert (answer.output.city, len(answer.replies)) == ("Rome", 3)
    told = [message.text for message in chat.messages if message.policy == RUNTIME]
    assert "city: " in told[0] and "days: " in told[0]
    assert "JSON" in told[1]
    assert len(chat.drop_last()) == 6


@pytest.mark.parametrize("model", ["scripted:model", NO_SCHEMA])
def test_retries_bound_it(model: str) -> None:
    """The error has the last reply; what was said stays, and the next question is asked."""
    bad: Any = "{}" if model != NO_SCHEMA else calls(final_answer={})
    llm = ScriptedAdapter(bad, bad, "Well.", model=model)
    chat = Conversation(llm, retries=1)
    with pytest.raises(sabir.OutputInvalid) as met:
        chat.ask_sync("As a trip.", output=Trip)

    assert met.value.reply.finish_reason in ("stop", "option_calls")
    assert len(llm.sent) == 2
    assert chat.ask_sync("And?").text == "Well."


def test_a_refusal_and_a_cut_off_answer_are_not_asked_again() -> None:
    """Asking again would give the same."""
    for said, error in (
        (reply(sabir.RefusalPart(text="No.")), OutputRefused),
        (reply('{"city": "Ro', finish_reason="length"), OutputTruncated),
    ):
        llm = ScriptedAdapter(said)
        with pytest.raises(error):
            evaluate_sync(llm, Prompt(messages=[sabir.user("?")], output=Trip))


@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_validator_may_refuse_or_better_it(is_awaited: bool) -> None:
    """By a ValueError, whose text the model is told; what it returns is the output, None keeps the model's."""

    def near(trip: Trip) -> Trip | None:
        if trip.city == "Rome":
            raise ValueError("Rome is too far")
        return None if trip.days == 1 else trip.model_copy(update={"days": 1})

    async def later(trip: Trip) -> Trip | None:
        await asyncio.sleep(0)
        return near(trip)

    llm = ScriptedAdapter(ROME, '{"city": "Bern", "days": 2}')
    prompt = Prompt(messages=[sabir.user("?")], output=Trip)
    if is_awaited:
        response = asyncio.run(evaluate(llm, prompt, output_validator=later))
    else:
        response = evaluate_sync(llm, prompt, output_validator=near)

    assert response.output == Trip(city="Bern", days=1)
    assert "Rome is too far" in llm.last.user_text


@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_function_is_called_with_what_the_model_gives(is_awaited: bool) -> None:
    """Its parameters are the schema, its return value the output; arguments it refuses are asked for again."""
    booked: list[str] = []

    def book(city: str, nights: int = 1) -> Hotel:
        """Book a hotel."""
        if nights > 3:
            raise ValueError("three nights at most")
        booked.append(city)
        return Hotel(name=f"{city} {nights}")

    async def reserve(city: str, nights: int = 1) -> Hotel:
        """Book a hotel."""
        return book(city, nights)

    llm = ScriptedAdapter('{"nights": 2}', '{"city": "Rome", "nights": 4}', '{"city": "Bern"}')
    chat = Conversation(llm)
    if is_awaited:
        hotel = asyncio.run(chat.ask("Book.", output=reserve)).output
    else:
        hotel = chat.ask_sync("Book.", output=book).output

    assert (hotel, booked) == (Hotel(name="Bern 1"), ["Bern"])
    assert llm.last.settings.response_format is not None
    assert llm.last.settings.response_format.description == "Book a hotel."


def test_an_output_grows_while_it_arrives() -> None:
    """From when it has what its type requires; the last is the whole one."""
    llm = ScriptedAdapter(pieces('{"value": [{"city": "Ro', 'me", "days": 3}, {"ci', 'ty": "Bern", "days": 1}]}'))
    with Conversation(llm).stream_sync("?", output=list[Trip]) as stream:
        grown = list(stream.outputs)
        assert stream.answer().output == grown[-1]
    assert [len(each) for each in grown] == sorted(len(each) for each in grown)
    assert [trip.city for trip in grown[-1]] == ["Rome", "Bern"]


def test_an_output_grows_by_a_call_too() -> None:
    """Its pieces are events of their own, for they are no text of the answer."""
    llm = ScriptedAdapter(calls(final_answer=TRIP), model=NO_SCHEMA)
    with Conversation(llm).stream_sync("?", output=Trip) as stream:
        events = list(stream)
    arrived = "".join(event.text for event in events if isinstance(event, OutputArrived))
    assert Trip.model_validate_json(arrived) == Trip(city="Rome", days=3)


def test_options_run_beside_the_call_that_gives_the_output() -> None:
    """All calls of the reply have their results, in whatever order they come."""
    ran: list[str] = []

    def note(text: str) -> None:
        """Take a note."""
        ran.append(text)

    both = reply(calls(final_answer=TRIP), calls(note={"text": "booked"}))
    chat = Conversation(ScriptedAdapter(both, model=NO_SCHEMA), options=[note])
    assert chat.ask_sync("?", output=Trip).output.city == "Rome"
    assert (ran, chat.unfinished, sabir.unanswered(chat.messages)) == (["booked"], False, [])


def test_a_finished_output_is_read_again_from_its_records() -> None:
    """Without a request; by text, and by a call."""
    for said, model in ((ROME, "scripted:m"), (calls(final_answer=TRIP), NO_SCHEMA)):
        session, prompt = Session(), Prompt(ns="a", key="b", messages=[sabir.user("?")], output=Trip)
        llm = ScriptedAdapter(said, model=model)
        evaluate_sync(llm, prompt, session=session)
        again = evaluate_sync(llm, prompt, session=session, resume=True)

        assert (again.output, len(llm.sent)) == (Trip(city="Rome", days=3), 1)
        assert unfinished_evaluations(session) == ()


def test_a_type_without_a_schema_is_refused_before_anything_is_asked() -> None:
    """By its name; a validator needs something to check."""
    llm = ScriptedAdapter()
    with pytest.raises(sabir.SettingsInvalid, match="has no JSON schema"):
        Conversation(llm, output=asyncio.Lock)
    with pytest.raises(sabir.SettingsInvalid, match="give output= too"):
        Conversation(llm, output_validator=print)
