"""Writes conversations, evaluations and snapshots into a session store; some in a process that is killed.

whole      every question is answered, or waits for a person
killed     the process dies with SIGKILL while a model is asked, or while an option runs
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sabir
from sabir_session import (
    ApprovalPending,
    Budget,
    BudgetExhausted,
    Conversation,
    PostgresStore,
    Session,
    SQLiteStore,
    Store,
    append_item,
    evaluate_sync,
    follow_up,
    replace_latest,
)
from sabir_testing import ScriptedAdapter, Sent, call, calls, reply

from tests.frozen.programs import PIXEL, TRIP, WEATHER, Note, Plan, Town, Trip

OPENAI, CHAT = "openai:gpt-5", "openai.chat:gpt-4o"
ANTHROPIC, GOOGLE = "anthropic:claude-sonnet-4-5", "google:gemini-2.5-pro"
SIGNED = {"signature": "RXJyb3JzIGFyZSBuZXZlciBzaWxlbnQ="}
USAGE = sabir.Usage(input_tokens=120, output_tokens=30, cache_read_tokens=64, reasoning_tokens=9)
FOUND = sabir.Citation(kind="url_citation", url="https://example.org/rome", title="Rome", start=0, end=4)


def open_store(address: str) -> Store:
    return PostgresStore(address) if address.startswith("postgresql://") else SQLiteStore(address)


def die(*_: object) -> Any:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def write_whole(address: str) -> None:
    """All conversations that no kill interrupts."""
    with open_store(address) as store:
        for write in (_trip, _outputs, _dropped, _invalid, _waiting, _exhausted, _echo, _evaluations, _slices):
            write(store)


def _trip(store: Store) -> None:
    """Three providers in one conversation, media, reasoning with signatures, citations, opaque blocks; and a fork."""
    first = ScriptedAdapter(
        reply(sabir.ReasoningPart(state={"encrypted_content": "c2VjcmV0", "id": "rs_1"}),
              calls(weather=[{"city": "Rome"}, {"city": "Oslo"}]), usage=USAGE),
        reply(sabir.TextPart(text="Rome: rain.", citations=(FOUND,)), usage=USAGE),
        model=OPENAI,
    )  # fmt: skip
    second = ScriptedAdapter(
        reply(sabir.ReasoningPart(text="A picture of one pixel.", state=SIGNED), "It is red.", usage=USAGE),
        reply(
            sabir.OpaquePart(dialect="anthropic.messages", pair_id="s1", pair="opens",
                             block={"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}),
            sabir.OpaquePart(dialect="anthropic.messages", pair_id="s1", pair="closes",
                             block={"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}),
            "Nothing was found.", usage=USAGE,
        ),
        model=ANTHROPIC,
    )  # fmt: skip
    third = ScriptedAdapter(sabir.RefusalPart(text="I may not say that."), "As you like.", model=GOOGLE)
    town = Town()
    with Conversation(first, instructions="Be brief.", options=town.options, keep=store, name="trip") as chat:
        chat.ask_sync("Umbrella today?")
        chat.model = second
        chat.ask_sync("What is this?", sabir.image(PIXEL), sabir.document("https://example.org/map.pdf"))
        chat.ask_sync("Search for Rome.")
        fork = chat.fork("fork")
        chat.model = third
        chat.ask_sync("Say something rude.", sabir.MediaPart(modality="audio", url="provider-file:google/files/7"))
        fork.model, fork.instructions = third, "Be polite."
        fork.ask_sync("And in Oslo?")
        fork.close()


def _outputs(store: Store) -> None:
    """Typed answers: one as text, after a first one that did not fit; one as a call."""
    text = ScriptedAdapter("I do not know.", Trip(city="Rome", days=3), model=OPENAI)
    with Conversation(text, output=Trip, keep=store, name="outputs") as chat:
        assert chat.ask_sync("Where to?").output == Trip(city="Rome", days=3)


def _dropped(store: Store) -> None:
    llm = ScriptedAdapter("One.", "Two.", "Three.", model=CHAT)
    with Conversation(llm, keep=store, name="dropped") as chat:
        chat.ask_sync("Count.")
        chat.ask_sync("Go on.")
        chat.drop_last()
        chat.ask_sync("Skip one.")


def _invalid(store: Store) -> None:
    """Calls whose arguments are not JSON, and an option that fails."""
    town = Town(_refuse)
    llm = ScriptedAdapter(
        reply(call("weather", '{"city": "Ro'), call("weather", {"city": "Bern"}), call("unknown", {})),
        reply("It failed.", finish_reason="length"),
        model=CHAT,
    )
    with Conversation(llm, options=town.options, keep=store, name="invalid") as chat:
        chat.ask_sync("Weather?")


def _refuse(ran: str) -> None:
    raise OSError(f"no line for {ran}")


def _waiting(store: Store) -> None:
    llm = ScriptedAdapter(calls(weather={"city": "Rome"}, book_room={"city": "Rome"}), model=ANTHROPIC)
    with Conversation(llm, options=Town().options, approve=_ask_later, keep=store, name="waiting") as chat:
        _expect(ApprovalPending, lambda: chat.ask_sync("Book a room."))


def _ask_later(asked: sabir.Message) -> Any:
    return "wait" if asked.call is not None and asked.call.option_name == "book_room" else "allow"


def _exhausted(store: Store) -> None:
    """The answer of the option is recorded; the budget allows no second request."""
    llm = ScriptedAdapter(calls(weather={"city": "Rome"}), model=GOOGLE)
    budget = Budget(turns=1)
    with Conversation(llm, options=Town().options, budget=budget, keep=store, name="exhausted") as chat:
        _expect(BudgetExhausted, lambda: chat.ask_sync("Umbrella?"))


def _echo(store: Store) -> None:
    with Conversation("echo:small", keep=store, name="echo") as chat:
        chat.ask_sync("Hello", "\U0001f600 \x00 ü")


def _expect(error: type[Exception], ask: Callable[[], object]) -> None:
    try:
        ask()
    except error:
        return
    raise AssertionError(f"{error.__name__} was expected")


def _evaluations(store: Store) -> None:
    """A finished one, and one that waits for a person, each in a session of its own; follow-ups; two in one session."""
    session = Session(journal=store.journal("evaluation"))
    llm = ScriptedAdapter(calls(weather={"city": "Rome"}), "Take one.", "Tomorrow too.", model=ANTHROPIC)
    evaluate_sync(llm, WEATHER, session=session, options=Town().options)
    follow_up(session, sabir.user("And tomorrow?"))
    evaluate_sync(llm, WEATHER, session=session, options=Town().options, resume=True)

    planned = ScriptedAdapter(Trip(city="Rome", days=3), model=OPENAI)
    evaluate_sync(planned, TRIP, session=session)

    session = Session(journal=store.journal("evaluation-waiting"))
    llm = ScriptedAdapter(calls(book_room={"city": "Rome"}), model=GOOGLE)
    how = {"options": Town().options, "approve": _ask_later}
    _expect(ApprovalPending, lambda: evaluate_sync(llm, WEATHER, session=session, **how))  # type: ignore[arg-type]


def _slices(store: Store) -> None:
    """A log of the program's own, in a journal with an evaluation."""
    taking_notes(Session(journal=store.journal("notes")))


