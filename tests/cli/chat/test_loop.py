"""`sabir chat` on a terminal, as someone at a keyboard has it: sessions from the first key to the last."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.chat import slow
from tests.cli.command import run
from tests.cli.terminal import lines_of, on_terminal, posix

pytestmark = posix

ECHO = ("chat", "-m", "echo:any")
READY = rb"\x1b\[\?2004h"
"""The editor reads: it has asked the terminal to mark what is pasted."""
DONE = b"loss.*" + READY
SLOW = (sys.executable, slow.__file__)


def kept(name: str = "1") -> list[str]:
    """What the texts of a kept conversation say."""
    shown = json.loads(run("chats", "show", name, "--json").stdout)
    return [part["text"] for message in shown for part in message["payload"].get("parts", ())]


def test_what_is_said_is_answered_kept_and_gone_on_with() -> None:
    """The second session knows the first; leaving says under which name it is kept."""
    code, seen = on_terminal(*ECHO, typed=[(READY, b"Hello **there**\r"), (DONE, b"/quit\r")])
    assert code == 0
    assert "Hello there" in lines_of(seen)
    assert b"kept as 1; sabir chat -c continues it" in seen

    code, seen = on_terminal("chat", "-c", typed=[(READY, b"more\r"), (DONE, b"\x04")])
    assert code == 0
    assert b"> Hello **there**" in seen
    assert kept() == ["Hello **there**", "Hello **there**", "more", "more"]


def test_a_paste_is_one_message() -> None:
    """With its line breaks; it goes out when Enter is pressed, and not before."""
    paste = b"\x1b[200~first\nsecond\n/quit\x1b[201~"
    on_terminal(*ECHO, typed=[(READY, paste), (b"/quit", b"\r"), (DONE, b"\x04")])

    assert kept() == ["first\nsecond\n/quit"] * 2


@pytest.mark.parametrize("key", [b"\x1b\r", b"\\\r"], ids=["Alt-Enter", "a backslash and Enter"])
def test_a_message_of_several_lines_is_entered(key: bytes) -> None:
    """Enter alone sends."""
    on_terminal(*ECHO, typed=[(READY, b"first" + key), (b"first", b"second\r"), (DONE, b"\x04")])

    assert kept() == ["first\nsecond"] * 2


def test_a_slash_word_is_never_sent() -> None:
    """An unknown one is told with the nearest; two slashes say one to the model."""
    typed = [(READY, b"/modle\r"), (rb"did you mean /model\?.*" + READY, b"//help me\r"), (DONE, b"/quit\r")]
    code, _ = on_terminal(*ECHO, typed=typed)

    assert code == 0
    assert kept() == ["/help me"] * 2


def test_a_model_is_switched_in_mid_conversation() -> None:
    """What the other cannot take is told before anything is sent."""
    typed = [
        (READY, b"Hello\r"),
        (DONE, b"/model echo:other\r"),
        (b"loses nothing there.*" + READY, b"/model nowhere:x\r"),
        (b"not installed.*" + READY, b"more\r"),
        (b"other.*" + DONE, b"\x04"),
    ]
    code, seen = on_terminal(*ECHO, typed=typed)

    assert code == 0
    assert "echo:other · 3 in, 1 out · no losses" in lines_of(seen)


def test_a_reply_is_stopped_and_asked_again_and_two_keys_leave() -> None:
    """Ctrl-C: the turn is discarded and said to be; what came stays on the screen. Nothing of it is kept."""
    typed = [
        (READY, b"Tell me.\r"),
        (b"word3", b"\x03"),
        (b"discarded; /retry asks it again.*" + READY, b"/retry\r"),
        (b"word2", b"\x03"),
        (b"discarded.*" + READY, b"\x03"),
    ]
    code, seen = on_terminal("chat", "-m", "slow:any", typed=typed, program=SLOW)

    assert code == 0
    assert any(line.startswith("word0 word1 word2") for line in lines_of(seen))
    assert run("chats", "--json").stdout == b"[]\n"


@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_retry_that_does_not_finish_keeps_the_old_answer(ends: str, tmp_path: Path) -> None:
    """Ctrl-C says so; after the death of the process, the next one has the old answer too."""
    run(*ECHO, "Tell me.")
    (tmp_path / "deadly.py").write_text("import os\ndef look() -> str:\n    os._exit(9)\n")
    if ends == "stopped":
        typed = [(READY, b"/retry\r"), (b"word3", b"\x03"), (b"earlier answer is kept.*" + READY, b"\x04")]
        on_terminal("chat", "-c", "-m", "slow:any", typed=typed, program=SLOW)
    else:
        run(*ECHO, "-c", "--option", "deadly:look", "call none {}", env={"PYTHONPATH": str(tmp_path)})
        typed = [(READY, b"/drop\r"), (b"removed.*" + READY, b"/retry\r"), (b"word3", b"\x04\x1c")]
        code, _ = on_terminal("chat", "-c", "-m", "slow:any", typed=typed, program=SLOW)
        assert code < 0

    assert kept() == ["Tell me."] * 2


def test_what_is_typed_while_a_reply_comes_is_there_afterwards() -> None:
    """It does not stand amid the reply, and Ctrl-C does not throw it away."""
    typed = [
        (READY, b"Tell me.\r"),
        (b"word2", b"later"),
        (b"word6", b"\x03"),
        (b"discarded.*" + READY + b".*later", b"\x03\x03\x03"),
    ]
    code, seen = on_terminal("chat", "-m", "slow:any", typed=typed, program=SLOW)

    assert code == 0
    assert b"later" not in seen.partition(b"discarded")[0]


def test_a_turn_that_a_killed_process_left_is_told_and_gone_on_with(tmp_path: Path) -> None:
    """What ran does not run again: the option of the second process is another."""
    for name, body in (("deadly", "import os; os._exit(9)"), ("lively", "return 'there'")):
        (tmp_path / f"{name}.py").write_text(f"def look() -> str:\n    {body}\n")
    env = {"PYTHONPATH": str(tmp_path)}
    assert run(*ECHO, "--option", "deadly:look", "call look {}", env=env).returncode == 9

    typed = [(READY, b"/retry\r"), (DONE, b"\x04")]
    code, seen = on_terminal("chat", "-c", "--option", "lively:look", typed=typed, env=env)

    assert code == 0
    assert b"this turn was interrupted: /retry continues it" in seen
    assert kept() == ["call look {}", "there"]


def test_one_prompt_that_is_interrupted_keeps_nothing() -> None:
    """It ends as interrupted programs do."""
    code, seen = on_terminal("chat", "-m", "slow:any", "Tell me.", typed=[(b"word3", b"\x03")], program=SLOW)

    assert code == 130
    assert b"Traceback" not in seen
    assert run("chats", "--json").stdout == b"[]\n"


def test_a_key_on_an_empty_line_leaves_when_it_is_pressed_twice() -> None:
    """Once, it says so; with something written, it clears the line, which the upward key gets back."""
    typed = [
        (READY, b"Hello"),
        (b"Hello", b"\x03\x03"),
        (b"again leaves.*" + READY, b"\x1b[A\r"),
        (DONE, b"\x03"),
        (b"again.*" + READY, b"\x03"),
    ]
    code, _ = on_terminal(*ECHO, typed=typed)

    assert code == 0
    assert kept() == ["Hello"] * 2


def test_a_turn_that_failed_is_discarded_and_a_wrong_file_is_told_at_once(tmp_path: Path) -> None:
    """The conversation goes on."""
    (tmp_path / "notes.md").write_text("a note", "utf-8")
    typed = [
        (READY, b"fail 500\r"),
        (b"discarded.*" + READY, f"/file {tmp_path}/none.md\r".encode()),
        (b"cannot.*" + READY, f"/file {tmp_path}/notes.md\r".encode()),
        (b"removes it.*" + READY, b"Read it.\r"),
        (DONE, b"\x04"),
    ]
    on_terminal(*ECHO, typed=typed)

    assert kept()[:2] == ["notes.md:\na note\n", "Read it."]


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"LC_ALL": "C"}], ids=str)
def test_a_terminal_that_can_do_less_is_shown_the_text_as_it_is(env: dict[str, str]) -> None:
    """Without colours, without a cursor, in ASCII: Markdown stays as it was written."""
    typed = [(b">", "Hello **you** …\r".encode()), (b"loss.*>", b"\x04")]
    code, seen = on_terminal(*ECHO, typed=typed, env=env)
    said = seen.partition(b"you")[2]

    assert code == 0
    assert b"Hello **you**" in said
    assert seen.isascii() == ("LC_ALL" in env)


def test_forty_columns_are_enough() -> None:
    """No line is longer, and none is folded within a word."""
    typed = [(READY, b"/help\r"), (b"leaves;.*" + READY, b"What is this all about then?\r"), (DONE, b"\x04")]
    _, seen = on_terminal(*ECHO, typed=typed, columns=40)
    lines = [line.rstrip() for line in lines_of(seen)]

    assert max(map(len, lines)) <= 40
    assert "/model [name]       switch to another" in lines
