"""One turn: replies, chosen options, results, and the end of it; recorded where a session is given."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import sabir
from sabir_cli.output import Output
from sabir_cli.turns import MOST_REPLIES, Turn, take_turn
from sabir_session import Session, enable_inner_message_recording, get_inner_messages


@sabir.option
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def later(text: str) -> str:
    """Something asynchronous."""
    return text.upper()


def insist() -> None:
    """What echo hears of this failure makes it call again."""
    raise RuntimeError("call insist {}")


def turn(said: str | Sequence[sabir.Message], *options: sabir.Option, session: Session | None = None) -> Turn:
    messages = [sabir.user(said)] if isinstance(said, str) else list(said)
    with sabir.adapter("echo:any") as llm:
        return take_turn(llm, messages, options, Output(), session)


def test_an_asynchronous_option_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Options may be coroutine functions."""
    taken = turn('call later {"text": "ü"}', sabir.option(later))

    assert taken.messages[2].result is not None
    assert taken.messages[2].result.result == "Ü"


def test_a_failing_option_is_a_result_too(capsys: pytest.CaptureFixture[str]) -> None:
    """The conversation goes on: the model is told."""
    turn('call add {"a": "x", "b": 1}', add)

    assert "result invalid_arguments: a: " in capsys.readouterr().err


def test_a_model_that_only_calls_options_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    """It would go on for ever, and be paid for."""
    with pytest.raises(sabir.errors.OutputError, match=f"called options {MOST_REPLIES} times in a row"):
        turn("call insist {}", sabir.option(insist))


def test_a_loss_is_shown_once_however_often_it_is_sent(capsys: pytest.CaptureFixture[str]) -> None:
    """Every request of a conversation carries the losses of all that went before."""
    messages = [sabir.user("call add {}", sabir.image("https://example.com/a.png")), sabir.user("Hello")]
    output = Output()
    with sabir.adapter("echo:any") as llm:
        take_turn(llm, messages, [add], output)
        take_turn(llm, messages, [add], output)

    assert capsys.readouterr().err.count("loss   downgraded") == 1


def test_many_turns_of_one_session_are_no_endless_loop(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The bound on replies is one turn's, not the conversation's."""
    from sabir_session import follow_up

    session = Session()
    enable_inner_message_recording(session)
    turn("Hello", session=session)
    for _ in range(MOST_REPLIES):
        follow_up(session, sabir.user("Hello again"))
        turn([], session=session)

    assert len(get_inner_messages(session)) == 1 + 2 * (MOST_REPLIES + 1)


def test_a_pipe_that_nobody_reads_ends_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever left gets nothing more, and pays for nothing more."""
    output = Output()

    def closed(text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(output, "write", closed)
    with sabir.adapter("echo:any") as llm, pytest.raises(BrokenPipeError):
        take_turn(llm, [sabir.user("Hello there")], (), output)
