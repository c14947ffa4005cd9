"""What is said, and what becomes of a turn that failed or was stopped."""

from collections.abc import Iterator
from decimal import Decimal

import pytest
import sabir
from sabir.errors import OutputError
from sabir_cli.chat.answer_printer import Plain, money
from sabir_cli.chat.console_chat import Talk
from sabir_cli.output import Output, UsageError
from sabir_session import Conversation
from sabir_testing.scripted import ScriptedAdapter, reply

from tests.cli.conftest import Relay


async def later(text: str) -> str:
    """Something asynchronous."""
    return text.upper()


def insist() -> None:
    """What echo hears of this failure makes it call again."""
    raise RuntimeError("call insist {}")


def fail_next() -> str:
    """What echo hears of this makes the next request fail."""
    return "fail 400"


def stop() -> str:
    """As if Ctrl-C were pressed meanwhile."""
    raise KeyboardInterrupt


@pytest.fixture
def talk() -> Iterator[Talk]:
    """A conversation in memory."""
    output = Output()
    with Conversation("echo:any") as chat:
        yield Talk(chat, output, Plain(output))


def texts(talk: Talk) -> list[str]:
    return [message.text for message in talk.chat.messages]


def test_a_turn_that_failed_is_taken_back_and_can_be_asked_again(talk: Talk) -> None:
    """It is told once, not with the next mistake again."""
    talk.say("Hello")
    with pytest.raises(sabir.CallError):
        talk.say("fail 500")
    became = talk.recover()

    assert became is not None and not became.is_kept
    assert talk.recover() is None
    assert texts(talk) == ["Hello", "Hello"]
    with pytest.raises(sabir.CallError):
        talk.retry()


def test_what_went_with_a_turn_that_was_refused_goes_with_the_next(talk: Talk) -> None:
    """Before anything was sent, too: nothing is lost without a word."""
    talk.chat.strict = {"downgraded"}
    talk.attached.append(sabir.image("https://example.com/a.png"))
    with pytest.raises(sabir.RenderingRefused):
        talk.say("What is this?")
    became = talk.recover()
    talk.chat.strict = None
    talk.say("And this?")

    assert became is not None and not became.is_kept
    assert [part.kind for part in talk.chat.messages[0].parts] == ["media", "text"]


def test_a_failed_turn_in_which_an_option_ran_is_kept_and_gone_on_with(talk: Talk) -> None:
    """What an option did is not undone, and it does not run again."""
    talk.chat.options = (fail_next,)
    with pytest.raises(sabir.CallError):
        talk.say("call fail_next {}")
    became = talk.recover()

    assert became is not None and became.is_kept and "fail_next ran" in became.text
    with pytest.raises(sabir.CallError):
        talk.retry()
    assert talk.shown.ran == []
    assert talk.drop() == "removed: call fail_next {}"
    assert texts(talk) == []


def test_a_stopped_turn_is_taken_back_though_an_option_ran(talk: Talk) -> None:
    """Who stops a model does not want it to go on; that something ran is said."""
    talk.chat.options = (stop,)
    with pytest.raises(KeyboardInterrupt):
        talk.say("call stop {}")
    became = talk.recover(stopped=True)

    assert became is not None and not became.is_kept and "but stop ran" in became.text
    assert texts(talk) == []


def test_a_turn_is_asked_again(talk: Talk) -> None:
    """The answer before is forgotten; what was said stays as it was."""
    talk.say("first")
    talk.say("second", sabir.image("https://example.com/a.png"))
    before = talk.chat.messages
    talk.retry()

    assert [message.payload for message in talk.chat.messages] == [message.payload for message in before]
    assert len(before) == 4


