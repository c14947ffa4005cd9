"""An output has the type that was asked for, or the model is told why not and asked again."""

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest
import sabir
from pydantic import BaseModel, Field
from sabir import RUNTIME
from sabir.errors import OutputInvalid, OutputRefused, OutputTruncated
from sabir_session import (
    Conversation,
    OutputArrived,
    Prompt,
    ReplyArrived,
    Session,
    evaluate,
    evaluate_sync,
    unfinished_evaluations,
)
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
    if form is Trip:
        assert llm.last.settings.response_format.name == "Trip"


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
    llm = ScriptedAdapter('{"days": 0}', "not JSON", ROME)
    chat = Conversation(llm)
    answer = chat.ask_sync("As a trip.", output=Trip)

    assert (answer.output.city, len(answer.replies)) == ("Rome", 3)
    told = [message.text for message in chat.messages if message.policy == RUNTIME]
    assert "city: " in told[0] and "days: " in told[0]
    assert "JSON" in told[1]
    assert len(chat.drop_last()) == 6


@pytest.mark.parametrize("model", ["scripted:model", NO_SCHEMA])
def test_retries_bound_it(model: str) -> None:
    bad: Any = "{}" if model != NO_SCHEMA else calls(final_answer={})
    llm = ScriptedAdapter(bad, bad, "Well.", model=model)
    chat = Conversation(llm, retries=1)
    with pytest.raises(sabir.OutputInvalid) as met:
        chat.ask_sync("As a trip.", output=Trip)

    assert met.value.reply.finish_reason in ("stop", "option_calls")
    assert len(llm.sent) == 2
    assert ("by the option final_answer" in llm.last.user_text) == (model == NO_SCHEMA)
    assert chat.ask_sync("And?").text == "Well."


def test_a_refusal_and_a_cut_off_answer_are_not_asked_again() -> None:
    for said, error in (
        (reply(sabir.RefusalPart(text="No.")), OutputRefused),
        (reply('{"city": "Ro', finish_reason="length"), OutputTruncated),
    ):
        llm = ScriptedAdapter(said)
        with pytest.raises(error):
            evaluate_sync(llm, Prompt(messages=[sabir.user("?")], output=Trip))


@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_validator_may_refuse_or_better_it(is_awaited: bool) -> None:
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


class Report(BaseModel):
    """What was found."""

    title: str
    trips: list[Trip]
    notes: str = ""


def test_a_model_grows_in_its_lists_and_texts() -> None:
    """A text is there as far as it came, and so is the last item."""
    whole = f'{{"title": "Italy", "trips": [{ROME}, {ROME}], "notes": "Go by train."}}'
    llm = ScriptedAdapter(pieces(*(whole[at : at + 3] for at in range(0, len(whole), 3))))
    with Conversation(llm).stream_sync("?", output=Report) as stream:
        grown = [part.output for part in stream.outputs]
    assert {len(each.trips) for each in grown if each.trips} == {1, 2}
    assert len({each.notes for each in grown}) > 3
    assert grown[-1] == Report.model_validate_json(whole)


def test_an_output_grows_by_a_call_too() -> None:
    """Its pieces are events of their own, for they are no text of the answer."""
    llm = ScriptedAdapter(calls(final_answer=TRIP), model=NO_SCHEMA)
    with Conversation(llm).stream_sync("?", output=Trip) as stream:
        events = list(stream)
    arrived = "".join(event.text for event in events if isinstance(event, OutputArrived))
    assert Trip.model_validate_json(arrived) == Trip(city="Rome", days=3)


def test_options_run_beside_the_call_that_gives_the_output() -> None:
    ran: list[str] = []

    def note(text: str) -> None:
        ran.append(text)

    both = reply(calls(final_answer=TRIP), calls(note={"text": "booked"}))
    chat = Conversation(ScriptedAdapter(both, model=NO_SCHEMA), options=[note])
    assert chat.ask_sync("?", output=Trip).output.city == "Rome"
    assert (ran, chat.unfinished, sabir.unanswered(chat.messages)) == (["booked"], False, [])


def test_a_crash_beside_the_call_that_gives_the_output_leaves_the_question_unfinished() -> None:
    """Its result is recorded after all others, so that what ends the question is the last record."""

    def note(text: str) -> None:
        raise KeyboardInterrupt

    both = reply(calls(final_answer=TRIP), calls(note={"text": "booked"}))
    chat = Conversation(ScriptedAdapter(both, model=NO_SCHEMA), options=[note])
    with pytest.raises(KeyboardInterrupt):
        chat.ask_sync("?", output=Trip)
    assert (chat.unfinished, [message.kind for message in chat.messages][1:]) == (True, ["option_call", "option_call"])

    chat.options = [working(note)]
    assert (chat.ask_sync().output, chat.unfinished) == (Trip(**TRIP), False)


def test_a_call_that_gave_an_output_that_nobody_wants_any_more_is_no_obstacle(tmp_path: Path) -> None:
    """A crash between the call and its result, and a program that asks for no type: the model is told, and goes on."""
    llm = ScriptedAdapter(calls(final_answer=TRIP), "Well.", "Bye.", model=NO_SCHEMA)
    with Conversation(llm, keep=tmp_path / "c.db") as chat, chat.stream_sync("?", output=Trip) as stream:
        for event in stream:
            if isinstance(event, ReplyArrived):
                break
    chat = Conversation(llm, keep=tmp_path / "c.db")
    assert chat.unfinished
    assert chat.ask_sync("Bye.").text == "Bye."
    assert sabir.unanswered(chat.messages) == []
    chat.close()


