"""An evaluation that was interrupted goes on from its records, and does nothing twice that was recorded."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
import sabir
from sabir import ToolContext
from sabir_session import (
    Conversation,
    ConversationNotFound,
    InnerMessage,
    InProcessEventBus,
    Prompt,
    PromptMismatch,
    Session,
    Snapshot,
    SQLiteStore,
    ToolCallRecord,
    enable_inner_message_recording,
    evaluate,
    evaluate_sync,
    follow_up,
    get_inner_messages,
    get_latest_evaluation_id,
    inner_message_append,
    unfinished_evaluations,
)
from sabir_testing.scripted import ScriptedAdapter, call, calls, reply

from tests.laws.rules import check_pairing
from tests.session.support import (
    PARIS,
    PROMPT,
    ROME,
    ListJournal,
    Stopped,
    Town,
    interrupted,
    numbers_of,
    recording,
    records_of,
)


def test_resume_is_asked_for() -> None:
    """WI-09, WI-39: without it, the same session begins another evaluation and leaves the interrupted one alone."""
    journal = ListJournal()
    interrupted(journal, calls(weather=[PARIS, ROME]))
    session = recording(journal)
    again = Town().run(ScriptedAdapter("It rains."), session)

    assert len(get_inner_messages(session, again.evaluation_id)) == 3
    assert len(get_inner_messages(session)) == 4 + 3


def test_nothing_recorded_is_nothing_to_resume() -> None:
    """WI-40, D-15: ConversationNotFound, which is a ValueError; of a session that is empty, or of none."""
    llm = ScriptedAdapter()
    for session in (Session(), None):
        with pytest.raises(ConversationNotFound, match="evaluate without resume=True") as met:
            evaluate_sync(llm, PROMPT, session=session, resume=True)
        assert isinstance(met.value, ValueError)
    assert llm.sent == ()


@pytest.mark.parametrize(("ns", "key"), [("trips", "other"), ("other", "umbrella"), ("", "")])
def test_another_prompt_resumes_nothing(ns: str, key: str) -> None:
    """WI-41, D-15: PromptMismatch, a ValueError; nothing executed, nothing recorded, nothing asked."""
    journal = ListJournal()
    interrupted(journal, calls(weather=[PARIS, ROME]))
    session, llm, town = recording(journal), ScriptedAdapter(), Town()
    before = records_of(session)
    with pytest.raises(PromptMismatch, match="trips:umbrella") as met:
        evaluate_sync(llm, Prompt[None](ns=ns, key=key), session=session, options=[town.weather], resume=True)

    assert isinstance(met.value, ValueError)
    assert (llm.sent, town.ran, records_of(session)) == ((), [], before)


def test_a_prompt_without_a_name_resumes_what_it_asked_itself() -> None:
    """WI-41: no other question is answered with what was recorded for one; ids, hints and steps tell none apart."""
    journal = ListJournal()
    river = [sabir.system("Be brief."), sabir.user("Name a river.")]
    evaluate_sync(ScriptedAdapter("The Po."), river, session=recording(journal))
    session, llm = recording(journal), ScriptedAdapter()
    before = records_of(session)
    for other in ("Name a mountain.", "Name a river.", [river[0]], [*river, sabir.user("Now.")], river[::-1]):
        told = "was recorded with another text of the prompt; pass the recorded messages or none"
        with pytest.raises(PromptMismatch, match=told):
            evaluate_sync(llm, other, session=session, resume=True)

    again = [sabir.system("Be brief."), sabir.user("Name a river.")]
    hinted = [message.model_copy(update={"role_hint_for_llm": "user", "step_num": 3}) for message in again]
    for same in (again, hinted, [], Prompt[None]()):
        assert evaluate_sync(llm, same, session=session, resume=True).text == "The Po."
    assert (llm.sent, records_of(session)) == ((), before)


def test_a_named_prompt_goes_on_as_it_was_recorded_and_a_changed_text_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """WI-41: namespace and key identify it over versions of its text."""
    journal = ListJournal()
    failing = ScriptedAdapter(*[sabir.errors.ServerFailed("down")] * 3)
    old, new = (Prompt[None](ns="trips", key="river", messages=(sabir.user(text),)) for text in ("A river?", "River!"))
    with suppress(sabir.errors.ServerFailed):
        evaluate_sync(failing, old, session=recording(journal))
    llm = ScriptedAdapter("The Po.")
    with caplog.at_level("WARNING", "sabir"):
        evaluate_sync(llm, new, session=recording(journal), resume=True)
        evaluate_sync(llm, old, session=recording(journal), resume=True)

    assert llm.last.user_text == "A river?"
    assert [each.getMessage().partition(" ")[2].partition(" ")[2] for each in caplog.records] == [
        "was recorded with another text of the prompt 'trips:river'; the recorded text is used"
    ]


def test_a_resume_without_the_option_of_a_pending_call_is_refused() -> None:
    journal = ListJournal()
    interrupted(journal, calls(weather=[PARIS, ROME]))
    session, llm = recording(journal), ScriptedAdapter()
    before = records_of(session)
    told = "open calls of the options weather; pass these options= to resume, or abandon"
    with pytest.raises(sabir.errors.OptionInvalid, match=told):
        evaluate_sync(llm, PROMPT, session=session, resume=True)

    assert (llm.sent, records_of(session)) == ((), before)


def test_pending_calls_run_first_and_completed_ones_never_again() -> None:
    """WI-43, WI-44, WI-48, D-16: the result of A is there; B runs, and knows that it may have run before; then one
    request holds every call with its result, in call order. A call of a later turn is no resume."""
    journal = ListJournal()
    first = interrupted(journal, calls(weather=[PARIS, ROME]))
    town, llm = Town(), ScriptedAdapter(calls(weather={"city": "Oslo"}), "Take one.")
    response = town.run(llm, recording(journal), resume=True)

    assert first.ran == [("call-1", False)]
    assert town.ran == [("call-2", True), ("call-1", False)]  # another provider, which counts from 1
    assert [result.result for result in llm.sent[0].results] == ["rain in Paris", "rain in Rome"]
    assert [message.kind for message in llm.sent[0].messages] == [
        "parts", "parts", "option_call", "option_call", "option_result", "option_result",
    ]  # fmt: skip
    assert response.text == "Take one."


def test_a_checkpoint_that_an_observer_wrote_is_resumed() -> None:
    """WI-49, WI-51: as in the specification's usage example; the last snapshot is enough."""

    def make_session() -> Session:
        session = Session(bus=InProcessEventBus())
        session.mutate(InnerMessage).register(InnerMessage, inner_message_append)
        return session

    session, checkpoints = make_session(), list[str]()
    session.observe(InnerMessage, lambda old, new: checkpoints.append(session.snapshot().to_json()))
    with pytest.raises(Stopped):
        Town(stops="Rome").run(ScriptedAdapter(calls(weather=[PARIS, ROME])), session)
    resumed, town, llm = make_session(), Town(), ScriptedAdapter("Take one.")
    resumed.mutate().rollback(Snapshot.from_json(checkpoints[-1]))
    town.run(llm, resumed, resume=True)

    assert (len(llm.sent), town.ran) == (1, [("call-2", True)])
    assert [record.content for record in get_inner_messages(resumed, get_latest_evaluation_id(resumed))] == [
        "Be brief.", "Umbrella today?", "", "rain in Paris", "rain in Rome", "Take one.",
    ]  # fmt: skip


