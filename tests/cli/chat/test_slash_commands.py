"""Slash words: each does what it says, unknown ones are refused, and all are completed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sabir
from sabir_cli.chat.answer_printer import Plain
from sabir_cli.chat.console_chat import Talk
from sabir_cli.chat.slash_commands import WORDS, Leave, is_word, obey, suggest
from sabir_cli.output import Output, UsageError
from sabir_session import Conversation

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    """A conversation in memory, in a folder with an image."""
    (tmp_path / "sky.png").write_bytes(PNG)
    (tmp_path / "my_words_options.py").write_text("def shout(text: str) -> str:\n    return text.upper()\n")
    monkeypatch.chdir(tmp_path)
    output = Output()
    with Conversation("echo:any") as chat:
        yield Talk(chat, output, Plain(output))


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """What was said beside the answers since this was asked last."""
    return capsys.readouterr().err


def test_the_words_are_those_of_the_help(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    """One table."""
    obey(talk, "/help")
    found = told(capsys)

    assert all(f"/{word.name}" in found for word in WORDS)
    assert " ".join(word.name for word in WORDS) == (
        "help model system option image file losses render cost save drop retry quit"
    )


@pytest.mark.parametrize("text", ["/help", "/nothing at all", "/", "/usr/bin/x is what?"])
def test_what_begins_with_a_slash_is_for_the_program(text: str) -> None:
    """Whatever follows; two slashes are for the model."""
    assert is_word(text)
    assert not is_word(f"/{text}")


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
def test_what_cannot_be_done_is_told_at_once(text: str, complaint: str, talk: Talk) -> None:
    """And nothing is sent."""
    with pytest.raises(sabir.SabirError, match=complaint):
        obey(talk, text)
    assert talk.chat.messages == ()


def test_a_file_goes_with_the_next_message(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    """Once; what its requests lost is told again."""
    obey(talk, "/image sky.png")
    talk.say("What is this?")
    talk.say("And now?")
    told(capsys)
    obey(talk, "/losses")

    assert [[part.kind for part in message.parts] for message in talk.chat.messages[::2]] == [
        ["media", "text"],
        ["text"],
    ]
    assert told(capsys).startswith("loss   downgraded")


@pytest.mark.parametrize("written", ["'a sky.png'", "a\\ sky.png", "a sky.png", "it's.png"])
def test_a_file_is_found_as_a_shell_writes_it_and_as_it_is(written: str, talk: Talk, tmp_path: Path) -> None:
    """A file that is dropped on a terminal comes with quotes or backslashes."""
    for name in ("a sky.png", "it's.png"):
        (tmp_path / name).write_bytes(PNG)
    obey(talk, f"/image {written}")

    assert len(talk.attached) == 1


def test_instructions_options_and_costs_are_changed_and_shown(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an argument nothing is changed."""
    obey(talk, "/system\nBe brief.")
    obey(talk, "/option my_words_options:shout")
    talk.say("Hello")
    told(capsys)
    for word in ("/system", "/option", "/cost", "/model"):
        obey(talk, word)

    assert talk.chat.messages[0].text == "Be brief."
    assert told(capsys).splitlines() == [
        "instructions: Be brief.",
        "options: shout",
        "3 in, 1 out · cost not known",
        "the model is echo:any; /model provider:model switches to another model",
    ]


@pytest.mark.usefixtures("relay")
def test_a_switch_is_told_when_it_is_done_and_a_missing_key_at_once(
    talk: Talk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with the first message that cannot be sent."""
    talk.say("Hello")
    told(capsys)
    with pytest.raises(sabir.SabirError, match="not installed"):
        obey(talk, "/model nowhere:x")
    assert told(capsys) == ""
    obey(talk, "/model relay:a")
    assert told(capsys).splitlines() == [
        "echo:any ▸ relay:a",
        "relay has no key: set RELAY_API_KEY before you start sabir",
    ]
    monkeypatch.setenv("RELAY_API_KEY", "a key")
    obey(talk, "/model relay:b")
    assert told(capsys).splitlines() == ["relay:a ▸ relay:b"]


def test_what_would_be_sent_is_shown_and_not_sent(talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    """With what is attached, and a text."""
    obey(talk, "/image sky.png")
    obey(talk, "/render What is this?")
    found = told(capsys)

    assert "What is this?" in found and "losses: 1" in found
    assert talk.chat.messages == ()


def test_a_conversation_is_saved_in_the_form_of_the_files_name(talk: Talk, tmp_path: Path) -> None:
    """JSON Lines load again."""
    talk.say("Hello")
    obey(talk, "/save talk.jsonl")
    obey(talk, "/save talk.jsonl")  # its own file
    obey(talk, "/save talk.md")

    assert sabir.load(tmp_path / "talk.jsonl") == [*talk.chat.messages]
    (tmp_path / "mine.md").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="exists already; choose another file"):
        obey(talk, "/save mine.md")
    assert (tmp_path / "talk.md").read_text("utf-8") == "## user\n\nHello\n\n## echo:any\n\nHello\n"


def test_the_user_leaves(talk: Talk) -> None:
    """The loop ends."""
    with pytest.raises(Leave):
        obey(talk, "/quit")


@pytest.mark.usefixtures("talk")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/mo", ["/model"]),
        ("/", [f"/{word.name}" for word in WORDS]),
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
    """Those that installed plugins know by name."""
    assert "local:smollm2" in [each.text for each in suggest("/model local:")]