def taking_notes(session: Session) -> Session:
    """A session with slices of its own, and an evaluation."""
    register(session)
    session.mutate(Note).append(Note("before the trip"))
    session.mutate(Plan).append(Plan("Rome", ("pack", "go")))
    llm = ScriptedAdapter(calls(weather={"city": "Rome"}), "Take one.", model=ANTHROPIC)
    evaluate_sync(llm, WEATHER, session=session, options=Town().options)
    session.mutate(Note).append(Note("after the trip"))
    return session


def register(session: Session) -> None:
    session.mutate(Plan).register(Plan, replace_latest)
    session.mutate(Note).register(Note, append_item)


def write_snapshots(folder: Path) -> None:
    """Snapshots of sessions without a store: of a finished evaluation, and of one with calls that wait for a person."""
    finished, waiting = taking_notes(Session()), Session()
    register(waiting)
    waiting.mutate(Plan).append(Plan("Oslo"))
    llm = ScriptedAdapter(calls(weather={"city": "Oslo"}, book_room={"city": "Oslo"}), model=ANTHROPIC)
    how = {"options": Town().options, "approve": _ask_later}
    _expect(ApprovalPending, lambda: evaluate_sync(llm, WEATHER, session=waiting, **how))  # type: ignore[arg-type]
    for name, session in (("finished", finished), ("waiting", waiting)):
        (folder / f"{name}.json").write_text(session.snapshot().to_json() + "\n", "utf-8")


# Each of these is called in a process of its own, which it does not survive.


def interrupted_in_model(address: str) -> None:
    """The question is recorded, and the model has not answered; the first question was answered."""
    with open_store(address) as store:
        llm = ScriptedAdapter("First.", die, model=ANTHROPIC)
        chat = Conversation(llm, instructions="Be brief.", options=Town().options, keep=store, name="interrupted")
        chat.ask_sync("One?")
        chat.ask_sync("Two?", sabir.image(PIXEL))


def interrupted_in_option(address: str) -> None:
    """The reply has two calls: the first is answered, the second has none, and the process died in it."""
    with open_store(address) as store:
        llm = ScriptedAdapter(
            reply(sabir.ReasoningPart(text="Both.", state=SIGNED),
                  calls(weather={"city": "Rome"}, book_room={"city": "Rome", "nights": 2}), usage=USAGE),
            model=ANTHROPIC,
        )  # fmt: skip
        town = Town(_die_in_book_room)
        Conversation(llm, options=town.options, keep=store, name="in-option").ask_sync("Book a room.")


def interrupted_evaluation(address: str) -> None:
    """As in an option, without a conversation."""
    with open_store(address) as store:
        session = Session(journal=store.journal("evaluation-running"))
        llm = ScriptedAdapter(calls(weather={"city": "Rome"}, book_room={"city": "Rome"}), model=OPENAI)
        evaluate_sync(llm, WEATHER, session=session, options=Town(_die_in_book_room).options)


def interrupted_output(address: str) -> None:
    """An evaluation with an output, killed while the model is asked again."""

    def answer(sent: Sent) -> Any:
        return "I do not know." if sent.number == 1 else die()

    with open_store(address) as store:
        session = Session(journal=store.journal("output-running"))
        evaluate_sync(ScriptedAdapter(answer, answer, model=GOOGLE), TRIP, session=session)


def _die_in_book_room(ran: str) -> None:
    if ran.startswith("book_room"):
        die()


KILLED = (interrupted_in_model, interrupted_in_option, interrupted_evaluation, interrupted_output)