def test_an_evaluation_that_ended_answers_from_its_records() -> None:
    """WI-46, D-17: no provider call, no run, nothing new recorded; the same response."""
    journal, usage = ListJournal(), sabir.Usage(input_tokens=1, output_tokens=2)
    ended = Town().run(ScriptedAdapter(reply(calls(weather=PARIS), usage=usage), reply("One.", usage=usage)),
                       recording(journal))  # fmt: skip
    session, town, llm = recording(journal), Town(), ScriptedAdapter()
    before = len(journal.lines)
    response = town.run(llm, session, resume=True)

    assert (llm.sent, town.ran, len(journal.lines)) == ((), [], before)
    assert (response.text, response.usage, response.messages) == (ended.text, ended.usage, ended.messages)
    assert (response.reply.finish_reason, response.reply.raw_finish_reason) == ("stop", "stop")
    assert response.reply.origin == ended.reply.origin


def test_an_opening_that_was_half_recorded_is_completed_from_the_prompt() -> None:
    """The process ended between the system's record and the user's: the question is not lost, and not asked without."""
    journal = ListJournal()
    Town().run(ScriptedAdapter("One."), recording(journal))
    half = ListJournal(journal.lines[:1])
    session, llm = recording(half), ScriptedAdapter("Take one.")
    Town().run(llm, session, resume=True)

    assert [message.text for message in llm.last.messages] == ["Be brief.", "Umbrella today?"]
    assert numbers_of(session) == [("system", 0, 0), ("user", 1, 0), ("assistant", 2, 1)]


