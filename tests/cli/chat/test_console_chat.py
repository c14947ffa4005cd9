"""What is said, and what becomes of a turn that failed or was stopped."""

from collections.abc import Iterator
from decimal import Decimal

import pytest
import sabir
from sabir.errors import OutputError
from sabir_cli.chat.answer_printer import PlainWriter, format_money
from sabir_cli.chat.console_chat import ConsoleChat
from sabir_cli.output import Output, UsageError
from sabir_session import Conversation
from sabir_testing.scripted import ScriptedAdapter, reply

from tests.cli.conftest import Relay


async def later(text: str) -> str:
    """Something asynchronous."""
    return text.upper()


def insist() -> str:
    """What echo hears of this makes it call again."""
    return "call insist {}"


def fail_next() -> str:
    """What echo hears of this makes the next request fail."""
    return "fail 400"


def stop() -> str:
    """As if Ctrl-C were pressed meanwhile."""
    raise KeyboardInterrupt


@pytest.fixture
def chat() -> Iterator[ConsoleChat]:
    """A conversation in memory."""
    output = Output()
    with Conversation("echo:any") as conversation:
        yield ConsoleChat(conversation, output, PlainWriter(output))


def texts(chat: ConsoleChat) -> list[str]:
    return [message.text for message in chat.conversation.messages]


def test_a_turn_that_failed_is_taken_back_and_can_be_asked_again(chat: ConsoleChat) -> None:
    """It is told once, not with the next mistake again."""
    chat.say("Hello")
    with pytest.raises(sabir.CallError):
        chat.say("fail 500")
    became = chat.recover()

    assert became is not None and not became.is_kept
    assert chat.recover() is None
    assert texts(chat) == ["Hello", "Hello"]
    with pytest.raises(sabir.CallError):
        chat.retry()


def test_what_went_with_a_turn_that_was_refused_goes_with_the_next(chat: ConsoleChat) -> None:
    """Before anything was sent, too: nothing is lost without a word."""
    chat.conversation.strict = {"downgraded"}
    chat.attachments.append(sabir.image("https://example.com/a.png"))
    with pytest.raises(sabir.RenderingRefused):
        chat.say("What is this?")
    became = chat.recover()
    chat.conversation.strict = None
    chat.say("And this?")

    assert became is not None and not became.is_kept
    assert [part.kind for part in chat.conversation.messages[0].parts] == ["media", "text"]


def test_a_failed_turn_in_which_an_option_ran_is_kept_and_gone_on_with(chat: ConsoleChat) -> None:
    """What an option did is not undone, and it does not run again."""
    chat.conversation.options = (fail_next,)
    with pytest.raises(sabir.CallError):
        chat.say("call fail_next {}")
    became = chat.recover()

    assert became is not None and became.is_kept and "fail_next ran" in became.text
    with pytest.raises(sabir.CallError):
        chat.retry()
    assert chat.printer.ran == []
    assert chat.drop() == "removed: call fail_next {}"
    assert texts(chat) == []


def test_a_stopped_turn_is_taken_back_though_an_option_ran(chat: ConsoleChat) -> None:
    """Who stops a model does not want it to go on; that something ran is said."""
    chat.conversation.options = (stop,)
    with pytest.raises(KeyboardInterrupt):
        chat.say("call stop {}")
    became = chat.recover(stopped=True)

    assert became is not None and not became.is_kept and "but stop ran" in became.text
    assert texts(chat) == []


def test_a_turn_is_asked_again(chat: ConsoleChat) -> None:
    """The answer before is forgotten; what was said stays as it was."""
    chat.say("first")
    chat.say("second", sabir.image("https://example.com/a.png"))
    before = chat.conversation.messages
    chat.retry()

    assert [message.payload for message in chat.conversation.messages] == [message.payload for message in before]
    assert len(before) == 4