@pytest.mark.parametrize("error", [sabir.errors.ServerFailed("no"), KeyboardInterrupt(), SystemExit(1)], ids=repr)
def test_retry_keeps_the_old_answer_until_the_new_one_is_complete(
    talk: Talk, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error and Ctrl-C leave it; what was attached meanwhile is attached still."""
    talk.say("first")
    talk.attached.append(sabir.image("https://example.com/a.png"))

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as changed, pytest.raises(type(error)):
        changed.setattr(Conversation, "ask_sync", fail)
        talk.retry()
    became = talk.recover(stopped=isinstance(error, KeyboardInterrupt))

    assert became is not None and became.text == "the earlier answer is kept"
    assert texts(talk) == ["first", "first"]
    assert len(talk.attached) == 1
    assert talk.recover() is None


def test_retry_keeps_the_old_answer_if_the_provider_fails_in_the_new_one() -> None:
    """Such a reply is not a complete answer; a refusal is."""
    refusal = reply(sabir.RefusalPart(text="I may not."))
    with Conversation(ScriptedAdapter("Rain.", reply("Ra", finish_reason="error"), refusal)) as chat:
        output = Output()
        talk = Talk(chat, output, Plain(output))
        talk.say("Umbrella?")
        with pytest.raises(OutputError, match="failed before the answer was complete"):
            talk.retry()
        assert texts(talk) == ["Umbrella?", "Rain."]
        talk.recover()
        talk.retry()

        assert chat.messages[-1].parts[0].kind == "refusal"


def test_retry_refused_before_it_is_sent_keeps_the_old_answer(talk: Talk) -> None:
    """Nothing was sent, and nothing is removed."""
    talk.say("first", sabir.image("https://example.com/a.png"))
    before = talk.chat.messages
    talk.chat.strict = {"downgraded"}
    with pytest.raises(sabir.RenderingRefused):
        talk.retry()
    talk.recover()

    assert talk.chat.messages == before


def test_a_history_stays_when_the_first_turn_is_asked_again_or_taken_back(
    talk: Talk, history: list[sabir.Message]
) -> None:
    """It went out with the question and is recorded with it; a second `/drop` takes it back too."""
    talk.chat.instructions = "Be brief."
    talk.attached.extend(history[1:])
    talk.say("And in Rome?")
    before = [message.payload for message in talk.chat.messages]
    talk.retry()
    assert [message.payload for message in talk.chat.messages] == before
    assert talk.drop() == "removed: And in Rome?"
    talk.say("And in Rome?")
    assert [message.payload for message in talk.chat.messages] == before
    talk.drop()

    assert talk.drop() == "removed: 4 attachments"
    assert texts(talk) == []


@pytest.mark.parametrize("own", ["", "Be brief.", "Speak Latin."])
def test_instructions_of_a_turn_that_is_taken_back_are_not_said_again(
    talk: Talk, history: list[sabir.Message], own: str
) -> None:
    """The present ones are, once; those of a history stay, whether or not the conversation had the same."""
    talk.chat.instructions = own
    talk.attached.extend(history)
    talk.say("And in Rome?")
    talk.chat.instructions = "Speak Greek."
    for _ in range(2):
        talk.retry()
        instructions = [message.text for message in talk.chat.messages if message.policy == "system"]
        assert instructions == ["Speak Greek.", "Be brief."]
    talk.drop()
    talk.drop()
    talk.chat.instructions = "Speak Latin."
    talk.say("Hello")
    talk.chat.instructions = "Speak Greek."
    talk.retry()
    assert texts(talk)[:2] == ["Speak Greek.", "Hello"]
    talk.drop()

    assert talk.attached == []


def test_what_is_attached_is_taken_back_before_a_turn(talk: Talk) -> None:
    """Then turns, one by one; then there is nothing."""
    talk.say("Hello")
    talk.attached.append(sabir.image("https://example.com/a.png"))

    assert [talk.drop(), talk.drop()] == ["removed: 1 attachment", "removed: Hello"]
    with pytest.raises(UsageError, match="this conversation is still empty"):
        talk.drop()
    with pytest.raises(UsageError, match="this conversation is still empty"):
        talk.retry()


def test_a_turn_that_failed_is_not_taken_back_twice(talk: Talk) -> None:
    """The one before it was good, and goes only when that is said again; what was attached since goes first."""
    talk.say("Hello")
    talk.chat.strict = {"downgraded"}
    talk.attached.append(sabir.image("https://example.com/a.png"))
    with pytest.raises(sabir.RenderingRefused):
        talk.say("What is this?")
    talk.recover()
    assert talk.drop() == "nothing to drop: “What is this?” had already been discarded; 1 still attached"
    with pytest.raises(sabir.RenderingRefused):
        talk.say("And this?")
    talk.recover()
    talk.attached.append(sabir.image("https://example.com/b.png"))
    dropped = [talk.drop(), talk.drop()]

    assert dropped == ["removed: 2 attachments", "nothing to drop: “And this?” had already been discarded"]
    assert texts(talk) == ["Hello", "Hello"]
    assert talk.drop() == "removed: Hello"


def test_what_was_said_is_quoted_without_what_went_with_it(talk: Talk) -> None:
    """The text of a file stands before it in the same message."""
    talk.attached.append(sabir.TextPart(text="notes.md:\na note\n"))
    talk.say("Read\nit.")

    assert talk.drop() == "removed: Read it."


def test_an_asynchronous_option_runs(talk: Talk) -> None:
    """Options may be coroutine functions."""
    talk.chat.options = (later,)

    assert talk.say('call later {"text": "ü"}').text == "Ü"


def test_a_model_that_only_calls_options_is_stopped(talk: Talk) -> None:
    """It would go on for ever, and be paid for."""
    talk.chat.options = (insist,)
    with pytest.raises(sabir.errors.OutputError, match="called options 50 times in a row"):
        talk.say("call insist {}")


def test_a_loss_is_shown_once_however_often_it_is_sent(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    """Every request of a conversation carries the losses of all that went before."""
    talk.say("Hello", sabir.image("https://example.com/a.png"))
    talk.say("more")

    assert capsys.readouterr().err.count("loss   downgraded") == 1


def test_a_model_that_cannot_take_the_conversation_is_not_switched_to(
    talk: Talk, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it loses is told; where it refuses, the model stays as it was."""
    monkeypatch.setenv("RELAY_API_KEY", "a key")
    talk.say("Hello", sabir.image("https://example.com/a.png"))
    assert [loss.kind for loss in talk.switch("relay:any")] == ["downgraded"]
    talk.chat.strict = {"downgraded"}
    with pytest.raises(sabir.RenderingRefused):
        talk.switch("relay:other")

    assert str(talk.target) == "relay:any"
    assert relay.requests == []


def test_a_pipe_that_nobody_reads_ends_the_turn(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever left gets nothing more, and pays for nothing more."""

    def closed(text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(talk.writer, "write", closed)
    with pytest.raises(BrokenPipeError):
        talk.say("Hello there")


@pytest.mark.parametrize(
    ("amount", "shown"),
    [("0", "0.00"), ("12.3456", "12.35"), ("0.0123", "0.012"), ("0.000012345", "0.000012"), ("1", "1.00")],
)
def test_an_amount_has_two_digits_that_say_something(amount: str, shown: str) -> None:
    """At least two after the point."""
    assert money(Decimal(amount)) == shown


ENDINGS = {
    "cut off at its length limit; raise --max-output-tokens": reply("It rai", finish_reason="length"),
    "the provider's content filter stopped the answer": reply("It", finish_reason="content_filter"),
    "the provider failed before the answer was complete": reply("It", finish_reason="error"),
    "the model refused: I may not.": reply("No:", sabir.RefusalPart(text="I may not.")),
    "the model refused\n": reply(sabir.RefusalPart(text="I may not."), finish_reason="content_filter"),
}


@pytest.mark.parametrize("line", ENDINGS)
def test_a_line_tells_of_a_refusal_and_of_a_cut_answer(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Next to the text, which has the words of a refusal if it would be empty. A complete answer has no such line."""
    output = Output()
    with Conversation(ScriptedAdapter(ENDINGS[line], "Rain.")) as chat:
        talk = Talk(chat, output, Plain(output))
        talk.say("Umbrella?")
        first = capsys.readouterr()
        talk.say("Sure?")
        second = capsys.readouterr()

    assert line in first.err.replace("│", "")
    assert first.out.strip()
    assert "refused" not in second.err and "answer" not in second.err


def test_a_loss_names_the_message_by_its_position_and_first_words(
    talk: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not by the beginning of an id, which is shown nowhere."""
    talk.say("Hello")
    talk.say("What is this?", sabir.image("https://example.com/a.png"))

    err = capsys.readouterr().err
    assert "loss   downgraded: message 3 (“What is this?”) parts[1]: echo.plain" in err
    assert talk.chat.messages[2].id[:8] not in err