def working(function: Any) -> sabir.Option:
    """An option of the same name that does not fail."""
    return sabir.Option.from_schema(function.__name__, "", {"type": "object"}, lambda **_: None)


def test_an_option_may_have_the_outputs_name_where_no_call_gives_it() -> None:
    def final_answer(text: str) -> str:
        return text

    chat = Conversation(ScriptedAdapter(calls(final_answer={"text": "so"}), ROME), options=[final_answer])
    assert (chat.ask_sync("?", output=Trip).output, len(chat.messages)) == (Trip(**TRIP), 4)
    llm = ScriptedAdapter(model=NO_SCHEMA)
    with pytest.raises(sabir.errors.OptionInvalid, match="rename your option of this name"):
        Conversation(llm, options=[final_answer]).ask_sync("?", output=Trip)
    assert llm.sent == ()


def test_a_call_of_that_name_that_nobody_wants_is_answered_as_any_other() -> None:
    chat = Conversation(ScriptedAdapter(calls(final_answer={"x": 1}), "Well."))
    assert chat.ask_sync("?").text == "Well."
    assert [message.result.error_type for message in chat.messages if message.result] == ["option_not_offered"]


def test_a_conversation_with_an_output_gives_plain_text_too() -> None:
    chat = Conversation(ScriptedAdapter(Trip(**TRIP), "Hello.", '{"value": 7}'), output=Trip)
    assert isinstance(chat.ask_sync("?").output, Trip)
    assert chat.ask_sync("Hi", output=None).output is None
    chat.output = int
    assert chat.ask_sync("How many?").output == 7  # type: ignore[comparison-overlap]


def test_what_cannot_make_an_output_is_refused_before_anything_is_asked() -> None:
    async def book(city: str) -> str:
        return city

    def pay(city: str, context: sabir.ToolContext) -> str:
        return city

    async def check(trip: Trip) -> None:
        """Check."""

    llm = ScriptedAdapter()
    for how in ({"output": book}, {"output": Trip, "output_validator": check}):
        with pytest.raises(sabir.SettingsInvalid, match="is a coroutine function; use the async method"):
            Conversation(llm).ask_sync("?", **how)
    with pytest.raises(
        sabir.errors.OptionInvalid, match="'pay' has the parameter 'context', whose type is available to options only"
    ):
        Conversation(llm, output=pay)
    assert llm.sent == ()


def test_a_function_that_is_broken_is_not_the_models_fault() -> None:
    """An error of ours is raised as it is, and no answer is paid for twice."""

    def book(city: str) -> str:
        raise sabir.SettingsInvalid("the desk has no key")

    llm = ScriptedAdapter('{"city": "Rome"}')
    with pytest.raises(sabir.SettingsInvalid, match="the desk has no key"):
        Conversation(llm).ask_sync("?", output=book)
    assert len(llm.sent) == 1


def test_an_object_around_a_wrong_value_is_no_value() -> None:
    """What was asked for as an object with a value is read as that, wherever it may also be read otherwise."""
    llm = ScriptedAdapter('{"value": {"a": "x"}}', '{"value": {"a": 1}}')
    assert Conversation(llm).ask_sync("?", output=dict[str, int]).output == {"a": 1}
    llm = ScriptedAdapter('{"value": 3}', '{"value": {"a": 1}}')
    assert Conversation(llm).ask_sync("?", output=dict[str, int]).output == {"a": 1}


async def test_half_a_number_is_none() -> None:
    """More digits may follow."""
    said = pieces('{"value": [1', "2, 3", "4]}")
    chat = Conversation(ScriptedAdapter(said, said))
    with chat.stream_sync("?", output=list[int]) as stream:
        assert [part.output for part in stream.outputs] == [[], [12], [12, 34]]
        assert stream.answer().output == [12, 34]
    async with chat.stream("?", output=list[int]) as awaited:
        assert [part.output async for part in awaited.outputs] == [[], [12], [12, 34]]


def test_a_finished_output_is_read_again_from_its_records() -> None:
    for said, model in ((ROME, "scripted:m"), (calls(final_answer=TRIP), NO_SCHEMA)):
        session, prompt = Session(), Prompt(ns="a", key="b", messages=[sabir.user("?")], output=Trip)
        llm = ScriptedAdapter(said, model=model)
        evaluate_sync(llm, prompt, session=session)
        again = evaluate_sync(llm, prompt, session=session, resume=True)

        assert (again.output, len(llm.sent)) == (Trip(city="Rome", days=3), 1)
        assert unfinished_evaluations(session) == ()


def test_a_type_without_a_schema_is_refused_before_anything_is_asked() -> None:
    llm = ScriptedAdapter()
    with pytest.raises(sabir.SettingsInvalid, match="has no JSON schema"):
        Conversation(llm, output=asyncio.Lock)
    with pytest.raises(sabir.SettingsInvalid, match="pass output= too"):
        Conversation(llm, output_validator=print)


def test_a_text_with_too_many_values_is_no_output() -> None:
    """The bounds of an answer count no values inside its text, and these would take gigabytes."""
    bomb = '{"value": [' + "{}," * 600_000 + "{}]}"

    with pytest.raises(OutputInvalid, match="524,288 JSON values"):
        Conversation(ScriptedAdapter(bomb, bomb, bomb)).ask_sync("?", output=list[dict[str, int]])
    with pytest.raises(OutputInvalid, match="524,288 JSON values"):
        ScriptedAdapter(bomb).complete_sync("?").parse(list)