@pytest.mark.parametrize("error", [sabir.errors.ServerFailed("no"), KeyboardInterrupt(), SystemExit(1)], ids=repr)
def test_retry_keeps_the_old_answer_until_the_new_one_is_complete(
    chat: ConsoleChat, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error and Ctrl-C leave it; what was attached meanwhile is attached still."""
    chat.say("first")
    chat.attachments.append(sabir.image("https://example.com/a.png"))

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as changed, pytest.raises(type(error)):
        changed.setattr(Conversation, "ask_sync", fail)
        chat.retry()
    became = chat.recover(stopped=isinstance(error, KeyboardInterrupt))

    assert became is not None and became.text == "the earlier answer is kept"
    assert texts(chat) == ["first", "first"]
    assert len(chat.attachments) == 1
    assert chat.recover() is None


def test_retry_keeps_the_old_answer_if_the_provider_fails_in_the_new_one() -> None:
    """Such a reply is not a complete answer; a refusal is."""
    refusal = reply(sabir.RefusalPart(text="I may not."))
    with Conversation(ScriptedAdapter("Rain.", reply("Ra", finish_reason="error"), refusal)) as conversation:
        output = Output()
        chat = ConsoleChat(conversation, output, PlainWriter(output))
        chat.say("Umbrella?")
        with pytest.raises(OutputError, match="failed before the answer was complete"):
            chat.retry()
        assert texts(chat) == ["Umbrella?", "Rain."]
        chat.recover()
        chat.retry()

        assert chat.conversation.messages[-1].parts[0].kind == "refusal"


def test_retry_refused_before_it_is_sent_keeps_the_old_answer(chat: ConsoleChat) -> None:
    """Nothing was sent, and nothing is removed."""
    chat.say("first", sabir.image("https://example.com/a.png"))
    before = chat.conversation.messages
    chat.conversation.strict = {"downgraded"}
    with pytest.raises(sabir.RenderingRefused):
        chat.retry()
    chat.recover()

    assert chat.conversation.messages == before


def test_a_history_stays_when_the_first_turn_is_asked_again_or_taken_back(
    chat: ConsoleChat, history: list[sabir.Message]
) -> None:
    """It went out with the question and is recorded with it; a second `/drop` takes it back too."""
    chat.conversation.instructions = "Be brief."
    chat.attachments.extend(history[1:])
    chat.say("And in Rome?")
    before = [message.payload for message in chat.conversation.messages]
    chat.retry()
    assert [message.payload for message in chat.conversation.messages] == before
    assert chat.drop() == "removed: And in Rome?"
    chat.say("And in Rome?")
    assert [message.payload for message in chat.conversation.messages] == before
    chat.drop()

    assert chat.drop() == "removed: 4 attachments"
    assert texts(chat) == []


@pytest.mark.parametrize("own", ["", "Be brief.", "Speak Latin."])
def test_instructions_of_a_turn_that_is_taken_back_are_not_said_again(
    chat: ConsoleChat, history: list[sabir.Message], own: str
) -> None:
    """The present ones are, once; those of a history stay, whether or not the conversation had the same."""
    chat.conversation.instructions = own
    chat.attachments.extend(history)
    chat.say("And in Rome?")
    chat.conversation.instructions = "Speak Greek."
    for _ in range(2):
        chat.retry()
        instructions = [message.text for message in chat.conversation.messages if message.policy == "system"]
        assert instructions == ["Speak Greek.", "Be brief."]
    chat.drop()
    chat.drop()
    chat.conversation.instructions = "Speak Latin."
    chat.say("Hello")
    chat.conversation.instructions = "Speak Greek."
    chat.retry()
    assert texts(chat)[:2] == ["Speak Greek.", "Hello"]
    chat.drop()

    assert chat.attachments == []


def test_what_is_attached_is_taken_back_before_a_turn(chat: ConsoleChat) -> None:
    chat.say("Hello")
    chat.attachments.append(sabir.image("https://example.com/a.png"))

    assert [chat.drop(), chat.drop()] == ["removed: 1 attachment", "removed: Hello"]
    with pytest.raises(UsageError, match="this conversation is still empty"):
        chat.drop()
    with pytest.raises(UsageError, match="this conversation is still empty"):
        chat.retry()


def test_a_turn_that_failed_is_not_taken_back_twice(chat: ConsoleChat) -> None:
    """The one before it was good, and goes only when that is said again; what was attached since goes first."""
    chat.say("Hello")
    chat.conversation.strict = {"downgraded"}
    chat.attachments.append(sabir.image("https://example.com/a.png"))
    with pytest.raises(sabir.RenderingRefused):
        chat.say("What is this?")
    chat.recover()
    assert chat.drop() == "nothing to drop: “What is this?” had already been discarded; 1 still attached"
    with pytest.raises(sabir.RenderingRefused):
        chat.say("And this?")
    chat.recover()
    chat.attachments.append(sabir.image("https://example.com/b.png"))
    dropped = [chat.drop(), chat.drop()]

    assert dropped == ["removed: 2 attachments", "nothing to drop: “And this?” had already been discarded"]
    assert texts(chat) == ["Hello", "Hello"]
    assert chat.drop() == "removed: Hello"


def test_what_was_said_is_quoted_without_what_went_with_it(chat: ConsoleChat) -> None:
    """The text of a file stands before it in the same message."""
    chat.attachments.append(sabir.TextPart(text="notes.md:\na note\n"))
    chat.say("Read\nit.")

    assert chat.drop() == "removed: Read it."


def test_an_asynchronous_option_runs(chat: ConsoleChat) -> None:
    """Options may be coroutine functions."""
    chat.conversation.options = (later,)

    assert chat.say('call later {"text": "ü"}').text == "Ü"


def test_a_model_that_only_calls_options_is_stopped(chat: ConsoleChat) -> None:
    """It would go on for ever, and be paid for."""
    chat.conversation.options = (insist,)
    with pytest.raises(sabir.errors.OutputError, match="called options 50 times in a row"):
        chat.say("call insist {}")


def test_a_loss_is_shown_once_however_often_it_is_sent(chat: ConsoleChat, capsys: pytest.CaptureFixture[str]) -> None:
    """Every request of a conversation carries the losses of all that went before."""
    chat.say("Hello", sabir.image("https://example.com/a.png"))
    chat.say("more")

    assert capsys.readouterr().err.count("loss   downgraded") == 1


def test_a_model_that_cannot_take_the_conversation_is_not_switched_to(
    chat: ConsoleChat, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it loses is told; where it refuses, the model stays as it was."""
    monkeypatch.setenv("RELAY_API_KEY", "a key")
    chat.say("Hello", sabir.image("https://example.com/a.png"))
    assert [loss.kind for loss in chat.switch("relay:any")] == ["downgraded"]
    chat.conversation.strict = {"downgraded"}
    with pytest.raises(sabir.RenderingRefused):
        chat.switch("relay:other")

    assert str(chat.target) == "relay:any"
    assert relay.requests == []


def test_a_pipe_that_nobody_reads_ends_the_turn(chat: ConsoleChat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever left gets nothing more, and pays for nothing more."""

    def closed(text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(chat.writer, "write", closed)
    with pytest.raises(BrokenPipeError):
        chat.say("Hello there")


@pytest.mark.parametrize(
    ("amount", "shown"),
    [("0", "0.00"), ("12.3456", "12.35"), ("0.0123", "0.012"), ("0.000012345", "0.000012"), ("1", "1.00")],
)
def test_an_amount_has_two_digits_that_say_something(amount: str, shown: str) -> None:
    assert format_money(Decimal(amount)) == shown


ENDINGS = {
    "cut off at its length limit; raise --max-output-tokens": reply("It rai", finish_reason="length"),
    "the provider's content filter stopped the answer": reply("It", finish_reason="content_filter"),
    "the provider failed before the answer was complete": reply("It", finish_reason="error"),
    "the model refused: I may not.": reply("No:", sabir.RefusalPart(text="I may not.")),
    "the model refused\n": reply(sabir.RefusalPart(text="I may not."), finish_reason="content_filter"),
}


@pytest.mark.parametrize("line", ENDINGS)
def test_a_line_tells_of_a_refusal_and_of_a_cut_answer(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    with Conversation(ScriptedAdapter(ENDINGS[line], "Rain.")) as conversation:
        chat = ConsoleChat(conversation, output, PlainWriter(output))
        chat.say("Umbrella?")
        first = capsys.readouterr()
        chat.say("Sure?")
        second = capsys.readouterr()

    assert line in first.err.replace("│", "")
    assert first.out.strip()
    assert "refused" not in second.err and "answer" not in second.err


def test_the_status_line_shows_what_the_prompt_cache_gave(capsys: pytest.CaptureFixture[str]) -> None:
    figures = (sabir.Usage(input_tokens=900, output_tokens=9, cache_read_tokens=read) for read in (0, 880, 0))
    output = Output()
    with Conversation(ScriptedAdapter(*(reply("Rain.", usage=each) for each in figures))) as conversation:
        chat = ConsoleChat(conversation, output, PlainWriter(output))
        lines = []
        for _ in range(3):
            chat.say("Umbrella?")
            lines.append(capsys.readouterr().err)
            conversation.instructions = "Be brief." if len(lines) == 2 else conversation.instructions

    assert ["cache " in line for line in lines] == [False, True, True]
    assert "cache 880 of 909: nothing changed" in lines[1]
    assert "cache 0 of " in lines[2] and "messages[0] (user) changed" in lines[2]


def test_a_loss_names_the_message_by_its_position_and_first_words(
    chat: ConsoleChat, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.say("Hello")
    chat.say("What is this?", sabir.image("https://example.com/a.png"))

    err = capsys.readouterr().err
    assert "loss   downgraded: message 3 (“What is this?”) parts[1]: echo.plain" in err
    assert chat.conversation.messages[2].id[:8] not in err
