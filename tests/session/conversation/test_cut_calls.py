"""A call that was cut off never runs, however a conversation is carried on."""

from pathlib import Path
from typing import Any

import pytest
import sabir
from pydantic import BaseModel
from sabir.errors import OutputTruncated
from sabir_session import Conversation, Decision
from sabir_testing.scripted import ScriptedAdapter, call, reply

from tests.session.evaluation.test_outputs import NO_SCHEMA

CUT = reply(call("wipe", "{}", id="c1"), finish_reason="length")
ran: list[str] = []


def wipe(folder: str = "everything") -> str:
    """Delete a folder."""
    ran.append(folder)
    return "done"


class Limits(BaseModel):
    """A type that no argument is required for."""

    most: int = 10


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_cut_call_is_answered_and_the_model_may_call_again(is_streamed: bool) -> None:
    llm = ScriptedAdapter(CUT, call("wipe", {"folder": "/tmp"}), "Done.")
    chat = Conversation(llm, options=[wipe])
    if is_streamed:
        with chat.stream_sync("Clean up.") as stream:
            answer = stream.answer()
    else:
        answer = chat.ask_sync("Clean up.")

    assert (ran, answer.text) == (["/tmp"], "Done.")
    [first, _] = [message.result for message in answer.messages if message.result]
    assert first.error_type == "invalid_arguments"
    assert "call it again with shorter arguments, or raise max_output_tokens" in (first.error_message or "")


def test_a_cut_call_stays_cut_when_the_conversation_is_reopened(tmp_path: Path) -> None:
    store = tmp_path / "chats.db"
    with (
        Conversation(ScriptedAdapter(CUT), options=[wipe], name="c", keep=store, approve=lambda _: "wait") as chat,
        pytest.raises(sabir.SabirError),
    ):
        chat.ask_sync("Clean up.")
    with Conversation(
        ScriptedAdapter("Done."), options=[wipe], name="c", keep=store, approve=lambda _: "allow"
    ) as chat:
        assert chat.ask_sync().text == "Done."

    assert ran == []


def test_a_person_may_give_the_arguments_of_a_cut_call() -> None:
    decided: Any = Decision("allow", arguments={"folder": "/tmp"})
    chat = Conversation(ScriptedAdapter(CUT, "Done."), options=[wipe], approve=lambda _: decided)

    assert chat.ask_sync("Clean up.").text == "Done."
    assert ran == ["/tmp"]


def test_an_output_that_was_cut_off_is_not_one_of_defaults() -> None:
    """The arguments that arrived fit the type, and say nothing."""
    cut = reply(call("final_answer", "{}"), finish_reason="length")
    with pytest.raises(OutputTruncated, match="raise max_output_tokens"):
        Conversation(ScriptedAdapter(cut, model=NO_SCHEMA)).ask_sync("Which limits?", output=Limits)
