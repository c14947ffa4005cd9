"""Slash words: each does what it says, unknown ones are refused, and all are completed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sabir
from sabir_cli.chat.answer_printer import PlainWriter
from sabir_cli.chat.console_chat import ConsoleChat
from sabir_cli.chat.slash_commands import SLASH_COMMANDS, Quit, is_command, run_command, suggest
from sabir_cli.output import Output, UsageError
from sabir_session import Conversation

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConsoleChat]:
    """A conversation in memory, in a folder with an image."""
    (tmp_path / "sky.png").write_bytes(PNG)
    (tmp_path / "my_words_options.py").write_text("def shout(text: str) -> str:\n    return text.upper()\n")
    monkeypatch.chdir(tmp_path)
    output = Output()
    with Conversation("echo:any") as conversation:
        yield ConsoleChat(conversation, output, PlainWriter(output))


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """What was said beside the answers since this was asked last."""
    return capsys.readouterr().err


def test_the_words_are_those_of_the_help(chat: ConsoleChat, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(chat, "/help")
    found = told(capsys)

    assert all(f"/{word.name}" in found for word in SLASH_COMMANDS)
    assert " ".join(word.name for word in SLASH_COMMANDS) == (
        "help model system option image file losses render cost save drop retry quit"
    )


@pytest.mark.parametrize("text", ["/help", "/nothing at all", "/", "/usr/bin/x is what?"])
def test_what_begins_with_a_slash_is_for_the_program(text: str) -> None:
    """Whatever follows; two slashes are for the model."""
    assert is_command(text)
    assert not is_command(f"/{text}")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("/hepl", "did you mean /help?"),
        ("/xyzzy", "/help lists the commands; to send a message that begins with a slash, type //$"),
        ("/etc/passwd\nroot:x:0:0", "^unknown command /etc/passwd \\(not sent\\)"),
        ("/ help", "^unknown command / \\(not sent\\)"),
        ("/image", "/image needs FILE"),
        ("/image none.png", "none.png.* cannot be read"),
        ("/file none.txt", "none.txt.* cannot be read"),
        ("/model nowhere:x", "'nowhere' is not installed"),
        ("/option nonsense", "write module:function"),
        ("/losses", "no answer yet"),
        ("/quit smoking is hard", "^/quit does not accept an argument; to send .* type //$"),
        ("/drop\nit gently", "^/drop does not accept an argument; to send .* type //$"),
        ("/drop", "this conversation is still empty"),
        ("/retry", "this conversation is still empty"),
        ("/save talk.txt", "does not end in"),
        ("/save no/such/talk.md", "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_told_at_once(text: str, complaint: str, chat: ConsoleChat) -> None:
    with pytest.raises(sabir.SabirError, match=complaint):
        run_command(chat, text)
    assert chat.conversation.messages == ()


def test_a_file_goes_with_the_next_message(chat: ConsoleChat, capsys: pytest.CaptureFixture[str]) -> None:
    """Once; what its requests lost is told again."""
    run_command(chat, "/image sky.png")
    chat.say("What is this?")
    chat.say("And now?")
    told(capsys)
    run_command(chat, "/losses")

    assert [[part.kind for part in message.parts] for message in chat.conversation.messages[::2]] == [
        ["media", "text"],
        ["text"],
    ]
    assert told(capsys).startswith("loss   downgraded")


@pytest.mark.parametrize("written", ["'a sky.png'", "a\\ sky.png", "a sky.png", "it's.png"])
def test_a_file_is_found_as_a_shell_writes_it_and_as_it_is(written: str, chat: ConsoleChat, tmp_path: Path) -> None:
    """A file that is dropped on a terminal comes with quotes or backslashes."""
    for name in ("a sky.png", "it's.png"):
        (tmp_path / name).write_bytes(PNG)
    run_command(chat, f"/image {written}")

    assert len(chat.attachments) == 1


def test_instructions_options_and_costs_are_changed_and_shown(
    chat: ConsoleChat, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an argument nothing is changed."""
    run_command(chat, "/system\nBe brief.")
    run_command(chat, "/option my_words_options:shout")
    chat.say("Hello")
    told(capsys)
    for word in ("/system", "/option", "/cost", "/model"):
        run_command(chat, word)

    assert chat.conversation.messages[0].text == "Be brief."
    assert told(capsys).splitlines() == [
        "instructions: Be brief.",
        "options: shout",
        "3 in, 1 out · cost not known",
        "the model is echo:any; /model provider:model switches to another model",
    ]


@pytest.mark.usefixtures("relay")
def test_a_switch_is_told_when_it_is_done_and_a_missing_key_at_once(
    chat: ConsoleChat, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat.say("Hello")
    told(capsys)
    with pytest.raises(sabir.SabirError, match="not installed"):
        run_command(chat, "/model nowhere:x")
    assert told(capsys) == ""
    run_command(chat, "/model relay:a")
    assert told(capsys).splitlines() == [
        "echo:any ▸ relay:a",
        "relay has no key: set RELAY_API_KEY before you start sabir",
    ]
    monkeypatch.setenv("RELAY_API_KEY", "a key")
    run_command(chat, "/model relay:b")
    assert told(capsys).splitlines() == ["relay:a ▸ relay:b"]


def test_a_switch_uses_the_facts_of_the_settings_file(
    chat: ConsoleChat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `sabir chat -m` does."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "sabir").mkdir()
    (tmp_path / "sabir" / "config.toml").write_text('[model_facts."openai:gpt-5"]\nefforts = ["high"]\n')
    run_command(chat, "/model openai:gpt-5")

    rendering = chat.conversation.adapter.render("Hi.", settings=sabir.Settings(reasoning_effort="minimal"))
    assert rendering.body["reasoning"] == {"effort": "high"}  # type: ignore[index,call-overload]
    chat.close()


def test_what_would_be_sent_is_shown_and_not_sent(chat: ConsoleChat, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(chat, "/image sky.png")
    run_command(chat, "/render What is this?")
    found = told(capsys)

    assert "What is this?" in found and "losses: 1" in found
    assert chat.conversation.messages == ()


def test_a_conversation_is_saved_in_the_form_of_the_files_name(chat: ConsoleChat, tmp_path: Path) -> None:
    """JSON Lines load again."""
    chat.say("Hello")
    run_command(chat, "/save talk.jsonl")
    run_command(chat, "/save talk.jsonl")  # its own file
    run_command(chat, "/save talk.md")

    assert sabir.load(tmp_path / "talk.jsonl") == [*chat.conversation.messages]
    (tmp_path / "mine.md").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="exists already; choose another file"):
        run_command(chat, "/save mine.md")
    assert (tmp_path / "talk.md").read_text("utf-8") == "## user\n\nHello\n\n## echo:any\n\nHello\n"


def test_the_user_leaves(chat: ConsoleChat) -> None:
    """The loop ends."""
    with pytest.raises(Quit):
        run_command(chat, "/quit")


@pytest.mark.usefixtures("chat")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/mo", ["/model"]),
        ("/", [f"/{word.name}" for word in SLASH_COMMANDS]),
        ("/image s", ["sky.png"]),
        ("/file ", ["my_words_options.py", "sky.png"]),
        ("/save no/such/", []),
        ("/losses x", []),
        ("Hello", []),
        ("//mo", []),
    ],
)
def test_words_and_files_are_completed(text: str, found: list[str]) -> None:
    """What is written is replaced."""
    assert [each.text for each in suggest(text)] == found


def test_models_are_completed() -> None:
    assert "local:smollm2" in [each.text for each in suggest("/model local:")]