def test_calls_of_forks_have_keys_of_their_own() -> None:
    """A call that came after two forks parted is another call, though it stands at the same place of both; one that
    was there before keeps its key in both."""
    journal, keys = ListJournal(), list[str]()
    dies = [True]

    def pay(amount: int) -> None:
        keys.append(ToolContext.current().idempotency_key)
        if dies:
            raise Stopped

    with pytest.raises(Stopped):
        evaluate_sync(ScriptedAdapter(calls(pay={"amount": 1})), PROMPT, session=recording(journal), options=[pay])
    dies.clear()
    for amount in (5, 7):
        fork = recording(ListJournal(journal.read()))
        llm = ScriptedAdapter(calls(pay={"amount": amount}), "Paid.")
        evaluate_sync(llm, PROMPT, session=fork, options=[pay], resume=True)

    shared, again, five, again_too, seven = keys
    assert shared == again == again_too
    assert len({shared, five, seven}) == 3


@pytest.mark.parametrize("dialect", ["openai.chat:gpt-5", "openai.responses:gpt-5", "anthropic:claude-sonnet-5",
                                     "google:gemini-3-pro"])  # fmt: skip
def test_no_orphan_is_sent_however_records_were_made(dialect: str) -> None:
    """UP-14, UP-15: records of another hand, without messages, with a call that was abandoned by the user's next word
    and an assistant that said nothing; each wire's rules hold, and what is pending at the end runs first (D-18)."""
    session = Session()
    enable_inner_message_recording(session)
    look = ToolCallRecord(call_id="c1", name="weather", arguments='{"city":"Paris"}')
    also = ToolCallRecord(call_id="c2", name="weather", arguments='{"city":"Rome"}')
    told = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Paris?"},
        {"role": "assistant", "content": "", "tool_calls": (look,), "turn": 1},
        {"role": "user", "content": "No, Rome!", "turn": 1},
        {"role": "assistant", "content": "", "turn": 2},
        {"role": "assistant", "content": "Both.", "tool_calls": (look, also), "turn": 3},
        {"role": "tool", "content": "rain in Rome", "tool_call_id": "c2", "tool_name": "weather", "turn": 3},
    ]
    for sequence, fields in enumerate(told):
        record = {"evaluation_id": "by-hand", "sequence": sequence, "prompt_ns": "trips", "prompt_key": "umbrella"}
        session.mutate(InnerMessage).append(InnerMessage.model_validate({**record, **fields}))
    town, llm = Town(), ScriptedAdapter("Take one.", model=dialect)
    town.run(llm, session, resume=True)

    check_pairing(str(llm.last.rendering.target.dialect), llm.last.rendering.body_bytes)
    assert town.ran == [("c1", True)]
    assert [result.result for result in llm.last.results] == ["rain in Paris", "rain in Rome"]
    assert numbers_of(session)[6:] == [("tool", 6, 3), ("tool", 7, 3), ("assistant", 8, 4)]


async def test_results_that_came_out_of_order_are_matched_by_their_places() -> None:
    """Two calls of one reply under one id: the second's result is recorded, the process ends, the first one runs."""
    journal, release = ListJournal(), asyncio.Event()
    ran: list[str] = []

    async def look(city: str) -> str:
        if city == "Paris" and not release.is_set():
            await release.wait()
        ran.append(city)
        return f"rain in {city}"

    llm = ScriptedAdapter(reply(call("look", PARIS, id="same"), call("look", ROME, id="same")))
    session = recording(journal)
    task = asyncio.create_task(evaluate(llm, PROMPT, session=session, options=[look]))
    while len(get_inner_messages(session)) < 4:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    after, resumed = ScriptedAdapter("Done."), recording(journal)
    await evaluate(after, PROMPT, session=resumed, options=[look], resume=True)

    assert ran == ["Rome", "Paris"]
    assert [(record.sequence, record.content) for record in get_inner_messages(resumed)[3:5]] == [
        (3, "rain in Paris"), (4, "rain in Rome"),
    ]  # fmt: skip
    assert [result.result for result in after.last.results] == ["rain in Paris", "rain in Rome"]


def test_the_one_that_is_named_is_resumed_and_the_latest_is_left_alone() -> None:
    """WI-37 said otherwise: an evaluation that another one came after can be finished too."""
    journal = ListJournal()
    interrupted(journal, calls(weather=PARIS), stops="Paris")
    interrupted(journal, calls(weather=ROME), stops="Rome")
    session, town = recording(journal), Town()
    first, latest = unfinished_evaluations(session)
    response = town.run(ScriptedAdapter("Done."), session, resume=True, evaluation_id=first)

    assert response.evaluation_id == first
    assert [record.content for record in get_inner_messages(session, first)][-2:] == ["rain in Paris", "Done."]
    assert unfinished_evaluations(session) == (latest,)


def test_an_evaluation_within_an_option_hides_nothing() -> None:
    """The inner one began later and ended; the outer one, whose process died, is found and finished."""
    journal = ListJournal()
    session = recording(journal)

    def ask_another(city: str) -> str:
        inner = evaluate_sync(ScriptedAdapter("Rain."), "Weather?", session=session)
        if not ToolContext.current().is_resume:
            raise Stopped
        return inner.text

    with pytest.raises(Stopped):
        evaluate_sync(ScriptedAdapter(calls(ask_another=PARIS)), PROMPT, session=session, options=[ask_another])
    (outer,) = unfinished_evaluations(session)
    llm = ScriptedAdapter("Take one.")
    response = evaluate_sync(llm, PROMPT, session=session, options=[ask_another], resume=True)

    assert response.evaluation_id == outer
    assert [result.result for result in llm.last.results] == ["Rain."]
    assert unfinished_evaluations(session) == ()
    with pytest.raises(PromptMismatch, match=f"resume it with evaluation_id='{outer}'"):
        evaluate_sync(ScriptedAdapter(), PROMPT, session=session, options=[ask_another], resume=True)


def test_a_name_that_nothing_was_recorded_under_is_nothing_to_resume() -> None:
    """WI-40: one line, with what to give instead; and a name without `resume` would begin anew under another one."""
    session = recording(ListJournal())
    Town().run(ScriptedAdapter("One."), session)
    with pytest.raises(ConversationNotFound, match=r"has no evaluation 'x'; pass an id of unfinished_evaluations"):
        evaluate_sync(ScriptedAdapter(), PROMPT, session=session, resume=True, evaluation_id="x")
    with pytest.raises(sabir.SettingsInvalid, match="add resume=True"):
        evaluate_sync(ScriptedAdapter(), PROMPT, session=session, evaluation_id="x")


def test_a_chat_goes_on_by_one_record_a_message() -> None:
    """Each turn in a new process, under another provider; what was said is recorded once, and all of it is sent."""
    journal, texts = ListJournal(), list[str]()
    Town().run(ScriptedAdapter("It rains."), recording(journal))
    for number, model in enumerate(("anthropic:claude-sonnet-5", "google:gemini-3-pro", "openai.chat:gpt-5"), 1):
        session = recording(journal)
        follow_up(session, sabir.user(f"And then {number}?"))
        llm = ScriptedAdapter(f"Sun {number}.", model=model)
        texts.append(Town().run(llm, session, resume=True).text)
        assert len(llm.last.messages) == 2 + 2 * number

    assert texts == ["Sun 1.", "Sun 2.", "Sun 3."]
    assert numbers_of(recording(journal))[2:] == [
        ("assistant", 2, 1), ("user", 3, 1), ("assistant", 4, 2), ("user", 5, 2), ("assistant", 6, 3),
        ("user", 7, 3), ("assistant", 8, 4),
    ]  # fmt: skip
    assert len(journal.lines) == 9
    with pytest.raises(ConversationNotFound):
        follow_up(Session(), sabir.user("Hi"))


def test_calls_that_the_user_did_not_wait_for_are_abandoned() -> None:
    """UP-14: the next word of the user comes behind the places of their results; they never run, and are not sent."""
    journal = ListJournal()
    interrupted(journal, calls(weather=[PARIS, ROME]))
    session, town, llm = recording(journal), Town(), ScriptedAdapter("Sun.", model="anthropic:claude-sonnet-5")
    follow_up(session, sabir.user("Never mind."))
    town.run(llm, session, resume=True)

    check_pairing("anthropic.messages", llm.last.rendering.body_bytes)
    assert town.ran == []
    assert numbers_of(session)[3:] == [("tool", 3, 1), ("user", 5, 1), ("assistant", 6, 2)]


def test_a_conversations_records_are_those_of_the_same_prompt(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "c.db") as store:
        with Conversation(ScriptedAdapter("Po."), instructions="Be brief.", keep=store, name="a") as chat:
            chat.ask_sync("Name a river.")
        prompt = Prompt[None](system="Be brief.", messages=(sabir.user("Name a river."),))
        session = Session(journal=store.journal("a"))
        assert evaluate_sync(ScriptedAdapter(), prompt, session=session, resume=True).text == "Po."
